// Probing: what the halves and quarters of a box lose.
//
// A *part* is the upper or lower half or quarter of the box along one coordinate. Let x_i be the open pairs of member i
// that are lost on all of a part. On the part, i loses at least ``c_i + x_i`` pairs, c_i its count on the box. With N_m
// the members of a level whose counts are at most m, on the box, and N'_m those with ``c_i + x_i <= m``, the level
// loses at least
//
//     sum over m of (contribution[N'_m + m] - contribution[N_m + m])
//
// for the value falls by ``contribution[N + m] - contribution[N + m + 1]`` when a count rises from m to m + 1 and
// leaves N members at m or below (`boxes.h`), so that the terms of one m telescope, and as the sum only depends on the
// counts in the end, any order of the raises gives it. This is the bound of the part as a box of its own. Long lists,
// on which members lose pairs together, need it. On shorter ones and in levels of large counts a weaker sum takes less
// time: as for unit losses (`bounds.h`), members raised one after the other lose at least
//
//     sum over i of  loss_i(x_i),      loss_i(x) = sum over m = c_i .. c_i + x - 1 of  step[fewer[m + 1] - 1 + m].
//
// A part that loses the box's bound minus the target, or more, has no value above the target and is cut off. If no half
// of any coordinate can be cut off, the box is best split where both halves lose much.
//
// *Counting.* A pair with upper interval bound u over the box has the upper bound ``u - h |e_j|`` in the half of
// coordinate j that is the worse one for it, h half the width, and ``u - 1.5 h |e_j|`` in the worse quarter. The sign
// of e_j says which half that is. So each pair and coordinate takes one product and four comparisons, in single
// precision, for eight or sixteen coordinates at once.
//
// *Rounding.* u is between 0 and ``2 R``, R half the pair's range over the box, and ``h |e_j| <= R``. Rounding u, h,
// e_j, their product and u / 1.5 to single precision errs by at most ``12 * 2^-24 R``; `kRoom` times the range
// ``2 R`` is added to u. A power of two brings e to a size of about 1 first, and pairs whose range is too small for
// single precision are taken as not lost. The error of rounding the middle of a coordinate is in the slack of u.
#pragma once

#include "boxes.h"

namespace ltr::weight_space {

inline constexpr std::size_t kParts = 4;  // upper half, lower half, upper quarter, lower quarter

struct Probed {
  Tightened tightened;
  int coordinate;  // to split, -1 if no half loses anything
  double promise;  // share of the required loss that its halves lose on average
};

// Cut off the parts of a box on which an objective loses its `Workspace::required`.
Probed probe(const Space& space, Workspace& work, Box& box);

}  // namespace ltr::weight_space
