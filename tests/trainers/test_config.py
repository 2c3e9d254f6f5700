"""The config: what is accepted, and that everything wrong is said at once in the user's words."""

import tomllib

import pytest

from ltr.data import dataset_names
from tests.paths import ROOT
from trainers.config import Config, describe_keys, load_config, parse_config, resolved_toml
from trainers.config.errors import ConfigError
from trainers.config.grids import load_sweep
from trainers.config.toml_text import merged, read_experiment, unflat

MINIMAL = {"name": "x", "data": {"name": "gaussians"}}


BAD = [
    ("sede", 3, "sede: unknown key (did you mean 'seed'?), got 3"),
    ("baselines.rankboost.round", 9, "baselines.rankboost.round: unknown key (did you mean 'rounds'?), got 9"),
    ("tracking.qqq", 1, "tracking.qqq: unknown key; known are loggers, every, figures, got 1"),
    ("name", "a/b", "name: must be letters, digits, '-', '_', '.' or '+', not starting with '.' or '-', got \"a/b\""),
    ("seed", -1, "seed: must be >= 0, got -1"),
    ("seed", 1.5, "seed: must be an integer, got 1.5"),
    ("seed", True, "seed: must be an integer, got true"),
    (
        "baselines.methods",
        [],
        "surrogate.losses: must name a loss, or baselines.methods a method: nothing is left to r",
    ),
    ("data.name", "pimma", "data.name: unknown data set (did you mean 'pima'?); known are gaussians"),
    ("data.path", "t.csv", 'data.path: must not be given beside name: the data come from one place, got "t.csv"'),
    ("data.label", "y", 'data.label: goes with path only: a named data set knows its columns, got "y"'),
    ("data.train_fraction", 1.0, "data.train_fraction: must be < 1"),
    ("surrogate", 3, "surrogate: must be a table of keys, got 3"),
    ("surrogate.scale", "quantile", "surrogate.scale: goes with neural scorers only"),
    ("surrogate.clip", 1.0, 'surrogate.clip: goes with optimizer = "adam" only'),
    ("surrogate.losses", ["ranknet", "hing"], "surrogate.losses[1]: loss: unknown name 'hing' (did you mean 'hinge'?)"),
    ("surrogate.losses", ["ranknet", "ranknet"], "surrogate.losses: must not name 'ranknet' twice"),
    ("surrogate.scorer", "mpl", "surrogate.scorer: must be 'linear', 'mlp' or 'attention' (did you mean 'mlp'?)"),
    ("surrogate.hidden", [8], 'surrogate.hidden: goes with scorer = "mlp" or "attention" only, got [8]'),
    ("surrogate.hidden", [8, "x"], 'surrogate.hidden[1]: must be an integer, got "x"'),
    ("baselines.methods", ["rankbost"], "baselines.methods[0]: must be auto, logistic_regression, rankboost, or mod"),
    ("exact.base", "svm", 'exact.base: must be a method of this run (auto), got "svm"'),
    ("exact.top_k", 1, 'exact.top_k: must be an integer >= 2, or "full", got 1'),
    ("exact.statistic", "dgc", "exact.statistic: unknown name 'dgc' (did you mean 'dcg'?); known are auc"),
    ("exact.statistic", "ap", "exact.statistic: statistic ap: average precision is no sum of weights of ranks, so it"),
    ("exact.statistic", "hits@50", "exact.statistic: must have a cutoff below top_k = 50: all of that list are among"),
    ("exact.statistic", "weights(0,1)", "exact.statistic: must hold top_k = 50 weights, one per rank"),
    ("exact.statistic", "weights(" + ",".join(map(str, range(50))) + ")", "exact.statistic: goes with choose = false"),
    ("exact.base_score", 2, "exact.base_score: must be true, false, or the name of a column of scores, got 2"),
    ("exact.spread", 0.2, "exact.spread: goes with choose = false only: the choice compares several, got 0.2"),
    ("exact.recentre", "l2", "exact.recentre: goes with choose = false and no spread only"),
    ("exact.C", float("inf"), "exact.C: must be a finite number, got inf"),
    ("exact.method", "simplex", "exact.method: must be one of auto, "),
    ("exact.method", "subrank", "exact.method: the subrank model needs a RerankProblem with one list of labels"),
    ("statistics.report", ["weights(0,1)"], "statistics.report[0]: cannot be weights(...): they fit lists of one"),
]


@pytest.mark.parametrize(("path", "value", "message"), BAD, ids=[f"{path}={value}" for path, value, _ in BAD])
def test_a_bad_value_is_named_with_its_path_its_rule_and_the_value(path, value, message):
    with pytest.raises(ConfigError) as error:
        parse_config(merged(MINIMAL, unflat({path: value})))
    (finding,) = error.value.findings
    assert str(finding).startswith(message)


def test_everything_wrong_by_itself_is_said_at_once_and_then_what_does_not_go_together():
    tree = {
        "name": "x",
        "data": {"name": "pimma", "path": "t.csv", "train_fraction": 2},
        "exact": {"topk": 3, "base": "nope"},
        "surrogate": {"l2": -1, "hidden": [4], "losses": ["hing"]},
        "trakcing": {},
    }
    with pytest.raises(ConfigError) as error:
        parse_config(tree)
    paths = {finding.path for finding in error.value.findings}
    assert paths == {"data.train_fraction", "exact.topk", "surrogate.l2", "surrogate.losses[0]", "trakcing"}
    assert str(error.value).startswith("config: 5 errors\n  ")
    alone = {"data": {"name": "pimma", "path": "t.csv"}, "exact": {"base": "nope"}, "surrogate": {"hidden": [4]}}
    with pytest.raises(ConfigError) as error:
        parse_config({"name": "x"} | alone)
    paths = {finding.path for finding in error.value.findings}
    assert paths == {"data.name", "data.path", "surrogate.hidden", "exact.base"}


def write(folder, text):
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def test_a_file_names_its_run_and_takes_overrides(tmp_path):
    path = write(tmp_path, '[data]\nname = "gaussians"\n[exact]\ntop_k = 20\n')
    assert load_config(path).name == "experiment"
    config = load_config(
        path,
        ["exact.top_k=full", "exact.C=1e-3", "surrogate.losses=ranknet, p_norm_push(p=4,inner=logistic)", "name=other",
         "exact.base = p_norm_push(inner=logistic, p=4)", 'statistics.report=["mrr"]', "tracking.figures=false"],
    )  # fmt: skip
    assert config.exact.top_k == "full"
    assert config.exact.C == 0.001
    assert config.surrogate.losses == ("ranknet", "p_norm_push(p=4,inner=logistic)")
    assert config.exact.base == "p_norm_push(p=4,inner=logistic)"
    assert config.methods == (*config.surrogate.losses, "auto", "exact")
    assert config.reported == ("dcg", "mrr")
    assert not config.tracking.figures


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("exact.C=-1", "exact.C: must be >= 0, got -1 on the command line"),
        ("exact.base=svm", 'exact.base: must be a method of this run (auto), got "svm" on the command line'),
        ("name.x=3", "name: is a value, so 'name.x' does not exist, got \"y\""),
        ("seed=" + "9" * 5000, 'seed: must be an integer, got "999999'),
    ],
)
def test_bad_overrides_are_reported_like_keys(tmp_path, override, message):
    path = write(tmp_path, 'name = "y"\n[data]\nname = "gaussians"\n')
    with pytest.raises(ConfigError) as error:
        load_config(path, [override])
    assert str(error.value.findings[0]).startswith(message)


def test_paths_are_meant_from_the_file_or_from_here(tmp_path, monkeypatch):
    path = write(tmp_path, '[data]\npath = "table.csv"\nlabel = "y"\n')
    assert load_config(path).data.path == str(tmp_path / "table.csv")
    monkeypatch.chdir(tmp_path.parent)
    assert load_config(path, ["data.path=other.csv"]).data.path == str(tmp_path.parent / "other.csv")


def test_a_file_that_is_no_toml_says_where(tmp_path):
    with pytest.raises(ConfigError, match=r"is not valid TOML: Invalid value \(at line 1, column 8\)"):
        load_config(write(tmp_path, "seed = x\n"))
    with pytest.raises(ConfigError, match="is not valid TOML:"):
        load_config(write(tmp_path, "seed = " + "[" * 5000 + "]" * 5000))


@pytest.mark.parametrize(
    "tree",
    [
        MINIMAL,
        MINIMAL | {"surrogate": {"scorer": "mlp", "hidden": [8, 4], "optimizer": "adam", "batch_size": 16}},
        {"name": "x", "data": {"path": 'a "b" \\ \t \n \x7f ü.csv', "label": "y", "drop": ["id"]}},
        MINIMAL | {"exact": {"top_k": "full", "statistic": "dcg(base = e)@10", "node_limit": 5, "gap": 1e-3}},
    ],
)
def test_the_resolved_config_reads_back(tree):
    config = parse_config(tree)
    assert parse_config(tomllib.loads(resolved_toml(config))) == config


def test_every_key_is_described():
    keys = list(describe_keys())
    assert all(meaning for _, _, meaning in keys)
    assert {"name", "exact.top_k", "baselines.rankboost.rounds"} <= {key for key, _, _ in keys}
    assert set(Config.model_fields) == {key.split(".")[0] for key, _, _ in keys}


CONFIGS = sorted(ROOT.glob("configs/**/*.toml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_config_is_valid(path):
    tree = read_experiment(path)
    if "grid" in tree:
        assert load_sweep(path)
    elif "data" in tree:
        config = load_config(path)
        assert config.data.name in dataset_names() or config.data.path
    else:  # there to be extended
        assert any(f'extends = "{path.name}"' in other.read_text() for other in path.parent.glob("*.toml"))
