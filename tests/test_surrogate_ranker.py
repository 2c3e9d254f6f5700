"""Surrogate rankers: certified optima, raw features, state, interruption, resumption."""

import copy
import io
import math
import warnings

import numpy as np
import pytest
import torch

from ltr.rankers import Ranker, SurrogateRanker, make_ranker

# many of these fits are cut short
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

LOSSES = ["ranknet", "hinge", "squared_hinge", "exponential", "logistic", "p_norm_push(p=2)"]


def overlapping(n=200, d=8, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d)) @ generator.normal(size=(d, d))
    y = X @ generator.normal(size=d) + 6 * generator.normal(size=n) > 2
    return X, y.astype(int)


def gaussians(n=400, seed=0):
    generator = np.random.default_rng(seed)
    y = (np.arange(n) % 2).astype(int)
    return generator.normal(size=(n, 2)) + y[:, None] * [1.0, 0.4], y


def separable(n=150, d=12, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, d))
    return X, (X @ generator.normal(size=d) > 1).astype(int)


def badly_scaled(n=200, d=8, seed=1):
    X, y = overlapping(n, d, seed)
    return X * np.logspace(-3, 4, d) + 100 * np.logspace(4, -3, d), y


DATA = {"overlapping": overlapping, "gaussians": gaussians, "separable": separable, "badly_scaled": badly_scaled}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_linear_fit_reaches_the_certified_optimum(loss, data):
    X, y = DATA[data]()
    ranker = SurrogateRanker(loss).fit(X, y)
    assert ranker.converged_
    assert abs(ranker.distance_to_optimum(X, y)) <= 1e-6


@pytest.mark.parametrize("loss", ["ranknet", "hinge"])
def test_units_of_the_features_do_not_matter(loss):
    X, y = overlapping()
    factors = np.logspace(-3, 4, X.shape[1])
    plain, scaled = SurrogateRanker(loss).fit(X, y), SurrogateRanker(loss).fit(X * factors + 10 * factors, y)
    np.testing.assert_allclose(scaled.linear_weights * factors, plain.linear_weights, rtol=1e-3, atol=1e-5)
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-7)


@pytest.mark.parametrize("loss", ["ranknet", "logistic"])
def test_linear_weights_order_raw_rows_as_the_scores_do(loss):
    X, y = badly_scaled()
    ranker = SurrogateRanker(loss).fit(X, y)
    scores, raw = ranker.decision_function(X), X @ ranker.linear_weights
    np.testing.assert_allclose(scores - scores.mean(), raw - raw.mean(), rtol=1e-6, atol=1e-6)
    assert scores.dtype == np.float64


def test_a_constant_column_gets_no_weight():
    X, y = overlapping()
    X[:, 3] = 7.5
    ranker = SurrogateRanker("hinge").fit(X, y)
    assert ranker.linear_weights[3] == 0


@pytest.mark.parametrize("scorer", ["linear", "mlp"])
def test_equal_rows_get_equal_scores(scorer):
    X, y = overlapping(60)
    ranker = SurrogateRanker(scorer=scorer, hidden=(33,), max_steps=5).fit(X, y)
    rows = np.concatenate([X, X[:41], X[::-1]])
    scores = ranker.decision_function(rows)
    np.testing.assert_array_equal(scores[:60], scores[60 + 41 :][::-1])
    np.testing.assert_array_equal(scores[:41], scores[60 : 60 + 41])


@pytest.mark.parametrize(("optimizer", "batch_size"), [("lbfgs", None), ("adam", 32)])
def test_an_mlp_ranker_learns(optimizer, batch_size):
    X, y = overlapping()
    steps = []
    ranker = SurrogateRanker(
        scorer="mlp",
        hidden=(16,),
        optimizer=optimizer,
        batch_size=batch_size,
        learning_rate=0.01,
        validation=0,
        max_steps=15,
        on_step=lambda step, ranker: steps.append(step),
    ).fit(X, y)
    assert len(steps) == ranker.n_iter_ == 15
    assert ranker.objective_ == min(step.objective for step in steps) < 0.8 * steps[0].objective
    assert ranker.linear_weights is None
    with pytest.raises(ValueError, match="scorer must be 'linear' for a convex problem, got 'mlp'"):
        ranker.distance_to_optimum(X, y)


def test_lists_of_graded_labels_are_fitted():
    generator = np.random.default_rng(0)
    X, qid = generator.normal(size=(90, 3)), np.arange(90) // 6
    y = np.clip(np.round(X[:, 0] + 5 * qid % 3), 0, 4)
    ranker = SurrogateRanker("ranknet").fit(X, y, qid=qid)
    weights = np.abs(ranker.linear_weights)
    assert weights[0] > 3 * weights[1:].max()


def test_seeds_decide_what_an_mlp_becomes_and_nothing_else_does():
    X, y = overlapping(60)

    def scores(seed):
        options = {"scorer": "mlp", "hidden": (8,), "optimizer": "adam", "batch_size": 16, "max_steps": 3}
        return SurrogateRanker("ranknet", seed=seed, **options).fit(X, y).decision_function(X)

    before = torch.random.get_rng_state()
    first = scores(1)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.rand(1)
    np.testing.assert_array_equal(scores(1), first)
    assert not np.array_equal(scores(2), first)


# state


@pytest.mark.parametrize("scorer", ["linear", "mlp"])
def test_a_saved_ranker_scores_the_same(scorer):
    X, y = badly_scaled(80)
    ranker = SurrogateRanker("p_norm_push(p=4)", scorer=scorer, hidden=(8, 4), max_steps=10).fit(X, y)
    file = io.BytesIO()
    torch.save(ranker.to_state(), file)
    file.seek(0)
    loaded = Ranker.from_state(torch.load(file, weights_only=True))
    np.testing.assert_array_equal(loaded.decision_function(X), ranker.decision_function(X))
    assert loaded.get_params() == ranker.get_params()
    assert loaded.hidden == (8, 4)
    assert (loaded.objective_, loaded.n_iter_, loaded.converged_) == (
        ranker.objective_,
        ranker.n_iter_,
        ranker.converged_,
    )


def test_a_state_is_a_copy_and_a_foreign_one_is_refused():
    X, y = overlapping(60)
    ranker = SurrogateRanker().fit(X, y)
    scores, state = ranker.decision_function(X), ranker.to_state()
    state["fitted"]["scorer"]["weight"].zero_()
    np.testing.assert_array_equal(ranker.decision_function(X), scores)
    with pytest.raises(ValueError, match="state must be what to_state of a ranker returned"):
        SurrogateRanker.from_state({"kind": "surrogate"})


def test_a_copy_leaves_data_and_callback_behind():
    X, y = overlapping(60)
    ranker = SurrogateRanker(max_steps=3, on_step=lambda step, ranker: None).fit(X, y)
    duplicate = copy.deepcopy(ranker)
    np.testing.assert_array_equal(duplicate.decision_function(X), ranker.decision_function(X))
    assert duplicate.fit_ is None
    assert duplicate.on_step is None


def test_scikit_learn_clones_it_and_the_factory_knows_it():
    from sklearn.base import clone

    ranker = SurrogateRanker("hinge", hidden=(5,), seed=3)
    assert clone(ranker).get_params() == ranker.get_params()
    assert (
        make_ranker("p_norm_push(p=2)", seed=4).get_params() == SurrogateRanker("p_norm_push(p=2)", seed=4).get_params()
    )


# interruption and resumption


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("options", [{}, {"optimizer": "adam", "batch_size": 20, "learning_rate": 0.3}])
def test_an_interrupted_ranker_holds_the_best_weights_so_far(options, stop):
    X, y = overlapping(60)
    seen = []

    def interrupt(step, ranker):
        seen.append((step.objective, ranker.decision_function(X)))
        if step.index == 6:
            raise stop

    ranker = SurrogateRanker("ranknet", max_steps=50, on_step=interrupt, **options)
    with pytest.raises(stop):
        ranker.fit(X, y)
    best = min(range(6), key=lambda at: seen[at][0])
    assert ranker.objective_ == seen[best][0]
    np.testing.assert_array_equal(ranker.decision_function(X), seen[best][1])
    assert ranker.n_iter_ == 6
    assert not ranker.converged_


@pytest.mark.parametrize("options", [{}, {"scorer": "mlp", "hidden": (8,), "optimizer": "adam", "batch_size": 20}])
@pytest.mark.parametrize("after", [1, 5])
def test_an_interrupted_fit_resumes_bit_for_bit(options, after):
    X, y = overlapping(60)

    def interrupt(step, ranker):
        if step.index == after:
            raise KeyboardInterrupt

    whole = SurrogateRanker("hinge", max_steps=9, **options).fit(X, y)
    stopped = SurrogateRanker("hinge", max_steps=9, on_step=interrupt, **options)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y)
    resumed = SurrogateRanker("hinge", max_steps=9, **options).fit(X, y, resume=stopped.fit_.state_dict())
    np.testing.assert_array_equal(resumed.decision_function(X), whole.decision_function(X))
    assert (resumed.objective_, resumed.n_iter_) == (whole.objective_, whole.n_iter_)


# errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hing"}, "loss: unknown name 'hing'"),
        ({"scorer": "tree"}, "scorer must be one of 'linear', 'mlp', 'attention', got 'tree'"),
        ({"scorer": "mlp", "hidden": (0,)}, "hidden must be an integer >= 1, got 0"),
        ({"scorer": "mlp", "hidden": 64}, "hidden must be a sequence of integers >= 1, got 64"),
        ({"l2": "0.1"}, "l2 must be a finite number >= 0, got '0.1'"),
        ({"l2": -1.0}, "l2 must be a finite number >= 0, got -1.0"),
        ({"optimizer": "sgd"}, "optimizer must be one of"),
        ({"batch_size": 8}, "batch_size is for optimizer 'adam' only"),
        ({"on_step": 3}, "on_step must be callable, got 3"),
        ({"scorer": "mlp", "hidden": np.array(3)}, "hidden must be a sequence of integers >= 1"),
    ],
)
def test_parameters_are_checked_by_fit(options, message):
    with pytest.raises(ValueError, match=message):
        SurrogateRanker(**options).fit(*overlapping(40))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [float("nan")]], [0, 1], "X: values must be finite and none missing, got nan in column"),
        ([[1.0], [2.0]], [1, 1], "y must hold two different labels in at least one list, got none"),
        ([[1.0], [2.0]], [1, 0, 0], "y must have one label per row of X"),
        ([1.0, 2.0], [1, 0], "Expected 2D array, got 1D array"),
        ([[1.0, 2.0], [3.0]], [1, 0], "inhomogeneous"),
        ([[1.0], [2.0]], ["good", "bad"], "y must hold numbers >= 0"),
    ],
)
def test_bad_data_is_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        SurrogateRanker().fit(X, y)


@pytest.mark.parametrize("scorer", ["linear", "mlp"])
def test_arrays_that_may_not_be_written_are_read_without_a_warning(scorer, monkeypatch):
    # once in a process is all that torch says it
    monkeypatch.setattr(torch, "from_numpy", lambda array: torch.tensor(array) if array.flags.writeable else 1 / 0)
    X, y = overlapping(40)
    X.setflags(write=False)
    y.setflags(write=False)
    ranker = SurrogateRanker(scorer=scorer, max_steps=3).fit(X, y)
    assert np.isfinite(ranker.decision_function(X)).all()
    if scorer == "linear":
        assert np.isfinite(ranker.distance_to_optimum(X, y))


def test_the_distance_to_an_optimum_of_0():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    ranker = SurrogateRanker("hinge", l2=0.0).fit(X, y)
    assert ranker.objective_ == ranker.distance_to_optimum(X, y) == 0
    assert SurrogateRanker("hinge", l2=0.0, max_steps=1).fit(X, y).distance_to_optimum(X, y) in (0.0, math.inf)


def test_scores_need_a_fit_and_its_columns():
    with pytest.raises(ValueError, match="SurrogateRanker instance is not fitted yet"):
        SurrogateRanker().decision_function([[1.0]])
    X, y = overlapping(40)
    with pytest.raises(ValueError, match="X has 2 features, but SurrogateRanker is expecting 8"):
        SurrogateRanker(max_steps=1).fit(X, y).decision_function(X[:, :2])


@pytest.mark.parametrize("by_query", [False, True])
@pytest.mark.parametrize("options", [{}, {"optimizer": "adam", "max_steps": 30}, {"signs": {0: "+"}}], ids=repr)
def test_an_optimum_is_measured_on_a_validation_set_and_does_not_depend_on_it(options, by_query):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 2, 120)
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    qid = np.arange(120) % 6 if by_query else None
    train, held = np.arange(120) < 72, np.arange(120) >= 72
    part = [(X[rows], y[rows], None if qid is None else qid[rows]) for rows in (train, held)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, measured = (
            SurrogateRanker("hinge", l2=0.01, normalize=True, **options).fit(*part[0], validation_set=given)
            for given in (None, part[1])
        )
    assert plain.validation_ is None
    np.testing.assert_array_equal(measured.coef_, plain.coef_)
    assert (measured.converged_, measured.n_iter_) == (plain.converged_, plain.n_iter_)
    assert measured.validation_ == pytest.approx(measured.score(*part[1]), abs=1e-12)
    with pytest.raises(ValueError, match=r"validation_set must be \(X, y\) or \(X, y, qid\)"):
        SurrogateRanker("hinge", **options).fit(*part[0], validation_set=(X[held],))
