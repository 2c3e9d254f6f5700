"""Where a local search may go: the problem as the kernels read it, and its feasible set."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ltr.exact._ascent import clip
from ltr.exact._sweep import Tables
from ltr.exact.levels import NO_PAIRS, Levels
from ltr.exact.problem import LinearConstraints, Problem

__all__ = ["SearchSpace", "search_tables", "to_surface"]

FloatArray = NDArray[np.float64]

_TIGHT = 1e-9  # room of a row, relative to its size, from which it is an inequality
_NOISE = 1e-12  # of what is 0 but for rounding
_JUST = 1.0 - 1e-12  # of the way to a side constraint: rounding would lead beyond it


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
        """The point w + step, shortened where a side constraint ends the way; scaled to the box where there is none."""
        if self.constraints is None:
            return to_surface(w + step)
        if len(self.project):
            step = self.project @ step
        _, t = clip(self.tables, w, step, 0.0, 1.0)
        return w + (1.0 if t == 1.0 else max(0.0, _JUST * t)) * step

    def feasible_towards(self, w: FloatArray) -> FloatArray:
        """A copy of w, or the last feasible point on the way to it from the centre."""
        holds = self.constraints is None or self.constraints.satisfied(w)
        return w.copy() if holds else self.move(self.centre, w - self.centre)


def to_surface(w: FloatArray) -> FloatArray:
    """A multiple of w with max |w_j| = 1; zero stays zero."""
    largest = np.max(np.abs(w))
    return w / largest if largest > 0 else w


def _middle(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]] | None:
    """Centre of a largest ball in {A w <= b} and the box, the projection on the directions it may move in, tight rows.

    Rows that can only hold with equality are tight: they are found by linear programming and set apart.
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
    places = np.column_stack([levels.table, levels.slot, levels.most])
    return Tables(
        columns=np.array(problem.X.T, order="C"),
        above=levels.above,
        below=levels.below,
        limit=_limits(problem, levels),
        owner=levels.owner,
        home=np.ascontiguousarray(places[levels.level, :2]),
        shared=places[levels.slot >= 0],
        worth=levels.contribution,
        slots=levels.slots,
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
