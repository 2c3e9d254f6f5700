import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.exact import RerankProblem
from ltr.exact.local_search.search import new_ascents
from ltr.exact.preferences import PairwiseProblem
from ltr.native import Ascents
from tests.reference import (
    exact_scores,
    random_graded,
    random_instance,
    random_pairwise,
    slow_graded_value,
    slow_margin_value,
)
from tests.tiers import examples

RANKED = {
    "resolved": (random_instance, {"ties": "resolved"}),
    "subrank": (random_instance, {"ties": "subrank"}),
    "graded": (random_graded, {"ties": "resolved"}),
    "graded subrank": (random_graded, {"ties": "subrank"}),
}
KINDS = {
    **RANKED,
    "pairs": (random_pairwise, {}),
    **{f"{name}, items": kind for name, kind in RANKED.items()},  # searched without pairs
}


def ascents(problem, seed=0, kind=""):
    return new_ascents(problem, problem.ranked_items() if "items" in kind else problem.levels(), seed=seed)


def tiny_problem(kind, seed):
    """Integer features or not; quarters as weights never meet one of the three margins or a multiple of it exactly."""
    make, options = KINDS[kind]
    base = make(seed)
    noise = np.random.default_rng(seed).normal(size=base.X.shape) if seed % 3 == 0 else 0.0
    return dataclasses.replace(base, X=base.X + noise, margin=[1e-4, 0.23, 0.9][seed % 3], **options)


def slow_value(p, w):
    """The statistic by its definition."""
    scores = exact_scores(p.X, w)
    if isinstance(p, PairwiseProblem):
        wins = [scores[i] - scores[k] >= p.margin for i, k in p.pairs.tolist()]
        return math.fsum(p.weights[wins])
    if p.binary:
        return slow_margin_value(p.X, p.gains, w, str(p.statistic), p.margin, p.ties)
    gains, qid = p.gains.tolist(), p.qid.tolist()
    return slow_graded_value(scores, gains, qid, str(p.statistic), p.ties, Fraction(p.margin))


def comparisons(p):
    """All (i, k, steps) that could matter: i beats k from steps margins on."""
    if isinstance(p, PairwiseProblem):
        return [(i, k, 1) for i, k in p.pairs.tolist()]
    most = 1 if p.binary or p.ties == "subrank" else 3  # random_graded has 4 gains
    return [(i, k, steps + 1) for i, k in itertools.permutations(range(p.n), 2) for steps in range(most)]


# --- one line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_line_search_finds_the_best_of_all_intervals_between_breakpoints(kind):
    moved, count = 0, examples(50, slow=150)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        p = tiny_problem(kind, seed)
        w, v = rng.integers(-4, 5, size=p.d) / 4.0, rng.integers(-2, 3, size=p.d) / 2.0
        low, high = sorted(rng.uniform(-3, 3, size=2))
        f, g = p.X @ w, p.X @ v
        breaks = {(p.margin * steps - f[i] + f[k]) / (g[i] - g[k]) for i, k, steps in comparisons(p) if g[i] != g[k]}
        edges = [low, *sorted(t for t in breaks if low < t < high), high]
        values = [slow_value(p, w + (a + b) / 2 * v) for a, b in itertools.pairwise(edges) if b - a > 1e-9]
        value, at = ascents(p, seed, kind).line_search(f, g, low, high)
        assert value == pytest.approx(max(values), abs=1e-9)
        assert slow_value(p, w + at * v) == pytest.approx(value, abs=1e-9)
        assert low < at < high
        moved += max(values) > values[0] + 1e-9
    assert moved >= count / 15  # the first interval is not always the best


@pytest.mark.parametrize("ties", ["resolved", "subrank"])
@pytest.mark.parametrize("statistic", ["dcg", "dcg@3", "dcg@40", "auc", "mrr", "hits@7"])
def test_lists_are_searched_alike_with_and_without_pairs(statistic, ties):
    """One list and many, short ones and longer ones, of which few items come to the top; on one thread and on two."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 300)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)).round(1 if seed % 3 == 0 else 9)
        y = rng.integers(0, [2, 5][seed % 2], n)
        y[:2] = 0, 1
        lists = rng.integers(0, 1 + n // int(rng.integers(5, 100)), n)
        p = RerankProblem(X, y, statistic, margin=[1e-4, 0.23][seed % 2], qid=lists if seed % 4 else None, ties=ties)
        items = p.ranked_items()
        searches = [new_ascents(p, p.levels(), seed=0), *(new_ascents(p, items, seed=0, threads=t) for t in (1, 2))]
        w, v = rng.uniform(-1, 1, d), rng.normal(size=d)
        f, g = X @ w, X @ v
        for search in searches:
            assert search.objective(w, 1.0) == pytest.approx(p.evaluate(w), abs=1e-9)
        for low, high in ((-3.0, 3.0), sorted(rng.normal(size=2))):
            found = [search.line_search(f, g, low, high) for search in searches]
            assert found[1][0] == pytest.approx(found[0][0], abs=1e-9)
            assert found[2] == found[1]
            assert searches[0].objective(w + found[1][1] * v, 1.0) == pytest.approx(found[1][0], abs=1e-9)


def test_a_pair_that_is_on_the_margin_all_along_is_won():
    p = RerankProblem([[0.0], [1.0]], [0, 1], margin=0.5)
    search, f, flat = ascents(p), np.array([0.0, 0.5]), np.zeros(2)
    assert search.line_search(f, flat, 0.0, 1.0)[0] == p.trivial_bound
    assert search.line_search(np.nextafter(f, 0.0), flat, 0.0, 1.0)[0] < p.trivial_bound


@settings(max_examples=100, deadline=None)
@given(
    breaks=st.lists(
        st.one_of(st.floats(0.01, 0.99), st.sampled_from([0.5, 0.5 + 1e-9, 0.25]), st.floats(1e-7, 1e-6)),
        min_size=1,
        max_size=300,
    )
)
def test_breakpoints_may_crowd(breaks):
    """Each preference (i, k) changes at a breakpoint of its own: f_k - f_i + margin = break, g_i - g_k = 1
    (or both negated)."""
    rng = np.random.default_rng(len(breaks))
    breaks, signs = np.array(breaks), rng.choice([-1.0, 1.0], size=len(breaks))
    weights = rng.integers(1, 5, size=len(breaks)).astype(float)
    pairs = np.arange(2 * len(breaks)).reshape(-1, 2)
    p = PairwiseProblem(np.zeros((2 * len(breaks), 1)), pairs, weights=weights, margin=2.0**-20)
    f, g = np.zeros(p.n), np.zeros(p.n)
    f[pairs[:, 1]], g[pairs[:, 0]] = signs * breaks - p.margin, signs
    value, at = ascents(p).line_search(f, g, 0.0, 1.0)
    edges = np.unique([0.0, *breaks, 1.0])
    middles = (0.5 * (edges[1:] + edges[:-1]))[np.diff(edges) > 1e-10]
    values = ((signs * middles[:, None] >= signs * breaks) * weights).sum(axis=1)
    assert value == pytest.approx(values.max())
    assert ((signs * at >= signs * breaks) * weights).sum() == pytest.approx(value)


def test_equal_intervals_are_drawn_by_their_lengths():
    """One preference is won before 1/8 and another from 3/8 on: all but a quarter of the segment is equally good."""
    p = PairwiseProblem(np.zeros((4, 1)), [[0, 1], [2, 3]], margin=0.25)
    f, g = np.array([0.25, -0.125, 0.25, 0.375]), np.array([-1.0, 0.0, 1.0, 0.0])
    drawn = [ascents(p, seed).line_search(f, g, 0.0, 1.0) for seed in range(1400)]
    assert {value for value, _ in drawn} == {1.0}
    assert {at for _, at in drawn} == {0.0625, 0.6875}
    assert abs(sum(at == 0.0625 for _, at in drawn) - 1400 / 6) < 60  # four standard deviations
    assert drawn[:20] == [ascents(p, seed).line_search(f, g, 0.0, 1.0) for seed in range(20)]


# --- arrays ----------------------------------------------------------------------------------------------------


def arrays_of(problem, kind=""):
    """The arguments of `Ascents` for a problem."""
    taken = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ltr.exact.local_search.search.Ascents", lambda **arguments: taken.update(arguments))
        ascents(problem, kind=kind)
    return taken


def test_a_search_that_was_stopped_finds_nothing():
    p = tiny_problem("resolved", 0)
    arrays = arrays_of(p)
    search, w = Ascents(**arrays), np.linspace(-1, 1, p.d)
    arrays["stop"][0] = 1
    assert search.line_search(np.zeros(p.n), np.ones(p.n), 0.0, 1.0) == (-math.inf, 0.0)
    search.ascend(w, 50, resume=False)
    assert w.tolist() == np.linspace(-1, 1, p.d).tolist()
