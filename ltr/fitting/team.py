"""The processes that share a fit, and the share of each."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

BLOCKS = 16
"""Largest number of pieces that work is cut into; further processes would be idle."""


class Team:
    """The processes of torch's default group, which hold the same data and take the same steps; or one process alone.

    Results do not depend on the number of processes, to the last bit. The group only adds up numbers that are 0 in all
    processes but one. Methods raise ConnectionError when another process has ended.

    Args:
        alone: whether to ignore the group.

    Attributes:
        size: number of processes.
        rank: index of this process, from 0.

    Examples:
        >>> team = Team()
        >>> team.size, team.rank, [team.owns(block, 3) for block in range(3)]
        (1, 0, [True, True, True])
    """

    def __init__(self, *, alone: bool = False) -> None:
        together = not alone and dist.is_available() and dist.is_initialized()
        self.size = dist.get_world_size() if together else 1
        self.rank = dist.get_rank() if together else 0

    def owns(self, block: int, blocks: int) -> bool:
        """Return whether a block is this process's share; neighbouring blocks go to the same process."""
        return block * self.size // max(blocks, self.size) == self.rank

    def gather(self, tensor: Tensor) -> None:
        """Put a tensor together, in place, of which each process holds a part, with 0 in the parts of others."""
        if self.size > 1:
            with others():
                dist.all_reduce(tensor)

    def follow(self, tensor: Tensor) -> None:
        """Copy a tensor, in place, from the first process."""
        if self.size > 1:
            with others():
                dist.broadcast(tensor, 0)

    def agreed(self, value: float, device: torch.device) -> float:
        """Return the value of the first process, because rounding may differ between devices."""
        if self.size == 1:
            return value
        told = torch.tensor(value, dtype=torch.float64, device=device)
        self.follow(told)
        return float(told)

    def check_same(self, arrays: Sequence[NDArray[np.generic] | None], device: torch.device) -> None:
        """Raise ValueError unless all processes hold the same arrays."""
        if self.size == 1:
            return
        given = [np.ascontiguousarray(array) for array in arrays if array is not None]
        own = zlib.crc32(b"".join(repr(array.shape).encode() + array.tobytes() for array in given))
        sums = torch.zeros(self.size, dtype=torch.int64, device=device)
        sums[self.rank] = own
        self.gather(sums)
        if bool((sums != own).any()):
            raise ValueError(
                "X, y and qid must be the same in every process of torch's default group, because each takes all rows "
                "and works on a share of them; got different ones"
            )


def blocks_of(rows: int, chunk: int) -> list[list[slice]]:
    """Cut rows into chunks and put these into at most 16 blocks of neighbours, whatever the number of processes.

    Examples:
        >>> blocks_of(5, 2)
        [[slice(0, 2, None)], [slice(2, 4, None)], [slice(4, 5, None)]]
    """
    chunks = [slice(begin, min(begin + chunk, rows)) for begin in range(0, rows, chunk)]
    count = min(len(chunks), BLOCKS)
    return [chunks[len(chunks) * at // count : len(chunks) * (at + 1) // count] for at in range(count)]


@contextlib.contextmanager
def others() -> Iterator[None]:
    """Return a context for communication that raises ConnectionError when another process does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError(f"a process that shares the fit has ended, or cannot be reached ({error})") from error
