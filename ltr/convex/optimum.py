r"""Certified optima of the convex losses for a linear scorer.

The objective is the one that training minimises, with the features as given:

    loss(X w + b, y) + l2/2 ||w||^2,      labels 0 and 1, the loss with ``pairs="mean"``,

where b is 0 except for the pointwise logistic loss, whose bias is free and not penalised. Any optimum comes with a
lower bound from duality (`ltr.convex.newton`), so that nobody needs to trust a solver: Newton's method, and Clarabel
for the hinge (`ltr.convex.programs`), only propose.

Inside, features are centred (where a bias or a difference absorbs it) and scaled to unit standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike

from ltr.checks import as_float
from ltr.convex.newton import FloatArray, Objective, Pairs, minimise, radius_of
from ltr.convex.programs import hinge_optimum, recedes
from ltr.data.dataset import check_ranges, checked_features, checked_labels
from ltr.losses import LogisticLoss, PNormPushLoss, RankingLoss, parse_loss
from ltr.losses.functions import Hinge, PairFunction

PAIR_LIMIT = 4_000_000
"""Most positive-negative pairs taken: matrices of that size are held in memory."""

ITEM_LIMIT = 6_000
"""Most observations of a pairwise loss: the loss forms all differences of scores."""


@dataclass(frozen=True)
class ConvexOptimum:
    """The optimum of a convex loss, with its proof.

    Attributes:
        weights: float64 of shape (d,), for the features as given; one of the minimisers where there are several.
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
        """(value - lower_bound) / value, 0 where they agree."""
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

    Raises:
        ValueError: an argument against its rule; for pairwise losses more observations than `ITEM_LIMIT`, more pairs
            than `PAIR_LIMIT`, or more than `ltr.convex.programs.KINK_LIMIT` of them near the hinge's kink; data that a
            linear function separates where l2 is 0 and the loss, therefore, has an infimum that no weights attain.

    Examples:
        >>> best = certified_optimum("ranknet", [[0.0], [1.0], [2.0]], [0, 1, 0], l2=0.1)
        >>> abs(round(float(best.weights[0]), 6)), round(best.value, 6)  # differences 1 and -1: log 2 at w = 0
        (0.0, 0.693147)
        >>> best.value - best.lower_bound < 1e-12
        True
    """
    module, function, p = _checked_loss(loss)
    features = checked_features(X)
    check_ranges(features)
    positive = checked_labels(y, len(features)) == 1
    if not 0 <= as_float(l2) < math.inf:
        raise ValueError(f"l2 must be a finite number >= 0, got {l2!r}")
    pointwise = isinstance(module, LogisticLoss)
    pairs = int(positive.sum()) * int((~positive).sum())
    if not pointwise and (positive.size > ITEM_LIMIT or pairs > PAIR_LIMIT):
        raise ValueError(
            f"X has {positive.size} observations and {pairs} positive-negative pairs; the limits for {module.name} are "
            f"{ITEM_LIMIT} and {PAIR_LIMIT}"
        )

    # a shift of all scores changes no difference, and a bias absorbs it; without one the features stay where they are
    scaled, shift, scale = _scaled(features, centred=bias or not pointwise)
    penalty = l2 / scale**2
    if pointwise:
        rows = np.hstack([scaled, np.ones((len(scaled), 1))]) if bias else scaled
        design = Pairs(np.where(positive, 1.0, -1.0)[:, None] * rows, np.zeros((1, rows.shape[1])))
        penalty = np.append(penalty, 0.0) if bias else penalty
    else:
        design = Pairs(scaled[positive], scaled[~positive])
    if l2 == 0 and function.zero_from == math.inf and recedes(design, penalty.size):
        raise ValueError(
            f"{module.name} has no minimiser: a linear function separates the labels, and with l2=0 the loss falls "
            "towards its infimum as the weights grow; use l2 > 0"
        )
    objective = Objective(design, function, penalty, p)
    if isinstance(function, Hinge) and p == 1:
        w, lower, method = hinge_optimum(design, penalty)
    else:
        w = minimise(objective, np.zeros(penalty.size))
        if function.zero_from < math.inf and objective.value(longer := w * (1 + 1e-9)) == 0:
            w = longer  # rounding left differences just short of where the function becomes 0
        lower, method = objective.lower_bound(w, radius_of(w)), "newton"

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
        raise ValueError(
            f"loss: no convex optimum is known for {module.name}; that takes a convex loss whose pair function has a "
            "conjugate"
        )
    if (module.reduction, module.pairs) != ("mean", "mean"):
        raise ValueError(f"loss must have reduction and pairs 'mean', got {module.name}")
    return module, function, module.p if isinstance(module, PNormPushLoss) else 1.0


def _scaled(features: FloatArray, *, centred: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """``(features - shift) / scale`` with shift and scale; a constant column becomes 0 (1 where not centred)."""
    shift = features.mean(axis=0) if centred else np.zeros(features.shape[1])
    scale = features.std(axis=0)
    size = np.abs(features).max(axis=0)
    # the computed deviation of a constant column may be a rounding error
    constant = scale <= 1e-12 * size
    scale = np.where(constant, np.where(size > 0, size, 1.0), scale)
    scaled = (features - shift) / scale
    if centred:
        scaled[:, constant] = 0.0
    return scaled, shift, scale
