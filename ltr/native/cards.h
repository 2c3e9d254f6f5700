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
// *Parts of supports.* Where pairs of rows are all that counts, and the gains have few values, `cards/pairs.h`
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

#include <array>
#include <atomic>
#include <mutex>

#include "cards/listing.h"
#include "cards/one_support.h"
#include "workers.h"

namespace ltr {

constexpr std::size_t kSurvivors = 4'000'000;  // supports in memory at a time
constexpr std::size_t kBatch = 20'000;         // supports to examine at a time where the best are found first

class CardSearch {
 public:
  explicit CardSearch(CardProblem problem) : task_(std::move(problem)), found_(task_), listing_(task_) {}

  // Search all cards of at most k columns, beyond those of fewer that were searched before; return whether that was
  // completed. All cards whose value is at least a threshold are collected, up to `most_cards`; none for infinity.
  bool search(int k, int threads, Stop stop, double threshold, std::size_t most_cards) {
    found_.placing = false;
    return run(k, threads, stop, threshold, most_cards);
  }

  // Find the places of the rows that are 1 in `tracked` on all cards of at most k columns whose value is at least a
  // threshold: 1 + the rows above, and the rows not below, on the cards where that is least and most, and the points of
  // these cards. Return the number of cards, of those that order the rows of the same columns alike one; -1 if stopped.
  std::int64_t places(int k, int threads, Stop stop, double threshold, std::span<const std::uint8_t> tracked,
                      std::span<std::int64_t> best, std::span<std::int64_t> worst, Matrix<std::int64_t> best_points,
                      Matrix<std::int64_t> worst_points) {
    const CardTable& table = task_.table;
    for (const std::size_t size : {tracked.size(), best.size(), worst.size(), best_points.rows, worst_points.rows}) {
      require(size == table.n(), "one per row");
    }
    require(best_points.columns == table.columns() && worst_points.columns == table.columns(), "points of columns");
    std::vector<std::uint64_t> marked(table.words(), 0);
    for (std::size_t bit = 0; bit < table.bits(); ++bit) {
      const std::uint64_t used = table.all()[bit / 64] >> bit % 64 & 1;
      if (used != 0 && tracked[table.row_at(bit)] != 0) marked[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    found_.track(std::move(marked));
    if (!run(k, threads, stop, threshold, 0)) return -1;
    for (std::size_t i = 0; i < table.n() && found_.good > 0; ++i) {
      if (tracked[i] == 0) continue;
      const auto& [first, last] = found_.extremes[i];
      best[i] = first.place;
      worst[i] = static_cast<std::int64_t>(table.n()) - last.place;
      write_points(first.card, best_points[i]);
      write_points(last.card, worst_points[i]);
    }
    return found_.good;
  }

  double bound() { return std::max(bound_.load(), found_.best().value); }
  FoundWeights best() { return found_.best(); }
  std::vector<FoundWeights> cards() { return found_.collected(); }
  bool full() const { return found_.full(); }                    // whether there were more
  std::int64_t supports() const { return listing_.supports(); }  // that were listed

 private:
  static void write_points(const FoundWeights& card, std::span<std::int64_t> points) {
    for (std::size_t j = 0; j < card.size; ++j) points[index(card.columns[j])] = card.weights[j];
  }

  bool run(int k, int threads, Stop asked, double threshold, std::size_t most_cards) {
    require(k >= 1 && k <= kLargest && threads >= 1, "columns and threads");
    task_.threshold = threshold;
    found_.collect(threshold, most_cards);
    if (threshold < kInfinity) searched_ = 0;
    bound_ = task_.objective().perfect;  // until it is known better
    const int most = std::min(k, static_cast<int>(task_.table.columns()));
    if (searched_ == 0 && task_.form.complete({}, 0)) take_none();
    // bounds of the cards of each number of columns, and of larger ones
    std::vector<double> bounds(index(most) + 2, -kInfinity);
    for (int m = most; m > searched_; --m) {
      const auto size = index(m);
      bounds[size] = std::max(bounds[size + 1], listing_.ceiling(m, threads, asked));
    }
    for (int m = searched_ + 1; m <= most; ++m) {
      const auto size = index(m);
      bound_ = bounds[size];
      if (const double best = found_.best().value; best > -kInfinity) task_.floor = best + task_.tolerance();
      if (!search_size(m, bounds[size + 1], threads, asked)) return false;
      searched_ = m;
    }
    bound_ = -kInfinity;
    return true;
  }

  // The value of a statistic where all rows tie.
  double value_of_none(const CardStatistic& statistic) const {
    if (statistic.pairs) return statistic.ties_lost ? 0.0 : 0.5;
    return statistic.value_of(task_.table.block_of(statistic.gains, task_.table.all().data()), 0.0);
  }

  // Offer the card without questions.
  void take_none() {
    bool certain = true;
    for (std::size_t s = 1; s < task_.statistics.size(); ++s) {
      if (!CardTask::meets(task_.statistics[s], value_of_none(task_.statistics[s]), certain)) return;
    }
    const FoundWeights none{.value = value_of_none(task_.objective())};
    if (!certain && !task_.met(none)) return;
    if (!found_.placing) {
      found_.offer(none);
    } else if (none.value >= task_.target()) {
      ++found_.good;
      for (std::size_t i = 0; i < task_.table.n(); ++i) found_.extremes[i] = {Extreme{1, none}, Extreme{0, none}};
    }
  }

  // Search the cards of m columns; `larger` is a bound of those with more. Return whether that was completed.
  bool search_size(int m, double larger, int threads, const Stop& stop) {
    if (m < static_cast<int>(task_.form.needed().size()) ||
        task_.objective().perfect - task_.price * m < task_.target())
      return true;
    const double all = bound_;
    task_.prepare(m);
    if (task_.threshold == kInfinity) climb(m, stop);  // it meets cards more than once
    const CardListing::Candidates firsts = listing_.first_candidates(m);
    const int prefix = listing_.prefix_of(m, firsts.columns.size());
    std::vector<Support> prefixes;
    if (const double left = listing_.list_prefixes(m, prefix, firsts, threads, stop, prefixes); stop.asked()) {
      bound_ = std::max(larger, std::min(all, left));
      return false;
    }
    std::atomic<std::size_t> next{0};
    const std::size_t batch = listing_.has_pairs() ? kBatch : kSurvivors;
    while (next < prefixes.size()) {
      std::vector<std::vector<Support>> found(index(threads));
      std::atomic<std::size_t> kept{0};
      std::mutex lock;
      double open = -kInfinity;
      in_threads(threads, [&](std::size_t thread) {
        CardListing::Enumeration work = listing_.enumeration_of(m, 0);
        while (!stop.asked() && kept < batch) {
          const std::size_t index = next++;
          if (index >= prefixes.size()) break;
          if (static_cast<double>(prefixes[index].bound) < task_.target()) continue;
          const std::size_t before = work.found.size();
          const double left = listing_.complete_prefix(m, prefix, prefixes[index], firsts.columns, stop, work);
          kept += work.found.size() - before;
          const std::lock_guard guard(lock);
          open = std::max(open, left);
        }
        found[thread] = std::move(work.found);
      });
      std::vector<Support> survivors;
      for (auto& some : found) survivors.insert(survivors.end(), some.begin(), some.end());
      CardListing::best_first(survivors);
      std::atomic<std::size_t> at{0};
      in_threads(threads, [&](std::size_t) {
        SupportSearch search(task_, found_, m);
        while (true) {
          const std::size_t index = at++;
          if (index >= survivors.size() || static_cast<double>(survivors[index].bound) < task_.target() ||
              found_.full())
            break;
          const bool done = !stop.asked() && search.examine(survivors[index], stop);
          if (!done) {
            const std::lock_guard guard(lock);
            open = std::max(open, static_cast<double>(survivors[index].bound));
            break;
          }
        }
        search.merge();
      });
      if (open > -kInfinity || stop.asked()) {
        if (next < prefixes.size()) open = std::max(open, static_cast<double>(prefixes[next].bound));
        bound_ = std::max(larger, std::min(all, open));
        if (open > -kInfinity) return false;
      }
    }
    return true;
  }

  // Look for a good card of m columns before all are searched: add columns to the best card, then exchange them one
  // at a time while that helps.
  void climb(int m, const Stop& stop) {
    SupportSearch search(task_, found_, m);
    FoundWeights best = found_.best();
    std::vector<std::uint16_t> columns;
    columns.assign(best.columns.begin(), best.columns.begin() + best.size);
    if (columns.empty()) columns = task_.form.needed();
    if (static_cast<int>(columns.size()) + 1 < m) return;
    for (bool better = true; better;) {
      const FoundWeights start = best;
      const bool exchange = static_cast<int>(columns.size()) == m;
      for (int leave = exchange ? 0 : -1; leave < (exchange ? m : 0); ++leave) {
        Support support;
        int size = 0;
        for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
          if (i != leave) support.columns[index(size++)] = columns[index(i)];
        }
        const Support kept = support;
        for (std::size_t j = 0; j < task_.table.columns(); ++j) {
          if (stop.asked()) return;
          support = kept;
          const auto end = support.columns.begin() + size;
          if (!task_.form.allowed(support.columns, size, j) || std::find(support.columns.begin(), end, j) != end)
            continue;
          *end = static_cast<std::uint16_t>(j);
          std::sort(support.columns.begin(), end + 1);
          if (task_.form.complete(support, m)) search.examine(support, stop);
        }
      }
      best = found_.best();
      better = best.size == index(m) && best.value > start.value + task_.tolerance();
      columns.assign(best.columns.begin(), best.columns.begin() + best.size);
    }
  }

  CardTask task_;
  FoundCards found_;
  CardListing listing_;
  int searched_ = 0;
  std::atomic<double> bound_{kInfinity};  // before the search begins nothing is proven
};

}  // namespace ltr
