"""Compare what the choice promises with what comes, on labels that no feature predicts.

Every ranker orders new rows like chance, so that the expected gain of any correction is 0. Two tables of 200 rows: rows
that are independent, and 40 patients with five similar rows each, of which the fit is not told. The gain that comes is
measured on 20 new lists of 200 independent rows: its mean, and whether the interval holds that of the first list.

    python scripts/bench_noise.py --fits 200 --output noise.jsonl    # goes on where it was interrupted
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.exact import Limits
from ltr.metrics import rank_statistic
from ltr.rankers import ExactRanker, TwoStageRanker

ROWS, PATIENTS, FEATURES, POSITIVES, NEW_LISTS = 200, 40, 5, 0.3, 20
TABLES = ("independent rows", "five similar rows of each patient")


def fit_and_measure(table: str, seed: int) -> dict[str, Any]:
    """Return what a choice on noise promises, and the gains that come on new lists."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(ROWS, FEATURES)), _labels(rng)
    if table == TABLES[1]:
        patient = np.repeat(np.arange(PATIENTS), ROWS // PATIENTS)
        X, y = X[patient] + 0.05 * rng.normal(size=X.shape), y[patient]
    exact = ExactRanker("dcg", limits=Limits(time_limit=0.3, seed=seed))
    ranker = TwoStageRanker("logistic", exact, 50).fit(X, y)
    choice = ranker.choice_
    assert choice is not None
    came = []
    for _ in range(NEW_LISTS):
        new, labels = rng.normal(size=X.shape), torch.from_numpy(_labels(rng))
        scores = (torch.from_numpy(one.decision_function(new)) for one in (ranker, ranker.base_))
        value, base = (float(rank_statistic(each, labels, "dcg")) for each in scores)
        came.append(value - base)
    found = {"table": table, "seed": seed, "reranks": choice.reranks, "similar": choice.similar, "came": came}
    best = max(choice.candidates[1:], key=lambda name: choice.gains[name])
    found |= {"gain": choice.gains[best], "deviation": choice.deviations[best]}
    return found | {"expected": choice.expected, "low": choice.low, "high": choice.high}


def _labels(rng: np.random.Generator) -> NDArray[np.int64]:
    return (rng.random(ROWS) < POSITIVES).astype(np.int64)


def summary(results: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield "| table | fits | rerank | promised | came | where reranked: promised | came | 90% interval holds the gain |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for table in TABLES:
        found = [one for one in results if one["table"] == table]
        reranked = [one for one in found if one["reranks"]]
        if not reranked:
            continue
        cells = [f"{len(found)}", f"{len(reranked) / len(found):.0%}"]
        for some in (found, reranked):
            came = np.array([np.mean(one["came"]) for one in some])
            cells += [f"{np.mean([one['expected'] for one in some]):+.3f}"]
            cells += [f"{came.mean():+.3f} ± {came.std(ddof=1) / len(came) ** 0.5:.3f}"]
        held = [one["low"] <= one["came"][0] <= one["high"] for one in found]
        cells += [f"{np.mean(held):.0%}, {np.mean([h for h, o in zip(held, found, strict=True) if o['reranks']]):.0%}"]
        yield f"| {table} | {' | '.join(cells)} of reranked |"


def main() -> None:
    """Compute what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=200, help="number of fits of each table")
    parser.add_argument("--output", type=Path, default=Path("noise.jsonl"), help="file of the results")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    results = [json.loads(line) for line in options.output.read_text().splitlines()] if options.output.exists() else []
    known = {(one["table"], one["seed"]) for one in results}
    for seed in range(options.fits):
        for table in TABLES:
            if (table, seed) not in known:
                results.append(fit_and_measure(table, seed))
                with options.output.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    print("\n".join(summary(results)))


if __name__ == "__main__":
    main()
