"""Times until an event: metrics, curves, and losses ``loss(scores, time, event)``.

A higher score means an earlier event. Metrics are computed by NumPy from the labels of `survival_labels`, losses by
torch from tensors of times and events. `ltr.outcomes` defines which rows are comparable.
"""

from ltr.outcomes import KaplanMeier, Times, kaplan_meier, survival_labels
from ltr.survival.losses import ConcordanceLoss, CoxLoss, concordance_loss, cox_loss
from ltr.survival.metrics import c_index

__all__ = [
    "ConcordanceLoss",
    "CoxLoss",
    "KaplanMeier",
    "Times",
    "c_index",
    "concordance_loss",
    "cox_loss",
    "kaplan_meier",
    "survival_labels",
]
