// A bound for all cards that have given columns and more, where pairs of rows are all that counts (`pairs.h`).
//
// A pair is two rows of which the first should stand above the second. It costs its weight on a card that orders it
// wrongly: 1 for comparable pairs, otherwise the difference of the gains. The weights of the given columns alone give
// each pair a sign. A pair that they order wrongly, or tie, is in order on the card only if one of the added columns
// separates its rows in the right direction. So the card costs at least what
// the given columns cost, less the sum over the added columns of the cost of the pairs that each can repair.
//
// Pairs with the same difference d of the patterns of the given columns have the same sign s (`pairs.h`). They
// cost c_d(s), and an added column a repairs r_ad(s) of that. Of m added columns,
// ``c_d(s) - sum_a r_ad(s) >= min c_d - sum_a max_s (r_ad(s) - (c_d(s) - min c_d) / m)``,
// so each column has one gain for each mask of given columns that count down, and no set of m columns gains more than
// the sum of its gains.
#pragma once

#include <array>
#include <cstdlib>

#include "pairs.h"

namespace ltr {

// The weight of all pairs whose rows have given patterns.
class PatternPairs {
 public:
  explicit PatternPairs(int size) : size_(size), weight_(std::size_t{1} << 2 * size, 0.0) {}

  double operator()(std::size_t first, std::size_t second) const { return weight_[first << size_ | second]; }
  double& operator()(std::size_t first, std::size_t second) { return weight_[first << size_ | second]; }
  // Add the pairs of so many rows of a pattern, each with its weight, and of the second rows of each pattern.
  void add(std::size_t first, double weight, const std::array<double, kPatterns>& second) {
    double* row = weight_.data() + (first << size_);
    for (std::size_t q = 0; q < patterns(); ++q) row[q] += weight * second[q];
  }
  std::size_t patterns() const { return std::size_t{1} << size_; }
  void clear() { std::fill(weight_.begin(), weight_.end(), 0.0); }

 private:
  int size_;
  std::vector<double> weight_;
};

struct PrefixCosts {
  std::vector<double> least;  // cost of the given columns, for each mask

  // Args:
  //   tree: the signs of that many columns; null for none.
  //   size, more: columns that are given, and that are added.
  //   of: all pairs, by patterns of the given columns.
  //   tied: what a pair of rows with equal totals costs, as a share of its weight.
  PrefixCosts(const SignTree* tree, int size, int more, const PatternPairs& of, double tied)
      : least(std::size_t{1} << size, 0.0), tree_(tree), tied_(tied) {
    double sum = 0.0;
    for (std::size_t p = 0; p < of.patterns(); ++p) sum += tied * of(p, p);
    costs_of(of, above_);
    for (auto& costs : above_) {
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
        const auto [d, sign] = tree->counted_down(static_cast<int>(mask), tree->known[index(i)]);
        known_[mask].push_back(static_cast<std::uint16_t>(3 * d + sign));
        least[mask] += above_[d][sign] * more;
      }
    }
  }

  // Raise the gain of a column for each mask to what it has where it separates these pairs in the right direction.
  void raise(const PatternPairs& separated, double* gain) {
    double sum = 0.0;
    for (std::size_t p = 0; p < separated.patterns(); ++p) sum += tied_ * separated(p, p);
    costs_of(separated, repaired_);
    open_.resize(above_.size());
    for (std::size_t d = 0; d < above_.size(); ++d) {
      const auto& of = repaired_[d];
      open_[d] = std::max({of[0] - above_[d][0], of[1] - above_[d][1], of[2] - above_[d][2]});
      sum += open_[d];
    }
    for (std::size_t mask = 0; mask < least.size(); ++mask) {
      double known = sum;
      for (const std::uint16_t entry : known_[mask]) known += repaired_[entry / 3U][entry % 3U] - open_[entry / 3U];
      gain[mask] = std::max(gain[mask], known);
    }
  }

 private:
  using Costs = std::vector<std::array<double, 3>>;  // of each difference and sign

  // What the pairs of each difference of patterns cost, by its sign.
  void costs_of(const PatternPairs& of, Costs& costs) const {
    costs.assign(tree_ == nullptr ? 0 : tree_->differences.size(), {});
    for (std::size_t i = 0; tree_ != nullptr && i < tree_->pairs.size(); ++i) {
      const SignTree::Pair& pair = tree_->pairs[i];
      costs[pair.difference][0] += of(pair.p, pair.q);
      costs[pair.difference][2] += of(pair.q, pair.p);
    }
    for (auto& cost : costs) cost[1] = tied_ * (cost[0] + cost[2]);
  }

  const SignTree* tree_;
  double tied_;
  Costs above_, repaired_;    // above the least, by added column; what a column repairs
  std::vector<double> open_;  // the most that it gains, of each difference
  std::vector<std::vector<std::uint16_t>>
      known_;  // of each mask: 3 * difference + sign + 1 of the signs that are known
};

}  // namespace ltr
