// Along w(t) = w + t v the pair (i, k) has the difference ``f_i - f_k + t (g_i - g_k)`` with f = X w, g = X v, so it
// changes between won and lost at one breakpoint ``t = (limit - f_i + f_k) / (g_i - g_k)``. Sorting the breakpoints and
// stepping through them visits every value the statistic takes on the line; a step changes a count of
// `ltr.exact.levels` by 1, in constant time as shown there.
#include <bit>

#include "line_search.h"

namespace ltr {
namespace {

constexpr std::size_t kPoll = 1u << 20;  // pairs between two checks of `stop`: some hundredths of a second
constexpr std::size_t kShortRow = 4;     // pairs per positive below which pairs are examined one by one
constexpr std::size_t kPerCell = 16;     // mean number of breakpoints in a cell
constexpr std::size_t kChunk = 512;      // pairs examined one by one whose breakpoints are computed at once

// Return the breakpoint of a pair that is won where ``t * slope >= required``: from there on if the slope is 0 or more,
// up to there otherwise. It is infinite where the pair is won, or lost, on the whole line.
[[gnu::always_inline]] inline double breakpoint(double required, double slope) {
  const double ratio = required / slope, flat = required <= 0.0 ? -kInfinity : kInfinity;
  return slope != 0.0 ? ratio : flat;
}

// Write slopes and breakpoints of the pairs of one upper observation to `slope` and `at`; return how many are lost just
// above `low`.
LTR_MULTIVERSION std::int64_t row_breakpoints(double f, double g, const double* lower_f, const double* lower_g,
                                              const double* limit, std::size_t n, double low, double* slope,
                                              double* at) {
  std::int64_t lost = 0;
  for (std::size_t k = 0; k < n; ++k) {
    slope[k] = g - lower_g[k];
    at[k] = breakpoint(limit[k] - f + lower_f[k], slope[k]);
    lost += (at[k] <= low) != (slope[k] >= 0.0);
  }
  return lost;
}

// The same for pairs of any two observations.
LTR_MULTIVERSION void pair_breakpoints(const double* f, const double* g, const std::int32_t* above,
                                       const std::int32_t* below, const double* limit, std::size_t n, double* slope,
                                       double* at) {
  for (std::size_t q = 0; q < n; ++q) {
    slope[q] = g[above[q]] - g[below[q]];
    at[q] = breakpoint(limit[q] - f[above[q]] + f[below[q]], slope[q]);
  }
}

// Write the group of each breakpoint: twice its cell, and 1 more where a pair is lost.
LTR_MULTIVERSION void find_groups(const double* at, const std::int32_t* item, std::size_t n, double low, double scale,
                                  double last, std::int32_t* group) {
  for (std::size_t e = 0; e < n; ++e) {
    const double place = (at[e] - low) * scale;
    group[e] = 2 * static_cast<std::int32_t>(place < last ? place : last) + (item[e] < 0 ? 1 : 0);
  }
}

LTR_MULTIVERSION void gather(const double* values, const std::int32_t* index, std::size_t n, double* gathered) {
  for (std::size_t k = 0; k < n; ++k) gathered[k] = values[index[k]];
}

LTR_MULTIVERSION std::int64_t count_lost(double f, const double* lower, const double* limit, double share,
                                         std::size_t n) {
  std::int64_t lost = 0;
  for (std::size_t k = 0; k < n; ++k) lost += lower[k] > f - share * limit[k];
  return lost;
}

// Computes the statistic from the numbers of pairs that the positives lose, and changes it as pairs change.
class Counter {
 public:
  explicit Counter(const Levels& levels)
      : contribution_(levels.contribution.begin(), levels.contribution.end()),
        fewer_(index(levels.counts_size)),
        least_(levels.least.begin(), levels.least.end()),
        penalty_(levels.penalty.begin(), levels.penalty.end()),
        room_(levels.least.size()),
        shift_(levels.shift) {
    std::vector<std::size_t> objective(levels.table.size());  // of each level
    for (std::size_t o = 0; o < levels.least.size(); ++o) {
      for (auto l = index(levels.first_level[o + 1]); l < objective.size(); ++l) ++objective[l];
    }
    for (const std::int64_t level : levels.level) {
      const auto l = index(level);
      places_.push_back({levels.table[l], levels.counts_at[l], objective[l]});
    }
    for (std::size_t l = 0; l < levels.table.size(); ++l) {
      if (levels.counts_at[l] < 0) continue;
      shared_.push_back({levels.table[l], levels.counts_at[l], levels.most_lost[l], objective[l]});
    }
    counts_.resize(places_.size());
  }

  std::size_t positives() const { return places_.size(); }
  std::span<std::int32_t> counts() { return counts_; }

  // Return the value of `counts` and prepare for changes of them.
  double value() {
    std::fill(fewer_.begin(), fewer_.end(), 0);
    for (std::size_t demand = 0; demand < room_.size(); ++demand) room_[demand] = -least_[demand];
    double value = shift_;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Place& place = places_[i];
      if (place.counts_at < 0) {
        of(place.objective, value) += contribution_[index(place.table + counts_[i])];
      } else {
        ++fewer_[index(place.counts_at + counts_[i] + 1)];
      }
    }
    for (const Shared& shared : shared_) {
      const double* table = contribution_.data() + shared.table;
      std::int32_t* fewer = fewer_.data() + shared.counts_at + 1;
      std::int32_t p = 0;
      double& sum = of(shared.objective, value);
      for (std::int64_t m = 0; m <= shared.most_lost; ++m) {
        for (const std::int32_t end = p + fewer[m]; p < end; ++p) sum += table[p + m];
        fewer[m] = p;
      }
    }
    for (std::size_t demand = 0; demand < room_.size(); ++demand) {
      value += penalty_[demand] * std::min(room_[demand], 0.0);
    }
    return value;
  }

  // Count a pair of positive i as won, or lost, from now on; return by how much the value changes.
  double win(std::size_t i) {
    const std::int32_t c = counts_[i]--;
    std::int64_t here = places_[i].table + c;
    if (places_[i].counts_at >= 0) here += fewer_[index(places_[i].counts_at + c)]++;
    const double* entry = contribution_.data() + here;
    return changed(places_[i].objective, entry[-1] - entry[0]);
  }

  double lose(std::size_t i) {
    const std::int32_t c = ++counts_[i];
    std::int64_t here = places_[i].table + c;
    if (places_[i].counts_at >= 0) here += --fewer_[index(places_[i].counts_at + c)];
    const double* entry = contribution_.data() + here;
    return changed(places_[i].objective, entry[0] - entry[-1]);
  }

 private:
  struct Place {
    std::int64_t table, counts_at;
    std::size_t objective;
  };
  struct Shared {  // a level of several positives
    std::int64_t table, counts_at, most_lost;
    std::size_t objective;
  };

  // The sum that levels of an objective add to: `value` for the first.
  double& of(std::size_t objective, double& value) { return objective == 0 ? value : room_[objective - 1]; }

  // Change the sum of an objective; return by how much the value changes.
  double changed(std::size_t objective, double change) {
    if (objective == 0) return change;
    double& room = room_[objective - 1];
    const double before = std::min(room, 0.0);
    room += change;
    return penalty_[objective - 1] * (std::min(room, 0.0) - before);
  }

  std::vector<double> contribution_;
  std::vector<std::int32_t> counts_, fewer_;
  std::vector<Place> places_;
  std::vector<Shared> shared_;
  std::vector<double> least_, penalty_, room_;  // of each demand; `room_` is its sum beyond the least one
  double shift_;
};

// Breakpoints on a segment: where, and the positive whose pair changes there: i if the pair is won from there on, else
// ~i. They are grouped by cells of equal width, and in each cell by whether the pair is won (group 2 cell) or lost
// (2 cell + 1).
class Breakpoints {
 public:
  explicit Breakpoints(std::size_t most)
      : at_(std::make_unique_for_overwrite<double[]>(most)),
        grouped_at_(std::make_unique_for_overwrite<double[]>(most)),
        item_(std::make_unique_for_overwrite<std::int32_t[]>(most)),
        grouped_item_(std::make_unique_for_overwrite<std::int32_t[]>(most)),
        group_(std::make_unique_for_overwrite<std::int32_t[]>(most)),
        start_(std::make_unique_for_overwrite<std::int32_t[]>(2 * (most / kPerCell + 1) + 2)) {}

  void clear() { size_ = 0; }
  std::size_t cells() const { return cells_; }
  double at(std::size_t e) const { return grouped_at_[e]; }
  std::int32_t item(std::size_t e) const { return grouped_item_[e]; }
  std::size_t start(std::size_t group) const { return index(start_[group]); }

  // Add those breakpoints of a positive's pairs that are inside the segment.
  void add(Segment segment, const double* at, const double* slope, std::size_t n, std::int32_t positive) {
    std::size_t size = size_;
    for (std::size_t k = 0; k < n; ++k) {  // without branches: they would be mispredicted too often
      at_[size] = at[k];
      item_[size] = positive ^ static_cast<std::int32_t>(std::bit_cast<std::int64_t>(slope[k]) >> 63);
      size += index((segment.low < at[k]) & (at[k] < segment.high));
    }
    size_ = size;
  }

  void group(Segment segment) {
    cells_ = size_ / kPerCell + 1;
    const double scale = static_cast<double>(cells_) / (segment.high - segment.low);
    find_groups(at_.get(), item_.get(), size_, segment.low, scale, static_cast<double>(cells_) - 1.0, group_.get());
    std::int32_t* const next = start_.get() + 1;  // where the next breakpoint of a group goes
    std::fill_n(start_.get(), 2 * cells_ + 2, 0);
    for (std::size_t e = 0; e < size_; ++e) ++next[index(group_[e]) + 1];
    for (std::size_t group = 1; group <= 2 * cells_; ++group) next[group] += next[group - 1];
    for (std::size_t e = 0; e < size_; ++e) {
      const auto to = index(next[group_[e]]++);
      grouped_at_[to] = at_[e];
      grouped_item_[to] = item_[e];
    }
  }

  // Sort the breakpoints of a group.
  void sort(std::size_t group) {
    const std::size_t first = start(group), end = start(group + 1);
    std::size_t gap = 1;
    while (3 * gap + 1 < (end - first) / 4) gap = 3 * gap + 1;  // Shell's gaps: breakpoints can crowd in a cell
    for (; gap >= 1; gap /= 3) {
      for (std::size_t e = first + gap; e < end; ++e) {
        const double key = grouped_at_[e];
        const std::int32_t item = grouped_item_[e];
        std::size_t to = e;
        for (; to >= first + gap && grouped_at_[to - gap] > key; to -= gap) {
          grouped_at_[to] = grouped_at_[to - gap];
          grouped_item_[to] = grouped_item_[to - gap];
        }
        grouped_at_[to] = key;
        grouped_item_[to] = item;
      }
    }
  }

 private:
  std::unique_ptr<double[]> at_, grouped_at_;
  std::unique_ptr<std::int32_t[]> item_, grouped_item_, group_, start_;
  std::size_t size_ = 0, cells_ = 0;
};

// Searches lines of scores f + t g for their best values.
class PairLines : public LineSearch {
 public:
  PairLines(const Pairs& pairs, const Levels& levels, Stop stop)
      : pairs_(pairs), counter_(levels), breakpoints_(pairs.positive.size()), stop_(stop) {
    if (pairs.positive.size() >= kShortRow * counter_.positives()) {
      find_rows();
    } else {
      alone_ = pairs.positive.size();
    }
    std::size_t longest = kChunk;
    for (const Row& row : rows_) longest = std::max(longest, row.size);
    for (auto* values : {&lower_f_, &lower_g_, &slope_, &at_}) values->resize(longest);
  }

  double value(std::span<const double> f, double share) override {
    const std::span<std::int32_t> counts = counter_.counts();
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t q = 0; q < alone_; ++q) {
      const bool lost = f[index(pairs_.below[q])] > f[index(pairs_.above[q])] - share * pairs_.limit[q];
      counts[index(pairs_.positive[q])] += lost;
    }
    const Row* previous = nullptr;
    for (const Row& row : rows_) {
      gather_lower(row, previous, f, {});
      previous = &row;
      counts[index(row.positive)] += static_cast<std::int32_t>(
          count_lost(f[index(row.above)], lower_f_.data(), pairs_.limit.data() + row.limit, share, row.size));
    }
    return counter_.value();
  }

  // Only some breakpoints need to be sorted. As the value falls with the counts, it is in no interval of a cell above
  // that with all pairs won that are won in the cell, and none lost. Where this is too low to matter, the pairs that
  // are lost in the cell follow, in any order, and the next cell is reached.
  Found search(std::span<const double> f, std::span<const double> g, Segment segment, double, double least,
               Random& random) override {
    const Found nothing{-kInfinity, segment.low};
    if (!(segment.high > segment.low) || stop_.asked() || !examine(f, g, segment)) return nothing;
    breakpoints_.group(segment);
    BestInterval best(segment, least, random);
    double value = counter_.value(), last = segment.low;
    std::size_t unchecked = 0;
    for (std::size_t cell = 0; cell < breakpoints_.cells(); ++cell) {
      const std::size_t won = breakpoints_.start(2 * cell), lost = breakpoints_.start(2 * cell + 1);
      const std::size_t end = breakpoints_.start(2 * cell + 2);
      unchecked += end - won;
      if (unchecked > kPoll) {
        if (stop_.asked()) return nothing;
        unchecked = 0;
      }
      const double before = value;
      for (std::size_t e = won; e < lost; ++e) value += counter_.win(index(breakpoints_.item(e)));
      if (value + tie_at(value) < best.needed()) {
        for (std::size_t e = lost; e < end; ++e) value += counter_.lose(index(~breakpoints_.item(e)));
        for (std::size_t e = won; e < end; ++e) last = std::max(last, breakpoints_.at(e));
        continue;
      }
      for (std::size_t e = won; e < lost; ++e) counter_.lose(index(breakpoints_.item(e)));
      value = before;
      breakpoints_.sort(2 * cell);
      breakpoints_.sort(2 * cell + 1);
      for (std::size_t win = won, lose = lost; win < lost || lose < end;) {
        const bool wins = lose == end || (win < lost && breakpoints_.at(win) <= breakpoints_.at(lose));
        const std::size_t e = wins ? win++ : lose++;
        best.consider(value, last, breakpoints_.at(e));
        value += wins ? counter_.win(index(breakpoints_.item(e))) : counter_.lose(index(~breakpoints_.item(e)));
        last = breakpoints_.at(e);
      }
    }
    best.consider(value, last, segment.high);
    return best.found();
  }

 private:
  // The pairs of one positive.
  struct Row {
    std::int32_t positive, above;
    std::size_t lower, limit, size;  // where the lower observations and the limits start, and how many there are
  };

  // Find the pairs of each positive. Positives with the same lower observations, or limits, share them.
  void find_rows() {
    for (std::size_t first = 0, end = 0; first < pairs_.positive.size(); first = end) {
      const std::int32_t positive = pairs_.positive[first], above = pairs_.above[first];
      while (end < pairs_.positive.size() && pairs_.positive[end] == positive) ++end;
      Row row{positive, above, first, first, end - first};
      if (!rows_.empty() && rows_.back().size == row.size) {
        const auto same = [&](auto values, std::size_t before) {
          return std::ranges::equal(values.subspan(first, row.size), values.subspan(before, row.size));
        };
        if (same(pairs_.below, rows_.back().lower)) row.lower = rows_.back().lower;
        if (same(pairs_.limit, rows_.back().limit)) row.limit = rows_.back().limit;
      }
      rows_.push_back(row);
    }
  }

  void gather_lower(const Row& row, const Row* previous, std::span<const double> f, std::span<const double> g) {
    if (previous && previous->lower == row.lower) return;
    gather(f.data(), pairs_.below.data() + row.lower, row.size, lower_f_.data());
    if (!g.empty()) gather(g.data(), pairs_.below.data() + row.lower, row.size, lower_g_.data());
  }

  // Find the breakpoints inside the segment, and count the pairs that are lost just above its lower end; return false
  // if the search was stopped.
  bool examine(std::span<const double> f, std::span<const double> g, Segment segment) {
    const std::span<std::int32_t> counts = counter_.counts();
    std::fill(counts.begin(), counts.end(), 0);
    breakpoints_.clear();
    std::size_t unchecked = 0;
    const auto stopped = [&](std::size_t pairs) {
      unchecked += pairs;
      if (unchecked < kPoll) return false;
      unchecked = 0;
      return stop_.asked();
    };
    for (std::size_t q = 0; q < alone_; q += kChunk) {
      const std::size_t n = std::min(kChunk, alone_ - q);
      if (stopped(n)) return false;
      pair_breakpoints(f.data(), g.data(), pairs_.above.data() + q, pairs_.below.data() + q, pairs_.limit.data() + q, n,
                       slope_.data(), at_.data());
      for (std::size_t k = 0; k < n; ++k) {
        breakpoints_.add(segment, &at_[k], &slope_[k], 1, pairs_.positive[q + k]);
        counts[index(pairs_.positive[q + k])] += (at_[k] <= segment.low) != (slope_[k] >= 0.0);
      }
    }
    const Row* previous = nullptr;
    for (const Row& row : rows_) {
      if (stopped(row.size)) return false;
      gather_lower(row, previous, f, g);
      previous = &row;
      counts[index(row.positive)] += static_cast<std::int32_t>(
          row_breakpoints(f[index(row.above)], g[index(row.above)], lower_f_.data(), lower_g_.data(),
                          pairs_.limit.data() + row.limit, row.size, segment.low, slope_.data(), at_.data()));
      breakpoints_.add(segment, at_.data(), slope_.data(), row.size, row.positive);
    }
    return true;
  }

  Pairs pairs_;
  Counter counter_;
  Breakpoints breakpoints_;
  Stop stop_;
  std::vector<Row> rows_;
  std::size_t alone_ = 0;  // pairs that are examined one by one, if positives have few pairs each
  std::vector<double> lower_f_, lower_g_, slope_, at_;  // of the lower observations, and the pairs, under examination
};

}  // namespace

std::unique_ptr<LineSearch> search_pairs(const Pairs& pairs, const Levels& levels, std::size_t observations,
                                         Stop stop) {
  require(pairs.positive.size() < (std::size_t{1} << 31), "fewer pairs");
  require_places(pairs.above, observations, "observations of pairs");
  require_places(pairs.below, observations, "observations of pairs");
  require_places(pairs.positive, levels.level.size(), "positives of pairs");
  return std::make_unique<PairLines>(pairs, levels, stop);
}

}  // namespace ltr
