"""What holds for every loss on any lists: the table of invariants, each on random lists with ties and extremes."""

import itertools
import math
from unittest import mock

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ltr.losses import RankingLoss, parse_loss, transforms
from ltr.losses.derivatives import derivatives
from ltr.metrics import RankingMetrics
from tests.losses.loss_reference import ALL_PAIRS, CASES, NO_PAIRS, value_and_grad
from tests.losses.test_listwise import NAMES
from tests.tiers import examples, thinned

SUMS = ["ranknet(pairs=sum)", "exponential(pairs=sum)", "p_norm_push(p=2,pairs=sum)"]
LOSSES = [*(case.name for case in CASES), *NAMES, *SUMS]
FORMS = [({"short": RankingLoss.short}, transforms.COMPILED_FOR), (ALL_PAIRS, ()), (NO_PAIRS, ())]

all_losses = pytest.mark.parametrize("name", LOSSES)
many = settings(
    max_examples=examples(5, slow=200), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


def on_random_lists(test):
    """Run a test of each loss, by its name, on data that is drawn."""
    return all_losses(many(given(data=st.data())(test)))


@st.composite
def a_list(draw, name):
    """Scores and labels of up to 6 items, with ties, no two scores 1 apart: the hinge has its kink there."""
    score = (st.integers(-4, 4) | st.integers(-1200, 1200)).map(lambda i: i * 0.0073)
    items = draw(st.lists(st.tuples(score, st.integers(0, 1 if name == "logistic" else 3)), max_size=6))
    scores = torch.tensor([s for s, _ in items], dtype=torch.float64)
    return scores, torch.tensor([y for _, y in items], dtype=torch.int64)


@pytest.fixture
def loss(name):
    """The loss of each list, looked at in a form that changes with each call."""
    found = parse_loss(name)
    found.reduction = "none"
    forms = itertools.cycle(FORMS)

    def values(*args, **kwargs):
        form, compiled_for = next(forms)
        with mock.patch.multiple(RankingLoss, **form), mock.patch.object(transforms, "COMPILED_FOR", compiled_for):
            return found(*args, **kwargs)

    return values


def close(a, b, tolerance=1e-10):
    return torch.allclose(a, b, rtol=tolerance, atol=tolerance)


def gradients_close(name, a, b):
    """Smooth statistics have kinks at whole positions, which ties and symmetric lists reach."""
    return name.startswith("smooth") or close(a, b)


@on_random_lists
def test_padding_and_batch_mates_never_matter(name, loss, data):
    alone = [data.draw(a_list(name)) for _ in range(2)]
    shape = (2, max(len(scores) for scores, _ in alone) + 1)
    scores = torch.full(shape, data.draw(st.sampled_from([math.nan, math.inf, 1e30, 0.0])), dtype=torch.float64)
    labels, mask = torch.full(shape, 7), torch.zeros(shape, dtype=torch.bool)
    for row, (s, y) in enumerate(alone):
        scores[row, : len(s)], labels[row, : len(s)], mask[row, : len(s)] = s, y, True
    values, grads = value_and_grad(loss, scores, labels, mask=mask)
    for one, value, grad, real in zip(alone, values, grads, mask, strict=True):
        own, own_grad = value_and_grad(loss, *one)
        assert close(value, own)
        assert gradients_close(name, grad[real], own_grad)
        assert not grad[~real].any()


@on_random_lists
def test_flat_lists_in_any_order_under_any_ids(name, loss, data):
    alone = [data.draw(a_list(name)) for _ in range(2)]
    ids = data.draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2, unique=True))
    scores, labels = (torch.cat(parts) for parts in zip(*alone, strict=True))
    qid = torch.tensor([one for one, (s, _) in zip(ids, alone, strict=True) for _ in s], dtype=torch.int64)
    order = torch.tensor(data.draw(st.permutations(range(len(qid)))), dtype=torch.int64)
    values, grads = value_and_grad(loss, scores[order], labels[order], qid=qid[order])
    for one, value in zip(dict.fromkeys(qid[order].tolist()), values, strict=True):
        own, own_grad = value_and_grad(loss, *alone[ids.index(one)])
        assert close(value, own)
        if name.startswith("lambda"):  # of two equal items the first stands higher: they may exchange gradients
            own_grad = own_grad.sort().values
            assert close(grads[qid[order] == one].sort().values, own_grad)
        else:
            assert gradients_close(name, torch.empty_like(grads).index_copy(0, order, grads)[qid == one], own_grad)


@on_random_lists
def test_a_weight_of_2_counts_as_the_list_twice_and_0_as_no_list(name, data):
    alone = [data.draw(a_list(name)) for _ in range(3)]
    counts = data.draw(st.lists(st.integers(0, 3), min_size=3, max_size=3))
    lists = torch.arange(3).repeat_interleave(torch.tensor([len(scores) for scores, _ in alone]))
    scores, labels = (torch.cat(parts) for parts in zip(*alone, strict=True))
    of_items = torch.tensor(counts, dtype=torch.float64)[lists]
    order = torch.tensor(data.draw(st.permutations(range(len(lists)))), dtype=torch.int64)
    present = lists.unique()  # a list without items has no id
    copies = [q for q in present.tolist() for _ in range(counts[q])]
    repeated = torch.cat([lists[:0], *((lists == q).nonzero().squeeze(-1) for q in copies)])
    numbers = torch.tensor([at for at, q in enumerate(copies) for _ in alone[q][0]], dtype=torch.int64)
    found = parse_loss(name)
    for reduction in ("mean", "sum", "none"):
        found.reduction = reduction
        flat = scores[order], labels[order]
        value, grad = value_and_grad(found, *flat, qid=lists[order], list_weight=of_items[order])
        expected, of_copies = value_and_grad(found, scores[repeated], labels[repeated], qid=numbers)
        assert close(value.sum(), expected.sum())
        if not name.startswith(("lambda", "smooth")):  # of equal items one stands higher; kinks at whole positions
            own = torch.zeros_like(scores).index_add(0, repeated, of_copies)
            assert close(torch.zeros_like(grad).index_copy(0, order, grad), own)
        length = max(len(scores) for scores, _ in alone) + 1
        padded = [torch.full((3, length), fill, dtype=torch.float64) for fill in (math.nan, 0.0)]
        mask = torch.arange(length) < torch.tensor([len(scores) for scores, _ in alone]).unsqueeze(-1)
        for tensor, values in zip(padded, (scores, labels), strict=True):
            tensor[mask] = values.double()
        whole = found(*padded, mask=mask, list_weight=torch.tensor(counts))
        if len(present) == 3:
            assert close(whole.sum(), expected.sum())
            if reduction == "none":
                assert close(whole[torch.tensor(list(dict.fromkeys(lists[order].tolist())))], value)


BAD_WEIGHTS = [
    (torch.tensor([1.0, 2.0, 3.0]), None, ValueError, r"list_weight must have one weight for each list, \(2,\), got"),
    ([1.0, 2.0], None, TypeError, "list_weight must be a torch tensor, got list"),
    (torch.tensor([1.0, -2.0]), None, ValueError, "list_weight must be finite and nonnegative, got -2"),
    (torch.tensor([1.0, math.nan]), None, ValueError, "list_weight must be finite and nonnegative, got nan"),
    (torch.tensor([1.0, 2.0]), [7, 7, 9, 9], ValueError, r"for each item the weight of its list, \(4,\), got \(2,\)"),
    (torch.tensor([1, 1, 2, 3]), [7, 7, 9, 9], ValueError, "same for all items of a list, got 3 and 2 in list 9"),
]


@pytest.mark.parametrize(("weights", "qid", "error", "message"), BAD_WEIGHTS)
def test_bad_weights_of_lists_are_named(weights, qid, error, message):
    scores, labels = torch.zeros(2, 2), torch.tensor([[1, 0], [1, 0]])
    if qid is not None:
        scores, labels, qid = scores.reshape(-1), labels.reshape(-1), torch.tensor(qid)
    with pytest.raises(error, match=message):
        parse_loss("ranknet")(scores, labels, qid=qid, list_weight=weights)
    if isinstance(weights, list):  # which metrics take
        return
    with pytest.raises(error, match=message):
        RankingMetrics(["mrr"]).update(scores, labels, qid=qid, list_weight=weights)


@on_random_lists
def test_shifts_never_matter_and_gradients_add_up_to_zero(name, loss, data):
    scores, labels = data.draw(a_list(name))
    value, grad = value_and_grad(loss, scores, labels)
    if name == "logistic":
        assert (grad * (2 * labels - 1) < 0).all()  # a loss of items: shifts do matter to it
        return
    assert abs(grad.sum()) <= 1e-10 * (1 + grad.abs().sum())
    shifted, its_grad = value_and_grad(loss, scores + data.draw(st.sampled_from([-64.0, 0.5, 16.0])), labels)
    assert close(shifted, value)
    assert gradients_close(name, its_grad, grad)


@on_random_lists
def test_precision_changes_the_rounding_only(name, loss, data):
    scores, labels = data.draw(a_list(name))
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16]))
    scores = (scores / 4).to(dtype)
    value, grad = value_and_grad(loss, scores, labels)
    exact, exact_grad = value_and_grad(loss, scores.double(), labels)
    assert (value.dtype, grad.dtype) == (torch.float32, dtype)
    assert close(value.double(), exact, 1e-4)
    room = 1e-4 if dtype == torch.float32 else 0.01  # the gradient is rounded to the precision of the scores
    assert name.startswith("smooth") or close(grad.double(), exact_grad, room)


@on_random_lists
def test_lists_that_say_nothing_are_zero(name, loss, data):
    scores, labels = data.draw(a_list(name))
    label = data.draw(st.integers(0, 1))
    value, grad = value_and_grad(loss, scores, torch.full_like(labels, label))
    to_draw = len(scores) > 1 and (name.startswith("list_net") or (name.startswith("softmax") and label))
    if to_draw or (name == "logistic" and len(scores)):
        assert value > 0  # one speaks of items, the others ask equal labels for equal scores
    elif name.startswith("kl"):
        assert (value > 0) == (len(scores.unique()) > 1)
    else:
        assert value == 0
        assert not grad.any()


@on_random_lists
def test_an_item_given_twice_is_one_of_weight_two(name, loss, data):
    scores, labels = data.draw(a_list(name))
    if len(scores) == 0:
        return
    if name.startswith(("lambda", "smooth")):
        with pytest.raises(ValueError, match="weight"):
            loss(scores, labels, weight=torch.ones_like(scores))
        return
    weight = torch.ones_like(scores)
    weight[0] = 2.0
    value, grad = value_and_grad(loss, scores, labels, weight=weight)
    both, both_grad = value_and_grad(loss, torch.cat([scores[:1], scores]), torch.cat([labels[:1], labels]))
    assert close(value, both)
    assert close(grad[1:], both_grad[2:])
    assert close(grad[0], both_grad[:2].sum())


# --- what nearly always is a mistake -----------------------------------------------------------------------------


@on_random_lists
def test_a_teachers_scores_may_be_negative_where_only_their_order_or_differences_matter(name, loss, data):
    scores, labels = data.draw(a_list(name))
    if not parse_loss(name).signed:
        return
    value, grad = value_and_grad(loss, scores, labels)
    shifted, its_grad = value_and_grad(loss, scores, labels.double() - data.draw(st.sampled_from([0.5, 3.0, 1024.0])))
    assert close(shifted, value)
    assert close(its_grad, grad)
    qid = torch.zeros(len(scores), dtype=torch.int64)
    found = derivatives(parse_loss(name), scores, labels, qid)
    for one, other in zip(derivatives(parse_loss(name), scores, labels.double() - 3, qid), found, strict=True):
        assert close(one, other)


@all_losses
def test_a_negative_label_is_refused_but_in_padding(name, loss):
    scores, labels = torch.tensor([0.5, 1.0, -2.0, 3.0], dtype=torch.float64), torch.tensor([1, 0, 0, -1])
    signed = parse_loss(name).signed
    assert signed == (not name.startswith(("logistic", "softmax", "lambda", "smooth")))
    for marked in (labels, labels.to(torch.int8), *([] if signed else [labels.double()])):
        with pytest.raises(ValueError, match=r"labels must be >= 0, got -1: mark padding by mask="):
            loss(scores, marked)
        with pytest.raises(ValueError, match=r"labels must be >= 0, got -1: mark padding by mask="):
            loss(scores, marked, qid=torch.tensor([1, 1, 2, 2]))
        assert close(loss(scores, marked, mask=marked >= 0), loss(scores[:3], marked[:3]))


@all_losses
def test_lists_of_one_item_are_refused_unless_they_are_meant(name, loss):
    scores, labels = torch.randn(2, 4, 1), torch.ones(2, 4, 1)
    with pytest.raises(ValueError, match=r"scores of shape \(2, 4, 1\) are 8 lists of one item.*squeeze\(-1\)"):
        loss(scores, labels)
    meant = [
        loss(scores[0, 0], labels[0, 0]),
        loss(scores[:1, 0], labels[:1, 0]),
        loss(scores, labels, mask=torch.ones(2, 4, 1, dtype=torch.bool)),
        loss(scores.flatten(), labels.flatten(), qid=torch.arange(8)),
        loss(scores.reshape(2, 4), labels.reshape(2, 4), mask=torch.eye(2, 4, dtype=torch.bool)),
    ]
    assert [value.shape for value in meant] == [(), (1,), (2, 4), (8,), (2,)]
    if name != "logistic":  # a loss of items
        assert not any(value.any() for value in meant)


@pytest.mark.parametrize(("name", "form"), thinned(4, LOSSES, ["batch", "list_weight", "flat", "none"]))
def test_scores_beyond_float16_give_nan_and_others_an_error(name, form):
    scores, labels = torch.tensor([[1.0, -2.0, 0.5], [0.0, 1.0, 2.0]]), torch.tensor([[1, 0, 0], [0, 1, 0]])
    loss, options = parse_loss(name), {}
    loss.reduction = "none" if form == "none" else "mean"
    if form == "list_weight":
        options = {"list_weight": torch.tensor([1.0, 3.0])}
    if form == "flat":
        options, scores, labels = {"qid": torch.arange(6) // 3}, scores.reshape(-1), labels.reshape(-1)
    half = scores.half().requires_grad_()
    value = loss(half, labels, **options)
    torch.testing.assert_close(value, loss(scores, labels, **options), rtol=1e-6, atol=0)
    assert torch.autograd.grad(value.sum(), half)[0].isfinite().all()
    for far in (math.inf, -math.inf, math.nan):
        wrong = scores.clone()
        wrong.view(-1)[1] = far
        overflown = wrong.half().requires_grad_()
        value = loss(overflown, labels, **options)
        (grad,) = torch.autograd.grad(value.sum(), overflown)
        assert value.isnan().any()
        assert grad.view(-1)[1].isnan()
        mask = torch.ones_like(labels, dtype=torch.bool)
        mask.view(-1)[1] = False
        value = loss(overflown, labels, mask=mask, **options)  # padding never matters
        assert value.isfinite().all()
        assert torch.autograd.grad(value.sum(), overflown)[0].isfinite().all()
        for dtype in (torch.bfloat16, torch.float32, torch.float64):
            with pytest.raises(ValueError, match="scores must be finite"):
                loss(wrong.to(dtype), labels, **options)
        with torch.autocast("cpu", dtype=torch.float16):  # the last layer may have raised them
            assert loss(wrong, labels, **options).isnan().any()
        with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(ValueError, match="scores must be finite"):
            loss(wrong, labels, **options)
