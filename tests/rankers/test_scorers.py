"""Scorers: shapes, starts, state; standardisation of difficult columns."""

import copy
import sys

import numpy as np
import pytest
import torch

from ltr.rankers.scorers import AttentionScorer, LinearScorer, MLPScorer, Quantiles, Standardize


def scorers(d):
    return [
        LinearScorer(d),
        LinearScorer(d, bias=False),
        MLPScorer(d),
        MLPScorer(d, hidden=(3,)),
        MLPScorer(d, hidden=()),
    ]


@pytest.mark.parametrize("shape", [(), (5,), (2, 5), (2, 3, 5), (0,)])
@pytest.mark.parametrize("which", range(5))
def test_scores_drop_the_feature_axis(which, shape):
    scorer = scorers(4)[which]
    scores = scorer(torch.ones(*shape, 4))
    assert scores.shape == shape
    assert scores.dtype == torch.float64


@pytest.mark.parametrize("which", range(5))
def test_every_parameter_gets_a_gradient(which):
    scorer = scorers(4)[which]
    scorer(torch.randn(6, 4)).square().add(scorer(torch.ones(6, 4))).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in scorer.parameters())


@pytest.mark.parametrize("which", range(5))
def test_float32_scorers_take_float64_features(which):
    scorer = scorers(4)[which].float()
    assert scorer(torch.randn(6, 4, dtype=torch.float64)).dtype == torch.float32


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


MODULES = {
    "linear": LinearScorer(4),
    "without bias": LinearScorer(4, bias=False),
    "mlp": MLPScorer(4, hidden=(5,), dropout=0.1, layer_norm=True),
    "attention": AttentionScorer(4, hidden=(6,), heads=2, dropout=0.1),
    "standardize": Standardize.fit(np.random.default_rng(0).normal(size=(9, 4))),
    "quantiles": Quantiles.fit(np.random.default_rng(0).normal(size=(9, 4))),
}
FORMS = {
    "export": lambda module, example: torch.export.export(
        module, (example,), dynamic_shapes=({0: torch.export.Dim("batch"), 1: torch.export.Dim("list")},)
    ).module(),
}
if sys.version_info < (3, 14):  # torch.jit is not supported on newer versions
    FORMS["jit.script"] = lambda module, example: torch.jit.script(module)
    FORMS["jit.trace"] = lambda module, example: torch.jit.trace(module, (example,))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_modules_travel_as_programs_of_torch(name, form, tmp_path):
    module = copy.deepcopy(MODULES[name]).eval()
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        for parameter in module.parameters():  # a new linear scorer is 0
            parameter.normal_()
        example, batch = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(5, 7, 4, dtype=torch.float64)
    program = FORMS[form](module, example)
    if form == "jit.script":
        program.save(tmp_path / "module.pt")
        program = torch.jit.load(tmp_path / "module.pt")
    for given in (example, batch, batch[:1, :1]):
        torch.testing.assert_close(program(given), module(given), rtol=0, atol=1e-12)
    if name == "attention" and form == "jit.script":
        mask = torch.arange(7) < torch.tensor([[7], [3], [1], [2], [6]])
        torch.testing.assert_close(program(batch, mask), module(batch, mask), rtol=0, atol=1e-12)
