"""Scorers: shapes, starts, state; standardisation of difficult columns."""

import copy

import numpy as np
import pytest
import torch

from ltr.rankers.scorers import LinearScorer, MLPScorer, Standardize

SCORERS = [
    LinearScorer(4),
    LinearScorer(4, bias=False),
    *(MLPScorer(4, hidden=sizes) for sizes in ((32, 16), (3,), ())),
]


@pytest.mark.parametrize("scorer", SCORERS)
def test_scores_drop_the_feature_axis_and_move_with_every_parameter(scorer):
    scorer = copy.deepcopy(scorer)
    for shape in ((), (5,), (2, 5), (2, 3, 5), (0,)):
        scores = scorer(torch.ones(*shape, 4))
        assert (scores.shape, scores.dtype) == (shape, torch.float64)
    scorer(torch.randn(6, 4)).square().add(scorer(torch.ones(6, 4))).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in scorer.parameters())
    assert scorer.float()(torch.randn(6, 4, dtype=torch.float64)).dtype == torch.float32


def test_dropout_acts_in_training_only():
    scorer = MLPScorer(3, hidden=(50,), dropout=0.5)
    X = torch.ones(20, 3)
    assert np.ptp(scorer(X).detach().numpy()) > 1e-3
    assert np.ptp(scorer.eval()(X).detach().numpy()) < 1e-12  # equal but for the rounding of a matrix product


def test_standardised_columns_have_mean_0_and_deviation_1():
    X = np.random.default_rng(0).normal(size=(50, 4)) * [1e-3, 1.0, 1e4, 1e-200] + [5.0, -3.0, 1e5, 0.0]
    Z = Standardize.fit(X)(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 5e-324, 1 / 3])
def test_a_constant_column_becomes_exactly_0(value):
    X = np.full((7, 1), value)
    standardize = Standardize.fit(X)
    assert standardize.scale.item() == 1
    assert not standardize(torch.from_numpy(X)).any()


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_extreme_columns_neither_overflow_nor_vanish(size):
    Z = Standardize.fit([[-size], [size]])(torch.tensor([[-size], [size]], dtype=torch.float64))
    np.testing.assert_allclose(Z.numpy()[:, 0], [-1, 1], rtol=1e-12)
