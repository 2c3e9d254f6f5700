"""What a sweep shows: lines for logs, a bar for terminals."""

import io

from rich.console import Console

from tests.sweeping import ONE_SPLIT, run_here, write
from trainers.config import parse_config
from trainers.display import Display
from trainers.plan import cell_of


def exact(split, data="a", limit=100.0, top_k=50):
    tree = {"name": data, "data": {"name": "gaussians"}, "exact": {"time_limit": limit, "top_k": top_k}}
    return cell_of(parse_config(tree), split, "exact", "")


def test_a_sweep_tells_its_progress(tmp_path):
    text = io.StringIO()
    sweep = f'{ONE_SPLIT}methods = ["hinge"]\n'
    run_here(write(tmp_path, sweep=sweep), display=Display(Console(file=text, width=120)))
    lines = text.getvalue().splitlines()
    assert lines[0] == "1 result; 1 to compute, 1 at a time, 1 thread each"
    assert lines[-1].startswith("1/1: small, split 0, hinge: converged, ")
