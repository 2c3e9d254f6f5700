"""Comparisons against scipy, enumeration, slow definitions and simulated coverage; edge cases are named and chosen."""

import itertools
import math
import statistics
import warnings

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.metrics import compare, compare_on_list, evaluate, holm, mean_interval


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def drawn(seed, lists=40, shift=0.05):
    """Values of two rankers on the same lists, the first one better by about `shift`, with a few ties."""
    rng = np.random.default_rng(seed)
    b = rng.beta(4, 3, lists)
    return np.where(rng.random(lists) < 0.1, b, np.clip(b + rng.normal(shift, 0.1, lists), 0, 1)), b


# --- values of many lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_those_of_scipy(seed):
    a, b = drawn(seed)
    result = compare(a, b, confidence=0.9, resamples=500, seed=seed)
    options = {"confidence_level": 0.9, "n_resamples": 500, "method": "BCa"}
    expected = scipy.stats.bootstrap((a - b,), np.mean, rng=np.random.default_rng(seed), **options).confidence_interval
    assert (result.difference.low, result.difference.high) == pytest.approx(tuple(expected), abs=1e-12)
    assert result.difference.value == pytest.approx((a - b).mean(), abs=1e-12)
    assert (result.wins, result.ties, result.losses) == ((a > b).sum(), (a == b).sum(), (a < b).sum())

    expected = scipy.stats.bootstrap((a,), np.mean, rng=np.random.default_rng(seed), **options).confidence_interval
    interval = mean_interval(a, confidence=0.9, resamples=500, seed=seed)
    assert (interval.value, interval.low, interval.high) == pytest.approx((a.mean(), *expected), abs=1e-12)


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=9))
@settings(max_examples=40, deadline=None)
def test_the_exact_permutation_p_counts_all_sign_flips(tenths):
    a = [0.1 * (5 + t) for t in tenths]
    result = compare(a, [0.5] * len(a), resamples=512)
    flips = [
        abs(sum(s * t for s, t in zip(signs, tenths, strict=True)))
        for signs in itertools.product((-1, 1), repeat=len(a))
    ]
    assert result.p == sum(flip >= abs(sum(tenths)) for flip in flips) / len(flips)
    assert result.ties == tenths.count(0)


@given(seed=st.integers(0, 10**6), lists=st.integers(2, 30))
@settings(max_examples=50, deadline=None)
def test_swapping_the_rankers_turns_everything_over(seed, lists):
    a, b = drawn(seed, lists)
    one, other = compare(a, b, resamples=200), compare(b, a, resamples=200)
    assert one.p == other.p
    assert (one.wins, one.ties, one.losses) == (other.losses, other.ties, other.wins)
    assert (one.difference.low, one.difference.high) == pytest.approx(
        (-other.difference.high, -other.difference.low), abs=1e-12
    )


@pytest.mark.parametrize("values", [[0.3, 0.3], [0.0, 0.0, 0.0], [1.0] * 50])
def test_equal_rankers_do_not_differ(values):
    result = compare(values, values)
    assert result.p == 1
    assert (result.difference.low, result.difference.value, result.difference.high) == (0, 0, 0)
    assert (result.wins, result.ties, result.losses) == (0, len(values), 0)
    assert mean_interval(values).low == mean_interval(values).high == pytest.approx(values[0], abs=1e-12)


def test_undefined_lists_are_left_out_in_pairs():
    a, b = drawn(5, lists=20)
    a[3] = b[7] = a[9] = b[9] = math.nan
    keep = [k for k in range(20) if k not in (3, 7, 9)]
    assert compare(a, b) == compare(a[keep], b[keep])
    assert mean_interval(a) == mean_interval(a[~np.isnan(a)])


def test_tensors_arrays_and_sequences_of_any_shape_are_the_same():
    a, b = drawn(6, lists=12)
    tensors = [torch.tensor(values).reshape(3, 4).requires_grad_() for values in (a, b)]
    assert compare(*tensors, resamples=99) == compare(a.tolist(), b.tolist(), resamples=99)


@given(st.lists(st.floats(0, 1), max_size=6))
def test_holm_steps_down(p_values):
    adjusted = holm(p_values)
    m = len(p_values)
    for alpha in (0.01, 0.05, 0.3):
        rejected, order = set(), sorted(range(m), key=lambda k: p_values[k])
        for step, k in enumerate(order):
            if p_values[k] * (m - step) > alpha:
                break
            rejected.add(k)
        assert {k for k in range(m) if adjusted[k] <= alpha} == rejected


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: compare([1.0], [2.0]), "at least 2 lists with defined values, got 1"),
        (lambda: compare([1.0, math.nan, 1.0], [2.0, 1.0, math.nan]), "at least 2 lists with defined values, got 1"),
        (lambda: compare([1.0, 2.0], [2.0]), "a and b must hold values of the same lists, got 2 and 1"),
        (lambda: compare([1.0, 2.0], [2.0, math.inf]), "b must be finite or NaN, got inf"),
        (lambda: mean_interval([1.0, 2.0], confidence=95), "confidence must lie between 0 and 1, got 95"),
        (lambda: holm([0.1, 1.1]), "p_values must lie between 0 and 1"),
    ],
)
def test_bad_arguments_are_named(act, message):
    with pytest.raises(ValueError, match=message):
        act()


# --- one list ----------------------------------------------------------------------------------------------------


def one_list(seed, n=60, decimals=None):
    """Scores of two rankers of different skill, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.r_[0, 0, 1, 1, rng.integers(0, 2, n - 4)]
    common = rng.normal(size=n)
    scores = [common + rng.normal(size=n) + skill * labels for skill in (1.5, 0.8)]
    rounded = scores if decimals is None else [np.round(s, decimals) for s in scores]
    return (*(torch.tensor(s) for s in rounded), torch.tensor(labels))


@pytest.mark.parametrize("measure", ["auc", "dcg@10", "ndcg(gain=linear)"])
def test_the_bootstrap_draws_relevant_items_among_themselves(measure):
    a, b, labels = one_list(3, n=20)
    labels[:3] = torch.tensor([3, 1, 1]) if measure != "auc" else labels[:3]
    result = compare_on_list(a, b, labels, measure, resamples=64, confidence=0.8, seed=2)
    rng = np.random.default_rng(2)
    strata = [np.flatnonzero(labels.numpy() > 0), np.flatnonzero(labels.numpy() == 0)]
    columns = [stratum[rng.integers(len(stratum), size=(64, len(stratum)))] for stratum in strata]
    differences = []
    for items in np.concatenate(columns, axis=1):
        assert (labels[items] > 0).sum() == (labels > 0).sum()
        values = [evaluate(scores[items], labels[items], [measure])[measure].item() for scores in (a, b)]
        differences.append(values[0] - values[1])
    expected = np.quantile(differences, [0.1, 0.9])
    assert (result.difference.low, result.difference.high) == pytest.approx(tuple(expected), abs=1e-9)
    beyond = min(sum(d <= 1e-9 for d in differences), sum(d >= -1e-9 for d in differences))
    assert result.p == min(1, 2 * (1 + beyond) / 65)


def test_intervals_on_one_list_cover_the_true_difference():
    # AUC of normal scores: Phi(skill / sqrt(2 * variance)), variance 2; 200 lists, standard deviation 2.1%
    normal = statistics.NormalDist()
    truth = normal.cdf(1.5 / 2) - normal.cdf(0.8 / 2)
    options = {"resamples": 200, "confidence": 0.9}
    intervals = [compare_on_list(*one_list(seed), "auc", **options).difference for seed in range(200)]
    assert 0.83 < sum(interval.low <= truth <= interval.high for interval in intervals) / 200 < 0.96
