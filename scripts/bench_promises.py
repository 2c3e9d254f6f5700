"""Make the figures of docs/fairness.md: what a demand on a group costs, and what becomes of it on new lists.

The table is NHANES, 600 adults of the health survey; a hit is a BMI above 35, and 50 of 300 people can be invited. The
scorer has four columns, so that proofs take seconds: HDL cholesterol, two blood pressures and minutes of sitting. Sex
is not one of them. On the training half of split 0 the front of DCG and the women among the first 50 is computed, a
certificate is checked, and the people who are invited by every good scorer are counted. On splits 10 to 19 scorers
that are fitted under demands to the training half rank the test half.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pandas as pd

from ltr.cards import Questions
from ltr.data import half_split, load
from ltr.exact import Demand, Front, Limits, RankRanges, RerankProblem, certify, front, rank_ranges, solve
from ltr.exact.cards import CardProblem
from ltr.metrics import dcg
from ltr.rankers import ExactRanker, LogisticRegressionRanker
from scripts._bench import Bench, FloatArray, IntArray, Json, grid, made_on, mean, table, value
from trainers.tables import markdown_table

COLUMNS = ["HDL", "SYSBP", "DBP", "SEDMIN"]
FIRST = 50  # people who are invited
HALF = FIRST // 2
SHARES = {"none": None, "share >= 0.4": 0.4, "share >= 0.5": 0.5, "share >= 0.6": 0.6}
"""Demands on the share of women among them."""
LOGISTIC = "none, logistic regression"  # in place of a demand: on the same columns
WITHIN = 0.01  # share of the best value by which a good scorer may be below it
SHORT, SHORT_FIRST = 50, 20  # a list whose linear scorers are ranged over, and its first rows


def halves(split: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the people of the training and the test set: columns, hits, and 1.0 for women."""
    data = load("nhanes")
    everyone = pd.DataFrame(data.X, columns=list(data.feature_names))
    # a gender of 1 is female, as heights and weights show
    everyone = everyone[COLUMNS].assign(hit=data.y.astype(int), woman=(everyone["GENDER"] == 1).astype(float))
    train, test = half_split(len(everyone), split)
    return everyone.iloc[train], everyone.iloc[test]


def problem_of(people: pd.DataFrame, least: int | None = None, first: int = FIRST) -> RerankProblem:
    """Return the problem of ordering people, with so many women at least among the first ones."""
    X = people[COLUMNS].to_numpy(np.float64)
    demands = () if least is None else (Demand(f"hits@{first}", least, people["woman"].to_numpy()),)
    return RerankProblem((X - X.mean(axis=0)) / X.std(axis=0), people["hit"].to_numpy(), "dcg", demands=demands)


def first_rows(scores: FloatArray, first: int = FIRST) -> IntArray:
    """Return the rows with the largest scores."""
    return np.argsort(-scores, kind="stable")[:first]


def front_of(training: pd.DataFrame) -> Front:
    """Return the front of DCG and the women among the first rows."""
    limits = Limits(time_limit=300.0)  # wall time, of which a busy machine takes more
    about = {"name": f"women among the first {FIRST}", "step": 1.0, "limits": limits, "time_limit": 3600.0}
    return front(problem_of(training), f"hits@{FIRST}", training["woman"].to_numpy(), **about)


def points_of(training: pd.DataFrame) -> Json:
    """Return the points of the front as rows of the table, with its processor time."""
    began = time.process_time()
    found, X, rows = front_of(training), problem_of(training).X, []
    for point, price in zip(found.points, found.prices, strict=True):
        shown = f"{point.first:.3f}" + ("" if point.proven else f", at most {point.first_bound:.3f}")
        hits = training["hit"].to_numpy()[first_rows(X @ point.weights)].sum()
        rows.append([f"{point.second:.0f}", f"{point.second / FIRST:.0%}", shown, f"{price:.1%}", str(hits)])
    proven, end = sum(point.proven for point in found.points), "the front is not complete"
    if found.complete:
        end = "and so is that no scorer has more women than the last"
    about = f"All in all, {proven} of {len(rows)} points are proven, {end}, in {time.process_time() - began:.0f} s"
    return {"rows": rows, "about": about}


def front_text(record: Json) -> str:
    """Return every other point of the front as a table."""
    head = ["women", "share", "largest dcg", "price", f"hits in the first {FIRST}"]
    note = f"Every other point. {record['about']} of processor time ({made_on([record]).removesuffix('.')})."
    return f"{markdown_table(head, record['rows'][::2], left=0)}\n\n{note}\n"


def ranges_of(training: pd.DataFrame, kind: str, demand: str) -> tuple[str, int, RankRanges]:
    """Return the places of rows under every good scorer: linear ones on a short list, cards of all rows."""
    asked = demand != "none"
    if kind == "linear":
        X, y = training[COLUMNS], training["hit"]
        short = training.iloc[first_rows(LogisticRegressionRanker().fit(X, y).decision_function(X), SHORT)]
        problem = problem_of(short, SHORT_FIRST // 2 if asked else None, SHORT_FIRST)
        return f"linear scorers, top {SHORT}", SHORT_FIRST, rank_ranges(problem, within=WITHIN)
    answers = Questions().fit(training[COLUMNS]).transform(training[COLUMNS]).astype(np.float64)
    demands = (Demand(f"hits@{FIRST}", HALF, training["woman"].to_numpy()),) if asked else ()
    options = {"max_nonzeros": 4, "points": 5, "demands": demands}
    cards = CardProblem(answers, training["hit"].to_numpy(), "dcg", **options)
    return f"cards of 4 questions, all {len(training)}", FIRST, rank_ranges(cards, within=WITHIN)


def settled(training: pd.DataFrame, kind: str, demand: str) -> Json:
    """Return how many rows are first under every good scorer."""
    began = time.process_time()
    name, first, found = ranges_of(training, kind, demand)
    seconds = time.process_time() - began
    always, never = int(found.always_within(first).sum()), int(found.never_within(first).sum())
    counts = {"first": first, "always": always, "never": never, "open": len(found.exact) - always - never}
    proven = f"{int(found.exact.sum())} of {len(found.exact)}"
    return {"name": name, **counts, "proven": proven, "seconds": seconds}


def on_new_list(split: int, demand: str) -> Json:
    """Return what a scorer fitted to the training half reaches there, and on the test half."""
    training, test = halves(split)
    record: Json = {}
    if demand == LOGISTIC:
        ranker = LogisticRegressionRanker().fit(training[COLUMNS], training["hit"])
    else:
        level = SHARES[demand]
        demands = () if level is None else (f"share(woman = 1) @{FIRST} >= {level}",)
        ranker = ExactRanker("dcg", demands=demands).fit(training[COLUMNS], training["hit"], beside=training[["woman"]])
        record["status"] = ranker.solution_.status.value
    for name, part in (("train", training), ("test", test)):
        scores, hits = np.asarray(ranker.decision_function(part[COLUMNS])), part["hit"].to_numpy()
        first = first_rows(scores)
        record |= {f"dcg_{name}": float(dcg(scores, hits)), f"hits_{name}": float(hits[first].sum())}
        record[f"share_{name}"] = float(part["woman"].to_numpy()[first].mean())
    return record


def new_lists(records: list[Json]) -> str:
    """Return the table of means over the splits, with standard errors."""
    free = {r["split"]: r for r in records if r["demand"] == "none"}
    shown = []
    for r in records:
        prices = {part: 1 - r[f"dcg_{part}"] / free[r["split"]][f"dcg_{part}"] for part in ("train", "test")}
        percent = {f"price, {part}": 100 * price for part, price in prices.items()}
        shown.append(r | percent | {f"share, {part}": 100 * r[f"share_{part}"] for part in prices})

    def met(own: list[Json]) -> str:
        level = SHARES.get(own[0]["demand"])
        return f"{sum(r['share_test'] >= level for r in own)} of {len(own)}" if level is not None else ""

    columns = {name: mean(name, "{:.1f} %") for name in ("share, train", "price, train", "price, test", "share, test")}
    columns |= {"met, test": met, "hits, test": mean("hits_test", "{:.1f}")}
    fits, splits = [r for r in records if "status" in r], sorted(free)
    note = (
        f"Mean and standard error over splits {splits[0]} to {splits[-1]}. The price is against the scorer without a "
        f"demand on the same split. {sum(r['status'] == 'optimal' for r in fits)} of the {len(fits)} scorers of the "
        "exact search are proven optima."
    )
    return f"{table(shown, {'demand': 'demand'}, columns)}\n\n{note}\n"


def measure(what: str, demand: str = "", split: int = 0) -> Json:
    """Return what came of one computation."""
    if what == "new list":
        return on_new_list(split, demand)
    training, _ = halves(0)
    if what == "front":
        return points_of(training)
    if what == "certificate":
        problem = problem_of(training, HALF)
        certificate = certify(problem, solve(problem))
        return {"claim": f"{certificate.claim}, {certificate.boxes} boxes: {certificate.verify()}"}
    return settled(training, what, demand)


def tables(records: list[Json]) -> dict[str, str]:
    """Return the tables of which there are records, and what the certificate says."""
    columns = {
        "first": value("first"),
        "always there": value("always"),
        "never there": value("never"),
        "open": value("open"),
        "rows proven": value("proven"),
        "processor s": value("seconds", "{:.2f}"),
    }
    of = {what: [r for r in records if r["what"] == what] for what in ("front", "certificate", "new list")}
    kinds = [r for r in records if r["what"] in ("linear", "card")]
    texts = {
        "front": front_text(of["front"][0]) if of["front"] else "",
        "certificate": of["certificate"][0]["claim"] if of["certificate"] else "",
        "settled": table(kinds, {"name": "scorers", "demand": "demand"}, columns) if kinds else "",
        "new_lists": new_lists(of["new list"]) if of["new list"] else "",
    }
    return {name: text for name, text in texts.items() if text}


def figures(records: list[Json], folder: Path) -> None:
    """Draw the front and the places of rows, which takes half a minute."""
    training, _ = halves(0)
    front_of(training).plot().savefig(folder / "promises_front.png", dpi=110)
    _, first, found = ranges_of(training, "linear", "none")
    found.plot(first).savefig(folder / "promises_places.png", dpi=110)


_REQUESTS: list[Json] = [{"what": "front"}, {"what": "certificate"}]
_REQUESTS += grid(what=["linear", "card"], demand=["none", "half women"])
_REQUESTS += grid(what=["new list"], demand=[*SHARES, LOGISTIC], split=range(10, 20))
BENCH = Bench("promises", "docs/fairness.md", _REQUESTS, {"what": ["linear", "card"]}, measure, tables, figures=figures)
