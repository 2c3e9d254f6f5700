// Bounds of what weights of a few columns can reach, for `ltr.exact.weight_space.space`.
//
// One column of a support, the one with the most values, is its *chain*; the values of the others divide the rows of a
// list into blocks. Within a block the order is that of the chain, ascending or descending by the sign of its weight.
// Take the chain's weight not below 0, and one of these orders; rows with equal values throughout are tied.
//
// *Bound.* Let g be the gains of a block in the order of its chain, from the top, tied rows with their mean: their
// contribution is at most that, as weights a of places fall towards the bottom and ties count as lost or by their mean.
// Pool neighbours with rising means until the means fall (as in isotonic regression), and let h be the pooled gains.
// Every first so many of h have at least the sum of as many of g, and the places p_1 < p_2 < ... of the rows have
// a[p_1] >= a[p_2] >= ..., so that the sum of a[p_i] h_i is at least that of a[p_i] g_i. Of all orders of all rows with
// the gains h, the one in which h falls has the largest sum. It is the bound, and that of the support is the larger one
// of both signs. A weight of 0 ties the whole block, with a mean that pooling does not lower.
#include "functions.h"
#include "pools.h"

namespace ltr {
namespace {

constexpr std::int64_t kBlocks = 4096;  // most blocks; a support with more has no bound

// A table, the statistic and the memory for bounds of supports.
struct Table {
  Matrix<const std::int32_t> place, ascending;  // these as in `functions.h`
  std::span<const std::int64_t> values;
  std::span<const double> gains, sums;
  std::vector<std::int32_t> block;  // of each row
  BlockBound bound;
};

// Return the bound for one sign of the chain's weight.
double bound_of(Table& table, std::size_t chain, std::size_t blocks, bool descending) {
  const std::size_t n = table.gains.size();
  table.bound.clear(blocks);
  for (std::size_t at = 0; at < n; ++at) {
    const std::size_t row = index(table.ascending(chain, descending ? n - 1 - at : at));
    table.bound.add(index(table.block[row]), table.gains[row], table.place(chain, row));
  }
  return table.bound.value(table.sums.data());
}

// Return the bound of a support, infinity where its columns have too many values.
double bound_of_support(Table& table, std::span<const std::int64_t> columns) {
  const auto value_count = [&](std::int64_t j) { return table.values[index(j)]; };
  const std::int64_t chain = *std::max_element(
      columns.begin(), columns.end(), [&](std::int64_t a, std::int64_t b) { return value_count(a) < value_count(b); });
  std::int64_t blocks = 1;
  std::fill(table.block.begin(), table.block.end(), 0);
  for (const std::int64_t j : columns) {
    if (j == chain) continue;
    if (blocks * value_count(j) > kBlocks) return INFINITY;
    const auto column = table.place[index(j)];
    for (std::size_t row = 0; row < column.size(); ++row) {
      table.block[row] += static_cast<std::int32_t>(blocks) * column[row];
    }
    blocks *= value_count(j);
  }
  const auto at = index(chain), number = index(blocks);
  return std::max(bound_of(table, at, number, false), bound_of(table, at, number, true));
}

}  // namespace

void bound_supports(Matrix<const std::int32_t> place, Matrix<const std::int32_t> ascending,
                    std::span<const std::int64_t> values, std::span<const double> gains, std::span<const double> sums,
                    Matrix<const std::int64_t> supports, std::span<double> bounds) {
  const std::size_t d = place.rows, n = place.columns;
  require(ascending.rows == d && ascending.columns == n && values.size() == d, "one entry per value");
  require(gains.size() == n && sums.size() == n + 1, "one gain per row");
  require(bounds.size() == supports.rows && supports.columns > 0, "one bound per support");
  for (std::size_t j = 0; j < d; ++j) require_places(place[j], index(std::max<std::int64_t>(values[j], 0)), "values");
  require_places(ascending.all(), n, "rows");
  require_places(supports.all(), d, "columns of supports");
  Table table{place, ascending, values, gains, sums, std::vector<std::int32_t>(n), {}};
  for (std::size_t s = 0; s < supports.rows; ++s) bounds[s] = bound_of_support(table, supports[s]);
}

}  // namespace ltr
