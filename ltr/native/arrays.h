// Arrays as Python hands them over, and views of them that kernels read and write.
//
// Inputs that only are read may have any strides and number type: nanobind copies what is not contiguous. Outputs are
// taken as they are (`.noconvert()`), so that what a kernel writes is what the caller sees. No kernel touches a Python
// object: functions that Python calls turn arrays into views, release the GIL and call the kernel.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

// Compiles a function for several generations of x86-64 processors; the right one is taken when the module is loaded.
// CMakeLists.txt finds out whether that can be done.
#ifdef LTR_HAS_TARGET_CLONES
#define LTR_MULTIVERSION __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define LTR_MULTIVERSION
#endif

namespace ltr {

namespace nb = nanobind;

// A matrix whose rows follow each other in memory.
template <typename T>
struct Matrix {
  T* data = nullptr;
  std::size_t rows = 0, columns = 0;

  T& operator()(std::size_t row, std::size_t column) const { return data[row * columns + column]; }
  std::span<T> operator[](std::size_t row) const { return {data + row * columns, columns}; }
};

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Rows = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutRows = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T, typename... Rest>
std::span<T> view(const nb::ndarray<T, nb::ndim<1>, Rest...>& array) {
  return {array.data(), array.shape(0)};
}

template <typename T, typename... Rest>
Matrix<T> view(const nb::ndarray<T, nb::ndim<2>, Rest...>& array) {
  return {array.data(), array.shape(0), array.shape(1)};
}

// Refuse arrays whose sizes do not fit together: kernels do not check what they read.
inline void require(bool holds, const char* rule) {
  if (!holds) throw std::invalid_argument(std::string("internal error in a call of a compiled kernel: ") + rule);
}

// Whether another thread asks the kernel to stop, by writing a number other than 0 to a shared array of one byte.
class Stop {
 public:
  explicit Stop(std::span<const std::uint8_t> flag) : flag_(flag.empty() ? nullptr : flag.data()) {}
  bool asked() const {
    // The flag is only read here, but `std::atomic_ref` takes no constant before C++26.
    return flag_ != nullptr && std::atomic_ref(const_cast<std::uint8_t&>(*flag_)).load(std::memory_order_relaxed) != 0;
  }

 private:
  const std::uint8_t* flag_;
};

}  // namespace ltr
