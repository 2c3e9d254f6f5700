"""Measure memory and time on a large table: reading it, training a network, predicting, and ranking in two stages.

The table is generated: graded labels 0 to 4, about 100 rows a query, float32 features, of which half have heavy tails.
Memory is the peak of the process by the operating system, from which that of its imports is subtracted; the table gives
both as multiples of the features as float32. Each measurement of ours stands beside a plain form of the same work:
pandas for parquet and CSV, scikit-learn for sparse text, a training loop in torch with the same scaling, network and
loss. (Imports are those of the work: it is done with a few rows first.)

    python -m scripts.bench_size --set rows=20000                            # a small table, to try it
    python -m scripts.bench_size --docs
    python -m scripts.bench_size --only "what=score by a network;read CSV"
"""

from __future__ import annotations

import itertools
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ltr.data import read_data, read_svmlight
from ltr.exact import Limits
from ltr.losses import RankNetLoss
from ltr.rankers import ExactRanker, LogisticRegressionRanker, Ranker, SurrogateRanker, TwoStageRanker
from scripts._bench import Bench, IntArray, Json, made_on, peak
from trainers.tables import markdown_table

_PIECE = 50_000  # rows that are generated at a time
_TEXT_ROWS = 200_000  # most rows that are written as text
_FEW = 2_000  # rows of the table on which the work is done first
_HIDDEN, _DROPOUT, _LISTS = (256, 128), 0.3, 16  # the defaults of the network


def generate(folder: Path, rows: int, columns: int) -> None:
    """Write the table as arrays (``X.npy``, ``y.npy``, ``qid.npy``), as parquet, and its first rows as text and CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng, world = np.random.default_rng(0), np.random.default_rng(1)
    lengths = rng.integers(60, 141, size=rows // 60 + 1)
    qid = np.repeat(np.arange(len(lengths)), lengths)[:rows]
    weights, y = world.normal(size=columns) / np.sqrt(columns), np.empty(rows, dtype=np.int64)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (rows, columns))
    names = [f"f{j + 1}" for j in range(columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("y", pa.int64()), ("query", pa.int64())])
    with (
        pq.ParquetWriter(folder / "table.parquet", schema, compression="snappy") as table,
        (folder / "table.svm").open("w", encoding="ascii") as text,
        (folder / "table.csv").open("w", encoding="ascii") as csv,
    ):
        csv.write(",".join([*names, "y", "query"]) + "\n")
        for begin in range(0, rows, _PIECE):
            here = slice(begin, min(begin + _PIECE, rows))
            normal = rng.normal(size=(here.stop - begin, columns))
            y[here] = np.searchsorted([0.0, 0.6, 1.2, 1.9], normal @ weights + 0.7 * rng.normal(size=len(normal)))
            normal[:, ::2] = np.exp(normal[:, ::2])
            X[here] = normal
            arrays = [pa.array(np.ascontiguousarray(column)) for column in X[here].T]
            table.write_table(pa.Table.from_arrays([*arrays, pa.array(y[here]), pa.array(qid[here])], schema=schema))
            for row, label, query in zip(X[here][: max(0, _TEXT_ROWS - begin)], y[here], qid[here], strict=False):
                values = [f"{value:.6g}" for value in row.tolist()]
                text.write(
                    f"{label} qid:{query} {' '.join(f'{j}:{value}' for j, value in enumerate(values, start=1))}\n"
                )
                csv.write(f"{','.join(values)},{label},{query}\n")
    np.save(folder / "y.npy", y)
    np.save(folder / "qid.npy", qid)


def loaded(folder: Path) -> tuple[NDArray[np.float32], IntArray, IntArray]:
    """Return features, labels and queries, in memory."""
    return np.load(folder / "X.npy"), np.load(folder / "y.npy"), np.load(folder / "qid.npy")


# what is measured: ours, then the plain form. Each takes the folder, does what is not timed, and returns the work


Work = Callable[[], object]


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
    X, y, qid = loaded(folder)
    few = slice(0, _FEW)
    given = {} if isinstance(ranker, LogisticRegressionRanker) else {"qid": qid[few]}
    ranker.fit(X[few], y[few] > 1 if not given else y[few], **given)
    return lambda: ranker.predict(X)


def two_stages(folder: Path) -> Work:
    """Fit two stages to all rows as one list, and rank them."""
    X, y, _ = loaded(folder)
    exact = ExactRanker(limits=Limits(time_limit=1))
    ranker = TwoStageRanker(SurrogateRanker(max_steps=3), exact, top_k=50, choose=False)
    return lambda: ranker.fit(X, y > 1).order(X)


def read_plainly(path: Path) -> Work:
    """Read the parquet file, or the CSV file, with pandas and make a matrix of it."""
    import pandas as pd

    def work() -> None:
        frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
        frame.pop("y"), frame.pop("query")
        np.ascontiguousarray(frame.to_numpy())

    return work


def read_text_plainly(folder: Path) -> Work:
    """Read the sparse text with scikit-learn and make a matrix of it."""
    from sklearn.datasets import load_svmlight_file

    return lambda: load_svmlight_file(str(folder / "table.svm"), dtype=np.float32, query_id=True)[0].toarray()


def read_whole(path: Path) -> Work:
    """Read the parquet file, or the CSV file."""
    return lambda: read_data(path, label="y", query="query")


_WORK: dict[str, dict[str, Callable[[Path], Work]]] = {
    "read parquet": {
        "ltr": lambda folder: read_whole(folder / "table.parquet"),
        "pandas": lambda folder: read_plainly(folder / "table.parquet"),
    },
    "read CSV": {
        "ltr": lambda folder: read_whole(folder / "table.csv"),
        "pandas": lambda folder: read_plainly(folder / "table.csv"),
    },
    "read sparse text": {
        "ltr": lambda folder: lambda: read_svmlight(folder / "table.svm", dtype="float32"),
        "scikit-learn": read_text_plainly,
    },
    "train a network, one epoch": {"ltr": train, "torch": train_plainly},
    "score by a linear ranker": {"ltr": lambda folder: predict(folder, LogisticRegressionRanker())},
    "score by a network": {"ltr": lambda folder: predict(folder, SurrogateRanker(scorer="mlp", max_steps=1))},
    "two stages, one list": {"ltr": two_stages},
}


def measure(what: str, form: str, rows: int, columns: int, threads: int) -> Json:
    """Return the time and the memory of one measurement."""
    folder = Path(tempfile.gettempdir(), f"bench_size_{rows}_{columns}")
    if not (folder / "qid.npy").exists():  # made once, by another process, whose memory does not count
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            pool.submit(generate, folder / "few", _FEW, columns).result()
            pool.submit(generate, folder, rows, columns).result()
    _WORK[what][form](folder / "few")()
    imports, work = peak(), _WORK[what][form](folder)
    start = time.perf_counter()
    work()
    return {"seconds": time.perf_counter() - start, "imports": imports, "peak": peak()}


def tables(records: list[Json]) -> dict[str, str]:
    """Return the table of memory and time."""
    lines = []
    for found in records:
        rows = min(found["rows"], _TEXT_ROWS) if found["what"] in ("read CSV", "read sparse text") else found["rows"]
        size, added = 4 * rows * found["columns"] / 2**20, found["peak"] - found["imports"]
        megabytes = [f"{value:,.0f}" for value in (size, found["imports"], found["peak"])]
        numbers = [*megabytes, f"{added / size:.2f}", f"{found['seconds']:.1f}"]
        lines.append([found["what"], found["form"], f"{rows:,}", *numbers])
    head = ["", "by", "rows", "table, MB", "imports, MB", "peak, MB", "(peak - imports) / table", "seconds"]
    about = f"{records[0]['columns']} features as float32; {made_on(records)} Threads: {records[0]['threads']}."
    return {"size": f"{about}\n\n{markdown_table(head, lines, left=2)}\n"}


BENCH = Bench(
    "size",
    __doc__,
    "docs/scaling.md",
    [
        {"what": what, "form": form, "rows": 1_000_000, "columns": 136, "threads": 1}
        for what, forms in _WORK.items()
        for form in forms
    ],
    measure,
    tables,
    alone=True,
)

if __name__ == "__main__":
    sys.exit(BENCH.main())
