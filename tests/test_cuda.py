"""Losses, metrics and fits on a GPU have the values that they have on a CPU. Everything is skipped without a GPU."""

import functools

import numpy as np
import pytest
import torch

from ltr.losses import RankingLoss, parse_loss, transforms
from ltr.metrics import parse_measure
from ltr.rankers import SurrogateRanker
from ltr.survival import ConcordanceLoss, CoxLoss
from ltr.uplift import UpliftLoss
from tests.losses.loss_reference import ALL_PAIRS, CASES, NO_PAIRS
from tests.losses.test_listwise import NAMES

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

LOSSES = [*(case.name for case in CASES), *NAMES]
MEASURES = ["ndcg@10", "ndcg", "mrr@10", "precision@5", "recall@5", "ap", "rprec", "success@3", "bpref", "rbp(p=0.8)"]
MEASURES += ["err@10", "auc", "dcg(base=e)@10", "wrs", "pauc@30", "lift@10", "hits@10", "pairwise_misranking_error"]
TWO_GRADES = ("logistic", "auc", "pairwise_misranking_error")
all_losses = pytest.mark.parametrize("name", LOSSES)


def draw(name, *shape, dtype=torch.float64):
    """Scores with ties, labels, weights and a mask."""
    rng = torch.Generator().manual_seed(len(name) + sum(shape))
    scores = torch.randint(-300, 300, shape, generator=rng).to(dtype) * 0.0137
    labels = torch.randint(0, 2 if name in TWO_GRADES else 4, shape, generator=rng)
    weight = torch.rand(shape, generator=rng).to(dtype) + 0.1
    mask = torch.rand(shape, generator=rng) < 0.8
    mask[..., :2] = True
    return scores, labels, weight, mask


def value_and_grad(loss, device, scores, labels, **kwargs):
    scores = scores.to(device).requires_grad_()
    values = loss(scores, labels.to(device), **{key: value.to(device) for key, value in kwargs.items()})
    (grad,) = torch.autograd.grad(values.sum(), scores)
    assert values.device.type == grad.device.type == device
    return values.detach().cpu(), grad.cpu()


def same_on_both(loss, tolerance, *args, **kwargs):
    for ours, theirs in zip(*(value_and_grad(loss, at, *args, **kwargs) for at in ("cuda", "cpu")), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@all_losses
@pytest.mark.parametrize("form", ["all pairs", "no pairs"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-4)])
def test_losses_have_the_values_and_gradients_of_a_cpu(name, form, dtype, tolerance, monkeypatch):
    for key, value in (ALL_PAIRS if form == "all pairs" else NO_PAIRS).items():
        monkeypatch.setattr(RankingLoss, key, value)
    monkeypatch.setattr(transforms, "COMPILED_FOR", ())
    loss = parse_loss(name)
    loss.reduction = "none"
    scores, labels, weight, mask = draw(name, 5, 40, dtype=dtype)
    weights = {} if name.startswith(("lambda", "smooth")) else {"weight": weight}
    same_on_both(loss, tolerance, scores, labels, mask=mask, **weights)
    scores, labels, weight, _ = draw(name, 90, dtype=dtype)
    same_on_both(loss, tolerance, scores, labels, qid=torch.arange(90) // 7, **dict.fromkeys(weights, weight))


@all_losses
def test_a_long_list_has_the_value_of_a_cpu(name):
    if name == "lambda(statistic=dcg)":
        pytest.skip("takes all pairs")
    scores, labels, _, _ = draw(name, 5_000)
    same_on_both(parse_loss(name), 1e-9, scores, labels)


@pytest.mark.parametrize("pair", ["ranknet", "hinge", "squared_hinge", "exponential"])
@pytest.mark.parametrize("pairs", ["mean", "sum"])
def test_losses_of_times_and_treatments_have_the_values_of_a_cpu(pair, pairs):
    rng = torch.Generator().manual_seed(1)
    scores, (yes, outcome) = torch.randn(400, generator=rng).double(), torch.randint(0, 2, (2, 400), generator=rng)
    time, weight = torch.randint(1, 60, (400,), generator=rng).double(), torch.rand(400, generator=rng).double()
    concordance, uplift = ConcordanceLoss(pair, pairs=pairs), UpliftLoss(pair, pairs=pairs)
    same_on_both(concordance, 1e-10, scores, time, event=yes, weight=weight, qid=torch.arange(400) // 90)
    same_on_both(uplift, 1e-10, scores, outcome, treatment=yes, weight=weight)
    same_on_both(uplift, 1e-10, scores, time, treatment=yes)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_cox_likelihood_has_the_value_of_a_cpu(ties):
    rng = torch.Generator().manual_seed(2)
    scores, event = torch.randn(400, generator=rng).double(), torch.randint(0, 2, (400,), generator=rng)
    time = torch.randint(1, 60, (400,), generator=rng).double()
    same_on_both(CoxLoss(ties), 1e-10, scores, time, event=event, qid=torch.arange(400) // 90)


@all_losses
def test_mixed_precision_trains(name):
    """Half precision with a scaler: steps are taken, and weights and losses stay finite."""
    torch.manual_seed(0)
    features, net = torch.randn(8, 30, 6, device="cuda"), torch.nn.Linear(6, 1).cuda()
    labels = (features[..., 0] + 0.3 * torch.randn(8, 30, device="cuda") > 0.5).long()
    loss, scaler = parse_loss(name), torch.amp.GradScaler("cuda")
    steps = torch.optim.SGD(net.parameters(), lr=0.05)
    before, values = net.weight.clone(), []
    for _ in range(15):
        steps.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            value = loss(net(features).squeeze(-1), labels)
        scaler.scale(value).backward()
        scaler.step(steps)
        scaler.update()
        values.append(value.item())
    assert np.isfinite(values).all()
    assert net.weight.isfinite().all()
    assert name.startswith("smooth") or not torch.equal(net.weight, before)  # which may be flat for half precision


@pytest.mark.parametrize("name", ["ranknet", "hinge", "list_net", "lambda(statistic=dcg@10)"])
def test_compiled_losses_have_the_same_value(name):
    loss = parse_loss(name)
    scores, labels, _, _ = draw(name, 16, 50, dtype=torch.float32)
    same_on_both(torch.compile(loss), 2e-4, scores, labels)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_metrics_have_the_values_of_a_cpu(name, dtype):
    measure = parse_measure(name)
    scores, labels, _, mask = draw(name, 6, 60, dtype=dtype)
    flat = draw(name, 300, dtype=dtype)
    qid = torch.arange(300) // 9
    for at, options in (((scores, labels), {"mask": mask}), (flat[:2], {"qid": qid})):
        ours = measure(*(x.cuda() for x in at), **{key: value.cuda() for key, value in options.items()})
        assert ours.device.type == "cuda"
        torch.testing.assert_close(ours.cpu(), measure(*at, **options), rtol=1e-12, atol=1e-12, equal_nan=True)


def lists(n=60, per=12, d=5):
    rng = np.random.default_rng(0)
    X, q = rng.normal(size=(n * per, d)), np.repeat(np.arange(n), per)
    y = np.digitize(X[:, 0] - 0.7 * X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n * per), [0.3, 1.2])
    return X, y, q


@pytest.mark.parametrize("loss", ["ranknet", "hinge", "exponential", "p_norm_push(p=2)", "list_net"])
def test_convex_fits_end_at_the_weights_of_a_cpu(loss):
    X, y, q = lists()
    y = (y > 0).astype(int) if loss.startswith(("p_norm", "exponential")) else y
    fit = functools.partial(SurrogateRanker, loss, l2=1e-2, tolerance=1e-8)
    on_gpu, on_cpu = (fit(device=at).fit(X, y, q) for at in ("cuda", "cpu"))
    assert on_gpu.coef_ == pytest.approx(on_cpu.coef_, abs=2e-3)


@pytest.mark.parametrize("scorer", ["mlp", "attention"])
@pytest.mark.parametrize("precision", ["auto", "full"])
def test_networks_learn(scorer, precision, tmp_path):
    X, y, q = lists()
    ranker = SurrogateRanker("ranknet", scorer=scorer, device="cuda", precision=precision).fit(X, y, q)
    assert ranker.score(X, y, q) > SurrogateRanker("ranknet").fit(X, y, q).score(X, y, q)
    ranker.save(path := tmp_path / f"ranker{ranker.file_suffix}")
    scores = ranker.decision_function(X, q)
    assert type(ranker).load(path).decision_function(X, q) == pytest.approx(scores, abs=1e-3)
