"""Correcting a base score, and the choice between the base and its corrections."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

from ltr.exact import Limits
from ltr.rankers import Choice, ExactRanker, ScoreColumn, TwoStageRanker
from ltr.rankers.choice import BAR, BASE, FOLDS, SPREADS, PartScores, compare, folds_of, places
from ltr.rankers.inputs import LabelledRows
from ltr.rankers.unseen import _seen_before
from ltr.statistics import RankStatistic
from tests.rankers.travelling import reloaded

EXACT = ExactRanker("dcg", limits=Limits(time_limit=2.0, node_limit=50))
DCG = (RankStatistic.parse("dcg"), "exp2", False)


def choice_of(results, splits, names, labels, lists, groups, measure, seed):
    """Return the choice between corrections of a linear base."""
    found = compare(results, splits, names, LabelledRows(None, labels, lists, groups), measure, seed)
    return Choice.by_rule(*found, str(measure[0]), linear=True)


@pytest.fixture
def two_repeats(monkeypatch):
    """Compare on two repeats of the inner splits, for speed."""
    monkeypatch.setattr("ltr.rankers.choice.REPEATS", 2)


def _data(n=240, signal=1.5, seed=0, known=1.0):
    """Return rows of which column 0 is a score that knows some of what the labels depend on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    chance = 1 / (1 + np.exp(1.5 - known * X[:, 0] - signal * X[:, 1]))
    return X, (rng.random(n) < chance).astype(int)


def test_parts_have_equal_shares_of_labels_or_whole_queries():
    y, groups = np.arange(60) % 3 == 0, np.arange(60) // 6
    for seed, lists in ((1, None), (2**32 + 1, None), (1, groups)):
        held = [fold.held for fold in folds_of(LabelledRows(None, y, lists), seed, 1)]
        assert list(map(len, held)) == [12] * FOLDS
        assert lists is not None or [y[rows].sum() for rows in held] == [4] * FOLDS
        assert lists is None or all((np.bincount(groups[rows]) % 6 == 0).all() for rows in held)
    assert folds_of(LabelledRows(None, np.arange(10) == 0), seed=0) == []
    assert folds_of(LabelledRows(None, y, np.zeros(60, dtype=int)), seed=0) == []


def test_inner_splits_hold_out_every_row_once_a_repeat(two_repeats):
    splits = folds_of(LabelledRows(None, np.arange(60) % 3 == 0), seed=0)
    assert len({split.name for split in splits}) == len(splits) == 2 * FOLDS
    for repeat in range(2):
        held = np.concatenate([split.held for split in splits if split.repeat == repeat])
        assert sorted(held.tolist()) == list(range(60))
    assert all(sorted([*split.train, *split.held]) == list(range(60)) for split in splits)


@pytest.mark.parametrize("times", [None, np.arange(60) // 5])
def test_base_scores_of_the_rows_of_a_correction_come_from_fits_without_those_held_out(times):
    folds = folds_of(LabelledRows(None, np.arange(60) % 3 == 0, times=times), 0, 1)
    for split in folds[1:]:
        for other, fitted in _seen_before(split, [fold for fold in folds if fold is not split]):
            assert not {*split.held, *other.held} & set.intersection(*(set(fold.train) for fold in fitted))


def test_the_comparison_finds_gains_that_are_known():
    """A candidate in the perfect order gains the difference of the statistics, one that ties with the base nothing."""
    rng = np.random.default_rng(0)
    y = (np.arange(50) < 15).astype(float)
    splits = folds_of(LabelledRows(None, y), seed=0)
    base = {split.name: places(rng.normal(size=len(split.held)), None) for split in splits}
    perfect = {split.name: places(y[split.held] + 0.01 * base[split.name], None) for split in splits}
    results = {name: [base[name], base[name], perfect[name]] for name in base}
    choice = choice_of(results, splits, [BASE, "same", "perfect"], y, None, None, DCG, seed=0)
    assert (choice.chosen, choice.gains["same"]) == ("perfect", 0.0)
    best = (1 / np.log2(np.arange(2, 17))).sum()
    assert 0 < choice.gains["perfect"] < best
    assert choice.low < choice.expected < choice.gains["perfect"] < choice.high
    noise = 2 * choice.deviations["perfect"] ** 2
    assert choice.expected == pytest.approx(choice.gains["perfect"] / (1 + noise / choice.gains["perfect"] ** 2))
    worse = {name: [perfect[name], base[name]] for name in base}
    kept = choice_of(worse, splits, [BASE, "random"], y, None, None, DCG, seed=0)
    assert (kept.chosen, kept.expected, kept.low, kept.high, kept.reranks) == (BASE, 0.0, 0.0, 0.0, False)
    assert kept.gains["random"] == pytest.approx(-choice.gains["perfect"], rel=0.2)
    again = Choice.from_dict(json.loads(json.dumps(choice.to_dict())))
    assert (again, str(again)) == (choice, str(choice))


def test_gains_too_small_to_be_told_from_noise_keep_the_base():
    """Ten queries gain as much as nine lose: the mean is positive, but small beside its deviation."""
    y, groups = np.tile([1.0, 0.0], 24), np.repeat(np.arange(24), 2)
    splits = folds_of(LabelledRows(None, y, groups), seed=0)

    def choice(gaining, losing):
        up = {**dict.fromkeys(gaining, (0.2, 0.8)), **dict.fromkeys(losing, (0.8, 0.2))}  # place of the positive
        results = {}
        for split in splits:
            places_of = [up.get(group, (0.8, 0.8)) for group in groups[split.held][::2]]
            results[split.name] = [[x for of in places_of for x in (of[i], 0.5)] for i in (0, 1)]
        return choice_of(results, splits, [BASE, "other"], y, groups, None, DCG, seed=0)

    kept, changed = choice(range(10), range(10, 19)), choice(range(10), range(10, 18))
    for found, reranks in ((kept, False), (changed, True)):
        assert found.gains["other"] > 0
        assert (found.gains["other"] > BAR * found.deviations["other"]) == found.reranks == reranks


def test_what_is_promised_on_noise_is_little_although_the_largest_of_several_gains_is_chosen(two_repeats):
    """The true gain of every candidate is 0, and that of the chosen one is overrated, as the largest of three is."""
    choices = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y, (base, moved) = (rng.random(200) < 0.3).astype(float), rng.normal(size=(2, 200))
        orders = [base + spread * moved for spread in (0, *SPREADS)]
        splits = folds_of(LabelledRows(None, y), seed)
        results = {split.name: [places(order[split.held], None) for order in orders] for split in splits}
        choices.append(choice_of(results, splits, [BASE, "a", "b", "c"], y, None, None, DCG, seed))
    changed = [choice for choice in choices if choice.reranks]
    assert 15 < len(changed) < 45
    raw = np.mean([choice.gains[choice.chosen] for choice in changed])
    assert raw > 0.15
    assert 0 < np.mean([choice.expected for choice in changed]) < 0.5 * raw
    assert np.mean([choice.low <= 0 <= choice.high for choice in choices]) >= 0.9


def test_gains_of_rows_in_groups_vary_as_those_of_so_many_rows_do(two_repeats):
    """Five copies of every row: groups are resampled whole. Deviations grow by sqrt(5), and more, for copies tie."""
    groups = np.repeat(np.arange(40), 5)
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        y, scores = (rng.random(40) < 0.3).astype(float)[groups], rng.normal(size=(2, 40))[:, groups]
        splits = folds_of(LabelledRows(None, y, None, groups), seed)
        results = {split.name: [places(row[split.held], None) for row in scores] for split in splits}
        alone, together = (
            choice_of(results, splits, [BASE, "a"], y, None, which, DCG, seed) for which in (None, groups)
        )
        ratios.append(together.deviations["a"] / alone.deviations["a"])
    assert 1.8 < np.mean(ratios) < 3.3


def test_gains_of_queries_in_groups_vary_as_those_of_so_many_queries_do():
    """Pairs of queries that gain the same are worth one: the deviation of the mean is larger by sqrt(2)."""
    y, lists = np.tile([1.0, 0.0], 24), np.repeat(np.arange(24), 2)
    groups, gains = lists // 2, np.random.default_rng(0).random(12) < 0.5
    splits = folds_of(LabelledRows(None, y, lists, groups), seed=0)
    results = {}
    for split in splits:
        up = [0.8 if gains[group] else 0.2 for group in groups[split.held][::2]]
        results[split.name] = [[x for place in of for x in (place, 0.5)] for of in ([0.2] * len(up), up)]
    alone, together = (choice_of(results, splits, [BASE, "a"], y, lists, which, DCG, 0) for which in (None, groups))
    assert together.gains == alone.gains
    ratio = together.deviations["a"] / alone.deviations["a"]
    assert ratio == pytest.approx((2 * 23 / 22) ** 0.5)  # sums of squares over 12 - 1 and over 24 - 1


@pytest.mark.parametrize("by_query", [False, True])
def test_a_correction_is_chosen_where_the_base_lacks_a_feature_and_pays_off_on_new_rows(by_query, two_repeats):
    X, y = _data()
    qid = np.arange(len(y)) // 12 if by_query else None
    ranker = TwoStageRanker(ScoreColumn(0), EXACT, None, choose=True).fit(X, y, qid)
    assert ranker.choice_.reranks
    assert str(ranker.choice_).startswith(f"on new lists expect {ranker.choice_.expected:+.3g} dcg (90 %")
    assert ranker.base_weight_ > 0
    assert ranker.coef_[0] == 0  # the base score is not among the features
    new, labels = _data(seed=1)
    lists = np.arange(len(labels)) // 12 if by_query else None
    plain = ScoreColumn(0).fit(X, y)
    assert ranker.score(new, labels, lists) > plain.score(new, labels, lists)
    again = TwoStageRanker(ScoreColumn(0), EXACT, None, choose=True).fit(X, y, qid)
    assert again.choice_ == ranker.choice_
    assert np.array_equal(again.coef_, ranker.coef_)


def test_the_base_is_kept_where_nothing_is_gained_and_the_rest_stays_known(tmp_path, two_repeats):
    X, y = _data(signal=0.0, known=2.5)
    ranker = TwoStageRanker(ScoreColumn(0), EXACT, 120, choose=True).fit(X, y)
    assert not ranker.choice_.reranks
    assert ranker.coef_ is None
    assert np.array_equal(ranker.predict(X), X[:, 0])
    assert "the base order is kept" in ranker.note_
    assert ranker.choice_.list_gain >= 0
    assert ranker.solution_.bound >= ranker.solution_.value
    loaded = reloaded(ranker, tmp_path)
    assert loaded.choice_ == ranker.choice_
    assert np.array_equal(loaded.predict(X), X[:, 0])


def test_scores_of_training_rows_are_out_of_fold():
    """Its own rows are a nearest neighbour's memory: corrections learnt from them would trust it blindly."""
    X, y = _data()
    memory = KNeighborsClassifier(1).fit(X, y)
    assert (memory.predict_proba(X)[:, 1] == y).all()
    ranker = TwoStageRanker(KNeighborsClassifier(1), EXACT, None, base_score=True, choose=False).fit(X, y)
    base_column = ranker.problem_.X[:, 0]
    own = ranker.list_scores_  # on the scale of the base ranker, or its threshold for new rows would mean another share
    assert np.corrcoef(own, base_column)[0, 1] == pytest.approx(1)
    assert own.mean() == pytest.approx(memory.predict_proba(X)[:, 1].mean(), abs=0.1)
    assert np.mean((base_column > np.median(base_column)) == y) < 0.85
    fixed = TwoStageRanker(memory, EXACT, None, base_score=True, choose=False).fit(X, y, base_is_fitted=True)
    assert fixed.base_.estimator_ is memory
    assert np.array_equal(fixed.problem_.X, ranker.problem_.X)


def test_scores_of_different_parts_come_on_one_scale():
    rng = np.random.default_rng(0)
    own, seen = rng.normal(3, 2, 50), np.arange(50) < 30
    scores = PartScores.of(rng.normal(-7, 0.1, 50), seen).on_the_scale_of(own)
    assert (scores[seen].mean(), scores[seen].std()) == pytest.approx((own.mean(), own.std()))
    assert PartScores.of(np.full(50, 2.0), seen).on_the_scale_of(own) == pytest.approx(np.full(50, own.mean()))


def test_inner_lists_are_reranked_to_the_same_share_of_their_length(two_repeats, monkeypatch):
    X, y = _data(200)
    seen, fit_stage = [], TwoStageRanker._fit_stage

    def recorded(self, exact, scores, *rest, **options):
        seen.append((self.top_k, len(scores)))
        return fit_stage(self, exact, scores, *rest, **options)

    monkeypatch.setattr(TwoStageRanker, "_fit_stage", recorded)
    TwoStageRanker("logistic", EXACT, 50).fit(X, y)
    assert set(seen) == {(40, 160), (50, 200)}  # four of five parts
    seen.clear()
    TwoStageRanker("logistic", EXACT, 50).fit(X, y, time=np.arange(200) % 20)
    last = seen.pop()
    assert last[0] == 50
    assert {top_k for top_k, length in seen} == {round(50 * length / last[1]) for _, length in seen}
    assert len(set(seen)) == 4


def test_columns_of_scores_are_found_by_name_or_index():
    X, y = _data(60)
    frame = pd.DataFrame(X, columns=["model", "age", "bmi"])
    ranker = ScoreColumn("model").fit(frame, y)
    assert ranker.index_ == 0
    assert np.array_equal(ranker.predict(frame), ScoreColumn(0).fit(X, y).predict(X))
    for column, table in (("modle", frame), ("model", X), (3, X), (-1, X), (True, X)):
        with pytest.raises(ValueError, match="column must be"):
            ScoreColumn(column).fit(table, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"choose": "yes"}, "choose must be true or false"),
        ({"spread": 0.5, "choose": False}, "spread needs base_score=True"),
        ({"spread": 0.5}, "spread needs base_score=True and choose=False"),
        ({"spread": -1.0, "base_score": True}, "spread must be"),
        ({"exact": ExactRanker("dcg", recentre="l2")}, "recentre must be None"),
        ({"exact": "weights(1,2,3)"}, "lists of any length"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message):
    X, y = _data(40)
    with pytest.raises(ValueError, match=message):
        TwoStageRanker("logistic", **{"exact": EXACT, "top_k": 10, **options}).fit(X, y)


def test_a_top_with_nothing_to_order_keeps_the_base_and_says_so(two_repeats):
    """The first 20 rows of the whole list are positive, but not those of every inner list."""
    X, y = _data(200, signal=3.0)
    X[:20, 0], y[:20] = np.linspace(9, 10, 20), 1
    ranker = TwoStageRanker(ScoreColumn(0), EXACT, 20, choose=True)
    ranker.fit(X, y)
    assert ranker.coef_ is None
    assert not ranker.choice_.reranks
    assert ranker.choice_.expected == 0
    assert "single class" in ranker.note_


@pytest.mark.parametrize("spread", [None, 0.5])
def test_the_base_score_has_no_price_and_is_not_counted(spread):
    X, y = _data()
    exact = ExactRanker("dcg", limits=Limits(time_limit=5.0), C=0.05)
    ranker = TwoStageRanker(ScoreColumn(0), exact, 40, base_score=True, spread=spread, choose=False).fit(X, y)
    assert ranker.problem_.free == (0,)
    assert np.flatnonzero(ranker.coef_).tolist() in ([1], [1, 2])
    assert ranker.base_weight_ > 0
    assert ranker.solution_.status.value == "optimal"
    options = {"base_score": True, "spread": spread, "choose": False}
    kept = TwoStageRanker(ScoreColumn(0), ExactRanker("dcg", C=50.0), 40, **options).fit(X, y)
    assert not kept.coef_.any()
    assert kept.base_weight_ > 0
    assert np.array_equal(kept.order(X), ScoreColumn(0).fit(X, y).predict(X).argsort(kind="stable")[::-1])


def test_the_base_score_is_not_counted_by_max_nonzeros():
    X, y = _data()
    exact = ExactRanker("dcg", max_nonzeros=1, limits=Limits(time_limit=5.0))
    ranker = TwoStageRanker("logistic", exact, 40, base_score=True, choose=False).fit(X, y)
    assert ranker.problem_.free == (0,)
    assert np.count_nonzero(ranker.base_.coef_) == 1
    assert not ranker.coef_[ranker.base_.coef_ == 0].any()
