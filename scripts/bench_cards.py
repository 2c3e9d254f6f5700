"""Compare proven cards with FasterRisk and rounded logistic regression: AUC, DCG, time, proof.

Every method gets the same yes/no columns (thresholds of each numeric column at quantiles of the training set), the same
number of questions and of points, on several random halves of each data set. FasterRisk 0.1.10 runs in a virtual
environment of its own, which the script makes in runs/cards (it needs NumPy 1). RiskSLIM's tables, in
LTR_DATA/riskslim, also have the largest AUC (``proof``) and the smallest log loss (``risk``) of all their rows.
"""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from ltr.cards import CardRanker, Questions
from ltr.data import half_split, load
from ltr.exact import Limits, solve
from ltr.exact.cards import CardProblem, CardSearch
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Status
from scripts._bench import ROOT, Bench, FloatArray, IntArray, Json, grid, pivot, table, value, with_error
from trainers.tables import markdown_table

_DATA = ("pima", "haberman", "uis", "nhanes", "glow500", "polypharm", "breast_cancer", "fair_pt", "anes96", "digits")
_RISKSLIM = ("adult", "mushroom", "mammo", "breastcancer", "spambase")
_METHODS = {
    "auc": "proven, AUC",
    "near": "within 2 % of it",
    "dcg": "proven, DCG",
    "fasterrisk": "FasterRisk",
    "rounded": "rounded logistic",
}
_PAIRS = [
    *(("auc", "auc", other) for other in ("fasterrisk", "rounded")),
    *(("auc", "near", other) for other in ("fasterrisk", "rounded", "auc")),
    *(("dcg", "dcg", other) for other in ("fasterrisk", "rounded")),
]
"""What is compared on test data: the statistic, a card, and another one."""
_PROOF, _RISK = "proof", "risk"  # what is done with all rows, in place of a split
_POINTS, _SECONDS = 5, 60.0
_CUTS, _MOST_COLUMNS = 5, 100  # thresholds of a column; fewer where there would be more columns than this
_PATIENCE = 10  # longest time of a proof, as a multiple of its processor seconds
_PACKAGES = ROOT / "runs" / "cards" / "fasterrisk"
_FASTERRISK = ("fasterrisk==0.1.10", "numpy<2")  # its code calls `tostring`, which NumPy 2 does not have
_WORKER = """
import sys, time, numpy as np
from fasterrisk.fasterrisk import RiskScoreOptimizer
task, k, points = np.load(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
began = time.perf_counter()
model = RiskScoreOptimizer(X=task["X"].astype(float), y=2.0 * task["y"] - 1, k=k, lb=-points, ub=points)
model.optimize()
np.savez(sys.argv[2], points=np.array(model.get_models()[2])[0], seconds=time.perf_counter() - began)
"""


def rows_of(name: str) -> tuple[pd.DataFrame, IntArray]:
    """Return the columns and labels of all rows of a data set."""
    if name in _RISKSLIM:
        frame = pd.read_csv(Path(os.environ["LTR_DATA"], "riskslim", f"{name}_data.csv"))
        return frame.iloc[:, 1:], (frame.iloc[:, 0].to_numpy() > 0).astype(np.int64)
    data = load(name)
    return pd.DataFrame(data.X, columns=list(data.feature_names)), (data.y > 0).astype(np.int64)


def proven(X: FloatArray, y: IntArray, k: int, statistic: str) -> tuple[IntArray, Json]:
    """Return the best card and how it was found."""
    problem = CardProblem(X, y, statistic, points=_POINTS, max_nonzeros=k)
    solution = solve(problem, "cards", Limits(time_limit=_SECONDS))
    return problem.points_of(solution.weights), {"status": solution.status.value}


def near(X: FloatArray, y: IntArray, k: int) -> tuple[IntArray, Json]:
    """Return the card of `CardRanker`: within 2 % of the best one, and nearest to logistic regression."""
    card = CardRanker("auc", k, _POINTS).fit(X, y).card_
    found = np.zeros(X.shape[1], dtype=np.int64)
    for question, points in zip(card.questions, card.points, strict=True):
        found[int(question.column.removeprefix("x"))] = points
    return found, {}


def rounded(X: FloatArray, y: IntArray, k: int) -> tuple[IntArray, Json]:
    """Return logistic regression on the k columns that an L1 penalty keeps longest, fitted again and rounded."""
    options = {"l1_ratio": 1.0, "solver": "liblinear", "intercept_scaling": 100.0, "random_state": 0}
    for C in np.geomspace(1e-3, 1e2, 60):
        sizes = np.abs(LogisticRegression(C=C, **options).fit(X, y).coef_[0])
        if np.count_nonzero(sizes) >= k:
            break
    chosen = np.sort(np.argsort(-sizes, kind="stable")[:k])
    weights = LogisticRegression(C=1.0).fit(X[:, chosen], y).coef_[0]
    points = np.zeros(X.shape[1], dtype=np.int64)
    points[chosen] = np.rint(weights / np.abs(weights).max() * _POINTS).astype(np.int64)
    return points, {}


def fasterrisk(X: FloatArray, y: IntArray, k: int) -> tuple[IntArray, Json]:
    """Return the card of FasterRisk with the smallest loss."""
    python = _PACKAGES / "bin" / "python"
    if not python.exists():
        venv.create(_PACKAGES, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *_FASTERRISK], check=True)
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder, "task.npz"), Path(folder, "answer.npz")
        np.savez(task, X=X, y=y)
        subprocess.run([python, "-c", _WORKER, task, answer, str(k), str(_POINTS)], check=True)
        found = np.load(answer)
        return np.rint(found["points"]).astype(np.int64), {"seconds": float(found["seconds"])}


def measure(data: str, k: int, method: str, split: int = 0) -> Json:
    """Return the measures of a method's card on a split, or what a search found on all rows."""
    frame, y = rows_of(data)
    if method in (_PROOF, _RISK):
        return (proof if method == _PROOF else risk)(frame, y, k)
    train = half_split(len(y), split)[0]
    test = np.setdiff1d(np.arange(len(y)), train)
    for cuts in range(_CUTS, 0, -1):
        questions = Questions(cuts).fit(frame.iloc[train])
        if len(questions.rules_) <= _MOST_COLUMNS:
            break
    X = questions.transform(frame).astype(np.float64)
    began = time.perf_counter()
    other = {"near": near, "rounded": rounded, "fasterrisk": fasterrisk}
    make = other.get(method) or functools.partial(proven, statistic=method)
    points, how = make(X[train], y[train], k)
    record = {"seconds": time.perf_counter() - began, "rows": len(train), "columns": X.shape[1]} | how
    for part, rows in (("train", train), ("test", test)):
        for statistic in ("auc", "dcg"):  # each the mean over the orders of tied rows
            problem = CardProblem(X[rows], y[rows], statistic, points=_POINTS, max_nonzeros=4)
            record[f"{statistic}_{part}"] = problem.statistic_value(points / _POINTS)
    return record


def proof(X: pd.DataFrame, y: IntArray, k: int) -> Json:
    """Return the largest AUC on all rows, with the time and the bound of its search."""
    answers = Questions(cuts=_CUTS).fit(X, y).transform(X) if (X.nunique() > 2).any() else X
    problem = CardProblem(np.asarray(answers, dtype=float), y, points=_POINTS, max_nonzeros=k)
    began = time.process_time()
    found = solve(problem, CardSearch(threads=2), Limits(time_limit=_SECONDS))
    how = {"seconds": time.process_time() - began, "nodes": found.nodes}
    return {"rows": problem.n, "columns": problem.d, "value": found.value, "bound": found.bound} | how


def risk(X: pd.DataFrame, y: IntArray, k: int) -> Json:
    """Return the smallest log loss on all rows, with its bound, the AUC of that card, and the largest AUC.

    The limit is one of processor seconds, so that other work on the machine does not count.
    """
    features = X.to_numpy(dtype=float)
    problem = RiskProblem(features, y, points=_POINTS, max_nonzeros=k)
    limits, began = Limits(time_limit=_PATIENCE * _SECONDS), time.process_time()
    found = solve(problem, limits=limits, should_stop=lambda: time.process_time() - began > _SECONDS)
    how = {"seconds": time.process_time() - began, "gap": f"{100 * found.gap:.1f} %"}
    ranked = CardProblem(features, y, points=_POINTS, max_nonzeros=k)
    best = solve(ranked, CardSearch(threads=2), Limits(time_limit=_SECONDS))
    how |= {"auc": ranked.statistic_value(found.weights / _POINTS)}
    how |= {"best": best.value if best.status is Status.OPTIMAL else None}
    return {"rows": problem.n, "columns": problem.d, "value": -found.value, "bound": -found.bound} | how


def comparison(records: list[Json]) -> str:
    """Return the table of differences between the proven card and the others, on test data, with their errors."""
    frame, rows = pd.DataFrame(records).set_index(["k", "method", "data", "split"]), []
    for k in sorted({r["k"] for r in records}):
        of = {method: frame.loc[k, method] for method in {r["method"] for r in records if r["k"] == k}}
        for measure, own, other in _PAIRS:
            if {own, other} <= of.keys():
                train, test = (
                    of[own][f"{measure}_{part}"] - of[other][f"{measure}_{part}"] for part in ("train", "test")
                )
                scale = of[other]["dcg_test"] if measure == "dcg" else 1.0
                means = (test / scale).dropna().groupby("data").mean()
                row = [str(k), measure, _METHODS[own], _METHODS[other], str((train < -1e-9).sum())]
                row += [with_error(means, "{:+.4f}"), f"{(means > 0).sum()} of {len(means)}"]
                rows.append([*row, f"{means.idxmin()} {means.min():+.4f}"])
    head = ["k", "measure", "card", "against", "lower in training", "difference on test", "data sets higher", "worst"]
    return markdown_table(head, rows, left=4)


def tables(records: list[Json]) -> dict[str, str]:
    """Return all tables of which there are records."""

    def aucs(own: list[Json]) -> str:
        return " / ".join(f"{np.mean([r[f'auc_{part}'] for r in own]):.3f}" for part in ("train", "test"))

    def optimal(own: list[Json]) -> str:
        statuses = [r["status"] for r in own if r["method"] == "auc"]
        return f"{statuses.count('optimal')} of {len(statuses)}"

    found = [{"k": r["k"], "size": f"{r['data']}, {r['rows']:,} rows, {r['columns']} columns", **r} for r in records]
    rows = {"size": "data", "k": "k"}
    proofs = {"AUC": value("value", "{:.5f}"), "bound": value("bound", "{:.5f}")}
    proofs |= {"processor seconds": value("seconds", "{:.1f}"), "sets listed": value("nodes", "{:,}")}
    risks = {"log loss": value("value", "{:.5f}"), "bound": value("bound", "{:.5f}"), "gap": value("gap")}
    risks |= {"processor seconds": value("seconds", "{:.1f}"), "AUC of this card": value("auc", "{:.4f}")}
    risks |= {"best AUC": value("best", "{:.4f}", "not proven")}
    made = {}
    for name, data in (("results", _DATA), ("riskslim", _RISKSLIM)):
        if own := [r for r in found if r["method"] in _METHODS and r["data"] in data]:
            had = {r["method"] for r in own}
            methods = {title: {"method": method} for method, title in _METHODS.items() if method in had}
            made[name] = table(own, rows, pivot(aucs, methods) | {"proven": optimal})
            if name == "results":
                made["comparison"] = comparison(own)
    for name, method, columns in (("proofs", _PROOF, proofs), ("risk", _RISK, risks)):
        if own := [r for r in found if r["method"] == method]:
            made[name] = table(own, rows, columns)
    return made


_REQUESTS = [
    request
    for names, splits in ((_DATA, range(5)), (_RISKSLIM, range(3)))
    for request in grid(data=names, k=(3, 4), split=splits, method=_METHODS)
    if request["method"] != "dcg" or names == _DATA
]
_REQUESTS += grid(method=[_PROOF], data=_RISKSLIM, k=(3, 4, 5, 6)) + grid(method=[_RISK], data=_RISKSLIM, k=(3, 5))
_QUICK = {"data": ["mammo"], "k": ["3"], "method": ["auc", "near", "rounded", _PROOF, _RISK]}
BENCH = Bench("cards", "docs/cards_bench.md", _REQUESTS, _QUICK, measure, tables, alone=True)
