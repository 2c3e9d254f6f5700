"""Boards of sweeps: what TensorBoard reads is what the records hold."""

import itertools
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_curve

from ltr.exact.solution import relative_gap
from ltr.statistics import RankStatistic
from tests.board_events import charts, curves, events, hparams, tags, tensor
from trainers.board import build
from trainers.board.build import build_board
from trainers.board.comparisons import comparisons_of_sweep, mean_curve
from trainers.board.events import layout_of
from trainers.board.server import command
from trainers.files import RunError, write_json
from trainers.records import cell_file, pack_labels, read_sweep, thinned, unpack_labels, write_cell, write_export

STATISTIC = "dcg(base=e)"
EXACT_OPTIONS = {"base": "logistic_regression", "statistic": STATISTIC, "C": 0.25, "margin": 1e-4, "time_limit": 2.0}


def record(data, split, method, varied, by_query=False):
    """A made-up record, other for each cell."""
    name = f"{method}-{'-'.join(map(str, varied.values()))}"
    rng = np.random.default_rng([split, *f"{data}{name}".encode()])
    made = {"id": f"{data}/{split}/{name}", "data": data, "split": split, "method": method, "options": {}}
    made |= {"status": "fitted", "seconds": rng.random(), "weights": None, "loss": None}
    made["sizes"] = {"train": [60, 30], "test": [50, 25], "d": 3}
    for half in ("train", "test"):
        made[half] = {STATISTIC: 10 * rng.random(), "auc": rng.random()}
    if not by_query:
        labels = {half: (rng.random(rows) < 0.4).astype(int) for half, rows in (("train", 60), ("test", 50))}
        made["ranked"] = {half: pack_labels(found) for half, found in labels.items()}
    if method == "exact":
        made["options"] = {**EXACT_OPTIONS, "top_k": varied["exact.top_k"]}
        times = np.cumsum(rng.integers(2, 50, size=5)) / 1000
        values, bounds = np.sort(1 + rng.random(5)), np.sort(2 + rng.random(5))[::-1]
        made["trace"] = np.c_[times, values, bounds, np.arange(5)].tolist()
        gap = relative_gap(values[-1], bounds[-1])
        starts = {f"{data}/{split}/logistic_regression-": 1.0}
        made["list"] = {"n": 20, "n_pos": 8, "value": values[-1], "bound": bounds[-1], "gap": gap, "starts": starts}
        made["list"]["trivial_bound"] = RankStatistic.parse(STATISTIC).best(20, 8)
    else:
        made["loss"] = rng.random()
        steps = 0 if method == "logistic_regression" else 4 + split
        made["curve"] = [[step, *rng.random(3).tolist()] for step in range(1, steps + 1)]
        made["options"] = {"l2": 1e-4} if method == "ranknet" else {}
    return json.loads(json.dumps(made))


METHODS = [
    ("ranknet", {}),
    ("logistic_regression", {}),
    ("p_norm_push(p=2)", {}),
    ("exact", {"exact.top_k": 5}),
    ("exact", {"exact.top_k": "full"}),
]
LABELS = ["ranknet", "logistic_regression", "p_norm_push(p=2)", "exact, K = 5", "exact, K = full"]


def grid(datasets, splits, methods=METHODS, **options):
    records = [record(d, s, *m, **options) for d, s, m in itertools.product(datasets, splits, methods)]
    kept = ("id", "data", "split", "method")
    varied = [m[1] for _, _, m in itertools.product(datasets, splits, methods)]
    cells = [{**{key: r[key] for key in kept}, "varied": v} for r, v in zip(records, varied, strict=True)]
    head = {"name": "methods", "title": "", "best_of": None, "varied": ["exact.top_k"], "cells": cells}
    return head, records


def write_sweep(folder, *grids, missing=()):
    """A sweep's folder; cells whose id holds a text of `missing` are not finished."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "sweep.json", {"name": "made", "grids": [head for head, _ in grids], "origin": {}})
    for _, records in grids:
        for one in records:
            if not any(text in one["id"] for text in missing):
                write_cell(folder, one)
    return folder


def records_of(folder, data, label):
    """The records of a line by its label."""
    method, varied = METHODS[LABELS.index(label)]
    return [one for one in (record(data, split, method, varied) for split in (0, 1)) if cell_file(folder, one["id"])]


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    return write_sweep(tmp_path_factory.mktemp("sweep") / "made", grid(["uis", "pima"], [0, 1]))


@pytest.fixture(scope="module")
def board(sweep, tmp_path_factory):
    return build_board([str(sweep)], folder=tmp_path_factory.mktemp("board") / "made").folder


@pytest.fixture(scope="module")
def one_split(tmp_path_factory):
    """A sweep of split 1 alone, and its board."""
    folder = tmp_path_factory.mktemp("one")
    sweep = write_sweep(folder / "made", grid(["uis", "pima"], [1]))
    return sweep, build_board([str(sweep)], folder=folder / "board").folder


def test_each_method_of_each_data_set_is_one_run_with_one_file(board):
    expected = {f"{data}/{label}" for data in ("uis", "pima") for label in LABELS}
    expected |= {"overview"}
    files = list(board.rglob("events.*"))
    assert sorted(str(path.parent.relative_to(board)) for path in files) == sorted(expected)


def float32(points):
    return [(step, float(np.float32(value))) for step, value in points]


@pytest.mark.parametrize("data", ["uis", "pima"])
@pytest.mark.parametrize("label", LABELS)
def test_one_split_shows_the_values_of_its_records(one_split, data, label):
    sweep, board = one_split
    made, found = records_of(sweep, data, label)[1], curves(board / data / label)
    longest = 5
    for half in ("train", "test"):
        for name, tag in ((STATISTIC, "dcg[base=e]"), ("auc", "auc")):
            value = made[half][name]
            assert found[f"{data}/final/{half}/{tag}"] == float32([(0, value), (1, value)])
            assert found[f"values/{half}/{name}"] == float32([(0, value)])
        at = {"train": 2, "test": 3}[half]
        level = [(0, made[half][STATISTIC]), (longest, made[half][STATISTIC])]
        expected = [(point[0], point[at]) for point in made.get("curve", [])] or level
        assert found[f"{data}/{half}/dcg[base=e]"] == float32(expected)
        labels = unpack_labels(made["ranked"][half])
        shares = [(count, labels[:count].mean()) for count in range(1, len(labels) + 1)]
        assert found[f"{data}/precision/{half}"] == float32(shares)
    if made["loss"] is not None:
        expected = [(p[0], p[1]) for p in made["curve"]] or [(0, made["loss"]), (longest, made["loss"])]
        assert found[f"{data}/loss"] == float32(expected)
    else:
        assert f"{data}/loss" not in found


@pytest.mark.parametrize("what", ["incumbent", "bound", "gap"])
def test_the_trace_is_drawn_as_stairs_over_milliseconds(one_split, what):
    sweep, board = one_split
    made = records_of(sweep, "uis", "exact, K = 5")[1]
    points = dict(curves(board / "uis" / "exact, K = 5")[f"uis/{what}"])
    before = None
    for seconds, incumbent, bound, _ in made["trace"]:
        value = {"incumbent": incumbent, "bound": bound, "gap": relative_gap(incumbent, bound)}[what]
        step = round(1000 * seconds)
        assert points.pop(step) == float(np.float32(value))
        if before is not None:
            assert points.pop(step - 1) == before  # the value holds until the next
        before = float(np.float32(value))
    assert not points
    assert before == pytest.approx(made["list"]["value" if what == "incumbent" else what])


def test_several_splits_are_means(sweep, board):
    first, second = records_of(sweep, "uis", "ranknet")
    found = curves(board / "uis" / "ranknet")
    assert len(first["curve"]) < len(second["curve"])
    for at, tag in enumerate(("loss", "train/dcg[base=e]", "test/dcg[base=e]"), start=1):
        ends = first["curve"] + [first["curve"][-1]] * (len(second["curve"]) - len(first["curve"]))
        expected = [(b[0], (a[at] + b[at]) / 2) for a, b in zip(ends, second["curve"], strict=True)]
        assert np.array(found[f"uis/{tag}"]) == pytest.approx(np.array(expected))
    assert found["uis/final/test/auc"][0][1] == pytest.approx((first["test"]["auc"] + second["test"]["auc"]) / 2)


def value_at(points, step):
    return [value for at, value in points if at <= step][-1]


points_of = st.lists(st.tuples(st.integers(0, 30), st.floats(-5, 5)), min_size=1, max_size=8).map(
    lambda points: sorted(dict(points).items())
)


@given(st.lists(points_of, min_size=1, max_size=4))
def test_a_mean_curve_is_the_mean_of_step_functions(several):
    mean = mean_curve(several)
    assert mean[0][0] == max(points[0][0] for points in several)
    for step in range(mean[0][0], 32):
        assert value_at(mean, step) == pytest.approx(np.mean([value_at(points, step) for points in several]), abs=1e-9)


@pytest.mark.parametrize("count", [1, 119, 120, 121, 5000])
def test_thinned_points_are_some_of_them_with_both_ends(count):
    points = [(step, float(step)) for step in range(count)]
    kept = thinned(points, 120)
    assert len(kept) <= 120
    assert set(kept) <= set(points)
    assert (kept[0], kept[-1]) == (points[0], points[-1])


# --- charts ----------------------------------------------------------------------------------------------------


def test_every_chart_draws_a_series_and_every_comparison_has_the_charts(board):
    known = tags(board)
    found = charts(board)
    assert list(found) == ["uis", "uis: other statistics", "pima", "pima: other statistics"]
    for title, category in found.items():
        for patterns in category.values():
            assert all(any(re.match(pattern, tag) for tag in known) for pattern in patterns)
            drawn = [tag for pattern in patterns for tag in known if re.match(pattern, tag)]
            assert all(tag.startswith(title.partition(":")[0] + "/") for tag in drawn)
            assert not any("(" in tag for tag in drawn)  # TensorBoard would draw it without a colour
    main = found["uis"]
    assert list(main)[:3] == [
        "convex loss while training",
        f"{STATISTIC} while training, training set",
        f"{STATISTIC} while training, test set",
    ]
    assert main["exact stage: incumbent and bound (step = ms)"] == ["^uis/incumbent$", "^uis/bound$"]
    assert list(found["uis: other statistics"]) == ["final auc, training set", "final auc, test set"]


def test_all_methods_stand_in_the_charts_of_final_values(board):
    pattern = charts(board)["pima"][f"final {STATISTIC}, test set"][0]
    for label in LABELS:
        assert [tag for tag in curves(board / "pima" / label) if re.match(pattern, tag)]


def test_few_comparisons_are_unfolded(tmp_path):
    made = comparisons_of_sweep(read_sweep(write_sweep(tmp_path / "made", grid("abcd", [0]))))
    assert [c.title for c in layout_of(made).category if not c.closed] == ["a", "b", "c"]


# --- HPARAMS, precision and recall ---------------------------------------------------------------------------


def test_hparams_has_a_row_for_each_method_of_each_data_set(sweep, board):
    experiment, rows = hparams(board)
    assert set(rows) == {f"{data}/{label}" for data in ("uis", "pima") for label in LABELS}
    assert [info.display_name for info in experiment.metric_infos][:3] == [
        f"test {STATISTIC}",
        f"train {STATISTIC}",
        "gap",
    ]
    parameters, metrics = rows["uis/exact, K = 5"]
    made = records_of(sweep, "uis", "exact, K = 5")
    assert parameters == {
        "data": "uis", "method": "exact", "K": "5", "base": "logistic_regression", "C": "0.25", "margin": "0.0001",
        "time limit": "2", "split": "mean of 2",
    }  # fmt: skip
    for tag, value in {
        "values/gap": np.mean([one["list"]["gap"] for one in made]),
        "values/bound": np.mean([one["list"]["bound"] for one in made]),
        "values/seconds": np.mean([one["seconds"] for one in made]),
        f"values/test/{STATISTIC}": np.mean([one["test"][STATISTIC] for one in made]),
    }.items():
        assert metrics[tag] == pytest.approx(value)
    parameters, metrics = rows["pima/ranknet"]
    assert parameters == {"data": "pima", "method": "ranknet", "l2": "0.0001", "split": "mean of 2"}
    assert "values/gap" not in metrics


@pytest.mark.parametrize("half", ["train", "test"])
def test_precision_and_recall_are_those_of_scikit_learn_at_the_thresholds(sweep, board, half):
    for label in LABELS:
        *_, precision, recall = tensor(board / "uis" / label, f"uis/precision and recall/{half}")
        lists = [unpack_labels(made["ranked"][half]) for made in records_of(sweep, "uis", label)]
        labels = np.concatenate(lists)
        scores = np.concatenate([1 - np.arange(len(one)) / (len(one) - 1) for one in lists])
        exact = precision_recall_curve(labels, scores)
        for number, threshold in enumerate(np.arange(127) / 126):
            # the curve at the first score that is not below the threshold
            at = np.searchsorted(exact[2], threshold - 1e-9)
            assert precision[number] == pytest.approx(exact[0][at], abs=1e-6)
            assert recall[number] == pytest.approx(exact[1][at], abs=1e-6)


# --- unfinished, other and grown sweeps ------------------------------------------------------------------------


def test_a_grown_sweep_replaces_the_board(tmp_path):
    made = grid(["uis", "pima"], [0, 1])
    folder, target = tmp_path / "made", tmp_path / "board"
    write_sweep(folder, made, missing=["/1/", "full", "pima"])
    before = build_board([str(folder)], folder=target)
    assert [comparison.name for comparison in before.comparisons] == ["uis"]
    assert not (target / "uis" / "exact, K = full").exists()
    _, rows = hparams(target)
    assert rows["uis/ranknet"][0]["split"] == "0"
    write_sweep(folder, made)
    build_board([str(folder)], folder=target)
    fresh = build_board([str(folder)], folder=tmp_path / "fresh").folder
    for path in fresh.rglob("events.*"):
        run = path.parent.relative_to(fresh)
        assert len(list((target / run).glob("events.*"))) == 1
        assert curves(target / run) == curves(fresh / run)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board", "fresh", "made"]


def test_a_failure_leaves_the_old_board(sweep, tmp_path, monkeypatch):
    target = build_board([str(sweep)], folder=tmp_path / "board", data=["uis"]).folder
    before = sorted(target.rglob("*"))

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build, "write_board", fail)
    with pytest.raises(RunError, match=r"cannot write .*board: No space left on device"):
        build_board([str(sweep)], folder=target)
    assert sorted(target.rglob("*")) == before
    assert [path.name for path in tmp_path.iterdir()] == ["board"]


def test_a_folder_with_other_things_is_not_replaced(sweep, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match=r"--logdir: .*mine holds other files than a board's"):
        build_board([str(sweep)], folder=tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_records_without_ranked_lists_have_all_but_the_curves_made_of_them(tmp_path):
    folder = write_sweep(tmp_path / "made", grid(["search"], [0, 1], by_query=True))
    target = build_board([str(folder)], folder=tmp_path / "b").folder
    found = events(target / "search" / "ranknet")
    assert not [tag for tag in found.Tags()["tensors"] if "precision" in tag]
    assert {"search/loss", "search/test/dcg[base=e]", "search/final/test/auc"} <= set(found.Tags()["scalars"])
    assert not [tag for tag in found.Tags()["scalars"] if "/precision/" in tag]
    assert not [title for title in charts(target)["search"] if "precision" in title]


def test_undefined_values_are_left_out(tmp_path):
    head, records = grid(["uis"], [0, 1])
    for one in records:
        if one["method"] == "exact":
            one["list"]["gap"] = None
            one["trace"] = [[0.001, 0.0, 1.0, 0]]
        if one["method"] == "ranknet" and one["split"] == 0:
            one["test"]["auc"] = None
            one["curve"][0][3] = None
        if one["options"].get("top_k") == "full":
            one |= {"list": None, "trace": []}  # a top of a single class
    target = build_board([str(write_sweep(tmp_path / "made", (head, records)))], folder=tmp_path / "b").folder
    auc = next(one["test"]["auc"] for one in records if one["method"] == "ranknet" and one["split"] == 1)
    assert dict(curves(target / "uis" / "ranknet")["uis/final/test/auc"])[0] == float(np.float32(auc))
    assert curves(target / "uis" / "ranknet")["uis/test/dcg[base=e]"][0][0] == 2
    found = curves(target / "uis" / "exact, K = 5")
    assert "uis/gap" not in found
    assert "values/gap" not in found
    assert found["uis/incumbent"] == [(1, 0.0)]
    assert "uis/bound" not in curves(target / "uis" / "exact, K = full")
    assert all(math.isfinite(value) for points in found.values() for _, value in points)


def test_tables_of_a_sweep_are_comparisons_of_their_own(tmp_path):
    margins = [("exact", {"exact.top_k": 5, "exact.margin": margin}) for margin in (0.1, 0.01)]
    head, records = grid(["uis"], [0], margins)
    head |= {"name": "margin", "title": "The margin", "varied": ["exact.margin"]}
    folder = write_sweep(tmp_path / "made", grid(["uis", "pima"], [0]), (head, records))
    made = build_board([str(folder)], folder=tmp_path / "b")
    assert [one.name for one in made.comparisons] == ["uis, methods", "pima", "uis, margin"]
    assert [line.name for line in made.comparisons[2].lines] == ["exact, margin = 0.1", "exact, margin = 0.01"]
    assert made.comparisons[2].title == "uis: The margin"
    assert "convex loss while training" not in charts(made.folder)["uis: The margin"]
    _, rows = hparams(made.folder)
    assert rows["uis, margin/exact, margin = 0.1"][0]["table"] == "margin"


def test_a_file_of_results_has_all_but_the_curves_of_trainings(sweep, tmp_path):
    write_export(tmp_path / "cells.jsonl", read_sweep(sweep))
    target = build_board([str(tmp_path / "cells.jsonl")], folder=tmp_path / "b").folder
    found = curves(target / "uis" / "ranknet")
    assert [step for step, _ in found["uis/loss"]] == [0, 1]
    assert curves(target / "uis" / "exact, K = 5").keys() >= {"uis/incumbent", "uis/bound", "uis/gap"}


def test_two_sweeps_of_one_data_set_keep_their_names_apart(sweep, tmp_path):
    other = write_sweep(tmp_path / "other", grid(["uis"], [2]))
    made = build_board([str(sweep), str(other)], folder=tmp_path / "b")
    assert [one.name for one in made.comparisons] == ["uis (made)", "pima", "uis (made) 2"]
    assert len(list(made.folder.rglob("events.*"))) == 15 + 1
    patterns = [p for category in charts(made.folder).values() for chart in category.values() for p in chart]
    known = tags(made.folder)
    assert all(any(re.match(pattern, tag) for tag in known) for pattern in patterns)


def test_the_command_is_one_that_a_shell_takes(sweep, tmp_path):
    made = build_board([str(sweep)], folder=tmp_path / "a b")
    assert command(made) == f"tensorboard --logdir '{tmp_path / 'a b'}'"
    assert command(made, "0.0.0.0", 0).endswith("' --host 0.0.0.0 --port 0")
