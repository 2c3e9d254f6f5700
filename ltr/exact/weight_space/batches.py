r"""Boxes in batches on one device of torch: the bounds of thousands of boxes as a few matrix products.

**Interval bounds.** With the columns e of the pairs as a matrix E, centres C and half-widths R of a batch of boxes as
rows, the upper bounds of all pairs on all boxes are ``C E + R |E|``, and the lower ones ``C E - R |E|``. The rest of
what `ltr.native` does box by box is done here for a batch at once: the number of lost pairs of each member and the
bound that it gives, parts of boxes that lose too much (``probing.h``), pairs that must be won, unit losses, and the
hinge bound (``bounds.h``). Those headers have the proofs. Conflicts between pairs are left out, so this search needs
more boxes than the compiled one.

**Rounding.** A product over d + 1 coordinates errs by at most ``2 (d + 4)`` half-units of ``reach * ||e||_1``, in
whatever order a device adds it up, as long as it computes in double precision; `Space.slack` is 1,024 of them, and
problems with more than `_MOST_COORDINATES` are refused. Bounds themselves are sums of integers.

**Layout.** Members have different numbers of pairs. Here each has as many as the one with the most, filled up with
columns of zeros that no weights lose, so that the lost pairs of all members are counted by one sum over an axis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ltr.exact.problem import FloatArray, IntArray, Problem
from ltr.exact.weight_space.pool import NEVER, Found, Outcome, Settle
from ltr.exact.weight_space.space import Boxes, Searchable, Space

_MOST_COORDINATES = 400
_ROUNDS = 4  # of tightening a box
_STEPS = 5  # of the descent of the hinge bound
_RELAXATION, _BEYOND = 0.7, 1.2  # of a step towards the required loss, and to points that lose nothing
_NARROW = 1e-13  # width from which a coordinate is not split
_LEAST_CUT = 0.01  # share of a side from which a box that was tightened is bounded again
_LOSS_OFFSET = 0.02  # share of the required loss that is added to that of each half: one may lose nothing
_ROOM = 1e-12  # relative, for what is computed in floating point
_LEAST_BATCH, _FIRST_BATCH, _LARGEST_BATCH = 16, 256, 1 << 14
_SHORT, _LONG = 0.1, 0.4  # seconds between which a batch should take
_SHARE = 0.05  # of the free memory of a GPU for one array of a batch
_BYTES = 1 << 26  # of such an array elsewhere


def check_device(device: str) -> None:
    """Raise ValueError for a device that torch does not have here."""
    try:
        torch.zeros(1, dtype=torch.float64, device=device).item()
    except (RuntimeError, TypeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device must be one of torch with float64, such as 'cuda', got {device!r} ({reason})"
        ) from None


def check_problem(problem: Problem) -> None:
    """Raise ValueError for a problem that only the compiled search knows."""
    asked = {
        "a price C": problem.C > 0,
        "max_nonzeros": problem.max_nonzeros is not None,
        "side constraints": problem.constraints is not None,
        "required columns": bool(problem.required),
        "whole numbers": problem.integer is not None,
        "Subranks": getattr(problem, "rank", "") == "subrank",  # whose boxes close by conflicts
        f"more than {_MOST_COORDINATES - 1} features": problem.d >= _MOST_COORDINATES,
    }
    if wrong := [name for name, given in asked.items() if given]:
        raise ValueError(f"a search on a device does not know {', '.join(wrong)}: leave device=None")


def padded_bytes(space: Space) -> int:
    """Return the bytes that the pairs of a space take here, with those that fill up members."""
    return 4 * 8 * len(space.columns) * len(space.level) * _width(space)


def _width(space: Space) -> int:
    """Return the number of pairs of the member that has most."""
    return max(1, int(np.bincount(space.positive, minlength=1).max()))


class _Batch(NamedTuple):
    """Boxes on the device: least and largest coordinates, the margin's last, (boxes, d + 1), and bounds, (boxes,)."""

    low: Tensor
    high: Tensor
    bound: Tensor

    def at(self, rows: Tensor | slice) -> _Batch:
        return _Batch(self.low[rows], self.high[rows], self.bound[rows])

    @classmethod
    def joined(cls, *batches: _Batch) -> _Batch:
        return cls(*(torch.cat(parts) for parts in zip(*batches, strict=True)))


class _Pairs:
    """The pairs and tables of a space on a device.

    Attributes:
        columns: E, (d + 1, members * width).
        rising, falling: the parts of E above and below 0, as sizes.
        slack: rounding allowance of each pair, infinite for those that fill up a member.
        T: weights of the coordinates, w = T v, (d, d).
        width: pairs of a member.
    """

    def __init__(self, space: Space, device: torch.device) -> None:
        members, counts = len(space.level), np.bincount(space.positive, minlength=len(space.level))
        self.members, self.width = members, _width(space)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        place = space.positive * self.width + np.arange(len(space.positive)) - first[space.positive]
        columns, slack = np.zeros((len(space.columns), members * self.width)), np.full(members * self.width, np.inf)
        columns[:, place], slack[place] = space.columns, space.slack

        def moved(values: FloatArray | IntArray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(values)).to(device)

        self.columns, self.slack, self.T = moved(columns), moved(slack), moved(space.T)
        self.sizes = self.columns.abs()
        self.rising, self.falling = self.columns.clamp(min=0), (-self.columns).clamp(min=0)
        self.error, self.fixed, self.device = space.error, space.fixed, device
        self.contribution, self.step = moved(space.contribution), moved(space.step)
        self._most = int(space.most.max(initial=0))
        self._level, table = moved(space.level), space.table[space.level]
        self._levels = len(space.table)
        # where the value of each place of a sorted level is in the table, less its count
        self._places = moved(table + np.arange(members) - space.start[space.level])
        self._tables = moved(space.table)
        self._rows = self._level * (self._most + 2)

    @property
    def d(self) -> int:
        return len(self.columns) - 1

    def count(self, lost: Tensor) -> Tensor:
        """Return the number of lost pairs of each member, (..., members)."""
        return lost.view(*lost.shape[:-1], self.members, self.width).sum(-1)

    def value(self, counts: Tensor) -> Tensor:
        """Return the value of members with so many lost pairs, as an integer, (...)."""
        keys = counts + self._rows  # levels follow each other, so each stays together
        ordered = keys.sort(-1).values - self._rows
        return self.contribution[self._places + ordered].sum(-1)

    def paths(self, counts: Tensor) -> Tensor:
        """Return, for each level, the sum of the steps at counts from 0 to below x, (boxes, levels * (most + 2)).

        Members that raise their counts lose at least differences of it (``bounds.h``).
        """
        boxes = len(counts)
        fewer = torch.zeros(boxes, self._levels * (self._most + 2), dtype=torch.int64, device=self.device)
        fewer.scatter_add_(1, self._rows + counts, torch.ones_like(counts))
        # members of the level with a count up to m
        fewer = fewer.view(boxes, self._levels, self._most + 2).cumsum(-1)
        at = (self._tables[:, None] + fewer - 1 + torch.arange(self._most + 2, device=self.device)).clamp(
            0, len(self.step) - 1
        )
        steps = self.step[at]
        steps[fewer == 0] = 0  # counts that no member has
        path = torch.zeros_like(steps)
        path[..., 1:] = steps[..., :-1].cumsum(-1)
        return path.view(boxes, -1)

    def unit_losses(self, counts: Tensor, losable: Tensor, required: Tensor) -> tuple[Tensor, Tensor]:
        """Return the unit loss of each member, rounded down, and whether all its open pairs must be won.

        Args:
            counts: lost pairs of each member, (boxes, members).
            losable: its open pairs, likewise.
            required: required loss of each box, (boxes,).
        """
        path, begin = self.paths(counts), self._rows + counts
        start = path.gather(1, begin)
        limit = start + required[:, None]
        least, most = torch.zeros_like(losable), losable.clone()
        for _ in range(int(losable.max()).bit_length() if losable.numel() else 0):  # the largest x within the limit
            middle = (least + most + 1) >> 1
            within = path.gather(1, begin + middle) < limit
            least, most = torch.where(within, middle, least), torch.where(within, most, middle - 1)
        loss = (path.gather(1, begin + least) - start).to(torch.float64)
        return loss / least.clamp(min=1) * (1 - _ROOM), (least == 0) & (losable > 0)


class BatchPool:
    """Closes boxes of one space in batches on a device of torch; what `WorkerPool` does with threads.

    Attributes:
        boxes: boxes searched so far.
        threads: not used.
        trusted: whether every candidate is feasible, so that its value raises the cutoff.
        least_cutoff: integer to which lower cutoffs are raised, because of values found elsewhere meanwhile.

    Args:
        searchable: a space without price, side constraints and limits on weights.
        device: a device of torch.
        found: receives the weights of every better candidate.
        settle: receives every box too narrow to split, and returns what its values do not exceed, as an integer.
    """

    def __init__(self, searchable: Searchable, device: str, found: Found, settle: Settle) -> None:
        self.searchable, self.boxes, self.least_cutoff = searchable, 0, NEVER
        self.trusted, self.threads, self.work, self.reached = True, 1, None, np.zeros(0, np.int64)
        self._found, self._settle = found, settle
        self._pairs = _Pairs(searchable.space, torch.device(device))
        self._best, self._batch = NEVER, _FIRST_BATCH

    def __enter__(self) -> BatchPool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self, boxes: Boxes, cutoff: int, check: Callable[[], None], allowance: float = np.inf) -> Outcome:
        """Search boxes until everything in them is at most the cutoff, or the allowance is used up.

        The arguments and the result are those of `WorkerPool.close`.
        """
        pairs = self._pairs
        low, high, bound = (torch.from_numpy(v).to(pairs.device) for v in (boxes.low, boxes.high, boxes.bound))
        pending, spent, unresolved = _Batch(low, high, bound), 0, NEVER
        per_box = max(1, pairs.columns.numel() // 8)
        largest = max(1, min(_LARGEST_BATCH, self._room() // (8 * pairs.columns.shape[1])))
        while len(pending.bound) and spent < allowance:
            started = time.perf_counter()
            cutoff = max(cutoff, self.least_cutoff)
            size = min(self._batch, largest, len(pending.bound))
            batch, pending = pending.at(slice(-size, None)), pending.at(slice(None, -size))
            cutoff, left, narrow = self._divide(batch, cutoff)
            self.boxes, spent = self.boxes + size, spent + size * per_box
            pending = _Batch.joined(pending, left)
            for box in _rows(narrow):
                if box.bound[0] > max(cutoff, self.least_cutoff):
                    unresolved = max(unresolved, self._settle(box))
            if (seconds := time.perf_counter() - started) < _SHORT:
                self._batch = min(2 * self._batch, _LARGEST_BATCH)
            elif seconds > _LONG:
                self._batch = max(_LEAST_BATCH, self._batch // 2)
            check()
        return Outcome(max(cutoff, self.least_cutoff), list(_rows(pending)), unresolved, spent)

    def _room(self) -> int:
        """Return the bytes that one array of a batch may take."""
        device = self._pairs.device
        if device.type != "cuda":
            return _BYTES
        reusable = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(_SHARE * (torch.cuda.mem_get_info(device)[0] + reusable))

    # --- a batch -----------------------------------------------------------------------------------------------

    def _divide(self, batch: _Batch, cutoff: int) -> tuple[int, _Batch, _Batch]:
        """Bound, tighten and halve the boxes of a batch.

        Returns:
            the cutoff, raised by the values of candidates, their halves, and boxes too narrow to split.
        """
        halves, narrow = [], []
        for last in (number == _ROUNDS - 1 for number in range(_ROUNDS)):
            batch = batch.at(batch.bound > cutoff)
            if not len(batch.bound):
                break
            cutoff, ready, score, batch = self._tighten(batch, cutoff, last=last)
            widths = ready.high[:, :-1] - ready.low[:, :-1]
            splits = widths.amax(1) > _NARROW
            narrow.append(ready.at(~splits))
            halves.append(self._halves(ready.at(splits), torch.where(widths > _NARROW, score, -1.0)[splits]))
        empty = batch.at(slice(0, 0))
        return cutoff, _Batch.joined(empty, *halves), _Batch.joined(empty, *narrow)

    @staticmethod
    def _halves(batch: _Batch, score: Tensor) -> _Batch:
        """Return both halves of each box in the coordinate with the largest score."""
        j = score.argmax(1, keepdim=True)
        middle = 0.5 * (batch.low.gather(1, j) + batch.high.gather(1, j))
        below, above = batch.high.scatter(1, j, middle), batch.low.scatter(1, j, middle)
        return _Batch.joined(batch._replace(high=below), batch._replace(low=above))

    def _tighten(self, batch: _Batch, cutoff: int, *, last: bool) -> tuple[int, _Batch, Tensor, _Batch]:
        """Close or tighten the boxes of a batch.

        Returns:
            the cutoff, boxes to split, the score of each coordinate of these, and boxes to tighten again.
        """
        pairs = self._pairs
        if not pairs.fixed:
            batch = self._scale_margin(batch)
        before = batch.high - batch.low
        middle, half = 0.5 * (batch.low + batch.high), 0.5 * before
        centre, spread = middle @ pairs.columns, half @ pairs.sizes
        upper = centre + spread + pairs.slack
        lost, can_lose = upper < 0, centre - spread - pairs.slack < 0
        counts = pairs.count(lost)
        bound = torch.minimum(batch.bound, pairs.value(counts))
        low, high, score, closed = self._probe(batch, upper, bound - cutoff)
        open_ = can_lose & ~lost & torch.isfinite(pairs.slack)
        rows = (bound > cutoff) & ~closed
        batch = _Batch(low, high, bound).at(rows)
        score, before, upper, counts, open_ = (value[rows] for value in (score, before, upper, counts, open_))
        if not len(batch.bound):
            return cutoff, batch, score, batch
        # wider bounds than those of the box that probing left
        lower = (centre - spread - pairs.slack)[rows]
        required = batch.bound - cutoff
        unit_loss, forced = pairs.unit_losses(counts, pairs.count(open_), required)
        batch, empty = self._force(batch, upper, open_ & forced.repeat_interleave(pairs.width, 1))
        slopes = torch.where(open_, unit_loss.repeat_interleave(pairs.width, 1) / (-lower).clamp(min=1e-11), 0.0)
        batch, closed, x = self._bound_by_hinges(batch, slopes, required)
        cutoff = self._try(x, cutoff)
        # where probing loses nothing: the side that leaves most pairs open
        share = torch.where(open_, 1 / (upper - lower), 0.0) @ pairs.sizes.T
        score = torch.where(score.amax(1, keepdim=True) > 0, score, (share * before)[:, :-1])
        rows = ~(closed | empty) & (batch.bound > cutoff)
        shrunk = ((batch.high - batch.low) < (1 - _LEAST_CUT) * before).any(1)
        again = rows & shrunk & (not last)
        return cutoff, batch.at(rows & ~again), score[rows & ~again], batch.at(again)

    def _scale_margin(self, batch: _Batch) -> _Batch:
        """Return the boxes with the interval of the margin's coordinate, max |(T v)_j|, brought down to theirs."""
        T, low, high = self._pairs.T, batch.low.clone(), batch.high.clone()
        middle, half = 0.5 * (low + high)[:, :-1], 0.5 * (high - low)[:, :-1]
        centre, spread = (middle @ T.T).abs(), half @ T.abs().T
        error = _ROOM * ((middle.abs() + half) @ T.abs().T).amax(1)
        low[:, -1] = torch.maximum(low[:, -1], (centre - spread).amax(1) - error)
        high[:, -1] = torch.minimum(high[:, -1], (centre + spread).amax(1) + error)
        return _Batch(low, torch.maximum(low, high), batch.bound)

    def _probe(self, batch: _Batch, upper: Tensor, required: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return tightened sides, the score of a split in each coordinate, and whether a box is closed.

        On the upper half of a side of half width r, the upper bound of a pair falls by r where its entry is below 0, on
        the outer quarter by 1.5 r; on the lower ones where it is above 0.
        """
        pairs, low, high = self._pairs, batch.low.clone(), batch.high.clone()
        score = torch.zeros(len(low), pairs.d, dtype=torch.float64, device=pairs.device)
        closed, bound = torch.zeros_like(required, dtype=torch.bool), pairs.value(pairs.count(upper < 0))
        needed = required.clamp(min=1)
        for j in range(pairs.d):
            half = 0.5 * (batch.high[:, j] - batch.low[:, j])
            up, down = half[:, None] * pairs.falling[j], half[:, None] * pairs.rising[j]
            parts = torch.stack([pairs.count(upper < fall) for fall in (up, down, 1.5 * up, 1.5 * down)], 1)
            loss = bound[:, None] - pairs.value(parts)
            cut = (loss >= required[:, None]) & (half > 0.5 * _NARROW)[:, None]
            above, below, upper_quarter, lower_quarter = cut.unbind(1)
            middle, quarter = 0.5 * (batch.low[:, j] + batch.high[:, j]), 0.5 * (1 - 1e-6) * half
            closed |= above & below
            low[:, j] += torch.where(lower_quarter, quarter, 0.0)
            high[:, j] -= torch.where(upper_quarter, quarter, 0.0)
            low[:, j] = torch.where(below, middle, low[:, j])
            high[:, j] = torch.where(above, middle, high[:, j])
            x, y = (loss[:, part] / needed for part in (0, 1))
            score[:, j] = torch.where(x + y > 0, (x + _LOSS_OFFSET) * (y + _LOSS_OFFSET), 0.0)
        return low, torch.maximum(low, high), score, closed

    def _force(self, batch: _Batch, upper: Tensor, forced: Tensor) -> tuple[_Batch, Tensor]:
        """Return the boxes without what loses a pair that must be won, and whether nothing is left of a box.

        A pair with entry e_j > 0 whose upper bound is u loses where ``x_j < high_j - u / e_j``; with e_j < 0, where
        ``x_j > low_j + u / -e_j``.
        """
        low, high = batch.low.clone(), batch.high.clone()
        if forced.any():
            ceiling = torch.where(forced, upper, torch.inf)
            for j in range(self._pairs.d):
                for entries, side in ((self._pairs.rising[j], low), (self._pairs.falling[j], high)):
                    used = entries > 0
                    if not used.any():
                        continue
                    # `upper` has room for rounding; so has this quotient
                    reach = (ceiling[:, used] / entries[used]).amin(1) * (1 + _ROOM) + _NARROW
                    if side is low:
                        low[:, j] = torch.maximum(low[:, j], batch.high[:, j] - reach)
                    else:
                        high[:, j] = torch.minimum(high[:, j], batch.low[:, j] + reach)
        empty = (low > high).any(1)
        return _Batch(low, torch.maximum(low, high), batch.bound), empty

    def _bound_by_hinges(self, batch: _Batch, slopes: Tensor, required: Tensor) -> tuple[_Batch, Tensor, Tensor]:
        """Descend on the hinges of open pairs; return tightened boxes, which are closed, and the points reached."""
        pairs, needed = self._pairs, required.to(torch.float64) * (1 + _ROOM)
        low, high = batch.low, batch.high
        x, widths = 0.5 * (low + high), high - low
        best, phi = torch.zeros_like(x), torch.full_like(needed, -torch.inf)
        total, steps = torch.zeros_like(x), torch.zeros_like(needed)
        sums = torch.zeros_like(needed)
        for step in range(_STEPS):
            missing = -(x @ pairs.columns)
            active = torch.where(missing > 0, slopes, 0.0)
            h, g = (active * missing).sum(1), active @ pairs.columns.T
            total, sums, steps = total + g, sums + active.sum(1), steps + 1
            for slope, size in ((g, active.sum(1)), (total / steps[:, None], sums / steps)):
                reach = torch.maximum(slope * low, slope * high).sum(1)
                value = -reach - size * self._pairs.error
                better = value > phi
                phi, best = torch.where(better, value, phi), torch.where(better[:, None], slope, best)
            if step == _STEPS - 1:
                break
            blocked = ((g > 0) & (x >= high)) | ((g < 0) & (x <= low))
            scaled = torch.where(blocked, 0.0, g * widths)
            fall = torch.where(h >= needed, _RELAXATION * (h - 0.9 * needed), _BEYOND * h)  # where h may close the box
            norm = (scaled * scaled).sum(1)
            factor = torch.where(norm > 1e-200, fall / norm, 0.0)
            x = torch.minimum(torch.maximum(x + factor[:, None] * scaled * widths, low), high)
        closed = phi >= needed
        # points with a value above the cutoff satisfy best·x > -needed, and max best·x is at most -phi
        room = ((needed - phi) * (1 + _ROOM)).clamp(min=0)[:, None] / best.abs().clamp(min=1e-300) + _NARROW
        low = torch.where(best > 0, torch.maximum(low, high - room), low)
        high = torch.where(best < 0, torch.minimum(high, batch.low + room), high)
        return _Batch(low, torch.maximum(low, high), batch.bound), closed, x

    def _try(self, x: Tensor, cutoff: int) -> int:
        """Offer the best of some points, doubtful pairs lost; return the cutoff, raised by its value if trusted."""
        pairs = self._pairs
        if not pairs.fixed:
            x = x.clone()
            x[:, -1] = (x[:, :-1] @ pairs.T.T).abs().amax(1)
        values = pairs.value(pairs.count(x @ pairs.columns < torch.where(torch.isinf(pairs.slack), 0.0, pairs.slack)))
        value, row = (int(found) for found in values.max(0))
        if value <= self._best:
            return cutoff
        self._best = value
        self._found((pairs.T @ x[row, :-1]).cpu().numpy())
        return max(cutoff, value) if self.trusted else cutoff


def _rows(batch: _Batch) -> Iterator[Boxes]:
    """Return the boxes of a batch one by one."""
    low, high, bound = (values.cpu().numpy() for values in batch)
    for row in range(len(bound)):
        at = slice(row, row + 1)
        yield Boxes(low[at], high[at], np.ones(low[at].shape, np.uint8), bound[at], np.zeros(1, np.int64))
