// The boxes on a thread's stack, the interval bounds of their pairs, and bound tightening.
//
// The pair with column e has the interval bounds ``upper = max x.e`` and ``lower = min x.e`` over the points x of the
// box [low, high], widened by the pair's slack. It is lost where upper < 0, won where lower >= 0, else open. When one
// coordinate changes, both follow by one multiply-add each, and so do the counts of lost pairs and the bound. A box
// with few open pairs gets a list of its own, so that the loops run over contiguous arrays.
//
// *Bound tightening* reduces a box to where values above the target are possible: to the side constraints, to where
// its forced pairs can be won, and to what a hinge bound leaves.
//
// *Rounding.* Interval bounds are updated once for every change of the box. Each update errs by at most three
// half-units of ``2 |e|_1``; the slack of a pair, 1024 half-units of |e|_1, is added outwards at first and leaves room
// for `tuning::kUpdates` of them, at which they are computed afresh, and the few that come between two checks of their
// number.
#pragma once

#include "workspace.h"

namespace ltr::weight_space {

enum class Tightened { kNo, kYes, kEmpty };

// Put a box on the empty stack. Its bound is computed.
void push_root(const Space& space, Workspace& work, const double* low, const double* high, const std::uint8_t* used);

// Compute the interval bounds of all pairs over a box afresh.
void compute_interval_bounds(Workspace& work, Box& box);

// Give a box, on top of the stack, a list of its own if less than a share `dense` of the pairs in its list are open,
// and fresh interval bounds if it has had many updates.
void compact_open_pairs(const Space& space, Workspace& work, Box& box, double dense);

// Update the interval bounds of a box to its sides, find the open pairs that they decide now, and count them.
void update_decided(const Space& space, Workspace& work, Box& box);

// Tighten coordinate j of a box to [low, high], to whole numbers where coordinates are; if that excludes 0, add the
// weight's price, and if it leaves nothing, set the box's bound to `kNever`. The interval bounds are left to
// `update_decided`.
void tighten(const Space& space, Box& box, std::size_t j, double low, double high);

// Record that weight j is not 0 in a box.
void mark_used(const Space& space, Box& box, std::size_t j);

// Make `child`, above `top` on the stack, a copy of a box.
void copy_box(Workspace& work, const Box& box, const Box& top, Box& child, bool with_bounds);

// Halve a box along j: the lower half stays, the upper half becomes `child`, a copy of it. Count the pairs that each
// decides. Whole numbers are divided between the halves.
void halve(const Space& space, Workspace& work, Box& box, Box& child, std::size_t j);

// Return bounds of max|(Tv)_j| over a box, no wider than those it has.
std::pair<double, double> norm_interval(const Space& space, const Box& box);

// What the pairs of an objective lower as they are lost: the bound of a box, or its room for a demand.
inline std::int64_t& bound_of(Box& box, std::size_t objective) {
  return objective == 0 ? box.bound : box.room[objective - 1];
}

// Whether no weights of a box have a value above the target and meet all demands.
inline bool closed(const Tables& tables, const Box& box, std::int64_t target) {
  if (box.bound <= target) return true;
  for (std::size_t demand = 0; demand < tables.demands(); ++demand) {
    if (box.room[demand] <= 0) return true;
  }
  return false;
}

// Tighten a box to where its forced pairs can be won, if they can.
Tightened tighten_to_forced_pairs(const Space& space, Workspace& work, Box& box);

// Tighten a box to where ``g.x > max g.x - room``; return whether that helped.
bool tighten_to_hinge_bound(const Space& space, Box& box, const double* g, double room);

// Tighten a box to the side constraints; return whether some of it satisfies them.
bool tighten_to_constraints(const Space& space, Box& box);

// Count more lost pairs of a member; return the change of the value, which is at most 0.
inline std::int64_t raise_count(const Tables& tables, std::int32_t* counts, std::int32_t* fewer, std::size_t member,
                                std::int32_t lost) {
  const auto [table, counts_at, objective] = tables.of_member[member];
  const std::int64_t* contribution = tables.contribution.data() + table + counts[member];
  std::int32_t* below = fewer + counts_at + counts[member];
  counts[member] += lost;
  if (counts_at < 0) return contribution[lost] - contribution[0];
  std::int64_t change = 0;
  for (std::int32_t x = 0; x < lost; ++x) {
    const std::int64_t* here = contribution + --below[x + 1] + x;
    change += here[1] - here[0];
  }
  return change;
}

// Fill `path` for a level of several members: raising one of them from a count c to m loses at least
// ``path[m] - path[c]``.
inline void fill_level_path(const Tables& tables, const Box& box, std::size_t level, std::int64_t* path) {
  const std::int32_t* fewer = box.fewer + tables.counts_at[level];
  const std::int64_t* step = tables.step.data() + tables.table[level];
  std::int64_t total = 0;
  path[0] = 0;
  for (std::int64_t m = 0; m < tables.most[level]; ++m) {
    const std::int64_t place = fewer[m + 1] - 1;
    if (place >= 0) total += step[place + m];
    path[m + 1] = total;
  }
}

// Fill `path` with what the one member of a level loses from a count on with 0, 1, ..., `most` more lost pairs.
inline void fill_member_path(const Tables& tables, std::size_t level, std::int64_t count, std::int64_t most,
                             std::int64_t* path) {
  const std::int64_t* contribution = tables.contribution.data() + tables.table[level] + count;
  for (std::int64_t x = 0; x <= most; ++x) path[x] = contribution[0] - contribution[x];
}

// Return the term that y = A_rj w_j adds to its side constraint (`ltr.exact.weight_space.space`); nondecreasing in y.
inline double side_term(const Space& space, double y) { return y - space.loose * (y < 0.0 ? -y : y); }

}  // namespace ltr::weight_space
