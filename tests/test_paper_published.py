"""Published values beside those of a sweep."""

from pathlib import Path

import numpy as np
import pytest

from scripts.paper.published import Note, read_reference, reference_section
from tests.sweep_results import entry, exact, grid, record, sweep
from trainers.config.grids import load_sweep
from trainers.report.evidence import Evidence, Variant
from trainers.report.page import Table, Text

CONFIGS = Path(__file__).parents[1] / "configs" / "paper"
HEADER = "data,method,varied,half,mean,std,note\n"


@pytest.fixture
def read(tmp_path):
    """Reads a reference from its text."""

    def read(text):
        path = tmp_path / "published.csv"
        path.write_text(text, encoding="utf-8")
        return read_reference(path)

    return read


def texts(section):
    return [block.text for block in section.blocks if isinstance(block, Text)]


def rows(section):
    """The rows of the data sets' tables."""
    _, *found = [block for block in section.blocks if isinstance(block, Table)]
    return [row for table in found for row in table.rows]


def test_values_notes_and_source_are_read(read):
    reference = read(
        "# A paper,\n# its table 1\n" + HEADER + "a,exact,exact.top_k=50; exact.C=1e-4,test,10.5,0.5,a remark\n"
        'a,ranknet,,train,9,,\n,,,,,,on everything\na,,,,,,"on a, whole"\n,exact,,,,,on exact\n'
    )
    assert reference.source == "A paper, its table 1"
    assert [value.variant for value in reference.values] == [
        Variant("exact", (("exact.top_k", 50), ("exact.C", 1e-4))),
        Variant("ranknet"),
    ]
    assert [(value.part, value.mean, value.note) for value in reference.values] == [
        ("test", 10.5, "a remark"),
        ("train", 9.0, ""),
    ]
    assert reference.notes == (
        Note("", "", "on everything"),
        Note("a", "", "on a, whole"),
        Note("", "exact", "on exact"),
    )


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


def test_ours_and_published_stand_side_by_side(read):
    section = reference_section(
        Evidence(small_sweep()), read(HEADER + "a,ranknet,,train,10,0.4,\na,ranknet,,test,11.5,0.5,as printed\n")
    )
    assert rows(section) == [
        ["ranknet", "train", "10.00 ± 0.40", "10.50 ± 0.71", "+0.50", "+5.0%", "no"],
        ["", "test", "11.50 ± 0.50", "11.50 ± 0.71", "0.00", "0.00%", "yes"],
    ]
    *_, table = section.blocks
    assert table.caption == "ranknet, test: as printed."


@pytest.mark.parametrize(
    ("varied", "ours"),
    [
        ("exact.top_k=50", "20.00 ± 0.00"),
        ("exact.top_k=100", "30.00 ± 0.00"),
        ("exact.top_k=100;exact.margin=0.1", "40.00 ± 0.00"),
        ("exact.margin=1e-1;exact.top_k=100", "40.00 ± 0.00"),
        ("exact.top_k=100;exact.margin=0.0001", "30.00 ± 0.00"),
        ("exact.top_k=50;exact.margin=0.1", None),
        ("exact.top_k=full", None),
        ("", None),
        ("exact.margin=0.1", "40.00 ± 0.00"),
        ("exact.top_k=50;data.label=x", None),
    ],
)
def test_counterparts_agree_in_all_options_named_and_vary_nothing_else(read, varied, ours):
    section = reference_section(
        Evidence(small_sweep()), read(HEADER + f"a,exact,{varied},train,25,10,\na,ranknet,,test,11,1,\n")
    )
    found = [row[3] for row in rows(section) if row[0].startswith("exact")]
    assert found == ([] if ours is None else [ours])
    assert texts(section)[0].startswith(f"{1 if ours is None else 2} of 2 published values have a counterpart")


def test_each_value_of_the_paper_has_a_counterpart_among_the_papers_experiments():
    reference = read_reference(CONFIGS / "published.csv")
    assert len(reference.values) == len({(value.data, value.variant, value.part) for value in reference.values}) == 206
    _, grids = load_sweep(CONFIGS / "all.toml")
    known = [
        (variant.config, variant.varied, variant.config.methods if grid.config.methods is None else grid.config.methods)
        for grid in grids
        for variant in grid.variants
    ]
    for value in reference.values:
        wanted = dict(value.variant.varied)
        assert any(
            config.name == value.data
            and value.variant.method in methods
            and (value.variant.method != "exact" or set(varied) <= set(wanted))
            and all(getattr(config.exact, key.removeprefix("exact.")) == asked for key, asked in wanted.items())
            for config, varied, methods in known
        ), value
    assert {note.data for note in reference.notes} <= {"", *(value.data for value in reference.values)}


def test_the_papers_values_are_those_of_its_runs():
    values = {(v.data, v.variant, v.part): v for v in read_reference(CONFIGS / "published.csv").values}
    first = values["roc_flexibility", Variant("logistic_regression"), "train"]
    runs = [29.12, 29.65, 31.02, 32.34, 31.11, 30.93, 32.27, 33.91, 32.84, 28.95]
    assert first.mean == pytest.approx(np.mean(runs), abs=6e-4)
    assert first.std == pytest.approx(np.std(runs, ddof=1), abs=6e-4)
    # where the table does not print what its runs give
    misprinted = values["gaussians", Variant("rankboost"), "test"]
    assert misprinted.mean == pytest.approx(
        np.mean([67.58, 68.68, 68.36, 67.81, 62.49, 64.78, 66.91, 68.4, 69.4, 69.36])
    )
    assert misprinted.note.startswith("table 1 prints 67.13 ± 2.06")
