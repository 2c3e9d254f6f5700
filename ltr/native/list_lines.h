// Line searches over ranked lists, which list no pairs.
#pragma once

#include <memory>

#include "arrays.h"
#include "line_search.h"

namespace ltr {

// Lists of items. The score of an item is that of its row minus its offset, and of two items with equal scores the
// first one of the list is above. An item with a gain has a place, the number of items that count and are above it, one
// more if it counts itself; its gain is multiplied by the weight of that place. With ResolvedRanks every row is one
// item that counts. With Subranks there are two for a row with a gain: one that counts, and one with the gain whose
// offset is the margin.
struct Lists {
  std::span<const std::int32_t> row;  // of each item
  std::span<const double> offset, gain;
  std::span<const std::uint8_t> counts;     // 1 for items that count
  std::span<const std::int64_t> start;      // first item of each list, and the number of items
  std::span<const double> weight;           // by rank, of lists of the same length once, the lowest rank first
  std::span<const std::int64_t> weight_at;  // where the weights of each list start: as many as it has items that count
  double shift;
};

// Return a search of lines that uses up to so many threads; what it finds does not depend on their number. The arrays
// must go on, and are refused if they do not fit together.
std::unique_ptr<LineSearch> search_lists(const Lists& lists, std::size_t observations, std::size_t threads, Stop stop);

}  // namespace ltr
