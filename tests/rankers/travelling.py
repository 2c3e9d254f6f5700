"""Fitted rankers of every kind, each fitted once, for tests of files and exports."""

import copy
import functools
import warnings

import numpy as np
from sklearn.linear_model import Ridge

from ltr.cards import CardRanker
from ltr.exact import Limits
from ltr.rankers import (
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    ReproducibleSearch,
    ScoreColumn,
    SurrogateRanker,
    TwoStageRanker,
)

STAGE = ExactRanker(limits=Limits(node_limit=20), method=ReproducibleSearch(restarts=2))
MLP = SurrogateRanker(scorer="mlp", hidden=(6, 4), layer_norm=True, max_steps=4)
ATTENTION = SurrogateRanker(scorer="attention", hidden=(4,), heads=2, blocks=2, max_steps=3)
# each with whether it scores rows by their lists
FITTED = {
    "linear": (SurrogateRanker("hinge"), False),
    "logistic": (LogisticRegressionRanker(), False),
    "rankboost": (RankBoostRanker(20), False),
    "exact": (STAGE, False),
    "points": (ExactRanker(integer=3, limits=Limits(node_limit=20), method=ReproducibleSearch(restarts=2)), False),
    "column": (ScoreColumn(1), False),
    "card": (CardRanker(max_questions=2, within=0), False),
    "mlp": (MLP, False),
    "mlp in double precision": (
        SurrogateRanker(scorer="mlp", hidden=(4,), optimizer="lbfgs", scale="standardize", validation=0, max_steps=5),
        False,
    ),
    "attention": (ATTENTION, True),
    "two stages": (TwoStageRanker("logistic", STAGE, 30, choose=False), False),
    "full list": (TwoStageRanker("rankboost", STAGE, None, choose=False), False),
    "correction": (TwoStageRanker("ranknet", STAGE, 30, choose=False, base_score=True), False),
    "network reranked": (TwoStageRanker(MLP, STAGE, 30, choose=False), False),
    "queries reranked": (TwoStageRanker("logistic", STAGE, 4, choose=False), True),
    "attention reranked": (TwoStageRanker(ATTENTION, STAGE, 4, choose=False), True),
    "scores reranked": (TwoStageRanker(ScoreColumn(0), STAGE, 4, choose=False), True),
}
OTHER_BASE = TwoStageRanker(Ridge(), STAGE, 30, choose=False)


def one_list(n=200, seed=0):
    """Features on different scales and labels 0 and 1."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    return Z * [0.1, 1.0, 300.0] + [1.0, -2.0, 50.0], (Z[:, 0] - Z[:, 1] + rng.normal(size=n) > 0.3).astype(int)


@functools.cache
def fitted(name):
    """Return a fitted ranker and whether it scores rows by their lists."""
    ranker, lists = FITTED[name]
    X, y = one_list()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps do not converge
        return ranker.fit(X, y, **({"qid": np.arange(len(y)) % 10} if lists else {})), lists


@functools.cache
def calibrated(name):
    """Return a calibrated copy of a fitted ranker, and whether it scores rows by their lists."""
    ranker, lists = fitted(name)
    X, y = one_list()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return copy.copy(ranker).calibrate(X, y, np.arange(len(y)) % 10 if lists else None, folds=3), lists
