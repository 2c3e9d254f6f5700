"""The search for the best card, its proof and all good cards: brute force over all points; limits, threads, bounds."""

import itertools
import json
import math
import signal
import threading
import time

import numpy as np
import pytest

from ltr import verify
from ltr.exact import Demand, Limits, certify, solve
from ltr.exact.card_rules import CardRule
from ltr.exact.cards import CardProblem, CardSearch
from ltr.exact.solution import Status
from tests.exact.stated_problem import stated_problem
from tests.reference import slow_weights, top_of
from tests.tiers import examples

STATISTICS = ["auc", "wrs", "dcg", "dcg(base=e)@3", "mrr", "mrr@2", "wta", "pauc@3", "power(p=0.5)", "power(p=3)@4"]
STATISTICS += ["hits@3", "precision@2", "recall@4", "own"]
TRIALS = examples(250, slow=500)


def instance(seed):
    """A small random problem as arguments of `CardProblem`, with the points that a card may have."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 16)), int(rng.integers(1, 7))
    X = (rng.random((n, d)) < rng.uniform(0.2, 0.8)).astype(float)
    if d > 1 and rng.random() < 0.3:
        X[:, 0] = rng.choice([0.0, 1.0]) if rng.random() < 0.5 else X[:, 1]  # constant, or a duplicate
    if d > 2 and rng.random() < 0.3:
        X[:, 2] *= X[:, 1]  # some patterns are empty
    graded = n > 3 and rng.random() < 0.4
    y = rng.integers(0, 4, n) if graded else (rng.random(n) < 0.4).astype(int)
    if graded and rng.random() < 0.5:
        y = np.where(y > 1, 3, 1)  # two gains above 0
    if len(set(y)) < 2:
        y[0], y[-1] = 0, 1
    graded = set(y) != {0, 1}
    statistic = STATISTICS[seed % len(STATISTICS)]
    without = "auc", *(() if 0 in y else ("hits@3", "precision@2", "recall@4"))  # need 0 and 1, and a label 0
    statistic = "wrs" if graded and statistic in without else statistic
    ties = "average" if len(set(y)) > 2 or rng.random() < 0.5 else "resolved"
    k = int(rng.integers(1, 7))
    points = int(rng.integers(1, 1 + {1: 5, 2: 5, 3: 3, 4: 2, 5: 1, 6: 1}[d]))
    groups = rng.integers(-1, 2, d) if rng.random() < 0.4 else None
    options = {
        "C": float(rng.choice([0.0, 0.0, 0.01, 0.1, 1.0])),
        "points": points,
        "max_nonzeros": k,
        "ties": ties,
        "signs": rng.integers(-1, 2, d) if rng.random() < 0.4 else None,
        "groups": groups,
        "required": [int(rng.integers(0, d))] if rng.random() < 0.2 else [],
        "gain": str(rng.choice(["exp2", "linear"])),
    }
    return X, y, statistic, options


def named(statistic, n):
    """The name by which the library knows a statistic; for one of a user's own, with equal and zero weights."""
    own = np.maximum(0, 4 - np.arange(n, 0, -1) // 2) / 2
    return f"weights({','.join(map(str, own))})" if statistic == "own" else statistic


def order_of(card):
    """The columns of a card and the order of the patterns of their answers: equal for cards that order all alike."""
    used = np.flatnonzero(card)
    patterns = np.array(list(itertools.product([0, 1], repeat=len(used)))).reshape(2 ** len(used), len(used))
    return tuple(used), tuple(np.unique(patterns @ np.asarray(card)[used], return_inverse=True)[1])


def all_cards(X, y, statistic, options):
    """All allowed points, (cards, d), and their values: by comparing every two rows, without blocks or sorting."""
    d = X.shape[1]
    points, signs, groups = options["points"], options["signs"], options["groups"]
    cards = np.array(list(itertools.product(range(-points, points + 1), repeat=d)))
    used = cards != 0
    allowed = used.sum(axis=1) <= options["max_nonzeros"]
    allowed &= np.all(cards * (0 if signs is None else signs) >= 0, axis=1)
    for group in () if groups is None else set(groups) - {-1}:
        allowed &= used[:, groups == group].sum(axis=1) <= 1
    allowed &= used[:, options["required"]].all(axis=1)
    cards = cards[allowed]
    values = statistics_of(cards, X, y, statistic, options["gain"], options["ties"])
    return cards, values - options["C"] * (cards != 0).sum(axis=1)


def statistics_of(cards, X, y, statistic, gain, ties):
    """The statistic of each of the cards, (cards,)."""
    n = len(y)
    gains = 2.0**y - 1 if gain == "exp2" else y.astype(float)
    if statistic in ("hits@3", "precision@2", "recall@4"):
        gains = (y > 0) / (np.count_nonzero(y) if statistic == "recall@4" else 1.0)
    a = np.array(slow_weights(named(statistic, n), n))[::-1] / top_of(statistic)  # from the top
    totals = cards @ X.T
    above = (totals[:, None, :] > totals[:, :, None]).sum(axis=2)  # rows above each row
    tied = totals[:, None, :] == totals[:, :, None]
    places = np.arange(n)
    if ties == "average":  # the mean of the weights of the places of the tied rows
        inside = (places >= above[..., None]) & (places < (above + tied.sum(axis=2))[..., None])
        values = (gains * (inside * a).sum(axis=2) / tied.sum(axis=2)).sum(axis=1)
    else:  # rows of the upper level come last, in any order
        first = above + (tied & (gains[:, None] > gains[None, :])).sum(axis=2)
        equal = (tied & (gains[:, None] == gains[None, :])).sum(axis=2)
        inside = (places >= first[..., None]) & (places < (first + equal)[..., None])
        values = (gains * (inside * a).sum(axis=2) / equal).sum(axis=1)
    if statistic == "auc":
        m = y.sum()
        values = (values - m * (m + 1) / 2) / (m * (n - m))
    return values


def rules_for(rng, d):
    """Random rules, and a group of columns of one direction."""
    rules = []
    for _ in range(int(rng.integers(0, 4))):
        columns = rng.permutation(d)[: int(rng.integers(1, d + 1))].tolist()
        when = rng.permutation(d)[: int(rng.integers(1, d + 1))].tolist() if rng.random() < 0.5 else []
        least = int(rng.integers(0, min(len(columns), 2) + 1))
        rules.append(CardRule(columns, least, int(rng.integers(least, 4)) if rng.random() < 0.6 else None, when))
    return rules, rng.integers(-1, 2, d) if rng.random() < 0.4 else None


def follows(card, rules, directions):
    """Whether points follow the rules, from their definition."""
    used = {j for j, points in enumerate(card) if points}
    for rule in rules:
        if rule.when and not used & set(rule.when):
            continue
        if not rule.at_least <= len(used & set(rule.columns)) <= rule.at_most:
            return False
    for group in () if directions is None else set(directions) - {-1}:
        if len({card[j] > 0 for j in used if directions[j] == group}) > 1:
            return False
    return True


ASKED = ["auc", "dcg", "hits@3", "precision@2", "recall@4", "mrr", "power(p=0.5)", "own"]


def asked(seed):
    """A small problem, most of them with rules or demands, all its cards, their values, and which meet these.

    Least values are those of some card, so that they are met with equality, or between two of them, or out of reach.
    """
    X, y, statistic, options = arguments = instance(seed)
    rng, (n, d) = np.random.default_rng([3, seed]), X.shape
    cards, values = all_cards(*arguments)
    met, demands = np.ones(len(cards), dtype=bool), []
    for _ in range(int(rng.integers(1, 3)) if seed % 3 else 0):
        labels = (rng.random(n) < rng.uniform(0.2, 0.8)).astype(int)
        labels[:2] = rng.permutation(2)
        name, own = str(rng.choice(ASKED)), None if rng.random() < 0.2 else labels
        if own is None:
            labels, name = y, statistic
        gain = options["gain"] if own is None else "linear"
        found = statistics_of(cards, X, labels, name, gain, options["ties"])
        least = float(rng.choice(found) if rng.random() < 0.6 else np.quantile(found, rng.uniform(0.3, 1)))
        if rng.random() < 0.15:
            least = found.max() * (1 + 1e-6)
        perfect = CardProblem(X, labels, named(name, n), gain=gain).trivial_bound
        least = min(least, perfect)
        met &= found >= least - 1e-9 * abs(least) - 1e-13 * perfect
        demands.append(Demand(named(name, n), least, own))
    if seed % 2:
        rules, directions = rules_for(rng, d)
        least = int(rng.integers(1, options["points"] + 1)) if seed % 3 == 0 else 1
        met &= np.array([follows(card, rules, directions) for card in cards.tolist()], dtype=bool)
        met &= np.all((cards == 0) | (abs(cards) >= least), axis=1)
        options |= {"rules": rules, "directions": directions, "least_points": least}
    return CardProblem(X, y, named(statistic, n), demands=demands, **options), cards, values, met


@pytest.mark.parametrize("part", range(10))
def test_the_best_card_is_that_of_brute_force_and_is_proven(part):
    for seed in range(part * TRIALS // 10, (part + 1) * TRIALS // 10):
        problem, cards, values, met = asked(seed)
        solution = solve(problem, CardSearch(threads=1 + seed % 2))
        content = verify.parse(json.dumps(certify(problem, solution).content))
        assert stated_problem(content).content() == problem.content()
        if not met.any():
            assert (solution.status, solution.message) == (Status.INFEASIBLE, "no card meets the rules and demands")
            assert verify.check(content)[0] == "infeasible"
            continue
        best, size = values[met].max(), max(1.0, abs(problem.trivial_bound))
        assert solution.status is Status.OPTIMAL, (seed, solution)
        assert abs(solution.value - best) <= 1e-11 * size, (seed, solution)
        assert solution.value <= solution.bound <= best + 1e-11 * size, (seed, solution)
        assert problem.feasible(solution.weights)
        assert solution.value == problem.evaluate(solution.weights)
        # among the best: the fewest questions, then the fewest points
        points = problem.points_of(solution.weights)
        keys = [(np.count_nonzero(card), np.abs(card).sum()) for card in cards[met & (values >= best - 1e-13 * size)]]
        assert (np.count_nonzero(points), np.abs(points).sum()) == min(keys), (seed, points)
        assert verify.check(content)[0] == "optimal"
        lower = values[met & (values < best - 1e-6)]
        if len(lower):  # the second best value is no bound
            content["value"] = content["claimed_bound"] = content["proof"]["bound"] = float(lower.max())
            content["weights"] = [float(v) for v in cards[met & (values == lower.max())][0]]
            with pytest.raises(verify.CertificateError, match=r"proof.bound: a card of the columns .* has the value"):
                verify.check(content)


def test_problems_have_all_statistics_and_rules_that_all_some_and_no_cards_meet():
    options = [(statistic, options["ties"]) for _, _, statistic, options in map(instance, range(TRIALS))]
    assert set(options) == {(statistic, ties) for statistic in STATISTICS for ties in ("average", "resolved")}
    shares = [asked(seed)[3].mean() for seed in range(60)]
    assert sum(share == 0 for share in shares) > 3
    assert sum(0 < share < 0.9 for share in shares) > 30


def test_values_and_feasible_points_are_those_of_brute_force():
    for seed in range(0, TRIALS, 5):
        problem, cards, values, met = asked(seed)
        exact = verify.Cards(certify(problem, solve(problem)).content["problem"])
        for card, value in list(zip(cards, values, strict=True))[:: max(1, len(cards) // 20)]:
            assert problem.evaluate(card / problem.points) == pytest.approx(value, rel=1e-11, abs=1e-11)
            assert float(exact.value(card.tolist())) == pytest.approx(value, rel=1e-11, abs=1e-11)
        every = np.array(list(itertools.product(range(-problem.points, problem.points + 1), repeat=problem.d)))
        feasible = [problem.feasible(card / problem.points) for card in every]
        assert every[feasible].tolist() == cards[met].tolist()


def test_good_cards_are_all_that_are_good():
    """Every good card has one of the same columns in the list that orders all patterns alike, and is no smaller."""
    found = 0
    for seed in range(0, TRIALS, 5):
        problem, cards, values, met = asked(seed)
        if not met.any():
            assert problem.good_cards(-1e9) == []
            continue
        threshold, size = float(np.quantile(values[met], 0.7)), 1e-10 * max(1.0, abs(problem.trivial_bound))
        good = met & (values >= threshold - size)
        expected = {order_of(card): value for card, value in zip(cards[good], values[good], strict=True)}
        listed = problem.good_cards(threshold, most=100_000, threads=1 + seed % 2)
        assert {order_of(card) for _, card in listed} == set(expected)
        assert len(listed) == len(expected)
        assert all(value == pytest.approx(expected[order_of(card)], rel=1e-10, abs=1e-10) for value, card in listed)
        assert all(a[0] >= b[0] - size for a, b in itertools.pairwise(listed))
        found += len(listed)
        if len(listed) > 1:
            with pytest.raises(ValueError, match="most must be larger: more than 1 cards"):
                problem.good_cards(threshold, most=1)
    assert found > 400


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ties", ["average", "resolved"])
def test_no_good_card_is_left_out_with_a_part_of_its_columns(seed, ties):
    """Six columns single out positives of their own, so that a set gains all that the bounds of its parts allow."""
    rng, d, k = np.random.default_rng(seed), 12, 4
    block = np.repeat(np.arange(7), [*rng.integers(2, 6, 6), 20])
    X = (rng.random((len(block), d)) < 0.5).astype(float)
    X[:, :6] = (block[:, None] == np.arange(6)) ^ (np.arange(6) % 2 == 1)
    y = (block < 6).astype(int)
    sets = [columns for m in range(1, k + 1) for columns in itertools.combinations(range(d), m)]
    signed = [(columns, signs) for columns in sets for signs in itertools.product([-1, 1], repeat=len(columns))]
    cards = np.array([np.bincount(columns, signs, d) for columns, signs in signed])
    totals = cards @ X.T
    difference = totals[:, y == 1][:, :, None] - totals[:, y == 0][:, None]
    values = ((difference > 0) + (0.5 if ties == "average" else 0.0) * (difference == 0)).mean(axis=(1, 2))
    least = np.unique(values.round(12))[-4:-2].mean()
    problem = CardProblem(X, y, points=1, max_nonzeros=k, ties=ties)
    search = problem._search()
    assert search.search(k, 1, np.zeros(1, np.uint8), least - problem.shift, 10_000)
    found = [np.bincount(columns, points, d) for _, columns, points in search.cards]
    assert {order_of(card) for card in found} == {order_of(card) for card in cards[values > least]}
    assert search.supports < len(sets) / 3


def larger_problem(statistic="auc", n=400, d=40, k=5, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.5).astype(float)
    y = (X[:, :6] @ [1, 1, -1, 0.5, 0.5, 0.2] + rng.logistic(size=n) > 0.5).astype(int)
    return CardProblem(X, y, statistic, max_nonzeros=k, **options)


@pytest.mark.parametrize("statistic", ["auc", "dcg@20"])
@pytest.mark.parametrize("C", [0.0, 0.01])
def test_the_number_of_threads_does_not_change_the_answer(statistic, C):
    problem = larger_problem(statistic, n=120, d=14, k=4, C=C)
    answers = [solve(problem, CardSearch(threads=threads)) for threads in (1, 2, 4, 4)]
    assert {answer.status for answer in answers} == {Status.OPTIMAL}
    assert len({(answer.value, answer.bound, answer.weights.tobytes()) for answer in answers}) == 1


def test_sets_of_columns_whose_bound_is_too_low_are_not_searched():
    solution = solve(larger_problem("dcg@20", n=120, d=20), CardSearch(threads=2))
    assert solution.status is Status.OPTIMAL
    assert solution.nodes < sum(math.comb(20, m) for m in range(1, 6)) / 2


@pytest.mark.parametrize(
    ("how", "status"),
    [
        ("time_limit", Status.TIME_LIMIT),
        ("node_limit", Status.NODE_LIMIT),
        ("should_stop", Status.INTERRUPTED),
        ("signal", Status.INTERRUPTED),
    ],
)
def test_a_stop_keeps_the_best_card_and_a_bound_that_holds(how, status):
    problem = larger_problem("dcg", n=3000, d=100, k=5)
    start = np.zeros(problem.d)
    start[:2] = 1.0
    began, end = time.monotonic(), np.inf if how == "node_limit" else 0.3
    limits = {"time_limit": Limits(time_limit=0.3), "node_limit": Limits(node_limit=1)}.get(how, Limits())
    should_stop = (lambda: time.monotonic() > began + end) if how == "should_stop" else None
    if how == "signal":
        threading.Timer(end, signal.raise_signal, [signal.SIGINT]).start()
    solution = solve(problem, CardSearch(threads=2), limits, warm_starts=[start], should_stop=should_stop)
    assert solution.status is status
    assert time.monotonic() - began - end < 0.5  # some 0.02 on an idle machine
    assert problem.feasible(solution.weights)
    assert solution.value == problem.evaluate(solution.weights) >= problem.evaluate(start)
    best = solve(larger_problem("dcg", n=3000, d=100, k=2), CardSearch(threads=2)).value
    assert max(best, solution.value) <= solution.bound <= problem.trivial_bound
