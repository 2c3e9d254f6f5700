"""What every method of a run works with, and the measures all of them share."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.base_rankers import BaseRanker, load_base_ranker
from ltr.metrics import rank_statistic
from ltr.statistics import RankStatistic
from ltr.top_lists import cut
from trainers.by_query import mean_share, share_name, sum_over_queries
from trainers.config import Config
from trainers.display import Display
from trainers.files import reading, write_atomic
from trainers.helpers import Helpers
from trainers.inputs import Half, Split
from trainers.runs import MethodFolder, RunFolder
from trainers.stopping import StopFlag

__all__ = ["Context", "Scores", "load_scores", "save_ranker", "save_scores", "save_torch"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """A method's scores of both halves, (n,) each."""

    train: FloatArray
    test: FloatArray


@dataclass(frozen=True)
class Context:
    """The run under way.

    Attributes:
        config: of the run.
        split: the data.
        run: the folder.
        display: what the user sees.
        stop: up when the user asked to stop.
        helpers: the other processes under torchrun.
    """

    config: Config
    split: Split
    run: RunFolder
    display: Display
    stop: StopFlag
    helpers: Helpers

    def scores_of(self, ranker: BaseRanker) -> Scores:
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
        return "full list" if top_k == "full" else f"top {top_k}"

    def hyperparameters(self, method: str) -> dict[str, bool | int | float | str]:
        """What TensorBoard compares methods and runs by: the same keys for every method."""
        config = self.config
        return {
            "method": method,
            "data": config.data.name or Path(str(config.data.path)).stem,
            "seed": config.seed,
            "scorer": config.surrogate.scorer,
            "optimizer": config.surrogate.optimizer,
            "l2": config.surrogate.l2,
            "statistic": config.exact.statistic,
            "base": config.exact.base,
            "top_k": str(config.exact.top_k),
            "C": config.exact.C,
            "margin": config.exact.margin,
        }


def statistic_of(scores: FloatArray, labels: IntArray, name: str) -> float | None:
    """A rank statistic of one list, ties resolved against the positives; None where it is undefined."""
    statistic = RankStatistic.parse(name)
    if statistic.array is not None and len(statistic.array) != len(scores):
        return None
    value = float(rank_statistic(torch.from_numpy(scores), torch.from_numpy(labels), statistic))
    return None if math.isnan(value) else value


def by_tag(statistics: Mapping[str, Mapping[str, float | None]]) -> dict[str, float]:
    """The statistics under their tags, such as ``train/dcg``; undefined ones left out."""
    return {
        f"{half}/{name}": value
        for half, values in statistics.items()
        for name, value in values.items()
        if value is not None
    }


def save_torch(path: Path, value: Mapping[str, Any]) -> None:
    """Write tensors and plain values atomically."""
    buffer = io.BytesIO()
    torch.save(dict(value), buffer)
    write_atomic(path, buffer.getvalue())


def save_ranker(folder: MethodFolder, ranker: BaseRanker) -> None:
    """Write a fitted ranker that `load_ranker` reads."""
    save_torch(folder.model, ranker.to_state())


def load_ranker(folder: MethodFolder) -> BaseRanker:
    """The ranker that `save_ranker` wrote; nothing in the file is run.

    Raises:
        RunError: a missing or damaged file.
    """
    with reading(folder.model):
        return load_base_ranker(torch.load(folder.model, weights_only=True))


def save_scores(folder: MethodFolder, scores: Scores) -> None:
    """Write the scores of both halves."""
    buffer = io.BytesIO()
    np.savez(buffer, train=scores.train, test=scores.test)
    write_atomic(folder.scores, buffer.getvalue())


def load_scores(folder: MethodFolder) -> Scores | None:
    """The scores that `save_scores` wrote, None when there are none.

    Raises:
        RunError: a damaged file.
    """
    if not folder.scores.exists():
        return None
    with reading(folder.scores), np.load(folder.scores) as arrays:
        return Scores(arrays["train"], arrays["test"])
