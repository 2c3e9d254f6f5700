"""Metrics over a whole data set: `update` batch by batch, then `compute` the mean over all lists of all processes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor
from torch import distributed as dist

from ltr.lists import as_flat_lists, check_qid
from ltr.metrics.measures import Measure, evaluate, parse_measures
from ltr.metrics.ranked import Ties, check_ties

__all__ = ["RankingMetrics"]


class RankingMetrics:
    """Means of measures over the lists of many batches, and of many processes.

    What is kept are the values of the lists, on the CPU and without gradient, whatever device the batches come from;
    each batch is sorted once for all measures. A list on which a measure is undefined has the value `empty`; a NaN is
    left out of the mean.

    With ``joined=True`` a list may arrive in pieces, over several calls and processes: items of equal `qid` form one
    list, and without qid all items are one list, as for the AUC of a classifier over a data set. The items are kept
    then, and sorted when the value is asked for.

    Args:
        measures: names or measures, such as ``"ndcg@10"``; see `ltr.metrics.parse_measure`.
        ties: as in `ltr.metrics.rank_statistic`.
        empty: the value of a list for which a measure is undefined; NaN leaves it out.
        joined: whether the items of one list may come in several calls.

    Raises:
        TypeError: measures that are no names nor measures.
        ValueError: no measure at all, an unknown one, or an unknown treatment of ties.

    Examples:
        >>> metrics = RankingMetrics(["mrr", "precision@1"])
        >>> metrics.update(torch.tensor([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]), torch.tensor([[0, 1, 0], [0, 0, 1]]))
        >>> metrics.update(torch.tensor([2.0, 1.0]), torch.tensor([0, 0]))  # mrr is undefined here
        >>> {name: round(mean, 3) for name, mean in metrics.compute().items()}  # mrr: (1/2 + 1) / 2
        {'mrr': 0.75, 'precision@1': 0.333}
        >>> metrics.counts()
        {'mrr': 2, 'precision@1': 3}

        A data set that is one list:

        >>> auc = RankingMetrics(["auc"], joined=True)
        >>> for scores, labels in [([0.9, 0.2], [1, 0]), ([0.4, 0.7], [1, 0])]:
        ...     auc.update(torch.tensor(scores), torch.tensor(labels))
        >>> auc.compute()
        {'auc': 0.75}

        In a module for Lightning (see also `ltr.metrics.torchmetrics`):

        >>> class Ranker(torch.nn.Module):  # or lightning.LightningModule
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.scorer, self.metrics = torch.nn.Linear(5, 1), RankingMetrics(["ndcg@10", "auc"])
        ...     def validation_step(self, batch, index):
        ...         self.metrics.update(self.scorer(batch["x"]).squeeze(-1), batch["y"], mask=batch["mask"])
        ...     def on_validation_epoch_end(self):
        ...         self.log_dict(self.metrics.compute())
        ...         self.metrics.reset()
    """

    def __init__(
        self,
        measures: Iterable[str | Measure],
        *,
        ties: Ties = "resolved",
        empty: float = math.nan,
        joined: bool = False,
    ) -> None:
        check_ties(ties)
        self.measures = parse_measures(measures)
        if not self.measures:
            raise ValueError("measures must hold at least one, got none")
        self.ties = ties
        self.empty = float(empty)
        self.joined = joined
        self._chunks: list[dict[str, Tensor]] = []

    def update(self, scores: Tensor, labels: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None) -> None:
        """Take in a batch of lists; of pieces of lists with ``joined``.

        Args:
            scores: floating point, ``(*batch, list)``.
            labels: nonnegative, same shape.
            mask: boolean, True where an item is real.
            qid: list ids of flat input, in every call or in none. Without ``joined``, equal ids in two calls are two
                lists.

        Raises:
            TypeError, ValueError: what the measures refuse; the state is then as it was.
        """
        # joined items are evaluated as well: what a measure would refuse in the end, it refuses now
        values = evaluate(scores, labels, self.measures, mask=mask, qid=qid, ties=self.ties, empty=self.empty)
        self._append(items_of(scores, labels, mask, qid) if self.joined else values)

    def compute(self, *, sync: bool = True) -> dict[str, float]:
        """The mean of each measure over the lists on which it is defined, NaN without any.

        Args:
            sync: whether to take in the lists of all processes of an initialised ``torch.distributed``; every process
                has to call then, and gets the same values. What each has seen by itself stays as it was.
        """
        return {name: float(values.nanmean()) for name, values in self.values(sync=sync).items()}

    def counts(self, *, sync: bool = True) -> dict[str, int]:
        """The number of lists that each mean is over: all, where `empty` is a number; `sync` as in `compute`."""
        return {name: int((~values.isnan()).sum()) for name, values in self.values(sync=sync).items()}

    def values(self, *, sync: bool = True) -> dict[str, Tensor]:
        """The value of each list, float64, process after process, in the order in which lists first came in.

        `ltr.metrics.compare` takes those of two rankers. `sync` as in `compute`.
        """
        if sync:
            return self.gathered().values(sync=False)
        state = self.state_dict()
        if not state:
            return {str(measure): torch.zeros(0, dtype=torch.float64) for measure in self.measures}
        if not self.joined:
            return state
        items, qid = (state["scores"], state["labels"]), state.get("qid")
        values = evaluate(*items, self.measures, qid=qid, ties=self.ties, empty=self.empty)
        return {name: value.reshape(-1) for name, value in values.items()}

    def gathered(self, group: dist.ProcessGroup | None = None) -> RankingMetrics:
        """The metrics of all processes of a group merged, the same on each; of this one where there are no others.

        For models that are themselves spread over processes, `group` holds the processes of one copy of the data.
        """
        states = [self.state_dict()]
        if dist.is_available() and dist.is_initialized():
            own, states = states[0], [{}] * dist.get_world_size(group)
            dist.all_gather_object(states, own, group=group)
        gathered = RankingMetrics(self.measures, ties=self.ties, empty=self.empty, joined=self.joined)
        for state in states:
            gathered._append(state)
        return gathered

    def merge(self, other: RankingMetrics) -> None:
        """Take in all that another one has seen.

        Raises:
            ValueError: metrics of other measures or options.
        """
        if repr(self) != repr(other):
            raise ValueError(f"metrics to merge must be the same, got {self!r} and {other!r}")
        self._append(other.state_dict())

    def reset(self) -> None:
        """Forget all lists."""
        self._chunks = []

    def state_dict(self) -> dict[str, Tensor]:
        """All that was seen, as tensors by name; empty when that is nothing."""
        names = self._chunks[0] if self._chunks else {}
        return {name: torch.cat([chunk[name] for chunk in self._chunks]) for name in names}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a `state_dict`.

        Raises:
            ValueError: the state of other metrics.
        """
        known = [{"scores", "labels"}, {"scores", "labels", "qid"}] if self.joined else [set(map(str, self.measures))]
        if state and set(state) not in known:
            raise ValueError(f"state must be one of {self!r}, got one with {', '.join(state)}")
        self.reset()
        self._append(dict(state))

    def _append(self, chunk: dict[str, Tensor]) -> None:
        if not chunk:
            return
        if self._chunks and set(chunk) != set(self._chunks[0]):
            raise ValueError("qid must be given in every call or in none")
        self._chunks.append({name: values.detach().reshape(-1).cpu() for name, values in chunk.items()})

    def __repr__(self) -> str:
        names = [str(measure) for measure in self.measures]
        return f"RankingMetrics({names}, ties={self.ties!r}, empty={self.empty}, joined={self.joined})"


def items_of(scores: Tensor, labels: Tensor, mask: Tensor | None, qid: Tensor | None) -> dict[str, Tensor]:
    """The real items of a batch, flat; float64 holds any scores and labels as they are."""
    check_qid(scores, qid)
    lists = as_flat_lists(scores, labels, mask=mask)
    items = {"scores": lists.scores.double(), "labels": lists.labels.double()}
    return items if qid is None else {**items, "qid": (qid if mask is None else qid[mask]).long()}
