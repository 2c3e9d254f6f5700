"""Ranked lists as labels from the top down, and how many positives stand above how many negatives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trainers.files import Json
from trainers.records import unpack_labels
from trainers.report.series import FloatArray

__all__ = ["labels_of", "mean_true_positive_rate", "true_positive_rate"]

_TOLERANCE = 1e-9  # of a count of negatives, for rates that are quotients


def labels_of(record: Json, half: str) -> NDArray[np.int64] | None:
    """Labels from the top of a record's list down, None where it has none.

    Args:
        record: of a cell.
        half: ``"train"`` or ``"test"``.
    """
    packed = (record.get("ranked") or {}).get(half)
    return None if packed is None else unpack_labels(packed)


def true_positive_rate(labels: NDArray[np.int64], false_positive_rates: FloatArray) -> FloatArray:
    """The largest true positive rate of a list at each false positive rate: its ROC curve, upper end of each step.

    Args:
        labels: from the top down, shape (n,), both classes among them.
        false_positive_rates: where to evaluate.

    Examples:
        >>> true_positive_rate(np.array([1, 0, 1, 0]), np.array([0.0, 0.4, 0.5])).tolist()
        [0.5, 0.5, 1.0]
    """
    negatives = np.cumsum(labels == 0)
    positives = np.cumsum(labels == 1)
    allowed = np.asarray(false_positive_rates) * negatives[-1] + _TOLERANCE
    reached = np.searchsorted(negatives, allowed, side="right")
    return np.concatenate([[0], positives])[reached] / positives[-1]


def mean_true_positive_rate(records: Sequence[Json], half: str, false_positive_rates: FloatArray) -> FloatArray | None:
    """The mean over lists of `true_positive_rate`; None where no list has both classes.

    Args:
        records: of one method, a record a split.
        half: ``"train"`` or ``"test"``.
        false_positive_rates: where to evaluate.
    """
    lists = [labels for record in records if (labels := labels_of(record, half)) is not None]
    both = [labels for labels in lists if 0 < labels.sum() < len(labels)]
    return np.mean([true_positive_rate(labels, false_positive_rates) for labels in both], axis=0) if both else None
