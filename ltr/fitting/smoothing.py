r"""The pairwise hinge loss made smooth, and how far the smooth problem's solution is from the true one.

With ``u = 1 - (s_i - s_k)`` the hinge of a comparable pair is ``max(0, u) = max over 0 <= α <= 1 of α u``. For a
width mu > 0 and multipliers a in [0, 1], one for each pair, let

    h(u; a) = max over 0 <= α <= 1 of  α u - (mu / 2) (α - a)²,    α* = a + u / mu  clipped to [0, 1],

continuously differentiable with slope α*, and ``max(0, u) - mu/2 <= h(u; a) <= max(0, u)``. With ``a = 1/2`` it is
the Huberised hinge (up to a constant). Making the solution's α* the next a, and solving again, is the proximal point
method on the dual (the method of multipliers): it converges to the true hinge's solution at a width that keeps
the problem well conditioned, where smoothing alone would need a width of the order of the accuracy. The multipliers
make memory grow with the number of pairs.

*Certificate.* Let F be the mean hinge of a linear scorer plus ``(l2/2) ||w||²``, H the same with h. Whatever w, the
α* of all pairs are a feasible point of the dual of F. The dual's value there gives

    F(w) - min F  <=  slack + ||∇H(w)||² / (2 l2),     slack = mean over pairs of  max(0, u) - α* u  >=  0.

Sources: Nesterov, *Smooth minimization of non-smooth functions* (2005); Rockafellar, *Augmented Lagrangians and
applications of the proximal point algorithm in convex programming* (1976).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ltr.losses import PairwiseHingeLoss

__all__ = ["HingePairs", "SmoothedHinge"]


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
            i, k = np.nonzero(labels[rows, None] > labels[None, rows])
            above.append(rows[i])
            below.append(rows[k])
            in_list = 1.0 / max(len(i), 1) if loss.pairs == "mean" else 1.0
            share.append(np.full(len(i), in_list / len(lists) if loss.reduction == "mean" else in_list))
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

    def __call__(self, scores: Tensor) -> Tensor:
        """The smoothed loss, differentiable once."""
        u = self._shortfall(scores)
        slope = self._slope(u)
        # the derivative of the maximum is the slope: how the maximiser moves does not matter
        return (self.pairs.share * (slope * u - (self.width / 2) * (slope - self.multipliers) ** 2)).sum()

    def slack(self, scores: Tensor) -> Tensor:
        """The sum over pairs of ``share * (max(0, u) - α* u)``."""
        u = self._shortfall(scores)
        return (self.pairs.share * (u.clamp(min=0) - self._slope(u) * u)).sum()

    def next(self, scores: Tensor, width: float) -> SmoothedHinge:
        """The smoothed hinge whose multipliers are the α* at `scores`."""
        return SmoothedHinge(self.pairs, width, self._slope(self._shortfall(scores)))

    def _shortfall(self, scores: Tensor) -> Tensor:
        return 1 - (scores[self.pairs.above] - scores[self.pairs.below])

    def _slope(self, u: Tensor) -> Tensor:
        return (self.multipliers + u.detach() / self.width).clamp(0, 1)
