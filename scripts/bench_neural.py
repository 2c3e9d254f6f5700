"""Measure neural rankers: `ltr run` with default settings against a training loop written by hand, by test NDCG@10.

The loop by hand is what one would write in plain torch: standardised features, mini-batches of 16 padded lists, AdamW,
dropout, a fifth of the queries held out, and the epoch kept whose NDCG@10 was best there. It has two widths, and each
cell of the table has the better one *on the test set*, which `ltr run` does not get to see.

The data are ``lightgbm_lambdarank`` (from LTR_DATA; 201 training queries with 300 features, 50 test queries) and lists
in the manner of LETOR that are generated here: 46 features, grades 0 to 2, 5 to 40 rows a query, and 500 test queries.
Half of the features are log-normal and others whole numbers or noise with outliers; the grade depends on hidden
quantities by steps, products and absolute values, and partly on the query.

Every seed is a process of its own, and another draw of the held-out queries, starting weights and batches. Results are
kept in ``neural.jsonl`` and not measured again; a Markdown table is written beside it.

    python scripts/bench_neural.py --out runs/neural
    python scripts/bench_neural.py --out runs/neural --docs docs/neural.md
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from _bench import Json, Records, apart, command_line, parsed, publish
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file
from torch import Tensor, nn
from torch.nn import functional as F

from ltr.data import load
from ltr.data.named import load_test
from ltr.metrics import normalized_rank_statistic
from trainers.config import parse_config
from trainers.provenance import machine
from trainers.run.experiment import run_experiment
from trainers.tables import markdown_table

_DATA = ("lightgbm_lambdarank", "letor_like_200")
_LOSSES = ("ranknet", "list_net", "lambda(statistic=dcg@10)", "smooth(statistic=dcg@10)")
_FORMS = ("by hand, mlp", "ltr run, mlp", "ltr run, linear", "ltr run, attention")
_WIDTHS = {(64, 32): 0.1, (256, 128): 0.3}  # hidden layers of the loop by hand, with their dropout
_SEEDS, _TEST_QUERIES, _FEATURES = 5, 500, 46
_EPOCHS, _PATIENCE, _LISTS = 200, 20, 16

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
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


def parts_of(name: str) -> tuple[Part, Part]:
    """Return the training set and the test set of a name."""
    if name.startswith("letor_like_"):
        return letor_like(int(name.removeprefix("letor_like_")))
    train, test = load(name), load_test(name)
    assert train.qid is not None
    assert test is not None
    assert test.qid is not None
    return (train.X, train.y, train.qid), (test.X, test.y, test.qid)


def ndcg(scores: FloatArray, y: IntArray, qid: IntArray) -> float:
    """Return the mean NDCG@10 with exponential gains over the queries that have a label above 0."""
    given = (torch.from_numpy(np.asarray(values)) for values in (scores, y))
    values = normalized_rank_statistic(*given, "dcg@10", gain="exp2", qid=torch.from_numpy(qid))
    return float(values.nanmean())


# the loop by hand


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
    queries = rng.permutation(np.unique(qid))
    held = np.isin(qid, queries[: round(len(queries) / 5)])
    mean, scale = X[~held].mean(0), X[~held].std(0)
    scale[scale == 0] = 1.0
    scaled, new = (torch.tensor((values - mean) / scale, dtype=torch.float32) for values in (X, test[0]))
    lists = [torch.from_numpy(np.flatnonzero(qid == query)) for query in np.unique(qid[~held])]
    labels, held_rows = torch.tensor(y, dtype=torch.float32), torch.from_numpy(np.flatnonzero(held))
    widths = [X.shape[1], *hidden]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(_WIDTHS[tuple(hidden)])]
    model = nn.Sequential(*layers, nn.Linear(widths[-1], 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    best, best_epoch, result = -1.0, 0, 0.0
    for epoch in range(_EPOCHS):
        model.train()
        order = rng.permutation(len(lists))
        for begin in range(0, len(lists), _LISTS):
            rows = nn.utils.rnn.pad_sequence([lists[at] for at in order[begin : begin + _LISTS]], True, -1)
            mask = rows >= 0
            optimizer.zero_grad()
            loss(model(scaled[rows]).squeeze(-1), labels[rows], mask).backward()
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


# ltr run


def by_run(train: Part, test: Part, scorer: str, seed: int) -> dict[str, float]:
    """Return the test NDCG@10 of `ltr run` for each loss, with default settings."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (X, y, qid) in (("train", train), ("test", test)):
            dump_svmlight_file(X, y, str(Path(folder, name)), zero_based=False, query_id=qid)
        tree = {
            "name": "bench",
            "seed": seed,
            "runs_dir": folder,
            "data": {"path": f"{folder}/train", "test_path": f"{folder}/test", "format": "svmlight", "cache": False},
            "surrogate": {"losses": list(_LOSSES), "scorer": scorer},
            "baselines": {"methods": []},
            "exact": {"enabled": False, "statistic": "dcg@10"},
            "statistics": {"report": ["dcg@10"]},
            "tracking": {"tensorboard": False, "every": 1000},
        }
        return {str(row.method): float(row.test["ndcg@10"] or 0.0) for row in run_experiment(parse_config(tree)).rows}


def measure(request: Json) -> Json:
    """Return the test NDCG@10 of every loss by one form, on one data set with one seed."""
    torch.set_num_threads(1)
    train, test = parts_of(request["data"])
    form, seed = request["form"], request["seed"]
    if form.startswith("ltr run"):
        return request | {"status": "ok", "ndcg": by_run(train, test, form.split(", ")[1], seed)}
    losses = {"ranknet": ranknet, "list_net": list_net}
    values = {
        f"{name} {hidden}": by_hand(train, test, loss, hidden, seed)
        for name, loss in losses.items()
        for hidden in _WIDTHS
    }
    return request | {"status": "ok", "ndcg": values}


def main() -> None:
    """Measure what is missing, and write the table."""
    parser = command_line(__doc__, "runs/neural")
    parser.add_argument(
        "--data", nargs="*", default=_DATA, help="names of data sets; letor_like_N has N training queries"
    )
    options = parsed(parser, measure)
    kept = Records(options.out / "neural.jsonl", ("form", "data", "seed"))
    requests = [
        {"form": form, "data": data, "seed": seed} for form in _FORMS for data in options.data for seed in range(_SEEDS)
    ]
    for request in requests:
        if not kept[request]:
            record = apart(__file__, request)
            print(request, record["status"], record.get("message", ""), flush=True)
            if record["status"] == "ok":
                kept.add(record)
    head = f"{machine()}; torch {torch.__version__}. Mean of {_SEEDS} seeds and its standard error."
    publish(options, "neural", f"{head}\n\n{table(kept, options.data)}\n")


def table(kept: Records, data: Sequence[str]) -> str:
    """Return the means over seeds, a row for each loss on each data set."""
    rows = []
    for name in data:
        for loss in _LOSSES:
            cells = []
            for form in _FORMS:
                records = [
                    r["ndcg"] for seed in range(_SEEDS) for r in kept[{"form": form, "data": name, "seed": seed}]
                ]
                keys = [f"{loss} {hidden}" for hidden in _WIDTHS] if form.startswith("by hand") else [loss]
                found = [np.array([r[key] for r in records if key in r]) for key in keys]
                best = max(found, key=lambda values: float(values.mean()) if len(values) else -1.0)
                error = best.std(ddof=1) / np.sqrt(len(best)) if len(best) > 1 else 0.0
                cells.append(f"{best.mean():.4f} ± {error:.4f}" if len(best) else "-")
            rows.append([name, f"`{loss}`", *cells])
    return markdown_table(["data", "loss", *_FORMS], rows, left=2)


if __name__ == "__main__":
    main()
