#include "../losses.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../bindings.h"

namespace ltr {
namespace {

// A tensor of torch on the CPU whose numbers lie one behind the other, as its own methods describe it: that takes less
// time than an array of NumPy made of it.
class Tensor {
 public:
  explicit Tensor(nb::handle tensor) {
    static const nb::handle is_cpu = name("is_cpu"), is_contiguous = name("is_contiguous"), numel = name("numel"),
                            data_ptr = name("data_ptr"), dtype = name("dtype");
    require(nb::hasattr(tensor, data_ptr), "tensors of torch");
    require(nb::cast<bool>(tensor.attr(is_cpu)) && nb::cast<bool>(tensor.attr(is_contiguous)()),
            "tensors on the CPU without gaps");
    size_ = nb::cast<std::size_t>(tensor.attr(numel)());
    address_ = nb::cast<std::uintptr_t>(tensor.attr(data_ptr)());
    type_ = tensor.attr(dtype);
  }

  std::size_t size() const { return size_; }

  template <class T>
  bool is() const {
    return type_.is(type_of<std::remove_const_t<T>>());
  }

  template <class T>
  T* data(std::size_t items) const {
    require(is<T>(), "one number type for scores, labels, weights and slopes");
    require(size_ == items, "one entry per item");
    return reinterpret_cast<T*>(address_);
  }

  // The same of a tensor that may be None.
  template <class T>
  static T* data_of(nb::handle tensor, std::size_t items) {
    return tensor.is_none() ? nullptr : Tensor(tensor).data<T>(items);
  }

 private:
  // a string that is looked up faster than one made anew, kept as long as the process
  static nb::handle name(const char* text) { return PyUnicode_InternFromString(text); }

  // torch's object for a number type, which lives as long as the process
  template <class T>
  static nb::handle type_of() {
    constexpr const char* kName = std::is_same_v<T, float>    ? "float32"
                                  : std::is_same_v<T, double> ? "float64"
                                  : std::is_same_v<T, bool>   ? "bool"
                                                              : "int64";
    static const nb::handle type = nb::object(nb::module_::import_("torch").attr(kName)).release();
    return type;
  }

  nb::object type_;
  std::size_t size_;
  std::uintptr_t address_;
};

bool evaluate(const ListLoss& loss, nb::handle scores, nb::handle labels, nb::handle mask, nb::handle weights,
              const Groups* groups, const std::string& reduction, std::int64_t threads, nb::handle values,
              nb::handle slopes, nb::handle curvatures) {
  require(reduction == "none" || reduction == "sum" || reduction == "mean", "the name of a reduction");
  const Reduction how = reduction == "none" ? Reduction::none : reduction == "sum" ? Reduction::sum : Reduction::mean;
  const auto dimensions = nb::cast<std::size_t>(scores.attr("ndim"));
  require(dimensions > 0 && (groups == nullptr || dimensions == 1), "a list axis");
  const auto length = nb::cast<std::size_t>(scores.attr("size")(-1));
  const Tensor given(scores), relevance(labels), out(values), gradient(slopes);
  const std::size_t items = given.size();
  require(groups == nullptr || groups->items() == items, "one id per item");
  const std::size_t lists = groups != nullptr ? groups->lists() : length > 0 ? items / length : 0;
  const auto typed = [&]<class Score, class Label>(Score, Label) {
    const Batch<Score, Label> batch{given.data<const Score>(items),
                                    relevance.data<const Label>(items),
                                    reinterpret_cast<const std::uint8_t*>(Tensor::data_of<const bool>(mask, items)),
                                    Tensor::data_of<const Score>(weights, items),
                                    groups,
                                    items,
                                    length,
                                    lists,
                                    gradient.data<Score>(items),
                                    Tensor::data_of<Score>(curvatures, items)};
    auto* const found = out.data<Score>(how == Reduction::none ? lists : 1);
    const nb::gil_scoped_release release;
    return loss.evaluate(batch, how, index(std::max<std::int64_t>(threads, 1)), found);
  };
  const bool whole = relevance.is<std::int64_t>();
  if (given.is<float>()) return whole ? typed(float{}, std::int64_t{}) : typed(float{}, float{});
  return whole ? typed(double{}, std::int64_t{}) : typed(double{}, double{});
}

}  // namespace

void bind_losses(nb::module_& module) {
  nb::class_<Groups>(module, "Groups", "The lists of flat items with an id each.")
      .def(nb::init<std::span<const std::int64_t>>(), "ids"_a)
      .def_prop_ro("lists", &Groups::lists, "Number of lists.")
      .def_prop_ro("items", &Groups::items, "Number of items.")
      .def_prop_ro("longest", &Groups::longest, "Length of the longest list.")
      .def_prop_ro("pairs", &Groups::pairs, "Sum of the squared lengths.")
      .def("write_number", &Groups::write_number, "out"_a, "Write the number of each item's list.");
  nb::class_<ListLoss>(module, "ListLoss", "A loss of lists by name, with its options.")
      .def(nb::init<const std::string&, bool, double, double, std::vector<double>, bool, std::int64_t, bool, bool,
                    bool>(),
           "name"_a, "mean"_a = true, "power"_a = 1.0, "temperature"_a = 1.0, "rank_weights"_a = std::vector<double>{},
           "by_rank"_a = false, "cutoff"_a = 0, "exp2"_a = false, "hits"_a = false, "share_of_pairs"_a = false)
      .def("__call__", &evaluate, "scores"_a, "labels"_a, "mask"_a.none(), "weights"_a.none(), "groups"_a.none(),
           "reduction"_a, "threads"_a, "values"_a, "slopes"_a, "curvatures"_a = nb::none(),
           "Write values and gradient, and where asked for the second derivative in each score or a bound above it;\n"
           "return False if Python must look at the inputs.");
}

}  // namespace ltr
