"""Rows that belong together: no split divides them, whether a column names them or they are noticed."""

import numpy as np
import pandas as pd
import pytest

from ltr.data import DataError, similar_rows
from ltr.exact import Limits
from ltr.fitting import held_out
from ltr.rankers import ExactRanker, SurrogateRanker, TwoStageRanker
from ltr.rankers.choice import FOLDS, folds_of
from ltr.rankers.inputs import LabelledRows
from trainers.config import parse_config
from trainers.task.data import inner_splits, read_source, split_of

EXACT = ExactRanker("dcg", limits=Limits(time_limit=0.3))


def _patients(similar, seed=0, count=40, visits=5):
    """Return rows of patients, whose features are similar or not, their labels, and the patient of each."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(count), visits)
    X = rng.normal(size=(count, 4))[patient] if similar else rng.normal(size=(count * visits, 4))
    return X + 0.02 * rng.normal(size=X.shape), (rng.random(count) < 0.4)[patient].astype(int), patient


def _parts(rows, seed):
    parts = np.full(len(rows.labels), -1)
    for part, fold in enumerate(folds_of(rows, seed, 1)):
        parts[fold.held] = part
    return parts


def _divided(parts, groups):
    return [group for group in np.unique(groups) if len(set(parts[groups == group])) > 1]


def test_parts_and_rows_to_validate_by_take_whole_groups_with_equal_shares_of_labels():
    _, y, patient = _patients(similar=False)
    for seed in range(5):
        parts = _parts(LabelledRows(None, y, None, patient), seed)
        assert not _divided(parts, patient)
        positives = np.bincount(parts, y) / 5
        assert positives.max() - positives.min() <= 1
        held = held_out(y, None, patient, 0.2, seed)
        assert not _divided(held, patient)
        assert y[held].mean() == pytest.approx(y.mean(), abs=0.08)
    queries = np.arange(200) // 2  # of which a patient has several, or parts
    patients = queries // 5
    assert not _divided(_parts(LabelledRows(None, y, queries, patients), 0), patients)
    assert not _divided(held_out(y, queries, patients, 0.3, 0), patients)


@pytest.mark.parametrize("given", [True, False])
def test_no_fit_of_the_base_sees_a_part_of_a_group(monkeypatch, given):
    """Groups are given, or the rows are so similar that they are noticed, which the choice then says."""
    X, y, patient = _patients(similar=not given)
    seen = []
    fit_part = TwoStageRanker._fit_part

    def recorded(self, training, rows, seed):
        seen.append(np.isin(np.arange(len(y)), rows))
        return fit_part(self, training, rows, seed)

    monkeypatch.setattr(TwoStageRanker, "_fit_part", recorded)
    monkeypatch.setattr("ltr.rankers.choice.REPEATS", 1)
    ranker = TwoStageRanker("logistic", EXACT, 50).fit(X, y, group=[f"p{i}" for i in patient] if given else None)
    assert len(seen) > FOLDS
    assert not any(_divided(rows, patient) for rows in seen)
    assert ranker.choice_.similar == (None if given else 40)
    assert ("40 groups of similar rows" in str(ranker.choice_)) == (not given)


def test_a_surrogate_validates_by_whole_groups(monkeypatch):
    X, y, patient = _patients(similar=False)
    drawn = []

    def recorded(*arguments):
        drawn.append(held_out(*arguments))
        return drawn[-1]

    monkeypatch.setattr("ltr.rankers.surrogate.held_out", recorded)
    SurrogateRanker("ranknet", validation=0.3, max_steps=3).fit(X, y, group=patient)
    TwoStageRanker(SurrogateRanker("ranknet", validation=0.3, max_steps=3), EXACT, 50, choose=False).fit(
        X, y, group=patient
    )
    assert len(drawn) == 2
    assert not any(_divided(rows, patient) for rows in drawn)


def test_a_query_in_two_groups_is_refused():
    X, y, _ = _patients(similar=False)
    with pytest.raises(DataError, match=r"group: all rows of a query must be in one group.*got 1 in row 2 and 0"):
        TwoStageRanker("logistic").fit(X, y, np.arange(200) // 10, group=np.arange(200) % 2)
    with pytest.raises(DataError, match=r"group: group ids must be one per row \(200\)"):
        TwoStageRanker("logistic").fit(X, y, group=[1, 2])


def test_similar_rows_are_noticed():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        patient = np.repeat(np.arange(40), 5)
        for noise in (0.0, 0.01, 0.05):
            found = similar_rows(rng.normal(size=(40, 5))[patient] + noise * rng.normal(size=(200, 5)))
            assert abs(len(set(found)) - 40) <= 3
    many = np.repeat(rng.normal(size=(100, 30)), 15, axis=0) + 0.05 * rng.normal(size=(1500, 30))
    found = similar_rows(many).reshape(100, 15)
    assert (found == found[:, :1]).all()
    assert len(set(found[:, 0])) == 100


@pytest.mark.parametrize(
    "kind",
    ["normal", "heavy tails", "yes and no", "whole numbers", "categories and a number", "rounded", "dependent columns"],
)
def test_ordinary_rows_are_not_taken_for_groups(kind):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        n, d = 300, 4
        one_hot = np.column_stack([np.eye(4)[rng.integers(0, 4, n)], np.eye(5)[rng.integers(0, 5, n)]])
        X = {
            "normal": rng.normal(size=(n, d)),
            "heavy tails": rng.standard_cauchy(size=(n, d)),
            "yes and no": rng.integers(0, 2, size=(n, d)),
            "whole numbers": rng.integers(0, 60, size=(n, 1 + seed % 3)),
            "categories and a number": np.column_stack([rng.random(n), one_hot]),
            "rounded": rng.normal(size=(n, d)).round(1),
            "dependent columns": rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)),
        }[kind]
        assert similar_rows(X.astype(float)) is None


def _frame(similar):
    X, y, patient = _patients(similar)
    order = np.random.default_rng(1).permutation(len(y))
    columns = {"patient": [f"p{i}" for i in patient], **{f"x{j}": X[:, j] for j in range(4)}, "ill": y}
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)


@pytest.mark.parametrize("from_file", [True, False])
def test_runs_divide_no_group_and_take_its_column_for_no_feature(tmp_path, from_file):
    frame, frames = _frame(similar=False), {}
    section = {"path": str(tmp_path / "visits.csv"), "label": "ill", "group": "patient", "train_fraction": 0.7}
    frame.to_csv(section["path"], index=False)
    if not from_file:
        frames, section = {"path": frame}, section | {"path": "(data frame)", "format": "table"}
    config = parse_config({"name": "visits", "runs_dir": str(tmp_path), "data": section})
    split = split_of(config.data, 0, read_source(config.data, frames))
    assert split.feature_names == ("x0", "x1", "x2", "x3")
    patients = [set(frame["patient"].iloc[part.rows]) for _, part in split.parts]
    assert (len(patients[0]), len(patients[1]), patients[0] & patients[1]) == (28, 12, set())
    assert (split.facts["group"], split.facts["groups"]) == ("patient", 40)
    for inner in inner_splits(split, 0.3, 3, seed=0):
        of_train, of_test = (set(frame["patient"].iloc[part.rows]) for _, part in inner.parts)
        assert of_train | of_test == patients[0]
        assert not of_train & of_test


def test_a_run_says_that_rows_are_similar_until_it_knows_their_groups(tmp_path):
    frame = _frame(similar=True)
    for group, dropped in ((None, ("patient",)), ("patient", ())):
        section = {"path": "(data frame)", "format": "table", "label": "ill", "group": group, "drop": dropped}
        config = parse_config({"name": "visits", "runs_dir": str(tmp_path), "data": section})
        notes = split_of(config.data, 0, read_source(config.data, {"path": frame})).notes
        assert any("come in about 40 groups of similar rows" in note for note in notes) == (group is None)
