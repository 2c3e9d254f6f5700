// Search all whole-number weights of sets of columns, for `ltr.exact.points`.
//
// Weights w_j, whole numbers from -reach to reach and none of them 0, of the m columns of a set order the rows of each
// list by ``w·x_i - handicap_i``, largest first. Of a statistic ``sum_r a_r gain(row at place r)``, a_1 >= a_2 >= ...,
// rows with equal keys get their mean over all orders (`mean`), or the best order: handicaps, margin times grade, have
// put those apart that tie as lost.
//
// *Tree.* Columns are fixed one after the other, those with many values first. Each level has the rows in the order of
// the weights that are fixed. A column of few values splits this order into as many sorted parts, which are merged for
// each of its weights; otherwise the rows are sorted.
//
// *Bounds.* Rows with equal values of all columns that are not fixed keep their order, whatever those weights are. So
// they are a block with a known order, and pooling bounds the node as `supports.cpp` explains.
//
// *Rounding.* Where keys are exact (whole numbers below 2^53) so is every comparison. Otherwise keys err by less than
// `slack` / 2, rows whose keys differ by no more count as in their best order, and weights for which that matters are
// only *undecided*: the caller evaluates those whose bound exceeds the best value. Sums are in long double.
//
// *Demands.* Where keys are exact, other statistics of one list may have least values. They order rows by their totals
// alone, the keys without handicaps: with gains that are put apart as lost, a handicap is half a unit, so that the
// total is the key rounded up. Rows with equal totals get their mean (`mean`) or their worst order, which a bound takes
// for the mean. Weights whose value is within rounding of a least value are left to the caller (`met`).
//
// *Multiples.* Weights and their multiples order rows alike, and larger ones win at least as much against a margin.
// One of each direction is enough, unless side constraints forbid multiples.
#pragma once

#include <numeric>

#include "found_weights.h"
#include "pools.h"
#include "workers.h"

namespace ltr::points {

constexpr std::size_t kMerged = 8;         // most values of a column for which sorted parts are merged
constexpr std::int64_t kMostBlocks = 512;  // of a bound
constexpr std::size_t kMostUndecided = 100'000;

enum class Multiples : int { all, largest, smallest };  // which weights are searched of those of one direction

// A statistic of the list that must reach a value.
struct Demand {
  std::span<const double> gains, rank_weights;
  double least, room;               // the value, and what rounding may change
  std::vector<long double> sums{};  // of the first so many rank weights, which the search fills in
};

struct Problem {
  Kept kept;               // what owns the arrays
  Matrix<const double> X;  // by columns
  std::span<const double> gains, handicaps;
  std::span<const std::int64_t> starts;  // of the lists, and the number of rows
  std::span<const double> rank_weights;  // of each list, from the top
  std::vector<Demand> demands;
  Met met;
  Matrix<const double> A;  // side constraints A w <= b
  std::span<const double> b;
  double loose;  // violation of a side constraint, relative to its terms
  int reach;
  Multiples multiples;
  bool mean, exact;
  double price, tolerance;  // of a column; up to which values count as equal
};

struct Level {
  std::vector<double> keys;         // of each row
  std::vector<std::int32_t> order;  // rows by their keys, list by list
  std::vector<std::int32_t> parts;  // the same, of each list the rows of each value of the next column together
  std::vector<std::size_t> ends;    // of these parts, list by list
  std::vector<std::int32_t> block;  // of each row: its values of the columns that are not fixed
  std::int64_t blocks = 1;          // 0 for too many
};

struct Workspace {
  std::array<Level, kMostColumns + 1> levels;
  std::vector<std::pair<double, std::int32_t>> sorted;
  std::vector<std::int32_t> merged;  // scratch
  std::vector<std::size_t> ends;
  std::vector<double> run;
  BlockBound bound;
  std::array<std::int64_t, kMostColumns> columns{};  // those with many values first
  std::array<int, kMostColumns> weights{};
  std::size_t size = 0;
};

class Search {
 public:
  explicit Search(Problem problem)
      : problem_(std::move(problem)),
        d_(problem_.X.rows),
        n_(problem_.X.columns),
        gains_(problem_.gains),
        found_(problem_.tolerance) {
    for (const std::int64_t at : problem_.starts) starts_.push_back(index(at));
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      add_up(problem_.rank_weights.subspan(starts_[l], starts_[l + 1] - starts_[l]), sums_);
    }
    for (Demand& demand : problem_.demands) add_up(demand.rank_weights, demand.sums);
    for (std::size_t j = 0; j < d_; ++j) {
      const std::span<const double> column = problem_.X[j];
      std::vector<double> values(column.begin(), column.end());
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      for (const double x : column) {
        place_.push_back(static_cast<std::int32_t>(std::lower_bound(values.begin(), values.end(), x) - values.begin()));
      }
      values_.push_back(values.size());
      largest_.push_back(std::max(std::abs(values.front()), std::abs(values.back())));
    }
    for (const double h : problem_.handicaps) handicap_ = std::max(handicap_, std::abs(h));
  }

  // Search sets of columns for weights above a value; return whether all were searched.
  //
  // Args:
  //   sets: columns of each set, -1 behind the last; bounds: of each set, descending, with the price of its columns.
  //   value: the best value known.
  //   threshold: collect all weights whose value is at least this, up to `most`; infinity to collect none.
  bool search(Matrix<const std::int64_t> sets, std::span<const double> bounds, double value, int threads, Stop stop,
              double threshold, std::size_t most) {
    require(sets.columns <= kMostColumns && bounds.size() == sets.rows && threads >= 1, "sets");
    for (std::size_t s = 0; s < sets.rows; ++s) require(sets(s, 0) >= 0, "no empty sets");
    threshold_ = threshold;
    found_.collect(threshold, most);
    raise(value);
    {
      const std::lock_guard guard(lock_);
      bounds_.assign(bounds.begin(), bounds.end());
      at_.assign(index(threads), 0);
      next_ = 0;
    }
    std::atomic<bool> all_done{true};
    in_threads(threads, [&](std::size_t thread) {
      Workspace space;
      while (true) {
        std::size_t s;
        {
          const std::lock_guard guard(lock_);
          s = at_[thread] = next_;
          if (s >= sets.rows || bounds[s] < least()) {
            at_[thread] = sets.rows;
            return;
          }
          ++next_;
        }
        if (!search_set(sets[s], stop, space)) {
          all_done = false;
          return;
        }
      }
    });
    if (all_done) {
      const std::lock_guard guard(lock_);
      bounds_ = {};
    }
    return all_done;
  }

  // Take note of a value that weights are known to have.
  void raise(double value) {
    for (double known = value_.load(); known < value && !value_.compare_exchange_weak(known, value);) {
    }
  }

  // The largest bound of the sets that are not completed: infinity before the search begins, -infinity where all are.
  double bound() {
    const std::lock_guard guard(lock_);
    std::size_t first = next_;
    for (const std::size_t s : at_) first = std::min(first, s);
    return first < bounds_.size() ? bounds_[first] : -kInfinity;
  }

  FoundWeights best() { return found_.best(); }
  std::vector<FoundWeights> collected() { return found_.collected(); }
  std::vector<FoundWeights> undecided() {  // since the last call
    const std::lock_guard guard(lock_);
    return std::exchange(undecided_, {});
  }
  bool full() const { return full_ || found_.full(); }  // whether there were more than could be kept
  std::int64_t visited() const { return visited_; }

 private:
  // Append the sums of the first so many of some rank weights, from none on.
  static void add_up(std::span<const double> weights, std::vector<long double>& sums) {
    sums.push_back(0.0L);
    for (const double weight : weights) sums.push_back(sums.back() + weight);
  }

  // Below which a bound closes its node: of equal values the preferred weights are wanted where all are known exactly.
  double least() const {
    const double value = value_.load(std::memory_order_relaxed);
    return std::min(problem_.exact ? value - problem_.tolerance : value + problem_.tolerance,
                    threshold_ - problem_.tolerance);
  }

  bool search_set(std::span<const std::int64_t> set, const Stop& stop, Workspace& space) {
    space.size = 0;
    for (const std::int64_t j : set) {
      if (j >= 0) space.columns[space.size++] = j;
    }
    const std::size_t m = space.size;
    std::stable_sort(space.columns.begin(), space.columns.begin() + m,
                     [&](std::int64_t a, std::int64_t b) { return values_of(a) > values_of(b); });
    for (std::size_t l = m + 1; l-- > 0;) {
      Level& level = space.levels[l];
      level.keys.resize(n_);
      level.order.resize(n_);
      if (l == m) {
        level.block.assign(n_, 0);
        level.blocks = 1;
        continue;
      }
      const Level& below = space.levels[l + 1];
      const auto j = index(space.columns[l]);
      const auto values = static_cast<std::int64_t>(values_[j]);
      level.blocks = below.blocks == 0 || below.blocks * values > kMostBlocks ? 0 : below.blocks * values;
      if (level.blocks == 0) continue;
      level.block = below.block;
      for (std::size_t i = 0; i < n_; ++i) {
        level.block[i] += static_cast<std::int32_t>(below.blocks) * place_[j * n_ + i];
      }
    }
    Level& first = space.levels[0];
    for (std::size_t i = 0; i < n_; ++i) first.keys[i] = -problem_.handicaps[i];
    std::iota(first.order.begin(), first.order.end(), 0);
    sort(first, space);
    return descend(0, 0.0, stop, space);
  }

  std::size_t values_of(std::int64_t j) const { return values_[index(j)]; }

  // Fix the column of a level, after those before it; `size` bounds the keys.
  bool descend(std::size_t at, double size, const Stop& stop, Workspace& space) {
    Level& level = space.levels[at];
    if (at == space.size) {
      visit(slack_of(size, space), space);
      return true;
    }
    if (at > 0 && level.blocks > 0) {
      const double bound = bound_of(level, slack_of(size, space), gains_, sums_, problem_.mean, space);
      if (bound - problem_.price * static_cast<double>(space.size) < least()) return true;
      for (const Demand& demand : problem_.demands) {
        if (bound_of(level, 0.0, demand.gains, demand.sums, true, space) < demand.least - demand.room) return true;
      }
    }
    if (stop.asked()) return false;
    const auto j = index(space.columns[at]);
    const bool merges = values_[j] <= kMerged;
    if (merges) split(level, j);
    Level& next = space.levels[at + 1];
    for (int size_of_weight = problem_.reach; size_of_weight >= 1; --size_of_weight) {
      for (const int w : {size_of_weight, -size_of_weight}) {
        space.weights[at] = w;
        for (std::size_t i = 0; i < n_; ++i) next.keys[i] = level.keys[i] + w * problem_.X(j, i);
        if (at + 1 == space.size && !allowed(space)) continue;
        if (merges) {
          merge(level, next, space);
        } else {
          next.order = level.order;
          sort(next, space);
        }
        if (!descend(at + 1, size + std::abs(w) * largest_[j], stop, space)) return false;
      }
    }
    return true;
  }

  // Differences of keys up to this may be due to rounding.
  double slack_of(double size, const Workspace& space) const {
    if (problem_.exact) return 0.0;
    return static_cast<double>(space.size + 4) * 0x1p-51 * (size + handicap_) + 0x1p-1060;
  }

  void sort(Level& level, Workspace& space) const {
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      space.sorted.clear();
      for (std::size_t p = starts_[l]; p < starts_[l + 1]; ++p) {
        const std::int32_t row = level.order[p];
        space.sorted.emplace_back(-level.keys[index(row)], row);
      }
      std::sort(space.sorted.begin(), space.sorted.end());
      for (std::size_t p = starts_[l]; p < starts_[l + 1]; ++p) level.order[p] = space.sorted[p - starts_[l]].second;
    }
  }

  // Split the order of each list by the values of a column.
  void split(Level& level, std::size_t j) const {
    level.parts.clear();
    level.ends.clear();
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      for (std::size_t value = 0; value < values_[j]; ++value) {
        for (std::size_t p = starts_[l]; p < starts_[l + 1]; ++p) {
          const std::int32_t row = level.order[p];
          if (place_[j * n_ + index(row)] == static_cast<std::int32_t>(value)) {
            level.parts.push_back(row);
          }
        }
        level.ends.push_back(level.parts.size());
      }
    }
  }

  // Merge the parts of each list by the keys of the next level.
  void merge(const Level& level, Level& next, Workspace& space) const {
    const std::size_t lists = starts_.size() - 1, parts = level.ends.size() / lists;
    next.order = level.parts;
    space.merged.resize(n_);
    const auto higher = [&](std::int32_t a, std::int32_t b) { return next.keys[index(a)] > next.keys[index(b)]; };
    for (std::size_t l = 0; l < lists; ++l) {
      space.ends.assign(1, starts_[l]);
      space.ends.insert(space.ends.end(), level.ends.begin() + l * parts, level.ends.begin() + (l + 1) * parts);
      while (space.ends.size() > 2) {
        std::size_t kept = 1;
        for (std::size_t part = 0; part + 1 < space.ends.size(); part += 2) {
          const auto begin = next.order.begin() + space.ends[part];
          const auto middle = next.order.begin() + space.ends[part + 1];
          std::size_t end = space.ends[part + 1];
          if (part + 2 < space.ends.size()) {
            end = space.ends[part + 2];
            const auto last = next.order.begin() + end;
            const auto merged = std::merge(begin, middle, middle, last, space.merged.begin(), higher);
            std::copy(space.merged.begin(), merged, begin);
          }
          space.ends[kept++] = end;
        }
        space.ends.resize(kept);
      }
    }
  }

  // Whether the weights are those that stand for their multiples, and satisfy the side constraints, up to rounding.
  bool allowed(const Workspace& space) const {
    if (problem_.multiples != Multiples::all) {
      int divisor = 0, most = 0;
      for (std::size_t i = 0; i < space.size; ++i) {
        divisor = std::gcd(divisor, space.weights[i]);
        most = std::max(most, std::abs(space.weights[i]));
      }
      if (divisor != (problem_.multiples == Multiples::smallest ? 1 : problem_.reach / (most / divisor))) return false;
    }
    return side(space, problem_.loose);
  }

  // Whether the side constraints hold with a tolerance, which is negative for weights that are sure to satisfy them.
  bool side(const Workspace& space, double tolerance) const {
    for (std::size_t r = 0; r < problem_.b.size(); ++r) {
      double sum = -problem_.b[r], size = std::abs(problem_.b[r]);
      for (std::size_t i = 0; i < space.size; ++i) {
        const double term = problem_.A(r, index(space.columns[i])) * space.weights[i];
        sum += term;
        size += std::abs(term);
      }
      if (sum > tolerance * size) return false;
    }
    return true;
  }

  void visit(double slack, Workspace& space) {
    visited_.fetch_add(1, std::memory_order_relaxed);
    const Level& level = space.levels[space.size];
    long double total = 0.0L;
    bool certain = true;
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      const std::size_t first = starts_[l];
      const long double* sums = sums_.data() + first + l;
      for (std::size_t p = first; p < starts_[l + 1];) {
        std::size_t end = p + 1;
        double key = level.keys[index(level.order[p])];
        const double gain = gains_[index(level.order[p])];
        double sum = gain;
        bool equal = true;
        for (; end < starts_[l + 1]; ++end) {
          const auto row = index(level.order[end]);
          if (key - level.keys[row] > slack) break;
          key = level.keys[row];
          sum += gains_[row];
          equal = equal && gains_[row] == gain;
        }
        const long double *from = sums + (p - first), *to = sums + (end - first);
        if (equal) {
          if (gain > 0.0) total += gain * (*to - *from);
        } else if (problem_.mean) {
          total += sum * (*to - *from) / static_cast<long double>(end - p);
        } else {
          certain = certain && problem_.exact;
          space.run.clear();
          for (std::size_t q = p; q < end; ++q) {
            space.run.push_back(gains_[index(level.order[q])]);
          }
          std::sort(space.run.begin(), space.run.end(), std::greater<>());
          for (std::size_t q = 0; q < space.run.size(); ++q) total += space.run[q] * (from[q + 1] - from[q]);
        }
        p = end;
      }
    }
    FoundWeights found{.value = static_cast<double>(total) - problem_.price * static_cast<double>(space.size),
                       .size = space.size};
    if (found.value < least()) return;
    bool doubtful = false;
    for (const Demand& demand : problem_.demands) {
      const double value = value_of(demand, level, space);
      if (value < demand.least - demand.room) return;
      doubtful = doubtful || value <= demand.least + demand.room;
    }
    std::array<std::size_t, kMostColumns> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.begin() + space.size,
              [&](std::size_t a, std::size_t b) { return space.columns[a] < space.columns[b]; });
    for (std::size_t i = 0; i < space.size; ++i) {
      found.columns[i] = static_cast<std::int32_t>(space.columns[order[i]]);
      found.weights[i] = space.weights[order[i]];
    }
    certain = certain && side(space, -problem_.loose);
    if (doubtful && !problem_.met(found)) return;
    if (certain) {
      if (found_.offer(found)) raise(found.value);
      return;
    }
    const std::lock_guard guard(lock_);
    if (undecided_.size() < kMostUndecided) {
      undecided_.push_back(found);
    } else {
      full_ = true;
    }
  }

  // The total of a row, in exact keys.
  static double total_of(const Level& level, std::int32_t row) { return std::ceil(level.keys[index(row)]); }

  // The value of a demand's statistic in the order of a level.
  double value_of(const Demand& demand, const Level& level, Workspace& space) const {
    long double value = 0.0L;
    for (std::size_t p = 0, end; p < n_; p = end) {
      space.run.clear();
      for (end = p; end < n_ && total_of(level, level.order[end]) == total_of(level, level.order[p]); ++end) {
        space.run.push_back(demand.gains[index(level.order[end])]);
      }
      if (problem_.mean) {
        const double sum = std::accumulate(space.run.begin(), space.run.end(), 0.0);
        value += sum * (demand.sums[end] - demand.sums[p]) / static_cast<long double>(end - p);
      } else {
        std::sort(space.run.begin(), space.run.end());
        for (std::size_t q = p; q < end; ++q) value += space.run[q - p] * (demand.sums[q + 1] - demand.sums[q]);
      }
    }
    return static_cast<double>(value);
  }

  // The largest value of a statistic of the rows in an order in which those of a block stay as they are.
  double bound_of(const Level& level, double slack, std::span<const double> gains,
                  const std::vector<long double>& all_sums, bool mean, Workspace& space) const {
    long double total = 0.0L;
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      space.bound.clear(index(level.blocks));
      for (const std::int32_t row : in_best_order(level, l, slack, mean, space)) {
        const double key = mean ? total_of(level, row) : std::numeric_limits<double>::quiet_NaN();
        space.bound.add(index(level.block[index(row)]), gains[index(row)], key);
      }
      total += space.bound.value(all_sums.data() + starts_[l] + l);
    }
    return static_cast<double>(total);
  }

  // The rows of a list by their keys; where their order is not known, larger gains first.
  std::span<const std::int32_t> in_best_order(const Level& level, std::size_t list, double slack, bool mean,
                                              Workspace& space) const {
    const std::size_t first = starts_[list], last = starts_[list + 1];
    space.merged.assign(level.order.begin() + first, level.order.begin() + last);
    std::vector<std::int32_t>& rows = space.merged;
    const auto key = [&](std::size_t p) { return level.keys[index(rows[p])]; };
    for (std::size_t p = 0; !mean && p + 1 < rows.size();) {
      std::size_t end = p + 1;
      while (end < rows.size() && key(end - 1) - key(end) <= slack) ++end;
      if (end > p + 1) {
        std::stable_sort(rows.begin() + p, rows.begin() + end,
                         [&](std::int32_t a, std::int32_t b) { return gains_[index(a)] > gains_[index(b)]; });
      }
      p = end;
    }
    return rows;
  }

  Problem problem_;
  std::size_t d_, n_;
  std::span<const double> gains_;
  double handicap_ = 0.0;
  std::vector<std::size_t> starts_, values_;
  std::vector<long double> sums_;  // of the rank weights of each list, from 0 to all
  std::vector<std::int32_t> place_;
  std::vector<double> largest_;
  double threshold_ = kInfinity;
  std::atomic<double> value_{-kInfinity};
  std::mutex lock_;
  std::vector<double> bounds_{kInfinity};  // before the search begins nothing is proven
  std::vector<std::size_t> at_;
  std::size_t next_ = 0;
  FoundSoFar found_;
  std::vector<FoundWeights> undecided_;
  std::atomic<bool> full_{false};
  std::atomic<std::int64_t> visited_{0};
};

}  // namespace ltr::points
