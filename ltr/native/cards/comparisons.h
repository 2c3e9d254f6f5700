// Pairs of rows of which the first should stand above the second: those of times until an event.
//
// Row i is comparable with row k where event_i and order_i < order_k (`ltr.outcomes`). Of the rows of a support, by
// their patterns p and q, only the numbers of pairs (p, q) matter. One pass over the rows, latest first, finds them
// all: it keeps how many rows of each pattern are later, and adds these counts at each row with an event.
#pragma once

#include <array>
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

}  // namespace ltr
