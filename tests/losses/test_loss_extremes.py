"""What every loss does at the ends of the floating point range: values infinite, gradients finite, nothing ever NaN.

The values are held against the definitions in long double, whose range is larger than that of float64.
"""

import math
from unittest import mock

import numpy as np
import pytest
import torch

from ltr.losses import RankingLoss, SmoothStatisticLoss, parse_loss, transforms
from tests.losses.loss_reference import ALL_PAIRS, CASES, NO_PAIRS, defined, value_and_grad
from tests.losses.test_listwise import NAMES
from tests.tiers import every_second, slow_but

LOSSES = [
    *(case.name for case in CASES),
    *NAMES,
    "logistic(pairs=sum)",
    "ranknet(pairs=sum)",
    "hinge(pairs=sum)",
    "squared_hinge(pairs=sum)",
    "exponential(pairs=sum)",
    "margin_mse(pairs=sum)",
    "p_norm_push(p=2,inner=logistic,pairs=sum)",
    "p_norm_push(p=64)",
    "smooth(statistic=dcg,temperature=0.01)",
    "smooth(statistic=mrr,temperature=1e-5)",
    "lambda(statistic=dcg@2)",
]
FORMS = {
    "compiled": ({"short": RankingLoss.short}, transforms.COMPILED_FOR),
    "all pairs": (ALL_PAIRS, ()),
    "no pairs": (NO_PAIRS, transforms.COMPILED_FOR),
    "no pairs in torch": (NO_PAIRS, ()),
}
RELATIVE = {torch.float32: 2e-5, torch.float64: 1e-9}

OF_ITEMS = ("list", "kl", "logistic", "lambda", "margin_mse")  # which have one form only

all_losses = pytest.mark.parametrize("name", LOSSES)


def forms_and_dtypes():
    """Every loss in all of its forms and dtypes.

    The quick tier has one of the forms of each loss, in turn, in one dtype, in turn as well.
    """
    cases, kept = [], []
    for at, name in enumerate(LOSSES):
        for turn, form in enumerate(["compiled"] if name.startswith(OF_ITEMS) else FORMS):
            both = [(name, form, dtype) for dtype in RELATIVE]
            cases += both
            if (at + turn) % 4 == 0 or name.startswith(OF_ITEMS):
                kept.append(both[(at + turn) // 4 % 2])
    return slow_but(cases, quick=kept)


all_forms = pytest.mark.parametrize(("name", "form", "dtype"), forms_and_dtypes(), ids=str)
needs_range = pytest.mark.skipif(np.finfo(np.longdouble).max <= np.finfo(float).max, reason="no wider float here")


@pytest.fixture(autouse=True)
def in_form(request):
    form = request.node.callspec.params.get("form") if hasattr(request.node, "callspec") else None
    given, compiled_for = FORMS[form or "compiled"]
    with mock.patch.multiple(RankingLoss, **given), mock.patch.object(transforms, "COMPILED_FOR", compiled_for):
        yield


def short_lists(dtype):
    """Six scores each, by name; labels are those of `labels_of`."""
    top, root, least = torch.finfo(dtype).max, math.sqrt(torch.finfo(dtype).max), torch.finfo(dtype).smallest_normal
    lists = {
        "lost by half the range": [-0.45 * top, 0.45 * top, 0.0, 1.1, 0.4, -0.7],
        "won by half the range": [0.45 * top, -0.45 * top, 1.1, 0.0, 0.4, -0.7],
        "beyond the range": [-top, top, 0.0, 1.0, top, -top],
        "won beyond the range": [top, -top, top, -top, top, -top],
        "tied at the end of the range": [top] * 6,
        "tied at its other end": [-0.6 * top] * 6,
        "different at the end of the range": [0.9 * top, 0.8 * top, 0.91 * top, 0.7 * top, top, 0.75 * top],
        "an outlier that is lost": [0.3, 1e6 * root, -0.4, 0.1, 1.5, -2.0],
        "an outlier that is won": [0.3, -1e6 * root, -0.4, 0.1, 1.5, -2.0],
        "outliers on either side": [1e6 * root, -1e6 * root, -0.4, 0.1, 1.5, -2.0],
        "lost and won at once": [-1e6 * root, -1e6 * root, 1e6 * root, 1e6 * root, 0.2, 0.0],
        "on the way to infinity": [-0.9 * root, 0.9 * root, 0.5, 0.0, 0.1, 0.2],
        "denormals": [least / 8, -least / 8, 0.0, least, -least, least / 2],
        "of every size": [1e-3 * top, -1e-20, 1e20, -1e3, 1e-3, -1e-9 * top],
        "all lost": [-2.0, 1e4 * root, -1.3, 1e4 * root, -3.1, 1e4 * root],
        "near each other and far from 0": [1e4 + 0.75, 1e4 + 0.5, 1e4 + 0.875, 1e4, 1e4 + 0.25, 1e4 + 0.375],
        "so far that exponentials overflow": [-1e4, 1e4, 0.0, 1.1, -2e4, 3e4],
    }
    return {key: torch.tensor(values, dtype=torch.float64).to(dtype) for key, values in lists.items()}


def long_list(dtype, outliers, n=150):
    """Ordinary scores far and near, and outliers at the first items, whose labels are 1, 0, 1, 0, ..."""
    scores = torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scores[n // 2 :] *= 60.0  # further apart than what RankNet's bins see of each other
    scores[: len(outliers)] = torch.tensor(outliers, dtype=torch.float64)
    return scores.to(dtype)


def long_lists(dtype):
    top, root = torch.finfo(dtype).max, math.sqrt(torch.finfo(dtype).max)
    lists = {
        "nothing": [],
        "won": [1e6 * root, -1e6 * root],
        "won at the end of the range": [top, -top, top, -top],
        "lost": [-1e6 * root, 1e6 * root],
        "lost, one of them": [0.0, 1e-3 * root],
        "lost beyond the range": [-top, top, -top, top],
        "lost and won": [-1e6 * root, 1e6 * root, 1e6 * root, -1e6 * root],
        "won by little of much": [0.6 * root, -0.7 * root, 0.61 * root, -0.5 * root],
        "tied": [1e6 * root] * 4,
        "far": [-1e15, 1e15, 1e12, -1e12],
    }
    return {key: long_list(dtype, outliers) for key, outliers in lists.items()}


def binary_and_graded(lists):
    """Each list with its name, once with binary and once with graded labels; in the quick tier alternately."""
    cases = [(key, scores, at % 2 != turn) for at, (key, scores) in enumerate(lists.items()) for turn in (0, 1)]
    return every_second(cases)


def labels_of(n, name, graded):
    grades = 3 if graded and not name.startswith("logistic") else 2
    return (torch.arange(n) + 1) % 2 if grades == 2 else (torch.arange(n) * 2 + 1) % 3


def problems(loss, scores, labels, weight=None):
    """What is wrong with value and gradient on one list, in words."""
    dtype, largest = scores.dtype, torch.finfo(scores.dtype).max
    value, grad = value_and_grad(loss, scores, labels, weight=weight)
    expected, slopes, sizes, total = defined(loss.name, scores, labels, weight)
    room = 1e-3
    if math.isnan(value):
        yield "the value is NaN"
    elif expected > 1.01 * largest and value != math.inf:
        yield f"the value is {value.item():g}, not infinite"
    elif math.isinf(value) and total < 0.5 * largest:
        yield f"the value is infinite, not {expected:g}"
    elif not math.isinf(value) and abs(value.item() - expected) > RELATIVE[dtype] * (abs(expected) + room):
        yield f"the value is {value.item():g}, not {expected:g}"
    if not grad.isfinite().all():
        yield f"the gradient is {grad[~grad.isfinite()][0].item()}"
    elif value == math.inf and not (grad.min() < 0 < grad.max() or (type(loss).key == "logistic" and grad.any())):
        yield f"the gradient points nowhere: {grad}"
    elif math.isfinite(value) and slopes is not None and np.isfinite(sizes).all():
        allowed = RELATIVE[dtype] * (sizes + 1e-9 * sizes.max() + float(torch.finfo(dtype).smallest_normal))
        wrong = np.flatnonzero(abs(grad.double().numpy() - np.clip(slopes, -largest, largest)) > allowed)
        if len(wrong):
            yield f"the gradient of item {wrong[0]} is {grad[wrong[0]].item():g}, not {slopes[wrong[0]]:g}"


@needs_range
@all_forms
def test_values_may_be_infinite_and_gradients_are_finite(name, dtype, form):
    loss, found = parse_loss(name), []
    weights = [None, torch.tensor([1.0, 2.0, 0.5, 1.0, 3.0, 1e-3], dtype=dtype)]
    if name.startswith(("lambda", "smooth")):
        weights = weights[:1]
    for key, scores, graded in binary_and_graded(short_lists(dtype)):
        for weight in weights:
            labels = labels_of(6, name, graded)
            case = f"{key}, {'graded' if graded else 'binary'}{', weighted' if weight is not None else ''}"
            found += [f"{case}: {what}" for what in problems(loss, scores, labels, weight)]
    assert not found, "\n".join(found)


@needs_range
@all_forms
def test_long_lists_with_outliers(name, dtype, form):
    loss, found = parse_loss(name), []
    for key, scores, graded in binary_and_graded(long_lists(dtype)):
        labels = labels_of(len(scores), name, graded)
        if graded:
            labels[:4] = torch.tensor([2, 0, 1, 0]) if labels.max() == 2 else labels[:4]
        found += [f"{key}, {'graded' if graded else 'binary'}: {w}" for w in problems(loss, scores, labels)]
    assert not found, "\n".join(found)


@all_forms
def test_second_derivatives_are_never_nan(name, dtype, form):
    loss, found = parse_loss(name), []
    lists = list(short_lists(dtype).items())
    # in the quick tier half of the lists, the others in the other dtype
    for key, scores in every_second(lists if dtype == torch.float32 else [*lists[1:], lists[0]]):
        scores = scores.clone().requires_grad_()
        value = loss(scores, labels_of(6, name, True))
        (grad,) = torch.autograd.grad(value, scores, create_graph=True)
        if grad.requires_grad:
            (second,) = torch.autograd.grad((grad / grad.detach().abs().max().clamp(min=1)).sum(), scores)
            found += [key] if second.isnan().any() or grad.isnan().any() else []
    assert not found


@all_forms
def test_padding_and_ids_change_nothing_at_the_ends_of_the_range(name, dtype, form):
    loss = parse_loss(name)
    loss.reduction = "none"
    lists = list(short_lists(dtype).values())
    labels = labels_of(6, name, True)
    alone = torch.stack([loss(scores, labels) for scores in lists])
    scores = torch.nn.functional.pad(torch.stack(lists), (0, 3), value=math.nan)
    mask = (torch.arange(9) < 6).expand(len(lists), 9)
    padded, grad = value_and_grad(
        loss, scores, torch.nn.functional.pad(labels, (0, 3), value=-1).expand(mask.shape), mask=mask
    )
    flat, flat_grad = value_and_grad(
        loss, torch.cat(lists), labels.repeat(len(lists)), qid=torch.arange(len(lists)).repeat_interleave(6)
    )
    for values in (padded, flat):
        torch.testing.assert_close(values, alone, rtol=1e-5, atol=1e-12)
    assert grad.isfinite().all()
    assert flat_grad.isfinite().all()
    assert not grad[~mask].any()


@all_forms
def test_weights_of_any_size_give_no_nan(name, dtype, form):
    loss = parse_loss(name)
    if name.startswith(("lambda", "smooth")):
        return
    top, least = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal / 4
    scores = {"ordinary": torch.tensor([2.0, 0.0, -1.0, 0.5, 9.0, -9.0], dtype=dtype), **short_lists(dtype)}
    found = []
    sizes = [[top] * 6, [least] * 6, [top, least, 1.0, 0.0, least, top], [1.0, 1.0, least, least, top, 0.0]]
    # both orders of the sizes in turn, so that the quick tier has all of them
    cases = [(key, s, w) for at, (key, s) in enumerate(scores.items()) for w in sizes[at % 2 :] + sizes[: at % 2]]
    for key, s, weights in every_second(cases):
        value, grad = value_and_grad(
            loss, s, labels_of(6, name, True), weight=torch.tensor(weights, dtype=torch.float64).to(dtype)
        )
        if value.isnan() or not grad.isfinite().all():
            found.append(f"{key}, weights {weights[:2]}: {value.item()}, {grad.tolist()}")
    assert not found, "\n".join(found)


def test_the_temperature_may_leave_no_room_for_the_scores():
    scores = torch.tensor([-1e307, 1e307, 1.5e307, 0.0, 0.002], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 0, 1])
    value, grad = value_and_grad(SmoothStatisticLoss(temperature=0.001), scores, labels)
    # positions 0 of the item on top, and 2 + sigmoid(-2) of the last one, between 1/2 and 1/log2(5)
    position = 2 + 1 / (1 + math.exp(2))
    line = 0.5 + (position - 2) * (1 / math.log2(5) - 0.5)
    assert value.item() == pytest.approx(1 - (1 + line) / (1 + 1 / math.log2(3)), rel=1e-12)
    assert grad[3] == pytest.approx(-grad[4].item())
    assert grad[3] > 0
