"""A loss defined outside the package, used wherever a built-in one is."""

import re
import sys

import numpy as np
import pytest
import torch

from ltr.convex import certified_optimum
from ltr.exact import Limits
from ltr.losses import PairwiseLoss, RankNetLoss, parse_loss
from ltr.rankers import ExactRanker, SurrogateRanker, TwoStageRanker
from tests.losses.loss_reference import ALL_PAIRS, NO_PAIRS, set_form
from trainers.config import parse_config
from trainers.config.errors import ConfigError

PLAIN = '''
import torch

from ltr.losses import PairwiseLoss, RankNetLoss


class Soft(PairwiseLoss):
    """The logistic loss of score differences in units of a width: nothing but its formula."""

    convex = True

    def __init__(self, *, width: float = 1.0, **options):
        super().__init__(**options)
        if not width > 0:
            raise ValueError(f"width must be > 0, got {width}")
        self.width = width

    def pair_function(self, z):
        return -torch.nn.functional.logsigmoid(z / self.width)


class Kinked(RankNetLoss):
    """A subclass of a built-in loss with another formula."""

    def pair_function(self, z):
        return torch.relu(-z)


class Forgetful(PairwiseLoss):
    def __init__(self, *, width=1.0, **options):
        super().__init__(**options)


class Empty(PairwiseLoss):
    """No formula at all."""


class Demanding(PairwiseLoss):
    def __init__(self, width):
        super().__init__()
        self.width = width


def function(scores, labels):
    return scores.sum()
'''
FULL = '''
import torch

from ltr.losses import PairFunction, PairwiseLoss
from ltr.losses.functions import LOGISTIC
from ltr.losses.transforms import BinnedPlan


class Twice(PairFunction):
    """Twice the logistic function, with all that a pair function may bring."""

    steepest = 2.0

    def __call__(self, z):
        return -2 * torch.nn.functional.logsigmoid(z)

    def conjugate(self, a):
        return 2 * (torch.xlogy(a / 2, a / 2) + torch.xlogy(1 - a / 2, 1 - a / 2))

    def plan(self, two):
        return Doubled(BinnedPlan(LOGISTIC.derivative, two))


class Doubled:
    def __init__(self, plan):
        self.plan = plan

    def apply(self, charges, order, up):
        return 2 * self.plan.apply(charges, order, up)


class FullLoss(PairwiseLoss):
    convex = True
    function = Twice()
'''


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder on the path with modules of the user's."""
    for name, text in {"plain_losses": PLAIN, "full_losses": FULL, "failing_losses": "1 / 0"}.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def draw(n=120, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ np.linspace(1, 2, d) + 2 * rng.normal(size=n) > 0).astype(int)


def test_a_formula_trains_a_linear_ranker(own):
    X, y = draw()
    ranker = SurrogateRanker(parse_loss("plain_losses:Soft(width=1)")).fit(X, y)
    np.testing.assert_allclose(ranker.coef_, SurrogateRanker("ranknet").fit(X, y).coef_, rtol=1e-5)
    wide = SurrogateRanker("plain_losses:Soft(width=4)", l2=1e-8).fit(X, y)
    sharp = SurrogateRanker("plain_losses:Soft", l2=1e-8).fit(X, y)
    np.testing.assert_allclose(wide.coef_, 4 * sharp.coef_, rtol=1e-3)  # the width is the unit of the scores


def test_a_formula_is_a_base_of_two_stages_that_is_saved_and_loaded(own, monkeypatch):
    X, y = draw(60)
    ranker = TwoStageRanker(
        "plain_losses:Soft(width=2)", ExactRanker(limits=Limits(time_limit=1.0)), top_k=20, choose=False
    ).fit(X, y)
    assert ranker.base_.loss == "plain_losses:Soft(width=2)"
    ranker.save(own / "model.pt")
    monkeypatch.setitem(sys.modules, "plain_losses", None)  # reading a model imports nothing
    again = TwoStageRanker.load(own / "model.pt")
    assert again.base_.loss == ranker.base_.loss
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))


def test_a_loss_without_an_import_path_trains_and_is_saved():
    class Local(PairwiseLoss):
        convex = True

        def pair_function(self, z):
            return torch.exp(-z)

    X, y = draw()
    ranker = SurrogateRanker(Local()).fit(X, y)
    np.testing.assert_allclose(ranker.coef_, SurrogateRanker("exponential").fit(X, y).coef_, rtol=1e-5)
    again = SurrogateRanker.from_state(ranker.to_state())
    np.testing.assert_array_equal(again.decision_function(X), ranker.decision_function(X))
    with pytest.raises(ValueError, match=r"loss .*Local"):
        again.fit(X, y)


@pytest.mark.parametrize("form", [{}, NO_PAIRS, ALL_PAIRS], ids=["as it comes", "no pairs", "all pairs"])
@pytest.mark.parametrize("grades", [2, 4])
def test_a_pair_function_with_everything_runs_in_every_form(own, form, grades, monkeypatch):
    set_form(monkeypatch, form)
    loss, ranknet = parse_loss("full_losses:FullLoss"), RankNetLoss()
    random = torch.Generator().manual_seed(grades)
    for n in (9, 900):
        scores = torch.randn(n, dtype=torch.float64, generator=random).requires_grad_()
        labels = torch.randint(0, grades, (n,), generator=random)
        value, expected = loss(scores, labels), 2 * ranknet(scores, labels)
        torch.testing.assert_close(value, expected, rtol=1e-13, atol=0)
        (slope,), (exact,) = (torch.autograd.grad(v, scores) for v in (value, expected))
        torch.testing.assert_close(slope, exact, rtol=1e-10, atol=1e-15)
    assert loss.near_linear


def test_a_pair_function_with_a_conjugate_has_a_certified_optimum(own):
    X, y = draw()
    best, reference = (
        certified_optimum("full_losses:FullLoss", X, y, l2=0.2),
        certified_optimum("ranknet", X, y, l2=0.1),
    )
    assert best.gap < 1e-12
    assert best.value == pytest.approx(2 * reference.value, rel=1e-12)
    np.testing.assert_allclose(best.weights, reference.weights, rtol=1e-6)
    with pytest.raises(ValueError, match=r"no convex optimum is known for plain_losses:Soft; .* has a conjugate"):
        certified_optimum("plain_losses:Soft", X, y)


def test_a_subclass_of_a_built_in_loss_is_itself(own):
    kinked = parse_loss("plain_losses:Kinked(pairs=sum)")
    assert (str(kinked), kinked.function) == ("plain_losses:Kinked(pairs=sum)", None)
    for n in (4, 400):  # neither the kernel nor the sums of its base class
        scores, labels = torch.arange(float(n)), torch.arange(n) == 0
        assert kinked(scores, labels) == n * (n - 1) / 2
    assert SurrogateRanker(kinked).loss is kinked


def test_options_are_spelled_out_and_read_back(own):
    loss = parse_loss(" plain_losses:Soft( width = 2.50, pairs = sum )")
    assert str(loss) == "plain_losses:Soft(width=2.5,pairs=sum)"
    assert str(parse_loss(str(loss))) == str(loss)
    assert str(parse_loss("plain_losses:Soft(width=1)")) == "plain_losses:Soft"
    with pytest.raises(TypeError, match=r"Forgetful must keep its option 'width' as the attribute self\.width"):
        str(parse_loss("plain_losses:Forgetful"))
    with pytest.raises(TypeError, match="Empty must define pair_function"):
        parse_loss("plain_losses:Empty")(torch.zeros(2), torch.tensor([0, 1]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere_at_all:Loss", "No module named 'nowhere_at_all'; install it, or put its folder on PYTHONPATH"),
        ("failing_losses:Loss", "importing failing_losses failed: ZeroDivisionError: division by zero"),
        ("plain_losses:Nothing", "module 'plain_losses' has no 'Nothing'"),
        ("plain_losses:function", "must be a subclass of ltr.losses.RankingLoss, got <function function"),
        ("ltr.losses:RankingLoss", "is abstract: define list_values"),
        ("plain_losses:Demanding", "missing 1 required positional argument: 'width'"),
        ("plain_losses:Soft(width=-1)", "width must be > 0, got -1"),
        ("plain_losses:Soft(height=1)", "takes width=..., reduction=..., pairs=..., each once, got 'height=1'"),
        ("plain_losses", "unknown name 'plain_losses'; known are ranknet"),
    ],
)
def test_what_is_wrong_with_an_import_path_is_said(own, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        parse_loss(text)
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse_config({"name": "own", "data": {"name": "gaussians"}, "surrogate": {"losses": [text]}})
