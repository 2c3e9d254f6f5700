"""Boards of run folders, which stay as they are, and the command `ltr board`."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import precision_recall_curve
from tensorboard import program

from tests.board_events import charts, curves, events, hparams, tensor
from trainers.board import server
from trainers.board.build import build_board
from trainers.cli import main
from trainers.config import load_config
from trainers.run.folder import RunFolder
from trainers.run.tracking import read_log
from trainers.task.data import split_of

CONFIG = """
[data]
path = "table.csv"
label = "failed"
[surrogate]
losses = ["ranknet", "hinge"]
max_steps = 6
[baselines]
methods = ["logistic_regression"]
[exact]
choose = false
top_k = 20
method = "local_search"
time_limit = 0.3
"""
METHODS = ["ranknet", "hinge", "logistic_regression", "exact"]


def table(rows=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 3)).round(3)
    y = (X @ [1.0, -0.5, 0.2] + rng.normal(size=rows) > 0.3).astype(int)
    return "a,b,c,failed\n" + "\n".join(",".join(map(str, [*x, label])) for x, label in zip(X, y, strict=True))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder of runs: two on the same data, one of them without an exact stage."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "table.csv").write_text(table())
    (folder / "all.toml").write_text(CONFIG)
    runs = f"runs_dir={folder / 'runs'}"
    assert main(["run", str(folder / "all.toml"), runs, "-q"]) == 0
    assert main(["run", str(folder / "all.toml"), runs, "-q", "name=plain", "exact.enabled=false", "seed=1"]) == 0
    return folder


@pytest.fixture
def workplace(finished, tmp_path, monkeypatch):
    """A copy of the finished runs to write to, as the current folder."""
    shutil.copytree(finished, tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w")
    return tmp_path / "w"


def contents(folder):
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()}


def float32(points):
    return [(step, float(np.float32(value))) for step, value in points]


def logged(path, tag):
    return [(r["step"], r["values"][tag]) for r in read_log(path) if r["values"].get(tag) is not None]


def test_the_values_are_those_of_the_log(finished, tmp_path):
    board = build_board([str(finished / "runs" / "all")], folder=tmp_path / "b").folder
    for method in METHODS:
        found, log = curves(board / "table" / method), finished / "runs" / "all" / method / "scalars.jsonl"
        expected = float32(logged(log, "final/test/dcg"))
        assert found["values/test/dcg"] == expected
        assert [value for _, value in found["table/final/test/dcg"]] == [expected[0][1]] * 2
    longest = 0
    for method in ("ranknet", "hinge"):
        found, log = curves(board / "table" / method), finished / "runs" / "all" / method / "scalars.jsonl"
        for tag, own in (("loss/convex", "loss"), ("train/dcg", "train/dcg"), ("test/auc", "test/auc")):
            assert found[f"table/{own}"] == float32(logged(log, tag))
        longest = max(longest, found["table/loss"][-1][0])
    for method in ("logistic_regression", "exact"):
        level = curves(board / "table" / method)["table/test/dcg"]
        assert [step for step, _ in level] == [0, longest]
    trace = dict(curves(board / "table" / "exact")["table/incumbent"])
    for step, value in logged(finished / "runs" / "all" / "exact" / "scalars.jsonl", "exact/incumbent"):
        assert trace[step] == float(np.float32(value))


def test_precision_and_recall_come_from_the_scores(finished, tmp_path):
    run = RunFolder(finished / "runs" / "all")
    board = build_board([str(run.path)], folder=tmp_path / "b").folder
    config = load_config(run.config)
    split = split_of(config.data, config.seed)
    for half, y in (("train", split.train.y), ("test", split.test.y)):
        *_, precision, recall = tensor(board / "table" / "ranknet", f"table/precision and recall/{half}")
        scores = np.load(run.path / "ranknet" / "scores.npz")[half]
        exact = precision_recall_curve(y, scores)
        assert len(np.unique(scores)) == len(scores)
        for number in range(127):
            above = len(y) - 1 - int((number * (len(y) - 1) - 1e-6) // 126 + 1)  # positions at or above the threshold
            assert precision[number] == pytest.approx(exact[0][len(y) - 1 - above], abs=1e-6)
            assert recall[number] == pytest.approx(exact[1][len(y) - 1 - above], abs=1e-6)


def test_runs_on_the_same_data_are_one_comparison(finished, tmp_path):
    before = contents(finished)
    made = build_board([str(finished / "runs")], folder=tmp_path / "b")
    assert contents(finished) == before
    assert [one.name for one in made.comparisons] == ["table"]
    assert [line.name for line in made.comparisons[0].lines] == [
        *(f"{method}, all" for method in METHODS),
        *(f"{method}, plain" for method in METHODS[:-1]),
    ]
    _, rows = hparams(made.folder)
    assert rows["table/exact, all"][0]["K"] == "20"
    assert {rows[f"table/ranknet, {run}"][0]["split"] for run in ("all", "plain")} == {"0", "1"}


def test_runs_of_one_name_are_told_apart_by_their_folders(finished, tmp_path):
    for place in ("a", "b"):
        shutil.copytree(finished / "runs" / "plain", tmp_path / place / "plain")
    paths = [str(finished / "runs" / "all"), str(tmp_path / "a" / "plain"), str(tmp_path / "b" / "plain")]
    made = build_board(paths, folder=tmp_path / "board")
    names = [line.name for line in made.comparisons[0].lines if line.name.startswith("hinge")]
    assert names == ["hinge, all", "hinge, plain in a", "hinge, plain in b"]
    _, rows = hparams(made.folder)
    assert rows["table/hinge, plain in b"][0]["run"] == "plain in b"


def test_a_run_without_an_exact_stage_has_no_charts_of_one(finished, tmp_path):
    board = build_board([str(finished / "runs" / "plain")], folder=tmp_path / "b").folder
    assert not [title for title in charts(board)["table: run plain"] if "exact" in title]
    assert "convex loss while training" in charts(board)["table: run plain"]


def test_an_unfinished_run_shows_what_there_is(workplace, tmp_path):
    run = workplace / "runs" / "all"
    for name in ("result.json", "scores.npz"):
        (run / "exact" / name).unlink()
    shutil.rmtree(run / "logistic_regression")
    (run / "hinge" / "result.json").unlink()
    board = build_board([str(run)], folder=tmp_path / "b").folder
    assert sorted(path.name for path in (board / "table").iterdir()) == ["exact", "hinge", "ranknet"]
    assert "table/bound" in curves(board / "table" / "exact")
    assert "table/loss" in curves(board / "table" / "hinge")
    _, rows = hparams(board)
    assert set(rows) == {"table/ranknet"}


def test_a_damaged_run_is_left_out_and_named(workplace, tmp_path):
    (workplace / "runs" / "plain" / "run.json").write_text("{")
    said = []
    made = build_board(["runs"], folder=tmp_path / "b", note=said.append)
    assert [line.name for line in made.comparisons[0].lines] == METHODS
    assert len(said) == 1
    assert said[0].startswith("runs/plain is left out: ")


def test_boards_of_runs_do_not_read_the_data(workplace, tmp_path):
    path = Path(load_config(workplace / "runs" / "all" / "config.toml").data.path)
    kept, said = path.read_text(), []
    try:
        path.unlink()
        board = build_board(["runs/all"], folder=tmp_path / "b", note=said.append).folder
    finally:
        path.write_text(kept)
    assert said == []
    assert [tag for tag in events(board / "table" / "ranknet").Tags()["tensors"] if "precision" in tag]


def test_queries_are_compared_by_their_mean_shares(tmp_path):
    (tmp_path / "search.toml").write_text(
        '[data]\nname = "grouped"\n[surrogate]\nlosses = ["ranknet"]\nmax_steps = 3\n[baselines]\nmethods = []\n'
        '[exact]\nenabled = false\n[statistics]\nreport = ["dcg@5"]\n'
    )
    assert main(["run", str(tmp_path / "search.toml"), f"runs_dir={tmp_path}", "-q"]) == 0
    made = build_board([str(tmp_path / "search")], folder=tmp_path / "b")
    assert "ndcg@10 while training, test set" in charts(made.folder)["grouped: run search"]
    assert not [tag for tag in curves(made.folder / "grouped" / "ranknet") if "precision" in tag]


# --- the command -----------------------------------------------------------------------------------------------


def test_print_writes_the_board_and_its_command(workplace, capsys):
    assert main(["board", "runs", "--print", "--port", "6100"]) == 0
    out, err = capsys.readouterr()
    words = out.split()
    assert words[:2] == ["tensorboard", "--logdir"]
    assert words[3:] == ["--port", "6100"]
    assert err == ""
    board = Path(words[2])
    assert workplace not in board.parents  # TensorBoard on runs does not show it
    assert (board / "table" / "exact, all").is_dir()
    assert main(["board", "runs", "--print"]) == 0
    assert capsys.readouterr().out.split()[2] == words[2]
    assert main(["board", "all", "--print", "--logdir", "mine"]) == 0
    assert capsys.readouterr().out == "tensorboard --logdir mine\n"
    assert (workplace / "mine" / "table" / "exact").is_dir()


USER_ERRORS = [
    (["board", "nowhere"], "no run or sweep at nowhere or runs/nowhere; known are all, plain"),
    (["board", "plai"], "no run or sweep at plai or runs/plai (did you mean 'plain'?)"),
    (["board", "empty"], "empty: holds neither runs nor a sweep; `ltr run CONFIG` and `ltr sweep CONFIG` make some"),
    (["board", "all.toml"], "all.toml: is a config; give the folder that was made with it, such as runs/all"),
    (["board", "table.csv"], "table.csv: cannot be read or is damaged"),
    (["board", "runs", "--data", "tabel"], "--data: must be one of table (did you mean 'table'?), got 'tabel'"),
    (["board", "runs", "--logdir", "runs"], "holds other files than a board's"),
    (["board", "runs", "--logdir", "table.csv"], "table.csv is not a folder"),
    (["board", "unfinished"], "unfinished: no method has a result yet"),
]


@pytest.mark.parametrize(("arguments", "message"), USER_ERRORS)
def test_errors_of_the_user_are_one_message(workplace, capsys, arguments, message):
    (workplace / "empty").mkdir()
    (workplace / "unfinished").mkdir()
    (workplace / "unfinished" / "sweep.json").write_text('{"name": "x", "grids": [], "origin": {}}')
    before = contents(workplace)
    assert main([*arguments, "--print"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ltr: error: ")
    assert message in err
    assert contents(workplace) == before


def test_the_port_is_a_number(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["board", "runs", "--port", "65536"])
    assert "argument --port: must be an integer from 0 to 65535, got '65536'" in capsys.readouterr().err


def refuse(*_):
    raise program.TensorBoardPortInUseError("TensorBoard could not bind to port 6100, it was already in use\n")


def test_a_port_in_use_is_one_message(workplace, capsys, monkeypatch):
    monkeypatch.setattr(program.TensorBoard, "launch", refuse)
    assert main(["board", "runs", "--port", "6100"]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        "ltr: error: --port: TensorBoard could not bind to port 6100, it was already in use"
    ]


def give_up(*_):
    sys.stderr.write("a note\nCannot assign requested address\n")
    sys.exit(1)


def test_an_address_that_is_not_this_machine_is_one_message(workplace, capsys, monkeypatch):
    monkeypatch.setattr(program.TensorBoard, "launch", give_up)
    assert main(["board", "runs", "--host", "10.1.2.3"]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        "ltr: error: --host: TensorBoard cannot listen on 10.1.2.3: Cannot assign requested address"
    ]


def test_ctrl_c_ends_tensorboard_without_an_error(workplace, capsys, monkeypatch):
    started = []

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(program.TensorBoard, "launch", lambda self: started.append(self.flags) or "http://localhost:1/")
    monkeypatch.setattr(server, "threading", SimpleNamespace(Event=lambda: SimpleNamespace(wait=interrupt)))
    assert main(["board", "runs", "--host", "127.0.0.1"]) == 0
    err = capsys.readouterr().err
    assert "7 methods on 1 data set, in" in err
    assert "http://localhost:1/?smoothing=0#custom_scalars&_smoothingWeight=0" in err
    assert (started[0].host, started[0].port) == ("127.0.0.1", None)


def test_where_tensorboard_cannot_be_started_its_command_is_named(workplace, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.default", None)
    monkeypatch.delattr("tensorboard.default", raising=False)
    assert main(["board", "runs"]) == 2
    assert "its command is tensorboard --logdir " in capsys.readouterr().err
