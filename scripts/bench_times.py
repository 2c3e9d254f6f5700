"""Compare cards of times until an event with rounded Cox regression of as many questions, on new data.

Every table (see `bench_survival`) is divided into halves at random, several times. One half makes a card of four
questions (that of largest C-index, and the one that `CardRanker` takes by default) and a Cox regression on four
questions, which are added one at a time by the partial likelihood, its coefficients divided by the largest, multiplied
by five and rounded. Harrell's C is that of the other half.
"""

from __future__ import annotations

import io
import time

import numpy as np
import pandas as pd

from ltr.cards import CardRanker
from ltr.cards.reference import cox
from ltr.exact import solve
from ltr.exact.cards import CardProblem
from ltr.outcomes import Times, survival_labels
from scripts._bench import Bench, FloatArray, Json, grid, made_on, table, value
from scripts.bench_survival import DATA, read

_QUESTIONS, _POINTS, _SPLITS, _QUANTILE = 4, 5, 20, 1.645
_STRENGTH = 100.0  # inverse strength of the penalty, next to none
_MOST_TRAINING = 2_000  # rows of a half that learn, where it has more


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


def measure(data: str) -> Json:
    """Return the C-indices on the halves that did not learn, and the time of the proof on all rows."""
    features, until, event = read(data)
    frame = pd.read_csv(io.StringIO(features.to_csv(index=False)))  # categories become texts and numbers
    y = survival_labels(until, event == 1)
    values: list[list[float]] = []
    for split in range(_SPLITS):
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
    solve(CardProblem(questions, y, "c_index", points=_POINTS, max_nonzeros=_QUESTIONS), "cards")
    seconds = time.perf_counter() - began
    means = dict(zip(("card", "best", "cox"), np.mean(values, axis=0).tolist(), strict=True))
    gains = np.array([card - peer for card, _, peer in values])
    interval = f"{gains.mean():+.4f} ± {_QUANTILE * gains.std(ddof=1) / np.sqrt(len(gains)):.4f}"
    return {"rows": len(frame), "questions": questions.shape[1], "seconds": seconds, **means, "difference": interval}


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of the mean C-indices, and the difference with its 90 % interval over splits."""
    columns = {
        "rows": value("rows", "{:,}"),
        "questions": value("questions"),
        "proof": value("seconds", "{:.2f} s"),
        "card": value("card", "{:.4f}"),
        "best card (`within=0`)": value("best", "{:.4f}"),
        "rounded Cox": value("cox", "{:.4f}"),
        "difference": value("difference"),
    }
    return {"times": f"{table(records, {'data': 'table'}, columns)}\n\n{made_on(records)}\n"}


BENCH = Bench("times", "docs/cards.md", grid(data=DATA), {"data": ["veteran"]}, measure, tables, alone=True)
