"""Measure NDCG, MRR and AUC: seconds and memory, against torchmetrics, scikit-learn, ranx and allRank.

Every measurement runs in a process of its own, so that its peak of memory is its own; imports, compilation, the making
of a peer's own data structures and a first small call come before the clock, and the best of several calls counts. No
table is written where answers differ. Peers are measured where they can be imported. A Markdown table and a plot are
written beside ``metrics.jsonl``, which holds what is not measured again.

    python scripts/bench_metrics.py --out runs/metrics
    python scripts/bench_metrics.py --out runs/metrics --docs docs/metrics.md --image docs/images/metrics.png
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _tables import insert, machine, markdown
from torch import Tensor

Json = dict[str, Any]
Call = Callable[[], float]  # the mean value of the lists

_METRICS = ("ndcg", "mrr", "auc")
_LONG = (100, 1_000, 10_000, 100_000, 1_000_000)
_LONGEST = {"auc": 10_000_000}
_BATCH = (8_000, 40)
_RANX_LONGEST = 100_000  # it keeps a name for every item
_SECONDS, _CALLS = 1.0, 100  # to measure, and calls at most
_AGREE = 1e-4  # relative; some compute in single precision


def _ltr(metric: str, scores: Tensor, labels: Tensor) -> Call:
    from ltr.metrics import parse_measure

    measure = parse_measure(metric)
    return lambda: float(measure(scores, labels).mean())


def _ltr_flat(metric: str, scores: Tensor, labels: Tensor) -> Call | None:
    from ltr.metrics import parse_measure

    if scores.ndim == 1:
        return None
    measure, qid = parse_measure(metric), torch.arange(len(scores)).repeat_interleave(scores.shape[1])
    flat = scores.reshape(-1), labels.reshape(-1)
    return lambda: float(measure(*flat, qid=qid).mean())


def _torchmetrics(metric: str, scores: Tensor, labels: Tensor) -> Call | None:
    from torchmetrics import retrieval
    from torchmetrics.functional import classification

    if metric == "auc":
        rows, targets = torch.atleast_2d(scores), torch.atleast_2d(labels)
        auroc = classification.binary_auroc
        # probabilities are wanted: others go through a sigmoid
        unit = torch.special.ndtr(rows.double())
        return lambda: sum(float(auroc(s, y)) for s, y in zip(unit, targets, strict=True)) / len(rows)
    classes = {"ndcg": retrieval.RetrievalNormalizedDCG, "mrr": retrieval.RetrievalMRR}
    indexes = torch.arange(torch.atleast_2d(scores).shape[0]).repeat_interleave(scores.shape[-1])
    target = labels if metric == "ndcg" else labels > 0
    return lambda: float(classes[metric]()(scores.reshape(-1), target.reshape(-1), indexes=indexes))


def _scikit_learn(metric: str, scores: Tensor, labels: Tensor) -> Call | None:
    from sklearn.metrics import ndcg_score, roc_auc_score

    rows, targets = torch.atleast_2d(scores).numpy(), torch.atleast_2d(labels).numpy()
    if metric == "ndcg":
        return lambda: float(ndcg_score(targets, rows))
    if metric == "auc":
        return lambda: sum(roc_auc_score(y, s) for s, y in zip(rows, targets, strict=True)) / len(rows)
    return None


def _ranx(metric: str, scores: Tensor, labels: Tensor) -> Call | None:
    if metric == "auc" or scores.shape[-1] > _RANX_LONGEST:
        return None
    from ranx import Qrels, Run, evaluate

    rows, targets = torch.atleast_2d(scores).double().tolist(), torch.atleast_2d(labels).tolist()
    # it divides by the sum of the ideal order and knows relevant items only
    qrels = Qrels({f"q{q}": {f"d{i}": y for i, y in enumerate(row) if y} for q, row in enumerate(targets)})
    run = Run({f"q{q}": {f"d{i}": s for i, s in enumerate(row)} for q, row in enumerate(rows)})
    return lambda: float(evaluate(qrels, run, metric))


def _allrank(metric: str, scores: Tensor, labels: Tensor) -> Call | None:
    if metric == "auc":
        return None
    from allrank.models import metrics

    rows, targets = torch.atleast_2d(scores).float(), torch.atleast_2d(labels).float()
    if metric == "mrr":
        return lambda: float(metrics.mrr(rows, targets).mean())
    return lambda: float(metrics.ndcg(rows, targets, gain_function=lambda y: y).mean())


_FORMS: dict[str, Callable[[str, Tensor, Tensor], Call | None]] = {
    "ltr": _ltr,
    "ltr, flat": _ltr_flat,
    "torchmetrics": _torchmetrics,
    "scikit-learn": _scikit_learn,
    "ranx": _ranx,
    "allRank": _allrank,
}


def _data(metric: str, shape: list[int]) -> tuple[Tensor, Tensor]:
    """Scores without ties, a third of the items relevant; graded labels for NDCG."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, shape, generator=generator) // 2 * torch.randint(1, 5, shape, generator=generator)
    labels[..., :2] = torch.tensor([1, 0])
    return scores if len(shape) == 1 else scores.float(), labels if metric == "ndcg" else (labels > 0).long()


def measure(request: Json) -> Json:
    """One form of one metric."""
    torch.set_num_threads(request["threads"])
    try:
        small = _FORMS[request["form"]](request["metric"], *_data(request["metric"], [2, 30][-len(request["shape"]) :]))
        call = _FORMS[request["form"]](request["metric"], *_data(request["metric"], request["shape"]))
    except ImportError as error:
        return request | {"status": f"not there: {error}"}
    if small is None or call is None:
        return request | {"status": "left out"}
    small()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value = call()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    best, began, calls = float("inf"), time.perf_counter(), 0
    while calls < 3 or (time.perf_counter() - began < _SECONDS and calls < _CALLS):
        start = time.perf_counter()
        call()
        best, calls = min(best, time.perf_counter() - start), calls + 1
        if best > 10 * _SECONDS:
            break
    return request | {"status": "ok", "value": value, "seconds": best, "megabytes": peak / 1024}


def requests(threads: int, longest: int) -> list[Json]:
    """What is measured."""
    shapes = {m: [[n] for n in (*_LONG, _LONGEST.get(m, 0)) if 0 < n <= longest] for m in _METRICS}
    return [
        {"form": form, "metric": metric, "shape": shape, "threads": threads}
        for metric in _METRICS
        for shape in [*shapes[metric], list(_BATCH)]
        for form in _FORMS
    ]


def key(record: Json) -> tuple[Any, ...]:
    """What tells one measurement from another."""
    return (record["form"], record["metric"], tuple(record["shape"]), record["threads"])


def run(folder: Path, threads: int, longest: int) -> list[Json]:
    """Measure what is missing; records of all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "metrics.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = {key(record): record for record in map(json.loads, lines)}
    absent = set()
    for request in requests(threads, longest):
        if key(request) in records or request["form"] in absent:
            continue
        done = subprocess.run(
            [sys.executable, __file__, "--one"], input=json.dumps(request), capture_output=True, text=True, check=False
        )
        out = done.stdout.strip().splitlines()
        record = json.loads(out[-1]) if done.returncode == 0 else request | {"status": done.stderr.strip()[-200:]}
        if record["status"].startswith("not there"):
            absent.add(request["form"])
            print(f"{request['form']}: {record['status']}")
            continue
        print(f"{request['metric']}, {request['form']}, {request['shape']}: {record['status']}", flush=True)
        records[key(record)] = record
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    found = [records[key(request)] for request in requests(threads, longest) if key(request) in records]
    _check_values(found)
    return found


def _check_values(records: list[Json]) -> None:
    """Speed says nothing where the answers differ."""
    own = {key(r)[1:]: r["value"] for r in records if r["form"] == "ltr" and r["status"] == "ok"}
    for record in records:
        expected = own.get(key(record)[1:])
        if record["status"] == "ok" and expected is not None and abs(record["value"] / expected - 1) > _AGREE:
            raise SystemExit(f"{key(record)}: {record['value']!r}, but {expected!r} is the product's value")


def table(records: list[Json]) -> str:
    """Seconds and memory of the product; the others' time as a multiple of its own."""
    measured = {(r["metric"], tuple(r["shape"]), r["form"]): r for r in records if r["status"] == "ok"}
    rows = []
    for metric, shape in dict.fromkeys((r["metric"], tuple(r["shape"])) for r in records):
        own = measured.get((metric, shape, "ltr"))
        if own is None:
            continue
        cells = [metric, " x ".join(f"{n:,}" for n in shape), f"{own['seconds'] * 1e3:.3g}", f"{own['megabytes']:.0f}"]
        for form in list(_FORMS)[1:]:
            other = measured.get((metric, shape, form))
            cells.append("-" if other is None else f"{other['seconds'] / own['seconds']:.3g}x")
        rows.append(cells)
    return markdown(["metric", "scores", "ltr, ms", "MB", *list(_FORMS)[1:]], rows, left=2)


def plot(records: list[Json], path: Path) -> None:
    """Time and memory of one list over its length, on logarithmic axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4), layout="constrained", sharex=True, sharey="row")
    for column, metric in enumerate(_METRICS):
        for at, form in enumerate(_FORMS):
            points = sorted(
                (r["shape"][0], r["seconds"], max(r["megabytes"], 0.1))
                for r in records
                if r["status"] == "ok" and r["form"] == form and r["metric"] == metric and len(r["shape"]) == 1
            )
            if points:
                n, seconds, megabytes = zip(*points, strict=True)
                axes[0, column].loglog(n, seconds, "-o", color=f"C{at}", label=form, markersize=4)
                axes[1, column].loglog(n, megabytes, "-o", color=f"C{at}", markersize=4)
        axes[0, column].set_title(metric)
        axes[0, column].legend(fontsize=7)
        axes[1, column].set_xlabel("items of the list")
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("peak memory, MB")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure, and write the table and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/metrics"), help="folder of the results")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="that torch may use")
    parser.add_argument("--longest", type=int, default=10_000_000, help="longest list that is measured")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="page to put the table into")
    parser.add_argument("--image", type=Path, metavar="PNG", help="a second place for the plot")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(json.load(sys.stdin))))
        return
    records = run(options.out, options.threads, options.longest)
    text = f"{machine()}; torch {torch.__version__}, {options.threads} threads.\n\n{table(records)}"
    (options.out / "metrics.md").write_text(text, encoding="utf-8")
    for path in filter(None, (options.out / "metrics.png", options.image)):
        plot(records, path)
    if options.docs:
        insert(options.docs, "metrics", text)
    print(text)


if __name__ == "__main__":
    main()
