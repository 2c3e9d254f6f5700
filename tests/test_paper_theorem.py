"""The paper's first theorem: two opposite rankings of one data set, and which measure prefers which."""

import numpy as np
import pytest
import torch

from ltr.data import theorem1
from ltr.losses import PairwiseExponentialLoss, PairwiseHingeLoss
from ltr.metrics import rank_statistic

PREFER_1 = ["wrs", "auc", "pauc@100", "dcg", "dcg(base=e)", "mrr"]
PREFER_2 = ["dcg@100", "pauc@10"]


@pytest.fixture(scope="module", params=range(3))
def lists(request):
    data = theorem1(request.param)
    x, labels = torch.from_numpy(data.X[:, 0].copy()), torch.from_numpy(data.y.copy())
    return x, -x, labels  # solution 1 ranks from large x to small, solution 2 the other way round


def test_the_data_is_the_papers():
    data = theorem1(0)
    x, y = data.X[:, 0], data.y
    clumps = [(3.0, 0, 10), (1.0, 1, 3000), (0.0, 0, 3000), (-10.0, 1, 80)]
    assert data.n == sum(count for _, _, count in clumps)
    for centre, label, count in clumps:
        near = np.abs(x - centre) < 0.4  # eight standard deviations
        assert near.sum() == count
        assert (y[near] == label).all()


@pytest.mark.parametrize("statistic", PREFER_1)
def test_statistics_that_prefer_solution_1(lists, statistic):
    one, two, labels = lists
    assert rank_statistic(one, labels, statistic) > rank_statistic(two, labels, statistic)


@pytest.mark.parametrize("statistic", PREFER_2)
def test_statistics_that_prefer_solution_2(lists, statistic):
    one, two, labels = lists
    assert rank_statistic(one, labels, statistic) < rank_statistic(two, labels, statistic)


def test_the_hinge_loss_prefers_solution_1_and_the_exponential_loss_solution_2(lists):
    one, two, labels = lists
    hinge, exponential = PairwiseHingeLoss(), PairwiseExponentialLoss()
    assert hinge(one, labels) < hinge(two, labels)
    assert exponential(one, labels) > exponential(two, labels)
