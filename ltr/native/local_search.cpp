// Ascents by exact line searches, along coordinates and random directions, inside box and side constraints, for
// `ltr.exact.local_search`.
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "arrays.h"
#include "list_lines.h"
#include "module.h"
#include "pair_lines.h"
#include "random.h"

namespace ltr {
namespace {

constexpr double kParallel = 1e-14;  // slope of a side constraint, relative to its terms, up to which a line is
                                     // parallel to it

// Linear side constraints A w <= b that a line can violate, scaled to a size of about 1.
struct Sides {
  Matrix<const double> A;
  std::span<const double> b;
  double tolerance;  // violation that is allowed, relative to the size of the terms
};

// Return the part of low <= t <= high on which w + t v satisfies the box and the side constraints.
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

// sum = x + t y
LTR_MULTIVERSION void add_multiple(const double* x, double t, const double* y, std::size_t n, double* sum) {
  for (std::size_t i = 0; i < n; ++i) sum[i] = x[i] + t * y[i];
}

LTR_MULTIVERSION void accumulate(double factor, const double* values, std::size_t n, double* sum) {
  for (std::size_t i = 0; i < n; ++i) sum[i] += factor * values[i];
}

// A problem but for its pairs.
struct Shape {
  Matrix<const double> columns;          // features, one row per feature, (d, n)
  double C;                              // price of each non-zero weight
  std::span<const std::uint8_t> priced;  // 1 for weights that have this price, 0 for those of free columns
  bool constrained;                      // whether there are side constraints
  Sides sides;
  Matrix<const double> project;  // orthogonal projection on the directions that keep the equality constraints, (d, d);
                                 // (0, 0) when there are none
  std::size_t extra;             // number of random directions per round
};

using Weights = std::vector<double>;

// Ascends from given weights: along coordinates in random order and along random directions, round after round.
class Ascent {
 public:
  Ascent(const Shape& shape, std::unique_ptr<LineSearch> line_search, Random random)
      : shape_(shape), line_search_(std::move(line_search)), random_(random), order_(d()) {
    for (auto* weights : {&axis_, &corner_, &rest_, &target_, &v_, &direction_}) weights->resize(d());
    for (auto* scores : {&f_, &g_, &others_, &signed_}) scores->resize(n());
  }

  // Return the objective at w, with the limits of all pairs multiplied by a share.
  double objective(std::span<const double> w, double share) {
    scores(w, f_);
    return line_search_->value(f_, share) - shape_.C * priced(w);
  }

  LineSearch::Found search(std::span<const double> f, std::span<const double> g, Segment segment, double here,
                           double least) {
    return line_search_->search(f, g, segment, here, least, random_);
  }

  // Ascend from w, in place, by at most `lines` line searches; return the objective reached and the lines left. With
  // none left, the ascent may not be finished: resume it with the same w.
  //
  // Moves to an equal value are made too, so that the ascent crosses plateaus. It ends after a round without a gain.
  std::pair<double, std::int64_t> ascend(std::span<double> w, std::int64_t lines, bool resume) {
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
        const auto step = static_cast<std::size_t>(random_.uniform() * static_cast<double>(d() - at_));
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

 private:
  std::size_t d() const { return shape_.columns.rows; }
  std::size_t n() const { return shape_.columns.columns; }

  void scores(std::span<const double> w, Weights& f) const {
    std::fill(f.begin(), f.end(), 0.0);
    for (std::size_t j = 0; j < w.size(); ++j) {
      if (w[j] != 0.0) accumulate(w[j], shape_.columns[j].data(), f.size(), f.data());
    }
  }

  // Return the number of non-zero weights that have a price.
  int priced(std::span<const double> w) const {
    int count = 0;
    for (std::size_t j = 0; j < w.size(); ++j) count += w[j] != 0.0 && shape_.priced[j] != 0;
    return count;
  }

  // Return a value that is below all that tie with the given one.
  static double acceptable(double value) { return value - 2.0 * tie_at(value); }

  static std::size_t largest(std::span<const double> w) {
    std::size_t top = 0;
    for (std::size_t j = 1; j < w.size(); ++j) top = std::abs(w[j]) > std::abs(w[top]) ? j : top;
    return top;
  }

  // Move w and its scores to the target, scaled to max |w_j| = 1 if there are no side constraints.
  //
  // Scaling up never lowers the value (`ltr.exact.reranking`).
  void step_to(std::span<double> w, std::span<const double> target) {
    double size = std::abs(target[largest(target)]);
    if (size == 0.0 || shape_.constrained) size = 1.0;
    for (std::size_t j = 0; j < w.size(); ++j) w[j] = std::min(1.0, std::max(-1.0, target[j] / size));
    scores(w, f_);
  }

  // Search for the best w_j with the others fixed up to one common factor; change w, return the new value.
  //
  // There are three segments: w_j in [-1, 1] with the others fixed, then w_j = 1 and w_j = -1 with the others scaled
  // down to 0.
  double coordinate(std::span<double> w, double value, std::size_t j) {
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
      if (found.value > best + tie || (found.value > best - tie && 3.0 * random_.uniform() < 1.0)) {
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
        const double found = line_search_->value(others_, 1.0) - shape_.C * partners;
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
  double direction(std::span<double> w, double value, std::span<const double> v) {
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
  std::span<const double> inside(std::span<const double> v) {
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
  std::span<const double> random_direction(std::span<const double> w) {
    const std::size_t top = largest(w);
    const double share = std::max(random_.uniform(), 2.0 / static_cast<double>(d()));
    for (std::size_t j = 0; j < d(); ++j) {
      const bool used = shape_.C == 0.0 || shape_.priced[j] == 0 || w[j] != 0.0;
      v_[j] = used && random_.uniform() < share ? 2.0 * random_.uniform() - 1.0 : 0.0;
    }
    if (!shape_.constrained && w[top] != 0.0) {
      accumulate(-v_[top] / w[top], w.data(), d(), v_.data());
      v_[top] = 0.0;
    }
    return inside(v_);
  }

  Shape shape_;
  std::unique_ptr<LineSearch> line_search_;
  Random random_;
  std::size_t at_ = 0, stale_ = 0;  // place in the round, and lines since the last gain
  std::vector<std::size_t> order_;  // of coordinates
  Weights axis_, corner_, rest_, target_, v_, direction_;
  Weights f_, g_, others_, signed_;  // scores: of w, of a direction, of w without a coordinate, of a coordinate
};

template <typename T>
std::vector<T> copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// What every ascent reads, as Python hands it over.
struct Given {
  Rows<double> columns;
  double C;
  Vector<std::uint8_t> priced;
  bool constrained;
  Rows<double> A;
  Vector<double> b;
  double tolerance;
  Rows<double> project;
  std::size_t extra;
  std::uint64_t seed;
  Vector<std::uint8_t> stop;
};

// Keeps the arrays that an ascent reads.
class Ascents {
 public:
  Ascents(const Given& given, const std::function<std::unique_ptr<LineSearch>()>& line_search)
      : columns_(given.columns),
        A_(given.A.data(), given.A.data() + given.A.size()),
        project_(given.project.data(), given.project.data() + given.project.size()),
        b_(copy(view(given.b))),
        priced_(copy(view(given.priced))),
        stop_(given.stop) {
    const std::size_t d = given.columns.shape(0), n = given.columns.shape(1);
    require(d > 0 && given.priced.shape(0) == d, "one entry per feature");
    require(given.A.shape(0) == b_.size() && given.A.shape(1) == d, "one row per side constraint");
    require(project_.empty() || (given.project.shape(0) == d && given.project.shape(1) == d), "projection of weights");
    require(given.extra < (std::size_t{1} << 31), "fewer directions");
    const Shape shape{.columns = {columns_.data(), d, n},
                      .C = given.C,
                      .priced = priced_,
                      .constrained = given.constrained,
                      .sides = {{A_.data(), b_.size(), d}, b_, given.tolerance},
                      .project = {project_.data(), project_.empty() ? 0 : d, d},
                      .extra = given.extra};
    const nb::gil_scoped_release release;
    ascent_ = std::make_unique<Ascent>(shape, line_search(), Random(given.seed));
    d_ = d, n_ = n;
  }

  std::pair<double, std::int64_t> ascend(const OutVector<double>& w, std::int64_t lines, bool resume) {
    require(w.shape(0) == d_, "one weight per feature");
    const nb::gil_scoped_release release;
    return ascent_->ascend(view(w), lines, resume);
  }

  double objective(const Vector<double>& w, double share) {
    require(w.shape(0) == d_, "one weight per feature");
    const nb::gil_scoped_release release;
    return ascent_->objective(view(w), share);
  }

  std::pair<double, double> line_search(const Vector<double>& f, const Vector<double>& g, double low, double high,
                                        double least, double here) {
    require(f.shape(0) == n_ && g.shape(0) == n_, "one score per observation");
    const nb::gil_scoped_release release;
    const auto [value, at] = ascent_->search(view(f), view(g), {low, high}, here, least);
    return {value, at};
  }

 private:
  Rows<double> columns_;  // kept as they are: there may be many
  std::vector<double> A_, project_, b_;
  std::vector<std::uint8_t> priced_;
  Vector<std::uint8_t> stop_;
  std::size_t d_ = 0, n_ = 0;
  std::unique_ptr<Ascent> ascent_;
};

// Make ascents over listed pairs.
void over_pairs(Ascents* self, const Rows<double>& columns, const Vector<std::int32_t>& above,
                const Vector<std::int32_t>& below, const Vector<double>& limit, const Vector<std::int32_t>& positive,
                const Vector<std::int64_t>& level, const Vector<std::int64_t>& start,
                const Vector<std::int64_t>& most_lost, const Vector<double>& contribution,
                const Vector<std::int64_t>& table, const Vector<std::int64_t>& counts_at, std::int64_t counts_size,
                double shift, const Vector<std::int64_t>& first_level, const Vector<double>& least,
                const Vector<double>& penalty, double C, const Vector<std::uint8_t>& priced, bool constrained,
                const Rows<double>& A, const Vector<double>& b, double tolerance, const Rows<double>& project,
                std::size_t extra, std::uint64_t seed, const Vector<std::uint8_t>& stop) {
  require(stop.shape(0) == 1, "one flag");
  const Pairs pairs{view(above), view(below), view(limit), view(positive)};
  const Levels levels{view(level), view(start), view(most_lost),   view(table), view(counts_at), view(contribution),
                      counts_size, shift,       view(first_level), view(least), view(penalty)};
  const std::size_t n = columns.shape(1);
  new (self) Ascents({columns, C, priced, constrained, A, b, tolerance, project, extra, seed, stop},
                     [&] { return search_pairs(pairs, levels, n, Stop(view(stop))); });
}

// Make ascents over lists.
void over_lists(Ascents* self, const Rows<double>& columns, const Vector<std::int32_t>& row,
                const Vector<double>& offset, const Vector<double>& gain, const Vector<std::uint8_t>& counts,
                const Vector<std::int64_t>& start, const Vector<double>& weight, const Vector<std::int64_t>& weight_at,
                double shift, std::size_t threads, double C, const Vector<std::uint8_t>& priced, bool constrained,
                const Rows<double>& A, const Vector<double>& b, double tolerance, const Rows<double>& project,
                std::size_t extra, std::uint64_t seed, const Vector<std::uint8_t>& stop) {
  require(stop.shape(0) == 1, "one flag");
  const Lists lists{view(row),   view(offset), view(gain),      view(counts),
                    view(start), view(weight), view(weight_at), shift};
  const std::size_t n = columns.shape(1);
  new (self) Ascents({columns, C, priced, constrained, A, b, tolerance, project, extra, seed, stop},
                     [&] { return search_lists(lists, n, threads, Stop(view(stop))); });
}

std::pair<double, double> clip_segment(const Rows<double>& A, const Vector<double>& b, double tolerance,
                                       const Vector<double>& w, const Vector<double>& v, double low, double high) {
  const std::size_t d = w.shape(0);
  require(v.shape(0) == d && A.shape(1) == d && A.shape(0) == b.shape(0), "one entry per feature");
  const Segment segment = clip({view(A), view(b), tolerance}, view(w), view(v), {low, high});
  return {segment.low, segment.high};
}

}  // namespace

void bind_local_search(nb::module_& module) {
  module.def("clip_segment", &clip_segment, nb::arg("A"), nb::arg("b"), nb::arg("tolerance"), nb::arg("w"),
             nb::arg("v"), nb::arg("low"), nb::arg("high"),
             "Return the part of low <= t <= high on which w + t v satisfies the box and A w <= b, up to the tolerance "
             "relative to the size of the terms.");
  nb::class_<Ascents>(module, "Ascents", "Ascents by exact line searches, see `ltr.exact.local_search`.")
      .def("__init__", &over_pairs, nb::arg("columns"), nb::arg("above"), nb::arg("below"), nb::arg("limit"),
           nb::arg("positive"), nb::arg("level"), nb::arg("start"), nb::arg("most_lost"), nb::arg("contribution"),
           nb::arg("table"), nb::arg("counts_at"), nb::arg("counts_size"), nb::arg("shift"), nb::arg("first_level"),
           nb::arg("least"), nb::arg("penalty"), nb::arg("C"), nb::arg("priced"), nb::arg("constrained"), nb::arg("A"),
           nb::arg("b"), nb::arg("tolerance"), nb::arg("project"), nb::arg("extra"), nb::arg("seed"),
           nb::arg("stop").noconvert())
      .def("__init__", &over_lists, nb::arg("columns"), nb::kw_only(), nb::arg("row"), nb::arg("offset"),
           nb::arg("gain"), nb::arg("counts"), nb::arg("start"), nb::arg("weight"), nb::arg("weight_at"),
           nb::arg("shift"), nb::arg("threads"), nb::arg("C"), nb::arg("priced"), nb::arg("constrained"), nb::arg("A"),
           nb::arg("b"), nb::arg("tolerance"), nb::arg("project"), nb::arg("extra"), nb::arg("seed"),
           nb::arg("stop").noconvert())
      .def(
          "ascend", &Ascents::ascend, nb::arg("w").noconvert(), nb::arg("lines"), nb::arg("resume"),
          "Ascend from w, in place, by at most `lines` line searches; return the objective reached and the lines left. "
          "With none left, the ascent may not be finished: resume it with the same w.")
      .def("objective", &Ascents::objective, nb::arg("w"), nb::arg("share"),
           "Return the objective at w, with the limits of all pairs multiplied by a share.")
      .def(
          "line_search", &Ascents::line_search, nb::arg("f"), nb::arg("g"), nb::arg("low"), nb::arg("high"),
          nb::arg("least") = -kInfinity, nb::arg("here") = std::numeric_limits<double>::quiet_NaN(),
          "Return the best value of the statistic at scores f + t g over low < t < high, and a t that attains it; -inf "
          "if no value is `least` or more.");
}

}  // namespace ltr
