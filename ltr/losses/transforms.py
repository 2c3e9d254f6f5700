r"""Sums over all pairs in near-linear time in the length of the lists, to machine precision, differentiable.

For the items of a list, some of them *upper* and some *lower*, and a function f of score differences, there are two
transforms of charges q:

    down:  out_i = sum over lower k of  q_k f(s_i - s_k)   for upper i,
    up:    out_k = sum over upper i of  q_i f(s_i - s_k)   for lower k.

The derivatives of each are transforms again, with f' for f, so that automatic differentiation works to any order for
which f has derivatives. With u and l the weights of the items, ``sum over i of u_i down(l)_i`` is the sum over pairs.

**Powers of the hinge.** f(z) = max(0, 1 - z)^p is a polynomial where it is not 0. With all ``s_i - 1`` of upper items
and s_k of lower ones sorted together, the pairs of an upper item that count are those with lower items after it, so
``sum q_k``, ``sum q_k s_k`` and ``sum q_k s_k^2`` over all that follow give every out_i, and sums over all before it
every out_k: O(n log n). For scores with a range of r, the rounding error is about r^p units in the last place of 1.

**Smooth functions.** Scores are put into bins of width 1. Within a bin a smooth function is its interpolant in
`_NODES` Chebyshev polynomials. So a bin is summed up by its charges times Chebyshev polynomials of the place in the
bin, two bins interact by a small matrix that depends on their distance alone, and every item evaluates the polynomial
of its own bin: O(n) apart from finding the bins. The poles of the logistic function, at ±iπ, are far enough that the
error is about (4π)^-`_NODES` of f. For bins more than `_REACH` apart, f is replaced by its limit, a line or 0, up to
exp(-`_REACH`) < 1e-16. Only bins that contain items exist, however far apart they are.

Sources: Joachims, *A support vector method for multivariate performance measures* (2005), for the sorted hinge; Dutt,
Gu & Rokhlin, *Fast algorithms for polynomial interpolation, integration, and differentiation* (1996), for the bins.
"""

from __future__ import annotations

import abc
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ltr.native import add_moments, interpolate

_NODES = 14
_REACH = 38
_CHUNK = 1 << 16  # items whose polynomials are in memory at a time
_HUGE = 256  # scores of 2^_HUGE and more are divided before their powers are added up
_ROUNDING = 2.0**-40  # more than the relative error of a few additions
_LARGEST_SLOPE = 2.0**960  # larger slopes are cut to this, so that the slopes of all pairs have a finite sum
COMPILED_FOR = ("cpu",)  # devices for which sums over items are compiled


@dataclass(frozen=True, eq=False)
class TwoClasses:
    """Lists whose pairs are those of an upper and a lower item."""

    scores: Tensor  # (lists, items), float64
    upper: Tensor  # weight of each upper item, 0 elsewhere, (lists, items)
    lower: Tensor  # weight of each lower item, 0 elsewhere, (lists, items)


class Plan(abc.ABC):
    """The work that all transforms of one function at the same scores share, without gradients."""

    @abc.abstractmethod
    def apply(self, charges: Tensor, order: int, up: bool) -> Tensor:
        """Return the transform of charges with the derivative of f of this order; the result has no gradient."""


Prepare = Callable[[TwoClasses], Plan]
"""A function that prepares sums of f: the method `plan` of its `ltr.losses.functions.PairFunction`."""
Derivative = Callable[[Tensor, int], Tensor]
"""The derivative of a function at score differences, by its order; order 0 is the function itself."""


def pair_sums(prepare: Prepare, two: TwoClasses) -> Tensor:
    """Return ``sum over upper i, lower k of upper_i lower_k f(s_i - s_k)`` of each list, (lists,)."""
    return (two.upper * transform(prepare, two, two.lower)).sum(-1)


def transform(prepare: Prepare, two: TwoClasses, charges: Tensor, *, order: int = 0, up: bool = False) -> Tensor:
    """Return one of the two transforms of charges, differentiable in scores and charges, (lists, items).

    Items of the class that is summed over get 0. The derivative of this `order` takes the place of the function. With
    binned sums an item may be both upper and lower.
    """
    plan = prepare(TwoClasses(two.scores.detach(), two.upper, two.lower))
    return _transform(two.scores, charges, plan, order, up)


def _transform(scores: Tensor, charges: Tensor, plan: Plan, order: int, up: bool) -> Tensor:
    result: Tensor = _Transform.apply(scores, charges, plan, order, up)
    return result


class _Transform(torch.autograd.Function):
    @staticmethod
    def forward(scores: Tensor, charges: Tensor, plan: Plan, order: int, up: bool) -> Tensor:
        return plan.apply(charges, order, up)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Plan, int, bool], output: Tensor) -> None:  # noqa: ANN401
        scores, charges, *ctx.what = inputs
        ctx.save_for_backward(scores, charges)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        scores, charges = ctx.saved_tensors
        plan, order, up = ctx.what
        to_scores, to_charges = None, None
        if ctx.needs_input_grad[0]:
            # a source and a target enter through their difference, with opposite signs
            own = grad * _transform(scores, charges, plan, order + 1, up)
            other = charges * _transform(scores, grad, plan, order + 1, not up)
            to_scores = other - own if up else own - other
        if ctx.needs_input_grad[1]:
            to_charges = _transform(scores, grad, plan, order, not up)
        return to_scores, to_charges, None, None, None


def _within_reach(two: TwoClasses, reach: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores for sums of a function that is 0 from differences of about `reach` on, (lists, items).

    Outliers without a loss are moved closer, and items of neither class take the score of another. Also return the
    score of smallest size, from which to measure the others, and a power of 2 by which to divide scores so that no sum
    leaves the floating point range, 1 for all but huge scores, both (lists, 1).
    """
    if not two.scores.shape[-1]:
        nothing = two.scores.sum(-1, keepdim=True)
        return two.scores, nothing, nothing + 1.0
    upper, lower = two.upper > 0, two.lower > 0
    lowest = two.scores.masked_fill(~upper, math.inf).amin(-1, keepdim=True)
    highest = two.scores.masked_fill(~lower, -math.inf).amax(-1, keepdim=True)
    # by more than the rounding of large scores, too
    low = (lowest - reach - lowest.abs() * _ROUNDING).masked_fill(lowest == math.inf, -math.inf).minimum(highest)
    high = (highest + reach + highest.abs() * _ROUNDING).masked_fill(highest == -math.inf, math.inf)
    scores = torch.where(upper, torch.minimum(two.scores, high), torch.maximum(two.scores, low))
    size = scores.abs().masked_fill(~(upper | lower), math.inf)
    smallest = scores.gather(-1, size.argmin(-1, keepdim=True))
    scores = torch.where(upper | lower, scores, smallest)
    exponent = torch.frexp((0.5 * scores - 0.5 * smallest).abs().amax(-1, keepdim=True)).exponent
    unit = torch.ldexp(torch.ones_like(smallest), torch.where(exponent > _HUGE, exponent - 1, 0))
    return scores, smallest, unit


# --- powers of the hinge -----------------------------------------------------------------------------------------


class SortedPlan(Plan):
    """Sums of ``max(0, 1 - z)^power`` by sorting the keys; items of weight 0 go anywhere."""

    def __init__(self, power: int, two: TwoClasses) -> None:
        upper, lower = two.upper > 0, two.lower > 0
        scores, smallest, unit = _within_reach(two, 2.0)
        scores = scores / unit - smallest / unit
        shifted = scores - 1.0 / unit
        # an upper item whose score is so large that 1 is lost beside it comes before a lower one of the same score
        shifted = torch.where(shifted == scores, shifted.nextafter(shifted.new_tensor(-math.inf)), shifted)
        order = torch.where(upper, shifted, scores).argsort(dim=-1)
        self.power, self.order, self.unit = power, order, unit
        self.scores, self.upper, self.lower = (x.gather(-1, order) for x in (scores, upper, lower))

    def apply(self, charges: Tensor, order: int, up: bool) -> Tensor:
        """Return sums of charges times powers of scores, from the end for `down` and from the start for `up`."""
        power = self.power - order
        if power < 0:
            return torch.zeros_like(charges)
        sources, targets = (self.upper, self.lower) if up else (self.lower, self.upper)
        q = charges.gather(-1, self.order).masked_fill(~sources, 0.0)
        # 1 - s_i + s_k = x + y with x of the source: the binomial theorem
        one = 1.0 / self.unit
        x, y = (one - self.scores, self.scores) if up else (self.scores + one, -self.scores)
        out = torch.zeros_like(q)
        for m in range(power + 1):
            out = out + math.comb(power, m) * _running(q * x**m, backwards=not up) * y ** (power - m)
        factor = math.prod(taken - self.power for taken in range(order))
        out = (factor * out).masked_fill(~targets, 0.0)
        for _ in range(power):
            out = out * self.unit
        if order:
            out = out.clamp(-_LARGEST_SLOPE, _LARGEST_SLOPE)
        return torch.zeros_like(out).scatter(-1, self.order, out)


def _running(values: Tensor, *, backwards: bool) -> Tensor:
    return values.flip(-1).cumsum(-1).flip(-1) if backwards else values.cumsum(-1)


# --- smooth functions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Items:
    index: Tensor  # in the flattened lists, (n,)
    bin: Tensor  # of each item, (n,)
    place: Tensor  # in its bin, -1 to 1, (n,)


class BinnedPlan(Plan):
    """Sums of a smooth function, given by its derivatives, by putting the items into bins.

    The function must tend to ``-z`` on the left and to 0 on the right as fast as ``log(1 + exp(-z))`` does, and have no
    singularity nearer to the real line than ±iπ.
    """

    def __init__(self, derivative: Derivative, two: TwoClasses) -> None:
        upper, lower = ((weight > 0).reshape(-1).nonzero().squeeze(-1) for weight in (two.upper, two.lower))
        items = torch.cat([upper, lower])
        near, smallest, unit = _within_reach(two, 2.0 * _REACH)
        scores = near.reshape(-1)[items]
        floor = scores.floor()
        row, value, bin_of = _occupied(items // max(two.scores.shape[-1], 1), floor)
        bins = torch.arange(len(row), device=row.device)
        new_row = torch.ones_like(row, dtype=torch.bool)
        new_row[1:] = row[1:] != row[:-1]
        step = torch.full_like(value, _REACH + 1.0)
        step[1:] = torch.where(new_row[1:], step[1:], (value[1:] - value[:-1]).clamp(max=_REACH + 1.0))
        first = torch.where(new_row, bins, 0).cummax(0).values if len(row) else bins
        place = 2.0 * (scores - floor) - 1.0
        self.derivative, self.shape = derivative, two.scores.shape
        self.upper = _Items(upper, bin_of[: len(upper)], place[: len(upper)])
        self.lower = _Items(lower, bin_of[len(upper) :], place[len(upper) :])
        # of each bin, (bins,): keys ascend, and two of one list are as far apart as their keys, up to _REACH; the list,
        # the number among its bins, the unit of its scores, and the centre, from its smallest score in units
        self.key = step.cumsum(0).long()
        self.row, self.column, self.unit = row, bins - first, unit[row, 0]
        self.centre = value / self.unit - (smallest / unit)[row, 0]
        self.span = int((self.key - self.key[first]).max()) if len(row) else 0  # largest difference of two in a list

    def apply(self, charges: Tensor, order: int, up: bool) -> Tensor:
        """Add up the moments of bins and their effects on bins within reach and beyond; evaluate these at the items."""
        sources, targets = (self.upper, self.lower) if up else (self.lower, self.upper)
        flat = charges.reshape(-1)
        moments = _moments(sources, flat[sources.index], len(self.key))
        effect = _near(self, moments, order, up) + _far(self, moments, order, up)
        return torch.zeros_like(flat).index_put((targets.index,), _interpolated(targets, effect)).reshape(self.shape)


def _occupied(row: Tensor, floor: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return list and floor of every bin that contains an item, sorted by list and floor, and the bin of each item."""
    if len(row) == 0:
        return row, floor, row
    lists, lowest = int(row.max()) + 1, float(floor.min())
    width = float(floor.max()) - lowest + 1.0
    if lists * width <= 4 * len(row) + 4096:
        code = row * int(width) + (floor - lowest).long()
        codes = torch.bincount(code).nonzero().squeeze(-1)
        number = torch.zeros(int(codes[-1]) + 1, dtype=torch.int64, device=row.device)
        number[codes] = torch.arange(len(codes), device=row.device)
        return codes // int(width), lowest + (codes % int(width)).to(floor.dtype), number[code]
    values, rank = torch.unique(floor, return_inverse=True)
    codes, bin_of = torch.unique(row * len(values) + rank, return_inverse=True)
    return codes // len(values), values[codes % len(values)], bin_of


def _moments(items: _Items, q: Tensor, bins: int) -> Tensor:
    """Return the sum of q times each Chebyshev polynomial over the items of each bin, (bins, _NODES)."""
    total = q.new_zeros(bins, _NODES)
    if q.device.type in COMPILED_FOR:
        add_moments(q.numpy(), items.bin.numpy(), items.place.numpy(), total.numpy())
        return total
    for begin in range(0, len(q), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        total.index_add_(0, items.bin[part], q[part, None] * _polynomials(items.place[part]))
    return total


def _interpolated(items: _Items, coefficients: Tensor) -> Tensor:
    """Evaluate the polynomial of each bin at its items."""
    out = torch.empty_like(items.place)
    if out.device.type in COMPILED_FOR:
        interpolate(coefficients.numpy(), items.bin.numpy(), items.place.numpy(), out.numpy())
        return out
    for begin in range(0, len(out), _CHUNK):
        part = slice(begin, begin + _CHUNK)
        out[part] = (coefficients[items.bin[part]] * _polynomials(items.place[part])).sum(-1)
    return out


def _polynomials(t: Tensor) -> Tensor:
    """Return the Chebyshev polynomials of t, (items, _NODES)."""
    terms = [torch.ones_like(t), t]
    while len(terms) < _NODES:
        terms.append(2.0 * t * terms[-1] - terms[-2])
    return torch.stack(terms, -1)


def _near(plan: BinnedPlan, moments: Tensor, order: int, up: bool) -> Tensor:
    """Return the effect of bins within reach: the matrix of their distance, in both directions."""
    matrices = _matrices(plan.derivative, order).to(moments)
    effect = torch.zeros_like(moments)
    for distance in range(min(_REACH, plan.span) + 1):
        above = torch.searchsorted(plan.key, plan.key + distance).clamp(max=max(len(plan.key) - 1, 0))
        below = (plan.key[above] == plan.key + distance).nonzero().squeeze(-1)
        if len(below) == 0:
            continue
        above = above[below]
        # matrices[_REACH + D] are of upper scores D above lower ones; its rows belong to the upper item
        one, other = matrices[_REACH + distance], matrices[_REACH - distance]
        pairs = [(above, below, one)] if distance == 0 else [(above, below, one), (below, above, other)]
        for high, low, matrix in pairs:
            if up:
                effect.index_add_(0, low, moments[high] @ matrix)
            else:
                effect.index_add_(0, high, moments[low] @ matrix.T)
    return effect


def _far(plan: BinnedPlan, moments: Tensor, order: int, up: bool) -> Tensor:
    """Return the effect of bins beyond reach: -z or -1 where lower scores are far above upper ones, else 0."""
    effect = torch.zeros_like(moments)
    if order > 1 or len(plan.key) == 0:
        return effect
    # sums of q and of q s over the list's bins up to each (`up`), or from each on (`down`), with a 0 at either end
    count = moments[:, 0]
    table = moments.new_zeros(2, plan.shape[0], int(plan.column.max()) + 3)
    table[0, plan.row, plan.column + 1] = count
    table[1, plan.row, plan.column + 1] = plan.centre * count + 0.5 * moments[:, 1] / plan.unit
    running = _running(table, backwards=not up)
    number = torch.arange(len(plan.key), device=plan.key.device)
    edge = torch.searchsorted(plan.key, plan.key - _REACH - 1 if up else plan.key + _REACH, right=True)
    beyond = (plan.column + edge - number + (0 if up else 1)).clamp(0, table.shape[-1] - 1)
    total, weighted = running[:, plan.row, beyond]
    if order == 1:
        effect[:, 0] = -total
        return effect
    sign = -1.0 if up else 1.0
    effect[:, 0] = sign * (weighted - plan.centre * total) * plan.unit
    effect[:, 1] = -sign * 0.5 * total
    return effect


@functools.lru_cache(maxsize=32)
def _matrices(derivative: Derivative, order: int) -> Tensor:
    """Return, for D = -_REACH .. _REACH, Chebyshev coefficients of f(D + x / 2 - y / 2), (2 _REACH + 1, x, y)."""
    angles = (torch.arange(_NODES, dtype=torch.float64) + 0.5) * math.pi / _NODES
    fit = torch.cos(torch.arange(_NODES)[:, None] * angles) * 2.0 / _NODES
    fit[0] *= 0.5
    nodes = torch.cos(angles)
    distance = torch.arange(-_REACH, _REACH + 1, dtype=torch.float64)[:, None, None]
    return fit @ derivative(distance + 0.5 * nodes[:, None] - 0.5 * nodes, order) @ fit.T
