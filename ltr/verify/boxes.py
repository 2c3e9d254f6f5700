"""Problems whose weights lie in a box, and the partitions of weight space that prove a bound on them.

`ltr.verify` defines the terms and shows why the boxes of a partition may be closed.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Iterator
from fractions import Fraction

from .file import (
    CertificateError,
    Json,
    LimitError,
    Pair,
    Progress,
    columns_of,
    each,
    entries,
    integers,
    require,
    show,
    size_and_price,
    sized,
)
from .objectives import Objective

Limits = list[tuple[Objective, list[int]]]  # objectives, and the sums of contributions that close a box, see `limits`
ONE = 1 << 60  # the weight 1: ends of intervals are integers in this unit
REQUIRED = Fraction(0.01)  # least size of the weight of a required column where weights are no whole numbers
MOST_POINTS = 100  # largest B of whole numbers
FEASIBLE = Fraction(1e-9)  # how far the weights may exceed a side constraint, relative to the size of its terms
ROOM = 8_000_000  # open pairs that all boxes together may store, at about 170 bytes each
MOST_ROOTS = 4000  # columns whose roots are kept, each with the ends of its intervals
ORDER = re.compile(r"(0|[1-9][0-9]{0,17}):(0|[1-9][0-9]{0,17})")  # the word that cuts a box by an order
COUNTERS = 8  # counters that take as much memory as one open pair


def excess(terms: list[int], limit: int) -> Fraction:
    """Return (sum of terms - limit) / (size of all of these)."""
    return Fraction(sum(terms) - limit, abs(limit) + sum(map(abs, terms)) or 1)


def dot(u: list[int], v: list[int]) -> int:
    """Return the scalar product."""
    return sum(a * b for a, b in zip(u, v, strict=True))


class Problem:
    """The problem of a file, checked, its numbers as integers.

    Attributes:
        n, d: numbers of observations and features.
        X, columns, unit: features times unit, one list per observation, and one per feature.
        same: the first observation with the features of each.
        objective: what is to be maximised, the price of weights among it.
        demands: the statistics of which weights must reach a least value.
        counted_objectives: those whose lost pairs are counted, as boxes may be closed by them: all, or the demands
            alone where it is to be shown that no weights are feasible.
        counters: number of their counters of lost pairs.
        sides: (row of A, entry of b), both times one power of 2.
        scalable: whether the faces of the cube are the roots.
        counted, most: the columns that are not free, and the number of their weights that may differ from 0.
        required: the columns whose weights are at least `least` in size.
        integer, reach: B, where weights are whole numbers from -B to B, else 0; and the largest size of a weight.
    """

    def __init__(self, content: dict[str, Json], progress: Progress | None = None, *, infeasible: bool = False) -> None:
        self.progress = progress or Progress()
        self.n, C = size_and_price(content)
        X, self.margin = content["X"], Fraction(content["margin"])
        require(self.margin > 0, "problem.margin", f"must be > 0, got {content['margin']}")
        n, d = self.n, self.d = self.n, len(X[0])
        most, integer, free = content["max_nonzeros"], content["integer"], columns_of(content, "free", d)
        self.required = columns_of(content, "required", d, free)
        right = integer is None or 1 <= integer <= MOST_POINTS
        require(right, "problem.integer", f"must be from 1 to {MOST_POINTS}, got {integer!r:.40}")
        self.integer = integer or 0
        self.reach, self.least = self.integer or 1, Fraction(1) if self.integer else REQUIRED
        self.counted = sorted({*range(d)} - {*free})
        self.most = len(self.counted) if most is None else most
        right = most is None or 1 <= most <= len(self.counted)
        require(right, "problem.max_nonzeros", f"must be from 1 to {len(self.counted)}, got {most!r:.40}")
        right = len(self.required) <= self.most
        require(right, "problem.required", f"must hold at most {self.most} columns, got {len(self.required)}")
        flat, self.unit = integers([v for row in X for v in row])
        self.X = [flat[at : at + d] for at in range(0, n * d, d)]
        self.columns = [flat[j::d] for j in range(d)]
        first: dict[tuple[int, ...], int] = {}
        self.same = [first.setdefault(tuple(row), i) for i, row in enumerate(self.X)]
        self.objective, self.demands = Objective(n, C, self.progress), list[Objective]()
        self.counted_objectives = list[Objective]()
        if not infeasible:
            self.counted_objectives.append(self.objective)
        if content["kind"] == "pairwise":
            self.objective.read_pairs(content, self.X)
        else:
            self.read_lists(content)
        self.counters = sum(one.counters for one in self.counted_objectives)
        A, b = (content["constraints"] or {"A": [], "b": []}).values()
        sized(b, len(A), "problem.constraints.b")
        require(bool(A) or content["constraints"] is None, "problem.constraints.A", "must have a row")
        sized(A[0] if A else [0] * d, d, "problem.constraints.A[0]")
        flat, _ = integers([v for row, limit in zip(A, b, strict=True) for v in (*row, limit)])
        self.sides = [(flat[at : at + d], flat[at + d]) for at in range(0, len(flat), d + 1)]
        self.scalable = all(limit <= 0 for limit in b)

    def read_lists(self, content: dict[str, Json]) -> None:
        """Read the objective and the demands of the kind "rerank"."""
        n, ties = self.n, content["ties"]
        require(ties in ("resolved", "subrank"), "problem.ties", f"must be 'resolved' or 'subrank', got {ties!r:.40}")
        qid = entries(content, "qid", n, lambda one: -(2**63) <= one < 2**63, "fit into 64 bits")
        lists = itertools.groupby(sorted(range(n), key=qid.__getitem__), key=qid.__getitem__)
        members = [list(everyone) for _, everyone in lists]
        self.objective.read_lists(content, members, ties)
        for at, stated in enumerate(content["demands"]):
            first = sum(one.counters for one in self.counted_objectives)
            demand = Objective(n, Fraction(0), self.progress, f"problem.demands[{at}]", first)
            demand.read_lists(stated, members, "resolved")
            demand.ask(stated["at_least"])
            self.demands.append(demand)
            self.counted_objectives.append(demand)

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs of all objectives that are counted, (i, k, s, counter, weight)."""
        for one in self.counted_objectives:
            yield from one.pairs()

    def size(self) -> Fraction:
        """Return the statistic to be maximised if no pair is lost."""
        return self.objective.objective(self.objective.perfect, 0)

    def value(self, weights: list[float], of: Objective | None = None) -> Fraction:
        """Return the objective, or another one, at these weights."""
        w, unit = integers(weights)
        scores, one = [dot(w, row) for row in self.X], of or self.objective
        return one.objective(one.attained(scores, self.margin * self.unit * unit), self.nonzero(weights))

    def unmet(self, weights: list[float]) -> list[tuple[Objective, Fraction]]:
        """Return the demands that these weights do not meet, and the values they have."""
        values = [(demand, self.value(weights, demand)) for demand in self.demands]
        return [(demand, value) for demand, value in values if value < demand.least]

    def admits_zero(self) -> bool:
        """Return whether w = 0 is feasible."""
        zero = [0.0] * self.d
        return not self.required and self.excess(zero) <= FEASIBLE and not self.unmet(zero)

    def nonzero(self, weights: list[float]) -> int:
        """Return the number of weights other than 0 that count."""
        return sum(weights[j] != 0 for j in self.counted)

    def check_weights(self, weights: list[float]) -> None:
        """Check that weights are in the box, whole numbers where they must be, few enough other than 0 and required."""
        whole = "a whole number " if self.integer else ""
        rule = f"be {whole}from -{self.reach} to {self.reach}"
        each(weights, lambda w: abs(w) <= self.reach and (not self.integer or w == int(w)), "weights", rule)
        for j in self.required:
            right, least = abs(Fraction(weights[j])) >= self.least, show(self.least)
            require(right, f"weights[{j}]", f"must be at least {least} in size, got {weights[j]!r}")
        nonzero = self.nonzero(weights)
        require(nonzero <= self.most, "weights", f"at most {self.most} may differ from 0, got {nonzero}")
        for demand, value in self.unmet(weights):
            raise CertificateError(f"weights: have {show(value)} in {demand.place}, which asks for {demand.asked!r}")

    def prove(self, bound: Fraction | None, partition: list[str]) -> str:
        """Check that no feasible weights have an objective above the bound, or that none exist where it is None.

        Returns by what that is proven.
        """
        return f"{check_partition(self, bound, partition)} boxes"

    def excess(self, weights: list[float]) -> Fraction:
        """Return the largest excess over a side constraint relative to the size of its terms, or 0."""
        w, unit = integers(weights)
        rows = [([a * v for a, v in zip(row, w, strict=True)], limit * unit) for row, limit in self.sides]
        return max([Fraction(0), *(excess(terms, limit) for terms, limit in rows)])


class Box:
    """A box of weights, in which `ONE` stands for 1.

    Its pairs are examined on request. The open ones are kept for the parts of the box if there is room; the pairs of a
    part are then searched among those kept last, or among all pairs.

    Attributes:
        low, high, apart: ends of the intervals, and coordinates known not to be 0, although 0 may be such an end.
        behind: (i, k) with w·x_i <= w·x_k in all of the box, where i and k are the first observations with their
            features.
        open: pairs neither lost nor won everywhere in the box: (the largest w·δ, the smallest, i, k, counter, weight),
            both minus margin * s; None if they are not kept.
        lost: counters of the pairs lost everywhere in the box; None if they are not kept.
        source: the box around this one that keeps its pairs, or None.
        held: the room that the boxes around this one take, in open pairs.
    """

    def __init__(
        self,
        problem: Problem,
        low: list[int],
        high: list[int],
        apart: frozenset[int] = frozenset(),
        behind: frozenset[tuple[int, int]] = frozenset(),
        source: Box | None = None,
        held: int = 0,
    ) -> None:
        self.problem, self.low, self.high, self.apart, self.behind = problem, low, high, apart, behind
        self.source, self.held = source, held
        self.open: list[Pair] | None = None
        self.lost: list[int] | None = None

    def part(self, j: int, low: int, high: int, apart: bool = False) -> Box:
        """Return the part with low <= w_j <= high, and w_j not 0 where `apart`."""
        lows, highs, known = self.low.copy(), self.high.copy(), self.apart | {j} if apart else self.apart
        lows[j], highs[j] = low, high
        return self.inside(lows, highs, known, self.behind)

    def ordered(self, i: int, k: int) -> Box:
        """Return the part with w·x_i <= w·x_k."""
        same = self.problem.same
        return self.inside(self.low, self.high, self.apart, self.behind | {(same[i], same[k])})

    def inside(self, low: list[int], high: list[int], apart: frozenset[int], behind: frozenset[tuple[int, int]]) -> Box:
        """Return a part, which finds its pairs in this box if they are kept."""
        self.problem.progress.tick(steps=self.problem.d)
        if self.open is None:
            return Box(self.problem, low, high, apart, behind, self.source, self.held)
        held = self.held + len(self.open) + self.problem.counters // COUNTERS
        return Box(self.problem, low, high, apart, behind, self, held)

    def count(self, keep: bool = False) -> list[int]:
        """Count the pairs lost everywhere in the box; `keep` keeps the open ones for its parts, if there is room.

        No box takes more than half of the room that is left, so there is always some for boxes with fewer pairs.
        """
        if self.lost is not None:
            return self.lost
        most = (ROOM - self.held) // 2 - self.problem.counters // COUNTERS if keep else -1
        pairs, lost = self.among_all(most) if self.source is None else self.among(self.source, keep)
        if len(pairs) <= most:
            self.open, self.lost, self.source = pairs, lost, None
        return lost

    def among(self, source: Box, keep: bool) -> tuple[list[Pair], list[int]]:
        """Return open pairs (unless they need not be kept) and counters, from those of a box around this one."""
        assert source.open is not None
        assert source.lost is not None
        pairs, lost, same = source.open, source.lost.copy(), self.problem.same
        if behind := self.behind - source.behind:
            self.problem.progress.tick(steps=len(pairs))
            for *_, i, k, counter, weight in pairs:
                lost[counter] += weight * ((same[i], same[k]) in behind)
            pairs = [pair for pair in pairs if (same[pair[2]], same[pair[3]]) not in behind]
        ends = ((self.low, source.low), (self.high, source.high))
        moves = [(j, own[j] - old[j]) for j in range(self.problem.d) for own, old in ends if own[j] != old[j]]
        for at, (j, shift) in enumerate(moves, 1):
            column, before, pairs = self.problem.columns[j], pairs, []
            self.problem.progress.tick(steps=len(before))
            if at == len(moves) and not keep:  # the open pairs are not needed
                for largest, _, i, k, counter, weight in before:
                    if largest + min(0, shift * (column[i] - column[k])) < 0:
                        lost[counter] += weight
                return pairs, lost
            for largest, smallest, i, k, counter, weight in before:
                change = shift * (column[i] - column[k])  # as the end moves inwards, it lowers the largest w·δ
                if change < 0:
                    if largest + change < 0:
                        lost[counter] += weight
                    else:
                        pairs.append((largest + change, smallest, i, k, counter, weight))
                elif smallest + change < 0:  # or raises the smallest
                    pairs.append((largest, smallest + change, i, k, counter, weight))
        return pairs, lost

    def among_all(self, most: int) -> tuple[list[Pair], list[int]]:
        """Return at most `most` + 1 open pairs, and counters, from all pairs of the problem."""
        problem, ends = self.problem, list(zip(self.low, self.high, strict=True))
        # twice w·δ is from c·δ - r·|δ| to c·δ + r·|δ|
        centre, radius = [low + high for low, high in ends], [high - low for low, high in ends]
        middles = [dot(centre, row) for row in problem.X]
        wide = [j for j in range(problem.d) if radius[j]]
        scaled = [[radius[j] * row[j] for j in wide] for row in problem.X]
        margin = problem.margin * problem.unit * ONE
        steps = max([one.steps for one in problem.counted_objectives], default=0)
        needs = [math.ceil(s * margin) for s in range(steps + 1)]
        pairs, lost, same, behind = list[Pair](), [0] * problem.counters, problem.same, self.behind
        for i, k, s, counter, weight in problem.pairs():
            middle, reach = middles[i] - middles[k], sum(map(abs, map(operator.sub, scaled[i], scaled[k])))
            largest = (middle + reach) // 2 - needs[s]
            if largest < 0 or (behind and (same[i], same[k]) in behind):
                lost[counter] += weight
            elif len(pairs) <= most:
                smallest = (middle - reach) // 2 - needs[s]
                if smallest < 0:
                    pairs.append((largest, smallest, i, k, counter, weight))
        return pairs, lost

    def __str__(self) -> str:
        ends, order = zip(self.low, self.high, strict=True), [f"{i} not before {k}" for i, k in sorted(self.behind)]
        return ", ".join([" x ".join(f"[{low / ONE:.9g}, {high / ONE:.9g}]" for low, high in ends), *order])


def root_cuts(problem: Problem) -> list[tuple[str, list[tuple[int, int, int]]]]:
    """Return the name of every root and the intervals of the cube that it has: coordinate, least and largest value."""
    if not problem.scalable:
        return [("the cube", [])]
    most, least = problem.reach * ONE, (problem.integer // 2 + 1) * ONE
    found, inside = list[tuple[str, list[tuple[int, int, int]]]](), list[tuple[int, int, int]]()
    for j in range(problem.d):
        for low, high in ((-most, -least), (least, most)):
            name = f"= {low // ONE}" if low == high else f"from {low // ONE} to {high // ONE}"
            found.append((f"w_{j} {name}", [*inside, (j, low, high)]))
        if problem.integer:
            inside.append((j, ONE - least, least - ONE))  # in the roots that follow
    return found


def roots(problem: Problem, keep: bool = True) -> list[tuple[str, Box]]:
    """Return the name and box of every root; `keep` prepares the pairs of the cube for the others."""
    cuts, most = root_cuts(problem), problem.reach * ONE
    cube = Box(problem, [-most] * problem.d, [most] * problem.d)
    if keep and problem.scalable:
        cube.count(keep)
    found = list[tuple[str, Box]]()
    for name, intervals in cuts:
        box = cube
        for interval in intervals:
            box = box.part(*interval)
        found.append((name, box))
    return found


def closes(limits: Limits, nonzero: int, lost: list[int] | None = None) -> bool:
    """Return whether limits close a box with that many weights other than 0 and these lost pairs, or whatever pairs."""
    return any((one.perfect if lost is None else one.total(lost)) <= limit[nonzero] for one, limit in limits)


def check_partition(problem: Problem, bound: Fraction | None, partition: list[str]) -> int:
    """Check that no feasible weights have an objective above the bound, or that none exist; return the boxes."""
    if problem.scalable and problem.d > MOST_ROOTS:
        raise LimitError(f"its roots, two for each column, are those of {problem.d} columns, more than {MOST_ROOTS}")
    limits = [(one, one.limits(bound, problem.d)) for one in problem.counted_objectives]
    if problem.scalable and problem.admits_zero():
        if bound is None:
            raise CertificateError("claim: must not be 'infeasible', w = 0 is feasible")
        zero = problem.value([0.0] * problem.d)
        require(zero <= bound, "proof.bound", f"is below {show(zero)}, the value of w = 0")
    sized(partition, 2 * problem.d if problem.scalable else 1, "proof.partition")
    problem.progress.boxes = sum(text.count(" ") + 1 for text in partition)
    keep = not closes(limits, 0)
    if keep and problem.counters > ROOM * COUNTERS:
        raise LimitError(f"its boxes need {problem.counters} counters of lost pairs, more than {ROOM * COUNTERS}")
    cuts = {f"{j}{z}": (j, z) for j in range(problem.d) for z in ("", "z")}
    for at, (name, box) in enumerate(roots(problem, keep=keep)):
        check_root(problem, limits, partition[at].split(" "), cuts, box, f"proof.partition[{at}] ({name})")
    return problem.progress.boxes


def check_root(
    problem: Problem, limits: Limits, words: list[str], cuts: dict[str, tuple[int, str]], root: Box, place: str
) -> None:
    """Check the partition of one root; `cuts` are the words that cut a box, with coordinate and "z"."""
    boxes, keep = [root], not closes(limits, 0)
    for at, word in enumerate(words):
        here = f"{place}, word {at + 1}"
        require(bool(boxes), here, "comes after the end, all boxes are closed")
        box = boxes.pop()
        problem.progress.tick(1, problem.d * (1 + len(problem.sides)))
        if word == ".":
            check_closed(problem, limits, box, here)
            continue
        if order := ORDER.fullmatch(word):
            i, k = int(order[1]), int(order[2])
            possible = max(i, k) < problem.n and problem.same[i] != problem.same[k]
            require(possible, here, f"must name two observations with different features, got {word!r:.40}")
            if keep:
                box.count(keep=True)
            boxes += [box.ordered(k, i), box.ordered(i, k)]
            continue
        require(word in cuts, here, f"is not known: {word!r:.20}")
        j, z = cuts[word]
        low, high = box.low[j], box.high[j]
        middle = 0 if z else (low + high) // 2
        possible = low < middle < high and (bool(z) or middle - low == high - middle)
        above = below = middle
        if problem.integer:
            middle = 0 if z else middle // ONE * ONE
            above, below = middle + ONE, middle - ONE if z else middle
            possible = low < 0 < high if z else low < high
        require(possible, here, f"cannot cut w_{j} of the box {box}")
        if keep:
            box.count(keep=True)
        ends = [(above, high), (0, 0), (low, below)] if z else [(above, high), (low, below)]
        boxes += [box.part(j, *end, apart=bool(z) and end != (0, 0)) for end in ends]
    require(not boxes, f"{place}, word {len(words)}", f"is the last, but {len(boxes)} boxes are not closed")


def check_closed(problem: Problem, limits: Limits, box: Box, place: str) -> None:
    """Check that no feasible weights of a box have an objective above the bound, if there is one."""
    known = {j for j in problem.counted if box.low[j] > 0 or box.high[j] < 0} | box.apart | {*problem.required}
    nonzero = len(known.intersection(problem.counted))
    if nonzero > problem.most or closes(limits, nonzero):
        return
    if any(-problem.least * ONE < box.low[j] and box.high[j] < problem.least * ONE for j in problem.required):
        return
    for row, limit in problem.sides:
        least = [v * (low if v > 0 else high) for v, low, high in zip(row, box.low, box.high, strict=True)]
        if excess(least, limit * ONE) > FEASIBLE:
            return
    lost = box.count()
    if not closes(limits, nonzero, lost):
        raise CertificateError(f"{place}: closes the box {box}, where {reached(problem, lost, nonzero)}")


def reached(problem: Problem, lost: list[int], nonzero: int) -> str:
    """Return in words which values lost pairs allow."""
    totals = [(one, one.objective(one.total(lost), nonzero)) for one in problem.counted_objectives]
    values = [f"{'the value' if one is problem.objective else one.place} may be {show(most)}" for one, most in totals]
    return " and ".join(values) or "side constraints may be satisfied"
