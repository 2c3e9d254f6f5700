"""The statistics of a problem whose weights lie in a box: what they are at given weights, and what lost pairs allow.

`ltr.verify` defines the terms and shows why lost pairs bound a statistic.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Iterator
from fractions import Fraction

from .file import Json, Pair, Progress, Stated, check_statistic, each, entries, integers, require


class Objective(Stated):
    """A statistic of the observations, checked, its numbers as integers, and the pairs that it depends on.

    Attributes:
        grades: h_i of each observation; none for the kind "pairwise".
        steps: the largest s of a pair.
        first, counters: its first counter of lost pairs, those of all objectives being numbered together, and how many.
        lists: (first, everyone, ranked, layers, a) of each list with a gain > 0: all its observations; those with a
            gain > 0, numbered from 0, the largest gain first; of its layers t = 1, ... the number of members, which are
            the first ones, and v_t - v_(t-1); and a_n, ..., a_1. The pairs of number q with the k of grade h have the
            counter first + len(ranked) * h + q.
        lines: the weights of all pairs of each counter, for the kind "pairwise", where 2l counts the pairs of line l in
            one direction, 2l + 1 those in the other, both by weight.
        perfect: the sum of contributions if no pair is lost.
        edges: the pairs of the kind "pairwise", see `pairs`.
        resolved: whether ranks are those of an order.
    """

    def __init__(self, n: int, C: Fraction, progress: Progress, place: str = "problem", first: int = 0) -> None:
        super().__init__(n, C, progress, place)
        self.grades, self.steps, self.perfect, self.resolved = list[int](), 1, 0, False
        self.lists, self.lines, self.edges = list[Json](), list[int](), list[Pair]()
        self.first, self.counters = first, 0

    def read_lists(self, content: dict[str, Json], members: list[list[int]], ties: str) -> None:
        """Read the lists of the kind "rerank", given the observations of each."""
        require("time" not in content, f"{self.place}.statistic", "c_index is one of cards, or of pairs")
        gains, self.resolved = self.gains(content), ties == "resolved"
        name = check_statistic(content["statistic"], content["a"], [len(everyone) for everyone in members], self.place)
        (whole, unit), (a, self.value_unit) = integers(gains), integers(content["a"])
        self.value_unit *= unit
        self.grades = [0] * self.n
        weights = iter(a)
        for everyone in members:
            self.add_list(everyone, whole, list(itertools.islice(weights, len(everyone))))
        if "outcome" in content:
            require(len(members) == 1, f"{self.place}.statistic", "auuc is one of a single list")
        else:
            self.state_share(name, content["statistic"], gains, len(members))

    def add_list(self, everyone: list[int], gains: list[int], a: list[int]) -> None:
        """Add a list of these observations, with gains and a_1, ..., a_n times their units."""
        ranked = sorted((i for i in everyone if gains[i]), key=lambda i: -gains[i])
        layers, value = list[tuple[int, int]](), 0
        for q in range(len(ranked) - 1, -1, -1):  # from the smallest gain up
            if gains[ranked[q]] > value:
                layers.append((q + 1, gains[ranked[q]] - value))
                value = gains[ranked[q]]
            self.grades[ranked[q]] = len(layers)
        if layers:
            self.lists.append((self.first + self.counters, everyone, ranked, layers, a[::-1]))
            self.counters += len(ranked) * (len(layers) + 1)
            self.perfect += sum(gains[i] * v for i, v in zip(ranked, reversed(a), strict=False))
            self.steps = max(self.steps, len(layers))

    def read_pairs(self, content: dict[str, Json], X: list[list[int]]) -> None:
        """Read the lines and pairs of the kind "pairwise", given the features as integers."""
        pairs, n = content["pairs"], range(self.n)
        require(bool(pairs), "problem.pairs", "must hold a pair")
        rule = "join two observations"
        each(pairs, lambda p: len(p) == 2 and p[0] != p[1] and p[0] in n and p[1] in n, "problem.pairs", rule)
        weights = entries(content, "pair_weights", len(pairs), lambda weight: weight > 0, "be > 0")
        whole, self.value_unit = integers(weights)
        lines: dict[tuple[int, ...], int] = {}
        for (above, below), weight in zip(pairs, whole, strict=True):
            delta = tuple(map(operator.sub, X[above], X[below]))
            ray, back = (tuple(sign * v // (math.gcd(*delta) or 1) for v in delta) for sign in (1, -1))
            line = lines.setdefault(max(ray, back), len(lines))
            self.edges.append((above, below, 1, self.first + 2 * line + (ray < back), weight))
        self.counters = 2 * len(lines)
        self.lines = [0] * self.counters
        for *_, counter, weight in self.edges:
            self.lines[counter - self.first] += weight
        self.perfect = sum(whole)

    def pairs(self) -> Iterator[Pair]:
        """Yield all pairs, (i, k, s, counter, weight); the weight is 1 except for the kind "pairwise"."""
        self.progress.tick(steps=len(self.edges))
        yield from self.edges
        for first, everyone, ranked, _, _ in self.lists:
            for q, i in enumerate(ranked):
                self.progress.tick(steps=len(everyone))
                for k in everyone:
                    s = self.grades[i] - self.grades[k] if self.resolved else int(i != k)
                    if s > 0:
                        yield i, k, s, first + len(ranked) * self.grades[k] + q, 1

    def total(self, lost: list[int]) -> int:
        """Return the largest sum of contributions if each counter of the problem has at least this many lost pairs."""
        self.progress.tick(steps=self.counters)
        if self.lines:
            won = [weight - gone for weight, gone in zip(self.lines, lost[self.first :], strict=False)]
            return sum(map(max, won[::2], won[1::2]))
        total = 0
        for first, _, ranked, layers, a in self.lists:
            m = len(ranked)
            columns = [lost[at : at + m] for at in range(first, first + m * (len(layers) + 1), m)]
            every, lower = [sum(row) for row in zip(*columns, strict=True)], [0] * m
            for (members, step), column in zip(layers, columns[:-1], strict=True):
                lower = [g + c for g, c in zip(lower, column, strict=True)]
                b, g = sorted(every[:members]), sorted(lower[:members])
                total += step * sum(a[max(b[p], p + g[p])] for p in range(members))
        return total

    def attained(self, scores: list[int], need: Fraction) -> int:
        """Return the sum of contributions by definition: from scores, won by `need`, and not from pairs."""
        total = sum(weight for i, k, _, _, weight in self.edges if scores[i] - scores[k] >= need)
        for _, everyone, ranked, layers, a in self.lists:
            if self.resolved:
                margin, parts = need.as_integer_ratio()
                keys = {i: (scores[i] * parts - margin * self.grades[i], self.grades[i]) for i in everyone}
                places = {i: c for c, i in enumerate(sorted(everyone, key=keys.__getitem__, reverse=True))}
            else:
                ascending, least = sorted(scores[i] for i in everyone), math.ceil(need)
                # the others with a score above scores[i] - need; i itself is among those counted
                places = {i: len(a) - 1 - bisect.bisect_right(ascending, scores[i] - least) for i in ranked}
            gains = [0, *itertools.accumulate(step for _, step in layers)]
            total += sum(gains[self.grades[i]] * a[places[i]] for i in ranked)
        return total

    def limits(self, bound: Fraction | None, d: int) -> list[int]:
        """Return the largest sum of contributions that closes a box where 0, 1, ..., d weights are not 0.

        That of a demand does not meet it, whatever the number of weights.
        """
        if self.asked is not None:
            return [self.limit] * (d + 1)
        assert bound is not None
        return [self.allows(bound, nonzero) for nonzero in range(d + 1)]
