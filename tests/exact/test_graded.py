import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from ltr.exact import RerankProblem
from ltr.exact.cards import CardProblem
from ltr.metrics import normalized_rank_statistic, rank_statistic
from tests.reference import (
    STATISTICS,
    TIES,
    cell_optimum_graded,
    exact_scores,
    graded_problem,
    random_graded,
    random_instance,
    slow_graded_value,
    slow_weights,
    top_of,
)
from tests.tiers import examples

DCG = [1.0, 1 / math.log2(3), 0.5, 1 / math.log2(5)]  # of positions 0, 1, 2, 3


def slow_value(p, w):
    scores = exact_scores(p.X, w)
    return slow_graded_value(
        scores, p.gains.tolist(), p.qid.tolist(), str(p.statistic), p.ties, Fraction(float(p.margin))
    )


def grid_weights(seed, d):
    return np.random.default_rng([7, seed]).integers(-4, 5, size=d) / 4.0


# --- the definition --------------------------------------------------------------------------------------------


# integer features and quarters as weights: differences meet the margins 0.25 and 0.5 exactly, tenths nearly
@pytest.mark.parametrize(("unit", "margin"), [(1.0, 1e-4), (1.0, 0.25), (1.0, 0.5), (0.1, 0.1), (0.1, 0.025)])
def test_values_are_those_of_the_slow_definition(unit, margin):
    for seed in range(102):
        p = random_graded(seed)
        p = dataclasses.replace(p, X=p.X * unit, margin=margin)
        w = grid_weights(seed, p.d)
        assert p.statistic_value(w) == pytest.approx(slow_value(p, w), abs=1e-12)
        assert p.evaluate(w) == p.statistic_value(w) - p.C * np.count_nonzero(w)


@pytest.mark.parametrize("ties", TIES)
def test_auc_is_a_share_of_pairs_for_one_binary_list_and_a_rank_sum_otherwise(ties):
    for seed in range(12):
        base, options = random_instance(seed), {"margin": [1e-4, 0.5][seed % 2], "ties": ties}
        w, n_pos, n_neg = grid_weights(seed, base.d), len(base.positives), len(base.negatives)
        share = RerankProblem(base.X, base.y, "auc", **options)
        ranks = RerankProblem(base.X, base.y, "wrs", **options).statistic_value(w)
        assert share.binary
        assert share.statistic_value(w) == pytest.approx((ranks - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg))
        for other in ({"y": 3 * base.y}, {"qid": np.arange(base.n) % 2}):
            p = dataclasses.replace(share, **other)
            assert not p.binary
            assert p.statistic_value(w) == dataclasses.replace(p, statistic="wrs").statistic_value(w)


@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("name", ["hits@2", "precision@2", "recall@2"])
def test_a_hit_is_a_label_above_0_whatever_its_gain(name, gain):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 5, size=(9, 2)).astype(float), rng.integers(0, 4, size=9)
        y[:2], qid, w = (0, 3), rng.integers(0, 3, size=9), grid_weights(seed, 2)
        scores = torch.from_numpy(X @ w)  # exact: integers times quarters
        for lists in (None, qid):
            of = None if lists is None else torch.from_numpy(lists)
            values = rank_statistic(scores, torch.from_numpy(y), name, gain=gain, qid=of, empty=0.0)
            p = RerankProblem(X, y, name, qid=lists, gain=gain)
            assert p.evaluate(w) == pytest.approx(float(values.sum()), abs=1e-12)
            assert dataclasses.replace(p, y=np.minimum(y, 1)).evaluate(w) == p.evaluate(w)
            shares = normalized_rank_statistic(scores, torch.from_numpy(y), name, gain=gain, qid=of)
            mean = dataclasses.replace(p, normalize=True)
            assert mean.evaluate(w) == pytest.approx(float(shares.nanmean()), abs=1e-12)
        assert RerankProblem(X, y, name, gain=gain).binary


@pytest.mark.parametrize("make", [RerankProblem, CardProblem])
def test_average_precision_is_refused_where_it_would_be_maximised(make):
    with pytest.raises(ValueError, match=r"statistic ap: average precision is no sum .* 'dcg' .* 'hits@50'"):
        make([[0.0], [1.0]], [0, 1], "ap")


def test_a_tied_lower_gain_stands_above_a_tied_higher_gain():
    p = graded_problem(np.zeros((4, 1)), [3.0, 0.0, 1.0, 1.0])
    assert p.evaluate([1.0]) == pytest.approx(0 * DCG[0] + 1 * DCG[1] + 1 * DCG[2] + 3 * DCG[3])
    # subranks: nobody beats anybody, all hold rank 1
    assert dataclasses.replace(p, ties="subrank").evaluate([1.0]) == pytest.approx(5 * DCG[3])


# --- the margin grows with the grades --------------------------------------------------------------------------


def test_scores_that_would_run_in_a_circle_under_one_margin_do_not_beat_the_perfect_ranking():
    # under one margin of 1 all three would stand below one other: 3 + 2 + 1 = 6 with the weights 0, 1, 1
    p = graded_problem([[1.5], [0.75], [0.0]], [3, 2, 1], statistic="weights(0, 1, 1)", margin=1.0)
    assert p.trivial_bound == 3 + 2
    assert p.ranks([1.0]).tolist() == [1, 2, 3]  # 1.5 < 2 steps, 0.75 < 1 step: all reversed
    assert p.evaluate([1.0]) == 2 + 1


@settings(max_examples=examples(40, slow=300), deadline=None)
@given(seed=st.integers(0, 10**6), factor=st.floats(0.01, 1.0), margin=st.sampled_from([1e-3, 0.1, 0.3, 1.0, 3.0]))
def test_scaling_up_never_lowers_the_statistic(seed, factor, margin):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(9, 2)).round(int(rng.integers(0, 3)))
    p = graded_problem(
        X, rng.integers(0, 5, size=9) + np.eye(9)[0], np.zeros(9, dtype=int), STATISTICS[seed % 16], margin=margin
    )
    w = rng.uniform(-1, 1, size=2)
    w /= np.abs(w).max()
    for ties in TIES:
        p = dataclasses.replace(p, ties=ties)
        small, large = p.statistic_value(factor * w), p.statistic_value(w)
        assert small <= large + 1e-9 * abs(large)
        limit = dataclasses.replace(p, margin=1e-13).statistic_value(w)
        assert large <= limit + 1e-9 * abs(limit)
        assert limit <= p.trivial_bound + 1e-9 * p.trivial_bound


# --- the bound -------------------------------------------------------------------------------------------------


def test_the_trivial_bound_is_the_best_permutation():
    for seed in range(51):
        p = random_graded(seed)
        best = 0.0
        for members in (m for m in p.lists if len(m) <= 6):
            a = slow_weights(str(p.statistic), len(members))
            best += max(
                math.fsum(g * a[at] for at, g in enumerate(order))
                for order in itertools.permutations(p.gains[members].tolist())
            )
        best /= top_of(p.statistic) * (len(p.positives) if p.binary and p.statistic.name == "recall" else 1)
        if all(len(m) <= 6 for m in p.lists):
            assert p.trivial_bound == pytest.approx(best, abs=1e-12)
        ranked = dataclasses.replace(p, X=p.gains[:, None], C=0.0)
        if p.ties == "resolved" or all(len(set(p.gains[m])) == len(m) for m in p.lists):
            assert ranked.evaluate([1.0]) == pytest.approx(p.trivial_bound)


def test_the_best_cell_has_its_value_and_lower_dimensional_cells_are_no_better():
    below = 0
    for seed in range(52):
        p = dataclasses.replace(random_graded(seed), margin=1e-9)
        best, w = cell_optimum_graded(p)
        assert p.evaluate(w) == pytest.approx(best, abs=1e-9)
        assert best <= p.trivial_bound + 1e-9
        below += best < p.trivial_bound - 1e-9
        if p.d < 3:
            assert cell_optimum_graded(p, faces=True)[0] == pytest.approx(best, abs=1e-9)
    assert below >= 10  # the instances are not all perfectly rankable


# --- labels ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gain", "gains"),
    [("exp2", [0, 1, 3, 15]), ("linear", [0, 1, 2, 4]), (np.square, [0, 1, 4, 16]), (lambda y: y > 1, [0, 0, 1, 1])],
)
def test_gains_of_labels(gain, gains):
    p = RerankProblem(np.eye(4), [0, 1, 2, 4], gain=gain)
    assert p.gains.tolist() == gains


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("cutoff", [None, 3])
def test_normalised_dcg_is_that_of_scikit_learn(ties, cutoff):
    rng = np.random.default_rng(0)
    X, labels, qid = rng.normal(size=(60, 3)), rng.integers(0, 5, size=60), rng.integers(0, 6, size=60)
    name = "dcg" if cutoff is None else f"dcg@{cutoff}"
    p = RerankProblem(X, labels, name, qid=qid, margin=1e-9, normalize=True, ties=ties)
    w = rng.uniform(-1, 1, size=3)
    lists = [np.flatnonzero(qid == one) for one in range(6)]
    expected = [ndcg_score([2.0 ** labels[m] - 1], [X[m] @ w], k=cutoff) for m in lists]
    assert p.evaluate(w) == pytest.approx(np.mean(expected))
    assert p.trivial_bound == pytest.approx(1.0)


# --- arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [1.0, -0.5]}, "y must hold finite labels >= 0, got -0.5"),
        ({"y": [0, 2000]}, "gains must be finite numbers >= 0, got inf"),
        ({"y": [0, 1000], "normalize": True}, "value of a perfect order must be"),
        ({"gain": "exp"}, "gain must be 'exp2', 'linear' or a function of the labels, got 'exp'"),
        ({"gain": lambda y: y - 1}, "gains must be finite numbers >= 0, got -1.0"),
        ({"gain": lambda y: y[:1]}, r"gain must return one number per label \(2\), got shape \(1,\)"),
        ({"qid": [1]}, r"qid must hold one integer per row of X \(2\), got int64 of shape \(1,\)"),
        ({"statistic": "weights(0, 1)", "qid": [0, 1]}, "2 weights for a list of 1"),
    ],
)
def test_arguments_against_their_rule_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        RerankProblem(**{"X": [[0.0], [1.0]], "y": [0.0, 1.0], **options})
