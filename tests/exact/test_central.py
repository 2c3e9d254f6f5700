"""Central weights: the fast statistic, its deviation under random orders, and the posterior mean."""

import itertools

import numpy as np
import pytest

from ltr.exact import LinearConstraints, RerankProblem
from ltr.exact.central import SHARPNESS, central_weights, lists_of, null_deviation
from ltr.native import statistics

STATISTICS = ["dcg", "dcg(base=e)@5", "auc", "mrr", "wrs", "pauc@3", "hits@5", "precision@5", "recall@5"]


def _problem(statistic, kind, n=24, margin=1e-4, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.permutation(np.arange(n) % (2 if kind == "binary" else 4))
    qid = rng.integers(0, 3, n) if kind == "lists" else None
    return RerankProblem(X, y, statistic, margin=margin, qid=qid)


def statistics_of(problem, scores):
    """The statistic of each row of scores up to a constant, as the sampler computes it."""
    found = np.empty(len(scores))
    statistics(**lists_of(problem), scores=scores[:, np.concatenate(problem.lists)], found=found)
    return found


@pytest.mark.parametrize("kind", ["binary", "graded", "lists", "long"])
@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("margin", [1e-4, 0.3])
def test_the_fast_statistic_is_that_of_the_problem_up_to_a_constant(statistic, kind, margin):
    problem = _problem(statistic, kind, n=200 if kind == "long" else 24, margin=margin)
    weights = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    weights /= np.abs(weights).max(axis=1, keepdims=True)
    found = statistics_of(problem, weights @ problem.X.T)
    expected = np.array([problem.evaluate(w) for w in weights])
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-12)


@pytest.mark.parametrize("kind", ["binary", "graded"])
@pytest.mark.parametrize("statistic", ["dcg", "auc", "mrr", "hits@2", "recall@2"])
def test_the_deviation_is_that_over_all_orders(statistic, kind):
    problem = _problem(statistic, kind, n=6)
    orders = np.array(list(itertools.permutations(range(6))), dtype=float)
    assert null_deviation(problem) == pytest.approx(statistics_of(problem, orders).std(), rel=1e-12)


@pytest.mark.parametrize("spread", [0.2, 1.0])
def test_central_weights_are_the_mean_of_the_posterior(spread):
    """Against numerical integration over the one weight that may move."""
    problem = _problem("dcg", "binary", n=40)
    start = np.array([1.0, 0.0, 0.0])
    grid = np.linspace(-6 * spread, 6 * spread, 20_001)
    scores = problem.X[:, :1].T + grid[:, None] * problem.X[:, 1]
    density = np.exp(SHARPNESS * statistics_of(problem, scores) / null_deviation(problem) - 0.5 * (grid / spread) ** 2)
    mean = float((grid * density).sum() / density.sum())
    error = float(np.sqrt((grid**2 * density).sum() / density.sum() - mean**2))
    draws = [central_weights(problem, start, spread, fixed=[0, 2], seed=seed) for seed in range(8)]
    found = np.array([w[1] / w[0] for w in draws])
    assert all(w[2] == 0 for w in draws)
    assert abs(mean) > 0.2 * error  # there is something to find
    assert found.mean() == pytest.approx(mean, abs=4 * error / np.sqrt(8 * 32 * 4))


def test_the_same_seed_gives_the_same_weights_and_limits_hold():
    problem = _problem("dcg", "lists", n=40)
    start = np.array([1.0, 0.0, 0.0])
    free = central_weights(problem, start, 0.5, seed=3)
    assert np.array_equal(free, central_weights(problem, start, 0.5, seed=3))
    assert not np.array_equal(free, central_weights(problem, start, 0.5, seed=4))
    assert np.array_equal(central_weights(problem, start, 0.5, fixed=[0, 1, 2]), start)
    j = int(np.argmax(np.abs(free[1:]))) + 1
    row = np.sign(free[j]) * np.eye(3)[j]
    limited = RerankProblem(problem.X, problem.y, qid=problem.qid, constraints=LinearConstraints(row[None], [0.0]))
    held = central_weights(limited, start, 0.5, seed=3)
    assert limited.feasible(held)
    assert np.sign(held[j]) != np.sign(free[j])


@pytest.mark.parametrize("spread", [0.0, -1.0, np.nan, np.inf])
def test_a_spread_out_of_range_is_refused(spread):
    with pytest.raises(ValueError, match="spread must be a finite number > 0"):
        central_weights(_problem("dcg", "binary"), [1.0, 0.0, 0.0], spread)
