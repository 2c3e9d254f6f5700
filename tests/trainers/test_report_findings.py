"""Findings on sweeps made up with known answers; the tests against formulas, published numbers and simulation."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.stats

from ltr.rankers import Choice
from scripts.paper.experiments import larger, mean_ranks, over_data_sets, ranked_bases
from tests.trainers.sweep_results import Made
from trainers.report.evidence import Evidence
from trainers.report.page import Table, Text
from trainers.report.paired import Verdict, family, paired
from trainers.report.report import advice, build_page, choices, sections_of
from trainers.report.wording import verdict_text

STAGE = "the exact stage"
DCG = "dcg(base=e)"


@pytest.fixture(autouse=True)
def _no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


NOISE = np.array([0.02, -0.01, 0.03, -0.04, 0.01, 0.0])


def sweep(gains, lengths=(50, "full"), splits=6, noise=NOISE, train_gain=2.0):
    """Each data set with its gain on test over the base ranker."""
    made = Made(DCG)
    for data, gain in gains.items():
        for split in range(splits):
            made.first(data, split, 20.0 + split)
            for K in lengths:
                moved = {DCG: 20.0 + split + gain + noise[split] + 0.5}
                extra = {"recentred": {"norm": "l2", "test": moved, "train": {DCG: 20.0 + train_gain}}}
                made.exact(data, split, 20.0 + split + gain + noise[split], 20.0 + train_gain, K, **extra)
    return made


def verdict(results):
    """What is said of the exact stage and its base ranker on the test sets."""
    found = Evidence(results)
    return verdict_text(found.gains["test"], STAGE, "its base ranker on the test sets", found.decimals)


def section(results, start):
    """A section of the report."""
    return next((found for found in sections_of(Evidence(results)) if found.title.startswith(start)), None)


def words(found):
    return "\n".join(block.text for block in found.blocks if isinstance(block, Text))


def table_of(found):
    return next(block for block in found if isinstance(block, Table))


def test_paired_is_the_corrected_and_the_plain_t_test():
    a, b = np.array([31.0, 33.5, 30.2, 32.8, 31.1]), np.array([30.1, 31.9, 30.4, 31.0, 30.9])
    found = paired(a, b, overlap=0.25)
    d = a - b
    plain = scipy.stats.ttest_rel(a, b)
    ordinary = paired(a, b, overlap=0.0)
    assert ordinary.p == pytest.approx(plain.pvalue, rel=1e-9)
    low, high = plain.confidence_interval(0.95)
    assert ordinary.width == pytest.approx((high - low) / 2, rel=1e-9)
    t = d.mean() / math.sqrt((1 / 5 + 0.25) * d.var(ddof=1))
    assert found.p == pytest.approx(2 * scipy.stats.t.sf(abs(t), 4), rel=1e-9)
    assert found.width == pytest.approx(d.mean() / t * scipy.stats.t.ppf(0.975, 4), rel=1e-9)
    assert (found.splits, found.difference) == (5, pytest.approx(d.mean()))
    assert found.percent == pytest.approx(100 * d.mean() / b.mean())


def test_paired_reproduces_published_numbers():
    """scikit-learn's user guide, 10 times 10-fold: t = 2.611 becomes 0.750, one-sided p 0.005 becomes 0.227."""
    d = np.random.default_rng(0).normal(size=100)
    d = (d - d.mean()) / d.std(ddof=1) * 0.01
    d += 2.611 * 0.01 / 10
    found = paired(0.9 + d, np.full(100, 0.9), overlap=1 / 9)
    assert paired(0.9 + d, np.full(100, 0.9), overlap=0.0).p / 2 == pytest.approx(0.005, abs=5e-4)
    assert found.p / 2 == pytest.approx(0.227, abs=5e-4)


def test_the_corrected_test_holds_its_level_where_the_plain_one_does_not():
    """Two rulers of the same quality on 500 data sets of 80 rows, 10 random halves each."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(500):
        of_rows = rng.normal(size=80)
        halves = [of_rows[rng.permutation(80)[:40]].mean() for _ in range(10)]
        found.append([paired(halves, np.zeros(10), overlap).p <= 0.05 for overlap in (1.0, 0.0)])
    corrected, plain = np.mean(found, axis=0)
    assert 0.02 <= corrected <= 0.08
    assert plain >= 0.3


def test_paired_of_few_equal_and_undefined_values():
    nan = math.nan
    assert not paired([1.0, 2.0], [0.0, 0.0], 1.0).tested
    assert paired([nan, 1.0], [1.0, nan], 1.0).splits == 0
    assert paired([1.0, 2.0, nan, 4.0], [1.0, 1.0, 1.0, 1.0], 1.0).splits == 3
    same = paired([0.3, 0.6, 0.9], [0.1 * 3, 0.2 * 3, 0.3 * 3], 1.0)  # equal but for rounding
    assert (same.p, same.difference, same.width) == (1.0, 0.0, 0.0)
    assert paired([1.5, 2.5, 3.5], [1.0, 2.0, 3.0], 1.0).p == 0.0
    assert math.isnan(paired([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], 1.0).percent)


def test_a_family_is_adjusted_over_what_is_tested():
    found = {
        name: paired([20 + shift, 21 + 2 * shift, 22.1], [20, 21, 22], 1.0)
        for name, shift in zip("abc", (1, 3, 9), strict=True)
    }
    adjusted = family({**found, "few": paired([1.0], [2.0], 1.0), "none": paired([], [], 1.0)})
    assert list(adjusted) == ["a", "b", "c", "few"]
    order = sorted("abc", key=lambda name: found[name].p)
    steps = [min(1.0, (3 - at) * found[name].p) for at, name in enumerate(order)]
    for name, step in zip(order, itertools.accumulate(steps, max), strict=True):
        assert adjusted[name].p_holm == pytest.approx(step)
        assert adjusted[name].of == 3
    assert adjusted["few"].verdict == Verdict.TOO_FEW


MANY = [f"d{at}" for at in range(7)]


def test_better_everywhere():
    results = sweep(dict(zip(MANY, np.linspace(1, 2, 7), strict=True))).results
    text = verdict(results)
    assert "the exact stage is better than its base ranker on the test sets on d0 (every K; most at 50: +1.0" in text
    assert "It is significantly worse nowhere." in text
    assert over_data_sets(Evidence(results))["test"].startswith(
        "Over data sets a difference is shown at K = 50 (mean +"
    )
    assert "p = 0.031" in over_data_sets(Evidence(results))["test"]  # 2/2^7, for two K
    assert advice(Evidence(results)).startswith("**Rerank on d0 (every K; most at 50: +1.0")
    assert [row[6] for row in table_of(build_page(results).summary).rows] == ["better"] * 14


def test_worse_and_undecided_are_told_apart():
    made = sweep({"down": -1.0, "flat": 0.0}, lengths=(50,))
    for split in range(6):  # a large gain or loss with the split
        made.first("loud", split, 20.0)
        made.exact("loud", split, 20.0 + (-1) ** split * (5 + split))
    text = verdict(made.results)
    assert (
        "After correction the exact stage is significantly better nowhere. "
        "It is worse than its base ranker on the test sets" in text
    )
    assert advice(Evidence(made.results)).startswith("**Keep the base ranker: reranking lowers the test value on down")
    made = sweep({"down": -1.0, "up": 1.0}, lengths=(50,))
    both = advice(Evidence(made.results))
    assert both.startswith("**Rerank on up (K = 50: +1.0")
    assert ", but not on down (K = 50: -1.0" in both
    assert "on down (K = 50: -1.0" in text
    assert "Undecided: flat and loud." in text


def test_no_difference_is_said_plainly():
    found = Evidence(sweep({"a": 0.0, "b": 0.0}).results)
    assert verdict_text(found.gains["test"], STAGE, "it", 2) == (
        "None of the 4 differences is significant after correction: the exact stage was not shown to differ from it (4 "
        "above 0, 0 below 0)."
    )
    assert advice(found).startswith("**Keep the base ranker: reranking was not shown to change `dcg(base=e)`")
    equal = Evidence(sweep({"a": 0.0}, noise=np.zeros(6)).results)
    assert "are equal on each split" in verdict_text(equal.gains["test"], STAGE, "it", 2)
    single = Evidence(sweep({"a": 0.0}, lengths=(50,)).results)
    assert verdict_text(single.gains["test"], STAGE, "it", 2).startswith("The difference is not significant after")


def test_the_page_begins_with_the_answer_the_picture_and_the_table():
    page = build_page(sweep({"a": 1.0}, splits=3).results)
    answer, picture, table, *_ = page.summary
    assert answer.text.startswith("**Rerank on a")
    assert picture.file == "gain_by_k.png"
    assert table.header[:5] == ["data set", "K", "base ranker", "reranked", "difference on test"]
    assert picture not in [block for section in page.sections for block in section.blocks]


def test_the_base_ranker_is_the_one_that_the_grid_names():
    made = Made(DCG)
    for split in range(3):
        for at, l2 in enumerate((1e-2, 1e-4)):
            varied = {"surrogate.l2": l2}
            made.first("a", split, 20.0 + at, method="hinge", options={"l2": l2}, varied=varied, best_of="surrogate.l2")
        made.exact("a", split, 22.0 + split, options={"base": "hinge"})
    for at, l2 in enumerate((1e-2, 1e-4)):
        results = made.results
        for cell in (cell for grid in results.grids for cell in grid["cells"] if cell["method"] == "exact"):
            cell["base"] = f"a/{cell['split']}/hinge-{[('l2', l2)]}"
        ((_, gain),) = Evidence(results).gains["test"].items()
        assert (gain.mean_b, gain.difference) == (20.0 + at, pytest.approx(3.0 - at))


def options_sweep(key, values, effect, usual=1e-4):
    made = sweep({"a": 1.0}, lengths=(100,))
    for record in made.records.values():
        if record["method"] == "exact":
            record["options"][key] = usual
    for split, value in itertools.product(range(6), values):
        test = 20.0 + split + NOISE[split] * (1 + 10 * value) + effect.get(value, 0.0)
        weights = [1.0, 0.0] if value > 0.05 else [1.0, 1.0]
        made.exact("a", split, test, table="vary", vary=(f"exact.{key}",), options={key: value}, weights=weights)
    return made.results


def test_the_price_is_compared_with_the_smallest_one():
    results = options_sweep("C", (0.1, 1e-3, 1e-6), {0.1: -3.0})
    found = section(results, "Options")
    assert (
        "another C is significantly better nowhere. It is worse than C = 1e-06 on the test sets on a (C = 0.1: -3.0"
        in words(found)
    )
    shown = table_of(found.blocks)
    assert shown.header[1:4] == ["C", "C = 1e-06", "this value"]
    assert [row[1] for row in shown.rows] == ["0.001", "0.1"]
    assert shown.rows[1][4].startswith("-3.0")
    assert shown.rows[1][5:7] == ["<0.001", "worse"]
    assert shown.rows[1][8] == "6/6"


DEMSAR = """
0.763 0.768 0.771 0.798  0.599 0.591 0.590 0.569  0.954 0.971 0.968 0.967  0.628 0.661 0.654 0.657
0.882 0.888 0.886 0.898  0.936 0.931 0.916 0.931  0.661 0.668 0.609 0.685  0.583 0.583 0.563 0.625
0.775 0.838 0.866 0.875  1.000 1.000 1.000 1.000  0.940 0.962 0.965 0.962  0.619 0.666 0.614 0.669
0.972 0.981 0.9751 0.975  0.957 0.978 0.946 0.970
"""


def test_rankings_reproduce_published_ones():
    """Demšar (2006), table 6.

    Of the two 0.975 of one data set the first is the larger one by the ranks in print.
    """
    values = np.array(DEMSAR.split(), dtype=float).reshape(14, 4)
    assert mean_ranks(values) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)


def base_sweep(gains, data=6):
    """Bases that are alike by themselves; after reranking each has its gain."""
    made = Made(DCG)
    for at, split in itertools.product(range(data), range(3)):
        for number, (base, gain) in enumerate(gains.items()):
            made.first(f"d{at}", split, 20.0 + at + 0.01 * ((number + at) % len(gains)), method=base)
            made.exact(f"d{at}", split, 21.0 + at + gain, table="base", vary=("exact.base",), options={"base": base})
    return made


def test_the_best_base_is_found():
    made = base_sweep({"lr": 3.0, "ranknet": 2.0, "hinge": 1.0, "push": 0.0})
    text = ranked_bases(Evidence(made.results))
    assert "The bases do not rank alike (Friedman's chi-squared = 18.0, p < 0.001, 6 data sets)" in text
    assert "The best mean rank is that of lr (1.0), the worst that of push (4.0)." in text


# training value of the shorter and the longer list; bound over value and price of the longer one; worse, and settled
CASES = {
    "as good": (21.0, 21.0, 0.0, 0.0, (0, 0)),
    "merged": (22.0, 21.0, 0.0, 0.4, (1, 1)),
    "merged, unsolved": (22.0, 21.0, 0.5, 0.4, (1, 1)),
    "the price": (21.3, 21.0, 0.0, 0.4, (1, 0)),
    "open": (22.0, 21.0, 1.5, 0.0, (1, 0)),
}


def length_sweep(case, statistic=DCG):
    short, long, room, C, _ = CASES[case]
    made = Made(statistic)
    made.first("a", 0, 20.0)
    made.exact("a", 0, 21.0, short, options={"C": C})
    on_list = {"value": 5.0, "bound": 5.0 + room, "gap": room / 5.0}
    status = "time_limit" if room else "optimal"
    made.exact("a", 0, 21.0, long, "full", status=status, options={"C": C}, on_list=on_list, weights=[1.0, 0.0])
    return made


@pytest.mark.parametrize("case", CASES)
def test_whether_a_longer_list_is_worse_for_lack_of_time(case):
    found = larger(Evidence(length_sweep(case).results))
    assert (found["pairs"], found["worse"], found["settled"]) == (1, *CASES[case][-1])


def test_a_statistic_that_does_not_add_up_settles_nothing():
    found = larger(Evidence(length_sweep("merged", "auc").results))
    assert (found["worse"], found["settled"]) == (1, 0)


def test_exceptions_are_named():
    made = sweep({"a": 1.0}, lengths=(50,))
    made.exact(
        "a", 7, 21.0, 20.0, status="gap_limit", on_list={"value": 9.0, "bound": 9.9, "gap": 0.1, "starts": {"x": 9.5}}
    )
    crossed = {"value": 9.0, "bound": 8.0, "gap": None, "starts": {"x": 9.0}}
    made.exact("a", 8, 21.0, 20.0, status="time_limit", on_list=crossed)
    found = section(made.results, "Exceptions")
    text = words(found)
    assert "In 1 of 8 exact results the objective is below that of a ranker the search started from" in text
    assert "which is an error: a split 7, K = 50." in text
    assert "In 1 the bound is below the value, which is an error: a split 8, K = 50." in text
    assert "6 optimal, 1 gap_limit and 1 time_limit." in text


def test_missing_variants_and_undefined_values_are_left_out():
    made = sweep({"a": 1.0, "b": 1.0}, lengths=(50, 100, "full"))
    made.records = {
        key: record
        for key, record in made.records.items()
        if not (record["data"] == "b" and record["options"].get("top_k") in (100, "full"))
    }
    for record in made.records.values():
        if record["split"] == 0:
            record["test"] = {DCG: None}
    evidence = Evidence(made.results)
    assert list(evidence.gains["test"]) == [("a", 50), ("a", 100), ("a", "full"), ("b", 50)]
    assert {found.splits for found in evidence.gains["test"].values()} == {5}


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        (0.2, "and +0.20 on the test sets, within the expected 90 % interval in 3 of 3."),
        (0.5, "and +0.50 on the test sets, within the expected 90 % interval in 3 of 3."),
        (9.0, "and +9.00 on the test sets, within the expected 90 % interval in 0 of 3."),
        (None, "`dcg(base=e)` to be expected on new lists."),  # not measured, which is no miss
    ],
)
def test_choices_are_held_against_what_came(gain, said):
    choice = Choice.by_rule({"base": 0.0, "spread 0.2": 0.4}, {"base": 0.0, "spread 0.2": 0.1}, DCG, linear=True)
    made = Made(DCG)
    for split in range(3):
        made.first("a", split, 20.0)
        made.exact("a", split, None if gain is None else 20.0 + gain, choice=choice.to_dict())
    assert choices(Evidence(made.results)).endswith(said)
    kept = Choice.by_rule({"base": 0.0, "spread 0.2": 0.4}, {"base": 0.0, "spread 0.2": 9.0}, DCG, linear=True)
    for record in made.records.values():
        record |= {"choice": kept.to_dict()} if record["method"] == "exact" else {}
    assert choices(Evidence(made.results)).startswith("In all 3 results of the exact stage the choice on the training")
