"""Compare rankers and cards of times until an event with Cox's model, on the data of lifelines and scikit-survival.

*Rankers.* Linear rankers are trained on pairwise losses. Texts become indicators of all but their first value, missing
numbers the median, and columns are divided by their standard deviation. A value is Harrell's C on the 30 % of rows held
out, in 20 random splits with as many events on each side. The losses are minimised by L-BFGS, with ``0.0005 |w|^2``
added to their mean, and as much to scikit-survival's Cox model.

*Cards.* Every table is divided into halves at random, several times. One half makes a card of four questions (that of
largest C-index, and the one that `CardRanker` takes by default) and a Cox regression on four questions, which are added
one at a time by the partial likelihood, its coefficients divided by the largest, multiplied by five and rounded.
Harrell's C is that of the other half.

    pip install --no-deps lifelines autograd autograd-gamma formulaic interface-meta wrapt
"""

from __future__ import annotations

import io
import time

import numpy as np
import pandas as pd
import torch

from ltr.cards import CardRanker
from ltr.cards.reference import cox
from ltr.exact import solve
from ltr.exact.cards import CardProblem
from ltr.outcomes import Times, survival_labels
from ltr.survival import ConcordanceLoss, CoxLoss, c_index
from scripts._bench import Bench, FloatArray, Json, descended, grid, made_on, pivot, table, value
from trainers.report.paired import paired

DATA = ("rossi", "lung", "GBSG2", "whas500", "flchain", "veteran")
_COX = "Cox, scikit-survival"
_FORMS = (_COX, "cox_loss", "ranknet", "hinge", "squared_hinge", "exponential")
_SPLITS, _HELD, _RIDGE = 20, 0.3, 0.001


def read(name: str) -> tuple[pd.DataFrame, FloatArray, FloatArray]:
    """Return the columns that may be features, times and events: no centres, and no causes known afterwards."""
    if name in ("rossi", "lung"):
        from lifelines import datasets

        frame = getattr(datasets, f"load_{name}")()
        time, event = ("week", "arrest") if name == "rossi" else ("time", "status")
        times, events, frame = frame[time], frame[event], frame.drop(columns=[time, event])
    else:
        from sksurv import datasets

        loader = {"GBSG2": "load_gbsg2", "veteran": "load_veterans_lung_cancer"}.get(name, f"load_{name}")
        frame, y = getattr(datasets, loader)()
        event, time = y.dtype.names
        times, events = y[time], y[event]
    features = frame.drop(columns=["inst", "chapter"], errors="ignore")
    return features, np.asarray(times, dtype=np.float64), np.asarray(events == events.max(), dtype=np.float64)


def measure_losses(form: str, data: str) -> Json:
    """Return C on the rows held out, for each split."""
    frame, time, event = read(data)
    frame = pd.get_dummies(frame, drop_first=True).astype(float)
    frame = frame.fillna(frame.median())
    X = frame.to_numpy()[:, frame.std().to_numpy() > 0]
    X = (X - X.mean(0)) / X.std(0)
    values = []
    for seed in range(_SPLITS):
        rng = np.random.default_rng(seed)
        test = np.zeros(len(X), dtype=bool)
        for one in (0, 1):
            own = rng.permutation(np.flatnonzero(event == one))
            test[own[: round(_HELD * len(own))]] = True
        w = _weights(form, X[~test], time[~test], event[~test])
        values.append(c_index(X[test] @ w, survival_labels(time[test], event[test])))
    return {"c": values, "rows": f"{len(X)} ({int(event.sum())})"}


def _weights(form: str, X: FloatArray, time: FloatArray, event: FloatArray) -> FloatArray:
    if form == _COX:
        from sksurv.linear_model import CoxPHSurvivalAnalysis

        labels = survival_labels(time, event)
        return CoxPHSurvivalAnalysis(alpha=_RIDGE * len(X), ties="efron").fit(X, labels).coef_
    loss = CoxLoss() if form == "cox_loss" else ConcordanceLoss(form)
    y = torch.tensor(time), torch.tensor(event)
    return descended(lambda scores: loss(scores, *y), X, _RIDGE)


def tables_of_losses(records: list[Json]) -> dict[str, str]:
    """Return the table of Cox's C, and 1000 times the differences from it with their 95 % intervals."""
    base = {record["data"]: record["c"] for record in records if record["form"] == _COX}

    def difference(own: list[Json]) -> str:
        one = paired(own[0]["c"], base[own[0]["data"]], _HELD / (1 - _HELD))
        return f"{1000 * one.difference:+.0f} ± {1000 * one.width:.0f}"

    columns = pivot(lambda own: f"{np.mean(own[0]['c']):.3f}", {_COX: {"form": _COX}})
    columns |= pivot(difference, {f"`{form}`": {"form": form} for form in _FORMS[1:]})
    shown = table(records, {"data": "data"}, {"rows (events)": value("rows")} | columns)
    return {"survival": f"{made_on(records)}\n\n{shown}\n"}


_REQUESTS, _QUICK = grid(data=DATA, form=_FORMS), {"data": ["veteran"]}
LOSSES = Bench("survival", "docs/survival.md", _REQUESTS, _QUICK, measure_losses, tables_of_losses)


# --- cards ------------------------------------------------------------------------------------------------------------

_QUESTIONS, _POINTS, _QUANTILE = 4, 5, 1.645
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


def measure_cards(data: str) -> Json:
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


def tables_of_cards(records: list[Json]) -> dict[str, str]:
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


CARDS = Bench("times", "docs/cards.md", grid(data=DATA), _QUICK, measure_cards, tables_of_cards, alone=True)
