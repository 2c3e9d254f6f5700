r"""ResolvedRank from positive-negative comparisons alone: the strengthened models.

Only z_ik with i in S+ and k in S- are needed, because the statistic is a function of them that never falls
when one more is won, so z_ik <= [i beats k] (see `base`) suffices. There are two ways to express that function:

**Tangents** (`ResolvedTangents`), for convex rank weights (dcg, mrr, wta, auc, power >= 1). Let b(q) = a[n - q] be the
weight of position q = 0, 1, ... and P_k = sum_i z_ik the positives above negative k. The negative that is m-th among
the negatives, ascending by P, is at position m + P_(m), and the other positions are those of the positives:

    statistic = sum_l a_l - cost(P),    cost(P) = sum_m b(m + P_(m)) = max over permutations π of sum_k b(π_k + P_k).

The last step: b is convex, so b(x + y) is supermodular and the sum is largest when π and P ascend together. A maximum
of convex functions is convex, hence θ <= sum_l a_l - cost(P) is described by the tangents

    θ <= sum_l a_l - sum_k [b(s_k) + (b(s_k + 1) - b(s_k)) (π_k + P_k - s_k)],    π any permutation, s_k any position,

which a constraint handler (`Tangents`) adds if a solution violates them. Every tangent is
valid everywhere, so the cuts are global; one that is tight at an integral P makes the constraint exact there, and there
are finitely many of those.

**Lattice** (`ResolvedLattice`), for any rank weights. With c_i = n_neg - sum_k z_ik let, for m = 0..n_neg-1,

    e_im = 1  iff  c_i <= m,       sum_m e_im = sum_k z_ik,     e_im <= e_i,m+1                       (lost_at_most)
    v_mq = 1  iff  N_m >= q,       sum_q v_mq = sum_i e_im =: N_m,     v_mq >= v_m,q+1,  q = 1..n_pos  (at_least)

The p-th positive has rank n - p - c_(p), strictly falling in p. So at least q positives have rank l or more iff
n - (q-1) - c_(q-1) >= l, that is c_(q-1) <= n + 1 - l - q, that is N_m >= q for m = n + 1 - l - q. Writing each a[rank]
as the sum of ã_l over l <= rank and counting by q,

    statistic = sum_q sum_l ã_l [N_{n+1-l-q} >= q] = sum_{l <= n_pos} a_l + sum_{q,m} ã_{n+1-q-m} v_mq,

where m >= n_neg always holds and gives the constant. Only v with ã > 0 in row m or after such an entry matter; all are
kept.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyscipopt import SCIP_RESULT

from ltr.exact.problem import FloatArray, Problem, RerankProblem
from ltr.exact.scip.base import (
    Assignment,
    Constraints,
    Expression,
    Formulation,
    Guard,
    Model,
    RankFormulation,
    ScipSolution,
    Variable,
    assign,
    linear,
)
from ltr.exact.scip.solver import Constraint

_WORTHWHILE = 1e-6  # smallest excess, relative to the statistic, that is cut off before it has to be
_NEAR = 1e-6  # a position this close to an integer has a tangent on either side


class PositionCost:
    """The rank weight taken by negatives with P_k positives above them, ``cost(P) = sum_m b(m + P_(m))``.

    Between integers b is interpolated linearly.

    Args:
        a: convex rank weights a_1..a_n.

    Examples:
        >>> cost = PositionCost(np.array([0.0, 1.0, 3.0]))
        >>> cost.value([0]), cost.value([1]), cost.value([0.5]), cost.value([0, 1])
        (3.0, 1.0, 2.0, 3.0)
    """

    def __init__(self, a: FloatArray) -> None:
        self.b = np.ascontiguousarray(a[::-1])
        self.total = float(np.sum(a))

    def _positions(self, P: ArrayLike) -> tuple[FloatArray, FloatArray]:
        above = np.asarray(P, dtype=np.float64)
        place = np.empty(len(above))
        place[np.argsort(above, kind="stable")] = np.arange(len(above))
        return place, np.clip(place + above, 0.0, len(self.b) - 1.0)

    def value(self, P: ArrayLike) -> float:
        """Return the cost at P, (n_neg,)."""
        _, position = self._positions(P)
        return float(np.sum(np.interp(position, np.arange(len(self.b)), self.b)))

    def tangents(self, P: ArrayLike) -> list[tuple[FloatArray, float]]:
        """Return slopes g and constants h with ``cost(P') >= h + g·P'`` everywhere and equality at P.

        There are two if a position is an integer: from the segments of b to its right and to its left.

        Examples:
            >>> PositionCost(np.array([0.0, 1.0, 3.0])).tangents([1.0])
            [(array([-1.]), 2.0), (array([-2.]), 3.0)]
        """
        place, position = self._positions(P)
        last = len(self.b) - 2
        right = np.clip(np.floor(position + _NEAR), 0, last).astype(np.int64)
        left = np.clip(np.ceil(position - _NEAR) - 1, 0, last).astype(np.int64)
        found = []
        for start in [right] if np.array_equal(left, right) else [right, left]:
            slope = self.b[start + 1] - self.b[start]
            found.append((slope, float(np.sum(self.b[start] + slope * (place - start)))))
        return found


class Tangents(Constraint):
    """The constraint ``theta <= cost.total - cost(P)``, described by its tangents."""

    def __init__(self, guard: Guard, theta: Variable, P: list[Variable], cost: PositionCost) -> None:
        super().__init__(guard, theta)
        self._P, self._cost = P, cost

    def include(self, model: Model, name: str = "tangents", **parameters: Any) -> None:  # noqa: ANN401 (as above)
        """Add the handler and its constraint to a model."""
        super().include(model, name, sepafreq=1, enfopriority=-100, chckpriority=-100, propfreq=-1, **parameters)

    def _excess(self, solution: ScipSolution) -> tuple[FloatArray, float]:
        above = np.array([self.model.getSolVal(solution, v) for v in self._P])
        limit = self._cost.total - self._cost.value(above)
        value = self.model.getSolVal(solution, self.theta)
        return above, 0.0 if self.model.isFeasLE(value, limit) else value - limit

    def holds(self, solution: ScipSolution) -> bool:
        """Return whether a solution satisfies the constraint."""
        return self._excess(solution)[1] <= 0

    def _cut(self, least: float = 0.0) -> bool:
        above, excess = self._excess(None)
        if excess <= least:
            return False
        for slope, constant in self._cost.tangents(above):
            row = self.model.createEmptyRowUnspec("tangent", lhs=None, rhs=self._cost.total - constant, local=False)
            self.model.cacheRowExtensions(row)
            self.model.addVarToRow(row, self.theta, 1.0)
            for variable, g in zip(self._P, slope.tolist(), strict=True):
                if g != 0:
                    self.model.addVarToRow(row, variable, g)
            self.model.flushRowExtensions(row)
            self.model.addCut(row, forcecut=True)
            self.model.releaseRow(row)
        return True

    def conssepalp(self, *_: object) -> dict[str, Any]:
        """Cut off the relaxation if it violates the constraint by much."""
        cut = self.guard.run(self.model, lambda: self._cut(_WORTHWHILE * self._cost.total), default=False)
        return {"result": SCIP_RESULT.SEPARATED if cut else SCIP_RESULT.DIDNOTFIND}

    def consenfolp(self, *_: object) -> dict[str, Any]:
        """Cut off the relaxation if it violates the constraint."""
        if self.guard.run(self.model, lambda: self.holds(None), default=False):
            return {"result": SCIP_RESULT.FEASIBLE}
        cut = self.guard.run(self.model, self._cut, default=False)
        return {"result": SCIP_RESULT.SEPARATED if cut else SCIP_RESULT.INFEASIBLE}

    def consenfops(self, *_: object) -> dict[str, Any]:
        """Ask SCIP to solve the relaxation if the pseudo solution violates the constraint."""
        holds = self.guard.run(self.model, lambda: self.holds(None), default=False)
        return {"result": SCIP_RESULT.FEASIBLE if holds else SCIP_RESULT.SOLVELP}

    def conslock(self, constraint: Constraints, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Tell SCIP that raising theta or lowering a P_k may violate the constraint."""
        self.model.addVarLocksType(self.theta, locktype, nlocksneg, nlockspos)
        for variable in self._P:
            self.model.addVarLocksType(variable, locktype, nlockspos, nlocksneg)


class ResolvedPairs(RankFormulation):
    """The common part of both models; `for_problem` chooses between them."""

    name = "resolved"

    @classmethod
    def for_problem(cls, problem: Problem) -> type[Formulation]:
        """Return the tangent model if the rank weights are convex, else the lattice model."""
        given = cls.check(problem)
        return ResolvedTangents if given.statistic.is_convex(given.n) else ResolvedLattice

    def _build(self) -> tuple[Expression, float]:
        self.comparison = self._add_comparisons(self._problem_pairs())
        return self._add_statistic()

    def _add_statistic(self) -> tuple[Expression, float]:
        raise NotImplementedError


class ResolvedTangents(ResolvedPairs):
    """The tangent model of one list with labels 0 and 1, ``rank="resolved"`` and convex rank weights."""

    lazy = True

    @classmethod
    def check(cls, problem: Problem) -> RerankProblem:
        """Return the problem; raise ValueError for another kind, or rank weights that are not convex."""
        given = super().check(problem)
        if not given.statistic.is_convex(given.n):
            raise ValueError(f"the tangent model needs convex rank weights, got statistic {given.statistic}")
        return given

    def _add_statistic(self) -> tuple[Expression, float]:
        problem = self.problem
        self.cost = PositionCost(self.a)
        self.P = [self._add_positives_above(k) for k in problem.negatives.tolist()]
        n_pos, a = len(problem.positives), self.a
        # from every positive at the bottom to every positive on top
        self.theta = self.model.addVar("theta", lb=math.fsum(a[:n_pos]), ub=math.fsum(a[problem.n - n_pos :]))
        Tangents(self.guard, self.theta, self.P, self.cost).include(self.model)
        return self.theta + 0.0, self.shift

    def _add_positives_above(self, k: int) -> Variable:
        won = [self.comparison[i, k] for i in self.problem.positives.tolist() if (i, k) in self.comparison]
        above = self.model.addVar(f"P_{k}", lb=0.0, ub=float(len(won)))
        self.model.addCons(linear([1.0] * len(won), won) - above == 0, name=f"positives_above_{k}")
        return above

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment:
        count = np.zeros(self.problem.n, dtype=np.int64)
        np.add.at(count, self.pairs[:, 1], wins)
        P = count[self.problem.negatives]
        theta = min(max(self.cost.total - self.cost.value(P), self.theta.getLbOriginal()), self.theta.getUbOriginal())
        return assign(self.z, wins) + assign(self.P, P) + [(self.theta, theta)]


class ResolvedLattice(ResolvedPairs):
    """The lattice model of one list with labels 0 and 1 and ``rank="resolved"``, for any rank weights."""

    rows = 3

    def _add_statistic(self) -> tuple[Expression, float]:
        problem = self.problem
        n, n_pos, n_neg = problem.n, len(problem.positives), len(problem.negatives)
        self.e = [self._add_lost_at_most(i) for i in problem.positives.tolist()]
        self.v = [self._add_at_least(m) for m in range(n_neg)]
        steps = np.diff(self.a, prepend=0.0)
        gains = [steps[n - q - m] for m in range(n_neg) for q in range(1, n_pos + 1)]  # ã_{n+1-q-m}
        objective = linear(gains, [v for row in self.v for v in row])
        return objective, math.fsum(self.a[:n_pos]) + self.shift

    def _add_lost_at_most(self, i: int) -> list[Variable]:
        """Add e_im for m = 0..n_neg-1."""
        self.tick()
        row = [self.model.addVar(f"e_{i}_{m}", vtype="B") for m in range(len(self.problem.negatives))]
        won = [self.comparison[i, k] for k in self.problem.negatives.tolist() if (i, k) in self.comparison]
        total = linear([1.0] * len(row), row) - linear([1.0] * len(won), won)
        self.model.addCons(total == 0, name=f"lost_{i}")
        for m, (fewer, more) in enumerate(itertools.pairwise(row)):
            self.model.addCons(fewer - more <= 0, name=f"lost_at_most_{i}_{m}")
        return row

    def _add_at_least(self, m: int) -> list[Variable]:
        """Add v_mq for q = 1..n_pos."""
        self.tick()
        row = [self.model.addVar(f"v_{m}_{q}", vtype="B") for q in range(1, len(self.e) + 1)]
        column = [e[m] for e in self.e]
        total = linear([1.0] * len(row), row) - linear([1.0] * len(column), column)
        self.model.addCons(total == 0, name=f"count_{m}")
        for q, (more, fewer) in enumerate(zip(row[1:], row[:-1], strict=True), start=1):
            self.model.addCons(more - fewer <= 0, name=f"at_least_{m}_{q}")
        return row

    def _complete(self, wins: NDArray[np.bool_], w: FloatArray) -> Assignment:
        n_neg = len(self.problem.negatives)
        won = np.zeros(self.problem.n, dtype=np.int64)
        np.add.at(won, self.pairs[:, 0], wins)
        lost = n_neg - won[self.problem.positives]
        values = assign(self.z, wins)
        for row, c in zip(self.e, lost, strict=True):
            values += assign(row, c <= np.arange(n_neg))
        for m, row in enumerate(self.v):
            values += assign(row, np.arange(1, len(row) + 1) <= np.sum(lost <= m))
        return values
