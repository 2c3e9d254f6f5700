"""Losses that are not convex: where their fits start, how good they get, and when a fit has converged."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

import ltr
from ltr.fitting import Fit, FitOptions, NoSlopeError
from ltr.losses import RankNetLoss, parse_loss
from ltr.losses.parsing import LOSSES
from ltr.metrics import normalized_rank_statistic
from ltr.rankers import SurrogateRanker
from ltr.rankers.scorers import LinearScorer, Standardize
from tests.tiers import examples

NOT_CONVEX = ["lambda(statistic=dcg)", "lambda(statistic=dcg@10)", "smooth(statistic=dcg@10,temperature=0.1)"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def random_list(seed, n=60, d=4):
    """A noisy list, of two classes for even seeds, graded for odd ones."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noisy = X[:, 0] - X[:, 1] + 1.5 * rng.normal(size=n)
    return X, (np.clip(np.round(noisy), 0, 3) if seed % 2 else noisy > 0.5).astype(int)


def own_statistic(loss, ranker, X, y, qid=None):
    """The mean share of its best value of the statistic that a loss is made of."""
    loss = parse_loss(loss)
    lists = np.zeros(len(y), dtype=np.int64) if qid is None else np.unique(qid, return_inverse=True)[1]
    scores = torch.from_numpy(ranker.decision_function(X))
    values = normalized_rank_statistic(
        scores, torch.from_numpy(y), loss.statistic, gain=loss.gain, qid=torch.from_numpy(lists)
    )
    return float(values.nanmean())


# how good the fits are


@pytest.mark.parametrize("loss", NOT_CONVEX)
def test_on_random_lists_the_own_statistic_is_about_as_good_as_ranknets(loss):
    gains = []
    for seed in range(examples(3, slow=20)):
        X, y = random_list(seed, n=40)
        reference, ranker = SurrogateRanker("ranknet").fit(X, y), SurrogateRanker(loss).fit(X, y)
        gains.append(own_statistic(loss, ranker, X, y) - own_statistic(loss, reference, X, y))
    assert min(gains) > -0.02
    assert np.mean(gains) > 0.005


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
@pytest.mark.parametrize("loss", NOT_CONVEX)
def test_the_fit_ends_below_the_loss_of_ranknets_weights(loss, optimizer):
    data = ltr.data.grouped(seed=1, queries=20)
    standardized, scorer = Standardize.fit(data.X)(torch.from_numpy(data.X)), LinearScorer(data.d)
    Fit(scorer, RankNetLoss(), standardized, data.y, qid=data.qid).run()
    start = Fit(scorer, parse_loss(loss), standardized, data.y, qid=data.qid).best_objective
    ranker = SurrogateRanker(loss, optimizer=optimizer, max_steps=5, validation=0).fit(data.X, data.y, qid=data.qid)
    assert ranker.objective_ < start


def test_a_lambda_loss_that_is_lowest_with_all_scores_tied_does_not_end_there():
    X, y = random_list(17, n=40)
    loss = parse_loss("lambda(statistic=dcg@10)")
    ranker = SurrogateRanker(str(loss)).fit(X, y)
    assert float(loss(torch.zeros(40, dtype=torch.float64), torch.from_numpy(y))) < ranker.objective_
    assert own_statistic(loss, ranker, X, y) > 0.4


def test_features_that_do_not_vary_leave_a_flat_loss():
    _, y = random_list(3)
    with pytest.raises(
        NoSlopeError, match=r"loss smooth\(statistic=dcg@3\) is flat at every start .* X must have a fea"
    ):
        SurrogateRanker("smooth(statistic=dcg@3)").fit(np.ones((len(y), 2)), y)


def test_an_interrupted_fit_resumes_bit_for_bit():
    X, y = random_list(0)
    loss = "smooth(statistic=dcg@10,temperature=0.1)"  # has no slope at 0, where a new scorer starts

    def interrupt(step, ranker):
        if step.index == 2:
            raise KeyboardInterrupt

    options = {"optimizer": "adam", "max_steps": 6}
    whole = SurrogateRanker(loss, **options).fit(X, y)
    stopped = SurrogateRanker(loss, on_step=interrupt, **options)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y)
    resumed = SurrogateRanker(loss, **options).fit(X, y, resume=stopped.fit_.state_dict())
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))


def test_losses_say_whether_they_are_convex():
    assert [name for name, loss in LOSSES.items() if not loss.convex] == ["lambda", "smooth"]


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.convex])
def test_convex_losses_are_convex(loss):
    rng, function = np.random.default_rng(0), parse_loss(loss)
    for _ in range(50):
        a, b = torch.from_numpy(3 * rng.normal(size=(2, 12)))
        y = torch.from_numpy(rng.integers(0, 2, 12))
        assert float(function((a + b) / 2, y)) <= float(function(a, y) + function(b, y)) / 2 + 1e-12


# convergence


def test_a_stall_is_no_convergence_and_is_announced():
    X, y = random_list(0)
    with pytest.warns(ConvergenceWarning, match=r"stalled after \d+ steps .* the loss is not convex"):
        ranker = SurrogateRanker("lambda(statistic=dcg)").fit(X, y)
    assert ranker.fit_.stopped == "stalled"
    assert not ranker.converged_
    with pytest.warns(ConvergenceWarning, match=r"stalled after \d+ steps: rounding keeps the objective"):
        assert not SurrogateRanker("ranknet", tolerance=1e-30).fit(X, y).converged_


def test_the_smoothed_hinge_gets_wider_where_rounding_stops_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))  # separable: the objective is small, its smallest slopes lost in rounding
    ranker = SurrogateRanker("hinge").fit(X, (X @ rng.normal(size=12) > 1).astype(int))
    assert ranker.converged_


def test_a_fit_that_makes_no_headway_ends_soon():
    X, y = random_list(5, n=80, d=5)
    features = Standardize.fit(X)(torch.from_numpy(X))
    scorer = LinearScorer(5)
    Fit(scorer, RankNetLoss(), features, y).run()
    fit = Fit(scorer, parse_loss("lambda(statistic=dcg@10)"), features, y, FitOptions(max_steps=1000))
    fit.run()
    assert fit.stopped
    assert fit.index < 200
