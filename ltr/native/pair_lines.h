// Line searches over listed pairs, which visit every value that the statistic takes on a line.
#pragma once

#include <memory>

#include "arrays.h"
#include "line_search.h"

namespace ltr {

// The pairs of a problem and its levels, see `ltr.exact.levels`. The pairs of a positive follow each other.
struct Pairs {
  std::span<const std::int32_t> above, below;  // observations of each pair
  std::span<const double> limit;               // score difference from which it is won
  std::span<const std::int32_t> positive;      // positive that counts it when it is lost
};

struct Levels {
  std::span<const std::int64_t> level;  // of each positive
  std::span<const std::int64_t> start;  // first positive of each level, and the number of positives
  std::span<const std::int64_t> most_lost, table, counts_at;  // of each level
  std::span<const double> contribution;
  std::int64_t counts_size;
  double shift;
  // of the objective and of each demand (`ltr.exact.constraints`), and the number of levels
  std::span<const std::int64_t> first_level;
  std::span<const double> least, penalty;  // of each demand: least sum of its levels, and the price of what is missing
};

// Return a search of lines, whose values are less the penalties of missed demands. The arrays of pairs must go on.
// Arrays that do not fit together are refused.
std::unique_ptr<LineSearch> search_pairs(const Pairs& pairs, const Levels& levels, std::size_t observations, Stop stop);

}  // namespace ltr
