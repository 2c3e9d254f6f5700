"""Measure the time and memory that many rows take: to train surrogates, and to work with a large table.

*Training* is measured by loss, number of threads and chunks. Memory is what the fit adds to the peak before it, which
includes data and imports. No table is written unless all forms of a fit reach the same objective.

*A large table* is read, trains a network, is scored, and ranked in two stages. It is generated: graded labels 0 to 4,
about 100 rows a query, float32 features, of which half have heavy tails. Memory is the peak of the process by the
operating system, from which that of its imports is subtracted; the table gives both as multiples of the features as
float32. Some measurements of ours stand beside a plain form of the same work: pandas for parquet, scikit-learn for
sparse text, a training loop in torch with the same scaling, network and loss. (Imports are those of the work: it is
done with a few rows first.)
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
from ltr.fitting import Fit, FitOptions
from ltr.losses import RankNetLoss, parse_loss
from ltr.rankers import ExactRanker, LogisticRegressionRanker, Ranker, SurrogateRanker, TwoStageRanker
from ltr.rankers.scorers import LinearScorer, MLPScorer
from scripts._bench import Bench, IntArray, Json, grid, made_on, peak, pivot, table, value

_ROWS = (100_000, 1_000_000)
_LOSSES = ("ranknet", "hinge", "squared_hinge", "exponential", "logistic", "p_norm_push(p=2)")
_FEATURES, _CHUNK = 10, 1 << 14
_OPTIMUM, _FEW = 1000, 4  # most steps of a training to the optimum, and steps in the comparison of forms
_FORMS: dict[str, Json] = {
    "1 thread": {"threads": 1, "chunked": False},
    "2 threads": {"threads": 2, "chunked": False},
    "chunks from a file": {"threads": 1, "chunked": True},
}
_TASKS = ("linear, one list", "linear, lists of 100", "mlp (64, 32), one list")


def _data(rows: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X, w = generator.normal(size=(rows, _FEATURES)), generator.normal(size=_FEATURES)
    return X, (X @ w + 2 * np.linalg.norm(w) * generator.normal(size=rows) > 2).astype(np.int64)


def measure_training(task: str, rows: int, loss: str, steps: int, threads: int, chunked: bool) -> Json:
    """Return the time and the memory of one fit."""
    for name in (loss, "hinge"):  # compilation
        Fit(LinearScorer(_FEATURES), parse_loss(name), *_data(300), FitOptions(max_steps=2)).run()
    X, y = _data(rows)
    qid = np.arange(rows) // 100 if task.endswith("lists of 100") else None
    torch.manual_seed(0)
    scorer = LinearScorer(_FEATURES) if task.startswith("linear") else MLPScorer(_FEATURES)
    options = FitOptions(max_steps=steps, chunk_rows=_CHUNK if chunked else None)
    with tempfile.TemporaryDirectory() as folder:
        if chunked:
            np.save(Path(folder) / "X.npy", X)
            X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        before = peak()
        fit = Fit(scorer, parse_loss(loss), X, y, options, qid)
        ready = time.perf_counter()
        *_, last = fit
        seconds = time.perf_counter() - ready
    outcome = {"status": fit.stopped, "seconds": seconds, "done": last.index, "objective": last.objective}
    return outcome | {"gap": last.gap / last.objective, "megabytes": peak() - before}


def tables_of_training(records: list[Json]) -> dict[str, str]:
    """Return a table of training to the optimum, by loss, and one of seconds per step and memory, by task and form."""
    sized = [record | {"rows": f"{record['rows']:,}"} for record in records]
    optima, few = ([one for one in sized if one["steps"] == steps] for steps in (_OPTIMUM, _FEW))
    for one in few:
        own = [r["objective"] for r in few if (r["task"], r["rows"]) == (one["task"], one["rows"])]
        if max(own) - min(own) > 1e-9 * max(own):
            raise SystemExit(f"{one['task']}, {one['rows']} rows: the forms end with different objectives {own}")
    columns = {
        "ended by": value("status"),
        "steps": value("done"),
        "seconds": value("seconds", "{:.3g}"),
        "gap": value("gap", "{:.1e}"),
        "MB": value("megabytes", "{:.0f}"),
    }
    losses = table(optima, {"loss": "loss", "rows": "rows"}, columns)
    step = pivot(lambda own: f"{own[0]['seconds'] / own[0]['done']:.3g} s, {own[0]['megabytes']:.0f} MB", _FORMS)
    forms = table(few, {"task": "scorer and lists", "rows": "rows"}, step)
    return {"scaling": f"{made_on(records)}\n\n{losses}\n\n{forms}\n"}


_REQUESTS = grid(task=_TASKS[:1], rows=_ROWS, loss=_LOSSES, steps=[_OPTIMUM], threads=[1], chunked=[False])
_REQUESTS += [
    request | form
    for request in grid(task=_TASKS, rows=_ROWS, loss=["ranknet"], steps=[_FEW])
    for form in _FORMS.values()
]
_QUICK = {"rows": ["100000"], "loss": ["ranknet"]}
TRAINING = Bench("scaling", "docs/scaling.md", _REQUESTS, _QUICK, measure_training, tables_of_training, alone=True)


# --- a large table ----------------------------------------------------------------------------------------------------

_TEXT_ROWS = 200_000  # most rows that are written as text
_SMALL = 2_000  # rows of the table on which the work is done first
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
    ranker.fit(X[:_SMALL], y[:_SMALL] > 1)
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


def measure_size(what: str, form: str, threads: int, rows: int = 1_000_000, columns: int = 136) -> Json:
    """Return the time and the memory of one measurement."""
    folder = Path(tempfile.gettempdir(), f"bench_size_{rows}_{columns}")
    if not (folder / "table.svm").exists():  # made once, by another process, whose memory does not count
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(generate, folder / "few", _SMALL, columns).result()
            pool.submit(generate, folder, rows, columns).result()
    _WORK[what, form](folder / "few")()
    imports, work = peak(), _WORK[what, form](folder)
    start = time.perf_counter()
    work()
    found = {"seconds": time.perf_counter() - start, "imports": imports, "peak": peak()}
    done = min(rows, _TEXT_ROWS) if what == _TEXT else rows
    size = 4 * done * columns / 2**20
    return found | {"rows": done, "size": size, "ratio": (found["peak"] - imports) / size}


def tables_of_size(records: list[Json]) -> dict[str, str]:
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


_OF_SIZE = [{"what": what, "form": form, "threads": 1} for what, form in _WORK]
SIZE = Bench("size", "docs/scaling.md", _OF_SIZE, {"what": ["read parquet"]}, measure_size, tables_of_size, alone=True)
