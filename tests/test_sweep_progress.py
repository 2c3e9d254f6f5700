"""What a sweep shows: the time that is left, lines for logs, a bar for terminals."""

import io
import time

import pytest
from rich.console import Console

from tests.sweeping import ONE_SPLIT, run_here, write
from trainers import display as module
from trainers.config import parse_config
from trainers.display import Display, Remaining
from trainers.plan import cell_of
from trainers.records import Answer


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


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


def shown(monkeypatch, count=100, every=1.0, **console):
    """What is written while cells end one after the other."""
    clock, text = Clock(), io.StringIO()
    monkeypatch.setattr(module, "time", clock)
    cells = [exact(split) for split in range(count)]
    with Display(Console(file=text, width=120, **console)) as display:
        display.begin_sweep(count + 7, cells, "2 at a time", 2, 1)
        for cell in cells:
            clock.now += every
            failed = cell.split == 0
            display.finished(cell, Answer("no luck") if failed else Answer("", "optimal", 20.0, 0.0))
    return text.getvalue()


def test_lines_for_logs_are_ten_seconds_apart(monkeypatch):
    lines = shown(monkeypatch).splitlines()
    assert lines[0] == "107 results, 7 of them finished earlier; 100 to compute 2 at a time, 1 thread each"
    assert len(lines) == 1 + 100 // 10
    assert lines[1] == "16/107, 0:21:00 left; a, split 9, exact: optimal, 20.0 s, gap 0.00%"
    assert lines[-1].startswith("106/107, 0:00:00 left")


def test_slow_cells_have_a_line_each(monkeypatch):
    lines = shown(monkeypatch, count=3, every=60.0).splitlines()
    assert [line.partition(",")[0] for line in lines[1:]] == ["7/10", "8/10", "9/10"]
    assert lines[1].endswith("a, split 0, exact: failed")


def test_a_terminal_has_a_bar(monkeypatch):
    text = shown(monkeypatch, count=5, force_terminal=True)
    assert "12 results" in text
    assert "━" in text
    assert "11/12" in text


def test_a_sweep_tells_its_progress(tmp_path):
    text = io.StringIO()
    sweep = f'{ONE_SPLIT}methods = ["hinge"]\n'
    run_here(write(tmp_path, sweep=sweep), display=Display(Console(file=text, width=120)))
    lines = text.getvalue().splitlines()
    assert lines[0] == "1 result; 1 to compute here, 1 thread each"
    assert lines[1].startswith("1/1, 0:00:00 left; small, split 0, hinge: converged, ")
    assert len(lines) == 2


def test_steps_tell_how_much_time_is_left_at_most(monkeypatch):
    clock, text = Clock(), io.StringIO()
    monkeypatch.setattr(module, "time", clock)
    with Display(Console(file=text, width=120)) as display:
        for first in (1, 7):  # the second training goes on from a checkpoint
            display.begin("ranknet", 10)
            for step in range(first, 11):
                clock.now += 4.0
                display.step("ranknet", step, {"loss/convex": 0.5})
    lines = text.getvalue().splitlines()
    assert lines[0] == "ranknet: step 1, loss/convex 0.5, at most 0:00:36 left"
    assert lines[8] == "ranknet: step 9, loss/convex 0.5, at most 0:00:04 left"
    assert lines[9] == "ranknet: step 10, loss/convex 0.5"
    assert lines[10] == "ranknet: step 7, loss/convex 0.5, at most 0:00:12 left"


def test_a_line_says_what_a_long_silence_waits_for(monkeypatch):
    monkeypatch.setattr(module, "_STEPS", 0.05)
    text = io.StringIO()
    with Display(Console(file=text, width=120)) as display:
        display.wait("reading the data")
        display.begin("ranknet", 10)  # in time
        until = time.monotonic() + 60.0
        while "started" not in text.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
        display.wait("too late to be seen")
    assert text.getvalue() == "ranknet: started\n"
    with Display() as display:
        display.wait("nobody looks")
        assert display._waiting is None
