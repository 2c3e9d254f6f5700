// Along a line of scores f + t g, item k is above item i either from the breakpoint ``t = (f_i - f_k) / (g_k - g_i)``
// on or up to there. The place of item i on the whole line follows from its own breakpoints with the items that count,
// so every item with a gain is examined for itself, and changes of value are collected from all of them: sorted by t
// they visit every value that the statistic takes on the line.
//
// *Cutoffs.* Where only the first k places of a long list differ in weight, most items never matter. Take k + 1 items
// and the lowest of their scores at either end of a segment: the straight line between these two is never above the
// lowest of them, so an item below it at both ends is never among the first k, and never above an item that is. What is
// left of the list on a segment is small, or the segment is halved.
//
// *Long lists without a cutoff* have too many breakpoints. There, steps along the line are tried by sorting the lists:
// one to either side, and longer ones while they gain.
#include <array>
#include <atomic>

#include "key_sort.h"
#include "line_search.h"
#include "workers.h"

namespace ltr {
namespace {

constexpr std::size_t kShort = 32;       // items up to which a list is always examined as a whole
constexpr std::size_t kBlock = 512;      // pairs of short lists whose crossings are computed at once
constexpr std::size_t kChunk = 4096;     // items of lists that one thread examines without a break
constexpr std::size_t kShared = 20'000;  // items from which several threads examine them
constexpr std::size_t kPerCell = 16;     // mean number of changes in a cell
constexpr double kPairsPerItem = 40.0, kFewPairs = 1e6, kManyPairs = 1e7;  // pairs examined along a line, at most
constexpr double kPiece = 2000.0;                                          // pairs up to which a segment is not halved
constexpr int kHalvings = 16;
constexpr std::size_t kInserted = 24;  // crossings that are sorted by insertion
constexpr int kDoublings = 6, kRetries = 3;
constexpr double kFirstStep = 0.25, kLeastStep = 1e-7;  // shares of the spread of the scores

// A change of the value: where, and by how much.
struct Change {
  double at, by;
};

// A crossing of the item that is examined: where, and 1 if the other item is above it from there on, else -1.
struct Crossing {
  double at, by;
};

// Return where an item crosses another, given the difference of their scores at t = 0 and by how much that of the other
// grows with t. If they never cross, it is at an infinite t.
[[gnu::always_inline]] inline double crossing(double gap, double slope, bool first) {
  const double flat =
      static_cast<int>(gap < 0.0) | (static_cast<int>(gap == 0.0) & static_cast<int>(first)) ? -kInfinity : kInfinity;
  const double ratio = gap / slope;
  return slope != 0.0 ? ratio : flat;
}

// Write where an item crosses others, and 1 for those that are above it from there on, or -1 if up to there.
LTR_MULTIVERSION void cross_with_one(const double* f, const double* g, const std::int32_t* item, std::size_t n,
                                     double own_f, double own_g, std::int32_t own, double* at, double* turn) {
#pragma omp simd
  for (std::size_t k = 0; k < n; ++k) {
    const double slope = g[k] - own_g;
    at[k] = crossing(own_f - f[k], slope, item[k] < own);
    turn[k] = slope >= 0.0 ? 1.0 : -1.0;
  }
}

// The same for pairs of any items.
LTR_MULTIVERSION void cross_pairs(const double* f, const double* g, const std::int32_t* own, const std::int32_t* other,
                                  std::size_t n, double* at, double* turn) {
#pragma omp simd
  for (std::size_t q = 0; q < n; ++q) {
    const double slope = g[other[q]] - g[own[q]];
    at[q] = crossing(f[own[q]] - f[other[q]], slope, other[q] < own[q]);
    turn[q] = slope >= 0.0 ? 1.0 : -1.0;
  }
}

// Some items of a list: scores along the line, number within the list, gain.
struct Items {
  std::vector<double> f, g, gain;
  std::vector<std::int32_t> item;

  std::size_t size() const { return f.size(); }
  void resize(std::size_t n) { f.resize(n), g.resize(n), gain.resize(n), item.resize(n); }
  void copy(const Items& from, std::size_t at, std::size_t to) {
    f[to] = from.f[at], g[to] = from.g[at], gain[to] = from.gain[at], item[to] = from.item[at];
  }
};

// The memory of one thread.
struct Scratch {
  std::array<Items, kHalvings + 2> counted, paid;  // of the list, and of each halving
  std::vector<double> at, turn, low, high, middle, scores;
  std::vector<Crossing> crossings;

  // Make room for the crossings of n pairs.
  void reserve(std::size_t n) {
    if (at.size() < n) at.resize(n), turn.resize(n), crossings.resize(n + 1);
  }

  std::vector<Key> keys, spare;
  double pairs = 0.0;
};

struct OneList {
  std::size_t first, counted, paid;  // first item, and where those that count, and those with a gain, start
  std::size_t counted_end, paid_end;
  std::size_t items;
  const double* weight;  // of rank 1 and up
  std::size_t depth;     // number of places from the top behind which all weights are the same

  std::size_t count() const { return counted_end - counted; }
  // The weight of a place, 1 at the top.
  double at(std::int64_t place) const { return weight[static_cast<std::int64_t>(count()) - place]; }
};

// The values of one piece at both ends.
struct Ends {
  double low = 0.0, high = 0.0;
};

class ListLines : public LineSearch {
 public:
  ListLines(const Lists& lists, std::size_t threads, Stop stop) : given_(lists), shift_(lists.shift), stop_(stop) {
    double pairs = 0.0;
    for (std::size_t l = 0; l + 1 < lists.start.size(); ++l) {
      const auto first = index(lists.start[l]), end = index(lists.start[l + 1]);
      OneList list{first, counted_.size(), paid_.size(), 0, 0, end - first, nullptr, 0};
      for (std::size_t i = first; i < end; ++i) {
        if (given_.counts[i] != 0) counted_.push_back(static_cast<std::int32_t>(i));
        if (given_.gain[i] > 0.0) paid_.push_back(static_cast<std::int32_t>(i));
      }
      list.counted_end = counted_.size(), list.paid_end = paid_.size();
      list.weight = given_.weight.data() + lists.weight_at[l];
      list.depth = list.count();
      while (list.depth > 0 && list.weight[list.count() - list.depth] == list.weight[0]) --list.depth;
      if (list.depth == 0 || list.paid == list.paid_end) {  // all places are the same
        for (std::size_t i = list.paid; i < list.paid_end; ++i) shift_ += given_.gain[index(paid_[i])] * list.weight[0];
        counted_.resize(list.counted), paid_.resize(list.paid);
        continue;
      }
      if (!filtered(list)) pairs += static_cast<double>(list.count()) * static_cast<double>(list.paid_end - list.paid);
      if (chunks_.empty() || chunks_.back().items_end - chunks_.back().first >= kChunk) {
        chunks_.push_back({lists_.size(), 0, list.first, 0, 0.0, 0.0, {}, {}, {}, {}});
      }
      Chunk& chunk = chunks_.back();
      items_ += list.items;
      if (list.items <= kShort) list_pairs(list, chunk);
      lists_.push_back(list);
      chunk.end = lists_.size(), chunk.items_end = end;
    }
    most_pairs_ = std::clamp(kPairsPerItem * static_cast<double>(items_), kFewPairs, kManyPairs);
    coarse_ = pairs > most_pairs_;
    others_ = items_ >= kShared && threads > 1 ? threads - 1 : 0;
    scratch_.resize(others_ + 1);
  }

  double value(std::span<const double> f, double share) override {
    share_chunks([&](Chunk& chunk, Scratch& scratch) {
      chunk.value = 0.0;
      for (std::size_t l = chunk.begin; l < chunk.end; ++l)
        chunk.value += value_of(lists_[l], f, {}, 0.0, share, scratch);
    });
    double sum = shift_;
    for (const Chunk& chunk : chunks_) sum += chunk.value;
    return sum;
  }

  Found search(std::span<const double> f, std::span<const double> g, Segment segment, double here, double least,
               Random& random) override {
    const Found nothing{-kInfinity, segment.low};
    if (!(segment.high > segment.low) || stop_.asked()) return nothing;
    if (!coarse_ && !scan(f, g, segment)) coarse_ = !stop_.asked();
    if (stop_.asked()) return nothing;
    return coarse_ ? try_steps(f, g, segment, here, least) : best_of_changes(segment, least, random);
  }

 private:
  // An item with a gain of a short list, and its pairs.
  struct PaidItem {
    std::int32_t item;
    std::size_t begin, end, list;
  };

  // Some lists that follow each other, examined by one thread.
  struct Chunk {
    std::size_t begin, end, first, items_end;  // lists, items
    double value, pairs;
    std::vector<Change> changes;
    std::vector<PaidItem> paid;            // of short lists, and
    std::vector<std::int32_t> own, other;  // the items of their pairs, from the first of the chunk on
  };

  void list_pairs(const OneList& list, Chunk& chunk) const {
    const auto first = static_cast<std::int32_t>(chunk.first);
    for (std::size_t p = list.paid; p < list.paid_end; ++p) {
      const std::size_t begin = chunk.own.size();
      for (std::size_t c = list.counted; c < list.counted_end; ++c) {
        if (counted_[c] == paid_[p]) continue;
        chunk.own.push_back(paid_[p] - first), chunk.other.push_back(counted_[c] - first);
      }
      chunk.paid.push_back({paid_[p], begin, chunk.own.size(), lists_.size()});
    }
  }

  static bool filtered(const OneList& list) { return list.items > kShort && list.depth + 1 < list.count(); }

  void share_tasks(std::size_t tasks, const auto& work) {
    std::atomic<std::size_t> next{0}, thread{0};
    share_work(std::min(others_, tasks - 1 + (tasks == 0)), [&] {
      Scratch& scratch = scratch_[thread.fetch_add(1)];
      for (std::size_t task; (task = next.fetch_add(1)) < tasks;) work(task, scratch);
    });
  }
  void share_chunks(const auto& work) {
    share_tasks(chunks_.size(), [&](std::size_t c, Scratch& scratch) { work(chunks_[c], scratch); });
  }

  // --- values at one point -------------------------------------------------------------------------------------------

  // Return what a list contributes at scores f + t g, with its offsets multiplied by a share; no g is all 0.
  double value_of(const OneList& list, std::span<const double> f, std::span<const double> g, double t, double share,
                  Scratch& scratch) const {
    std::vector<double>& score = scratch.scores;
    score.resize(list.items);
    for (std::size_t k = 0; k < list.items; ++k) {
      const std::size_t i = list.first + k, r = index(given_.row[i]);
      score[k] = (g.empty() ? f[r] : f[r] + t * g[r]) - share * given_.offset[i];
    }
    double sum = 0.0;
    if (list.items <= kShort) {
      for (std::size_t p = list.paid; p < list.paid_end; ++p) {
        const std::size_t own = index(paid_[p]) - list.first;
        std::int64_t place = given_.counts[index(paid_[p])];
        for (std::size_t k = 0; k < list.items; ++k) {
          place += given_.counts[list.first + k] & (score[k] > score[own] || (score[k] == score[own] && k < own));
        }
        sum += given_.gain[index(paid_[p])] * list.at(std::max<std::int64_t>(place, 1));
      }
      return sum;
    }
    double least = -kInfinity;  // score of the first item that is certainly too low to matter
    if (filtered(list)) {
      scratch.middle.clear();
      for (std::size_t c = list.counted; c < list.counted_end; ++c) {
        scratch.middle.push_back(score[index(counted_[c]) - list.first]);
      }
      const auto last = scratch.middle.begin() + list.depth;
      std::nth_element(scratch.middle.begin(), last, scratch.middle.end(), std::greater<>());
      least = *last;
    }
    std::vector<Key>& keys = scratch.keys;
    keys.clear();
    for (std::size_t k = 0; k < list.items; ++k) {
      if (score[k] >= least) {
        keys.push_back({-score[k], static_cast<std::uint32_t>(k)});
      } else {
        sum += given_.gain[list.first + k] * list.weight[0];
      }
    }
    sort_keys(keys, scratch.spare);
    std::int64_t above = 0;
    for (const Key& key : keys) {
      const std::size_t i = list.first + key.item;
      above += given_.counts[i];
      if (given_.gain[i] > 0.0) sum += given_.gain[i] * list.at(std::max<std::int64_t>(above, 1));
    }
    return sum;
  }

  // --- all values of a line ------------------------------------------------------------------------------------------

  // Collect the changes of value inside the segment, and the value just above its lower end; return false if that was
  // stopped or takes too long.
  bool scan(std::span<const double> f, std::span<const double> g, Segment segment) {
    std::atomic<bool> failed{false};
    share_chunks([&](Chunk& chunk, Scratch& scratch) {
      chunk.changes.clear();
      chunk.value = scratch.pairs = 0.0;
      if (failed.load(std::memory_order_relaxed)) return;
      chunk.value = scan_short(chunk, f, g, segment, scratch, chunk.changes);
      for (std::size_t l = chunk.begin; l < chunk.end; ++l) {
        if (lists_[l].items > kShort) chunk.value += scan_list(lists_[l], f, g, segment, scratch, chunk.changes).low;
      }
      chunk.pairs = scratch.pairs;
      if (stop_.asked() || chunk.pairs > most_pairs_) failed.store(true, std::memory_order_relaxed);
    });
    double pairs = 0.0;
    for (const Chunk& chunk : chunks_) pairs += chunk.pairs;
    return !failed.load() && pairs <= most_pairs_;
  }

  Ends scan_list(const OneList& list, std::span<const double> f, std::span<const double> g, Segment segment,
                 Scratch& scratch, std::vector<Change>& changes) const {
    const auto gather = [&](const std::vector<std::int32_t>& which, std::size_t begin, std::size_t end, Items& items) {
      items.resize(end - begin);
      for (std::size_t k = begin; k < end; ++k) {
        const std::size_t i = index(which[k]), r = index(given_.row[i]), to = k - begin;
        items.f[to] = f[r] - given_.offset[i], items.g[to] = g[r], items.gain[to] = given_.gain[i],
        items.item[to] = which[k];
      }
    };
    gather(counted_, list.counted, list.counted_end, scratch.counted[0]);
    gather(paid_, list.paid, list.paid_end, scratch.paid[0]);
    return filtered(list) ? scan_top(list, segment, 0, kInfinity, scratch, changes)
                          : examine(list, segment, scratch.counted[0], scratch.paid[0], scratch, changes);
  }

  // Scan a piece of the line for the items of a level that can come to the top there.
  Ends scan_top(const OneList& list, Segment segment, int level, double pairs_before, Scratch& scratch,
                std::vector<Change>& changes) const {
    const auto own = index(level);
    Items &counted = scratch.counted[own], &paid = scratch.paid[own], &left = scratch.counted[own + 1],
          &left_paid = scratch.paid[own + 1];
    double low = -kInfinity, high = -kInfinity;
    if (counted.size() > list.depth + 1) {
      std::vector<Key>& keys = scratch.keys;
      keys.resize(counted.size());
      const double middle = 0.5 * segment.low + 0.5 * segment.high;
      for (std::size_t k = 0; k < counted.size(); ++k) {
        keys[k] = {-(counted.f[k] + middle * counted.g[k]), static_cast<std::uint32_t>(k)};
      }
      const auto end = keys.begin() + list.depth + 1;
      std::nth_element(keys.begin(), end - 1, keys.end());
      low = high = kInfinity;
      for (auto key = keys.begin(); key != end; ++key) {
        low = std::min(low, counted.f[key->item] + segment.low * counted.g[key->item]);
        high = std::min(high, counted.f[key->item] + segment.high * counted.g[key->item]);
      }
    }
    // keep the items that matter; return the gains of the others
    const auto filter = [&](const Items& from, Items& to) {
      to.resize(from.size());
      std::size_t size = 0;
      double gains = 0.0;
      for (std::size_t k = 0; k < from.size(); ++k) {
        if (from.f[k] + segment.low * from.g[k] >= low || from.f[k] + segment.high * from.g[k] >= high) {
          to.copy(from, k, size++);
        } else {
          gains += from.gain[k];
        }
      }
      to.resize(size);
      return gains;
    };
    filter(counted, left);
    const double dropped = filter(paid, left_paid) * list.weight[0];
    const double pairs = static_cast<double>(left.size()) * static_cast<double>(left_paid.size());
    const double items = static_cast<double>(left.size() + left_paid.size());
    // halving again is worth it while it takes items away
    const bool whole = pairs <= kPiece || pairs <= 8.0 * items || level + 1 >= kHalvings || pairs > 0.9 * pairs_before;
    if (whole || scratch.pairs > most_pairs_) {
      const Ends ends = examine(list, segment, left, left_paid, scratch, changes);
      return {ends.low + dropped, ends.high + dropped};
    }
    const double middle = 0.5 * segment.low + 0.5 * segment.high;
    scratch.pairs += 4.0 * items;
    const Ends one = scan_top(list, {segment.low, middle}, level + 1, pairs, scratch, changes);
    const Ends other = scan_top(list, {middle, segment.high}, level + 1, pairs, scratch, changes);
    if (other.low != one.high) changes.push_back({middle, other.low - one.high});
    return {one.low + dropped, other.high + dropped};
  }

  // Add the changes of value inside a segment where only these items matter; return its values at both ends.
  Ends examine(const OneList& list, Segment segment, const Items& counted, const Items& paid, Scratch& scratch,
               std::vector<Change>& changes) const {
    const std::size_t n = counted.size();
    scratch.pairs += static_cast<double>(n) * static_cast<double>(paid.size());
    if (scratch.pairs > most_pairs_) return {};
    scratch.reserve(n);
    Ends ends;
    for (std::size_t p = 0; p < paid.size() && !stop_.asked(); ++p) {
      cross_with_one(counted.f.data(), counted.g.data(), counted.item.data(), n, paid.f[p], paid.g[p], paid.item[p],
                     scratch.at.data(), scratch.turn.data());
      const Ends own = walk(list, paid.item[p], scratch.at.data(), scratch.turn.data(), n, segment, scratch, changes);
      ends.low += own.low, ends.high += own.high;
    }
    return ends;
  }

  // Add the changes of value by one item, given its crossings; return what it contributes at both ends.
  Ends walk(const OneList& list, std::int32_t item, const double* at, const double* turn, std::size_t n,
            Segment segment, Scratch& scratch, std::vector<Change>& changes) const {
    Crossing* const crossings = scratch.crossings.data();
    std::size_t size = 0;
    std::int64_t place = given_.counts[index(item)];
    for (std::size_t k = 0; k < n; ++k) {  // without branches: they would be mispredicted too often
      place += (at[k] <= segment.low) == (turn[k] > 0.0);
      crossings[size] = {at[k], turn[k]};
      size += index((segment.low < at[k]) & (at[k] < segment.high));
    }
    sort(crossings, size);
    const std::int64_t moved = place < 1 ? 1 : 0,
                       most = static_cast<std::int64_t>(list.count());  // a margin lost in rounding
    const double gain = given_.gain[index(item)], first = list.at(place + moved);
    double weight = first;
    for (std::size_t e = 0; e < size; ++e) {
      place += crossings[e].by > 0.0 ? 1 : -1;
      const double next = list.at(std::clamp<std::int64_t>(place + moved, 1, most));
      if (next != weight) changes.push_back({crossings[e].at, gain * (next - weight)});
      weight = next;
    }
    return {gain * first, gain * weight};
  }

  // The same for all short lists of a chunk, whose pairs are listed; return what they contribute just above the low
  // end.
  double scan_short(const Chunk& chunk, std::span<const double> f, std::span<const double> g, Segment segment,
                    Scratch& scratch, std::vector<Change>& changes) const {
    Items& items = scratch.counted[0];
    items.resize(chunk.items_end - chunk.first);
    for (std::size_t i = chunk.first; i < chunk.items_end; ++i) {
      const std::size_t r = index(given_.row[i]), to = i - chunk.first;
      items.f[to] = f[r] - given_.offset[i], items.g[to] = g[r];
    }
    scratch.reserve(kBlock + kShort);
    double sum = 0.0;
    for (std::size_t first = 0, end = 0; first < chunk.paid.size(); first = end) {
      const std::size_t begin = chunk.paid[first].begin;
      while (end < chunk.paid.size() && chunk.paid[end].end - begin <= kBlock + kShort) ++end;
      const std::size_t n = chunk.paid[end - 1].end - begin;
      cross_pairs(items.f.data(), items.g.data(), chunk.own.data() + begin, chunk.other.data() + begin, n,
                  scratch.at.data(), scratch.turn.data());
      for (std::size_t p = first; p < end; ++p) {
        const PaidItem& one = chunk.paid[p];
        sum += walk(lists_[one.list], one.item, scratch.at.data() + (one.begin - begin),
                    scratch.turn.data() + (one.begin - begin), one.end - one.begin, segment, scratch, changes)
                   .low;
      }
    }
    return sum;
  }

  static void sort(Crossing* crossings, std::size_t size) {
    if (size > kInserted) {
      std::sort(crossings, crossings + size, [](const Crossing& a, const Crossing& b) { return a.at < b.at; });
      return;
    }
    for (std::size_t e = 1; e < size; ++e) {
      const Crossing one = crossings[e];
      std::size_t to = e;
      for (; to > 0 && crossings[to - 1].at > one.at; --to) crossings[to] = crossings[to - 1];
      crossings[to] = one;
    }
  }

  // Return the best value among those of the changes that were collected.
  //
  // Changes are grouped by cells of equal width. In no part of a cell the value is above that with all gains of the
  // cell and no loss; where this is too low to matter, the cell need not be sorted.
  Found best_of_changes(Segment segment, double least, Random& random) {
    std::size_t n = 0;
    double value = shift_;
    for (const Chunk& chunk : chunks_) n += chunk.changes.size(), value += chunk.value;
    const std::size_t cells = n / kPerCell + 1;
    const double scale = static_cast<double>(cells) / (segment.high - segment.low),
                 last_cell = static_cast<double>(cells) - 1.0;
    const auto cell_of = [=](const Change& change) {
      const double place = (change.at - segment.low) * scale;
      return index(place < last_cell ? place : last_cell);
    };
    start_.assign(cells + 2, 0);
    for (const Chunk& chunk : chunks_) {
      for (const Change& change : chunk.changes) ++start_[cell_of(change) + 2];
    }
    for (std::size_t c = 2; c < cells + 2; ++c) start_[c] += start_[c - 1];
    if (grouped_.size() < n) grouped_.resize(n);
    for (const Chunk& chunk : chunks_) {
      for (const Change& change : chunk.changes) grouped_[start_[cell_of(change) + 1]++] = change;
    }
    BestInterval best(segment, least, random);
    double last = segment.low;
    for (std::size_t c = 0; c < cells; ++c) {
      const auto begin = grouped_.begin() + start_[c], end = grouped_.begin() + start_[c + 1];
      double gained = 0.0, change = 0.0, reached = last;
      for (auto one = begin; one != end; ++one) {
        gained += std::max(one->by, 0.0), change += one->by;
        reached = std::max(reached, one->at);
      }
      if (value + gained + tie_at(value) < best.needed()) {
        value += change, last = reached;
        continue;
      }
      std::sort(begin, end, [](const Change& a, const Change& b) { return a.at < b.at; });
      for (auto one = begin; one != end; ++one) {
        best.consider(value, last, one->at);
        value += one->by, last = one->at;
      }
    }
    best.consider(value, last, segment.high);
    return best.found();
  }

  // --- steps along a line --------------------------------------------------------------------------------------------

  // Return the best of some steps from `here`, the first of which is as long as the last one that gained.
  Found try_steps(std::span<const double> f, std::span<const double> g, Segment segment, double here, double least) {
    const Found nothing{-kInfinity, segment.low};
    const double spread = deviation(g, {}, 0.0);
    if (!(segment.low <= here && here <= segment.high) || !(spread > 0.0)) return nothing;
    const double ratio = deviation(f, g, here) / spread, unit = ratio > 0.0 ? ratio : 1.0;
    const auto values_at = [&](double one, double other) {
      return values_along(
          f, g,
          {std::clamp(here + one, segment.low, segment.high), std::clamp(here + other, segment.low, segment.high)});
    };
    double step = step_;
    for (int tries = 0; tries < kRetries && step >= kLeastStep; ++tries, step *= 0.25) {
      const double length = step * unit;
      std::array<Found, 2> found = values_at(length, -length);
      const std::size_t better = found[1].value > found[0].value ? 1 : 0;
      if (!(found[better].value > least + 4.0 * tie_at(least))) continue;
      Found best = found[better];
      double far = better == 0 ? length : -length;
      for (int k = 0; k < kDoublings && !stop_.asked(); k += 2, far *= 4.0) {
        found = values_at(2.0 * far, 4.0 * far);
        const double before = best.value;
        for (const Found& one : found) best = one.value > best.value ? one : best;
        if (!(found[1].value > before) || best.at != found[1].at) break;
      }
      // between the best one and its neighbours
      for (const Found& one : values_at(0.75 * (best.at - here), 1.4 * (best.at - here))) {
        best = one.value > best.value ? one : best;
      }
      step_ = std::max(std::abs(best.at - here) / unit, kLeastStep);
      return best;
    }
    step_ = std::max(0.5 * step_, 64.0 * kLeastStep);
    return nothing;
  }

  // Return the values at two points of a line.
  std::array<Found, 2> values_along(std::span<const double> f, std::span<const double> g, std::array<double, 2> at) {
    std::array<Found, 2> found{{{shift_, at[0]}, {shift_, at[1]}}};
    std::array<std::vector<double>, 2> of_chunks;
    for (auto& values : of_chunks) values.assign(chunks_.size(), 0.0);
    share_tasks(2 * chunks_.size(), [&](std::size_t task, Scratch& scratch) {
      const Chunk& chunk = chunks_[task / 2];
      double& sum = of_chunks[task % 2][task / 2];
      for (std::size_t l = chunk.begin; l < chunk.end && !stop_.asked(); ++l) {
        sum += value_of(lists_[l], f, g, found[task % 2].at, 1.0, scratch);
      }
    });
    for (std::size_t k = 0; k < 2; ++k) {
      for (const double value : of_chunks[k]) found[k].value += value;
      if (stop_.asked()) found[k].value = -kInfinity;
    }
    return found;
  }

  // Return the standard deviation of f + t g over the items; no g is all 0.
  double deviation(std::span<const double> f, std::span<const double> g, double t) const {
    double mean = 0.0, squares = 0.0, n = 0.0;
    for (const std::int32_t i : counted_) {
      const std::size_t r = index(given_.row[index(i)]);
      const double x = g.empty() ? f[r] : f[r] + t * g[r], from = x - mean;
      n += 1.0, mean += from / n, squares += from * (x - mean);
    }
    return n > 0.0 ? std::sqrt(squares / n) : 0.0;
  }

  Lists given_;
  double shift_;  // with what places that are all the same contribute
  Stop stop_;
  std::vector<OneList> lists_;
  std::vector<std::int32_t> counted_, paid_;  // items that count, and items with a gain, list by list
  std::vector<Chunk> chunks_;
  std::size_t items_ = 0, others_ = 0;
  double most_pairs_ = 0.0;
  bool coarse_ = false;  // whether a line has too many breakpoints
  double step_ = kFirstStep;
  std::vector<Scratch> scratch_;
  std::vector<Change> grouped_;
  std::vector<std::size_t> start_;
};

}  // namespace

std::unique_ptr<LineSearch> search_lists(const Lists& lists, std::size_t observations, std::size_t threads, Stop stop) {
  require(lists.row.size() < (std::size_t{1} << 31), "fewer items");
  require_places(lists.row, observations, "rows of items");
  return std::make_unique<ListLines>(lists, threads, stop);
}

}  // namespace ltr
