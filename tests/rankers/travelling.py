"""Fitted rankers of every kind, each fitted once, for tests of files and exports."""

import copy
import functools
import warnings

import numpy as np
import onnxruntime
from sklearn.linear_model import Ridge

from ltr.cards import CardRanker
from ltr.exact import Limits
from ltr.rankers import (
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
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


def reloaded(ranker, folder):
    """Return the ranker from a file that it is saved to."""
    path = folder / f"model{ranker.file_suffix}"
    ranker.save(path)
    return Ranker.load(path)


def session_of(ranker, folder, **options):
    ranker.to_onnx(folder / "model.onnx", **options)
    return onnxruntime.InferenceSession(folder / "model.onnx")


def outputs_of(session, X, qid=None):
    """Return the outputs of an ONNX model by name; lists are given where they are asked for."""
    names = [one.name for one in session.get_inputs()]
    feeds = {"features": X} if "features" in names else {f"x{j}": column for j, column in enumerate(X.T)}
    feeds["query"] = np.zeros(len(X), dtype=np.int64) if qid is None else qid
    found = session.run(None, {name: feeds[name] for name in names})
    return dict(zip([one.name for one in session.get_outputs()], found, strict=True))


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
