import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from ltr import losses
from ltr.convex import certified_optimum

NAMES = [
    "ranknet",
    "hinge",
    "squared_hinge",
    "exponential",
    "logistic",
    "p_norm_push(p=2)",
    "p_norm_push(p=16)",
    "p_norm_push(p=4,inner=logistic)",
    "p_norm_push(p=1.5,inner=logistic)",
]
SMOOTH = [name for name in NAMES if "hinge" not in name]
all_names = pytest.mark.parametrize("name", NAMES)
both_l2 = pytest.mark.parametrize("l2", [0.0, 0.05])


def draw(n=30, d=3, seed=0, noise=3.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 3, d) + np.arange(d)
    y = (X @ np.ones(d) + noise * rng.normal(size=n) > d).astype(np.int64)
    return X, y


def objective(name, X, y, l2, w, b=0.0):
    """The training objective, from the loss and nothing else."""
    scores = torch.as_tensor(X @ w + b, dtype=torch.float64)
    return losses.parse_loss(name)(scores, torch.as_tensor(y)).item() + l2 / 2 * float(w @ w)


def differences(X, y):
    return (X[y == 1][:, None] - X[y == 0][None]).reshape(-1, X.shape[1])


@all_names
@both_l2
def test_certified_and_nothing_nearby_is_better(name, l2):
    X, y = draw()
    best = certified_optimum(name, X, y, l2=l2)
    assert best.lower_bound <= best.value
    assert best.gap <= 1e-9
    assert objective(name, X, y, l2, best.weights, best.bias) == pytest.approx(best.value, rel=1e-12)
    rng = np.random.default_rng(1)
    for size in (1e-6, 1e-3, 0.1, 1.0):
        w = best.weights + size * rng.normal(size=X.shape[1])
        b = best.bias + size * rng.normal() * (name == "logistic")
        assert objective(name, X, y, l2, w, b) >= best.lower_bound


# --- independent solvers -----------------------------------------------------------------------------------------


@all_names
def test_agrees_with_cvxpy_pair_by_pair(name):
    X, y = draw(n=20, d=2, seed=4)
    loss, l2 = losses.parse_loss(name), 0.1
    w, b = cp.Variable(2), cp.Variable()
    z = differences(X, y) @ w
    if name == "logistic":
        value = cp.sum(cp.logistic(cp.multiply(1 - 2 * y, X @ w + b))) / len(y)
    else:
        kind = getattr(loss, "inner", name)
        pair = {
            "ranknet": cp.logistic(-z),
            "logistic": cp.logistic(-z),
            "exponential": cp.exp(-z),
            "hinge": cp.pos(1 - z),
            "squared_hinge": cp.square(cp.pos(1 - z)),
        }[kind]
        inner = cp.sum(cp.reshape(pair, (int(y.sum()), int((1 - y).sum())), order="C"), axis=0) / y.sum()
        value = cp.sum(cp.power(inner, getattr(loss, "p", 1))) / (1 - y).sum()
    problem = cp.Problem(cp.Minimize(value + l2 / 2 * cp.sum_squares(w)))
    problem.solve(solver=cp.CLARABEL)
    best = certified_optimum(name, X, y, l2=l2)
    assert best.value == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(best.weights, w.value, atol=1e-3)


@pytest.mark.parametrize("bias", [True, False])
def test_agrees_with_sklearn_logistic_regression(bias):
    X, y = draw(n=100, seed=6)
    # sklearn minimises C * sum of losses + 1/2 ||w||^2
    model = LogisticRegression(C=1 / (len(y) * 0.05), fit_intercept=bias, tol=1e-10, max_iter=1000).fit(X, y)
    best = certified_optimum("logistic", X, y, l2=0.05, bias=bias)
    np.testing.assert_allclose(best.weights, model.coef_[0], atol=1e-6)
    assert best.bias == pytest.approx(model.intercept_[0] if bias else 0.0, abs=1e-5)
    assert best.value <= objective("logistic", X, y, 0.05, model.coef_[0], model.intercept_[0]) + 1e-12


@all_names
@both_l2
def test_constant_and_dependent_columns(name, l2):
    X, y = draw(seed=11)
    more = np.column_stack([X, np.full(len(y), 7.3), X[:, 0] + X[:, 1]])
    best, wide = certified_optimum(name, X, y, l2=l2), certified_optimum(name, more, y, l2=l2)
    assert wide.gap <= 1e-9
    assert abs(wide.weights[3]) < 1e-12
    assert np.abs(wide.weights).max() < 100
    if l2 == 0:
        assert wide.value == pytest.approx(best.value, rel=1e-9)
    else:
        assert wide.value <= best.value  # a shared load is a smaller norm


def test_columns_that_hardly_vary_are_not_left_out():
    X, y = draw(seed=11)
    column = 1.0 + 1e-12 * X[:, 0]
    rest = X[:, 1:]
    best = certified_optimum("ranknet", np.column_stack([1e12 * (column - 1.0), rest]), y, l2=0.0)
    found = certified_optimum("ranknet", np.column_stack([column, rest]), y, l2=0.0)
    assert found.value == pytest.approx(best.value, rel=1e-9)
    assert found.lower_bound <= best.value * (1 + 1e-9)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("tied", [False, True])
def test_separable_data_has_no_minimiser_without_a_penalty(name, tied):
    X, y = draw(seed=13, noise=0.0)
    if tied:  # a positive and a negative with the same features, right on the boundary
        edge = np.full(3, 1.0)
        X, y = np.vstack([X, edge, edge]), np.append(y, [0, 1])
    with pytest.raises(ValueError, match=r"has no minimiser: a linear function separates the labels.*use l2 > 0"):
        certified_optimum(name, X, y)
    assert certified_optimum(name, X, y, l2=1e-4).gap <= 1e-8


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "ranknet(pairs=sum)"}, r"reduction and pairs 'mean', got ranknet\(pairs=sum\)"),
        ({"loss": "nope"}, "unknown name 'nope'"),
        ({"loss": "lambda"}, "no convex optimum is known for lambda"),
        ({"l2": -1.0}, "l2 must be a finite number >= 0, got -1.0"),
        ({"X": [[0.0], [math.inf]]}, "X: values must be finite and none missing, got inf in column 1, row 2"),
        ({"y": [0, 1, 0]}, r"y: labels must be one per row \(2\), got shape \(3,\)"),
        ({"y": [1, 2]}, "y: labels must be 0 or 1, got 2 in row 2"),
        ({"y": [1, 1]}, "y: labels must hold both classes, got only 1"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    given = {"loss": "ranknet", "X": [[0.0], [1.0]], "y": [0, 1], **arguments}
    with pytest.raises(ValueError, match=message):
        certified_optimum(given.pop("loss"), given.pop("X"), given.pop("y"), **given)


def test_a_subclass_with_other_values_is_refused():
    class Bare(losses.RankNetLoss):
        def pair_function(self, z):
            return torch.relu(-z)

    class Doubled(losses.RankNetLoss):
        def list_values(self, lists):
            return 2 * super().list_values(lists)

    for loss, message in (
        (Bare(), "no convex optimum is known for .*Bare"),
        (Doubled(), "is not the mean of its pair"),
    ):
        with pytest.raises(ValueError, match=message):
            certified_optimum(loss, [[0.0], [1.0]], [0, 1], l2=0.1)
