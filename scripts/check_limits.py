r"""Check that solves of large problems keep to their time and memory limits, and that Ctrl-C ends them at once.

Every case runs in a process of its own, which has loaded the compiled code before the clock starts. Measured: seconds
beyond the time limit; memory added to the process, at its peak, as a share of the memory limit; seconds from Ctrl-C to
the answer. Limits hold if these are at most 1 s, 120 % and 1 s.

    python scripts/check_limits.py [--only TEXT]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial

import numpy as np
import psutil

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, solve
from ltr.exact.problem import Problem
from ltr.exact.state import MEGABYTE

BEYOND, SHARE = 1.0, 1.2
MODES = {  # time limit in seconds, memory limit in megabytes, seconds until Ctrl-C
    "time": (1.0, None, None),
    "instant": (0.001, None, None),
    "memory": (5.0, 400.0, None),
    "interrupt": (60.0, None, 2.0),
    "later interrupt": (60.0, None, 6.0),
}
EXACT = ("auto", "local_search")
BINARY = (*EXACT, "resolved")


def binary(n: int, d: int, **options: object) -> Problem:
    """Return a list of labelled observations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = (X[:, : min(3, d)].sum(axis=1) + rng.normal(size=n) > 1).astype(int)
    return RerankProblem(X, y, **options)  # type: ignore[arg-type]


def graded(n: int, d: int, lists: int, rank: str, *, gains: int | None = 5) -> Problem:
    """Return lists of graded observations; with `gains` None, no two gains are equal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    values = rng.random(n) if gains is None else rng.integers(0, gains, size=n).astype(float)
    return RerankProblem(X, values, qid=rng.integers(0, lists, size=n), gain="linear", rank=rank)  # type: ignore[arg-type]


def preferences(n: int, d: int, pairs: int) -> Problem:
    """Return preferences between observations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    above = rng.integers(0, n, size=pairs)
    return PairwiseProblem(X, np.column_stack([above, (above + rng.integers(1, n, size=pairs)) % n]))


CASES = {  # a function that makes the problem, and the methods that can solve it
    "binary 5,000 x 50": (partial(binary, 5_000, 50), BINARY),
    "binary 20,000 x 10": (partial(binary, 20_000, 10), BINARY),
    "binary 20,000 x 10, AUC": (partial(binary, 20_000, 10, statistic="auc"), (*EXACT, "auc")),
    "binary 20,000 x 300": (partial(binary, 20_000, 300), BINARY),
    "binary 2,000 x 300": (partial(binary, 2_000, 300), BINARY),
    "binary 600 x 300": (partial(binary, 600, 300), BINARY),
    "binary 1,000 x 5, price": (partial(binary, 1_000, 5, C=0.1), EXACT),
    "binary 5,000 x 20, three features": (partial(binary, 5_000, 20, max_nonzeros=3), EXACT),
    "binary 20,000 x 20, a side constraint": (
        partial(binary, 20_000, 20, constraints=LinearConstraints(np.ones((1, 20)), [0.5])),
        EXACT,
    ),
    "binary 5,000 x 20, subranks": (
        partial(binary, 5_000, 20, rank="subrank"),
        (*EXACT, "subrank"),
    ),
    "graded 3,000 x 20, one list": (partial(graded, 3_000, 20, 1, "resolved"), EXACT),
    "graded 3,000 x 20, one list, subranks": (partial(graded, 3_000, 20, 1, "subrank"), EXACT),
    "graded 20,000 x 50, 500 lists": (partial(graded, 20_000, 50, 500, "resolved"), EXACT),
    "graded 20,000 x 10, 20,000 gains": (partial(graded, 20_000, 10, 1, "resolved", gains=None), EXACT),
    "200,000 preferences, 20,000 x 300": (
        partial(preferences, 20_000, 300, 200_000),
        (*EXACT, "pairwise"),
    ),
    "5,000,000 preferences, 20,000 x 10": (partial(preferences, 20_000, 10, 5_000_000), (*EXACT, "pairwise")),
}


def child(name: str, method: str, seconds: float, megabytes: float | None) -> None:
    """Solve one case in this process, and print the result as JSON."""
    problem = CASES[name][0]()
    for compiled in EXACT:
        solve(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0]), compiled, Limits(time_limit=10))
    print("ready", flush=True)
    began = time.monotonic()
    solution = solve(problem, method, Limits(time_limit=seconds, memory_limit=megabytes))
    print(json.dumps({"seconds": time.monotonic() - began, "status": solution.status.value}), flush=True)
    os._exit(0)  # freeing memory at the end of the process is not part of the solve


def measure(name: str, method: str, mode: str) -> tuple[float, float, str]:
    """Run one case in a process of its own.

    Returns:
        Seconds beyond the time limit, or from Ctrl-C to the answer; added memory in megabytes; and the status.

    Raises:
        RuntimeError: the process died, or gave no answer within 100 seconds.
    """
    seconds, megabytes, interrupt = MODES[mode]
    command = [sys.executable, __file__, "--child", json.dumps([name, method, seconds, megabytes])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError(process.stderr.read()[-500:])
        watched = psutil.Process(process.pid)
        base = peak = watched.memory_info().rss
        began, sent = time.monotonic(), None
        while process.poll() is None:
            now = time.monotonic()
            with contextlib.suppress(psutil.Error):  # it has ended
                peak = max(peak, watched.memory_info().rss)
            if interrupt is not None and sent is None and now - began > interrupt:
                process.send_signal(signal.SIGINT)
                sent = now
            if now - began > 100:
                process.kill()
                raise RuntimeError("no answer after 100 s")
            time.sleep(0.005)
        ended = time.monotonic()
        answer = process.stdout.read()
        if not answer:
            raise RuntimeError(process.stderr.read()[-500:])
    found = json.loads(answer)
    late = found["seconds"] - seconds if interrupt is None else ended - sent if sent is not None else 0.0
    return late, (peak - base) / MEGABYTE, found["status"]


def main() -> int:
    """Run the cases; return 1 if a limit did not hold."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help='part of "problem | method | limit"')
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*json.loads(arguments.child))
    print("| problem | method | limit | overrun or share | added MB | status |\n| --- | --- | --- | --- | --- | --- |")
    broken = 0
    runs = [(name, method, mode) for name, (_, methods) in CASES.items() for method in methods for mode in MODES]
    for run in runs:
        title, megabytes = " | ".join(run), MODES[run[2]][1]
        if arguments.only not in title:
            continue
        try:
            late, added, status = measure(*run)
        except RuntimeError as error:
            broken += 1
            print(f"| {title} | FAILED: {error} | | |", flush=True)
            continue
        holds = late <= BEYOND and (megabytes is None or added <= SHARE * megabytes)
        broken += not holds
        figure = f"{late:+.2f} s" + ("" if megabytes is None else f", {added / megabytes:.0%}")
        print(f"| {title} | {'' if holds else 'BROKEN '}{figure} | {added:.0f} | {status} |", flush=True)
    print(f"\n{broken} limits did not hold")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
