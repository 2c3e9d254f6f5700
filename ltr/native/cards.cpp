// Find the scoring systems with the largest rank statistic: few yes/no questions, small whole numbers of points.
//
// A card gives points w_j, whole numbers of size `fewest` to `most`, to each of at most k yes/no columns; the total of
// a row is the sum of the points of its columns. Rows are ordered by their totals. Of a statistic ``sum_r a_r gain(row
// at place r)``, places counted from the top and a_1 >= a_2 >= ..., rows with equal totals get the expectation over
// their orders
// (`ties average`) or the worst order (`ties lost`).
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
// Where the rank weights fall by the same amount from place to place, as for AUC, `card_pairs.h` has stronger bounds.
// The share of comparable pairs in order, of times until an event, has the same bounds, and no others.
//
// *Parts of supports.* Where the pairs of a row of the upper and one of the lower level are all that counts,
// `card_prefixes.h` bounds all supports that contain given columns. Columns that order more pairs by themselves are
// added first. Parts of supports, two columns short of a whole one (fewer columns where there would be more than
// `kPrefixes`), are listed and completed in descending order of their bounds. So the bound of what is left falls, and a
// search that is stopped returns it. For other statistics all supports are listed.
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
#include <bit>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "arrays.h"
#include "card_orders.h"
#include "card_pairs.h"
#include "card_prefixes.h"
#include "card_statistics.h"
#include "comparisons.h"
#include "module.h"

namespace ltr {
namespace {

constexpr double kTolerance = 2e-13;
constexpr std::size_t kSurvivors = 4'000'000;  // supports in memory at a time
constexpr double kPrefixes = 4e6;              // parts of supports in memory at a time
constexpr std::size_t kBatch = 20'000;         // supports to examine at a time where the best are found first
constexpr double kCeilingWork = 2e9;           // words and rows looked at for a bound before the search
constexpr std::size_t kMostSteps = 8;          // of the gains, where parts of supports are bounded
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint64_t kUnseen = std::numeric_limits<std::uint64_t>::max();

struct Card {
  double value = -kInfinity;  // with the price
  int size = 0;
  std::array<std::int32_t, kLargest> columns{};
  Weights points{};

  int total() const {
    int sum = 0;
    for (const auto v : points) sum += std::abs(v);
    return sum;
  }

  // Whether this card is to be taken before one of equal value.
  bool before(const Card& other) const {
    if (size != other.size) return size < other.size;
    if (total() != other.total()) return total() < other.total();
    if (columns != other.columns) return columns < other.columns;
    return points > other.points;
  }
};

// The best place of a row, or for the worst place the number of rows below it, and a card with that.
struct Extreme {
  std::int64_t place = std::numeric_limits<std::int64_t>::max();
  Card card;

  void improve(const Extreme& other) {
    if (other.place < place || (other.place == place && other.card.before(card))) *this = other;
  }
};

// The best place of a pattern on the cards of a support, together with the number of an order, and the mask of a card.
struct Seen {
  std::uint64_t key = kUnseen;
  int mask = 0;
};

// A rule on the columns of a card: where it has one of `when`, or in any case if that is empty, `least` to `most` of
// some columns must be among its own.
struct Rule {
  std::vector<std::uint8_t> of, when;  // 1 for each column that is meant; `when` may be empty
  int least = 0, most = kLargest;
};

struct Support {
  float bound = 0.0F;  // rounded up
  std::array<std::uint16_t, kLargest> columns{};
};

// Count the rows and gains that a column has in each part; parts follow each other, in each the levels.
#if defined(__GNUC__)
__attribute__((always_inline))
#endif
inline void count_words(const std::uint64_t* parts, int size, std::size_t words, const std::size_t* start,
                        const double* gains, std::size_t levels, const std::uint64_t* column, Block* with) {
  for (int p = 0; p < size; ++p) {
    const std::uint64_t* part = parts + static_cast<std::size_t>(p) * words;
    Block block;
    for (std::size_t level = 0; level < levels; ++level) {
      std::int64_t found = 0;
      for (std::size_t word = start[level]; word < start[level + 1]; ++word) {
        found += std::popcount(part[word] & column[word]);
      }
      block.count += static_cast<double>(found);
      block.gain += gains[level] * static_cast<double>(found);
    }
    with[p] = block;
  }
}

#ifdef LTR_HAS_TARGET_CLONES
// Processors that count the bits of eight words at once are no generation of their own.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,popcnt"))) void count_wide(
    const std::uint64_t* parts, int size, std::size_t words, const std::size_t* start, const double* gains,
    std::size_t levels, const std::uint64_t* column, Block* with) {
  count_words(parts, size, words, start, gains, levels, column, with);
}
const bool kWide = __builtin_cpu_supports("avx512vpopcntdq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#endif

LTR_MULTIVERSION void count_narrow(const std::uint64_t* parts, int size, std::size_t words, const std::size_t* start,
                                   const double* gains, std::size_t levels, const std::uint64_t* column, Block* with) {
  count_words(parts, size, words, start, gains, levels, column, with);
}

void count_common(const std::uint64_t* parts, int size, std::size_t words, const std::size_t* start,
                  const double* gains, std::size_t levels, const std::uint64_t* column, Block* with) {
#ifdef LTR_HAS_TARGET_CLONES
  if (kWide) return count_wide(parts, size, words, start, gains, levels, column, with);
#endif
  count_narrow(parts, size, words, start, gains, levels, column, with);
}

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
  //   comparable pairs in order, see `comparisons.h`, and its gains and rank weights are not looked at.
  //   ties_lost: 1 for each statistic that counts rows with equal totals in their worst order.
  //   met: called with the columns and points of cards so close to a least value that rounding could decide.
  CardSearch(Rows<std::uint8_t> X, Vector<std::int32_t> level, Rows<double> gains, Rows<double> rank_weights,
             Vector<double> perfect, Vector<double> least, Rows<std::int32_t> order, Rows<std::uint8_t> event,
             nb::object met, Vector<std::uint8_t> signs, Vector<std::int32_t> directions, Rows<std::uint8_t> rules,
             Rows<std::uint8_t> when, Vector<std::int32_t> rule_least, Vector<std::int32_t> rule_most, int fewest,
             int most, Vector<std::uint8_t> ties_lost, double price)
      : n_(X.shape(0)),
        columns_(X.shape(1)),
        levels_(gains.shape(1)),
        fewest_(fewest),
        most_(most),
        price_(price),
        met_(std::move(met)),
        signs_(signs.data(), signs.data() + signs.shape(0)),
        directions_(directions.data(), directions.data() + directions.shape(0)) {
    require(level.shape(0) == n_ && rank_weights.shape(1) == n_, "one level and one rank weight per row");
    require(signs_.size() == columns_ && directions_.size() == columns_, "one per column");
    const std::size_t count = rules.shape(0);
    require(when.shape(0) == count && rule_least.shape(0) == count && rule_most.shape(0) == count, "one per rule");
    require(rules.shape(1) == columns_ && when.shape(1) == columns_, "columns of a rule");
    for (std::size_t r = 0; r < count; ++r) {
      const auto of = view(rules)[r], on = view(when)[r];
      Rule rule{.of = {of.begin(), of.end()}, .when = {}, .least = rule_least(r), .most = rule_most(r)};
      if (std::any_of(on.begin(), on.end(), [](auto one) { return one != 0; })) rule.when.assign(on.begin(), on.end());
      if (rule.when.empty() && rule.least > 0 && std::count(of.begin(), of.end(), 1) == 1) {
        const auto j = static_cast<std::uint16_t>(std::find(of.begin(), of.end(), 1) - of.begin());
        if (std::find(needed_.begin(), needed_.end(), j) == needed_.end()) needed_.push_back(j);
      }
      rules_.push_back(std::move(rule));
    }
    require(1 <= fewest && fewest <= most && most <= 100 && columns_ <= 60'000 && n_ >= 1, "sizes");
    require(levels_ >= 1 && levels_ <= n_, "number of levels");
    require(std::isfinite(price) && price >= 0.0, "price");
    const std::size_t statistics = gains.shape(0);
    require(statistics >= 1 && rank_weights.shape(0) == statistics && perfect.shape(0) == statistics &&
                least.shape(0) + 1 == statistics && ties_lost.shape(0) == statistics,
            "one of each statistic");
    for (const auto& shape : {std::pair(order.shape(0), order.shape(1)), std::pair(event.shape(0), event.shape(1))}) {
      require(shape.first == statistics && shape.second == n_, "order and event of each row");
    }
    for (std::size_t s = 0; s < statistics; ++s) {
      const double from = s > 0 ? least(s - 1) : -kInfinity;
      const auto events = view(event)[s];
      const bool lost = ties_lost(s) != 0;
      if (std::any_of(events.begin(), events.end(), [](auto of) { return of != 0; })) {
        auto pairs = std::make_shared<const Comparisons>(view(order)[s], events, view(X));
        statistics_.emplace_back(std::move(pairs), levels_, from, lost);
      } else {
        statistics_.emplace_back(view(gains)[s], view(rank_weights)[s], perfect(s), from, lost);
      }
    }
    steps_ = steps_of(objective());
    for (const std::uint8_t of : signs_) require(of <= 3, "signs");
    for (const std::int32_t of : view(level)) require(of >= 0 && of < static_cast<int>(levels_), "levels");
    // rows of a level follow each other, and each level begins with a new word
    std::vector<std::size_t> next(levels_ + 1, 0);
    for (const std::int32_t of : view(level)) ++next[static_cast<std::size_t>(of) + 1];
    for (std::size_t l = 1; l < next.size(); ++l) next[l] = (next[l - 1] + next[l] + 63) / 64 * 64;
    words_ = next.back() / 64;
    for (const std::size_t bit : next) start_.push_back(bit / 64);
    bits_.assign(columns_ * words_, 0);
    all_.assign(words_, 0);
    row_at_.assign(words_ * 64, 0);
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t bit = next[static_cast<std::size_t>(level(i))]++;
      all_[bit / 64] |= std::uint64_t{1} << bit % 64;
      row_at_[bit] = i;
      for (std::size_t j = 0; j < columns_; ++j) {
        if (X(i, j) != 0) bits_[j * words_ + bit / 64] |= std::uint64_t{1} << bit % 64;
      }
    }
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
    placing_ = false;
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
    require(tracked.shape(0) == n_ && best.shape(0) == n_ && worst.shape(0) == n_, "one per row");
    for (const auto& points : {best_points, worst_points}) {
      require(points.shape(0) == n_ && points.shape(1) == columns_, "points of each row");
    }
    const Stop asked(view(stop));
    const nb::gil_scoped_release release;
    tracked_.assign(words_, 0);
    for (std::size_t bit = 0; bit < row_at_.size(); ++bit) {
      const std::uint64_t used = all_[bit / 64] >> bit % 64 & 1;
      if (used != 0 && tracked(row_at_[bit]) != 0) tracked_[bit / 64] |= std::uint64_t{1} << bit % 64;
    }
    placing_ = true;
    good_ = 0;
    extremes_.assign(n_, {});
    if (!run(k, threads, asked, threshold, 0)) return -1;
    for (std::size_t i = 0; i < n_ && good_ > 0; ++i) {
      if (tracked(i) == 0) continue;
      best(i) = extremes_[i][0].place;
      worst(i) = static_cast<std::int64_t>(n_) - extremes_[i][1].place;
      for (std::size_t end = 0; end < 2; ++end) {
        const Card& card = extremes_[i][end].card;
        for (std::size_t j = 0; j < static_cast<std::size_t>(card.size); ++j) {
          (end == 0 ? best_points : worst_points)(i, static_cast<std::size_t>(card.columns[j])) = card.points[j];
        }
      }
    }
    return good_;
  }

  double bound() {
    const std::lock_guard guard(lock_);
    return std::max(bound_.load(), best_.value);
  }
  bool full() const { return full_; }
  std::int64_t supports() const { return supports_; }
  std::int64_t examined() const { return examined_; }
  std::int64_t nodes() const { return nodes_; }
  nb::tuple best() {
    const std::lock_guard guard(lock_);
    return described(best_);
  }
  nb::list cards() const {
    nb::list all;
    for (const Card& card : found_) all.append(described(card));
    return all;
  }

 private:
  bool run(int k, int threads, const Stop& asked, double threshold, std::size_t most_cards) {
    threshold_ = threshold;
    most_cards_ = most_cards;
    bound_ = objective().perfect;  // until it is known better
    const int most = std::min(k, static_cast<int>(columns_));
    if (threshold < kInfinity) {
      searched_ = 0;
      found_.clear();
      full_ = false;
    }
    if (searched_ == 0 && complete({}, 0)) take_none();
    // bounds of the cards of each number of columns, and of larger ones
    std::vector<double> bounds(static_cast<std::size_t>(most) + 2, -kInfinity);
    for (int m = most; m > searched_; --m) {
      const auto size = static_cast<std::size_t>(m);
      bounds[size] = std::max(bounds[size + 1], ceiling(m, threads, asked));
    }
    for (int m = searched_ + 1; m <= most; ++m) {
      const auto size = static_cast<std::size_t>(m);
      bound_ = bounds[size];
      {
        const std::lock_guard guard(lock_);
        if (best_.value > -kInfinity) cutoff_ = best_.value + tolerance();
      }
      if (!search_size(m, bounds[size + 1], threads, asked)) return false;
      searched_ = m;
    }
    bound_ = -kInfinity;
    return true;
  }

  static nb::tuple described(const Card& card) {
    nb::list columns, points;
    for (int j = 0; j < card.size; ++j) {
      columns.append(card.columns[static_cast<std::size_t>(j)]);
      points.append(static_cast<int>(card.points[static_cast<std::size_t>(j)]));
    }
    return nb::make_tuple(card.value, nb::tuple(columns), nb::tuple(points));
  }

  const CardStatistic& objective() const { return statistics_.front(); }
  double tolerance() const { return kTolerance * std::abs(objective().perfect); }

  // Below which supports and nodes are left out.
  double cutoff() const {
    return threshold_ < kInfinity ? threshold_ - tolerance() : cutoff_.load(std::memory_order_relaxed);
  }

  // Count the rows of a part and their gains.
  Block block_of(const CardStatistic& statistic, const std::uint64_t* part) const {
    Block block;
    for (std::size_t level = 0; level < levels_; ++level) {
      std::int64_t count = 0;
      for (std::size_t word = start_[level]; word < start_[level + 1]; ++word) count += std::popcount(part[word]);
      block.count += static_cast<double>(count);
      block.gain += statistic.gains[level] * static_cast<double>(count);
    }
    return block;
  }

  // Whether all statistics are about pairs of rows alone: rank weights fall by the same amount from place to place.
  bool all_fall() const {
    return std::all_of(statistics_.begin(), statistics_.end(), [](const auto& of) { return of.slope > 0.0; });
  }

  // Whether a card with this value of a demand's statistic meets the demand, up to rounding.
  static bool reaches(const CardStatistic& demand, double value) {
    return value >= demand.least - kTolerance * std::abs(demand.perfect);
  }

  // --- the supports of one size

  struct Parts {  // rows by their pattern of the first columns of a support
    std::vector<std::uint64_t> bits;
    // of each statistic
    std::vector<Blocks> blocks;
    std::vector<std::vector<std::uint8_t>> pattern;  // of each row, of those of comparable pairs
  };

  // Whether a column may be added to some: no rule has too many of them.
  bool allowed(const std::array<std::uint16_t, kLargest>& columns, int size, std::size_t j) const {
    if (signs_[j] == 0) return false;
    return std::all_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
      if (rule.of[j] == 0) return true;
      const auto end = columns.begin() + size;
      const auto counted = std::count_if(columns.begin(), end, [&](auto c) { return rule.of[c] != 0; });
      return counted < rule.most || !(holds(rule, columns, size) || (!rule.when.empty() && rule.when[j] != 0));
    });
  }

  // Whether a rule is one for these columns.
  static bool holds(const Rule& rule, const std::array<std::uint16_t, kLargest>& columns, int size) {
    return rule.when.empty() ||
           std::any_of(columns.begin(), columns.begin() + size, [&](auto c) { return rule.when[c] != 0; });
  }

  void split(const std::uint64_t* parts, int count, std::size_t j, std::uint64_t* into) const {
    const std::uint64_t* column = bits_.data() + j * words_;
    for (int p = 0; p < count; ++p) {
      const std::uint64_t* part = parts + static_cast<std::size_t>(p) * words_;
      std::uint64_t* without = into + static_cast<std::size_t>(p) * words_;
      std::uint64_t* with = into + static_cast<std::size_t>(p + count) * words_;
      for (std::size_t word = 0; word < words_; ++word) {
        with[word] = part[word] & column[word];
        without[word] = part[word] & ~column[word];
      }
    }
  }

  // Fill the blocks of a support from the parts of its columns but the last, and their blocks.
  void count(const CardStatistic& statistic, const std::uint64_t* parts, const Block* before, int size, std::size_t j,
             Block* blocks) const {
    count_common(parts, size, words_, start_.data(), statistic.gains.data(), levels_, bits_.data() + j * words_,
                 blocks + size);
    for (int p = 0; p < size; ++p) {
      const Block& with = blocks[p + size];
      // the gains of a block of one level are exact, differences of sums are within rounding
      blocks[p] = {before[p].count - with.count, before[p].count == with.count ? 0.0 : before[p].gain - with.gain};
    }
  }

  // The parts of each number of columns below m, those of no column filled in.
  std::vector<Parts> parts_of(int m) const {
    std::vector<Parts> parts(static_cast<std::size_t>(m));
    for (int i = 0; i < m; ++i) {
      parts[static_cast<std::size_t>(i)].bits.resize(words_ << i);
      parts[static_cast<std::size_t>(i)].blocks.resize(statistics_.size());
      parts[static_cast<std::size_t>(i)].pattern = no_patterns();
    }
    parts[0].bits = all_;
    for (std::size_t s = 0; s < statistics_.size(); ++s) parts[0].blocks[s][0] = block_of(statistics_[s], all_.data());
    return parts;
  }

  // Patterns of no columns, for each statistic of comparable pairs.
  std::vector<std::vector<std::uint8_t>> no_patterns() const {
    std::vector<std::vector<std::uint8_t>> patterns;
    for (const CardStatistic& of : statistics_) patterns.emplace_back(of.pairs ? of.pairs->rows() : 0, 0);
    return patterns;
  }

  static float rounded_up(double bound) {
    return std::nextafter(static_cast<float>(bound), std::numeric_limits<float>::infinity());
  }

  // The rows of the parts of a support that have a column, by their comparison with the gain at which a step is.
  struct Step {
    double height;              // difference of the gains above and below it
    std::vector<double> above;  // of each level, 1 where its gain is above
  };

  // Whether pairs of rows are all that the objective is about, and they can be counted by few steps of the gains.
  bool has_pairs() const { return objective().pairs || !steps_.empty(); }

  std::vector<Step> steps_of(const CardStatistic& of) const {
    std::vector<double> gains = of.gains;
    std::sort(gains.begin(), gains.end());
    gains.erase(std::unique(gains.begin(), gains.end()), gains.end());
    std::vector<Step> steps;
    if (of.pairs || of.slope == 0.0 || gains.size() > kMostSteps + 1) return steps;
    for (std::size_t i = 1; i < gains.size(); ++i) {
      Step& step = steps.emplace_back(Step{gains[i] - gains[i - 1], {}});
      for (const double gain : of.gains) step.above.push_back(gain >= gains[i] ? 1.0 : 0.0);
    }
    return steps;
  }

  // Count the rows that have a column (all rows without one) in each part, those of a step's upper levels as gain.
  void count_step(const Step& step, const Parts& now, int size, const std::uint64_t* column, Block* blocks) const {
    count_common(now.bits.data(), 1 << size, words_, start_.data(), step.above.data(), levels_, column, blocks);
  }

  // Fill in the pairs of rows by the patterns of the columns that a support has, and for each step its blocks.
  void count_pairs_of(const Parts& now, int size, PatternPairs& all, std::vector<Blocks>& blocks) const {
    if (const auto& pairs = objective().pairs) {
      thread_local PairCounts counts;
      pairs->count(now.pattern[0].data(), size, counts);
      for (std::size_t p = 0; p < all.patterns(); ++p) {
        for (std::size_t q = 0; q < all.patterns(); ++q) all(p, q) = static_cast<double>(counts[p][q]);
      }
    }
    blocks.resize(steps_.size());
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      count_step(steps_[s], now, size, all_.data(), blocks[s].data());
      for (std::size_t p = 0; p < all.patterns(); ++p) {
        for (std::size_t q = 0; q < all.patterns(); ++q) {
          all(p, q) += steps_[s].height * blocks[s][p].gain * (blocks[s][q].count - blocks[s][q].gain);
        }
      }
    }
  }

  // Fill in the pairs of rows of which only the first has a column, or, if it counts down, only the second; `blocks`
  // are those of `count_pairs_of`.
  void count_separated(const Parts& now, int size, std::size_t j, const std::vector<Blocks>& blocks, PatternPairs& up,
                       PatternPairs& down) const {
    const std::size_t patterns = up.patterns();
    if (const auto& pairs = objective().pairs) {
      thread_local std::vector<std::uint8_t> pattern;
      thread_local PairCounts counts;
      pattern.resize(pairs->rows());
      pairs->split(now.pattern[0].data(), j, size, pattern.data());
      pairs->count(pattern.data(), size + 1, counts);
      for (std::size_t p = 0; p < patterns; ++p) {
        for (std::size_t q = 0; q < patterns; ++q) {
          up(p, q) = static_cast<double>(counts[p + patterns][q]);
          down(p, q) = static_cast<double>(counts[p][q + patterns]);
        }
      }
      return;
    }
    up.clear();
    down.clear();
    Blocks with;
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      count_step(steps_[s], now, size, bits_.data() + j * words_, with.data());
      for (std::size_t p = 0; p < patterns; ++p) {
        const double upper_with = with[p].gain, upper = blocks[s][p].gain - with[p].gain;
        for (std::size_t q = 0; q < patterns; ++q) {
          const double lower_with = with[q].count - with[q].gain;
          const double lower = blocks[s][q].count - blocks[s][q].gain - lower_with;
          up(p, q) += steps_[s].height * upper_with * lower;
          down(p, q) += steps_[s].height * upper * lower_with;
        }
      }
    }
  }

  // Columns that may follow those of a support, and bounds of the cards that have one of them and otherwise only later
  // ones. `rest` of one are the columns of these that can be on such a card together with it.
  struct Candidates {
    std::vector<std::uint16_t> columns;
    std::vector<double> bounds;
    std::vector<double> gains, later;  // by candidate and mask: of one, and the largest of enough later ones to add one
    std::vector<double> least;         // of each mask
    int more = 0;
  };

  // Fill in the bounds of candidates; `now` are the parts of the columns that a support has.
  void bound_candidates(int m, int size, const Support& support, const Parts& now, Candidates& of) const {
    const double most = objective().perfect - price_ * m;
    of.more = m - size;
    of.least.clear();
    of.bounds.assign(of.columns.size(), most);
    if (of.more < 2 || !has_pairs()) return;
    PatternPairs all(size), up(size), down(size);
    std::vector<Blocks> blocks;
    count_pairs_of(now, size, all, blocks);
    const SignTree* tree = size > 0 ? &trees_[static_cast<std::size_t>(size)].front() : nullptr;
    PrefixCosts costs(tree, size, of.more, all, objective().ties_lost ? 1.0 : 0.5);
    const std::size_t masks = costs.least.size();
    of.gains.assign(of.columns.size() * masks, -kInfinity);
    of.later.resize(of.columns.size() * masks);
    for (std::size_t i = 0; i < of.columns.size(); ++i) {
      const std::size_t j = of.columns[i];
      count_separated(now, size, j, blocks, up, down);
      if ((signs_[j] & 1U) != 0) costs.raise(up, of.gains.data() + i * masks);
      if ((signs_[j] & 2U) != 0) costs.raise(down, of.gains.data() + i * masks);
    }
    for (std::size_t mask = 0; mask < masks; ++mask) {
      if (!possible(support, size, static_cast<int>(mask))) costs.least[mask] = kInfinity;
    }
    of.least = costs.least;
    // the largest gains of later candidates, descending
    std::vector<std::array<double, kLargest>> top(masks);
    for (auto& gains : top) gains.fill(0.0);
    for (std::size_t i = of.columns.size(); i-- > 0;) {
      double cost = kInfinity;
      for (std::size_t mask = 0; mask < masks; ++mask) {
        double gain = of.gains[i * masks + mask], sum = 0.0;
        for (int t = 0; t < of.more - 2; ++t) sum += top[mask][static_cast<std::size_t>(t)];
        of.later[i * masks + mask] = sum;
        cost = std::min(cost, of.least[mask] - gain - sum - top[mask][static_cast<std::size_t>(of.more - 2)]);
        for (int t = 0; t < of.more - 1; ++t) {
          if (gain > top[mask][static_cast<std::size_t>(t)]) std::swap(gain, top[mask][static_cast<std::size_t>(t)]);
        }
      }
      of.bounds[i] = std::min(most, bound_of_cost(cost, m));
    }
  }

  // The value of a card of m questions whose pairs cost so much; rounding of sums of other numbers is allowed for.
  double bound_of_cost(double cost, int m) const {
    return objective().perfect - objective().slope * cost - price_ * m + (steps_.size() > 1 ? tolerance() : 0.0);
  }

  // The candidates after the one at i that may be on a card together with it.
  void follow(int m, int size, const Support& support, const Candidates& of, std::size_t i,
              std::vector<std::uint16_t>& rest) const {
    const std::size_t masks = of.least.size();
    rest.clear();
    for (std::size_t other = i + 1; other < of.columns.size(); ++other) {
      if (!allowed(support.columns, size + 1, of.columns[other])) continue;
      double cost = masks > 0 ? kInfinity : 0.0;
      for (std::size_t mask = 0; mask < masks; ++mask) {
        cost = std::min(cost, of.least[mask] - of.gains[i * masks + mask] - of.gains[other * masks + mask] -
                                  of.later[i * masks + mask]);
      }
      if (masks == 0 || bound_of_cost(cost, m) >= cutoff()) rest.push_back(of.columns[other]);
    }
  }

  struct Enumeration {
    Support support;
    std::vector<Parts> parts;
    std::vector<Candidates> candidates;  // of each number of columns
    int until = 0;                       // columns of the parts of supports that are asked for; 0 for whole supports
    std::vector<Support> found;
  };

  Enumeration enumeration_of(int m, int until) const {
    return {.parts = parts_of(m), .candidates = std::vector<Candidates>(static_cast<std::size_t>(m)), .until = until};
  }

  // Add a column to the parts of so many others.
  void split_parts(int size, std::size_t j, const Parts& now, Parts& next) const {
    split(now.bits.data(), 1 << size, j, next.bits.data());
    for (std::size_t s = 0; s < statistics_.size(); ++s) {
      count(statistics_[s], now.bits.data(), now.blocks[s].data(), 1 << size, j, next.blocks[s].data());
      if (!statistics_[s].pairs) continue;
      statistics_[s].pairs->split(now.pattern[s].data(), j, size, next.pattern[s].data());
    }
  }

  // Look for the supports of m columns that may have good cards and begin with a part that was found before; `order`
  // are all columns in the order in which they are added. If stopped, return a bound of all that is left of these.
  double complete_prefix(int m, int size, const Support& prefix, const std::vector<std::uint16_t>& order,
                         const Stop& stop, Enumeration& work) {
    const double most = prefix.bound;
    work.support = prefix;
    for (int i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      split_parts(i, prefix.columns[at], work.parts[at], work.parts[at + 1]);
    }
    Candidates& of = work.candidates[static_cast<std::size_t>(size)];
    of.columns.clear();
    auto later = order.begin();
    if (size > 0) later = std::find(order.begin(), order.end(), prefix.columns[static_cast<std::size_t>(size - 1)]) + 1;
    std::copy_if(later, order.end(), std::back_inserter(of.columns),
                 [&](auto j) { return allowed(prefix.columns, size, j); });
    bound_candidates(m, size, prefix, work.parts[static_cast<std::size_t>(size)], of);
    return extend(m, size, 0, of.columns.size(), most, stop, work);
  }

  // Look for supports of m columns that may have good cards, or parts of these: add to a support, which has some
  // columns, the candidates of its size from `begin` to `end`, and later ones. If stopped, return a bound of all that
  // is left of these.
  double extend(int m, int size, std::size_t begin, std::size_t end, double bound_of_all, const Stop& stop,
                Enumeration& work) {
    auto& [support, parts, candidates, until, found] = work;
    const Candidates& of = candidates[static_cast<std::size_t>(size)];
    double left = -kInfinity;
    for (std::size_t i = begin; i < end; ++i) {
      if (stop.asked()) {
        for (std::size_t rest = i; rest < end; ++rest) left = std::max(left, std::min(bound_of_all, of.bounds[rest]));
        return left;
      }
      const double most = std::min(bound_of_all, of.bounds[i]);
      if (most < cutoff()) continue;
      const std::size_t j = of.columns[i];
      const Parts& now = parts[static_cast<std::size_t>(size)];
      support.columns[static_cast<std::size_t>(size)] = static_cast<std::uint16_t>(j);
      if (size + 1 < m) {
        Candidates& after = candidates[static_cast<std::size_t>(size) + 1];
        follow(m, size, support, of, i, after.columns);
        if (static_cast<int>(after.columns.size()) < m - size - 1) continue;
        Parts& next = parts[static_cast<std::size_t>(size) + 1];
        split_parts(size, j, now, next);
        bound_candidates(m, size + 1, support, next, after);
        if (size + 1 != until) {
          left = std::max(left, extend(m, size + 1, 0, after.columns.size(), most, stop, work));
          continue;
        }
        const double bound = std::min(most, *std::max_element(after.bounds.begin(), after.bounds.end()));
        if (bound >= cutoff()) {
          found.push_back(support);
          found.back().bound = rounded_up(bound);
        }
        continue;
      }
      if (!complete(support, m)) continue;
      supports_.fetch_add(1, std::memory_order_relaxed);
      // before there is a card, only the demands leave out supports
      const bool last = cutoff() == -kInfinity;
      double bound = last ? kInfinity : bound_of_support(0, support, m, now, j);
      if (bound < cutoff()) continue;
      bool open = true;
      for (std::size_t s = 1; s < statistics_.size() && open; ++s) {
        open = reaches(statistics_[s], bound_of_support(s, support, m, now, j));
      }
      if (!open) continue;
      if (last) bound = bound_of_support(0, support, m, now, j);
      if (bound >= cutoff()) {
        found.push_back(support);
        found.back().bound = rounded_up(bound);
        std::sort(found.back().columns.begin(), found.back().columns.begin() + m);
      }
    }
    return left;
  }

  // A bound of a statistic for all cards of a support; `now` are the parts of its columns but the last, which is j.
  double bound_of_support(std::size_t s, const Support& support, int m, const Parts& now, std::size_t j) const {
    const CardStatistic& statistic = statistics_[s];
    const double price = s == 0 ? price_ * m : 0.0;
    if (statistic.pairs) {
      thread_local std::vector<std::uint8_t> pattern;
      thread_local PairCounts counts;
      pattern.resize(statistic.pairs->rows());
      statistic.pairs->split(now.pattern[s].data(), j, m - 1, pattern.data());
      statistic.pairs->count(pattern.data(), m, counts);
      return bound_of_pairs(statistic, support, m, costs_of(statistic, m, nullptr, counts)) - price;
    }
    Blocks blocks;
    count(statistic, now.bits.data(), now.blocks[s].data(), 1 << (m - 1), j, blocks.data());
    const double bound = statistic.bound_of(blocks.data(), 1 << m) - price;
    const bool open = s == 0 ? bound >= cutoff() : reaches(statistic, bound);
    if (!open || statistic.slope == 0.0) return bound;
    thread_local const PairCounts none{};
    return std::min(bound, bound_of_pairs(statistic, support, m, costs_of(statistic, m, blocks.data(), none)) - price);
  }

  // Whether a card may have exactly these columns.
  bool complete(const Support& support, int m) const {
    return std::all_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
      if (!holds(rule, support.columns, m)) return true;
      const auto end = support.columns.begin() + m;
      const auto counted = std::count_if(support.columns.begin(), end, [&](auto c) { return rule.of[c] != 0; });
      return rule.least <= counted && counted <= rule.most;
    });
  }

  // A bound of the cards of m columns from what one or two of them cannot order, for before they are searched.
  double ceiling(int m, int threads, const Stop& stop) {
    const double most = objective().perfect - price_ * m;
    if (m == 1 || !has_pairs()) return most;
    prepare(2);
    const Candidates firsts = first_candidates(m);
    const auto columns = static_cast<double>(firsts.columns.size());
    const double work = columns * columns * columns * static_cast<double>(words_ + (objective().pairs ? n_ : 0));
    std::vector<Support> prefixes;
    return std::min(most, list_prefixes(m, m > 2 && work < kCeilingWork ? 2 : 1, firsts, threads, stop, prefixes));
  }

  // Make the orders and signs of up to m columns.
  void prepare(int m) {
    const auto size = static_cast<std::size_t>(m);
    const auto falls = [](const CardStatistic& statistic) { return statistic.slope > 0.0; };
    if (trees_.size() <= size) trees_.resize(size + 1);
    if (orders_.size() <= size) orders_.resize(size + 1);
    for (int some = 1; some <= m && std::any_of(statistics_.begin(), statistics_.end(), falls); ++some) {
      if (auto& trees = trees_[static_cast<std::size_t>(some)]; trees.empty()) trees.emplace_back(some, fewest_, most_);
    }
    if (orders_[size].empty() && !all_fall()) orders_[size].emplace_back(m, fewest_, most_);
  }

  // Search the cards of m columns; `larger` is a bound of those with more. Return whether that was completed.
  bool search_size(int m, double larger, int threads, const Stop& stop) {
    if (m < static_cast<int>(needed_.size()) || objective().perfect - price_ * m < cutoff()) return true;
    const double all = bound_;
    prepare(m);
    const auto chains = chains_of(m);
    if (threshold_ == kInfinity) climb(m, chains, stop);  // it meets cards more than once
    const Candidates firsts = first_candidates(m);
    const int prefix = prefix_of(m, firsts.columns.size());
    std::vector<Support> prefixes;
    if (const double left = list_prefixes(m, prefix, firsts, threads, stop, prefixes); stop.asked()) {
      bound_ = std::max(larger, std::min(all, left));
      return false;
    }
    std::atomic<std::size_t> next{0};
    const std::size_t batch = has_pairs() ? kBatch : kSurvivors;
    while (next < prefixes.size()) {
      std::vector<std::vector<Support>> found(static_cast<std::size_t>(threads));
      std::atomic<std::size_t> kept{0};
      std::mutex lock;
      double open = -kInfinity;
      in_threads(threads, [&](std::size_t thread) {
        Enumeration work = enumeration_of(m, 0);
        while (!stop.asked() && kept < batch) {
          const std::size_t index = next++;
          if (index >= prefixes.size()) break;
          if (static_cast<double>(prefixes[index].bound) < cutoff()) continue;
          const std::size_t before = work.found.size();
          const double left = complete_prefix(m, prefix, prefixes[index], firsts.columns, stop, work);
          kept += work.found.size() - before;
          const std::lock_guard guard(lock);
          open = std::max(open, left);
        }
        found[thread] = std::move(work.found);
      });
      std::vector<Support> survivors;
      for (auto& some : found) survivors.insert(survivors.end(), some.begin(), some.end());
      best_first(survivors);
      std::atomic<std::size_t> at{0};
      in_threads(threads, [&](std::size_t) {
        Workspace work(words_, statistics_.size());
        if (placing_) work.extremes.resize(n_);
        while (true) {
          const std::size_t index = at++;
          if (index >= survivors.size() || static_cast<double>(survivors[index].bound) < cutoff() || full_) break;
          const bool done = !stop.asked() && examine(survivors[index], m, chains, stop, work);
          if (!done) {
            const std::lock_guard guard(lock);
            open = std::max(open, static_cast<double>(survivors[index].bound));
            break;
          }
        }
        merge(work);
      });
      if (open > -kInfinity || stop.asked()) {
        if (next < prefixes.size()) open = std::max(open, static_cast<double>(prefixes[next].bound));
        bound_ = std::max(larger, std::min(all, open));
        if (open > -kInfinity) return false;
      }
    }
    return true;
  }

  static void best_first(std::vector<Support>& supports) {
    std::sort(supports.begin(), supports.end(), [](const Support& a, const Support& b) {
      return a.bound != b.bound ? a.bound > b.bound : a.columns < b.columns;
    });
  }

  // The number of columns of parts of supports that are listed before whole ones: two less, so that the whole ones of
  // a part fit into memory, and fewer where there would be too many parts.
  int prefix_of(int m, std::size_t columns) const {
    if (m == 1) return 0;
    double parts = 1.0;
    int size = 0;
    for (; size < std::max(m - 2, 1); ++size) {
      parts *= static_cast<double>(columns - std::min(columns, static_cast<std::size_t>(size))) / (size + 1);
      if (size > 0 && parts > kPrefixes) break;
    }
    return size;
  }

  // List the parts of supports of m columns that may have good cards, best first. If stopped, return a bound of all.
  double list_prefixes(int m, int size, const Candidates& firsts, int threads, const Stop& stop,
                       std::vector<Support>& prefixes) {
    double left = -kInfinity;
    if (size == 0) {
      prefixes.push_back({.bound = rounded_up(objective().perfect)});
      return objective().perfect;
    }
    std::atomic<std::size_t> next{0};
    std::mutex lock;
    in_threads(threads, [&](std::size_t) {
      Enumeration work = enumeration_of(m, size);
      work.candidates[0] = firsts;
      double open = -kInfinity;
      while (true) {
        const std::size_t first = next++;
        if (first >= firsts.columns.size()) break;
        open = std::max(open, extend(m, 0, first, first + 1, kInfinity, stop, work));
      }
      const std::lock_guard guard(lock);
      left = std::max(left, open);
      prefixes.insert(prefixes.end(), work.found.begin(), work.found.end());
    });
    best_first(prefixes);
    return prefixes.empty() ? left : std::max(left, static_cast<double>(prefixes.front().bound));
  }

  // The columns that a card may have, those that order most pairs first, and bounds of the cards of m columns.
  Candidates first_candidates(int m) const {
    Candidates firsts;
    for (std::size_t j = 0; j < columns_; ++j) {
      if (allowed({}, 0, j)) firsts.columns.push_back(static_cast<std::uint16_t>(j));
    }
    const std::vector<Parts> parts = parts_of(1);
    bound_candidates(m, 0, {}, parts[0], firsts);
    if (firsts.least.empty()) return firsts;
    std::vector<std::size_t> order(firsts.columns.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return firsts.gains[a] > firsts.gains[b]; });
    std::vector<std::uint16_t> columns;
    for (const std::size_t at : order) columns.push_back(firsts.columns[at]);
    firsts.columns = std::move(columns);
    bound_candidates(m, 0, {}, parts[0], firsts);
    return firsts;
  }

  // Look for a good card of m columns before all are searched: add columns to the best card, then exchange them one
  // at a time while that helps.
  void climb(int m, const std::vector<std::vector<int>>& chains, const Stop& stop) {
    Workspace work(words_, statistics_.size());
    std::vector<std::uint16_t> columns;
    columns.assign(best_.columns.begin(), best_.columns.begin() + best_.size);
    if (columns.empty()) {
      columns = needed_;
    }
    if (static_cast<int>(columns.size()) + 1 < m) return;
    for (bool better = true; better;) {
      const Card start = best_;
      const bool exchange = static_cast<int>(columns.size()) == m;
      for (int leave = exchange ? 0 : -1; leave < (exchange ? m : 0); ++leave) {
        Support support;
        int size = 0;
        for (int i = 0; i < static_cast<int>(columns.size()); ++i) {
          if (i != leave) support.columns[static_cast<std::size_t>(size++)] = columns[static_cast<std::size_t>(i)];
        }
        const Support kept = support;
        for (std::size_t j = 0; j < columns_; ++j) {
          if (stop.asked()) return;
          support = kept;
          const auto end = support.columns.begin() + size;
          if (!allowed(support.columns, size, j) || std::find(support.columns.begin(), end, j) != end) continue;
          *end = static_cast<std::uint16_t>(j);
          std::sort(support.columns.begin(), end + 1);
          if (complete(support, m)) examine(support, m, chains, stop, work);
        }
      }
      better = best_.size == m && best_.value > start.value + tolerance();
      columns.assign(best_.columns.begin(), best_.columns.begin() + best_.size);
    }
  }

  template <typename Work>
  static void in_threads(int threads, const Work& work) {
    std::exception_ptr error;
    std::mutex lock;
    const auto guarded = [&](std::size_t thread) {
      try {
        work(thread);
      } catch (...) {
        const std::lock_guard guard(lock);
        error = std::current_exception();
      }
    };
    {
      std::vector<std::jthread> others;
      for (int t = 1; t < threads; ++t) others.emplace_back(guarded, static_cast<std::size_t>(t));
      guarded(0);
    }
    if (error) std::rethrow_exception(error);
  }

  // --- the cards of one support

  struct Workspace {
    Workspace(std::size_t words, std::size_t statistics)
        : one(words << kLargest),
          other(words << kLargest),
          blocks(statistics),
          named(statistics),
          pairs(statistics),
          named_pairs(statistics),
          by_share(statistics),
          extra(statistics),
          values((kPatterns + 1) * statistics) {}
    std::vector<std::uint64_t> one, other;
    std::vector<std::uint8_t> pattern;  // of each row, for comparable pairs
    // of each statistic
    std::vector<Blocks> blocks;                               // by pattern
    std::vector<Blocks> named;                                // by pattern with positive weights
    std::vector<PairCounts> pairs, named_pairs;               // likewise, of comparable pairs
    std::vector<std::array<int, kPatterns>> by_share;         // patterns with positive weights, largest share first
    std::vector<std::array<double, 3 * kDifferences>> extra;  // cost of each sign of each difference
    std::vector<PairCosts> costs;
    std::vector<double> values;  // at each depth, of each statistic
    // of places of rows
    bool placed = false;    // whether a card of the support was found
    std::int64_t good = 0;  // cards
    std::array<std::array<Seen, 2>, kPatterns> seen;
    std::vector<std::array<Extreme, 2>> extremes;  // of each row
  };

  bool examine(const Support& support, int m, const std::vector<std::vector<int>>& chains, const Stop& stop,
               Workspace& work) {
    examined_.fetch_add(1, std::memory_order_relaxed);
    std::copy(all_.begin(), all_.end(), work.one.begin());
    for (int i = 0; i < m; ++i) {
      split(work.one.data(), 1 << i, support.columns[static_cast<std::size_t>(i)], work.other.data());
      work.one.swap(work.other);
    }
    work.costs.clear();
    for (std::size_t s = 0; s < statistics_.size(); ++s) {
      for (std::size_t p = 0; p < std::size_t{1} << m; ++p) {
        work.blocks[s][p] = block_of(statistics_[s], work.one.data() + p * words_);
      }
      if (const auto& pairs = statistics_[s].pairs) {
        work.pattern.assign(pairs->rows(), 0);
        for (int i = 0; i < m; ++i) {
          pairs->split(work.pattern.data(), support.columns[static_cast<std::size_t>(i)], i, work.pattern.data());
        }
        pairs->count(work.pattern.data(), m, work.pairs[s]);
      }
      if (statistics_[s].slope > 0.0) {
        work.costs.push_back(costs_of(statistics_[s], m, work.blocks[s].data(), work.pairs[s]));
      } else {
        work.costs.emplace_back();
      }
    }
    std::vector<std::pair<double, int>> masks;
    for (int mask = 0; mask < 1 << m; ++mask) {
      if (!possible(support, m, mask)) continue;
      const double bound = bound_of_mask(0, m, mask, chains, work) - price_ * m;
      if (bound < cutoff()) continue;
      bool open = true;
      for (std::size_t s = 1; s < statistics_.size() && open; ++s) {
        open = reaches(statistics_[s], bound_of_mask(s, m, mask, chains, work));
      }
      if (open) masks.emplace_back(-bound, mask);
    }
    std::sort(masks.begin(), masks.end());
    for (const auto& [bound, mask] : masks) {
      if (-bound < cutoff()) break;
      for (std::size_t s = 0; s < statistics_.size(); ++s) name(s, m, mask, work);
      std::int64_t visited = 0;
      if (all_fall()) {
        const SignTree& tree = trees_[static_cast<std::size_t>(m)].front();
        for (std::size_t s = 0; s < statistics_.size(); ++s) {
          if (statistics_[s].slope == 0.0) continue;
          for (std::size_t entry = 0; entry < 3 * tree.differences.size(); ++entry) {
            work.extra[s][entry] = work.costs[s].of_sign(tree, mask, static_cast<int>(entry));
          }
          work.values[s] = work.costs[s].known(tree, mask);
        }
        go_down(support, m, mask, tree, tree.nodes.front(), 0, work, visited);
      } else {
        for (std::size_t s = 0; s < statistics_.size(); ++s) work.values[s] = statistics_[s].start();
        descend(support, m, mask, orders_[static_cast<std::size_t>(m)].front(), chains, 0, 0, 0, 0.0, work, visited);
      }
      nodes_.fetch_add(visited, std::memory_order_relaxed);
      if (stop.asked()) return false;
    }
    if (work.placed) {
      const auto size = static_cast<std::size_t>(m);
      if (all_fall()) {
        settle(support, m, trees_[size].front(), work);
      } else {
        settle(support, m, orders_[size].front(), work);
      }
    }
    return true;
  }

  // Rename the patterns for cards on which the columns of a mask count down.
  void name(std::size_t s, int m, int mask, Workspace& work) const {
    Blocks& named = work.named[s];
    for (int p = 0; p < 1 << m; ++p)
      named[static_cast<std::size_t>(p)] = work.blocks[s][static_cast<std::size_t>(p ^ mask)];
    if (statistics_[s].pairs) {
      for (std::size_t p = 0; p < std::size_t{1} << m; ++p) {
        for (std::size_t q = 0; q < std::size_t{1} << m; ++q) {
          const auto flip = static_cast<std::size_t>(mask);
          work.named_pairs[s][p][q] = work.pairs[s][p ^ flip][q ^ flip];
        }
      }
      return;
    }
    auto& by_share = work.by_share[s];
    std::iota(by_share.begin(), by_share.begin() + (1 << m), 0);
    std::sort(by_share.begin(), by_share.begin() + (1 << m), [&](int a, int b) {
      const Block &x = named[static_cast<std::size_t>(a)], &y = named[static_cast<std::size_t>(b)];
      const double one = x.count > 0.0 ? x.share() : -1.0, other = y.count > 0.0 ? y.share() : -1.0;
      return one != other ? one > other : a < b;
    });
  }

  // A bound of a statistic for the cards of a support on which the columns of a mask count down.
  double bound_of_mask(std::size_t s, int m, int mask, const std::vector<std::vector<int>>& chains,
                       const Workspace& work) const {
    const CardStatistic& statistic = statistics_[s];
    if (statistic.slope > 0.0) {
      return value_of_cost(statistic, work.costs[s],
                           work.costs[s].known(trees_[static_cast<std::size_t>(m)].front(), mask));
    }
    Blocks named;
    for (int p = 0; p < 1 << m; ++p)
      named[static_cast<std::size_t>(p)] = work.blocks[s][static_cast<std::size_t>(p ^ mask)];
    return statistic.bound_of_chains(named, chains, 0, 0.0);
  }

  // Whether the columns of a mask may count down and the others up.
  bool possible(const Support& support, int m, int mask) const {
    for (int i = 0; i < m; ++i) {
      const std::size_t j = support.columns[static_cast<std::size_t>(i)];
      if ((signs_[j] >> (mask >> i & 1) & 1) == 0) return false;
      for (int k = 0; k < i && directions_[j] >= 0; ++k) {
        const bool alike = directions_[support.columns[static_cast<std::size_t>(k)]] == directions_[j];
        if (alike && (mask >> i & 1) != (mask >> k & 1)) return false;
      }
    }
    return true;
  }

  // --- rank weights that fall by the same amount, see `card_pairs.h`

  PairCosts costs_of(const CardStatistic& of, int m, const Block* blocks, const PairCounts& counts) const {
    const SignTree& tree = trees_[static_cast<std::size_t>(m)].front();
    if (of.pairs) return {tree, m, counts, of.pairs->pairs(), of.ties_lost};
    return {tree, m, blocks, of.low, of.high, of.ties_lost};
  }

  // The value of a statistic whose pairs cost so much.
  static double value_of_cost(const CardStatistic& statistic, const PairCosts& costs, double cost) {
    return statistic.first * costs.gain - statistic.slope * (costs.least + cost);
  }

  double bound_of_pairs(const CardStatistic& statistic, const Support& support, int m, const PairCosts& costs) const {
    const SignTree& tree = trees_[static_cast<std::size_t>(m)].front();
    double least = kInfinity;
    for (int mask = 0; mask < 1 << m; ++mask) {
      if (possible(support, m, mask)) least = std::min(least, costs.known(tree, mask));
    }
    return value_of_cost(statistic, costs, least);
  }

  // Visit a node of the signs at a depth, where `work.values` has the costs of the pairs whose signs are known.
  void go_down(const Support& support, int m, int mask, const SignTree& tree, const SignTree::Node& node,
               std::size_t depth, Workspace& work, std::int64_t& visited) {
    const std::size_t statistics = statistics_.size();
    const double* costs = work.values.data() + depth * statistics;
    if (node.weights >= 0) {
      const double value = value_of_cost(objective(), work.costs[0], costs[0]) - price_ * m;
      take(support, m, mask, tree, static_cast<std::size_t>(node.weights), value, work);
      return;
    }
    double* sums = work.values.data() + (depth + 1) * statistics;
    for (int at = node.child; at >= 0;) {
      const SignTree::Node& child = tree.nodes[static_cast<std::size_t>(at)];
      ++visited;
      bool open = true;
      for (std::size_t s = 0; s < statistics && open; ++s) {
        if (statistics_[s].slope == 0.0) continue;
        double sum = costs[s];
        for (int i = child.first; i < child.last; ++i) sum += work.extra[s][tree.known[static_cast<std::size_t>(i)]];
        sums[s] = sum;
        const double bound = value_of_cost(statistics_[s], work.costs[s], sum);
        open = s == 0 ? bound - price_ * m >= cutoff() : reaches(statistics_[s], bound);
      }
      if (open) go_down(support, m, mask, tree, child, depth + 1, work, visited);
      at = child.next;
    }
  }

  // --- any rank weights

  // Visit the children of a node of the orders at a depth; `placed` are the patterns above, `place` their rows, and
  // `work.values` has their contributions.
  void descend(const Support& support, int m, int mask, const Orders& orders,
               const std::vector<std::vector<int>>& chains, std::size_t at, std::size_t depth, Patterns placed,
               double place, Workspace& work, std::int64_t& visited) {
    const std::size_t statistics = statistics_.size();
    const double* above = work.values.data() + depth * statistics;
    double* reached = work.values.data() + (depth + 1) * statistics;
    for (int child = orders.nodes[at].child; child >= 0; child = orders.nodes[static_cast<std::size_t>(child)].next) {
      const Orders::Node& node = orders.nodes[static_cast<std::size_t>(child)];
      const Patterns now = placed | node.equal;
      double below = place;
      bool open = true;
      ++visited;
      for (std::size_t s = 0; s < statistics && open; ++s) {
        reached[s] =
            above[s] + statistics_[s].placed(node.equal, placed, work.named[s], work.named_pairs[s], place, 1 << m);
        below = place + CardStatistic::joined(node.equal, work.named[s]).count;
        if (node.weights < 0) open = may_reach(s, m, chains, now, below, reached[s], work);
      }
      if (!open) continue;
      if (node.weights < 0) {
        descend(support, m, mask, orders, chains, static_cast<std::size_t>(child), depth + 1, now, below, work,
                visited);
      } else if (reached[0] - price_ * m >= cutoff()) {
        take(support, m, mask, orders, static_cast<std::size_t>(node.weights), reached[0] - price_ * m, work);
      }
    }
  }

  // Whether a statistic may be large enough below a node, where the patterns placed have reached a value.
  bool may_reach(std::size_t s, int m, const std::vector<std::vector<int>>& chains, Patterns placed, double place,
                 double reached, const Workspace& work) const {
    const CardStatistic& statistic = statistics_[s];
    const auto enough = [&](double bound) {
      return s == 0 ? bound - price_ * m >= cutoff() : reaches(statistic, bound);
    };
    if (statistic.pairs) return enough(reached);
    double bound = reached, below = place;
    for (int i = 0; i < 1 << m; ++i) {
      const int p = work.by_share[s][static_cast<std::size_t>(i)];
      const Block& part = work.named[s][static_cast<std::size_t>(p)];
      if ((placed >> p & 1) != 0 || part.count == 0.0) continue;
      bound += part.share() * statistic.between(below, below + part.count);
      below += part.count;
    }
    return enough(bound) && enough(reached + statistic.bound_of_chains(work.named[s], chains, placed, place));
  }

  // --- the cards that are found

  // Take note of a card if it meets the demands.
  void take(const Support& support, int m, int mask, const WeightsOfOrders& orders, std::size_t order, double value,
            Workspace& work) {
    bool certain = true;
    for (std::size_t s = 1; s < statistics_.size(); ++s) {
      const CardStatistic& of = statistics_[s];
      const double reached = of.value_in(orders.tiers[order], work.named[s], work.named_pairs[s], 1 << m);
      if (!meets(of, reached, certain)) return;
    }
    const auto card = [&] { return card_of(support, m, mask, orders.weights[order], value); };
    if (!certain && !decide(card())) return;
    if (placing_) {
      place(mask, orders.tiers[order], order, work);
    } else {
      offer(card());
    }
  }

  static Card card_of(const Support& support, int m, int mask, const Weights& weights, double value) {
    Card card{.value = value, .size = m};
    for (int i = 0; i < m; ++i) {
      const auto j = static_cast<std::size_t>(i);
      card.columns[j] = support.columns[j];
      card.points[j] = static_cast<std::int8_t>((mask >> i & 1) != 0 ? -weights[j] : weights[j]);
    }
    return card;
  }

  // The value of a statistic where all rows tie.
  double value_of_none(const CardStatistic& statistic) const {
    if (statistic.pairs) return statistic.ties_lost ? 0.0 : 0.5;
    return statistic.value_of(block_of(statistic, all_.data()), 0.0);
  }

  // Offer the card without questions.
  void take_none() {
    bool certain = true;
    for (std::size_t s = 1; s < statistics_.size(); ++s) {
      if (!meets(statistics_[s], value_of_none(statistics_[s]), certain)) return;
    }
    const Card none{.value = value_of_none(objective())};
    if (!certain && !decide(none)) return;
    if (!placing_) {
      offer(none);
    } else if (none.value >= cutoff()) {
      ++good_;
      for (std::size_t i = 0; i < n_; ++i) extremes_[i] = {Extreme{1, none}, Extreme{0, none}};
    }
  }

  // --- places of rows

  // Take note of the places of the patterns on a card; where cards agree, the one with fewer points is kept.
  void place(int mask, const std::vector<Patterns>& tiers, std::size_t order, Workspace& work) {
    if (!work.placed) work.seen.fill({});
    work.placed = true;
    ++work.good;
    std::uint64_t above = 0;
    for (const Patterns equal : tiers) {
      const auto rows = static_cast<std::uint64_t>(CardStatistic::joined(equal, work.named[0]).count);
      const std::array<std::uint64_t, 2> keys{(above + 1) << 32 | order, (n_ - above - rows) << 32 | order};
      above += rows;
      for (Patterns left = rows > 0 ? equal : 0; left != 0; left &= left - 1) {
        auto& seen = work.seen[static_cast<std::size_t>(std::countr_zero(left) ^ mask)];
        for (std::size_t end = 0; end < 2; ++end) {
          if (keys[end] < seen[end].key) seen[end] = {keys[end], mask};
        }
      }
    }
  }

  // Give the rows of a support the places that its cards have given to its patterns.
  void settle(const Support& support, int m, const WeightsOfOrders& orders, Workspace& work) const {
    work.placed = false;
    for (std::size_t p = 0; p < std::size_t{1} << m; ++p) {
      const std::uint64_t* part = work.one.data() + p * words_;
      std::array<Extreme, 2> found;
      for (std::size_t end = 0; end < 2; ++end) {
        const auto [key, mask] = work.seen[p][end];
        if (key == kUnseen) continue;
        found[end] = {static_cast<std::int64_t>(key >> 32),
                      card_of(support, m, mask, orders.weights[key & 0xffffffffU], 0.0)};
      }
      for (std::size_t word = 0; word < words_; ++word) {
        for (std::uint64_t left = part[word] & tracked_[word]; left != 0; left &= left - 1) {
          auto& row = work.extremes[row_at_[word * 64 + static_cast<std::size_t>(std::countr_zero(left))]];
          for (std::size_t end = 0; end < 2; ++end) row[end].improve(found[end]);
        }
      }
    }
  }

  void merge(const Workspace& work) {
    const std::lock_guard guard(lock_);
    good_ += work.good;
    for (std::size_t i = 0; i < work.extremes.size(); ++i) {
      for (std::size_t end = 0; end < 2; ++end) extremes_[i][end].improve(work.extremes[i][end]);
    }
  }

  // --- the answer

  // Whether a card with this value of a demand's statistic meets the demand; if rounding decides, it is not certain.
  static bool meets(const CardStatistic& demand, double value, bool& certain) {
    certain = certain && value > demand.least + kTolerance * std::abs(demand.perfect);
    return reaches(demand, value);
  }

  // Whether a card meets the demands, as the caller finds it.
  bool decide(const Card& card) const {
    const nb::gil_scoped_acquire acquire;
    const nb::tuple found = described(card);
    return nb::cast<bool>(met_(found[1], found[2]));
  }

  void offer(const Card& card) {
    const std::lock_guard guard(lock_);
    if (threshold_ < kInfinity && card.value >= threshold_ - tolerance()) {
      if (found_.size() < most_cards_)
        found_.push_back(card);
      else
        full_ = true;
    }
    const double difference = card.value - best_.value;
    if (difference > tolerance() || (std::abs(difference) <= tolerance() && card.before(best_))) {
      best_ = card;
      cutoff_ = std::max(cutoff_.load(), card.value - tolerance());
    }
  }

  std::size_t n_, columns_, levels_, words_ = 0;
  int fewest_, most_, searched_ = 0;
  double price_, threshold_ = kInfinity;
  std::size_t most_cards_ = 0;
  std::vector<CardStatistic> statistics_;  // that of the objective, and those of the demands
  std::vector<Step> steps_;                // of the gains of the objective, where pairs are all that it is about
  nb::object met_;
  std::vector<std::uint8_t> signs_;
  std::vector<std::int32_t> directions_;
  std::vector<Rule> rules_;
  std::vector<std::uint16_t> needed_;  // columns that every card has
  std::vector<std::size_t> start_;     // first word of each level
  std::vector<std::uint64_t> bits_, all_, tracked_;
  std::vector<std::size_t> row_at_;  // each bit's row
  bool placing_ = false;
  std::int64_t good_ = 0;
  std::vector<std::array<Extreme, 2>> extremes_;  // of each row
  std::vector<std::vector<Orders>> orders_;       // by number of columns, made when they are needed
  std::vector<std::vector<SignTree>> trees_;
  std::mutex lock_;
  Card best_;
  std::vector<Card> found_;
  std::atomic<bool> full_{false};
  std::atomic<double> cutoff_{-kInfinity}, bound_{kInfinity};  // before the search begins nothing is proven
  std::atomic<std::int64_t> supports_{0}, examined_{0}, nodes_{0};
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
