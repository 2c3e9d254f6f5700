"""Measures of a method's scores: rank statistics on the training and test sets, and on the reranked list.

Where rows belong to queries a statistic is a mean over queries of its share of the best value: ``ndcg@10`` is that of
``dcg@10``. A query without a label above 0 has none: it is left out, or counts as 0 or 1 (``statistics.empty``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.list_demands import GivenDemands, read_list_demands
from ltr.losses import LogisticLoss, parse_loss
from ltr.metrics import evaluate, normalized_rank_statistic, rank_statistic
from ltr.metrics.ranked import Ties
from ltr.rankers import EstimatorRanker, Ranker, SurrogateRanker
from ltr.rankers.demanded import on_new_lists
from ltr.rankers.exact import cut
from ltr.rankers.inputs import weights_for_losses
from ltr.ranks import GAIN, GainName, gains_of
from ltr.statistics import RankStatistic
from trainers.config import Config
from trainers.config.sections import StatisticsConfig
from trainers.files import Json
from trainers.task.data import FloatArray, IntArray, Part, Split
from trainers.task.options import too_long
from trainers.task.raw import demand_columns

if TYPE_CHECKING:
    import pandas as pd

Statistics = dict[str, dict[str, float | None]]
"""Statistics by name, of ``train`` and ``test``."""


@dataclass(frozen=True)
class Scores:
    """A method's scores of the training set and of the test set, (n,) each."""

    train: FloatArray
    test: FloatArray


@dataclass(frozen=True)
class Task:
    """An experiment's options and data."""

    config: Config  # the experiment
    split: Split  # its data

    def scores_of(self, ranker: Ranker) -> Scores:
        """Return a ranker's scores of both sets."""
        by_list = isinstance(ranker, SurrogateRanker | EstimatorRanker)  # some score a row by its list

        def of(part: Part) -> FloatArray:
            rows: Any = self.rows_of(part) if hasattr(ranker, "feature_names_in_") else part.X
            return ranker.decision_function(rows, *([part.qid] if by_list else []))

        return Scores(of(self.split.train), of(self.split.test))

    def rows_of(self, part: Part) -> pd.DataFrame:
        """Return the features of a set as a frame, which rankers read by name."""
        import pandas as pd

        return pd.DataFrame(part.X, columns=list(self.split.feature_names), copy=False)

    @property
    def reported(self) -> tuple[str, ...]:
        """Names of the reported statistics; with queries, those of shares of the best value."""
        return names_of(self.config, by_query=self.split.by_query)

    def statistics(self, scores: Scores, ties: Ties = "resolved") -> Statistics:
        """Return the reported statistics, ``{"train": {...}, "test": {...}}``; None where undefined.

        By `ties` rows with equal scores of one list count against the positives, or on average over their orders.
        """
        sets = zip(self.split.parts, (scores.train, scores.test), strict=True)
        return {name: statistics_of(values, part, self.config, ties) for (name, part), values in sets}

    def demands(self, texts: Sequence[str]) -> list[GivenDemands]:
        """Return demands on the lists of the training set, and the same on those of the test set."""
        demands, gain = read_list_demands(texts), self.config.statistics.gain
        return [GivenDemands.of_columns(demands, columns, gain) for columns in demand_columns(self.split, demands)]

    def meets_demands(self, scores: FloatArray) -> bool:
        """Return whether scores of the training set meet the demands on the exact stage."""
        train, demands = self.split.train, self.demands(self.config.exact.demands)[0]
        return all(one.met(scores) for one in demands.of(train.y.astype(np.float64), train.qid))

    def demands_on_new_lists(self, scores: FloatArray, demands: Sequence[str]) -> list[Json]:
        """Return what scores of the test set reach of each demand, see `on_new_lists`."""
        test, given = self.split.test, self.demands(demands)[1]
        return on_new_lists(given, test.y.astype(np.float64), test.qid, scores, self.config.seed)

    def by_period(self, scores: FloatArray, ties: Ties = "resolved") -> list[Json] | None:
        """Return what scores of the test set reach in each period, each ranked as a separate list; None without times.

        For each of `Times.periods` that is a dict with ``period``, ``rows``, ``positives``, ``lists``, ``statistics``
        and, unless the full list is reranked, the counts of `first_k`. With queries K is that of the reranked lists;
        else each period has its share of these K rows.
        """
        test, top_k = self.split.test, self.config.exact.top_k
        if test.times is None:
            return None
        found = []
        for period, rows in test.times.periods():
            part, values = test.take(rows).numbered(), scores[rows]
            counts: Json = {"period": period, "rows": len(rows), "positives": int((part.y > 0).sum())}
            counts["lists"] = part.n_queries
            if top_k != "full":
                k = int(top_k) if self.split.by_query else max(1, round(int(top_k) * len(rows) / len(test.y)))
                counts |= first_k(values, part, min(k, len(rows)), ties)
            found.append({**counts, "statistics": statistics_of(values, part, self.config, ties)})
        return found

    def first_k(self, scores: Scores, ties: Ties = "resolved") -> Json | None:
        """Return what those find who act on the first K rows of the training and of the test set.

        That is ``{"train": {"k", "hits", "precision", "recall", "lift", "half": {"k", ...}}, "test": {...}}``, means
        over queries; None where the full list is reranked. Reranking changes the order of the top K, not which rows are
        in it, so that its effect shows in the first half.
        """
        if (top_k := self.config.exact.top_k) == "full":
            return None
        found = {}
        for (name, part), values in zip(self.split.parts, (scores.train, scores.test), strict=True):
            k = min(int(top_k), len(values))
            found[name] = {**first_k(values, part, k, ties), "half": first_k(values, part, max(1, k // 2), ties)}
        return found

    def statistic_on_top(self, base: Scores, scores: Scores) -> float | None:
        """Return the exact stage's statistic on what it reranks, the top of `base`; a sum where there are queries."""
        exact, train = self.config.exact, self.split.train
        chosen = self.reranked(base)
        part, options, own = train.take(chosen), self.config.statistics, scores.train[chosen]
        if train.qid is None and train.weight is None:
            return statistic_of(own, part.y, exact.statistic, gain=options.gain)
        return sum_over_queries(own, part.y, part.qid, exact.statistic, options, part.weight)

    def reranked(self, base: Scores) -> NDArray[np.bool_]:
        """Return which training rows are at the top of `base`, as the two-stage ranker cuts them."""
        top_k, train = self.config.exact.top_k, self.split.train
        kept = np.ones(len(train.y), dtype=np.bool_) if train.weight is None else train.weight > 0
        qid = None if train.qid is None else np.unique(train.qid[kept], return_inverse=True)[1]
        scores = base.train[kept]
        kept[kept] = scores >= cut(scores, qid, None if top_k == "full" else int(top_k))
        return kept

    @property
    def top(self) -> str:
        """What is reranked of a list, such as "top 50"."""
        top_k = self.config.exact.top_k
        return "full list" if top_k == "full" or too_long(self.config, self.split) else f"top {top_k}"


def names_of(config: Config, *, by_query: bool) -> tuple[str, ...]:
    """Return the names of the reported statistics; with queries, those of shares of the best value."""
    gain = config.statistics.gain
    return tuple(share_name(name, gain) for name in config.reported) if by_query else config.reported


def statistics_of(scores: FloatArray, part: Part, config: Config, ties: Ties = "resolved") -> dict[str, float | None]:
    """Return the reported statistics of the rows of a set by name; None where undefined."""
    if part.qid is None:
        reached = [statistic_of(scores, part.y, one, ties, config.statistics.gain) for one in config.reported]
    else:
        reached = [mean_share(scores, part, one, config.statistics) for one in config.reported]
    return dict(zip(names_of(config, by_query=part.qid is not None), reached, strict=True))


def first_rows(scores: FloatArray, y: NDArray[Any], qid: IntArray | None, k: int) -> NDArray[np.bool_]:
    """Return which rows are the first k of their list, tied rows with lower labels first, (n,)."""
    lists = np.zeros(len(scores), dtype=np.int64) if qid is None else np.unique(qid, return_inverse=True)[1]
    order = np.lexsort((y, -scores, lists))
    sizes = np.bincount(lists)
    chosen = np.empty(len(scores), dtype=np.bool_)
    chosen[order] = np.arange(len(scores)) - np.repeat(np.cumsum(sizes) - sizes, sizes) < k
    return chosen


def by_tag(statistics: Mapping[str, Mapping[str, float | None]]) -> dict[str, float]:
    """Return statistics under their tags, such as ``train/dcg``; undefined ones are left out."""
    every = ((f"{part}/{name}", value) for part in ("train", "test") for name, value in statistics[part].items())
    return {tag: value for tag, value in every if value is not None}


def statistic_of(
    scores: FloatArray, labels: IntArray, name: str, ties: Ties = "resolved", gain: GainName = GAIN
) -> float | None:
    """Return a rank statistic of one list, by default with ties resolved against the positives; None if undefined."""
    statistic = RankStatistic.parse(name)
    if statistic.length not in (None, len(scores)):
        return None
    value = float(rank_statistic(torch.from_numpy(scores), torch.from_numpy(labels), statistic, gain=gain, ties=ties))
    return None if math.isnan(value) else value


def first_k(scores: FloatArray, part: Part, k: int, ties: Ties = "resolved") -> Json:
    """Return k, hits, precision, recall and lift among the first k rows, of which labels above 0 are hits."""
    names = {name: f"{name}@{k}" for name in ("hits", "precision", "recall", "lift")}
    found = evaluate(*_tensors(scores, part.y), names.values(), qid=_tensor(part.qid), ties=ties)
    return {"k": k, **{name: float(found[measure].nanmean()) for name, measure in names.items()}}


def share_name(statistic: str, gain: GainName) -> str:
    """Return the name of a statistic divided by its best value, with the gain where it is not the default.

    Examples:
        >>> share_name("dcg@10", "exp2"), share_name("dcg@10", "linear"), share_name("auc", "linear")
        ('ndcg@10', 'ndcg(gain=linear)@10', 'auc')
    """
    parsed = RankStatistic.parse(statistic)
    name, at, cutoff = parsed.normalized_name.partition("@")
    if gain == GAIN or not parsed.kind.weighs_rows:
        return f"{name}{at}{cutoff}"
    name = f"{name[:-1]},gain={gain})" if name.endswith(")") else f"{name}(gain={gain})"
    return f"{name}{at}{cutoff}"


def mean_share(scores: FloatArray, part: Part, statistic: str, options: StatisticsConfig) -> float | None:
    """Return the mean over queries of a statistic's share of its best value; None where no query has one."""
    values = normalized_rank_statistic(*_tensors(scores, part.y), statistic, gain=options.gain, qid=_tensor(part.qid))
    if options.empty == "skip":
        values = values[~values.isnan()]
    value = float(values.nan_to_num(float(options.empty) if options.empty != "skip" else 0.0).mean())
    return None if math.isnan(value) else value


def sum_over_queries(
    scores: FloatArray,
    y: IntArray,
    qid: IntArray | None,
    statistic: str,
    options: StatisticsConfig,
    weight: FloatArray | None = None,
) -> float:
    """Return the sum of a statistic over queries, which the exact stage maximises; weights multiply the gains."""
    values, labels = _tensors(scores, y)
    gains = gains_of(labels, options.gain)
    gains = gains if weight is None else gains * torch.from_numpy(weight)
    return float(rank_statistic(values, gains, statistic, gain="linear", qid=_tensor(qid), empty=0.0).sum())


def ranked_labels(scores: FloatArray, y: IntArray) -> IntArray:
    """Return labels from the top of the list down, tied negatives above tied positives as in the statistics."""
    return y[np.lexsort((y, -scores))]


def own_loss(method: str, scores: FloatArray, part: Part) -> float:
    """Return the convex loss that a surrogate or logistic regression minimises, without penalty, on a training set."""
    if part.weight is not None:
        scores, part = scores[part.weight > 0], part.take(part.weight > 0)
    values, labels = _tensors(scores, part.y)
    if method == "logistic_regression":
        return float(LogisticLoss()(values, (labels > 0).long(), weight=_tensor(part.weight)))  # as the class it learns
    return float(parse_loss(method)(values, labels, **weights_for_losses(part.weight, part.qid, part.y)))


def _tensors(scores: FloatArray, y: IntArray) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(scores), torch.from_numpy(y)


def _tensor(values: IntArray | FloatArray | None) -> torch.Tensor | None:
    return None if values is None else torch.from_numpy(values)
