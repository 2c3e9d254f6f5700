"""Metrics and losses of times until an event: definitions over all pairs, other libraries, and extremes."""

import math

import numpy as np
import pytest
import torch

from ltr.losses.functions import EXPONENTIAL, HINGE, LOGISTIC, SQUARED_HINGE
from ltr.outcomes import kaplan_meier
from ltr.survival import ConcordanceLoss, CoxLoss, Times, c_index, cumulative_dynamic_auc, survival_labels, uno_c_index

PHI = {"ranknet": LOGISTIC, "hinge": HINGE, "squared_hinge": SQUARED_HINGE, "exponential": EXPONENTIAL}
DOUBLE = torch.float64


def rows(seed, n=None, times=12):
    """Random times with ties, events, and scores with ties."""
    rng = np.random.default_rng([51, seed])
    n = n or int(rng.integers(3, 60))
    time, event = rng.integers(0, int(rng.integers(2, times)), n).astype(float), rng.random(n) < rng.uniform(0.2, 0.9)
    event[np.argmin(time)], time[np.argmax(time)] = True, time.max() + 1
    event[np.argmax(time)] = False
    return time, event, rng.integers(0, int(rng.integers(1, 12)), n).astype(float), rng


def comparable(time, event):
    """Which pairs (i, k) are comparable, from the definition."""
    return event[:, None] & ((time[:, None] < time) | ((time[:, None] == time) & ~event))


# --- metrics


@pytest.mark.parametrize("seed", range(40))
def test_c_index_is_the_share_of_pairs_in_order(seed):
    time, event, scores, _ = rows(seed)
    pairs = comparable(time, event)
    won = (scores[:, None] > scores) + 0.5 * (scores[:, None] == scores)
    times = Times.of(survival_labels(time, event))
    assert c_index(scores, times) == pytest.approx((won * pairs).sum() / pairs.sum(), abs=1e-12)
    below, equal = times.later_below(scores)
    np.testing.assert_array_equal(below, ((scores[:, None] > scores) & pairs).sum(1))
    np.testing.assert_array_equal(equal, ((scores[:, None] == scores) & pairs).sum(1))


@pytest.mark.parametrize("seed", range(40))
def test_censored_weights_are_those_of_scikit_survival(seed):
    sksurv = pytest.importorskip("sksurv.metrics", reason="scikit-survival is not installed")
    time, event, scores, rng = rows(seed)
    other_time, other_event, _, _ = rows(seed + 1000, n=80)
    other_time[-1], other_event[-1] = 50.0, False
    y, train = survival_labels(time, event), survival_labels(other_time, other_event)
    for tau in (None, float(np.median(time)) + 0.5):
        if not (comparable(time, event) & (time < (tau or 99))[:, None]).any():
            continue
        expected = sksurv.concordance_index_ipcw(train, y, scores, tau=tau)[0]
        assert uno_c_index(scores, y, train=train, tau=tau) == pytest.approx(expected, abs=1e-12)
    first = time[event].min()
    at = np.unique(rng.uniform(first, time.max() - 0.01, 5))
    auc, mean = sksurv.cumulative_dynamic_auc(train, y, scores, at)
    found = cumulative_dynamic_auc(scores, y, at, train=train)
    np.testing.assert_allclose(found.auc, auc, atol=1e-12)
    assert found.mean == pytest.approx(mean, abs=1e-12)


def test_unos_c_without_censoring_is_harrells():
    for seed in range(20):
        time, _, scores, _ = rows(seed)
        y = survival_labels(time, np.ones(len(time)))
        assert uno_c_index(scores, y) == pytest.approx(c_index(scores, y), abs=1e-12)


def test_kaplan_meier_of_six_rows():
    """The ends at the time 1 by hand; the others are lifelines 0.30.3's."""
    curve = kaplan_meier([1, 2, 2, 3, 4, 5], [1, 1, 0, 0, 1, 0])
    spread = 1.959963984540054 * math.sqrt(1 / 30) / -math.log(5 / 6)  # one event of six: 1 / (6 * 5)
    assert curve.lower[0] == pytest.approx((5 / 6) ** math.exp(spread), abs=1e-12)
    np.testing.assert_allclose(curve.share, [5 / 6, 2 / 3, 1 / 3])
    np.testing.assert_allclose(curve.lower, [0.273123, 0.194617, 0.013685], atol=1e-6)
    np.testing.assert_allclose(curve.upper, [0.974712, 0.904434, 0.754844], atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: c_index([1, 2], y), "scores must hold one number for each row of y"),
        (lambda y: c_index([1, math.nan, 2], y), "scores must be finite, got nan at row 1"),
        (lambda y: uno_c_index([1, 2, 3], y, tau=0.5), "tau must be above"),
        (lambda y: uno_c_index([1, 2, 3], y, train=y[:2]), "train must have rows that are seen beyond"),
        (lambda y: cumulative_dynamic_auc([1, 2, 3], y, [2, 1]), "times must be an ascending"),
        (lambda y: cumulative_dynamic_auc([1, 2, 3], y, [4]), "times must lie between"),
        (lambda y: kaplan_meier([1], [1], level=1.0), "level must be a number between 0 and 1"),
    ],
)
def test_metrics_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call(survival_labels([1, 2, 4], [1, 0, 1]))


# --- losses


def by_pairs(phi, scores, time, event, weight, qid, pairs):
    """The loss over the matrix of pairs."""
    counted = comparable(time, event)
    if qid is not None:
        counted = counted & (qid[:, None] == qid)
    weight = torch.ones_like(scores) if weight is None else weight
    share = counted * weight[:, None] * weight
    value = (share * phi(scores[:, None] - scores).masked_fill(~counted, 0.0)).sum()
    return value / share.sum().clamp(min=1e-300) if pairs == "mean" else value


@pytest.mark.parametrize("pair", PHI)
@pytest.mark.parametrize("pairs", ["mean", "sum"])
@pytest.mark.parametrize("seed", range(4))
def test_concordance_loss_is_the_sum_over_pairs(pair, pairs, seed):
    rng = torch.Generator().manual_seed(seed)
    n = [3, 40, 300, 700][seed]  # long lists take other sums
    time, event = torch.randint(0, [4, 9, 40, 700][seed], (n,), generator=rng), torch.rand(n, generator=rng) < 0.5
    weight = torch.rand(n, generator=rng, dtype=DOUBLE) * (torch.rand(n, generator=rng) < 0.8)
    list_of = torch.randint(-1, 2, (n,), generator=rng)
    scores = 3 * torch.randn(n, generator=rng, dtype=DOUBLE)
    for own, qid in ((None, None), (weight, None), (None, list_of), (weight, list_of)):
        found, wanted = (scores.clone().requires_grad_() for _ in range(2))
        value = ConcordanceLoss(pair, pairs=pairs)(found, time, event, weight=own, qid=qid)
        expected = by_pairs(PHI[pair], wanted, time, event, own, qid, pairs)
        (slopes,), (slopes_wanted,) = torch.autograd.grad(value, found), torch.autograd.grad(expected, wanted)
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(slopes, slopes_wanted, rtol=1e-10, atol=1e-10 * float(1 + slopes_wanted.abs().max()))


def cox_by_definition(scores, time, event, weight, ties, qid=None):
    """Cox's partial likelihood, term by term."""
    total, events = torch.zeros((), dtype=DOUBLE), 0.0
    qid = torch.zeros_like(time) if qid is None else qid
    for one in qid.unique():
        for t in time[event & (qid == one)].unique():
            here, seen = event & (time == t) & (qid == one), (time >= t) & (qid == one)
            risk, own = (weight * scores.exp())[seen].sum(), (weight * scores.exp())[here].sum()
            total = total - (weight * scores)[here].sum()
            for place in range(int(here.sum())):
                part = place / int(here.sum()) * own if ties == "efron" else 0.0
                total = total + weight[here].mean() * torch.log(risk - part)
            events += float(weight[here].sum())
    return total / events


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("seed", range(5))
def test_cox_loss_is_the_partial_likelihood(ties, seed):
    rng = torch.Generator().manual_seed(seed)
    n = 40
    time, event = torch.randint(0, 12, (n,), generator=rng), torch.rand(n, generator=rng) < 0.6
    weight, qid = torch.rand(n, generator=rng, dtype=DOUBLE) + 0.1, torch.randint(0, 3, (n,), generator=rng)
    scores = torch.randn(n, generator=rng, dtype=DOUBLE)
    for own, lists in ((None, None), (weight, None), (None, qid), (weight, qid)):
        found, wanted = (scores.clone().requires_grad_() for _ in range(2))
        value = CoxLoss(ties)(found, time, event, weight=own, qid=lists)
        expected = cox_by_definition(wanted, time, event, torch.ones_like(scores) if own is None else own, ties, lists)
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)
        pair = torch.autograd.grad(value, found), torch.autograd.grad(expected, wanted)
        torch.testing.assert_close(*pair, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_cox_loss_is_that_of_scikit_survival(ties):
    linear_model = pytest.importorskip("sksurv.linear_model", reason="scikit-survival is not installed")
    time, event, _, rng = rows(3, n=200)
    X = rng.normal(size=(200, 3))
    fitted = linear_model.CoxPHSurvivalAnalysis(ties=ties, tol=1e-12).fit(X, survival_labels(time, event))
    w = torch.tensor(fitted.coef_, requires_grad=True)
    CoxLoss(ties)(torch.tensor(X) @ w, torch.tensor(time), torch.tensor(event)).backward()
    assert float(w.grad.abs().max()) < 1e-7


LOSSES = [*(ConcordanceLoss(pair) for pair in PHI), CoxLoss("efron"), CoxLoss("breslow")]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
def test_losses_are_finite_at_extremes_and_zero_without_pairs(loss, dtype):
    time, event = torch.tensor([1.0, 2.0, 2.0, 3.0]), torch.tensor([True, True, True, False])
    large = torch.tensor([-200.0, 100.0, 0.0, 150.0] if dtype == DOUBLE else [-20.0, 30.0, 0.0, 15.0], dtype=dtype)
    for scores in (large, -large, torch.tensor([0.0, 1e30, -1e30, 0.0], dtype=dtype)):
        scores = scores.clone().requires_grad_()
        value = loss(scores, time, event)
        value.backward()
        assert not value.isnan()
        assert scores.grad.isfinite().all()
        if isinstance(loss, CoxLoss) and scores.abs().max() > 1e15:
            continue  # torch's logcumsumexp loses the share of a term there
        assert float(scores.grad.sum()) == pytest.approx(0.0, abs=1e-5 * float(1 + scores.grad.abs().max()))
    for half in (torch.float16, torch.bfloat16):
        scores = torch.tensor([6e4, 6e4, 0.0, -6e4], dtype=half, requires_grad=True)
        value = loss(scores, time, event)
        value.backward()
        assert value.dtype == torch.float32
        assert not value.isnan()
    for events in (torch.zeros(4), torch.ones(4)):
        scores = torch.zeros(4, dtype=dtype, requires_grad=True)
        value = loss(scores, torch.ones(4), events)
        value.backward()
        assert value.isfinite()
        if not (isinstance(loss, CoxLoss) and events.any()):
            assert value == 0
            assert not scores.grad.any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scores": torch.tensor([0.0, math.inf, 0.0])}, "scores must be finite"),
        ({"time": torch.tensor([1.0, -1.0, 2.0])}, "time must hold finite numbers >= 0"),
        ({"event": torch.tensor([0, 1, 2])}, "event must hold booleans, or 0 and 1"),
        ({"weight": torch.tensor([1.0, -1.0, 1.0])}, "weight must hold numbers >= 0"),
    ],
)
def test_losses_refuse(given, message):
    usual = {"scores": torch.zeros(3), "time": torch.tensor([1.0, 2.0, 3.0]), "event": torch.tensor([1, 1, 0])}
    for loss in LOSSES:
        with pytest.raises(ValueError, match=message):
            loss(**usual | given)
