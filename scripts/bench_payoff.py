"""Whether reranking pays off on new data: on one split of a data set, what a base ranker's order gains by reranking.

A cell, one line of ``docs/payoff/cells.jsonl``, has the statistic and the length of the reranked list, the rows and
positives of both sets, the value on `train` and `test` for each ranker by name, the processor `seconds` of fits (base
included), and the `choice` with the gain that it promised. `split` is a number, or "own" for the data set's own parts.

The page tells what rankers and gains are; `+ 1` and `+ 2` are the base score and so many features, `spread S` central
weights.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ltr.data import Dataset, load, load_test
from ltr.exact import Limits
from ltr.metrics import normalized_rank_statistic, rank_statistic
from ltr.rankers import ExactRanker, SurrogateRanker, TwoStageRanker
from ltr.rankers.choice import SPREADS, Choice
from scripts._bench import Bench, Cell, FloatArray, IntArray, Json, grid, halves, mean, pivot, table, whole
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

_OWN = "own"  # name of the split into the data set's own training and test part
SPARSE = {f"+ {k}": k for k in (1, 2)}
CENTRAL = {f"spread {spread:g}": spread for spread in SPREADS}

STATISTIC, TOP_K = "dcg(base=e)", 100
_QUERY_STATISTIC, _QUERY_K = "dcg@10", 10  # normalised
SECONDS = 3.0
_NO_PROOF = 0.2  # seconds for corrections that are not timed: central weights need no search

_LINEAR = "logistic_regression"
_NETWORK: Json = {"scorer": "mlp", "hidden": (16,), "max_steps": 30, "optimizer": "lbfgs", "scale": "standardize"}
_BASES: dict[str, Callable[[bool], Any]] = {
    _LINEAR: lambda graded: "logistic",
    "rankboost": lambda graded: "rankboost",
    "gradient_boosting": lambda graded: (HistGradientBoostingRegressor if graded else HistGradientBoostingClassifier)(
        random_state=0
    ),
    "ranknet_mlp": lambda graded: SurrogateRanker("ranknet", validation=0, **_NETWORK),
}
"""The base rankers; each takes whether labels are graded. Only the first is linear in the features."""


def parts_of(name: str, split: int | str) -> tuple[Dataset, Dataset]:
    """Return training set and test set: the data set's own, or halves of all rows or queries."""
    data, own = load(name), load_test(name)
    if own is None:
        return halves(data, split)
    return (data, own) if split == _OWN else halves(whole(data, own), split)


class FewColumns(TwoStageRanker):
    """A ranker of two stages of which `max_nonzeros` limits the correction alone: the base has all columns."""

    def _weight_constraints(self, *, of_base: bool = True) -> None:
        return None


def measure(data: str, split: int | str, base: str) -> Json:
    """Return what came of a cell."""
    warnings.simplefilter("ignore")  # the network is stopped early on purpose
    train, test = parts_of(data, split)
    by_query = train.qid is not None
    statistic, top_k = (_QUERY_STATISTIC, _QUERY_K) if by_query else (STATISTIC, TOP_K)

    def two_stages(seconds: float, max_nonzeros: int | None = None, **options: Any) -> TwoStageRanker:  # noqa: ANN401
        limits = Limits(time_limit=seconds)
        exact = ExactRanker(statistic, normalize=by_query, max_nonzeros=max_nonzeros, limits=limits)
        return FewColumns(_BASES[base](by_query), exact, top_k, **{"choose": False, **options})

    def central(name: str) -> TwoStageRanker:
        return two_stages(SECONDS if name == TIMED else _NO_PROOF, base_score=True, spread=CENTRAL[name])

    rankers = {
        FULL: two_stages(SECONDS),
        CHOSEN: two_stages(SECONDS, choose=True),
        **{name: two_stages(SECONDS, k, base_score=True) for name, k in SPARSE.items()},
        **{name: central(name) for name in CENTRAL},
    }
    found: Json = {"train": {}, "test": {}, "seconds": {}}
    for name, ranker in rankers.items():
        started = time.process_time()
        ranker.fit(train.X, train.y, train.qid)
        if name not in CENTRAL or name == TIMED:
            found["seconds"][name] = round(time.process_time() - started, 3)
        for part, rows in (("train", train), ("test", test)):
            found[part][name] = ranker.score(rows.X, rows.y, rows.qid)
    for part, rows in (("train", train), ("test", test)):
        found[part][BASE] = base_value(rankers[FULL], rows)
    return {
        "statistic": f"n{statistic}" if by_query else statistic,
        "top_k": top_k,
        "rows": {"train": [train.n, train.n_pos], "test": [test.n, test.n_pos]},
        **found,
        "choice": rankers[CHOSEN].choice_.to_dict(),
    }


def base_value(ranker: TwoStageRanker, rows: Dataset) -> float:
    """Return the value of the statistic in the order of the base ranker, as a mean over lists."""
    exact, found = ranker.exact_, ranker.base_.decision_function(rows.X)
    value = normalized_rank_statistic if exact.normalize else rank_statistic
    lists = None if rows.qid is None else torch.from_numpy(rows.qid)
    scores, labels = torch.from_numpy(np.asarray(found, dtype=np.float64)), torch.from_numpy(rows.y)
    return float(value(scores, labels, exact.statistic, gain=exact.gain, qid=lists).nanmean())


def by_rule(cell: Json) -> Json:
    """Return a cell with the choice that the rule of this code makes of its gains, and what that choice reaches.

    So a change of the rule needs no new fits: each candidate's value is in the cell.
    """
    told = cell["choice"]
    given = (told["gains"], told["deviations"], told["statistic"])
    choice = Choice.by_rule(*given, linear=cell["base"] == _LINEAR).to_dict()
    reached = {part: cell[part] | {CHOSEN: cell[part][choice["chosen"]]} for part in ("train", "test")}
    return cell | reached | {"choice": choice}


# --- the tables and findings of the page --------------------------------------------------------------------------

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


_REQUESTS = grid(base=TITLES, data=(*PAPER, *INSTALLED), split=range(10))
_REQUESTS += grid(base=[base for base in TITLES if base != "rankboost"], data=[QUERIES], split=(*range(10), _OWN))
_QUICK = {"data": ["uis", "wine"], "split": ["0", "1"], "base": [_LINEAR]}
BENCH = Bench(
    "payoff",
    "docs/payoff.md",
    _REQUESTS,
    _QUICK,
    measure,
    lambda records: texts([by_rule(record) for record in records]),
    kept="docs/payoff/cells.jsonl",
)


# --- where there is nothing to gain -------------------------------------------------------------------------------
# No feature predicts the labels, so that the expected gain of any correction is 0. There are rows that are independent,
# and 40 patients with five similar rows each, of which the fit is not told. The gain that comes is measured on 20 new
# lists of 200 independent rows: its mean, and whether the interval holds that of the first list.

TABLES = ("independent rows", "five similar rows of each patient")
FITS = 200
_ROWS, _PATIENTS, _FEATURES, _POSITIVES, _NEW_LISTS = 200, 40, 5, 0.3, 20


def measure_noise(table: str, seed: int) -> Json:
    """Return what a choice on noise promises, and the gains that come on new lists."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(_ROWS, _FEATURES)), _labels(rng)
    if table == TABLES[1]:
        patient = np.repeat(np.arange(_PATIENTS), _ROWS // _PATIENTS)
        X, y = X[patient] + 0.05 * rng.normal(size=X.shape), y[patient]
    exact = ExactRanker("dcg", limits=Limits(time_limit=0.3, seed=seed))
    warnings.simplefilter("ignore")
    ranker = TwoStageRanker("logistic", exact, 50).fit(X, y)
    choice, came = ranker.choice_, []
    for _ in range(_NEW_LISTS):
        new, labels = rng.normal(size=X.shape), torch.from_numpy(_labels(rng))
        scores = (torch.from_numpy(one.decision_function(new)) for one in (ranker, ranker.base_))
        value, base = (float(rank_statistic(each, labels, "dcg")) for each in scores)
        came.append(value - base)
    found = {"reranks": choice.reranks, "similar": choice.similar}
    found |= {"gain": choice.gains[choice.chosen], "expected": choice.expected, "low": choice.low, "high": choice.high}
    return found | {"came": float(np.mean(came)), "first": came[0]}


def _labels(rng: np.random.Generator) -> IntArray:
    return (rng.random(_ROWS) < _POSITIVES).astype(np.int64)


def tables_of_noise(records: list[Json]) -> dict[str, str]:
    """Return the table of the records: what holds, and where it reranks, what is estimated, promised, and comes."""

    def held(own: list[Json]) -> str:
        return f"{np.mean([one['low'] <= one['first'] <= one['high'] for one in own]):.0%}"

    def alone(field: str) -> Cell:
        return lambda own: f"{np.mean([one[field] for one in own]):+.3f}"

    moved: dict[str, Cell] = {
        "reranked": lambda own: str(len(own)),
        "held there": held,
        "estimated": alone("gain"),
        "promised": alone("expected"),
        "came": mean("came", "{:+.3f}"),
    }
    columns: dict[str, Cell] = {"fits": lambda own: str(len(own)), "held": held}
    for heading, cell in moved.items():
        columns |= pivot(cell, {heading: {"reranks": True}})
    return {"payoff-noise": table(records, {"table": "rows"}, columns)}


_OF_NOISE = grid(seed=range(FITS), table=TABLES)
NOISE = Bench(
    "noise",
    "docs/payoff.md",
    _OF_NOISE,
    {"seed": ["0", "1", "2"]},
    measure_noise,
    tables_of_noise,
    kept="docs/payoff/noise.jsonl",
)
