"""Rows divided among processes by whole queries: as parts of a table, or anew in every epoch of a training."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_array, check_whole
from ltr.data.dataset import DataError, checked_queries

IntArray = NDArray[np.int64]


def check_part(part: tuple[int, int]) -> tuple[int, int]:
    """Return the rank of a process and the number of processes.

    Raises:
        ValueError: not two whole numbers, the first from 0 and below the second.
    """
    if not isinstance(part, tuple | list) or len(part) != 2:
        raise ValueError(f"part must be (rank, number of processes), got {part!r:.80}")
    rank, size = part
    check_whole("the number of processes in part", size, 1)
    check_whole("the rank in part", rank, 0)
    if rank >= size:
        raise ValueError(f"the rank in part must be below the number of processes, {size}, got {rank}")
    return int(rank), int(size)


def cuts_between_queries(qid: NDArray[np.generic] | None, rows: int, count: int) -> list[int]:
    """Return where rows are cut into so many parts of about equal length, (count + 1): only where the query changes.

    Args:
        qid: the query of each row, (rows,); None where rows may be cut anywhere.
        rows: number of rows.
        count: number of parts, some of which may be empty.

    Examples:
        >>> cuts_between_queries(np.array([7, 7, 7, 5, 5, 9]), 6, 2), cuts_between_queries(None, 5, 2)
        ([0, 3, 6], [0, 2, 5])
        >>> cuts_between_queries(np.array([7, 7, 7]), 3, 2)
        [0, 3, 3]
    """
    if qid is None:
        return [rows * at // count for at in range(count + 1)]
    changes = np.concatenate([[0], np.flatnonzero(qid[1:] != qid[:-1]) + 1, [rows]])
    wanted = rows * np.arange(1, count) / count
    after = np.searchsorted(changes, wanted).clip(1)
    nearest = np.where(wanted - changes[after - 1] < changes[after] - wanted, after - 1, after)
    return [0, *np.maximum.accumulate(changes[nearest]).tolist(), rows]


def rows_of_part(
    qid: NDArray[np.generic] | None, rows: int, part: tuple[int, int], where: str = "rows"
) -> tuple[int, int]:
    """Return the number of the first row of one of several processes, and one more than that of its last.

    Args:
        qid: the query of each row, (rows,); None where rows may be cut anywhere.
        rows: number of rows.
        part: rank of the process and number of processes.
        where: what the rows are of, for messages.

    Raises:
        DataError: rows of a query that do not follow each other.
    """
    if qid is not None and rows and 1 + np.count_nonzero(qid[1:] != qid[:-1]) > len(set(qid.tolist())):
        raise DataError(
            f"{where}: rows of a query must follow each other where processes share a file: sort it by query"
        )
    begin, end = cuts_between_queries(qid, rows, part[1])[part[0] :][:2]
    return begin, end


class QueryShards:
    """Batches of whole queries for the processes of a training: a ``batch_sampler`` of torch's DataLoader.

    In an epoch every query is in one batch of one process, in an order that is drawn anew in every epoch. A batch has
    ``batch_size`` queries for each process, dealt so that processes have about the same number of rows so far. If the
    last one has fewer queries than there are processes, those without one yield one batch less: `len` says how many a
    process has, and ``torch.distributed.algorithms.Join``, or ``model.join()`` of DistributedDataParallel, lets the
    others go on.

    Args:
        qid: the query of each row, integers or texts, (n,), in any order.
        batch_size: queries of a batch for each process, at least 1.
        part: rank of this process and number of processes; None takes those of torch's default group.
        shuffle: whether queries come in another order in every epoch; False keeps that of their first rows.
        seed: seed of the orders, >= 0, the same in all processes.

    Raises:
        DataError: ids that are neither integers nor texts.
        ValueError: another argument that breaks its rule.

    Examples:
        >>> qid = ["a", "a", "b", "c", "c", "c", "d"]
        >>> shards = [QueryShards(qid, batch_size=1, part=(rank, 2), shuffle=False) for rank in range(2)]
        >>> [list(shard) for shard in shards]
        [[[0, 1], [6]], [[2], [3, 4, 5]]]
        >>> three = [QueryShards(qid, batch_size=1, part=(rank, 3)) for rank in range(3)]
        >>> sorted(len(shard) for shard in three)
        [1, 1, 2]
    """

    def __init__(
        self,
        qid: ArrayLike,
        batch_size: int = 16,
        *,
        part: tuple[int, int] | None = None,
        shuffle: bool = True,
        seed: int = 0,
    ) -> None:
        if part is None:
            from torch import distributed as dist

            together = dist.is_available() and dist.is_initialized()
            part = (dist.get_rank(), dist.get_world_size()) if together else (0, 1)
        self.rank, self.size = check_part(part)
        check_whole("batch_size", batch_size, 1)
        check_whole("seed", seed, 0)
        given = as_array("qid", qid, object if isinstance(qid, list | tuple) else None)
        number, _ = checked_queries(given, len(given))
        order = np.argsort(number, kind="stable")
        self._rows = np.split(order, np.cumsum(np.bincount(number))[:-1]) if len(given) else []
        self.batch_size, self.shuffle, self.seed, self.epoch = batch_size, shuffle, seed, 0
        self._own: tuple[int, list[list[int]]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch, counted from 0; call it in all processes before each epoch."""
        check_whole("epoch", epoch, 0)
        self.epoch = epoch

    @property
    def sampler(self) -> QueryShards:
        """Itself: Lightning calls `set_epoch` of a batch sampler's ``sampler``."""
        return self

    def __len__(self) -> int:
        return len(self._batches())

    def __iter__(self) -> Iterator[list[int]]:
        for queries in self._batches():
            yield np.concatenate([self._rows[query] for query in queries]).tolist()

    def _batches(self) -> list[list[int]]:
        """Return the queries of each of this process's batches."""
        if self._own is not None and self._own[0] == self.epoch:
            return self._own[1]
        order = np.arange(len(self._rows))
        if self.shuffle:
            order = np.random.default_rng((self.seed, self.epoch)).permutation(len(self._rows))
        held, batches = [0] * self.size, []
        for begin in range(0, len(order), self.batch_size * self.size):
            queries = order[begin : begin + self.batch_size * self.size].tolist()
            shares: list[list[int]] = [[] for _ in range(self.size)]
            # in turns, the longest query to the process with the fewest rows of those that are to get one
            for query in sorted(queries, key=lambda query: -len(self._rows[query])):
                turn = min(map(len, shares))
                fewest = min((held[at], at) for at in range(self.size) if len(shares[at]) == turn)[1]
                shares[fewest].append(query)
                held[fewest] += len(self._rows[query])
            if own := shares[self.rank]:
                batches.append(sorted(own, key=queries.index))
        self._own = (self.epoch, batches)
        return batches
