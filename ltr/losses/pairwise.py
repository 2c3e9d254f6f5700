"""Pairwise losses: a pair function of the score difference ``z = s_i - s_k``, averaged over comparable pairs.

The P-norm push (`PNormPushLoss`) takes powers of their sums and so presses hardest on the negatives at the top of the
list. Inputs, pairs, weights and reductions are those of `ltr.losses.contract`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from ltr.checks import check_number, one_of
from ltr.lists import Lists, check_inputs, check_qid
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
from ltr.losses.contract import PairsName, Reduction
from ltr.losses.functions import (
    EXPONENTIAL,
    HINGE,
    LOGISTIC,
    SQUARED_HINGE,
    PairFunction,
    derivative_of,
)
from ltr.losses.operators import TIMES, Lengths, list_loss
from ltr.losses.pairs import PairLoss, Part, comparable_pairs, two_classes
from ltr.losses.transforms import pair_sums, transform
from ltr.native import ListLoss

InnerName = Literal["exponential", "logistic"]
"""Name of the pair function inside a P-norm push."""

_INNER: dict[str, PairFunction] = {"exponential": EXPONENTIAL, "logistic": LOGISTIC}

_COMPILED = ((LOGISTIC, "ranknet"), (HINGE, "hinge"), (SQUARED_HINGE, "squared_hinge"))
"""The compiled mean or sum of a pair function."""
_TINY = 1e-300  # smaller than any inner sum that matters
_FAR = 2.0**900  # differences above this may have sums outside the floating point range
_LARGER = 2.0**64  # unit of weights that keeps these sums inside it


class PairwiseLoss(PairLoss):
    """``mean over pairs with labels_i > labels_k of φ(s_i - s_k)``; a subclass supplies φ.

    It either defines `pair_function`, which is enough to train with it, or sets `function` to a
    `ltr.losses.functions.PairFunction`, which may also bring near-linear sums and a certified optimum. Its constructor
    keeps each option of its own as an attribute of the same name and passes those of `RankingLoss` on
    (`docs/losses.md`).
    """

    function: PairFunction | None = None
    """The pair function; None for a subclass that defines `pair_function` alone."""

    def __init_subclass__(cls, **given: Any) -> None:  # noqa: ANN401 - passed on
        super().__init_subclass__(**given)
        if "pair_function" in vars(cls) and "function" not in vars(cls):
            cls.function = None  # facts about the function of a base class do not hold for this one

    def pair_function(self, z: Tensor) -> Tensor:
        """Return the loss of pairs whose score difference is `z`, elementwise and differentiable."""
        if self.function is None:
            raise TypeError(f"{type(self).__name__} must define pair_function(self, z) or set function")
        return self.function(z)

    @property
    def near_linear(self) -> bool:
        """Whether sums over the pairs of long lists are known that take near-linear time."""
        return self.function is not None and self.function.has("plan")

    def native(self, lists: Lengths, *, derivatives: bool = False) -> ListLoss | None:
        """Return the compiled pass over the pairs of short lists, or None if the pair function has none.

        Derivatives of the logistic function have near-linear sums there.
        """
        name = next((name for function, name in _COMPILED if function is self.function), None)
        if name is None:
            return None
        near_linear = derivatives and name == "ranknet"
        visits = near_linear or self.has_few_pairs(lists.longest, lists.pairs, times=TIMES)
        return list_loss(name, mean=self.pairs == "mean") if visits else None

    def uses_all_pairs(self, lists: Lists) -> bool:
        """Return whether to work on all pairs: if lists are short, or if there is no other way."""
        return not self.near_linear or super().uses_all_pairs(lists)

    def without_pairs(self, lists: Lists) -> Tensor:
        """Return the weighted mean or sum of the pair function, by its near-linear sums."""
        assert self.function is not None
        item, unit = item_weights(lists)
        total = lists.scores.new_zeros(len(lists.scores), dtype=torch.float64)
        weight = torch.zeros_like(total)
        for part in two_classes(lists, item):
            total = total.index_add(0, part.source, pair_sums(self.function.plan, part.two))
            if self.pairs == "mean":
                weight = weight.index_add(0, part.source, part.two.upper.sum(-1) * part.two.lower.sum(-1))
        if self.pairs == "mean":
            total = total / torch.where(weight > 0, weight, 1.0)
        else:
            total = times_unit(total, None if unit is None else unit.double(), 2)
        return total.to(lists.scores.dtype)

    def derivatives_of(self, lists: Lists) -> tuple[Tensor, Tensor]:
        """Return slopes and second derivatives, of which negative ones count as 0."""
        function = self.function
        if function is None or not self.near_linear:
            of = partial(derivative_of, self.pair_function) if function is None else function.derivative
            difference, share, unit = self._shares(lists)
            first, second = (share * of(difference, k).masked_fill(share == 0, 0.0) for k in (1, 2))
            factor = 1.0 if unit is None or self.pairs == "mean" else unit[:, None] ** 2
            slopes, curvatures = first.sum(-1) - first.sum(-2), (second.sum(-1) + second.sum(-2)).clamp(min=0.0)
            return slopes * factor, curvatures * factor
        item, unit = item_weights(lists)
        slopes, curvatures = (lists.scores.new_zeros(item.numel(), dtype=torch.float64) for _ in range(2))
        total = slopes.new_zeros(len(item))
        for part in two_classes(lists, item):
            (upper, lower), plan, at = (part.two.upper, part.two.lower), function.plan(part.two), part.items.reshape(-1)
            sums = [
                (upper * plan.apply(lower, order, False), lower * plan.apply(upper, order, True))
                for order in ((1,) if function.straight else (1, 2))
            ]
            down, up = sums[0]
            slopes.index_add_(0, at, (down - up).reshape(-1))
            down, up = (-down, -up) if function.straight else sums[1]
            curvatures.index_add_(0, at, (down + up).reshape(-1))
            total.index_add_(0, part.source, upper.sum(-1) * lower.sum(-1))
        if self.pairs == "mean":
            factor = 1.0 / torch.where(total > 0, total, 1.0)
        else:
            factor = torch.ones_like(total) if unit is None else unit.double() ** 2
        return slopes.reshape(item.shape) * factor[:, None], curvatures.reshape(item.shape) * factor[:, None]

    def _shares(self, lists: Lists) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the score difference of each pair, its share of the value, and the unit of a sum's weights."""
        difference, comparable = comparable_pairs(lists)
        item, unit = item_weights(lists)
        share = (item.unsqueeze(-1) * item.unsqueeze(-2)).masked_fill(~comparable, 0.0)
        if self.pairs == "mean":
            total = share.sum((-2, -1), keepdim=True)
            share = share / torch.where(total > 0, total, 1.0)
        return difference, share, unit

    def from_pairs(self, lists: Lists) -> Tensor:
        """Return the weighted mean or sum of the pair function over each list's comparable pairs."""
        difference, share, unit = self._shares(lists)
        # a product of weights may have underflowed while the loss of its pair is infinite
        value = (share * self.pair_function(difference)).masked_fill(share == 0, 0.0).sum((-2, -1))
        return value if self.pairs == "mean" else times_unit(value, unit, 2)


class RankNetLoss(PairwiseLoss):
    """Pairwise logistic loss ``log(1 + exp(-(s_i - s_k)))``.

    Source: Burges et al., *Learning to Rank using Gradient Descent* (2005).

    Examples:
        >>> round(RankNetLoss()(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # log(1 + exp(-1))
        0.3133
    """

    key = "ranknet"
    convex = True
    function = LOGISTIC


class PairwiseHingeLoss(PairwiseLoss):
    """Pairwise hinge loss ``max(0, 1 - (s_i - s_k))``.

    Source: Joachims, *Optimizing Search Engines using Clickthrough Data* (2002).

    Examples:
        >>> PairwiseHingeLoss(pairs="sum")(torch.tensor([2.0, 1.5, 0.0]), torch.tensor([1, 0, 0]))  # 0.5 + 0
        tensor(0.5000)
    """

    key = "hinge"
    convex = True
    function = HINGE


class PairwiseSquaredHingeLoss(PairwiseLoss):
    """Pairwise squared hinge loss ``max(0, 1 - (s_i - s_k))^2``: smooth, and zero beyond a margin of 1.

    Source: Chapelle & Keerthi, *Efficient algorithms for ranking with SVMs* (2010).

    Examples:
        >>> PairwiseSquaredHingeLoss()(torch.tensor([2.0, 1.5]), torch.tensor([1, 0]))  # (1 - 0.5)^2
        tensor(0.2500)
    """

    key = "squared_hinge"
    convex = True
    function = SQUARED_HINGE


class PairwiseExponentialLoss(PairwiseLoss):
    """Pairwise exponential loss ``exp(-(s_i - s_k))``, finite whenever its mean or sum over the list is.

    Source: Freund et al., *An Efficient Boosting Algorithm for Combining Preferences* (2003).

    Examples:
        >>> round(PairwiseExponentialLoss()(torch.tensor([2.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # exp(-1)
        0.3679
    """

    key = "exponential"
    convex = True
    function = EXPONENTIAL
    near_linear = True

    def native(self, lists: Lengths, *, derivatives: bool = False) -> ListLoss | None:
        """Return the compiled pass over the items."""
        return list_loss("exponential", mean=self.pairs == "mean")

    def without_pairs(self, lists: Lists) -> Tensor:
        """Return the weighted mean or sum: the sum over pairs of an exponential is a product of sums over items."""
        item, unit = item_weights(lists)
        terms, weights, source = [], [], []
        for part in two_classes(lists, item):
            upper, lower = part.two.upper.log(), part.two.lower.log()
            weight = logsumexp(upper) + logsumexp(lower)
            log_up, bottom = log_sum_exp(-part.two.scores, upper)
            log_down, top = log_sum_exp(part.two.scores, lower)
            term = bounded(log_up + log_down + (bottom + top))
            terms.append(term.masked_fill(weight == -math.inf, -math.inf))
            weights.append(weight)
            source.append(part.source)
        log_value, has_pair = grouped_logsumexp(torch.cat(terms), torch.cat(source), len(lists.scores))
        if self.pairs == "mean":
            log_value = log_value - grouped_logsumexp(torch.cat(weights), torch.cat(source), len(lists.scores))[0]
        return self._exp(log_value, has_pair, unit, lists.scores.dtype)

    def from_pairs(self, lists: Lists) -> Tensor:
        """Return ``exp(logsumexp(log weight + log φ(z)))``; for a mean, minus the log of the total weight inside."""
        difference, comparable = comparable_pairs(lists, finite=True)
        pairs = (-2, -1)
        item, unit = item_weights(lists)
        log_weight = item.log().unsqueeze(-1) + item.log().unsqueeze(-2)
        log_value = kept_logsumexp(log_weight + EXPONENTIAL.log(difference), comparable, pairs)
        if self.pairs == "mean":
            log_value = log_value - kept_logsumexp(log_weight, comparable, pairs)
        return self._exp(log_value, comparable.any(pairs), unit, log_value.dtype)

    def _exp(self, log_value: Tensor, has_pair: Tensor, unit: Tensor | None, dtype: torch.dtype) -> Tensor:
        """Return the value from its logarithm, given that weights were divided by the unit."""
        if self.pairs == "sum" and unit is not None:
            log_value = log_value + 2.0 * unit.to(log_value.dtype).log()
        return bounded_exp(log_value, dtype=dtype).masked_fill(~has_pair, 0.0)


class MarginMSELoss(PairwiseLoss):
    """Squared error of score differences, ``((s_i - s_k) - (y_i - y_k))^2``, over all pairs of long lists, too.

    The labels y are the scores of a teacher; those of a floating point type may be negative.

    Source: Hofstätter, Althammer, Schröder, Sertkan & Hanbury, *Improving Efficient Neural Ranking Models with
    Cross-Architecture Knowledge Distillation* (2020).

    Examples:
        >>> MarginMSELoss()(torch.tensor([2.0, 1.0]), torch.tensor([0.5, -2.5]))  # (1 - 3)^2
        tensor(4.)
    """

    key = "margin_mse"
    convex = True

    def pair_function(self, z: Tensor) -> Tensor:
        """Return the square, whose derivative stops growing where the square leaves the range."""
        limit = math.sqrt(torch.finfo(z.dtype).max)
        return z * z.clamp(-limit, limit)

    def _shares(self, lists: Lists) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the error of each pair's difference in place of the difference."""
        difference, share, unit = super()._shares(lists)
        largest = torch.finfo(difference.dtype).max
        wanted = (lists.labels.unsqueeze(-1) - lists.labels.unsqueeze(-2)).clamp(-largest, largest)
        return difference - wanted.masked_fill(share == 0, 0.0), share, unit


class PNormPushLoss(PairLoss):
    r"""P-norm push: the p-th power of the pairwise losses of each negative.

    With ``P_k = {i : labels_i > labels_k}``, the positives of item k, and the inner loss ``l(z) = exp(-z)`` (the
    paper's) or, with ``inner="logistic"``, ``l(z) = log(1 + exp(-z))``, the value of a list is

    * ``pairs="sum"``, the paper's:  ``sum over k of  weight_k (sum over i in P_k of  weight_i l(s_i - s_k))^p``
    * ``pairs="mean"``:  the mean over all k with ``P_k`` not empty, weighted by ``weight_k``, of
      ``(mean over i in P_k, weighted by weight_i, of l(s_i - s_k))^p``.

    The power p is at least 1. Sums are taken in the log domain: the value is finite whenever it is representable.

    Source: Rudin, *The P-Norm Push: A Simple Convex Ranking Algorithm that Concentrates at the Top of the List* (2009).

    Examples:
        >>> loss = PNormPushLoss(p=2, pairs="sum")
        >>> scores, labels = torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1, 1, 0])
        >>> round(loss(scores, labels).item(), 4)  # (exp(-1) + exp(-2))^2
        0.2532
    """

    key = "p_norm_push"
    convex = True
    always_named = ("p",)

    def __init__(
        self,
        *,
        p: float = 2.0,
        inner: InnerName = "exponential",
        reduction: Reduction = "mean",
        pairs: PairsName = "mean",
    ) -> None:
        super().__init__(reduction=reduction, pairs=pairs)
        check_number("p", p, least=1)
        self.p = float(p)
        self.inner = one_of("inner", inner, _INNER)

    @property
    def function(self) -> PairFunction:
        """The inner pair function."""
        return _INNER[self.inner]

    def native(self, lists: Lengths, *, derivatives: bool = False) -> ListLoss | None:
        """Return the compiled pass over the pairs of short lists, or over the items for the exponential."""
        if self.function is not EXPONENTIAL and not self.has_few_pairs(lists.longest, lists.pairs, times=TIMES):
            return None
        return list_loss(f"{self.inner}_push", mean=self.pairs == "mean", power=self.p)

    def without_pairs(self, lists: Lists) -> Tensor:
        """Return the values from inner sums by part: a product of exponentials, or near-linear sums."""
        return self._from_parts(lists, two_classes(lists, item_weights(lists)[0]))

    def derivatives_of(self, lists: Lists) -> tuple[Tensor, Tensor]:
        """Return slopes, and the bound of `ltr/native/pair_losses.cpp` on second derivatives."""
        # an item is the upper one or the lower one of all its pairs in a part, so that its slope there has one sign
        parts = [
            replace(part, two=replace(part.two, scores=part.two.scores.detach().requires_grad_()))
            for part in two_classes(lists, item_weights(lists)[0])
        ]
        value = self._from_parts(lists, parts).sum()
        slopes, sizes = (lists.scores.new_zeros(lists.scores.numel(), dtype=torch.float64) for _ in range(2))
        if value.requires_grad:
            found = torch.autograd.grad(value, [part.two.scores for part in parts])
            for part, slope in zip(parts, found, strict=True):
                slopes.index_add_(0, part.items.reshape(-1), slope.reshape(-1))
                sizes.index_add_(0, part.items.reshape(-1), slope.abs().reshape(-1))
        return slopes.reshape(lists.scores.shape), self.p * sizes.reshape(lists.scores.shape)

    def _from_parts(self, lists: Lists, parts: Iterable[Part]) -> Tensor:
        shape = lists.scores.shape
        weight, heaviest = item_weights(lists)
        inner, above, items = [], [], []
        for part in parts:
            two = part.two
            low = two.lower > 0
            log_above = logsumexp(two.upper.log()).unsqueeze(-1).expand_as(two.scores)
            if self.function is EXPONENTIAL:
                log_up, bottom = log_sum_exp(-two.scores, two.upper.log())
                log_inner = bounded(log_up.unsqueeze(-1) + (two.scores + bottom.unsqueeze(-1)))
            else:
                # charges small enough that their sums stay within the range
                lowest = two.scores.detach().masked_fill(two.upper == 0, math.inf).amin(-1, keepdim=True)
                highest = two.scores.detach().masked_fill(two.lower == 0, -math.inf).amax(-1, keepdim=True)
                far = highest - lowest > _FAR
                unit = two.upper.amax(-1, keepdim=True)
                unit = torch.where(unit > 0, unit, 1.0) * torch.ones_like(unit).masked_fill(far, _LARGER)
                sums = transform(self.function.plan, two, two.upper / unit, up=True)
                log_inner = sums.clamp(min=_TINY).log() + unit.log()
            log_inner = log_inner.masked_fill(log_above == -math.inf, -math.inf)
            inner.append(log_inner[low])
            above.append(log_above[low])
            items.append(part.items[low])
        index = torch.cat(items)
        log_inner, counted = (x.reshape(shape) for x in grouped_logsumexp(torch.cat(inner), index, weight.numel()))
        if self.pairs == "mean":
            log_inner = log_inner - grouped_logsumexp(torch.cat(above), index, weight.numel())[0].reshape(shape)
        return self._pushed(log_inner, counted, weight, heaviest, lists.scores.dtype)

    def from_pairs(self, lists: Lists) -> Tensor:
        """Return ``exp(logsumexp over k of p logsumexp over i)`` of the logarithms of inner loss and weights."""
        difference, comparable = comparable_pairs(lists, finite=True)
        counted = comparable.any(-2)
        weight, heaviest = item_weights(lists)
        log_above = weight.log().unsqueeze(-1).expand_as(difference)
        log_inner = kept_logsumexp(log_above + self.function.log(difference), comparable, -2)
        if self.pairs == "mean":
            log_inner = log_inner - kept_logsumexp(log_above, comparable, -2)
        return self._pushed(log_inner, counted, weight, heaviest, log_inner.dtype)

    def _pushed(
        self, log_inner: Tensor, counted: Tensor, weight: Tensor, heaviest: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """Return the value from the logarithms of the inner sums or means of the items that have one."""
        log_weight = weight.double().log()
        log_value = kept_logsumexp(log_weight + bounded(self.p * log_inner.double()), counted, -1)
        if self.pairs == "mean":
            log_value = log_value - kept_logsumexp(log_weight, counted, -1)
        elif heaviest is not None:
            log_value = log_value + (self.p + 1.0) * heaviest.double().log()
        return bounded_exp(log_value, slope=self.p, dtype=dtype).masked_fill(~counted.any(-1), 0.0)


PairName = Literal["ranknet", "hinge", "squared_hinge", "exponential"]
"""The pairwise losses that losses of times and of treatments are made of."""

_OF_TWO_CLASSES: dict[str, type[PairwiseLoss]] = {
    loss.key: loss for loss in (RankNetLoss, PairwiseHingeLoss, PairwiseSquaredHingeLoss, PairwiseExponentialLoss)
}


class TwoFieldLoss(nn.Module):
    """The options of losses of labels of two fields: the function of a pair, and how pairs are reduced."""

    def __init__(self, pair: PairName = "ranknet", *, pairs: PairsName = "mean") -> None:
        super().__init__()
        self.pair = one_of("pair", pair, get_args(PairName))
        self.pairs = one_of("pairs", pairs, get_args(PairsName))

    def extra_repr(self) -> str:
        """Return the options."""
        return f"pair={self.pair!r}, pairs={self.pairs!r}"


def two_class_loss(
    pair: PairName, scores: Tensor, upper: Tensor, block: Tensor, weight: Tensor | None, total: Tensor | None
) -> Tensor:
    """Return the sum of ``w_i w_k φ(s_i - s_k)`` over the upper rows i and the lower rows k of each block, 0-D.

    The numbers of the blocks ascend. The sum is divided by `total`, if given, without leaving the range on the way.
    """
    if not len(scores):
        return scores.sum()
    labels = upper.long()
    if total is None:
        return _OF_TWO_CLASSES[pair](reduction="sum", pairs="sum")(scores, labels, qid=block, weight=weight)
    number, rows = torch.unique_consecutive(block, return_inverse=True, return_counts=True)[1:]
    own = torch.ones(len(scores), dtype=torch.float64, device=scores.device) if weight is None else weight.double()
    sums = torch.zeros(2, len(rows), dtype=torch.float64, device=scores.device)
    sums.view(-1).index_add_(0, labels * len(rows) + number, own)
    share = (sums[0] * sums[1] / total)[number]
    loss = _OF_TWO_CLASSES[pair](reduction="sum", pairs="mean")
    return loss(scores, labels, qid=number, weight=weight, list_weight=share)


def check_rows(
    scores: Tensor, numbers: dict[str, Tensor], answers: dict[str, Tensor], weight: Tensor | None, qid: Tensor | None
) -> Tensor:
    """Check the inputs of a loss of labels of two fields, (rows,) each, and return the second field as booleans.

    `numbers` has the first field by its name, `answers` the second: booleans, or 0 and 1.
    """
    for name, tensor in (numbers | answers).items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
        if isinstance(scores, Tensor) and (tensor.shape != scores.shape or scores.ndim != 1):
            rule = "one number for each row, of the shape (rows,) of scores; squeeze(-1) what has a last axis of 1"
            raise ValueError(f"{name} must be {rule}, got {tuple(tensor.shape)} and scores {tuple(scores.shape)}")
        check_inputs(scores, tensor, None, weight)
    check_qid(scores, qid)
    finite = {"scores": scores} | numbers | ({} if weight is None else {"weight": weight})
    for name, tensor in finite.items():
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"{name} must be finite, got NaN or an infinite number")
    if weight is not None and not bool((weight >= 0).all()):
        raise ValueError("weight must hold numbers >= 0, got a negative one")
    [(name, answer)] = answers.items()
    if not bool(((answer == 0) | (answer == 1)).all()):
        raise ValueError(f"{name} must hold booleans, or 0 and 1, got other numbers")
    return answer.bool()
