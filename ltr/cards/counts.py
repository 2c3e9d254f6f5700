"""What the totals of a card mean on some rows: how many rows have each, and what happened to them.

Of plain labels that is the share of positives, of times until an event the share of rows with their event by a horizon
(Kaplan-Meier), of treatments the difference of the mean outcomes of treated rows and others.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.outcomes import Times, Treatments, effect_interval, kaplan_meier, wilson

if TYPE_CHECKING:
    from pydantic import ConfigDict

Estimate = tuple[float, float, float]
"""A number and the ends of its 90 % interval."""

_CURVES = 5  # most groups of totals with a curve of their own
_STEPS = 60  # most steps of a curve

STRICT: ConfigDict = {"extra": "ignore", "allow_inf_nan": False}
"""How pydantic, by which `Card.from_dict` reads files, checks numbers."""


@dataclass(frozen=True)
class Curve:
    """The Kaplan-Meier curve of rows whose totals lie in a range: the share without an event until each time."""

    __pydantic_config__ = STRICT

    totals: tuple[int, int]
    rows: int
    times: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.shares):
            raise ValueError(f"shares must be one for each of {len(self.times)} times, got {len(self.shares)}")


@dataclass(frozen=True)
class Counts:
    """How many rows of a data set have each total, descending, and what happened to them.

    `positives` counts the rows with a label above 0, with an event, or with an outcome above 0. `value` and `beside`
    are the statistic of the totals and of the scores that the card is compared with, None where undefined. Of times and
    treatments, `estimates` has what `Card.measure` names for each total, None where it is unknown, and `curves` those
    of groups of totals, the largest first. Raises ValueError for several lengths, or more positives than rows.
    """

    __pydantic_config__ = STRICT

    name: str
    totals: tuple[int, ...]
    rows: tuple[int, ...]
    positives: tuple[int, ...]
    value: float | None = None
    beside: float | None = None
    estimates: tuple[Estimate | None, ...] = ()
    curves: tuple[Curve, ...] = ()

    def __post_init__(self) -> None:
        if len({*map(len, (self.totals, self.rows, self.positives))}) > 1:
            raise ValueError("counts must hold lists of one length")
        if len(self.estimates) not in (0, len(self.totals)):
            raise ValueError(f"counts must hold an estimate for each total, got {len(self.estimates)}")
        if any(not 0 <= positives <= rows for rows, positives in zip(self.rows, self.positives, strict=True)):
            raise ValueError("counts must not have more positives than rows")

    def rows_of(self, total: int) -> int:
        """Return the number of rows with a total."""
        return self.rows[self.totals.index(total)] if total in self.totals else 0

    def estimate(self, total: int) -> Estimate | None:
        """Return the share of positives of a total, or what stands for it, with its interval; None where unknown."""
        if total not in self.totals:
            return None
        at = self.totals.index(total)
        if self.estimates:
            return self.estimates[at]
        return (self.positives[at] / self.rows[at], *wilson(self.positives[at], self.rows[at]))

    def chances(self) -> tuple[Estimate, ...]:
        """Return the share of positives for each total, pooled so that it does not fall as totals rise.

        Neighbouring totals whose shares fall are pooled (isotonic regression), and have the interval of all their rows.
        """
        blocks: list[list[int]] = []  # positives, rows and totals, the largest totals first
        for positives, rows in zip(self.positives, self.rows, strict=True):
            blocks.append([positives, rows, 1])
            while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] <= blocks[-1][0] * blocks[-2][1]:
                last = blocks.pop()
                blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
        found = (((positives / rows, *wilson(positives, rows)), size) for positives, rows, size in blocks)
        return tuple(one for one, size in found for _ in range(size))

    @property
    def log_loss(self) -> float:
        """The mean of ``-log`` of the chance of what happened, with `chances`: how well these rows are foretold."""
        loss = 0.0
        for (chance, _, _), rows, positives in zip(self.chances(), self.rows, self.positives, strict=True):
            for number, share in ((positives, chance), (rows - positives, 1.0 - chance)):
                loss -= number * math.log(share) if number else 0.0
        return loss / sum(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, without the fields that plain labels do not have."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("estimates", "curves")}


def count(
    name: str,
    totals: NDArray[np.int64],
    y: NDArray[Any] | Times | Treatments,
    horizon: float | None,
    *,
    value: float | None,
    beside: float | None,
) -> Counts:
    """Return the counts of rows with these totals and labels; by `horizon` the share of events is told."""
    different = np.unique(totals)[::-1]
    positive = y.event if isinstance(y, Times) else y.outcome > 0 if isinstance(y, Treatments) else y > 0
    members = [totals == total for total in different]
    rows, positives = (tuple(int(of[one].sum()) for one in members) for of in (np.ones(len(totals)), positive))
    estimates: tuple[Estimate | None, ...] = ()
    curves: tuple[Curve, ...] = ()
    if isinstance(y, Times):
        assert horizon is not None
        estimates = tuple(_events_by(y.time[one], y.event[one], horizon) for one in members)
        curves = _curves(totals, y)
    if isinstance(y, Treatments):
        estimates = tuple(effect_interval(y.outcome[one], y.treatment[one]) for one in members)
    return Counts(name, tuple(map(int, different)), rows, positives, value, beside, estimates, curves)


def _events_by(time: NDArray[np.float64], event: NDArray[np.bool_], horizon: float) -> Estimate | None:
    """Return the share of rows with an event by a time; None where no row was seen as long, unless all had it."""
    curve = kaplan_meier(time, event, level=0.9)
    at = int(np.searchsorted(curve.time, horizon, "right")) - 1
    share = float(curve.share[at]) if at >= 0 else 1.0
    if share > 0 and not np.any(time >= horizon):
        return None
    if share in (0.0, 1.0):
        ends = wilson(0, len(time))  # as for a share, where the variance says nothing
        return (1 - share, *(ends if share == 1.0 else (1 - ends[1], 1.0)))
    return 1 - share, 1 - float(curve.upper[at]), 1 - float(curve.lower[at])


def _curves(totals: NDArray[np.int64], y: Times) -> tuple[Curve, ...]:
    """Return the curves of up to five groups of totals with about as many rows each."""
    different, counts = np.unique(totals, return_counts=True)
    group = np.minimum((np.cumsum(counts) - counts / 2) * _CURVES // len(totals), _CURVES - 1)
    found = []
    for number in np.unique(group)[::-1]:
        own = different[group == number]
        members = (totals >= own[0]) & (totals <= own[-1])
        curve = kaplan_meier(y.time[members], y.event[members])
        kept = np.unique(np.linspace(0, len(curve.time) - 1, min(len(curve.time), _STEPS)).astype(np.int64))
        steps, shares = [0.0, *curve.time[kept].tolist()], [1.0, *curve.share[kept].tolist()]
        if (last := float(y.time[members].max())) > steps[-1] or len(steps) == 1:
            steps.append(last)
            shares.append(shares[-1])
        found.append(Curve((int(own[0]), int(own[-1])), int(members.sum()), tuple(steps), tuple(shares)))
    return tuple(found)
