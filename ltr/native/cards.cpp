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
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "arrays.h"
#include "cards/comparisons.h"
#include "cards/found.h"
#include "cards/listing.h"
#include "cards/one_support.h"
#include "cards/task.h"
#include "module.h"
#include "threads.h"

namespace ltr {
namespace {

constexpr std::size_t kSurvivors = 4'000'000;  // supports in memory at a time
constexpr std::size_t kBatch = 20'000;         // supports to examine at a time where the best are found first

class CardSearch {
 public:
  // Args:
  //   X: answers; level: of each row; signs: of each column.
  //   directions: of each column, number of the group whose points must have one sign, or -1.
  //   rules: a row for each rule, 1 for its columns; when: likewise; least, most: of each rule.
  //   fewest, most: points that a column of a card may have, up to their sign.
  //   gains: of each level, a row for each statistic, that of the objective first; rank_weights: likewise, of each
  //   place; perfect: the value of a perfect order for each; least: the value asked for of each but the first.
  //   order, event: of each row, a row for each statistic: where a row has an event, the statistic is the share of
  //   comparable pairs in order, see `cards/comparisons.h`, and its gains and rank weights are not looked at.
  //   ties_lost: 1 for each statistic that counts rows with equal totals in their worst order.
  //   met: called with the columns and points of cards so close to a least value that rounding could decide.
  CardSearch(Rows<std::uint8_t> X, Vector<std::int32_t> level, Rows<double> gains, Rows<double> rank_weights,
             Vector<double> perfect, Vector<double> least, Rows<std::int32_t> order, Rows<std::uint8_t> event,
             nb::object met, Vector<std::uint8_t> signs, Vector<std::int32_t> directions, Rows<std::uint8_t> rules,
             Rows<std::uint8_t> when, Vector<std::int32_t> rule_least, Vector<std::int32_t> rule_most, int fewest,
             int most, Vector<std::uint8_t> ties_lost, double price)
      : task_{.table = CardTable(view(X), view(level), gains.shape(1)),
              .form = CardForm(view(signs), view(directions), rules_of(rules, when, rule_least, rule_most)),
              .statistics = statistics_of(X, gains, rank_weights, perfect, least, order, event, ties_lost),
              .fewest = fewest,
              .most = most,
              .price = price},
        found_(task_, std::move(met)),
        listing_(task_) {
    require(signs.shape(0) == X.shape(1) && directions.shape(0) == X.shape(1), "one per column");
    require(rules.shape(1) == X.shape(1), "columns of a rule");
    require(1 <= fewest && fewest <= most && most <= 100, "points");
    require(std::isfinite(price) && price >= 0.0, "price");
  }

  // Search all cards of at most k columns, beyond those of fewer that were searched before.
  //
  // Args:
  //   k: columns of a card; threads: number of threads; stop: see `Stop`.
  //   threshold: collect all cards whose value is at least this, up to `most_cards`; infinity to collect none.
  // Returns: whether the search was completed.
  bool search(int k, int threads, Vector<std::uint8_t> stop, double threshold, std::size_t most_cards) {
    require(k >= 1 && k <= kLargest && threads >= 1, "columns and threads");
    const Stop asked(view(stop));
    const nb::gil_scoped_release release;
    found_.placing = false;
    return run(k, threads, asked, threshold, most_cards);
  }

  // Find the places of rows on all cards of at most k columns whose value is at least a threshold.
  //
  // Args:
  //   k, threads, stop: see `search`; tracked: 1 for each row whose places are asked for.
  //   best, worst: 1 + the rows above, and the rows not below, on the card where that is least and most; best_points,
  //   worst_points: the points of these cards.
  // Returns: the number of cards, of those that order the rows of the same columns alike one; -1 if stopped, 0 if none.
  std::int64_t places(int k, int threads, Vector<std::uint8_t> stop, double threshold, Vector<std::uint8_t> tracked,
                      OutVector<std::int64_t> best, OutVector<std::int64_t> worst, OutRows<std::int64_t> best_points,
                      OutRows<std::int64_t> worst_points) {
    require(k >= 1 && k <= kLargest && threads >= 1 && std::isfinite(threshold), "columns, threads and threshold");
    require(
        tracked.shape(0) == task_.table.n() && best.shape(0) == task_.table.n() && worst.shape(0) == task_.table.n(),
        "one per row");
    for (const auto& points : {best_points, worst_points}) {
      require(points.shape(0) == task_.table.n() && points.shape(1) == task_.table.columns(), "points of each row");
    }
    const Stop asked(view(stop));
    const nb::gil_scoped_release release;
    std::vector<std::uint64_t> marked(task_.table.words(), 0);
    for (std::size_t bit = 0; bit < task_.table.bits(); ++bit) {
      const std::uint64_t used = task_.table.all()[bit / 64] >> bit % 64 & 1;
      if (used != 0 && tracked(task_.table.row_at(bit)) != 0) marked[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    found_.track(std::move(marked));
    if (!run(k, threads, asked, threshold, 0)) return -1;
    for (std::size_t i = 0; i < task_.table.n() && found_.good > 0; ++i) {
      if (tracked(i) == 0) continue;
      best(i) = found_.extremes[i][0].place;
      worst(i) = static_cast<std::int64_t>(task_.table.n()) - found_.extremes[i][1].place;
      for (std::size_t end = 0; end < 2; ++end) {
        const Card& card = found_.extremes[i][end].card;
        for (std::size_t j = 0; j < static_cast<std::size_t>(card.size); ++j) {
          (end == 0 ? best_points : worst_points)(i, static_cast<std::size_t>(card.columns[j])) = card.points[j];
        }
      }
    }
    return found_.good;
  }

  double bound() { return std::max(bound_.load(), found_.best().value); }

  nb::tuple best() { return FoundCards::described(found_.best()); }

  nb::list cards() const {
    nb::list all;
    for (const Card& card : found_.cards()) all.append(FoundCards::described(card));
    return all;
  }

  bool full() const { return found_.full(); }
  std::int64_t supports() const { return listing_.supports(); }
  std::int64_t examined() const { return examined_; }
  std::int64_t nodes() const { return nodes_; }

 private:
  static std::vector<Rule> rules_of(const Rows<std::uint8_t>& rules, const Rows<std::uint8_t>& when,
                                    const Vector<std::int32_t>& least, const Vector<std::int32_t>& most) {
    const std::size_t count = rules.shape(0);
    require(when.shape(0) == count && least.shape(0) == count && most.shape(0) == count, "one per rule");
    require(when.shape(1) == rules.shape(1), "columns of a rule");
    std::vector<Rule> all;
    for (std::size_t r = 0; r < count; ++r) {
      const auto of = view(rules)[r], on = view(when)[r];
      Rule& rule = all.emplace_back(Rule{{of.begin(), of.end()}, {}, least(r), most(r)});
      if (std::any_of(on.begin(), on.end(), [](auto one) { return one != 0; })) rule.when.assign(on.begin(), on.end());
    }
    return all;
  }

  static std::vector<CardStatistic> statistics_of(const Rows<std::uint8_t>& X, const Rows<double>& gains,
                                                  const Rows<double>& rank_weights, const Vector<double>& perfect,
                                                  const Vector<double>& least, const Rows<std::int32_t>& order,
                                                  const Rows<std::uint8_t>& event,
                                                  const Vector<std::uint8_t>& ties_lost) {
    const std::size_t count = gains.shape(0), n = X.shape(0);
    require(count >= 1 && rank_weights.shape(0) == count && perfect.shape(0) == count && least.shape(0) + 1 == count &&
                ties_lost.shape(0) == count,
            "one of each statistic");
    require(rank_weights.shape(1) == n, "one rank weight per row");
    for (const auto& shape : {std::pair(order.shape(0), order.shape(1)), std::pair(event.shape(0), event.shape(1))}) {
      require(shape.first == count && shape.second == n, "order and event of each row");
    }
    std::vector<CardStatistic> all;
    for (std::size_t s = 0; s < count; ++s) {
      const double from = s > 0 ? least(s - 1) : -kInfinity;
      const auto events = view(event)[s];
      const bool lost = ties_lost(s) != 0;
      if (std::any_of(events.begin(), events.end(), [](auto of) { return of != 0; })) {
        auto pairs = std::make_shared<const Comparisons>(view(order)[s], events, view(X));
        all.emplace_back(std::move(pairs), gains.shape(1), from, lost);
      } else {
        all.emplace_back(view(gains)[s], view(rank_weights)[s], perfect(s), from, lost);
      }
    }
    return all;
  }

  bool run(int k, int threads, const Stop& asked, double threshold, std::size_t most_cards) {
    task_.threshold = threshold;
    bound_ = task_.objective().perfect;  // until it is known better
    const int most = std::min(k, static_cast<int>(task_.table.columns()));
    if (threshold < kInfinity) {
      searched_ = 0;
      found_.collect(most_cards);
    }
    if (searched_ == 0 && task_.form.complete({}, 0)) take_none();
    // bounds of the cards of each number of columns, and of larger ones
    std::vector<double> bounds(static_cast<std::size_t>(most) + 2, -kInfinity);
    for (int m = most; m > searched_; --m) {
      const auto size = static_cast<std::size_t>(m);
      bounds[size] = std::max(bounds[size + 1], listing_.ceiling(m, threads, asked));
    }
    for (int m = searched_ + 1; m <= most; ++m) {
      const auto size = static_cast<std::size_t>(m);
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
    const Card none{.value = value_of_none(task_.objective())};
    if (!certain && !found_.decide(none)) return;
    if (!found_.placing) {
      found_.offer(none);
    } else if (none.value >= task_.cutoff()) {
      ++found_.good;
      for (std::size_t i = 0; i < task_.table.n(); ++i) found_.extremes[i] = {Extreme{1, none}, Extreme{0, none}};
    }
  }

  // Search the cards of m columns; `larger` is a bound of those with more. Return whether that was completed.
  bool search_size(int m, double larger, int threads, const Stop& stop) {
    if (m < static_cast<int>(task_.form.needed().size()) ||
        task_.objective().perfect - task_.price * m < task_.cutoff())
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
      std::vector<std::vector<Support>> found(static_cast<std::size_t>(threads));
      std::atomic<std::size_t> kept{0};
      std::mutex lock;
      double open = -kInfinity;
      in_threads(threads, [&](std::size_t thread) {
        CardListing::Enumeration work = listing_.enumeration_of(m, 0);
        while (!stop.asked() && kept < batch) {
          const std::size_t index = next++;
          if (index >= prefixes.size()) break;
          if (static_cast<double>(prefixes[index].bound) < task_.cutoff()) continue;
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
          if (index >= survivors.size() || static_cast<double>(survivors[index].bound) < task_.cutoff() ||
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
        count(search);
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
    Card best = found_.best();
    std::vector<std::uint16_t> columns;
    columns.assign(best.columns.begin(), best.columns.begin() + best.size);
    if (columns.empty()) columns = task_.form.needed();
    if (static_cast<int>(columns.size()) + 1 < m) return;
    for (bool better = true; better;) {
      const Card start = best;
      const bool exchange = static_cast<int>(columns.size()) == m;
      for (int leave = exchange ? 0 : -1; leave < (exchange ? m : 0); ++leave) {
        Support support;
        int size = 0;
        for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
          if (i != leave) support.columns[static_cast<std::size_t>(size++)] = columns[static_cast<std::size_t>(i)];
        }
        const Support kept = support;
        for (std::size_t j = 0; j < task_.table.columns(); ++j) {
          if (stop.asked()) return count(search);
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
      better = best.size == m && best.value > start.value + task_.tolerance();
      columns.assign(best.columns.begin(), best.columns.begin() + best.size);
    }
    count(search);
  }

  void count(const SupportSearch& search) {
    examined_.fetch_add(search.examined(), std::memory_order_relaxed);
    nodes_.fetch_add(search.nodes(), std::memory_order_relaxed);
  }

  CardTask task_;
  FoundCards found_;
  CardListing listing_;
  int searched_ = 0;
  std::atomic<double> bound_{kInfinity};  // before the search begins nothing is proven
  std::atomic<std::int64_t> examined_{0}, nodes_{0};
};

}  // namespace

void bind_cards(nb::module_& module) {
  nb::class_<CardSearch>(module, "CardSearch", "The search for scoring systems, see `ltr.exact.cards`.")
      .def(nb::init<Rows<std::uint8_t>, Vector<std::int32_t>, Rows<double>, Rows<double>, Vector<double>,
                    Vector<double>, Rows<std::int32_t>, Rows<std::uint8_t>, nb::object, Vector<std::uint8_t>,
                    Vector<std::int32_t>, Rows<std::uint8_t>, Rows<std::uint8_t>, Vector<std::int32_t>,
                    Vector<std::int32_t>, int, int, Vector<std::uint8_t>, double>(),
           nb::kw_only(), nb::arg("X"), nb::arg("level"), nb::arg("gains"), nb::arg("rank_weights"), nb::arg("perfect"),
           nb::arg("least"), nb::arg("order"), nb::arg("event"), nb::arg("met").none(), nb::arg("signs"),
           nb::arg("directions"), nb::arg("rules"), nb::arg("when"), nb::arg("rule_least"), nb::arg("rule_most"),
           nb::arg("fewest"), nb::arg("most"), nb::arg("ties_lost"), nb::arg("price"))
      .def("search", &CardSearch::search, nb::arg("k"), nb::arg("threads"), nb::arg("stop").noconvert(),
           nb::arg("threshold") = kInfinity, nb::arg("most_cards") = 0)
      .def("places", &CardSearch::places, nb::arg("k"), nb::arg("threads"), nb::arg("stop").noconvert(),
           nb::arg("threshold"), nb::arg("tracked"), nb::arg("best").noconvert(), nb::arg("worst").noconvert(),
           nb::arg("best_points").noconvert(), nb::arg("worst_points").noconvert())
      .def_prop_ro("bound", &CardSearch::bound)
      .def_prop_ro("best", &CardSearch::best)
      .def_prop_ro("cards", &CardSearch::cards)
      .def_prop_ro("full", &CardSearch::full)
      .def_prop_ro("supports", &CardSearch::supports)
      .def_prop_ro("examined", &CardSearch::examined)
      .def_prop_ro("nodes", &CardSearch::nodes);
}

}  // namespace ltr
