// Arrays and arguments as Python hands them over. Functions that Python calls turn arrays into views, release the GIL
// and call the kernel.
//
// Inputs that only are read may have any strides and number type: nanobind copies what is not contiguous. Outputs are
// taken as they are (`.noconvert()`), so that what a kernel writes is what the caller sees.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "arrays.h"

namespace ltr {

namespace nb = nanobind;

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

// Arrays that an object goes on reading.
using Kept = std::vector<std::shared_ptr<void>>;

// The arguments of a constructor by name; arrays are kept.
class Arguments {
 public:
  Arguments(const nb::kwargs& given, Kept& kept) : given_(given), kept_(kept) {}

  bool has(const char* name) const { return given_.contains(name); }

  template <typename T>
  T get(const char* name, bool convert = true) const {
    T value{};
    if (!has(name) || !nb::try_cast(given_[name], value, convert)) throw nb::type_error(name);
    return value;
  }

  template <typename Array>
  auto keep(Array array) const {
    const auto kept = std::make_shared<Array>(std::move(array));
    kept_.push_back(kept);
    return view(*kept);
  }

  template <typename T>
  std::span<const T> vector(const char* name) const {
    return keep(get<Vector<T>>(name));
  }
  template <typename T>
  std::span<const T> vector(const char* name, std::size_t size) const {
    const std::span<const T> found = vector<T>(name);
    require(found.size() == size, name);
    return found;
  }

  template <typename T>
  Matrix<const T> rows(const char* name) const {
    return keep(get<Rows<T>>(name));
  }
  template <typename T>
  Matrix<const T> rows(const char* name, std::size_t rows_wanted, std::size_t columns) const {
    const Matrix<const T> found = rows<T>(name);
    require(found.rows == rows_wanted && found.columns == columns, name);
    return found;
  }

  // A byte by which another thread asks to stop: Python's own, not a copy.
  Stop stop() const {
    const auto flag = keep(get<Vector<std::uint8_t>>("stop", false));
    require(flag.size() == 1, "one byte to stop by");
    return Stop(flag);
  }

 private:
  const nb::kwargs& given_;
  Kept& kept_;
};

}  // namespace ltr
