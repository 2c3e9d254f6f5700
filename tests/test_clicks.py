"""Position bias of click logs: known cases, the likelihood written out, simulated logs, and refused ones."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import optimize

from ltr.clicks import estimate_position_bias, fit_with_position_bias
from ltr.metrics import ndcg
from ltr.rankers import SurrogateRanker
from tests.tiers import thinned


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


def test_weights_are_inverse_propensities_of_clicks():
    item, position, clicked = a_log(2)
    bias = estimate_position_bias(item, position, clicked, shape="power")
    assert bias.weights([1, 3, 3], [1, 1, 0]) == pytest.approx([1.0, 3**bias.eta, 1.0])
    assert bias.weights([100], [True]) == pytest.approx([100**bias.eta])  # a position that the log does not have
    free = estimate_position_bias(item, position, clicked)
    assert free.of([5, 1]) == pytest.approx(free.propensity[[4, 0]])
    with pytest.raises(ValueError, match=r"one of those in the log, 1, 2, 3, 4, 5, got 6, 9; .*shape='power'"):
        free.of([1, 9, 6])
    with pytest.raises(ValueError, match=r"at least one row, got 2 of position, 1 of clicked"):
        free.weights([1, 2], [1])


@pytest.mark.parametrize(
    ("item", "position", "clicked", "message"),
    [
        ([1, 1], [1, 2], [1], "at least one row, got 2 of item, 2 of position, 1 of clicked"),
        (["a", None], [1, 2], [1, 0], "item must name what was shown in each row, got None in row 1"),
        ([1, 1], [1, 0], [1, 0], r"position must be whole numbers from 1, got .*0.* in row 1"),
        ([1, 1], [1, 1.5], [1, 0], r"position must be whole numbers from 1, got .*1\.5.* in row 1"),
        ([1, 1], [1, 2], [1, np.nan], r"clicked must be 0 or 1, .* got .*nan.* in row 1"),
        ([1, 2], [1, 2], [1, 1], "at two or more positions and clicked, got none"),
        ([1, 1, 2], [1, 2, 3], [1, 0, 1], r"connected with the others .* not so for 2, 3"),
        ([1, 1, 1, 2, 2, 2], [1, 2, 1, 3, 4, 3], [1, 1, 1, 1, 1, 1], r"not so for 3, 4"),
    ],
)
def test_logs_that_are_refused(item, position, clicked, message):
    with pytest.raises(ValueError, match=message):
        estimate_position_bias(item, position, clicked)


# ranker and bias from the same clicks


def shown_once(seed, queries=600, eta=1.0):
    """Queries shown once each, in the order of a ranker that knows half of what makes rows relevant."""
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(queries * 8, 4)), np.repeat(np.arange(queries), 8)
    relevance = 1 / (1 + np.exp(1.5 - X @ [2.0, -1.0, 1.0, 0.0]))
    old = (2 * X[:, 0] - X[:, 1] + rng.normal(size=len(X))).reshape(-1, 8)
    position = 1 + np.argsort(np.argsort(-old, axis=1), axis=1).ravel()
    clicked = rng.random(len(X)) < relevance * position**-eta
    return X, clicked.astype(int), qid, position, relevance


@pytest.mark.parametrize(("shape", "eta"), thinned(2, ["power", "free"], [1.0, 0.0]))
def test_ranker_and_bias_are_found_together(shape, eta):
    X, clicked, qid, position, _ = shown_once(0, queries=2000, eta=eta)
    new_X, _, new_qid, _, relevance = shown_once(1)
    plain = SurrogateRanker("ranknet(pairs=sum)")
    fitted, bias = fit_with_position_bias(plain, X, clicked, qid, position, shape=shape)
    assert not hasattr(plain, "fit_")
    truth = bias.positions**-eta
    assert np.abs(np.log(bias.propensity / truth)).max() < (0.6 if shape == "free" else 0.3)
    weights = np.where(clicked == 1, position**eta, 1.0)
    known = SurrogateRanker("ranknet(pairs=sum)").fit(X, clicked, qid, sample_weight=weights)
    plain = SurrogateRanker("ranknet(pairs=sum)").fit(X, clicked, qid)
    best, own, none = (
        float(ndcg(ranker.predict(new_X), (relevance > 0.5).astype(int), qid=new_qid).nanmean())
        for ranker in (known, fitted, plain)
    )
    assert own > best - 0.01
    assert own > none - 0.002 + 0.01 * eta


def test_ranker_and_bias_do_not_depend_on_the_order_of_rows_or_the_names_of_queries():
    X, clicked, qid, position, _ = shown_once(2, queries=100)
    names = np.array([f"q{number:03}" for number in qid])
    one = fit_with_position_bias(SurrogateRanker("ranknet(pairs=sum)"), X, clicked, names, position)[1]
    order = np.argsort(qid + np.random.default_rng(0).random(len(qid)) / 2)  # within the queries
    rows = pd.DataFrame(X[order]), clicked[order].astype(bool), names[order].tolist(), position[order]
    two = fit_with_position_bias(SurrogateRanker("ranknet(pairs=sum)"), *rows)[1]
    assert two.propensity == pytest.approx(one.propensity, rel=1e-3)
