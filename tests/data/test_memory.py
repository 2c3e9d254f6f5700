"""Large tables: float32 stays as it is, work is done piece by piece, and neither changes a result."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import ltr.checks
import ltr.data.similar
import ltr.data.svmlight
import ltr.fitting.observations
from ltr.data import DataError, Dataset, read_data, read_svmlight
from ltr.data.dataset import checked_features
from ltr.data.similar import first_equals, similar_rows
from ltr.data.tables import read_rows
from ltr.exact import Limits
from ltr.rankers import (
    AutoRanker,
    EstimatorRanker,
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    ReproducibleSearch,
    SurrogateRanker,
    TwoStageRanker,
)
from ltr.rankers.inputs import columns_by_name
from ltr.rankers.scorers import Quantiles, Standardize
from tests.paths import ROOT

EXACT = {"limits": Limits(node_limit=50), "method": ReproducibleSearch(restarts=2)}
RANKERS = {
    "linear": SurrogateRanker(max_steps=20),
    "not convex": SurrogateRanker("smooth(statistic=dcg)", max_steps=5),
    "mlp": SurrogateRanker(scorer="mlp", hidden=(8,), max_steps=3),
    "mlp, standardized": SurrogateRanker(scorer="mlp", hidden=(8,), scale="standardize", max_steps=3),
    "mlp, in chunks": SurrogateRanker(scorer="mlp", hidden=(8,), max_steps=3, chunk_rows=50),
    "attention": SurrogateRanker(scorer="attention", hidden=(8,), heads=2, max_steps=2),
    "logistic regression": LogisticRegressionRanker(),
    "rankboost": RankBoostRanker(rounds=5),
    "exact": ExactRanker(**EXACT),
    "two stages": TwoStageRanker("ranknet", ExactRanker(**EXACT), 20, choose=False),
    "two stages, chosen": TwoStageRanker(LogisticRegressionRanker(), ExactRanker(**EXACT), 20),
    "forest": EstimatorRanker(RandomForestClassifier(n_estimators=5, random_state=0)),
    "forest below": TwoStageRanker(HistGradientBoostingClassifier(max_iter=5), ExactRanker(**EXACT), 20, choose=False),
    "auto": AutoRanker(["ranknet", "logistic"]),
}
each = pytest.mark.parametrize(
    "ranker",
    [
        pytest.param(ranker, id=name, marks=pytest.mark.slow if name in ("auto", "two stages, chosen") else ())
        for name, ranker in RANKERS.items()
    ],
)


def table(rows=120, columns=3, seed=0):
    """Return features of float32, some rows of which are equal, and labels."""
    rng = np.random.default_rng(seed)
    X = np.exp(rng.normal(size=(rows, columns))).astype(np.float32)
    X[1::20] = X[::20]
    return X, (np.log(X[:, 0]) - np.log(X[:, 1]) + 0.5 * rng.normal(size=rows) > 0).astype(np.int64)


@pytest.fixture
def pieces_of_seven(monkeypatch):
    for module in (ltr.checks, ltr.fitting.observations):
        monkeypatch.setattr(module, "PIECE", 7)


# --- rankers -----------------------------------------------------------------------------------------------------


@each
@pytest.mark.filterwarnings("ignore")
def test_float32_gives_the_scores_of_its_copy_in_float64(ranker):
    X, y = table()
    single, double = (type(ranker)(**ranker.get_params(deep=False)).fit(given, y) for given in (X, X.astype(float)))
    expected = double.predict(X.astype(float))
    for other in (single.predict(X), single.predict(X.astype(float)), double.predict(X)):
        np.testing.assert_array_equal(other, expected)
    np.testing.assert_array_equal(single.order(X), double.order(X.astype(float)))


@each
@pytest.mark.filterwarnings("ignore")
def test_scores_of_pieces_are_those_of_all_rows(ranker, pieces_of_seven, monkeypatch):
    X, y = table()
    fitted = type(ranker)(**ranker.get_params(deep=False)).fit(X, y)
    found = fitted.predict(X)
    monkeypatch.undo()
    np.testing.assert_allclose(found, fitted.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(found[1::20], found[::20])  # equal rows, wherever the pieces end


@pytest.mark.parametrize("scorer", ["mlp", "attention"])
def test_lists_are_fitted_and_scored_alike_in_pieces(scorer, pieces_of_seven, monkeypatch):
    X, y = table()
    qid = np.random.default_rng(1).integers(0, 10, size=len(y))
    options = {"scorer": scorer, "hidden": (8,), "heads": 2, "max_steps": 3, "dropout": 0.0}
    whole = SurrogateRanker(**options).fit(X, y, qid=qid)
    found = whole.predict(X, qid=qid)
    monkeypatch.undo()
    np.testing.assert_allclose(found, whole.predict(X, qid=qid), rtol=1e-9)
    np.testing.assert_allclose(found, SurrogateRanker(**options).fit(X, y, qid=qid).predict(X, qid=qid), rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
def test_scales_learned_in_pieces_are_those_of_numpy(weighted, pieces_of_seven):
    X, _ = table()
    rng = np.random.default_rng(1)
    rows, doubles = rng.permutation(len(X))[:50], X.astype(float)
    weight = rng.uniform(1, 2, size=50) if weighted else None
    scale = Standardize.fit(X, weight, rows=rows)
    mean = np.average(doubles[rows], axis=0, weights=weight)
    np.testing.assert_allclose(scale.mean, mean)
    np.testing.assert_allclose(scale.scale**2, np.average((doubles[rows] - mean) ** 2, axis=0, weights=weight))
    one, other = Quantiles.fit(X, rows=rows), Quantiles.fit(doubles[rows])
    assert torch.equal(one.knots, other.knots)
    assert torch.equal(one.values, other.values)


def test_float32_is_neither_copied_nor_changed(tmp_path):
    X, y = table()
    assert np.shares_memory(checked_features(X), X)
    assert np.shares_memory(Dataset("d", X, y, copy=False).X, X)
    assert not np.shares_memory(kept := Dataset("d", X, y).X, X)
    assert kept.dtype == np.float32
    frame = pd.DataFrame(X, columns=["a", "b", "c"], copy=False)
    assert np.shares_memory(columns_by_name(frame, ["a", "b", "c"]), X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")  # which may not be written
    ranker = SurrogateRanker(scorer="mlp", hidden=(8,), max_steps=1, chunk_rows=20).fit(mapped, y)
    np.testing.assert_array_equal(ranker.predict(mapped), ranker.predict(X))
    assert np.shares_memory(ranker._features(mapped), mapped)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_values_are_named_wherever_the_pieces_end(bad, pieces_of_seven):
    X, _ = table(30)
    X[[20, 25], [1, 1]], X[9, 2] = bad, bad
    with pytest.raises(DataError, match=rf"got {bad} in column 2, row 21, {bad} in column 3, row 10; fill in"):
        checked_features(X)
    large = X.astype(float)
    large[~np.isfinite(large)] = 1e200
    with pytest.raises(DataError, match=r"at most 1e\+150 in size, got 1e\+200 in column 2, row 21"):
        checked_features(large)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), min_size=1, max_size=25), st.booleans()
)
def test_the_first_equal_row_is_that_of_a_comparison_of_all(rows, by_list):
    X, lists = np.array([row[:2] for row in rows], dtype=np.float32), np.array([row[2] for row in rows])
    keys = [row if by_list else row[:2] for row in rows]
    assert first_equals(X, lists if by_list else None).tolist() == [keys.index(key) for key in keys]


def test_rows_with_equal_sums_are_told_apart(monkeypatch):
    class Zeros:
        def normal(self, size):
            return np.zeros(size)

    monkeypatch.setattr(ltr.data.similar.np.random, "default_rng", lambda _: Zeros())
    assert first_equals(np.array([[1.0], [2.0], [1.0]])).tolist() == [0, 1, 0]


def test_similar_rows_of_long_tables_are_found_as_in_short_ones(monkeypatch):
    X, _ = table(400)
    repeated = np.repeat(X, 5, axis=0)
    expected = similar_rows(repeated)
    monkeypatch.setattr(ltr.data.similar, "_ROWS", 100)
    np.testing.assert_array_equal(similar_rows(repeated), expected)
    assert similar_rows(np.random.default_rng(0).normal(size=(400, 3))) is None


# --- files -------------------------------------------------------------------------------------------------------


def parquet(path, X, y, query=None, **options):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({f"f{j}": column for j, column in enumerate(X.T)} | {"y": y})
    if query is not None:
        frame["query"] = query
    frame.to_parquet(path, **options)
    return path


@pytest.mark.parametrize("group", [3, 1000])
def test_parquet_is_read_into_one_matrix_of_float32(tmp_path, group, pieces_of_seven):
    X, y = table()
    query = [f"q{row // 10}" for row in range(len(y))]
    path = parquet(tmp_path / "t.parquet", X, y, query, row_group_size=group)
    data = read_data(path, label="y", query="query")
    assert data.X.dtype == np.float32
    assert data.X.flags.c_contiguous
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.query_ids.tolist() == sorted(set(query), key=query.index)
    rows, ids = read_rows(path, ["f2", "f0"], query="query")
    np.testing.assert_array_equal(rows, X[:, [2, 0]])
    assert ids.tolist() == query
    wide = parquet(tmp_path / "wide.parquet", np.tile(X, 11).astype(np.float64), y)  # more columns than at a time
    np.testing.assert_array_equal(read_data(wide, label="y").X, np.tile(X, 11))


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    X, y = table()
    whole = read_data(parquet(tmp_path / "whole.parquet", X, y), label="y")
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "_SUCCESS").write_text("")
    (folder / ".part-1.parquet.crc").write_bytes(b"0")
    for k in range(3):
        parquet(folder / f"part-{k}.parquet", X[k::3], y[k::3])
    order = np.concatenate([np.arange(len(y))[k::3] for k in range(3)])
    data = read_data(folder, label="y")
    np.testing.assert_array_equal(data.X, whole.X[order])
    np.testing.assert_array_equal(data.y, whole.y[order])
    assert data.X.dtype == np.float32
    assert data.name == "parts"
    np.testing.assert_array_equal(read_rows(folder, ["f1"])[0], X[order][:, [1]])


def svmlight(path, X, y):
    lines = [f"{label} qid:{k // 7} " + " ".join(f"{j}:{v!r}" for j, v in enumerate(row, 1) if v)
             for k, (label, row) in enumerate(zip(y.tolist(), X.tolist(), strict=True))]  # fmt: skip
    path.write_text("# data\n" + "\n\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("block", [1, 60, 10_000])
@pytest.mark.parametrize("dtype", ["auto", "float32", "float64"])
def test_sparse_text_is_the_same_in_pieces_of_any_size(tmp_path, monkeypatch, block, dtype):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 4)) < 0.5, rng.normal(size=(40, 4)).round(6), 0.0)
    X[:20] = np.round(X[:20])  # so that the first pieces are float32
    y = rng.integers(0, 3, size=40)
    path = svmlight(tmp_path / "t.txt", X, y)
    monkeypatch.setattr(ltr.data.svmlight, "_BLOCK", block)
    data = read_svmlight(path, dtype=dtype)
    np.testing.assert_array_equal(data.X, X.astype(np.float32) if dtype == "float32" else X)
    assert data.X.dtype == (np.float32 if dtype == "float32" else np.float64)
    np.testing.assert_array_equal(data.y, y)
    np.testing.assert_array_equal(data.qid, np.arange(40) // 7)
    chosen = read_svmlight(path, features=["f9", "f3", "f1"], dtype=dtype)
    np.testing.assert_array_equal(chosen.X, np.column_stack([0 * X[:, 0], data.X[:, 2], data.X[:, 0]]))


def test_whole_numbers_of_sparse_text_are_float32_and_large_ones_are_refused_there(tmp_path):
    path = tmp_path / "t.txt"
    path.write_text("0 1:3 2:0.5\n1 1:16777217\n")  # 2^24 + 1, which float32 does not have
    assert read_svmlight(path).X.dtype == np.float64
    assert read_svmlight(path, dtype="float32").X[1, 0] == 2**24
    path.write_text("0 1:3 2:0.5\n1 1:16777216\n")
    assert read_svmlight(path).X.dtype == np.float32
    path.write_text("0 1:3 2:0.5\n1 1:1e40\n")
    with pytest.raises(DataError, match=r"finite and none missing, got inf in column 'f1', row 2"):
        read_svmlight(path, dtype="float32")
    with pytest.raises(ValueError, match="dtype must be one of 'auto', 'float32', 'float64', got 'half'"):
        read_svmlight(path, dtype="half")


# --- memory ------------------------------------------------------------------------------------------------------

CHILD = """
import sys
import time
import numpy as np
sys.path.insert(0, {root!r})
from scripts._bench import peak
from ltr.rankers import *
from ltr.exact import Limits

def work(rows):
    rng = np.random.default_rng(0)
    X, y = rng.random(size=(rows, 50), dtype=np.float32), rng.integers(0, 2, size=rows)
    ranker = {ranker}
    few = slice(0, 1000) if {predicting} else slice(None)
    ranker.fit(X[few], y[few], **{given})
    ranker.predict(X)

work(1000)
before = peak()
work({rows})
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read as Linux tells it")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("ranker", "predicting", "most"),
    [
        ("SurrogateRanker(scorer='mlp', hidden=(32,), max_steps=1)", False, 4.0),
        ("SurrogateRanker(scorer='mlp', hidden=(32,), max_steps=1)", True, 2.5),
        ("SurrogateRanker(max_steps=2)", False, 5.0),
        ("SurrogateRanker(max_steps=2)", True, 1.8),
        ("TwoStageRanker('ranknet', ExactRanker(limits=Limits(node_limit=5)), 20, choose=False)", True, 2.0),
        ("AutoRanker(['logistic', 'boosting', 'forest'])", True, 1.8),
        ("LogisticRegressionRanker()", True, 1.5),
    ],
)
def test_the_peak_of_memory_is_a_small_multiple_of_the_table(ranker, predicting, most):
    rows = 200_000
    given = "{}" if "mlp" not in ranker else "{'qid': np.arange(len(y[few])) // 100}"
    root = str(ROOT)
    code = CHILD.format(root=root, ranker=ranker, predicting=predicting, given=given, rows=rows)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[-1]) / (rows * 50 * 4 / 2**20) < most
