import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.convex.newton import Objective, Pairs, floor, minimise
from ltr.losses.functions import EXPONENTIAL, LOGISTIC, SQUARED_HINGE, PairFunction, SmoothedHinge

FUNCTIONS = {
    "logistic": LOGISTIC,
    "exponential": EXPONENTIAL,
    "squared_hinge": SQUARED_HINGE,
    "smooth_hinge": SmoothedHinge(0.3),
}
all_functions = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
rng = np.random.default_rng(0)
DESIGNS = {
    "pairs": Pairs(rng.normal(size=(6, 3)) + 0.3, rng.normal(size=(8, 3))),
    "items": Pairs(rng.normal(size=(15, 3)) + 0.3, np.zeros((1, 3))),
}
all_designs = pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS.keys())


@all_functions
def test_derivatives_of_pair_functions(function):
    z, step = torch.tensor([-3.0, -0.4, 0.9, 1.2, 2.5], dtype=torch.float64), 1e-5
    for order in (1, 2):
        slope = (function.derivative(z + step, order - 1) - function.derivative(z - step, order - 1)) / (2 * step)
        torch.testing.assert_close(function.derivative(z, order), slope, rtol=1e-6, atol=1e-8)
        torch.testing.assert_close(function.derivative(z, order), PairFunction.derivative(function, z, order))


@all_functions
@settings(deadline=None, max_examples=50)
@given(z=st.floats(-20, 20), other=st.floats(-20, 20))
def test_the_conjugate_bounds_the_function_and_touches_it(function, z, other):
    z, other = (torch.tensor([x], dtype=torch.float64) for x in (z, other))
    a = -function.derivative(other, 1)
    bound = -a * z - function.conjugate(a)
    value = function(z)
    tolerance = 1e-12 * (1 + abs(a[0]) * 40 + value[0] + abs(bound[0]))
    assert bound[0] <= value[0] + tolerance
    touching = -a * other - function.conjugate(a)
    assert touching[0] == pytest.approx(float(function(other)), rel=1e-9, abs=1e-9 * float(1 + a[0]))


@all_designs
@all_functions
@pytest.mark.parametrize("p", [1.0, 1.5, 4.0])
def test_derivatives_of_objectives(design, function, p):
    objective = Objective(design, function, np.array([0.0, 0.1, 1.0]), p)
    w, step = np.array([0.2, -0.3, 0.1]), 1e-5 * np.eye(3)
    gradient, hessian, curvature = objective.derivatives(w)
    slopes = [(objective.value(w + e) - objective.value(w - e)) / 2e-5 for e in step]
    bends = [(objective.derivatives(w + e)[0] - objective.derivatives(w - e)[0]) / 2e-5 for e in step]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(hessian, bends, rtol=1e-5, atol=1e-7)
    assert np.linalg.eigvalsh(hessian - curvature).min() > -1e-12


@all_designs
@all_functions
@pytest.mark.parametrize("p", [1.0, 1.5, 4.0])
@pytest.mark.parametrize("penalty", [0.0, 1e-3, 1.0])
def test_the_bound_holds_wherever_it_is_taken_and_closes_at_the_optimum(design, function, p, penalty):
    objective = Objective(design, function, np.full(3, penalty), p)
    best = minimise(objective, np.zeros(3))
    smallest = objective.value(best)
    for seed in range(5):
        somewhere = best + np.random.default_rng(seed).normal(size=3) * 0.5
        assert objective.lower_bound(somewhere, radius=100.0) <= smallest
        assert objective.value(somewhere) >= smallest
    bound = objective.lower_bound(best, radius=100.0)
    assert bound <= smallest
    assert smallest - bound <= 1e-9 * smallest


def test_the_bound_tightens_with_the_square_of_the_distance():
    objective = Objective(DESIGNS["pairs"], LOGISTIC, np.zeros(3))
    best = minimise(objective, np.zeros(3))
    gaps = [objective.value(best) - objective.lower_bound(best + step, 100.0) for step in (1e-2, 1e-3)]
    assert 50 < gaps[0] / gaps[1] < 20_000


@settings(deadline=None, max_examples=30)
@given(
    q=st.lists(st.floats(-5, 5), min_size=2, max_size=2),
    penalty=st.lists(st.sampled_from([0.0, 0.5, 3.0]), min_size=2, max_size=2),
    w=st.lists(st.floats(-10, 10), min_size=2, max_size=2),
)
def test_floor_is_below_every_value(q, penalty, w):
    q, penalty, w = np.array(q), np.array(penalty), np.array(w)
    assert floor(1.0, 1.0, q, np.abs(q), penalty, radius=10.0) <= 1.0 + q @ w + 0.5 * penalty @ w**2
