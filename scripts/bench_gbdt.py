"""Compare objectives of this package in LightGBM and XGBoost with the boosters' own: test NDCG@10 and time per round.

*Quality.* Each objective trains on a data set by the same options, once per seed, which draws the rows and columns of
the trees (and generated data); the number of rounds is the one with the best NDCG@10 on lists held out from training.
Data: ``lightgbm_lambdarank`` (in LTR_DATA), and generated sets with the shape of LETOR's (46 features, grades 0 to 4).

*Speed.* Seconds of processor time per round on a million rows in lists of one length, and the most memory that the
objective adds to the process while it computes derivatives.

    python scripts/bench_gbdt.py --out runs/gbdt --docs docs/boosters.md
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from dataclasses import dataclass

import lightgbm
import numpy as np
import torch
import xgboost
from _bench import Json, Records, apart, command_line, parsed, peak, publish
from numpy.typing import NDArray

from ltr.data import load, load_test
from ltr.gbdt import Objective, metric, objective
from ltr.metrics import ndcg
from trainers.provenance import machine
from trainers.tables import markdown_table

_OWN = {"lightgbm": ("lambdarank", "rank_xendcg"), "xgboost": ("rank:pairwise", "rank:ndcg")}
_OURS = (
    "ranknet",
    "ranknet, top=30",
    "p_norm_push(p=2,inner=logistic)",
    "lambda(statistic=dcg)",
    "list_net",
    "list_mle",
)
_SETS = ("lightgbm_lambdarank", "letor, 500 lists", "letor, long lists")
_ROUNDS, _PATIENCE = 400, 40
_LENGTHS = (10, 100, 1_000, 10_000, 100_000)
_ROWS, _TIMED = 1_000_000, 8
_MEASURE = metric("ndcg@10")


@dataclass
class Part:
    """Rows in lists that follow each other."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    sizes: NDArray[np.int64]

    @property
    def qid(self) -> NDArray[np.int64]:
        """The list of each row."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def some(self, lists: NDArray[np.bool_]) -> Part:
        """Return the rows of some lists."""
        rows = lists[self.qid]
        return Part(self.X[rows], self.y[rows], self.sizes[lists])


def letor(rng: np.random.Generator, lists: int, least: int, most: int) -> Part:
    """Return lists like those of web search: products and steps of features, effects of the query, noise."""
    sizes = rng.integers(least, most + 1, lists)
    qid = np.repeat(np.arange(lists), sizes)
    X = rng.normal(size=(sizes.sum(), 46)) + 0.7 * rng.normal(size=(lists, 46))[qid]  # each query shifts the features
    X[:, 20:] = np.maximum(X[:, 20:], 0.0)  # many features are 0 in most rows
    relevance = X[:, 0] + 0.8 * X[:, 1] * (X[:, 2] > 0) + X[:, 3] * X[:, 4] + np.tanh(2 * X[:, 20]) - X[:, 21] * X[:, 5]
    relevance += 0.4 * X[:, 6:16].sum(1) / np.sqrt(10) + rng.normal(size=len(X)) * 1.2 + rng.normal(size=lists)[qid]
    return Part(X, np.searchsorted([1.0, 2.2, 3.3, 4.5], relevance).astype(float), sizes)


def parts(name: str, seed: int) -> tuple[Part, Part, Part]:
    """Return training, validation and test rows."""
    rng = np.random.default_rng(seed)
    if name == "lightgbm_lambdarank":
        train, test = (
            Part(data.X, data.y, np.bincount(data.qid))
            for data in (load(name), load_test(name))
            if data.qid is not None
        )
    elif name == "letor, 500 lists":
        train, test = letor(rng, 500, 20, 180), letor(rng, 300, 20, 180)
    else:
        train, test = letor(rng, 24, 500, 4000), letor(rng, 24, 500, 4000)
    held = np.zeros(len(train.sizes), dtype=bool)
    held[rng.permutation(len(held))[: len(held) // 4]] = True
    return train.some(~held), train.some(held), test


def named(name: str) -> Objective:
    """Return the objective of a name such as ``"ranknet, top=30"``."""
    loss, _, top = name.partition(", top=")
    return objective(loss, top=int(top) if top else None)


def quality(library: str, name: str, data: str, seed: int) -> Json:
    """Return the test NDCG@10 of an objective, and the number of rounds."""
    train, held, test = parts(data, seed)
    own = name in _OWN[library]
    if library == "lightgbm":
        best = lightgbm_booster(name if own else named(name), train, held, seed)
        scores, rounds = best.predict(test.X), best.best_iteration
    else:
        best = xgboost_booster(name if own else named(name), train, held, seed)
        rounds = best.best_iteration + 1
        scores = best.predict(xgboost.DMatrix(test.X), iteration_range=(0, rounds))
    found = ndcg(torch.tensor(scores), torch.tensor(test.y), qid=torch.tensor(test.qid), k=10, gain="exp2")
    return {"ndcg": float(found.nanmean()), "rounds": rounds}


def lightgbm_booster(given: object, train: Part, held: Part, seed: int) -> lightgbm.Booster:
    """Return LightGBM's booster, stopped early."""
    options = {"learning_rate": 0.1, "num_leaves": 31, "min_data_in_leaf": 20, "verbose": -1, "num_threads": 1}
    options |= {"feature_fraction": 0.7, "bagging_fraction": 0.8, "bagging_freq": 1, "seed": seed}
    rows = lightgbm.Dataset(train.X, train.y, group=train.sizes)
    return lightgbm.train(
        {**options, "objective": given, "metric": "None"},
        rows,
        _ROUNDS,
        valid_sets=[lightgbm.Dataset(held.X, held.y, group=held.sizes, reference=rows)],
        feval=_MEASURE,
        callbacks=[lightgbm.early_stopping(_PATIENCE, verbose=False)],
    )


def xgboost_booster(given: object, train: Part, held: Part, seed: int) -> xgboost.Booster:
    """Return XGBoost's booster, stopped early."""
    options = {"learning_rate": 0.1, "max_depth": 6, "nthread": 1, "subsample": 0.8, "colsample_bytree": 0.7}
    options |= {"seed": seed, "disable_default_eval_metric": True}
    own = {"objective": given} if isinstance(given, str) else {}
    return xgboost.train(
        {**options, **own},
        xgboost.DMatrix(train.X, train.y, qid=train.qid),
        _ROUNDS,
        obj=None if own else given,
        evals=[(xgboost.DMatrix(held.X, held.y, qid=held.qid), "held")],
        custom_metric=_MEASURE,
        maximize=True,
        early_stopping_rounds=_PATIENCE,
        verbose_eval=False,
    )


def speed(library: str, name: str, length: int) -> Json:
    """Return the best processor time of a round, that of the objective in it, and the memory that it adds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, 20)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=_ROWS)), 0, 4)
    sizes = np.full(_ROWS // length, length)
    own = name in _OWN[library]
    inner: list[float] = []
    added = [0.0]

    def timed(scores: object, data: object) -> object:
        before, start = peak(), time.process_time()
        found = named(name)(scores, data)
        inner.append(time.process_time() - start)
        added.append(peak() - before)
        return found

    given = name if own else timed
    seconds = []
    if library == "lightgbm":
        # with a bin for each grade of labels; LightGBM refuses lists of more than 10,000 rows to its own objectives
        rows = lightgbm.Dataset(X, y, group=sizes)
        booster = lightgbm.Booster({"objective": name if own else "none", "verbose": -1, "num_threads": 1}, rows)
        for _ in range(_TIMED):
            start = time.process_time()
            booster.update(fobj=None if own else given)
            seconds.append(time.process_time() - start)
    else:
        matrix = xgboost.QuantileDMatrix(X, y, qid=np.repeat(np.arange(len(sizes)), sizes), nthread=1)
        booster = xgboost.Booster({"nthread": 1, **({"objective": name} if own else {})}, [matrix])
        for number in range(_TIMED):
            start = time.process_time()
            booster.update(matrix, number, fobj=None if own else given)
            seconds.append(time.process_time() - start)
    return {"seconds": min(seconds), "objective": min(inner, default=None), "megabytes": max(added)}


def measure(request: Json) -> Json:
    """Return the record of a request."""
    torch.set_num_threads(1)
    what = speed if "length" in request else quality
    return request | what(**request) | {"status": "ok"}


def main() -> None:
    """Measure what is missing, and write the tables."""
    parser = command_line(__doc__, "runs/gbdt")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    options = parsed(parser, measure)
    wanted: list[Json] = [
        {"library": library, "name": name, "length": length}
        for length in _LENGTHS
        for library in _OWN
        for name in (_OWN[library][0], "ranknet", "ranknet, top=30")
    ]
    wanted += [
        {"library": library, "name": name, "data": data, "seed": seed}
        for first in (True, False)  # what is compared most comes first
        for seed in range(options.seeds)
        for data in _SETS
        for library in _OWN
        for name in (*_OWN[library], *_OURS)
        if (name in (_OWN[library][0], "ranknet")) == first
    ]
    kept = Records(options.out / "gbdt.jsonl", ("library", "name", "length", "data", "seed"))
    for request in wanted:
        if not kept[request]:
            record = apart(__file__, request)
            print(record, flush=True)
            kept.add(record)
    done = [kept[request][0] for request in wanted if kept[request]]
    versions = f"LightGBM {lightgbm.__version__}, XGBoost {xgboost.__version__}"
    text = f"{machine()}; {versions}, one thread.\n\n{_qualities(done)}\n\n{_speeds(done)}\n"
    publish(options, "gbdt", text)


def _qualities(records: list[Json]) -> str:
    values: defaultdict[tuple[str, str, str], list[float]] = defaultdict(list)
    for record in records:
        if "ndcg" in record:
            values[record["library"], record["name"], record["data"]].append(record["ndcg"])
    rows = []
    for library, own in _OWN.items():
        for name in (*own, *_OURS):
            cells = []
            for data in _SETS:
                found = values[library, name, data]
                error = f" ± {statistics.stdev(found) / len(found) ** 0.5:.4f}" if len(found) > 1 else ""
                cells.append(f"{statistics.mean(found):.4f}{error} ({len(found)})" if found else "-")
            rows.append([library, f"{'own' if name in own else 'ours'}: {name}", *cells])
    return "Test NDCG@10, mean over seeds, whose number is in brackets:\n\n" + markdown_table(
        ["", "objective", *_SETS], rows, left=2
    )


def _speeds(records: list[Json]) -> str:
    rows = []
    for record in (r for r in records if "length" in r):
        ok = record["status"] == "ok"
        inner = f"{record['objective']:.2f} s" if ok and record["objective"] else "-"
        row = [record["library"], record["name"], f"{record['length']:,}"]
        rows.append([*row, f"{record['seconds']:.2f} s" if ok else "refused", inner])
        rows[-1].append(f"{record['megabytes']:.0f} MB" if inner != "-" else "-")
    head = ["", "objective", "rows per list", "a round", "of it the objective", "its memory"]
    return f"{_ROWS:,} rows, 20 features, 31 leaves or depth 6:\n\n" + markdown_table(head, rows, left=2)


if __name__ == "__main__":
    main()
