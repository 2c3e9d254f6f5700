// Losses of the pairs of a list, pair by pair: RankNet, hinge, squared hinge, and the P-norm push of logistic losses.
//
// Items are sorted by label, highest first. A pass over the pairs goes through the items i and, for each, through all
// items k of a lower label, which follow each other in memory. Where no weights are given, the logarithms of a logistic
// loss are not taken pair by pair: sum over i of log(1 + e_ik) = log(1 + q_k) with q_k = product over i of (1 + e_ik)
// - 1. The update q <- q + e (1 + q) has positive terms only and so keeps the relative precision of q, however small
// the e are; with e <= 1, q stays within the range for 1,000 factors.
#include "losses.h"
#include "vector_math.h"

namespace ltr {
namespace {

constexpr double kClose = 64.0;
constexpr std::size_t kVector = 8;     // numbers that short loops take at a time
constexpr std::size_t kFactors = 960;  // of a product of terms 1 + e <= 2
constexpr double kMax = std::numeric_limits<double>::max();
constexpr double kLargestRoot = 0x1.fffffffffffffp511;  // its square is within the range

LTR_MULTIVERSION void exponentiate(const double* scores, double middle, double unit, double* up, double* down,
                                   std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    up[i] = exp_of((scores[i] - middle) * unit);
    down[i] = exp_of((middle - scores[i]) * unit);
  }
}

// --- the mean or sum over pairs ------------------------------------------------------------------------------------

// Sums over the lower items k of one item i: of share * value, of share * slope; each k gets its part of the slope. Of
// curvatures there are no values, and i and k have the same sign.
struct Row {
  double value = 0.0, slope = 0.0;
};

// The loss of a pair whose scores differ by z, and its derivatives.
struct Terms {
  double value, slope, curvature;
};

template <Terms terms_of(double), bool curvature>
[[gnu::always_inline]] inline Row over_row(const Sorted& x, std::size_t i, std::size_t to) {
  const double score = x.scores[i], share = x.shares[i], *scores = x.scores + to, *shares = x.shares + to;
  double *slopes = x.slopes + to, value = 0.0, slope = 0.0;
#pragma omp simd reduction(+ : value, slope)
  for (std::size_t k = 0; k < x.n - to; ++k) {
    const Terms terms = terms_of(score - scores[k]);
    if constexpr (!curvature) value += shares[k] * terms.value;
    const double step = shares[k] * (curvature ? terms.curvature : terms.slope);
    slope += step;
    slopes[k] += curvature ? share * step : -(share * step);
  }
  return {value, slope};
}

// A hinge is straight but for its kink: its pairs of a loss above 0 count as curvature 1, the size of their slopes. The
// Newton step of any set of items is then their balance of pairs to win, at most 1, which is the margin of the hinge.
[[gnu::always_inline]] inline Terms hinge_terms(double z) {
  const double missing = 1.0 - z;
  return {missing > 0.0 ? missing : 0.0, missing > 0.0 ? -1.0 : 0.0, z < 1.0 ? 1.0 : 0.0};
}

// The slope stops growing where the square leaves the range.
[[gnu::always_inline]] inline Terms squared_hinge_terms(double z) {
  const double missing = 1.0 - z > 0.0 ? 1.0 - z : 0.0;
  return {missing * missing, -2.0 * (missing < kLargestRoot ? missing : kLargestRoot), z < 1.0 ? 2.0 : 0.0};
}

[[gnu::always_inline]] inline Terms logistic_terms(double z) {
  const double size = z > 0.0 ? z : -z, far = exp_of(-size), inverse = 1.0 / (1.0 + far);
  const double slope = z > 0.0 ? -far * inverse : -inverse;
  return {log_of_one_plus(far) + (z > 0.0 ? 0.0 : size), slope, far * inverse * inverse};
}

// The sums of item i, whose lower items begin at `to`.
using RowOf = Row(const Sorted& x, std::size_t i, std::size_t to, bool curvature);

LTR_MULTIVERSION Row hinge_row(const Sorted& x, std::size_t i, std::size_t to, bool curvature) {
  return curvature ? over_row<hinge_terms, true>(x, i, to) : over_row<hinge_terms, false>(x, i, to);
}

LTR_MULTIVERSION Row squared_hinge_row(const Sorted& x, std::size_t i, std::size_t to, bool curvature) {
  return curvature ? over_row<squared_hinge_terms, true>(x, i, to) : over_row<squared_hinge_terms, false>(x, i, to);
}

LTR_MULTIVERSION Row logistic_row(const Sorted& x, std::size_t i, std::size_t to, bool curvature) {
  return curvature ? over_row<logistic_terms, true>(x, i, to) : over_row<logistic_terms, false>(x, i, to);
}

double over_pairs(const List& list, const Options& options, Workspace& space, bool curvature, RowOf row_of) {
  const Sorted x = sorted(list, space);
  double total = 0.0, pairs = 0.0, below = 0.0;  // the share of the items below a label
  for (std::size_t label = x.by_label.labels(); label-- > 0;) {
    const std::size_t from = x.begin(label), to = x.begin(label + 1);
    double own = 0.0;
    for (std::size_t i = from; i < to; ++i) {
      own += x.shares[i];
      if (to == x.n) continue;
      const Row row = row_of(x, i, to, curvature);
      total += x.shares[i] * row.value;
      x.slopes[i] += x.shares[i] * row.slope;
    }
    pairs += own * below;
    below += own;
  }
  return finished(x, total, pairs, list, options);
}

// --- logistic losses of close scores without weights ----------------------------------------------------------------

// Whether a list has no weights, and scores whose exponentials are products.
bool is_product(const List& list) {
  if (list.weights != nullptr || list.n == 0) return false;
  const auto [low, high] = std::minmax_element(list.scores, list.scores + list.n);
  return *high - *low <= kClose;
}

// Call a function with every item that is above others, and with the first of those; return the number of pairs.
template <class Work>
double over_upper_items(const Sorted& x, Work work) {
  double pairs = 0.0;
  for (std::size_t label = 0; label + 1 < x.by_label.labels(); ++label) {
    const std::size_t from = x.begin(label), to = x.begin(label + 1);
    for (std::size_t i = from; i < to; ++i) work(i, to);
    pairs += static_cast<double>(to - from) * static_cast<double>(x.n - to);
  }
  return pairs;
}

// Sums for the lower items k of one item i, with exponentials around a middle: of products q, of the parts of the
// values that are linear in z, and of the slopes; all but the last are kept for each k.
LTR_MULTIVERSION double close_logistic_row(double score, double up, double down, const double* scores,
                                           const double* ups, const double* downs, double* products, double* linear,
                                           double* slopes, std::size_t n) {
  double slope = 0.0;
#pragma omp simd reduction(+ : slope)
  for (std::size_t k = 0; k < n; ++k) {
    const double e = down * ups[k], inverse = up * downs[k], z = scores[k] - score;
    const double far = e < inverse ? e : inverse, step = e / (1.0 + e);
    products[k] += far * (1.0 + products[k]);
    linear[k] += z > 0.0 ? z : 0.0;
    slopes[k] += step;
    slope += step;
  }
  return -slope;
}

// Add log(1 + q) to the linear parts and start the products anew.
LTR_MULTIVERSION void take_logarithms(double* products, double* linear, std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) {
    linear[k] += log_of_one_plus_any(products[k]);
    products[k] = 0.0;
  }
}

// Write the sum of the logistic losses of each item with those of higher labels, and add the slopes; return the number
// of pairs.
double add_up_close(const Sorted& x, const Exponentials& e, double* sums, Workspace& space) {
  double* products = space.take(x.n);
  std::fill_n(products, x.n, 0.0);
  std::fill_n(sums, x.n, 0.0);
  std::size_t factors = 0;
  const double pairs = over_upper_items(x, [&](std::size_t i, std::size_t to) {
    if (++factors > kFactors) {
      take_logarithms(products, sums, x.n);
      factors = 1;
    }
    x.slopes[i] += close_logistic_row(x.scores[i], e.up[i], e.down[i], x.scores + to, e.up + to, e.down + to,
                                      products + to, sums + to, x.slopes + to, x.n - to);
  });
  take_logarithms(products, sums, x.n);
  return pairs;
}

struct Derivatives {
  double slope = 0.0, curvature = 0.0;
};

// Add both derivatives of the pairs of one item i to those of its lower items, and return their sums. Whole vectors are
// worked on: what comes behind the last item adds nothing.
LTR_MULTIVERSION Derivatives close_logistic_derivatives(double down, const double* ups, double* slopes,
                                                        double* curvatures, std::size_t n) {
  double slope[kVector] = {}, curvature[kVector] = {};
  for (std::size_t from = 0; from < n; from += kVector) {
#pragma omp simd
    for (std::size_t at = 0; at < kVector; ++at) {
      const std::size_t k = from + at;
      const double e = down * ups[k], inverse = 1.0 / (1.0 + e), step = e * inverse, own = step * inverse;
      slopes[k] += step;
      curvatures[k] += own;
      slope[at] += step;
      curvature[at] += own;
    }
  }
  Derivatives sum;
  for (std::size_t at = 0; at < kVector; ++at) {
    sum.slope += slope[at];
    sum.curvature += curvature[at];
  }
  return sum;
}

}  // namespace

Exponentials exponentials(double* scores, std::size_t n, double unit, Workspace& space) {
  const auto [low, high] = std::minmax_element(scores, scores + n);
  Exponentials e{space.take(n + kVector), space.take(n), unit < kInfinity && (*high - *low) * unit <= kClose};
  if (!e.close) return e;
  exponentiate(scores, *low + 0.5 * (*high - *low), unit, e.up, e.down, pad(scores, n, *low));
  std::fill(e.up + n, e.up + padded(n + kVector), 0.0);
  return e;
}

double hinge(const List& list, const Options& options, Workspace& space, bool curvature) {
  return over_pairs(list, options, space, curvature, hinge_row);
}

double squared_hinge(const List& list, const Options& options, Workspace& space, bool curvature) {
  return over_pairs(list, options, space, curvature, squared_hinge_row);
}

double ranknet(const List& list, const Options& options, Workspace& space, bool) {
  if (!is_product(list)) return over_pairs(list, options, space, false, logistic_row);
  const Sorted x = sorted(list, space);
  const Exponentials e = exponentials(x.scores, x.n, 1.0, space);
  double *sums = space.take(x.n), total = 0.0;
  const double pairs = add_up_close(x, e, sums, space);
  for (std::size_t k = 0; k < x.n; ++k) total += sums[k];
  return finished(x, total, pairs, list, options);
}

double ranknet_derivatives_by_pairs(const List& list, const Options& options, Workspace& space) {
  List other = list;
  other.slopes = list.curvatures;
  if (!is_product(list)) {
    over_pairs(list, options, space, false, logistic_row);
    space.reset(list.n);
    over_pairs(other, options, space, true, logistic_row);
    return 0.0;
  }
  Sorted x = sorted(list, space), second = x;
  const Exponentials e = exponentials(x.scores, x.n, 1.0, space);
  for (Sorted* one : {&x, &second}) {
    one->slopes = space.take(x.n + kVector);
    std::fill_n(one->slopes, x.n + kVector, 0.0);
  }
  const double pairs = over_upper_items(x, [&](std::size_t i, std::size_t to) {
    const Derivatives own =
        close_logistic_derivatives(e.down[i], e.up + to, x.slopes + to, second.slopes + to, x.n - to);
    x.slopes[i] -= own.slope;
    second.slopes[i] += own.curvature;
  });
  finished(x, 0.0, pairs, list, options);
  finished(second, 0.0, pairs, other, options);
  return 0.0;
}

// --- the P-norm push -------------------------------------------------------------------------------------------------

namespace {

double finite(double x) { return std::clamp(x, -kMax, kMax); }

// The unit of the losses of an item's pairs, which is about the largest of them, so that no sum leaves the range. Where
// even the largest is exp(-z) to the last digit, losses are exp(-z - shift); otherwise they are multiplied by `scale`.
struct Unit {
  double shift = 0.0, scale = 1.0;

  explicit Unit(double least) {  // the least difference
    if (least > 40.0) {
      shift = -least;
    } else {
      const double largest = least > 0.0 ? std::log1p(std::exp(-least)) : std::log1p(std::exp(least)) - least;
      scale = 1.0 / std::min(largest, 1e300);
    }
  }
  double log() const { return shift - std::log(scale); }
};

// The sum over the upper items of an item of what `term_of` says of each and their difference.
template <class Term>
[[gnu::always_inline]] inline double over_upper(const double* scores, double score, std::size_t n, Term term_of) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < n; ++i) sum += term_of(i, scores[i] - score);
  return sum;
}

// The sum of share * loss over the upper items of an item, in its unit. Differences beyond the range are taken as its
// end, as in the shift.
LTR_MULTIVERSION double loss_sum(const double* scores, const double* shares, std::size_t n, double score, Unit unit) {
  const double most = kMax, shift = unit.shift, scale = unit.scale;
  if (shift != 0.0) {
    return over_upper(scores, score, n, [=](std::size_t i, double z) {
      const double bounded = z < most ? z : most;
      return shares[i] * exp_of(-bounded - shift);
    });
  }
  return over_upper(scores, score, n, [=](std::size_t i, double z) {
    const double size = z > 0.0 ? z : -z, bounded = size < most ? size : most;
    const double value = log_of_one_plus(exp_of(-size)) + (z > 0.0 ? 0.0 : bounded);
    return shares[i] * (value * scale);
  });
}

// Add the sizes of the slopes of this sum, times a factor, to those of the upper items; return their sum.
LTR_MULTIVERSION double slope_sum(const double* scores, const double* shares, std::size_t n, double score, Unit unit,
                                  double factor, double* slopes) {
  const double most = kMax, shift = unit.shift, scaled = factor * unit.scale;
  if (shift != 0.0) {
    return over_upper(scores, score, n, [=](std::size_t i, double z) {
      const double bounded = z < most ? z : most, step = factor * (shares[i] * exp_of(-bounded - shift));
      slopes[i] += step;
      return step;
    });
  }
  return over_upper(scores, score, n, [=](std::size_t i, double z) {
    const double size = z > 0.0 ? z : -z, far = exp_of(-size), inverse = 1.0 / (1.0 + far);
    const double step = scaled * (shares[i] * (z > 0.0 ? far * inverse : inverse));
    slopes[i] += step;
    return step;
  });
}

// Add the slopes of the lower items k of one item i, times a factor of each k; return their sum, the size of i's own.
LTR_MULTIVERSION double close_slopes(double down, const double* ups, const double* factors, double* slopes,
                                     std::size_t n) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t k = 0; k < n; ++k) {
    const double e = down * ups[k], step = factors[k] * (e / (1.0 + e));
    slopes[k] += step;
    sum += step;
  }
  return sum;
}

}  // namespace

// The mean or sum over k of (inner sum or mean of log(1 + exp(-z)) over the upper items)^p, in logarithms.
//
// An item is pulled up by its pairs as the upper one and pushed down by those as the lower one. Its slope is the
// difference of the two. Because -l' <= l and l'' <= -l' for l = log(1 + exp(-z)), its second derivative is at most p
// times their sum.
double logistic_push(const List& list, const Options& options, Workspace& space, bool curvature) {
  const Sorted x = sorted(list, space);
  std::fill_n(list.slopes, list.n, 0.0);
  const std::size_t labels = x.by_label.labels();
  if (labels < 2) return 0.0;
  const double power = options.power;
  const std::size_t first = x.begin(1);  // items from here on are below others
  const Exponentials e = exponentials(x.scores, x.n, 1.0, space);
  const bool close = e.close && !x.weighted;  // inner sums come from products
  double *sums = space.take(x.n), *inner = space.take(x.n), *least = space.take(x.n), *pulls = space.take(x.n);
  if (close) {
    add_up_close(x, e, sums, space);
    std::fill_n(x.slopes, x.n, 0.0);  // those of a mean of pairs
  }
  std::fill_n(pulls, x.n, 0.0);
  double largest = -std::numeric_limits<double>::infinity(), counted = 0.0, beside = 0.0, lowest = kMax;
  for (std::size_t label = 1; label < labels; ++label) {
    const std::size_t above = x.begin(label);
    for (std::size_t i = x.begin(label - 1); i < above; ++i) {
      beside += x.shares[i];
      lowest = std::min(lowest, x.scores[i]);
    }
    for (std::size_t k = above; k < x.begin(label + 1); ++k) {
      double log_sum;
      if (close) {
        log_sum = std::log(sums[k]);
      } else {
        least[k] = finite(lowest - x.scores[k]);
        const Unit unit(least[k]);
        sums[k] = loss_sum(x.scores, x.shares, above, x.scores[k], unit);
        log_sum = unit.log() + std::log(sums[k]);
      }
      inner[k] = finite(power * (log_sum - (options.mean ? std::log(beside) : 0.0)));
      largest = std::max(largest, inner[k]);
      counted += x.shares[k];
    }
  }
  double total = 0.0;
  for (std::size_t k = first; k < x.n; ++k) total += inner[k] = x.shares[k] * std::exp(inner[k] - largest);
  double log_value = largest + std::log(total);
  if (options.mean) {
    log_value -= std::log(counted);
  } else {
    log_value += finite((power + 1.0) * (std::log(x.heaviest) + std::log(x.weights)));
  }
  const double limit = std::log(options.largest) - std::log(power) - 1.0;
  const double steepness = power * std::exp(std::min(log_value, limit));
  for (std::size_t k = first; k < x.n; ++k) inner[k] = inner[k] / total / sums[k];
  for (std::size_t label = 1; label < labels; ++label) {
    const std::size_t above = x.begin(label);
    if (close) {
      for (std::size_t i = x.begin(label - 1); i < above; ++i) {
        pulls[i] += close_slopes(e.down[i], e.up + above, inner + above, x.slopes + above, x.n - above);
      }
      continue;
    }
    for (std::size_t k = above; k < x.begin(label + 1); ++k) {
      x.slopes[k] += slope_sum(x.scores, x.shares, above, x.scores[k], Unit(least[k]), inner[k], pulls);
    }
  }
  for (std::size_t at = 0; at < x.n; ++at) {
    list.slopes[x.by_label.order[at]] =
        curvature ? power * ((x.slopes[at] + pulls[at]) * steepness) : (x.slopes[at] - pulls[at]) * steepness;
  }
  return std::exp(log_value);
}

}  // namespace ltr
