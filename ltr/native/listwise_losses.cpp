// Losses that are sums over items: negative log-likelihoods of labels (logistic), of the top item (ListNet, softmax)
// and of the order of a list (ListMLE).
#include "losses.h"
#include "vector_math.h"

namespace ltr {
namespace {

constexpr double kLeast = std::numeric_limits<double>::min();  // an item of positive weight counts, however little
constexpr double kFar = 1e4;                                   // score of an item of label 1 whose loss is 0

LTR_MULTIVERSION bool binary(const double* labels, std::size_t n) {
  double largest = 0.0;  // of a product that is 0 for labels 0 and 1 only
#pragma omp simd reduction(max : largest)
  for (std::size_t i = 0; i < n; ++i) {
    const double product = labels[i] * (labels[i] - 1.0), size = product > 0.0 ? product : -product;
    largest = size > largest ? size : largest;
  }
  return largest == 0.0;
}

// Of a block of items: write slopes, and multiply products by 1 + e. Exponentials have the precision of Real.
template <class Real>
[[gnu::always_inline]] inline void logistic_block(const double* scores, const double* labels, double* slopes,
                                                  double* products) {
#pragma omp simd
  for (std::size_t lane = 0; lane < kBlock; ++lane) {
    const Real sign = Real{1} - Real{2} * static_cast<Real>(labels[lane]), x = sign * static_cast<Real>(scores[lane]);
    const Real far = exp_of(x > Real{0} ? -x : x), inverse = Real{1} / (Real{1} + far);
    products[lane] += far * (1.0 + products[lane]);
    slopes[lane] = sign * (x > Real{0} ? inverse : far * inverse);
  }
}

// log of the product over a block of 1 + product; the products start anew.
[[gnu::always_inline]] inline double log_of_block(double* products) {
  for (std::size_t half = kBlock / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      products[lane] += products[lane + half] * (1.0 + products[lane]);
    }
  }
  const double log = log_of_one_plus_any(products[0]);
  for (std::size_t lane = 0; lane < kBlock; ++lane) products[lane] = 0.0;
  return log;
}

// Write the slopes of the logistic losses of items with labels 0 and 1, and return the sum of the losses: of what is
// linear in the scores, and of logarithms of 1 + e <= 2, which are taken of products (see `pair_losses.cpp`).
template <class Real>
[[gnu::always_inline]] inline double logistic_of(const double* scores, const double* labels, double* slopes,
                                                 std::size_t items) {
  const std::size_t n = padded(items);
  double products[kBlock] = {}, sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) {  // in a loop of its own: the sum of a block would be added up one by one
    const double x = (1.0 - 2.0 * labels[i]) * scores[i];
    sum += x > 0.0 ? x : 0.0;
  }
  for (std::size_t from = 0; from < n; from += kBlock) {
    logistic_block<Real>(scores + from, labels + from, slopes + from, products);
    if (from / kBlock % 32 == 31) sum += log_of_block(products);
  }
  return sum + log_of_block(products);
}

LTR_MULTIVERSION double logistic_sum(const double* scores, const double* labels, double* slopes, std::size_t n) {
  return logistic_of<double>(scores, labels, slopes, n);
}

LTR_MULTIVERSION double logistic_sum_single(const double* scores, const double* labels, double* slopes, std::size_t n) {
  return logistic_of<float>(scores, labels, slopes, n);
}

// The same for weighted items.
LTR_MULTIVERSION double weighted_logistic_sum(const double* scores, const double* labels, const double* shares,
                                              double* slopes, std::size_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) {
    const double sign = 1.0 - 2.0 * labels[i], x = sign * scores[i], size = x > 0.0 ? x : -x;
    const double far = exp_of(-size), inverse = 1.0 / (1.0 + far);
    sum += shares[i] * ((x > 0.0 ? x : 0.0) + log_of_one_plus(far));
    slopes[i] = shares[i] * (sign * (x > 0.0 ? inverse : far * inverse));
  }
  return sum;
}

[[gnu::always_inline]] inline double largest_term(const double* values, std::size_t n) {
  double largest = -kInfinity;
#pragma omp simd reduction(max : largest)
  for (std::size_t i = 0; i < n; ++i) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

// Replace terms by the ratios of their exponentials to that of the largest, and return the sum of these.
LTR_MULTIVERSION double exponentiate(const double* terms, double largest, double* out, std::size_t n) {
  return ratios(terms, largest, out, n);
}

LTR_MULTIVERSION double largest_of(const double* values, std::size_t n) { return largest_term(values, n); }

// The cross entropy of exponentials of terms of labels and terms of scores, each divided by their sum: the terms are
// the labels and scores themselves or, with weights, their distances from the largest plus the logarithms of weights,
// which were divided by a weight whose logarithm is `log_weight`. Terms are filled up with
// -infinity. Exponentials have the precision of Real.
template <class Real>
[[gnu::always_inline]] inline double entropy(const double* scores, double highest, const double* label_terms,
                                             const double* score_terms, double log_weight, double* shares,
                                             double* slopes, std::size_t items) {
  const std::size_t n = padded(items);
  double best = -kInfinity, largest = -kInfinity;
#pragma omp simd reduction(max : best, largest)
  for (std::size_t i = 0; i < n; ++i) {
    best = label_terms[i] > best ? label_terms[i] : best;
    largest = score_terms[i] > largest ? score_terms[i] : largest;
  }
  double tops = 0.0, drawn = 0.0;
#pragma omp simd reduction(+ : tops, drawn)
  for (std::size_t i = 0; i < n; ++i) {
    const Real top = exp_of(static_cast<Real>(label_terms[i] - best)),
               ratio = exp_of(static_cast<Real>(score_terms[i] - largest));
    shares[i] = top;
    slopes[i] = ratio;
    tops += top;
    drawn += ratio;
  }
  // weighted terms are distances from the highest score, others are the scores
  if (score_terms == scores) highest = largest;
  const double log_sum = (score_terms == scores ? 0.0 : largest) + log_weight + log_of_one_plus_any(drawn - 1.0);
  const double top_unit = 1.0 / tops, drawn_unit = 1.0 / drawn;
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) {
    const double share = shares[i] * top_unit;
    sum += share > 0.0 ? share * (highest - scores[i]) : 0.0;  // where the share is 0 the score may be infinitely far
    slopes[i] = slopes[i] * drawn_unit - share;
  }
  return sum + log_sum;  // the shares add up to 1
}

LTR_MULTIVERSION double cross_entropy(const double* scores, double highest, const double* label_terms,
                                      const double* score_terms, double log_weight, double* shares, double* slopes,
                                      std::size_t n) {
  return entropy<double>(scores, highest, label_terms, score_terms, log_weight, shares, slopes, n);
}

// The same for scores in single precision without weights.
LTR_MULTIVERSION double cross_entropy_single(const double* scores, const double* labels, double* shares, double* slopes,
                                             std::size_t n) {
  return entropy<float>(scores, 0.0, labels, scores, 0.0, shares, slopes, n);
}

// The sum of shares times -log of the exponentials of terms of scores divided by their sum; `sum` is that of the shares
// and, with `mean`, what all is divided by. The terms are those of `entropy`.
LTR_MULTIVERSION double entropy_of_shares(const double* scores, double highest, const double* terms, double log_weight,
                                          const double* shares, double sum, bool mean, double* slopes, std::size_t n) {
  const double largest = terms == scores ? highest : largest_term(terms, n), unit = mean ? 1.0 / sum : 1.0;
  const double drawn = ratios(terms, largest, slopes, n), drawn_unit = sum * unit / drawn;
  const double log_sum = (terms == scores ? 0.0 : largest) + log_weight + log_of_one_plus_any(drawn - 1.0);
  double value = 0.0;
#pragma omp simd reduction(+ : value)
  for (std::size_t i = 0; i < n; ++i) {
    const double share = shares[i] * unit, missing = (highest - scores[i]) + log_sum;
    value += share > 0.0 ? share * missing : 0.0;  // where the share is 0 the score may be infinitely far
    slopes[i] = slopes[i] * drawn_unit - share;
  }
  return value;
}

// Weights divided by the heaviest, which is returned, and their logarithms.
double divided(const List& list, double* shares, double* logs) {
  const double heaviest = *std::max_element(list.weights, list.weights + list.n);
  for (std::size_t i = 0; i < list.n; ++i) {
    shares[i] = std::max(list.weights[i] / heaviest, kLeast);
    if (logs != nullptr) logs[i] = std::log(shares[i]);
  }
  return heaviest;
}

// Multiply a value and its gradient by a weight; beyond the range the gradient keeps its direction.
double scaled(double value, double unit, const List& list, const Options& options) {
  double steepest = 0.0;
  for (std::size_t i = 0; i < list.n; ++i) steepest = std::max(steepest, std::abs(list.slopes[i]));
  const double factor = steepest > 0.0 ? std::min(steepest * unit, 0.5 * options.largest) / steepest : 0.0;
  for (std::size_t i = 0; i < list.n; ++i) list.slopes[i] *= factor;
  return value * unit;
}

double logistic_curvature(const List& list, const Options& options) {
  double total = 0.0;
  for (std::size_t i = 0; i < list.n; ++i) total += list.weights == nullptr ? 1.0 : list.weights[i];
  const double unit = options.mean ? 1.0 / total : 1.0;
  for (std::size_t i = 0; i < list.n; ++i) {
    const double far = exp_of(-std::abs(list.scores[i])), inverse = 1.0 / (1.0 + far);
    list.slopes[i] = far * inverse * inverse * ((list.weights == nullptr ? 1.0 : list.weights[i]) * unit);
  }
  return 0.0;
}

// With Q the probabilities of the scores, write `total` times the second derivatives, which are Q (1 - Q).
double drawn_curvature(const List& list, double total, Workspace& space) {
  const std::size_t n = list.n;
  if (n == 0) return 0.0;
  double* terms = space.take(n);
  const double highest = largest_of(list.scores, n);
  for (std::size_t i = 0; i < n; ++i) {
    terms[i] = (list.scores[i] - highest) + (list.weights == nullptr ? 0.0 : std::log(list.weights[i]));
  }
  const double drawn = exponentiate(terms, largest_of(terms, n), list.slopes, n);
  for (std::size_t i = 0; i < n; ++i) {
    const double share = list.slopes[i] / drawn;
    list.slopes[i] = total * (share * (1.0 - share));
  }
  return 0.0;
}

double softmax_curvature(const List& list, const Options& options, Workspace& space) {
  double total = 0.0;
  for (std::size_t i = 0; i < list.n; ++i) {
    total += list.labels[i] * (list.weights == nullptr ? 1.0 : list.weights[i]);
  }
  return drawn_curvature(list, options.mean && total > 0.0 ? 1.0 : total, space);
}

}  // namespace

// The mean or sum of log(1 + exp(-s)) over items of label 1 and log(1 + exp(s)) over items of label 0.
double logistic(const List& list, const Options& options, Workspace& space, bool curvature) {
  const std::size_t n = list.n;
  if (curvature) return logistic_curvature(list, options);
  if (!binary(list.labels, n)) return kRefused;
  if (n == 0) return 0.0;
  if (list.weights == nullptr) {
    pad(list.scores, n, kFar);
    pad(list.labels, n, 1.0);
    double value = options.single ? logistic_sum_single(list.scores, list.labels, list.slopes, n)
                                  : logistic_sum(list.scores, list.labels, list.slopes, n);
    if (options.mean) {
      const double unit = 1.0 / static_cast<double>(n);
      for (std::size_t i = 0; i < n; ++i) list.slopes[i] *= unit;
      value *= unit;
    }
    return value;
  }
  double* shares = space.take(n);
  const double heaviest = divided(list, shares, nullptr);
  if (options.mean) {
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) total += shares[i];
    for (std::size_t i = 0; i < n; ++i) shares[i] /= total;
  }
  const double value = weighted_logistic_sum(list.scores, list.labels, shares, list.slopes, n);
  return options.mean ? value : scaled(value, heaviest, list, options);
}

// The cross entropy of w exp(label / temperature) and w exp(score), each divided by its sum, where the weight of an
// item is left out of the logarithm: sum over i of P_i (log sum of w exp(s) - s_i). The logarithm of the largest
// weighted exponential is added to distances from the highest score and not to scores, beside which it could be lost.
double list_net(const List& list, const Options& options, Workspace& space, bool curvature) {
  const std::size_t n = list.n;
  if (curvature) return drawn_curvature(list, 1.0, space);
  if (n == 0) return 0.0;
  double* shares = space.take(n);
  if (options.temperature != 1.0) {
    const double best = largest_of(list.labels, n);
    for (std::size_t i = 0; i < n; ++i) list.labels[i] = (list.labels[i] - best) / options.temperature;
  }
  pad(list.scores, n, -kInfinity);
  pad(list.labels, n, -kInfinity);
  if (list.weights == nullptr) {
    return options.single ? cross_entropy_single(list.scores, list.labels, shares, list.slopes, n)
                          : cross_entropy(list.scores, 0.0, list.labels, list.scores, 0.0, shares, list.slopes, n);
  }
  const double highest = largest_of(list.scores, n);
  double *logs = space.take(n), *labels = space.take(n), *scores = space.take(n);
  const double heaviest = divided(list, shares, logs), best = largest_of(list.labels, n);
  for (std::size_t i = 0; i < n; ++i) {
    labels[i] = (list.labels[i] - best) + logs[i];
    scores[i] = (list.scores[i] - highest) + logs[i];
  }
  pad(labels, n, -kInfinity);
  pad(scores, n, -kInfinity);
  return cross_entropy(list.scores, highest, labels, scores, std::log(heaviest), shares, list.slopes, n);
}

// The mean or sum of -log Q_i over the items, each as often as its label and weight say, with Q the probabilities of
// the scores. Labels and weights are divided by the largest of the list before they are added up.
double softmax(const List& list, const Options& options, Workspace& space, bool curvature) {
  if (curvature) return softmax_curvature(list, options, space);
  const std::size_t n = list.n;
  const double best = n == 0 ? 0.0 : largest_of(list.labels, n);
  if (best == 0.0) {
    std::fill_n(list.slopes, n, 0.0);
    return 0.0;
  }
  double *shares = space.take(n), *logs = space.take(n), *terms = space.take(n);
  const double highest = largest_of(list.scores, n),
               heaviest = list.weights == nullptr ? 1.0 : divided(list, shares, logs);
  double sum = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    shares[i] = list.weights == nullptr ? list.labels[i] / best : shares[i] * (list.labels[i] / best);
    sum += shares[i];
    if (list.weights != nullptr) terms[i] = (list.scores[i] - highest) + logs[i];
  }
  const double value = entropy_of_shares(list.scores, highest, list.weights == nullptr ? list.scores : terms,
                                         std::log(heaviest), shares, sum, options.mean, list.slopes, n);
  return options.mean ? value : scaled(scaled(value, heaviest, list, options), best, list, options);
}

// The mean or sum, over the items i that have one of a lower label, of ``log sum of w exp(s) - s_i``, the sum over all
// items whose label is not above that of i.
//
// With the labels numbered upwards, let L_g be the logarithm of the sum up to label g and W_g the total weight of the
// items of label g, 0 for the lowest. The slope of an item k of label g is then
//
//     w_k exp(s_k - L_g) R_g - w_k [g > 0],   R_g = W_g + R_{g+1} exp(L_g - L_{g+1}),
//
// where all exponents are negative. The second derivative, the sum of q (1 - q) over the draws in which k may come with
// a probability of q, is ``w_k exp(s_k - L_g) R_g - (w_k exp(s_k - L_g))^2 T_g`` with
// ``T_g = W_g + T_{g+1} exp(2 (L_g - L_{g+1}))``. L_g is kept as the highest score so far plus the logarithm of the sum
// of exponentials of distances from it.
double list_mle(const List& list, const Options& options, Workspace& space, bool curvature) {
  const std::size_t n = list.n;
  const ByLabel by_label = sort_by_label(list.labels, n, space);
  const std::size_t labels = by_label.labels();
  if (labels < 2) {
    std::fill_n(list.slopes, n, 0.0);
    return 0.0;
  }
  double *shares = space.take(n), *logs = space.take(n), *scores = space.take(n), *terms = space.take(n);
  double heaviest = 1.0;
  if (list.weights == nullptr) {
    std::fill_n(shares, n, 1.0);
  } else {
    heaviest = divided(list, terms, nullptr);
    for (std::size_t at = 0; at < n; ++at) shares[at] = terms[by_label.order[at]];
  }
  for (std::size_t at = 0; at < n; ++at) {
    scores[at] = list.scores[by_label.order[at]];
    logs[at] = list.weights == nullptr ? 0.0 : std::log(shares[at]);
  }
  double *highest = space.take(labels), *rest = space.take(labels), *weights = space.take(labels);
  const auto begin = [&](std::size_t label) { return index(by_label.begin[label]); };
  // labels are numbered downwards here: the last is the lowest
  double value = 0.0, counted = 0.0, far = -kInfinity, log_rest = -kInfinity;
  for (std::size_t label = labels; label-- > 0;) {
    const std::size_t from = begin(label), count = begin(label + 1) - from;
    const double own = largest_of(scores + from, count), top = std::max(far, own);
    for (std::size_t at = from; at < from + count; ++at) terms[at] = (scores[at] - top) + logs[at];
    const double before = far == -kInfinity ? -kInfinity : (far - top) + log_rest;
    const double largest = std::max(before, largest_of(terms + from, count));
    double sum = exponentiate(terms + from, largest, terms + from, count);
    if (before > -kInfinity) sum += std::exp(before - largest);
    log_rest = largest + std::log(sum);
    far = top;
    highest[label] = top;
    rest[label] = log_rest;
    weights[label] = 0.0;
    if (label + 1 == labels) continue;
    const double excess = log_rest + (list.weights == nullptr ? 0.0 : std::log(heaviest));
    for (std::size_t at = from; at < from + count; ++at) {
      value += shares[at] * ((top - scores[at]) + excess);
      weights[label] += shares[at];
    }
    counted += weights[label];
  }
  double running = 0.0, squared = 0.0;
  for (std::size_t label = 0; label < labels; ++label) {
    if (label > 0) {
      const double ratio = exp_of((highest[label] - highest[label - 1]) + (rest[label] - rest[label - 1]));
      running *= ratio;
      squared *= ratio * ratio;
    }
    running += weights[label];
    squared += weights[label];
    const std::size_t from = begin(label), count = begin(label + 1) - from;
    for (std::size_t at = from; at < from + count; ++at) {
      terms[at] = (scores[at] - highest[label]) + logs[at];
    }
    exponentiate(terms + from, rest[label], terms + from, count);
    for (std::size_t at = from; at < from + count; ++at) {
      const double drawn = curvature ? terms[at] * terms[at] * squared : label + 1 < labels ? shares[at] : 0.0;
      list.slopes[by_label.order[at]] = terms[at] * running - drawn;
    }
  }
  if (!options.mean) return scaled(value, heaviest, list, options);
  for (std::size_t i = 0; i < n; ++i) list.slopes[i] /= counted;
  return value / counted;
}

}  // namespace ltr
