"""Compiled for the CPU: values and gradients of the losses of all pairs of short lists, one pass over the pairs.

A kernel takes ``(scores, labels, weight, mean, values, slopes)``: the first three of shape (lists, items), weight 0 (or
False) where an item does not count; it writes the value of each list, (lists,), and the gradient of each with respect
to its scores, (lists, items). All arithmetic is that of float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit

__all__ = ["HINGE", "RANKNET", "SQUARED_HINGE", "Kernel", "p_norm_push", "pairwise"]

RANKNET, HINGE, SQUARED_HINGE = range(3)

_MAX = np.finfo(np.float64).max
_ROOT = math.sqrt(_MAX)
_LEAST = 1e-300  # share of the weight that an item has at least: a product with what is infinite must not be 0 * inf

FloatArray = NDArray[Any]  # float32 or float64
IntArray = NDArray[np.int64]
Kernel = Callable[[FloatArray, FloatArray, NDArray[Any], bool, FloatArray, FloatArray], None]


@njit(cache=True, nogil=True)
def _sort(
    labels: FloatArray, weight: NDArray[Any], order: IntArray, below: IntArray, share: FloatArray
) -> tuple[int, float, float]:
    """Items that count by label, the highest first; where the items of lower labels begin; their shares of the weight.

    Shares, unlike weights, have products that stay within the range. Returned are the number of items, and two factors
    of the weight of all, whose product may not.
    """
    count, heaviest, total = 0, 0.0, 0.0
    for item in range(len(labels)):
        if weight[item] > 0:
            at = count
            while at > 0 and labels[order[at - 1]] < labels[item]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = item
            count += 1
            heaviest = max(heaviest, weight[item] * 1.0)
    for at in range(count):
        share[at] = weight[order[at]] / heaviest
        total += share[at]
    for at in range(count - 1, -1, -1):
        last = at + 1 == count or labels[order[at + 1]] < labels[order[at]]
        below[at] = at + 1 if last else below[at + 1]
        share[at] = max(share[at] / total, _LEAST)
    return count, heaviest, total


@njit(cache=True, nogil=True)
def pairwise(
    scores: FloatArray,
    labels: FloatArray,
    weight: NDArray[Any],
    mean: bool,
    values: FloatArray,
    slopes: FloatArray,
    kind: int,
) -> None:
    """Of the pair function of a kind."""
    n = scores.shape[1]
    order, below = np.empty(n, np.int64), np.empty(n, np.int64)
    share, slope, s = np.empty(n), np.empty(n), np.empty(n)
    largest = 0.5 * np.finfo(slopes.dtype).max
    for row in range(scores.shape[0]):
        count, heaviest, weights = _sort(labels[row], weight[row], order, below, share)
        for at in range(count):
            s[at], slope[at] = scores[row, order[at]], 0.0
        total, pairs = 0.0, 0.0
        for i in range(count):
            own, beside, steps = 0.0, 0.0, 0.0
            for k in range(below[i], count):
                value, step = _pair(kind, s[i] - s[k])
                own += share[k] * value
                beside += share[k]
                steps += share[k] * step
                slope[k] -= share[i] * share[k] * step
            total += share[i] * own
            pairs += share[i] * beside
            slope[i] += share[i] * steps
        values[row], slopes[row] = 0.0, 0.0
        if pairs > 0.0:
            steepest = 0.0
            for at in range(count):
                steepest = max(steepest, abs(slope[at]))
            if mean:
                values[row], size = total / pairs, steepest / pairs
            else:
                values[row] = total * heaviest * weights * heaviest * weights
                size = steepest * heaviest * weights * heaviest * weights
            size = min(size, largest)  # beyond the range the gradient keeps its direction
            for at in range(count):
                slopes[row, order[at]] = slope[at] / steepest * size if steepest > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _pair(kind: int, z: float) -> tuple[float, float]:
    """The pair function of a kind, and its derivative."""
    if kind == RANKNET:
        return _logistic(z)
    short = max(1.0 - z, 0.0)
    if kind == HINGE:
        return short, -1.0 if short > 0.0 else 0.0
    # the derivative stops growing where the square leaves the range
    return short * short, -2.0 * min(short, _ROOT)


@njit(cache=True, nogil=True)
def _logistic(z: float) -> tuple[float, float]:
    far = math.exp(-abs(z))
    one_more = 1.0 + far
    inverse = 1.0 / one_more
    # log1p(far) in half its time: what rounding took from 1 + far, to first order
    value = math.log(one_more) + (far - (one_more - 1.0)) * inverse
    return (value, -far * inverse) if z > 0.0 else (value - z, -inverse)


@njit(cache=True, nogil=True)
def p_norm_push(
    scores: FloatArray,
    labels: FloatArray,
    weight: NDArray[Any],
    mean: bool,
    values: FloatArray,
    slopes: FloatArray,
    power: float,
) -> None:
    """Of the powers of the inner sums or means of ``log(1 + exp(-z))``, in logarithms."""
    n = scores.shape[1]
    order, below = np.empty(n, np.int64), np.empty(n, np.int64)
    share, slope, s = np.empty(n), np.empty(n), np.empty(n)
    pull, sums, inner = np.empty((n, n)), np.empty(n), np.empty(n)
    limit = math.log(np.finfo(scores.dtype).max) - math.log(power) - 1.0
    for row in range(scores.shape[0]):
        count, heaviest, weights = _sort(labels[row], weight[row], order, below, share)
        values[row], slopes[row] = 0.0, 0.0
        first = below[0] if count else 0  # items from here on stand below others: those before `above`
        if first == count:
            continue
        for at in range(count):
            s[at], slope[at] = scores[row, order[at]], 0.0
        above, largest, counted = 0, -math.inf, 0.0
        for k in range(first, count):
            while below[above] <= k:
                above += 1
            highest = _log_softplus(_finite(s[:above].min() - s[k]))[0]
            sums[k], beside = 0.0, 0.0
            for i in range(above):
                value, step = _log_softplus(_finite(s[i] - s[k]))
                term = share[i] * math.exp(value - highest)
                sums[k] += term
                beside += share[i]
                pull[k, i] = term * step
            inner[k] = _finite(power * (highest + math.log(sums[k]) - (math.log(beside) if mean else 0.0)))
            largest = max(largest, inner[k])
            counted += share[k]
        total = 0.0
        for k in range(first, count):
            inner[k] = share[k] * math.exp(inner[k] - largest)
            total += inner[k]
        log_value = largest + math.log(total)
        log_value += -math.log(counted) if mean else _finite((power + 1.0) * (math.log(heaviest) + math.log(weights)))
        values[row] = math.exp(log_value)
        unit = power * math.exp(min(log_value, limit))
        above = 0
        for k in range(first, count):
            while below[above] <= k:
                above += 1
            for i in range(above):
                slope[i] += inner[k] / sums[k] * pull[k, i]
                slope[k] -= inner[k] / sums[k] * pull[k, i]
        for at in range(count):
            slopes[row, order[at]] = slope[at] / total * unit


@njit(cache=True, nogil=True)
def _finite(x: float) -> float:
    return min(max(x, -_MAX), _MAX)


@njit(cache=True, nogil=True)
def _log_softplus(z: float) -> tuple[float, float]:
    """``log(log(1 + exp(-z)))`` and its derivative; beyond 40 the inner logarithm is its argument."""
    if z > 40.0:
        return -z, -1.0
    value, step = _logistic(z)
    return math.log(value), step / value
