"""Position bias of click logs: known cases, the likelihood written out, simulated logs, and refused ones."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from ltr.clicks import estimate_position_bias


def a_log(seed, rows=4000, items=60, positions=5, eta=1.0):
    rng = np.random.default_rng(seed)
    relevance, item = rng.beta(2, 2, items), rng.integers(0, items, rows)
    position = 1 + np.minimum(rng.poisson(2 * (1 - relevance[item]) + rng.random(rows)), positions - 1)
    clicked = rng.random(rows) < position**-eta * relevance[item]
    return item, position, clicked


def test_two_positions_have_the_ratio_of_mantel_and_haenszel_where_items_were_shown_equally_often():
    """Then the likelihood has the closed solution ``p_2 / p_1 = clicks at 2 / clicks at 1``."""
    item = np.repeat([0, 1, 2], 40)
    position = np.tile(np.repeat([1, 2], 20), 3)
    clicked = np.zeros(120, dtype=int)
    for start, count in ((0, 10), (20, 4), (40, 18), (60, 9), (80, 2), (100, 1)):
        clicked[start : start + count] = 1
    found = estimate_position_bias(item, position, clicked)
    assert found.propensity == pytest.approx([1.0, 14 / 30], rel=1e-6)
    assert (found.items, found.clicks) == (3, 44)


@pytest.mark.parametrize("shape", ["free", "power"])
@pytest.mark.parametrize("seed", range(3))
def test_the_likelihood_is_largest(shape, seed):
    """The same maximum by another method, from the definition written out item by item."""
    item, position, clicked = a_log(seed, rows=600, items=20, positions=4)
    found = estimate_position_bias(item, position, clicked, shape=shape)

    def value(t):
        p = np.exp([0.0, *t]) if shape == "free" else np.arange(1.0, 5) ** -t[0]
        total = 0.0
        for i in range(20):
            shown = np.bincount(position[item == i] - 1, minlength=4)
            clicks = np.bincount(position[(item == i) & clicked] - 1, minlength=4)
            for k in range(4):
                if clicks[k]:
                    total += clicks[k] * np.log(shown[k] * p[k] / (shown @ p))
        return -total

    best = optimize.minimize(value, np.zeros(3 if shape == "free" else 1), method="BFGS", options={"gtol": 1e-8})
    expected = np.exp([0.0, *best.x]) if shape == "free" else np.arange(1.0, 5) ** -best.x[0]
    assert found.propensity == pytest.approx(expected, rel=1e-4)


def test_intervals_hold_the_truth_nine_times_in_ten():
    held, whole = [], {"free": [], "power": []}
    for seed, shape in itertools.product(range(30), whole):
        found = estimate_position_bias(*a_log(seed), shape=shape)
        truth = 1.0 / found.positions
        held.append(((found.lower <= truth) & (truth <= found.upper))[1:].mean())
        whole[shape].append(np.log(found.propensity / truth))
    assert 0.85 < np.mean(held) < 0.95
    for errors in whole.values():
        mean = np.mean(errors, axis=0)
        assert (abs(mean) <= 4 * np.std(errors, axis=0) / 30**0.5 + 0.01).all()  # no bias beyond the noise


def test_relevance_that_follows_the_position_is_no_bias():
    """The rates of clicks by position mix both; items compared with themselves do not."""
    item, position, clicked = a_log(0, rows=40_000, eta=0.0)
    rates = pd.Series(clicked).groupby(position).mean()
    assert rates[5] / rates[1] < 0.75
    found = estimate_position_bias(item, position, clicked)
    assert (abs(found.propensity - 1) < 0.1).all()


def test_the_order_of_rows_and_the_names_of_items_do_not_matter():
    item, position, clicked = a_log(1)
    first = estimate_position_bias(item, position, clicked)
    order = np.random.default_rng(0).permutation(len(item))
    named = pd.Series([f"query {i % 7}/{i}" for i in item[order]])
    second = estimate_position_bias(named, list(position[order]), pd.Series(clicked[order]))
    assert second.propensity == pytest.approx(first.propensity, rel=1e-5)


def test_weights_are_inverse_propensities_of_clicks():
    item, position, clicked = a_log(2)
    bias = estimate_position_bias(item, position, clicked, shape="power")
    assert bias.weights([1, 3, 3], [1, 1, 0]) == pytest.approx([1.0, 3**bias.eta, 1.0])
    assert bias.weights([100], [True], largest=10).tolist() == [10.0]  # a position that the log does not have
    assert repr(bias).startswith("PositionBias({1: 1, 2: 0.")
    free = estimate_position_bias(item, position, clicked)
    assert free.of([5, 1]) == pytest.approx(free.propensity[[4, 0]])
    with pytest.raises(ValueError, match=r"one of those in the log, 1, 2, 3, 4, 5, got 6, 9; .*shape='power'"):
        free.of([1, 9, 6])
    with pytest.raises(ValueError, match=r"largest must be a finite number >= 1, got 0\.5"):
        free.weights([1], [1], largest=0.5)
    with pytest.raises(ValueError, match="one value per row, got 2 and 1"):
        free.weights([1, 2], [1])


@pytest.mark.parametrize(
    ("item", "position", "clicked", "message"),
    [
        ([1, 1], [1, 2], [1], "one value per row, and at least one row, got 2, 2 and 1"),
        ([], [], [], "at least one row, got 0, 0 and 0"),
        (["a", None], [1, 2], [1, 0], "item must name what was shown in each row, got no name in row 1"),
        ([1, 1], [1, 0], [1, 0], r"position must be whole numbers from 1, got .*0.* in row 1"),
        ([1, 1], [1, 1.5], [1, 0], r"position must be whole numbers from 1, got .*1\.5.* in row 1"),
        ([1, 1], ["x", "1"], [1, 0], r"position must be whole numbers from 1, got .*x.* in row 0"),
        ([1, 1], [1, 2], [1, 2], r"clicked must be 0 or 1, .* got .*2.* in row 1"),
        ([1, 1], [1, 2], [1, np.nan], r"clicked must be 0 or 1, .* got .*nan.* in row 1"),
        ([[1], [1]], [1, 2], [1, 0], r"item must have one value per row, got an array of shape \(2, 1\)"),
        ([1, 2], [1, 2], [1, 1], "at two or more positions and clicked, got none"),
        ([1, 1, 2], [1, 2, 3], [1, 0, 1], r"connected with the others .* not so for 2, 3"),
        ([1, 1, 1, 2, 2, 2], [1, 2, 1, 3, 4, 3], [1, 1, 1, 1, 1, 1], r"not so for 3, 4"),
    ],
)
def test_logs_that_are_refused(item, position, clicked, message):
    with pytest.raises(ValueError, match=message):
        estimate_position_bias(item, position, clicked)


def test_a_power_needs_clicks_both_above_and_below():
    with pytest.raises(ValueError, match="clicks only at the highest one of each item that moved"):
        estimate_position_bias([1, 1], [1, 2], [1, 0], shape="power")
    with pytest.raises(ValueError, match="shape must be one of 'free', 'power', got 'linear'"):
        estimate_position_bias([1, 1], [1, 2], [1, 0], shape="linear")
