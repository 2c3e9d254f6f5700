"""Compare cards of times until an event with rounded Cox regression of as many questions, on new data.

Every table is divided into halves at random, several times. One half makes a card of four questions (that of largest
C-index, and the one that `CardRanker` takes by default) and a Cox regression on four questions, which are added one at
a time by the partial likelihood, its coefficients divided by the largest, multiplied by five and rounded. Harrell's C
is that of the other half. The tables are those of lifelines and scikit-survival, which need another pandas than this
project, and so a virtual environment of their own; the script makes it in runs/times and keeps the tables there.

    python -m scripts.bench_times --docs
"""

from __future__ import annotations

import subprocess
import sys
import time
import venv

import numpy as np
import pandas as pd

from ltr.cards import CardRanker
from ltr.cards.reference import cox
from ltr.exact import solve
from ltr.exact.cards import CardProblem
from ltr.outcomes import Times, survival_labels
from scripts._bench import ROOT, Bench, FloatArray, Json, made_on
from trainers.tables import markdown_table

_FOLDER = ROOT / "runs" / "times"
_QUESTIONS, _POINTS, _QUANTILE = 4, 5, 1.645
_STRENGTH = 100.0  # inverse strength of the penalty, next to none
_MOST_TRAINING = 2_000  # rows of a half that learn, where it has more
_TABLES = {"veteran": "", "lung": "inst", "rossi": "", "whas500": "", "GBSG2": "", "flchain": "chapter"}
"""The tables, each with a column that is no feature: centres, and causes that are known afterwards."""
_EXPORT = """
import sys
from lifelines import datasets as one
from sksurv import datasets as other
tables = {"rossi": one.load_rossi(), "lung": one.load_lung()}
tables = {name: table.rename(columns={"week": "time", "arrest": "event", "status": "event"})
          for name, table in tables.items()}
for name, load in {"GBSG2": other.load_gbsg2, "whas500": other.load_whas500, "flchain": other.load_flchain,
                   "veteran": other.load_veterans_lung_cancer}.items():
    X, y = load()
    event, time = y.dtype.names
    tables[name] = X.assign(time=y[time], event=y[event].astype(int))
for name, table in tables.items():
    table.to_csv(f"{sys.argv[1]}/{name}.csv", index=False)
"""


def export_tables() -> None:
    """Write the tables, by an environment that has their packages."""
    if not (_FOLDER / "veteran.csv").exists():
        venv.create(_FOLDER / "packages", with_pip=True)
        python = str(_FOLDER / "packages" / "bin" / "python")
        subprocess.run([python, "-m", "pip", "install", "-q", "lifelines", "scikit-survival"], check=True)
        subprocess.run([python, "-c", _EXPORT, str(_FOLDER)], check=True)


def rounded_cox(answers: FloatArray, y: Times) -> FloatArray:
    """Return the points of questions that are added one at a time, the largest coefficient scaled to `_POINTS`."""
    chosen: list[int] = []
    weights = np.zeros(0)
    for _ in range(_QUESTIONS):
        tried = [
            (*cox(answers[:, [*chosen, j]], y, _STRENGTH, np.append(weights, 0.0)), j)
            for j in range(answers.shape[1])
            if j not in chosen and np.ptp(answers[:, j])
        ]
        weights, _, best = max(tried, key=lambda one: one[1])
        chosen.append(best)
    points = np.zeros(answers.shape[1])
    points[chosen] = np.rint(weights / np.abs(weights).max() * _POINTS)
    return points


def measure(table: str, splits: int) -> Json:
    """Return the C-indices on the halves that did not learn, and the time of the proof on all rows."""
    frame = pd.read_csv(_FOLDER / f"{table}.csv").drop(columns=_TABLES[table] or [])
    event, until = frame.pop("event").to_numpy(), frame.pop("time").to_numpy()
    y = survival_labels(until, event == event.max())
    values: list[list[float]] = []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(frame))
        train, test = order[: len(order) // 2][:_MOST_TRAINING], order[len(order) // 2 :]
        found = []
        for within in (None, 0.0):
            ranker = CardRanker("c_index", _QUESTIONS, _POINTS, within=within).fit(frame.iloc[train], y[train])
            found.append(ranker.score(frame.iloc[test], y[test]))
        answers = [ranker.questions_.transform(frame.iloc[part]).astype(np.float64) for part in (train, test)]
        scores = answers[1] @ rounded_cox(answers[0], Times.of(y[train]))
        values.append([*found, Times.of(y[test]).c_index(scores)])
    questions = CardRanker("c_index", within=0).fit(frame, y).questions_.transform(frame).astype(np.float64)
    began = time.perf_counter()
    proof = solve(CardProblem(questions, y, "c_index", points=_POINTS, max_nonzeros=_QUESTIONS), "cards")
    seconds = time.perf_counter() - began
    size = {"rows": len(frame), "questions": questions.shape[1]}
    return {**size, "values": values, "seconds": seconds, "status": proof.status.value}


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of the mean C-indices."""
    rows = []
    for record in records:
        values = np.array(record["values"])
        difference = values[:, 0] - values[:, 2]
        half = _QUANTILE * difference.std(ddof=1) / np.sqrt(len(difference))
        sizes = [record["table"], f"{record['rows']:,}", str(record["questions"]), f"{record['seconds']:.2f} s"]
        means = [f"{mean:.4f}" for mean in values.mean(axis=0)]
        rows.append([*sizes, *means, f"{difference.mean():+.4f} ± {half:.4f}"])
    head = ["table", "rows", "questions", "proof", "card", "best card (`within=0`)", "rounded Cox", "difference"]
    return {"times": f"{markdown_table(head, rows, left=1)}\n\n{made_on(records)}\n"}


BENCH = Bench(
    "times",
    __doc__,
    "docs/cards.md",
    [{"table": table, "splits": 20} for table in _TABLES],
    measure,
    tables,
    alone=True,
)

if __name__ == "__main__":
    export_tables()
    sys.exit(BENCH.main())
