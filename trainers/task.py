"""What is asked of the methods of an experiment: its data, and the measures of the scores that they give."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.losses import logistic_loss, parse_loss
from ltr.metrics import rank_statistic
from ltr.rankers import Ranker
from ltr.rankers.top_lists import cut
from ltr.statistics import RankStatistic
from trainers.by_query import mean_share, share_name, sum_over_queries
from trainers.config import Config
from trainers.inputs import Half, Split

__all__ = ["Scores", "Task", "own_loss", "ranked_labels", "statistic_of", "too_long"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """A method's scores of both halves, (n,) each."""

    train: FloatArray
    test: FloatArray


@dataclass(frozen=True)
class Task:
    """An experiment's options and data.

    Attributes:
        config: of the experiment.
        split: the data.
    """

    config: Config
    split: Split

    def scores_of(self, ranker: Ranker) -> Scores:
        """A ranker's scores of both halves."""
        return Scores(ranker.decision_function(self.split.train.X), ranker.decision_function(self.split.test.X))

    @property
    def reported(self) -> tuple[str, ...]:
        """What the reported statistics are called: by query they are shares of the best value, see `by_query`."""
        names = self.config.reported
        return tuple(share_name(name) for name in names) if self.split.by_query else names

    def statistics(self, scores: Scores) -> dict[str, dict[str, float | None]]:
        """The reported statistics of both halves, ``{"train": {...}, "test": {...}}``; None where undefined."""
        halves = (("train", scores.train, self.split.train), ("test", scores.test, self.split.test))
        return {
            name: {
                shown: self._statistic(values, half, statistic)
                for shown, statistic in zip(self.reported, self.config.reported, strict=True)
            }
            for name, values, half in halves
        }

    def _statistic(self, scores: FloatArray, half: Half, name: str) -> float | None:
        if half.qid is None:
            return statistic_of(scores, half.y, name)
        return mean_share(scores, half, name, self.config.statistics)

    def statistic_on_top(self, base: Scores, scores: Scores) -> float | None:
        """The statistic of the exact stage on what it reranks, the top of `base`; by query the sum over queries."""
        exact, train = self.config.exact, self.split.train
        chosen = self.reranked(base)
        if train.qid is None:
            return statistic_of(scores.train[chosen], train.y[chosen], exact.statistic)
        return sum_over_queries(
            scores.train[chosen], train.y[chosen], train.qid[chosen], exact.statistic, self.config.statistics
        )

    def reranked(self, base: Scores) -> NDArray[np.bool_]:
        """The training rows at the top of `base`, as the two-stage ranker cuts them."""
        top_k = self.config.exact.top_k
        cuts = cut(base.train, self.split.train.qid, None if top_k == "full" else int(top_k))
        return base.train >= cuts

    @property
    def top(self) -> str:
        """What is reranked of a list, such as "top 50"."""
        top_k = self.config.exact.top_k
        return "full list" if top_k == "full" or too_long(self.config, self.split) else f"top {top_k}"


def too_long(config: Config, split: Split) -> str:
    """What to know where the one list to rerank is longer than the training half; empty where it is not."""
    top_k, rows = config.exact.top_k, len(split.train.y)
    if not config.exact.enabled or split.by_query or top_k == "full" or int(top_k) <= rows:
        return ""
    rule = f'should be at most the {rows} rows of the training half, or "full"'
    return f"exact.top_k: {rule}, got {top_k}: all of them are reranked"


def statistic_of(scores: FloatArray, labels: IntArray, name: str) -> float | None:
    """A rank statistic of one list, ties resolved against the positives; None where it is undefined."""
    statistic = RankStatistic.parse(name)
    if statistic.length not in (None, len(scores)):
        return None
    value = float(rank_statistic(torch.from_numpy(scores), torch.from_numpy(labels), statistic))
    return None if math.isnan(value) else value


def ranked_labels(scores: FloatArray, y: IntArray) -> IntArray:
    """Labels from the top of the list down, tied negatives above tied positives as the statistics count them.

    Examples:
        >>> ranked_labels(np.array([1.0, 3.0, 1.0]), np.array([1, 1, 0])).tolist()
        [1, 0, 1]
    """
    return y[np.lexsort((y, -scores))]


def own_loss(method: str, scores: FloatArray, half: Half) -> float:
    """The convex loss that a surrogate or logistic regression minimises, of the scores of a half, without penalty."""
    values, labels = torch.from_numpy(scores), torch.from_numpy(half.y)
    if method == "logistic_regression":
        return float(logistic_loss(values, (labels > 0).long()))  # of graded labels the class that it learns
    return float(parse_loss(method)(values, labels, qid=None if half.qid is None else torch.from_numpy(half.qid)))
