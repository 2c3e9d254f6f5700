// The search of the cards of one set of columns.
#pragma once

#include <array>
#include <bit>
#include <numeric>

#include "../arrays.h"
#include "found.h"
#include "task.h"

namespace ltr {

constexpr std::uint64_t kUnseen = std::numeric_limits<std::uint64_t>::max();

// The best place of a pattern on the cards of a support, together with the number of an order, and the mask of a card.
struct Seen {
  std::uint64_t key = kUnseen;
  int mask = 0;
};

// Searches the cards of one support after the other, in one thread.
class SupportSearch {
 public:
  // Args: m: columns of a card.
  SupportSearch(const CardTask& task, FoundCards& found, int m)
      : task_(task),
        found_(found),
        m_(m),
        chains_(chains_of(m)),
        one_(task.table.words() << m),
        other_(task.table.words() << m),
        blocks_(task.statistics.size()),
        named_(task.statistics.size()),
        pairs_(task.statistics.size()),
        named_pairs_(task.statistics.size()),
        by_share_(task.statistics.size()),
        extra_(task.statistics.size()),
        values_((kPatterns + 1) * task.statistics.size()) {
    if (found.placing) extremes_.resize(task.table.n());
  }

  // Search the cards of a support; return whether that was completed.
  bool examine(const Support& support, const Stop& stop) {
    support_ = support;
    std::copy(task_.table.all().begin(), task_.table.all().end(), one_.begin());
    for (int i = 0; i < m_; ++i) {
      task_.table.split(one_.data(), 1 << i, support.columns[index(i)], other_.data());
      one_.swap(other_);
    }
    costs_.clear();
    for (std::size_t s = 0; s < task_.statistics.size(); ++s) {
      for (std::size_t p = 0; p < std::size_t{1} << m_; ++p) {
        blocks_[s][p] = task_.table.block_of(task_.statistics[s].gains, one_.data() + p * task_.table.words());
      }
      if (const auto& pairs = task_.statistics[s].pairs) {
        pattern_.assign(pairs->rows(), 0);
        for (int i = 0; i < m_; ++i) {
          pairs->split(pattern_.data(), support.columns[index(i)], i, pattern_.data());
        }
        pairs->count(pattern_.data(), m_, pairs_[s]);
      }
      if (task_.statistics[s].slope > 0.0) {
        costs_.push_back(task_.costs_of(task_.statistics[s], m_, blocks_[s].data(), pairs_[s]));
      } else {
        costs_.emplace_back();
      }
    }
    std::vector<std::pair<double, int>> masks;
    for (int mask = 0; mask < 1 << m_; ++mask) {
      if (!task_.form.possible(support, m_, mask)) continue;
      const double bound = bound_of_mask(0, mask) - task_.price * m_;
      if (bound < task_.target()) continue;
      bool open = true;
      for (std::size_t s = 1; s < task_.statistics.size() && open; ++s) {
        open = CardTask::reaches(task_.statistics[s], bound_of_mask(s, mask));
      }
      if (open) masks.emplace_back(-bound, mask);
    }
    std::sort(masks.begin(), masks.end());
    for (const auto& [bound, mask] : masks) {
      if (-bound < task_.target()) break;
      mask_ = mask;
      for (std::size_t s = 0; s < task_.statistics.size(); ++s) name(s);
      if (task_.all_fall()) {
        const SignTree& tree = task_.tree(m_);
        for (std::size_t s = 0; s < task_.statistics.size(); ++s) {
          if (task_.statistics[s].slope == 0.0) continue;
          for (std::size_t entry = 0; entry < 3 * tree.differences.size(); ++entry) {
            extra_[s][entry] = costs_[s].of_sign(tree, mask, static_cast<int>(entry));
          }
          values_[s] = costs_[s].known(tree, mask);
        }
        go_down(tree, tree.nodes.front(), 0);
      } else {
        for (std::size_t s = 0; s < task_.statistics.size(); ++s) values_[s] = task_.statistics[s].start();
        descend(task_.order(m_), 0, 0, 0, 0.0);
      }
      if (stop.asked()) return false;
    }
    if (placed_) {
      if (task_.all_fall()) {
        settle(task_.tree(m_));
      } else {
        settle(task_.order(m_));
      }
    }
    return true;
  }

  // Hand over the places that were found.
  void merge() const { found_.merge(good_, extremes_); }

 private:
  // Rename the patterns for cards on which the columns of a mask count down.
  void name(std::size_t s) {
    Blocks& named = named_[s];
    for (int p = 0; p < 1 << m_; ++p) named[index(p)] = blocks_[s][index(p ^ mask_)];
    if (task_.statistics[s].pairs) {
      for (std::size_t p = 0; p < std::size_t{1} << m_; ++p) {
        for (std::size_t q = 0; q < std::size_t{1} << m_; ++q) {
          const auto flip = index(mask_);
          named_pairs_[s][p][q] = pairs_[s][p ^ flip][q ^ flip];
        }
      }
      return;
    }
    auto& by_share = by_share_[s];
    std::iota(by_share.begin(), by_share.begin() + (1 << m_), 0);
    std::sort(by_share.begin(), by_share.begin() + (1 << m_), [&](int a, int b) {
      const Block &x = named[index(a)], &y = named[index(b)];
      const double one = x.count > 0.0 ? x.share() : -1.0, other = y.count > 0.0 ? y.share() : -1.0;
      return one != other ? one > other : a < b;
    });
  }

  // A bound of a statistic for the cards of a support on which the columns of a mask count down.
  double bound_of_mask(std::size_t s, int mask) const {
    const CardStatistic& statistic = task_.statistics[s];
    if (statistic.slope > 0.0) {
      return CardTask::value_of_cost(statistic, costs_[s], costs_[s].known(task_.tree(m_), mask));
    }
    Blocks named;
    for (int p = 0; p < 1 << m_; ++p) named[index(p)] = blocks_[s][index(p ^ mask)];
    return statistic.bound_of_chains(named, chains_, 0, 0.0);
  }

  // --- rank weights that fall by the same amount, see `pairs.h`

  // Visit a node of the signs at a depth, where `values_` has the costs of the pairs whose signs are known.
  void go_down(const SignTree& tree, const SignTree::Node& node, std::size_t depth) {
    const std::size_t statistics = task_.statistics.size();
    const double* costs = values_.data() + depth * statistics;
    if (node.weights >= 0) {
      const double value = CardTask::value_of_cost(task_.objective(), costs_[0], costs[0]) - task_.price * m_;
      take(tree, index(node.weights), value);
      return;
    }
    double* sums = values_.data() + (depth + 1) * statistics;
    for (int at = node.child; at >= 0;) {
      const SignTree::Node& child = tree.nodes[index(at)];
      bool open = true;
      for (std::size_t s = 0; s < statistics && open; ++s) {
        if (task_.statistics[s].slope == 0.0) continue;
        double sum = costs[s];
        for (int i = child.first; i < child.last; ++i) sum += extra_[s][tree.known[index(i)]];
        sums[s] = sum;
        const double bound = CardTask::value_of_cost(task_.statistics[s], costs_[s], sum);
        open = s == 0 ? bound - task_.price * m_ >= task_.target() : CardTask::reaches(task_.statistics[s], bound);
      }
      if (open) go_down(tree, child, depth + 1);
      at = child.next;
    }
  }

  // --- any rank weights

  // Visit the children of a node of the orders at a depth; `placed` are the patterns above, `place` their rows, and
  // `values_` has their contributions.
  void descend(const Orders& orders, std::size_t at, std::size_t depth, Patterns placed, double place) {
    const std::size_t statistics = task_.statistics.size();
    const double* above = values_.data() + depth * statistics;
    double* reached = values_.data() + (depth + 1) * statistics;
    for (int child = orders.nodes[at].child; child >= 0; child = orders.nodes[index(child)].next) {
      const Orders::Node& node = orders.nodes[index(child)];
      const Patterns now = placed | node.equal;
      double below = place;
      bool open = true;
      for (std::size_t s = 0; s < statistics && open; ++s) {
        reached[s] =
            above[s] + task_.statistics[s].placed(node.equal, placed, named_[s], named_pairs_[s], place, 1 << m_);
        below = place + CardStatistic::joined(node.equal, named_[s]).count;
        if (node.weights < 0) open = may_reach(s, now, below, reached[s]);
      }
      if (!open) continue;
      if (node.weights < 0) {
        descend(orders, index(child), depth + 1, now, below);
      } else if (reached[0] - task_.price * m_ >= task_.target()) {
        take(orders, index(node.weights), reached[0] - task_.price * m_);
      }
    }
  }

  // Whether a statistic may be large enough below a node, where the patterns placed have reached a value.
  bool may_reach(std::size_t s, Patterns placed, double place, double reached) const {
    const CardStatistic& statistic = task_.statistics[s];
    const auto enough = [&](double bound) {
      return s == 0 ? bound - task_.price * m_ >= task_.target() : CardTask::reaches(statistic, bound);
    };
    if (statistic.pairs) return enough(reached);
    double bound = reached, below = place;
    for (int i = 0; i < 1 << m_; ++i) {
      const int p = by_share_[s][index(i)];
      const Block& part = named_[s][index(p)];
      if ((placed >> p & 1) != 0 || part.count == 0.0) continue;
      bound += part.share() * statistic.between(below, below + part.count);
      below += part.count;
    }
    return enough(bound) && enough(reached + statistic.bound_of_chains(named_[s], chains_, placed, place));
  }

  // --- the cards that are found

  // Take note of a card if it meets the demands.
  void take(const WeightsOfOrders& orders, std::size_t order, double value) {
    bool certain = true;
    for (std::size_t s = 1; s < task_.statistics.size(); ++s) {
      const CardStatistic& of = task_.statistics[s];
      const double reached = of.value_in(orders.tiers[order], named_[s], named_pairs_[s], 1 << m_);
      if (!CardTask::meets(of, reached, certain)) return;
    }
    const auto card = [&] { return card_of(mask_, orders.weights[order], value); };
    if (!certain && !task_.met(card())) return;
    if (found_.placing) {
      place(orders.tiers[order], order);
    } else {
      found_.offer(card());
    }
  }

  FoundWeights card_of(int mask, const Weights& weights, double value) const {
    FoundWeights card{.value = value, .size = index(m_)};
    for (std::size_t i = 0; i < card.size; ++i) {
      card.columns[i] = support_.columns[i];
      card.weights[i] = (mask >> i & 1) != 0 ? -weights[i] : weights[i];
    }
    return card;
  }

  // Take note of the places of the patterns on a card; where cards agree, the one with fewer points is kept.
  void place(const std::vector<Patterns>& tiers, std::size_t order) {
    if (!placed_) seen_.fill({});
    placed_ = true;
    ++good_;
    std::uint64_t above = 0;
    for (const Patterns equal : tiers) {
      const auto rows = static_cast<std::uint64_t>(CardStatistic::joined(equal, named_[0]).count);
      const std::array<std::uint64_t, 2> keys{(above + 1) << 32 | order,
                                              (task_.table.n() - above - rows) << 32 | order};
      above += rows;
      for (Patterns left = rows > 0 ? equal : 0; left != 0; left &= left - 1) {
        auto& seen = seen_[index(std::countr_zero(left) ^ mask_)];
        for (std::size_t end = 0; end < 2; ++end) {
          if (keys[end] < seen[end].key) seen[end] = {keys[end], mask_};
        }
      }
    }
  }

  // Give the rows of a support the places that its cards have given to its patterns.
  void settle(const WeightsOfOrders& orders) {
    placed_ = false;
    for (std::size_t p = 0; p < std::size_t{1} << m_; ++p) {
      const std::uint64_t* part = one_.data() + p * task_.table.words();
      std::array<Extreme, 2> found;
      for (std::size_t end = 0; end < 2; ++end) {
        const auto [key, mask] = seen_[p][end];
        if (key == kUnseen) continue;
        found[end] = {static_cast<std::int64_t>(key >> 32), card_of(mask, orders.weights[key & 0xffffffffU], 0.0)};
      }
      for (std::size_t word = 0; word < task_.table.words(); ++word) {
        for (std::uint64_t left = part[word] & found_.tracked[word]; left != 0; left &= left - 1) {
          auto& row = extremes_[task_.table.row_at(word * 64 + index(std::countr_zero(left)))];
          for (std::size_t end = 0; end < 2; ++end) row[end].improve(found[end]);
        }
      }
    }
  }

  const CardTask& task_;
  FoundCards& found_;
  int m_, mask_ = 0;  // columns of the support; those that count down, as bits
  std::vector<std::vector<int>> chains_;
  Support support_;
  std::vector<std::uint64_t> one_, other_;
  std::vector<std::uint8_t> pattern_;  // of each row, for comparable pairs
  // of each statistic
  std::vector<Blocks> blocks_;                               // by pattern
  std::vector<Blocks> named_;                                // by pattern with positive weights
  std::vector<PairCounts> pairs_, named_pairs_;              // likewise, of comparable pairs
  std::vector<std::array<int, kPatterns>> by_share_;         // patterns with positive weights, largest share first
  std::vector<std::array<double, 3 * kDifferences>> extra_;  // cost of each sign of each difference
  std::vector<PairCosts> costs_;
  std::vector<double> values_;  // at each depth, of each statistic
  // of places of rows
  bool placed_ = false;    // whether a card of the support was found
  std::int64_t good_ = 0;  // cards
  std::array<std::array<Seen, 2>, kPatterns> seen_;
  std::vector<std::array<Extreme, 2>> extremes_;  // of each row
};

}  // namespace ltr
