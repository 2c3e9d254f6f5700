"""Measure linear rankers of treatments, trained on pairwise losses, and cards against learners of the effect.

Rows have ten normal features, a treatment at random with chance 1/2, and an outcome of 0 or 1. The effect on the chance
of an outcome 1 is known: a function of a linear combination of the features (``linear``), or of two of them that
interact (``bent``); it is small beside what else decides the outcome. A value is the area under the true effects in the
order of the scores on 20,000 new rows, as a share of the best, where a random order has 0. Each seed is another draw.

T- and X-learners are scikit-learn's HistGradientBoostingRegressor with its defaults, the X-learner with the known
chance of a treatment.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import rankdata

from ltr.cards import CardRanker
from ltr.uplift import UpliftLoss, uplift_labels
from scripts._bench import Bench, FloatArray, Json, descended, grid, made_on, pivot, table
from trainers.report.paired import paired

_FORMS = (
    "least squares of z",
    *("UpliftLoss ranknet", "UpliftLoss hinge", "UpliftLoss exponential"),
    *("T-learner, logistic", "T-learner, boosted", "X-learner, boosted"),
    "card of four questions",  # points up to 3
)
_EFFECTS, _ROWS = ("linear", "bent"), (1000, 10000)
_SEEDS, _RIDGE = 20, 0.001


def draw(rng: np.random.Generator, rows: int, effect: str) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return features, outcomes, treatments and the true effects."""
    X = rng.normal(size=(rows, 10))
    if effect == "linear":
        tau = 0.15 * np.tanh(X[:, 0] - 0.5 * X[:, 1])
    else:
        tau = 0.15 * np.where(X[:, 0] * X[:, 1] > 0, 1.0, -0.5)
    chance = np.clip(0.5 + 0.15 * np.tanh(X[:, 2] + X[:, 3]) - 0.1 * np.sin(2 * X[:, 4]), 0.2, 0.8)
    treatment = rng.random(rows) < 0.5
    outcome = rng.random(rows) < chance + tau * (treatment - 0.5)
    return X, outcome.astype(np.float64), treatment.astype(np.float64), tau


def measure(form: str, effect: str, rows: int) -> Json:
    """Return the share of the best area, for each seed."""
    values = []
    for seed in range(_SEEDS):
        rng = np.random.default_rng(seed)
        X, outcome, treatment, _ = draw(rng, rows, effect)
        new, _, _, tau = draw(rng, 20_000, effect)
        scores = _scores(form, X, outcome, treatment, new)
        areas = [(tau - tau.mean()) @ rankdata(one) for one in (scores, tau)]
        values.append(areas[0] / areas[1])
    return {"share": values}


def _scores(form: str, X: FloatArray, y: FloatArray, t: FloatArray, new: FloatArray) -> FloatArray:
    learner, _, kind = form.partition(" ")
    if learner == "card":
        return CardRanker("auuc", max_questions=4, points=3).fit(X, uplift_labels(y, t)).predict(new)
    treated = t == 1
    if learner == "UpliftLoss":
        loss, labels = UpliftLoss(kind), (torch.tensor(y), torch.tensor(t))
        return new @ descended(lambda scores: loss(scores, *labels), X, _RIDGE)
    if form == "least squares of z":
        z = np.where(treated, y / t.mean(), -y / (1 - t.mean()))
        return new @ np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), z, rcond=None)[0][:-1]
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression

    if kind == "logistic":
        models = [LogisticRegression().fit(X[side], y[side]) for side in (treated, ~treated)]
        return models[0].predict_proba(new)[:, 1] - models[1].predict_proba(new)[:, 1]
    models = [HistGradientBoostingRegressor().fit(X[side], y[side]) for side in (treated, ~treated)]
    if learner == "T-learner,":
        return models[0].predict(new) - models[1].predict(new)
    gains = y[treated] - models[1].predict(X[treated]), models[0].predict(X[~treated]) - y[~treated]
    sides = (X[treated], X[~treated])
    effects = [HistGradientBoostingRegressor().fit(*pair) for pair in zip(sides, gains, strict=True)]
    return 0.5 * (effects[0].predict(new) + effects[1].predict(new))


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of the mean shares with their 95 % intervals."""

    def cell(found: list[Json]) -> str:
        one = paired(found[0]["share"], np.zeros(_SEEDS), overlap=0.0)
        return f"{one.difference:.2f} ± {one.width:.2f}"

    settings = {f"{one['effect']}, {one['rows']:,}": one for one in grid(effect=_EFFECTS, rows=_ROWS)}
    return {"uplift": f"{made_on(records)}\n\n{table(records, {'form': 'ranker'}, pivot(cell, settings))}\n"}


_REQUESTS = grid(form=_FORMS, effect=_EFFECTS, rows=_ROWS)
BENCH = Bench("uplift", "docs/uplift.md", _REQUESTS, {"form": ["least squares of z"]}, measure, tables)
