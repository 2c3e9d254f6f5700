"""Compare proven cards with FasterRisk and rounded logistic regression: AUC, DCG, time, proof.

Every method gets the same yes/no columns (thresholds of each numeric column at quantiles of the training set), the same
number of questions and of points, on several random halves of each data set. FasterRisk 0.1.10 runs in a virtual
environment of its own, which the script makes in the folder `--out` (it needs NumPy 1). Results go to ``records.jsonl``
there, and are not computed again; tables are printed and put into `--docs`.

    LTR_DATA=path/to/data python scripts/bench_cards.py --docs docs/cards_bench.md
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from _bench import Json, Records, command_line, publish
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from ltr.cards import CardRanker, Questions
from ltr.data import half_split, load
from ltr.exact import Limits, solve
from ltr.exact.cards import CardProblem, CardSearch
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Status
from trainers.tables import markdown_table

DATA = ("pima", "haberman", "uis", "nhanes", "glow500", "polypharm", "breast_cancer", "fair_pt", "anes96", "digits")
RISKSLIM = ("adult", "mushroom", "mammo", "breastcancer", "spambase")  # RiskSLIM's tables, in LTR_DATA/riskslim
METHODS = {
    "auc": "proven, AUC",
    "near": "within 2 % of it",
    "dcg": "proven, DCG",
    "fasterrisk": "FasterRisk",
    "rounded": "rounded logistic",
}
MEASURES = ("auc", "dcg")
POINTS = 5
FASTERRISK = ("fasterrisk==0.1.10", "numpy<2")  # its code calls `tostring`, which NumPy 2 does not have
_CUTS, _MOST_COLUMNS = 5, 100  # thresholds of a column; fewer where there would be more columns than this
_PATIENCE = 10  # longest time of a proof, as a multiple of its processor seconds
_KEY = ("data", "split", "k", "method")
_WORKER = """
import sys, time, numpy as np
from fasterrisk.fasterrisk import RiskScoreOptimizer
tasks, answers = dict(np.load(sys.argv[1])), {}
for name in [key[2:] for key in tasks if key.startswith("X_")]:
    for k in tasks["k"]:
        began = time.perf_counter()
        X, y = tasks["X_" + name].astype(float), 2.0 * tasks["y_" + name] - 1
        model = RiskScoreOptimizer(X=X, y=y, k=int(k), lb=-int(tasks["points"]), ub=int(tasks["points"]))
        model.optimize()
        answers[f"{name}_{k}"] = np.array(model.get_models()[2])[0]
        answers[f"{name}_{k}_seconds"] = time.perf_counter() - began
np.savez(sys.argv[2], **answers)
"""


class Half(NamedTuple):
    """Yes/no columns and labels of one split."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    y_test: NDArray[np.int64]


def halves(name: str, split: int) -> Half:
    """Return a split of a data set, its columns turned into the questions of the training set."""
    if name in RISKSLIM:
        table = pd.read_csv(Path(os.environ["LTR_DATA"], "riskslim", f"{name}_data.csv"))
        labels = table.pop(table.columns[0]).to_numpy()
    else:
        data = load(name)
        table, labels = pd.DataFrame(data.X, columns=list(data.feature_names)), np.asarray(data.y)
    y, train = (labels > 0).astype(np.int64), half_split(len(labels), split)[0]
    test = np.setdiff1d(np.arange(len(y)), train)
    for cuts in range(_CUTS, 0, -1):
        questions = Questions(cuts).fit(table.iloc[train])
        if len(questions.rules_) <= _MOST_COLUMNS:
            break
    X = questions.transform(table).astype(np.float64)
    return Half(X[train], y[train], X[test], y[test])


def measured(points: NDArray[np.int64], half: Half) -> Json:
    """Return the measures of a card on training and test data, each the mean over the orders of tied rows."""
    record: Json = {"questions": int(np.count_nonzero(points))}
    for part, X, y in (("train", half.X, half.y), ("test", half.X_test, half.y_test)):
        for measure in MEASURES:
            problem = CardProblem(X, y, measure, points=POINTS, max_nonzeros=4)
            record[f"{measure}_{part}"] = problem.statistic_value(points / POINTS)
    return record


def proven(half: Half, k: int, statistic: str, limit: float) -> tuple[NDArray[np.int64], Json]:
    """Return the best card and how it was found."""
    problem = CardProblem(half.X, half.y, statistic, points=POINTS, max_nonzeros=k)
    began = time.perf_counter()
    solution = solve(problem, "cards", Limits(time_limit=limit))
    seconds = time.perf_counter() - began
    return problem.points_of(solution.weights), {
        "seconds": seconds,
        "status": solution.status.value,
        "gap": solution.gap,
    }


def near(half: Half, k: int) -> tuple[NDArray[np.int64], Json]:
    """Return the card of `CardRanker`: within 2 % of the best one, and nearest to logistic regression."""
    began = time.perf_counter()
    ranker = CardRanker("auc", k, POINTS).fit(half.X, half.y)
    seconds = time.perf_counter() - began
    found = np.zeros(half.X.shape[1], dtype=np.int64)
    for question, points in zip(ranker.card_.questions, ranker.card_.points, strict=True):
        found[int(question.column.removeprefix("x"))] = points
    return found, {"seconds": seconds, "status": str(ranker.card_.status), "gap": ranker.card_.below}


def rounded(half: Half, k: int) -> tuple[NDArray[np.int64], Json]:
    """Return logistic regression on the k columns that an L1 penalty keeps longest, fitted again and rounded."""
    began = time.perf_counter()
    for C in np.geomspace(1e-3, 1e2, 60):
        options = {"l1_ratio": 1.0, "solver": "liblinear", "intercept_scaling": 100.0, "random_state": 0}
        sizes = np.abs(LogisticRegression(C=C, **options).fit(half.X, half.y).coef_[0])
        if np.count_nonzero(sizes) >= k:
            break
    chosen = np.sort(np.argsort(-sizes, kind="stable")[:k])
    weights = LogisticRegression(C=1.0).fit(half.X[:, chosen], half.y).coef_[0]
    points = np.zeros(half.X.shape[1], dtype=np.int64)
    points[chosen] = np.rint(weights / np.abs(weights).max() * POINTS).astype(np.int64)
    return points, {"seconds": time.perf_counter() - began, "status": "no bound"}


def fasterrisk(folder: Path, tasks: dict[str, Half], ks: Sequence[int]) -> dict[str, NDArray[np.float64]]:
    """Return the card of FasterRisk with the smallest loss, and its seconds, by name of the task and k."""
    python = folder / "fasterrisk" / "bin" / "python"
    if not python.exists():
        venv.create(folder / "fasterrisk", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *FASTERRISK], check=True)
    arrays = {f"{part}_{name}": getattr(half, part) for name, half in tasks.items() for part in ("X", "y")}
    np.savez(folder / "tasks.npz", k=np.array(ks), points=POINTS, **arrays)
    subprocess.run([python, "-c", _WORKER, folder / "tasks.npz", folder / "answers.npz"], check=True)
    return dict(np.load(folder / "answers.npz"))


def measure_all(options: argparse.Namespace, records: Records) -> None:
    """Compute what is not in the records yet."""
    for data in options.data:
        wanted = [
            {"data": data, "split": split, "k": k, "method": method}
            for split in range(options.splits)
            for k in options.k
            for method in METHODS
            if method != "dcg" or data not in RISKSLIM
        ]
        wanted = [request for request in wanted if not records[request]]
        half = {split: halves(data, split) for split in {request["split"] for request in wanted}}
        other = {str(r["split"]): half[r["split"]] for r in wanted if r["method"] == "fasterrisk"}
        answers = fasterrisk(options.out, other, options.k) if other else {}
        for request in wanted:
            split, k, method = request["split"], request["k"], request["method"]
            if method in ("auc", "dcg"):
                points, how = proven(half[split], k, method, options.time_limit)
            elif method == "near":
                points, how = near(half[split], k)
            elif method == "rounded":
                points, how = rounded(half[split], k)
            else:
                points = np.rint(answers[f"{split}_{k}"]).astype(np.int64)
                how = {"seconds": float(answers[f"{split}_{k}_seconds"]), "status": "no bound"}
            shape = {"rows": len(half[split].y), "columns": half[split].X.shape[1]}
            records.add(request | shape | how | measured(points, half[split]))
            print(records[request][-1], flush=True)


def results(records: Sequence[Json]) -> str:
    """Return the table of the AUC, as means over splits: a row for each data set and number of questions."""
    methods = [method for method in METHODS if any(r["method"] == method for r in records)]
    rows = []
    for data, k in sorted({(r["data"], r["k"]) for r in records}, key=_place):
        own = [r for r in records if (r["data"], r["k"]) == (data, k)]
        values = []
        for method in methods:
            train, test = (
                np.mean([r[f"auc_{part}"] for r in own if r["method"] == method]) for part in ("train", "test")
            )
            values.append(f"{train:.3f} / {test:.3f}")
        proven = [r["status"] == "optimal" for r in own if r["method"] == "auc"]
        size = f"{data}, {own[0]['rows']} rows, {own[0]['columns']} columns"
        rows.append([size, str(k), *values, f"{sum(proven)} of {len(proven)}"])
    return markdown_table(["data", "k", *(METHODS[method] for method in methods), "proven"], rows)


def _place(row: tuple[str, int]) -> tuple[int, int]:
    return (*DATA, *RISKSLIM).index(row[0]), row[1]


def comparison(records: Sequence[Json]) -> str:
    """Return the table of differences between the proven card and the others, on test data, with their errors."""
    rows = []
    for k in sorted({r["k"] for r in records}):
        for measure, own in (("auc", "auc"), ("auc", "near"), ("dcg", "dcg")):
            for other in ("fasterrisk", "rounded", *(["auc"] if own == "near" else [])):
                gains: dict[str, list[tuple[float, float]]] = {}
                value = {(r["data"], r["split"], r["method"]): r for r in records if r["k"] == k}
                for (data, split, method), r in value.items():
                    if method == own and (data, split, other) in value:
                        o = value[data, split, other]
                        scale = 1.0 if measure != "dcg" else o["dcg_test"]
                        train = r[f"{measure}_train"] - o[f"{measure}_train"]
                        gains.setdefault(data, []).append(
                            (train, (r[f"{measure}_test"] - o[f"{measure}_test"]) / scale)
                        )
                lower = sum(train < -1e-9 for some in gains.values() for train, _ in some)
                means = np.array([np.mean([test for _, test in some]) for some in gains.values()])
                error = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
                better = int((means > 0).sum())
                text = f"{means.mean():+.4f} ± {error:.4f}"
                worst = min(gains, key=lambda data: np.mean([test for _, test in gains[data]]))
                row = [str(k), measure, METHODS[own], METHODS[other], str(lower), text, f"{better} of {len(means)}"]
                rows.append([*row, f"{worst} {means.min():+.4f}"])
    head = ["k", "measure", "card", "against", "lower in training", "difference on test", "data sets higher", "worst"]
    return markdown_table(head, rows)


def proofs(folder: Path, sizes: Sequence[int], time_limit: float) -> str:
    """Return the largest AUC on all rows of RiskSLIM's tables, with the time and the bound of its search."""
    rows = []
    for data in RISKSLIM:
        table = pd.read_csv(folder / f"{data}_data.csv")
        y, X = (table.iloc[:, 0].to_numpy() > 0).astype(np.int64), table.iloc[:, 1:]
        answers = Questions(cuts=_CUTS).fit(X, y).transform(X) if (X.nunique() > 2).any() else X
        for k in sizes:
            problem = CardProblem(np.asarray(answers, dtype=float), y, points=POINTS, max_nonzeros=k)
            began = time.process_time()
            found = solve(problem, CardSearch(threads=2), Limits(time_limit=time_limit))
            seconds = time.process_time() - began
            values = [f"{found.value:.5f}", f"{found.bound:.5f}", f"{seconds:.1f}", f"{found.nodes:,}"]
            rows.append([f"{data}, {problem.n:,} rows, {problem.d} columns", str(k), *values])
    return markdown_table(["data", "k", "AUC", "bound", "processor seconds", "sets listed"], rows)


def risks(folder: Path, sizes: Sequence[int], seconds: float) -> str:
    """Return the smallest log loss on all rows of RiskSLIM's tables, with its bound, and the AUC of that card.

    The limit is one of processor seconds, so that other work on the machine does not count.
    """
    rows = []
    for data in RISKSLIM:
        table = pd.read_csv(folder / f"{data}_data.csv")
        y, X = (table.iloc[:, 0].to_numpy() > 0).astype(np.int64), table.iloc[:, 1:].to_numpy(dtype=float)
        for k in sizes:
            problem = RiskProblem(X, y, points=POINTS, max_nonzeros=k)
            limits, began = Limits(time_limit=_PATIENCE * seconds), time.process_time()
            found = solve(problem, limits=limits, should_stop=lambda: time.process_time() - began > seconds)  # noqa: B023
            took = time.process_time() - began
            ranked = CardProblem(X, y, points=POINTS, max_nonzeros=k)
            best = solve(ranked, CardSearch(threads=2), Limits(time_limit=seconds))
            values = [f"{-found.value:.5f}", f"{-found.bound:.5f}", f"{100 * found.gap:.1f} %", f"{took:.1f}"]
            values.append(f"{ranked.statistic_value(found.weights / POINTS):.4f}")
            values.append(f"{best.value:.4f}" if best.status is Status.OPTIMAL else "not proven")
            rows.append([f"{data}, {problem.n:,} rows, {problem.d} columns", str(k), *values])
            print(rows[-1], flush=True)
    head = ["data", "k", "log loss", "bound", "gap", "processor seconds", "AUC of this card", "best AUC"]
    return markdown_table(head, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and publish."""
    parser = command_line(__doc__, "runs/bench_cards")
    parser.add_argument("--data", nargs="+", default=list(DATA), help="names of data sets")
    parser.add_argument("--k", nargs="+", type=int, default=[3, 4], help="numbers of questions")
    parser.add_argument("--splits", type=int, default=5, help="number of random halves (default 5)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each proof (default 60)")
    parser.add_argument("--risk", action="store_true", help="the table of risk scores alone")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.risk:
        publish(options, "risk", risks(Path(os.environ["LTR_DATA"], "riskslim"), (3, 5), options.time_limit))
        return
    records = Records(options.out / "records.jsonl", _KEY)
    measure_all(options, records)
    tables = [[r for r in records.all() if (r["data"] in RISKSLIM) == own] for own in (False, True)]
    if tables[0]:
        publish(options, "comparison", comparison(tables[0]))
        publish(options, "results", results(tables[0]))
    if tables[1]:
        publish(options, "riskslim", results(tables[1]))
        folder = Path(os.environ["LTR_DATA"], "riskslim")
        publish(options, "proofs", proofs(folder, (4, 6), options.time_limit))


if __name__ == "__main__":
    sys.exit(main())
