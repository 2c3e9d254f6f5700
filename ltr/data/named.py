"""Data sets by name: the paper's, which are generated or read from published files, and tables of installed packages.

named.toml has for each file its source, its hash, its label and what its features are. The files are read from the
directory `LTR_DATA` (an environment variable) or `data_dir`, one folder per data set, and accepted only with that hash.
Tables of scikit-learn, and of statsmodels (the extra ``rankproof[data]``), need no `LTR_DATA`. Nothing is downloaded.

The paper is Rudin & Wang, *Direct Learning to Rank and Rerank* (2018): section 2.4 has theorem 1, 5 the Gaussians.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import nearest
from ltr.data.dataset import DataError, Dataset
from ltr.data.svmlight import read_svmlight
from ltr.data.table_files import parse_csv

if TYPE_CHECKING:
    import pandas as pd

# generated


def gaussians(seed: int = 0, *, n: int = 1250) -> Dataset:
    """Return n of 6210 points: two large clumps that a linear ranker follows, and two small ones at the top."""
    clumps = (
        (3000, 1, (0.0, 1.0), math.sqrt(0.5)),
        (3000, 0, (0.0, 0.0), math.sqrt(0.5)),
        (10, 0, (10.0, 1.0), 0.05),
        (200, 1, (0.0, -3.0), 0.05),
    )
    population = sum(size for size, *_ in clumps)
    if not 2 <= n <= population:
        raise ValueError(f"n must be between 2 and {population}, got {n!r}")
    rng = np.random.default_rng(seed)
    X, y = _draw(rng, clumps)
    kept = rng.choice(population, size=n, replace=False)
    return Dataset("gaussians", X[kept], y[kept])


def theorem1(seed: int = 0) -> Dataset:
    """Return one feature x: ranking by x wins AUC, partial AUC@100, DCG and MRR; by -x, DCG@100 and partial AUC@10."""
    clumps = ((10, 0, (3.0,), 0.05), (3000, 1, (1.0,), 0.05), (3000, 0, (0.0,), 0.05), (80, 1, (-10.0,), 0.05))
    return Dataset("theorem1", *_draw(np.random.default_rng(seed), clumps))


def roc_standin(seed: int = 0) -> Dataset:
    """Return a stand-in for the paper's ROC Flexibility data, which is no longer public; values are not comparable.

    It has ties, and directions that are good by one rank statistic and bad by another; features are whole numbers.
    """
    clumps = (
        (190, 1, (1.0, 0.0, 0.0, 0.0, 0.0), 0.8),  # the bulk: AUC follows the first feature
        (205, 0, (0.0, 0.0, 0.0, 0.0, 0.0), 0.8),  # its negatives
        (25, 0, (3.0, 0.5, 0.0, 0.0, 0.0), 0.4),  # spoil the top of that direction
        (40, 1, (-0.5, 2.5, 0.0, 1.0, 0.0), 0.4),  # a clean top along the second feature
        (20, 0, (-1.0, 1.5, 1.0, -1.0, 0.0), 0.4),  # nearly the same, except in the fourth feature
        (20, 1, (0.5, -1.0, 2.5, 0.0, 1.0), 0.4),  # another clean top
    )
    X, y = _draw(np.random.default_rng(seed), clumps)
    return Dataset("roc_standin", np.round(X), y)


def grouped(seed: int = 0, *, queries: int = 60) -> Dataset:
    """Return queries of 5 to 25 items with 5 features, whose labels 0 to 4 follow a linear score, best at the top.

    Item i of query q has the features x_i + m_q, where m_q, the level of the query, says nothing about labels. Labels
    are the grades of ``w·x_i + noise`` (shares of 50, 25, 15, 7 and 3 percent); the noise is three times as large where
    ``w·x_i`` is below 0.
    """
    if queries < 2:
        raise ValueError(f"queries must be at least 2, got {queries!r}")
    d = 5
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(5, 26, queries))
    own, level = rng.normal(size=(len(qid), d)), 2 * rng.normal(size=(queries, d))
    score = own @ np.linspace(1, 0.2, d)
    noisy = score + rng.normal(size=len(qid)) * np.where(score > 0, 0.5, 1.5)
    y = np.searchsorted(np.quantile(noisy, [0.5, 0.75, 0.9, 0.97]), noisy)
    return Dataset("grouped", own + level[qid], y, qid=qid)


_Clump = tuple[int, int, tuple[float, ...], float]  # number of points, label, mean, standard deviation in each entry


def _draw(rng: np.random.Generator, clumps: tuple[_Clump, ...]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X = np.concatenate([rng.normal(mean, deviation, (size, len(mean))) for size, _, mean, deviation in clumps])
    y = np.concatenate([np.full(size, label, dtype=np.int64) for size, label, *_ in clumps])
    return X, y


_GENERATED: dict[str, Callable[[int], Dataset]] = {
    "gaussians": gaussians,
    "theorem1": theorem1,
    "roc_standin": roc_standin,
    "grouped": grouped,
}


# files


@dataclass(frozen=True)
class NamedFile:
    """A published file: its place in the data directory, its hash, and what it contains.

    The label is 1 where its column equals `positive`, or is `at_least` so large; the features are all other columns.
    """

    path: str  # relative to the data directory
    sha256: str
    source: str  # the public repository, path and commit that the file was found at
    label: str
    drop: Sequence[str] = ()
    positive: float = 1.0
    at_least: float | None = None
    columns: Sequence[str] | None = None  # names of the columns, if the file has no header
    separator: str = ","
    quote: str = '"'
    installed: str = ""  # its path inside an installed statsmodels, where it comes with that package


@dataclass(frozen=True)
class NamedLists:
    """Published sparse files by query: a training and a test part, each with a file of query sizes beside it."""

    train: str  # path relative to the data directory
    test: str
    sha256: Mapping[str, str]  # of all four files, by path
    source: str  # the public repository, folder and commit that the files were found at


_GIVEN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FILES = {name: NamedFile(**given) for name, given in _GIVEN.items() if "path" in given}
LISTS_BY_QUERY = {name: NamedLists(**given) for name, given in _GIVEN.items() if "train" in given}


def load(name: str = "gaussians", *, data_dir: str | os.PathLike[str] | None = None, seed: int = 0) -> Dataset:
    """Return a data set by name, one of `dataset_names()`, or its training part if it has a test part.

    `data_dir` is the directory of the files, by default that in the environment variable `LTR_DATA`; tables of
    statsmodels are also found inside that package. `seed` is that of generated data. Raises DataError for an unknown
    name, no data directory, a missing file, or a file that is not the documented one.

    Examples:
        >>> load("gaussians", seed=1).X.shape
        (1250, 2)
    """
    if name in _GENERATED:
        return _GENERATED[name](seed)
    if name in _SKLEARN:
        return _load_packaged(name)
    if name in LISTS_BY_QUERY:
        return _load_lists(name, LISTS_BY_QUERY[name].train, data_dir)
    if name not in FILES:
        known = dataset_names()
        raise DataError(f"unknown data set {name!r}{nearest(str(name).lower(), known)}; known are {', '.join(known)}")
    spec = FILES[name]
    path = _find(name, spec.path, spec.sha256, spec.source, data_dir, spec.installed)
    options = {"sep": spec.separator, "quotechar": spec.quote, "skipinitialspace": True}
    table = parse_csv(path, options | {"names": spec.columns, "header": None if spec.columns else 0})
    table = _PREPARED.get(name, lambda table: table)(table).astype(np.float64)
    label = table.pop(spec.label)
    y = label == spec.positive if spec.at_least is None else label >= spec.at_least
    features = table.drop(columns=list(spec.drop))
    return Dataset(name, features.to_numpy(), y, list(features), copy=False)


def load_test(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Dataset | None:
    """Return the test part of a named data set, with the features of its training part; None without a test part."""
    if name not in LISTS_BY_QUERY:
        return None
    features = load(name, data_dir=data_dir).feature_names
    return _load_lists(name, LISTS_BY_QUERY[name].test, data_dir, features)


def _load_lists(
    name: str, part: str, data_dir: str | os.PathLike[str] | None, features: Sequence[str] | None = None
) -> Dataset:
    spec = LISTS_BY_QUERY[name]
    path, _ = (_find(name, file, spec.sha256[file], spec.source, data_dir) for file in (part, f"{part}.query"))
    data = read_svmlight(path, features=features)
    return Dataset(name, data.X, data.y, data.feature_names, data.qid, copy=False)


def dataset_names() -> tuple[str, ...]:
    """Return the names that `load` knows."""
    return (*_GENERATED, *FILES, *_SKLEARN, *LISTS_BY_QUERY)


def _find(
    name: str, file: str, sha256: str, source: str, data_dir: str | os.PathLike[str] | None, installed: str = ""
) -> Path:
    """Return the path of a file, after checking that its content is the documented one."""
    given = os.environ.get("LTR_DATA", "") if data_dir is None else os.fspath(data_dir)
    folder = Path(given).expanduser()
    if given and not folder.is_dir():
        raise DataError(f"{'LTR_DATA' if data_dir is None else 'data_dir'} must be a directory, got {given!r}")
    paths = [folder / file] if given else []
    if installed and (package := importlib.util.find_spec("statsmodels")) is not None and package.origin is not None:
        paths.append(Path(package.origin).parent / "datasets" / installed)
    path = next(filter(Path.is_file, paths), None)
    if path is None:
        hint = ", or install the package statsmodels, which holds this one" if installed else ""
        if given:
            raise DataError(f"{folder / file}: no such file; data set {name} was found at {source}{hint}")
        raise DataError(
            f"data set {name} is read from files: set the environment variable LTR_DATA to their directory, or pass "
            f"data_dir{hint} ({' and '.join([*_GENERATED, *_SKLEARN])} need no files)"
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise DataError(
            f"{path}: this is not the documented file of {name}: its SHA-256 is {digest}, expected {sha256}; "
            f"restore it from {source}, or read it with read_data"
        )
    return path


def _abalone(table: pd.DataFrame) -> pd.DataFrame:
    table["class"] = table["class"].str.strip() == "positive"
    return table.assign(sex=table["sex"].map({"M": 0, "F": 1, "I": 2}))


def _uis(table: pd.DataFrame) -> pd.DataFrame:
    at, history = list(table).index("IVHX"), table.pop("IVHX")
    table.insert(at, "IVHX_previous", history == 2)
    table.insert(at + 1, "IVHX_recent", history == 3)
    return table


def _star98(table: pd.DataFrame) -> pd.DataFrame:
    share = table.iloc[:, 1] / table.iloc[:, 0]
    return table.iloc[:, 2:14].assign(label=_top_quarter(share))


_PREPARED: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "abalone19": _abalone,
    "uis": _uis,
    "nhanes": lambda table: table.dropna()[:600],
    "polypharm": lambda table: table[table["YEAR"] == 2007],
    "randhie": lambda table: table[::10],
    "star98": _star98,
}
"""How the columns of files become numbers, and which rows are taken."""


def _top_quarter(values: Any) -> Any:  # noqa: ANN401 (an array or a Series)
    return values >= np.quantile(values, 0.75)


_SKLEARN: dict[str, Callable[[NDArray[Any]], NDArray[np.bool_]]] = {
    "breast_cancer": lambda target: target == 0,  # malignant; 30 measures of cell nuclei (Wisconsin, diagnostic)
    "diabetes": _top_quarter,  # of the progression; 10: age, sex, bmi, blood pressure, six serums
    "digits": lambda target: target == 8,  # 16: the pixels of the middle 4 x 4 square
    "wine": lambda target: target == 1,  # 13 chemical measures
}
"""Which rows of the data sets of scikit-learn are positive."""


def _load_packaged(name: str) -> Dataset:
    from sklearn import datasets

    table = datasets.load_diabetes(scaled=False) if name == "diabetes" else getattr(datasets, f"load_{name}")()
    # of images of 8 x 8 pixels, the square in the middle
    columns = [8 * row + column for row in range(2, 6) for column in range(2, 6)] if name == "digits" else slice(None)
    names = [str(feature).replace(" ", "_") for feature in np.array(table.feature_names)[columns]]
    return Dataset(name, table.data[:, columns], _SKLEARN[name](table.target), names)


SLOW = (*_SKLEARN, *LISTS_BY_QUERY)
"""Names of the data sets that scikit-learn reads, which takes a second or more to import."""
