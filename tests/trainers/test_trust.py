"""Commands that read files of others run no code that these name, unless --trust is given."""

import json
import shutil
import sys

import pytest

from ltr.checks import UntrustedError, trusting
from ltr.estimator_names import EstimatorName
from ltr.losses import parse_loss
from ltr.rankers import Ranker
from ltr.rankers.files import KINDS
from ltr.statistics import RankStatistic
from tests.tiers import thinned
from tests.trainers.conftest import write_quick
from trainers.cli import main
from trainers.config import sections

EVIL = """
import pathlib
pathlib.Path({marker!r}).write_text("imported")
from ltr.losses import RankNetLoss
from ltr.rankers import LogisticRegressionRanker
from ltr.statistics import register_statistic
from trainers.loggers import Logger

class Loss(RankNetLoss):
    pass

class Scores(LogisticRegressionRanker):
    pass

class Log(Logger):
    pass

@register_statistic("evil")
def evil(position):
    return 0.5**position
"""
NAMES = {
    "loss": ("[surrogate]\nlosses = [", '[surrogate]\nlosses = ["evil:Loss",'),
    "estimator": ("[baselines]\nmethods = [", '[baselines]\nmethods = ["evil:Scores",'),
    "call": ("[baselines]\nmethods = [", '[baselines]\nmethods = ["pathlib:Path.touch(self=evil)",'),
    "statistic": ("[exact]\n", '[exact]\nstatistic = "evil:evil"\n'),
    "logger": ("[tracking]\n", '[tracking]\nloggers = ["evil:Log"]\n'),
}


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A folder with a module that leaves a mark when it is imported, a table, and a config beside them."""
    write_quick(tmp_path)
    (tmp_path / "evil.py").write_text(EVIL.format(marker=str(tmp_path / "marker")))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("ltr.checks.PLACES", [""])
    monkeypatch.setattr("ltr.statistics._KINDS", dict(RankStatistic.parse.__globals__["_KINDS"]))
    monkeypatch.delitem(sys.modules, "evil", raising=False)
    monkeypatch.delitem(KINDS, "Scores", raising=False)
    sections._wrong_estimator.cache_clear()
    yield tmp_path
    sys.modules.pop("evil", None)


def names_code(text, kind):
    """A config that names code, where its copy in a run folder has other spaces."""
    old, new = NAMES[kind]
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(("kind", "command"), thinned(2, [*NAMES], [["run", "-n"], ["check"], ["sweep", "-n"]]))
def test_a_dry_run_runs_no_code_and_says_what_it_did_not_check(stranger, capsys, kind, command):
    config = stranger / "quick.toml"
    config.write_text(names_code(config.read_text(), kind))
    if command[0] == "sweep":
        (stranger / "sweep.toml").write_text('[[grid]]\nexperiments = ["quick.toml"]\nsplits = 1\n')
        config = stranger / "sweep.toml"
    code = main([*command, str(config)])
    out, error = capsys.readouterr()
    assert not (stranger / "marker").exists()
    assert "evil" not in sys.modules
    if kind == "statistic":
        assert code == 2
        assert f"would run the code of the module evil in {stranger / 'evil.py'}; add --trust" in error
    else:
        assert (code, error) == (0, "")
        assert command == ["check"] or "not checked, for that would run code: " in " ".join(out.split())
    if kind in ("loss", "statistic", "estimator"):
        main([*command, str(config), "--trust"])
        assert (stranger / "marker").exists()


READING = [
    ["show", "quick"],
    ["predict", "quick", "table.csv"],
    ["explain", "quick", "table.csv"],
    ["export", "quick", "-o", "model.onnx"],
    ["verify", "quick"],
    ["report", "runs"],
]


@pytest.mark.parametrize(("kind", "command"), thinned(3, [*NAMES], READING))
def test_what_reads_a_run_folder_runs_no_code_of_it(stranger, quick_run, capsys, kind, command):
    run = shutil.copytree(quick_run, stranger / "runs" / "quick")
    shutil.copy(stranger / "evil.py", run)
    config = run / "config.toml"
    text = config.read_text()
    if kind in ("statistic", "logger"):
        key, value = ("statistic", '"evil:evil"') if kind == "statistic" else ("loggers", '["evil:Log"]')
        lines = [f"{key} = {value}" if line.startswith(f"{key} =") else line for line in text.splitlines()]
        config.write_text("\n".join(lines))
    else:
        config.write_text(names_code(text, kind))
    for model in run.glob("*/model.json"):  # the ranker names code in every place that has a name
        rewrite(model, swap)
    main(command)
    error = capsys.readouterr().err
    assert not (stranger / "marker").exists(), error
    assert "evil" not in sys.modules
    assert "Traceback" not in error


def rewrite(model, change):
    """Change the state of a ranker in its file, whose hash the record then leaves out."""
    state, result = json.loads(model.read_text()), model.parent / "result.json"
    change(state)
    model.write_text(json.dumps(state))
    record = json.loads(result.read_text())
    result.write_text(json.dumps({**record, "files": list(record["files"])}))


def swap(state):
    """Put names of code into the state of a ranker."""
    for key, value in state.items():
        if isinstance(value, dict):
            swap(value)
        elif key in ("loss", "statistic", "estimator"):
            state[key] = {"loss": "evil:Loss", "statistic": "evil:evil", "estimator": "evil:Scores"}[key]


def test_a_ranker_of_a_class_of_its_own_is_refused_with_the_module_and_its_file(stranger, quick_run, capsys):
    run = shutil.copytree(quick_run, stranger / "runs" / "quick")

    def change(state):
        state["fitted"]["base_"] |= {"ranker": "Scores", "parameters": {"estimator": "evil:Scores"}}

    rewrite(run / "exact" / "model.json", change)
    for command in (["predict"], ["explain"], ["export", "-o", "model.onnx"]):
        assert main([*command, "quick", *(["table.csv"] if command[0] != "export" else [])]) == 2
        error = capsys.readouterr().err
        assert f"ranker evil:Scores: would run the code of the module evil in {stranger / 'evil.py'}" in error
        assert not (stranger / "marker").exists()
    main(["predict", "quick", "table.csv", "--trust"])
    assert (stranger / "marker").exists()


def test_the_running_commands_run_what_their_config_names(stranger, capsys):
    config = stranger / "quick.toml"
    config.write_text(names_code(config.read_text(), "loss"))
    assert main(["run", str(config), "-q"]) == 0, capsys.readouterr().err
    assert (stranger / "marker").exists()


def test_nothing_named_is_imported_where_code_may_not_run(stranger):
    for make in (
        lambda: parse_loss("evil:Loss"),
        lambda: RankStatistic.parse("evil:evil"),
        lambda: EstimatorName.parse("evil:Scores").make(),
    ):
        with trusting(False), pytest.raises(UntrustedError, match=r"the module evil in .*evil\.py; add --trust"):
            make()
        assert not (stranger / "marker").exists()
    with trusting(False), pytest.raises(UntrustedError, match="would run the code of the module os"):
        EstimatorName.parse("os:system(command='touch marker')").make()
    assert parse_loss("evil:Loss").convex  # and the context ends
    with trusting(False):  # what is registered runs nothing more
        assert RankStatistic.parse("evil:evil").weights(2).tolist() == [0.5, 1.0]


def test_a_saved_ranker_is_read_without_what_it_names(stranger, quick_run):
    state = json.loads((quick_run / "ranknet" / "model.json").read_text())
    swap(state)
    path = stranger / "model.json"
    path.write_text(json.dumps(state))
    assert Ranker.load(path).predict([[0.0, 1.0]]).shape == (1,)
    assert not (stranger / "marker").exists()
