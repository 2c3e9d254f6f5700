"""Make a messy table of public data: texts, dates, missing values, ids, yes/no labels.

The rows are the survey of 6,366 women about their marriages (Fair, 1978) that statsmodels installs. Codes become words,
the label becomes yes and no, and what real tables have beside that is added: an id, a running number, the date of the
interview, a constant column, and missing values. All of it follows from the seed.

::

    python scripts/messy_table.py survey.csv new.csv               a table, and every tenth row without a label
    python scripts/messy_table.py --european survey.csv new.csv    semicolons, decimal commas, German dates, Latin-1
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

JOBS = {1: "student", 2: "farming", 3: "office", 4: "teaching", 5: "managing", 6: "professional"}
GERMAN = {1: "Schülerin", 2: "Landwirtschaft", 3: "Büro", 4: "Schule", 5: "Geschäftsführung", 6: "freier Beruf"}
SHARE = {"age": 0.08, "religious": 0.12, "occupation_husb": 0.05, "interview": 0.03}  # of the rows that miss a value


def messy_table(*, european: bool = False, seed: int = 0) -> pd.DataFrame:
    """Return the table, all of its rows with a label.

    Args:
        european: whether words are German, and dates are written as day, month and year.
        seed: seed of what is added.
    """
    from statsmodels.datasets import fair

    rng = np.random.default_rng(seed)
    table = fair.load_pandas().data.sample(frac=1, random_state=seed, ignore_index=True)
    n, affair = len(table), table.pop("affairs") > 0
    table["age"] += np.round(rng.random(n), 1)  # the survey has ages in groups
    for column in ("occupation", "occupation_husb"):
        table[column] = table[column].map(GERMAN if european else JOBS)
    interview = pd.Timestamp("1974-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D")
    table["interview"] = interview.strftime("%d.%m.%Y" if european else "%Y-%m-%d")
    for column, share in SHARE.items():
        table[column] = table[column].astype(object).where(rng.random(n) >= share, None)
    table.insert(0, "person", [f"P{row:05}" for row in rng.permutation(n)])
    table.insert(1, "number", range(1, n + 1))
    table["country"] = "USA"
    table["affair"] = np.where(affair, "ja" if european else "yes", "nein" if european else "no")
    return table


def save(table: pd.DataFrame, path: Path, *, european: bool = False) -> None:
    """Write a table as CSV, with semicolons, decimal commas and Latin-1 where it is `european`."""
    if european:
        numbers = table.columns.intersection(["rate_marriage", "age", "yrs_married", "children", "religious", "educ"])
        shown = table.astype(dict.fromkeys(numbers, float))
        shown.to_csv(path, index=False, sep=";", decimal=",", float_format="%.1f", encoding="latin-1")
    else:
        table.to_csv(path, index=False)


def main() -> None:
    """Write the table, and every tenth row without a label as new rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", type=Path, help="where to write the table")
    parser.add_argument("new", type=Path, help="where to write new rows")
    parser.add_argument("--european", action="store_true", help="semicolons, decimal commas, German dates, Latin-1")
    arguments = parser.parse_args()
    table = messy_table(european=arguments.european)
    new = table[::10]
    save(new.drop(columns="affair"), arguments.new, european=arguments.european)
    save(table.drop(new.index), arguments.table, european=arguments.european)


if __name__ == "__main__":
    main()
