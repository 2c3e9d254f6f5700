"""Times until an event: metrics, curves, and losses ``loss(scores, time, event)``.

A higher score means an earlier event. Metrics are computed by NumPy from the labels of `survival_labels`, losses by
torch from tensors of times and events. `ltr.outcomes` defines which rows are comparable.
"""

from ltr.outcomes import KaplanMeier, Times, kaplan_meier, survival_labels
from ltr.survival.losses import ConcordanceLoss, CoxLoss
from ltr.survival.metrics import DynamicAUC, c_index, cumulative_dynamic_auc, uno_c_index

__all__ = [
    "ConcordanceLoss",
    "CoxLoss",
    "DynamicAUC",
    "KaplanMeier",
    "Times",
    "c_index",
    "cumulative_dynamic_auc",
    "kaplan_meier",
    "survival_labels",
    "uno_c_index",
]
