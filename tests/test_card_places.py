"""Places of rows over all good cards: brute force over all points, limits, threads, and what is refused."""

import numpy as np
import pytest

from ltr.exact import rank_ranges
from tests.test_card_demands import asked
from tests.test_card_search import TRIALS, all_cards, instance, larger_problem, problem_of


@pytest.mark.parametrize("part", range(5))
def test_places_are_those_of_brute_force(part):
    for seed in range(part * TRIALS // 5, (part + 1) * TRIALS // 5):
        if seed % 2:
            problem, cards, values, met = asked(seed)
        else:
            arguments = instance(seed)
            problem, (cards, values) = problem_of(*arguments), all_cards(*arguments)
            met = np.ones(len(cards), dtype=bool)
        if not met.any():
            with pytest.raises(ValueError, match="problem must have a card: no card meets the rules and demands"):
                rank_ranges(problem)
            continue
        within, best = [0.0, 0.01, 0.05, 0.3][seed // 2 % 4], values[met].max()
        least, size = best - within * abs(best), max(1.0, abs(problem.trivial_bound))
        good = cards[met & (values >= least - 1e-12 * size)]
        totals = good @ problem.X.T
        top = 1 + (totals[:, None, :] > totals[:, :, None]).sum(axis=2)
        bottom = (totals[:, None, :] >= totals[:, :, None]).sum(axis=2)
        found = rank_ranges(problem, within, threads=1 + seed % 2)
        assert found.best.tolist() == top.min(axis=0).tolist(), seed
        assert found.worst.tolist() == bottom.max(axis=0).tolist(), seed
        assert found.least == pytest.approx(least, abs=1e-11 * size)
        assert 1 <= found.cards <= len(good)
        for i in range(problem.n):
            totals = problem.X @ np.rint(found.best_weights[i] * problem.points)
            assert 1 + np.count_nonzero(totals > totals[i]) == found.best[i], (seed, i)
            totals = problem.X @ np.rint(found.worst_weights[i] * problem.points)
            assert np.count_nonzero(totals >= totals[i]) == found.worst[i], (seed, i)
            for points in (found.best_weights[i], found.worst_weights[i]):
                assert problem.feasible(points)
                assert problem.evaluate(points) >= least - 1e-11 * size
        # of the cards with that place, one with the fewest questions
        for i, end, places in ((0, found.best_weights, top), (problem.n - 1, found.worst_weights, -bottom)):
            questions = np.count_nonzero(good[places[:, i] == places[:, i].min()], axis=1)
            assert np.count_nonzero(end[i]) == questions.min(), (seed, i)


def test_there_are_as_many_cards_as_good_cards():
    problem = larger_problem("dcg", n=80, d=10, k=3, C=0.01)
    found = rank_ranges(problem, 0.05)
    assert found.cards == len(problem.good_cards(found.least, most=100_000)) > 20


def test_a_time_limit_leaves_the_places_of_a_card_and_the_whole_list():
    problem = larger_problem("dcg", n=3000, d=100, k=5)
    found = rank_ranges(problem, 0.5, time_limit=0.2)
    assert found.cards is None
    assert set(found.best) == {1}
    assert set(found.worst) == {3000}
    card = found.best_weights[0]
    assert problem.feasible(card)
    totals = np.rint(problem.X @ card * problem.points)
    assert found.reached_best.tolist() == [1 + int((totals > total).sum()) for total in totals]
    assert found.reached_worst.tolist() == [int((totals >= total).sum()) for total in totals]
