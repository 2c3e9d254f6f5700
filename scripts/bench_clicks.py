"""Measure rankers that learn from simulated clicks: without weights, with true ones, and with bias learnt from clicks.

The clicks are those of `docs/clicks.md`: queries of ten rows with eight features, shown in the order of an old ranker
that knows four of them; a row at position k is looked at with probability 1/k or 1/k², and clicked if it is relevant,
or by mistake in 5 % of the looks at others. Each query was shown once, so that no item tells the bias by itself. A
value is the mean NDCG by true relevance on 2,000 new queries; each seed is another draw of queries and clicks.

``lightgbm, position`` and ``xgboost, unbiased`` are the libraries' own ways to learn the bias with the ranker.
"""

from __future__ import annotations

import lightgbm
import numpy as np
import xgboost

from ltr import gbdt
from ltr.clicks import fit_with_position_bias
from ltr.metrics import ndcg
from ltr.rankers import SurrogateRanker
from scripts._bench import Bench, FloatArray, IntArray, Json, grid, made_on, pivot, table

_FORMS = (
    *("linear, no weights", "linear, joint", "linear, true weights"),
    *("lightgbm, no weights", "lightgbm, joint", "lightgbm, true weights", "lightgbm, position"),
    *("xgboost, no weights", "xgboost, unbiased"),
)
_SETTINGS = grid(bias=(1, 2), queries=(300, 3000))
_SEEDS, _ROWS = 10, 10
_TREES: Json = {"n_estimators": 100, "learning_rate": 0.05, "num_leaves": 8}


def lists(rng: np.random.Generator, queries: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Return features, true relevance and query of the rows."""
    X = rng.normal(size=(queries * _ROWS, 8))
    utility = X @ _direction() + rng.normal(size=len(X))
    return X, (utility > np.quantile(utility, 0.8)).astype(np.int64), np.repeat(np.arange(queries), _ROWS)


def shown(rng: np.random.Generator, X: FloatArray, relevant: IntArray, bias: int) -> tuple[IntArray, IntArray]:
    """Return clicks and positions of rows that an old ranker has ordered."""
    old = (X[:, :4] @ _direction()[:4] + 0.5 * rng.normal(size=len(X))).reshape(-1, _ROWS)
    position = 1 + np.argsort(np.argsort(-old, axis=1), axis=1).ravel()
    looked_at, mistake = rng.random(len(X)) < 1 / position**bias, rng.random(len(X)) < 0.05
    return (looked_at & ((relevant == 1) | mistake)).astype(np.int64), position


def _direction() -> FloatArray:
    return np.random.default_rng(0).normal(size=8)


class Boosted(lightgbm.LGBMRanker):
    """LightGBM as an estimator that takes queries, whose rows are one after the other."""

    def fit(self, X: FloatArray, y: IntArray, qid: IntArray, sample_weight: FloatArray | None = None) -> Boosted:
        """Fit to rows of queries."""
        return super().fit(X, y, group=np.unique(qid, return_counts=True)[1], sample_weight=sample_weight)


def measure(form: str, bias: int, queries: int) -> Json:
    """Return the true NDCG on new queries, for each seed."""
    return {"ndcg": [_measured(form, bias, queries, seed) for seed in range(_SEEDS)]}


def _measured(form: str, bias: int, queries: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    X, relevant, qid = lists(rng, queries)
    clicked, position = shown(rng, X, relevant, bias)
    new_X, new_relevant, new_qid = lists(rng, 2000)
    library, _, way = form.partition(", ")
    if library == "linear":
        ranker = SurrogateRanker("ranknet(pairs=sum)")
    else:
        ranker = Boosted(**_TREES, objective=gbdt.objective("ranknet(pairs=sum)"), n_jobs=1, verbose=-1)
    if way == "joint":
        ranker, _ = fit_with_position_bias(ranker, X, clicked, qid, position)
    elif way == "position":
        sizes = np.unique(qid, return_counts=True)[1]
        data = lightgbm.Dataset(X, clicked, group=sizes, position=position - 1)
        ranker = lightgbm.train({**_TREES, "objective": "lambdarank", "num_threads": 1, "verbose": -1}, data)
    elif library == "xgboost":
        order = np.lexsort((position, qid))  # which its unbiased mode takes for the positions
        given = {"n_estimators": 100, "learning_rate": 0.05, "max_depth": 3, "n_jobs": 1}
        ranker = xgboost.XGBRanker(**given, objective="rank:ndcg", lambdarank_unbiased=way == "unbiased")
        ranker.fit(X[order], clicked[order], qid=qid[order])
    else:
        weights = np.where(clicked == 1, position.astype(np.float64) ** bias, 1.0)
        ranker.fit(X, clicked, qid, sample_weight=weights if way == "true weights" else None)
    values = ndcg(np.asarray(ranker.predict(new_X), dtype=np.float64), new_relevant, qid=new_qid)
    return float(values.nanmean())


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of the means over seeds."""
    settings = {f"1/k{'²' * (one['bias'] == 2)}, {one['queries']}": one for one in _SETTINGS}
    shown = table(records, {"form": "ranker"}, pivot(lambda own: f"{np.mean(own[0]['ndcg']):.3f}", settings))
    return {"clicks": f"{made_on(records)} Mean of {_SEEDS} seeds.\n\n{shown}\n"}


_REQUESTS = [{"form": form} | setting for form in _FORMS for setting in _SETTINGS]
_QUICK = {"form": ["linear, no weights", "linear, joint"], "queries": ["300"]}
BENCH = Bench("clicks", "docs/clicks.md", _REQUESTS, _QUICK, measure, tables)
