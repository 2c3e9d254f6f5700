"""The front of two statistics: how much of one has to be given up for how much of the other, proven point by point.

A pair of values (S(w), S_2(w)) is on the front if no feasible weights have a larger value of one and no smaller value
of the other. The points are found from the end with the largest S on. Each takes two problems with a demand: the
largest S among weights that bring S_2 to a least value, then the largest S_2 among those that keep this S. The next
least value is one step beyond the S_2 reached, until no weights reach it, which is proven too. So what lies between two
points that follow each other is less than one step better in S_2.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ltr.checks import as_float
from ltr.exact import tuning
from ltr.exact.constraints import DEMAND_TOLERANCE, Demand
from ltr.exact.problem import FloatArray
from ltr.exact.reranking import RerankProblem
from ltr.exact.solution import Solution, Status
from ltr.exact.solve import solve
from ltr.exact.state import Limits
from ltr.statistics import RankStatistic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SMALLEST = 10 * DEMAND_TOLERANCE  # of a step, relative to the largest value


@dataclass(frozen=True)
class FrontPoint:
    """A point of a front: weights, (d,), and the two statistics at them.

    No weights with at least this `second` have a first statistic above `first_bound`, and none with at least this
    `first` a second one above `second_bound`; the point is `proven` where both bounds are attained.
    """

    weights: FloatArray = field(repr=False)
    first: float
    second: float
    first_bound: float
    second_bound: float
    proven: bool


@dataclass(frozen=True, repr=False)
class Front:
    """The points of a front, from the largest first statistic to the largest second one.

    Attributes:
        points: the points.
        names: names of the two statistics.
        step: difference of the second statistic up to which points are left out.
        complete: whether it is proven that no weights have a second statistic one step beyond the last point's.
        seconds: wall time.
    """

    points: tuple[FrontPoint, ...]
    names: tuple[str, str]
    step: float
    complete: bool
    seconds: float

    def __repr__(self) -> str:
        proven = sum(point.proven for point in self.points)
        ending = "complete" if self.complete else "not complete"
        return f"Front({len(self.points)} points of {' and '.join(self.names)}, {proven} proven, {ending})"

    @property
    def prices(self) -> FloatArray:
        """What each point gives up of the largest first statistic, as a share of it, (points,)."""
        values = np.array([point.first for point in self.points])
        return 1.0 - values / values[0] if len(values) and values[0] else np.zeros(len(values))

    def plot(self) -> Figure:
        """Return a picture of the front as a matplotlib figure: points, and the bounds of those that are not proven."""
        from ltr.display.figures import front_figure

        values = [(point.second, point.first, point.first_bound) for point in self.points]
        return front_figure(self.names, values)


def front(
    problem: RerankProblem,
    statistic: RankStatistic | str,
    labels: ArrayLike | None = None,
    *,
    normalize: bool = False,
    name: str | None = None,
    step: float | None = None,
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    time_limit: float = 600.0,
    warm_starts: Sequence[ArrayLike] = (),
    should_stop: Callable[[], bool] | None = None,
) -> Front:
    """Return the front of a problem's statistic and another one of the same rows.

    Args:
        problem: the problem; demands and everything else that it asks of weights hold for all points, C is left out.
        statistic, labels, normalize: the second statistic, as for `Demand`.
        name: what the second statistic is called; None for its formula.
        step: least difference of the second statistic between two points; None for a twentieth of its range, or for
            its unit where it is counted in whole numbers and that is more.
        limits, time_limit: limits of each solve, of which a point takes two, and seconds for everything.
        warm_starts: weights to start from.
        should_stop: called several times per second; True ends the search with the points found by then.

    Raises:
        ValueError: an argument breaks its rule, or no feasible weights are found.

    Examples:
        >>> X, y, women = [[3.0, 0.0], [2.0, 1.0], [1.0, 3.0]], [1, 1, 0], [0, 0, 1]
        >>> found = front(RerankProblem(X, y), "hits@1", women)
        >>> [(round(point.first, 4), point.second) for point in found.points], found.complete
        ([(1.6309, 0.0), (1.1309, 1.0)], True)
    """
    if not isinstance(problem, RerankProblem):
        raise ValueError(f"problem must be a RerankProblem, got {type(problem).__name__}")
    if step is not None and not 0 < as_float(step) < math.inf:
        raise ValueError(f"step must be a number > 0 or None, got {step!r}")
    began, own = time.monotonic(), dataclasses.replace(problem, C=0.0)
    known = [problem.in_box(w) for w in warm_starts]

    def left() -> float:
        return 0.0 if should_stop is not None and should_stop() else began + time_limit - time.monotonic()

    def solved(asked: RerankProblem) -> Solution:
        most = dataclasses.replace(limits, time_limit=min(limits.time_limit, max(left(), 1e-3)))
        found = solve(asked, limits=most, warm_starts=known, should_stop=should_stop)
        if math.isfinite(found.value):
            known.append(found.weights)
        return found

    points: list[FrontPoint] = []
    other, complete, asked = own.other(statistic, labels, normalize=normalize), False, own
    while left() > 0:
        first = solved(asked)
        if not math.isfinite(first.value):
            complete = first.status is Status.INFEASIBLE
            break
        second = solved(own.other(statistic, labels, normalize=normalize, least=first.value))
        weights = second.weights if math.isfinite(second.value) else first.weights
        value, reached = own.statistic_value(weights), other.statistic_value(weights)
        proven = first.status is Status.OPTIMAL and second.status is Status.OPTIMAL
        points.append(FrontPoint(weights, value, reached, max(first.bound, value), max(second.bound, reached), proven))
        if step is None:
            largest = solved(other).bound if len(points) == 1 else reached
            step = max((largest - reached) / tuning.FRONT_STEPS, other.step, _SMALLEST * other.trivial_bound)
        if (least := reached + step) > other.trivial_bound * (1 + DEMAND_TOLERANCE):
            complete = True
            break
        demand = Demand(statistic, least, labels, normalize=normalize)
        asked = dataclasses.replace(own, demands=(*own.demands, demand))
    if not points:
        raise ValueError(f"problem must have feasible weights, got none{'' if complete else ' in the time given'}")
    text = name or str(Demand(statistic, 0.0, labels, normalize=normalize)).removesuffix(" >= 0")
    own_name = f"{'normalised ' if problem.normalize else ''}{problem.statistic}"
    return Front(tuple(points), (own_name, text), step or 0.0, complete, time.monotonic() - began)
