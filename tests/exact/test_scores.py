"""Comparisons of scores against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ltr.exact.scores import Scores
from tests.reference import exact_scores

KINDS = {
    "binary": lambda rng, n, d: rng.integers(0, 2, (n, d)) * 1.0,
    "tenths": lambda rng, n, d: rng.integers(-3, 4, (n, d)) * 0.1,
    "real": lambda rng, n, d: rng.normal(size=(n, d)),
    "huge": lambda rng, n, d: rng.integers(0, 3, (n, d)) * 1e307 / 4,
    "tiny": lambda rng, n, d: rng.integers(0, 3, (n, d)) * 5e-324,
    "an ulp apart": lambda rng, n, d: np.nextafter(rng.integers(1, 3, (n, d)) * 0.1, rng.integers(0, 2, (n, d))),
    "mixed": lambda rng, n, d: rng.integers(-2, 3, (n, d)) * 10.0 ** rng.integers(-300, 300, size=d),
}
WEIGHTS = (
    lambda rng, d: rng.integers(-2, 3, d) / 2.0,
    lambda rng, d: rng.uniform(-1, 1, d),
    lambda rng, d: rng.integers(-3, 4, d) / 3.0,
)
MARGINS = (0.5, 1.0, 0.1, 0.3, 1e-4, 1.7e308, 5e-324)


@pytest.mark.parametrize("kind", KINDS)
def test_comparisons_and_orders_are_those_of_rational_numbers(kind):
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        X, w, margin = KINDS[kind](rng, n, d), WEIGHTS[seed % 3](rng, d), float(rng.choice(MARGINS))
        scores, exact = Scores(X, w, margin), exact_scores(X, w)
        wins = scores.wins(np.arange(n)[:, None], np.arange(n))
        assert wins.tolist() == [[i - k >= Fraction(margin) for k in exact] for i in exact]
        rows, steps, lists = rng.integers(0, n, 20), rng.integers(0, 4, 20), np.sort(rng.integers(0, 4, 20))
        keys = [exact[r] - Fraction(margin) * int(m) for r, m in zip(rows, steps, strict=True)]
        assert scores.order(rows, steps).tolist() == [sorted(set(keys)).index(key) for key in keys]
        of_lists = list(zip(lists.tolist(), keys, strict=True))
        assert scores.order(rows, steps, lists).tolist() == [sorted(set(of_lists)).index(key) for key in of_lists]
        ascending = sorted(range(20), key=lambda at: (of_lists[at], steps[at], -at))
        assert np.argsort(scores.order(rows, steps, lists, apart=True)).tolist() == ascending


def test_sums_that_float64_cannot_tell_apart_are_told_apart():
    # 300 tenths in different orders: equal as real sums of the rounded numbers or not, decided exactly
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, (200, 300)) * 0.1
    exact = exact_scores(X, np.ones(300))
    ranks = Scores(X, np.ones(300), 1e-4).order(np.arange(200), np.zeros(200, dtype=int))
    values = sorted(set(exact))
    assert ranks.tolist() == [values.index(v) for v in exact]
