"""Mini-batches for ranking: of items that keep every class, or of whole lists.

The mean over the positive-negative pairs of a batch of items estimates the mean over all pairs without bias, because
each class is sampled uniformly; losses that are not means over pairs (the P-norm push) are estimated with a
bias that vanishes as batches grow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["item_batches", "list_batches"]

IntArray = NDArray[np.int64]


def item_batches(labels: NDArray[np.float64], size: int, generator: np.random.Generator) -> list[IntArray]:
    """Deal the items of one list into batches that hold about the same share of every class.

    Items in random order within their class are dealt out in turn. A batch that would hold a single class
    (one class has fewer items than there are batches) gets one random item of another class on top.

    Args:
        labels: (n,), at least two different ones.
        size: items in a batch, at least 2; all batches hold about n / ceil(n / size).
        generator: source of randomness.

    Returns:
        row indices of each batch, in random order; every row occurs.

    Examples:
        >>> batches = item_batches(np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), 3, np.random.default_rng(0))
        >>> [sorted(b.tolist()) for b in batches]
        [[0, 1, 2], [3, 4, 5]]
    """
    count = -(-len(labels) // size)
    order = generator.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    batches = [order[start::count] for start in generator.permutation(count)]
    return [_with_a_pair(batch, labels, generator) for batch in batches]


def _with_a_pair(batch: IntArray, labels: NDArray[np.float64], generator: np.random.Generator) -> IntArray:
    if np.any(labels[batch] != labels[batch[0]]):
        return batch
    others = np.flatnonzero(labels != labels[batch[0]])
    return np.append(batch, generator.choice(others))


def list_batches(groups: list[IntArray], size: int, generator: np.random.Generator) -> list[IntArray]:
    """Shuffle whole lists into batches.

    Args:
        groups: row indices of each list.
        size: lists in a batch, at least 1; all batches hold about lists / ceil(lists / size).
        generator: source of randomness.

    Returns:
        row indices of each batch, list after list; every row occurs once.

    Examples:
        >>> groups = [np.array([0, 2]), np.array([1]), np.array([3])]
        >>> [b.tolist() for b in list_batches(groups, 2, np.random.default_rng(0))]
        [[3, 1], [0, 2]]
    """
    count = -(-len(groups) // size)
    order = generator.permutation(len(groups))
    return [np.concatenate([groups[at] for at in order[start::count]]) for start in range(count)]
