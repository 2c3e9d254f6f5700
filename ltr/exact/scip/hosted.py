r"""SCIP hosts the weight-space search: its tree, limits, branching and side constraints around the compiled kernel.

The model is compact: no comparison has a variable.

    -1 <= w_j <= 1                                        weights
    γ_j in {0, 1},  γ_j >= w_j,  γ_j >= -w_j              support, where it has a price or a limit
    γ_j = 1                                               for free columns, which have no price
    sum_j γ_j <= m                                        where at most m weights may differ from 0, free ones included
    A w <= b                                              side constraints
    θ <= statistic(w)                                     by a constraint handler
    max  θ - C sum_j γ_j

**Nodes.** A node of SCIP's tree holds a *region*: boxes that share a node. The handler has the kernel search them up to
an allowance of work, cuts the node off where all are closed, and else branches: the largest boxes that are left become
children one by one, the rest one more. Each child gets the bound that the kernel knows of its boxes.

**Rounds.** Closing everything at once at the value known gives no bound before the very end. So the tree is one round
after another, with the cutoffs of `ltr.exact.weight_space.search.CutoffSchedule`. A round has a cutoff above the value;
its tree is searched for weights above the cutoff; and a last child of the round's node is the next round, which covers
everything once more, with the cutoff as its bound. What is closed within a round is *covered* by that child, so nothing
is lost by closing it above the value. SCIP takes the node of the largest bound first, so it finishes a round before it
begins the next, and its bound is then the cutoff. The last round has the value itself for a cutoff; nothing is covered
by another node, and what is closed is closed for good.

**Account.** A proof is only as good as the largest cutoff at which something was closed for good, or the bound of a
box too narrow to split: `Host.closed`. When no open nodes are left, SCIP has proved that or its best value,
whichever is larger.

*Faces.* Where scaling up is free (`ltr.exact.state.scalable`), the first children are the faces ``w_j = ±1``. They
leave out the inside of the cube, whose weights are worth no more than those they scale up to, and w = 0, whose value
the bound is raised to.

*Tolerances.* SCIP prunes by its bounds within 1e-9. The bounds it is given are raised by more than that, so what it
prunes is no better than its incumbent, and everything else is cut off by the kernel, which rounds outwards. The side
constraints have room for their own tolerance (`ltr.exact.scip.base.side_rows`), and weights that need more than that
tolerance are no incumbents. What SCIP's presolve, propagators, heuristics and cuts could do the kernel does better, so
they are off; linear programs serve side constraints alone.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyscipopt import SCIP_PARAMSETTING, SCIP_PROPTIMING, SCIP_RESULT, Model

from ltr.exact.local_search import search_locally
from ltr.exact.problem import FloatArray, Problem
from ltr.exact.scip.base import Constraints, Guard, ScipSolution, Variable, linear, objective_unit, side_rows
from ltr.exact.scip.solver import LONGEST_SEARCH, STATUS, Constraint, attempt, configure, optimize
from ltr.exact.solution import Status
from ltr.exact.state import Ending, Interrupts, SolveState, Stopped
from ltr.exact.weight_space import WeightSpaceSearch, available_threads
from ltr.exact.weight_space.search import (
    MOMENT,
    CutoffSchedule,
    WorkerPool,
    offer_candidate,
    out_of_reach,
    quantum,
    settle_narrow,
)
from ltr.exact.weight_space.space import BEYOND, Boxes, Space, space_of

UNCOVERED = -BEYOND
"""A cutoff below every value: nothing that is closed is covered by another node."""

_RESTARTS = 100
_SLACK = 4e-9  # added to bounds that SCIP compares within _EPSILON
_EPSILON = 1e-9
_OUTWARD = 1e-9  # SCIP's tolerance of feasibility, by which bounds of nodes are widened
_OUTWARD_MANY = 1e-7  # of the statistic's size: many times SCIP's tolerance of bounds
_ALONE = 7  # boxes that become a region of their own, at most
_FIRST = 1_000_000  # pairs examined in one node at first
_SHARE = 1 / 32  # and later on, of all pairs examined so far
_MANY = 1_000_000  # restarts: as many as fit the time
_ROUNDING = 1e-11  # of the statistic's size
_PIECE = 0.25  # seconds of local search between two checks for Ctrl-C
_WORTHWHILE = 20_000_000  # pairs examined between two local searches, at least: half a second


@dataclass(frozen=True)
class HostedSearch:
    """Local search, then branch and bound by SCIP with the weight-space search in its nodes.

    Attributes:
        threads: of the kernel; None is one for each processor that the process may use.
        local_search: share of the time given to the local search, at first and between rounds; 0 skips it.

    Raises:
        ValueError: a field out of range.

    Examples:
        >>> from ltr.exact import Limits, RerankProblem, solve
        >>> problem = RerankProblem([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]], [0, 1, 0], max_nonzeros=1)
        >>> solution = solve(problem, HostedSearch(threads=1, local_search=0), Limits(time_limit=60))
        >>> solution.status, solution.value, solution.weights.tolist()
        (<Status.OPTIMAL: 'optimal'>, 1.0, [0.0, -1.0])
    """

    threads: int | None = None
    local_search: float = 0.1

    def __post_init__(self) -> None:
        WeightSpaceSearch(threads=self.threads, local_search=self.local_search)  # the rules are the same

    def check(self, problem: Problem) -> None:
        """Every problem will do."""

    def prepare(self) -> None:
        """Compile the search, or load what was compiled before."""
        WeightSpaceSearch().prepare()

    def run(self, state: SolveState) -> Ending:
        """Search locally, then branch and bound."""
        state.offer(np.zeros(state.problem.d))
        if (ending := out_of_reach(state)) is not None:
            search_locally(state, state.remaining)
            return ending
        if self.local_search > 0:
            search_locally(state, min(self.local_search * state.limits.time_limit, LONGEST_SEARCH), _RESTARTS)
        threads = self.threads or available_threads()
        with Interrupts() as interrupts, Host(state, threads, self.local_search, interrupts) as host:
            return attempt(host.guard, host.solve)


@dataclass(frozen=True)
class Region:
    """Boxes that share a node of SCIP's tree.

    Attributes:
        boxes: their union contains the node.
        covered: cutoff up to which another node covers them, an integer of the space.
        bound: upper bound of the objective on them.
    """

    boxes: Boxes
    covered: int
    bound: float


def _cut(left: list[Boxes]) -> list[Boxes]:
    """Return the largest boxes one by one, the others together."""
    # the search hands the deepest boxes back last
    alone = left[: _ALONE if len(left) > _ALONE + 1 else len(left)]
    rest = left[len(alone) :]
    return [*alone, Boxes.joined(rest)] if rest else alone


def _cube(space: Space) -> Boxes:
    """Return the whole cube as one box, for a node of which nothing is known but its bounds."""
    d = space.T.shape[1]
    box = Boxes.empty(1, d + 1)
    box.low[:, :d], box.low[:, d], box.high[:] = -1.0, 1.0, 1.0
    box.used[0] = space.free
    box.bound[:] = np.iinfo(np.int64).max
    return box


class Host:
    """A SCIP model that hosts the search of one problem; a context manager that frees the model.

    Attributes:
        model: ready to solve.
        w, gamma, theta: its variables; no gamma where support has neither price nor limit.
        unit: the power of two that the objective is divided by.
        guard: keeps exceptions of callbacks.
        closed: the largest objective at which something was closed for good; -inf before there is any.
        pending: bound of the node at hand or its children.
    """

    def __init__(self, state: SolveState, threads: int, local_share: float, interrupts: Interrupts) -> None:
        self.state, self.unit, self.guard = state, objective_unit(state.problem), Guard()
        self.searchable = space_of(state.problem, tick=state.check)
        self.closed, self.pending = -math.inf, state.bound
        self._interrupts, self._workers = interrupts, WorkerPool(self.searchable, threads, self._found, self._settle)
        self._size = state.size  # for the tolerance of cutoffs
        self._spent = 0  # pairs examined
        self._schedule: CutoffSchedule | None = None
        self._round = (0, 0.0)  # work and seconds at the beginning of the round
        # the local search: its share of the time, when it last ended, the pairs examined until then, and its number
        self._local_share, self._looked, self._looked_spent, self._turn = local_share, state.seconds, 0, 0
        self._told = -math.inf
        self.model = Model("weight_space")
        self.model.hideOutput()
        self._add_variables()
        self._add_constraints()
        self._configure()
        # above integrality, for the handler branches on everything, and behind the side constraints
        Handler(self).include(
            self.model,
            "weight_space",
            enfopriority=1000,
            chckpriority=-1000,
            propfreq=1,
            delayprop=True,
            proptiming=SCIP_PROPTIMING.BEFORELP,
        )

    def __enter__(self) -> Host:
        self._workers.__enter__()
        self.tell(first=True)
        return self

    def __exit__(self, *error: Any) -> None:  # noqa: ANN401 (as Python defines it)
        self._workers.__exit__(*error)
        # models with Python plugins are reference cycles
        self.model.free()

    def solve(self) -> Ending:
        """Run SCIP, and say how the solve ends."""
        state, claim = self.state, optimize(self.model, self.state)
        complete = claim in ("optimal", "infeasible")  # no open nodes are left
        bound = self.proven if complete else self.bound
        if math.isfinite(bound):
            state.prove(bound)
        self.guard.check()
        message, status = f"{self._workers.boxes} boxes in {state.nodes} nodes", STATUS[claim]
        if status is None:
            return Ending(Status.INEXACT, f"SCIP gave up with status {claim!r}")
        if not complete:
            return Ending(status, message)
        if state.value > -math.inf:
            return Ending(Status.OPTIMAL, message)
        # some box could not be closed, and yet no weights came out of it
        return Ending(Status.INEXACT if self.closed > -math.inf else Status.INFEASIBLE, message)

    # --- the model ---------------------------------------------------------------------------------------------

    def _add_variables(self) -> None:
        problem, space = self.state.problem, self.searchable.space
        self.w = [self.model.addVar(f"w_{j}", lb=-1.0, ub=1.0) for j in range(problem.d)]
        self.gamma: list[Variable] = []
        if space.sparse:
            price = problem.price / self.unit
            for j, counts in enumerate(problem.counted.tolist()):
                gamma = self.model.addVar(f"gamma_{j}", vtype="B", lb=float(not counts), obj=-price * counts)
                self.gamma.append(gamma)
        self.theta = self.model.addVar("theta", lb=None, ub=self.raised(problem.trivial_bound), obj=1.0)
        self.model.setMaximize()
        for variable in (*self.w, *self.gamma, self.theta):
            self.model.markDoNotMultaggrVar(variable)

    def _add_constraints(self) -> None:
        problem, space, model = self.state.problem, self.searchable.space, self.model
        for j, (g, w) in enumerate(zip(self.gamma, self.w, strict=False)):
            model.addCons(w - g <= 0, name=f"support_plus_{j}")
            model.addCons(-w - g <= 0, name=f"support_minus_{j}")
        if space.support < problem.d:
            model.addCons(linear([1.0] * problem.d, self.gamma) <= space.support, name="max_nonzeros")
        if problem.constraints is not None:
            for r, (row, limit) in enumerate(zip(*side_rows(problem.constraints), strict=True)):
                if np.any(row):  # the kernel sees to the others
                    model.addCons(linear(row, self.w) <= float(limit), name=f"side_{r}")

    def _configure(self) -> None:
        model = self.model
        configure(model, self.state.limits, _EPSILON)
        model.setPresolve(SCIP_PARAMSETTING.OFF)
        model.setHeuristics(SCIP_PARAMSETTING.OFF)
        parameters: dict[str, Any] = {
            "presolving/maxrestarts": 0,
            "misc/usesymmetry": 0,
            "misc/scaleobj": False,
            "misc/catchctrlc": False,  # `Interrupts` notes it, also while the kernel runs
            "conflict/enable": False,
            "lp/solvefreq": 1 if len(self.searchable.space.b) else -1,
            "nodeselection/bfs/stdpriority": 1_000_000,
            "nodeselection/bfs/minplungedepth": 0,
            "nodeselection/bfs/maxplungedepth": 0,
        }
        known = model.getParams()
        parameters |= {name: -1 for name in known if name.startswith("propagating/") and name.endswith("/freq")}
        for name, value in parameters.items():
            model.setParam(name, value)

    # --- bounds and values -------------------------------------------------------------------------------------

    def raised(self, bound: float) -> float:
        """Return a bound in SCIP's unit, with room for SCIP's tolerance."""
        scaled = bound / self.unit
        return scaled + _SLACK * max(1.0, abs(scaled))

    @property
    def proven(self) -> float:
        """The bound once no open nodes are left."""
        return max(self.closed, self.state.value, self.state.zero_value)

    @property
    def bound(self) -> float:
        """The bound while there are; infinite where SCIP has none."""
        dual = float(self.model.getDualbound())
        known = dual * self.unit if abs(dual) < self.model.infinity() else -math.inf
        # a node that SCIP had to leave is not in its bound
        return max(known, self.pending, self.proven)

    @property
    def goal(self) -> float:
        """The objective up to which nodes may be closed for good."""
        value = self.state.value
        if value == -math.inf:
            return value
        # less than the gap allows, for what the kernel rounds
        return max(value, value + self.state.limits.gap * abs(value) - _ROUNDING * self.state.size)

    def check(self) -> None:
        """Raise `Stopped` where the solve has to end."""
        if self._interrupts.count:
            raise Stopped(Status.INTERRUPTED)
        self.state.check()

    def _found(self, w: FloatArray) -> None:
        offer_candidate(self.state, w, sparse=bool(self.gamma))

    def _settle(self, box: Boxes) -> int:
        bound = settle_narrow(self.state, self.state.problem, self.searchable, box)
        self._workers.least_cutoff = max(self._workers.least_cutoff, self.cutoff(self.goal))
        return bound

    # --- searching ---------------------------------------------------------------------------------------------

    def cutoff(self, value: float) -> int:
        """Return the cutoff for weights above a value, as an integer of the space; `UNCOVERED` for -inf."""
        return UNCOVERED if value == -math.inf else self.searchable.cutoff(value, self._size)

    def search(self, region: Region) -> list[Region]:
        """Search a region for weights above `goal` and above what another node covers.

        Returns:
            The regions that are left, cut for branching; none where all is closed. Where `check` ends the search,
            nothing is closed.
        """
        if len(region.boxes.bound) == 0:
            return []
        cutoff, allowance = max(region.covered, self.cutoff(self.goal)), max(_FIRST, _SHARE * self._spent)
        done = self._workers.close(region.boxes, cutoff, self.check, allowance)
        self._spent += done.spent
        closed = max(done.cutoff, done.unresolved)
        if closed > region.covered:
            self.closed = max(self.closed, self.searchable.objective(closed))
        left = []
        for part in _cut(done.left):
            bound = self.searchable.objective(int(part.bound.max()))
            left.append(Region(part, region.covered, min(region.bound, bound)))
        return left

    def search_locally(self) -> None:
        """Look for better weights, for a share of the time spent since the last look."""
        if self._local_share == 0 or self._spent - self._looked_spent < _WORTHWHILE:
            return
        until = self.state.seconds + self._local_share * (self.state.seconds - self._looked)
        while (left := until - self.state.seconds) > 0:
            self.check()
            self._turn += 1
            search_locally(self.state, min(left, _PIECE), _MANY, turn=self._turn)
        self._looked, self._looked_spent = self.state.seconds, self._spent

    def next_cutoff(self, bound: float) -> float:
        """Return the cutoff of the round that begins: the value itself for the last."""
        state, spent = self.state, self._spent
        if self._schedule is None:
            # a host's tolerances keep its bounds apart from the values, so there is no telling smaller gaps from none
            few = max(quantum(self.searchable), _OUTWARD_MANY * state.size)
            self._schedule = CutoffSchedule(bound - state.value, few)
        else:
            work, began = self._round
            self._schedule.advance(spent - work, state.remaining / max(state.seconds - began, MOMENT))
        self._round = (spent, state.seconds)
        return state.value + self._schedule.distance

    def tell(self, *, first: bool = False) -> None:
        """Hand the best weights to SCIP."""
        if self.state.value <= self._told:
            return
        self._told, w = self.state.value, self.state.weights
        solution = self.model.createSol()
        for variable, value in zip(self.w, w.tolist(), strict=True):
            self.model.setSolVal(solution, variable, value)
        used = (w != 0) | ~self.state.problem.counted
        for variable, value in zip(self.gamma, used, strict=False):
            self.model.setSolVal(solution, variable, float(value))
        self.model.setSolVal(solution, self.theta, self.state.problem.statistic_value(w) / self.unit)
        if first:
            self.model.addSol(solution)
        else:
            self.model.trySol(solution, printreason=False)


class Handler(Constraint):
    """The constraint ``theta <= statistic(w)``: searches nodes, cuts them off, branches."""

    def __init__(self, host: Host) -> None:
        super().__init__(host.guard, host.theta)
        self.host = host
        self._regions: dict[int, Region] = {}
        self._rounds = {1}  # numbers of the nodes that begin a round; the root does
        self._node = 0
        self._children: list[Region] = []
        self._next_bound: float | None = None

    # --- callbacks ---------------------------------------------------------------------------------------------

    def consprop(self, *_: object) -> dict[str, Any]:
        """Search the node."""
        if self.model.inProbing():
            return {"result": SCIP_RESULT.DIDNOTRUN}
        done = self.guard.run(self.model, self._searched, default=False)
        return {"result": SCIP_RESULT.CUTOFF if done else SCIP_RESULT.DIDNOTFIND}

    def consenfolp(self, *_: object) -> dict[str, Any]:
        """Branch."""
        branched = self.guard.run(self.model, self._branch, default=None)
        if branched is None:
            # the solve ends: keep the node open
            self.model.createChild(0.0, self.model.getCurrentNode().getEstimate())
        return {"result": SCIP_RESULT.CUTOFF if branched == 0 else SCIP_RESULT.BRANCHED}

    consenfops = consenforelax = consenfolp  # type: ignore[assignment]

    def conslock(self, constraint: Constraints, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Say that raising theta or moving a weight may break the constraint."""
        self.model.addVarLocksType(self.theta, locktype, nlocksneg, nlockspos)
        both = nlockspos + nlocksneg
        for variable in self.host.w:
            self.model.addVarLocksType(variable, locktype, both, both)

    # --- nodes -------------------------------------------------------------------------------------------------

    def holds(self, solution: ScipSolution) -> bool:
        """Evaluate the weights, whose side constraints SCIP knows with more room."""
        w = np.clip([self.model.getSolVal(solution, v) for v in self.host.w], -1.0, 1.0)
        theta = self.host.unit * float(self.model.getSolVal(solution, self.theta))
        problem = self.host.state.problem
        value = problem.statistic_value(w)
        return problem.feasible(w) and theta <= value + _EPSILON * max(self.host.unit, abs(value))

    def _searched(self) -> bool:
        """Search the node at hand, once; whether all of it is closed."""
        host, node = self.host, self.model.getCurrentNode()
        if node.getNumber() == self._node:
            return not self._children and self._next_bound is None
        region = self._regions.pop(node.getNumber(), None)
        bound = min(-float(node.getLowerbound()) * host.unit, host.state.problem.trivial_bound)
        host.pending = bound if region is None else min(bound, region.bound)
        host.state.observe(host.bound, nodes=int(self.model.getNTotalNodes()))
        host.check()
        if node.getNumber() in self._rounds:
            self._rounds.discard(node.getNumber())
            self._begin_round(host.pending)
        else:
            region = region or Region(_cube(host.searchable.space), UNCOVERED, host.pending)
            self._children, self._next_bound = host.search(self._clipped(region)), None
        # only now: what an exception ended is not searched
        self._node = node.getNumber()
        host.tell()
        done = not self._children and self._next_bound is None
        if done:
            host.pending = -math.inf
        return done

    def _begin_round(self, bound: float) -> None:
        host = self.host
        host.search_locally()
        covered, self._next_bound = UNCOVERED, None
        cutoff = host.next_cutoff(bound)
        if cutoff > host.goal:
            covered = host.cutoff(cutoff)
            self._next_bound = host.searchable.objective(covered)
        roots = host.searchable.roots  # each a region; w = 0 is in none of them where scaling is free
        self._children = [Region(roots.rows(slice(r, r + 1)), covered, bound) for r in range(len(roots.bound))]

    def _clipped(self, region: Region) -> Region:
        """Return the boxes of a region within the bounds of the node at hand, rounded outwards."""
        low, high, used, unused = self._bounds()
        d, boxes = len(low), region.boxes.rows(slice(None))
        np.maximum(boxes.low[:, :d], low - _OUTWARD, out=boxes.low[:, :d])
        np.minimum(boxes.high[:, :d], high + _OUTWARD, out=boxes.high[:, :d])
        kept = ~((boxes.used[:, :d] != 0) & unused).any(axis=1)
        kept &= ((boxes.low[:, :d] <= 0) & (boxes.high[:, :d] >= 0) | ~unused).all(axis=1)
        boxes.low[:, :d][:, unused] = boxes.high[:, :d][:, unused] = 0.0
        boxes.used[:, :d][:, used] = 1
        kept &= (boxes.low <= boxes.high).all(axis=1)
        return dataclasses.replace(region, boxes=boxes.rows(np.flatnonzero(kept)))

    def _bounds(self) -> tuple[FloatArray, FloatArray, NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the node's bounds on the weights, and which weights have their support fixed to 1 and to 0."""
        w = [self.model.getTransformedVar(v) for v in self.host.w]
        gamma = [self.model.getTransformedVar(v) for v in self.host.gamma]
        low, high = np.array([v.getLbLocal() for v in w]), np.array([v.getUbLocal() for v in w])
        used, unused = (np.zeros(len(w), dtype=bool) for _ in range(2))
        used[: len(gamma)] = [v.getLbLocal() > 0.5 for v in gamma]
        unused[: len(gamma)] = [v.getUbLocal() < 0.5 for v in gamma]
        return low, high, used, unused

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

    def _child(self, bound: float) -> Any:  # noqa: ANN401 - pyscipopt has no types
        raised = self.host.raised(bound)
        node = self.model.createChild(0.0, -raised)
        self.model.updateNodeLowerbound(node, -raised)
        return node

    def _add_child(self, region: Region) -> None:
        host, model, d = self.host, self.model, self.host.state.problem.d
        node = self._child(region.bound)
        self._regions[node.getNumber()] = region
        boxes = region.boxes
        low, high = boxes.low[:, :d].min(axis=0), boxes.high[:, :d].max(axis=0)
        local_low, local_high, _, _ = self._bounds()
        for j in range(d):
            variable = model.getTransformedVar(host.w[j])
            if low[j] > local_low[j]:
                model.chgVarLbNode(node, variable, float(low[j]))
            if high[j] < local_high[j]:
                model.chgVarUbNode(node, variable, float(high[j]))
        price = host.state.problem.price * (host.searchable.space.support - len(host.state.problem.free))
        theta, ub = model.getTransformedVar(self.theta), host.raised(region.bound + price)
        if ub < theta.getUbLocal():
            model.chgVarUbNode(node, theta, ub)
        for j, gamma in enumerate(host.gamma):
            if boxes.used[:, j].all():
                model.chgVarLbNode(node, model.getTransformedVar(gamma), 1.0)
            elif low[j] == 0 == high[j]:
                model.chgVarUbNode(node, model.getTransformedVar(gamma), 0.0)
