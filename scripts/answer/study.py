"""How `AutoRanker` and the methods that analysts use rank new rows: each method on one split of a table.

Every peer chooses its `options` by cross-validation in five parts, by average precision, or by NDCG@10 of lists. A
record, one line of ``docs/answer/results.jsonl``, has rows and hits of `train` and `test`, and the `measures` on the
test set: `dcg` (base 2, labels 0 and 1), `hits 5%` and `hits 10%`, or with queries `ndcg@10` (gain 2^label - 1), a mean
over lists with a hit. Among tied scores they are those to expect if ties are broken at random. `AutoRanker` has, too:
`values`, the mean statistic of each method out of fold; `chosen`; `members`, the measures of each method by itself; and
`promised`, for 5% and 10% the hits to expect, and the least and the most by the 90% interval. `LTR_DATA` is needed.
"""

from __future__ import annotations

import importlib
import time
import tomllib
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ltr.data import Dataset
from ltr.metrics import ndcg
from ltr.rankers import AutoRanker
from scripts._bench import Bench, FloatArray, IntArray, Json, grid, take
from scripts.answer.report import AUTO, LISTWISE, LOGISTIC, SHARES, texts
from scripts.answer.tables import BY_NAME, LISTS, TABLES

_FOLDS = 5


@dataclass(frozen=True)
class Peer:
    """A method of ``peers.toml``."""

    kind: str
    fixed: Json
    grid: Json
    lists: str = ""
    quick: Json = field(default_factory=dict)

    def fit(self, options: Json, train: Dataset, seed: int) -> Any:  # noqa: ANN401 (any estimator)
        """Return the estimator fitted to rows, which follow each other by list."""
        module, _, kind = self.kind.partition(":")
        model = getattr(importlib.import_module(module), kind)(**{**self.fixed, **options}, random_state=seed)
        if kind == "LogisticRegression":
            model = make_pipeline(StandardScaler(), model)
        if not self.lists:
            return model.fit(train.X, train.y)
        qid = np.zeros(train.n, dtype=np.int64) if train.qid is None else train.qid
        sizes = np.unique(qid, return_counts=True)[1]
        return model.fit(train.X, train.y, **{self.lists: sizes if self.lists == "group" else qid})

    def tuned(self, train: Dataset, seed: int) -> tuple[Any, Json]:
        """Return the estimator with the best options of the grid, and these options."""
        best, *others = every = grid(**self.grid)
        if others:
            parts = [[take(train, at) for at in part] for part in _folds(train, seed)]
            values = []
            for options in every:
                models = [(self.fit(options | self.quick, learn, seed), held) for learn, held in parts]
                values.append(np.mean([_quality(scores_of(model, held.X), held) for model, held in models]))
            best = every[int(np.argmax(values))]
        return self.fit(best, train, seed), best


with Path(__file__).with_name("peers.toml").open("rb") as _file:
    PEERS, PEERS_OF_LISTS = (
        {name: Peer(**peer) for name, peer in peers.items()} for peers in tomllib.load(_file).values()
    )


def measure(table: str, split: int, ranker: str) -> Json:
    """Return what came of a method on a split, whose number is also the seed of the method."""
    train, test = BY_NAME[table].halves(split)
    started = time.process_time()
    warnings.simplefilter("ignore")  # columns without names, classes that a fold does not have, ends of iterations
    if ranker == AUTO:
        found = _of_auto(train, test, split)
    else:
        model, options = (PEERS if train.qid is None else PEERS_OF_LISTS)[ranker].tuned(train, split)
        found = {"measures": measures(scores_of(model, test.X), test), "options": options}
    seconds = round(time.process_time() - started, 2)
    return {"train": [train.n, train.n_pos], "test": [test.n, test.n_pos], **found, "seconds": seconds}


def _of_auto(train: Dataset, test: Dataset, seed: int) -> Json:
    ranker = AutoRanker(seed=seed).fit(train.X, train.y, train.qid)
    scores = ranker.decision_function(test.X)
    members = ranker.scores_of_members(test.X, test.qid)
    found: Json = {
        "measures": measures(scores, test),
        "chosen": ranker.comparison_.chosen,
        "values": {name: round(value, 6) for name, value in ranker.comparison_.values.items()},
        "members": {name: measures(own, test) for name, own in members.items()},
    }
    if test.qid is None:
        first = np.sort(scores)[::-1]
        promised = {name: ranker.calibration_.predictive_interval(first[:k]) for name, k in _lengths(test.n).items()}
        found["promised"] = {name: [round(expected, 3), low, high] for name, (expected, low, high) in promised.items()}
    return found


def _lengths(n: int) -> dict[str, int]:
    return {name: max(1, round(share * n)) for name, share in SHARES.items()}


def measures(scores: FloatArray, test: Dataset) -> Json:
    """Return the measures of an order of the test set, those to expect if ties are broken at random."""
    if test.qid is not None:
        return {"ndcg@10": _quality(scores, test)}
    places = np.arange(test.n)
    found = {"dcg": _expected(scores, test.y, 1 / np.log2(2 + places))}
    for name, k in _lengths(test.n).items():
        found[f"hits {name}"] = _expected(scores, test.y, places < k)
    return found


def _expected(scores: FloatArray, labels: FloatArray, weights: NDArray[Any]) -> float:
    """Return the sum of the weights of the hits' places; tied rows share the weights of their places."""
    order = np.argsort(-scores, kind="stable")
    runs = np.unique(-scores[order], return_inverse=True)[1]
    means = np.bincount(runs, weights) / np.bincount(runs)
    return round(float(means[runs] @ (labels[order] > 0)), 6)


def scores_of(model: Any, X: FloatArray) -> FloatArray:  # noqa: ANN401 (any estimator)
    """Return the scores by which a fitted estimator ranks rows."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X)[:, 1], dtype=np.float64)
    return np.asarray(model.predict(X), dtype=np.float64)


def _folds(train: Dataset, seed: int) -> list[tuple[IntArray, IntArray]]:
    if train.qid is not None:
        return list(GroupKFold(_FOLDS, shuffle=True, random_state=seed).split(train.X, train.y, train.qid))
    parts = max(2, min(_FOLDS, train.n_pos, train.n - train.n_pos))
    return list(StratifiedKFold(parts, shuffle=True, random_state=seed).split(train.X, train.y))


def _quality(scores: FloatArray, held: Dataset) -> float:
    """Return average precision, or NDCG@10 as a mean over the lists with a hit."""
    if held.qid is None:
        return float(average_precision_score(held.y, scores))
    given = torch.from_numpy(scores), torch.from_numpy(np.asarray(held.y, dtype=np.float64))
    found = ndcg(*given, qid=torch.from_numpy(held.qid), k=10, gain="exp2", ties="average")
    return round(float(found.nanmean()), 6)


_REQUESTS = grid(split=range(20, 30), table=[one.name for one in TABLES], ranker=[*PEERS, AUTO])
_REQUESTS += grid(split=range(20, 30), table=[one.name for one in LISTS], ranker=[*PEERS_OF_LISTS, AUTO])
_QUICK = {"table": ["pima", "wine", "travellers"], "split": ["25"], "ranker": [AUTO, LOGISTIC, LISTWISE]}
BENCH = Bench("answer", "docs/answer.md", _REQUESTS, _QUICK, measure, texts, kept="docs/answer/results.jsonl")
