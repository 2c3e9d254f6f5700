"""RankBoost and logistic regression: against their definitions, and the paper's mean DCG."""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from ltr.data import half_split, load
from ltr.metrics import rank_statistic
from ltr.rankers import LogisticRegressionRanker, RankBoostRanker
from ltr.rankers.baselines import candidate_cuts
from scripts.paper.experiments import read_published
from tests.paths import DATA, ROOT


def problem(seed, n=40, d=3, values=6):
    """Features on a coarse grid (many ties) beside a continuous one; noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, size=(n, d)).astype(float)
    X[:, -1] += rng.normal(size=n)
    y = (X.sum(axis=1) + rng.normal(size=n) * values > d * values / 2).astype(int)
    y[:2] = 0, 1
    return X, y


def slow_loss(scores, y):
    pairs = [math.exp(-(a - b)) for a, b in itertools.product(np.asarray(scores)[y == 1], np.asarray(scores)[y == 0])]
    return math.fsum(pairs) / len(pairs)


def slow_weak_rankers(X):
    """(feature, cut): every threshold that tells some rows from others."""
    for j in range(X.shape[1]):
        values = sorted(set(X[:, j]))
        for low, high in itertools.pairwise(values):
            yield j, (low + high) / 2


def pair_matrix(scores, y):
    D = np.exp(-(scores[y == 1][:, None] - scores[y == 0][None, :]))
    return D / D.sum()


@pytest.mark.parametrize("step", ["exact", "bound"])
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_boosting_on_an_explicit_matrix_of_pair_weights(seed, step):
    X, y = problem(seed)
    ranker = RankBoostRanker(rounds=25, thresholds=None, step=step).fit(X, y)
    scores, product = np.zeros(len(X)), 1.0
    for t, (j, cut, alpha) in enumerate(zip(ranker.features_, ranker.cuts_, ranker.alphas_, strict=True)):
        D = pair_matrix(scores, y)
        r_of = {}
        for i, theta in slow_weak_rankers(X):
            h = (X[:, i] > theta).astype(float)
            r_of[i, int(h.sum())] = float((D * (h[y == 1][:, None] - h[y == 0][None, :])).sum())
        r = r_of[j, int((X[:, j] > cut).sum())]
        assert abs(r) >= max(abs(v) for v in r_of.values()) - 1e-12
        h = (X[:, j] > cut).astype(float)
        difference = h[y == 1][:, None] - h[y == 0][None, :]
        right, wrong = D[difference == 1].sum(), D[difference == -1].sum()
        if min(right, wrong) > 0.5 / D.size:
            expected = 0.5 * math.log(right / wrong) if step == "exact" else 0.5 * math.log((1 + r) / (1 - r))
            assert alpha == pytest.approx(expected, rel=1e-9)
        Z = float((D * np.exp(-alpha * difference)).sum())
        product *= Z
        scores = scores + alpha * h
        assert ranker.losses_[t + 1] == pytest.approx(product, rel=1e-9)
        assert ranker.losses_[t + 1] == pytest.approx(slow_loss(scores, y), rel=1e-9)
        if step == "bound":
            assert math.sqrt(1 - r * r) + 1e-12 >= Z or min(right, wrong) < 0.5 / D.size
    np.testing.assert_allclose(ranker.decision_function(X), scores, atol=1e-12)


def test_first_weak_ranker_on_tiny_data_by_hand():
    # cuts 1.5, 2.5, 3.5 of the first column have r = 1/2, 1, 1/2; of the second 0, 0, 0
    X = np.array([[1.0, 2], [2, 1], [3, 2], [4, 1]])
    ranker = RankBoostRanker(rounds=1, step="exact").fit(X, [0, 0, 1, 1])
    assert (ranker.features_.tolist(), ranker.cuts_.tolist()) == ([0], [2.5])
    # all 4 pairs are right; the weight of the wrong ones counts as half a pair, 1/8
    assert ranker.alphas_.tolist() == [pytest.approx(0.5 * math.log(1 / (1 / 8)))]
    assert ranker.losses_.tolist() == pytest.approx([1, math.exp(-0.5 * math.log(8))])


def test_stops_when_nothing_improves():
    # every threshold has as many positives above it as negatives, weighted: r = 0
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    ranker = RankBoostRanker(rounds=10).fit(X, [0, 1, 0, 1])
    assert ranker.losses_.tolist() == [1]
    np.testing.assert_array_equal(ranker.decision_function(X), np.zeros(4))
    assert list(ranker.staged_decision_function(X)) == []
    # one cut: after the exact step its weak ranker has nothing left to give
    once = RankBoostRanker(rounds=10, step="exact").fit([[0.0], [0.0], [1.0], [1.0], [1.0]], [0, 1, 1, 1, 0])
    assert len(once.losses_) == 2
    constant = RankBoostRanker(rounds=10).fit(np.ones((3, 2)), [0, 1, 1])
    assert constant.losses_.tolist() == [1]


@pytest.mark.parametrize("ranker", [RankBoostRanker(rounds=2000), LogisticRegressionRanker()])
def test_separable_data_is_ranked_perfectly_by_finite_scores(ranker):
    X, y = np.arange(10.0)[:, None], np.arange(10) >= 6
    scores = ranker.fit(X, y).decision_function(X)
    assert np.isfinite(scores).all()
    assert scores[y].min() > scores[~y].max()


@pytest.mark.parametrize(
    ("column", "limit", "expected"),
    [
        ([3.0, 1.0, 2.0, 2.0], None, [1.5, 2.5]),
        ([0.0, 1.0, 2.0, 3.0], 1, [1.5]),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 2.0], 1, [0.5]),  # the cut with 4 of 6 rows below is the nearest to 3
        ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], 3, [1.5, 3.5, 5.5]),
        ([1.0, np.nextafter(1.0, 2.0)], None, [1.0]),
        ([-1e308, 1.5e308], None, [2.5e307]),  # the difference of the two overflows
        ([0.0, 5e-324], None, [0.0]),
    ],
)
def test_candidate_cuts(column, limit, expected):
    cuts = candidate_cuts(np.array(column), limit)
    assert cuts.tolist() == expected
    values = np.unique(column)
    for cut in cuts:
        assert (values > cut).any()
        assert (values <= cut).any()


def problem_of_logistic(seed=0, n=120, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1.0, 10.0, 0.1, 3.0])[:d] + np.array([0.0, 100.0, -1.0, 5.0])[:d]
    y = (X[:, 0] + 0.05 * X[:, 1] + rng.normal(size=n) > 5).astype(int)
    return X, y


@pytest.mark.parametrize(("C", "standardize"), [(1e4, True), (1.0, True), (0.1, True), (1.0, False)])
def test_minimises_the_stated_objective(C, standardize):
    X, y = problem_of_logistic()
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    sign = 2 * y - 1

    def objective(p):
        return 0.5 * p[:-1] @ p[:-1] + C * np.logaddexp(0, -sign * (Z @ p[:-1] + p[-1])).sum()

    ranker = LogisticRegressionRanker(C=C, standardize=standardize).fit(X, y)
    mean, scale = (X.mean(axis=0), X.std(axis=0)) if standardize else (0 * X[0], 1 + 0 * X[0])
    weights = ranker.linear_weights * scale
    bias = ranker.decision_function(mean[None])[0] if standardize else ranker.decision_function(0 * X[:1])[0]
    best = minimize(objective, np.r_[weights, bias], method="BFGS", options={"gtol": 1e-8}).fun
    assert objective(np.r_[weights, bias]) <= best + 1e-6 * max(1, best)


PUBLISHED = ROOT / "configs" / "paper" / "published.csv"
TOLERANCE = {"uis": 0.03, "pima": 0.03, "haberman": 0.03, "abalone19": 0.15}  # of Abalone19 a half has 16 positives


def dcg(scores, labels):
    """DCG with the natural logarithm, ties resolved against the positives."""
    return float(rank_statistic(torch.from_numpy(scores), torch.from_numpy(labels), "dcg(base=e)"))


@pytest.mark.skipif(not DATA.is_dir(), reason="the paper's data files are not here: set LTR_DATA")
@pytest.mark.parametrize("name", TOLERANCE)
def test_logistic_regression_lands_on_the_papers_values(name):
    data = load(name, data_dir=DATA)
    values = []
    for seed in range(50):
        halves = half_split(data.n, seed)
        ranker = LogisticRegressionRanker().fit(data.X[halves[0]], data.y[halves[0]])
        values.append([dcg(ranker.decision_function(data.X[half]), data.y[half]) for half in halves])
    published = {
        value.part: value.mean
        for value in read_published(PUBLISHED)
        if (value.data, value.variant.method) == (name, "logistic_regression")
    }
    expected = [published["train"], published["test"]]
    np.testing.assert_allclose(np.mean(values, axis=0), expected, rtol=TOLERANCE[name])
