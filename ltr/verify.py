"""Check a certificate of weights, and of a bound that no weights exceed, in exact rational arithmetic.

    python ltr/verify.py FILE [--require-proof] [--data SHA256] [--max-size MIB]

The program needs Python and nothing else. Every number of a file is a float64 and stands for itself; nothing is rounded
except in messages. The verdict is one line, and the exit code

    0  accepted: the file is right, and the line says what it shows about which problem
    1  rejected: the file is wrong, and the line names the place
    2  the file cannot be read or is not JSON, or the command line is wrong
    3  the file could not be checked: it needs more memory than there is or than the program allows itself

**The problem.** Over weights w in [-1, 1]^d with A w <= b and at most max_nonzeros of them other than 0, maximise
``statistic(w) - C * #{j : w_j != 0}``. Weights of the columns named as free are not counted, here or in what follows;
a file that does not name any has none. A pair (i, k) is won where ``w·δ >= margin * s``, δ = x_i - x_k, margin > 0, and
lost elsewhere; s = 1 unless stated otherwise. In a file of the kind "pairwise" the statistic is the sum of the weights
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
import bisect
import hashlib
import itertools
import json
import math
import operator
import re
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

__all__ = ["CertificateError", "LimitError", "Problem", "check", "data_digest", "main", "parse"]

Json = Any  # what json.loads returns
Pair = tuple[int, ...]
FORMAT, VERSION = "ltr certificate", 1
PROBLEM = {"C": float, "margin": float, "constraints": ({"A": [[float]], "b": [float]},), "max_nonzeros": (int,)}
PROBLEM |= {"X": [[float]], "sha256": str, "free": [int]}
OPTIONAL = ("free",)
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
MAX_SIZE = 256  # largest size of a file in MiB: Python needs up to twenty times as much memory for it
ROOM = 8_000_000  # open pairs that all boxes together may hold, at about 170 bytes each
COUNTERS = 8  # counters that take as much memory as one open pair


class CertificateError(ValueError):
    """A certificate is wrong; the message says what and where."""


class LimitError(Exception):
    """A certificate needs more memory than the program allows itself."""


class Progress:
    """Count of the boxes checked, written to stderr every ten seconds where `loud`."""

    def __init__(self, loud: bool = False) -> None:
        self.loud, self.boxes, self.checked, self.next = loud, 0, 0, time.monotonic() + 10

    def tick(self, boxes: int = 0) -> None:
        """Add checked boxes."""
        self.checked += boxes
        if self.loud and time.monotonic() > self.next:
            self.next = time.monotonic() + 10
            sys.stderr.write(f"checking box {self.checked} of {self.boxes}\n")
            sys.stderr.flush()


def require(condition: bool, place: str, reason: str) -> None:
    """Raise `CertificateError` unless the condition holds."""
    if not condition:
        raise CertificateError(f"{place}: {reason}")


def sized(values: list[Json], length: int, place: str) -> None:
    """Check the length of a list."""
    require(len(values) == length, place, f"must hold {length} entries, got {len(values)}")


def parse(text: str) -> dict[str, Json]:
    """Return the content of a file, with all fields and of their types; ValueError for text that is not JSON."""
    try:
        content = json.loads(text, object_pairs_hook=unique)
        require(isinstance(content, dict) and content.get("format") == FORMAT, "format", f"must be {FORMAT!r}")
        require(content.get("version") == VERSION, "version", f"must be {VERSION}, got {content.get('version')!r:.40}")
        return typed(content, FILE, "")
    except CertificateError:
        raise
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    except ValueError:
        raise ValueError("it holds an integer with more digits than Python reads") from None
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return a JSON object, in which no name may occur twice."""
    fields: dict[str, Json] = {}
    for name, value in pairs:
        require(name not in fields, f"{name!r:.40}", "stands twice in one object")
        fields[name] = value
    return fields


def typed(value: Json, kind: Json, place: str) -> Json:
    """Return the value if it is of this kind; lists of lists are rectangular, integers become floats where due."""
    if isinstance(kind, tuple):
        return None if value is None else typed(value, kind[0], place)
    if kind is KINDS and isinstance(value, dict):
        found = value.get("kind")
        require(found in list(KINDS), f"{place}.kind", f"must be one of {', '.join(KINDS)}, got {found!r:.40}")
        kind = KINDS[found]
    if isinstance(kind, dict) and isinstance(value, dict):
        for field in (*kind, *value):
            known, given = field in kind, field in value or field in OPTIONAL
            require(known and given, place or "file", f"{field!r:.40} is {'missing' if known else 'not known'}")
        present = [field for field in kind if field in value]
        return {field: typed(value[field], kind[field], f"{place}.{field}".lstrip(".")) for field in present}
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
    """Return a number as text, with twelve digits."""
    return f"{float(value):.12g}" if abs(value) <= sys.float_info.max else "a number beyond float64"


NAME = re.compile(r"([a-z]+)(?:\(([^()]*)\))?(?:@0*([0-9]{1,19}))?")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# name -> its option, its default, what it must exceed; whether @N may (or must) follow; a_l from l, n and the option
STATISTICS: dict[str, tuple[str, float, float, str, Callable[[int, int, float], float]]] = {
    "auc": ("", 0, 0, "never", lambda rank, n, x: rank),
    "wrs": ("", 0, 0, "never", lambda rank, n, x: rank),
    "pauc": ("", 0, 0, "must", lambda rank, n, x: rank),
    "wta": ("", 0, 0, "never", lambda rank, n, x: rank == n),
    "mrr": ("", 0, 0, "may", lambda rank, n, x: 1 / (n - rank + 1)),
    "dcg": ("base", 2, 1, "may", lambda rank, n, x: math.log(x) / math.log(n - rank + 2)),
    "power": ("p", 1, 0, "may", lambda rank, n, x: float(rank) ** x),
}


def number(text: str) -> float:
    """Return the finite float64 that a word in a name stands for; ValueError for another word."""
    value = math.e if text == "e" else float(text) if NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r:.40} is not a finite number")
    return value


def parse_statistic(text: str) -> tuple[str, Callable[[int], list[float]]]:
    """Return the name of a statistic without options, and the function n -> a_1, ..., a_n; ValueError for other text.

    White space around words and numbers does not count.
    """
    match = NAME.fullmatch("".join(word.strip() for word in re.split(r"([(),=@])", text)))
    if match is None:
        raise ValueError("it does not read name, name(option=value) or name@N")
    name, inside, digits = match.groups()
    if name == "weights" and digits is None:
        own = [number(word) for word in (inside or "").split(",")]
        if own[0] < 0 or any(after < before for before, after in itertools.pairwise(own)):
            raise ValueError("its weights are below 0 or fall")
        return name, lambda n: finite(own, n)
    if name not in STATISTICS:
        raise ValueError("it has a cutoff" if name == "weights" else f"its name {name!r:.40} is unknown")
    option, x, least, cut, formula = STATISTICS[name]
    if inside:
        given, _, value = inside.partition("=")
        if not option or given != option:
            raise ValueError(f"it has no option {given!r:.40}")
        x = number(value)
        if not x > least:
            raise ValueError(f"its {option} must be > {least}")
    if (digits is None and cut == "must") or (digits is not None and cut == "never"):
        raise ValueError(f"it {'needs a' if cut == 'must' else 'takes no'} cutoff")
    top = 2**63 - 1 if digits is None else int(digits)
    if not 1 <= top < 2**63:
        raise ValueError("its cutoff must be from 1 to 2**63 - 1")

    def weights(n: int) -> list[float]:
        try:
            return finite([float(formula(rank, n, x)) if n - rank < top else 0.0 for rank in range(1, n + 1)], n)
        except OverflowError:
            raise ValueError("a weight is not finite") from None

    return name, weights


def finite(a: list[float], n: int) -> list[float]:
    """Return these weights if there are n of them and their sum is finite."""
    if len(a) != n:
        raise ValueError(f"it has {len(a)} weights")
    if not math.isfinite(sum(a)):
        raise ValueError("the sum of its weights is not finite")
    return a


def check_weights(statistic: str, weights: Callable[[int], list[float]], a: list[float], first: int, n: int) -> None:
    """Check that a[first], a[first + 1], ... are the weights a_1, ..., a_n of a statistic."""
    try:
        own = weights(n)
    except ValueError as error:
        place, rule = "problem.statistic", f"is not known for {n} observations"
        raise CertificateError(f"{place}: {rule}: {statistic!r:.40}, {error}") from None
    for at, computed in enumerate(own, first):
        near = abs(a[at] - computed) <= ULPS * 2.0**-52 * computed
        require(near, f"problem.a[{at}]", f"must be {computed!r} for {statistic!r:.40}, got {a[at]!r}")
        require(a[at] >= (a[at - 1] if at > first else 0.0), f"problem.a[{at}]", f"must not fall, got {a[at]!r}")


def data_digest(problem: dict[str, Json]) -> str:
    """Return the SHA-256 of the data as ASCII lines, each ended by a line feed.

    One line an observation: its features as `float.hex` writes them, separated by single spaces, behind its label (kind
    "rerank") or its gain and list (kind "graded"); then for the kind "pairwise" one line a pair: above, below, weight.
    """
    digest = hashlib.sha256()
    for line in data_lines(problem):
        digest.update((" ".join(line) + "\n").encode("ascii"))
    return digest.hexdigest()


def data_lines(problem: dict[str, Json]) -> Iterator[list[str]]:
    """Yield the words of each line."""
    for i, row in enumerate(problem["X"]):
        features = [float(v).hex() for v in row]
        if problem["kind"] == "rerank":
            yield [str(problem["y"][i]), *features]
        elif problem["kind"] == "graded":
            yield [float(problem["gains"][i]).hex(), str(problem["qid"][i]), *features]
        else:
            yield features
    if problem["kind"] == "pairwise":
        for (above, below), weight in zip(problem["pairs"], problem["pair_weights"], strict=True):
            yield [str(above), str(below), float(weight).hex()]


def integers(values: list[float]) -> tuple[list[int], int]:
    """Return integers and a unit, values = integers / unit: denominators are powers of 2, the largest serves all."""
    unit = max((v.as_integer_ratio()[1] for v in values), default=1)
    return [p * (unit // q) for p, q in (v.as_integer_ratio() for v in values)], unit


def excess(terms: list[int], limit: int) -> Fraction:
    """Return (sum of terms - limit) / (size of all of these)."""
    return Fraction(sum(terms) - limit, abs(limit) + sum(map(abs, terms)) or 1)


def dot(u: list[int], v: list[int]) -> int:
    """Return the scalar product."""
    return sum(a * b for a, b in zip(u, v, strict=True))


class Problem:
    """The problem of a file, checked, its numbers as integers.

    Attributes:
        n, d: observations, features.
        X, unit: features times unit.
        columns: the same, one list a feature.
        grades: h_i of each observation; none for the kind "pairwise".
        steps: the largest s of a pair.
        counters: of lost pairs, how many.
        lists: (first, everyone, ranked, layers, a) of each list with a gain > 0: all its observations; those with a
            gain > 0, numbered from 0, the largest gain first; of its layers t = 1, ... the number of members, which are
            the first ones, and v_t - v_(t-1); and a_n, ..., a_1. The pairs of number q with the k of grade h have the
            counter first + len(ranked) * h + q.
        lines: the weights of all pairs of each counter, for the kind "pairwise", where 2l counts the pairs of line l in
            one direction, 2l + 1 those in the other, both by weight.
        value_unit: unit of the sums of contributions, which are gains times rank weights, or weights of pairs.
        perfect: the sum of contributions where no pair is lost.
        edges: the pairs of the kind "pairwise", see `pairs`.
        progress: is told about each box and about each observation whose pairs are gone through.
        scale, shift: the statistic is scale * (sum of contributions) / value_unit + shift.
        sides: (row of A, entry of b), both times one power of 2.
        scalable: whether the faces of the cube are the roots.
        counted: the columns that are not free.
        most: weights of these that may differ from 0.
    """

    def __init__(self, content: dict[str, Json]) -> None:
        X, self.C, self.margin = content["X"], Fraction(content["C"]), Fraction(content["margin"])
        require(bool(X and X[0]), "problem.X", "must have a row and a column")
        require(self.C >= 0, "problem.C", f"must be >= 0, got {content['C']}")
        require(self.margin > 0, "problem.margin", f"must be > 0, got {content['margin']}")
        n, d = self.n, self.d = len(X), len(X[0])
        free, most = content.get("free", []), content["max_nonzeros"]
        for at, j in enumerate(free):
            right = 0 <= j < d and j not in free[:at]
            require(right, f"problem.free[{at}]", f"must be a column from 0 to {d - 1}, named once, got {j!r:.40}")
        self.counted = [j for j in range(d) if j not in free]
        self.most = len(self.counted) if most is None else most
        right = most is None or 1 <= most <= len(self.counted)
        require(right, "problem.max_nonzeros", f"must be from 1 to {len(self.counted)}, got {most!r:.40}")
        flat, self.unit = integers([v for row in X for v in row])
        self.X = [flat[at : at + d] for at in range(0, n * d, d)]
        self.columns = [flat[j::d] for j in range(d)]
        self.counters, self.scale, self.shift, self.value_unit = 0, Fraction(1), Fraction(0), 1
        self.grades, self.steps, self.perfect, self.resolved = list[int](), 1, 0, content.get("rank") == "resolved"
        self.lists, self.lines, self.edges, self.progress = list[Json](), list[int](), list[Pair](), Progress()
        (self.read_pairs if content["kind"] == "pairwise" else self.read_lists)(content)
        A, b = (content["constraints"] or {"A": [], "b": []}).values()
        sized(b, len(A), "problem.constraints.b")
        require(bool(A) or content["constraints"] is None, "problem.constraints.A", "must have a row")
        sized(A[0] if A else [0] * d, d, "problem.constraints.A[0]")
        flat, _ = integers([v for row, limit in zip(A, b, strict=True) for v in (*row, limit)])
        self.sides = [(flat[at : at + d], flat[at + d]) for at in range(0, len(flat), d + 1)]
        self.scalable = all(limit <= 0 for limit in b)
        sha256 = data_digest(content)
        require(content["sha256"] == sha256, "problem.sha256", f"the data have {sha256}")

    def read_lists(self, content: dict[str, Json]) -> None:
        """Read the lists of the kinds "rerank" and "graded"."""
        n, graded, (a, rank, statistic) = self.n, "gains" in content, (content[f] for f in ("a", "rank", "statistic"))
        require(rank in ("resolved", "subrank"), "problem.rank", f"must be 'resolved' or 'subrank', got {rank!r:.40}")
        name = "gains" if graded else "y"
        gains, qid = content[name], content["qid"] if graded else [0] * n
        sized(gains, n, f"problem.{name}")
        sized(qid, n, "problem.qid")
        for at, one in enumerate(qid):
            require(-(2**63) <= one < 2**63, f"problem.qid[{at}]", f"must fit into 64 bits, got {one!r:.40}")
        sized(a, n, "problem.a")
        for at, gain in enumerate(gains):
            right, rule = (gain >= 0, ">= 0") if graded else (gain in (0, 1), "0 or 1")
            require(right, f"problem.{name}[{at}]", f"must be {rule}, got {gain!r:.40}")
        require(graded or 0 < sum(gains) < n, "problem.y", "must hold both labels")
        require(any(gains), "problem.gains", "must hold a number > 0")
        (whole, unit), (weights, self.value_unit) = integers(gains), integers(a)
        self.value_unit *= unit
        self.grades = [0] * n
        try:
            name, named = parse_statistic(statistic)
        except ValueError as error:
            raise CertificateError(f"problem.statistic: is not known: {statistic!r:.40}, {error}") from None
        at = 0
        for _, one in itertools.groupby(sorted(range(n), key=qid.__getitem__), key=qid.__getitem__):
            everyone = list(one)
            check_weights(statistic, named, a, at, len(everyone))
            self.add_list(everyone, whole, weights[at : at + len(everyone)])
            at += len(everyone)
        if name == "auc" and not graded:
            m = sum(gains)
            self.scale, self.shift = Fraction(1, m * (n - m)), Fraction(-(m + 1), 2 * (n - m))

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
            self.lists.append((self.counters, everyone, ranked, layers, a[::-1]))
            self.counters += len(ranked) * (len(layers) + 1)
            self.perfect += sum(gains[i] * v for i, v in zip(ranked, reversed(a), strict=False))
            self.steps = max(self.steps, len(layers))

    def read_pairs(self, content: dict[str, Json]) -> None:
        """Read the lines and pairs of the kind "pairwise"."""
        pairs, weights = content["pairs"], content["pair_weights"]
        require(bool(pairs), "problem.pairs", "must hold a pair")
        sized(weights, len(pairs), "problem.pair_weights")
        for at, (pair, weight) in enumerate(zip(pairs, weights, strict=True)):
            right = len(pair) == 2 and pair[0] != pair[1] and all(0 <= end < self.n for end in pair)
            require(right, f"problem.pairs[{at}]", f"must join two observations, got {pair!r:.40}")
            require(weight > 0, f"problem.pair_weights[{at}]", f"must be > 0, got {weight!r}")
        whole, self.value_unit = integers(weights)
        lines: dict[tuple[int, ...], int] = {}
        for (above, below), weight in zip(pairs, whole, strict=True):
            delta = tuple(map(operator.sub, self.X[above], self.X[below]))
            ray, back = (tuple(sign * v // (math.gcd(*delta) or 1) for v in delta) for sign in (1, -1))
            line = lines.setdefault(max(ray, back), len(lines))
            self.edges.append((above, below, 1, 2 * line + (ray < back), weight))
        self.counters = 2 * len(lines)
        self.lines = [0] * self.counters
        for *_, counter, weight in self.edges:
            self.lines[counter] += weight
        self.perfect = sum(whole)

    def pairs(self) -> Iterator[Pair]:
        """Yield all pairs, (i, k, s, counter, weight); the weight is 1 except for the kind "pairwise"."""
        yield from self.edges
        for first, everyone, ranked, _, _ in self.lists:
            for q, i in enumerate(ranked):
                self.progress.tick()
                for k in everyone:
                    s = self.grades[i] - self.grades[k] if self.resolved else int(i != k)
                    if s > 0:
                        yield i, k, s, first + len(ranked) * self.grades[k] + q, 1

    def total(self, lost: list[int]) -> int:
        """Return the largest sum of contributions where at least so many pairs are lost."""
        if self.lines:
            won = [weight - gone for weight, gone in zip(self.lines, lost, strict=True)]
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

    def objective(self, total: int, nonzero: int) -> Fraction:
        """Return the objective of a sum of contributions and a number of non-zero weights."""
        return self.scale * Fraction(total, self.value_unit) + self.shift - self.C * nonzero

    def size(self) -> Fraction:
        """Return the statistic where no pair is lost."""
        return self.objective(self.perfect, 0)

    def value(self, weights: list[float]) -> Fraction:
        """Return the objective at these weights by the statistic's definition: from sorted scores, not from pairs."""
        w, unit = integers(weights)
        scores, need = [dot(w, row) for row in self.X], self.margin * self.unit * unit
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
        return self.objective(total, self.nonzero(weights))

    def nonzero(self, weights: list[float]) -> int:
        """Return the number of weights other than 0 that count."""
        return sum(weights[j] != 0 for j in self.counted)

    def excess(self, weights: list[float]) -> Fraction:
        """Return the largest excess over a side constraint relative to the size of its terms, or 0."""
        w, unit = integers(weights)
        rows = [([a * v for a, v in zip(row, w, strict=True)], limit * unit) for row, limit in self.sides]
        return max([Fraction(0), *(excess(terms, limit) for terms, limit in rows)])


class Box:
    """A box of weights, `ONE` standing for 1.

    Its pairs are looked at when they are asked for. What is then found is kept for the parts of the box if there is
    room; the pairs of a part are looked for among those kept last, or among all.

    Attributes:
        low, high: ends of the intervals.
        apart: coordinates known not to be 0 though 0 may be an end of their interval.
        open: pairs neither lost nor won everywhere in the box: (the largest w·δ, the smallest, i, k, counter, weight),
            both less margin * s; None where they are not kept.
        lost: counters of the pairs lost everywhere in the box; None where they are not kept.
        source: the box around this one that keeps its pairs, None where there is none.
        held: the room that the boxes around this one take.
    """

    def __init__(
        self,
        problem: Problem,
        low: list[int],
        high: list[int],
        apart: frozenset[int] = frozenset(),
        source: Box | None = None,
        held: int = 0,
    ) -> None:
        self.problem, self.low, self.high, self.apart, self.source, self.held = problem, low, high, apart, source, held
        self.open: list[Pair] | None = None
        self.lost: list[int] | None = None

    def part(self, j: int, low: int, high: int, apart: bool = False) -> Box:
        """Return the part with low <= w_j <= high, and w_j not 0 where `apart`."""
        lows, highs, known = self.low.copy(), self.high.copy(), self.apart | {j} if apart else self.apart
        lows[j], highs[j] = low, high
        if self.open is None:
            return Box(self.problem, lows, highs, known, self.source, self.held)
        held = self.held + len(self.open) + self.problem.counters // COUNTERS
        return Box(self.problem, lows, highs, known, self, held)

    def count(self, keep: bool = False) -> list[int]:
        """Count the pairs lost everywhere in the box; `keep` keeps the open ones for its parts, if there is room.

        No box takes more than half of the room that is left, so that there always is some for boxes with fewer pairs.
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
        pairs, lost = source.open, source.lost.copy()
        ends = ((self.low, source.low), (self.high, source.high))
        moves = [(j, own[j] - old[j]) for j in range(self.problem.d) for own, old in ends if own[j] != old[j]]
        for at, (j, shift) in enumerate(moves, 1):
            column, before, pairs = self.problem.columns[j], pairs, []
            if at == len(moves) and not keep:  # what stays open is not asked for
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
        needs = [math.ceil(s * margin) for s in range(problem.steps + 1)]
        pairs, lost = list[Pair](), [0] * problem.counters
        for i, k, s, counter, weight in problem.pairs():
            middle, reach = middles[i] - middles[k], sum(map(abs, map(operator.sub, scaled[i], scaled[k])))
            largest = (middle + reach) // 2 - needs[s]
            if largest < 0:
                lost[counter] += weight
            elif len(pairs) <= most:
                smallest = (middle - reach) // 2 - needs[s]
                if smallest < 0:
                    pairs.append((largest, smallest, i, k, counter, weight))
        return pairs, lost

    def __str__(self) -> str:
        ends = zip(self.low, self.high, strict=True)
        return " x ".join(f"[{low / ONE:.9g}, {high / ONE:.9g}]" for low, high in ends)


def roots(problem: Problem, keep: bool = True) -> list[tuple[str, Box]]:
    """Return the name and box of every root; `keep` prepares the pairs of the cube for its faces."""
    d = problem.d
    cube = Box(problem, [-ONE] * d, [ONE] * d)
    if not problem.scalable:
        return [("the cube", cube)]
    if keep:
        cube.count(keep)
    faces = [(j, end) for j in range(d) for end in (-ONE, ONE)]
    return [(f"w_{j} = {end // ONE}", cube.part(j, end, end)) for j, end in faces]


def check_partition(problem: Problem, bound: Fraction, partition: list[str]) -> int:
    """Check that no feasible weights have an objective above the bound, and return the number of boxes."""
    # the largest sums of contributions that the bound allows where 0, 1, ..., d weights are not 0
    sums = [(bound + problem.C * k - problem.shift) / problem.scale for k in range(problem.d + 1)]
    limits = [math.floor(s * problem.value_unit) for s in sums]
    if problem.scalable and all(limit == 0 for _, limit in problem.sides):
        zero = problem.value([0.0] * problem.d)
        require(zero <= bound, "proof.bound", f"is below {show(zero)}, the value of w = 0")
    sized(partition, 2 * problem.d if problem.scalable else 1, "proof.partition")
    problem.progress.boxes = sum(text.count(" ") + 1 for text in partition)
    if problem.perfect > limits[0] and problem.counters > ROOM * COUNTERS:
        raise LimitError(f"its boxes need {problem.counters} counters of lost pairs, more than {ROOM * COUNTERS}")
    for at, (name, box) in enumerate(roots(problem, keep=problem.perfect > limits[0])):
        check_root(problem, limits, partition[at].split(" "), box, f"proof.partition[{at}] ({name})")
    return problem.progress.boxes


def check_root(problem: Problem, limits: list[int], words: list[str], root: Box, place: str) -> None:
    """Check the partition of one root."""
    cuts = {f"{j}{z}": (j, z) for j in range(problem.d) for z in ("", "z")}
    boxes = [root]
    for at, word in enumerate(words):
        here = f"{place}, word {at + 1}"
        require(bool(boxes), here, "stands behind the end, all boxes are closed")
        box = boxes.pop()
        problem.progress.tick(1)
        if word == ".":
            check_closed(problem, limits, box, here)
            continue
        require(word in cuts, here, f"is not known: {word!r:.20}")
        j, z = cuts[word]
        low, high = box.low[j], box.high[j]
        middle = 0 if z else (low + high) // 2
        possible = low < middle < high and (bool(z) or middle - low == high - middle)
        require(possible, here, f"cannot cut w_{j} of the box {box}")
        if problem.perfect > limits[0]:
            box.count(keep=True)
        ends = [(middle, high), (0, 0), (low, middle)] if z else [(middle, high), (low, middle)]
        boxes += [box.part(j, *end, apart=bool(z) and end != (0, 0)) for end in ends]
    require(not boxes, f"{place}, word {len(words)}", f"is the last, but {len(boxes)} boxes are not closed")


def check_closed(problem: Problem, limits: list[int], box: Box, place: str) -> None:
    """Check that no feasible weights of a box have an objective above the bound."""
    nonzero = sum(box.low[j] > 0 or box.high[j] < 0 or j in box.apart for j in problem.counted)
    if nonzero > problem.most or problem.perfect <= limits[nonzero]:
        return
    for row, limit in problem.sides:
        least = [v * (low if v > 0 else high) for v, low, high in zip(row, box.low, box.high, strict=True)]
        if excess(least, limit * ONE) > FEASIBLE:
            return
    total = problem.total(box.count())
    if total > limits[nonzero]:
        reached = show(problem.objective(total, nonzero))
        raise CertificateError(f"{place}: closes the box {box}, where the value may be {reached}")


def check(content: dict[str, Json], progress: Progress | None = None) -> tuple[str, str]:
    """Return what the content of a file (from `parse`) shows, as its claim and in words.

    The claim is "optimal"; "bound", where a bound above the value is proven; or "value", where none is proven.
    `CertificateError` says what is wrong.
    """
    problem, weights, stated = Problem(content["problem"]), content["weights"], content["value"]
    problem.progress = progress or problem.progress
    sized(weights, problem.d, "weights")
    for j, w in enumerate(weights):
        require(abs(w) <= 1, f"weights[{j}]", f"must be from -1 to 1, got {w!r}")
    nonzero = problem.nonzero(weights)
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
    return claim, f"{claim}: the weights have the value {show(value)}; {words}; {statement(content['problem'])}"


def statement(problem: dict[str, Json]) -> str:
    """Return the problem in words: all that the value and the bound depend on, the data by their hash."""
    words, lists, sides = [f"problem: {problem['kind']}"], "", problem["constraints"]
    if problem["kind"] == "pairwise":
        words.append(counted(len(problem["pairs"]), "pair"))
    else:
        words += ["statistic " + "".join(problem["statistic"].split()), f"rank {problem['rank']}"]
    words += [f"margin {problem['margin']!r}", f"C {problem['C']!r}"]
    if problem["max_nonzeros"] is not None:
        words.append(f"max_nonzeros {problem['max_nonzeros']}")
    if free := problem.get("free"):
        words.append(f"free {'columns' if len(free) > 1 else 'column'} {' and '.join(map(str, free))}")
    if sides:
        words.append(counted(len(sides["A"]), "side constraint"))
    if problem["kind"] == "graded":
        lists = " in " + counted(len(set(problem["qid"])), "list")
    n, d = counted(len(problem["X"]), "observation"), counted(len(problem["X"][0]), "feature")
    return f"{', '.join(words)}; data: {n}{lists}, {d}, sha256 {problem['sha256']}"


def counted(number: int, word: str) -> str:
    """Return a number and a noun."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def read(path: str, most: int) -> str:
    """Return the text of a file of at most so many MiB."""
    with open(path, "rb") as file:  # noqa: PTH123 (as few modules as possible)
        pieces = list(itertools.islice(iter(lambda: file.read(1 << 20), b""), most + 1))
    if sum(map(len, pieces)) > most << 20:
        raise LimitError(f"it is larger than {most} MiB, which --max-size can raise")
    try:
        return b"".join(pieces).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text: {error.reason} at byte {error.start}") from None


def main(arguments: list[str] | None = None) -> int:
    """Check the file named on the command line and return the exit code."""
    parser = argparse.ArgumentParser(
        description="Check a certificate in exact arithmetic.",
        epilog="exit codes: 0 accepted, 1 rejected, 2 cannot be read or wrong usage, 3 could not be checked (memory)",
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--require-proof", action="store_true", help="reject a file that proves no bound")
    parser.add_argument("--data", metavar="SHA256", help="reject a file about other data")
    parser.add_argument(
        "--max-size", metavar="MIB", type=int, default=MAX_SIZE, help="largest size of the file in MiB (%(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.max_size < 1:
        parser.error(f"argument --max-size: must be at least 1, got {options.max_size}")
    try:
        content = parse(read(options.file, options.max_size))
        claim, words = check(content, Progress(loud=True))
        require(claim != "value" or not options.require_proof, "proof", "there is none")
        sha256 = content["problem"]["sha256"]
        require(options.data in (None, sha256), "problem.sha256", f"must be {options.data!r}, got {sha256!r}")
    except CertificateError as error:
        sys.stderr.write(f"rejected: {options.file}: {error}\n")
        return 1
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot read {options.file}: {getattr(error, 'strerror', None) or error}\n")
        return 2
    except (MemoryError, LimitError) as error:
        reason = error if isinstance(error, LimitError) else "there is not enough memory"
        sys.stderr.write(f"could not be checked: {options.file}: {reason}\n")
        return 3
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted: {options.file} was not checked\n")
        return 130
    sys.stdout.write(f"{words}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
