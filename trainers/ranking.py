"""The command ``ltr rank`` and `ltr.rank`: from a table and a number of visits to the page of a list.

`read_given` reads and checks everything before anything is imported that takes seconds, `rank_given` fits the methods,
and a `Ranking` is what comes of it. `trainers.run.page` makes the same of a run.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import doubles, nearest
from ltr.data import DataError, Table, TableError, read_raw_table
from ltr.data.columns import Column
from ltr.data.dataset import Features
from ltr.data.kinds import Encoding, NumberEncoding, encode, encodings_of, kind_of, notes_on
from ltr.data.labels import leaks
from ltr.data.problems import Problem, listed, unknown
from ltr.data.table_files import FRAME, GivenTable, open_table
from ltr.list_demands import GivenDemands, read_list_demands
from ltr.weight_constraints import WeightConstraints, read_constraints
from trainers.config import AUTO, Config
from trainers.config.errors import ConfigError, Finding
from trainers.files import RunError
from trainers.ranking_files import Ranking
from trainers.task.data import Labels, Part, whole_table
from trainers.task.options import findings_of_columns, follow_labels

if TYPE_CHECKING:
    import pandas as pd

    from ltr.answer import Evidence, Learned
    from ltr.answer.answer import Listed
    from ltr.data import TablePreparation
    from ltr.rankers import AutoRanker, ConstraintCheck, Ranker
    from trainers.display import Display

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_PRICED = 2_000  # rows up to which the price of constraints is stated without being asked for

NEW = "new"
"""Key of a frame with the rows to rank."""


@dataclass(frozen=True, eq=False)
class RawRows:
    """Rows of a table as they are, to be ranked."""

    listed: Listed  # which rows they are
    given: GivenTable  # their table
    rows: IntArray  # their numbers in it, from 0
    columns: Mapping[str, Column]  # their cells
    queries: NDArray[Any] | None = None  # the query of each row; None for one list


@dataclass(frozen=True, eq=False)
class Given:
    """What a ranking is made of, read and checked."""

    config: Config
    table: Table  # the labelled rows
    raw: RawRows | None  # the rows to rank; None for the labelled rows themselves


def checked_name(stem: str) -> str:
    """Return a name for the config of a table, such as ``my_patients_2_`` for a file "my patients (2)"."""
    name = re.sub(r"[^\w.+-]+", "_", stem)
    return name if name[:1] not in ("", ".", "-") else f"table{name}"


def name_of(where: str) -> str:
    """Return what a page calls a table."""
    return "the data frame" if where == FRAME else Path(where).name


def read_given(config: Config, frames: Mapping[str, pd.DataFrame] | None = None) -> Given:
    """Read the table that a config describes, and the rows to rank; in memory they are the frames "path" and "new"."""
    frames, data = frames or {}, config.data
    if data.path is None or data.file_format == "svmlight":
        rule = "must be a table: the page names rows and their columns"
        raise ConfigError("ltr rank", [Finding("data.path", rule, data.path or data.name)])
    today = [] if config.baselines.auto.today is None else [config.baselines.auto.today]
    numbers = tuple(dict.fromkeys([*data.numbers, *today]))
    features = None if data.features is None else tuple(dict.fromkeys([*data.features, *today]))
    roles = replace(data.roles, unlabelled=True, numbers=numbers, features=features)
    table = read_raw_table(frames.get("path", str(data.path)), roles, data.reading)
    problems = [*table.problems, *problems_of_answer(table, config)]
    if config.answer.visits is None:
        rule = "the number of rows that you can visit is needed: --visits K, or answer.visits in a config"
        problems.append(Problem(rule))
    replace(table, problems=tuple(problems)).check()
    table, config = _without_ids(table, config)
    config = follow_labels(config, Labels(table.queries is not None, bool(table.y.max() > 1)))
    if table.labels is not None and table.labels.positive is not None:
        config = config.changed("data", positive=table.labels.positive)  # `ltr outcome` reads labels by it
    raw = rows_to_rank(config, table, frames.get(NEW))
    if raw is not None:
        encodings = encodings_of(table.columns, table.kinds, table.y.astype(np.float64))[0]
        check_rows(raw, encodings, config.answer.id, new_values=config.answer.new_values)
    return Given(config, table, raw)


def problems_of_answer(table: Table, config: Config) -> Iterator[Problem]:
    """Yield what is wrong with the columns that a page is asked for."""
    today = config.baselines.auto.today
    for what, name in (("column of today's scores", today), ("column of ids", config.answer.id)):
        if name is not None and name not in table.columns:
            yield unknown(what, name, table.columns, hint=nearest(name, table.columns))
        elif name is not None and name == today and name not in table.kinds:
            yield Problem(f"column {name!r} has today's scores, so it must be neither dropped nor the label")
    if today in table.kinds and not table.kinds[today].is_number:
        texts = table.columns[today].others()
        yield Problem(f"column {today!r}: today's scores must be numbers, got {listed(texts) or 'none'}")


def _without_ids(table: Table, config: Config) -> tuple[Table, Config]:
    """Return a table without the columns that name rows, and the config that leaves them out and has the best one."""
    asked = {*config.data.numbers, *config.data.categories, *(config.data.features or ()), config.baselines.auto.today}
    alike = [name for name, one in table.candidates.items() if table.plain and kind_of(one).is_id and name not in asked]
    ids, named = [name for name, kind in table.kinds.items() if kind.is_id], config.answer.id
    dropped = [name for name in dict.fromkeys([named, *alike]) if name in table.kinds and name not in ids]
    identity = named or next(iter([*dropped, *ids]), None)
    if not dropped or len(dropped) == len(table.kinds):
        return table, config if identity == named else config.changed("answer", id=identity)
    table = replace(table, kinds={name: kind for name, kind in table.kinds.items() if name not in dropped})
    left_out = tuple(dict.fromkeys([*config.data.drop, *dropped]))
    return table, config.changed("data", drop=left_out).changed("answer", id=identity)


def rows_to_rank(config: Config, table: Table | None, new: pd.DataFrame | None = None) -> RawRows | None:
    """Return the rows to rank: new ones, in memory or named by the config, else those of `table` without a label."""
    source, query = config.answer.new if new is None else new, config.data.query
    if source is not None:
        kinds = {} if table is None else table.kinds
        return new_rows(config, source, {name for name, kind in kinds.items() if kind.plain})
    if table is None or table.rows is None:
        return None
    if query is None and table.queries is not None:
        rule = "rows without a label need a query column, not a file of sizes beside the table"
        raise DataError(f"{table.where}: {rule}")
    given = table.given
    rows = np.setdiff1d(np.arange(len(given)), table.rows)
    columns = {name: column.take(rows) for name, column in given.columns.items()}
    queries = None if query is None else np.asarray(columns[query].cells)
    return RawRows("unlabelled", given, rows, columns, queries)


def new_rows(config: Config, source: pd.DataFrame | str, plain: Collection[str]) -> RawRows:
    """Read new rows from a frame or a file; `plain` columns are numbers with a decimal point."""
    query = config.data.query
    given = open_table(source, config.data.reading, ids=query, numbers=plain)
    return RawRows("new", given, np.arange(len(given)), given.columns, None if query is None else given.queries(query))


def check_rows(
    raw: RawRows, encodings: Sequence[Encoding], identity: str | None, *, new_values: bool = False
) -> FloatArray:
    """Return the features of rows to rank, and report at once all that keeps them from being used."""
    problems: list[Problem] = []
    if identity is not None and identity not in raw.columns:
        problems.append(unknown("column of ids", identity, raw.columns))
    try:
        features = encode(raw.columns, encodings, raw.given.where, new_values=new_values)
    except TableError as error:
        problems += error.problems
    if problems:
        raise TableError(raw.given.where, problems)
    return features


def rank_given(given: Given, display: Display) -> Ranking:
    """Fit the methods, and return the ranking; a `RunError` says why one cannot be fitted."""
    import pandas as pd

    from ltr.data.similar import similar_rows
    from ltr.rankers import AutoRanker
    from trainers.methods import first_stage_ranker, fit_auto

    config, table = given.config, given.table
    part, preparation = whole_table(config.data, table)
    names = preparation.get_feature_names_out().tolist()
    asked = any([*config.exact.column_constraints().values(), config.exact.demands])
    if asked and (findings := findings_of_columns(config, names, [table])):
        raise ConfigError("ltr rank", findings)
    kept = np.ones(len(part.y), dtype=bool) if part.weight is None else part.weight > 0
    part = part.take(np.flatnonzero(kept))
    hits = int((part.y > 0).sum())
    display.note(f"{name_of(table.where)}: {len(part.y):,} rows with a label, {hits:,} of them hits")

    def fitted(constraints: WeightConstraints | None, what: str) -> AutoRanker:
        ranker = first_stage_ranker(config, AUTO)
        assert isinstance(ranker, AutoRanker)
        if constraints is not None:
            ranker.set_params(**constraints.parameters)
        display.begin(what, None)

        frame = pd.DataFrame(part.X, columns=names, copy=False)
        try:
            fit_auto(ranker, part, frame, functools.partial(display.counted, what))
        except ValueError as error:
            raise RunError(f"{table.where}: {error}") from None
        return ranker

    constraints = read_constraints(len(names), names, **config.exact.column_constraints())
    auto = fitted(constraints, "comparing methods")
    scores = auto.out_of_fold_
    assert scores is not None
    known = np.flatnonzero(~np.isnan(scores[0]))  # with times, the first rows have no scores
    if part.group is None and auto.comparison_.similar is not None:
        part = replace(part, group=similar_rows(part.X))
    tested = part.take(known)
    evidence = evidence_of(config, tested, names, scores[:, known])
    free, price, outcome = None, config.answer.price, list[str]()
    ranker: Ranker = auto
    if config.exact.demands:
        display.begin("ranking under the demands", None)
        ranker, own, outcome = _under_demands(config, auto, part, table, names)
        if ranker is not auto:
            free = auto.prepare_with(preparation), evidence
            evidence = evidence_of(config, tested, names, own[None, known])
    ranker.prepare_with(preparation)
    if constraints and (len(part.y) <= _PRICED if price is None else price):
        without = fitted(None, "comparing methods without the constraints").prepare_with(preparation)
        assert without.out_of_fold_ is not None
        free = without, evidence_of(config, tested, names, without.out_of_fold_[:, known])
    learned = replace(learned_from(config, ranker, evidence, table, part), demands=tuple(outcome))
    raw, features = (given.raw, None) if given.raw is not None else (labelled("own", table, tested.rows), tested.X)
    return ranking_of(config, ranker, evidence, learned, raw, features, free=free)


def _under_demands(
    config: Config, auto: AutoRanker, part: Part, table: Table, names: Sequence[str]
) -> tuple[Ranker, FloatArray, list[str]]:
    """Return a ranker that meets the demands on the list of the labelled rows, `part` of `table`.

    That is `auto` where its list meets them, else one that puts the top of this list in another order. With it come its
    scores of the rows by fits that have not seen them, (n,), and what came of the demands in sentences.
    """
    import pandas as pd

    from ltr.rankers.demanded import on_new_lists, outcome_of
    from ltr.rankers.inputs import LabelledRows
    from ltr.rankers.two_stage import least_top
    from ltr.rankers.unseen import cross_fitted
    from trainers.methods import two_stage_ranker, units_of, weights_of
    from trainers.run.results import demand_lines

    asked = read_list_demands(config.exact.demands)
    columns = {name: column.take(part.rows) for name, column in table.columns.items()}
    given = GivenDemands.of_columns(asked, columns, config.statistics.gain)
    y = part.y.astype(np.float64)
    assert auto.out_of_fold_ is not None
    scores = auto.out_of_fold_.mean(axis=0)
    known = ~np.isnan(scores)
    lists = None if part.qid is None else np.unique(part.qid[known], return_inverse=True)[1]
    own = given.take(known)
    on_list = own.of(y[known], lists)
    ranker: Ranker = auto
    outcome = outcome_of(on_list, scores[known], free=True)
    if not all(one.met(scores[known]) for one in on_list):
        needed = least_top(on_list, scores[known], lists)
        if needed is not None and config.exact.top_k != "full":
            config = config.changed("exact", top_k=max(int(config.exact.top_k), 2 * needed))
        ranker = two_stage_ranker(config, auto, columns=names)
        frame = pd.DataFrame(part.X, columns=list(names), copy=False)
        try:
            ranker.fit(frame, y, part.qid, **units_of(part), **weights_of(part), beside=columns, base_is_fitted=True)
        except ValueError as error:
            raise RunError(f"{table.where}: {error}") from None
        outcome = ranker.demands_
        rows = LabelledRows(part.X, y, part.qid, part.group, units_of(part)["time"], known=scores)
        scores = cross_fitted(ranker, rows, given, config.seed)
    assert outcome is not None
    new = on_new_lists(own, y[known], lists, scores[known], config.seed)
    return ranker, scores, list(demand_lines({**outcome.to_dict(), "new": new}))


def _told(check: ConstraintCheck) -> str:
    """Return a constraint that holds in words, with the columns in use where their number is limited."""
    column, _, sign = check.constraint.rpartition(" ")
    if sign in ("+", "-"):
        return f"a larger {column} never ranks a row {'lower' if sign == '+' else 'higher'}"
    return f"{check.constraint} ({check.how})" if check.constraint.startswith("at most ") else check.constraint


def labelled(listed: Listed, table: Table, rows: IntArray) -> RawRows:
    """Return labelled rows of a table, by number from 0, as rows to rank."""
    columns = {name: column.take(rows) for name, column in table.columns.items()}
    queries = None if table.queries is None else table.queries[rows]
    return RawRows(listed, table.given, table.in_file(rows), columns, queries)


def evidence_of(config: Config, part: Part, names: Sequence[str], scores: FloatArray) -> Evidence:
    """Return labelled rows as what chances come from: `scores` are of fits that have not seen them, (repeats, n)."""
    from ltr.answer import Evidence

    today = config.baselines.auto.today
    lists, groups = (None if of is None else np.unique(of, return_inverse=True)[1] for of in (part.qid, part.group))
    of_today = None if today is None or today not in names else part.X.T[list(names).index(today)]
    return Evidence(part.y.astype(np.float64), scores, lists, groups, part.own_weight, of_today)


def learned_from(
    config: Config,
    ranker: Ranker,
    evidence: Evidence,
    table: Table | None,
    part: Part,
    method: str = AUTO,
    *,
    test: Part | None = None,
) -> Learned:
    """Return what there is to say about the labelled rows and the ranker, which was fitted to `part` of `table`.

    `method` is its method, of two stages that of the first. `evidence` is of the test set `test`, else of `part`.
    """
    from ltr.answer import Learned, ranked_by, typical_cells, warnings_of
    from ltr.rankers import check_constraints

    encodings, names = encodings_of_ranker(ranker), ranker.feature_names_in_.tolist()
    if table is None:
        columns = {name: Column(name, part.X[:, at]) for at, name in enumerate(names)}
        where, hit, notes = str(config.data.name or config.data.path), "a label above 0", []
    else:
        columns, where, positive = table.columns, table.where, table.labels and table.labels.positive
        what = ("= 1" if table.y.max() <= 1 else "above 0") if positive is None else f"= {positive}"
        hit = f"{table.roles.label} {what}"
        unlabelled = config.answer.new is None and table.rows is not None  # which then are the list
        notes = [one for one in table.notes if not (unlabelled and one.endswith("without a label are left out"))]
        left_out = {} if ranker.preparation_ is None else ranker.preparation_.left_out_
        reasons = {**dict.fromkeys(config.data.drop, "dropped"), **left_out}.items()
        notes += [f"not used: {', '.join(f'{name} ({reason})' for name, reason in reasons)}"] if reasons else []
    labels = part.y if test is None else np.concatenate([part.y, test.y])
    first = getattr(ranker, "base_", ranker)
    return Learned(
        name_of(where),
        hit,
        len(labels),
        int((labels > 0).sum()),
        ranked_by(ranker, method, config.baselines.auto.today),
        None if evidence.today is None else config.baselines.auto.today,
        None if evidence.lists is None else config.data.query or "query",
        config.data.time,
        config.answer.id,
        typical_cells(columns, encodings),
        (
            *warnings_of(evidence, getattr(first, "comparison_", None), tested=test is not None),
            *_about_columns(part.X, part.y, names),
        ),
        tuple(notes),
        tuple(_told(check) for check in check_constraints(ranker) if check.holds),
        tested=test is not None,
    )


def encodings_of_features(preparation: TablePreparation | None, names: Sequence[str]) -> tuple[Encoding, ...]:
    """Return how columns become features; without a preparation the features with these names are the columns."""
    return tuple(NumberEncoding(name) for name in names) if preparation is None else preparation.encodings_


def encodings_of_ranker(ranker: Ranker) -> tuple[Encoding, ...]:
    """Return how the columns that a ranker takes become its features."""
    return encodings_of_features(ranker.preparation_, ranker.feature_names_in_.tolist())


def _about_columns(X: Features, y: IntArray, names: Sequence[str]) -> list[str]:
    """Return warnings about columns that give the label away."""
    found = [name.removesuffix(" (filled in or not)").strip("'") for name, *_ in leaks(X, y, names)]
    which = ", ".join(found[:5]) + (f" and {len(found) - 5} more" if found[5:] else "")
    told = (
        f"{which} alone {'tells' if len(found) == 1 else 'tell'} hits from the other rows almost without error. Is "
        "that known before you act? If it is filled in afterwards, leave it out with --drop, or data.drop in a config: "
        "otherwise fewer hits will come than are expected here."
    )
    return [told] if found else []


def _about_demands(config: Config, raw: RawRows, scores: FloatArray) -> Iterator[str]:
    """Yield a warning for each demand on a group that a list does not meet."""
    demands = read_list_demands(config.exact.demands)
    asked = [one for one in demands if one.condition is not None and one.condition.column in raw.columns]
    lists = None if raw.queries is None else np.unique(raw.queries, return_inverse=True)[1]
    given = GivenDemands.of_columns(asked, raw.columns, config.statistics.gain)
    for one in given.of(np.zeros(len(scores)), lists):
        if not one.met(scores):
            yield f"{one.what} is {one.value(scores):.3g} on this list: {one.text} is met on the labelled rows alone."


def ranking_of(
    config: Config,
    ranker: Ranker,
    evidence: Evidence,
    learned: Learned,
    raw: RawRows,
    features: Features | None = None,
    *,
    free: tuple[AutoRanker, Evidence] | None = None,
) -> Ranking:
    """Return the ranking of some rows by a fitted ranker, which has its preparation; it makes `features` by default.

    `free` is a ranker that was fitted without the constraints, with its evidence.
    """
    from ltr.answer import Rows, cell_text, make_answer

    encodings = encodings_of_ranker(ranker)
    warnings: tuple[str, ...] = ()
    if features is None:
        preparation = ranker.preparation_
        new_values = config.answer.new_values or (preparation is not None and preparation.new_values)
        features = check_rows(raw, encodings, learned.id, new_values=new_values)
        warnings = tuple(f"{note[0].upper()}{note[1:]}." for note in notes_on(raw.columns, encodings))
    numbers = raw.rows + 1
    names = [str(number) for number in numbers]
    if learned.id is None and raw.given.where == FRAME:
        index = raw.given.own().index[raw.rows]
        counts = index.dtype.kind == "i" and np.array_equal(index, np.arange(len(index)))
        names = names if counts else [str(name) for name in index]
    elif learned.id is not None:
        own = raw.columns[learned.id].read_as("text")
        names = [cell_text(own, row) for row in range(len(own))]
    today = None
    if learned.today is not None:
        today = doubles(features[:, ranker.feature_names_in_.tolist().index(learned.today)])
    where = name_of(raw.given.where)
    rows = Rows(raw.listed, raw.given, where, features, raw.columns, names, numbers, raw.queries, today, warnings)
    assert config.answer.visits is not None
    answer, scores = make_answer(ranker, evidence, learned, rows, config.answer.visits, free)
    answer = replace(answer, warnings=(*answer.warnings, *_about_demands(config, raw, scores)))
    return Ranking(answer, ranker, evidence, config, (rows, scores), free)
