"""Iterated local search for good weights: perturb a local optimum at random, ascend again, and repeat.

Every line search is exact over the whole line, so a step can cross regions of worse values, but nothing is proven.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.exact import tuning
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.largest_margin import minimize_linear
from ltr.exact.levels import PAIR_BYTES, FloatArray, IndexArray, IntArray, Levels, RankedItems
from ltr.exact.problem import Problem, sizes_of
from ltr.exact.state import Memory
from ltr.native import Ascents, clip_segment

_TIGHT = 1e-9  # room of a row, relative to its size, up to which it is an equality
_NOISE = 1e-12  # size of numbers that differ from 0 by rounding only
_STOP_SHORT = 1.0 - 1e-12  # share of the way to a side constraint that is gone: rounding would lead beyond it
_ROUNDING = 1e-9  # room for rounding, as a share of the margin
_LEAST_UNIT, _MOST_UNIT = 1e-6, 1.0
_ITEM_BYTES = 1500  # of an item but for its features: pairs of short lists, and the changes along a line
_BYTES = PAIR_BYTES + 64  # for each pair: its levels, what the kernels keep of it, and breakpoints


class LocalSearchResult(NamedTuple):
    """The best weights that a local search found; all zero, of the value -inf, if none satisfy the side constraints."""

    weights: FloatArray
    value: float
    interrupted: bool  # whether `should_stop` or Ctrl-C ended the search


def local_search(
    problem: Problem,
    *,
    seed: int = 0,
    starts: Iterable[ArrayLike] = (),
    restarts: int = 500,
    time_limit: float = 10.0,
    memory_limit: float | None = None,
    threads: int = 1,
    should_stop: Callable[[], bool] | None = None,
    on_better: Callable[[FloatArray], object] | None = None,
) -> LocalSearchResult:
    """Search for weights with a large objective: ascents from the starts, then from perturbed local optima.

    The result is never worse than any start; nor, unless the time limit cuts the search short, than w = 0, than any
    single feature, or than weights of a linear program that separates short lists of many features. Starts that violate
    the side constraints are first drawn towards the middle of the feasible set. Many lists, and lists with too many
    pairs, are searched without pairs (``ltr/native/list_lines.cpp``).

    Args:
        problem: a `RerankProblem` or `PairwiseProblem`.
        seed: seed of all random choices.
        starts: weights (d,) to start from.
        restarts: number of ascents after those from the starts.
        time_limit: seconds to search.
        memory_limit: megabytes that may be added to the process; None is half of what is free. Where even a search
            without pairs takes more, steps are tried by sorting the lists.
        threads: largest number of threads of a search without pairs; the result does not depend on it.
        should_stop: called several times per second; True ends the search.
        on_better: called from time to time with the best weights so far, if they are better than those before.

    Examples:
        >>> from ltr.exact import RerankProblem
        >>> problem = RerankProblem([[0, 1], [1, 0], [2, 2], [0, 0]], [1, 0, 1, 0], statistic="dcg")
        >>> local_search(problem, restarts=10).value == problem.trivial_bound
        True
    """
    given = [problem.in_box(start) for start in starts]
    deadline = time.perf_counter() + time_limit
    structure = _structure(problem, time_limit, Memory(memory_limit).left)
    search = _Search(problem, seed, deadline, structure, threads)
    known = -math.inf
    with ThreadPoolExecutor(1, thread_name_prefix="local-search") as pool:  # the kernels see no signal
        running = pool.submit(search.run, given, restarts)
        try:
            while not wait([running], timeout=min(tuning.ASCENT_POLL, max(0.0, deadline - time.perf_counter()))).done:
                if should_stop is not None and should_stop():
                    search.interrupted = True
                if search.interrupted or time.perf_counter() > deadline:
                    search.stop()
                    wait([running])
                value, weights = search.best
                if on_better is not None and value > known:
                    known = value
                    on_better(weights)
        except KeyboardInterrupt:
            search.interrupted = True
        finally:
            search.stop()
        running.result()
    value, weights = search.best
    return LocalSearchResult(weights, value, search.interrupted)


class _Structure(NamedTuple):
    """What line searches work on: listed pairs, the items of lists, or none for lack of memory; and its size."""

    kind: Literal["pairs", "items", "none"]
    work: int
    items: RankedItems | None = None


def _structure(problem: Problem, time_limit: float, memory: float) -> _Structure:
    """Return what line searches are to work on within these limits, in seconds and bytes."""
    pairs = problem.pair_count
    soon = pairs <= tuning.MANY_PAIRS or line_search_seconds(problem) <= time_limit
    fits = pairs <= tuning.MOST_PAIRS and soon and _BYTES * pairs <= memory
    enough = problem.n * (8 * problem.d + _ITEM_BYTES) <= memory
    possible = enough and (not fits or pairs > tuning.LISTED_PAIRS) and not problem.demanded
    if possible and (items := problem.ranked_items()) is not None:
        # many lists, or cutoffs that make most places equal
        flat = len(items.weight_at) > tuning.ITEM_LISTS or (np.diff(items.weight) == 0).mean() > tuning.ITEM_FLAT
        if not fits or flat:
            return _Structure("items", tuning.PAIRS_PER_ITEM * len(items.row), items)
    return _Structure("pairs", pairs) if fits else _Structure("none", 0)


class _Over(Exception):  # noqa: N818 - a request, not an error
    """Raised when the search has to end."""


class _Search:
    """State of one run: the incumbent, the elites, the clock; it ends at the value of a perfect ranking."""

    def __init__(self, problem: Problem, seed: int, deadline: float, structure: _Structure, threads: int) -> None:
        self.problem, self.deadline = problem, deadline
        self.rng = np.random.default_rng(seed)
        self._seed = int(self.rng.integers(0, 2**63))
        self.interrupted = False
        perfect = problem.trivial_bound
        self.enough = perfect - 1e-12 * abs(perfect)
        self.best: tuple[float, FloatArray] = (-math.inf, np.zeros(problem.d))
        self.elites: list[tuple[float, FloatArray]] = []
        self._structure, self._threads = structure, threads
        self._stop = np.zeros(1, dtype=np.uint8)
        self._sides = problem.sides.scaled
        # a point in the middle of the feasible set, and the projection on directions that keep equality constraints
        self._centre, self._project = np.zeros(problem.d), np.zeros((0, 0))
        self._ascents: Ascents

    def stop(self) -> None:
        """Ask the search to end at once, from another thread."""
        self._stop[0] = 1

    def run(self, given: list[FloatArray], restarts: int) -> None:
        """Search; a search that was asked to end keeps what it has found."""
        for w in given:
            self._offer(w)
        with contextlib.suppress(_Over):
            self._check()
            if self.problem.constraints is not None:
                A, b = self._sides
                middle = _middle(A, b)
                if middle is None:
                    return
                self._centre, self._project, tight = middle
                self._sides = A[~tight], b[~tight]
            self._explore(given, restarts)

    def _explore(self, given: list[FloatArray], restarts: int) -> None:
        starts = [self._feasible_towards(w) for w in given]
        for w in starts:
            self._offer(w)
        self._check()
        options: dict[str, Any] = {"seed": self._seed, "sides": self._sides, "project": self._project}
        options["stop"] = self._stop
        if self._structure.kind == "pairs":
            levels, sizes = self.problem.all_levels(self._check)
            self._ascents = new_ascents(self.problem, levels, sizes=sizes, **options)
            left = self.deadline - time.perf_counter()
            if (separating := separating_weights(self.problem, levels, left)) is not None:
                starts.append(self._feasible_towards(to_surface(separating)))
                self._offer(starts[-1])
            starts.append(self._try_simple(self._at_most))
        elif self._structure.items is not None:
            self._ascents = new_ascents(self.problem, self._structure.items, threads=self._threads, **options)
            for w in starts:  # to compare single features takes longer than to improve what is given
                self._ascend(w)
            starts = [self._try_simple(self._at_most), self._feasible_towards(to_surface(regression(self.problem)))]
        else:
            starts = starts or [self._try_simple(self._offer)]
            starts.append(self._feasible_towards(to_surface(regression(self.problem))))
        reached = []
        for w in starts:
            reached.append((self._ascend(w), w))
            self._check()
        here = self.best if math.isfinite(self.best[0]) else max(reached, key=lambda one: one[0])
        stale = 0
        for _ in range(restarts):
            fresh = stale >= tuning.STALE
            w = self._new_start() if fresh else self._perturb(here[1])
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

        `promise` is a quick upper bound on the value of weights, which are offered if it exceeds the best value.
        """
        axes = np.eye(self.problem.d)
        mean = self.problem.balance @ self.problem.X
        best, largest = axes[0], -math.inf
        for start in (np.zeros(self.problem.d), *axes, *-axes, to_surface(mean)):
            w = self._feasible_towards(start)
            value = promise(w)
            if value > self.best[0]:
                self._offer(w)
            if value > largest:
                best, largest = w, value
            self._check()
        return best

    def _ascend(self, w: FloatArray) -> float:
        """Ascend from w, in place; return the objective reached, as the kernels compute it."""
        value = self._ascend_steps(w) if self._structure.kind == "none" else self._ascend_lines(w)
        if all(abs(value - other) > 1e-9 for other, _ in self.elites):
            self.elites = sorted([*self.elites, (value, w.copy())], key=lambda e: -e[0])[: tuning.ELITES]
        return value

    def _ascend_lines(self, w: FloatArray) -> float:
        """Ascend by exact line searches."""
        budget = max(1, tuning.ASCENT_WORK // max(1, self._structure.work))
        value, left = self._ascents.ascend(w, budget, resume=False)
        while left == 0 and not self._over():
            if value > self.best[0] + 1e-9 * abs(value):
                self._offer(w)
            value, left = self._ascents.ascend(w, budget, resume=True)
        if value > self.best[0] - 1e-9:
            value = self._offer(w)
        return value

    def _ascend_steps(self, w: FloatArray) -> float:
        """Ascend by trial steps, each of which sorts the lists once, where pairs are too many for line searches.

        A step changes one weight. It is measured by how far it moves the scores, compared with their own spread, and
        doubled after a gain or halved. With a price, a weight is set to 0 if that gains.
        """
        problem, value = self.problem, self._offer(w)
        step, sign = np.full(problem.d, tuning.FIRST_STEP), np.ones(problem.d)
        priced = problem.counted if problem.C > 0 else np.zeros(problem.d, dtype=bool)
        while np.max(step) > tuning.LAST_STEP:
            for j in self.rng.permutation(problem.d):
                scores = float((self._deviations * np.abs(w)).max())  # about the spread of the scores
                length = step[j] * (scores or 1.0) / self._deviations[j]
                trials = [sign[j] * length, -sign[j] * length, *([-w[j]] if priced[j] and w[j] != 0 else [])]
                gained = False
                for change in trials:
                    moved = self._move(w, change * np.eye(1, problem.d, j)[0])
                    found = self._offer(moved)
                    if found > value:
                        value, w[:], sign[j], gained = found, moved, np.sign(change), True
                        break
                    self._check()
                step[j] *= 2.0 if gained else 0.5
        return value

    @cached_property
    def _deviations(self) -> FloatArray:
        """Standard deviations of the features, or 1 where one does not vary, (d,)."""
        size = sizes_of(self.problem.X)
        spread = (self.problem.X / size).std(axis=0) * size
        return np.where(spread > 0, spread, 1.0)

    def _at_most(self, w: FloatArray) -> float:
        """Return the objective at w as the kernels compute it, counting pairs within rounding of the margin as won."""
        return self._ascents.objective(w, 1 - _ROUNDING)

    def _offer(self, w: FloatArray) -> float:
        """Make w the incumbent if the problem evaluates it as better; return its value, less penalties for demands."""
        problem = self.problem
        if not problem.feasible(w):
            if not (problem.demanded and problem.allowed(w)):
                return -math.inf
            room = [(own.value(w) - float(own.demand.least)) for own in problem.demanded]
            return problem.evaluate(w) + float(np.minimum(room, 0.0) @ penalties(problem))
        value = problem.evaluate(w)
        if value > self.best[0]:
            self.best = (value, w.copy())
        return value

    def _perturb(self, w: FloatArray) -> FloatArray:
        """Change one to three weights by normal steps of a random size; with C > 0 some of them become 0."""
        d = self.problem.d
        chosen = self.rng.choice(d, size=min(d, int(self.rng.integers(1, 4))), replace=False)
        step = np.zeros(d)
        step[chosen] = self.rng.normal(size=len(chosen)) * 10 ** self.rng.uniform(-2, 0)
        if self.problem.C > 0:
            drop = chosen[(self.rng.random(len(chosen)) < 0.5) & self.problem.counted[chosen]]
            step[drop] = -w[drop]
        return self._move(w, step)

    def _new_start(self) -> FloatArray:
        """Return a new start: a random direction, or a point on the line through two elites."""
        if len(self.elites) > 1 and self.rng.random() < 0.5:
            one, two = self.rng.choice(len(self.elites), size=2, replace=False)
            first, second = self.elites[one][1], self.elites[two][1]
            return self._move(first, self.rng.uniform(-0.5, 1.0) * (second - first))
        w = self.rng.normal(size=self.problem.d)
        if self.problem.C > 0:
            w *= (self.rng.random(self.problem.d) < self.rng.uniform(0.2, 1.0)) | ~self.problem.counted
        return self._feasible_towards(to_surface(w))

    def _move(self, w: FloatArray, step: FloatArray) -> FloatArray:
        """Return w + step: shortened to satisfy the side constraints, or without any scaled to max |w_j| = 1."""
        if self.problem.constraints is None:
            return to_surface(w + step)
        if len(self._project):
            step = self._project @ step
        _, t = clip_segment(*self._sides, SIDE_TOLERANCE, w, step, 0.0, 1.0)
        return w + (1.0 if t == 1.0 else max(0.0, _STOP_SHORT * t)) * step

    def _feasible_towards(self, w: FloatArray) -> FloatArray:
        """Return a copy of w if it is feasible, else the last feasible point on the way to it from the centre."""
        holds = self.problem.constraints is None or self.problem.constraints.satisfied(w)
        return w.copy() if holds else self._move(self._centre, w - self._centre)

    def _over(self) -> bool:
        return bool(self._stop[0]) or self.best[0] >= self.enough or time.perf_counter() > self.deadline

    def _check(self) -> None:
        if self._over():
            raise _Over


def line_search_seconds(problem: Problem) -> float:
    """Return about how many seconds a few rounds of exact line searches take."""
    return tuning.LINE_ROUNDS * tuning.LINE_SECONDS * problem.pair_count * (problem.d + tuning.RANDOM_DIRECTIONS)


def regression(problem: Problem) -> FloatArray:
    """Return weights whose scores are nearest to how often observations are the upper one of a pair (least squares)."""
    X, size = problem.X, sizes_of(problem.X)
    scaled = (X - X.mean(axis=0)) / size
    found = np.linalg.lstsq(scaled.T @ scaled, scaled.T @ problem.balance, rcond=1e-12)[0]
    return np.asarray(found / size)


def to_surface(w: FloatArray) -> FloatArray:
    """Return the multiple of w with max |w_j| = 1; zero stays zero."""
    largest = np.max(np.abs(w))
    return w / largest if largest > 0 else w


def _middle(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]] | None:
    """Return the centre of a largest ball in {A w <= b} and the box, the projection on its directions, the tight rows.

    Rows that can only hold with equality are tight; linear programs find them.
    """
    d = A.shape[1]
    low, high = -np.ones(d), np.ones(d)
    least = [found for row in A if (found := minimize_linear(row, A, b, low, high)) is not None]
    if len(least) < len(A):
        return None
    room = b - np.array([value for _, value in least])
    size = np.linalg.norm(A, axis=1)
    tight = (room <= _TIGHT * (np.abs(b) + np.abs(A).sum(axis=1))) & (size > 0)
    loose = ~tight & (size > 0)
    ball = minimize_linear(
        np.append(np.zeros(d), -1.0),
        np.column_stack([np.vstack([A, -A[tight]]), np.append(np.where(loose, size, 0.0), np.zeros(tight.sum()))]),
        np.append(b, -b[tight]),
        np.append(low, 0.0),
        np.append(high, 1.0),
    )
    centre = least[0][0] if ball is None else ball[0][:d]
    if not tight.any():
        return centre, np.zeros((0, 0)), tight
    inverse = np.linalg.pinv(A[tight])
    centre = np.clip(centre - inverse @ (A[tight] @ centre - b[tight]), -1.0, 1.0)
    # a side constraint on the sign of one weight tells 0 from a rounding error
    centre, project = (np.where(np.abs(x) < _NOISE, 0.0, x) for x in (centre, np.eye(d) - inverse @ A[tight]))
    return centre, project, tight


def new_ascents(
    problem: Problem,
    structure: Levels | RankedItems,
    *,
    seed: int,
    sides: tuple[FloatArray, FloatArray] | None = None,
    project: FloatArray | None = None,
    threads: int = 1,
    stop: NDArray[np.uint8] | None = None,
    sizes: IntArray | None = None,
) -> Ascents:
    """Return ascents on a problem. Where weights miss a demand, their value is less a penalty.

    Args:
        problem, structure: the problem, and the levels of it and of its demands, or its items: then no pairs are
            listed, and a line of long lists is searched by steps.
        seed: seed of the random choices.
        sides: side constraints A w <= b that a line can violate, scaled to a size of about 1; None for all.
        project: orthogonal projection on the directions that keep the equality constraints, (d, d); None for no such.
        threads: largest number of threads that examine items; what is found does not depend on it.
        stop: set to 1 from another thread to end a line search early, without a result, (1,).
        sizes: numbers of levels of the problem and of each demand; None for those of the problem alone.
    """
    A, b = sides or problem.sides.scaled
    with np.errstate(over="ignore"):  # infinity will do: either is beyond all score differences
        limit = problem.margin * structure.steps.astype(np.float64)
    left_out = ("steps", "shift", "observation")
    given: dict[str, Any] = {
        **{name: values for name, values in structure._asdict().items() if name not in left_out},
        "columns": problem.X.T,
        "shift": structure.shift,
        "C": problem.C,
        "priced": problem.counted.astype(np.uint8),
        "constrained": problem.constraints is not None,
        "A": A,
        "b": b,
        "tolerance": SIDE_TOLERANCE,
        "project": np.zeros((0, 0)) if project is None else project,
        "extra": tuning.RANDOM_DIRECTIONS,
        "seed": seed,
        "stop": np.zeros(1, dtype=np.uint8) if stop is None else stop,
    }
    if isinstance(structure, RankedItems):
        return Ascents(offset=limit, threads=threads, **given)
    demanded = problem.demanded if sizes is not None else ()
    return Ascents(
        limit=limit,
        first_level=np.cumsum([0, *(sizes if sizes is not None else [len(structure.table)])]),
        least=np.array([float(asked.demand.least) - asked.problem.shift for asked in demanded], dtype=np.float64),
        penalty=penalties(problem)[: len(demanded)],
        **given,
    )


def penalties(problem: Problem) -> FloatArray:
    """Return the price of each unit that a demand's statistic is below its least value, (demands,)."""
    sizes = [asked.problem.trivial_bound - asked.problem.shift for asked in problem.demanded]
    return tuning.PENALTY * abs(problem.trivial_bound) / np.maximum(np.array(sizes, dtype=np.float64), 1e-300)


def separating_weights(problem: Problem, levels: Levels, seconds: float) -> FloatArray | None:
    """Return weights that rank perfectly or nearly so, from one linear program; None if the list is too long for it.

    Every level of `ltr.exact.levels` gets a threshold τ. Its positives should score above τ, and the observations that
    its pairs put below them should score below τ:

        minimise  sum of s / (number on that side of the level) subject to  w·x - τ >= 1 - s  above,   w·x - τ <= s - 1
        below,   s >= 0,   |w_j| <= 1 / unit,   A w <= b / unit.

    If all s = 0, ``unit * w`` wins every pair with a margin of 2 unit. A search along lines may miss such weights. In d
    dimensions about 2d observations can be separated whatever their labels, so this is for lists that are short for
    their number of features.

    Source: Cover (1965) for what can be separated; Bennett & Mangasarian (1992) for the program.
    """
    d = problem.d
    if problem.n > tuning.SEPARATING_ROWS * d or seconds < tuning.SEPARATING_SHORTEST:
        return None
    level = levels.level[levels.positive]
    upper, lower = _sides(level, levels.above), _sides(level, levels.below)
    rows = len(upper) + len(lower)
    thresholds = len(levels.table)
    if not 0 < rows <= tuning.SEPARATING_ROWS * d or rows * (d + thresholds) > tuning.SEPARATING_ENTRIES:
        return None
    unit = min(max(problem.margin, _LEAST_UNIT), _MOST_UNIT)
    sign = np.repeat([1.0, -1.0], [len(upper), len(lower)])
    side, observation = np.concatenate([upper, lower]).T
    A, b = problem.sides.A, problem.sides.b / unit
    size = np.array([np.bincount(one[:, 0], minlength=thresholds) for one in (upper, lower)])
    scores = np.zeros((rows + len(b), d + thresholds))
    scores[:rows, :d], scores[rows:, :d] = -sign[:, None] * problem.X[observation], A
    scores[np.arange(rows), d + side] = sign
    found = minimize_linear(
        np.zeros(d + thresholds),
        scores,
        np.append(np.full(rows, -1.0), b),
        np.append(np.full(d, -1 / unit), np.full(thresholds, -np.inf)),
        np.append(np.full(d, 1 / unit), np.full(thresholds, np.inf)),
        price=np.append(1 / size[(sign < 0).astype(int), side], np.full(len(b), np.inf)),
        time_limit=min(seconds, tuning.SEPARATING_LONGEST),
    )
    return None if found is None else found[0][:d]


def _sides(level: IntArray, observation: IndexArray) -> IntArray:
    """Return the distinct pairs (level, observation), one per row."""
    width = int(observation.max(initial=0)) + 1
    return np.column_stack(np.divmod(np.unique(level * width + observation), width))
