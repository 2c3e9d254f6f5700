"""What the choice promises, and what comes, where no feature predicts the labels.

Every ranker orders new rows like chance, so that the expected gain of any correction is 0. Two tables of 200 rows: rows
that are independent, and 40 patients with five similar rows each, of which the fit is not told. The gain that comes is
measured on 20 new lists of 200 independent rows: its mean, and whether the interval holds that of the first list.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch

from ltr.exact import Limits
from ltr.metrics import rank_statistic
from ltr.rankers import ExactRanker, TwoStageRanker
from scripts._bench import Bench, Cell, IntArray, Json, grid, mean, pivot, table

TABLES = ("independent rows", "five similar rows of each patient")
FITS = 200
_ROWS, _PATIENTS, _FEATURES, _POSITIVES, _NEW_LISTS = 200, 40, 5, 0.3, 20


def measure(table: str, seed: int) -> Json:
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


def tables(records: list[Json]) -> dict[str, str]:
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


_REQUESTS = grid(seed=range(FITS), table=TABLES)
BENCH = Bench(
    "noise", "docs/payoff.md", _REQUESTS, {"seed": ["0", "1", "2"]}, measure, tables, kept="docs/payoff/noise.jsonl"
)
