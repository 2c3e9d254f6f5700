// Scores of rows by a sum of decision trees, in the order of the trees, so that they are those of the model to the last
// digit.
#pragma once

#include <array>
#include <stdexcept>

#include "arrays.h"

namespace ltr {

// Decision trees in one array of nodes. A row goes left where its feature is at most the threshold, or is missing and
// `missing_left` is set; a node with feature -1 is a leaf. Nodes come after their parents.
class Trees {
 public:
  Trees(std::span<const std::int32_t> feature, std::span<const double> threshold,
        std::span<const std::uint8_t> missing_left, std::span<const std::int32_t> left,
        std::span<const std::int32_t> right, std::span<const double> value, std::span<const std::int32_t> roots,
        std::size_t columns)
      : columns_(columns), nodes_(feature.size()), roots_(roots.begin(), roots.end()) {
    const auto check = [](bool holds, const char* rule) {
      if (!holds) throw std::invalid_argument(rule);
    };
    check(feature.size() < INT32_MAX, "trees must have fewer than 2^31 nodes");
    for (const std::size_t size : {threshold.size(), missing_left.size(), left.size(), right.size(), value.size()}) {
      check(size == feature.size(), "arrays of trees must have one entry for each node");
    }
    const auto nodes = static_cast<std::int32_t>(feature.size());
    for (std::int32_t at = 0; at < nodes; ++at) {
      const auto i = index(at);
      if (feature[i] < 0) {
        nodes_[i] = {value[i], 0, {at, at}, false};
        continue;
      }
      check(index(feature[i]) < columns, "trees must split by features that there are");
      for (const std::int32_t child : {left[i], right[i]}) {  // so that every path ends
        check(at < child && child < nodes, "nodes of trees must come after their parents");
      }
      nodes_[i] = {threshold[i], feature[i], {left[i], right[i]}, missing_left[i] != 0};
    }
    for (const std::int32_t root : roots_) check(0 <= root && root < nodes, "roots of trees must be nodes");
  }

  // Write the sums of the leaf values of each row, over the trees in their order, in single or double precision.
  void add_up(Matrix<const double> rows, double start, bool single, std::span<double> sums) const {
    require(rows.columns == columns_, "rows have the columns of the trees");
    require(sums.size() == rows.rows, "one sum a row");
    if (single) {
      add_up_in(rows, static_cast<float>(start), sums);
    } else {
      add_up_in(rows, start, sums);
    }
  }

 private:
  static constexpr std::size_t kBlock = 1024;  // rows that visit a tree one after the other, while it is in the cache
  static constexpr std::size_t kPaths = 8;  // that are walked at the same time, so that their memory accesses overlap

  struct Node {
    double number;  // the threshold, or the value of a leaf
    std::int32_t feature;
    std::array<std::int32_t, 2> next;  // where rows go that are at most the threshold, and others; a leaf's is itself
    bool missing_left;
  };
  struct Path {
    std::int32_t at;
    const double* row;
  };
  using Paths = std::array<Path, kPaths>;

  template <class Sum>
  void add_up_in(Matrix<const double> rows, Sum start, std::span<double> scores) const {
    std::vector<Sum> sums(std::min(rows.rows, kBlock));
    for (std::size_t from = 0; from < rows.rows; from += kBlock) {
      const std::size_t size = std::min(kBlock, rows.rows - from);
      std::fill_n(sums.begin(), size, start);
      const std::size_t together = size - size % kPaths;
      for (const std::int32_t root : roots_) {  // one tree, several rows at a time
        for (std::size_t row = 0; row < together; row += kPaths) {
          Paths paths;
          for (std::size_t k = 0; k < kPaths; ++k) paths[k] = {root, rows[from + row + k].data()};
          walk(paths);
          for (std::size_t k = 0; k < kPaths; ++k) sums[row + k] += static_cast<Sum>(value(paths[k]));
        }
      }
      for (std::size_t row = together; row < size; ++row) {  // one row, several trees at a time
        const double* x = rows[from + row].data();
        for (std::size_t tree = 0; tree < roots_.size(); tree += kPaths) {
          const std::size_t trees = std::min(kPaths, roots_.size() - tree);
          Paths paths;
          for (std::size_t k = 0; k < kPaths; ++k) paths[k] = {roots_[tree + std::min(k, trees - 1)], x};
          walk(paths);
          for (std::size_t k = 0; k < trees; ++k) sums[row] += static_cast<Sum>(value(paths[k]));
        }
      }
      std::copy_n(sums.begin(), size, scores.begin() + from);
    }
  }

  // Go from nodes to their leaves. No step is a branch: processors could not predict it.
  void walk(Paths& paths) const {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& [at, row] : paths) {
        const Node& node = nodes_[index(at)];
        const double x = row[node.feature];
        const bool left = (x <= node.number) | (node.missing_left & std::isnan(x));
        const std::int32_t next = node.next[left ? 0 : 1];
        moved |= next != at;
        at = next;
      }
    }
  }

  double value(const Path& path) const { return nodes_[index(path.at)].number; }

  std::size_t columns_;
  std::vector<Node> nodes_;
  std::vector<std::int32_t> roots_;
};

}  // namespace ltr
