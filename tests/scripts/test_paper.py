"""The statements of the paper: when Subranks suffice, its definitions of rank, two opposite rankings of one list."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ltr.data import Dataset, theorem1
from ltr.exact import Status
from scripts.paper.theorems import (
    CLAIMS,
    CONVEX,
    COUNTEREXAMPLES,
    FAMILIES,
    LABELS,
    PRINTED,
    SCORES,
    instances,
    moved,
    preferred,
    ranks_of,
    settle,
    solve_exactly,
    tally,
    trained,
    values_of,
)
from tests.reference import cell_optimum

THIRD = 1 / math.log2(3)  # DCG of the second position

# by ResolvedRanks, and by Subranks: the largest objective and the weights that have it
OPTIMA = {
    "two features": ((1 + THIRD - 0.2, [1.0, 0.0]), (1 + 0.5 - 0.2, [0.0, 1.0])),
    "one feature": ((THIRD + 0.5, [0.0]), (1 + THIRD - 0.55, [1.0])),
}


@pytest.fixture(scope="module", params=COUNTEREXAMPLES)
def case(request):
    X, y, C = COUNTEREXAMPLES[request.param]
    return request.param, settle(X, y, C)


def test_the_paper_s_condition_is_not_enough_and_the_corrected_one_is(case):
    name, found = case
    assert not found.duplicates
    assert found.proven
    assert found.fails
    assert found.apart
    assert not found.condition  # the corrected one rules them out
    for answer, (value, weights) in zip((found.best, found.substitute), OPTIMA[name], strict=True):
        assert answer.value == pytest.approx(value)
        np.testing.assert_array_equal(answer.weights, weights)
    worth = found.resolved.evaluate(found.substitute.weights)
    assert found.shortfall == pytest.approx(OPTIMA[name][0][0] - worth)


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_the_optima_of_the_counterexamples_by_enumeration(name):
    X, y, C = COUNTEREXAMPLES[name]
    for rank, (value, _) in zip(("resolved", "subrank"), OPTIMA[name], strict=True):
        assert cell_optimum(X, y, "dcg", C, rank, faces=True)[0] == pytest.approx(value)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("C", [0.0, 0.2, 0.8])
def test_where_the_corrected_condition_holds_the_optima_agree(family, C):
    found = tally(settle(X, y, C) for X, y in instances(family, 5, seed=1))
    assert found["lists"] == found["proven"] == 5
    assert found["against"] == 0
    if C == 0:
        assert (found["condition"], found["fails"]) == (5, 0)
    if family == "whole" and C > 0:
        assert found["fails"] > 0


@pytest.mark.parametrize(("X", "y", "holds"), [
    ([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [2.0, 3.0]], [0, 0, 1, 1], True),  # negatives alike
    ([[1.0, 1.0], [0.0, 0.5], [1.0, 1.0], [2.0, 3.0]], [0, 0, 1, 1], True),  # a negative and a positive alike
    ([[0.0, 0.0], [0.0, 0.5], [2.0, 3.0], [2.0, 3.0]], [0, 0, 1, 1], False),  # positives alike
])  # fmt: skip
def test_only_positives_must_not_be_alike(X, y, holds):
    found = settle(X, y, C=0.0)
    assert found.proven
    assert found.duplicates
    assert (found.condition, found.apart) == (holds, not holds)


def test_optima_of_random_lists_by_enumeration():
    for X, y in instances("whole", 2, seed=3):
        found = settle(X[:, :2], y, C=0.1)
        for rank, answer in (("resolved", found.best), ("subrank", found.substitute)):
            assert answer.value == pytest.approx(cell_optimum(X[:, :2], y, "dcg", 0.1, rank, faces=True)[0])


def test_the_paper_s_example_of_ranks():
    ranks = ranks_of(torch.tensor(SCORES), torch.tensor(LABELS))
    for name, printed in PRINTED.items():
        assert tuple(ranks[name].tolist()) == printed
    assert ranks["RankCV"].tolist() == [9, 9, 7, 6, 5, 5, 3, 2, 2]


tied_lists = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1)), min_size=2, max_size=10).filter(
    lambda items: len({label for _, label in items}) == 2
)


@given(tied_lists)
def test_a_constant_score_wins_by_rank_cv_and_by_no_other(items):
    labels = torch.tensor([label for _, label in items])
    perfect = values_of(labels - 1e-3 * torch.arange(len(labels)), labels)
    constant = values_of(torch.zeros(len(labels)), labels)
    assert constant["RankCV"] >= perfect["RankCV"]
    assert max(constant["Subrank"], constant["ResolvedRank"]) < perfect["ResolvedRank"]


def test_the_data_is_the_papers():
    data = theorem1(0)
    x, y = data.X[:, 0], data.y
    clumps = [(3.0, 0, 10), (1.0, 1, 3000), (0.0, 0, 3000), (-10.0, 1, 80)]
    assert data.n == sum(count for _, _, count in clumps)
    for centre, label, count in clumps:
        near = np.abs(x - centre) < 0.4  # eight standard deviations
        assert near.sum() == count
        assert (y[near] == label).all()


def thinned(seed=0, every=10):
    """A tenth of the theorem's data, of each clump."""
    data = theorem1(seed)
    return Dataset(data.name, data.X[::every], data.y[::every])


@pytest.mark.parametrize("name", CLAIMS)
def test_every_preference_that_the_theorem_names(name):
    assert preferred(name, [theorem1(seed) for seed in range(3)]) == CLAIMS[name]


@pytest.mark.parametrize("name", CONVEX)
def test_all_convex_losses_end_with_one_ranking_and_turn_together_where_no_rank_changes(name):
    data = thinned()
    assert trained(name, data) == 1
    assert trained(name, moved(data)) == 2


@pytest.mark.parametrize(("statistic", "sign"), [("auc", 1), ("dcg", 1), ("dcg@10", -1), ("pauc@2", -1)])
def test_the_exact_stage_proves_the_direction(statistic, sign):
    answer = solve_exactly(statistic, thinned())
    assert answer.status is Status.OPTIMAL
    assert np.sign(answer.weights[0]) == sign
