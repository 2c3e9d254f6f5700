"""The table of a run and what is said below it: nothing is cut at any width, and what was not proven is said."""

import dataclasses
import io
import json

import pytest
from rich.console import Console

from ltr.rankers import Choice
from trainers.run.folder import RunFolder
from trainers.run.results import Results, markdown_tables, read_results, rich_tables, row_of, tables, write_results

LONG = "p_norm_push(p=2.718281828459045)"


def results(before=15.65, after=15.02, *, bound=13.1, trivial=13.1, status="time_limit", statistic="dcg"):
    """A run of three methods on one split."""

    def row(method, test, **more):
        values = {statistic: test, "auc": 0.87654321, "mrr": 1234567.8}
        own = {"method": method, "status": "converged", "seconds": 12345.6, "train": values, "test": values}
        return row_of(own | {"loss": 0.53463} | more, top=7.4256) | {"objective": 7.4256}

    proofs = {"value": 7.4256, "bound": bound, "gap": 0.0527, "trivial_bound": trivial}
    rows = (
        row("logistic_regression", before, excess=5.8e-15),
        row(LONG, 14.0),
        row("exact", after, status=status, loss=None, list=proofs),
    )
    base = "logistic_regression"
    return Results("k100", (statistic, "auc", "mrr"), f"top 100 of {base}", True, True, rows, base=base)


def printed(found, width):
    """The tables as a terminal of that width shows them."""
    text = io.StringIO()
    console = Console(file=text, width=width, force_terminal=True, color_system=None)
    for part in rich_tables(found, width):
        console.print(part)
    return text.getvalue()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (15.65, 15.02, "15.6500 -> 15.0200, lowered"),
        (15.02, 15.65, "15.0200 -> 15.6500, raised"),
        (15.02, 15.02, "15.0200 -> 15.0200, left unchanged"),
        (0.3, 0.1 + 0.2, "0.3000 -> 0.3000, left unchanged"),
        (15.00001, 15.00002, "15.00001 -> 15.00002, raised"),
    ],
)
def test_what_became_of_the_test_statistic_is_said_in_a_line(tmp_path, before, after, said):
    found = results(before, after)
    line = f"test dcg: {said} by reranking logistic_regression (one split)"
    assert found.conclusions[0] == line
    assert line in printed(found, 120).splitlines()
    assert f"{line}\n" in markdown_tables(found)["methods"]
    folder = RunFolder(tmp_path)
    write_results(folder, found)
    assert json.loads((tmp_path / "results.json").read_text())["conclusions"] == found.conclusions
    assert line in (tmp_path / "results.md").read_text()
    assert read_results(folder) == found


@pytest.mark.parametrize("reranks", [False, True])
def test_table_and_caption_say_whether_the_base_order_is_kept(reranks):
    gains = {"base": 0.0, "spread 0.2": 0.4}
    own = Choice.by_rule(gains, {"base": 0.0, "spread 0.2": 0.1 if reranks else 9.0}, "dcg", linear=True)
    assert own.reranks == reranks
    found = results()
    found = dataclasses.replace(found, rows=(*found.rows[:2], found.rows[2] | {"choice": own.to_dict()}))
    status = "time_limit" if reranks else "base order"
    assert found.table.loc["exact", "status"] == status
    assert dict(tables(found)["methods"])["status"][-1] == status
    quick = {"status": "heuristic", "choice": own.to_dict(), "list": {"value": 1.0, "bound": 2.0}}
    assert row_of(quick)["bound"] is None  # no proof was asked for
    said = "by weights for new lists" if reranks else "as logistic_regression does"
    assert f"exact ranks {said}" in found.caption
