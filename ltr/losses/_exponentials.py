"""Compiled for the CPU: losses of exponentials of all pairs, in time linear in the items, for lists of any length.

Number the labels of a list upwards. For each label g, with item weights w, let

    up_g = log sum of w_i exp(b - s_i),   down_g = log sum of w_k exp(s_k - t),   both over the items of label g.

The sum over all pairs of one item is then a sum over the labels above or below its own, times a factor of the item.
All quantities stay in logarithms until the size of the sum is known. Scores are measured from b, the lowest score of an
item that has others below it, and t, the highest score of an item that has others above it. The largest terms are
therefore small numbers and exact, whatever the scores are; the difference of b and t is added last. Kernels take the
same arguments as those of `ltr.losses._short_lists`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit

_LARGE, _LEAST = 1e290, 1e-300  # size from which weights are divided by a unit, and the smallest weight after that

FloatArray = NDArray[Any]  # float32 or float64
IntArray = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _number(labels: FloatArray, weight: NDArray[Any], number: IntArray) -> int:
    """Number the labels from 0 upwards, with -1 for items that do not count; return how many labels there are."""
    low, high, two = math.inf, -math.inf, True
    for i in range(len(labels)):
        if weight[i] > 0:
            low, high = min(low, labels[i]), max(high, labels[i])
    for i in range(len(labels)):
        number[i] = -1 if weight[i] <= 0 else 1 if labels[i] == high else 0
        two = two and (number[i] != 0 or labels[i] == low)
    if two:
        if low == high:
            number[number == 1] = 0
        return 0 if low > high else 1 if low == high else 2
    distinct = np.unique(labels[number >= 0])
    for i in range(len(labels)):
        if number[i] >= 0:
            number[i] = np.searchsorted(distinct, labels[i])
    return len(distinct)


@njit(cache=True, nogil=True)
def _sums(terms: FloatArray, number: IntArray, labels: int, largest: FloatArray, log_sum: FloatArray) -> None:
    """Write the largest term of each label, and the ``log sum exp`` of its terms.

    Each term is replaced by the ratio of its exponential to the largest of its label.
    """
    largest[:labels], log_sum[:labels] = -math.inf, 0.0
    for i in range(len(terms)):
        if number[i] >= 0:
            largest[number[i]] = max(largest[number[i]], terms[i])
    for i in range(len(terms)):
        if number[i] >= 0:
            terms[i] = math.exp(terms[i] - largest[number[i]]) if terms[i] > -math.inf else 0.0
            log_sum[number[i]] += terms[i]
    for g in range(labels):
        log_sum[g] = largest[g] + math.log(log_sum[g]) if log_sum[g] > 0.0 else -math.inf


@njit(cache=True, nogil=True)
def _beyond(terms: FloatArray, labels: int, above: bool, out: FloatArray) -> None:
    """Write, for each label, the ``log sum exp`` of the terms of all labels above it, or of all below it."""
    running = -math.inf
    for step in range(labels):
        at = labels - 1 - step if above else step
        out[at] = running
        running = _plus(running, terms[at])


@njit(cache=True, nogil=True)
def _plus(a: float, b: float) -> float:
    """Return ``log(exp(a) + exp(b))``."""
    if a == -math.inf or b == -math.inf:
        return max(a, b)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(cache=True, nogil=True)
def _paired(terms: FloatArray, beyond: FloatArray, labels: int) -> float:
    """Return the ``log sum exp`` over labels of a term plus its entry from `_beyond`: the sum over all pairs."""
    total = -math.inf
    for g in range(labels):
        total = _plus(total, terms[g] + beyond[g])
    return total


@njit(cache=True, nogil=True)
def _unit(weight: NDArray[Any], number: IntArray) -> float:
    """Return the unit by which weights are divided: 1, or the heaviest weight if sums of weights may overflow."""
    heaviest = 0.0
    for i in range(len(weight)):
        if number[i] >= 0:
            heaviest = max(heaviest, weight[i] * 1.0)
    return 1.0 if heaviest < _LARGE else heaviest


@njit(cache=True, nogil=True)
def _weigh(weight: float, unit: float) -> float:
    """Return a weight divided by the unit, and kept above 0."""
    return weight * 1.0 if unit == 1.0 else max(weight / unit, _LEAST)


@njit(cache=True, nogil=True)
def _log_weight(weight: float, unit: float) -> float:
    return 0.0 if weight == 1.0 and unit == 1.0 else math.log(_weigh(weight, unit))


@njit(cache=True, nogil=True)
def _log_weights(weight: NDArray[Any], unit: float, number: IntArray, labels: int, out: FloatArray) -> None:
    """Write the logarithm of the total weight of each label."""
    out[:labels] = 0.0
    for i in range(len(weight)):
        if number[i] >= 0:
            out[number[i]] += _weigh(weight[i], unit)
    for g in range(labels):
        out[g] = math.log(out[g])


@njit(cache=True, nogil=True)
def _extremes(scores: FloatArray, number: IntArray, labels: int) -> tuple[float, float]:
    """Return the lowest score of an item with others below it, and the highest of an item with others above it."""
    bottom, top = math.inf, -math.inf
    for i in range(len(scores)):
        if number[i] > 0:
            bottom = min(bottom, scores[i])
        if 0 <= number[i] < labels - 1:
            top = max(top, scores[i])
    return bottom, top


@njit(cache=True, nogil=True)
def _share(log: float) -> float:
    """Return a share of the sum over all pairs from its logarithm, at most 1 whatever the rounding of large scores."""
    return math.exp(min(log, 0.0))


@njit(cache=True, nogil=True)
def _write_slopes(
    slopes: FloatArray, number: IntArray, down: FloatArray, push: FloatArray, up: FloatArray, pull: FloatArray
) -> None:
    """Write the slope of each item, from its shares in the two sums of its label and their slopes."""
    for i in range(len(slopes)):
        g = number[i]
        slopes[i] = down[i] * push[g] - up[i] * pull[g] if g >= 0 else 0.0


@njit(cache=True, nogil=True)
def exponential(
    scores: FloatArray, labels: FloatArray, weight: NDArray[Any], mean: bool, values: FloatArray, slopes: FloatArray
) -> None:
    """Write value and gradient of the mean or sum of ``exp(-z)``."""
    n = scores.shape[1]
    number, up, down = np.empty(n, np.int64), np.empty(n), np.empty(n)
    largest_up, log_up, lower = np.empty(n), np.empty(n), np.empty(n)
    largest_down, log_down, higher = np.empty(n), np.empty(n), np.empty(n)
    limit = math.log(np.finfo(scores.dtype).max) - 1.0
    for row in range(scores.shape[0]):
        count = _number(labels[row], weight[row], number)
        values[row], slopes[row] = 0.0, 0.0
        if count < 2:
            continue
        unit = _unit(weight[row], number)
        bottom, top = _extremes(scores[row], number, count)
        for i in range(n):
            if number[i] >= 0:
                log_weight = _log_weight(weight[row, i], unit)
                up[i] = log_weight - (scores[row, i] - bottom) if number[i] > 0 else -math.inf
                down[i] = log_weight + (scores[row, i] - top) if number[i] < count - 1 else -math.inf
        _sums(up, number, count, largest_up, log_up)
        _sums(down, number, count, largest_down, log_down)
        _beyond(log_up, count, True, higher)
        _beyond(log_down, count, False, lower)
        log_sum = _paired(log_up, lower, count)
        if log_sum == -math.inf:
            continue
        log_value = log_sum + (top - bottom)
        for g in range(count):
            largest_up[g] += lower[g] - log_sum
            largest_down[g] += higher[g] - log_sum
        if mean:
            _log_weights(weight[row], unit, number, count, log_up)
            _beyond(log_up, count, False, lower)
            log_value -= _paired(log_up, lower, count)
        else:
            log_value += 2.0 * math.log(unit)
        values[row] = math.exp(log_value)
        slope = math.exp(min(log_value, limit))
        for g in range(count):
            largest_up[g], largest_down[g] = slope * _share(largest_up[g]), slope * _share(largest_down[g])
        _write_slopes(slopes[row], number, down, largest_down, up, largest_up)


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
    """Write value and gradient of the powers of inner sums or means of ``exp(-z)``."""
    n = scores.shape[1]
    number, up, down = np.empty(n, np.int64), np.empty(n), np.empty(n)
    largest_up, log_up, higher = np.empty(n), np.empty(n), np.empty(n)
    largest_down, log_down, lower = np.empty(n), np.empty(n), np.empty(n)
    log_weights, heavier = np.empty(n), np.empty(n)
    limit = math.log(np.finfo(scores.dtype).max) - math.log(power) - 1.0
    for row in range(scores.shape[0]):
        count = _number(labels[row], weight[row], number)
        values[row], slopes[row] = 0.0, 0.0
        if count < 2:
            continue
        unit = _unit(weight[row], number)
        bottom, top = _extremes(scores[row], number, count)
        for i in range(n):
            if number[i] >= 0:
                down[i] = _log_weight(weight[row, i], unit)
                up[i] = down[i] - (scores[row, i] - bottom) if number[i] > 0 else -math.inf
        _sums(up, number, count, largest_up, log_up)
        _beyond(log_up, count, True, higher)
        _log_weights(weight[row], unit, number, count, log_weights)
        _beyond(log_weights, count, True, heavier)
        for k in range(n):
            g = number[k]
            if g == count - 1:  # items of the highest label are never the lower one of a pair
                down[k] = -math.inf
            elif g >= 0:
                down[k] += power * (scores[row, k] - top + higher[g] - (heavier[g] if mean else 0.0))
        _sums(down, number, count, largest_down, log_down)
        log_sum, log_lower = -math.inf, -math.inf
        for g in range(count - 1):
            log_sum, log_lower = _plus(log_sum, log_down[g]), _plus(log_lower, log_weights[g])
            if log_down[g] > -math.inf:
                log_down[g] -= higher[g]
        if log_sum == -math.inf:
            continue
        _beyond(log_down, count, False, lower)
        log_value = log_sum - (log_lower if mean else -(power + 1.0) * math.log(unit)) + power * (top - bottom)
        values[row] = math.exp(log_value)
        slope = power * math.exp(min(log_value, limit))
        for g in range(count):
            largest_up[g] = slope * _share(largest_up[g] + lower[g] - log_sum)
            largest_down[g] = slope * _share(largest_down[g] - log_sum)
        _write_slopes(slopes[row], number, down, largest_down, up, largest_up)
