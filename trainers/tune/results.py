"""What a search found: its trials, and the results of the best options."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.report.page import literal
from trainers.run.results import Results
from trainers.tables import number

if TYPE_CHECKING:
    import pandas as pd


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
        best: the tuned keys of the best trial; None without one.
        results: the results of the best options on the whole training set; None where the search was stopped.
        complete: whether the search and that run are finished.
    """

    name: str
    folder: Path
    statistic: str
    method: str
    trials: pd.DataFrame
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

    def __repr__(self) -> str:
        state = "" if self.complete else ", unfinished"
        best = "none has a value" if self.value is None else f"best {self.statistic} {number(self.value)}"
        return f"<Tuning {self.name!r}{state}: {len(self.trials)} trials of {self.method}, {best}>"

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
