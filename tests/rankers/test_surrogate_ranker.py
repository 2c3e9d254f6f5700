"""Surrogate rankers: certified optima, raw features, state, interruption, resumption."""

import numpy as np
import pytest
import torch

from ltr.convex import certified_optimum
from ltr.rankers import SurrogateRanker
from ltr.rankers.scorers import Standardize
from tests.tiers import thinned

# many of these fits are cut short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LOSSES = ["ranknet", "hinge", "squared_hinge", "exponential", "logistic", "p_norm_push(p=2)"]


def overlapping(n=200, d=8, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) @ generator.normal(size=(d, d))
    y = X @ generator.normal(size=d) + 6 * generator.normal(size=n) > 2
    return X, y.astype(int)


def badly_scaled(n=200, d=8, seed=1):
    X, y = overlapping(n, d, seed)
    return X * np.logspace(-3, 4, d) + 100 * np.logspace(4, -3, d), y


@pytest.mark.parametrize(("loss", "data"), thinned(2, LOSSES, [overlapping, badly_scaled]))
def test_a_linear_fit_reaches_the_certified_optimum(loss, data):
    X, y = data()
    ranker = SurrogateRanker(loss).fit(X, y)
    assert ranker.converged_
    optimum = certified_optimum(loss, Standardize.fit(X)(torch.tensor(X)).numpy(), y, l2=ranker.l2, bias=True).value
    assert ranker.objective_ == pytest.approx(optimum, rel=1e-6)


@pytest.mark.parametrize("scorer", ["linear", "mlp"])
def test_equal_rows_get_equal_scores(scorer):
    X, y = overlapping(60)
    ranker = SurrogateRanker(scorer=scorer, hidden=(33,), max_steps=5).fit(X, y)
    rows = np.concatenate([X, X[:41], X[::-1]])
    scores = ranker.decision_function(rows)
    np.testing.assert_array_equal(scores[:60], scores[60 + 41 :][::-1])
    np.testing.assert_array_equal(scores[:41], scores[60 : 60 + 41])


# state


def test_a_state_is_a_copy():
    X, y = overlapping(60)
    ranker = SurrogateRanker().fit(X, y)
    scores, state = ranker.decision_function(X), ranker.to_state()
    state["fitted"]["scorer"]["weight"].zero_()
    np.testing.assert_array_equal(ranker.decision_function(X), scores)


# interruption and resumption


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("options", [{}, {"optimizer": "adam", "batch_size": 20, "learning_rate": 0.3}])
def test_an_interrupted_ranker_holds_the_best_weights_so_far(options, stop):
    X, y = overlapping(60)
    seen = []

    def interrupt(step, ranker):
        seen.append((step.objective, ranker.decision_function(X)))
        if step.index == 6:
            raise stop

    ranker = SurrogateRanker("ranknet", max_steps=50, on_step=interrupt, **options)
    with pytest.raises(stop):
        ranker.fit(X, y)
    best = min(range(6), key=lambda at: seen[at][0])
    assert ranker.objective_ == seen[best][0]
    np.testing.assert_array_equal(ranker.decision_function(X), seen[best][1])
    assert ranker.n_iter_ == 6
    assert not ranker.converged_


# errors


@pytest.mark.parametrize("by_query", [False, True])
@pytest.mark.parametrize("options", [{}, {"optimizer": "adam", "max_steps": 30}, {"signs": {0: "+"}}], ids=repr)
def test_an_optimum_is_measured_on_a_validation_set_and_does_not_depend_on_it(options, by_query):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    qid = np.arange(120) % 6 if by_query else None
    train, held = np.arange(120) < 72, np.arange(120) >= 72
    part = [(X[rows], y[rows], None if qid is None else qid[rows]) for rows in (train, held)]
    plain, measured = (
        SurrogateRanker("hinge", l2=0.01, normalize=True, **options).fit(*part[0], validation_set=given)
        for given in (None, part[1])
    )
    assert plain.validation_ is None
    np.testing.assert_array_equal(measured.coef_, plain.coef_)
    assert (measured.converged_, measured.n_iter_) == (plain.converged_, plain.n_iter_)
    assert measured.validation_ == pytest.approx(measured.score(*part[1]), abs=1e-12)
    with pytest.raises(ValueError, match=r"validation_set must be \(X, y\) or \(X, y, qid\)"):
        SurrogateRanker("hinge", **options).fit(*part[0], validation_set=(X[held],))
