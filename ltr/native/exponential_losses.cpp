// Losses of exponentials of all pairs of a list, in time linear in the items, for lists of any length.
//
// Number the labels of a list upwards. For each label g, with item weights w, let
//
//     up_g = log sum of w_i exp(b - s_i),   down_g = log sum of w_k exp(s_k - t),   both over the items of label g.
//
// The sum over all pairs of one item is then a sum over the labels above or below its own, times a factor of the item.
// All quantities stay in logarithms until the size of the sum is known. Scores are measured from b, the lowest score of
// an item that has others below it, and t, the highest score of an item that has others above it. The largest terms are
// therefore small numbers and exact, whatever the scores are; the difference of b and t is added last.
#include "losses.h"
#include "vector_math.h"

namespace ltr {
namespace {

constexpr double kLarge = 1e290;   // size of weights from which they are divided by the heaviest
constexpr double kLeast = 1e-300;  // smallest weight after that

// log(exp(a) + exp(b)).
double plus(double a, double b) {
  if (a == -kInfinity || b == -kInfinity) return std::max(a, b);
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

// A share of the sum over all pairs from its logarithm, at most 1 whatever the rounding of large scores.
double share(double log) { return std::exp(std::min(log, 0.0)); }

LTR_MULTIVERSION double exponentiate(double* terms, double largest, std::size_t n) {
  return ratios(terms, largest, terms, n);
}

// The items of a list sorted by label, lowest first, and one entry per label in the other arrays.
struct Sums {
  std::size_t n;
  ByLabel by_label;
  std::size_t labels;
  double *scores, *up, *down, *log_weight;                                 // of each item
  double *largest_up, *log_up, *higher, *largest_down, *log_down, *lower;  // of each label
  double *log_weights, *heavier;                                           // of each label
  double unit = 1.0, bottom = 0.0, top = 0.0;

  Sums(const List& list, Workspace& space)
      : n(list.n), by_label(sort_by_label(list.labels, list.n, space)), labels(by_label.labels()) {
    scores = space.take(n);
    for (double** items : {&up, &down, &log_weight}) *items = space.take(n);
    for (double** each : {&largest_up, &log_up, &higher, &largest_down, &log_down, &lower, &log_weights, &heavier}) {
      *each = space.take(labels);
    }
    for (std::size_t at = 0; at < n; ++at) scores[at] = list.scores[item(at)];
    if (labels < 2) return;
    weigh(list.weights);
    bottom = *std::min_element(scores + begin(1), scores + n);
    top = *std::max_element(scores, scores + begin(labels - 1));
  }

  std::size_t item(std::size_t at) const { return index(by_label.order[n - 1 - at]); }
  std::size_t begin(std::size_t label) const { return n - index(by_label.begin[labels - label]); }

  // Write the largest term of each label from the given one on, and the ``log sum exp`` of its terms.
  // Each term is replaced by the ratio of its exponential to the largest of its label. Other labels have no terms.
  void add_up(double* terms, std::size_t from, std::size_t to, double* largest, double* log_sum) const {
    for (std::size_t g = 0; g < labels; ++g) {
      double* own = terms + begin(g);
      const std::size_t count = begin(g + 1) - begin(g);
      largest[g] = log_sum[g] = -kInfinity;
      if (g < from || g >= to) {
        std::fill_n(own, count, 0.0);
        continue;
      }
      largest[g] = *std::max_element(own, own + count);
      log_sum[g] = largest[g] == -kInfinity ? -kInfinity : largest[g] + std::log(exponentiate(own, largest[g], count));
    }
  }

  // Write, for each label, the ``log sum exp`` of the terms of all labels above it, or of all below it.
  void beyond(const double* terms, bool above, double* out) const {
    double running = -kInfinity;
    for (std::size_t step = 0; step < labels; ++step) {
      const std::size_t at = above ? labels - 1 - step : step;
      out[at] = running;
      running = plus(running, terms[at]);
    }
  }

  // The ``log sum exp`` over labels of a term plus its entry from `beyond`: the sum over all pairs.
  double paired(const double* terms, const double* others) const {
    double total = -kInfinity;
    for (std::size_t g = 0; g < labels; ++g) total = plus(total, terms[g] + others[g]);
    return total;
  }

  // Write the slope of each item, from its shares in the two sums of its label, or the curvature: the sum of the sizes
  // of the two parts times the power. `largest_up` and `largest_down` have the logarithms of what a share counts.
  void write_slopes(double slope, double* slopes, bool curvature, double power) const {
    for (std::size_t g = 0; g < labels; ++g) {
      const double push = slope * share(largest_down[g]), pull = slope * share(largest_up[g]);
      for (std::size_t at = begin(g); at < begin(g + 1); ++at) {
        const double pushed = down[at] * push, pulled = up[at] * pull;
        slopes[item(at)] = curvature ? power * (pushed + pulled) : pushed - pulled;
      }
    }
  }

  // Weights are divided by the heaviest if their sums may overflow, and kept above 0.
  void weigh(const double* weights) {
    if (weights != nullptr) {
      const double heaviest = *std::max_element(weights, weights + n);
      if (heaviest >= kLarge) unit = heaviest;
    }
    for (std::size_t g = 0; g < labels; ++g) {
      double total = 0.0;
      for (std::size_t at = begin(g); at < begin(g + 1); ++at) {
        if (weights == nullptr) {
          log_weight[at] = 0.0;
          total += 1.0;
          continue;
        }
        const double weight = unit == 1.0 ? weights[item(at)] : std::max(weights[item(at)] / unit, kLeast);
        log_weight[at] = weight == 1.0 ? 0.0 : std::log(weight);
        total += weight;
      }
      log_weights[g] = std::log(total);
    }
  }
};

}  // namespace

// The mean or sum of exp(-z), which is its own second derivative.
double exponential(const List& list, const Options& options, Workspace& space, bool curvature) {
  Sums x(list, space);
  std::fill_n(list.slopes, list.n, 0.0);
  if (x.labels < 2) return 0.0;
  for (std::size_t at = 0; at < x.n; ++at) {
    x.up[at] = x.log_weight[at] - (x.scores[at] - x.bottom);
    x.down[at] = x.log_weight[at] + (x.scores[at] - x.top);
  }
  x.add_up(x.up, 1, x.labels, x.largest_up, x.log_up);
  x.add_up(x.down, 0, x.labels - 1, x.largest_down, x.log_down);
  x.beyond(x.log_up, true, x.higher);
  x.beyond(x.log_down, false, x.lower);
  const double log_sum = x.paired(x.log_up, x.lower);
  if (log_sum == -kInfinity) return 0.0;
  double log_value = log_sum + (x.top - x.bottom);
  for (std::size_t g = 0; g < x.labels; ++g) {
    x.largest_up[g] += x.lower[g] - log_sum;
    x.largest_down[g] += x.higher[g] - log_sum;
  }
  if (options.mean) {
    x.beyond(x.log_weights, false, x.lower);
    log_value -= x.paired(x.log_weights, x.lower);
  } else {
    log_value += 2.0 * std::log(x.unit);
  }
  const double slope = std::exp(std::min(log_value, std::log(options.largest) - 1.0));
  x.write_slopes(slope, list.slopes, curvature, 1.0);
  return std::exp(log_value);
}

// The mean or sum of powers of inner sums or means of exp(-z). The second derivative is p times the slope for the lower
// item of pairs, and at most p times its size for the upper one.
double exponential_push(const List& list, const Options& options, Workspace& space, bool curvature) {
  Sums x(list, space);
  std::fill_n(list.slopes, list.n, 0.0);
  if (x.labels < 2) return 0.0;
  const double power = options.power;
  for (std::size_t at = 0; at < x.n; ++at) x.up[at] = x.log_weight[at] - (x.scores[at] - x.bottom);
  x.add_up(x.up, 1, x.labels, x.largest_up, x.log_up);
  x.beyond(x.log_up, true, x.higher);
  x.beyond(x.log_weights, true, x.heavier);
  for (std::size_t g = 0; g + 1 < x.labels; ++g) {  // items of the highest label are never the lower one of a pair
    const double rest = x.higher[g] - (options.mean ? x.heavier[g] : 0.0);
    for (std::size_t at = x.begin(g); at < x.begin(g + 1); ++at) {
      x.down[at] = x.log_weight[at] + power * (x.scores[at] - x.top + rest);
    }
  }
  x.add_up(x.down, 0, x.labels - 1, x.largest_down, x.log_down);
  double log_sum = -kInfinity, log_lower = -kInfinity;
  for (std::size_t g = 0; g + 1 < x.labels; ++g) {
    log_sum = plus(log_sum, x.log_down[g]);
    log_lower = plus(log_lower, x.log_weights[g]);
    if (x.log_down[g] > -kInfinity) x.log_down[g] -= x.higher[g];
  }
  if (log_sum == -kInfinity) return 0.0;
  x.beyond(x.log_down, false, x.lower);
  const double log_value =
      log_sum - (options.mean ? log_lower : -(power + 1.0) * std::log(x.unit)) + power * (x.top - x.bottom);
  const double limit = std::log(options.largest) - std::log(power) - 1.0;
  const double slope = power * std::exp(std::min(log_value, limit));
  for (std::size_t g = 0; g < x.labels; ++g) {
    x.largest_up[g] = x.largest_up[g] + x.lower[g] - log_sum;
    x.largest_down[g] -= log_sum;
  }
  x.write_slopes(slope, list.slopes, curvature, power);
  return std::exp(log_value);
}

}  // namespace ltr
