// Search all whole-number weights of sets of columns, for `ltr.exact.points`.
//
// Weights w_j, whole numbers from -reach to reach and none of them 0, of the m columns of a set order the rows of each
// list by ``w·x_i - handicap_i``, largest first. Of a statistic ``sum_r a_r gain(row at place r)``, a_1 >= a_2 >= ...,
// rows with equal keys get their mean over all orders (`mean`), or the best order: handicaps, margin times grade, have
// put those apart that tie as lost.
//
// *Tree.* Columns are fixed one after the other, those with many values first. Each level has the rows in the order of
// the weights that are fixed. A column of few values splits this order into as many sorted parts, which are merged for
// each of its weights; otherwise the rows are sorted.
//
// *Bounds.* Rows with equal values of all columns that are not fixed keep their order, whatever those weights are. So
// they are a block with a known order, and pooling bounds the node as `supports.cpp` explains.
//
// *Rounding.* Where keys are exact (whole numbers below 2^53) so is every comparison. Otherwise keys err by less than
// `slack` / 2, rows whose keys differ by no more count as in their best order, and weights for which that matters are
// only *undecided*: the caller evaluates those whose bound exceeds the best value. Sums are in long double.
//
// *Demands.* Where keys are exact, other statistics of one list may have least values. They order rows by their totals
// alone, the keys without handicaps: with gains that are put apart as lost, a handicap is half a unit, so that the
// total is the key rounded up. Rows with equal totals get their mean (`mean`) or their worst order, which a bound takes
// for the mean. Weights whose value is within rounding of a least value are left to the caller (`met`).
//
// *Multiples.* Weights and their multiples order rows alike, and larger ones win at least as much against a margin.
// One of each direction is enough, unless side constraints forbid multiples.
#pragma once

#include <array>
#include <cstdlib>
#include <functional>
#include <memory>

#include "arrays.h"

namespace ltr {

constexpr std::size_t kMostColumns = 6;  // of a set

enum class Multiples : int { all, largest, smallest };  // which weights are searched of those of one direction

// Weights that were found.
struct FoundPoint {
  double value = -kInfinity;  // with the price
  std::size_t size = 0;
  std::array<std::int64_t, kMostColumns> columns{};  // ascending
  std::array<int, kMostColumns> weights{};

  int total() const {
    int sum = 0;
    for (const int w : weights) sum += std::abs(w);
    return sum;
  }

  // Whether these weights are to be taken before others of equal value.
  bool before(const FoundPoint& other) const {
    if (size != other.size) return size < other.size;
    if (total() != other.total()) return total() < other.total();
    if (columns != other.columns) return columns < other.columns;
    return weights > other.weights;
  }
};

// A statistic of the list that must reach a value.
struct PointDemand {
  std::span<const double> gains, rank_weights;
  double least, room;               // the value, and what rounding may change
  std::vector<long double> sums{};  // of the first so many rank weights, which the search fills in
};

struct PointProblem {
  Matrix<const double> X;  // by columns
  std::span<const double> gains, handicaps;
  std::span<const std::int64_t> starts;  // of the lists, and the number of rows
  std::span<const double> rank_weights;  // of each list, from the top
  std::vector<PointDemand> demands{};
  std::function<bool(const FoundPoint&)> met{};  // whether weights so close to a least value meet the demands
  Matrix<const double> A;                        // side constraints A w <= b
  std::span<const double> b;
  double loose;  // violation of a side constraint, relative to its terms
  int reach;
  Multiples multiples;
  bool mean, exact;
  double price, tolerance;  // of a column; up to which values count as equal
};

class PointSearch {
 public:
  virtual ~PointSearch() = default;

  // Search sets of columns, the largest bound first, for weights above a value; return whether all were searched.
  //
  // Args:
  //   sets: columns of each set, -1 behind the last; bounds: of each set, descending, with the price of its columns.
  //   value: the best value known; threads: number of threads; stop: see `Stop`.
  //   threshold: collect all weights whose value is at least this, up to `most`; infinity to collect none.
  virtual bool search(Matrix<const std::int64_t> sets, std::span<const double> bounds, double value, int threads,
                      const Stop& stop, double threshold, std::size_t most) = 0;

  // Take note of a value that weights are known to have.
  virtual void raise(double value) = 0;

  // The largest bound of the sets that are not completed: infinity before the search begins, -infinity where all are.
  virtual double bound() = 0;

  virtual FoundPoint best() = 0;
  virtual std::vector<FoundPoint> collected() = 0;
  virtual std::vector<FoundPoint> undecided() = 0;  // since the last call
  virtual bool full() const = 0;                    // whether there were more than could be kept
  virtual std::int64_t visited() const = 0;
};

// The arrays of a problem must go on.
std::unique_ptr<PointSearch> search_points(PointProblem problem);

}  // namespace ltr
