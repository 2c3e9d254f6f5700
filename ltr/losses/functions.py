r"""Pair functions: the loss φ(z) of a pair of items as a function of its score difference ``z = s_i - s_k``.

A `PairFunction` is the only place where the formula is written down. The matrix of pairs takes `__call__`, near-linear
sums over long lists `plan` and `derivative`, boosters and the certified optimum (`ltr.convex`) `derivative` and
`conjugate`, and losses that add up in logarithms `log`.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from ltr.losses.transforms import BinnedPlan, Plan, SortedPlan, TwoClasses


class PairFunction(abc.ABC):
    """A function φ of a pair's score difference z; all methods are elementwise.

    Only `__call__` must be defined. The certified optimum requires a convex and nonincreasing φ.

    Attributes:
        exponential_from: above this difference φ(z) is ``exp(-z)`` to the last digit of float64; infinite if it
            never is.
        zero_from: φ is 0 at this difference and above; infinite where φ is positive everywhere.
        steepest: least upper bound of -φ'; the conjugate at -a is finite for 0 <= a <= steepest.
        straight: whether φ is straight but for kinks, so that its slope stands in for a second derivative.
    """

    straight: ClassVar[bool] = False
    exponential_from: ClassVar[float] = math.inf
    zero_from: ClassVar[float] = math.inf
    steepest: ClassVar[float] = math.inf

    @abc.abstractmethod
    def __call__(self, z: Tensor) -> Tensor:
        """Return φ(z), differentiable."""

    def derivative(self, z: Tensor, order: int) -> Tensor:
        """Return the derivative of φ of the given order; order 0 is φ itself."""
        return derivative_of(self, z, order)

    def conjugate(self, a: Tensor) -> Tensor:
        """Return the convex conjugate ``φ*(-a) = max over z of -a z - φ(z)`` for 0 <= a <= `steepest`."""
        raise NotImplementedError(f"{type(self).__name__} has no conjugate")

    def log(self, z: Tensor) -> Tensor:
        """Return log φ(z), accurate where φ underflows."""
        far = z > self.exponential_from
        return torch.where(far, -z, torch.log(self(z.masked_fill(far, 0.0))))

    def plan(self, two: TwoClasses) -> Plan:
        """Prepare near-linear sums over the pairs of lists; their scores are used without gradient."""
        raise NotImplementedError(f"{type(self).__name__} has no near-linear sums")

    def has(self, form: str) -> bool:
        """Return whether the function defines one of the forms ``plan`` and ``conjugate``."""
        return getattr(type(self), form) is not getattr(PairFunction, form)


def derivative_of(formula: Callable[[Tensor], Tensor], z: Tensor, order: int) -> Tensor:
    """Return the derivative of an elementwise formula of the given order, by automatic differentiation."""
    if order == 0:
        return formula(z)
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        value = formula(z)
        for _ in range(order):
            if not value.requires_grad:
                return torch.zeros_like(z)
            (value,) = torch.autograd.grad(value.sum(), z, create_graph=True)
    return value.detach()


class _Logistic(PairFunction):
    """``log(1 + exp(-z))``, with derivatives of order 0 to 3."""

    steepest: ClassVar[float] = 1.0
    exponential_from: ClassVar[float] = 40.0

    def __call__(self, z: Tensor) -> Tensor:
        # logsigmoid, because torch's softplus is the identity beyond 20, with an error of 2e-9
        return -F.logsigmoid(z)

    def derivative(self, z: Tensor, order: int) -> Tensor:
        if order == 0:
            return self(z)
        if order == 1:
            return -torch.sigmoid(-z)
        below, above = torch.sigmoid(-z), torch.sigmoid(z)
        if order == 2:
            return below * above
        if order == 3:
            return below * above * (below - above)
        raise NotImplementedError("the logistic pair function has derivatives up to the third")

    def conjugate(self, a: Tensor) -> Tensor:
        return torch.xlogy(a, a) + torch.xlogy(1 - a, 1 - a)

    def plan(self, two: TwoClasses) -> Plan:
        return BinnedPlan(self.derivative, two)


class _Exponential(PairFunction):
    """``exp(-z)``, whose sums over pairs are products of sums over items; losses take them in logarithms."""

    def __call__(self, z: Tensor) -> Tensor:
        return torch.exp(-z)

    def derivative(self, z: Tensor, order: int) -> Tensor:
        return -self(z) if order % 2 else self(z)

    def conjugate(self, a: Tensor) -> Tensor:
        return torch.xlogy(a, a) - a

    def log(self, z: Tensor) -> Tensor:
        return -z


class _HingePower(PairFunction):
    """``max(0, 1 - z)^power``; derivatives are taken where they exist."""

    power: ClassVar[int]
    zero_from: ClassVar[float] = 1.0

    def derivative(self, z: Tensor, order: int) -> Tensor:
        if order == 0:
            return self(z)
        if order > self.power:
            return torch.zeros_like(z)
        factor = math.prod(taken - self.power for taken in range(order))
        return factor * F.relu(1.0 - z) ** (self.power - order) * (z < 1.0)

    def plan(self, two: TwoClasses) -> Plan:
        return SortedPlan(self.power, two)


class _Hinge(_HingePower):
    power: ClassVar[int] = 1
    straight: ClassVar[bool] = True
    steepest: ClassVar[float] = 1.0

    def __call__(self, z: Tensor) -> Tensor:
        return F.relu(1.0 - z)

    def conjugate(self, a: Tensor) -> Tensor:
        return -a


class _SquaredHinge(_HingePower):
    power: ClassVar[int] = 2

    def __call__(self, z: Tensor) -> Tensor:
        """Return the square, whose derivative stops growing where it leaves the range."""
        short = F.relu(1.0 - z)
        return short * short.clamp(max=math.sqrt(torch.finfo(z.dtype).max))

    def conjugate(self, a: Tensor) -> Tensor:
        return a**2 / 4 - a


LOGISTIC = _Logistic()
EXPONENTIAL = _Exponential()
HINGE = _Hinge()
SQUARED_HINGE = _SquaredHinge()


@dataclass(frozen=True)
class SmoothedHinge(PairFunction):
    """``width log(1 + exp((1 - z) / width))``, above the hinge by at most ``width log 2``."""

    width: float
    steepest: ClassVar[float] = 1.0

    def __call__(self, z: Tensor) -> Tensor:
        """Return the smoothed hinge."""
        return self.width * LOGISTIC((z - 1) / self.width)

    def derivative(self, z: Tensor, order: int) -> Tensor:
        """Return a derivative of order 0 to 3."""
        return LOGISTIC.derivative((z - 1) / self.width, order) * self.width ** (1 - order)

    def conjugate(self, a: Tensor) -> Tensor:
        """Return ``width (a log a + (1 - a) log(1 - a)) - a``."""
        return self.width * LOGISTIC.conjugate(a) - a
