// Numbering of lists given by ids, sorting by label, and finishing sums over pairs.
#include <bit>

#include "losses.h"

namespace ltr {
namespace {

constexpr std::size_t kCounted = 64;    // labels below this that are whole numbers are sorted by counting
constexpr double kLeastShare = 1e-300;  // a share of the weight times an infinite value must not be 0 * inf

// Numbers ids in the order in which they are asked for: open addressing in a table of at least twice their number.
class Numbering {
 public:
  explicit Numbering(std::size_t most)
      : mask_(std::bit_ceil(2 * most + 2) - 1), ids_(mask_ + 1), numbers_(mask_ + 1, -1) {}

  std::int64_t operator()(std::int64_t id) {
    std::uint64_t hash = static_cast<std::uint64_t>(id) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32;
    for (std::size_t at = hash & mask_;; at = (at + 1) & mask_) {
      if (numbers_[at] < 0) {
        ids_[at] = id;
        return numbers_[at] = count_++;
      }
      if (ids_[at] == id) return numbers_[at];
    }
  }
  std::size_t count() const { return index(count_); }

 private:
  std::size_t mask_;
  std::vector<std::int64_t> ids_, numbers_;
  std::int64_t count_ = 0;
};

}  // namespace

Groups::Groups(std::span<const std::int64_t> ids) : number_(ids.size()) {
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) runs += i == 0 || ids[i] != ids[i - 1];
  Numbering numbering(runs);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    number_[i] = i > 0 && ids[i] == ids[i - 1] ? number_[i - 1] : numbering(ids[i]);
  }
  const std::size_t lists = numbering.count();
  start_.assign(lists + 1, 0);
  for (const std::int64_t list : number_) ++start_[index(list) + 1];
  for (std::size_t list = 0; list < lists; ++list) {
    const auto length = static_cast<double>(start_[list + 1]);
    longest_ = std::max(longest_, start_[list + 1]);
    pairs_ += length * length;
    start_[list + 1] += start_[list];
  }
  if (runs == lists) return;
  order_.resize(ids.size());
  std::vector<std::size_t> next(start_.begin(), start_.end() - 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    order_[next[index(number_[i])]++] = static_cast<std::int64_t>(i);
  }
}

ByLabel sort_by_label(const double* labels, std::size_t n, Workspace& space) {
  auto& order = space.integers(0, n);
  auto& begin = space.integers(1, n + 2);
  bool counted = true;
  for (std::size_t i = 0; i < n; ++i) {
    const auto whole = static_cast<std::int64_t>(std::clamp(labels[i], 0.0, double(kCounted)));
    counted &= whole < static_cast<std::int64_t>(kCounted) && static_cast<double>(whole) == labels[i];
  }
  std::size_t found = 0;
  if (counted) {
    std::int32_t next[kCounted] = {};
    for (std::size_t i = 0; i < n; ++i) ++next[index(labels[i])];
    std::int32_t from = 0;
    for (std::size_t label = kCounted; label-- > 0;) {
      if (next[label] == 0) continue;
      begin[found++] = from;
      const std::int32_t count = next[label];
      next[label] = from;
      from += count;
    }
    for (std::size_t i = 0; i < n; ++i) {
      order[index(next[index(labels[i])]++)] = static_cast<std::int32_t>(i);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::int32_t>(i);
    std::stable_sort(order.begin(), order.begin() + n,
                     [labels](std::int32_t i, std::int32_t k) { return labels[i] > labels[k]; });
    for (std::size_t at = 0; at < n; ++at) {
      if (at == 0 || labels[order[at]] < labels[order[at - 1]]) begin[found++] = static_cast<std::int32_t>(at);
    }
  }
  begin[found] = static_cast<std::int32_t>(n);
  return {{order.data(), n}, {begin.data(), found + 1}};
}

Sorted sorted(const List& list, Workspace& space) {
  const std::size_t n = list.n;
  Sorted x{.by_label = sort_by_label(list.labels, n, space),
           .n = n,
           .scores = space.take(n),
           .shares = space.take(n),
           .slopes = space.take(n),
           .weighted = list.weights != nullptr};
  const auto order = x.by_label.order;
  for (std::size_t at = 0; at < n; ++at) x.scores[at] = list.scores[order[at]];
  std::fill_n(x.slopes, n, 0.0);
  if (!x.weighted) {
    std::fill_n(x.shares, n, 1.0);
    return x;
  }
  x.heaviest = *std::max_element(list.weights, list.weights + n);
  x.weights = 0.0;
  for (std::size_t at = 0; at < n; ++at) x.weights += x.shares[at] = list.weights[order[at]] / x.heaviest;
  for (std::size_t at = 0; at < n; ++at) x.shares[at] = std::max(x.shares[at] / x.weights, kLeastShare);
  return x;
}

double finished(const Sorted& x, double total, double pairs, const List& list, const Options& options) {
  if (!(pairs > 0.0)) {
    std::fill_n(list.slopes, list.n, 0.0);
    return 0.0;
  }
  double steepest = 0.0;
  for (std::size_t at = 0; at < x.n; ++at) steepest = std::max(steepest, std::abs(x.slopes[at]));
  const double a = x.heaviest, b = x.weights;
  const double value = options.mean ? total / pairs : total * a * b * a * b;
  // beyond the range the gradient keeps its direction
  const double size = std::min(options.mean ? steepest / pairs : steepest * a * b * a * b, 0.5 * options.largest);
  const double unit = steepest > 0.0 ? 1.0 / steepest : 0.0;
  const bool direct = unit >= 1e-290 && unit <= 1e290;
  for (std::size_t at = 0; at < x.n; ++at) {
    const double part = direct ? x.slopes[at] * unit : steepest > 0.0 ? x.slopes[at] / steepest : 0.0;
    list.slopes[x.by_label.order[at]] = part * size;
  }
  return value;
}

}  // namespace ltr
