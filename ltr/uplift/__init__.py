"""Outcomes of treatments: metrics of scores, and losses ``loss(scores, outcome, treatment)``.

A higher score means that the treatment does more for the row. Metrics are computed by NumPy from the labels of
`uplift_labels`, losses by torch from tensors of outcomes and treatments.
"""

from ltr.outcomes import Treatments, uplift_labels
from ltr.uplift.losses import UpliftLoss
from ltr.uplift.metrics import (
    Definition,
    TopEffect,
    UpliftCurve,
    auuc,
    effect_by_top_share,
    qini,
    qini_curve,
    uplift_curve,
)

__all__ = [
    "Definition",
    "TopEffect",
    "Treatments",
    "UpliftCurve",
    "UpliftLoss",
    "auuc",
    "effect_by_top_share",
    "qini",
    "qini_curve",
    "uplift_curve",
    "uplift_labels",
]
