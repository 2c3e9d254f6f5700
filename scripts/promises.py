"""Make the figures of docs/fairness.md: what a demand on a group costs, and what becomes of it on new lists.

The table is NHANES, 600 adults of the health survey; a hit is a BMI above 35, and 50 of 300 people can be invited. The
scorer has four columns, so that proofs take seconds: HDL cholesterol, two blood pressures and minutes of sitting. Sex
is not one of them. On the training half of split 0 the front of DCG and the women among the first 50 is computed, a
certificate is checked, and the people who are invited by every good scorer are counted. On splits 10 to 19 scorers
that are fitted under demands to the training half rank the test half.

    LTR_DATA=path/to/data python scripts/promises.py --docs docs/fairness.md --images docs/images
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from _bench import Json, Records, command_line, publish
from numpy.typing import NDArray

from ltr.cards import Questions
from ltr.data import half_split, load
from ltr.exact import Demand, Front, Limits, RerankProblem, certify, front, rank_ranges, solve
from ltr.exact.cards import CardProblem
from ltr.metrics import dcg
from ltr.rankers import ExactRanker, LogisticRegressionRanker, Ranker
from trainers.provenance import machine
from trainers.tables import markdown_table

COLUMNS = ("HDL", "SYSBP", "DBP", "SEDMIN")
FIRST = 50  # people who are invited
HALF = FIRST // 2
LEVELS = (None, 0.4, 0.5, 0.6)  # shares of women among them that are asked for; None for no demand
LOGISTIC = "logistic"  # in place of a share: logistic regression on the same columns
WITHIN = 0.01  # share of the best value by which a good scorer may be below it
SHORT, SHORT_FIRST = 50, 20  # a list whose linear scorers are ranged over, and its first rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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


def front_of(training: People) -> tuple[Front, float]:
    """Return the front of DCG and the women among the first rows, and its processor time in seconds."""
    began = time.process_time()
    name = f"women among the first {FIRST}"
    limits = Limits(time_limit=300.0)  # wall time, of which a busy machine takes more
    problem = training.problem()
    found = front(problem, f"hits@{FIRST}", training.women, name=name, step=1.0, limits=limits, time_limit=3600.0)
    return found, time.process_time() - began


def front_text(found: Front, training: People, seconds: float) -> str:
    """Return every other point of the front as a table, with the hits among the first rows."""
    X, rows = training.problem().X, []
    for point, price in list(zip(found.points, found.prices, strict=True))[::2]:
        hits = int(training.y[first_rows(X @ point.weights)].sum())
        shown = f"{point.first:.3f}" if point.proven else f"{point.first:.3f}, at most {point.first_bound:.3f}"
        rows.append([f"{point.second:.0f}", f"{point.second / FIRST:.0%}", shown, f"{price:.1%}", str(hits)])
    head = ["women", "share", "largest dcg", "price", f"hits in the first {FIRST}"]
    proven = sum(point.proven for point in found.points)
    end = "and so is that no scorer has more women than the last" if found.complete else "the front is not complete"
    note = (
        f"Every other point. All in all, {proven} of {len(found.points)} points are proven, {end}, "
        f"in {seconds:.0f} s of processor time ({machine()})."
    )
    return f"{markdown_table(head, rows, left=0)}\n\n{note}\n"


def certificate_text(training: People, path: Path) -> str:
    """Write the certificate of the optimum with half women, and return what its check says."""
    problem = training.problem(HALF)
    certificate = certify(problem, solve(problem))
    certificate.write(path)
    return f"{certificate.claim}, {path.stat().st_size / 1e6:.1f} MB, {certificate.boxes} boxes: {certificate.verify()}"


def settled(training: People, images: Path | None) -> str:
    """Return which rows are first under every good scorer: linear ones on a short list, cards of all rows."""
    X = training.frame.to_numpy(np.float64)
    base = LogisticRegressionRanker().fit(X, training.y).decision_function(X)
    short = training.take(first_rows(base, SHORT))
    answers = Questions().fit(training.frame).transform(training.frame).astype(np.float64)
    half = (Demand(f"hits@{FIRST}", HALF, training.women),)

    def card(demands: tuple[Demand, ...]) -> CardProblem:
        return CardProblem(answers, training.y, "dcg", max_nonzeros=4, points=5, demands=demands)

    linear_name, card_name = f"linear scorers, top {SHORT}", f"cards of 4 questions, all {len(training.y)}"
    asked: list[tuple[str, str, int, RerankProblem | CardProblem]] = [
        (linear_name, "none", SHORT_FIRST, short.problem(first=SHORT_FIRST)),
        (linear_name, "half women", SHORT_FIRST, short.problem(SHORT_FIRST // 2, SHORT_FIRST)),
        (card_name, "none", FIRST, card(())),
        (card_name, "half women", FIRST, card(half)),
    ]
    rows = []
    for name, demand, first, problem in asked:
        began = time.process_time()
        found = rank_ranges(problem, within=WITHIN)
        seconds = time.process_time() - began
        always, never = int(found.always_within(first).sum()), int(found.never_within(first).sum())
        counts = (first, always, never, problem.n - always - never)
        exact = f"{int(found.exact.sum())} of {problem.n}"
        rows.append([name, demand, *map(str, counts), exact, f"{seconds:.2f}"])
        if images is not None and not rows[1:]:
            found.plot(first).savefig(images / "promises_places.png", dpi=110)
    head = ["scorers", "demand", "first", "always there", "never there", "open", "rows proven", "processor s"]
    return f"{markdown_table(head, rows, left=2)}\n"


def on_new_list(everyone: People, split: int, level: float | str | None) -> Json:
    """Return what a scorer fitted to the training half reaches there, and on the test half.

    Args:
        everyone: all rows.
        split: number of the split.
        level: share of women that is asked for; None for no demand; `LOGISTIC` for logistic regression.
    """
    training, test = (everyone.take(rows) for rows in half_split(len(everyone.y), split))
    record: Json = {"split": split, "level": level}
    if level == LOGISTIC:
        ranker: Ranker = LogisticRegressionRanker().fit(training.frame, training.y)
    else:
        demands = () if level is None else (f"share(sex = F) @{FIRST} >= {level}",)
        exact = ExactRanker("dcg", demands=demands).fit(training.frame, training.y, beside=training.beside)
        assert exact.solution_ is not None  # after a fit
        ranker, record["status"] = exact, exact.solution_.status.value
    for name, part in (("train", training), ("test", test)):
        record |= measured(name, np.asarray(ranker.decision_function(part.frame)), part)
    return record


def measured(name: str, scores: FloatArray, part: People) -> Json:
    """Return DCG, hits among the first rows and the share of women there."""
    first = first_rows(scores)
    values = {"dcg": float(dcg(scores, part.y)), "hits": float(part.y[first].sum()), "share": part.women[first].mean()}
    return {f"{key}_{name}": float(value) for key, value in values.items()}


def new_lists(kept: Records, splits: Sequence[int]) -> str:
    """Return the table of means over the splits, with standard errors."""
    everyone = people()
    for split in splits:
        for level in (*LEVELS, LOGISTIC):
            if not kept[{"split": split, "level": level}]:
                kept.add(on_new_list(everyone, split, level))
    rows = []
    free = [kept[{"split": split, "level": None}][0] for split in splits]
    for level in (*LEVELS, LOGISTIC):
        found = [kept[{"split": split, "level": level}][0] for split in splits]
        prices = [
            [1 - one[f"dcg_{part}"] / other[f"dcg_{part}"] for one, other in zip(found, free, strict=True)]
            for part in ("train", "test")
        ]
        shares = [one["share_test"] for one in found]
        met = "" if not isinstance(level, float) else f"{sum(share >= level for share in shares)} of {len(shares)}"
        name = (
            f"share >= {level}"
            if isinstance(level, float)
            else "none"
            if level is None
            else "none, logistic regression"
        )
        rows.append(
            [
                name,
                _mean([one["share_train"] for one in found], "%"),
                *(_mean(price, "%") for price in prices),
                _mean(shares, "%"),
                met,
                _mean([one["hits_test"] for one in found], ""),
            ]
        )
    fits = [kept[{"split": split, "level": level}][0] for split in splits for level in LEVELS]
    proven = sum(one["status"] == "optimal" for one in fits)
    head = ["demand", "share, train", "price, train", "price, test", "share, test", "met, test", "hits, test"]
    note = (
        f"Mean and standard error over splits {splits[0]} to {splits[-1]}. The price is against the scorer without a "
        f"demand on the same split. {proven} of the {len(fits)} scorers of the exact search are proven optima."
    )
    return f"{markdown_table(head, rows, left=1)}\n\n{note}\n"


def _mean(values: Sequence[float], unit: str) -> str:
    scale = 100 if unit == "%" else 1
    mean, error = scale * np.mean(values), scale * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{mean:.1f}{' ' + unit if unit else ''} ± {error:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compute what is missing, and write the tables and the pictures."""
    parser = command_line(__doc__, "runs/promises")
    parser.add_argument("--images", type=Path, help="folder for the pictures")
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(10, 20)), help="splits of the new lists")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    everyone = people()
    training = everyone.take(half_split(len(everyone.y), 0)[0])
    found, seconds = front_of(training)
    if options.images is not None:
        found.plot().savefig(options.images / "promises_front.png", dpi=110)
    publish(options, "front", front_text(found, training, seconds))
    print(certificate_text(training, options.out / "certificate.json"))
    publish(options, "settled", settled(training, options.images))
    kept = Records(options.out / "new_lists.jsonl", ("split", "level"))
    publish(options, "new_lists", new_lists(kept, options.splits))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
