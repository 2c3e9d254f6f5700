"""Rules on the questions of a card, and one direction for the thresholds of a column: brute force over all cards."""

import copy
import dataclasses
import functools
import itertools
import json
import threading

import numpy as np
import pandas as pd
import pytest

from ltr import verify
from ltr.cards import CardRanker, Questions
from ltr.cards.conditions import named_conditions
from ltr.exact import certify, solve
from ltr.exact.card_rules import CardRule
from ltr.exact.cards import CardProblem, CardSearch
from ltr.exact.solution import Status
from ltr.outcomes import survival_labels, uplift_labels
from tests.exact.test_card_search import follows, rules_for
from tests.exact.test_points import grid, mixed
from tests.tiers import examples
from trainers.cli import main


def test_columns_of_numbers_follow_the_rules():
    for seed in range(examples(25, 300)):
        rng, free = np.random.default_rng([11, seed]), mixed(seed)
        rules, _ = rules_for(rng, free.d)
        problem = dataclasses.replace(free, conditions=dataclasses.replace(free.conditions, rules=rules))
        most, every = problem.points, list(grid(problem.points, problem.d))
        kept = [card for card in every if free.feasible(card / most) and follows(card.tolist(), rules, None)]
        assert len(kept) == sum(problem.feasible(card / most) for card in every)
        values = [problem.evaluate(card / most) for card in kept]
        solution = solve(problem, CardSearch())
        if values:
            assert solution.value == pytest.approx(max(values), abs=1e-9)
            assert solution.status is Status.OPTIMAL
        else:
            assert solution.status is Status.INFEASIBLE


CHANGES = [
    (("rules", 0, "at_least"), 2),
    (("rules", 0, "columns"), [0, 9]),
    (("rules", 0, "columns"), [1, 1]),
    (("rules", 0, "at_most"), 0),
    (("rules", 1, "when"), [0]),
    (("directions",), [0, 0, -1]),
    (("directions",), [-1, -1, -1, -1]),
    (("rules",), []),
    *((("least_points",), [value] * 4) for value in (0, 3, 4)),
]


def ruled():
    """The certificate of a card under rules and directions, whose points are 2 or 3 in size."""
    rng = np.random.default_rng(5)
    X = (rng.random((30, 4)) < 0.5).astype(float)
    y = (X @ [2, -2, 1, 1] + rng.logistic(size=30) > 1).astype(int)
    rules = [CardRule([2, 3], at_least=1), CardRule([1], at_most=0, when=[3])]
    options = {"points": 3, "least_points": 2, "max_nonzeros": 2, "directions": [0, 0, -1, -1]}
    problem = CardProblem(X, y, rules=rules, **options)
    return copy.deepcopy(certify(problem, solve(problem)).content)


@pytest.mark.parametrize(("path", "value"), CHANGES)
def test_changes_of_rules_are_found(path, value):
    content, (*inner, last) = ruled(), path
    functools.reduce(lambda node, key: node[key], inner, content["problem"])[last] = value
    with pytest.raises(verify.CertificateError):
        verify.check(verify.parse(json.dumps(content)))


def test_points_that_are_too_small_are_found():
    content = ruled()
    content["weights"] = np.sign(content["weights"]).tolist()
    with pytest.raises(verify.CertificateError, match="at least 2 in size, got"):
        verify.check(content)


def people(n=300):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.integers(20, 80, n), "income": rng.integers(1, 9, n), "town": rng.choice(list("ab"), n)}
    )
    chance = 0.1 + 0.3 * (table["age"] >= 50) + 0.3 * (table["income"] <= 3) + 0.1 * (table["town"] == "a")
    return table, (rng.random(n) < chance).astype(int)


def test_rules_by_name_are_met_stated_and_proven():
    table, y = people()
    rules = [{"at_least": 1, "of": ["town"]}, {"at_most": 1, "of": ["age", "income"]}]
    ranker = CardRanker(max_questions=3, rules=rules, within=0).fit(table, y)
    columns = [question.column for question in ranker.card_.questions]
    assert "town" in columns
    assert sum(name in ("age", "income") for name in columns) <= 1
    assert "(at least 1 of town; at most 1 of age, income) has a larger AUC" in ranker.card_.proof
    assert "optimal" in ranker.certificate().verify()
    only = [{"at_least": 1, "of": ["town"], "when": ["age"]}]
    questions = Questions().fit(table)
    conditions, words = named_conditions(CardRanker(rules=only, one_direction=["age"]), questions)
    assert words[0] == "at least 1 of town where it has age"
    (rule,) = conditions.rules
    assert {questions.rules_[j].column for j in rule.when} == {"age"}
    free = CardRanker(max_questions=4, within=0).fit(table, y).card_
    alike = CardRanker(max_questions=4, within=0, one_direction=True).fit(table, y).card_
    sized = CardRanker(max_questions=3, least_points=2, points=3, within=0).fit(table, y)
    assert {abs(points) for points in sized.card_.points} <= {2, 3}
    assert "(points of size 2 or more) has a larger AUC" in sized.card_.proof
    assert "optimal" in sized.certificate().verify()
    for column in ("age", "income"):
        assert len({p > 0 for q, p in zip(alike.questions, alike.points, strict=True) if q.column == column}) <= 1
    assert alike.value <= free.value + 1e-12
    assert "thresholds of a column with points of one sign" in alike.proof
    assert set(conditions.directions[[q.column != "age" for q in questions.rules_]]) == {-1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": [{"at_least": 1, "of": ["agee"]}]}, r"rules\[0\].of must name columns .* 'agee' .*'age'"),
        ({"rules": [{"of": ["age"]}]}, r"rules\[0\] must have at_least or at_most"),
        ({"rules": [{"at_least": 1}]}, r"rules\[0\] must be a mapping of of, and at_least"),
        ({"rules": [{"at_least": 9, "of": ["age"]}]}, r"rules\[0\]: at_least must be a whole number from 0 to 6"),
        ({"rules": "age"}, "rules must be a sequence of mappings"),
        ({"one_direction": ["agee"]}, "one_direction must name columns or questions, got 'agee' .*'age'"),
        (
            {"rules": [{"at_least": 2, "of": ["age"]}], "one_per_feature": True},
            "no card of at most 4 questions meets all conditions: at most one question of a column; at least 2 of age",
        ),
    ],
)
def test_wrong_conditions_are_refused(options, message):
    table, y = people()
    with pytest.raises(ValueError, match=message):
        CardRanker(**options).fit(table, y)


def test_a_config_and_the_command_have_rules(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, y = people()
    table.assign(ill=y).to_csv("people.csv", index=False)
    rule = 'card.rules=[{at_least = 1, of = ["town"]}]'
    assert main(["card", "people.csv", "--label", "ill", rule, "card.one_direction=age"]) == 0
    shown = capsys.readouterr().out
    assert "town = " in shown
    assert "at least 1 of town" in " ".join(shown.split())
    assert main(["card", "people.csv", "--label", "ill", "card.one_direction=3"]) == 2
    assert "card.one_direction: must be true, false, or a list of column names" in capsys.readouterr().err


def middle(seed):
    """A problem about pairs with more columns than questions, all its cards, and their values, -inf for those refused.

    `pairs` has the weight of each pair of rows of which the first should stand above the second. The sum of the weights
    of those in order is the statistic up to a factor and a constant, which two cards show.
    """
    rng = np.random.default_rng([13, seed])
    n, d, k = int(rng.integers(10, 60)), int(rng.integers(6, 9)), int(rng.integers(2, 5))
    X = (rng.random((n, d)) < rng.uniform(0.2, 0.8, d)).astype(float)
    X[:, 1] = X[:, 0] if rng.random() < 0.2 else X[:, 1]
    X[:, 2] = 1 - X[:, 3] if rng.random() < 0.2 else X[:, 2]
    score = X @ rng.normal(size=d) + rng.logistic(size=n)
    statistic = ("auc", "c_index", "wrs", "auuc")[seed % 4]
    if statistic == "auc":
        y = (score > 0).astype(int)
        y[:2] = (0, 1)
        pairs = np.subtract.outer(y, y).clip(0)
    elif statistic == "c_index":
        time, event = np.round(np.exp(-score / 2), 1) + 0.1, rng.random(n) < 0.7
        time[0], event[0] = 0.01, True
        later = (time[:, None] < time) | ((time[:, None] == time) & ~event)  # censored at the same time, too
        y, pairs = survival_labels(time, event), np.where(event[:, None], later, 0.0)
    elif statistic == "wrs":
        y = np.digitize(score, [0.0, 1.0, 2.0])
        pairs = np.subtract.outer(2.0**y, 2.0**y).clip(0)
    else:
        outcome, treatment = (score > 0).astype(int), (np.arange(n) + rng.integers(2)) % 2
        share = outcome * np.where(treatment == 1, 1 / (treatment == 1).sum(), -1 / (treatment == 0).sum())
        y, pairs = uplift_labels(outcome, treatment), np.subtract.outer(share, share).clip(0)
    ties = str(rng.choice(["average", "resolved"])) if statistic in ("auc", "c_index") else "average"
    rules, directions = rules_for(rng, d) if rng.random() < 0.6 else ([], None)
    signs = rng.integers(-1, 2, d) if rng.random() < 0.3 else np.zeros(d, dtype=int)
    options = {"points": 2, "max_nonzeros": k, "ties": ties, "C": float(rng.choice([0.0, 0.0, 0.003]))}
    options |= {"signs": signs, "rules": rules, "directions": directions}
    every = np.array(list(itertools.product(range(-2, 3), repeat=d)), dtype=np.int8)
    every = every[((every != 0).sum(axis=1) <= k) & (every * signs >= 0).all(axis=1)].astype(int)
    totals = every @ X.T.astype(int)
    tie = 0.5 if ties == "average" else 0.0
    in_order = np.zeros(len(every))
    for i in np.flatnonzero(pairs.any(axis=1)):
        above, level = totals[:, i, None] > totals, totals[:, i, None] == totals
        in_order += above @ pairs[i] + tie * (level @ pairs[i])
    problem = CardProblem(X, y, statistic, **options)
    ends = [np.argmin(in_order), np.argmax(in_order)]
    shown = [problem.statistic_value(every[end] / 2) for end in ends]
    values = np.interp(in_order, in_order[ends], shown) - options["C"] * (every != 0).sum(axis=1)
    kept = np.array([follows(card, rules, directions) for card in every.tolist()])
    return problem, every, np.where(kept, values, -np.inf)


@pytest.mark.parametrize("part", range(4))
def test_bounds_of_parts_of_sets_lose_no_card(part):
    for seed in range(part * examples(4, 100), (part + 1) * examples(4, 100)):
        problem, cards, values = middle(seed)
        size = max(1.0, problem.trivial_bound)
        search = problem._search()
        stop = np.zeros(1, dtype=np.uint8)
        threading.Timer(1e-4 * (seed % 7), stop.fill, (1,)).start()
        search.search(problem.max_nonzeros, 1 + seed % 2, stop)
        best = values.max()
        assert search.bound + problem.shift >= best - 1e-12 * size, seed  # stopped or not
        solution = solve(problem, CardSearch(threads=1 + seed % 2))
        if best == -np.inf:
            assert solution.status is Status.INFEASIBLE, seed
            continue
        assert solution.status is Status.OPTIMAL, seed
        assert solution.value == pytest.approx(best, abs=1e-12 * size)
        if seed % 3 == 0:
            least = best - 0.01 * size
            good = problem.good_cards(least, most=1_000_000)
            assert all(value >= least - 1e-9 for value, _ in good)
            near = cards[values >= least + 1e-9]
            orders = {tuple(np.unique(problem.X @ card, return_inverse=True)[1]) for card in near}
            found = {tuple(np.unique(problem.X @ card, return_inverse=True)[1]) for _, card in good}
            assert orders <= found, seed
