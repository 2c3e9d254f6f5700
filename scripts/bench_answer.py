"""How `AutoRanker` and the methods that analysts use rank new rows: each method on one split of a table.

Every peer chooses its `options` by cross-validation in five parts, by average precision, or by NDCG@10 of lists. A
record, one line of ``docs/answer/results.jsonl``, has rows and hits of `train` and `test`, and the `measures` on the
test set: `dcg` (base 2, labels 0 and 1), `hits 5%` and `hits 10%`, or with queries `ndcg@10` (gain 2^label - 1), a mean
over lists with a hit. Among tied scores they are those to expect if ties are broken at random. `AutoRanker` has, too:
`values`, the mean statistic of each method out of fold; `chosen`; `members`, the measures of each method by itself; and
`promised`, for 5% and 10% the hits to expect, and the least and the most by the 90% interval.

*Data.* Tables come from scikit-learn and statsmodels, or from the files in `LTR_DATA`; nothing is downloaded. One of
more than `MOST` rows is cut to `MOST` of them, drawn with seed 0. Columns of words become 0/1 columns, without the
first value of each; columns of codes stay numbers. In ``answer/tables.csv``, `path` is a file in LTR_DATA or in the
package statsmodels, otherwise the name is that of `ltr.data.load`. `hit` is an expression of pandas; columns named in
it, or in `drop`, are no features, rows with a missing value in the others are left out, and so are the first `skip`
complete rows. `what` says what a hit is, `seen` whether options of `AutoRanker` were chosen on the table, on splits 0
to 3 and 10 to 12, and `queries` whether there is a list for each query; otherwise all rows are one list.
"""

from __future__ import annotations

import csv
import functools
import importlib
import importlib.util
import os
import time
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ltr.data import Dataset, load, load_test
from ltr.metrics import ndcg
from ltr.rankers import AutoRanker
from scripts._bench import Bench, FloatArray, IntArray, Json, grid, halves, take, whole
from trainers.report.paired import paired
from trainers.tables import markdown_table

_FOLDER = Path(__file__).with_name("answer")
AUTO, LOGISTIC, LISTWISE = "AutoRanker", "logistic regression", "LightGBM lambdarank"
BEST = "its best method out of fold"
"""Name of the method of `AutoRanker` with the largest statistic out of fold."""
SHARES = {"5%": 0.05, "10%": 0.1}


# --- tables and lists -------------------------------------------------------------------------------------------------

MOST = 3_000


@dataclass(frozen=True)
class Table:
    """A line of ``answer/tables.csv``."""

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
            full = take(full, np.sort(np.random.default_rng(0).permutation(full.n)[:MOST]))
        return halves(full, split)

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
    "lightgbm_lambdarank": lambda: whole(load("lightgbm_lambdarank"), load_test("lightgbm_lambdarank")),
}
with (_FOLDER / "tables.csv").open(encoding="utf-8") as _file:
    BY_NAME = {line["name"]: Table(**line) for line in csv.DictReader(_file)}
TABLES, LISTS = ([one for one in BY_NAME.values() if bool(one.queries) == lists] for lists in (False, True))


# --- measurements -----------------------------------------------------------------------------------------------------

_FOLDS = 5


@dataclass(frozen=True)
class Peer:
    """A method of ``answer/peers.toml``."""

    kind: str
    fixed: Json
    grid: Json
    lists: str = ""
    quick: Json = field(default_factory=dict)

    def fit(self, options: Json, train: Dataset, seed: int) -> Any:  # noqa: ANN401 (any estimator)
        """Return the estimator fitted to rows, which follow each other by list."""
        module, _, kind = self.kind.partition(":")
        model = getattr(importlib.import_module(module), kind)(**{**self.fixed, **options}, random_state=seed)
        if kind == "LogisticRegression":
            model = make_pipeline(StandardScaler(), model)
        if not self.lists:
            return model.fit(train.X, train.y)
        qid = np.zeros(train.n, dtype=np.int64) if train.qid is None else train.qid
        sizes = np.unique(qid, return_counts=True)[1]
        return model.fit(train.X, train.y, **{self.lists: sizes if self.lists == "group" else qid})

    def tuned(self, train: Dataset, seed: int) -> tuple[Any, Json]:
        """Return the estimator with the best options of the grid, and these options."""
        best, *others = every = grid(**self.grid)
        if others:
            parts = [[take(train, at) for at in part] for part in _folds(train, seed)]
            values = []
            for options in every:
                models = [(self.fit(options | self.quick, learn, seed), held) for learn, held in parts]
                values.append(np.mean([_quality(scores_of(model, held.X), held) for model, held in models]))
            best = every[int(np.argmax(values))]
        return self.fit(best, train, seed), best


with (_FOLDER / "peers.toml").open("rb") as _file:
    PEERS, PEERS_OF_LISTS = (
        {name: Peer(**peer) for name, peer in peers.items()} for peers in tomllib.load(_file).values()
    )


def measure(table: str, split: int, ranker: str) -> Json:
    """Return what came of a method on a split, whose number is also the seed of the method."""
    train, test = BY_NAME[table].halves(split)
    started = time.process_time()
    warnings.simplefilter("ignore")  # columns without names, classes that a fold does not have, ends of iterations
    if ranker == AUTO:
        found = _of_auto(train, test, split)
    else:
        model, options = (PEERS if train.qid is None else PEERS_OF_LISTS)[ranker].tuned(train, split)
        found = {"measures": measures(scores_of(model, test.X), test), "options": options}
    seconds = round(time.process_time() - started, 2)
    return {"train": [train.n, train.n_pos], "test": [test.n, test.n_pos], **found, "seconds": seconds}


def _of_auto(train: Dataset, test: Dataset, seed: int) -> Json:
    ranker = AutoRanker(seed=seed).fit(train.X, train.y, train.qid)
    scores = ranker.decision_function(test.X)
    members = ranker.scores_of_members(test.X, test.qid)
    found: Json = {
        "measures": measures(scores, test),
        "chosen": ranker.comparison_.chosen,
        "values": {name: round(value, 6) for name, value in ranker.comparison_.values.items()},
        "members": {name: measures(own, test) for name, own in members.items()},
    }
    if test.qid is None:
        first = np.sort(scores)[::-1]
        promised = {name: ranker.calibration_.predictive_interval(first[:k]) for name, k in _lengths(test.n).items()}
        found["promised"] = {name: [round(expected, 3), low, high] for name, (expected, low, high) in promised.items()}
    return found


def _lengths(n: int) -> dict[str, int]:
    return {name: max(1, round(share * n)) for name, share in SHARES.items()}


def measures(scores: FloatArray, test: Dataset) -> Json:
    """Return the measures of an order of the test set, those to expect if ties are broken at random."""
    if test.qid is not None:
        return {"ndcg@10": _quality(scores, test)}
    places = np.arange(test.n)
    found = {"dcg": _expected(scores, test.y, 1 / np.log2(2 + places))}
    for name, k in _lengths(test.n).items():
        found[f"hits {name}"] = _expected(scores, test.y, places < k)
    return found


def _expected(scores: FloatArray, labels: FloatArray, weights: NDArray[Any]) -> float:
    """Return the sum of the weights of the hits' places; tied rows share the weights of their places."""
    order = np.argsort(-scores, kind="stable")
    runs = np.unique(-scores[order], return_inverse=True)[1]
    means = np.bincount(runs, weights) / np.bincount(runs)
    return round(float(means[runs] @ (labels[order] > 0)), 6)


def scores_of(model: Any, X: FloatArray) -> FloatArray:  # noqa: ANN401 (any estimator)
    """Return the scores by which a fitted estimator ranks rows."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X)[:, 1], dtype=np.float64)
    return np.asarray(model.predict(X), dtype=np.float64)


def _folds(train: Dataset, seed: int) -> list[tuple[IntArray, IntArray]]:
    if train.qid is not None:
        return list(GroupKFold(_FOLDS, shuffle=True, random_state=seed).split(train.X, train.y, train.qid))
    parts = max(2, min(_FOLDS, train.n_pos, train.n - train.n_pos))
    return list(StratifiedKFold(parts, shuffle=True, random_state=seed).split(train.X, train.y))


def _quality(scores: FloatArray, held: Dataset) -> float:
    """Return average precision, or NDCG@10 as a mean over the lists with a hit."""
    if held.qid is None:
        return float(average_precision_score(held.y, scores))
    given = torch.from_numpy(scores), torch.from_numpy(np.asarray(held.y, dtype=np.float64))
    found = ndcg(*given, qid=torch.from_numpy(held.qid), k=10, gain="exp2", ties="average")
    return round(float(found.nanmean()), 6)


# --- the page ---------------------------------------------------------------------------------------------------------

DRAWS, LEVEL = 10_000, 0.01
_RATIOS = ("dcg", "ndcg@10")
_DCG, _HITS = "+dcg", "+hits 10%"


def texts(records: Sequence[Json]) -> dict[str, str]:
    """Return the text of each table of which there are records, by name."""
    lists = {table.name for table in LISTS}
    single = [record for record in records if record["table"] not in lists]
    made: dict[str, tuple[Callable[[list[Json]], str], list[Json]]] = {
        "answer-summary": (_summary, single),
        "answer-promises": (_promises, [record for record in single if record["ranker"] == AUTO]),
        "answer-tables": (_by_table, single),
        "answer-queries": (_queries, [record for record in records if record["table"] in lists]),
    }
    return {name: make(some) for name, (make, some) in made.items() if some}


def compared(records: Sequence[Json], base: str) -> pd.DataFrame:
    """Return a frame with the measures of each ranker on each split, and how far they are above those of the base.

    The rankers include the method of `AutoRanker` that is best out of fold. A column such as ``+dcg`` has the
    difference to the base, in percent of its DCG or NDCG. Splits on which the base was not measured are left out.
    """
    rows: list[Json] = []
    for record in records:
        where = {name: record[name] for name in ("table", "split", "seconds")}
        rows.append({"ranker": record["ranker"], **where, **record["measures"]})
        if members := record.get("members"):
            best = max(members, key=record["values"].__getitem__)
            rows.append({"ranker": BEST, **where, "seconds": np.nan, **members[best]})
    frame = pd.DataFrame(rows)
    measures = [name for name in frame if name in _RATIOS or name.startswith("hits ")]
    of_base = frame.loc[frame["ranker"] == base, ["table", "split", *measures]]
    joined = frame.merge(of_base, on=["table", "split"], suffixes=("", " of base"))
    for name in measures:
        other = joined[f"{name} of base"]
        joined[f"+{name}"] = (joined[name] - other) * (100 / other if name in _RATIOS else 1.0)
    place = {AUTO: 0, BEST: 1}
    return joined.sort_values("ranker", key=lambda names: names.map(lambda name: place.get(name, 2)), kind="stable")


def shown(values: ArrayLike) -> str:
    """Return whether differences over splits are shown to be ``below`` or ``above`` 0 on average, or nothing."""
    one = paired(values, np.zeros(len(values)), overlap=1.0, fewest=2)
    if not one.p / 2 < LEVEL:  # not enough splits: NaN
        return ""
    return "above" if one.difference > 0 else "below"


def _with_interval(values: pd.Series, form: str = "{:+.2f}") -> str:
    """Return the mean over tables, and its 95 % interval by bootstrap."""
    if not len(values):
        return ""
    rng = np.random.default_rng(0)
    means = values.to_numpy()[rng.integers(len(values), size=(DRAWS, len(values)))].mean(axis=1)
    return "{} [{}, {}]".format(*map(form.format, (values.mean(), *np.percentile(means, [2.5, 97.5]))))


def _about(records: Sequence[Json]) -> str:
    tables, splits = {one["table"] for one in records}, sorted({one["split"] for one in records})
    commits = ", ".join(f"`{name}`" for name in dict.fromkeys(one["commit"] for one in records))
    pairs = len({(one["table"], one["split"]) for one in records})
    return (
        f"Tables: {len(tables)}; splits: {', '.join(map(str, splits))}; pairs of table and split: {pairs}; "
        f"commit: {commits}.\n\n"
    )


def _summary(records: list[Json]) -> str:
    rows = []
    for ranker, own in compared(records, LOGISTIC).groupby("ranker", sort=False):
        if ranker == LOGISTIC:
            continue
        means = own.groupby("table")[[_DCG, _HITS]].mean()
        dcg, verdicts = means[_DCG], own.groupby("table")[_DCG].apply(shown)
        new = dcg[[not BY_NAME[table].seen for table in dcg.index]]
        cells = [_with_interval(dcg), f"{dcg.median():+.2f}", _with_interval(new), f"{dcg.min():+.2f} {dcg.idxmin()}"]
        cells += [str((verdicts == way).sum()) for way in ("below", "above")]
        seconds = own["seconds"].mean()
        rows.append([ranker, *cells, _with_interval(means[_HITS]), "" if np.isnan(seconds) else f"{seconds:.1f}"])
    header = ["ranking", "DCG, %", "median", "DCG, %, new tables", "worst", "below", "above", "hits, first 10%", "s"]
    return _about(records) + markdown_table(header, rows, left=1)


def _promises(records: list[Json]) -> str:
    rows = []
    for share in SHARES:
        frame = pd.DataFrame([record["promised"][share] for record in records], columns=["expected", "low", "high"])
        frame["came"] = [record["measures"][f"hits {share}"] for record in records]
        inside = frame["came"].between(frame["low"], frame["high"]).astype(float)
        held = inside.groupby([record["table"] for record in records]).mean()
        means = [f"{frame['expected'].mean():.2f}", f"{frame['came'].mean():.2f}"]
        means.append(f"{(frame['high'] - frame['low']).mean():.1f}")
        least = f"{held.min():.0%} {held.idxmin()}"
        rows.append([share, str(len(frame)), *means, _with_interval(held, "{:.1%}"), least])
    header = ["first", "pairs", "hits expected", "hits observed", "width", "in the 90 % interval", "worst table"]
    return markdown_table(header, rows, left=1)


def _by_table(records: list[Json]) -> str:
    frame, rows = compared(records, LOGISTIC), []
    means = frame.groupby(["table", "ranker"], sort=False)[[_DCG, _HITS]].mean()
    for table in [name for name in BY_NAME if (name, AUTO) in means.index]:
        of, own = means.loc[table], frame[(frame["table"] == table) & (frame["ranker"] == AUTO)]
        others = of[_DCG].drop([AUTO, BEST, LOGISTIC])
        cells = [str(len(own)), f"{of[_DCG][AUTO]:+.2f}", shown(own[_DCG]), f"{of[_DCG][BEST]:+.2f}"]
        cells += [f"{others.max():+.2f} {others.idxmax()}" if len(others) else "", f"{of[_HITS][AUTO]:+.2f}"]
        rows.append([table, *cells])
    header = ["table", "splits", AUTO, "shown", BEST, "best peer, in hindsight", "hits, first 10%"]
    return markdown_table(header, rows, left=1)


def _queries(records: list[Json]) -> str:
    rows = []
    for (table, ranker), own in compared(records, LISTWISE).groupby(["table", "ranker"], sort=False):
        gains = own["+ndcg@10"]
        cells = [str(len(own)), f"{own['ndcg@10'].mean():.4f}", f"{gains.mean():+.2f}", shown(gains)]
        rows.append([table, ranker, *cells])
    rows.sort(key=lambda row: [*BY_NAME].index(row[0]))
    header = ["lists", "ranking", "splits", "NDCG@10", f"% beyond {LISTWISE}", "shown"]
    return _about(records) + markdown_table(header, rows, left=2)


_REQUESTS = grid(split=range(20, 30), table=[one.name for one in TABLES], ranker=[*PEERS, AUTO])
_REQUESTS += grid(split=range(20, 30), table=[one.name for one in LISTS], ranker=[*PEERS_OF_LISTS, AUTO])
_QUICK = {"table": ["pima", "wine", "travellers"], "split": ["25"], "ranker": [AUTO, LOGISTIC, LISTWISE]}
BENCH = Bench("answer", "docs/answer.md", _REQUESTS, _QUICK, measure, texts, kept="docs/answer/results.jsonl")
