"""Certificates: what the recorder closes the checker accepts, bounds are true, files come back as they were written."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

from ltr import verify
from ltr.data import DataError, half_split, load
from ltr.exact import Limits, LinearConstraints, RerankProblem
from ltr.exact.cards import CardProblem
from ltr.exact.certificate import Certificate, Recorder, certify
from ltr.exact.constraints import Demand
from ltr.exact.local_search.search import local_search
from ltr.exact.preferences import PairwiseProblem
from ltr.exact.solution import Status
from ltr.exact.solve import solve
from tests.exact.stated_problem import none, solution, stated_problem
from tests.reference import (
    cell_optimum,
    cell_optimum_demanded,
    cell_optimum_graded,
    cell_optimum_pairs,
    graded_problem,
    random_demanded,
    random_graded,
    random_instance,
    random_pairwise,
)
from tests.tiers import examples


def checked(problem, w, **options):
    """The certificate, once the checker has accepted it and its numbers are found to agree."""
    certificate = certify(problem, solution(problem, w), **options)
    claim, _ = verify.check(verify.parse(json.dumps(certificate.content)))
    assert certificate.claim == claim
    assert certificate.value == problem.evaluate(w)
    assert certificate.value <= certificate.bound
    assert (certificate.claim == "value") == (certificate.partition is None)
    return certificate


def proven_infeasible(problem, **options):
    """Whether a certificate shows that no weights are feasible, once the checker has accepted it."""
    try:
        certificate = certify(problem, none(problem), **options)
    except ValueError:
        with pytest.raises(ValueError, match="which was not proven within max_boxes, max_checks and time_limit"):
            certify(problem, none(problem), **options)
        return False
    claim, words = verify.check(verify.parse(json.dumps(certificate.content)))
    assert claim == certificate.claim == "infeasible"
    assert words.startswith("infeasible: no weights satisfy all constraints and demands, proven by ")
    assert (certificate.weights, certificate.value, certificate.bound) == (None, -math.inf, -math.inf)
    return True


def larger_problem(seed, **options):
    """20 observations on 3 features, some rows repeated, tenths among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    X[:, 2] = rng.integers(0, 4, size=20) / 10
    X[4:6] = X[0]
    y = (X @ rng.normal(size=3) + rng.normal(size=20) > 0).astype(int)
    return RerankProblem(X, y, **options)


def larger_graded(seed, **options):
    """24 observations on 3 features, labels 0 to 3 on two lists."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(24, 3))
    X[:, 2] = rng.integers(0, 4, size=24) / 10
    labels = np.clip(np.round(X @ rng.normal(size=3) + rng.normal(size=24) + 1), 0, 3)
    return RerankProblem(X, labels, qid=rng.integers(0, 2, size=24), **options)


# --- proofs of enumerated optima -------------------------------------------------------------------------------


def optimum(p, A=None):
    """The enumerated optimum of a problem, -inf where no weights are feasible, and weights that reach it."""
    if p.demanded:
        return cell_optimum_demanded(p, A=A)
    if isinstance(p, PairwiseProblem):
        return cell_optimum_pairs(p.X, p.pairs, p.weights, p.C)
    return cell_optimum(p.X, p.gains, p.statistic, p.C, p.ties, A=A) if p.binary else cell_optimum_graded(p, A=A)


def judged(p, best, w):
    """The claim that is proven about a problem, given its optimum."""
    if best == -math.inf:
        return "infeasible" if proven_infeasible(p, max_boxes=5000) else "unproven"
    certificate = checked(p, w, max_boxes=5000)
    assert certificate.value == pytest.approx(best, abs=1e-9)
    again, rng = stated_problem(certificate), np.random.default_rng(0)
    assert again.max_nonzeros == p.max_nonzeros
    if p.demanded:
        assert not proven_infeasible(p, max_boxes=300)
        for v in [w, *rng.integers(-4, 5, size=(10, p.d)) / (1.0 if p.integer else 4.0)]:
            assert again.feasible(v) == p.feasible(v)
            assert again.evaluate(v) == pytest.approx(p.evaluate(v), abs=1e-12)
            if p.feasible(v):  # a bound proven for worse weights holds, too
                assert checked(p, v, max_boxes=50).bound >= best - 1e-9
    return certificate.claim


def varied(p, how, seed):
    """A problem made of another one, and its optimum."""
    if how == "side constraints":
        A = np.random.default_rng(seed).integers(-1, 2, size=(2, p.d)).astype(float)
        return dataclasses.replace(p, constraints=LinearConstraints(A, [0.0, 0.0])), *optimum(p, A=A)
    if how == "cut off":  # half of every direction is feasible, and differences of whole numbers still reach the margin
        best, w = optimum(p)
        sides = LinearConstraints(np.vstack([np.ones(p.d), np.eye(p.d)]), [0.5, *[0.5] * p.d])
        return dataclasses.replace(p, constraints=sides), best, None if w is None else np.asarray(w) / (2 * p.d)
    if how == "few weights" and p.demanded:
        few = dataclasses.replace(p, max_nonzeros=max(1, p.d - 1))
        return few, *optimum(few)
    if how == "few weights" and p.d > 1:
        parts = [optimum(dataclasses.replace(p, X=np.delete(p.X, j, axis=1))) for j in range(p.d)]
        j = max(range(p.d), key=lambda j: parts[j][0])
        return dataclasses.replace(p, max_nonzeros=p.d - 1), parts[j][0], np.insert(parts[j][1], j, 0.0)
    if how == "whole numbers":
        p = dataclasses.replace(p, integer=3, margin=0.5, required=[0] if seed % 3 else [])
        grid = map(np.array, itertools.product(np.arange(-3.0, 4.0), repeat=p.d))
        return p, *max(((p.evaluate(w), w.tolist()) for w in grid if p.feasible(w)), default=(-math.inf, None))
    return p, *optimum(p)


@pytest.mark.parametrize(
    ("draw", "how", "count", "share"),  # pairs of rows whose differences are opposite can take too many boxes
    [
        (random_instance, "all", 102, 0.96),
        (random_graded, "all", 78, 0.96),
        (random_pairwise, "all", examples(30, slow=60), 1.0),
        (random_demanded, "all", examples(60, slow=600), 0.98),
        *((draw, how, examples(30, slow=60), 0.9)
          for draw in (random_instance, random_graded, random_demanded)
          for how in ("side constraints", "cut off", "few weights")),
        (random_demanded, "whole numbers", examples(30, slow=60), 1.0),  # in the end there are single points
    ],
)  # fmt: skip
def test_optima_are_proven_and_demands_that_cannot_be_met(draw, how, count, share):
    claims = [judged(*varied(draw(seed), how, seed)) for seed in range(count)]
    assert claims.count("optimal") + claims.count("infeasible") >= share * count
    assert draw is not random_demanded or min(map(claims.count, ("optimal", "infeasible"))) >= 0.2 * count


@pytest.mark.parametrize("ties", ["resolved", "subrank"])
@pytest.mark.parametrize("margin", [0.5, 1.5])
def test_optima_of_graded_lists_under_a_large_margin_are_proven(ties, margin):
    for seed in range(examples(6, slow=26)):
        p = random_graded(seed, ties=ties)
        p = dataclasses.replace(p, X=p.X[:, :1], margin=margin)  # so that only w = 0 and ±1 count
        assert checked(p, max([[0.0], [-1.0], [1.0]], key=p.evaluate)).claim == "optimal"


def solved(p):
    """The optimal solution of a problem, its certificate, and what the checker says of it."""
    found = solve(p, limits=Limits(time_limit=60.0))
    assert found.status is Status.OPTIMAL
    certificate = certify(p, found)
    claim, words = verify.check(verify.parse(json.dumps(certificate.content)))
    assert claim == certificate.claim == "optimal"
    return found, certificate, words


@pytest.mark.parametrize("ties", ["resolved", "subrank"])
@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"C": 0.2}, {"gain": "linear", "statistic": "wrs"}])
def test_solutions_of_graded_lists_are_proven(ties, options):
    solved(larger_graded(0, ties=ties, **options))


@pytest.mark.parametrize("name", ["hits@5", "precision@5", "recall@5"])
@pytest.mark.parametrize("options", [{"normalize": True}, {"C": 0.01, "margin": 0.1}])
def test_hits_of_several_lists_and_of_one_are_proven(name, options):
    """With several lists the certificate counts hits, and its gains say what they are shares of."""
    for p in (larger_graded(1, statistic=name, **options), larger_problem(1, statistic=name, **options)):
        found, certificate, words = solved(p)
        assert f"statistic {name if p.binary else 'hits@5'}" in words
        for w in (found.weights, [1.0, 0.5, -1.0]):
            assert stated_problem(certificate).evaluate(w) == pytest.approx(p.evaluate(w), abs=1e-12)


def test_bounds_hold_for_what_the_tolerance_of_side_constraints_admits():
    # w_1 <= w_0 / (1 + 2e-9) and w_0 <= w_1 leave w_0 <= 0, but for the tolerance
    p = RerankProblem(
        [[0.0, 0.0], [1.0, 1.0]], [0, 1], constraints=LinearConstraints([[1, -1], [-1, 1 + 2e-9]], [0, 0])
    )
    assert p.feasible([1.0, 1.0])
    assert checked(p, [0.0, 0.0]).bound >= p.evaluate([1.0, 1.0])


# --- demands ---------------------------------------------------------------------------------------------------


def opposed(margin):
    """Labels, and a group that asks for opposite orders of many rows, on four features."""
    rng = np.random.default_rng(34)
    X = rng.normal(size=(30, 4))
    y = (X @ rng.normal(size=4) + rng.normal(size=30) > 0.7).astype(int)
    group = (rng.random(30) + 0.3 * X[:, 0] > 0.6).astype(int)
    return RerankProblem(X, y, margin=margin, demands=[Demand("hits@6", 4, group)])


@pytest.mark.parametrize(
    ("make", "bound"),
    [(opposed, 3.364), (lambda margin: larger_graded(0, ties="subrank", margin=margin), 25.06758)],
    ids=["demand", "subranks"],
)
def test_orders_that_exclude_each_other_take_no_boxes_of_the_size_of_the_margin(make, bound):
    counts = []
    for margin in (1e-4, 1e-6, 1e-8):
        p = make(margin)
        certificate = certify(p, feasible_solution(p))
        recorder = Recorder(p, verify.Problem(certificate.content["problem"]))
        partition = recorder.record(bound, 5000, 10**8, lambda: False)
        certificate.content.update(claim="bound", proof={"bound": bound, "partition": partition})
        assert certificate.verify().startswith("bound: ")
        counts.append(certificate.boxes)
        assert ":" in " ".join(partition)
    assert max(counts) <= 1.3 * min(counts)


def feasible_solution(p):
    """The best of random weights that meet the demands."""
    weights = np.random.default_rng(0).normal(size=(1000, p.d))
    return solution(p, max((w / np.abs(w).max() for w in weights if p.feasible(w)), key=p.evaluate))


def test_side_constraints_that_no_weights_satisfy_are_certified():
    sides = [
        LinearConstraints([[1.0, 0.0, 0.0]], [-2.0]),
        LinearConstraints([[1.0, 1.0, 1.0], [-1.0, -1.0, 0.0], [0.0, 0.0, -1.0]], [1.0, -0.75, -0.5]),
    ]
    pairwise = PairwiseProblem(larger_problem(0).X, [(0, 1), (7, 3)], weights=[0.1, 2.0])
    for constraints in sides:
        for p in (larger_problem(0), larger_graded(0), pairwise):
            assert proven_infeasible(dataclasses.replace(p, constraints=constraints))
    p = dataclasses.replace(larger_problem(0), constraints=LinearConstraints([[1.0, 0.0, 0.0]], [-0.5]))
    assert not proven_infeasible(p)
    small = LinearConstraints(np.vstack([np.eye(3), -np.eye(3)]), np.full(6, 1e-3))
    for required in ([], [1]):
        p = dataclasses.replace(larger_problem(0), constraints=small, required=required)
        assert proven_infeasible(p) == bool(required)


def test_demands_that_are_met_by_w_0_alone_are_not_called_infeasible():
    p = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0], C=2.0)
    assert p.demanded == ()
    for at_least, infeasible in ((0.0, False), (1e-300, True)):
        asked = [Demand("hits@1", at_least, [1, 0, 0]), Demand("hits@1", at_least, [0, 0, 1])]
        assert proven_infeasible(dataclasses.replace(p, demands=asked)) == infeasible


# --- bounds of other weights -----------------------------------------------------------------------------------


def test_bounds_are_true_whatever_the_weights():
    for seed in range(examples(40, slow=80)):
        p, graded = random_instance(seed), random_graded(seed)
        best, _ = cell_optimum(p.X, p.y, p.statistic, p.C, p.ties)
        for problem, largest in ((p, best), (graded, cell_optimum_graded(graded)[0])):
            w = np.random.default_rng(seed).integers(-2, 3, size=problem.d) / 2.0
            certificate = checked(problem, w, max_boxes=1000)
            assert certificate.bound >= largest - 1e-9
            assert certificate.claim != "optimal" or certificate.value >= largest - 1e-9


@pytest.mark.parametrize("kind", ["binary", "graded", "demand"])
def test_rounding_spoils_nothing(kind):
    # w·δ meets the margin up to rounding at many corners of boxes, margins times grades are no float64 numbers, and
    # demands ask for what weights of a grid just have
    boxes = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        unit = [0.1, 1e-9, 1e8 / 3, 1e150, 1e-160][seed % 5]
        X, gains = rng.integers(0, 6, size=(8, 3)) * unit, rng.integers(0, 5, size=8) ** 3 * 0.1
        statistic, margin = ["dcg", "auc", "mrr"][seed % 3], [1.0, 0.3, 0.7, 0.5][seed % 4] * unit
        if kind == "graded":
            p = graded_problem(X, gains, [0, 1][seed % 2] * (np.arange(8) % 3 == 0), statistic)
        else:
            p = RerankProblem(X, [1, 0, 1, 0, 1, 0, 0, 1], statistic)
        p = dataclasses.replace(p, C=[0.0, 0.01][seed % 2], margin=margin, ties=["resolved", "subrank"][seed // 5 % 2])
        grid = rng.integers(-8, 9, size=(50, 3)) / 8.0
        if kind == "demand":
            labels = rng.integers(0, 4, size=8) * 0.1
            p = dataclasses.replace(p, ties="resolved", demands=[Demand(statistic, 0.0, labels)])
            most = max(map(p.demanded[0].value, grid))
            more = min(most * (1 + 3e-9), p.demanded[0].problem.trivial_bound)
            if more > most:
                proven_infeasible(dataclasses.replace(p, demands=[Demand(statistic, more, labels)]), max_boxes=2000)
            p = dataclasses.replace(p, demands=[Demand(statistic, most, labels)])
        feasible = [w for w in grid if p.feasible(w)]
        assert feasible
        certificate = checked(p, max(feasible, key=p.evaluate), max_boxes=2000)
        assert max(map(p.evaluate, feasible)) <= certificate.bound
        boxes += certificate.boxes
    assert boxes > 2000


@pytest.mark.parametrize("margins", [1, 3])
def test_a_pair_that_wins_by_less_than_rounding_is_not_taken_for_lost(margins):
    fooled = 0
    for seed in range(examples(80, slow=200)):
        delta = np.random.default_rng(seed).uniform(-1, 1, size=6)
        reach = sum(abs(Fraction(v)) for v in delta.tolist()) / margins  # of the largest w·δ, at the corner sign(δ)
        margin = float(reach) if float(reach) <= reach else math.nextafter(float(reach), 0)
        if margins == 1:
            p, most = RerankProblem([delta, np.zeros(6)], [1, 0], "auc", margin=margin), 1.0
        else:  # the gain 7 is three grades above the gain 0, and far above the others
            rows = [delta, np.zeros(6), -delta, -delta]
            p, most = graded_problem(rows, [7, 0, 1, 3], None, "wta", margin=margin), 7.0
        assert p.evaluate(np.sign(delta)) == most
        total = 0.0
        for v in np.abs(delta).tolist():
            total += v
        fooled += total < margins * margin
        assert checked(p, np.zeros(6), max_boxes=3000).bound >= most
    assert fooled >= 2


def test_features_of_the_largest_size_prove_nothing_wrong():
    X = np.array([[2e307, 0.0], [-2e307, 1.0], [1.0, 2.0], [0.0, -2e307]])
    p = RerankProblem(X, [1, 0, 1, 0])
    certificate = checked(p, [1.0, 0.0], max_boxes=100)
    assert certificate.bound >= max(p.evaluate(w) for w in ([1.0, 0.0], [1.0, 1.0], [1.0, 0.5], [0.0, 1.0]))


def test_weights_that_are_worse_than_none_get_the_bound_of_none():
    p = larger_problem(0, C=50.0)
    certificate = checked(p, [1.0, 0.0, 0.0])
    assert certificate.claim == "bound"
    assert certificate.value < p.evaluate(np.zeros(3)) <= certificate.bound


def test_the_bound_is_the_lowest_that_the_boxes_suffice_for():
    p = larger_problem(2)
    w = local_search(p, restarts=30, time_limit=60.0).weights
    full = checked(p, w)
    assert full.claim == "optimal"
    bounds = []
    for boxes in (full.boxes, full.boxes - 1, full.boxes // 2, 20, 6, 5):
        certificate = checked(p, w, max_boxes=boxes)
        assert certificate.boxes <= boxes
        bounds.append(certificate.bound)
    assert bounds == sorted(bounds)
    assert bounds[0] == full.bound < bounds[1]
    assert bounds[-1] == p.trivial_bound  # six faces need six boxes: nothing is proven, the solver's bound is quoted
    assert certificate.claim == "value"


def test_the_solvers_bound_is_tried_and_quoted():
    p = larger_problem(2)
    w = local_search(p, restarts=30, time_limit=60.0).weights
    value, boxes = p.evaluate(w), checked(p, w).boxes // 3
    unaided = checked(p, w, max_boxes=boxes).bound
    assert value < unaided < p.trivial_bound
    for claimed in (unaided - 1e-3, unaided + 1e-3):
        certificate = certify(p, solution(p, w, bound=claimed), max_boxes=boxes)
        assert certificate.claimed_bound == claimed
        assert certificate.bound <= unaided
        none = certify(p, solution(p, w, bound=claimed), max_boxes=0)
        assert (none.bound, none.claim) == (claimed, "value")
    below = certify(p, solution(p, w, bound=value - 1.0), max_boxes=0)  # no bound can be below the value
    assert below.claimed_bound == below.value


def test_stopping_leaves_what_is_proven():
    p = larger_problem(4)
    w = local_search(p, restarts=5).weights
    assert checked(p, w, should_stop=lambda: True).claim == "value"
    assert checked(p, w, time_limit=1e-9).claim == "value"
    asked = iter(range(10**9))
    # six faces are asked about at each bound: the value itself, then a higher one
    stopped = [checked(p, w, max_boxes=300, should_stop=lambda n=n: next(asked) > n).bound for n in (3, 10, 30, 100)]
    assert stopped[0] >= stopped[-1]


@pytest.mark.parametrize("ties", ["resolved", "subrank"])
def test_no_proof_is_tried_where_pairs_are_too_many(monkeypatch, ties):
    problems = [larger_problem(2, ties=ties), larger_graded(1, ties=ties), random_pairwise(3)]
    for p in problems:
        pairs = p.pair_count
        for most, claims in ((pairs, {"bound", "optimal"}), (pairs - 1, {"value"})):
            monkeypatch.setattr("ltr.exact.tuning.CERTIFICATE_PAIRS", most)
            assert checked(p, np.ones(p.d)).claim in claims


def test_pairs_of_the_objective_do_not_count_where_nothing_is_feasible(monkeypatch):
    monkeypatch.setattr("ltr.exact.tuning.CERTIFICATE_PAIRS", 0)
    p = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 0], constraints=LinearConstraints([[1.0], [-1.0]], [-0.5, -0.5]))
    assert proven_infeasible(p)


def test_long_searches_are_done_in_pieces(monkeypatch):
    p = larger_problem(2)
    w = local_search(p, restarts=30, time_limit=60.0).weights
    whole = checked(p, w)
    monkeypatch.setattr("ltr.exact.tuning.CERTIFICATE_WORK", 1)  # a piece a box
    assert checked(p, w).content == whole.content


# --- real lists ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"), [("gaussians", {}), ("haberman", {}), ("haberman", {"statistic": "auc", "C": 0.01})]
)
def test_full_lists_are_proven_optimal(name, options):
    try:
        data = load(name)
    except DataError as error:
        pytest.skip(str(error))
    train, _ = half_split(len(data.y), seed=0)
    p = RerankProblem(data.X[train], data.y[train], **options)
    found = local_search(p, restarts=30, time_limit=60.0)
    certificate = checked(p, found.weights)
    assert certificate.claim == "optimal"
    assert certificate.boxes < 5000


# --- files -----------------------------------------------------------------------------------------------------

SIDES = {"margin": 1.0 / 3.0, "constraints": LinearConstraints([[1.0, 0.1, -1.0 / 3.0]], [0.1])}
PRICED = {"statistic": "dcg(base=e)@7", "C": 0.1, "ties": "subrank"}


@pytest.mark.parametrize(
    "problem",
    [
        larger_problem(0),
        larger_problem(0, **PRICED, **SIDES),
        larger_graded(0),
        larger_graded(0, **PRICED, **SIDES, normalize=True),
        larger_problem(0, demands=[Demand("auc", 0.1), Demand("hits@9", 1.5, np.arange(20) % 3 / 2.0)]),
        larger_graded(0, ties="subrank", demands=[Demand("recall@3", 0.1), Demand("dcg", 0.1, normalize=True)]),
        PairwiseProblem(larger_problem(0).X, [(0, 1), (7, 3)], weights=[0.1, 2.0], C=1e-3, max_nonzeros=2, **SIDES),
    ],
    ids=repr,
)
@pytest.mark.parametrize("max_boxes", [0, 5000])
def test_files_come_back_as_they_were_written(problem, max_boxes, tmp_path):
    certificate = certify(problem, solution(problem, [-0.1, 1e-7, 0.0]), max_boxes=max_boxes)
    path = tmp_path / "certificate.json"
    path.write_text("an older file")
    certificate.write(path)
    assert list(tmp_path.iterdir()) == [path]
    again = Certificate.read(path)
    assert again.content == certificate.content
    assert again.verify() == certificate.verify()
    p = stated_problem(again)
    assert p.content() == problem.content()
    assert p.evaluate(again.weights) == again.value == problem.evaluate([-0.1, 1e-7, 0.0])
    for one, other in zip(p.demanded, problem.demanded, strict=True):
        for w in np.random.default_rng(0).normal(size=(20, p.d)):
            assert one.value(w) == pytest.approx(other.value(w), rel=1e-13)
    assert certify(p, solution(p, again.weights), max_boxes=0).sha256 == certificate.sha256


def test_files_can_be_read_by_people(tmp_path):
    p = random_instance(14)
    certify(p, solution(p, np.zeros(p.d))).write(tmp_path / "certificate.json")
    lines = (tmp_path / "certificate.json").read_text().splitlines()
    assert lines[:4] == ["{", ' "format": "ltr certificate",', ' "version": 1,', ' "claim": "bound",']
    assert sum(line.startswith("   [") for line in lines) == p.n  # one line an observation


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path):
    p = random_instance(14)
    certificate = certify(p, solution(p, np.zeros(p.d)))
    with pytest.raises(OSError, match="No such file"):
        certificate.write(tmp_path / "nowhere" / "certificate.json")
    certificate.content["value"] = math.nan
    with pytest.raises(ValueError, match="not JSON compliant"):
        certificate.write(tmp_path / "certificate.json")
    assert list(tmp_path.iterdir()) == []


def test_data_are_checked_when_a_file_is_read_and_proofs_when_it_is_verified(tmp_path):
    p = random_instance(14)
    certificate = certify(p, solution(p, np.zeros(p.d)))
    certificate.content["value"] += 1.0
    certificate.write(tmp_path / "certificate.json")
    with pytest.raises(verify.CertificateError, match="value: is"):
        Certificate.read(tmp_path / "certificate.json").verify()
    certificate.content["problem"]["X"][0][0] += 1.0
    certificate.write(tmp_path / "certificate.json")
    with pytest.raises(verify.CertificateError, match=r"certificate.json: problem.sha256: the data have"):
        Certificate.read(tmp_path / "certificate.json")
    (tmp_path / "certificate.json").write_text("")
    with pytest.raises(verify.CertificateError, match=r"certificate.json: cannot be read: it is not JSON"):
        Certificate.read(tmp_path / "certificate.json")


# --- arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_boxes": -1}, "max_boxes must be an integer >= 0, got -1"),
        ({"max_boxes": 1e4}, "max_boxes must be an integer >= 0, got 10000.0"),
        ({"max_checks": -1}, "max_checks must be an integer >= 0, got -1"),
        ({"time_limit": 0.0}, "time_limit must be > 0, got 0.0"),
        ({"time_limit": math.nan}, "time_limit must be > 0, got nan"),
    ],
)
def test_arguments_against_their_rule_are_refused(options, message):
    p = larger_problem(0)
    with pytest.raises(ValueError, match=message):
        certify(p, solution(p, [1.0, 0.0, 0.0]), **options)


def test_solutions_of_nothing_and_of_other_problems_are_refused():
    p = larger_problem(0, constraints=LinearConstraints([[1.0, 0.0, 0.0]], [-2.0]))
    for of in (solution(p, [1.0, 0.0, 0.0]), solve(p, "local_search", Limits(time_limit=5))):
        with pytest.raises(ValueError, match="solution must have feasible weights"):
            certify(p, of)
    one, other = larger_problem(0), larger_problem(1)
    with pytest.raises(ValueError, match="solution must be of this problem, got value"):
        certify(other, solution(one, [1.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match=r"w must have shape \(3,\), got \(2,\)"):
        certify(one, solution(random_instance(14), [1.0, 0.0]))
    card = CardProblem([[1, 0], [0, 1], [1, 1]], [1, 0, 1])  # some card solves it
    with pytest.raises(ValueError, match="solution must have feasible weights"):
        certify(card, none(card))
