r"""Functions of score differences that are 0 but within a narrow band around a margin of 1, summed over pairs.

With ``u = 1 - (s_i - s_k)`` and ``v = u / h``, such a function is one quadratic of v in (-1, 0), another in [0, 1), and
0 elsewhere. Measured in units of h, the keys ``s_i - 1`` of upper items and ``s_k`` of lower ones differ by v. Keys are
sorted and cut into cells of length 1. The keys within reach of one key then are four ranges, each within a cell: on
either side of it the rest of its own cell and a part of the next one. Sums over a range of powers of the place *in the
cell* are differences of running sums, and stay accurate however narrow the band is: O(n log n).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ltr.losses.transforms import HingePower, PairFunction, Plan, TwoClasses

__all__ = ["Band", "Huber"]

Quadratic = tuple[float, float, float]
"""Coefficients of 1, v and v²."""


@dataclass(frozen=True)
class Band(PairFunction):
    """A function that is 0 outside ``|v| < 1``.

    Attributes:
        half: h, greater than 0.
        below: the function for v in (-1, 0).
        above: the function for v in [0, 1).

    Examples:
        >>> band = Band(0.5, below=(1.0, 1.0, 0.0), above=(1.0, -1.0, 0.0))  # 1 - |v|
        >>> band(torch.tensor([0.25, 0.5, 0.75, 1.0, 1.25, 2.0])).tolist()
        [0.0, 0.0, 0.5, 1.0, 0.5, 0.0]
    """

    half: float
    below: Quadratic
    above: Quadratic

    def __call__(self, z: Tensor) -> Tensor:
        """The function of score differences."""
        v = (1.0 - z) / self.half
        below, above = (c[0] + c[1] * v + c[2] * v**2 for c in (self.below, self.above))
        return torch.where(v.detach() < 0, below, above).masked_fill(v.detach().abs() >= 1, 0.0)

    def derivative(self) -> Band:
        """The derivative by the score difference, where it exists."""
        below, above = ((-c[1] / self.half, -2 * c[2] / self.half, 0.0) for c in (self.below, self.above))
        return Band(self.half, below, above)

    def plan(self, two: TwoClasses) -> Plan:
        """Sort the keys of either class."""
        return _Keys(self, _sorted(two.scores - 1.0, two.upper, self.half), _sorted(two.scores, two.lower, self.half))


@dataclass(frozen=True)
class Huber(PairFunction):
    """``max(0, u)`` smoothed within ``|u| < half``, where it is ``(u + half)² / (4 half)``."""

    half: float

    @property
    def rest(self) -> Band:
        """What it adds to ``max(0, u)``, ``(h/4) (1 - |v|)²``."""
        c = self.half / 4
        return Band(self.half, (c, 2 * c, c), (c, -2 * c, c))

    def __call__(self, z: Tensor) -> Tensor:
        """The function of score differences."""
        return torch.relu(1.0 - z) + self.rest(z)

    def plan(self, two: TwoClasses) -> Plan:
        """The sorted keys of both parts."""
        return _Sum(HingePower(1).plan(two), self.rest.plan(two))


@dataclass(frozen=True, eq=False)
class _Sum(Plan):
    one: Plan
    other: Plan

    def apply(self, charges: Tensor, order: int, up: bool) -> Tensor:
        return self.one.apply(charges, order, up) + self.other.apply(charges, order, up)


@dataclass(frozen=True, eq=False)
class _Class:
    """The keys of a class in units of h, ascending, infinite where the item is of another class."""

    keys: Tensor
    order: Tensor
    real: Tensor


def _sorted(keys: Tensor, weight: Tensor, half: float) -> _Class:
    keys, order = (keys / half).masked_fill(weight <= 0, torch.inf).sort(dim=-1)
    return _Class(keys, order, keys < torch.inf)


@dataclass(frozen=True, eq=False)
class _Keys(Plan):
    band: Band
    upper: _Class
    lower: _Class

    def apply(self, charges: Tensor, order: int, up: bool) -> Tensor:
        """For every key of one class, the sum over those of the other that are within reach."""
        band = self.band
        for _ in range(order):
            band = band.derivative()
        sources, targets = (self.upper, self.lower) if up else (self.lower, self.upper)
        # with the source's key minus the target's, which is v but for its sign
        sign = -1.0 if up else 1.0
        smaller, larger = (band.above, band.below) if up else (band.below, band.above)
        key = targets.keys.masked_fill(~targets.real, 0.0)
        cell = key.floor()
        bounds = [key - 1, cell, key, cell + 1, key + 1]
        edges = [torch.searchsorted(sources.keys, bound.contiguous()) for bound in bounds]
        place = (sources.keys - sources.keys.floor()).masked_fill(~sources.real, 0.0)
        q = charges.gather(-1, sources.order).masked_fill(~sources.real, 0.0)
        sums = [torch.nn.functional.pad((q * place**power).cumsum(-1), (1, 0)) for power in range(3)]
        total = torch.zeros_like(key)
        for at, (beside, c) in enumerate([(-1.0, smaller), (0.0, smaller), (0.0, larger), (1.0, larger)]):
            m0, m1, m2 = (s.gather(-1, edges[at + 1]) - s.gather(-1, edges[at]) for s in sums)
            shift = cell + beside - key
            total += c[0] * m0 + sign * c[1] * (m1 + shift * m0) + c[2] * (m2 + 2 * shift * m1 + shift**2 * m0)
        return torch.zeros_like(total).scatter(-1, targets.order, total.masked_fill(~targets.real, 0.0))
