// What each source file adds to the extension module `ltr.native._core`.
#pragma once

#include <nanobind/nanobind.h>

namespace ltr {

void bind_arcs(nanobind::module_& module);
void bind_cards(nanobind::module_& module);
void bind_central(nanobind::module_& module);
void bind_local_search(nanobind::module_& module);
void bind_losses(nanobind::module_& module);
void bind_points(nanobind::module_& module);
void bind_ranking(nanobind::module_& module);
void bind_recorder(nanobind::module_& module);
void bind_scores(nanobind::module_& module);
void bind_supports(nanobind::module_& module);
void bind_trees(nanobind::module_& module);
void bind_weight_space(nanobind::module_& module);

}  // namespace ltr
