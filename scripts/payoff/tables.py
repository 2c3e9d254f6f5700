"""The tables and findings of `docs/payoff.md`, made of the cells alone.

A *gain* is the difference between two rankers on the test set of one split, in percent of the base's value there. A
difference is *shown* where the paired t-test over the splits of a data set has p <= 0.05. Splits of one data set share
rows, so that this test finds losses and gains more readily than it should.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from scripts._bench import FloatArray, Json, table
from scripts.payoff.cells import BASE, CHOSEN, FULL, INSTALLED, PAPER, QUERIES, TIMED
from trainers.report.paired import ALPHA, FEWEST_SPLITS, paired
from trainers.report.wording import ABSENT, listed, p_equals, percent, share

TITLES = {
    "logistic_regression": "logistic regression",
    "rankboost": "RankBoost",
    "gradient_boosting": "gradient boosting",
    "ranknet_mlp": "network",
}
_GROUPS = {"the paper's data": PAPER, "tables of installed packages": INSTALLED}
_LEAST = 0.3  # percent; a smaller loss is not named
_FEWEST_DATA = 6  # for a signed-rank test over data sets
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Gains:
    """Gains in percent of the base over cells: their mean, its standard error, and the p value of the paired t-test."""

    values: FloatArray

    @property
    def mean(self) -> float:
        """The mean; NaN without a value."""
        return float(self.values.mean()) if len(self.values) else float("nan")

    @property
    def error(self) -> float:
        """The standard error of the mean; NaN for a single value."""
        return float(self.values.std(ddof=1) / len(self.values) ** 0.5) if len(self.values) > 1 else float("nan")

    @property
    def p(self) -> float:
        """The p value of the paired t-test, two-sided; NaN with too few values."""
        return paired(self.values, np.zeros(len(self.values)), overlap=0.0, fewest=FEWEST_SPLITS).p

    def shown(self, sign: int) -> bool:
        """Whether the mean is shown to be above 0 (`sign` 1) or below 0 (-1)."""
        return self.p <= ALPHA and sign * self.mean > 0

    def __str__(self) -> str:
        return f"{percent(self.mean)} ± {self.error:.2f}" if self.error == self.error else percent(self.mean)


def gains(cells: Iterable[Json], name: str = CHOSEN) -> Gains:
    """Return the gains on the test sets of a ranker, or of the "oracle", the best of all there."""
    found = []
    for cell in cells:
        values = cell["test"]
        best = max(values.values()) if name == "oracle" else values[name]
        difference = 100 * (best - values[BASE]) / abs(values[BASE])
        found.append(difference if abs(difference) > _ROUNDING else 0.0)
    return Gains(np.array(found, dtype=np.float64))


def texts(cells: Sequence[Json]) -> dict[str, str]:
    """Return the tables of the page by name."""
    ordered = [one for base in TITLES for one in cells if one["base"] == base]
    titled = [cell | {"title": TITLES[cell["base"]]} for cell in ordered]
    single, by_query = ([c for c in titled if (c["data"] == QUERIES) == lists] for lists in (False, True))
    grouped = [c | {"group": name} for name, group in _GROUPS.items() for c in single if c["data"] in group]
    columns = {
        "chosen - base": lambda own: str(gains(own)),
        "p": lambda own: _p(gains(own).p),
        "over tables, p": _over_tables,
        "reranks": _reranks,
        "full - base": lambda own: str(gains(own, FULL)),
        "oracle - base": lambda own: percent(gains(own, "oracle").mean),
    }
    of_lists = {name: text for name, text in columns.items() if name not in ("over tables, p", "oracle - base")}
    promises = {
        "reranked": lambda own: f"{len(_reranked(own))} of {len(own)}",
        "held": lambda own: share(held(_reranked(own))),
        "promised": lambda own: _mean(one["choice"]["expected"] for one in _reranked(own)),
        "came": lambda own: _mean(map(_came, _reranked(own))),
    }
    bases = {one["title"]: {"base": one["base"]} for one in single}
    every = [*titled, *(cell | {"title": "all"} for cell in titled)]
    return {
        "payoff-bases": table(single, {"title": "base"}, {}, str, columns),
        "payoff-data": table(grouped, {"group": "data"}, bases, lambda own: str(gains(own))),
        "payoff-queries": table(by_query, {"title": "base"}, {}, str, of_lists),
        "payoff-promises": table(every, {"title": "base"}, {}, str, promises),
    }


def _mean(values: Iterable[float]) -> str:
    found = [*values]
    return f"{np.mean(found):+.3f}" if found else ABSENT


def _titled(cells: Sequence[Json]) -> list[tuple[str, list[Json]]]:
    of_base = ((title, [cell for cell in cells if cell["base"] == base]) for base, title in TITLES.items())
    return [(title, own) for title, own in of_base if own]


def _by_data(cells: Sequence[Json]) -> dict[str, list[Json]]:
    names = (data for data in (*PAPER, *INSTALLED))
    return {data: own for data in names if (own := [cell for cell in cells if cell["data"] == data])}


def _p(value: float) -> str:
    return p_equals(value).removeprefix("p ").removeprefix("= ") if value == value else ABSENT


def _reranked(cells: Sequence[Json]) -> list[Json]:
    return [cell for cell in cells if cell["choice"]["chosen"] != BASE]


def _reranks(cells: Sequence[Json]) -> str:
    return share(len(_reranked(cells)) / len(cells))


def _over_tables(cells: Sequence[Json]) -> str:
    means = [gains(own).mean for own in _by_data(cells).values()]
    return _p(float(stats.wilcoxon(means).pvalue)) if len(means) >= _FEWEST_DATA else ABSENT


def _came(cell: Json) -> float:
    return float(cell["test"][CHOSEN] - cell["test"][BASE])


def held(cells: Sequence[Json]) -> float:
    """Return the share of cells whose gain is within the promised interval; NaN without cells."""
    inside = [c["choice"]["low"] - _ROUNDING <= _came(c) <= c["choice"]["high"] + _ROUNDING for c in cells]
    return float(np.mean(inside)) if inside else float("nan")


def findings(cells: Sequence[Json]) -> Iterator[str]:
    """Yield what the sentences of the page say, line by line: where rankers gain and lose, and what choosing costs."""
    for title, own in _titled([cell for cell in cells if cell["data"] != QUERIES]):
        found = {name: {data: gains(c, name) for data, c in _by_data(own).items()} for name in (CHOSEN, FULL)}
        for name, by_data in found.items():
            for verb, sign in (("gain", 1), ("lose", -1)):
                shown = [f"{data} ({one})" for data, one in by_data.items() if one.shown(sign)]
                yield f"{title}: {name} is shown to {verb} on {listed(shown) if shown else 'no table'}"
        low = [
            f"{data} ({one})"
            for data, one in found[CHOSEN].items()
            if one.mean < -max(_LEAST, one.error) and not one.shown(-1)
        ]
        yield f"{title}: chosen is below 0 by more than a standard error on {listed(low) if low else 'no table'}"
        both = [(found[CHOSEN][data].mean, one.mean) for data, one in found[FULL].items() if one.shown(1)]
        if both:
            kept, whole = np.sum(both, axis=0)
            yield f"{title}: where full gains, chosen has {share(kept / whole)} of its gain"
        fixed = [name for name in own[0]["test"] if name not in (BASE, CHOSEN, FULL)]
        best = max(fixed, key=lambda name: gains(own, name).mean)
        worst, loss = min(((data, gains(c, best)) for data, c in _by_data(own).items()), key=lambda one: one[1].mean)
        yield f"{title}: fixed beforehand, {best} is best, {percent(gains(own, best).mean)}; least on {worst}, {loss}"
        if (oracle := gains(own, "oracle").mean) > 0:
            yield f"{title}: the choice reaches {share(gains(own).mean / oracle)} of the oracle's gain"
    for title, own in [*_titled(cells), ("all", list(cells))]:
        ratios = (
            np.array([c["seconds"][CHOSEN] / max(c["seconds"][name], 1e-3) for c in own]) for name in (TIMED, FULL)
        )
        one, full = (f"{np.median(ratio):.1f} times, at most {ratio.max():.1f}" for ratio in ratios)
        median = np.median([c["seconds"][CHOSEN] for c in own])
        yield f"{title}: choosing takes {median:.1f} s, {one} that of {TIMED}, {full} that of {FULL}"
    yield f"all: the interval held in {share(held(cells))} of {len(cells)} pairs"
