"""The overview of a run: charts, tables and pictures of its ranked lists before and after reranking."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure

from ltr.display.figures import ranked_list_figure
from trainers.config import EXACT
from trainers.files import write_atomic
from trainers.loggers import RESULTS, Charts, Loggers, event_tag
from trainers.run.methods import Context, load_base_scores, load_scores
from trainers.run.results import Results, markdown_tables
from trainers.task.measures import ranked_labels, statistic_of


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
    base, after = load_base_scores(context.run, context.config.base), load_scores(context.run.method(EXACT))
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
