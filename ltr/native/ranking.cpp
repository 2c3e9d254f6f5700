// Sorted lists as metrics need them: the keys by which items are sorted, and the places of the relevant items.
// `ltr/metrics/ranked.py` describes the order and the keys.
#include <algorithm>
#include <bit>
#include <limits>

#include "arrays.h"
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

// Write the number of relevant items of each list, whose keys are sorted, and return that of all.
std::int64_t count_relevant(Vector<std::int64_t> keys, std::int64_t label_bits, Vector<std::int64_t> n,
                            OutVector<std::int64_t> relevant) {
  check_lists(keys, label_bits, n);
  require(relevant.shape(0) == n.shape(0), "one number per list");
  const nb::gil_scoped_release release;
  const std::int64_t label = (std::int64_t{1} << label_bits) - 1;
  const std::int64_t* key = keys.data();
  std::int64_t total = 0;
  for (std::size_t list = 0; list < n.shape(0); ++list) {
    std::int64_t found = 0;
    const std::int64_t* const end = key + n.data()[list];
    for (; key < end; ++key) found += (*key & label) != 0;
    relevant.data()[list] = found;
    total += found;
  }
  return total;
}

// Write, for each relevant item, the number of its label, its position, and the first and the last position of its tie
// group; return whether any two items of a list are tied.
bool find_relevant(Vector<std::int64_t> keys, std::int64_t label_bits, Vector<std::int64_t> n,
                   OutVector<std::int64_t> grade, OutVector<std::int64_t> position, OutVector<std::int64_t> start,
                   OutVector<std::int64_t> end) {
  check_lists(keys, label_bits, n);
  const std::size_t room = grade.shape(0);
  require(position.shape(0) == room && start.shape(0) == room && end.shape(0) == room, "one entry per relevant item");
  const nb::gil_scoped_release release;
  const std::int64_t label = (std::int64_t{1} << label_bits) - 1;
  const std::int64_t* key = keys.data();
  std::size_t found = 0;
  bool tied = false;
  for (std::size_t list = 0; list < n.shape(0); ++list) {
    const std::int64_t length = n.data()[list];
    for (std::int64_t first = 0, last = 0; first < length; first = last + 1) {  // tie group by tie group
      for (last = first; last + 1 < length && (key[last + 1] ^ key[first]) >> label_bits == 0;) ++last;
      tied |= last > first;
      for (std::int64_t at = first; at <= last; ++at) {
        if ((key[at] & label) == 0) continue;
        if (found == room) return tied;
        grade.data()[found] = key[at] & label;
        position.data()[found] = at;
        start.data()[found] = first;
        end.data()[found++] = last;
      }
    }
    key += length;
  }
  return tied;
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
             nb::arg("relevant").noconvert(), "Write the number of relevant items of each list, and return their sum.");
  module.def("find_relevant", &find_relevant, nb::arg("keys"), nb::arg("label_bits"), nb::arg("n"),
             nb::arg("grade").noconvert(), nb::arg("position").noconvert(), nb::arg("start").noconvert(),
             nb::arg("end").noconvert(),
             "Write the number of the label of each relevant item, its position, and the ends of its tie group;\n"
             "return whether any items are tied.");
}

}  // namespace ltr
