// Kernels that are single functions. They check that their arrays fit together.
#pragma once

#include <tuple>

#include "arrays.h"

namespace ltr {

// --- exact scores (`scores.cpp`)

// Write w·x and |w|·|x| of every row.
void weigh_rows(Matrix<const double> X, std::span<const double> w, std::span<double> values, std::span<double> sizes);

// Write the rank of the keys w·x - margin * steps, list behind list: 0 is the lowest, and equal keys share a rank. With
// `apart` they do not: more steps are higher, and with as many, those that come first.
void rank_keys(Matrix<const double> X, std::span<const double> w, double margin, std::span<const std::int64_t> rows,
               std::span<const std::int64_t> steps, std::span<const std::int64_t> lists, std::span<const double> values,
               std::span<const double> errors, double margin_error, bool apart, std::span<std::int64_t> ranks);

// --- bounds of supports (`supports.cpp`)

// Write an upper bound of the sum of gains times rank weights, for any weights of the columns of each support; infinity
// where there is none.
//
// Args:
//   place: number of each row's value among those of its column, (d, n).
//   ascending: rows by the values of each column, (d, n).
//   values: different values of each column.
//   sums: sums of the rank weights of the first so many places from the top, (n + 1,).
void bound_supports(Matrix<const std::int32_t> place, Matrix<const std::int32_t> ascending,
                    std::span<const std::int64_t> values, std::span<const double> gains, std::span<const double> sums,
                    Matrix<const std::int64_t> supports, std::span<double> bounds);

// --- central weights (`central.cpp`)

// Write the statistic of each row of scores, up to a constant.
//
// Args:
//   start: first row of each list, and the number of rows.
//   penalty: what is taken from the score of each row before scores are compared.
//   rank_weights: of each list, from the top.
void statistics(std::span<const std::int64_t> start, std::span<const double> gains, std::span<const double> penalty,
                std::span<const double> rank_weights, Matrix<const double> scores, std::span<double> found);

// Write the mean step of walkers; the first four arguments are those of `statistics`.
//
// Args:
//   A, b: linear side constraints ``A w <= b`` on weights scaled into the box [-1, 1]^d.
//   origin: weights from which steps are taken; free: those that change.
//   base: scores of the rows at the origin; Z: columns of the free weights, (free, n).
//   burn_in: the first steps, which are not averaged.
void sample_steps(std::span<const std::int64_t> start, std::span<const double> gains, std::span<const double> penalty,
                  std::span<const double> rank_weights, Matrix<const double> A, std::span<const double> b,
                  std::span<const double> origin, std::span<const std::int64_t> free, std::span<const double> base,
                  Matrix<const double> Z, std::int64_t walkers, std::int64_t steps, std::int64_t burn_in,
                  double sharpness, double spread, std::uint64_t seed, std::span<double> mean);

// --- sorted lists for metrics (`ranking.cpp`)

// Return the integers of the lowest and the highest score, and the least size above 0 of one.
std::tuple<std::int64_t, std::int64_t, std::int64_t> score_range(std::span<const double> scores);
std::tuple<std::int64_t, std::int64_t, std::int64_t> score_range(std::span<const float> scores);

// How scores become the bits of keys: the largest of their integers, and how far those next to 0 are moved towards it.
struct Packing {
  std::int64_t highest, gap, score_bits, label_bits;
};

// Write the keys by which items are sorted.
using Numbers = std::span<const std::int64_t>;
void pack_keys(std::span<const double> scores, Numbers labels, Numbers lists, Packing by, std::span<std::int64_t> keys);
void pack_keys(std::span<const float> scores, Numbers labels, Numbers lists, Packing by, std::span<std::int64_t> keys);
void pack_keys(Numbers scores, Numbers labels, Numbers lists, Packing by, std::span<std::int64_t> keys);

// Write the number of relevant items of each list, whose keys are sorted; return that of all, and whether any two items
// of a list are tied.
std::pair<std::int64_t, bool> count_relevant(Numbers keys, std::int64_t label_bits, Numbers n,
                                             std::span<std::int64_t> relevant);

// Write, for each relevant item, the number of its label, its position, and the first and the last position of its tie
// group; where no items are tied, one array may stand for all three positions.
void find_relevant(Numbers keys, std::int64_t label_bits, Numbers n, std::span<std::int64_t> grade,
                   std::span<std::int64_t> position, std::span<std::int64_t> start, std::span<std::int64_t> end);

// Write the numbers of labels of each list in descending order, and the place of each in its list.
void order_grades(Numbers grade, Numbers relevant, std::int64_t levels, std::span<std::int64_t> ordered,
                  std::span<std::int64_t> place);

// Write for each row with an event how many rows of a larger order have a smaller level, and how many the same; 0 for
// other rows.
void count_later(Numbers order, Numbers level, std::span<const bool> event, std::int64_t levels,
                 std::span<std::int64_t> below, std::span<std::int64_t> equal);

// --- sums of a smooth function over long lists (`losses.cpp`), for `ltr.losses.transforms`

// Add q times each Chebyshev polynomial of an item's place to the row of its bin.
void add_moments(std::span<const double> q, std::span<const std::int64_t> bins, std::span<const double> place,
                 Matrix<double> total);

// Write the Chebyshev series of each item's bin at its place.
void interpolate(Matrix<const double> coefficients, std::span<const std::int64_t> bins, std::span<const double> place,
                 std::span<double> out);

// --- pairs of which no weights, or few, win both (`weight_space/opposites.cpp`)

// Write the directions nearest to the negative of each one, the nearest first, and their distances in the 1-norm.
// `directions` has a column for each direction; the others have a row, and as many columns as are wanted.
void find_opposites(Matrix<const float> directions, Matrix<std::int32_t> partner, Matrix<float> distance);

}  // namespace ltr
