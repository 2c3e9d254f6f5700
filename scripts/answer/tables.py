"""The tables and the lists by query of the measurement, and their halves.

Tables come from scikit-learn and statsmodels, or from the files in `LTR_DATA`; nothing is downloaded. A table of more
than `MOST` rows is cut to `MOST` of them, drawn with seed 0. Columns of words become 0/1 columns, without the first
value of each; columns of codes stay numbers.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ltr.data import Dataset, load, load_test
from scripts._bench import halves

MOST = 3_000


@dataclass(frozen=True)
class Table:
    """A table whose rows are ranked, all in one list or in a list per query."""

    name: str  # name in the results
    read: Callable[[], Dataset]  # returns features and labels, and queries where there are any
    label: str  # what a hit is
    source: str  # where the rows are from
    seen: bool = False  # whether options of `AutoRanker` were chosen on this table, on splits 0 to 3 and 10 to 12

    def data(self) -> Dataset:
        """Return all rows, or `MOST` of them."""
        full = self.read()
        if full.n <= MOST or full.qid is not None:
            return full
        rows = np.sort(np.random.default_rng(0).permutation(full.n)[:MOST])
        return Dataset(self.name, full.X[rows], full.y[rows], full.feature_names)

    def halves(self, split: int) -> tuple[Dataset, Dataset]:
        """Return the training set and the test set, half of the rows or of the queries each."""
        return halves(self.data(), split)


def _of_frame(features: pd.DataFrame, hits: NDArray[np.bool_] | pd.Series) -> Dataset:
    numbers = pd.get_dummies(features, drop_first=True).astype(float)
    return Dataset("", numbers.to_numpy(), np.asarray(hits, dtype=np.float64), list(map(str, numbers.columns)))


def _path(path: str) -> Path:
    """Return a file inside the package statsmodels, or inside `LTR_DATA`."""
    root, _, rest = path.partition("/")
    if root != "statsmodels":
        return Path(os.environ["LTR_DATA"]).expanduser() / path
    package = importlib.util.find_spec(root)
    if package is None or not package.submodule_search_locations:
        raise ImportError(f"{path} is read from the package statsmodels, which is not installed")
    return Path(package.submodule_search_locations[0]) / rest


def _read(path: str, hit: str, drop: str = "", skip: int = 0) -> Dataset:
    """Return a table from a file.

    Args:
        path: path of the file, see `_path`.
        hit: whether a row is a hit, as pandas evaluates it; columns named in it are no features.
        drop: names of further columns that are no features; rows with a missing value in the others are left out.
        skip: number of rows without a missing value in any column, from the start, that are left out.
    """
    file = _path(path)
    frame = (
        pd.read_stata(file) if file.suffix == ".dta" else pd.read_csv(file, sep="\t" if file.suffix == ".txt" else ",")
    )
    frame = frame.dropna().iloc[skip:] if skip else frame
    frame = frame.drop(columns=[*drop.split(), *(name for name in frame if name.startswith("Unnamed"))]).dropna()
    return _of_frame(frame[[name for name in frame if name not in hit.split()]], frame.eval(hit, engine="python"))


def _car() -> Dataset:
    """One row per traveller: the attributes of the four ways to travel, income and size of the party."""
    frame = pd.read_csv(_path("statsmodels/datasets/modechoice/modechoice.csv"), sep=";")
    wide = frame.pivot_table(index="individual", columns="mode", values=["ttme", "invc", "invt", "gc"])
    wide.columns = [f"{what}_{mode}" for what, mode in wide.columns]
    person = frame.groupby("individual")[["hinc", "psize"]].first()
    return _of_frame(wide.loc[:, wide.nunique() > 1].join(person), frame.loc[frame["mode"] == 4, "choice"] == 1)


def _nines() -> Dataset:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Dataset("", X, (y == 9).astype(float))


_GENERATED, _SKLEARN, _STATSMODELS, _FILES = "generated", "scikit-learn", "statsmodels", "LTR_DATA"
_NAMED = {
    "gaussians": ("class 1", _GENERATED),
    "roc_standin": ("class 1", _GENERATED),
    "abalone19": ("19 rings", _FILES),
    "uis": ("free of drugs", _FILES),
    "travel": ("mode chosen", _STATSMODELS),
    "nhanes": ("obese; first 600 complete rows", _FILES),
    "pima": ("diabetes", _FILES),
    "haberman": ("died", _FILES),
    "polypharm": ("many drugs, in 2007", _FILES),
    "glow500": ("fracture", _FILES),
    "fair": ("affair", _STATSMODELS),
    "fair_pt": ("affair", _STATSMODELS),
    "anes96": ("vote for Dole", _STATSMODELS),
    "randhie": ("8 or more visits to a doctor", _STATSMODELS),
    "star98": ("share above the median in its top quarter", _STATSMODELS),
    "breast_cancer": ("malignant", _SKLEARN),
    "diabetes": ("progression in its top quarter", _SKLEARN),
    "digits": ("digit 8, from 16 pixels", _SKLEARN),
    "wine": ("class 1", _SKLEARN),
}


def _riskslim(file: str, label: str, hit: str, name: str = "") -> Table:
    return Table(name or file, functools.partial(_read, f"riskslim/{file}_data.csv", f"{label} > 0"), hit, _FILES)


def _package(name: str, path: str, hit: str, label: str, drop: str = "") -> Table:
    source = f"{_STATSMODELS}: {Path(path).stem}"
    return Table(name, functools.partial(_read, f"statsmodels/{path}", hit, drop), label, source)


_OBESE = functools.partial(_read, "nhanes/NHANES.txt", "OBESE == 1", "ID WT HT BMI", 600)
_ELDERLY = "sandbox/regression/tests/racd10data_with_transformed.csv"
_SAME = "insured age2 linc physician nonphysician ldocvis ldocvisa docbin aget aget2 incomet"
_BIRTHS = "bweight mage2 mmarried mbsmoke fbaby prenatal1"
_LATER = "rns80 mrt80 smsa80 age80 s80 expr80 tenure80 lw80"

TABLES: tuple[Table, ...] = (
    *(Table(name, functools.partial(load, name), *facts, seen=True) for name, facts in _NAMED.items()),
    _riskslim("adult", "Over50K", "income above 50,000"),
    _riskslim("mushroom", "poisonous", "poisonous"),
    _riskslim("mammo", "Malignant", "malignant"),
    _riskslim("breastcancer", "Benign", "malignant (1 in the column Benign)", "biopsy"),
    _riskslim("spambase", "Spam", "spam"),
    Table("nhanes_rest", _OBESE, "obese; complete rows after the first 600", _FILES),
    Table("digits_9", _nines, "digit 9, from all pixels", _SKLEARN, seen=True),  # the rows of digits
    Table("car", _car, "takes the car", f"{_STATSMODELS}: modechoice", seen=True),  # the persons of travel
    _package("births", "treatment/tests/results/cataneo2.csv", "lbweight == 1", "low weight at birth", _BIRTHS),
    _package("low_weight", "genmod/tests/results/stata_lbw_glm.csv", "low == 1", "low weight at birth", "id bwt"),
    _package("wages", "sandbox/regression/tests/griliches76.dta", "lw >= 5.99", "wage in its top quarter", _LATER),
    _package("insured", _ELDERLY, "private == 1", "has private insurance", f"{_SAME} docvis"),
    _package("visits", _ELDERLY, "docvis >= 15", "visits to a doctor in their top tenth", _SAME),
    _package("autos", "gam/tests/results/autos.csv", "symbol >= 2", "insurance risk 2 or more", "loss make"),
    _package("applying", "miscmodels/tests/results/ologit_ucla.csv", "apply != 'unlikely'", "likely to apply"),
    _package("framing", "stats/tests/results/framing.csv", "cong_mesg == 1", "wrote to congress"),
    _package("students", "multivariate/tests/results/mvreg.csv", "prog == 'academic'", "academic program"),
    _package("engel", "datasets/engel/engel.csv", "foodexp >= 745", "expenditure on food in its top quarter"),
)
"""Tables of which all rows are one list, with labels 0 and 1."""


def _both_parts() -> Dataset:
    train, test = load("lightgbm_lambdarank"), load_test("lightgbm_lambdarank")
    assert test is not None
    assert train.qid is not None
    assert test.qid is not None
    X, y = np.concatenate([train.X, test.X]), np.concatenate([train.y, test.y])
    return Dataset("", X, y, train.feature_names, np.concatenate([train.qid, test.qid + train.n_queries]))


def _travellers() -> Dataset:
    data = load("travel")  # four rows per traveller, in the order of the file
    return Dataset("", data.X, data.y, data.feature_names, np.arange(data.n) // 4)


LISTS: tuple[Table, ...] = (
    Table("lightgbm_lambdarank", _both_parts, "grades 0 to 4", _FILES, seen=True),
    Table("travellers", _travellers, "mode chosen", f"{_STATSMODELS}: modechoice"),
    Table("grouped", functools.partial(load, "grouped"), "grades 0 to 4", _GENERATED),
)
"""Tables with lists by query."""

BY_NAME: Mapping[str, Table] = {table.name: table for table in (*TABLES, *LISTS)}
