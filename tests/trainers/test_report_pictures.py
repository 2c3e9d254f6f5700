"""The figure of a sweep, from results made up here: what is drawn, from which numbers, and when it is left out."""

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
from trainers.report.evidence import Evidence
from trainers.report.pictures import COLOURS, gain_picture

LENGTHS = (5, 10, "full")


def whole():
    """Two data sets, three splits, a longer limit on the first split."""
    rng, made = np.random.default_rng(0), Made()
    for data, split in itertools.product(("left", "right"), range(3)):
        for method in (LR, "rankboost"):
            made.first(data, split, *rng.uniform(5, 9, 2), method=method)
        for K in LENGTHS:
            status = {} if K == 5 else {"status": "time_limit", "on_list": {"bound": 9.5, "gap": 0.5}}
            made.exact(data, split, *rng.uniform(5, 9, 2), K, **status)
        made.exact(data, split, *rng.uniform(5, 9, 2), 10, table="margin", vary=["exact.margin"], options={"margin": 1})
    for K in LENGTHS:
        made.exact("left", 0, *rng.uniform(5, 9, 2), K, table="long", options={"time_limit": 600.0})
    return made.results


RESULTS = whole()
PICTURE = gain_picture(Evidence(RESULTS))


def values(part, **wanted):
    """The statistic of the results with these values and options, in the order of the splits."""
    found = [
        record
        for record in RESULTS.records
        if all({**record["options"], **record}.get(key) == value for key, value in wanted.items())
    ]
    return np.array([one[part][STATISTIC] for one in sorted(found, key=lambda record: record["split"])])


def test_the_picture_can_be_rendered():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PICTURE.file == "gain_by_k.png"
        assert to_hex(PICTURE.figure.get_facecolor()) == "#ffffff"
        assert PICTURE.caption.endswith(".")
        assert not {"\n", "  "} & set(PICTURE.caption)
        PICTURE.figure.savefig(io.BytesIO(), dpi=40)


@pytest.mark.parametrize("method", ["exact", LR])
def test_there_is_no_picture_without_both_stages(method):
    some = [record for record in RESULTS.records if record["method"] != method]
    assert gain_picture(Evidence(dataclasses.replace(RESULTS, records=some))) is None


@pytest.mark.parametrize("data", ["left", "right"])
@pytest.mark.parametrize("part", COLOURS)
def test_lines_of_the_gains_are_the_mean_gains(data, part):
    (axes,) = (one for one in PICTURE.figure.axes if one.get_title(loc="left") == data)
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
