// The extension module `ltr.native._core`: each source file binds its own functions.
#include "module.h"

namespace nb = nanobind;

NB_MODULE(_core, module) {
  module.doc() = "Compiled kernels of the toolkit.";
  ltr::bind_arcs(module);
  ltr::bind_cards(module);
  ltr::bind_central(module);
  ltr::bind_local_search(module);
  ltr::bind_losses(module);
  ltr::bind_points(module);
  ltr::bind_ranking(module);
  ltr::bind_recorder(module);
  ltr::bind_scores(module);
  ltr::bind_supports(module);
  ltr::bind_trees(module);
  ltr::bind_weight_space(module);
  nb::set_leak_warnings(false);  // objects that caches keep until Python ends
}
