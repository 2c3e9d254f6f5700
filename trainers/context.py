"""What every method of a run works with, and the files that it leaves."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.rankers import Ranker
from trainers.display import Display
from trainers.files import reading, write_atomic
from trainers.helpers import Helpers
from trainers.runs import MethodFolder, RunFolder
from trainers.stopping import StopFlag
from trainers.task import Scores, Task

__all__ = ["Context", "load_scores", "save_ranker", "save_scores", "save_torch"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Context(Task):
    """The run under way.

    Attributes:
        run: the folder.
        display: what the user sees.
        stop: up when the user asked to stop.
        helpers: the other processes under torchrun.
    """

    run: RunFolder
    display: Display
    stop: StopFlag
    helpers: Helpers

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


def save_ranker(folder: MethodFolder, ranker: Ranker) -> None:
    """Write a fitted ranker that `load_ranker` reads."""
    save_torch(folder.model, ranker.to_state())


def load_ranker(folder: MethodFolder) -> Ranker:
    """The ranker that `save_ranker` wrote; nothing in the file is run.

    Raises:
        RunError: a missing or damaged file.
    """
    with reading(folder.model):
        return Ranker.load(folder.model)


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
