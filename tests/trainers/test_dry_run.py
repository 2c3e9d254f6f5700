"""The command line as habit expects it: dry runs, JSON, quiet, keys by section, completion, mistakes before imports."""

import json
import os
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.trainers.conftest import table
from trainers.cli import main

SWEEP = '[[grid]]\nexperiments = ["quick.toml"]\nsplits = 2\nmethods = ["ranknet", "exact"]\n'


@pytest.fixture
def workplace(workplace):
    """The folder with a table and a config, and a sweep in it too."""
    (workplace / "sweep.toml").write_text(SWEEP)
    return workplace


def said(capsys, *arguments):
    """What a command writes to stdout."""
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_a_dry_run_says_what_is_computed_and_writes_nothing(workplace, capsys):
    before = sorted(workplace.rglob("*"))
    out = said(capsys, "run", "quick.toml", "-n")
    for text in ("nothing is computed or written", "80 rows", "40 for training, 40 for testing"):
        assert text in out
    lines = [line.split() for line in out.splitlines() if "to compute" in line]
    states = [("ranknet", ""), ("logistic_regression", ""), ("exact", "0.1 s")]
    assert lines == [[method, "to", "compute", *limit.split()] for method, limit in states]
    assert "; 2 features" in out
    assert "folder runs/quick: new" in out
    assert main(["run", "quick.toml", "-n", "--json"]) == 2
    assert "--json: does not go with --dry-run" in capsys.readouterr().err
    assert sorted(workplace.rglob("*")) == before


def test_a_dry_run_knows_what_is_finished_and_what_does_not_go_on(workplace, capsys):
    run = json.loads(said(capsys, "run", "quick.toml", "-q", "--json", "exact.enabled=false"))
    assert [row["method"] for row in run["rows"]] == ["ranknet", "logistic_regression"]
    assert json.loads(said(capsys, "show", "quick", "--json")) == run
    (workplace / "runs" / "quick" / "ranknet" / "result.json").unlink()
    assert "1 of 2 methods are finished" in said(capsys, "run", "quick.toml", "-n", "exact.enabled=false")
    assert "would be deleted" in said(capsys, "run", "quick.toml", "-n", "--fresh")
    assert main(["run", "quick.toml", "-n"]) == 2
    assert "exact.enabled: was false in the run begun in runs/quick" in capsys.readouterr().err
    (workplace / "table.csv").write_text(table(seed=1))
    assert main(["run", "quick.toml", "-n", "exact.enabled=false"]) == 2
    assert "data: changed since the run in runs/quick began" in capsys.readouterr().err


def test_dry_runs_of_sweeps(workplace, capsys):
    before = sorted(workplace.rglob("*"))
    out = said(capsys, "sweep", "sweep.toml", "-n")
    assert "6 results, 0 of them finished; 6 to compute" in out
    assert [line.split() for line in out.splitlines() if line.startswith("quick")] == [
        ["quick", "exact", "2", "0.1", "s"],
        ["quick", "logistic_regression", "2"],
        ["quick", "ranknet", "2"],
    ]
    assert "3 results" in said(capsys, "sweep", "sweep.toml", "-n", "--shard=1/2")
    assert sorted(workplace.rglob("*")) == before


def test_quiet_and_json_leave_out_all_else(workplace, capsys):
    arguments = ["card", "table.csv", "--label", "failed", "--time-limit=5", "--questions=1", "-q"]
    assert main([*arguments, "-o", "card", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["questions"]
    assert err == ""
    assert main(arguments) == 0
    assert capsys.readouterr().err == ""


def test_options_of_sections_and_keys(capsys):
    out = said(capsys, "options", "baselines.rankboost", "name")
    keys = [line.split()[0] for line in out.splitlines() if line and not line.startswith(("key", "of a s"))]
    assert keys[:2] == ["name", "baselines.rankboost.rounds"]
    assert all(key == "name" or key.startswith("baselines.rankboost.") for key in keys)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("ltr r", {"run", "rank", "report"}),
        ("ltr run q", {"quick.toml"}),
        ("ltr run quick.toml exact.ma", {"exact.margin=", "exact.max_nonzeros="}),
        ("ltr tune quick.toml tune.s", {"tune.seed=", "tune.splits=", "tune.statistic="}),
        ("ltr options exact.mar", {"exact.margin"}),
        ("ltr show f", {"first"}),
    ],
)
def test_a_shell_completes_commands_files_keys_and_runs(workplace, line, found):
    (workplace / "runs" / "first").mkdir(parents=True)
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line,
        "COMP_POINT": str(len(line)), "COMP_TYPE": "9", "_ARGCOMPLETE_STDOUT_FILENAME": str(workplace / "said.txt"),
    }  # fmt: skip
    subprocess.run([sys.executable, "-m", "trainers"], env=environment, cwd=workplace, check=True, timeout=60)
    assert {word.strip() for word in (workplace / "said.txt").read_text().split("\n")} == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_scripts_for_shells(shell, capsys):
    out = said(capsys, "completion", shell)
    assert "_ARGCOMPLETE" in out
    assert "ltr" in out
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=out, text=True, check=False).returncode == 0


MISTAKES = {
    "run key.toml": "exact.topk: unknown key",
    "run gone.toml": "none.csv: no such file",
    "run table.toml": "2 problems",
    "sweep wrong.toml": "grid[0].splitz: unknown key",
    "card table.csv --label faild data.drop=idd": "2 problems",
    "check table.csv --label faild --drop idd": "no column to drop 'idd'",
    "options exact.margn exat": "(did you mean 'exact.margin'?)",
    "run": "ltr run: error: the following arguments are required: CONFIG\n",
    "run keys.toml": "keys.toml: no such config file (did you mean 'key.toml'?)",
    "run .": ".: is a folder; give a config file",
    "check tabel.csv": "argument TABLE: tabel.csv: no such file (did you mean 'table.csv'?)",
    "chek table.csv": "(did you mean 'check'?)",
    "run key.toml --dryrun": "ltr run: error: unrecognized arguments: --dryrun (did you mean '--dry-run'?)",
    "--vrsion": "ltr: error: unrecognized arguments: --vrsion (did you mean '--version'?)",
}
HEAVY = ("torch", "sklearn", "pyscipopt", "scipy", "matplotlib", "tensorboard")


ALL_AT_ONCE = """
import contextlib, io, json, sys
from trainers.cli import main
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code = main(command.split())
        except SystemExit as end:
            code = end.code
    heavy = [name for name in json.loads(sys.argv[2]) if name in sys.modules]
    print(json.dumps([command, code, err.getvalue(), heavy]))
"""


def test_mistakes_are_reported_before_heavy_imports(workplace):
    (workplace / "key.toml").write_text('[data]\nname = "gaussians"\n[exact]\ntopk = 3\n')
    (workplace / "gone.toml").write_text('[data]\npath = "none.csv"\nlabel = "y"\n')
    (workplace / "table.toml").write_text('[data]\npath = "table.csv"\nlabel = "faild"\ndrop = ["idd"]\n')
    (workplace / "wrong.toml").write_text('[[grid]]\nexperiments = ["table.toml"]\nsplitz = 2\n')
    done = subprocess.run(
        [sys.executable, "-c", ALL_AT_ONCE, json.dumps(list(MISTAKES)), json.dumps(HEAVY)],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    answers = list(map(json.loads, done.stdout.splitlines()))
    assert [command for command, *_ in answers] == list(MISTAKES)
    for command, code, err, heavy in answers:
        assert (command, code, heavy) == (command, 2, [])
        assert MISTAKES[command] in err
