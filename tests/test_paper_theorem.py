"""The paper's first theorem: two opposite rankings of one data set, and which measure prefers which."""

import numpy as np
import pytest

from ltr.data import Dataset, theorem1
from ltr.exact import Status
from scripts.paper.theorem1 import (
    CLAIMS,
    CONVEX,
    moved,
    preferred,
    solve_exactly,
    train,
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


@pytest.mark.parametrize("name", CLAIMS)
def test_every_preference_that_the_theorem_names(name):
    assert preferred(name, [theorem1(seed) for seed in range(3)]) == CLAIMS[name]


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
