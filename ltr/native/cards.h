// Find the scoring systems with the largest rank statistic: few yes/no questions, small whole numbers of points.
//
// A card gives points w_j, whole numbers of size `fewest` to `most`, to each of at most k yes/no columns; the total of
// a row is the sum of the points of its columns. Rows are ordered by their totals. Of a statistic ``sum_r a_r gain(row
// at place r)``, places counted from the top and a_1 >= a_2 >= ..., rows with equal totals get the expectation over
// their orders (`ties average`) or the worst order (`ties lost`).
//
// *Blocks.* The m columns of a support split the rows into 2^m patterns, so a card orders 2^m blocks of rows, whatever
// the number of rows is. Up to which columns count down, all weights are positive: with the columns of the mask s
// negated, pattern p has the total ``const + sum_j |w_j| (p xor s)_j``. So the orders of all cards of a support are
// those of positive weights, with the patterns renamed. They form a tree, in which a path from the root lists the sets
// of blocks with equal totals from the top (`Orders`). It is made once for each m.
//
// *Bounds.* With the expectation over ties, each row of a block with c rows and the gain g counts as if it had the gain
// g / c, its share. An order of blocks is then an order of rows with these gains, and by the rearrangement inequality
// none exceeds descending shares. That bounds a support, and what is left below a node of the tree. With ties lost the
// value is at most that expectation.
//
// Positive weights put a pattern above its subsets. Take a chain of patterns, each a subset of the one before. Where
// the shares ascend along it, pooling neighbours until they descend (pool adjacent violators; Ayer et al. 1955) gives
// the slopes of the concave hull of the chain's cumulative gains. Let h(r) be the largest sum of gains of r rows, each
// chain contributing according to its hull. The gains of the r rows at the top of an allowed order are at most h(r),
// and
// ``sum_r a_r gain_r = sum_r (a_r - a_{r+1}) (gains of the top r)`` has factors >= 0: so the pooled shares in
// descending order bound all orders in which the chains descend. This bounds the cards of a support with given signs.
//
// Where the rank weights fall by the same amount from place to place, as for AUC, `cards/pairs.h` has stronger bounds.
// The share of comparable pairs in order, of times until an event, has the same bounds, and no others.
//
// *Parts of supports.* Where pairs of rows are all that counts, and the gains have few values, `cards/prefixes.h`
// bounds all supports that contain given columns. Columns that order more pairs by themselves are added first. Parts of
// supports, two columns short of a whole one (fewer columns where there would be more than `kPrefixes`), are listed and
// completed in descending order of their bounds. So the bound of what is left falls, and a search that is stopped
// returns it. Before the search, parts of one or two columns bound the cards of each size. For other statistics all
// supports are listed.
//
// *Demands.* Other statistics of the same order, with the same ties, may have least values. They have the same bounds,
// so a support, the cards of it with given signs, or a node is left out where the bound of one is below its least
// value. Where all statistics have pairs, the tree is that of `SignTree`. Otherwise it is that of `Orders`, in which
// all have bounds.
//
// *Places.* Rows of one pattern stand at the same places, so the places of all rows on a card are those of 2^m
// patterns. A support keeps the best and the worst place of each pattern over its good cards, and gives them to its
// rows at the end.
//
// *Rounding.* Values and bounds are sums of at most 2^m products and errors of some 1e-14 of their size; a support or a
// node is left out only if its bound is below the best value by `kTolerance` of the statistic's size. Cards whose
// values differ by less than that count as equal; of these, one with fewer questions is taken (so a card of m questions
// has to exceed those of fewer by as much), then one with fewer points in total, then the first in order of columns and
// points. So the answer does not depend on the number of threads.
// Whether a card whose value is that close to a least value meets the demand is decided by the caller.
#pragma once

#include <memory>

#include "cards/found.h"
#include "cards/task.h"

namespace ltr {

// The best and the worst place of each row: 1 + the rows above, and the rows not below, on the cards where that is
// least and most, and the points of these cards.
struct Places {
  std::span<std::int64_t> best, worst;
  Matrix<std::int64_t> best_points, worst_points;
};

class CardSearch {
 public:
  virtual ~CardSearch() = default;

  // Search all cards of at most k columns, beyond those of fewer that were searched before; return whether that was
  // completed. All cards whose value is at least a threshold are collected, up to `most_cards`; none for infinity.
  virtual bool search(int k, int threads, const Stop& stop, double threshold, std::size_t most_cards) = 0;

  // Find the places of the rows that are 1 in `tracked` on all cards of at most k columns whose value is at least a
  // threshold. Return the number of cards, of those that order the rows of the same columns alike one; -1 if stopped.
  virtual std::int64_t places(int k, int threads, const Stop& stop, double threshold,
                              std::span<const std::uint8_t> tracked, const Places& found) = 0;

  virtual double bound() = 0;
  virtual Card best() = 0;
  virtual const std::vector<Card>& cards() const = 0;
  virtual bool full() const = 0;              // whether there were more cards than could be collected
  virtual std::int64_t supports() const = 0;  // that were listed
};

std::unique_ptr<CardSearch> search_cards(CardProblem problem, Met met);

}  // namespace ltr
