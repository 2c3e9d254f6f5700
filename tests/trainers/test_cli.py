"""The command line: exit codes, messages in the user's words, prediction on new rows."""

import csv
import io
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ltr
from ltr.exact import RerankProblem, certify, solve
from ltr.rankers import TwoStageRanker
from tests.paths import ROOT
from tests.trainers.conftest import table
from trainers.cli import main


def test_run_prints_the_table_and_goes_on(workplace, capsys):
    assert main(["run", "quick.toml"]) == 0
    out, err = capsys.readouterr()
    for text in ("run quick", "train dcg", "bound", "ranknet", "logistic_regression", "exact", "top 20 of"):
        assert text in out
    assert "ranknet: " in err
    assert "curves: tensorboard --logdir runs" in err
    assert main(["run", "quick.toml"]) == 0
    again, err = capsys.readouterr()
    assert again == out
    assert "ranknet: finished earlier" in err
    assert main(["show", "quick"]) == 0
    assert capsys.readouterr().out == out


def test_a_run_leaves_a_certificate_that_verify_accepts(workplace, capsys):
    assert main(["run", "quick.toml", "-q", "exact.certificate=true", "exact.method=weight_space"]) == 0
    path = workplace / "runs" / "quick" / "exact" / "certificate.json"
    capsys.readouterr()
    assert main(["verify", "--require-proof", str(path)]) == 0
    assert "optimal" in capsys.readouterr().out
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "value": content["value"] + 1e-6}))
    assert main(["verify", str(path)]) == 1


USER_ERRORS = [
    (["run", "quick.toml", "exact.C=-1"], None, "exact.C: must be >= 0, got -1 on the command line"),
    (["run", "quick.toml", "data.features=age,hour"], None, "no feature column 'hour'"),
    (
        ["run", "quick.toml"],
        "id,age,failed\n1,2,0\n2,3,1\n3,4,0\n4,5,1\n5,old,0\n",
        "column 'age' must hold numbers, got 'old' in row 5; data.missing = [\"old\"]",
    ),
    (["run", "quick.toml"], "id,age,failed\n1,2,0\n2,3,1\n", "the training set holds only label"),
    (["run", "quick.toml", "surrogate.device=cuda"], None, "surrogate.device must be 'cpu' or 'auto' here"),
    (["run", "quick.toml", "runs_dir=table.csv"], None, "runs_dir: cannot write table.csv/quick: Not a directory"),
    (["show", "nothing"], None, "no run folder at nothing"),
]


@pytest.mark.parametrize(("arguments", "rows", "message"), USER_ERRORS)
def test_what_the_user_got_wrong_is_one_message_and_exit_code_2(workplace, capsys, arguments, rows, message):
    if rows is not None:
        (workplace / "table.csv").write_text(rows)
    code = main([*arguments, "--quiet"] if arguments[0] == "run" else arguments)
    err = capsys.readouterr().err
    assert code == 2
    assert err.startswith("ltr: error: ")
    assert message in err
    assert "Traceback" not in err


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "trainers", "--version"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout == f"ltr {ltr.__version__}\n"


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_predict_ranks_new_rows_by_column_name(quick_run, tmp_path, capsys):
    rows = [line.split(",") for line in table(rows=50, seed=7).splitlines()]
    # other order of columns, no label, ids that must stay as they are
    new = tmp_path / "new.csv"
    new.write_text("\n".join(f"{hours},{name},{age}" for name, age, hours, _ in rows) + "\n")
    assert main(["predict", str(quick_run), str(new)]) == 0
    ranked = read_csv(capsys.readouterr().out)
    assert [int(row["position"]) for row in ranked] == list(range(1, 51))
    scores = [float(row["score"]) for row in ranked]
    assert scores == sorted(scores, reverse=True)
    X = pd.DataFrame({name: [float(row[at]) for row in rows[1:]] for name, at in (("hours", 2), ("age", 1))})
    ranker = TwoStageRanker.load(quick_run / "exact" / "model.json")
    order = np.argsort(-ranker.decision_function(X), kind="stable")
    assert [int(row["row"]) - 1 for row in ranked] == order.tolist()
    assert [row["stage"] == "reranked" for row in ranked] == ranker.reranked(X)[order].tolist()
    assert {row["stage"] for row in ranked} == {"reranked", "base"}
    assert [row["id"] for row in ranked] == [rows[1 + i][0] for i in order]
    assert scores == ranker.decision_function(X)[order].tolist()


def test_predict_writes_a_file_and_takes_a_method(quick_run, tmp_path, capsys):
    new = tmp_path / "new.tsv"
    new.write_text("score\tage\thours\n" + "\n".join(f"{i}\t{i}\t{-i}" for i in range(5)))
    output = tmp_path / "ranked.csv"
    assert main(["predict", str(quick_run), str(new), "--method", "ranknet", "-o", str(output)]) == 0
    assert capsys.readouterr().out == ""
    ranked = read_csv(output.read_text())
    # the table has a column named score: ours step aside
    assert list(ranked[0]) == ["ltr_position", "ltr_score", "ltr_stage", "ltr_row", "score", "age", "hours"]
    assert {row["ltr_stage"] for row in ranked} == {"base"}
    assert all(int(row["ltr_row"]) == int(row["score"]) + 1 for row in ranked)


DAMAGE = [
    ("run.json", "", ["predict", "table.csv"]),
    ("run.json", '{"data": 3}', ["predict", "table.csv"]),
    ("exact/model.json", "garbled", ["predict", "table.csv"]),
    ("results.json", "[]", ["show"]),
]


@pytest.mark.parametrize(("name", "text", "command"), DAMAGE)
def test_a_damaged_file_of_a_run_is_named(quick_run, tmp_path, capsys, name, text, command):
    run = tmp_path / "quick"
    shutil.copytree(quick_run, run)
    (run / name).write_text(text)
    arguments = [str(quick_run.parents[1] / word) for word in command[1:]]
    assert main([command[0], str(run), *arguments]) == 2
    err = capsys.readouterr().err
    assert f"{name.rpartition('/')[2]}: cannot be read or is damaged" in err
    assert "--fresh" in err


INTERRUPTED_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # which shells turn off in the background
sys.meta_path.insert(0, Interrupting())
from trainers.cli import main
sys.exit(main(["run", "quick.toml", "--quiet"]))
"""


@pytest.mark.parametrize("module", ["ltr", "trainers.run.experiment"])
def test_ctrl_c_while_the_imports_run_ends_in_130(workplace, module):
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module]
    done = subprocess.run(command, capture_output=True, text=True, cwd=workplace)
    assert (done.returncode, done.stderr) == (130, "ltr: interrupted\n")
    assert not (workplace / "runs").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_message(quick_run):
    def shell(command):
        text = f"{shlex.quote(sys.executable)} -m trainers {command}"
        return subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=ROOT)

    done = shell(f"show {quick_run} > /dev/full")
    assert (done.returncode, done.stderr) == (2, "ltr: error: standard output: No space left on device\n")
    done = shell("options | true; echo ${PIPESTATUS[0]}")
    assert (done.stdout.strip() in ("141", "0"), done.stderr) == (True, "")


def test_verify_prints_one_json_document(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    solution = solve(problem := RerankProblem(np.eye(3), [1, 0, 1], "dcg"))
    certify(problem, solution).write(tmp_path / "proof.json")
    assert main(["verify", "proof.json", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["verdict"], said["claim"]) == ("accepted", "optimal")
    assert main(["verify", "proof.json", "--json", "--data", "0" * 64]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "rejected"
    Path("t.csv").write_text("age,ill\n" + "\n".join(f"{30 + k % 7},{k % 2}" for k in range(40)))
    assert main(["verify", "t.csv", "--json"]) == 2
    assert capsys.readouterr().out == ""
