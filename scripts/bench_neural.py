"""Measure rankers of lists by test NDCG@10: networks against a loop by hand, the default config against boosters.

The loop by hand is what one would write in plain torch: standardised features, mini-batches of 16 padded lists, AdamW,
dropout, a fifth of the queries held out, and the epoch kept whose NDCG@10 was best there. It has two widths, and each
cell of the table has the better one *on the test set*, which `ltr run` does not get to see. The default config is a
path and nothing else. The boosters have their own ranking objectives, up to 2,000 trees, and stop where NDCG@10 on a
fifth of the training queries has not risen for 50 trees.

The data are ``lightgbm_lambdarank`` (from LTR_DATA), lists in the manner of LETOR that are generated here, and
``mq2008``, LETOR's data set, whose folder LTR_MQ2008 names: seed s takes fold s + 1, and trains on the queries of
train.txt and vali.txt. Every seed is another draw of the held-out queries, starting weights and batches.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import dump_svmlight_file, load_svmlight_files
from torch import Tensor, nn
from torch.nn import functional as F

from ltr import metrics
from ltr.data import load, load_test
from scripts._bench import Bench, FloatArray, IntArray, Json, grid, made_on, pivot, table, value, with_error
from trainers.config import parse_config
from trainers.run.experiment import run_experiment

_DATA = ("lightgbm_lambdarank", "letor_like_200", "mq2008")
_LOSSES = ("ranknet", "list_net", "lambda(statistic=dcg@10)", "smooth(statistic=dcg@10)")
_HAND, _DEFAULT = "by hand, mlp", "ltr run, default config"
_FORMS = (_HAND, "ltr run, mlp", "ltr run, linear", "ltr run, attention")
_BOOSTERS = ("LightGBM", "XGBoost", "CatBoost")
_WIDTHS = {(64, 32): 0.1, (256, 128): 0.3}  # hidden layers of the loop by hand, with their dropout
_SEEDS, _TEST_QUERIES, _FEATURES = 5, 500, 46
_EPOCHS, _PATIENCE, _LISTS = 200, 20, 16

Part = tuple[FloatArray, IntArray, IntArray]
"""Features, labels, and the number of each row's query."""


def letor_like(queries: int) -> tuple[Part, Part]:
    """Return a training set of so many queries and a test set, in the manner of LETOR."""
    rng, world = np.random.default_rng(7), np.random.default_rng(1)
    mixing = world.normal(size=(8, _FEATURES)) * (world.random((8, _FEATURES)) < 0.35)
    columns = world.permutation(_FEATURES)
    count = queries + _TEST_QUERIES
    qid = np.repeat(np.arange(count), rng.integers(5, 41, size=count))
    own, of_query = rng.normal(size=(len(qid), 8)), rng.normal(size=(count, 8))[qid]
    X = (0.8 * own + 0.6 * of_query) @ mixing + 0.7 * rng.normal(size=(len(qid), _FEATURES))
    X += 0.5 * rng.normal(size=(count, _FEATURES))[qid]
    X[:, columns[:23]] = np.exp(1.2 * X[:, columns[:23]])
    X[:, columns[23:31]] = np.floor(np.exp(X[:, columns[23:31]]))
    X[:, columns[31:35]] = rng.standard_t(2, size=(len(qid), 4))
    relevance = np.tanh(2 * own[:, 0]) + own[:, 1] * np.where(of_query[:, 2] > 0, 1.0, -0.5)
    relevance += 1.2 * np.maximum(own[:, 3], 0) * np.maximum(own[:, 4], 0) - 0.7 * np.abs(own[:, 5]) + 0.5 * own[:, 6]
    relevance += 0.4 * of_query[:, 7] + 0.9 * rng.normal(size=len(qid))
    y = (relevance > 0.9).astype(np.int64) + (relevance > 2.1)
    train = qid < queries
    return (X[train], y[train], qid[train]), (X[~train], y[~train], qid[~train])


def parts_of(name: str, seed: int) -> tuple[Part, Part]:
    """Return the training set and the test set of a name, of `mq2008` those of a fold."""
    if name == "letor_like_200":
        return letor_like(200)
    if name != "mq2008":
        train, test = load(name), load_test(name)
        return (train.X, train.y, train.qid), (test.X, test.y, test.qid)
    if "LTR_MQ2008" not in os.environ:
        raise ImportError("LTR_MQ2008 does not name the folder of MQ2008")
    fold = Path(os.environ["LTR_MQ2008"], f"Fold{seed % 5 + 1}")
    found = load_svmlight_files([str(fold / f"{part}.txt") for part in ("train", "vali", "test")], query_id=True)
    train, held, test = ((found[at].toarray(), found[at + 1].astype(np.int64), found[at + 2]) for at in (0, 3, 6))
    return tuple(np.concatenate(both) for both in zip(train, held, strict=True)), test


def ndcg(scores: FloatArray, y: IntArray, qid: IntArray) -> float:
    """Return the mean NDCG@10 with exponential gains over the queries that have a label above 0."""
    given = (torch.from_numpy(np.asarray(values)) for values in (scores, y))
    return float(metrics.ndcg(*given, qid=torch.from_numpy(qid), k=10, gain="exp2").nanmean())


def _held(qid: IntArray, rng: np.random.Generator) -> np.ndarray:
    """Return which rows are of the fifth of the queries that is held out."""
    queries = rng.permutation(np.unique(qid))
    return np.isin(qid, queries[: round(len(queries) / 5)])


# --- the loop by hand ---------------------------------------------------------------------------------------------


def ranknet(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over lists of the mean over pairs of ``log(1 + exp(-(s_i - s_k)))``."""
    pairs = (labels.unsqueeze(-1) > labels.unsqueeze(-2)) & mask.unsqueeze(-1) & mask.unsqueeze(-2)
    losses = F.softplus(scores.unsqueeze(-2) - scores.unsqueeze(-1)) * pairs
    return (losses.sum((-2, -1)) / pairs.sum((-2, -1)).clamp(min=1)).mean()


def list_net(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Return the mean over lists of the cross entropy of the softmax of labels and scores."""
    wanted = labels.masked_fill(~mask, -1e9).softmax(-1)
    return -(wanted * scores.masked_fill(~mask, -1e9).log_softmax(-1)).sum(-1).mean()


def by_hand(
    train: Part, test: Part, loss: Callable[[Tensor, Tensor, Tensor], Tensor], hidden: Sequence[int], seed: int
) -> float:
    """Return the test NDCG@10 of an MLP, early stopped by the NDCG@10 of a fifth of the training queries."""
    rng, (X, y, qid) = np.random.default_rng(seed), train
    torch.manual_seed(seed)
    held = _held(qid, rng)
    mean, scale = X[~held].mean(0), X[~held].std(0)
    scale[scale == 0] = 1.0
    scaled, new = (torch.tensor((values - mean) / scale, dtype=torch.float32) for values in (X, test[0]))
    lists = [torch.from_numpy(np.flatnonzero(qid == query)) for query in np.unique(qid[~held])]
    labels, held_rows = torch.tensor(y, dtype=torch.float32), torch.from_numpy(np.flatnonzero(held))
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise([X.shape[1], *hidden]):
        layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(_WIDTHS[tuple(hidden)])]
    model = nn.Sequential(*layers, nn.Linear(hidden[-1], 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    best, best_epoch, result = -1.0, 0, 0.0
    for epoch in range(_EPOCHS):
        model.train()
        order = rng.permutation(len(lists))
        for begin in range(0, len(lists), _LISTS):
            rows = nn.utils.rnn.pad_sequence([lists[at] for at in order[begin : begin + _LISTS]], True, -1)
            optimizer.zero_grad()
            loss(model(scaled[rows]).squeeze(-1), labels[rows], rows >= 0).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            reached = ndcg(model(scaled[held_rows]).squeeze(-1).double().numpy(), y[held], qid[held])
            if reached > best:
                best, best_epoch = reached, epoch
                result = ndcg(model(new).squeeze(-1).double().numpy(), *test[1:])
        if epoch - best_epoch >= _PATIENCE:
            break
    return result


def by_run(train: Part, test: Part, scorer: str | None, seed: int) -> dict[str, float]:
    """Return the test NDCG@10 of `ltr run` for each loss, with default settings; of all methods without a scorer."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (X, y, qid) in (("train", train), ("test", test)):
            dump_svmlight_file(X, y, str(Path(folder, name)), zero_based=False, query_id=qid)
        tree = {
            "name": "bench",
            "seed": seed,
            "runs_dir": folder,
            "data": {"path": f"{folder}/train", "test_path": f"{folder}/test", "format": "svmlight"},
            "tracking": {"loggers": [], "every": 1000},
        }
        if scorer is not None:
            tree |= {
                "surrogate": {"losses": list(_LOSSES), "scorer": scorer},
                "baselines": {"methods": []},
                "exact": {"enabled": False, "statistic": "dcg@10"},
            }
        return {row["method"]: float(row["test"]["ndcg@10"] or 0.0) for row in run_experiment(parse_config(tree)).rows}


def by_boosting(library: str, train: Part, test: Part, seed: int) -> float:
    """Return the test NDCG@10 of a library's booster, stopped early by that of a fifth of the training queries."""
    X, y, qid = (values[np.argsort(train[2], kind="stable")] for values in train)
    held = _held(qid, np.random.default_rng(seed))
    sizes = [np.unique(qid[rows], return_counts=True)[1] for rows in (~held, held)]
    given: Json = {"learning_rate": 0.05, "n_estimators": 2000}
    model: Any
    if library == "LightGBM":
        import lightgbm

        stop = lightgbm.early_stopping(50, verbose=False)
        model = lightgbm.LGBMRanker(**given, random_state=seed, n_jobs=1, verbose=-1)
        validation = {"eval_set": [(X[held], y[held])], "eval_group": [sizes[1]], "eval_at": [10]}
        model.fit(X[~held], y[~held], group=sizes[0], **validation, callbacks=[stop])
    elif library == "XGBoost":
        import xgboost

        stopped = {"eval_metric": "ndcg@10", "early_stopping_rounds": 50}
        model = xgboost.XGBRanker(**given, **stopped, random_state=seed, n_jobs=1)
        validation = {"eval_set": [(X[held], y[held])], "eval_qid": [qid[held]]}
        model.fit(X[~held], y[~held], qid=qid[~held], **validation, verbose=False)
    else:
        import catboost

        given |= {"loss_function": "YetiRank", "eval_metric": "NDCG:top=10;type=Exp", "early_stopping_rounds": 50}
        model = catboost.CatBoostRanker(**given, random_seed=seed, thread_count=1, verbose=0, allow_writing_files=False)
        pools = [catboost.Pool(X[rows], y[rows], group_id=qid[rows]) for rows in (~held, held)]
        model.fit(pools[0], eval_set=pools[1])
    return ndcg(model.predict(test[0]).astype(np.float64), *test[1:])


def measure(form: str, data: str, seed: int) -> Json:
    """Return the test NDCG@10 of every loss by one form, or of a whole method."""
    train, test = parts_of(data, seed)
    begun = time.process_time()
    if form == _HAND:
        values = {
            f"{loss.__name__} {hidden}": by_hand(train, test, loss, hidden, seed)
            for loss in (ranknet, list_net)
            for hidden in _WIDTHS
        }
    elif form in _BOOSTERS:
        values = {form: by_boosting(form, train, test, seed)}
    else:
        values = by_run(train, test, None if form == _DEFAULT else form.split(", ")[1], seed)
        if form == _DEFAULT:
            values = {form: [*values.values()][-1]}  # of the exact stage, which ranks as auto does or better
    return {"ndcg": values, "rows": len(train[1]), "seconds": time.process_time() - begun}


def tables(records: list[Json]) -> dict[str, str]:
    """Return the means over seeds by loss, and those of the default config and of boosters."""

    def by_loss(own: list[Json]) -> str:
        loss = own[0]["loss"].strip("`")
        keys = [key for key in own[0]["ndcg"] if key in (loss, *(f"{loss} {hidden}" for hidden in _WIDTHS))]
        values = [[one["ndcg"][key] for one in own] for key in keys]
        return with_error(max(values, key=np.mean)) if values else "-"

    def whole(own: list[Json]) -> str:
        return with_error([one["ndcg"][one["form"]] for one in own])

    def seconds(own: list[Json]) -> str:
        forms = dict.fromkeys(one["form"] for one in own)
        return ", ".join(f"{np.mean([one['seconds'] for one in own if one['form'] == form]):.2g}" for form in forms)

    head = f"{made_on(records)} Mean over seeds and its standard error.\n\n"
    by_form = [one | {"loss": f"`{loss}`"} for one in records if one["form"] in _FORMS for loss in _LOSSES]
    of_whole = [one for one in records if one["form"] in (_DEFAULT, *_BOOSTERS)]
    losses = pivot(by_loss, {form: {"form": form} for form in _FORMS})
    methods = pivot(whole, {form: {"form": form} for form in (_DEFAULT, *_BOOSTERS)})
    methods = {"rows": value("rows"), **methods, "processor seconds": seconds}
    return {
        "neural": head + table(by_form, {"data": "data", "loss": "loss"}, losses),
        "boosters": head + table(of_whole, {"data": "data"}, methods),
    }


_REQUESTS = [
    request
    for request in grid(data=_DATA, form=(*_FORMS, _DEFAULT, *_BOOSTERS), seed=range(_SEEDS))
    if request["data"] != "mq2008" or request["form"] not in _FORMS
]
_QUICK = {"data": ["lightgbm_lambdarank"], "form": ["LightGBM", "XGBoost"]}
BENCH = Bench("neural", "docs/neural.md", _REQUESTS, _QUICK, measure, tables)
