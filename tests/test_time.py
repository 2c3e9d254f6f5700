"""Rows in the order of time: nothing is learned from later rows to rank earlier ones."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from ltr.data import DataError
from ltr.data.times import blocks_of, checked_times
from ltr.exact import Limits
from ltr.fitting import held_out
from ltr.rankers import ExactRanker, ScoreColumn, SurrogateRanker, TwoStageRanker
from ltr.rankers.choice import FOLDS, folds_of

EXACT = ExactRanker("dcg", limits=Limits(time_limit=0.3))


def _rows(n=240, weeks=12, seed=0):
    """Return rows in no order of time: features of which the first is the week, labels, and the week of each."""
    rng = np.random.default_rng(seed)
    week = rng.permutation(np.arange(n) % weeks)
    X = np.column_stack([week, rng.normal(size=(n, 3))])
    return X, (rng.random(n) < 1 / (1 + np.exp(1 - X[:, 1] - X[:, 2]))).astype(int), week


class Spy(BaseEstimator):
    """A logistic regression whose scores have the latest week it learned from (column 0) as their whole part."""

    def fit(self, X, y):
        self.latest_ = np.asarray(X)[:, 0].max()
        self.model_ = LogisticRegression().fit(np.asarray(X)[:, 1:], y)
        return self

    def decision_function(self, X):
        return self.latest_ + 0.9 * self.model_.predict_proba(np.asarray(X)[:, 1:])[:, 1]


def test_blocks_of_time_divide_no_moment_and_are_cut_where_the_share_is_nearest():
    rng = np.random.default_rng(0)
    for _ in range(300):
        times = rng.integers(0, rng.integers(1, 12), rng.integers(1, 40))
        shares = np.sort(rng.uniform(0.01, 0.99, rng.integers(1, 5)))
        blocks = blocks_of(times, shares)
        moments = np.unique(times)
        of_moment = [set(blocks[times == moment]) for moment in moments]
        assert all(len(found) == 1 for found in of_moment)
        in_order = [found.pop() for found in of_moment]
        assert in_order == sorted(in_order)
        assert sorted(set(in_order)) == list(range(max(in_order) + 1))
        possible = [np.mean(times < moment) for moment in moments[1:]]
        wanted = {min(possible, key=lambda share, s=s: abs(share - s)) for s in shares} if possible else set()
        assert {np.mean(blocks < block) for block in range(1, max(in_order) + 1)} == wanted


@pytest.mark.parametrize("by_query", [False, True])
def test_folds_in_time_learn_from_all_that_was_before_and_from_nothing_else(by_query):
    _, y, week = _rows()
    lists = None if not by_query else week * 3 + np.arange(len(y)) % 3
    groups = np.arange(len(y)) % 40  # of which each has rows in several weeks
    folds = folds_of(y.astype(float), lists, groups if lists is None else None, week, seed=3, repeats=4)
    assert [fold.repeat for fold in folds] == [0] * FOLDS
    assert len({fold.name for fold in folds}) == FOLDS
    for fold in folds:
        first = week[fold.held].min()
        assert np.array_equal(fold.train, np.flatnonzero(week < first))
    held = np.concatenate([fold.held for fold in folds])
    assert len(held) == len(set(held)) == (week >= week[folds[0].held].min()).sum()
    sizes = [len(fold.held) for fold in folds] + [len(folds[0].train)]
    assert max(sizes) == min(sizes) == 40  # six blocks of two weeks
    assert folds_of(y.astype(float), None, None, np.zeros(240, dtype=int), 0) == []


def test_a_block_before_which_there_is_nothing_to_learn_is_not_held_out():
    week = np.repeat(np.arange(6), 10)
    y = ((np.arange(60) % 3 == 0) & (week >= 2)).astype(float)
    folds = folds_of(y, None, None, week, 0)
    assert [int(week[fold.held][0]) for fold in folds] == [3, 4, 5]


def test_folds_at_random_hold_every_row_out_once_a_repeat():
    y = (np.arange(60) % 3 == 0).astype(float)
    folds = folds_of(y, None, None, None, seed=0, repeats=2)
    assert len({fold.name for fold in folds}) == len(folds) == 2 * FOLDS
    for _, members in itertools.groupby(folds, key=lambda fold: fold.repeat):
        assert sorted(np.concatenate([fold.held for fold in members])) == list(range(60))
    assert all(sorted([*fold.train, *fold.held]) == list(range(60)) for fold in folds)


@pytest.mark.parametrize("choose", [True, False])
@pytest.mark.parametrize("by_query", [False, True])
def test_no_row_counts_by_the_score_of_a_base_that_learned_from_its_moment_or_a_later_one(
    monkeypatch, choose, by_query
):
    """The whole part of a score is the latest week that its base learned from, see `Spy`."""
    X, y, week = _rows()
    qid = week * 3 + np.arange(len(y)) % 3 if by_query else None
    learned, ranked = [], []
    fit_stage, merged = TwoStageRanker._fit_stage, TwoStageRanker._merged

    def recorded_stage(self, exact, scores, training, *rest, **options):
        learned.append((np.floor(scores), training.features[:, 0]))
        return fit_stage(self, exact, scores, training, *rest, **options)

    def recorded_merge(self, scores, cuts, features, queries):
        ranked.append((np.floor(scores), features[:, 0]))
        return merged(self, scores, cuts, features, queries)

    monkeypatch.setattr("ltr.rankers.two_stage._PartScores.on_the_scale_of", lambda self, own: self.scores)
    monkeypatch.setattr(TwoStageRanker, "_fit_stage", recorded_stage)
    monkeypatch.setattr(TwoStageRanker, "_merged", recorded_merge)
    options = {"choose": True} if choose else {"choose": False, "base_score": True}
    ranker = TwoStageRanker(Spy(), EXACT, 40, **options).fit(X, y, qid, time=week)
    for of_base, weeks in (*learned, *ranked):
        assert (of_base < weeks).all()
    assert {weeks.max() for _, weeks in learned} == ({3, 5, 7, 9, 11} if choose else {11})
    assert {weeks.min() for _, weeks in learned} == {2}  # the first block has no score out of fold
    assert sorted({weeks.min() for _, weeks in ranked}) == ([4, 6, 8, 10] if choose else [])
    if choose:
        assert ranker.choice_.similar is None


def test_a_choice_in_time_is_the_same_for_shuffled_rows_and_for_dates():
    X, y, week = _rows()
    order = np.random.default_rng(1).permutation(len(y))
    dates = np.datetime64("2024-01-01") + 7 * week
    first = TwoStageRanker("logistic", EXACT, 40).fit(X, y, time=week)
    for features, labels, time in ((X[order], y[order], week[order]), (X, y, dates), (X, y, pd.Series(dates))):
        again = TwoStageRanker("logistic", EXACT, 40).fit(features, labels, time=time)
        assert again.choice_.gains == pytest.approx(first.choice_.gains, abs=1e-6)
    assert TwoStageRanker("logistic", EXACT, 40).fit(X, y).choice_.gains != first.choice_.gains


def test_a_column_of_scores_needs_no_block_to_be_left_out():
    X, y, week = _rows()
    inner = {}
    ranker = TwoStageRanker(ScoreColumn(1), EXACT, 40).fit(X, y, time=week, inner=inner)
    assert len(inner) == FOLDS
    assert ranker.choice_ is not None
    with pytest.raises(ValueError, match="choose needs two moments at least"):
        TwoStageRanker(ScoreColumn(1), EXACT, 40).fit(X, y, time=np.zeros(len(y)))


def test_a_surrogate_validates_by_the_latest_rows(monkeypatch):
    X, y, week = _rows()
    drawn = []

    def recorded(*arguments):
        drawn.append(held_out(*arguments))
        return drawn[-1]

    monkeypatch.setattr("ltr.rankers.surrogate.held_out", recorded)
    surrogate = SurrogateRanker("ranknet", validation=0.3, max_steps=3)
    surrogate.fit(X, y, group=np.arange(240) % 40, time=week)
    assert np.array_equal(drawn[0], week >= 8)
    TwoStageRanker(surrogate, EXACT, 50).fit(X, y, time=week)
    for rows in drawn[1:]:
        assert rows.any()
    weights = np.where((y == 0) & (week == 11), 0.0, 1.0)
    SurrogateRanker("ranknet", validation=0.3, max_steps=3).fit(X, y, time=week, sample_weight=weights)
    assert len(drawn[-1]) == (weights > 0).sum()


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([1.0, 2.0], r"time: times must be one per row \(4\)"),
        ([1.0, np.nan, 2.0, 3.0], "must not be missing or infinite, got nan in row 2"),
        ([1.0, np.inf, 2.0, 3.0], "must not be missing or infinite, got inf in row 2"),
        (np.array(["2024-01-01", "NaT", "2024-01-02", "2024-01-02"], dtype="datetime64[D]"), "got NaT in row 2"),
        ([None, 1, 2, 3], "must not be missing, got none in row 1"),
        (["a", "b", "c", "d"], "must be numbers or dates"),
        ([1, 1, 2, 3], r"all rows of a query must have the same time.* got 3 in row 4 and 2 in an earlier row"),
    ],
)
def test_times_that_cannot_be_used_are_refused(time, message):
    lists = np.array([0, 0, 1, 1]) if "query" in message else None
    with pytest.raises(DataError, match=message):
        checked_times(time, 4, lists)
    X, y = np.arange(8.0).reshape(4, 2), [0, 1, 0, 1]
    for ranker in (TwoStageRanker(choose=False), SurrogateRanker()):
        with pytest.raises(DataError, match=message):
            ranker.fit(X, y, lists, time=time)
