"""The benchmark scripts on tiny lists: they run, resume, write table and plot, and agree with the library."""

import json
import math
import re

import numpy as np
import pytest

from ltr.exact import RerankProblem, Status
from tests.paths import ROOT

SCRIPTS = ROOT / "scripts"


@pytest.fixture(autouse=True)
def scripts_on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def random_list(n=10, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return RerankProblem(X, (X[:, 0] + rng.normal(size=n) > 0).astype(int), margin=1e-3)


# --- the exact methods -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bench")


ARGUMENTS = ["--data", "gaussians", "--top", "30", "--limits", "1", "5", "--methods", "weight_space", "--threads", "1"]


@pytest.mark.slow
def test_bench_exact_measures_once_and_writes_table_plot_and_page(folder, monkeypatch, capsys):
    import bench_exact

    monkeypatch.setattr(bench_exact, "_START", 0.1)
    page = folder / "page.md"
    page.write_text("before\n<!-- begin exact -->\nold\n<!-- end exact -->\nafter\n")
    arguments = [*ARGUMENTS, "--out", str(folder), "--docs", str(page), "--image", str(folder / "copy.png")]
    assert bench_exact.main(arguments) == 0
    start, record = map(json.loads, (folder / "results.jsonl").read_text().splitlines())
    assert record["status"] == "optimal"
    assert record["value"] >= record["start_value"] == pytest.approx(start["value"])
    assert record["bound"] == pytest.approx(record["value"], rel=1e-9)
    table = (folder / "exact.md").read_text()
    assert "| gaussians, top 30 | weight_space |" in table
    assert page.read_text() == f"before\n<!-- begin exact -->\n{table.strip()}\n<!-- end exact -->\nafter\n"
    for image in ("exact_gap.png", "copy.png"):
        assert (folder / image).read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    # again: nothing is computed, the table comes out the same
    monkeypatch.setattr(bench_exact, "apart", lambda *_, **__: pytest.fail("a finished solve ran again"))
    assert bench_exact.main(arguments) == 0
    assert (folder / "exact.md").read_text() == table


@pytest.mark.slow
def test_a_solve_that_dies_is_recorded_and_tried_again():
    import _bench
    import bench_exact
    from _lists import Case

    request = {
        "data": "no such data",
        "top": "5",
        "method": "resolved",
        "threads": 1,
        "time_limit": 1.0,
        "start": [1.0],
    }
    record = _bench.apart(bench_exact.__file__, request)
    assert record["status"] == "failed"
    assert "no such data" in record["message"]
    assert bench_exact.row(Case("no such data", "5"), record, [1.0])[:2] == ["no such data, top 5", "resolved*"]


def test_a_model_can_be_measured():
    import bench_exact

    request = {"data": "gaussians", "top": "30", "method": "resolved", "threads": 1, "time_limit": 0.5}
    record = bench_exact.measure(request | {"start": [1.0, 0.0]})
    assert record["status"] in {status.value for status in Status}
    assert record["start_value"] <= record["value"] <= record["bound"]
    assert record["memory"] >= record["memory_before"] > 0
    times, values, bounds, _ = np.array(record["trace"]).T
    assert np.all(np.diff(times) >= 0)
    assert np.all(np.diff(values) >= 0)
    assert np.all(np.diff(bounds) <= 0)
    assert np.all(bounds >= values)
    assert (values[-1], bounds[-1]) == (record["value"], record["bound"])


def test_a_list_of_one_class_is_left_out(tmp_path, capsys):
    import bench_exact

    # logistic regression puts only positives on top
    assert bench_exact.main([*ARGUMENTS[:3], "5", *ARGUMENTS[4:], "--out", str(tmp_path)]) == 1
    assert "gaussians, top 5: skipped: " in capsys.readouterr().err


def test_missing_data_is_said_in_words(tmp_path, monkeypatch, capsys):
    import bench_exact

    monkeypatch.setenv("LTR_DATA", str(tmp_path))
    assert bench_exact.main(["--data", "pima", "--top", "50", "--out", str(tmp_path)]) == 1
    assert "pima" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "gap"),
    [
        (0.5, math.inf),  # nothing is known yet
        (1.0, (12 - 8) / 8),
        (2.5, (12 - 10) / 10),
        (99.0, (10.5 - 10) / 10),
    ],
)
def test_the_gap_at_a_time_is_that_of_the_last_point_before(seconds, gap):
    import bench_exact

    trace = [[1.0, 8.0, 12.0, 0], [2.0, 10.0, 12.0, 5], [3.0, 10.0, 10.5, 9]]
    assert bench_exact.gap_at({"trace": trace}, seconds) == pytest.approx(gap)


# --- lists -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "top", "shape"),
    [
        # positives, negatives, features as counted for the design of the search, from the same files by pandas
        ("travel", "50", (34, 16, 7)),
        ("uis", "50", (24, 26, 8)),
        ("pima", "50", (41, 9, 8)),
        ("haberman", "full", (41, 112, 3)),
    ],
)
def test_the_lists_are_those_of_the_protocol(data, top, shape):
    from _lists import Case

    from ltr.data import DataError

    try:
        problem = Case(data, top).problem()
    except DataError as error:
        pytest.skip(str(error))
    assert (len(problem.positives), len(problem.negatives), problem.d) == shape
    assert np.allclose(problem.X.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(problem.X.std(axis=0), 1)


# --- tables and the page ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "text"),
    [(0.0, "0"), (1e-16, "0"), (0.01234, "1.2%"), (0.5, "50%"), (1.5, "150%"), (0.00004, "0.004%"), (math.inf, "-")],
)
def test_gaps_are_shown_with_two_digits_that_count(gap, text):
    from bench_exact import percent

    assert percent(gap) == text


def test_the_pages_that_scripts_name_have_places_for_their_tables():
    named = {
        SCRIPTS.parent / page
        for script in sorted(SCRIPTS.glob("bench_*.py"))
        for page in re.findall(r"--docs (docs/\w+\.md)", script.read_text(encoding="utf-8"))
    }
    assert len(named) > 5
    assert [page for page in sorted(named) if "<!-- begin " not in page.read_text(encoding="utf-8")] == []


def test_a_page_without_the_place_is_refused(tmp_path):
    from _bench import insert

    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    with pytest.raises(ValueError, match="must hold the lines <!-- begin exact -->"):
        insert(page, "exact", "table")
    assert page.read_text() == "nothing here\n"


# --- large tables ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bench_size_writes_memory_and_time_beside_those_of_a_plain_form(tmp_path):
    import bench_size

    page = tmp_path / "page.md"
    page.write_text("<!-- begin size -->\n<!-- end size -->\n")
    arguments = ["--rows", "2500", "--columns", "20", "--only", "parquet", "train", "--docs", str(page)]
    bench_size.main([*arguments, "--out", str(tmp_path / "out")])
    table = page.read_text()
    for line in ("read parquet | ltr | 2,500", "read parquet | pandas", "train a network, one epoch | torch"):
        assert f"| {line}" in table
    X, y, qid = (tmp_path / f"{name}.npy" for name in ("X", "y", "qid"))
    bench_size.generate(tmp_path, 1000, 4)
    data = bench_size.read_table(tmp_path / "table.parquet", label="y", query="query")
    np.testing.assert_array_equal(data.X, np.load(X))
    np.testing.assert_array_equal(data.y, np.load(y))
    np.testing.assert_array_equal(data.qid, np.load(qid))
    np.testing.assert_allclose(bench_size.read_svmlight(tmp_path / "table.svm").X, data.X, rtol=1e-5)


# --- demands -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_bench_demands_writes_its_table(tmp_path, capsys):
    import bench_demands

    arguments = ["--data", "gaussians", "--top", "40", "--limit", "60", "--out", str(tmp_path)]
    assert bench_demands.main(arguments) == 0
    table = (tmp_path / "demands.md").read_text()
    assert table.strip() in capsys.readouterr().out
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| gaussians")]
    assert [row[1] for row in rows] == ["no demand", "does not bind", "binds"]
    free, met, bound = (float(row[3]) for row in rows)
    assert free == met >= bound
    assert all(row[4] == "proven" for row in rows)
