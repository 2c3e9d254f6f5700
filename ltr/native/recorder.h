// Record a partition of weight space that proves a bound, for `ltr.exact.certificate`.
//
// `ltr.verify` defines partitions and shows why they prove a bound. Boxes of weights are visited depth first; those
// whose objective stays below the bound are closed, as are those where a demand is not met, the others cut, and what is
// done is recorded. There may be demands alone, to prove that no weights meet them.
//
// *Exact arithmetic closes whatever is closed here.* Interval bounds are multiples of 2^-49 in [-1, 1], or whole
// numbers, so they and their midpoints are exact. Everything that is rounded errs on the safe side:
//
// * Lost pairs. Let u = 2^-53, δ = x_i - x_k, and S = sum_j |x_ij| + |x_kj| >= sum_j |δ_j|. In the root the largest w·δ
//   is a sum of d products: computed δ_j, products and sums are within u of what they should be, relatively, so that it
//   errs by at most (d + 1) u S in the first order. A cut moves it by a product and rounds once, by u S; the products
//   on a path sum up to 2 S at most and err by 4 u S. After t cuts that is (d + t + 5) u S, and half the smallest
//   subnormal number for each product. Where weights are whole numbers from -B to B, S is B times as large. The slack
//   is 2 (d + t + 16) u S and room for underflow. Its own rounding, that of S, that of the sum with it and terms of
//   higher order take a few u S, for which there is room.
// * Side constraints. A row is summed again for each box. The error is at most (d + 4) u times |b| and the sizes of the
//   terms in the first order, and half the smallest subnormal number per product. Twice the tolerance of `ltr.verify`
//   is far more.
// * Sums of rank weights are integers: each weight times a power of 2, rounded up; their total stays below 2^62. The
//   largest sums that the bound allows are computed in fractions and rounded down. The sum from which a demand is met
//   is rounded up, and a box is closed below it.
//
// A cut by the order of two observations moves no interval bounds, but counts as one in t.
//
// Pairs won in a box are not examined again in its parts. A pair that counts as won because of rounding weakens a bound
// but cannot make it wrong.
#pragma once

#include <memory>

#include "arrays.h"

namespace ltr::recorder {

// Pairs as in `ltr.verify.Problem`, one entry per pair.
struct Pairs {
  std::span<const std::int32_t> above, below, counter;
  std::span<const std::int64_t> weight;   // as an integer
  std::span<const double> required;       // w·δ from which the pair is won, rounded down
  std::span<const double> size;           // sum of |x_ij| + |x_kj|, times the largest size of a weight
  std::span<const std::int32_t> line;     // number of its two observations where other pairs ask for their opposite
                                          // order, else -1; observations with equal features are the same here
  std::span<const std::uint8_t> ascends;  // which of the two orders it asks for
  std::size_t lines = 0;
};

// A list of observations that are ranked against each other.
struct List {
  std::size_t first;          // its first counter
  std::size_t ranked;         // observations with a gain > 0
  std::size_t layers, layer;  // how many layers it has, and the first of them
  std::size_t size;
};

struct Layer {
  std::size_t members;
  std::size_t table;  // where its statistic table starts
};

// What is to be maximised, or a demand.
struct Objective {
  std::size_t begin, end;       // its lists; none where pairs have weights of their own
  std::size_t first, counters;  // its counters
};

// A problem as the recorder reads it.
struct Problem {
  Matrix<const double> columns;  // features, one row per feature, (d, n)
  Pairs pairs;
  double tiny;  // room for underflow
  std::vector<Objective> objectives;
  std::vector<List> lists;                     // of all objectives
  std::vector<Layer> layers;                   // of all lists
  std::span<const std::int64_t> contribution;  // statistic tables of the layers in sequence, or the total weight of
                                               // each counter; integers
  Matrix<const double> A;                      // side constraints A w <= b
  std::span<const double> b;
  double loose;                            // violation of a side constraint, relative to its terms, that closes a box
  std::span<const std::uint8_t> zeros;     // whether it matters that a weight is 0: not for free columns, nor for any
                                           // if C = 0 and `max_nonzeros` is not set
  std::span<const std::uint8_t> required;  // columns whose weights are at least `least` in size
  double least;
  std::size_t most;  // how many weights to which it matters that they are 0 may differ from it
  bool whole;        // whether weights are whole numbers
  std::size_t counters;
};

// Why recording stopped; limit: boxes or checks used up, or boxes too narrow.
enum class Reason { done, paused, limit };

// Records the partition of one root.
class Recording {
 public:
  virtual ~Recording() = default;

  // Continue until about `work` pairs have been examined.
  virtual Reason advance(std::int64_t work) = 0;

  // What was done with each box: -1 if it was closed, else the coordinate at which it was cut, d + coordinate for a cut
  // at zero, or 2d + pair for a cut by the order of its two observations.
  virtual const std::vector<std::int32_t>& words() const = 0;

  // The number of checks that are left.
  virtual std::int64_t checks() const = 0;
};

// Begin with a root, given by its interval bounds. `limits` are the largest totals that close a box, for each objective
// where 0, 1, ..., d weights are not 0; `checks` is how many the verifier may have to make. The problem must go on.
std::unique_ptr<Recording> record(const Problem& problem, std::span<const double> low, std::span<const double> high,
                                  std::span<const std::int64_t> limits, std::size_t boxes, std::int64_t checks);

}  // namespace ltr::recorder
