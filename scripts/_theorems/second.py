"""What the paper proves of Subranks, the condition that is missing, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping

from ltr.exact import Solution
from trainers.report.page import Block, Picture, Section, Table, Text
from trainers.report.wording import listed

from .second_pictures import counterexample
from .sufficiency import COUNTEREXAMPLES, FAMILIES, PRICES, Case, Tally, settle, tally
from .words import number

__all__ = ["second_theorem"]

Tallies = Mapping[tuple[str, float], Tally]


def second_theorem(lists: int = 30, seed: int = 0) -> list[Section]:
    """The theorem, two counterexamples, the corrected theorem, and random lists.

    Args:
        lists: random lists of each family.
        seed: of them.
    """
    cases = {name: settle(X, y, C) for name, (X, y, C) in COUNTEREXAMPLES.items()}
    tallies = {(name, C): tally(family, C, lists, seed) for name, family in FAMILIES.items() for C in PRICES}
    return [
        Section("When Subranks suffice: a condition is missing", [*_claim(), *_counterexamples(cases)]),
        Section("When Subranks suffice: the corrected theorem", _corrected(tallies)),
    ]


def _claim() -> list[Block]:
    return [
        Text(
            "Section 4 compares two objectives, the statistic by ResolvedRanks and by Subranks, each less C for every "
            "non-zero weight. Its last theorem: if no two observations are duplicates, every w that is best by "
            "Subranks is best by ResolvedRanks. The proof takes a ResolvedRank optimum w and breaks its ties by a "
            "small random change of the weights *that are not 0*, so that the price stays the same (lemma 2). It says "
            "that the change breaks every tie, for a random vector is not orthogonal to a difference x_i − x_k that "
            "is not 0. But the change is 0 outside the support of w: two observations that agree on the support tie "
            "after it as before."
        ),
    ]


def _counterexamples(cases: Mapping[str, Case]) -> list[Block]:
    two, one = cases["two features"], cases["one feature"]
    refuted = [name for name, case in cases.items() if case.proven and case.fails and not case.duplicates]
    caption = (
        "Left: the list, without duplicates. Right: both objectives against the direction of w. Along the first axis "
        "both positives have the score 1: by Subranks they share a place, by ResolvedRanks one stands above the other."
    )
    rows = [
        [f"{name} (C = {case.resolved.C:g})" if rank == "ResolvedRank" else "", rank, *_row(case, answer)]
        for name, case in cases.items()
        for rank, answer in (("ResolvedRank", case.best), ("Subrank", case.substitute))
    ]
    return [
        Text(
            f"**{_count(len(refuted))} without duplicates, each solved to a proof by both definitions, contradict the "
            f"theorem.** {_listing('two features', two)}, DCG: the best w by Subranks, {_vector(two.substitute)}, is "
            f"worth {number(two.resolved.evaluate(two.substitute.weights))} by ResolvedRanks, where "
            f"{_vector(two.best)} is worth {number(two.best.value)}."
        ),
        Picture("subrank_counterexample", counterexample(two), caption),
        Text(
            "The second needs no shared value, so data drawn from a continuous distribution are no way out. "
            f"{_listing('one feature', one)}, DCG: a price that outweighs what a ranking gains makes w = 0 best by "
            f"ResolvedRanks ({number(one.best.value)}); its support is empty, all observations agree on it, and by "
            f"Subranks it is worth only {number(one.subrank.evaluate(one.best.weights))}, less than "
            f"{number(one.substitute.value)} of w = {_vector(one.substitute)}."
        ),
        Table(
            ["list", "best by", "w", "value by ResolvedRanks", "value by Subranks", "bound", "status"],
            rows,
            "Values are the objective: DCG less C for every non-zero weight. The bound is of the definition in the "
            "row.",
            left=3,
        ),
    ]


def _row(case: Case, answer: Solution) -> list[str]:
    return [
        _vector(answer),
        number(case.resolved.evaluate(answer.weights)),
        number(case.subrank.evaluate(answer.weights)),
        number(answer.bound),
        answer.status.value.replace("_", " "),
    ]


def _listing(name: str, case: Case) -> str:
    X, y, C = COUNTEREXAMPLES[name]
    points = {label: listed([_point(x) for x, own in zip(X, y, strict=True) if own == label]) for label in (1, 0)}
    kinds = {label: "s" if y.count(label) > 1 else "" for label in (1, 0)}
    return f"Positive{kinds[1]} {points[1]}, negative{kinds[0]} {points[0]}, C = {case.resolved.C:g}" if C else ""


def _point(x: list[float]) -> str:
    text = ", ".join(f"{v:g}".replace("-", "−") for v in x)
    return f"({text})" if len(x) > 1 else text


def _vector(answer: Solution) -> str:
    return _point(answer.weights.tolist())


def _count(number_of: int) -> str:
    return {0: "No list", 1: "One list", 2: "Two lists"}.get(number_of, f"{number_of} lists")


def _corrected(tallies: Tallies) -> list[Block]:
    header = [
        "random lists", "C", "lists", "both proven", "condition holds", "optima differ", "Subrank optimum fails",
        "fails or differs, condition holds", "largest loss",
    ]  # fmt: skip
    rows = [
        [
            name if own is tallies[name, PRICES[0]] else "",
            f"{C:g}",
            *map(str, (own.lists, own.proven, own.condition, own.apart, own.fails, own.against)),
            number(own.worst, 3),
        ]
        for (name, C), own in tallies.items()
    ]
    caption = (
        "8 observations, 3 features, DCG, margin 1e-4, no duplicates. Optima differ: the largest values by the two "
        "definitions are not the same. Subrank optimum fails: the one found is no ResolvedRank optimum; the loss is "
        "what it is worth less by ResolvedRanks. The condition is looked at in the ResolvedRank optimum found."
    )
    return [
        Text(
            "**Corrected: if some w that is best by ResolvedRanks is such that no two *positives* agree on its "
            "support, every w that is best by Subranks is best by ResolvedRanks. Without a price (C = 0) it is enough "
            "that no two positives are duplicates.** The condition is stronger than the paper's, as it speaks of the "
            "support, and weaker, as negatives may be duplicates of each other and of positives."
        ),
        Text(
            "Proof. Let H be the objective by ResolvedRanks, G the one by Subranks; G(v) ≤ H(v) for all v (lemma 1). "
            "Change w on its support as the paper does: scores that differ keep their order, ties break except between "
            "observations that agree on the support, and since a tied negative stands above a tied positive, no "
            "positive sinks: w stays best by H. No two positives tie now. A positive that ties with negatives only has "
            "all of them above it, so its ResolvedRank is its Subrank, and G(w) = H(w) = max H. If v is best by "
            "Subranks, H(v) ≥ G(v) ≥ G(w) = max H. With C = 0 the change may touch all weights. The argument needs the "
            "margin to be small enough for the change."
        ),
        Text(_evidence(tallies)),
        Table(header, rows, caption),
        Text(
            'The library therefore maximises ResolvedRanks by default (`rank="resolved"`), whose model with one '
            "comparison for each pair of a positive and a negative is smaller than both models of the paper."
        ),
    ]


def _evidence(tallies: Tallies) -> str:
    free = [own for (_, C), own in tallies.items() if C == 0]
    priced = [own for (_, C), own in tallies.items() if C > 0]
    holds, against = (sum(getattr(own, what) for own in tallies.values()) for what in ("condition", "against"))
    total, proven = (sum(getattr(own, what) for own in tallies.values()) for what in ("lists", "proven"))
    zero = sum(own.zero for own in tallies.values())
    verdict = (
        f"In all {holds} cases in which the condition holds, the optima agree"
        if not against
        else f"In {against} of {holds} cases in which the condition holds, the optima do not agree"
    )
    return (
        f"{proven} of {total} random cases were solved to a proof by both definitions. **{verdict}.** Without a price "
        f"the Subrank optimum fails in {sum(own.fails for own in free)} of {sum(own.lists for own in free)}, with a "
        f"price in {sum(own.fails for own in priced)} of {sum(own.lists for own in priced)}: features that repeat "
        f"their values are where it happens, and prices at which w = 0 is best ({zero} cases)."
    )
