"""Measure linear rankers of times until an event, trained on pairwise losses, against Cox's model.

Data sets are those that come with lifelines and scikit-survival. Texts become indicators of all but their first value,
missing numbers the median, and columns are divided by their standard deviation. A value is Harrell's C on the 30 % of
rows held out, in 20 random splits with as many events on each side. The losses are minimised by L-BFGS, with
``0.0005 |w|^2`` added to their mean, and as much to scikit-survival's Cox model. The cause of death in flchain is left
out.

    pip install --no-deps lifelines autograd autograd-gamma formulaic interface-meta wrapt
    python -m scripts.bench_survival --docs
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import torch

from ltr.survival import ConcordanceLoss, CoxLoss, c_index, survival_labels
from scripts._bench import Bench, FloatArray, Json, descended, made_on
from trainers.report.paired import paired
from trainers.tables import markdown_table

_DATA = ("rossi", "lung", "GBSG2", "whas500", "flchain", "veteran")
_COX = "Cox, scikit-survival"
_FORMS = (_COX, "cox_loss", "ranknet", "hinge", "squared_hinge", "exponential")
_SPLITS, _HELD, _RIDGE = 20, 0.3, 0.001


def data_set(name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return features, times and events."""
    if name in ("rossi", "lung"):
        from lifelines import datasets

        table = getattr(datasets, f"load_{name}")()
        time, event = ("week", "arrest") if name == "rossi" else ("time", "status")
        times, events = table[time], table[event] - (name == "lung" and table[event].min())
        table = table.drop(columns=[time, event, *(["inst"] if name == "lung" else [])])
    else:
        from sksurv import datasets

        loader = {"GBSG2": "load_gbsg2", "veteran": "load_veterans_lung_cancer"}.get(name, f"load_{name}")
        table, y = getattr(datasets, loader)()
        event, time = y.dtype.names
        times, events, table = y[time], y[event], table.drop(columns=["chapter"], errors="ignore")
    table = pd.get_dummies(table, drop_first=True).astype(float)
    table = table.fillna(table.median())
    X = table.to_numpy()[:, table.std().to_numpy() > 0]
    return (X - X.mean(0)) / X.std(0), np.asarray(times, dtype=np.float64), np.asarray(events, dtype=np.float64)


def measure(form: str, data: str) -> Json:
    """Return C on the rows held out, for each split."""
    X, time, event = data_set(data)
    values = []
    for seed in range(_SPLITS):
        rng = np.random.default_rng(seed)
        test = np.zeros(len(X), dtype=bool)
        for one in (0, 1):
            own = rng.permutation(np.flatnonzero(event == one))
            test[own[: round(_HELD * len(own))]] = True
        w = _weights(form, X[~test], time[~test], event[~test])
        values.append(c_index(X[test] @ w, survival_labels(time[test], event[test])))
    return {"c": values, "rows": len(X), "events": int(event.sum())}


def _weights(form: str, X: FloatArray, time: FloatArray, event: FloatArray) -> FloatArray:
    if form == _COX:
        from sksurv.linear_model import CoxPHSurvivalAnalysis

        labels = survival_labels(time, event)
        return np.asarray(CoxPHSurvivalAnalysis(alpha=_RIDGE * len(X), ties="efron").fit(X, labels).coef_)
    loss = CoxLoss() if form == "cox_loss" else ConcordanceLoss(form)
    y = torch.tensor(time), torch.tensor(event)
    return descended(lambda scores: loss(scores, *y), X, _RIDGE)


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of Cox's C, and 1000 times the differences from it with their 95 % intervals."""
    rows = []
    for data in dict.fromkeys(record["data"] for record in records):
        own = {record["form"]: record for record in records if record["data"] == data}
        if _COX in own:
            base = own[_COX]
            cells = [_difference(own[form]["c"], base["c"]) if form in own else "-" for form in _FORMS[1:]]
            rows.append([data, f"{base['rows']} ({base['events']})", f"{np.mean(base['c']):.3f}", *cells])
    heads = ["data", "rows (events)", _COX, *(f"`{name}`" for name in _FORMS[1:])]
    return {"survival": f"{made_on(records)}\n\n{markdown_table(heads, rows, left=1)}\n"}


def _difference(c: list[float], base: list[float]) -> str:
    one = paired(c, base, _HELD / (1 - _HELD))
    return f"{1000 * one.difference:+.0f} ± {1000 * one.width:.0f}"


BENCH = Bench(
    "survival", __doc__, "docs/survival.md", [{"form": form, "data": data} for data in _DATA for form in _FORMS],
    measure, tables,
)  # fmt: skip

if __name__ == "__main__":
    sys.exit(BENCH.main())
