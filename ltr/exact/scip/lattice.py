r"""Risk scores in SCIP: cutting planes of the logistic loss on the lattice of points.

The model has whole points, and a variable for the loss that only its tangents bound from below:

    min  L + C sum_j (u_j + v_j)
    L >= loss(p) + ∇loss(p) · ((λ, b) - p)              tangents, added at solutions of the relaxation
    m_j u_j - l_j v_j <= λ_j <= h_j u_j - m_j v_j       λ_j from m_j to h_j if u_j = 1, -l_j to -m_j if v_j = 1
    u_j + v_j <= 1                                      the column is used where the sum is 1
    sum_j (u_j + v_j) <= k                              at most k columns that are not free; the rules likewise
    u_j <= t_g, v_j <= 1 - t_g                          one sign for the columns of a direction g
    λ_j, b whole, u_j, v_j, t_g in {0, 1}

with -l_j and h_j the limits of the points of column j, m_j the least size of points that are not 0. The loss is convex,
so that tangents are never above it: the model is a relaxation, and its bound is one of the problem.

**What SCIP may prune.** SCIP never gets a solution. The best card known is its objective limit, raised by a margin
well above all that its tolerances can add up to (`margin_of`), so nothing pruned is better than the best card. What
lies within the margin of the best card is branched on until it is a single point, whose loss is computed here. Once the
tree is empty, the best card is the best one of all. While it is not, the bound is SCIP's minus the margin. The constant
of each tangent is lowered by more than it can be wrong through rounding.

Source: Ustun & Rudin, *Learning Optimized Risk Scores* (JMLR 2019), section 3, the lattice cutting-plane algorithm.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyscipopt import SCIP_PARAMSETTING, SCIP_RESULT, Conshdlr, Model, quicksum

from ltr.checks import as_float
from ltr.exact.problem import FloatArray, IntArray, Problem
from ltr.exact.risk import RiskProblem
from ltr.exact.risk_search import offer_starts, polish, search_sets, work_of
from ltr.exact.scip.base import Constraints, Guard, ScipSolution, Variable
from ltr.exact.scip.solver import FEASTOL, Watcher, attempt, configure, ending_of, optimize
from ltr.exact.solution import Status
from ltr.exact.state import Ending, SolveState, Stopped

NO_CARD = "no card meets the limits and rules"

_ROUNDING = 1e-13  # room in the constant of a tangent, relative to the size of its terms
_ROUNDS = 4  # tangents at a node other than the root
_WORTHWHILE = 0.02  # violation of a tangent that is added at such a node, as a share of what is left to prove
_ROOT = 1e-4  # the same at the root


@dataclass(frozen=True)
class LatticeCuts:
    """The search for the best risk score, as a method of `ltr.exact.solve`.

    Args:
        starts: share of the time limit for good cards to start from.
        sets: share of the time limit that bounding all sets of columns may take, as estimated, for that to be tried
            before SCIP (`ltr.exact.risk_search`); 0 leaves all to SCIP.

    Raises:
        ValueError: a field out of range.
    """

    starts: float = 0.2
    sets: float = 0.4

    def __post_init__(self) -> None:
        for name in ("starts", "sets"):
            if not 0 <= as_float(getattr(self, name)) < 1:
                rule = "a share of the time from 0 to below 1"
                raise ValueError(f"{name} must be {rule}, got {getattr(self, name)!r}")

    def check(self, problem: Problem) -> None:
        """Accept a `RiskProblem`."""
        if not isinstance(problem, RiskProblem):
            raise ValueError(f"method lattice solves a RiskProblem, got {problem.describe()}")

    def run(self, state: SolveState) -> Ending:
        """Offer good cards, then branch and cut."""
        problem = state.problem
        assert isinstance(problem, RiskProblem)
        offer_starts(state, problem, self.starts * state.limits.time_limit)
        seconds = self.sets * state.remaining
        if work_of(problem) < seconds and search_sets(state, problem, state.seconds + seconds):
            none = state.value == -math.inf
            return Ending(Status.INFEASIBLE, NO_CARD) if none else Ending(Status.OPTIMAL, "searched by sets of columns")
        search = LatticeSearch(state, problem)
        model = search.new_model()
        try:
            return attempt(search.guard, lambda: search.solve(model))
        finally:
            model.free()  # models with Python plugins are reference cycles


def margin_of(problem: RiskProblem) -> float:
    """Return the room that SCIP's objective limit has above the loss of the best card.

    A dual solution of the relaxation has multipliers of tangents that add up to 1, and those of the rows of column j
    are at most the largest slope of the loss in λ_j, the mean of |x_j|. With violations of rows and reduced costs of up
    to the tolerance, relative to the size of their terms, the value of a relaxation is off by at most a few times

        tolerance * (1 + sum_j (1 + max |x_j|) * (largest |λ_j|)).
    """
    sizes = np.maximum(-problem.least, problem.largest)
    terms = (1.0 + np.abs(problem.X).max(axis=0)) * sizes
    intercept = max(abs(end) for end in problem.intercepts)
    return 4 * FEASTOL * (1.0 + problem.C * problem.d + intercept + float(terms.sum()))


class LatticeSearch(Conshdlr):
    """The constraint ``L >= loss(λ, b)``: cuts, evaluates whole points, branches on what SCIP cannot tell apart.

    The variables λ, b, L, u and v are `points`, `intercept`, `loss`, `up` and `down`.
    """

    def __init__(self, state: SolveState, problem: RiskProblem) -> None:
        self.state, self.problem, self.guard = state, problem, Guard()
        self.margin, self._limit = margin_of(problem), math.inf
        self._node, self._rounds = 0, 0

    # --- the model -----------------------------------------------------------------------------------------------

    def new_model(self) -> Model:
        """Return the model, ready to solve."""
        model = Model("risk_score")
        model.hideOutput()
        self._add_variables(model)
        self._add_conditions(model)
        configure(model, self.state.limits)
        model.setPresolve(SCIP_PARAMSETTING.OFF)
        model.setHeuristics(SCIP_PARAMSETTING.OFF)
        parameters = {
            "presolving/maxrestarts": 0,
            "misc/usesymmetry": 0,
            "misc/allowstrongdualreds": False,
            "misc/allowweakdualreds": False,
            "conflict/enable": False,
            "limits/gap": 0.0,  # the state's gap is looked at in callbacks
            "misc/catchctrlc": threading.current_thread() is threading.main_thread(),  # which signals belong to
        }
        model.setParams(parameters)
        # enforced after all whole numbers are
        model.includeConshdlr(
            self,
            "tangents",
            "L >= loss",
            sepapriority=0,
            enfopriority=-1000,
            chckpriority=-1000,
            sepafreq=1,
            eagerfreq=1,
            needscons=True,
        )
        model.addPyCons(model.createCons(self, "loss"))
        model.includeEventhdlr(Watcher(self.guard, self._watch), "watcher", "bounds and limits")
        self._share_best()
        return model

    def _add_variables(self, model: Model) -> None:
        problem = self.problem
        low, high = problem.intercepts
        self.loss = model.addVar("L", lb=0.0, ub=None, obj=1.0)
        self.intercept = model.addVar("b", vtype="I", lb=low, ub=high)
        self.points, self.up, self.down = list[Variable](), list[Variable](), list[Variable]()
        prices = np.where(problem.counted, problem.C, 0.0).tolist()
        limits = (problem.least.tolist(), problem.largest.tolist(), problem.least_points.tolist())
        for j, (least, largest, m) in enumerate(zip(*limits, strict=True)):
            points = model.addVar(f"points_{j}", vtype="I", lb=least, ub=largest)
            u, v = (
                model.addVar(f"{name}_{j}", vtype="B", obj=prices[j], ub=float(possible))
                for name, possible in (("up", largest > 0), ("down", least < 0))
            )
            self.points.append(points)
            self.up.append(u)
            self.down.append(v)
            model.addCons(points - largest * u + m * v <= 0, name=f"largest_{j}")
            model.addCons(points - m * u - least * v >= 0, name=f"least_{j}")
            model.addCons(u + v <= 1, name=f"one_sign_{j}")
        for variable in (self.loss, self.intercept, *self.points):
            model.markDoNotMultaggrVar(variable)

    def _add_conditions(self, model: Model) -> None:
        problem = self.problem
        counted = np.flatnonzero(problem.counted).tolist()
        if problem.max_nonzeros < len(counted):
            self._add_rule(model, counted, 0, problem.max_nonzeros, (), "max_nonzeros")
        for at, rule in enumerate(problem.conditions.all_rules):
            self._add_rule(model, rule.columns, rule.at_least, rule.at_most, rule.when, f"rule_{at}")
        for group in np.unique(problem.directions[problem.directions >= 0]).tolist():
            turn = model.addVar(f"turn_{group}", vtype="B")
            for j in np.flatnonzero(problem.directions == group).tolist():
                model.addCons(self.up[j] - turn <= 0, name=f"up_{j}_{group}")
                model.addCons(self.down[j] + turn <= 1, name=f"down_{j}_{group}")

    def _add_rule(
        self, model: Model, columns: Sequence[int], least: int, most: int, when: Sequence[int], name: str
    ) -> None:
        """Add ``least <= number of columns used <= most``, for each column of `when` where it is used."""
        number, room = quicksum(self.up[j] + self.down[j] for j in columns), max(0, len(columns) - most)
        if not when:
            model.addCons(number >= least, name=f"{name}_least")
            model.addCons(number <= most, name=f"{name}_most")
        for t in when:
            used = self.up[t] + self.down[t]
            model.addCons(number - least * used >= 0, name=f"{name}_least_{t}")
            model.addCons(number + room * used <= most + room, name=f"{name}_most_{t}")

    # --- the solve -----------------------------------------------------------------------------------------------

    def solve(self, model: Model) -> Ending:
        """Run SCIP and return how the solve ended."""
        state = self.state
        self.guard.check()
        claim = optimize(model, state)
        self.guard.check()
        if claim != "infeasible":
            return ending_of(claim)
        if state.value == -math.inf:
            return Ending(Status.INFEASIBLE, NO_CARD)
        state.prove(state.value)
        return Ending(Status.OPTIMAL)

    def _share_best(self) -> None:
        """Make the loss of the best card, plus the margin, the objective limit of SCIP."""
        if math.isfinite(self.state.value):
            limit = -self.state.value + self.margin
            if limit < self._limit:
                self._limit = limit
                self.model.setObjlimit(limit)

    def _watch(self, _: int) -> None:
        """Prove SCIP's bound, and stop it at the limits of the state."""
        state, model = self.state, self.model
        if model.getStageName() == "SOLVING" and model.getStatus() == "unknown":
            state.nodes = int(model.getNTotalNodes())
            bound = float(model.getDualbound())
            if abs(bound) < model.infinity():
                state.prove(max(self.margin - bound, state.value))
            if state.limits.gap > 0 and state.gap <= state.limits.gap:
                raise Stopped(Status.GAP_LIMIT)
        state.check()

    # --- callbacks -----------------------------------------------------------------------------------------------

    def conscheck(self, constraints: Constraints, solution: ScipSolution, *_: object) -> dict[str, Any]:
        """Accept no solution: SCIP is only to find that none is left."""
        return {"result": SCIP_RESULT.INFEASIBLE}

    def conssepalp(self, *_: object) -> dict[str, Any]:
        """Cut off the relaxation if it violates the constraint by much."""
        return {"result": self.guard.run(self.model, self._separate, default=SCIP_RESULT.DIDNOTRUN)}

    def consenfolp(self, *_: object) -> dict[str, Any]:
        """Cut off whole points that violate the constraint; branch on others."""
        # what is cut off where the solve ends does not matter: the guard tells
        return {"result": self.guard.run(self.model, self._enforce, default=SCIP_RESULT.CUTOFF)}

    def consenfops(self, *_: object) -> dict[str, Any]:
        """Ask SCIP to solve the relaxation."""
        return {"result": SCIP_RESULT.SOLVELP}

    def conslock(self, constraint: Constraints, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Tell SCIP that lowering the loss or moving points may violate the constraint."""
        both = nlockspos + nlocksneg
        self.model.addVarLocksType(self.loss, locktype, nlockspos, nlocksneg)
        for variable in (self.intercept, *self.points):
            self.model.addVarLocksType(variable, locktype, both, both)

    # --- cuts ----------------------------------------------------------------------------------------------------

    def _values(self) -> tuple[FloatArray, float, float]:
        value = self.model.getSolVal
        points = np.array([value(None, variable) for variable in self.points])
        return points, float(value(None, self.intercept)), float(value(None, self.loss))

    def _separate(self) -> int:
        number = int(self.model.getCurrentNode().getNumber())
        if number != self._node:
            self._node, self._rounds = number, 0
        self._rounds += 1
        root = self.model.getDepth() == 0
        if not root and self._rounds > _ROUNDS:
            return SCIP_RESULT.DIDNOTRUN
        self.state.check()
        points, intercept, loss = self._values()
        value, slope = self.problem.tangent(points, intercept)
        if root or self._rounds == 1:
            self._offer(points)
        open_ = max(0.0, self._limit - float(self.model.getLPObjVal())) if math.isfinite(self._limit) else value
        if value - loss <= max(self.margin, (_ROOT if root else _WORTHWHILE) * open_):
            return SCIP_RESULT.DIDNOTFIND
        return self._cut(np.append(points, intercept), value, slope)

    def _offer(self, points: FloatArray) -> None:
        """Offer the points that real ones are rounded to."""
        rounded = np.rint(points)
        if self.problem.allowed(rounded) and self.problem.evaluate(rounded) > self.state.value:
            self.state.offer(rounded)
            polish(self.state, self.problem)
        self._share_best()

    def _cut(self, at: FloatArray, value: float, slope: FloatArray) -> int:
        """Add the tangent at a point, of which the loss and its gradient are known."""
        model = self.model
        terms = slope * at
        constant = value - math.fsum(terms.tolist())
        constant -= _ROUNDING * (1.0 + abs(value) + float(np.abs(terms).sum()))
        row = model.createEmptyRowUnspec("tangent", lhs=constant, rhs=None, local=False, removable=True)
        model.cacheRowExtensions(row)
        model.addVarToRow(row, self.loss, 1.0)
        for variable, coefficient in zip((*self.points, self.intercept), slope.tolist(), strict=True):
            if coefficient != 0:
                model.addVarToRow(row, variable, -coefficient)
        model.flushRowExtensions(row)
        infeasible = model.addCut(row, forcecut=True)
        model.addPoolCut(row)
        model.releaseRow(row)
        return SCIP_RESULT.CUTOFF if infeasible else SCIP_RESULT.SEPARATED

    # --- whole points --------------------------------------------------------------------------------------------

    def _enforce(self) -> int:
        """Handle a relaxation whose points are whole."""
        self.state.check()
        found, b, loss = self._values()
        points, intercept = np.rint(found), round(b)
        value, slope = self.problem.tangent(points, intercept)
        self._offer(points)
        if value - loss > self.margin / 2:
            return self._cut(np.append(points, intercept), value, slope)
        # the relaxation is as good as these points: look at all others of this node
        return self._branch(points.astype(np.int64))

    def _branch(self, points: IntArray) -> int:
        """Divide the node but for these points, which have been evaluated, with whatever intercept.

        Child j has the same points as these in the columns before j, and smaller or larger ones in column j.
        """
        model = self.model
        variables = [model.getTransformedVar(variable) for variable in self.points]
        ends = [(round(v.getLbLocal()), round(v.getUbLocal())) for v in variables]
        free = [j for j in np.argsort(points == 0, kind="stable").tolist() if ends[j][0] < ends[j][1]]
        estimate, made = self.model.getCurrentNode().getEstimate(), 0
        for at, j in enumerate(free):
            for low, high in ((ends[j][0], points[j] - 1), (points[j] + 1, ends[j][1])):
                if low > high:
                    continue
                node, made = model.createChild(0.0, estimate), made + 1
                for i in free[:at]:
                    if points[i] > ends[i][0]:
                        model.chgVarLbNode(node, variables[i], float(points[i]))
                    if points[i] < ends[i][1]:
                        model.chgVarUbNode(node, variables[i], float(points[i]))
                if low > ends[j][0]:
                    model.chgVarLbNode(node, variables[j], float(low))
                if high < ends[j][1]:
                    model.chgVarUbNode(node, variables[j], float(high))
        return SCIP_RESULT.BRANCHED if made else SCIP_RESULT.CUTOFF
