import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.exact.local_search import _line_search
from ltr.exact.local_search.search import search_tables
from ltr.exact.problem import PairwiseProblem, RerankProblem, multipartite_pairs
from tests.reference import (
    exact_scores,
    random_graded,
    random_instance,
    random_pairwise,
    slow_graded_value,
    slow_margin_value,
)

KINDS = {
    "resolved": (random_instance, {"rank": "resolved"}),
    "subrank": (random_instance, {"rank": "subrank"}),
    "graded": (random_graded, {"rank": "resolved"}),
    "graded subrank": (random_graded, {"rank": "subrank"}),
    "pairs": (random_pairwise, {}),
}


def state(seed=0):
    return np.array([seed], dtype=np.uint64)


def tiny_problem(kind, seed):
    """Integer features or not; quarters as weights never meet one of the three margins or a multiple of it exactly."""
    make, options = KINDS[kind]
    base = make(seed)
    noise = np.random.default_rng(seed).normal(size=base.X.shape) if seed % 3 == 0 else 0.0
    return dataclasses.replace(base, X=base.X + noise, margin=[1e-4, 0.23, 0.9][seed % 3], **options)


def larger_problem(kind, seed):
    """40 observations with 4 features and 5 labels; in two lists where gains are graded."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(40, 4)).round(1), rng.integers(0, 5, size=40)
    if kind == "pairs":
        edges = multipartite_pairs(labels)
        return PairwiseProblem(X, edges, weights=rng.integers(1, 4, size=len(edges)), margin=0.03)
    if kind.startswith("graded"):
        return RerankProblem(X, labels, qid=rng.integers(0, 2, size=40), margin=0.03, **KINDS[kind][1])
    return RerankProblem(X, labels > 2, margin=0.03, **KINDS[kind][1])


def slow_value(p, w):
    """The statistic by its definition."""
    scores = exact_scores(p.X, w)
    if isinstance(p, PairwiseProblem):
        wins = [scores[i] - scores[k] >= p.margin for i, k in p.pairs.tolist()]
        return math.fsum(p.weights[wins])
    if p.binary:
        return slow_margin_value(p.X, p.y, w, str(p.statistic), p.margin, p.rank)
    gains, qid = p.gains.tolist(), p.qid.tolist()
    return slow_graded_value(scores, gains, qid, str(p.statistic), p.rank, Fraction(p.margin))


def comparisons(p):
    """All (i, k, steps) that could matter: i beats k from steps margins on."""
    if isinstance(p, PairwiseProblem):
        return [(i, k, 1) for i, k in p.pairs.tolist()]
    most = 1 if p.binary or p.rank == "subrank" else 3  # random_graded has 4 gains
    return [(i, k, steps + 1) for i, k in itertools.permutations(range(p.n), 2) for steps in range(most)]


# --- one line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_line_search_finds_the_best_of_all_intervals_between_breakpoints(kind):
    moved = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = tiny_problem(kind, seed)
        w, v = rng.integers(-4, 5, size=p.d) / 4.0, rng.integers(-2, 3, size=p.d) / 2.0
        low, high = sorted(rng.uniform(-3, 3, size=2))
        f, g = p.X @ w, p.X @ v
        breaks = {(p.margin * steps - f[i] + f[k]) / (g[i] - g[k]) for i, k, steps in comparisons(p) if g[i] != g[k]}
        edges = [low, *sorted(t for t in breaks if low < t < high), high]
        values = [slow_value(p, w + (a + b) / 2 * v) for a, b in itertools.pairwise(edges) if b - a > 1e-9]
        value, at = _line_search.line_search(search_tables(p, p.levels()), f, g, low, high, state(seed))
        assert value == pytest.approx(max(values), abs=1e-9)
        assert slow_value(p, w + at * v) == pytest.approx(value, abs=1e-9)
        assert low < at < high
        moved += max(values) > values[0] + 1e-9
    assert moved >= 15  # the first interval is not always the best


@pytest.mark.parametrize("kind", KINDS)
def test_a_line_is_as_good_as_the_better_of_its_parts(kind):
    """Behind a cut the whole line's search has stepped over many pairs, the part's has counted them anew."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        p = larger_problem(kind, seed)
        tables = search_tables(p, p.levels())
        f, g = p.X @ rng.normal(size=4), p.X @ rng.normal(size=4)
        whole, at = _line_search.line_search(tables, f, g, -3.0, 3.0, state(seed))
        assert whole == pytest.approx(_line_search.value_of_scores(tables, f + at * g), abs=1e-9)
        for cut in rng.uniform(-3, 3, size=30):
            left, _ = _line_search.line_search(tables, f, g, -3.0, cut, state())
            right, _ = _line_search.line_search(tables, f, g, cut, 3.0, state())
            assert whole == pytest.approx(max(left, right), abs=1e-9)
            assert _line_search.value_of_scores(tables, f + cut * g) <= whole + 1e-9


def test_a_pair_that_is_on_the_margin_all_along_is_won():
    p = RerankProblem([[0.0], [1.0]], [0, 1], margin=0.5)
    tables, f, flat = search_tables(p, p.levels()), np.array([0.0, 0.5]), np.zeros(2)
    assert _line_search.line_search(tables, f, flat, 0.0, 1.0, state())[0] == p.trivial_bound
    assert _line_search.line_search(tables, np.nextafter(f, 0.0), flat, 0.0, 1.0, state())[0] < p.trivial_bound


def test_line_search_of_an_empty_segment_finds_nothing():
    p = random_instance(1)
    tables = search_tables(p, p.levels())
    f = np.zeros(tables.columns.shape[1])
    assert _line_search.line_search(tables, f, f, 1.0, 1.0, state())[0] == -math.inf
    assert _line_search.line_search(tables, f, f, 1.0, 0.0, state())[0] == -math.inf


def test_value_of_scores_is_the_problems():
    for seed in range(78):
        for p in (random_instance(seed), random_pairwise(seed), random_graded(seed)):
            w = np.random.default_rng(seed).integers(-4, 5, size=p.d) / 4.0
            assert _line_search.value_of_scores(search_tables(p, p.levels()), p.X @ w) == pytest.approx(
                p.statistic_value(w), abs=1e-12
            )


@settings(max_examples=100, deadline=None)
@given(
    keys=st.lists(
        st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.5, 0.5 + 1e-12, 0.25]), st.floats(1e-9, 1e-8)),
        max_size=300,
    )
)
def test_bucket_sort_sorts(keys):
    keys = np.array(keys, dtype=np.float64)
    items = np.random.default_rng(len(keys)).permutation(len(keys))
    sorted_keys, order = _line_search._sort(keys, items, 0.0, 1.0, np.zeros(1, dtype=np.uint8))
    assert sorted_keys.tolist() == sorted(keys.tolist())
    assert sorted(order.tolist()) == list(range(len(keys)))
    assert keys[np.argsort(items)][order].tolist() == sorted_keys.tolist()


def test_uniform_numbers_are_in_range_even_and_reproducible():
    source, again = state(5), state(5)
    draws = np.array([_line_search.uniform(source) for _ in range(4000)])
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.abs(np.histogram(draws, bins=10, range=(0, 1))[0] - 400).max() < 100
    assert [_line_search.uniform(again) for _ in range(3)] == draws[:3].tolist()
