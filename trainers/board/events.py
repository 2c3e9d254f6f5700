"""Writing a board's TensorBoard runs: one a line, and one for what belongs to no line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from torch.utils.tensorboard.summary import custom_scalars
from torch.utils.tensorboard.writer import SummaryWriter

from trainers.board.figures import roc_figure
from trainers.board.hparams import columns_summary, metrics_of, row_summaries
from trainers.board.layout import layout_of, scalars_of, tag_of
from trainers.board.lines import HALVES, Comparison, Line, rank_scores
from trainers.board.tables import GUIDE, tables_of
from trainers.config import EXACT

__all__ = ["OVERVIEW", "write_comparison", "write_overview"]

OVERVIEW = "overview"
"""The TensorBoard run of layout, columns, tables and pictures."""

_COLOURS = 7
_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


def write_comparison(folder: Path, comparison: Comparison) -> None:
    """Write a TensorBoard run for each line of a comparison.

    Args:
        folder: of the board.
        comparison: what to write.
    """
    for line in _by_colour(comparison.lines):
        with SummaryWriter(str(folder / _file_name(comparison.name) / _file_name(line.name))) as writer:
            _write_line(writer, comparison, line)


def _by_colour(lines: Sequence[Line]) -> list[Line]:
    """The lines in the order of their colours: TensorBoard has seven, which it gives to runs as they begin.

    Of eight to fourteen lines those in the middle have one of their own, which the exact stage takes.
    """
    exact = [line for line in lines if line.parameters.get("method") == EXACT]
    others = [line for line in lines if line not in exact]
    before = max(0, len(lines) - _COLOURS)
    return [*others[:before], *exact, *others[before:]]


def _file_name(name: str) -> str:
    return _UNSAFE.sub("_", name)


def _write_line(writer: SummaryWriter, comparison: Comparison, line: Line) -> None:
    for tag, points in scalars_of(comparison, line).items():
        for step, value in points:
            writer.add_scalar(tag, value, step)
    for half, lists in line.ranked.items():
        labels, scores = rank_scores(lists)
        if 0 < labels.sum() < len(labels):
            # thresholds are multiples of 1/126: a score that rounding put just below one belongs to it
            raised = np.minimum(scores + 1e-9, 1.0)
            writer.add_pr_curve(tag_of(comparison, f"precision and recall/{half}"), labels, raised)
    if line.final:
        for tag, value in metrics_of(line).items():
            writer.add_scalar(tag, value, 0)
        for summary in row_summaries(line):
            writer._get_file_writer().add_summary(summary)


def write_overview(folder: Path, comparisons: Sequence[Comparison], pictures: Mapping[str, Figure]) -> None:
    """Write the TensorBoard run that belongs to no line.

    Args:
        folder: of the board.
        comparisons: all of them.
        pictures: further pictures by tag.
    """
    with SummaryWriter(str(folder / OVERVIEW)) as writer:
        events = writer._get_file_writer()
        summary = custom_scalars({})
        summary.value[0].tensor.string_val[0] = layout_of(comparisons).SerializeToString()
        events.add_summary(summary)
        events.add_summary(columns_summary(comparisons))
        writer.add_text("guide", GUIDE)
        for comparison in comparisons:
            for name, text in tables_of(comparison).items():
                writer.add_text(tag_of(comparison, name), text)
            for half in HALVES:
                if (figure := roc_figure(comparison, half)) is not None:
                    writer.add_figure(tag_of(comparison, f"ROC curves/{half}"), figure, close=False)
            for name, image in comparison.images.items():
                writer.add_image(tag_of(comparison, name), image[..., :3], dataformats="HWC")
        for tag, figure in pictures.items():
            writer.add_figure(tag, figure, close=False)
