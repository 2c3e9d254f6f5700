"""Losses of long lists, in the form that looks at no pairs, against the pairs."""

import math

import pytest
import torch
from torch.nn import functional as F

from ltr import losses, metrics, torch_hooks
from ltr.losses.functions import HINGE, LOGISTIC, SQUARED_HINGE
from ltr.losses.transforms import TwoClasses, pair_sums
from tests.losses.loss_reference import ALL_PAIRS, CASES, NO_PAIRS, set_form
from tests.losses.test_listwise import NAMES
from tests.tiers import examples, slow_but

FUNCTIONS = {
    "hinge": (HINGE, lambda z: F.relu(1 - z)),
    "squared hinge": (SQUARED_HINGE, lambda z: F.relu(1 - z).square()),
    "logistic": (LOGISTIC, lambda z: -F.logsigmoid(z)),
}
functions = pytest.mark.parametrize("name", FUNCTIONS)
PAIR_LOSSES = [
    "ranknet",
    "hinge",
    "squared_hinge",
    "exponential",
    "p_norm_push(p=2)",
    "p_norm_push(p=3,inner=logistic)",
]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def two_class_lists(seed=0, shape=(3, 120), spread=1.0, ties=False):
    random = generator(seed)
    scores = torch.randn(shape, dtype=torch.float64, generator=random) * spread
    if ties:
        scores = scores.round()
    weight = torch.rand(shape, dtype=torch.float64, generator=random)
    weight[..., ::7] = 0.0
    upper = torch.rand(shape, generator=random) < 0.4
    return TwoClasses(scores.requires_grad_(), weight * upper, weight * ~upper)


def all_pairs(pair_function, two):
    z = two.scores.unsqueeze(-1) - two.scores.unsqueeze(-2)
    return (two.upper.unsqueeze(-1) * two.lower.unsqueeze(-2) * pair_function(z)).sum((-2, -1))


def close(actual, expected, tolerance=1e-13):
    """Relative to the largest entry."""
    size = max(float(expected.detach().abs().max()), 1e-300) if expected.numel() else 1.0
    torch.testing.assert_close(actual / size, expected / size, rtol=0.0, atol=tolerance)


# --- transforms --------------------------------------------------------------------------------------------------


@functions
@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 30.0, 1e4, 1e9])
@pytest.mark.parametrize("ties", [False, True])
def test_sums_and_their_derivatives_equal_those_over_all_pairs(name, spread, ties):
    function, pair_function = FUNCTIONS[name]
    two = two_class_lists(spread=spread, ties=ties)
    direction = torch.randn(two.scores.shape, dtype=torch.float64, generator=generator(1))
    found, expected = [], []
    for results, sums in ((found, pair_sums(function.plan, two)), (expected, all_pairs(pair_function, two))):
        (slope,) = torch.autograd.grad(sums.sum(), two.scores, create_graph=True)
        results += [sums, slope]
        if name != "hinge":  # flat on both sides
            results += torch.autograd.grad((slope * direction).sum(), two.scores)
    at_a_kink = ties and name in ("hinge", "squared hinge")  # where derivatives are those of either side
    for actual, exact in zip(found[:1] if at_a_kink else found, expected, strict=False):
        close(actual, exact, 1e-12)


def test_the_path_of_other_devices_is_the_same(monkeypatch):
    from ltr.losses import transforms

    two = two_class_lists(8, (3, 500), spread=5.0)
    compiled = pair_sums(LOGISTIC.plan, two)
    (slope,) = torch.autograd.grad(compiled.sum(), two.scores)
    monkeypatch.setattr(transforms, "COMPILED_FOR", ())
    monkeypatch.setattr(transforms, "_CHUNK", 128)
    monkeypatch.setattr(transforms, "add_moments", None)
    monkeypatch.setattr(transforms, "interpolate", None)
    plain = pair_sums(LOGISTIC.plan, two)
    close(plain, compiled)
    close(torch.autograd.grad(plain.sum(), two.scores)[0], slope)


@pytest.mark.parametrize("name", PAIR_LOSSES)
def test_ragged_lists_of_very_different_lengths(name):
    """Padded to the longest, these 2,001 lists would take 40 million items."""
    sizes = torch.cat([torch.tensor([20_000]), torch.full((2_000,), 3)])
    qid = torch.repeat_interleave(torch.arange(2_001), sizes)
    random = generator(9)
    scores = torch.randn(len(qid), dtype=torch.float64, generator=random)
    labels = torch.randint(0, 3, (len(qid),), generator=random)
    loss = losses.parse_loss(name)
    loss.reduction = "none"
    values = loss(scores, labels, qid=qid)
    torch.testing.assert_close(values[0], loss(scores[:20_000], labels[:20_000]))
    torch.testing.assert_close(values[1:], loss(scores[20_000:].reshape(-1, 3), labels[20_000:].reshape(-1, 3)))


# --- losses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIR_LOSSES)
@pytest.mark.parametrize(("grades", "spread"), [(2, 1.0), (5, 1.0), (40, 1.0), (2, 25.0)])
def test_a_long_list_equals_its_pairs(name, grades, spread, monkeypatch):
    random = generator(grades)
    scores = torch.randn(3_000, dtype=torch.float64, generator=random) * spread
    labels = torch.randint(0, grades, (3_000,), generator=random)
    loss = losses.parse_loss(name)
    results = []
    for form in (NO_PAIRS, ALL_PAIRS):
        set_form(monkeypatch, form)
        given = scores.clone().requires_grad_()
        value = loss(given, labels)
        results.append((value.detach(), *torch.autograd.grad(value, given)))
    (value, slope), (exact, exact_slope) = results
    assert math.isfinite(exact)
    assert abs(value - exact) <= 1e-12 * abs(exact)
    assert (slope - exact_slope).abs().max() <= 1e-10 * exact_slope.abs().max()


@pytest.mark.parametrize(
    ("name", "form"),
    slow_but(
        [(name, form) for name in PAIR_LOSSES for form in ("as it comes", "no pairs", "all pairs")],
        quick=[("ranknet", "as it comes"), ("exponential", "no pairs"), ("p_norm_push(p=2)", "all pairs")],
    ),
)
def test_function_transforms_and_compilers(name, form, monkeypatch):
    set_form(monkeypatch, {"as it comes": {}, "no pairs": NO_PAIRS, "all pairs": ALL_PAIRS}[form])
    random = generator(2)
    scores = torch.randn(40, dtype=torch.float64, generator=random)
    labels = torch.randint(0, 3, (40,), generator=random)
    qid = torch.randint(-2, 2, (40,), generator=random)
    loss = losses.parse_loss(name)
    given = scores.clone().requires_grad_()
    value = loss(given, labels)
    (slope,) = torch.autograd.grad(value, given)
    close(torch.func.grad(lambda s: loss(s, labels))(scores), slope)
    (by_list,) = torch.autograd.grad(loss(given, labels, qid=qid), given)
    close(torch.func.grad(lambda s: loss(s, labels, qid=qid))(scores), by_list)
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="eager")(given, labels)
    close(compiled, value)
    close(torch.autograd.grad(compiled, given)[0], slope)


def test_vmap_is_refused():
    scores, labels = torch.randn(2, 4), torch.tensor([1, 0, 0, 1])
    for function in (losses.parse_loss("ranknet"), metrics.ndcg):
        with pytest.raises(TypeError, match=r"must be plain tensors, got lanes under torch\.func\.vmap; use leading"):
            torch.func.vmap(function, in_dims=(0, None))(scores, labels)
        with pytest.raises(TypeError, match=r"must be plain tensors, got lanes under torch\.func\.vmap; use leading"):
            torch.func.vmap(lambda y, function=function: function(scores[0], y))(labels.expand(2, 4))


def test_a_torch_without_the_private_names_gives_the_same_losses(monkeypatch):
    random = generator(4)
    scores = torch.randn(40, dtype=torch.float64, generator=random, requires_grad=True)
    labels, qid = torch.randint(0, 3, (2, 40), generator=random)
    loss = losses.parse_loss("ranknet")

    def found():
        value = loss(scores, labels, qid=qid)
        return value, *torch.autograd.grad(value, scores)

    expected = found()
    assert torch_hooks._private("peek_interpreter_stack", lambda: "unknown")() is None
    monkeypatch.delattr(torch._C, "_functorch")
    names = {"_innermost": "peek_interpreter_stack", "is_batch_of_gradients": "is_legacy_batchedtensor"}
    for own, name in names.items():
        monkeypatch.setattr(torch_hooks, own, torch_hooks._private(name, lambda *_: True))
    assert torch_hooks.is_transformed()
    for value, wanted in zip(found(), expected, strict=True):
        close(value, wanted)


COMPILED = [(case, reduction) for case in [*(case.name for case in CASES), *NAMES] for reduction in ("mean", "none")]


@pytest.mark.parametrize(("name", "reduction"), slow_but(COMPILED, COMPILED[::9]))
def test_a_compiled_graph_is_never_broken(name, reduction):
    """What docs/losses.md says of torch.compile: every built-in loss of any length is one operator."""
    random, loss = generator(), losses.parse_loss(name)
    loss.reduction = reduction
    # in the quick tier one of the lengths, in another turn than the reductions
    turn = COMPILED.index((name, reduction)) // 4 % 2
    for n in examples([(8, 700)[turn]], slow=[8, 700]):
        scores = torch.randn(3, n, dtype=torch.float64, generator=random).requires_grad_()
        labels = torch.randint(0, 2, scores.shape, generator=random)
        mask = torch.rand(scores.shape, generator=random) < 0.8
        torch._dynamo.reset()
        compiled = torch.compile(lambda s, y, m: 3.0 * loss(2.0 * s, y, mask=m), backend="aot_eager", fullgraph=True)
        found, expected = compiled(scores, labels, mask), 3.0 * loss(2.0 * scores, labels, mask=mask)
        close(found, expected)
        close(*(torch.autograd.grad(value.sum(), scores)[0] for value in (found, expected)))
        with pytest.raises(ValueError, match="scores must be finite"):
            compiled(scores / 0.0, labels, mask)
    torch._dynamo.reset()


def test_the_operator_is_a_proper_one():
    random = generator()
    scores = torch.randn(12, dtype=torch.float64, generator=random).requires_grad_()
    labels, qid = torch.arange(12) % 3, torch.arange(12) // 5
    for reduction in ("mean", "sum", "none"):
        for ids, shape in ((None, (3, 4)), (qid, (12,))):
            given = scores.detach().reshape(shape).requires_grad_(), labels.reshape(shape), None, None, ids
            torch.library.opcheck(torch.ops.ltr.list_loss.default, (*given, "ranknet", reduction))


def test_changed_options_are_noticed_by_a_compiled_loss():
    scores, labels = torch.randn(3, 8, generator=generator()), torch.arange(24).reshape(3, 8) % 2
    loss = losses.parse_loss("p_norm_push(p=2)")
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="eager", fullgraph=True)
    for name, value in (("p", 3.0), ("pairs", "sum"), ("reduction", "none")):
        close(compiled(scores, labels), loss(scores, labels))
        setattr(loss, name, value)
    close(compiled(scores, labels), loss(scores, labels))
    torch._dynamo.reset()


@pytest.mark.parametrize("n", [6, 700])
@pytest.mark.parametrize("name", ["ranknet", "hinge", "smooth", "list_net", "list_mle", "lambda", "logistic"])
def test_forward_mode_derivatives(name, n):
    """What docs/losses.md says of them."""
    scores, tangent = torch.randn(2, n, dtype=torch.float64, generator=generator())
    labels = torch.arange(n) % 2
    loss = losses.parse_loss(name)

    def value(given):
        return loss(given, labels)

    if n > 128 and name in ("ranknet", "hinge", "smooth"):
        loss.few = 0  # of which the sums need no pairs
        with pytest.raises(NotImplementedError, match="jvp"):
            torch.func.jvp(value, (scores,), (tangent,))
        return
    found = torch.func.jvp(value, (scores,), (tangent,))[1]
    torch.testing.assert_close(found, (torch.func.grad(value)(scores) * tangent).sum())
