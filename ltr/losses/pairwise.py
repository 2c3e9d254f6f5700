"""Pairwise losses: a pair function of the score difference ``z = s_i - s_k``, averaged over comparable pairs.

================================  ==================  ==========================================
loss                              pair function       known as
================================  ==================  ==========================================
`RankNetLoss`                     log(1 + exp(-z))    RankNet, pairwise logistic
`PairwiseHingeLoss`               max(0, 1 - z)       ranking SVM
`PairwiseSquaredHingeLoss`        max(0, 1 - z)^2
`PairwiseExponentialLoss`         exp(-z)             RankBoost's objective
================================  ==================  ==========================================

The pair functions are those of `ltr.losses.functions`; inputs, pairs, weights and reductions those of
`ltr.losses.contract`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from ltr.lists import Lists
from ltr.losses.arithmetic import (
    bounded,
    bounded_exp,
    grouped_logsumexp,
    item_weights,
    kept_logsumexp,
    log_sum_exp,
    logsumexp,
    times_unit,
)
from ltr.losses.contract import as_function
from ltr.losses.functions import EXPONENTIAL, HINGE, LOGISTIC, SQUARED_HINGE, PairFunction
from ltr.losses.pairs import PairLoss, comparable_pairs, two_classes
from ltr.losses.transforms import pair_sums

if TYPE_CHECKING:
    from ltr.losses._short_lists import Kernel


class PairwiseLoss(PairLoss):
    """``mean over pairs with labels_i > labels_k of φ(s_i - s_k)``; a subclass supplies φ.

    A subclass either defines `pair_function`, which is enough to train with it, or sets `function` to a
    `ltr.losses.functions.PairFunction`, which may also bring compiled and near-linear sums and a certified optimum.
    Its constructor keeps each option as an attribute of the same name and passes the others on.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs of a list.

    Raises:
        TypeError: when called, a subclass that supplies neither.

    Examples:
        >>> class Softened(PairwiseLoss):
        ...     convex = True
        ...
        ...     def __init__(self, *, width: float = 1.0, **options):
        ...         super().__init__(**options)
        ...         self.width = width
        ...
        ...     def pair_function(self, z):
        ...         return torch.logaddexp(torch.zeros_like(z), -z / self.width)
        >>> loss = Softened(width=0.5)
        >>> round(loss(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # log(1 + exp(-2))
        0.1269
    """

    function: PairFunction | None = None
    """The pair function; None for a subclass that defines `pair_function` alone."""

    def __init_subclass__(cls, **given: Any) -> None:  # noqa: ANN401 - passed on
        super().__init_subclass__(**given)
        if "pair_function" in vars(cls) and "function" not in vars(cls):
            cls.function = None  # what a base class knows of its function does not hold for this one

    def pair_function(self, z: Tensor) -> Tensor:
        """Return the loss of pairs whose score difference is `z`, elementwise and differentiable."""
        if self.function is None:
            raise TypeError(f"{type(self).__name__} must define pair_function(self, z) or set function")
        return self.function(z)

    @property
    def near_linear(self) -> bool:
        """Whether sums over the pairs of long lists are known that take near-linear time."""
        return self.function is not None and self.function.has("plan")

    def kernel(self) -> Kernel | None:
        """Return the compiled pass over the pairs of short lists, None where the pair function has none."""
        if self.function is None or not self.function.has("scalar"):
            return None
        from ltr.losses._short_lists import pairwise

        return pairwise(self.function)

    def looks_at_pairs(self, lists: Lists) -> bool:
        """Return whether to work on all pairs: where lists are short, or where there is no other way."""
        return not self.near_linear or super().looks_at_pairs(lists)

    def without_pairs(self, lists: Lists) -> Tensor:
        """Return the weighted mean or sum of the pair function, by its near-linear sums."""
        assert self.function is not None
        item, unit = item_weights(lists)
        total = lists.scores.new_zeros(len(lists.scores), dtype=torch.float64)
        weight = torch.zeros_like(total)
        for part in two_classes(lists, item):
            total = total.index_add(0, part.source, pair_sums(self.function, part.two))
            if self.pairs == "mean":
                weight = weight.index_add(0, part.source, part.two.upper.sum(-1) * part.two.lower.sum(-1))
        if self.pairs == "mean":
            total = total / torch.where(weight > 0, weight, 1.0)
        else:
            total = times_unit(total, None if unit is None else unit.double(), 2)
        return total.to(lists.scores.dtype)

    def from_pairs(self, lists: Lists) -> Tensor:
        """Return the weighted mean or sum of the pair function over each list's comparable pairs."""
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
    """Pairwise logistic loss ``log(1 + exp(-(s_i - s_k)))``, with the options of `PairwiseLoss`.

    Source: Burges et al., *Learning to Rank using Gradient Descent* (2005).

    Examples:
        >>> loss = RankNetLoss()
        >>> round(loss(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # log(1 + exp(-1))
        0.3133
    """

    key = "ranknet"
    convex = True
    function = LOGISTIC


class PairwiseHingeLoss(PairwiseLoss):
    """Pairwise hinge loss ``max(0, 1 - (s_i - s_k))``, with the options of `PairwiseLoss`.

    Source: Joachims, *Optimizing Search Engines using Clickthrough Data* (2002).

    Examples:
        >>> PairwiseHingeLoss(pairs="sum")(torch.tensor([2.0, 1.5, 0.0]), torch.tensor([1, 0, 0]))  # 0.5 + 0
        tensor(0.5000)
    """

    key = "hinge"
    convex = True
    function = HINGE


class PairwiseSquaredHingeLoss(PairwiseLoss):
    """Pairwise squared hinge loss ``max(0, 1 - (s_i - s_k))^2``, with the options of `PairwiseLoss`.

    It is smooth, and zero beyond a margin of 1.

    Source: Chapelle & Keerthi, *Efficient algorithms for ranking with SVMs* (2010).

    Examples:
        >>> PairwiseSquaredHingeLoss()(torch.tensor([2.0, 1.5]), torch.tensor([1, 0]))  # (1 - 0.5)^2
        tensor(0.2500)
    """

    key = "squared_hinge"
    convex = True
    function = SQUARED_HINGE


class PairwiseExponentialLoss(PairwiseLoss):
    """Pairwise exponential loss ``exp(-(s_i - s_k))``, with the options of `PairwiseLoss`.

    It is finite whenever its mean or sum over the list is.

    Source: Freund et al., *An Efficient Boosting Algorithm for Combining Preferences* (2003).

    Examples:
        >>> loss = PairwiseExponentialLoss()
        >>> round(loss(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # exp(-1)
        0.3679
    """

    key = "exponential"
    convex = True
    function = EXPONENTIAL
    near_linear = True
    linear_kernel = True

    def kernel(self) -> Kernel:
        """Return the compiled pass over the items."""
        from ltr.losses._exponentials import exponential

        return cast("Kernel", exponential)

    def without_pairs(self, lists: Lists) -> Tensor:
        """Return the weighted mean or sum: the sum over pairs of an exponential is a product of sums over items."""
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
        """Return ``exp(logsumexp(log weight + log φ(z)))``, for a mean less the log of the total weight."""
        difference, comparable = comparable_pairs(lists, finite=True)
        pairs = (-2, -1)
        item, unit = item_weights(lists)
        log_weight = item.log().unsqueeze(-1) + item.log().unsqueeze(-2)
        log_value = kept_logsumexp(log_weight + EXPONENTIAL.log(difference), comparable, pairs)
        if self.pairs == "mean":
            log_value = log_value - kept_logsumexp(log_weight, comparable, pairs)
        return self._exp(log_value, comparable.any(pairs), unit, log_value.dtype)

    def _exp(self, log_value: Tensor, has_pair: Tensor, unit: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Return the value from its logarithm, of weights in units."""
        if self.pairs == "sum" and unit is not None:
            log_value = log_value + 2.0 * unit.to(log_value.dtype).log()
        return bounded_exp(log_value, dtype=dtype).masked_fill(~has_pair, 0.0)


ranknet_loss = as_function(RankNetLoss, "ranknet_loss")
pairwise_hinge_loss = as_function(PairwiseHingeLoss, "pairwise_hinge_loss")
pairwise_squared_hinge_loss = as_function(PairwiseSquaredHingeLoss, "pairwise_squared_hinge_loss")
pairwise_exponential_loss = as_function(PairwiseExponentialLoss, "pairwise_exponential_loss")
