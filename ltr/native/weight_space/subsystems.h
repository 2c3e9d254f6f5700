// Infeasible subsystems: positives and negatives that no weights separate.
//
// Take *levels* l = 0, 1, ... with thresholds t_0 >= t_1 >= ..., and rows ``w.x_i >= t_l + margin`` of positives and
// ``w.x_k <= t_l`` of negatives. Some rows form an *infeasible subsystem* if no w in [-1, 1]^d and thresholds satisfy
// all of them. By Farkas' lemma that is so, but for the margin, where there are multipliers >= 0, not all 0, with
//
//     sum over rows of positives of  multiplier * x_i  =  sum over rows of negatives of  multiplier * x_k,
//     and both kinds have the same sum of multipliers in each level.
//
// `find` looks for such multipliers by the simplex method: it starts from the solution found last, minimises the sum
// of the multipliers of rows that are not allowed, and if it reaches 0, that of the *free* rows. So subsystems have few
// free rows. The answer is basic, so it has at most d + levels + 1 rows.
//
// *Rounding.* The simplex method may err; its answers are checked. Let v >= 0 be multipliers as they are in memory, r
// the difference of the two sums over points, e_l the difference of the two sums of multipliers of level l, and f_l the
// smaller one. Suppose w satisfies the rows. With the threshold between the scores of the rows of a level, which can
// be chosen with ``|t_l| <= max |w.x| <= X = max over observations of |x|_1``,
//
//     w.r = sum of v (w.x_i - t_l) + sum of v (t_l - w.x_k) + sum of e_l t_l  >=  margin * sum of f_l - X sum of |e_l|,
//
// but ``w.r <= |r|_1``. So the rows are infeasible where ``|r|_1 + X sum of |e_l| < margin * sum of f_l``. The terms
// are sums of at most ``m = d + levels + 1`` floats with errors of ``2 m 2^-53`` of the sums of magnitudes, which are
// added, and half the margin is left for the rounding of this test. Thresholds cancel, so that only the order of scores
// matters: the rows say which positives beat which negatives, by ``w.(x_i - x_k) >= margin``.
#pragma once

#include <cstdint>
#include <vector>

#include "../arrays.h"

namespace ltr::weight_space {

class Subsystems {
 public:
  Subsystems(Matrix<const double> points, std::span<const std::uint8_t> positive, std::size_t levels, double margin);

  std::size_t points() const { return points_.rows; }
  std::size_t levels() const { return levels_; }
  std::size_t rows() const { return points() * levels_; }  // row ``l * points + p`` is that of point p in level l

  // Find an infeasible subsystem among the allowed rows, with few free ones; return whether there is one.
  bool find(const std::vector<std::uint8_t>& allowed, const std::vector<std::uint8_t>& free);
  const std::vector<std::size_t>& found() const { return found_; }  // rows of the last one

  std::int64_t work = 0;  // multiplications

 private:
  double* tableau(std::size_t row) { return tableau_.data() + row * stride_; }
  void pivot(std::size_t row, std::size_t column);
  bool first_solution();
  void factorise();
  bool minimise(double enough);
  void replace_barred();
  bool check();

  Matrix<const double> points_;
  std::span<const std::uint8_t> positive_;
  std::size_t levels_, equations_, columns_, stride_;
  double margin_, largest_ = 0.0;
  bool separable_ = false;
  int pivots_ = 0;                          // since the tableau was computed afresh
  std::vector<double> original_, tableau_;  // equations, then the reduced costs; the right-hand side comes last
  std::vector<double> first_;               // the tableau of the first solution
  std::vector<std::size_t> basis_, first_basis_, found_;
  std::vector<double> cost_;
  std::vector<std::uint8_t> barred_;
};

}  // namespace ltr::weight_space
