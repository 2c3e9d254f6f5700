"""What a fit leaves behind: names of features that predictions compare, and nothing at all where it fails."""

import copy
import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

from ltr.exact import Limits
from ltr.rankers import (
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
    ReproducibleSearch,
    SurrogateRanker,
    TwoStageRanker,
)
from tests.tiers import thinned

STAGE = ExactRanker(limits=Limits(node_limit=20), method=ReproducibleSearch(restarts=2))
LOCAL = ExactRanker(limits=Limits(time_limit=0.2), method="local_search")
BASES = [
    SurrogateRanker(),
    SurrogateRanker(scorer="mlp", hidden=(3,), max_steps=3),
    LogisticRegressionRanker(),
    RankBoostRanker(5),
]
TWO_STAGE = [TwoStageRanker("hinge", LOCAL, 10, choose=False), TwoStageRanker("logistic", STAGE, 10, choose=False)]
EXACT = [STAGE, TwoStageRanker(Ridge(), STAGE, choose=False)]
NAMES = ["age", "dose", "weight"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def label(ranker):
    return f"{type(ranker).__name__}-{getattr(ranker, 'base', getattr(ranker, 'scorer', ''))}"


each_ranker = pytest.mark.parametrize("ranker", [*BASES, *TWO_STAGE, *EXACT], ids=label)


def frame(seed=0, n=40, columns=NAMES):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.1] + 3
    y = (X[:, 0] - X[:, 1] / 20 + 0.5 * rng.normal(size=n) > 2).astype(int)
    return pd.DataFrame(X, columns=columns), y


# names


def again(fitted, folder):
    """The ranker itself, and copies of it from pickles and files."""
    copies = [fitted, pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)]
    if isinstance(getattr(fitted, "base_", fitted), Ranker):
        fitted.save(folder / "ranker.pt")
        copies.append(Ranker.load(folder / "ranker.pt"))
    return copies


FRAMES = {
    "pandas": lambda X: X,
    "polars": lambda X: pytest.importorskip("polars").DataFrame(dict(X)),
    "arrow": lambda X: pytest.importorskip("pyarrow").table(dict(X)),
}


@pytest.mark.parametrize(("ranker", "kind"), thinned(3, [*BASES, *TWO_STAGE, *EXACT], [*FRAMES]))
def test_columns_are_found_by_name_in_frames_of_any_library(ranker, kind, tmp_path):
    X, y = frame()
    make = FRAMES[kind]
    fitted = clone(ranker).fit(make(X), pd.Series(y, index=X.index[::-1]))
    assert fitted.feature_names_in_.tolist() == NAMES
    expected = clone(ranker).fit(X.to_numpy(), y).decision_function(X.to_numpy())
    swapped = X[["weight", "age", "dose"]]
    more = X.assign(name="Ann", height=np.nan)[["height", "dose", "name", "age", "weight"]]
    for other in again(fitted, tmp_path):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for table in (X, swapped, more, X.astype(str)):
                np.testing.assert_array_equal(other.decision_function(make(table)), expected)
            np.testing.assert_array_equal(other.rank(make(swapped)).sort_index()["score"], expected)
        for table, missing in (
            (X[["age", "weight"]], "column 'dose'"),
            (X.rename(columns={"age": "Age", "dose": "Dose"}), "columns 'age', 'dose'"),
        ):
            with pytest.raises(ValueError, match=f"X must have the {missing}, which the ranker was fitted with"):
                other.decision_function(make(table))


BAD_CELLS = [
    (42, "dose", np.nan, "values must be finite and none missing, got nan in column 'dose', row 43; fill in"),
    (0, "age", -np.inf, "got -inf in column 'age', row 1"),
    (7, "weight", 1e200, "values must be at most 1e[+]150 in size, got 1e[+]200 in column 'weight', row 8"),
    (3, "dose", "a lot", "column 'dose' must hold numbers, got 'a lot' in row 4"),
]


@pytest.mark.parametrize(
    ("ranker", "kind", "bad"), thinned(4, [*BASES, *TWO_STAGE, *EXACT], ["pandas", "polars"], BAD_CELLS)
)
def test_a_cell_that_is_no_number_is_named_by_column_and_row(ranker, kind, bad):
    (X, y), (row, column, cell, message) = frame(n=50), bad
    kind_of = str if isinstance(cell, str) else float
    spoilt = X.astype({column: object})
    spoilt.loc[row, column] = cell
    spoilt = FRAMES[kind](spoilt.astype({column: kind_of}))
    with pytest.raises(ValueError, match=message):
        clone(ranker).fit(spoilt, y)
    with pytest.raises(ValueError, match=message):
        fitted_to_fifty(ranker).rank(spoilt)


@functools.cache
def fitted_to_fifty(ranker):
    return clone(ranker).fit(*frame(n=50))


def test_all_columns_with_missing_cells_are_named_at_once_and_labels_by_row():
    X, y = frame()
    X.loc[[3, 5], "dose"], X.loc[9, "age"] = np.nan, np.nan
    with pytest.raises(ValueError, match="got nan in column 'age', row 10, nan in column 'dose', row 4;"):
        SurrogateRanker().fit(X, y)
    with pytest.raises(ValueError, match="got nan in column 2, row 4;"):
        SurrogateRanker().fit(X.to_numpy()[:, [0, 1]][:9], y[:9])
    labels = pd.Series(y, dtype=float)
    labels[6] = np.nan
    with pytest.raises(ValueError, match="y must hold finite labels >= 0, 0 and 1 or graded, got nan in row 7"):
        SurrogateRanker().fit(X.fillna(0.0), labels)


def test_two_columns_of_one_name_are_refused():
    X, y = frame()
    fitted, twice = SurrogateRanker().fit(X, y), X[["age", "dose", "age", "weight"]]
    for call in (lambda: SurrogateRanker().fit(twice, y), lambda: fitted.rank(twice)):
        with pytest.raises(ValueError, match="column names must differ, got 'age' for columns 1 and 3"):
            call()


def test_a_ranker_fitted_to_an_array_can_be_given_names():
    X, y = frame()
    ranker = LogisticRegressionRanker().fit(X.to_numpy(), y)
    scores = ranker.decision_function(X.to_numpy())
    np.testing.assert_array_equal(ranker.name_features(NAMES).decision_function(X[NAMES[::-1]]), scores)
    for names in (NAMES[:2], ["age", "age", "dose"]):
        with pytest.raises(ValueError, match=r"names must (be|differ)"):
            ranker.name_features(names)


# lists


@each_ranker
def test_rank_is_the_list_from_the_top_with_the_index_of_the_rows(ranker):
    X, y = frame()
    X.index = [f"row {i}" for i in range(len(X))]
    fitted = clone(ranker)
    if isinstance(fitted, TwoStageRanker):
        fitted.set_params(top_k=30)
    fitted.fit(X, y)
    scores, ranked = fitted.decision_function(X), fitted.rank(X)
    assert ranked["position"].tolist() == list(range(1, len(X) + 1))
    assert ranked.index.tolist() == X.index[np.argsort(-scores, kind="stable")].tolist()
    np.testing.assert_array_equal(fitted.order(X), np.argsort(-scores, kind="stable"))
    np.testing.assert_array_equal(X.join(ranked)["score"], scores)
    assert ("stage" in ranked) == isinstance(fitted, TwoStageRanker)
    if isinstance(fitted, TwoStageRanker):
        assert set(ranked["stage"]) == {"reranked", "base"}
        np.testing.assert_array_equal(X.join(ranked)["stage"] == "reranked", fitted.reranked(X))


def test_rank_counts_positions_within_queries():
    X, y = frame()
    qid = np.array(["b", "a"])[np.arange(len(X)) % 2]
    for ranker in (SurrogateRanker(), TwoStageRanker("hinge", LOCAL, 5, choose=False)):
        fitted = clone(ranker).fit(X, y, qid=pd.Series(qid))
        ranked = fitted.rank(X, qid)
        assert ranked["query"].tolist() == ["b"] * 20 + ["a"] * 20
        assert ranked["position"].tolist() == [*range(1, 21)] * 2
        for _, own in ranked.groupby("query"):
            assert own["score"].is_monotonic_decreasing
        np.testing.assert_array_equal(ranked.index, fitted.order(X, qid))


@each_ranker
def test_names_on_one_side_alone_are_announced_and_a_fit_without_names_forgets_them(ranker):
    X, y = frame()
    fitted = clone(ranker).fit(X, y)
    name = type(fitted).__name__
    with pytest.warns(UserWarning, match=f"not have valid feature names, but {name} was fitted with feature names"):
        fitted.decision_function(X.to_numpy())
    fitted.fit(X.to_numpy(), y)
    assert not hasattr(fitted, "feature_names_in_")
    with pytest.warns(UserWarning, match=f"X has feature names, but {name} was fitted without feature names"):
        fitted.decision_function(X)


# fits that fail


def state_of(ranker):
    """Everything that a fit sets, and how the ranker scores."""
    X, _ = frame(seed=5)
    fitted = {name: value for name, value in vars(ranker).items() if name.endswith("_") or name == "_model"}
    return fitted, ranker.decision_function(X if hasattr(ranker, "feature_names_in_") else X.to_numpy())


def same(one, other):
    np.testing.assert_array_equal(one[1], other[1])
    assert one[0].keys() == other[0].keys()
    assert all(one[0][name] is other[0][name] for name in one[0])


@each_ranker
@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (X.assign(more=np.inf), y),
        lambda X, y: (X.iloc[:, :2], np.zeros(len(y))),
        lambda X, y: (X.assign(more=1.0), y[:-1]),
        lambda X, y: (X.astype(str) + "a", y),
    ],
    ids=["infinite", "one class", "short", "text"],
)
def test_a_fit_that_fails_leaves_the_ranker_as_it_was(ranker, spoil):
    X, y = frame()
    fitted = clone(ranker).fit(X, y)
    before = state_of(fitted)
    with pytest.raises(ValueError, match=r"."):
        fitted.fit(*spoil(X, y))
    same(state_of(fitted), before)


class Breaks:
    """A solver that raises."""

    def check(self, problem):
        pass

    def run(self, state):
        raise RuntimeError("the solver broke")


@pytest.mark.parametrize("ranker", [*TWO_STAGE, *EXACT], ids=label)
def test_an_exact_stage_that_fails_leaves_the_ranker_as_it_was(ranker):
    X, y = frame()
    fitted = clone(ranker).fit(X, y)
    before = state_of(fitted)
    getattr(fitted, "exact", fitted).method = Breaks()
    with pytest.raises(RuntimeError, match="the solver broke"):
        fitted.fit(X.iloc[::-1, :2], y)
    same(state_of(fitted), before)


def test_a_first_fit_that_fails_leaves_an_unfitted_ranker():
    X, y = frame()
    broken = ExactRanker(method=Breaks())
    for ranker in (SurrogateRanker(), RankBoostRanker(), broken, TwoStageRanker("logistic", broken, choose=False)):
        before = dict(vars(ranker))
        with pytest.raises((RuntimeError, ValueError)):
            ranker.fit(X, y if isinstance(ranker, ExactRanker | TwoStageRanker) else 0 * y)
        assert vars(ranker) == before
