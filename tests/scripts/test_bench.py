"""The benchmarks and studies on tiny requests: they measure once, go on, make tables, figures and pages."""

import dataclasses
import json
import re

import numpy as np
import pytest

from ltr.data import DataError
from ltr.exact import Status
from scripts import _bench, bench_exact, bench_scaling, bench_speed, results
from scripts._bench import Bench, inserted
from tests.scripts.tiny import TINY

BENCHES = results.benches()


@pytest.mark.parametrize("alone", [False, True])
def test_what_is_missing_is_measured_once_and_put_into_the_page(tmp_path, monkeypatch, capsys, alone):
    bench = dataclasses.replace(TINY, alone=alone, kept="new/kept.jsonl")
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin made -->\nold\n<!-- end made -->\nafter\n")
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "benches", lambda: {"tiny": bench})
    assert results.main(["tiny", "--docs", "--only", "name=a;bad;absent", "times=2"]) == 1
    shown = capsys.readouterr().err
    assert "failed, ArithmeticError: no value" in shown
    assert "left out, no package" in shown
    assert results.main(["tiny", "--docs", "--only", "name=a;b", "times=2"]) == 0
    assert capsys.readouterr().out == "| a | b |\n"
    found = [json.loads(line) for line in (tmp_path / "new" / "kept.jsonl").read_text().splitlines()]
    assert [(one["name"], one["times"], one["value"]) for one in found] == [("a", 2, 4), ("b", 2, 4)]
    assert found[0]["commit"]
    assert found[0]["machine"]
    text = "| name | 2 | rows |\n| --- | ---: | ---: |\n| a | 4 | 1 |\n| b | 4 | 1 |\n"
    assert page.read_text() == f"before\n<!-- begin made -->\n{text}<!-- end made -->\nafter\n"
    monkeypatch.setattr(Bench, "_futures", lambda self, missing: iter(missing))
    assert results.main(["tiny", "--docs", "--only", "name=a;b", "times=2"]) == 0  # nothing is measured again


def test_measured_values_are_printed_beside_the_stated_ones(tmp_path, monkeypatch, capsys):
    (tmp_path / "page.md").write_text(
        "<!-- begin made -->\n| name | 2 |\n| --- | ---: |\n| a | 5 |\n<!-- end made -->\n"
    )
    monkeypatch.setattr(results, "ROOT", tmp_path)
    monkeypatch.setattr(results, "benches", lambda: {"tiny": dataclasses.replace(TINY, quick={"name": ["a"]})})
    assert results.main(["tiny", "--quick"]) == 0
    assert capsys.readouterr().out == "page.md | a, 2 | 5 | 4\npage.md | a, rows | - | 2\n"


def test_a_mean_has_the_error_of_several_values():
    assert _bench.with_error([1.0, 2.0, 3.0], "{:+.2f} %") == "+2.00 % ± 0.58"  # 1 / sqrt(3)
    assert _bench.with_error([1.0]) == "1.0000"


@pytest.mark.parametrize("name", BENCHES)
def test_every_benchmark_has_requests_for_a_quick_look_and_a_page(name):
    bench = BENCHES[name]
    assert bench.chosen(bench.quick)
    assert "<!-- begin" in (_bench.ROOT / bench.page).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["answer", "payoff", "noise"])
def test_the_tables_of_a_page_are_those_of_its_records(name):
    bench = BENCHES[name]
    texts = bench.tables(bench.found(_bench.ROOT / bench.kept, bench.requests))
    texts.pop("payoff-bases", "")  # p values of Wilcoxon's test, which versions of scipy compute differently
    texts.pop("findings", "")
    for place, text in texts.items():
        assert inserted(_bench.ROOT / bench.page, place) == f"{text.strip()}\n"
        assert not re.search(r"\bnan\b|None|[{}]", text)


def test_claims_are_the_cells_of_tables_by_row_and_column():
    now = "|  | k | value |\n| --- | --- | ---: |\n| a | 3 | 1.5 |\n| a | 4 | 2 |\n"
    values, leading = results.cells(f"about | this\n\n{now}")
    assert values == {("a", "3", "value"): "1.5", ("a", "4", "value"): "2"}
    assert results.cells(now.replace("---:", "---").replace("| 1.5", "| 1.6"), leading)[0]["a", "3", "value"] == "1.6"


def test_a_solve_is_measured_and_drawn(tmp_path):
    request = {"data": "gaussians", "top": "30", "threads": 1}
    found = [request | {"method": method} for method in ("weight_space", "resolved")]
    found = [one | bench_exact.measure(**one, time_limit=0.5) for one in found]
    for record in found:
        assert record["status"] in {status.value for status in Status}
        assert record["start"] <= record["value"] <= record["bound"]
        times, values, bounds = np.array(record["trace"]).T
        assert np.all(np.diff(times) >= 0)
        assert np.all(np.diff(values) >= 0)
        assert np.all(np.diff(bounds) <= 0)
        assert np.all(bounds >= values)
        assert (values[-1], bounds[-1]) == (record["value"], record["bound"])
    row = {"status": "time_limit", "value": 10.0, "bound": 10.25, "seconds": 1.2345}
    proven, open_ = (found[0] | row | own for own in ({"status": "optimal"}, {"method": "resolved"}))
    assert "| 29/1 | 2 | 1.2 s | 2.5% |" in bench_exact.tables([proven, open_])["exact"]
    bench_exact.figures(found, tmp_path)
    assert (tmp_path / "exact_gap.png").read_bytes().startswith(b"\x89PNG")


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
        problem = bench_exact.problem_of(data, top)
    except DataError as error:
        pytest.skip(str(error))
    assert (len(problem.positives), len(problem.negatives), problem.d) == shape
    assert np.allclose(problem.X.mean(axis=0), 0, atol=1e-12)
    assert np.allclose(problem.X.std(axis=0), 1)


@pytest.mark.slow
def test_a_generated_table_is_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_scaling.tempfile, "gettempdir", lambda: str(tmp_path))
    kinds = [r for r in bench_scaling.SIZE.requests if r["what"].startswith(("read", "train"))]
    records = [r | bench_scaling.measure_size(**r, rows=2500, columns=20) for r in kinds]
    shown = bench_scaling.tables_of_size(records)["size"]
    for line in ("read parquet | ltr | 2,500", "read parquet | pandas", "train a network, one epoch | torch"):
        assert f"| {line}" in shown


@pytest.mark.slow
def test_demands_are_measured():
    kinds = [{"data": "gaussians", "top": "40", "kind": kind, "threads": 1} for kind in bench_exact.KINDS]
    shown = bench_exact.tables_of_demands([one | bench_exact.measure_demand(**one) for one in kinds])["demands"]
    rows = [line.split(" | ") for line in shown.splitlines() if line.startswith("| gaussians")]
    free, met, bound = (float(row[3]) for row in rows)
    assert free == met >= bound
    assert all(row[4] == "proven" for row in rows)


def test_losses_have_one_value_in_both_forms():
    for what in {request["what"] for request in bench_speed.LOSSES.requests}:
        scores, labels = bench_speed.items_of_losses(what, [8, 30], "float64")
        own, plain = (form(what, scores.clone(), labels)() for form in bench_speed.LOSS_FORMS.values())
        assert own == pytest.approx(plain, rel=1e-10), what


def test_other_answers_are_refused(tmp_path):
    record = {"what": "auc", "shape": [100], "dtype": "float64", "threads": 1, "seconds": 1.0, "megabytes": 1.0}
    found = [record | {"form": "ltr", "value": 0.5}, record | {"form": "scikit-learn", "value": 0.5}]
    assert "| auc | 100 | 1 s | 1 | - | - | - | 1x | - |" in bench_speed.tables_of_metrics(found)["metrics"]
    bench_speed.METRICS.figures([one | {"what": what} for one in found for what in ("auc", "ndcg", "mrr")], tmp_path)
    assert (tmp_path / "metrics.png").read_bytes().startswith(b"\x89PNG")
    found[1]["value"] = 0.6
    with pytest.raises(SystemExit, match=r"0.6, but 0.5 is our value"):
        bench_speed.tables_of_metrics(found)
