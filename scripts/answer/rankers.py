"""The methods that are compared, and what each does on one split of a table, one record of JSON.

Every peer chooses its options by cross-validation in five parts, by average precision, or by NDCG@10 of lists. A record
has these fields:

==========================  ==========================================================================================
`table`, `split`, `ranker`  what it is about
`train`, `test`             rows and hits of the training set and of the test set
`measures`                  on the test set: `dcg` (base 2, labels 0 and 1), `hits 5%`, `hits 10%`, for travel
                            `hits 50`; with queries `ndcg@10` (gain 2^label - 1), a mean over lists with a hit
`options`                   what cross-validation chose
`values`, `chosen`          of `AutoRanker`: the mean statistic of each method out of fold, and the method deployed
`members`                   of `AutoRanker`: the measures of each of its methods by itself
`promised`                  of `AutoRanker`: for 5% and 10%, hits to expect, and least and largest by the 90% interval
`seconds`, `commit`         processor seconds, and commit of the code, with "+" where it had been changed
==========================  ==========================================================================================

Among tied scores, measures are those to expect if ties are broken at random.
"""

from __future__ import annotations

import importlib.util
import itertools
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from ltr.data import Dataset
from ltr.metrics import ndcg
from ltr.rankers import AutoRanker
from scripts._bench import Json
from scripts.answer.tables import BY_NAME, TABLES

FloatArray = NDArray[np.float64]
AUTO, LOGISTIC, LISTWISE = "AutoRanker", "logistic regression", "LightGBM lambdarank"
SHARES = {"5%": 0.05, "10%": 0.1}
MORE_TOPS = {"travel": {"50": 50}}
"""Further lengths at which hits are counted, by table."""
TREES, ROUNDS, FOLDS = 500, 150, 5
_RATES, _LEAVES, _DEPTHS = (0.03, 0.1), (4, 16), (2, 5)


@dataclass(frozen=True)
class Peer:
    """A method with the grid from which cross-validation takes its options.

    Attributes:
        make: makes the estimator from a seed and options.
        grid: the options; a grid of one is not cross-validated.
        package: the package that it needs.
        lists: the argument of `fit` that says what the lists are: ``"group"`` (their sizes), ``"qid"`` or
            ``"group_id"``; None for a classifier.
        cheaper: further options in cross-validation alone.
    """

    make: Callable[..., Any]
    grid: Sequence[Json]
    package: str = "sklearn"
    lists: str | None = None
    cheaper: Json = field(default_factory=dict)

    def fit(self, options: Json, train: Dataset, seed: int) -> Any:  # noqa: ANN401 (any estimator)
        """Return the estimator fitted to rows, which follow each other by list."""
        model = self.make(seed, **options)
        if self.lists is None:
            return model.fit(train.X, train.y)
        qid = np.zeros(train.n, dtype=np.int64) if train.qid is None else train.qid
        sizes = np.unique(qid, return_counts=True)[1]
        return model.fit(train.X, train.y, **{self.lists: sizes if self.lists == "group" else qid})

    def tuned(self, train: Dataset, seed: int) -> tuple[Any, Json]:
        """Return the estimator with the best options of the grid, and these options."""
        options = self.grid[0]
        if len(self.grid) > 1:
            parts = [[_rows(train, at) for at in part] for part in _folds(train, seed)]
            values = [
                np.mean(
                    [
                        _quality(scores_of(self.fit(one | self.cheaper, learn, seed), held.X), held)
                        for learn, held in parts
                    ]
                )
                for one in self.grid
            ]
            options = self.grid[int(np.argmax(values))]
        return self.fit(options, train, seed), options


def _grid(**values: Sequence[object]) -> list[Json]:
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def _logistic(seed: int, C: float) -> Any:  # noqa: ANN401
    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=2_000, random_state=seed))


def _forest(seed: int, min_samples_leaf: int, trees: int = TREES) -> Any:  # noqa: ANN401
    return RandomForestClassifier(trees, min_samples_leaf=min_samples_leaf, n_jobs=1, random_state=seed)


def _histogram(seed: int, learning_rate: float, leaves: int) -> Any:  # noqa: ANN401
    return HistGradientBoostingClassifier(
        learning_rate=learning_rate,
        max_iter=ROUNDS,
        max_leaf_nodes=leaves,
        min_samples_leaf=10,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )


def _lightgbm(kind: str) -> Callable[..., Any]:
    def make(seed: int, learning_rate: float, leaves: int, truncation: int | None = None) -> Any:  # noqa: ANN401
        import lightgbm

        options: Json = {"n_estimators": ROUNDS, "learning_rate": learning_rate, "num_leaves": leaves}
        options |= {"min_child_samples": 10, "reg_lambda": 1.0, "colsample_bytree": 0.8, "random_state": seed}
        options |= {} if truncation is None else {"lambdarank_truncation_level": truncation}
        return getattr(lightgbm, kind)(**options, n_jobs=1, verbose=-1)

    return make


def _xgboost(kind: str, **fixed: object) -> Callable[..., Any]:
    def make(seed: int, learning_rate: float, depth: int) -> Any:  # noqa: ANN401
        import xgboost

        options: Json = {"n_estimators": ROUNDS, "learning_rate": learning_rate, "max_depth": depth}
        options |= {"subsample": 0.8, "colsample_bytree": 0.8, "random_state": seed, "n_jobs": 1, **fixed}
        return getattr(xgboost, kind)(**options)

    return make


def _catboost(kind: str, **fixed: object) -> Callable[..., Any]:
    def make(seed: int, learning_rate: float, depth: int) -> Any:  # noqa: ANN401
        import catboost

        options: Json = {"iterations": ROUNDS, "learning_rate": learning_rate, "depth": depth, "random_seed": seed}
        options |= {"thread_count": 1, "verbose": False, "allow_writing_files": False, **fixed}
        return getattr(catboost, kind)(**options)

    return make


_BY_LEAVES = _grid(learning_rate=_RATES, leaves=_LEAVES)
_BY_DEPTH = _grid(learning_rate=_RATES, depth=_DEPTHS)
_LAMBDARANK = _lightgbm("LGBMRanker")

PEERS: Mapping[str, Peer] = {
    LOGISTIC: Peer(_logistic, _grid(C=[1.0])),
    "logistic regression, chosen C": Peer(_logistic, _grid(C=[0.001, 0.01, 0.1, 1.0, 10.0, 100.0])),
    "random forest": Peer(_forest, _grid(min_samples_leaf=[1, 5]), cheaper={"trees": 200}),
    "HistGradientBoosting": Peer(_histogram, _BY_LEAVES),
    "LightGBM": Peer(_lightgbm("LGBMClassifier"), _BY_LEAVES, "lightgbm"),
    # one list of all rows, of which LightGBM takes at most 10,000; the pairs are those with one of the first rows
    LISTWISE: Peer(
        _LAMBDARANK, _grid(learning_rate=_RATES, leaves=_LEAVES, truncation=[30, 10_000]), "lightgbm", "group"
    ),
    "XGBoost": Peer(_xgboost("XGBClassifier"), _BY_DEPTH, "xgboost"),
    "CatBoost": Peer(_catboost("CatBoostClassifier"), _grid(learning_rate=[0.05, 0.15], depth=_DEPTHS), "catboost"),
}
"""Methods for one list."""

PEERS_OF_LISTS: Mapping[str, Peer] = {
    LISTWISE: Peer(_LAMBDARANK, _BY_LEAVES, "lightgbm", "group"),
    "XGBoost rank:ndcg": Peer(_xgboost("XGBRanker", objective="rank:ndcg"), _BY_DEPTH, "xgboost", "qid"),
    "CatBoost YetiRank": Peer(
        _catboost("CatBoostRanker", loss_function="YetiRank"),
        _grid(learning_rate=[0.05, 0.15], depth=_DEPTHS),
        "catboost",
        "group_id",
    ),
}
"""Methods for lists by query."""


def rankers_of(table: str) -> list[str]:
    """Return the names of what is measured on a table, the baseline first, without those that are not installed."""
    peers = PEERS if BY_NAME[table] in TABLES else PEERS_OF_LISTS
    return [*(name for name, peer in peers.items() if importlib.util.find_spec(peer.package) is not None), AUTO]


def not_installed() -> list[str]:
    """Return the names of the packages without which some methods are left out."""
    packages = {peer.package for peer in (*PEERS.values(), *PEERS_OF_LISTS.values())}
    return sorted(name for name in packages if importlib.util.find_spec(name) is None)


def compute(table: str, split: int, ranker: str) -> Json:
    """Return the record of a method on a split, computed on one thread where the method lets us choose.

    Args:
        table: name of a table.
        split: seed of the split, and of the method.
        ranker: one of `rankers_of(table)`.
    """
    train, test = BY_NAME[table].halves(split)
    torch.set_num_threads(1)
    started = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns without names, classes that a fold does not have, ends of iterations
        if ranker == AUTO:
            found = _of_auto(train, test, split, table)
        else:
            model, options = (PEERS if train.qid is None else PEERS_OF_LISTS)[ranker].tuned(train, split)
            found = {"measures": measures(scores_of(model, test.X), test, table), "options": options}
    seconds = round(time.process_time() - started, 2)
    sizes = {"train": [train.n, train.n_pos], "test": [test.n, test.n_pos]}
    return {"table": table, "split": split, "ranker": ranker, **sizes, **found, "seconds": seconds}


def _of_auto(train: Dataset, test: Dataset, seed: int, table: str) -> Json:
    ranker = AutoRanker(seed=seed).fit(train.X, train.y, train.qid)
    scores = ranker.decision_function(test.X)
    members = ranker.scores_of_members(test.X, test.qid)
    found: Json = {
        "measures": measures(scores, test, table),
        "chosen": ranker.comparison_.chosen,
        "values": {name: round(value, 6) for name, value in ranker.comparison_.values.items()},
        "members": {name: measures(own, test, table) for name, own in members.items()},
    }
    if test.qid is None:
        first = np.sort(scores)[::-1]
        promised = {name: ranker.calibration_.predictive_interval(first[:k]) for name, k in _lengths(test.n).items()}
        found["promised"] = {name: [round(expected, 3), low, high] for name, (expected, low, high) in promised.items()}
    return found


def _lengths(n: int) -> dict[str, int]:
    return {name: max(1, round(share * n)) for name, share in SHARES.items()}


def measures(scores: FloatArray, test: Dataset, table: str = "") -> Json:
    """Return the measures of an order of the test set, those to expect if ties are broken at random."""
    if test.qid is not None:
        return {"ndcg@10": _quality(scores, test)}
    places = np.arange(test.n)
    found = {"dcg": _expected(scores, test.y, 1 / np.log2(2 + places))}
    for name, k in {**_lengths(test.n), **MORE_TOPS.get(table, {})}.items():
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


def _folds(train: Dataset, seed: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    if train.qid is not None:
        return list(GroupKFold(FOLDS, shuffle=True, random_state=seed).split(train.X, train.y, train.qid))
    parts = max(2, min(FOLDS, train.n_pos, train.n - train.n_pos))
    return list(StratifiedKFold(parts, shuffle=True, random_state=seed).split(train.X, train.y))


def _rows(data: Dataset, at: NDArray[np.int64]) -> Dataset:
    return Dataset(data.name, data.X[at], data.y[at], data.feature_names, None if data.qid is None else data.qid[at])


def _quality(scores: FloatArray, held: Dataset) -> float:
    """Return average precision, or NDCG@10 as a mean over the lists with a hit."""
    if held.qid is None:
        return float(average_precision_score(held.y, scores))
    given = torch.from_numpy(scores), torch.from_numpy(np.asarray(held.y, dtype=np.float64))
    found = ndcg(*given, qid=torch.from_numpy(held.qid), k=10, gain="exp2", ties="average")
    return round(float(found.nanmean()), 6)
