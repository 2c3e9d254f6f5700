"""The cells of the study: on one split of a data set, what a base ranker's order gains on the test set by reranking.

A cell is one line of JSON:

==============================  ======================================================================================
`data`, `split`, `base`         what the cell is about; `split` is a number, or "own" for the data set's own two parts
`statistic`, `top_k`            what is maximised and measured, and the length of the reranked list
`rows`                          rows and positives of the training set and of the test set
`train`, `test`                 value of the statistic on each set, for each ranker by name
`seconds`                       processor seconds of each fit, all threads and the base ranker included
`status`                        how the search for the optimum and for one and two features ended
`choice`                        the choice as a dictionary: what was chosen, and the gain that was promised
`commit`, `machine`             commit of the code, with "+" where it had been changed, and the machine
==============================  ======================================================================================

The rankers are `base`, `chosen` (what the toolkit chooses), `full` (the linear scorer with the largest statistic on the
training list), and the candidates: `+ 1` and `+ 2` (the base score and so many features, with the largest statistic)
and `spread S` (central weights).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from ltr.data import Dataset, load, load_test
from ltr.exact import Limits
from ltr.metrics import normalized_rank_statistic, rank_statistic
from ltr.rankers import ExactRanker, SurrogateRanker, TwoStageRanker
from ltr.rankers.choice import SPREADS, Choice
from scripts._bench import Json, halves

PAPER = (
    "gaussians", "roc_standin", "abalone19", "uis", "travel", "nhanes", "pima", "haberman", "polypharm", "glow500",
)  # fmt: skip
"""The data sets of the paper."""
INSTALLED = ("breast_cancer", "diabetes", "digits", "wine", "fair", "fair_pt", "anes96", "randhie", "star98")
"""Tables of installed packages, on which nothing was tuned."""
QUERIES = "lightgbm_lambdarank"
"""The data set by query."""
OWN = "own"
"""Name of the split into the data set's own training and test part."""
SPLITS = (*range(10), OWN)
FULL, CHOSEN, BASE = "full", "chosen", "base"
SPARSE = {f"+ {k}": k for k in (1, 2)}
SPREAD = "spread"
CENTRAL = {f"{SPREAD} {spread:g}": spread for spread in SPREADS}
TIMED = [*CENTRAL][len(CENTRAL) // 2]
"""Name of the correction whose fit is timed."""

STATISTIC, TOP_K = "dcg(base=e)", 100
_QUERY_STATISTIC, _QUERY_K = "dcg@10", 10  # normalised
SECONDS = 3.0
_NO_PROOF = 0.2  # seconds for corrections that are not timed: central weights need no search
_HIDDEN, _STEPS = (16,), 30  # of the network

_LINEAR = "logistic_regression"
BASES: dict[str, Callable[[bool], Any]] = {
    _LINEAR: lambda graded: "logistic",
    "rankboost": lambda graded: "rankboost",
    "gradient_boosting": lambda graded: (HistGradientBoostingRegressor if graded else HistGradientBoostingClassifier)(
        random_state=0
    ),
    "ranknet_mlp": lambda graded: SurrogateRanker(
        "ranknet", scorer="mlp", hidden=_HIDDEN, max_steps=_STEPS, optimizer="lbfgs", scale="standardize", validation=0
    ),
}
"""The base rankers; each takes whether labels are graded. Only the first is linear in the features."""
BY_QUERY = tuple(base for base in BASES if base != "rankboost")
"""Those that learn from lists by query and from graded labels."""


def parts_of(name: str, split: int | str) -> tuple[Dataset, Dataset]:
    """Return training set and test set: the data set's own, or halves of all rows or queries."""
    data, own = load(name), load_test(name)
    if own is None:
        return halves(data, int(split))
    if split == OWN:
        return data, own
    X, y = np.concatenate([data.X, own.X]), np.concatenate([data.y, own.y])
    qid = np.concatenate([data.qid, own.qid + data.n_queries])
    return halves(Dataset(name, X, y, data.feature_names, qid, copy=False), int(split))


class FewColumns(TwoStageRanker):
    """A ranker of two stages of which `max_nonzeros` limits the correction alone: the base has all columns."""

    def _weight_constraints(self, *, of_base: bool = True) -> None:
        return None


def measure(data: str, split: int | str, base: str) -> Json:
    """Return what came of a cell."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the network is stopped early on purpose
        return _measure(data, split, base)


def _measure(data: str, split: int | str, base: str) -> Json:
    train, test = parts_of(data, split)
    by_query = train.qid is not None
    statistic, top_k = (_QUERY_STATISTIC, _QUERY_K) if by_query else (STATISTIC, TOP_K)

    def two_stages(seconds: float, max_nonzeros: int | None = None, **options: Any) -> TwoStageRanker:  # noqa: ANN401
        limits = Limits(time_limit=seconds)
        exact = ExactRanker(statistic, normalize=by_query, max_nonzeros=max_nonzeros, limits=limits)
        return FewColumns(BASES[base](by_query), exact, top_k, **{"choose": False, **options})

    def central(name: str) -> TwoStageRanker:
        return two_stages(SECONDS if name == TIMED else _NO_PROOF, base_score=True, spread=CENTRAL[name])

    rankers = {
        FULL: two_stages(SECONDS),
        CHOSEN: two_stages(SECONDS, choose=True),
        **{name: two_stages(SECONDS, k, base_score=True) for name, k in SPARSE.items()},
        **{name: central(name) for name in CENTRAL},
    }
    found: Json = {"train": {}, "test": {}, "seconds": {}, "status": {}}
    for name, ranker in rankers.items():
        started = time.process_time()
        ranker.fit(train.X, train.y, train.qid)
        if name not in CENTRAL or name == TIMED:
            found["seconds"][name] = round(time.process_time() - started, 3)
        for part, rows in (("train", train), ("test", test)):
            found[part][name] = ranker.score(rows.X, rows.y, rows.qid)
        if ranker.solution_ is not None and name in (FULL, *SPARSE):
            found["status"][name] = ranker.solution_.status.value
    for part, rows in (("train", train), ("test", test)):
        found[part][BASE] = base_value(rankers[FULL], rows)
    choice = rankers[CHOSEN].choice_
    assert choice is not None
    return {
        "statistic": f"n{statistic}" if by_query else statistic,
        "top_k": top_k,
        "rows": {"train": [train.n, train.n_pos], "test": [test.n, test.n_pos]},
        **found,
        "choice": choice.to_dict(),
    }


def by_rule(cell: Json) -> Json:
    """Return a cell with the choice that the rule of this code makes of its gains, and what that choice reaches.

    So a change of the rule needs no new fits: each candidate's value is in the cell.
    """
    told = cell["choice"]
    choice = Choice.by_rule(
        told["gains"], told["deviations"], told["statistic"], linear=cell["base"] == _LINEAR
    ).to_dict()
    kept = {name: told[name] for name in ("list_gain", "what")}
    reached = {part: cell[part] | {CHOSEN: cell[part][choice["chosen"]]} for part in ("train", "test")}
    return cell | reached | {"choice": choice | kept}


def base_value(ranker: TwoStageRanker, rows: Dataset) -> float:
    """Return the value of the statistic in the order of the base ranker, as a mean over lists."""
    base, exact = ranker.base_, ranker.exact_
    score = base.decision_function if hasattr(base, "decision_function") else base.predict
    measure = normalized_rank_statistic if exact.normalize else rank_statistic
    lists = None if rows.qid is None else torch.from_numpy(rows.qid)
    scores, labels = torch.from_numpy(np.asarray(score(rows.X), dtype=np.float64)), torch.from_numpy(rows.y)
    return float(measure(scores, labels, exact.statistic, gain=exact.gain, qid=lists).nanmean())
