// Infeasible subsystems: positives and negatives that no weights put on given sides of a threshold.
//
// Take *levels* l = 0, 1, ... with thresholds t_l, and rows that are *kept* or *removed*:
//
//     a positive kept:     w.x_i >= t_l + margin         a negative kept:     w.x_k <= t_l
//     a positive removed:  w.x_i <= t_l + margin         a negative removed:  w.x_k >= t_l.
//
// Some rows form an *infeasible subsystem* if no w in [-B, B]^d and thresholds satisfy all of them, where the *reach* B
// is the largest size of a weight: 1, or more where weights are whole numbers. A row and its
// opposite have the same inequality but for its direction, so there is one multiplier v for both, >= 0 where the row is
// kept and <= 0 where it is removed. By Farkas' lemma the rows are infeasible, but for the limits of w, where there are
// such multipliers with
//
//     sum over positives of  v * x_i  =  sum over negatives of  v * x_k,
//     in each level both kinds have the same sum of v,  and  the sum of v over all positives is above 0.
//
// `find` looks for such multipliers, with 1 as the last sum, by the simplex method: it starts from the solution found
// last, minimises the sum of |v| of rows that are barred, and if it reaches 0, that of the *open* rows, which are to be
// kept. So subsystems have few open rows. The answer is basic, so it has at most d + levels + 1 rows. A multiplier that
// is 0 may change its sign at any time; where none has to, the sum of the barred ones, which is convex, is at its
// least.
//
// *Rounding.* The simplex method may err; its answers are checked. Let v be multipliers as they are in memory, r the
// difference of the two sums over points, e_l the difference of the two sums of multipliers of level l, and f the sum
// over all positives. Suppose w satisfies the rows, with thresholds ``|t_l| <= X``, where X is B times the largest
// |x|_1 of all observations and the margin: a score, or one margin less than the least of them. As all inequalities
// hold,
//
//     w.r = sum over positives of v (w.x_i - t_l) + sum over negatives of v (t_l - w.x_k) + sum of e_l t_l
//         >=  margin * f - X sum of |e_l|,
//
// but ``w.r <= B |r|_1``. So the rows are infeasible where ``B |r|_1 + X sum of |e_l| < margin * f``. The terms are
// sums of at most ``m = d + levels + 1`` floats with errors of ``2 m 2^-53`` of the sums of magnitudes, which are
// added. So is what products may lose by underflow, and half the margin is left for the rounding of this test.
#pragma once

#include "../arrays.h"

namespace ltr::weight_space {

class Subsystems {
 public:
  Subsystems(Matrix<const double> points, std::span<const std::uint8_t> positive, std::size_t levels, double margin,
             double reach);

  std::size_t points() const { return points_.rows; }
  std::size_t levels() const { return levels_; }
  std::size_t rows() const { return points() * levels_; }  // row ``l * points + p`` is that of point p in level l

  enum State : std::uint8_t { kBarred, kKept, kRemoved, kOpen };
  struct Literal {
    std::size_t row;
    bool removed;
  };

  // Find an infeasible subsystem of kept rows, removed rows and a few open ones; return whether there is one.
  bool find(const std::vector<State>& states);                  // one state per row
  const std::vector<Literal>& found() const { return found_; }  // rows of the last one

  std::int64_t work = 0;  // multiplications

 private:
  double* tableau(std::size_t row) { return tableau_.data() + row * stride_; }
  void pivot(std::size_t row, std::size_t column);
  std::size_t largest_entry(std::size_t row, double least);
  bool first_solution();
  void factorise();
  void restart();
  void reverse(std::size_t column);
  bool minimise(double enough);
  void replace_barred();
  bool check();

  Matrix<const double> points_;
  std::span<const std::uint8_t> positive_;
  std::size_t levels_, equations_, columns_, stride_;
  double margin_, reach_;
  double threshold_ = 0.0;  // largest size of a threshold
  bool separable_ = false;
  int pivots_ = 0;                          // since the tableau was computed afresh
  std::vector<double> original_, tableau_;  // equations, then the reduced costs; the right-hand side comes last
  std::vector<double> first_;               // the tableau of the first solution
  std::vector<std::size_t> basis_, first_basis_;
  std::vector<Literal> found_;
  std::vector<double> cost_;
  std::vector<std::uint8_t> barred_, in_basis_;
  std::vector<std::uint8_t> reversed_;  // whether a column has the sign of a removed row
};

}  // namespace ltr::weight_space
