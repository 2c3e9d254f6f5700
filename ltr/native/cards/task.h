// What a search of cards is asked for, and the value that a card must exceed to be of use.
#pragma once

#include <atomic>

#include "form.h"
#include "pairs.h"
#include "statistics.h"
#include "table.h"

namespace ltr {

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

}  // namespace ltr
