"""Published values beside those of a sweep."""

import numpy as np
import pytest

from scripts.paper.experiments import beside, read_published
from tests.paths import ROOT
from tests.trainers.sweep_results import entry, exact, grid, record, sweep
from trainers.config.grids import load_sweep
from trainers.report.evidence import Evidence, Variant

CONFIGS = ROOT / "configs" / "paper"
HEADER = "data,method,varied,half,mean,std,note\n"


@pytest.fixture
def read(tmp_path):
    """Reads published values from their text."""

    def read(text):
        path = tmp_path / "published.csv"
        path.write_text(text, encoding="utf-8")
        return read_published(path)

    return read


def test_values_are_read_and_notes_left_out(read):
    found = read(
        "# A paper,\n# its table 1\n" + HEADER + "a,exact,exact.top_k=50; exact.C=1e-4,test,10.5,0.5,a remark\n"
        "a,ranknet,,train,9,1,\n,,,,,,on everything\n,exact,,,,,on exact\n"
    )
    assert [value.variant for value in found] == [
        Variant("exact", (("exact.top_k", 50), ("exact.C", 1e-4))),
        Variant("ranknet"),
    ]
    assert [(value.part, value.mean) for value in found] == [("test", 10.5), ("train", 9.0)]


def small_sweep():
    """Values of two splits; of the exact stage for two lengths, and for two margins at one length."""
    cells = {
        "ranknet": [record("a", split, "ranknet", 10 + split, 12 - split) for split in (0, 1)],
        50: [exact("a", split, 20, 21, top_k=50) for split in (0, 1)],
        100: [exact("a", split, 30, 31, top_k=100) for split in (0, 1)],
    }
    wide = [exact("a", split, 40, 41, top_k=100) for split in (0, 1)]
    for found in wide:
        found["id"] += "-wide"
        found["options"]["margin"] = 0.1
    methods = [entry(found) for found in cells["ranknet"]]
    methods += [entry(found, exact__top_k=top_k) for top_k in (50, 100) for found in cells[top_k]]
    margins = [entry(found, exact__margin=found["options"]["margin"]) for found in [*cells[100], *wide]]
    records = [*cells["ranknet"], *cells[50], *cells[100], *wide]
    return sweep(records, [grid(methods), grid(margins, name="margin")])


def test_ours_and_published_are_compared(read):
    lines = "a,ranknet,,train,10,0.4,\na,ranknet,,test,11.4,0.5,as printed\nb,ranknet,,test,11,1,\n"
    # ours: 10.5 and 11.5
    assert beside(Evidence(small_sweep()), read(HEADER + lines)) == {"all": 3, "found": 2, "within": 1}


@pytest.mark.parametrize(
    ("varied", "ours"),
    [
        ("exact.top_k=50", 20),
        ("exact.top_k=100", 30),
        ("exact.top_k=100;exact.margin=0.1", 40),
        ("exact.margin=1e-1;exact.top_k=100", 40),
        ("exact.top_k=100;exact.margin=0.0001", 30),
        ("exact.top_k=50;exact.margin=0.1", None),
        ("exact.top_k=full", None),
        ("", None),
        ("exact.margin=0.1", 40),
        ("exact.top_k=50;data.label=x", None),
    ],
)
def test_counterparts_agree_in_all_options_named_and_vary_nothing_else(read, varied, ours):
    mean = 25 if ours is None else ours
    found = beside(Evidence(small_sweep()), read(HEADER + f"a,exact,{varied},train,{mean},0.1,\n"))
    assert (found["found"], found["within"]) == ((0, 0) if ours is None else (1, 1))


def test_each_value_of_the_paper_has_a_counterpart_among_the_papers_experiments():
    published = read_published(CONFIGS / "published.csv")
    assert len(published) == len({(value.data, value.variant, value.part) for value in published}) == 206
    sweep = load_sweep(CONFIGS / "all.toml")
    known = [
        (variant.config, variant.varied, variant.config.methods if grid.config.methods is None else grid.config.methods)
        for grid in sweep.grids
        for variant in grid.variants
    ]
    for value in published:
        wanted = dict(value.variant.varied)
        assert any(
            config.name == value.data
            and value.variant.method in methods
            and (value.variant.method != "exact" or set(varied) <= set(wanted))
            and all(getattr(config.exact, key.removeprefix("exact.")) == asked for key, asked in wanted.items())
            for config, varied, methods in known
        ), value


def test_the_papers_values_are_those_of_its_runs():
    values = {(v.data, v.variant, v.part): v for v in read_published(CONFIGS / "published.csv")}
    first = values["roc_flexibility", Variant("logistic_regression"), "train"]
    runs = [29.12, 29.65, 31.02, 32.34, 31.11, 30.93, 32.27, 33.91, 32.84, 28.95]
    assert first.mean == pytest.approx(np.mean(runs), abs=6e-4)
    assert first.std == pytest.approx(np.std(runs, ddof=1), abs=6e-4)
