"""The pages on the paper: made of a sweep and the theorems, with all their pictures."""

import shutil

import pytest

from scripts.paper import __main__ as paper
from scripts.paper.theorem1 import first_theorem
from scripts.paper.theorem2 import lemma_one, rank_definitions, second_theorem
from tests.scripts.test_paper import thinned
from tests.trainers.sweep_results import entry, exact, grid, record, sweep
from trainers.records import read_sweep, write_export

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
    assert paper.main(["--docs", str(folder / "docs"), "--sweep", str(folder / "sweep.jsonl")]) == 0
    return folder / "docs"


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


def test_the_page_can_be_made_again_of_the_results_beside_it(docs, tmp_path, capsys):
    cells = docs / "paper" / "cells.jsonl"
    assert len(read_sweep(cells).records) == len(results().records)
    shutil.copytree(docs, tmp_path, dirs_exist_ok=True)
    (tmp_path / "paper" / "figures" / "old.png").touch()
    (tmp_path / "paper.md").unlink()
    assert paper.main(["--docs", str(tmp_path)]) == 0
    files = [path.relative_to(docs) for path in sorted(docs.rglob("*")) if path.is_file()]
    assert files == [path.relative_to(tmp_path) for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    for name in ("paper.md", "paper/cells.jsonl"):
        assert (tmp_path / name).read_bytes() == (docs / name).read_bytes()
    assert str(tmp_path / "paper.md") in capsys.readouterr().out
