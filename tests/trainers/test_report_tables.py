"""The tables of a sweep's report: values and their marks, the exact stage, times, data."""

import math

import numpy as np

from tests.trainers.sweep_results import STATISTIC, exact, record, sweep
from trainers.report.evidence import Evidence
from trainers.report.page import Table
from trainers.report.report import line_of, sections_of


def sections(results, start=""):
    """The sections of the report whose title begins so."""
    return [section for section in sections_of(Evidence(results)) if section.title.startswith(start)]


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
    """Values by method, and the best methods."""
    found, best = line_of(Evidence(results).tables[0].rows[data], half, Evidence(results))
    return {variant.method: own.tolist() for variant, own in found.items()}, {variant.method for variant in best}


def tables(section):
    return [block for block in section.blocks if isinstance(block, Table)]


def test_the_best_has_the_largest_mean_and_equal_ones_share_the_mark():
    values = {m: np.random.default_rng(at).normal(size=(8, 2)) for at, m in enumerate(METHODS)}
    results = results_of(values)
    for at, half in enumerate(("train", "test")):
        found, best = line(results, half)
        assert found == {method: own[:, at].tolist() for method, own in values.items()}
        assert best == {max(values, key=lambda m: values[m][:, at].mean())}
    equal = {"ranknet": [[v, v] for v in (1, 2, 3)], "hinge": [[v, v] for v in (1, 2, 3)], "lower": [[0, 0]] * 3}
    assert line(results_of(equal))[1] == {"ranknet", "hinge"}


def test_a_variant_with_fewer_splits_is_never_the_best():
    values = {"ranknet": [[1, 1], [2, 2], [3, 3], [9, 9]], "hinge": [[0, 0]] * 3 + [[50, 50]]}
    assert line(results_of(values))[1] == {"hinge"}
    short = results_of(values, missing={("hinge", 0), ("hinge", 1)})
    assert short.records[-1]["test"][STATISTIC] == 50
    assert line(short)[1] == {"ranknet"}
    [table] = tables(sections(short)[0])
    assert table.rows[1][2:] == ["**3.75 ± 3.59**", "25.00 ± 35.36 (2)"]
    assert "The number of splits is in parentheses" in table.caption


def test_splits_where_the_statistic_is_undefined_do_not_count():
    values = {"ranknet": [[1, 1], [2, 2], [3, 3]], "hinge": [[1, math.nan], [1, 1.5], [1, 2.5]]}
    found, best = line(results_of(values))
    assert found["hinge"] == [1.5, 2.5]
    assert best == {"ranknet"}


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
    }
