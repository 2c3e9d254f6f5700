#include "local_search.h"

#include <numeric>

namespace ltr {
namespace {

constexpr double kParallel = 1e-14;  // slope of a side constraint, relative to its terms, up to which a line is
                                     // parallel to it

// sum = x + t y
LTR_MULTIVERSION void add_multiple(const double* x, double t, const double* y, std::size_t n, double* sum) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = x[i] + t * y[i];
}

LTR_MULTIVERSION void accumulate(double factor, const double* values, std::size_t n, double* sum) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += factor * values[i];
}

// Return a value that is below all that tie with the given one.
double acceptable(double value) { return value - 2.0 * tie_at(value); }

std::size_t largest(std::span<const double> w) {
  std::size_t top = 0;
  for (std::size_t j = 1; j < w.size(); ++j) top = std::abs(w[j]) > std::abs(w[top]) ? j : top;
  return top;
}

}  // namespace

Segment clip(const Sides& sides, std::span<const double> w, std::span<const double> v, Segment part) {
  auto [low, high] = part;
  for (std::size_t j = 0; j < w.size(); ++j) {
    if (v[j] != 0.0) {
      const double one = (-1.0 - w[j]) / v[j], other = (1.0 - w[j]) / v[j];
      low = std::max(low, std::min(one, other));
      high = std::min(high, std::max(one, other));
    } else if (std::abs(w[j]) > 1.0 + 1e-12) {
      return {0.0, -1.0};
    }
  }
  for (std::size_t row = 0; row < sides.b.size(); ++row) {
    double slack = sides.b[row], size = std::abs(sides.b[row]), slope = 0.0, steepest = 0.0;
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double term = sides.A(row, j) * w[j], change = sides.A(row, j) * v[j];
      slack -= term;
      size += std::abs(term);
      slope += change;
      steepest += std::abs(change);
    }
    if (std::abs(slope) <= kParallel * steepest) {
      if (slack < -sides.tolerance * size) return {0.0, -1.0};
    } else if (slope > 0.0) {
      high = std::min(high, slack / slope);
    } else {
      low = std::max(low, slack / slope);
    }
  }
  return {low, high};
}

Ascent::Ascent(Shape shape) : shape_(std::move(shape)), order_(d()) {
  for (auto* weights : {&axis_, &corner_, &rest_, &target_, &v_, &direction_}) weights->resize(d());
  for (auto* scores : {&f_, &g_, &others_, &signed_}) scores->resize(n());
}

double Ascent::objective(std::span<const double> w, double share) {
  require(w.size() == d(), "one weight per feature");
  scores(w, f_);
  return shape_.lines->value(f_, share) - shape_.C * priced(w);
}

std::pair<double, double> Ascent::line_search(std::span<const double> f, std::span<const double> g, double low,
                                              double high, double least, double here) {
  require(f.size() == n() && g.size() == n(), "one score per observation");
  const auto [value, at] = search(f, g, {low, high}, here, least);
  return {value, at};
}

std::pair<double, std::int64_t> Ascent::ascend(std::span<double> w, std::int64_t lines, bool resume) {
  if (!resume) {
    at_ = stale_ = 0;
    std::iota(order_.begin(), order_.end(), std::size_t{0});
  }
  double value = objective(w, 1.0);
  const std::size_t length = d() + shape_.extra + (shape_.constrained ? 1 : 0);
  for (; stale_ < length; --lines) {
    if (lines <= 0) return {value, 0};
    const double before = value;
    if (at_ < d()) {  // Fisher-Yates, one step at a time
      const auto step = index(shape_.random.uniform() * static_cast<double>(d() - at_));
      std::swap(order_[at_], order_[at_ + step]);
      const std::size_t j = order_[at_];
      value = shape_.project.rows == 0 ? coordinate(w, value, j) : direction(w, value, shape_.project[j]);
    } else if (at_ < d() + shape_.extra) {
      value = direction(w, value, random_direction(w));
    } else {  // the length of w matters to side constraints, and to the margin
      value = direction(w, value, inside(w));
    }
    at_ = (at_ + 1) % length;
    stale_ = value > before + tie_at(before) ? 0 : stale_ + 1;
  }
  return {value, lines};
}

void Ascent::scores(std::span<const double> w, Weights& f) const {
  std::fill(f.begin(), f.end(), 0.0);
  for (std::size_t j = 0; j < w.size(); ++j) {
    if (w[j] != 0.0) accumulate(w[j], shape_.columns[j].data(), f.size(), f.data());
  }
}

// Return the number of non-zero weights that have a price.
int Ascent::priced(std::span<const double> w) const {
  int count = 0;
  for (std::size_t j = 0; j < w.size(); ++j) count += w[j] != 0.0 && shape_.priced[j] != 0;
  return count;
}

// Move w and its scores to the target, scaled to max |w_j| = 1 if there are no side constraints.
//
// Scaling up never lowers the value (`ltr.exact.reranking`).
void Ascent::step_to(std::span<double> w, std::span<const double> target) {
  double size = std::abs(target[largest(target)]);
  if (size == 0.0 || shape_.constrained) size = 1.0;
  for (std::size_t j = 0; j < w.size(); ++j) w[j] = std::min(1.0, std::max(-1.0, target[j] / size));
  scores(w, f_);
}

// Search for the best w_j with the others fixed up to one common factor; change w, return the new value.
//
// There are three segments: w_j in [-1, 1] with the others fixed, then w_j = 1 and w_j = -1 with the others scaled
// down to 0.
double Ascent::coordinate(std::span<double> w, double value, std::size_t j) {
  std::fill(axis_.begin(), axis_.end(), 0.0);
  axis_[j] = 1.0;
  corner_ = axis_;
  rest_.assign(w.begin(), w.end());
  rest_[j] = 0.0;
  const std::span<const double> column = shape_.columns[j];
  add_multiple(f_.data(), -w[j], column.data(), n(), others_.data());
  const bool alone = rest_[largest(rest_)] == 0.0;
  const int partners = priced(rest_);
  const double price = shape_.C * (partners + (shape_.priced[j] != 0));
  double best = -kInfinity;
  target_.assign(w.begin(), w.end());
  for (const double sign : {0.0, 1.0, -1.0}) {
    if (alone && sign != 0.0) continue;
    LineSearch::Found found{};
    const double least = acceptable(std::max(value, best)) + price;
    if (sign == 0.0) {
      found = search(others_, column, clip(shape_.sides, rest_, axis_, {-1.0, 1.0}), w[j], least);
    } else {
      corner_[j] = sign;
      for (std::size_t i = 0; i < n(); ++i) signed_[i] = sign * column[i];
      const double here = w[j] == sign ? 1.0 : std::numeric_limits<double>::quiet_NaN();
      found = search(signed_, others_, clip(shape_.sides, corner_, rest_, {0.0, 1.0}), here, least);
    }
    found.value -= price;
    const double tie = tie_at(found.value);
    if (found.value > best + tie || (found.value > best - tie && 3.0 * shape_.random.uniform() < 1.0)) {
      best = found.value;
      if (sign == 0.0) {
        add_multiple(rest_.data(), found.at, axis_.data(), d(), target_.data());
      } else {
        add_multiple(corner_.data(), found.at, rest_.data(), d(), target_.data());
      }
    }
  }
  if (shape_.C > 0.0 && shape_.priced[j] != 0 && w[j] != 0.0) {
    const auto [low, high] = clip(shape_.sides, rest_, axis_, {-1.0, 1.0});
    if (low <= 0.0 && 0.0 <= high) {
      const double found = shape_.lines->value(others_, 1.0) - shape_.C * partners;
      if (found > best) {
        best = found;
        target_ = rest_;
      }
    }
  }
  if (best < value - tie_at(value)) return value;
  step_to(w, target_);
  return best;
}

// Move w to the best point on the line through w along v inside the box; return the new value.
double Ascent::direction(std::span<double> w, double value, std::span<const double> v) {
  const Segment segment = clip(shape_.sides, w, v, {-kInfinity, kInfinity});
  if (!std::isfinite(segment.high - segment.low)) return value;
  scores(v, g_);
  int kept = 0;  // weights whose price has to be paid all along
  for (std::size_t j = 0; j < d(); ++j) kept += w[j] != 0.0 && v[j] == 0.0 && shape_.priced[j] != 0;
  const LineSearch::Found found = search(f_, g_, segment, 0.0, acceptable(value) + shape_.C * kept);
  add_multiple(w.data(), found.at, v.data(), d(), target_.data());
  const double reached = found.value - shape_.C * priced(target_);
  if (reached < value - tie_at(value)) return value;
  step_to(w, target_);
  return reached;
}

// Return the direction nearest to v that keeps the equality constraints, v itself if there are none.
std::span<const double> Ascent::inside(std::span<const double> v) {
  if (shape_.project.rows == 0) {
    direction_.assign(v.begin(), v.end());
  } else {
    std::fill(direction_.begin(), direction_.end(), 0.0);
    for (std::size_t j = 0; j < d(); ++j) accumulate(v[j], shape_.project[j].data(), d(), direction_.data());
  }
  return direction_;
}

// Return a direction on about 2 to d coordinates, inside the equality constraints.
//
// With C > 0 it stays on the support of w and free columns: a dense step would pay for every feature at once. Without
// side constraints w and its multiples rank alike, so the largest |w_j| is kept as it is.
std::span<const double> Ascent::random_direction(std::span<const double> w) {
  const std::size_t top = largest(w);
  const double share = std::max(shape_.random.uniform(), 2.0 / static_cast<double>(d()));
  for (std::size_t j = 0; j < d(); ++j) {
    const bool used = shape_.C == 0.0 || shape_.priced[j] == 0 || w[j] != 0.0;
    v_[j] = used && shape_.random.uniform() < share ? 2.0 * shape_.random.uniform() - 1.0 : 0.0;
  }
  if (!shape_.constrained && w[top] != 0.0) {
    accumulate(-v_[top] / w[top], w.data(), d(), v_.data());
    v_[top] = 0.0;
  }
  return inside(v_);
}

}  // namespace ltr
