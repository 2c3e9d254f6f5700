"""The reference is checked against things even simpler: hand-made tables, formulas and brute sampling."""

import itertools

import numpy as np

from tests.reference import (
    PRICES,
    STATISTICS,
    TIES,
    cells,
    random_instance,
    resolved_ranks,
    subranks,
)

FIGURE_SCORES = [6.2, 6.2, 5.8, 4.6, 3.1, 3.1, 2.3, 1.7, 1.7]
FIGURE_LABELS = [1, 1, 0, 0, 0, 1, 1, 0, 1]


def test_ranks_of_the_papers_figure():
    assert subranks(FIGURE_SCORES) == [7, 7, 6, 5, 3, 3, 2, 0, 0]
    assert resolved_ranks(FIGURE_SCORES, FIGURE_LABELS) == [8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_every_cell_that_sampling_finds_is_enumerated_and_none_twice():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        d = 2 + seed % 2
        normals = np.unique(rng.integers(-2, 3, size=(7, d)), axis=0)
        planes = np.vstack([normals[np.any(normals != 0, axis=1)], np.eye(d, dtype=int)])
        found = [tuple(np.sign(planes @ np.sum(cone, axis=0)).tolist()) for cone in cells(normals.tolist(), d)]
        assert len(set(found)) == len(found)
        assert all(0 not in signs for signs in found)
        samples = np.sign(rng.normal(size=(4000, d)) @ planes.T).astype(int)
        assert {tuple(s) for s in samples.tolist()} <= set(found)


# --- optima ----------------------------------------------------------------------------------------------------


def test_instances_cover_what_they_promise():
    problems = [random_instance(seed) for seed in range(102)]
    met = {(seed % len(STATISTICS), p.C, p.ties) for seed, p in enumerate(problems)}
    assert len(met) == len(STATISTICS) * len(PRICES) * len(TIES)
    assert {p.d for p in problems} == {1, 2, 3}
    assert {p.n for p in problems} == set(range(2, 9))
    assert any(len(np.unique(p.X, axis=0)) < p.n for p in problems)
    assert any((p.X[0] == p.X).all(axis=0).any() for p in problems if p.n > 3)
    rows = [({tuple(r) for r in p.X[p.positives]}, {tuple(r) for r in p.X[p.negatives]}) for p in problems]
    assert any(positives & negatives for positives, negatives in rows)
    assert np.array_equal(random_instance(5).X, random_instance(5).X)


def test_resolved_ranks_meet_the_papers_three_conditions():
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        scores, labels = rng.integers(0, 4, size=n).tolist(), rng.integers(0, 2, size=n).tolist()
        ranks = resolved_ranks(scores, labels)
        assert sorted(ranks) == list(range(n))
        assert all(r >= s for r, s in zip(ranks, subranks(scores), strict=True))
        for i, k in itertools.permutations(range(n), 2):
            assert not (scores[i] == scores[k] and labels[i] < labels[k]) or ranks[i] > ranks[k]
            assert not scores[i] > scores[k] or ranks[i] > ranks[k]
