// Views of arrays, and what all kernels share, the common standard headers among it. No kernel knows of Python:
// `bindings.h` turns its arrays into views.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Compiles a function for several generations of x86-64 processors; the right one is taken when the module is loaded.
// CMakeLists.txt finds out whether that can be done.
#ifdef LTR_HAS_TARGET_CLONES
#define LTR_MULTIVERSION __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define LTR_MULTIVERSION
#endif

namespace ltr {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A matrix whose rows follow each other in memory.
template <typename T>
struct Matrix {
  T* data = nullptr;
  std::size_t rows = 0, columns = 0;

  T& operator()(std::size_t row, std::size_t column) const { return data[row * columns + column]; }
  std::span<T> operator[](std::size_t row) const { return {data + row * columns, columns}; }
  std::span<T> all() const { return {data, rows * columns}; }
};

// A number that is never negative as a place in an array, its fraction cut off.
constexpr std::size_t index(auto i) { return static_cast<std::size_t>(i); }

// Refuse arrays whose sizes do not fit together: kernels do not check what they read.
inline void require(bool holds, const char* rule) {
  if (!holds) throw std::invalid_argument(std::string("internal error in a call of a compiled kernel: ") + rule);
}

// Refuse numbers that are no places in an array of a size.
template <std::integral T>
void require_places(std::span<const T> values, std::size_t size, const char* rule) {
  require(std::all_of(values.begin(), values.end(), [=](T i) { return i >= 0 && index(i) < size; }), rule);
}

// Whether another thread asks the kernel to stop, by writing a number other than 0 to a byte that both see.
class Stop {
 public:
  Stop() = default;
  explicit Stop(std::uint8_t* byte) : byte_(byte) {}
  bool asked() const { return byte_ != nullptr && std::atomic_ref(*byte_).load(std::memory_order_relaxed) != 0; }

 private:
  std::uint8_t* byte_ = nullptr;
};

// What keeps the arrays alive that an object goes on reading.
using Kept = std::vector<std::shared_ptr<void>>;

}  // namespace ltr
