"""A board's TensorBoard runs: one for each line of its comparisons, and an overview with the layout of the charts.

==============================================  ======================================================
tag, behind the comparison's name               value, step
==============================================  ======================================================
``loss``, ``train/dcg``, ``test/dcg``           while training; methods without steps draw a level line
``final/train/dcg``, ``final/test/dcg``, ...    the finished method's, a level line
``precision/train``, ``precision/test``         share of positives among the first k; the step is k
``incumbent``, ``bound``, ``gap``               the exact stage's; the step is the time in milliseconds
``precision and recall/train``, ``.../test``    for the items above a position
==============================================  ======================================================

Brackets in tags are square, see `trainers.loggers.event_tag`. The columns of the HPARAMS tab are parameters of the
lines and their final values, which are scalars under tags that all comparisons share, such as ``values/test/dcg``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from torch.utils.tensorboard.summary import custom_scalars
from torch.utils.tensorboard.writer import SummaryWriter

from trainers.board.comparisons import PARTS, Comparison, Line, Points, precision_curve, rank_scores, stairs
from trainers.loggers import event_tag
from trainers.report.pictures.drawing import NAMES

OVERVIEW = "overview"
"""Name of the TensorBoard run with the layout of the charts, the columns of HPARAMS and a guide."""
_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


def write_board(folder: Path, comparisons: Sequence[Comparison]) -> None:
    """Write all TensorBoard runs of a board."""
    for comparison in comparisons:
        for line in comparison.lines:
            name = "/".join(_UNSAFE.sub("_", part) for part in (comparison.name, line.name))
            with SummaryWriter(str(folder / name)) as writer:
                _write_line(writer, comparison, line)
    with SummaryWriter(str(folder / OVERVIEW)) as writer:
        events = writer._get_file_writer()
        summary = custom_scalars({})
        summary.value[0].tensor.string_val[0] = layout_of(comparisons).SerializeToString()
        events.add_summary(summary)
        events.add_summary(_columns_summary(comparisons))
        writer.add_text("guide", GUIDE)


def _write_line(writer: SummaryWriter, comparison: Comparison, line: Line) -> None:
    for tag, points in scalars_of(comparison, line).items():
        for step, value in points:
            writer.add_scalar(tag, value, step)
    for part, lists in line.ranked.items():
        labels, scores = rank_scores(lists)
        if 0 < labels.sum() < len(labels):
            # thresholds are multiples of 1/126: a score that rounding put just below one belongs to it
            raised = np.minimum(scores + 1e-9, 1.0)
            writer.add_pr_curve(tag_of(comparison, f"precision and recall/{part}"), labels, raised)
    if line.final:
        for tag, value in line.means.items():
            writer.add_scalar(f"{_METRICS}{tag}", value, 0)
        for summary in _row_summaries(line):
            writer._get_file_writer().add_summary(summary)


_METRICS = "values/"
_SHOWN = 5  # parameters that TensorBoard shows at first: those marked as differing, then by name
_PARAMETERS = ("data", "method", "K", "table", "run", "margin", "C", "base", "l2")  # the most important first


def _columns_summary(comparisons: Sequence[Comparison]) -> Summary:
    """Return the columns: parameters and metrics of all lines."""
    lines = [line for comparison in comparisons for line in comparison.lines]
    experiment = api_pb2.Experiment()
    known = {
        name: {line.parameters[name] for line in lines if name in line.parameters}
        for name in dict.fromkeys(name for line in lines for name in line.parameters)
    }
    first = [name for name in (*_PARAMETERS, *known) if len(known.get(name, ())) > 1]
    shown = list(dict.fromkeys(first))[:_SHOWN]
    for name, values in known.items():
        info = experiment.hparam_infos.add(name=name, differs=name in shown, type=api_pb2.DATA_TYPE_STRING)
        info.domain_discrete.extend(sorted(values))
    found = {tag for line in lines for tag in line.means}
    statistics = dict.fromkeys(comparison.statistic for comparison in comparisons)
    leading = [f"{part}/{statistic}" for statistic in statistics for part in reversed(PARTS)]
    order = [*leading, "gap", "bound", "seconds", "value", "loss"]  # TensorBoard shows five at first
    for tag in [tag for tag in order if tag in found] + sorted(found - set(order)):
        name = api_pb2.MetricName(tag=f"{_METRICS}{tag}")
        experiment.metric_infos.add(name=name, display_name=tag.replace("/", " "))
    return _summary(metadata.EXPERIMENT_TAG, HParamsPluginData(experiment=experiment))


def _row_summaries(line: Line) -> list[Summary]:
    """Return the row of a line, which TensorBoard takes for a session that started and ended."""
    start, end = SessionStartInfo(), SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
    for name, value in line.parameters.items():
        start.hparams[name].string_value = value
    return [
        _summary(metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=start)),
        _summary(metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=end)),
    ]


def _summary(tag: str, content: HParamsPluginData) -> Summary:
    value = Summary.Value(tag=tag, metadata=metadata.create_summary_metadata(content), tensor=metadata.NULL_TENSOR)
    return Summary(value=[value])


_UNFOLDED = 3
"""Comparisons whose charts are unfolded at first; TensorBoard loads what is unfolded."""


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
    final = {part: f"final {statistic}, {NAMES[part]}" for part in PARTS}
    first = {part: f"precision among the first k, {NAMES[part]}" for part in PARTS}
    charts = {
        "convex loss while training": ["loss"],
        **{f"{statistic} while training, {NAMES[part]}": [f"{part}/{statistic}"] for part in PARTS},
        **{final[part]: [f"final/{part}/{statistic}"] for part in PARTS},
        first["test"]: ["precision/test"],
        "exact stage: incumbent and bound (step = ms)": ["incumbent", "bound"],
        "exact stage: relative gap (step = ms)": ["gap"],
        first["train"]: ["precision/train"],
    }
    more = {f"final {name}, {NAMES[part]}": [f"final/{part}/{name}"] for name in others for part in PARTS}
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
    for at, comparison in enumerate(comparisons):
        for place, (title, charts) in enumerate(charts_of(comparison).items()):
            category = layout.category.add(title=title, closed=place > 0 or at >= _UNFOLDED)
            for chart_title, tags in charts.items():
                # TensorBoard takes the tags of a chart as regular expressions
                category.chart.add(title=chart_title).multiline.tag.extend(f"^{re.escape(tag)}$" for tag in tags)
    return layout


GUIDE = """\
**Begin with CUSTOM SCALARS.** Each comparison is a data set (and a table of its sweep); names of runs and charts begin
with it.

* **CUSTOM SCALARS**: the methods side by side. Convex loss beside the true rank statistic while training; the final
  statistic of surrogates and exact stage as horizontal lines; precision among the first k of the
  list, where k is the step; best value and bound of the exact stage over time, and the gap between them.
* **HPARAMS**: a row for each method on each data set, with its options and final values; filter and sort them on the
  left.
* **PR CURVES**: precision against recall. Scores are ranks: 1 at the top of the list, 0 at the bottom.

With several splits all values are means over them, but precision and recall are computed on all their lists together.
In a mean over time, a split that has ended counts with its last value.
"""
