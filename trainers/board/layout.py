"""Tags, charts and texts of a board.

==============================================  ======================================================
tag, behind the comparison's name               value, step
==============================================  ======================================================
``loss``, ``train/dcg``, ``test/dcg``           while training; methods without steps draw a level line
``final/train/dcg``, ``final/test/dcg``, ...    the finished method's, a level line
``precision/train``, ``precision/test``         share of positives among the first k; the step is k
``incumbent``, ``bound``, ``gap``               the exact stage's; the step is the time in milliseconds
``precision and recall/train``, ``.../test``    for the items above a position
==============================================  ======================================================

Brackets in them are square, see `trainers.run.tracking.event_tag`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tensorboard.plugins.custom_scalar import layout_pb2

from trainers.board.lines import PARTS, Comparison, Line, Points, precision_curve, stairs
from trainers.run.tracking import event_tag
from trainers.tables import NOTHING_PROVEN, markdown_table, number

SHOWN_AT_FIRST = 40
"""TensorBoard shows no run at first where there are more."""
_UNFOLDED = 3
"""Comparisons whose charts are unfolded at first, where the runs are shown; TensorBoard loads what is unfolded."""

_SETS = {"train": "training set", "test": "test set"}


def tag_of(comparison: Comparison, what: str) -> str:
    """Return the tag of something in a comparison."""
    return event_tag(f"{comparison.name}/{what}")


def scalars_of(comparison: Comparison, line: Line) -> dict[str, Points]:
    """Return the series of a line by tag."""
    final = line.means
    stepped = {"loss", *(f"{part}/{comparison.statistic}" for part in PARTS)}
    stepped |= {tag for other in comparison.lines for tag in other.curves}
    found: dict[str, Points] = {tag: _level(final[tag], comparison.longest) for tag in final if tag in stepped}
    found |= line.curves
    found |= {what: stairs(points) for what, points in line.trace.items()}
    found |= {f"final/{tag}": _level(value, 1) for tag, value in final.items() if tag.startswith(PARTS)}
    found |= {f"precision/{part}": precision_curve(lists) for part, lists in line.ranked.items()}
    return {tag_of(comparison, what): points for what, points in found.items() if points}


def _level(value: float, last: int) -> Points:
    return [(0, value), (last, value)]


def charts_of(comparison: Comparison) -> dict[str, dict[str, list[str]]]:
    """Return titles and tags of the charts by category; charts without a series are left out."""
    statistic, *others = comparison.statistics or [comparison.statistic]
    final = {part: f"final {statistic}, {_SETS[part]}" for part in PARTS}
    first = {part: f"precision among the first k, {_SETS[part]}" for part in PARTS}
    charts = {
        "convex loss while training": ["loss"],
        **{f"{statistic} while training, {_SETS[part]}": [f"{part}/{statistic}"] for part in PARTS},
        **{final[part]: [f"final/{part}/{statistic}"] for part in PARTS},
        first["test"]: ["precision/test"],
        "exact stage: incumbent and bound (step = ms)": ["incumbent", "bound"],
        "exact stage: relative gap (step = ms)": ["gap"],
        first["train"]: ["precision/train"],
    }
    more = {f"final {name}, {_SETS[part]}": [f"final/{part}/{name}"] for name in others for part in PARTS}
    there = {tag for line in comparison.lines for tag in scalars_of(comparison, line)}
    kept = {}
    for title, several in ((comparison.title, charts), (f"{comparison.title}: other statistics", more)):
        tags = {chart: [tag_of(comparison, what) for what in whats] for chart, whats in several.items()}
        if drawn := {chart: named for chart, named in tags.items() if not there.isdisjoint(named)}:
            kept[title] = drawn
    return kept


def layout_of(comparisons: Sequence[Comparison]) -> layout_pb2.Layout:
    """Return the charts of the CUSTOM SCALARS tab."""
    layout = layout_pb2.Layout()
    unfolded = _UNFOLDED if sum(len(one.lines) for one in comparisons) < SHOWN_AT_FIRST else 0
    for at, comparison in enumerate(comparisons):
        for place, (title, charts) in enumerate(charts_of(comparison).items()):
            category = layout.category.add(title=title, closed=place > 0 or at >= unfolded)
            for chart_title, tags in charts.items():
                # TensorBoard takes the tags of a chart as regular expressions
                category.chart.add(title=chart_title).multiline.tag.extend(f"^{re.escape(tag)}$" for tag in tags)
    return layout


_FORMS = {"gap": "{:.2%}", "loss": "{:.4g}", "seconds": "{:.2f}"}

GUIDE = """\
Each comparison is a data set (and a table of its sweep); names of runs and charts begin with it.

* **CUSTOM SCALARS**: the methods side by side. Convex loss beside the true rank statistic while training; the final
  statistic of surrogates and exact stage as horizontal lines; precision among the first k of the
  list, where k is the step; best value and bound of the exact stage over time, and the gap between them.
* **HPARAMS**: a row for each method on each data set, with its options and final values. The left column filters and
  sorts.
* **PR CURVES**: precision against recall. Scores are ranks: 1 at the top of the list, 0 at the bottom.
* **IMAGES**: ROC curves, ranked lists, and the figures of the report on a sweep. **TEXT**: the tables.

With several splits all values are means, and precision and recall are those of all their lists together. A split that
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
