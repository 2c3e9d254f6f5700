"""The paper's Subrank model written once more, in cvxpy for HiGHS: shares no code with `ltr.exact.scip`.

max   n_pos a_1 + sum ã_l t_il - C sum γ_j
s.t.  (l - 1) t_il <= sum_k z_ik,    L z_ik <= w·(x_i - x_k) + L - ε,    -γ <= w <= γ,    A w <= b
"""

import cvxpy as cp
import numpy as np


def highs_subrank(problem, tolerance=1e-9):
    """Objective and weights of HiGHS's optimum for a RerankProblem with ``rank="subrank"``."""
    n, d = problem.X.shape
    a = problem.a
    positives = [i for i in range(n) if problem.y[i] == 1]
    levels = [rank for rank in range(2, n + 1) if a[rank - 1] > a[rank - 2]]
    w = cp.Variable(d)
    gamma = cp.Variable(d, boolean=True)
    z = cp.Variable((len(positives), n), boolean=True)
    rules = [w <= gamma, -gamma <= w]
    norms = np.abs(problem.X[:, None, :] - problem.X[None, :, :]).sum(axis=2)
    scale = norms.max() + problem.margin
    for row, i in enumerate(positives):
        rules += [scale * z[row] <= (problem.X[i] - problem.X) @ w + scale - problem.margin]
    objective = len(positives) * a[0] + problem.shift - problem.C * cp.sum(gamma)
    if levels:
        t = cp.Variable((len(positives), len(levels)), boolean=True)
        rules += [(rank - 1) * t[:, at] <= cp.sum(z, axis=1) for at, rank in enumerate(levels)]
        steps = np.array([a[rank - 1] - a[rank - 2] for rank in levels])
        objective = objective + cp.sum(t @ steps)
    if problem.constraints is not None:
        rules += [problem.constraints.A @ w <= problem.constraints.b]
    program = cp.Problem(cp.Maximize(objective), rules)
    options = {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "mip_feasibility_tolerance": tolerance}
    program.solve(solver=cp.HIGHS, highs_options=options | {"primal_feasibility_tolerance": tolerance})
    assert program.status == cp.OPTIMAL, program.status
    return float(program.value), np.asarray(w.value, dtype=np.float64)
