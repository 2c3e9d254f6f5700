"""The trials of a search compared: frames, a picture, a report, and the results of the best options."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from trainers.files import write_atomic
from trainers.report.page import Block, Page, Picture, Section, Table, Text, literal, png, to_html, to_markdown
from trainers.report.pictures.drawing import legend, panels
from trainers.run.results import Results
from trainers.tables import markdown_table, number

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 10  # trials in tables other than that of the report's details
_DONE, _BEST = "#8a94a0", "#1f6fb2"


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """What a search found.

    Attributes:
        name: name of the search; also its folder under runs/.
        folder: its folder; without a folder of its own, a temporary one that lives as long as this object.
        statistic: name of the statistic that was maximised.
        method: the method whose statistic counts.
        trials: a pandas frame with a row for each trial: ``value``, the mean over the inner splits, ``lowest`` and
            ``highest`` of them, ``seconds``, the tuned keys (missing where they did not concern the trial), and
            ``message``, why a trial failed.
        importance: share of each key in the variance of the values, the largest first; empty with few trials.
        best: the tuned keys of the best trial; None without one.
        results: the results of the best options on the whole training set; None where the search was stopped.
        complete: whether the search and that run are finished.
    """

    name: str
    folder: Path
    statistic: str
    method: str
    trials: pd.DataFrame
    importance: Mapping[str, float]
    best: dict[str, Any] | None
    complete: bool
    results: Results | None = None

    @property
    def value(self) -> float | None:
        """Value of the best trial: the mean of the statistic over the inner splits; None without one."""
        best = self.trials["value"].max()
        return None if math.isnan(best) else float(best)

    @property
    def config(self) -> Path:
        """The best options as a config file, which ``ltr run`` takes."""
        return self.folder / "best.toml"

    def plot(self) -> Figure:
        """Draw the value by trial, and the importance of the tuned keys."""
        values = self.trials["value"].dropna()
        figure, (left, *others) = panels(
            [f"{self.statistic} on inner splits, by trial", *(["importance of the keys"] if self.importance else [])],
            height=2.1,
        )
        for trial, row in self.trials.loc[values.index].iterrows():
            left.plot([trial, trial], [row["lowest"], row["highest"]], color="#d5dade", linewidth=1.5, zorder=1)
        left.plot(values.index, values, "o", color=_DONE, markersize=3.5, label="mean over inner splits")
        left.step(values.index, values.cummax(), where="post", color=_BEST, linewidth=1.5, label="best so far")
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_xlabel("trial", fontsize=8)
        legend(figure, left.get_legend_handles_labels()[0])
        for axes in others:
            keys = list(self.importance)[::-1]
            axes.barh(range(len(keys)), [self.importance[key] for key in keys], color=_BEST, height=0.6)
            axes.set_yticks(range(len(keys)), keys)
            axes.set_xlim(0, 1)
            axes.set_xlabel("share of the variance", fontsize=8)
        return figure

    def __repr__(self) -> str:
        state = "" if self.complete else ", unfinished"
        best = "none has a value" if self.value is None else f"best {self.statistic} {number(self.value)}"
        return f"<Tuning {self.name!r}{state}: {len(self.trials)} trials of {self.method}, {best}>"

    def _repr_html_(self) -> str:
        html = MarkdownIt("commonmark", {"html": False}).enable("table")
        header, rows = self.table(_SHOWN)
        return html.render(f"{self.answer}\n\n{markdown_table(header, rows, left=1)}")

    @property
    def answer(self) -> str:
        """What was found, in one sentence of Markdown."""
        if self.best is None:
            return "No trial has a value."
        options = ", ".join(f"`{key}` = {shown_value(value)}" for key, value in self.best.items())
        first = self.trials["value"].dropna()
        text = f"**Best of {len(self.trials)} trials** (trial {first.idxmax()}): {options}."
        text += f" Its mean {literal(self.statistic)} on the inner splits is {number(self.value)}"
        return f"{text}; trial {first.index[0]} has {number(first.iloc[0])}." if len(first) > 1 else f"{text}."

    def table(self, most: int | None = None) -> tuple[list[str], list[list[str]]]:
        """Return headings and cells of a table of the trials, the best first; at most `most` of them."""
        frame = self.trials.sort_values("value", ascending=False, kind="stable")
        frame = frame if most is None else frame.head(most)
        keys = [name for name in frame if name not in ("value", "lowest", "highest", "seconds", "message")]
        header = ["trial", self.statistic, "lowest", "highest", *keys, "seconds"]
        rows = [
            [str(trial), *(number(row[name]) for name in ("value", "lowest", "highest"))]
            + [shown_value(row[key]) for key in keys]
            + [number(row["seconds"], "{:.1f}")]
            for trial, row in zip(frame.index, frame.astype(object).to_dict("records"), strict=True)
        ]
        return header, rows


def shown_value(value: Any) -> str:  # noqa: ANN401  (a value of any key)
    """Return the text of a value in a table; empty for a missing one.

    Examples:
        >>> shown_value(0.012345), shown_value(["hinge"]), shown_value("full"), shown_value(50)
        ('0.01235', 'hinge', 'full', '50')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def write_tuning(tuning: Tuning) -> None:
    """Write trials.csv, and the report as Markdown and HTML, into the folder of a search."""
    folder = tuning.folder
    write_atomic(folder / "trials.csv", tuning.trials.to_csv(lineterminator="\n").encode())
    caption = "One point is a trial; its line goes from the lowest to the highest value on an inner split."
    pictures = [Picture("trials", tuning.plot(), caption)] if tuning.value is not None else []
    header, rows = tuning.table(_SHOWN)
    names = [literal(heading) for heading in header]
    what = f"Mean {literal(tuning.statistic)} of {literal(tuning.method)} on inner splits of the training set; "
    what += "the test set takes no part in the choice."
    summary: list[Block] = [Text(tuning.answer), *pictures, Table(names, rows, what)]
    sections = []
    if tuning.results is not None:
        names_of = tuning.results.statistics
        first = tuning.statistic if tuning.statistic in names_of else names_of[0]
        final = [
            [literal(row.method), number(row.train.get(first)), number(row.test.get(first)), row.ending]
            for row in tuning.results.rows
        ]
        heading = ["method", f"train {literal(first)}", f"test {literal(first)}", "status"]
        note = "The best options, fitted on the whole training set."
        sections.append(Section("The best options on the test set", [Table(heading, final, note)]))
    if tuning.importance:
        shares = [[f"`{key}`", f"{share:.1%}"] for key, share in tuning.importance.items()]
        note = "Share of each key in the variance of the values over the ranges (fANOVA)."
        sections.append(Section("Importance of the keys", [Table(["key", "share"], shares, note)]))
    if len(tuning.trials) > _SHOWN:
        sections.append(Section("All trials", [Table(names, tuning.table()[1])]))
    failed = [[str(trial), literal(" ".join(text.split()))] for trial, text in tuning.trials["message"].items() if text]
    if failed:
        sections.append(Section("Trials that failed", [Table(["trial", "reason"], failed, left=2)]))
    page = Page(f"Search {literal(tuning.name)}", summary, sections)
    images = {picture: png(picture) for picture in pictures}
    paths = {picture: f"figures/{picture.name}.png" for picture in pictures}
    (folder / "figures").mkdir(exist_ok=True)
    for picture, data in images.items():
        write_atomic(folder / paths[picture], data)
    write_atomic(folder / "report.html", to_html(page, images).encode())
    write_atomic(folder / "report.md", to_markdown(page, paths).encode())
