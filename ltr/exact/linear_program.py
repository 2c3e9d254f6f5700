"""Linear programs, solved by HiGHS."""

from __future__ import annotations

import highspy
import numpy as np

from ltr.exact.levels import FloatArray

__all__ = ["minimize_linear"]


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
