import math

import numpy as np
import pandas as pd
import pytest

from ltr.data import DataError, Dataset, dataset_names, gaussians, half_split, load, read_data, read_rows, read_texts
from ltr.data.named import FILES, LISTS_BY_QUERY
from tests.paths import DATA

needs_files = pytest.mark.skipif(not DATA.is_dir(), reason="the paper's data files are not here: set LTR_DATA")


def write(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


# --- Dataset -----------------------------------------------------------------------------------------------------


def test_dataset_counts_and_dtypes():
    data = Dataset("toy", [[1, 2], [3, 4], [5, 6]], [True, False, False], ["a", "b"])
    assert (data.n, data.d, data.n_pos, data.feature_names) == (3, 2, 1, ("a", "b"))
    assert data.X.dtype == np.float64
    assert data.y.dtype == np.int64
    assert data.X.flags.c_contiguous


@pytest.mark.parametrize(
    ("X", "y", "names", "message"),
    [
        ([[1.0], [math.nan]], [0, 1], ["a"], "data set t: values must be finite.*got nan in column 'a', row 2"),
        ([[1.0], [1e200]], [0, 1], ["a"], r"at most 1e\+150 in size, got 1e\+200 in column 'a', row 2"),
        ([[0.0], [1e-200]], [0, 1], ["a"], "constant or span at least 1e-150, got 0.0 to 1e-200 in column 'a'"),
        ([[1.0], [2.0]], [0, 2], None, "data set t: labels must be 0 or 1, got 2 in row 2"),
        ([[1.0], [2.0]], [1, 1], None, "labels must hold both classes, got only 1"),
        ([[1.0], [2.0]], [0, 1, 1], None, r"labels must be one per row \(2\), got shape \(3,\)"),
        ([[1.0], [2.0]], ["no", "yes"], None, "labels must be the numbers 0 and 1"),
        ([1.0, 2.0], [0, 1], None, r"features must be 2-D.*got shape \(2,\)"),
        ([["x"], ["y"]], [0, 1], None, "features must be numbers"),
        ([[1.0, 2.0], [2.0, 3.0]], [0, 1], ["a"], "1 feature names for 2 columns"),
        ([[1.0, 2.0], [2.0, 3.0]], [0, 1], ["a", "a"], "column names must differ, got 'a' for columns 1 and 2"),
    ],
)
def test_dataset_errors_name_place_and_rule(X, y, names, message):
    with pytest.raises(DataError, match=message):
        Dataset("t", X, y, names)


def test_a_dataset_does_not_change_with_the_callers_arrays():
    X, y, qid = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.array([0, 1, 2]), np.array([0, 0, 1])
    data = Dataset("toy", X, y, qid=qid)
    X[:], y[:], qid[:] = 0, 0, 0
    assert data.X.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    assert data.y.tolist() == [0, 1, 2]
    assert data.qid.tolist() == [0, 0, 1]
    given = np.array([[1.0], [2.0]])
    assert Dataset("toy", given, [0, 1], copy=False).X is given


# --- generated data ----------------------------------------------------------------------------------------------


def test_gaussians_follow_the_recipe():
    data = gaussians(seed=0, n=6210)  # the whole population
    small_negative = data.X[:, 0] > 7
    small_positive = data.X[:, 1] < -2.7
    assert (data.n, data.d, data.n_pos) == (6210, 2, 3200)
    assert int(small_negative.sum()) == 10
    assert not data.y[small_negative].any()
    assert abs(int((small_positive & (data.y == 1)).sum()) - 200) <= 2
    large = ~small_negative & (data.X[:, 1] > -2.7)
    for label, mean in ((1, [0, 1]), (0, [0, 0])):
        clump = data.X[large & (data.y == label)]
        # the mean of 3000 draws has standard deviation sqrt(0.5 / 3000) = 0.013
        np.testing.assert_allclose(clump.mean(axis=0), mean, atol=0.06)
        np.testing.assert_allclose(clump.var(axis=0), 0.5, atol=0.05)


def test_gaussians_are_seeded():
    first, again, other = gaussians(3), load("gaussians", seed=3), gaussians(4)
    assert first.X.shape == (1250, 2)
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.X, other.X)
    # 1250 * 3200 / 6210 = 644.1 positives are expected, with standard deviation 15.8
    assert abs(first.n_pos - 644.1) < 5 * 15.8
    with pytest.raises(ValueError, match="n must be between 2 and 6210, got 6211"):
        gaussians(0, n=6211)


# --- named files -------------------------------------------------------------------------------------------------

FACTS = [  # name, rows, features, positives
    ("abalone19", 4174, 8, 32),
    ("uis", 575, 8, 147),
    ("travel", 840, 7, 210),
    ("nhanes", 600, 16, 104),
    ("pima", 768, 8, 268),
    ("haberman", 306, 3, 81),
    ("polypharm", 500, 12, 133),
    ("glow500", 500, 13, 125),
]
INSTALLED = [  # tables inside packages: name, package, rows, features, positives
    ("breast_cancer", "sklearn", 569, 30, 212),
    ("diabetes", "sklearn", 442, 10, 111),
    ("digits", "sklearn", 1797, 16, 174),
    ("wine", "sklearn", 178, 13, 71),
    ("fair", "statsmodels", 6366, 8, 2053),
    ("fair_pt", "statsmodels", 601, 8, 150),
    ("anes96", "statsmodels", 944, 9, 393),
    ("randhie", "statsmodels", 2019, 9, 190),
    ("star98", "statsmodels", 303, 12, 76),
]


def test_facts_cover_every_file():
    by = {package: {name for name, of, *_ in INSTALLED if of == package} for package in ("sklearn", "statsmodels")}
    assert {name for name, *_ in FACTS} | by["statsmodels"] == set(FILES)
    named = ("gaussians", "theorem1", "roc_standin", "grouped", *FILES, *by["sklearn"], *LISTS_BY_QUERY)
    assert (len(dataset_names()), set(dataset_names())) == (len(named), set(named))


@pytest.mark.parametrize(("name", "package", "n", "d", "n_pos"), INSTALLED)
def test_tables_of_installed_packages(name, package, n, d, n_pos, monkeypatch):
    pytest.importorskip(package)
    monkeypatch.delenv("LTR_DATA", raising=False)
    data = load(name)
    assert (data.name, data.n, data.d, data.n_pos, len(data.feature_names)) == (name, n, d, n_pos, d)
    # no feature tells the label by itself
    order = np.argsort(data.X, axis=0, kind="stable")
    for column in range(d):
        y = data.y[order[:, column]]
        assert np.diff(y).astype(bool).sum() > 1, data.feature_names[column]


@needs_files
@pytest.mark.parametrize(("name", "n", "d", "n_pos"), FACTS)
def test_named_data_has_the_documented_shape(name, n, d, n_pos):
    data = load(name, data_dir=DATA)
    assert (data.name, data.n, data.d, data.n_pos) == (name, n, d, n_pos)
    assert len(data.feature_names) == d
    assert np.isfinite(data.X).all()


@needs_files
def test_columns_that_tell_the_label_are_left_out():
    assert not {"ID", "BMI", "WT", "HT", "OBESE"} & set(load("nhanes", data_dir=DATA).feature_names)
    assert not {"SUB_ID", "FRACTURE"} & set(load("glow500", data_dir=DATA).feature_names)
    assert not {"mode", "choice"} & set(load("travel", data_dir=DATA).feature_names)
    assert "ID" not in load("uis", data_dir=DATA).feature_names
    assert "ID" not in load("polypharm", data_dir=DATA).feature_names


@needs_files
def test_uis_dummies_and_abalone_sex():
    uis = load("uis", data_dir=DATA)
    previous, recent = (uis.X[:, uis.feature_names.index(f"IVHX_{when}")] for when in ("previous", "recent"))
    assert (int(previous.sum()), int(recent.sum()), int((previous * recent).sum())) == (109, 243, 0)
    abalone = load("abalone19", data_dir=DATA)
    assert abalone.X[0].tolist() == [0, 0.455, 0.365, 0.095, 0.514, 0.2245, 0.101, 0.15]  # M is 0
    assert np.unique(abalone.X[:, 0]).tolist() == [0, 1, 2]
    assert len(np.unique(abalone.X, axis=0)) == abalone.n


def test_missing_and_changed_files(tmp_path):
    with pytest.raises(DataError, match=r"uis[/\\]uis.csv: no such file; data set uis was found at github.com"):
        load("uis", data_dir=tmp_path)
    (tmp_path / "uis").mkdir()
    write(tmp_path / "uis", "ID,DFREE\n1,0\n", "uis.csv")
    with pytest.raises(DataError, match=r"uis.csv: this is not the documented file.*SHA-256 is [0-9a-f]{64}, expected"):
        load("uis", data_dir=tmp_path)


# --- tables ------------------------------------------------------------------------------------------------------

ROWS = pd.DataFrame({"id": [7, 8, 9], "hours": [10.5, 99.0, -3.0], "loud": [True, False, True], "failed": [0, 1, 0]})
X = [[10.5, 1.0], [99.0, 0.0], [-3.0, 1.0]]


def save(frame, path):
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep={".tsv": "\t", ".txt": ";", ".dat": "|"}.get(path.suffix, ","))
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".dat", ".parquet"])
def test_every_format_reads_the_same(tmp_path, suffix):
    path = save(ROWS, tmp_path / f"machines{suffix}")
    data = read_data(path, label="failed", drop=["id"])
    assert (data.name, data.feature_names) == ("machines", ("hours", "loud"))
    assert data.X.tolist() == X
    assert data.y.tolist() == [0, 1, 0]
    assert read_data(path, label="failed", features=["loud", "hours"]).X.tolist() == [row[::-1] for row in X]
    # prediction finds columns by name in a file of another order, with columns more and no label
    other = save(ROWS[["loud", "id", "hours"]], tmp_path / f"later{suffix}")
    np.testing.assert_array_equal(read_rows(other, data.feature_names)[0], data.X)


@pytest.mark.parametrize(
    "text",
    [
        "a,y\r\n1,0\r\n2,1\r\n",
        "\ufeffa,y\n1,0\n2,1\n",
        "\n a , y \n1, 0\n\n2, 1\n",
        '"a","y"\n"1","0"\n2,1',
        "a,y\n1,0,\n2,1,\n",
        "a,y\n1 ,0 \n2 , 1\n",
        "a,y\n1.0,False\n2.0,True\n",
        "a,y\n1,0.0\n2e0,1.0\n",
    ],
)
def test_text_that_means_the_same(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    data = read_data(path, label="y")
    assert (data.feature_names, data.X.tolist(), data.y.tolist()) == (("a",), [[1.0], [2.0]], [0, 1])


def test_texts_stand_beside_the_rows_of_the_features(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\n id ; a ;note\n   \n007;1.50;"x; y"\n\n \n008;2;\n')
    assert read_rows(path, ["a"])[0].tolist() == [[1.5], [2.0]]
    texts = {name: column.tolist() for name, column in read_texts(path).items()}
    assert texts == {"id": ["007", "008"], "a": ["1.50", "2"], "note": ["x; y", ""]}
    assert read_texts(write(tmp_path, "x", "t.xlsx")) == {}


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "table.csv: the file is empty"),
        ("a,y\n", {}, "table.csv: the table has no rows"),
        ("a,b\n1,0\n2,1\n", {}, "table.csv: no label column 'y'; the file has a, b$"),
        ("6,148,0\n1,85,1\n", {"label": "2"}, "no label column '2'.*the first line must hold the column names"),
        ("a,y\n1,0\n2,1\n", {"features": ["a", "b", "c"]}, "no feature column 'b', 'c'; the file has a, y"),
        ("a,y\n1,0\n2,1\n", {"drop": ["b"]}, "no column to drop 'b'"),
        ("a,b,y\n1,2,0\n2,3,1\n", {"features": ["a"], "drop": ["a"]}, "feature column 'a' is also dropped"),
        ("a,y\n1,0\n,1\n", {}, "got nan in column 'a', row 2"),
        ("a,y\n1,0\nred,1\nblue,0\n", {}, "column 'a' must hold numbers, got 'red' in row 2"),
        ("a,y\n1,si\n2,no\n", {}, "column 'y': labels must be 0 and 1, or yes and no, got 'si', 'no'; data.positive ="),
        ("a,b,a,y\n1,2,3,0\n1,2,3,1\n", {}, "column names must differ, got 'a' for columns 1 and 3"),
        ("a,y\n1,0\n2,1,5\n", {}, "line 3 has 3 fields, the header 2; correct these lines"),
        ('a,y\n"1,0\n', {}, "not a table separated by ',': .*EOF inside string"),
        ("a,b,y\n1,2,0\n1,1\n", {}, "line 3 has 2 fields, the header 3"),
    ],
)
def test_bad_tables_are_explained(tmp_path, text, options, message):
    with pytest.raises(DataError, match=message):
        read_data(write(tmp_path, text), **{"label": "y", **options})


def test_bad_files_are_explained(tmp_path):
    with pytest.raises(DataError, match=r"none.csv: no such file"):
        read_data(tmp_path / "none.csv", label="y")
    with pytest.raises(DataError, match="is not a file"):
        read_data(tmp_path, label="y")
    with pytest.raises(DataError, match=r"unknown file type '.xls'; known are .csv .* save the table as one of these"):
        read_data(write(tmp_path, "x", "t.xls"), label="y")
    with pytest.raises(DataError, match=r"t\.xlsx: not a workbook"):
        read_data(write(tmp_path, "x", "t.xlsx"), label="y")
    (tmp_path / "zeros.csv").write_bytes(b"a,y\n\0,0\n")
    with pytest.raises(DataError, match="not a text table: it has bytes of zero"):
        read_data(tmp_path / "zeros.csv", label="y")
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="not a parquet file"):
        read_data(write(tmp_path, "x", "t.parquet"), label="y")


def test_nullable_and_categorical_columns(tmp_path):
    pytest.importorskip("pyarrow")
    columns = {"a": pd.array([1, None], dtype="Int64"), "b": pd.Categorical([3, 4]), "c": pd.Categorical(["u", "v"])}
    pd.DataFrame(columns | {"y": [0, 1]}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="got nan in column 'a', row 2"):
        read_data(tmp_path / "t.parquet", label="y", features=["a"])
    with pytest.raises(DataError, match="column 'c' must hold numbers, got 'u' in row 1"):
        read_data(tmp_path / "t.parquet", label="y", features=["c"])
    assert read_data(tmp_path / "t.parquet", label="y", features=["b"]).X.tolist() == [[3], [4]]


# --- splits ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 5, 306, 575])
def test_half_split_is_a_seeded_permutation(n):
    train, test = half_split(n, 7)
    assert (len(train), len(test)) == (n // 2, n - n // 2)
    assert sorted([*train, *test]) == list(range(n))
    np.testing.assert_array_equal(np.concatenate([train, test]), np.random.default_rng(7).permutation(n))


@needs_files
def test_a_single_changed_byte_is_noticed(tmp_path):
    (tmp_path / "pima").mkdir()
    text = (DATA / FILES["pima"].path).read_text()
    write(tmp_path, text.replace("148", "149", 1), FILES["pima"].path)
    with pytest.raises(DataError, match=FILES["pima"].sha256):
        load("pima", data_dir=tmp_path)
