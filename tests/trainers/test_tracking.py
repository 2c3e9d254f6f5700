"""What is logged: JSON lines in float64, the same values as TensorBoard events, one curve a tag whatever happens."""

import json
import math
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import plugin_data_pb2

import trainers.run.methods
from ltr.display.figures import ranked_list_figure
from trainers.config import parse_config
from trainers.config.errors import ConfigError
from trainers.display import Display
from trainers.loggers import Logger, Loggers, Tracker, event_tag, read_log
from trainers.run.experiment import run_experiment
from trainers.run.page import chart_layout


def events(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    accumulator.Reload()
    return accumulator


def curves(folder):
    """Steps and values by tag, as TensorBoard reads them."""
    found = events(folder)
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def logged(path):
    """Steps and values by tag, as the JSON lines hold them; null left out."""
    found = {}
    for record in read_log(path):
        for tag, value in record["values"].items():
            if value is not None:
                found.setdefault(tag, []).append((record["step"], value))
    return found


def as_float32(series):
    return {event_tag(tag): [(step, float(np.float32(x))) for step, x in points] for tag, points in series.items()}


def loggers(folder, *names):
    return Loggers(names or ["tensorboard"], folder, "study", folder.name)


def tracker(folder, **options):
    return Tracker(["tensorboard"], folder, "study", folder.name, **options)


def values(step):
    return {"loss/convex": 1.0 / (step + 1), "train/dcg(base=e)@10": math.pi * step}


def test_events_hold_the_lines_values_to_float32(tmp_path):
    with tracker(tmp_path) as log:
        for step in range(1, 20):
            log.log(step, values(step), when=1000.0 + step / 7)
        log.finish({"method": "ranknet", "C": 0.5}, {"train/dcg": 1 / 3})
    lines = logged(tmp_path / "scalars.jsonl")
    assert lines["loss/convex"] == [(step, 1.0 / (step + 1)) for step in range(1, 20)]
    assert lines["final/train/dcg"] == [(0, 1 / 3)]
    assert curves(tmp_path) == as_float32(lines)
    assert events(tmp_path).Scalars("loss/convex")[6].wall_time == 1001.0


def test_values_that_are_not_finite_are_null_and_no_event(tmp_path):
    with tracker(tmp_path) as log:
        log.log(1, {"exact/gap": math.inf, "exact/bound": 2.0})
    text = (tmp_path / "scalars.jsonl").read_text()
    assert json.loads(text, parse_constant=pytest.fail)["values"] == {"exact/gap": None, "exact/bound": 2.0}
    assert curves(tmp_path) == {"exact/bound": [(1, 2.0)]}


@pytest.mark.parametrize("keep", [0, 5])
def test_going_on_cuts_the_curves_at_the_checkpoint(tmp_path, keep):
    with tracker(tmp_path) as log:
        for step in range(1, 10):
            log.log(step, values(step))
        log.finish({"method": "ranknet"}, {"train/dcg": 7.0})
    before = list(read_log(tmp_path / "scalars.jsonl"))
    with tracker(tmp_path, keep=keep) as log:
        for step in range(keep + 1, 12):
            log.log(step, {tag: value + 1 for tag, value in values(step).items()})
    after = list(read_log(tmp_path / "scalars.jsonl"))
    assert after[:keep] == before[:keep]
    assert [record["step"] for record in after] == list(range(1, 12))
    assert curves(tmp_path) == as_float32(logged(tmp_path / "scalars.jsonl"))
    assert "final/train/dcg" not in curves(tmp_path)


def test_a_line_cut_off_by_a_crash_is_passed_over(tmp_path):
    with tracker(tmp_path) as log:
        log.log(1, values(1))
        log.log(2, values(2))
    path = tmp_path / "scalars.jsonl"
    path.write_text(path.read_text()[:-5])
    assert [record["step"] for record in read_log(path)] == [1]
    with tracker(tmp_path, keep=2):
        pass
    assert curves(tmp_path) == as_float32({tag: [(1, value)] for tag, value in values(1).items()})


def test_hyperparameters_stand_in_the_same_run_as_the_curves(tmp_path):
    with tracker(tmp_path / "ranknet") as log:
        log.log(1, values(1))
        log.finish({"method": "ranknet", "C": 0.5, "seed": 3}, {"train/dcg": 2.0})
    assert [path.name for path in tmp_path.iterdir()] == ["ranknet"]
    assert len(list((tmp_path / "ranknet").glob("events.*"))) == 1
    metadata = events(tmp_path / "ranknet").SummaryMetadata("_hparams_/session_start_info")
    start = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content).session_start_info
    assert start.hparams["method"].string_value == "ranknet"
    assert start.hparams["C"].number_value == 0.5


def test_the_charts_put_the_loss_beside_the_statistic_and_the_bound_above_the_incumbent(tmp_path):
    charts = chart_layout(["dcg(base=e)@10", "auc"], "top 50", "dcg(base=e)@10")
    with loggers(tmp_path) as log:
        log.each("log_charts", charts)
    event = events(tmp_path).Tensors("custom_scalars__config__")[0]
    layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    tags = {chart.title: list(chart.multiline.tag) for category in layout.category for chart in category.chart}
    assert tags["convex loss"] == [r"^loss/convex$"]
    assert tags["dcg(base=e)@10 on the training set"] == [r"^train/dcg\[base=e\]@10$"]
    assert [r"^exact/incumbent$", r"^exact/bound$"] in tags.values()
    assert [r"^test/auc$"] in tags.values()


def test_the_overview_holds_table_and_picture_and_is_replaced(tmp_path):
    rng = np.random.default_rng(0)
    before = (rng.random(90) < 0.4).astype(int)
    ranked = "training set", before, np.r_[np.sort(before[:30])[::-1], before[30:]], 30
    for _ in range(2):
        figure = ranked_list_figure(*ranked, base="ranknet", statistic="dcg", values=(1.0, 2.0))
        with loggers(tmp_path) as log:
            log.each("log_charts", chart_layout(["dcg"], "top 30", "dcg"))
            log.each("log_text", "table", "| a |")
            log.each("log_figure", "lists", figure)
    accumulator = events(tmp_path)
    assert len(accumulator.Images("lists")) == 1
    assert len(accumulator.Tensors("table/text_summary")) == 1
    strips, curve = figure.axes
    assert strips.images[0].get_array().shape == (2, 60)
    assert [line.get_label() for line in curve.get_lines()] == ["ranknet", "reranked", "end of the reranked top 30"]
    assert "dcg 1.0000 → 2.0000" in figure.get_suptitle()


class Notes(Logger):
    """A logger of a user: it remembers what it receives."""

    seen: ClassVar[list[tuple[str, ...]]] = []

    def __init__(self, folder, run, method):
        self.name = f"{run}/{method}"

    def log_scalars(self, step, values, *, when):
        self.seen += [(self.name, tag, step) for tag in values]

    def log_text(self, tag, text):
        self.seen.append((self.name, tag))

    def log_parameters(self, parameters, final):
        self.seen.append((self.name, parameters["method"], *final))

    def close(self):
        self.seen.append((self.name, "closed"))


class Broken(Logger):
    def log_scalars(self, step, values, *, when):
        raise ConnectionError("no answer")


def small(folder, **tracking):
    return {
        "name": "small", "runs_dir": str(folder), "data": {"name": "gaussians"},
        "surrogate": {"losses": ["ranknet"], "max_steps": 2}, "baselines": {"methods": []},
        "exact": {"enabled": False}, "tracking": {"figures": False} | tracking,
    }  # fmt: skip


def test_a_logger_of_ones_own_receives_what_tensorboard_does(tmp_path):
    Notes.seen.clear()
    names = [f"{__name__}:{one.__name__}" for one in (Notes, Broken)]
    shown = []

    class Lines(Display):
        def note(self, text):
            shown.append(text)

    run_experiment(parse_config(small(tmp_path, loggers=["tensorboard", *names])), display=Lines())
    curve = curves(tmp_path / "small" / "ranknet")
    got = [entry for entry in Notes.seen if entry[0] == "small/ranknet"]
    assert {event_tag(tag) for _, tag, *step in got if step and tag != "ranknet"} == curve.keys()
    assert [step for _, tag, *step in got if tag == "loss/convex"] == [[1], [2]]
    assert got[-1] == ("small/ranknet", "closed")
    assert [entry for entry in Notes.seen if entry[0] == "small/results"] == [
        ("small/results", "results/methods"), ("small/results", "results/the first 50 rows of the test set"),
        ("small/results", "results/other statistics"), ("small/results", "closed"),
    ]  # fmt: skip
    # a logger that fails is left out, and said to be: the training is worth more
    assert shown == [f"ranknet: logger {names[1]}: left out after ConnectionError: no answer"]


def test_loggers_that_cannot_be_used_are_all_named_before_anything_is_computed(tmp_path):
    names = ["nowhere:X", f"{__name__}:X", f"{__name__}:small"]
    with pytest.raises(ConfigError) as error:
        run_experiment(parse_config(small(tmp_path, loggers=names)))
    rules = [finding.rule for finding in error.value.findings]
    assert rules[0].startswith("logger nowhere:X: importing nowhere failed: ModuleNotFoundError")
    missing = f"logger {__name__}:X: module {__name__!r} has no 'X'"
    assert rules[1:] == [missing, "must name a subclass of trainers.loggers.Logger"]
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match=r"tracking.loggers\[0\]: must be tensorboard, or module:Class"):
        parse_config(small(tmp_path, loggers=["tensorbord"]))


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now

    monotonic = time = perf_counter


@pytest.mark.parametrize(
    ("every", "cost", "least", "most"), [("auto", 0.001, 300, 300), ("auto", 2.0, 5, 10), (7, 2.0, 42, 43)]
)
def test_points_of_a_curve_take_seconds_or_a_twentieth_of_the_time(monkeypatch, every, cost, least, most):
    clock, logged = Clock(), []
    monkeypatch.setattr(trainers.run.methods, "time", clock)

    def log(step, values, when):
        clock.now += cost
        logged.append(step)

    config = SimpleNamespace(tracking=SimpleNamespace(every=every))
    watch = trainers.run.methods._RunWatch(
        SimpleNamespace(config=config), "ranknet", SimpleNamespace(log=log), None, None
    )
    for step in range(1, 301):
        clock.now += 1.0
        if watch.wants(step, 300):
            watch.log(step, {})
    assert logged[-1] == 300
    assert logged[0] == (7 if every == 7 else 1)
    assert least <= len(logged) <= most
