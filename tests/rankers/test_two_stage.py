"""The two-stage ranker: cut, rerank, splice, save and load."""

import math

import numpy as np
import pytest

from ltr.exact import Status
from ltr.exact.state import Ending
from ltr.rankers import SurrogateRanker
from tests.rankers.two_stages import Scores, two_stage


def sample(seed=0, n=80, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 50.0, 0.01][:d]
    y = (X @ [1.0, -0.02, 60.0][:d] + rng.normal(size=n) > 0.8).astype(int)
    return X, y


def quick(**options):
    return two_stage(**{"time_limit": 4.0, "method": "local_search", "top_k": 20, **options})


def test_the_list_is_cut_at_the_kth_training_score():
    X, y = sample()
    ranker = quick(base=Scores()).fit(X, y)
    assert ranker.threshold_ == np.sort(X[:, 0])[-20]
    assert ranker.reranked(X).sum() == (ranker.rank(X)["stage"] == "reranked").sum() == 20
    assert ranker.problem_.n == 20
    np.testing.assert_array_equal(ranker.problem_.y, y[X[:, 0] >= ranker.threshold_])


def test_reranked_items_stand_on_top_and_the_rest_keeps_its_order():
    X, y = sample()
    X, fresh = (np.add(one, [40.0, 0.0, 0.0]) for one in (X, sample(seed=1, n=200)[0]))
    ranker = quick(base=Scores()).fit(X, y)
    scores, chosen = ranker.decision_function(fresh), ranker.reranked(fresh)
    assert 0 < chosen.sum() < len(fresh)
    assert scores[chosen].min() > scores[~chosen].max()
    np.testing.assert_array_equal(scores[~chosen], fresh[~chosen, 0])
    exact = fresh[chosen] @ ranker.coef_
    np.testing.assert_array_equal(np.argsort(scores[chosen]), np.argsort(exact))
    np.testing.assert_array_equal(ranker.order(fresh)[: chosen.sum()], np.flatnonzero(chosen)[np.argsort(-exact)])


@pytest.mark.parametrize("top_k", [None, 80, 81])
def test_the_full_list(top_k):
    X, y = sample()
    ranker = quick(top_k=top_k).fit(X, y)
    assert ranker.note_ == ""
    assert ranker.threshold_ == -math.inf
    assert ranker.problem_.n == len(X)
    assert ranker.reranked(X).all()
    assert np.isfinite(ranker.decision_function(X)).all()


def test_scores_of_outliers_keep_their_order():
    X, y = sample()
    ranker = quick(base=Scores()).fit(X, y)
    far = np.outer([1.0, 1e6, 1e6 + 1, 1e9, -1e5, -1e5 - 1], ranker.coef_)
    far[:, 0] = np.abs(far[:, 0]) + X[:, 0].max()
    exact = (far - ranker.exact_.center_) @ ranker.coef_
    np.testing.assert_array_equal(np.argsort(ranker.decision_function(far)), np.argsort(exact))


@pytest.mark.parametrize(
    ("first", "y", "note"),
    [
        (np.arange(30.0), np.arange(30) >= 15, "the top 10 hold a single class"),
        (np.r_[np.arange(20.0) / 10, np.full(10, 5.0)], np.arange(30) % 2, "the top 10 do not differ in any feature"),
    ],
)
def test_a_top_with_nothing_to_order_leaves_the_base_order(first, y, note):
    X = np.column_stack([first, -first])
    ranker = quick(base=Scores(), top_k=10).fit(X, y.astype(int))
    assert ranker.solution_ is None
    assert ranker.note_ == f"{note}: the base ranking is kept"
    np.testing.assert_array_equal(ranker.decision_function(X), X[:, 0])


@pytest.mark.parametrize("norm", ["l2", "max"])
def test_recentring_widens_the_margin_and_keeps_the_value(norm):
    X, y = sample()
    ranker = quick(base=Scores(), top_k=40, recentre=norm).fit(X, y)
    problem = ranker.problem_
    found = ranker.solution_.weights
    scores = (X[ranker.reranked(X)] - ranker.exact_.center_) @ ranker.coef_
    kept = np.linalg.lstsq(problem.X, scores, rcond=None)[0]  # on the features of the problem
    won = problem.scores(found).wins(problem.positives[:, None], problem.negatives)

    def margin(w):
        scores = problem.X @ w
        reached = (scores[problem.positives, None] - scores[None, problem.negatives])[won].min()
        return reached / (np.linalg.norm(w) if norm == "l2" else np.abs(w).max())

    assert problem.evaluate(kept) >= problem.evaluate(found) == ranker.solution_.value
    assert margin(kept) > 1.01 * margin(found)


class Given:
    """A solver that knows nothing but the weights it is given."""

    def __init__(self, w):
        self.w = w

    def check(self, problem):
        pass

    def run(self, state):
        state.value = -np.inf  # a single feature may have the same value
        state.offer(self.w)
        return Ending(Status.HEURISTIC)


def test_recentring_does_not_cost_the_order_below_the_margin():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [-0.1, -0.3]]), [0, 1, 1]
    # standardised, the positives lie at (2.01, 0) and (-0.20, -2.12) from the negative: w wins the first by 2.01, the
    # second is above by 0.22; the largest margin over the first alone is at (1, 0), where the second is below by 0.20
    options = {"base": Scores(linear=False), "top_k": None, "margin": 2.0, "method": Given([1.0, -0.2])}
    ranker = quick(recentre="l2", **options).fit(X, y)
    assert ranker.solution_.weights.tolist() == [1.0, -0.2]
    np.testing.assert_array_equal(ranker.coef_, quick(**options).fit(X, y).coef_)
    assert ranker.decision_function(X)[1:].min() > ranker.decision_function(X)[0]
    assert "the solution before it was recentred orders the list better" in ranker.note_


def test_a_base_that_gives_all_rows_one_score_is_refused():
    X, y = sample()
    X[:, 0] = 0.5
    message = "base must order the rows, but Scores gives all rows the same score, .* or rerank full lists"
    for top_k in (2, 20, 80, 500):
        with pytest.raises(ValueError, match=message):
            quick(base=Scores(), top_k=top_k).fit(X, y)
    with pytest.raises(ValueError, match=message):
        quick(base=Scores().fit(X, y)).fit(X, y, base_is_fitted=True)


def test_a_fitted_base_is_taken_as_it_is():
    X, y = sample()
    base = Scores().fit(X, y)
    base.fit = None
    ranker = quick(base=base).fit(X, y, base_is_fitted=True)
    assert ranker.base_.estimator_ is base
    with pytest.raises(ValueError, match="SurrogateRanker instance is not fitted yet"):
        quick(base=SurrogateRanker()).fit(X, y, base_is_fitted=True)
    with pytest.raises(ValueError, match="base_is_fitted needs a ranker object as base, got base='logistic'"):
        quick().fit(X, y, base_is_fitted=True)


def test_a_warm_start_better_below_the_margin_is_kept():
    # one pair, its scores 0.2 apart at best: with margin 1 no weights win it, without one w = (1,) does
    X = np.array([[0.2], [0.0], [0.1], [0.0]])
    y = np.array([1, 0, 1, 0])
    ranker = quick(base=Scores(), top_k=None, margin=10.0).fit(X, y)
    assert ranker.solution_.value == ranker.problem_.evaluate([0.0])
    assert ranker.coef_[0] > 0
    assert "below the margin of 10" in ranker.note_


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"warm_starts": [[math.nan, 1.0, 1.0]]}, r"warm_starts: weights must be finite, got \[nan, 1.0, 1.0\]"),
        ({"warm_starts": [[1.0]]}, r"warm_starts: weights must have shape \(3,\)"),
    ],
)
def test_bad_arguments_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(*sample(), **given)
    with pytest.raises(ValueError, match="exact: statistic must have a cutoff below top_k = 20, for"):
        quick(statistic="hits@20").fit(*sample())
    with pytest.raises(ValueError, match="TwoStageRanker instance is not fitted yet"):
        quick().reranked(sample()[0])
