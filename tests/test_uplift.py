"""Metrics and the loss of treatments: definitions, other libraries, and the loss over all pairs."""

import math

import numpy as np
import pytest
import torch

from ltr.losses.functions import EXPONENTIAL, HINGE, LOGISTIC, SQUARED_HINGE
from ltr.uplift import Treatments, UpliftLoss, auuc, effect_by_top_share, qini, qini_curve, uplift_curve, uplift_labels

PHI = {"ranknet": LOGISTIC, "hinge": HINGE, "squared_hinge": SQUARED_HINGE, "exponential": EXPONENTIAL}
DOUBLE = torch.float64


def rows(seed, *, ties=True):
    """Random scores, binary outcomes and treatments, both with 0 and 1 in each group."""
    rng = np.random.default_rng([52, seed])
    n = int(rng.integers(8, 60))
    outcome, treatment = rng.random(n) < rng.uniform(0.2, 0.8), rng.random(n) < rng.uniform(0.2, 0.8)
    outcome[:4], treatment[:4] = [0, 1, 0, 1], [0, 0, 1, 1]
    scores = rng.integers(0, int(rng.integers(2, 12)), n).astype(float) if ties else rng.permutation(n).astype(float)
    return scores, outcome.astype(int), treatment.astype(int)


@pytest.mark.parametrize("seed", range(30))
def test_the_fixed_area_is_that_under_the_curve(seed):
    scores, outcome, treatment = rows(seed)
    y = Treatments.of(uplift_labels(outcome, treatment))
    assert auuc(scores, y) == pytest.approx(uplift_curve(scores, y).area / len(scores), abs=1e-12)
    assert qini(np.zeros(len(scores)), y) == pytest.approx(0.0, abs=1e-12)
    assert uplift_curve(scores, y).value[-1] == pytest.approx(y.effect, abs=1e-12)
    np.testing.assert_allclose(qini_curve(scores, y).value, uplift_curve(scores, y).value * treatment.sum())


@pytest.mark.filterwarnings("ignore:.*stable_cumsum:FutureWarning")
@pytest.mark.parametrize("seed", range(30))
def test_scikit_uplift_agrees(seed):
    sklift = pytest.importorskip("sklift.metrics", reason="scikit-uplift is not installed")
    scores, outcome, treatment = rows(seed)
    y = uplift_labels(outcome, treatment)
    for own, name in ((uplift_curve, "uplift_curve"), (qini_curve, "qini_curve")):
        curve, expected = own(scores, y, definition="scikit-uplift"), getattr(sklift, name)(outcome, scores, treatment)
        np.testing.assert_array_equal(curve.rows, expected[0])
        np.testing.assert_allclose(curve.value, expected[1], atol=1e-12 * len(scores))
    for own, name in ((auuc, "uplift_auc_score"), (qini, "qini_auc_score")):
        expected = getattr(sklift, name)(outcome, scores, treatment)
        assert own(scores, y, definition="scikit-uplift") == pytest.approx(expected, rel=1e-10, abs=1e-10)


def causalml_curve(scores, outcome, treatment, *, per_treated):
    """The curve of causalml 0.15, a row at a time; equal scores keep the order of the rows."""
    found, order = [0.0], sorted(range(len(scores)), key=lambda i: -scores[i])
    for k in range(1, len(order) + 1):
        top = order[:k]
        n1 = sum(treatment[i] for i in top)
        y1, y0 = sum(outcome[i] * treatment[i] for i in top), sum(outcome[i] * (1 - treatment[i]) for i in top)
        if n1 == k or (n1 == 0 and not per_treated):
            found.append(math.nan)
        elif per_treated:
            found.append(y1 - y0 * n1 / (k - n1))
        else:
            found.append(y1 / n1 - y0 / (k - n1))
    values, k = np.array(found), np.arange(len(found))
    known = ~np.isnan(values)
    values = np.interp(k, k[known], values[known])  # as pandas' interpolate: linear, the last one carried on
    return values if per_treated else values * k


@pytest.mark.parametrize("seed", range(30))
def test_causalml_agrees(seed):
    scores, outcome, treatment = rows(seed, ties=seed % 2 == 0)
    y = uplift_labels(outcome, treatment)
    gain = causalml_curve(scores, outcome, treatment, per_treated=False)
    np.testing.assert_allclose(uplift_curve(scores, y, definition="causalml").value, gain, atol=1e-10)
    q = causalml_curve(scores, outcome, treatment, per_treated=True)
    np.testing.assert_allclose(qini_curve(scores, y, definition="causalml").value, q, atol=1e-10)
    if gain[-1] == 0 or q[-1] == 0:
        return
    assert auuc(scores, y, definition="causalml") == pytest.approx((gain / abs(gain[-1])).sum() / len(gain))
    q = q / abs(q[-1])
    expected = (q.sum() - np.linspace(q[0], q[-1], len(q)).sum()) / len(q)
    assert qini(scores, y, definition="causalml") == pytest.approx(expected)


def test_effects_of_top_shares_have_intervals_that_cover():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(200):
        treatment, scores = rng.random(400) < 0.5, rng.random(400)
        outcome = rng.random(400) < 0.3 + 0.3 * treatment * (scores > 0.5)
        top, whole = effect_by_top_share(scores, uplift_labels(outcome, treatment), [0.4, 1.0], level=0.9)
        assert (top.rows, whole.rows) == (160, 400)
        assert whole.effect == pytest.approx(outcome[treatment].mean() - outcome[~treatment].mean())
        covered += top.lower <= 0.3 <= top.upper
    assert covered in range(168, 193)  # 90 % of 200, within three standard deviations
    [tied] = effect_by_top_share([1, 1, 0], uplift_labels([1, 0, 0], [1, 1, 0]), [0.3])
    assert tied.rows == 2
    assert math.isnan(tied.effect)


# --- the loss


@pytest.mark.parametrize("pair", PHI)
@pytest.mark.parametrize("pairs", ["mean", "sum"])
@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("n", [5, 60, 600])
def test_uplift_loss_is_the_sum_over_pairs(pair, pairs, binary, n):
    rng = torch.Generator().manual_seed(n)
    outcome = torch.rand(n, generator=rng, dtype=DOUBLE) - 0.3
    outcome, treatment = (outcome > 0.2).long() if binary else outcome, torch.rand(n, generator=rng) < 0.4
    treatment[:2] = torch.tensor([True, False])
    scores, weight = torch.randn(n, generator=rng, dtype=DOUBLE) * 2, torch.rand(n, generator=rng, dtype=DOUBLE)
    for own in (None, weight):
        found, wanted = (scores.clone().requires_grad_() for _ in range(2))
        w = torch.ones(n, dtype=DOUBLE) if own is None else own
        z = torch.where(treatment, outcome / w[treatment].sum(), -outcome / w[~treatment].sum())
        share = w[:, None] * w * (z[:, None] - z).clamp(min=0)
        expected = (share * PHI[pair](wanted[:, None] - wanted)).sum()
        expected = expected / share.sum() if pairs == "mean" else expected
        value = UpliftLoss(pair, pairs=pairs)(found, outcome, treatment, weight=own)
        torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-10)
        slopes = torch.autograd.grad(value, found) + torch.autograd.grad(expected, wanted)
        torch.testing.assert_close(*slopes, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("pair", PHI)
def test_uplift_loss_is_differentiable_and_finite(pair):
    outcome, treatment = torch.tensor([1.0, 0.0, 2.5, 1.0, 0.0, -0.5]), torch.tensor([1, 1, 0, 0, 1, 0])
    loss = UpliftLoss(pair)
    scores = torch.tensor([0.35, -0.7, 1.9, 0.1, -2.2, 0.6], dtype=DOUBLE, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: loss(s, outcome, treatment), scores)
    for dtype, large in ((torch.float16, 6e4), (torch.bfloat16, 1e30), (torch.float32, 1e30), (DOUBLE, 1e300)):
        scores = torch.tensor([large, -large, 0.0, 1e4, large, 3.0], dtype=dtype, requires_grad=True)
        value = loss(scores, outcome, treatment)
        value.backward()
        assert not value.isnan()
        if pair != "exponential" or dtype in (torch.float32, DOUBLE):  # the slopes are beyond half precision
            assert scores.grad.isfinite().all()
    for outcomes, treatments in ((outcome, torch.ones(6)), (torch.zeros(6), treatment)):
        scores = torch.zeros(6, requires_grad=True)
        value = loss(scores, outcomes, treatments)
        value.backward()
        assert value == 0
        assert not scores.grad.any()
