"""Measure memory and time on a large table: reading it, training a network, predicting, and ranking in two stages.

The table is generated: graded labels 0 to 4, about 100 rows a query, float32 features, of which half have heavy tails.
Every measurement runs in a process of its own. Memory is the peak of that process by the operating system, from which
that of its imports is subtracted; the table gives both as multiples of the features as float32. Each measurement of
ours stands beside a plain form of the same work: pandas for parquet and CSV, scikit-learn for sparse text, a training
loop in torch with the same scaling, network and loss. (Imports are those of the work: it is done with a few rows
first.)

    python scripts/bench_size.py                                             # a small table, to try it
    python scripts/bench_size.py --rows 1000000 --docs docs/scaling.md
    python scripts/bench_size.py --rows 1000000 --only predict train
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from _bench import Json, apart, command_line, parsed, peak, publish
from numpy.typing import NDArray
from torch import nn

from ltr.data import read_svmlight, read_table
from ltr.exact import Limits
from ltr.losses import RankNetLoss
from ltr.rankers import ExactRanker, LogisticRegressionRanker, Ranker, SurrogateRanker, TwoStageRanker
from trainers.provenance import machine
from trainers.tables import markdown_table

Float32Array = NDArray[np.float32]
IntArray = NDArray[np.int64]
_PIECE = 50_000  # rows that are generated at a time
_TEXT_ROWS = 200_000  # most rows that are written as text
_FEW = 2_000  # rows of the table on which the work is done first
_HIDDEN, _DROPOUT, _LISTS = (256, 128), 0.3, 16  # the defaults of the network


def generate(folder: Path, rows: int, columns: int) -> None:
    """Write the table as arrays (``X.npy``, ``y.npy``, ``qid.npy``), as parquet, and its first rows as text and CSV."""
    folder.mkdir(exist_ok=True)
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


def loaded(folder: Path) -> tuple[Float32Array, IntArray, IntArray]:
    """Return features, labels and queries, in memory."""
    return np.load(folder / "X.npy"), np.load(folder / "y.npy"), np.load(folder / "qid.npy")


# what is measured: ours, then the plain form


def _network(**options: object) -> SurrogateRanker:
    return SurrogateRanker(scorer="mlp", scale="standardize", max_steps=1, **options)  # type: ignore[arg-type]


def train(folder: Path) -> float:
    """Fit the network for one epoch."""
    X, y, qid = loaded(folder)
    start = time.perf_counter()
    _network().fit(X, y, qid=qid)
    return time.perf_counter() - start


def train_plainly(folder: Path) -> float:
    """Train the network for one epoch in a loop of torch, as one would write it by hand, and return the seconds."""
    X, y, qid = loaded(folder)
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    _, first, counts = np.unique(qid, return_index=True, return_counts=True)
    order = rng.permutation(len(first))
    held, kept = np.split(order, [len(order) // 5])
    members = [torch.arange(at, at + count) for at, count in zip(first.tolist(), counts.tolist(), strict=True)]
    mean, scale = X.mean(0, dtype=np.float64), X.std(0, dtype=np.float64)
    Z = torch.from_numpy((X - mean.astype(np.float32)) / scale.astype(np.float32))
    labels, queries = torch.from_numpy(y).float(), torch.from_numpy(qid)
    widths = [Z.shape[1], *_HIDDEN]
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.SiLU(), nn.Dropout(_DROPOUT)]
    model, loss = nn.Sequential(*layers, nn.Linear(widths[-1], 1), nn.Flatten(0)), RankNetLoss()
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
    return time.perf_counter() - start


def predict(folder: Path, ranker: Ranker) -> float:
    """Score all rows by a ranker that was fitted to a few of them."""
    X, y, qid = loaded(folder)
    few = slice(0, _FEW)
    given = {} if isinstance(ranker, LogisticRegressionRanker) else {"qid": qid[few]}
    ranker.fit(X[few], y[few] > 1 if not given else y[few], **given)
    start = time.perf_counter()
    ranker.predict(X)
    return time.perf_counter() - start


def two_stages(folder: Path) -> float:
    """Fit two stages to all rows as one list, and rank them."""
    X, y, _ = loaded(folder)
    start = time.perf_counter()
    exact = ExactRanker(limits=Limits(time_limit=1))
    ranker = TwoStageRanker(SurrogateRanker(max_steps=3), exact, top_k=50, choose=False)
    ranker.fit(X, y > 1).order(X)
    return time.perf_counter() - start


def read_plainly(folder: Path, suffix: str = "parquet") -> float:
    """Read the parquet file, or the CSV file, with pandas and make a matrix of it."""
    import pandas as pd

    start, path = time.perf_counter(), folder / f"table.{suffix}"
    frame = pd.read_parquet(path) if suffix == "parquet" else pd.read_csv(path)
    frame.pop("y"), frame.pop("query")
    np.ascontiguousarray(frame.to_numpy())
    return time.perf_counter() - start


def read_whole(folder: Path, suffix: str = "parquet") -> float:
    """Read the parquet file, or the CSV file."""
    start = time.perf_counter()
    read_table(folder / f"table.{suffix}", label="y", query="query")
    return time.perf_counter() - start


def read_text_plainly(folder: Path) -> float:
    """Read the sparse text with scikit-learn and make a matrix of it."""
    from sklearn.datasets import load_svmlight_file

    start = time.perf_counter()
    load_svmlight_file(str(folder / "table.svm"), dtype=np.float32, query_id=True)[0].toarray()
    return time.perf_counter() - start


def read_text(folder: Path) -> float:
    """Read the sparse text."""
    start = time.perf_counter()
    read_svmlight(folder / "table.svm", dtype="float32")
    return time.perf_counter() - start


_WORK: dict[str, tuple[str, Sequence[tuple[str, Callable[[Path], float]]]]] = {
    "parquet": ("read parquet", [("ltr", read_whole), ("pandas", read_plainly)]),
    "csv": ("read CSV", [("ltr", lambda at: read_whole(at, "csv")), ("pandas", lambda at: read_plainly(at, "csv"))]),
    "text": ("read sparse text", [("ltr", read_text), ("scikit-learn", read_text_plainly)]),
    "train": ("train a network, one epoch", [("ltr", train), ("torch", train_plainly)]),
    "linear": ("score by a linear ranker", [("ltr", lambda at: predict(at, LogisticRegressionRanker()))]),
    "predict": ("score by a network", [("ltr", lambda at: predict(at, SurrogateRanker(scorer="mlp", max_steps=1)))]),
    "stages": ("two stages, one list", [("ltr", two_stages)]),
}


def measure(request: Json) -> Json:
    """Return the record of one measurement."""
    torch.set_num_threads(request["threads"])
    folder = Path(request["folder"])
    if request["what"] == "generate":
        generate(folder, request["rows"], request["columns"])
        generate(folder / "few", _FEW, request["columns"])
        return request
    work = dict(_WORK[request["what"]][1])[request["form"]]
    work(folder / "few")
    imports, seconds = peak(), work(folder)
    return request | {"status": "ok", "seconds": seconds, "imports": imports, "peak": peak()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything, and write the table."""
    parser = command_line(__doc__, "runs/size")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of the table (default: %(default)s)")
    parser.add_argument("--columns", type=int, default=136, help="features (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: %(default)s)")
    parser.add_argument("--only", nargs="*", choices=list(_WORK), default=list(_WORK), help="what to measure")
    options = parsed(parser, measure, arguments)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        common = {"folder": folder, "rows": options.rows, "columns": options.columns, "threads": options.threads}
        apart(__file__, common | {"what": "generate"})
        for what in options.only:
            rows = min(options.rows, _TEXT_ROWS) if what in ("csv", "text") else options.rows
            size = 4 * rows * options.columns / 2**20
            for form, _ in _WORK[what][1]:
                found = apart(__file__, common | {"what": what, "form": form}, threads=options.threads)
                print({key: value for key, value in found.items() if key not in common}, flush=True)
                if found["status"] == "ok":
                    added = found["peak"] - found["imports"]
                    megabytes = [f"{value:,.0f}" for value in (size, found["imports"], found["peak"])]
                    numbers = [*megabytes, f"{added / size:.2f}", f"{found['seconds']:.1f}"]
                    lines.append([_WORK[what][0], form, f"{rows:,}", *numbers])
    head = ["", "by", "rows", "table, MB", "imports, MB", "peak, MB", "(peak - imports) / table", "seconds"]
    about = (
        f"{options.columns} features as float32; {machine()}; torch {torch.__version__}, threads: {options.threads}."
    )
    publish(options, "size", f"{about}\n\n{markdown_table(head, lines, left=2)}\n")


if __name__ == "__main__":
    main()
