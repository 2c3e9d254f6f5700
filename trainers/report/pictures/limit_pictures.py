"""A picture of what more time buys: the same lists with a short and a long time limit."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from trainers.files import Json
from trainers.report.evidence import Evidence
from trainers.report.page import Picture
from trainers.report.pictures.drawing import GREY, INK, SMALL, entry, gap_axis, legend, name_axes, panels
from trainers.report.series import TIME_LIMIT, key_name, other_options, settled
from trainers.report.wording import counted_range

__all__ = ["Pair", "limit_pictures", "pairs_of"]

_SHORT, _LONG = "#56b4e9", "#08519c"


@dataclass(frozen=True)
class Pair:
    """One list with two time limits.

    Attributes:
        options: of the exact stage, without the limit.
        short: the record with the shorter limit.
        long: that with the longer one.
    """

    options: Json
    short: Json
    long: Json

    @property
    def gaps(self) -> tuple[float, float]:
        """The relative gaps, short and long, in percent; infinite where one is."""
        short, long = (0.0 if settled(r) else _percent(r["list"]["gap"]) for r in (self.short, self.long))
        return short, long

    def change(self, statistic: str) -> float:
        """Change of the statistic on the training half, in percent; NaN where it is undefined."""
        before, after = (record["train"].get(statistic) for record in (self.short, self.long))
        return math.nan if not before or after is None else 100 * (after / before - 1)


def _percent(gap: float | None) -> float:
    return math.inf if gap is None else 100 * gap


def pairs_of(evidence: Evidence) -> dict[str, dict[str, list[Pair]]]:
    """All lists that the sweep solved with two time limits, by data set and by what tells the options apart.

    Of three limits, the shortest and the longest are taken; lists where there was nothing to rerank are left out.
    """
    found: dict[tuple[str, str], dict[int, dict[float, Json]]] = {}
    for record in evidence.exact:
        if record["list"] is not None:
            limit = record["options"]["time_limit"]
            by_split = found.setdefault((record["data"], other_options(record, [TIME_LIMIT])), {})
            by_split.setdefault(record["split"], {}).setdefault(limit, record)
    rows: dict[str, list[tuple[Json, list[Pair]]]] = {}
    for (data, text), by_split in found.items():
        options = json.loads(text)
        pairs = [Pair(options, r[min(r)], r[max(r)]) for _, r in sorted(by_split.items()) if len(r) > 1]
        if pairs:
            rows.setdefault(data, []).append((options, pairs))
    return {data: _labelled(row) for data, row in rows.items()}


def _labelled(row: list[tuple[Json, list[Pair]]]) -> dict[str, list[Pair]]:
    differing = [key for key in row[0][0] if len({json.dumps(options[key]) for options, _ in row}) > 1]
    keys = ["top_k", *(key for key in differing if key != "top_k")]
    ordered = sorted(row, key=lambda item: [(isinstance(item[0][key], str), item[0][key]) for key in keys])
    return {
        ", ".join(f"{key_name(f'exact.{key}')} = {options[key]}" for key in keys): pairs for options, pairs in ordered
    }


def limit_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Gaps of the same lists with a short and a long time limit, where the sweep has both."""
    if rows := pairs_of(evidence):
        yield _limit_picture(evidence, rows)


def _limit_picture(evidence: Evidence, rows: dict[str, dict[str, list[Pair]]]) -> Picture:
    every = [pair for row in rows.values() for pairs in row.values() for pair in pairs]
    gaps = [gap for pair in every for gap in pair.gaps if 0 < gap < math.inf]
    floor = 10.0 ** math.floor(math.log10(min(gaps, default=1.0))) / 2.5
    top = max(gaps, default=10.0)
    most = max(len(row) for row in rows.values())
    figure, grid = panels(list(rows), height=0.62 + 0.36 * most, foot=0.75)
    for axes, row in zip(grid, rows.values(), strict=True):
        _draw_pairs(axes, row, floor, evidence.statistic)
        axes.axvspan(floor / 1.6, floor * 1.6, color="#e3f1ea", linewidth=0, zorder=0)
        axes.set_xscale("log")
        axes.set_xlim(floor / 1.6, top * 2)
        gap_axis(axes.xaxis, floor, top, most=3)
        axes.set_ylim(most, -0.05)
    name_axes(figure, x="gap")
    short, long = (_limits(pair.short if at == 0 else pair.long for pair in every) for at in (0, 1))
    common = {"linestyle": "", "marker": "o", "markersize": 5.5}
    legend(figure, [entry(short, color=_SHORT, **common), entry(long, color=_LONG, **common)])
    splits = counted_range((len(pairs) for row in rows.values() for pairs in row.values()), "split")
    caption = (
        f"Relative gap of the same lists at two time limits (logarithmic; in the band: proven optimal), {splits} "
        "a row, a pair of dots a split. To the right: mean change of "
        f"{evidence.statistic} on the training half by the longer limit."
    )
    return Picture("what_time_buys", figure, caption)


def _limits(records: Iterator[Json]) -> str:
    limits = sorted({record["options"]["time_limit"] for record in records})
    return " or ".join(f"{limit:g} s" for limit in limits) + " a list"


def _draw_pairs(axes: Axes, row: dict[str, list[Pair]], floor: float, statistic: str) -> None:
    for y, (label, pairs) in enumerate(row.items()):
        places = y + (np.linspace(0.5, 0.9, len(pairs)) if len(pairs) > 1 else np.array([0.7]))
        for at, pair in zip(places.tolist(), pairs, strict=True):
            short, long = (max(gap, floor) for gap in pair.gaps)
            if math.isfinite(short):
                axes.plot([short, long], [at, at], color=GREY, linewidth=1.0, zorder=1)
            axes.plot([short], [at], marker="o", markersize=6.5, color=_SHORT, linestyle="", label="short")
            axes.plot([long], [at], marker="o", markersize=4.5, color=_LONG, linestyle="", label="long")
        known = [change for pair in pairs if not math.isnan(change := pair.change(statistic))]
        texts = [(0.0, "left", label), (1.0, "right", f"{np.mean(known):+.2f}%" if known else "")]
        for x, side, text in texts:
            axes.text(
                x, y + 0.36, text, transform=axes.get_yaxis_transform(), ha=side, fontsize=SMALL, color=INK
            )  # fmt: skip
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
