// The search of the cards of one set of columns.
#pragma once

#include <array>
#include <bit>
#include <numeric>

#include "../arrays.h"
#include "task.h"

namespace ltr {

// Searches the cards of one support after the other, in one thread.
class SupportSearch {
 public:
  // Args: m: columns of a card.
  SupportSearch(const CardTask& task, FoundCards& found, int m)
      : task_(task),
        found_(found),
        m_(m),
        patterns_(std::size_t{1} << m),
        chains_(chains_of(m)),
        one_(task.table.words() << m),
        other_(task.table.words() << m),
        of_(task.statistics.size()),
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
    for (std::size_t s = 0; s < of_.size(); ++s) {
      const CardStatistic& statistic = task_.statistics[s];
      for (std::size_t p = 0; p < patterns_; ++p) {
        of_[s].blocks[p] = task_.table.block_of(statistic.gains, one_.data() + p * task_.table.words());
      }
      if (const auto& pairs = statistic.pairs) {
        pattern_.assign(pairs->rows(), 0);
        for (int i = 0; i < m_; ++i) {
          pairs->split(pattern_.data(), support.columns[index(i)], i, pattern_.data());
        }
        pairs->count(pattern_.data(), m_, of_[s].pairs);
      }
      if (statistic.slope > 0.0) of_[s].costs = task_.costs_of(statistic, m_, of_[s].blocks.data(), of_[s].pairs);
    }
    std::vector<std::pair<double, int>> masks;
    for (int mask = 0; mask < 1 << m_; ++mask) {
      if (!task_.form.possible(support, m_, mask)) continue;
      const double bound = bound_of_mask(0, mask);
      bool open = task_.open(0, bound, m_);
      for (std::size_t s = 1; s < of_.size() && open; ++s) open = task_.open(s, bound_of_mask(s, mask), m_);
      if (open) masks.emplace_back(task_.price * m_ - bound, mask);
    }
    std::sort(masks.begin(), masks.end());
    const bool falls = task_.all_fall();
    for (const auto& [bound, mask] : masks) {
      if (-bound < task_.target()) break;
      mask_ = mask;
      for (std::size_t s = 0; s < of_.size(); ++s) name(s);
      if (falls) {
        const SignTree& tree = task_.tree(m_);
        for (std::size_t s = 0; s < of_.size(); ++s) {
          for (std::size_t entry = 0; entry < 3 * tree.differences.size(); ++entry) {
            of_[s].extra[entry] = of_[s].costs.of_sign(tree, mask, static_cast<int>(entry));
          }
          values_[s] = of_[s].costs.known(tree, mask);
        }
        go_down(tree, tree.nodes.front(), 0);
      } else {
        for (std::size_t s = 0; s < of_.size(); ++s) values_[s] = task_.statistics[s].start();
        descend(task_.order(m_), 0, 0, 0, 0.0);
      }
      if (stop.asked()) return false;
    }
    if (placed_) settle(falls ? static_cast<const WeightsOfOrders&>(task_.tree(m_)) : task_.order(m_));
    return true;
  }

  // Hand over the places that were found.
  void merge() const { found_.merge(good_, extremes_); }

 private:
  static constexpr std::uint64_t kUnseen = std::numeric_limits<std::uint64_t>::max();

  // The best place of a pattern on the cards of a support, together with the number of an order, and the mask of a
  // card.
  struct End {
    std::uint64_t key = kUnseen;
    int mask = 0;
  };

  // The support as one statistic sees it.
  struct Seen {
    Blocks blocks, named;                         // by pattern, and by pattern with positive weights
    PairCounts pairs, named_pairs;                // likewise, of comparable pairs
    std::array<std::size_t, kPatterns> by_share;  // patterns with positive weights, largest share first
    std::array<double, 3 * kDifferences> extra;   // cost of each sign of each difference
    PairCosts costs;
  };

  // Rename the patterns for cards on which the columns of a mask count down.
  void name(std::size_t s) {
    Seen& of = of_[s];
    const auto flip = index(mask_);
    for (std::size_t p = 0; p < patterns_; ++p) of.named[p] = of.blocks[p ^ flip];
    if (task_.statistics[s].pairs) {
      for (std::size_t p = 0; p < patterns_; ++p) {
        for (std::size_t q = 0; q < patterns_; ++q) of.named_pairs[p][q] = of.pairs[p ^ flip][q ^ flip];
      }
      return;
    }
    const auto share = [&](std::size_t p) { return of.named[p].count > 0.0 ? of.named[p].share() : -1.0; };
    const auto end = of.by_share.begin() + patterns_;
    std::iota(of.by_share.begin(), end, std::size_t{0});
    std::sort(of.by_share.begin(), end, [&](std::size_t a, std::size_t b) {
      const double one = share(a), other = share(b);
      return one != other ? one > other : a < b;
    });
  }

  // A bound of a statistic for the cards of a support on which the columns of a mask count down.
  double bound_of_mask(std::size_t s, int mask) const {
    const CardStatistic& statistic = task_.statistics[s];
    const Seen& of = of_[s];
    if (statistic.slope > 0.0) {
      return CardTask::value_of_cost(statistic, of.costs, of.costs.known(task_.tree(m_), mask));
    }
    Blocks named;
    for (std::size_t p = 0; p < patterns_; ++p) named[p] = of.blocks[p ^ index(mask)];
    return statistic.bound_of_chains(named, chains_, 0, 0.0);
  }

  // --- rank weights that fall by the same amount, see `pairs.h`

  // Visit a node of the signs at a depth, where `values_` has the costs of the pairs whose signs are known.
  void go_down(const SignTree& tree, const SignTree::Node& node, std::size_t depth) {
    const std::size_t statistics = of_.size();
    const double* costs = values_.data() + depth * statistics;
    if (node.weights >= 0) {
      const double value = CardTask::value_of_cost(task_.objective(), of_[0].costs, costs[0]) - task_.price * m_;
      take(tree, index(node.weights), value);
      return;
    }
    double* sums = values_.data() + (depth + 1) * statistics;
    for (int at = node.child; at >= 0;) {
      const SignTree::Node& child = tree.nodes[index(at)];
      bool open = true;
      for (std::size_t s = 0; s < statistics && open; ++s) {
        double sum = costs[s];
        for (int i = child.first; i < child.last; ++i) sum += of_[s].extra[tree.known[index(i)]];
        sums[s] = sum;
        open = task_.open(s, CardTask::value_of_cost(task_.statistics[s], of_[s].costs, sum), m_);
      }
      if (open) go_down(tree, child, depth + 1);
      at = child.next;
    }
  }

  // --- any rank weights

  // Visit the children of a node of the orders at a depth; `placed` are the patterns above, `place` their rows, and
  // `values_` has their contributions.
  void descend(const Orders& orders, std::size_t at, std::size_t depth, Patterns placed, double place) {
    const std::size_t statistics = of_.size();
    const double* above = values_.data() + depth * statistics;
    double* reached = values_.data() + (depth + 1) * statistics;
    for (int child = orders.nodes[at].child; child >= 0; child = orders.nodes[index(child)].next) {
      const Orders::Node& node = orders.nodes[index(child)];
      const Patterns now = placed | node.equal;
      double below = place;
      bool open = true;
      for (std::size_t s = 0; s < statistics && open; ++s) {
        const Seen& of = of_[s];
        reached[s] =
            above[s] + task_.statistics[s].placed(node.equal, placed, of.named, of.named_pairs, place, patterns_);
        below = place + CardStatistic::joined(node.equal, of.named).count;
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
    if (statistic.pairs) return task_.open(s, reached, m_);
    double bound = reached, below = place;
    for (std::size_t i = 0; i < patterns_; ++i) {
      const std::size_t p = of_[s].by_share[i];
      const Block& part = of_[s].named[p];
      if ((placed >> p & 1) != 0 || part.count == 0.0) continue;
      bound += part.share() * statistic.between(below, below + part.count);
      below += part.count;
    }
    if (!task_.open(s, bound, m_)) return false;
    return task_.open(s, reached + statistic.bound_of_chains(of_[s].named, chains_, placed, place), m_);
  }

  // --- the cards that are found

  // Take note of a card if it meets the demands.
  void take(const WeightsOfOrders& orders, std::size_t order, double value) {
    bool certain = true;
    for (std::size_t s = 1; s < of_.size(); ++s) {
      const CardStatistic& of = task_.statistics[s];
      const double reached = of.value_in(orders.tiers[order], of_[s].named, of_[s].named_pairs, patterns_);
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
    if (!placed_) ends_.fill({});
    placed_ = true;
    ++good_;
    std::uint64_t above = 0;
    for (const Patterns equal : tiers) {
      const auto rows = static_cast<std::uint64_t>(CardStatistic::joined(equal, of_[0].named).count);
      const std::array<std::uint64_t, 2> keys{(above + 1) << 32 | order,
                                              (task_.table.n() - above - rows) << 32 | order};
      above += rows;
      for (Patterns left = rows > 0 ? equal : 0; left != 0; left &= left - 1) {
        auto& ends = ends_[index(std::countr_zero(left) ^ mask_)];
        for (std::size_t end = 0; end < 2; ++end) {
          if (keys[end] < ends[end].key) ends[end] = {keys[end], mask_};
        }
      }
    }
  }

  // Give the rows of a support the places that its cards have given to its patterns.
  void settle(const WeightsOfOrders& orders) {
    placed_ = false;
    for (std::size_t p = 0; p < patterns_; ++p) {
      const std::uint64_t* part = one_.data() + p * task_.table.words();
      std::array<Extreme, 2> found;
      for (std::size_t end = 0; end < 2; ++end) {
        const auto [key, mask] = ends_[p][end];
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
  std::size_t patterns_;
  std::vector<std::vector<int>> chains_;
  Support support_;
  std::vector<std::uint64_t> one_, other_;
  std::vector<std::uint8_t> pattern_;  // of each row, for comparable pairs
  std::vector<Seen> of_;               // of each statistic
  std::vector<double> values_;         // at each depth, of each statistic
  // of places of rows
  bool placed_ = false;    // whether a card of the support was found
  std::int64_t good_ = 0;  // cards
  std::array<std::array<End, 2>, kPatterns> ends_;
  std::vector<std::array<Extreme, 2>> extremes_;  // of each row
};

}  // namespace ltr
