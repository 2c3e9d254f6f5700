"""Whole-number points by enumeration of sets of columns, and cards with columns of numbers: brute force agrees."""

import copy
import itertools
import json
import random
import threading

import numpy as np
import pytest

import ltr
from ltr import verify
from ltr.exact import Limits, LinearConstraints, RerankProblem, Status, points, solve
from ltr.exact.cards import CardProblem
from ltr.exact.certificate import Certificate, certify
from ltr.exact.state import SolveState
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.native import PointSearch as _PointSearch
from tests.exact.stated_problem import stated_problem
from tests.tiers import examples

STATISTICS = ["auc", "dcg", "mrr", "dcg@3", "wta", "pauc@4", "hits@3", "precision@3", "recall@3"]


def grid(reach, d):
    return map(np.array, itertools.product(range(-reach, reach + 1), repeat=d))


def numbers(rng, n, d, most_decimals):
    """Yes/no columns and columns of decimals, which tie often."""
    X = rng.integers(0, 2, (n, d)).astype(float)
    for j in np.flatnonzero(rng.random(d) < 0.6):
        X[:, j] = rng.integers(-3, 5, n) / 10 ** int(rng.integers(0, most_decimals + 1))
    return X


# --- before the work begins --------------------------------------------------------------------------------------


def lucky():
    """A problem that is searched by sets of columns; the search proves nothing at once."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (30, 8)).astype(float)
    y = (X[:, :4] @ [2, -1, 1, 1.0] + 4 * rng.normal(size=30) > 8).astype(int)
    return RerankProblem(X, y, "auc", integer=3, max_nonzeros=2, margin=0.5)


def solved(problem):
    return solve(problem, WeightSpaceSearch(threads=1, local_search=0), Limits(time_limit=60))


class Watched:
    """The compiled search, which begins only after it was asked for its bound."""

    def __init__(self, **options):
        self._search, self.asked, self.first = _PointSearch(**options), threading.Event(), []

    def __getattr__(self, name):
        return getattr(self._search, name)

    def search(self, *arguments):
        assert self.asked.wait(60)
        return self._search.search(*arguments)

    @property
    def bound(self):
        self.first.append(self._search.bound)
        self.asked.set()
        return self.first[-1]


class Broken(Watched):
    """A search that fails before it has begun."""

    def search(self, *arguments):
        raise MemoryError


class Behind(Watched):
    """A search that completes between two looks at it: what it found shows only once its bound was read."""

    search = property(lambda self: self._search.search)
    best = property(lambda self: self._search.best if self.asked.is_set() else (-np.inf, (), ()))

    def undecided(self):
        return self._search.undecided() if self.asked.is_set() else []


class Doubtful(Watched):
    """A search that leaves a thousand weights of the first column to be decided, all of them at once."""

    def undecided(self):
        left, self.left = getattr(self, "left", 1000), 0
        return [(np.inf, (0,), (1,))] * left


def test_limits_count_while_weights_are_decided_one_by_one(monkeypatch):
    problem, offered = lucky(), []
    offer = SolveState.offer
    monkeypatch.setattr(points, "PointSearch", Doubtful)
    monkeypatch.setattr(SolveState, "offer", lambda state, w: offered.append(w) or offer(state, w))
    stopped = solve(
        problem, WeightSpaceSearch(threads=1, local_search=0), Limits(60), should_stop=lambda: len(offered) > 9
    )
    assert stopped.status is Status.INTERRUPTED
    assert len(offered) < 20
    assert stopped.bound == problem.trivial_bound  # the others may be better


def test_a_search_that_has_not_begun_proves_nothing(monkeypatch):
    problem, made = lucky(), []
    right = solved(problem)
    assert right.status is Status.OPTIMAL
    monkeypatch.setattr(points, "PointSearch", lambda **options: made.append(Watched(**options)) or made[-1])
    late = solved(problem)
    assert made[0].first[0] == np.inf
    assert (late.status, late.value, late.bound) == (right.status, right.value, right.bound)
    assert all(point.bound >= right.value for point in late.trace)
    # what is found between two looks counts before the bound
    monkeypatch.setattr(points, "PointSearch", Behind)
    found = solved(problem)
    assert (found.status, found.value, found.bound) == (right.status, right.value, right.bound)
    monkeypatch.setattr(points, "PointSearch", Broken)
    failed = solved(problem)
    assert (failed.status, failed.bound) == (Status.MEMORY_LIMIT, problem.trivial_bound)


# --- whole numbers of a RerankProblem ---------------------------------------------------------------------------


def ranked(seed, statistics):
    """Graded or binary labels, one list or two, decimals whose differences are the margin itself, side constraints."""
    rng = np.random.default_rng([7, seed])
    n, d = int(rng.integers(4, 12)), int(rng.integers(2, 5))
    y = rng.integers(0, 3 if seed % 2 else 2, n)
    y[:2] = 0, 1
    sides = [
        None,
        LinearConstraints(rng.integers(-1, 2, (1, d)), [0.0]),
        LinearConstraints(rng.integers(-1, 2, (2, d)), [1.0, 2.0]),
    ]
    return RerankProblem(
        numbers(rng, n, d, 1),
        y,
        str(rng.choice(statistics)),
        float(rng.choice([0.0, 0.02])),
        float(rng.choice([1e-4, 0.1, 0.2])),
        qid=np.arange(n) % 2 if seed % 3 == 0 else None,
        integer=int(rng.integers(1, 5)),
        max_nonzeros=int(rng.integers(1, 4)) if d > 3 else None,
        required=[int(rng.integers(d))] if seed % 4 == 0 else [],
        constraints=sides[int(rng.integers(3))],
    )


@pytest.mark.parametrize("seed", range(examples(8, slow=300)))
@pytest.mark.parametrize("statistics", [STATISTICS[1:], ["hits@3"], ["recall@3"]], ids=["all", "hits", "recall"])
def test_whole_numbers_agree_with_brute_force(seed, statistics):
    problem = ranked(seed, statistics)
    best = max((problem.evaluate(w) for w in grid(problem.integer, problem.d) if problem.feasible(w)), default=None)
    for threads in (1, 2):
        solution = solve(problem, WeightSpaceSearch(threads=threads, local_search=0))
        if best is None:
            assert solution.status is Status.INFEASIBLE
            return
        assert solution.status is Status.OPTIMAL, solution
        assert solution.value == best
        assert problem.feasible(solution.weights)
        assert "by sets of columns" in solution.message or solution.value == problem.trivial_bound


def long_list(n=300, seed=0):
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 2))
    yes_no = [hidden[:, j % 2] + rng.normal(size=n) > c for j, c in enumerate(np.linspace(-1, 1, 20))]
    y = (hidden.sum(axis=1) + rng.logistic(size=n) > 1).astype(int)
    return np.column_stack([*yes_no, hidden + 0.3 * rng.normal(size=(n, 2))]), y


def test_a_search_that_is_stopped_has_a_bound():
    X, y = long_list(800)
    problem = RerankProblem(X, y, "dcg", integer=9, max_nonzeros=3)
    stopped = solve(problem, WeightSpaceSearch(threads=1, local_search=0), Limits(node_limit=1))
    assert stopped.status in (Status.NODE_LIMIT, Status.OPTIMAL)
    near = solve(problem, WeightSpaceSearch(threads=2), Limits(gap=0.2))
    assert near.status in (Status.GAP_LIMIT, Status.OPTIMAL)
    assert near.gap <= 0.2
    assert stopped.bound >= near.value


# --- cards with columns of numbers ------------------------------------------------------------------------------


def mixed(seed):
    rng = np.random.default_rng([8, seed])
    n, d = int(rng.integers(4, 12)), int(rng.integers(1, 5))
    ties = "resolved" if rng.random() < 0.4 else "average"
    y = rng.integers(0, 2 if ties == "resolved" else 3, n)
    y[:2] = 1, 0
    return CardProblem(
        numbers(rng, n, d, 2),
        y,
        str(rng.choice(STATISTICS)) if n >= 4 else "auc",
        float(rng.choice([0.0, 0.01])),
        points=int(rng.integers(1, 5)),
        max_nonzeros=int(rng.integers(1, min(d, 3) + 1)),
        ties=ties,
        signs=rng.integers(-1, 2, d) if rng.random() < 0.4 else None,
        groups=rng.integers(-1, 2, d) if rng.random() < 0.4 else None,
        required=[int(rng.integers(d))] if rng.random() < 0.3 else [],
    )


@pytest.mark.parametrize("seed", range(examples(15, slow=300)))
def test_cards_of_numbers_agree_with_brute_force_and_are_proven(seed):
    problem = mixed(seed)
    cards = [w for w in grid(problem.points, problem.d) if problem.feasible(w / problem.points)]
    if not cards:
        assert solve(problem).status is Status.INFEASIBLE
        return
    values = np.array([problem.evaluate(w / problem.points) for w in cards])
    solution = solve(problem)
    assert solution.status is Status.OPTIMAL
    assert solution.value == pytest.approx(values.max(), abs=1e-12)
    certificate = certify(problem, solution)
    content = json.loads(json.dumps(certificate.content))
    assert verify.check(verify.parse(json.dumps(content)))[0] == certificate.claim == "optimal"
    for card, value in list(zip(cards, values, strict=True))[::5]:
        assert float(verify.Cards(content["problem"]).value(card.tolist())) == pytest.approx(value, abs=1e-11)
    assert stated_problem(content).content() == problem.content()
    least = np.unique(values.round(9))[-4:][0] - 1e-8
    good = problem.good_cards(least, 100_000)
    assert good[0][0] == pytest.approx(values.max(), abs=1e-12)
    # multiples count once, and (0, 0) among them
    directions = {tuple((w // max(1, np.gcd.reduce(w))).tolist()) for w in np.array(cards)[values >= least]}
    if problem.numeric.all():
        assert {tuple(card.tolist()) for _, card in good} == directions
    lower = values[values < values.max() - 1e-6]
    if len(lower):  # the second best value is no bound
        content["value"] = content["claimed_bound"] = content["proof"]["bound"] = float(lower.max())
        content["weights"] = [float(v) for v in cards[int(np.flatnonzero(values == lower.max())[0])]]
        with pytest.raises(verify.CertificateError, match=r"^(proof\.bound|value): "):
            verify.check(content)


def test_the_same_card_is_found_with_any_number_of_threads():
    X, y = long_list(120)
    problem = CardProblem(np.round(X, 1), y, points=3, max_nonzeros=3)
    found = [solve(problem, ltr.exact.cards.CardSearch(threads=threads)) for threads in (1, 2, 3)]
    assert len({tuple(solution.weights) for solution in found}) == 1


def test_totals_are_those_of_decimals():
    """0.1 + 0.2 exceeds 0.3 in float64."""
    problem = CardProblem([[0.1, 0.2], [0.3, 0.0]], [1, 0], points=1, max_nonzeros=2)
    assert problem.statistic_value([1.0, 1.0]) == 0.5
    assert problem.unit == 10


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[0.0], [1 / 3]], r"numbers of at most 12 decimals, round them: got .*0\.333.* at row 1, column 0"),
        ([[1e-300], [1e300]], r"numbers of at most 12 decimals, round them: got 1e-300 at row 0, column 0"),
        ([[0.1], [1e15]], r"X must hold numbers of fewer digits, so that totals of 10 times .* row 1, column 0"),
    ],
)
def test_numbers_whose_totals_would_not_be_exact_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        CardProblem(X, [0, 1], max_nonzeros=1)


def test_a_changed_file_is_rejected_or_true():
    """Certificates changed at random, with a digest to match, are refused if they claim more than can be reached."""
    rng, accepted = random.Random(0), 0
    for trial in range(examples(25, slow=500)):
        problem = next(filter(lambda p: p.d > 1, map(mixed, itertools.count(100 + trial))))
        solution = solve(problem)
        if solution.status is Status.INFEASIBLE:
            continue
        content = copy.deepcopy(certify(problem, solution).content)
        inside = content["problem"]
        place = rng.choice(["points", "max_nonzeros", "C", "ties", "least", "groups", "X", "gains", "unit", "required"])
        if place == "X":
            row = rng.randrange(len(inside["X"]))
            inside["X"][row] = inside["X"][row - 1]
        elif place == "groups":
            inside[place][rng.randrange(problem.d)] = rng.choice([-1, 0, 1])
        elif place == "least":
            inside[rng.choice(["least", "largest"])][rng.randrange(problem.d)] *= rng.choice([0, 1])
        elif place == "gains":
            inside["gains"][rng.randrange(problem.n)] = rng.choice([0.0, 1.0])
        else:
            changes = {"points": 1, "max_nonzeros": 1, "C": -0.005, "unit": 9}
            others = {"ties": "average", "required": []}
            inside[place] = others[place] if place in others else inside[place] + changes[place]
        if rng.random() < 0.5:
            for name in ("value", "claimed_bound"):
                content[name] += rng.choice([0.0, 1e-6, -1e-6])
        inside["sha256"] = verify.data_digest(inside)
        try:
            verify.check(verify.parse(json.dumps(content)))
        except verify.CertificateError:
            continue
        accepted += 1
        changed = stated_problem(content)
        best = max(
            changed.evaluate(w / changed.points)
            for w in grid(changed.points, changed.d)
            if changed.feasible(w / changed.points)
        )
        assert best <= content["proof"]["bound"] + 1e-12
        assert changed.evaluate(Certificate(content).weights) == pytest.approx(content["value"], abs=1e-11)
    assert accepted > 2
