"""What stands before the tables of the paper's page: what it is, the protocol, and where the paper's parts are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ltr.statistics import RankStatistic
from trainers.config import EXACT
from trainers.records import SweepResults
from trainers.report.markdown import literal
from trainers.report.page import Block, Section, Table, Text
from trainers.report.reference import Reference
from trainers.report.series import statistic_of_sweep
from trainers.report.sweep_tables import tables_of

__all__ = ["anchor", "introduction", "logarithm", "numbering", "protocol"]

_PARTS = (
    ("theorem 1, figure 1", "Theorem 1: one data set, two opposite rankings"),
    ("figure 2 and section 2.6", "Ranks and ties"),
    ("lemma 2 and the last theorem of section 4", "When Subranks suffice: a condition is missing"),
    ("tables 1 and 2", "methods"),
    ("tables 1 and 2, Abalone19", "methods_abalone19"),
    ("table 3", "margin"),
    ("table 4", "price"),
    ("figures 3 and 4", "Objective and bound over time"),
    ("tables of all runs (appendix A.3)", "Beside published values"),
    ("appendix A.1 and A.2", "Other statements, checked"),
)
"""Parts of the paper, and the title of a section here or the name of a table of the sweep."""

_STAND_INS = ("roc_flexibility",)  # data whose number of positives is not the paper's
_FOLDER = "docs/paper"


def introduction(results: SweepResults) -> list[Block]:
    """What the page is, and how to repeat it."""
    origin = results.origin
    versions = origin.get("versions") or {}
    parts = [f"Python {origin['python']}"] if origin.get("python") else []
    parts += [f"{name} {versions[name]}" for name in ("ltr", "torch", "numpy", "pyscipopt") if name in versions]
    if origin.get("git_commit"):
        parts.append(f"commit `{origin['git_commit'][:12]}`" + (" with changes" if origin.get("git_dirty") else ""))
    if origin.get("machine"):
        parts.append(str(origin["machine"]))
    ran = f" They were begun with {', '.join(parts)}." if parts else ""
    return [
        Text(
            "Rudin & Wang, [*Direct Learning to Rank and Rerank*](https://arxiv.org/abs/1802.07400) (2018), repeated: "
            "its experiments, on its data as far as they can be recovered, and what it proves. Everything on this page "
            "is computed; sentences are made of the results."
        ),
        Text(
            f"The results of the experiments are in `{_FOLDER}/cells.jsonl`.{ran} `ltr sweep configs/paper/all.toml` "
            f"computes them again, with `--from {_FOLDER}/cells.jsonl` only what is missing there; "
            "`python scripts/paper.py --sweep runs/paper` makes this page of them and computes the theorems. "
            f"`ltr report {_FOLDER}/cells.jsonl` makes a report of the experiments alone, as one HTML file, too."
        ),
    ]


def numbering(results: SweepResults, sections: Sequence[Section]) -> Section:
    """Where the parts of the paper are on the page.

    Args:
        results: of the sweep.
        sections: of the page.
    """
    titles = [section.title for section in sections]
    tables = {table.name: table.heading for table in tables_of(results)}
    rows = []
    for part, where in _PARTS:
        title = literal(tables[where]) if where in tables else where
        if title in titles:
            rows.append([part, f"[{title}](#{anchor(title)})"])
    return Section("Where the paper's parts are", [Table(["the paper's", "here"], rows, left=2)])


def anchor(title: str) -> str:
    """The link that GitHub makes of a heading.

    Examples:
        >>> anchor("The margin, at K = 100")
        'the-margin-at-k--100'
    """
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def protocol(results: SweepResults) -> Section:
    """How the experiments are made, from the options of the tables of methods."""
    exact = [options for _, options in _exact_options(results)]
    splits = len({record["split"] for record in results.records})
    texts = [
        f"Each data set is cut into halves at random, {splits} times, the same for all methods. First stages are "
        "fitted to the training half. The exact stage reranks the top K of the training half, and the items of the "
        "test half above the same threshold; the others keep the order of the first stage."
    ]
    if exact:
        base, limit, margin = (
            _common([options.get(key) for options in exact]) for key in ("base", "time_limit", "margin")
        )
        texts.append(
            f"It starts from `{base}` and maximises `{statistic_of_sweep(results)}` with a margin of {margin:g} and "
            f"{_prices(results)}, for at most {limit:g} seconds a list. The paper gave its solver two hours a list, "
            "one hour for ROC Flexibility. It maximised Subranks, here it is ResolvedRanks where nothing else is said."
        )
    return Section("Protocol", [Text(text) for text in texts])


def _exact_options(results: SweepResults) -> Iterator[tuple[str, dict[str, Any]]]:
    """Data set and options of the finished exact cells of the tables of methods."""
    by_id = results.by_id
    for grid in results.grids:
        if grid["name"].startswith("methods"):
            for cell in grid["cells"]:
                if cell["method"] == EXACT and cell["id"] in by_id:
                    yield cell["data"], by_id[cell["id"]]["options"]


def _prices(results: SweepResults) -> str:
    found = {data: options["C"] for data, options in _exact_options(results)}
    usual = _common(list(found.values()))
    others = [f"{C:g} on {literal(data)}" for data, C in found.items() if usual != C]
    return f"C = {usual:g}" + (f" ({', '.join(others)})" if others else "")


def _common(values: Sequence[Any]) -> Any:  # noqa: ANN401
    return Counter(values).most_common(1)[0][0]


def logarithm(results: SweepResults, reference: Reference) -> list[Section]:
    """Whether published values can be DCG with base 2; nothing where none is larger than possible.

    Args:
        results: of the sweep, for the numbers of positives.
        reference: the published values.
    """
    rows, beyond, natural = [], [], []
    for data in dict.fromkeys(value.data for value in reference.values):
        sizes = [record["sizes"] for record in results.records if record["data"] == data]
        if data in _STAND_INS or not sizes:
            continue
        positives = {half: max(size[half][1] for size in sizes) for half in ("train", "test")}
        best = {half: _largest(positives[half], sizes[0][half][0]) for half in positives}
        value = max((v for v in reference.values if v.data == data), key=lambda v: v.mean / best[v.half][0])
        two, e = best[value.half]
        beyond += [data] if value.mean > two else []
        natural += [data] if value.mean > e else []
        label = literal(value.variant.label)
        rows.append(
            [
                literal(data),
                label,
                value.half,
                f"{value.mean:.2f}",
                str(positives[value.half]),
                f"{two:.2f}",
                f"{e:.2f}",
            ]
        )
    if not beyond:
        return []
    header = ["data set", "published for", "half", "mean", "positives", "largest, base 2", "largest, base e"]
    text = (
        f"The paper defines DCG with a logarithm of base 2. On {len(beyond)} of {len(rows)} data sets a published "
        "mean is larger than the DCG of a perfect ranking with that base, for as many positives as any of our halves "
        f"has; with the natural logarithm {_how_many(len(natural))}. So base e is used "
        "here."
    )
    return [
        Section(
            "Which logarithm",
            [
                Text(text),
                Table(header, rows, "The published mean that is closest to the limit, or furthest beyond.", left=3),
            ],
        )
    ]


def _how_many(count: int) -> str:
    return {0: "none is", 1: "1 is"}.get(count, f"{count} are")


def _largest(n_pos: int, n: int) -> tuple[float, float]:
    """DCG of a perfect ranking, with base 2 and with base e."""
    two, e = (RankStatistic.parse(name).best(n, n_pos) for name in ("dcg", "dcg(base=e)"))
    return two, e
