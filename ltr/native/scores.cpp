// Scores w·x and the order of the keys ``w·x - margin * steps`` in lists, for `ltr.exact.scores`: in float64 where its
// error leaves no doubt, else in integers.
//
// A group of keys whose error intervals overlap is sorted by integers in one unit, each of as many 64-bit digits as the
// group needs: the product of two float64 numbers is an integer below 2^106 times a power of two.
#include <numeric>

#include "functions.h"
#include "key_sort.h"

namespace ltr {
namespace {

constexpr int kDigits = 53;
constexpr std::size_t kShort = 24;  // keys up to which a list is sorted by insertion

// Write w·x and |w|·|x| of four rows, or of fewer; `used` are the columns whose weights are not 0.
template <std::size_t rows>
[[gnu::always_inline]] inline void weigh(const double* x, std::size_t d, const std::vector<std::size_t>& used,
                                         const double* w, double* values, double* sizes) {
  double value[rows] = {}, size[rows] = {};
  for (const std::size_t j : used) {
    for (std::size_t r = 0; r < rows; ++r) {
      const double term = x[r * d + j] * w[j];
      value[r] += term;
      size[r] += std::abs(term);
    }
  }
  std::copy_n(value, rows, values);
  std::copy_n(size, rows, sizes);
}

LTR_MULTIVERSION void weigh_all(const double* x, std::size_t n, std::size_t d, const std::vector<std::size_t>& used,
                                const double* w, double* values, double* sizes) {
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) weigh<4>(x + i * d, d, used, w, values + i, sizes + i);
  for (; i < n; ++i) weigh<1>(x + i * d, d, used, w, values + i, sizes + i);
}

std::vector<std::size_t> columns_used(std::span<const double> w) {
  std::vector<std::size_t> used;
  for (std::size_t j = 0; j < w.size(); ++j) {
    if (w[j] != 0.0) used.push_back(j);
  }
  return used;
}

// A float64 as ``mantissa * 2^exponent``, with a mantissa of up to 53 bits; an exponent of its own tells 0.
struct Whole {
  std::int64_t mantissa;
  int exponent;
};

Whole whole(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return {static_cast<std::int64_t>(std::ldexp(fraction, kDigits)), exponent - kDigits};
}

std::uint64_t size_of(std::int64_t x) {
  return x < 0 ? 0 - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
}

// What keys are made of.
struct Terms {
  Matrix<const double> X;
  std::span<const double> w;
  double margin;
  std::span<const std::int64_t> rows, steps;  // of each key
};

// The keys of a group as integers in one unit: digits of 64 bits, lowest first, in two's complement.
class Integers {
 public:
  explicit Integers(const Terms& terms) : terms_(terms), margin_(whole(terms.margin)), used_(columns_used(terms.w)) {
    for (const std::size_t j : used_) w_.push_back(whole(terms.w[j]));
  }

  // Whether all keys are equal because they have the same rows, but for columns that are not used, and steps.
  bool repeated(std::span<const std::uint32_t> keys) const {
    const std::int64_t row = terms_.rows[keys[0]], step = terms_.steps[keys[0]];
    const double* const first = terms_.X[index(row)].data();
    return std::all_of(keys.begin() + 1, keys.end(), [&](std::uint32_t key) {
      if (terms_.steps[key] != step) return false;
      if (terms_.rows[key] == row) return true;
      const double* const x = terms_.X[index(terms_.rows[key])].data();
      return std::all_of(used_.begin(), used_.end(), [=](std::size_t j) { return x[j] == first[j]; });
    });
  }

  // Sort keys by their integers; write whether each differs from the one before it.
  void sort(std::span<std::uint32_t> keys, std::uint8_t* differs) {
    find_unit(keys);
    digits_.assign(keys.size() * length_, 0);
    for (std::size_t k = 0; k < keys.size(); ++k) write(keys[k], digits_.data() + k * length_);
    place_.resize(keys.size());
    std::iota(place_.begin(), place_.end(), std::uint32_t{0});
    std::sort(place_.begin(), place_.end(), [&](std::uint32_t a, std::uint32_t b) { return compare(a, b) < 0; });
    sorted_.resize(keys.size());
    for (std::size_t k = 0; k < keys.size(); ++k) {
      sorted_[k] = keys[place_[k]];
      if (k > 0) differs[k] = compare(place_[k - 1], place_[k]) != 0;
    }
    std::copy(sorted_.begin(), sorted_.end(), keys.begin());
  }

 private:
  // Find the exponent of the unit, and the digits for the largest key.
  void find_unit(std::span<const std::uint32_t> keys) {
    int low = std::numeric_limits<int>::max(), high = std::numeric_limits<int>::min();
    for (const std::uint32_t key : keys) {
      const double* const x = terms_.X[index(terms_.rows[key])].data();
      for (std::size_t k = 0; k < used_.size(); ++k) {
        if (x[used_[k]] == 0.0) continue;
        const int exponent = whole(x[used_[k]]).exponent + w_[k].exponent;
        low = std::min(low, exponent), high = std::max(high, exponent + 2 * kDigits);
      }
      if (terms_.steps[key] != 0) {
        low = std::min(low, margin_.exponent), high = std::max(high, margin_.exponent + kDigits + 64);
      }
    }
    unit_ = low;
    const int bits = low > high ? 1 : high - low;
    // room for the sum of up to 2^62 terms, the sign, and the carries of a term
    length_ = index(bits + 63) / 64 + 3;
  }

  void write(std::uint32_t key, std::uint64_t* digits) const {
    const double* const x = terms_.X[index(terms_.rows[key])].data();
    for (std::size_t k = 0; k < used_.size(); ++k) {
      if (x[used_[k]] == 0.0) continue;
      const Whole one = whole(x[used_[k]]);
      add(one.mantissa, w_[k].mantissa, one.exponent + w_[k].exponent - unit_, digits);
    }
    if (terms_.steps[key] != 0) {
      add(-margin_.mantissa, terms_.steps[key], margin_.exponent - unit_, digits);
    }
  }

  // digits += one * other * 2^shift
  void add(std::int64_t one, std::int64_t other, int shift, std::uint64_t* digits) const {
    const bool negative = (one < 0) != (other < 0);
    const auto product = static_cast<unsigned __int128>(size_of(one)) * size_of(other);
    const auto low = static_cast<std::uint64_t>(product), high = static_cast<std::uint64_t>(product >> 64);
    const int bit = shift % 64;
    const std::uint64_t parts[3] = {low << bit, bit == 0 ? high : high << bit | low >> (64 - bit),
                                    bit == 0 ? 0 : high >> (64 - bit)};
    const auto at = index(shift / 64);
    bool carry = false;
    for (std::size_t k = at; k < length_ && (k < at + 3 || carry); ++k) {
      const std::uint64_t part = k < at + 3 ? parts[k - at] : 0, before = digits[k];
      const std::uint64_t sum = negative ? before - part : before + part;
      const bool over = negative ? before < part : sum < part;
      digits[k] = negative ? sum - carry : sum + carry;
      carry = over || (carry && (negative ? sum == 0 : digits[k] == 0));
    }
  }

  int compare(std::uint32_t a, std::uint32_t b) const {
    const std::uint64_t *one = digits_.data() + a * length_, *other = digits_.data() + b * length_;
    constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
    for (std::size_t k = length_; k-- > 0;) {
      const std::uint64_t flip = k + 1 == length_ ? kSign : 0;
      if (one[k] != other[k]) return (one[k] ^ flip) < (other[k] ^ flip) ? -1 : 1;
    }
    return 0;
  }

  const Terms& terms_;
  Whole margin_;
  std::vector<std::size_t> used_;
  std::vector<Whole> w_;
  int unit_ = 0;
  std::size_t length_ = 0;
  std::vector<std::uint64_t> digits_;
  std::vector<std::uint32_t> place_, sorted_;
};

// Float64 numbers that the key is certainly between.
struct Interval {
  double low, high;
};

// Ranks keys, list after list.
class Ranking {
 public:
  Ranking(const Terms& terms, std::span<const double> values, std::span<const double> errors, double margin_error)
      : terms_(terms), values_(values), errors_(errors), margin_error_(margin_error), integers_(terms) {
    const std::size_t n = terms.rows.size();
    interval_.resize(n);
    order_.resize(n);
    differs_.resize(n);
    std::iota(order_.begin(), order_.end(), std::uint32_t{0});
    for (std::size_t key = 0; key < n; ++key) interval_[key] = interval(key);
  }

  // Sort the keys of one list and mark those that differ from the one before.
  void sort(std::size_t begin, std::size_t end) {
    std::uint32_t* const order = order_.data();
    if (end - begin <= kShort) {
      for (std::size_t k = begin + 1; k < end; ++k) {
        const std::uint32_t key = order[k];
        const double low = interval_[key].low;
        std::size_t to = k;
        for (; to > begin && interval_[order[to - 1]].low > low; --to) order[to] = order[to - 1];
        order[to] = key;
      }
    } else {
      sorted_.resize(end - begin);
      for (std::size_t k = begin; k < end; ++k) sorted_[k - begin] = {interval_[k].low, static_cast<std::uint32_t>(k)};
      sort_keys(sorted_, spare_);
      for (std::size_t k = begin; k < end; ++k) order[k] = sorted_[k - begin].item;
    }
    std::uint8_t* const differs = differs_.data();
    for (std::size_t first = begin, next = begin; first < end; first = next) {
      double reached = interval_[order[first]].high;
      differs[first] = 1;
      for (next = first + 1; next < end && interval_[order[next]].low <= reached; ++next) {
        reached = std::max(reached, interval_[order[next]].high);
      }
      if (next == first + 1) continue;
      const std::span<std::uint32_t> group(order + first, next - first);
      std::fill(differs + first + 1, differs + next, 0);
      if (!integers_.repeated(group)) integers_.sort(group, differs + first);
    }
  }

  // Write the rank of each key, from 0: equal keys share one.
  void ranks(std::span<std::int64_t> ranks) const {
    std::int64_t rank = -1;
    for (std::size_t k = 0; k < order_.size(); ++k) ranks[order_[k]] = rank += differs_[k];
  }

  // Write the place of each key, from 0: of equal keys, more steps are higher, and with as many, those that come first.
  void places(std::span<std::int64_t> places) {
    for (std::size_t first = 0, next = 0; first < order_.size(); first = next) {
      for (next = first + 1; next < order_.size() && !differs_[next]; ++next) continue;
      std::sort(order_.begin() + first, order_.begin() + next, [&](std::uint32_t a, std::uint32_t b) {
        return terms_.steps[a] != terms_.steps[b] ? terms_.steps[a] < terms_.steps[b] : a > b;
      });
    }
    for (std::size_t k = 0; k < order_.size(); ++k) places[order_[k]] = static_cast<std::int64_t>(k);
  }

 private:
  Interval interval(std::size_t key) const {
    const auto row = index(terms_.rows[key]);
    const auto steps = static_cast<double>(terms_.steps[key]);
    const double middle = values_[row] - terms_.margin * steps, error = errors_[row] + steps * margin_error_;
    const double low = middle - error, high = middle + error;
    return {std::isnan(low) ? -kInfinity : low, std::isnan(high) ? kInfinity : high};
  }

  const Terms& terms_;
  std::span<const double> values_, errors_;
  double margin_error_;
  Integers integers_;
  std::vector<Interval> interval_;
  std::vector<std::uint32_t> order_;
  std::vector<std::uint8_t> differs_;
  std::vector<Key> sorted_, spare_;
};

}  // namespace

void weigh_rows(Matrix<const double> X, std::span<const double> w, std::span<double> values, std::span<double> sizes) {
  require(w.size() == X.columns, "one weight per feature");
  require(values.size() == X.rows && sizes.size() == X.rows, "one score per row");
  weigh_all(X.data, X.rows, X.columns, columns_used(w), w.data(), values.data(), sizes.data());
}

void rank_keys(Matrix<const double> X, std::span<const double> w, double margin, std::span<const std::int64_t> rows,
               std::span<const std::int64_t> steps, std::span<const std::int64_t> lists, std::span<const double> values,
               std::span<const double> errors, double margin_error, bool apart, std::span<std::int64_t> ranks) {
  const std::size_t keys = rows.size();
  require(w.size() == X.columns && values.size() == X.rows && errors.size() == X.rows, "one score per row");
  require(steps.size() == keys && lists.size() == keys && ranks.size() == keys, "one entry per key");
  require(keys < std::numeric_limits<std::uint32_t>::max(), "fewer keys");
  require_places(rows, X.rows, "rows of X");
  require(std::is_sorted(lists.begin(), lists.end()), "lists in ascending order");
  const Terms terms{X, w, margin, rows, steps};
  Ranking ranking(terms, values, errors, margin_error);
  for (std::size_t first = 0, next = 0; first < keys; first = next) {
    for (next = first + 1; next < keys && lists[next] == lists[first]; ++next) continue;
    ranking.sort(first, next);
  }
  if (apart) {
    ranking.places(ranks);
  } else {
    ranking.ranks(ranks);
  }
}

}  // namespace ltr
