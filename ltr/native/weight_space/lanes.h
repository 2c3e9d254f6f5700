// Several numbers at once, in vector registers of whatever size the processor has.
//
// For sums and products. Comparisons are written as plain loops instead: in functions that are compiled for several
// processors, compilers turn those of such types into comparisons of single numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ltr::weight_space {

using Floats8 [[gnu::vector_size(32)]] = float;
using Floats16 [[gnu::vector_size(64)]] = float;
using Bits8 [[gnu::vector_size(32)]] = std::uint32_t;
using Bits16 [[gnu::vector_size(64)]] = std::uint32_t;
using Doubles8 [[gnu::vector_size(64)]] = double;

template <typename Lanes, typename T>
[[gnu::always_inline]] inline void load(Lanes& lanes, const T* from) {
  std::memcpy(&lanes, from, sizeof lanes);
}

template <typename Lanes, typename T>
[[gnu::always_inline]] inline void store(const Lanes& lanes, T* to) {
  std::memcpy(to, &lanes, sizeof lanes);
}

}  // namespace ltr::weight_space
