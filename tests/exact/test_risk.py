"""Risk scores: the best points and their loss are those of brute force over all cards and intercepts."""

import copy
import decimal
import functools
import itertools
import json
import math
import os
import signal
import threading
from fractions import Fraction

import numpy as np
import pytest

from ltr import verify
from ltr.exact import Limits, certify, solve
from ltr.exact.card_rules import CardRule
from ltr.exact.risk import RiskProblem
from ltr.exact.scip import LatticeCuts
from ltr.exact.solution import Status
from tests.exact.stated_problem import stated_problem
from tests.exact.test_card_search import follows as follows_rules
from tests.exact.test_card_search import rules_for
from tests.tiers import examples


def instance(seed):
    """A small problem with random options."""
    rng = np.random.default_rng([17, seed])
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 5))
    X = (rng.random((n, d)) < rng.uniform(0.2, 0.8)).astype(float)
    if rng.random() < 0.4:
        X[:, rng.integers(d)] = rng.integers(-3, 11, n)
    if rng.random() < 0.2:
        X[:, rng.integers(d)] = rng.normal(size=n).round(2)
    signal = X @ rng.normal(size=d) * rng.choice([0.0, 1.0, 3.0])
    y = (rng.random(n) < 1 / (1 + np.exp(-(signal - signal.mean())))).astype(int)
    y[:2] = 0, 1
    options = {"C": float(rng.choice([0, 0.001, 0.05, 0.5])), "points": int(rng.integers(1, 4))}
    options["max_nonzeros"] = int(rng.integers(1, d + 2))
    if rng.random() < 0.3:
        options["point_limits"] = np.column_stack([-rng.integers(0, 4, d), rng.integers(0, 4, d)])
        if rng.random() < 0.3:
            options["point_limits"][0] = [(1, 3), (-3, -2)][rng.integers(2)]
    if rng.random() < 0.2:
        options["free"] = rng.permutation(d)[: rng.integers(1, d + 1)].tolist()
    if rng.random() < 0.2:
        options["least_points"] = 2
    if rng.random() < 0.3:
        low = int(rng.integers(-4, 3))
        options["intercept_limits"] = (low, low + int(rng.integers(0, 4)))
    if rng.random() < 0.3:
        options["signs"] = rng.integers(-1, 2, d)
    if rng.random() < 0.3:
        options["groups"] = rng.integers(-1, 2, d)
    forced = "point_limits" in options and bool(np.prod(options["point_limits"][0]) > 0)
    if rng.random() < 0.2 and not forced:
        options["required"] = [int(rng.integers(d))]
    if rng.random() < 0.4:
        options["rules"], options["directions"] = rules_for(rng, d)
    elif d > 2:
        options["rules"] = [CardRule([0, 1], at_most=1, when=[2])]
    if rng.random() < 0.3:
        options["weight"] = rng.uniform(0.1, 3, n)
    return X, y, options


def follows(card, options):
    """Whether a card meets all conditions, from their definitions."""
    used = {j for j, points in enumerate(card) if points}
    limits, free = options.get("point_limits"), set(options.get("free", ()))
    for j in range(len(card)):
        low, high = (-options["points"], options["points"]) if limits is None else limits[j]
        if not low <= card[j] <= high or 0 < abs(card[j]) < options.get("least_points", 1):
            return False
        if "signs" in options and card[j] * options["signs"][j] < 0:
            return False
    groups = [options["groups"][j] for j in used if options["groups"][j] >= 0] if "groups" in options else []
    if len(used - free) > options["max_nonzeros"] or len(set(groups)) < len(groups):
        return False
    if not set(options.get("required", ())) <= used:
        return False
    return follows_rules(card, options.get("rules", ()), options.get("directions"))


def best_of_all(X, y, options):
    """The largest value over all cards and intercepts, -inf where no card meets the conditions."""
    n, d = X.shape
    weight = options.get("weight", np.ones(n)) / np.sum(options.get("weight", np.ones(n)))
    most = 3 if "point_limits" in options else options["points"]
    low, high = options.get("intercept_limits", (-60, 60))
    b, best, cards = np.arange(low, high + 1), -math.inf, []
    for card in itertools.product(range(-most, most + 1), repeat=d):
        if follows(card, options):
            cards.append(card)
            totals = (X @ card)[:, None] + b
            losses = weight @ np.logaddexp(0, -(2 * y[:, None] - 1) * totals)
            counted = len({*np.flatnonzero(card).tolist()} - {*options.get("free", ())})
            best = max(best, -losses.min() - options["C"] * counted)
    return best, cards


@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("how", ["lattice", "sets"])
def test_the_best_risk_score_is_that_of_brute_force(monkeypatch, how, part):
    found = dict.fromkeys(Status, 0)
    if part % 2:  # what is cut off is not found by other means
        monkeypatch.setattr("ltr.exact.scip.lattice.offer_starts", lambda *_: None)
        monkeypatch.setattr("ltr.exact.scip.lattice.polish", lambda *_: None)
    for seed in range(part * examples(12, 100), (part + 1) * examples(12, 100)):
        X, y, options = instance(seed)
        if how == "sets":  # of yes/no columns, and of rows that count once
            X = (X > 0).astype(float)
            options = {name: value for name, value in options.items() if name not in ("weight", "free")}
        best, cards = best_of_all(X, y, options)
        problem = RiskProblem(X, y, **options)
        method = LatticeCuts(starts=0.2 * (seed % 2), sets=0.4 if how == "sets" else 0.0)
        solution = solve(problem, method, Limits(time_limit=60))
        assert (solution.message == "searched by sets of columns") == (how == "sets" and bool(cards))
        found[solution.status] += 1
        if not cards:
            assert solution.status is Status.INFEASIBLE, seed
            continue
        assert solution.status is Status.OPTIMAL, (seed, solution)
        assert solution.value == pytest.approx(best, abs=1e-10), seed
        assert solution.bound >= best - 1e-12, seed
        assert tuple(problem.points_of(solution.weights)) in cards
        assert problem.trivial_bound >= best
    assert found[Status.OPTIMAL] > 0


def wide(seed, n=300, d=14, k=4):
    """A problem that takes some seconds."""
    rng = np.random.default_rng([23, seed])
    X = (rng.random((n, d)) < 0.4).astype(float)
    y = (rng.random(n) < 1 / (1 + np.exp(-(X[:, :5] @ [1.2, -0.8, 0.7, 0.9, -1.1])))).astype(int)
    return RiskProblem(X, y, max_nonzeros=k)


@pytest.mark.parametrize("part", range(4))
def test_a_stop_at_any_moment_leaves_a_bound_that_holds(part):
    stopped = 0
    for seed in range(part * examples(8, 60), (part + 1) * examples(8, 60)):
        X, y, options = instance(seed)
        best, _ = best_of_all(X, y, options)
        rng, problem = np.random.default_rng([29, seed]), RiskProblem(X, y, **options)
        calls, last = 0, int(rng.integers(1, 60))

        def stop(last=last):
            nonlocal calls
            calls += 1
            return calls > last

        nodes = int(rng.integers(1, 20)) if rng.random() < 0.3 else None
        bounds = []
        solution = solve(
            problem,
            LatticeCuts(starts=float(rng.choice([0.0, 0.2])), sets=float(rng.choice([0.0, 0.4]))),
            Limits(time_limit=60, node_limit=nodes),
            should_stop=stop,
            on_progress=lambda point, bounds=bounds: bounds.append(point.bound),
        )
        stopped += solution.status in (Status.INTERRUPTED, Status.NODE_LIMIT)
        assert solution.value <= best + 1e-10, seed
        if best > -math.inf:
            assert min([solution.bound, *bounds]) >= best - 1e-12, (seed, solution)
        if solution.status is Status.OPTIMAL:
            assert solution.value == pytest.approx(best, abs=1e-10)
    assert stopped > 0


def test_limits_of_a_solve():
    problem = wide(0)
    best = solve(problem, limits=Limits(time_limit=300))
    assert best.status is Status.OPTIMAL
    assert best.gap == 0
    in_scip = LatticeCuts(sets=0.0)
    assert solve(problem, in_scip, Limits(time_limit=300)).value == pytest.approx(best.value, abs=1e-12)
    loose = solve(problem, in_scip, Limits(time_limit=300, gap=0.1))
    assert loose.status is Status.GAP_LIMIT
    assert 0 < loose.gap <= 0.1
    assert loose.bound >= best.value
    short = solve(problem, in_scip, Limits(time_limit=0.3))
    assert short.status is Status.TIME_LIMIT
    assert short.bound >= best.value >= short.value
    began = [point.incumbent for point in short.trace]
    assert began == sorted(began)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [0, 1, 2]}, "y must hold the labels 0 and 1, both of them, got"),
        ({"points": 0}, "points must be an integer from 1 to 1,000, got 0"),
        ({"point_limits": [[0, 1]]}, r"point_limits must hold .* \(2, 2\), got shape \(1, 2\)"),
        ({"point_limits": [[0, 1], [2, 1]]}, r"point_limits\[1\] must be two whole numbers .* got 2 and 1"),
        ({"intercept_limits": [3, 2]}, "intercept_limits must be two whole numbers"),
        ({"weight": [1, 0, 1]}, "weight must hold finite numbers > 0, got 0.0"),
        ({"X": [[1e9, 0], [0, 1], [1, 1]]}, "X must hold numbers whose totals stay below 1e.06, .* column 0"),
    ],
)
def test_mistakes_get_one_clear_error(change, message):
    with pytest.raises(ValueError, match=message):
        RiskProblem(**{"X": [[1, 0], [0, 1], [1, 1]], "y": [0, 1, 1], **change})


def test_certificates_state_the_loss():
    for seed in range(examples(40, 200)):
        X, y, options = instance(seed)
        problem = RiskProblem(X, y, **options)
        solution = solve(problem)
        if solution.status is Status.INFEASIBLE:
            with pytest.raises(ValueError, match="no risk score is feasible, which no certificate can show"):
                certify(problem, solution)
            continue
        certificate = certify(problem, solution)
        content = verify.parse(json.dumps(certificate.content))
        claim, words = verify.check(content)
        assert claim == "value"
        assert "claimed, not proven; problem: risk score" in words
        assert stated_problem(content).content() == problem.content()
        assert certificate.weights[-1] == problem.intercept(certificate.weights[:-1])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("value",), -0.3, "value: is -0.466659512753 at these weights, not -0.3"),
        (("weights", 0), 1.5, r"weights\[0\]: must be 0 or a whole number from -2 to 2, at least 1 in size, got 1.5"),
        (("weights", 2), 9.0, r"weights\[2\]: is the intercept, which must be from -3 to 3, got 9"),
        (("weights", 2), 1.0, "value: is"),
        (("weights", 2), 0.5, r"weights\[2\]: must be a whole number, got 0.5"),
        (("weights",), [0.0, 1.0, 0.0], "weights: are not allowed: columns 1"),
        (("claimed_bound",), -0.9, "claimed_bound: must be at least the value"),
        (("claim",), "optimal", "claim: the file shows 'value'"),
        (("proof",), {"bound": 0.0, "partition": []}, "proof: must be null for a risk score"),
        (("problem", "y", 0), 0, "problem.sha256"),
        (("problem", "X", 0, 0), 0.5, "problem.sha256"),
        (("problem", "intercept"), None, "problem.sha256"),
        (("problem", "y", 0), 2, r"problem.y\[0\]: must be 0 or 1"),
    ],
)
def test_changes_of_a_certificate_are_found(path, value, message):
    X, y = [[1, 0], [1, 1], [0, 1], [0, 0], [1, 0]], [1, 1, 0, 0, 0]
    options = {"points": 2, "max_nonzeros": 1, "intercept_limits": (-3, 3), "rules": [CardRule([0], at_least=1)]}
    problem = RiskProblem(X, y, **options)
    content = copy.deepcopy(certify(problem, solve(problem)).content)
    verify.check(verify.parse(json.dumps(content)))
    *inner, last = path
    functools.reduce(lambda node, key: node[key], inner, content)[last] = value
    with pytest.raises(verify.CertificateError, match=message):
        verify.check(verify.parse(json.dumps(content)))


def test_the_checker_computes_losses_to_fifty_digits():
    for total in (0.0, 1.0, -3.5, 30.0, 59.0, 61.0, 700.0, 1e5):
        content = RiskProblem([[total], [0.0]], [1, 0], points=1, max_nonzeros=1).content() | {"sha256": ""}
        found = -verify.Risk(content).value([1.0, 0.0])
        expected = (log_of_1_plus(exp_of(-Fraction(total))) + log_of_1_plus(Fraction(1))) / 2
        assert abs(found - expected) <= expected / 10**50


def exp_of(x):
    """The exponential of a rational number: halved until its series is short, then squared, to 120 digits."""
    with decimal.localcontext(prec=120, Emin=decimal.MIN_EMIN):
        halvings = max(0, math.ceil(math.log2(abs(x) + 1)) + 4)
        small = decimal.Decimal(x.numerator) / decimal.Decimal(x.denominator) / 2**halvings
        term, total = decimal.Decimal(1), decimal.Decimal(0)
        for step in range(1, 100):
            total, term = total + term, term * small / step
        for _ in range(halvings):
            total *= total
        return Fraction(total)


def log_of_1_plus(x):
    """The logarithm of 1 + x for x in (0, 1], by the series of the inverse hyperbolic tangent; by 1 + x otherwise."""
    if x > 1:
        return log_of_1_plus(1 / x) + log_of_1_plus(x - 1)
    with decimal.localcontext(prec=120, Emin=decimal.MIN_EMIN):
        ratio = x / (2 + x)
        y = decimal.Decimal(ratio.numerator) / decimal.Decimal(ratio.denominator)
        return Fraction(2 * sum((y ** (2 * k + 1) / (2 * k + 1) for k in range(130)), decimal.Decimal(0)))


def test_ctrl_c_keeps_the_best_card_and_a_bound():
    problem = wide(1)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    solution = solve(problem, LatticeCuts(starts=0.0, sets=0.0), Limits(time_limit=300))
    timer.cancel()
    assert solution.status in (Status.INTERRUPTED, Status.OPTIMAL)
    assert problem.feasible(solution.weights)
    assert solution.bound >= solve(problem).value
