// Losses made from a rank statistic: LambdaLoss, and the shortfall of a statistic with smooth positions.
#include "losses.h"
#include "vector_math.h"

namespace ltr {
namespace {

constexpr double kLarge = 0x1p512;  // larger ideal values are divided by it, so that no sum over pairs overflows

// The gains of the items of a list, the weights of its positions, and what a value is divided by.
struct Statistic {
  double *gains, *weights;
  double ideal = 0.0, divisor = 1.0;
  bool zero = false, refused = false;  // the value is 0, or the inputs must be looked at in Python
};

Statistic statistic_of(const List& list, const Options& options, Workspace& space) {
  const std::size_t n = list.n;
  Statistic x{space.take(n), space.take(n)};
  const ByLabel by_label = sort_by_label(list.labels, n, space);
  for (std::size_t i = 0; i < n; ++i) {
    const double label = list.labels[i];
    x.gains[i] = options.hits ? static_cast<double>(label > 0.0) : options.exp2 ? std::exp2(label) - 1.0 : label;
  }
  const std::size_t longest = options.rank_weights.size();
  for (std::size_t position = 0; position < n; ++position) {
    const std::size_t rank = (options.by_rank ? n : longest) - position;
    const bool counts = static_cast<std::int64_t>(position) < options.cutoff;
    x.weights[position] = counts ? options.rank_weights[rank - 1] : 0.0;
    x.ideal += x.gains[index(by_label.order[position])] * x.weights[position];
  }
  if (options.mean && x.ideal > kLarge && x.ideal < kInfinity) {
    for (std::size_t i = 0; i < n; ++i) x.gains[i] /= kLarge;
    x.ideal /= kLarge;
  }
  double whole = by_label.labels() < 2 ? 0.0 : x.ideal;
  if (options.share_of_pairs) {
    double positives = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      positives += list.labels[i];
      x.refused |= list.labels[i] != 0.0 && list.labels[i] != 1.0;
    }
    whole = positives * (static_cast<double>(n) - positives);
  }
  x.refused |= !(x.ideal < kInfinity);
  x.zero = !(whole > 0.0);
  x.divisor = options.mean ? whole : 1.0;
  return x;
}

// The items of a list in the order of a pass, which goes through the items behind each of them.
struct Items {
  std::size_t n;
  const double *scores, *gains, *weights;
  Exponentials e;
  double temperature;
  double* slopes;
};

struct Row {
  double value = 0.0, slope = 0.0;
};

// Sums over the items k below one item, in the order of the scores: of swap changes times logistic losses. Whichever of
// the two has the larger gain should be above; the loss of a pair may be infinite although swapping changes nothing.
template <class Exponential>
[[gnu::always_inline]] inline Row lambda_row(const Items& x, std::size_t at, Exponential exponential) {
  const double score = x.scores[at], gain = x.gains[at], weight = x.weights[at];
  const double *scores = x.scores + at + 1, *gains = x.gains + at + 1, *weights = x.weights + at + 1;
  double *slopes = x.slopes + at + 1, value = 0.0, slope = 0.0;
#pragma omp simd reduction(+ : value, slope)
  for (std::size_t k = 0; k < x.n - at - 1; ++k) {
    const double more = gain - gains[k], distance = score - scores[k], e = exponential(k);
    const double change = (more > 0.0 ? more : -more) * (weight - weights[k]), inverse = 1.0 / (1.0 + e);
    const double linear = more < 0.0 && change > 0.0 ? distance : 0.0;
    value += change * log_of_one_plus(e) + change * linear;
    const double step = change * (more < 0.0 ? inverse : -e * inverse);  // of the item above
    slope += step;
    slopes[k] -= step;
  }
  return {value, slope};
}

// The sum over the items k below one item of swap changes times second derivatives of logistic losses.
template <class Exponential>
[[gnu::always_inline]] inline Row lambda_curvature_row(const Items& x, std::size_t at, Exponential exponential) {
  const double gain = x.gains[at], weight = x.weights[at];
  const double *gains = x.gains + at + 1, *weights = x.weights + at + 1;
  double *curvatures = x.slopes + at + 1, sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < x.n - at - 1; ++k) {
    const double more = gain - gains[k], e = exponential(k), inverse = 1.0 / (1.0 + e);
    const double own = (more > 0.0 ? more : -more) * (weight - weights[k]) * (e * inverse * inverse);
    sum += own;
    curvatures[k] += own;
  }
  return {0.0, sum};
}

LTR_MULTIVERSION Row lambda_sums(const Items& x, std::size_t at, bool curvature) {
  const double score = x.scores[at], *scores = x.scores + at + 1;
  const auto far = [=](std::size_t k) { return exp_of(scores[k] - score); };
  if (!x.e.close) return curvature ? lambda_curvature_row(x, at, far) : lambda_row(x, at, far);
  const double down = x.e.down[at], *ups = x.e.up + at + 1;
  if (curvature) return lambda_curvature_row(x, at, [=](std::size_t k) { return down * ups[k]; });
  return lambda_row(x, at, [=](std::size_t k) {
    const double e = down * ups[k];
    return e < 1.0 ? e : 1.0;
  });
}

// A sigmoid of the difference of an item from the k-th behind it, and its slope.
struct Sigmoid {
  double value, slope;
};

[[gnu::always_inline]] inline Sigmoid close_sigmoid(const Items& x, std::size_t at, std::size_t k) {
  const double e = x.e.down[at] * x.e.up[at + 1 + k], inverse = 1.0 / (1.0 + e);
  return {e / (1.0 + e), e * inverse * inverse};
}

[[gnu::always_inline]] inline Sigmoid far_sigmoid(const Items& x, std::size_t at, std::size_t k) {
  const double z = (x.scores[at + 1 + k] - x.scores[at]) / x.temperature, far = exp_of(z > 0.0 ? -z : z);
  const double inverse = 1.0 / (1.0 + far);
  return {z > 0.0 ? inverse : far * inverse, far * inverse * inverse};
}

// Add sigmoids of differences of one item from the following ones to the positions of all.
template <Sigmoid sigmoid_of(const Items&, std::size_t, std::size_t)>
[[gnu::always_inline]] inline double position_row(const Items x, std::size_t at, double* positions) {
  double own = 0.0;
#pragma omp simd reduction(+ : own)
  for (std::size_t k = 0; k < x.n - at - 1; ++k) {
    const double above = sigmoid_of(x, at, k).value;  // to what degree k is above the item
    own += above;
    positions[at + 1 + k] += 1.0 - above;
  }
  return own;
}

LTR_MULTIVERSION double position_sum(const Items& x, std::size_t at, double* positions) {
  return x.e.close ? position_row<close_sigmoid>(x, at, positions) : position_row<far_sigmoid>(x, at, positions);
}

// Add slopes of sigmoids times differences of factors or, with a sign of 1, their sums.
template <Sigmoid sigmoid_of(const Items&, std::size_t, std::size_t)>
[[gnu::always_inline]] inline double slope_row(const Items x, std::size_t at, const double* factors, double sign) {
  double own = 0.0;
#pragma omp simd reduction(+ : own)
  for (std::size_t k = 0; k < x.n - at - 1; ++k) {
    const double step = (factors[at + 1 + k] + sign * factors[at]) * sigmoid_of(x, at, k).slope;
    own += step;
    x.slopes[at + 1 + k] += sign * step;
  }
  return own;
}

LTR_MULTIVERSION double slope_sum(const Items& x, std::size_t at, const double* factors, double sign) {
  return x.e.close ? slope_row<close_sigmoid>(x, at, factors, sign) : slope_row<far_sigmoid>(x, at, factors, sign);
}

}  // namespace

// The sum over pairs with label_i > label_k of D_ik log(1 + exp(-(s_i - s_k))) with D_ik the change of the statistic if
// the two swapped places. Items are sorted by score, so that weights fall along the list. Two items that both are below
// the last position with a weight change nothing: only pairs with one item above it are visited.
//
// The changes D_ik are constants in the slopes and in the second derivatives.
double lambda(const List& list, const Options& options, Workspace& space, bool curvature) {
  const std::size_t n = list.n;
  std::fill_n(list.slopes, n, 0.0);
  if (n == 0) return 0.0;
  const Statistic x = statistic_of(list, options, space);
  if (x.refused) return kRefused;
  if (x.zero) return 0.0;
  auto& order = space.integers(2, n);
  for (std::size_t i = 0; i < n; ++i) order[i] = static_cast<std::int32_t>(i);
  // of two items with the same score the one with the smaller label is above, then the first
  std::sort(order.begin(), order.begin() + n, [&list](std::int32_t i, std::int32_t k) {
    if (list.scores[i] != list.scores[k]) return list.scores[i] > list.scores[k];
    return list.labels[i] != list.labels[k] ? list.labels[i] < list.labels[k] : i < k;
  });
  double *scores = space.take(n), *gains = space.take(n), *slopes = space.take(n);
  for (std::size_t at = 0; at < n; ++at) {
    scores[at] = list.scores[order[at]];
    gains[at] = x.gains[order[at]];
    slopes[at] = 0.0;
  }
  const Items items{n, scores, gains, x.weights, exponentials(scores, n, 1.0, space), 1.0, slopes};
  double value = 0.0;
  for (std::size_t at = 0; at + 1 < n && x.weights[at] > 0.0; ++at) {
    const Row row = lambda_sums(items, at, curvature);
    value += row.value;
    slopes[at] += row.slope;
  }
  for (std::size_t at = 0; at < n; ++at) list.slopes[order[at]] = slopes[at] / x.divisor;
  return value / x.divisor;
}

// The ideal value minus the sum of gain_i A(p_i), with A the weights by position, interpolated linearly, and p_i the
// sum over the others of sigmoid((s_k - s_i) / temperature). With c_i = -gain_i A'(p_i), the slope of item i is the sum
// over k of sigmoid' (c_k - c_i) / temperature; the same pair counts for k with the opposite sign.
//
// Where A is linear the second derivative is the sum of sigmoid'' (c_k - c_i) / temperature^2. As |sigmoid''| is at
// most sigmoid' and the c are not negative, it is at most the sum of sigmoid' (c_k + c_i) / temperature^2.
double smooth(const List& list, const Options& options, Workspace& space, bool curvature) {
  const std::size_t n = list.n;
  std::fill_n(list.slopes, n, 0.0);
  if (n == 0) return 0.0;
  const Statistic x = statistic_of(list, options, space);
  if (x.refused) return kRefused;
  if (x.zero) return 0.0;
  double *positions = space.take(n), *factors = space.take(n), *slopes = space.take(n);
  const Items items{n,
                    list.scores,
                    x.gains,
                    x.weights,
                    exponentials(list.scores, n, 1.0 / options.temperature, space),
                    options.temperature,
                    slopes};
  std::fill_n(positions, n, 0.0);
  for (std::size_t i = 0; i + 1 < n; ++i) positions[i] += position_sum(items, i, positions);
  double value = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double position = std::min(positions[i], static_cast<double>(n - 1));
    const auto whole = index(position);
    const double here = x.weights[whole], following = x.weights[std::min(whole + 1, n - 1)];
    value += x.gains[i] * (here + (position - static_cast<double>(whole)) * (following - here));
    factors[i] = x.gains[i] * (here - following);
  }
  const double sign = curvature ? 1.0 : -1.0;
  std::fill_n(slopes, n, 0.0);
  for (std::size_t i = 0; i + 1 < n; ++i) slopes[i] += slope_sum(items, i, factors, sign);
  for (std::size_t i = 0; i < n; ++i) {
    list.slopes[i] = slopes[i] / x.divisor / options.temperature;
    if (curvature) list.slopes[i] /= options.temperature;
  }
  return (x.ideal - value) / x.divisor;
}

}  // namespace ltr
