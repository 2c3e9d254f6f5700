"""The overview of a run: charts, tables and pictures of its ranked lists before and after reranking."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from trainers.config import EXACT
from trainers.files import write_atomic
from trainers.loggers import RESULTS, Charts, Loggers, event_tag
from trainers.run.methods import Context, load_scores
from trainers.run.results import Results, markdown_tables
from trainers.tables import number
from trainers.task.measures import ranked_labels, statistic_of

_NEGATIVE, _POSITIVE = "#dfe3e8", "#b5341c"
_BEFORE, _AFTER, _CHANCE = "#5b6770", "#1f6fb2", "#9aa3ab"


def write_overview(context: Context, results: Results | None) -> None:
    """Write charts, table and pictures as a TensorBoard run of their own, and the pictures also as PNG files."""
    options = context.config.tracking
    figures = _figures(context) if results is not None and options.figures else {}
    for name, figure in figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png")
        write_atomic(context.run.path / f"ranked_list_{name}.png", picture.getvalue())
    # before the first result there is only the layout of the charts
    names = options.loggers if results is not None else [name for name in options.loggers if name == "tensorboard"]
    if not names:
        return
    with Loggers(names, context.run.path / RESULTS, context.config.name, RESULTS) as loggers:
        loggers.log_charts(chart_layout(context.reported, context.top, context.config.exact.statistic))
        for tag, text in {} if results is None else markdown_tables(results).items():
            loggers.log_text(f"results/{tag}", text)
        for name, figure in figures.items():
            loggers.log_figure(f"ranked_list/{name}", figure)
    for failure in loggers.failures:
        context.display.note(f"results: {failure}")


def _figures(context: Context) -> dict[str, Figure]:
    """Draw the lists of the training and test sets, where both stages are finished."""
    exact = context.config.exact
    base, after = (load_scores(context.run.method(name)) for name in (context.config.base, EXACT))
    if not exact.enabled or base is None or after is None or context.split.by_query:
        return {}
    threshold = base.train[context.reranked(base)].min()
    figures = {}
    for name, before, later, y in (
        ("training", base.train, after.train, context.split.train.y),
        ("test", base.test, after.test, context.split.test.y),
    ):
        reranked = int((before >= threshold).sum())
        orders = ranked_labels(before, y), ranked_labels(later, y)
        values = (statistic_of(before, y, exact.statistic), statistic_of(later, y, exact.statistic))
        figures[name] = ranked_list_figure(
            f"{name} set", *orders, reranked, base=context.config.base, statistic=exact.statistic, values=values,
            k=None if exact.top_k == "full" else min(int(exact.top_k), len(y)), share=float((y > 0).mean()),
        )  # fmt: skip
    return figures


def chart_layout(statistics: Sequence[str], top: str, on_list: str) -> Charts:
    """Return custom charts: the convex loss beside the first statistic, and incumbent and bound of the exact stage.

    The exact stage maximises `on_list` on the reranked list `top`.
    """
    first = statistics[0]
    beside = {
        "convex loss": _lines(["loss/convex"]),
        f"{first} on the training set": _lines([f"train/{first}"]),
        f"{first} on the test set": _lines([f"test/{first}"]),
    }
    exact = {
        f"{on_list} on the {top}: incumbent and bound (step = ms)": _lines(["exact/incumbent", "exact/bound"]),
        "relative gap (step = ms)": _lines(["exact/gap"]),
    }
    others = {
        f"{name} on the {part} set": _lines([f"{tag}/{name}"])
        for name in statistics[1:]
        for tag, part in (("train", "training"), ("test", "test"))
    }
    charts = {"Convex loss beside the rank statistic": beside, "Exact stage": exact}
    return charts | ({"Other statistics": others} if others else {})


def _lines(tags: Iterable[str]) -> list[object]:
    # TensorBoard takes the tags of a chart as regular expressions
    return ["Multiline", [f"^{re.escape(event_tag(tag))}$" for tag in tags]]


def ranked_list_figure(
    title: str,
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    reranked: int,
    *,
    base: str,
    statistic: str,
    values: tuple[float | None, float | None],
    k: int | None = None,
    share: float | None = None,
) -> Figure:
    """Draw a list in two orders, as strips of labels, and the positives that the first rows of each hold.

    The figure is small, its letters large: TensorBoard shows it a third of a page wide.

    Args:
        title: name of the list, such as "training set".
        before: labels from the top of the list, ordered by the base ranker, shape (n,).
        after: labels from the top of the list, ordered after reranking, shape (n,).
        reranked: number of reranked positions.
        base: name of the base ranker.
        statistic: name of the statistic.
        values: the statistic before and after, None where it is undefined.
        k: number of first rows whose positives are counted in the legend; None for none.
        share: share of positives in the whole set, for the line of an order by chance; None for no line.
    """
    figure = Figure(figsize=(6.4, 5.4), layout="constrained", dpi=110)
    FigureCanvasAgg(figure)
    strips, curve = figure.subplots(2, 1, height_ratios=[1.0, 1.9], sharex=True)
    shown = min(len(before), max(2 * reranked, 40))
    picture = np.stack([before[:shown], after[:shown]])
    colours, extent = ListedColormap([_NEGATIVE, _POSITIVE]), (0.5, shown + 0.5, 1.5, -0.5)
    strips.imshow(picture, aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest", extent=extent)
    strips.axhline(0.5, color="white", linewidth=4)
    strips.set_yticks([0, 1], [base.replace("_", "\n"), "reranked"], fontsize=11)
    strips.legend(
        handles=[Patch(color=_POSITIVE, label="positive"), Patch(color=_NEGATIVE, label="negative")],
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=11,
    )  # fmt: skip
    strips.tick_params(length=0)
    for side in strips.spines.values():
        side.set_visible(False)
    visited = np.arange(shown + 1)
    for labels, colour, name in zip((before, after), (_BEFORE, _AFTER), (base, "reranked"), strict=True):
        label = name if k is None else f"{name}: {np.sum(labels[:k] > 0)} in the first {k}"
        caught = np.cumsum([0, *labels[:shown]])
        curve.step(visited, caught, where="post", color=colour, label=label, linewidth=1.8)
    if share is not None:
        curve.plot([0, shown], [0, share * shown], color=_CHANCE, linewidth=1.2, linestyle=":", label="by chance")
    curve.set_xlabel("if you visit so many rows from the top ...", fontsize=11)
    curve.set_ylabel("... you catch so many positives", fontsize=11)
    curve.set_xlim(0.5, shown + 0.5)
    curve.set_ylim(bottom=0)
    curve.yaxis.set_major_locator(MaxNLocator(integer=True))
    curve.grid(alpha=0.25)
    curve.spines[["top", "right"]].set_visible(False)
    if reranked < shown:
        cut = {"color": "black", "linestyle": "--", "linewidth": 1.2}
        strips.axvline(reranked + 0.5, **cut)
        curve.axvline(reranked + 0.5, **cut, label=f"end of the reranked top {reranked}")
    curve.legend(loc="lower right", fontsize=10, edgecolor="none", framealpha=0.9)
    change = "" if None in values else f": {statistic} {number(values[0])} → {number(values[1])}"
    figure.suptitle(f"{title}{change}", fontsize=14)
    return figure
