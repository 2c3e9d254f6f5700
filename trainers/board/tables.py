"""The texts of a board: a guide, and a table for each comparison."""

from __future__ import annotations

from collections.abc import Mapping

from trainers.board.lines import PARTS, Comparison, Line
from trainers.tables import NOTHING_PROVEN, markdown_table, number

__all__ = ["GUIDE", "tables_of"]

_FORMS = {"gap": "{:.2%}", "loss": "{:.4g}", "seconds": "{:.2f}"}

GUIDE = """\
Each comparison is a data set (and a table of its sweep); names of runs and charts begin with it.

* **CUSTOM SCALARS**: the methods side by side. Convex loss beside the true rank statistic while training; the final
  statistic of surrogates and exact stage as horizontal lines; precision among the first k of the list, where k is the
  step; best value and bound of the exact stage over time, and the gap between them.
* **HPARAMS**: a row for each method on each data set, with its options and final values. The left column filters and
  sorts.
* **PR CURVES**: precision against recall. Scores are ranks: 1 at the top of the list, 0 at the bottom.
* **IMAGES**: ROC curves, ranked lists, and the figures of the report on a sweep. **TEXT**: the tables.

With several splits all values are means, and precision and recall are those of all their lists together. A curve that
has ended keeps its last value.
"""


def tables_of(comparison: Comparison) -> dict[str, str]:
    """Return the final values of a comparison as Markdown, in tables narrow enough for TensorBoard.

    Values are means over splits, ± the standard deviation between them.
    """
    first, *others = comparison.statistics or [comparison.statistic]
    main = {f"{part} {first}": f"{part}/{first}" for part in PARTS}
    main |= {"value on list": "value", "bound": "bound", "gap": "gap", "convex loss": "loss", "seconds": "seconds"}
    more = {f"{part} {other}": f"{part}/{other}" for other in others for part in PARTS}
    tables = {"results": main, "results, other statistics": more}
    return {name: text for name, tags in tables.items() if (text := _table(comparison, tags))}


def _table(comparison: Comparison, tags: Mapping[str, str]) -> str:
    """Return a table of final values, with tags by heading; empty without any value."""
    columns = {heading: [_cell(line, tag) for line in comparison.lines] for heading, tag in tags.items()}
    columns = {heading: cells for heading, cells in columns.items() if any(cells)}
    if not columns:
        return ""
    splits = [str(line.parameters.get("split", "")) for line in comparison.lines]
    same = len(set(splits)) == 1
    names = [line.name + ("" if same else f" ({split})") for line, split in zip(comparison.lines, splits, strict=True)]
    table = markdown_table(["method", *columns], zip(names, *columns.values(), strict=True))
    headline = comparison.title + (f", split: {splits[0]}" if same else ", splits in parentheses")
    return f"{headline}\n\n{table}\n"


def _cell(line: Line, tag: str) -> str:
    known = line.known(tag)
    form = _FORMS.get(tag)
    unproven = ""
    if tag == "gap" and line.unproven:
        splits = len(line.final[tag])
        unproven = f" ({NOTHING_PROVEN}{'' if line.unproven == splits else f' in {line.unproven} of {splits}'})"
    if len(known) < 2:
        return number(line.mean(tag), form) + unproven
    form = form or "{:.3f}"
    return f"{number(line.mean(tag), form)} ± {number(float(known.std(ddof=1)), form)}{unproven}"
