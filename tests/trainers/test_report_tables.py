"""The tables of a sweep's report: values and their marks, the exact stage, times, data."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from tests.trainers.sweep_results import STATISTIC, exact, record, sweep
from trainers.report.evidence import Evidence, tables_of
from trainers.report.page import Table
from trainers.report.tables import SECTIONS, line_of


def sections(results, start=""):
    """The sections of the report whose title begins so."""
    made = [section for make in SECTIONS for section in make(Evidence(results)) if section.blocks]
    return [section for section in made if section.title.startswith(start)]


METHODS = ("ranknet", "hinge", "exponential", "logistic")


def results_of(values, data="pumps", missing=()):
    """A sweep with values[method] = array of (split, half); without the (method, split) in `missing`."""
    return sweep(
        [
            record(data, split, method, *(None if np.isnan(v) else float(v) for v in pair))
            for method, pairs in values.items()
            for split, pair in enumerate(np.asarray(pairs, dtype=float))
            if (method, split) not in missing
        ]
    )


def line(results, half="test", data="pumps"):
    """Standing, mean, standard deviation and splits by method."""
    found = line_of(tables_of(results)[0].rows[data], half, Evidence(results))
    return {variant.method: dataclasses.astuple(reached) for variant, reached in found.items()}


def standings(results, half="test"):
    return {method: found[-1] for method, found in line(results, half).items()}


def tables(section):
    return [block for block in section.blocks if isinstance(block, Table)]


def test_marks_are_those_of_scipys_paired_t_test():
    seen = {"best": 0, "close": 0, "": 0}
    for seed in range(30):
        rng = np.random.default_rng(seed)
        values = {m: 20 + rng.normal(size=(8, 1)) + rng.normal(size=(8, 2)) + 0.5 * at for at, m in enumerate(METHODS)}
        results = results_of(values)
        for at, half in enumerate(("train", "test")):
            best = max(values, key=lambda m: values[m][:, at].mean())
            for method, (mean, std, splits, standing) in line(results, half).items():
                own = values[method][:, at]
                assert (mean, std, splits) == (pytest.approx(own.mean()), pytest.approx(np.std(own, ddof=1)), 8)
                p = 1.0 if method == best else stats.ttest_rel(own, values[best][:, at]).pvalue
                assert standing == ("best" if method == best else "close" if p >= 0.05 else "")
                seen[standing] += 1
    assert min(seen.values()) > 30


@pytest.mark.parametrize(
    ("hinge", "expected"),
    [
        ([1, 2, 3], "best"),  # the same values
        ([0, 1, 2], ""),  # less by the same everywhere, no variance
        ([2, 3, 1.1], "best"),
        ([-4, 2, 3], "close"),  # worse on one split only
    ],
)
def test_marks_of_special_differences(hinge, expected):
    values = {"ranknet": [[v, v] for v in (1, 2, 3)], "hinge": [[v, v] for v in hinge]}
    assert standings(results_of(values))["hinge"] == expected


def test_a_variant_with_fewer_splits_is_compared_on_the_common_ones_and_never_the_best():
    values = {"ranknet": [[1, 1], [2, 2], [3, 3], [9, 9]], "hinge": [[0, 0]] * 3 + [[50, 50]]}
    assert standings(results_of(values)) == {"ranknet": "close", "hinge": "best"}
    short = results_of(values, missing={("hinge", 0), ("hinge", 1)})
    assert short.records[-1]["test"][STATISTIC] == 50
    assert standings(short) == {"ranknet": "best", "hinge": "close"}
    [table] = tables(sections(short)[0])
    assert table.rows[1][2:] == ["**3.75 ± 3.59**", "*25.00 ± 35.36* (2)"]
    assert "The number of splits is in parentheses" in table.caption
    # significantly better on the few splits that it has is not worse
    values["hinge"] = [[0, 0], [12, 12], [13, 13], [19, 19.1]]
    assert standings(results_of(values, missing={("hinge", 0)})) == {"ranknet": "best", "hinge": "close"}
    # on one common split nothing is tested
    alone = results_of(values, missing={("hinge", split) for split in (0, 1, 2)})
    assert standings(alone) == {"ranknet": "best", "hinge": ""}


def test_splits_where_the_statistic_is_undefined_do_not_count():
    values = {"ranknet": [[1, 1], [2, 2], [3, 3]], "hinge": [[1, math.nan], [1, 1.5], [1, 2.5]]}
    mean, std, splits, standing = line(results_of(values))["hinge"]
    assert (mean, splits, standing) == (2.0, 2, "")
    assert std == pytest.approx(math.sqrt(0.5))


def exact_rows(results):
    [table] = tables(*sections(results, "The exact stage"))
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


def test_the_exact_stages_line_by_hand():
    records = [record("a", split, "ranknet", 10.0 + split, 20.0) for split in range(4)]
    spec = [("optimal", 5.0, 5.0), ("time_limit", 5.0, 5.5), ("gap_limit", 4.0, 4.0001), ("base order", None, None)]
    for split, (status, value, bound) in enumerate(spec):
        more = {"list": None} if value is None else {"value": value, "bound": bound}
        records.append(exact("a", split, 12.0 + split, 19.0, status=status, seconds=1.0 + split, **more))
    [row] = exact_rows(sweep(records))
    assert row == {
        "data set": "a",
        "variant": "exact, K = 10",
        "splits": "4",
        "proven": "1 of 3",
        "nothing proven": "0",
        "objective": "4.667",
        "bound": "4.833",
        "median gap": "< 0.01%",
        "largest gap": "10.00%",
        "gain on train": "+2.00 (+17.4%)",  # of a mean of 11.5
        "gain on test": "-1.00 (-5.0%)",
        "median seconds": "2.5",
    }
