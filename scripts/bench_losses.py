"""Measure losses: seconds for value and gradient, and memory, against plain torch (see `_forms` for how).

Plain torch is the shortest form that one would write: a matrix of all pairs, or torch's own functions for ListNet and
the logistic loss. Labels are 0 and 1, or 0 to 4 for "graded". Batches are tensors of lists of equal length.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.losses import parse_loss
from scripts import _forms
from scripts._bench import Bench, Json, pivot, table
from scripts._forms import Form

_OF_ITEMS = ("logistic", "list_net")  # losses whose plain form needs no matrix
_DRAWN = ("ranknet", "hinge", "exponential", "list_net", "lambda(statistic=dcg@10)")
_GRADED, _GRADES = ", graded", 5
_GRADED_LONG = (1_000, 100_000)  # half of the items of one list whose labels are graded
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

Loss = Callable[[Tensor, Tensor], Tensor]
"""A loss of scores and labels."""


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


_PEER = "plain torch"
FORMS = {_forms.OURS: _form(parse_loss), _PEER: _form(_PLAIN.__getitem__)}


def data(what: str, shape: Sequence[int], dtype: str) -> tuple[Tensor, Tensor]:
    """Return scores, and labels 0 and 1 or 0 to 4, about as many of each in every list."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator, dtype=getattr(torch, dtype))
    order = torch.rand(shape, generator=generator).argsort(-1)
    labels = order % _GRADES if _GRADED in what else (order < shape[-1] // 2).long()
    return scores, labels


def measure(what: str, shape: list[int], dtype: str, form: str, threads: int) -> Json:
    """Return the value, time and memory of one form."""
    return _forms.timed(FORMS[form], data, what, shape, dtype, first=(20, 1_000))  # both forms of a kernel


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of the page, and one of all lengths of single lists."""

    def cell(own: list[Json]) -> str:
        return f"{_forms.seconds(own)}, {_forms.ratio(own, _PEER)}".removesuffix(", -")

    kept = _forms.checked(records, {"float64": 1e-10, "float32": 1e-4})
    shown = [r for r in kept if _GRADED not in r["what"] and r["shape"] in _SHOWN.values()]
    single = {f"{2 * n:,}": {"shape": [2 * n]} for n in _LONG}
    return {
        "losses": table(shown, {"what": "loss"}, pivot(cell, {name: {"shape": of} for name, of in _SHOWN.items()})),
        "single lists": table(kept, {"what": "loss"}, pivot(cell, single)),
    }


def figures(records: list[Json], folder: Path) -> None:
    """Draw time and memory over the length of a list."""
    _forms.draw(records, {"value and gradient": _DRAWN}, folder / "losses.png")


_SHAPES = [*(([2 * n], "float64") for n in _LONG), *((shape, "float32") for shape in _SHOWN.values() if len(shape) > 1)]
_REQUESTS: list[Json] = [
    {"what": name + suffix, "shape": shape, "dtype": dtype, "form": form, "threads": 1}
    for name in _PLAIN
    for suffix, shapes in (("", _SHAPES), (_GRADED, [([2 * n], "float64") for n in _GRADED_LONG]))
    for shape, dtype in shapes
    for form in FORMS
    if name + suffix != "logistic" + _GRADED
    and (shape[-1] <= 2 * _LONGEST_OF_PAIRS or form != _PEER or name in _OF_ITEMS)
]
_QUICK = {"what": ["ranknet"], "shape": ["[2000]", "[64, 20]"]}
BENCH = Bench("losses", "docs/losses.md", _REQUESTS, _QUICK, measure, tables, alone=True, figures=figures)
