// Losses of ranked lists by name (`losses.cpp`), lists as they read them, and the kernels that compute the value of one
// list and its gradient.
#pragma once

#include "arrays.h"

namespace ltr {

// The lists of flat items with an id each, numbered in the order in which their ids first appear.
class Groups {
 public:
  explicit Groups(std::span<const std::int64_t> ids);

  std::size_t lists() const { return start_.size() - 1; }
  std::size_t items() const { return number_.size(); }
  std::size_t longest() const { return longest_; }
  double pairs() const { return pairs_; }  // sum of the squared lengths of the lists
  // Write the number of each item's list.
  void write_number(std::span<std::int64_t> out) const {
    require(out.size() == items(), "one number per item");
    std::copy(number_.begin(), number_.end(), out.begin());
  }
  // The items of a list, in their order; empty if all lists are in one piece, from `start` on.
  std::span<const std::int64_t> order() const { return order_; }
  std::size_t start(std::size_t list) const { return start_[list]; }

 private:
  std::vector<std::int64_t> number_, order_;
  std::vector<std::size_t> start_;
  std::size_t longest_ = 0;
  double pairs_ = 0.0;
};

// Arrays of items go on to a multiple of this many numbers, so that loops may end with a whole vector.
constexpr std::size_t kBlock = 16;

constexpr std::size_t padded(std::size_t n) { return (n + kBlock - 1) & ~(kBlock - 1); }

// Fill what comes behind n values; return the length with that.
inline std::size_t pad(double* values, std::size_t n, double filler) {
  const std::size_t end = padded(n);
  for (std::size_t i = n; i < end; ++i) values[i] = filler;
  return end;
}

// Numbers that a kernel needs for one list, taken from memory that is kept from list to list.
class Workspace {
 public:
  void reset(std::size_t n) {
    const std::size_t least = kArrays * padded(n + 1);
    if (memory_.size() < least) memory_.resize(least);
    used_ = 0;
  }
  double* take(std::size_t n) {
    double* begin = memory_.data() + used_;
    used_ += padded(n);
    return begin;
  }
  std::vector<std::int32_t>& integers(std::size_t which, std::size_t n) {
    if (integers_[which].size() < n) integers_[which].resize(n);
    return integers_[which];
  }

 private:
  static constexpr std::size_t kArrays = 24;
  std::vector<double> memory_;
  std::vector<std::int32_t> integers_[4];
  std::size_t used_ = 0;
};

// The items of one list that count. All arrays but the weights have room for `padded(n)` numbers, which kernels may
// fill.
struct List {
  std::size_t n;
  double* scores;
  double* labels;
  const double* weights;  // nullptr: all are 1
  double* slopes;         // the gradient of the list's value, to be written
  double* curvatures;     // to be written by kernels of both derivatives
};

// Items sorted by label, highest first, and stable; `begin[g]` is where the g-th label begins, the last entry is n.
struct ByLabel {
  std::span<const std::int32_t> order;
  std::span<const std::int32_t> begin;
  std::size_t labels() const { return begin.size() - 1; }
};

ByLabel sort_by_label(const double* labels, std::size_t n, Workspace& space);

struct Options {
  bool mean = true;      // over pairs or items; otherwise their sum
  double largest = 0.0;  // largest number of the type of the scores: slopes do not leave its range
  bool single = false;   // whether the scores are in single precision
  double power = 1.0;    // of the P-norm push
  // rank statistics
  std::span<const double> rank_weights{};  // a_1..a_n of the longest list, without the cutoff
  bool by_rank = false;                    // whether weights depend on the rank instead of the position
  std::int64_t cutoff = 0;                 // positions from here on have weight 0
  bool exp2 = false;                       // gains are 2^label - 1, otherwise the label
  bool hits = false;                       // gains are 1 for labels above 0, whatever `exp2` says
  bool share_of_pairs = false;             // divide by the number of pairs of a positive and a negative
  double temperature = 1.0;
};

// A kernel returns the value and writes the slopes, in float64. NaN instead of a value says that the inputs must be
// looked at in Python, which raises an error or takes another way. With `curvature` the value means nothing, and in
// place of the slopes the kernel writes, for each score, the second derivative of the value in this score alone, or a
// bound above it where that is not simple (see each kernel).
using Kernel = double(const List&, const Options&, Workspace&, bool curvature);

Kernel ranknet, hinge, squared_hinge, exponential, exponential_push, logistic_push;
Kernel logistic, list_net, softmax, list_mle;
Kernel lambda, smooth;

// RankNet's slopes and curvatures, which are written together, in near-linear time; the value is 0.
Kernel ranknet_derivatives;
// The same by all pairs, for short lists.
double ranknet_derivatives_by_pairs(const List& list, const Options& options, Workspace& space);

constexpr double kRefused = std::numeric_limits<double>::quiet_NaN();

// --- what passes over the pairs of a list begin with

// The items of a list sorted by label, and their shares of the total weight, which is ``heaviest * weights``. Products
// of shares, unlike those of weights, stay within the floating point range. Without weights all shares are 1.
struct Sorted {
  ByLabel by_label;
  std::size_t n;
  double *scores, *shares, *slopes;
  double heaviest = 1.0, weights = 1.0;
  bool weighted;

  std::size_t begin(std::size_t label) const { return index(by_label.begin[label]); }
};

Sorted sorted(const List& list, Workspace& space);

// Exponentials of the scores of a list around the middle c of their range, and their inverses: exp((s - c) unit), with
// zeros behind the last item, and exp((c - s) unit). If scores are at most 64 apart, exp(s_k - s_i) is a product of two
// of them, which takes two exponentials per item instead of one per pair. The exponents are then at most 32 in size, so
// that rounding them changes the result by less than 4e-15.
struct Exponentials {
  double *up, *down;
  bool close;  // whether they exist: the scores are not far apart
};

// The array has room for `padded(n)` numbers, which are filled.
Exponentials exponentials(double* scores, std::size_t n, double unit, Workspace& space);

// Write the slopes from those of a sum over pairs, and return its value: a mean, or a sum with the total weight put
// back.
double finished(const Sorted& x, double total, double pairs, const List& list, const Options& options);

// --- batches of lists

// Lists as rows of arrays, or as groups of flat items, and where to write their gradient.
template <class Score, class Label>
struct Batch {
  const Score* scores;
  const Label* labels;
  const std::uint8_t* mask;  // or nullptr
  const Score* weights;      // or nullptr
  const Groups* groups;      // or nullptr
  std::size_t items, length, lists;
  Score *slopes, *curvatures;  // the second derivatives in each score or bounds above them, if they are asked for

  std::size_t begin(std::size_t list) const {
    return groups != nullptr ? groups->start(list) : std::min(list * length, items);
  }
};

enum class Reduction { none, sum, mean };

// A loss of lists by name, with its options.
class ListLoss {
 public:
  ListLoss(const std::string& name, bool mean, double power, double temperature, std::vector<double> rank_weights,
           bool by_rank, std::int64_t cutoff, bool exp2, bool hits, bool share_of_pairs);

  // Write the values of a batch, or their mean or sum, and the gradient; return false if Python must look at the
  // inputs.
  template <class Score, class Label>
  bool evaluate(Batch<Score, Label> batch, Reduction reduction, std::size_t threads, Score* values) const;

 private:
  struct Named;
  static const Named& named(const std::string& name);

  const Named& named_;
  Options options_;
  std::vector<double> rank_weights_;
};

}  // namespace ltr
