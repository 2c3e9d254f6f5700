"""The results of a run: a row for each method, as a table for a terminal, CSV, Markdown, JSON and frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ltr.answer import ListFront, RowRanges
from ltr.cards import Card
from ltr.exact.solution import Status
from ltr.rankers import Choice, Ranker
from ltr.rankers.demanded import DemandOutcome
from trainers.config import AUTO, CARD, EXACT
from trainers.files import Json, RunError, read_json, reading, to_json, write_atomic, write_json
from trainers.loggers import FINAL, read_log
from trainers.methods import BASE_KEPT
from trainers.records import is_trivial
from trainers.run.folder import RunFolder
from trainers.run.predict import ranker_of
from trainers.tables import NOTHING_PROVEN, markdown_table, number, stacked_tables
from trainers.task.data import as_pandas
from trainers.task.measures import Task
from trainers.task.raw import test_rows

if TYPE_CHECKING:
    import pandas as pd

    from trainers.run.outcome import Outcome

Columns = list[tuple[str, list[str]]]
"""Headings and cells of a table."""

_PARTS = ("train", "test")
_FIRST_K = {"hits": "{:.6g}", "precision": "{:.1%}", "recall": "{:.1%}", "lift": "{:.2f}"}
_NUMBERS = ("top", "objective", "loss", "validation", "excess", "steps", "bound", "gap", "trivial_bound")
_OBJECTS = ("first_k", "periods", "weights", "constraints", "demands", "ranges", "front", "choice", "card")


def row_of(
    record: Json, top: float | None = None, first_k: Json | None = None, periods: list[Json] | None = None
) -> Json:
    """Return the row of a method in the table of a run: of its record (`trainers.records`) what the table shows.

    Of its ``list`` it has the ``objective`` and what was proven of it, ``bound``, ``gap`` and ``trivial_bound``. Beside
    the record it has ``top``, the exact stage's statistic on the reranked list of the training set, what the first K
    rows of both sets hold (`Task.first_k`), and the periods of the test set (`Task.by_period`).
    """
    found = to_json(record.get("list") or {})
    if record.get("choice") and record["status"] == Status.HEURISTIC.value:  # no proof was asked for
        found = {name: found[name] for name in found if name not in ("bound", "gap", "trivial_bound")}
    # the list of an exact stage that corrects a base score is its own
    beside = {"top": found.get("reached", top), "objective": found.get("value"), "first_k": first_k, "periods": periods}
    given = {**record, **found, **beside, "message": record.get("message") or ""}
    return {
        name: given.get(name)
        for name in ("method", "status", "seconds", "train", "test", *_NUMBERS, *_OBJECTS, "message")
    }


def is_unproven(row: Json) -> bool:
    """Return whether the bound of a row is that of a perfect order, and the answer is below it."""
    return row["status"] != Status.OPTIMAL.value and is_trivial(row["bound"], row["trivial_bound"])


def proven_in(row: Json) -> list[RowRanges | ListFront]:
    """Return what was proven about a method's list beside its best value: the ranges of its rows, and the front."""
    ranges = [] if row["ranges"] is None else [RowRanges.from_dict(row["ranges"])]
    return [*ranges, *([] if row["front"] is None else [ListFront.from_dict(row["front"])])]


def _ending(row: Json) -> str:
    """Return how a method ended: its status, that the base's order was chosen, or how near the best a card is."""
    optimal = row["status"] == Status.OPTIMAL.value
    if row["card"] is not None and optimal and (below := Card.from_dict(row["card"]).below):
        return f"within {below:.2%}"
    return row["status"] if row["choice"] is None or Choice.from_dict(row["choice"]).reranks else BASE_KEPT


@dataclass(frozen=True, eq=False)
class RunSource:
    """What the frames of a run are made from, which can be pickled as the results can: its folder, options and data."""

    run: RunFolder
    task: Task


@dataclass(frozen=True, repr=False)
class Results:
    """The rows of a run so far, and in Python its frames and fitted rankers.

    `ranked`, `curves` and `rankers` need the data of the run or its folder, which the results of `ltr.experiment` have.
    """

    name: str  # name of the run
    statistics: tuple[str, ...]  # names of the reported statistics, the exact stage's first
    top: str | None  # the reranked list, such as "top 50 of logistic_regression"; None without an exact stage
    priced: bool  # whether non-zero weights have a price, so that objective and statistic differ
    complete: bool  # whether every method is finished
    rows: tuple[Json, ...]  # one for each method (`row_of`), in the order of the run
    on_list: str = ""  # name of the statistic on the reranked list; the first reported statistic by default
    note: str = ""  # how to read the values, where that needs saying
    positives: int | None = None  # positives of the test set; None with queries
    by_query: bool = False  # whether rows belong to queries
    answer: str = ""  # first sentence of the page; empty without one
    base: str = ""  # method whose list the exact stage reranks; empty without an exact stage
    source: RunSource | None = field(default=None, compare=False)  # folder and data; None where a file was read

    def __repr__(self) -> str:
        first = self.statistics[0]
        values = [f"{row['method']} {number(row['test'].get(first)) or '-'}" for row in self.rows]
        if len(values) > 4:
            values[3:-1] = ["..."]
        state = "" if self.complete else ", unfinished"
        return f"<Results of {self.name!r}{state}; test {first}: {', '.join(values) or 'none yet'}>"

    def _repr_html_(self) -> str:
        html = MarkdownIt("commonmark", {"html": False}).enable("table")
        shown = markdown_tables(self).items() if self.rows else ()
        return "\n".join(f"<h4>{title}</h4>\n{html.render(text)}" for title, text in shown)

    @property
    def table(self) -> pd.DataFrame:
        """The methods with their statistics on both sets, and how they ended: a pandas frame, a row for each method.

        Statistics come first, as ``train dcg`` and ``test dcg``. ``top`` is the value on the reranked list. The columns
        are those of results.csv, without empty ones.
        """
        frame, first = _frame(self), [f"{part} {name}" for name in self.statistics for part in ("train", "test")]
        frame = frame.reindex(columns=list(dict.fromkeys(["method", *first, *frame])))
        return frame.replace({"message": {"": None}}).set_index("method").dropna(axis=1, how="all")

    @property
    def curves(self) -> pd.DataFrame:
        """Loss and statistics by step: a pandas frame with ``method``, ``step`` and one column for each logged tag."""
        import pandas as pd

        lines = []
        for row in self.rows:
            method = row["method"]
            if method != EXACT and row["steps"] is not None:  # its steps are milliseconds; others have level lines
                log = self._source.run.method(method).log
                with reading(log):
                    lines += [{"method": method, "step": line["step"], **line["values"]} for line in read_log(log)]
        frame = pd.DataFrame(lines, columns=None if lines else ["method", "step"])
        final = [name for name in frame if name.startswith(FINAL)]
        return frame[frame[final].isna().all(axis=1)].drop(columns=final).reset_index(drop=True)

    @property
    def rankers(self) -> dict[str, Ranker]:
        """The fitted rankers by method, read from the run folder; they take frames of the user's table."""
        run = self._source.run
        fitted = (name for name in self.methods if run.method(name, make=False).model.exists())
        return {method: ranker_of(run, method, prepared=True) for method in fitted}

    @property
    def ranked(self) -> pd.DataFrame:
        """The rows of the test set from the top down, as `ranked_by` returns them for the last stage of the run."""
        return self.ranked_by(self.last_stage)

    def first(self, key: str) -> Any:  # noqa: ANN401  (any value of a row)
        """Return the first value of the rows under a key of theirs (`row_of`), None without any."""
        return next((row[key] for row in self.rows if row[key] is not None), None)

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order of the run."""
        return [row["method"] for row in self.rows]

    @property
    def last_stage(self) -> str:
        """The method whose order counts: the exact stage, else the card, else the first one; empty without methods."""
        return next((name for name in (EXACT, CARD, *self.methods) if name in self.methods), "")

    @property
    def periods(self) -> pd.DataFrame:
        """What each method reaches in each period of the test set: a pandas frame, with ``data.time`` only.

        Its columns are ``method``, ``period``, ``rows``, ``positives``, with K rows to act on ``k``, ``hits``,
        ``precision``, ``recall`` and ``lift``, and the reported statistics, see `Task.by_period`.
        """
        import pandas as pd

        found = []
        for row in self.rows:
            for one in row["periods"] or ():
                values = {key: value for key, value in one.items() if key not in ("statistics", "lists")}
                found.append({"method": row["method"], **values, **one["statistics"]})
        return pd.DataFrame(found, columns=None if found else ["method", "period"])

    def ranked_by(self, method: str) -> pd.DataFrame:
        """Return the rows of the test set from the top down, as a method ranks them.

        That is a pandas frame with ``position`` (1 is the top), ``score``, for the exact stage ``stage``, with queries
        ``query``, and the columns of the data. Its index is the frame's own, or the number of the row in the file, from
        0. A KeyError says that there is no such method.
        """
        import pandas as pd

        task, ranker = self._source.task, self.rankers[method]
        split, rows, test = task.split, test_rows(task.split), task.split.test
        if method == CARD:
            found = ranker.rank(rows.reset_index(drop=True))
        else:
            named = None if split.tables is None else split.tables[1].queries
            found = ranker.rank(task.rows_of(test), test.qid if named is None else named[test.rows])
        own = rows.iloc[found.index.to_numpy()].drop(columns=task.config.data.query or [])
        found.index = own.index
        return pd.concat([found, own.rename(columns={name: f"{name} (data)" for name in own if name in found})], axis=1)

    def outcome(
        self,
        frame: Any,  # noqa: ANN401  (a frame of any library)
        *,
        label: str | None = None,
        method: str | None = None,
        first: int | None = None,
    ) -> Outcome:
        """Return what the run promised of rows whose labels are known by now, against what came.

        Args:
            frame: a pandas or polars frame with the columns of the data, or the path of a file. Rows without a label
                are ranked, too: it is not known what came of them.
            label: column of the labels; by default that of the run.
            method: a method of the run; by default the one whose order counts, `last_stage`.
            first: how many rows of the list were acted on, of each query; by default those of the page.
        """
        from trainers.run.outcome import outcomes

        run, chosen = self._source.run, self.last_stage if method is None else method
        given = Path(frame) if isinstance(frame, str | Path) else as_pandas(frame, "outcomes").reset_index(drop=True)
        return outcomes(run, given, [chosen], label=label, first=first)[0]

    @property
    def folder(self) -> Path:
        """The run folder; without a folder of its own, a temporary one that lives as long as these results."""
        return self._source.run.path

    @property
    def _source(self) -> RunSource:
        if self.source is None:
            advice = "ltr.experiment with its config and folder returns results that have both"
            raise RunError(f"results of {self.name!r} were read without the run's data and folder; {advice}")
        return self.source

    def to_dict(self) -> Json:
        """Return everything as JSON, as in results.json."""
        own = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "source"}
        choice = None if self.choice is None else str(self.choice)
        return to_json({**own, "choice": choice, "conclusions": self.conclusions})

    @property
    def recommended(self) -> str:
        """The method that `ltr predict` and the others deploy: the exact stage, else auto; empty without both."""
        return next((name for name in (EXACT, AUTO) if name in self.methods), "") if self.complete else ""

    @property
    def deployed(self) -> str:
        """The method that `ltr predict` takes: the recommended one, or the only one; empty where it has to be named."""
        return self.recommended or (self.last_stage if len(set(self.methods)) == 1 else "")

    @property
    def recommendation(self) -> str:
        """The recommended method in a sentence; empty without one."""
        if not (method := self.recommended):
            return ""
        kept = method == EXACT and self.choice is not None and not self.choice.reranks
        order = f", which ranks as {self.base} does" if kept else ""
        told = next((row["message"] for row in self.rows if row["method"] == self.base == AUTO), "")
        how = told.partition(". ")[0]  # what is deployed, without what else there is to say
        return f"recommended: {method}{order}{f': {how}' if how else ''}"

    @property
    def choice(self) -> Choice | None:
        """Whether the exact stage expects to gain on new lists; None where it was not to choose."""
        found = self.first("choice")
        return None if found is None else Choice.from_dict(found)

    @property
    def card(self) -> Card | None:
        """The card of the run; None without one."""
        found = self.first("card")
        return None if found is None else Card.from_dict(found)

    @property
    def caption(self) -> str:
        """Text under the table."""
        notes, best = [], "objective" if self.priced else "best on list"
        if self.recommended and len(self.rows) > 1:
            notes.append("*: recommended; ltr predict, export, explain and score use it")
        if self.top is not None:
            notes.append(f"list: {self.top} on the training set")
        if self.choice is not None:
            order = "by weights for new lists" if self.choice.reranks else f"as {self.base} does"
            notes.append(f"{best}: that of the best weights known on the list; {EXACT} ranks {order}")
        if self.card is not None and self.card.ties == "average":
            notes.append(f"{CARD}: rows with equal totals count as in random order")
        notes += [self.note] if self.note else []
        named = ((row["method"] if row["choice"] is None else best, row["message"]) for row in self.rows)
        notes += [f"{name}: {message}" for name, message in named if message]
        if not self.complete:
            notes.append("unfinished: run the same command again to go on")
        return "\n".join(notes)

    @property
    def conclusions(self) -> list[str]:
        """What reranking did to the test statistic, what came of demands, what was proven, a line each."""
        rows = {row["method"]: row for row in self.rows}
        exact, choice = rows.get(EXACT), self.choice
        lines = [] if exact is None else [*self._of_reranking(rows, exact), *self._caught(rows, exact)]
        lines += [line for row in self.rows for line in demand_lines(row["demands"])]
        lines += [text for row in self.rows for found in proven_in(row) for text in found.sentences]
        if exact is not None and choice is not None and choice.reranks and choice.list_gain is not None:
            own, limit = rows[self.base]["top"], exact["bound"]
            most = "" if own is None or limit is None else f" (proven: at most {limit - own:+.3g})"
            lines.append(f"training list: the best weights gain {choice.list_gain:+.3g} {choice.statistic} there{most}")
        if exact is not None and is_unproven(exact):
            lines.append("bound: that of a perfect order, nothing is proven")
        return lines

    def _of_reranking(self, rows: Mapping[str, Json], exact: Json) -> Iterator[str]:
        """Yield what constraints and reranking did to the first statistic of the test set."""
        first, base, after = self.statistics[0], self.base, exact["test"].get(self.statistics[0])
        before = rows[base]["test"].get(first) if base in rows else None
        if (bound := exact["constraints"]) is not None:
            free, before, base = before, bound["base"]["test"].get(first), f"{base} under the constraints"
            if free is not None and before is not None:
                yield f"test {first}: {_change(free, before)} by fitting {self.base} under the constraints"
        if self.choice is not None and not self.choice.reranks and before is not None:
            yield f"test {first}: {number(before)} in the order of {base}, which is kept (one split)"
        elif before is not None and after is not None:
            yield f"test {first}: {_change(before, after)} by reranking {base} (one split)"

    def _caught(self, rows: Mapping[str, Json], exact: Json) -> Iterator[str]:
        """Yield a line on what those find who act on the first K rows of the test set, before and after reranking."""
        before, after = rows[self.base]["first_k"] if self.base in rows else None, exact["first_k"]
        if exact["constraints"] is not None:
            before = exact["constraints"]["first_k"]
        if before is None or after is None or (self.choice is not None and not self.choice.reranks):
            return
        where = "rows of each query, on average" if self.by_query else "rows of the test set"
        found: list[str] = []
        for old, new in ((before["test"]["half"], after["test"]["half"]), (before["test"], after["test"])):
            hits = [number(one["hits"], "{:.4g}") for one in (old, new)]
            found.append(f"the first {old['k']}{'' if found else f' {where}'} hold {hits[0]} -> {hits[1]}")
        of = "" if self.positives is None else f" of {self.positives}"
        chance = "" if self.by_query or not old["lift"] else f" ({old['hits'] / old['lift']:.1f} by chance)"
        yield f"positives by reranking {self.base}: {', '.join(found)}{of}{chance}"


def demand_lines(demands: Json | None) -> Iterator[str]:
    """Yield a line on each demand on the list, on the training set and on new lists, and one on what they cost."""
    if demands is None:
        return
    outcome = DemandOutcome.from_dict(demands)
    for one, new in zip(outcome.reached, demands["new"], strict=True):
        line = f"demand {one} on the training list"
        if new["value"] is not None:
            value, low, high = (number(new[key], "{:.3g}") for key in ("value", "low", "high"))
            line += f"; on new lists {value} [{low}, {high}]"
        yield line
    if outcome.cost:
        yield outcome.cost
    yield "a demand is met on the training list, and new lists vary: [low, high] holds 90 % of lists of such rows"


def _change(before: float, after: float) -> str:
    """Return two values of a statistic with enough digits to show the change, and its direction."""
    if math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-12):
        return f"{number(before)} -> {number(before)}, left unchanged"
    form = "{:.10g}" if number(before) == number(after) else None
    return f"{number(before, form)} -> {number(after, form)}, {'raised' if after > before else 'lowered'}"


def tables(results: Results) -> dict[str, Columns]:
    """Return headings and cells of tables that fit a page, by title; empty columns are left out.

    The first table has the methods, with the first statistic. Others have what the first K rows hold, the periods of
    the test set as the last stage ranks them, and the other statistics.
    """
    first, *others = results.statistics
    mark = results.recommended if len(results.rows) > 1 else ""
    names: Columns = [("method", [f"{name} *" if name == mark else name for name in results.methods])]

    def cells(key: str, form: str | None = None) -> list[str]:
        return [number(row[key], form) for row in results.rows]

    def reached(names: Sequence[str]) -> Columns:
        each = ((part, name) for name in names for part in _PARTS)
        return [(f"{part} {name}", [number(row[part].get(name)) for row in results.rows]) for part, name in each]

    methods = [*names, ("convex loss", cells("loss", "{:.5g}")), ("distance to optimum", cells("excess", "{:.1e}"))]
    methods += [*reached([first]), ("validation", cells("validation"))]
    methods.append((f"{results.on_list or first} on list", cells("top")))
    if results.priced or results.choice is not None:
        methods.append(("objective" if results.priced else "best on list", cells("objective")))
    gaps = [NOTHING_PROVEN if is_unproven(row) else number(row["gap"], "{:.2%}") for row in results.rows]
    methods += [("bound", cells("bound")), ("gap", gaps), ("status", list(map(_ending, results.rows)))]
    methods.append(("seconds", cells("seconds", "{:.1f}")))
    found = {"methods": methods}
    if (one := results.first("first_k")) is not None:
        each = " of each query, on average," if results.by_query else ""
        columns = list(names)
        for part, name in (*(("test", name) for name in _FIRST_K), ("train", "hits")):
            values = [None if row["first_k"] is None else row["first_k"][part][name] for row in results.rows]
            heading = name if part == "test" else f"{part} {name}"
            columns.append((heading, [number(value, _FIRST_K[name]) for value in values]))
        found[f"the first {one['test']['k']} rows{each} of the test set"] = columns
    if periods := next((row["periods"] for row in results.rows if row["method"] == results.last_stage), None):
        columns = [(name, [str(one[name]) for one in periods]) for name in ("period", "rows", "positives")]
        columns.append(("first rows", [number(one.get("k"), "{:d}") for one in periods]))
        columns += [(name, [number(one.get(name), form) for one in periods]) for name, form in _FIRST_K.items()]
        columns.append((first, [number(one["statistics"][first]) for one in periods]))
        found[f"test periods, each ranked as a list by {results.last_stage}"] = columns
    found |= {"other statistics": [*names, *reached(others)]} if others else {}
    return {title: [(heading, texts) for heading, texts in columns if any(texts)] for title, columns in found.items()}


def rich_tables(results: Results, width: int) -> list[RenderableType]:
    """Return the tables and their texts for a terminal."""

    def shown(columns: Columns, title: str) -> Iterator[Table]:
        return stacked_tables(columns, title, width, left=("method", "status"), bold=f"{EXACT} *")

    (_, methods), *others = tables(results).items()
    return [
        *([Text(results.recommendation, style="bold")] if results.recommendation else []),
        *([Text(results.answer, style="bold")] if results.answer else []),
        *([] if results.choice is None else [Text(str(results.choice))]),
        *shown(methods, f"run {results.name}"),
        *([Text(results.caption, style="italic dim")] if results.caption else []),
        *(table for title, columns in others for table in shown(columns, title)),
        *map(Text, results.conclusions),
        *([] if results.card is None else [Text(f"\n{results.card}")]),
    ]


def markdown_tables(results: Results) -> dict[str, str]:
    """Return the tables in Markdown by title; caption and conclusions follow the first."""
    texts = {}
    for title, columns in tables(results).items():
        headings = [heading for heading, _ in columns]
        texts[title] = markdown_table(headings, zip(*(cells for _, cells in columns), strict=True))
    first = [f"**{text}**" for text in (results.recommendation, results.answer) if text]
    first += [] if results.choice is None else [str(results.choice)]
    lines = [*results.caption.splitlines(), *results.conclusions]
    texts["methods"] = "\n\n".join([*first, texts["methods"]]) + "\n\n" + "".join(f"{line}\n\n" for line in lines)
    return texts | ({} if results.card is None else {CARD: results.card.to_markdown()})


def write_results(folder: RunFolder, results: Results) -> None:
    """Write results.json, results.csv (all digits) and results.md into the run folder."""
    write_json(folder.path / "results.json", results.to_dict())
    text = _frame(results, object).to_csv(index=False, lineterminator="\n")  # with whole numbers beside missing ones
    write_atomic(folder.path / "results.csv", text.encode())
    shown = markdown_tables(results).items()
    body = "\n".join(f"## {title.capitalize()}\n\n{table.rstrip()}\n" for title, table in shown)
    write_atomic(folder.path / "results.md", f"# Run {results.name}\n\n{body}".encode())


def _frame(results: Results, dtype: type | None = None) -> pd.DataFrame:
    """Return the rows with every value in a column of its own."""
    import pandas as pd

    flat: list[Json] = []
    for row in results.rows:
        line: Json = {"method": row["method"], "status": _ending(row), "seconds": row["seconds"]}
        line |= {f"{part} {name}": value for part in _PARTS for name, value in row[part].items()}
        line |= {name: row[name] for name in _NUMBERS}
        for part, found in (row["first_k"] or {}).items():
            line |= {f"{part} {name}@{found['k']}": value for name, value in found.items() if name in _FIRST_K}
        flat.append(line | {"constraints": row["constraints"], "message": row["message"]})
    return pd.DataFrame(flat, columns=None if flat else ["method"], dtype=dtype)


def read_results(folder: RunFolder) -> Results | None:
    """Read the results of a run folder, None where there are none yet."""
    path = folder.path / "results.json"
    value = read_json(path)
    if value is None:
        return None
    with reading(path):
        known = {one.name: value[one.name] for one in fields(Results) if one.name in value}
        results = Results(**{**known, "statistics": tuple(value["statistics"]), "rows": tuple(value["rows"])})
        rich_tables(results, 80)  # which takes everything apart that the file holds
        return results
