"""What a fit leaves behind: names of features that predictions compare, and nothing at all where it fails."""

import copy
import io
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import Ridge

import ltr
from ltr.base_rankers import load_base_ranker
from ltr.base_rankers.logistic import LogisticRegressionRanker
from ltr.base_rankers.rankboost import RankBoostRanker
from ltr.base_rankers.surrogate import SurrogateRanker
from ltr.estimators import ExactRanker, ExactReranker, LinearRanker, ReproducibleSearch
from ltr.fitted import feature_names

QUICK = {"node_limit": 20, "method": ReproducibleSearch(restarts=2)}
BASES = [
    SurrogateRanker(),
    SurrogateRanker(scorer="mlp", hidden=(3,), max_steps=3),
    LogisticRegressionRanker(),
    RankBoostRanker(5),
]
TWO_STAGE = [
    ltr.TwoStageRanker(base, top_k=10, method="local_search", time_limit=0.2) for base in ("hinge", "logistic")
]
ESTIMATORS = [LinearRanker(), ExactRanker(**QUICK), ExactReranker(top_k=10, **QUICK), ExactReranker(Ridge(), **QUICK)]
NAMES = ["age", "dose", "weight"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def label(ranker):
    return f"{type(ranker).__name__}-{getattr(ranker, 'base', getattr(ranker, 'scorer', ''))}"


def fresh(ranker):
    return ltr.TwoStageRanker(**_options(ranker)) if isinstance(ranker, ltr.TwoStageRanker) else clone(ranker)


def _options(ranker):
    return {name: getattr(ranker, name) for name in ("base", "top_k", "method", "time_limit")}


each_ranker = pytest.mark.parametrize("ranker", [*BASES, *TWO_STAGE, *ESTIMATORS], ids=label)


def frame(seed=0, n=40, columns=NAMES):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 20.0, 0.1] + 3
    y = (X[:, 0] - X[:, 1] / 20 + 0.5 * rng.normal(size=n) > 2).astype(int)
    return pd.DataFrame(X, columns=columns), y


# names


@each_ranker
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[["dose", "age", "weight"]], "Feature names must be in the same order as they were in fit"),
        (lambda X: X[["age", "weight"]], "Feature names seen at fit time, yet now missing:\n- dose\n"),
        (lambda X: X.assign(height=1.0), "Feature names unseen at fit time:\n- height\n"),
        (lambda X: X.rename(columns={"age": "years"}), "unseen at fit time:\n- years\nFeature .* missing:\n- age\n"),
    ],
    ids=["order", "missing", "added", "renamed"],
)
@pytest.mark.parametrize("through", [lambda r: r, lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy])
def test_columns_are_compared_with_those_of_the_fit(ranker, change, message, through):
    X, y = frame()
    fitted = fresh(ranker).fit(X, y)
    assert fitted.feature_names_in_.tolist() == NAMES
    other = through(fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(other.decision_function(X), fitted.decision_function(X))
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit") as error:
        other.decision_function(change(X))
    assert pd.Series([str(error.value)]).str.contains(message, regex=True).all()


@each_ranker
def test_scores_are_those_of_the_plain_array(ranker):
    X, y = frame()
    by_name, by_place = fresh(ranker).fit(X, y), fresh(ranker).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(by_name.decision_function(X), by_place.decision_function(X.to_numpy()))
    assert not hasattr(by_place, "feature_names_in_")


@each_ranker
def test_names_on_one_side_alone_are_announced_and_a_fit_without_names_forgets_them(ranker):
    X, y = frame()
    fitted = fresh(ranker).fit(X, y)
    name = type(fitted).__name__
    with pytest.warns(
        UserWarning, match=f"X does not have valid feature names, but {name} was fitted with feature names"
    ):
        fitted.decision_function(X.to_numpy())
    fitted.fit(X.to_numpy(), y)
    assert not hasattr(fitted, "feature_names_in_")
    with pytest.warns(UserWarning, match=f"X has feature names, but {name} was fitted without feature names"):
        fitted.decision_function(X)


@pytest.mark.parametrize("ranker", BASES, ids=label)
def test_states_hold_the_names_and_earlier_ones_without_are_read(ranker):
    X, y = frame()
    fitted = fresh(ranker).fit(X, y)
    file = io.BytesIO()
    torch.save(fitted.to_state(), file)
    file.seek(0)
    loaded = load_base_ranker(torch.load(file, weights_only=True))
    assert loaded.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        loaded.decision_function(X[NAMES[::-1]])
    earlier = fresh(ranker).fit(X.to_numpy(), y).to_state()
    assert "feature_names" not in earlier
    np.testing.assert_array_equal(
        load_base_ranker(earlier).decision_function(X.to_numpy()), fitted.decision_function(X)
    )


@pytest.mark.parametrize("ranker", TWO_STAGE, ids=label)
def test_a_saved_two_stage_ranker_compares_names_in_every_prediction(ranker, tmp_path):
    X, y = frame()
    fitted = fresh(ranker).fit(X, y)
    fitted.save(tmp_path / "ranker.pt")
    loaded = ltr.TwoStageRanker.load(tmp_path / "ranker.pt")
    np.testing.assert_array_equal(loaded.decision_function(X), fitted.decision_function(X))
    swapped = X[NAMES[::-1]]
    for each in (fitted, loaded, fitted.recentred(), fitted.base_, loaded.base_):
        for method in ("decision_function", "predict", "order", "reranked"):
            if hasattr(each, method):
                with pytest.raises(ValueError, match="Feature names must be in the same order"):
                    getattr(each, method)(swapped)
    without = torch.load(tmp_path / "ranker.pt", weights_only=True)
    del without["feature_names"], without["base"]["feature_names"]
    torch.save(without, tmp_path / "earlier.pt")
    earlier = ltr.TwoStageRanker.load(tmp_path / "earlier.pt")
    np.testing.assert_array_equal(earlier.decision_function(X.to_numpy()), fitted.decision_function(X))


def test_a_fitted_base_compares_the_names_of_the_second_stage():
    X, y = frame()
    base = LogisticRegressionRanker().fit(X, y)
    two_stage = ltr.TwoStageRanker(base, top_k=10, method="local_search", time_limit=0.2)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        two_stage.fit(X[NAMES[::-1]], y, base_is_fitted=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two_stage.fit(X, y, base_is_fitted=True).decision_function(X)


def test_frames_of_pandas_own_number_types_are_taken_by_both_stages():
    X, y = frame()
    nullable = X.round().astype("Int64")
    ranker = fresh(TWO_STAGE[1]).fit(nullable, y)
    np.testing.assert_array_equal(ranker.decision_function(nullable), ranker.decision_function(X.round()))


def test_names_are_texts_of_any_library_or_none():
    class Columns:
        """What a polars frame looks like from here."""

        columns = ("a", "b")

    assert feature_names(Columns()).tolist() == ["a", "b"]
    assert feature_names([[1.0, 2.0]]) is None
    assert feature_names(pd.DataFrame([[1.0, 2.0]])) is None
    with pytest.raises(TypeError, match="X must have column names that are all texts, or none that is, got 3 beside"):
        feature_names(pd.DataFrame([[1.0, 2.0]], columns=["a", 3]))


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
    fitted = fresh(ranker).fit(X, y)
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


@pytest.mark.parametrize("ranker", [*TWO_STAGE, *ESTIMATORS[1:]], ids=label)
def test_an_exact_stage_that_fails_leaves_the_ranker_as_it_was(ranker):
    X, y = frame()
    fitted = fresh(ranker).fit(X, y)
    before = state_of(fitted)
    fitted.method = Breaks()
    with pytest.raises(RuntimeError, match="the solver broke"):
        fitted.fit(X.iloc[::-1, :2], y)
    same(state_of(fitted), before)


def test_a_base_object_is_restored_with_the_two_stage_ranker():
    X, y = frame()
    base = LogisticRegressionRanker()
    ranker = ltr.TwoStageRanker(base, top_k=30, method=Breaks())
    with pytest.raises(RuntimeError, match="the solver broke"):
        ranker.fit(X, y)
    with pytest.raises(ValueError, match="LogisticRegressionRanker is not fitted"):
        base.decision_function(X)
    ranker.method = "local_search"
    ranker.time_limit = 0.2
    scores = ranker.fit(X, y).decision_function(X)
    ranker.method = Breaks()
    with pytest.raises(RuntimeError, match="the solver broke"):
        ranker.fit(X, 1 - y)
    np.testing.assert_array_equal(ranker.decision_function(X), scores)


def test_a_first_fit_that_fails_leaves_an_unfitted_ranker():
    X, y = frame()
    for ranker in (LinearRanker(), ExactRanker(method=Breaks()), ExactReranker(method=Breaks())):
        before = dict(vars(ranker))
        with pytest.raises((RuntimeError, ValueError)):
            ranker.fit(X, y if hasattr(ranker, "method") else 0 * y)
        assert vars(ranker) == before


# callbacks


@pytest.mark.parametrize("ranker", [RankBoostRanker(3), SurrogateRanker(max_steps=3)], ids=label)
def test_a_callback_does_not_keep_a_ranker_from_being_pickled(ranker):
    X, y = frame()
    calls = []
    name = "on_round" if isinstance(ranker, RankBoostRanker) else "on_step"
    watched = clone(ranker)
    setattr(watched, name, lambda *arguments: calls.append(arguments))
    watched.fit(X, y)
    assert len(calls) == 3
    for other in (pickle.loads(pickle.dumps(watched)), copy.deepcopy(watched)):
        assert getattr(other, name) is None
        np.testing.assert_array_equal(other.decision_function(X), watched.decision_function(X))
    pickle.dumps(ltr.TwoStageRanker(watched, top_k=10, method="local_search", time_limit=0.2).fit(X, y))
