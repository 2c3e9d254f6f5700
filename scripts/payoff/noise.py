"""What the choice promises, and what comes, where no feature predicts the labels.

Every ranker orders new rows like chance, so that the expected gain of any correction is 0. Two tables of 200 rows: rows
that are independent, and 40 patients with five similar rows each, of which the fit is not told. The gain that comes is
measured on 20 new lists of 200 independent rows: its mean, and whether the interval holds that of the first list.

    python -m scripts.payoff.noise --docs
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.exact import Limits
from ltr.metrics import rank_statistic
from ltr.rankers import ExactRanker, TwoStageRanker
from scripts._bench import Bench, Json, with_error
from trainers.tables import markdown_table

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = TwoStageRanker("logistic", exact, 50).fit(X, y)
    choice, came = ranker.choice_, []
    assert choice is not None
    for _ in range(_NEW_LISTS):
        new, labels = rng.normal(size=X.shape), torch.from_numpy(_labels(rng))
        scores = (torch.from_numpy(one.decision_function(new)) for one in (ranker, ranker.base_))
        value, base = (float(rank_statistic(each, labels, "dcg")) for each in scores)
        came.append(value - base)
    found = {"reranks": choice.reranks, "similar": choice.similar}
    found |= {"gain": choice.gains[choice.chosen], "expected": choice.expected, "low": choice.low, "high": choice.high}
    return found | {"came": float(np.mean(came)), "first": came[0]}


def _labels(rng: np.random.Generator) -> NDArray[np.int64]:
    return (rng.random(_ROWS) < _POSITIVES).astype(np.int64)


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of the records: what holds, and where it reranks, what is estimated, promised, and comes."""
    rows = []
    for name in TABLES:
        found = [one for one in records if one["table"] == name]
        if moved := [one for one in found if one["reranks"]]:
            held = [f"{np.mean([c['low'] <= c['first'] <= c['high'] for c in some]):.0%}" for some in (found, moved)]
            estimated, promised = (f"{np.mean([one[key] for one in moved]):+.3f}" for key in ("gain", "expected"))
            mean = with_error([one["came"] for one in moved], "{:+.3f}")
            rows.append([name, str(len(found)), held[0], str(len(moved)), held[1], estimated, promised, mean])
    header = ["rows", "fits", "held", "reranked", "held there", "estimated", "promised", "came"]
    return {"payoff-noise": markdown_table(header, rows, left=1)}


BENCH = Bench(
    "noise", __doc__, "docs/payoff.md", [{"table": table, "seed": seed} for seed in range(FITS) for table in TABLES],
    measure, tables, kept="docs/payoff/noise.jsonl",
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(BENCH.main())
