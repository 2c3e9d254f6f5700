"""Benchmarks of our form of several computations beside those of other libraries: time, memory, the same values.

A form is a function of the name of what is measured, scores and labels that returns a call for the value, or None for
what it does not have. Imports, compilation and a first small call are not timed, and the best of several calls counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from scripts._bench import Json, peak

Form = Callable[[str, Tensor, Tensor], Callable[[], float] | None]
Data = Callable[[str, Sequence[int], str], tuple[Tensor, Tensor]]
"""Returns scores and labels for what is measured, a shape and a dtype."""

OURS = "ltr"
_SECONDS, _CALLS = 0.5, 200  # seconds for which a call is repeated, and largest number of calls


def timed(form: Form, data: Data, what: str, shape: list[int], dtype: str, first: Sequence[int]) -> Json:
    """Return the value, the best time and the additional memory of one form; empty for what it does not have.

    Args:
        first: lengths of the lists of the calls before the clock starts.
    """
    for items in first:
        if small := form(what, *data(what, [2, items][-len(shape) :], dtype)):
            small()
    call = form(what, *data(what, shape, dtype))
    if call is None:
        return {}
    before = peak()
    value = call()
    megabytes = peak() - before
    times: list[float] = []
    while len(times) < 3 or (sum(times) < _SECONDS and len(times) < _CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        if min(times) > _SECONDS:
            break
    return {"value": value, "seconds": min(times), "megabytes": megabytes}


def checked(records: list[Json], tolerance: Mapping[str, float]) -> list[Json]:
    """Return the records with a value of what has one of ours.

    Raises:
        SystemExit: a form's value differs from ours: speeds cannot be compared if the answers differ.
    """
    ours = {(r["what"], *r["shape"]): r["value"] for r in records if r["form"] == OURS}
    kept = [r for r in records if "value" in r and (r["what"], *r["shape"]) in ours]
    for r in kept:
        expected = ours[r["what"], *r["shape"]]
        if abs(r["value"] - expected) > tolerance[r["dtype"]] * abs(expected):
            raise SystemExit(f"{r}: {r['value']!r}, but {expected!r} is our value")
    return kept


def seconds(own: list[Json]) -> str:
    """Return the time of our form."""
    value = {r["form"]: r["seconds"] for r in own}[OURS]
    unit, size = ("s", 1.0) if value >= 1.0 else ("ms", 1e-3) if value >= 1e-3 else ("µs", 1e-6)
    return f"{value / size:.3g} {unit}"


def ratio(own: list[Json], form: str) -> str:
    """Return how many times as long another form takes, ``-`` without it."""
    times = {r["form"]: r["seconds"] for r in own}
    if form not in times:
        return "-"
    found = times[form] / times[OURS]
    return f"{found:,.0f}x" if found >= 100 else f"{found:.3g}x"


def draw(records: list[Json], panels: Mapping[str, Sequence[str]], path: Path) -> None:
    """Draw time and memory of single lists over their length, on logarithmic axes; other forms are dotted.

    Args:
        records: the records.
        panels: names of what each row of the figure shows, by its title.
        path: where to write the figure.
    """
    import pandas as pd
    from matplotlib import pyplot as plt

    single = pd.DataFrame([r | {"items": r["shape"][0]} for r in records if "value" in r and len(r["shape"]) == 1])
    figure, rows = plt.subplots(
        len(panels), 2, squeeze=False, sharex=True, figsize=(9, 2.6 * len(panels) + 0.8), layout="constrained"
    )
    for both, (title, names) in zip(rows, panels.items(), strict=True):
        own = single[single["what"].isin(names)]
        for axes, measured, least in zip(both, ("seconds", "megabytes"), (0.0, 0.1), strict=True):
            curves = own.pivot_table(index="items", columns=["what", "form"], values=measured).clip(lower=least)
            look = {curve: "-o" if curve[1] == OURS else ":s" for curve in curves}
            curves.plot(
                ax=axes, loglog=True, style=look, markersize=3, title=f"{title}: {measured}", legend=axes is both[0]
            )
    figure.savefig(path)
