"""Measure the training of surrogates on many rows: seconds and memory, by loss, number of threads, and chunks.

Every measurement runs in processes of its own. Memory is what the fit adds to the peak before it, which includes data
and imports. Results are kept in ``scaling.jsonl`` and not measured again. No table is written unless all forms of a fit
reach the same objective.

    python scripts/bench_scaling.py --out runs/scaling --docs docs/scaling.md
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from _bench import Json, Records, apart, command_line, parsed, peak, publish

from ltr.fitting import Fit, FitOptions
from ltr.losses import parse_loss
from ltr.rankers.scorers import LinearScorer, MLPScorer
from trainers.provenance import machine
from trainers.tables import markdown_table

_ROWS = (100_000, 1_000_000)
_LOSSES = ("ranknet", "hinge", "squared_hinge", "exponential", "logistic", "p_norm_push(p=2)")
_FEATURES = 10
_STEPS = 4  # number of steps in the comparison of forms
_CHUNK = 1 << 14
_KEY = ("rows", "loss", "scorer", "list", "steps", "threads", "chunked")
_FORMS = {
    "1 thread": {"threads": 1, "chunked": False},
    "2 threads": {"threads": 2, "chunked": False},
    "chunks from a file": {"threads": 1, "chunked": True},
}
_TASKS = {
    "linear, one list": {"scorer": "linear", "list": None},
    "linear, lists of 100": {"scorer": "linear", "list": 100},
    "mlp (64, 32), one list": {"scorer": "mlp", "list": None},
}


def _data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X, w = generator.normal(size=(rows, _FEATURES)), generator.normal(size=_FEATURES)
    return X, (X @ w + 2 * np.linalg.norm(w) * generator.normal(size=rows) > 2).astype(np.int64)


def measure(request: Json) -> Json:
    """Return the record of one fit."""
    torch.set_num_threads(request["threads"])
    for name in (request["loss"], "hinge"):  # compilation
        Fit(LinearScorer(_FEATURES), parse_loss(name), *_data(300), FitOptions(max_steps=2)).run()
    X, y = _data(request["rows"])
    qid = None if request["list"] is None else np.arange(request["rows"]) // request["list"]
    torch.manual_seed(0)
    scorer = LinearScorer(_FEATURES) if request["scorer"] == "linear" else MLPScorer(_FEATURES)
    options = FitOptions(max_steps=request["steps"], chunk_rows=_CHUNK if request["chunked"] else None)
    with tempfile.TemporaryDirectory() as folder:
        if request["chunked"]:
            np.save(Path(folder) / "X.npy", X)
            X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        before = peak()
        begun = time.perf_counter()
        fit = Fit(scorer, parse_loss(request["loss"]), X, y, options, qid)
        ready = time.perf_counter()
        *_, last = fit
        seconds = time.perf_counter() - ready
    return request | {
        "status": fit.stopped,
        "seconds": seconds,
        "start": ready - begun,
        "done": last.index,
        "objective": last.objective,
        "gap": last.gap,
        "megabytes": peak() - before,
    }


def optima() -> list[Json]:
    """Return the requests of training each loss to its optimum."""
    plain = {"scorer": "linear", "list": None, "steps": 1000} | _FORMS["1 thread"]
    return [{"rows": n, "loss": loss} | plain for n in _ROWS for loss in _LOSSES]


def forms(task: str, rows: int) -> list[Json]:
    """Return the requests of a few steps of a task in every form."""
    return [{"rows": rows, "loss": "ranknet", "steps": _STEPS} | _TASKS[task] | form for form in _FORMS.values()]


def losses_table(records: Records) -> str:
    """Return a table of the time and memory of training to the optimum, by loss."""
    rows = []
    for record in (records[request][-1] for request in optima()):
        cells = [record["loss"], f"{record['rows']:,}", record["status"], str(record["done"])]
        cells += [f"{record['seconds']:.3g}", f"{record['gap'] / record['objective']:.1e}"]
        rows.append([*cells, f"{record['megabytes']:.0f}"])
    return markdown_table(["loss", "rows", "ended by", "steps", "seconds", "gap", "MB"], rows, left=1)


def forms_table(records: Records) -> str:
    """Return a table of seconds per step and memory, by task and form."""
    rows = []
    for title in _TASKS:
        for n in _ROWS:
            found = [records[request][-1] for request in forms(title, n)]
            objectives = [record["objective"] for record in found]
            if max(objectives) - min(objectives) > 1e-9 * max(objectives):
                raise SystemExit(f"{title}, {n} rows: the forms end with different objectives {objectives}")
            cells = [f"{r['seconds'] / r['done']:.3g} s, {r['megabytes']:.0f} MB" for r in found]
            rows.append([title, f"{n:,}", *cells])
    return markdown_table(["scorer and lists", "rows", *_FORMS], rows, left=1)


def main() -> None:
    """Measure what is missing, and write the tables."""
    options = parsed(command_line(__doc__, "runs/scaling"), measure)
    records = Records(options.out / "scaling.jsonl", _KEY)
    for request in [*optima(), *(one for task in _TASKS for n in _ROWS for one in forms(task, n))]:
        if not records[request]:
            print(request, flush=True)
            record = apart(__file__, request, threads=request["threads"])
            if record["status"] == "failed":
                raise SystemExit(record["message"])
            records.add(record)
    tables = f"{losses_table(records)}\n\n{forms_table(records)}"
    publish(options, "scaling", f"{machine()}; torch {torch.__version__}.\n\n{tables}\n")


if __name__ == "__main__":
    main()
