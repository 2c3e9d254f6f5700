"""The page on the paper: made of a sweep and the theorems, with all its pictures."""

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from tests.sweep_results import entry, exact, grid, record, sweep
from trainers.records import read_export, write_export
from trainers.report.page import Picture, Section, Text
from trainers.report.reference import Published, Reference, read_reference
from trainers.report.series import Variant

SCRIPTS = Path(__file__).parents[1] / "scripts"
PUBLISHED = SCRIPTS.parent / "configs" / "paper" / "published.csv"


@pytest.fixture(scope="module")
def scripts():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPTS))
        yield patch


@pytest.fixture(scope="module")
def paper(scripts):
    import paper

    theorem = Section("Theorem 1: one data set, two opposite rankings", [Text("It **holds**."), picture("theorem")])
    scripts.setattr(paper, "theorems", lambda say: [theorem])
    return paper


@pytest.fixture(scope="module")
def intro(scripts):
    import _paper_intro

    return _paper_intro


@pytest.fixture(scope="module")
def docs(paper, tmp_path_factory):
    """A page of a tiny sweep."""
    folder = tmp_path_factory.mktemp("page")
    write_export(folder / "sweep.jsonl", results())
    assert paper.main(["--docs", str(folder / "docs"), "--sweep", str(folder / "sweep.jsonl")]) == 0
    return folder / "docs"


def picture(name):
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([1, 2])
    return Picture(name, figure, "A line.")


def results(data=("uis", "travel"), splits=3):
    """A tiny sweep with the tables of the paper."""
    first = [record(name, split, "ranknet", 10.0 + split, 9.0) for name in data for split in range(splits)]
    lists = [
        exact(name, split, 11.0 + split, 9.5, top_k=k) for name in data for split in range(splits) for k in (10, 15)
    ]
    margins = [exact("uis", split, 11.0, 9.0, top_k=12, base=f"margin{at}") for split in range(splits) for at in (0, 1)]
    grids = [
        grid([*map(entry, first), *(entry(r, exact__top_k=r["options"]["top_k"]) for r in lists)], title="Methods"),
        grid(
            [entry(r, exact__margin=at) for at, r in enumerate(margins)], name="margin", title="The margin, at K = 12"
        ),
    ]
    return sweep([*first, *lists, *margins], grids)


def test_the_page_of_a_tiny_sweep(docs):
    text = (docs / "paper.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.M)
    for title in ("Where the paper's parts are", "Protocol", "Methods", "The margin, at K = 12", "The exact stage"):
        assert title in headings
    assert headings[-1] == "Theorem 1: one data set, two opposite rankings"
    assert "It **holds**." in text
    assert "commit `0123456789ab` with changes" in text
    images = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    assert "paper/figures/theorem.png" in images
    assert {docs / image for image in images} == set((docs / "paper" / "figures").iterdir())
    for image in images:
        assert (docs / image).read_bytes().startswith(b"\x89PNG")


def test_links_within_the_page_lead_to_headings(docs, intro):
    text = (docs / "paper.md").read_text()
    links = re.findall(r"\]\(#([^)]*)\)", text)
    headings = {intro.anchor(heading) for heading in re.findall(r"^## (.*)$", text, re.M)}
    assert {"methods", "the-margin-at-k--12", "theorem-1-one-data-set-two-opposite-rankings"} <= set(links) <= headings


def test_the_page_can_be_made_again_of_the_results_beside_it(paper, docs, tmp_path, capsys):
    cells = docs / "paper" / "cells.jsonl"
    assert len(read_export(cells).records) == len(results().records)
    old = tmp_path / "docs" / "paper" / "figures" / "old.png"
    old.parent.mkdir(parents=True)
    old.touch()
    assert paper.main(["--docs", str(tmp_path / "docs"), "--cells", str(cells)]) == 0
    files = [path.relative_to(docs) for path in sorted(docs.rglob("*")) if path.is_file()]
    assert files == [
        path.relative_to(tmp_path / "docs") for path in sorted((tmp_path / "docs").rglob("*")) if path.is_file()
    ]
    for path in files:
        assert (tmp_path / "docs" / path).read_bytes() == (docs / path).read_bytes()
    assert str(tmp_path / "docs" / "paper.md") in capsys.readouterr().out


def test_what_is_no_sweep_is_an_error(paper, tmp_path, capsys):
    assert paper.main(["--docs", str(tmp_path)]) == 1
    assert "cells.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "paper.md").exists()


def test_the_protocol_is_read_from_the_options(intro):
    text = " ".join(block.text for block in intro.protocol(results()).blocks)
    assert "3 times" in text
    assert "`ranknet` and maximises `dcg` with a margin of 0.0001 and C = 0.0001, for at most 2 seconds" in text


def published(data, mean, half="train"):
    return Published(data, Variant("ranknet"), half, mean, 1.0)


@pytest.mark.parametrize(("mean", "said"), [(3.9, None), (4.0, "none is"), (5.8, "1 is")])
def test_which_logarithm(intro, mean, said):
    # 8 positives on top: 3.95 with base 2, 5.70 with base e
    found = intro.logarithm(results(), Reference("", (published("uis", 3.0), published("uis", mean)), ()))
    if said is None:
        assert found == []
    else:
        text, table = found[0].blocks
        assert "On 1 of 1 data sets" in text.text
        assert f"the natural logarithm {said}" in text.text
        assert table.rows[0][3:] == [f"{mean:.2f}", "8", "3.95", "5.70"]


def test_the_published_values_can_be_read():
    assert len(read_reference(PUBLISHED).values) > 100
