// Sorted lists as metrics need them: the keys by which items are sorted, and the places of the relevant items.
// `ltr/metrics/ranked.py` describes the order and the keys.
#include <bit>
#include <functional>
#include <numeric>

#include "functions.h"

namespace ltr {
namespace {

// Integers in the order of the numbers, as `_increasing` in ranked.py: 0.0 and -0.0 are 0.
[[gnu::always_inline]] inline std::int64_t increasing(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}
[[gnu::always_inline]] inline std::int64_t increasing(float x) {
  const std::int64_t bits = std::bit_cast<std::int32_t>(x);
  return bits < 0 ? std::numeric_limits<std::int32_t>::min() - bits : bits;
}
[[gnu::always_inline]] inline std::int64_t increasing(std::int64_t x) { return x; }

template <class Score>
[[gnu::always_inline]] inline std::tuple<std::int64_t, std::int64_t, std::int64_t> range(
    std::span<const Score> scores) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t low = kMost, high = -kMost, least = kMost;
#pragma omp simd reduction(min : low, least) reduction(max : high)
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::int64_t x = increasing(scores[i]), size = x < 0 ? -x : x, some = size > 0 ? size : kMost;
    low = x < low ? x : low;
    high = x > high ? x : high;
    least = some < least ? some : least;
  }
  return {low, high, least};
}

template <class Score>
[[gnu::always_inline]] inline void pack(std::span<const Score> scores, Numbers labels, Numbers lists, Packing by,
                                        std::span<std::int64_t> keys) {
  const std::size_t n = keys.size();
  require(scores.size() == n && labels.size() == n && lists.size() == n, "one score, label and list per item");
  require(by.score_bits >= 0 && by.label_bits >= 0 && by.score_bits + by.label_bits < 64 && by.gap >= 0,
          "bits of a key");
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t wide = increasing(scores[i]), near = wide < by.gap ? wide : by.gap;
    const std::int64_t score = by.highest - (wide - (near > -by.gap ? near : -by.gap));
    keys[i] = ((score | (lists[i] << by.score_bits)) << by.label_bits) | labels[i];
  }
}

void check_lists(Numbers keys, std::int64_t label_bits, Numbers n) {
  auto left = static_cast<std::int64_t>(keys.size());
  for (const std::int64_t length : n) {
    require(length >= 0 && length <= left, "lengths of lists");
    left -= length;
  }
  require(left == 0 && label_bits >= 0 && label_bits < 64, "lengths of lists and bits of labels");
}

}  // namespace

LTR_MULTIVERSION std::tuple<std::int64_t, std::int64_t, std::int64_t> score_range(std::span<const double> scores) {
  return range(scores);
}
LTR_MULTIVERSION std::tuple<std::int64_t, std::int64_t, std::int64_t> score_range(std::span<const float> scores) {
  return range(scores);
}

LTR_MULTIVERSION void pack_keys(std::span<const double> scores, Numbers labels, Numbers lists, Packing by,
                                std::span<std::int64_t> keys) {
  pack(scores, labels, lists, by, keys);
}
LTR_MULTIVERSION void pack_keys(std::span<const float> scores, Numbers labels, Numbers lists, Packing by,
                                std::span<std::int64_t> keys) {
  pack(scores, labels, lists, by, keys);
}
LTR_MULTIVERSION void pack_keys(Numbers scores, Numbers labels, Numbers lists, Packing by,
                                std::span<std::int64_t> keys) {
  pack(scores, labels, lists, by, keys);
}

std::pair<std::int64_t, bool> count_relevant(Numbers keys, std::int64_t label_bits, Numbers n,
                                             std::span<std::int64_t> relevant) {
  check_lists(keys, label_bits, n);
  require(relevant.size() == n.size(), "one number per list");
  const std::int64_t label = (std::int64_t{1} << label_bits) - 1;
  const std::int64_t* key = keys.data();
  std::int64_t total = 0, before = -1;  // no key is negative
  bool tied = false;
  for (std::size_t list = 0; list < n.size(); ++list) {
    std::int64_t found = 0;
    // items of two lists differ above the bits of the label
    for (const std::int64_t* const end = key + n[list]; key < end; before = *key++) {
      found += (*key & label) != 0;
      tied |= (*key ^ before) >> label_bits == 0;
    }
    relevant[list] = found;
    total += found;
  }
  return {total, tied};
}

void find_relevant(Numbers keys, std::int64_t label_bits, Numbers n, std::span<std::int64_t> grade,
                   std::span<std::int64_t> position, std::span<std::int64_t> start, std::span<std::int64_t> end) {
  check_lists(keys, label_bits, n);
  const std::size_t room = grade.size();
  require(position.size() == room && start.size() == room && end.size() == room, "one entry per relevant item");
  const std::int64_t label = (std::int64_t{1} << label_bits) - 1;
  const std::int64_t* key = keys.data();
  std::size_t found = 0;
  for (const std::int64_t length : n) {
    for (std::int64_t first = 0, last = 0; first < length; first = last + 1) {  // tie group by tie group
      for (last = first; last + 1 < length && (key[last + 1] ^ key[first]) >> label_bits == 0;) ++last;
      for (std::int64_t at = first; at <= last; ++at) {
        if ((key[at] & label) == 0) continue;
        if (found == room) return;
        grade[found] = key[at] & label;
        start[found] = first;
        end[found] = last;
        position[found++] = at;
      }
    }
    key += length;
  }
}

void order_grades(Numbers grade, Numbers relevant, std::int64_t levels, std::span<std::int64_t> ordered,
                  std::span<std::int64_t> place) {
  check_lists(grade, 0, relevant);
  require(ordered.size() == grade.size() && place.size() == grade.size(), "one entry per relevant item");
  require_places(grade, index(std::max<std::int64_t>(levels, 0)), "numbers of labels");
  std::vector<std::int64_t> counts(index(levels));
  std::int64_t* out = ordered.data();
  std::int64_t* at = place.data();
  const std::int64_t* from = grade.data();
  for (const std::int64_t length : relevant) {
    std::iota(at, at + length, std::int64_t{0});
    if (length < levels) {  // counting would go through labels that the list does not have
      std::copy(from, from + length, out);
      std::sort(out, out + length, std::greater<>());
    } else {
      std::fill(counts.begin(), counts.end(), 0);
      for (std::int64_t i = 0; i < length; ++i) ++counts[index(from[i])];
      std::int64_t* next = out;
      for (std::int64_t level = levels; level-- > 0;) next = std::fill_n(next, counts[index(level)], level);
    }
    from += length, out += length, at += length;
  }
}

// A tree of partial sums (Fenwick) has the number of rows of each level among those with a larger order.
void count_later(Numbers order, Numbers level, std::span<const bool> event, std::int64_t levels,
                 std::span<std::int64_t> below, std::span<std::int64_t> equal) {
  const std::size_t n = order.size();
  require(level.size() == n && event.size() == n && below.size() == n && equal.size() == n, "one entry per row");
  require_places(level, index(std::max<std::int64_t>(levels, 0)), "levels");
  std::vector<std::size_t> rows(n);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return order[a] > order[b]; });
  const auto size = index(levels);
  std::vector<std::int64_t> sums(size + 1), counts(size);
  std::size_t done = 0;  // rows that are counted
  for (std::size_t first = 0; first < n; first = done) {
    while (done < n && order[rows[done]] == order[rows[first]]) ++done;
    for (std::size_t k = first; k < done; ++k) {
      const std::size_t row = rows[k];
      below[row] = equal[row] = 0;
      if (!event[row]) continue;
      const auto own = index(level[row]);
      for (std::size_t at = own; at > 0; at &= at - 1) below[row] += sums[at];
      equal[row] = counts[own];
    }
    for (std::size_t k = first; k < done; ++k) {
      const auto own = index(level[rows[k]]);
      ++counts[own];
      for (std::size_t at = own + 1; at <= size; at += at & (~at + 1)) ++sums[at];
    }
  }
}

}  // namespace ltr
