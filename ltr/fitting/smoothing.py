r"""The pairwise hinge loss made smooth, and how far the smooth problem's solution is from the true one.

With ``u = 1 - (s_i - s_k)`` the hinge of a comparable pair is ``max(0, u) = max over 0 <= α <= 1 of α u``. For a
width mu > 0 and multipliers a in [0, 1], one for each pair, let

    h(u; a) = max over 0 <= α <= 1 of  α u - (mu / 2) (α - a)²,    α* = a + u / mu  clipped to [0, 1],

continuously differentiable with slope α*, and ``max(0, u) - mu/2 <= h(u; a) <= max(0, u)``.

*Certificate.* Let F be the mean hinge of a linear scorer plus ``(l2/2) ||w||²``, H the same with h. Whatever w, the
α* of all pairs are a feasible point of the dual of F. The dual's value there gives

    F(w) - min F  <=  slack + ||∇H(w)||² / (2 l2),     slack = mean over pairs of  max(0, u) - α* u  >=  0.

*Few pairs* (`SmoothedHinge`). Making the solution's α* the next a, and solving again, is the proximal point method on
the dual (the method of multipliers): it converges to the true hinge's solution at a width that keeps the problem well
conditioned, where smoothing alone would need a width of the order of the accuracy. It remembers every pair.

*Many pairs* (`HuberHinge`). With ``a = 1/2`` h is, but for a constant, the Huberised hinge,

    h(u; 1/2) + mu/8  =  max(0, u) + (mu/8) max(0, 1 - 2 |u| / mu)²,

which `ltr.losses` and `ltr.fitting.band` add up without looking at pairs. Only pairs with ``|u| < mu/2`` have slack,
``|u| / 2 - u² / mu``. Of many pairs a share of about mu is there, so that the slack falls with mu², and widths of 1e-3
or 1e-4 close the gap.

Sources: Nesterov, *Smooth minimization of non-smooth functions* (2005); Rockafellar, *Augmented Lagrangians and
applications of the proximal point algorithm in convex programming* (1976).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltr.fitting.band import Band, Huber
from ltr.losses import PairwiseHingeLoss, PairwiseLoss

__all__ = ["HingePairs", "HuberHinge", "SmoothedHinge", "Smoothing", "smoothed_hinge"]

_WIDEST = 0.1
_MANY = 1_000_000  # pairs beyond which looking at each takes longer than sorting
_LEAST, _MOST = 0.1, 0.5  # by what a width is multiplied


class Smoothing(Protocol):
    """A smoothed hinge loss of the scores of all rows, called like the loss itself."""

    @property
    def width(self) -> float:
        """Mu."""

    @property
    def multipliers(self) -> Tensor | None:
        """A of every pair, where they are remembered."""

    def __call__(self, scores: Tensor, labels: Tensor, *, qid: Tensor | None = None) -> Tensor:
        """The smoothed loss, differentiable once."""

    def slack(self, scores: Tensor, labels: Tensor, *, qid: Tensor | None = None) -> Tensor:
        """The slack at the scores, reduced as the loss is."""

    def sharper(self, scores: Tensor, slack: float, last: float, wanted: float) -> Smoothing:
        """The smoothed loss to solve after this one.

        Args:
            scores: of this one's solution.
            slack: there.
            last: slack of the solution before, infinite for the first one.
            wanted: how small it should become.
        """

    def at(self, width: float, multipliers: Tensor | None) -> Smoothing:
        """The smoothed loss of another width and other multipliers."""


def smoothed_hinge(
    loss: PairwiseHingeLoss, labels: NDArray[np.float64], groups: Sequence[NDArray[np.int64]] | None, like: Tensor
) -> Smoothing:
    """The first smoothed loss, in the form that suits the number of pairs.

    Args:
        loss: the hinge.
        labels: (n,).
        groups: rows of each list, None for a single one.
        like: a tensor of the scores' dtype and device.
    """
    lists = [labels] if groups is None else [labels[rows] for rows in groups]
    if sum(_pairs(values) for values in lists) > _MANY:
        return HuberHinge(loss, _WIDEST)
    return SmoothedHinge.start(HingePairs.of(loss, labels, groups).to(like), _WIDEST)


def _pairs(labels: NDArray[np.float64]) -> int:
    return (len(labels) ** 2 - int((np.unique(labels, return_counts=True)[1] ** 2).sum())) // 2


class _PairSum(PairwiseLoss):
    """The loss of any pair function that can be summed up without pairs."""

    key = "pair_sum"
    short = few = 0  # there is no kernel for its pairs, and a matrix of them is larger than what they are summed up by

    def __init__(self, function: Huber | Band, like: PairwiseHingeLoss) -> None:
        super().__init__(reduction=like.reduction, pairs=like.pairs)
        self.transformed = function  # type: ignore[misc]

    def pair_function(self, z: Tensor) -> Tensor:
        return cast(Huber | Band, self.transformed)(z)


class HuberHinge:
    """The Huberised hinge plus ``width / 8``, from sums without pairs.

    Args:
        loss: the hinge, whose reductions count.
        width: mu, greater than 0.

    Examples:
        >>> hinge = HuberHinge(PairwiseHingeLoss(), 1.0)
        >>> scores, labels = torch.tensor([0.75, 0.0]), torch.tensor([1, 0])  # u = 0.25, α* = 0.75
        >>> hinge(scores, labels).item(), hinge.slack(scores, labels).item()
        (0.28125, 0.0625)
    """

    multipliers: None = None

    def __init__(self, loss: PairwiseHingeLoss, width: float) -> None:
        self.loss, self.width = loss, width
        half = width / 2
        self._value = _PairSum(Huber(half), loss)
        # |u| / 2 - u² / mu
        self._slack = _PairSum(Band(half, (0.0, -half / 2, -half / 2), (0.0, half / 2, -half / 2)), loss)

    @property
    def reduction(self) -> str:
        """That of the loss."""
        return self.loss.reduction

    def __call__(self, scores: Tensor, labels: Tensor, *, qid: Tensor | None = None) -> Tensor:
        """The smoothed loss."""
        return cast(Tensor, self._value(scores, labels, qid=qid))

    def slack(self, scores: Tensor, labels: Tensor, *, qid: Tensor | None = None) -> Tensor:
        """The slack."""
        return cast(Tensor, self._slack(scores, labels, qid=qid)).clamp(min=0)

    def sharper(self, scores: Tensor, slack: float, last: float, wanted: float) -> HuberHinge:
        """A narrower one, such that the slack, which falls with the square of the width, is half of what is wanted."""
        factor = min(max(math.sqrt(wanted / (2 * slack)), _LEAST), _MOST)
        return HuberHinge(self.loss, factor * self.width)

    def at(self, width: float, multipliers: Tensor | None) -> HuberHinge:
        """Of another width."""
        return HuberHinge(self.loss, width)


@dataclass(frozen=True, eq=False)
class HingePairs:
    """The comparable pairs of labelled lists and what each weighs in the hinge loss.

    Attributes:
        above, below: int64 of shape (pairs,), rows i and k with ``labels_i > labels_k`` in one list.
        share: float of shape (pairs,), so that the loss is the sum of ``share * max(0, u)``.
    """

    above: Tensor
    below: Tensor
    share: Tensor

    @classmethod
    def of(
        cls, loss: PairwiseHingeLoss, labels: NDArray[np.float64], groups: Sequence[NDArray[np.int64]] | None
    ) -> HingePairs:
        """The pairs of labels (n,) whose lists are the rows of each of `groups`, None for a single list."""
        lists = [np.arange(len(labels))] if groups is None else groups
        above, below, share = [], [], []
        for rows in lists:
            # from the highest label down, the rows below one are all from some place on
            ordered = rows[np.argsort(-labels[rows], kind="stable")]
            first = np.searchsorted(-labels[ordered], -labels[ordered], side="right")
            count = len(rows) - first
            pairs = int(count.sum())
            above.append(np.repeat(ordered, count))
            below.append(ordered[np.arange(pairs) - np.repeat(np.cumsum(count) - count - first, count)])
            in_list = 1.0 / max(pairs, 1) if loss.pairs == "mean" else 1.0
            share.append(np.full(pairs, in_list / len(lists) if loss.reduction == "mean" else in_list))
        return cls(*(torch.from_numpy(np.concatenate(part)) for part in (above, below, share)))

    def to(self, like: Tensor) -> HingePairs:
        """The pairs on the device of `like`, shares in its dtype."""
        return HingePairs(self.above.to(like.device), self.below.to(like.device), self.share.to(like))


@dataclass(frozen=True, eq=False)
class SmoothedHinge:
    """A function of the scores (n,): the sum over pairs of ``share * h(u; a)``.

    Attributes:
        pairs: the pairs.
        width: mu, greater than 0.
        multipliers: a, of shape (pairs,).

    Examples:
        >>> pairs = HingePairs.of(PairwiseHingeLoss(), np.array([1.0, 0.0]), None)
        >>> hinge = SmoothedHinge(pairs, width=1.0, multipliers=torch.tensor([0.5]))
        >>> scores = torch.tensor([0.75, 0.0])  # u = 0.25, α* = 0.75
        >>> hinge(scores).item(), hinge.slack(scores).item()
        (0.15625, 0.0625)
    """

    pairs: HingePairs
    width: float
    multipliers: Tensor

    @classmethod
    def start(cls, pairs: HingePairs, width: float) -> SmoothedHinge:
        """The Huberised hinge: multipliers 1/2."""
        return cls(pairs, width, torch.full_like(pairs.share, 0.5))

    def __call__(self, scores: Tensor, labels: Tensor | None = None, *, qid: Tensor | None = None) -> Tensor:
        """The smoothed loss; labels and lists are those that the pairs were made of."""
        u = self._shortfall(scores)
        slope = self._slope(u)
        # the derivative of the maximum is the slope: how the maximiser moves does not matter
        return (self.pairs.share * (slope * u - (self.width / 2) * (slope - self.multipliers) ** 2)).sum()

    def slack(self, scores: Tensor, labels: Tensor | None = None, *, qid: Tensor | None = None) -> Tensor:
        """The sum over pairs of ``share * (max(0, u) - α* u)``."""
        u = self._shortfall(scores)
        return (self.pairs.share * (u.clamp(min=0) - self._slope(u) * u)).sum()

    def sharper(self, scores: Tensor, slack: float, last: float, wanted: float) -> SmoothedHinge:
        """That whose multipliers are the α* of the solution, narrower when they alone close the slack too slowly."""
        width = self.width if slack < 0.1 * last else self.width * _LEAST
        return SmoothedHinge(self.pairs, width, self._slope(self._shortfall(scores)))

    def wider(self, scores: Tensor) -> SmoothedHinge:
        """That whose multipliers are the α* of these scores, ten times as wide: better conditioned, with less slack."""
        return SmoothedHinge(self.pairs, self.width / _LEAST, self._slope(self._shortfall(scores)))

    def at(self, width: float, multipliers: Tensor | None) -> SmoothedHinge:
        """Of another width and other multipliers of the same pairs."""
        assert multipliers is not None
        return SmoothedHinge(self.pairs, width, multipliers.to(self.multipliers))

    def _shortfall(self, scores: Tensor) -> Tensor:
        return 1 - (scores[self.pairs.above] - scores[self.pairs.below])

    def _slope(self, u: Tensor) -> Tensor:
        return (self.multipliers + u.detach() / self.width).clamp(0, 1)
