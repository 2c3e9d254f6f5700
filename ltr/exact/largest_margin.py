"""Maximise the margin with which weights win their comparisons.

A solver's weights often lie on ``w·δ = margin`` and are an arbitrary choice among all that win the same comparisons.
`maximise_margin` chooses those with the largest margin; `deepest` is the linear program behind it, which HiGHS solves.
`minimize_linear` is the form of a linear program that the local search takes, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import highspy
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import one_of
from ltr.exact.levels import PAIR_BYTES, FloatArray, IndexArray
from ltr.exact.problem import IntArray, Problem
from ltr.exact.state import Memory

__all__ = ["NormName", "deepest", "maximise_margin", "middle_of_cell", "minimize_linear"]

BoolArray = NDArray[np.bool_]
NormName = Literal["l2", "max"]
"""Norms of the margin."""

_SHORTFALL = 1e-6  # amount by which the linear program may miss the margin: the caller evaluates its weights
_ROOM = 1e-9  # relative amount by which the quadratic program exceeds the margin
_LEAST = 1e-300  # smallest ratio of margin and largest difference that float64 can handle
_NOISE = 1e-9  # weights this small are noise where a side constraint requires 0
_ROUNDING = 1e-12  # relative difference below which score differences count as equal
_BYTES = PAIR_BYTES + 40  # bytes per pair, its scores included


def maximise_margin(problem: Problem, w: ArrayLike, *, norm: NormName = "l2") -> FloatArray:
    r"""Return the weights with the largest margin among those that win every comparison that w wins.

    Over the pairs that w wins, with δ the difference of their features and h their steps (`ltr.exact.levels`), and with
    ``v_j = 0`` where ``w_j = 0`` if C > 0 and column j is not free:

        maximise m / ||v||   subject to   v·δ >= m h,   m >= margin,   -1 <= v <= 1,   A v <= b.

    ``"l2"`` gives the hyperplane of a support vector machine without slack (a quadratic program), ``"max"``, with the
    largest ``|v_j|`` for the norm, a linear program. Where a side constraint has a limit other than 0, directions do
    not compare, and ``"l2"`` takes the linear program too. Features are used as given, so their units matter.

    The objective never falls: w is returned as it is if the answer is not feasible or evaluates as worse, if no weights
    have a larger margin, or if the pairs do not fit into half of the free memory.

    Raises:
        ValueError: the norm is unknown, or the weights have another length or are not finite.

    Source: Vapnik, *The Nature of Statistical Learning Theory* (1995), section 5.4, for the largest margin.

    Examples:
        >>> from ltr.exact import RerankProblem
        >>> problem = RerankProblem([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]], [0, 1, 1])
        >>> maximise_margin(problem, [1.0, 0.01]).round(9).tolist()  # the bisector of (2, 0) and (0, 2)
        [1.0, 1.0]
    """
    one_of("norm", norm, get_args(NormName))
    weights = problem.in_box(w).copy()
    if _BYTES * problem.pair_count > Memory().left:
        return weights
    pairs = _Pairs.of(problem)
    won = pairs.where(pairs.reached(weights) >= problem.margin - pairs.doubt(weights, problem.margin))
    if len(won.above) == 0:
        return weights
    euclidean = norm == "l2" and not problem.sides.b.any()
    sparse = problem.C > 0 or problem.max_nonzeros is not None
    support = (weights != 0) | ~problem.counted if sparse else np.ones(problem.d, dtype=bool)
    program = functools.partial(_widest if euclidean else deepest, problem, support=support)
    found = _by_generation(won, weights, program)
    if found is not None and not problem.feasible(found):  # a constraint on a sign tells 0 from a rounding error
        found = np.where(np.abs(found) < _NOISE, 0.0, found)
    if found is None or won.margin(found, euclidean) <= won.margin(weights, euclidean):
        return weights
    certain = np.all(won.reached(found) >= problem.margin + won.doubt(found, problem.margin))
    kept = certain and problem.feasible(found) and problem.evaluate(found) >= problem.evaluate(weights)
    return found if kept else weights


class _Pairs(NamedTuple):
    """Pairs as rows of X, and the number of margins that each has to clear."""

    X: FloatArray
    above: IndexArray
    below: IndexArray
    steps: IndexArray

    @classmethod
    def of(cls, problem: Problem) -> _Pairs:
        levels, _ = problem.all_levels()
        return cls(problem.X, levels.above, levels.below, levels.steps)

    def where(self, chosen: BoolArray) -> _Pairs:
        return self._replace(above=self.above[chosen], below=self.below[chosen], steps=self.steps[chosen])

    def rows(self, at: IntArray) -> FloatArray:
        """Return δ / steps of some pairs, (len(at), d)."""
        return (self.X[self.above[at]] - self.X[self.below[at]]) / self.steps[at, None]

    def reached(self, v: FloatArray) -> FloatArray:
        """Return v·δ / steps of every pair."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self.X @ v
            return (scores[self.above] - scores[self.below]) / self.steps

    def doubt(self, v: FloatArray, margin: float) -> FloatArray:
        """Return the largest rounding error of v·δ / steps for every pair, see `ltr.exact.scores`."""
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(self.X) @ np.abs(v)
            return (len(v) + 4) * 2.0**-52 * (size[self.above] + size[self.below] + margin)

    def margin(self, v: FloatArray, euclidean: bool) -> float:
        """Return the smallest v·δ / steps, divided by ``||v||_2`` if `euclidean`."""
        length = float(np.linalg.norm(v)) if euclidean else 1.0
        return float(self.reached(v).min()) / length if length > 0 else 0.0

    def hardest(self, reached: FloatArray, among: IntArray) -> IntArray:
        """Return the pair with the smallest v·δ / steps for each observation `above`, among some pairs."""
        order = among[np.argsort(reached[among], kind="stable")]
        return order[np.unique(self.above[order], return_index=True)[1]]


def middle_of_cell(problem: Problem, w: FloatArray, support: BoolArray, doubt: float) -> FloatArray | None:
    """Return the weights that are `deepest` on all pairs whose margin w misses by a share of at most `doubt`."""
    pairs = _Pairs.of(problem)
    won = pairs.where(pairs.reached(w) >= problem.margin * (1 - doubt))
    return _by_generation(won, w, functools.partial(deepest, problem, support=support))


def _by_generation(
    won: _Pairs, start: FloatArray, program: Callable[[FloatArray], FloatArray | None]
) -> FloatArray | None:
    """Solve a max-min program over all pairs by adding pairs that fall short of those already in it."""
    active = won.hardest(won.reached(start), np.arange(len(won.above)))
    while True:
        v = program(won.rows(active))
        if v is None or len(active) == 0:
            return v
        reached = won.reached(v)
        short = reached < reached[active].min() - _ROUNDING * np.abs(reached).max()
        if not short.any():
            return v
        active = np.concatenate([active, won.hardest(reached, np.flatnonzero(short))])


def _widest(problem: Problem, differences: FloatArray, support: BoolArray) -> FloatArray | None:
    """Return the weights with the largest Euclidean margin, under side constraints ``A w <= 0``.

    ``min ||v||_2  s.t.  v·δ >= 1 for each row δ,  |v_j| <= 1 / margin,  v_j = 0 off the support,  A v <= 0``, then
    scaled to max |w_j| = 1, where the bound on v keeps all w·δ above the margin (with a little room for rounding).
    None if the program cannot be solved.
    """
    free = differences[:, support]
    size = float(np.abs(free).max(initial=0.0))
    if size == 0 or problem.margin / size < _LEAST:
        return None
    free, margin = free / size, (1 + _ROOM) * problem.margin / size
    box = np.vstack([np.eye(free.shape[1]), -np.eye(free.shape[1])])
    sides = -problem.sides.scaled[0][:, support]
    rows = np.vstack([free, box, sides])
    unit = margin  # the program is solved for v * unit
    for _ in range(2):  # the second time in the unit that gives the answer length 1, for more digits
        limits = [np.full(len(free), unit), np.full(len(box), -unit / margin), np.zeros(len(sides))]
        v = _shortest(rows, np.concatenate(limits))
        if v is None or not (free @ v).min() > 0:
            return None
        v /= np.abs(v).max()
        unit = float((free @ v).min() / np.linalg.norm(v))
        w = np.zeros(problem.d)
        w[support] = v
    return w


def _shortest(G: FloatArray, h: FloatArray) -> FloatArray | None:
    """Return v of ``min ||v||_2  s.t.  G v >= h``, or None if the solver fails.

    With u >= 0 minimising ``||r||_2``, ``r = (Gᵀ u, h·u - 1)``, the answer is ``v = -r[:-1] / r[-1]``.

    Source: Lawson & Hanson, *Solving Least Squares Problems* (1974), chapter 23, problem LDP.
    """
    from scipy.optimize import nnls

    E = np.vstack([G.T, h])
    target = np.append(np.zeros(G.shape[1]), 1.0)
    try:
        u, _ = nnls(E, target)
    except RuntimeError:  # too many iterations
        return None
    r = E @ u - target
    return -r[:-1] / r[-1] if r[-1] < 0 else None


def deepest(problem: Problem, differences: FloatArray, support: BoolArray) -> FloatArray | None:
    """Return the weights that clear the margin on all differences by as much as possible; None if none do, up to 1e-6.

    ``max s  s.t.  w·δ >= margin + s for each row δ of differences,  -1 <= w <= 1,  w_j = 0 off the support,  A w <= b``
    """
    d, (A, b) = problem.d, problem.sides.scaled
    rows = np.column_stack([np.vstack([-differences, A]), np.repeat([1.0, 0.0], [len(differences), len(b)])])
    reach = float(np.max(np.abs(differences).sum(axis=1), initial=0.0))
    found = minimize_linear(
        np.append(np.zeros(d), -1.0),
        rows,
        np.append(np.full(len(differences), -problem.margin), b),
        np.append(-1.0 * support, -_SHORTFALL),
        np.append(1.0 * support, reach),
    )
    if found is None:
        return None
    w = np.clip(found[0][:d], -1.0, 1.0)
    return np.where(support, w, 0.0)


def minimize_linear(
    cost: FloatArray,
    A: FloatArray,
    b: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *,
    price: FloatArray | None = None,
    time_limit: float = np.inf,
) -> tuple[FloatArray, float] | None:
    """Return the solution of a linear program and its value; None if there is none, or if time is up.

    ``min over x, s of  cost·x + price·s  subject to  A x - s <= b,  low <= x <= high,  s >= 0``, and ``s_r = 0`` for
    rows of an infinite price.

    SciPy has the same solver, but takes a quarter of a second to import, as long as many a proof. `price` is what it
    costs to exceed a row's limit by 1, > 0, (rows,); None for infinity in all rows. Limits may be infinite.

    Examples:
        >>> minimize_linear(np.array([-1.0]), np.array([[2.0]]), np.array([1.0]), np.zeros(1), np.ones(1))
        (array([0.5]), -0.5)
    """
    rows, columns = A.shape
    row, column = np.nonzero(A)
    value = A[row, column]
    soft = np.arange(0) if price is None else np.flatnonzero(np.isfinite(price))
    if price is not None:
        cost, zeros = np.append(cost, price[soft]), np.zeros(len(soft))
        low, high = np.append(low, zeros), np.append(high, np.full(len(soft), np.inf))
        row, column = np.append(row, soft), np.append(column, columns + np.arange(len(soft)))
        value = np.append(value, zeros - 1.0)
        order = np.argsort(row, kind="stable")
        row, column, value = row[order], column[order], value[order]
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows, columns + len(soft)
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, low, high
    program.row_lower_, program.row_upper_ = np.full(rows, -np.inf), b
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.searchsorted(row, np.arange(rows + 1))
    program.a_matrix_.index_, program.a_matrix_.value_ = column, value
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", time_limit)
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    x = np.array(solver.getSolution().col_value[:columns])
    return x, float(solver.getInfo().objective_function_value)
