"""Chances of a hit: the map from scores, its folds, all rankers with it, and intervals for the number of hits."""

import copy
import json
import pickle
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from ltr.cards import CardRanker
from ltr.rankers import EstimatorRanker, LogisticRegressionRanker, ScoreColumn, SurrogateRanker, TwoStageRanker
from ltr.rankers.calibration import ISOTONIC_FROM, Calibration, fit_calibration, predictive_interval
from tests.rankers.travelling import FITTED, STAGE, calibrated, one_list, outputs_of, reloaded, session_of

KINDS = ("isotonic", "sigmoid")


def drawn(n, seed=0, slope=1.5, base=-0.5):
    """Scores, and labels whose chance is a sigmoid of them."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    return scores, (rng.random(n) < expit(base + slope * scores)).astype(int)


# the map


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0]), st.booleans()), min_size=2, max_size=60),
    st.sampled_from(KINDS),
    st.randoms(use_true_random=False),
)
def test_chances_rise_with_the_score_strictly_between_0_and_1(rows, kind, random):
    scores, labels = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    labels[:2] = 0, 1
    weights = np.array([random.choice([0.1, 1.0, 30.0]) for _ in rows])
    calibration = fit_calibration(scores, labels, weights, kind=kind)
    asked = np.sort(np.concatenate([scores, np.nextafter(scores, np.inf), [-1e300, 1e300], np.linspace(-1e6, 1e6, 99)]))
    chances = calibration(asked)
    assert (np.diff(chances) >= 0).all()
    assert (chances > 0).all()
    assert (chances < 1).all()
    again = Calibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    np.testing.assert_array_equal(again(asked), chances)
    assert again.rows_behind(scores) == calibration.rows_behind(scores)
    assert 1 <= calibration.rows_behind(scores) <= calibration.rows + 1e-9 or calibration.rows < 1


def test_the_sigmoid_is_platts():
    scores, labels = drawn(80)
    platt = _SigmoidCalibration().fit(scores, labels)
    found, least, largest = fit_calibration(scores, labels)(scores), 1 / (81 - labels.sum() + 1), labels.sum() + 1
    np.testing.assert_allclose(found, np.clip(platt.predict(scores), least, largest / (largest + 1)), atol=1e-4)


def test_isotonic_regression_with_a_row_of_average_chance_on_each_plateau():
    scores, labels = np.arange(6.0), [0, 0, 1, 0, 1, 1]
    calibration = fit_calibration(scores, labels, kind="isotonic")
    # plateaus 0 of 2, 1 of 2 and 2 of 2, and half of a hit more on each
    np.testing.assert_allclose(calibration(scores), np.repeat([0.5 / 3, 1.5 / 3, 2.5 / 3], 2), rtol=1e-15)
    np.testing.assert_allclose(calibration([1.5, -9.0, 99.0]), [1 / 3, 0.5 / 3, 2.5 / 3], rtol=1e-15)
    scores, labels = drawn(20_000)
    plain = IsotonicRegression().fit(scores, labels)
    inner = np.abs(scores) < 1.5
    np.testing.assert_allclose(fit_calibration(scores, labels)(scores[inner]), plain.predict(scores[inner]), atol=0.03)


def test_the_rule_counts_hits_and_misses():
    rows = 5 * ISOTONIC_FROM
    for hits, kind in ((ISOTONIC_FROM, "isotonic"), (ISOTONIC_FROM - 1, "sigmoid")):
        labels = np.arange(rows) < hits
        assert fit_calibration(-np.arange(rows), labels).kind == kind
        assert fit_calibration(np.arange(rows), ~labels).kind == kind
    scores, labels = drawn(rows)
    groups = np.arange(rows) // 10
    together = fit_calibration(scores, labels, groups=groups)
    assert together.kind == "sigmoid"
    assert together.rows == pytest.approx(rows / 10)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_count_relative_to_each_other(kind):
    scores, labels = drawn(300)
    plain = fit_calibration(scores, labels, kind=kind)
    np.testing.assert_allclose(fit_calibration(scores, labels, np.full(300, 1e-6), kind=kind)(scores), plain(scores))
    weights = np.where(np.arange(300) < 200, 1.0, 0.0)
    some = fit_calibration(scores[:200], labels[:200], kind=kind)
    np.testing.assert_array_equal(fit_calibration(scores, labels, weights, kind=kind)(scores), some(scores))
    heavy = fit_calibration(scores, labels, np.where(labels == 1, 5.0, 1.0), kind=kind)
    assert heavy(scores).mean() > plain(scores).mean() + 0.1
    assert heavy.rows < plain.rows == 300


@pytest.mark.parametrize("kind", KINDS)
def test_the_base_rate_where_scores_say_nothing_or_the_reverse(kind):
    labels = np.arange(200) % 4 == 0
    for scores in (np.zeros(200), -labels.astype(float), np.full(200, 1e300)):
        chances = fit_calibration(scores, labels, kind=kind)(scores)
        assert len(set(chances)) == 1
        assert chances[0] == pytest.approx(0.25, abs=0.01)


# the number of hits


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("behind", [10, 50, 300])
@pytest.mark.parametrize("k", [1, 5, 20, 100])
def test_intervals_hold_the_number_of_hits_as_often_as_they_say(share, behind, k):
    """The chance is learnt from rows that were seen, and other rows are drawn; small numbers of hits are coarse."""
    rng = np.random.default_rng(0)
    times = 400
    seen, hits = rng.binomial(behind, share, times), rng.binomial(k, share, times)
    intervals = {h: predictive_interval(np.full(k, (h + share) / (behind + 1)), behind) for h in set(seen)}
    covered = np.mean([intervals[h][1] <= x <= intervals[h][2] for h, x in zip(seen, hits, strict=True)])
    assert covered >= 0.87
    if k * share * (1 - share) > 4:
        assert covered <= 0.97


@pytest.mark.parametrize("n", [200, 2000])
def test_intervals_of_calibrated_tops_hold_the_number_of_hits(n):
    covered, widths = [], []
    for seed in range(100):
        calibration = fit_calibration(*drawn(n, seed))
        scores, labels = drawn(n, seed + 1000)
        top = np.argsort(-scores)[:40]
        expected, low, high = calibration.predictive_interval(scores[top])
        assert low <= expected <= high
        assert expected == pytest.approx(calibration(scores[top]).sum())
        covered.append(low <= labels[top].sum() <= high)
        widths.append(high - low)
    assert 0.85 <= np.mean(covered) <= 1
    assert np.mean(widths) < 16


def test_reliability_of_rows():
    calibration = fit_calibration(*drawn(40_000))
    scores, labels = drawn(4000, seed=1)
    table = calibration.reliability(scores, labels, bins=8)
    assert table["rows"].sum() == 4000
    assert table["predicted"].is_monotonic_increasing
    inside = (table["low"] <= table["predicted"]) & (table["predicted"] <= table["high"])
    assert inside.mean() >= 0.75
    assert len(calibration.reliability(np.zeros(9), np.arange(9) % 2)) == 1  # one chance, one bin


# rankers


@pytest.mark.parametrize("name", FITTED)
def test_every_ranker_has_chances_that_files_models_and_pickles_keep(name, tmp_path):
    ranker, lists = calibrated(name)
    X = one_list(300, seed=5)[0]
    X[:20] = X[20:40]  # ties
    qid = np.arange(300) % 9 if lists else None
    pairs = ranker.predict_proba(X, qid)
    assert pairs.shape == (300, 2)
    np.testing.assert_allclose(pairs.sum(axis=1), 1, rtol=1e-15)
    chances = pairs[:, 1]
    scores, _ = ranker._placed(ranker._features(X), qid)
    assert (np.diff(chances[np.argsort(scores, kind="stable")]) >= 0).all()
    assert all(len(set(chances[scores == one])) == 1 for one in scores[:40])
    ranked = ranker.rank(X, qid)
    np.testing.assert_array_equal(ranked.sort_index()["chance"], chances)

    for other in (reloaded(ranker, tmp_path), pickle.loads(pickle.dumps(ranker)), copy.deepcopy(ranker)):
        np.testing.assert_array_equal(other.predict_proba(X, qid)[:, 1], chances)
    assert clone(ranker).calibration_ is None

    found = outputs_of(session_of(ranker, tmp_path), X, qid)
    assert list(found)[-1] == "probability"
    np.testing.assert_allclose(found["probability"], ranker.calibration_(found["score"]), rtol=0, atol=1e-12)
    if not any(word in name for word in ("mlp", "network", "attention")):
        np.testing.assert_allclose(found["probability"], chances, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distinct", [1, 2, 3, 400])
def test_models_have_both_kinds_of_maps(kind, distinct, tmp_path):
    scores, labels = drawn(400)
    scores = np.round(scores * distinct) if distinct < 400 else scores
    scores = np.zeros(400) if distinct == 1 else scores
    ranker = ScoreColumn(0).fit(scores[:, None], labels)
    ranker.calibration_ = fit_calibration(scores, labels, kind=kind)
    rows = np.concatenate([scores, np.linspace(-9, 9, 999), [-1e150, 1e150]])[:, None]
    found = outputs_of(session_of(ranker, tmp_path), rows)["probability"]
    np.testing.assert_allclose(found, ranker.predict_proba(rows)[:, 1], rtol=0, atol=1e-12)


def test_a_ranker_that_knows_its_rows_by_heart_gets_the_base_rate_on_noise():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), (np.arange(600) % 3 == 0).astype(int)
    ranker = EstimatorRanker(DecisionTreeClassifier(random_state=0)).fit(X, y)
    assert (ranker.predict(X) == y).all()
    chances = ranker.calibrate(X, y).predict_proba(X)[:, 1]
    assert np.abs(chances - 1 / 3).max() < 0.08
    seen = ranker.calibrate(X, y, folds=None).predict_proba(X)[:, 1]  # what the clones are for
    assert np.abs(seen - y).max() < 0.02


def test_two_stages_read_from_a_file_keep_their_base_where_they_are_calibrated(tmp_path):
    X, y = one_list(120)
    ranker = TwoStageRanker(DecisionTreeClassifier(max_depth=3, random_state=0), STAGE, 30, choose=False).fit(X, y)
    ranker.save(tmp_path / f"model{ranker.file_suffix}")
    read = TwoStageRanker.load(tmp_path / f"model{ranker.file_suffix}")
    scores = read.predict(X)
    assert (read.calibrate(X, y).predict(X) == scores).all()


class Recorder(BaseEstimator):
    """Logistic regression that records the rows of each fit, whose numbers are in the last column."""

    fits: ClassVar = []

    def fit(self, X, y):
        Recorder.fits.append(X[:, -1].astype(int))
        self.model_ = LogisticRegression().fit(X[:, :-1], y)
        return self

    def decision_function(self, X):
        return self.model_.decision_function(X[:, :-1])


@pytest.mark.parametrize("ranker", [EstimatorRanker(Recorder()), TwoStageRanker(Recorder(), STAGE, 30, choose=False)])
def test_groups_and_queries_are_never_divided_and_every_row_is_held_out_once(ranker):
    X, y = one_list(120)
    X = np.column_stack([X, np.arange(120)])
    group = np.arange(120) // 6
    for given_ in ({"group": group}, {"qid": group}, {"qid": np.arange(120) // 3, "group": group}, {}):
        ranker.fit(X, y, **({"qid": given_["qid"]} if "qid" in given_ else {}))
        Recorder.fits.clear()
        ranker.calibrate(X, y, **given_, folds=4)
        held = [np.setdiff1d(np.arange(120), seen) for seen in Recorder.fits if len(seen) < 120]
        assert len(held) == 4
        assert sorted(np.concatenate(held)) == list(range(120))
        for name, numbers in given_.items():
            assert all(len(set(numbers[part]) & set(np.delete(numbers, part))) == 0 for part in held), name


def test_weights_leave_rows_out_and_must_be_taken():
    X, y = one_list(300)
    weights = (np.arange(300) < 200).astype(float)
    ranker = LogisticRegressionRanker().fit(X, y, sample_weight=weights)
    some = LogisticRegressionRanker().fit(X[:200], y[:200]).calibrate(X[:200], y[:200])
    weighted = ranker.calibrate(X, y, sample_weight=weights)
    np.testing.assert_allclose(weighted.predict_proba(X), some.predict_proba(X), atol=1e-9)
    heavy = np.where(y == 1, 4.0, 1.0)
    chances = ranker.fit(X, y, sample_weight=heavy).calibrate(X, y, sample_weight=heavy).predict_proba(X)[:, 1]
    assert chances.mean() > y.mean() + 0.1
    with pytest.raises(ValueError, match="sample_weight: the fit of a CardRanker takes none"):
        CardRanker(max_questions=1).fit(X, y).calibrate(X, y, sample_weight=heavy)
    with pytest.raises(ValueError, match="folds must be an integer >= 2 or None"):
        ranker.calibrate(X, y, folds=1)
    with pytest.raises(ValueError, match="calibrate needs at least two queries to hold rows out"):
        SurrogateRanker().fit(X, y).calibrate(X, y, np.zeros(300, dtype=int))


def test_recentring_drops_the_chances():
    X, y = one_list(120)
    stage = TwoStageRanker("logistic", STAGE, 40, choose=False).fit(X, y).calibrate(X, y)
    assert stage.recentred().calibration_ is None
    assert stage.calibration_ is not None
