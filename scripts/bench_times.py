"""Compare cards of times until an event with rounded Cox regression of as many questions, on new data.

Every table is divided into halves at random, several times. One half makes a card of four questions (that of largest
C-index, and the one that `CardRanker` takes by default) and a Cox regression on four questions, which are added one at
a time by the partial likelihood, its coefficients divided by the largest, multiplied by five and rounded. Harrell's C
is that of the other half. The tables are those of lifelines and scikit-survival, which need another pandas than this
project, and so a virtual environment of their own; the script makes it in the folder `--out` and keeps the tables
there.

    python scripts/bench_times.py --docs docs/cards.md
"""

from __future__ import annotations

import subprocess
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from _bench import Json, command_line, publish
from numpy.typing import NDArray

from ltr.cards import CardRanker
from ltr.cards.reference import cox
from ltr.exact import solve
from ltr.exact.cards import CardProblem
from ltr.outcomes import Times, survival_labels
from trainers.tables import markdown_table

FloatArray = NDArray[np.float64]
_QUESTIONS, _POINTS, _QUANTILE = 4, 5, 1.645
_STRENGTH = 100.0  # inverse strength of the penalty, next to none
_MOST_TRAINING = 2_000  # rows of a half that learn, where it has more
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


class Table(NamedTuple):
    """A table of times, and its columns that are no features."""

    name: str
    drop: tuple[str, ...] = ()  # centres, and causes that are known afterwards


TABLES = (
    Table("veteran"),
    Table("lung", ("inst",)),
    Table("rossi"),
    Table("whas500"),
    Table("GBSG2"),
    Table("flchain", ("chapter",)),
)


def tables(folder: Path) -> None:
    """Write the tables into a folder, by an environment that has their packages."""
    if (folder / "veteran.csv").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    venv.create(folder / "packages", with_pip=True)
    python = str(folder / "packages" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "lifelines", "scikit-survival"], check=True)
    subprocess.run([python, "-c", _EXPORT, str(folder)], check=True)


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


def measure(table: Table, folder: Path, splits: int) -> Json:
    """Return the C-indices on the halves that did not learn, and the time of the proof on all rows."""
    frame = pd.read_csv(folder / f"{table.name}.csv").drop(columns=list(table.drop))
    event, until = frame.pop("event").to_numpy(), frame.pop("time").to_numpy()
    y = survival_labels(until, event == event.max())
    rows: list[list[float]] = []
    for split in range(splits):
        order = np.random.default_rng(split).permutation(len(frame))
        train, test = order[: len(order) // 2][:_MOST_TRAINING], order[len(order) // 2 :]
        found = []
        for within in (None, 0.0):
            ranker = CardRanker("c_index", _QUESTIONS, _POINTS, within=within).fit(frame.iloc[train], y[train])
            found.append(ranker.score(frame.iloc[test], y[test]))
        answers = [ranker.questions_.transform(frame.iloc[part]).astype(np.float64) for part in (train, test)]
        cox = answers[1] @ rounded_cox(answers[0], Times.of(y[train]))
        rows.append([*found, Times.of(y[test]).c_index(cox)])
    questions = CardRanker("c_index", within=0).fit(frame, y).questions_.transform(frame).astype(np.float64)
    began = time.perf_counter()
    proof = solve(CardProblem(questions, y, "c_index", points=_POINTS, max_nonzeros=_QUESTIONS), "cards")
    seconds = time.perf_counter() - began
    size = {"rows": len(frame), "questions": questions.shape[1]}
    return {"name": table.name, **size, "values": rows, "seconds": seconds, "status": proof.status.value}


def line(found: Json) -> list[str]:
    """Return the line of a table."""
    values = np.array(found["values"])
    difference = values[:, 0] - values[:, 2]
    half = _QUANTILE * difference.std(ddof=1) / np.sqrt(len(difference))
    return [
        found["name"],
        f"{found['rows']:,}",
        str(found["questions"]),
        f"{found['seconds']:.2f} s",
        *(f"{mean:.4f}" for mean in values.mean(axis=0)),
        f"{difference.mean():+.4f} ± {half:.4f}",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all tables, print the result and put it into the docs."""
    parser = command_line(__doc__, "runs/times")
    parser.add_argument("--splits", type=int, default=20, help="halves of each table")
    options = parser.parse_args(arguments)
    tables(options.out)
    lines = [line(measure(table, options.out, options.splits)) for table in TABLES]
    head = ["table", "rows", "questions", "proof", "card", "best card (`within=0`)", "rounded Cox", "difference"]
    publish(options, "times", markdown_table(head, lines))


if __name__ == "__main__":
    main()
