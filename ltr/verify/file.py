"""What a certificate file says: its text, fields and types, the names of statistics, and the hash of its data."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import sys
import time
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from typing import Any

Json = Any  # what json.loads returns
Pair = tuple[int, ...]
FORMAT, VERSION = "ltr certificate", 1
LABELS = {"gains": [float], "outcome": [float], "treatment": [int], "time": [float], "event": [int]}
OPTIONAL = ("a", *LABELS)  # of which those of one kind are given, see `labels_of`
STATISTIC = {"statistic": str, "a": [float], **LABELS}
DEMANDS = [{**STATISTIC, "at_least": float, "ties_lost": bool}]
PROBLEM = {"kind": str, "C": float, "sha256": str, "free": [int], "required": [int]}
BOXES = {**PROBLEM, "X": [[float]], "margin": float, "constraints": ({"A": [[float]], "b": [float]},)}
BOXES |= {"max_nonzeros": (int,), "integer": (int,)}
POINTS = {**PROBLEM, "max_nonzeros": int, "groups": [int], "directions": [int]}
POINTS |= {"least": [int], "largest": [int], "least_points": [int]}
POINTS |= {"rules": [{"columns": [int], "when": [int], "at_least": int, "at_most": int}]}
KINDS = {
    "rerank": {**BOXES, **STATISTIC, "qid": [int], "ties": str, "demands": DEMANDS},
    "pairwise": {**BOXES, "pairs": [[int]], "pair_weights": [float]},
    "card": {**POINTS, **STATISTIC, "X": [str], "unit": int, "points": int, "ties": str, "demands": DEMANDS},
    "risk": {**POINTS, "X": [[float]], "y": [int], "row_weights": [float], "intercept": ([int],)},
}
DATA = {"X", "qid", "pairs", "pair_weights", *LABELS}
# a type, [type of each entry], {name: type of the field}, or (type or null,)
FILE = {"format": str, "version": int, "claim": str, "value": (float,), "claimed_bound": (float,)}
FILE |= {"weights": ([float],), "problem": KINDS, "proof": ({"bound": (float,), "partition": [str]},)}
MAX_STEPS = 2000  # largest number of steps in millions: of some, Python takes a few million per second
ROUNDING = Fraction(1e-12)  # tolerance of the value and of "optimal", relative to the statistic's size
DEMAND_TOLERANCE = Fraction(1e-9)  # how far a statistic may be below what is asked of it, as a share of that
ULPS = 8  # how far, in units of 2**-52, an a_l may be from the one computed here


class CertificateError(ValueError):
    """A certificate is wrong; the message says what and where."""


class LimitError(Exception):
    """A certificate needs more memory or work than the program allows itself."""


class Progress:
    """Count of the boxes checked, written to stderr every ten seconds if `loud`.

    It also counts steps, such as a look at a pair in a box, and raises LimitError after `most` millions of them.
    """

    def __init__(self, loud: bool = False, most: int = MAX_STEPS) -> None:
        self.loud, self.boxes, self.checked, self.next, self.unit = loud, 0, 0, time.monotonic() + 10, "box"
        self.steps, self.most = 0, most

    def tick(self, boxes: int = 0, steps: int = 1) -> None:
        """Add checked boxes, and steps."""
        self.checked += boxes
        self.steps += steps
        if self.steps > self.most * 1_000_000:
            raise LimitError(f"it takes more than {self.most} million steps, which --max-steps can raise")
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


def each(values: Iterable[Json], right: Callable[[Json], bool], place: str, rule: str) -> None:
    """Check every entry of a list."""
    for at, value in enumerate(values):
        require(right(value), f"{place}[{at}]", f"must {rule}, got {value!r:.40}")


def entries(
    content: dict[str, Json], name: str, length: int, right: Callable[[Json], bool], rule: str, place: str = "problem"
) -> list[Json]:
    """Return a field that holds so many entries, each of them checked."""
    sized(content[name], length, f"{place}.{name}")
    each(content[name], right, f"{place}.{name}", rule)
    return list(content[name])


def columns_of(content: dict[str, Json], name: str, d: int, others: Iterable[int] = (), place: str = "problem") -> Json:
    """Return a field that names columns among d, each once, and none of some others."""
    seen, rule = set(others), f"be a column from 0 to {d - 1}, named once"
    for at, j in enumerate(content[name]):
        require(0 <= j < d and j not in seen, f"{place}.{name}[{at}]", f"must {rule}, got {j!r:.40}")
        seen.add(j)
    return content[name]


def parse(text: str) -> dict[str, Json]:
    """Return the content of a file, its fields and their types checked; raise ValueError if it is not JSON."""
    try:
        content = json.loads(text, object_pairs_hook=unique)
        require(isinstance(content, dict) and content.get("format") == FORMAT, "format", f"must be {FORMAT!r}")
        require(content.get("version") == VERSION, "version", f"must be {VERSION}, got {content.get('version')!r:.40}")
        content = typed(content, FILE, "")
        check_nulls(content)
        return content
    except CertificateError:
        raise
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    except ValueError:
        raise ValueError("it contains an integer with more digits than Python reads") from None
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def check_nulls(content: dict[str, Json]) -> None:
    """Check that a file has weights, their value and bounds, or none of these and a proof that no weights exist."""
    none, proof = content["claim"] == "infeasible", content["proof"]
    rule = f"must {'' if none else 'not '}be null where the claim is {content['claim']!r:.40}"
    for name in ("weights", "value", "claimed_bound"):
        require((content[name] is None) == none, name, rule)
    require(proof is not None or not none, "proof", "must not be null where the claim is 'infeasible'")
    require(proof is None or (proof["bound"] is None) == none, "proof.bound", rule)


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
        found = [typed(entry, kind[0], f"{place}[{at}]") for at, entry in enumerate(value)]
        for at, entry in enumerate(found if isinstance(kind[0], list) else []):
            sized(entry, len(found[0]), f"{place}[{at}]")
        return found
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
    "hits": ("", 0, 0, "must", lambda rank, n, x: 1),
    "precision": ("", 0, 0, "must", lambda rank, n, x: 1),
    "recall": ("", 0, 0, "must", lambda rank, n, x: 1),
    "mrr": ("", 0, 0, "may", lambda rank, n, x: 1 / (n - rank + 1)),
    "dcg": ("base", 2, 1, "may", lambda rank, n, x: math.log(x) / math.log(n - rank + 2)),
    "auuc": ("", 0, 0, "never", lambda rank, n, x: rank),
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


def check_statistic(text: str, a: list[float], lengths: list[int], place: str) -> str:
    """Check that `a` has the weights of a statistic for one list after the other, and return the statistic's name."""
    sized(a, sum(lengths), f"{place}.a")
    first, rule = 0, "is not known"
    try:
        name, weights = parse_statistic(text)
        for n in lengths:
            rule = f"is not known for {n} observations"
            for at, computed in enumerate(weights(n), first):
                near = abs(a[at] - computed) <= ULPS * 2.0**-52 * computed
                require(near, f"{place}.a[{at}]", f"must be {computed!r} for {text!r:.40}, got {a[at]!r}")
                least = a[at - 1] if at > first else 0.0
                require(a[at] >= least, f"{place}.a[{at}]", f"must not fall, got {a[at]!r}")
            first += n
    except CertificateError:
        raise
    except ValueError as error:
        raise CertificateError(f"{place}.statistic: {rule}: {text!r:.40}, {error}") from None
    return name


def labels_of(stated: dict[str, Json], place: str) -> set[str]:
    """Return the fields of the labels of a statistic, which must be those of one kind, and fit its other fields."""
    found = {*LABELS} & {*stated}
    kinds = {"gains"}, {"outcome", "treatment"}, {"time", "event"}
    require(found in kinds, place, f"must have labels of one kind, got {', '.join(sorted(found)) or 'none'}")
    fits = ("a" in stated) != (found == {"time", "event"})
    require(fits, f"{place}.a", "must be given for statistics of ranks, and for no others")
    name = "".join(stated["statistic"].split())
    own = {"auuc": {"outcome", "treatment"}, "c_index": {"time", "event"}}.get(name, {"gains"})
    rule = f"is no statistic of the labels {' and '.join(sorted(found))}: {name!r:.40}"
    require(own == found, f"{place}.statistic", rule)
    return found


def data_digest(problem: dict[str, Json]) -> str:
    """Return the SHA-256 of the data as ASCII lines, each ended by a line feed.

    One line per field, or row of a table, the fields by name, those of the demands behind those of the problem: the
    field's name and the numbers, floats as `float.hex` writes them, separated by single spaces. The fields are those of
    observations, labels, lists and pairs; for the kinds "card" and "risk" all fields of the problem.
    """
    digest = hashlib.sha256()
    for stated in (problem, *problem.get("demands", [])):
        for field in sorted({*stated} - {"sha256", "demands"}):
            if field in DATA or problem["kind"] in ("card", "risk"):
                value = stated[field]
                table = isinstance(value, list) and bool(value) and isinstance(value[0], list | str | dict)
                for row in value if table else [value]:
                    digest.update((" ".join([field, *texts(row)]) + "\n").encode("ascii"))
    return digest.hexdigest()


def texts(value: Json) -> list[str]:
    """Return a number or text as a word, a list as those of its entries, and an object as its names and words."""
    if isinstance(value, list):
        return [text for v in value for text in texts(v)]
    if isinstance(value, dict):
        return [text for name, v in sorted(value.items()) for text in (name, *texts(v))]
    return [value.hex() if isinstance(value, float) else str(value)]


def integers(values: list[float] | list[Fraction]) -> tuple[list[int], int]:
    """Return integers and a unit, values = integers / unit: denominators are powers of 2, and the largest is used."""
    unit = max((v.as_integer_ratio()[1] for v in values), default=1)
    return [p * (unit // q) for p, q in (v.as_integer_ratio() for v in values)], unit


def size_and_price(content: dict[str, Json]) -> tuple[int, Fraction]:
    """Return the number of observations and the price of a weight, checked."""
    X, C = content["X"], content["C"]
    require(bool(X and X[0]), "problem.X", "must have a row and a column")
    require(C >= 0, "problem.C", f"must be >= 0, got {C}")
    return len(X), Fraction(C)


class Stated:
    """What a file states of a statistic of its observations, of whatever kind.

    Attributes:
        n, C: number of observations, and the price of each weight that is not 0.
        place: where the file states it.
        progress: notified of each box or set of columns, and of each observation whose pairs are visited.
        value_unit: unit of the sums of contributions, which are gains times rank weights, or weights of pairs.
        scale, shift: the statistic is scale * (sum of contributions) / value_unit + shift.
        asked, least, limit: of a demand, the value asked for, that from which it is met, and the largest sum of
            contributions below that; asked is None for the statistic to be maximised.
    """

    asked: float | None = None
    least, limit = Fraction(0), 0

    def __init__(self, n: int, C: Fraction, progress: Progress, place: str = "problem") -> None:
        self.n, self.C, self.place, self.progress = n, C, place, progress
        self.scale, self.shift, self.value_unit = Fraction(1), Fraction(0), 1

    def gains(self, content: dict[str, Json]) -> list[float] | list[Fraction]:
        """Return the gains, checked."""
        if "outcome" in labels_of(content, self.place):
            return self.of_treatments(content)
        gains = entries(content, "gains", self.n, lambda gain: gain >= 0, "be >= 0", self.place)
        require(any(gains), f"{self.place}.gains", "must hold a number > 0")
        return gains

    def of_treatments(self, content: dict[str, Json]) -> list[Fraction]:
        """Return gains whose sum of gain times rank makes the area under the uplift curve, by scale and shift.

        The area is ``1/n sum z_i (rank_i - 1/2)`` with ``z_i = y_i / n_1`` for the n_1 treated and ``-y_i / n_0`` for
        the n_0 others; the gain is ``n_1 n_0 z_i``, from which the smallest is subtracted.
        """
        n = self.n
        outcome = entries(content, "outcome", n, lambda _: True, "be a number", self.place)
        treatment = entries(content, "treatment", n, lambda of: of in (0, 1), "be 0 or 1", self.place)
        treated, others = sum(treatment), n - sum(treatment)
        require(treated > 0 and others > 0, f"{self.place}.treatment", "must hold treated observations and others")
        found = [Fraction(y) * (others if of else -treated) for y, of in zip(outcome, treatment, strict=True)]
        least = min(found)
        require(any(gain > least for gain in found), f"{self.place}.outcome", "must differ")
        self.scale = Fraction(1, n * treated * others)
        self.shift = (least * n * (n + 1) - sum(found)) * self.scale / 2
        return [gain - least for gain in found]

    def state_share(self, name: str, text: str, gains: Collection[float | Fraction], lists: int = 1) -> None:
        """State the statistic of one list with gains 0 and 1, by its name and in full, as the share that it is."""
        if lists > 1 or {*gains} != {0, 1}:
            known = name not in ("precision", "recall")
            require(known, f"{self.place}.statistic", "must be hits@N here, gains hold what it is a share of")
            return
        positives = int(sum(gains))
        if name == "auc":
            pairs = positives * (self.n - positives)
            self.scale, self.shift = Fraction(1, pairs), Fraction(-positives * (positives + 1), 2 * pairs)
        elif name in ("precision", "recall"):
            self.scale = Fraction(1, positives if name == "recall" else int(text.partition("@")[2]))

    def ask(self, at_least: float) -> None:
        """State the demand that the statistic reaches a value, up to rounding."""
        self.asked, asked = at_least, Fraction(at_least)
        self.least = asked - DEMAND_TOLERANCE * abs(asked)
        self.limit = math.ceil(self.contributions(self.least, 0)) - 1

    def objective(self, total: int | Fraction, nonzero: int) -> Fraction:
        """Return the statistic of a sum of contributions, minus the price of a number of non-zero weights."""
        return self.scale * Fraction(total) / self.value_unit + self.shift - self.C * nonzero

    def contributions(self, value: Fraction, nonzero: int) -> Fraction:
        """Return the sum of contributions whose objective is a given value."""
        return (value + self.C * nonzero - self.shift) / self.scale * self.value_unit

    def allows(self, bound: Fraction, nonzero: int) -> int:
        """Return the largest sum of contributions whose objective is not above a bound."""
        return math.floor(self.contributions(bound, nonzero))


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
