import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.exact import LinearConstraints, RerankProblem
from ltr.exact.constraints import SIDE_TOLERANCE
from ltr.exact.preferences import PairwiseProblem, multipartite_pairs
from tests.exact.test_scores import KINDS
from tests.reference import exact_scores, random_instance, random_pairwise, slow_margin_value
from tests.tiers import examples

INSTANCES = range(0, 156)
LOG2 = math.log2

# numbers whose products and differences round, tie, meet a margin of 0.1 exactly or only nearly, or swamp it
AWKWARD = [0.0, 0.1, 0.2, 0.3, 0.1 + 0.2, 1 / 3, 2 / 3, 0.5, 1.0, 1.1, 1e-9, 1e8, 1e16, 3.0, 7.0, 1e-300, 1e300]
MARGINS = [0.1, 0.30000000000000004, 1e-4, 1e-12, 0.5, 1.0]


def weights_for(seed, d):
    """Zero, single features, dyadic and arbitrary weights, some far outside the box."""
    rng = np.random.default_rng(seed)
    w = rng.choice([rng.integers(-4, 5, size=d) / 4.0, rng.normal(size=d), np.zeros(d), 50 * rng.normal(size=d)])
    return np.where(rng.random(d) < 0.3, 0.0, w)


# --- the statistic at given weights ----------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [1e-4, 0.25, 1.0])
def test_statistic_value_equals_the_definition_by_loops(margin):
    for seed in INSTANCES:
        base = random_instance(seed)
        p = RerankProblem(base.X, base.y, base.statistic, base.C, margin, ties=base.ties)
        for trial in range(4):
            w = weights_for([seed, trial], p.d)
            inside = w / max(1.0, np.abs(w).max())
            expected = slow_margin_value(p.X, p.y, inside, str(p.statistic), margin, p.ties)
            assert p.statistic_value(w) == pytest.approx(expected, abs=1e-12)
            assert p.evaluate(w) == pytest.approx(expected - p.C * np.sum(inside != 0), abs=1e-12)


@settings(max_examples=examples(40, slow=300), deadline=None)
@given(data=st.data())
def test_comparisons_with_the_margin_are_decided_exactly(data):
    n, d = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 3))
    numbers = st.sampled_from(AWKWARD + [-v for v in AWKWARD])
    X = np.array(data.draw(st.lists(st.lists(numbers, min_size=d, max_size=d), min_size=n, max_size=n)))
    w = np.array(data.draw(st.lists(st.sampled_from([v for v in AWKWARD if v <= 1]), min_size=d, max_size=d)))
    w *= data.draw(st.sampled_from([1.0, -1.0]))
    margin = data.draw(st.sampled_from(MARGINS))
    y = np.arange(n) % 2
    for ties in ("resolved", "subrank"):
        p = RerankProblem(X, y, "wrs", margin=margin, ties=ties)
        assert p.statistic_value(w) == slow_margin_value(X, y, w, "wrs", margin, ties)
    scores = exact_scores(X, w)
    wins = p.scores(w).wins(np.arange(n)[:, None], np.arange(n))
    assert wins.tolist() == [[i - k >= Fraction(margin) for k in scores] for i in scores]


@pytest.mark.parametrize(
    ("X", "w", "margin", "wins"),
    [
        ([[2e307, 2e307], [2e307, -2e307]], [1.0, 1.0], 1.0, True),  # nearly the largest numbers
        ([[2e307, -2e307], [-2e307, 2e307]], [1.0, -1.0], 1.0, True),
        ([[1e307, 1e307, 0.0], [1e307, 1e307, 1.0]], [1.0, 1.0, -1.0], 1.0, True),  # equal scores, true difference 1
        ([[1e307, 1e307, 0.0], [1e307, 1e307, 1.0]], [1.0, 1.0, 1.0], 1.0, False),
        ([[3e-324], [0.0]], [1.0], 5e-324, True),  # 3e-324 reads as the smallest subnormal
        ([[1e-200], [0.0]], [1e-200], 5e-324, False),  # the product underflows to 0, and is below the margin
        ([[1e16 + 2, 0.0], [1e16, 0.0]], [1.0, 0.3], 2.0, True),
        ([[0.3], [0.2]], [1.0], 0.1, False),  # 0.3 - 0.2 is below the float 0.1 by 2.8e-17
        ([[0.1 + 0.2], [0.2]], [1.0], 0.1, True),  # and this one above it
    ],
)
def test_extreme_numbers_are_compared_exactly(X, w, margin, wins):
    p = PairwiseProblem(X, [(0, 1)], margin=margin)
    difference = sum(Fraction(v) * (Fraction(a) - Fraction(b)) for v, a, b in zip(w, X[0], X[1], strict=True))
    assert (difference >= Fraction(margin)) == wins  # the table itself
    assert p.statistic_value(w) == float(wins)


@pytest.mark.parametrize(("ties", "expected"), [("subrank", [7, 7, 3, 2, 0]), ("resolved", [8, 7, 3, 2, 0])])
def test_ranks_of_the_papers_figure(ties, expected):
    scores = [6.2, 6.2, 5.8, 4.6, 3.1, 3.1, 2.3, 1.7, 1.7]
    labels = [1, 1, 0, 0, 0, 1, 1, 0, 1]
    p = RerankProblem(np.array(scores)[:, None], labels, "wrs", ties=ties)
    assert (p.ranks([1.0]) - 1)[p.positives].tolist() == expected  # the paper's ranks start at 0


# --- scale, price, margin, duplicates --------------------------------------------------------------------------


def test_price_counts_the_non_zero_weights():
    p = RerankProblem([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], [0, 1], C=0.25)
    assert p.evaluate([1.0, -0.0, 0.0]) == 1.0 - 0.25
    assert p.evaluate([1.0, 1e-300, -1.0]) < p.evaluate([1.0, 0.0, 0.0])
    assert p.evaluate([0.0, 0.0, 0.0]) == 1 / LOG2(3)  # all tied: the negative stands on top, and no price


# --- preferences -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", [1e-4, 0.25])
def test_pairwise_value_equals_the_definition_by_loops(margin):
    for seed in range(100):
        base = random_pairwise(seed)
        p = PairwiseProblem(base.X, base.pairs, weights=base.weights, C=base.C, margin=margin)
        w = p.in_box(weights_for(seed, p.d))
        scores = exact_scores(p.X, w)
        agreed = sum(
            weight
            for (i, k), weight in zip(p.pairs.tolist(), p.weights.tolist(), strict=True)
            if scores[i] - scores[k] >= Fraction(margin)
        )
        assert p.evaluate(w) == pytest.approx(agreed - p.C * np.count_nonzero(w), abs=1e-12)
        assert p.statistic_value(w) <= p.trivial_bound


def test_positive_negative_pairs_give_auc():
    for seed in range(30):
        auc = random_instance(seed, statistic="auc")
        auc = RerankProblem(auc.X, auc.y, "auc")
        pairs = PairwiseProblem(auc.X, multipartite_pairs(auc.y))
        w = weights_for(seed, auc.d)
        assert pairs.evaluate(w) / len(pairs.pairs) == pytest.approx(auc.evaluate(w), abs=1e-12)


# --- construction ----------------------------------------------------------------------------------------------

X2, Y2 = [[0.0, 1.0], [1.0, 0.0]], [0, 1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RerankProblem([1.0, 2.0], Y2), r"X must be 2-D .* shape \(2,\)"),
        (lambda: RerankProblem([[0.0, np.nan], [1.0, 0.0]], Y2), "X must be finite, got nan at row 0, column 1"),
        (lambda: RerankProblem(X2, [0, 1, 1]), r"one label per row of X \(2\), got shape \(3,\)"),
        (lambda: RerankProblem(X2, [-1, 1]), "y must hold finite labels >= 0, got -1"),
        (lambda: RerankProblem(X2, [1, 1]), "both classes, got only 1"),
        (lambda: RerankProblem(X2, Y2, "ndcg"), "unknown name 'ndcg'"),
        (lambda: RerankProblem(X2, Y2, C=-0.1), "C must be a number from 0 to 1e300, got -0.1"),
        (lambda: RerankProblem(X2, Y2, margin=0.0), "margin must be a finite number > 0, got 0.0"),
        (lambda: RerankProblem(X2, Y2, ties="cv"), "ties must be one of 'resolved', 'subrank', got 'cv'"),
        (lambda: RerankProblem(X2, Y2, constraints=LinearConstraints([[1.0]], [0.0])), "A must have 2 columns, got 1"),
        (lambda: LinearConstraints([[1.0, 0.0]], [0.0, 1.0]), r"A must be \(rows, d\) and b \(rows,\), got \(1, 2\)"),
        (lambda: RerankProblem(X2, Y2, constraints=([[1.0, 0.0]], [0.0])), r"must be LinearConstraints\(A, b\) or"),
        (lambda: LinearConstraints([[1.0, -3e307]], [0.0]), r"at most 1.49808e\+307 where d = 2, .* got 3e\+307"),
        (lambda: RerankProblem([[0.0, 1.0], [-1e308, 0.0]], [1, 0]), r"X must be at most 2.24712e\+307 .* at row 1, c"),
        (lambda: PairwiseProblem(X2, np.zeros((0, 2), dtype=int)), "at least one edge"),
        (lambda: PairwiseProblem(X2, [(1, 1)]), r"different rows of 0..1, got \[1, 1\]"),
        (lambda: PairwiseProblem(X2, [(0, 1)], weights=[0.0]), "weights must be finite numbers > 0, got 0.0"),
        (lambda: RerankProblem(X2, Y2).evaluate([1.0]), r"w must have shape \(2,\), got \(1,\)"),
        (lambda: RerankProblem(X2, Y2).evaluate([1.0, np.nan]), r"w must be finite, got \[1.0, nan\]"),
    ],
)
def test_arguments_against_their_rule_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_problem_keeps_its_own_frozen_copy_of_the_data():
    X, y, A = np.array(X2), np.array(Y2), np.array([[1.0, 0.0]])
    p = RerankProblem(X, y, constraints=LinearConstraints(A, [1.0]))
    before = p.evaluate([1.0, 0.0])
    X[:], y[:], A[:] = 9.0, 0, 9.0
    assert p.evaluate([1.0, 0.0]) == before
    assert p.constraints.A.tolist() == [[1.0, 0.0]]
    for array in (p.X, p.y, p.constraints.A, p.constraints.b):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(dataclasses.FrozenInstanceError):
        p.C = 1.0


# --- side constraints ------------------------------------------------------------------------------------------


def test_side_constraints_hold_for_the_weights_in_the_box():
    p = RerankProblem(X2, Y2, constraints=LinearConstraints([[1.0, 1.0], [-1.0, 0.0]], [0.5, 0.0]))
    assert p.feasible([0.25, 0.25])
    assert p.feasible([0.5 + 1e-10, 0.0])  # within the tolerance
    assert not p.feasible([0.5 + 1e-10, 0.0], tolerance=0.0)
    assert not p.feasible([-0.1, 0.0])
    assert not p.feasible([2.0, 0.0])  # (1, 0) in the box
    assert RerankProblem(X2, Y2).feasible([9.0, 9.0])


@pytest.mark.parametrize(
    ("A", "b", "w", "satisfied"),
    [
        ([1.0], 0.0, [5e-324], False),  # a sign
        ([-1.0], 0.0, [1e-300], True),
        ([1.0, 0.0], 0.0, [0.0, 1.0], True),
        ([1.0, -1.0], 0.0, [1.0, 1.0 - 1.9e-9], True),  # 1.9e-9 <= 1e-9 (1 + 1)
        ([1.0, -1.0], 0.0, [1.0, 1.0 - 2.1e-9], False),
        ([1.0, -1.0], 0.0, [0.3, 0.1 + 0.2], True),  # 0.1 + 0.2 is above 0.3
        ([1.0], 0.5, [0.5 + 9e-10], True),  # 9e-10 <= 1e-9 (0.5 + 0.5)
        ([1.0], 0.5, [0.5 + 1.1e-9], False),
        ([1.0], -0.5, [-0.5 + 9e-10], True),
        ([1.0], -0.5, [-0.5 + 1.1e-9], False),
        ([0.0], 0.0, [1.0], True),
        ([0.0], -1e-9, [1.0], False),
    ],
)
def test_the_tolerance_of_side_constraints_is_relative(A, b, w, satisfied):
    for unit in (1.0, 3e-9, 1e9, 1e-150, 1e150):
        assert LinearConstraints(np.multiply(A, unit), b * unit).satisfied(np.array(w)) is satisfied
        if b == 0 and unit < 1:
            assert LinearConstraints(A, 0.0).satisfied(np.multiply(w, unit)) is (satisfied or w == [5e-324])


def test_side_constraints_are_decided_exactly():
    # 1 - v <= 1e-9 (1 + v) at v = (1 - 1e-9) / (1 + 1e-9)
    rows, tolerance = LinearConstraints([[1.0, -1.0]], [0.0]), Fraction(SIDE_TOLERANCE)
    edge = float((1 - tolerance) / (1 + tolerance))
    for v in (edge, *np.nextafter(edge, [0.0, 1.0]).tolist()):
        assert rows.satisfied(np.array([1.0, v])) is (1 - Fraction(v) <= tolerance * (1 + Fraction(v)))


# --- many lists ------------------------------------------------------------------------------------------------


def ranks_by_loops(problem, w):
    """The definition of ranks, list by list, in rational numbers."""
    scores, margin = exact_scores(problem.X, problem.in_box(w)), Fraction(problem.margin)
    ranks = np.zeros(problem.n, dtype=int)
    for query in set(problem.qid.tolist()):
        members = np.flatnonzero(problem.qid == query).tolist()
        if problem.ties == "subrank":
            for i in members:
                ranks[i] = 1 + sum(scores[i] - scores[k] >= margin for k in members)
            continue
        grades = sorted({problem.gains[i] for i in members})
        grade = {i: grades.index(problem.gains[i]) for i in members}
        ascending = sorted(members, key=lambda i: (scores[i] - margin * grade[i], grade[i], -i))
        ranks[ascending] = np.arange(1, len(members) + 1)
    return ranks


@pytest.mark.parametrize("ties", ["resolved", "subrank"])
@pytest.mark.parametrize("numbers", KINDS)
def test_many_lists_are_ranked_as_one_by_one(numbers, ties):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 40)), int(rng.integers(1, 5))
        X, y = KINDS[numbers](rng, n, d), rng.integers(0, 4, n)
        y[0] = 1
        p = RerankProblem(
            X,
            y,
            "dcg",
            margin=float(rng.choice([1e-4, 0.1, 0.5, 0.30000000000000004])),
            qid=rng.integers(-3, 6 if seed % 3 else -2, n),
            normalize=bool(seed % 2),
            ties=ties,
        )
        whole = rng.integers(-3, 4, d)
        for w in (rng.uniform(-1, 1, d), whole / 2, whole / 3, np.eye(d)[0], np.zeros(d)):
            ranks = ranks_by_loops(p, w)
            assert p.ranks(w).tolist() == ranks.tolist()
            lengths = [int(np.sum(p.qid == query)) for query in p.qid]
            terms = [g * p.statistic.weights(m)[r - 1] for g, m, r in zip(p.gains, lengths, ranks, strict=True)]
            assert p.evaluate(w) == math.fsum(terms)
