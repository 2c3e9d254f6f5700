"""What those find who act on the first K rows: by hand, in the files and tables of a run, and in a report."""

import csv
import json
import math

import numpy as np
import pandas as pd
import pytest

from trainers.cli import main
from trainers.run.folder import RunFolder
from trainers.run.results import read_results
from trainers.task.data import Part
from trainers.task.measures import first_k


def by_hand(scores, y, k):
    """Hits, precision, recall and lift, ties counted against the ranker."""
    order = sorted(range(len(y)), key=lambda i: (-scores[i], y[i]))
    hits = sum(y[i] > 0 for i in order[:k])
    positives = sum(label > 0 for label in y)
    recall, lift = (hits / positives, hits * len(y) / (k * positives)) if positives else (math.nan, math.nan)
    return {"k": k, "hits": hits, "precision": hits / k, "recall": recall, "lift": lift}


@pytest.mark.parametrize(("seed", "k"), [(0, 1), (1, 4), (2, 4), (3, 12)])
def test_the_first_k_of_a_list_are_counted(seed, k):
    rng = np.random.default_rng(seed)
    scores, y = rng.integers(0, 6, 12).astype(float), rng.integers(0, 3, 12) // 2
    y[0] = 1
    assert first_k(scores, Part(np.zeros((12, 1)), y), k) == pytest.approx(by_hand(scores, y, k))


def test_values_by_query_are_means_over_the_queries_where_they_are_defined():
    rng = np.random.default_rng(0)
    scores, y, qid = rng.normal(size=40), rng.integers(0, 2, 40), np.arange(40) % 4
    y[qid == 3] = 0
    found = first_k(scores, Part(np.zeros((40, 1)), y, qid), 3)
    each = [by_hand(scores[qid == query], y[qid == query], 3) for query in range(4)]
    assert found == pytest.approx({name: np.nanmean([one[name] for one in each]) for name in each[0]})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    y = (X @ [1.0, 0.5, 0.0] + rng.normal(size=300) > 1).astype(int)
    pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(y=y).to_csv(folder / "table.csv", index=False)
    config = folder / "config.toml"
    config.write_text(
        f'name = "first"\nruns_dir = "{folder}"\n[data]\npath = "{folder}/table.csv"\nlabel = "y"\n'
        '[surrogate]\nlosses = ["hinge"]\n[baselines]\nmethods = ["logistic_regression", "rankboost"]\n'
        "[exact]\ntop_k = 31\ntime_limit = 0.5\nchoose = false\n"
        "[tracking]\nloggers = []\nfigures = false\n"
    )
    assert main(["run", str(config), "-q"]) == 0
    return folder / "first"


def test_a_run_counts_them_for_every_method_in_its_files_and_its_table(run, capsys):
    results = json.loads((run / "results.json").read_text())
    lines = {line["method"]: line for line in csv.DictReader((run / "results.csv").open())}
    data = pd.read_csv(run.parent / "table.csv")
    order = np.random.default_rng(0).permutation(300)
    labels = {"train": data["y"].to_numpy()[order[:150]], "test": data["y"].to_numpy()[order[150:]]}
    for row in results["rows"]:
        scores = np.load(run / row["method"] / "scores.npz")
        for part, y in labels.items():
            expected = by_hand(scores[part], y, 31)
            half = row["first_k"][part].pop("half")
            assert row["first_k"][part] == pytest.approx(expected)
            assert half == pytest.approx(by_hand(scores[part], y, 15))
            for name in ("hits", "precision", "recall", "lift"):
                assert float(lines[row["method"]][f"{part} {name}@31"]) == pytest.approx(expected[name])
    capsys.readouterr()
    assert main(["show", str(run)]) == 0
    table = capsys.readouterr().out.partition("the first 31 rows of the test set")[2].partition("└")[0]
    assert all(f" {name} " in table for name in ("hits", "precision", "recall", "lift", "train hits"))
    assert f"{results['rows'][0]['first_k']['test']['precision']:.1%}" in table
    found = {row["method"]: row["first_k"]["test"] for row in read_results(RunFolder(run)).rows}
    base, own = found["logistic_regression"], found["exact"]
    changes = [f"hold {a['hits']:g} -> {b['hits']:g}" for a, b in ((base["half"], own["half"]), (base, own))]
    chance = labels["test"].sum() * 31 / 150
    expected = (
        f"positives by reranking logistic_regression: the first 15 rows of the test set {changes[0]}, the first 31 "
        f"{changes[1]} of {labels['test'].sum()} ({chance:.1f} by chance)"
    )
    assert expected in results["conclusions"]
    assert expected in (run / "results.md").read_text()
