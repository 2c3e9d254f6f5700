"""AutoRanker: scores out of fold, the blend and its weights, the rule, and what is deployed."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import BaseEstimator

from ltr.rankers import AutoRanker, LogisticRegressionRanker, ScoreColumn, TwoStageRanker
from ltr.rankers.auto import BLEND, TODAY, _learnt_weights, _weights
from ltr.rankers.choice import mean_of_lists
from ltr.rankers.inputs import LabelledRows
from tests.rankers.travelling import outputs_of, reloaded, session_of

FEW = ["logistic", "ranknet"]
pytestmark = pytest.mark.usefixtures("few_fits")


def _data(n=160, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] - 0.5 * X[:, 1] + rng.normal(size=n) > 0.4).astype(int)


class Spy(BaseEstimator):
    """Scores a row 1 if its number, in column 0, was among the rows of the fit, else by column 1 / 1000."""

    def fit(self, X, y):
        self.seen_ = set(np.asarray(X)[:, 0].tolist())
        return self

    def predict(self, X):
        X = np.asarray(X)
        return np.array([1.0 if row[0] in self.seen_ else row[1] / 1000 for row in X])


@pytest.mark.parametrize("kind", ["rows", "groups", "queries", "times"])
def test_no_row_has_a_score_by_a_fit_that_has_seen_it_or_its_like(kind):
    X, y = _data(120)
    X[:, 0] = np.arange(120)
    units = np.arange(120) // 4
    given = {"groups": {"group": units}, "queries": {"qid": units}, "times": {"time": units}}.get(kind, {})
    X[:, 0] = X[:, 0] if kind == "rows" else units  # a unit that was seen in part counts as seen
    ranker = AutoRanker([Spy(), "ranknet"]).fit(X, y, **given)
    scores = ranker.members_out_of_fold_[:, :, 0]
    known = ~np.isnan(scores)
    member = ranker._members["Spy"]
    raw = scores * member.scale + member.center  # each fit has a scale of its own: only the ties of seen rows matter
    assert known.all() == (kind != "times")
    for repeat, row in zip(raw, known, strict=True):
        assert len(np.unique(repeat[row])) > 0.5 * row.sum()  # rows that had been seen would all have one score


def test_learnt_weights_have_the_least_loss_of_all_that_are_not_negative():
    rng = np.random.default_rng(1)
    y = (rng.random(80) < 0.4).astype(float)
    scores = np.column_stack([y + rng.normal(size=80), rng.normal(size=80), -y + rng.normal(size=80)])
    weights = rng.uniform(0.5, 2, size=80)
    rows = LabelledRows(np.empty((0, 0)), y, weights=weights)
    found, intercept = _learnt_weights(scores, rows)
    w, b = cp.Variable(3, nonneg=True), cp.Variable()
    margins = cp.multiply(2 * y - 1, scores @ w + b)
    problem = cp.Problem(cp.Minimize(weights @ cp.logistic(-margins) + 0.5 * cp.sum_squares(w)))
    problem.solve()
    assert found == pytest.approx(w.value, abs=2e-3)
    assert intercept == pytest.approx(float(b.value), abs=2e-3)
    assert found[2] == 0


def test_the_blend_is_half_learnt_and_half_equal_where_50_rows_are_hits():
    rng = np.random.default_rng(1)
    y = np.repeat([1.0, 0.0], [100, 150])
    signal = y + rng.normal(size=250)
    scores = np.column_stack(
        [signal, 5 * signal + rng.normal(size=250), rng.normal(size=250), -y, np.ones(250), np.round(signal)]
    )
    scores[:, 2] += 0.1 * y  # larger for hits, by a little
    rows = LabelledRows(np.empty((0, 0)), y, weights=np.full(250, 0.5))
    found, intercept = _weights(scores, rows, np.array([True, True, True, True, True, False]))
    learnt = scores @ _learnt_weights(scores, rows)[0]
    equal = (scores[:, :3] / scores[:, :3].std(axis=0)).sum(axis=1)
    mean = learnt / learnt.std() + equal / equal.std()
    blend = scores @ found
    assert np.corrcoef(blend, mean)[0, 1] == pytest.approx(1, abs=1e-9)
    assert found[3:5].tolist() == [0, 0]  # smaller for hits, and the same for all rows
    assert np.sum(y - 1 / (1 + np.exp(-blend - intercept))) == pytest.approx(0, abs=1e-2)  # as many hits as there are


def test_the_blend_of_lists_has_the_least_ranknet_loss():
    rng = np.random.default_rng(2)
    y, lists = np.array([1.0, 0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 1.0]), np.repeat([0, 1], 4)
    scores = np.column_stack([y + rng.normal(size=8), rng.normal(size=8)])
    found, _ = _weights(scores, LabelledRows(np.empty((0, 0)), y, lists), np.ones(2, bool))
    w, losses = cp.Variable(2, nonneg=True), []
    for number in (0, 1):
        rows = np.flatnonzero(lists == number)
        pairs = [(i, k) for i in rows for k in rows if y[i] > y[k]]
        losses.append(sum(cp.logistic((scores[k] - scores[i]) @ w) for i, k in pairs) / len(pairs))
    cp.Problem(cp.Minimize(8 * sum(losses) / 2 + 0.5 * cp.sum_squares(w))).solve()
    assert found == pytest.approx(w.value, abs=2e-3)


def test_the_weights_for_a_part_do_not_come_from_its_own_labels():
    """Blocks in time: labels of the last block change no score out of fold."""
    X, y = _data(180)
    time = np.repeat(np.arange(18), 10)
    other = y.copy()
    other[time >= 15] = 1 - other[time >= 15]
    columns = [ScoreColumn(0), ScoreColumn(1)]
    one, two = (AutoRanker(columns, simplicity=-np.inf).fit(X, labels, time=time) for labels in (y, other))
    assert np.array_equal(one.out_of_fold_, two.out_of_fold_, equal_nan=True)
    assert one.weights_ != two.weights_


def test_simplicity_moves_the_bar_from_the_blend_to_the_simplest_method():
    X, y = _data()
    fitted = {s: AutoRanker(FEW, simplicity=s).fit(X, y) for s in (-np.inf, np.inf)}
    assert fitted[-np.inf].comparison_.chosen == BLEND
    assert fitted[np.inf].comparison_.chosen == "logistic"
    assert fitted[np.inf].weights_ == {"logistic": 1.0}
    alone = LogisticRegressionRanker("auto").fit(X, y)
    assert fitted[np.inf].order(X).tolist() == alone.order(X).tolist()


def test_values_are_those_of_the_lists_out_of_fold():
    X, y = _data()
    ranker = AutoRanker(FEW, statistic="auc", simplicity=-np.inf).fit(X, y)
    found = ranker.comparison_
    assert list(found.values) == [*FEW, BLEND]
    assert found.gains[BLEND] == 0
    own = np.mean([mean_of_lists(scores, y.astype(float), None, ranker._measure()) for scores in ranker.out_of_fold_])
    assert found.values[BLEND] == pytest.approx(own)
    assert found.values["logistic"] - found.values[BLEND] == pytest.approx(found.gains["logistic"])


@pytest.mark.parametrize("methods", [FEW, ["boosting", "forest"], "auto"])
def test_what_is_deployed_is_saved_exported_and_calibrated(methods, tmp_path):
    X, y = _data(120)
    ranker = AutoRanker(methods, simplicity=-np.inf).fit(X, y)
    read = reloaded(ranker, tmp_path)
    assert np.array_equal(read.predict(X), ranker.predict(X))
    assert np.array_equal(read.predict_proba(X), ranker.predict_proba(X))
    assert str(read.comparison_) == str(ranker.comparison_)
    assert read.out_of_fold_ is None
    found = outputs_of(session_of(ranker, tmp_path), X)
    assert found["score"] == pytest.approx(ranker.predict(X), abs=1e-9)
    assert found["probability"] == pytest.approx(ranker.predict_proba(X)[:, 1], abs=1e-9)


def test_weights_of_one_change_nothing_and_weights_of_zero_leave_rows_out():
    X, y = _data()
    plain = AutoRanker(FEW).fit(X, y)
    assert np.array_equal(AutoRanker(FEW).fit(X, y, sample_weight=np.ones(len(y))).predict(X), plain.predict(X))
    weights = np.ones(len(y))
    weights[::5] = 0
    kept = weights > 0
    one, two = AutoRanker(FEW).fit(X, y, sample_weight=weights), AutoRanker(FEW).fit(X[kept], y[kept])
    assert np.array_equal(one.predict(X), two.predict(X))
    assert np.array_equal(one.out_of_fold_[:, kept], two.out_of_fold_)
    assert np.array_equal(one.out_of_fold_[0, ~kept], one.predict(X)[~kept])


def test_todays_scores_are_a_method_that_learns_nothing():
    X, y = _data()
    X[:, 3] = 3 * y + X[:, 3] / 10
    ranker = AutoRanker(FEW, today=3).fit(X, y)
    assert list(ranker.rankers_) == [TODAY, *FEW]
    assert isinstance(ranker.rankers_[TODAY], ScoreColumn)
    assert ranker.comparison_.weights[TODAY] > 0


def test_two_stages_learn_from_the_scores_that_auto_has_kept():
    X, y = _data()
    base = AutoRanker(FEW).fit(X, y)
    ranker = TwoStageRanker(base, "dcg", 40).fit(X, y, base_is_fitted=True)
    known = base.out_of_fold_.mean(axis=0)
    assert ranker.threshold_ == np.sort(known)[-40]
    assert ranker.choice_ is not None
    if not ranker.choice_.reranks:
        assert np.array_equal(ranker.training_scores(X), known)
