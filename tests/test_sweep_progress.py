"""What a sweep shows: lines for logs, a bar for terminals."""

import io
import time

from rich.console import Console

from tests.sweeping import ONE_SPLIT, run_here, write
from trainers import display as module
from trainers.config import parse_config
from trainers.display import Display
from trainers.plan import cell_of
from trainers.records import Answer


def exact(split, data="a", limit=100.0, top_k=50):
    tree = {"name": data, "data": {"name": "gaussians"}, "exact": {"time_limit": limit, "top_k": top_k}}
    return cell_of(parse_config(tree), split, "exact", "")


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
        display.begin_sweep(count + 7, count, 2, 1)
        for cell in cells:
            clock.now += every
            failed = cell.split == 0
            display.finished(cell, Answer("no luck") if failed else Answer("", "optimal", 20.0, 0.0))
    return text.getvalue()


def test_lines_for_logs_are_ten_seconds_apart(monkeypatch):
    lines = shown(monkeypatch).splitlines()
    assert lines[0] == "107 results, 7 of them finished earlier; 100 to compute, 2 at a time, 1 thread each"
    assert len(lines) == 1 + 100 // 10
    assert lines[1] == "16/107: a, split 9, exact: optimal, 20.0 s, gap 0.00%"
    assert lines[-1].startswith("106/107: ")


def test_slow_cells_have_a_line_each(monkeypatch):
    lines = shown(monkeypatch, count=3, every=60.0).splitlines()
    assert [line.partition(":")[0] for line in lines[1:]] == ["7/10", "8/10", "9/10"]
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
    assert lines[0] == "1 result; 1 to compute, 1 at a time, 1 thread each"
    assert lines[1].startswith("1/1: small, split 0, hinge: converged, ")
    assert len(lines) == 2


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
