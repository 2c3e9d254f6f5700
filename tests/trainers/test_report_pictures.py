"""Figures of sweeps, from results made up here: what is drawn, from which numbers, and what is left out."""

import dataclasses
import io
import itertools
import warnings

import numpy as np
import pytest
import scipy.stats
from matplotlib.collections import PathCollection
from matplotlib.colors import to_hex

from tests.trainers.sweep_results import LR, STATISTIC, Made
from trainers.report.drawing import COLOURS
from trainers.report.evidence import Evidence
from trainers.report.page import Picture
from trainers.report.pictures import pictures

LENGTHS = (5, 10, "full")
SUBJECTS = ["Gain of the exact stage by K", "Objective and bound over time"]


def whole():
    """A sweep with something for every subject: two data sets, three splits, a longer limit on the first split."""
    rng, made = np.random.default_rng(0), Made()
    trace = [[0.1, 4.5, 6.0, 1], [1.0, 5.0, 5.5, 9]]
    for data, split in itertools.product(("left", "right"), range(3)):
        for method in (LR, "rankboost"):
            made.first(data, split, *rng.uniform(5, 9, 2), method=method)
        for K in LENGTHS:
            status = {} if K == 5 else {"status": "time_limit", "on_list": {"bound": 9.5, "gap": 0.5}}
            made.exact(data, split, *rng.uniform(5, 9, 2), K, trace=trace, **status)
        made.exact(data, split, *rng.uniform(5, 9, 2), 10, table="margin", vary=["exact.margin"], options={"margin": 1})
    for K in LENGTHS:
        made.exact("left", 0, *rng.uniform(5, 9, 2), K, table="long", options={"time_limit": 600.0}, trace=trace)
    return made.results


RESULTS = whole()
SECTIONS = {section.title: section.blocks[1:] for section in pictures(Evidence(RESULTS))}


def values(part, **wanted):
    """The statistic of the results with these values and options, in the order of the splits."""
    found = [
        record
        for record in RESULTS.records
        if all({**record["options"], **record}.get(key) == value for key, value in wanted.items())
    ]
    return np.array([one[part][STATISTIC] for one in sorted(found, key=lambda record: record["split"])])


def test_every_subject_is_there_and_can_be_rendered():
    assert list(SECTIONS) == SUBJECTS
    drawn = list(itertools.chain.from_iterable(SECTIONS.values()))
    assert [picture.name for picture in drawn] == ["gain_by_k", "over_time_left", "over_time_right"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for picture in drawn:
            assert isinstance(picture, Picture)
            assert to_hex(picture.figure.get_facecolor()) == "#ffffff"
            assert picture.caption.endswith(".")
            assert not {"\n", "  "} & set(picture.caption)
            picture.figure.savefig(io.BytesIO(), dpi=40)


def test_traces_are_those_of_the_second_shortest_list_at_the_longest_limit():
    left, right = SECTIONS[SUBJECTS[1]]
    assert "K = 10, C = 0.0001, at most 600 seconds per list" in left.caption
    assert "K = 10, C = 0.0001, at most 20 seconds per list" in right.caption
    assert [axes.get_title(loc="left") for axes in right.figure.axes] == [
        f"split {split}: gap 50%, 1 s" for split in range(3)
    ]


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
    some = dataclasses.replace(RESULTS, records=[change(record) for record in RESULTS.records if keep(record)])
    assert [one.title for one in pictures(Evidence(some))] == [title for title in SUBJECTS if title not in missing]


@pytest.mark.parametrize("data", ["left", "right"])
@pytest.mark.parametrize("part", COLOURS)
def test_lines_of_the_gains_are_the_mean_gains(data, part):
    (picture,) = SECTIONS[SUBJECTS[0]]
    (axes,) = (one for one in picture.figure.axes if one.get_title(loc="left") == data)
    base = values(part, data=data, method=LR)
    expected, low = [], []
    for length in LENGTHS:
        exact = values(part, data=data, method="exact", top_k=length, time_limit=20.0, margin=1e-4)
        expected.append(100 * (exact - base).mean() / base.mean())
        error = (exact - base).std(ddof=1) * (1 / 3 + 1) ** 0.5  # three splits, sets of equal size
        low.append(100 * ((exact - base).mean() - scipy.stats.t.ppf(0.975, 2) * error) / base.mean())
    (line,) = (line for line in axes.lines if line.get_label() == part)
    assert line.get_ydata() == pytest.approx(expected)
    assert line.get_xdata().round().tolist() == [0, 1, 2]
    (bars,) = (
        bar for bar in axes.collections if len(bar.get_paths()) == 3 and to_hex(bar.get_edgecolor()[0]) == COLOURS[part]
        and len(bar.get_paths()[0].vertices) == 2
    )  # fmt: skip
    assert [path.vertices[:, 1].min() for path in bars.get_paths()] == pytest.approx(low)
    points = next(
        dots
        for dots in axes.collections
        if isinstance(dots, PathCollection) and to_hex(dots.get_edgecolor()[0]) == COLOURS[part]
    )
    assert [to_hex(face) == COLOURS[part] for face in points.get_facecolors()] == [True, False, False]  # proven
