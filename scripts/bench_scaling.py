"""Measure the training of surrogates on many rows: seconds and memory, by loss, number of threads, and chunks.

Memory is what the fit adds to the peak before it, which includes data and imports. No table is written unless all forms
of a fit reach the same objective.

    python -m scripts.bench_scaling --docs
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from ltr.fitting import Fit, FitOptions
from ltr.losses import parse_loss
from ltr.rankers.scorers import LinearScorer, MLPScorer
from scripts._bench import Bench, Json, made_on, peak, table
from trainers.tables import markdown_table

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
    return outcome | {"gap": last.gap, "megabytes": peak() - before}


def tables(records: list[Json]) -> dict[str, str]:
    """Return a table of training to the optimum, by loss, and one of seconds per step and memory, by task and form."""
    optima, few = ([one for one in records if one["steps"] == steps] for steps in (_OPTIMUM, _FEW))
    rows = [
        [
            *(r["loss"], f"{r['rows']:,}", r["status"], str(r["done"]), f"{r['seconds']:.3g}"),
            *(f"{r['gap'] / r['objective']:.1e}", f"{r['megabytes']:.0f}"),
        ]
        for r in optima
    ]
    losses = markdown_table(["loss", "rows", "ended by", "steps", "seconds", "gap", "MB"], rows, left=2)
    for one in few:
        own = [r["objective"] for r in few if (r["task"], r["rows"]) == (one["task"], one["rows"])]
        if max(own) - min(own) > 1e-9 * max(own):
            raise SystemExit(f"{one['task']}, {one['rows']} rows: the forms end with different objectives {own}")
    forms = table(
        [one | {"rows": f"{one['rows']:,}"} for one in few],
        {"task": "scorer and lists", "rows": "rows"},
        _FORMS,
        lambda found: f"{found[0]['seconds'] / found[0]['done']:.3g} s, {found[0]['megabytes']:.0f} MB",
    )
    return {"scaling": f"{made_on(records)}\n\n{losses}\n\n{forms}\n"}


_REQUESTS = [
    {"task": _TASKS[0], "rows": n, "loss": loss, "steps": _OPTIMUM, **_FORMS["1 thread"]}
    for n in _ROWS
    for loss in _LOSSES
]
_REQUESTS += [
    {"task": task, "rows": n, "loss": "ranknet", "steps": _FEW, **form}
    for task in _TASKS
    for n in _ROWS
    for form in _FORMS.values()
]
BENCH = Bench("scaling", __doc__, "docs/scaling.md", _REQUESTS, measure, tables, alone=True)

if __name__ == "__main__":
    sys.exit(BENCH.main())
