"""Pictures of ranked lists: where the positives stand before and after reranking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from trainers.results import number

__all__ = ["RankedList", "ranked_list_figure"]

_NEGATIVE, _POSITIVE = "#dfe3e8", "#b5341c"
_BEFORE, _AFTER = "#5b6770", "#1f6fb2"


@dataclass(frozen=True)
class RankedList:
    """One list in two orders.

    Attributes:
        title: what list it is, such as "training half".
        before: labels from the top of the list, ordered by the base ranker, shape (n,).
        after: labels from the top of the list, ordered after reranking, shape (n,).
        reranked: how many positions were reranked.
    """

    title: str
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    reranked: int


def ranked_list_figure(
    ranked: RankedList, *, base: str, statistic: str, values: tuple[float | None, float | None]
) -> Figure:
    """Two strips of labels, before and after reranking, and the positives found down to each position.

    The figure is small, its letters large: TensorBoard shows it a third of a page wide.

    Args:
        ranked: the list.
        base: name of the base ranker.
        statistic: name of the statistic.
        values: of the statistic before and after.
    """
    figure = Figure(figsize=(6.4, 5.4), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    strips, curve = figure.subplots(2, 1, height_ratios=[1.0, 1.9], sharex=True)
    shown = min(len(ranked.before), max(2 * ranked.reranked, 40))
    _draw_strips(strips, ranked, shown, base)
    _draw_curves(curve, ranked, shown, base)
    before, after = values
    change = "" if before is None or after is None else f": {statistic} {number(before)} → {number(after)}"
    figure.suptitle(f"{ranked.title}{change}", fontsize=14)
    return figure


def _draw_strips(axes: Any, ranked: RankedList, shown: int, base: str) -> None:  # noqa: ANN401
    colours = ListedColormap([_NEGATIVE, _POSITIVE])
    picture = np.stack([ranked.before[:shown], ranked.after[:shown]])
    axes.imshow(
        picture,
        aspect="auto",
        cmap=colours,
        vmin=0,
        vmax=1,
        interpolation="nearest",
        extent=(-0.5, shown - 0.5, 1.5, -0.5),
    )
    axes.axhline(0.5, color="white", linewidth=4)
    axes.set_yticks([0, 1], [base.replace("_", "\n"), "reranked"], fontsize=11)
    axes.legend(
        handles=[Patch(color=_POSITIVE, label="positive"), Patch(color=_NEGATIVE, label="negative")],
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=11,
    )  # fmt: skip
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    _mark_cut(axes, ranked, shown)


def _draw_curves(axes: Any, ranked: RankedList, shown: int, base: str) -> None:  # noqa: ANN401
    positions = np.arange(shown)
    for labels, colour, name in ((ranked.before, _BEFORE, base), (ranked.after, _AFTER, "reranked")):
        axes.step(positions, np.cumsum(labels[:shown]), where="mid", color=colour, label=name, linewidth=1.8)
    axes.set_xlabel("position (0 is the top of the list)", fontsize=11)
    axes.set_ylabel("positives down to here", fontsize=11)
    axes.set_xlim(-0.5, shown - 0.5)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    _mark_cut(axes, ranked, shown, label=f"end of the reranked top {ranked.reranked}")
    axes.legend(frameon=False, loc="lower right", fontsize=11)


def _mark_cut(axes: Any, ranked: RankedList, shown: int, label: str | None = None) -> None:  # noqa: ANN401
    if ranked.reranked < shown:
        axes.axvline(ranked.reranked - 0.5, color="black", linestyle="--", linewidth=1.2, label=label)
