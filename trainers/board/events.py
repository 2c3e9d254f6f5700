"""A board's TensorBoard runs: one for each line, and one for charts, columns, tables and pictures.

The columns of the HPARAMS tab are parameters of the lines and their final values, which are scalars under tags that all
comparisons share, such as ``values/test/dcg``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from sklearn.metrics import auc, roc_curve
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from torch.utils.tensorboard.summary import custom_scalars
from torch.utils.tensorboard.writer import SummaryWriter

from trainers.board.layout import GUIDE, layout_of, scalars_of, tables_of, tag_of
from trainers.board.lines import PARTS, Comparison, Line, rank_scores
from trainers.config import EXACT

OVERVIEW = "overview"
"""Name of the TensorBoard run of layout, columns, tables and pictures."""

_COLOURS = 7
_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


def write_comparison(folder: Path, comparison: Comparison) -> None:
    """Write a TensorBoard run for each line of a comparison."""
    for line in _by_colour(comparison.lines):
        of_comparison, of_line = (_UNSAFE.sub("_", name) for name in (comparison.name, line.name))
        with SummaryWriter(str(folder / of_comparison / of_line)) as writer:
            _write_line(writer, comparison, line)


def _by_colour(lines: Sequence[Line]) -> list[Line]:
    """Return the lines in the order of their colours: TensorBoard gives seven to runs as they begin.

    With eight to fourteen lines those in the middle share theirs with no other: the exact stage is among them.
    """
    exact = [line for line in lines if line.parameters.get("method") == EXACT]
    others = [line for line in lines if line not in exact]
    before = max(0, len(lines) - _COLOURS)
    return [*others[:before], *exact, *others[before:]]


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
        for tag, value in _metrics_of(line).items():
            writer.add_scalar(tag, value, 0)
        for summary in _row_summaries(line):
            writer._get_file_writer().add_summary(summary)


def write_overview(folder: Path, comparisons: Sequence[Comparison], pictures: Mapping[str, Figure]) -> None:
    """Write the TensorBoard run that belongs to no line."""
    with SummaryWriter(str(folder / OVERVIEW)) as writer:
        events = writer._get_file_writer()
        summary = custom_scalars({})
        summary.value[0].tensor.string_val[0] = layout_of(comparisons).SerializeToString()
        events.add_summary(summary)
        events.add_summary(_columns_summary(comparisons))
        writer.add_text("guide", GUIDE)
        for comparison in comparisons:
            for name, text in tables_of(comparison).items():
                writer.add_text(tag_of(comparison, name), text)
            for part in PARTS:
                if (figure := roc_figure(comparison, part)) is not None:
                    writer.add_figure(tag_of(comparison, f"ROC curves/{part}"), figure, close=False)
            for name, image in comparison.images.items():
                writer.add_image(tag_of(comparison, name), image[..., :3], dataformats="HWC")
        for tag, figure in pictures.items():
            writer.add_figure(tag, figure, close=False)


_METRICS = "values/"
_SHOWN = 5
"""Number of parameters that TensorBoard shows at first: those marked as differing, then by name."""
_PARAMETERS = ("data", "method", "K", "table", "run", "margin", "C", "base", "l2")
"""Parameters, the most important first."""


def _metrics_of(line: Line) -> dict[str, float]:
    """Return the final values of a line by the tags that all comparisons share."""
    return {f"{_METRICS}{tag}": value for tag, value in line.means.items()}


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
        info = experiment.hparam_infos.add(name=name, differs=name in shown, type=api_pb2.DATA_TYPE_FLOAT64)
        if any(isinstance(value, str) for value in values):
            info.type = api_pb2.DATA_TYPE_STRING
            info.domain_discrete.extend(sorted(map(str, values)))
    for tag in _ordered_metrics(comparisons):
        name = tag.removeprefix(_METRICS).replace("/", " ")
        experiment.metric_infos.add(name=api_pb2.MetricName(tag=tag), display_name=name)
    return _summary(metadata.EXPERIMENT_TAG, HParamsPluginData(experiment=experiment))


def _ordered_metrics(comparisons: Sequence[Comparison]) -> list[str]:
    """Return all metrics, the most important first: TensorBoard shows five at first."""
    found = {tag for comparison in comparisons for line in comparison.lines for tag in _metrics_of(line)}
    statistics = dict.fromkeys(comparison.statistic for comparison in comparisons)
    leading = [f"{part}/{statistic}" for statistic in statistics for part in reversed(PARTS)]
    order = [f"{_METRICS}{what}" for what in (*leading, "gap", "bound", "seconds", "value", "loss")]
    return [tag for tag in order if tag in found] + sorted(found - set(order))


def _row_summaries(line: Line) -> list[Summary]:
    """Return the row of a line, which TensorBoard takes for a session that started and ended."""
    start, end = SessionStartInfo(), SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
    for name, value in line.parameters.items():
        if isinstance(value, str):
            start.hparams[name].string_value = value
        else:
            start.hparams[name].number_value = value
    return [
        _summary(metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=start)),
        _summary(metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=end)),
    ]


def _summary(tag: str, content: HParamsPluginData) -> Summary:
    value = Summary.Value(tag=tag, metadata=metadata.create_summary_metadata(content), tensor=metadata.NULL_TENSOR)
    return Summary(value=[value])


def roc_figure(comparison: Comparison, part: str) -> Figure | None:
    """Draw the ROC curves of all lines, with several splits those of their lists together; None without a list."""
    figure = Figure(figsize=(5.6, 5.6), dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.13, 0.11, 0.84, 0.81))
    axes.set_prop_cycle(cycler(linestyle=["-", "--", ":", "-."]) * cycler(color=matplotlib.color_sequences["tab10"]))
    for line in comparison.lines:
        labels, scores = rank_scores(line.ranked.get(part, ()))
        if not 0 < labels.sum() < len(labels):
            continue
        false, true, _ = roc_curve(labels, scores)
        label = f"{line.name} ({auc(false, true):.3f})"
        width = 2.4 if line.parameters.get("method") == EXACT else 1.2
        axes.plot(false, true, label=label, linewidth=width)
    if not axes.lines:
        return None
    axes.plot([0, 1], [0, 1], color="#9aa3ab", linewidth=0.8, linestyle="-")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("false positive rate", fontsize=12)
    axes.set_ylabel("true positive rate", fontsize=12)
    axes.tick_params(labelsize=11)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right", fontsize=9, title="method (area)", title_fontsize=9)
    axes.set_title(f"{comparison.name}: ROC, {'training' if part == 'train' else 'test'} set", fontsize=13)
    return figure
