"""Certified optima of the convex losses for a linear scorer.

The objective is the one that training minimises, with the features as given:

    loss(X w + b, y) + l2/2 ||w||^2,      labels 0 and 1, the loss with ``pairs="mean"``,

where b is 0 except for the pointwise logistic loss, whose bias is free and not penalised. Any optimum comes with a
lower bound from duality (`ltr.convex.newton`), so that no solver needs to be trusted: Newton's method, and Clarabel for
the hinge, only propose weights.

The hinge's optimum is a quadratic program (a linear one without a penalty). Newton's method on smoothed hinges of
falling width finds the pairs near the kink at 1. All others stay on their side of it and enter as a linear term.
Features are centred (if a bias or a difference absorbs it) and scaled to unit standard deviation.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ltr.checks import check_number, doubles
from ltr.convex.newton import FloatArray, Objective, Pairs, floor, minimise
from ltr.data.dataset import check_ranges, checked_features, checked_labels
from ltr.losses import LogisticLoss, PNormPushLoss, RankingLoss, parse_loss
from ltr.losses.functions import HINGE, PairFunction, SmoothedHinge

PAIR_LIMIT = 4_000_000
"""Largest number of positive-negative pairs: matrices of that size are kept in memory."""

ITEM_LIMIT = 6_000
"""Largest number of observations for a pairwise loss, which forms all differences of scores."""
KINK_LIMIT = 40_000
"""Largest number of pairs near the kink of the hinge in the program."""
RADIUS = 100.0
"""Bounds without a penalty are valid for coordinates up to this many times max(1, the largest of the optimum)."""
_TOLERANCES = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}


@dataclass(frozen=True)
class ConvexOptimum:
    """The optimum of a convex loss, with its proof.

    Attributes:
        weights: float64 of shape (d,), for the features as given; one of the minimisers if there are several.
        bias: 0 except for the logistic loss.
        value: the objective at these weights, computed by the loss of `ltr.losses` in float64.
        lower_bound: no weights have a smaller objective. The bound accounts for rounding; coordinates without a
            penalty are covered up to a size of 100 times max(1, the largest of the optimum), features scaled to
            unit standard deviation.
        method: ``"newton"``, or ``"newton+clarabel"`` for the hinge.
    """

    weights: FloatArray
    bias: float
    value: float
    lower_bound: float
    method: str

    @property
    def gap(self) -> float:
        """(value - lower_bound) / value, 0 if they agree."""
        return 0.0 if self.value <= self.lower_bound else (self.value - self.lower_bound) / self.value


def certified_optimum(
    loss: str | RankingLoss, X: ArrayLike, y: ArrayLike, *, l2: float = 0.0, bias: bool = True
) -> ConvexOptimum:
    """Find the smallest ``loss(X w + b, y) + l2/2 ||w||^2``, and a lower bound that proves it.

    Args:
        loss: a loss of `ltr.losses` or its name, with ``pairs="mean"``; also one of your own whose pair function has a
            conjugate.
        X: observations, (n, d), under the rules of `ltr.data.Dataset`.
        y: labels, (n,), 0 or 1, both present.
        l2: price of the squared weights, >= 0.
        bias: whether the logistic loss has one; pairwise losses do not depend on it.

    Raises ValueError for an argument that breaks its rule; for pairwise losses more observations than `ITEM_LIMIT`,
    more pairs than `PAIR_LIMIT`, or more than `KINK_LIMIT` of them near the hinge's kink; and for data that a linear
    function separates where l2 is 0 and the loss, therefore, has an infimum that no weights attain.

    Examples:
        >>> best = certified_optimum("ranknet", [[0.0], [1.0], [2.0]], [0, 1, 0], l2=0.1)  # log 2 at w = 0
        >>> round(best.value, 6), best.value - best.lower_bound < 1e-12
        (0.693147, True)
    """
    module, function, p = _checked_loss(loss)
    features = doubles(checked_features(X))
    check_ranges(features)
    positive = checked_labels(y, len(features)) == 1
    check_number("l2", l2)
    pointwise = isinstance(module, LogisticLoss)
    pairs = int(positive.sum()) * int((~positive).sum())
    if not pointwise and (positive.size > ITEM_LIMIT or pairs > PAIR_LIMIT):
        limits = f"the limits for {module.name} are {ITEM_LIMIT} and {PAIR_LIMIT}"
        raise ValueError(f"X has {positive.size} observations and {pairs} positive-negative pairs; {limits}")

    # a shift of all scores changes no difference, and a bias absorbs it; without one the features stay where they are
    scaled, shift, scale = _scaled(features, centred=bias or not pointwise)
    penalty = l2 / scale**2
    if pointwise:
        rows = np.hstack([scaled, np.ones((len(scaled), 1))]) if bias else scaled
        design = Pairs(np.where(positive, 1.0, -1.0)[:, None] * rows, np.zeros((1, rows.shape[1])))
        penalty = np.append(penalty, 0.0) if bias else penalty
    else:
        design = Pairs(scaled[positive], scaled[~positive])
    if l2 == 0 and function.zero_from == math.inf and _recedes(design, penalty.size):
        raise ValueError(
            f"{module.name} has no minimiser: a linear function separates the labels, and with l2=0 the loss falls "
            "towards its infimum as the weights grow; use l2 > 0"
        )
    objective = Objective(design, function, penalty, p)
    if function is HINGE and p == 1:
        w, lower, method = _hinge_optimum(design, penalty)
    else:
        w = minimise(objective, np.zeros(penalty.size))
        if function.zero_from < math.inf and objective.value(longer := w * (1 + 1e-9)) == 0:
            w = longer  # rounding left some differences just short of the point where the function becomes 0
        lower, method = objective.lower_bound(w, _radius_of(w)), "newton"

    slopes = w[: features.shape[1]]
    weights = slopes / scale
    level = float(w[-1]) if pointwise and bias else 0.0
    scores = torch.from_numpy(scaled @ slopes + level)
    value = float(module(scores, torch.from_numpy(positive))) + 0.5 * l2 * float(weights @ weights)
    if not math.isclose(value, objective.value(w), rel_tol=1e-6, abs_tol=1e-9):
        raise ValueError(
            f"loss: {module.name} is not the mean of its pair function, so no convex optimum is known for it: it is "
            f"{value:g} where the pair function gives {objective.value(w):g}"
        )
    offset = level - float(weights @ shift) if pointwise and bias else 0.0
    return ConvexOptimum(weights, offset, value, min(max(lower, 0.0), value), method)


def _checked_loss(loss: str | RankingLoss) -> tuple[RankingLoss, PairFunction, float]:
    """Return the loss, its pair function φ, and the power p."""
    module = parse_loss(loss)
    function = getattr(module, "function", None)
    if not (module.convex and isinstance(function, PairFunction) and function.has("conjugate")):
        needed = "that takes a convex loss whose pair function has a conjugate"
        raise ValueError(f"loss: no convex optimum is known for {module.name}; {needed}")
    if (module.reduction, module.pairs) != ("mean", "mean"):
        raise ValueError(f"loss must have reduction and pairs 'mean', got {module.name}")
    return module, function, module.p if isinstance(module, PNormPushLoss) else 1.0


def _scaled(features: FloatArray, *, centred: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return ``(features - shift) / scale``, shift and scale; a constant column becomes 0 (1 where not centred)."""
    shift = features.mean(axis=0) if centred else np.zeros(features.shape[1])
    scale = features.std(axis=0)
    size = np.abs(features).max(axis=0)
    # the computed deviation of a constant column may be a rounding error; differences of close numbers are exact
    constant = np.ptp(features, axis=0) == 0 if centred else scale <= 1e-12 * size
    scale = np.where(constant, np.where(size > 0, size, 1.0), scale)
    scaled = (features - shift) / scale
    if centred:
        scaled[:, constant] = 0.0
    return scaled, shift, scale


def _hinge_optimum(pairs: Pairs, penalty: FloatArray) -> tuple[FloatArray, float, str]:
    """Return the weights with the smallest mean hinge loss plus penalty, a lower bound, and what found them."""
    hinge = Objective(pairs, HINGE, penalty)
    w = np.zeros(penalty.size)
    for width in (1.0, 0.1, 0.01, 0.001):
        w = minimise(Objective(pairs, SmoothedHinge(width), penalty), w, steps=50)
        if hinge.value(w) == 0:
            return w, 0.0, "newton"
    best, lower, guess = w, -math.inf, hinge.value(w)
    slack = 1 - pairs.differences(w)
    # the kinks of the optimum lie near those of the smoothed one; the certificate shows when that is not so
    for reach in (0.03, 0.1, 0.3, 1.0, math.inf):
        near = np.abs(slack) <= reach
        if near.sum() > KINK_LIMIT and lower > -math.inf:
            break
        if near.sum() > KINK_LIMIT:
            what = f"{int(near.sum())} pairs within {reach:g} of the kink, the limit is {KINK_LIMIT}"
            raise ValueError(f"hinge: {what}; use a larger l2 or fewer observations")
        if not near.any() or (found := _kink_optimum(pairs, penalty, near, slack > 0, guess)) is None:
            continue
        candidates, bound = found
        lower = max(lower, bound)
        best = min([best, *candidates], key=lambda v: hinge.value(v))
        if hinge.value(best) - lower <= 1e-9 * hinge.value(best):
            break
    return best, lower, "newton+clarabel"


def _kink_optimum(
    pairs: Pairs, penalty: FloatArray, near: NDArray[np.bool_], positive_side: NDArray[np.bool_], guess: float
) -> tuple[list[FloatArray], float] | None:
    """Return the hinge's optimum, and its bound, if all pairs but those `near` stay on their side of the kink.

    With N pairs, of which those of L lie on the linear side for good, and distinct differences δ_m, c_m times each,

        minimise    sum_m c_m ξ_m + sum over L of (1 - δ·w) + N/2 sum_j r_j w_j^2      over w, ξ >= 0
        subject to  ξ_m >= 1 - δ_m·w,      with multipliers  0 <= a_m <= c_m.

    Any such a proves ``N F(w) >= |L| + sum a - (sum over L of δ + sum a δ)·w + N/2 sum_j r_j w_j^2`` for all w.
    """
    total = near.size
    linear = positive_side & ~near
    pull = pairs.columns(linear.astype(np.float64)).sum(axis=0)
    pull_size = pairs.sizes(linear.astype(np.float64)).sum(axis=0)
    i, k = np.nonzero(near)
    rows, count = np.unique(pairs.positive[i] - pairs.negative[k], axis=0, return_counts=True)
    w, slack = cp.Variable(penalty.size), cp.Variable(len(rows), nonneg=True)
    above = slack >= 1 - rows @ w
    objective = count @ slack - pull @ w + 0.5 * total * penalty @ cp.square(w)
    # near 1, the solver's absolute tolerances are also relative ones
    unit = 1 / (total * guess)
    weights = _solve_program(cp.Problem(cp.Minimize(unit * objective), [above]), w)
    if weights is None or above.dual_value is None:
        return None
    if not penalty.any():  # the shortest of equally good weights: those without a part that changes no score
        values, vectors = np.linalg.eigh(pairs.gram(np.ones(near.shape)))
        active = vectors[:, values > 1e-13 * values[-1]]
        weights = active @ (active.T @ weights)
    a = np.clip(above.dual_value / unit, 0.0, count)
    # pairs with a multiplier strictly inside are exactly at the kink: d or fewer equations that w should satisfy
    inside = np.minimum(a, count - a)
    kink = inside > 1e-7 * np.minimum(count, a.max())
    polished = weights + np.linalg.lstsq(rows[kink], 1 - rows[kink] @ weights, rcond=None)[0]
    # and multipliers that balance the forces on w exactly
    missing = total * penalty * polished - pull - rows.T @ a
    lever = np.where(kink, inside, 0.0)[:, None] * rows
    balanced = np.clip(a + lever @ np.linalg.lstsq(rows.T @ lever, missing, rcond=None)[0], 0.0, count)

    def bound(multipliers: FloatArray) -> float:
        constant = float(linear.sum() + multipliers.sum()) / total
        q, size = -(pull + rows.T @ multipliers) / total, (pull_size + np.abs(rows).T @ multipliers) / total
        return floor(constant, constant, q, size, penalty, _radius_of(polished))

    return [weights, polished], max(bound(a), bound(balanced))


def _recedes(pairs: Pairs, d: int) -> bool:
    """Return whether a direction u has ``δ·u >= 0`` for all rows and > 0 for one: along it the loss falls forever."""
    # all pairs are in order if one threshold separates the classes
    u, threshold = cp.Variable(d), cp.Variable()
    within = [u <= 1, u >= -1, pairs.positive @ u >= threshold, pairs.negative @ u <= threshold]
    gain = cp.sum((pairs.positive.mean(axis=0) - pairs.negative.mean(axis=0)) @ u)
    return _solve_program(cp.Problem(cp.Maximize(gain), within), u) is not None and float(gain.value) > 1e-6


def _radius_of(w: FloatArray) -> float:
    """Return the size of coordinates up to which a bound without a penalty is valid."""
    return RADIUS * max(1.0, float(np.abs(w).max(initial=0.0)))


def _solve_program(problem: cp.Problem, variable: cp.Variable) -> FloatArray | None:
    """Return Clarabel's value of the variable, however accurate; None if it finds none."""
    with warnings.catch_warnings():
        # an inaccurate solution is good enough as a start, since the certificate does not depend on it
        warnings.simplefilter("ignore")
        try:
            problem.solve(solver=cp.CLARABEL, **_TOLERANCES)
        except cp.SolverError:
            return None
    if problem.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        return None
    value = np.asarray(variable.value, dtype=np.float64)
    return value if np.isfinite(value).all() else None
