// The rules on the columns of a card and the signs of their points.
#pragma once

#include <array>

#include "../arrays.h"
#include "orders.h"

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

}  // namespace ltr
