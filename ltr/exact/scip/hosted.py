r"""The weight-space search inside SCIP: SCIP has the model, the incumbent, the bound, the limits and the tree.

The model is compact: no comparison has a variable, and a constraint handler knows the objective.

    max  θ
    θ <= objective(w)          by the handler, which also checks the limit on non-zero weights
    A w <= b                   side constraints
    -1 <= w_j <= 1             weights

**Rounds.** Closing everything at the best value known gives no bound before the very end. So nodes of SCIP's tree stand
for the rounds of `ltr.exact.weight_space.search.Proof`, which covers all weights once more at a lower target. The
handler closes a round's boxes in its node and makes one child, the next round, with the bound that this proved. The
tree is then a chain, and the boxes may be in any coordinates.

**Branching.** Where side constraints link the weights, linear programs decide boxes that the search alone would split
again and again. So the node of a round only makes children: one for each box to begin with, and the next round, with
the target as its bound. Each of the others has a *region*, boxes that contain the node, and the search's bound for
them. The handler searches them up to an allowance of work. It cuts the node off if all are closed, and branches
otherwise: each of the largest boxes left becomes a child, and the others share one more. SCIP takes the node of the
largest bound first, so it finishes a round before it begins the next.

**Account.** A region may be closed at a target above that of its round: because of better weights, or of a box too
narrow to split. The next round's node does not cover that, so the bound of the solve is at least that of the round,
`Proof.bound`.

*Faces.* Where scaling up is free (`ltr.exact.state.scalable`), the boxes begin as the faces ``w_j = ±1``. They leave
out the inside of the cube, whose weights have no larger values than those they scale up to, and w = 0, to whose value
the bound is raised.

*Tolerances.* SCIP prunes by its bounds within 1e-9. The bounds it is given are raised by more than that, so what it
prunes is no better than its incumbent, and everything else is cut off by the search, which rounds outwards. The side
constraints have room for their own tolerance (`ltr.exact.scip.base.side_rows`), and weights that need more than that
tolerance are not accepted. Presolvers, propagators, heuristics and cuts are off: the search does their work better.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from pyscipopt import SCIP_PARAMSETTING, SCIP_PROPTIMING, SCIP_RESULT, Conshdlr, Model, Nodesel

from ltr.exact import tuning
from ltr.exact.problem import FloatArray, Problem
from ltr.exact.scip.base import Constraints, Guard, Result, ScipSolution, linear, objective_unit, side_rows
from ltr.exact.scip.constraints import ScipConstraints
from ltr.exact.scip.solver import FEASTOL, STATUS, attempt, configure, optimize
from ltr.exact.solution import Status
from ltr.exact.state import Ending, Interrupts, SolveState
from ltr.exact.weight_space.search import Proof
from ltr.exact.weight_space.space import Boxes, Space
from ltr.exact.weight_space.supports import supports_of

Node: TypeAlias = Any  # pyscipopt has no types of its own

_SLACK = 4 * FEASTOL  # added to bounds that SCIP compares within its tolerance
_FIRST_CHOICE = 1_000_000  # priority above those of SCIP's own node selectors


def prove_in_scip(state: SolveState, threads: int, coordinates: str | None = None, local_search: float = 0.0) -> Ending:
    """Prove the value of a state's weights, or of better ones, in SCIP; see `Proof` for the arguments.

    Raises:
        Stopped: a limit of the state is reached.
    """
    relaxed = not _branches(state.problem)
    with Interrupts() as interrupts:
        interrupts.arm()
        with Proof(state, threads, coordinates, local_search, relaxed=relaxed) as proof:
            interrupts.disarm()  # SCIP's callbacks arm it
            if proof.ending is not None:
                return proof.ending
            with Host(proof, interrupts) as host:
                return attempt(host.guard, host.solve)


def _branches(problem: Problem) -> bool:
    """Return whether SCIP branches: if side constraints link the weights of one space."""
    return problem.constraints is not None and supports_of(problem) is None


@dataclass(frozen=True)
class Region:
    """Boxes that share a node of SCIP's tree.

    Attributes:
        boxes: their union contains the node.
        bound: upper bound of the objective on them.
    """

    boxes: Boxes
    bound: float


def _cut(left: list[Boxes]) -> list[Boxes]:
    """Divide boxes into regions: the largest boxes one by one, the others together."""
    # the search hands the deepest boxes back last
    alone = left[: tuning.REGIONS if len(left) > tuning.REGIONS + 1 else len(left)]
    rest = left[len(alone) :]
    return [*alone, Boxes.joined(rest)] if rest else alone


def _cube(space: Space) -> Boxes:
    """Return the whole cube as one box, for a node about which only its bounds are known."""
    d = space.T.shape[1]
    box = Boxes.empty(1, d + 1)
    box.low[:, :d], box.low[:, d], box.high[:] = -1.0, 1.0, 1.0
    box.used[0] = space.free
    box.bound[:] = np.iinfo(np.int64).max
    return box


class Host:
    """A SCIP model that hosts a proof; a context manager that frees the model.

    Attributes:
        proof: the proof.
        state: the solve that it belongs to.
        branches: whether SCIP branches; else its tree is a chain of rounds.
        model: the `pyscipopt.Model`, ready to solve.
        w, theta: its variables.
        unit: the power of two that the objective is divided by.
        guard: keeps exceptions of callbacks.
        pending: bound of the current node or its children.
    """

    def __init__(self, proof: Proof, interrupts: Interrupts) -> None:
        self.proof, self.state, problem = proof, proof.state, proof.state.problem
        self.branches, self.unit, self.guard = _branches(problem), objective_unit(problem), Guard()
        self.pending = self.state.bound
        self._interrupts, self._shared_value = interrupts, -math.inf
        self.model = Model("weight_space", defaultPlugins=self.branches)
        self.model.hideOutput()
        self.w = [self.model.addVar(f"w_{j}", lb=-1.0, ub=1.0) for j in range(problem.d)]
        self.theta = self.model.addVar("theta", lb=None, ub=self.raised(problem.trivial_bound), obj=1.0)
        self.model.setMaximize()
        for variable in (*self.w, self.theta):
            self.model.markDoNotMultaggrVar(variable)
        self._configure()
        if self.branches:
            self._add_side_constraints()
        self.model.includeNodesel(LargestBound(), "largest_bound", "largest bound first", _FIRST_CHOICE, _FIRST_CHOICE)
        # enforced before integrality, as the handler does all branching; checked after the side constraints
        handler = Handler(self)
        self.model.includeConshdlr(
            handler,
            "weight_space",
            "theta <= statistic",
            enfopriority=1000,
            chckpriority=-1000,
            propfreq=1,
            eagerfreq=1,
            delayprop=True,
            needscons=True,
            proptiming=SCIP_PROPTIMING.BEFORELP,
        )
        self.model.addPyCons(self.model.createCons(handler, "statistic"))

    def __enter__(self) -> Host:
        self.share_best(first=True)
        return self

    def __exit__(self, *_: object) -> None:
        # models with Python plugins are reference cycles
        self.model.free()

    def solve(self) -> Ending:
        """Run SCIP and return how the solve ended."""
        claim = optimize(self.model, self.state)
        nodes, self.state.nodes = self.state.nodes, self.proof.boxes
        complete, status = claim in ("optimal", "infeasible"), STATUS[claim]
        if not complete:
            self.state.prove(self.bound)
        self.guard.check()
        if complete and self.branches:
            self.proof.end()
        if status is None:
            return Ending(Status.INEXACT, f"SCIP gave up with status {claim!r}")
        ending = self.proof.ending or Ending(status)
        tree = f"{nodes} nodes of SCIP" if self.branches else ""
        return dataclasses.replace(ending, message=", ".join(filter(None, (ending.message, tree))))

    # --- the model ---------------------------------------------------------------------------------------------

    def _configure(self) -> None:
        configure(self.model, self.state.limits)
        parameters: dict[str, Any] = {
            "misc/scaleobj": False,
            "misc/catchctrlc": False,  # `Interrupts` notes it, also while the search runs
            "lp/solvefreq": 1 if self.branches else -1,
        }
        if self.branches:
            self.model.setPresolve(SCIP_PARAMSETTING.OFF)
            self.model.setHeuristics(SCIP_PARAMSETTING.OFF)
            parameters |= {"presolving/maxrestarts": 0, "misc/usesymmetry": 0, "conflict/enable": False}
            known = self.model.getParams()
            parameters |= {name: -1 for name in known if name.startswith("propagating/") and name.endswith("/freq")}
        self.model.setParams(parameters)

    def _add_side_constraints(self) -> None:
        sides = self.state.problem.sides
        for r, (row, limit) in enumerate(zip(*side_rows(sides), strict=True)):
            if np.any(row):  # the search handles the others
                self.model.addCons(linear(row, self.w) <= float(limit), name=f"side_{r}")
        if isinstance(sides, ScipConstraints):
            sides.add(self.model, self.w)

    # --- bounds and values -------------------------------------------------------------------------------------

    def raised(self, bound: float) -> float:
        """Return a bound in SCIP's unit, with room for SCIP's tolerance."""
        scaled = bound / self.unit
        return scaled + _SLACK * max(1.0, abs(scaled))

    @property
    def bound(self) -> float:
        """The bound while nodes are open."""
        dual = float(self.model.getDualbound())
        known = dual * self.unit if abs(dual) < self.model.infinity() else -math.inf
        # a node that SCIP had to leave is not in its bound
        return max(known, self.pending, self.proof.bound, self.state.value, self.proof.zero_value)

    # --- searching ---------------------------------------------------------------------------------------------

    def run(self, callback: Callable[[], Result], default: Result) -> Result:
        """Run a callback of SCIP, which Ctrl-C interrupts, behind the guard."""

        def interruptible() -> Result:
            self._interrupts.arm()
            try:
                return callback()
            finally:
                self._interrupts.disarm()

        return self.guard.run(self.model, interruptible, default)

    def search(self, region: Region) -> list[Region]:
        """Search a region, up to an allowance, and return the regions that are left, cut for branching."""
        if len(region.boxes.bound) == 0:
            return []
        left = self.proof.close(region.boxes, max(tuning.REGION_WORK, tuning.REGION_SHARE * self.proof.spent))
        bounds = [(part, self.proof.searchable.objective(int(part.bound.max()))) for part in _cut(left)]
        return [Region(part, min(region.bound, bound)) for part, bound in bounds]

    def end_round(self) -> None:
        """End the round of which all regions are closed; the current node is the next."""
        left = [-float(node.getLowerbound()) * self.unit for node in itertools.chain(*self.model.getOpenNodes())]
        self.proof.end(max(left, default=-math.inf))

    def share_best(self, *, first: bool = False) -> None:
        """Hand the best weights to SCIP."""
        if self.state.value <= self._shared_value:
            return
        self._shared_value, w = self.state.value, self.state.weights
        solution = self.model.createSol()
        for variable, value in zip(self.w, w.tolist(), strict=True):
            self.model.setSolVal(solution, variable, value)
        self.model.setSolVal(solution, self.theta, self.state.value / self.unit)
        if first:
            self.model.addSol(solution)
        else:
            self.model.trySol(solution, printreason=False)


class LargestBound(Nodesel):
    """Selects the open node of the largest bound."""

    def nodeselect(self) -> dict[str, Any]:
        """Select the next node."""
        return {"selnode": self.model.getBestboundNode()}

    def nodecomp(self, one: Node, other: Node) -> int:
        """Compare two nodes; the smaller is selected first. SCIP minimises, so its bounds have the other sign."""
        return int(np.sign(one.getLowerbound() - other.getLowerbound()))


class Handler(Conshdlr):
    """The constraint ``theta <= objective(w)``: searches nodes, cuts them off, branches."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._regions: dict[int, Region] = {}
        self._rounds = {1}  # numbers of the nodes that stand for a round; the root does
        self._node = 0
        self._children: list[Region] = []
        self._next_bound: float | None = None

    # --- callbacks ---------------------------------------------------------------------------------------------

    def conscheck(self, constraints: Constraints, solution: ScipSolution, *_: object) -> dict[str, Any]:
        """Check a solution; None stands for the current relaxation."""
        holds = self.host.guard.run(self.model, lambda: self._holds(solution), default=False)
        return {"result": SCIP_RESULT.FEASIBLE if holds else SCIP_RESULT.INFEASIBLE}

    def consprop(self, *_: object) -> dict[str, Any]:
        """Search the node."""
        if self.model.inProbing():
            return {"result": SCIP_RESULT.DIDNOTRUN}
        done = self.host.run(self._searched, default=False)
        return {"result": SCIP_RESULT.CUTOFF if done else SCIP_RESULT.DIDNOTFIND}

    def consenfolp(self, *_: object) -> dict[str, Any]:
        """Branch."""
        branched = self.host.run(self._branch, default=None)
        if branched is None:
            # the solve ends: keep the node open
            self.model.createChild(0.0, self.model.getCurrentNode().getEstimate())
        return {"result": SCIP_RESULT.CUTOFF if branched == 0 else SCIP_RESULT.BRANCHED}

    consenfops = consenforelax = consenfolp  # type: ignore[assignment]

    def conslock(self, constraint: Constraints, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Tell SCIP that raising theta or moving a weight may violate the constraint."""
        self.model.addVarLocksType(self.host.theta, locktype, nlocksneg, nlockspos)
        both = nlockspos + nlocksneg
        for variable in self.host.w:
            self.model.addVarLocksType(variable, locktype, both, both)

    # --- nodes -------------------------------------------------------------------------------------------------

    def _holds(self, solution: ScipSolution) -> bool:
        """Return whether the weights attain theta and satisfy the side constraints, of which SCIP has looser ones."""
        w = np.clip([self.model.getSolVal(solution, v) for v in self.host.w], -1.0, 1.0)
        theta = self.host.unit * float(self.model.getSolVal(solution, self.host.theta))
        problem = self.host.state.problem
        value = problem.evaluate(w)
        return problem.feasible(w) and theta <= value + FEASTOL * max(self.host.unit, abs(value))

    def _searched(self) -> bool:
        """Search the current node, unless that is done; return whether all of it is closed."""
        host, node = self.host, self.model.getCurrentNode()
        number = int(node.getNumber())
        if number != self._node:
            region = self._regions.pop(number, None)
            bound = min(-float(node.getLowerbound()) * host.unit, host.state.problem.trivial_bound)
            host.pending = bound if region is None else min(bound, region.bound)
            host.state.observe(host.bound)
            host.state.check()
            if number in self._rounds:
                self._run_round(host.pending, first=number == 1)
            else:
                region = region or Region(_cube(host.proof.searchable.space), host.pending)
                self._children, self._next_bound = host.search(self._clipped(region)), None
            # set only now: a search that an exception ended does not count
            self._node = number
            self._rounds.discard(number)
            host.share_best()
        done = not self._children and self._next_bound is None
        if done:
            host.pending = -math.inf
        return done

    def _run_round(self, bound: float, *, first: bool) -> None:
        """End the round before, then run a round or hand its boxes to the children."""
        host, proof = self.host, self.host.proof
        self._children, self._next_bound = [], None
        if host.branches and not first:
            host.end_round()
        if proof.ending is None:
            proof.begin()
        if host.branches and proof.ending is None:
            roots, self._next_bound = proof.searchable.roots, proof.bound
            self._children = [Region(root, bound) for root in roots.each()]
            return
        proof.close_all()
        proof.end()
        if proof.ending is None:
            self._next_bound = host.state.bound

    def _clipped(self, region: Region) -> Region:
        """Return the boxes of a region within the bounds of the current node, rounded outwards."""
        low, high = self._bounds()
        d, boxes = len(low), region.boxes.rows(slice(None))
        np.maximum(boxes.low[:, :d], low - FEASTOL, out=boxes.low[:, :d])
        np.minimum(boxes.high[:, :d], high + FEASTOL, out=boxes.high[:, :d])
        kept = (boxes.low <= boxes.high).all(axis=1)
        return dataclasses.replace(region, boxes=boxes.rows(np.flatnonzero(kept)))

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the current node's bounds on the weights."""
        w = [self.model.getTransformedVar(v) for v in self.host.w]
        return np.array([v.getLbLocal() for v in w]), np.array([v.getUbLocal() for v in w])

    # --- branching ---------------------------------------------------------------------------------------------

    def _branch(self) -> int:
        """Make the children and return how many."""
        if self._searched():
            return 0
        for region in self._children:
            self._add_child(region)
        made = len(self._children)
        if self._next_bound is not None:
            self._rounds.add(self._child(self._next_bound).getNumber())
            made += 1
        self.host.pending = max([r.bound for r in self._children] + [self._next_bound or -math.inf])
        self._children, self._next_bound = [], None
        return made

    def _child(self, bound: float) -> Node:
        raised = self.host.raised(bound)
        node = self.model.createChild(0.0, -raised)
        self.model.updateNodeLowerbound(node, -raised)
        return node

    def _add_child(self, region: Region) -> None:
        host, model, d = self.host, self.model, self.host.state.problem.d
        node = self._child(region.bound)
        self._regions[node.getNumber()] = region
        low, high = region.boxes.low[:, :d].min(axis=0), region.boxes.high[:, :d].max(axis=0)
        local_low, local_high = self._bounds()
        for j in range(d):
            variable = model.getTransformedVar(host.w[j])
            if low[j] > local_low[j]:
                model.chgVarLbNode(node, variable, float(low[j]))
            if high[j] < local_high[j]:
                model.chgVarUbNode(node, variable, float(high[j]))
