"""Pairwise losses: each is one function of the score difference ``z = s_i - s_k``, averaged over comparable pairs.

================================  ==================  ==========================================
loss                              pair function       known as
================================  ==================  ==========================================
`RankNetLoss`                     log(1 + exp(-z))    RankNet, pairwise logistic
`PairwiseHingeLoss`               max(0, 1 - z)       ranking SVM
`PairwiseSquaredHingeLoss`        max(0, 1 - z)^2
`PairwiseExponentialLoss`         exp(-z)             RankBoost's objective
================================  ==================  ==========================================

Inputs, pairs, weights and reductions are those of `ltr.losses.contract`.
"""

from __future__ import annotations

import abc
import functools
import math
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.lists import Lists
from ltr.losses.contract import PairsName, Reduction
from ltr.losses.pairs import (
    PairLoss,
    bounded,
    bounded_exp,
    comparable_pairs,
    grouped_logsumexp,
    item_weights,
    kept_logsumexp,
    log_sum_exp,
    logsumexp,
    times_unit,
)
from ltr.losses.transforms import HingePower, Logistic, PairFunction, pair_sums
from ltr.losses.two_classes import two_classes

if TYPE_CHECKING:
    from ltr.losses._short import Kernel

__all__ = [
    "PairwiseExponentialLoss",
    "PairwiseHingeLoss",
    "PairwiseLoss",
    "PairwiseSquaredHingeLoss",
    "RankNetLoss",
    "pairwise_exponential_loss",
    "pairwise_hinge_loss",
    "pairwise_squared_hinge_loss",
    "ranknet_loss",
]


class PairwiseLoss(PairLoss):
    """``mean over pairs with labels_i > labels_k of pair_function(s_i - s_k)``; a subclass supplies the function.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs of a list.
    """

    transformed: ClassVar[PairFunction | None] = None
    """The pair function in a form whose sums need no pairs; None looks at every pair whatever the length of a list."""

    @abc.abstractmethod
    def pair_function(self, z: Tensor) -> Tensor:
        """The loss of pairs whose score difference is `z`, elementwise."""

    def looks_at_pairs(self, lists: Lists) -> bool:
        """Whether all pairs are looked at: where lists are short, or where there is no other way."""
        return self.transformed is None or super().looks_at_pairs(lists)

    def without_pairs(self, lists: Lists) -> Tensor:
        """The weighted mean or sum of the pair function, by its transform."""
        assert self.transformed is not None
        item, unit = item_weights(lists)
        total = lists.scores.new_zeros(len(lists.scores), dtype=torch.float64)
        weight = torch.zeros_like(total)
        for part in two_classes(lists, item):
            total = total.index_add(0, part.source, pair_sums(self.transformed, part.two))
            if self.pairs == "mean":
                weight = weight.index_add(0, part.source, part.two.upper.sum(-1) * part.two.lower.sum(-1))
        if self.pairs == "mean":
            total = total / torch.where(weight > 0, weight, 1.0)
        else:
            total = times_unit(total, None if unit is None else unit.double(), 2)
        return total.to(lists.scores.dtype)

    def from_pairs(self, lists: Lists) -> Tensor:
        """The weighted mean or sum of the pair function over each list's comparable pairs."""
        difference, comparable = comparable_pairs(lists)
        item, unit = item_weights(lists)
        share = (item.unsqueeze(-1) * item.unsqueeze(-2)).masked_fill(~comparable, 0.0)
        if self.pairs == "mean":
            total = share.sum((-2, -1), keepdim=True)
            share = share / torch.where(total > 0, total, 1.0)
        # a product of weights may have underflowed, and the loss of its pair be infinite
        value = (share * self.pair_function(difference)).masked_fill(share == 0, 0.0).sum((-2, -1))
        return value if self.pairs == "mean" else times_unit(value, unit, 2)


class RankNetLoss(PairwiseLoss):
    """Pairwise logistic loss ``log(1 + exp(-(s_i - s_k)))``.

    Source: Burges et al., *Learning to Rank using Gradient Descent* (2005).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs of a list.

    Examples:
        >>> loss = RankNetLoss()
        >>> round(loss(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # log(1 + exp(-1))
        0.3133
    """

    key = "ranknet"
    convex = True
    transformed = Logistic()

    def kernel(self) -> Kernel:
        """That of its pair function."""
        from ltr.losses._short import RANKNET, pairwise

        return functools.partial(pairwise, kind=RANKNET)

    def pair_function(self, z: Tensor) -> Tensor:
        """``log(1 + exp(-z))``."""
        # logsigmoid, for torch's softplus is the identity beyond 20, an error of 2e-9
        return -F.logsigmoid(z)


class PairwiseHingeLoss(PairwiseLoss):
    """Pairwise hinge loss ``max(0, 1 - (s_i - s_k))``.

    Source: Joachims, *Optimizing Search Engines using Clickthrough Data* (2002).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs of a list.

    Examples:
        >>> PairwiseHingeLoss(pairs="sum")(torch.tensor([2.0, 1.5, 0.0]), torch.tensor([1, 0, 0]))  # 0.5 + 0
        tensor(0.5000)
    """

    key = "hinge"
    convex = True
    transformed = HingePower(1)

    def kernel(self) -> Kernel:
        """That of its pair function."""
        from ltr.losses._short import HINGE, pairwise

        return functools.partial(pairwise, kind=HINGE)

    def pair_function(self, z: Tensor) -> Tensor:
        """``max(0, 1 - z)``."""
        return F.relu(1.0 - z)


class PairwiseSquaredHingeLoss(PairwiseLoss):
    """Pairwise squared hinge loss ``max(0, 1 - (s_i - s_k))^2``, smooth and zero beyond a margin of 1.

    Source: Chapelle & Keerthi, *Efficient algorithms for ranking with SVMs* (2010).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs of a list.

    Examples:
        >>> PairwiseSquaredHingeLoss()(torch.tensor([2.0, 1.5]), torch.tensor([1, 0]))  # (1 - 0.5)^2
        tensor(0.2500)
    """

    key = "squared_hinge"
    convex = True
    transformed = HingePower(2)

    def kernel(self) -> Kernel:
        """That of its pair function."""
        from ltr.losses._short import SQUARED_HINGE, pairwise

        return functools.partial(pairwise, kind=SQUARED_HINGE)

    def pair_function(self, z: Tensor) -> Tensor:
        """``max(0, 1 - z)^2``, whose derivative stops growing where the square leaves the floating point range."""
        short = F.relu(1.0 - z)
        return short * short.clamp(max=math.sqrt(torch.finfo(z.dtype).max))


class PairwiseExponentialLoss(PairLoss):
    """Pairwise exponential loss ``exp(-(s_i - s_k))``, finite whenever its mean or sum over the list is.

    Source: Freund et al., *An Efficient Boosting Algorithm for Combining Preferences* (2003).

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs of a list.

    Examples:
        >>> loss = PairwiseExponentialLoss()
        >>> round(loss(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # exp(-1)
        0.3679
    """

    key = "exponential"
    convex = True
    linear_kernel = True

    def kernel(self) -> Kernel:
        """That of the exponential."""
        from ltr.losses._linear import exponential

        return exponential

    def without_pairs(self, lists: Lists) -> Tensor:
        """The sum over pairs of an exponential is a product of sums over items."""
        item, unit = item_weights(lists)
        terms, weights, source = [], [], []
        for part in two_classes(lists, item):
            upper, lower = part.two.upper.log(), part.two.lower.log()
            weight = logsumexp(upper) + logsumexp(lower)
            (log_up, bottom), (log_down, top) = (
                log_sum_exp(-part.two.scores, upper),
                log_sum_exp(part.two.scores, lower),
            )
            term = bounded(log_up + log_down + (bottom + top))
            terms.append(term.masked_fill(weight == -math.inf, -math.inf))
            weights.append(weight)
            source.append(part.source)
        log_value, has_pair = grouped_logsumexp(torch.cat(terms), torch.cat(source), len(lists.scores))
        if self.pairs == "mean":
            log_value = log_value - grouped_logsumexp(torch.cat(weights), torch.cat(source), len(lists.scores))[0]
        return self._exp(log_value, has_pair, unit, lists.scores.dtype)

    def from_pairs(self, lists: Lists) -> Tensor:
        """``exp(logsumexp(log weight - z))`` over each list's pairs, less the log of the weights' sum for a mean."""
        difference, comparable = comparable_pairs(lists, finite=True)
        pairs = (-2, -1)
        item, unit = item_weights(lists)
        log_weight = item.log().unsqueeze(-1) + item.log().unsqueeze(-2)
        log_value = kept_logsumexp(log_weight - difference, comparable, pairs)
        if self.pairs == "mean":
            log_value = log_value - kept_logsumexp(log_weight, comparable, pairs)
        return self._exp(log_value, comparable.any(pairs), unit, log_value.dtype)

    def _exp(self, log_value: Tensor, has_pair: Tensor, unit: Tensor | None, dtype: torch.dtype) -> Tensor:
        """The value from its logarithm, of weights in units."""
        if self.pairs == "sum" and unit is not None:
            log_value = log_value + 2.0 * unit.to(log_value.dtype).log()
        return bounded_exp(log_value, dtype=dtype).masked_fill(~has_pair, 0.0)


def ranknet_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    reduction: Reduction = "mean",
    pairs: PairsName = "mean",
) -> Tensor:
    """`RankNetLoss` as a function.

    Examples:
        >>> ranknet_loss(torch.zeros(3), torch.tensor([2, 1, 0]), pairs="sum")  # 3 log 2
        tensor(2.0794)
    """
    loss = RankNetLoss(reduction=reduction, pairs=pairs)
    return loss(scores, labels, mask=mask, weight=weight, qid=qid)


def pairwise_hinge_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    reduction: Reduction = "mean",
    pairs: PairsName = "mean",
) -> Tensor:
    """`PairwiseHingeLoss` as a function."""
    loss = PairwiseHingeLoss(reduction=reduction, pairs=pairs)
    return loss(scores, labels, mask=mask, weight=weight, qid=qid)


def pairwise_squared_hinge_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    reduction: Reduction = "mean",
    pairs: PairsName = "mean",
) -> Tensor:
    """`PairwiseSquaredHingeLoss` as a function."""
    loss = PairwiseSquaredHingeLoss(reduction=reduction, pairs=pairs)
    return loss(scores, labels, mask=mask, weight=weight, qid=qid)


def pairwise_exponential_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    reduction: Reduction = "mean",
    pairs: PairsName = "mean",
) -> Tensor:
    """`PairwiseExponentialLoss` as a function."""
    loss = PairwiseExponentialLoss(reduction=reduction, pairs=pairs)
    return loss(scores, labels, mask=mask, weight=weight, qid=qid)
