// A statistic of the cards of a problem: that of the objective, or one that a demand asks a least value of.
//
// It is a rank statistic, or the share of comparable pairs in order, of times until an event. Row i is comparable with
// row k where event_i and order_i < order_k (`ltr.outcomes`). Of the rows of a support, by their patterns p and q, only
// the numbers of pairs (p, q) matter. One pass over the rows, latest first, finds them all: it keeps how many rows of
// each pattern are later, and adds these counts at each row with an event.
#pragma once

#include <array>
#include <memory>
#include <numeric>

#include "../arrays.h"
#include "orders.h"

namespace ltr {

// Numbers of comparable pairs by the patterns of the first and the second row.
using PairCounts = std::array<std::array<std::int64_t, kPatterns>, kPatterns>;

// Add up pairs for rows in the order of the pass: `last` marks the last of the rows with the same order.
LTR_MULTIVERSION static void count_pairs(const std::uint8_t* pattern, const std::uint8_t* event,
                                         const std::uint8_t* last, std::size_t rows, std::size_t patterns,
                                         PairCounts& counts) {
  std::array<std::int64_t, kPatterns> later{};
  std::size_t start = 0;  // of the rows that are not yet among the later ones
  for (std::size_t i = 0; i < rows; ++i) {
    if (event[i] != 0) {
      auto& of = counts[pattern[i]];
      for (std::size_t q = 0; q < patterns; ++q) of[q] += later[q];
    }
    if (last[i] == 0) continue;
    for (; start <= i; ++start) ++later[pattern[start]];
  }
}

class Comparisons {
 public:
  // Args: order: of each row; event: 1 for rows with an event; X: answers of the rows.
  Comparisons(std::span<const std::int32_t> order, std::span<const std::uint8_t> event, Matrix<const std::uint8_t> X)
      : rows_(order.size()) {
    std::iota(rows_.begin(), rows_.end(), std::size_t{0});
    std::stable_sort(rows_.begin(), rows_.end(), [&](std::size_t a, std::size_t b) { return order[a] > order[b]; });
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      event_.push_back(event[rows_[i]]);
      last_.push_back(i + 1 == rows_.size() || order[rows_[i + 1]] != order[rows_[i]]);
    }
    answers_.resize(X.columns * rows_.size());
    for (std::size_t j = 0; j < X.columns; ++j) {
      for (std::size_t i = 0; i < rows_.size(); ++i) answers_[j * rows_.size() + i] = X(rows_[i], j) != 0;
    }
    PairCounts all{};
    count(std::vector<std::uint8_t>(rows_.size(), 0).data(), 0, all);
    pairs_ = static_cast<double>(all[0][0]);
  }

  std::size_t rows() const { return rows_.size(); }
  double pairs() const { return pairs_; }

  // Give the rows their pattern of one more column, the i-th of a support; `before` is that of the columns so far.
  void split(const std::uint8_t* before, std::size_t column, int i, std::uint8_t* pattern) const {
    const std::uint8_t* answers = answers_.data() + column * rows_.size();
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      pattern[r] = static_cast<std::uint8_t>(before[r] | answers[r] << i);
    }
  }

  // Count the pairs by the patterns of m columns.
  void count(const std::uint8_t* pattern, int m, PairCounts& counts) const {
    const std::size_t patterns = std::size_t{1} << m;
    for (std::size_t p = 0; p < patterns; ++p) std::fill_n(counts[p].begin(), patterns, 0);
    count_pairs(pattern, event_.data(), last_.data(), rows_.size(), patterns, counts);
  }

 private:
  std::vector<std::size_t> rows_;  // latest first
  std::vector<std::uint8_t> event_, last_, answers_;
  double pairs_ = 0.0;
};

using Blocks = std::array<Block, kPatterns>;  // by pattern

struct CardStatistic {
  std::vector<double> gains;        // of each level of rows
  std::vector<double> sums;         // of the first so many rank weights
  double low = 0.0, high = 0.0;     // gains of the two levels where ties are lost
  double first = 0.0, slope = 0.0;  // the first rank weight, and what each loses; 0 if that is not always the same
  double perfect;                   // value of a perfect order
  double least;                     // value that a demand asks for, -infinity for the objective
  bool ties_lost;
  std::shared_ptr<const Comparisons> pairs;  // whose share in order it is; null for a rank statistic

  // The share of comparable pairs in order; `levels` is the number of levels of rows.
  CardStatistic(std::shared_ptr<const Comparisons> of, std::size_t levels, double least_value, bool lost)
      : gains(levels, 0.0), perfect(1.0), least(least_value), ties_lost(lost), pairs(std::move(of)) {
    require(pairs->pairs() > 0.0, "pairs");
    first = slope = 1.0 / pairs->pairs();
  }

  CardStatistic(std::span<const double> gains_of, std::span<const double> weights, double perfect_value,
                double least_value, bool lost)
      : gains(gains_of.begin(), gains_of.end()), perfect(perfect_value), least(least_value), ties_lost(lost) {
    low = *std::min_element(gains.begin(), gains.end());
    high = *std::max_element(gains.begin(), gains.end());
    for (const double gain : gains) require(!lost || gain == low || gain == high, "two gains where ties are lost");
    sums.assign(weights.size() + 1, 0.0);
    double error = 0.0;  // what rounding takes from the sums (Kahan)
    for (std::size_t r = 0; r < weights.size(); ++r) {
      const double term = weights[r] - error;
      sums[r + 1] = sums[r] + term;
      error = (sums[r + 1] - sums[r]) - term;
    }
    first = weights[0];
    slope = weights.size() > 1 ? (first - weights.back()) / static_cast<double>(weights.size() - 1) : 0.0;
    for (std::size_t r = 0; r < weights.size(); ++r) {
      if (std::abs(first - slope * static_cast<double>(r) - weights[r]) > 1e-15 * first) slope = 0.0;
    }
  }

  double between(double begin, double end) const { return sums[index(end)] - sums[index(begin)]; }

  // The contribution of rows with equal totals, from the place `begin` on.
  double value_of(const Block& block, double begin) const {
    if (block.count == 0.0) return 0.0;
    if (!ties_lost) return block.share() * between(begin, begin + block.count);
    const double unit = high - low;  // what the upper level gains beyond the lower one
    const double upper = unit > 0.0 ? (block.gain - low * block.count) / unit : 0.0;
    const double end = begin + block.count;
    return low * between(begin, end) + unit * between(end - std::round(upper), end);
  }

  // The value where nothing is placed yet.
  double start() const { return pairs ? 1.0 : 0.0; }

  // What patterns with equal totals add, below others with so many rows in all; `counts` are those of pairs.
  double placed(Patterns equal, Patterns above, const Blocks& blocks, const PairCounts& counts, double place,
                std::size_t patterns) const {
    if (!pairs) return value_of(joined(equal, blocks), place);
    std::int64_t lost = 0, tied = 0;
    for (Patterns left = equal; left != 0; left &= left - 1) {
      const auto q = index(std::countr_zero(left));
      for (std::size_t p = 0; p < patterns; ++p) {
        const Patterns bit = Patterns{1} << p;
        if ((equal & bit) != 0) {
          tied += counts[p][q];
        } else if ((above & bit) == 0) {
          lost += counts[p][q];
        }
      }
    }
    return -slope * (static_cast<double>(lost) + (ties_lost ? 1.0 : 0.5) * static_cast<double>(tied));
  }

  // The value of an order of the patterns, the sets of those with equal totals from the top.
  double value_in(const std::vector<Patterns>& order, const Blocks& blocks, const PairCounts& counts,
                  std::size_t patterns) const {
    double value = start(), place = 0.0;
    Patterns above = 0;
    for (const Patterns equal : order) {
      value += placed(equal, above, blocks, counts, place, patterns);
      place += joined(equal, blocks).count;
      above |= equal;
    }
    return value;
  }

  // Descending shares: the largest value of these blocks in any order, from the place `begin` on.
  double bound_of(const Block* blocks, int size, double begin = 0.0) const {
    std::array<std::pair<double, int>, kPatterns> order;
    int used = 0;
    for (int i = 0; i < size; ++i) {
      if (blocks[i].count > 0.0) order[index(used++)] = {-blocks[i].share(), i};
    }
    std::sort(order.begin(), order.begin() + used);
    double total = 0.0, place = begin;
    for (int i = 0; i < used; ++i) {
      const Block& block = blocks[order[index(i)].second];
      total -= order[index(i)].first * between(place, place + block.count);
      place += block.count;
    }
    return total;
  }

  // The largest value of the patterns that are not placed, from a place on, in an order in which all chains descend.
  double bound_of_chains(const Blocks& named, const std::vector<std::vector<int>>& chains, Patterns placed,
                         double place) const {
    Blocks pooled;
    int size = 0;
    for (const auto& chain : chains) {
      const int start = size;
      for (const int p : chain) {
        Block block = named[index(p)];
        if (block.count == 0.0 || (placed >> p & 1) != 0) continue;
        while (size > start &&
               pooled[index(size - 1)].gain * block.count <= block.gain * pooled[index(size - 1)].count) {
          --size;
          block.count += pooled[index(size)].count;
          block.gain += pooled[index(size)].gain;
        }
        pooled[index(size++)] = block;
      }
    }
    return bound_of(pooled.data(), size, place);
  }

  static Block joined(Patterns equal, const Blocks& blocks) {
    Block block;
    for (Patterns left = equal; left != 0; left &= left - 1) {
      const Block& part = blocks[index(std::countr_zero(left))];
      block.count += part.count;
      block.gain += part.gain;
    }
    return block;
  }
};

}  // namespace ltr
