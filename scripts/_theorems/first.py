"""What the paper's first theorem says, and what its data show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ltr.data import Dataset, theorem1
from ltr.exact import Solution, Status
from ltr.losses import parse_loss
from trainers.report.page import Block, Picture, Section, Table, Text
from trainers.report.wording import listed

from .first_pictures import who_prefers_what
from .first_training import training_section
from .preferences import CLAIMS, CONVEX, FIRST_HIT, Comparison, compare, preference
from .training import EXACT, TOP_K, Rankings, rankings, solve_exactly
from .words import code, number, percent

__all__ = ["first_theorem"]


def first_theorem(seeds: Sequence[int] = (0, 1, 2), draw: Callable[[int], Dataset] = theorem1) -> list[Section]:
    """Theorem 1, what training makes of it, and what exact reranking does.

    Args:
        seeds: of the draws of the data; pictures, fits and solves are of the first.
        draw: makes the data of a seed.
    """
    data = draw(seeds[0])
    comparisons = compare(seeds, draw)
    solved = {name: solve_exactly(name, data) for name in EXACT}
    found = rankings(data)
    return [
        Section("Theorem 1: one data set, two opposite rankings", _stated(data, comparisons, len(seeds))),
        training_section(data, comparisons, found),
        Section("Theorem 1: what exact reranking makes of it", _reranked(data, solved, found)),
    ]


# --- the statement ----------------------------------------------------------------------------------------------


def _stated(data: Dataset, comparisons: Sequence[Comparison], draws: int) -> list[Block]:
    first, second = (listed([code(name) for name, own in CLAIMS.items() if own == solution]) for solution in (1, 2))
    statement = (
        f"The theorem (section 2.4): there is a data set of one feature x with two opposite rankings, of which {first} "
        f"prefer the one, {second} the other. It is proven by an example, `ltr.data.theorem1`: {data.n:,} observations "
        "in four clumps, drawn below. Solution 1 ranks by x, from large to small, Solution 2 by −x."
    )
    caption = (
        "Left: one draw of the data, spread sideways to be seen. Right: by how much the values of the two solutions "
        "differ, as a share of the larger one, on the side of the solution that is preferred (of losses, the smaller)."
    )
    return [
        Text(statement),
        Picture("theorem1_preferences", who_prefers_what(data, comparisons), caption),
        Text(_verdict(comparisons, draws)),
        Text(_remarks({c.name: c for c in comparisons})),
        _table(comparisons),
    ]


def _verdict(comparisons: Sequence[Comparison], draws: int) -> str:
    named = [c for c in comparisons if c.name in CLAIMS]
    wrong = [c.name for c in named if c.preferred != CLAIMS[c.name]]
    losses = max(c.spread for c in comparisons if c.kind == "loss")
    others = max(c.spread for c in comparisons if c.kind != "loss")
    said = (
        f"All {len(named)} preferences are as the theorem says"
        if not wrong
        else f"Not as the theorem says: {listed([code(name) for name in wrong])}"
    )
    same = "the same in each, for only the order of the clumps matters" if others < 1e-12 else "not the same in each"
    return (
        f"**{said}, in each of {draws} draws of the data.** Values of statistics are {same}; losses differ between "
        f"draws by up to {percent(losses)}. As AUC, the Wilcoxon rank sum prefers Solution "
        f"{preference(comparisons, 'auc')}: it is an increasing linear function of AUC where no scores tie."
    )


def _remarks(by_name: Mapping[str, Comparison]) -> str:
    summed, usual = by_name["mrr"], by_name[FIRST_HIT]
    text = (
        f"The preference of `mrr` is thin, {percent(summed.advantage)}, and belongs to the paper's definition, which "
        f"adds up the reciprocal ranks of all positives. "
    )
    if usual.preferred != summed.preferred:
        text += (
            "The mean reciprocal rank as it is usually defined, that of the first positive alone, prefers Solution "
            f"{usual.preferred}: {number(usual.second[0])} to {number(usual.first[0])}. "
        )
    smooth = [c for c in by_name.values() if c.kind == "loss" and c.name not in CONVEX]
    agree = [c for c in smooth if by_name[_statistic(c)].preferred == c.preferred]
    return text + (
        f"Of the losses that follow a statistic of one's choice and are not convex, {len(agree)} of {len(smooth)} "
        "prefer what their statistic prefers."
    )


def _statistic(comparison: Comparison) -> str:
    return str(parse_loss(comparison.name).statistic)


def _table(comparisons: Sequence[Comparison]) -> Table:
    rows = [
        [
            code(c.name) if c.name != FIRST_HIT else c.name,
            "loss" if c.kind == "loss" else "statistic",
            number(c.first[0]),
            number(c.second[0]),
            "—" if c.preferred is None else str(c.preferred),
            str(CLAIMS.get(c.name, "")),
            percent(c.advantage),
        ]
        for c in comparisons
    ]
    header = ["measure", "kind", "Solution 1", "Solution 2", "prefers", "the theorem says", "apart by"]
    caption = (
        "Of statistics the larger value is preferred, of losses (the mean over pairs, scores x and −x) the smaller."
    )
    return Table(header, rows, caption, left=2)


# --- exact ------------------------------------------------------------------------------------------------------


def _reranked(data: Dataset, solved: Mapping[str, Solution], found: Rankings) -> list[Block]:
    right = [
        name for name, s in solved.items() if s.status is Status.OPTIMAL and (s.weights[0] > 0) == (CLAIMS[name] == 1)
    ]
    text = (
        f"The exact stage, given the full list and the statistic that is wanted, ends in {len(right)} of {len(solved)} "
        "cases with the solution that the theorem names, each time with a proof that no linear scorer is better."
    )
    rows = [
        [code(name), number(float(s.weights[0])), number(s.value), number(s.bound), s.status.value.replace("_", " ")]
        for name, s in solved.items()
    ]
    header = ["ranking", *(code(name) for name in EXACT)]
    values = [[ranking, *(_marked(own, found, name) for name in EXACT)] for ranking, own in found.items()]
    return [
        Text(text),
        Table(["statistic", "w", "value", "bound", "status"], rows),
        Text(_on_two_stages(data, found)),
        Table(header, values, "**Bold**: the largest of the column."),
    ]


def _marked(own: Mapping[str, float], found: Rankings, name: str) -> str:
    text = number(own[name])
    return f"**{text}**" if own[name] >= max(values[name] for values in found.values()) * (1 - 1e-12) else text


def _on_two_stages(data: Dataset, found: Rankings) -> str:
    first, second, two_stage, boosted = found
    both = [found[first], found[second]]
    negatives = int((data.y[np.argsort(-data.X[:, 0])[:TOP_K]] == 0).sum())
    better = [name for name in EXACT if found[two_stage][name] >= max(own[name] for own in both)]
    text = (
        f"Two stages need not choose between the solutions. RankNet ranks by x; of its top {TOP_K}, {negatives} are "
        "negatives, the highest of all, and the exact stage turns this top around. **That is at least as good as the "
        f"better of the two solutions in {len(better)} of {len(EXACT)} statistics at once.**"
    )
    beaten = [name for name in EXACT if found[boosted][name] >= max(own[name] for own in both)]
    return text + (
        " RankBoost minimises the exponential loss, too, but in the form that the paper's experiments compare with it "
        f"adds up thresholds and is not bound to a direction: its AUC is {number(found[boosted]['auc'], 6)}, and it is "
        f"at least as good as the better solution in {len(beaten)} of {len(EXACT)} statistics. The theorem is about "
        "linear scorers."
    )
