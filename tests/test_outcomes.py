"""Times until an event and treatments: definitions by brute force, the best cards and weights, certificates, tables."""

import copy
import itertools
import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from ltr import RankStatistic, verify
from ltr.cards import Card, CardRanker
from ltr.exact import Demand, PairwiseProblem, RerankProblem, Status, certify, solve
from ltr.exact.cards import CardProblem, CardSearch
from ltr.outcomes import Times, Treatments, label_kind, survival_labels, uplift_labels
from tests.exact.stated_problem import stated_problem
from tests.tiers import examples
from trainers.cli import main


def comparable(i, k, time, event):
    return bool(event[i]) and (time[i] < time[k] or (time[i] == time[k] and not event[k]))


def concordance(totals, time, event, tied):
    """Harrell's C straight from its definition: a tie of scores counts `tied`."""
    won = pairs = Fraction(0)
    for i, k in itertools.permutations(range(len(time)), 2):
        if comparable(i, k, time, event):
            pairs += 1
            won += 1 if totals[i] > totals[k] else tied if totals[i] == totals[k] else 0
    return won / pairs


def uplift_area(totals, outcome, treatment):
    """The area under the curve of differences among the first 0, 1, ..., n rows, as the mean over orders of ties."""
    n, treated, totals = len(outcome), int(sum(treatment)), list(map(int, totals))
    z = [Fraction(y) / (treated if t else treated - n) for y, t in zip(outcome, treatment, strict=True)]
    area = Fraction(0)
    for i in range(n):
        above = sum(other > totals[i] for other in totals)
        equal = sum(other == totals[i] for other in totals)
        # the row is among the first k from its place on; trapezoids count its own place by half
        place = above + Fraction(equal + 1, 2)
        area += z[i] * (n - place + Fraction(1, 2)) / n
    return area


def instance(seed):
    """A small problem of cards with labels of two fields: (problem, value of a card by definition, its labels)."""
    rng = np.random.default_rng([38, seed])
    n, d = int(rng.integers(3, 13)), int(rng.integers(1, 5))
    X = (rng.random((n, d)) < rng.uniform(0.2, 0.8)).astype(float)
    time, event = rng.integers(0, 6, n), rng.random(n) < 0.7
    treatment, outcome = rng.random(n) < 0.5, rng.integers(0, 2 + (rng.random() < 0.3), n)
    group = (rng.random(n) < 0.4).astype(float)
    times = rng.random() < 0.6
    ties = "resolved" if times and rng.random() < 0.4 else "average"
    options = {"points": int(rng.integers(1, 4)), "max_nonzeros": int(rng.integers(1, min(d, 3) + 1)), "ties": ties}
    options |= {"C": float(rng.choice([0, 0, 0.01, 0.05]))}
    kind, demands = rng.random(), []
    try:
        if kind < 0.25:
            demands = [Demand(f"hits@{rng.integers(1, n)}", float(rng.integers(0, 2)), labels=group)]
        elif kind < 0.4:
            other = survival_labels(rng.integers(0, 6, n), rng.random(n) < 0.7)
            demands = [Demand("c_index", float(rng.choice([0.4, 0.5, 0.6])), labels=other)]
        elif kind < 0.5:
            demands = [Demand("auc", 0.55, labels=group)]
        elif kind < 0.6 and ties == "average":
            other = uplift_labels(rng.integers(0, 2, n), rng.random(n) < 0.5)
            demands = [Demand("auuc", float(rng.choice([-0.1, 0.0, 0.1])), labels=other)]
        labels = survival_labels(time, event) if times else uplift_labels(outcome, treatment)
        problem = CardProblem(X, labels, "c_index" if times else "auuc", demands=demands, **options)
    except ValueError:  # no comparable pair, one treatment arm, or the like
        return None

    def value(card):
        totals = (X.astype(int) @ card).tolist()
        tied = Fraction(1, 2) if ties == "average" else Fraction(0)
        own = concordance(totals, time, event, tied) if times else uplift_area(totals, outcome.tolist(), treatment)
        return own - Fraction(options["C"]) * int(np.count_nonzero(card))

    return problem, value


def cards_of(problem):
    every = itertools.product(range(-problem.points, problem.points + 1), repeat=problem.d)
    return [np.array(card) for card in every if problem.feasible(np.array(card) / problem.points)]


@pytest.mark.parametrize("part", range(2))
def test_the_best_card_is_that_of_brute_force_and_its_certificate_proves_it(part):
    seen = set()
    for seed in range(part * examples(60, 1250), (part + 1) * examples(60, 1250)):
        made = instance(seed)
        if made is None:
            continue
        problem, value = made
        values = [value(card) for card in cards_of(problem)]
        solution = solve(problem, CardSearch(threads=1 + seed % 2))
        certificate = certify(problem, solution)
        content = verify.parse(json.dumps(certificate.content))
        seen.add(verify.check(content)[0])
        if not values:
            assert solution.status is Status.INFEASIBLE, seed
            continue
        best = max(values)
        assert solution.status is Status.OPTIMAL, seed
        assert solution.value == pytest.approx(float(best), abs=1e-12)
        assert float(best) - 1e-12 <= solution.bound <= float(best) + 1e-9
        for card, own in list(zip(cards_of(problem), values, strict=True))[:20]:
            assert problem.evaluate(card / problem.points) == pytest.approx(float(own), abs=1e-12)
            assert abs(verify.Cards(content["problem"]).value(card.tolist()) - own) < 1e-13
            if label_kind(problem.y) == "treatments":
                area = Treatments.of(problem.y).auuc(problem.X @ card) - problem.C * np.count_nonzero(card)
                assert area == pytest.approx(float(own), abs=1e-13)
        again = stated_problem(content)
        assert again.evaluate(solution.weights) == pytest.approx(float(best), abs=1e-12)
        # no smaller bound is accepted
        content["proof"]["bound"] = content["value"] = content["claimed_bound"] = float(best) - 1e-6
        with pytest.raises(verify.CertificateError):
            verify.check(content)
    assert seen == {"optimal", "infeasible"} or part > 0


CHANGES = [
    ("c_index", "time", lambda values: [values[0] + 4.5, *values[1:]]),
    ("c_index", "event", lambda values: [1 - values[0], *values[1:]]),
    ("c_index", "time", lambda values: [-1.0, *values[1:]]),
    ("c_index", "event", lambda values: [2, *values[1:]]),
    ("c_index", "event", lambda values: [0] * len(values)),
    ("c_index", "time", lambda values: values[1:]),
    ("c_index", "statistic", lambda text: "auc"),
    ("c_index", "gains", lambda values: [1.0] * 30),
    ("c_index", "a", lambda values: [1.0] * 30),
    ("auuc", "outcome", lambda values: [values[0] + 1.0, *values[1:]]),
    ("auuc", "treatment", lambda values: [1 - values[0], *values[1:]]),
    ("auuc", "treatment", lambda values: [1] * len(values)),
    ("auuc", "treatment", lambda values: [3, *values[1:]]),
    ("auuc", "outcome", lambda values: [0.0] * len(values)),
    ("auuc", "statistic", lambda text: "wrs"),
    ("auuc", "a", lambda values: [*values[:-1], values[-1] + 1]),
    ("auuc", "event", lambda values: [1] * 30),
]


@pytest.mark.parametrize(("statistic", "field", "change"), CHANGES)
def test_changes_of_labels_are_found(statistic, field, change):
    rng = np.random.default_rng(1)
    n = 30
    X = (rng.random((n, 4)) < 0.5).astype(float)
    times = survival_labels(rng.integers(1, 9, n), rng.random(n) < 0.7)
    labels = times if statistic == "c_index" else uplift_labels(rng.integers(0, 2, n), rng.random(n) < 0.5)
    problem = CardProblem(X, labels, statistic, points=3, max_nonzeros=2)
    content = copy.deepcopy(certify(problem, solve(problem)).content)
    content["problem"][field] = change(content["problem"].get(field))
    for repaired in (False, True):
        if repaired:  # as one would who changes the data and their hash
            content["problem"]["sha256"] = verify.data_digest(content["problem"])
        with pytest.raises(ValueError, match=r"problem|value|proof|weights"):
            verify.check(verify.parse(json.dumps(content)))


def test_comparable_pairs_scores_and_ties_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    for _ in range(examples(100, 1000)):
        n = int(rng.integers(2, 14))
        time, event, scores = rng.integers(0, 6, n), rng.random(n) < 0.6, rng.integers(0, 5, n)
        pairs = sorted((i, k) for i in range(n) for k in range(n) if comparable(i, k, time, event))
        if not pairs:
            continue
        times = Times.of(survival_labels(time, event))
        assert times.pairs == len(pairs)
        won, equal = (sum(how(scores[i], scores[k]) for i, k in pairs) for how in (np.greater, np.equal))
        assert times.ordered(scores) == (won, equal)


def test_weights_for_both_kinds_are_proven_and_no_sampled_weights_exceed_them():
    rng = np.random.default_rng(0)
    for seed in range(examples(6, 30)):
        X = rng.normal(size=(12, 2))
        time, event = rng.integers(1, 9, 12), rng.random(12) < 0.8
        treatment = np.arange(12) % 2 == 0
        outcome = rng.integers(0, 2, 12) if seed % 2 else rng.normal(size=12).round(2)
        outcome[0] = 1
        pairs = np.array([(i, k) for i in range(12) for k in range(12) if comparable(i, k, time, event)])
        for problem in (
            PairwiseProblem(X, pairs, weights=np.full(len(pairs), 1 / len(pairs))),
            RerankProblem(X, uplift_labels(outcome, treatment), "auuc"),
        ):
            solution = solve(problem, "weight_space")
            certificate = certify(problem, solution)
            assert verify.check(verify.parse(json.dumps(certificate.content)))[0] == "optimal"
            assert stated_problem(certificate).evaluate(solution.weights) == pytest.approx(solution.value)
            for w in rng.uniform(-1, 1, (200, 2)):
                assert problem.evaluate(w) <= certificate.bound + 1e-12
            if isinstance(problem, RerankProblem):
                found = problem.evaluate(w)
                assert found == pytest.approx(Treatments.of(problem.y).auuc(X @ w), abs=1e-12)


def test_statistics_and_labels_of_different_kinds_are_refused():
    times, treated = survival_labels([1, 2], [1, 1]), uplift_labels([1, 0], [1, 0])
    X = [[0.0], [1.0]]
    assert [label_kind(y) for y in ([0, 1], times, treated)] == ["labels", "times", "treatments"]
    for y, statistic, fitting in (([0, 1], "c_index", "auc"), (times, "auuc", "c_index"), (treated, "dcg", "auuc")):
        for build in (CardProblem, RerankProblem):
            with pytest.raises(ValueError, match=f"statistic {statistic} takes .* for which there is {fitting}"):
                build(X, y, statistic)
    with pytest.raises(ValueError, match="a PairwiseProblem of its pairs"):
        RerankProblem(X, times, "c_index")
    with pytest.raises(ValueError, match=r"must hold answers 0 and 1 for c_index, got 0\.5 at row 1, column 0"):
        CardProblem([[0.0], [0.5]], times, "c_index")
    with pytest.raises(ValueError, match="a single list"):
        RerankProblem(X, treated, "auuc", qid=[0, 1])
    for name in ("c_index", "auuc"):
        with pytest.raises(ValueError, match="a card maximises it"):
            RankStatistic.parse(name).check_linear()
        with pytest.raises(ValueError, match="for which there is auc"):
            RankStatistic.parse(name).value([1], 2)


def test_labels_of_other_libraries_are_read_and_others_refused():
    foreign = np.array([(True, 3.0), (False, 5.0)], dtype=[("cens", "?"), ("days", "<f8")])
    assert Times.of(foreign).pairs == 1
    assert Times.of(np.array([(3, True), (5, False)], dtype=[("days", "<i8"), ("cens", "?")])).pairs == 1
    for wrong in ([1, 2], np.array([(1.0, 2.0)], dtype=[("a", "f8"), ("b", "f8")])):
        with pytest.raises(ValueError, match="survival_labels"):
            Times.of(wrong)
    with pytest.raises(ValueError, match="known to have its event first"):
        Times.of(survival_labels([1, 2], [0, 0]))
    with pytest.raises(ValueError, match="only treated rows"):
        Treatments.of(uplift_labels([1, 0], [1, 1]))
    with pytest.raises(ValueError, match="got 0 for all rows"):
        Treatments.of(uplift_labels([0, 0], [1, 0]))


# --- what totals mean


def survival_table(n=200):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(20, 80, n), "smoker": rng.choice(["yes", "no"], n)})
    risk = 0.05 * (table["age"] >= 50) + 0.05 * (table["smoker"] == "yes") + 0.01
    time, until = rng.exponential(1 / risk), rng.uniform(0, 60, n)
    return table, np.minimum(time, until).round(2) + 0.01, (time <= until).astype(int)


def test_a_card_of_times_says_what_its_totals_mean_and_is_read_back(tmp_path):
    table, time, event = survival_table()
    y = survival_labels(time, event)
    ranker = CardRanker("c_index").fit(table, y)
    card = ranker.with_rows("again", table, y)
    assert card.horizon == sorted(time[event == 1].tolist())[(int(event.sum()) - 1) // 2]
    assert card.counts[0].value == ranker.score(table, y) == Times.of(y).c_index(ranker.predict(table))
    assert card.counts[0].value >= 0.98 * ranker.solution_.value
    text = card.to_text()
    assert f"event by {card.horizon:g}: the share of rows with their event until then" in text
    assert "Cox regression on all" in text
    assert all(f"event by {card.horizon:g}" in form for form in (card.to_markdown(), card.to_html()))
    assert max(curve.times[-1] for curve in card.counts[0].curves) == time.max()
    assert len(card.plot().axes) == 3
    card.save(tmp_path / "card.json")
    assert Card.load(tmp_path / "card.json") == card
    ranker.save(tmp_path / "ranker")
    again = CardRanker.load(tmp_path / "ranker")
    assert again.with_rows("again", table, y) == card
    damaged = json.loads((tmp_path / "card.json").read_text())
    damaged["counts"][0]["estimates"] = damaged["counts"][0]["estimates"][1:]
    with pytest.raises(ValueError, match="an estimate for each total"):
        Card.from_dict(damaged)


def uplift_table(n=600):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(20, 80, n), "member": rng.choice(["yes", "no"], n)})
    treated = rng.random(n) < 0.5
    chance = 0.2 + treated * (0.4 * (table["age"] >= 50) - 0.15 * (table["member"] == "yes"))
    return table, (rng.random(n) < chance).astype(int), treated.astype(int)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_card_of_treatments_tells_the_effect_by_total(numbers):
    table, outcome, treated = uplift_table()
    outcome = outcome * 12.5 if numbers else outcome
    y = uplift_labels(outcome, treated)
    ranker = CardRanker("auuc").fit(table, y)
    [counts], totals = ranker.card_.counts, ranker.card_.totals(table)
    for total in counts.totals:
        own = totals == total
        effect = outcome[own & (treated == 1)].mean() - outcome[own & (treated == 0)].mean()
        estimate, low, high = counts.estimate(total)
        assert estimate == pytest.approx(effect)
        assert low < estimate < high
    assert counts.value == ranker.score(table, y) == pytest.approx(Treatments.of(y).auuc(totals))
    text = ranker.card_.to_text()
    assert "mean outcome of treated rows minus that of the others" in text
    assert ("%" in text.split("effect:")[0].split("interval")[1]) != numbers
    assert Card.from_dict(json.loads(json.dumps(ranker.card_.to_dict()))) == ranker.card_


def test_demands_about_labels_are_refused_and_those_about_groups_are_met():
    table, time, event = survival_table()
    y = survival_labels(time, event)
    with pytest.raises(ValueError, match=r"demands must be about groups .* 'recall@50 >= 0.5'"):
        CardRanker("c_index", demands=["recall@50 >= 0.5"]).fit(table, y)
    ranker = CardRanker("c_index", demands=["share(smoker = yes) @50 <= 0.3"], max_questions=2).fit(table, y)
    assert all(one.met for one in ranker.demands_.reached)
    for options, message in (({"horizon": -1}, "horizon must be a finite number > 0"), ({"horizon": "a"}, "horizon")):
        with pytest.raises(ValueError, match=message):
            CardRanker("c_index", **options).fit(table, y)
    with pytest.raises(ValueError, match="horizon goes with times"):
        CardRanker("auc", horizon=3).fit(table, event)


# --- tables and the command


@pytest.fixture
def patients(tmp_path):
    table, time, event = survival_table()
    path = tmp_path / "patients.csv"
    table.assign(days=time, died=np.where(event, "yes", "no")).to_csv(path, index=False)
    return path


@pytest.fixture
def customers(tmp_path):
    table, outcome, treated = uplift_table()
    path = tmp_path / "customers.csv"
    table.assign(mailed=np.where(treated, "yes", "no"), bought=outcome, spent=outcome * 7.5).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        ("patients", ["--event", "died", "--time", "days"], "Card for died = yes after days"),
        ("customers", ["--outcome", "bought", "--treatment", "mailed", "--drop", "spent"], "the effect of mailed on"),
    ],
)
def test_a_csv_becomes_a_card_a_page_and_a_ranked_csv_by_one_command(
    table, options, says, request, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = request.getfixturevalue(table)
    assert main(["card", str(path), *options, "-o", "card"]) == 0
    shown = capsys.readouterr().out
    assert says in shown
    assert "proven" in shown
    ranked = pd.read_csv(tmp_path / "card" / "ranked.csv")
    assert ranked["total"].is_monotonic_decreasing
    asked = {question.column for question in Card.load("card/card.json").questions}
    assert asked <= {"age", "smoker", "member"}
    assert main(["verify", "card/certificate.json"]) == 0
    assert main(["score", "card/card.json", str(path)]) == 0


BAD = [
    ("patients", {"days": -3.0}, "--event died --time days", "times until an event must be numbers >= 0, got -3"),
    ("patients", {"died": "maybe"}, "--event died --time days", "labels must be 0 and 1, or yes and no"),
    ("patients", {}, "--event died --time days --statistic auc", "must be c_index with data.time_to_event"),
    ("patients", {}, "--label died --drop days --statistic c_index", "must be one of plain labels, such as auc"),
    ("customers", {"mailed": "maybe"}, "--outcome bought --treatment mailed", "treatments must be 0 and 1, or yes"),
    ("customers", {"bought": None}, "--outcome bought --treatment mailed", "outcomes must be finite numbers, got none"),
    ("customers", {}, "--outcome bought --treatment mailed card.horizon=3", "horizon goes with times"),
]


@pytest.mark.parametrize(("table", "change", "options", "message"), BAD)
def test_bad_labels_get_one_clear_error(table, change, options, message, request, capsys):
    path = request.getfixturevalue(table)
    frame = pd.read_csv(path)
    for column, value in change.items():
        frame[column] = frame[column].astype(object)
        frame.loc[0, column] = value
    frame.to_csv(path, index=False)
    assert main(["card", str(path), *options.split()]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
