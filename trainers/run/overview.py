"""The overview of a run: charts, tables and pictures of its ranked lists before and after reranking."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ltr.pictures import FAINT, GREY, INK, NEGATIVE, POSITIVE, RERANKED, SMALL, TITLE, WIDTH, fonts, shortened
from trainers.config import EXACT
from trainers.files import write_atomic
from trainers.loggers import RESULTS, Charts, Loggers, event_tag
from trainers.run.methods import Context, load_scores
from trainers.run.results import Results, markdown_tables
from trainers.tables import number
from trainers.task.measures import ranked_labels, statistic_of

_LETTERS = 48  # of a title or an entry of the legend


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
    with fonts():
        figure = Figure(figsize=(WIDTH, 5.4), layout="constrained", dpi=144)
        FigureCanvasAgg(figure)
        strips, curve = figure.subplots(2, 1, height_ratios=[1.0, 2.2], sharex=True)
        shown = min(len(before), max(2 * reranked, 40))
        _draw_strips(strips, np.stack([before[:shown], after[:shown]]), base)
        for labels, colour, name, width in ((before, INK, base, 1.4), (after, RERANKED, "reranked", 2.0)):
            hits = "" if k is None else f": {np.sum(labels[:k] > 0)} in the first {k}"
            caught = np.cumsum([0, *labels[:shown]])
            label = shortened(name, _LETTERS - len(hits)) + hits
            curve.step(np.arange(shown + 1), caught, where="post", color=colour, label=label, linewidth=width)
        if share is not None:
            chance = {"color": GREY, "linewidth": 1.2, "linestyle": ":", "label": "by chance"}
            curve.plot([0, shown], [0, share * shown], **chance)
        curve.set_xlabel("if you visit so many rows from the top ...", fontsize=SMALL)
        curve.set_ylabel("... you catch so many positives", fontsize=SMALL)
        curve.tick_params(labelsize=SMALL)
        curve.set_xlim(0.5, shown + 0.5)
        curve.set_ylim(bottom=0)
        for axis in (curve.xaxis, curve.yaxis):
            axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
        curve.grid(color=FAINT)
        curve.spines[["top", "right"]].set_visible(False)
        if reranked < shown:
            cut = {"color": INK, "linestyle": "--", "linewidth": 1.0}
            strips.axvline(reranked + 0.5, **cut)
            curve.axvline(reranked + 0.5, **cut, label=f"end of the reranked top {reranked}")
        figure.legend(
            handles=curve.get_legend_handles_labels()[0], loc="outside lower center", fontsize=SMALL, frameon=False
        )
        change = "" if None in values else f"\n{statistic} {number(values[0])} → {number(values[1])}"
        figure.suptitle(f"{shortened(title, _LETTERS)}{change}", fontsize=TITLE, parse_math=False)
    return figure


def _draw_strips(axes: Axes, labels: NDArray[np.int64], base: str) -> None:
    """Draw labels in the base ranker's order and after reranking, shape (2, n), as two strips."""
    colours, extent = ListedColormap([NEGATIVE, POSITIVE]), (0.5, labels.shape[1] + 0.5, 1.5, -0.5)
    axes.imshow(labels, aspect="auto", cmap=colours, vmin=0, vmax=1, interpolation="nearest", extent=extent)
    axes.axhline(0.5, color="white", linewidth=4)
    name = textwrap.fill(shortened(base, 30).replace("_", " "), 12)
    axes.set_yticks([0, 1], [name, "reranked"], fontsize=SMALL, parse_math=False)
    entries = [Patch(color=POSITIVE, label="positive"), Patch(color=NEGATIVE, label="negative")]
    axes.legend(
        handles=entries, ncols=2, frameon=False, fontsize=SMALL, loc="lower center", bbox_to_anchor=(0.5, 1.0)
    )  # fmt: skip
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
