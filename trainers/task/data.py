"""The data of an experiment: read, hashed and split into a training set and a test set.

Rows with queries are split by whole queries, rows that belong together by whole groups. Where a column has their times,
the earliest rows train and the last ones test, whatever their groups. Data that come with a test set are not split.

Commands check tables by this module before anything that takes seconds is imported: it imports torch and scikit-learn
where they are needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, Dataset, Table, half_split, load, load_test, read_data, read_raw_table
from ltr.data.dataset import Features, checked_names, labels_agree
from ltr.data.kinds import MeanEncoding, encode
from ltr.data.labels import note_on_leaks
from ltr.data.named import SLOW
from ltr.data.times import Times, blocks_of
from trainers.config.sections import DataConfig

if TYPE_CHECKING:
    import pandas as pd

    from ltr.data import TablePreparation

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PATHS = ("path", "test_path", "validation_path")
"""Keys of the config's data that name files, or frames in memory."""


@dataclass(frozen=True)
class Labels:
    """What kind of labels the data have."""

    by_query: bool  # whether rows belong to queries
    graded: bool  # whether some labels are above 1


@dataclass(frozen=True)
class Part:
    """A training or test set."""

    X: Features  # features, (n, d)
    y: IntArray  # labels, (n,)
    qid: IntArray | None = None  # number of each row's query, (n,); None without queries
    rows: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # their numbers in the file, from 0
    weight: FloatArray | None = None  # weights in training, (n,); None where all rows count alike
    own_weight: FloatArray | None = None  # those that the table has, without `data.positive_weight`; None likewise
    group: IntArray | None = None  # number of each row's group, which no split divides, (n,); None without groups
    times: Times | None = None  # moment of each row; None without times
    table: Table | None = None  # the user's table, in which the rows are

    def take(self, rows: NDArray[Any] | slice) -> Part:
        """Return the part of some rows, by number, by a mask or by a slice."""
        arrays: tuple[Any, ...] = (self.qid, self.weight, self.own_weight, self.group)
        qid, weight, own, group = (None if array is None else array[rows] for array in arrays)
        times = None if self.times is None else self.times.take(rows)
        numbers = self.rows[rows] if len(self.rows) else self.rows
        return Part(self.X[rows], self.y[rows], qid, numbers, weight, own, group, times, self.table)

    def numbered(self) -> Part:
        """Return the part with its queries numbered from 0."""
        return self if self.qid is None else replace(self, qid=np.unique(self.qid, return_inverse=True)[1])

    @property
    def empty_queries(self) -> int:
        """Number of queries without a label above 0."""
        assert self.qid is not None
        return self.n_queries - len(np.unique(self.qid[self.y > 0]))

    @property
    def n_queries(self) -> int:
        """Number of queries, 1 without queries."""
        return 1 if self.qid is None else len(np.unique(self.qid))


@dataclass(frozen=True)
class Split:
    """The training set and the test set of a data set."""

    train: Part  # set that methods learn from
    test: Part  # set that they never see
    feature_names: tuple[str, ...]  # names of the features
    facts: dict[str, Any]  # name, sizes and sha256 of the whole data, for the run folder
    validation: Part | None = None  # set that trainings stop by, where it has a file of its own
    preparation: TablePreparation | None = None  # what made features of the columns of the user's table
    notes: tuple[str, ...] = ()  # what was found out about that table

    @property
    def tables(self) -> tuple[Table, Table] | None:
        """The user's tables, in which both sets have their rows; None for other data."""
        train, test = self.train.table, self.test.table
        return None if train is None or test is None else (train, test)

    @property
    def parts(self) -> tuple[tuple[str, Part], tuple[str, Part]]:
        """Both sets with their names, ``train`` and ``test``."""
        return ("train", self.train), ("test", self.test)

    @property
    def by_query(self) -> bool:
        """Whether rows belong to queries."""
        return self.train.qid is not None

    @property
    def labels(self) -> Labels:
        """What kind of labels the data have."""
        return Labels(self.by_query, bool(max(self.train.y.max(), self.test.y.max()) > 1))


class Source(NamedTuple):
    """The data that a config's section describes, as they were read: tables of all types, or features and labels."""

    data: Dataset | Table  # the data, which are split where there is no test set
    test: Dataset | Table | None = None  # the test set, where it has a file of its own
    validation: Dataset | Table | None = None  # the validation set, likewise

    @property
    def sha256(self) -> str:
        """One hash of all of them: of their arrays where all columns are numbers, else of the tables' content."""
        tables = [one for one in self if isinstance(one, Table)]
        if all(one.plain and one.weights is None and one.groups is None and one.times is None for one in tables):
            return _sha256(*(one.dataset() if isinstance(one, Table) else one for one in self if one is not None))
        return hashlib.sha256("".join(one.sha256() for one in tables).encode()).hexdigest()


def read_source(options: DataConfig, frames: Mapping[str, pd.DataFrame] | None = None) -> Source:
    """Read the data that a config's section describes; `frames` are tables in memory by the key of their file.

    A `DataError` says what cannot be read, a `TableError` everything that keeps the user's table from being used.
    """
    if options.time_to_event is not None or options.treatment is not None:
        role = "treatment" if options.time_to_event is None else "time_to_event"
        raise DataError(f"data.{role}: runs take plain labels; ltr card makes a card of these")
    if options.path is None:
        assert options.name is not None
        return Source(load(options.name, seed=options.seed), load_test(options.name))
    data = _read(options, "path", frames or {})
    others = [None if getattr(options, key) is None else _read(options, key, frames or {}, data) for key in PATHS[1:]]
    for key, other in zip(PATHS[1:], others, strict=True):
        if other is not None and (data.qid is None) != (other.qid is None):
            neither = options.path if data.qid is None else getattr(options, key)
            raise DataError(f"{neither}: has no queries, which the other file of data.path and data.{key} has")
    return Source(data, *others)


def _read(
    options: DataConfig, key: str, frames: Mapping[str, pd.DataFrame], data: Dataset | Table | None = None
) -> Dataset | Table:
    """Return the data that a key names, in a file or in memory, with the columns of `data` where these come first."""
    if options.file_format != "table":
        features = data.feature_names if isinstance(data, Dataset) else options.features
        return read_data(getattr(options, key), features=features, format=options.format, dtype=options.dtype)
    roles, kinds = options.roles, None
    if isinstance(data, Table):
        kinds = {name: kind for name, kind in data.kinds.items() if not kind.reason}
        roles = replace(roles, weight=None, group=None, features=tuple(kinds), drop=(), numbers=(), categories=())
        roles = replace(roles, time=roles.time if key == "test_path" else None)
    return read_raw_table(frames.get(key, getattr(options, key)), roles, options.reading, kinds=kinds).check()


def is_quick(options: DataConfig) -> bool:
    """Return whether reading the data imports nothing that takes seconds."""
    return options.name not in SLOW if options.path is None else options.file_format == "table"


def split_of(options: DataConfig, seed: int, source: Source | None = None) -> Split:
    """Split the data that a config's section describes, unless a test set comes with them.

    What becomes of the columns of a table, the training set decides. `seed` counts where the section has no
    ``split_seed``; `source` has the data, if they have been read. A `DataError` names a set with nothing to rank.
    """
    seed = seed if options.split_seed is None else options.split_seed
    source = read_source(options) if source is None else source
    table, other, third = (one if isinstance(one, Table) else None for one in source)
    if table is not None and table.plain:
        table.dataset()  # which checks the range of the numbers
    rows = None if source.test is not None else _rows_of_parts(source.data, seed, options.train_fraction)
    if table is not None:
        (data, test, validation), found = _featured(table, other, third, rows)
    else:
        data, test, validation = cast("_Sets", source)
        found = {}
    facts: dict[str, Any] = {"name": data.name, "rows": data.n, "positives": data.n_pos, "sha256": source.sha256}
    if rows is None:
        assert test is not None
        train, held = _part(data, slice(None), table), _part(test, slice(None), other)
        facts["test_rows"] = test.n
    else:
        train, held = (_part(data, members, table) for members in rows)
        facts |= {"split_seed": seed, "training_rows": len(train.y)}
    if data.qid is not None:
        facts |= {"queries": {"train": train.n_queries, "test": held.n_queries}, "query": options.query}
    facts["features"] = list(data.feature_names)
    if options.weighs:
        train = _weighted(train, table, options.positive_weight)
    if options.weight is not None:
        facts["weight"] = options.weight
    if table is not None and table.group_numbers is not None:
        facts |= {"group": options.group, "groups": len(np.unique(table.group_numbers))}
    if train.times is not None and held.times is not None:
        facts |= {"time": options.time, "times": {"train": train.times.span, "test": held.times.span}}
        found["notes"] = (*found["notes"], *_notes_on_times(options, train, held))
    elif table is not None and train.group is None and data.qid is None:
        from ltr.data.similar import note_on_similar_rows, similar_rows

        if (similar := similar_rows(data.X)) is not None:
            note = note_on_similar_rows(data.n, int(similar.max()) + 1, "data.group")
            found["notes"] = (*found["notes"], note)
    if validation is not None:
        facts["validation_rows"] = validation.n
        found["validation"] = _part(validation, slice(None), third)
    if table is not None:
        labels = table.labels
        facts["label"] = {"column": options.label, "positive": None if labels is None else labels.positive}
    if options.dtype != "auto":
        facts["dtype"] = options.dtype
    if options.missing:
        facts["reading"] = {"missing": list(options.missing)}
    return Split(train, held, data.feature_names, facts, **found)


_Sets = tuple[Dataset, Dataset | None, Dataset | None]


def _featured(
    table: Table, other: Table | None, third: Table | None, rows: Sequence[IntArray] | None
) -> tuple[_Sets, dict[str, Any]]:
    """Return the tables as data sets of features, and what a `Split` says about them."""
    training = slice(None) if rows is None else rows[0]
    preparation = table.preparation(training)
    data = _prepared(table, preparation, training)
    test, validation = (None if one is None else _prepared(one, preparation) for one in (other, third))
    numbers = table.in_file(np.arange(data.n)[training])
    left_out = ", ".join(f"{name!r} ({reason})" for name, reason in preparation.left_out_.items())
    notes = [
        *table.notes,
        f"left out: {left_out}" if left_out else None,
        note_on_leaks(data.X[training], data.y[training], data.feature_names, numbers),
        note_on_repeats(table, table if other is None else other, rows),
    ]
    return (data, test, validation), {"preparation": preparation, "notes": tuple(filter(None, notes))}


def whole_table(options: DataConfig, table: Table) -> tuple[Part, TablePreparation]:
    """Return all labelled rows of a table as a training set, with what makes features of its columns."""
    preparation = table.preparation(slice(None))
    part = _part(_prepared(table, preparation, slice(None)), slice(None), table)
    return _weighted(part, table, options.positive_weight) if options.weighs else part, preparation


def inner_splits(split: Split, share: float, count: int, seed: int, *, own_rows: bool = False) -> list[Split]:
    """Divide the training set again, so that options can be compared without the test set.

    `share` is that of the training groups or queries, or without them of the rows of each label, in the test set of
    each of the `count` inner splits; with times see `_inner_rows`. A validation set with a file of its own is the test
    set of the only inner split, unless `own_rows`. A `DataError` says that a set would have nothing to rank.
    """

    def inner(train: Part, test: Part, name: str, found: dict[str, Any]) -> Split:
        facts = {**split.facts, "sha256": hashlib.sha256(f"{split.facts['sha256']} {name}".encode()).hexdigest()}
        facts |= {"features": list(found.get("feature_names", split.feature_names)), "inner": name}
        return replace(split, train=train, test=test, validation=None, facts=facts, **found)

    if split.validation is not None and not own_rows:
        return [inner(split.train, split.validation, "validation set", {})]
    splits, train = [], split.train
    table = train.table
    for name, learned, held in _inner_rows(train, share, count, seed):
        X, found = train.X, dict[str, Any]()
        if table is not None and not table.plain:
            preparation = table.preparation(train.rows[learned])
            data = _prepared(table, preparation, train.rows[learned])
            X = data.X[train.rows]
            found = {"feature_names": data.feature_names, "preparation": preparation}
        whole = replace(train, X=X)
        one, other = whole.take(learned).numbered(), replace(whole, weight=None, own_weight=None).take(held).numbered()
        splits.append(inner(one, other, name, found))
    return splits


def _inner_rows(
    train: Part, share: float, count: int, seed: int
) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield inner splits of a training set: their names, the rows to learn from, and those held out.

    With times these are the last `count` blocks of the rows, each of that share, or of as much as is before all of
    them; all rows before a block learn. Moments are not divided, so there may be fewer.
    """
    from ltr.fitting import held_out
    from ltr.fitting.validation import nothing_to_rank

    labels, found = train.y.astype(np.float64), 0
    rule = f"tune.validation: a share of {share} would leave nothing to rank in a part of the training set"
    if train.times is None:
        for at in range(seed, seed + count):
            held = held_out(labels, train.qid, train.group, share, at)
            if held is None:
                raise DataError(f"{rule}; change it, or tune.seed")
            yield f"{share} {at}", ~held, held
        return
    width = min(share, 1 / (count + 1))
    blocks = blocks_of(train.times.numbers, [1 - width * block for block in range(count, 0, -1)])
    for block in range(1, blocks.max() + 1):
        learned, held = blocks < block, blocks == block
        if not any(nothing_to_rank(rows, labels, train.qid) for rows in (learned, held)):
            found += 1
            yield f"{share} {count} {block}", learned, held
    if not found:
        raise DataError(f"{rule}, in whole moments of data.time; change it, or tune.splits")


def _rows_of_parts(data: Dataset | Table, seed: int, train_fraction: float) -> list[IntArray]:
    """Return the rows of the training set and those of the test set."""
    y, qid = data.y, data.qid
    times = data.times if isinstance(data, Table) else None
    groups = data.group_numbers if isinstance(data, Table) and times is None else None
    if times is not None and times.numbers.min() == times.numbers.max():
        rule = f"all rows have the time {times.span}, which cannot be split; give the test set as data.test_path"
        raise DataError(f"data.time: {rule}")
    for key, what, known in (("data", "query", qid), ("data.group", "group", groups)):
        if known is not None and known.max() < 1:
            raise DataError(f"{key}: a single {what} cannot be split; give the test set as data.test_path")
    advice = "change data.split_seed or data.train_fraction"
    units = qid if groups is None else groups
    n = len(y) if units is None else int(units.max()) + 1
    divided = np.split(np.concatenate(half_split(n, seed)), [int(n * train_fraction)])
    parts = divided
    if times is not None:
        later = blocks_of(times.numbers, [train_fraction])
        parts, advice = [np.flatnonzero(later == 0), np.flatnonzero(later)], "change data.train_fraction"
    elif units is not None:  # unit after unit, each in the order of the file
        by_unit = np.split(np.argsort(units, kind="stable"), np.cumsum(np.bincount(units))[:-1])
        parts = [np.concatenate([np.empty(0, np.int64), *(by_unit[unit] for unit in some)]) for some in divided]
    for name, rows, members in zip(("training", "test"), parts, divided, strict=True):
        if len(rows) and not labels_agree(y[rows], None if qid is None else qid[rows]):
            continue
        if qid is None:
            found = f"only label {y[rows[0]]}" if len(rows) else "no rows"
            of = f"{len(rows)} of {len(y)} rows, {int((y > 0).sum())} positive in all"
        else:
            found, of = "no query with two different labels", f"{len(np.unique(qid[rows]))} of {qid.max() + 1} queries"
            of = of if groups is None else f"{len(members)} of {n} groups"
        raise DataError(f"data: the {name} set holds {found} ({of}); {advice}")
    return parts


def _notes_on_times(options: DataConfig, train: Part, test: Part) -> Iterator[str]:
    """Yield what a user should know about the times of both sets."""
    earlier, later = train.times, test.times
    assert earlier is not None
    assert later is not None
    yield f"in the order of {options.time}: trained on {earlier.span}, tested on {later.span}"
    if train.group is not None and test.group is not None and len(both := np.intersect1d(train.group, test.group)):
        yield f"{len(both)} of the groups of {options.group} have rows in both sets: data.time divides by time alone"
    last, first = earlier.moments[earlier.numbers.max()], later.moments[later.numbers]
    if type(last) is type(first[0]) and (early := int((first <= last).sum())):
        yield f"{early} rows of the test set are not later than all rows of the training set"


def _weighted(train: Part, table: Table | None, positive: float | str | None) -> Part:
    """Return the training rows with their weights: those of the table, times that of the positives."""
    given = None if table is None else table.weights
    weights = np.ones(len(train.y)) if given is None else given[train.rows]
    kept, above = weights > 0, train.y > 0
    lists = None if train.qid is None else train.qid[kept]
    if not kept.any() or labels_agree(train.y[kept], lists):
        rule = "must hold two different labels in some list"
        raise DataError(f"data: the training rows whose weight is not zero {rule}, got {kept.sum()} such rows")
    if positive == "balanced":
        positive = float(weights[~above].sum() / weights[above].sum()) if (kept & ~above).any() else 1.0
    both = weights if positive is None else np.where(above, float(positive), 1.0) * weights
    return replace(train, weight=both, own_weight=weights)


def _part(data: Dataset, rows: IntArray | slice, table: Table | None) -> Part:
    """Return some rows of the data as a set, with the groups and times that their table has."""
    part = Part(data.X[rows], data.y[rows], None if data.qid is None else data.qid[rows], np.arange(data.n)[rows])
    if table is not None:
        times = None if table.times is None else table.times.take(part.rows)
        groups = None if table.group_numbers is None else table.group_numbers[rows]
        part = replace(part, group=groups, times=times, table=table)
    return part.numbered()


def _sha256(*sets: Dataset) -> str:
    """Return one hash of the arrays' types, shapes and bytes."""
    digest = hashlib.sha256()
    for array in (array for part in sets for array in (part.X, part.y, part.qid) if array is not None):
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def as_pandas(frame: Any, key: str) -> pd.DataFrame:  # noqa: ANN401  (a frame of any library)
    """Return a data frame of any library as one of pandas, with texts as names of the columns; `key` names it."""
    import narwhals.stable.v2 as narwhals
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        other = narwhals.from_native(frame, eager_only=True)
        frame = pd.DataFrame({name: other[name].to_numpy() for name in other.columns})
    if frame.empty:
        raise DataError(f"data.{key}: the data frame has no rows or no columns, got shape {frame.shape}")
    return frame.set_axis(list(checked_names([str(name) for name in frame.columns], f"data.{key}")), axis=1)


def _prepared(table: Table, preparation: TablePreparation, training: IntArray | slice | None = None) -> Dataset:
    """Return the features of a table; training rows that the preparation learned from get mean labels of other rows."""
    if training is not None and table.plain:
        return table.dataset()
    X = encode(table.candidates, preparation.encodings_, table.where, new_values=training is not None)
    if training is not None and any(isinstance(one, MeanEncoding) for one in preparation.encodings_):
        columns = {one.column: table.columns[one.column].take(training) for one in preparation.encodings_}
        groups = table.qid if table.group_numbers is None else table.group_numbers
        groups = None if groups is None else groups[training]
        times = None if table.times is None else table.times.numbers[training]
        X[training] = preparation.cross_fitted(
            X[training], columns, table.y[training].astype(np.float64), groups, times
        )
    return table.dataset(X, preparation.get_feature_names_out().tolist())


def note_on_repeats(table: Table, other: Table, parts: Sequence[IntArray] | None) -> str | None:
    """Return a note on rows of the test set, of `other`, that are in the training set, too, with the same label.

    `parts` are the rows of both sets, where they are of one table.
    """
    names = [name for name in table.kinds if name in other.kinds]
    if parts is not None and not any(table.columns[name].different > 0.25 * len(table.y) for name in names):
        return None  # rows of few values are alike by chance
    sets: Sequence[IntArray | slice] = (slice(None), slice(None)) if parts is None else parts
    found = [_hashes(one, names, rows) for one, rows in zip((table, other), sets, strict=True)]
    repeats = np.flatnonzero(np.isin(found[1], found[0]))
    if not len(repeats):
        return None
    numbers = other.in_file(repeats if parts is None else parts[1][repeats])[:3] + 1
    shown = ", ".join(map(str, numbers)) + (", ..." if len(repeats) > 3 else "")
    all_of = "all" if len(repeats) == len(found[1]) else f"{len(repeats)} of"
    rule = f"{all_of} {len(found[1])} rows of the test set are rows of the training set, too ({shown})"
    return f"{rule}: results on them say nothing about new rows"


def _hashes(table: Table, names: Sequence[str], rows: IntArray | slice) -> NDArray[np.uint64]:
    """Return a hash of the cells and the label of each of some rows."""
    import pandas as pd

    cells = {name: table.columns[name].take(rows) for name in names}
    frame = {name: column.texts if column.numbers is None else column.numbers for name, column in cells.items()}
    hashed = pd.util.hash_pandas_object(pd.DataFrame({**frame, "": table.y[rows]}), index=False)
    return np.asarray(hashed.to_numpy())
