"""Benchmarks of our form of several computations beside those of other libraries: time, memory, the same values.

Every measurement runs in a process of its own, so that peak memory is that of this measurement alone. Imports,
compilation and a first small call are not timed, and the best of several calls counts. No table is written if a form's
value differs from ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from scripts._bench import Json, made_on, peak
from trainers.report import drawing as draw
from trainers.tables import markdown_table

Form = Callable[[str, Tensor, Tensor], Callable[[], float] | None]
"""A function of the name of what is measured, scores and labels that returns a call for the value, or None."""

Curve = tuple[str, str, str, str, str]
"""A line of a plot: the form and what it computes; its label, style and colour."""

_SECONDS, _CALLS = 0.5, 200  # seconds for which a call is repeated, and largest number of calls


@dataclass
class Forms:
    """What is compared, and how.

    Attributes:
        name: name of the table and of the plot.
        forms: the forms by name; the first is ours.
        data: returns scores and labels for what is measured, a shape and a dtype.
        plot: the curves of each panel, by its title.
        tolerance: relative error up to which the values of forms agree, by dtype.
        first: lengths of the lists of the calls that compile, before the clock starts.
    """

    name: str
    forms: Mapping[str, Form]
    data: Callable[[str, Sequence[int], str], tuple[Tensor, Tensor]]
    plot: Mapping[str, Sequence[Curve]]
    tolerance: Mapping[str, float]
    first: Sequence[int]

    def measure(self, what: str, shape: list[int], dtype: str, form: str, threads: int) -> Json:
        """Return the value, the best time and the additional memory of one form; empty for what it does not have."""
        made = self.forms[form]
        for items in self.first:
            if small := made(what, *self.data(what, [2, items][-len(shape) :], dtype)):
                small()
        call = made(what, *self.data(what, shape, dtype))
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

    def tables(self, records: list[Json]) -> dict[str, str]:
        """Return our seconds and memory, and the others' time as a multiple of ours.

        Raises:
            SystemExit: a form's value differs from ours: speeds cannot be compared if the answers differ.
        """
        ours, *others = self.forms
        rows = []
        for key in dict.fromkeys((r["what"], tuple(r["shape"]), r["dtype"]) for r in records):
            what, shape, dtype = key
            own = {r["form"]: r for r in records if (r["what"], tuple(r["shape"]), r["dtype"]) == key and "value" in r}
            if ours not in own:
                continue
            seconds, expected = own[ours]["seconds"], own[ours]["value"]
            for record in own.values():
                if abs(record["value"] - expected) > self.tolerance[dtype] * abs(expected):
                    raise SystemExit(f"{record}: {record['value']!r}, but {expected!r} is our value")
            times = [f"{own[form]['seconds'] / seconds:.3g}x" if form in own else "-" for form in others]
            size = " x ".join(f"{n:,}" for n in shape)
            rows.append([what, size, _time(seconds), f"{own[ours]['megabytes']:.0f}", *times])
        shown = markdown_table(["", "scores", ours, "MB", *others], rows, left=2)
        return {self.name: f"{made_on(records)} Threads: {records[0]['threads']}.\n\n{shown}\n"}

    def draw(self, records: list[Json], folder: Path) -> None:
        """Draw time and memory of single lists over their length, on logarithmic axes."""
        figure, looks = draw.canvas(2.6 * len(self.plot) + 0.8, draw.WIDE), {}
        panels = figure.subplots(len(self.plot), 2, squeeze=False, sharex=True)
        single = [record for record in records if "value" in record and len(record["shape"]) == 1]
        for both, (title, curves) in zip(panels, self.plot.items(), strict=True):
            for axes, measured, least in zip(both, ("seconds", "megabytes"), (0.0, 0.1), strict=True):
                draw.dress(axes, f"{title}: {measured}")
                for form, what, label, style, colour in curves:
                    own = [record for record in single if (record["form"], record["what"]) == (form, what)]
                    if found := sorted((record["shape"][0], max(record[measured], least)) for record in own):
                        axes.loglog(*zip(*found, strict=True), style, color=colour, markersize=3)
                        (looks[label],) = axes.plot([], [], style, color=colour, markersize=3, label=label)
        draw.name_axes(figure, x="items of the list")
        draw.legend(figure, looks.values())
        figure.savefig(folder / f"{self.name}.png")


def _time(seconds: float) -> str:
    unit, size = ("s", 1.0) if seconds >= 1.0 else ("ms", 1e-3) if seconds >= 1e-3 else ("µs", 1e-6)
    return f"{seconds / size:.3g} {unit}"
