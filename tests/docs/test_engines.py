"""The script of docs/scaling.md, Dask, run as it is printed there."""

import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from ltr.data import read_data
from ltr.metrics import ndcg
from ltr.rankers import SurrogateRanker
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
SCRIPTS = {name: code for code, name in re.findall(r"```python\n(# (\S+\.py)\n.*?)```", PAGE, re.DOTALL)}
TRUE = np.array([1.0, -1.0, 0.5, 0.0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The tables of the scripts, and the scripts."""
    path = tmp_path_factory.mktemp("engines")
    generator = np.random.default_rng(0)
    for name, queries in (("train", 60), ("test", 30)):
        qid = np.repeat(np.arange(queries), generator.integers(3, 20, size=queries))
        X = generator.normal(size=(len(qid), 4)).astype(np.float32)
        grades = np.digitize(X @ TRUE + 0.5 * generator.normal(size=len(qid)), [0.5, 1.5])
        frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(grade=grades, query=[f"q{n:03}" for n in qid])
        frame.to_parquet(path / f"{name}.parquet", row_group_size=100)
    for name, code in SCRIPTS.items():
        (path / name).write_text(code, encoding="utf-8")
    return path


@pytest.mark.slow
def test_dask(folder):
    pytest.importorskip("lightgbm")
    pytest.importorskip("distributed")
    data = read_data(folder / "test.parquet", label="grade", query="query")
    ranker = SurrogateRanker("ranknet", scorer="mlp", max_steps=2).fit(data.X, data.y, qid=data.qid)
    ranker.name_features(data.feature_names).save(folder / "ranker.safetensors")
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    options = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([sys.executable, "dask_train.py"], **options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]

    scored = pd.read_parquet(folder / "scored")
    np.testing.assert_array_equal(scored["score"], ranker.predict(scored[list("abcd")]))
    assert len(scored) == data.n

    import lightgbm
    import torch

    scores = torch.from_numpy(lightgbm.Booster(model_file=folder / "trees.txt").predict(data.X))
    assert ndcg(scores, torch.from_numpy(data.y), qid=torch.from_numpy(data.qid)).nanmean() > 0.8
