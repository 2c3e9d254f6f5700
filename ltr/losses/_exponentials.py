"""Compiled for the CPU: losses of exponentials of all pairs, in time linear in the items, lists of any length.

Number the labels of a list upwards. With the weights w, in logarithms, of each label g

    up_g = log sum of w_i exp(b - s_i),   down_g = log sum of w_k exp(s_k - t),   both over the items of label g,

every sum over the pairs of an item is one over the labels above or below its own, times something of its own. Nothing
leaves the logarithms before its size is known. Scores are measured from b, the lowest of an item that has others below,
and t, the highest of one that has others above: so the largest terms are small numbers, whatever the scores are, and
exact. What the difference of b and t adds comes last. Kernels are called as those of `ltr.losses._short`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.compiling import njit

__all__ = ["exponential", "p_norm_push"]

_LARGE, _LEAST = 1e290, 1e-300  # weights that are measured in units, and the least that one is then

FloatArray = NDArray[Any]  # float32 or float64
IntArray = NDArray[np.int64]


@njit(cache=True, nogil=True)
def _number(labels: FloatArray, weight: NDArray[Any], number: IntArray) -> int:
    """Number the labels of the items that count from 0 upwards; how many there are. Other items get -1."""
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
    """The largest of the terms of each label, and their ``log sum exp``.

    In place of each term stays the ratio of its exponential to the largest of its label.
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
    """For each label, ``log sum exp`` of the terms of all labels above it, or of all below it."""
    running = -math.inf
    for step in range(labels):
        at = labels - 1 - step if above else step
        out[at] = running
        running = _plus(running, terms[at])


@njit(cache=True, nogil=True)
def _plus(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``."""
    if a == -math.inf or b == -math.inf:
        return max(a, b)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(cache=True, nogil=True)
def _paired(terms: FloatArray, beyond: FloatArray, labels: int) -> float:
    """``log sum exp`` over the labels of a term plus what `_beyond` has for it: the sum over all pairs."""
    total = -math.inf
    for g in range(labels):
        total = _plus(total, terms[g] + beyond[g])
    return total


@njit(cache=True, nogil=True)
def _unit(weight: NDArray[Any], number: IntArray) -> float:
    """What weights are measured in: 1, or the heaviest one where sums of weights may leave the range."""
    heaviest = 0.0
    for i in range(len(weight)):
        if number[i] >= 0:
            heaviest = max(heaviest, weight[i] * 1.0)
    return 1.0 if heaviest < _LARGE else heaviest


@njit(cache=True, nogil=True)
def _weigh(weight: float, unit: float) -> float:
    """A weight in units, which stays above 0."""
    return weight * 1.0 if unit == 1.0 else max(weight / unit, _LEAST)


@njit(cache=True, nogil=True)
def _log_weight(weight: float, unit: float) -> float:
    return 0.0 if weight == 1.0 and unit == 1.0 else math.log(_weigh(weight, unit))


@njit(cache=True, nogil=True)
def _log_weights(weight: NDArray[Any], unit: float, number: IntArray, labels: int, out: FloatArray) -> None:
    """The logarithm of the weight of each label."""
    out[:labels] = 0.0
    for i in range(len(weight)):
        if number[i] >= 0:
            out[number[i]] += _weigh(weight[i], unit)
    for g in range(labels):
        out[g] = math.log(out[g])


@njit(cache=True, nogil=True)
def _ends(scores: FloatArray, number: IntArray, labels: int) -> tuple[float, float]:
    """The lowest score of items that have others below them, and the highest of those that have others above."""
    bottom, top = math.inf, -math.inf
    for i in range(len(scores)):
        if number[i] > 0:
            bottom = min(bottom, scores[i])
        if 0 <= number[i] < labels - 1:
            top = max(top, scores[i])
    return bottom, top


@njit(cache=True, nogil=True)
def _share(log: float) -> float:
    """A part of the sum over all pairs: at most 1, which the rounding of large scores may exceed by far."""
    return math.exp(min(log, 0.0))


@njit(cache=True, nogil=True)
def _give(
    slopes: FloatArray, number: IntArray, down: FloatArray, push: FloatArray, up: FloatArray, pull: FloatArray
) -> None:
    """The slope of each item, from its parts in the sums of its label and what these count for."""
    for i in range(len(slopes)):
        g = number[i]
        slopes[i] = down[i] * push[g] - up[i] * pull[g] if g >= 0 else 0.0


@njit(cache=True, nogil=True)
def exponential(
    scores: FloatArray, labels: FloatArray, weight: NDArray[Any], mean: bool, values: FloatArray, slopes: FloatArray
) -> None:
    """Of ``exp(-z)``."""
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
        bottom, top = _ends(scores[row], number, count)
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
        _give(slopes[row], number, down, largest_down, up, largest_up)


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
    """Of the powers of the inner sums or means of ``exp(-z)``."""
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
        bottom, top = _ends(scores[row], number, count)
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
            if g == count - 1:  # no pair has an item of it as the lower one
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
        _give(slopes[row], number, down, largest_down, up, largest_up)
