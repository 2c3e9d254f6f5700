"""What notebooks show: small HTML tables of objects, and a progress bar, which terminals show as well."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, TextIO

_SHOWN = 10  # bars of a table
# no colours of text or background: notebooks are light or dark
_TABLE = "border-collapse:collapse;margin:.4em 0;font-size:90%"
_CELL = "text-align:left;padding:.15em .8em .15em 0;border:0"
_WIDTH = 20  # characters of a bar in a terminal


def number(value: float) -> str:
    """Return the text of a number, with six digits at most."""
    return f"{value:.6g}"


def fact_table(
    title: str, facts: Mapping[str, object], weights: Sequence[tuple[str, float, float]] = (), heading: str = ""
) -> str:
    """Return a table of facts by name, without those that are None or empty, and below it the largest weights as bars.

    Weights are name, number to show, and size of the bar, under a `heading`.
    """
    rows = [
        f'<tr><td style="{_CELL};opacity:.7">{escape(name)}</td><td style="{_CELL}">{escape(_text(value))}</td></tr>'
        for name, value in facts.items()
        if value is not None and _text(value)
    ]
    parts = [f"<b>{escape(title)}</b>", f'<table style="{_TABLE}">{"".join(rows)}</table>']
    kept = sorted((weight for weight in weights if weight[1]), key=lambda weight: -abs(weight[2]))
    largest = abs(kept[0][2]) if kept else 1.0
    bars = [
        f'<tr><td style="{_CELL}">{escape(name)}</td><td style="{_CELL};text-align:right">{value:+.4g}</td>'
        f'<td style="{_CELL};width:8em"><div style="height:.7em;width:{100 * abs(size) / largest:.0f}%;'
        f'background:{"#1f6fb2" if value > 0 else "#b5341c"}"></div></td></tr>'
        for name, value, size in kept[:_SHOWN]
    ]
    if bars:
        more = f", {len(kept) - _SHOWN} more not shown" if len(kept) > _SHOWN else ""
        parts.append(f'<div style="opacity:.7;font-size:90%">{escape(heading)}{more}</div>')
        parts.append(f'<table style="{_TABLE}">{"".join(bars)}</table>')
    return f"<div>{''.join(parts)}</div>"


def _text(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)


class ProgressBar:
    """A callback that shows in one line how a fit or a search gets on, in a notebook or a terminal; elsewhere nothing.

    It goes wherever a callback is asked for: ``on_progress`` of `ltr.exact.solve`, `ExactRanker` and `TwoStageRanker`,
    ``on_choice`` of `TwoStageRanker`, ``on_step`` of `SurrogateRanker`. The bar is the share of the first gap that is
    closed, or of the inner splits that are done; a training has none.

    Args:
        stream: where to write in place of standard error, whatever it is.

    Examples:
        >>> from ltr.exact import RerankProblem, solve
        >>> with ProgressBar() as bar:
        ...     solution = solve(RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0]), on_progress=bar)
        >>> bar.text
        'value 0.63093, bound 0.63093, gap 0.00%'
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.text = ""
        self.share: float | None = None
        self._stream, self._first = stream, math.inf
        self._display: Any = None
        self._width = 0

    def __call__(self, what: object, other: object = None) -> None:
        """Show what a callback is given: a `TracePoint`, two numbers of inner splits, or a step and its ranker."""
        found: Any = what
        if hasattr(found, "incumbent"):
            if not math.isfinite(self._first):
                self._first = found.gap
            opened = 0 < self._first < math.inf
            self.share = 1.0 if found.gap == 0 else max(0.0, 1 - found.gap / self._first) if opened else 0.0
            gap = f"{found.gap:.2%}" if math.isfinite(found.gap) else "infinite"
            self.text = f"value {number(found.incumbent)}, bound {number(found.bound)}, gap {gap}"
        elif isinstance(what, int) and isinstance(other, int):
            self.share, self.text = what / max(1, other), f"{what} of {other} inner splits"
        else:
            held = "" if found.validation is None else f", validation {number(found.validation)}"
            self.share, self.text = None, f"step {found.index}, objective {number(found.objective)}{held}"
        self._show()

    def __enter__(self) -> ProgressBar:
        """Return the bar."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the line in a terminal."""
        if self._width and (stream := self._terminal()) is not None:
            stream.write("\n")
            stream.flush()

    def __deepcopy__(self, memo: dict[int, Any]) -> ProgressBar:
        # clones of a ranker go on in the same line
        return self

    def _terminal(self) -> TextIO | None:
        return self._stream or (sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None)

    def _show(self) -> None:
        if self._stream is None and "ipykernel" in sys.modules:
            from IPython.display import HTML, display

            bar = "" if self.share is None else f'<progress value="{self.share:.4f}" max="1"></progress> '
            content = HTML(f"<div>{bar}{self.text}</div>")
            if self._display is None:
                self._display = display(content, display_id=True)
            else:
                self._display.update(content)
        elif (stream := self._terminal()) is not None:
            done = "" if self.share is None else f"[{'#' * round(_WIDTH * self.share):<{_WIDTH}}] "
            stream.write(f"\r{done + self.text:<{self._width}}")
            stream.flush()
            self._width = len(done + self.text)
