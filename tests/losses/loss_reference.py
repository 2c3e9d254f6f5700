"""The losses as loops over their formulas, in plain Python floats, and the table of losses that the tests walk."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from ltr import losses

PAIR_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "ranknet": lambda z: max(0.0, -z) + math.log1p(math.exp(-abs(z))),
    "hinge": lambda z: max(0.0, 1 - z),
    "squared_hinge": lambda z: max(0.0, 1 - z) ** 2,
    "exponential": lambda z: math.exp(-z),
}
INNER = {"exponential": PAIR_FUNCTIONS["exponential"], "logistic": PAIR_FUNCTIONS["ranknet"]}


@dataclass(frozen=True)
class Case:
    """One loss: its name, its functional twin with the same options, and its reference on one list."""

    name: str
    function: Callable
    options: dict
    reference: Callable[..., float]

    def module(self, **options):
        loss = losses.parse_loss(self.name)
        return type(loss)(**{**self.options, **options})

    @property
    def pairwise(self) -> bool:
        return self.name != "logistic"

    @property
    def smooth(self) -> bool:
        return "hinge" not in self.name

    def __str__(self) -> str:
        return self.name


def pairs_of(labels, weight):
    """All (i, k) with labels_i > labels_k, and what the pair weighs."""
    for i, k in itertools.permutations(range(len(labels)), 2):
        if labels[i] > labels[k] and weight[i] * weight[k] > 0:
            yield i, k, weight[i] * weight[k]


def mean_or_sum(terms, pairs):
    """The weighted mean or sum of (value, weight) terms; 0 without terms."""
    terms = list(terms)
    total = math.fsum(value * weight for value, weight in terms)
    if pairs == "sum" or not terms:
        return total
    return total / math.fsum(weight for _, weight in terms)


def pairwise(name):
    def value(scores, labels, weight, pairs):
        pair_function = PAIR_FUNCTIONS[name]
        return mean_or_sum(
            ((pair_function(scores[i] - scores[k]), w) for i, k, w in pairs_of(labels, weight)),
            pairs,
        )

    return value


def margin_mse(scores, labels, weight, pairs):
    """The labels are a teacher's scores."""
    errors = [s - y for s, y in zip(scores, labels, strict=True)]
    return mean_or_sum((((errors[i] - errors[k]) ** 2, w) for i, k, w in pairs_of(labels, weight)), pairs)


def logistic(scores, labels, weight, pairs):
    loss = PAIR_FUNCTIONS["ranknet"]
    items = zip(scores, labels, weight, strict=True)
    return mean_or_sum(((loss(s if y == 1 else -s), w) for s, y, w in items if w > 0), pairs)


def p_norm_push(p, inner):
    def value(scores, labels, weight, pairs):
        items = range(len(labels))
        pushes = []
        for k in items:
            above = [i for i in items if labels[i] > labels[k] and weight[i] > 0]
            if above and weight[k] > 0:
                push = mean_or_sum(((INNER[inner](scores[i] - scores[k]), weight[i]) for i in above), pairs)
                pushes.append((push**p, weight[k]))
        return mean_or_sum(pushes, pairs)

    return value


CASES = [
    Case("ranknet", losses.ranknet_loss, {}, pairwise("ranknet")),
    Case("hinge", losses.pairwise_hinge_loss, {}, pairwise("hinge")),
    Case("squared_hinge", losses.pairwise_squared_hinge_loss, {}, pairwise("squared_hinge")),
    Case("exponential", losses.pairwise_exponential_loss, {}, pairwise("exponential")),
    Case("logistic", losses.logistic_loss, {}, logistic),
    Case("margin_mse", losses.margin_mse_loss, {}, margin_mse),
    *(
        Case(name, losses.p_norm_push_loss, {"p": p, "inner": inner}, p_norm_push(p, inner))
        for name, p, inner in (
            ("p_norm_push(p=1)", 1, "exponential"),
            ("p_norm_push(p=2)", 2, "exponential"),
            ("p_norm_push(p=3.5)", 3.5, "exponential"),
            ("p_norm_push(p=4,inner=logistic)", 4, "logistic"),
        )
    ),
]
PAIRWISE_CASES = [case for case in CASES if case.pairwise]

ALL_PAIRS = {"short": 10**9, "few": 10**18}
NO_PAIRS = {"short": 0, "few": 0, "few_on_gpu": 0}


def set_form(monkeypatch, form):
    """Look at all pairs of lists of any length, or at none."""
    for name, value in form.items():
        monkeypatch.setattr(losses.RankingLoss, name, value)


def value_and_grad(loss, scores, *args, **kwargs):
    """The values of lists, and the gradient of their sum in the scores."""
    scores = scores.clone().requires_grad_()
    values = loss(scores, *args, **kwargs)
    (grad,) = torch.autograd.grad(values.sum(), scores)
    return values.detach(), grad
