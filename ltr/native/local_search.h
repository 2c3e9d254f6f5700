// Ascents by exact line searches, along coordinates and random directions, inside box and side constraints, for
// `ltr.exact.local_search`.
#pragma once

#include <memory>

#include "arrays.h"
#include "line_search.h"
#include "random.h"

namespace ltr {

// Linear side constraints A w <= b that a line can violate, scaled to a size of about 1.
struct Sides {
  Matrix<const double> A;
  std::span<const double> b;
  double tolerance;  // violation that is allowed, relative to the size of the terms
};

// Return the part of low <= t <= high on which w + t v satisfies the box and the side constraints.
Segment clip(const Sides& sides, std::span<const double> w, std::span<const double> v, Segment part);

// A problem as an ascent reads it.
struct Shape {
  Kept kept;                             // what owns the arrays
  Matrix<const double> columns;          // features, one row per feature, (d, n)
  double C;                              // price of each non-zero weight
  std::span<const std::uint8_t> priced;  // 1 for weights that have this price, 0 for those of free columns
  bool constrained;                      // whether there are side constraints
  Sides sides;
  Matrix<const double> project;  // orthogonal projection on the directions that keep the equality constraints, (d, d);
                                 // (0, 0) when there are none
  std::size_t extra;             // number of random directions per round
  std::unique_ptr<LineSearch> lines;
  Random random;
};

// Ascends from given weights: along coordinates in random order and along random directions, round after round.
class Ascent {
 public:
  explicit Ascent(Shape shape);

  // Return the objective at w, with the limits of all pairs multiplied by a share.
  double objective(std::span<const double> w, double share);

  // Ascend from w, in place, by at most `lines` line searches; return the objective reached and the lines left. With
  // none left, the ascent may not be finished: resume it with the same w.
  //
  // Moves to an equal value are made too, so that the ascent crosses plateaus. It ends after a round without a gain.
  std::pair<double, std::int64_t> ascend(std::span<double> w, std::int64_t lines, bool resume);

  // Return the best value of the statistic at scores f + t g over low < t < high, and where it is, see `LineSearch`.
  std::pair<double, double> line_search(std::span<const double> f, std::span<const double> g, double low, double high,
                                        double least, double here);

 private:
  using Weights = std::vector<double>;

  std::size_t d() const { return shape_.columns.rows; }
  std::size_t n() const { return shape_.columns.columns; }
  LineSearch::Found search(std::span<const double> f, std::span<const double> g, Segment segment, double here,
                           double least) {
    return shape_.lines->search(f, g, segment, here, least, shape_.random);
  }
  void scores(std::span<const double> w, Weights& f) const;
  int priced(std::span<const double> w) const;
  void step_to(std::span<double> w, std::span<const double> target);
  double coordinate(std::span<double> w, double value, std::size_t j);
  double direction(std::span<double> w, double value, std::span<const double> v);
  std::span<const double> inside(std::span<const double> v);
  std::span<const double> random_direction(std::span<const double> w);

  Shape shape_;
  std::size_t at_ = 0, stale_ = 0;  // place in the round, and lines since the last gain
  std::vector<std::size_t> order_;  // of coordinates
  Weights axis_, corner_, rest_, target_, v_, direction_;
  Weights f_, g_, others_, signed_;  // scores: of w, of a direction, of w without a coordinate, of a coordinate
};

}  // namespace ltr
