"""How scorers of single rows and scorers of whole lists score rows, and the random numbers that they are given."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from ltr.lists import buckets

_RANDOM = threading.Lock()


def draws_by_torch(scorer: nn.Module) -> bool:
    """Return whether a scorer may draw by torch's generators; those of this package draw by `SeededDropout` alone."""
    return not type(scorer).__module__.startswith("ltr.")


@contextlib.contextmanager
def own_randomness(device: torch.device | None = None) -> Iterator[None]:
    """Return a context whose random numbers, of the CPU and of a device, leave torch's generators as they were.

    They belong to the whole process, so that one thread at a time is in such a context.
    """
    with _RANDOM, torch.random.fork_rng([] if device is None or device.type == "cpu" else [device]):
        yield


def seed_random(seed: Sequence[int], device: torch.device) -> None:
    """Seed torch's generators of the CPU and of a device; `torch.manual_seed`, for all devices, takes 0.1 ms."""
    torch.default_generator.manual_seed(_number(seed))
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(_number(seed))


class SeededDropout(TorchFunctionMode):
    """A context in which `torch.nn.Dropout` draws from a seed of its own, so that threads do not share a generator.

    Each value is dropped with a probability that is a multiple of 2^-16. On a CPU this takes about a third of the time
    of torch's dropout.
    """

    def __init__(self, seed: Sequence[int]) -> None:
        super().__init__()
        self._seed, self._calls = tuple(seed), 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 (as torch has it)
        """Call a function of torch, or drop values instead of `torch.nn.functional.dropout`."""
        given = {} if kwargs is None else kwargs
        if func is F.dropout and (found := self._dropped(*args, **given)) is not None:
            return found
        return func(*args, **given)

    def _dropped(self, values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor | None:
        """Return values with some of them dropped, None where torch has to say what happens."""
        if not training or not 0 < p < 1:
            return None
        self._calls += 1
        size, least = values.numel(), min(round(p * 2**16), 2**16 - 1)
        seed = (*self._seed, self._calls)
        if values.device.type == "cpu":
            words = np.random.SFC64(np.random.SeedSequence(seed)).random_raw(-(-size // 4))
            drawn = torch.from_numpy(words.view(np.int16)[:size])
        else:
            generator = torch.Generator(values.device).manual_seed(_number(seed))
            drawn = torch.empty(size, dtype=torch.int16, device=values.device).random_(
                -(2**15), 2**15, generator=generator
            )
        kept = drawn.reshape(values.shape) >= least - 2**15
        return values * (kept.to(values.dtype) / (1 - least / 2**16))


def _number(seed: Sequence[int]) -> int:
    return int(np.random.SeedSequence(tuple(seed)).generate_state(1, np.uint64)[0] >> 1)


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
    scored = []
    for members, mask in ((members.to(rows.device), mask.to(rows.device)) for members, mask in parts):
        scored.append(scorer(rows[members].masked_fill(~mask.unsqueeze(-1), 0.0), mask)[mask])
    return torch.cat(scored)[torch.argsort(places).to(rows.device)]
