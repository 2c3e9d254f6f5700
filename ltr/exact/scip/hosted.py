r"""The rounds of the box search in SCIP, where side constraints link weights.

A box may satisfy several rows of ``A w <= b`` somewhere without any point that satisfies all, which the search of boxes
finds out only by splitting it again and again; linear programs tell at once. So SCIP gets a model of the weights,

    A w <= b,   -1 <= w_j <= 1,   and what a `ScipConstraints` adds,

and runs each round of `ltr.exact.weight_space.search.Proof`, in which all weights are to be covered at one target. A
node of its tree has boxes that contain the node. A constraint handler searches them up to an allowance of work and cuts
the node off where all are closed. It branches otherwise: each of the largest boxes left becomes a child, and the others
share one more. SCIP propagates the constraints in the nodes and solves their linear programs, and gets no solution: the
round is complete once SCIP finds that it has none.

*Tolerances.* The rows have room for SCIP's tolerance (`ltr.exact.scip.base.side_rows`), and weights that need more than
that of the problem are not accepted. Presolvers, propagators, heuristics and cuts are off: the search does their work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from pyscipopt import SCIP_PARAMSETTING, SCIP_PROPTIMING, SCIP_RESULT, Conshdlr, Model

from ltr.exact import tuning
from ltr.exact.scip.base import Constraints, Guard, ScipSolution, linear, side_rows
from ltr.exact.scip.constraints import ScipConstraints
from ltr.exact.scip.solver import FEASTOL, attempt, configure, ending_of, optimize
from ltr.exact.solution import Status
from ltr.exact.state import Ending, Interrupts
from ltr.exact.weight_space.search import Proof
from ltr.exact.weight_space.space import Boxes

_FIRST_CHOICE = 1_000_000  # priority above those of SCIP's own node selectors


def close_in_scip(proof: Proof) -> None:
    """Close all boxes of a proof's round.

    Raises:
        Stopped: a limit of the solve is reached.
    """
    with Interrupts() as interrupts:
        tree = Tree(proof, interrupts)
        model = tree.new_model()
        try:
            ending = attempt(tree.guard, lambda: _run(model, tree))
        finally:
            model.free()  # models with Python plugins are reference cycles
        interrupts.arm()  # a signal after the last callback
    if proof.ending is None and ending.status is not Status.OPTIMAL:
        proof.ending = ending


def _run(model: Model, tree: Tree) -> Ending:
    """Run SCIP; the status is `OPTIMAL` once all boxes are closed."""
    claim = optimize(model, tree.proof.state)
    tree.proof.state.nodes = tree.proof.boxes
    tree.guard.check()
    return Ending(Status.OPTIMAL) if claim == "infeasible" else ending_of(claim)


class Tree(Conshdlr):
    """A constraint that no weights satisfy: it searches the boxes of nodes, cuts nodes off, and branches.

    Attributes:
        proof: the proof whose round this is.
        guard: keeps exceptions of callbacks.
    """

    def __init__(self, proof: Proof, interrupts: Interrupts) -> None:
        self.proof, self.guard, self._interrupts = proof, Guard(), interrupts
        self._boxes: dict[int, Boxes] = {}  # of nodes that have not been searched
        self._node, self._left = 0, list[Boxes]()  # the last node that was searched, and what is left of its boxes

    def new_model(self) -> Model:
        """Return a model with the side constraints and this one."""
        state, model = self.proof.state, Model("weight_space")
        model.hideOutput()
        self._w = [model.addVar(f"w_{j}", lb=-1.0, ub=1.0) for j in range(state.problem.d)]
        sides = state.problem.sides
        for r, (row, limit) in enumerate(zip(*side_rows(sides), strict=True)):
            if np.any(row):  # the search handles the others
                model.addCons(linear(row, self._w) <= float(limit), name=f"side_{r}")
        if isinstance(sides, ScipConstraints):
            sides.add(model, self._w)
        configure(model, state.limits)
        model.setPresolve(SCIP_PARAMSETTING.OFF)
        model.setHeuristics(SCIP_PARAMSETTING.OFF)
        parameters: dict[str, Any] = {
            "misc/catchctrlc": False,  # `Interrupts` notes it, also while boxes are searched
            "misc/usesymmetry": 0,
            "presolving/maxrestarts": 0,
            "conflict/enable": False,
            "lp/solvefreq": 1,
            "nodeselection/bfs/stdpriority": _FIRST_CHOICE,
            "nodeselection/bfs/maxplungedepth": 0,
        }
        known = model.getParams()
        parameters |= {name: -1 for name in known if name.startswith("propagating/") and name.endswith("/freq")}
        model.setParams(parameters)
        # enforced before integrality, as this handler does all branching
        model.includeConshdlr(
            self,
            "weight_space",
            "boxes of weights",
            enfopriority=1000,
            chckpriority=-1000,
            propfreq=1,
            eagerfreq=1,
            delayprop=True,
            needscons=True,
            proptiming=SCIP_PROPTIMING.BEFORELP,
        )
        model.addPyCons(model.createCons(self, "boxes"))
        return model

    # --- callbacks ---------------------------------------------------------------------------------------------

    def conscheck(self, constraints: Constraints, solution: ScipSolution, *_: object) -> dict[str, Any]:
        """Accept no solution: SCIP is only to find that none is left."""
        return {"result": SCIP_RESULT.INFEASIBLE}

    def consprop(self, *_: object) -> dict[str, Any]:
        """Search the node."""
        if self.model.inProbing():
            return {"result": SCIP_RESULT.DIDNOTRUN}
        left = self.guard.run(self.model, self._search, default=True)
        return {"result": SCIP_RESULT.DIDNOTFIND if left else SCIP_RESULT.CUTOFF}

    def consenfolp(self, *_: object) -> dict[str, Any]:
        """Branch."""
        branched = self.guard.run(self.model, self._branch, default=False)
        return {"result": SCIP_RESULT.BRANCHED if branched else SCIP_RESULT.CUTOFF}

    consenfops = consenforelax = consenfolp  # type: ignore[assignment]

    def conslock(self, constraint: Constraints, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        """Tell SCIP that moving a weight may violate the constraint."""
        both = nlockspos + nlocksneg
        for variable in self._w:
            self.model.addVarLocksType(variable, locktype, both, both)

    # --- nodes -------------------------------------------------------------------------------------------------

    def _search(self) -> bool:
        """Search the current node, unless that is done; return whether any of it is left."""
        number = int(self.model.getCurrentNode().getNumber())
        if number != self._node:
            proof, work = self.proof, max(tuning.REGION_WORK, tuning.REGION_SHARE * self.proof.spent)
            self._interrupts.arm()
            try:
                boxes = self._clipped(self._boxes.pop(number, proof.searchable.roots))
                if number == 1 or len(boxes.bound) == 0:
                    self._left = list(boxes.each())
                else:
                    self._left = _regions(proof.close(boxes, work))
            finally:
                self._interrupts.disarm()
            self._node = number
        return bool(self._left)

    def _clipped(self, boxes: Boxes) -> Boxes:
        """Return boxes within the bounds of the current node, rounded outwards."""
        (low, high), d, boxes = self._bounds(), len(self._w), boxes.rows(slice(None))
        np.maximum(boxes.low[:, :d], low - FEASTOL, out=boxes.low[:, :d])
        np.minimum(boxes.high[:, :d], high + FEASTOL, out=boxes.high[:, :d])
        return boxes.rows(np.flatnonzero((boxes.low <= boxes.high).all(axis=1)))

    def _bounds(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the current node's bounds on the weights, (2, d)."""
        w = [self.model.getTransformedVar(v) for v in self._w]
        return np.array([[v.getLbLocal() for v in w], [v.getUbLocal() for v in w]])

    def _branch(self) -> bool:
        """Make a child of each region that is left; return whether there are any."""
        model, d = self.model, len(self._w)
        if self._search():
            local_low, local_high = self._bounds()
            for boxes in self._left:
                # no bound: the model has no objective, and a bound beyond its value of 0 would cut the child off
                node = model.createChild(0.0, model.getCurrentNode().getEstimate())
                self._boxes[node.getNumber()] = boxes
                low, high = boxes.low[:, :d].min(axis=0), boxes.high[:, :d].max(axis=0)
                for j, variable in enumerate(map(model.getTransformedVar, self._w)):
                    if low[j] > local_low[j]:
                        model.chgVarLbNode(node, variable, float(low[j]))
                    if high[j] < local_high[j]:
                        model.chgVarUbNode(node, variable, float(high[j]))
        return bool(self._left)


def _regions(left: list[Boxes]) -> list[Boxes]:
    """Divide boxes among children: the largest boxes one by one, the others together."""
    # the search hands the deepest boxes back last
    alone = left[: tuning.REGIONS if len(left) > tuning.REGIONS + 1 else len(left)]
    rest = left[len(alone) :]
    return [*alone, Boxes.joined(rest)] if rest else alone
