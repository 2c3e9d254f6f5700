"""Certificates: weights and a proof that no others are better, as a file that a small program checks.

`certify` records the problem, the weights of a solution, and a partition of weight space into boxes in each of which
the objective stays below a bound or a demand is not met. `ltr.verify` defines and checks such files, and shows why
partitions prove a bound. `Recorder` reads a problem as the verifier does, in integers, because the verifier must be
able to close the same boxes. Boxes are examined in ``ltr/native/recorder.h``, which shows that exact arithmetic closes
whatever is closed there.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ltr import verify
from ltr.checks import as_float, check_whole
from ltr.exact import tuning
from ltr.exact.cards import CardProblem
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.problem import IntArray, Problem
from ltr.exact.reranking import RerankProblem
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Solution, Status
from ltr.files import write_atomic
from ltr.native import Partition, PartitionProblem
from ltr.statistics import RankStatistic
from ltr.verify.boxes import ONE, root_cuts
from ltr.verify.file import FORMAT, ROUNDING, VERSION, parse_statistic

Content = dict[str, Any]
Row = tuple[int, ...]

_ROUNDING = 1e-13  # relative room above the value, for sums of rank weights that differ by rounding only
_CARD_ROUNDING = Fraction(5e-13)  # the same for cards, which count as equal if they differ by less
_NEAREST = Fraction(2.0**-52)  # rounding of a bound to the nearest float, as a share of the size
_BITS = 62  # bits of the integers that represent sums of rank weights
_TINY = float(np.finfo(np.float64).smallest_subnormal)
_DONE, _PAUSED = 0, 1  # why `Partition.advance` returns


class Certificate:
    """The content of a certificate file: a problem, weights, their value, and a proven or claimed bound.

    Where it proves that no weights are feasible, it has none, and the value and the bounds are -inf. `content` has the
    fields that `ltr.verify` defines.

    Examples:
        >>> from ltr.exact.solve import solve
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1])
        >>> certificate = certify(problem, solve(problem, "local_search"))
        >>> certificate.verify()
        'optimal: the weights have the value 1.63092975357; no weights exceed 1.630929753571..., proven by 2 boxes; ...'
    """

    def __init__(self, content: Content) -> None:
        self.content = content

    @property
    def claim(self) -> str:
        """What the file shows: ``"optimal"``, ``"bound"`` (a larger one), ``"value"`` (no proof), ``"infeasible"``."""
        return str(self.content["claim"])

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """The weights, (d,): of a card points divided by their largest number, of a risk score points and intercept."""
        if self.content["weights"] is None:
            return None
        return np.array(self.content["weights"], dtype=np.float64) / self.content["problem"].get("points", 1)

    @property
    def value(self) -> float:
        """The objective at the weights."""
        return _number(self.content["value"])

    @property
    def claimed_bound(self) -> float:
        """The bound stated by the solver."""
        return _number(self.content["claimed_bound"])

    @property
    def partition(self) -> tuple[str, ...] | None:
        """The partition that proves the bound, or that no weights are feasible, one text per root; None without."""
        proof = self.content["proof"]
        return None if proof is None else tuple(proof["partition"])

    @property
    def bound(self) -> float:
        """The bound that the partition proves, or the claimed one without a proof."""
        proof = self.content["proof"]
        return self.claimed_bound if proof is None else _number(proof["bound"])

    @property
    def boxes(self) -> int:
        """Number of boxes in the partition, 0 without a proof and for a card."""
        return sum(len(text.split(" ")) for text in self.partition or ())

    @property
    def sha256(self) -> str:
        """The hash of the data, see `ltr.verify.data_digest`."""
        return str(self.content["problem"]["sha256"])

    def verify(self) -> str:
        """Check everything in exact arithmetic, as ``ltr verify`` does, and return the verdict in words.

        Raises `CertificateError`, which says what is wrong and where.
        """
        return verify.check(self.content)[1]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically: whole or not at all."""
        write_atomic(Path(path), f"{_text(self.content)}\n".encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read a file and check its fields and data, but neither its value nor its proof (see `verify`).

        Raises `CertificateError`, which says what is wrong and where.
        """
        try:
            content = verify.parse(Path(path).read_text(encoding="utf-8"))
            verify.problem_of(content)
        except ValueError as error:
            why = "" if isinstance(error, verify.CertificateError) else "cannot be read: "
            raise verify.CertificateError(f"{path}: {why}{error}") from None
        return cls(content)


def certify(
    problem: Problem,
    solution: Solution,
    *,
    max_boxes: int = 50_000,
    max_checks: int = 100_000_000,
    time_limit: float = 30.0,
    should_stop: Callable[[], bool] | None = None,
) -> Certificate:
    """Return a certificate of a solution's weights, with a proof of the lowest bound that can be proven within limits.

    The first bound tried is the value itself, up to rounding; where that takes too many boxes, others between the value
    and the trivial bound. Where these fail too, or the problem has more than four million pairs, the certificate has no
    proof: it shows the value and quotes the solver's bound as a claim. So does that of a risk score. That of a card has
    no boxes: the checker searches all sets of columns itself. An infeasible solution gets a certificate that it is.

    Args:
        problem, solution: a problem of any kind, and a solution of it from any method.
        max_boxes: largest number of boxes in a partition.
        max_checks: largest number of checks of a pair in a box for the verifier, which makes a few million a second.
        time_limit: seconds for finding the partition.
        should_stop: called several times per second; True ends the search for a better partition.

    Raises:
        TypeError: the problem is of another type.
        ValueError: a limit out of range; a solution of another problem, or without feasible weights where that was not
            proven within the limits; a registered statistic with lists of several lengths.
    """
    for name, number in (("max_boxes", max_boxes), ("max_checks", max_checks)):
        check_whole(name, number, 0)
    if not as_float(time_limit) > 0:
        raise ValueError(f"time_limit must be > 0, got {time_limit!r}")
    described = problem.content()
    lists = [len(members) for members in problem.lists] if isinstance(problem, RerankProblem) else [problem.n]
    for stated in (described, *described.get("demands", [])):
        if "a" in stated:
            stated["statistic"] = _known_name(stated["statistic"], lists)
    described["sha256"] = verify.data_digest(described)
    if isinstance(problem, CardProblem):
        return _certify_card(problem, solution, described)
    if isinstance(problem, RiskProblem):
        return _certify_risk(problem, solution, described)
    deadline = time.monotonic() + time_limit

    def over() -> bool:
        return time.monotonic() > deadline or (should_stop is not None and bool(should_stop()))

    infeasible = solution.status is Status.INFEASIBLE
    exact = verify.Problem(described, infeasible=infeasible)
    # boxes without feasible weights are closed by demands alone
    pairs = sum(one.problem.pair_count for one in problem.demanded) if infeasible else problem.pair_count
    recorder = Recorder(problem, exact) if pairs <= tuning.CERTIFICATE_PAIRS else None

    def record(bound: float | None) -> list[str] | None:
        return None if recorder is None else recorder.record(bound, max_boxes, max_checks, over)

    if infeasible:
        if (partition := record(None)) is None:
            raise ValueError(
                "solution says that no weights are feasible, which was not proven within max_boxes, max_checks and "
                "time_limit: raise them"
            )
        return _infeasible(described, partition)
    weights = problem.in_box(solution.weights)
    reached = _Reached.of(problem, exact, weights, weights.tolist(), solution)
    best = max(reached.attained, Fraction(reached.value))
    if exact.admits_zero():
        best = max(best, exact.value([0.0] * exact.d))
    least = _up(best + Fraction(_ROUNDING) * reached.size)  # no bound below it holds
    return reached.certificate(described, _lowest(least, reached.claimed, problem.trivial_bound, record, over))


def _certify_card(problem: CardProblem, solution: Solution, described: Content) -> Certificate:
    """Return the certificate of a card. The bound is that of the solver: the checker proves it on its own."""
    yes_no = int(np.count_nonzero(~problem.numeric))
    all_sets, simple = (sum(math.comb(d, m) for m in range(problem.max_nonzeros + 1)) for d in (problem.d, yes_no))
    few = all_sets <= verify.cards.MOST_SETS and (all_sets - simple) * problem.n <= verify.cards.MOST_ROWS
    if solution.status is Status.INFEASIBLE and not problem.feasible(np.zeros(problem.d)):
        if not few:
            rule = f"{all_sets} sets of columns are too many to check"
            raise ValueError(f"solution says that no card is feasible, which {rule}")
        return _infeasible(described, [])
    written = [float(v) for v in problem.points_of(solution.weights)]
    reached = _Reached.of(problem, verify.Cards(described), solution.weights, written, solution)
    of_solver = (
        Fraction(float(solution.bound)) + _NEAREST * reached.size
    )  # a card may attain it: it is the nearest float
    bound = _up(max(max(reached.attained, Fraction(reached.value)) + _CARD_ROUNDING * reached.size, of_solver))
    return reached.certificate(described, {"bound": bound, "partition": []} if few else None)


def _certify_risk(problem: RiskProblem, solution: Solution, described: Content) -> Certificate:
    """Return the certificate of a risk score, which states the bound of the solver as a claim."""
    if solution.status is Status.INFEASIBLE and solution.value == -math.inf:
        raise ValueError("solution says that no risk score is feasible, which no certificate can show")
    points = problem.points_of(solution.weights)
    written = [float(v) for v in (*points, problem.intercept(points))]
    reached = _Reached.of(problem, verify.Risk(described), points.astype(np.float64), written, solution)
    return reached.certificate(described, None)


class _Reached(NamedTuple):
    """What weights reach."""

    written: list[float]  # the weights as the file has them
    value: float  # as the problem computes it
    attained: Fraction  # the exact value
    size: Fraction  # that of the statistic, to which tolerances are relative
    claimed: float  # the solver's bound

    @classmethod
    def of(
        cls,
        problem: Problem,
        exact: verify.Problem | verify.Cards | verify.Risk,
        weights: NDArray[np.float64],
        written: list[float],
        solution: Solution,
    ) -> _Reached:
        """Evaluate weights; raise ValueError if they are not feasible, or have another value than the solution."""
        feasible = math.isfinite(solution.value) and problem.feasible(weights)
        if not feasible or (isinstance(exact, verify.Problem) and exact.unmet(written)):
            raise ValueError("solution must have feasible weights")
        value, attained = problem.evaluate(weights), exact.value(written)
        size = max(abs(exact.size()), abs(attained))
        if abs(solution.value - value) > 1e-9 * size:
            raise ValueError(f"solution must be of this problem, got value {solution.value!r} where it is {value!r}")
        return cls(written, value, attained, size, max(float(solution.bound), value))

    def certificate(self, described: Content, proof: Content | None) -> Certificate:
        """Return the certificate with the claim that a proof shows."""
        claim = "value"
        if proof is not None:
            near = Fraction(proof["bound"]) - self.attained <= ROUNDING * self.size
            claim = "optimal" if near else "bound"
        return _certificate(described, claim, self.value, self.claimed, self.written, proof)


def _infeasible(described: Content, partition: list[str]) -> Certificate:
    return _certificate(described, "infeasible", None, None, None, {"bound": None, "partition": partition})


def _certificate(
    described: Content,
    claim: str,
    value: float | None,
    claimed: float | None,
    written: list[float] | None,
    proof: Content | None,
) -> Certificate:
    stated = {"claim": claim, "value": value, "claimed_bound": claimed, "weights": written}
    return Certificate({"format": FORMAT, "version": VERSION, **stated, "problem": described, "proof": proof})


def _known_name(name: str, lengths: list[int]) -> str:
    """Return the name of a statistic, or, if the checker does not know it, its weights for lists of one length."""
    try:
        parse_statistic(name)
    except ValueError:
        if len(set(lengths)) > 1:
            rule = "a certificate has the weights of a statistic of your own, so all lists must have the same length"
            raise ValueError(f"{rule}, got lists of {min(lengths)} to {max(lengths)} for {name}") from None
        return str(RankStatistic.from_weights(RankStatistic.parse(name).weights(lengths[0])))
    return name


def _number(number: float | None) -> float:
    """Return a number of a file, or -inf where it has none."""
    return -math.inf if number is None else float(number)


def _lowest(
    least: float,
    claimed: float,
    trivial: float,
    record: Callable[[float], list[str] | None],
    over: Callable[[], bool],
) -> Content | None:
    """Return the proof of the lowest bound that can be recorded, by bisection: higher bounds are easier to prove.

    The bounds are the least one, the claimed one, and some that halve the way from the least to the trivial one.
    """
    shares = [2.0**-k for k in range(tuning.CERTIFICATE_HALVINGS, 0, -1)] + [1 - 2.0**-k for k in range(2, 5)]
    between = {claimed, *(least + share * (trivial - least) for share in shares)}
    bounds = [least, *sorted(bound for bound in between if least < bound < trivial)]
    best = None
    failed, holds, at = -1, len(bounds), 0
    while holds - failed > 1 and not over():
        if (partition := record(bounds[at])) is None:
            failed = at
        else:
            holds, best = at, {"bound": bounds[at], "partition": partition}
        at = (failed + holds) // 2
    return best


class Recorder:
    """Records partitions of one problem, given as it is and as the verifier reads it."""

    def __init__(self, problem: Problem, exact: verify.Problem) -> None:
        self._problem, self._exact = problem, exact
        sides, objectives = problem.sides, exact.counted_objectives
        numbers = itertools.chain.from_iterable(pair[:4] for pair in exact.pairs())
        above, below, steps, counter = np.fromiter(numbers, dtype=np.int64).reshape(-1, 4).T
        # of a total of each objective, besides its value_unit
        self._units = [Fraction(2) ** (_BITS - 1 - one.perfect.bit_length()) for one in objectives]
        weight, contribution = np.ones_like(counter), list[int]()
        # rows of `Objective`, `List` and `Layer` in ``recorder.h``
        rows, lists, layers = list[Row](), list[Row](), list[Row]()
        for one, unit in zip(objectives, self._units, strict=True):
            rows.append((len(lists), len(lists) + len(one.lists), one.first, one.counters))
            for first, _, ranked, own, a in one.lists:
                lists.append((first, len(ranked), len(own), len(layers), len(a)))
                for count, step in own:
                    layers.append((count, len(contribution)))
                    contribution += [math.ceil(step * v * unit) for v in a]
            if one.lines:  # there are no other objectives
                weight = np.array([math.ceil(pair[4] * unit) for pair in one.edges], dtype=np.int64)
                total = np.zeros(one.counters, dtype=np.int64)
                np.add.at(total, counter, weight)
                contribution = total.tolist()
        needs = [min(s * exact.margin, Fraction(sys.float_info.max)) for s in range(1 + steps.max(initial=0))]
        required = np.array([-_up(-need) for need in needs])
        size = np.abs(problem.X).sum(axis=1)
        priced = any(one.C for one in objectives)
        self._above, self._below = above, below
        line, ascends = self._lines()
        self._compiled = PartitionProblem(
            columns=problem.X.T,
            above=above.astype(np.int32),
            below=below.astype(np.int32),
            counter=counter.astype(np.int32),
            weight=weight,
            required=required[steps],  # w·δ from which each pair is won, rounded down
            size=(size[above] + size[below]) * problem.reach,
            line=line,
            ascends=ascends,
            tiny=_TINY * 128 * problem.d,  # room for underflow
            counters=exact.counters,
            objectives=np.array(rows, dtype=np.int64).reshape(-1, 4),
            lists=np.array(lists, dtype=np.int64).reshape(-1, 5),
            layers=np.array(layers, dtype=np.int64).reshape(-1, 2),
            contribution=np.array(contribution, dtype=np.int64),
            A=sides.A,
            b=sides.b,
            loose=2 * SIDE_TOLERANCE,
            zeros=problem.counted & (priced or exact.most < len(exact.counted)),
            required_columns=np.isin(np.arange(problem.d), problem.required).astype(np.uint8),
            least=problem.least_required,
            most=exact.most,
            whole=problem.integer is not None,
        )

    def record(
        self, bound: float | None, max_boxes: int, max_checks: int, over: Callable[[], bool]
    ) -> list[str] | None:
        """Return the texts of a partition that proves a bound, one per root; None if the limits do not suffice.

        Without a bound it proves that no weights are feasible. `over`, called several times a second, ends it too.
        """
        limits, d, exact = self._limits(bound), self._problem.d, self._exact
        if exact.admits_zero() and (bound is None or exact.value([0.0] * d) > bound):
            return None  # w = 0 may be in no root
        names = [*map(str, range(d)), *(f"{j}z" for j in range(d)), "."]  # -1 is the last
        texts: list[str] = []
        for _, intervals in root_cuts(exact):
            low, high = np.full(d, -self._problem.reach), np.full(d, self._problem.reach)
            for j, *ends in intervals:
                low[j], high[j] = (end / ONE for end in ends)
            partition = Partition(self._compiled, low, high, limits, max_boxes, max_checks)
            reason = _PAUSED
            while reason == _PAUSED:
                if over():
                    return None
                reason = partition.advance(tuning.CERTIFICATE_WORK)
            if reason != _DONE:
                return None
            words = partition.words
            max_boxes, max_checks = max_boxes - len(words), partition.checks
            cuts = (names[k] if k < 2 * d else f"{self._above[k - 2 * d]}:{self._below[k - 2 * d]}" for k in words)
            texts.append(" ".join(cuts))
        return texts

    def _lines(self) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """Return a number for the two observations of each pair of which others ask for the opposite order, else -1.

        Observations with equal features are the same here. The second array says which order the pair asks for. Pairs
        with weights are left alone: of those of opposite directions only one is counted.
        """
        same = np.unique(self._problem.X, axis=0, return_inverse=True)[1].reshape(-1)
        one, other = same[self._above], same[self._below]
        ascends = (one < other).astype(np.uint8)
        keys, line = np.unique(np.minimum(one, other) * len(same) + np.maximum(one, other), return_inverse=True)
        both = np.bincount(line, ascends, len(keys)) % np.maximum(np.bincount(line, minlength=len(keys)), 1) != 0
        numbers = np.where(both, np.cumsum(both) - 1, -1)[line.reshape(-1)]
        if any(one.lines for one in self._exact.counted_objectives):
            numbers[:] = -1
        return numbers.astype(np.int32), ascends

    def _limits(self, bound: float | None) -> IntArray:
        """Return the largest total that closes a box where 0, 1, ..., d weights are not 0, (objectives, d + 1)."""
        exact, d = None if bound is None else Fraction(bound), self._problem.d
        limits = [
            [max(-1, min(math.floor(total * unit), 2**_BITS)) for total in one.limits(exact, d)]
            for one, unit in zip(self._exact.counted_objectives, self._units, strict=True)
        ]
        return np.array(limits, dtype=np.int64).reshape(-1, d + 1)


def _up(value: Fraction) -> float:
    """Return a float64 not below a number: the smallest one, or the next."""
    rounded = float(value)
    return rounded if rounded >= value else math.nextafter(rounded, math.inf)


def _text(value: Any, indent: str = "") -> str:  # noqa: ANN401 (any JSON)
    """Return JSON with one field per line, and one entry per line in lists of lists and of texts."""
    deeper = indent + " "
    if isinstance(value, dict):
        lines = [f"{deeper}{json.dumps(name)}: {_text(entry, deeper)}" for name, entry in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(value, list) and value and isinstance(value[0], list | str):
        return "[\n" + ",\n".join(f"{deeper}{json.dumps(entry, allow_nan=False)}" for entry in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)
