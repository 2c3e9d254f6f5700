"""Pictures of a board: ROC curves of all methods of a comparison."""

from __future__ import annotations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.metrics import auc, roc_curve

from trainers.board.lines import Comparison, rank_scores
from trainers.config import EXACT

__all__ = ["roc_figure"]

_COLOURS = (
    "#1f6fb2",
    "#d1495b",
    "#2e8b57",
    "#8f5aa8",
    "#c77d0a",
    "#35a7a7",
    "#7a5c3e",
    "#5b6770",
    "#c45ab3",
    "#6a7f10",
)
_STYLES = ("-", "--", ":", "-.")


def roc_figure(comparison: Comparison, half: str) -> Figure | None:
    """The ROC curves of all lines, of several splits that of their lists together; None without a list.

    Args:
        comparison: the methods.
        half: ``"train"`` or ``"test"``.
    """
    figure = Figure(figsize=(5.6, 5.6), dpi=110)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.13, 0.11, 0.84, 0.81))
    for line in comparison.lines:
        if not line.ranked.get(half):
            continue
        labels, scores = rank_scores(line.ranked[half])
        if not 0 < labels.sum() < len(labels):
            continue
        false, true, _ = roc_curve(labels, scores)
        number = len(axes.lines)
        colour, style = _COLOURS[number % len(_COLOURS)], _STYLES[number // len(_COLOURS) % len(_STYLES)]
        label = f"{line.name} ({auc(false, true):.3f})"
        width = 2.4 if line.parameters.get("method") == EXACT else 1.2
        axes.plot(false, true, label=label, linewidth=width, color=colour, linestyle=style)
    if not axes.lines:
        return None
    axes.plot([0, 1], [0, 1], color="#9aa3ab", linewidth=0.8)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("false positive rate", fontsize=12)
    axes.set_ylabel("true positive rate", fontsize=12)
    axes.tick_params(labelsize=11)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right", fontsize=9, title="method (area)", title_fontsize=9)
    axes.set_title(f"{comparison.name}: ROC, {'training' if half == 'train' else 'test'} half", fontsize=13)
    return figure
