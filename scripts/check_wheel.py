"""Solve a small problem with the installed toolkit, to see that a wheel works where it is installed."""

import sys
import time
from pathlib import Path

import numpy as np

import ltr
from ltr.exact import Limits, RerankProblem, Status, solve
from ltr.native import _core

folder = Path(ltr.__file__).parent
if not folder.is_relative_to(sys.prefix):
    sys.exit(f"imported {folder}, not the installed toolkit")
if found := [path.name for path in folder.rglob("*") if path.suffix in {".cpp", ".h", ".txt", ".a", ".o"}]:
    sys.exit(f"the wheel has files of the build: {', '.join(found)}")
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
begun = time.perf_counter()
solution = solve(RerankProblem(X, X[:, 0] + rng.normal(size=40) > 0, statistic="dcg"), "auto", Limits(time_limit=60))
print(f"{Path(_core.__file__).name}: {solution.status.value} in {time.perf_counter() - begun:.2f} s")
sys.exit(solution.status is not Status.OPTIMAL)
