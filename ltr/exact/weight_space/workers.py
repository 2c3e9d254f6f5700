"""The worker pool: threads that close boxes, in pieces small enough to be stopped between them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from ltr.exact.problem import RerankProblem
from ltr.exact.weight_space._kernel import search
from ltr.exact.weight_space.space import Boxes, Searchable, Work, space_of

__all__ = ["Outcome", "WorkerPool", "available_threads", "compile_kernels"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Found = Callable[[FloatArray], None]
Settle = Callable[[Boxes], int]

_PIECE = 4_000_000  # pairs looked at between two looks at the clock: about a tenth of a second
_FIRST = 500_000  # and before threads are worth their start
_TOGETHER = 8  # boxes a piece, at most
_NARROW = 16  # boxes too narrow to split that a piece hands over at most
_POLL = 0.05  # seconds between two looks at the clock
_NEVER = -(2**62)


@dataclass(frozen=True)
class Outcome:
    """The result of `WorkerPool.close`.

    Attributes:
        cutoff: what their values do not exceed, save in `left` and `unresolved`: the one asked for, or the value of a
            better candidate.
        left: boxes that the allowance did not suffice for.
        unresolved: the largest bound of boxes too narrow to split that could not be settled either, far below all
            values where there were none.
        spent: pairs looked at.
    """

    cutoff: int
    left: list[Boxes]
    unresolved: int
    spent: int


@dataclass(frozen=True)
class _Piece:
    cutoff: int
    found: int
    best: FloatArray
    left: Boxes
    narrow: Boxes
    tally: IntArray
    work: Work


def available_threads() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerPool:
    """Searches boxes of one space on several threads; a context manager that ends its threads.

    Attributes:
        boxes: boxes searched so far.
        least_cutoff: integer to which lower cutoffs are raised, because of values found elsewhere meanwhile.
    """

    def __init__(
        self, searchable: Searchable, threads: int, found: Found, settle: Settle = lambda box: int(box.bound[0])
    ) -> None:
        """`found` and `settle` are called in the thread that called `close`.

        Args:
            searchable: the space.
            threads: to use.
            found: receives the coordinates of every better candidate.
            settle: receives every box too narrow to split, and returns what its values do not exceed, as an integer.
        """
        self.searchable, self.boxes, self.least_cutoff = searchable, 0, _NEVER
        self._threads, self._found, self._settle = threads, found, settle
        self._best = _NEVER
        self._idle: list[Work] = []
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def close(self, boxes: Boxes, cutoff: int, check: Callable[[], None], allowance: float = np.inf) -> Outcome:
        """Search boxes until everything in them is at most the cutoff, or the allowance is used up.

        Args:
            boxes: to search.
            cutoff: bound at which a box is closed, an integer of the space.
            check: called several times a second; what it raises ends the search.
            allowance: work, in pairs looked at, after which the boxes that are left are returned.
        """
        least = 2 * self.searchable.space.columns.size
        pending = [boxes.rows(slice(row, row + 1)) for row in range(len(boxes.bound))]
        done = Outcome(cutoff, pending, _NEVER, 0)
        self.searchable.space.stop[0] = 0
        if least <= _FIRST:
            pending.clear()
            done = self._take(self._search(boxes, cutoff, _FIRST), done)
            check()
            if not pending or done.spent >= allowance:
                return done
        self._pool = self._pool or ThreadPoolExecutor(self._threads, thread_name_prefix="weight-space")
        running: set[Future[_Piece]] = set()
        try:
            while (pending and done.spent < allowance) or running:
                while pending and done.spent < allowance and len(running) < self._threads:
                    running.add(
                        self._pool.submit(
                            self._search, _pop(pending), max(done.cutoff, self.least_cutoff), max(_PIECE, least)
                        )
                    )
                finished, running = wait(running, timeout=_POLL, return_when=FIRST_COMPLETED)
                for future in finished:
                    done = self._take(future.result(), done)
                check()
        finally:
            self.searchable.space.stop[0] = 1
            wait(running)
        return done

    def _search(self, boxes: Boxes, cutoff: int, allowance: int) -> _Piece:
        space = self.searchable.space
        work = self._idle.pop() if self._idle else self._workspace()
        columns = space.columns.shape[0]
        left, narrow = Boxes.empty(len(boxes.bound) + work.low.shape[0], columns), Boxes.empty(_NARROW, columns)
        best, tally = np.zeros(columns), np.zeros(4, np.int64)
        handed, reached, value, narrowed = search(space, work, boxes, cutoff, allowance, left, narrow, best, tally)
        narrow = narrow.rows(slice(0, narrowed))
        return _Piece(reached, value, best, left.rows(slice(0, handed)), narrow, tally, work)

    def _workspace(self) -> Work:
        """Return memory for a thread, its largest part touched row by row: that can take longer than many boxes do."""
        space = self.searchable.space
        work, pairs = Work.of(space), space.columns.shape[1]
        for rows in (work.columns, work.single):
            for row in rows:
                if space.stop[0] != 0:  # the search will hand its boxes back at once
                    return work
                row[:pairs] = 0.0
        return work

    def _take(self, piece: _Piece, done: Outcome) -> Outcome:
        self._idle.append(piece.work)
        self.boxes += int(piece.tally[0])
        if piece.found > self._best:
            self._best = piece.found
            self._found(piece.best)
        # the deepest boxes last: they are the next to be searched
        done.left.extend(piece.left.rows(slice(row, row + 1)) for row in range(len(piece.left.bound)))
        cutoff, unresolved = max(done.cutoff, piece.cutoff), done.unresolved
        for row in range(len(piece.narrow.bound)):
            if piece.narrow.bound[row] > max(cutoff, self.least_cutoff):
                unresolved = max(unresolved, self._settle(piece.narrow.rows(slice(row, row + 1))))
            else:  # closed by a value that was found meanwhile
                cutoff = max(cutoff, int(piece.narrow.bound[row]))
        return Outcome(cutoff, done.left, unresolved, done.spent + int(piece.tally[3]))


def compile_kernels() -> None:
    """Have the search compiled, or loaded from its cache on disk."""
    with WorkerPool(space_of(RerankProblem([[0.0], [1.0]], [0, 1])), 1, lambda x: None) as workers:
        workers.close(workers.searchable.roots, 0, lambda: None)


def _pop(pending: list[Boxes]) -> Boxes:
    """Take some boxes off the stack: more where there are many, and few enough that all threads have work."""
    take = min(_TOGETHER, 1 + len(pending) // 16)
    taken = pending[-take:]
    del pending[-take:]
    return Boxes(*(np.concatenate(parts) for parts in zip(*taken, strict=True)))
