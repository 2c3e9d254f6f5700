// The orders of the patterns of a few yes/no columns by positive whole weights; `cards.h` explains what they are for.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <numeric>

#include "../found_weights.h"

namespace ltr {

constexpr int kLargest = kMostColumns;  // columns of a card
constexpr int kPatterns = 1 << kLargest;

using Patterns = std::uint64_t;  // a set of patterns
struct Block {
  double count = 0.0, gain = 0.0;
  double share() const { return gain / count; }
};

using Weights = std::array<std::int8_t, kLargest>;

// Return all weights of m columns from `fewest` to `most`, those with the smallest sum first.
inline std::vector<Weights> positive_weights(int m, int fewest, int most) {
  std::vector<Weights> all{{}};
  for (int j = 0; j < m; ++j) {
    std::vector<Weights> longer;
    for (auto w : all) {
      for (int v = fewest; v <= most; ++v) {
        w[index(j)] = static_cast<std::int8_t>(v);
        longer.push_back(w);
      }
    }
    all.swap(longer);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::accumulate(a.begin(), a.end(), 0) < std::accumulate(b.begin(), b.end(), 0);
  });
  return all;
}

// Return the sets of patterns of m columns with equal totals, from the largest total down.
inline std::vector<Patterns> tiers_of(const Weights& w, int m) {
  std::map<int, Patterns, std::greater<>> by_total;
  for (int p = 0; p < 1 << m; ++p) {
    int total = 0;
    for (int j = 0; j < m; ++j) total += (p >> j & 1) * w[index(j)];
    by_total[total] |= Patterns{1} << p;
  }
  std::vector<Patterns> tiers;
  for (const auto& [total, equal] : by_total) tiers.push_back(equal);
  return tiers;
}

// Positive weights, one for each order of the patterns, those with the smallest sum first.
struct WeightsOfOrders {
  std::vector<Weights> weights;
  std::vector<std::vector<Patterns>> tiers;  // the order by each of the weights
};

// The orders of blocks by weights from `fewest` to `most`, as a tree.
struct Orders : WeightsOfOrders {
  struct Node {
    Patterns equal = 0;         // patterns with this total
    int child = -1, next = -1;  // first child, next sibling
    int weights = -1;           // of a leaf: number of its entry in `weights`
  };
  std::vector<Node> nodes{1};

  Orders(int m, int fewest, int most) {
    for (const auto& w : positive_weights(m, fewest, most)) add(w, m);  // the first weights of an order stand for it
  }

 private:
  void add(const Weights& w, int m) {
    const std::vector<Patterns> order = tiers_of(w, m);
    std::size_t at = 0;
    for (const Patterns equal : order) {
      int* link = &nodes[at].child;
      while (*link >= 0 && nodes[index(*link)].equal != equal) {
        link = &nodes[index(*link)].next;
      }
      if (*link < 0) {
        *link = static_cast<int>(nodes.size());
        at = nodes.size();
        nodes.push_back({equal});  // invalidates `link`
      } else {
        at = index(*link);
      }
    }
    if (nodes[at].weights < 0) {
      nodes[at].weights = static_cast<int>(weights.size());
      weights.push_back(w);
      tiers.push_back(order);
    }
  }
};

// Partition the sets of m elements into chains of sets that shrink by one element at a time (de Bruijn, Tengbergen &
// Kruyswijk 1951).
inline std::vector<std::vector<int>> chains_of(int m) {
  std::vector<std::vector<int>> chains{{0}};  // ascending
  for (int j = 0; j < m; ++j) {
    std::vector<std::vector<int>> next;
    for (const auto& chain : chains) {
      std::vector<int> longer = chain, shorter;
      longer.push_back(chain.back() | 1 << j);
      for (std::size_t i = 0; i + 1 < chain.size(); ++i) shorter.push_back(chain[i] | 1 << j);
      next.push_back(longer);
      if (!shorter.empty()) next.push_back(shorter);
    }
    chains.swap(next);
  }
  for (auto& chain : chains) std::reverse(chain.begin(), chain.end());
  return chains;
}

}  // namespace ltr
