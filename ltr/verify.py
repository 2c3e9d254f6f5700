"""Check a certificate of weights, and of a bound that no weights exceed, in exact rational arithmetic.

    python ltr/verify.py FILE [--require-proof] [--data SHA256]

The program needs Python and nothing else. It exits with 0 where the file is right, with 1 and one line that names the
place where it is not, and with 2 for a file that cannot be read. Every number of a file is a float64 and stands for
itself; nothing is rounded but in messages.

**The problem.** Over weights w in [-1, 1]^d with A w <= b and at most max_nonzeros of them other than 0, maximise
``statistic(w) - C * #{j : w_j != 0}``. A pair (i, k) is won where ``w·δ >= margin * s``, δ = x_i - x_k, margin > 0, and
lost elsewhere; s = 1 but where said otherwise. In a file of the kind "pairwise" the statistic is the sum of the weights
of the pairs won.

A file of the kind "graded" gives each observation a gain >= 0 and a list, by its number qid. Of one list let n be the
number of observations, 0 <= a_1 <= ... <= a_n its weights (in the file one list behind the other, qid ascending),
0 = v_0 < v_1 < ... the number 0 and the gains in it, and h_i the grade of i, gain_i = v_(h_i). The statistic is the sum
of gain_i * a[n - c_i] over all i of all lists, where c_i counts within the list of i

    rank "resolved"    the observations before i, in the order of the keys w·x - margin * h from the largest down; of
                       equal keys the larger h comes first, and those of equal h too, of one gain, stand in any order
    rank "subrank"     the lost pairs (i, k), k any other

A file of the kind "rerank" is of one list, with the gains y, 0 and 1; for "auc" the statistic is
(s - m (m + 1) / 2) / (m (n - m)) of this sum s, m the sum of y.

**Layers.** As gain_i is the sum of v_t - v_(t-1) over t = 1, ..., h_i, the statistic is the sum over lists and t of
(v_t - v_(t-1)) S_t, where S_t is the sum of a[n - c_i] over the *members* of the layer, the i with h_i >= t. For
"resolved" let the pairs be the (i, k) with h_i > h_k, s = h_i - h_k, so that a pair is won where i stands before k; for
"subrank" all (i, k), s = 1. Let G_i be the number of lost pairs of i with h_k < t, and c_(0) <= c_(1) <= ... numbers of
the members, sorted. Go down the members in the order of the keys or, for "subrank", of w·x: G never falls. The one in
place p = 0, 1, ...

* for "resolved" stands behind p members and G_(p) others: c_(p) = p + G_(p), and S_t = sum over p of a[n - p - G_(p)].
* for "subrank" beats neither the p members before it nor G_(p) others: its c is at least p + G_(p), which never falls
  either. Sorting keeps that: c_(p) >= p + G_(p).

**Tolerance.** Weights satisfy a row r of A w <= b where ``sum_j A_rj w_j <= b_r + 1e-9 (|b_r| + sum_j |A_rj w_j|)``,
1e-9 being the float64 of that name. All that follows is about these weights.

**Roots.** Where b <= 0 or there are no constraints, feasible weights other than 0 can be scaled up to max |w_j| = 1:
they stay feasible, win what they won, and keep their zeros. (For a row, scaling multiplies both sums by s >= 1, and
s (b_r + 1e-9 |b_r|) is at most b_r + 1e-9 |b_r| where that is not above 0.) To lose fewer pairs never lowers the
statistic: a is nondecreasing, and a sum S_t needs the numbers G only, or for "subrank" the numbers c, of lost pairs. So
the value of w = 0 and 2d roots are all that counts, the faces w_0 = -1, w_0 = 1, w_1 = -1, ... of the cube. Elsewhere
the cube is the one root.

**Partition.** One text for each root cuts it into boxes, in preorder: "." closes a box; "j" halves it at the middle of
its interval of w_j, lower half first; "jz" cuts it into the parts w_j < 0, w_j = 0 and w_j > 0. The parts of a box
cover it, so the closed boxes cover the root. The parts with w_j < 0 and w_j > 0 keep 0 as an end of their interval, and
the knowledge that w_j is not 0: their pairs are judged on a slightly larger set, which is safe.

**Closed boxes.** A box is rightly closed where a row of A w <= b fails on all of it, where more than max_nonzeros
weights are known not to be 0, or where its value is bounded by the bound to be proven. A row fails on all of it where
it does with every A_rj w_j at its least, as y - 1e-9 |y| grows with y. In the box with centre c and half-widths r, w·δ
is at most c·δ + r·|δ|; where that is below margin * s the pair is lost everywhere. These lost pairs and the weights
known not to be 0 bound the value, for:

* Let b_i of the lost pairs of i be known, g_i of them with h_k < t. Then b_i <= c_i, as for "resolved" the k of a lost
  pair stands before i, and g_i <= G_i. Sorting keeps ``<=`` between lists, and a is nondecreasing, so

      S_t <= sum over p of a[n - max(b_(p), p + g_(p))].

  At a single w, where all lost pairs are known, both sides are equal.
* Pairs with the directions δ and -sδ, s > 0, are never won together. So of the pairs whose δ lie on one line only those
  of one direction count, whichever of the two has the larger weight not yet lost.

**What a file shows**, and has to state as its claim: "optimal", the bound is proven and is the value of the weights up
to 1e-12 of the statistic's size; "bound", it is proven and larger; "value", there is no partition, the weights have
their value, and the bound of the solver (claimed_bound) is just quoted.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import math
import sys
from fractions import Fraction
from typing import Any

__all__ = ["CertificateError", "Problem", "check", "data_digest", "main", "parse"]

Json = Any  # what json.loads returns
FORMAT, VERSION = "ltr certificate", 1
PROBLEM = {"C": float, "margin": float, "constraints": ({"A": [[float]], "b": [float]},), "max_nonzeros": (int,)}
PROBLEM |= {"X": [[float]], "sha256": str}
RANKED = {"rank": str, "statistic": str, "a": [float]}
KINDS = {
    "rerank": {"kind": str, **PROBLEM, **RANKED, "y": [int]},
    "graded": {"kind": str, **PROBLEM, **RANKED, "gains": [float], "qid": [int]},
    "pairwise": {"kind": str, **PROBLEM, "pairs": [[int]], "pair_weights": [float]},
}
# a type, [of each entry], {name: of each field}, or (that or null,)
FILE = {"format": str, "version": int, "claim": str, "value": float, "claimed_bound": float, "weights": [float]}
FILE |= {"problem": KINDS, "proof": ({"bound": float, "partition": [str]},)}
ONE = 1 << 60  # the weight 1: ends of intervals are integers in this unit
ROUNDING = Fraction(1e-12)  # of the value and of "optimal", relative to the statistic's size
FEASIBLE = Fraction(1e-9)  # how far the weights may exceed a side constraint, relative to the size of its terms
ULPS = 8  # how far, in units of 2**-52, an a_l may be from the one computed here


class CertificateError(ValueError):
    """What is wrong with a certificate, and where."""


def require(condition: bool, place: str, reason: str) -> None:
    """Raise `CertificateError` unless the condition holds."""
    if not condition:
        raise CertificateError(f"{place}: {reason}")


def sized(values: list[Json], length: int, place: str) -> None:
    """Check the length of a list."""
    require(len(values) == length, place, f"must hold {length} entries, got {len(values)}")


def parse(text: str) -> dict[str, Json]:
    """The content of a file, every field there and of its type; ValueError for what is not JSON."""
    content = json.loads(text, object_pairs_hook=unique)
    require(isinstance(content, dict) and content.get("format") == FORMAT, "format", f"must be {FORMAT!r}")
    require(content.get("version") == VERSION, "version", f"must be {VERSION}, got {content.get('version')!r:.40}")
    return typed(content, FILE, "")


def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """A JSON object, no name twice."""
    for at, (name, _) in enumerate(pairs):
        require(all(name != other for other, _ in pairs[:at]), f"{name!r:.40}", "stands twice in one object")
    return dict(pairs)


def typed(value: Json, kind: Json, place: str) -> Json:
    """The value, if it is of this kind; lists of lists are rectangular, and integers become floats where asked for."""
    if isinstance(kind, tuple):
        return None if value is None else typed(value, kind[0], place)
    if kind is KINDS and isinstance(value, dict):
        found = value.get("kind")
        require(found in list(KINDS), f"{place}.kind", f"must be one of {', '.join(KINDS)}, got {found!r:.40}")
        kind = KINDS[found]
    if isinstance(kind, dict) and isinstance(value, dict):
        for field in (*kind, *value):
            known = field in kind
            require(
                known and field in value, place or "file", f"{field!r:.40} is {'missing' if known else 'not known'}"
            )
        return {field: typed(value[field], kind[field], f"{place}.{field}".lstrip(".")) for field in kind}
    if isinstance(kind, list) and isinstance(value, list):
        entries = [typed(entry, kind[0], f"{place}[{at}]") for at, entry in enumerate(value)]
        for at, entry in enumerate(entries if isinstance(kind[0], list) else []):
            sized(entry, len(entries[0]), f"{place}[{at}]")
        return entries
    if kind is float and type(value) in (int, float):
        fits = abs(value) <= sys.float_info.max and float(value) == value
        require(fits, place, f"must be a finite float64, got {value!r:.40}")
        return float(value)
    name = kind.__name__ if isinstance(kind, type) else type(kind).__name__
    require(type(value) is kind, place, f"must be of type {name}, got {value!r:.40}")
    return value


def show(value: Fraction) -> str:
    """Twelve digits of a number."""
    return f"{float(value):.12g}" if abs(value) <= sys.float_info.max else "a number beyond float64"


def rank_weights(statistic: str, n: int) -> list[float]:
    """a_1, ..., a_n of a statistic by its name; ValueError for a name that means nothing."""
    head, at, cutoff = statistic.partition("@")
    name, _, option = head.removesuffix(")").partition("(")
    if name == "weights":
        return [float(v) for v in option.split(",")]
    key, _, setting = option.partition("=")
    x = math.e if setting == "e" else float(setting or 2)
    formulas = {
        ("auc", "", ""): lambda rank: rank,
        ("wrs", "", ""): lambda rank: rank,
        ("pauc", "", "@"): lambda rank: rank,
        ("wta", "", ""): lambda rank: rank == n,
        ("mrr", "", at): lambda rank: 1 / (n - rank + 1),
        ("dcg", "", at): lambda rank: math.log(2) / math.log(n - rank + 2),
        ("dcg", "base", at): lambda rank: math.log(x) / math.log(n - rank + 2),
        ("power", "p", at): lambda rank: float(rank) ** x,
    }
    if (name, key, at) not in formulas:
        raise ValueError(statistic)
    top = int(cutoff) if at else n
    return [float(formulas[name, key, at](rank)) if n - rank < top else 0.0 for rank in range(1, n + 1)]


def check_weights(statistic: str, a: list[float], first: int, n: int) -> None:
    """Check that a[first], a[first + 1], ... are the weights a_1, ..., a_n of a statistic."""
    try:
        own = rank_weights(statistic, n)
    except (ValueError, OverflowError):
        own = []
    require(len(own) == n, "problem.statistic", f"is not known for {n} observations: {statistic!r:.40}")
    for at, computed in enumerate(own, first):
        near = computed <= sys.float_info.max and abs(a[at] - computed) <= ULPS * 2.0**-52 * computed
        require(near, f"problem.a[{at}]", f"must be {computed!r} for {statistic!r:.40}, got {a[at]!r}")
        require(a[at] >= (a[at - 1] if at > first else 0.0), f"problem.a[{at}]", f"must not fall, got {a[at]!r}")


def data_digest(problem: dict[str, Json]) -> str:
    """SHA-256 of the data as ASCII lines, each ended by a line feed.

    One line an observation: its features as `float.hex` writes them, separated by single spaces, behind its label (kind
    "rerank") or its gain and list (kind "graded"); then for the kind "pairwise" one line a pair: above, below, weight.
    """
    lines = [[float(v).hex() for v in row] for row in problem["X"]]
    if problem["kind"] == "rerank":
        lines = [[str(label), *row] for label, row in zip(problem["y"], lines, strict=True)]
    elif problem["kind"] == "graded":
        lists = zip(problem["gains"], problem["qid"], lines, strict=True)
        lines = [[float(gain).hex(), str(one), *row] for gain, one, row in lists]
    else:
        edges = zip(problem["pairs"], problem["pair_weights"], strict=True)
        lines += [[str(above), str(below), float(weight).hex()] for (above, below), weight in edges]
    return hashlib.sha256("".join(" ".join(line) + "\n" for line in lines).encode("ascii")).hexdigest()


def integers(values: list[float]) -> tuple[list[int], int]:
    """Integers and a unit, values = integers / unit: the denominators are powers of 2, so the largest serves all."""
    ratios = [v.as_integer_ratio() for v in values]
    unit = max((q for _, q in ratios), default=1)
    return [p * (unit // q) for p, q in ratios], unit


def excess(terms: list[int], limit: int) -> Fraction:
    """(sum of terms - limit) / (size of all of these)."""
    return Fraction(sum(terms) - limit, abs(limit) + sum(map(abs, terms)) or 1)


def dot(u: list[int], v: list[int]) -> int:
    """The scalar product."""
    return sum(a * b for a, b in zip(u, v, strict=True))


class Problem:
    """The problem of a file, checked, its numbers as integers.

    Attributes:
        n, d: observations, features.
        X, unit: features times unit.
        pairs: (i, k, s, counter, weight), the weight being 1 but for the kind "pairwise".
        counters: of lost pairs, how many.
        lists: (first, m, layers) of each list. Its m observations with a gain > 0 are numbered from 0, the largest gain
            first, and the pairs of number q with the k of grade h have the counter first + m * h + q. Layers t = 1, ...
            are (number of members, which are the first ones; (v_t - v_(t-1)) * (a_n, ..., a_1) times worth_unit).
        lines, worth_unit: the weights of all pairs of each counter, times worth_unit; for the kind "pairwise", where 2l
            counts the pairs of line l in one direction, 2l + 1 those in the other, both by weight times worth_unit.
        scale, shift: the statistic is scale * (sum of worths) / worth_unit + shift.
        sides, side_unit: (row of A, entry of b), times side_unit.
        scalable: whether the faces of the cube are the roots.
        most: weights that may differ from 0.
    """

    def __init__(self, content: dict[str, Json]) -> None:
        X, self.C, self.margin = content["X"], Fraction(content["C"]), Fraction(content["margin"])
        require(bool(X and X[0]), "problem.X", "must have a row and a column")
        require(self.C >= 0, "problem.C", f"must be >= 0, got {content['C']}")
        require(self.margin > 0, "problem.margin", f"must be > 0, got {content['margin']}")
        n, d = self.n, self.d = len(X), len(X[0])
        self.most = d if content["max_nonzeros"] is None else content["max_nonzeros"]
        require(1 <= self.most <= d, "problem.max_nonzeros", f"must be from 1 to {d}, got {self.most}")
        flat, self.unit = integers([v for row in X for v in row])
        self.X = [flat[at : at + d] for at in range(0, n * d, d)]
        self.counters, self.scale, self.shift, self.worth_unit = 0, Fraction(1), Fraction(0), 1
        self.pairs, self.lists, self.lines = list[tuple[int, int, int, int, int]](), list[Json](), list[int]()
        (self.read_pairs if content["kind"] == "pairwise" else self.read_lists)(content)
        A, b = (content["constraints"] or {"A": [], "b": []}).values()
        sized(b, len(A), "problem.constraints.b")
        sized(A[0] if A else [0] * d, d, "problem.constraints.A[0]")
        flat, self.side_unit = integers([v for row, limit in zip(A, b, strict=True) for v in (*row, limit)])
        self.sides = [(flat[at : at + d], flat[at + d]) for at in range(0, len(flat), d + 1)]
        self.scalable = all(limit <= 0 for limit in b)
        sha256 = data_digest(content)
        require(content["sha256"] == sha256, "problem.sha256", f"the data have {sha256}")

    def read_lists(self, content: dict[str, Json]) -> None:
        """Lists and pairs of the kinds "rerank" and "graded"."""
        n, graded, (a, rank, statistic) = self.n, "gains" in content, (content[f] for f in ("a", "rank", "statistic"))
        require(rank in ("resolved", "subrank"), "problem.rank", f"must be 'resolved' or 'subrank', got {rank!r:.40}")
        name = "gains" if graded else "y"
        gains, qid = content[name], content["qid"] if graded else [0] * n
        sized(gains, n, f"problem.{name}")
        sized(qid, n, "problem.qid")
        sized(a, n, "problem.a")
        for at, gain in enumerate(gains):
            right, rule = (gain >= 0, ">= 0") if graded else (gain in (0, 1), "0 or 1")
            require(right, f"problem.{name}[{at}]", f"must be {rule}, got {gain}")
        require(graded or 0 < sum(gains) < n, "problem.y", "must hold both labels")
        require(any(gains), "problem.gains", "must hold a number > 0")
        (whole, unit), (weights, self.worth_unit) = integers(gains), integers(a)
        self.worth_unit *= unit
        lists: dict[int, list[int]] = {one: [] for one in sorted(qid)}
        for i, one in enumerate(qid):
            lists[one].append(i)
        at = 0
        for everyone in lists.values():
            check_weights(statistic, a, at, len(everyone))
            self.add_list(everyone, whole, weights[at : at + len(everyone)], rank == "resolved")
            at += len(everyone)
        if statistic == "auc" and not graded:
            m = sum(gains)
            self.scale, self.shift = Fraction(1, m * (n - m)), Fraction(-(m + 1), 2 * (n - m))

    def add_list(self, everyone: list[int], gains: list[int], a: list[int], resolved: bool) -> None:
        """Add a list of these observations, with gains and a_1, ..., a_n times their units."""
        values = sorted({0, *(gains[i] for i in everyone)})
        grades = {i: values.index(gains[i]) for i in everyone}
        ranked = sorted((i for i in everyone if gains[i]), key=lambda i: -gains[i])
        for q, i in enumerate(ranked):
            for k in everyone:
                s = grades[i] - grades[k] if resolved else int(i != k)
                if s > 0:
                    self.pairs.append((i, k, s, self.counters + len(ranked) * grades[k] + q, 1))
        layers = [
            (sum(gains[i] >= value for i in ranked), [(value - below) * v for v in reversed(a)])
            for below, value in itertools.pairwise(values)
        ]
        if layers:
            self.lists.append((self.counters, len(ranked), layers))
        self.counters += len(ranked) * len(values)

    def read_pairs(self, content: dict[str, Json]) -> None:
        """Lines and pairs of the kind "pairwise"."""
        pairs, weights = content["pairs"], content["pair_weights"]
        require(bool(pairs), "problem.pairs", "must hold a pair")
        sized(weights, len(pairs), "problem.pair_weights")
        for at, (pair, weight) in enumerate(zip(pairs, weights, strict=True)):
            right = len(pair) == 2 and pair[0] != pair[1] and all(0 <= end < self.n for end in pair)
            require(right, f"problem.pairs[{at}]", f"must join two observations, got {pair!r:.40}")
            require(weight > 0, f"problem.pair_weights[{at}]", f"must be > 0, got {weight!r}")
        whole, self.worth_unit = integers(weights)
        lines: dict[tuple[int, ...], int] = {}
        for (above, below), weight in zip(pairs, whole, strict=True):
            delta = self.difference(above, below)
            ray, back = (tuple(sign * v // (math.gcd(*delta) or 1) for v in delta) for sign in (1, -1))
            line = lines.setdefault(max(ray, back), len(lines))
            self.pairs.append((above, below, 1, 2 * line + (ray < back), weight))
        self.counters = 2 * len(lines)
        self.lines = [0] * self.counters
        for *_, counter, weight in self.pairs:
            self.lines[counter] += weight

    def difference(self, above: int, below: int) -> tuple[int, ...]:
        """δ of two observations."""
        return tuple(a - b for a, b in zip(self.X[above], self.X[below], strict=True))

    def total(self, lost: list[int]) -> int:
        """The largest sum of worths where at least so many pairs are lost."""
        if self.lines:
            won = [worth - weight for worth, weight in zip(self.lines, lost, strict=True)]
            return sum(map(max, won[::2], won[1::2]))
        total = 0
        for first, m, layers in self.lists:
            columns = [lost[at : at + m] for at in range(first, first + m * (len(layers) + 1), m)]
            every, lower = [sum(row) for row in zip(*columns, strict=True)], [0] * m
            for (members, worth), column in zip(layers, columns[:-1], strict=True):
                lower = [g + c for g, c in zip(lower, column, strict=True)]
                b, g = sorted(every[:members]), sorted(lower[:members])
                total += sum(worth[max(b[p], p + g[p])] for p in range(members))
        return total

    def perfect(self) -> int:
        """The sum of worths where no pair is lost."""
        return sum(self.lines) or self.total([0] * self.counters)

    def objective(self, total: int, nonzero: int) -> Fraction:
        """The objective of a sum of worths and a number of non-zero weights."""
        return self.scale * Fraction(total, self.worth_unit) + self.shift - self.C * nonzero

    def size(self) -> Fraction:
        """The statistic where no pair is lost."""
        return self.objective(self.perfect(), 0)

    def value(self, weights: list[float]) -> Fraction:
        """The objective at these weights."""
        w, unit = integers(weights)
        scores, need = [dot(w, row) for row in self.X], self.margin * self.unit * unit
        lost = [0] * self.counters
        for above, below, s, counter, weight in self.pairs:
            if scores[above] - scores[below] < s * need:
                lost[counter] += weight
        return self.objective(self.total(lost), sum(v != 0 for v in w))

    def excess(self, weights: list[float]) -> Fraction:
        """By how much the weights exceed a side constraint, relative to the size of its terms; 0 where none is."""
        w, unit = integers(weights)
        rows = [([a * v for a, v in zip(row, w, strict=True)], limit * unit) for row, limit in self.sides]
        return max([Fraction(0), *(excess(terms, limit) for terms, limit in rows)])


class Box:
    """A box of weights, `ONE` standing for 1.

    Attributes:
        low, high: ends of the intervals.
        apart: coordinates known not to be 0 though 0 may be an end of their interval.
        open: pairs neither lost nor won everywhere in the box: (the largest w·δ, the smallest, (δ, counter, weight)),
            both less margin * s.
        lost: counters of the pairs lost everywhere in the box.
    """

    def __init__(self, low: list[int], high: list[int], apart: set[int], pairs: list[Json], lost: list[int]) -> None:
        self.low, self.high, self.apart, self.open, self.lost = low, high, apart, pairs, lost

    def part(self, j: int, low: int, high: int, apart: bool = False) -> Box:
        """The part with low <= w_j <= high, and w_j not 0 where `apart`."""
        pairs, lost = self.open, self.lost.copy()
        for shift in filter(None, (low - self.low[j], high - self.high[j])):
            before, pairs = pairs, []
            for largest, smallest, pair in before:
                change = shift * pair[0][j]  # as the end moves inwards, it lowers the largest or raises the smallest
                if change < 0:
                    largest += change
                else:
                    smallest += change
                if largest < 0:
                    lost[pair[1]] += pair[2]
                elif smallest < 0:
                    pairs.append((largest, smallest, pair))
        lows, highs = self.low.copy(), self.high.copy()
        lows[j], highs[j] = low, high
        return Box(lows, highs, self.apart | {j} if apart else self.apart, pairs, lost)

    def __str__(self) -> str:
        ends = zip(self.low, self.high, strict=True)
        return " x ".join(f"[{low / ONE:.9g}, {high / ONE:.9g}]" for low, high in ends)


def roots(problem: Problem) -> list[tuple[str, Box]]:
    """Name and box of every root."""
    d, margin = problem.d, problem.margin * problem.unit * ONE
    cube = Box([-ONE] * d, [ONE] * d, set(), [], [0] * problem.counters)
    for above, below, s, counter, weight in problem.pairs:
        delta, need = problem.difference(above, below), math.ceil(s * margin)
        reach = ONE * sum(map(abs, delta))
        if reach < need:
            cube.lost[counter] += weight
        else:
            cube.open.append((reach - need, -reach - need, (delta, counter, weight)))
    if not problem.scalable:
        return [("the cube", cube)]
    faces = [(j, end) for j in range(d) for end in (-ONE, ONE)]
    return [(f"w_{j} = {end // ONE}", cube.part(j, end, end)) for j, end in faces]


def check_partition(problem: Problem, bound: Fraction, partition: list[str]) -> int:
    """Check that no feasible weights have an objective above the bound; returns the number of boxes."""
    # the largest sums of worths that the bound allows where 0, 1, ..., d weights are not 0
    sums = [(bound + problem.C * k - problem.shift) / problem.scale for k in range(problem.d + 1)]
    limits = [math.floor(s * problem.worth_unit) for s in sums]
    if problem.scalable and all(limit == 0 for _, limit in problem.sides):
        zero = problem.value([0.0] * problem.d)
        require(zero <= bound, "proof.bound", f"is below {show(zero)}, the value of w = 0")
    starts = roots(problem)
    sized(partition, len(starts), "proof.partition")
    for at, (text, (name, box)) in enumerate(zip(partition, starts, strict=True)):
        check_root(problem, limits, text.split(" "), box, f"proof.partition[{at}] ({name})")
    return sum(text.count(" ") + 1 for text in partition)


def check_root(problem: Problem, limits: list[int], words: list[str], root: Box, place: str) -> None:
    """Check the partition of one root."""
    cuts = {f"{j}{z}": (j, z) for j in range(problem.d) for z in ("", "z")}
    boxes = [root]
    for at, word in enumerate(words):
        here = f"{place}, word {at + 1}"
        require(bool(boxes), here, "stands behind the end, all boxes are closed")
        box = boxes.pop()
        if word == ".":
            check_closed(problem, limits, box, here)
            continue
        require(word in cuts, here, f"is not known: {word!r:.20}")
        j, z = cuts[word]
        low, high = box.low[j], box.high[j]
        middle = 0 if z else (low + high) // 2
        possible = low < middle < high and (bool(z) or middle - low == high - middle)
        require(possible, here, f"cannot cut w_{j} of the box {box}")
        ends = [(middle, high), (0, 0), (low, middle)] if z else [(middle, high), (low, middle)]
        boxes += [box.part(j, *end, apart=bool(z) and end != (0, 0)) for end in ends]
    require(not boxes, f"{place}, word {len(words)}", f"is the last, but {len(boxes)} boxes are not closed")


def check_closed(problem: Problem, limits: list[int], box: Box, place: str) -> None:
    """Check that no feasible weights of a box have an objective above the bound."""
    nonzero = sum(box.low[j] > 0 or box.high[j] < 0 or j in box.apart for j in range(problem.d))
    total = problem.total(box.lost)
    if nonzero > problem.most or total <= limits[nonzero]:
        return
    for row, limit in problem.sides:
        least = [v * (low if v > 0 else high) for v, low, high in zip(row, box.low, box.high, strict=True)]
        if excess(least, limit * ONE) > FEASIBLE:
            return
    reached = show(problem.objective(total, nonzero))
    raise CertificateError(f"{place}: closes the box {box}, where the value may be {reached}")


def check(content: dict[str, Json]) -> tuple[str, str]:
    """What the content of a file (from `parse`) shows, as its claim and in words; `CertificateError` where it is wrong.

    The claim is "optimal"; "bound", where a bound above the value is proven; or "value", where none is proven.
    """
    problem, weights, stated = Problem(content["problem"]), content["weights"], content["value"]
    sized(weights, problem.d, "weights")
    for j, w in enumerate(weights):
        require(abs(w) <= 1, f"weights[{j}]", f"must be from -1 to 1, got {w!r}")
    nonzero = sum(w != 0 for w in weights)
    require(nonzero <= problem.most, "weights", f"at most {problem.most} may differ from 0, got {nonzero}")
    over, value = problem.excess(weights), problem.value(weights)
    require(over <= FEASIBLE, "weights", f"exceed a side constraint by {show(over)} of its terms' size")
    tolerance = ROUNDING * max(abs(problem.size()), abs(value))
    require(abs(value - Fraction(stated)) <= tolerance, "value", f"is {show(value)} at these weights, not {stated!r}")
    least, bound = f"must be at least the value {stated!r}, got ", content["claimed_bound"]
    require(bound >= stated, "claimed_bound", f"{least}{bound!r}")
    claim, words = "value", f"the bound {bound!r} is claimed, not proven"
    if content["proof"] is not None:
        bound, partition = content["proof"]["bound"], content["proof"]["partition"]
        require(bound >= stated, "proof.bound", f"{least}{bound!r}")
        boxes = check_partition(problem, Fraction(bound), partition)
        claim = "optimal" if Fraction(bound) - value <= tolerance else "bound"
        words = f"no weights exceed {bound!r}, proven by {boxes} boxes"
    require(content["claim"] == claim, "claim", f"the file shows {claim!r}, not {content['claim']!r:.40}")
    if over:
        words += f"; the weights exceed a side constraint by {show(over)} of its terms' size, which is tolerated"
    data = f"{problem.n} observations, {problem.d} features, sha256 {content['problem']['sha256']}"
    return claim, f"{claim}: the weights have the value {show(value)}; {words}; data: {data}"


def main(arguments: list[str] | None = None) -> int:
    """Check the file named on the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check a certificate in exact arithmetic.")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--require-proof", action="store_true", help="reject a file that proves no bound")
    parser.add_argument("--data", metavar="SHA256", help="reject a file about other data")
    options = parser.parse_args(arguments)
    try:
        with open(options.file, encoding="utf-8") as file:  # noqa: PTH123 (as few modules as possible)
            content = parse(file.read())
        claim, words = check(content)
        require(claim != "value" or not options.require_proof, "proof", "there is none")
        sha256 = content["problem"]["sha256"]
        require(options.data in (None, sha256), "problem.sha256", f"must be {options.data!r}, got {sha256!r}")
    except CertificateError as error:
        sys.stderr.write(f"rejected: {options.file}: {error}\n")
        return 1
    except (OSError, ValueError, RecursionError) as error:
        sys.stderr.write(f"cannot read {options.file}: {getattr(error, 'strerror', None) or error}\n")
        return 2
    sys.stdout.write(f"{words}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
