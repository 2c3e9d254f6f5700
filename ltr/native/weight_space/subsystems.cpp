#include "subsystems.h"

#include "tuning.h"

namespace ltr::weight_space {
namespace {

constexpr double kZero = 1e-9;      // multipliers and reduced costs below it are taken as 0
constexpr double kPivot = 1e-8;     // least size of an entry to pivot on, where there is a choice
constexpr double kReached = 1e-10;  // sum of multipliers of rows that are not allowed, below which it is 0
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

LTR_MULTIVERSION void subtract_row(double* __restrict row, const double* __restrict pivot, double factor,
                                   std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) row[k] -= factor * pivot[k];
}

LTR_MULTIVERSION void divide_row(double* row, double by, std::size_t size) {
  const double inverse = 1.0 / by;
  for (std::size_t k = 0; k < size; ++k) row[k] *= inverse;
}

}  // namespace

Subsystems::Subsystems(Matrix<const double> points, std::span<const std::uint8_t> positive, std::size_t levels,
                       double margin, double reach)
    : points_(points),
      positive_(positive),
      levels_(levels),
      equations_(points.columns + levels + 1),
      columns_(points.rows * levels),
      stride_((columns_ + 8) / 8 * 8),
      margin_(margin),
      reach_(reach),
      cost_(columns_),
      barred_(columns_),
      reversed_(columns_) {
  const std::size_t n = points_.rows, d = points_.columns;
  original_.assign((equations_ + 1) * stride_, 0.0);
  for (std::size_t p = 0; p < n; ++p) {
    double size = 0.0;
    for (std::size_t j = 0; j < d; ++j) size += std::abs(points_(p, j));
    threshold_ = std::max(threshold_, reach_ * size + margin_);
  }
  for (std::size_t j = 0; j < d; ++j) {
    double mean = 0.0, most = 0.0;
    for (std::size_t p = 0; p < n; ++p) mean += points_(p, j) / static_cast<double>(n);
    for (std::size_t p = 0; p < n; ++p) most = std::max(most, std::abs(points_(p, j) - mean));
    for (std::size_t column = 0; column < columns_ && most > 0.0; ++column) {
      const std::size_t p = column % n;
      const double x = (points_(p, j) - mean) / most;
      original_[j * stride_ + column] = positive_[p] != 0 ? x : -x;
    }
  }
  for (std::size_t column = 0; column < columns_; ++column) {
    original_[(d + column / n) * stride_ + column] = positive_[column % n] != 0 ? 1.0 : -1.0;
    original_[(d + levels_) * stride_ + column] = positive_[column % n] != 0 ? 1.0 : 0.0;
  }
  original_[(d + levels_) * stride_ + columns_] = 1.0;
  tableau_ = original_;
  basis_.assign(equations_, kNone);
  separable_ = !first_solution();
  first_ = tableau_;
  first_basis_ = basis_;
}

// Reverse the sign of a multiplier that is 0.
void Subsystems::reverse(std::size_t column) {
  reversed_[column] ^= 1;
  for (std::vector<double>* of : {&original_, &first_, &tableau_}) {
    for (std::size_t i = 0; i <= equations_; ++i) (*of)[i * stride_ + column] *= -1.0;
  }
}

void Subsystems::pivot(std::size_t row, std::size_t column) {
  double* chosen = tableau(row);
  divide_row(chosen, chosen[column], stride_);
  chosen[column] = 1.0;
  for (std::size_t i = 0; i <= equations_; ++i) {
    double* other = tableau(i);
    const double factor = other[column];
    if (i == row || factor == 0.0) continue;
    subtract_row(other, chosen, factor, stride_);
    other[column] = 0.0;
  }
  basis_[row] = column;
  ++pivots_;
  work += static_cast<std::int64_t>(equations_ * stride_);
}

// Return the allowed column with the largest entry of a row, in size, if that exceeds `least`.
std::size_t Subsystems::largest_entry(std::size_t row, double least) {
  std::size_t column = kNone;
  for (std::size_t k = 0; k < columns_; ++k) {
    if (barred_[k] != 0 || std::abs(tableau(row)[k]) <= least) continue;
    least = std::abs(tableau(row)[k]);
    column = k;
  }
  return column;
}

// Make the columns of all but the last equation basic, whose right-hand sides are 0, then solve the last one.
bool Subsystems::first_solution() {
  for (std::size_t row = 0; row + 1 < equations_; ++row) {
    if (const std::size_t column = largest_entry(row, kZero); column != kNone) pivot(row, column);
  }
  // the reduced costs of a variable that fills the last equation
  double* reduced = tableau(equations_);
  const double* last = tableau(equations_ - 1);
  for (std::size_t k = 0; k < stride_; ++k) reduced[k] = -last[k];
  return minimise(kReached) && basis_[equations_ - 1] != kNone;
}

// Begin with the first solution again, and the signs that it needs.
void Subsystems::restart() {
  for (const std::size_t column : first_basis_) {
    if (column != kNone && reversed_[column] != 0) reverse(column);
  }
  tableau_ = first_;
  basis_ = first_basis_;
}

// Compute the tableau afresh from its basis; begin with the first solution again where that fails.
void Subsystems::factorise() {
  std::vector<std::size_t> wanted = basis_;
  tableau_ = original_;
  basis_.assign(equations_, kNone);
  bool good = true;
  for (const std::size_t column : wanted) {
    if (column == kNone) continue;
    std::size_t row = kNone;
    double largest = kZero;
    for (std::size_t i = 0; i < equations_; ++i) {
      if (basis_[i] == kNone && std::abs(tableau(i)[column]) > largest) {
        largest = std::abs(tableau(i)[column]);
        row = i;
      }
    }
    good = good && row != kNone;
    if (row != kNone) pivot(row, column);
  }
  for (std::size_t i = 0; i < equations_; ++i) good = good && tableau(i)[columns_] > -1e-7;
  if (!good) restart();
  pivots_ = 0;
}

// Minimise the objective whose reduced costs are in the tableau, down to `enough`; return whether it came there or, if
// `enough` is negative, to the least.
bool Subsystems::minimise(double enough) {
  const double* reduced = tableau(equations_);
  for (int number = 0; number < tuning::kMostPivots; ++number) {
    if (-reduced[columns_] < enough) return true;
    std::size_t column = kNone;
    double least = -kZero;
    for (std::size_t k = 0; k < columns_; ++k) {
      if (barred_[k] != 0 || reduced[k] >= least) continue;
      least = reduced[k];
      column = k;
      if (number >= tuning::kCautious) break;
    }
    if (column == kNone) return enough < 0.0;
    std::size_t row = kNone;
    double step = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < equations_; ++i) {
      const double entry = tableau(i)[column];
      if (entry <= kZero) continue;
      const double ratio = std::max(tableau(i)[columns_], 0.0) / entry;
      if (ratio < step - 1e-13 || (ratio < step + 1e-13 && entry > tableau(row)[column])) {
        step = std::min(step, ratio);
        row = i;
      }
    }
    if (row == kNone) return false;
    pivot(row, column);
  }
  return enough < 0.0;
}

// Replace basic rows that are not allowed, whose multipliers are 0, by allowed ones.
void Subsystems::replace_barred() {
  for (std::size_t i = 0; i < equations_; ++i) {
    if (basis_[i] == kNone || barred_[basis_[i]] == 0) continue;
    const std::size_t column = largest_entry(i, kPivot);
    if (column == kNone) continue;
    tableau(i)[columns_] = 0.0;
    pivot(i, column);
  }
}

// Whether the rows of the basic solution are infeasible, by its multipliers; they are written to `found_`.
bool Subsystems::check() {
  const std::size_t n = points_.rows, d = points_.columns;
  found_.clear();
  std::vector<double> r(d), sizes(d), excess(levels_), masses(levels_);
  double left = 0.0, mass = 0.0;
  for (std::size_t i = 0; i < equations_; ++i) {
    if (basis_[i] == kNone || !(tableau(i)[columns_] > kZero)) continue;
    if (barred_[basis_[i]] != 0) return false;
    const bool reversed = reversed_[basis_[i]] != 0;
    const double v = reversed ? -tableau(i)[columns_] : tableau(i)[columns_];
    const std::size_t p = basis_[i] % n, level = basis_[i] / n;
    for (std::size_t j = 0; j < d; ++j) {
      const double x = v * points_(p, j);
      r[j] += positive_[p] != 0 ? x : -x;
      sizes[j] += std::abs(x);
    }
    excess[level] += positive_[p] != 0 ? v : -v;
    masses[level] += std::abs(v);
    if (positive_[p] != 0) mass += v;
    found_.push_back({basis_[i], reversed});
  }
  const double terms = 2.0 * static_cast<double>(equations_), error = terms * 0x1p-53, lost = terms * 0x1p-1074;
  for (std::size_t j = 0; j < d; ++j) left += reach_ * (std::abs(r[j]) + error * sizes[j] + lost);
  for (std::size_t l = 0; l < levels_; ++l) {
    left += threshold_ * (std::abs(excess[l]) + error * masses[l]);
    mass -= error * masses[l];
  }
  return left < 0.5 * margin_ * mass;
}

bool Subsystems::find(const std::vector<State>& states) {
  if (separable_) return false;
  if (pivots_ > tuning::kAfresh) factorise();
  const auto set_costs = [&] {
    double* reduced = tableau(equations_);
    std::fill_n(reduced, stride_, 0.0);
    std::copy(cost_.begin(), cost_.end(), reduced);
    for (std::size_t i = 0; i < equations_; ++i) {
      if (basis_[i] != kNone && cost_[basis_[i]] != 0.0) subtract_row(reduced, tableau(i), cost_[basis_[i]], stride_);
    }
  };
  const auto turned = [&](std::size_t column) { return (states[column] == kRemoved) != (reversed_[column] != 0); };
  // reverse the multipliers outside the basis that have the wrong sign; return whether there are any
  const auto reverse_free = [&] {
    bool any = false;
    in_basis_.assign(columns_, 0);
    for (const std::size_t column : basis_) {
      if (column != kNone) in_basis_[column] = 1;
    }
    for (std::size_t column = 0; column < columns_; ++column) {
      if (states[column] == kBarred || !turned(column) || in_basis_[column] != 0) continue;
      reverse(column);
      barred_[column] = 0;
      cost_[column] = 0.0;
      any = true;
    }
    return any;
  };
  bool any = false;
  for (std::size_t column = 0; column < columns_; ++column) {
    barred_[column] = states[column] == kBarred || turned(column);
    cost_[column] = barred_[column];
  }
  reverse_free();
  for (const std::size_t column : basis_) any = any || (column != kNone && barred_[column] != 0);
  if (any) {
    set_costs();
    while (!minimise(kReached)) {
      if (!reverse_free()) return false;
      set_costs();
    }
    replace_barred();
    reverse_free();
  }
  for (std::size_t column = 0; column < columns_; ++column) cost_[column] = states[column] == kOpen;
  set_costs();
  minimise(-1.0);
  if (check()) return true;
  factorise();
  return check();
}

}  // namespace ltr::weight_space
