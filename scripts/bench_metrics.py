"""Measure NDCG, MRR and AUC: seconds and memory, against plain torch, torchmetrics, scikit-learn and ranx.

Plain torch is the shortest form that is correct without ties. Labels are 0 and 1, or 0 to 4 where a row says
"graded". Other libraries are measured if they can be imported; the time of their own data structures does not count.
See `_forms` for how it is measured.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from ltr.metrics import Measure, parse_measure
from scripts import _forms
from scripts._bench import Bench, Json, made_on, table, value
from scripts._forms import Form

Call = Callable[[], float]  # the mean value of the lists

_METRICS = ("ndcg", "mrr", "auc")
_GRADED = ", graded"
_LONG = (100, 1_000, 10_000, 100_000, 1_000_000)
_GRADED_LONG = (1_000, 100_000)
_LONGEST = 10_000_000  # of AUC
_BATCH = [8_000, 40]
_RANX_LONGEST = 100_000  # it keeps a name for every item


def _measure(metric: str) -> Measure:
    """Return our measure, with the gain that the other libraries take."""
    return parse_measure("ndcg(gain=linear)" if metric == "ndcg" else metric)


def _ltr(metric: str, scores: Tensor, labels: Tensor) -> Call:
    measure = _measure(metric)
    return lambda: float(measure(scores, labels).mean())


def _ltr_flat(metric: str, scores: Tensor, labels: Tensor) -> Call | None:
    if scores.ndim == 1:
        return None
    measure, qid = _measure(metric), torch.arange(len(scores)).repeat_interleave(scores.shape[1])
    flat = scores.reshape(-1), labels.reshape(-1)
    return lambda: float(measure(*flat, qid=qid).mean())


def _plain(metric: str, scores: Tensor, labels: Tensor) -> Call:
    """Return a call that computes the metric from the labels in the order of the scores."""

    def value() -> float:
        ordered = labels.gather(-1, scores.argsort(-1, descending=True))
        if metric == "mrr":
            return float((1.0 / ((ordered > 0).byte().argmax(-1) + 1)).mean())
        if metric == "auc":  # for each negative, the positives above it
            below, positives = 1 - ordered, ordered.sum(-1)
            return float(((ordered.cumsum(-1) * below).sum(-1) / (positives * below.sum(-1))).mean())
        discounts = 1.0 / torch.log2(torch.arange(2, labels.shape[-1] + 2, dtype=torch.float64))
        ideal = (labels.sort(-1, descending=True).values * discounts).sum(-1)
        return float(((ordered * discounts).sum(-1) / ideal).mean())

    return value


def _torchmetrics(metric: str, scores: Tensor, labels: Tensor) -> Call | None:
    from torchmetrics import retrieval
    from torchmetrics.functional import classification

    if metric == "auc":
        rows, targets = torch.atleast_2d(scores), torch.atleast_2d(labels)
        auroc = classification.binary_auroc
        # it expects probabilities and puts other scores through a sigmoid
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
    # it divides by the value of the ideal order and takes relevant items only
    qrels = Qrels({f"q{q}": {f"d{i}": y for i, y in enumerate(row) if y} for q, row in enumerate(targets)})
    run = Run({f"q{q}": {f"d{i}": s for i, s in enumerate(row)} for q, row in enumerate(rows)})
    return lambda: float(evaluate(qrels, run, metric))


FORMS: dict[str, Form] = {
    _forms.OURS: _ltr,
    "ltr, flat": _ltr_flat,
    "plain torch": _plain,
    "torchmetrics": _torchmetrics,
    "scikit-learn": _scikit_learn,
    "ranx": _ranx,
}


def data(what: str, shape: Sequence[int], dtype: str) -> tuple[Tensor, Tensor]:
    """Return scores without ties, and labels above 0 for a third of the items."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, shape, generator=generator) // 2 * torch.randint(1, 5, shape, generator=generator)
    labels[..., :2] = torch.tensor([1, 0])
    return scores.to(getattr(torch, dtype)), labels if what.endswith(_GRADED) else (labels > 0).long()


def measure(what: str, shape: list[int], dtype: str, form: str, threads: int) -> Json:
    """Return the value, time and memory of one form."""

    def prepared(what: str, scores: Tensor, labels: Tensor) -> Call | None:
        return FORMS[form](what.removesuffix(_GRADED), scores, labels)

    return _forms.timed(prepared, data, what, shape, dtype, first=(30,))


def tables(records: list[Json]) -> dict[str, str]:
    """Return our seconds and memory, and the others' time as a multiple of ours."""
    kept = _forms.checked(records, {"float64": 1e-4, "float32": 1e-4})  # some compute in single precision
    sized = [r | {"scores": " x ".join(f"{n:,}" for n in r["shape"])} for r in kept]
    others = {form: functools.partial(_forms.ratio, form=form) for form in [*FORMS][1:]}
    ours = {"ltr": _forms.seconds, "MB": value("megabytes", "{:.0f}")}
    return {"metrics": f"{made_on(records)}\n\n{table(sized, {'what': '', 'scores': 'scores'}, ours | others)}\n"}


def figures(records: list[Json], folder: Path) -> None:
    """Draw time and memory over the length of a list."""
    _forms.draw(records, {name: [name] for name in _METRICS}, folder / "metrics.png")


_REQUESTS: list[Json] = [
    {"what": what, "shape": shape, "dtype": dtype, "form": form, "threads": 1}
    for what in (*_METRICS, *(metric + _GRADED for metric in _METRICS[:2]))
    for shape, dtype in (
        *(([n], "float64") for n in (_GRADED_LONG if what.endswith(_GRADED) else _LONG)),
        *([([_LONGEST], "float64")] if what == "auc" else []),
        (_BATCH, "float32"),
    )
    for form in FORMS
]
_QUICK = {"what": ["ndcg"], "shape": ["[1000]", "[8000, 40]"]}
BENCH = Bench("metrics", "docs/metrics.md", _REQUESTS, _QUICK, measure, tables, alone=True, figures=figures)
