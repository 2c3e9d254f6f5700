"""Measure linear rankers of times until an event, trained on pairwise losses, against Cox's model.

Data sets are those that come with lifelines and scikit-survival. Texts become indicators of all but their first value,
missing numbers the median, and columns are divided by their standard deviation. A value is Harrell's C on the 30 % of
rows held out, in 20 random splits with as many events on each side. The losses are minimised by L-BFGS, with
``0.0005 |w|^2`` added to their mean, and as much to scikit-survival's Cox model.

    pip install --no-deps lifelines autograd autograd-gamma formulaic interface-meta wrapt
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from ltr.survival import ConcordanceLoss, CoxLoss, c_index, survival_labels
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


def measure(form: str, data: str) -> Json:
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


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of Cox's C, and 1000 times the differences from it with their 95 % intervals."""
    base = {record["data"]: record["c"] for record in records if record["form"] == _COX}

    def difference(own: list[Json]) -> str:
        one = paired(own[0]["c"], base[own[0]["data"]], _HELD / (1 - _HELD))
        return f"{1000 * one.difference:+.0f} ± {1000 * one.width:.0f}"

    columns = pivot(lambda own: f"{np.mean(own[0]['c']):.3f}", {_COX: {"form": _COX}})
    columns |= pivot(difference, {f"`{form}`": {"form": form} for form in _FORMS[1:]})
    shown = table(records, {"data": "data"}, {"rows (events)": value("rows")} | columns)
    return {"survival": f"{made_on(records)}\n\n{shown}\n"}


_REQUESTS = grid(data=DATA, form=_FORMS)
BENCH = Bench("survival", "docs/survival.md", _REQUESTS, {"data": ["veteran"]}, measure, tables)
