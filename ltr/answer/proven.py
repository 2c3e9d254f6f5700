"""What was proven about a ranked list: the range of each row's place, and the front of two statistics.

Data that files keep, with the sentences, tables and drawings that pages show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

__all__ = ["FrontPointOnList", "ListFront", "Plain", "RowRanges"]

_DRAWN = 300  # rows of a drawing
_Table = tuple[tuple[str, ...], list[tuple[str, ...]]]  # headings and cells


class Plain:
    """A data class of numbers, texts, tuples and other data classes, which JSON can hold."""

    _WHAT: ClassVar[str]  # what it is, in errors

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return what `to_dict` described; raise ValueError for another object."""
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(cls).validate_python(given)
        except ValueError as error:
            raise ValueError(f"not {cls._WHAT}: {' '.join(str(error).split()):.200}") from error


@dataclass(frozen=True)
class RowRanges(Plain):
    """The places that the rows of a training list take over all good scorers, as `ltr.exact.rank_ranges` finds them.

    Attributes:
        what, kind: the rows, such as ``"the 50 reranked rows of the training set"``, and ``"scorers"`` or ``"cards"``.
        within, least: a scorer is good whose `statistic` is so near the best value, as a share of it, which is `least`.
        among: whether the ranker itself is a good scorer on this list.
        summary: how many of the `first` rows are there whichever good scorer is used, without a full stop.
        rows, place, tied: number of each row in the file, from 1, its place by the ranker, and how many others tie.
        best, worst: no good scorer has the row above or below these places; good scorers reach both where `exact`.
        cards: number of good cards; None for scorers, and where not all cards were seen.
    """

    _WHAT = "the ranges of rows"

    what: str
    kind: str
    statistic: str
    within: float
    least: float
    proven: bool
    among: bool
    first: int
    summary: str
    by_query: bool
    rows: tuple[int, ...]
    place: tuple[int, ...]
    tied: tuple[int, ...]
    best: tuple[int, ...]
    worst: tuple[int, ...]
    exact: tuple[bool, ...]
    cards: int | None
    seconds: float

    def __post_init__(self) -> None:
        if len({len(getattr(self, name)) for name in ("rows", "place", "tied", "best", "worst", "exact")}) != 1:
            raise ValueError("lists of different lengths")

    heading = "How firm the order is"

    @property
    def scorers(self) -> str:
        """The good scorers in words."""
        best = "the best (proven)" if self.proven else "the best known"
        count = "" if self.cards is None else f"{self.cards:,} "
        return f"all {count}{self.kind} whose {self.statistic} is within {100 * self.within:g} % of {best}"

    @property
    def _apart(self) -> list[str]:
        """That the ranker is no good scorer, in a sentence; none where it is one."""
        return [] if self.among else [f"The ranker itself, made for new lists, is not one of these {self.kind}."]

    @property
    def sentences(self) -> list[str]:
        """What the ranges say of the list, in sentences."""
        found = [f"{self.what[0].upper()}{self.what[1:]}, over {self.scorers}: {self.summary}."]
        if (known := sum(self.exact)) < len(self.rows):
            found.append(
                f"The ranges of {known} of the {len(self.rows)} rows are exact; none of these {self.kind} leaves "
                f"those of the others, which may be narrower: their {self.seconds:g} seconds ended first."
            )
        return [*found, *self._apart]

    def row(self, row: int) -> dict[str, Any]:
        """Return what is known of a row, by its number in the file, with what good scorers are."""
        at = self.rows.index(row)
        own = {name: getattr(self, name)[at] for name in ("place", "tied", "best", "worst", "exact")}
        return {**own, "of": len(self.rows), "within": self.within, "proven": self.proven}

    def of_row(self, row: int) -> str:
        """Return where a row stands and may stand, in a sentence or two, by its number in the file."""
        at = self.rows.index(row)
        place, last, best, worst = self.place[at], self.place[at] + self.tied[at], self.best[at], self.worst[at]
        where = f"place {place}" if last == place else f"places {place} to {last}, tied,"
        query = " within their query" if self.by_query else ""
        may = f"may be anywhere from {best} to {worst}"
        if best == worst:
            may = f"is always at {best}"
        elif not self.exact[at]:
            may = f"is never above {best} or below {worst} (the exact range may be narrower)"
        said = f"Row {row} stands at {where} of {self.what}{query}; over {self.scorers}, it {may}."
        return " ".join([said, *self._apart])

    @property
    def _order(self) -> list[int]:
        """The rows in the order of their places."""
        return sorted(range(len(self.rows)), key=lambda at: (self.place[at], self.best[at], self.worst[at]))

    @property
    def table(self) -> _Table:
        """Headings and cells of a table of the rows in the order of their places."""
        cells: list[tuple[str, ...]] = []
        for at in self._order:
            known = "exact" if self.exact[at] else "at most this wide"
            cells.append((str(self.place[at]), str(self.rows[at]), f"{self.best[at]} to {self.worst[at]}", known))
        return ("place", "row", "may be at", "range"), cells

    @property
    def svg(self) -> str:
        """The picture: a bar for the range of each row, and a dot for its place, the first rows on top."""
        from ltr.display.figures import captioned, intervals_figure

        step = -(-len(self.rows) // _DRAWN)
        drawn = self._order[::step]
        low, high, place = (np.array(one, dtype=np.int64)[drawn] for one in (self.best, self.worst, self.place))
        exact = np.array(self.exact, dtype=bool)[drawn]
        some = "" if step == 1 else f" Every {step}th row is drawn."
        told = f"Places of {self.what} over {self.scorers}; the upright line ends the first {self.first}.{some}"
        return captioned(intervals_figure("", low, high, exact, self.first, place), told)


@dataclass(frozen=True)
class FrontPointOnList:
    """A point of a `ListFront`: two statistics, and what it gives up of the largest first one, as a share of it.

    No weights with at least this second statistic exceed `first_bound`.
    """

    first: float
    second: float
    first_bound: float
    price: float
    proven: bool


@dataclass(frozen=True)
class ListFront(Plain):
    """How much of one statistic of a training list has to be given up for how much of another, see `ltr.exact.front`.

    Attributes:
        names: the two statistics: that of the run, on the rows `what`, and the other one, on the whole training list.
        points: the points, from the largest first statistic to the largest second one.
        complete: whether it is proven that no weights have a second statistic beyond the last point.
    """

    _WHAT = "a front"

    what: str
    names: tuple[str, str]
    points: tuple[FrontPointOnList, ...]
    complete: bool
    seconds: float

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("no points")

    @property
    def heading(self) -> str:
        """What a page calls it."""
        return f"The price of {self.names[1]}"

    @property
    def sentences(self) -> list[str]:
        """What the front says, in sentences."""
        first, last = self.points[0], self.points[-1]
        ours, other = self.names
        said = f"{self.what[0].upper()}{self.what[1:]}: at the largest {ours} the {other} is {first.second:.3g}"
        if len(self.points) == 1:
            more = "no scorer has more (proven)" if self.complete else "no more was found"
            return [f"{said}; {more}."]
        said += f"; {last.second:.3g} costs {_percent(last.price)} of the {ours}."
        known, n = sum(point.proven for point in self.points), len(self.points)
        end = "no scorer goes beyond the last (proven)" if self.complete else "the time ended before the last was known"
        return [said, f"Of the {n} points {'all' if known == n else known} are proven, and {end}."]

    @property
    def table(self) -> _Table:
        """Headings and cells of a table of the points."""
        ours, other = self.names
        cells: list[tuple[str, ...]] = []
        for one in self.points:
            proof = "proven" if one.proven else f"at most {one.first_bound:.5g}"
            cells.append((f"{one.second:.4g}", f"{one.first:.5g}", _percent(one.price), proof))
        return (other, ours, "price", "proof"), cells

    @property
    def svg(self) -> str:
        """The picture: the points with the second statistic to the right and the first upwards."""
        from ltr.display.figures import captioned, front_figure

        points = [(one.second, one.first, one.first if one.proven else one.first_bound) for one in self.points]
        caption = f"The {self.names[0]} of {self.what}, upwards, by the {self.names[1]} of the whole set."
        return captioned(front_figure(self.names, points), caption)


def _percent(share: float) -> str:
    return "nothing" if share <= 1e-9 else f"{100 * share:.2g} %"
