"""The checker of certificates: right files pass, damaged ones are rejected with the place, and Python is enough."""

import contextlib
import copy
import dataclasses
import functools
import hashlib
import itertools
import json
import math
import resource
import subprocess
import sys
import time
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from ltr import verify
from ltr.exact import LinearConstraints, RerankProblem
from ltr.exact.certificate import Certificate, certify
from ltr.exact.constraints import DEMAND_TOLERANCE, SIDE_TOLERANCE, Demand
from ltr.exact.preferences import PairwiseProblem
from ltr.statistics import RankStatistic
from tests.exact.stated_problem import none, solution, stated_problem
from tests.reference import (
    STATISTICS,
    cell_optimum,
    cell_optimum_graded,
    exact_scores,
    optimum_of,
    random_demanded,
    random_graded,
    random_instance,
    random_pairwise,
    slow_graded_value,
    slow_margin_value,
)
from tests.tiers import examples, slow_but
from trainers.cli import main as command_line

PROGRAM = Path(verify.__file__).parent


def rehash(content):
    content["problem"]["sha256"] = verify.data_digest(content["problem"])


# --- files written by hand -------------------------------------------------------------------------------------


def by_hand(partition, bound=0.3, value=0.3, claim=None, weights=(0.5,), **problem):
    """A positive between two negatives on one feature: it beats one of them, or none at w = 0; AUC 1/2 or 0."""
    content = {
        "format": "ltr certificate",
        "version": 1,
        "claim": claim or ("optimal" if partition else "value"),
        "value": value,
        "claimed_bound": max(2.0, value),
        "weights": list(weights),
        "problem": {
            "kind": "rerank",
            "ties": "resolved",
            "statistic": "auc",
            "C": 0.2,
            "margin": 0.125,
            "constraints": None,
            "max_nonzeros": None,
            "free": [],
            "required": [],
            "integer": None,
            "demands": [],
            "X": [[0.0], [1.0], [2.0]],
            "gains": [0.0, 1.0, 0.0],
            "qid": [0] * len(problem.get("X", "123")),
            "a": [1.0, 2.0, 3.0],
            **problem,
        },
        "proof": None if partition is None else {"bound": bound, "partition": partition},
    }
    if claim == "infeasible":
        content |= {"value": None, "claimed_bound": None, "weights": None}
        content["proof"]["bound"] = None
    rehash(content)
    return content


def asked(gains, at_least=1.0, **fields):
    """A demand: a row with a gain at the top, or another statistic."""
    demand = {"statistic": "hits@1", "a": [0.0, 0.0, 1.0], "gains": [float(gain) for gain in gains]}
    return {**demand, "at_least": at_least, "ties_lost": False, **fields}


HALF = {"A": [[1.0]], "b": [0.5]}  # w_0 <= 1/2: weights may not be scaled up, the root is the cube [-1, 1]
UP = {"A": [[-1.0]], "b": [0.0]}  # w_0 >= 0
# gains 1, 0, 3 at 0, 1, 2: w = 1/2 ranks them upwards, 1 * 1 + 0 * 2 + 3 * 3
GRADED = {"statistic": "wrs", "C": 0.25, "gains": [1.0, 0.0, 3.0]}
# the gains 1 and 0 are list 7, the gain 3 is list -2, alone: 1 * 2 + 3 * 1 for w < 0
LISTS = {**GRADED, "qid": [7, 7, -2], "a": [1.0, 1.0, 2.0], "weights": [-0.5]}
DEMANDED = {**GRADED, "weights": [-0.5], "demands": [asked([1, 0, 0])]}
BOTH_ENDS = asked([1, 0, 1], 4.0, statistic="wrs", a=[1.0, 2.0, 3.0])
ONE_LIST, OTHER_LIST = (asked(gains, a=[1.0, 0.0, 1.0]) for gains in ([1, 0, 0], [0, 1, 0]))
BOTH = [asked([1, 0, 0]), asked([0, 0, 1])]
# w = 1/8 wins it by the margin exactly
ONE_PAIR = {"X": [[0.0], [1.0]], "gains": [0.0, 1.0], "a": [1.0, 2.0], "C": 0.0}
RIGHT = [
    # the faces are single points, of value 1/2 - 0.2
    (by_hand([".", "."]), "optimal"),
    (by_hand([".", "."], bound=0.4, claim="bound"), "bound"),
    (by_hand(None), "value"),
    # 0 splits the cube into w < 0, w = 0, w > 0 of values up to 0.3, 0, 0.3
    (by_hand(["0z . . ."], constraints=HALF), "optimal"),
    # halved, both halves hold 0, so that no price is counted: 1/2 is all that is known
    (by_hand(["0 . ."], constraints=HALF, bound=0.5, claim="bound"), "bound"),
    # [1/2, 1] breaks the constraint but for its end 1/2, [3/4, 1] altogether
    (by_hand(["0z . . 0 . 0 . ."], constraints=HALF), "optimal"),
    (by_hand([".", "."], C=0.0, bound=0.5, value=0.5), "optimal"),
    # with w_0 >= 0 the face w_0 = -1 may be closed whatever its value; w = 0 is feasible
    (by_hand([".", "."], constraints=UP), "optimal"),
    # C above 1/2: w = 0 is best, and is no part of the faces
    (by_hand([".", "."], C=0.75, bound=0.0, value=0.0, weights=[0.0]), "optimal"),
    # the margin is reached with equality
    (by_hand([".", "."], weights=[0.125]), "optimal"),
    (by_hand([".", "."], ties="subrank", statistic="wrs", bound=1.8, value=1.8), "optimal"),
    (by_hand([".", "."], 9.75, 9.75, **GRADED), "optimal"),
    (by_hand([".", "."], 9.75, 9.75, **{**GRADED, "statistic": "auc"}), "optimal"),  # no share of pairs, as for labels
    # the 3 is two grades above the 0, at a distance of 1: at 1/4 it wins by two margins of 1/8 with equality
    (by_hand([".", "."], 9.75, 9.75, weights=[0.25], **GRADED), "optimal"),
    (by_hand([".", "."], 9.75, 9.75, weights=[0.125], **{**GRADED, "ties": "subrank"}), "optimal"),
    # below it stands behind the 0, and at 1/16 before the 1, one grade and a distance of 2 off, with equality
    (by_hand(None, value=0 * 3 + 3 * 2 + 1 * 1 - 0.25, weights=[0.0625], **GRADED), "value"),
    (by_hand(None, value=0 * 3 + 1 * 2 + 3 * 1 - 0.25, weights=[0.0624], **GRADED), "value"),
    # no gain is 0: 1 of each is worth 1 + 2 + 3 in any order, the rest is as above
    (by_hand([".", "."], 15.75, 15.75, **{**GRADED, "gains": [2.0, 1.0, 4.0]}), "optimal"),
    (by_hand([".", "."], 6.0, 6.0, weights=[0.0], **{**GRADED, "gains": [1.0, 1.0, 1.0]}), "optimal"),
    (by_hand([".", "."], 4.75, 4.75, **LISTS), "optimal"),
    # the first row at the top asks for w < 0, of value 3 * 1 + 1 * 3 - 0.25, which rules out the face w_0 = 1
    (by_hand([".", "."], 5.75, 5.75, **DEMANDED), "optimal"),
    (by_hand([".", "."], 9.75, 5.75, claim="bound", **DEMANDED), "bound"),
    (by_hand(["0z . . ."], 5.75, 5.75, constraints=HALF, **DEMANDED), "optimal"),
    # a demand on ranks from the top, 3 * 1 + 2 * 0 + 1 * 1 for w < 0, and 1 * 1 + 2 * 0 + 3 * 1 as well
    (by_hand([".", "."], 9.75, 9.75, **{**GRADED, "demands": [BOTH_ENDS]}), "optimal"),
    # it is met at a billionth of what is asked below it
    (by_hand([".", "."], 9.75, 9.75, **{**GRADED, "demands": [{**BOTH_ENDS, "at_least": 4 + 3.9e-9}]}), "optimal"),
    # two lists: the demand on the first asks for w < 0, where the second, alone, has its 1 as well
    (by_hand([".", "."], 4.75, 4.75, **{**LISTS, "demands": [ONE_LIST]}), "optimal"),
    (by_hand([".", "."], 3.75, 3.75, **{**LISTS, "weights": [0.5], "demands": [OTHER_LIST]}), "optimal"),
    # no weights have the first and the last row at the top: w_0 = -1 has not the last, w_0 = 1 not the first
    (by_hand([".", "."], claim="infeasible", demands=BOTH), "infeasible"),
    (by_hand(["0z . . ."], claim="infeasible", demands=BOTH, constraints=HALF), "infeasible"),
    # the first row is not before the last one, or the last one is not before the first one
    (by_hand(["0:2 . ."], claim="infeasible", demands=BOTH, constraints=HALF), "infeasible"),
    (by_hand(["0 2:0 . . 0:2 . ."], claim="infeasible", demands=BOTH, constraints=HALF), "infeasible"),
    # w_0 >= 0 leaves w = 0 and w_0 = 1; at w = 0 nobody of the group is at the top
    (by_hand([".", "."], claim="infeasible", demands=BOTH[:1], constraints=UP), "infeasible"),
    # side constraints alone: w_0 <= -2
    (by_hand([".", "."], claim="infeasible", constraints={"A": [[1.0]], "b": [-2.0]}), "infeasible"),
]
NEVER = {"claim": "infeasible", "demands": BOTH}
WRONG = [
    (by_hand(["0 . ."], constraints=HALF), r"proof.partition\[0\] \(the cube\), word 2: closes the box \[-1, 0\]"),
    (by_hand(["."], constraints=HALF), r"word 1: closes the box \[-1, 1\], where the value may be 1$"),
    (by_hand([".", "."], C=0.75, bound=-0.25, value=-0.25), "proof.bound: is below 0, the value of w = 0"),
    (by_hand([".", "."], weights=[0.12]), "value: is -0.2 at these weights, not 0.3"),
    (by_hand(["0 . .", "."]), r"proof.partition\[0\] \(w_0 = -1\), word 1: cannot cut w_0 of the box \[-1, -1\]"),
    (by_hand(["0z . . 0z . . ."], constraints=HALF), r"word 4: cannot cut w_0 of the box \[0, 1\]"),
    (by_hand(["0 " * 70 + "." + " ." * 70], constraints=HALF), r"word 62: cannot cut w_0 of the box \[-1, -1\]"),
    (by_hand(["0z . ."], constraints=HALF), r"word 3: is the last, but 1 boxes are not closed"),
    (by_hand(["0z . . . ."], constraints=HALF), r"word 5: comes after the end"),
    (by_hand(["0z . . .", "."], constraints=HALF), r"proof.partition: must hold 1 entries, got 2"),
    # by 0.5 / 1.5
    (by_hand(None, weights=[1.0], constraints=HALF), "weights: exceed a side constraint by 0.333333333333 of"),
    (by_hand(None, weights=[-1e-9], constraints=UP), "weights: exceed a side constraint by 1 of its terms' size"),
    (by_hand(None, weights=[-1.5]), r"weights\[0\]: must be from -1 to 1, got -1.5"),
    (by_hand([".", "."], 9.5, 5.75, weights=[-1.0], **GRADED),
     r"\[1\] \(w_0 = 1\), .* \[1, 1\], where .* may be 9.75$"),
    (by_hand(["0 . ."], 9.75, 9.75, constraints=HALF, **GRADED), r"word 3: closes the box \[0, 1\], .* may be 10$"),
    (by_hand([".", "."], 4.0, 3.75, **{**LISTS, "weights": [0.5]}), r"\[0\] \(w_0 = -1\), .*, where .* may be 4.75$"),
    *((by_hand([text], 0.0, 0.0, weights=[0.0], constraints=HALF, **ONE_PAIR), rf"the box {box}, .* may be 1$")
        for text, box in (("0 . 0 0 0 . . . .", r"\[0, 0.125\]"), ("0 . 0 0 0 0 . . . . .", r"\[0.0625, 0.125\]"))),
    *((by_hand(["0z . . ."[:at]], constraints=HALF), "word [1-4]: ") for at in range(8)),
    (by_hand([".", "."], 9.75, 9.75, **{**DEMANDED, "weights": [0.5]}),
     r"weights: have 0 in problem.demands\[0\], which"),
    (by_hand(None, value=6.0, **{**DEMANDED, "weights": [0.0]}),
     r"weights: have 0 in problem.demands\[0\], .* asks for 1"),
    (by_hand([".", "."], 5.5, 5.5, **{**DEMANDED, "C": 0.5, "demands": [BOTH_ENDS]}),
     r"\[1\] \(w_0 = 1\), word 1: .* the value may be 9.5 and problem.demands\[0\] may be 4$"),
    (by_hand([".", "."], 9.75, 9.75, **{**GRADED, "demands": [{**BOTH_ENDS, "at_least": 4 + 4.1e-9}]}),
     r"weights: have 4 in problem.demands\[0\], which asks for 4.0000000041"),
    (by_hand([".", "."], claim="infeasible", demands=BOTH[:1]), r"\(w_0 = -1\), .* problem.demands\[0\] may be 1$"),
    (by_hand(["."], **NEVER, constraints=HALF), r"demands\[0\] may be 1 and .*\[1\] may be 1$"),
    (by_hand([".", "."], claim="infeasible", demands=[asked([1, 0, 0], 0.0)]), "claim: .* w = 0 is feasible"),
    (by_hand(["."], claim="infeasible", constraints=HALF),
     r"\(the cube\), .*, where side constraints may be satisfied$"),
    (by_hand([".", "."], claim="infeasible", constraints=UP, demands=BOTH[1:]),
     r"\(w_0 = 1\), .*demands\[0\] may be 1$"),
    (by_hand(["0:1 . ."], **NEVER, constraints=HALF),
     r"word 3: closes the box \[-1, 1\], 1 not before 0, where problem.demands\[0\] may be 1 and"),
    # a positive before one negative or another: nobody asks for the opposite order
    (by_hand(["1:0 . 1:2 . ."], 0.5, claim="bound", constraints=HALF),
     r"word 5: closes the box \[-1, 1\], 0 not before 1, 2 not before 1, wh"),
    *((by_hand([word, "."]), "word 1: must name two observations with different") for word in ("0:0", "3:0", "0:3")),
    (by_hand(["0:2 . .", "."], 0.8, 0.8, X=[[0.0], [1.0], [0.0]]),
     "word 1: must name two observations with different features, got"),
    ({**by_hand([".", "."], **NEVER), "proof": None}, "proof: must not be null where the claim"),
    ({**by_hand([".", "."], **NEVER), "value": 0.0}, "value: must be null where the claim is"),
    ({**by_hand([".", "."], **NEVER), "weights": [0.0]}, "weights: must be null where the"),
    ({**by_hand([".", "."]), "value": None}, "value: must not be null where the claim is 'optimal'"),
    *((by_hand(None, statistic=n), r"^problem.statistic: is not known: '.*', it") for n in ("dcg(", "dcg@-5")),
    *((by_hand([word, "."]), "word 1: is not known") for word in ("", "1", "z", "0Z", "00", "-0", "..", "٠", ".\n")),
    *((by_hand([word, "."]), "word 1: is not known") for word in ("0:", ":0", "0:1z", "00:1", "0:-1", "0:1:2", "٠:1")),
]  # fmt: skip


@pytest.mark.parametrize(("content", "claim"), RIGHT)
def test_files_by_hand_are_accepted(content, claim):
    assert verify.check(verify.parse(json.dumps(content)))[0] == claim


@pytest.mark.parametrize(("content", "message"), WRONG)
def test_files_by_hand_are_rejected(content, message):
    with pytest.raises(verify.CertificateError, match=message):
        verify.check(verify.parse(json.dumps(content)))


def test_a_pair_two_grades_apart_needs_two_margins_to_the_last_unit():
    # margin of 1 1/4 units: the 3 beats the 0, one apart, from 2 1/2 units on, and the 1 never does for w > 0
    content = by_hand(None, **{**GRADED, "margin": 1.25 / verify.boxes.ONE, "constraints": HALF})
    [(_, cube)] = verify.boxes.roots(verify.Problem(content["problem"]))
    assert [sum(cube.part(0, 0, units).count()) for units in (2, 3)] == [2, 1]


def test_boxes_with_too_many_nonzeros_may_be_closed():
    # the positive differs from the negatives by (1, -1) and (-1, 2): one weight wins one pair, (1, 0.75) wins both
    X = [[-1.0, 1.0], [0.0, 0.0], [1.0, -2.0]]
    texts = ["1z . . .", "1z . . .", "0z . . .", "0z . . ."]
    one = by_hand(texts, 0.5, 0.5, weights=[1.0, 0.0], C=0.0, X=X, max_nonzeros=1)
    assert verify.check(verify.parse(json.dumps(one)))[0] == "optimal"
    two = by_hand(texts, 0.5, 0.5, weights=[1.0, 0.0], C=0.0, X=X)
    with pytest.raises(verify.CertificateError, match=r"word 4: closes the box \[1, 1\] x \[0, 1\], where .* may be 1"):
        verify.check(two)
    assert verify.check(by_hand(None, value=1.0, weights=[1.0, 0.75], C=0.0, X=X))[0] == "value"
    with pytest.raises(verify.CertificateError, match="weights: at most 1 may differ from 0, got 2"):
        verify.check(by_hand(None, value=1.0, weights=[1.0, 0.75], C=0.0, X=X, max_nonzeros=1))


def test_weights_may_exceed_side_constraints_by_rounding_only():
    _, words = verify.check(by_hand(None, weights=[0.5 + 5e-10], constraints=HALF))
    assert "the weights exceed a side constraint by 5" in words
    assert "e-10 of its terms' size, which is tolerated" in words
    with pytest.raises(verify.CertificateError, match="weights: exceed a side constraint by 2"):
        verify.check(by_hand(None, weights=[0.5 + 2e-9], constraints=HALF))
    assert Fraction(SIDE_TOLERANCE) == verify.boxes.FEASIBLE
    assert Fraction(DEMAND_TOLERANCE) == verify.file.DEMAND_TOLERANCE


def test_boxes_are_closed_by_constraints_beyond_the_tolerance_only():
    # the pair is won from just above 1/8 on; with [0, 1/8] it is lost, so that the next box needs the constraint
    row = {**ONE_PAIR, "margin": 0.125 + 2.0**-40}
    words = {"partition": ["0 . 0 0 0 . . . ."], "bound": 0.0, "value": 0.0, "weights": [0.0]}
    far, near = ({"A": [[1.0]], "b": [0.125 - 2.0**-k]} for k in (20, 40))
    assert verify.check(by_hand(**words, **row, constraints=far))[0] == "optimal"
    with pytest.raises(verify.CertificateError, match=r"word 7: closes the box \[0.125, 0.25\], where .* may be 1"):
        verify.check(by_hand(**words, **row, constraints=near))


# --- definitions -----------------------------------------------------------------------------------------------


ACCEPTED = [
    *(*STATISTICS[:-1], "power(p=4)", "dcg(base=1.5)@7", "power(p=0.5)", "weights(0,0.25,1,1,2.5)"),
    *("power", "power()", "auc()", "dcg()@3", "dcg(base=1.0000000000000002)", "dcg(base=1e308)", "dcg(base=e)@1"),
    *("power(p=1e-320)", "power(p=e)", "power(p=.5)", "power(p=+3.e0)", "pauc@9223372036854775807", "mrr@007"),
    *(" dcg ( base = 3 ) @ 2 ", "dcg\u00a0@\t3\n", "weights(0, 0.25 ,1,1,2.5)", "weights(-0,0,0,0,e)", "power(p=400)"),
]
REFUSED = [
    *("", "ndcg", "DCG", "auc@3", "wta@1", "pauc", "dcg@", "dcg@0", "dcg@-5", "dcg@1.0", "dcg(", "dcg(base=2", "d cg"),
    *("dcg@2(base=2)", "dcg@2@2", "dcg(10)", "dcg(base=)", "dcg(p=2)", "dcg(base=2,base=2)", "dcg(base=1)"),
    *("dcg(base=nan)", "dcg(base=1e400)", "dcg(base=1_0)", "dcg(base=１０)", "dcg@9223372036854775808", "power(p=0)"),
    *("power(p=inf)", "power(p=1e308)", "power(p=500)", "weights", "weights(1,2)", "weights(2,1,3,4,5)"),
    *("weights(-1,0,1,2,3)", "weights(0,1,2,3,inf)", "weights(nan,1,2,3,4)", "weights(0,0,0,1e308,1e308)"),
    "dcg@" + "9" * 5000,
]


def weights_by(read, name, n):
    """The weights of n observations, None where the name or the list's length is refused."""
    try:
        return read(name, n)
    except ValueError:
        return None


@pytest.mark.parametrize("name", [*ACCEPTED, *REFUSED], ids=lambda name: f"{name!r:.30}")
def test_the_checker_knows_the_names_that_the_library_knows(name):
    for n in (5, 1, 2, 40, 1000):
        theirs = weights_by(lambda name, n: RankStatistic.parse(name).weights(n), name, n)
        own = weights_by(lambda name, n: verify.file.parse_statistic(name)[1](n), name, n)
        assert (theirs is None) == (own is None)
        assert n != 5 or (own is not None) == (name in ACCEPTED)
        if own is not None:  # half of what the checker allows
            np.testing.assert_allclose(own, theirs, rtol=4 * 2.0**-52, atol=0)
            assert verify.file.parse_statistic(name)[0] == RankStatistic.parse(name).name


def exact_of(p, w):
    """The problem as the checker reads it."""
    return verify.Problem(certify(p, solution(p, w), max_boxes=0).content["problem"])


def with_near_margins(p, seed):
    """The problem with differences that meet the margin exactly (quarters, halves) or nearly (tenths)."""
    unit, margin = [(1.0, 1e-4), (1.0, 0.25), (1.0, 0.5), (0.1, 0.1), (0.1, 0.025)][seed % 5]
    return dataclasses.replace(p, X=p.X * unit, margin=margin)


@pytest.mark.parametrize(("draw", "count"), [(random_instance, 60), (random_graded, 390)], ids=["binary", "graded"])
def test_values_are_exact(draw, count):
    met = 0
    for seed in range(count):  # of graded lists every combination of statistics, prices, ranks and margins
        p = with_near_margins(draw(seed), seed)
        w = np.random.default_rng(seed).integers(-4, 5, size=p.d) / 4.0
        exact = exact_of(p, w)
        if draw is random_instance:
            slow = slow_margin_value(p.X, p.y, w, str(p.statistic), p.margin, p.ties)
        else:
            scores, margin = exact_scores(p.X, w), Fraction(float(p.margin))
            slow = slow_graded_value(scores, p.gains.tolist(), p.qid.tolist(), str(p.statistic), p.ties, margin)
        slow -= p.C * np.count_nonzero(w)
        assert float(exact.value(w.tolist())) == pytest.approx(slow, rel=1e-13, abs=1e-13)
        assert float(exact.size()) == pytest.approx(p.trivial_bound, rel=1e-13)
        scores = exact_scores(p.X, w)
        met += any(abs(scores[i] - scores[k] - s * p.margin) < 1e-12 for i, k, s, _, _ in exact.pairs())
    assert met >= 15  # pairs that meet their margin, exactly or nearly


def lost_pairs(exact, w):
    """The pairs lost at w, as lists of (counter, weight)."""
    scores = exact_scores([[Fraction(v, exact.unit) for v in row] for row in exact.X], w)
    return [pair[3:] for pair in exact.pairs() if scores[pair[0]] - scores[pair[1]] < pair[2] * exact.margin]


def test_what_is_known_of_lost_pairs_bounds_the_value():
    for seed in range(156):
        p, rng = with_near_margins(random_graded(seed), seed), np.random.default_rng(seed)
        exact = exact_of(p, np.zeros(p.d))
        for w in rng.integers(-4, 5, size=(5, p.d)) / 4.0:
            lost, before = lost_pairs(exact, w), None
            rng.shuffle(lost)
            # fewer and fewer are known
            for known in range(len(lost), -1, -1):
                counts = [0] * exact.counters
                for counter, weight in lost[:known]:
                    counts[counter] += weight
                total = exact.objective.total(counts)
                if before is None:
                    assert exact.objective.objective(total, np.count_nonzero(w)) == exact.value(w.tolist())
                else:
                    assert total >= before
                before = total


def test_pairs_that_a_box_counts_as_lost_are_lost_in_all_of_it():
    """Whatever cuts led to it; what it counts does not depend on whether pairs are kept."""
    looked = 0
    for seed in range(60):
        p, rng = random_demanded(seed), np.random.default_rng(seed)
        exact = verify.Problem(p.content())
        box = verify.boxes.Box(exact, [-verify.boxes.ONE] * p.d, [verify.boxes.ONE] * p.d)
        for _ in range(6):
            i, k = rng.integers(exact.n, size=2).tolist()
            j = int(rng.integers(p.d))
            middle = (box.low[j] + box.high[j]) // 2
            if rng.random() < 0.5:
                box.count(keep=True)
            box = box.ordered(i, k) if rng.random() < 0.4 else box.part(j, *sorted((middle, box.high[j])))
        lost = box.count()
        assert lost == verify.boxes.Box(exact, box.low, box.high, box.apart, box.behind).count()
        ends = np.array([box.low, box.high], dtype=float) / verify.boxes.ONE
        for w in ends[0] + rng.integers(0, 3, size=(30, p.d)) / 2.0 * (ends[1] - ends[0]):
            scores = exact_scores([[Fraction(v, exact.unit) for v in row] for row in exact.X], w)
            if all(scores[i] <= scores[k] for i, k in box.behind):
                at_w = [0] * exact.counters
                for counter, weight in lost_pairs(exact, w):
                    at_w[counter] += weight
                assert all(known <= own for known, own in zip(lost, at_w, strict=True))
                looked += bool(box.behind)
    assert looked >= 100


def test_the_hash_is_that_of_the_lines_described():
    def digest(*lines):
        return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()

    one, three = "0x1.0000000000000p+0", "0x1.8000000000000p+1"
    lines = ["X 0x0.0p+0", f"X {one}", "X 0x1.0000000000000p+1", f"gains {one} 0x0.0p+0 {three}", "qid 7 7 -2"]
    assert by_hand(None, **LISTS)["problem"]["sha256"] == digest(*lines)
    content = by_hand(None, **LISTS, demands=[asked([0, 1, 1])])
    assert content["problem"]["sha256"] == digest(*lines, f"gains 0x0.0p+0 {one} {one}")
    pairs = {"kind": "pairwise", "X": [[0.5, 1.0]], "pairs": [[1, 0], [0, 2]], "pair_weights": [2.0, 1.0], "C": 0.5}
    lines = [f"X 0x1.0000000000000p-1 {one}", f"pair_weights 0x1.0000000000000p+1 {one}", "pairs 1 0", "pairs 0 2"]
    assert verify.data_digest(pairs) == digest(*lines)
    rule = {"columns": [1, 3], "at_most": 2, "when": [0], "at_least": 0}
    card = {"kind": "card", "X": ["0 1", "1 0"], "C": 1.0, "rules": [rule], "sha256": "", "free": []}
    lines = [f"C {one}", "X 0 1", "X 1 0", "free", "kind card", "rules at_least 0 at_most 2 columns 1 3 when 0"]
    assert verify.data_digest(card) == digest(*lines)


def test_of_opposite_preferences_only_one_direction_counts():
    # differences 1, -2, 1 on one line and 3 on no other: 1 + 0.5 one way, 2 the other; and the zero difference never
    p = PairwiseProblem(
        [[0.0], [1.0], [3.0], [1.0]], [(1, 0), (1, 2), (3, 0), (1, 3)], weights=[1, 2, 0.5, 8], margin=0.5
    )
    exact = verify.Problem(certify(p, solution(p, [-1.0])).content["problem"])
    assert Fraction(exact.objective.total([0] * exact.counters), exact.objective.value_unit) == 2 + 8
    assert [exact.value([w]) for w in (-1.0, 0.0, 1.0)] == [2, 0, Fraction(3, 2)]


# --- damage ----------------------------------------------------------------------------------------------------


GROUPED = {"qid": [2, 1, 1, 2, 1, 2, 1, 2, 1], "C": 0.05}
COSTLY = LinearConstraints([[1.0, -1.0]], [0.0])  # w_0 <= w_1


@functools.cache
def proof_of(kind):
    """A proof for two weights: with a price and cuts of both kinds, under a constraint or demands that cost something.

    The lists of the kinds "graded" and "demanded" have 4 and 5 rows.
    """
    rng = np.random.default_rng(5 if kind in ("graded", "demanded") else 0)
    X = rng.integers(0, 9, size=(6 if kind == "preferred" else 9, 2)) / 8.0
    y, labels = [1, 0, 1, 0, 0, 1, 0, 0, 1], [3, 0, 1, 0, 2, 1, 0, 2, 1]
    if kind == "preferred":
        pairs = [(0, 1), (1, 2), (2, 0), (3, 4), (5, 3), (4, 1), (2, 5)]
        p = PairwiseProblem(X, pairs, weights=[1, 2, 3, 1, 1, 2, 1])
    elif kind == "ranked":
        p = RerankProblem(X, y, "dcg", C=0.05, constraints=COSTLY)
    elif kind == "graded":
        p = RerankProblem(X, labels, constraints=COSTLY, **GROUPED)
    elif kind == "demanded":
        demands = [Demand("hits@2", 3, [0, 0, 1, 1, 0, 1, 1, 0, 1]), Demand("dcg", 0.8, normalize=True)]
        p = RerankProblem(X, labels, demands=demands, **GROUPED)
    else:
        return certify(p := RerankProblem(X, y, demands=OPPOSED), none(p)).content
    if p.constraints is None:
        _, w = optimum_of(p)
    elif p.binary:
        _, w = cell_optimum(p.X, p.y, p.statistic, p.C, A=COSTLY.A)
    else:
        _, w = cell_optimum_graded(p, A=COSTLY.A)
    return certify(p, solution(p, w)).content


OPPOSED = [Demand("auc", 0.6), Demand("auc", 0.45, [0, 1, 0, 1, 1, 0, 1, 1, 0])]


def put(*path):
    """A change: the entry at this path becomes the last argument."""

    def change(content):
        *inner, last, value = path
        for step in inner:
            content = content[step]
        content[last] = value(content[last]) if callable(value) else value

    return change


def hashed(change):
    """The change, and the hash of the changed data."""

    def both(content):
        change(content)
        rehash(content)

    return both


def drop(*path):
    def change(content):
        *inner, last = path
        for step in inner:
            content = content[step]
        del content[last]

    return change


def words(at, edit):
    """A change of the words of one root."""
    return put("proof", "partition", at, lambda text: " ".join(edit(text.split(" "))))


def first_cut_closed(text):
    """The partition without the parts of its last cut: that box is closed at once."""
    at = max(i for i, word in enumerate(text) if word != ".")
    return [*text[:at], ".", *text[at + (4 if "z" in text[at] else 3) :]]


def swap(i, k):
    def change(content):
        partition = content["proof"]["partition"]
        partition[i], partition[k] = partition[k], partition[i]

    return change


BOUNDS = [("value",), ("proof", "bound"), ("claimed_bound",)]
CUT = 3  # the face w_1 = 1, on which the optimum lies, is cut
DAMAGE = [
    ("higher bound", put("proof", "bound", lambda v: v + 1e-3), "claim: the file shows 'bound', not 'optimal'"),
    ("claim of another word", put("claim", "certain"), "claim: the file shows 'optimal', not 'certain'"),
    ("proof gone", put("proof", None), "claim: the file shows 'value', not 'optimal'"),
    ("sign of a weight", put("weights", 1, lambda w: -w), "weights: exceed a side constraint by"),
    ("weight", put("weights", 0, 0.0), "value: is"),
    ("weight beyond 1", put("weights", 1, 1.0000000000000002), r"weights\[1\]: must be from -1 to 1"),
    ("weight nan", put("weights", 0, math.nan), r"weights\[0\]: must be a finite float64, got nan"),
    ("C", put("problem", "C", 0.04), "value: is"),
    ("most weights", put("problem", "max_nonzeros", 1), "weights: at most 1 may differ from 0, got 2"),
    ("margin", put("problem", "margin", 0.5), "value: is"),
    ("margin 0", put("problem", "margin", 0.0), "problem.margin: must be > 0, got 0.0"),
    ("label", put("problem", "gains", 0, 0), "problem.sha256: the data have"),
    ("label, hashed", hashed(put("problem", "gains", 0, 0.0)), "value: is"),
    ("feature", put("problem", "X", 0, 0, lambda v: math.nextafter(v, 2)), "problem.sha256: the data have"),
    ("feature, hashed", hashed(put("problem", "X", 2, 1, -5.0)), "value: is"),
    ("statistic", put("problem", "statistic", "mrr"), r"problem.a\[0\]: must be 0.1111111111111111 for 'mrr'"),
    ("rank weight", put("problem", "a", 4, lambda a: a * (1 + 1e-12)), r"problem.a\[4\]: must be"),
    ("ties", put("problem", "ties", "Subrank"), "problem.ties: must be 'resolved' or 'subrank', got 'Subrank'"),
    ("unknown kind", put("problem", "kind", ["rerank"]), "problem.kind: must be one of rerank, .*, card, risk, got"),
    ("constraints dropped", put("problem", "constraints", None), r"\(w_\d = -?1\), word \d+: closes the box"),
    ("constraint reversed", put("problem", "constraints", "A", 0, [-1.0, 1.0]), "weights: exceed a side constraint"),
    ("constraint loosened", put("problem", "constraints", "b", 0, 1.0), "proof.partition: must hold 1 entries, got 4"),
    ("last cut closed", words(CUT, first_cut_closed), r"proof.partition\[3\] \(w_1 = 1\), word \d+: closes the box"),
    ("coordinate beyond", words(CUT, lambda text: ["2", *text[1:]]), "word 1: is not known: '2'"),
    ("halved in place of zeroed", words(CUT, lambda text: [text[0][:-1], *text[1:]]), r"proof.partition\[3\]"),
    ("roots swapped", swap(CUT, 2), r"proof.partition\[3\] \(w_1 = 1\), word 4: closes the box"),
    ("version", put("version", 2), "version: must be 1, got 2"),
    ("format", put("format", "certificate"), "format: must be 'ltr certificate'"),
    ("unknown field", put("checked", True), "file: 'checked' is not known"),
    ("field gone", drop("claimed_bound"), "file: 'claimed_bound' is missing"),
    ("true for a number", put("problem", "C", True), "problem.C: must be of type float, got True"),
    ("free column", put("problem", "free", [2]), r"problem.free\[0\]: must be a column from 0 to 1, named"),
    ("free and required", lambda c: [put("problem", name, [0])(c) for name in ("free", "required")], r"required\[0\]"),
    ("whole numbers up to 0", put("problem", "integer", 0), "problem.integer: must be from 1 to 100, got 0"),
    ("integer beyond float64", put("value", 2**53 + 1), "value: must be a finite float64, got 9007199254740993"),
]  # fmt: skip


PAIRWISE_DAMAGE = [
    (hashed(put("problem", "pairs", 0, [1, 0])), "value: is|closes the box"),
    (hashed(put("problem", "pair_weights", 1, 9.0)), "value: is|closes the box"),
    (put("problem", "pair_weights", 1, 2.5), "value: is|closes the box|sha256: the data"),
    (put("problem", "pair_weights", 1, 0.0), r"problem.pair_weights\[1\]: must be > 0, got 0.0"),
    (put("problem", "pairs", 2, [2, 2]), r"problem.pairs\[2\]: must join two observations, got \[2, 2\]"),
    (put("problem", "pairs", 2, [-1, 0]), r"problem.pairs\[2\]: must join two observations, got \[-1, 0\]"),
]


VALUE = "value: is|closes the box"
GRADED_DAMAGE = [
    ("gain, hashed", hashed(put("problem", "gains", 0, 6.5)), VALUE),
    ("gain of nothing, hashed", hashed(put("problem", "gains", 1, 1.0)), VALUE),
    ("a grade in between, hashed", hashed(put("problem", "gains", 8, 2.0)), VALUE),
    ("gain below 0", put("problem", "gains", 3, -1.0), r"problem.gains\[3\]: must be >= 0, got -1.0"),
    ("no gain", put("problem", "gains", [0.0] * 9), "problem.gains: must hold a number > 0"),
    ("times beside gains", put("problem", "time", [1.0] * 9), "problem.statistic: c_index is one of cards, or of"),
    ("a share", put("problem", "statistic", "precision@2"), r"problem.(a\[\d\]|statistic): must be"),
    ("list", put("problem", "qid", 0, 1), r"problem.a\[0\]: must be 0.356"),
    ("lists swapped, hashed", hashed(put("problem", "qid", [2, 1, 1, 2, 2, 1, 1, 2, 1])), VALUE),
    ("lists renamed", hashed(put("problem", "qid", lambda v: [-one for one in v])), r"problem.a\[0\]: must be 0.43"),
    ("weights of one length", put("problem", "statistic", "weights(0,0,1,1,1)"), r"problem.a\[0\]: must be 0.0"),
    ("ties", put("problem", "ties", "subrank"), VALUE),
]  # fmt: skip


MET = r"weights: have [0-9.]+ in problem.demands\[{0}\], which asks for "
DEMAND_DAMAGE = [
    ("asks for slightly more", put("problem", "demands", 0, "at_least", 3 * (1 + 2e-9)), MET.format(0) + "3.00000000"),
    ("asks for more of the other", put("problem", "demands", 1, "at_least", 0.9), MET.format(1) + r"0\.9"),
    ("asks for less", put("problem", "demands", 0, "at_least", 2.0), r"word \d+: closes the box .* may be .* and"),
    ("demands gone", put("problem", "demands", []), "problem.sha256: the data have"),
    ("demands gone, hashed", hashed(put("problem", "demands", [])), r"word \d+: closes the box"),
    ("demand gone, hashed", hashed(drop("problem", "demands", 0)), r"word \d+: closes the box"),
    ("a group of others, hashed", hashed(put("problem", "demands", 0, "gains", 0, 1.0)), MET.format(0) + "|closes the"),
    ("a smaller group, hashed", hashed(put("problem", "demands", 0, "gains", 6, 0.0)), MET.format(0) + "|closes the"),
    ("statistic", put("problem", "demands", 0, "statistic", "dcg"), r"problem.demands\[0\].a\[0\]: must be 0.386"),
    ("a share", put("problem", "demands", 0, "statistic", "recall@2"), r"demands\[0\].statistic: must be hits@N here"),
    ("rank weight", put("problem", "demands", 1, "a", 6, lambda a: a * (1 + 1e-12)), r"demands\[1\].a\[6\]: must be"),
    ("weights", put("weights", [1.0, 0.0]), MET.format(0) + r"3\.0"),
    ("last cut closed", words(CUT, first_cut_closed), r"proof.partition\[3\] \(w_1 = 1\), word \d+: closes the box"),
    (
        "no weights claimed",
        lambda c: [put("claim", "infeasible")(c), *(put(*at, None)(c) for at in (*BOUNDS, ("weights",)))],
        r"word \d+: closes the box .*, where problem.demands\[0\] may be 3 and problem.demands\[1\] may be 0.8",
    ),
]  # fmt: skip
INFEASIBLE_DAMAGE = [
    ("asks for less", put("problem", "demands", 0, "at_least", 0.4), r"word \d+: closes the box .* problem.dem"),
    ("asks for nothing", lambda c: [put("problem", "demands", j, "at_least", 0)(c) for j in (0, 1)], "claim: .* w = "),
    ("demand gone, hashed", hashed(drop("problem", "demands", 0)), r"word \d+: closes the box .* problem.demands\[0\]"),
    ("demands gone, hashed", hashed(put("problem", "demands", [])), "claim: must not be 'infeasible', w = 0 is"),
    ("a larger group, hashed", hashed(put("problem", "demands", 1, "gains", [1.0] * 8 + [0.0])), r"word \d+: closes"),
    ("bound", put("proof", "bound", 1.0), "proof.bound: must be null where the claim is 'infeasible'"),
]  # fmt: skip
DAMAGED = {"ranked": DAMAGE, "preferred": PAIRWISE_DAMAGE, "graded": GRADED_DAMAGE}
DAMAGED |= {"demanded": DEMAND_DAMAGE, "infeasible": INFEASIBLE_DAMAGE}


def test_what_is_damaged_here_is_right_before():
    for kind in DAMAGED:
        claim, said = verify.check(verify.parse(json.dumps(proof_of(kind))))
        assert claim == ("infeasible" if kind == "infeasible" else "optimal")
        assert ("demand auc at least 0.6, demand auc at least 0.45; data: " in said) == (kind == "infeasible")


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        pytest.param(kind, change, message, id=f"{kind}-{name[0] if name else at}")
        for kind, cases in DAMAGED.items()
        for at, (*name, change, message) in enumerate(cases)
    ],
)
def test_damage_is_found_and_named(kind, change, message):
    damaged = copy.deepcopy(proof_of(kind))
    change(damaged)
    with pytest.raises(verify.CertificateError, match=message) as caught:
        verify.check(verify.parse(json.dumps(damaged)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"claim": "optimal"', '"claim": "optimal", "claim": "optimal"', "'claim': occurs twice in one object"),
        ('"C": 0.05', '"C": 1e999', "problem.C: must be a finite float64, got inf"),
        ('"C": 0.05', '"C": 5e-2, "c\\n": 0', r"problem: 'c\\n' is not known"),
    ],
)
def test_damage_that_only_a_text_can_have(old, new, message):
    text = json.dumps(proof_of("ranked"))
    assert old in text
    with pytest.raises(verify.CertificateError, match=message):
        verify.check(verify.parse(text.replace(old, new)))


JUNK = [
    *(None, True, False, 0, 1, -1, 2**63, 10**400, -0.0, 0.5, 1e-320, 1.7e308, math.nan, math.inf),
    *("", "dcg@-5", "\ud800", ". . .", "0z", "auc"),
    *([], {}, [[]], [{}], [None], [1.0, "x"], {"A": [], "b": []}, {"bound": 1.0, "partition": ["."]}),
]


def problems():
    """Problems of every kind, with and without prices, constraints and limits."""
    ranked, lists, edges = random_instance(14), random_graded(20), random_pairwise(3)
    asked = [Demand("hits@2", 1, np.arange(ranked.n) % 3 == 0), Demand("auc", 0.25, 1 - ranked.gains)]
    of_lists = [Demand("dcg", 0.5, normalize=True), Demand("hits@1", 1, np.arange(lists.n) % 2)]
    opposed = [Demand("auc", 0.6), Demand("auc", 0.6, 1 - ranked.gains)]
    changes = {
        "resolved": (ranked, {"ties": "resolved"}),
        "subrank": (ranked, {"ties": "subrank"}),
        "price": (ranked, {"C": 0.05}),
        "graded": (lists, {"ties": "resolved"}),
        "graded, subrank": (lists, {"ties": "subrank", "C": 0.05}),
        "pairwise": (edges, {}),
        "demanded": (ranked, {"ties": "resolved", "demands": asked, "C": 0.01}),
        "demanded, whole": (ranked, {"demands": asked[:1], "integer": 3, "required": [0], "max_nonzeros": 1}),
        "graded, demanded": (lists, {"demands": of_lists}),
        "graded, demanded, cut off": (lists, {"demands": of_lists[1:], "constraints": cut_off(lists, 0.5)}),
        "infeasible": (ranked, {"demands": opposed}),
    }
    for name, p in (("ranked", ranked), ("graded", lists), ("pairwise", edges)):
        halved = LinearConstraints([[1.0] + [0.0] * (p.d - 1)], [0.0])
        changes |= {
            f"{name}, one weight": (p, {"max_nonzeros": 1}),
            f"{name}, halved": (p, {"constraints": halved}),
            f"{name}, cut off": (p, {"constraints": cut_off(p, 0.5)}),
            f"{name}, required": (p, {"required": [0], "C": 0.01}),
            f"{name}, free": (p, {"free": [0], "C": 0.05}),
            f"{name}, whole": (p, {"integer": 3}),
            f"{name}, whole, cut off": (p, {"integer": 4, "C": 0.02, "required": [0], "constraints": cut_off(p, 1.0)}),
        }
    return {name: dataclasses.replace(p, **options) for name, (p, options) in changes.items()}


def cut_off(p, most):
    return LinearConstraints(np.ones((1, p.d)), [most])


PROBLEMS = problems()


@functools.cache
def certificates_of(name):
    """Files about a problem: with as many boxes as are needed, with few, and with none."""
    p = PROBLEMS[name]
    grid = np.random.default_rng(0).integers(-2, 3, size=(200, p.d)) / (1.0 if p.integer else 2.0)
    grid[::2] *= np.arange(p.d) == np.arange(100)[:, None] % p.d  # one weight
    if name == "infeasible":
        return [json.dumps(certify(p, none(p)).content)] * 3
    best = max((w for w in [*grid, np.zeros(p.d)] if p.feasible(w)), key=p.evaluate)
    return [json.dumps(certify(p, solution(p, best), max_boxes=boxes).content) for boxes in (300, 20, 0)]


def places(node, path=()):
    """Paths to everything in a file."""
    yield path
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from places(node[key], (*path, key))


def nudged(value, rng):
    """Another number, or a text with another word."""
    if isinstance(value, str):
        text = value.split(" ")
        at = rng.integers(len(text))
        return " ".join(
            [*text[:at], *rng.choice(["", ".", "0", "1z", "0:1", ". .", "0 . ."], rng.integers(3)), *text[at + 1 :]]
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return copy.deepcopy(JUNK[rng.integers(len(JUNK))])
    steps = [value + 1, value - 1, -value, 2 * value, value / 2, value * (1 + 1e-9), value - 1e-9]
    return [*steps, math.nextafter(value, math.inf), 0, -0.0][rng.integers(10)]


def mutate(content, rng):
    """One change at random."""
    top = [("value",), ("claimed_bound",), ("proof", "bound"), ("claim",), ("weights",), ("problem", "C")]
    paths = [path for path in places(content) if path]
    path = paths[rng.integers(len(paths))] if rng.random() < 0.8 else top[rng.integers(len(top))]
    if path not in paths:
        return
    *inner, last = path
    node = functools.reduce(lambda node, step: node[step], inner, content)
    action = rng.integers(6)
    if action == 0:
        node[last] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])
    elif action <= 2:
        node[last] = nudged(node[last], rng)
    elif action == 3:
        del node[last]
    elif action == 4:
        other = list(node)[rng.integers(len(node))] if isinstance(node, dict) else rng.integers(len(node))
        node[last], node[other] = node[other], node[last]
    elif isinstance(node, list):
        node.insert(last, copy.deepcopy(node[last]))
    else:
        node[f"{last}2"] = copy.deepcopy(node[last])


def verdict(content):
    """What is said about a file, accepted or rejected."""
    try:
        return verify.check(verify.parse(json.dumps(content)))[1]
    except verify.CertificateError as error:
        return str(error)


def is_true(content, claim, rng):
    """Check what an accepted file says against the library's own evaluation."""
    certificate = Certificate(content)
    numbers = [
        *map(abs, itertools.chain(*content["problem"]["X"], *(content["problem"]["constraints"] or {}).get("A", [])))
    ]
    if max(numbers) > 1e300:  # the library refuses numbers whose sums overflow
        return
    exact = verify.Problem(content["problem"])
    if any(one.objective(one.perfect, 0) < one.least for one in exact.demands):  # and what no order meets
        assert claim == "infeasible"
        return
    p = stated_problem(certificate)
    w = certificate.weights
    if claim == "infeasible":
        assert not any(p.feasible(v) for v in rng.integers(-2, 3, size=(100, p.d)) / 2.0)
        assert not p.demanded or optimum_of(p)[0] == -math.inf
        return
    size = max(abs(p.trivial_bound), abs(certificate.value))
    assert p.feasible(w)
    assert abs(p.evaluate(w) - certificate.value) <= 1e-11 * size
    assert certificate.value <= certificate.bound
    if claim == "optimal":
        assert certificate.bound - certificate.value <= 1.1e-12 * size
    if claim != "value":
        grid = rng.integers(-2, 3, size=(30, p.d)) / 2.0
        others = [*grid, *np.eye(p.d), *-np.eye(p.d), np.zeros(p.d)]
        if p.integer is not None and (2 * p.integer + 1) ** p.d <= 1000:  # all that there are
            others = map(np.array, itertools.product(np.arange(-p.integer, p.integer + 1.0), repeat=p.d))
        assert max(p.evaluate(v) for v in [w, *others] if p.feasible(v)) <= certificate.bound + 1e-12 * size


@pytest.mark.parametrize("name", PROBLEMS)
def test_changed_files_are_rejected_or_true(name):
    accepted = 0
    count = examples(150, slow=450)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        content = json.loads(certificates_of(name)[seed % 3])
        for _ in range(rng.integers(1, 3)):
            mutate(content, rng)
        if rng.random() < 0.6:
            with contextlib.suppress(AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
                rehash(content)
        said = verdict(content)
        assert "\n" not in said
        if said.startswith(("optimal: ", "bound: ", "value: the weights have", "infeasible: ")):
            accepted += 1
            is_true(content, said.partition(":")[0], rng)
    assert 5 <= accepted <= count / 2


@pytest.mark.parametrize("name", PROBLEMS)
def test_claims_of_more_are_rejected(name):
    for text in certificates_of(name):
        content = json.loads(text)
        assert verify.check(content)[0] == content["claim"]
        if name == "infeasible":
            for claim in ("optimal", "bound", "value"):
                with pytest.raises(verify.CertificateError, match=r"^weights: must not be null"):
                    verify.parse(json.dumps({**content, "claim": claim}))
            continue
        for more in (1e-9, 1e-3, 1.0):
            higher = json.loads(text)
            higher["value"] += more
            with pytest.raises(verify.CertificateError, match=r"^(value|claimed_bound|proof\.bound): "):
                verify.check(higher)
            lower = json.loads(text)
            lower["claimed_bound"] = lower["value"] - more
            if lower["proof"] is not None:
                lower["claimed_bound"], lower["proof"]["bound"] = lower["value"], lower["value"] - more
            with pytest.raises(verify.CertificateError, match="bound: must be at least the value"):
                verify.check(lower)
        for claim in {"optimal", "bound", "value"} - {content["claim"]}:
            with pytest.raises(verify.CertificateError, match=r"^claim: the file shows "):
                verify.check({**content, "claim": claim})


@pytest.mark.parametrize("room", slow_but([1, 8, 60, 400, 3000], quick=[60]))
def test_proofs_are_judged_alike_whatever_the_room(monkeypatch, room):
    monkeypatch.setattr(verify.boxes, "ROOM", room)
    monkeypatch.setattr(verify.boxes, "COUNTERS", 10**6)
    for content, claim in RIGHT:
        assert verify.check(verify.parse(json.dumps(content)))[0] == claim
    for content, message in WRONG:
        with pytest.raises(verify.CertificateError, match=message):
            verify.check(verify.parse(json.dumps(content)))
    for name in PROBLEMS:
        content = json.loads(certificates_of(name)[0])
        assert verify.check(content)[0] == content["claim"]
        if content["proof"] is not None:
            at = max(range(len(content["proof"]["partition"])), key=lambda at: len(content["proof"]["partition"][at]))
            words(at, lambda text: first_cut_closed(text) if len(text) > 1 else ["0", ".", "."])(content)
            judged = []
            for most in (room, 10**6):
                monkeypatch.setattr(verify.boxes, "ROOM", most)
                judged.append(verdict(content))
            assert judged[0] == judged[1]


# --- the program -----------------------------------------------------------------------------------------------


def written(folder, content):
    path = folder / "certificate.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "command", [lambda *words: command_line(["verify", *words]), lambda *words: verify.main(list(words))]
)
def test_exit_codes(command, tmp_path, capsys):
    path = written(tmp_path, by_hand([".", "."]))
    assert command(path) == 0
    out, err = capsys.readouterr()
    assert out.startswith(
        "optimal: the weights have the value 0.3; no weights exceed 0.3, proven by 2 boxes; "
        "problem: rerank, statistic auc, ties resolved, margin 0.125, C 0.2; data: 3 observations, 1 feature, sha256 "
    )
    assert err == ""
    sha256 = by_hand(None)["problem"]["sha256"]
    assert command("--require-proof", "--data", sha256, "--max-size", "1", path) == 0
    capsys.readouterr()
    assert command(path, "--data", "0" * 64) == 1
    assert capsys.readouterr().err == f"rejected: {path}: problem.sha256: must be {'0' * 64!r}, got {sha256!r}\n"
    written(tmp_path, by_hand(None))
    assert command(path) == 0
    assert capsys.readouterr().out.startswith(
        "value: the weights have the value 0.3; the bound 2.0 is claimed, not proven;"
    )
    assert command(path, "--require-proof") == 1
    assert capsys.readouterr() == ("", f"rejected: {path}: proof: there is none\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("[" * 100_000, "its brackets are nested too deeply"),
        ('{"format": ' + "1" * 5000 + "}", "it contains an integer with more digits than Python reads"),
        (b"\xff\xfe", "it is not UTF-8 text: invalid start byte at byte 0"),
    ],
    ids=lambda value: f"{value!r:.20}",
)
def test_what_is_not_json_cannot_be_read(content, message, tmp_path, capsys):
    path = tmp_path / "certificate.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert verify.main([str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"cannot read {path}: {message}")
    assert err.count("\n") == 1


def test_other_json_and_no_file(tmp_path, capsys):
    for content in ("[]", "null", "{}"):
        assert verify.main([written(tmp_path, content)]) == 1
        assert capsys.readouterr().err.startswith("rejected: ")
    assert verify.main([str(tmp_path / "none.json")]) == 2
    assert verify.main([str(tmp_path)]) == 2
    none, folder = capsys.readouterr().err.splitlines()
    assert none == f"cannot read {tmp_path / 'none.json'}: No such file or directory"
    assert folder == f"cannot read {tmp_path}: Is a directory"


def card_by_hand(X, points, most, unit=1):
    """A file that claims a bound on a card."""
    n, d = len(X), len(X[0])
    problem = {"kind": "card", "C": 0.0, "statistic": "auc", "a": [float(i + 1) for i in range(n)], "unit": unit}
    problem |= {"X": [" ".join(map(str, row)) for row in X], "gains": [float(i % 2) for i in range(n)]}
    problem |= {"points": points, "max_nonzeros": most, "ties": "average", "demands": [], "free": [], "rules": []}
    problem |= {"least": [-points] * d, "largest": [points] * d, "least_points": [1] * d, "required": []}
    problem |= {"groups": [-1] * d, "directions": [-1] * d}
    head = {"format": "ltr certificate", "version": 1, "claim": "bound", "value": 0.5, "claimed_bound": 1.0}
    content = {**head, "weights": [0.0] * d, "problem": problem, "proof": {"bound": 1.0, "partition": []}}
    rehash(content)
    return content


def large(path, n, bound=None, weights=(1.0, 0.5)):
    """Write a file of n observations on a grid, every other one positive, with a trivial bound."""
    X = [[float(i % 97), float(i * i % 89)] for i in range(n)]
    content = {**by_hand([".", ".", ".", "."], claim="bound", weights=weights)}
    content["problem"] |= {"statistic": "wrs", "C": 0.0, "X": X, "gains": [float(i % 2) for i in range(n)]}
    content["problem"] |= {"a": [float(rank) for rank in range(1, n + 1)], "qid": [0] * n}
    rehash(content)
    exact = verify.Problem(content["problem"])
    content["value"], size = float(exact.value(list(weights))), float(exact.size())
    content["claimed_bound"] = content["proof"]["bound"] = size if bound is None else bound
    path.write_text(json.dumps(content), encoding="utf-8")
    return str(path)


def limited(path, *options, megabytes=400):
    """The program as a process with little memory: exit code, what it says, and seconds."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", str(PROGRAM), path, *options],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20)),
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr, time.monotonic() - begun


def test_twenty_thousand_observations_are_checked_in_little_memory(tmp_path):
    path = large(tmp_path / "large.json", 20_000)
    code, said, seconds = limited(path)
    assert code == 0
    assert said.startswith("bound: the weights have the value ")
    assert "20000 observations" in said
    assert seconds < 30
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    data["value"] += 1.0
    Path(path).write_text(json.dumps(data), encoding="utf-8")
    code, said, seconds = limited(path)
    assert (code, said.partition(": value: is ")[0]) == (1, f"rejected: {path}")


def test_pairs_without_room_are_gone_through_again(tmp_path, monkeypatch):
    # 22,500 pairs, and a bound below the trivial one, so that each box looks at them
    content = json.loads(Path(large(tmp_path / "large.json", 300)).read_text(encoding="utf-8"))
    content["proof"]["bound"] = content["value"]
    messages, peaks = [], []
    for room in (10**6, 1000):
        monkeypatch.setattr(verify.boxes, "ROOM", room)
        tracemalloc.start()
        with pytest.raises(verify.CertificateError) as caught:
            verify.check(content)
        messages.append(str(caught.value))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert messages[0] == messages[1]
    assert "word 1: closes the box [-1, -1] x [-1, 1], where the value may be " in messages[0]
    assert peaks[1] < 1e6 < 3e6 < peaks[0]


def test_what_needs_too_much_is_not_called_wrong(tmp_path, monkeypatch, capsys):
    path = large(tmp_path / "large.json", 20_000)
    code, said, _ = limited(path, megabytes=32)
    assert (code, said) == (3, f"could not be checked: {path}: there is not enough memory\n")
    # what would take days is said before it is begun, or once it has taken too many steps
    wide = by_hand(["."] * 8002, X=[[float(i)] * 4001 for i in range(3)], weights=[0.5] + [0.0] * 4000)
    for content, reason in (
        (wide, "its roots, two for each column, are those of 4001 columns, more than 4000"),
        (
            card_by_hand([[0, 1] * 3, [1, 0] * 3, [1, 1] * 3], 100, 6),
            "it has 100 points of 6 columns, 100^6 ways, more than 100000",
        ),
        (
            card_by_hand([[0, 1] * 200, [1, 0] * 200, [1, 1] * 200], 1, 6),
            f"it has {sum(math.comb(400, m) for m in range(7))} sets of columns, more than 1000000",
        ),
        (
            card_by_hand([[3, 4] * 20] * 300, 1, 4),
            f"it has {300 * sum(math.comb(40, m) for m in range(1, 5))} sets of columns with other numbers",
        ),
    ):
        path = tmp_path / "slow.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        assert verify.main([str(path)]) == 3
        assert capsys.readouterr().err.startswith(f"could not be checked: {path}: {reason}")
    content = json.loads(Path(large(path, 2500)).read_text(encoding="utf-8"))
    content["proof"]["bound"] = content["value"]  # below the trivial one, so that each box looks at 1.6 million pairs
    path.write_text(json.dumps(content), encoding="utf-8")
    assert verify.main([str(path), "--max-steps", "1"]) == 3
    assert "it takes more than 1 million steps, which --max-steps can raise" in capsys.readouterr().err
    code, said, _ = limited("/dev/zero", "--max-size", "2")
    assert (code, said) == (3, "could not be checked: /dev/zero: it is larger than 2 MiB, which --max-size can raise\n")
    monkeypatch.setattr(verify.boxes, "ROOM", 10)
    path = large(tmp_path / "large.json", 2_000, bound=1_500_499.0)
    assert verify.main([path]) == 3
    assert capsys.readouterr() == (
        "",
        f"could not be checked: {path}: its boxes need 2000 counters of lost pairs, more than 80\n",
    )


def test_an_interrupted_check_says_so(tmp_path, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(verify.boxes, "check_closed", interrupt)
    path = written(tmp_path, by_hand([".", "."]))
    assert verify.main([path]) == 130
    assert capsys.readouterr() == ("", f"interrupted: {path} was not checked\n")


def test_long_checks_say_how_far_they_are(tmp_path, monkeypatch, capsys):
    clock = itertools.count(0, 6)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert verify.main([written(tmp_path, by_hand([".", "."]))]) == 0
    assert "checking box 2 of 2\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [[], ["one", "two"], ["one", "--data"], ["one", "--proof"], ["one", "--max-size=0"], ["one", "--max-size=x"]],
)
def test_misuse(words, capsys):
    for command in (verify.main, lambda more: command_line(["verify", *more])):
        with pytest.raises(SystemExit) as caught:
            command(words)
        assert caught.value.code == 2
    capsys.readouterr()


def test_it_runs_on_a_bare_python(tmp_path):
    path = written(tmp_path, by_hand([".", "."]))
    # -I and -S: no environment, no folder of the program, no installed packages
    modules = "import atexit, runpy, sys; sys.argv = sys.argv[1:]; "
    modules += "known = sys.stdlib_module_names | {'__main__', 'verify'}; "
    modules += "atexit.register(lambda: print([m for m in sys.modules if m.split('.')[0] not in known])); "
    modules += "runpy.run_path(sys.argv[0])"
    for command in ([str(PROGRAM), path], ["-c", modules, str(PROGRAM), path]):
        done = subprocess.run([sys.executable, "-I", "-S", *command], capture_output=True, text=True, check=True)
        verdict, *others = done.stdout.splitlines()
        assert verdict.startswith("optimal: the weights have the value 0.3;")
        assert others == ["[]"] * (command[0] == "-c")
    # modules of the library beside it shadow none of Python's that it needs
    beside = subprocess.run([sys.executable, str(PROGRAM), path], capture_output=True, text=True, check=True)
    assert beside.stdout.startswith("optimal:")


@pytest.mark.parametrize("place", ["value", "problem", "other"])
def test_deep_brackets_and_long_numbers_in_a_field_end_in_one_line(place, tmp_path, capsys):
    content = by_hand(None)
    content[place] = "DEEP"
    for depth in (10, 400, *range(900, 1000, 7), 2000):  # one of these meets the limit behind the reader of JSON
        path = written(tmp_path, json.dumps(content).replace('"DEEP"', "[" * depth + "]" * depth))
        assert verify.main([path]) in (1, 2)
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
    for number in ("1" * 4000, "-" + "9" * 4000, "1e999999999", "1." + "1" * 100_000, "NaN", "-Infinity"):
        path = written(tmp_path, json.dumps(content).replace('"DEEP"', number))
        assert verify.main([path]) == 1
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert len(err) < 300
