"""Compare two-stage rankings without and with recentring, on the training and the test halves.

For each data set and each random half split (seeds 0, 1, ...): logistic regression, its top K reranked once, and the
weights found as they are, recentred by the Euclidean margin and by that of the box. Prints a Markdown table of mean
statistics of the whole lists: without recentring, and the mean difference that it makes, with the splits won and lost
on the test half and the p-values of a paired t-test and of Wilcoxon's signed-rank test. Splits of one data set share
rows, so the p-values are optimistic. Splits whose top K hold one class only have nothing to rerank and are left out.

    LTR_DATA=path/to/data python scripts/bench_recentring.py --method local_search --time-limit 2
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ltr.data import DataError, Dataset, half_split, load
from ltr.exact import METHODS, Limits, Problem, Solution, Status
from ltr.exact.state import Ending, SolveState
from ltr.metrics import rank_statistic
from ltr.rankers import ExactRanker, LogisticRegressionRanker, TwoStageRanker

DATASETS = ("travel", "uis", "pima", "haberman", "gaussians")
NORMS = ("l2", "max")


@dataclass(frozen=True)
class Known:
    """A solver that knows the answer: one solve serves all variants."""

    solution: Solution

    def check(self, problem: Problem) -> None:
        """Every problem will do."""

    def run(self, state: SolveState) -> Ending:
        """Offer the answer."""
        state.offer(self.solution.weights)
        return Ending(Status.HEURISTIC)


def split_values(data: Dataset, seed: int, options: argparse.Namespace) -> np.ndarray | None:
    """Train and test statistic without recentring and with each norm, (1 + norms, 2); None with nothing to rerank."""
    halves = half_split(data.n, seed)
    X, y = data.X[halves[0]], data.y[halves[0]]
    base = LogisticRegressionRanker().fit(X, y)

    def fitted(method: object, recentre: str | None) -> TwoStageRanker:
        exact = ExactRanker(
            options.statistic,
            method=method,  # type: ignore[arg-type]
            limits=Limits(time_limit=options.time_limit, seed=seed),
            recentre=recentre,  # type: ignore[arg-type]
        )
        return TwoStageRanker(base, exact, options.top_k).fit(X, y, base_is_fitted=True)

    def values(ranker: TwoStageRanker) -> list[float]:
        return [
            float(rank_statistic(torch.from_numpy(scores), torch.from_numpy(data.y[half]), options.statistic))
            for half in halves
            for scores in [ranker.decision_function(data.X[half])]
        ]

    plain = fitted(options.method, None)
    if plain.solution_ is None:
        return None
    known = Known(plain.solution_)
    return np.array([values(plain), *(values(fitted(known, norm)) for norm in NORMS)])


def p_values(differences: np.ndarray) -> tuple[float, float]:
    """Of the paired t-test and of Wilcoxon's test that the differences are centred at 0."""
    from scipy.stats import ttest_1samp, wilcoxon

    if not differences.any() or len(differences) < 2:
        return 1.0, 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few differences other than 0
        return float(ttest_1samp(differences, 0.0).pvalue), float(wilcoxon(differences).pvalue)


def row(name: str, norm: str, values: np.ndarray) -> str:
    """One line of the table, from values (splits, 1 + norms, 2)."""
    plain = values[:, 0]
    train, test = (values[:, 1 + NORMS.index(norm)] - plain).T
    t, signed_rank = p_values(test)
    clear = np.abs(test) > 1e-9  # of rounding
    cells = [
        *(name, norm, str(len(values)), f"{plain[:, 0].mean():.4f}", f"{train.mean():+.4f}"),
        *(f"{plain[:, 1].mean():.4f}", f"{test.mean():+.4f}"),
        *(f"{np.sum(clear & (test > 0))}/{np.sum(clear & (test < 0))}", f"{t:.2f}", f"{signed_rank:.2f}"),
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 when no data set was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), metavar="NAME", help="data sets to run")
    parser.add_argument("--splits", type=int, default=10, help="half splits (default 10)")
    parser.add_argument("--first-split", type=int, default=0, help="seed of the first split (default 0)")
    parser.add_argument("--statistic", default="dcg", help="rank statistic to maximise and to report (default dcg)")
    parser.add_argument("--top-k", type=int, default=50, help="length of the list to rerank (default 50)")
    parser.add_argument("--method", choices=["auto", *METHODS], default="auto", help="exact method (default auto)")
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds a list (default 5)")
    options = parser.parse_args(arguments)
    found = {}
    for name in options.datasets:
        try:
            data = load(name)
        except DataError as error:
            print(f"{name}: skipped: {error}", file=sys.stderr)
            continue
        seeds = range(options.first_split, options.first_split + options.splits)
        values = [split_values(data, seed, options) for seed in seeds]
        if useful := [v for v in values if v is not None]:
            found[name] = np.array(useful)
    if not found:
        return 1
    columns = [
        "data",
        "norm",
        "splits",
        "train",
        "train change",
        "test",
        "test change",
        "won/lost",
        "p (t)",
        "p (Wilcoxon)",
    ]
    print(f"{options.statistic}, top {options.top_k}, {options.method}, {options.time_limit:g} s a list\n")
    print(f"| {' | '.join(columns)} |")
    print(f"|{' --- |' * len(columns)}")
    for name, table in [*found.items(), ("all", np.concatenate(list(found.values())))]:
        for norm in NORMS:
            print(row(name, norm, table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
