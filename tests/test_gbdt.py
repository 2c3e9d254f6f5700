"""Losses as objectives of LightGBM and XGBoost: their derivatives, their scale and weights, and training by them."""

import itertools
import pickle

import numpy as np
import pytest
import torch

from ltr.gbdt import LONGEST_STEP, metric, objective
from ltr.lists import as_lists
from ltr.losses import PairwiseLoss, parse_loss
from ltr.losses.derivatives import derivatives
from ltr.losses.operators import Given
from ltr.metrics import ndcg

# the losses, and whether their curvature is the second derivative to the last digit
LOSSES = {
    "ranknet": True,
    "ranknet(pairs=sum)": True,
    "hinge": False,
    "squared_hinge": True,
    "exponential": True,
    "exponential(pairs=sum)": True,
    "p_norm_push(p=3)": False,
    "p_norm_push(p=2,inner=logistic)": False,
    "p_norm_push(p=2,inner=logistic,pairs=sum)": False,
    "logistic": True,
    "logistic(pairs=sum)": True,
    "list_net": True,
    "list_net(temperature=0.5)": True,
    "kl(temperature=2)": True,
    "margin_mse": True,
    "margin_mse(pairs=sum)": True,
    "softmax": True,
    "softmax(pairs=sum)": True,
    "list_mle": True,
    "list_mle(pairs=sum)": True,
    "lambda(statistic=dcg@3)": True,
    "lambda(statistic=wrs,pairs=sum)": True,
    "lambda(statistic=recall@4)": True,
    "lambda(statistic=pauc@4)": True,  # whose weights depend on the length of the list
    "smooth(statistic=dcg,temperature=0.7)": False,
    "smooth(statistic=auc,temperature=0.7,pairs=sum)": False,
}
WEIGHTED = [name for name in LOSSES if not name.startswith(("lambda", "smooth"))]
BY_SUMS = [name for name in LOSSES if name.startswith(("ranknet", "hinge", "squared", "p_norm", "smooth"))]


def items(name, n=9, seed=0, lists=1):
    rng = np.random.default_rng(seed)
    grades = 2 if "logistic" in name.split("(")[0] or "auc" in name else 4
    scores = torch.from_numpy(rng.normal(size=n * lists) * 1.5)
    labels = torch.from_numpy(rng.integers(0, grades, n * lists).astype(np.float64))
    return scores, labels, torch.from_numpy(rng.uniform(0.2, 2.0, n * lists)), torch.arange(n * lists) % lists


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "weighted"), [*((name, False) for name in LOSSES), *((name, True) for name in WEIGHTED)]
)
def test_derivatives_are_those_of_automatic_differentiation(name, weighted, seed):
    loss = parse_loss(name)
    scores, labels, weight, qid = items(name, seed=seed)
    weight = weight if weighted else None
    slopes, curvatures = derivatives(loss, scores, labels, qid, weight=weight)
    known = Given(labels, None, weight, None)
    expected, hessian = (
        form(lambda s: loss.in_torch(s, known, "sum"), scores)
        for form in (torch.autograd.functional.jacobian, torch.autograd.functional.hessian)
    )
    torch.testing.assert_close(slopes, expected, rtol=1e-9, atol=1e-12)
    if LOSSES[name]:
        torch.testing.assert_close(curvatures, hessian.diag(), rtol=1e-9, atol=1e-12)
    assert (curvatures >= hessian.diag().abs() * (1 - 1e-9)).all()
    # no step of a learning rate up to 1 overshoots, in all items at once
    room = torch.linalg.eigvalsh(2 * torch.diag(curvatures) - hessian)
    assert room.min() > -1e-9 * room.max()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BY_SUMS)
def test_sums_over_long_lists_agree_with_the_core(name, weighted):
    scores, labels, weight, qid = items(name, n=60)
    weight = weight if weighted and name in WEIGHTED else None
    loss = parse_loss(name)
    by_core = derivatives(loss, scores, labels, qid, weight=weight)
    row = as_lists(scores[None], labels[None], weight=None if weight is None else weight[None])
    loss.short = loss.few = 0  # as if the list were long
    for found, expected in zip(loss.derivatives_of(row), by_core, strict=True):
        torch.testing.assert_close(found[0].double(), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["graded", "binary", "all different", "far apart", "one score", "huge"])
def test_binned_sums_of_ranknet_agree_with_all_pairs(kind, weighted):
    scores, labels, weight, qid = items("ranknet", n=1500)
    labels = {"binary": (labels > 2).double(), "all different": torch.arange(1500.0).double().flip(0)}.get(kind, labels)
    scores = {
        "far apart": scores * 1000,
        "one score": torch.zeros_like(scores),
        "huge": torch.where(torch.arange(1500) % 3 == 0, scores * 1e200, scores),
    }.get(kind, scores)
    weight = weight if weighted else None
    loss = parse_loss("ranknet")
    by_bins = derivatives(loss, scores, labels, qid, weight=weight)
    row = as_lists(scores[None], labels[None], weight=None if weight is None else weight[None])
    loss.function = None  # all pairs of the formula
    loss.pair_function = parse_loss("ranknet").pair_function
    for found, expected in zip(by_bins, loss.derivatives_of(row), strict=True):
        torch.testing.assert_close(found, expected[0], rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("name", LOSSES)
def test_lists_do_not_disturb_each_other_whatever_their_lengths(name):
    loss = parse_loss(name)
    long, short = items(name, n=1100, seed=1), items(name, n=6, seed=2, lists=3)
    scores, labels = (torch.cat([a, b]) for a, b in zip(long[:2], short[:2], strict=True))
    qid = torch.cat([torch.full((1100,), 7), short[3]])
    order = torch.randperm(len(qid), generator=torch.Generator().manual_seed(0))
    loss.few = 1000  # the long list takes the other way, which also calls for a few pairs only
    together = derivatives(loss, scores[order], labels[order], qid[order])
    for number in qid.unique().tolist():
        rows = qid[order] == number
        alone = derivatives(loss, scores[order][rows], labels[order][rows], qid[order][rows])
        for found, expected in zip(together, alone, strict=True):
            torch.testing.assert_close(found[rows], expected, rtol=1e-12, atol=1e-15)


class Softened(PairwiseLoss):
    def pair_function(self, z):
        return torch.logaddexp(torch.zeros_like(z), -z)


@pytest.mark.parametrize("name", ["lambda(statistic=dcg)", "smooth(statistic=dcg)"])
def test_weights_of_rows_are_refused_by_losses_of_positions(name):
    labels, sizes = np.array([2.0, 1.0, 0.0, 1.0, 0.0]), np.array([3, 2])
    with pytest.raises(ValueError, match="takes no weights of items, because positions count items"):
        objective(name)(labels, np.zeros(5), np.array([1.0, 2.0, 1.0, 1.0, 1.0]), sizes)
    of_lists = objective(name)(labels, np.zeros(5), np.array([2.0, 2.0, 2.0, 1.0, 1.0]), sizes)
    plain = objective(name)(labels, np.zeros(5), None, sizes)
    for one, other in zip(of_lists, plain, strict=True):
        np.testing.assert_allclose(one, other * [2, 2, 2, 1, 1], rtol=1e-6)


def test_a_pairwise_loss_of_ones_own_needs_its_formula_alone():
    scores, labels, weight, qid = items("ranknet", n=12, lists=2)
    for pairs in ("mean", "sum"):
        found = derivatives(Softened(pairs=pairs), scores, labels, qid, weight=weight)
        expected = derivatives(parse_loss(f"ranknet(pairs={pairs})"), scores, labels, qid, weight=weight)
        for own, known in zip(found, expected, strict=True):
            torch.testing.assert_close(own, known, rtol=1e-9, atol=1e-12)


# --- the objective ---------------------------------------------------------------------------------------------------


def test_the_objective_is_the_loss_times_the_rows():
    labels, scores, sizes = np.array([0.0, 1.0, 1.0, 0.0, 1.0]), np.array([0.5, -0.5, 2.0, 0.0, 1.0]), [3, 2]
    gradient, hessian = objective("logistic(reduction=sum,pairs=sum)")(labels, scores, None, sizes)
    p = 1 / (1 + np.exp(-scores))
    np.testing.assert_allclose(gradient, p - labels, rtol=1e-6)
    np.testing.assert_allclose(hessian, np.maximum(p * (1 - p), abs(p - labels) / LONGEST_STEP), rtol=1e-6)
    np.testing.assert_allclose(objective("logistic")(labels, scores, None, sizes)[0], p - labels, rtol=1e-6)


@pytest.mark.parametrize("name", ["ranknet", "ranknet(pairs=sum)", "hinge", "squared_hinge", "exponential"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("top", [1, 3, 8, 100])
def test_the_pairs_of_the_top_are_counted_one_by_one(name, weighted, top):
    rng = np.random.default_rng(top)
    sizes = np.array([7, 1, 12, 4])
    number = np.repeat(np.arange(4), sizes)
    labels, scores = rng.integers(0, 3, 24).astype(float), np.round(rng.normal(size=24), 1)
    weight = rng.uniform(0.5, 2.0, 24) if weighted else np.ones(24)
    loss = parse_loss(name)
    slopes, curvatures = np.zeros(24), np.zeros(24)
    for one in range(4):
        rows = np.flatnonzero(number == one)
        own = weight[rows] / weight[rows][labels[rows] == labels[rows].min()].mean()
        first = {i for i in rows.tolist() if (scores[rows] > scores[i]).sum() < top}
        found, total = np.zeros((2, 24)), 0.0
        for (i, u), (k, v) in itertools.permutations(zip(rows.tolist(), own, strict=True), 2):
            if labels[i] > labels[k] and (i in first or k in first):
                z = torch.tensor([scores[i], scores[k]], dtype=torch.float64)
                pair = derivatives(loss, z, torch.tensor([1.0, 0.0]), torch.tensor([0, 0]))
                found[:, [i, k]] += u * v * np.array([x.numpy() for x in pair])
                total += u * v
        scale = weight[rows].sum() / (total if loss.pairs == "mean" and total > 0 else 1.0)
        slopes += scale * found[0]
        curvatures += scale * found[1]
    gradient, hessian = objective(name, top=top)(labels, scores, weight if weighted else None, sizes)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(hessian, np.maximum(curvatures, abs(slopes) / LONGEST_STEP), rtol=1e-5, atol=1e-7)
    if top == 100:
        np.testing.assert_allclose(gradient, objective(name)(labels, scores, weight, sizes)[0], rtol=1e-5, atol=1e-7)


def test_weights_of_lists_and_of_rows():
    rng = np.random.default_rng(0)
    labels, scores, sizes = rng.integers(0, 3, 10).astype(float), rng.normal(size=10), np.array([4, 6])
    of_lists = np.array([2.0, 0.5])
    for name in ("ranknet", "list_net", "ranknet(pairs=sum,reduction=sum)", "lambda(statistic=dcg)"):
        fobj = objective(name)
        plain, by_list = (fobj(labels, scores, weight, sizes) for weight in (None, of_lists))
        by_row = fobj(labels, scores, np.repeat(of_lists, sizes), sizes)
        for one, many, rows in zip(plain, by_list, by_row, strict=True):
            np.testing.assert_allclose(many, one * np.repeat(of_lists, sizes), rtol=1e-6)
            np.testing.assert_array_equal(many, rows)


def test_steps_stay_short_where_all_is_lost():
    gradient, hessian = objective("ranknet")(np.array([1.0, 0.0]), np.array([-500.0, 500.0]))
    assert (abs(gradient) == 2).all()  # the number of rows
    np.testing.assert_allclose(abs(gradient) / hessian, LONGEST_STEP)
    gradient, hessian = objective("exponential")(np.array([1.0, 0.0]), np.array([-500.0, 500.0]))
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    gradient, hessian = objective("ranknet")(np.array([1.0, 1.0]), np.array([3.0, 2.0]))  # no pair
    assert (gradient == 0).all()
    assert (hessian > 0).all()


# --- boosters --------------------------------------------------------------------------------------------------------


def data(seed=0, lists=60):
    """Lists of 5 to 30 rows whose labels depend on products of features."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 31, lists)
    X = rng.normal(size=(sizes.sum(), 6))
    relevance = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=len(X)) * 0.3
    return X, np.clip(np.round(relevance), 0, 4), sizes


def quality(scores, y, sizes):
    qid = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return float(ndcg(torch.tensor(np.asarray(scores, float)), torch.tensor(y), qid=qid, k=10).nanmean())


def test_the_interfaces_of_lightgbm_train_the_same_model():
    lightgbm = pytest.importorskip("lightgbm")
    X, y, sizes = data()
    Xt, yt, sizes_t = data(1)
    options = {"num_threads": 1, "verbose": -1, "learning_rate": 0.2, "min_data_in_leaf": 5}
    train = lightgbm.Dataset(X, y, group=sizes)
    seen = {}
    booster = lightgbm.train(
        {**options, "objective": objective("ranknet"), "metric": "None"},
        train,
        15,
        valid_sets=[lightgbm.Dataset(Xt, yt, group=sizes_t, reference=train)],
        feval=metric("ndcg@10"),
        callbacks=[lightgbm.record_evaluation(seen)],
    )
    scores = booster.predict(Xt)
    assert seen["valid_0"]["ndcg@10"][-1] == pytest.approx(quality(scores, yt, sizes_t), abs=1e-6)
    assert quality(scores, yt, sizes_t) > 0.85 > quality(Xt[:, 2], yt, sizes_t) - 0.02
    ranker = lightgbm.LGBMRanker(objective=objective("ranknet"), n_estimators=15, **options)
    ranker.fit(X, y, group=sizes, eval_set=[(Xt, yt)], eval_group=[sizes_t], eval_metric=metric("ndcg@10"))
    np.testing.assert_allclose(ranker.predict(Xt), scores, rtol=1e-6)
    assert "ndcg@10" in ranker.evals_result_["valid_0"]


@pytest.mark.parametrize("measure", ["mrr", "ndcg(gain=linear)@3", "pairwise_misranking_error"])
def test_early_stopping_goes_by_our_metric(measure):
    """LGBMRanker has metrics of its own, at the first of which that no longer improves it would stop."""
    lightgbm = pytest.importorskip("lightgbm")
    X, y, sizes = data(lists=20)
    Xt, yt, sizes_t = data(1, lists=20)
    if measure == "pairwise_misranking_error":
        y, yt = np.minimum(y, 1), np.minimum(yt, 1)
    options = {"num_threads": 1, "verbose": -1, "learning_rate": 0.3, "min_data_in_leaf": 5, "metric": "None"}
    stopping = lightgbm.early_stopping(6, verbose=False)
    ranker = lightgbm.LGBMRanker(objective=objective("ranknet"), n_estimators=100, **options)
    ranker.fit(
        X, y, group=sizes, eval_set=[(Xt, yt)], eval_group=[sizes_t], eval_metric=metric(measure), callbacks=[stopping]
    )
    values = ranker.evals_result_["valid_0"]
    assert set(values) == {measure}
    better = np.argmin if measure == "pairwise_misranking_error" else np.argmax
    assert ranker.best_iteration_ == better(values[measure]) + 1
    assert len(values[measure]) == ranker.best_iteration_ + 6


def test_the_interfaces_of_xgboost_train_the_same_model():
    xgboost = pytest.importorskip("xgboost")
    X, y, sizes = data()
    Xt, yt, sizes_t = data(1)
    options = {"nthread": 1, "learning_rate": 0.2, "base_score": 0.5, "tree_method": "hist"}
    train, test = (
        xgboost.DMatrix(a, b, qid=np.repeat(np.arange(len(c)), c)) for a, b, c in ((X, y, sizes), (Xt, yt, sizes_t))
    )
    seen = {}
    booster = xgboost.train(
        options,
        train,
        15,
        obj=objective("ranknet"),
        evals=[(test, "test")],
        custom_metric=metric("ndcg@10"),
        maximize=True,
        evals_result=seen,
        early_stopping_rounds=15,
        verbose_eval=False,
    )
    scores = booster.predict(xgboost.DMatrix(Xt))
    assert seen["test"]["ndcg@10"][-1] == pytest.approx(quality(scores, yt, sizes_t), abs=1e-5)
    ranker = xgboost.XGBRanker(callbacks=[objective("ranknet").callback()], n_estimators=15, n_jobs=1, **options)
    ranker.fit(X, y, group=sizes)
    np.testing.assert_allclose(ranker.predict(Xt), scores, rtol=1e-5)
    again = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(again.predict(Xt), ranker.predict(Xt))


@pytest.mark.slow
@pytest.mark.parametrize("longest", [10, 1_000, 100_000])
def test_a_million_rows_take_no_memory_for_pairs(longest):
    rng = np.random.default_rng(0)
    sizes = np.full(1_000_000 // longest, longest)
    labels, scores = rng.integers(0, 5, 1_000_000).astype(float), rng.normal(size=1_000_000)
    gradient, hessian = objective("ranknet")(labels, scores, None, sizes)
    assert abs(gradient.sum(dtype=float)) < 1e-2
    assert (hessian > 0).all()
