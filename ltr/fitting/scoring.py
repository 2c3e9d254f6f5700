"""How scorers of single rows and scorers of whole lists score rows, and the random numbers that they are given."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ltr.lists import buckets

_RANDOM, _OWN = threading.Lock(), threading.local()


@contextlib.contextmanager
def own_randomness(device: torch.device | None = None, scorer: nn.Module | None = None) -> Iterator[None]:
    """Return a context whose random numbers, of the CPU and of a device, leave torch's generators as they were.

    These belong to the whole process, so that one thread at a time is in such a context. A scorer that draws by nothing
    but `Dropout` gets a generator of its own on the CPU, and does not wait for other threads.
    """
    on_cpu = device is None or device.type == "cpu"
    if on_cpu and scorer is not None and type(scorer).__module__.startswith("ltr."):
        _OWN.generator = torch.Generator()
        try:
            yield
        finally:
            del _OWN.generator
    else:
        with _RANDOM, torch.random.fork_rng([] if on_cpu else [device]):
            yield


def seed_random(seed: int, device: torch.device) -> None:
    """Seed the generators of the context, of the CPU and of a device; `torch.manual_seed`, of all, takes 0.1 ms."""
    getattr(_OWN, "generator", torch.default_generator).manual_seed(seed)
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(seed)


class Dropout(nn.Dropout):
    """torch's dropout, which on a CPU draws a byte for each value: a fifth of the time of a number for each.

    So the share that is dropped is a multiple of 1/256, the nearest one to `p`, and what is kept is scaled by it.
    """

    def forward(self, values: Tensor) -> Tensor:
        """Return the values, in training with a share of them set to 0 and the others scaled to keep the mean."""
        if torch.jit.is_scripting():
            return F.dropout(values, self.p, self.training)
        else:  # noqa: RET505 (TorchScript leaves out the other branch only if there are two)
            return self._drawn(values)

    def _drawn(self, values: Tensor) -> Tensor:
        dropped = round(256 * self.p)
        if not self.training or dropped in (0, 256) or values.device.type != "cpu":
            return F.dropout(values, self.p, self.training)
        drawn = torch.empty(values.numel() // 8 + 1, dtype=torch.int64)
        drawn.random_(-(2**63), None, generator=getattr(_OWN, "generator", None))
        kept = drawn.view(torch.uint8)[: values.numel()].view(values.shape) >= dropped
        return values * kept.to(values.dtype).mul_(256 / (256 - dropped))


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
