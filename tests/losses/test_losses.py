import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from ltr import losses
from ltr.losses import transforms
from tests.losses.loss_reference import (
    ALL_PAIRS,
    CASES,
    NO_PAIRS,
    PAIRWISE_CASES,
    Case,
    defined,
    set_form,
    value_and_grad,
)
from tests.tiers import examples, slow_but

all_losses = pytest.mark.parametrize("case", CASES, ids=str)
pairwise_losses = pytest.mark.parametrize("case", PAIRWISE_CASES, ids=str)
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
both_pairs = pytest.mark.parametrize("pairs", ["mean", "sum"])


@pytest.fixture(autouse=True, params=["all pairs", "no pairs", "compiled"])
def form(request, monkeypatch):
    """Every test sees all forms of each loss."""
    if request.param != "compiled":
        set_form(monkeypatch, NO_PAIRS if request.param == "no pairs" else ALL_PAIRS)
        monkeypatch.setattr(transforms, "COMPILED_FOR", ())


def draw(case: Case, *shape: int, seed: int = 0, grades: int = 3):
    """Scores, labels (graded for pairwise losses) and weights, one of them 0."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shape, dtype=torch.float64, generator=generator)
    labels = torch.randint(0, grades if case.pairwise else 2, shape, generator=generator)
    weight = torch.rand(shape, dtype=torch.float64, generator=generator) + 0.1
    weight[..., 1] = 0.0
    return scores, labels, weight


def same(actual, expected, tolerance=1e-12):
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


# --- values ------------------------------------------------------------------------------------------------------


def test_logistic_equals_torch_binary_cross_entropy():
    scores, labels, weight = draw(CASES[4], 50)
    labels = labels.double()
    same(losses.LogisticLoss()(scores, labels), F.binary_cross_entropy_with_logits(scores, labels))
    expected = F.binary_cross_entropy_with_logits(scores, labels, weight=weight, reduction="sum")
    same(losses.LogisticLoss(pairs="sum")(scores, labels, weight=weight), expected)


def test_pairwise_losses_equal_torch_losses_of_differences():
    scores, labels, _ = draw(CASES[0], 40, grades=2)
    z = (scores[labels == 1][:, None] - scores[labels == 0][None, :]).flatten()
    one = torch.ones_like(z)
    same(losses.RankNetLoss()(scores, labels), F.binary_cross_entropy_with_logits(z, one))
    same(losses.RankNetLoss()(scores, labels), F.soft_margin_loss(z, one))
    same(losses.PairwiseHingeLoss()(scores, labels), F.margin_ranking_loss(z, 0 * one, one, margin=1.0))
    same(
        losses.PairwiseSquaredHingeLoss()(scores, labels),
        F.margin_ranking_loss(z, 0 * one, one, 1.0, reduction="none").square().mean(),
    )


# --- derivatives -------------------------------------------------------------------------------------------------


@all_losses
@pytest.mark.parametrize("pairs", slow_but(["mean", "sum"], quick=["mean"]))
def test_first_and_second_derivatives(case, pairs):
    scores, labels, weight = draw(case, 2, 5, seed=3)
    loss = case.module(pairs=pairs)
    if not case.smooth:
        margin = 1 - (scores.unsqueeze(-1) - scores.unsqueeze(-2))
        assert margin.abs().min() > 1e-3, "a kink is too close for finite differences"
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: loss(s, labels, weight=weight), (scores,))
    assert torch.autograd.gradgradcheck(lambda s: loss(s, labels, weight=weight), (scores,))


@all_losses
def test_weights_are_data(case):
    scores, labels, weight = draw(case, 6)
    weight.requires_grad_()
    value = case.module()(scores.requires_grad_(), labels, weight=weight)
    value.backward()
    assert weight.grad is None
    assert torch.isfinite(scores.grad).all()


@all_losses
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 4), (0, 0)])
def test_empty_lists_and_batches(case, shape):
    for reduction in ("mean", "sum", "none"):
        for pairs in ("mean", "sum"):
            loss = case.module(reduction=reduction, pairs=pairs)
            value, grad = value_and_grad(loss, torch.zeros(shape), torch.zeros(shape))
            assert value.shape == (shape[:-1] if reduction == "none" else ())
            assert torch.equal(value, torch.zeros_like(value))
            assert grad.shape == shape
    value = case.module()(torch.zeros(0), torch.zeros(0), qid=torch.zeros(0, dtype=torch.long))
    assert value.item() == 0


# --- reductions and weights --------------------------------------------------------------------------------------


@all_losses
def test_reductions_count_every_list(case):
    scores, labels, _ = draw(case, 3, 6)
    labels[1] = 0
    values = case.module(reduction="none")(scores, labels)
    if case.pairwise:
        assert values[1] == 0
    same(case.module(reduction="sum")(scores, labels), values[0] + values[1] + values[2])
    same(case.module(reduction="mean")(scores, labels), (values[0] + values[1] + values[2]) / 3)


@all_losses
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e18, 3e38])
def test_means_do_not_depend_on_the_scale_of_weights(case, scale):
    scores, labels, weight = (x.float() for x in draw(case, 8))
    weight /= 1.1  # of at most 1
    loss = case.module()
    same(loss(scores, labels, weight=weight * scale), loss(scores, labels, weight=weight), 1e-5)


@all_losses
def test_data_changed_in_place_is_noticed(case):
    scores, labels, _ = draw(case, 6)
    scores.requires_grad_()
    labels = labels.double()
    value = case.module()(scores, labels)
    labels.fill_(0.0)
    try:
        (grad,) = torch.autograd.grad(value, scores, create_graph=True)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)  # noqa: PT017 (either will do)
    else:
        same(grad, value_and_grad(case.module(), scores.detach(), draw(case, 6)[1])[1])


# --- numerical range ---------------------------------------------------------------------------------------------


def test_powers_are_finite_wherever_the_result_is():
    # the one negative has (mean over positives of l)^4 = (exp(120) + exp(-1))^4 / 2^4 at p = 1/4 of overflow
    labels = torch.tensor([1, 1, 0])
    logistic = losses.PNormPushLoss(p=4, inner="logistic")(torch.tensor([0.0, 1.0, 1e9]), labels)
    assert logistic.item() == pytest.approx(1e36, rel=1e-4)
    tiny = losses.PNormPushLoss(p=1.5, inner="logistic")(torch.tensor([50.0, 50.0, 0.0]), labels)
    assert tiny.item() == pytest.approx(math.exp(-75), rel=1e-4)
    # exp(-60) underflows when raised to the power 4 after exp, the sum over 2 positives does not
    below = losses.PNormPushLoss(p=4, pairs="sum")(torch.tensor([21.0, 21.0, 0.0]), labels)
    assert below.item() == pytest.approx(16 * math.exp(-84), rel=1e-4)


@all_losses
@pytest.mark.parametrize("device", DEVICES)
def test_autocast_does_not_reach_inside(case, device):
    scores, labels, weight = (x.to(device) for x in draw(case, 2, 20))
    scores, weight = scores.float(), weight.float()
    outside, outside_grad = value_and_grad(case.module(), scores, labels, weight=weight)
    with torch.autocast(device, dtype=torch.bfloat16):
        inside, inside_grad = value_and_grad(case.module(), scores, labels, weight=weight)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, outside)
    assert torch.equal(inside_grad, outside_grad)


@st.composite
def lists(draw_, grades):
    n = draw_(st.integers(1, 7))
    numbers = st.lists(st.floats(-30, 30), min_size=n, max_size=n)
    labels = st.lists(st.integers(0, grades), min_size=n, max_size=n)
    weights = st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=n, max_size=n)
    return draw_(numbers), draw_(labels), draw_(weights)


@all_losses
@settings(max_examples=examples(10, slow=100), deadline=None)
@given(data=st.data(), pairs=st.sampled_from(["mean", "sum"]))
def test_any_list_equals_the_formula(case, data, pairs):
    scores, labels, weight = data.draw(lists(2 if case.pairwise else 1))
    value, grad = value_and_grad(
        case.module(pairs=pairs),
        torch.tensor(scores, dtype=torch.float64),
        torch.tensor(labels),
        weight=torch.tensor(weight, dtype=torch.float64),
    )
    least = 1e-100 if losses.RankingLoss.short else 1e-15  # pairs won by more than 38 are no loss
    expected = float(defined(case.module(pairs=pairs).name, scores, labels, weight)[0])
    assert value.item() == pytest.approx(expected, rel=1e-11, abs=least)
    assert torch.isfinite(grad).all()


# --- names and errors --------------------------------------------------------------------------------------------


@all_losses
def test_names_parse_back(case):
    assert str(case.module()) == case.name == case.module().name
    for reduction in ("mean", "sum", "none"):
        for pairs in ("mean", "sum"):
            loss = case.module(reduction=reduction, pairs=pairs)
            again = losses.parse_loss(str(loss))
            assert type(again) is type(loss)
            assert str(again) == str(loss)
            assert (again.reduction, again.pairs) == (reduction, pairs)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank_net", r"unknown name 'rank_net' \(did you mean 'ranknet'\?\); known are ranknet, hinge"),
        ("LambdaMART", r"unknown name 'LambdaMART' \(did you mean 'lambda'\?\)"),
        ("approx_ndcg", r"\(did you mean 'smooth\(statistic=dcg@10\)'\?\)"),
        ("ranknet(p=2)", r"takes reduction=\.\.\., pairs=\.\.\., each once, got 'p=2'"),
        ("ranknet(pairs=max)", "pairs must be one of 'mean', 'sum', got 'max'"),
        ("p_norm_push(p=0.5)", "p must be a finite number >= 1, got 0.5"),
    ],
)
def test_names_that_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        losses.parse_loss(text)


@all_losses
def test_numbers_beyond_the_range_of_scores_are_refused(case):
    loss, scores, labels = case.module(), torch.zeros(3), torch.tensor([1, 0, 1])
    with pytest.raises(ValueError, match="weight must be finite and nonnegative, got inf"):
        loss(scores, labels, weight=torch.full((3,), 1e60, dtype=torch.float64))
    with pytest.raises(ValueError, match="labels must be finite, got inf"):
        loss(scores, torch.tensor([0.0, 1.0, 1e60], dtype=torch.float64))
    with pytest.raises(ValueError, match="labels must be at most 16777216 beside scores of float32, got 16777217"):
        loss(scores, torch.tensor([0, 1, 2**24 + 1]))
    with pytest.raises(TypeError):
        loss(scores, labels, torch.ones(3))


def test_logistic_refuses_graded_labels_of_real_items_only():
    scores, labels = torch.zeros(3), torch.tensor([0, 1, 2])
    with pytest.raises(ValueError, match="labels must be 0 or 1 for the logistic loss, got 2"):
        losses.LogisticLoss()(scores, labels)
    assert losses.LogisticLoss()(scores, labels, mask=labels < 2).item() == pytest.approx(math.log(2))


@all_losses
@settings(max_examples=examples(10, slow=100), deadline=None)
@given(data=st.data(), t=st.floats(0, 1))
def test_losses_are_convex_in_the_scores(case, data, t):
    scores, labels, _ = data.draw(lists(2 if case.pairwise else 1))
    n = len(scores)
    a = torch.tensor(scores, dtype=torch.float64)
    b = torch.tensor(data.draw(st.lists(st.floats(-30, 30), min_size=n, max_size=n)), dtype=torch.float64)
    loss, y = case.module(), torch.tensor(labels)
    middle, chord = loss(t * a + (1 - t) * b, y), t * loss(a, y) + (1 - t) * loss(b, y)
    assert middle.item() <= chord.item() * (1 + 1e-12) + (1e-100 if losses.RankingLoss.short else 1e-15)
