// The search of one thread, depth first over boxes, until every box is closed or the allowance is used up.
//
// `search` takes a box and
//   1. *prunes* it where its bound, from the pairs won and lost on all of it, is at most the target;
//   2. *tightens* it: to the side constraints, to where its forced pairs can be won (`boxes.h`), and by halves and
//      quarters that lose too much (`probing.h`);
//   3. *bounds* it: conflicts between open pairs and the hinge bound may close it (`bounds.h`);
//   4. now and then evaluates a *candidate* in it;
//   5. *branches*: along the coordinate both halves of which lose most. Where probing does not decide, it is the one
//      with the largest product of ``width_j * sum over open pairs of |e_j| / (upper - lower)``, which measures how
//      much a split narrows the pairs, and (a + 1)(b + 1) for the a and b pairs that its halves lose at once. Where
//      zeros count, a coordinate that may be 0 is split into its negative part, 0 and its positive part; the parts are
//      closed intervals, which can only raise their bounds, and are known to use the weight.
//
// Source: the bound is that of `ltr.exact.levels`; branch and bound over boxes is Land & Doig (1960) in this space.
#pragma once

#include "bounds.h"

namespace ltr::weight_space {

struct Roots {
  Matrix<const double> low, high;
  Matrix<const std::uint8_t> used;
  std::span<const std::int64_t> bound;
};

struct Limits {
  std::int64_t target;  // bound at which a box is closed, an integer in the space's unit
  std::int64_t
      allowance;       // work before the boxes that are left are handed back, in pairs examined, each of 8 coordinates
  std::size_t narrow;  // boxes too narrow to split after which the boxes that are left are handed back too
  bool trusted;        // whether every candidate is feasible, so that its value raises the target
};

struct Found {
  Boxes left, narrow;                 // boxes that are left, the deepest last, and those too narrow to split
  std::int64_t target;                // the largest used: a candidate raises it to its value
  std::int64_t value = kNever;        // of the best candidate
  std::vector<double> best;           // its coordinates
  std::int64_t boxes = 0, spent = 0;  // boxes looked at, pairs examined
};

// Search boxes for weights with a value above the target.
Found search(const Space& space, Workspace& work, const Roots& roots, const Limits& limits);

}  // namespace ltr::weight_space
