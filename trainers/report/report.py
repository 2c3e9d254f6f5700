"""The report of a sweep or a run: what to do, the figure and the table that show it, sections of details; its files."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ltr.answer import Answer, curve_table, drawn
from ltr.cards import Card
from ltr.rankers import Choice
from trainers.config import CARD, EXACT
from trainers.files import Json, RunError, remove_leftovers, write_atomic, writing
from trainers.records import SweepResults, nothing_proven, write_export
from trainers.report import wording as say
from trainers.report.evidence import (
    PARTS,
    TIME_LIMIT,
    Evidence,
    Families,
    FloatArray,
    K,
    Row,
    Series,
    SweepTable,
    Variant,
    key_name,
    mean_of,
    proven,
)
from trainers.report.page import Block, Page, Section, Table, Text, literal, png, to_html, to_markdown
from trainers.report.paired import ALPHA, FEWEST_SPLITS, Verdict
from trainers.report.pictures import gain_picture
from trainers.run.results import Results, proven_in, tables
from trainers.tables import NOTHING_PROVEN

_TOLERANCE = 1e-9
_NAMED = 12  # results that are named one by one; of more, data sets with counts


def write_report(results: SweepResults | Results, folder: Path, *, answer: Answer | None = None) -> list[Path]:
    """Write the report of a sweep or of a run, and return its files, the pictures as their folder.

    They are ``report.html``, with the pictures inside, and ``report.md``; of a sweep also ``figures`` and
    ``cells.jsonl``, all results in one file, which `ltr report` and `ltr sweep --from` read.

    Args:
        results: results of the sweep or run.
        folder: folder to write to, made when missing.
        answer: the page of the run; None without one, and for sweeps.

    Raises:
        RunError: the sweep has no result yet, or a place cannot be written to.
    """
    page = build_run_page(results, answer) if isinstance(results, Results) else build_page(results)
    names = ["report.html", "report.md", *([] if isinstance(results, Results) else ["figures", "cells.jsonl"])]
    html, markdown, *others = written = [folder / name for name in names]
    images = {picture: png(picture) for picture in page.pictures}
    with writing(folder):
        for place in (folder, *others[:1]):
            place.mkdir(parents=True, exist_ok=True)
            remove_leftovers(place, ".*.tmp")
        for picture, image in images.items():
            write_atomic(folder / "figures" / picture.file, image)
        if not isinstance(results, Results):
            write_export(folder / "cells.jsonl", results)
        write_atomic(html, to_html(page, images).encode())
        write_atomic(markdown, to_markdown(page, "figures").encode())
    return written


# --- of a run -----------------------------------------------------------------------------------------------------


def build_run_page(results: Results, answer: Answer | None) -> Page:
    """Make the report of a run: what its page promises, then its tables, the periods of the test set first."""
    told = _texts(text for text in (results.answer, results.recommendation) if text)
    summary: list[Block] = [Text(f"**{one.text}**") for one in told[:1]]
    if answer is not None:
        hits = _table(*curve_table(answer), "Hits to expect by number of visits.", left=0, html=drawn(answer))
        warnings = (*answer.warnings, *answer.learned.warnings)
        summary += [*_texts([answer.learned.method]), hits, *_texts(warnings)]
    sections: list[Section] = []
    for name, columns in tables(results).items():
        block = _table([heading for heading, _ in columns], zip(*(cells for _, cells in columns), strict=True))
        heading = literal(name.capitalize())
        if not sections:  # the methods
            texts = _texts((*results.caption.splitlines(), *results.conclusions))
            sections.append(Section(heading, [*told[1:], block, *texts]))
        elif name.startswith("test periods"):
            summary += [Text(f"{heading}:"), block]
        else:
            sections.append(Section(heading, [block]))
    for row in results.rows:
        for found in proven_in(row):
            table = _table(*found.table, left=0, html=drawn(found))
            sections.append(Section(literal(f"{found.heading}, {row['method']}"), [*_texts(found.sentences), table]))
    return Page(literal(f"Results of {results.name}"), summary, sections)


def _texts(texts: Iterable[str]) -> list[Text]:
    return [Text(literal(text)) for text in texts]


def _table(
    heads: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "", *, left: int = 1, html: str = ""
) -> Table:
    return Table([*map(literal, heads)], [[*map(literal, row)] for row in rows], caption, left, html)


# --- of a sweep: the summary --------------------------------------------------------------------------------------


def build_page(results: SweepResults) -> Page:
    """Make the report of a sweep."""
    if not results.records:
        raise RunError(f"sweep {results.name}: no result is finished yet; `ltr sweep CONFIG` computes them")
    evidence = Evidence(results)
    picture, gains = gain_picture(evidence), evidence.gains
    if gains["test"]:
        caption = "Proven: answers that no linear ranker of the list can beat."
        table = comparison_table(evidence, evidence.main, gains, ("base ranker", "reranked"), caption=caption)
    else:
        table = value_table(next(table for table in evidence.tables if table.rows), evidence)
    summary: list[Block] = [Text(text) for text in (advice(evidence), choices(evidence)) if text]
    summary += [*filter(None, [picture]), table]
    summary += [Text(text) for text in (say.resolution_text(gains["test"]), state(evidence)) if text]
    return Page(literal(f"Results of {results.name}"), summary, sections_of(evidence))


def advice(evidence: Evidence) -> str:
    """Return one sentence on whether reranking helps on these data."""
    found, d = evidence.gains["test"], evidence.decimals
    if not evidence.exact:
        best = []
        for data in dict.fromkeys(record["data"] for record in evidence.results.records):
            rows = (table.rows.get(data, {}) for table in evidence.tables)
            means = {v.label: mean_of(s.values("test", evidence.statistic)) for row in rows for v, s in row.items()}
            label, mean = max(means.items(), key=lambda item: item[1] if np.isfinite(item[1]) else -np.inf)
            best.append(f"{literal(label)} on {literal(data)} ({say.fixed(mean, d)})")
        text = f"the best mean `{evidence.statistic}` on test is that of {say.listed(best)}"
        return f"**The sweep has no exact stage yet; {text}.**"
    if not any(one.tested for one in found.values()):
        needed = f"{FEWEST_SPLITS} splits of a data set with results of the exact stage and of its base ranker"
        return f"**It is too early to say whether reranking helps: a test needs {needed}.**"
    better, worse = (say.listed([*say.where(found, v, d).values()]) for v in (Verdict.BETTER, Verdict.WORSE))
    if better and worse:
        return f"**Rerank on {better}, but not on {worse}, where the test value falls.**"
    if better:
        return f"**Rerank on {better}; elsewhere keep the base ranker.**"
    if worse:
        return f"**Keep the base ranker: reranking lowers the test value on {worse} and raises it nowhere.**"
    pair, most = max(found.items(), key=lambda item: item[1].percent if item[1].tested else -np.inf)
    return (
        f"**Keep the base ranker: reranking was not shown to change `{evidence.statistic}` on the test sets.** Its "
        f"largest mean gain, on {literal(pair[0])} at K = {pair[1]}, is {say.effect(most, d)}."
    )


def choices(evidence: Evidence) -> str:
    """Return one sentence on what the choices on the training sets expected and what came; empty without choices."""
    records = [record for record in evidence.exact if "choice" in record]
    if not records:
        return ""
    results = f"{say.counted(len(records), 'result')} of the exact stage"
    expected, came, held = list[float](), list[float](), 0
    for record in records:
        choice, base = Choice.from_dict(record["choice"]), evidence.results.base_of(record)
        if choice.reranks:
            expected.append(choice.expected)
            before, after = (None if one is None else one["test"].get(choice.statistic) for one in (base, record))
            if before is not None and after is not None:  # measured in the same statistic
                came.append(after - before)
                held += choice.low - _TOLERANCE <= came[-1] <= choice.high + _TOLERANCE
    if not expected:
        return f"In all {results} the choice on the training set kept the base order."
    d = evidence.decimals
    said = (
        f"In {len(expected)} of {results} the choice on the training set was to rerank, with "
        f"{say.signed(float(np.mean(expected)), d)} `{evidence.statistic}` to be expected on new lists"
    )
    if not came:
        return f"{said}."
    gain = say.signed(float(np.mean(came)), d)
    return f"{said} and {gain} on the test sets, within the expected 90 % interval in {held} of {len(came)}."


def state(evidence: Evidence) -> str:
    """Say how much of the sweep is finished."""
    done, planned = _progress(evidence.results)
    records = evidence.results.records
    data, splits = (len({record[key] for record in records}) for key in ("data", "split"))
    every = f"All {done} results are finished"
    finished = every if done == planned else f"**{done} of {planned} results are finished**"
    text = f"{finished}, on {say.counted(data, 'data set')} and {say.counted(splits, 'split')}."
    waiting = [literal(table.heading) for table in evidence.tables if not table.rows]
    return f"{text} Not begun: {'; '.join(waiting)}." if waiting else text


def _progress(results: SweepResults, table: str | None = None) -> tuple[int, int]:
    """Count the finished and the planned results of a table, or of all."""
    grids = [grid for grid in results.grids if table in (None, grid["name"])]
    planned = {cell["id"] for grid in grids for cell in grid["cells"]}
    return len(planned & set(results.by_id)), len(planned)


def comparison_table(
    evidence: Evidence, pairs: Mapping[say.Pair, Series], found: Families, heads: tuple[str, str], varied: str = "K",
    caption: str = "",
) -> Table:  # fmt: skip
    """Return a row for each data set and value of an option: two means, their difference, the proofs of the first.

    `heads` are the headings of the means, that of the second series first, and `pairs` has the first series.
    """
    d, rows = evidence.decimals, []
    for pair, one in found["test"].items():
        train, series = found["train"].get(pair), pairs[pair]
        means = [say.fixed(mean, d) for mean in (one.mean_b, one.mean_a)]
        test = [say.effect(one, d), say.p_text(one.p_holm), one.verdict]
        gain = say.ABSENT if train is None else f"{say.signed(train.difference, d)} ({say.percent(train.percent)})"
        rows.append([literal(pair[0]), say.value_text(pair), *means, *test, gain, series.proven, series.gap_text()])
    header = ["data set", varied, *heads, "difference on test", "p", "verdict", "gain on train", "proven", "mean gap"]
    splits = say.counted_range((one.splits for one in found["test"].values()), "split")
    told = (
        f"`{evidence.statistic}` on the test sets, {splits}{'' if ' to ' in splits else ' each'}: means, and the "
        f"difference with its 95% interval. p: corrected resampled t-test, two-sided, alpha {ALPHA}, Holm's correction "
        f"over {say.counted(max((one.of for one in found['test'].values()), default=0), 'test')}. {caption}"
    )
    return Table(header, rows, told.strip())


# --- of a sweep: sections of details ------------------------------------------------------------------------------


def sections_of(evidence: Evidence) -> list[Section]:
    """Return the sections of details, without those that have no blocks."""
    makers: dict[str, Callable[[Evidence], Iterable[Block]]] = {
        "Values": _values,
        "The exact stage": _exact,
        "Options of the exact stage": _options,
        "Does recentring help?": _recentring,
        "Cards": _cards,
        "Exceptions and checks": _checks,
        "Times": _times,
        "Data and origin": _data,
    }
    made = (Section(title, list(make(evidence))) for title, make in makers.items())
    return [section for section in made if section.blocks]


def _values(evidence: Evidence) -> Iterator[Block]:
    for table in evidence.tables:
        if table.rows:
            done, planned = _progress(evidence.results, table.name)
            finished = f": {done} of {planned} results are finished" if done < planned else ""
            yield Text(f"**{literal(table.heading)}**{finished}")
            yield value_table(table, evidence)


def value_table(table: SweepTable, evidence: Evidence) -> Table:
    """Return the means and standard deviations of all variants on training and test sets."""
    lines = {(data, part): line_of(row, part, evidence) for data, row in table.rows.items() for part in PARTS}
    found = [values for line, _ in lines.values() for values in line.values()]
    places = say.decimals_of(max((abs(values.mean()) for values in found if len(values)), default=0.0))
    full, variants = max(map(len, found)), table.variants

    def reached(values: FloatArray, *, best: bool) -> str:
        """Return ``12.34 ± 0.56``, bold if it is the best, and with its number of splits where that is not `full`."""
        if not len(values):
            return say.ABSENT
        std = f" ± {values.std(ddof=1):.{places}f}" if len(values) > 1 else ""
        text = f"{values.mean():.{places}f}{std}"
        return (f"**{text}**" if best else text) + ("" if len(values) == full else f" ({len(values)})")

    rows = []
    for (data, part), (line, best) in lines.items():
        cells = [reached(line[v], best=v in best) if v in line else say.ABSENT for v in variants]
        rows.append([literal(data) if part == "train" else "", part, *cells])
    over = "one split" if full <= 1 else f"mean ± standard deviation over {full} splits"
    caption = (
        f"`{evidence.statistic}`, {over}. **Bold**: the largest mean of the line, among those with the most splits."
    )
    if any(len(values) < full for values in found):
        caption += " The number of splits is in parentheses where it is smaller."
    if any(variant.best_of for variant in variants):
        caption += " “Best of” is chosen by the mean on the test sets, which favours that method."
    return Table(["data set", "set", *(literal(v.label) for v in variants)], rows, caption, left=2)


def line_of(row: Row, part: str, evidence: Evidence) -> tuple[dict[Variant, FloatArray], set[Variant]]:
    """Return the values of each variant of a data set without NaN, and the variants with the largest mean.

    These are among the variants with the most splits, because a few splits may be easy ones.
    """
    values = {variant: series.values(part, evidence.statistic) for variant, series in row.items()}
    line = {variant: own[~np.isnan(own)] for variant, own in values.items()}
    full = max(map(len, line.values()), default=0)
    top = max((own.mean() for own in line.values() if full and len(own) == full), default=math.nan)
    return line, {v for v, own in line.items() if len(own) == full and math.isclose(mean_of(own), top, rel_tol=1e-12)}


def _exact(evidence: Evidence) -> Iterator[Block]:
    rows, with_exact = [], [table for table in evidence.tables if table.exact]
    for table, series in ((one, series) for one in with_exact for series in one.exact):
        of_table = f" ({table.heading})" if len(with_exact) > 1 else ""
        lists = [record for record in series.records.values() if record["list"]]
        proofs = gaps = [say.ABSENT] * 2
        if lists:
            proofs = [f"{sum(map(proven, lists))} of {len(lists)}", str(sum(map(nothing_proven, lists)))]
            every = np.array([record["list"]["gap"] for record in lists], dtype=np.float64)  # NaN for None
            ends = float(np.median(every)), float(np.max(every))
            gaps = ["0%" if gap == 0 else "< 0.01%" if gap < 1e-4 else say.gap_text(gap) for gap in ends]
        objective, bound = (mean_of(series.on_list(what)) for what in ("value", "bound"))
        means = [say.fixed(mean, say.decimals_of(objective)) for mean in (objective, bound)]
        name = [literal(series.data), literal(series.variant.label + of_table), str(len(series.records))]
        rows.append([*name, *proofs, *means, *gaps])
    header = ["data set", "variant", "splits", "proven", NOTHING_PROVEN, "objective", "bound", "median gap",
              "largest gap"]  # fmt: skip
    caption = (
        "Proven: lists on which no weights can do better, of all lists with something to reorder. Nothing proven: "
        "lists whose bound is that of a perfect order, so that their gap says nothing about the search. Objective and "
        "bound: means over the lists. The gap is the distance from the answer's objective to the bound."
    )
    if rows:
        yield Table(header, rows, caption, left=2)


def _options(evidence: Evidence) -> Iterator[Block]:
    """Yield the tables in which one option of the exact stage other than K varies alone."""
    for table, key in ((one, key) for one in evidence.tables for key in sorted(one.keys - {K})):
        rows = {data: row for data, row in table.along(key).items() if len(row) > 1}
        reference = {data: _reference(evidence, key, list(row), data) for data, row in rows.items()}
        others = {(d, value): one for d, row in rows.items() for value, one in row.items() if value != reference[d]}
        if not others:
            continue
        found = evidence.families({(d, v): (one, rows[d][reference[d]]) for (d, v), one in others.items()})
        of: dict[str, list[str]] = {}
        for pair in reference.items():
            of.setdefault(say.value_text(pair), []).append(pair[0])
        name = key_name(key)
        usual = say.listed([f"{value} ({say.listed(data)})" if len(of) > 1 else value for value, data in of.items()])
        against = f"{name} = {usual} on the test sets"
        yield Text(f"**{literal(table.title or name)}**")
        yield Text(say.verdict_text(found["test"], f"another {name}", against, evidence.decimals, name))
        yield comparison_table(evidence, others, found, (f"{name} = {usual}", "this value"), name)


def _reference(evidence: Evidence, key: str, values: list[Any], data: str) -> Any:  # noqa: ANN401  (of an option)
    """Return the smallest price C; of other options the value that the sweep's other tables use, else the first."""
    if key not in ("exact.C", TIME_LIMIT) and data in evidence.lengths:
        usual = next(iter(next(iter(evidence.lengths[data].main.values())).records.values()))
        if (value := usual["options"][key.rpartition(".")[2]]) in values:
            return value
    return values[0]


def _recentring(evidence: Evidence) -> Iterator[Block]:
    if not (found := evidence.recentred)["test"]:
        return
    text = (
        "A recentred answer wins the same comparisons as the exact answer, by the largest possible margin, and so has "
        "the same objective."
    )
    against = "the same answer as found on the test sets"
    yield Text(f"{text} {say.verdict_text(found['test'], 'a recentred answer', against, evidence.decimals)}")
    yield comparison_table(evidence, evidence.main, found, ("as found", "recentred"))


def _cards(evidence: Evidence) -> Iterator[Block]:
    rows = []
    for series in evidence.cards:
        cards = [Card.from_dict(record["card"]) for record in series.records.values()]
        values = np.array([[[c.value, c.beside] for c in card.counts] for card in cards], dtype=np.float64)
        train, test = np.moveaxis(values, 0, -1)  # own value and that of logistic regression, by split
        asked = Counter(column for card in cards for column in {q.column for q in card.questions})
        columns = sorted(asked, key=lambda column: (-asked[column], column))
        rows.append(
            [
                literal(series.data),
                literal(series.variant.label),
                f"`{cards[0].statistic}`" if cards[0].intercept is None else "minus the log loss",
                series.proven,
                ", ".join(f"{literal(column)} ({asked[column]})" for column in columns),
                *(say.fixed(mean_of(found), 4) for found in (train[0], test[0], test[1])),
            ]
        )
    header = ("data set", "variant", "statistic", "proven", "asks about", "on train", "on test", "logistic regression")
    caption = (
        "Means over the splits of the statistic that each card maximises. Proven: no allowed card has a larger value "
        "on the training set. Asks about: columns, and in how many splits. Logistic regression: on all questions, on "
        "test."
    )
    if rows:
        yield Table(header, rows, caption, left=5)


def _checks(evidence: Evidence) -> Iterator[Block]:
    def errors(records: list[Json]) -> str:
        """Name results by data set, split and K, or count them by data set when there are many."""
        named = [f"{r['data']} split {r['split']}, K = {r['options']['top_k']}" for r in records]
        if len(records) > _NAMED:
            named = [f"{data} ({number})" for data, number in Counter(r["data"] for r in records).items()]
        return f", which is an error: {say.listed(named)}" if records else ""

    if exact := evidence.exact:
        below, crossed = [], []
        for record in (record for record in exact if record["list"]):
            value, bound = record["list"]["value"], record["list"]["bound"]
            slack = _TOLERANCE * max(1.0, abs(value))
            below += [record] if value < max(record["list"]["starts"].values(), default=-math.inf) - slack else []
            crossed += [record] if bound < value - slack else []
        bounds = f"In {len(crossed)} the bound is below the value{errors(crossed)}." if crossed else ""
        yield Text(
            f"**Solver.** In {len(below) or 'none'} of {len(exact)} exact results the objective is below that of a "
            f"ranker the search started from{errors(below)}. {bounds or 'No bound is below its value.'}"
        )
        statuses = Counter(record["status"] for record in exact)
        yield Text(f"**Statuses.** {say.listed([f'{count} {status}' for status, count in statuses.items()])}.")
    first = [record for record in evidence.results.records if record["method"] not in (EXACT, CARD)]
    early = Counter((r["method"], r["data"], r["status"]) for r in first if r["status"] not in ("converged", "fitted"))
    if first:
        stopped = "; ".join(f"{method} on {data}: {count} {status}" for (method, data, status), count in early.items())
        text = f"{early.total() or 'None'} of {len(first)} first-stage rankers stopped before they converged"
        yield Text(f"**First stages.** {text}{f': {stopped}' if early else ''}.")


def _times(evidence: Evidence) -> Iterator[Block]:
    yield Text(
        "Median seconds over the splits. For a first-stage ranker this is the fit; for the exact stage it is the "
        "search on the list, without the fit of its base ranker."
    )
    for table in (table for table in evidence.tables if table.rows):
        rows = []
        for data, row in table.rows.items():
            cells = dict.fromkeys(table.variants, say.ABSENT)
            for variant, series in row.items():
                median = float(np.median([record["seconds"] for record in series.records.values()]))
                cells[variant] = f"{median:.0f}" if median >= 9.95 else f"{median:#.2g}"
            rows.append([literal(data), *cells.values()])
        yield Text(f"**{literal(table.heading)}**")
        yield Table(["data set", *(literal(v.label) for v in table.variants)], rows)


def _data(evidence: Evidence) -> Iterator[Block]:
    by: dict[str, list[Json]] = {}
    for record in evidence.results.records:
        by.setdefault(record["data"], []).append(record)
    rows = []
    for data, records in by.items():
        sizes = [record["sizes"] for record in records]
        found = [{size[part][at] for size in sizes} for part in PARTS for at in (0, 1)]
        found.append({size["d"] for size in sizes})
        numbers = [str(min(one)) if len(one) == 1 else f"{min(one)}–{max(one)}" for one in found]
        rows.append([literal(data), *numbers, str(len({record["split"] for record in records}))])
    header = ["data set", "train rows", "positive", "test rows", "positive", "features", "splits"]
    yield Table(header, rows, "Numbers that depend on the split are shown as least–largest.")
    origin = evidence.results.origin
    parts = [f"Python {origin['python']}"] if origin.get("python") else []
    parts += [f"{name} {version}" for name, version in (origin.get("versions") or {}).items()]
    if commit := origin.get("git_commit"):
        parts.append(f"commit {commit[:12]}{', with changes' if origin.get('git_dirty') else ''}")
    if parts:
        yield Text(literal(f"The sweep was begun with {', '.join(parts)}."))
