// Arrays and arguments as Python hands them over.
//
// Kernels take views of arrays (`std::span`, `Matrix`), which nanobind makes of them by the casters below. Arrays that
// are only read may have any strides and number type: nanobind copies what does not fit. Arrays that are written are
// taken as they are, so that what a kernel writes is what the caller sees.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <set>

#include "arrays.h"

namespace ltr {

namespace nb = nanobind;
using namespace nb::literals;

template <typename T, std::size_t dimensions>
using Array = nb::ndarray<T, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;
using Byte = nb::ndarray<std::uint8_t, nb::shape<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<T> view(const Array<T, 1>& array) {
  return {array.data(), array.shape(0)};
}

template <typename T>
Matrix<T> view(const Array<T, 2>& array) {
  return {array.data(), array.shape(0), array.shape(1)};
}

inline Stop view(const Byte& byte) { return Stop(byte.data()); }

// The arguments of a constructor by name, and what keeps the arrays among them that the object goes on reading.
class Arguments {
 public:
  explicit Arguments(const nb::kwargs& given) : given_(given) {}

  bool has(const char* name) {
    asked_.insert(name);
    return given_.contains(name);
  }

  template <typename T>
  T get(const char* name) {
    T value{};
    if (!has(name) || !nb::try_cast(given_[name], value)) throw nb::type_error(name);
    return value;
  }

  template <typename Array>
  auto keep(Array array) {
    const auto kept = std::make_shared<Array>(std::move(array));
    kept_.push_back(kept);
    return view(*kept);
  }

  template <typename T>
  std::span<const T> vector(const char* name) {
    return keep(get<Array<const T, 1>>(name));
  }
  template <typename T>
  std::span<const T> vector(const char* name, std::size_t size) {
    const auto found = vector<T>(name);
    require(found.size() == size, name);
    return found;
  }

  template <typename T>
  Matrix<const T> rows(const char* name) {
    return keep(get<Array<const T, 2>>(name));
  }
  template <typename T>
  Matrix<const T> rows(const char* name, std::size_t rows_wanted, std::size_t columns) {
    const auto found = rows<T>(name);
    require(found.rows == rows_wanted && found.columns == columns, name);
    return found;
  }

  // The byte by which another thread asks to stop: Python's own, not a copy.
  Stop stop() {
    Byte byte;
    if (!has("stop") || !nb::try_cast(given_["stop"], byte, false)) throw nb::type_error("stop");
    return keep(std::move(byte));
  }

  // Refuse arguments that nobody asked for.
  void refuse_others() const {
    for (const auto& [name, value] : given_) {
      const nb::str known(name);
      if (!asked_.contains(known.c_str())) throw nb::type_error(known.c_str());
    }
  }

  Kept kept() { return std::move(kept_); }

 private:
  const nb::kwargs& given_;
  std::set<std::string> asked_;
  Kept kept_;
};

// Construct an object from the record that `read` makes of its arguments.
template <typename Class, auto read>
void construct(Class* self, const nb::kwargs& fields) {
  Arguments given(fields);
  auto record = read(given);
  given.refuse_others();
  if constexpr (requires { record.kept; }) record.kept = given.kept();
  new (self) Class(std::move(record));
}

inline const nb::sig kFields("def __init__(self, **fields: object) -> None");
inline const nb::call_guard<nb::gil_scoped_release> kReleased;

// What the files of `bindings/` add to the module.
void bind_cards(nb::module_& module);
void bind_local_search(nb::module_& module);
void bind_losses(nb::module_& module);
void bind_points(nb::module_& module);
void bind_recorder(nb::module_& module);
void bind_weight_space(nb::module_& module);

}  // namespace ltr

namespace nanobind::detail {

template <typename Array>
struct view_caster {
  using View = decltype(ltr::view(std::declval<const Array&>()));
  NB_TYPE_CASTER(View, make_caster<Array>::Name)

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    if constexpr (!Array::ReadOnly) flags &= ~static_cast<std::uint32_t>(cast_flags::convert);
    if (!array.from_python(source, flags, cleanup)) return false;
    value = ltr::view(array.value);
    return true;
  }

  make_caster<Array> array;  // alive during the call
};

template <typename T>
struct type_caster<std::span<T>> : view_caster<ltr::Array<T, 1>> {};
template <typename T>
struct type_caster<ltr::Matrix<T>> : view_caster<ltr::Array<T, 2>> {};
template <>
struct type_caster<ltr::Stop> : view_caster<ltr::Byte> {};

}  // namespace nanobind::detail
