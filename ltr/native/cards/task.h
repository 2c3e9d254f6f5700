// What a search of cards is asked for, the value that a card must exceed to be of use, and what is found.
#pragma once

#include <array>
#include <atomic>

#include "pairs.h"
#include "table.h"

namespace ltr {

// A rule on the columns of a card: where it has one of `when`, or in any case if that is empty, `least` to `most` of
// some columns must be among its own.
struct Rule {
  std::vector<std::uint8_t> of, when;  // 1 for each column that is meant; `when` may be empty
  int least = 0, most = kLargest;
};

// A set of columns, or a part of one, with a bound of its cards.
struct Support {
  float bound = 0.0F;  // rounded up
  std::array<std::uint16_t, kLargest> columns{};
};

// Which columns a card may have, and which way their points may go.
class CardForm {
 public:
  // Args:
  //   signs: of each column: bit 0 and bit 1 tell whether it may count up and down.
  //   directions: of each column, number of the group whose points must have one sign, or -1.
  CardForm(std::span<const std::uint8_t> signs, std::span<const std::int32_t> directions, std::vector<Rule> rules)
      : signs_(signs.begin(), signs.end()),
        directions_(directions.begin(), directions.end()),
        rules_(std::move(rules)) {
    for (const std::uint8_t of : signs_) require(of <= 3, "signs");
    for (const Rule& rule : rules_) {
      if (!rule.when.empty() || rule.least == 0 || std::count(rule.of.begin(), rule.of.end(), 1) != 1) continue;
      const auto j = static_cast<std::uint16_t>(std::find(rule.of.begin(), rule.of.end(), 1) - rule.of.begin());
      if (std::find(needed_.begin(), needed_.end(), j) == needed_.end()) needed_.push_back(j);
    }
  }

  unsigned signs(std::size_t j) const { return signs_[j]; }
  const std::vector<std::uint16_t>& needed() const { return needed_; }

  // Whether a column may be added to some: no rule has too many of them.
  bool allowed(const std::array<std::uint16_t, kLargest>& columns, int size, std::size_t j) const {
    if (signs_[j] == 0) return false;
    return std::all_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
      if (rule.of[j] == 0) return true;
      const auto end = columns.begin() + size;
      const auto counted = std::count_if(columns.begin(), end, [&](auto c) { return rule.of[c] != 0; });
      return counted < rule.most || !(holds(rule, columns, size) || (!rule.when.empty() && rule.when[j] != 0));
    });
  }

  // Whether a card may have exactly these columns.
  bool complete(const Support& support, int m) const {
    return std::all_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
      if (!holds(rule, support.columns, m)) return true;
      const auto end = support.columns.begin() + m;
      const auto counted = std::count_if(support.columns.begin(), end, [&](auto c) { return rule.of[c] != 0; });
      return rule.least <= counted && counted <= rule.most;
    });
  }

  // Whether the columns of a mask may count down and the others up.
  bool possible(const Support& support, int m, int mask) const {
    for (int i = 0; i < m; ++i) {
      const std::size_t j = support.columns[index(i)];
      if ((signs_[j] >> (mask >> i & 1) & 1) == 0) return false;
      for (int k = 0; k < i && directions_[j] >= 0; ++k) {
        const bool alike = directions_[support.columns[index(k)]] == directions_[j];
        if (alike && (mask >> i & 1) != (mask >> k & 1)) return false;
      }
    }
    return true;
  }

 private:
  // Whether a rule is one for these columns.
  static bool holds(const Rule& rule, const std::array<std::uint16_t, kLargest>& columns, int size) {
    return rule.when.empty() ||
           std::any_of(columns.begin(), columns.begin() + size, [&](auto c) { return rule.when[c] != 0; });
  }

  std::vector<std::uint8_t> signs_;
  std::vector<std::int32_t> directions_;
  std::vector<Rule> rules_;
  std::vector<std::uint16_t> needed_;  // columns that every card has
};

constexpr double kTolerance = 2e-13;

struct CardProblem {
  CardTable table;
  CardForm form;
  std::vector<CardStatistic> statistics;  // that of the objective, and those of the demands
  int fewest, most;                       // points that a column of a card may have, up to their sign
  double price;
  Met met;  // of cards
};

// A search of cards. Threads share it: they change nothing but `floor`.
struct CardTask : CardProblem {
  explicit CardTask(CardProblem problem) : CardProblem(std::move(problem)) {}

  std::vector<std::vector<Orders>> orders{kLargest + 1};  // by number of columns, made when they are needed
  std::vector<std::vector<SignTree>> trees{kLargest + 1};
  double threshold = kInfinity;           // least value of the cards to collect; infinity to collect none
  std::atomic<double> floor{-kInfinity};  // below which nothing is of use where none are collected

  const CardStatistic& objective() const { return statistics.front(); }
  double tolerance() const { return kTolerance * std::abs(objective().perfect); }
  const SignTree& tree(int m) const { return trees[index(m)].front(); }
  const Orders& order(int m) const { return orders[index(m)].front(); }

  // The value below which supports and nodes are left out.
  double target() const {
    return threshold < kInfinity ? threshold - tolerance() : floor.load(std::memory_order_relaxed);
  }

  // Raise the value below which nothing is of use.
  void raise(double value) {
    for (double known = floor.load(); known < value && !floor.compare_exchange_weak(known, value);) {
    }
  }

  // Whether all statistics are about pairs of rows alone: rank weights fall by the same amount from place to place.
  bool all_fall() const {
    return std::all_of(statistics.begin(), statistics.end(), [](const auto& of) { return of.slope > 0.0; });
  }

  // Whether a card with this value of a demand's statistic meets the demand, up to rounding.
  static bool reaches(const CardStatistic& demand, double value) {
    return value >= demand.least - kTolerance * std::abs(demand.perfect);
  }

  // Whether a bound of a statistic of cards of m columns says that they may be of use.
  bool open(std::size_t s, double bound, int m) const {
    return s == 0 ? bound - price * m >= target() : reaches(statistics[s], bound);
  }

  // Whether a card with this value of a demand's statistic meets the demand; if rounding decides, it is not certain.
  static bool meets(const CardStatistic& demand, double value, bool& certain) {
    certain = certain && value > demand.least + kTolerance * std::abs(demand.perfect);
    return reaches(demand, value);
  }

  // Make the orders and signs of up to m columns.
  void prepare(int m) {
    const auto size = index(m);
    const auto falls = [](const CardStatistic& statistic) { return statistic.slope > 0.0; };
    for (int some = 1; some <= m && std::any_of(statistics.begin(), statistics.end(), falls); ++some) {
      if (auto& of = trees[index(some)]; of.empty()) of.emplace_back(some, fewest, most);
    }
    if (orders[size].empty() && !all_fall()) orders[size].emplace_back(m, fewest, most);
  }

  PairCosts costs_of(const CardStatistic& of, int m, const Block* blocks, const PairCounts& counts) const {
    const SignTree& signs = tree(m);
    if (of.pairs) return {signs, m, counts, of.pairs->pairs(), of.ties_lost};
    return {signs, m, blocks, of.low, of.high, of.ties_lost};
  }

  // The value of a statistic whose pairs cost so much.
  static double value_of_cost(const CardStatistic& statistic, const PairCosts& costs, double cost) {
    return statistic.first * costs.gain - statistic.slope * (costs.least + cost);
  }

  double bound_of_pairs(const CardStatistic& statistic, const Support& support, int m, const PairCosts& costs) const {
    const SignTree& signs = tree(m);
    double least = kInfinity;
    for (int mask = 0; mask < 1 << m; ++mask) {
      if (form.possible(support, m, mask)) least = std::min(least, costs.known(signs, mask));
    }
    return value_of_cost(statistic, costs, least);
  }
};

// The best place of a row, or for the worst place the number of rows below it, and a card with that.
struct Extreme {
  std::int64_t place = std::numeric_limits<std::int64_t>::max();
  FoundWeights card;

  void improve(const Extreme& other) {
    if (other.place < place || (other.place == place && other.card.before(card))) *this = other;
  }
};

// The cards that a search has found; its threads share them.
class FoundCards : public FoundSoFar {
 public:
  explicit FoundCards(CardTask& task) : FoundSoFar(task.tolerance()), task_(task) {}

  // Find the places of the rows that `tracked` marks as bits.
  void track(std::vector<std::uint64_t> tracked) {
    placing = true;
    good = 0;
    this->tracked = std::move(tracked);
    extremes.assign(task_.table.n(), {});
  }

  void offer(const FoundWeights& card) {
    if (FoundSoFar::offer(card)) task_.raise(card.value - task_.tolerance());
  }

  // Take the places that one thread has found.
  void merge(std::int64_t more, const std::vector<std::array<Extreme, 2>>& of) {
    const std::lock_guard guard(places_lock_);
    good += more;
    for (std::size_t i = 0; i < of.size(); ++i) {
      for (std::size_t end = 0; end < 2; ++end) extremes[i][end].improve(of[i][end]);
    }
  }

  // of places of rows
  bool placing = false;
  std::int64_t good = 0;                         // cards
  std::vector<std::uint64_t> tracked;            // bits of the rows
  std::vector<std::array<Extreme, 2>> extremes;  // of each row

 private:
  CardTask& task_;
  std::mutex places_lock_;
};

}  // namespace ltr
