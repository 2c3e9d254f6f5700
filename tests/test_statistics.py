"""The weights of every rank statistic, its name, and its limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ltr.statistics import RankStatistic

# name -> its weight at rank l in a list of n, as the paper prints it
DEFINITIONS = {
    "auc": lambda rank, n: rank,
    "wrs": lambda rank, n: rank,
    "pauc@3": lambda rank, n: rank * (rank > n - 3),
    "wta": lambda rank, n: float(rank == n),
    "mrr": lambda rank, n: 1 / (n - rank + 1),
    "mrr@2": lambda rank, n: (rank > n - 2) / (n - rank + 1),
    "dcg": lambda rank, n: 1 / math.log2(n - rank + 2),
    "dcg@4": lambda rank, n: (rank > n - 4) / math.log2(n - rank + 2),
    "dcg(base=e)": lambda rank, n: 1 / math.log(n - rank + 2),
    "dcg(base=10)@2": lambda rank, n: (rank > n - 2) / math.log10(n - rank + 2),
    "power(p=4)": lambda rank, n: rank**4,
    "power(p=0.5)@2": lambda rank, n: (rank > n - 2) * math.sqrt(rank),
}
NAMES = [*DEFINITIONS, "weights(0,0.25,1)", "weights(0.1,0.30000000000000004)"]


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_weights_are_the_definition(name, n):
    expected = [DEFINITIONS[name](rank, n) for rank in range(1, n + 1)]
    np.testing.assert_allclose(RankStatistic.parse(name).weights(n), expected, rtol=1e-15)


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("n", [1, 7, 300])
def test_weights_are_nonnegative_and_nondecreasing(name, n):
    a = RankStatistic.parse(name).weights(n)
    assert a.shape == (n,)
    assert a.dtype == np.float64
    assert a[0] >= 0
    assert np.all(np.diff(a) >= 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_prints_back_exactly(name):
    statistic = RankStatistic.parse(name)
    assert str(statistic) == name
    assert RankStatistic.parse(str(statistic)) == statistic
    assert eval(repr(statistic)) == statistic


@given(
    st.one_of(
        st.builds(
            RankStatistic,
            st.just("dcg"),
            base=st.floats(1.0, 1e300, exclude_min=True),
            cutoff=st.none() | st.integers(1, 10**9),
        ),
        st.builds(RankStatistic, st.just("power"), p=st.floats(0.0, 1e300, exclude_min=True)),
        st.builds(RankStatistic, st.just("pauc"), cutoff=st.integers(1, 10**9)),
        st.builds(
            RankStatistic.from_weights,
            st.lists(st.floats(0, 1e300), min_size=1, max_size=6).map(sorted),
        ),
    )
)
def test_every_statistic_reads_back(statistic):
    assert RankStatistic.parse(str(statistic)) == statistic


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (" dcg ( base = 2 ) @ 10 ", "dcg@10"),
        ("dcg()", "dcg"),
        ("power", "power(p=1)"),
        ("dcg(base=2.718281828459045)", "dcg(base=e)"),
        ("weights(0, 0.5, 1.0)", "weights(0,0.5,1)"),
    ],
)
def test_other_spellings_have_one_canonical_name(text, canonical):
    assert str(RankStatistic.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg", "unknown name 'ndcg'"),
        ("dcg@0", "cutoff must be an integer >= 1, got 0"),
        ("dcg@", "must read name"),
        ("dcg(base=1)", "base must be a finite number > 1, got 1.0"),
        ("dcg(base=x)", "'x' is not a number"),
        ("dcg(p=2)", "takes base=..., got 'p=2'"),
        ("dcg(base=2,base=3)", "takes base="),
        ("mrr(base=2)", "takes no options, got 'base=2'"),
        ("power(p=0)", "p must be a finite number > 0"),
        ("power(p=inf)", "p must be a finite number > 0"),
        ("pauc", "a cutoff is needed"),
        ("auc@10", "takes no cutoff, got @10; the partial AUC is 'pauc@N'"),
        ("wta@2", "takes no cutoff"),
        ("weights(1,0)", "weights must be nondecreasing, got 0.0 at rank 2"),
        ("weights(-1,0)", "weights must be nonnegative, got -1.0 at rank 1"),
        ("weights(0,inf)", "weights must be finite, got inf at rank 2"),
        ("weights(0,nan)", "weights must be finite, got nan at rank 2"),
        ("weights()", "not a number"),
        ("weights", "not a number"),
        ("", "must read name"),
    ],
)
def test_a_bad_name_says_what_was_expected(text, message):
    with pytest.raises(ValueError, match=r"^(statistic|weights)") as error:
        RankStatistic.parse(text)
    assert message in str(error.value)


def test_only_strings_and_statistics_parse():
    with pytest.raises(TypeError, match="string or RankStatistic, got int"):
        RankStatistic.parse(3)
    statistic = RankStatistic("mrr")
    assert RankStatistic.parse(statistic) is statistic


@pytest.mark.parametrize("weights", [[], [[1.0, 2.0]], [2.0, 1.0], [math.nan]])
def test_bad_arrays_are_refused(weights):
    with pytest.raises(ValueError, match="weights must"):
        RankStatistic.from_weights(weights)


@pytest.mark.filterwarnings("error")
def test_infinite_weights_are_refused_without_a_warning():
    with pytest.raises(ValueError, match="weights must be finite, got inf at rank 1"):
        RankStatistic.parse("weights(1e400,1e400)")


def test_a_users_weights_must_fit_the_list():
    with pytest.raises(ValueError, match="3 weights for a list of 4"):
        RankStatistic.from_weights([0, 1, 2]).weights(4)


def test_options_of_another_statistic_are_refused():
    with pytest.raises(ValueError, match="base belongs to dcg"):
        RankStatistic("mrr", base=3)
    with pytest.raises(ValueError, match="p belongs to power"):
        RankStatistic("dcg", p=3)


@pytest.mark.parametrize("value", ["3", None, [3.0], math.inf, math.nan, 10**400])
def test_options_are_finite_numbers(value):
    with pytest.raises(ValueError, match="base must be a finite number > 1, got "):
        RankStatistic("dcg", base=value)
    with pytest.raises(ValueError, match="p must be a finite number > 0, got "):
        RankStatistic("power", p=value)


@pytest.mark.parametrize("rank", [-1, 0, 4])
def test_ranks_outside_the_list_are_refused(rank):
    with pytest.raises(ValueError, match=f"ranks must be from 1 to 3, got {rank}"):
        RankStatistic("dcg").value([2, rank], n=3)
    with pytest.raises(ValueError, match="ranks must be from 1 to 3, got -1"):
        RankStatistic("dcg").best(3, n_pos=5)


def test_auc_is_the_share_of_ordered_pairs():
    # ranks 5, 3, 2 of n = 5: the positives beat 2, 1 and 1 of the negatives at ranks 4 and 1
    assert RankStatistic("auc").value([5, 3, 2], n=5) == pytest.approx((2 + 1 + 1) / (3 * 2), abs=1e-15)
    assert RankStatistic("auc").best(5, 3) == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(ValueError, match="needs a positive and a negative"):
        RankStatistic("auc").affine(3, 0)


def test_the_best_value_puts_all_positives_on_top():
    # 1/log2(2) + 1/log2(3)
    assert RankStatistic("dcg").best(10, 2) == pytest.approx(1 + 1 / math.log2(3), abs=1e-15)


@pytest.mark.parametrize("name", ["auc", "wta", "mrr", "dcg", "dcg(base=e)", "power(p=1)", "power(p=2)", "power(p=4)"])
@pytest.mark.parametrize("n", [2, 3, 50, 4000])
def test_convex_statistics_are_known(name, n):
    assert RankStatistic.parse(name).is_convex(n)


@pytest.mark.parametrize("name", ["dcg@3", "pauc@3", "power(p=0.5)", "weights(0,1,1,1,1,1,1,1)"])
def test_other_statistics_are_not_convex(name):
    assert not RankStatistic.parse(name).is_convex(8)
