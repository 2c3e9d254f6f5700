// Cards of a support where pairs of rows are all that counts: the rank weights fall by the same amount from place to
// place, as for AUC, or the statistic is the share of comparable pairs in order (`comparisons.h`).
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

#include "comparisons.h"
#include "orders.h"

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
    for (std::size_t d = 0; d < tree.differences.size(); ++d) of[d] = {};
    for (const SignTree::Pair& pair : tree.pairs) {
      const Block &above = blocks[pair.p], &below = blocks[pair.q];
      auto& costs = of[pair.difference];
      costs[2] += above.count * below.gain;
      costs[0] += above.gain * below.count;
      if (ties_lost) {
        const double l = lower[pair.p] * lower[pair.q];
        costs[1] += high * (above.count * below.count - l) + low * l;
      }
    }
    subtract_least(tree, ties_lost);
  }

  // `counts` are those of comparable pairs, each of gain 1.
  PairCosts(const SignTree& tree, int m, const PairCounts& counts, double pairs, bool ties_lost) : gain(pairs) {
    const double tied = ties_lost ? 1.0 : 0.5;
    for (std::size_t p = 0; p < std::size_t{1} << m; ++p) least += tied * static_cast<double>(counts[p][p]);
    for (std::size_t d = 0; d < tree.differences.size(); ++d) of[d] = {};
    for (const SignTree::Pair& pair : tree.pairs) {
      auto& costs = of[pair.difference];
      costs[2] += static_cast<double>(counts[pair.q][pair.p]);
      costs[0] += static_cast<double>(counts[pair.p][pair.q]);
    }
    if (ties_lost) {
      for (std::size_t d = 0; d < tree.differences.size(); ++d) of[d][1] = of[d][0] + of[d][2];
    }
    subtract_least(tree, ties_lost);
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
  void subtract_least(const SignTree& tree, bool ties_lost) {
    for (std::size_t d = 0; d < tree.differences.size(); ++d) {
      auto& costs = of[d];
      if (!ties_lost) costs[1] = (costs[0] + costs[2]) / 2.0;
      const double smallest = std::min(costs[0], costs[2]);
      least += smallest;
      for (double& cost : costs) cost -= smallest;
    }
  }
};

}  // namespace ltr
