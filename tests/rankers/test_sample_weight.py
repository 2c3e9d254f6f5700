"""Weights of rows in every fit: they count as repeated rows would, 0 leaves a row out, and mistakes are named."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from ltr.exact import Limits
from ltr.fitting import Fit, FitOptions, Validation
from ltr.fitting.objective import Objective
from ltr.losses import parse_loss
from ltr.rankers import (
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    ScoreColumn,
    SurrogateRanker,
    TwoStageRanker,
)
from ltr.rankers.auto import _weights
from ltr.rankers.choice import BASE, Fold, compare, folds_of, places
from ltr.rankers.inputs import LabelledRows
from ltr.rankers.scorers import LinearScorer
from ltr.statistics import RankStatistic
from tests.reference import slow_graded_value
from tests.tiers import thinned

LIMITS = Limits(node_limit=500)
PAIRS = [
    f"{loss}{pairs}" for loss in ("ranknet", "hinge", "squared_hinge", "exponential") for pairs in ("", "(pairs=sum)")
]
REPEATED = [
    *(SurrogateRanker(loss, tolerance=1e-12, l2=0.05) for loss in (*PAIRS, "p_norm_push(p=2)", "logistic", "list_mle")),
    LogisticRegressionRanker(C=1.0),
    RankBoostRanker(10, step="exact"),
]
each = pytest.mark.parametrize("ranker", thinned(2, REPEATED))


def data(seed=0, n=60, lists=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.1]
    y = (X[:, 0] - X[:, 1] / 20 + rng.normal(size=n) > 0.5).astype(int)
    return X, y, rng.integers(0, 4, n).astype(float), np.arange(n) % lists


def fitted(ranker, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(ranker).fit(*args, **kwargs)


@each
def test_a_weight_counts_as_so_many_rows_and_0_as_none(ranker):
    X, y, weights, _ = data()
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted, repeated = fitted(ranker, X, y, sample_weight=weights), fitted(ranker, X[rows], y[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=2e-5, atol=2e-5)
    plain = fitted(ranker, X, y)
    np.testing.assert_array_equal(fitted(ranker, X, y, sample_weight=None).predict(X), plain.predict(X))
    np.testing.assert_allclose(fitted(ranker, X, y, sample_weight=np.ones(60)).predict(X), plain.predict(X), atol=2e-5)
    assert np.abs(weighted.predict(X) - plain.predict(X)).max() > 1e-3


def repeated_queries(X, y, qid, counts, *others):
    """Rows of each query so many times, each time as a query of its own."""
    parts = [(np.flatnonzero(qid == q), at) for q, count in enumerate(counts) for at in range(count)]
    rows = np.concatenate([rows for rows, _ in parts])
    numbers = np.concatenate([np.full(len(rows), at) for at, (rows, _) in enumerate(parts)])
    return X[rows], y[rows], numbers, *(other[rows] for other in others)


NETWORK = {"scorer": "mlp", "hidden": (4,), "scale": "standardize"}
BY_QUERY = [
    *(SurrogateRanker(loss, tolerance=1e-12, l2=0.05) for loss in (*PAIRS, "p_norm_push(p=2)", "logistic", "list_mle")),
    *(SurrogateRanker(loss, tolerance=1e-12, l2=0.05) for loss in ("softmax", "list_net", "ranknet(reduction=sum)")),
    SurrogateRanker("smooth(statistic=dcg,temperature=0.5)", tolerance=1e-12, l2=0.05, validation=0),
    SurrogateRanker("lambda", optimizer="adam", batch_size=None, max_steps=30, l2=0.05, validation=0),
    SurrogateRanker("ranknet", dropout=0.0, batch_size=99, max_steps=20, validation=0, **NETWORK),
    SurrogateRanker("hinge", l2=0.05, signs={0: "+"}),
    SurrogateRanker("ranknet", l2=0.05, max_nonzeros=2),
]


@pytest.mark.parametrize(("ranker", "inside"), thinned(2, BY_QUERY, [False, True]))
def test_a_weight_of_a_query_counts_as_so_many_queries_and_0_as_none(ranker, inside):
    if inside and ranker.loss.startswith(("lambda", "smooth")):
        pytest.skip("positions count rows")
    X, y, _, qid = data(lists=6)
    counts = np.array([1, 4, 0, 2, 1, 3])
    of_rows = np.random.default_rng(5).uniform(0.5, 2.0, len(y)) if inside else np.ones(len(y))
    none = y == 0  # whose mean weight is that of the query
    of_rows /= (np.bincount(qid[none], of_rows[none]) / np.bincount(qid[none]))[qid]
    *rows, others = repeated_queries(X, y, qid, counts, of_rows)
    weighted = fitted(ranker, X, y, qid, sample_weight=counts[qid] * of_rows)
    repeated = fitted(ranker, *rows, sample_weight=others)
    found = [
        one.predict(X) - one.predict(X).mean() for one in (weighted, repeated)
    ]  # Adam lets a bias that nothing moves drift
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    plain = fitted(ranker, X, y, qid, sample_weight=of_rows)
    assert np.abs(weighted.predict(X) - plain.predict(X)).max() > 1e-3


def test_the_weight_of_a_query_counts_wherever_means_over_lists_are_taken():
    """In scores, in validation, in the comparison and the blend of methods, in boosters and in the exact sum."""
    X, y, _, qid = data(n=120, lists=12)
    y[qid == 3] = 0  # for which some statistics are not defined
    counts = np.array([1, 4, 0, 2, 1, 3, 1, 1, 2, 0, 1, 5])
    weights, rows = counts[qid].astype(float), repeated_queries(X, y, qid, counts)
    scores = X[:, 0] + X[:, 2]
    for statistic, normalize in (("dcg", False), ("dcg", True), ("hits@3", False), ("auc", False), ("ap", False)):
        ranker = ScoreColumn(0, statistic=statistic, normalize=normalize)
        values = [ranker.fit(X, y).score(X, y, qid, sample_weight=weights), ranker.score(*rows)]
        assert values[0] == pytest.approx(values[1], rel=1e-12)
        assert values[0] != pytest.approx(ranker.score(X, y, qid), rel=1e-3)
        for w in (weights + 0.5, None):
            fold = Fold("0", 0, np.arange(len(y)), np.arange(len(y)))
            results = {"0": [places(X[:, 0], qid).tolist(), places(scores, qid).tolist()]}
            measure = (RankStatistic.parse(statistic), "exp2", normalize)
            gains, _ = compare(results, [fold], [BASE, "other"], LabelledRows(X, y, qid, weights=w), measure, 0)
            both = [clone(ranker).fit(Z, y).score(Z, y, qid, w) for Z in (scores[:, None], X[:, :1])]
            assert gains["other"] == pytest.approx(both[0] - both[1], abs=1e-12)
    kept = weights > 0
    three = (X[kept], y[kept], qid[kept], weights[kept]), (*rows, None), (X, y, qid, None)
    validated, blends = [], []
    for X_, y_, qid_, w in three:
        validation = Validation(X_, y_ * 1.0, qid_, weight=w)
        scorer = LinearScorer(3)
        scorer.weight.data += 1.0
        validated.append(Fit(scorer, "ranknet", X, y, qid=qid, validation=validation).best_validation)
        members = np.column_stack([X_[:, 0], -X_[:, 1] / 20])
        blends.append(_weights(members, LabelledRows(X_, y_ * 1.0, qid_, weights=w), np.ones(2, bool))[0])
    assert validated[0] == pytest.approx(validated[1], rel=1e-12)
    assert validated[0] != pytest.approx(validated[2], rel=1e-3)
    np.testing.assert_allclose(blends[0], blends[1], rtol=1e-3)
    assert np.abs(blends[0] - blends[2]).max() > 1e-3
    exact = ExactRanker(limits=LIMITS)
    labels = [exact._weighted_labels(LabelledRows(X, y * 1.0, qid, weights=w)) for w in (None, counts[qid] + 1.0)]
    np.testing.assert_allclose(np.exp2(labels[1]) - 1, (counts[qid] + 1) * (np.exp2(labels[0]) - 1))


def test_mini_batches_estimate_the_weighted_mean_without_bias():
    X, y, _, qid = data(n=60, lists=12)
    weights = np.random.default_rng(0).integers(1, 6, 12)[qid] * 1.0
    objective = Objective(LinearScorer(3), parse_loss("ranknet"), X, y, qid, weights, FitOptions(l2=0.0))
    whole = objective.evaluate()
    grad = [p.grad.clone() for p in objective.parameters]
    batches = [np.flatnonzero(np.isin(qid, range(at, at + 3))) for at in range(0, 12, 3)]
    parts = []
    for batch in batches:
        value = objective.estimate(batch[np.argsort(qid[batch], kind="stable")], (0,))
        parts.append((value, [p.grad.clone() for p in objective.parameters]))
    assert np.mean([value for value, _ in parts]) == pytest.approx(whole.loss, rel=1e-12)
    for at, own in enumerate(grad):
        np.testing.assert_allclose(torch.stack([grads[at] for _, grads in parts]).mean(0), own, rtol=1e-10, atol=1e-12)


def test_large_hinge_fits_take_weights():
    X, y, weights, _ = data(n=2600)  # more pairs than are visited one by one
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    hinge = SurrogateRanker("hinge", l2=0.05, tolerance=1e-6)
    weighted, repeated = fitted(hinge, X, y, sample_weight=weights), fitted(hinge, X[rows], y[rows])
    assert weighted.converged_
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)


@pytest.mark.parametrize("statistic", ["dcg", "mrr"])
def test_the_exact_ranker_maximises_the_statistic_of_weighted_gains(statistic):
    X, y, _, _ = data(n=25)
    X = X[:, :2]
    rng = np.random.default_rng(1)
    weights = np.where(y == 1, rng.uniform(0.2, 4.0, 25).round(1), 1.0)

    def value(w):
        scores = (X - X.mean(axis=0)) / X.std(axis=0) @ w
        return slow_graded_value(scores.tolist(), (weights * y).tolist(), [0] * 25, statistic, "resolved")

    ranker = ExactRanker(statistic, limits=Limits(time_limit=20), ties="resolved").fit(X, y, sample_weight=weights)
    assert ranker.solution_.status.value == "optimal"
    angles = [value(np.array([np.cos(t), np.sin(t)])) for t in np.linspace(0, 2 * np.pi, 2000)]
    assert value(ranker.coef_ * X.std(axis=0)) == pytest.approx(ranker.solution_.value, rel=1e-9)
    assert max(angles) <= ranker.solution_.value + 1e-9
    assert ranker.solution_.value - max(angles) < 0.05


@pytest.mark.parametrize(
    ("options", "lists"), thinned(2, [{"choose": True}, {"choose": False, "base_score": True}], [1, 12])
)
def test_weights_of_1_change_no_bit_of_a_choice_and_weights_of_0_leave_rows_out(options, lists, monkeypatch):
    monkeypatch.setattr("ltr.rankers.choice.REPEATS", 2)
    X, y, _, qid = data(n=120, lists=lists)

    def fit(rows, weights):
        ranker = TwoStageRanker(LogisticRegression(), ExactRanker(limits=LIMITS), 60, **options)
        return ranker.fit(X[rows], y[rows], qid[rows] if lists > 1 else None, sample_weight=weights)

    every, kept = np.arange(120), np.arange(120) % 7 != 0
    lists_of = qid if lists > 1 else None
    for one, two in (
        (fit(every, None), fit(every, np.ones(120))),
        (fit(np.flatnonzero(kept), None), fit(every, kept.astype(float))),
    ):
        assert one.choice_ == two.choice_
        assert one.solution_.value == two.solution_.value
        np.testing.assert_array_equal(one.predict(X, lists_of), two.predict(X, lists_of))


class Noting(LogisticRegression):
    """A logistic regression that notes the rows and weights of its fits, and does without the weights."""

    fits = []  # noqa: RUF012 (copies share it)

    def fit(self, X, y, sample_weight=None):
        Noting.fits.append((X, sample_weight))
        return super().fit(X, y)


@pytest.mark.parametrize("options", [{"choose": True}, {"choose": False, "base_score": True}])
def test_every_fit_of_the_base_gets_the_weights_of_its_rows(options, monkeypatch):
    monkeypatch.setattr("ltr.rankers.choice.REPEATS", 2)
    Noting.fits.clear()
    X, y, _, _ = data(n=120)
    weights = np.where(y == 1, 1.0 + np.arange(120) % 3, np.arange(120) % 5 > 0)
    TwoStageRanker(Noting(), ExactRanker(limits=LIMITS), 60, **options).fit(X, y, sample_weight=weights)
    weight_of = dict(zip(X[:, 0], weights, strict=True))
    assert len(Noting.fits) == 1 + 2 * 5 + (2 * (5 + 10) if options["choose"] else 0)
    for rows, given in Noting.fits:
        assert given.tolist() == [weight_of[x] for x in rows[:, 0]]
        assert given.min() > 0


def test_the_weight_of_a_row_that_stays_in_its_place_moves_no_gain():
    rng = np.random.default_rng(0)
    y = (np.arange(50) < 15).astype(float)
    splits = folds_of(LabelledRows(None, y), seed=0)
    base = {split.name: rng.random(len(split.held)) for split in splits}
    for split in splits:
        base[split.name][split.held == 3] = 2.0  # on top of every list
    better = {split.name: np.where(split.held == 3, 2.0, base[split.name] + 0.5 * y[split.held]) for split in splits}
    results = {name: [base[name], better[name]] for name in base}
    dcg = (RankStatistic.parse("dcg"), "linear", False)
    plain, stays, moves, twice = (
        compare(results, splits, [BASE, "other"], LabelledRows(None, y * w), dcg, seed=0)
        for w in (1.0, 1 + 4 * (np.arange(50) == 3), 1 + 4 * (np.arange(50) == 4), 2.0)
    )
    for field in (0, 1):  # gains and deviations
        values = [found[field]["other"] for found in (plain, stays, moves, twice)]
        assert values[1] == pytest.approx(values[0], rel=1e-12)
        assert values[2] > 1.01 * values[0]
        assert values[3] == 2 * values[0]


MISTAKES = [
    (SurrogateRanker(), lambda w, y: np.where(np.arange(60) == 4, -1, w), "finite weights >= 0, got -1 in row 5"),
    (LogisticRegressionRanker(), lambda w, y: 1.0 * (y == 1), "rows whose sample_weight is not zero must hold"),
    (SurrogateRanker("lambda"), lambda w, y: w + 1, "sample_weight: lambda takes weights of queries only"),
    (ExactRanker("auc"), lambda w, y: 1.0 + y, "sample_weight: the statistic auc takes none; wrs"),
    (ExactRanker("hits@5"), lambda w, y: 1.0 + y, "sample_weight: the statistic hits@5 takes none; a hit counts 1"),
    (ExactRanker(), lambda w, y: w + 2, "sample_weight must be the same for all rows with the label 0, or 0 to leave"),
    (TwoStageRanker(KNeighborsClassifier(), choose=False), lambda w, y: 1.0 + y, "the base, KN.*takes none"),
]  # fmt: skip


@pytest.mark.parametrize(("ranker", "change", "message"), MISTAKES, ids=[message[:30] for *_, message in MISTAKES])
def test_mistakes_are_named(ranker, change, message):
    X, y, weights, _ = data()
    with pytest.raises(ValueError, match=message):
        fitted(ranker, X, y, sample_weight=change(weights, y))
