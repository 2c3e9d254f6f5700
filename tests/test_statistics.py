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
    "hits@3": lambda rank, n: float(rank > n - 3),
    "precision@3": lambda rank, n: float(rank > n - 3),  # divided by 3 in the value
    "recall@3": lambda rank, n: float(rank > n - 3),  # divided by the positives in the value
    "power(p=4)": lambda rank, n: rank**4,
    "power(p=0.5)@2": lambda rank, n: (rank > n - 2) * math.sqrt(rank),
}
NAMES = [*DEFINITIONS, "ap", "ap@3", "weights(0,0.25,1)", "weights(0.1,0.30000000000000004)"]


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_weights_are_the_definition(name, n):
    expected = [DEFINITIONS[name](rank, n) for rank in range(1, n + 1)]
    np.testing.assert_allclose(RankStatistic.parse(name).weights(n), expected, rtol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_prints_back_exactly(name):
    statistic = RankStatistic.parse(name)
    assert str(statistic) == name
    assert RankStatistic.parse(str(statistic)) == statistic
    assert eval(repr(statistic)) == statistic


@given(
    st.builds(
        RankStatistic,
        st.just("dcg"),
        base=st.floats(1.0, 1e300, exclude_min=True),
        cutoff=st.none() | st.integers(1, 10**9),
    )
    | st.builds(RankStatistic, st.just("power"), p=st.floats(0.0, 1e300, exclude_min=True))
    | st.builds(RankStatistic.from_weights, st.lists(st.floats(0, 1e300), min_size=1, max_size=6).map(sorted))
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
        ("weights(1, e)", "weights(1,e)"),
        ("dcg\u00a0@\t3\n", "dcg@3"),
    ],
)
def test_other_spellings_have_one_canonical_name(text, canonical):
    assert str(RankStatistic.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg@10", "unknown name 'ndcg' (did you mean 'dcg'? runs by query report its share"),
        ("roc_auc", "did you mean 'auc'?"),
        ("dcg@0", "cutoff must be an integer from 1 to 2**63 - 1, got 0"),
        ("dcg@", "must read name"),
        ("dcg(base=1)", "base must be a finite number > 1, got 1.0"),
        ("dcg(p=2)", "takes base=..., got 'p=2'"),
        ("mrr(base=2)", "takes no options, got 'base=2'"),
        ("power(p=0)", "p must be a finite number > 0"),
        ("pauc", "a cutoff is needed"),
        ("map", "unknown name 'map' (did you mean 'ap'?)"),
        ("auc@10", "takes no cutoff, got @10; the partial AUC is 'pauc@N'"),
        ("weights(1,0)", "weights must be nondecreasing, got 0.0 at rank 2"),
        ("weights(-1,0)", "weights must be nonnegative, got -1.0 at rank 1"),
        ("weights(0,inf)", "weights must be finite, got inf at rank 2"),
        ("", "must read name"),
        ("dcg(base=１０)", "'１０' is not a number"),
    ],
)
def test_a_bad_name_says_what_was_expected(text, message):
    with pytest.raises(ValueError, match=r"^(statistic|weights)") as error:
        RankStatistic.parse(text)
    assert message in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.filterwarnings("error")
def test_infinite_weights_are_refused_without_a_warning():
    with pytest.raises(ValueError, match="weights must be finite, got inf at rank 1"):
        RankStatistic.parse("weights(1e400,1e400)")


@pytest.mark.filterwarnings("error")
def test_weights_have_a_finite_sum():
    assert RankStatistic.parse("power(p=1023)").best(2, 2) == 1 + 2.0**1023
    assert RankStatistic.parse("power(p=1e308)").best(1, 1) == 1.0
    for name, n in (("power(p=1024)", 2), ("power(p=1e308)@1", 3), ("weights(1e308,1e308)", 2)):
        statistic = RankStatistic.parse(name)
        for use in (lambda s, k: s.weights(k), lambda s, k: s.best(k, k)):
            with pytest.raises(ValueError, match=rf"the weights of a list of {n} must have a finite sum, got "):
                use(statistic, n)


def test_a_users_weights_must_fit_the_list():
    with pytest.raises(ValueError, match="3 weights for a list of 4"):
        RankStatistic.from_weights([0, 1, 2]).weights(4)


def test_auc_is_the_share_of_ordered_pairs():
    # ranks 5, 3, 2 of n = 5: the positives beat 2, 1 and 1 of the negatives at ranks 4 and 1
    assert RankStatistic("auc").value([5, 3, 2], n=5) == pytest.approx((2 + 1 + 1) / (3 * 2), abs=1e-15)
    assert RankStatistic("auc").best(5, 3) == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(ValueError, match="needs a positive and a negative"):
        RankStatistic("auc").affine(3, 0)


def test_the_best_value_puts_all_positives_on_top():
    # 1/log2(2) + 1/log2(3)
    assert RankStatistic("dcg").best(10, 2) == pytest.approx(1 + 1 / math.log2(3), abs=1e-15)


@pytest.mark.parametrize(
    ("name", "value", "best"),
    [  # positives at the positions 1, 3 and 8 of 10
        ("hits@4", 2, 3),
        ("hits@2", 1, 2),
        ("precision@4", 2 / 4, 3 / 4),
        ("precision@20", 3 / 20, 3 / 20),
        ("recall@4", 2 / 3, 1),
        ("recall@2", 1 / 3, 2 / 3),
        ("ap", (1 / 2 + 2 / 4 + 3 / 9) / 3, 1),
        ("ap@4", (1 / 2 + 2 / 4) / 3, 1),
        ("ap@2", (1 / 2) / 3, 2 / 3),
    ],
)
def test_hits_and_what_they_are_shares_of(name, value, best):
    statistic = RankStatistic.parse(name)
    assert statistic.value([7, 2, 9], n=10) == pytest.approx(value, abs=1e-15)
    assert statistic.best(10, 3) == pytest.approx(best, abs=1e-15)
    assert statistic.kind.counts_hits
    assert not statistic.kind.weighs_rows
    assert statistic.normalized_name == ("n" + name if statistic.name == "hits" else name)
    if statistic.kind.share_of == "positives":
        with pytest.raises(ValueError, match=f"statistic {name}: needs a positive, got none"):
            statistic.best(10, 0)
    else:
        assert statistic.best(10, 0) == 0


@pytest.mark.parametrize(("name", "nearest"), [("ap", "'dcg' .* 'hits@50'"), ("ap@9", "'dcg@9' .* 'hits@9'")])
def test_average_precision_has_a_value_but_no_weights(name, nearest):
    statistic = RankStatistic.parse(name)
    for use in (statistic.weights, lambda n: statistic.check_linear()):
        with pytest.raises(ValueError, match=f"statistic {name}: average precision is no sum .* {nearest}"):
            use(5)
    with pytest.raises(ValueError, match="n must be an integer of at least 1, got 0"):
        statistic.value([], 0)
    assert not statistic.is_constant(1)


@pytest.mark.parametrize(
    ("name", "constant"), [("hits@5", True), ("recall@6", True), ("hits@4", False), ("dcg@9", False)]
)
def test_all_orders_of_a_list_have_as_many_hits_as_it_is_long(name, constant):
    assert RankStatistic.parse(name).is_constant(5) is constant
    values = {RankStatistic.parse(name).value([r], 5) for r in range(1, 6)}
    assert (len(values) == 1) is constant
