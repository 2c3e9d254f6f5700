// Sorted lists as metrics need them: the keys by which items are sorted, and the places of the relevant items.
// `ltr/metrics/ranked.py` describes the order and the keys.
#include <bit>
#include <functional>
#include <numeric>

#include "bindings.h"
#include "module.h"

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

struct Range {
  std::int64_t low, high, least;  // least: size above 0
};

template <class Score>
[[gnu::always_inline]] inline Range range(const Score* scores, std::size_t n) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::int64_t low = kMost, high = -kMost, least = kMost;
#pragma omp simd reduction(min : low, least) reduction(max : high)
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t x = increasing(scores[i]), size = x < 0 ? -x : x, some = size > 0 ? size : kMost;
    low = x < low ? x : low;
    high = x > high ? x : high;
    least = some < least ? some : least;
  }
  return {low, high, least};
}

LTR_MULTIVERSION Range range_of(const double* scores, std::size_t n) { return range(scores, n); }
LTR_MULTIVERSION Range range_of(const float* scores, std::size_t n) { return range(scores, n); }

// The integers of the lowest and the highest score, and the least size above 0 of one.
template <class Score>
nb::tuple score_range(Vector<Score> scores) {
  const Range found = range_of(scores.data(), scores.shape(0));
  return nb::make_tuple(found.low, found.high, found.least);
}

struct Packing {
  std::int64_t highest, gap;  // of the integers of scores, and how far those next to 0 are moved towards it
  std::int64_t score_bits, label_bits;
};

template <class Score>
[[gnu::always_inline]] inline void pack(const Score* scores, const std::int64_t* labels, const std::int64_t* lists,
                                        std::size_t n, const Packing& by, std::int64_t* keys) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t wide = increasing(scores[i]), near = wide < by.gap ? wide : by.gap;
    const std::int64_t score = by.highest - (wide - (near > -by.gap ? near : -by.gap));
    keys[i] = ((score | (lists[i] << by.score_bits)) << by.label_bits) | labels[i];
  }
}

LTR_MULTIVERSION void pack_all(const double* scores, const std::int64_t* labels, const std::int64_t* lists,
                               std::size_t n, const Packing& by, std::int64_t* keys) {
  pack(scores, labels, lists, n, by, keys);
}
LTR_MULTIVERSION void pack_all(const float* scores, const std::int64_t* labels, const std::int64_t* lists,
                               std::size_t n, const Packing& by, std::int64_t* keys) {
  pack(scores, labels, lists, n, by, keys);
}
LTR_MULTIVERSION void pack_all(const std::int64_t* scores, const std::int64_t* labels, const std::int64_t* lists,
                               std::size_t n, const Packing& by, std::int64_t* keys) {
  pack(scores, labels, lists, n, by, keys);
}

template <class Score>
void pack_keys(Vector<Score> scores, Vector<std::int64_t> labels, Vector<std::int64_t> lists, std::int64_t highest,
               std::int64_t gap, std::int64_t score_bits, std::int64_t label_bits, OutVector<std::int64_t> keys) {
  const std::size_t n = keys.shape(0);
  require(scores.shape(0) == n && labels.shape(0) == n && lists.shape(0) == n, "one score, label and list per item");
  require(score_bits >= 0 && label_bits >= 0 && score_bits + label_bits < 64 && gap >= 0, "bits of a key");
  const nb::gil_scoped_release release;
  pack_all(scores.data(), labels.data(), lists.data(), n, {highest, gap, score_bits, label_bits}, keys.data());
}

void check_lists(const Vector<std::int64_t>& keys, std::int64_t label_bits, const Vector<std::int64_t>& n) {
  std::int64_t left = static_cast<std::int64_t>(keys.shape(0));
  for (const std::int64_t length : view(n)) {
    require(length >= 0 && length <= left, "lengths of lists");
    left -= length;
  }
  require(left == 0 && label_bits >= 0 && label_bits < 64, "lengths of lists and bits of labels");
}

// Write the number of relevant items of each list, whose keys are sorted; return that of all, and whether any two items
// of a list are tied.
nb::tuple count_relevant(Vector<std::int64_t> keys, std::int64_t label_bits, Vector<std::int64_t> n,
                         OutVector<std::int64_t> relevant) {
  check_lists(keys, label_bits, n);
  require(relevant.shape(0) == n.shape(0), "one number per list");
  const std::int64_t label = (std::int64_t{1} << label_bits) - 1;
  const std::int64_t* key = keys.data();
  std::int64_t total = 0, before = -1;  // no key is negative
  bool tied = false;
  {
    const nb::gil_scoped_release release;
    for (std::size_t list = 0; list < n.shape(0); ++list) {
      std::int64_t found = 0;
      // items of two lists differ above the bits of the label
      for (const std::int64_t* const end = key + n.data()[list]; key < end; before = *key++) {
        found += (*key & label) != 0;
        tied |= (*key ^ before) >> label_bits == 0;
      }
      relevant.data()[list] = found;
      total += found;
    }
  }
  return nb::make_tuple(total, tied);
}

// Write, for each relevant item, the number of its label, the first and the last position of its tie group, and its
// position, which may take the place of both where no items are tied.
void find_relevant(Vector<std::int64_t> keys, std::int64_t label_bits, Vector<std::int64_t> n,
                   OutVector<std::int64_t> grade, OutVector<std::int64_t> position, OutVector<std::int64_t> start,
                   OutVector<std::int64_t> end) {
  check_lists(keys, label_bits, n);
  const std::size_t room = grade.shape(0);
  require(position.shape(0) == room && start.shape(0) == room && end.shape(0) == room, "one entry per relevant item");
  const nb::gil_scoped_release release;
  const std::int64_t label = (std::int64_t{1} << label_bits) - 1;
  const std::int64_t* key = keys.data();
  std::size_t found = 0;
  for (std::size_t list = 0; list < n.shape(0); ++list) {
    const std::int64_t length = n.data()[list];
    for (std::int64_t first = 0, last = 0; first < length; first = last + 1) {  // tie group by tie group
      for (last = first; last + 1 < length && (key[last + 1] ^ key[first]) >> label_bits == 0;) ++last;
      for (std::int64_t at = first; at <= last; ++at) {
        if ((key[at] & label) == 0) continue;
        if (found == room) return;
        grade.data()[found] = key[at] & label;
        start.data()[found] = first;
        end.data()[found] = last;
        position.data()[found++] = at;
      }
    }
    key += length;
  }
}

// Write the numbers of labels of each list in descending order, and the place of each in its list.
void order_grades(Vector<std::int64_t> grade, Vector<std::int64_t> relevant, std::int64_t levels,
                  OutVector<std::int64_t> ordered, OutVector<std::int64_t> place) {
  check_lists(grade, 0, relevant);
  const std::size_t items = grade.shape(0);
  require(ordered.shape(0) == items && place.shape(0) == items && levels >= 0, "one entry per relevant item");
  for (const std::int64_t number : view(grade)) require(number >= 0 && number < levels, "numbers of labels");
  const nb::gil_scoped_release release;
  std::vector<std::int64_t> counts(index(levels));
  std::int64_t* out = ordered.data();
  std::int64_t* at = place.data();
  const std::int64_t* from = grade.data();
  for (const std::int64_t length : view(relevant)) {
    for (std::int64_t i = 0; i < length; ++i) at[i] = i;
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

// For each row with an event, count the rows of a larger order that have a smaller level, and those of its own level. A
// tree of partial sums (Fenwick) has the number of rows of each level among those with a larger order.
void count_later(Vector<std::int64_t> order, Vector<std::int64_t> level, Vector<bool> event, std::int64_t levels,
                 OutVector<std::int64_t> below, OutVector<std::int64_t> equal) {
  const std::size_t n = order.shape(0);
  require(level.shape(0) == n && event.shape(0) == n && below.shape(0) == n && equal.shape(0) == n,
          "one entry per row");
  for (const std::int64_t one : view(level)) require(one >= 0 && one < levels, "levels");
  const nb::gil_scoped_release release;
  std::vector<std::size_t> rows(n);
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return order(a) > order(b); });
  const auto size = index(levels);
  std::vector<std::int64_t> sums(size + 1), counts(size);
  std::size_t done = 0;  // rows that are counted
  for (std::size_t first = 0; first < n; first = done) {
    while (done < n && order(rows[done]) == order(rows[first])) ++done;
    for (std::size_t k = first; k < done; ++k) {
      const std::size_t row = rows[k];
      below(row) = equal(row) = 0;
      if (!event(row)) continue;
      const auto own = index(level(row));
      for (std::size_t at = own; at > 0; at &= at - 1) below(row) += sums[at];
      equal(row) = counts[own];
    }
    for (std::size_t k = first; k < done; ++k) {
      const auto own = index(level(rows[k]));
      ++counts[own];
      for (std::size_t at = own + 1; at <= size; at += at & (~at + 1)) ++sums[at];
    }
  }
}

}  // namespace

void bind_ranking(nb::module_& module) {
  const auto range = [&module]<class Score>(Score) {
    module.def("score_range", &score_range<Score>, nb::arg("scores").noconvert(),
               "Return the integers of the lowest and the highest score, and the least size above 0 of one.");
  };
  range(double{});
  range(float{});
  const auto pack = [&module]<class Score>(Score) {
    module.def("pack_keys", &pack_keys<Score>, nb::arg("scores").noconvert(), nb::arg("labels"), nb::arg("lists"),
               nb::arg("highest"), nb::arg("gap"), nb::arg("score_bits"), nb::arg("label_bits"),
               nb::arg("keys").noconvert(), "Write the keys by which items are sorted.");
  };
  pack(double{});
  pack(float{});
  pack(std::int64_t{});
  module.def("count_relevant", &count_relevant, nb::arg("keys"), nb::arg("label_bits"), nb::arg("n"),
             nb::arg("relevant").noconvert(),
             "Write the number of relevant items of each list; return their sum, and whether any items are tied.");
  module.def("find_relevant", &find_relevant, nb::arg("keys"), nb::arg("label_bits"), nb::arg("n"),
             nb::arg("grade").noconvert(), nb::arg("position").noconvert(), nb::arg("start").noconvert(),
             nb::arg("end").noconvert(),
             "Write the number of the label of each relevant item, its position, and the ends of its tie group.");
  module.def("order_grades", &order_grades, nb::arg("grade"), nb::arg("relevant"), nb::arg("levels"),
             nb::arg("ordered").noconvert(), nb::arg("place").noconvert(),
             "Write the numbers of labels of each list in descending order, and the place of each in its list.");
  module.def("count_later", &count_later, nb::arg("order"), nb::arg("level"), nb::arg("event"), nb::arg("levels"),
             nb::arg("below").noconvert(), nb::arg("equal").noconvert(),
             "Write for each row with an event how many rows of a larger order have a smaller level, and how many the "
             "same; 0 for other rows.");
}

}  // namespace ltr
