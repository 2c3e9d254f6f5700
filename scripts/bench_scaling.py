"""Measure the training of surrogates on many rows: seconds and memory, by loss, number of threads, and chunks.

Memory is what the fit adds to the peak before it, which includes data and imports. No table is written unless all forms
of a fit reach the same objective.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from ltr.fitting import Fit, FitOptions
from ltr.losses import parse_loss
from ltr.rankers.scorers import LinearScorer, MLPScorer
from scripts._bench import Bench, Json, grid, made_on, peak, pivot, table, value

_ROWS = (100_000, 1_000_000)
_LOSSES = ("ranknet", "hinge", "squared_hinge", "exponential", "logistic", "p_norm_push(p=2)")
_FEATURES, _CHUNK = 10, 1 << 14
_OPTIMUM, _FEW = 1000, 4  # most steps of a training to the optimum, and steps in the comparison of forms
_FORMS: dict[str, Json] = {
    "1 thread": {"threads": 1, "chunked": False},
    "2 threads": {"threads": 2, "chunked": False},
    "chunks from a file": {"threads": 1, "chunked": True},
}
_TASKS = ("linear, one list", "linear, lists of 100", "mlp (64, 32), one list")


def _data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X, w = generator.normal(size=(rows, _FEATURES)), generator.normal(size=_FEATURES)
    return X, (X @ w + 2 * np.linalg.norm(w) * generator.normal(size=rows) > 2).astype(np.int64)


def measure(task: str, rows: int, loss: str, steps: int, threads: int, chunked: bool) -> Json:
    """Return the time and the memory of one fit."""
    for name in (loss, "hinge"):  # compilation
        Fit(LinearScorer(_FEATURES), parse_loss(name), *_data(300), FitOptions(max_steps=2)).run()
    X, y = _data(rows)
    qid = np.arange(rows) // 100 if task.endswith("lists of 100") else None
    torch.manual_seed(0)
    scorer = LinearScorer(_FEATURES) if task.startswith("linear") else MLPScorer(_FEATURES)
    options = FitOptions(max_steps=steps, chunk_rows=_CHUNK if chunked else None)
    with tempfile.TemporaryDirectory() as folder:
        if chunked:
            np.save(Path(folder) / "X.npy", X)
            X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        before = peak()
        fit = Fit(scorer, parse_loss(loss), X, y, options, qid)
        ready = time.perf_counter()
        *_, last = fit
        seconds = time.perf_counter() - ready
    outcome = {"status": fit.stopped, "seconds": seconds, "done": last.index, "objective": last.objective}
    return outcome | {"gap": last.gap / last.objective, "megabytes": peak() - before}


def tables(records: list[Json]) -> dict[str, str]:
    """Return a table of training to the optimum, by loss, and one of seconds per step and memory, by task and form."""
    sized = [record | {"rows": f"{record['rows']:,}"} for record in records]
    optima, few = ([one for one in sized if one["steps"] == steps] for steps in (_OPTIMUM, _FEW))
    for one in few:
        own = [r["objective"] for r in few if (r["task"], r["rows"]) == (one["task"], one["rows"])]
        if max(own) - min(own) > 1e-9 * max(own):
            raise SystemExit(f"{one['task']}, {one['rows']} rows: the forms end with different objectives {own}")
    columns = {
        "ended by": value("status"),
        "steps": value("done"),
        "seconds": value("seconds", "{:.3g}"),
        "gap": value("gap", "{:.1e}"),
        "MB": value("megabytes", "{:.0f}"),
    }
    losses = table(optima, {"loss": "loss", "rows": "rows"}, columns)
    step = pivot(lambda own: f"{own[0]['seconds'] / own[0]['done']:.3g} s, {own[0]['megabytes']:.0f} MB", _FORMS)
    forms = table(few, {"task": "scorer and lists", "rows": "rows"}, step)
    return {"scaling": f"{made_on(records)}\n\n{losses}\n\n{forms}\n"}


_REQUESTS = grid(task=_TASKS[:1], rows=_ROWS, loss=_LOSSES, steps=[_OPTIMUM], threads=[1], chunked=[False])
_REQUESTS += [
    request | form
    for request in grid(task=_TASKS, rows=_ROWS, loss=["ranknet"], steps=[_FEW])
    for form in _FORMS.values()
]
_QUICK = {"rows": ["100000"], "loss": ["ranknet"]}
BENCH = Bench("scaling", "docs/scaling.md", _REQUESTS, _QUICK, measure, tables, alone=True)
