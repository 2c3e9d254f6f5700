"""The options of a fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch

from ltr.checks import as_float, is_whole, one_of

OptimizerName = Literal["lbfgs", "adam"]
"""Optimizers of a fit."""
DeviceName = Literal["cpu", "cuda", "auto"]
"""Devices of a fit; auto is CUDA where there is one."""


@dataclass(frozen=True)
class FitOptions:
    """The options of a fit, each checked.

    Attributes:
        optimizer: ``"lbfgs"`` (full batch, strong Wolfe line search) or ``"adam"``.
        max_steps: largest number of steps, at least 1. A step is one iteration of L-BFGS or one pass of Adam over
            the data.
        learning_rate: learning rate of Adam, > 0.
        batch_size: observations in a mini-batch of Adam, at least 2, or lists (at least 1) when there is a qid; None
            takes everything at once.
        l2: factor of the L2 penalty, >= 0. With 0 a separable problem has no optimum.
        tolerance: relative accuracy of the objective at which a fit has converged, > 0.
        chunk_rows: features stay where they are given, in memory or in a memory-mapped array, and that many rows are on
            the device at a time, scored twice where their gradient is needed; at least 1. None holds all on the
            device. Also what processes deal out, 16384 rows where it is None.
        seed: of batches and dropout, >= 0.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for CUDA where there is one.

    Raises:
        ValueError: a field outside its range, named with the value received.

    Examples:
        >>> FitOptions(l2=-1.0)
        Traceback (most recent call last):
        ...
        ValueError: l2 must be a finite number >= 0, got -1.0
    """

    optimizer: OptimizerName = "lbfgs"
    max_steps: int = 1000
    learning_rate: float = 0.01
    batch_size: int | None = None
    chunk_rows: int | None = None
    l2: float = 1e-4
    tolerance: float = 1e-8
    seed: int = 0
    device: DeviceName = "cpu"

    def __post_init__(self) -> None:
        one_of("optimizer", self.optimizer, get_args(OptimizerName))
        one_of("device", self.device, get_args(DeviceName))
        for name, whole, least in (
            ("max_steps", self.max_steps, 1),
            ("batch_size", 1 if self.batch_size is None else self.batch_size, 1),
            ("chunk_rows", 1 if self.chunk_rows is None else self.chunk_rows, 1),
            ("seed", self.seed, 0),
        ):
            if not is_whole(whole) or whole < least:
                raise ValueError(f"{name} must be an integer >= {least}, got {whole!r}")
        for name, number in (("learning_rate", self.learning_rate), ("tolerance", self.tolerance)):
            if not 0 < as_float(number) < math.inf:
                raise ValueError(f"{name} must be a finite number > 0, got {number!r}")
        if not 0 <= as_float(self.l2) < math.inf:
            raise ValueError(f"l2 must be a finite number >= 0, got {self.l2!r}")
        if self.batch_size is not None and self.optimizer != "adam":
            raise ValueError(f"batch_size goes with optimizer 'adam', got {self.batch_size} with {self.optimizer!r}")

    def torch_device(self) -> torch.device:
        """Return the device.

        Raises:
            ValueError: ``"cuda"`` where torch sees no CUDA device.
        """
        cuda = torch.cuda.is_available()
        if self.device == "cuda" and not cuda:
            raise ValueError("device must be 'cpu' or 'auto' here, got 'cuda': torch finds no CUDA device")
        return torch.device("cuda" if cuda and self.device != "cpu" else "cpu")
