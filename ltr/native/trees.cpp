// Scores of rows by a sum of decision trees, in the order of the trees, so that they are those of the model to the last
// digit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "arrays.h"
#include "module.h"

namespace ltr {
namespace {

constexpr std::size_t kBlock = 64;  // rows that visit a tree one after the other, while it is in the cache

struct Node {
  double number;  // the threshold, or the value of a leaf
  std::int32_t feature, left, right;
  bool missing_left;
};

// Nodes in one array of structures. A node follows its parent, so that every path ends.
std::vector<Node> packed(std::span<const std::int64_t> feature, std::span<const double> threshold,
                         std::span<const std::uint8_t> missing_left, std::span<const std::int64_t> left,
                         std::span<const std::int64_t> right, std::span<const double> value, std::size_t columns) {
  const auto nodes = static_cast<std::int64_t>(feature.size());
  if (nodes >= INT32_MAX) throw std::invalid_argument("trees must have fewer than 2^31 nodes");
  std::vector<Node> found(feature.size());
  for (std::int64_t at = 0; at < nodes; ++at) {
    const auto i = static_cast<std::size_t>(at);
    if (feature[i] < 0) {
      found[i] = {value[i], -1, 0, 0, false};
      continue;
    }
    if (feature[i] >= static_cast<std::int64_t>(columns)) {
      throw std::invalid_argument("trees must split by features that there are");
    }
    for (const std::int64_t child : {left[i], right[i]}) {
      if (child <= at || child >= nodes) throw std::invalid_argument("nodes of trees must come after their parents");
    }
    found[i] = {threshold[i], static_cast<std::int32_t>(feature[i]), static_cast<std::int32_t>(left[i]),
                static_cast<std::int32_t>(right[i]), missing_left[i] != 0};
  }
  return found;
}

double leaf_value(const std::vector<Node>& nodes, std::size_t at, std::span<const double> row) {
  while (nodes[at].feature >= 0) {
    const Node& node = nodes[at];
    const double x = row[static_cast<std::size_t>(node.feature)];
    at = static_cast<std::size_t>(x <= node.number || (node.missing_left && std::isnan(x)) ? node.left : node.right);
  }
  return nodes[at].number;
}

template <class Sum>
void add_up(const std::vector<Node>& nodes, std::span<const std::int64_t> roots, Sum start, Matrix<const double> rows,
            std::span<double> scores) {
  for (std::size_t from = 0; from < rows.rows; from += kBlock) {
    const std::size_t to = std::min(from + kBlock, rows.rows);
    Sum sums[kBlock];
    std::fill_n(sums, kBlock, start);
    for (const std::int64_t root : roots) {
      for (std::size_t row = from; row < to; ++row) {
        sums[row - from] += static_cast<Sum>(leaf_value(nodes, static_cast<std::size_t>(root), rows[row]));
      }
    }
    for (std::size_t row = from; row < to; ++row) scores[row] = static_cast<double>(sums[row - from]);
  }
}

}  // namespace

void bind_trees(nb::module_& module) {
  module.def(
      "tree_scores",
      [](Rows<double> rows, Vector<std::int64_t> feature, Vector<double> threshold, Vector<std::uint8_t> missing_left,
         Vector<std::int64_t> left, Vector<std::int64_t> right, Vector<double> value, Vector<std::int64_t> roots,
         double start, bool single, OutVector<double> scores) {
        const std::size_t n = feature.shape(0);
        for (const std::size_t size :
             {threshold.shape(0), missing_left.shape(0), left.shape(0), right.shape(0), value.shape(0)}) {
          if (size != n) throw std::invalid_argument("arrays of trees must have one entry for each node");
        }
        require(scores.shape(0) == rows.shape(0), "one score a row");
        for (const std::int64_t root : view(roots)) {
          if (root < 0 || root >= static_cast<std::int64_t>(n)) {
            throw std::invalid_argument("roots of trees must be nodes");
          }
        }
        nb::gil_scoped_release released;
        const std::vector<Node> nodes = packed(view(feature), view(threshold), view(missing_left), view(left),
                                               view(right), view(value), rows.shape(1));
        if (single) {
          add_up(nodes, view(roots), static_cast<float>(start), view(rows), view(scores));
        } else {
          add_up(nodes, view(roots), start, view(rows), view(scores));
        }
      },
      nb::arg("rows"), nb::arg("feature"), nb::arg("threshold"), nb::arg("missing_left"), nb::arg("left"),
      nb::arg("right"), nb::arg("value"), nb::arg("roots"), nb::arg("start"), nb::arg("single"),
      nb::arg("scores").noconvert(),
      "Write the sums of the leaf values of each row, over the trees in their order, in single or double precision.\n"
      "A row goes left where its feature is at most the threshold, or is missing and `missing_left` is set; a node\n"
      "with feature -1 is a leaf.");
}

}  // namespace ltr
