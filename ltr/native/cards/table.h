// The answers of all rows as bits, and counts of the rows of a part that have a column.
#pragma once

#include <array>
#include <bit>

#include "../arrays.h"
#include "orders.h"

namespace ltr {

// Count the rows and gains that a column has in each part; parts follow each other, in each the levels.
#if defined(__GNUC__)
__attribute__((always_inline))
#endif
inline void count_words(const std::uint64_t* parts, int size, std::size_t words, const std::size_t* start,
                        const double* gains, std::size_t levels, const std::uint64_t* column, Block* with) {
  for (int p = 0; p < size; ++p) {
    const std::uint64_t* part = parts + index(p) * words;
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
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,popcnt"))) static void count_wide(
    const std::uint64_t* parts, int size, std::size_t words, const std::size_t* start, const double* gains,
    std::size_t levels, const std::uint64_t* column, Block* with) {
  count_words(parts, size, words, start, gains, levels, column, with);
}
static const bool kWide = __builtin_cpu_supports("avx512vpopcntdq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#endif

LTR_MULTIVERSION static void count_narrow(const std::uint64_t* parts, int size, std::size_t words,
                                          const std::size_t* start, const double* gains, std::size_t levels,
                                          const std::uint64_t* column, Block* with) {
  count_words(parts, size, words, start, gains, levels, column, with);
}

inline void count_common(const std::uint64_t* parts, int size, std::size_t words, const std::size_t* start,
                         const double* gains, std::size_t levels, const std::uint64_t* column, Block* with) {
#ifdef LTR_HAS_TARGET_CLONES
  if (kWide) return count_wide(parts, size, words, start, gains, levels, column, with);
#endif
  count_narrow(parts, size, words, start, gains, levels, column, with);
}

// The rows by level, as bits: those of a level follow each other, and each level begins with a new word.
class CardTable {
 public:
  // Args: X: answers; level: of each row.
  CardTable(Matrix<const std::uint8_t> X, std::span<const std::int32_t> level, std::size_t levels)
      : n_(X.rows), columns_(X.columns), levels_(levels) {
    require(level.size() == n_ && columns_ <= 60'000 && n_ >= 1, "rows and columns");
    require(levels_ >= 1 && levels_ <= n_, "number of levels");
    for (const std::int32_t of : level) require(of >= 0 && of < static_cast<int>(levels_), "levels");
    std::vector<std::size_t> next(levels_ + 1, 0);
    for (const std::int32_t of : level) ++next[index(of) + 1];
    for (std::size_t l = 1; l < next.size(); ++l) next[l] = (next[l - 1] + next[l] + 63) / 64 * 64;
    words_ = next.back() / 64;
    for (const std::size_t bit : next) start_.push_back(bit / 64);
    bits_.assign(columns_ * words_, 0);
    all_.assign(words_, 0);
    row_at_.assign(words_ * 64, 0);
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t bit = next[index(level[i])]++;
      all_[bit / 64] |= std::uint64_t{1} << bit % 64;
      row_at_[bit] = i;
      for (std::size_t j = 0; j < columns_; ++j) {
        if (X(i, j) != 0) bits_[j * words_ + bit / 64] |= std::uint64_t{1} << bit % 64;
      }
    }
  }

  std::size_t n() const { return n_; }
  std::size_t columns() const { return columns_; }
  std::size_t words() const { return words_; }
  std::size_t bits() const { return row_at_.size(); }
  std::size_t row_at(std::size_t bit) const { return row_at_[bit]; }
  const std::vector<std::uint64_t>& all() const { return all_; }
  const std::uint64_t* column(std::size_t j) const { return bits_.data() + j * words_; }

  // Divide each of so many parts into its rows without a column, and behind these parts its rows with it.
  void split(const std::uint64_t* parts, int count, std::size_t j, std::uint64_t* into) const {
    const std::uint64_t* answers = column(j);
    for (int p = 0; p < count; ++p) {
      const std::uint64_t* part = parts + index(p) * words_;
      std::uint64_t* without = into + index(p) * words_;
      std::uint64_t* with = into + index(p + count) * words_;
      for (std::size_t word = 0; word < words_; ++word) {
        with[word] = part[word] & answers[word];
        without[word] = part[word] & ~answers[word];
      }
    }
  }

  // Count the rows of a part and their gains.
  Block block_of(std::span<const double> gains, const std::uint64_t* part) const {
    Block block;
    for (std::size_t level = 0; level < levels_; ++level) {
      std::int64_t count = 0;
      for (std::size_t word = start_[level]; word < start_[level + 1]; ++word) count += std::popcount(part[word]);
      block.count += static_cast<double>(count);
      block.gain += gains[level] * static_cast<double>(count);
    }
    return block;
  }

  // Count the rows that a column has in so many parts, with their gains.
  void count(const std::uint64_t* parts, int size, std::span<const double> gains, const std::uint64_t* column,
             Block* with) const {
    count_common(parts, size, words_, start_.data(), gains.data(), levels_, column, with);
  }

 private:
  std::size_t n_, columns_, levels_, words_ = 0;
  std::vector<std::size_t> start_;  // first word of each level
  std::vector<std::uint64_t> bits_, all_;
  std::vector<std::size_t> row_at_;  // each bit's row
};

}  // namespace ltr
