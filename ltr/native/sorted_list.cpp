// Sorting a list by label, and finishing sums over its pairs.
#include "sorted_list.h"

namespace ltr {
namespace {

constexpr double kLeastShare = 1e-300;  // a share of the weight times an infinite value must not be 0 * inf

}  // namespace

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
