"""Measure linear rankers of treatments, trained on pairwise losses, and cards against learners of the effect.

Rows have ten normal features, a treatment at random with chance 1/2, and an outcome of 0 or 1. The effect on the chance
of an outcome 1 is known: a function of a linear combination of the features (``linear``), or of two of them that
interact (``bent``); it is small beside what else decides the outcome. A value is the area under the true effects in the
order of the scores on 20,000 new rows, as a share of the best, where a random order has 0. Each seed is another draw.

T- and X-learners are scikit-learn's HistGradientBoostingRegressor with its defaults, the X-learner with the known
chance of a treatment.

    python scripts/bench_uplift.py --out runs/uplift --docs docs/uplift.md
"""

from __future__ import annotations

import numpy as np
import torch
from _bench import FloatArray, Json, Records, command_line, descended, measure_missing, parsed, publish
from scipy.stats import rankdata

from ltr.cards import CardRanker
from ltr.uplift import UpliftLoss, uplift_labels
from trainers.provenance import machine
from trainers.report.paired import paired
from trainers.tables import markdown_table

_FORMS = (
    "least squares of z",
    "UpliftLoss ranknet",
    "UpliftLoss hinge",
    "UpliftLoss exponential",
    "T-learner, logistic",
    "T-learner, boosted",
    "X-learner, boosted",
    "card of four questions",  # points up to 3
)
_SETTINGS = [{"effect": effect, "rows": rows} for effect in ("linear", "bent") for rows in (1000, 10000)]
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


def measure(request: Json) -> Json:
    """Return the share of the best area by one form, for each seed."""
    torch.set_num_threads(1)
    values = []
    for seed in range(_SEEDS):
        rng = np.random.default_rng(seed)
        X, outcome, treatment, _ = draw(rng, request["rows"], request["effect"])
        new, _, _, tau = draw(rng, 20_000, request["effect"])
        scores = _scores(request["form"], X, outcome, treatment, new)
        areas = [(tau - tau.mean()) @ rankdata(one) for one in (scores, tau)]
        values.append(areas[0] / areas[1])
    return request | {"status": "ok", "share": values}


def _scores(form: str, X: FloatArray, y: FloatArray, t: FloatArray, new: FloatArray) -> FloatArray:
    learner, _, kind = form.partition(" ")
    if learner == "card":
        return CardRanker("auuc", max_questions=4, points=3).fit(X, uplift_labels(y, t)).predict(new)
    treated = t == 1
    if learner == "UpliftLoss":
        loss = UpliftLoss(kind)
        labels = torch.tensor(y), torch.tensor(t)
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


def main() -> None:
    """Measure what is missing, and write the table."""
    options = parsed(command_line(__doc__, "runs/uplift"), measure)
    kept = Records(options.out / "uplift.jsonl", ("form", "effect", "rows"))
    measure_missing(__file__, kept, ({"form": form, **setting} for form in _FORMS for setting in _SETTINGS))
    rows = []
    for form in _FORMS:
        shares = (kept[{"form": form, **setting}][0]["share"] for setting in _SETTINGS)
        means = (paired(share, np.zeros(_SEEDS), overlap=0.0) for share in shares)
        rows.append([form, *(f"{one.difference:.2f} ± {one.width:.2f}" for one in means)])
    heads = ["ranker", *(f"{setting['effect']}, {setting['rows']:,}" for setting in _SETTINGS)]
    publish(options, "uplift", f"{machine()}.\n\n{markdown_table(heads, rows, left=1)}\n")


if __name__ == "__main__":
    main()
