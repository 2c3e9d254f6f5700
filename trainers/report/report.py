"""The report of a sweep or a run: what to do, the picture and the table that show it, the details; written to files."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ltr.answer import Answer, curve_table, drawn
from trainers.files import RunError, remove_leftovers, write_atomic, writing
from trainers.records import SweepResults, write_export
from trainers.report.evidence import Evidence, mean_of
from trainers.report.page import Block, Page, Section, Table, Text, literal, png, to_html, to_markdown
from trainers.report.paired import FEWEST_SPLITS, Verdict
from trainers.report.pictures import gain_picture
from trainers.report.tables import gain_table, progress, promises, table_sections, value_table
from trainers.report.wording import counted, effect, fixed, listed, resolution_text, signed, where
from trainers.run.results import Results, tables


@dataclass(frozen=True)
class Written:
    """The files of a report; the last two are those of a sweep."""

    markdown: Path
    html: Path  # one file with the pictures inside
    figures: Path | None = None  # folder of the pictures
    export: Path | None = None  # all results in one file, which `ltr report` and `ltr sweep --from` read

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them, with the pictures as their folder."""
        return tuple(filter(None, (self.html, self.markdown, self.figures, self.export)))


def build_page(results: SweepResults) -> Page:
    """Make the report of a sweep."""
    if not results.records:
        raise RunError(f"sweep {results.name}: no result is finished yet; `ltr sweep CONFIG` computes them")
    evidence = Evidence(results)
    picture = gain_picture(evidence)
    begun = next(table for table in evidence.tables if table.rows)
    before = (advice(evidence), choices(evidence))
    table = gain_table(evidence) if evidence.gains["test"] else value_table(begun, evidence)
    after = (resolution_text(evidence.gains["test"]), state(evidence))
    summary: list[Block] = [Text(text) for text in before if text]
    summary += [*filter(None, [picture]), table, *(Text(text) for text in after if text)]
    return Page(literal(f"Results of {results.name}"), summary, table_sections(evidence))


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
        for found in row.proven:
            table = _table(*found.table, left=0, html=drawn(found))
            sections.append(Section(literal(f"{found.heading}, {row.method}"), [*_texts(found.sentences), table]))
    return Page(literal(f"Results of {results.name}"), summary, sections)


def _texts(texts: Iterable[str]) -> list[Text]:
    return [Text(literal(text)) for text in texts]


def _table(
    heads: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "", *, left: int = 1, html: str = ""
) -> Table:
    return Table([*map(literal, heads)], [[*map(literal, row)] for row in rows], caption, left, html)


def choices(evidence: Evidence) -> str:
    """Return one sentence on what the choices on the training sets expected and what came; empty without choices."""
    found, d, name = promises(evidence, evidence.exact), evidence.decimals, f"`{evidence.statistic}`"
    if not found:
        return ""
    reranked = [one for one in found if one.choice.reranks]
    results = f"{counted(len(found), 'result')} of the exact stage"
    if not reranked:
        return f"In all {results} the choice on the training set kept the base order."
    expected = signed(mean_of(np.array([one.choice.expected for one in reranked])), d)
    said = (
        f"In {len(reranked)} of {results} the choice on the training set was to rerank, with {expected} {name} to be "
        "expected on new lists"
    )
    known = [one for one in reranked if not math.isnan(one.came)]
    if not known:
        return f"{said}."
    came = signed(mean_of(np.array([one.came for one in known])), d)
    held = sum(one.held for one in known)
    return f"{said} and {came} on the test sets, within the expected 90 % interval in {held} of {len(known)}."


def advice(evidence: Evidence) -> str:
    """Return one sentence on whether reranking helps on these data."""
    found, d = evidence.gains["test"], evidence.decimals
    if not evidence.exact:
        best = []
        for data in dict.fromkeys(record["data"] for record in evidence.results.records):
            rows = (table.rows.get(data, {}) for table in evidence.tables)
            means = {v.label: mean_of(s.values("test", evidence.statistic)) for row in rows for v, s in row.items()}
            label, mean = max(means.items(), key=lambda item: item[1] if np.isfinite(item[1]) else -np.inf)
            best.append(f"{literal(label)} on {literal(data)} ({fixed(mean, d)})")
        text = f"the best mean `{evidence.statistic}` on test is that of {listed(best)}"
        return f"**The sweep has no exact stage yet; {text}.**"
    if not any(one.tested for one in found.values()):
        needed = f"{FEWEST_SPLITS} splits of a data set with results of the exact stage and of its base ranker"
        return f"**It is too early to say whether reranking helps: a test needs {needed}.**"
    better, worse = (list(where(found, verdict, d).values()) for verdict in (Verdict.BETTER, Verdict.WORSE))
    if better and worse:
        return f"**Rerank on {listed(better)}, but not on {listed(worse)}, where the test value falls.**"
    if better:
        return f"**Rerank on {listed(better)}; elsewhere keep the base ranker.**"
    if worse:
        return f"**Keep the base ranker: reranking lowers the test value on {listed(worse)} and raises it nowhere.**"
    pair, most = max(found.items(), key=lambda item: item[1].percent if item[1].tested else -np.inf)
    return (
        f"**Keep the base ranker: reranking was not shown to change `{evidence.statistic}` on the test sets.** Its "
        f"largest mean gain, on {literal(pair[0])} at K = {pair[1]}, is {effect(most, d)}."
    )


def state(evidence: Evidence) -> str:
    """Say how much of the sweep is finished."""
    done, planned = progress(evidence.results)
    records = evidence.results.records
    data, splits = len({record["data"] for record in records}), len({record["split"] for record in records})
    every = f"All {done} results are finished"
    finished = every if done == planned else f"**{done} of {planned} results are finished**"
    text = f"{finished}, on {counted(data, 'data set')} and {counted(splits, 'split')}."
    waiting = [literal(table.heading) for table in evidence.tables if not table.rows]
    return f"{text} Not begun: {'; '.join(waiting)}." if waiting else text


def write_report(results: SweepResults | Results, folder: Path, *, answer: Answer | None = None) -> Written:
    """Write the report of a sweep or of a run.

    Args:
        results: results of the sweep or run.
        folder: folder to write to, made when missing.
        answer: the page of the run; None without one, and for sweeps.

    Raises:
        RunError: the sweep has no result yet, or a place cannot be written to.
    """
    written = Written(folder / "report.md", folder / "report.html")
    if isinstance(results, Results):
        page = build_run_page(results, answer)
    else:
        page = build_page(results)
        written = dataclasses.replace(written, figures=folder / "figures", export=folder / "cells.jsonl")
    images = {picture: png(picture) for picture in page.pictures}
    with writing(folder):
        for place in filter(None, (folder, written.figures)):
            place.mkdir(parents=True, exist_ok=True)
            remove_leftovers(place, ".*.tmp")
        for picture, image in images.items():
            write_atomic(folder / "figures" / picture.file, image)
        if not isinstance(results, Results):
            write_export(folder / "cells.jsonl", results)
        write_atomic(written.html, to_html(page, images).encode())
        write_atomic(written.markdown, to_markdown(page, "figures").encode())
    return written
