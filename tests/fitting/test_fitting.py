"""Fits: optima, certificates, exact resumption, interruptions, mini-batches."""

import functools
import io
import itertools

import numpy as np
import pytest
import torch
from torch import nn

from ltr.fitting import Fit, FitOptions
from ltr.fitting.observations import item_batches
from ltr.fitting.scoring import SeededDropout
from ltr.fitting.smoothing import HingePairs, SmoothedHinge
from ltr.losses import PairwiseHingeLoss, RankNetLoss, parse_loss
from ltr.rankers.scorers import LinearScorer, MLPScorer
from tests.tiers import thinned

LOSSES = [
    "ranknet",
    "hinge",
    "squared_hinge",
    "exponential",
    "logistic",
    "p_norm_push(p=2)",
    "p_norm_push(p=4,inner=logistic)",
]


def problem(n=120, d=4, seed=0, noise=2.0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) @ generator.normal(size=(d, d))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X @ generator.normal(size=d) + noise * generator.normal(size=n) > 0.5
    return X, y.astype(int)


def queries(sizes=(7, 6, 5, 3, 3, 1, 1, 1, 2), d=3, seed=0):
    """Graded lists of the sizes given, rows in random order."""
    generator = np.random.default_rng(seed)
    qid = np.repeat(generator.permutation(len(sizes)) * 7, sizes)
    X = generator.normal(size=(len(qid), d))
    y = np.clip(np.round(X[:, 0] + generator.normal(size=len(qid)) + 1), 0, 3)
    order = generator.permutation(len(qid))
    return X[order], y[order], qid[order]


def mlp(d, hidden=(8,), dropout=0.0):
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        return MLPScorer(d, hidden, dropout)


def flat(scorer):
    return torch.cat([p.detach().reshape(-1) for p in scorer.parameters()])


# optima and certificates


@pytest.mark.parametrize("l2", [1e-2, 1e-4])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_linear_fit_closes_its_gap(loss, l2):
    X, y = problem()
    fit = Fit(LinearScorer(4), parse_loss(loss), X, y, FitOptions(l2=l2))
    *_, last = fit
    assert fit.stopped == "tolerance"
    assert last.gap <= 1e-8 * last.objective
    assert last.index == fit.index <= 150


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "logistic"])
def test_the_gap_bounds_the_distance_to_the_optimum_at_every_step(loss):
    X, y = problem(60, 3)
    steps = list(Fit(LinearScorer(3), parse_loss(loss), X, y, FitOptions(l2=1e-3, tolerance=1e-11)))
    optimum = min(step.objective for step in steps)
    assert all(step.objective - optimum <= step.gap * (1 + 1e-9) + 1e-13 for step in steps)


def test_the_objective_is_the_loss_plus_the_penalty_of_weights_but_not_of_biases():
    X, y = problem()
    scorer = mlp(4)
    scorer.output.bias.data.fill_(100.0)
    fit = Fit(scorer, RankNetLoss(), X, y, FitOptions(l2=0.5, max_steps=1))
    (step,) = fit
    squares = sum(float((p**2).sum().detach()) for name, p in scorer.named_parameters() if not name.endswith("bias"))
    assert step.objective == pytest.approx(step.loss + 0.25 * squares, rel=1e-12)
    with torch.no_grad():
        assert step.loss == pytest.approx(float(RankNetLoss()(scorer(torch.from_numpy(X)), torch.from_numpy(y))))


def test_a_step_is_an_iteration_of_one_long_call():
    X, y = problem()
    scorer, count = LinearScorer(4), 9
    fit = Fit(scorer, RankNetLoss(), X, y, FitOptions(l2=1e-4, tolerance=1e-300))
    list(itertools.islice(fit, count))

    reference = LinearScorer(4)
    parameters = list(reference.parameters())
    features, labels, scale = torch.from_numpy(X), torch.from_numpy(y).double(), 2.0**30

    def closure():
        objective = RankNetLoss()(reference(features), labels) + 1e-4 / 2 * (reference.weight**2).sum()
        for parameter, grad in zip(parameters, torch.autograd.grad(objective, parameters), strict=True):
            parameter.grad = grad * scale
        return objective.detach() * scale

    options = {"max_iter": count, "max_eval": 10_000, "history_size": 50, "line_search_fn": "strong_wolfe"}
    torch.optim.LBFGS(parameters, tolerance_grad=0, tolerance_change=0, **options).step(closure)
    assert torch.equal(flat(scorer), flat(reference))


@pytest.mark.parametrize("factor", [1e-7, 1e7])
def test_no_absolute_tolerance_stops_a_fit(factor):
    class Scaled(nn.Module):
        def forward(self, scores, labels):
            return factor * RankNetLoss()(scores, labels)

    X, y = problem()
    plain, scaled = LinearScorer(4), LinearScorer(4)
    Fit(plain, RankNetLoss(), X, y, FitOptions(l2=1e-3, tolerance=1e-10)).run()
    fit = Fit(scaled, Scaled(), X, y, FitOptions(l2=1e-3 * factor, tolerance=1e-10))
    fit.run()
    assert fit.stopped == "tolerance"
    torch.testing.assert_close(scaled.weight, plain.weight, rtol=1e-4, atol=1e-5)


def test_a_separable_problem_without_a_penalty_ends():
    fit = Fit(LinearScorer(1), PairwiseHingeLoss(), [[0.0], [1.0], [2.0]], [0, 0, 1], FitOptions(l2=0.0))
    fit.run()
    assert fit.best_objective == 0
    assert fit.converged


def test_exponential_overflow_within_a_line_search_is_survived():
    X, y = problem()
    fit = Fit(LinearScorer(4), parse_loss("exponential"), 1e4 * X, y, FitOptions(l2=1e-4, max_steps=200))
    *_, last = fit
    assert np.isfinite(last.objective)
    assert last.objective < 1


@pytest.mark.parametrize("loss", ["ranknet", "hinge", "p_norm_push(p=2)"])
def test_lists_are_fitted_as_the_mean_over_lists(loss):
    X, y, qid = queries()
    scorer = LinearScorer(3)
    fit = Fit(scorer, parse_loss(loss), X, y, FitOptions(l2=1e-2), qid=qid)
    *_, last = fit
    assert fit.stopped == "tolerance"
    with torch.no_grad():
        scores = scorer(torch.from_numpy(X))
    values = [parse_loss(loss)(scores[qid == q], torch.from_numpy(y[qid == q])).item() for q in np.unique(qid)]
    assert last.loss == pytest.approx(np.mean(values), rel=1e-12)


# seeds, resumption, interruption


def small_fit(case, max_steps=12):
    X, y = problem(60)
    if case == "lists":
        X, y, qid = queries()
        options = FitOptions("adam", max_steps=max_steps, batch_size=2, seed=5)
        return Fit(mlp(3), RankNetLoss(), X, y, options, qid=qid)
    if case == "adam":
        options = FitOptions("adam", max_steps=max_steps, batch_size=16, seed=5)
        return Fit(mlp(4, dropout=0.2), RankNetLoss(), X, y, options)
    options = FitOptions(max_steps=max_steps, tolerance=1e-14)
    return Fit(
        mlp(4) if case == "mlp" else LinearScorer(4), parse_loss("ranknet" if case == "mlp" else case), X, y, options
    )


CASES = ["ranknet", "hinge", "logistic", "mlp", "adam", "lists"]


@functools.cache
def whole_fit(case):
    """A fit that ran to its end, and its steps."""
    fit = small_fit(case)
    return fit, list(fit)


def known(step):
    return (step.index, step.objective, step.loss, step.grad_norm, step.gap, step.width)


@pytest.mark.parametrize(("case", "after"), thinned(3, CASES, [1, 4, 11]))
def test_a_resumed_fit_equals_the_uninterrupted_one_bit_for_bit(case, after):
    whole, steps = whole_fit(case)
    first = small_fit(case)
    head = list(itertools.islice(first, after))
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    list(itertools.islice(first, 1))  # going on changes nothing in the state that was taken
    torch.manual_seed(after)
    file.seek(0)
    second = small_fit(case)
    second.load_state_dict(torch.load(file, weights_only=True))
    tail = list(second)
    assert [known(s) for s in head + tail] == [known(s) for s in steps]
    assert torch.equal(flat(second.scorer), flat(whole.scorer))
    assert (second.best_index, second.best_objective) == (whole.best_index, whole.best_objective)
    assert all(torch.equal(second.best[name], whole.best[name]) for name in whole.best)
    assert second.stopped == whole.stopped
    assert tail[0].seconds >= head[-1].seconds


@pytest.mark.parametrize(("case", "call"), thinned(3, CASES, [3, 8, 12]))
def test_an_interrupted_step_leaves_the_fit_where_it_was(case, call):
    whole, _ = whole_fit(case)
    fit, calls = small_fit(case), 0

    def interrupt(module, inputs):
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt

    hook = fit.scorer.register_forward_pre_hook(interrupt)
    steps = []
    with pytest.raises(KeyboardInterrupt):
        steps.extend(fit)
    hook.remove()
    assert fit.index < whole.index
    assert not fit.stopped
    assert fit.best_index <= fit.index
    assert all(p.isfinite().all() for p in fit.best.values())
    fit.run()
    assert torch.equal(flat(fit.scorer), flat(whole.scorer))
    assert fit.best_objective == whole.best_objective


def test_a_state_of_other_options_is_refused():
    X, y = problem(30)
    state = Fit(LinearScorer(4), RankNetLoss(), X, y, FitOptions(l2=1e-3)).state_dict()
    fit = Fit(LinearScorer(4), RankNetLoss(), X, y, FitOptions(l2=1e-2))
    with pytest.raises(ValueError, match=r"state must come from a fit with l2 0.01, got 0.001"):
        fit.load_state_dict(state)
    with pytest.raises(ValueError, match=r"state must come from a fit of hinge, got one of ranknet"):
        Fit(LinearScorer(4), PairwiseHingeLoss(), X, y, FitOptions(l2=1e-3)).load_state_dict(state)


def test_the_seed_decides_the_batches_and_leaves_the_global_generator_alone():
    X, y = problem(60)

    def weights(seed):
        scorer = mlp(4, dropout=0.3)
        Fit(scorer, RankNetLoss(), X, y, FitOptions("adam", max_steps=3, batch_size=16, seed=seed)).run()
        return flat(scorer)

    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    first = weights(1)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(3)
    assert torch.equal(weights(1), first)
    assert not torch.equal(weights(2), first)


# best state and divergence


def test_the_best_state_is_the_lowest_objective_so_far_not_the_last():
    X, y = problem(60)
    options = FitOptions("adam", learning_rate=3.0, max_steps=12, batch_size=10, seed=1)
    fit = Fit(LinearScorer(4), RankNetLoss(), X, y, options)
    start = fit.best_objective
    assert fit.best_index == 0
    steps = list(fit)
    objectives = [start] + [step.objective for step in steps]
    assert fit.best_objective == min(objectives)
    assert fit.best_index == int(np.argmin(objectives)) < len(steps)
    fit.load_best()
    with torch.no_grad():
        loss = RankNetLoss()(fit.scorer(torch.from_numpy(X)), torch.from_numpy(y))
        assert float(loss + 5e-5 * (fit.scorer.weight**2).sum()) == pytest.approx(fit.best_objective, rel=1e-12)


def test_divergence_names_the_step_and_keeps_the_best_state():
    X, y = problem(60)
    options = FitOptions("adam", learning_rate=1e3, max_steps=100, batch_size=10)
    fit = Fit(LinearScorer(4), parse_loss("exponential"), X, y, options)
    with pytest.raises(FloatingPointError, match=r"step \d+: the objective is (inf|nan); lower learning_rate \(1000\)"):
        fit.run()
    assert np.isfinite(fit.best_objective)
    assert all(p.isfinite().all() for p in fit.best.values())
    assert all(p.isfinite().all() for p in fit.scorer.parameters())


# arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "sgd"}, "optimizer must be one of 'lbfgs', 'adam', got 'sgd'"),
        ({"max_steps": 0}, "max_steps must be an integer >= 1, got 0"),
        ({"tolerance": float("nan")}, "tolerance must be a finite number > 0, got nan"),
        ({"batch_size": 8}, "batch_size is for optimizer 'adam' only, got 8 with 'lbfgs'"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        FitOptions(**options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [[1.0], [float("nan")]]}, "X must be finite, got nan at row 1, column 0"),
        ({"y": [1, 1]}, "y must hold both classes, got only 1"),
        ({"y": [1, 0, 1]}, r"y must have one label per row of X \(2\), got shape \(3,\)"),
        ({"qid": [1, 2]}, "y must hold two different labels in at least one list of qid, got none"),
        ({"scorer": nn.Flatten(0)}, "scorer must have a parameter to train, got none"),
        ({"scorer": MLPScorer(1, dropout=0.1)}, "scorer must not drop units under L-BFGS"),
        ({"loss": RankNetLoss(reduction="none"), "qid": [1, 1]}, r"loss must give one number, got shape \(1,\)"),
    ],
)
def test_arguments_are_checked(arguments, message):
    good = {"scorer": LinearScorer(1), "loss": RankNetLoss(), "X": [[1.0], [2.0]], "y": [1, 0]}
    with pytest.raises((ValueError, TypeError), match=message):
        Fit(**(good | arguments))


# mini-batches


@pytest.mark.parametrize(("n", "n_pos", "size"), [(10, 5, 4), (100, 3, 10), (100, 97, 10), (7, 1, 2), (5, 2, 50)])
def test_every_batch_holds_both_classes_and_every_row_occurs(n, n_pos, size):
    labels = np.zeros(n)
    labels[np.random.default_rng(0).choice(n, n_pos, replace=False)] = 1
    batches = item_batches(labels, size, np.random.default_rng(1))
    assert all(0 < labels[rows].sum() < len(rows) <= size + 1 for rows in batches)
    assert all(len(np.unique(rows)) == len(rows) for rows in batches)
    assert set(np.concatenate(batches)) == set(range(n))


@pytest.mark.parametrize(("n_pos", "size"), [(12, 8), (2, 6)])
def test_the_pairs_of_a_batch_estimate_all_pairs_without_bias(n_pos, size):
    generator = np.random.default_rng(0)
    labels, values = np.repeat([1.0, 0.0], [n_pos, 30 - n_pos]), generator.normal(size=30)

    def mean_pair(rows):
        s, y = values[rows], labels[rows]
        return np.mean(np.maximum(0, 1 - (s[y == 1][:, None] - s[y == 0])))

    estimates = [mean_pair(rows) for _ in range(1500) for rows in item_batches(labels, size, generator)]
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - mean_pair(np.arange(30))) < 4 * error


# the smoothed hinge


@pytest.mark.parametrize(("reduction", "pairs"), [*itertools.product(["mean", "sum"], ["mean", "sum"])])
@pytest.mark.parametrize("width", [2.0, 0.1, 1e-6])
def test_the_smoothed_hinge_lies_below_the_hinge_by_half_its_width_at_most(width, reduction, pairs):
    X, y, qid = queries()
    _, group = np.unique(qid, return_inverse=True)
    groups = [np.flatnonzero(group == g) for g in range(group.max() + 1)]
    loss = PairwiseHingeLoss(reduction=reduction, pairs=pairs)
    hinge_pairs = HingePairs.of(loss, y, groups, torch.zeros(1).double())
    multipliers = torch.from_numpy(np.random.default_rng(0).uniform(size=len(hinge_pairs.share)))
    scores = torch.from_numpy(X[:, 0].copy())
    true = float(loss(scores, torch.from_numpy(y), qid=torch.from_numpy(qid)))
    smoothed = SmoothedHinge(hinge_pairs, width, multipliers)
    below = true - float(smoothed(scores))
    assert -1e-12 <= below <= width / 2 * float(hinge_pairs.share.sum()) + 1e-12
    assert 0 <= float(smoothed.slack(scores)) <= width * float(hinge_pairs.share.sum())


def test_the_gradient_of_the_smoothed_hinge_is_right():
    X, y = problem(12)
    pairs = HingePairs.of(PairwiseHingeLoss(), y.astype(float), None, torch.zeros(1).double())
    multipliers = torch.from_numpy(np.random.default_rng(0).uniform(size=len(pairs.share)))
    scores = torch.from_numpy(X[:, 0].copy()).requires_grad_()
    assert torch.autograd.gradcheck(SmoothedHinge(pairs, 0.7, multipliers), scores)


# dropout


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_dropout_draws_from_its_own_seed(share):
    drop, rows = torch.nn.Dropout(share), torch.ones(500, 40, dtype=torch.float64)

    def dropped():
        with SeededDropout((3, 4)):
            assert torch.equal(drop.eval()(rows), rows)
            return [drop.train()(rows) for _ in range(2)]

    state = torch.get_rng_state()
    first, second = dropped()
    kept = first > 0
    assert not torch.equal(first, second)
    assert float(kept.double().mean()) == pytest.approx(1 - share, abs=4 * 0.5 / 20_000**0.5)
    torch.testing.assert_close(first[kept], torch.full_like(first[kept], 1 / (1 - share)), rtol=1e-4, atol=0)
    assert all(map(torch.equal, dropped(), (first, second)))
    assert torch.equal(torch.get_rng_state(), state)
