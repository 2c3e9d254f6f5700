// The sets of columns that may have good cards, best first.
#pragma once

#include <array>
#include <atomic>
#include <iterator>
#include <mutex>
#include <numeric>

#include "../arrays.h"
#include "../workers.h"
#include "task.h"

namespace ltr {

constexpr double kPrefixes = 4e6;      // parts of supports in memory at a time
constexpr double kCeilingWork = 2e9;   // words and rows looked at for a bound before the search
constexpr std::size_t kMostSteps = 8;  // of the gains, where parts of supports are bounded

// Lists the sets of columns of one size that may have good cards.
class CardListing {
 public:
  // The rows by their pattern of the first columns of a support.
  struct Parts {
    std::vector<std::uint64_t> bits;
    // of each statistic
    std::vector<Blocks> blocks;
    std::vector<std::vector<std::uint8_t>> pattern;  // of each row, of those of comparable pairs
  };

  // Columns that may follow those of a support, and bounds of the cards that have one of them and otherwise only later
  // ones.
  struct Candidates {
    std::vector<std::uint16_t> columns;
    std::vector<double> bounds;
    std::vector<double> gains, later;  // by candidate and mask: of one, and the largest of enough later ones to add one
    std::vector<double> least;         // of each mask
    int more = 0;
  };

  // The state of a listing, in one thread.
  struct Enumeration {
    Support support;
    std::vector<Parts> parts;
    std::vector<Candidates> candidates;  // of each number of columns
    int until = 0;                       // columns of the parts of supports that are asked for; 0 for whole supports
    std::vector<Support> found;
  };

  // A step from one gain to the next larger one: a pair of rows on both sides of it costs its height.
  struct Step {
    double height;              // difference of the gains above and below it
    std::vector<double> above;  // of each level, 1 where its gain is above
  };

  explicit CardListing(CardTask& task) : task_(task), steps_(steps_of(task.objective())) {}

  std::int64_t supports() const { return supports_; }

  Enumeration enumeration_of(int m, int until) const {
    return {{}, parts_of(m), std::vector<Candidates>(index(m)), until, {}};
  }

  // Look for the supports of m columns that may have good cards and begin with a part that was found before; `order`
  // are all columns in the order in which they are added. If stopped, return a bound of all that is left of these.
  double complete_prefix(int m, int size, const Support& prefix, const std::vector<std::uint16_t>& order,
                         const Stop& stop, Enumeration& work) {
    const double most = prefix.bound;
    work.support = prefix;
    for (int i = 0; i < size; ++i) {
      const auto at = index(i);
      split_parts(i, prefix.columns[at], work.parts[at], work.parts[at + 1]);
    }
    Candidates& of = work.candidates[index(size)];
    of.columns.clear();
    auto later = order.begin();
    if (size > 0) later = std::find(order.begin(), order.end(), prefix.columns[index(size - 1)]) + 1;
    std::copy_if(later, order.end(), std::back_inserter(of.columns),
                 [&](auto j) { return task_.form.allowed(prefix.columns, size, j); });
    bound_candidates(m, size, prefix, work.parts[index(size)], of);
    return extend(m, size, 0, of.columns.size(), most, stop, work);
  }

  // Look for supports of m columns that may have good cards, or parts of these: add to a support, which has some
  // columns, the candidates of its size from `begin` to `end`, and later ones. If stopped, return a bound of all that
  // is left of these.
  double extend(int m, int size, std::size_t begin, std::size_t end, double bound_of_all, const Stop& stop,
                Enumeration& work) {
    auto& [support, parts, candidates, until, found] = work;
    const Candidates& of = candidates[index(size)];
    double left = -kInfinity;
    for (std::size_t i = begin; i < end; ++i) {
      if (stop.asked()) {
        for (std::size_t rest = i; rest < end; ++rest) left = std::max(left, std::min(bound_of_all, of.bounds[rest]));
        return left;
      }
      const double most = std::min(bound_of_all, of.bounds[i]);
      if (most < task_.target()) continue;
      const std::size_t j = of.columns[i];
      const Parts& now = parts[index(size)];
      support.columns[index(size)] = static_cast<std::uint16_t>(j);
      if (size + 1 < m) {
        Candidates& after = candidates[index(size) + 1];
        follow(m, size, support, of, i, after.columns);
        if (static_cast<int>(after.columns.size()) < m - size - 1) continue;
        Parts& next = parts[index(size) + 1];
        split_parts(size, j, now, next);
        bound_candidates(m, size + 1, support, next, after);
        if (size + 1 != until) {
          left = std::max(left, extend(m, size + 1, 0, after.columns.size(), most, stop, work));
          continue;
        }
        const double bound = std::min(most, *std::max_element(after.bounds.begin(), after.bounds.end()));
        if (bound >= task_.target()) {
          found.push_back(support);
          found.back().bound = rounded_up(bound);
        }
        continue;
      }
      if (!task_.form.complete(support, m)) continue;
      supports_.fetch_add(1, std::memory_order_relaxed);
      // before there is a card, only the demands leave out supports
      const bool last = task_.target() == -kInfinity;
      double bound = last ? kInfinity : bound_of_support(0, support, m, now, j);
      if (bound < task_.target()) continue;
      bool open = true;
      for (std::size_t s = 1; s < task_.statistics.size() && open; ++s) {
        open = CardTask::reaches(task_.statistics[s], bound_of_support(s, support, m, now, j));
      }
      if (!open) continue;
      if (last) bound = bound_of_support(0, support, m, now, j);
      if (bound >= task_.target()) {
        found.push_back(support);
        found.back().bound = rounded_up(bound);
        std::sort(found.back().columns.begin(), found.back().columns.begin() + m);
      }
    }
    return left;
  }

  // The number of columns of parts of supports that are listed before whole ones: two less, so that the whole ones of
  // a part fit into memory, and fewer where there would be too many parts.
  int prefix_of(int m, std::size_t columns) const {
    if (m == 1) return 0;
    double parts = 1.0;
    int size = 0;
    for (; size < std::max(m - 2, 1); ++size) {
      parts *= static_cast<double>(columns - std::min(columns, index(size))) / (size + 1);
      if (size > 0 && parts > kPrefixes) break;
    }
    return size;
  }

  // List the parts of supports of m columns that may have good cards, best first. If stopped, return a bound of all.
  double list_prefixes(int m, int size, const Candidates& firsts, int threads, const Stop& stop,
                       std::vector<Support>& prefixes) {
    double left = -kInfinity;
    if (size == 0) {
      prefixes.push_back({.bound = rounded_up(task_.objective().perfect)});
      return task_.objective().perfect;
    }
    std::atomic<std::size_t> next{0};
    std::mutex lock;
    in_threads(threads, [&](std::size_t) {
      Enumeration work = enumeration_of(m, size);
      work.candidates[0] = firsts;
      double open = -kInfinity;
      while (true) {
        const std::size_t first = next++;
        if (first >= firsts.columns.size()) break;
        open = std::max(open, extend(m, 0, first, first + 1, kInfinity, stop, work));
      }
      const std::lock_guard guard(lock);
      left = std::max(left, open);
      prefixes.insert(prefixes.end(), work.found.begin(), work.found.end());
    });
    best_first(prefixes);
    return prefixes.empty() ? left : std::max(left, static_cast<double>(prefixes.front().bound));
  }

  // The columns that a card may have, those that order most pairs first, and bounds of the cards of m columns.
  Candidates first_candidates(int m) const {
    Candidates firsts;
    for (std::size_t j = 0; j < task_.table.columns(); ++j) {
      if (task_.form.allowed({}, 0, j)) firsts.columns.push_back(static_cast<std::uint16_t>(j));
    }
    const std::vector<Parts> parts = parts_of(1);
    bound_candidates(m, 0, {}, parts[0], firsts);
    if (firsts.least.empty()) return firsts;
    std::vector<std::size_t> order(firsts.columns.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return firsts.gains[a] > firsts.gains[b]; });
    std::vector<std::uint16_t> columns;
    for (const std::size_t at : order) columns.push_back(firsts.columns[at]);
    firsts.columns = std::move(columns);
    bound_candidates(m, 0, {}, parts[0], firsts);
    return firsts;
  }

  // A bound of the cards of m columns from what one or two of them cannot order, for before they are searched.
  double ceiling(int m, int threads, const Stop& stop) {
    const double most = task_.objective().perfect - task_.price * m;
    if (m == 1 || !has_pairs()) return most;
    task_.prepare(2);
    const Candidates firsts = first_candidates(m);
    const auto columns = static_cast<double>(firsts.columns.size());
    const double work = columns * columns * columns *
                        static_cast<double>(task_.table.words() + (task_.objective().pairs ? task_.table.n() : 0));
    std::vector<Support> prefixes;
    return std::min(most, list_prefixes(m, m > 2 && work < kCeilingWork ? 2 : 1, firsts, threads, stop, prefixes));
  }

  // Whether pairs of rows are all that the objective is about, and they can be counted by few steps of the gains.
  bool has_pairs() const { return task_.objective().pairs || !steps_.empty(); }

  static void best_first(std::vector<Support>& supports) {
    std::sort(supports.begin(), supports.end(), [](const Support& a, const Support& b) {
      return a.bound != b.bound ? a.bound > b.bound : a.columns < b.columns;
    });
  }

 private:
  std::vector<Step> steps_of(const CardStatistic& of) const {
    std::vector<double> gains = of.gains;
    std::sort(gains.begin(), gains.end());
    gains.erase(std::unique(gains.begin(), gains.end()), gains.end());
    std::vector<Step> steps;
    if (of.pairs || of.slope == 0.0 || gains.size() > kMostSteps + 1) return steps;
    for (std::size_t i = 1; i < gains.size(); ++i) {
      Step& step = steps.emplace_back(Step{gains[i] - gains[i - 1], {}});
      for (const double gain : of.gains) step.above.push_back(gain >= gains[i] ? 1.0 : 0.0);
    }
    return steps;
  }

  // The parts of each number of columns below m, those of no column filled in.
  std::vector<Parts> parts_of(int m) const {
    std::vector<Parts> parts(index(m));
    for (int i = 0; i < m; ++i) {
      parts[index(i)].bits.resize(task_.table.words() << i);
      parts[index(i)].blocks.resize(task_.statistics.size());
      for (const CardStatistic& of : task_.statistics) {
        parts[index(i)].pattern.emplace_back(of.pairs ? of.pairs->rows() : 0, 0);
      }
    }
    parts[0].bits = task_.table.all();
    for (std::size_t s = 0; s < task_.statistics.size(); ++s)
      parts[0].blocks[s][0] = task_.table.block_of(task_.statistics[s].gains, task_.table.all().data());
    return parts;
  }

  // Fill the blocks of a support from the parts of its columns but the last, and their blocks.
  void count(const CardStatistic& statistic, const std::uint64_t* parts, const Block* before, int size, std::size_t j,
             Block* blocks) const {
    task_.table.count(parts, size, statistic.gains, task_.table.column(j), blocks + size);
    for (int p = 0; p < size; ++p) {
      const Block& with = blocks[p + size];
      // the gains of a block of one level are exact, differences of sums are within rounding
      blocks[p] = {before[p].count - with.count, before[p].count == with.count ? 0.0 : before[p].gain - with.gain};
    }
  }

  // Fill in the pairs of rows by the patterns of the columns that a support has, and for each step its blocks.
  void count_pairs_of(const Parts& now, int size, PatternPairs& all, std::vector<Blocks>& blocks) const {
    if (const auto& pairs = task_.objective().pairs) {
      thread_local PairCounts counts;
      pairs->count(now.pattern[0].data(), size, counts);
      for (std::size_t p = 0; p < all.patterns(); ++p) {
        for (std::size_t q = 0; q < all.patterns(); ++q) all(p, q) = static_cast<double>(counts[p][q]);
      }
    }
    blocks.resize(steps_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      // the gain of a block is the number of rows above the step
      task_.table.count(now.bits.data(), 1 << size, steps_[s].above, task_.table.all().data(), blocks[s].data());
      for (std::size_t p = 0; p < all.patterns(); ++p) {
        for (std::size_t q = 0; q < all.patterns(); ++q) {
          all(p, q) += steps_[s].height * blocks[s][p].gain * (blocks[s][q].count - blocks[s][q].gain);
        }
      }
    }
  }

  // Fill in the pairs of rows of which only the first has a column, or, if it counts down, only the second; `blocks`
  // are those of `count_pairs_of`.
  void count_separated(const Parts& now, int size, std::size_t j, const std::vector<Blocks>& blocks, PatternPairs& up,
                       PatternPairs& down) const {
    const std::size_t patterns = up.patterns();
    if (const auto& pairs = task_.objective().pairs) {
      thread_local std::vector<std::uint8_t> pattern;
      thread_local PairCounts counts;
      pattern.resize(pairs->rows());
      pairs->split(now.pattern[0].data(), j, size, pattern.data());
      pairs->count(pattern.data(), size + 1, counts);
      for (std::size_t p = 0; p < patterns; ++p) {
        for (std::size_t q = 0; q < patterns; ++q) {
          up(p, q) = static_cast<double>(counts[p + patterns][q]);
          down(p, q) = static_cast<double>(counts[p][q + patterns]);
        }
      }
      return;
    }
    up.clear();
    down.clear();
    Blocks with;
    std::array<double, kPatterns> has, lacks;  // of the rows below a step, those with the column, and without it
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      task_.table.count(now.bits.data(), 1 << size, steps_[s].above, task_.table.column(j), with.data());
      const double height = steps_[s].height;
      for (std::size_t q = 0; q < patterns; ++q) {
        has[q] = with[q].count - with[q].gain;
        lacks[q] = blocks[s][q].count - blocks[s][q].gain - has[q];
      }
      for (std::size_t p = 0; p < patterns; ++p) {
        up.add(p, height * with[p].gain, lacks);
        down.add(p, height * (blocks[s][p].gain - with[p].gain), has);
      }
    }
  }

  // Fill in the bounds of candidates; `now` are the parts of the columns that a support has.
  void bound_candidates(int m, int size, const Support& support, const Parts& now, Candidates& of) const {
    const double most = task_.objective().perfect - task_.price * m;
    of.more = m - size;
    of.least.clear();
    of.bounds.assign(of.columns.size(), most);
    if (of.more < 2 || !has_pairs()) return;
    PatternPairs all(size), up(size), down(size);
    std::vector<Blocks> blocks;
    count_pairs_of(now, size, all, blocks);
    const SignTree* tree = size > 0 ? &task_.tree(size) : nullptr;
    PrefixCosts costs(tree, size, of.more, all, task_.objective().ties_lost ? 1.0 : 0.5);
    const std::size_t masks = costs.least.size();
    of.gains.assign(of.columns.size() * masks, -kInfinity);
    of.later.resize(of.columns.size() * masks);
    for (std::size_t i = 0; i < of.columns.size(); ++i) {
      const std::size_t j = of.columns[i];
      count_separated(now, size, j, blocks, up, down);
      if ((task_.form.signs(j) & 1U) != 0) costs.raise(up, of.gains.data() + i * masks);
      if ((task_.form.signs(j) & 2U) != 0) costs.raise(down, of.gains.data() + i * masks);
    }
    for (std::size_t mask = 0; mask < masks; ++mask) {
      if (!task_.form.possible(support, size, static_cast<int>(mask))) costs.least[mask] = kInfinity;
    }
    of.least = costs.least;
    // the largest gains of later candidates, descending
    std::vector<std::array<double, kLargest>> top(masks);
    for (auto& gains : top) gains.fill(0.0);
    for (std::size_t i = of.columns.size(); i-- > 0;) {
      double cost = kInfinity;
      for (std::size_t mask = 0; mask < masks; ++mask) {
        double gain = of.gains[i * masks + mask], sum = 0.0;
        for (int t = 0; t < of.more - 2; ++t) sum += top[mask][index(t)];
        of.later[i * masks + mask] = sum;
        cost = std::min(cost, of.least[mask] - gain - sum - top[mask][index(of.more - 2)]);
        for (int t = 0; t < of.more - 1; ++t) {
          if (gain > top[mask][index(t)]) std::swap(gain, top[mask][index(t)]);
        }
      }
      of.bounds[i] = std::min(most, bound_of_cost(cost, m));
    }
  }

  // The value of a card of m questions whose pairs cost so much; rounding of sums of other numbers is allowed for.
  double bound_of_cost(double cost, int m) const {
    return task_.objective().perfect - task_.objective().slope * cost - task_.price * m +
           (steps_.size() > 1 ? task_.tolerance() : 0.0);
  }

  // The candidates after the one at i that may be on a card together with it.
  void follow(int m, int size, const Support& support, const Candidates& of, std::size_t i,
              std::vector<std::uint16_t>& rest) const {
    const std::size_t masks = of.least.size();
    rest.clear();
    for (std::size_t other = i + 1; other < of.columns.size(); ++other) {
      if (!task_.form.allowed(support.columns, size + 1, of.columns[other])) continue;
      double cost = masks > 0 ? kInfinity : 0.0;
      for (std::size_t mask = 0; mask < masks; ++mask) {
        cost = std::min(cost, of.least[mask] - of.gains[i * masks + mask] - of.gains[other * masks + mask] -
                                  of.later[i * masks + mask]);
      }
      if (masks == 0 || bound_of_cost(cost, m) >= task_.target()) rest.push_back(of.columns[other]);
    }
  }

  // Add a column to the parts of so many others.
  void split_parts(int size, std::size_t j, const Parts& now, Parts& next) const {
    task_.table.split(now.bits.data(), 1 << size, j, next.bits.data());
    for (std::size_t s = 0; s < task_.statistics.size(); ++s) {
      count(task_.statistics[s], now.bits.data(), now.blocks[s].data(), 1 << size, j, next.blocks[s].data());
      if (!task_.statistics[s].pairs) continue;
      task_.statistics[s].pairs->split(now.pattern[s].data(), j, size, next.pattern[s].data());
    }
  }

  // A bound of a statistic for all cards of a support; `now` are the parts of its columns but the last, which is j.
  double bound_of_support(std::size_t s, const Support& support, int m, const Parts& now, std::size_t j) const {
    const CardStatistic& statistic = task_.statistics[s];
    const double price = s == 0 ? task_.price * m : 0.0;
    if (statistic.pairs) {
      thread_local std::vector<std::uint8_t> pattern;
      thread_local PairCounts counts;
      pattern.resize(statistic.pairs->rows());
      statistic.pairs->split(now.pattern[s].data(), j, m - 1, pattern.data());
      statistic.pairs->count(pattern.data(), m, counts);
      return task_.bound_of_pairs(statistic, support, m, task_.costs_of(statistic, m, nullptr, counts)) - price;
    }
    Blocks blocks;
    count(statistic, now.bits.data(), now.blocks[s].data(), 1 << (m - 1), j, blocks.data());
    const double bound = statistic.bound_of(blocks.data(), 1 << m) - price;
    const bool open = s == 0 ? bound >= task_.target() : CardTask::reaches(statistic, bound);
    if (!open || statistic.slope == 0.0) return bound;
    thread_local const PairCounts none{};
    return std::min(
        bound, task_.bound_of_pairs(statistic, support, m, task_.costs_of(statistic, m, blocks.data(), none)) - price);
  }

  static float rounded_up(double bound) {
    return std::nextafter(static_cast<float>(bound), std::numeric_limits<float>::infinity());
  }

  CardTask& task_;
  std::vector<Step> steps_;  // of the gains of the objective, where pairs are all that it is about
  std::atomic<std::int64_t> supports_{0};
};

}  // namespace ltr
