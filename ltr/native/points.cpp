#include "points.h"

#include <atomic>
#include <mutex>
#include <numeric>

#include "pools.h"
#include "workers.h"

namespace ltr {
namespace {

constexpr std::size_t kMerged = 8;         // most values of a column for which sorted parts are merged
constexpr std::int64_t kMostBlocks = 512;  // of a bound
constexpr std::size_t kMostUndecided = 100'000;

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

class Points : public PointSearch {
 public:
  explicit Points(PointProblem problem)
      : problem_(std::move(problem)), d_(problem_.X.rows), n_(problem_.X.columns), gains_(problem_.gains) {
    for (const std::int64_t at : problem_.starts) starts_.push_back(index(at));
    for (std::size_t l = 0; l + 1 < starts_.size(); ++l) {
      add_up(problem_.rank_weights.subspan(starts_[l], starts_[l + 1] - starts_[l]), sums_);
    }
    for (PointDemand& demand : problem_.demands) add_up(demand.rank_weights, demand.sums);
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

  bool search(Matrix<const std::int64_t> all, std::span<const double> limits, double value, int threads,
              const Stop& asked, double threshold, std::size_t most) override {
    threshold_ = threshold;
    most_ = most;
    raise(value);
    {
      const std::lock_guard guard(lock_);
      limits_.assign(limits.begin(), limits.end());
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

  void raise(double value) override {
    for (double known = value_.load(); known < value && !value_.compare_exchange_weak(known, value);) {
    }
  }

  double bound() override {
    const std::lock_guard guard(lock_);
    std::size_t first = next_;
    for (const std::size_t s : at_) first = std::min(first, s);
    return first < limits_.size() ? limits_[first] : -kInfinity;
  }

  FoundPoint best() override {
    const std::lock_guard guard(lock_);
    return best_;
  }
  std::vector<FoundPoint> collected() override {
    const std::lock_guard guard(lock_);
    return collected_;
  }
  std::vector<FoundPoint> undecided() override {
    const std::lock_guard guard(lock_);
    return std::exchange(undecided_, {});
  }
  bool full() const override { return full_; }
  std::int64_t visited() const override { return visited_; }

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
      for (const PointDemand& demand : problem_.demands) {
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
    FoundPoint found{.value = static_cast<double>(total) - problem_.price * static_cast<double>(space.size),
                     .size = space.size};
    if (found.value < least()) return;
    bool doubtful = false;
    for (const PointDemand& demand : problem_.demands) {
      const double value = value_of(demand, level, space);
      if (value < demand.least - demand.room) return;
      doubtful = doubtful || value <= demand.least + demand.room;
    }
    std::array<std::size_t, kMostColumns> order{};
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.begin() + space.size,
              [&](std::size_t a, std::size_t b) { return space.columns[a] < space.columns[b]; });
    for (std::size_t i = 0; i < space.size; ++i) {
      found.columns[i] = space.columns[order[i]];
      found.weights[i] = space.weights[order[i]];
    }
    certain = certain && side(space, -problem_.loose);
    if (doubtful && !problem_.met(found)) return;
    const std::lock_guard guard(lock_);
    if (!certain) {
      if (undecided_.size() < kMostUndecided) {
        undecided_.push_back(found);
      } else {
        full_ = true;
      }
      return;
    }
    if (threshold_ < kInfinity && found.value >= threshold_ - problem_.tolerance) {
      if (collected_.size() < most_) {
        collected_.push_back(found);
      } else {
        full_ = true;
      }
    }
    const double difference = found.value - best_.value;
    if (difference > problem_.tolerance || (std::abs(difference) <= problem_.tolerance && found.before(best_))) {
      best_ = found;
      raise(found.value);
    }
  }

  // The total of a row, in exact keys.
  static double total_of(const Level& level, std::int32_t row) { return std::ceil(level.keys[index(row)]); }

  // The value of a demand's statistic in the order of a level.
  double value_of(const PointDemand& demand, const Level& level, Workspace& space) const {
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

  PointProblem problem_;
  std::size_t d_, n_;
  std::span<const double> gains_;
  double handicap_ = 0.0;
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
  FoundPoint best_;
  std::vector<FoundPoint> collected_, undecided_;
  std::atomic<bool> full_{false};
  std::atomic<std::int64_t> visited_{0};
};

}  // namespace

std::unique_ptr<PointSearch> search_points(PointProblem problem) {
  return std::make_unique<Points>(std::move(problem));
}

}  // namespace ltr
