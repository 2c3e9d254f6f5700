"""Certificates: what the recorder closes the checker accepts, bounds are true, files come back as they were written."""

import json
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from ltr import verify
from ltr.data import DataError, half_split, load
from ltr.exact import _recorder
from ltr.exact.certificate import Certificate, certify
from ltr.exact.graded import GradedProblem
from ltr.exact.local_search import local_search
from ltr.exact.preferences import PairwiseProblem
from ltr.exact.problem import LinearConstraints, RerankProblem
from ltr.exact.solution import Solution, Status
from ltr.exact.solve import solve
from tests.reference import cell_optimum, cell_optimum_pairs, random_instance, random_pairwise


def solution(problem, w, bound=None):
    """Weights as a heuristic hands them back."""
    bound = problem.trivial_bound if bound is None else bound
    return Solution(np.asarray(w, dtype=float), problem.evaluate(w), bound, Status.HEURISTIC, 0.0, "test")


def checked(problem, w, **options):
    """The certificate, once the checker has accepted it and its numbers are found to agree."""
    certificate = certify(problem, solution(problem, w), **options)
    claim, _ = verify.check(verify.parse(json.dumps(certificate.content)))
    assert certificate.claim == claim
    assert certificate.value == problem.evaluate(w)
    assert certificate.value <= certificate.bound
    assert (certificate.claim == "value") == (certificate.partition is None)
    return certificate


def larger_problem(seed, **options):
    """20 observations on 3 features, some rows repeated, tenths among them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    X[:, 2] = rng.integers(0, 4, size=20) / 10
    X[4:6] = X[0]
    y = (X @ rng.normal(size=3) + rng.normal(size=20) > 0).astype(int)
    return RerankProblem(X, y, **options)


# --- proofs of enumerated optima -------------------------------------------------------------------------------


def test_optima_of_all_statistics_prices_and_ranks_are_proven():
    claims = []
    for seed in range(78):  # every combination of them
        p = random_instance(seed)
        best, w = cell_optimum(p.X, p.y, p.statistic, p.C, p.rank)
        certificate = checked(p, w, max_boxes=5000)
        assert certificate.value == pytest.approx(best, abs=1e-9)
        claims.append(certificate.claim)
    # subranks of positives that tie with each other in places can be too many for boxes
    assert claims.count("optimal") >= 75


def test_optima_of_preferences_are_proven():
    for seed in range(60):
        p = random_pairwise(seed)
        best, w = cell_optimum_pairs(p.X, p.pairs, p.weights, p.C)
        certificate = checked(p, w, max_boxes=5000)
        assert certificate.value == pytest.approx(best, abs=1e-9)
        assert certificate.claim == "optimal"


def test_optima_under_side_constraints_are_proven():
    proven = 0
    for seed in range(60):
        base = random_instance(seed)
        A = np.random.default_rng(seed).integers(-1, 2, size=(2, base.d)).astype(float)
        sides = LinearConstraints(A, [0.0, 0.0])
        p = RerankProblem(base.X, base.y, base.statistic, base.C, rank=base.rank, constraints=sides)
        best, w = cell_optimum(p.X, p.y, p.statistic, p.C, p.rank, A=A)
        certificate = checked(p, w, max_boxes=5000)
        assert certificate.value == pytest.approx(best, abs=1e-9)
        proven += certificate.claim == "optimal"
    assert proven >= 54


def test_optima_of_few_weights_are_proven():
    proven = 0
    for seed in range(60):
        base = random_instance(seed)
        if base.d == 1:
            continue
        p = RerankProblem(base.X, base.y, base.statistic, base.C, rank=base.rank, max_nonzeros=base.d - 1)
        best, w = max(
            (
                (value, np.insert(part, j, 0.0))
                for j in range(base.d)
                for value, part in [cell_optimum(np.delete(p.X, j, axis=1), p.y, p.statistic, p.C, p.rank)]
            ),
            key=lambda found: found[0],
        )
        certificate = checked(p, w, max_boxes=5000)
        assert certificate.value == pytest.approx(best, abs=1e-9)
        assert certificate.problem.max_nonzeros == base.d - 1
        proven += certificate.claim == "optimal"
    assert proven >= 36


def test_optima_in_a_cut_off_cube_are_proven():
    proven = 0
    for seed in range(60):
        base = random_instance(seed)
        # half of every direction is feasible, and differences of whole numbers still reach the margin
        sides = LinearConstraints(np.vstack([np.ones(base.d), np.eye(base.d)]), [0.5, *[0.5] * base.d])
        p = RerankProblem(base.X, base.y, base.statistic, base.C, rank=base.rank, constraints=sides)
        best, w = cell_optimum(p.X, p.y, p.statistic, p.C, p.rank)
        certificate = checked(p, w / (2 * p.d), max_boxes=5000)
        assert certificate.value == pytest.approx(best, abs=1e-9)
        assert len(certificate.partition or [""]) == 1
        proven += certificate.claim == "optimal"
    assert proven >= 54


@pytest.mark.parametrize(
    ("A", "b"),
    [
        ([[1.0, -1, 0], [-1.0, 1, 0]], [0.0, 0.0]),  # w_0 = w_1
        ([[-1.0, 0, 0]], [-0.5]),  # w_0 >= 1/2: w = 0 is not feasible
        ([[1.0, 1, 1], [-1.0, -1, -1]], [1.0, -1.0]),  # the weights sum to 1
        (np.vstack([np.eye(3), -np.eye(3)]), np.full(6, 0.3)),  # a smaller cube
        ([[0.0, 0, 0]], [1.0]),  # a row that says nothing
    ],
)
@pytest.mark.parametrize("C", [0.0, 0.05])
def test_bounds_hold_for_feasible_weights(A, b, C):
    p = larger_problem(1, C=C, constraints=LinearConstraints(A, b))
    found = local_search(p, restarts=30, time_limit=60.0)
    certificate = checked(p, found.weights)
    rng = np.random.default_rng(0)
    others = [local_search(p, seed=seed, restarts=3, starts=[rng.normal(size=3)]).value for seed in range(5)]
    assert max(others) <= certificate.bound


def test_bounds_hold_for_what_the_tolerance_of_side_constraints_admits():
    # w_1 <= w_0 / (1 + 2e-9) and w_0 <= w_1 leave w_0 <= 0, but for the tolerance
    p = RerankProblem(
        [[0.0, 0.0], [1.0, 1.0]], [0, 1], constraints=LinearConstraints([[1, -1], [-1, 1 + 2e-9]], [0, 0])
    )
    assert p.feasible([1.0, 1.0])
    assert checked(p, [0.0, 0.0]).bound >= p.evaluate([1.0, 1.0])


# --- bounds of other weights -----------------------------------------------------------------------------------


def test_bounds_are_true_whatever_the_weights():
    for seed in range(80):
        p = random_instance(seed)
        best, _ = cell_optimum(p.X, p.y, p.statistic, p.C, p.rank)
        certificate = checked(p, np.random.default_rng(seed).integers(-2, 3, size=p.d) / 2.0, max_boxes=1000)
        assert certificate.bound >= best - 1e-9
        assert certificate.claim != "optimal" or certificate.value >= best - 1e-9


def test_rounding_spoils_nothing():
    # w·δ meets the margin up to rounding at many corners of boxes
    boxes = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        unit = [0.1, 1e-9, 1e8 / 3, 1e150, 1e-160][seed % 5]
        X = rng.integers(0, 6, size=(8, 3)) * unit
        margin = [1.0, 0.3, 2.0, 0.5][seed % 4] * unit
        y = [1, 0, 1, 0, 1, 0, 0, 1]
        p = RerankProblem(X, y, ["dcg", "auc", "mrr"][seed % 3], [0.0, 0.01][seed % 2], margin)
        found = local_search(p, restarts=5)
        certificate = checked(p, found.weights, max_boxes=2000)
        grid = rng.integers(-8, 9, size=(50, 3)) / 8.0
        assert max(p.evaluate(w) for w in grid) <= certificate.bound
        boxes += certificate.boxes
    assert boxes > 2000


def test_a_pair_that_wins_by_less_than_rounding_is_not_taken_for_lost():
    fooled = 0
    for seed in range(200):
        delta = np.random.default_rng(seed).uniform(-1, 1, size=6)
        reach = sum(abs(Fraction(v)) for v in delta.tolist())  # the largest w·δ, at the corner sign(δ)
        margin = float(reach) if float(reach) <= reach else math.nextafter(float(reach), 0)
        p = RerankProblem([delta, np.zeros(6)], [1, 0], "auc", margin=margin)
        corner = np.sign(delta)
        assert p.evaluate(corner) == 1.0
        total = 0.0
        for v in np.abs(delta).tolist():
            total += v
        fooled += total < margin
        assert checked(p, np.zeros(6), max_boxes=3000).bound >= 1.0
    assert fooled >= 10


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


def test_the_checker_makes_as_many_checks_as_were_counted(monkeypatch):
    made = 0
    part = verify.Box.part

    def counted(box, j, low, high, *rest, **options):
        nonlocal made
        made += len(box.open) * ((low != box.low[j]) + (high != box.high[j]))
        return part(box, j, low, high, *rest, **options)

    monkeypatch.setattr(verify.Box, "part", counted)
    for C in (0.0, 0.02):
        p = larger_problem(2, C=C)
        w = local_search(p, restarts=30, time_limit=60.0).weights
        made = 0
        whole = checked(p, w)
        needed = made
        assert checked(p, w, max_checks=int(1.1 * needed)).content == whole.content
        for checks in (needed // 2, needed // 4):
            made = 0
            less = checked(p, w, max_checks=checks)
            assert less.bound > whole.bound
            assert made <= 1.1 * checks


def test_stopping_leaves_what_is_proven():
    p = larger_problem(4)
    w = local_search(p, restarts=5).weights
    assert checked(p, w, should_stop=lambda: True).claim == "value"
    assert checked(p, w, time_limit=1e-9).claim == "value"
    asked = iter(range(10**9))
    # six faces are asked about at each bound: the value itself, then a higher one
    stopped = [checked(p, w, max_boxes=300, should_stop=lambda n=n: next(asked) > n).bound for n in (3, 10, 30, 100)]
    assert stopped[0] >= stopped[-1]


def test_long_searches_are_done_in_pieces(monkeypatch):
    p = larger_problem(2)
    w = local_search(p, restarts=30, time_limit=60.0).weights
    whole = checked(p, w)
    monkeypatch.setattr(_recorder, "_WORK", 1)  # a piece a box
    assert checked(p, w).content == whole.content


# --- real lists ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gaussians", {}),
        ("haberman", {}),
        ("haberman", {"statistic": "auc", "C": 0.01}),
        ("haberman", {"statistic": "mrr", "rank": "subrank"}),
    ],
)
def test_full_lists_are_proven_optimal(name, options, tmp_path):
    try:
        data = load(name)
    except DataError as error:
        pytest.skip(str(error))
    train, _ = half_split(len(data.y), seed=0)
    p = RerankProblem(data.X[train], data.y[train], **options)
    found = local_search(p, restarts=100, time_limit=60.0)
    certificate = certify(p, solution(p, found.weights))
    certificate.write(tmp_path / "certificate.json")
    again = Certificate.read(tmp_path / "certificate.json")
    assert again.verify().startswith("optimal: ")
    assert again.boxes < 5000


# --- files -----------------------------------------------------------------------------------------------------

SIDES = LinearConstraints([[1.0, 0.1, -1.0 / 3.0]], [0.1])


@pytest.mark.parametrize(
    "problem",
    [
        larger_problem(0),
        larger_problem(0, statistic="dcg(base=e)@7", C=0.1, margin=1.0 / 3.0, rank="subrank", constraints=SIDES),
        PairwiseProblem(
            larger_problem(0).X, [(0, 1), (7, 3)], weights=[0.1, 2.0], C=1e-3, constraints=SIDES, max_nonzeros=2
        ),
    ],
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
    p = again.problem
    assert type(p) is type(problem)
    assert (p.X.tolist(), p.C, p.margin) == (problem.X.tolist(), problem.C, problem.margin)
    assert p.max_nonzeros == problem.max_nonzeros
    assert p.evaluate(again.weights) == again.value == problem.evaluate([-0.1, 1e-7, 0.0])
    if problem.constraints is None:
        assert p.constraints is None
    else:
        assert (p.constraints.A.tolist(), p.constraints.b.tolist()) == (SIDES.A.tolist(), SIDES.b.tolist())
    if isinstance(p, PairwiseProblem):
        assert (p.pairs.tolist(), p.weights.tolist()) == (problem.pairs.tolist(), problem.weights.tolist())
    else:
        assert (p.y.tolist(), p.statistic, p.rank) == (problem.y.tolist(), problem.statistic, problem.rank)
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "certificate.json: cannot be read: Expecting value"),
        ("[]", "certificate.json: format: must be 'ltr certificate'"),
        ('"value": 1', "certificate.json: cannot be read: Extra data"),
    ],
)
def test_files_that_are_none(text, message, tmp_path):
    path = tmp_path / "certificate.json"
    path.write_text(text)
    with pytest.raises(verify.CertificateError, match=message):
        Certificate.read(path)
    with pytest.raises(FileNotFoundError):
        Certificate.read(tmp_path / "none.json")


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


# --- arguments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("w", "options", "error", "message"),
    [
        ([1.0, 0.0, 0.0], {"max_boxes": -1}, ValueError, "max_boxes must be >= 0, got -1"),
        ([1.0, 0.0, 0.0], {"max_checks": -1}, ValueError, "max_checks must be >= 0, got -1"),
        ([1.0, 0.0, 0.0], {"time_limit": 0.0}, ValueError, "time_limit must be > 0, got 0.0"),
        ([1.0, 0.0, 0.0], {"time_limit": math.nan}, ValueError, "time_limit must be > 0, got nan"),
        ([0.0, 0.0, 1.0], {}, ValueError, "solution must have feasible weights"),
    ],
)
def test_arguments_against_their_rule_are_refused(w, options, error, message):
    p = larger_problem(0, constraints=LinearConstraints([[0.0, 0.0, 1.0]], [0.5]))
    with pytest.raises(error, match=message):
        certify(p, solution(p, w), **options)


def test_solutions_of_too_many_weights_are_refused():
    p = RerankProblem([[0.0, 1.0], [1.0, 0.0]], [0, 1], max_nonzeros=1)
    with pytest.raises(ValueError, match="solution must have feasible weights"):
        certify(p, solution(p, [0.5, 1.0]))


def test_solutions_of_nothing_and_of_other_problems_are_refused():
    p = larger_problem(0, constraints=LinearConstraints([[1.0, 0.0, 0.0]], [-2.0]))
    with pytest.raises(ValueError, match="solution must have feasible weights"):
        certify(p, solve(p, "local_search", time_limit=5))
    one, other = larger_problem(0), larger_problem(1)
    with pytest.raises(ValueError, match="solution must be of this problem, got value"):
        certify(other, solution(one, [1.0, 0.0, 0.0]))
    with pytest.raises(ValueError, match=r"w must have shape \(3,\), got \(2,\)"):
        certify(one, solution(random_instance(14), [1.0, 0.0]))
    graded = GradedProblem([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(TypeError, match="problem must be a RerankProblem or PairwiseProblem, got GradedProblem"):
        certify(graded, solution(graded, [1.0]))


def test_importing_certificates_loads_no_compiler_and_no_solver():
    heavy = ["numba", "scipy", "pyscipopt", "cvxpy", "torch"]
    program = f"import sys, ltr.exact.certificate; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
