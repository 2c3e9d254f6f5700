// Cards of a support where pairs of rows are all that counts: the rank weights fall by the same amount from place to
// place, as for AUC, or the statistic is the share of comparable pairs in order (`statistics.h`).
//
// With a_r = a_1 - slope (r - 1) the statistic is a_1 (sum of gains) - slope * cost, and the cost adds up over pairs of
// rows: each costs the gain of the lower row; with equal totals the mean of both gains, or the larger one where ties
// are lost. The order of two rows of the patterns p and q depends on the sign of w·(p - q). So all pairs of blocks with
// the same difference d in {-1, 0, 1}^m go together, (3^m - 1) / 2 differences in all up to their sign, and each has
// one cost for each of three signs. A comparable pair costs 1 if its second row is above, with equal totals half as
// much, or all of it where ties are lost. Where only some signs are known, the least costs of the others bound the
// value.
//
// `SignTree` is a tree of the signs that weights from `fewest` to `most` can have. Each node lists the differences
// whose sign becomes the same for all weights below it; a leaf is one order. It is made once for each m.
#pragma once

#include <array>
#include <cstdlib>
#include <map>

#include "statistics.h"

namespace ltr {

constexpr std::size_t kDifferences = 364;  // (3^kLargest - 1) / 2

struct SignTree : WeightsOfOrders {
  struct Node {
    int first = 0, last = 0;    // its entries in `known`
    int child = -1, next = -1;  // first child, next sibling
    int weights = -1;           // of a leaf: number of its entry in `weights`
  };
  struct Pair {
    std::uint8_t p, q;
    std::uint16_t difference;  // that p - q has
  };
  std::vector<Node> nodes;
  std::vector<std::uint16_t> known;                            // 3 * difference + sign + 1
  std::vector<Pair> pairs;                                     // all pairs of patterns
  std::vector<std::array<std::int8_t, kLargest>> differences;  // the first number other than 0 is 1
  std::vector<std::vector<std::int16_t>> renamed;  // for each mask and difference: 1 + the difference with the columns
                                                   // of the mask negated, below 0 where that is its opposite

  SignTree(int m, int fewest, int most) {
    std::map<std::array<std::int8_t, kLargest>, int> number;
    for (int p = 0; p < 1 << m; ++p) {
      for (int q = 0; q < 1 << m; ++q) {
        const auto d = difference(p, q, m);
        if (p == q || *std::find_if(d.begin(), d.end(), [](auto v) { return v != 0; }) < 0) continue;
        const auto [at, added] = number.try_emplace(d, static_cast<int>(differences.size()));
        if (added) differences.push_back(d);
        pairs.push_back(
            {static_cast<std::uint8_t>(p), static_cast<std::uint8_t>(q), static_cast<std::uint16_t>(at->second)});
      }
    }
    for (int mask = 0; mask < 1 << m; ++mask) {
      auto& of = renamed.emplace_back();
      for (auto d : differences) {
        for (int j = 0; j < m; ++j) {
          if (mask >> j & 1) d[index(j)] = static_cast<std::int8_t>(-d[index(j)]);
        }
        const auto found = number.find(d);
        for (auto& v : d) v = static_cast<std::int8_t>(-v);
        of.push_back(static_cast<std::int16_t>(found != number.end() ? 1 + found->second : -1 - number.at(d)));
      }
    }
    std::map<std::vector<std::int8_t>, int> seen;  // signs of all differences; the first weights stand for an order
    for (const auto& w : positive_weights(m, fewest, most)) {
      std::vector<std::int8_t> signs;
      for (const auto& d : differences) {
        int sum = 0;
        for (std::size_t j = 0; j < kLargest; ++j) sum += d[j] * w[j];
        signs.push_back(static_cast<std::int8_t>((sum > 0) - (sum < 0)));
      }
      if (!seen.try_emplace(std::move(signs), static_cast<int>(weights.size())).second) continue;
      weights.push_back(w);
      tiers.push_back(tiers_of(w, m));
    }
    std::vector<const std::vector<std::int8_t>*> signs(weights.size());
    for (const auto& [of, at] : seen) signs[index(at)] = &of;
    std::vector<int> all(weights.size()), open(differences.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    for (std::size_t i = 0; i < open.size(); ++i) open[i] = static_cast<int>(i);
    add(all, open, signs);
  }

  // The difference and the sign + 1 of an entry of `known` if the columns of a mask count down.
  std::pair<std::size_t, std::size_t> counted_down(int mask, int entry) const {
    const int source = renamed[index(mask)][index(entry / 3)];
    return {index(std::abs(source) - 1), index(source > 0 ? entry % 3 : 2 - entry % 3)};
  }

 private:
  static std::array<std::int8_t, kLargest> difference(int p, int q, int m) {
    std::array<std::int8_t, kLargest> d{};
    for (int j = 0; j < m; ++j) d[index(j)] = static_cast<std::int8_t>((p >> j & 1) - (q >> j & 1));
    return d;
  }

  // Add the node of these orders, in which the signs of `open` differences are not known yet; return its number.
  int add(const std::vector<int>& orders, const std::vector<int>& open,
          const std::vector<const std::vector<std::int8_t>*>& signs) {
    Node node{.first = static_cast<int>(known.size())};
    std::vector<int> left;
    int branch = -1;
    std::size_t least = orders.size();  // of the largest part, if branched there
    for (const int d : open) {
      std::array<std::size_t, 3> counts{};
      for (const int order : orders) ++counts[index(sign(signs, order, d) + 1)];
      const std::size_t largest = *std::max_element(counts.begin(), counts.end());
      if (largest == orders.size()) {
        known.push_back(static_cast<std::uint16_t>(3 * d + sign(signs, orders.front(), d) + 1));
        continue;
      }
      left.push_back(d);
      if (largest < least) {
        least = largest;
        branch = d;
      }
    }
    node.last = static_cast<int>(known.size());
    if (branch < 0) node.weights = orders.front();
    const auto at = static_cast<int>(nodes.size());
    nodes.push_back(node);
    for (int s = -1; branch >= 0 && s <= 1; ++s) {
      std::vector<int> part;
      for (const int order : orders) {
        if (sign(signs, order, branch) == s) part.push_back(order);
      }
      if (part.empty()) continue;
      const int child = add(part, left, signs);
      nodes[index(child)].next = nodes[index(at)].child;
      nodes[index(at)].child = child;
    }
    return at;
  }

  static int sign(const std::vector<const std::vector<std::int8_t>*>& signs, int order, int d) {
    return (*signs[index(order)])[index(d)];
  }
};

// Write what the pairs of rows with each difference of their patterns cost, by its sign; `weight` is the cost of all
// pairs of rows of two patterns if the second row is above, and `tied` the share of it if their totals are equal.
template <class Costs, class Weight>
void add_up_pairs(const SignTree& tree, double tied, Costs& costs, const Weight& weight) {
  for (std::size_t d = 0; d < tree.differences.size(); ++d) costs[d] = {};
  for (const SignTree::Pair& pair : tree.pairs) {
    costs[pair.difference][0] += weight(pair.p, pair.q);
    costs[pair.difference][2] += weight(pair.q, pair.p);
  }
  for (std::size_t d = 0; d < tree.differences.size(); ++d) costs[d][1] = tied * (costs[d][0] + costs[d][2]);
}

// The costs of the pairs of rows of a support.
struct PairCosts {
  double gain = 0.0;                                   // of all rows
  double least = 0.0;                                  // cost if each difference has the sign that costs least
  std::array<std::array<double, 3>, kDifferences> of;  // what each sign of each difference costs beyond that

  PairCosts() = default;
  // `low` and `high` are the gains of the two levels where ties are lost.
  PairCosts(const SignTree& tree, int m, const Block* blocks, double low, double high, bool ties_lost) {
    std::array<double, kPatterns> lower{};  // rows of the lower level
    for (int p = 0; p < 1 << m; ++p) {
      const double count = blocks[p].count;
      double& l = lower[index(p)];
      if (ties_lost) l = high > low ? std::round((high * count - blocks[p].gain) / (high - low)) : count;
      gain += blocks[p].gain;
      least += ties_lost ? (high * (count * (count - 1.0) - l * (l - 1.0)) + low * l * (l - 1.0)) / 2.0
                         : blocks[p].gain * (count - 1.0) / 2.0;
    }
    add_up_pairs(tree, ties_lost ? 0.0 : 0.5, of, [=](int p, int q) { return blocks[p].gain * blocks[q].count; });
    for (std::size_t i = 0; ties_lost && i < tree.pairs.size(); ++i) {
      const SignTree::Pair& pair = tree.pairs[i];
      const double l = lower[pair.p] * lower[pair.q];
      of[pair.difference][1] += high * (blocks[pair.p].count * blocks[pair.q].count - l) + low * l;
    }
    subtract_least(tree);
  }

  // `counts` are those of comparable pairs, each of gain 1.
  PairCosts(const SignTree& tree, int m, const PairCounts& counts, double pairs, bool ties_lost) : gain(pairs) {
    const double tied = ties_lost ? 1.0 : 0.5;
    for (std::size_t p = 0; p < std::size_t{1} << m; ++p) least += tied * static_cast<double>(counts[p][p]);
    add_up_pairs(tree, tied, of, [&](int p, int q) { return static_cast<double>(counts[index(p)][index(q)]); });
    subtract_least(tree);
  }

  // The cost of an entry of `SignTree::known` if the columns of a mask count down.
  double of_sign(const SignTree& tree, int mask, int known) const {
    const auto [difference, sign] = tree.counted_down(mask, known);
    return of[difference][sign];
  }

  // The cost of all differences whose sign is known once the columns of a mask count down.
  double known(const SignTree& tree, int mask) const {
    const SignTree::Node& root = tree.nodes.front();
    double sum = 0.0;
    for (int i = root.first; i < root.last; ++i) sum += of_sign(tree, mask, tree.known[index(i)]);
    return sum;
  }

 private:
  void subtract_least(const SignTree& tree) {
    for (std::size_t d = 0; d < tree.differences.size(); ++d) {
      const double smallest = std::min(of[d][0], of[d][2]);
      least += smallest;
      for (double& cost : of[d]) cost -= smallest;
    }
  }
};

// --- a bound for all cards that have given columns and more
//
// A pair is two rows of which the first should stand above the second. It costs its weight on a card that orders it
// wrongly: 1 for comparable pairs, otherwise the difference of the gains. The weights of the given columns alone give
// each pair a sign. A pair that they order wrongly, or tie, is in order on the card only if one of the added columns
// separates its rows in the right direction. So the card costs at least what
// the given columns cost, less the sum over the added columns of the cost of the pairs that each can repair.
//
// Pairs with the same difference d of the patterns of the given columns have the same sign s (above). They
// cost c_d(s), and an added column a repairs r_ad(s) of that. Of m added columns,
// ``c_d(s) - sum_a r_ad(s) >= min c_d - sum_a max_s (r_ad(s) - (c_d(s) - min c_d) / m)``,
// so each column has one gain for each mask of given columns that count down, and no set of m columns gains more than
// the sum of its gains.

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

  void costs_of(const PatternPairs& of, Costs& costs) const {
    costs.resize(tree_ == nullptr ? 0 : tree_->differences.size());
    if (tree_ != nullptr) add_up_pairs(*tree_, tied_, costs, of);
  }

  const SignTree* tree_;
  double tied_;
  Costs above_, repaired_;                         // above the least, by added column; what a column repairs
  std::vector<double> open_;                       // the most that it gains, of each difference
  std::vector<std::vector<std::uint16_t>> known_;  // of each mask: entries of the signs that are known, as in the tree
};

}  // namespace ltr
