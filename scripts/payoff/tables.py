"""The tables and findings of `docs/payoff.md`, made of the cells alone.

A *gain* is the difference between two rankers on the test set of one split, in percent of the base's value there. A
difference is *shown* where the paired t-test over the splits of a data set has p <= 0.05. Splits of one data set share
rows, so that this test finds losses and gains more readily than it should.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from scripts._bench import Cell, FloatArray, Json, pivot, table
from trainers.report.paired import ALPHA, paired
from trainers.report.wording import ABSENT, listed, p_equals, percent, share

PAPER = (
    *("gaussians", "roc_standin", "abalone19", "uis", "travel", "nhanes", "pima", "haberman", "polypharm", "glow500"),
)
"""The data sets of the paper."""
INSTALLED = ("breast_cancer", "diabetes", "digits", "wine", "fair", "fair_pt", "anes96", "randhie", "star98")
"""Tables of installed packages, on which nothing was tuned."""
QUERIES = "lightgbm_lambdarank"
"""The data set by query."""
TITLES = {
    "logistic_regression": "logistic regression",
    "rankboost": "RankBoost",
    "gradient_boosting": "gradient boosting",
    "ranknet_mlp": "network",
}
"""The base rankers."""
FULL, CHOSEN, BASE, ORACLE = "full", "chosen", "base", "oracle"
TIMED = "spread 0.45"
"""Name of the correction whose fit is timed."""

_GROUPS = {"the paper's data": PAPER, "tables of installed packages": INSTALLED}
_LEAST = 0.3  # percent; a smaller loss is not named
_FEWEST_DATA = 6  # for a signed-rank test over data sets
_ROUNDING = 1e-9


def gains(cells: Sequence[Json], name: str = CHOSEN) -> FloatArray:
    """Return the gains on the test sets of a ranker, or of the oracle, the best of all there."""
    base = np.array([cell["test"][BASE] for cell in cells])
    values = np.array([max(cell["test"].values()) if name == ORACLE else cell["test"][name] for cell in cells])
    found = 100 * (values - base) / abs(base)
    return np.where(abs(found) > _ROUNDING, found, 0.0)


def _text(values: FloatArray) -> str:
    if len(values) < 2:
        return percent(float(values.mean()))
    return f"{percent(float(values.mean()))} ± {_error(values):.2f}"


def _error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


def _p(values: FloatArray) -> float:
    return paired(values, np.zeros(len(values)), overlap=0.0).p


def shown(values: FloatArray, sign: int) -> bool:
    """Return whether the mean is shown to be above 0 (`sign` 1) or below 0 (-1)."""
    return bool(_p(values) <= ALPHA and sign * values.mean() > 0)


def texts(cells: Sequence[Json]) -> dict[str, str]:
    """Return the tables of the page by name, and what its sentences say."""
    titled = [cell | {"title": TITLES[base]} for base in TITLES for cell in cells if cell["base"] == base]
    single, by_query = ([c for c in titled if (c["data"] == QUERIES) == lists] for lists in (False, True))
    grouped = [c | {"group": name} for name, group in _GROUPS.items() for c in single if c["data"] in group]
    columns: dict[str, Cell] = {
        "chosen - base": lambda own: _text(gains(own)),
        "p": lambda own: _p_text(_p(gains(own))),
        "over tables, p": _over_tables,
        "reranks": lambda own: share(len(_reranked(own)) / len(own)),
        "full - base": lambda own: _text(gains(own, FULL)),
        "oracle - base": lambda own: percent(float(gains(own, ORACLE).mean())),
    }
    of_lists = {name: text for name, text in columns.items() if name not in ("over tables, p", "oracle - base")}
    promises: dict[str, Cell] = {
        "reranked": lambda own: f"{len(_reranked(own))} of {len(own)}",
        "held": lambda own: share(held(_reranked(own))),
        "promised": lambda own: _mean([one["choice"]["expected"] for one in _reranked(own)]),
        "came": lambda own: _mean([*map(_came, _reranked(own))]),
    }
    bases = pivot(lambda own: _text(gains(own)), {title: {"title": title} for title in TITLES.values()})
    every = [*titled, *(cell | {"title": "all"} for cell in titled)]
    return {
        "payoff-bases": table(single, {"title": "base"}, columns),
        "payoff-data": table(grouped, {"group": "data"}, bases),
        "payoff-queries": table(by_query, {"title": "base"}, of_lists),
        "payoff-promises": table(every, {"title": "base"}, promises),
        "findings": "\n".join(findings(titled)),
    }


def _mean(values: list[float]) -> str:
    return f"{np.mean(values):+.3f}" if values else ABSENT


def _grouped(cells: Sequence[Json], field: str) -> dict[str, list[Json]]:
    return {name: [cell for cell in cells if cell[field] == name] for name in dict.fromkeys(c[field] for c in cells)}


def _p_text(value: float) -> str:
    return p_equals(value).removeprefix("p ").removeprefix("= ") if value == value else ABSENT


def _reranked(cells: Sequence[Json]) -> list[Json]:
    return [cell for cell in cells if cell["choice"]["chosen"] != BASE]


def _over_tables(cells: Sequence[Json]) -> str:
    means = [gains(own).mean() for own in _grouped(cells, "data").values()]
    return _p_text(float(stats.wilcoxon(means).pvalue)) if len(means) >= _FEWEST_DATA else ABSENT


def _came(cell: Json) -> float:
    return float(cell["test"][CHOSEN] - cell["test"][BASE])


def held(cells: Sequence[Json]) -> float:
    """Return the share of cells whose gain is within the promised interval; NaN without cells."""
    inside = [c["choice"]["low"] - _ROUNDING <= _came(c) <= c["choice"]["high"] + _ROUNDING for c in cells]
    return float(np.mean(inside)) if inside else float("nan")


def findings(cells: Sequence[Json]) -> Iterator[str]:
    """Yield what the sentences of the page say, line by line: where rankers gain and lose, and what choosing costs."""

    def named(by_data: dict[str, FloatArray]) -> str:
        return listed([f"{data} ({_text(values)})" for data, values in by_data.items()]) if by_data else "no table"

    for title, own in _grouped([cell for cell in cells if cell["data"] != QUERIES], "title").items():
        by_data = _grouped(own, "data")
        chosen, full = ({data: gains(some, name) for data, some in by_data.items()} for name in (CHOSEN, FULL))
        for name, found in ((CHOSEN, chosen), (FULL, full)):
            for verb, sign in (("gain", 1), ("lose", -1)):
                which = {data: values for data, values in found.items() if shown(values, sign)}
                yield f"{title}: {name} is shown to {verb} on {named(which)}"
        low = {d: v for d, v in chosen.items() if v.mean() < -max(_LEAST, _error(v)) and not shown(v, -1)}
        yield f"{title}: chosen is below 0 by more than a standard error on {named(low)}"
        if both := [(chosen[data].mean(), values.mean()) for data, values in full.items() if shown(values, 1)]:
            kept, most = np.sum(both, axis=0)
            yield f"{title}: where full gains, chosen has {share(kept / most)} of its gain"
        fixed = {name: gains(own, name).mean() for name in own[0]["test"] if name not in (BASE, CHOSEN, FULL)}
        best = max(fixed, key=fixed.__getitem__)
        worst, loss = min(((d, gains(some, best)) for d, some in by_data.items()), key=lambda one: one[1].mean())
        yield f"{title}: fixed beforehand, {best} is best, {percent(fixed[best])}; least on {worst}, {_text(loss)}"
        yield f"{title}: the choice reaches {share(gains(own).mean() / gains(own, ORACLE).mean())} of the oracle's gain"
    for title, own in [*_grouped(cells, "title").items(), ("all", cells)]:
        taken = {name: np.array([cell["seconds"][name] for cell in own]) for name in (CHOSEN, TIMED, FULL)}
        ratios = [taken[CHOSEN] / np.maximum(taken[name], 1e-3) for name in (TIMED, FULL)]
        one, most = (f"{np.median(ratio):.1f} times, at most {ratio.max():.1f}" for ratio in ratios)
        seconds = f"{np.median(taken[CHOSEN]):.1f} s"
        yield f"{title}: choosing takes {seconds}, {one} that of {TIMED}, {most} that of {FULL}"
    yield f"all: the interval held in {share(held(cells))} of {len(cells)} pairs"
