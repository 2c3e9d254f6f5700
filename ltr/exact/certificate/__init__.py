"""Certificates: weights and a proof that no others are better, as a file that a small program checks.

`certify` records the problem, the weights of a solution, and a partition of weight space into boxes in each of which
the objective stays below a bound or a demand is not met. `ltr.verify` defines the meaning of such a file and checks it
in exact arithmetic; it shares no code with the solvers and needs nothing but Python.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr import verify
from ltr.checks import as_float, is_whole
from ltr.exact import tuning
from ltr.exact.cards import CardProblem
from ltr.exact.certificate.recorder import Recorder, pair_count
from ltr.exact.problem import Problem
from ltr.exact.reranking import RerankProblem
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Solution, Status
from ltr.files import write_atomic
from ltr.statistics import RankStatistic

Content = dict[str, Any]

_ROUNDING = 1e-13  # relative room above the value, for sums of rank weights that differ by rounding only
_CARD_ROUNDING = Fraction(5e-13)  # the same for cards, which count as equal if they differ by less
_NEAREST = Fraction(2.0**-52)  # rounding of a bound to the nearest float, as a share of the size


class Certificate:
    """The content of a certificate file: a problem, weights, their value, and a proven or claimed bound.

    Where it proves that no weights are feasible, it has none, and the value and the bounds are -inf. `content` has the
    fields that `ltr.verify` defines.

    Examples:
        >>> from ltr.exact.solve import solve
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1])
        >>> certificate = certify(problem, solve(problem, "local_search"))
        >>> certificate.claim, certificate.partition
        ('optimal', ('.', '.'))
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
        """The weights, (d,); those of a card are its points divided by the largest number of points.

        Those of a risk score are its points and, behind them, its intercept.
        """
        if self.content["weights"] is None:
            return None
        most = self.content["problem"]["points"] if self.content["problem"]["kind"] == "card" else 1
        return np.array(self.content["weights"], dtype=np.float64) / most

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

        Raises:
            CertificateError: the certificate is wrong; the message says what and where.
        """
        return verify.check(self.content)[1]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically: whole or not at all."""
        write_atomic(Path(path), f"{_text(self.content)}\n".encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read a file and check its fields and data, but neither its value nor its proof (see `verify`).

        Raises:
            OSError: the file cannot be opened.
            CertificateError: the file is not a certificate; the message says where.
        """
        try:
            content = verify.parse(Path(path).read_text(encoding="utf-8"))
            verify.problem_of(content)
        except verify.CertificateError as error:
            raise verify.CertificateError(f"{path}: {error}") from None
        except ValueError as error:
            raise verify.CertificateError(f"{path}: cannot be read: {error}") from None
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
        problem: a `RerankProblem`, `PairwiseProblem`, `CardProblem` or `RiskProblem`.
        solution: a solution of this problem, from any method.
        max_boxes: largest number of boxes in a partition.
        max_checks: largest number of checks of a pair in a box for the verifier, which makes a few million a second.
        time_limit: seconds for finding the partition.
        should_stop: called several times per second; True ends the search for a better partition.

    Raises:
        TypeError: the problem is of another type.
        ValueError: a limit out of range; a solution of another problem, or without feasible weights where that was not
            proven within the limits; a registered statistic with lists of several lengths.

    Examples:
        >>> from ltr.exact.solve import solve
        >>> problem = RerankProblem([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.5, 3.0]], [1, 0, 1, 0], C=0.01)
        >>> certificate = certify(problem, solve(problem, "local_search"))
        >>> certificate.claim, certificate.value == problem.evaluate(certificate.weights)
        ('optimal', True)
    """
    for name, number in (("max_boxes", max_boxes), ("max_checks", max_checks)):
        if not is_whole(number) or number < 0:
            raise ValueError(f"{name} must be an integer >= 0, got {number!r}")
    if not as_float(time_limit) > 0:
        raise ValueError(f"time_limit must be > 0, got {time_limit!r}")
    content = problem.content()
    lists = [len(members) for members in problem.lists] if isinstance(problem, RerankProblem) else [problem.n]
    for stated in (content, *content.get("demands", [])):
        if "a" in stated:
            stated["statistic"] = _known_name(stated["statistic"], lists)
    described = {**content, "sha256": verify.data_digest(content)}
    if isinstance(problem, CardProblem):
        return _certify_card(problem, solution, described)
    if isinstance(problem, RiskProblem):
        return _certify_risk(problem, solution, described)
    deadline = time.monotonic() + time_limit

    def record(recorder: Recorder, bound: float | None) -> list[str] | None:
        return recorder.record(bound, max_boxes, max_checks, over)

    def over() -> bool:
        return time.monotonic() > deadline or (should_stop is not None and bool(should_stop()))

    if solution.status is Status.INFEASIBLE:
        exact = verify.Problem(described, infeasible=True)
        partition = record(Recorder(problem, exact), None) if pair_count(exact) <= tuning.CERTIFICATE_PAIRS else None
        if partition is None:
            raise ValueError(
                "solution says that no weights are feasible, which was not proven within max_boxes, max_checks and "
                "time_limit: raise them"
            )
        return _certificate(described, "infeasible", proof={"bound": None, "partition": partition})
    exact = verify.Problem(described)
    weights = problem.in_box(solution.weights)
    written = weights.tolist()
    if exact.unmet(written):
        raise ValueError("solution must have feasible weights")
    value, attained = _values(problem, exact, weights, written, solution)
    size = max(abs(exact.size()), abs(attained))
    best = max(attained, Fraction(value), exact.value([0.0] * exact.d) if exact.admits_zero() else attained)
    least = _up(best + Fraction(_ROUNDING) * size)  # no bound below it holds
    claimed = max(float(solution.bound), value)
    proof, claim = None, "value"
    if pair_count(exact) <= tuning.CERTIFICATE_PAIRS:
        recorder = Recorder(problem, exact)
        bounds = _bounds(least, claimed, problem.trivial_bound)
        proof = _lowest(bounds, lambda bound: record(recorder, bound), over)
    if proof is not None:
        claim = "optimal" if Fraction(proof["bound"]) - attained <= verify.ROUNDING * size else "bound"
    return _certificate(described, claim, value, claimed, written, proof)


def _certify_card(problem: CardProblem, solution: Solution, described: Content) -> Certificate:
    """Return the certificate of a card. The bound is that of the solver: the checker proves it on its own."""
    yes_no = int(np.count_nonzero(~problem.numeric))
    all_sets, simple = (sum(math.comb(d, m) for m in range(problem.max_nonzeros + 1)) for d in (problem.d, yes_no))
    few = all_sets <= verify.cards.MOST_SETS and (all_sets - simple) * problem.n <= verify.cards.MOST_ROWS
    if solution.status is Status.INFEASIBLE and not problem.feasible(np.zeros(problem.d)):
        if not few:
            raise ValueError(
                f"solution says that no card is feasible, which {all_sets} sets of columns are too many to check"
            )
        return _certificate(described, "infeasible", proof={"bound": None, "partition": []})
    points = problem.points_of(solution.weights)
    weights = points / problem.points
    exact = verify.Cards(described)
    value, attained = _values(problem, exact, weights, points.tolist(), solution)
    size = max(abs(exact.size()), abs(attained))
    of_solver = Fraction(float(solution.bound)) + _NEAREST * size  # a card may attain it, and it is the nearest float
    bound = _up(max(max(attained, Fraction(value)) + _CARD_ROUNDING * size, of_solver))
    claim, proof = "value", None
    if few:
        claim = "optimal" if Fraction(bound) - attained <= verify.ROUNDING * size else "bound"
        proof = {"bound": bound, "partition": []}
    claimed = max(float(solution.bound), value)
    return _certificate(described, claim, value, claimed, [float(v) for v in points], proof)


def _certify_risk(problem: RiskProblem, solution: Solution, described: Content) -> Certificate:
    """Return the certificate of a risk score, which states the bound of the solver as a claim."""
    points = problem.points_of(solution.weights)
    if solution.status is Status.INFEASIBLE and solution.value == -math.inf:
        raise ValueError("solution says that no risk score is feasible, which no certificate can show")
    written = [float(v) for v in (*points, problem.intercept(points))]
    value, _ = _values(problem, verify.Risk(described), points.astype(np.float64), written, solution)
    return _certificate(described, "value", value, max(float(solution.bound), value), written)


def _certificate(
    described: Content,
    claim: str,
    value: float | None = None,
    claimed: float | None = None,
    weights: list[float] | None = None,
    proof: Content | None = None,
) -> Certificate:
    return Certificate(
        {
            "format": verify.FORMAT,
            "version": verify.VERSION,
            "claim": claim,
            "value": value,
            "claimed_bound": claimed,
            "weights": weights,
            "problem": described,
            "proof": proof,
        }
    )


def _values(
    problem: Problem,
    exact: verify.Problem | verify.Cards | verify.Risk,
    weights: NDArray[np.float64],
    written: list[float],
    solution: Solution,
) -> tuple[float, Fraction]:
    """Return the objective at the weights, as the problem computes it and exactly; `written` are those of the file.

    Raises:
        ValueError: the solution has no feasible weights, or is one of another problem.
    """
    stated = solution.value
    if not (math.isfinite(stated) and problem.feasible(solution.weights)):
        raise ValueError("solution must have feasible weights")
    value, attained = problem.evaluate(weights), exact.value(written)
    if abs(stated - value) > 1e-9 * max(abs(exact.size()), abs(attained)):
        raise ValueError(f"solution must be of this problem, got value {stated!r} where it is {value!r}")
    return value, attained


def _known_name(name: str, lengths: list[int]) -> str:
    """Return the name of a statistic, or its weights if the checker, which imports nothing, does not know the name.

    Raises:
        ValueError: an unknown name and lists of several lengths, which no single set of weights fits.
    """
    try:
        verify.parse_statistic(name)
    except ValueError:
        if len(set(lengths)) > 1:
            rule = "a certificate has the weights of a statistic of your own, so all lists must have the same length"
            raise ValueError(f"{rule}, got lists of {min(lengths)} to {max(lengths)} for {name}") from None
        return str(RankStatistic.from_weights(RankStatistic.parse(name).weights(lengths[0])))
    return name


def _number(number: float | None) -> float:
    """Return a number of a file, or -inf where it has none."""
    return -math.inf if number is None else float(number)


def _bounds(least: float, claimed: float, trivial: float) -> list[float]:
    """Return the bounds to try, ascending: the least, the claimed one, and some that halve the way to either end."""
    shares = [2.0**-k for k in range(tuning.CERTIFICATE_HALVINGS, 0, -1)] + [1 - 2.0**-k for k in range(2, 5)]
    between = {least + share * (trivial - least) for share in shares}
    return [least, *sorted(bound for bound in {claimed, *between} if least < bound < trivial)]


def _lowest(
    bounds: list[float], record: Callable[[float], list[str] | None], over: Callable[[], bool]
) -> Content | None:
    """Return the proof of the lowest bound that can be recorded, by bisection: higher bounds are easier to prove."""
    best = None
    failed, holds, at = -1, len(bounds), 0
    while holds - failed > 1 and not over():
        partition = record(bounds[at])
        if partition is None:
            failed = at
        else:
            holds, best = at, {"bound": bounds[at], "partition": partition}
        at = (failed + holds) // 2
    return best


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
