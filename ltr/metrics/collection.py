"""Metrics of a whole data set: `update` batch by batch, then `compute` the mean over all lists of all processes."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch import distributed as dist

from ltr.lists import Values, as_tensors, weights_of_lists
from ltr.metrics.measures import Measure, evaluate, parse_measures
from ltr.metrics.ranked import Ties, check_ties

_WEIGHT = "list_weight"  # name of the weights of lists among the values


class RankingMetrics:
    """Means of measures over the lists of many batches and many processes.

    The value of each list is kept on the CPU. With weights V of lists the mean is ``sum of V_q value_q / sum of V_q``.
    Under ``torch.distributed`` the methods that take `sync` include the lists of all processes by default. Then every
    process must make the call, and all get the same values.

    Args:
        measures: names or measures, such as ``"ndcg@10"``; see `ltr.metrics.parse_measure`.
        ties: how tied scores are treated; see `ListOptions`.
        empty: the value of a list for which a measure is undefined; NaN leaves the list out of the mean.

    Examples:
        >>> metrics = RankingMetrics(["mrr", "precision@1"])
        >>> metrics.update(torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]), torch.tensor([[0, 1, 0], [0, 0, 1]]))
        >>> metrics.update(torch.tensor([2.0, 1.0]), torch.tensor([0, 0]))  # mrr is undefined here
        >>> {name: round(mean, 3) for name, mean in metrics.compute().items()}, metrics.counts()
        ({'mrr': 0.75, 'precision@1': 0.333}, {'mrr': 2, 'precision@1': 3})
    """

    def __init__(self, measures: Iterable[str | Measure], *, ties: Ties = "resolved", empty: float = math.nan) -> None:
        self.measures = parse_measures(measures)
        if not self.measures:
            raise ValueError("measures must hold at least one, got none")
        self.ties = check_ties(ties)
        self.empty = float(empty)
        self._chunks: list[dict[str, Tensor]] = []

    def update(
        self,
        scores: Values,
        labels: Values,
        *,
        mask: Values | None = None,
        qid: Values | None = None,
        list_weight: Values | None = None,
    ) -> None:
        """Add a batch of whole lists, in the form that measures take; equal ids `qid` in two calls are two lists.

        `list_weight` is the nonnegative weight of each list, ``(*batch,)``, or with `qid` that of its list for each
        item, ``(items,)``, in every call or in none. Inputs that a measure rejects leave the state unchanged.
        """
        s, y, real, ids, weights = as_tensors(scores, labels=labels, mask=mask, qid=qid, list_weight=list_weight)
        values = evaluate(s, y, self.measures, mask=real, qid=ids, ties=self.ties, empty=self.empty)
        if weights is not None:
            values[_WEIGHT] = weights_of_lists(weights, s, ids).double()
        chunk = {name: of_lists.detach().reshape(-1).cpu() for name, of_lists in values.items()}
        _check_alike([*self._chunks[:1], chunk])
        self._chunks.append(chunk)

    def compute(self, *, sync: bool = True) -> dict[str, float]:
        """Return the mean of each measure over the lists on which it is defined, NaN without any."""
        values, weights = self._lists(sync)
        return {name: weighted_mean(of_lists, weights) for name, of_lists in values.items()}

    def counts(self, *, sync: bool = True) -> dict[str, int]:
        """Return the number of lists in each mean: all with a weight above 0 if `empty` is a number."""
        values, weights = self._lists(sync)
        return {name: int((~of_lists.isnan() & (weights > 0)).sum()) for name, of_lists in values.items()}

    def values(self, *, sync: bool = True) -> dict[str, Tensor]:
        """Return the value of each list, float64: process by process, in the order in which lists were first seen."""
        return self._lists(sync)[0]

    def weights(self, *, sync: bool = True) -> Tensor:
        """Return the weight of each list, float64, in the order of `values`; 1 where none were given."""
        return self._lists(sync)[1]

    def _lists(self, sync: bool) -> tuple[dict[str, Tensor], Tensor]:
        """Return the values of each list, and its weight."""
        parts = [_joined(self._chunks)]
        if sync and dist.is_available() and dist.is_initialized():
            own, parts = parts[0], [{}] * dist.get_world_size()
            dist.all_gather_object(parts, own)
        nothing = torch.zeros(0, dtype=torch.float64)
        values = _joined([part for part in parts if part]) or {str(measure): nothing for measure in self.measures}
        weights = values.pop(_WEIGHT, None)
        return values, torch.ones_like(next(iter(values.values()))) if weights is None else weights

    def reset(self) -> None:
        """Forget all lists."""
        self._chunks = []

    def __repr__(self) -> str:
        names = [str(measure) for measure in self.measures]
        return f"RankingMetrics({names}, ties={self.ties!r}, empty={self.empty})"


def _check_alike(chunks: list[dict[str, Tensor]]) -> None:
    if any(chunk.keys() != chunks[0].keys() for chunk in chunks):
        raise ValueError("list_weight must be given in every call or in none")


def _joined(chunks: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    _check_alike(chunks)
    return {name: torch.cat([chunk[name] for chunk in chunks]) for name in chunks[0]} if chunks else {}


def weighted_mean(values: Tensor, weights: Tensor) -> float:
    """Return the mean over lists on which a measure is defined, those that are not NaN; NaN without any."""
    known = ~values.isnan() & (weights > 0)
    values, weights = values[known], weights[known]
    if bool((weights == 1).all()):
        return float(values.mean())
    shares = weights / weights.max()  # sums of large weights leave the floating point range
    return float((values * shares).sum() / shares.sum())
