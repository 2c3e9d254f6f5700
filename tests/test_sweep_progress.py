"""What a sweep shows: the time that is left, lines for logs, a bar for terminals."""

import io

import pytest
from rich.console import Console

from tests.sweeping import ONE_SPLIT, run_here, write
from trainers.config import parse_config
from trainers.display import Display, Remaining
from trainers.plan import cell_of


def exact(split, data="a", limit=100.0, top_k=50):
    tree = {"name": data, "data": {"name": "gaussians"}, "exact": {"time_limit": limit, "top_k": top_k}}
    return cell_of(parse_config(tree), split, "exact", "")


def first(split, method="ranknet", data="a"):
    return cell_of(parse_config({"name": data, "data": {"name": "gaussians"}}), split, method, "")


def test_unseen_cells_count_their_time_limit():
    assert Remaining([exact(split) for split in range(6)], at_once=2).seconds == 300
    assert Remaining([], at_once=2).seconds == 0


def test_the_longest_cell_has_to_be_waited_for():
    assert Remaining([exact(0, limit=600.0), exact(1)], at_once=8).seconds == 600


def test_the_estimate_falls_as_cells_need_less():
    cells = [exact(split) for split in range(10)]
    left = Remaining([*cells, first(0)], at_once=1)
    for at, cell in enumerate(cells, start=1):
        left.finished(cell, 30.0)
        assert left.seconds == pytest.approx((30.0 * at + 100.0) / (at + 1) * (10 - at) + 1.0)
    left.finished(first(0), 0.5)
    assert left.seconds == 0


def test_cells_without_a_result_are_not_waited_for_and_say_nothing():
    cells = [exact(0), exact(1)]
    left = Remaining(cells, at_once=1)
    left.finished(cells[0], None)
    assert left.seconds == 100


def test_a_sweep_tells_its_progress(tmp_path):
    text = io.StringIO()
    sweep = f'{ONE_SPLIT}methods = ["hinge"]\n'
    run_here(write(tmp_path, sweep=sweep), display=Display(Console(file=text, width=120)))
    lines = text.getvalue().splitlines()
    assert lines[0] == "1 result; 1 to compute here, 1 thread each"
    assert lines[-1].startswith("1/1, 0:00:00 left; small, split 0, hinge: converged, ")
