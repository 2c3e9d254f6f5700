"""Compare the base rankers with the values that Rudin & Wang (2018) report for them.

Prints mean DCG (natural logarithm, ties resolved against the positives) on the training and the test halves of
random half splits, seeds 0, 1, ..., beside the paper's means over ten splits of its own. Its splits, solvers and
stopping rules are not published, so only means can agree. Ends with status 1 when logistic regression misses the
paper on a data set whose rows and columns are known: by more than 3%, or 15% on Abalone19, where a half holds 16
positives.

    LTR_DATA=path/to/data python scripts/check_paper_baselines.py
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from ltr.data import DataError, Dataset, half_split, load
from ltr.metrics import rank_statistic
from ltr.rankers import LogisticRegressionRanker, RankBoostRanker
from trainers.report.reference import read_reference

STATISTIC = "dcg(base=e)"

PUBLISHED = Path(__file__).parents[1] / "configs" / "paper" / "published.csv"
SETS = ("uis", "pima", "haberman", "abalone19", "travel", "gaussians", "nhanes", "polypharm", "glow500")
# largest relative difference allowed, where the paper's rows and columns are known
TOLERANCE = {"uis": 0.03, "pima": 0.03, "haberman": 0.03, "abalone19": 0.15}
ROUNDS = (5, 10, 20, 30, 50, 100, 200)


def dcg(scores: np.ndarray, labels: np.ndarray) -> float:
    """DCG with the natural logarithm: ``sum over positives of 1 / ln(position + 2)``."""
    return float(rank_statistic(torch.from_numpy(scores), torch.from_numpy(labels), STATISTIC))


def published(method: str) -> dict[str, np.ndarray]:
    """The paper's mean train and test DCG of a base ranker, by data set."""
    means = {(v.data, v.part): v.mean for v in read_reference(PUBLISHED).values if v.variant.method == method}
    return {name: np.array([means[name, "train"], means[name, "test"]]) for name in SETS}


def logistic_values(data: Dataset, seeds: Sequence[int]) -> np.ndarray:
    """Train and test DCG of logistic regression, one row a split."""
    rows = []
    for seed in seeds:
        train, test = half_split(data.n, seed)
        ranker = LogisticRegressionRanker().fit(data.X[train], data.y[train])
        rows.append([dcg(ranker.decision_function(data.X[half]), data.y[half]) for half in (train, test)])
    return np.array(rows)


def rankboost_values(data: Dataset, seeds: Sequence[int], step: str) -> np.ndarray:
    """Train and test DCG of RankBoost after each of `ROUNDS`, of shape (splits, rounds, 2)."""
    splits = []
    for seed in seeds:
        train, test = half_split(data.n, seed)
        ranker = RankBoostRanker(rounds=max(ROUNDS), step=step).fit(data.X[train], data.y[train])  # type: ignore[arg-type]
        halves = []
        for half in (train, test):
            stages = list(ranker.staged_decision_function(data.X[half]))
            halves.append([dcg(stages[min(r, len(stages)) - 1], data.y[half]) for r in ROUNDS])
        splits.append(np.array(halves).T)
    return np.array(splits)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both tables; 1 when logistic regression misses a tolerance or a data set of them is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=50, help="splits for logistic regression (default 50)")
    parser.add_argument("--rankboost-splits", type=int, default=10, help="splits for RankBoost (default 10; 0: none)")
    options = parser.parse_args(arguments)
    found, missed = {}, False
    for name in SETS:
        try:
            found[name] = load(name)
        except DataError as error:
            print(f"{name}: skipped: {error}", file=sys.stderr)
            missed |= name in TOLERANCE
    print(f"Logistic regression, mean {STATISTIC} over {options.splits} half splits")
    print(f"{'data':<10} {'train':>6} {'test':>6}   {'paper':<13} {'difference':<15} within")
    papers = published("logistic_regression")
    for name, data in found.items():
        ours, paper = logistic_values(data, range(options.splits)).mean(axis=0), papers[name]
        difference = ours / paper - 1
        limit = TOLERANCE.get(name)
        verdict = "-" if limit is None else f"{limit:.0%}: {'yes' if np.abs(difference).max() <= limit else 'NO'}"
        missed |= verdict.endswith("NO")
        print(f"{name:<10} {_pair(ours)}   {_pair(paper)} {difference[0]:+7.1%} {difference[1]:+7.1%} {verdict:>9}")
    if options.rankboost_splits:
        print(f"\nRankBoost, mean {STATISTIC} over {options.rankboost_splits} half splits, train test after rounds")
        print(f"{'data':<10} {'step':<6}" + "".join(f"{r:>13}" for r in ROUNDS) + f"{'paper':>14}")
        papers = published("rankboost")
        for name, data in found.items():
            for step in ("exact", "bound"):
                ours = rankboost_values(data, range(options.rankboost_splits), step).mean(axis=0)
                print(f"{name:<10} {step:<6}" + "".join(map(_pair, ours)) + " " + _pair(papers[name]))
    return int(missed)


def _pair(values: Sequence[float] | np.ndarray) -> str:
    return f"{values[0]:6.2f} {values[1]:6.2f}"


if __name__ == "__main__":
    sys.exit(main())
