"""Measure memory and time on a large table: reading it, training a network, predicting, and ranking in two stages.

The table is generated: graded labels 0 to 4, about 100 rows a query, float32 features, of which half have heavy tails.
Memory is the peak of the process by the operating system, from which that of its imports is subtracted; the table gives
both as multiples of the features as float32. Some measurements of ours stand beside a plain form of the same work:
pandas for parquet, scikit-learn for sparse text, a training loop in torch with the same scaling, network and loss.
(Imports are those of the work: it is done with a few rows first.)
"""

from __future__ import annotations

import itertools
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from torch import nn

from ltr.data import read_data, read_svmlight
from ltr.exact import Limits
from ltr.losses import RankNetLoss
from ltr.rankers import ExactRanker, LogisticRegressionRanker, Ranker, SurrogateRanker, TwoStageRanker
from scripts._bench import Bench, IntArray, Json, made_on, peak, table, value

_TEXT_ROWS = 200_000  # most rows that are written as text
_FEW = 2_000  # rows of the table on which the work is done first
_HIDDEN, _DROPOUT, _LISTS = (256, 128), 0.3, 16  # the defaults of the network
_TEXT = "read sparse text"

Work = Callable[[], object]


def generate(folder: Path, rows: int, columns: int) -> None:
    """Write the table as arrays (``X.npy``, ``y.npy``, ``qid.npy``), as parquet, and its first rows as sparse text."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    lengths = rng.integers(60, 141, size=rows // 60 + 1)
    qid = np.repeat(np.arange(len(lengths)), lengths)[:rows]
    X = rng.standard_normal((rows, columns), dtype=np.float32)
    relevance = X @ rng.normal(size=columns).astype(np.float32) / np.sqrt(columns) + 0.7 * rng.normal(size=rows)
    y = np.searchsorted([0.0, 0.6, 1.2, 1.9], relevance)
    np.exp(X[:, ::2], out=X[:, ::2])
    for name, array in (("X", X), ("y", y), ("qid", qid)):
        np.save(folder / f"{name}.npy", array)
    names = [f"f{j + 1}" for j in range(columns)]
    pd.DataFrame(X, columns=names, copy=False).assign(y=y, query=qid).to_parquet(folder / "table.parquet", index=False)
    first = slice(0, _TEXT_ROWS)
    short = X[first].astype(np.float64).round(5)
    dump_svmlight_file(short, y[first], str(folder / "table.svm"), zero_based=False, query_id=qid[first])


def loaded(folder: Path) -> tuple[NDArray[np.float32], IntArray, IntArray]:
    """Return features, labels and queries, in memory."""
    return np.load(folder / "X.npy"), np.load(folder / "y.npy"), np.load(folder / "qid.npy")


# what is measured: each takes the folder, does what is not timed, and returns the work


def train(folder: Path) -> Work:
    """Fit the network for one epoch."""
    X, y, qid = loaded(folder)
    return lambda: SurrogateRanker(scorer="mlp", scale="standardize", max_steps=1).fit(X, y, qid=qid)


def train_plainly(folder: Path) -> Work:
    """Train the network for one epoch in a loop of torch, as one would write it by hand."""
    X, y, qid = loaded(folder)

    def work() -> None:
        rng = np.random.default_rng(0)
        _, first, counts = np.unique(qid, return_index=True, return_counts=True)
        order = rng.permutation(len(first))
        held, kept = np.split(order, [len(order) // 5])
        members = [torch.arange(at, at + count) for at, count in zip(first.tolist(), counts.tolist(), strict=True)]
        mean, scale = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
        Z = torch.from_numpy((X - mean.astype(np.float32)) / scale.astype(np.float32))
        labels, queries = torch.from_numpy(y).float(), torch.from_numpy(qid)
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise([Z.shape[1], *_HIDDEN]):
            layers += [nn.Linear(before, after), nn.SiLU(), nn.Dropout(_DROPOUT)]
        model, loss = nn.Sequential(*layers, nn.Linear(_HIDDEN[-1], 1), nn.Flatten(0)), RankNetLoss()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
        for begin in range(0, len(kept), _LISTS):
            rows = torch.cat([members[at] for at in kept[begin : begin + _LISTS]])
            optimizer.zero_grad()
            loss(model(Z[rows]), labels[rows], qid=queries[rows]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for part in (kept, held):  # the objective, and the validation
                rows = torch.cat([members[at] for at in part])
                scores = torch.cat([model(Z[some]) for some in rows.split(1 << 14)])
                loss(scores, labels[rows], qid=queries[rows])

    return work


def predict(folder: Path, ranker: Ranker) -> Work:
    """Score all rows by a ranker that was fitted to a few of them."""
    X, y, _ = loaded(folder)
    ranker.fit(X[:_FEW], y[:_FEW] > 1)
    return lambda: ranker.predict(X)


def two_stages(folder: Path) -> Work:
    """Fit two stages to all rows as one list, and rank them."""
    X, y, _ = loaded(folder)
    exact = ExactRanker(limits=Limits(time_limit=1))
    ranker = TwoStageRanker(SurrogateRanker(max_steps=3), exact, top_k=50, choose=False)
    return lambda: ranker.fit(X, y > 1).order(X)


def read_plainly(folder: Path) -> Work:
    """Read the parquet file with pandas and make a matrix of its features."""
    return lambda: np.ascontiguousarray(pd.read_parquet(folder / "table.parquet").iloc[:, :-2].to_numpy())


_WORK: dict[tuple[str, str], Callable[[Path], Work]] = {
    ("read parquet", "ltr"): lambda folder: lambda: read_data(folder / "table.parquet", label="y", query="query"),
    ("read parquet", "pandas"): read_plainly,
    (_TEXT, "ltr"): lambda folder: lambda: read_svmlight(folder / "table.svm", dtype="float32"),
    (_TEXT, "scikit-learn"): lambda folder: (
        lambda: load_svmlight_file(str(folder / "table.svm"), dtype=np.float32, query_id=True)[0].toarray()
    ),
    ("train a network, one epoch", "ltr"): train,
    ("train a network, one epoch", "torch"): train_plainly,
    ("score by a linear ranker", "ltr"): lambda folder: predict(folder, LogisticRegressionRanker()),
    ("score by a network", "ltr"): lambda folder: predict(folder, SurrogateRanker(scorer="mlp", max_steps=1)),
    ("two stages, one list", "ltr"): two_stages,
}


def measure(what: str, form: str, threads: int, rows: int = 1_000_000, columns: int = 136) -> Json:
    """Return the time and the memory of one measurement."""
    folder = Path(tempfile.gettempdir(), f"bench_size_{rows}_{columns}")
    if not (folder / "table.svm").exists():  # made once, by another process, whose memory does not count
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(generate, folder / "few", _FEW, columns).result()
            pool.submit(generate, folder, rows, columns).result()
    _WORK[what, form](folder / "few")()
    imports, work = peak(), _WORK[what, form](folder)
    start = time.perf_counter()
    work()
    found = {"seconds": time.perf_counter() - start, "imports": imports, "peak": peak()}
    done = min(rows, _TEXT_ROWS) if what == _TEXT else rows
    size = 4 * done * columns / 2**20
    return found | {"rows": done, "size": size, "ratio": (found["peak"] - imports) / size}


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of memory and time."""
    columns = {
        "rows": value("rows", "{:,}"),
        "table, MB": value("size", "{:,.0f}"),
        "imports, MB": value("imports", "{:,.0f}"),
        "peak, MB": value("peak", "{:,.0f}"),
        "(peak - imports) / table": value("ratio", "{:.2f}"),
        "seconds": value("seconds", "{:.1f}"),
    }
    return {"size": f"{made_on(records)}\n\n{table(records, {'what': '', 'form': 'by'}, columns)}\n"}


_REQUESTS = [{"what": what, "form": form, "threads": 1} for what, form in _WORK]
_QUICK = {"what": ["read parquet"]}
BENCH = Bench("size", "docs/scaling.md", _REQUESTS, _QUICK, measure, tables, alone=True)
