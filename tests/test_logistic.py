import numpy as np
import pytest
from scipy.optimize import minimize

from ltr.rankers import LogisticRegressionRanker, Ranker, make_ranker
from ltr.rankers.inputs import linear_scores


def problem(seed=0, n=120, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1.0, 10.0, 0.1, 3.0])[:d] + np.array([0.0, 100.0, -1.0, 5.0])[:d]
    y = (X[:, 0] + 0.05 * X[:, 1] + rng.normal(size=n) > 5).astype(int)
    return X, y


@pytest.mark.parametrize(("C", "standardize"), [(1e4, True), (1.0, True), (0.1, True), (1.0, False)])
def test_minimises_the_stated_objective(C, standardize):
    X, y = problem()
    Z = (X - X.mean(axis=0)) / X.std(axis=0) if standardize else X
    sign = 2 * y - 1

    def objective(p):
        return 0.5 * p[:-1] @ p[:-1] + C * np.logaddexp(0, -sign * (Z @ p[:-1] + p[-1])).sum()

    ranker = LogisticRegressionRanker(C=C, standardize=standardize).fit(X, y)
    mean, scale = (X.mean(axis=0), X.std(axis=0)) if standardize else (0 * X[0], 1 + 0 * X[0])
    weights = ranker.linear_weights * scale
    bias = ranker.decision_function(mean[None])[0] if standardize else ranker.decision_function(0 * X[:1])[0]
    best = minimize(objective, np.r_[weights, bias], method="BFGS", options={"gtol": 1e-8}).fun
    assert objective(np.r_[weights, bias]) <= best + 1e-6 * max(1, best)


def test_scores_are_linear_in_the_raw_features():
    X, y = problem()
    ranker = LogisticRegressionRanker().fit(X, y)
    scores = ranker.decision_function(X)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(np.diff(scores), np.diff(X @ ranker.linear_weights), atol=1e-9)


def test_units_of_the_features_do_not_matter_when_standardised():
    X, y = problem()
    units = np.array([1e3, 1e-3, 1.0, 7.0])
    plain = LogisticRegressionRanker(C=0.5).fit(X, y)
    scaled = LogisticRegressionRanker(C=0.5).fit(X * units + 3, y)
    np.testing.assert_allclose(scaled.linear_weights * units, plain.linear_weights, rtol=1e-6)
    np.testing.assert_allclose(scaled.decision_function(X * units + 3), plain.decision_function(X), atol=1e-6)


def test_equal_rows_get_equal_scores_wherever_they_stand():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(501, 13)), rng.integers(0, 2, 501)
    X[7:400:13] = X[3]
    ranker = LogisticRegressionRanker().fit(X, y)
    scores = ranker.decision_function(X)
    assert len(set(scores[7:400:13]) | {scores[3]}) == 1
    np.testing.assert_array_equal(ranker.decision_function(np.asfortranarray(X)), scores)
    np.testing.assert_array_equal(ranker.decision_function(X[::-1]), scores[::-1])
    np.testing.assert_array_equal([ranker.decision_function(row[None])[0] for row in X], scores)


def test_constant_columns_get_no_weight():
    X, y = problem(d=2)
    # 0.1 has no exact mean in float64, so its standard deviation is not exactly 0
    ranker = LogisticRegressionRanker().fit(np.column_stack([X, np.full(len(X), 0.1)]), y)
    assert ranker.linear_weights[2] == 0
    np.testing.assert_allclose(ranker.linear_weights[:2], LogisticRegressionRanker().fit(X, y).linear_weights)


def test_separable_data_is_ranked_perfectly():
    X, y = np.arange(10.0)[:, None], np.arange(10) >= 6
    scores = LogisticRegressionRanker().fit(X, y).decision_function(X)
    assert np.isfinite(scores).all()
    assert scores[y].min() > scores[~y].max()


def test_state_round_trip(tmp_path):
    X, y = problem()
    ranker = LogisticRegressionRanker(C=np.float64(2.0), standardize=False).fit(X, y)
    state = ranker.to_state()
    ranker.save(tmp_path / "ranker.pt")
    for copy in (LogisticRegressionRanker.from_state(state), Ranker.load(tmp_path / "ranker.pt")):
        assert copy.get_params() == ranker.get_params()
        np.testing.assert_array_equal(copy.decision_function(X), ranker.decision_function(X))
    for wrong in ({**state, "fitted": {}}, {**state, "ranker": "Nobody"}, {"parameters": {}}, [1], {"ranker": 1}):
        with pytest.raises(ValueError, match="state must be what to_state of a ranker returned"):
            LogisticRegressionRanker.from_state(wrong)
    with pytest.raises(ValueError, match="state must be of a LogisticRegressionRanker, got one of a RankBoostRanker"):
        LogisticRegressionRanker.from_state({**state, "ranker": "RankBoostRanker", "parameters": {}})


def test_a_name_stands_for_the_defaults():
    params = make_ranker("logistic").get_params()
    assert {name: params[name] for name in ("C", "standardize", "max_iter")} == {
        "C": 1e4,
        "standardize": True,
        "max_iter": 10_000,
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"C": 0}, "C must be a finite number > 0, got 0"),
        ({"C": -1.0}, "C must be"),
        ({"C": float("inf")}, "C must be"),
        ({"C": float("nan")}, "C must be"),
        ({"C": "1"}, "C must be a finite number > 0, got '1'"),
        ({"standardize": 1}, "standardize must be true or false, got 1"),
        ({"max_iter": 0}, "max_iter must be an integer >= 1, got 0"),
        ({"max_iter": 1.5}, "max_iter must be an integer >= 1, got 1.5"),
    ],
)
def test_bad_parameters(fields, message):
    with pytest.raises(ValueError, match=message):
        LogisticRegressionRanker(**fields).fit(*problem())


def test_bad_data():
    X, y = problem()
    ranker = LogisticRegressionRanker()
    with pytest.raises(ValueError, match="instance is not fitted yet"):
        ranker.decision_function(X)
    with pytest.raises(ValueError, match="instance is not fitted yet"):
        ranker.to_state()
    with pytest.raises(ValueError, match="y must hold two different labels in at least one list, got none"):
        ranker.fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="X: values must be finite and none missing, got nan in column 2, row 1"):
        ranker.fit(np.where(np.arange(4) == 1, np.nan, X), y)
    with pytest.raises(ValueError, match=r"X: a column must be constant or span at least 1e-150, got .* in column 1"):
        ranker.fit(X * [1e-200, 1.0, 1.0, 1.0], y)
    with pytest.raises(ValueError, match="X has 3 features, but LogisticRegressionRanker is expecting 4"):
        ranker.fit(X, y).decision_function(X[:, :3])


def test_linear_scores_agree_with_a_product():
    X, _ = problem()
    w = np.array([0.5, -1.0, 2.0, 0.0])
    np.testing.assert_allclose(linear_scores(X, w), X @ w)
