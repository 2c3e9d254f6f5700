"""Measure losses: seconds for value and gradient, and memory, against plain torch.

Plain torch is the shortest form that one would write: a matrix of all pairs, or torch's own functions for ListNet and
the logistic loss. Labels are 0 and 1, or 0 to 4 where a row says "graded". Batches are tensors of lists of equal
length. See `_forms` for how it is measured; a plot is written beside the records.

    python -m scripts.bench_losses
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.losses import parse_loss
from scripts._bench import Bench, Json
from scripts._forms import Form, Forms

_NAMES = (
    "exponential",
    "p_norm_push(p=2)",
    "p_norm_push(p=2,inner=logistic)",
    "hinge",
    "squared_hinge",
    "ranknet",
    "logistic",
    "list_net",
    "list_mle",
    "lambda(statistic=dcg)",
    "lambda(statistic=dcg@10)",
    "smooth(statistic=dcg)",
)
_DRAWN = ("exponential", "hinge", "ranknet", "list_net", "lambda(statistic=dcg@10)")
_OF_MATRICES = ("lambda(statistic=dcg)",)  # losses that compute all pairs, whatever the length of the list
_OF_ITEMS = ("logistic", "list_net")  # losses whose plain form needs no matrix
_GRADED, _GRADES = ", graded", 5
_GRADED_LONG = (1_000, 100_000)  # half of the items of one list whose labels are graded
_LONG = (100, 300, 1_000, 3_000, 10_000, 100_000, 1_000_000)  # positives of one list, and as many negatives
_LONGEST_OF_PAIRS = 5_000
_BATCHES = ((64, 20), (64, 100), (512, 100), (64, 1_000))  # lists and their length

Loss = Callable[[Tensor, Tensor], Tensor]
"""A loss of scores and labels."""


def _plain(name: str) -> Loss:
    """Return the code that one would write in torch: for pairs, the mean over a matrix of all of them."""
    functions: dict[str, Loss] = {
        "list_net": lambda s, y: F.cross_entropy(torch.atleast_2d(s), torch.atleast_2d(y.to(s.dtype).softmax(-1))),
        "logistic": lambda s, y: F.binary_cross_entropy_with_logits(s, y.to(s.dtype)),
        "list_mle": _plain_list_mle,
        "smooth(statistic=dcg)": _plain_smooth,
        "lambda(statistic=dcg)": _plain_lambda,
        "lambda(statistic=dcg@10)": functools.partial(_plain_lambda, k=10),
    }
    return functions.get(name) or _plain_pairs(name)


def _plain_list_mle(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the loss of the order of the labels, of which several may be equal."""
    drawn_from = labels.unsqueeze(-1) >= labels.unsqueeze(-2)
    rest = scores.unsqueeze(-2).masked_fill(~drawn_from, -torch.inf).logsumexp(-1)
    counted = labels > labels.amin(-1, keepdim=True)
    return (((rest - scores) * counted).sum(-1) / counted.sum(-1).clamp(min=1)).mean()


def _plain_smooth(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the shortfall of the DCG with smooth positions."""
    gains = torch.exp2(labels.to(scores.dtype)) - 1
    discounts = 1.0 / torch.log2(torch.arange(2, scores.shape[-1] + 3, dtype=scores.dtype))
    position = torch.sigmoid(scores.unsqueeze(-2) - scores.unsqueeze(-1)).sum(-1) - 0.5
    whole = position.detach().long()
    here, following = discounts[whole], discounts[whole + 1]
    value = (gains * (here + (position - whole) * (following - here))).sum(-1)
    return (1.0 - value / (gains.sort(-1, descending=True).values * discounts[:-1]).sum(-1)).mean()


def _plain_lambda(scores: Tensor, labels: Tensor, k: int | None = None) -> Tensor:
    """Return the LambdaRank loss of the DCG, for scores without ties."""
    discounts = 1.0 / torch.log2(torch.arange(2, scores.shape[-1] + 2, dtype=scores.dtype))
    discounts[k:] *= 0.0 if k is not None else 1.0
    own = discounts[scores.argsort(-1, descending=True).argsort(-1)]
    gains = torch.exp2(labels.to(scores.dtype)) - 1
    ideal = (gains.sort(-1, descending=True).values * discounts).sum(-1)
    change = F.relu(gains.unsqueeze(-1) - gains.unsqueeze(-2)) * (own.unsqueeze(-1) - own.unsqueeze(-2)).abs()
    return ((change * F.softplus(scores.unsqueeze(-2) - scores.unsqueeze(-1))).sum((-2, -1)) / ideal).mean()


def _plain_pairs(name: str) -> Loss:
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "exponential": lambda z: torch.exp(-z),
        "p_norm_push(p=2)": lambda z: torch.exp(-z),
        "p_norm_push(p=2,inner=logistic)": lambda z: F.softplus(-z),
        "hinge": lambda z: F.relu(1 - z),
        "squared_hinge": lambda z: F.relu(1 - z).square(),
        "ranknet": lambda z: F.softplus(-z),
    }

    def value(scores: Tensor, labels: Tensor) -> Tensor:
        comparable = labels.unsqueeze(-1) > labels.unsqueeze(-2)
        losses = functions[name](scores.unsqueeze(-1) - scores.unsqueeze(-2)) * comparable
        if name.startswith("p_norm_push"):
            counted = comparable.any(-2)
            inner = losses.sum(-2) / comparable.sum(-2).clamp(min=1)
            return ((inner.square() * counted).sum(-1) / counted.sum(-1).clamp(min=1)).mean()
        return (losses.sum((-2, -1)) / comparable.sum((-2, -1)).clamp(min=1)).mean()

    return value


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


_FORMS = {"ltr": _form(parse_loss), "plain torch": _form(_plain)}


def _data(what: str, shape: Sequence[int], dtype: str) -> tuple[Tensor, Tensor]:
    """Return scores, and labels 0 and 1 or 0 to 4, about as many of each in every list."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator, dtype=getattr(torch, dtype))
    order = torch.rand(shape, generator=generator).argsort(-1)
    labels = order % _GRADES if _GRADED in what else (order < shape[-1] // 2).long()
    return scores, labels


def _has_matrix(name: str, form: str) -> bool:
    return name in _OF_MATRICES or (form != "ltr" and name not in _OF_ITEMS)


FORMS = Forms(
    "losses",
    _FORMS,
    data=_data,
    plot={
        "value and gradient": [  # the plain form dotted in the colour of the loss
            (form, name, name if form == "ltr" else f"{name}, {form}", style, f"C{at}")
            for at, name in enumerate(_DRAWN)
            for form, style in (("ltr", "-o"), ("plain torch", ":s"))
        ]
    },
    tolerance={"float64": 1e-10, "float32": 1e-4},
    first=(20, 1_000),  # both forms of a kernel
)
_REQUESTS: list[Json] = [
    {"what": what, "shape": list(shape), "dtype": dtype, "form": form, "threads": 1}
    for name in _NAMES
    for what, lengths in ((name, _LONG), (name + _GRADED, _GRADED_LONG))
    for shape, dtype in (*(((2 * n,), "float64") for n in lengths), *((shape, "float32") for shape in _BATCHES))
    for form in _FORMS
    if what != "logistic" + _GRADED and (shape[-1] <= 2 * _LONGEST_OF_PAIRS or not _has_matrix(name, form))
]


def measure(**request: Any) -> Json:  # noqa: ANN401
    """Return the record of a request; processes find this function by its name."""
    return FORMS.measure(**request)


BENCH = Bench("losses", __doc__, "docs/losses.md", _REQUESTS, measure, FORMS.tables, alone=True, figures=FORMS.draw)

if __name__ == "__main__":
    sys.exit(BENCH.main())
