"""The options of a fit, each checked, and how the learning rate moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import torch

from ltr.checks import check_number, check_whole, one_of
from ltr.training import ADAM_ONLY, DeviceName, OptimizerName, PrecisionName, ScheduleName


@dataclass(frozen=True)
class FitOptions:
    """The options of a fit, each checked; ValueError names a field outside its range, with the value received.

    Attributes:
        optimizer: ``"lbfgs"`` (full batch, strong Wolfe line search) or ``"adam"``.
        max_steps: largest number of steps, at least 1. A step is one iteration of L-BFGS or one pass of Adam over
            the data.
        learning_rate: learning rate of Adam, > 0.
        schedule: the learning rate is ``"constant"``; falls to 0 at `max_steps` along a half ``"cosine"``; or is halved
            on a ``"plateau"``, whenever a third of `patience` has passed without a better validation statistic.
        warmup: number of passes in which the learning rate of Adam rises from 0, batch by batch, >= 0.
        weight_decay: share of each weight that Adam takes away per step and unit of learning rate, >= 0; biases keep
            theirs. Unlike `l2` it does not pass through the moments of Adam (AdamW).
        clip: largest Euclidean norm of the gradient of a mini-batch, > 0; longer ones are shortened. None clips none.
        precision: ``"full"`` is that of the scorer's parameters; ``"bfloat16"`` takes the matrix products of
            mini-batches in that type; ``"auto"`` does so for parameters of float32 on a CUDA device.
        patience: number of steps without a better validation statistic after which a fit with validation ends, >= 1.
        batch_size: observations in a mini-batch of Adam, at least 2, or lists (at least 1) when there is a qid; None
            takes everything at once.
        l2: factor of the L2 penalty, >= 0. With 0 a separable problem has no optimum.
        tolerance: relative accuracy of the objective at which a fit has converged, > 0.
        chunk_rows: number of rows on the device at a time, at least 1. Features then stay where they are given, in
            memory or in a memory-mapped array, and are scored twice if their gradient is needed. None keeps all rows on
            the device.
        seed: seed of mini-batches and dropout, >= 0.
        device: ``"cpu"``, ``"cuda"``, or ``"auto"`` for CUDA if there is such a device.
    """

    optimizer: OptimizerName = "lbfgs"
    max_steps: int = 1000
    learning_rate: float = 0.01
    schedule: ScheduleName = "constant"
    warmup: int = 0
    weight_decay: float = 0.0
    clip: float | None = None
    precision: PrecisionName = "auto"
    patience: int = 20
    batch_size: int | None = None
    chunk_rows: int | None = None
    l2: float = 1e-4
    tolerance: float = 1e-8
    seed: int = 0
    device: DeviceName = "cpu"

    def __post_init__(self) -> None:
        one_of("optimizer", self.optimizer, get_args(OptimizerName))
        one_of("device", self.device, get_args(DeviceName))
        one_of("schedule", self.schedule, get_args(ScheduleName))
        one_of("precision", self.precision, get_args(PrecisionName))
        for name, least in (("max_steps", 1), ("seed", 0), ("warmup", 0), ("patience", 1)):
            check_whole(name, getattr(self, name), least)
        for name in ("batch_size", "chunk_rows"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), 1)
        for name in ("learning_rate", "tolerance", *(("clip",) if self.clip is not None else ())):
            check_number(name, getattr(self, name), above=0)
        for name in ("l2", "weight_decay"):
            check_number(name, getattr(self, name))
        if self.optimizer != "adam":
            for name in ADAM_ONLY:
                if (value := getattr(self, name)) != getattr(FitOptions, name, None):
                    raise ValueError(f"{name} is for optimizer 'adam' only, got {value!r} with {self.optimizer!r}")

    def rate(self, passes: float) -> float:
        """Return the learning rate of Adam after a number of passes over the data, before halvings on a plateau."""
        rate = self.learning_rate * min(1.0, passes / self.warmup if self.warmup else 1.0)
        if self.schedule == "cosine":
            rate *= (1.0 + math.cos(math.pi * passes / self.max_steps)) / 2.0
        return rate

    def torch_device(self) -> torch.device:
        """Return the device; raise ValueError for ``"cuda"`` where torch finds no such device."""
        cuda = torch.cuda.is_available()
        if self.device == "cuda" and not cuda:
            raise ValueError("device must be 'cpu' or 'auto' here, got 'cuda': torch finds no CUDA device")
        return torch.device("cuda" if cuda and self.device != "cpu" else "cpu")
