"""The benchmarks of metrics and losses on tiny lists: they run, resume, write table and plot, refuse other answers."""

import pytest

from tests.paths import ROOT

SCRIPTS = ROOT / "scripts"


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


def test_other_answers_are_refused(bench):
    record = {"what": "auc", "shape": [100], "dtype": "float64", "threads": 1, "status": "ok"}
    with pytest.raises(SystemExit, match=r"0.6, but 0.5 is our value"):
        bench.STUDY.check_values(
            [record | {"form": "ltr", "value": 0.5}, record | {"form": "scikit-learn", "value": 0.6}]
        )


def test_losses_have_one_value_in_both_forms(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import bench_losses

    for what in {request["what"] for request in bench_losses._requests(longest=0)}:
        scores, labels = bench_losses._data(what, [8, 30], "float64")
        own, plain = (form(what, scores.clone(), labels)() for form in bench_losses._FORMS.values())
        assert own == pytest.approx(plain, rel=1e-10), what
