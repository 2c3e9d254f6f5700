"""Recentring: the value never falls, the margin never shrinks, and it is the largest that there is."""

from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.exact import LinearConstraints, RerankProblem
from ltr.exact import largest_margin as module
from ltr.exact.largest_margin import maximise_margin
from ltr.exact.preferences import PairwiseProblem
from tests.exact.vertex_reference import comparisons
from tests.reference import exact_scores, graded_problem, random_instance, random_pairwise
from tests.tiers import examples

NORMS = ("l2", "max")


def reached(problem, w):
    """w·δ / steps of every comparison, exactly."""
    scores = exact_scores(problem.X, w)
    return [(scores[i] - scores[k]) / steps for i, k, steps in comparisons(problem)]


def won_differences(problem, w):
    """δ / steps of the comparisons won at w, (won, d)."""
    rows = [(problem.X[i] - problem.X[k]) / steps for i, k, steps in comparisons(problem)]
    won = [value >= Fraction(problem.margin) for value in reached(problem, w)]
    return np.array([row for row, wins in zip(rows, won, strict=True) if wins]).reshape(-1, problem.d)


def cloud(n=40, d=4, noise=0.3, seed=0, **options):
    """Observations around the origin, and the weights that gave them their labels, up to the noise."""
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, d)), rng.uniform(-1, 1, size=d)
    y = (X @ w + noise * rng.normal(size=n) > 0.5).astype(int)
    return RerankProblem(X, y, **options), w / np.abs(w).max()


# --- invariants ------------------------------------------------------------------------------------------------


@st.composite
def instances(draw):
    """A tiny problem of any kind and weights for it, feasible or not."""
    seed = draw(st.integers(0, 10_000))
    rng = np.random.default_rng([7, seed])
    kind = draw(st.sampled_from(["ranked", "pairs", "graded"]))
    base = random_pairwise(seed) if kind == "pairs" else random_instance(seed)
    X = base.X + (rng.normal(size=base.X.shape) if draw(st.booleans()) else 0.0)
    d = X.shape[1]
    sides = draw(st.sampled_from(["none", "none", "order", "equal", "budget"]))
    rules = {
        "none": None,
        "order": LinearConstraints(-np.eye(d), np.zeros(d)),
        "equal": LinearConstraints([np.r_[1.0, -np.ones(d - 1)], np.r_[-1.0, np.ones(d - 1)]], [0.0, 0.0]),
        "budget": LinearConstraints(np.ones((1, d)), [0.5]),
    }[sides]
    options = {"C": base.C, "margin": draw(st.sampled_from([1e-4, 0.25, 1.0])), "constraints": rules}
    if kind == "pairs":
        problem = PairwiseProblem(X, base.pairs, weights=base.weights, **options)
    elif kind == "ranked":
        problem = RerankProblem(X, base.y, base.statistic, ties=base.ties, **options)
    else:
        gains, qid = rng.integers(0, 4, size=len(X)), rng.integers(0, 2, size=len(X))
        gains[0] = 1
        statistic = draw(st.sampled_from(["dcg", "mrr", "auc", "dcg@2"]))
        problem = graded_problem(X, gains, qid, statistic, ties=base.ties, **options)
    grid = st.sampled_from([0.0, 1.0, -1.0, 0.5, -0.25, 0.3, 1e-3, 2.0])
    return problem, np.array(draw(st.lists(grid, min_size=d, max_size=d)))


@settings(max_examples=examples(40, slow=400), deadline=None)
@given(instances(), st.sampled_from(NORMS))
def test_the_value_never_falls_and_the_margin_never_shrinks(instance, norm):
    problem, given_weights = instance
    w = problem.in_box(given_weights)
    found = maximise_margin(problem, given_weights, norm=norm)
    assert found.shape == w.shape
    assert np.abs(found).max() <= 1
    assert problem.evaluate(found) >= problem.evaluate(w)
    assert problem.feasible(found) or np.array_equal(found, w)
    if problem.C > 0:
        assert not found[w == 0].any()
    rows = won_differences(problem, w)
    if len(rows) == 0:
        np.testing.assert_array_equal(found, w)
        return
    euclidean = norm == "l2" and (problem.constraints is None or not problem.constraints.b.any())
    before, after = ((rows @ v).min() / (np.linalg.norm(v) if euclidean else 1.0) for v in (w, found))
    assert after >= before - 1e-12
    if not np.array_equal(found, w):
        won_before, won_after = (
            {at for at, value in enumerate(reached(problem, v)) if value >= Fraction(problem.margin)}
            for v in (w, found)
        )
        assert won_before <= won_after


# --- answers derived by hand -----------------------------------------------------------------------------------


def over_origin(*differences, **options):
    """A problem whose only comparisons are these differences: the negative lies in the origin."""
    X = np.vstack([np.zeros(len(differences[0])), differences])
    return RerankProblem(X, [0] + [1] * len(differences), **options)


@pytest.mark.parametrize(
    ("problem", "w", "norm", "expected"),
    [
        # two walls at right angles, at the same distance from their bisector
        (over_origin((2.0, 0.0), (0.0, 2.0)), [1.0, 0.01], "l2", [1.0, 1.0]),
        # v_1 and 3 v_2 equal: v = (1, 1/3), where v_1 is at its bound
        (over_origin((1.0, 0.0), (0.0, 3.0)), [1.0, 0.9], "l2", [1.0, 1 / 3]),
        # v_1 = v_2 - 2 v_1 with v_2 = 1: both margins are 1/3
        (over_origin((1.0, 0.0), (-2.0, 1.0)), [0.1, 1.0], "l2", [1 / 3, 1.0]),
        (over_origin((1.0, 0.0), (-2.0, 1.0)), [0.1, 1.0], "max", [1 / 3, 1.0]),
        # one wall: its own normal for l2, the corner of the box nearest to it for max
        (over_origin((2.0, 1.0)), [0.5, -0.5], "l2", [1.0, 0.5]),
        (over_origin((2.0, 1.0)), [0.5, -0.5], "max", [1.0, 1.0]),
        # the normal (1, 0.1) reaches 1.01 in the box; 1 + 0.1 v_2 = 1.05 from v_2 = 0.5 on, the less the better
        (over_origin((1.0, 0.1), margin=1.05), [1.0, 1.0], "l2", [1.0, 0.5]),
        # v_1, at the margin exactly for w, and v_2 - v_1 / 2 are equal at (1, 3/2)
        (over_origin((1.0, 0.0), (-0.5, 1.0), margin=0.5), [0.5, 1.0], "l2", [2 / 3, 1.0]),
        # what w loses, (-1, -1), may stay lost, and a pair of equal rows is lost whatever w is
        (over_origin((2.0, 0.0), (0.0, 2.0), (-1.0, -1.0), (0.0, 0.0)), [1.0, 0.01], "l2", [1.0, 1.0]),
        # scored 3, 2, 0: subrank also counts the positives' own order, v_1 - v_2 and 2 v_2 are equal at (1, 1/3)
        (over_origin((1.0, 1.0), (0.0, 2.0), ties="subrank"), [1.0, 0.9], "l2", [1.0, 1 / 3]),
        # the middle grade clears one margin above 0 and one below the top: v·(1, 0) and v·(-1, 2), equal at (1, 1)
        (graded_problem([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [0, 1, 3]), [0.3, 1.0], "l2", [1.0, 1.0]),
        # the top clears the middle by v·(2, 0) >= m and the bottom, two steps below, by v·(0, 2) >= 2 m
        (graded_problem([[0.0, 0.0], [-2.0, 2.0], [0.0, 2.0]], [0, 1, 3]), [1.0, 0.1], "l2", [0.5, 1.0]),
    ],
)
def test_known_geometry(problem, w, norm, expected):
    np.testing.assert_allclose(maximise_margin(problem, w, norm=norm), expected, atol=1e-7)


def test_a_lost_pair_may_be_won_on_the_way():
    # the bisector of (2, 0) and (0, 2) wins (-0.2, 1) too, which (1, 0.1) loses
    problem = over_origin((2.0, 0.0), (0.0, 2.0), (-0.2, 1.0))
    assert problem.evaluate(maximise_margin(problem, [1.0, 0.1])) > problem.evaluate([1.0, 0.1])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(
    ("problem", "w"),
    [
        (over_origin((1.0, 0.0)), [-0.5, 0.2]),  # everything lost
        (over_origin((1.0, 0.0)), [0.0, 0.0]),
        (over_origin((0.0, 0.0)), [0.3, 0.2]),  # everything tied
        (over_origin((1.0, 0.0), margin=2.0), [1.0, 0.0]),  # won by no weights
        (PairwiseProblem([[0.0], [1.0]], [(0, 1)]), [0.7]),
    ],
)
def test_where_nothing_is_won_the_weights_come_back(problem, w, norm):
    assert maximise_margin(problem, w, norm=norm).tolist() == w


# --- support and side constraints ------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_a_price_keeps_the_zeros(norm):
    free, w = cloud()
    w[1] = 0.0
    priced = RerankProblem(free.X, free.y, C=1e-3)
    assert maximise_margin(free, w, norm=norm)[1] != 0
    found = maximise_margin(priced, w, norm=norm)
    assert found[1] == 0
    # what is left is the problem without that column
    columns = [0, 2, 3]
    alone = maximise_margin(RerankProblem(free.X[:, columns], free.y), w[columns], norm=norm)
    np.testing.assert_allclose(found[columns], alone, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("seed", range(6))
def test_signs_that_bind_are_kept_exactly(norm, seed):
    data, w = cloud(seed=seed)
    signs, one = np.sign(w), seed % 4
    w[one], signs[one] = 0.0, -signs[one]  # the data ask for the other sign
    problem = RerankProblem(data.X, data.y, constraints=LinearConstraints(-np.diag(signs), np.zeros(4)))
    found = maximise_margin(problem, w, norm=norm)
    assert (signs * found >= 0).all()
    rows = won_differences(problem, w)
    assert (rows @ found).min() > 1.01 * (rows @ w).min()


# --- other solvers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("sides", ["none", "order", "equal", "budget"])
@pytest.mark.parametrize("margin", [1e-4, 0.05])
@pytest.mark.parametrize("seed", range(3))
def test_no_weights_have_a_larger_margin(norm, sides, margin, seed):
    data, w = cloud(seed=seed, noise=1.0)
    w = np.abs(w) if sides == "order" else w / 4 if sides == "budget" else w
    rules = {
        "none": None,
        "order": LinearConstraints(-np.eye(4), np.zeros(4)),
        "equal": LinearConstraints([[1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0]], [0.0, 0.0]),
        "budget": LinearConstraints(np.ones((1, 4)), [0.6]),
    }[sides]
    w[1] = w[0] if sides == "equal" else w[1]
    problem = RerankProblem(data.X, data.y, margin=margin, constraints=rules)
    rows = won_differences(problem, w)
    v, m, t = cp.Variable(4), cp.Variable(), cp.Variable()
    sides_hold = [] if rules is None else [rules.A @ v <= rules.b * t]
    if norm == "max" or sides == "budget":
        program = cp.Problem(cp.Maximize(m), [rows @ v >= m, cp.abs(v) <= 1, t == 1, *sides_hold])
        program.solve(solver=cp.CLARABEL)
        assert (rows @ maximise_margin(problem, w, norm=norm)).min() == pytest.approx(program.value, rel=1e-6)
    else:
        # t stands for the factor between v and the weights in the box: rows v >= margin t, |v| <= t
        program = cp.Problem(
            cp.Minimize(cp.sum_squares(v)), [rows @ v >= 1, rows @ v >= margin * t, cp.abs(v) <= t, *sides_hold]
        )
        program.solve(solver=cp.CLARABEL)
        found = maximise_margin(problem, w)
        expected = 1 / np.sqrt(program.value)
        assert (rows @ found).min() / np.linalg.norm(found) == pytest.approx(expected, rel=1e-6)


# --- what is not trusted ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [None, np.full(4, -1.0), np.zeros(4)])
@pytest.mark.parametrize("norm", NORMS)
def test_a_wrong_answer_of_the_program_is_not_taken(monkeypatch, answer, norm):
    problem, w = cloud()
    monkeypatch.setattr(module, "_widest", lambda *_, **__: answer)
    monkeypatch.setattr(module, "deepest", lambda *_, **__: answer)
    np.testing.assert_array_equal(maximise_margin(problem, w, norm=norm), w)


def test_an_answer_that_loses_a_comparison_is_not_taken(monkeypatch):
    # (0.5, 0.5) is on the bisector, but short of the margin; where all ranks weigh the same the value cannot tell
    problem = over_origin((1.0, 0.0), (0.0, 1.0), statistic="weights(1,1,1)", margin=0.9)
    monkeypatch.setattr(module, "_widest", lambda *_, **__: np.array([0.5, 0.5]))
    assert maximise_margin(problem, [1.0, 0.9]).tolist() == [1.0, 0.9]


def test_pairs_that_the_support_cannot_tell_apart():
    # rounding may have moved w·δ by more than the margin, but δ is 0 where w is not
    problem = RerankProblem([[1e9, 0.0], [1e9, 5.0]], [0, 1], C=0.01, margin=1e-9)
    assert maximise_margin(problem, [1.0, 0.0]).tolist() == [1.0, 0.0]


def test_the_problems_own_value_has_the_last_word(monkeypatch):
    problem, w = cloud()
    assert maximise_margin(problem, w).tolist() != w.tolist()
    monkeypatch.setattr(RerankProblem, "evaluate", lambda self, v: float(np.array_equal(v, w)))
    assert maximise_margin(problem, w).tolist() == w.tolist()
