"""The tables and the lists by query of the measurement, and their halves; ``tables.csv`` lists them.

Tables come from scikit-learn and statsmodels, or from the files in `LTR_DATA`; nothing is downloaded. A table of more
than `MOST` rows is cut to `MOST` of them, drawn with seed 0. Columns of words become 0/1 columns, without the first
value of each; columns of codes stay numbers.

In ``tables.csv``, `path` is a file in LTR_DATA or in the package statsmodels, otherwise the name is that of
`ltr.data.load`. `hit` is an expression of pandas; columns named in it, or in `drop`, are no features, rows with a
missing value in the others are left out, and so are the first `skip` complete rows. `what` says what a hit is, `seen`
whether options of `AutoRanker` were chosen on the table, on splits 0 to 3 and 10 to 12, and `queries` whether there is
a list for each query; otherwise all rows are one list.
"""

from __future__ import annotations

import csv
import functools
import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from ltr.data import Dataset, load, load_test
from scripts import _bench

MOST = 3_000


@dataclass(frozen=True)
class Table:
    """A line of ``tables.csv``."""

    name: str
    path: str
    hit: str
    drop: str
    skip: str
    what: str
    source: str
    seen: str
    queries: str

    def halves(self, split: int) -> tuple[Dataset, Dataset]:
        """Return the training set and the test set, half of the rows or of the queries each."""
        read = _MADE.get(self.name) or (self.read if self.path else functools.partial(load, self.name))
        full = read()
        if full.n > MOST and full.qid is None:
            full = _bench.take(full, np.sort(np.random.default_rng(0).permutation(full.n)[:MOST]))
        return _bench.halves(full, split)

    def read(self) -> Dataset:
        """Return the table of the file."""
        file = _path(self.path)
        separator = "\t" if file.suffix == ".txt" else ","
        frame = pd.read_stata(file) if file.suffix == ".dta" else pd.read_csv(file, sep=separator)
        frame = frame.dropna().iloc[int(self.skip) :] if self.skip else frame
        unnamed = [name for name in frame if name.startswith("Unnamed")]
        frame = frame.drop(columns=[*self.drop.split(), *unnamed]).dropna()
        features = frame[[name for name in frame if name not in self.hit.split()]]
        return _of_frame(features, frame.eval(self.hit, engine="python"))


def _path(path: str) -> Path:
    root, _, rest = path.partition("/")
    if root != "statsmodels":
        return Path(os.environ["LTR_DATA"]).expanduser() / path
    return Path(importlib.util.find_spec(root).submodule_search_locations[0]) / rest


def _of_frame(features: pd.DataFrame, hits: NDArray[np.bool_] | pd.Series) -> Dataset:
    numbers = pd.get_dummies(features, drop_first=True).astype(float)
    return Dataset("", numbers.to_numpy(), np.asarray(hits, dtype=np.float64), list(map(str, numbers.columns)))


def _car() -> Dataset:
    """One row per traveller of travel: the attributes of the four ways to travel, income and size of the party."""
    frame = pd.read_csv(_path("statsmodels/datasets/modechoice/modechoice.csv"), sep=";")
    wide = frame.pivot_table(index="individual", columns="mode", values=["ttme", "invc", "invt", "gc"])
    wide.columns = [f"{what}_{mode}" for what, mode in wide.columns]
    person = frame.groupby("individual")[["hinc", "psize"]].first()
    return _of_frame(wide.loc[:, wide.nunique() > 1].join(person), frame.loc[frame["mode"] == 4, "choice"] == 1)


def _nines() -> Dataset:
    X, y = load_digits(return_X_y=True)
    return Dataset("", X, (y == 9).astype(float))


def _travellers() -> Dataset:
    data = load("travel")  # four rows per traveller, in the order of the file
    return Dataset("", data.X, data.y, data.feature_names, np.arange(data.n) // 4)


_MADE: Mapping[str, Callable[[], Dataset]] = {
    "car": _car,
    "digits_9": _nines,
    "travellers": _travellers,
    "lightgbm_lambdarank": lambda: _bench.whole(load("lightgbm_lambdarank"), load_test("lightgbm_lambdarank")),
}
with (Path(__file__).with_suffix(".csv")).open(encoding="utf-8") as _file:
    BY_NAME = {line["name"]: Table(**line) for line in csv.DictReader(_file)}
TABLES, LISTS = ([one for one in BY_NAME.values() if bool(one.queries) == lists] for lists in (False, True))
