"""Two-stage rankers by one flat list of options, for tests."""

import numpy as np

from ltr.exact import Limits
from ltr.rankers import ExactRanker, TwoStageRanker

LIMITS = ("time_limit", "gap", "node_limit", "memory_limit", "seed")


def exact(statistic="dcg", **options):
    """An exact ranker; limits stand beside the other options."""
    limits = Limits(**{name: options.pop(name) for name in LIMITS if name in options})
    return ExactRanker(statistic, limits=limits, **options)


def two_stage(base="logistic", statistic="dcg", top_k=50, **options):
    """A two-stage ranker; the options of its exact stage stand beside its own."""
    return TwoStageRanker(base, exact(statistic, **options), top_k, choose=False)


class Scores:
    """A base ranker that scores by one column."""

    def __init__(self, column=0, linear=True):
        self.column, self.linear = column, linear

    def fit(self, X, y, qid=None):
        self.d = np.shape(X)[1]
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, self.column].astype(float)

    @property
    def linear_weights(self):
        return np.eye(self.d)[self.column] if self.linear else None
