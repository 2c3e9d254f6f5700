"""Measures as metrics of the torchmetrics library, for its collections and for Lightning's ``self.log``.

Needs the extra ``torchmetrics``: ``pip install 'rankproof[torchmetrics]'``. Without the library,
`ltr.metrics.RankingMetrics` does the same.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from ltr.lists import Values, as_tensors, weights_of_lists
from ltr.metrics.collection import items_of, weighted_mean
from ltr.metrics.measures import Measure, parse_measure
from ltr.metrics.ranked import Ties, check_ties

try:
    from torchmetrics import Metric
except ModuleNotFoundError as error:
    raise ImportError(
        "ltr.metrics.torchmetrics needs torchmetrics: install it, or the extra: pip install 'rankproof[torchmetrics]'"
    ) from error

__all__ = ["RankingMetric"]


class RankingMetric(Metric):
    """The mean of a measure over lists, as a ``torchmetrics.Metric``.

    Args:
        measure: a measure or its name, such as ``"ndcg@10"``; see `ltr.metrics.parse_measure`.
        ties: how tied scores are treated; see `ltr.metrics.ListOptions`.
        empty: the value of a list for which the measure is undefined; NaN leaves it out of the mean.
        joined: whether the items of one list may come in several calls, as in `ltr.metrics.RankingMetrics`.
        options: options of every ``torchmetrics.Metric``, such as ``sync_on_compute``.

    Raises:
        ValueError: an unknown measure or treatment of ties.

    Examples:
        >>> from torchmetrics import MetricCollection
        >>> metrics = MetricCollection({name: RankingMetric(name) for name in ("mrr", "ndcg@10")})
        >>> batch = metrics(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([[0, 1, 0]]))
        >>> metrics.update(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([[1, 0, 0]]))
        >>> {name: round(value.item(), 3) for name, value in metrics.compute().items()}
        {'mrr': 0.75, 'ndcg@10': 0.815}

        In a Lightning module; Lightning itself computes, reduces over processes and resets:

        >>> class Ranker(torch.nn.Module):  # or lightning.LightningModule
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scorer, self.ndcg = torch.nn.Linear(5, 1), RankingMetric("ndcg@10")
        ...     def validation_step(self, batch, index):
        ...         self.ndcg(self.scorer(batch["x"]).squeeze(-1), batch["y"], mask=batch["mask"])
        ...         self.log("ndcg@10", self.ndcg, on_epoch=True)
    """

    is_differentiable = False
    full_state_update = False

    def __init__(
        self,
        measure: str | Measure,
        *,
        ties: Ties = "resolved",
        empty: float = math.nan,
        joined: bool = False,
        **options: Any,  # noqa: ANN401 (torchmetrics' own)
    ) -> None:
        super().__init__(**options)
        self.measure = parse_measure(measure)
        self.ties = check_ties(ties)
        self.empty = float(empty)
        self.joined = joined
        # torchmetrics has it as a constant of the class and does not allow setting it
        self.__dict__["higher_is_better"] = self.measure.higher_is_better
        # After the first batch a collection lets metrics with equal states share one. Items may be shared, but sums may
        # not, so each sum has a name of its own.
        self._state = "items" if joined else f"sum and count of {self.measure}, ties={ties}, empty={self.empty}"
        if joined:
            self.add_state(self._state, default=[], dist_reduce_fx="cat")
            self.set_dtype(torch.float64)  # the type that a process without items sends
        else:
            self.add_state(self._state, default=torch.zeros(2, dtype=torch.float64), dist_reduce_fx="sum")

    def update(
        self,
        scores: Values,
        labels: Values,
        *,
        mask: Values | None = None,
        qid: Values | None = None,
        list_weight: Values | None = None,
    ) -> None:
        """Add a batch of lists, as `ltr.metrics.RankingMetrics.update` does."""
        given = as_tensors(scores, labels=labels, mask=mask, qid=qid, list_weight=list_weight)
        s, y, real, ids, of_lists = given
        values = self.measure(s, y, mask=real, qid=ids, ties=self.ties, empty=self.empty)
        weights = torch.ones_like(values) if of_lists is None else weights_of_lists(of_lists, s, ids).to(values)
        state = getattr(self, self._state)
        if self.joined:
            state.append(_packed(**items_of(*given)).to(self.device))
        else:
            defined = ~values.isnan()
            values, weights = values[defined].to(state.device), weights[defined].to(state.device)
            setattr(self, self._state, state + torch.stack([(values * weights).sum(), weights.sum()]))

    def compute(self) -> Tensor:
        """Return the weighted mean over the lists on which the measure is defined, float64; NaN without any."""
        state = getattr(self, self._state)
        if not self.joined:
            return state[0] / state[1]
        if isinstance(state, list):  # a tensor after reducing over processes
            state = torch.cat(state) if state else torch.zeros(0, dtype=torch.float64, device=self.device)
        if not len(state):
            return state.new_tensor(math.nan)
        scores, labels, qid, item_weight = _unpacked(state)
        values = self.measure(scores, labels, qid=qid, ties=self.ties, empty=self.empty).reshape(-1)
        weights = torch.ones_like(values) if qid is None else weights_of_lists(item_weight, scores, qid)
        return values.new_tensor(weighted_mean(values, weights))


def _packed(scores: Tensor, labels: Tensor, qid: Tensor | None = None, list_weight: Tensor | None = None) -> Tensor:
    """Return items as rows of five float64 in one flat tensor, which torchmetrics gathers even from empty processes.

    The two halves of an id of 64 bits are exact in float64; they are NaN without ids. Lists without a weight have 1.
    """
    nothing = torch.full_like(scores, math.nan)
    halves = (nothing, nothing) if qid is None else ((qid >> 32).double(), (qid & 0xFFFFFFFF).double())
    weights = torch.ones_like(scores) if list_weight is None else list_weight
    return torch.stack([scores, labels, *halves, weights], dim=-1).flatten()


def _unpacked(flat: Tensor) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    scores, labels, high, low, weights = flat.reshape(-1, 5).unbind(-1)
    without = high.isnan()
    if bool(without.all()):
        return scores, labels, None, weights
    if bool(without.any()):
        raise ValueError("qid must be given in every call or in none")
    return scores, labels, (high.long() << 32) | low.long(), weights
