"""Measure linear rankers of times until an event, trained on pairwise losses, against Cox's model.

Data sets are those that come with lifelines and scikit-survival. Texts become indicators of all but their first value,
missing numbers the median, and columns are divided by their standard deviation. A value is Harrell's C on the 30 % of
rows held out, in 20 random splits with as many events on each side. The losses are minimised by L-BFGS, with
``0.0005 |w|^2`` added to their mean, and as much to scikit-survival's Cox model. The cause of death in flchain is left
out.

    pip install --no-deps lifelines autograd autograd-gamma formulaic interface-meta wrapt
    python scripts/bench_survival.py --out runs/survival --docs docs/survival.md
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch
from _bench import FloatArray, Json, Records, command_line, descended, measure_missing, parsed, publish

from ltr.survival import ConcordanceLoss, CoxLoss, c_index, survival_labels
from trainers.provenance import machine
from trainers.report.paired import paired
from trainers.tables import markdown_table

_DATA = ("rossi", "lung", "GBSG2", "whas500", "flchain", "veteran")
_COX = "Cox, scikit-survival"
_LOSSES = ("ranknet", "hinge", "squared_hinge", "exponential")
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


def measure(request: Json) -> Json:
    """Return C on the rows held out by one form, for each split."""
    torch.set_num_threads(1)
    X, time, event = data_set(request["data"])
    values = []
    for seed in range(_SPLITS):
        rng = np.random.default_rng(seed)
        test = np.zeros(len(X), dtype=bool)
        for one in (0, 1):
            own = rng.permutation(np.flatnonzero(event == one))
            test[own[: round(_HELD * len(own))]] = True
        w = _weights(request["form"], X[~test], time[~test], event[~test])
        values.append(c_index(X[test] @ w, survival_labels(time[test], event[test])))
    return request | {"status": "ok", "c": values, "rows": len(X), "events": int(event.sum())}


def _weights(form: str, X: FloatArray, time: FloatArray, event: FloatArray) -> FloatArray:
    if form == _COX:
        from sksurv.linear_model import CoxPHSurvivalAnalysis

        labels = survival_labels(time, event)
        return np.asarray(CoxPHSurvivalAnalysis(alpha=_RIDGE * len(X), ties="efron").fit(X, labels).coef_)
    loss = CoxLoss() if form == "cox_loss" else ConcordanceLoss(form)
    y = torch.tensor(time), torch.tensor(event)
    return descended(lambda scores: loss(scores, *y), X, _RIDGE)


def main() -> None:
    """Measure what is missing, and write the table."""
    options = parsed(command_line(__doc__, "runs/survival"), measure)
    kept = Records(options.out / "survival.jsonl", ("form", "data"))
    forms = (_COX, "cox_loss", *_LOSSES)
    measure_missing(__file__, kept, ({"form": form, "data": data} for data in _DATA for form in forms))
    rows = []
    for data in _DATA:
        records = [kept[{"form": form, "data": data}][0] for form in forms]
        base, events = records[0]["c"], f"{records[0]['rows']} ({records[0]['events']})"
        against = (paired(record["c"], base, _HELD / (1 - _HELD)) for record in records[1:])
        cells = [f"{1000 * one.difference:+.0f} ± {1000 * one.width:.0f}" for one in against]
        rows.append([data, events, f"{np.mean(base):.3f}", *cells])
    heads = ["data", "rows (events)", _COX, "`cox_loss`", *(f"`{name}`" for name in _LOSSES)]
    publish(options, "survival", f"{machine()}.\n\n{markdown_table(heads, rows, left=1)}\n")


if __name__ == "__main__":
    main()
