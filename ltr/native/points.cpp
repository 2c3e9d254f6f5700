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
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "arrays.h"
#include "module.h"
#include "pools.h"
#include "threads.h"

namespace ltr {
namespace {

constexpr std::size_t kMostColumns = 6;    // of a set
constexpr std::size_t kMerged = 8;         // most values of a column for which sorted parts are merged
constexpr std::int64_t kMostBlocks = 512;  // of a bound
constexpr std::size_t kMostUndecided = 100'000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Multiples : int { all, largest, smallest };

struct Found {
  double value = -kInfinity;  // with the price
  std::size_t size = 0;
  std::array<std::int64_t, kMostColumns> columns{};  // ascending
  std::array<int, kMostColumns> weights{};

  int total() const {
    int sum = 0;
    for (const int w : weights) sum += std::abs(w);
    return sum;
  }

  // Whether these weights are to be taken before others of equal value.
  bool before(const Found& other) const {
    if (size != other.size) return size < other.size;
    if (total() != other.total()) return total() < other.total();
    if (columns != other.columns) return columns < other.columns;
    return weights > other.weights;
  }
};

// A statistic of the list that must reach a value.
struct PointDemand {
  std::vector<double> gains;      // of each row
  std::vector<long double> sums;  // of the first so many rank weights
  double least, room;             // the value, and what rounding may change
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
  std::vector<std::vector<Pool>> pools;
  std::vector<double> last;
  std::vector<Pool> all;
  std::array<std::int64_t, kMostColumns> columns{};  // those with many values first
  std::array<int, kMostColumns> weights{};
  std::size_t size = 0;
};

class PointSearch {
 public:
  PointSearch(Rows<double> X, Vector<double> gains, Vector<double> handicaps, Vector<std::int64_t> starts,
              Vector<double> rank_weights, nb::list demands, nb::object met, Rows<double> A, Vector<double> b,
              double loose, int reach, int multiples, bool mean, bool exact, double price, double tolerance)
      : d_(X.shape(0)),
        n_(X.shape(1)),
        X_(X.data(), X.data() + d_ * n_),
        gains_(gains.data(), gains.data() + gains.shape(0)),
        handicaps_(handicaps.data(), handicaps.data() + handicaps.shape(0)),
        weights_(rank_weights.data(), rank_weights.data() + rank_weights.shape(0)),
        met_(std::move(met)),
        A_(A.data(), A.data() + A.shape(0) * A.shape(1)),
        b_(b.data(), b.data() + b.shape(0)),
        loose_(loose),
        reach_(reach),
        multiples_(static_cast<Multiples>(multiples)),
        mean_(mean),
        exact_(exact),
        price_(price),
        tolerance_(tolerance) {
    require(gains_.size() == n_ && handicaps_.size() == n_ && weights_.size() == n_, "one number per row");
    require(A.shape(1) == d_ && b_.size() == A.shape(0), "side constraints");
    require(reach >= 1 && reach <= 100 && multiples >= 0 && multiples <= 2 && n_ < 1U << 31, "sizes");
    require(exact || !mean, "means need exact keys");
    require(starts.shape(0) >= 2, "lists");
    for (const std::int64_t at : view(starts)) {
      require(at >= 0 && static_cast<std::size_t>(at) <= n_, "starts");
      require(starts_.empty() || static_cast<std::size_t>(at) > starts_.back(), "ascending starts");
      starts_.push_back(static_cast<std::size_t>(at));
    }
    require(starts_.front() == 0 && starts_.back() == n_, "starts");
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      sums_.push_back(0.0L);
      for (std::size_t i = starts_[l]; i < starts_[l + 1]; ++i) {
        require(std::isfinite(weights_[i]) && (i == starts_[l] || weights_[i] <= weights_[i - 1]), "rank weights");
        sums_.push_back(sums_.back() + weights_[i]);
      }
    }
    for (std::size_t i = 0; i < n_; ++i) {
      require(std::isfinite(gains_[i]) && gains_[i] >= 0.0 && std::isfinite(handicaps_[i]), "gains and handicaps");
    }
    require(demands.size() == 0 || (exact && starts_.size() == 2), "demands need exact keys of one list");
    for (const nb::handle each : demands) {
      const auto all = nb::cast<nb::tuple>(each);
      const auto of = nb::cast<Vector<double>>(all[0]), weights = nb::cast<Vector<double>>(all[1]);
      require(of.shape(0) == n_ && weights.shape(0) == n_, "one number per row");
      PointDemand& demand = demands_.emplace_back();
      demand.least = nb::cast<double>(all[2]);
      demand.room = nb::cast<double>(all[3]);
      demand.sums.push_back(0.0L);
      for (std::size_t i = 0; i < n_; ++i) {
        require(std::isfinite(of(i)) && of(i) >= 0.0, "gains");
        require(std::isfinite(weights(i)) && (i == 0 || weights(i) <= weights(i - 1)), "rank weights");
        demand.gains.push_back(of(i));
        demand.sums.push_back(demand.sums.back() + weights(i));
      }
    }
    for (std::size_t j = 0; j < d_; ++j) {
      double* column = X_.data() + j * n_;
      std::vector<double> values(column, column + n_);
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      require(std::isfinite(values.front()) && std::isfinite(values.back()), "finite numbers");
      for (std::size_t i = 0; i < n_; ++i) {
        place_.push_back(
            static_cast<std::int32_t>(std::lower_bound(values.begin(), values.end(), column[i]) - values.begin()));
      }
      values_.push_back(values.size());
      largest_.push_back(std::max(std::abs(values.front()), std::abs(values.back())));
    }
    for (const double h : handicaps_) handicap_ = std::max(handicap_, std::abs(h));
  }

  // Search sets of columns, the largest bound first, for weights above a value.
  //
  // Args:
  //   sets: columns of each set, -1 behind the last; bounds: of each set, descending, with the price of its columns.
  //   value: the best value known; threads: number of threads; stop: see `Stop`.
  //   threshold: collect all weights whose value is at least this, up to `most`; infinity to collect none.
  // Returns: whether all sets were searched.
  bool search(Rows<std::int64_t> sets, Vector<double> bounds, double value, int threads, Vector<std::uint8_t> stop,
              double threshold, std::size_t most) {
    require(sets.shape(1) <= kMostColumns && bounds.shape(0) == sets.shape(0) && threads >= 1, "sets");
    const auto all = view(sets);
    for (std::size_t s = 0; s < all.rows; ++s) {
      require(all(s, 0) >= 0, "no empty sets");
      for (const std::int64_t j : all[s]) require(j >= -1 && j < static_cast<std::int64_t>(d_), "columns");
      require(s == 0 || bounds(s) <= bounds(s - 1), "descending bounds");
    }
    const std::vector<double> limits(bounds.data(), bounds.data() + bounds.shape(0));
    const Stop asked(view(stop));
    const nb::gil_scoped_release release;
    threshold_ = threshold;
    most_ = most;
    raise(value);
    {
      const std::lock_guard guard(lock_);
      limits_ = limits;
      at_.assign(static_cast<std::size_t>(threads), 0);
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
          if (s >= all.rows || limits[s] < least()) {
            at_[thread] = all.rows;
            return;
          }
          ++next_;
        }
        if (!search_set(all[s], asked, space)) {
          all_done = false;
          return;
        }
      }
    });
    if (all_done) {
      const std::lock_guard guard(lock_);
      limits_ = {};
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
    return first < limits_.size() ? limits_[first] : -kInfinity;
  }

  nb::tuple best() {
    const std::lock_guard guard(lock_);
    return described(best_);
  }
  nb::list collected() {
    const std::lock_guard guard(lock_);
    return all_of(collected_);
  }
  // The undecided weights since the last call.
  nb::list undecided() {
    const std::lock_guard guard(lock_);
    nb::list found = all_of(undecided_);
    undecided_.clear();
    return found;
  }
  bool full() const { return full_; }
  std::int64_t visited() const { return visited_; }

 private:
  static nb::tuple described(const Found& found) {
    nb::list columns, weights;
    for (std::size_t i = 0; i < found.size; ++i) {
      columns.append(found.columns[i]);
      weights.append(found.weights[i]);
    }
    return nb::make_tuple(found.value, nb::tuple(columns), nb::tuple(weights));
  }
  static nb::list all_of(const std::vector<Found>& found) {
    nb::list all;
    for (const Found& one : found) all.append(described(one));
    return all;
  }

  // Below which a bound closes its node: of equal values the preferred weights are wanted where all are known exactly.
  double least() const {
    const double value = value_.load(std::memory_order_relaxed);
    return std::min(exact_ ? value - tolerance_ : value + tolerance_, threshold_ - tolerance_);
  }

  bool search_set(std::span<const std::int64_t> set, const Stop& stop, Workspace& space) {
    space.size = 0;
    for (const std::int64_t j : set) {
      if (j >= 0) space.columns[space.size++] = j;
    }
    const std::size_t m = space.size;
    std::stable_sort(space.columns.begin(), space.columns.begin() + static_cast<std::ptrdiff_t>(m),
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
      const auto j = static_cast<std::size_t>(space.columns[l]);
      const auto values = static_cast<std::int64_t>(values_[j]);
      level.blocks = below.blocks == 0 || below.blocks * values > kMostBlocks ? 0 : below.blocks * values;
      if (level.blocks == 0) continue;
      level.block = below.block;
      for (std::size_t i = 0; i < n_; ++i) {
        level.block[i] += static_cast<std::int32_t>(below.blocks) * place_[j * n_ + i];
      }
    }
    Level& first = space.levels[0];
    for (std::size_t i = 0; i < n_; ++i) first.keys[i] = -handicaps_[i];
    std::iota(first.order.begin(), first.order.end(), 0);
    sort(first, space);
    return descend(0, 0.0, stop, space);
  }

  std::size_t values_of(std::int64_t j) const { return values_[static_cast<std::size_t>(j)]; }

  // Fix the column of a level, after those before it; `size` bounds the keys.
  bool descend(std::size_t at, double size, const Stop& stop, Workspace& space) {
    Level& level = space.levels[at];
    if (at == space.size) {
      visit(slack_of(size, space), space);
      return true;
    }
    if (at > 0 && level.blocks > 0) {
      const double bound = bound_of(level, slack_of(size, space), gains_, sums_, mean_, space);
      if (bound - price_ * static_cast<double>(space.size) < least()) return true;
      for (const PointDemand& demand : demands_) {
        if (bound_of(level, 0.0, demand.gains, demand.sums, true, space) < demand.least - demand.room) return true;
      }
    }
    if (stop.asked()) return false;
    const auto j = static_cast<std::size_t>(space.columns[at]);
    const bool merges = values_[j] <= kMerged;
    if (merges) split(level, j);
    Level& next = space.levels[at + 1];
    for (int size_of_weight = reach_; size_of_weight >= 1; --size_of_weight) {
      for (const int w : {size_of_weight, -size_of_weight}) {
        space.weights[at] = w;
        for (std::size_t i = 0; i < n_; ++i) next.keys[i] = level.keys[i] + w * X_[j * n_ + i];
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
    if (exact_) return 0.0;
    return static_cast<double>(space.size + 4) * 0x1p-51 * (size + handicap_) + 0x1p-1060;
  }

  void sort(Level& level, Workspace& space) const {
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      space.sorted.clear();
      for (std::size_t p = starts_[l]; p < starts_[l + 1]; ++p) {
        const std::int32_t row = level.order[p];
        space.sorted.emplace_back(-level.keys[static_cast<std::size_t>(row)], row);
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
          if (place_[j * n_ + static_cast<std::size_t>(row)] == static_cast<std::int32_t>(value)) {
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
    const auto higher = [&](std::int32_t a, std::int32_t b) {
      return next.keys[static_cast<std::size_t>(a)] > next.keys[static_cast<std::size_t>(b)];
    };
    for (std::size_t l = 0; l < lists; ++l) {
      space.ends.assign(1, starts_[l]);
      space.ends.insert(space.ends.end(), level.ends.begin() + static_cast<std::ptrdiff_t>(l * parts),
                        level.ends.begin() + static_cast<std::ptrdiff_t>((l + 1) * parts));
      while (space.ends.size() > 2) {
        std::size_t kept = 1;
        for (std::size_t part = 0; part + 1 < space.ends.size(); part += 2) {
          const auto begin = next.order.begin() + static_cast<std::ptrdiff_t>(space.ends[part]);
          const auto middle = next.order.begin() + static_cast<std::ptrdiff_t>(space.ends[part + 1]);
          std::size_t end = space.ends[part + 1];
          if (part + 2 < space.ends.size()) {
            end = space.ends[part + 2];
            const auto last = next.order.begin() + static_cast<std::ptrdiff_t>(end);
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
    if (multiples_ != Multiples::all) {
      int divisor = 0, most = 0;
      for (std::size_t i = 0; i < space.size; ++i) {
        divisor = std::gcd(divisor, space.weights[i]);
        most = std::max(most, std::abs(space.weights[i]));
      }
      if (divisor != (multiples_ == Multiples::smallest ? 1 : reach_ / (most / divisor))) return false;
    }
    return side(space, loose_);
  }

  // Whether the side constraints hold with a tolerance, which is negative for weights that are sure to satisfy them.
  bool side(const Workspace& space, double tolerance) const {
    for (std::size_t r = 0; r < b_.size(); ++r) {
      double sum = -b_[r], size = std::abs(b_[r]);
      for (std::size_t i = 0; i < space.size; ++i) {
        const double term = A_[r * d_ + static_cast<std::size_t>(space.columns[i])] * space.weights[i];
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
        double key = level.keys[static_cast<std::size_t>(level.order[p])];
        const double gain = gains_[static_cast<std::size_t>(level.order[p])];
        double sum = gain;
        bool equal = true;
        for (; end < starts_[l + 1]; ++end) {
          const auto row = static_cast<std::size_t>(level.order[end]);
          if (key - level.keys[row] > slack) break;
          key = level.keys[row];
          sum += gains_[row];
          equal = equal && gains_[row] == gain;
        }
        const long double *from = sums + (p - first), *to = sums + (end - first);
        if (equal) {
          if (gain > 0.0) total += gain * (*to - *from);
        } else if (mean_) {
          total += sum * (*to - *from) / static_cast<long double>(end - p);
        } else {
          certain = certain && exact_;
          space.run.clear();
          for (std::size_t q = p; q < end; ++q) {
            space.run.push_back(gains_[static_cast<std::size_t>(level.order[q])]);
          }
          std::sort(space.run.begin(), space.run.end(), std::greater<>());
          for (std::size_t q = 0; q < space.run.size(); ++q) total += space.run[q] * (from[q + 1] - from[q]);
        }
        p = end;
      }
    }
    Found found{.value = static_cast<double>(total) - price_ * static_cast<double>(space.size), .size = space.size};
    if (found.value < least()) return;
    bool doubtful = false;
    for (const PointDemand& demand : demands_) {
      const double value = value_of(demand, level, space);
      if (value < demand.least - demand.room) return;
      doubtful = doubtful || value <= demand.least + demand.room;
    }
    std::array<std::size_t, kMostColumns> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(space.size),
              [&](std::size_t a, std::size_t b) { return space.columns[a] < space.columns[b]; });
    for (std::size_t i = 0; i < space.size; ++i) {
      found.columns[i] = space.columns[order[i]];
      found.weights[i] = space.weights[order[i]];
    }
    certain = certain && side(space, -loose_);
    if (doubtful && !decide(found)) return;
    const std::lock_guard guard(lock_);
    if (!certain) {
      if (undecided_.size() < kMostUndecided) {
        undecided_.push_back(found);
      } else {
        full_ = true;
      }
      return;
    }
    if (threshold_ < kInfinity && found.value >= threshold_ - tolerance_) {
      if (collected_.size() < most_) {
        collected_.push_back(found);
      } else {
        full_ = true;
      }
    }
    const double difference = found.value - best_.value;
    if (difference > tolerance_ || (std::abs(difference) <= tolerance_ && found.before(best_))) {
      best_ = found;
      raise(found.value);
    }
  }

  // The total of a row, in exact keys.
  static double total_of(const Level& level, std::int32_t row) {
    return std::ceil(level.keys[static_cast<std::size_t>(row)]);
  }

  // The value of a demand's statistic in the order of a level.
  double value_of(const PointDemand& demand, const Level& level, Workspace& space) const {
    long double value = 0.0L;
    for (std::size_t p = 0, end; p < n_; p = end) {
      space.run.clear();
      for (end = p; end < n_ && total_of(level, level.order[end]) == total_of(level, level.order[p]); ++end) {
        space.run.push_back(demand.gains[static_cast<std::size_t>(level.order[end])]);
      }
      if (mean_) {
        const double sum = std::accumulate(space.run.begin(), space.run.end(), 0.0);
        value += sum * (demand.sums[end] - demand.sums[p]) / static_cast<long double>(end - p);
      } else {
        std::sort(space.run.begin(), space.run.end());
        for (std::size_t q = p; q < end; ++q) value += space.run[q - p] * (demand.sums[q + 1] - demand.sums[q]);
      }
    }
    return static_cast<double>(value);
  }

  // Whether weights meet the demands, as the caller finds it.
  bool decide(const Found& found) const {
    const nb::gil_scoped_acquire acquire;
    const nb::tuple card = described(found);
    return nb::cast<bool>(met_(card[1], card[2]));
  }

  // The largest value of a statistic of the rows in an order in which those of a block stay as they are.
  double bound_of(const Level& level, double slack, const std::vector<double>& gains,
                  const std::vector<long double>& all_sums, bool mean, Workspace& space) const {
    const auto blocks = static_cast<std::size_t>(level.blocks);
    if (space.pools.size() < blocks) {
      space.pools.resize(blocks);
      space.last.resize(blocks);
    }
    long double total = 0.0L;
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      for (std::size_t b = 0; b < blocks; ++b) {
        space.pools[b].clear();
        space.last[b] = kInfinity;
      }
      for (const std::int32_t at : in_best_order(level, l, slack, mean, space)) {
        const auto row = static_cast<std::size_t>(at), b = static_cast<std::size_t>(level.block[row]);
        std::vector<Pool>& pools = space.pools[b];
        const double key = mean ? total_of(level, at) : level.keys[row];
        if (mean && key == space.last[b]) {
          pools.back().gain += gains[row];
          pools.back().rows += 1.0;
          continue;
        }
        pool(pools);  // the rows before are complete
        pools.push_back({gains[row], 1.0});
        space.last[b] = key;
      }
      space.all.clear();
      for (std::size_t b = 0; b < blocks; ++b) {
        pool(space.pools[b]);
        space.all.insert(space.all.end(), space.pools[b].begin(), space.pools[b].end());
      }
      std::sort(space.all.begin(), space.all.end(), [](const Pool& a, const Pool& b) { return a.mean() > b.mean(); });
      const long double* sums = all_sums.data() + starts_[l] + l;
      std::size_t place = 0;
      for (const Pool& one : space.all) {
        const std::size_t end = place + static_cast<std::size_t>(one.rows);
        total += one.gain * (sums[end] - sums[place]) / one.rows;
        place = end;
      }
    }
    return static_cast<double>(total);
  }

  // The rows of a list by their keys; where their order is not known, larger gains first.
  std::span<const std::int32_t> in_best_order(const Level& level, std::size_t list, double slack, bool mean,
                                              Workspace& space) const {
    const std::size_t first = starts_[list], last = starts_[list + 1];
    space.merged.assign(level.order.begin() + static_cast<std::ptrdiff_t>(first),
                        level.order.begin() + static_cast<std::ptrdiff_t>(last));
    std::vector<std::int32_t>& rows = space.merged;
    const auto key = [&](std::size_t p) { return level.keys[static_cast<std::size_t>(rows[p])]; };
    for (std::size_t p = 0; !mean && p + 1 < rows.size();) {
      std::size_t end = p + 1;
      while (end < rows.size() && key(end - 1) - key(end) <= slack) ++end;
      if (end > p + 1) {
        std::stable_sort(rows.begin() + static_cast<std::ptrdiff_t>(p), rows.begin() + static_cast<std::ptrdiff_t>(end),
                         [&](std::int32_t a, std::int32_t b) {
                           return gains_[static_cast<std::size_t>(a)] > gains_[static_cast<std::size_t>(b)];
                         });
      }
      p = end;
    }
    return rows;
  }

  std::size_t d_, n_;
  std::vector<double> X_, gains_, handicaps_, weights_;  // X_ by columns
  std::vector<PointDemand> demands_;
  nb::object met_;
  std::vector<double> A_, b_;
  double loose_;
  int reach_;
  Multiples multiples_;
  bool mean_, exact_;
  double price_, tolerance_, handicap_ = 0.0;
  std::vector<std::size_t> starts_, values_;
  std::vector<long double> sums_;  // of the rank weights of each list, from 0 to all
  std::vector<std::int32_t> place_;
  std::vector<double> largest_;
  double threshold_ = kInfinity;
  std::size_t most_ = 0;
  std::atomic<double> value_{-kInfinity};
  std::mutex lock_;
  std::vector<double> limits_{kInfinity};  // before the search begins nothing is proven
  std::vector<std::size_t> at_;
  std::size_t next_ = 0;
  Found best_;
  std::vector<Found> collected_, undecided_;
  std::atomic<bool> full_{false};
  std::atomic<std::int64_t> visited_{0};
};

}  // namespace

void bind_points(nb::module_& module) {
  nb::class_<PointSearch>(module, "PointSearch", "The search of whole-number weights, see `ltr.exact.points`.")
      .def(nb::init<Rows<double>, Vector<double>, Vector<double>, Vector<std::int64_t>, Vector<double>, nb::list,
                    nb::object, Rows<double>, Vector<double>, double, int, int, bool, bool, double, double>(),
           nb::kw_only(), nb::arg("X"), nb::arg("gains"), nb::arg("handicaps"), nb::arg("starts"),
           nb::arg("rank_weights"), nb::arg("demands") = nb::list(), nb::arg("met") = nb::none(), nb::arg("A"),
           nb::arg("b"), nb::arg("loose"), nb::arg("reach"), nb::arg("multiples"), nb::arg("mean"), nb::arg("exact"),
           nb::arg("price"), nb::arg("tolerance"))
      .def("search", &PointSearch::search, nb::arg("sets"), nb::arg("bounds"), nb::arg("value"), nb::arg("threads"),
           nb::arg("stop").noconvert(), nb::arg("threshold") = kInfinity, nb::arg("most") = 0)
      .def("rise", &PointSearch::raise, nb::arg("value"))
      .def("undecided", &PointSearch::undecided)
      .def_prop_ro("bound", &PointSearch::bound)
      .def_prop_ro("best", &PointSearch::best)
      .def_prop_ro("collected", &PointSearch::collected)
      .def_prop_ro("full", &PointSearch::full)
      .def_prop_ro("visited", &PointSearch::visited);
}

}  // namespace ltr
