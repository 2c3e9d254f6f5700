"""A smooth version of the pairwise hinge loss, and how far its solution is from the optimum of the hinge.

With ``u = 1 - (s_i - s_k)`` the hinge of a comparable pair is ``max(0, u) = max over 0 <= α <= 1 of α u``. For a width
mu > 0 and multipliers a in [0, 1], one for each pair, let

    h(u; a) = max over 0 <= α <= 1 of  α u - (mu / 2) (α - a)²,    α* = a + u / mu  clipped to [0, 1],

continuously differentiable with slope α*, and ``max(0, u) - mu/2 <= h(u; a) <= max(0, u)``.

*Certificate.* Let F be the mean hinge of a linear scorer plus ``(l2/2) ||w||²``, H the same with h. Whatever w, the α*
of all pairs are a feasible point of the dual of F. The dual's value there gives

    F(w) - min F  <=  slack + ||∇H(w)||² / (2 l2),     slack = mean over pairs of  max(0, u) - α* u  >=  0.

*Few pairs* (`SmoothedHinge`). Making the solution's α* the next a, and solving again, is the proximal point method on
the dual (the method of multipliers): it converges to the true hinge's solution at a width that keeps the problem well
conditioned.

*Many pairs* (`HuberHinge`) leave no room for multipliers. With ``a = 1/2`` h is, up to a constant, the Huberised hinge,

    h(u; 1/2) + mu/8  =  max(0, u) + (mu/8) max(0, 1 - 2 |u| / mu)²,

whose two terms have near-linear sums: `ltr.losses.functions.HINGE` and a `Band`. Only pairs with ``|u| < mu/2`` have
slack, ``|u| / 2 - u² / mu``. Of many pairs a share of about mu lies there, so that the slack falls with mu².

*Bands.* With ``v = u / h``, a band is one quadratic of v in (-1, 0), another in [0, 1), and 0 elsewhere. Measured in
units of h, the keys ``s_i - 1`` of upper items and ``s_k`` of lower ones differ by v. Keys are sorted and cut into
cells of length 1. The keys within reach of one key are then four ranges, each within a cell. Sums over a range of
powers of the place *in the cell* are differences of running sums, and stay accurate however narrow the band is: O(n log
n).

Sources: Nesterov, *Smooth minimization of non-smooth functions* (2005); Rockafellar, *Augmented Lagrangians and
applications of the proximal point algorithm in convex programming* (1976).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltr.losses import PairwiseLoss
from ltr.losses.functions import HINGE, PairFunction
from ltr.losses.transforms import Plan, TwoClasses

Quadratic = tuple[float, float, float]
"""Coefficients of 1, v and v²."""

_WIDEST = 0.1
_MANY = 1_000_000  # number of pairs from which sorting is faster than working on each pair
_LEAST, _MOST = 0.1, 0.5  # range of the factor that narrows a width


def smoothed_hinge(
    loss: PairwiseLoss,
    labels: NDArray[np.float64],
    groups: Sequence[NDArray[np.int64]] | None,
    like: Tensor,
    weight: NDArray[np.float64] | None = None,
    list_weight: NDArray[np.float64] | None = None,
) -> Smoothing:
    """Return the first smoothed loss, in the form that suits the number of pairs, for scores of the type of `like`."""
    lists = [labels] if groups is None else [labels[rows] for rows in groups]
    same = sum(int((np.unique(values, return_counts=True)[1] ** 2).sum()) for values in lists)
    if (sum(len(values) ** 2 for values in lists) - same) // 2 > _MANY:
        return HuberHinge(loss, _WIDEST)
    pairs = HingePairs.of(loss, labels, groups, like, weight, list_weight)
    return SmoothedHinge(pairs, _WIDEST, torch.full_like(pairs.share, 0.5))


class _PairSum(PairwiseLoss):
    """The loss of a pair function, always by its near-linear sums."""

    short = few = 0  # never work on all pairs: that takes more memory, and these functions have no kernel

    def __init__(self, function: PairFunction, like: PairwiseLoss) -> None:
        super().__init__(reduction=like.reduction, pairs=like.pairs)
        self.function = function


class HuberHinge:
    """The Huberised hinge plus ``width / 8``, from sums without pairs.

    `loss` is the hinge loss, whose reductions are used, and `width` is mu, greater than 0.
    """

    multipliers: None = None

    def __init__(self, loss: PairwiseLoss, width: float) -> None:
        self.loss, self.width, self.reduction = loss, width, loss.reduction
        half = width / 2
        self._value = _PairSum(Huber(half), loss)
        # |u| / 2 - u² / mu
        self._slack = _PairSum(Band(half, (0.0, -half / 2, -half / 2), (0.0, half / 2, -half / 2)), loss)

    def __call__(self, scores: Tensor, labels: Tensor, **of_rows: Tensor) -> Tensor:
        """Return the smoothed loss; the keywords are those of the loss."""
        return cast(Tensor, self._value(scores, labels, **of_rows))

    def slack(self, scores: Tensor, labels: Tensor, **of_rows: Tensor) -> Tensor:
        """Return the slack."""
        return cast(Tensor, self._slack(scores, labels, **of_rows)).clamp(min=0)

    def sharper(self, scores: Tensor, slack: float, last: float, wanted: float) -> HuberHinge:
        """Return a narrower smoothing: slack falls with the square of the width, and half of `wanted` is the aim.

        `slack` is that at the current solution, which has these scores, and `last` that at the solution before.
        """
        factor = min(max(math.sqrt(wanted / (2 * slack)), _LEAST), _MOST)
        return HuberHinge(self.loss, factor * self.width)

    def at(self, width: float, multipliers: Tensor | None) -> HuberHinge:
        """Return the Huberised hinge of another width."""
        return HuberHinge(self.loss, width)


@dataclass(frozen=True, eq=False)
class HingePairs:
    """The comparable pairs of labelled lists and their weights in the hinge loss."""

    above: Tensor  # int64 of shape (pairs,), rows i and k with ``labels_i > labels_k`` in one list
    below: Tensor
    share: Tensor  # float of shape (pairs,), so that the loss is the sum of ``share * max(0, u)``

    @classmethod
    def of(
        cls,
        loss: PairwiseLoss,
        labels: NDArray[np.float64],
        groups: Sequence[NDArray[np.int64]] | None,
        like: Tensor,
        weight: NDArray[np.float64] | None = None,
        list_weight: NDArray[np.float64] | None = None,
    ) -> HingePairs:
        """Return the pairs of labels (n,) within each list: the rows of one of `groups`, or all rows if None.

        They are on the device of `like`, and shares have its dtype. Weights of rows count relative to those of their
        lists.
        """
        lists = [np.arange(len(labels))] if groups is None else groups
        of_lists = np.ones(len(lists)) if list_weight is None else np.array([list_weight[rows[0]] for rows in lists])
        if list_weight is not None and weight is not None:
            weight = weight / np.where(list_weight > 0, list_weight, 1.0)
        if loss.reduction == "mean":
            of_lists = of_lists / (of_lists.sum() or 1.0)
        above, below, share = [], [], []
        for rows, of_list in zip(lists, of_lists, strict=True):
            # with labels descending, the rows below one are all those from some place on
            ordered = rows[np.argsort(-labels[rows], kind="stable")]
            first = np.searchsorted(-labels[ordered], -labels[ordered], side="right")
            count = len(rows) - first
            pairs = int(count.sum())
            above.append(np.repeat(ordered, count))
            below.append(ordered[np.arange(pairs) - np.repeat(np.cumsum(count) - count - first, count)])
            of_pairs = np.ones(pairs) if weight is None else weight[above[-1]] * weight[below[-1]]
            total = of_pairs.sum() if loss.pairs == "mean" else 1.0
            share.append(of_list * of_pairs / (total if total > 0 else 1.0))
        parts = [torch.from_numpy(np.concatenate(part)).to(like.device) for part in (above, below, share)]
        return cls(parts[0], parts[1], parts[2].to(like.dtype))


@dataclass(frozen=True, eq=False)
class SmoothedHinge:
    """A function of the scores (n,): the sum over pairs of ``share * h(u; a)``."""

    pairs: HingePairs
    width: float  # mu, greater than 0
    multipliers: Tensor  # a, of shape (pairs,)

    def __call__(self, scores: Tensor, labels: Tensor | None = None, **of_rows: Tensor) -> Tensor:
        """Return the smoothed loss; labels, lists and weights are those that the pairs were made from."""
        u = self._shortfall(scores)
        slope = self._slope(u)
        # the derivative of the maximum is the slope: how the maximiser moves does not matter
        return (self.pairs.share * (slope * u - (self.width / 2) * (slope - self.multipliers) ** 2)).sum()

    def slack(self, scores: Tensor, labels: Tensor | None = None, **of_rows: Tensor) -> Tensor:
        """Return the sum over pairs of ``share * (max(0, u) - α* u)``."""
        u = self._shortfall(scores)
        return (self.pairs.share * (u.clamp(min=0) - self._slope(u) * u)).sum()

    def sharper(self, scores: Tensor, slack: float, last: float, wanted: float) -> SmoothedHinge:
        """Return a smoothing whose multipliers are the α* of the solution; it is narrower if slack falls too slowly."""
        width = self.width if slack < 0.1 * last else self.width * _LEAST
        return SmoothedHinge(self.pairs, width, self._slope(self._shortfall(scores)))

    def wider(self, scores: Tensor) -> SmoothedHinge:
        """Return a smoothing whose multipliers are the α* of these scores, ten times as wide and better conditioned."""
        return SmoothedHinge(self.pairs, self.width / _LEAST, self._slope(self._shortfall(scores)))

    def at(self, width: float, multipliers: Tensor | None) -> SmoothedHinge:
        """Return the smoothed hinge of the same pairs with another width and other multipliers."""
        assert multipliers is not None
        return SmoothedHinge(self.pairs, width, multipliers.to(self.multipliers))

    def _shortfall(self, scores: Tensor) -> Tensor:
        return 1 - (scores[self.pairs.above] - scores[self.pairs.below])

    def _slope(self, u: Tensor) -> Tensor:
        return (self.multipliers + u.detach() / self.width).clamp(0, 1)


Smoothing = HuberHinge | SmoothedHinge
"""A smoothed hinge loss of the scores of all rows, called like the loss itself."""


# --- near-linear sums over a band ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band(PairFunction):
    """A pair function that is 0 outside ``|v| < 1``."""

    half: float  # h, greater than 0
    below: Quadratic  # the function for v in (-1, 0)
    above: Quadratic  # the function for v in [0, 1)

    def __call__(self, z: Tensor) -> Tensor:
        """Return the function of score differences."""
        v = (1.0 - z) / self.half
        below, above = (c[0] + c[1] * v + c[2] * v**2 for c in (self.below, self.above))
        return torch.where(v.detach() < 0, below, above).masked_fill(v.detach().abs() >= 1, 0.0)

    def slope(self) -> Band:
        """Return the derivative by the score difference, where it exists."""
        below, above = ((-c[1] / self.half, -2 * c[2] / self.half, 0.0) for c in (self.below, self.above))
        return Band(self.half, below, above)

    def plan(self, two: TwoClasses) -> Plan:
        """Sort the keys of both classes."""
        return _Keys(self, two)


@dataclass(frozen=True)
class Huber(PairFunction):
    """``max(0, u)`` smoothed within ``|u| < half``, where it is ``(u + half)² / (4 half)``."""

    half: float

    @property
    def rest(self) -> Band:
        """The part added to ``max(0, u)``: ``(h/4) (1 - |v|)²``."""
        c = self.half / 4
        return Band(self.half, (c, 2 * c, c), (c, -2 * c, c))

    def __call__(self, z: Tensor) -> Tensor:
        """Return the function of score differences."""
        return HINGE(z) + self.rest(z)

    def plan(self, two: TwoClasses) -> Plan:
        """Sort the keys for both parts."""
        return _Sum(HINGE.plan(two), self.rest.plan(two))


class _Sum(Plan):
    def __init__(self, *plans: Plan) -> None:
        self.one, self.other = plans

    def apply(self, charges: Tensor, order: int, up: bool) -> Tensor:
        return self.one.apply(charges, order, up) + self.other.apply(charges, order, up)


class _Class(NamedTuple):
    """The keys of a class in units of h, ascending, infinite where the item is of another class."""

    keys: Tensor
    order: Tensor
    real: Tensor


class _Keys(Plan):
    def __init__(self, band: Band, two: TwoClasses) -> None:
        self.band, classes = band, []
        for keys, weight in ((two.scores - 1.0, two.upper), (two.scores, two.lower)):
            keys, order = (keys / band.half).masked_fill(weight <= 0, torch.inf).sort(dim=-1)
            classes.append(_Class(keys, order, keys < torch.inf))
        self.upper, self.lower = classes

    def apply(self, charges: Tensor, order: int, up: bool) -> Tensor:
        """Return, for every key of one class, the sum over keys of the other class within reach."""
        band = self.band
        for _ in range(order):
            band = band.slope()
        sources, targets = (self.upper, self.lower) if up else (self.lower, self.upper)
        # with the source's key minus the target's, which is v up to its sign
        sign = -1.0 if up else 1.0
        smaller, larger = (band.above, band.below) if up else (band.below, band.above)
        key = targets.keys.masked_fill(~targets.real, 0.0)
        cell = key.floor()
        bounds = [key - 1, cell, key, cell + 1, key + 1]
        edges = [torch.searchsorted(sources.keys, bound.contiguous()) for bound in bounds]
        place = (sources.keys - sources.keys.floor()).masked_fill(~sources.real, 0.0)
        q = charges.gather(-1, sources.order).masked_fill(~sources.real, 0.0)
        sums = [torch.nn.functional.pad((q * place**power).cumsum(-1), (1, 0)) for power in range(3)]
        total = torch.zeros_like(key)
        for at, (beside, c) in enumerate([(-1.0, smaller), (0.0, smaller), (0.0, larger), (1.0, larger)]):
            m0, m1, m2 = (s.gather(-1, edges[at + 1]) - s.gather(-1, edges[at]) for s in sums)
            shift = cell + beside - key
            total += c[0] * m0 + sign * c[1] * (m1 + shift * m0) + c[2] * (m2 + 2 * shift * m1 + shift**2 * m0)
        return torch.zeros_like(total).scatter(-1, targets.order, total.masked_fill(~targets.real, 0.0))
