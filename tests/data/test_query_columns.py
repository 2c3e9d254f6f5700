"""Tables with a query column; data sets and labels by query."""

import numpy as np
import pandas as pd
import pytest

from ltr.data import DataError, Roles, read_data, read_raw_table, read_rows
from ltr.data.dataset import checked_labels
from tests.data.test_svmlight import written

CSV = "shop,price,sold\nb,3,0\na,2.5,4\nb,9,1\n"


def test_a_column_tells_the_queries_in_any_order(tmp_path):
    data = read_data(written(tmp_path, CSV, name="table.csv"), label="sold", query="shop")
    assert (data.feature_names, data.y.tolist()) == (("price",), [0, 4, 1])
    assert (data.qid.tolist(), data.query_ids.tolist()) == ([0, 1, 0], ["b", "a"])
    X, ids = read_rows(tmp_path / "table.csv", ["price"], query="shop")
    assert (X.tolist(), ids.tolist()) == ([[3.0], [2.5], [9.0]], ["b", "a", "b"])


def test_ids_in_text_tables_stay_as_they_stand_there(tmp_path):
    text = "q,a,y\n007,1,0\n7,2,1\n7,3,0\n18446744073709551617,3,0\n"
    data = read_data(written(tmp_path, text, name="table.csv"), label="y", query="q")
    assert data.query_ids.tolist() == ["007", "7", "18446744073709551617"]


def test_sizes_beside_a_table_tell_the_queries(tmp_path):
    data = read_data(written(tmp_path, CSV, "2\n1\n", "table.csv"), label="sold", drop=["shop"])
    assert data.qid.tolist() == [0, 0, 1]
    assert read_rows(tmp_path / "table.csv", ["price"])[1].tolist() == [0, 0, 1]
    with pytest.raises(DataError, match=r"table.csv.query: query sizes must add up to the 3 rows of the data, got 4"):
        read_data(written(tmp_path, CSV, "2\n2\n", "table.csv"), label="sold", drop=["shop"])


def saved(columns, folder):
    path = folder / "t.parquet"
    pd.DataFrame(columns).to_parquet(path)
    return path


def test_pandas_types_of_its_own(tmp_path):
    ids = {
        "int64": np.array([2**62, 5, 2**62]),
        "Int64": pd.array([5, 7, 5], dtype="Int64"),
        "string": pd.array(["x", "y", "x"], dtype="string"),
        "category": pd.Categorical(["x", "y", "x"]),
    }
    for name, values in ids.items():
        path = saved({"q": values, "a": [1.0, 2, 3], "y": [0, 1, 2]}, tmp_path)
        data = read_data(path, label="y", query="q")
        assert data.qid.tolist() == [0, 1, 0], name
        assert data.query_ids.tolist() == list(values[:2]), name


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"q": [1, 1, 2]}, {"query": "w"}, "t.parquet: no query column 'w'; the file has"),
        ({"q": [1, None, 2]}, {}, "column 'q': query ids must not be missing, got none in row 2"),
        ({"q": pd.array([1, 1, None], dtype="Int64")}, {}, "query ids must not be missing, got none in row 3"),
        ({"q": [1.5, 1.5, 2.0]}, {}, "query ids must be integers of 64 bits or texts, got an array of float64"),
        ({"q": [1, 1, 2], "y": [0, -1, 2]}, {}, "labels must be whole numbers from 0 to 1000, got -1 in row"),
        ({"q": [1, 2, 3]}, {}, "data set t: at least one query must have two different labels, got none"),
        ({"q": [1, 1, 1], "y": [2, 2, 2]}, {}, "labels must hold two different values, got only 2"),
        ({"q": [1, 1, 2]}, {"query": "y"}, "query column 'y' is also the label"),
        ({"q": [1, 1, 2]}, {"features": ["q"]}, "feature column 'q' is also the query"),
    ],
)
def test_bad_columns_are_named(columns, options, message, tmp_path):
    frame = {"a": [1.0, 2.0, 3.0], "y": [0, 1, 2], **columns}
    with pytest.raises(DataError) as error:
        read_data(saved(frame, tmp_path), **{"label": "y", "query": "q", **options})
    assert message in str(error.value)


@pytest.mark.parametrize(("graded", "y"), [(True, [0, 4, 1000]), (True, [True, False, True]), (False, [0.0, 1.0, 1.0])])
def test_labels_come_as_whole_numbers(graded, y):
    labels = checked_labels(y, 3, graded=graded)
    assert (labels.dtype, labels.tolist()) == (np.int64, [int(v) for v in y])


def test_grades_without_queries_name_the_column_that_could_hold_them():
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5], "search": ["a", "b", "a", "b"], "y": [0, 2, 1, 0]})
    way = read_raw_table(frame, Roles(label="y")).problems[0].remedies[0]
    assert (way.key, way.value) == ("query", "search")
