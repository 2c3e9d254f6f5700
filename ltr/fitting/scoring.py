"""How scorers of single rows and scorers of whole lists score rows, and the random numbers that they are given."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ltr.lists import buckets

_RANDOM = threading.Lock()


@contextlib.contextmanager
def own_randomness(device: torch.device | None = None) -> Iterator[None]:
    """Return a context whose random numbers, of the CPU and of a device, leave torch's generators as they were.

    They belong to the whole process, so that one thread at a time is in such a context.
    """
    with _RANDOM, torch.random.fork_rng([] if device is None or device.type == "cpu" else [device]):
        yield


def seed_random(seed: int, device: torch.device) -> None:
    """Seed torch's generators of the CPU and of a device; `torch.manual_seed`, for all devices, takes 0.1 ms."""
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(seed)


def scores_lists(scorer: nn.Module) -> bool:
    """Return whether a scorer needs whole lists: it says so by an attribute `of_lists`, and takes a mask."""
    return bool(getattr(scorer, "of_lists", False))


def score_rows(scorer: nn.Module, rows: Tensor, ids: NDArray[np.int64] | None) -> Tensor:
    """Return the scores of rows, (n,), from features (n, d) and the list of each row; None means that all are one list.

    A scorer of lists is called as ``scorer(features, mask)``, once for lists of similar length; padding is 0.
    """
    if not scores_lists(scorer):
        scores: Tensor = scorer(rows)
        return scores
    if ids is None:
        found: Tensor = scorer(rows.unsqueeze(0)).squeeze(0)
        return found
    parts = list(buckets(torch.from_numpy(np.unique(ids, return_inverse=True)[1])))
    places = torch.cat([members[mask] for members, mask in parts])
    lists = [(members.to(rows.device), mask.to(rows.device)) for members, mask in parts]
    scored = [scorer(rows[members].masked_fill(~mask.unsqueeze(-1), 0.0), mask)[mask] for members, mask in lists]
    return torch.cat(scored)[torch.argsort(places).to(rows.device)]
