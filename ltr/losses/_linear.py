"""Compiled for the CPU: losses of exponentials of all pairs, in time linear in the items, lists of any length.

Number the labels of a list upwards. With the weights w, in logarithms, of each label g

    up_g = log sum of w_i exp(-s_i),   down_g = log sum of w_k exp(s_k),   both over the items of label g,

every sum over the pairs of an item is one over the labels above or below its own, times something of its own. Nothing
leaves the logarithms before its size is known. Kernels are called as those of `ltr.losses._short`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["exponential", "p_norm_push"]

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
def _sums(terms: FloatArray, number: IntArray, labels: int) -> FloatArray:
    """``log sum exp`` of the terms of each label."""
    largest, total = np.full(labels, -math.inf), np.zeros(labels)
    for i in range(len(terms)):
        if number[i] >= 0:
            largest[number[i]] = max(largest[number[i]], terms[i])
    for i in range(len(terms)):
        if number[i] >= 0 and terms[i] > -math.inf:
            total[number[i]] += math.exp(terms[i] - largest[number[i]])
    return largest + np.log(total)


@njit(cache=True, nogil=True)
def _beyond(terms: FloatArray, above: bool) -> FloatArray:
    """For each label, ``log sum exp`` of the terms of all labels above it, or of all below it."""
    out, running = np.empty(len(terms)), -math.inf
    for step in range(len(terms)):
        at = len(terms) - 1 - step if above else step
        out[at] = running
        running = _plus(running, terms[at])
    return out


@njit(cache=True, nogil=True)
def _plus(a: float, b: float) -> float:
    """``log(exp(a) + exp(b))``."""
    high = max(a, b)
    return high if high == -math.inf else high + math.log1p(math.exp(min(a, b) - high))


@njit(cache=True, nogil=True)
def _total(terms: FloatArray) -> float:
    """``log sum exp`` of all terms."""
    running = -math.inf
    for term in terms:
        running = _plus(running, term)
    return running


@njit(cache=True, nogil=True)
def _logarithms(
    scores: FloatArray, weight: NDArray[Any], log_weight: FloatArray, up: FloatArray, down: FloatArray
) -> None:
    """The logarithms of w, w exp(-s) and w exp(s) of each item that counts."""
    for i in range(len(scores)):
        if weight[i] > 0:
            log_weight[i] = math.log(weight[i])
            up[i], down[i] = log_weight[i] - scores[i], log_weight[i] + scores[i]


@njit(cache=True, nogil=True)
def exponential(
    scores: FloatArray, labels: FloatArray, weight: NDArray[Any], mean: bool, values: FloatArray, slopes: FloatArray
) -> None:
    """Of ``exp(-z)``."""
    n = scores.shape[1]
    number, log_weight, up, down = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n)
    limit = math.log(np.finfo(scores.dtype).max) - 1.0
    for row in range(scores.shape[0]):
        count = _number(labels[row], weight[row], number)
        values[row], slopes[row] = 0.0, 0.0
        if count < 2:
            continue
        _logarithms(scores[row], weight[row], log_weight, up, down)
        per_label = _sums(up, number, count)
        higher, lower = _beyond(per_label, True), _beyond(_sums(down, number, count), False)
        log_sum = _total(per_label + lower)
        log_value = log_sum
        if mean:
            per_label = _sums(log_weight, number, count)
            log_value -= _total(per_label + _beyond(per_label, False))
        values[row] = math.exp(log_value)
        unit = math.exp(min(log_value, limit))
        for i in range(n):
            g = number[i]
            if g >= 0:
                pulled, pushed = math.exp(up[i] + lower[g] - log_sum), math.exp(down[i] + higher[g] - log_sum)
                slopes[row, i] = (pushed - pulled) * unit


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
    number, log_weight, up, down = np.empty(n, np.int64), np.empty(n), np.empty(n), np.empty(n)
    limit = math.log(np.finfo(scores.dtype).max) - math.log(power) - 1.0
    for row in range(scores.shape[0]):
        count = _number(labels[row], weight[row], number)
        values[row], slopes[row] = 0.0, 0.0
        if count < 2:
            continue
        _logarithms(scores[row], weight[row], log_weight, up, down)
        top = count - 1  # no pair has an item of it as the lower one
        weights = _sums(log_weight, number, count)
        higher = _beyond(_sums(up, number, count), True)
        inner = higher - _beyond(weights, True) if mean else higher
        for k in range(n):
            if number[k] >= 0:
                down[k] = -math.inf if number[k] == top else log_weight[k] + power * (scores[row, k] + inner[number[k]])
        per_label = _sums(down, number, count)
        log_sum = _total(per_label)
        log_value = log_sum - (_total(weights[:top]) if mean else 0.0)
        higher[top] = 0.0
        lower = _beyond(per_label - higher, False)
        values[row] = math.exp(log_value)
        unit = power * math.exp(min(log_value, limit))
        for i in range(n):
            g = number[i]
            if g >= 0:
                slopes[row, i] = (math.exp(down[i] - log_sum) - math.exp(up[i] + lower[g] - log_sum)) * unit
