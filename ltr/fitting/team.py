"""The processes that share a fit, and what each of them does."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["BLOCKS", "Team", "blocks_of", "others"]

BLOCKS = 16
"""Pieces at most that work is cut into: more processes have nothing to do."""


class Team:
    """The processes of torch's default group, all of which hold the same data and take the same steps; or one alone.

    Numbers travel in such a way that it does not matter, to the last bit, how many processes there are: what one
    process holds and others hold as 0 is added up, and no other sum is ever left to the group.

    Args:
        alone: leave the group out of it.

    Attributes:
        size: how many they are.
        rank: the number of this one, from 0 on.

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
        """Whether one of so many blocks is this process's share; neighbours go to one process."""
        return block * self.size // max(blocks, self.size) == self.rank

    def gather(self, tensor: Tensor) -> None:
        """Put together, in place, what each process holds a part of, with 0 in the parts of others.

        Raises:
            ConnectionError: another process has ended.
        """
        if self.size > 1:
            with others():
                dist.all_reduce(tensor)

    def follow(self, tensor: Tensor) -> None:
        """Take over, in place, what the first process holds.

        Raises:
            ConnectionError: another process has ended.
        """
        if self.size > 1:
            with others():
                dist.broadcast(tensor, 0)

    def agreed(self, value: float, device: torch.device) -> float:
        """The first process's value, which decides where rounding might differ from one device to another.

        Raises:
            ConnectionError: another process has ended.
        """
        if self.size == 1:
            return value
        told = torch.tensor(value, dtype=torch.float64, device=device)
        self.follow(told)
        return float(told)

    def check_same(self, arrays: Sequence[NDArray[np.generic] | None], device: torch.device) -> None:
        """Check that all processes hold the same arrays.

        Raises:
            ValueError: they do not.
            ConnectionError: another process has ended.
        """
        if self.size == 1:
            return
        given = [np.ascontiguousarray(array) for array in arrays if array is not None]
        own = zlib.crc32(b"".join(repr(array.shape).encode() + array.tobytes() for array in given))
        sums = torch.zeros(self.size, dtype=torch.int64, device=device)
        sums[self.rank] = own
        self.gather(sums)
        if bool((sums != own).any()):
            raise ValueError(
                "X, y and qid must be the same in every process of torch's default group, for each takes all rows and "
                "works on a share of them; got different ones"
            )


def blocks_of(rows: int, chunk: int) -> list[list[slice]]:
    """Rows cut into chunks, and these put into blocks, neither of which depends on the number of processes.

    Args:
        rows: how many.
        chunk: rows of a chunk, the last one may be shorter.

    Returns:
        at most 16 blocks of neighbouring chunks.

    Examples:
        >>> blocks_of(5, 2)
        [[slice(0, 2, None)], [slice(2, 4, None)], [slice(4, 5, None)]]
    """
    chunks = [slice(begin, min(begin + chunk, rows)) for begin in range(0, rows, chunk)]
    count = min(len(chunks), BLOCKS)
    return [chunks[len(chunks) * at // count : len(chunks) * (at + 1) // count] for at in range(count)]


@contextlib.contextmanager
def others() -> Iterator[None]:
    """A context in which other processes are talked to.

    Raises:
        ConnectionError: one of them does not answer.
    """
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError(f"a process that shares the fit has ended, or cannot be reached ({error})") from error
