"""The table of losses that the tests walk, and the definitions of all losses, with their slopes, in long double."""

import functools
from dataclasses import dataclass, field

import numpy as np
import torch

from ltr import losses


@dataclass(frozen=True)
class Case:
    """One loss: its name, and options that the name has too."""

    name: str
    options: dict = field(default_factory=dict)

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


CASES = [
    Case("ranknet"),
    Case("hinge"),
    Case("squared_hinge"),
    Case("exponential"),
    Case("logistic"),
    Case("margin_mse"),
    Case("p_norm_push(p=1)", {"p": 1}),
    Case("p_norm_push(p=2)", {"p": 2}),
    Case("p_norm_push(p=3.5)", {"p": 3.5}),
    Case("p_norm_push(p=4,inner=logistic)", {"p": 4, "inner": "logistic"}),
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


# --- the definitions in long double, whose range is larger than that of float64 ------------------------------------


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-abs(x)))


def sigmoid(x):
    far = np.exp(-abs(x))
    return np.where(x > 0, 1, far) / (1 + far)


# each with its derivative
PAIR_FUNCTIONS = {
    "ranknet": (lambda z: softplus(-z), lambda z: -sigmoid(-z)),
    "hinge": (lambda z: np.maximum(1 - z, 0), lambda z: -(z < 1).astype(z.dtype)),
    "squared_hinge": (lambda z: np.maximum(1 - z, 0) ** 2, lambda z: -2 * np.maximum(1 - z, 0)),
    "exponential": (lambda z: np.exp(-z), lambda z: -np.exp(-z)),
    "margin_mse": (lambda z: z**2, lambda z: 2 * z),
}


def defined(name, scores, labels, weight=None):
    """The value of a list; its gradient, and the sizes of what that adds up; the sum that the value is a mean of."""
    weight = torch.ones(len(scores)) if weight is None else weight
    return _defined(name, *(tuple(torch.as_tensor(x, dtype=torch.float64).tolist()) for x in (scores, labels, weight)))


@functools.cache
def _defined(name, scores, labels, weight):
    loss = losses.parse_loss(name)
    s, y, w = (np.asarray(x, dtype=np.longdouble) for x in (scores, labels, weight))
    with np.errstate(all="ignore"):
        return globals()[f"_{type(loss).key}"](loss, s, y, w)


def _of_items(n, i, k, slope):
    """The slopes of items by those of the differences of pairs (i, k), and the sizes that are added up."""
    grad, size = np.zeros((2, n), dtype=slope.dtype)
    for at, sign in ((i, 1), (k, -1)):
        np.add.at(grad, at, sign * slope)
        np.add.at(size, at, abs(slope))
    return grad, size


def _of_pairs(loss, s, y, w):
    function, derivative = PAIR_FUNCTIONS[type(loss).key]
    i, k = np.nonzero(y[:, None] > y)
    share, z = w[i] * w[k], s[i] - s[k]
    if type(loss).key == "margin_mse":
        z -= y[i] - y[k]
    total = 1 if loss.pairs == "sum" else share.sum() or 1
    terms = share * function(z)
    return (terms / total).sum(), *_of_items(len(s), i, k, share * derivative(z) / total), terms.sum()


_ranknet = _hinge = _squared_hinge = _exponential = _margin_mse = _of_pairs


def _logistic(loss, s, y, w):
    sign, total = 2 * y - 1, (w.sum() if loss.pairs == "mean" else 1) or 1
    grad = -sign * w * sigmoid(-sign * s) / total
    return (w * softplus(-sign * s)).sum() / total, grad, abs(grad), (w * softplus(-sign * s)).sum()


def _p_norm_push(loss, s, y, w):
    function, derivative = PAIR_FUNCTIONS["exponential" if loss.inner == "exponential" else "ranknet"]
    above = (y[:, None] > y) * w[:, None]
    z = s[:, None] - s
    counted = above.sum(0) > 0
    terms = np.where(above > 0, above * function(z), 0)
    mean = loss.pairs == "mean"
    divisor = np.where(counted, above.sum(0), 1) if mean else np.ones_like(s)
    inner = terms.sum(0) / divisor
    total = ((w * counted).sum() if mean else 1) or 1
    pushes = np.where(counted, w * inner**loss.p, 0)
    slope = np.where(above > 0, above * derivative(z), 0) * (w * loss.p * inner ** (loss.p - 1) / divisor / total)
    slope = np.where(above > 0, slope, 0)
    return (pushes / total).sum(), slope.sum(1) - slope.sum(0), abs(slope).sum(1) + abs(slope).sum(0), pushes.sum()


def _list_net(loss, s, y, w):
    log_p, log_q = (
        x - x.max() - np.log((w * np.exp(x - x.max())).sum()) for x in (y / np.longdouble(loss.temperature), s)
    )
    p, q = w * np.exp(log_p), w * np.exp(log_q)
    value = -(np.where(p > 0, p * log_q, 0)).sum()
    return value, q - p, q + p, -log_q.min()


def _kl(loss, s, y, w):
    t = np.longdouble(loss.temperature)
    log_p, log_q = (x - x.max() - np.log((w * np.exp(x - x.max())).sum()) for x in (y / t, s / t))
    p, q = w * np.exp(log_p), w * np.exp(log_q)
    value = t * t * (np.where(p > 0, p * (log_p - log_q), 0)).sum()
    return value, t * (q - p), t * (q + p), -t * t * log_q.min()


def _softmax(loss, s, y, w):
    log_q = s - s.max() - np.log((w * np.exp(s - s.max())).sum())
    drawn, mass = w * np.exp(log_q), w * y
    total = mass.sum()
    if total == 0:
        return np.longdouble(0), np.zeros_like(s), np.zeros_like(s), np.longdouble(0)
    value = -(np.where(mass > 0, mass * log_q, 0)).sum()
    part = total if loss.pairs == "mean" else 1
    return value / part, (total * drawn - mass) / part, (total * drawn + mass) / part, value


def _list_mle(loss, s, y, w):
    counted = np.flatnonzero(y > y.min())
    total = 1 if loss.pairs == "sum" else w[counted].sum()
    value, grad, size = np.longdouble(0), np.zeros_like(s), np.zeros_like(s)
    for i in counted:
        rest = y <= y[i]
        largest = s[rest].max()
        drawn = w[rest] * np.exp(s[rest] - largest)
        value += w[i] * (largest - s[i] + np.log(drawn.sum()))
        grad[rest] += w[i] / total * drawn / drawn.sum()
        size[rest] += w[i] / total * drawn / drawn.sum()
        grad[i] -= w[i] / total
        size[i] += w[i] / total
    return value / total, grad, size, value


def _gains(loss, y):
    gains = 2**y - 1 if loss.gain == "exp2" else y
    weights = np.asarray(loss.statistic.weights(len(y))[::-1], dtype=np.longdouble)
    kind, cutoff = loss.statistic.kind, loss.statistic.cutoff
    gains = (y > 0).astype(gains.dtype) if kind.counts_hits else gains
    weights = weights / {"top": cutoff, "positives": max(1, (y > 0).sum())}.get(kind.share_of, 1)
    return gains, weights, (np.sort(gains)[::-1] * weights).sum()


def _lambda(loss, s, y, w):
    gains, weights, ideal = _gains(loss, y)
    order = np.lexsort((y, -s))
    own = np.empty_like(weights)
    own[order] = weights
    i, k = np.nonzero(y[:, None] > y)
    change = (gains[i] - gains[k]) * abs(own[i] - own[k])
    z, total = s[i] - s[k], 1 if loss.pairs == "sum" else ideal
    terms, slope = np.where(change > 0, change * softplus(-z), 0), -change * sigmoid(-z) / total
    return (terms / total).sum(), *_of_items(len(s), i, k, slope), terms.sum()


def _smooth(loss, s, y, w):
    gains, weights, ideal = _gains(loss, y)
    above = sigmoid((s - s[:, None]) / loss.temperature)
    np.fill_diagonal(above, 0)
    position = above.sum(1)
    whole = np.floor(position + 1e-12).astype(int)
    following = weights[np.minimum(whole + 1, len(y) - 1)]
    value = ideal - (gains * (weights[whole] + (position - whole) * (following - weights[whole]))).sum()
    return (value if loss.pairs == "sum" else value / ideal), None, None, value
