"""Fits of many rows, pairs and lists: chunks, blocks, the hinge without its pairs, batches of lists, hard starts."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from ltr.fitting import Fit, FitOptions
from ltr.fitting.observations import BLOCKS, list_batches, lists_in_blocks, rows_of_lists
from ltr.fitting.smoothing import HingePairs, HuberHinge, SmoothedHinge
from ltr.losses import LambdaLoss, PairwiseHingeLoss, RankNetLoss, SmoothStatisticLoss, parse_loss
from ltr.rankers.scorers import LinearScorer
from tests.fitting.test_fitting import problem, queries

UNEVEN = [1, 300, 2, 2, 90, 5, 1, 40, 3, 3, 17]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=80), st.integers(1, 100))
@settings(max_examples=200)
def test_blocks_of_lists_hold_every_list_whole(ids, chunk):
    ids = np.array(ids)
    blocks = lists_in_blocks(rows_of_lists(ids), chunk)
    assert sorted(np.concatenate([rows for rows, _ in blocks])) == list(range(len(ids)))
    held = [set(ids[rows]) for rows, _ in blocks]
    assert [len(names) for names in held] == [count for _, count in blocks]
    assert sum(count for _, count in blocks) == len(set(ids))
    assert not any(one & other for one, other in itertools.combinations(held, 2))
    assert len(blocks) <= max(1, min(BLOCKS, len(ids) // chunk))


def test_rows_are_scored_a_chunk_at_a_time_and_bad_ones_are_named():
    X, y = problem(100)
    seen = []
    scorer = LinearScorer(4)
    scorer.register_forward_pre_hook(lambda module, inputs: seen.append(len(inputs[0])))
    Fit(scorer, RankNetLoss(), X, y, FitOptions(max_steps=2, chunk_rows=30)).run()
    assert set(seen) == {30, 10}
    X[77, 2] = np.inf
    with pytest.raises(ValueError, match="X must be finite, got inf at row 77, column 2"):
        Fit(scorer, RankNetLoss(), X, y, FitOptions(chunk_rows=30))


# the hinge of many pairs


@pytest.mark.parametrize(("reduction", "pairs"), [*itertools.product(["mean", "sum"], ["mean", "sum"])])
@pytest.mark.parametrize("width", [1.5, 0.1, 1e-4])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_hinge_of_many_pairs_is_that_of_all_pairs_with_multipliers_one_half(reduction, pairs, width, grouped):
    X, y, qid = queries([120] if not grouped else UNEVEN)
    loss = PairwiseHingeLoss(reduction=reduction, pairs=pairs)
    groups = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    scores, labels = torch.from_numpy(X[:, 0].copy()).requires_grad_(), torch.from_numpy(y)
    held = HingePairs.of(loss, y, groups, scores.detach())
    reference = SmoothedHinge(held, width, torch.full_like(held.share, 0.5))
    ids = torch.from_numpy(qid) if grouped else None
    hinge = HuberHinge(loss, width)
    value, expected = hinge(scores, labels, qid=ids), reference(scores)
    total = float(reference.pairs.share.sum())
    assert value.item() == pytest.approx(expected.item() + width / 8 * total, rel=1e-12)
    slopes = [torch.autograd.grad(v, scores)[0] for v in (value, expected)]
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-13 * total)
    slack, least = hinge.slack(scores, labels, qid=ids).item(), reference.slack(scores).item()
    assert slack == pytest.approx(least, rel=1e-9, abs=1e-15 * total)


@pytest.mark.parametrize("noise", [2.0, 0.0])
def test_a_fit_of_many_pairs_is_certified_by_one_of_few(noise, monkeypatch):
    X, y = problem(400, noise=noise)
    few, many = LinearScorer(4), LinearScorer(4)
    options = FitOptions(l2=1e-2, tolerance=1e-7)
    optimum = Fit(few, PairwiseHingeLoss(), X, y, FitOptions(l2=1e-2, tolerance=1e-10))
    optimum.run()
    monkeypatch.setattr("ltr.fitting.smoothing._MANY", 0)
    fit = Fit(many, PairwiseHingeLoss(), X, y, options)
    steps = list(fit)
    assert fit.stopped == "tolerance"
    assert all(step.objective - optimum.best_objective <= step.gap * (1 + 1e-9) for step in steps)
    assert fit.best_objective == pytest.approx(optimum.best_objective, rel=1e-7)


@pytest.mark.parametrize("loss", ["ranknet", "hinge", "squared_hinge", "exponential", "logistic", "p_norm_push(p=2)"])
def test_twenty_thousand_rows_are_fitted_to_the_tolerance(loss):
    X, y = problem(20_000)  # 1e8 pairs
    fit = Fit(LinearScorer(4), parse_loss(loss), X, y)
    *_, last = fit
    assert fit.stopped == "tolerance"
    assert 0 <= last.gap <= 1e-8 * last.objective


# mini-batches of lists


@pytest.mark.parametrize("size", [1, 3, 11, 50])
def test_every_list_is_in_one_batch_of_an_epoch_whole_and_in_another_the_next_time(size):
    _, _, qid = queries(UNEVEN)
    groups = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    generator = np.random.default_rng(0)
    epochs = [list_batches(groups, size, generator) for _ in range(2)]
    for batches in epochs:
        assert sorted(np.concatenate(batches)) == list(range(len(qid)))
        counts = [len(set(qid[rows])) for rows in batches]
        assert sum(counts) == len(UNEVEN)
        assert max(counts) <= size
        assert max(counts) - min(counts) <= 1
    if 1 < size < len(UNEVEN):
        assert [set(b) for b in epochs[0]] != [set(b) for b in epochs[1]]


@pytest.mark.parametrize("name", ["ranknet", "p_norm_push(p=2)", "lambda"])
def test_the_gradient_of_a_batch_of_lists_estimates_that_of_the_mean_over_lists_without_bias(name):
    X, y, qid = queries([4, 1, 9, 2, 6])
    features, labels, ids = torch.from_numpy(X), torch.from_numpy(y), torch.from_numpy(qid)
    groups = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    weights = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64, requires_grad=True)
    loss = LambdaLoss() if name == "lambda" else parse_loss(name)

    def gradient(rows):
        return torch.autograd.grad(loss(features[rows] @ weights, labels[rows], qid=ids[rows]), weights)[0]

    # every way in which the generator deals the lists, all with equal chance
    class Deals:
        def __init__(self, runs, first):
            self.runs, self.first = iter(runs), first

        def permutation(self, n):
            return np.array(next(self.runs))

        def integers(self, n):
            return self.first

    ways = itertools.product(itertools.product(itertools.permutations(range(3)), repeat=2), range(5))
    batches = [b for runs, first in ways for b in list_batches(groups, 2, Deals(runs, first))]
    firsts = batches[::3]  # each place of an epoch by itself
    for chosen in (firsts, batches[2::3]):
        mean = sum(gradient(rows) for rows in chosen) / len(chosen)
        torch.testing.assert_close(mean, gradient(np.arange(len(y))), rtol=1e-12, atol=1e-14)


def test_a_scorer_that_looks_at_other_rows_is_refused():
    X, y = problem()
    scorer = nn.Sequential(nn.BatchNorm1d(4, dtype=torch.float64), LinearScorer(4))
    with pytest.raises(ValueError, match="scorer must score each row by itself, got one that normalises batches"):
        Fit(scorer, RankNetLoss(), X, y, FitOptions("adam"))


# losses that are not convex


@pytest.mark.parametrize("loss", [SmoothStatisticLoss(statistic="dcg@5"), SmoothStatisticLoss(statistic="mrr@3")])
@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
def test_a_start_without_a_slope_is_refused_and_the_weights_of_a_convex_loss_are_one_with(loss, optimizer):
    X, y = problem()
    with pytest.raises(ValueError, match=r"scorer must start where the loss has a slope.*: fit a convex loss such as"):
        Fit(LinearScorer(4), loss, X, y, FitOptions(optimizer))
    scorer = LinearScorer(4)
    Fit(scorer, RankNetLoss(), X, y).run()
    fit = Fit(scorer, loss, X, y, FitOptions(optimizer, max_steps=40))
    start = fit.best_objective
    fit.run()
    assert fit.best_objective < start


def test_few_pairs_of_a_long_list_take_little_memory():
    labels = np.zeros(200_000)
    labels[[3, 70_000, 199_999]] = 1.0
    pairs = HingePairs.of(PairwiseHingeLoss(), labels, None, torch.zeros(1).double())
    assert len(pairs.above) == 3 * 199_997  # of all items with all there are 40 billion
    assert set(labels[pairs.above]) == {1.0}
    assert set(labels[pairs.below]) == {0.0}
    assert len(np.unique(pairs.above * 200_000 + pairs.below)) == len(pairs.above)
