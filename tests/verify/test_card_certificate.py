"""Certificates of cards: the checker agrees with brute force, finds changes of any field, and needs seconds."""

import copy
import json

import numpy as np
import pytest

from ltr import verify
from ltr.data import half_split, load
from ltr.exact import solve
from ltr.exact.cards import CardProblem
from ltr.exact.certificate import Certificate, certify
from ltr.exact.solution import Solution, Status
from tests.exact.stated_problem import stated_problem


def certified(problem):
    return certify(problem, solve(problem))


def example(**options):
    rng = np.random.default_rng(0)
    X = (rng.random((40, 6)) < 0.5).astype(float)
    y = (X @ [2, 1, 0, 0, 1, -1] + rng.logistic(size=40) > 1).astype(int)
    given = {
        "C": 0.01,
        "max_nonzeros": 3,
        "signs": [1, 0, 0, 0, 0, -1],
        "groups": [0, -1, 1, 1, 0, -1],
        "required": [0],
    }
    return CardProblem(X, y, **given | options)


def rule_of(columns, least, most):
    return {"columns": columns, "when": [], "at_least": least, "at_most": most}


CHANGES = [
    ("value", lambda v: v + 1e-6, "value: is"),
    ("claimed_bound", lambda v: v - 1e-6, "claimed_bound: must be at least"),
    ("claim", lambda v: "bound", "claim: the file shows 'optimal'"),
    ("weights", lambda v: [-v[0], *v[1:]], r"\[0\]: must be 0 or a whole number from 0 to 5, at least 1"),
    ("weights", lambda v: [0.5, *v[1:]], r"\[0\]: must be 0 or a whole number from 0 to 5, at least 1"),
    ("weights", lambda v: [0.0, *v[1:]], "are not allowed: columns"),
    ("weights", lambda v: [1.0, 1.0, 1.0, 0.0, 0.0, -1.0], "are not allowed: columns 0, 1, 2, 5"),
    ("proof", lambda v: {"bound": v["bound"] + 1.0, "partition": []}, "claim: the file shows 'bound'"),
    ("proof", lambda v: {"bound": v["bound"] - 1e-9, "partition": []}, "proof.bound: must be at least the value"),
    ("proof", lambda v: None, "claim: the file shows 'value'"),
    ("problem.C", lambda v: 0.0, "problem.sha256"),
    ("problem.points", lambda v: 6, r"problem.least\[1\]: must be 0 or 6 in size"),
    ("problem.max_nonzeros", lambda v: 2, "problem.sha256"),
    ("problem.ties", lambda v: "resolved", "problem.sha256"),
    ("problem.least", lambda v: [0, -5, -5, -5, 0, -5], "problem.sha256"),
    ("problem.largest", lambda v: [5] * 6, "problem.sha256"),
    ("problem.largest", lambda v: [4, *v[1:]], r"problem.largest\[0\]: must be 0 or 5 in size, got 4"),
    ("problem.least_points", lambda v: [2] * 6, "at least 2 in size|problem.sha256"),
    ("problem.least_points", lambda v: [1, *[2] * 5], "problem.least_points: must be the same for all columns"),
    ("problem.free", lambda v: [1], "problem.free: must be empty"),
    ("problem.rules", lambda v: [rule_of([1], 0, 1)], "problem.sha256"),
    ("problem.rules", lambda v: [rule_of([1], 2, 1)], r"problem.rules\[0\]: must have 0 <= at_least <= at_most"),
    ("problem.directions", lambda v: [0] * 6, "must have one sign|problem.sha256"),
    ("problem.demands", lambda v: None, "problem.demands: must be of type list"),
    ("problem.unit", lambda v: 2, "problem.unit: must be a power of ten"),
    ("problem.groups", lambda v: [-1] * 6, "problem.sha256"),
    ("problem.required", lambda v: [1], "problem.sha256"),
    ("problem.statistic", lambda v: "mrr", r"problem.a\[0\]"),
    ("problem.a", lambda v: [*v[:-1], 2.0], "must be 1.0 for 'dcg'"),
    ("problem.gains", lambda v: [1.0 - g for g in v], "problem.sha256"),
    ("problem.X", lambda v: [v[1], v[0], *v[2:]], "problem.sha256"),
    ("problem.X", lambda v: ["0 " + v[0], *v[1:]], r"problem.X\[1\]: must be 7 whole numbers"),
    ("problem.sha256", lambda v: "0" * 64, "problem.sha256"),
]


@pytest.mark.parametrize(("place", "change", "message"), CHANGES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CHANGES)])
def test_changes_of_any_field_are_found(place, change, message):
    content = copy.deepcopy(certified(example(statistic="dcg")).content)
    assert verify.check(content)[0] == "optimal"
    *folder, name = place.split(".")
    where = content[folder[0]] if folder else content
    where[name] = change(where[name])
    with pytest.raises(verify.CertificateError, match=message):
        verify.check(verify.parse(json.dumps(content)))


def test_every_field_is_among_the_changes():
    content = certified(example()).content
    fields = {*content, *(f"problem.{name}" for name in content["problem"])} - {"problem", "format", "version"}
    assert fields - {"problem.kind"} == {place for place, _, _ in CHANGES}


def test_files_come_back_as_they_were_written(tmp_path):
    problem = example(statistic="dcg@10", ties="resolved")
    solution = solve(problem)
    certificate = certify(problem, solution)
    certificate.write(tmp_path / "card.json")
    again = Certificate.read(tmp_path / "card.json")
    assert again.content == certificate.content
    assert again.weights.tolist() == solution.weights.tolist()
    assert stated_problem(again).content() == problem.content()
    assert stated_problem(again).evaluate(again.weights) == certificate.value
    assert verify.main([str(tmp_path / "card.json"), "--require-proof"]) == 0
    assert again.verify().endswith(
        "problem: card, statistic dcg@10, ties resolved, points 5, max_nonzeros 3, C 0.01, required column 0, 2 signs, "
        f"4 grouped columns; data: 40 observations, 6 columns, sha256 {again.sha256}"
    )


def test_a_search_that_was_stopped_has_its_bound_proven():
    problem, card = example(), np.eye(6)[0]
    best = solve(problem)
    # the second is rounded to below what another card attains
    for bound in (best.bound + 0.1, np.nextafter(best.value, 0)):
        certificate = certify(problem, Solution(card, problem.evaluate(card), bound, Status.TIME_LIMIT, 0.0, "cards"))
        assert bound <= certificate.bound <= bound * (1 + 1e-12)
        assert certificate.verify().startswith("bound: ")


def test_too_many_sets_of_columns_get_no_proof():
    X = np.random.default_rng(0).integers(0, 2, (30, 200)).astype(float)
    problem = CardProblem(X, np.arange(30) % 2, max_nonzeros=4)
    assert verify.cards.MOST_SETS < 200**4 / 24
    weights = np.eye(200)[0]
    solution = Solution(weights, problem.evaluate(weights), problem.trivial_bound, Status.TIME_LIMIT, 0.0, "cards")
    assert certify(problem, solution).claim == "value"


@pytest.mark.parametrize("statistic", ["auc", "dcg"])
def test_a_card_of_four_questions_is_proven_in_seconds(statistic):
    data = load("diabetes")
    train, _ = half_split(len(data.y), 0)
    columns = [
        column >= cut for column in data.X[train].T for cut in np.unique(np.quantile(column, [0.2, 0.4, 0.6, 0.8]))
    ]
    X = np.unique(np.array(columns, dtype=float), axis=0).T
    certificate = certified(CardProblem(X, data.y[train], statistic, max_nonzeros=4))
    assert certificate.claim == "optimal"
    assert "sets of columns" in certificate.verify()
