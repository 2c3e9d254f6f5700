"""Losses made from any rank statistic of `ltr.statistics`, with graded gains.

Both compare with the ideal value of a list, reached by gains in descending order, and are 0 if it is 0. They do not
accept item weights, because positions count items; otherwise they keep `ltr.losses.contract`. Where hits are counted,
every label above 0 has gain 1.
"""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import get_args

import torch
from torch import Tensor

from ltr.checks import check_number, one_of
from ltr.lists import Lists
from ltr.losses.arithmetic import widened, with_gradient_of, with_small_gaps
from ltr.losses.contract import PairsName, RankingLoss, Reduction
from ltr.losses.derivatives import derivatives
from ltr.losses.functions import LOGISTIC
from ltr.losses.operators import TIMES, Lengths, statistic_loss
from ltr.losses.pairs import comparable_pairs, on_rows
from ltr.losses.transforms import TwoClasses, transform
from ltr.native import ListLoss
from ltr.ranks import GAIN, GainName, check_finite, gains_of, order_items, position_weights
from ltr.statistics import RankStatistic

_LARGE = 2.0**512  # as in `ltr/native/statistic_losses.cpp`


class _StatisticLoss(RankingLoss):
    """The shared part of losses of a rank statistic: its weights, gains, and the ideal value of a list."""

    always_named = ("statistic",)

    def __init__(
        self,
        *,
        statistic: RankStatistic | str = "dcg",
        gain: GainName = GAIN,
        reduction: Reduction = "mean",
        pairs: PairsName = "mean",
    ) -> None:
        super().__init__(reduction=reduction, pairs=pairs)
        self.statistic = RankStatistic.parse(statistic)
        self.statistic.check_linear()
        self.gain = one_of("gain", gain, get_args(GainName))

    def list_values(self, lists: Lists) -> Tensor:
        """Return the value of each list, in float64 inside."""
        self._check_unweighted(lists.weight is not None)
        return on_rows(self._row_values, replace(lists, scores=widened(lists.scores))).to(lists.scores.dtype)

    def native(self, lists: Lengths, *, derivatives: bool = False) -> ListLoss | None:
        """Return the compiled pass over the pairs; None for weights of items, which `list_values` refuses."""
        if lists.weighted and not derivatives:
            return None
        self._check_unweighted(lists.weighted)
        return self._compiled(lists)

    def _check_unweighted(self, weighted: bool) -> None:
        if weighted:
            raise ValueError(
                f"{self.key} takes no weights of items, because positions count items: weight whole lists, or take a "
                "pairwise loss, such as ranknet"
            )

    @abc.abstractmethod
    def _compiled(self, lists: Lengths) -> ListLoss | None: ...

    @abc.abstractmethod
    def _row_values(self, lists: Lists) -> Tensor:
        """Return the value of each list, float64, for lists of shape (lists, items)."""

    def _parts(self, lists: Lists) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gains, the weights of positions, and the ideal value."""
        gains = self._gains(lists)
        weights = position_weights(self.statistic, lists.mask.sum(-1), lists.scores.shape[-1])
        ideal = (gains.sort(-1, descending=True).values * weights).sum(-1)
        check_finite(ideal, self.statistic, lists.labels)
        if self.pairs == "mean":
            # sums over pairs of large gains overflow where their share of the ideal value does not
            unit = torch.ones_like(ideal).masked_fill(ideal > _LARGE, 1.0 / _LARGE)
            gains, ideal = gains * unit.unsqueeze(-1), ideal * unit
        return gains, weights, ideal

    def _gains(self, lists: Lists) -> Tensor:
        """Return the gain of each item, 0 in padding."""
        kind, labels = self.statistic.kind, lists.labels.double()
        if not kind.counts_hits:
            return gains_of(labels, self.gain).masked_fill(~lists.mask, 0.0)
        found = ((labels > 0) & lists.mask).double()
        if self.pairs == "mean" or not kind.share_of:  # factors of a list cancel in a share of its ideal value
            return found
        if kind.share_of == "top" and self.statistic.cutoff is not None:
            return found / self.statistic.cutoff
        return found / found.sum(-1, keepdim=True).clamp(min=1.0)

    def _share(self, value: Tensor, ideal: Tensor, lists: Lists) -> Tensor:
        """Return the value over the ideal one, or the pairs for ``auc``, or for sums itself; 0 without a pair."""
        lowest = lists.labels.masked_fill(~lists.mask, torch.inf).amin(-1)
        whole = ideal.masked_fill(lists.labels.amax(-1) <= lowest, 0.0)  # in padding labels are 0, gains >= 0
        if self.statistic.kind.share_of_pairs:
            self.statistic.check_labels(graded=bool(((lists.labels != 0) & (lists.labels != 1)).any()))
            positives = lists.labels.double().sum(-1)
            whole = positives * (lists.mask.sum(-1) - positives)
        divisor = torch.where(whole > 0, whole, 1.0) if self.pairs == "mean" else torch.ones_like(whole)
        return (value / divisor).masked_fill(whole <= 0, 0.0)


class SmoothStatisticLoss(_StatisticLoss):
    """Shortfall of a rank statistic with smooth positions from its ideal value, as a share of it.

    ``1 - (sum over i of  gain_i A(p_i)) / ideal,    p_i = sum over k != i of  sigmoid((s_k - s_i) / temperature)``

    with A the weights of the statistic by position, 0 at the top, interpolated linearly. As the temperature goes to 0
    the positions become those of a list without ties, and the loss 1 minus the normalised statistic (for ``auc`` 1
    minus the share of pairs in order). It is not convex. With ``pairs="sum"`` it is the difference itself.

    Source: Taylor, Guiver, Robertson & Minka, *SoftRank* (2008), and Qin, Liu & Li, *A general approximation framework
    for direct optimization of information retrieval measures* (2010), for such positions.

    Args:
        statistic: a `RankStatistic` or its name.
        gain: gain of a label, ``"exp2"`` for ``2**label - 1`` or ``"linear"`` for the label itself.
        reduction, pairs: as for `RankingLoss`.
        temperature: score difference at which an item counts as above another by about 3/4, > 0.

    Examples:
        >>> scores, labels = torch.tensor([2.0, 1.0, 0.0]), torch.tensor([1, 0, 1])
        >>> loss = SmoothStatisticLoss(statistic="dcg", temperature=0.01)
        >>> round(loss(scores, labels).item(), 4)  # 1 - (1 + 1/2) / (1 + 1/log2(3))
        0.0803
    """

    key = "smooth"

    def __init__(
        self,
        *,
        statistic: RankStatistic | str = "dcg",
        gain: GainName = GAIN,
        reduction: Reduction = "mean",
        pairs: PairsName = "mean",
        temperature: float = 1.0,
    ) -> None:
        super().__init__(statistic=statistic, gain=gain, reduction=reduction, pairs=pairs)
        check_number("temperature", temperature, above=0)
        self.temperature = float(temperature)

    def _compiled(self, lists: Lengths) -> ListLoss | None:
        if not self.has_few_pairs(lists.longest, lists.pairs, times=TIMES):
            return None
        return statistic_loss("smooth", self.pairs == "mean", self.statistic, self.gain, lists, self.temperature)

    def derivatives_of(self, lists: Lists) -> tuple[Tensor, Tensor]:
        """Return slopes, and the bound of `ltr/native/statistic_losses.cpp` on second derivatives."""
        scores = lists.scores.detach().double().requires_grad_()
        value = self._row_values(replace(lists, scores=scores)).sum()
        if not value.requires_grad:
            return torch.zeros_like(scores), torch.zeros_like(scores)
        (slopes,) = torch.autograd.grad(value, scores)
        gains, weights, ideal = self._parts(lists)
        here, following, _ = self._around(self._positions(replace(lists, scores=scores.detach())), weights)
        factors, real = gains * (here - following), lists.mask.double()
        two = TwoClasses(scores.detach() / self.temperature, real, real)
        plan = LOGISTIC.plan(two)
        sums = plan.apply(factors, 2, False) + factors * plan.apply(real, 2, False) - 0.5 * factors
        unit = self._share(torch.ones_like(ideal), ideal, lists) / self.temperature**2
        return slopes, sums.clamp(min=0.0) * unit[:, None]

    def _row_values(self, lists: Lists) -> Tensor:
        gains, weights, ideal = self._parts(lists)
        position = self._positions(lists)
        here, following, part = self._around(position, weights)
        value = (gains * (here + part * (following - here))).sum(-1)
        return self._share(ideal - value, ideal, lists)

    def _around(self, position: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the weights of the whole positions around smooth ones, and the part of the way between them."""
        last = weights.shape[-1] - 1
        position = position.clamp(0.0, float(last))
        whole = position.detach().floor().long()
        return weights.gather(-1, whole), weights.gather(-1, (whole + 1).clamp(max=last)), position - whole

    def _positions(self, lists: Lists) -> Tensor:
        """Return the smooth position of each item: the sum of sigmoids over the others."""
        scores, real = lists.scores / self.temperature, lists.mask.double()
        if not bool(scores.isfinite().all()):
            scores = with_gradient_of(with_small_gaps(lists.scores, unit=self.temperature), scores)
        if self.uses_all_pairs(lists):
            above = torch.sigmoid(scores.unsqueeze(-2) - scores.unsqueeze(-1)) * real.unsqueeze(-2)
            return above.sum(-1) - 0.5 * real
        # the derivative of log(1 + exp(-z)) is -sigmoid(-z)
        return -transform(LOGISTIC.plan, TwoClasses(scores, real, real), real, order=1) - 0.5 * real


class LambdaLoss(_StatisticLoss):
    """RankNet with each pair weighted by the change in the statistic if its items swapped: LambdaRank as a loss.

    ``sum over pairs with labels_i > labels_k of  D_ik log(1 + exp(-(s_i - s_k))) / ideal,``
    ``D_ik = |gain_i - gain_k| |A(p_i) - A(p_k)|``

    with A the weights of the statistic by position and p the positions at the scores, through which no gradient flows,
    with ties as in ResolvedRank. With ``pairs="sum"`` it is not divided by the ideal value. Options are those of
    `SmoothStatisticLoss`.

    Source: Burges, *From RankNet to LambdaRank to LambdaMART* (2010); Wang, Li, Golbandi, Bendersky & Najork, *The
    LambdaLoss Framework for Ranking Metric Optimization* (2018).

    Examples:
        >>> loss = LambdaLoss(statistic="mrr")
        >>> round(loss(torch.tensor([0.0, 1.0]), torch.tensor([1, 0])).item(), 4)  # (1 - 1/2) log(1 + e)
        0.6566
    """

    key = "lambda"
    continuous = False

    def _compiled(self, lists: Lengths) -> ListLoss | None:
        return statistic_loss("lambda", self.pairs == "mean", self.statistic, self.gain, lists)

    def derivatives_of(self, lists: Lists) -> tuple[Tensor, Tensor]:
        """Return slopes and curvatures of lists of several lengths, by the core for those of each length."""
        slopes, curvatures = torch.zeros_like(lists.scores), torch.zeros_like(lists.scores)
        sizes = lists.mask.sum(-1)
        for size in sizes.unique().tolist():
            here = lists.mask & (sizes == size).unsqueeze(-1)
            qid = torch.arange(int(here.sum()) // max(size, 1)).repeat_interleave(size)
            slopes[here], curvatures[here] = derivatives(self, lists.scores[here], lists.labels[here], qid)
        return slopes, curvatures

    def _row_values(self, lists: Lists) -> Tensor:
        gains, weights, ideal = self._parts(lists)
        order = order_items(lists, -lists.labels)
        # the weight of each item's position, back in the order of the items
        own = torch.zeros_like(weights).scatter(-1, order, weights)
        difference, comparable = comparable_pairs(lists)
        change = (gains.unsqueeze(-1) - gains.unsqueeze(-2)).abs() * (own.unsqueeze(-1) - own.unsqueeze(-2)).abs()
        # the loss of a pair may be infinite although swapping it would change nothing
        terms = (change * LOGISTIC(difference)).masked_fill(~comparable | (change == 0), 0.0)
        return self._share(terms.sum((-2, -1)), ideal, lists)
