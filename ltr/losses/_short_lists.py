"""Compiled for the CPU: values and gradients of losses of short lists, in one pass over all pairs.

Kernels are made from `PairFunction.scalar`. A kernel takes ``(scores, labels, weight, mean, values, slopes)``. The
first three have shape (lists, items); weight is 0 (or False) where an item does not count. The kernel writes the value
of each list, (lists,), and the gradient of each value with respect to its scores, (lists, items). It computes in
float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from ltr.compiling import njit
from ltr.losses.functions import PairFunction

_MAX = np.finfo(np.float64).max
_LEAST = 1e-300  # smallest share of the weight: its product with an infinite value must not be 0 * inf

FloatArray = NDArray[Any]  # float32 or float64
IntArray = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _sort(
    labels: FloatArray, weight: NDArray[Any], order: IntArray, below: IntArray, share: FloatArray
) -> tuple[int, float, float]:
    """Sort the items that count by label, highest first, and find where lower labels begin.

    Each item also gets its share of the total weight. Products of shares, unlike those of weights, stay within the
    floating point range.

    Returns:
        The number of items, and two factors of their total weight, whose product may leave the range.
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


@functools.lru_cache(maxsize=32)
def pairwise(function: PairFunction) -> Callable[..., None]:
    """Return the kernel that computes the mean or sum of a pair function."""
    pair = register_jitable(function.scalar)

    @njit(cache=_is_ours(function), nogil=True)
    def kernel(
        scores: FloatArray,
        labels: FloatArray,
        weight: NDArray[Any],
        mean: bool,
        values: FloatArray,
        slopes: FloatArray,
    ) -> None:
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
                    value, step = pair(s[i] - s[k])
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

    return cast(Callable[..., None], kernel)


@functools.lru_cache(maxsize=32)
def p_norm_push(function: PairFunction) -> Callable[..., None]:
    """Return the kernel for powers of inner sums or means of a pair function, in logarithms; it takes a power, too."""
    pair, exponential_from = register_jitable(function.scalar), function.exponential_from

    def log_pair(z: float) -> tuple[float, float]:
        if z > exponential_from:
            return -z, -1.0
        value, slope = pair(z)
        return math.log(value), slope / value

    register_jitable(log_pair)

    @njit(cache=_is_ours(function), nogil=True)
    def kernel(
        scores: FloatArray,
        labels: FloatArray,
        weight: NDArray[Any],
        mean: bool,
        values: FloatArray,
        slopes: FloatArray,
        power: float,
    ) -> None:
        n = scores.shape[1]
        order, below = np.empty(n, np.int64), np.empty(n, np.int64)
        share, slope, s = np.empty(n), np.empty(n), np.empty(n)
        pull, sums, inner = np.empty((n, n)), np.empty(n), np.empty(n)
        limit = math.log(np.finfo(scores.dtype).max) - math.log(power) - 1.0
        for row in range(scores.shape[0]):
            count, heaviest, weights = _sort(labels[row], weight[row], order, below, share)
            values[row], slopes[row] = 0.0, 0.0
            first = below[0] if count else 0  # items from here on are below others: those before `above`
            if first == count:
                continue
            for at in range(count):
                s[at], slope[at] = scores[row, order[at]], 0.0
            above, largest, counted = 0, -math.inf, 0.0
            for k in range(first, count):
                while below[above] <= k:
                    above += 1
                highest = log_pair(_finite(s[:above].min() - s[k]))[0]
                sums[k], beside = 0.0, 0.0
                for i in range(above):
                    value, step = log_pair(_finite(s[i] - s[k]))
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
            log_value += (
                -math.log(counted) if mean else _finite((power + 1.0) * (math.log(heaviest) + math.log(weights)))
            )
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

    return cast(Callable[..., None], kernel)


def _is_ours(function: PairFunction) -> bool:
    """Return whether kernels may be cached on disk: numba would not notice changes of a user's own function."""
    return type(function).__module__.startswith("ltr.")


@njit(cache=True, nogil=True)
def _finite(x: float) -> float:
    return min(max(x, -_MAX), _MAX)
