"""Listwise losses and those of a rank statistic, against their definitions written out."""

import pytest
import torch
from torch.nn import functional as F

from ltr import metrics
from ltr.losses import KLLoss, ListNetLoss, SmoothStatisticLoss, SoftmaxLoss, parse_loss
from ltr.losses.derivatives import derivatives
from ltr.losses.operators import Given
from ltr.statistics import RankStatistic
from tests.losses.loss_reference import ALL_PAIRS, NO_PAIRS, defined, set_form

STATISTICS = ["dcg", "dcg(base=e)@3", "mrr", "wta", "wrs", "power(p=2)", "pauc@4"]
KINDS = ["lambda(", "smooth(temperature=0.7,"]
HITS = ["hits@3", "precision@3", "recall@3"]
NAMES = [
    "list_net",
    "list_net(temperature=0.4)",
    "kl",
    "kl(temperature=2.5)",
    "softmax",
    "softmax(pairs=sum)",
    "list_mle",
    "list_mle(pairs=sum)",
    "lambda(statistic=dcg)",
    "lambda(statistic=mrr,gain=linear,pairs=sum)",
    "smooth(statistic=dcg,temperature=0.5)",
    "smooth(statistic=wrs,gain=linear,pairs=sum)",
    "lambda(statistic=recall@3)",
    "smooth(statistic=hits@2)",
    "smooth(statistic=precision@3,pairs=sum)",
    "smooth(statistic=recall@3,pairs=sum)",
]
all_losses = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True, params=["all pairs", "no pairs"])
def form(request, monkeypatch):
    set_form(monkeypatch, ALL_PAIRS if request.param == "all pairs" else NO_PAIRS)


def draw(*shape, seed=0, grades=3):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shape, dtype=torch.float64, generator=generator)
    return scores, torch.randint(0, grades, shape, generator=generator)


# --- values ------------------------------------------------------------------------------------------------------


DEFINED = [
    *NAMES,
    *(f"{kind}gain={gain},statistic={of})" for of in STATISTICS for gain in ("linear", "exp2") for kind in KINDS),
    *(f"{kind}pairs={pairs},statistic={of})" for of in HITS for pairs in ("mean", "sum") for kind in KINDS),
]


@pytest.mark.parametrize("name", DEFINED)
def test_values_equal_their_definitions(name):
    loss = parse_loss(name)
    for seed in range(3):
        scores, labels = draw(8, seed=seed)
        assert loss(scores, labels).item() == pytest.approx(float(defined(loss.name, scores, labels)[0]), rel=1e-11)


def test_list_net_is_the_cross_entropy_of_torch():
    scores, labels = draw(9)
    expected = F.cross_entropy(scores, labels.double().softmax(-1)).item()
    assert ListNetLoss()(scores, labels).item() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_list_net_at_an_extreme_temperature_draws_the_top_label_or_any_item(dtype):
    scores, labels = (x.to(dtype) for x in draw(9, grades=4))
    top = (labels == labels.max()).to(dtype)
    for compiled in (ListNetLoss.__call__, lambda loss, s, y: loss.in_torch(s, Given(y, None, None, None), "mean")):
        cold, hot = (compiled(ListNetLoss(temperature=t), scores, labels) for t in (1e-310, 1e300))
        torch.testing.assert_close(cold, SoftmaxLoss()(scores, top))
        torch.testing.assert_close(hot, SoftmaxLoss()(scores, torch.ones_like(top)))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_kl_is_the_divergence_of_torch_and_list_net_less_the_entropy_of_the_labels(temperature):
    scores, labels = draw(5, 9)
    labels = 3.0 * torch.randn(labels.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    loss = KLLoss(temperature=temperature)
    student, teacher = ((x / temperature).log_softmax(-1) for x in (scores, labels))
    expected = temperature**2 * F.kl_div(student, teacher, reduction="batchmean", log_target=True)
    torch.testing.assert_close(loss(scores, labels), expected)
    entropy = -(teacher.exp() * teacher).sum(-1).mean()
    cross = ListNetLoss(temperature=temperature)(scores / temperature, labels)
    torch.testing.assert_close(loss(scores, labels), temperature**2 * (cross - entropy))


def test_kl_is_0_at_the_teachers_scores_and_half_the_variance_of_the_differences_when_hot():
    scores, labels = draw(9, grades=4)
    for dtype in (torch.float64, torch.float32):
        near = (labels.to(dtype) + 5.0).requires_grad_()
        value = KLLoss()(near, labels)
        assert 0 <= value.item() < 1e-12
        assert torch.autograd.grad(value, near)[0].abs().max() < 1e-6
    hot = KLLoss(temperature=1e4)(scores, labels)
    torch.testing.assert_close(hot, (scores - labels).var(correction=0) / 2, rtol=1e-3, atol=0)


@pytest.mark.parametrize("statistic", [*STATISTICS, "hits@3"])
def test_without_temperature_the_smooth_statistic_is_the_statistic(statistic):
    scores, labels = draw(3, 12)
    exact = metrics.normalized_rank_statistic(scores, labels, statistic)
    loss = SmoothStatisticLoss(statistic=statistic, temperature=1e-5, reduction="none")
    torch.testing.assert_close(1 - loss(scores, labels), exact, rtol=1e-10, atol=1e-10)


def test_the_smooth_auc_counts_pairs():
    scores, labels = draw(20, grades=2)
    loss = SmoothStatisticLoss(statistic="auc", temperature=1e-5)
    auc = metrics.rank_statistic(scores, labels, "auc").item()
    assert 1 - loss(scores, labels).item() == pytest.approx(auc, rel=1e-12)
    soft = SmoothStatisticLoss(statistic="auc", temperature=0.3)(scores, labels)
    z = (scores[labels == 1][:, None] - scores[labels == 0]) / 0.3
    assert soft.item() == pytest.approx(torch.sigmoid(-z).mean().item(), rel=1e-11)
    with pytest.raises(ValueError, match="labels must be 0 and 1 for auc"):
        SmoothStatisticLoss(statistic="auc")(scores, labels + 1)


def test_a_long_list_of_a_smooth_statistic():
    scores, labels = draw(2_000)
    loss = parse_loss("smooth(statistic=dcg,temperature=0.01)")
    given = scores.requires_grad_()
    value = loss(given, labels)
    (slope,) = torch.autograd.grad(value, given)
    above = torch.sigmoid((given.unsqueeze(0) - given.unsqueeze(1)) / 0.01).sum(1) - 0.5
    table = torch.from_numpy(RankStatistic("dcg").weights(2_000)[::-1].copy())
    whole = above.detach().floor().long()
    line = table[whole] + (above - whole) * (table[(whole + 1).clamp(max=1_999)] - table[whole])
    gains = 2.0**labels - 1
    ideal = (gains.sort(descending=True).values * table).sum()
    expected = 1 - (gains * line).sum() / ideal
    assert value.item() == pytest.approx(expected.item(), rel=1e-11)
    torch.testing.assert_close(slope, torch.autograd.grad(expected, given)[0], rtol=1e-8, atol=1e-12)


# --- what all losses keep ----------------------------------------------------------------------------------------


@all_losses
def test_derivatives(name):
    scores, labels = draw(2, 6, seed=4)
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: parse_loss(name)(s, labels), (scores,))
    assert torch.autograd.gradgradcheck(lambda s: parse_loss(name)(s, labels), (scores,))


@pytest.mark.parametrize("name", ["lambda(statistic=dcg)", "smooth(statistic=dcg)"])
@pytest.mark.parametrize("double", [False, True])
def test_large_gains_give_the_share_of_small_ones(name, double):
    # 2^y - 1 rounds to 2^y, so that labels 400 and 401 weigh as 1022 and 1023 do
    dtype = torch.float64 if double else torch.float32
    scores = torch.linspace(-40, 40, 60, dtype=dtype)
    labels = torch.zeros(60, dtype=torch.int64)
    labels[:2] = torch.tensor([401, 400])  # the pairs of the items at the bottom lose about 60 times the ideal value
    loss, found = parse_loss(name), []
    for more in (0, 621):
        y = labels + more * (labels > 0)
        variable = scores.clone().requires_grad_()
        value = loss(variable, y)
        value.backward()
        formula = loss.in_torch(scores, Given(y, None, None, None), "mean")
        assert value.item() == pytest.approx(formula.item(), rel=1e-5 if dtype == torch.float32 else 1e-12)
        found.append((value.detach(), variable.grad, *derivatives(loss, scores, y, torch.zeros(60, dtype=torch.int64))))
    for one, other in zip(*found, strict=True):
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other)
    with pytest.raises(ValueError, match="labels must be small enough for dcg to be finite, got 1023"):
        loss(scores, torch.full((60,), 1023))
