"""Rows in the order of time: nothing is learned from later rows to rank earlier ones."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import ltr
from ltr.data import DataError, TableError
from ltr.data.columns import Column
from ltr.data.kinds import MeanEncoding
from ltr.data.preparation import cross_fitted
from ltr.data.times import blocks_of, checked_times, times_of
from ltr.exact import Limits
from ltr.fitting import held_out
from ltr.rankers import ExactRanker, SurrogateRanker, TwoStageRanker
from ltr.rankers.choice import FOLDS, folds_of
from ltr.rankers.inputs import LabelledRows
from trainers.cli import main
from trainers.config import parse_config
from trainers.task.data import inner_splits, read_source, split_of

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


def _recorded(monkeypatch):
    """Return lists that receive the scores by a base that corrections learn from and are applied to, with the weeks."""
    learned, ranked = [], []
    fit_stage, merged = TwoStageRanker._fit_stage, TwoStageRanker._merged

    def recorded_stage(self, exact, scores, training, *rest, **options):
        learned.append((np.floor(scores), training.features[:, 0]))
        return fit_stage(self, exact, scores, training, *rest, **options)

    def recorded_merge(self, scores, features, queries):
        ranked.append((np.floor(scores), features[:, 0]))
        return merged(self, scores, features, queries)

    monkeypatch.setattr("ltr.rankers.two_stage.PartScores.on_the_scale_of", lambda self, own: self.scores)
    monkeypatch.setattr(TwoStageRanker, "_fit_stage", recorded_stage)
    monkeypatch.setattr(TwoStageRanker, "_merged", recorded_merge)
    return learned, ranked


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
    rows = LabelledRows(None, y.astype(float), lists, groups if lists is None else None, week)
    folds = folds_of(rows, seed=3, repeats=4)
    assert [fold.repeat for fold in folds] == [0] * FOLDS
    assert len({fold.name for fold in folds}) == FOLDS
    for fold in folds:
        first = week[fold.held].min()
        assert np.array_equal(fold.train, np.flatnonzero(week < first))
    held = np.concatenate([fold.held for fold in folds])
    assert len(held) == len(set(held)) == (week >= week[folds[0].held].min()).sum()
    sizes = [len(fold.held) for fold in folds] + [len(folds[0].train)]
    assert max(sizes) == min(sizes) == 40  # six blocks of two weeks
    assert folds_of(LabelledRows(None, y.astype(float), times=np.zeros(240, dtype=int)), 0) == []


def test_a_block_before_which_there_is_nothing_to_learn_is_not_held_out():
    week = np.repeat(np.arange(6), 10)
    y = ((np.arange(60) % 3 == 0) & (week >= 2)).astype(float)
    folds = folds_of(LabelledRows(None, y, times=week), 0)
    assert [int(week[fold.held][0]) for fold in folds] == [3, 4, 5]


@pytest.mark.parametrize("choose", [True, False])
@pytest.mark.parametrize("by_query", [False, True])
def test_no_row_counts_by_the_score_of_a_base_that_learned_from_its_moment_or_a_later_one(
    monkeypatch, choose, by_query
):
    """The whole part of a score is the latest week that its base learned from, see `Spy`."""
    X, y, week = _rows()
    qid = week * 3 + np.arange(len(y)) % 3 if by_query else None
    learned, ranked = _recorded(monkeypatch)
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


def _frame(n=240, weeks=12):
    """Return the rows as a table whose column week is text, with a copy of its number as a feature."""
    X, y, week = _rows(n, weeks)
    columns = {"copy": X[:, 0], **{f"x{j}": X[:, j] for j in (1, 2, 3)}, "ill": y}
    return pd.DataFrame({"week": [f"2024-W{number + 1}" for number in week], **columns, "patient": np.arange(n) % 40})


def _split(section, frame=None, **options):
    frames = {}
    if frame is not None:
        frames, section = {"path": frame}, {"path": "(data frame)", "format": "table"} | section
    config = parse_config({"name": "weeks", "data": {"label": "ill", "time": "week", **section, **options}})
    return split_of(config.data, config.seed, read_source(config.data, frames))


@pytest.mark.parametrize("from_file", [True, False])
def test_a_run_trains_on_the_earliest_rows_and_tests_on_the_last(tmp_path, from_file):
    frame = _frame().drop(columns=["copy", "patient"])
    path = str(tmp_path / "weeks.csv")
    frame.to_csv(path, index=False)
    for fraction, weeks in ((0.5, 6), (0.7, 8), (0.01, 1), (0.99, 11)):
        section = {"train_fraction": fraction} | ({"path": path} if from_file else {})
        split = _split(section, None if from_file else frame)
        assert split.feature_names == ("x1", "x2", "x3")
        numbers = frame["week"].str[6:].astype(int)
        assert sorted(split.train.rows) == np.flatnonzero(numbers <= weeks).tolist()
        assert sorted(split.test.rows) == np.flatnonzero(numbers > weeks).tolist()
        names = [f"2024-W{week:02d}" for week in (1, weeks, weeks + 1, 12)]
        spans = [first if first == last else f"{first} to {last}" for first, last in (names[:2], names[2:])]
        assert split.facts["times"] == dict(zip(("train", "test"), spans, strict=True))
        assert f"in the order of week: trained on {spans[0]}, tested on {spans[1]}" in split.notes


def test_queries_are_ranked_at_one_moment():
    frame = _frame()
    frame["ward"] = [f"{week} {number % 3}" for number, week in enumerate(frame["week"])]
    split = _split({}, frame, query="ward")
    assert split.train.n_queries == split.test.n_queries == 18
    assert split.train.times.numbers.max() < split.test.times.numbers.min()
    frame["ward"] = np.arange(len(frame)) % 3
    with pytest.raises(TableError, match="all rows of a query must have the same time, because a list is ranked at"):
        _split({}, frame, query="ward")


def test_inner_splits_of_a_search_roll_forward():
    frame = _frame()
    train = _split({"train_fraction": 0.67}, frame).train  # of eight weeks
    for query, count, share in ((None, 3, 0.25), (None, 2, 0.1), (None, 1, 0.4), ("ward", 3, 0.25), (None, 20, 0.5)):
        frame["ward"] = [f"{week} {number % 3}" for number, week in enumerate(frame["week"])]
        split = _split({"train_fraction": 0.67}, frame, **({} if query is None else {"query": query}))
        found = inner_splits(split, share, count, seed=0)
        assert len(found) == min(count, 7)
        assert len({one.facts["inner"] for one in found}) == len(found)
        held = []
        for one in found:
            weeks = [set(frame["week"].iloc[part.rows].str[6:].astype(int)) for _, part in one.parts]
            assert weeks[0] == set(range(1, min(weeks[1])))
            held += weeks[1]
        assert len(held) == len(set(held))
        assert max(held) == 8
    assert len(train.rows) == 160


def test_mean_labels_of_a_category_come_from_earlier_rows():
    """The label of a row is what its city has not seen before: a mean over other rows would tell."""
    rng = np.random.default_rng(0)
    n = 600
    week = rng.permutation(np.repeat(np.arange(12), 50))
    city = Column("city", [f"c{number}" for number in rng.integers(0, 60, n)])
    encoding = MeanEncoding("city", tuple(city.counts), means=(0.5,) * len(city.counts), mean=0.5)
    y = rng.integers(0, 2, n).astype(float)
    found = cross_fitted(city, encoding, y, times=week)
    for first in range(2, 12, 2):  # of each block of two weeks; its own labels tell its rows nothing either
        later = np.where(week >= first, 1 - y, y)
        known = week < first + 2
        assert np.array_equal(cross_fitted(city, encoding, later, times=week)[known], found[known])
    later = np.where(week >= 8, 1 - y, y)
    assert not np.array_equal(cross_fitted(city, encoding, later, times=week)[week >= 10], found[week >= 10])
    assert not np.array_equal(cross_fitted(city, encoding, later)[week < 8], cross_fitted(city, encoding, y)[week < 8])


def test_an_experiment_ranks_no_row_by_what_learned_from_its_week_or_a_later_one(monkeypatch):
    learned, ranked = _recorded(monkeypatch)
    results = ltr.experiment(
        {"surrogate.losses": [], "baselines.methods": ["tests.data.test_time:Spy"]},
        data=_frame().drop(columns="patient"),
        label="ill",
        time="week",
        exact={"base": "Spy", "top_k": 30, "time_limit": 0.5},
    )
    assert results.complete
    for of_base, weeks in learned:
        assert (of_base < weeks).all()
    assert {weeks.max() for _, weeks in learned} == {1, 2, 3, 4, 5}  # of six weeks to train on
    test = [(of_base, weeks) for of_base, weeks in ranked if weeks.max() > 5]
    assert test
    assert all((of_base == 5).all() for of_base, _ in test)


def test_periods_are_told_in_frames_and_tables(tmp_path, capsys):
    frame = _frame(600, 30)
    quick = {"surrogate": {"losses": []}, "baselines": {"methods": ["logistic_regression"]}}
    results = ltr.experiment(
        quick, data=frame.drop(columns="patient"), label="ill", time="week", exact={"enabled": False, "top_k": 60},
        folder=tmp_path / "weeks",
    )  # fmt: skip
    periods = results.periods
    assert len(periods) == 12  # of 15 weeks in the test set
    assert periods["period"].iloc[-1].endswith("2024-W30")
    assert periods["rows"].sum() == 300
    assert periods["k"].sum() == pytest.approx(60, abs=4)
    ranked = results.ranked
    for one in periods.itertuples():
        rows = ranked[ranked["week"].str[6:].astype(int).between(int(one.period[6:8]), int(one.period[-2:]))]
        assert (len(rows), rows["ill"].sum()) == (one.rows, one.positives)
        assert rows["ill"].head(one.k).sum() == one.hits
        assert one.recall == pytest.approx(one.hits / one.positives)
    assert main(["show", str(tmp_path / "weeks")]) == 0
    assert "test periods, each ranked as a list by logistic_regression" in capsys.readouterr().out
    assert "## Test periods" in (tmp_path / "weeks" / "results.md").read_text()
    stored = json.loads((tmp_path / "weeks" / "results.json").read_text())
    assert stored["rows"][0]["periods"][0]["statistics"]["dcg"] == pytest.approx(periods["dcg"].iloc[0])
    plain = ltr.experiment(quick, data=frame.drop(columns=["week", "patient"]), label="ill", exact={"enabled": False})
    assert plain.periods.empty


@pytest.mark.parametrize(
    ("cells", "texts", "in_order"),
    [
        (["2024-05-31", "2024-02-29"], ["2024-05-31", "2024-02-29"], False),
        (["31.05.2024", "29.02.2024"], ["2024-05-31", "2024-02-29"], False),
        (["2024-05-31 08:30", "2024-05-31 07:00"], ["2024-05-31 08:30:00", "2024-05-31 07:00:00"], False),
        (pd.to_datetime(["2024-05-31", "2024-02-29"]), ["2024-05-31", "2024-02-29"], False),
        (["2024-W5", "2024-W12"], ["2024-W05", "2024-W12"], True),
        (["w12 2024", "w5 2024"], ["2024-W12", "2024-W05"], False),
        (["2024-11", "2024-2"], ["2024-11", "2024-02"], False),
        (["Q3 2023", "Q1 2024"], ["2023-Q3", "2024-Q1"], True),
        ([10, 9], ["10", "9"], False),
        (["10", "9"], ["10", "9"], False),
        ([0.25, 0.5], ["0.25", "0.5"], True),
        ([202412, 202501], ["202412", "202501"], True),
    ],
)
def test_times_are_read_in_the_forms_that_people_write(cells, texts, in_order):
    times = times_of(Column("t", cells), None)
    assert times.texts == texts
    assert times.numbers.tolist() == ([0, 1] if in_order else [1, 0])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["2024-05-31", ""], "times must not be missing, got none in row 2"),
        (["spring", "autumn"], "must hold dates such as 2024-05-31, weeks such as 2024-W22, or numbers, got 'spring'"),
        (["2024-W54", "2024-W01"], "must hold dates"),
        ([f"2024-05-{day}" for day in range(20, 25)] + ["soon"], "must hold dates .* 'soon' in"),
        (["01/02/2024", "03/04/2024"], "could be swapped.*date_format = "),
        (["1", "2", "3", "4", "5", "6", "x"], "must hold numbers, got 'x' in row 7"),
    ],
)
def test_a_column_of_times_that_cannot_be_used_is_one_clear_error(cells, message):
    frame = pd.DataFrame({"x": np.arange(len(cells)) * 1.5, "ill": np.arange(len(cells)) % 2, "week": cells})
    with pytest.raises(TableError, match=f"(?s){message}") as error:
        _split({}, frame)
    assert "data.drop" not in str(error.value)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([1.0, 2.0], r"time: times must be one per row \(4\)"),
        ([1.0, np.nan, 2.0, 3.0], "must not be missing or infinite, got nan in row 2"),
        (np.array(["2024-01-01", "NaT", "2024-01-02", "2024-01-02"], dtype="datetime64[D]"), "got NaT in row 2"),
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
