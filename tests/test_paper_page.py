"""The pages on the paper: made of a sweep and the theorems, with all their pictures."""

import re
from pathlib import Path

import pytest

from scripts.paper import __main__ as paper
from scripts.paper import experiments
from scripts.paper.published import Published, Reference, read_reference
from scripts.paper.theorem1 import first_theorem
from scripts.paper.theorem2 import lemma_one, rank_definitions, second_theorem
from tests.sweep_results import entry, exact, grid, record, sweep
from tests.test_paper_theorem import thinned
from trainers.records import read_sweep, write_export
from trainers.report.evidence import Evidence, Variant

PUBLISHED = Path(__file__).parents[1] / "configs" / "paper" / "published.csv"


pytestmark = pytest.mark.slow  # the page is made again whole


@pytest.fixture(scope="module", autouse=True)
def theorems():
    """The theorems on a tenth of the data and on few lists."""
    found = {
        "theorem1": first_theorem([0, 1], thinned),
        "ranks": rank_definitions(),
        "theorem2": second_theorem(lists=2),
        "lemma": lemma_one(count=5),
        "areas": {"lists": 6, "agree": 5},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper, "theorems", lambda: found)
        yield found


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    """The findings of a tiny sweep."""
    folder = tmp_path_factory.mktemp("page")
    write_export(folder / "sweep.jsonl", results())
    assert paper.main([*folders(folder), "--sweep", str(folder / "sweep.jsonl")]) == 0
    return folder / "docs"


def folders(folder):
    return ["--docs", str(folder / "docs"), "--tables", str(folder / "tables")]


@pytest.fixture(scope="module")
def tables(docs):
    """All tables of the tiny sweep."""
    return docs.parent / "tables"


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


def test_the_page_of_a_tiny_sweep(tables):
    text = (tables / "paper.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.M)
    for title in ("Where the paper's parts are", "Protocol", "Methods", "The margin, at K = 12", "The exact stage"):
        assert title in headings
    assert headings[-1] == "Other statements, checked"
    assert "commit `0123456789ab` with changes" in text
    assert not re.search(r"[{}%]{2}|\bNone\b(?! of)|undefined", text)
    assert "figures/theorem1_losses.png" in images_of(tables, "figures")


def images_of(folder, figures):
    """The images of a page, all of which are there, and no other ones."""
    images = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", (folder / "paper.md").read_text())
    assert {folder / image for image in images} == set((folder / figures).iterdir())
    for image in images:
        assert (folder / image).read_bytes().startswith(b"\x89PNG")
    return images


def test_the_findings_of_a_tiny_sweep(docs):
    text = (docs / "paper.md").read_text()
    headings = re.findall(r"^## (.*)$", text, re.M)
    assert headings[:2] == ["Protocol", "Does the proven optimum generalise better than the surrogate?"]
    assert headings[-1] == "Ranks, and when Subranks suffice"
    assert not re.search(r"[{}%]{2}|\bNone\b(?! of)|undefined", text)
    assert images_of(docs, "paper/figures")[-1] == "paper/figures/subrank_counterexample.png"
    for said in (
        "609 observations in four clumps",
        "in each of 2 draws of the data.**",
        "all 9 losses end with Solution 2",
        "Two lists without duplicates",
        "Of 24 random cases 24 were solved",
        "cases in which the condition holds, the optima agree",
        "on 5 of 6 random lists",
    ):
        assert said in text, said


def test_the_findings_are_short():
    page = Path(__file__).parents[1] / "docs" / "paper.md"
    assert len(page.read_text(encoding="utf-8").split()) <= 1500


def test_tables_are_rectangular(tables):
    for block in (tables / "paper.md").read_text().split("\n\n"):
        if block.startswith("|"):
            lines = block.strip().splitlines()
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1, block
            assert re.fullmatch(r"\|( ---:? \|)+", lines[1]), block


def test_the_theorems_are_told_by_what_was_computed(tables):
    text = (tables / "paper.md").read_text()
    for said in (
        "609 observations in four clumps",
        "in each of 2 draws",
        "So all 9 convex losses",
        "All 9 losses, hinge included, then end with Solution 2",
        "Subrank and ResolvedRank come out the same",
        "By RankCV a constant score has a larger value",
        "the correction is right for Subranks",
        "Two lists without duplicates",
        "24 of 24 random cases",
        "the optima agree",
        "without ties | yes |",
        "on 5 of 6 random lists | no |",
    ):
        assert said in text, said


def test_links_within_the_page_lead_to_headings(tables):
    text = (tables / "paper.md").read_text()
    links = re.findall(r"\]\(#([^)]*)\)", text)
    headings = {paper.anchor(heading) for heading in re.findall(r"^## (.*)$", text, re.M)}
    assert {"methods", "the-margin-at-k--12", "theorem-1-one-data-set-two-opposite-rankings"} <= set(links) <= headings


def test_the_page_can_be_made_again_of_the_results_beside_it(docs, tmp_path, capsys):
    cells = docs / "paper" / "cells.jsonl"
    assert len(read_sweep(cells).records) == len(results().records)
    old = tmp_path / "docs" / "paper" / "figures" / "old.png"
    old.parent.mkdir(parents=True)
    old.touch()
    assert paper.main([*folders(tmp_path), "--cells", str(cells)]) == 0
    files = [path.relative_to(docs) for path in sorted(docs.rglob("*")) if path.is_file()]
    assert files == [
        path.relative_to(tmp_path / "docs") for path in sorted((tmp_path / "docs").rglob("*")) if path.is_file()
    ]
    for path in files:
        if path.name.startswith(("theorem1", "subrank")):
            continue  # the same figures, drawn twice
        assert (tmp_path / "docs" / path).read_bytes() == (docs / path).read_bytes()
    assert str(tmp_path / "docs" / "paper.md") in capsys.readouterr().out


def test_what_is_no_sweep_is_an_error(tmp_path, capsys):
    assert paper.main(folders(tmp_path)) == 1
    assert "cells.jsonl" in capsys.readouterr().err
    assert not (tmp_path / "docs" / "paper.md").exists()


def test_the_protocol_is_read_from_the_options(tables):
    text = (tables / "paper.md").read_text()
    assert "at random, 3 times" in text
    assert "`ranknet` and maximises `dcg` with a margin of 0.0001 and C = 0.0001, for at most 2 seconds" in text


def published(data, mean, part="train"):
    return Published(data, Variant("ranknet"), part, mean, 1.0)


@pytest.mark.parametrize(("mean", "beyond", "natural"), [(3.9, 0, 0), (4.0, 1, 0), (5.8, 1, 1)])
def test_which_logarithm(mean, beyond, natural):
    # 8 positives on top: 3.95 with base 2, 5.70 with base e
    reference = Reference("", (published("uis", 3.0), published("uis", mean)), ())
    found = experiments.logarithm(Evidence(results()), reference)
    assert (found["beyond"], found["natural"]) == (beyond, natural)
    assert found["table"].rows[0][3:] == [f"{mean:.2f}", "8", "3.95", "5.70"]


def test_the_published_values_can_be_read():
    assert len(read_reference(PUBLISHED).values) > 100
