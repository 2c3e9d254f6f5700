"""Compare the local search with coordinate ascent, DirectRank and random search at equal wall time.

For each list (see `_lists`), time and seed, each method runs alone on one core. Prints a Markdown table with the mean
and the best value over the seeds, and the share of runs that reach the best value known from all runs of the list and,
if given, from the results of ``bench_exact.py``. The baselines are in `_ascents`.

    LTR_DATA=path/to/data python scripts/bench_local_search.py --out runs/bench --known runs/bench/results.jsonl

With ``--generated`` it measures `solve` on many or long generated lists instead, with graded labels, from weights of
logistic regression: how long one evaluation takes, when the first better weights are found, and the value and gap at
the end.

    python scripts/bench_local_search.py --generated 3000x10x20:dcg@10:5 1x100000x2:auc:60
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from _ascents import List, coordinate_pass, direct_rank_pass, evaluate, random_pass, random_start
from _bench import Records, command_line, publish
from _lists import Case, FloatArray, cases
from sklearn.linear_model import LogisticRegression

from ltr.data import DataError
from ltr.exact import Limits, RerankProblem, solve
from ltr.exact.local_search.search import local_search
from ltr.threads import available_threads
from trainers.provenance import machine
from trainers.tables import markdown_table

Ascent = Callable[[List, FloatArray, float, np.random.Generator], float]
Search = Callable[[RerankProblem, float, int, Sequence[FloatArray]], float]

_EQUAL = 1e-9  # values closer than this count as equal


def by_local_search(problem: RerankProblem, seconds: float, seed: int, starts: Sequence[FloatArray]) -> float:
    """Return the value that the toolkit's local search reaches."""
    return local_search(problem, seed=seed, starts=starts, restarts=10**7, time_limit=seconds).value


def by_ascents(step: Ascent) -> Search:
    """Return a search that climbs from each start, then from random ones, one pass at a time."""

    def search(problem: RerankProblem, seconds: float, seed: int, starts: Sequence[FloatArray]) -> float:
        began = time.perf_counter()
        given, rng = List.of(problem), np.random.default_rng(seed)
        best, known = np.zeros(problem.d), evaluate(given, np.zeros(problem.d))
        waiting = [start.copy() for start in starts]
        while True:
            w = waiting.pop(0) if waiting else random_start(problem.d, rng)
            value = evaluate(given, w)
            while True:
                before, value = value, step(given, w, value, rng)
                if value > known:
                    best, known = w.copy(), value
                if time.perf_counter() - began >= seconds:
                    return problem.evaluate(best)
                if value <= before:
                    break

    return search


METHODS: dict[str, Search] = {
    "local_search": by_local_search,
    "DirectRank": by_ascents(direct_rank_pass),
    "coordinate ascent": by_ascents(coordinate_pass),
    "random search": by_ascents(random_pass),
}


def rows(case: Case, options: argparse.Namespace, known: float) -> list[list[str]]:
    """Run every method with every seed; return the lines of the table."""
    problem = case.problem()
    starts = case.surrogate_weights() if options.starts else []
    values = {
        (method, seconds): [search(problem, seconds, seed, starts) for seed in range(options.seeds)]
        for seconds in options.seconds
        for method, search in METHODS.items()
    }
    best = max(known, *(max(found) for found in values.values()))
    return [
        [
            case.name,
            method,
            f"{seconds:g}",
            f"{np.mean(found):.5f}",
            f"{max(found):.5f}",
            f"{best:.5f}",
            f"{np.mean(np.array(found) >= best - _EQUAL):.0%}",
        ]
        for (method, seconds), found in values.items()
    ]


def generated(case: str) -> list[str]:
    """Solve a generated problem, ``LISTSxROWSxFEATURES:STATISTIC:SECONDS``; return the line of the table."""
    size, statistic, seconds = case.split(":")
    lists, length, d = map(int, size.split("x"))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(lists * length, d))
    score = X @ rng.normal(size=d)
    score += score.std() * rng.normal(size=len(score))
    y = np.digitize(score, np.quantile(score, [0.5, 0.75, 0.9, 0.97]))
    problem = RerankProblem(X, y, statistic, qid=np.repeat(np.arange(lists), length), normalize=True)
    fitted = LogisticRegression().fit(X, y > 0).coef_[0]
    start = fitted / np.abs(fitted).max()
    value = problem.evaluate(start)
    began = time.perf_counter()
    problem.evaluate(start)
    evaluation = time.perf_counter() - began
    solution = solve(problem, limits=Limits(time_limit=float(seconds)), warm_starts=[start])
    better = [point.seconds for point in solution.trace if point.incumbent > value]
    first = f"{better[0]:.2g}" if better else ""
    sizes = [f"{lists:,}", f"{length:,}", str(d), statistic, seconds]
    times = [f"{1000 * evaluation:.1f}", first, f"{solution.seconds:.2g}"]
    return [*sizes, *times, f"{value:.5f}", f"{solution.value:.5f}", f"{solution.gap:.2%}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write and print the table; return 1 if data are missing."""
    parser = command_line(__doc__, "runs/bench")
    parser.add_argument("--data", nargs="+", default=["travel", "uis", "pima"], metavar="NAME", help="data sets")
    parser.add_argument("--top", nargs="+", default=["50", "100", "full"], metavar="K", help="lengths of lists")
    parser.add_argument("--seconds", nargs="+", type=float, default=[1.0, 5.0], help="of each run (default 1 5)")
    parser.add_argument("--seeds", type=int, default=10, help="runs of each method (default 10)")
    parser.add_argument("--starts", action="store_true", help="start from the weights of the surrogates")
    parser.add_argument("--known", type=Path, metavar="JSONL", help="results of bench_exact.py")
    parser.add_argument(
        "--generated", nargs="+", metavar="LISTSxROWSxFEATURES:STATISTIC", help="generated lists instead"
    )
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.generated:
        lines = [generated(case) for case in options.generated]
        columns = ["lists", "rows each", "features", "statistic", "limit, s"]
        columns += ["evaluation, ms", "first gain, s", "end, s", "start", "value", "gap"]
        note = f"`solve` on up to {available_threads()} threads of {machine()}; {len(lines)} runs."
        publish(options, "local_search_generated", f"{markdown_table(columns, lines, left=4)}\n\n{note}\n")
        return 0
    known = Records(options.known, ("data", "top")) if options.known else {}
    lines = []
    try:
        for case in cases(options.data, options.top):
            print(f"{case.name} ...", file=sys.stderr)
            found = known[dataclasses.asdict(case)] if known else []
            lines += rows(case, options, max((r["value"] for r in found if "value" in r), default=-np.inf))
    except DataError as error:
        print(error, file=sys.stderr)
        return 1
    columns = ["list", "method", "seconds", "mean", "best", "best known", "reached"]
    starts = "the weights of five surrogates" if options.starts else "random weights"
    note = f"{options.seeds} seeds, one core of {machine()}; starts: {starts}."
    table = f"{markdown_table(columns, lines, left=2)}\n\n{note}\n"
    publish(options, "local_search_starts" if options.starts else "local_search", table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
