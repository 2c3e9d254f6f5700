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
the weights of those named as required are at least 0.01 in size; a file that does not name any has none. Where a file
states a number "integer", B, the weights are whole numbers from -B to B instead of numbers from -1 to 1, and those of
required columns are not 0. A pair (i, k) is won where ``w·δ >= margin * s``, δ = x_i - x_k, margin > 0, and
lost elsewhere; s = 1 unless stated otherwise. In a file of the kind "pairwise" the statistic is the sum of the weights
of the pairs won.

A file of the kind "graded" gives each observation a gain >= 0 and a list, by its number qid. Of one list let n be the
number of observations, 0 <= a_1 <= ... <= a_n its weights (in the file one list after the other, qid ascending),
0 = v_0 < v_1 < ... the number 0 and the gains in it, and h_i the grade of i, gain_i = v_(h_i). The statistic is the sum
of gain_i * a[n - c_i] over all i of all lists, where c_i counts within the list of i

    rank "resolved"    the observations before i, in the order of the keys w·x - margin * h from the largest down; of
                       equal keys the larger h comes first; observations of equal key and h may be in any order
    rank "subrank"     the lost pairs (i, k), k any other

A file of the kind "rerank" is about one list, with the gains y, 0 and 1; for "auc" the statistic is
(s - m (m + 1) / 2) / (m (n - m)) of this sum s, m the sum of y.

A file of the kind "card" is about points, whole numbers w from -points to points, of the columns of a matrix of zeros
and ones, X, a text for each row; where it states a "unit", a power of ten, the text has whole numbers, X times the
unit. At most max_nonzeros points are other than 0, in which required columns are, at most one of a group (a number
>= 0), w_j >= 0 where its sign is 1, w_j <= 0 where it is -1. Rows are ordered by their totals w·x, the largest first,
a row at place p = 0, 1, ... contributes gain * a[n - p], and rows with equal totals contribute

    ties "average"     the mean over all their orders
    ties "lost"        the least over all their orders, the one with ascending gains

and for "auc" with gains 0 and 1 the statistic is that of the kind "rerank". The last section says how it is proven.

**Layers.** As gain_i is the sum of v_t - v_(t-1) over t = 1, ..., h_i, the statistic is the sum over lists and t of
(v_t - v_(t-1)) S_t, where S_t is the sum of a[n - c_i] over the *members* of the layer, the i with h_i >= t. For
"resolved" let the pairs be the (i, k) with h_i > h_k, s = h_i - h_k, so that a pair is won where i comes before k; for
"subrank" all (i, k), s = 1. Let G_i be the number of lost pairs of i with h_k < t, and c_(0) <= c_(1) <= ... numbers of
the members, sorted. Go down the members in the order of the keys or, for "subrank", of w·x: G never falls. The one in
place p = 0, 1, ...

* for "resolved" comes after p members and G_(p) others: c_(p) = p + G_(p), and S_t = sum over p of a[n - p - G_(p)].
* for "subrank" beats neither the p members before it nor G_(p) others: its c is at least p + G_(p), which never falls
  either. Sorting keeps that: c_(p) >= p + G_(p).

**Tolerance.** Weights satisfy a row r of A w <= b where ``sum_j A_rj w_j <= b_r + 1e-9 (|b_r| + sum_j |A_rj w_j|)``,
1e-9 being the float64 of that name. All that follows is about these weights.

**Roots.** Where b <= 0 or there are no constraints, feasible weights other than 0 can be scaled up to max |w_j| = 1:
they stay feasible, win what they won, and keep their zeros. (For a row, scaling multiplies both sums by s >= 1, and
s (b_r + 1e-9 |b_r|) is at most b_r + 1e-9 |b_r| where that is not above 0.) Losing fewer pairs never lowers the
statistic: a is nondecreasing, and a sum S_t needs the numbers G only, or for "subrank" the numbers c, of lost pairs. So
the value of w = 0, unless a column is required, and 2d roots are all that matters, the faces w_0 = -1, w_0 = 1,
w_1 = -1, ... of the cube. Otherwise the cube is the only root. Whole numbers can be scaled up by whole numbers s until
max |w_j| > B / 2. With m the least whole number above B / 2 the roots are -B <= w_0 <= -m, m <= w_0 <= B,
-B <= w_1 <= -m, ...; the weights with smaller numbers than that of a root are from 1 - m to m - 1 in it.

**Partition.** One text for each root cuts it into boxes, in preorder: "." closes a box; "j" halves it at the middle of
its interval of w_j, lower half first; "jz" cuts it into the parts w_j < 0, w_j = 0 and w_j > 0. The parts of a box
cover it, so the closed boxes cover the root. The parts with w_j < 0 and w_j > 0 keep 0 as an end of their interval, and
the knowledge that w_j is not 0: their pairs are judged on a slightly larger set, which is safe. Of whole numbers from l
to h the lower half is those up to (l + h) / 2, rounded down, and the upper half the others; the parts of "jz" are
w_j <= -1, w_j = 0 and w_j >= 1.

**Closed boxes.** A box is rightly closed where a row of A w <= b fails on all of it, where the weight of a required
column is too small on all of it, where more than max_nonzeros weights are known not to be 0, those of required columns
among them, or where its value is bounded by the bound to be proven. A row fails on all of it where it does with every
A_rj w_j at its least, as y - 1e-9 |y| grows with y. In the box with centre c and half-widths r, w·δ
is at most c·δ + r·|δ|; where that is below margin * s the pair is lost everywhere. These lost pairs and the weights
known not to be 0 bound the value, for:

* Let b_i of the lost pairs of i be known, g_i of them with h_k < t. Then b_i <= c_i, as for "resolved" the k of a lost
  pair comes before i, and g_i <= G_i. Sorting keeps ``<=`` between lists, and a is nondecreasing, so

      S_t <= sum over p of a[n - max(b_(p), p + g_(p))].

  At a single w, where all lost pairs are known, both sides are equal.
* Pairs with the directions δ and -sδ, s > 0, are never won together. So of the pairs whose δ lie on one line only those
  of one direction count, whichever of the two has the larger weight not yet lost.

**Cards.** The file has no partition; the program looks at all sets of m <= max_nonzeros columns. They split the rows
into 2^m blocks, by the pattern of zeros and ones. With ties averaged, each of the c rows of a block with the gain g
counts as if it had the gain g / c, and an order of rows with given gains has its largest value where they descend. So
the blocks by descending g / c bound the value of all points of these columns; ties lost have no larger value. Where
that is not enough, let s be the columns with points below 0. As ``w·x = sum_j |w_j| (x_j xor s_j) + constant``, the
order is that of the positive points |w|, the patterns renamed. For positive points all orders are listed, as a tree of
sets of patterns with equal totals from the top down. In a node of the tree the blocks above it have their value, and
those below it are bounded as before. Contributions are rounded up to integers, in units of 2^-64 of that of a.

Where one of the columns has other numbers, they are fixed one after the other, and the rows with equal values of those
that are not fixed form blocks, whose order the points that are fixed decide. In it neighbours, rows with equal totals
first, are pooled until the means of their gains fall: every first so many of the pooled gains have at least the sum of
as many gains of the block. So with these, whatever the places of the block's rows are, it contributes no less, and the
pools of all blocks by falling means bound the value. Points with a common divisor are left out: they order rows like
those divided by it.

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
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from typing import Any

__all__ = ["CertificateError", "LimitError", "Problem", "check", "data_digest", "main", "parse", "problem_of"]

Json = Any  # what json.loads returns
Pair = tuple[int, ...]
Orders = dict[tuple[int, ...], Any]  # sets of patterns, and what may follow each
FORMAT, VERSION = "ltr certificate", 1
PROBLEM = {"C": float, "margin": float, "constraints": ({"A": [[float]], "b": [float]},), "max_nonzeros": (int,)}
PROBLEM |= {"X": [[float]], "sha256": str, "free": [int], "required": [int], "integer": int}
OPTIONAL = ("free", "required", "integer", "unit")
RANKED = {"rank": str, "statistic": str, "a": [float]}
KINDS = {
    "rerank": {"kind": str, **PROBLEM, **RANKED, "y": [int]},
    "graded": {"kind": str, **PROBLEM, **RANKED, "gains": [float], "qid": [int]},
    "pairwise": {"kind": str, **PROBLEM, "pairs": [[int]], "pair_weights": [float]},
    "card": {"kind": str, "C": float, "statistic": str, "a": [float], "ties": str, "points": int, "max_nonzeros": int}
    | {"signs": [int], "groups": [int], "required": [int], "gains": [float], "X": [str], "sha256": str}
    | {"unit": int},
}
# a type, [type of each entry], {name: type of the field}, or (type or null,)
FILE = {"format": str, "version": int, "claim": str, "value": float, "claimed_bound": float, "weights": [float]}
FILE |= {"problem": KINDS, "proof": ({"bound": float, "partition": [str]},)}
ONE = 1 << 60  # the weight 1: ends of intervals are integers in this unit
ROUNDING = Fraction(1e-12)  # tolerance of the value and of "optimal", relative to the statistic's size
REQUIRED = Fraction(0.01)  # least size of the weight of a required column where weights are no whole numbers
MOST_POINTS = 100  # largest B of whole numbers
FEASIBLE = Fraction(1e-9)  # how far the weights may exceed a side constraint, relative to the size of its terms
ULPS = 8  # how far, in units of 2**-52, an a_l may be from the one computed here
MAX_SIZE = 256  # largest size of a file in MiB: Python needs up to twenty times as much memory for it
ROOM = 8_000_000  # open pairs that all boxes together may store, at about 170 bytes each
UNITS = [10**decimals for decimals in range(13)]  # of the numbers of a card
COUNTERS = 8  # counters that take as much memory as one open pair


class CertificateError(ValueError):
    """A certificate is wrong; the message says what and where."""


class LimitError(Exception):
    """A certificate needs more memory than the program allows itself."""


class Progress:
    """Count of the boxes checked, written to stderr every ten seconds if `loud`."""

    def __init__(self, loud: bool = False) -> None:
        self.loud, self.boxes, self.checked, self.next, self.unit = loud, 0, 0, time.monotonic() + 10, "box"

    def tick(self, boxes: int = 0) -> None:
        """Add checked boxes."""
        self.checked += boxes
        if self.loud and time.monotonic() > self.next:
            self.next = time.monotonic() + 10
            sys.stderr.write(f"checking {self.unit} {self.checked} of {self.boxes}\n")
            sys.stderr.flush()


def require(condition: bool, place: str, reason: str) -> None:
    """Raise `CertificateError` unless the condition holds."""
    if not condition:
        raise CertificateError(f"{place}: {reason}")


def sized(values: list[Json], length: int, place: str) -> None:
    """Check the length of a list."""
    require(len(values) == length, place, f"must hold {length} entries, got {len(values)}")


def parse(text: str) -> dict[str, Json]:
    """Return the content of a file, its fields and their types checked; raise ValueError if it is not JSON."""
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
        raise ValueError("it contains an integer with more digits than Python reads") from None
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return a JSON object, in which no name may occur twice."""
    fields: dict[str, Json] = {}
    for name, value in pairs:
        require(name not in fields, f"{name!r:.40}", "occurs twice in one object")
        fields[name] = value
    return fields


def typed(value: Json, kind: Json, place: str) -> Json:
    """Return the value if it is of this kind; lists of lists are rectangular, integers become floats where needed."""
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
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
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
    """Return the finite float64 that a word in a name stands for; raise ValueError for another word."""
    value = math.e if text == "e" else float(text) if NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise ValueError(f"{text!r:.40} is not a finite number")
    return value


def parse_statistic(text: str) -> tuple[str, Callable[[int], list[float]]]:
    """Return the name of a statistic and the function n -> a_1, ..., a_n; raise ValueError for other text.

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
    """Return these weights; raise ValueError unless there are n of them and their sum is finite."""
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

    One line per observation: its label (kind "rerank") or its gain and list (kind "graded"), then its features as
    `float.hex` writes them, separated by single spaces; for the kind "pairwise" then one line per pair: above, below,
    weight. For the kind "card", whose digest covers the whole problem, the words of each other field, by name, and the
    rows of X.
    """
    digest = hashlib.sha256()
    for line in data_lines(problem):
        digest.update((" ".join(line) + "\n").encode("ascii"))
    return digest.hexdigest()


def data_lines(problem: dict[str, Json]) -> Iterator[list[str]]:
    """Yield the words of each line."""
    if problem["kind"] == "card":
        for field in sorted(set(KINDS["card"]) & set(problem) - {"sha256"}):
            value = problem[field] if isinstance(problem[field], list) else [problem[field]]
            yield [field, *(v.hex() if isinstance(v, float) else str(v) for v in value)]
        return
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
    """Return integers and a unit, values = integers / unit: denominators are powers of 2, and the largest is used."""
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
        columns: the same, one list per feature.
        grades: h_i of each observation; none for the kind "pairwise".
        steps: the largest s of a pair.
        counters: number of counters of lost pairs.
        lists: (first, everyone, ranked, layers, a) of each list with a gain > 0: all its observations; those with a
            gain > 0, numbered from 0, the largest gain first; of its layers t = 1, ... the number of members, which are
            the first ones, and v_t - v_(t-1); and a_n, ..., a_1. The pairs of number q with the k of grade h have the
            counter first + len(ranked) * h + q.
        lines: the weights of all pairs of each counter, for the kind "pairwise", where 2l counts the pairs of line l in
            one direction, 2l + 1 those in the other, both by weight.
        value_unit: unit of the sums of contributions, which are gains times rank weights, or weights of pairs.
        perfect: the sum of contributions if no pair is lost.
        edges: the pairs of the kind "pairwise", see `pairs`.
        progress: notified of each box, and of each observation whose pairs are visited.
        scale, shift: the statistic is scale * (sum of contributions) / value_unit + shift.
        sides: (row of A, entry of b), both times one power of 2.
        scalable: whether the faces of the cube are the roots.
        counted: the columns that are not free.
        required: the columns whose weights are at least `least` in size.
        integer: B, where weights are whole numbers from -B to B, else 0.
        reach: largest size of a weight.
        most: number of their weights that may differ from 0.
    """

    def __init__(self, content: dict[str, Json]) -> None:
        X, self.C, self.margin = content["X"], Fraction(content["C"]), Fraction(content["margin"])
        require(bool(X and X[0]), "problem.X", "must have a row and a column")
        require(self.C >= 0, "problem.C", f"must be >= 0, got {content['C']}")
        require(self.margin > 0, "problem.margin", f"must be > 0, got {content['margin']}")
        n, d = self.n, self.d = len(X), len(X[0])
        free, most = content.get("free", []), content["max_nonzeros"]
        self.required = content.get("required", [])
        for name, columns in (("free", free), ("required", self.required)):
            for at, j in enumerate(columns):
                right = 0 <= j < d and j not in columns[:at] and (columns is free or j not in free)
                rule = f"must be a column from 0 to {d - 1}, named once, got {j!r:.40}"
                require(right, f"problem.{name}[{at}]", rule)
        self.integer = content.get("integer", 0)
        right = "integer" not in content or 1 <= self.integer <= MOST_POINTS
        require(right, "problem.integer", f"must be from 1 to {MOST_POINTS}, got {self.integer!r:.40}")
        self.reach, self.least = self.integer or 1, Fraction(1) if self.integer else REQUIRED
        self.counted = [j for j in range(d) if j not in free]
        self.most = len(self.counted) if most is None else most
        right = most is None or 1 <= most <= len(self.counted)
        require(right, "problem.max_nonzeros", f"must be from 1 to {len(self.counted)}, got {most!r:.40}")
        right = len(self.required) <= self.most
        require(right, "problem.required", f"must hold at most {self.most} columns, got {len(self.required)}")
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
        """Return the largest sum of contributions if each counter has at least this many lost pairs."""
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
        """Return the statistic if no pair is lost."""
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

    def check_weights(self, weights: list[float]) -> None:
        """Check that weights are in the box, whole numbers where they must be, few enough other than 0 and required."""
        for j, w in enumerate(weights):
            right = abs(w) <= self.reach and (not self.integer or w == int(w))
            whole = "a whole number " if self.integer else ""
            require(right, f"weights[{j}]", f"must be {whole}from -{self.reach} to {self.reach}, got {w!r}")
        for j in self.required:
            right, least = abs(Fraction(weights[j])) >= self.least, show(self.least)
            require(right, f"weights[{j}]", f"must be at least {least} in size, got {weights[j]!r}")
        nonzero = self.nonzero(weights)
        require(nonzero <= self.most, "weights", f"at most {self.most} may differ from 0, got {nonzero}")

    def prove(self, bound: Fraction, partition: list[str]) -> str:
        """Check that no feasible weights have an objective above the bound, and return by what that is proven."""
        return f"{check_partition(self, bound, partition)} boxes"

    def excess(self, weights: list[float]) -> Fraction:
        """Return the largest excess over a side constraint relative to the size of its terms, or 0."""
        w, unit = integers(weights)
        rows = [([a * v for a, v in zip(row, w, strict=True)], limit * unit) for row, limit in self.sides]
        return max([Fraction(0), *(excess(terms, limit) for terms, limit in rows)])


class Cards:
    """The problem of a file of the kind "card", checked, its numbers as integers.

    Attributes:
        n, d: rows, columns.
        columns: the rows with a 1 in each column, as bits of an integer; row i is bit i. None for other columns.
        numbers: the values of each column, times the unit.
        gains, levels: gain of each row, and (the rows with it, gain) for each gain > 0, ascending, times a unit.
        sums: a_n + ... + a_(n - p + 1) for p = 0, ..., n, times a unit.
        value_unit: unit of contributions.
        scale, shift: the statistic is scale * (sum of contributions) / value_unit + shift.
        progress: notified of each set of columns.
    """

    def __init__(self, content: dict[str, Json]) -> None:
        X, gains, a, ties = content["X"], content["gains"], content["a"], content["ties"]
        require(bool(X and X[0]), "problem.X", "must have a row and a column")
        one = content.get("unit", 1)
        require(one in UNITS, "problem.unit", f"must be a power of ten up to {UNITS[-1]}, got {one!r:.40}")
        table = [row.split(" ") if "unit" in content else list(row) for row in X]
        n, d = self.n, self.d = len(X), len(table[0])
        for i, row in enumerate(table):
            right = all(WHOLE.fullmatch(word) if "unit" in content else word in ("0", "1") for word in row)
            words = "whole numbers of at most 18 digits" if "unit" in content else "0 and 1"
            require(len(row) == d and right, f"problem.X[{i}]", f"must be {d} of {words}")
        self.numbers = [list(map(int, column)) for column in zip(*table, strict=True)]
        sized(gains, n, "problem.gains")
        for i, gain in enumerate(gains):
            require(gain >= 0, f"problem.gains[{i}]", f"must be >= 0, got {gain!r}")
        require(any(gains), "problem.gains", "must hold a number > 0")
        require(content["C"] >= 0, "problem.C", f"must be >= 0, got {content['C']}")
        require(ties in ("average", "lost"), "problem.ties", f"must be 'average' or 'lost', got {ties!r:.40}")
        self.C, self.lost = Fraction(content["C"]), ties == "lost"
        self.points, self.most = content["points"], content["max_nonzeros"]
        for name, value, largest in (("points", self.points, 100), ("max_nonzeros", self.most, 6)):
            require(1 <= value <= largest, f"problem.{name}", f"must be from 1 to {largest}, got {value}")
        self.signs, self.groups, self.needed = content["signs"], content["groups"], content["required"]
        for name, values, least, largest in (("signs", self.signs, -1, 1), ("groups", self.groups, -1, 2**31 - 1)):
            sized(values, d, f"problem.{name}")
            for j, v in enumerate(values):
                require(least <= v <= largest, f"problem.{name}[{j}]", f"must be from {least} to {largest}, got {v}")
        for at, j in enumerate(self.needed):
            right = 0 <= j < d and j not in self.needed[:at]
            require(right, f"problem.required[{at}]", f"must be a column from 0 to {d - 1}, named once, got {j!r:.40}")
        sized(a, n, "problem.a")
        try:
            name, named = parse_statistic(content["statistic"])
        except ValueError as error:
            words = f"is not known: {content['statistic']!r:.40}, {error}"
            raise CertificateError(f"problem.statistic: {words}") from None
        check_weights(content["statistic"], named, a, 0, n)
        (self.gains, unit), (whole, self.value_unit) = integers(gains), integers(a)
        self.value_unit *= unit << 64
        self.sums = [0, *itertools.accumulate(v << 64 for v in reversed(whole))]
        self.columns = [
            None if {*column} - {0, one} else sum(1 << i for i, v in enumerate(column) if v) for column in self.numbers
        ]
        rows = {gain: sum(1 << i for i in range(n) if self.gains[i] == gain) for gain in sorted({*self.gains} - {0})}
        self.levels = [(bits, gain) for gain, bits in rows.items()]
        self.scale, self.shift, self.progress = Fraction(1), Fraction(0), Progress()
        if name == "auc" and {*gains} == {0, 1}:
            m = int(sum(gains))
            self.scale, self.shift = Fraction(1, m * (n - m)), Fraction(-(m + 1), 2 * (n - m))
        sha256 = data_digest(content)
        require(content["sha256"] == sha256, "problem.sha256", f"the problem has {sha256}")

    def size(self) -> Fraction:
        """Return the statistic of a perfect order."""
        return self.objective(self.worst(sorted(self.gains, reverse=True), 0), 0)

    def objective(self, total: int | Fraction, nonzero: int) -> Fraction:
        """Return the objective of a sum of contributions and a number of columns."""
        return self.scale * Fraction(total) / self.value_unit + self.shift - self.C * nonzero

    def worst(self, gains: list[int], place: int) -> int:
        """Return the contribution of rows with these gains in this order from a place on."""
        return sum(gain * (self.sums[p + 1] - self.sums[p]) for p, gain in enumerate(gains, place))

    def value(self, weights: list[float]) -> Fraction:
        """Return the objective of the points, from the totals of all rows."""
        used = [(int(w), self.numbers[j]) for j, w in enumerate(weights) if w]
        totals = [sum(w * column[i] for w, column in used) for i in range(self.n)]
        return self.objective(self.of_totals(totals), len(used))

    def of_totals(self, totals: list[int]) -> Fraction:
        """Return the sum of contributions of rows with these totals."""
        rows = sorted(zip(totals, self.gains, strict=True), reverse=True)
        place, value = 0, Fraction(0)
        for _, group in itertools.groupby(rows, operator.itemgetter(0)):
            tied = sorted(gain for _, gain in group)
            end = place + len(tied)
            mean = Fraction(sum(tied) * (self.sums[end] - self.sums[place]), len(tied))
            value += self.worst(tied, place) if self.lost else mean
            place = end
        return value

    def excess(self, weights: list[float]) -> Fraction:
        """Return 0: there are no side constraints."""
        return Fraction(0)

    def check_weights(self, weights: list[float]) -> None:
        """Check that points are allowed."""
        for j, w in enumerate(weights):
            right = w == int(w) and abs(w) <= self.points and w * self.signs[j] >= 0
            require(right, f"weights[{j}]", f"are no points of a card with points {self.points}, got {w!r}")
        used = [j for j, w in enumerate(weights) if w]
        require(self.allowed(used), "weights", f"are not allowed: columns {', '.join(map(str, used)) or 'none'}")

    def allowed(self, columns: Collection[int]) -> bool:
        """Whether a card may have exactly these columns."""
        groups = [self.groups[j] for j in columns if self.groups[j] >= 0]
        return len(columns) <= self.most and len({*groups}) == len(groups) and {*self.needed} <= {*columns}

    def prove(self, bound: Fraction, partition: list[str]) -> str:
        """Check that no allowed points have an objective above the bound, and return by what that is proven."""
        sized(partition, 0, "proof.partition")
        self.progress.boxes = sum(math.comb(self.d, m) for m in range(self.most + 1))
        self.progress.unit = "set of columns"
        for m in range(min(self.most, self.d) + 1):
            sums = (bound + self.C * m - self.shift) / self.scale
            self.limit = math.floor(sums * self.value_unit)  # the largest sum of contributions that the bound allows
            self.orders = orders(m, self.points)
            self.extend(m, (), [(1 << self.n) - 1])
            for columns in itertools.combinations(range(self.d), m) if None in self.columns else ():
                if any(self.columns[j] is None for j in columns):
                    self.progress.tick(1)
                    if self.allowed(columns):
                        self.check_numbers(columns)
        return f"{self.progress.checked} sets of columns"

    def extend(self, m: int, columns: tuple[int, ...], parts: list[int]) -> None:
        """Check all sets of m columns that begin with some columns, by which the rows are split into parts."""
        if len(columns) == m:
            self.progress.tick(1)
            if self.allowed(columns):
                self.check_columns(columns, parts)
            return
        for j in range(columns[-1] + 1 if columns else 0, self.d):
            column = self.columns[j]
            if column is None:
                continue
            ones = [part & column for part in parts]
            self.extend(m, (*columns, j), [part ^ one for part, one in zip(parts, ones, strict=True)] + ones)

    def check_columns(self, columns: tuple[int, ...], parts: list[int]) -> None:
        """Check all cards of these columns; a part has the rows of a pattern, column columns[j] being its bit j."""
        shares, wide = list[Pair](), 2 * self.n.bit_length() + 1
        for pattern, part in enumerate(parts):
            if count := part.bit_count():  # different shares differ by 1 / n^2 at least
                gain = sum([(part & rows).bit_count() * gain for rows, gain in self.levels])
                shares.append(((gain << wide) // count, count, gain, 1 << pattern))
        shares.sort(reverse=True)
        if self.rest(shares, 0, 0) <= self.limit:
            return
        for mask in range(len(parts)):
            if all(self.signs[j] != (-1, 1)[mask >> at & 1] for at, j in enumerate(columns)):
                self.check_orders(self.orders, columns, [parts[p ^ mask] for p in range(len(parts))], mask, shares)

    def check_numbers(self, columns: tuple[int, ...]) -> None:
        """Check all points of these columns, one of which has other numbers than 0 and 1."""
        chosen = sorted(columns, key=lambda j: -len({*self.numbers[j]}))
        # for each number of columns that are fixed, the values of the others
        blocks = [list(zip(*(self.numbers[j] for j in chosen[at:]), strict=True)) for at in range(len(chosen))]
        self.fix(chosen, blocks, (), [0] * self.n)

    def fix(self, columns: list[int], blocks: list[Any], points: tuple[int, ...], totals: list[int]) -> None:
        """Check all points of columns that begin with some, which give the rows these totals."""
        at = len(points)
        if at == len(columns):
            if math.gcd(*points) == 1 and (value := self.of_totals(totals)) > self.limit:
                names, better = ", ".join(map(str, sorted(columns))), show(self.objective(value, at))
                raise CertificateError(f"proof.bound: points of the columns {names} have the value {better}")
            return
        column, sign = self.numbers[columns[at]], self.signs[columns[at]]
        for direction in (-1, 1):
            for size in range(1, self.points + 1) if direction != -sign else ():
                now = [total + direction * size * v for total, v in zip(totals, column, strict=True)]
                if at + 1 < len(columns) and self.of_blocks(blocks[at + 1], now) <= self.limit:
                    if at == 0:
                        break  # other sizes order the rows of a block alike
                    continue
                self.fix(columns, blocks, (*points, direction * size), now)

    def of_blocks(self, blocks: list[Pair], totals: list[int]) -> int:
        """Return a bound of the contributions of rows whose order within each block is that of their totals."""
        rows = sorted(zip(blocks, totals, self.gains, strict=True), reverse=True)
        pools, wide = list[Pair](), 2 * self.n.bit_length() + 1  # different means differ by 1 / n^2 at least
        for _, block in itertools.groupby(rows, operator.itemgetter(0)):
            own = list[tuple[int, int]]()  # gain and number of the rows of each pool, from the top
            for _, tied in itertools.groupby(block, operator.itemgetter(1)):
                gains = [gain for _, _, gain in tied]
                gain, count = sum(gains), len(gains)
                while own and own[-1][0] * count <= gain * own[-1][1]:
                    gain, count = gain + own[-1][0], count + own.pop()[1]
                own.append((gain, count))
            pools += [((gain << wide) // count, count, gain, 0) for gain, count in own]
        pools.sort(reverse=True)
        return self.rest(pools, 0, 0)

    def rest(self, shares: list[Pair], placed: int, place: int) -> int:
        """Return a bound of the contributions of the patterns that are not placed, from a place on."""
        total, sums = 0, self.sums
        for _, count, gain, pattern in shares:
            if not placed & pattern:
                total -= gain * (sums[place] - sums[place + count]) // count  # rounded up
                place += count
        return total

    def tied(self, rows: int, place: int) -> int:
        """Return the contribution of rows with equal totals from a place on, rounded up."""
        counts = [((rows & bits).bit_count(), gain) for bits, gain in self.levels]
        end = place + rows.bit_count()
        if not self.lost:
            total = sum(count * gain for count, gain in counts)
            return -(total * (self.sums[place] - self.sums[end]) // (end - place)) if total else 0
        value, place = 0, end - sum(count for count, _ in counts)
        for count, gain in counts:
            value += gain * (self.sums[place + count] - self.sums[place])
            place += count
        return value

    def check_orders(
        self,
        tree: Orders,
        columns: tuple[int, ...],
        parts: list[int],
        mask: int,
        shares: list[Pair],
        placed: int = 0,
        place: int = 0,
        value: int = 0,
    ) -> None:
        """Check all orders below a node of the tree, where some patterns are placed and have a value.

        The parts are those of the renamed patterns, shares and placed are about the patterns themselves.
        """
        for equal, below in tree.items():
            rows, now = 0, placed
            for pattern in equal:
                rows |= parts[pattern]
                now |= 1 << (pattern ^ mask)
            end, reached = place + rows.bit_count(), value + self.tied(rows, place)
            if reached + self.rest(shares, now, end) <= self.limit:
                continue
            if not below:
                names = ", ".join(map(str, columns)) or "none"
                better = show(self.objective(reached, len(columns)))
                raise CertificateError(f"proof.bound: a card of the columns {names} has the value {better}")
            self.check_orders(below, columns, parts, mask, shares, now, end, reached)


def orders(m: int, points: int) -> Orders:
    """Return the orders of all patterns of m columns by positive points: a tree of the sets of equal totals."""
    root: Orders = {}
    for weights in itertools.product(range(1, points + 1), repeat=m):
        totals: dict[int, list[int]] = {}
        for pattern in range(1 << m):
            total = sum(w for at, w in enumerate(weights) if pattern >> at & 1)
            totals.setdefault(total, []).append(pattern)
        node = root
        for total in sorted(totals, reverse=True):
            node = node.setdefault(tuple(totals[total]), {})
    return root


def problem_of(content: dict[str, Json]) -> Problem | Cards:
    """Return the problem of a file, checked."""
    return (Cards if content["kind"] == "card" else Problem)(content)


class Box:
    """A box of weights, in which `ONE` stands for 1.

    Its pairs are examined on request. The open ones are kept for the parts of the box if there is room; the pairs of a
    part are then searched among those kept last, or among all pairs.

    Attributes:
        low, high: ends of the intervals.
        apart: coordinates known not to be 0, although 0 may be an end of their interval.
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
        pairs, lost = source.open, source.lost.copy()
        ends = ((self.low, source.low), (self.high, source.high))
        moves = [(j, own[j] - old[j]) for j in range(self.problem.d) for own, old in ends if own[j] != old[j]]
        for at, (j, shift) in enumerate(moves, 1):
            column, before, pairs = self.problem.columns[j], pairs, []
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


def check_partition(problem: Problem, bound: Fraction, partition: list[str]) -> int:
    """Check that no feasible weights have an objective above the bound, and return the number of boxes."""
    # the largest sums of contributions that the bound allows where 0, 1, ..., d weights are not 0
    sums = [(bound + problem.C * k - problem.shift) / problem.scale for k in range(problem.d + 1)]
    limits = [math.floor(s * problem.value_unit) for s in sums]
    if problem.scalable and not problem.required and all(limit == 0 for _, limit in problem.sides):
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
        require(bool(boxes), here, "comes after the end, all boxes are closed")
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
        above = below = middle
        if problem.integer:
            middle = 0 if z else middle // ONE * ONE
            above, below = middle + ONE, middle - ONE if z else middle
            possible = low < 0 < high if z else low < high
        require(possible, here, f"cannot cut w_{j} of the box {box}")
        if problem.perfect > limits[0]:
            box.count(keep=True)
        ends = [(above, high), (0, 0), (low, below)] if z else [(above, high), (low, below)]
        boxes += [box.part(j, *end, apart=bool(z) and end != (0, 0)) for end in ends]
    require(not boxes, f"{place}, word {len(words)}", f"is the last, but {len(boxes)} boxes are not closed")


def check_closed(problem: Problem, limits: list[int], box: Box, place: str) -> None:
    """Check that no feasible weights of a box have an objective above the bound."""
    known = {j for j in problem.counted if box.low[j] > 0 or box.high[j] < 0} | box.apart | {*problem.required}
    nonzero = len(known.intersection(problem.counted))
    if nonzero > problem.most or problem.perfect <= limits[nonzero]:
        return
    if any(-problem.least * ONE < box.low[j] and box.high[j] < problem.least * ONE for j in problem.required):
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

    The claim is "optimal"; "bound" if a bound above the value is proven; or "value" if none is proven.
    `CertificateError` says what is wrong.
    """
    problem, weights, stated = problem_of(content["problem"]), content["weights"], content["value"]
    problem.progress = progress or problem.progress
    sized(weights, problem.d, "weights")
    problem.check_weights(weights)
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
        means = problem.prove(Fraction(bound), partition)
        claim = "optimal" if Fraction(bound) - value <= tolerance else "bound"
        words = f"no weights exceed {bound!r}, proven by {means}"
    require(content["claim"] == claim, "claim", f"the file shows {claim!r}, not {content['claim']!r:.40}")
    if over:
        words += f"; the weights exceed a side constraint by {show(over)} of its terms' size, which is tolerated"
    return claim, f"{claim}: the weights have the value {show(value)}; {words}; {statement(content['problem'])}"


def statement(problem: dict[str, Json]) -> str:
    """Return the problem in words: all that the value and the bound depend on, the data by their hash."""
    if problem["kind"] == "card":
        return card_statement(problem)
    words, lists, sides = [f"problem: {problem['kind']}"], "", problem["constraints"]
    if problem["kind"] == "pairwise":
        words.append(counted(len(problem["pairs"]), "pair"))
    else:
        words += ["statistic " + "".join(problem["statistic"].split()), f"rank {problem['rank']}"]
    words += [f"margin {problem['margin']!r}", f"C {problem['C']!r}"]
    if problem["max_nonzeros"] is not None:
        words.append(f"max_nonzeros {problem['max_nonzeros']}")
    for name in ("free", "required"):
        if columns := problem.get(name):
            words.append(f"{name} {'columns' if len(columns) > 1 else 'column'} {' and '.join(map(str, columns))}")
    if (integer := problem.get("integer")) is not None:
        words.append(f"weights whole numbers from -{integer} to {integer}")
    if sides:
        words.append(counted(len(sides["A"]), "side constraint"))
    if problem["kind"] == "graded":
        lists = " in " + counted(len(set(problem["qid"])), "list")
    n, d = counted(len(problem["X"]), "observation"), counted(len(problem["X"][0]), "feature")
    return f"{', '.join(words)}; data: {n}{lists}, {d}, sha256 {problem['sha256']}"


def card_statement(problem: dict[str, Json]) -> str:
    """Return the problem of the kind "card" in words."""
    words = [f"problem: card, statistic {''.join(problem['statistic'].split())}, ties {problem['ties']}"]
    words += [f"{field} {problem[field]!r}" for field in ("points", "max_nonzeros", "C")]
    limits = {"sign": map(bool, problem["signs"]), "grouped column": (v >= 0 for v in problem["groups"])}
    limits["required column"] = (True for _ in problem["required"])
    words += [counted(number, word) for word, each in limits.items() if (number := sum(each))]
    n, d = counted(len(problem["X"]), "observation"), counted(len(problem["X"][0]), "column")
    return f"{', '.join(words)}; data: {n}, {d}, sha256 {problem['sha256']}"


def counted(number: int, word: str) -> str:
    """Return a number and a noun."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def read(path: str, most: int) -> str:
    """Return the text of a file of at most `most` MiB."""
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
        error.__traceback__ = None  # frees what was read, for there may be no memory left to say so
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
