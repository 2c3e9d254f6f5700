"""The benchmarks and studies on tiny requests: they measure once, go on, make tables, figures and pages."""

import dataclasses
import importlib
import json
import math
import re

import numpy as np
import pytest

from ltr.data import DataError
from ltr.exact import Status
from scripts import _bench, _lists, bench_demands, bench_exact, bench_losses, bench_metrics, bench_size, results
from scripts._bench import Bench, inserted

BENCHES = {module: importlib.import_module(f"scripts.{module}").BENCH for module in results.QUICK}


def measure(name, times):
    if name == "bad":
        raise ArithmeticError("no value")
    if name == "absent":
        raise ImportError("no package")
    return {"value": 2 * times}


def tables(records):
    return {"made": _bench.table(records, {"name": "name"}, {"2": {"times": 2}}, lambda found: str(found[0]["value"]))}


TINY = Bench(
    "tiny", "A bench.", "docs/tiny.md", [{"name": name, "times": 1} for name in ("a", "b", "bad", "absent")],
    measure, tables,
)  # fmt: skip


@pytest.mark.parametrize("alone", [False, True])
def test_what_is_missing_is_measured_once_and_put_into_the_page(tmp_path, monkeypatch, capsys, alone):
    bench, page, records = dataclasses.replace(TINY, alone=alone), tmp_path / "page.md", tmp_path / "new" / "kept.jsonl"
    page.write_text("before\n<!-- begin made -->\nold\n<!-- end made -->\nafter\n")
    arguments = ["--records", str(records), "--set", "times=2", "--processes", "1", "--docs", str(page)]
    assert bench.main([*arguments, "--only", "name=a;bad;absent"]) == 1
    shown = capsys.readouterr()
    assert "failed, ArithmeticError: no value" in shown.err
    assert "left out, no package" in shown.out
    assert bench.main([*arguments, "--only", "name=a;b"]) == 0
    found = [json.loads(line) for line in records.read_text().splitlines()]
    assert [(one["name"], one["times"], one["value"]) for one in found] == [("a", 2, 4), ("b", 2, 4)]
    assert found[0]["commit"]
    assert found[0]["machine"]
    text = "| name | 2 |\n| --- | ---: |\n| a | 4 |\n| b | 4 |\n"
    assert page.read_text() == f"before\n<!-- begin made -->\n{text}<!-- end made -->\nafter\n"
    monkeypatch.setattr(Bench, "_futures", lambda *_: pytest.fail("a finished request ran again"))
    assert bench.main([*arguments, "--kept"]) == 0
    assert bench.main([*arguments[:2], "--kept"]) == 1  # other values of the field


def test_a_mean_has_the_error_of_several_values():
    assert _bench.with_error([1.0, 2.0, 3.0], "{:+.2f} %") == "+2.00 % ± 0.58"  # 1 / sqrt(3)
    assert _bench.with_error([1.0]) == "1.0000"


@pytest.mark.parametrize("module", BENCHES)
def test_every_benchmark_has_requests_for_a_quick_look_and_a_page(module):
    bench = BENCHES[module]
    assert bench.chosen(results.QUICK[module])
    assert (_bench.ROOT / bench.page).exists()


@pytest.mark.parametrize("module", ["answer.__main__", "payoff.__main__", "payoff.noise"])
def test_the_tables_of_a_page_are_those_of_its_records(module):
    bench = BENCHES[module]
    texts = bench.tables(bench.records().of(bench.requests))
    texts.pop("payoff-bases", "")  # p values of Wilcoxon's test, which versions of scipy compute differently
    for name, text in texts.items():
        assert inserted(_bench.ROOT / bench.page, name) == f"{text.strip()}\n"
        assert not re.search(r"\bnan\b|None|[{}]", text)


def test_claims_are_the_cells_of_tables_by_row_and_column():
    now = "| data | k | value |\n| --- | --- | ---: |\n| a | 3 | 1.5 |\n| a | 4 | 2 |\n"
    values, leading = results.cells(f"about | this\n\n{now}")
    assert values == {("a", "3", "value"): "1.5", ("a", "4", "value"): "2"}
    assert results.cells(now.replace("---:", "---").replace("| 1.5", "| 1.6"), leading)[0]["a", "3", "value"] == "1.6"


@pytest.mark.slow
def test_bench_exact_writes_table_and_plot(tmp_path, capsys):
    only = ["--only", "data=travel", "top=50", "method=weight_space", "--set", "data=gaussians", "top=30", "threads=1"]
    assert bench_exact.BENCH.main([*only, "time_limit=5.0", "--records", str(tmp_path / "kept.jsonl")]) == 0
    (record,) = map(json.loads, (tmp_path / "kept.jsonl").read_text().splitlines())
    assert record["status"] == "optimal"
    assert record["bound"] == pytest.approx(record["value"], rel=1e-9)
    assert "| gaussians, top 30 | weight_space |" in capsys.readouterr().out
    assert (tmp_path / "exact_gap.png").read_bytes().startswith(b"\x89PNG")


def test_a_model_can_be_measured():
    record = bench_exact.measure("gaussians", "30", "resolved", time_limit=0.5, threads=1)
    assert record["status"] in {status.value for status in Status}
    assert record["start_value"] <= record["value"] <= record["bound"]
    assert record["memory"] >= 0
    times, values, bounds = np.array(record["trace"]).T
    assert np.all(np.diff(times) >= 0)
    assert np.all(np.diff(values) >= 0)
    assert np.all(np.diff(bounds) <= 0)
    assert np.all(bounds >= values)
    assert (values[-1], bounds[-1]) == (record["value"], record["bound"])


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
    trace = [[1.0, 8.0, 12.0], [2.0, 10.0, 12.0], [3.0, 10.0, 10.5]]
    assert bench_exact.gap_at({"trace": trace}, seconds) == pytest.approx(gap)


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
    try:
        problem = _lists.problem_of(data, top)
    except DataError as error:
        pytest.skip(str(error))
    assert (len(problem.positives), len(problem.negatives), problem.d) == shape
    assert np.allclose(problem.X.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(problem.X.std(axis=0), 1)


def test_a_list_of_one_class_is_refused():
    with pytest.raises(DataError, match="gaussians: the top 5 rows are all of one class"):
        _lists.problem_of("gaussians", "5")  # logistic regression puts only positives on top


@pytest.mark.slow
def test_bench_size_measures_a_generated_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    arguments = ["--only", "what=read parquet;train a network, one epoch", "--set", "rows=2500", "columns=20"]
    assert bench_size.BENCH.main([*arguments, "--records", str(tmp_path / "kept.jsonl")]) == 0
    table = capsys.readouterr().out
    for line in ("read parquet | ltr | 2,500", "read parquet | pandas", "train a network, one epoch | torch"):
        assert f"| {line}" in table


@pytest.mark.slow
def test_bench_demands_writes_its_table():
    fixed = {"data": "gaussians", "top": "40", "limit": 60.0, "threads": 1}
    kinds = [fixed | {"kind": kind} for kind in ("no demand", "does not bind", "binds")]
    table = bench_demands.tables([one | {"commit": "", "machine": ""} | bench_demands.measure(**one) for one in kinds])
    rows = [line.split(" | ") for line in table["demands"].splitlines() if line.startswith("| gaussians")]
    free, met, bound = (float(row[3]) for row in rows)
    assert free == met >= bound
    assert all(row[4] == "proven" for row in rows)


def test_losses_have_one_value_in_both_forms():
    for what in {request["what"] for request in bench_losses.BENCH.requests}:
        scores, labels = bench_losses._data(what, [8, 30], "float64")
        own, plain = (form(what, scores.clone(), labels)() for form in bench_losses._FORMS.values())
        assert own == pytest.approx(plain, rel=1e-10), what


def test_other_answers_are_refused():
    record = {"what": "auc", "shape": [100], "dtype": "float64", "threads": 1, "seconds": 1.0, "megabytes": 1.0}
    found = [record | {"form": "ltr", "value": 0.5}, record | {"form": "scikit-learn", "value": 0.5}]
    assert "| auc | 100 | 1 s | 1 | - | - | - | 1x | - |" in bench_metrics.BENCH.tables(found)["metrics"]
    found[1]["value"] = 0.6
    with pytest.raises(SystemExit, match=r"0.6, but 0.5 is our value"):
        bench_metrics.BENCH.tables(found)
