// The extension module `ltr.native._core`: kernels that are bound as they are, and the parts in `bindings/`.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arcs.h"
#include "bindings.h"
#include "functions.h"
#include "trees.h"

namespace ltr {
namespace {

template <class Score>
void bind_scores(nb::module_& module) {
  using Scores = std::span<const Score>;
  if constexpr (std::is_floating_point_v<Score>) {
    module.def("score_range", nb::overload_cast<Scores>(&score_range), "scores"_a.noconvert());
  }
  module.def(
      "pack_keys",
      [](Scores scores, Numbers labels, Numbers lists, std::int64_t highest, std::int64_t gap, std::int64_t score_bits,
         std::int64_t label_bits, std::span<std::int64_t> keys) {
        pack_keys(scores, labels, lists, {highest, gap, score_bits, label_bits}, keys);
      },
      "scores"_a.noconvert(), "labels"_a, "lists"_a, "highest"_a, "gap"_a, "score_bits"_a, "label_bits"_a, "keys"_a,
      kReleased);
}

void bind_functions(nb::module_& module) {
  module.def("weigh_rows", &weigh_rows, "X"_a, "w"_a, "values"_a, "sizes"_a, kReleased);
  module.def("rank_keys", &rank_keys, "X"_a, "w"_a, "margin"_a, "rows"_a, "steps"_a, "lists"_a, "values"_a, "errors"_a,
             "margin_error"_a, "apart"_a, "ranks"_a, kReleased);
  module.def("bound_supports", &bound_supports, nb::kw_only(), "place"_a, "ascending"_a, "values"_a, "gains"_a,
             "sums"_a, "supports"_a, "bounds"_a, kReleased);
  module.def("statistics", &statistics, "start"_a, "gains"_a, "penalty"_a, "rank_weights"_a, "scores"_a, "found"_a,
             kReleased);
  module.def("sample_steps", &sample_steps, "start"_a, "gains"_a, "penalty"_a, "rank_weights"_a, "A"_a, "b"_a,
             "origin"_a, "free"_a, "base"_a, "Z"_a, "walkers"_a, "steps"_a, "burn_in"_a, "sharpness"_a, "spread"_a,
             "seed"_a, "mean"_a, kReleased);
  bind_scores<double>(module);
  bind_scores<float>(module);
  bind_scores<std::int64_t>(module);
  module.def("count_relevant", &count_relevant, "keys"_a, "label_bits"_a, "n"_a, "relevant"_a, kReleased);
  module.def("find_relevant", &find_relevant, "keys"_a, "label_bits"_a, "n"_a, "grade"_a, "position"_a, "start"_a,
             "end"_a, kReleased);
  module.def("order_grades", &order_grades, "grade"_a, "relevant"_a, "levels"_a, "ordered"_a, "place"_a, kReleased);
  module.def("count_later", &count_later, "order"_a, "level"_a, "event"_a, "levels"_a, "below"_a, "equal"_a, kReleased);
  module.def("find_opposites", &find_opposites, "directions"_a, "partner"_a, "distance"_a, kReleased);
  module.def("add_moments", &add_moments, "q"_a, "bins"_a, "place"_a, "total"_a, kReleased);
  module.def("interpolate", &interpolate, "coefficients"_a, "bins"_a, "place"_a, "out"_a, kReleased);
}

void bind_classes(nb::module_& module) {
  using arcs::Arcs;
  using Places = std::span<const std::int32_t>;
  using Doubles = std::span<const double>;
  nb::class_<Arcs>(module, "Arcs", "Bounds over arcs of directions, see `arcs.h`.")
      .def(nb::init<Places, Doubles, Doubles, Numbers, Doubles, Numbers, double, std::size_t>(), "row"_a, "offset"_a,
           "gain"_a, "start"_a, "weight"_a, "weight_at"_a, "shift"_a, "threads"_a)
      .def("bound", &Arcs::bound, "f"_a, "g"_a, "low"_a, "high"_a, "most"_a, kReleased);
  nb::class_<Trees>(module, "Trees", "Decision trees, see `trees.h`.")
      .def(nb::init<Places, Doubles, std::span<const std::uint8_t>, Places, Places, Doubles, Places, std::size_t>(),
           "feature"_a, "threshold"_a, "missing_left"_a, "left"_a, "right"_a, "value"_a, "roots"_a, "columns"_a)
      .def("add_up", &Trees::add_up, "rows"_a, "start"_a, "single"_a, "sums"_a, kReleased);
}

}  // namespace
}  // namespace ltr

NB_MODULE(_core, module) {
  module.doc() = "Compiled kernels of the toolkit.";
  ltr::bind_functions(module);
  ltr::bind_classes(module);
  ltr::bind_cards(module);
  ltr::bind_local_search(module);
  ltr::bind_losses(module);
  ltr::bind_points(module);
  ltr::bind_recorder(module);
  ltr::bind_weight_space(module);
  nanobind::set_leak_warnings(false);  // objects that caches keep until Python ends
}
