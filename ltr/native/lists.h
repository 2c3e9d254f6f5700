// Ranked lists as losses read them: a batch of scores, labels, mask and weights, one list after the other.
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

}  // namespace ltr
