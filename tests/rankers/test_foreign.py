"""Models of other libraries as rankers: the same scores to the last digit, files, ONNX models, and what is refused."""

import copy
import json
import pickle
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from scipy.stats import rankdata
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ltr.gbdt
from ltr.rankers import EstimatorRanker, LogisticRegressionRanker, Ranker, TreesRanker, TwoStageRanker
from ltr.rankers.constraint_checks import used_columns
from ltr.rankers.foreign import raw_scores
from tests.rankers.travelling import STAGE, one_list, outputs_of, reloaded, session_of

ROWS = 10_000
TREES = {"n_estimators": 12, "n_jobs": 1}
FOREST = {"n_estimators": 12, "random_state": 0}
FINITE = "gradient boosting"  # which takes no missing values
LIGHTGBM = {**TREES, "verbose": -1, "num_leaves": 12}


def rows(n, seed, *, missing=True):
    """Features of which the fourth has whole numbers and the last is constant; and labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 3], X[:, 4] = rng.integers(0, 12, n), 7.0
    y = (X[:, 0] + np.sin(X[:, 3]) + rng.normal(size=n) > 0.5).astype(int)
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def new_rows():
    """Rows with numbers out of the range of the training rows, numbers about zero, and more missing values."""
    rng = np.random.default_rng(9)
    X = rows(ROWS, 8)[0]
    X[:2000, 3] = rng.normal(5, 9, 2000)
    X[2000:3000, 3] = rng.integers(-3, 40, 1000)
    X[3000:4000, :2] = rng.choice([0.0, -0.0, 1e-36, -1e-36, 1e-30, 1e12, -1e12], (1000, 2))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


MODELS = {
    "LightGBM classifier": lightgbm.LGBMClassifier(**LIGHTGBM),
    "LightGBM regressor": lightgbm.LGBMRegressor(**LIGHTGBM),
    "LightGBM ranker": lightgbm.LGBMRanker(**LIGHTGBM),
    "LightGBM, our objective": lightgbm.LGBMRanker(**LIGHTGBM, objective=ltr.gbdt.objective("ranknet")),
    "LightGBM, nothing is missing": lightgbm.LGBMRegressor(**LIGHTGBM, use_missing=False),
    "XGBoost classifier": xgboost.XGBClassifier(**TREES),
    "XGBoost regressor": xgboost.XGBRegressor(**TREES),
    "XGBoost, counts": xgboost.XGBRegressor(**TREES, objective="count:poisson"),
    "XGBoost ranker": xgboost.XGBRanker(**TREES),
    "XGBoost, a forest": xgboost.XGBRFClassifier(**TREES),
    "scikit-learn classifier": HistGradientBoostingClassifier(max_iter=12),
    "scikit-learn regressor": HistGradientBoostingRegressor(max_iter=12),
    "random forest classifier": RandomForestClassifier(**FOREST),
    "random forest regressor": RandomForestRegressor(**FOREST, criterion="poisson"),
    "extra trees classifier": ExtraTreesClassifier(**FOREST, class_weight="balanced"),
    "extra trees regressor": ExtraTreesRegressor(**FOREST),
    "best-first forest": RandomForestClassifier(**FOREST, max_leaf_nodes=40, n_jobs=2),
    "pruned tree classifier": DecisionTreeClassifier(random_state=0, ccp_alpha=1e-4, min_samples_leaf=9),
    "tree regressor": DecisionTreeRegressor(random_state=0, max_depth=9),
    "absolute error forest": RandomForestRegressor(**FOREST, max_depth=7, criterion="absolute_error"),
    "gradient boosting classifier": GradientBoostingClassifier(n_estimators=12, random_state=0),
    "gradient boosting, exponential": GradientBoostingClassifier(n_estimators=12, loss="exponential"),
    "gradient boosting regressor": GradientBoostingRegressor(n_estimators=12, loss="huber", init=DummyRegressor()),
    "gradient boosting from zero": GradientBoostingRegressor(n_estimators=12, subsample=0.5, init="zero"),
}


@pytest.fixture(scope="module")
def model_of():
    """The fitted models by name."""
    known = {}

    def fitted(name):
        if name not in known:
            X, y = rows(1500, 0, missing=not name.startswith(FINITE))
            lists = {"group": np.full(len(y) // 20, 20)} if type(MODELS[name]).__name__.endswith("Ranker") else {}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known[name] = MODELS[name].fit(X, y, **lists)
        return known[name]

    return fitted


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_trees_score_as_their_model_wherever_they_are(name, model_of, tmp_path):
    model, X = model_of(name), new_rows()
    X = np.nan_to_num(X) if name.startswith(FINITE) else X
    ranker, scores = TreesRanker.of(model), raw_scores(model, X)
    assert len(np.unique(scores)) > (12 if "forest" in name or "tree" in name else 50)
    np.testing.assert_array_equal(ranker.predict(X), scores)
    for n in (1, 7, 9, 1025):  # some rows go through a tree together, others one by one
        np.testing.assert_array_equal(ranker.predict(X[:n]), scores[:n])
    for again in (reloaded(ranker, tmp_path), copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        np.testing.assert_array_equal(again.predict(X), scores)
    session = session_of(ranker, tmp_path)
    for rows_given in (X, X[:1]):
        np.testing.assert_array_equal(outputs_of(session, rows_given)["score"], scores[: len(rows_given)])


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2000),
        RandomForestClassifier(**FOREST, min_samples_leaf=700),
        DecisionTreeClassifier(min_samples_leaf=900),
        GradientBoostingRegressor(n_estimators=3, min_samples_leaf=900),
    ],
    ids=lambda model: type(model).__name__,
)
def test_trees_that_are_a_single_leaf_add_its_value(model, tmp_path):
    X, y = rows(1500, 0, missing=False)
    ranker = TreesRanker.of(model.fit(X, y))
    assert (ranker.feature_[ranker.roots_] < 0).any()
    np.testing.assert_array_equal(ranker.predict(X), raw_scores(model, X))
    session = session_of(ranker, tmp_path)
    for n in (1500, 1):
        np.testing.assert_array_equal(outputs_of(session, X[:n])["score"], ranker.predict(X[:n]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["XGBoost regressor", "tree regressor", "extra trees regressor"])
def test_rounding_of_features_to_single_precision_is_that_of_the_library(name, model_of):
    model = model_of(name)
    ranker = TreesRanker.of(model)
    cuts = ranker.threshold_[(ranker.feature_ == 0) & np.isfinite(ranker.threshold_)][:300]
    X = np.zeros((5 * len(cuts), 5))
    beside = [cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), np.float32(cuts), cuts + 1e-9]
    X[:, 0] = np.concatenate(beside)
    np.testing.assert_array_equal(ranker.predict(X), model.predict(X))
    assert len(np.unique(ranker.predict(X))) > 5


def test_trees_take_missing_values_only_where_their_model_does(model_of):
    with pytest.raises(ValueError, match="values must be finite and none missing"):
        TreesRanker.of(model_of("gradient boosting classifier")).predict(new_rows())


@pytest.mark.filterwarnings("ignore")
def test_a_model_that_was_stopped_early_scores_by_its_best_round():
    X, y = rows(1500, 0)
    held = rows(300, 1)
    stopped = [
        lightgbm.LGBMClassifier(**{**LIGHTGBM, "n_estimators": 300}, learning_rate=0.5).fit(
            X, y, eval_set=[held], callbacks=[lightgbm.early_stopping(3, verbose=False)]
        ),
        xgboost.XGBClassifier(n_estimators=300, n_jobs=1, early_stopping_rounds=3).fit(
            X, y, eval_set=[held], verbose=0
        ),
    ]
    for model in stopped:  # which scores by its best round as well
        np.testing.assert_array_equal(TreesRanker.of(model).predict(X), raw_scores(model, X))
        assert 0 < len(TreesRanker.of(model).roots_) < 100


def refused():
    X, y = rows(400, 0)
    three, whole = np.arange(400) % 3, np.nan_to_num(X)
    categories = {"enable_categorical": True, "feature_types": ["q", "q", "q", "c", "q"]}
    histogram = HistGradientBoostingClassifier(max_iter=9, categorical_features=[3])
    return {
        "several scores for a row is no": lightgbm.LGBMClassifier(**LIGHTGBM).fit(X, three),
        "several scores for a row is no ranker": xgboost.XGBClassifier(**TREES).fit(X, three),
        "a model with several scores": HistGradientBoostingClassifier(max_iter=2).fit(X, three),
        "a model with several scores for a row": GradientBoostingClassifier(n_estimators=2).fit(whole, three),
        "boosting='rf'": lightgbm.LGBMRegressor(**LIGHTGBM, boosting_type="rf", subsample=0.5, subsample_freq=1).fit(
            X, y
        ),
        "linear_tree=True": lightgbm.LGBMRegressor(**LIGHTGBM, linear_tree=True).fit(X, y),
        "zero_as_missing=True": lightgbm.LGBMRegressor(**LIGHTGBM, zero_as_missing=True).fit(X, y),
        "a LGBMClassifier with categories": lightgbm.LGBMClassifier(**LIGHTGBM).fit(X, y, categorical_feature=[3]),
        "a XGBClassifier with categories": xgboost.XGBClassifier(**TREES, **categories).fit(X, y),
        "a HistGradientBoostingClassifier with categories": histogram.fit(X, y),
        "booster='gblinear'": xgboost.XGBRegressor(booster="gblinear", n_estimators=2).fit(whole, y),
        "booster='dart'": xgboost.XGBRegressor(booster="dart", n_estimators=2).fit(X, y),
        "missing=0": xgboost.XGBRegressor(**TREES, missing=0.0).fit(whole, y),
        "loss='poisson'": HistGradientBoostingRegressor(loss="poisson", max_iter=2).fit(X, y),
        "with several scores for a row": RandomForestClassifier(3).fit(X, three),
        "labels of one class": ExtraTreesClassifier(3).fit(X, 0 * y),
        "starts from the scores of init=Ridge": GradientBoostingRegressor(n_estimators=2, init=Ridge()).fit(whole, y),
        "model must be a fitted model of LightGBM": Ridge().fit(whole, y),
    }


@pytest.mark.filterwarnings("ignore")
def test_models_without_a_form_are_refused():
    for message, model in refused().items():
        with pytest.raises(TypeError, match=message) as error:
            TreesRanker.of(model)
        assert not str(error.value).startswith("base")


def test_trees_of_an_unknown_kind_are_not_taken_for_known_ones(model_of, monkeypatch):
    # what a version of the library that counts in another way would look like
    model = model_of("scikit-learn regressor")
    monkeypatch.setattr(model, "_baseline_prediction", model._baseline_prediction + 0.25)
    trees = TreesRanker.of(model)
    monkeypatch.undo()
    assert not np.array_equal(trees.predict(new_rows()), model.predict(new_rows()))
    monkeypatch.setattr(type(model), "predict", lambda self, X: np.zeros(len(X)))
    with pytest.raises(TypeError, match="do not give its scores"):
        TreesRanker.of(model)


# as bases of two stages

BASES = {
    "LightGBM classifier": lightgbm.LGBMClassifier(n_estimators=4, max_depth=2, verbose=-1, n_jobs=1),
    "LightGBM ranker": lightgbm.LGBMRanker(n_estimators=4, max_depth=2, verbose=-1, n_jobs=1),
    "XGBoost ranker": xgboost.XGBRanker(n_estimators=4, max_depth=2, n_jobs=1),
    "scikit-learn": HistGradientBoostingClassifier(max_iter=4, max_depth=2),
    "logistic regression": LogisticRegression(),
    "ridge": Ridge(),
    "support vectors": LinearSVC(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", BASES)
def test_a_ranker_on_another_librarys_base_travels(name, tmp_path):
    (X, y), new = one_list(400), one_list(ROWS, seed=3)[0]
    new[:400] = X  # one of them is at the threshold
    lists = "ranker" in name
    fit, given = ({"qid": np.arange(400) % 20}, {"qid": np.arange(ROWS) % 400}) if lists else ({}, {})
    ranker = TwoStageRanker(BASES[name], STAGE, 8 if lists else 100, choose=False).fit(X, y, **fit)
    assert ranker.coef_ is not None
    scores = ranker.decision_function(new, **given)
    loaded = reloaded(ranker, tmp_path)
    np.testing.assert_array_equal(loaded.decision_function(new, **given), scores)
    assert loaded.base is loaded.base_
    assert loaded.base_.form_.source == type(BASES[name]).__name__
    for one in (ranker, loaded):
        found = outputs_of(session_of(one, tmp_path), new, **given)
        np.testing.assert_array_equal(found["score"], scores)
        np.testing.assert_array_equal(found["reranked"], ranker.reranked(new, **given))
    with pytest.raises(TypeError, match=r"is made of a fitted .* and cannot be fitted: fit the model itself"):
        loaded.fit(X, y, **fit)
    assert loaded.fit(X, y, **fit, base_is_fitted=True).threshold_ == ranker.threshold_


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("left_", lambda x: [0, *x[1:]], "nodes of trees must come after their parents"),  # a circle
        ("feature_", lambda x: [5, *x[1:]], "trees must split by features that there are"),
        ("roots_", lambda x: [*x[:-1], -1], "roots of trees must be nodes"),
        ("value_", lambda x: x[:-1], "one entry for each node"),
    ],
)
def test_damaged_trees_are_refused(name, change, message, model_of, tmp_path):
    TreesRanker.of(model_of("scikit-learn regressor")).save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    ((kind, values),) = content["fitted"][name].items()
    content["fitted"][name] = {kind: change(values)}
    (tmp_path / "model.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        Ranker.load(tmp_path / "model.json")


def test_scores_that_are_not_linear_are_not_taken_for_linear_ones_on_any_scale():
    X = np.random.default_rng(0).normal(size=(200, 2))
    model = PoissonRegressor(alpha=0.0).fit(X, np.random.default_rng(1).poisson(np.exp(X[:, 0])))
    for scale in (1e-12, 1.0, 1e12):
        model.coef_ = model.coef_ / scale
        ranker = TwoStageRanker(model, STAGE, 20, choose=False).fit(scale * X, X[:, 0] > 0, base_is_fitted=True)
        below = ~ranker.reranked(scale * X)
        np.testing.assert_allclose(ranker.predict(scale * X)[below], model.predict(scale * X)[below])
        model.coef_ = model.coef_ * scale


# --- columns by name -------------------------------------------------------------------------------------------------


def frames():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a b", "b", "c"])
    return X, (X["a b"] + 0.3 * rng.normal(size=120) > 0).astype(int).to_numpy()


class ByName:
    """A class of one's own that reads columns by name, and keeps no account of them."""

    def fit(self, X, y):
        self.sign_ = np.sign(np.corrcoef(X["a b"], y)[0, 1])
        return self

    def predict(self, X):
        return self.sign_ * np.asarray(X["a b"])


def named_bases():
    chosen = ColumnTransformer([("scaled", StandardScaler(), ["a b", "c"])])
    return [
        LogisticRegression(),
        RandomForestClassifier(5, random_state=0),
        HistGradientBoostingClassifier(max_iter=5),
        lightgbm.LGBMClassifier(n_estimators=5, verbose=-1),
        xgboost.XGBClassifier(n_estimators=5),
        make_pipeline(chosen, LogisticRegression()),
        LogisticRegressionRanker(),
    ]


@pytest.mark.filterwarnings("error:X .* feature names")
@pytest.mark.parametrize("base", named_bases(), ids=lambda base: type(base).__name__)
def test_a_fitted_base_finds_its_columns_by_name(base, tmp_path):
    X, y = frames()
    own = X[["c", "a b"]]
    base.fit(own, y)
    ranker = TwoStageRanker(base, "dcg@5", top_k=30, choose=False).fit(X, y, base_is_fitted=True)
    scores = base.predict_proba(own)[:, 1] if hasattr(base, "predict_proba") else base.predict(own)
    used, rest = used_columns(ranker.base_, ["a b", "b", "c"]), ~ranker.reranked(X)
    assert used is None or not used[1]
    np.testing.assert_array_equal(rankdata(ranker.predict(X)[rest]), rankdata(scores[rest]))
    np.testing.assert_array_equal(ranker.predict(X[["c", "b", "a b"]]), ranker.predict(X))
    if not isinstance(base, Pipeline):
        np.testing.assert_array_equal(reloaded(ranker, tmp_path).predict(X), ranker.predict(X))
        found = outputs_of(session_of(ranker, tmp_path), X.to_numpy())
        np.testing.assert_array_equal(found["score"], ranker.predict(X))
    with pytest.raises(
        ValueError, match=r"X must have the column 'c', which the base, a .*, was fitted with; it has a b, b"
    ):
        TwoStageRanker(base, "dcg@5", top_k=30, choose=False).fit(X[["a b", "b"]], y, base_is_fitted=True)


@pytest.mark.filterwarnings("error:X .* feature names")
@pytest.mark.parametrize("base", [*named_bases(), ByName()], ids=lambda base: type(base).__name__)
def test_bases_are_fitted_to_frames(base):
    X, y = frames()
    ranker = TwoStageRanker(base, "dcg@5", top_k=30, choose=False).fit(X, y)
    if not isinstance(base, lightgbm.LGBMClassifier | xgboost.XGBClassifier):  # which change or refuse the name "a b"
        assert list(ranker.base_.feature_names_in_) == ["a b", "b", "c"]
    np.testing.assert_array_equal(ranker.predict(X[["c", "b", "a b"]]), ranker.predict(X))
    np.testing.assert_array_equal(copy.deepcopy(ranker).predict(X), ranker.predict(X))
    alone = EstimatorRanker(base).fit(X, y)
    np.testing.assert_array_equal(alone.predict(X[["c", "b", "a b"]]), alone.predict(X))
    assert np.isfinite(cross_val_score(ranker, X, y, cv=2)).all()
    if isinstance(base, LogisticRegression):  # arrays go by position, with scikit-learn's warning
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            TwoStageRanker(base.fit(X, y), choose=False).fit(X.to_numpy(), y, base_is_fitted=True)
