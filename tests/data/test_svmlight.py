"""Sparse text files, and query sizes beside them."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from ltr.data import DataError, format_of, load, load_test, read_rows, read_svmlight

LETOR = """# a comment, and a blank line

2 qid:10 1:0.5 3:1 # doc a
0 qid:10 2:0.25
1 qid:x9 1:2
0 qid:10 4:-1e-3
"""


def written(folder, text, sizes=None, name="some.letor"):
    path = folder / name
    path.write_text(text)
    if sizes is not None:
        (folder / f"{name}.query").write_text(sizes)
    return path


def test_lines_comments_and_queries_in_any_order(tmp_path):
    data = read_svmlight(written(tmp_path, LETOR))
    assert data.name == "some"
    assert data.feature_names == ("f1", "f2", "f3", "f4")
    assert data.X.tolist() == [[0.5, 0, 1, 0], [0, 0.25, 0, 0], [2, 0, 0, 0], [0, 0, 0, -1e-3]]
    assert data.y.tolist() == [2, 0, 1, 0]
    assert data.qid.tolist() == [0, 0, 1, 0]
    assert data.query_ids.tolist() == ["10", "x9"]


@pytest.mark.parametrize("qid", ["9223372036854775807", "18446744073709551615", "-3", "1.5", "shop:7", "007"])
def test_ids_of_queries_are_texts(tmp_path, qid):
    data = read_svmlight(written(tmp_path, f"1 qid:{qid} 1:1\n0 qid:{qid} 1:2\n0 qid:7 1:1\n"))
    assert data.query_ids.tolist() == [qid, "7"]


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_agrees_with_scikit_learn(tmp_path_factory, seed, zero_based):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 12), rng.integers(1, 7)
    X = np.round(rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5), 6)
    X[0, 0] = X[0, -1] = 1.0  # index 0 tells that indices begin there, the last one how many there are
    y, qid = np.r_[0, 1, rng.integers(0, 5, n - 2)], np.r_[5, 5, rng.integers(0, 9, n - 2)]
    path = tmp_path_factory.mktemp("svmlight") / "data.txt"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based, query_id=qid)
    data = read_svmlight(path)
    theirs, labels, queries = load_svmlight_file(str(path), query_id=True)
    np.testing.assert_array_equal(data.X, theirs.toarray())
    np.testing.assert_array_equal(data.y, labels)
    np.testing.assert_array_equal(data.query_ids.astype(int)[data.qid], queries)
    assert data.feature_names[0] == ("f0" if zero_based else "f1")


def test_features_asked_for_are_found_by_index_others_are_0_or_ignored(tmp_path):
    train = read_svmlight(written(tmp_path, "1 2:5 3:1\n0 3:2\n", "2\n", "train"))
    assert train.feature_names == ("f1", "f2", "f3")
    test = read_svmlight(written(tmp_path, "0 0:9 1:4 900:7\n1 2:3\n", "2", "test"), features=train.feature_names)
    assert test.X.tolist() == [[4, 0, 0], [0, 3, 0]]
    X, queries = read_rows(tmp_path / "test", ["f900", "f3", "f2"])
    assert X.tolist() == [[7, 0, 0], [0, 0, 3]]
    assert queries.tolist() == [0, 0]


def test_sizes_beside_the_file_tell_its_queries(tmp_path):
    text = "".join(f"{label} 1:{label}.5\n" for label in (0, 3, 1, 1, 2))
    data = read_svmlight(written(tmp_path, text, "3\n1\n\n1\n"))
    assert data.qid.tolist() == [0, 0, 0, 1, 2]
    with pytest.raises(DataError, match=r"must come from one place, got qid: in its lines and some.letor.query beside"):
        read_svmlight(written(tmp_path, LETOR, "4"))


@pytest.mark.parametrize("positive", ["+1", "1", "1.0"])
@pytest.mark.parametrize("negative", ["-1", "0"])
def test_without_queries_labels_are_two_classes(tmp_path, positive, negative):
    data = read_svmlight(written(tmp_path, f"{positive} 1:2\n{negative} 1:1\n{negative} 1:3\n"))
    assert (data.y.tolist(), data.qid) == ([1, 0, 0], None)


@pytest.mark.parametrize(
    ("text", "sizes", "message"),
    [
        ("", None, "the file contains no observations"),
        ("1 1:1\nx 1:2\n", None, "a line must begin with a number, its label, got 'x' in line 2"),
        ("1 1:1\n\n0 1:a\n", None, "features must read index:value, got '1:a' in line 3"),
        ("1 1:1\n0 2:1 1:1\n", None, "indices of features must ascend within a line, to at most 2147483647, got 1 in"),
        ("1 1:1\n0 1:nan\n", None, "values must be finite and none missing, got nan in column 'f1', row 2"),
        ("1 qid:1 1:1\n\n0 1:1\n", None, "all lines must have a qid: or none, got line 3 unlike those before"),
        ("1 1:1\n2 1:2\n", None, "labels must be 0 or 1, got 2 in row 2"),
        ("1 qid:1 1:1\n-1 qid:1 1:2\n", None, "labels must be whole numbers from 0 to 1000, got -1 in row 2"),
        ("1 qid:1 1:1\n0 qid:2 1:2\n", None, "at least one query must have two different labels, got none"),
        ("1 1:1\n0 1:2\n", "1\n2\n", "must add up to the 2 rows of the data, got 3; give sizes, not one id per row"),
        ("1 1:1\n0 1:2\n", "two\n", "query sizes must be whole numbers above 0, got 'two' in line 1"),
        ("1 1:1\n0 2000000000:1\n", None, "2 rows of 2000000000 features would take 32.0 GB as dense float64, the lim"),
    ],
)
def test_bad_files_are_named_with_line_or_row(tmp_path, text, sizes, message):
    path = written(tmp_path, text, sizes)
    with pytest.raises(DataError) as error:
        read_svmlight(path)
    assert message in str(error.value)
    assert "some" in str(error.value)


def test_formats_are_told_by_content_and_suffix(tmp_path):
    for name, text, expected in [
        ("rank.train", "0 1:2 7:0.5\n", "svmlight"),
        ("letor.txt", LETOR, "svmlight"),
        ("a.csv", "a,y\n1,0\n", "table"),
        ("a.txt", "a b\n1 0\n", "table"),
        ("b.txt", "1 2 3\n", "table"),
        ("times.csv", "12:30,1\n", "table"),
        ("x.parquet", "0 1:2\n", "table"),
        ("empty.txt", "", "table"),
    ]:
        assert format_of(written(tmp_path, text, name=name)) == expected, name
    assert format_of(tmp_path / "missing") == "table"


@pytest.mark.skipif("LTR_DATA" not in os.environ, reason="needs LTR_DATA")
def test_the_example_of_lightgbm():
    train, test = load("lightgbm_lambdarank"), load_test("lightgbm_lambdarank")
    assert (train.n, train.d, train.n_queries) == (3005, 300, 201)
    assert (test.n, test.d, test.n_queries) == (768, 300, 50)
    assert np.bincount(train.y).tolist() == [645, 1211, 858, 222, 69]
    assert train.feature_names == test.feature_names == tuple(f"f{j}" for j in range(1, 301))
    assert np.bincount(train.qid)[:4].tolist() == [1, 13, 5, 8]
    assert train.X[0, [8, 9, 10]].tolist() == [0.0, 0.89, 0.75]
