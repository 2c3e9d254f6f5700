"""Estimators of other libraries, and of the user's own, as methods of a run: named, fitted, saved, reranked."""

import json
import re
import sys
from pathlib import Path

import lightgbm
import numpy as np
import onnxruntime
import pytest
import xgboost
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, PolynomialFeatures, StandardScaler

from ltr.estimator_names import EstimatorName
from ltr.rankers import EstimatorRanker, ExactRanker, TwoStageRanker
from ltr.rankers.base import KINDS
from tests.imports import loaded_by
from tests.rankers.travelling import outputs_of, reloaded
from trainers.cli import main
from trainers.config import parse_config
from trainers.config.errors import ConfigError
from trainers.config.toml_text import merged
from trainers.display import Display
from trainers.files import RunError
from trainers.plan import plan_of_run
from trainers.run import experiment
from trainers.run.experiment import run_experiment
from trainers.run.folder import RunFolder
from trainers.run.methods import load_scores
from trainers.run.predict import export_run, method_of, ranker_of
from trainers.sweep.workers import compute
from trainers.task.data import split_of

OWN = '''
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ltr.rankers import Ranker


def scaled(C=1.0):
    return make_pipeline(StandardScaler(), LogisticRegression(C=C))


forest = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=5))


class Means:
    """Rank by nearness to the mean of the positives: no estimator of scikit-learn, but it has a fit and a predict."""

    def __init__(self, power=2, seed=0):
        self.power, self.seed = power, seed

    def fit(self, X, y):
        print("this must not reach standard output")
        self.mean = X[y > 0].mean(axis=0)
        return self

    def predict(self, X):
        return -(np.abs(X - self.mean) ** self.power).sum(axis=1)


class Column(Ranker):
    """A ranker of this package's kind: the column of the largest covariance with the labels."""

    _FITTED = ("best_",)

    def __init__(self, statistic="dcg", gain="exp2", normalize=False):
        self.statistic, self.gain, self.normalize = statistic, gain, normalize

    def fit(self, X, y, qid=None):
        X, y, _ = self._training_data(X, y, qid)
        self.best_ = np.array([np.abs((X - X.mean(0)).T @ (y - y.mean())).argmax()])
        return self

    def _scores(self, features):
        return features[:, int(self.best_[0])]


class Failing:
    def fit(self, X, y):
        raise KeyError("no such thing")

    def predict(self, X):
        return X[:, 0]


class exact(Means):
    pass


def nothing():
    return 3
'''
LIGHTGBM, XGBOOST = "lightgbm:LGBMRanker(n_estimators=5)", "xgboost:XGBRanker(max_depth=2,n_estimators=4)"
QUIET = {"loggers": [], "figures": False}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module of the user's own, which is not on the path."""
    (tmp_path / "own_rankers.py").write_text(OWN)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_rankers", raising=False)
    return tmp_path


@pytest.fixture
def on_path(own, monkeypatch):
    monkeypatch.syspath_prepend(str(own))
    return own


def config_for(folder, methods, **sections):
    tree = {
        "name": "own", "runs_dir": str(folder / "runs"), "seed": 3, "data": {"name": "gaussians"},
        "surrogate": {"losses": []}, "baselines": {"methods": methods},
        "exact": {"base": methods[0], "choose": False, "top_k": 30, "method": "local_search", "time_limit": 0.2},
        "tracking": QUIET,
    }  # fmt: skip
    return parse_config(merged(tree, sections))


# --- names


def test_a_name_has_one_spelling_and_a_short_form():
    name = EstimatorName.parse(" lightgbm:LGBMRanker( n_estimators = 200, objective='lambdarank', label_gain=[0, 1] )")
    assert str(name) == "lightgbm:LGBMRanker(label_gain=[0,1],n_estimators=200,objective=lambdarank)"
    assert EstimatorName.parse(str(name)) == name
    assert EstimatorName.parse("lightgbm:LGBMRanker()") == EstimatorName.parse("lightgbm:LGBMRanker")
    # 1.0 is all features and 1 a single one
    forest = "sklearn.ensemble:RandomForestClassifier"
    one, whole = (EstimatorName.parse(f"{forest}(max_features={x})") for x in ("1", "1.0"))
    assert one != whole
    assert [type(name.make().max_features) for name in (one, whole)] == [int, float]
    pairwise = EstimatorName.parse("xgboost:XGBRanker(objective=rank:pairwise)")
    assert pairwise.short == "XGBRanker(objective=rank_pairwise)"
    assert "/" not in EstimatorName.parse("a:B(path='x/y')").short
    quoted = EstimatorName.parse("a:B(text='True')")
    assert EstimatorName.parse(str(quoted)) == quoted != EstimatorName.parse("a:B(text=True)")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nowhere_at_all:Ranker", "importing nowhere_at_all failed: ModuleNotFoundError"),
        ("lightgbm:LGBMRankr", "module 'lightgbm' has no 'LGBMRankr' (did you mean 'LGBMRanker'?)"),
        ("lightgbm:LGBMRanker(n_estimatorss=3)", "has no option 'n_estimatorss' (did you mean 'n_estimators'?)"),
        ("sklearn.preprocessing:StandardScaler", "must have decision_function, predict_proba or predict"),
        ("sklearn:svm", "must be a class, a function that returns an estimator, or an estimator"),
        ("own_rankers:nothing", "must be or return an estimator with a method fit, got 3"),
        ("own_rankers:Means(width=1)", "has no option 'width'; known are power, seed"),
        ("own_rankers:Means(power=true)", "power must be spelled as in Python, True, got 'true'"),
        ("own_rankers:exact", "has the name 'exact', which is that of another method, or of a folder of the run"),
        ("rankbost", "must be auto, logistic_regression, rankboost, or module:Class(option=value,...)"),
        ("own_rankers:Means(" + ",".join(f"o{i}={i}" for i in range(40)) + ")", "has more than 100 letters"),
    ],
)
def test_what_is_wrong_with_a_name_is_said_before_anything_is_computed(on_path, text, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        config_for(on_path, ["logistic_regression", text])


def test_all_that_is_wrong_is_said_at_once(on_path):
    names = ["lightgbm:LGBMRankr", "own_rankers:Means(width=1)", "own_rankers:forest(deep=1)"]
    with pytest.raises(ConfigError) as error:
        config_for(on_path, ["logistic_regression", *names], exact={"top_k": 1})
    assert len(error.value.findings) == 4
    (on_path / "other.py").write_text("from sklearn.linear_model import LogisticRegression")
    with pytest.raises(ConfigError, match=r"has the name 'LogisticRegression', which is that of sklearn.linear_model:"):
        config_for(on_path, ["sklearn.linear_model:LogisticRegression", "other:LogisticRegression"])
    with pytest.raises(ConfigError, match=r"must be a method of this run .*name it in baselines.methods, too"):
        config_for(on_path, ["logistic_regression"], exact={"base": LIGHTGBM})
    with pytest.raises(ConfigError, match="is a classifier, which takes labels 0 and 1 only"):
        run_experiment(config_for(on_path, ["lightgbm:LGBMClassifier"], data={"name": "grouped"}))


def test_seeds_are_those_of_the_run_unless_they_are_given(on_path):
    def seed(text):
        return EstimatorName.parse(text).make(seed=7)

    assert seed("lightgbm:LGBMRanker").random_state == 7
    assert seed("lightgbm:LGBMRanker(random_state=1)").random_state == 1
    assert seed("xgboost:XGBRanker").random_state == 7
    assert seed("own_rankers:Means").seed == 7
    assert seed("own_rankers:Means(seed=2)").seed == 2
    assert seed("own_rankers:forest").get_params()["randomforestclassifier__random_state"] == 7
    assert seed("own_rankers:forest(randomforestclassifier__max_depth=2)").steps[-1][1].max_depth == 2
    assert sys.modules["own_rankers"].forest.steps[-1][1].max_depth is None  # a copy was changed


def test_plain_configs_import_nothing_slow():
    plain = "{'name': 'x', 'data': {'name': 'gaussians'}, 'baselines': {'methods': ['rankboost']}}"
    program = f"from trainers.config import parse_config; parse_config({plain})"
    assert loaded_by(program, names=["lightgbm", "xgboost", "sklearn", "torch"]) == [[]]


# --- runs


def test_both_boosters_run_as_their_libraries_fit_them_and_are_reranked(tmp_path):
    config = config_for(tmp_path, [LIGHTGBM, XGBOOST])
    assert config.methods == ("LGBMRanker(n_estimators=5)", "XGBRanker(max_depth=2,n_estimators=4)", "exact")
    assert config.base == "LGBMRanker(n_estimators=5)"
    results = run_experiment(config)
    split, run = split_of(config.data, 3), RunFolder(config.folder)
    options = {"random_state": 3, "n_jobs": 1}
    models = [
        lightgbm.LGBMRanker(n_estimators=5, verbosity=-1, **options),
        xgboost.XGBRanker(n_estimators=4, max_depth=2, **options),
    ]
    for method, model in zip(config.methods, models, strict=False):
        model.fit(split.train.X, split.train.y, group=[len(split.train.y)])
        np.testing.assert_array_equal(load_scores(run.method(method)).test, model.predict(split.test.X))
        loaded = ranker_of(run, method)
        np.testing.assert_array_equal(loaded.decision_function(split.test.X), model.predict(split.test.X))
        assert loaded.estimator_ is None  # the file holds the trees
    exact = results.rankers["exact"]
    top = exact.reranked(split.test.X)
    assert np.array_equal(exact.decision_function(split.test.X)[~top], models[0].predict(split.test.X)[~top])
    assert results.rows[2]["top"] >= results.rows[0]["top"]
    export_run(run, tmp_path / "exact.onnx")
    found = outputs_of(onnxruntime.InferenceSession(tmp_path / "exact.onnx"), split.test.X)
    np.testing.assert_array_equal(found["score"], exact.decision_function(split.test.X))


def test_a_config_finds_modules_beside_it_and_prints_json_alone(own, monkeypatch, capsys):
    (own / "beside.toml").write_text(
        'data = {name = "gaussians"}\nsurrogate = {losses = []}\ntracking = {loggers = [], figures = false}\n'
        'baselines = {methods = ["own_rankers:scaled(C=0.5)", "own_rankers:Means", "own_rankers:Column"]}\n'
        'exact = {base = "own_rankers:Column", choose = false, top_k = 20, time_limit = 0.2}\n'
    )
    elsewhere = own / "elsewhere"
    elsewhere.mkdir()
    # neither the working folder nor that of the config is on Python's path, as for the installed command
    plain = [folder for folder in sys.path if folder not in ("", str(own))]

    def command(*arguments):
        """Exit code, standard output and standard error, with nothing left of what earlier commands imported."""
        monkeypatch.setattr(sys, "path", list(plain))
        monkeypatch.delitem(sys.modules, "own_rankers", raising=False)
        monkeypatch.delitem(KINDS, "Column", raising=False)
        code = main([*arguments])
        return code, *capsys.readouterr()

    monkeypatch.chdir(elsewhere)
    code, out, error = command("run", "../beside.toml", "--json")
    assert code == 0, error
    assert "this must not reach standard output" in error
    results = json.loads(out)
    assert [row["method"] for row in results["rows"]] == ["scaled(C=0.5)", "Means", "Column", "exact"]
    assert "not saved: a Means has no form" in results["rows"][1]["message"]


def test_a_model_that_no_file_holds_is_fitted_again_when_its_run_goes_on(on_path):
    config = config_for(on_path, ["own_rankers:forest", "logistic_regression"])
    whole = run_experiment(config.model_copy(update={"name": "whole"}))
    assert "not saved: a Pipeline has no form" in whole.rows[-1]["message"]
    with pytest.raises(RunError, match=r"exact is finished, but .* has no model of it: .*not saved"):
        method_of(RunFolder(Path(config.runs_dir) / "whole"), None)
    real = experiment.run_method

    def interrupted(context, method, records):
        if method == "exact":
            raise KeyboardInterrupt
        return real(context, method, records)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "run_method", interrupted)
        assert not run_experiment(config).complete
    notes = []

    class Noting(Display):
        def note(self, text):
            notes.append(text)

    with Noting() as display:
        results = run_experiment(config, display=display)
    assert "forest: fitted again for the exact stage, because its model was not saved" in notes
    assert [row["test"] for row in results.rows] == [row["test"] for row in whole.rows]


def test_an_error_of_someone_elses_code_is_told_with_its_place(on_path):
    with pytest.raises(RunError, match=r"Failing: the fit of Failing failed: KeyError: .*own_rankers\.py, line \d+"):
        run_experiment(config_for(on_path, ["own_rankers:Failing"], exact={"enabled": False}))


def test_weights_of_rows_go_to_estimators_that_take_them(on_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    lines = [f"{a},{b},{label},{2 if label else 1}" for (a, b), label in zip(X, y, strict=True)]
    (on_path / "rows.csv").write_text("\n".join(["a,b,y,w", *lines]))
    data = {"name": None, "path": str(on_path / "rows.csv"), "label": "y", "weight": "w"}
    with pytest.raises(ConfigError, match=r"baselines.methods\[0\]: takes no weights of rows"):
        run_experiment(config_for(on_path, ["own_rankers:Means"], data=data))
    config = config_for(on_path, ["lightgbm:LGBMClassifier(n_estimators=3)"], data=data, exact={"enabled": False})
    run_experiment(config)
    split = split_of(config.data, 3)
    options = {"n_estimators": 3, "random_state": 3, "verbosity": -1, "n_jobs": 1}
    model = lightgbm.LGBMClassifier(**options).fit(split.train.X, split.train.y, sample_weight=split.train.weight)
    scores = load_scores(RunFolder(config.folder).method("LGBMClassifier(n_estimators=3)"))
    np.testing.assert_array_equal(scores.test, model.predict(split.test.X, raw_score=True))


# --- sweeps and searches


def test_cells_depend_on_the_import_path_and_are_computed_from_it(on_path):
    (on_path / "other_rankers.py").write_text(OWN)
    cells = []
    for module in ("own_rankers", "other_rankers"):
        config = config_for(on_path, [f"{module}:scaled(C=0.5)"])
        data = split_of(config.data, 3).facts["sha256"]
        cells.append(list(plan_of_run(config, data).cells.values()))
    assert [cell.method for cell in cells[0]] == [cell.method for cell in cells[1]] == ["scaled(C=0.5)", "exact"]
    assert not {cell.id for cell in cells[0]} & {cell.id for cell in cells[1]}
    assert cells[0][0].options == {"estimator": "own_rankers:scaled(C=0.5)"}
    record = compute(cells[0][0], {}, 1)
    assert (record["status"], len(record["weights"])) == ("fitted", 2)


# --- in Python


def test_two_stages_take_a_name_and_can_be_fitted_again_from_their_file(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
    ranker = TwoStageRanker(LIGHTGBM, ExactRanker("dcg"), top_k=30, choose=False).fit(X, y)
    loaded = reloaded(ranker, tmp_path)
    np.testing.assert_array_equal(loaded.predict(X), ranker.predict(X))
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), ranker.predict(X))
    with pytest.raises(ValueError, match=r"ranker must be logistic, rankboost, .* no 'LGBMRankr'"):
        TwoStageRanker("lightgbm:LGBMRankr", choose=False).fit(X, y)


def test_pipelines_of_linear_steps_are_linear(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(2.0, 3.0, size=(80, 4))
    y = (X[:, 1] - X[:, 2] + rng.normal(size=80) > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), MinMaxScaler(), LogisticRegression())
    ranker = EstimatorRanker(pipeline).fit(X, y)
    expected = ranker.estimator_.decision_function(X)
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(reloaded(ranker, tmp_path).predict(X), ranker.predict(X))


@pytest.mark.parametrize(
    "step",
    [
        PolynomialFeatures(2),
        KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),  # constant around 0
        MinMaxScaler(clip=True),  # linear among the training rows alone
    ],
    ids=lambda step: type(step).__name__,
)
def test_pipelines_of_other_steps_are_not(step, tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(2.0, 300.0, size=(80, 4))
    y = (X[:, 1] - X[:, 2] + 100 * rng.normal(size=80) > 0).astype(int)
    bent = EstimatorRanker(make_pipeline(step, StandardScaler(), LogisticRegression(max_iter=1000))).fit(X, y)
    assert bent.form_ is None
    assert bent.linear_weights is None
    np.testing.assert_array_equal(bent.predict(3 * X), bent.estimator_.decision_function(3 * X))
    with pytest.raises(TypeError, match="a Pipeline has no form that can be saved"):
        bent.save(tmp_path / "never.json")
