"""Findings: what a reader should know is odd, and what was checked and is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from trainers.config import EXACT
from trainers.files import Json
from trainers.records import nothing_proven
from trainers.report.evidence import FULL, Evidence
from trainers.report.findings.larger_lists import AS_GOOD, PRICE, SPLICE, UNKNOWN, Case, cases
from trainers.report.page import Block, Section, Table, Text
from trainers.report.series import in_order
from trainers.report.wording import counted, fixed, listed
from trainers.tables import NOTHING_PROVEN

__all__ = ["WIDE_GAP", "below_a_start", "check_section", "wide_gaps"]

WIDE_GAP = 0.05
"""Relative gap above which a list is named."""
_TOLERANCE = 1e-9
_EXPECTED = ("optimal", "time_limit")
_DONE = ("converged", "fitted")
_NAMED = 12  # cells that are named one by one; of more, data sets with counts


def check_section(evidence: Evidence) -> Section | None:
    """Exceptions and checks; None without an exact result."""
    records = evidence.exact
    if not records:
        return None
    blocks: list[Block] = [
        Text(text)
        for text in (_solver_text(records), _full_text(evidence), _status_text(records), _first_stage_text(evidence))
    ]
    wide = wide_gaps(records)
    if not wide:
        return Section("Exceptions and checks", [*blocks, Text(f"**Gaps.** No list has a gap above {WIDE_GAP:.0%}.")])
    text = f"**Gaps.** {len(wide)} of {counted(len(records), 'exact cell')} have a gap above {WIDE_GAP:.0%}, as listed."
    return Section("Exceptions and checks", [*blocks, Text(text), _gap_table(wide, records)])


def below_a_start(records: Iterable[Json]) -> list[Json]:
    """Exact cells whose objective is below that of a ranker they started from."""
    return [
        record
        for record in records
        if record["list"]
        and record["list"]["starts"]
        and record["list"]["value"] < max(record["list"]["starts"].values()) - _slack(record)
    ]


def _slack(record: Json) -> float:
    return _TOLERANCE * max(1.0, abs(record["list"]["value"]))


def wide_gaps(records: Iterable[Json]) -> list[Json]:
    """Exact cells with a gap above `WIDE_GAP`, or without one."""
    return [record for record in records if record["list"] and _gap(record) > WIDE_GAP]


def _gap(record: Json) -> float:
    gap = record["list"]["gap"]
    return float("inf") if gap is None else float(gap)


def _solver_text(records: list[Json]) -> str:
    number = counted(len(records), "exact cell")
    below = below_a_start(records)
    crossed = [r for r in records if r["list"] and r["list"]["bound"] < r["list"]["value"] - _slack(r)]
    if below:
        starts = f"In {len(below)} of {number} the objective is below that of a ranker the search started from, which "
        starts += f"must not be: {_named(below)}."
    else:
        starts = f"In none of {number} is the objective below that of a ranker the search started from."
    if crossed:
        bounds = f"In {len(crossed)} the bound is below the value, which must not be: {_named(crossed)}."
    else:
        bounds = "No bound is below its value."
    return f"**Solver.** {starts} {bounds}"


def _named(records: list[Json]) -> str:
    """Cells by data set, split and K, or only counted by data set when there are many."""
    if len(records) > _NAMED:
        return listed([f"{data} ({number})" for data, number in Counter(r["data"] for r in records).items()])
    return listed([f"{r['data']} split {r['split']}, K = {r['options']['top_k']}" for r in records])


def _full_text(evidence: Evidence) -> str:
    """Full lists that are proven and yet worse on the whole training half than the smallest K."""
    proven = {  # a list that several limits prove counts once
        (case.data, case.split): case
        for lengths in evidence.lengths.values()
        for limit in (lengths.limit, *lengths.longer)
        for case in cases(evidence, lengths, limit)
        if case.longer == FULL and case.proven and case.shorter == _smallest(evidence, case)
    }
    found = list(proven.values())
    worse = [case for case in found if case.kind != AS_GOOD]
    if not found:
        return "**Full list.** No full list is proven beside a shorter one."
    text = f"**Full list.** Of {counted(len(found), 'full list')} proven beside the smallest K"
    if not worse:
        return f"{text}, none has a smaller statistic on the whole training half."
    parts = []
    causes = {
        SPLICE: "the splice, which no linear order reaches",
        PRICE: "the price of its weights",
        UNKNOWN: "no bound tells why",
    }
    for kind, cause in causes.items():
        if cells := [case for case in worse if case.kind == kind]:
            parts.append(f"{_named_cases(cells, evidence.decimals)}: {cause}")
    have = "has" if len(worse) == 1 else "have"
    return f"{text}, {len(worse)} {have} a smaller statistic on the whole training half. {'; '.join(parts)}."


def _smallest(evidence: Evidence, case: Case) -> int | str:
    lengths = evidence.lengths[case.data]
    return next(iter(lengths.main if case.limit == lengths.limit else lengths.longer[case.limit]))


def _named_cases(found: list[Case], decimals: int) -> str:
    parts = []
    for data in dict.fromkeys(case.data for case in found):
        of = [case for case in found if case.data == data]
        splits = listed([str(split) for split in sorted({case.split for case in of})])
        most = fixed(max(case.missing for case in of), decimals)
        word = "split" if len({case.split for case in of}) == 1 else "splits"
        parts.append(f"{data} ({word} {splits}; {most} below K = {of[0].shorter} at most)")
    return listed(parts)


def _gap_table(wide: list[Json], records: list[Json]) -> Table:
    def group(record: Json) -> tuple[str, str, float]:
        return record["data"], str(record["options"]["top_k"]), float(record["options"]["time_limit"])

    everything = Counter(map(group, records))
    rows = []
    order = list(dict.fromkeys(record["data"] for record in records))
    keys = {group(record): record["options"]["top_k"] for record in wide}
    for key in sorted(keys, key=lambda key: (order.index(key[0]), in_order(keys[key]), key[2])):
        gaps = [_gap(record) for record in wide if group(record) == key]
        data, length, limit = key
        largest = "no bound" if max(gaps) == float("inf") else f"{100 * max(gaps):.1f}%"
        unproven = sum(nothing_proven(record) for record in wide if group(record) == key)
        rows.append([data, length, f"{limit:g}", f"{len(gaps)}/{everything[key]}", largest, str(unproven)])
    header = ["data", "K", "seconds", f"above {WIDE_GAP:.0%}", "largest", NOTHING_PROVEN]
    caption = (
        "Exact cells of all tables with a wide gap, by data set, K and time limit. Nothing proven: how many of them "
        "have the bound of a perfect order."
    )
    return Table(header, rows, caption)


def _first_stage_text(evidence: Evidence) -> str:
    """First-stage rankers whose training did not converge."""
    records = [record for record in evidence.results.records if record["method"] != EXACT]
    if not records:
        return ""
    early = Counter((r["method"], r["data"], r["status"]) for r in records if r["status"] not in _DONE)
    number = counted(len(records), "first-stage ranker")
    if not early:
        return f"**First stages.** None of {number} stopped before it had converged."
    cells = [f"{method} on {data}: {count} {status}" for (method, data, status), count in early.items()]
    return f"**First stages.** {early.total()} of {number} stopped before they had converged: {'; '.join(cells)}."


def _status_text(records: list[Json]) -> str:
    by: dict[str, list[Json]] = {}
    for record in records:
        by.setdefault(record["status"], []).append(record)
    usual = ", ".join(f"{len(by[status])} {status}" for status in _EXPECTED if status in by) or "none of these"
    text = f"**Statuses.** {usual}"
    others = [f"{status}: {_named(found)}" for status, found in by.items() if status not in _EXPECTED]
    return f"{text}; no other." if not others else f"{text}. Others: {'; '.join(others)}."
