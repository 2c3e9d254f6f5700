// Weights that a search finds as Python gets them.
#pragma once

#include "../bindings.h"
#include "../found_weights.h"

namespace ltr {

// The value, the columns and their weights.
inline nb::tuple described(const FoundWeights& found) {
  nb::list columns, weights;
  for (std::size_t i = 0; i < found.size; ++i) {
    columns.append(found.columns[i]);
    weights.append(found.weights[i]);
  }
  return nb::make_tuple(found.value, nb::tuple(columns), nb::tuple(weights));
}

inline nb::list described(const std::vector<FoundWeights>& found) {
  nb::list all;
  for (const FoundWeights& one : found) all.append(described(one));
  return all;
}

// The function `met` of columns and weights, if there is one.
inline Met met_of(Arguments& given) {
  if (!given.has("met")) return {};
  return [met = given.get<nb::object>("met")](const FoundWeights& found) {
    const nb::gil_scoped_acquire acquire;
    const nb::tuple weights = described(found);
    return nb::cast<bool>(met(weights[1], weights[2]));
  };
}

}  // namespace ltr
