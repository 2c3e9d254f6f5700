"""Where a local search may go: the problem as the kernels read it, and its feasible set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ltr.exact._ascent import clip
from ltr.exact._sweep import Tables
from ltr.exact.levels import levels_of
from ltr.exact.problem import Problem

__all__ = ["SearchSpace", "search_tables", "to_surface"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SearchSpace:
    """The problem as the kernels read it, and the feasible set.

    Attributes:
        tables: for the kernels.
        centre: a point in the middle of the feasible set, (d,).
        project: orthogonal projection on the directions that keep the equality constraints; (0, 0) without any.
    """

    tables: Tables
    centre: FloatArray
    project: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> SearchSpace | None:
        """None where no weights satisfy the side constraints."""
        tables = search_tables(problem)
        if problem.constraints is None:
            return cls(tables, np.zeros(problem.d), np.zeros((0, 0)))
        middle = _middle(tables.A, tables.b)
        return None if middle is None else cls(tables, *middle)

    def move(self, w: FloatArray, step: FloatArray) -> FloatArray:
        """The point w + step, shortened where a side constraint ends the way; scaled to the box where there is none."""
        if len(self.tables.b) == 0:
            return to_surface(w + step)
        if len(self.project):
            step = self.project @ step
        _, t = clip(self.tables, w, step, 0.0, 1.0)
        return w + max(0.0, t) * step

    def feasible_towards(self, w: FloatArray) -> FloatArray:
        """A copy of w, or the last feasible point on the way to it from the centre."""
        holds = np.all(self.tables.A @ w <= self.tables.b + 1e-9)  # the tolerance of `Problem.feasible`
        return w.copy() if holds else self.move(self.centre, w - self.centre)


def to_surface(w: FloatArray) -> FloatArray:
    """A multiple of w with max |w_j| = 1; zero stays zero."""
    largest = np.max(np.abs(w))
    return w / largest if largest > 0 else w


def _middle(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Centre of a largest ball in {A w <= b} and the box, and the projection on the directions it may move in.

    Rows that can only hold with equality are found by linear programming and set apart.
    """
    d = A.shape[1]
    if not linprog(np.zeros(d), A_ub=A, b_ub=b, bounds=(-1, 1)).success:
        return None
    room = np.array([bound - linprog(row, A_ub=A, b_ub=b, bounds=(-1, 1)).fun for row, bound in zip(A, b, strict=True)])
    size = np.linalg.norm(A, axis=1)
    tight = (room <= 1e-9 * np.maximum(1.0, np.abs(b))) & (size > 0)
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
        return centre, np.zeros((0, 0))
    inverse = np.linalg.pinv(A[tight])
    centre = np.clip(centre - inverse @ (A[tight] @ centre - b[tight]), -1.0, 1.0)
    return centre, np.eye(d) - inverse @ A[tight]


def search_tables(problem: Problem) -> Tables:
    """The problem as the kernels read it."""
    constraints = problem.constraints
    A = np.zeros((0, problem.d)) if constraints is None else np.array(constraints.A)
    b = np.zeros(0) if constraints is None else np.array(constraints.b)
    levels = levels_of(problem)
    places = np.column_stack([levels.table, levels.slot, levels.most])
    return Tables(
        columns=np.array(problem.X.T, order="C"),
        above=levels.above.astype(np.int32),
        below=levels.below.astype(np.int32),
        limit=np.asarray(problem.margin * levels.steps, dtype=np.float64),
        owner=levels.owner.astype(np.int32),
        home=np.ascontiguousarray(places[levels.level, :2]),
        shared=places[levels.slot >= 0],
        worth=levels.worth,
        slots=levels.slots,
        shift=levels.shift,
        C=problem.C,
        A=A,
        b=b,
    )
