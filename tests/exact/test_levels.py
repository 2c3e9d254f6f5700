import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from ltr.exact.levels import value
from tests.reference import exact_scores, graded_problem, random_graded, random_instance, random_pairwise

KINDS = {"ranked": random_instance, "graded": random_graded, "pairs": random_pairwise}


def grid_weights(seed, d):
    return np.random.default_rng([8, seed]).integers(-4, 5, size=d) / 4.0


def won_at(problem, levels, w):
    """Which pairs are won at w, in rational arithmetic."""
    scores, margin = exact_scores(problem.X, w), Fraction(problem.margin)
    ends = zip(levels.above.tolist(), levels.below.tolist(), levels.steps.tolist(), strict=True)
    return np.array([scores[i] - scores[k] >= margin * steps for i, k, steps in ends], dtype=bool)


# --- what the arrays say ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_levels_have_the_value_of_the_problem(kind):
    for seed in range(102):
        problem = dataclasses.replace(KINDS[kind](seed), margin=[1e-4, 0.25, 0.5][seed % 3])
        levels, w = problem.levels(), grid_weights(seed, problem.d)
        assert value(levels, won_at(problem, levels, w)) == pytest.approx(problem.statistic_value(w), abs=1e-12)


# --- small examples --------------------------------------------------------------------------------------------


def test_levels_of_graded_gains():
    # gains 2, 0, 1, 2 of one list, 3 alone in another: layers {4}, {0, 2, 3} and {0, 3}
    p = graded_problem(np.zeros((5, 1)), [2, 0, 1, 2, 3], [7, 7, 7, 7, 1], statistic="wrs")
    levels = p.levels()
    assert levels.observation.tolist() == [4, 0, 2, 3, 0, 3]
    assert levels.level.tolist() == [0, 1, 1, 1, 2, 2]
    edges = [(0, 1, 2, 1), (2, 1, 1, 2), (3, 1, 2, 3), (0, 1, 2, 4), (0, 2, 1, 4), (3, 1, 2, 5), (3, 2, 1, 5)]
    assert list(zip(levels.above, levels.below, levels.steps, levels.positive, strict=True)) == edges
    assert levels.most_lost.tolist() == [0, 1, 2]
    tables = [levels.contribution[at : at + n].tolist() for at, n in zip(levels.table, (1, 4, 4), strict=True)]
    assert tables == [[3.0], [4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 2.0, 1.0]]
    assert levels.counts_at.tolist() == [-1, 0, 3]
    assert levels.counts_size == 7
    # all won: ranks 4, 3 and 2; all lost: the order 1, 2, {0, 3}
    assert value(levels, np.ones(7, dtype=bool)) == 3 + 2 * 4 + 2 * 3 + 1 * 2
    assert value(levels, np.zeros(7, dtype=bool)) == 3 + 1 * 3 + 2 * 2 + 2 * 1
