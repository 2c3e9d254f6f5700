"""The tables of a sweep's report: values and their marks, the exact stage, times, data."""

import dataclasses
import math
import re

import numpy as np
import pytest
from scipy import stats

from ltr.statistics import RankStatistic
from tests.sweep_results import STATISTIC, entry, exact, grid, record, small, sweep
from trainers.records import Answer, nothing_proven
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


def test_one_split_gives_values_only():
    [table] = tables(sections(results_of({"ranknet": [[10, 11]], "hinge": [[9, 12]]}))[0])
    assert table.rows == [["pumps", "train", "**10.00**", "9.00"], ["", "test", "11.00", "**12.00**"]]
    assert "one split" in table.caption
    assert "±" not in table.caption
    assert "t-test" not in table.caption


def test_one_variant_alone_is_not_marked():
    [table] = tables(sections(results_of({"ranknet": [[10, 11], [12, 13]]}))[0])
    assert [row[2] for row in table.rows] == ["11.00 ± 1.41", "12.00 ± 1.41"]
    assert "Bold" not in table.caption


def test_a_data_set_without_a_variant_has_a_dash():
    records = [record("a", 0, "ranknet", 1, 2), record("a", 0, "hinge", 3, 4), record("b", 0, "hinge", 5, 6)]
    [table] = tables(sections(sweep(records))[0])
    assert list(table.header) == ["data set", "set", "ranknet", "hinge"]
    assert table.rows[2:] == [["b", "train", "-", "5.000"], ["", "test", "-", "6.000"]]


def test_the_caption_says_what_the_marks_mean():
    [table] = tables(sections(small())[0])
    for text in ("`dcg`", "4 splits", "**Bold**", "*Italics*", "matched pairs t-test", "α = 0.05", "not corrected"):
        assert text in table.caption
    assert [len(row) for row in table.rows] == [len(table.header)] * 4
    assert table.left == 2


def test_best_of_is_named_as_a_favour():
    cells = [record("a", split, "hinge", 1, l2 + split, options={"l2": l2}, tag=l2)
             for l2 in (1, 3) for split in (0, 1)]  # fmt: skip
    cells = sweep(cells, [grid([entry(c, surrogate__l2=c["options"]["l2"]) for c in cells], best_of="surrogate.l2")])
    [table] = tables(sections(cells)[0])
    assert table.header[-1] == "hinge, best of 2 l2"
    assert table.rows[1][-1] == "3.500 ± 0.707"
    assert "favours" in table.caption


def test_a_table_says_how_much_of_it_is_finished_and_one_not_begun_is_left_out():
    results = small()
    kept = [r for r in results.records if r["data"] == "pumps"]
    later = grid([entry(record("late", 0, "hinge", 1, 1))], name="later")
    section, *_ = sections(dataclasses.replace(results, records=kept, grids=[*results.grids, later]))
    assert section.title == "methods"
    assert section.blocks[0].text == "20 of 40 results are finished."


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


def test_lists_with_the_bound_of_a_perfect_order_are_counted():
    records = [record("a", split, "ranknet", 10.0, 20.0) for split in range(3)]
    perfect = RankStatistic.parse("dcg").best(10, 5)
    for split, (status, bound) in enumerate([("time_limit", perfect), ("time_limit", 2.9), ("optimal", perfect)]):
        value = perfect if status == "optimal" else 2.8
        records.append(exact("a", split, 12.0, 19.0, status=status, value=value, bound=bound))
    [row] = exact_rows(sweep(records))
    assert (row["proven"], row["nothing proven"]) == ("1 of 3", "1")
    assert [nothing_proven(one) for one in records[3:]] == [True, False, False]
    assert [Answer.of(one).nothing_proven for one in records] == [False] * 3 + [True, False, False]


def test_an_answer_below_a_start_is_named():
    records = [record("a", split, "ranknet", 10, 10) for split in range(3)]
    for split, start in enumerate((5.0 + 1e-12, 5.1, 4.9)):
        records.append(exact("a", split, 10, 10, starts={"x": 1.0, "y": start}))
    [found] = sections(sweep(records), "Exceptions")
    assert "In 1 of 3 exact results the objective is below" in found.blocks[0].text
    assert "which is an error: a split 1, K = 10." in found.blocks[0].text


def test_an_unknown_gap_is_a_dash():
    found = exact("a", 0, 1, 1, status="time_limit", value=0.0 + 1e-300, bound=1.0)
    found["list"]["gap"] = None
    [row] = exact_rows(sweep([record("a", 0, "ranknet", 1, 1), found]))
    assert (row["median gap"], row["largest gap"]) == ("-", "-")


def test_the_gain_is_over_the_base_that_the_grid_names():
    others = {"l2": 1e-2, "optimizer": "adam"}
    hinges = [record("a", 0, "hinge", 1, 1, tag="-1"), record("a", 0, "hinge", 2, 2, options=others, tag="-2")]
    answer = exact("a", 0, 3, 3, base="hinge")
    results = sweep([*hinges, answer])
    [row] = exact_rows(results)  # which one it was cannot be told
    assert row["gain on test"] == "-"
    for cell in (cell for table in results.grids for cell in table["cells"] if cell["method"] == "exact"):
        cell["base"] = hinges[0]["id"]
    [row] = exact_rows(sweep(results.records, results.grids))
    assert row["gain on test"] == "+2.000 (+200.0%)"


def test_a_sweep_without_the_exact_stage_has_no_section_on_it():
    results = results_of({"ranknet": [[1, 1]]})
    assert not sections(results, "The exact stage")


def test_times_are_medians():
    [table] = tables(*sections(small(), "Times"))
    assert list(table.header) == ["data set", "ranknet", "hinge", "exponential", "exact, K = 10", "exact, K = 15"]
    assert table.rows[0] == ["pumps", "1.6", "1.6", "1.6", "1.0", "1.0"]


def test_data_sets_have_their_sizes_and_the_range_over_splits():
    records = [record("a", split, "ranknet", 1, 1, sizes={"train": [20, 8 + split], "test": [21, 4], "d": 3})
               for split in (0, 1, 2)]  # fmt: skip
    assert tables(*sections(sweep(records), "Data"))[0].rows == [["a", "20", "8–10", "21", "4", "3", "3"]]


def test_names_are_shown_as_they_are():
    found = record("*a*|b", 0, "ranknet", 1, 1)
    results = sweep([found], [grid([entry(found)], title="[x](y) `z`")])
    section, *_ = sections(results)
    assert re.sub(r"\\(.)", r"\1", section.title) == "[x](y) `z`"
    assert tables(section)[0].rows[0][0] == r"\*a\*|b"


def test_grids_of_one_name_add_up_their_splits():
    records = [record("pumps", split, "ranknet", 1.0 + split, 2.0) for split in range(3)]
    (table,) = tables_of(sweep(records, [grid([entry(r) for r in records[:2]]), grid([entry(records[2])])]))
    ((series,),) = (row.values() for row in table.rows.values())
    assert series.splits == (0, 1, 2)
    np.testing.assert_array_equal(series.values("train", STATISTIC), [1.0, 2.0, 3.0])
