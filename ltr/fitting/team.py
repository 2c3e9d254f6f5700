"""The processes of ``torch.distributed`` that make one fit together, each with its own rows.

Every process has some of the rows: those of whole lists, where there are lists. The rows of all processes, one process
after the other, are the rows of the fit. Everything that takes a few numbers per row (labels, lists, weights, scores)
is known to all processes; features stay in the process that has them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ltr.checks import as_array

_MANY = 1 << 20  # numbers that take longer to send than messages take to arrive


class Team:
    """The processes of torch's default group, or one process alone.

    All processes call the same methods in the same order. A method raises ConnectionError when another process has
    ended.

    Args:
        alone: whether to ignore the group.

    Attributes:
        size: number of processes.
        rank: index of this process, from 0.
    """

    def __init__(self, *, alone: bool = False) -> None:
        together = not alone and dist.is_available() and dist.is_initialized()
        self.size = dist.get_world_size() if together else 1
        self.rank = dist.get_rank() if together else 0

    def add(self, tensor: Tensor) -> None:
        """Replace a tensor by the sum of those of all processes."""
        if self.size == 1:
            return
        with others():
            if self.size == 2 and tensor.numel() < _MANY and dist.get_backend() == "gloo":
                # in one message each: gloo's sum takes two, for which a step of a few milliseconds waits
                both = [torch.empty_like(tensor) for _ in range(2)]
                dist.all_gather(both, tensor)
                torch.add(*both, out=tensor)
            else:
                dist.all_reduce(tensor)

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the arrays of all processes."""
        if self.size == 1:
            return values
        summed = torch.tensor(values, device=_device())
        self.add(summed)
        return summed.cpu().numpy()

    def follow(self, tensor: Tensor) -> None:
        """Overwrite a tensor with that of the first process."""
        if self.size > 1:
            with others():
                dist.broadcast(tensor, 0)

    def agreed(self, value: float) -> float:
        """Return the value of the first process, because rounding may differ between machines."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64, device=_device())
        self.follow(shared)
        return float(shared)

    def all(self, value: Any) -> list[Any]:  # noqa: ANN401 (whatever can be pickled)
        """Return the values of all processes, by rank."""
        found = [value]
        if self.size > 1:
            found = [None] * self.size
            with others():
                dist.all_gather_object(found, value)
        return found

    def starts(self, rows: int) -> NDArray[np.int64]:
        """Return the number of the first row of each process, and that of all rows, (size + 1,)."""
        return np.cumsum([0, *self.all(rows)])

    def span(self, rows: int) -> tuple[int, int]:
        """Return the number of this process's first row, and one more than that of its last, of so many own rows."""
        begin, end = self.starts(rows)[self.rank :][:2]
        return int(begin), int(end)

    def join(self, name: str, values: ArrayLike | None) -> ArrayLike | None:
        """Return the values of the rows of all processes; None where no process gives any.

        Raises:
            ValueError: values in some processes and None in others; `name` is that of the argument.
        """
        if self.size == 1:
            return values
        with self.checking():
            own = None if values is None else as_array(name, values, object if isinstance(values, list) else None)
        found = self.all(own)
        if all(part is None for part in found):
            return None
        if any(part is None for part in found):
            lacking = ", ".join(str(rank) for rank, part in enumerate(found) if part is None)
            raise ValueError(f"{name} must be given in every process or in none, got None in process {lacking}")
        # an array without rows may be of any type
        joined = np.concatenate([part for part in found if len(part)] or found[:1])
        return joined.tolist() if joined.dtype.kind == "O" else joined

    def columns(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return an array with the columns of all processes side by side, those of the first process first."""
        if self.size == 1:
            return values
        starts = self.starts(values.shape[1])
        joined = torch.zeros(len(values), starts[-1], dtype=torch.from_numpy(values).dtype, device=_device())
        joined[:, starts[self.rank] : starts[self.rank + 1]] = torch.from_numpy(values)
        self.add(joined)
        return joined.cpu().numpy()

    @contextlib.contextmanager
    def checking(self) -> Iterator[None]:
        """Return a context in which nothing is communicated; a ValueError or TypeError in it is raised in all."""
        own: ValueError | TypeError | None = None
        try:
            yield
        except (ValueError, TypeError) as error:
            if self.size == 1:
                raise
            own = error
        messages = self.all(None if own is None else str(own)) if self.size > 1 else []
        if own is not None:
            raise own
        for rank, message in enumerate(messages):
            if message is not None:
                raise ValueError(f"process {rank}: {message}")


ALONE = Team(alone=True)
"""The team of one process, whatever group there is."""


def _device() -> torch.device:
    """Return where tensors are that all processes can exchange."""
    cuda = dist.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if cuda else torch.device("cpu")


@contextlib.contextmanager
def others() -> Iterator[None]:
    """Return a context for communication that raises ConnectionError when another process does not answer."""
    try:
        yield
    except RuntimeError as error:
        raise ConnectionError(f"a process that shares the fit has ended, or cannot be reached ({error})") from error
