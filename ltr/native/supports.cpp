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
#include "bindings.h"
#include "module.h"
#include "pools.h"

namespace ltr {
namespace {

constexpr std::int64_t kBlocks = 4096;  // most blocks; a support with more has no bound

// A table, the statistic and the memory for bounds of supports.
struct Table {
  Matrix<const std::int32_t> place;      // number of each row's value among those of its column, (d, n)
  Matrix<const std::int32_t> ascending;  // rows by the values of each column, (d, n)
  std::span<const std::int64_t> values;  // different values of each column
  std::span<const double> gains;         // of the rows
  std::span<const double> sums;          // sums of the rank weights of the first so many places from the top
  std::vector<std::int32_t> block;       // of each row
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

void bound_supports(const Rows<std::int32_t>& place, const Rows<std::int32_t>& ascending,
                    const Vector<std::int64_t>& values, const Vector<double>& gains, const Vector<double>& sums,
                    const Rows<std::int64_t>& supports, const OutVector<double>& bounds) {
  const std::size_t d = place.shape(0), n = place.shape(1);
  require(ascending.shape(0) == d && ascending.shape(1) == n && values.shape(0) == d, "one entry per value");
  require(gains.shape(0) == n && sums.shape(0) == n + 1, "one gain per row");
  require(bounds.shape(0) == supports.shape(0) && supports.shape(1) > 0, "one bound per support");
  Table table{view(place), view(ascending), view(values), view(gains), view(sums), std::vector<std::int32_t>(n), {}};
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      require(table.place(j, i) >= 0 && table.place(j, i) < table.values[j], "places of values");
      require(table.ascending(j, i) >= 0 && index(table.ascending(j, i)) < n, "rows");
    }
  }
  const auto all = view(supports);
  for (std::size_t s = 0; s < all.rows; ++s) {
    for (const std::int64_t j : all[s]) require(j >= 0 && index(j) < d, "columns of supports");
  }
  const auto found = view(bounds);
  const nb::gil_scoped_release release;
  for (std::size_t s = 0; s < all.rows; ++s) found[s] = bound_of_support(table, all[s]);
}

}  // namespace

void bind_supports(nb::module_& module) {
  module.def("bound_supports", &bound_supports, nb::kw_only(), nb::arg("place"), nb::arg("ascending"),
             nb::arg("values"), nb::arg("gains"), nb::arg("sums"), nb::arg("supports"), nb::arg("bounds").noconvert(),
             "Write an upper bound of the sum of gains times rank weights, for any weights of the columns of each\n"
             "support; infinity where there is none.");
}

}  // namespace ltr
