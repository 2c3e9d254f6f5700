r"""Newton's method and dual bounds for convex losses of linear scores.

The objective, in the notation of `ltr.losses`, with the rows of differences ``δ_ik``:

    F(w) = mean over k of ( mean over i of φ(δ_ik·w) )^p  +  1/2 sum_j r_j w_j^2,      φ convex, p >= 1, r_j >= 0.

With one positive i and one negative k per row, ``δ_ik = x_i - x_k``, this is every pairwise loss and the P-norm push;
with the rows ``±(x_i, 1)`` as positives and 0 as the only negative it is logistic regression.

**Dual bound.** Fix any point u_k >= 0 for each k and any a_ik in the domain of the conjugate φ*(-a). By convexity

    t^p >= (1 - p) u_k^p + p u_k^(p-1) t      and      φ(z) >= -a_ik z - φ*(-a_ik),

so with ``β_k = p u_k^(p-1)`` and ``q = - mean over k of β_k mean over i of a_ik δ_ik``, for *every* w

    F(w) >= (1 - p) mean_k u_k^p - mean_k β_k mean_i φ*(-a_ik)  +  q·w + 1/2 sum_j r_j w_j^2

and minimising the right side over w takes ``q_j^2 / (2 r_j)`` from it where r_j > 0. Where r_j = 0 the bound needs
q_j = 0. Taking ``a = -φ'(z)`` at a point w gives ``q = ∇F(w) - r w``, which vanishes only at an exact minimiser;
``a = -(φ'(z) + φ''(z) δ·v)`` with the solution v of the linear system ``(mean β φ'' δ δ^T + diag r) v = -∇F(w)`` gives
``q = -r (w + v)`` exactly, and a bound whose distance from F(w) shrinks with the square of the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.losses.functions import PairFunction

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Pairs:
    """The rows ``δ_ik = positive_i - negative_k``, as linear maps between weights and differences."""

    positive: FloatArray
    negative: FloatArray

    def differences(self, w: FloatArray) -> FloatArray:
        """Return ``δ_ik·w`` of shape (n_pos, n_neg)."""
        return (self.positive @ w)[:, None] - (self.negative @ w)[None, :]

    def columns(self, share: FloatArray) -> FloatArray:
        """Return ``sum over i of share_ik δ_ik`` of shape (n_neg, d)."""
        return share.T @ self.positive - share.sum(axis=0)[:, None] * self.negative

    def gram(self, share: FloatArray) -> FloatArray:
        """Return ``sum over i, k of share_ik δ_ik δ_ik^T`` of shape (d, d)."""
        mixed = self.positive.T @ (share @ self.negative)
        own = self.positive.T @ (share.sum(axis=1)[:, None] * self.positive)
        return own + self.negative.T @ (share.sum(axis=0)[:, None] * self.negative) - mixed - mixed.T

    def sizes(self, share: FloatArray) -> FloatArray:
        """Return ``sum over i of share_ik (|positive_i| + |negative_k|)`` of shape (n_neg, d)."""
        return Pairs(np.abs(self.positive), -np.abs(self.negative)).columns(share)


@dataclass(frozen=True)
class Objective:
    """``F(w) = mean_k (mean_i φ(δ_ik·w))^p + 1/2 sum_j r_j w_j^2``."""

    design: Pairs  # the rows δ_ik
    function: PairFunction  # φ
    penalty: FloatArray  # r, of shape (d,)
    p: float = 1.0  # the power, at least 1

    def value(self, w: FloatArray) -> float:
        """Return F(w), infinite if it overflows."""
        with np.errstate(over="ignore"):
            inner = self._losses(self.design.differences(w)).mean(axis=0)
            return float(np.mean(inner**self.p) + 0.5 * self.penalty @ w**2)

    def derivatives(self, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradient, the Hessian, and the part of the Hessian that comes from φ'' and the penalty."""
        z = self.design.differences(w)
        inner = self._losses(z).mean(axis=0)
        steepness = self._steepness(inner)
        slope = self.design.columns(self._losses(z, 1)) / z.shape[0]
        gradient = steepness @ slope + self.penalty * w
        curvature = self.design.gram(self._losses(z, 2) * (steepness / z.shape[0])) + np.diag(self.penalty)
        if self.p == 1:
            return gradient, curvature, curvature
        # where the inner mean underflows to 0, so does its slope
        growth = (self.p - 1) * np.divide(steepness, inner, out=np.zeros_like(inner), where=inner > 0)
        return gradient, curvature + slope.T @ (growth[:, None] * slope), curvature

    def lower_bound(self, w: FloatArray, radius: float) -> float:
        """Return the dual bound at w: no weights, unpenalised ones of at most `radius`, have a smaller value."""
        z = self.design.differences(w)
        inner = self._losses(z).mean(axis=0)
        steepness = self._steepness(inner)
        gradient, _, curvature = self.derivatives(w)
        step = self.design.differences(solve(curvature, -gradient))
        a = np.clip(-(self._losses(z, 1) + self._losses(z, 2) * step), 0.0, self.function.steepest)
        q = -steepness @ self.design.columns(a) / z.shape[0]
        size = steepness @ self.design.sizes(a) / z.shape[0]
        powers, conjugate = (self.p - 1) * np.mean(inner**self.p), self.function.conjugate(torch.from_numpy(a)).numpy()
        constant = -powers - steepness @ conjugate.mean(axis=0)
        constant_size = powers + steepness @ np.abs(conjugate).mean(axis=0)
        return floor(float(constant), float(constant_size), q, size, self.penalty, radius)

    def _losses(self, z: FloatArray, order: int = 0) -> FloatArray:
        """Return φ of score differences, or its derivative of the given order."""
        values: FloatArray = self.function.derivative(torch.from_numpy(z), order).numpy()
        return values

    def _steepness(self, inner: FloatArray) -> FloatArray:
        """Return ``p u_k^(p-1)`` divided by the number of k: the derivative of the outer mean."""
        return self.p * inner ** (self.p - 1) / inner.size


def floor(
    constant: float, constant_size: float, q: FloatArray, q_size: FloatArray, penalty: FloatArray, radius: float
) -> float:
    """Return a number below ``constant + q·w + 1/2 sum_j r_j w_j^2`` for all w with ``|w_j| <= radius`` where r_j = 0.

    `constant_size` and `q_size` are what `constant` and `q` would be without cancellation: their rounding errors are
    taken to be at most 64 units in the last place of these.
    """
    unit = 64 * np.finfo(np.float64).eps
    force = np.abs(q) + unit * q_size
    held = penalty > 0
    drop = np.sum(force[held] ** 2 / (2 * penalty[held])) + radius * np.sum(force[~held])
    return float(constant - unit * constant_size - drop)


def minimise(objective: Objective, start: FloatArray, *, steps: int = 500) -> FloatArray:
    """Minimise a smooth convex objective, whose second derivatives may jump, by damped Newton steps."""
    w, value = start, objective.value(start)
    for _ in range(steps):
        gradient, hessian, _ = objective.derivatives(w)
        step = solve(hessian, -gradient)
        decrease = float(-gradient @ step)
        if not decrease > 1e-12 * value:
            # the improvement left is below the rounding of F; a full step still squares the error of w
            return w + step if decrease > 0 else w
        scale = 1.0
        while not (reached := objective.value(w + scale * step)) <= value - 1e-4 * scale * decrease:
            scale /= 2
            if scale < 1e-12:
                return w
        w, value = w + scale * step, reached
    return w


def solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the least-norm solution of a positive semidefinite system, whatever the scale of its coordinates."""
    diagonal = np.diag(matrix)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    keep = values > values[-1] * len(values) * 1e-14
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=keep)
    solution: FloatArray = vectors @ (inverse * (vectors.T @ (right / scale))) / scale
    return solution
