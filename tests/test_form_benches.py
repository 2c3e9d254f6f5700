"""The benchmarks of metrics and losses on tiny lists: they run, resume, write table and plot, refuse other answers."""

import json
import sys
from pathlib import Path

import pytest
import torch

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    import _bench
    import bench_metrics

    monkeypatch.setattr(bench_metrics, "_METRICS", ("auc",))
    monkeypatch.setattr(bench_metrics, "_BATCH", (3, 30))
    forms = {f: bench_metrics._FORMS[f] for f in ("ltr", "ltr, flat", "scikit-learn")}
    monkeypatch.setattr(bench_metrics, "_FORMS", forms)
    monkeypatch.setattr(bench_metrics.STUDY, "forms", forms)
    monkeypatch.setattr(_bench, "_SECONDS", 0.01)
    monkeypatch.setattr(_bench, "apart", lambda _, request, **options: bench_metrics.STUDY.measure(request))
    return bench_metrics


@pytest.mark.slow
def test_it_measures_once_and_writes_table_plot_and_page(bench, monkeypatch, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- begin metrics -->\nold\n<!-- end metrics -->\nafter\n")
    threads = str(torch.get_num_threads())
    files = ["--out", str(tmp_path), "--docs", str(page), "--image", str(tmp_path / "copy.png")]
    monkeypatch.setattr(sys, "argv", ["bench_metrics.py", *files, "--threads", threads, "--longest", "100"])
    bench.STUDY.main()
    records = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [r["status"] for r in records] == ["ok", "left out", "ok", "ok", "ok", "ok"]
    table = (tmp_path / "metrics.md").read_text()
    assert "| auc | 3 x 30 |" in table
    assert page.read_text() == f"before\n<!-- begin metrics -->\n{table.strip()}\n<!-- end metrics -->\nafter\n"
    assert (tmp_path / "copy.png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    # again: nothing is measured
    monkeypatch.setattr(sys.modules["_bench"], "apart", None)
    bench.STUDY.main()
    assert (tmp_path / "metrics.md").read_text() == table


def test_other_answers_are_refused(bench):
    record = {"what": "auc", "shape": [100], "dtype": "float64", "threads": 1, "status": "ok"}
    with pytest.raises(SystemExit, match=r"0.6, but 0.5 is our value"):
        bench.STUDY.check_values(
            [record | {"form": "ltr", "value": 0.5}, record | {"form": "scikit-learn", "value": 0.6}]
        )


def test_losses_have_one_value_in_every_form(monkeypatch):
    """By mask, by query, and in plain torch: padded lists, binary and graded, and lists of one length."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_losses

    for what in {request["what"] for request in bench_losses._requests(longest=0)}:
        forms = tuple(bench_losses._FORMS) if "ragged" in what else bench_losses._PAIR
        scores, labels = bench_losses._data(what, [8, 30], "float64")
        values = [bench_losses._FORMS[form](what, scores.clone(), labels)() for form in forms]
        assert values == pytest.approx([values[0]] * len(forms), rel=1e-10), what
