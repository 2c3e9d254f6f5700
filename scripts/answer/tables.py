"""The tables and the lists by query of the measurement, and their halves.

Tables come from scikit-learn and statsmodels, or from the files in `LTR_DATA`; nothing is downloaded. A table of more
than `MOST` rows is cut to `MOST` of them, drawn with seed 0. Columns of words become 0/1 columns, without the first
value of each; columns of codes stay numbers.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ltr.data import Dataset, half_split, load, load_test

MOST = 3_000
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A table whose rows are ranked, all in one list or in a list per query.

    Attributes:
        name: name in the results.
        read: returns features and labels, and queries where there are any.
        label: what a hit is.
        source: where the rows are from.
        seen: whether options of `AutoRanker` may have been chosen on this table, on splits 0 to 3.
    """

    name: str
    read: Callable[[], Dataset]
    label: str
    source: str
    seen: bool = False

    def data(self) -> Dataset:
        """Return all rows, or `MOST` of them."""
        full = self.read()
        if full.n <= MOST or full.qid is not None:
            return full
        rows = np.sort(np.random.default_rng(0).permutation(full.n)[:MOST])
        return Dataset(self.name, full.X[rows], full.y[rows], full.feature_names)

    def halves(self, split: int) -> tuple[Dataset, Dataset]:
        """Return the training set and the test set, half of the rows or of the queries each."""
        data = self.data()
        if data.qid is None:
            parts = half_split(data.n, split)
            return tuple(Dataset(self.name, data.X[at], data.y[at], data.feature_names) for at in parts)  # type: ignore[return-value]
        chosen = [np.isin(data.qid, queries) for queries in half_split(data.n_queries, split)]
        return tuple(Dataset(self.name, data.X[at], data.y[at], data.feature_names, data.qid[at]) for at in chosen)  # type: ignore[return-value]


def _of_frame(features: pd.DataFrame, hits: NDArray[np.bool_] | pd.Series) -> Dataset:
    numbers = pd.get_dummies(features, drop_first=True).astype(float)
    return Dataset("", numbers.to_numpy(), np.asarray(hits, dtype=np.float64), list(map(str, numbers.columns)))


def _top(values: pd.Series, share: float) -> NDArray[np.bool_]:
    """Return whether values are in the top share, those equal to its least value included."""
    return np.asarray(values >= values.quantile(1 - share, interpolation="higher"))


def _statsmodels(path: str, separator: str = ",") -> pd.DataFrame:
    package = importlib.util.find_spec("statsmodels")
    if package is None or not package.submodule_search_locations:
        raise ImportError("statsmodels is not installed")
    file = Path(package.submodule_search_locations[0]) / path
    return pd.read_stata(file) if file.suffix == ".dta" else pd.read_csv(file, sep=separator)


def _file(name: str, **options: str) -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["LTR_DATA"]).expanduser() / name, **options)


def _riskslim(name: str) -> Dataset:
    frame = _file(f"riskslim/{name}_data.csv")
    return _of_frame(frame.iloc[:, 1:], frame.iloc[:, 0] > 0)


def _nhanes_rest() -> Dataset:
    frame = _file("nhanes/NHANES.txt", sep="\t").dropna().iloc[600:]
    return _of_frame(frame.drop(columns=["ID", "WT", "HT", "BMI", "OBESE"]), frame["OBESE"] == 1)


def _births() -> Dataset:
    frame = _statsmodels("treatment/tests/results/cataneo2.csv")
    numbers = frame.drop(columns=["bweight", "mage2", "mmarried", "mbsmoke", "fbaby", "prenatal1", "lbweight"])
    order = {"0 daily": 0, "1-5 daily": 1, "6-10 daily": 2, "11+ daily": 3}
    return _of_frame(numbers.assign(msmoke=numbers["msmoke"].map(order)), frame["lbweight"] == 1)


def _low_weight() -> Dataset:
    frame = _statsmodels("genmod/tests/results/stata_lbw_glm.csv")
    return _of_frame(frame.drop(columns=["id", "bwt", "low"]), frame["low"] == 1)


def _wages() -> Dataset:
    frame = _statsmodels("sandbox/regression/tests/griliches76.dta")
    later = [name for name in frame.columns if name.endswith("80")]
    return _of_frame(frame.drop(columns=[*later, "lw"]), _top(frame["lw"], 0.25))


_ELDERLY = ("offer", "ssiratio", "age", "educyr", "medicaid", "female", "phylim", "actlim", "income", "totchr", "bh")


def _elderly(label: str) -> Dataset:
    frame = _statsmodels("sandbox/regression/tests/racd10data_with_transformed.csv")
    if label == "private":
        return _of_frame(frame[list(_ELDERLY)], frame["private"] == 1)
    return _of_frame(frame[[*_ELDERLY, "private"]], _top(frame["docvis"], 0.1))


def _autos() -> Dataset:
    frame = _statsmodels("gam/tests/results/autos.csv").drop(columns=["loss", "make"]).dropna()
    return _of_frame(frame.drop(columns="symbol"), frame["symbol"] >= 2)


def _applying() -> Dataset:
    frame = _statsmodels("miscmodels/tests/results/ologit_ucla.csv")
    return _of_frame(frame.drop(columns="apply"), frame["apply"] != "unlikely")


def _framing() -> Dataset:
    frame = _statsmodels("stats/tests/results/framing.csv")
    return _of_frame(frame.drop(columns=["Unnamed: 0", "cong_mesg"]), frame["cong_mesg"] == 1)


def _students() -> Dataset:
    frame = _statsmodels("multivariate/tests/results/mvreg.csv")
    return _of_frame(frame.drop(columns="prog"), frame["prog"] == "academic")


def _engel() -> Dataset:
    frame = _statsmodels("datasets/engel/engel.csv")
    return _of_frame(frame[["income"]], _top(frame["foodexp"], 0.25))


def _car() -> Dataset:
    """One row per traveller: the attributes of the four ways to travel, income and size of the party."""
    frame = _statsmodels("datasets/modechoice/modechoice.csv", ";")
    wide = frame.pivot_table(index="individual", columns="mode", values=["ttme", "invc", "invt", "gc"])
    wide.columns = [f"{what}_{mode}" for what, mode in wide.columns]
    person = frame.groupby("individual")[["hinc", "psize"]].first()
    car = frame[frame["mode"] == 4].set_index("individual")["choice"]
    features = wide.loc[:, wide.nunique() > 1].join(person)
    return _of_frame(features, car.loc[features.index] == 1)


def _digits(digit: int) -> Dataset:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Dataset("", X, (y == digit).astype(float))


def _named(name: str, label: str, source: str) -> Table:
    return Table(name, functools.partial(load, name), label, source, seen=True)


_SKLEARN, _STATSMODELS, _LTR_DATA = "scikit-learn", "statsmodels", "LTR_DATA"
_GENERATED = "generated"
_TESTS = "statsmodels, its tests"

TABLES: tuple[Table, ...] = (
    _named("gaussians", "class 1", _GENERATED),
    _named("roc_standin", "class 1", _GENERATED),
    _named("abalone19", "19 rings", _LTR_DATA),
    _named("uis", "free of drugs", _LTR_DATA),
    _named("travel", "mode chosen", _STATSMODELS),
    _named("nhanes", "obese; first 600 complete rows", _LTR_DATA),
    _named("pima", "diabetes", _LTR_DATA),
    _named("haberman", "died", _LTR_DATA),
    _named("polypharm", "many drugs; 2007", _LTR_DATA),
    _named("glow500", "fracture", _LTR_DATA),
    _named("fair", "affair", _STATSMODELS),
    _named("fair_pt", "affair", _STATSMODELS),
    _named("anes96", "vote for Dole", _STATSMODELS),
    _named("randhie", "8 or more visits to a doctor", _STATSMODELS),
    _named("star98", "share above median in top quarter", _STATSMODELS),
    _named("breast_cancer", "malignant", _SKLEARN),
    _named("diabetes", "progression in top quarter", _SKLEARN),
    _named("digits", "digit 8, of 16 pixels", _SKLEARN),
    _named("wine", "class 1", _SKLEARN),
    Table("adult", functools.partial(_riskslim, "adult"), "income above 50,000", _LTR_DATA),
    Table("mushroom", functools.partial(_riskslim, "mushroom"), "poisonous", _LTR_DATA),
    Table("mammo", functools.partial(_riskslim, "mammo"), "malignant", _LTR_DATA),
    Table("biopsy", functools.partial(_riskslim, "breastcancer"), "malignant, 1 in its column Benign", _LTR_DATA),
    Table("spambase", functools.partial(_riskslim, "spambase"), "spam", _LTR_DATA),
    Table("nhanes_rest", _nhanes_rest, "obese; complete rows after the first 600", _LTR_DATA),
    Table("digits_9", functools.partial(_digits, 9), "digit 9, of all pixels", _SKLEARN),
    Table("births", _births, "low weight at birth", f"{_TESTS}: cataneo2"),
    Table("low_weight", _low_weight, "low weight at birth", f"{_TESTS}: stata_lbw_glm"),
    Table("wages", _wages, "wage in top quarter", f"{_TESTS}: griliches76"),
    Table("insured", functools.partial(_elderly, "private"), "has private insurance", f"{_TESTS}: racd10data"),
    Table("visits", functools.partial(_elderly, "docvis"), "visits in top tenth", f"{_TESTS}: racd10data"),
    Table("autos", _autos, "insurance risk 2 or more", f"{_TESTS}: autos"),
    Table("applying", _applying, "likely to apply", f"{_TESTS}: ologit_ucla"),
    Table("framing", _framing, "wrote to congress", f"{_TESTS}: framing"),
    Table("students", _students, "academic program", f"{_TESTS}: mvreg"),
    Table("engel", _engel, "food expenditure in top quarter", _STATSMODELS),
    Table("car", _car, "takes the car", f"{_STATSMODELS}, modechoice"),
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


def _letor(lists: int) -> Dataset:
    """Return lists like those of web search: products and steps of features, effects of the query, noise."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(10, 41, lists)
    qid = np.repeat(np.arange(lists), sizes)
    X = rng.normal(size=(len(qid), 20)) + 0.7 * rng.normal(size=(lists, 20))[qid]
    X[:, 10:] = np.maximum(X[:, 10:], 0.0)
    relevance = X[:, 0] + 0.8 * X[:, 1] * (X[:, 2] > 0) + X[:, 3] * X[:, 4] + np.tanh(2 * X[:, 10]) + 0.3 * X[:, 5]
    relevance += 1.2 * rng.normal(size=len(qid)) + rng.normal(size=lists)[qid]
    return Dataset("", X, np.searchsorted([1.0, 2.2, 3.3, 4.5], relevance).astype(float), qid=qid)


LISTS: tuple[Table, ...] = (
    Table("lightgbm_lambdarank", _both_parts, "grades 0 to 4", _LTR_DATA, seen=True),
    Table("travellers", _travellers, "mode chosen", f"{_STATSMODELS}, modechoice"),
    Table("grouped", functools.partial(load, "grouped"), "grades 0 to 4", _GENERATED),
    Table("letor", functools.partial(_letor, 200), "grades 0 to 4", _GENERATED),
)
"""Tables with lists by query."""

BY_NAME: Mapping[str, Table] = {table.name: table for table in (*TABLES, *LISTS)}


def facts(tables: Sequence[Table]) -> list[list[str]]:
    """Return name, rows, columns, hits, what a hit is, and the source of each table, as text."""
    found = []
    for table in tables:
        full, data = table.read(), table.data()
        rows = f"{data.n:,}" + (f" of {full.n:,}" if full.n > data.n else "")
        size = rows if data.qid is None else f"{rows} in {data.n_queries} lists"
        found.append([table.name, size, str(data.d), f"{data.n_pos:,}", table.label, table.source])
    return found
