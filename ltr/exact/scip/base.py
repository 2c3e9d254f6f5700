r"""The common base of the paper's four MIP formulations: weights, support, comparisons, full warm starts.

Variables and constraints of every model, in the paper's symbols, with δ = x_i - x_k and ε the margin:

    -1 <= w_j <= 1                                        weights
    γ_j in {0, 1},  γ_j >= w_j,  γ_j >= -w_j              support, at a price of C each
    sum_j γ_j <= m                                        where at most m weights may differ from 0
    γ_j = 1                                               for free columns, which the price and the sum leave out
    z_ik in {0, 1},  z_ik <= w·δ + 1 - ε                  z_ik = 1 only where i beats k
    A w <= b                                              side constraints, see `side_rows`

*Scale.* As printed, the row of z_ik with z_ik >= 0 also says w·δ >= ε - 1 and so restricts w unless the features are
small. Dividing features and margin by ``L = max over pairs of ||δ||_1 + ε`` repairs that, because |w·δ| <= ||δ||_1 on
the box, and changes no comparison. Multiplied by L the row reads ``w·δ - L z_ik >= ε - L``, the form in which it is
built: one big-M for all pairs, numbers in the units of the data.

Source: Rudin & Wang, *Direct Learning to Rank and Rerank* (2018), sections 3.1, 3.2 and appendices A.1, A.2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

import numpy as np
import pyscipopt
from numpy.typing import NDArray

from ltr.exact import tuning
from ltr.exact.constraints import SIDE_TOLERANCE, LinearConstraints
from ltr.exact.problem import FloatArray, IntArray, Problem, Ties
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Status
from ltr.exact.state import SolveState, Stopped

# pyscipopt has no types of its own
Model: TypeAlias = Any
Variable: TypeAlias = Any
Expression: TypeAlias = Any
ScipSolution: TypeAlias = Any
ScipEvent: TypeAlias = Any
Constraints: TypeAlias = Any

Result = TypeVar("Result")
Assignment = list[tuple[Variable, float]]

_PAIR_BYTES, _TERM_BYTES = 3_000, 100  # memory of SCIP per comparison and per term of it, measured while it solves


def linear(coefficients: Iterable[float], variables: Iterable[Variable]) -> Expression:
    """Return the expression ``sum of coefficient * variable`` without terms that are 0."""
    return pyscipopt.quicksum(float(c) * v for c, v in zip(coefficients, variables, strict=True) if c != 0)


class Formulation:
    """A MIP model of a problem, built in SCIP, that can extend any weights to a full solution.

    Attributes:
        model: the `pyscipopt.Model`, ready to solve, with the problem's objective.
        w: variables of the d weights.
        pairs, z: comparisons (i, k) that have a variable, (pairs, 2), and these variables.
        unit: power of two by which the objective is divided; 1 unless the statistic is very large or small.
        feature_unit: power of two by which differences and margin are divided; 1 for ordinary features.
        margin, scale: margin of the problem, and L, the big-M of all comparisons, in that unit.
        exact: False if the model excludes weights of the problem, so that its bound is not a bound of the problem.
        rows: constraints and variables per comparison, in multiples of those of z_ik alone.
        guard: keeps exceptions of callbacks; to be checked after a solve.

    Raises:
        ValueError: the model cannot express this problem.
        Stopped: a limit of the state is reached, or building the model would take too much of its time.
    """

    name: ClassVar[str]
    exact: bool = True
    rows: int = 1

    def __init__(self, problem: Problem, state: SolveState | None = None) -> None:
        self.check(problem)
        self.problem, self._state = problem, state
        self.unit = objective_unit(problem)
        self.feature_unit = feature_unit(problem)
        self.margin = problem.margin / self.feature_unit
        self.model: Model = pyscipopt.Model(self.name)
        self.model.hideOutput()
        self.guard = Guard()
        self.pairs: IntArray = np.zeros((0, 2), dtype=np.int64)
        self.z: list[Variable] = []
        self.w = [self.model.addVar(f"w_{j}", lb=-1.0, ub=1.0) for j in range(problem.d)]
        self.gamma = self._add_support()
        self._add_side_constraints()
        objective, offset = self._build()
        price = linear(problem.counted * (problem.price / self.unit), self.gamma)
        self.model.setObjective(objective - price, "maximize")
        self.model.addObjoffset(offset)

    @classmethod
    def check(cls, problem: Problem) -> Problem:
        """Return the problem; raise ValueError if the model cannot express it."""
        raise NotImplementedError

    def _build(self) -> tuple[Expression, float]:
        """Add the variables and rows of the formulation; return its statistic as an expression and a constant."""
        raise NotImplementedError

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment | None:
        """Return values of the variables that `_build` added, given the won comparisons; None if w is infeasible."""
        return assign(self.z, wins)

    # --- families of variables and constraints -----------------------------------------------------------------

    def _add_support(self) -> list[Variable]:
        most = self.problem.max_nonzeros
        counted = self.problem.counted
        gamma = [self.model.addVar(f"gamma_{j}", vtype="B", lb=float(not counts)) for j, counts in enumerate(counted)]
        for j, (g, w) in enumerate(zip(gamma, self.w, strict=True)):
            self.model.addCons(g - w >= 0, name=f"support_plus_{j}")
            self.model.addCons(g + w >= 0, name=f"support_minus_{j}")
        if most is not None:
            self.model.addCons(linear(counted, gamma) <= most, name="max_nonzeros")
        return gamma

    def _add_side_constraints(self) -> None:
        for r, (row, limit) in enumerate(zip(*side_rows(self.problem.sides), strict=True)):
            if np.any(row):
                self.model.addCons(linear(row, self.w) <= float(limit), name=f"side_{r}")
            elif limit < 0:  # an infeasible row without terms, which SCIP cannot express
                self.model.addCons(self.w[0] >= 2, name=f"side_{r}")

    def tick(self) -> None:
        """Check the limits; called regularly while building."""
        if self._state is not None:
            self._state.check()

    def _problem_pairs(self) -> IntArray:
        self._require(self.problem.pair_count)
        levels = self.problem.levels(self.tick)
        return np.column_stack([levels.above, levels.below]).astype(np.int64)

    def _require(self, pairs: int) -> None:
        if self._state is not None:
            size = self.rows * (_PAIR_BYTES + _TERM_BYTES * self.problem.d)
            self._state.require(pairs * size, f"a model of {pairs} comparisons")

    def _foresee(self, began: float, share: float) -> None:
        """Raise `Stopped` if building would take too long: SCIP ignores limits while it copies and frees a model."""
        self.tick()
        if self._state is None or share == 0:
            return
        patience = max(tuning.BUILDING_SHARE * self._state.limits.time_limit, tuning.BUILDING_LEAST)
        expected = self.rows * (time.monotonic() - began) / share
        if expected > patience:
            rule = f"more than the {patience:.1f} s allowed by a time_limit of {self._state.limits.time_limit:g} s"
            raise Stopped(Status.TIME_LIMIT, f"the model would take about {expected:.1f} s to build, {rule}")

    def _add_comparisons(self, pairs: IntArray) -> dict[tuple[int, int], Variable]:
        """Add z_ik and its big-M row for every pair; the pairs are distinct."""
        norms = (np.abs(delta).sum(axis=1).max(initial=0.0) for _, delta in self._differences(pairs))
        self.scale = float(max(norms)) + self.margin
        self.pairs = pairs
        began, least = time.monotonic(), self.margin - self.scale
        for block, rows in self._differences(pairs):
            self._foresee(began, block.start / max(1, len(pairs)))
            for (i, k), row in zip(pairs[block].tolist(), rows, strict=True):
                z = self.model.addVar(f"z_{i}_{k}", vtype="B")
                self.model.addCons(linear(row, self.w) - self.scale * z >= least, name=f"beats_{i}_{k}")
                self.z.append(z)
        return {(i, k): z for (i, k), z in zip(pairs.tolist(), self.z, strict=True)}

    def _differences(self, pairs: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        """Yield x_i - x_k of the pairs, block by block, in the unit of the features."""
        for first in range(0, max(1, len(pairs)), tuning.BUILDING_BLOCK):
            self.tick()
            block = slice(first, min(first + tuning.BUILDING_BLOCK, len(pairs)))
            i, k = pairs[block].T
            yield block, (self.problem.X[i] - self.problem.X[k]) / self.feature_unit

    # --- solutions ---------------------------------------------------------------------------------------------

    def complete(self, w: FloatArray) -> Assignment | None:
        """Extend weights to all variables; None where infeasible."""
        if self.problem.max_nonzeros is not None and self.problem.nonzeros(w) > self.problem.max_nonzeros:
            return None
        own = self._complete(self.problem.scores(w).wins(self.pairs[:, 0], self.pairs[:, 1]), w)
        if own is None:
            return None
        values: Assignment = list(zip(self.w, w.tolist(), strict=True))
        used = (w != 0) | ~self.problem.counted
        return values + assign(self.gamma, used) + own


class RankFormulation(Formulation):
    """A model of a rank statistic of one list with labels 0 and 1."""

    problem: RerankProblem
    ties: ClassVar[Ties] = "resolved"

    @classmethod
    def check(cls, problem: Problem) -> RerankProblem:
        """Return the problem; raise ValueError unless it is one list of labels 0 and 1 with the model's ranks."""
        if not problem.binary or problem.ties != cls.ties:
            rule = f"a RerankProblem with one list of labels 0 and 1 and ties={cls.ties!r}"
            raise ValueError(f"the {cls.name} model needs {rule}, got {problem.describe()}")
        return cast(RerankProblem, problem)

    @property
    def a(self) -> FloatArray:
        """The rank weights in units of the objective."""
        return self.problem.a / self.unit

    @property
    def shift(self) -> float:
        """The constant of the statistic in units of the objective."""
        return self.problem.shift / self.unit


def check_real(problem: Problem) -> None:
    """Raise ValueError for what no model in SCIP has: whole numbers, required columns, demands."""
    asked = ["demands"] * bool(problem.demanded)
    asked += ["whole numbers"] * (problem.integer is not None) + ["required columns"] * bool(problem.required)
    asked += ["ScipConstraints"] * (not problem.linear)
    if asked:
        raise ValueError(f"models in SCIP take no {' and '.join(asked)}: use weight_space")


def side_rows(constraints: LinearConstraints) -> tuple[FloatArray, FloatArray]:
    """Return rows A and limits b of a linear program that admits all weights of the box that satisfy the constraints.

    `LinearConstraints` lets a row exceed its limit by at most ``SIDE_TOLERANCE * (|b| + sum_j |A_j|)`` in the box, and
    with a single term by about ``2 * SIDE_TOLERANCE * |b|``. The limits are raised by twice that amount, since a
    solver's inferences use them as given. `SolveState` rejects weights that exploit it.
    """
    A, b = constraints.scaled
    several = np.count_nonzero(A, axis=1) > 1
    return A, b + 2 * SIDE_TOLERANCE * (np.abs(b) + np.where(several, np.abs(A).sum(axis=1), np.abs(b)))


def objective_unit(problem: Problem) -> float:
    """Return the power of two that brings an extreme statistic or price to between 1 and 2; 1 for ordinary sizes.

    SCIP's tolerances and its infinity of 1e20 are absolute. Powers of two change no digit.
    """
    size = max(abs(problem.trivial_bound), problem.price)
    return 1.0 if size == 0 or 2.0**-10 <= size <= 2.0**12 else 2.0 ** math.floor(math.log2(size))


def feature_unit(problem: Problem) -> float:
    """Return the power of two by which features and margin of extreme size are divided; 1 for ordinary ones."""
    size = max(spread(problem), problem.margin)
    return 1.0 if size == 0 or 2.0**-20 <= size <= 2.0**20 else 2.0 ** min(math.floor(math.log2(size)), 1022)


def spread(problem: Problem) -> float:
    """Return the largest ``||δ||_1`` that two observations could have."""
    return float(np.sum(np.ptp(problem.X, axis=0)))


def assign(variables: Sequence[Variable], values: Iterable[float]) -> Assignment:
    """Return pairs of variable and value."""
    return [(v, float(x)) for v, x in zip(variables, values, strict=True)]


def interrupt(model: Model) -> None:
    """Ask SCIP to stop. In its stage INITSOLVE, which forbids that, nothing happens: call this at the next callback."""
    if model.getStageName() != "INITSOLVE":
        model.interruptSolve()


class Guard:
    """Runs callbacks, keeps the first exception and stops the solve; `check` raises it once the solver has returned.

    SCIP's Python plugins print an exception and go on, which would turn a fault into a wrong answer.
    """

    def __init__(self) -> None:
        self._error: BaseException | None = None

    def run(self, model: Model, callback: Callable[[], Result], default: Result) -> Result:
        """Return what `callback` returns; `default` when it raises now, even KeyboardInterrupt, or one has before."""
        if self._error is not None:
            interrupt(model)
            return default
        try:
            return callback()
        except BaseException as error:
            self._error = error
            interrupt(model)
            return default

    def check(self) -> None:
        """Raise the exception that was kept, if there is one, and forget it."""
        error, self._error = self._error, None
        if error is not None:
            raise error
