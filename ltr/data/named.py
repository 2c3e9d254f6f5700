"""Data sets by name: the paper's, which are generated or read from published files, and tables of installed packages.

The files are not part of this project. They are read from the directory `LTR_DATA` (an environment variable) or
`data_dir`, one folder per data set, and accepted only with the SHA-256 given here: the numbers of two people agree only
if their files do. `read_table` reads any other version of them. Nothing is downloaded.

===================  ==========================  ====================================================================
name                 label (positive)            features
===================  ==========================  ====================================================================
gaussians            generated                   2
theorem1             generated                   1
roc_standin          generated                   5: a stand-in for the paper's ROC Flexibility data
abalone19            class is "positive"         8: sex (M 0, F 1, I 2) and seven measures
uis                  DFREE = 1                   8: all but ID; IVHX as two dummies (previous, recent)
travel               choice = 1                  7: all but the mode, which names the alternative
nhanes               OBESE = 1                   16: ID dropped, and WT, HT, BMI, which define the label; the first
                                                 600 rows without a missing value
pima                 last column                 8; zeros that stand for missing values are kept
haberman             status 2 (died)             3; six feature rows carry both labels
polypharm            POLYPHARMACY = 1            12: all but ID; the year 2007 (so that YEAR is constant)
glow500              FRACTURE = 1                13: SUB_ID dropped, which reveals the label
grouped              generated, graded 0 to 4    5; 60 queries
lightgbm_lambdarank  graded 0 to 4               300, sparse; 201 queries for training, 50 as a test part
===================  ==========================  ====================================================================

The paper states d = 21, 13 and 14 for NHANES, Polypharm and GLOW500, and not which rows and columns it took: those
three are our choice. Its ROC Flexibility data is no longer public: `roc_standin` stands in for it.

These tables come with scikit-learn, or with statsmodels (the extra ``rankproof[data]``), and need no `LTR_DATA`. On
them one can check what was tuned on the paper's data.

=============  =================================  ==================================================================
name           label (positive)                   features
=============  =================================  ==================================================================
breast_cancer  malignant                          30: measures of cell nuclei (Wisconsin, diagnostic); scikit-learn
diabetes       progression in its top quarter     10: age, sex, bmi, blood pressure, six serums; scikit-learn
digits         digit is 8                         16: the pixels of the middle 4 x 4 square, rows and columns 2 to 5
                                                  of 0 to 7; scikit-learn
wine           class 1 (of 0, 1, 2)               13: chemical measures; scikit-learn
fair           affairs > 0                        8: all but the label; Redbook's survey (Fair 1978); statsmodels
fair_pt        naffairs > 0                       8: all but identifier and constant; the survey of Psychology Today
                                                  (Fair 1978); statsmodels
anes96         vote = 1 (Dole)                    9: all but the label; US election survey of 1996; statsmodels
randhie        mdvis >= 8 (visits to a doctor)    9: all but the label; every tenth row of the RAND Health Insurance
                                                  Experiment, as the rows of a person follow each other; statsmodels
star98         share of pupils above the median   12: all but the two counts that define the label and the products
               in its top quarter                 of columns; Californian school districts; statsmodels
=============  =================================  ==================================================================
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.data.dataset import DataError, Dataset
from ltr.data.generated import gaussians, grouped, roc_standin, theorem1
from ltr.data.svmlight import read_svmlight
from ltr.data.table_text import parse_csv

if TYPE_CHECKING:
    import pandas as pd

_GENERATED: dict[str, Callable[[int], Dataset]] = {
    "gaussians": gaussians,
    "theorem1": theorem1,
    "roc_standin": roc_standin,
    "grouped": grouped,
}


@dataclass(frozen=True)
class NamedFile:
    """A published file: its place in the data directory, its hash, and what it must contain.

    The label is 1 where its column equals `positive`, or is `at_least` so large; the features are all other columns.
    """

    path: str  # relative to the data directory
    sha256: str
    source: str  # the public repository, path and commit that the file was found at
    shape: tuple[int, int, int]  # rows, features and positives
    label: str
    drop: tuple[str, ...] = ()
    positive: float = 1.0
    at_least: float | None = None
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None  # makes numbers of the columns, and chooses rows
    columns: tuple[str, ...] | None = None  # names of the columns, if the file has no header
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


def load(name: str = "gaussians", *, data_dir: str | os.PathLike[str] | None = None, seed: int = 0) -> Dataset:
    """Return a data set by name, or its training part if it has a test part; the module lists them.

    Args:
        name: one of `dataset_names()`.
        data_dir: directory of the files; the environment variable `LTR_DATA` by default. Generated data needs none.
            Nor do tables of scikit-learn. `travel` and tables of statsmodels are also found inside that package.
        seed: seed of generated data; files do not depend on it.

    Raises:
        DataError: an unknown name, no data directory, a missing file, or a file that is not the documented one.

    Examples:
        >>> load("gaussians", seed=1).X.shape
        (1250, 2)
        >>> load("pimma")
        Traceback (most recent call last):
        ltr.data.dataset.DataError: unknown data set 'pimma'; did you mean 'pima'? Known are gaussians, ...
    """
    if name in _GENERATED:
        return _GENERATED[name](seed)
    if name in _SKLEARN:
        return _load_packaged(name)
    if name in LISTS_BY_QUERY:
        return _load_lists(name, LISTS_BY_QUERY[name].train, data_dir)
    if name not in FILES:
        close = difflib.get_close_matches(str(name).lower(), dataset_names(), n=1)
        hint = f"did you mean {close[0]!r}? " if close else "files of your own are read by read_table. "
        raise DataError(f"unknown data set {name!r}; {hint}Known are {', '.join(dataset_names())}")
    spec = FILES[name]
    path = _find(name, spec.path, spec.sha256, spec.source, data_dir, spec.installed)
    options = {"sep": spec.separator, "quotechar": spec.quote, "skipinitialspace": True}
    table = parse_csv(path, options | {"names": spec.columns, "header": None if spec.columns else 0})
    table = (table if spec.prepare is None else spec.prepare(table)).astype(np.float64)
    label = table.pop(spec.label)
    y = label == spec.positive if spec.at_least is None else label >= spec.at_least
    features = table.drop(columns=list(spec.drop))
    data = Dataset(name, features.to_numpy(), y, list(features), copy=False)
    assert (data.n, data.d, data.n_pos) == spec.shape, f"{name}: read {(data.n, data.d, data.n_pos)}"
    return data


def load_test(name: str, *, data_dir: str | os.PathLike[str] | None = None) -> Dataset | None:
    """Return the test part of a named data set, with the features of its training part; None without a test part.

    Args:
        name: one of `dataset_names()`.
        data_dir: as for `load`.

    Raises:
        DataError: as `load`.

    Examples:
        >>> load_test("gaussians") is None
        True
    """
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
    """Return the names that `load` knows, generated data first.

    Examples:
        >>> dataset_names()[:5]
        ('gaussians', 'theorem1', 'roc_standin', 'grouped', 'abalone19')
    """
    return (*_GENERATED, *FILES, *_SKLEARN, *LISTS_BY_QUERY)


def _find(
    name: str, file: str, sha256: str, source: str, data_dir: str | os.PathLike[str] | None, installed: str = ""
) -> Path:
    """Return the path of a file, after checking that its content is the documented one."""
    given = os.environ.get("LTR_DATA", "") if data_dir is None else os.fspath(data_dir)
    path = Path(given).expanduser() / file
    if given and not Path(given).expanduser().is_dir():
        raise DataError(f"{'LTR_DATA' if data_dir is None else 'data_dir'} must be a directory, got {given!r}")
    if not given or not path.is_file():
        copy = _installed_copy(installed) if installed else None
        package = ", or install the package statsmodels, which holds this one" if installed else ""
        if copy is None and not given:
            raise DataError(
                f"data set {name} is read from files: set the environment variable LTR_DATA to their directory, or "
                f"pass data_dir{package} ({' and '.join([*_GENERATED, *_SKLEARN])} need no files)"
            )
        if copy is None:
            raise DataError(f"{path}: no such file; data set {name} was found at {source}{package}")
        path = copy
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != sha256:
        raise DataError(
            f"{path}: this is not the documented file of {name}: its SHA-256 is {digest}, expected {sha256}; "
            f"restore it from {source}, or read it with read_table"
        )
    return path


def _installed_copy(file: str) -> Path | None:
    """Return a file of statsmodels' data sets, where that package is installed."""
    package = importlib.util.find_spec("statsmodels")
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        path = Path(folder) / "datasets" / file
        if path.is_file():
            return path
    return None


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


def _top_quarter(values: Any) -> Any:  # noqa: ANN401 (an array or a Series)
    return values >= np.quantile(values, 0.75)


_SKLEARN: dict[str, Callable[[NDArray[Any]], NDArray[np.bool_]]] = {
    "breast_cancer": lambda target: target == 0,
    "diabetes": _top_quarter,
    "digits": lambda target: target == 8,
    "wine": lambda target: target == 1,
}
"""Which rows of the data sets of scikit-learn are positive."""


def _load_packaged(name: str) -> Dataset:
    from sklearn import datasets

    loaders: dict[str, Callable[[], Any]] = {
        "breast_cancer": datasets.load_breast_cancer,
        "diabetes": lambda: datasets.load_diabetes(scaled=False),
        "digits": datasets.load_digits,
        "wine": datasets.load_wine,
    }
    table = loaders[name]()
    # of images of 8 x 8 pixels, the square in the middle
    columns = [8 * row + column for row in range(2, 6) for column in range(2, 6)] if name == "digits" else slice(None)
    names = [str(feature).replace(" ", "_") for feature in np.array(table.feature_names)[columns]]
    return Dataset(name, table.data[:, columns], _SKLEARN[name](table.target), names)


_APLORE = "github.com/lbraglia/aplore3, rawdata/{}, commit f842768f2f1333d2d9cb468b0263655cea018bc5"
_STATSMODELS = "pypi.org/project/statsmodels, version 0.15.0, statsmodels/datasets/{}"
_BROWNLEE = "github.com/jbrownlee/Datasets, {}, commit d20fcb6402ae34e653d4513b00f39257bb37ed7f"

FILES: dict[str, NamedFile] = {
    "abalone19": NamedFile(
        path="abalone19/abalone19.dat",
        sha256="20e02e88285b1811c320a01a9a81e27b5ed96296d494eb2886c5c90332005fa6",
        source="github.com/vlachosg-17/My-Tree, data/abalone19.dat, commit 2a10999849e37d1f3b6ff8b0fb6c7a8fe56b70db",
        shape=(4174, 8, 32),
        label="class",
        prepare=_abalone,
        columns=("sex", "length", "diameter", "height", "whole", "shucked", "viscera", "shell", "class"),
    ),
    "uis": NamedFile(
        path="uis/uis.csv",
        sha256="b9b15f4a2e554928c6e6e8aeebe0abb68e6d89c640770f7be09319065a5b0f4b",
        source="github.com/cran/lsm, data/uis.rda (as CSV), commit 2401bb9f81cf605cf117b1cc1caef8c9d66e02c1",
        shape=(575, 8, 147),
        label="DFREE",
        drop=("ID",),
        prepare=_uis,
    ),
    "travel": NamedFile(
        path="travel/modechoice.csv",
        sha256="d2d72c1db440f8ffce01f58ed39fc1145569ec1703970dac1636c154fc01fd8e",
        source="github.com/statsmodels/statsmodels, statsmodels/datasets/modechoice/modechoice.csv, "
        "commit 82c59e378bdfb5ae324006c477954879ad3e24be",
        shape=(840, 7, 210),
        label="choice",
        drop=("mode",),
        separator=";",
        installed="modechoice/modechoice.csv",
    ),
    "nhanes": NamedFile(
        path="nhanes/NHANES.txt",
        sha256="43f4e8fab0d2c4f17644a5b7523005c9a2d012679b0279d3d3eb09bfba7e508c",
        source=_APLORE.format("NHANES/NHANES.txt"),
        shape=(600, 16, 104),
        label="OBESE",
        drop=("ID", "WT", "HT", "BMI"),
        prepare=lambda table: table.dropna()[:600],
        separator="\t",
    ),
    "pima": NamedFile(
        path="pima/pima-indians-diabetes.csv",
        sha256="6bfe5d0f379d17a0e0819b996407e3c09bf80febd4287f2ed212190dfff154af",
        source=_BROWNLEE.format("pima-indians-diabetes.csv"),
        shape=(768, 8, 268),
        label="diabetes",
        columns=("pregnancies", "glucose", "pressure", "skin", "insulin", "bmi", "pedigree", "age", "diabetes"),
    ),
    "haberman": NamedFile(
        path="haberman/haberman.csv",
        sha256="b4b7a32586a5668f9f4d6dc8be9d1bc8cd4822523affb1f6b5bfc350681ef3e2",
        source=_BROWNLEE.format("haberman.csv"),
        shape=(306, 3, 81),
        label="status",
        positive=2.0,
        columns=("age", "year", "nodes", "status"),
    ),
    "polypharm": NamedFile(
        path="polypharm/POLYPHARM.txt",
        sha256="91cd6cf8ba88af5273b38a12592b8db6aa0e84584f75c1febcbfc1ad3f4f48dd",
        source=_APLORE.format("POLYPHARM/POLYPHARM.txt"),
        shape=(500, 12, 133),
        label="POLYPHARMACY",
        drop=("ID",),
        prepare=lambda table: table[table["YEAR"] == 2007],
        separator="\t",
    ),
    "glow500": NamedFile(
        path="glow500/GLOW500.txt",
        sha256="2dc5325a7c181f6310a87773d374e3e046e04912f18c8d39a55f343cfbef30fa",
        source=_APLORE.format("GLOW/GLOW500.txt"),
        shape=(500, 13, 125),
        label="FRACTURE",
        drop=("SUB_ID",),
        separator="\t",
    ),
    "fair": NamedFile(
        path="fair/fair.csv",
        sha256="fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
        source=_STATSMODELS.format("fair/fair.csv"),
        shape=(6366, 8, 2053),
        label="affairs",
        at_least=1e-9,
        installed="fair/fair.csv",
    ),
    "fair_pt": NamedFile(
        path="fair_pt/fair_pt.csv",
        sha256="44a840ec1f826b91135cd0e929daeb5d11a1194b7b54e5f7d34c05d20ab2d426",
        source=_STATSMODELS.format("fair/fair_pt.csv"),
        shape=(601, 8, 150),
        label="naffairs",
        drop=("identifier", "constant"),
        at_least=1,
        installed="fair/fair_pt.csv",
    ),
    "anes96": NamedFile(
        path="anes96/anes96.csv",
        sha256="c124d8556d6f8c4329b1fea61e3dc6891c5e663f15b7fe5791235963420ba896",
        source=_STATSMODELS.format("anes96/anes96.csv"),
        shape=(944, 9, 393),
        label="vote",
        separator="\t",
        quote="'",
        installed="anes96/anes96.csv",
    ),
    "randhie": NamedFile(
        path="randhie/randhie.csv",
        sha256="9f6c87d05aef087a82cc4465310c8cd3f38327be6eafa43bd81fb98c4f3d088c",
        source=_STATSMODELS.format("randhie/randhie.csv"),
        shape=(2019, 9, 190),
        label="mdvis",
        at_least=8,
        prepare=lambda table: table[::10],
        installed="randhie/randhie.csv",
    ),
    "star98": NamedFile(
        path="star98/star98.csv",
        sha256="fd1fbb29b5356c38c422be100b94c13ac3f99f68330f020b493342a86f9b4c49",
        source=_STATSMODELS.format("star98/star98.csv"),
        shape=(303, 12, 76),
        label="label",
        prepare=_star98,
        installed="star98/star98.csv",
    ),
}

LISTS_BY_QUERY: dict[str, NamedLists] = {
    "lightgbm_lambdarank": NamedLists(
        train="lightgbm_lambdarank/rank.train",
        test="lightgbm_lambdarank/rank.test",
        sha256={
            "lightgbm_lambdarank/rank.train": "a0c7201c89120879c14a5059e091f441cbf2a29b8aaef363885ccb1a530448df",
            "lightgbm_lambdarank/rank.train.query": "40cb5fef637229311cd30fab13cb7fb633b023e86a87ff04ec55db420143d6af",
            "lightgbm_lambdarank/rank.test": "3b1219ce117a0a36d2f76c02de7e7831c1d79af0d40f5195c03178bbe26c824b",
            "lightgbm_lambdarank/rank.test.query": "36dca82ba3bf99201bac3987b00a8fbf6fe5f563e9fa6d0da90e783710a32df4",
        },
        source="github.com/microsoft/LightGBM, examples/lambdarank, commit bae0b7ba953341a32b2a9c5c5c437a1b976f576f",
    ),
}

SLOW = (*_SKLEARN, *LISTS_BY_QUERY)
"""Names of the data sets that scikit-learn reads, which takes a second or more to import."""
