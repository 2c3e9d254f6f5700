"""What Python makes of a finished run: frames of its curves and ranked rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from ltr.rankers import Ranker
from trainers.config import CARD, EXACT
from trainers.files import reading
from trainers.loggers import FINAL
from trainers.run.folder import RunFolder
from trainers.run.tracking import read_log
from trainers.task.measures import Task
from trainers.task.raw import test_rows


@dataclass(frozen=True, eq=False)
class RunSource:
    """What the frames of a run are made from."""

    run: RunFolder  # its folder
    task: Task  # its options and data


def curves(run: RunFolder, steps: Mapping[str, int | None]) -> pd.DataFrame:
    """Return the logged values of methods with steps, one row for each method and step, one column for each tag."""
    rows = []
    for method, count in steps.items():
        if method == EXACT or count is None:  # its steps are milliseconds; methods without steps have level lines
            continue
        log = run.method(method).log
        with reading(log):
            rows += [
                {"method": method, "step": entry["step"], **entry["values"]}
                for entry in read_log(log)
                if not any(tag.startswith(FINAL) for tag in entry["values"])
            ]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=["method", "step"])


def ranked(source: RunSource, method: str, ranker: Ranker) -> pd.DataFrame:
    """Return the rows of the test set from the top down as a method ranks them, with the columns of the data."""
    task, split = source.task, source.task.split
    rows, test = test_rows(task.config.data, split), split.test
    if method == CARD:
        found = ranker.rank(rows.reset_index(drop=True))
    else:
        ids = test.qid
        if split.tables is not None and (queries := split.tables[1].queries) is not None:
            ids = queries[test.rows]
        found = ranker.rank(task.rows_of(test), ids)
    order = found.index.to_numpy()
    own = rows.iloc[order].drop(columns=task.config.data.query or [])
    taken = {name: f"{name} (data)" for name in own if name in found}
    found.index = own.index
    return pd.concat([found, own.rename(columns=taken)], axis=1)
