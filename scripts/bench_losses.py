"""Measure the pairwise losses: seconds for value and gradient, and memory, against all pairs in torch and other kits.

Every measurement runs in a process of its own, so that its peak of memory is its own; imports, compilation and a first
call come before the clock, and the best of several calls counts. No table is written where what a form computes differs
from the product's value. Peers (``allrank``, ``pytorchltr``, ``libauc``) are measured where they can be imported. A
Markdown table and a plot are written beside ``losses.jsonl``, which holds what is not measured again.

    python scripts/bench_losses.py --out runs/losses
    python scripts/bench_losses.py --out runs/losses --docs docs/losses.md --image docs/images/losses.png
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
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
from torch.nn import functional as F

from ltr.losses import parse_loss

Json = dict[str, Any]

_NAMES = ("exponential", "p_norm_push(p=2)", "hinge", "squared_hinge", "ranknet")
_LONG = (100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000)  # positives of one list, and as many negatives
_LONGEST_OF_PAIRS = 5_000
_BATCHES = ((64, 20), (64, 100), (64, 1_000))  # lists and their length
_SECONDS, _CALLS = 1.0, 200  # to measure, and calls at most
_AGREE = {"float64": 1e-10, "float32": 1e-4}


def _pairs(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The mean over the pairs of each list, from a matrix of all of them: what is usually written in torch."""

    def value(scores: Tensor, labels: Tensor) -> Tensor:
        z = scores.unsqueeze(-1) - scores.unsqueeze(-2)
        comparable = labels.unsqueeze(-1) > labels.unsqueeze(-2)
        if name.startswith("p_norm_push"):
            counted = comparable.any(-2)
            inner = (torch.exp(-z) * comparable).sum(-2) / comparable.sum(-2).clamp(min=1)
            return (inner.square().sum(-1) / counted.sum(-1)).mean()
        functions: dict[str, Callable[[Tensor], Tensor]] = {
            "exponential": lambda z: torch.exp(-z),
            "hinge": lambda z: F.relu(1 - z),
            "squared_hinge": lambda z: F.relu(1 - z).square(),
            "ranknet": lambda z: F.softplus(-z),
        }
        return ((functions[name](z) * comparable).sum((-2, -1)) / comparable.sum((-2, -1)).clamp(min=1)).mean()

    return value


def _allrank(name: str) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Its RankNet is the mean over the pairs of the whole batch: the same where lists have equally many."""
    if name != "ranknet" or importlib.util.find_spec("allrank") is None:
        return None
    from allrank.models.losses import rankNet

    return lambda scores, labels: rankNet(scores, labels.to(scores.dtype))


def _pytorchltr(name: str) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Its losses are sums over pairs, the logistic one in bits."""
    if name not in ("hinge", "ranknet") or importlib.util.find_spec("pytorchltr") is None:
        return None
    from pytorchltr.loss import PairwiseHingeLoss, PairwiseLogisticLoss

    loss = PairwiseHingeLoss() if name == "hinge" else PairwiseLogisticLoss()
    unit = 1.0 if name == "hinge" else 0.6931471805599453

    def value(scores: Tensor, labels: Tensor) -> Tensor:
        rows = scores if scores.ndim == 2 else scores.unsqueeze(0)
        given = labels if labels.ndim == 2 else labels.unsqueeze(0)
        n = torch.full((len(rows),), rows.shape[1])
        pairs = (given.unsqueeze(-1) > given.unsqueeze(-2)).sum((-2, -1)).clamp(min=1)
        return (unit * loss(rows, given, n) / pairs).mean()

    return value


def _libauc(name: str) -> Callable[[Tensor, Tensor], Tensor] | None:
    """Its losses are means over the pairs of one list."""
    if name not in ("hinge", "squared_hinge", "ranknet") or importlib.util.find_spec("libauc") is None:
        return None
    from libauc.losses.auc import PairwiseAUCLoss

    value: Callable[[Tensor, Tensor], Tensor] = PairwiseAUCLoss("logistic" if name == "ranknet" else name)
    return value


_FORMS: dict[str, Callable[[str], Callable[[Tensor, Tensor], Tensor] | None]] = {
    "ltr": parse_loss,
    "all pairs in torch": _pairs,
    "allRank": _allrank,
    "pytorchltr": _pytorchltr,
    "LibAUC": _libauc,
}
_OF_ONE_LIST = ("ltr", "all pairs in torch", "LibAUC")
_OF_BATCHES = ("ltr", "all pairs in torch", "allRank", "pytorchltr")


def _data(request: Json) -> tuple[Tensor, Tensor]:
    """Scores and labels 0 and 1, as many of each in every list."""
    generator = torch.Generator().manual_seed(0)
    shape = tuple(request["shape"])
    scores = torch.randn(shape, generator=generator, dtype=getattr(torch, request["dtype"]))
    order = torch.rand(shape, generator=generator).argsort(-1)
    return scores, (order < shape[-1] // 2).long()


def measure(request: Json) -> Json:
    """One form of one loss."""
    torch.set_num_threads(request["threads"])
    loss = _FORMS[request["form"]](request["loss"])
    if loss is None:
        return request | {"status": "not there"}
    scores, labels = _data(request)
    scores.requires_grad_()

    def call() -> float:
        value = loss(scores, labels)
        (gradient,) = torch.autograd.grad(value, scores)
        return float(value.detach()) + 0.0 * float(gradient.sum())

    for items in (20, 300):  # compilation, of both forms
        small = _data(request | {"shape": [2, items]})
        loss(small[0].requires_grad_(), small[1]).backward()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    value = call()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    best, began, calls = float("inf"), time.perf_counter(), 0
    while calls < 3 or (time.perf_counter() - began < _SECONDS and calls < _CALLS):
        start = time.perf_counter()
        call()
        best, calls = min(best, time.perf_counter() - start), calls + 1
        if best > _SECONDS:
            break
    return request | {"status": "ok", "value": value, "seconds": best, "megabytes": peak / 1024}


def requests(threads: int) -> list[Json]:
    """What is measured."""
    found: list[Json] = []
    for name in _NAMES:
        for form in _FORMS:
            longest = math.inf if form == "ltr" else _LONGEST_OF_PAIRS
            lists = [n for n in _LONG if n <= longest] if form in _OF_ONE_LIST else []
            batches = _BATCHES if form in _OF_BATCHES else ()
            found += [{"form": form, "loss": name, "shape": [2 * n], "dtype": "float64"} for n in lists]
            found += [{"form": form, "loss": name, "shape": list(shape), "dtype": "float32"} for shape in batches]
    return [request | {"threads": threads} for request in found]


def key(record: Json) -> tuple[Any, ...]:
    """What tells one measurement from another."""
    return (record["form"], record["loss"], tuple(record["shape"]), record["dtype"], record["threads"])


def run(folder: Path, threads: int) -> list[Json]:
    """Measure what is missing; records of all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "losses.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    records = {key(record): record for record in map(json.loads, lines)}
    for request in requests(threads):
        if key(request) in records:
            continue
        print(f"{request['loss']}, {request['form']}, {request['shape']}", flush=True)
        done = subprocess.run(
            [sys.executable, __file__, "--one"], input=json.dumps(request), capture_output=True, text=True, check=False
        )
        out = done.stdout.strip().splitlines()
        record = json.loads(out[-1]) if done.returncode == 0 else request | {"status": done.stderr.strip()[-200:]}
        records[key(record)] = record
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    found = [records[key(request)] for request in requests(threads)]
    _check_values(found)
    return found


def _check_values(records: list[Json]) -> None:
    """Speed says nothing where the answers differ."""
    own = {key(r)[1:]: r["value"] for r in records if r["form"] == "ltr" and r["status"] == "ok"}
    for record in records:
        expected = own.get(key(record)[1:])
        if record["status"] == "ok" and expected is not None:
            error = abs(record["value"] - expected) / abs(expected)
            if error > _AGREE[record["dtype"]]:
                raise SystemExit(f"{key(record)}: {record['value']!r}, but {expected!r} is the product's value")


def table(records: list[Json]) -> str:
    """Seconds and memory of every form; the product's beside the ratio of the others to it."""
    measured = {(r["loss"], tuple(r["shape"]), r["form"]): r for r in records if r["status"] == "ok"}
    rows = []
    for name, shape in dict.fromkeys((r["loss"], tuple(r["shape"])) for r in records):
        own = measured.get((name, shape, "ltr"))
        if own is None:
            continue
        cells = [name, " x ".join(f"{size:,}" for size in shape), _seconds(own["seconds"]), f"{own['megabytes']:.0f}"]
        for form in list(_FORMS)[1:]:
            other = measured.get((name, shape, form))
            cells.append("-" if other is None else f"{other['seconds'] / own['seconds']:.3g}x")
        rows.append(cells)
    return markdown(["loss", "scores", "ltr", "MB", *(form for form in list(_FORMS)[1:])], rows, left=2)


def _seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def plot(records: list[Json], path: Path) -> None:
    """Time and memory of one list over its length, on logarithmic axes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for at, name in enumerate(_NAMES):
        for form, style in (("ltr", "-o"), ("all pairs in torch", ":s")):
            points = sorted(
                (r["shape"][0], r["seconds"], r["megabytes"])
                for r in records
                if r["status"] == "ok" and r["form"] == form and r["loss"] == name and len(r["shape"]) == 1
            )
            if points:
                n, seconds, megabytes = zip(*points, strict=True)
                label = name if form == "ltr" else f"{name}, all pairs"
                axes[0].loglog(n, seconds, style, color=f"C{at}", label=label, markersize=4)
                axes[1].loglog(n, [max(m, 0.1) for m in megabytes], style, color=f"C{at}", markersize=4)
    axes[0].set(xlabel="items of the list", ylabel="seconds, value and gradient")
    axes[1].set(xlabel="items of the list", ylabel="peak memory, MB")
    for axis in axes:
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure, and write the table and the plot."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("runs/losses"), help="folder of the results")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="that torch may use")
    parser.add_argument("--docs", type=Path, metavar="PAGE", help="page to put the table into")
    parser.add_argument("--image", type=Path, metavar="PNG", help="a second place for the plot")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(json.load(sys.stdin))))
        return
    records = run(options.out, options.threads)
    text = f"{machine()}; torch {torch.__version__}, {options.threads} threads.\n\n{table(records)}"
    (options.out / "losses.md").write_text(text, encoding="utf-8")
    for path in filter(None, (options.out / "losses.png", options.image)):
        plot(records, path)
    if options.docs:
        insert(options.docs, "losses", text)
    print(text)


if __name__ == "__main__":
    main()
