"""Compare objectives of this package in LightGBM and XGBoost with the boosters' own: test NDCG@10 and time per round.

Each objective trains by the same options, once per seed, which draws the rows and columns of the trees (and generated
data); the number of rounds is the one with the best NDCG@10 on lists held out from training. `docs/boosters.md` has
the rest.
"""

from __future__ import annotations

import time

import lightgbm
import numpy as np
import torch
import xgboost

from ltr.data import Dataset, load, load_test
from ltr.gbdt import Objective, metric, objective
from ltr.metrics import ndcg
from scripts._bench import Bench, IntArray, Json, grid, made_on, peak, pivot, table, take, value, with_error

_OWN = {"lightgbm": ("lambdarank", "rank_xendcg"), "xgboost": ("rank:pairwise", "rank:ndcg")}
_OURS = (
    *("ranknet", "ranknet, top=30", "p_norm_push(p=2,inner=logistic)", "lambda(statistic=dcg)"),
    *("list_net", "list_mle"),
)
_SETS = ("lightgbm_lambdarank", "letor, 500 lists", "letor, long lists")
_ROUNDS, _PATIENCE, _SEEDS = 400, 40, 5
_LENGTHS = (10, 100, 1_000, 10_000, 100_000)
_ROWS, _TIMED = 1_000_000, 8
_MEASURE = metric("ndcg@10")


def letor(rng: np.random.Generator, lists: int, least: int, most: int) -> Dataset:
    """Return lists like those of web search: products and steps of features, effects of the query, noise."""
    sizes = rng.integers(least, most + 1, lists)
    qid = np.repeat(np.arange(lists), sizes)
    X = rng.normal(size=(sizes.sum(), 46)) + 0.7 * rng.normal(size=(lists, 46))[qid]  # each query shifts the features
    X[:, 20:] = np.maximum(X[:, 20:], 0.0)  # many features are 0 in most rows
    relevance = X[:, 0] + 0.8 * X[:, 1] * (X[:, 2] > 0) + X[:, 3] * X[:, 4] + np.tanh(2 * X[:, 20]) - X[:, 21] * X[:, 5]
    relevance += 0.4 * X[:, 6:16].sum(1) / np.sqrt(10) + rng.normal(size=len(X)) * 1.2 + rng.normal(size=lists)[qid]
    return Dataset("letor", X, np.searchsorted([1.0, 2.2, 3.3, 4.5], relevance), qid=qid)


def parts(name: str, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    """Return training, validation and test rows."""
    rng = np.random.default_rng(seed)
    if name == "lightgbm_lambdarank":
        train, test = load(name), load_test(name)
    elif name == "letor, 500 lists":
        train, test = letor(rng, 500, 20, 180), letor(rng, 300, 20, 180)
    else:
        train, test = letor(rng, 24, 500, 4000), letor(rng, 24, 500, 4000)
    held = np.isin(train.qid, rng.permutation(train.n_queries)[: train.n_queries // 4])
    return take(train, ~held), take(train, held), test


def sizes_of(data: Dataset) -> IntArray:
    """Return the lengths of the lists, whose rows follow each other."""
    return np.unique(data.qid, return_counts=True)[1]


def named(library: str, name: str) -> Objective | str:
    """Return the library's own objective of a name, or ours of a name such as ``"ranknet, top=30"``."""
    if name in _OWN[library]:
        return name
    loss, _, top = name.partition(", top=")
    return objective(loss, top=int(top) if top else None)


def measure(library: str, name: str, data: str = "", seed: int = 0, length: int = 0) -> Json:
    """Return the quality of an objective on a data set, or its speed on lists of one length."""
    return speed(library, name, length) if length else quality(library, name, data, seed)


def quality(library: str, name: str, data: str, seed: int) -> Json:
    """Return the test NDCG@10 of an objective, and the number of rounds."""
    train, held, test = parts(data, seed)
    if library == "lightgbm":
        lists = lightgbm.Dataset(train.X, train.y, group=sizes_of(train))
        options: Json = {"learning_rate": 0.1, "num_leaves": 31, "min_data_in_leaf": 20, "verbose": -1}
        options |= {"num_threads": 1, "feature_fraction": 0.7, "bagging_fraction": 0.8, "bagging_freq": 1, "seed": seed}
        best = lightgbm.train(
            {**options, "objective": named(library, name), "metric": "None"},
            lists,
            _ROUNDS,
            valid_sets=[lightgbm.Dataset(held.X, held.y, group=sizes_of(held), reference=lists)],
            feval=_MEASURE,
            callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
        )
        scores, rounds = best.predict(test.X), best.best_iteration
    else:
        given = named(library, name)
        own = {"objective": given} if isinstance(given, str) else {}
        options = {"learning_rate": 0.1, "max_depth": 6, "nthread": 1, "subsample": 0.8, "colsample_bytree": 0.7}
        booster = xgboost.train(
            {**options, "seed": seed, "disable_default_eval_metric": True, **own},
            xgboost.DMatrix(train.X, train.y, qid=train.qid),
            _ROUNDS,
            obj=None if own else given,
            evals=[(xgboost.DMatrix(held.X, held.y, qid=held.qid), "held")],
            custom_metric=_MEASURE,
            maximize=True,
            early_stopping_rounds=_PATIENCE,
            verbose_eval=False,
        )
        rounds = booster.best_iteration + 1
        scores = booster.predict(xgboost.DMatrix(test.X), iteration_range=(0, rounds))
    found = ndcg(torch.tensor(scores), torch.tensor(test.y), qid=torch.tensor(test.qid), k=10, gain="exp2")
    return {"ndcg": float(found.nanmean()), "rounds": rounds}


def speed(library: str, name: str, length: int) -> Json:
    """Return the best processor time of a round, that of the objective in it, and the memory that it adds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, 20)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=_ROWS)), 0, 4)
    sizes, given = np.full(_ROWS // length, length), named(library, name)
    own = isinstance(given, str)
    inner: list[float] = []
    added: list[float] = []

    def timed(scores: object, data: object) -> object:
        before, start = peak(), time.process_time()
        found = given(scores, data)  # type: ignore[operator]
        inner.append(time.process_time() - start)
        added.append(peak() - before)
        return found

    fobj = None if own else timed
    if library == "lightgbm":
        # with a bin for each grade of labels; LightGBM refuses lists of more than 10,000 rows to its own objectives
        rows = lightgbm.Dataset(X, y, group=sizes)
        booster = lightgbm.Booster({"objective": name if own else "none", "verbose": -1, "num_threads": 1}, rows)
        rounds = [lambda: booster.update(fobj=fobj)] * _TIMED
    else:
        matrix = xgboost.QuantileDMatrix(X, y, qid=np.repeat(np.arange(len(sizes)), sizes), nthread=1)
        other = xgboost.Booster({"nthread": 1, **({"objective": name} if own else {})}, [matrix])
        rounds = [lambda at=at: other.update(matrix, at, fobj=fobj) for at in range(_TIMED)]  # type: ignore[misc]
    seconds = []
    for one in rounds:
        start = time.process_time()
        one()
        seconds.append(time.process_time() - start)
    return {"seconds": min(seconds), "objective": min(inner, default=None), "megabytes": max(added, default=None)}


def tables(records: list[Json]) -> dict[str, str]:
    """Return the tables of quality and of speed."""
    whose = {True: "own", False: "ours"}
    qualities = [
        one | {"name": f"{whose[one['name'] in _OWN[one['library']]]}: {one['name']}"}
        for one in records
        if "ndcg" in one
    ]
    means = pivot(
        lambda own: f"{with_error([one['ndcg'] for one in own])} ({len(own)})", {data: {"data": data} for data in _SETS}
    )
    speeds = [one | {"rows": f"{one['length']:,}"} for one in records if "seconds" in one]
    times = {
        "a round": value("seconds", "{:.2f} s"),
        "of it the objective": value("objective", "{:.2f} s"),
        "its memory": value("megabytes", "{:.0f} MB"),
    }
    versions = f"LightGBM {lightgbm.__version__}, XGBoost {xgboost.__version__}"
    return {
        "gbdt": f"{made_on(records)} {versions}, one thread.\n\nTest NDCG@10, mean over seeds, whose number is in "
        f"brackets:\n\n{table(qualities, {'library': '', 'name': 'objective'}, means)}\n\n"
        f"{_ROWS:,} rows, 20 features, 31 leaves or depth 6:\n\n"
        f"{table(speeds, {'library': '', 'name': 'objective', 'rows': 'rows per list'}, times)}\n"
    }


_REQUESTS = [
    request
    for library, own in _OWN.items()
    for request in grid(library=[library], name=(*own, *_OURS), data=_SETS, seed=range(_SEEDS))
]
_REQUESTS += [
    request
    for length in _LENGTHS
    for library, own in _OWN.items()
    for request in grid(library=[library], name=(own[0], "ranknet", "ranknet, top=30"), length=[length])
]
_QUICK = {"name": ["ranknet"], "data": ["None"], "length": ["1000"]}
BENCH = Bench("gbdt", "docs/boosters.md", _REQUESTS, _QUICK, measure, tables, alone=True)
