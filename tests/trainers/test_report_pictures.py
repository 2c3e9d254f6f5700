"""Pictures of sweeps, from results made up here: what is drawn, from which numbers, and what is left out."""

import dataclasses
import io
import itertools
import json
import statistics
import warnings

import numpy as np
import pytest
import scipy.stats
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from trainers.records import SweepResults
from trainers.report.drawing import COLOURS
from trainers.report.evidence import Evidence, K, Series, Variant
from trainers.report.page import Picture, Text
from trainers.report.pictures import gain_pictures, pictures

STATISTIC = "dcg"
BASE = "logistic_regression"
LENGTHS = (5, 10, "full")
EXACT_OPTIONS = {"base": BASE, "top_k": 10, "statistic": STATISTIC, "C": 1e-4, "margin": 1e-4, "time_limit": 20.0}
MARGINS = (1e-1, 1e-2, 1e-3)
SUBJECTS = [
    "Gain of the exact stage by K",
    "Objective and bound over time",
]


class Sweep:
    """Records and grids, put together one by one."""

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.records, self.grids = {}, []

    def record(self, data, split, method, options):
        cell = f"{data}/{split}/{method}-{json.dumps(options, sort_keys=True)}"
        if cell not in self.records:
            self.records[cell] = {
                "id": cell, "data": data, "split": split, "method": method, "options": options,
                "sizes": {**{"train": [30, 12], "test": [30, 12]}, "d": 2},
                **{half: {STATISTIC: float(self.rng.uniform(5, 9)), "auc": 0.7} for half in COLOURS},
                "status": "fitted", "seconds": 0.1, "loss": 0.5,
            }  # fmt: skip
            if method == "exact":
                self.records[cell] |= self.solved(options)
        return cell

    def solved(self, options):
        n = 30 if options["top_k"] == "full" else options["top_k"]
        seconds = np.sort(self.rng.uniform(0, options["time_limit"], 5)).round(3)
        incumbent = 4 + np.sort(self.rng.uniform(0, 1, 5))
        bound = 5 + np.sort(self.rng.uniform(0, 1, 5))[::-1]
        proven = options["top_k"] == 5 or self.rng.random() < 0.5
        if proven:
            bound[-1] = incumbent[-1] * (1 + 7e-13)
        gap = 0.0 if proven else bound[-1] / incumbent[-1] - 1
        return {
            "status": "optimal" if proven else "time_limit",
            "seconds": float(seconds[-1]),
            "list": {"n": n, "n_pos": 3, "value": incumbent[-1], "bound": bound[-1], "gap": gap, "starts": {"x": 4.1},
                     "trivial_bound": None},
            "trace": [list(map(float, point)) for point in zip(seconds, incumbent, bound, range(5), strict=True)],
        }  # fmt: skip

    def grid(self, name, datas, splits, methods, vary, *, best_of=None, title="", **fixed):
        cells = []
        for data, split, method in itertools.product(datas, splits, methods):
            section = "exact" if method == "exact" else "surrogate"
            concerned = {key: values for key, values in vary.items() if key.startswith(section)}
            for choice in itertools.product(*concerned.values()):
                varied = dict(zip(concerned, choice, strict=True))
                options = {**EXACT_OPTIONS, **fixed} if method == "exact" else {"l2": 0.0}
                options |= {key.partition(".")[2]: value for key, value in varied.items()}
                cell = self.record(data, split, method, options)
                cells.append({"id": cell, "data": data, "split": split, "method": method, "varied": varied})
        self.grids.append({"name": name, "title": title, "best_of": best_of, "varied": list(vary), "cells": cells})
        return self

    @property
    def results(self):
        return SweepResults("made-up", self.grids, {}, list(self.records.values()))


def whole(splits=range(3)):
    """A sweep with something for every subject."""
    first, data = [BASE, "rankboost"], ["left", "right"]
    sweep = Sweep().grid("methods", data, splits, [*first, "exact"], {K: LENGTHS}, title="Methods")
    sweep.grid("methods", data, splits, ["hinge"], {"surrogate.l2": [0.1, 0.01]}, best_of="surrogate.l2")
    sweep.grid("long", data, list(splits)[:1], ["exact"], {K: LENGTHS}, time_limit=600.0)
    sweep.grid("margin", data[:1], splits, ["exact"], {"exact.margin": MARGINS})
    return sweep.grid("over_time", data[:1], splits, ["exact"], {}, time_limit=900.0)


def without(results, keep=lambda record: True, change=dict):
    """The results with some records only, each changed."""
    return dataclasses.replace(results, records=[change(record) for record in results.records if keep(record)])


def drawn(sections):
    return {section.title: [b for b in section.blocks if isinstance(b, Picture)] for section in sections}


def only(found):
    (picture,) = found
    return picture


def panel(picture, title):
    """The panel whose title begins so."""
    return only(axes for axes in picture.figure.axes if axes.get_title(loc="left").startswith(title))


def lines_of(axes):
    return {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}


def render(sections):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for picture in itertools.chain.from_iterable(drawn(sections).values()):
            picture.figure.savefig(io.BytesIO(), dpi=40)


RESULTS = whole().results
EVIDENCE = Evidence(RESULTS)


def of(**wanted):
    """The records of the made-up sweep with these values and options, in the order of the splits."""
    found = [
        record
        for record in RESULTS.records
        if all({**record["options"], **record}.get(key) == value for key, value in wanted.items())
    ]
    return sorted(found, key=lambda record: record["split"])


def values(records, half):
    return np.array([record[half][STATISTIC] for record in records])


# --- subjects ----------------------------------------------------------------------------------------------------


def test_every_subject_is_there_and_can_be_rendered():
    sections = pictures(Evidence(RESULTS))
    assert [section.title for section in sections] == SUBJECTS
    every = list(itertools.chain.from_iterable(drawn(sections).values()))
    names = [picture.name for picture in every]
    assert len(set(names)) == len(names)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyzCK_0123456789.") for name in names)
    for section in sections:
        assert isinstance(section.blocks[0], Text)
    for picture in every:
        assert isinstance(picture.figure.canvas, FigureCanvasAgg)
        assert to_hex(picture.figure.get_facecolor()) == "#ffffff"
        assert picture.caption.endswith(".")
        assert "\n" not in picture.caption
        assert "  " not in picture.caption
    render(sections)


def unsolved(record):
    """As of a top of a single class."""
    if record["method"] != "exact":
        return record
    return {**record, "status": "base order", "seconds": 0.0, "list": None, "trace": []}


LEFT_OUT = {
    "nothing": (lambda record: False, dict, SUBJECTS),
    "the exact stage": (lambda record: record["method"] == "exact", dict, SUBJECTS[:1]),
    "the first stage": (lambda record: record["method"] != "exact", dict, SUBJECTS),
    "anything to rerank": (lambda record: True, unsolved, SUBJECTS[1:]),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_a_subject_without_data_is_left_out(case):
    keep, change, missing = LEFT_OUT[case]
    sections = pictures(Evidence(without(RESULTS, keep, change)))
    assert [section.title for section in sections] == [title for title in SUBJECTS if title not in missing]


# --- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", ["left", "right"])
@pytest.mark.parametrize("half", COLOURS)
def test_lines_of_the_gains_are_the_mean_gains(data, half):
    axes = panel(only(gain_pictures(EVIDENCE)), data)
    base = values(of(data=data, method=BASE), half)
    expected, low = [], []
    for length in LENGTHS:
        exact = values(of(data=data, method="exact", top_k=length, time_limit=20.0, margin=1e-4), half)
        expected.append(100 * (exact - base).mean() / base.mean())
        error = (exact - base).std(ddof=1) * (1 / 3 + 1) ** 0.5  # three splits, sets of equal size
        low.append(100 * ((exact - base).mean() - scipy.stats.t.ppf(0.975, 2) * error) / base.mean())
    line = lines_of(axes)[half]
    assert line.get_ydata() == pytest.approx(expected)
    assert line.get_xdata().round().tolist() == [0, 1, 2]
    bars = only(
        bar for bar in axes.collections if len(bar.get_paths()) == 3 and to_hex(bar.get_edgecolor()[0]) == COLOURS[half]
        and len(bar.get_paths()[0].vertices) == 2
    )  # fmt: skip
    assert [path.vertices[:, 1].min() for path in bars.get_paths()] == pytest.approx(low)


def compared(exact, base):
    """The values of an exact series with those of its base ranker."""
    sizes = {"sizes": {"train": [30, 12], "test": [30, 12]}}
    two = (
        {split: {half: {STATISTIC: value} for half in COLOURS} | sizes for split, value in of.items()}
        for of in (exact, base)
    )
    return EVIDENCE.compare(*(Series("left", Variant("any"), records) for records in two), "test", fewest=2)


def test_gains_pair_the_splits_of_both():
    gain = compared({0: 3.0, 1: 5.0, 7: 100.0}, {0: 2.0, 1: 2.0, 5: 1.0})
    assert gain.percent == pytest.approx(100 * (1 + 3) / 2 / 2)
    assert gain.width == pytest.approx(scipy.stats.t.ppf(0.975, 1) * statistics.stdev([1, 3]) * (1 / 2 + 1) ** 0.5)
    assert gain.splits == 2


# --- time --------------------------------------------------------------------------------------------------------
