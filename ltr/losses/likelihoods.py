"""Losses that are negative log-likelihoods: of each label (logistic), of the top item, or of the order of a list.

Inputs, weights and reductions are those of `ltr.losses.contract`; an item of weight 2 counts like two items.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.checks import check_number
from ltr.lists import Lists
from ltr.losses.arithmetic import item_weights, times_unit, widened, with_gradient_of, with_small_gaps
from ltr.losses.contract import RankingLoss, Reduction
from ltr.losses.functions import LOGISTIC
from ltr.losses.operators import Lengths, list_loss
from ltr.native import ListLoss

_LARGE = 1000.0  # larger scores lose digits that sums of exponentials need


class _ItemLoss(RankingLoss):
    """A loss that is a weighted mean or sum of the losses of items."""

    def _over_items(self, values: Tensor, weight: Tensor, unit: Tensor | None, *, finite: bool = False) -> Tensor:
        """Return the mean or sum of the items' values, by `item_weights`; `finite` where none is infinite."""
        if self.pairs == "mean":
            total = weight.sum(-1, keepdim=True)
            weight = weight / torch.where(total > 0, total, 1.0)
        terms = weight * values
        value = (terms if finite else terms.masked_fill(weight == 0, 0.0)).sum(-1)
        return value if self.pairs == "mean" else times_unit(value, unit, 1)


class LogisticLoss(_ItemLoss):
    """Logistic loss of single items, ``log(1 + exp(-s))`` for label 1 and ``log(1 + exp(s))`` for label 0, no others.

    Examples:
        >>> loss = LogisticLoss()
        >>> round(loss(torch.tensor([1.0, -1.0]), torch.tensor([1, 0])).item(), 4)  # log(1 + exp(-1)), twice
        0.3133
    """

    key = compiled = "logistic"
    convex = True
    function = LOGISTIC

    def list_values(self, lists: Lists) -> Tensor:
        """Return the weighted mean or sum of the items' losses."""
        positive = lists.labels == 1
        other = lists.labels[~positive & (lists.labels != 0)]
        if other.numel():
            raise ValueError(f"labels must be 0 or 1 for the logistic loss, got {float(other[0]):g}")
        weight, unit = item_weights(lists)
        values = self.function(torch.where(positive, lists.scores, -lists.scores))
        return self._over_items(values, weight, unit, finite=True)


class ListNetLoss(RankingLoss):
    """Cross entropy of the top-one probabilities of labels and scores.

    ``- sum over i of  P_i log Q_i,   P = softmax(labels / temperature),  Q = softmax(scores)``

    over the items of a list: Q_i is the probability that i comes first if items are drawn in proportion to exp(score).
    The temperature, > 0, is the difference of labels at which one item is drawn e times as often as another.

    Source: Cao, Qin, Liu, Tsai & Li, *Learning to Rank: From Pairwise Approach to Listwise Approach* (2007), at
    temperature 1.

    Examples:
        >>> loss = ListNetLoss()
        >>> round(loss(torch.tensor([1.0, 0.0]), torch.tensor([1, 0])).item(), 4)  # the entropy of (0.7311, 0.2689)
        0.5822
    """

    key = "list_net"
    convex = True
    signed = True

    def __init__(self, *, reduction: Reduction = "mean", temperature: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        check_number("temperature", temperature, above=0)
        self.temperature = float(temperature)

    def native(self, lists: Lengths, *, derivatives: bool = False) -> ListLoss | None:
        """Return the compiled pass over the items."""
        return list_loss("list_net", temperature=self.temperature)

    def list_values(self, lists: Lists) -> Tensor:
        """Return the cross entropy; weights multiply the probability of an item in both distributions."""
        log_p, log_q, log_weight = self._logarithms(lists, lists.scores)
        top = log_p.exp()
        if log_weight is not None:
            log_q = log_q - log_weight
        # where P is 0 the logarithm of Q may be infinite
        return -(top * log_q).masked_fill(top == 0, 0.0).sum(-1)

    def _logarithms(self, lists: Lists, scores: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return log P and log Q of the items, -inf for those that do not count, and the logarithms of weights."""
        weight, unit = item_weights(lists)
        real = weight > 0
        log_weight = None if unit is None else _log_weights(weight, unit).masked_fill(~real, 0.0)
        log_p = F.log_softmax(_log_odds(_cooled(lists.labels, real, self.temperature), log_weight, real), -1)
        log_q = F.log_softmax(_log_odds(scores, log_weight, real), -1)
        return log_p.masked_fill(~real, -math.inf), log_q.masked_fill(~real, -math.inf), log_weight


class KLLoss(ListNetLoss):
    """Divergence of the top-one probabilities of scores from those of a teacher's scores, the labels.

    ``temperature² · sum over i of  P_i log(P_i / Q_i),   P = softmax(labels / temperature),
    Q = softmax(scores / temperature)``

    At temperature 1 its gradient is ListNet's; the factor keeps the size of the gradient as the temperature rises.
    Labels of a floating point type may be negative.

    Source: Hinton, Vinyals & Dean, *Distilling the Knowledge in a Neural Network* (2015).

    Examples:
        >>> teacher = torch.tensor([0.5, -0.5])  # P = (0.7311, 0.2689)
        >>> round(KLLoss()(torch.tensor([0.0, 0.0]), teacher).item(), 4)  # log 2 less the entropy of P, 0.5822
        0.1109
    """

    key = "kl"

    def native(self, lists: Lengths, *, derivatives: bool = False) -> ListLoss | None:
        """Return None: a difference of ListNet and an entropy would lose the digits of a small divergence."""
        return None

    def list_values(self, lists: Lists) -> Tensor:
        """Return the divergence; weights multiply the probability of an item in both distributions."""
        top, log_p, log_q = self._distributions(lists)
        excess = self.temperature * (self.temperature * (log_p - log_q))
        values = (top * excess).masked_fill(top == 0, 0.0).sum(-1)
        return with_gradient_of(values.clamp(min=0.0), values).to(lists.scores.dtype)  # rounding may be below 0

    def derivatives_of(self, lists: Lists) -> tuple[Tensor, Tensor]:
        """Return slopes and second derivatives, ``temperature (Q - P)`` and ``Q (1 - Q)``."""
        p, _, log_q = self._distributions(lists)
        q = log_q.exp()
        return self.temperature * (q - p), q * (1 - q)

    def _distributions(self, lists: Lists) -> tuple[Tensor, Tensor, Tensor]:
        """Return P, log P and log Q in float64; 0 and -inf for items that do not count."""
        lists = replace(lists, scores=widened(lists.scores), labels=lists.labels.double())
        real = item_weights(lists)[0] > 0
        log_p, log_q, _ = self._logarithms(lists, _cooled(lists.scores, real, self.temperature))
        return log_p.exp(), log_p, log_q


class SoftmaxLoss(_ItemLoss):
    """Cross entropy of the labels and the top-one probabilities of the scores.

    ``sum or weighted mean over i of  labels_i * -log Q_i,   Q = softmax(scores)``

    over the items of a list, which in the mean have the weights `labels`: any numbers >= 0, such as 1 / propensity of a
    click, for which ``pairs="sum"`` is unbiased. With weights w, Q_i is ``exp(s_i) / sum over k of w_k exp(s_k)`` and
    item i counts w_i times: drawn items of weight 1 / q estimate the sum over all items (the logQ correction).

    Sources: Bruch, Wang, Bendersky & Najork, *An Analysis of the Softmax Cross Entropy Loss for Learning-to-Rank with
    Binary Relevance* (2019); Bengio & Senécal, *Adaptive Importance Sampling to Accelerate Training of a Neural
    Probabilistic Language Model* (2008), for drawn items.

    Examples:
        >>> loss = SoftmaxLoss()
        >>> round(loss(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([1, 0, 0])).item(), 4)  # log(e + 2) - 1
        0.5514
    """

    key = compiled = "softmax"
    convex = True

    def list_values(self, lists: Lists) -> Tensor:
        """Return the cross entropy, whose labels are divided by the largest of the list before they are added up."""
        weight, unit = item_weights(lists)
        largest = lists.labels.masked_fill(~lists.mask, 0.0).amax(-1)
        shares = weight * (lists.labels / torch.where(largest > 0, largest, 1.0).unsqueeze(-1))
        log_weight = None if unit is None else _log_weights(weight, unit).masked_fill(weight == 0, 0.0)
        missing = -F.log_softmax(_log_odds(lists.scores, log_weight, weight > 0), -1)
        if log_weight is not None:
            missing = missing + log_weight
        return times_unit(self._over_items(missing, shares, unit), largest if self.pairs == "sum" else None, 1)


class ListMLELoss(_ItemLoss):
    r"""Negative log-likelihood of the order of the labels, if items are drawn from the top in proportion to exp(score).

    ``sum or mean over i of  log( sum over k with labels_k <= labels_i of exp(s_k) ) - s_i``

    over the items i that have one of a lower label. If all labels differ, this is the Plackett-Luce likelihood; items
    of one label are each drawn from all that are not above it (Breslow's treatment of ties).

    Source: Xia, Liu, Wang, Zhang & Li, *Listwise Approach to Learning to Rank: Theory and Algorithm* (2008); Breslow,
    *Covariance Analysis of Censored Survival Data* (1974), for ties.

    Examples:
        >>> loss = ListMLELoss(pairs="sum")
        >>> round(loss(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([2, 1, 0])).item(), 4)  # log(e + 2) - 1 + log 2
        1.2446
    """

    key = compiled = "list_mle"
    convex = True
    signed = True

    def list_values(self, lists: Lists) -> Tensor:
        """Return the negative log-likelihood, from sums of exponentials up to each label."""
        weight, unit = item_weights(lists)
        real = weight > 0
        labels, order = torch.where(real, lists.labels, math.inf).sort(dim=-1)
        log_weight = _log_weights(weight, unit)
        log_weight, scores, real, weight = (x.gather(-1, order) for x in (log_weight, lists.scores, real, weight))
        last = torch.searchsorted(labels, labels, right=True) - 1
        missing = _less_running_logsumexp(scores, log_weight, real, last)
        return self._over_items(missing, weight.masked_fill(~(real & (labels > labels[..., :1])), 0.0), unit)


def _cooled(values: Tensor, real: Tensor, temperature: float) -> Tensor:
    """Return labels or scores over the temperature, but for a constant: the largest of a list becomes 0."""
    if temperature == 1:
        return values
    largest = values.detach().masked_fill(~real, -math.inf).amax(-1, keepdim=True)
    return ((values - largest.masked_fill(largest == -math.inf, 0.0)).double() / temperature).to(values.dtype)


def _log_weights(weight: Tensor, unit: Tensor | None) -> Tensor:
    return weight.log() if unit is None else weight.log() + unit.log().unsqueeze(-1)


def _log_odds(values: Tensor, log_weight: Tensor | None, real: Tensor) -> Tensor:
    """Return the log odds of drawing each item, -inf for items that are not real where others are."""
    if log_weight is not None:
        # added to a large value, a weight would be lost
        largest = values.detach().masked_fill(~real, -math.inf).amax(-1, keepdim=True)
        values = values - largest.masked_fill(largest == -math.inf, 0.0) + log_weight
    return values.masked_fill(~real & real.any(-1, keepdim=True), -math.inf)


def _less_running_logsumexp(scores: Tensor, log_weight: Tensor, real: Tensor, last: Tensor) -> Tensor:
    """Return the ``log sum exp`` of the weighted scores up to `last`, minus each score; real items come first."""
    # items that are not real come last; a finite number keeps their gradient 0 instead of NaN
    lowest = torch.finfo(scores.dtype).min / 4
    if not bool((scores.detach().abs() > _LARGE).any()):
        return torch.where(real, scores + log_weight, lowest).logcumsumexp(-1).gather(-1, last) - scores
    # large scores are moved closer together, so that sums and their gradient keep their digits
    near = with_gradient_of(with_small_gaps(scores), scores.double())
    sums = torch.where(real, near + log_weight, lowest).logcumsumexp(-1).gather(-1, last)
    # the distance to the highest score that moving closer removed
    far, close = (torch.where(real, x, -math.inf).cummax(-1).values.gather(-1, last) - x for x in (scores, near))
    return (sums - near + (far.double() - close).detach()).to(scores.dtype)
