"""Local search for good weights: exact line searches from many starts, with no proof of optimality.

This is an iterated local search: perturb a local optimum at random, ascend again, and repeat. The exact methods then
improve its weights or prove them optimal. Every line search is exact over the whole line, so a step can cross regions
of worse values, but the method remains a heuristic.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from ltr.exact.levels import NO_PAIRS, PAIR_BYTES, Levels
from ltr.exact.limits import Memory
from ltr.exact.local_search._line_search import State, Tables, ascend, clip, new_memory
from ltr.exact.local_search.separation import separating_weights
from ltr.exact.problem import LinearConstraints, Problem, RerankProblem

FloatArray = NDArray[np.float64]

_TIGHT = 1e-9  # room of a row, relative to its size, from which it is an inequality
_NOISE = 1e-12  # of what is 0 but for rounding
_JUST = 1.0 - 1e-12  # of the way to a side constraint: rounding would lead beyond it
_EXTRA = 8  # random directions a round
_STALE = 30  # ascents without a gain before the search leaves its place
_ELITES = 8
_ROUNDING = 1e-9  # of a margin
_MANY, _MOST = 200_000, 20_000_000  # pairs; a line search of the most takes some seconds
_WORK = 2_000_000  # pairs looked at before the clock is read: about a tenth of a second
_POLL = 0.02  # seconds between two looks at the clock and the caller's wish
_BYTES = PAIR_BYTES + 80  # for each pair: the tables, and a line search's breakpoints and their order


@dataclass(frozen=True)
class LocalSearchResult:
    """The best weights that a local search found.

    Attributes:
        weights: float64 of shape (d,), in [-1, 1]; all zero where no weights satisfy the side constraints.
        value: ``problem.evaluate(weights)``; -inf where no weights satisfy the side constraints.
        evaluations: line searches done.
        seconds: wall time.
        interrupted: whether `should_stop` or Ctrl-C ended the search.
        complete: False if only the starts and single features were tried, because there are too many pairs.
    """

    weights: FloatArray
    value: float
    evaluations: int
    seconds: float
    interrupted: bool = False
    complete: bool = True


def local_search(
    problem: Problem,
    *,
    seed: int = 0,
    starts: Iterable[ArrayLike] = (),
    restarts: int = 500,
    time_limit: float = 10.0,
    memory_limit: float | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> LocalSearchResult:
    """Search for weights with a large objective: ascents from the starts, then from perturbed local optima.

    The result is never worse than any start; nor, unless the time limit cuts the search short, than any single feature,
    than w = 0, or than weights of a linear program that separates short lists of many features. Starts that violate the
    side constraints are first drawn towards the middle of the feasible set. With the same arguments the result is the
    same, unless the time limit cuts the search short. Compiling, once in a process or
    from the cache on disk, is not counted as search time.

    Args:
        problem: a `RerankProblem` or `PairwiseProblem`.
        seed: of all random choices.
        starts: weights (d,) to start from, such as those of surrogate rankers.
        restarts: ascents after those from the starts.
        time_limit: seconds.
        memory_limit: most megabytes to add to the process; None is half of what is free. Where the pairs of the
            problem take more, or are more than 20 million, starts and single features are compared and nothing is
            searched.
        should_stop: asked several times a second; True ends the search.

    Raises:
        ValueError: restarts below 0, time_limit or memory_limit not above 0, or a start of another length or not
            finite.
        TypeError: a problem of another type.

    Examples:
        >>> problem = RerankProblem([[0, 1], [1, 0], [2, 2], [0, 0]], [1, 0, 1, 0], statistic="dcg")
        >>> result = local_search(problem, restarts=10)
        >>> result.value == problem.trivial_bound
        True
    """
    if restarts < 0:
        raise ValueError(f"restarts must be >= 0, got {restarts!r}")
    if not time_limit > 0:
        raise ValueError(f"time_limit must be > 0, got {time_limit!r}")
    if memory_limit is not None and not memory_limit > 0:
        raise ValueError(f"memory_limit must be > 0, got {memory_limit!r}")
    given = [problem.in_box(start) for start in starts]
    pairs = problem.pair_count
    fits = pairs <= _MOST and _BYTES * pairs <= Memory(memory_limit).left
    compile_kernels()
    began = time.perf_counter()
    search = _Search(problem, seed, began + time_limit, pairs, fits)
    with ThreadPoolExecutor(1, thread_name_prefix="local-search") as pool:  # compiled code sees no signal
        running = pool.submit(search.run, given, restarts)
        try:
            while not wait([running], timeout=min(_POLL, max(0.0, search.deadline - time.perf_counter()))).done:
                if should_stop is not None and should_stop():
                    search.interrupted = True
                if search.interrupted or time.perf_counter() > search.deadline:
                    search.stop()
                    wait([running])
        except KeyboardInterrupt:
            search.interrupted = True
        finally:
            search.stop()
        running.result()
    value, weights = search.best
    seconds = time.perf_counter() - began
    return LocalSearchResult(weights, value, search.lines, seconds, search.interrupted, fits)


class _Over(Exception):  # noqa: N818 - a request, not an error
    """Raised where the search has to end."""


class _Search:
    """State of one run: the incumbent, the elites, the clock; it ends at the value of a perfect ranking."""

    def __init__(self, problem: Problem, seed: int, deadline: float, pairs: int, fits: bool) -> None:
        self.problem = problem
        self.rng = np.random.default_rng(seed)
        self.state: State = self.rng.integers(0, 2**63, size=1).astype(np.uint64)
        self.deadline = deadline
        self.interrupted = False
        self.lines = 0
        perfect = problem.trivial_bound
        self.enough = perfect - 1e-12 * abs(perfect)
        self.best: tuple[float, FloatArray] = (-math.inf, np.zeros(problem.d))
        self.elites: list[tuple[float, FloatArray]] = []
        self.space: SearchSpace
        self._many, self._fits = pairs > _MANY, fits
        self._stop = np.zeros(1, dtype=np.uint8)

    def stop(self) -> None:
        """Ask the search to end at once, from another thread."""
        self._stop[0] = 1

    def run(self, given: list[FloatArray], restarts: int) -> None:
        """Search; a search that was asked to end keeps what it has found."""
        for w in given:
            self._offer(w)
        with contextlib.suppress(_Over):
            self._check()
            space = SearchSpace.of(self.problem, self._stop)
            if space is not None:
                self.space = space
                self._search(given, restarts)

    def _search(self, given: list[FloatArray], restarts: int) -> None:
        starts = [self.space.feasible_towards(w) for w in given]
        for w in starts:
            self._offer(w)
        self._check()
        # the problem's own account is the faster one where there are many pairs
        simple = self._try_simple(self._offer) if self._many else None
        if not self._fits:
            return
        levels = self.problem.levels(self._check)
        self.space = self.space.with_pairs(self.problem, levels)
        separating = separating_weights(self.problem, levels, self.deadline - time.perf_counter())
        if separating is not None:
            starts.append(self.space.feasible_towards(to_surface(separating)))
            self._offer(starts[-1])
        if simple is None:
            simple = self._try_simple(self._at_most)
        for w in [*starts, simple]:
            self._ascend(w)
            self._check()
        here: tuple[float, FloatArray] = self.best
        stale = 0
        for _ in range(restarts):
            fresh = stale >= _STALE
            w = self._elsewhere() if fresh else self._kick(here[1])
            value = self._ascend(w)
            if fresh or value > here[0] + 1e-9:
                here, stale = (value, w), 0
            else:
                stale += 1
                if value >= here[0] - 1e-9:
                    here = (value, w)  # the same value elsewhere: a walk on the plateau
            self._check()

    def _try_simple(self, promise: Callable[[FloatArray], float]) -> FloatArray:
        """Offer w = 0, each feature alone with either sign, and the mean difference of the pairs; return the best.

        Args:
            promise: quick upper bound on the value of weights, which are offered if it exceeds the best value.
        """
        axes = np.eye(self.problem.d)
        mean = self.problem.balance @ self.problem.X
        best, largest = axes[0], -math.inf
        for start in (np.zeros(self.problem.d), *axes, *-axes, to_surface(mean)):
            w = self.space.feasible_towards(start)
            value = promise(w)
            if value > self.best[0]:
                self._offer(w)
            if value > largest:
                best, largest = w, value
            self._check()
        return best

    def _ascend(self, w: FloatArray) -> float:
        """Ascend from w, in place; return the objective reached, as the kernels compute it."""
        memory = new_memory(self.problem.d)
        budget = max(1, _WORK // max(1, len(self.space.tables.owner)))
        while True:
            value, left = ascend(self.space.tables, w, self.space.project, _EXTRA, 1, budget, memory, self.state)
            self.lines += budget - left
            if left > 0 or self._over():
                break
        if value > self.best[0] - 1e-9:
            value = self._offer(w)
        if all(abs(value - other) > 1e-9 for other, _ in self.elites):
            self.elites = sorted([*self.elites, (value, w.copy())], key=lambda e: -e[0])[:_ELITES]
        return float(value)

    def _at_most(self, w: FloatArray) -> float:
        """Return the objective at w as the kernels compute it, counting pairs within rounding of the margin as won."""
        tables = self.space.tables
        generous = tables._replace(limit=(1 - _ROUNDING) * tables.limit)
        return float(ascend(generous, w, self.space.project, 0, 1, 0, new_memory(self.problem.d), self.state)[0])

    def _offer(self, w: FloatArray) -> float:
        """Make w the incumbent if the problem evaluates it as better; return its value."""
        if not self.problem.feasible(w):
            return -math.inf
        value = self.problem.evaluate(w)
        if value > self.best[0]:
            self.best = (value, w.copy())
        return value

    def _kick(self, w: FloatArray) -> FloatArray:
        """Change one to three weights by normal steps of a random size; with C > 0 some of them become 0."""
        d = self.problem.d
        chosen = self.rng.choice(d, size=min(d, int(self.rng.integers(1, 4))), replace=False)
        step = np.zeros(d)
        step[chosen] = self.rng.normal(size=len(chosen)) * 10 ** self.rng.uniform(-2, 0)
        if self.problem.C > 0:
            drop = chosen[self.rng.random(len(chosen)) < 0.5]
            step[drop] = -w[drop]
        return self.space.move(w, step)

    def _elsewhere(self) -> FloatArray:
        """Return a new start: a random direction, or a point on the line through two elites."""
        if len(self.elites) > 1 and self.rng.random() < 0.5:
            one, two = self.rng.choice(len(self.elites), size=2, replace=False)
            first, second = self.elites[one][1], self.elites[two][1]
            return self.space.move(first, self.rng.uniform(-0.5, 1.0) * (second - first))
        w = self.rng.normal(size=self.problem.d)
        if self.problem.C > 0:
            w *= self.rng.random(self.problem.d) < self.rng.uniform(0.2, 1.0)
        return self.space.feasible_towards(to_surface(w))

    def _over(self) -> bool:
        return bool(self._stop[0]) or self.best[0] >= self.enough or time.perf_counter() > self.deadline

    def _check(self) -> None:
        if self._over():
            raise _Over


def compile_kernels() -> None:
    """Compile the kernels, or load them from the cache on disk, before the clock starts."""
    if not ascend.signatures:
        problem = RerankProblem([[0.0], [1.0]], [0, 1])
        tables = search_tables(problem, problem.levels())
        state = np.zeros(1, dtype=np.uint64)
        clip(tables, np.zeros(1), np.ones(1), 0.0, 1.0)
        ascend(tables, np.ones(1), np.zeros((0, 0)), 1, 1, 4, new_memory(1), state)


@dataclass(frozen=True)
class SearchSpace:
    """The problem as the kernels read it, and the feasible set.

    Attributes:
        tables: for the kernels, without the rows that `project` keeps.
        constraints: the problem's.
        centre: a point in the middle of the feasible set, (d,).
        project: orthogonal projection on the directions that keep the equality constraints; (0, 0) without any.
    """

    tables: Tables
    constraints: LinearConstraints | None
    centre: FloatArray
    project: FloatArray

    @classmethod
    def of(cls, problem: Problem, stop: NDArray[np.uint8]) -> SearchSpace | None:
        """Return the space without pairs; None where no weights satisfy the side constraints.

        Args:
            problem: gives features and side constraints.
            stop: flag that ends line searches, see `Tables`.
        """
        tables = search_tables(problem, NO_PAIRS)._replace(stop=stop)
        if problem.constraints is None:
            return cls(tables, None, np.zeros(problem.d), np.zeros((0, 0)))
        middle = _middle(tables.A, tables.b)
        if middle is None:
            return None
        centre, project, tight = middle
        tables = tables._replace(A=tables.A[~tight], b=tables.b[~tight])
        return cls(tables, problem.constraints, centre, project)

    def with_pairs(self, problem: Problem, levels: Levels) -> SearchSpace:
        """Return the space with the pairs of the problem's levels."""
        kept = {name: getattr(self.tables, name) for name in ("A", "b", "stop")}
        return dataclasses.replace(self, tables=search_tables(problem, levels)._replace(**kept))

    def move(self, w: FloatArray, step: FloatArray) -> FloatArray:
        """Return w + step: shortened to satisfy the side constraints, or without any scaled to max |w_j| = 1."""
        if self.constraints is None:
            return to_surface(w + step)
        if len(self.project):
            step = self.project @ step
        _, t = clip(self.tables, w, step, 0.0, 1.0)
        return w + (1.0 if t == 1.0 else max(0.0, _JUST * t)) * step

    def feasible_towards(self, w: FloatArray) -> FloatArray:
        """Return a copy of w if it is feasible, else the last feasible point on the way to it from the centre."""
        holds = self.constraints is None or self.constraints.satisfied(w)
        return w.copy() if holds else self.move(self.centre, w - self.centre)


def to_surface(w: FloatArray) -> FloatArray:
    """Return the multiple of w with max |w_j| = 1; zero stays zero."""
    largest = np.max(np.abs(w))
    return w / largest if largest > 0 else w


def _middle(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]] | None:
    """Return the centre of a largest ball in {A w <= b} and the box, the projection on its directions, the tight rows.

    Rows that can only hold with equality are tight; linear programs find them.
    """
    d = A.shape[1]
    if not linprog(np.zeros(d), A_ub=A, b_ub=b, bounds=(-1, 1)).success:
        return None
    room = np.array([bound - linprog(row, A_ub=A, b_ub=b, bounds=(-1, 1)).fun for row, bound in zip(A, b, strict=True)])
    size = np.linalg.norm(A, axis=1)
    tight = (room <= _TIGHT * (np.abs(b) + np.abs(A).sum(axis=1))) & (size > 0)
    loose = ~tight & (size > 0)
    ball = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([A[loose], size[loose]]) if loose.any() else None,
        b_ub=b[loose] if loose.any() else None,
        A_eq=np.column_stack([A[tight], np.zeros(tight.sum())]) if tight.any() else None,
        b_eq=b[tight] if tight.any() else None,
        bounds=[(-1, 1)] * d + [(0, 1)],
    )
    centre = ball.x[:d] if ball.success else linprog(np.zeros(d), A_ub=A, b_ub=b, bounds=(-1, 1)).x
    if not tight.any():
        return centre, np.zeros((0, 0)), tight
    inverse = np.linalg.pinv(A[tight])
    centre = np.clip(centre - inverse @ (A[tight] @ centre - b[tight]), -1.0, 1.0)
    return _without_noise(centre), _without_noise(np.eye(d) - inverse @ A[tight]), tight


def _without_noise(x: FloatArray) -> FloatArray:
    """A side constraint on the sign of one weight tells 0 from what is 0 but for rounding."""
    return np.where(np.abs(x) < _NOISE, 0.0, x)


def search_tables(problem: Problem, levels: Levels) -> Tables:
    """Return a problem with these levels as the kernels read it."""
    constraints = problem.constraints
    A, b = (np.zeros((0, problem.d)), np.zeros(0)) if constraints is None else constraints.scaled
    places = np.column_stack([levels.table, levels.counts_at, levels.most_lost])
    return Tables(
        columns=np.array(problem.X.T, order="C"),
        above=levels.above,
        below=levels.below,
        limit=_limits(problem, levels),
        owner=levels.positive,
        home=np.ascontiguousarray(places[levels.level, :2]),
        shared=places[levels.counts_at >= 0],
        worth=levels.contribution,
        slots=levels.counts_size,
        shift=levels.shift,
        C=problem.C,
        sides=constraints is not None,
        A=A,
        b=b,
        stop=np.zeros(1, dtype=np.uint8),
    )


def _limits(problem: Problem, levels: Levels) -> FloatArray:
    with np.errstate(over="ignore"):  # beyond what any scores differ by, as infinity is
        return problem.margin * levels.steps.astype(np.float64)
