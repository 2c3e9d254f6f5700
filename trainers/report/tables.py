"""Tables of a sweep's report: what each method reached, how long it took, and on which data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainers.files import Json
from trainers.records import SweepResults
from trainers.report.evidence import Evidence
from trainers.report.markdown import literal
from trainers.report.page import Block, Section, Table, Text
from trainers.report.paired import ALPHA, paired
from trainers.report.series import FloatArray, Series, Variant
from trainers.report.sweep_tables import Row, SweepTable
from trainers.report.wording import ABSENT, decimals_of

__all__ = [
    "HALVES",
    "Reached",
    "data_table",
    "largest",
    "line_of",
    "progress",
    "seconds",
    "time_section",
    "value_sections",
]

HALVES = ("train", "test")


@dataclass(frozen=True)
class Reached:
    """What a variant reached on one half of one data set.

    Attributes:
        mean: over the splits where the statistic is defined, NaN without any.
        std: with ddof = 1, None of fewer than two splits.
        splits: how many these are.
        standing: ``"best"`` of its line, ``"close"`` where not significantly worse than the best, else empty.
    """

    mean: float
    std: float | None
    splits: int
    standing: Literal["best", "close", ""] = ""

    @classmethod
    def of(cls, values: FloatArray, standing: Literal["best", "close", ""] = "") -> Reached:
        """The mean and standard deviation of values, NaN left out."""
        known = values[~np.isnan(values)]
        std = float(known.std(ddof=1)) if len(known) > 1 else None
        return cls(float(known.mean()) if len(known) else math.nan, std, len(known), standing)

    def text(self, decimals: int, full: int) -> str:
        """``12.34 ± 0.56``, marked by its standing, and by its number of splits where that is less than `full`."""
        if not self.splits:
            return ABSENT
        text = f"{self.mean:.{decimals}f}" + ("" if self.std is None else f" ± {self.std:.{decimals}f}")
        text = {"best": f"**{text}**", "close": f"*{text}*", "": text}[self.standing]
        return text if self.splits == full else f"{text} ({self.splits})"


def line_of(row: Row, half: str, statistic: str) -> dict[Variant, Reached]:
    """One line of a table of values: each variant, and of several the best and those not significantly worse.

    The best is one of those with the most splits, for a few splits may be easy ones. Significance is that of a
    two-sided matched pairs t-test on the splits that both have.

    Args:
        row: the series of a data set.
        half: ``"train"`` or ``"test"``.
        statistic: its name.
    """
    values = {variant: series.values(half, statistic) for variant, series in row.items()}
    reached = {variant: Reached.of(found) for variant, found in values.items()}
    full = max((one.splits for one in reached.values()), default=0)
    top = max((one.mean for one in reached.values() if full and one.splits == full), default=math.nan)
    best = [v for v, one in reached.items() if one.splits == full and math.isclose(one.mean, top, rel_tol=1e-12)]
    if len(row) < 2 or not best:
        return reached
    line = {}
    for variant, found in values.items():
        standing: Literal["best", "close", ""] = ""
        if variant in best:
            standing = "best"
        elif _not_worse(row[variant], row[best[0]], half, statistic):
            standing = "close"
        line[variant] = Reached.of(found, standing)
    return line


def _not_worse(series: Series, best: Series, half: str, statistic: str) -> bool:
    """Whether a test on at least two pairs does not show that the series is worse."""
    values, of_best = (one.at(series.common(best)).values(half, statistic) for one in (series, best))
    found = paired(values, of_best, overlap=0.0, fewest=2)
    return found.tested and not (found.p_plain < ALPHA and found.difference < 0)


def value_sections(evidence: Evidence) -> list[Section]:
    """A section a table of the sweep: mean and standard deviation of the first statistic; none of tables not begun."""
    sections = []
    for table in evidence.tables:
        if table.rows:
            done, planned = progress(evidence.results, table.name)
            blocks: list[Block] = [Text(f"{done} of {planned} cells are finished.")] if done < planned else []
            sections.append(Section(literal(table.heading), [*blocks, _values(table, evidence.statistic)]))
    return sections


def progress(results: SweepResults, table: str | None = None) -> tuple[int, int]:
    """How many cells of a table, or of all, are finished, and how many there are."""
    grids = [grid for grid in results.grids if table in (None, grid["name"])]
    planned = {cell["id"] for grid in grids for cell in grid["cells"]}
    return len(planned & set(results.by_id)), len(planned)


def _values(table: SweepTable, statistic: str) -> Table:
    lines = {(data, half): line_of(row, half, statistic) for data, row in table.rows.items() for half in HALVES}
    found = [reached for line in lines.values() for reached in line.values()]
    places, full = decimals_of(largest(found)), max(reached.splits for reached in found)
    variants = table.variants
    cells = [
        [
            literal(data) if half == "train" else "",
            half,
            *(line[v].text(places, full) if v in line else ABSENT for v in variants),
        ]
        for (data, half), line in lines.items()
    ]
    caption = [f"`{statistic}`, " + ("one split." if full <= 1 else f"mean ± standard deviation over {full} splits.")]
    if any(reached.splits < full for reached in found):
        caption.append("Fewer splits stand in parentheses.")
    if any(reached.standing for reached in found):
        caption.append("**Bold**: the largest mean of the line, among those with the most splits.")
    if any(reached.standing == "close" for reached in found):
        caption.append(
            "*Italics*: not significantly worse than it by a two-sided matched pairs t-test on the common splits "
            f"(α = {ALPHA}), uncorrected for the number of comparisons; corrected ones stand in the findings."
        )
    if any(variant.best_of for variant in variants):
        caption.append("“Best of” is chosen by the mean on the test halves, which favours that method.")
    return Table(["data set", "half", *(literal(v.label) for v in variants)], cells, " ".join(caption), left=2)


def time_section(evidence: Evidence) -> Section:
    """Median seconds of all methods."""
    blocks: list[Block] = []
    for table in evidence.tables:
        variants = table.variants
        cells = [
            [literal(data), *(_median_seconds(row[v]) if v in row else ABSENT for v in variants)]
            for data, row in table.rows.items()
        ]
        if cells:
            header = ["data set", *(literal(v.label) for v in variants)]
            blocks += [Text(f"**{literal(table.heading)}**"), Table(header, cells)]
    note = (
        "Median seconds over the splits: of the fit for first-stage rankers, of the search on the list for the exact "
        "stage, without its base ranker's fit."
    )
    return Section("Times", [Text(note), *blocks] if blocks else [])


def _median_seconds(series: Series) -> str:
    return seconds(np.median([record["seconds"] for record in series.records.values()]))


def data_table(results: SweepResults) -> Table:
    """The data sets: rows and positives of both halves, features, splits."""
    rows: dict[str, list[Json]] = {}
    for record in results.records:
        rows.setdefault(record["data"], []).append(record)
    cells = []
    for data, records in rows.items():
        sizes = [record["sizes"] for record in records]
        halves = [_between(size[half][at] for size in sizes) for half in HALVES for at in (0, 1)]
        splits = len({record["split"] for record in records})
        cells.append([literal(data), *halves, _between(size["d"] for size in sizes), str(splits)])
    header = ["data set", "train rows", "positive", "test rows", "positive", "features", "splits"]
    return Table(header, cells, "Numbers that depend on the split stand as least–largest.")


def _between(numbers: Iterable[int]) -> str:
    found = set(numbers)
    return str(min(found)) if len(found) == 1 else f"{min(found)}–{max(found)}"


def largest(found: Iterable[Reached]) -> float:
    """The largest mean, which says how many decimals all of them are written with."""
    return max((abs(reached.mean) for reached in found if reached.splits), default=0.0)


def seconds(value: float) -> str:
    """Two digits, or whole seconds.

    Examples:
        >>> seconds(0.0123), seconds(2.0), seconds(123.4)
        ('0.012', '2.0', '123')
    """
    return f"{value:.0f}" if value >= 9.95 else f"{value:#.2g}"
