"""The paper's first theorem: two opposite rankings of one data set, and which measure prefers which."""

import numpy as np
import pytest

from ltr.data import Dataset, theorem1
from ltr.exact import Status
from ltr.losses import parse_loss
from scripts.paper.theorem1 import (
    CLAIMS,
    CONVEX,
    EXACT,
    FIRST_HIT,
    compare,
    moved,
    rankings,
    scores_and_labels,
    solve_exactly,
    train,
    turning_scale,
)


def test_the_data_is_the_papers():
    data = theorem1(0)
    x, y = data.X[:, 0], data.y
    clumps = [(3.0, 0, 10), (1.0, 1, 3000), (0.0, 0, 3000), (-10.0, 1, 80)]
    assert data.n == sum(count for _, _, count in clumps)
    for centre, label, count in clumps:
        near = np.abs(x - centre) < 0.4  # eight standard deviations
        assert near.sum() == count
        assert (y[near] == label).all()


# --- the same as the paper's page has it ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    return theorem1(0)


def thinned(seed=0, every=10):
    """A tenth of the theorem's data, of each clump."""
    data = theorem1(seed)
    return Dataset(data.name, data.X[::every], data.y[::every])


@pytest.fixture(scope="module")
def comparisons():
    return {c.name: c for c in compare(range(3))}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_preference_that_the_theorem_names(comparisons, name):
    assert comparisons[name].preferred == CLAIMS[name]


def test_the_reciprocal_rank_of_the_first_positive_prefers_solution_2(comparisons):
    usual = comparisons[FIRST_HIT]
    assert usual.preferred == 2
    assert usual.first[0] == pytest.approx(1 / 11)  # below 10 negatives
    assert usual.second[0] == 1


@pytest.mark.parametrize("name", ["exponential", "squared_hinge", "p_norm_push(p=2)"])
def test_a_loss_turns_over_at_its_scale(data, name):
    scale = turning_scale(name, data)
    x, y = scores_and_labels(data)
    loss = parse_loss(name)
    assert loss(0.95 * scale * x, y) < loss(-0.95 * scale * x, y)
    assert loss(1.05 * scale * x, y) > loss(-1.05 * scale * x, y)


@pytest.mark.parametrize("name", CONVEX)
def test_all_convex_losses_end_with_one_ranking_and_turn_together_where_no_rank_changes(name):
    data = thinned()
    assert train(name, data).solution == 1
    assert train(name, moved(data)).solution == 2


@pytest.mark.parametrize(("statistic", "sign"), [("auc", 1), ("dcg", 1), ("dcg@10", -1), ("pauc@2", -1)])
def test_the_exact_stage_proves_the_direction(statistic, sign):
    answer = solve_exactly(statistic, thinned())
    assert answer.status is Status.OPTIMAL
    assert np.sign(answer.weights[0]) == sign


def test_two_stages_are_as_good_as_the_better_solution_by_every_statistic(data):
    found = rankings(data)
    first, second, two_stage, _ = found.values()
    assert set(first) == set(EXACT)
    assert all(two_stage[name] >= max(first[name], second[name]) for name in EXACT)
