"""Cards under demands: brute force over all points, good cards, certificates, and demands that no card meets."""

import copy
import itertools
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from ltr import verify
from ltr.cards import CardRanker
from ltr.exact import Demand, certify, solve
from ltr.exact.cards import CardProblem, CardSearch
from ltr.exact.solution import Status
from tests.exact.stated_problem import stated_problem
from tests.exact.test_points import grid, mixed
from tests.tiers import examples


@pytest.mark.parametrize("statistic", ["auc", "dcg"])
@pytest.mark.parametrize("X", [np.eye(4), 0.1 * np.eye(4)], ids=["answers", "numbers"])
def test_a_least_value_that_rounding_could_decide_is_decided_exactly(X, statistic):
    """Beside a gain of 1e6 the compiled search cannot tell 1 from 1 - 1e-8, the gain of the row that is best on top."""
    y, options = [0, 0, 1, 0], {"points": 2}
    demand = Demand("wta", 1.0, [1e6, 1.0, 1.0 - 1e-8, 0.0])
    problem = CardProblem(X, y, statistic, demands=[demand], **options)
    every = np.array(list(itertools.product(range(-2, 3), repeat=4))) / 2
    values = [problem.evaluate(w) for w in every if problem.feasible(w)]
    solution = solve(problem)
    assert solution.value == pytest.approx(max(values), abs=1e-12)
    assert solution.value < solve(CardProblem(X, y, statistic, **options)).value - 0.1
    good = problem.good_cards(0.0)
    assert good
    assert all(problem.feasible(card / 2) for _, card in good)
    assert problem.demanded[0].problem.exact_statistic(np.eye(4)[1]) == Fraction(1)


# --- columns of numbers -----------------------------------------------------------------------------------------


def asked_of_numbers(seed):
    """A problem with columns of numbers, and the same one with a demand that some card meets with equality."""
    problem = mixed(seed)
    rng = np.random.default_rng([9, seed])
    labels = rng.permutation(np.arange(problem.n) % 2 if problem.ties == "resolved" else np.arange(problem.n) % 3)
    statistic = str(rng.choice(["wrs", "dcg", "hits@3", "mrr"]))
    options = {name: getattr(problem, name) for name in ("C", "ties", "gain", "conditions")}
    other = CardProblem(problem.X, labels, statistic, **options | {"gain": np.copy})
    cards = [w / problem.points for w in grid(problem.points, problem.d) if problem.feasible(w / problem.points)]
    if not cards:
        return problem, [], np.zeros(0), np.zeros(0, dtype=bool)
    found = np.array([other.statistic_value(w) for w in cards])
    least = float(np.quantile(found, rng.uniform(0.3, 1.0), method="nearest"))
    least = least if rng.random() < 0.8 else min(found.max() * (1 + 1e-6), other.trivial_bound)
    demand = Demand(statistic, least, labels)
    asked_for = CardProblem(problem.X, problem.y, problem.statistic, demands=[demand], **options)
    return asked_for, cards, np.array([problem.evaluate(w) for w in cards]), found >= least * (1 - 1e-9) - 1e-13


@pytest.mark.parametrize("part", range(5))
def test_cards_of_numbers_under_a_demand_agree_with_brute_force_and_are_proven(part):
    number = examples(60, slow=600)
    for seed in range(part * number // 5, (part + 1) * number // 5):
        problem, cards, values, met = asked_of_numbers(seed)
        if not len(cards):
            continue
        solution = solve(problem, CardSearch(threads=1 + seed % 2))
        assert [problem.feasible(w) for w in cards[::7]] == met[::7].tolist(), seed
        content = certify(problem, solution).content
        assert checked(content) == content["claim"] == ("optimal" if met.any() else "infeasible"), seed
        assert stated_problem(content).content() == problem.content()
        if not met.any():
            assert solution.status is Status.INFEASIBLE, (seed, solution)
            assert problem.good_cards(-1e9) == []
            continue
        assert solution.status is Status.OPTIMAL, (seed, solution)
        assert solution.value == pytest.approx(values[met].max(), abs=1e-11), seed
        assert problem.feasible(solution.weights)
        points = np.rint(np.array(cards) * problem.points).astype(int)
        good = problem.good_cards(float(np.quantile(values[met], 0.6)), most=100_000)
        assert all(problem.feasible(card / problem.points) for _, card in good)
        if problem.numeric.all():
            wanted = points[met & (values >= np.quantile(values[met], 0.6) - 1e-12)]
            directions = {tuple((w // max(1, np.gcd.reduce(w))).tolist()) for w in wanted}
            assert {tuple(card.tolist()) for _, card in good} == directions, seed
        lower = values[met & (values < values[met].max() - 1e-6)]
        if len(lower):  # the value of the second best card that meets the demands is no bound
            content["weights"] = [float(v) for v in points[met & (values == lower.max())][0]]
            content["value"] = content["claimed_bound"] = content["proof"]["bound"] = float(lower.max())
            with pytest.raises(verify.CertificateError, match=r"^proof.bound: (a card|points) of the columns"):
                checked(content)


# --- certificates -----------------------------------------------------------------------------------------------


def checked(content):
    """The claim of a certificate, read from its text and with the digest of its data."""
    content = copy.deepcopy(content)
    content["problem"]["sha256"] = verify.data_digest(content["problem"])
    return verify.check(verify.parse(json.dumps(content)))[0]


def example(least=0.7, **options):
    rng = np.random.default_rng(0)
    X = (rng.random((40, 6)) < 0.5).astype(float)
    y = (X @ [2, 1, 0, 0, 1, -1] + rng.logistic(size=40) > 1).astype(int)
    demands = [Demand("precision@10", least, X[:, 2].astype(int)), Demand("dcg", 8.0, 1 + np.arange(40) % 3)]
    return CardProblem(X, y, max_nonzeros=3, demands=demands, **options)


def changed(demand, **fields):
    return lambda demands: [one | fields if at == demand else one for at, one in enumerate(demands)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed(0, at_least=0.9), "weights: do not meet demand 0: "),
        (changed(0, at_least=0.0), "proof.bound: a card of the columns"),
        (changed(0, gains=[1.0, *[0.0] * 39]), "weights: do not meet demand 0: "),
        (changed(1, gains=[-1.0] * 40), "demands.1..gains.0.: must be >= 0"),
        (changed(0, statistic="precision@20"), r"problem.demands.0..a.20.: must be 1.0"),
        (changed(1, ties_lost=True), "demands.1..gains: must have two values where ties are lost"),
        (lambda demands: demands[1:], "proof.bound: a card of the columns"),
    ],
)
def test_changed_demands_are_found(change, message):
    problem = example()
    content = certify(problem, solve(problem)).content
    assert checked(content) == "optimal"
    before = copy.deepcopy(content["problem"]["demands"])
    content["problem"]["demands"] = change(before)
    with pytest.raises(verify.CertificateError, match=message):
        checked(content)
    content["problem"]["demands"] = change(before)
    with pytest.raises(verify.CertificateError):  # neither with the digest of the demands as they were
        verify.check(verify.parse(json.dumps(content)))


def test_a_true_positive_rate_is_demanded_at_some_threshold():
    seen = {"met": 0, "costly": 0, "refused": 0}
    for seed in range(examples(30, 500)):
        rng = np.random.default_rng([9, seed])
        n, d = int(rng.integers(12, 40)), int(rng.integers(2, 4))
        X = (rng.random((n, d)) < 0.5).astype(float)
        y = (rng.random(n) < 0.2 + 0.4 * X[:, 0]).astype(int)
        if y.min() == y.max():
            continue
        fpr, tpr = float(rng.choice([0.1, 0.2, 0.3, 0.5])), float(rng.choice([0.3, 0.5, 0.7, 0.8]))

        def meets(card, X=X, y=y, fpr=fpr, tpr=tpr):
            totals = X @ card
            above = [totals >= threshold for threshold in np.unique(totals)]
            return any(at[y == 1].mean() >= tpr - 1e-12 and at[y == 0].mean() <= fpr + 1e-12 for at in above)

        cards = [np.array(card) for card in itertools.product(range(-2, 3), repeat=d)]
        values = [roc_auc_score(y, X @ card) for card in cards]
        best = max((value for card, value in zip(cards, values, strict=True) if meets(card)), default=None)
        ranker = CardRanker(points=2, max_questions=d, within=0, demands=[f"tpr(fpr={fpr}) >= {tpr}"])
        if best is None:
            with pytest.raises(ValueError, match="no card"):
                ranker.fit(pd.DataFrame(X), y)
            seen["refused"] += 1
            continue
        ranker.fit(pd.DataFrame(X), y)
        assert ranker.solution_.value == pytest.approx(best, abs=1e-9)
        assert meets(ranker._points)
        certificate = ranker.certificate()
        assert verify.check(verify.parse(json.dumps(certificate.content)))[0] == "optimal"
        seen["met"] += 1
        seen["costly"] += best < max(values) - 1e-9
        if certificate.content["problem"].get("demands") and best < max(values) - 1e-9:
            loose = copy.deepcopy(certificate.content)
            loose["problem"]["demands"][0]["ties_lost"] = False
            with pytest.raises(verify.CertificateError):
                verify.check(verify.parse(json.dumps(loose)))
    assert min(seen.values()) > 1


def test_demands_have_ties_of_their_own_on_cards():
    X, y = [[1.0], [1.0], [0.0], [0.0]], [1, 0, 1, 0]
    own = [Demand("hits@2", 1, ties=ties) for ties in (None, "resolved")]
    first, second = (CardProblem(X, y, points=1, max_nonzeros=1, demands=[demand]) for demand in own)
    assert [problem.demanded[0].value([1.0]) for problem in (first, second)] == [1.0, 1.0]
    assert [problem.demanded[0].value([0.0]) for problem in (first, second)] == [1.0, 0.0]
    assert (first.feasible([0.0]), second.feasible([0.0])) == (True, False)
    with pytest.raises(ValueError, match="ties must be 'resolved' or None, got 'average'"):
        Demand("hits@2", 1, ties="average")
    with pytest.raises(ValueError, match="demands must have the ties of the card where X has other numbers"):
        CardProblem([[0.5], [1.0], [0.0], [0.0]], y, points=1, max_nonzeros=1, demands=own[1:])
    assert "with ties resolved" in verify.check(certify(second, solve(second)).content)[1]
