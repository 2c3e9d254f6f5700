// A bound for all cards that have given columns and more, where the pairs of a row of the upper and one of the lower
// level are all that counts.
//
// The weights of the given columns alone give each pair a sign. A pair that they order wrongly, or tie, is in order on
// the card only if one of the added columns separates its rows in the right direction. So the card costs at least what
// the given columns cost, less the sum over the added columns of the cost of the pairs that each can repair.
//
// Pairs with the same difference d of the patterns of the given columns have the same sign s (`card_pairs.h`). They
// cost c_d(s), and an added column a repairs r_ad(s) of that. Of m added columns,
// ``c_d(s) - sum_a r_ad(s) >= min c_d - sum_a max_s (r_ad(s) - (c_d(s) - min c_d) / m)``,
// so each column has one gain for each mask of given columns that count down, and no set of m columns gains more than
// the sum of its gains.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "card_pairs.h"

namespace ltr {

// Rows of the upper and of the lower level, by pattern.
struct Levels {
  std::array<double, kPatterns> upper{}, lower{};
};

struct PrefixCosts {
  std::vector<double> least;  // cost of the given columns, for each mask

  // Args:
  //   tree: the signs of that many columns; null for none.
  //   size, more: columns that are given, and that are added.
  //   tied: what a pair of rows with equal totals costs.
  PrefixCosts(const SignTree* tree, int size, int more, const Levels& of, double tied)
      : least(std::size_t{1} << size, 0.0), tree_(tree), tied_(tied), of_(of) {
    double within = 0.0;
    for (std::size_t p = 0; p < std::size_t{1} << size; ++p) within += tied * of.upper[p] * of.lower[p];
    const std::size_t differences = tree == nullptr ? 0 : tree->differences.size();
    above_.assign(differences, {});
    for (std::size_t i = 0; tree != nullptr && i < tree->pairs.size(); ++i) {
      const SignTree::Pair& pair = tree->pairs[i];
      above_[pair.difference][0] += of.upper[pair.p] * of.lower[pair.q];
      above_[pair.difference][2] += of.lower[pair.p] * of.upper[pair.q];
    }
    double sum = within;
    for (auto& costs : above_) {
      costs[1] = tied * (costs[0] + costs[2]);
      const double smallest = std::min(costs[0], costs[2]);
      sum += smallest;
      for (double& cost : costs) cost = (cost - smallest) / more;
    }
    known_.resize(least.size());
    for (std::size_t mask = 0; mask < least.size(); ++mask) {
      least[mask] = sum;
      if (tree == nullptr) continue;
      const SignTree::Node& root = tree->nodes.front();
      for (int i = root.first; i < root.last; ++i) {
        const int entry = tree->known[static_cast<std::size_t>(i)];
        const int source = tree->renamed[mask][static_cast<std::size_t>(entry / 3)];
        const auto d = static_cast<std::uint16_t>(std::abs(source) - 1);
        const auto sign = static_cast<std::uint16_t>(source > 0 ? entry % 3 : 2 - entry % 3);
        known_[mask].push_back(static_cast<std::uint16_t>(3 * d + sign));
        least[mask] += above_[d][sign] * more;
      }
    }
  }

  // Fill in what a column can gain, for each mask; `with` are the rows that have it. Bit 0 and bit 1 of `signs` tell
  // whether it may count up and down.
  void gains(const Levels& with, unsigned signs, double* gain) {
    std::fill(gain, gain + least.size(), -std::numeric_limits<double>::infinity());
    repaired_.resize(3 * above_.size());
    for (unsigned down = 0; down < 2; ++down) {
      if ((signs >> down & 1U) == 0) continue;
      // rows that the column moves up, and rows that it leaves below these
      Levels high, low;
      double sum = 0.0;
      for (std::size_t p = 0; p < least.size(); ++p) {
        const double upper = of_.upper[p] - with.upper[p], lower = of_.lower[p] - with.lower[p];
        high.upper[p] = down != 0 ? upper : with.upper[p];
        low.lower[p] = down != 0 ? with.lower[p] : lower;
        sum += tied_ * high.upper[p] * low.lower[p];
      }
      std::fill(repaired_.begin(), repaired_.end(), 0.0);
      for (std::size_t i = 0; tree_ != nullptr && i < tree_->pairs.size(); ++i) {
        const SignTree::Pair& pair = tree_->pairs[i];
        double* of = repaired_.data() + std::size_t{3} * pair.difference;
        of[0] += high.upper[pair.p] * low.lower[pair.q];
        of[2] += high.upper[pair.q] * low.lower[pair.p];
      }
      open_.resize(above_.size());
      for (std::size_t d = 0; d < above_.size(); ++d) {
        double* of = repaired_.data() + 3 * d;
        of[1] = tied_ * (of[0] + of[2]);
        open_[d] = std::max({of[0] - above_[d][0], of[1] - above_[d][1], of[2] - above_[d][2]});
        sum += open_[d];
      }
      for (std::size_t mask = 0; mask < least.size(); ++mask) {
        double known = sum;
        for (const std::uint16_t entry : known_[mask]) known += repaired_[entry] - open_[entry / 3U];
        gain[mask] = std::max(gain[mask], known);
      }
    }
  }

 private:
  const SignTree* tree_;
  double tied_;
  Levels of_;
  std::vector<std::array<double, 3>> above_;  // of each difference and sign: cost above the least, by added column
  std::vector<std::vector<std::uint16_t>>
      known_;  // of each mask: 3 * difference + sign + 1 of the signs that are known
  std::vector<double> repaired_, open_;
};

}  // namespace ltr
