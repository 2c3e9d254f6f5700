// The problem of a weight-space search as its kernels read it; `ltr.exact.weight_space.space` builds and explains it.
#pragma once

#include "../arrays.h"
#include "tuning.h"

namespace ltr::weight_space {

inline constexpr double kNarrow = 1e-13;  // width from which a coordinate is not split
inline constexpr double kWhole = 1e-6;    // difference from a whole number that rounding can explain
inline constexpr std::int64_t kNever = -(std::int64_t{1} << 62);  // below all values

// Pairs of observations: the first must be scored above the second, by a margin, for the pair to be won.
//
// The pair with column e is won at the point x where ``x.e >= 0``; columns are scaled to about 1.
struct Pairs {
  const double* columns = nullptr;  // one row per coordinate, the margin's last
  // the same in single precision without the margin's, one row per pair, with zeros up to a multiple of 8
  const float* single = nullptr;
  const double* slack = nullptr;         // rounding allowance of the products of each pair
  const std::int32_t* member = nullptr;  // the positive that each pair belongs to; its pairs follow each other
  std::size_t size = 0;
  std::size_t stride = 0;  // from one row of the columns to the next
  // where the pairs of each member begin, and where the last ones end; only for lists that are probed
  const std::int32_t* run = nullptr;
  std::size_t runs = 0;

  const double* column(std::size_t j) const { return columns + j * stride; }
};

// Candidates for conflicts, two pairs each: they cannot both be won at x where ``x.f < 0``.
struct Conflicts {
  const float* columns = nullptr;     // f of each candidate, one row per coordinate
  const std::int32_t* one = nullptr;  // positions of the two pairs
  const std::int32_t* other = nullptr;
  const float* apart = nullptr;  // number below which the computed ``max x.f`` proves a conflict
  std::size_t size = 0;

  const float* column(std::size_t j) const { return columns + j * size; }
};

// Where the numbers of a member begin: in `Tables::contribution`, and in the numbers of members with fewer lost pairs;
// and which objective it belongs to.
struct MemberTable {
  std::int64_t table, counts_at;
  std::size_t objective;
};

// Statistic tables, in integers: the value of an order is the sum of ``contribution[table + place + count]``.
//
// Objective 0 is the one that is maximised; its levels come first. The others are demands: each is a statistic of its
// own, in its own unit, whose value has to reach a least one.
struct Tables {
  std::span<const std::int64_t> level;  // of each member, ascending
  std::span<const std::int64_t> start;  // first member of each level, and the number of members
  std::span<const std::int64_t> most;   // largest count of a member of each level
  std::span<const std::int64_t> table;  // where the table of each level begins
  // where the numbers of members with fewer lost pairs of each level begin, -1 for a level of one member
  std::span<const std::int64_t> counts_at;
  std::span<const std::int64_t> contribution;
  std::span<const std::int64_t> step;  // the least that raising a count loses at an entry or before, nonincreasing
  std::size_t counts_size = 0;
  std::span<const std::int64_t> first_level;  // of each objective, and the number of levels
  std::span<const std::int64_t> least;        // least value of each demand
  std::vector<MemberTable> of_member;

  std::size_t levels() const { return table.size(); }
  std::size_t members() const { return level.size(); }
  std::size_t demands() const { return least.size(); }
  std::size_t objectives() const { return least.size() + 1; }
};

// A space and the arrays that it reads, which must not change but for `stop`.
struct Space {
  Kept kept;  // what owns the arrays
  Pairs pairs;
  std::vector<std::int32_t> run;  // of the pairs
  Conflicts conflicts;
  Tables tables;
  Matrix<const double> T;                // weights of the coordinates, w = T v
  std::vector<double> axes, axis_sizes;  // columns of T and their sizes, each padded with zeros to a multiple of 8
  Matrix<const double> A;                // side constraints A v <= b, for v are weights where there are any
  std::span<const double> b;             // their limits, with `loose` of |b| added
  std::span<const std::int64_t> price;   // of each weight; 0 for free columns
  std::int64_t support = 0;              // most non-zero weights, those of free columns included
  double loose = 0.0;                    // tolerance of side constraints, relative to their terms
  double error = 0.0;                    // rounding error of a sum over pairs, relative to the sum of its multipliers
  bool fixed = false;                    // whether the margin coordinate is known; else it is the norm of T v
  bool sparse = false;                   // whether zeros count, so that a split sets them apart
  bool integer = false;                  // whether coordinates are whole numbers, and so all sides of boxes
  Stop stop;

  std::size_t d() const { return T.columns; }                    // coordinates
  std::size_t columns() const { return T.columns + 1; }          // coordinates, with the margin's
  std::size_t single_size() const { return (d() + 7) / 8 * 8; }  // numbers of a pair in single precision
};

// Boxes of weight space, one per row.
struct Boxes {
  std::size_t columns = 0;
  std::vector<double> low, high;    // least and largest value of the coordinates and of the margin's
  std::vector<std::uint8_t> used;   // 1 where a weight is known not to be 0 or its column is free
  std::vector<std::int64_t> bound;  // upper bound of each box

  std::size_t size() const { return bound.size(); }
  void add(const double* from_low, const double* from_high, const std::uint8_t* from_used, std::int64_t from_bound) {
    low.insert(low.end(), from_low, from_low + columns);
    high.insert(high.end(), from_high, from_high + columns);
    used.insert(used.end(), from_used, from_used + columns);
    bound.push_back(from_bound);
  }
};

}  // namespace ltr::weight_space
