"""The result of a solve: weights, value, bound, status and trace."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ltr.display.notebooks import fact_table, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Status(enum.Enum):
    """How a solve ended; `advice` says what to do about it.

    ``optimal`` means that value and bound agree to within 1e-9 of the statistic's size, the tolerance of a proof in
    floating point, or to within 1e-12 if no solver claims a proof.
    """

    advice: str

    OPTIMAL = "optimal", "no weights have a larger value"
    GAP_LIMIT = "gap_limit", "stopped at the gap asked for; lower gap for a full proof"
    TIME_LIMIT = "time_limit", "stopped at time_limit; raise it or lower top_k to close the gap"
    NODE_LIMIT = "node_limit", "stopped at node_limit; raise it to close the gap"
    MEMORY_LIMIT = "memory_limit", "stopped at memory_limit; raise it or lower top_k"
    INTERRUPTED = "interrupted", "stopped by the user; the incumbent and the bound are valid"
    HEURISTIC = "heuristic", "a search without a proof; the bound is the trivial one"
    INEXACT = (
        "inexact",
        "the solver ended without a proof that holds exactly, see the message; a larger margin may help",
    )
    INFEASIBLE = "infeasible", "no weights satisfy the constraints and meet the demands"

    def __new__(cls, value: str, advice: str = "") -> Status:
        """Make a status with its advice."""
        status = object.__new__(cls)
        status._value_, status.advice = value, advice
        return status


@dataclass(frozen=True)
class TracePoint:
    """The state of a solve after `seconds`; the other fields are those of a `Solution`."""

    seconds: float
    incumbent: float
    bound: float
    nodes: int
    model_bound: float | None = None

    @property
    def gap(self) -> float:
        """The relative gap at this moment."""
        return relative_gap(self.incumbent, self.bound)


Progress = Callable[[TracePoint], None]
"""A function that is called with every new trace point while a solve runs."""


@dataclass(frozen=True, repr=False)
class Solution:
    """The result of `ltr.exact.solve`, valid whatever stopped the solver.

    Attributes:
        weights: float64 of shape (d,), in [-1, 1]; all zero when nothing better is known.
        value: objective at `weights`, recomputed by the problem, not by the solver.
        bound: value that no feasible weights exceed (up to the solver's tolerance); at least `value`.
        status, method: how the solve ended, and the method that ran.
        seconds: wall time of the whole solve, including warm starts.
        nodes: branch-and-bound nodes, 0 for a search without a tree.
        trace: incumbent and bound over time, seconds ascending.
        message: further information for the user; may be empty.
        model_bound: bound that the solver proved for its own model, None without one. Where the model admits fewer
            weights than the problem, as the paper's ResolvedRank does, it is valid for those only.
    """

    weights: NDArray[np.float64]
    value: float
    bound: float
    status: Status
    seconds: float
    method: str
    nodes: int = 0
    trace: tuple[TracePoint, ...] = field(default=(), repr=False)
    message: str = ""
    model_bound: float | None = None

    @property
    def gap(self) -> float:
        """(bound - value) / |value|: 0 is a proof of optimality; infinite if the value is 0 and the bound is not."""
        return 0.0 if self.status is Status.OPTIMAL else relative_gap(self.value, self.bound)

    def __repr__(self) -> str:
        nonzero = f"{np.count_nonzero(self.weights)} of {len(self.weights)} weights not 0"
        return f"Solution({self.status.value}, {self._values}; {nonzero}; {self.method}, {self.seconds:.2g} s)"

    def _repr_html_(self) -> str:
        facts = {**self.facts, "method": self.method, "seconds": f"{self.seconds:.2g}", "message": self.message}
        weights = [(f"w[{j}]", float(w), float(w)) for j, w in enumerate(self.weights)]
        return fact_table("Solution", facts, weights, "largest weights, of the columns of the problem")

    @property
    def facts(self) -> dict[str, str]:
        """Value, bound, gap and status by name, as texts for tables."""
        return {
            "value": number(self.value),
            "bound": f"{number(self.bound)}: no weights are better",
            "gap": f"{self.gap:.2%}",
            "status": f"{self.status.value}: {self.status.advice}",
        }

    @property
    def _values(self) -> str:
        return f"value {number(self.value)}, bound {number(self.bound)}, gap {self.gap:.2%}"

    def plot(self) -> Figure:
        """Return a picture of the search as a matplotlib figure: how the value rises and the bound falls."""
        from ltr.display.figures import trace_figure

        title = f"{self.method}: {self.status.value}, {self._values}"
        return trace_figure(title, [(point.seconds, point.incumbent, point.bound) for point in self.trace])


def relative_gap(value: float, bound: float) -> float:
    """Return (bound - value) / |value|: 0 if both agree up to rounding, otherwise infinite for the value 0.

    Examples:
        >>> relative_gap(10.0, 10.2)
        0.02
        >>> relative_gap(-math.inf, 3.0)
        inf
    """
    difference = bound - value
    if not math.isfinite(value):
        return math.inf
    if difference <= 1e-12 * max(abs(value), abs(bound)):
        return 0.0
    return math.inf if value == 0 else round(difference / abs(value), 15)
