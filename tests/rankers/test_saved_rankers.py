"""Files of rankers: what is in them, that scores come back bit for bit, and which files are refused and how."""

import json
import math
import subprocess
import sys

import lightgbm
import numpy as np
import pandas as pd
import pytest

from ltr.cards import CardRanker
from ltr.exact import Limits
from ltr.rankers import (
    ExactRanker,
    Ranker,
    ReproducibleSearch,
    SurrogateRanker,
    TwoStageRanker,
)
from tests.paths import ROOT
from tests.rankers.travelling import FITTED, STAGE, fitted, one_list, reloaded


@pytest.mark.parametrize("name", FITTED)
def test_scores_come_back_bit_for_bit(name, tmp_path):
    ranker, lists = fitted(name)
    path = tmp_path / f"model{ranker.file_suffix}"
    ranker.save(path)
    loaded = Ranker.load(path)
    assert type(loaded) is type(ranker)
    assert loaded.get_params(deep=False).keys() == ranker.get_params(deep=False).keys()
    X = one_list(200, seed=5)[0]
    qid = {"qid": np.arange(200) % 9} if lists else {}
    np.testing.assert_array_equal(loaded.predict(X, **qid), ranker.predict(X, **qid))
    if path.suffix == ".json":
        text = path.read_text()
        assert text.startswith('{\n "format": "ltr ranker",\n "version": 1,\n')
        assert not {"Infinity", "NaN"} & set(text.split())  # strict readers refuse them
        loaded.save(tmp_path / "again")
        assert json.loads((tmp_path / "again").read_text())["fitted"].keys() == json.loads(text)["fitted"].keys()


def test_numbers_that_json_lacks_and_keys_that_are_no_texts(tmp_path):
    X, y = one_list(60)
    limits = Limits(time_limit=math.inf, node_limit=20)
    exact = ExactRanker(signs={0: "+"}, limits=limits, method=ReproducibleSearch(restarts=2)).fit(X, y)
    loaded = reloaded(exact, tmp_path)
    assert (loaded.limits, loaded.signs) == (limits, {0: "+"})
    whole = TwoStageRanker("logistic", exact, None, choose=False).fit(X, y)  # its threshold is -inf
    assert reloaded(whole, tmp_path).threshold_ == -math.inf
    named = CardRanker(signs={"float": "+"}, max_questions=1, within=0).fit(pd.DataFrame({"float": X[:, 0]}), y)
    assert reloaded(named, tmp_path).signs == {"float": "+"}


def test_a_network_is_no_json(tmp_path):
    ranker, _ = fitted("mlp")
    with pytest.raises(ValueError, match=r"numbers, are not written as JSON, save the ranker as model\.safetensors"):
        ranker.save(tmp_path / "model.json")
    assert list(tmp_path.iterdir()) == []


def saved(tmp_path, name="logistic"):
    ranker, _ = fitted(name)
    path = tmp_path / f"model{ranker.file_suffix}"
    ranker.save(path)
    return path


@pytest.mark.parametrize("name", ["logistic", "mlp"])
@pytest.mark.parametrize("left", [0.02, 0.3, 0.7, -3])
def test_a_file_that_was_cut_off_is_refused(tmp_path, name, left):
    path = saved(tmp_path, name)
    content = path.read_bytes()
    path.write_bytes(content[: left if left < 0 else int(left * len(content))])
    with pytest.raises(ValueError, match=r"not a file that Ranker\.save wrote: (damaged or cut off|it is no)"):
        Ranker.load(path)


def changed(content, place, value):
    *way, last = place.split(".")
    for key in way:
        content = content[key]
    content[last] = value


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("version", 2, r"version 2, written by ltr .*update ltr"),
        ("format", "ltr car", "it has no format 'ltr ranker'"),
        ("ranker", "PlainRanker", "no class 'PlainRanker' is known: import the module that defines it"),
        ("ranker", "RankBoostRanker", "unexpected keyword argument|state must be"),
        ("n_features", 2, "damaged"),
        ("n_features", "3", "damaged: n_features must be an integer >= 1, got '3'"),
        ("feature_names", ["a"], "damaged: 1 feature_names for 3 features"),
        ("fitted.coef_", {"float64": [1.0]}, "damaged"),
        ("fitted.coef_", {"float64": [1.0, None, 2.0]}, "damaged: an array of float64 holds"),
        ("fitted.coef_", {"int64": [1.5, 0, 2]}, "damaged: an array of whole numbers holds"),
        ("fitted", {}, "state must be what to_state of a ranker returned"),
        ("parameters", None, "state must be what to_state of a ranker returned"),
    ],
)
def test_a_file_that_was_changed_is_refused(tmp_path, place, value, message):
    path = saved(tmp_path)
    content = json.loads(path.read_text())
    changed(content, place, value)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message) as caught:
        Ranker.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"[1]", b"{}", b'{"a": 1}', b"a,b\n1,2\n", b"PK\x03\x04", b"\x08\0\0\0\0\0\0\0{"]
)
def test_other_files_are_refused(tmp_path, content):
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(ValueError, match=r"other: not a file that SurrogateRanker\.save wrote"):
        SurrogateRanker.load(tmp_path / "other")


def test_writing_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = saved(tmp_path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ltr.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fitted("rankboost")[0].save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_process_needs_the_package_alone(tmp_path):
    X = one_list(20, seed=5)[0]
    np.save(tmp_path / "X.npy", X)
    trees = TwoStageRanker(lightgbm.LGBMClassifier(n_estimators=4, verbose=-1), STAGE, 100, choose=False)
    trees.fit(*one_list()).save(tmp_path / "trees.json")
    paths = [str(tmp_path / "trees.json"), *(str(saved(tmp_path, name)) for name in ("mlp", "two stages"))]
    program = (
        "import sys, numpy as np; sys.modules.update(lightgbm=None, xgboost=None); "
        "from ltr.rankers import Ranker; X = np.load(sys.argv[1]); "
        "print([Ranker.load(path).predict(X).tolist() for path in sys.argv[2:]])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "X.npy"), *paths]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [
        one.predict(X).tolist() for one in (trees, fitted("mlp")[0], fitted("two stages")[0])
    ]
