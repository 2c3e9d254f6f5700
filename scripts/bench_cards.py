"""Compare proven cards with FasterRisk and rounded logistic regression: AUC, DCG, time, proof.

Every method gets the same yes/no columns (thresholds of each numeric column at quantiles of the training set), the same
number of questions and of points, on several random halves of each data set. FasterRisk 0.1.10 runs in a virtual
environment of its own, which the script makes in runs/cards (it needs NumPy 1). RiskSLIM's tables, in
LTR_DATA/riskslim, also have the largest AUC (``proof``) and the smallest log loss (``risk``) of all their rows.

    LTR_DATA=path/to/data python -m scripts.bench_cards --docs
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from ltr.cards import CardRanker, Questions
from ltr.data import half_split, load
from ltr.exact import Limits, solve
from ltr.exact.cards import CardProblem, CardSearch
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Status
from scripts._bench import ROOT, Bench, FloatArray, IntArray, Json, with_error
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
_PROOF, _RISK, _ALL = "proof", "risk", -1  # what is done with all rows, in place of a split
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


class Half(NamedTuple):
    """Yes/no columns and labels of one split."""

    X: FloatArray
    y: IntArray
    X_test: FloatArray
    y_test: IntArray


def _riskslim(name: str) -> tuple[pd.DataFrame, IntArray]:
    table = pd.read_csv(Path(os.environ["LTR_DATA"], "riskslim", f"{name}_data.csv"))
    return table.iloc[:, 1:], (table.iloc[:, 0].to_numpy() > 0).astype(np.int64)


def halves(name: str, split: int) -> Half:
    """Return a split of a data set, its columns turned into the questions of the training set."""
    if name in _RISKSLIM:
        table, y = _riskslim(name)
    else:
        data = load(name)
        table, y = pd.DataFrame(data.X, columns=list(data.feature_names)), (data.y > 0).astype(np.int64)
    train = half_split(len(y), split)[0]
    test = np.setdiff1d(np.arange(len(y)), train)
    for cuts in range(_CUTS, 0, -1):
        questions = Questions(cuts).fit(table.iloc[train])
        if len(questions.rules_) <= _MOST_COLUMNS:
            break
    X = questions.transform(table).astype(np.float64)
    return Half(X[train], y[train], X[test], y[test])


def proven(half: Half, k: int, statistic: str) -> tuple[IntArray, Json]:
    """Return the best card and how it was found."""
    problem = CardProblem(half.X, half.y, statistic, points=_POINTS, max_nonzeros=k)
    solution = solve(problem, "cards", Limits(time_limit=_SECONDS))
    return problem.points_of(solution.weights), {"status": solution.status.value, "gap": solution.gap}


def near(half: Half, k: int) -> tuple[IntArray, Json]:
    """Return the card of `CardRanker`: within 2 % of the best one, and nearest to logistic regression."""
    ranker = CardRanker("auc", k, _POINTS).fit(half.X, half.y)
    found = np.zeros(half.X.shape[1], dtype=np.int64)
    for question, points in zip(ranker.card_.questions, ranker.card_.points, strict=True):
        found[int(question.column.removeprefix("x"))] = points
    return found, {"status": "no bound"}


def rounded(half: Half, k: int) -> tuple[IntArray, Json]:
    """Return logistic regression on the k columns that an L1 penalty keeps longest, fitted again and rounded."""
    for C in np.geomspace(1e-3, 1e2, 60):
        options = {"l1_ratio": 1.0, "solver": "liblinear", "intercept_scaling": 100.0, "random_state": 0}
        sizes = np.abs(LogisticRegression(C=C, **options).fit(half.X, half.y).coef_[0])
        if np.count_nonzero(sizes) >= k:
            break
    chosen = np.sort(np.argsort(-sizes, kind="stable")[:k])
    weights = LogisticRegression(C=1.0).fit(half.X[:, chosen], half.y).coef_[0]
    points = np.zeros(half.X.shape[1], dtype=np.int64)
    points[chosen] = np.rint(weights / np.abs(weights).max() * _POINTS).astype(np.int64)
    return points, {"status": "no bound"}


def fasterrisk(half: Half, k: int) -> tuple[IntArray, Json]:
    """Return the card of FasterRisk with the smallest loss."""
    python = _PACKAGES / "bin" / "python"
    if not python.exists():
        venv.create(_PACKAGES, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", *_FASTERRISK], check=True)
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder, "task.npz"), Path(folder, "answer.npz")
        np.savez(task, X=half.X, y=half.y)
        subprocess.run([python, "-c", _WORKER, task, answer, str(k), str(_POINTS)], check=True)
        found = np.load(answer)
        return np.rint(found["points"]).astype(np.int64), {"status": "no bound", "seconds": float(found["seconds"])}


def measure(data: str, split: int, k: int, method: str) -> Json:
    """Return the measures of a method's card on a split, or what a search found on all rows."""
    if split == _ALL:
        return proof(data, k) if method == _PROOF else risk(data, k)
    half = halves(data, split)
    began = time.perf_counter()
    if method in ("auc", "dcg"):
        points, how = proven(half, k, method)
    else:
        points, how = {"near": near, "rounded": rounded, "fasterrisk": fasterrisk}[method](half, k)
    record = {"seconds": time.perf_counter() - began, "rows": len(half.y), "columns": half.X.shape[1]} | how
    for part, X, y in (("train", half.X, half.y), ("test", half.X_test, half.y_test)):
        for measure in ("auc", "dcg"):  # each the mean over the orders of tied rows
            problem = CardProblem(X, y, measure, points=_POINTS, max_nonzeros=4)
            record[f"{measure}_{part}"] = problem.statistic_value(points / _POINTS)
    return record


def proof(data: str, k: int) -> Json:
    """Return the largest AUC on all rows, with the time and the bound of its search."""
    X, y = _riskslim(data)
    answers = Questions(cuts=_CUTS).fit(X, y).transform(X) if (X.nunique() > 2).any() else X
    problem = CardProblem(np.asarray(answers, dtype=float), y, points=_POINTS, max_nonzeros=k)
    began = time.process_time()
    found = solve(problem, CardSearch(threads=2), Limits(time_limit=_SECONDS))
    seconds = time.process_time() - began
    size = {"rows": problem.n, "columns": problem.d}
    return size | {"value": found.value, "bound": found.bound, "seconds": seconds, "nodes": found.nodes}


def risk(data: str, k: int) -> Json:
    """Return the smallest log loss on all rows, with its bound, the AUC of that card, and the largest AUC.

    The limit is one of processor seconds, so that other work on the machine does not count.
    """
    table, y = _riskslim(data)
    X = table.to_numpy(dtype=float)
    problem = RiskProblem(X, y, points=_POINTS, max_nonzeros=k)
    limits, began = Limits(time_limit=_PATIENCE * _SECONDS), time.process_time()
    found = solve(problem, limits=limits, should_stop=lambda: time.process_time() - began > _SECONDS)
    seconds = time.process_time() - began
    ranked = CardProblem(X, y, points=_POINTS, max_nonzeros=k)
    best = solve(ranked, CardSearch(threads=2), Limits(time_limit=_SECONDS))
    outcome = {"value": found.value, "bound": found.bound, "gap": found.gap, "seconds": seconds}
    outcome |= {"auc": ranked.statistic_value(found.weights / _POINTS), "rows": problem.n, "columns": problem.d}
    return outcome | {"best": best.value if best.status is Status.OPTIMAL else None}


def results(records: list[Json]) -> str:
    """Return the table of the AUC, as means over splits: a row for each data set and number of questions."""
    methods = [method for method in _METHODS if any(r["method"] == method for r in records)]
    rows = []
    for data, k in dict.fromkeys((r["data"], r["k"]) for r in records):
        own = [r for r in records if (r["data"], r["k"]) == (data, k)]
        cells = []
        for method in methods:
            found = [r for r in own if r["method"] == method]
            means = [f"{np.mean([r[f'auc_{part}'] for r in found]):.3f}" for part in ("train", "test") if found]
            cells.append(" / ".join(means) or "-")
        optimal = [r["status"] == "optimal" for r in own if r["method"] == "auc"]
        size = f"{data}, {own[0]['rows']} rows, {own[0]['columns']} columns"
        rows.append([size, str(k), *cells, f"{sum(optimal)} of {len(optimal)}"])
    return markdown_table(["data", "k", *(_METHODS[method] for method in methods), "proven"], rows, left=2)


def comparison(records: list[Json]) -> str:
    """Return the table of differences between the proven card and the others, on test data, with their errors."""
    rows = []
    for k in sorted({r["k"] for r in records}):
        for measure, own in (("auc", "auc"), ("auc", "near"), ("dcg", "dcg")):
            for other in ("fasterrisk", "rounded", *(["auc"] if own == "near" else [])):
                value = {(r["data"], r["split"], r["method"]): r for r in records if r["k"] == k}
                pairs = [(r, value.get((*key[:2], other))) for key, r in value.items() if key[2] == own]
                lower, gains = 0, dict[str, list[float]]()
                for r, o in ((r, o) for r, o in pairs if o is not None):
                    lower += r[f"{measure}_train"] - o[f"{measure}_train"] < -1e-9
                    scale = o["dcg_test"] if measure == "dcg" else 1.0
                    gains.setdefault(r["data"], []).append((r[f"{measure}_test"] - o[f"{measure}_test"]) / scale)
                if gains:
                    means = {data: float(np.mean(some)) for data, some in gains.items()}
                    better, worst = sum(mean > 0 for mean in means.values()), min(means, key=means.__getitem__)
                    row = [str(k), measure, _METHODS[own], _METHODS[other], str(lower)]
                    row += [with_error([*means.values()], "{:+.4f}"), f"{better} of {len(means)}"]
                    rows.append([*row, f"{worst} {means[worst]:+.4f}"])
    head = ["k", "measure", "card", "against", "lower in training", "difference on test", "data sets higher", "worst"]
    return markdown_table(head, rows, left=4)


def _of_all(records: list[Json]) -> dict[str, str]:
    """Return the tables of what the searches found on all rows."""
    proofs, risks = [], []
    for r in records:
        head = [f"{r['data']}, {r['rows']:,} rows, {r['columns']} columns", str(r["k"])]
        if r["method"] == _PROOF:
            proofs.append([*head, f"{r['value']:.5f}", f"{r['bound']:.5f}", f"{r['seconds']:.1f}", f"{r['nodes']:,}"])
        else:
            values = [f"{-r['value']:.5f}", f"{-r['bound']:.5f}", f"{100 * r['gap']:.1f} %", f"{r['seconds']:.1f}"]
            best = "not proven" if r["best"] is None else f"{r['best']:.4f}"
            risks.append([*head, *values, f"{r['auc']:.4f}", best])
    heads = {
        "proofs": ["data", "k", "AUC", "bound", "processor seconds", "sets listed"],
        "risk": ["data", "k", "log loss", "bound", "gap", "processor seconds", "AUC of this card", "best AUC"],
    }
    return {
        name: markdown_table(heads[name], rows, left=2) for name, rows in (("proofs", proofs), ("risk", risks)) if rows
    }


def tables(records: list[Json]) -> dict[str, str]:
    """Return all tables of which there are records."""
    ours, riskslim = ([r for r in records if r["split"] != _ALL and (r["data"] in some)] for some in (_DATA, _RISKSLIM))
    found = {"comparison": comparison(ours), "results": results(ours)} if ours else {}
    found |= {"riskslim": results(riskslim)} if riskslim else {}
    return found | _of_all([r for r in records if r["split"] == _ALL])


_REQUESTS: list[Json] = [
    {"data": data, "split": split, "k": k, "method": method}
    for names, splits in ((_DATA, 5), (_RISKSLIM, 3))
    for data in names
    for k in (3, 4)
    for split in range(splits)
    for method in _METHODS
    if method != "dcg" or data in _DATA
]
_REQUESTS += [
    {"data": data, "split": _ALL, "k": k, "method": method}
    for method, sizes in ((_PROOF, (3, 4, 5, 6)), (_RISK, (3, 5)))
    for data in _RISKSLIM
    for k in sizes
]
BENCH = Bench("cards", __doc__, "docs/cards_bench.md", _REQUESTS, measure, tables, alone=True)

if __name__ == "__main__":
    sys.exit(BENCH.main())
