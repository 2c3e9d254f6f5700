// Pairs of which no weights, or few, win both: those with nearly opposite differences.
#pragma once

#include "../arrays.h"

namespace ltr::weight_space {

// Write the directions nearest to the negative of each one, the nearest first, and their distances in the 1-norm.
//
// `directions` has a column for each direction; `partner` and `distance` have a row, and as many columns as are wanted,
// at most one for each direction.
void find_opposites(Matrix<const float> directions, Matrix<std::int32_t> partner, Matrix<float> distance);

}  // namespace ltr::weight_space
