"""A board's TensorBoard runs: one for each line, one for the tables and pictures of each comparison, and an overview.

TensorBoard gives its seven colours to runs in the order in which they begin. They are written in an order that gives a
method the colour it has in reports; where that takes a run that there is not, an empty one stands in, ``spare/1``.

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
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.metrics import auc, roc_curve
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo
from torch.utils.tensorboard.summary import custom_scalars
from torch.utils.tensorboard.writer import SummaryWriter

from ltr.display.pictures import FAINT, GREY, METHODS, SMALL, TITLE, WIDTH, shortened
from trainers.board.comparisons import PARTS, Comparison, Line, Points, precision_curve, rank_scores, stairs
from trainers.config import EXACT
from trainers.loggers import event_tag
from trainers.report.pictures.drawing import NAMES, places
from trainers.tables import NOTHING_PROVEN, markdown_table, number

OVERVIEW = "overview"
"""Name of the TensorBoard run of layout, columns, tables and pictures."""

RESULTS = "results"
"""Name of the TensorBoard run of a comparison's tables and pictures, behind the comparison's."""

SHOWN_AT_FIRST = 40
"""TensorBoard shows no run at first where there are more."""
_MORE_OF_EXACT = (3, 4, 5, 0, 2, 6)
"""Places of the colours of further lines of the exact stage, in the order of preference: light blue first."""
_UNSAFE = re.compile(r'[<>:"/\\|?*\x00-\x1f]')


def colours_of(lines: Sequence[Line]) -> dict[str, int]:
    """Return the place of each line among TensorBoard's colours, by name: that of its method in reports if it is free.

    Each line of the exact stage has a colour that it shares with no other line, as long as there are enough.
    """
    methods = {line.name: str(line.parameters["method"]) for line in lines}
    wanted = {name: places([method])[method] for name, method in methods.items()}
    count = len(METHODS)
    by_others = Counter(wanted[name] % count for name, method in methods.items() if method != EXACT)
    found: dict[str, int] = {}
    for name in (name for name, method in methods.items() if method == EXACT):
        first = [wanted[name], *_MORE_OF_EXACT]
        found[name] = min(
            first, key=lambda place: (place in found.values(), place != wanted[name] and by_others[place])
        )
    free = [place for place in range(count) if place not in found.values()] or list(range(count))
    others = sorted(set(wanted) - set(found), key=lambda name: (wanted[name] % count not in free, wanted[name]))
    for name in others:
        used = Counter(found.values())
        own = wanted[name] % count
        found[name] = own if own in free and not used[own] else min(free, key=lambda place: used[place])
    return found


TensorBoardRun = tuple[str, Comparison | None, Line | None]
"""Name, comparison and line of a TensorBoard run; without a line, it has the comparison's results."""


def runs_of(comparisons: Sequence[Comparison]) -> list[TensorBoardRun]:
    """Return the TensorBoard runs in order.

    Empty runs are left out where TensorBoard would show no run at first with them. Then some colours differ.
    """
    runs = _in_order(comparisons, spares=True)
    compact = _in_order(comparisons, spares=False)
    return compact if len(compact) <= SHOWN_AT_FIRST < len(runs) else runs


def _in_order(comparisons: Sequence[Comparison], *, spares: bool) -> list[TensorBoardRun]:
    waiting: dict[int, deque[tuple[Comparison, Line]]] = {place: deque() for place in range(len(METHODS))}
    for comparison in comparisons:
        colours = colours_of(comparison.lines)
        for line in comparison.lines:
            waiting[colours[line.name]].append((comparison, line))
    results, spare, found = deque(comparisons), 0, list[TensorBoardRun]()

    def add(comparison: Comparison, line: Line | None = None) -> None:
        parts = (_UNSAFE.sub("_", name) for name in (comparison.name, RESULTS if line is None else line.name))
        found.append(("/".join(parts), comparison, line))

    while any(waiting.values()):
        if lines := waiting[len(found) % len(METHODS)]:
            add(*lines.popleft())
        elif results:
            add(results.popleft())
        elif spares:
            spare += 1
            found.append((f"spare/{spare}", None, None))
        else:
            add(*max(waiting.values(), key=len).popleft())
    for comparison in results:
        add(comparison)
    return [*found, (OVERVIEW, None, None)]


def write_board(folder: Path, comparisons: Sequence[Comparison], pictures: Mapping[str, Figure]) -> int:
    """Write all TensorBoard runs of a board, with the pictures of reports by tag, and return their number."""
    runs = runs_of(comparisons)
    for name, comparison, line in runs:
        with SummaryWriter(str(folder / name)) as writer:
            if comparison is not None and line is not None:
                _write_line(writer, comparison, line)
            elif comparison is not None:
                _write_results(writer, comparison)
            elif name == OVERVIEW:
                _write_overview(writer, comparisons, pictures, len(runs))
    return len(runs)


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


def _write_results(writer: SummaryWriter, comparison: Comparison) -> None:
    for name, text in tables_of(comparison).items():
        writer.add_text(tag_of(comparison, name), text)
    for part in PARTS:
        if (figure := roc_figure(comparison, part)) is not None:
            writer.add_figure(tag_of(comparison, f"ROC curves/{part}"), figure, close=False)
    for name, image in comparison.images.items():
        writer.add_image(tag_of(comparison, name), image[..., :3], dataformats="HWC")


def _write_overview(
    writer: SummaryWriter, comparisons: Sequence[Comparison], pictures: Mapping[str, Figure], runs: int
) -> None:
    events = writer._get_file_writer()
    summary = custom_scalars({})
    summary.value[0].tensor.string_val[0] = layout_of(comparisons, runs).SerializeToString()
    events.add_summary(summary)
    events.add_summary(_columns_summary(comparisons))
    writer.add_text("guide", GUIDE)
    for tag, figure in pictures.items():
        writer.add_figure(tag, figure, close=False)


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


def roc_figure(comparison: Comparison, part: str) -> Figure | None:
    """Draw the ROC curves of all lines, with several splits those of their lists together; None without a list."""
    figure = Figure(figsize=(WIDTH, WIDTH), layout="constrained", dpi=144)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    colours, drawn = colours_of(comparison.lines), Counter[int]()
    for line in comparison.lines:
        labels, scores = rank_scores(line.ranked.get(part, ()))
        if not 0 < labels.sum() < len(labels):
            continue
        false, true, _ = roc_curve(labels, scores)
        place = colours[line.name]
        style = ("-", "--", ":", "-.")[drawn[place] % 4]  # of lines of one colour
        drawn[place] += 1
        label = f"{shortened(line.name, 40)} ({auc(false, true):.3f})"
        width = 2.4 if line.parameters.get("method") == EXACT else 1.2
        axes.plot(false, true, label=label, linewidth=width, color=METHODS[place], linestyle=style)
    if not axes.lines:
        return None
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="-")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_xlabel("false positive rate", fontsize=SMALL)
    axes.set_ylabel("true positive rate", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    axes.grid(color=FAINT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right", fontsize=SMALL - 1, title="method (area)", title_fontsize=SMALL - 1)
    axes.set_title(f"{shortened(comparison.name, 30)}: ROC, {NAMES[part]}", fontsize=TITLE, parse_math=False)
    return figure


_UNFOLDED = 3
"""Comparisons whose charts are unfolded at first, where the runs are shown; TensorBoard loads what is unfolded."""


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


def layout_of(comparisons: Sequence[Comparison], runs: int) -> layout_pb2.Layout:
    """Return the charts of the CUSTOM SCALARS tab of a board with this many TensorBoard runs."""
    layout = layout_pb2.Layout()
    unfolded = _UNFOLDED if runs <= SHOWN_AT_FIRST else 0
    for at, comparison in enumerate(comparisons):
        for place, (title, charts) in enumerate(charts_of(comparison).items()):
            category = layout.category.add(title=title, closed=place > 0 or at >= unfolded)
            for chart_title, tags in charts.items():
                # TensorBoard takes the tags of a chart as regular expressions
                category.chart.add(title=chart_title).multiline.tag.extend(f"^{re.escape(tag)}$" for tag in tags)
    return layout


_FORMS = {"gap": "{:.2%}", "loss": "{:.4g}", "seconds": "{:.2f}"}

GUIDE = """\
**Begin with CUSTOM SCALARS.** Each comparison is a data set (and a table of its sweep); names of runs and charts begin
with it. A method has the same colour on every data set, as in reports; the exact stage is blue. Runs named `spare` are
empty and only keep the colours in step.

* **CUSTOM SCALARS**: the methods side by side. Convex loss beside the true rank statistic while training; the final
  statistic of surrogates and exact stage as horizontal lines; precision among the first k of the
  list, where k is the step; best value and bound of the exact stage over time, and the gap between them.
* **HPARAMS**: a row for each method on each data set, with its options and final values; filter and sort them on the
  left.
* **PR CURVES**: precision against recall. Scores are ranks: 1 at the top of the list, 0 at the bottom.
* **IMAGES**: ROC curves, ranked lists, and the figures of the report on a sweep. **TEXT**: the tables.

With several splits all values are means over them, but precision and recall are computed on all their lists together.
In a mean over time, a split that has ended counts with its last value.
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
    known, mean, form = line.known(tag), line.means.get(tag), _FORMS.get(tag)
    text = number(mean, form)
    if len(known) > 1:
        form = form or "{:.3f}"
        text = f"{number(mean, form)} ± {number(float(known.std(ddof=1)), form)}"
    if tag == "gap" and line.unproven:
        splits = len(line.final[tag])
        text += f" ({NOTHING_PROVEN}{'' if line.unproven == splits else f' in {line.unproven} of {splits}'})"
    return text
