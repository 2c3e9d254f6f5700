// What closes a box beyond its own bound: unit losses, conflicts and the hinge bound; and candidates.
//
// **Unit losses.** In a box with bound B and a target T, a point with a value above T loses open pairs whose losses add
// up to less than the *required loss* ``required = B - T``. Raising the count of a member of a level from m to m + 1
// moves the place ``p = fewer[m + 1] - 1``, so it loses
// ``contribution[p + m] - contribution[p + m + 1] >= step[p + m]``, where `step` does not increase. Raise the members
// one after the other: those raised before have only made `fewer` smaller, so every single step loses at least the
// `step` it would have lost alone, and all together at least the sum over members of
//
//     loss_i(x) = sum over m = c_i .. c_i + x - 1 of  step[fewer[m + 1] - 1 + m],      x = pairs that i loses.
//
// As `step` is nonincreasing, loss_i(x) / x is too. Let X be the largest x, among the open pairs of i, at which
// loss_i(x) < required. A point with a value above T has x <= X, hence ``loss_i(x) >= u_i x`` with the *unit loss*
// ``u_i = loss_i(X) / X``. The pairs of a member with X = 0 are *forced*: all its open pairs have to be won. So they
// are where i alone, with one more pair lost, loses the required loss, which `contribution` says without `step`.
//
// **Conflicts.** Of two pairs in conflict (`ltr.exact.weight_space.space`) one is lost at every point of the box. With
// z_q = 1 where pair q is lost and u_q its unit loss, a point with a value above the target loses
//
//     sum of u_q z_q >= sum over conflicts of y  +  sum of (u_q - sum of y over the conflicts of q) z_q
//
// for all y >= 0 that take no more from a pair than its unit loss, since z_q + z_q' >= 1: a packing of the unit losses
// into the conflicts. (The largest packing is the dual of the linear program of the cheapest cover of the conflicts; a
// greedy one will do.) What is left of the unit losses goes into the hinge bound.
//
// *Budgets.* Conflicts without a pair of member i lose at least ``packed - touched_i``, so i itself loses less than
// ``required - packed + touched_i`` at a point with a value above the target. This *budget* takes the place of the
// required loss in the unit loss of i, which it raises, as the first pairs lost lose most; and with it the packing.
//
// **The hinge bound.** An open pair with lower interval bound l < 0 is lost at x only where ``max(0, -x.e) / -l`` is
// above 0, and that is at most 1. So for every point x of the box with a value above T, and with
// ``s_q = u_member(q) / -l_q``,
//
//     required > sum of u_member(q) [q lost at x] >= h(x) = sum over q of s_q max(0, -x.e_q).
//
// h is convex. For any x', with g = sum of s_q e_q over the pairs with x'.e_q < 0, ``h(x) >= -g.x`` for all x, so
//
//     min of h over the box >= phi = - max over the box of g.x,
//
// and the same holds for averages of such g. A box with phi >= required has no value above T and is closed.
// Otherwise points with a value above T satisfy ``g.x > -required``, which caps the width of the box in coordinate j at
// ``(max g.x + required) / |g_j|``. The descent on h is a projected subgradient method with Polyak's step towards the
// required loss; it gives up at a point with h < required, for then no g closes the box.
//
// **Demands.** Each demand is an objective like the first, with a required loss of its own: what its bound exceeds the
// last value by that misses it. A box is closed when one of them is lost enough, and whatever holds at points with a
// value above the target that meet all demands holds for each objective: its forced pairs are won, it loses less than
// its budget. So at such points every objective o has ``h_o(x) < needed_o``, and the hinge bound is that of
//
//     h(x) = max over o of  h_o(x) / needed_o  <  1.
//
// Its g at x' is that of the objective with the largest term there. Averages of them mix the objectives, as multipliers
// of a Lagrangian do: so boxes are closed in which either is possible, but not both.
//
// *Opposites.* Two objectives often compare the same two observations in opposite ways, or nearly so. Where such pairs
// are in conflict and one is forced, the other is lost at every point that matters, and counts as lost from there on.
// Without that, a box around the plane between them would have to shrink to the size of the margin.
//
// *Rounding.* g and its terms are floats; with A the sum of the s_q in g, ``A * error`` bounds the error of g.x over
// the box, whatever the order of the sum, and is taken off phi.
#pragma once

#include "boxes.h"

namespace ltr::weight_space {

enum class Outcome { kOpen, kClosed, kGaveUp };

// Set the unit loss of each member of a box, within its budget or, without budgets, the required loss of its
// objective; return how many members have forced pairs.
std::size_t compute_unit_losses(const Space& space, Workspace& work, const Box& box,
                                const std::int64_t* budget = nullptr);

// Write the unit loss of each open pair to `scale`.
void compute_pair_losses(Workspace& work, const Box& box);

// Divide the pair losses in `scale` by the pairs' lower interval bounds: the slopes s_q. Where there are demands, those
// of each objective are divided by its `Workspace::needed` too.
void compute_hinge_slopes(const Space& space, Workspace& work, const Box& box);

// Count the pairs as lost that are in conflict with a forced pair of another objective; return whether there are any.
// The forced pairs are those of the last `compute_unit_losses`.
bool lose_opposites(const Space& space, Workspace& work, Box& box);

// Write what is needed of each objective, besides what the conflicts of a box lose, to `Workspace::needed`; what is
// left of the pair losses stays in `scale`. Return whether one of the objectives needs nothing: the box is closed.
bool subtract_conflicts(const Space& space, Workspace& work, const Box& box);

struct HingeBound {
  Outcome outcome;
  double phi;  // the largest, -infinity for none; its g is in `Workspace::best`
};

// Try to close a box with the slopes in `scale`. Where there are demands, what is required is 1.
HingeBound hinge_bound(const Space& space, Workspace& work, Box& box, double required);

// Write the sum over open pairs of ``|e_j| / (upper - lower)`` for each coordinate to `Workspace::score`.
void branching_scores(const Space& space, Workspace& work, const Box& box);

// Return (a + 1)(b + 1) for the numbers a and b of pairs that the halves of coordinate j would lose.
double decided_by_half(Workspace& work, const Box& box, std::size_t j);

// Move the point of a box towards one that wins every open pair, or to 0 in coordinates where zeros count, and round it
// to whole numbers where coordinates are; it is in `Workspace::x`.
void descend(const Space& space, Workspace& work, const Box& box);

// Return the value at the point where `descend` ended, with doubtful pairs lost; `kNever` if it is not feasible.
std::int64_t candidate_value(const Space& space, Workspace& work, const Box& box);

}  // namespace ltr::weight_space
