"""Scoring systems: questions about messy tables, the card and its files, the ranker against brute force, commands."""

import contextlib
import copy
import dataclasses
import io
import itertools
import json
import math
import pickle
import re
from html.parser import HTMLParser
from pathlib import Path

import markdown_it
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from ltr.cards import Card, CardRanker, Counts, Question, Questions
from ltr.cards.conditions import named_conditions
from ltr.exact import Limits, Status, rank_ranges
from ltr.metrics import rank_statistic
from ltr.outcomes import wilson
from ltr.rankers import Ranker
from tests.exact.test_card_search import TRIALS, asked, larger_problem, order_of
from tests.paths import ROOT
from tests.tiers import examples, slow_but
from trainers.cli import main


def messy(n=80, seed=0):
    """A table with numbers, texts, booleans and missing values, and labels."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n).astype(float)
    mode = rng.choice(["bus", "car", "walk"], n).astype(object)
    smoker = rng.random(n) < 0.4
    y = (age / 30 + (mode == "bus") + smoker + rng.normal(size=n) > 2.7).astype(int)
    age[rng.random(n) < 0.1], mode[rng.random(n) < 0.1] = np.nan, None
    return pd.DataFrame({"age": age, "mode": mode, "smoker": smoker}), y


SMALL = pd.DataFrame({"age": [31.0, 58.0, None, 64.0, 35.0, 58.0], "mode": ["fast", "slow", "fast", None, " ", "idle"]})
SMALL["smoker"] = [True, False, True, True, False, False]
SMALL["sex"] = pd.Categorical(list("fmmmmf"))
SMALL["constant"] = 3
SMALL["not smoker"] = np.where(SMALL.smoker, "no", "yes")
SMALL["code"] = ["1", "2", "10", "2", "1", "2"]


@parametrize_with_checks([Questions(), CardRanker("dcg", 2, 2)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


# questions


def test_questions_about_a_messy_table():
    questions = Questions(cuts={"age": [40, 60]}).fit(SMALL)
    answers = dict(zip(questions.questions_, questions.transform(SMALL).T.tolist(), strict=True))
    assert answers == {
        "age >= 40": [0, 1, 0, 1, 0, 1],
        "age >= 60": [0, 0, 0, 1, 0, 0],
        "age is missing": [0, 0, 1, 0, 0, 0],
        "mode = fast": [1, 0, 1, 0, 0, 0],
        "mode = other": [0, 1, 0, 0, 0, 1],
        "mode is missing": [0, 0, 0, 1, 1, 0],
        "smoker = true": [1, 0, 1, 1, 0, 0],
        "sex = f": [1, 0, 0, 0, 0, 1],
        "code >= 2": [0, 1, 1, 1, 0, 1],
    }
    assert questions.groups_.tolist() == [0, 0, 0, 1, 1, 1, 2, 3, 6]
    assert questions.left_out_ == {
        "not smoker = yes": "the same as 'smoker = true', or its opposite",
        "code >= 10": "the same as 'age is missing', or its opposite",
    }
    assert questions.get_feature_names_out().tolist() == questions.questions_


def test_new_rows_may_have_unseen_texts_missing_values_and_other_columns():
    questions = Questions(cuts={"age": [40, 60]}).fit(SMALL)
    new = {"sex": ["x", None], "code": [3, "1.0"], "mode": ["boat", ""], "extra": [1, 2]}
    new |= {"smoker": ["TRUE", None], "age": [None, 60], "constant": [None, None]}
    yes = [
        {name for name, answer in zip(questions.questions_, row, strict=True) if answer}
        for row in questions.transform(pd.DataFrame(new))
    ]
    assert yes == [
        {"age is missing", "mode = other", "smoker = true", "code >= 2"},
        {"age >= 40", "age >= 60", "mode is missing"},
    ]


class Frame:
    """A frame of another library: columns by name, each an array."""

    def __init__(self, frame):
        self.columns, self._frame = list(frame.columns), frame

    def __getitem__(self, name):
        return np.asarray(self._frame[name], dtype=object)


@pytest.mark.parametrize("of", [Frame, lambda frame: frame[frame.columns[::-1]], lambda frame: frame.to_dict("list")])
def test_frames_of_other_libraries_and_orders_get_the_same_answers(of):
    questions = Questions().fit(SMALL)
    np.testing.assert_array_equal(questions.transform(of(SMALL)), questions.transform(SMALL))
    other = Questions().fit(of(SMALL))
    assert len(other.questions_) == len(questions.questions_)
    for copied in (pickle.loads(pickle.dumps(questions)), clone(questions).fit(SMALL), copy.deepcopy(questions)):
        np.testing.assert_array_equal(copied.transform(SMALL), questions.transform(SMALL))


@pytest.mark.parametrize("draw", ["normal", "integers", "lognormal", "few"])
def test_rounded_thresholds_split_the_training_rows_as_quantiles_do(draw):
    for seed in range(examples(20, slow=200)):
        rng = np.random.default_rng(seed)
        x = {
            "normal": lambda rng: rng.normal(0, 10.0 ** rng.integers(-6, 6), 60),
            "integers": lambda rng: rng.integers(-50, 50, 60).astype(float),
            "lognormal": lambda rng: rng.lognormal(3, 2, 60),
            "few": lambda rng: rng.choice(rng.normal(size=4), 60),
        }[draw](rng)
        found = [rule.value for rule in Questions(cuts=4).fit(x[:, None]).rules_]
        places = np.sort(x)[np.ceil(60 * np.arange(1, 5) / 5).astype(int) - 1]  # the inverse of the distribution
        expected = {tuple(x >= place) for place in places} if draw != "few" else {tuple(x >= v) for v in np.unique(x)}
        assert {tuple(x >= cut) for cut in found} == {split for split in expected if not all(split)}
        assert all(len(repr(cut)) <= len(repr(min(x, key=lambda v: abs(v - cut)))) + 2 for cut in found)


TWO = {"a": [1, 2, 3], "b": ["x", "y", "z"]}


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({}, {"when": pd.to_datetime(["2020-01-01", "2021-01-01"])}, "column 'when' .* not dates.* turn it into"),
        ({}, {"x": [1.0, math.inf]}, "column 'x' must hold finite numbers"),
        ({}, {"x": [1, 1]}, "must have a column that varies"),
        ({}, {"a": ["b = c", "d", "e"] * 9, "a = b": ["c", "d", "e"] * 9}, "'a = b = c' twice: rename a column"),
        ({"cuts": 0}, TWO, "cuts must be an integer >= 1"),
        ({"cuts": {"a": "40"}}, TWO, r"cuts\['a'\] must be a sequence of numbers"),
        ({"cuts": {"b": [1]}}, TWO, "column 'b' must hold numbers or missing values, got 'x' in row 1"),
        ({"forbidden": ["c"]}, TWO, "forbidden must name columns or questions, got 'c'"),
    ],
)
def test_mistakes_in_a_fit_get_one_clear_error(options, table, message):
    with pytest.raises(ValueError, match=message):
        Questions(**options).fit(pd.DataFrame(table))


def test_conditions_on_a_column_are_not_about_its_being_missing_and_those_on_a_question_come_first():
    questions = Questions(cuts={"age": [40, 60]}).fit(SMALL)
    signed = named_conditions(CardRanker(signs={"age >= 60": "-", "age": "+"}), questions)[0]
    assert signed.signs[:4].tolist() == [1, -1, 0, 0]
    limits = {"age is missing": (-1, 0), "age": (0, 3)}
    limited = named_conditions(CardRanker(point_limits=limits), questions)[0]
    assert limited.point_limits[:4].tolist() == [[0, 3], [0, 3], [-1, 0], [-5, 5]]


def test_missing_columns_are_named_together():
    questions = Questions().fit(SMALL)
    with pytest.raises(ValueError, match="X must have the columns 'age', 'mode', 'smoker'; it has sex, code"):
        questions.transform(SMALL[["sex", "code"]])
    with pytest.raises(ValueError, match="column 'age' must hold numbers or missing values, got 'old' in row 2"):
        questions.transform(SMALL.assign(age=[1, "old", 3, 4, 5, 6]))


# cards


CARD = Card(
    (
        Question("age", ">=", 59.5),
        Question("mode", "=", "bus"),
        Question("mode", "not in", ("bus", "car")),
        Question("smoker", "=", "true"),
        Question("age", "missing"),
    ),
    (3, -2, 1, 4, 2),
    label="ill",
)
# name -> what the names of its column and value could break
HOSTILE = Card(
    (
        Question("<b>a|b</b>", "=", "$x_1$ & 5% #~^\\{}"),
        Question("line\nbreak\x1b[31m", ">=", 1e-7),
        Question("*long* " * 30, "missing"),
    ),
    (1, -1, 5),
    label="<i>`it`</i>",
).with_totals("a<br>|b", [1, 0], [1, 0])


def hand_made():
    table, y = messy()
    return CARD.with_rows("training", table[:60], y[:60]).with_rows("test", table[60:], y[60:])


def test_points_are_listed_and_added_by_row():
    table = pd.DataFrame({"age": [59.5, 59, None], "mode": ["bus", None, "walk"], "smoker": [True, False, None]})
    points = CARD.explain(table.set_index(pd.Index(["a", "b", "c"])))
    assert points.to_numpy().tolist() == [[3, -2, 0, 4, 0, 5], [0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 2, 3]]
    assert points.columns.tolist() == [q.name for q in CARD.questions] + ["total"]
    assert points.index.tolist() == ["a", "b", "c"]
    assert CARD.totals(table.to_dict("list")).tolist() == [5, 0, 3]
    assert Card((), ()).totals(table).tolist() == [0, 0, 0]


def test_the_table_counts_rows_and_positives_by_total():
    table, y = messy()
    card, totals = hand_made(), CARD.totals(table)
    for counts, rows in zip(card.counts, (slice(60), slice(60, None)), strict=True):
        for total in set(totals.tolist()):
            chosen = y[rows][totals[rows] == total]
            assert counts.rows_of(total) == len(chosen)
            if len(chosen):
                assert counts.estimate(total) == (chosen.mean(), *wilson(chosen.sum(), len(chosen)))
        pairs = [(a > b) + (a == b) / 2 for a in totals[rows][y[rows] == 1] for b in totals[rows][y[rows] == 0]]
        assert counts.value == pytest.approx(np.mean(pairs), abs=1e-12)
    assert CARD.statistic_on(table, np.zeros(80)) is None
    with pytest.raises(ValueError, match="name must be a new one, got 'test'"):
        card.with_rows("test", table, y)
    with pytest.raises(ValueError, match="y must hold a label >= 0 for each of 80 rows"):
        CARD.with_rows("test", table, y[:9])


@pytest.mark.parametrize(("positives", "rows"), [(0, 5), (3, 10), (7, 7), (40, 90)])
def test_intervals_are_those_of_scipy(positives, rows):
    from scipy.stats import binomtest

    interval = binomtest(positives, rows).proportion_ci(0.9, "wilson")
    assert wilson(positives, rows) == pytest.approx((interval.low, interval.high), abs=1e-9)


@pytest.mark.parametrize("card", [hand_made(), HOSTILE, Card((), ())], ids=["plain", "hostile", "empty"])
def test_a_file_holds_the_whole_card(card, tmp_path):
    card.save(tmp_path / "card.json")
    read = Card.load(tmp_path / "card.json")
    assert read == card
    assert read.to_dict() == card.to_dict()


def changed(**changes):
    return json.dumps({**hand_made().to_dict(), **changes})


RULE = CARD.to_dict()["questions"][0]
COUNTS = {"name": "a", "totals": [1], "rows": [2], "positives": [1], "value": None}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, ""),
        (changed(version=2), "version of the card must be 1, got 2"),
        (changed(questions=[{**RULE, "value": 50}]), "question 'age >= 59.5' asks 'age >= 50'"),
        (changed(questions=[{**RULE, "operator": "<"}]), "Input should be '>=', '='"),
        (changed(questions=[{**RULE, "points": 1.5}]), "points.0: Input should be a valid integer"),
        (changed(counts=[{**COUNTS, "positives": [3]}]), "more positives than rows"),
    ],
)
def test_files_that_hold_no_card_are_refused(content, message, tmp_path):
    path = tmp_path / "card.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"{re.escape(str(path))}: .*{message}.*Card.save and `ltr card` write cards"):
        Card.load(path)


class Seen(HTMLParser):
    """The elements of a page and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.text += data


def joined(text):
    return " ".join(text.split())


NAMES = [joined(q.name.replace("\x1b", " ")) for q in HOSTILE.questions]


def test_names_of_all_kinds_are_shown_as_they_are():
    page = Seen(HOSTILE.to_html())
    assert not page.tags & {"b", "i", "br", "script"}
    rendered = Seen(markdown_it.MarkdownIt("gfm-like", {"linkify": False}).render(HOSTILE.to_markdown()))
    assert not rendered.tags & {"b", "i", "br", "em", "code", "del"}
    assert {"table", "td"} <= rendered.tags
    for name in (*NAMES, "a<br>|b", "<i>`it`</i>"):
        assert name in joined(page.text)
        assert name in joined(rendered.text)
    assert "\x1b" not in HOSTILE.to_text() + HOSTILE.to_html() + HOSTILE.to_markdown()


# the ranker


def value_of(points, answers, y, statistic, ties):
    totals = torch.from_numpy((answers @ points).astype(float))
    labels = torch.from_numpy(np.asarray(y, dtype=float))
    return float(rank_statistic(totals, labels, statistic, gain="exp2", ties=ties))


def allowed_cards(rules, most, points, groups, signs):
    """The points of all cards of at most `most` of the rules."""
    for card in itertools.product(range(-points, points + 1), repeat=len(rules)):
        used = np.flatnonzero(card)
        of = [groups[j] for j in used if groups[j] >= 0]
        if len(used) <= most and len(set(of)) == len(of) and all(card[j] * signs[j] >= 0 for j in used):
            yield np.array(card)


@pytest.mark.parametrize("seed", range(examples(4, slow=40)))
@pytest.mark.parametrize(
    ("statistic", "ties", "C"),
    [
        ("auc", "average", 0.0),
        ("dcg@5", "average", 0.05),
        ("mrr", "resolved", 0.0),
        ("hits@5", "average", 0.05),
        ("recall@4", "resolved", 0.0),
        ("precision@5", "average", 0.01),
    ],
)
def test_the_ranker_finds_the_best_card(seed, statistic, ties, C):
    rng = np.random.default_rng(seed)
    n = 14
    table = pd.DataFrame(
        {"x": rng.integers(0, 3, n), "flag": rng.random(n) < 0.5, "z": rng.choice([1.0, 2, np.nan], n)}
    )
    y = (table.x + table.flag + rng.normal(size=n) > 1).to_numpy().astype(int)
    y[:2] = 0, 1
    alone, signed = bool(seed % 2), seed % 3 == 0
    options = {"C": C, "ties": ties, "one_per_feature": alone, "signs": {"x": "-"} if signed else None}
    ranker = CardRanker(statistic, 2, 2, within=0, **options).fit(table, y)
    rules, answers = ranker.questions_.rules_, ranker.questions_.transform(table)
    groups = ["xfz".index(r.column[0]) if alone and r.operator != "missing" else -1 for r in rules]
    signs = [-1 if signed and r.column == "x" else 0 for r in rules]
    values = {
        tuple(card): value_of(card, answers, y, statistic, ties) - C * np.count_nonzero(card)
        for card in allowed_cards(rules, 2, 2, groups, signs)
    }
    best = max(values.values())
    assert ranker.card_.value == pytest.approx(best, abs=1e-12)
    assert ranker.solution_.status is Status.OPTIMAL
    chosen = dict(zip(ranker.card_.questions, ranker.card_.points, strict=True))
    assert values[tuple(chosen.get(rule, 0) for rule in rules)] == pytest.approx(best, abs=1e-12)
    np.testing.assert_array_equal(ranker.predict(table), ranker.card_.totals(table))
    assert ranker.score(table, y) == pytest.approx(best + C * len(chosen), abs=1e-12)
    # all good cards: those of brute force, each order of the rows once
    good = ranker.good_cards(within=0.1, most=10_000)
    orders = {order_of(card): value for card, value in values.items() if value >= best - 0.1 * abs(best) - 1e-9}
    assert good.within == 0.1
    assert sorted(card.value for card in good) == pytest.approx(sorted(orders.values()), abs=1e-12)
    assert good[0].value == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("within", slow_but([0.01, 0.05, None], [None]))
def test_of_all_good_cards_the_one_nearest_to_logistic_regression_is_taken(within):
    table, y = messy(120, 3)
    best = CardRanker(max_questions=2, points=3, within=0).fit(table, y)
    ranker = CardRanker(max_questions=2, points=3, within=within).fit(table, y)
    share = 0.02 if within is None else within
    answers = ranker.questions_.transform(table).astype(float)
    logistic = LogisticRegression(C=0.1).fit(answers, y).predict_proba(answers)[:, 1]
    every = np.array([*itertools.product(range(-3, 4), repeat=2)])
    found = -math.inf
    for pair in itertools.combinations(range(answers.shape[1]), 2):
        for points in every[every.any(axis=1)]:
            totals = answers[:, pair] @ points
            above = totals[y == 1][:, None] - totals[y == 0]
            if ((above > 0) + 0.5 * (above == 0)).mean() >= best.card_.value * (1 - share) - 1e-9:
                found = max(found, np.corrcoef(totals, logistic)[0, 1])
    assert np.corrcoef(ranker.card_.totals(table), logistic)[0, 1] == pytest.approx(found, abs=1e-6)
    card = ranker.card_
    assert card.bound == pytest.approx(best.card_.value)
    assert card.below <= share
    assert card.value == pytest.approx(roc_auc_score(y, card.totals(table)))
    said = "proven: no card" if card.below == 0 else f"proven: at most {100 * card.below:.2g} % below the largest AUC"
    assert card.proof.startswith(said)
    certificate = ranker.certificate()
    assert certificate.claim == ("optimal" if card.below == 0 else "bound")
    assert (certificate.value, certificate.bound) == (pytest.approx(card.value), pytest.approx(card.bound))
    assert str(round(card.value, 6)) in certificate.verify()


def test_required_and_forbidden_questions():
    table, y = messy()
    free = CardRanker(max_questions=2).fit(table, y).card_
    first = free.questions[0].name
    without = CardRanker(max_questions=2, forbidden=[first]).fit(table, y)
    assert first not in without.questions_.questions_
    assert without.card_.value < free.value
    with_walk = CardRanker(max_questions=2, required=["mode = walk"]).fit(table, y).card_
    assert "mode = walk" in [q.name for q in with_walk.questions]
    assert "(with mode = walk)" in with_walk.proof
    no_age = CardRanker(forbidden=["age"]).fit(table, y)
    assert {rule.column for rule in no_age.questions_.rules_} == {"mode", "smoker"}


def test_the_proof_names_what_was_searched_and_says_when_there_is_none():
    table, y = messy()
    options = {"points": 3, "signs": {"age": "+", "mode = bus": "+"}, "C": 0.001}
    ranker = CardRanker(**options, within=0).fit(table, pd.Series(y, name="ill"))
    q = len(ranker.questions_.questions_)
    assert ranker.card_.proof == (
        f"proven: no card of at most 4 of {q} questions with points from -3 to 3 (points of age not below 0; points of "
        "mode = bus not below 0) has a larger AUC minus 0.001 for each question"
    )
    assert ranker.card_.label == "ill"
    assert joined(ranker.card_.proof) in joined(str(ranker.card_))
    rng = np.random.default_rng(0)
    stopped = CardRanker(max_questions=6, limits=Limits(time_limit=0.1))
    stopped.fit(rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000))
    assert stopped.card_.proof.startswith("not proven (time_limit): no card of at most 6 of 100 questions")
    assert stopped.card_.bound > stopped.card_.value


def test_good_cards_are_narrowed_until_they_fit_and_tell_what_they_share():
    table, y = messy()
    ranker = CardRanker(max_questions=3).fit(table[:60], y[:60])
    every = ranker.good_cards(within=0.02, most=10_000)
    few = ranker.good_cards(within=0.02, most=len(every) - 1)
    assert len(every) > len(few) >= 1
    assert few.within < every.within == 0.02
    assert [card.value for card in few] == [card.value for card in every[: len(few)]]
    shares = every.shared()
    assert shares["age"] == np.mean([any(q.column == "age" for q in card.questions) for card in every])
    assert list(shares.values()) == sorted(shares.values(), reverse=True)
    frame = every.with_rows("test", table[60:], y[60:]).to_frame()
    assert frame.shape[0] == len(every)
    assert frame["auc (test)"].tolist() == [card.statistic_on(table[60:], y[60:]) for card in every]
    with pytest.raises(ValueError, match="most must be an integer >= 1"):
        ranker.good_cards(most=0)


def test_the_front_of_good_cards_has_those_that_no_other_exceeds_in_both():
    rng = np.random.default_rng(8)
    table = pd.DataFrame(rng.integers(0, 2, (60, 5)), columns=list("abcde"))
    y = (rng.random(60) < 0.2 + 0.3 * table["a"] + 0.3 * table["b"] * table["c"]).astype(int).to_numpy()
    every = CardRanker(max_questions=3).fit(table, y).good_cards(within=0.1, most=10_000)
    own = {card: (card.value, card.counts[0].log_loss) for card in every}
    for card in every.cards[:20]:
        assert own[card][1] == pytest.approx(log_loss(y, card.chance(card.totals(table)), labels=[0, 1]), abs=1e-12)
    front = every.front()
    assert len(front) > 1
    for card in front:
        assert not any(value > own[card][0] and loss < own[card][1] - 1e-12 for value, loss in own.values())
    for card in every:
        assert any(own[one][0] >= own[card][0] and own[one][1] <= own[card][1] + 1e-12 for one in front)
    frame = front.to_frame()
    assert frame["auc (training)"].is_monotonic_decreasing
    assert frame["log loss (training)"].is_monotonic_decreasing
    with pytest.raises(ValueError, match="front needs cards that tell chances"):
        dataclasses.replace(every, cards=(dataclasses.replace(CARD, counts=()),)).front()


def test_copies_and_files_of_a_ranker_score_alike(tmp_path):
    table, y = messy()
    ranker = CardRanker("dcg", cuts={"age": [40, 60]}, signs={"age": "+"}, limits=Limits(time_limit=50)).fit(table, y)
    ranker.save(tmp_path / "ranker.pt")
    for other in (Ranker.load(tmp_path / "ranker.pt"), pickle.loads(pickle.dumps(ranker))):
        assert other.card_ == ranker.card_
        np.testing.assert_array_equal(other.predict(table[::-1]), ranker.predict(table[::-1]))
        assert str(other.get_params()) == str(ranker.get_params())
        assert other.problem_ is None
        with pytest.raises(ValueError, match="good_cards needs a ranker fitted in this process"):
            other.good_cards()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signs": {"age": "up"}}, r"signs\['age'\] must be one of '\+', '-', got 'up'"),
        ({"signs": {"mode": "+"}}, r"signs\['mode'\]: the column is text; name one of its questions, 'mode = "),
        ({"required": ["age"]}, r"required must name questions, got 'age' \(no such question\)"),
        ({"statistic": "ap"}, "statistic ap: average precision is no sum .* nearest are 'dcg' .* 'hits@50'"),
    ],
)
def test_mistakes_in_a_ranker_get_one_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        CardRanker(**options).fit(*messy())


# the command line, and the page


def run(*arguments):
    """Exit code and everything printed."""
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        try:
            return main([*map(str, arguments)]), out.getvalue()
        except SystemExit as end:  # from argparse
            return end.code, out.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, y = messy()
    table.insert(0, "id", [f"={row}+1" for row in range(len(table))])
    table.assign(ill=np.where(y, "yes", "no"), risk=y).to_csv("table.csv", index=False)
    return tmp_path


def test_a_card_is_found_written_and_applied(folder):
    options = ("--label", "ill", "--positive", "yes", "--drop", "risk", "--questions", 2, "--seed", 3)
    code, printed = run("card", "table.csv", *options, "-o", "card")
    assert code == 0
    assert "column 'id' is left out: all 80 texts differ" in printed
    card, table = Card.load("card/card.json"), pd.read_csv("table.csv")
    assert str(card) in printed
    y, order = (table.ill == "yes").astype(int), np.random.default_rng(3).permutation(80)
    train, test = np.sort(order[:40]), np.sort(order[40:])
    ranker = CardRanker(max_questions=2).fit(table.iloc[train].drop(columns=["ill", "risk"]), y[train])
    expected = ranker.with_rows("test", table.iloc[test], y[test])
    assert (card.questions, card.points, card.counts) == (expected.questions, expected.points, expected.counts)
    assert {path.name for path in Path("card").iterdir()} == {
        *(f"card.{end}" for end in ("json", "csv", "md", "html", "png", "svg")),
        "certificate.json",
        "ranked.csv",
    }
    assert run("verify", "card/certificate.json", "--require-proof")[0] == 0
    ranked = pd.read_csv("card/ranked.csv")
    assert ranked.total.is_monotonic_decreasing
    assert set(ranked.row[ranked["used for"] == "training"] - 1) == set(train)
    code, printed = run("score", "card/card.json", "table.csv")
    assert code == 0
    scored = pd.read_csv(io.StringIO(printed))
    assert scored.total.tolist() == card.totals(table).tolist()
    assert scored[[q.name for q in card.questions]].sum(axis=1).tolist() == scored.total.tolist()
    assert scored.id[3] == "=3+1"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("card table.csv --label ill data.decimals=,", "data.decimals: unknown key (did you mean 'decimal'?)"),
        ("card table.csv --label age", "column 'age': labels must not be missing, got none in row "),
        ("card table.csv --label risk --questions 7", "card.max_questions: must be <= 6 for a rank statistic, got 7"),
        ("card dated.csv --label risk", "dated.csv: no column that a card may ask about: 'when' (date)"),
        ("card table.csv --label risk --drop ill -o table.csv", "--output: cannot write table.csv"),
        ("score card.json dated.csv", "dated.csv: X must have the columns 'age', 'mode', 'smoker'; it has when, risk"),
    ],
)
def test_mistakes_in_a_command_get_one_clear_error(folder, command, message):
    CARD.save("card.json")
    Path("dated.csv").write_text("when,risk\n2020-01-01,1\n2021-03-01,0\n2021-03-02,0\n2021-03-03,1\n")
    code, printed = run(*command.split())
    assert code == 2
    assert message in printed
    assert "Traceback" not in printed


def test_the_card_states_logistic_regression_on_all_questions_beside_its_own_value():
    table, y = messy()
    ranker = CardRanker(max_questions=2).fit(table[::2], y[::2])
    card = ranker.with_rows("test", table[1::2], y[1::2])
    questions = ranker.questions_
    other = LogisticRegression(C=0.1).fit(questions.transform(table[::2]), y[::2])
    for counts, part in zip(card.counts, (slice(0, None, 2), slice(1, None, 2)), strict=True):
        scores = other.decision_function(questions.transform(table[part]))
        assert counts.beside == pytest.approx(roc_auc_score(y[part], scores), abs=1e-12)
    assert f"logistic regression on all {len(questions.questions_)} questions: AUC" in card.to_text()
    assert Card.from_dict(card.to_dict()) == card
    assert card.counts[:1] == ranker.card_.counts


def test_the_page_shows_what_the_commands_print(tmp_path, monkeypatch):
    pytest.importorskip("statsmodels")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "cards.md").read_text(encoding="utf-8")
    exec(compile(re.search(r"```python\n(# make_survey.*?)```", page, re.DOTALL)[1], "make_survey.py", "exec"), {})
    shown = re.findall(r"^\$ (.+)\n((?:(?!\$ |```).*\n)*)", page, re.MULTILINE)
    assert len(shown) == 5
    for command, output in shown:
        first, *rest = command.split()
        if first == "ltr":
            assert run(*rest) == (0, output)
        else:
            lines = Path(rest[-1]).read_text(encoding="utf-8").splitlines(keepends=True)
            assert "".join(lines[: -int(rest[0])] if first == "tail" else lines[: len(output.splitlines())]) == output


def test_chances_are_those_of_isotonic_regression():
    rng = np.random.default_rng(0)
    for _ in range(50):
        totals = np.sort(rng.choice(np.arange(-9, 10), int(rng.integers(1, 9)), replace=False))[::-1]
        rows = rng.integers(1, 30, len(totals))
        positives = rng.binomial(rows, rng.random(len(totals)))
        counts = Counts("training", tuple(totals.tolist()), tuple(rows.tolist()), tuple(positives.tolist()))
        chances = [chance for chance, _, _ in counts.chances()]
        fitted = IsotonicRegression().fit(totals, positives / rows, sample_weight=rows).predict(totals)
        assert chances == pytest.approx(fitted.tolist(), abs=1e-12)
        assert all(low <= chance <= high for chance, low, high in counts.chances())
        card = Card((), (), counts=(counts,))
        assert card.chance(totals).tolist() == chances
        assert card.chance([totals[0] + 5, totals[-1] - 5]).tolist() == [chances[0], chances[-1]]
    with pytest.raises(ValueError, match="tells no chances"):
        Card((), ()).chance([1])


# --- places over all good cards -----------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(5))
def test_places_are_those_of_brute_force(part):
    for seed in range(part * TRIALS // 5, (part + 1) * TRIALS // 5):
        problem, cards, values, met = asked(seed)
        if not met.any():
            with pytest.raises(ValueError, match="problem must have a card: no card meets the rules and demands"):
                rank_ranges(problem)
            continue
        within, best = [0.0, 0.01, 0.05, 0.3][seed // 2 % 4], values[met].max()
        least, size = best - within * abs(best), max(1.0, abs(problem.trivial_bound))
        good = cards[met & (values >= least - 1e-12 * size)]
        totals = good @ problem.X.T
        top = 1 + (totals[:, None, :] > totals[:, :, None]).sum(axis=2)
        bottom = (totals[:, None, :] >= totals[:, :, None]).sum(axis=2)
        found = rank_ranges(problem, within, threads=1 + seed % 2)
        assert found.best.tolist() == top.min(axis=0).tolist(), seed
        assert found.worst.tolist() == bottom.max(axis=0).tolist(), seed
        assert found.least == pytest.approx(least, abs=1e-11 * size)
        assert 1 <= found.cards <= len(good)
        for i in range(problem.n):
            totals = problem.X @ np.rint(found.best_weights[i] * problem.points)
            assert 1 + np.count_nonzero(totals > totals[i]) == found.best[i], (seed, i)
            totals = problem.X @ np.rint(found.worst_weights[i] * problem.points)
            assert np.count_nonzero(totals >= totals[i]) == found.worst[i], (seed, i)
            for points in (found.best_weights[i], found.worst_weights[i]):
                assert problem.feasible(points)
                assert problem.evaluate(points) >= least - 1e-11 * size
        # of the cards with that place, one with the fewest questions
        for i, end, places in ((0, found.best_weights, top), (problem.n - 1, found.worst_weights, -bottom)):
            questions = np.count_nonzero(good[places[:, i] == places[:, i].min()], axis=1)
            assert np.count_nonzero(end[i]) == questions.min(), (seed, i)


def test_there_are_as_many_cards_as_good_cards():
    problem = larger_problem("dcg", n=80, d=10, k=3, C=0.01)
    found = rank_ranges(problem, 0.05)
    assert found.cards == len(problem.good_cards(found.least, most=100_000)) > 20


def test_a_time_limit_leaves_the_places_of_a_card_and_the_whole_list():
    problem = larger_problem("dcg", n=3000, d=100, k=5)
    found = rank_ranges(problem, 0.5, time_limit=0.2)
    assert found.cards is None
    assert set(found.best) == {1}
    assert set(found.worst) == {3000}
    card = found.best_weights[0]
    assert problem.feasible(card)
    totals = np.rint(problem.X @ card * problem.points)
    assert found.reached_best.tolist() == [1 + int((totals > total).sum()) for total in totals]
    assert found.reached_worst.tolist() == [int((totals >= total).sum()) for total in totals]
