"""Problems with demands: answers against two oracles, whatever method and options found them or cut the search short.

The oracles are the cells of weight space (`cell_optimum_demanded`) and the pairs that linear programs say can be won
together (`tests.exact.demand_reference`). They share nothing with the search.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
import re
from collections import Counter

import numpy as np
import pytest

from ltr.exact import Demand, RerankProblem, Status, solve
from ltr.exact.largest_margin import maximise_margin
from ltr.exact.solve import METHODS
from ltr.exact.state import Limits
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.exact.weight_space.coordinates import apply_to
from ltr.exact.weight_space.space import space_of
from ltr.native import SearchWorkspace
from tests.exact.demand_reference import Best, TooLarge, check, instance, largest
from tests.reference import cell_optimum_demanded, random_demanded
from tests.tiers import examples

X = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 3.0], [0.0, 2.0]])
LABELS, GROUP = [1, 1, 0, 0], [0, 0, 1, 1]
GAP = 1e-9


def asked(*demands, **options):
    return RerankProblem(X, LABELS, demands=demands or [Demand("hits@1", 1, GROUP)], **options)


def method_of(problem, seed):
    """Return a search whose options depend on the seed."""
    systems = (None, "adapted", "given") if apply_to(problem) and problem.d > 1 else (None, "given")
    return WeightSpaceSearch(
        threads=1 + seed % 2,
        scip=bool(seed // 2 % 2),
        local_search=(0.1, 0.0)[seed // 4 % 2],
        coordinates=systems[seed // 8 % len(systems)],
    )


def check_instance(seed: int, seconds: float = 2.0) -> str:
    """Raise AssertionError if an answer for this instance is wrong; return how its search ended."""
    problem = instance(seed)
    try:
        best = largest(problem)
    except TooLarge:
        return "too large"
    rng, method = np.random.default_rng(seed), method_of(problem, seed)
    found = solve(problem, method, Limits(seconds, seed=seed))
    check(problem, found, best, finished=found.status is not Status.TIME_LIMIT)
    starts = list(rng.uniform(-1, 1, size=(2, problem.d)))  # of which many are infeasible
    limits = (
        Limits(seconds, node_limit=int(rng.integers(1, 20))),
        Limits(float(rng.choice([1e-4, 2e-3, 1e-2]))),
        Limits(seconds, gap=float(rng.choice([0.01, 0.1, 0.5]))),
    )
    check(problem, solve(problem, method, limits[seed % 3], warm_starts=starts), best, finished=False)
    calls, most = itertools.count(), int(rng.integers(1, 30))
    stopped = solve(problem, method, Limits(seconds), should_stop=lambda: next(calls) > most)
    check(problem, stopped, best, finished=False)
    check(problem, solve(problem, "local_search", Limits(0.2)), best, finished=False)
    return found.status.value


# --- against the oracles ---------------------------------------------------------------------------------------


def test_answers_are_the_optima_of_cells():
    met = Counter()
    for seed in range(examples(40, slow=400)):
        problem = random_demanded(seed)
        value, _ = cell_optimum_demanded(problem)
        found = solve(problem, method_of(problem, seed), Limits(20))
        check(problem, found, Best(value, value))
        met[found.status] += 1
    assert min(met[Status.OPTIMAL], met[Status.INFEASIBLE]) >= 8


def test_answers_are_right_for_all_kinds_of_problems_and_all_that_cuts_a_search_short():
    met = Counter(check_instance(seed, seconds=1.0) for seed in range(examples(24, slow=1500)))
    assert met["optimal"] > 10
    assert met["infeasible"] > 3
    assert met["time_limit"] + met["too large"] + met["inexact"] <= 0.05 * sum(met.values()), met


def test_weights_that_must_win_all_pairs_of_a_demand_are_known_at_once():
    """As many features as rows: there are weights at which all rows tie, and boxes around them decide nothing."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(6, 6))
    y, group = np.array([0, 0, 1, 1, 1, 0]), np.array([1, 0, 0, 1, 0, 1])
    problem = RerankProblem(features, y, "dcg@3", demands=[Demand("hits@3", 3, group)])
    found = solve(problem, WeightSpaceSearch(threads=1, scip=False, local_search=0.0), Limits(20))
    assert (found.status, found.value) == (Status.OPTIMAL, 1.0)
    assert found.nodes < 1000


@pytest.mark.parametrize("scip", [False, True])
def test_weights_that_only_a_demand_depends_on_are_not_left_out(scip):
    """The objective compares no rows: its relaxation has no boxes at all, and w = 0 misses the demand."""
    features = [[0.0, 0.0], [1.0, 1.0], [1.5, -1.0], [-1.0, 1.5]]
    demand = Demand("auc", 9.0, [0, 2, 1, 1])
    problem = RerankProblem(features, [1, 0, 0, 0], qid=[0, 1, 1, 1], demands=[demand])
    found = solve(problem, WeightSpaceSearch(threads=1, local_search=0.0, scip=scip), Limits(20))
    assert (found.status, found.value) == (Status.OPTIMAL, 1.0)
    assert problem.feasible(found.weights)


# --- what methods and problems say -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name in METHODS if name not in ("local_search", "weight_space", "cards", "lattice")]
)
def test_models_in_scip_refuse_demands_by_name(name):
    with pytest.raises(ValueError, match="take no demands: use weight_space"):
        solve(asked(), name)


@pytest.mark.parametrize(
    ("demands", "message"),
    [
        ([Demand("hits@1", 1, [1, 0])], "demands[0], hits@1 of labels >= 1: y must have one label per row of X (4)"),
        ([Demand("hits@1", 1, [0] * 4)], "demands[0], hits@1 of labels >= 1: y must hold both classes, got only 0"),
        (
            [Demand("hits@1", 1, GROUP), Demand("hits@2", 2.1)],
            "demands[1], hits@2 >= 2.1: at_least must be at most 2",
        ),
        ([Demand("dcg", 1.01, GROUP, normalize=True)], "at_least must be at most 1, the value of a perfect order"),
        ([Demand("hits@1", 1, [-1, 0, 0, 1])], "gains must be finite numbers >= 0, got -1.0"),
        (["hits@1"], "demands must hold Demand(statistic, at_least), got 'hits@1'"),
        (Demand("hits@1", 1), "demands must be a sequence of Demand(statistic, at_least), got Demand("),
    ],
)
def test_bad_demands_are_told(demands, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        RerankProblem(X, LABELS, demands=demands)


def test_a_demand_is_met_to_a_billionth_exactly():
    least = 1 / math.log2(3)  # of the second place
    for at_least, met in ((least, True), (least * (1 + 0.5e-9), True), (least * (1 + 2e-9), False)):
        problem = asked(Demand("dcg", at_least, [0, 1, 0, 0]))
        assert problem.feasible([1.0, 0.1]) is met
    loose = asked(Demand("dcg", -1.0, GROUP))  # nothing is asked
    assert all(loose.feasible(w) for w in ([0.0, 0.0], [1.0, 0.0]))


def test_copies_of_a_problem_ask_the_same():
    problem = asked(Demand("hits@1", 1, GROUP, name="someone"), Demand("dcg", 0.5, normalize=True))
    other = problem.other("auc", least=1.0)
    for own in (problem, other):
        kept = (pickle.loads(pickle.dumps(own)), copy.deepcopy(own), copy.copy(own), dataclasses.replace(own))
        for again in (*kept, dataclasses.replace(own, C=0.5), dataclasses.replace(own, max_nonzeros=1)):
            assert [str(one.demand) for one in again.demanded] == [str(one.demand) for one in own.demanded]
            for w in itertools.product((-1.0, -0.3, 0.0, 0.4, 1.0), repeat=2):
                assert [one.met(w) for one in again.demanded] == [one.met(w) for one in own.demanded]
    assert "someone; normalised dcg &gt;= 0.5" in problem._repr_html_()
    assert repr(problem) == repr(RerankProblem(X, LABELS))


def test_margins_of_replaced_problems_are_those_of_their_demands():
    other = asked(integer=4, margin=1.0).other("auc", least=1.0)
    real = other.real
    assert [one.problem.margin for one in real.demanded] == [0.25, 0.25]
    assert [one.problem.integer for one in real.demanded] == [None, None]
    for w in itertools.product(range(-4, 5), repeat=2):
        assert real.feasible(np.array(w) / 4) == other.feasible(np.array(w, dtype=float))


@pytest.mark.parametrize("norm", ["l2", "max"])
def test_a_larger_margin_keeps_the_demands_met(norm):
    moved = 0
    for seed in range(60):
        problem = instance(seed)
        if problem.integer is not None:
            continue
        for w in np.random.default_rng(seed).uniform(-1, 1, size=(4, problem.d)):
            if problem.feasible(w):
                wider = maximise_margin(problem, w, norm=norm)
                assert problem.feasible(wider)
                assert problem.evaluate(wider) >= problem.evaluate(w)
                moved += not np.array_equal(wider, problem.in_box(w))
    assert moved > 10


def test_local_search_finds_feasible_weights_where_few_are():
    found = 0
    for seed in range(30):
        problem = random_demanded(seed)
        answer = solve(problem, "local_search", Limits(0.2, seed=seed))
        assert answer.value == -math.inf or problem.feasible(answer.weights)
        assert answer.status in (Status.HEURISTIC, Status.TIME_LIMIT, Status.OPTIMAL)
        assert answer.bound >= cell_optimum_demanded(problem)[0] - GAP
        found += math.isfinite(answer.value)
    assert found > 10


# --- the parts of the search -----------------------------------------------------------------------------------


def boxes(count=60):
    """Yield random boxes: problem, space, workspace with the box, and feasible and other weights in it."""
    for seed in range(count):
        problem = instance(seed)
        if problem.integer is not None or problem.constraints is not None or problem.required or problem.C > 0:
            continue
        rng, searchable = np.random.default_rng(seed), space_of(problem)
        if not len(searchable.roots.bound):
            continue
        for _ in range(4):
            box = searchable.roots.rows(np.array([rng.integers(len(searchable.roots.bound))]))
            d, work = problem.d, SearchWorkspace(searchable.space.compiled)
            low, high = box.low[0, :d].copy(), box.high[0, :d].copy()
            cuts = np.sort(rng.uniform(size=(2, d)) ** rng.choice([1.0, 0.3, 4.0]), axis=0)
            box.low[0, :d], box.high[0, :d] = low + cuts[0] * (high - low), low + cuts[1] * (high - low)
            work.push(searchable.space.compiled, box.low, box.high, box.used)
            points = box.low[0, :d] + rng.uniform(size=(12, d)) * (box.high - box.low)[0, :d]
            yield problem, searchable, work, points


def test_a_demand_has_room_in_a_box_wherever_weights_of_it_meet_it():
    closed = 0
    for problem, _, work, points in boxes():
        box = work.box
        met = np.array([[one.met(w) for one in problem.demanded] for w in points])
        assert np.all(box["room"][met.any(axis=0)] > 0)
        closed += int((box["room"] <= 0).sum())
    assert closed > 10


def test_pairs_that_opposites_lose_are_lost_wherever_weights_matter():
    lowered = 0
    for problem, searchable, work, points in boxes(150):
        before = work.box
        values = [problem.evaluate(w) for w in points if problem.feasible(w)]
        target = int(before["bound"] * np.random.default_rng(problem.n).choice([0.3, 0.8, 0.99]))
        if not work.lose_opposites(searchable.space.compiled, target):
            continue
        after = work.box
        lowered += after["bound"] < before["bound"] or bool(np.any(after["room"] < before["room"]))
        for value in values:
            if searchable.integer(value - GAP) > target:
                assert searchable.objective(after["bound"]) >= value - GAP
                assert np.all(after["room"] > 0)
    assert lowered > 5


def test_no_hinge_bound_closes_a_box_with_weights_above_the_target():
    closed = kept = 0
    for problem, searchable, work, points in boxes(150):
        space, target = searchable.space.compiled, searchable.integer(0.95 * problem.trivial_bound)
        best = max((problem.evaluate(w) for w in points if problem.feasible(w)), default=-math.inf)
        if math.isfinite(best):
            kept += 1
            assert not work.hinge_bound(space, searchable.integer(best - GAP))
        box = work.box
        if box["bound"] > target and np.all(box["room"] > 0) and work.hinge_bound(space, target):
            closed += 1
            assert best <= 0.95 * problem.trivial_bound + GAP
    assert kept > 10
    assert closed > 0
