"""What came of demands on a ranked list: which the fitted ranker meets, and what they cost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ltr.exact import Limits, Progress, RerankProblem, Solution, solve
from ltr.exact.cards import CardProblem
from ltr.exact.solution import Status
from ltr.exact.solve import Solver
from ltr.list_demands import Asked, GivenDemands, OnTop
from ltr.rankers.inputs import FloatArray, IntArray

__all__ = ["DemandOutcome", "DemandPrice", "ReachedDemand"]

_RESAMPLES = 400
_SECONDS = 10.0  # for the most that can be reached of a demand that is not met


@dataclass(frozen=True)
class ReachedDemand:
    """A demand on a ranked list, what it measures, and the value that a fitted ranker reaches on its training list."""

    demand: str
    what: str
    value: float
    met: bool

    def __str__(self) -> str:
        return f"{self.demand}: {'met' if self.met else 'not met'}, by {self.value:.4g}"


@dataclass(frozen=True)
class DemandPrice:
    """What demands cost on the training list: the largest values found, and bounds, with them and without (`free`).

    Examples:
        >>> price = DemandPrice("dcg", value=9.92, bound=9.93, free=10.0, free_bound=10.01)
        >>> price.of(["share(sex = F) @50 >= 0.4"])
        'share(sex = F) @50 >= 0.4 costs 0.8 % of the dcg (proven: at least 0.7 %, at most 0.9 %)'
        >>> DemandPrice("dcg", 10.0, 10.0, 10.0, 10.0).of(["recall@50 >= 0.4"])
        'recall@50 >= 0.4 costs nothing: the best weights meet it anyway (proven)'
    """

    statistic: str
    value: float
    bound: float
    free: float
    free_bound: float

    @property
    def cost(self) -> float:
        """The difference between the best values found."""
        return max(0.0, self.free - self.value)

    @property
    def least(self) -> float:
        """The proven least difference between the largest values with the demands and without."""
        return max(0.0, self.free - self.bound)

    @property
    def most(self) -> float:
        """The proven largest difference between them."""
        return max(0.0, self.free_bound - self.value)

    def less(self, constant: float) -> DemandPrice:
        """Return the price where all values are less by a constant."""
        values = (value - constant for value in (self.value, self.bound, self.free, self.free_bound))
        return DemandPrice(self.statistic, *values)

    def of(self, demands: Sequence[str]) -> str:
        """Return the price of these demands in a sentence."""
        size = self.free if self.free > 0 else 1.0
        cost, least, most = (self._share(one) for one in (self.cost, self.least, self.most))
        rounding, several = 1e-9 * size, len(demands) > 1
        said = f"{' and '.join(demands)} cost{'' if several else 's'}"
        of = f"of the {self.statistic}" if self.free > 0 else self.statistic
        if self.cost <= rounding:
            sure = self.most <= rounding
            best = f"the best weights {'' if sure else 'known '}meet {'them' if several else 'it'} anyway"
            return f"{said} nothing: {best} (proven{'' if sure else f': at most {most} {of}'})"
        limits = "" if self.most - self.least <= rounding else f": at least {least}, at most {most}"
        return f"{said} {cost} {of} (proven{limits})"

    def _share(self, cost: float) -> str:
        if self.free <= 0:
            return f"{cost:.3g}"
        share = 100 * cost / self.free
        return f"{share:.{3 if share >= 10 else 2}g} %" if share > 1e-6 else "0 %"


@dataclass(frozen=True)
class DemandOutcome:
    """What came of the demands of a fit, in their order; the `price` is None where it was not computed.

    `free` says that the same ranker is chosen without the demands.
    """

    reached: tuple[ReachedDemand, ...]
    price: DemandPrice | None = None
    free: bool = False

    @property
    def met(self) -> bool:
        """Whether all demands are met on the training list."""
        return all(one.met for one in self.reached)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.reached), *filter(None, [self.cost])])

    @property
    def cost(self) -> str:
        """What the demands cost, in a sentence; empty where that is not known."""
        demands = [one.demand for one in self.reached]
        if self.price is None and self.free:
            them = ("cost", "them") if len(demands) > 1 else ("costs", "it")
            return f"{' and '.join(demands)} {them[0]} nothing: the ranker that is chosen without {them[1]} is this one"
        return "" if self.price is None else self.price.of(demands)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DemandOutcome:
        """Return the outcome that `to_dict` described."""
        price, reached = values["price"], tuple(ReachedDemand(**one) for one in values["reached"])
        return cls(reached, None if price is None else DemandPrice(**price), values["free"])


def on_new_lists(
    given: GivenDemands, labels: FloatArray, lists: IntArray | None, scores: FloatArray, seed: int
) -> list[dict[str, float | None]]:
    """Return what scores of unseen rows reach of each demand: ``{"value", "low", "high"}``, None where undefined.

    The 90 % interval is that of lists whose rows, or whole queries, are drawn from these at random.
    """
    if not given.demands:
        return []

    def values(rows: IntArray, own: IntArray | None) -> list[float]:
        try:
            asked = given.take(rows).of(labels[rows], own)
        except ValueError:  # no label above 0
            return [math.nan] * len(given.demands)
        return [one.value(scores[rows]) for one in asked]

    found = values(np.arange(len(labels)), lists)
    drawn = np.array([values(*rows) for rows in _drawn(len(labels), lists, np.random.default_rng(seed))])
    drawn = drawn[~np.isnan(drawn).any(axis=1)]
    low, high = np.quantile(drawn, [0.05, 0.95], axis=0) if len(drawn) else np.full((2, len(found)), math.nan)
    numbers = zip(found, low.tolist(), high.tolist(), strict=True)
    keys = ("value", "low", "high")
    return [{key: None if math.isnan(v) else v for key, v in zip(keys, one, strict=True)} for one in numbers]


def _drawn(n: int, lists: IntArray | None, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray | None]]:
    """Yield rows drawn at random, whole lists where there are several, and the list of each."""
    if lists is None:
        yield from ((rng.integers(0, n, n), None) for _ in range(_RESAMPLES))
        return
    members = np.split(np.argsort(lists, kind="stable"), np.cumsum(np.bincount(lists))[:-1])
    for _ in range(_RESAMPLES):
        chosen = [members[at] for at in rng.integers(0, len(members), len(members))]
        yield np.concatenate(chosen), np.repeat(np.arange(len(chosen)), list(map(len, chosen)))


def outcome_of(
    asked: Sequence[Asked], scores: FloatArray, price: DemandPrice | None = None, *, free: bool = False
) -> DemandOutcome | None:
    """Return what scores of the rows of a fit reach; None without demands."""
    if not asked:
        return None
    reached = [ReachedDemand(one.text, one.what, one.value(scores), one.met(scores)) for one in asked]
    return DemandOutcome(tuple(reached), price, free)


def solve_under(
    problem: RerankProblem | CardProblem,
    method: str | Solver,
    limits: Limits,
    statistic: str,
    *,
    warm_starts: Sequence[FloatArray],
    on_progress: Progress | None,
) -> tuple[Solution, DemandPrice]:
    """Return the best weights under the demands of a problem, and what these cost; the limits are those of each solve.

    The problem without the demands is solved first, whose bound holds with them, too.
    """
    free = solve(dataclasses.replace(problem, demands=()), method, limits, warm_starts=warm_starts)
    if problem.feasible(free.weights):
        if on_progress is not None:
            for point in free.trace:
                on_progress(point)
        return free, DemandPrice(statistic, free.value, free.bound, free.value, free.bound)
    stopped = free.status is Status.INTERRUPTED
    if stopped:
        limits = dataclasses.replace(limits, time_limit=min(1.0, limits.time_limit))
    found = solve(problem, method, limits, warm_starts=[*warm_starts, free.weights], on_progress=on_progress)
    if found.value > -math.inf and free.bound < found.bound:
        found = dataclasses.replace(found, bound=max(found.value, free.bound))
    if stopped:
        found = dataclasses.replace(found, status=Status.INTERRUPTED)
    # weights under the demands are weights without them
    best = max(free.value, found.value)
    return found, DemandPrice(statistic, found.value, found.bound, best, max(best, free.bound))


def refuse_settled(asked: Sequence[OnTop], remedy: str = "Ask for less, or rerank more rows") -> None:
    """Raise ValueError where no order of the tops meets a demand."""
    if settled := [one for one in asked if one.demand is None and not one.met]:
        told = "; ".join(f"{one.text}: the most that can be reached is {one.most:.4g}" for one in settled)
        raise ValueError(f"demands: no order of the rows that are reranked meets them: {told}. {remedy}")


REMEDY = "Ask for less, rerank more rows (a larger top_k), or let the weights correct the base score (base_score=True)"
"""What to do about demands that no weights meet."""


def not_met(
    problem: RerankProblem | CardProblem,
    method: str | Solver,
    limits: Limits,
    asked: Sequence[OnTop],
    solution: Solution,
    what: str = "weights",
    remedy: str = REMEDY,
) -> ValueError:
    """Return the error that no weights are known to meet the demands of a problem, with the most of each."""
    limits = dataclasses.replace(limits, time_limit=min(_SECONDS, limits.time_limit))
    lines, proven = [], solution.status is Status.INFEASIBLE
    for at, one in enumerate(asked):
        assert one.demand is not None
        others: Any = tuple(other for number, other in enumerate(problem.demands) if number != at)
        options: dict[str, Any] = {"y": one.demand.labels, "gain": "linear", "C": 0.0}
        options |= {"normalize": False} if isinstance(problem, RerankProblem) else {}
        most = dataclasses.replace(problem, statistic=one.demand.statistic, demands=others, **options)
        found = solve(most, method, limits)
        beside = f", beside the other{'s' * (len(others) > 1)}," * bool(others)
        if found.value == -math.inf or found.value >= float(one.demand.least):
            continue
        value, bound = (f"{one.whole(each):.4g}" for each in (found.value, found.bound))
        proven = proven or found.bound < float(one.demand.least)
        limit = "" if found.status is Status.OPTIMAL else f" as far as known, and at most {bound}"
        lines.append(f"{one.text}: the most that can be reached{beside} is {value}{limit}")
    if not lines:
        lines = [f"{' and '.join(one.text for one in asked)}: not together"]
    how = f"no {what} meet the demands (proven)" if proven else f"no {what} are known that meet the demands"
    return ValueError(f"demands: {how}: {'; '.join(lines)}. {remedy}")
