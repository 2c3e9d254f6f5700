"""Make the figures of docs/fairness.md: what a demand on a group costs, and what becomes of it on new lists.

The table is NHANES, 600 adults of the health survey; a hit is a BMI above 35, and 50 of 300 people can be invited. The
scorer has four columns, so that proofs take seconds: HDL cholesterol, two blood pressures and minutes of sitting. Sex
is not one of them. On the training half of split 0 the front of DCG and the women among the first 50 is computed, a
certificate is checked, and the people who are invited by every good scorer are counted. On splits 10 to 19 scorers
that are fitted under demands to the training half rank the test half.

    LTR_DATA=path/to/data python -m scripts.bench_promises --docs
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ltr.cards import Questions
from ltr.data import half_split, load
from ltr.exact import Demand, Limits, RerankProblem, certify, front, rank_ranges, solve
from ltr.exact.cards import CardProblem
from ltr.metrics import dcg
from ltr.rankers import ExactRanker, LogisticRegressionRanker, Ranker
from scripts._bench import ROOT, Bench, FloatArray, IntArray, Json, made_on, table, with_error
from trainers.tables import markdown_table

_FIGURES = ROOT / "runs" / "promises"
COLUMNS = ("HDL", "SYSBP", "DBP", "SEDMIN")
FIRST = 50  # people who are invited
HALF = FIRST // 2
SHARES = {"none": None, "share >= 0.4": 0.4, "share >= 0.5": 0.5, "share >= 0.6": 0.6}
"""Demands on the share of women among them."""
LOGISTIC = "none, logistic regression"  # in place of a demand: on the same columns
WITHIN = 0.01  # share of the best value by which a good scorer may be below it
SHORT, SHORT_FIRST = 50, 20  # a list whose linear scorers are ranged over, and its first rows


class People(NamedTuple):
    """Rows of the table.

    Attributes:
        frame: the four columns of the scorer.
        y: 1 for a hit, (n,).
        beside: the column that the scorer does not have.
    """

    frame: pd.DataFrame
    y: IntArray
    beside: pd.DataFrame

    @property
    def women(self) -> FloatArray:
        """1 for women, (n,)."""
        return (self.beside["sex"] == "F").to_numpy(np.float64)

    def take(self, rows: IntArray) -> People:
        """Return some of the rows."""
        parts = (self.frame.iloc[rows].reset_index(drop=True), self.beside.iloc[rows].reset_index(drop=True))
        return People(parts[0], self.y[rows], parts[1])

    def problem(self, least: int | None = None, first: int = FIRST) -> RerankProblem:
        """Return the problem of ordering the rows, with so many women at least among the first ones."""
        X = self.frame.to_numpy(np.float64)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        demands = () if least is None else (Demand(f"hits@{first}", least, self.women),)
        return RerankProblem(X, self.y, "dcg", demands=demands)


def people() -> People:
    """Return all rows; in this table a gender of 1 is female, as heights and weights show."""
    data = load("nhanes")
    table = pd.DataFrame(data.X, columns=list(data.feature_names))
    beside = pd.DataFrame({"sex": np.where(table["GENDER"] == 1, "F", "M")})
    return People(table[list(COLUMNS)], np.asarray(data.y, dtype=np.int64), beside)


def first_rows(scores: FloatArray, first: int = FIRST) -> IntArray:
    """Return the rows with the largest scores."""
    return np.argsort(-scores, kind="stable")[:first]


def front_of(training: People) -> Json:
    """Return the front of DCG and the women among the first rows, with the hits there and its processor time."""
    began = time.process_time()
    name = f"women among the first {FIRST}"
    limits = Limits(time_limit=300.0)  # wall time, of which a busy machine takes more
    problem = training.problem()
    found = front(problem, f"hits@{FIRST}", training.women, name=name, step=1.0, limits=limits, time_limit=3600.0)
    _FIGURES.mkdir(parents=True, exist_ok=True)
    found.plot().savefig(_FIGURES / "promises_front.png", dpi=110)
    points = [
        {
            "women": point.second,
            "dcg": point.first,
            "bound": None if point.proven else point.first_bound,
            "price": price,
            "hits": int(training.y[first_rows(problem.X @ point.weights)].sum()),
        }
        for point, price in zip(found.points, found.prices, strict=True)
    ]
    return {"points": points, "complete": found.complete, "seconds": time.process_time() - began}


def front_text(record: Json) -> str:
    """Return every other point of the front as a table."""
    rows = []
    for point in record["points"][::2]:
        shown = f"{point['dcg']:.3f}" + ("" if point["bound"] is None else f", at most {point['bound']:.3f}")
        share, price = f"{point['women'] / FIRST:.0%}", f"{point['price']:.1%}"
        rows.append([f"{point['women']:.0f}", share, shown, price, str(point["hits"])])
    head = ["women", "share", "largest dcg", "price", f"hits in the first {FIRST}"]
    proven = sum(point["bound"] is None for point in record["points"])
    end = "and so is that no scorer has more women than the last" if record["complete"] else "the front is not complete"
    note = (
        f"Every other point. All in all, {proven} of {len(record['points'])} points are proven, {end}, "
        f"in {record['seconds']:.0f} s of processor time ({made_on([record]).removesuffix('.')})."
    )
    return f"{markdown_table(head, rows, left=1)}\n\n{note}\n"


def certified(training: People) -> Json:
    """Return what the check of the certificate says of the optimum with half women."""
    problem = training.problem(HALF)
    certificate = certify(problem, solve(problem))
    return {"claim": f"{certificate.claim}, {certificate.boxes} boxes: {certificate.verify()}"}


def settled(training: People, kind: str, demand: str) -> Json:
    """Return how many rows are first under every good scorer: linear ones on a short list, cards of all rows."""
    if kind == "linear":
        X, first = training.frame.to_numpy(np.float64), SHORT_FIRST
        base = LogisticRegressionRanker().fit(X, training.y).decision_function(X)
        short = training.take(first_rows(base, SHORT))
        problem: RerankProblem | CardProblem = short.problem(first // 2 if demand != "none" else None, first)
        name = f"linear scorers, top {SHORT}"
    else:
        answers, first = Questions().fit(training.frame).transform(training.frame).astype(np.float64), FIRST
        demands = (Demand(f"hits@{FIRST}", HALF, training.women),) if demand != "none" else ()
        problem = CardProblem(answers, training.y, "dcg", max_nonzeros=4, points=5, demands=demands)
        name = f"cards of 4 questions, all {len(training.y)}"
    began = time.process_time()
    found = rank_ranges(problem, within=WITHIN)
    seconds = time.process_time() - began
    if (kind, demand) == ("linear", "none"):
        _FIGURES.mkdir(parents=True, exist_ok=True)
        found.plot(first).savefig(_FIGURES / "promises_places.png", dpi=110)
    always, never = int(found.always_within(first).sum()), int(found.never_within(first).sum())
    counts = [first, always, never, problem.n - always - never]
    return {"name": name, "counts": counts, "proven": f"{int(found.exact.sum())} of {problem.n}", "seconds": seconds}


def on_new_list(everyone: People, split: int, demand: str) -> Json:
    """Return what a scorer fitted to the training half reaches there, and on the test half."""
    training, test = (everyone.take(rows) for rows in half_split(len(everyone.y), split))
    record: Json = {}
    if demand == LOGISTIC:
        ranker: Ranker = LogisticRegressionRanker().fit(training.frame, training.y)
    else:
        level = SHARES[demand]
        demands = () if level is None else (f"share(sex = F) @{FIRST} >= {level}",)
        exact = ExactRanker("dcg", demands=demands).fit(training.frame, training.y, beside=training.beside)
        assert exact.solution_ is not None  # after a fit
        ranker, record["status"] = exact, exact.solution_.status.value
    for name, part in (("train", training), ("test", test)):
        scores = np.asarray(ranker.decision_function(part.frame))
        first = first_rows(scores)
        record |= {f"dcg_{name}": float(dcg(scores, part.y)), f"hits_{name}": float(part.y[first].sum())}
        record[f"share_{name}"] = float(part.women[first].mean())
    return record


def new_lists(records: list[Json]) -> str:
    """Return the table of means over the splits, with standard errors."""
    free = {r["split"]: r for r in records if r["demand"] == "none"}

    def price(part: str, found: list[Json]) -> str:
        return with_error([100 * (1 - r[f"dcg_{part}"] / free[r["split"]][f"dcg_{part}"]) for r in found], "{:.1f} %")

    def met(found: list[Json]) -> str:
        level = SHARES.get(found[0]["demand"])
        return f"{sum(r['share_test'] >= level for r in found)} of {len(found)}" if level is not None else ""

    more = {
        "share, train": lambda found: with_error([100 * r["share_train"] for r in found], "{:.1f} %"),
        "price, train": lambda found: price("train", found),
        "price, test": lambda found: price("test", found),
        "share, test": lambda found: with_error([100 * r["share_test"] for r in found], "{:.1f} %"),
        "met, test": met,
        "hits, test": lambda found: with_error([r["hits_test"] for r in found], "{:.1f}"),
    }
    fits, splits = [r for r in records if "status" in r], sorted(free)
    note = (
        f"Mean and standard error over splits {splits[0]} to {splits[-1]}. The price is against the scorer without a "
        f"demand on the same split. {sum(r['status'] == 'optimal' for r in fits)} of the {len(fits)} scorers of the "
        "exact search are proven optima."
    )
    return f"{table(records, {'demand': 'demand'}, {}, str, more)}\n\n{note}\n"


def measure(what: str, demand: str = "", split: int = 0) -> Json:
    """Return what came of one computation."""
    everyone = people()
    if what == "new list":
        return on_new_list(everyone, split, demand)
    training = everyone.take(half_split(len(everyone.y), 0)[0])
    if what == "front":
        return front_of(training)
    return certified(training) if what == "certificate" else settled(training, what, demand)


def tables(records: list[Json]) -> dict[str, str]:
    """Return the tables of which there are records."""
    by_what = {record["what"]: record for record in records}
    texts = {"front": front_text(by_what["front"])} if "front" in by_what else {}
    if "certificate" in by_what:
        print(by_what["certificate"]["claim"])
    kinds = [r for r in records if r["what"] in ("linear", "card")]
    head = ["scorers", "demand", "first", "always there", "never there", "open", "rows proven", "processor s"]
    rows = [[r["name"], r["demand"], *map(str, r["counts"]), r["proven"], f"{r['seconds']:.2f}"] for r in kinds]
    lists = [r for r in records if r["what"] == "new list"]
    texts |= {"settled": markdown_table(head, rows, left=2)} if rows else {}
    return texts | ({"new_lists": new_lists(lists)} if any(r["demand"] == "none" for r in lists) else {})


def figures(records: list[Json], folder: Path) -> None:
    """Copy the pictures of the front and of the places of rows to a folder."""
    for path in _FIGURES.glob("promises_*.png"):
        shutil.copy(path, folder)


_REQUESTS: list[Json] = [{"what": "front"}, {"what": "certificate"}]
_REQUESTS += [{"what": kind, "demand": demand} for kind in ("linear", "card") for demand in ("none", "half women")]
_REQUESTS += [
    {"what": "new list", "demand": demand, "split": split} for demand in (*SHARES, LOGISTIC) for split in range(10, 20)
]
BENCH = Bench("promises", __doc__, "docs/fairness.md", _REQUESTS, measure, tables, figures=figures)

if __name__ == "__main__":
    sys.exit(BENCH.main())
