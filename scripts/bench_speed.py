"""Measure losses, with their gradients, and metrics: seconds and memory beside plain torch and other libraries.

Plain torch is the shortest form that one would write: for losses a matrix of all pairs, or torch's own functions for
ListNet and the logistic loss; for NDCG, MRR and AUC one that is correct without ties. Labels are 0 and 1, or 0 to 4 for
"graded". Batches are tensors of lists of equal length. Other libraries are measured if they can be imported.

A *form* is a function of the name of what is measured, scores and labels that returns a call for the value, or None for
what it does not have. Imports, compilation, a first small call and the libraries' own data structures are not timed;
the best of several calls counts. All forms must agree on the value.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.losses import parse_loss
from ltr.metrics import Measure, parse_measure
from scripts._bench import Bench, Json, made_on, peak, pivot, table, value

Call = Callable[[], float]
Form = Callable[[str, Tensor, Tensor], Call | None]
Loss = Callable[[Tensor, Tensor], Tensor]
"""A loss of scores and labels."""

OURS, _PEER = "ltr", "plain torch"
_GRADED = ", graded"
_GRADED_LONG = (1_000, 100_000)  # items of one list whose labels are graded, half of them for losses
_SECONDS, _CALLS = 0.5, 200  # seconds for which a call is repeated, and largest number of calls


def timed(call: Call | None) -> Json:
    """Return the value, the best time and the additional memory of a form; empty for what it does not have."""
    if call is None:
        return {}
    before = peak()
    value = call()
    megabytes = peak() - before
    times: list[float] = []
    while len(times) < 3 or (sum(times) < _SECONDS and len(times) < _CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        if min(times) > _SECONDS:
            break
    return {"value": value, "seconds": min(times), "megabytes": megabytes}


def checked(records: list[Json], tolerance: Mapping[str, float]) -> list[Json]:
    """Return the records of what has a value of ours; SystemExit where another form's value differs from it."""
    ours = {(r["what"], *r["shape"]): r["value"] for r in records if r["form"] == OURS}
    kept = [r for r in records if "value" in r and (r["what"], *r["shape"]) in ours]
    for r in kept:
        expected = ours[r["what"], *r["shape"]]
        if abs(r["value"] - expected) > tolerance[r["dtype"]] * abs(expected):
            raise SystemExit(f"{r}: {r['value']!r}, but {expected!r} is our value")
    return kept


def seconds(own: list[Json]) -> str:
    """Return the time of our form."""
    value = {r["form"]: r["seconds"] for r in own}[OURS]
    unit, size = ("s", 1.0) if value >= 1.0 else ("ms", 1e-3) if value >= 1e-3 else ("µs", 1e-6)
    return f"{value / size:.3g} {unit}"


def ratio(own: list[Json], form: str) -> str:
    """Return how many times as long another form takes, ``-`` without it."""
    times = {r["form"]: r["seconds"] for r in own}
    if form not in times:
        return "-"
    found = times[form] / times[OURS]
    return f"{found:,.0f}x" if found >= 100 else f"{found:.3g}x"


def draw(records: list[Json], panels: Mapping[str, Sequence[str]], path: Path) -> None:
    """Draw time and memory of single lists over their length, a row for each panel's names; other forms are dotted."""
    import pandas as pd
    from matplotlib import pyplot as plt

    single = pd.DataFrame([r | {"items": r["shape"][0]} for r in records if "value" in r and len(r["shape"]) == 1])
    figure, rows = plt.subplots(
        len(panels), 2, squeeze=False, sharex=True, figsize=(9, 2.6 * len(panels) + 0.8), layout="constrained"
    )
    for both, (title, names) in zip(rows, panels.items(), strict=True):
        own = single[single["what"].isin(names)]
        for axes, measured, least in zip(both, ("seconds", "megabytes"), (0.0, 0.1), strict=True):
            curves = own.pivot_table(index="items", columns=["what", "form"], values=measured).clip(lower=least)
            look = {curve: "-o" if curve[1] == OURS else ":s" for curve in curves}
            curves.plot(
                ax=axes, loglog=True, style=look, markersize=3, title=f"{title}: {measured}", legend=axes is both[0]
            )
    figure.savefig(path)


# --- losses -------------------------------------------------------------------------------------------------------

_OF_ITEMS = ("logistic", "list_net")  # losses whose plain form needs no matrix
_DRAWN = ("ranknet", "hinge", "exponential", "list_net", "lambda(statistic=dcg@10)")
_GRADES = 5
_LONG = (100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000)  # positives of one list, and as many negatives
_LONGEST_OF_PAIRS = 5_000
_SHOWN: dict[str, list[int]] = {
    "64 lists of 20": [64, 20],
    "64 of 100": [64, 100],
    "64 of 1,000": [64, 1_000],
    "1 list of 2,000": [2_000],
    "1 of 200,000": [200_000],
    "1 of 2,000,000": [2_000_000],
}


def _list_mle(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of the order of the labels, of which several may be equal."""
    drawn_from = labels.unsqueeze(-1) >= labels.unsqueeze(-2)
    rest = scores.unsqueeze(-2).masked_fill(~drawn_from, -torch.inf).logsumexp(-1)
    counted = labels > labels.amin(-1, keepdim=True)
    return (((rest - scores) * counted).sum(-1) / counted.sum(-1).clamp(min=1)).mean()


def _smooth(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the shortfall of the DCG with smooth positions."""
    gains = torch.exp2(labels.to(scores.dtype)) - 1
    discounts = 1.0 / torch.log2(torch.arange(2, scores.shape[-1] + 3, dtype=scores.dtype))
    position = torch.sigmoid(scores.unsqueeze(-2) - scores.unsqueeze(-1)).sum(-1) - 0.5
    whole = position.detach().long()
    here, following = discounts[whole], discounts[whole + 1]
    value = (gains * (here + (position - whole) * (following - here))).sum(-1)
    return (1.0 - value / (gains.sort(-1, descending=True).values * discounts[:-1]).sum(-1)).mean()


def _lambda(scores: Tensor, labels: Tensor, k: int) -> Tensor:
    """Return the LambdaRank loss of the DCG of the first k, for scores without ties."""
    discounts = 1.0 / torch.log2(torch.arange(2, scores.shape[-1] + 2, dtype=scores.dtype))
    discounts[k:] = 0.0
    own = discounts[scores.argsort(-1, descending=True).argsort(-1)]
    gains = torch.exp2(labels.to(scores.dtype)) - 1
    ideal = (gains.sort(-1, descending=True).values * discounts).sum(-1)
    change = F.relu(gains.unsqueeze(-1) - gains.unsqueeze(-2)) * (own.unsqueeze(-1) - own.unsqueeze(-2)).abs()
    return ((change * F.softplus(scores.unsqueeze(-2) - scores.unsqueeze(-1))).sum((-2, -1)) / ideal).mean()


def _pairs(function: Callable[[Tensor], Tensor], scores: Tensor, labels: Tensor) -> Tensor:
    """Return the mean of a function over the score differences of all pairs."""
    comparable = labels.unsqueeze(-1) > labels.unsqueeze(-2)
    losses = function(scores.unsqueeze(-1) - scores.unsqueeze(-2)) * comparable
    return (losses.sum((-2, -1)) / comparable.sum((-2, -1)).clamp(min=1)).mean()


_PLAIN: dict[str, Loss] = {
    "ranknet": functools.partial(_pairs, lambda z: F.softplus(-z)),
    "hinge": functools.partial(_pairs, lambda z: F.relu(1 - z)),
    "exponential": functools.partial(_pairs, lambda z: torch.exp(-z)),
    "logistic": lambda s, y: F.binary_cross_entropy_with_logits(s, y.to(s.dtype)),
    "list_net": lambda s, y: F.cross_entropy(torch.atleast_2d(s), torch.atleast_2d(y.to(s.dtype).softmax(-1))),
    "list_mle": _list_mle,
    "lambda(statistic=dcg@10)": functools.partial(_lambda, k=10),
    "smooth(statistic=dcg)": _smooth,
}


def _form(loss_of: Callable[[str], Loss]) -> Form:
    """Return the form that computes value and gradient of a loss."""

    def form(what: str, scores: Tensor, labels: Tensor) -> Callable[[], float]:
        loss, variable = loss_of(what.removesuffix(_GRADED)), scores.requires_grad_()

        def call() -> float:
            value = loss(variable, labels)
            (gradient,) = torch.autograd.grad(value, variable)
            return float(value.detach()) + 0.0 * float(gradient.sum())

        return call

    return form


LOSS_FORMS = {OURS: _form(parse_loss), _PEER: _form(_PLAIN.__getitem__)}


def items_of_losses(what: str, shape: Sequence[int], dtype: str) -> tuple[Tensor, Tensor]:
    """Return scores, and labels 0 and 1 or 0 to 4, about as many of each in every list."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator, dtype=getattr(torch, dtype))
    order = torch.rand(shape, generator=generator).argsort(-1)
    labels = order % _GRADES if _GRADED in what else (order < shape[-1] // 2).long()
    return scores, labels


def measure_losses(what: str, shape: list[int], dtype: str, form: str, threads: int) -> Json:
    """Return the value, time and memory of one form."""
    for items in (20, 1_000):  # both forms of a kernel
        LOSS_FORMS[form](what, *items_of_losses(what, [2, items][-len(shape) :], dtype))()
    return timed(LOSS_FORMS[form](what, *items_of_losses(what, shape, dtype)))


def tables_of_losses(records: list[Json]) -> dict[str, str]:
    """Return the table of the page, and one of all lengths of single lists."""

    def cell(own: list[Json]) -> str:
        return f"{seconds(own)}, {ratio(own, _PEER)}".removesuffix(", -")

    kept = checked(records, {"float64": 1e-10, "float32": 1e-4})
    shown = [r for r in kept if _GRADED not in r["what"] and r["shape"] in _SHOWN.values()]
    single = {f"{2 * n:,}": {"shape": [2 * n]} for n in _LONG}
    return {
        "losses": table(shown, {"what": "loss"}, pivot(cell, {name: {"shape": of} for name, of in _SHOWN.items()})),
        "single lists": table(kept, {"what": "loss"}, pivot(cell, single)),
    }


_SHAPES = [*(([2 * n], "float64") for n in _LONG), *((shape, "float32") for shape in _SHOWN.values() if len(shape) > 1)]
_OF_LOSSES: list[Json] = [
    {"what": name + suffix, "shape": shape, "dtype": dtype, "form": form, "threads": 1}
    for name in _PLAIN
    for suffix, shapes in (("", _SHAPES), (_GRADED, [([2 * n], "float64") for n in _GRADED_LONG]))
    for shape, dtype in shapes
    for form in LOSS_FORMS
    if name + suffix != "logistic" + _GRADED
    and (shape[-1] <= 2 * _LONGEST_OF_PAIRS or form != _PEER or name in _OF_ITEMS)
]
_QUICK = {"what": ["ranknet"], "shape": ["[2000]", "[64, 20]"]}
LOSSES = Bench(
    "losses",
    "docs/losses.md",
    _OF_LOSSES,
    _QUICK,
    measure_losses,
    tables_of_losses,
    alone=True,
    figures=lambda records, folder: draw(records, {"value and gradient": _DRAWN}, folder / "losses.png"),
)


# --- metrics ------------------------------------------------------------------------------------------------------

_METRICS = ("ndcg", "mrr", "auc")
_LENGTHS = (100, 1_000, 10_000, 100_000, 1_000_000)
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


METRIC_FORMS: dict[str, Form] = {
    OURS: _ltr,
    "ltr, flat": _ltr_flat,
    _PEER: _plain,
    "torchmetrics": _torchmetrics,
    "scikit-learn": _scikit_learn,
    "ranx": _ranx,
}


def items_of_metrics(what: str, shape: Sequence[int], dtype: str) -> tuple[Tensor, Tensor]:
    """Return scores without ties, and labels above 0 for a third of the items."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    labels = torch.randint(0, 3, shape, generator=generator) // 2 * torch.randint(1, 5, shape, generator=generator)
    labels[..., :2] = torch.tensor([1, 0])
    return scores.to(getattr(torch, dtype)), labels if what.endswith(_GRADED) else (labels > 0).long()


def measure_metrics(what: str, shape: list[int], dtype: str, form: str, threads: int) -> Json:
    """Return the value, time and memory of one form."""
    name = what.removesuffix(_GRADED)
    if first := METRIC_FORMS[form](name, *items_of_metrics(what, [2, 30][-len(shape) :], dtype)):
        first()
    return timed(METRIC_FORMS[form](name, *items_of_metrics(what, shape, dtype)))


def tables_of_metrics(records: list[Json]) -> dict[str, str]:
    """Return our seconds and memory, and the others' time as a multiple of ours."""
    kept = checked(records, {"float64": 1e-4, "float32": 1e-4})  # some compute in single precision
    sized = [r | {"scores": " x ".join(f"{n:,}" for n in r["shape"])} for r in kept]
    others = {form: functools.partial(ratio, form=form) for form in [*METRIC_FORMS][1:]}
    ours = {"ltr": seconds, "MB": value("megabytes", "{:.0f}")}
    return {"metrics": f"{made_on(records)}\n\n{table(sized, {'what': '', 'scores': 'scores'}, ours | others)}\n"}


_OF_METRICS: list[Json] = [
    {"what": what, "shape": shape, "dtype": dtype, "form": form, "threads": 1}
    for what in (*_METRICS, *(metric + _GRADED for metric in _METRICS[:2]))
    for shape, dtype in (
        *(([n], "float64") for n in (_GRADED_LONG if what.endswith(_GRADED) else _LENGTHS)),
        *([([_LONGEST], "float64")] if what == "auc" else []),
        (_BATCH, "float32"),
    )
    for form in METRIC_FORMS
]
_QUICK = {"what": ["ndcg"], "shape": ["[1000]", "[8000, 40]"]}
METRICS = Bench(
    "metrics",
    "docs/metrics.md",
    _OF_METRICS,
    _QUICK,
    measure_metrics,
    tables_of_metrics,
    alone=True,
    figures=lambda records, folder: draw(records, {name: [name] for name in _METRICS}, folder / "metrics.png"),
)
