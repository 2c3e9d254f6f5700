"""Files of every kind that commands read, damaged at random: a message or an answer, never a traceback or a hang."""

import contextlib
import json
import os
import random
import re
import resource
import signal
import traceback
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ltr.exact import RerankProblem, certify, solve
from trainers.cli import main

SECONDS, GIGABYTES = 20, 6  # no command that reads such a small file may take more of either
CONFIG = """
[data]
path = "table.csv"
label = "failed"
drop = ["id"]
[surrogate]
losses = ["ranknet", "hinge"]
scorer = "mlp"
max_steps = 3
[baselines]
methods = ["logistic_regression", "rankboost"]
rankboost.rounds = 3
[exact]
choose = false
top_k = 10
method = "local_search"
time_limit = 0.1
certificate = true
[card]
max_questions = 1
points = 1
[tracking]
loggers = []
figures = false
"""
SWEEP = '[[grid]]\nexperiments = ["quick.toml"]\nsplits = 1\nmethods = ["logistic_regression", "exact"]\n'
WORDS = [b"nan", b"1e999999", b"-1", b"null", b"[]", b"{}", b'""', b"true", b"9" * 5000, b"1e30", b"[" * 3000, b"\0"]
LEAVES = [None, True, -1, 0, 10**30, 1e308, 0.5, "", "x" * 300, "1e999", [], {}, [[]], {"a": 1}, [None] * 3]


def place(folder):
    """Fill a folder with a valid file of every kind, in which commands find them; return the commands by file."""
    rng = np.random.default_rng(0)
    rows = 60
    frame = pd.DataFrame(
        {
            "id": [f"{i:03d}" for i in range(rows)],
            "age": rng.normal(size=rows).round(3),
            "kind": rng.choice(["saw", "drill", "pump"], rows),
            "since": [f"2024-05-{1 + i % 28:02d}" for i in range(rows)],
        }
    )
    frame["failed"] = (frame["age"] + rng.normal(size=rows) > 0.5).astype(int)
    frame.to_csv("table.csv", index=False)
    frame[["age", "failed"]].to_parquet("table.parquet")
    Path("sizes.csv").write_text(frame[["age", "failed"]].to_csv(index=False))
    Path("sizes.csv.query").write_text("30\n30\n")
    lines = [
        f"{label} qid:{i // 10} 1:{age} 3:{age * 2}"
        for i, (age, label) in enumerate(zip(frame["age"], frame["failed"], strict=True))
    ]
    Path("lists.txt").write_text("\n".join(lines) + "\n")
    Path("lists.toml").write_text('[data]\npath = "lists.txt"\n[surrogate]\nlosses = ["ranknet"]\n')
    Path("quick.toml").write_text(CONFIG)
    Path("sweep.toml").write_text(SWEEP)
    Path("base.toml").write_text(CONFIG)
    Path("child.toml").write_text('extends = "base.toml"\n[exact]\ntop_k = 5\n')
    Path("tune.toml").write_text(CONFIG + "[tune]\ntrials = 1\nsurrogate.l2 = [0.1]\n")
    Path("run.txt").write_text("".join(f"q{i % 3} Q0 d{i} {i} {1 / (1 + i)} t\n" for i in range(20)))
    Path("qrels.txt").write_text("".join(f"q{i % 3} 0 d{i} {i % 2}\n" for i in range(20)))
    assert main(["run", "quick.toml", "-q"]) == 0
    assert main(["run", "quick.toml", "-q", "name=linear", "surrogate.scorer=linear"]) == 0
    assert main(["sweep", "sweep.toml", "-q", "-j", "1"]) == 0
    assert main(["card", "table.csv", "--label", "failed", "--drop", "id", "--questions", "1", "-o", "card", "-q"]) == 0
    problem = RerankProblem(rng.normal(size=(6, 2)), np.arange(6) % 2)
    certify(problem, solve(problem, "local_search")).write("certificate.json")
    table = ["check", "{}", "--label", "failed"]
    found = {name: [table] for name in ("table.csv", "table.parquet")}
    found["table.csv"] += [["predict", "quick", "table.csv"], ["score", "card/card.json", "table.csv"]]
    found["sizes.csv.query"] = [["check", "sizes.csv", "--label", "failed"], ["run", "-n", "sizes.toml"]]
    Path("sizes.toml").write_text('[data]\npath = "sizes.csv"\nlabel = "failed"\n')
    found["lists.txt"] = [["run", "-n", "lists.toml"]]
    for name in ("quick.toml", "child.toml", "base.toml"):
        found[name] = [["run", "-n", "child.toml" if name == "base.toml" else name, "name=other"], ["check", name]]
    found["sweep.toml"] = [["sweep", "-n", "sweep.toml"]]
    found["run.txt"] = found["qrels.txt"] = [["eval", "run.txt", "qrels.txt"]]
    found["card/card.json"] = [["score", "card/card.json", "table.csv", "-q"]]
    found["card/card.csv"] = [["score", "card/card.csv", "table.csv", "-q"]]
    found["certificate.json"] = found["card/certificate.json"] = [["verify", "{}"]]
    for run in ("quick", "linear"):
        reading = [
            ["show", run],
            ["predict", run, "table.csv", "-q"],
            ["predict", run, "table.csv", "-q", "--method", "ranknet"],
            ["predict", run, "table.csv", "-q", "--method", "card"],
            ["explain", run, "table.csv", "--json", "-q"],
            ["board", run, "--print", "--logdir", "board"],
            ["run", "-n", "quick.toml", f"name={run}"],
        ]
        for path in sorted((folder / "runs" / run).rglob("*")):
            if path.suffix in (".json", ".jsonl", ".toml", ".safetensors", ".npz"):
                name = str(path.relative_to(folder))
                found[name] = [["verify", name]] if path.name == "certificate.json" else reading
    for path in sorted((folder / "runs" / "sweep").rglob("*.json")):
        found[str(path.relative_to(folder))] = [["report", "sweep", "-o", "report"], ["sweep", "-n", "sweep.toml"]]
    return {name: [[part.replace("{}", name) for part in line] for line in lines] for name, lines in found.items()}


def damaged(content, rng, suffix):
    """Return the bytes of a file with one damage, or a few."""
    if suffix == ".json" and rng.random() < 0.6:
        with contextlib.suppress(ValueError):
            tree = json.loads(content)
            for _ in range(rng.choice([1, 1, 3])):
                replace_a_leaf(tree, rng)
            return json.dumps(tree).encode()
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            del data[at:]
        elif kind == 1 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 2:
            data[at:at] = rng.choice(WORDS)
        elif kind == 3:
            del data[at : at + rng.choice([1, 4, 40])]
        elif kind == 4:
            data[at:at] = data[max(0, at - 60) : at]
        else:
            numbers = list(re.finditer(rb"-?\d+(\.\d+)?", bytes(data)))
            if numbers:
                number = rng.choice(numbers)
                data[number.start() : number.end()] = rng.choice(WORDS)
    return bytes(data)


def replace_a_leaf(tree, rng):
    """Replace, remove or add something somewhere in a tree of JSON."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(tree[key], dict | list) and tree[key] and rng.random() < 0.85:
            tree = tree[key]
            continue
        if rng.random() < 0.15:
            del tree[key]
        else:
            tree[key] = rng.choice(LEAVES)
        return


class Hung(BaseException):
    """A command took too long."""


def failures(commands, rounds, seed):
    """Damage each file some times, and return what went wrong: file, command, the last lines of the traceback."""

    def hung(*_):
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    rng, found = random.Random(seed), []
    for name, lines in commands.items():
        path = Path(name)
        content = path.read_bytes()
        for at in range(rounds):
            path.write_bytes(bad := damaged(content, rng, path.suffix))
            line = rng.choice(lines)
            try:
                signal.alarm(SECONDS)
                with (
                    Path(os.devnull).open("w") as sink,
                    contextlib.redirect_stdout(sink),
                    contextlib.redirect_stderr(sink),
                ):
                    code = main(list(line))
                signal.alarm(0)
                assert code in (0, 1, 2, 3), code
                assert code != 1 or line[0] == "verify", code
            except SystemExit:
                pass
            except BaseException as error:
                found.append((name, at, " ".join(line), "".join(traceback.format_exception(error)[-4:]), bad))
            finally:
                signal.alarm(0)
        path.write_bytes(content)
    signal.signal(signal.SIGALRM, before)
    return found


@pytest.mark.slow
def test_damaged_files_of_every_kind(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    commands = place(tmp_path)
    limit = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS, (min(GIGABYTES << 30, limit[1]) if limit[1] > 0 else GIGABYTES << 30, limit[1])
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = failures(commands, 5, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limit)
    assert not found, "\n".join(f"{name} {line}\n{text}" for name, _, line, text, _ in found)
