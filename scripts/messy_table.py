"""Make a messy table of public data: texts, dates, missing values, ids, yes/no labels.

    python scripts/messy_table.py survey.csv new.csv     # a table, and every tenth row without a label

The rows are the survey of 6,366 women about their marriages (Fair, 1978) that statsmodels installs. Codes become words,
the label becomes yes and no, and what real tables have beside that is added: an id, a running number, the date of the
interview, a constant column, and missing values.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

_JOBS = {1: "student", 2: "farming", 3: "office", 4: "teaching", 5: "managing", 6: "professional"}
_MISSING = {"age": 0.08, "religious": 0.12, "occupation_husb": 0.05, "interview": 0.03}  # shares of the rows


def messy_table() -> pd.DataFrame:
    """Return the table, all of its rows with a label."""
    from statsmodels.datasets import fair

    rng = np.random.default_rng(0)
    table = fair.load_pandas().data.sample(frac=1, random_state=0, ignore_index=True)
    n, affair = len(table), table.pop("affairs") > 0
    table["age"] += np.round(rng.random(n), 1)  # the survey has ages in groups
    for column in ("occupation", "occupation_husb"):
        table[column] = table[column].map(_JOBS)
    interview = pd.Timestamp("1974-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    table["interview"] = interview.strftime("%Y-%m-%d")
    for column, share in _MISSING.items():
        table[column] = table[column].astype(object).where(rng.random(n) >= share, None)
    table.insert(0, "person", [f"P{row:05}" for row in rng.permutation(n)])
    table.insert(1, "number", range(1, n + 1))
    table["country"] = "USA"
    table["affair"] = np.where(affair, "yes", "no")
    return table


def save(table: pd.DataFrame, path: str | Path) -> None:
    """Write a table as CSV."""
    table.to_csv(path, index=False)


if __name__ == "__main__":
    survey = messy_table()
    new = survey[::10]
    save(survey.drop(new.index), sys.argv[1])
    save(new.drop(columns="affair"), sys.argv[2])
