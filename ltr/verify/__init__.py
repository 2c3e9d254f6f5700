"""Check a certificate of weights, and of a bound that no weights exceed, in exact rational arithmetic.

    python ltr/verify FILE [--require-proof] [--data SHA256] [--max-size MIB] [--max-steps MILLIONS] [--json]

The program needs Python and nothing else. Every number of a file is a float64 and stands for itself; nothing is rounded
except in messages. The verdict is one line, and the exit code

    0  accepted: the file is right, and the line says what it shows about which problem
    1  rejected: the file is wrong, and the line names the place
    2  the file cannot be read or is not JSON, or the command line is wrong
    3  the file could not be checked: it needs more memory than there is, or more memory or work than the program
       allows itself

**The problem.** Over weights w in [-1, 1]^d with A w <= b and at most max_nonzeros of them other than 0, maximise
``statistic(w) - C * #{j : w_j != 0}``. Weights of the columns named as free are not counted, here or in what follows;
the weights of those named as required are at least 0.01 in size. Where a file states a number "integer", B, the weights
are whole numbers from -B to B instead of numbers from -1 to 1, and those of required columns are not 0. A pair (i, k)
is won where ``w·δ >= margin * s``, δ = x_i - x_k, margin > 0, and lost elsewhere; s = 1 unless stated otherwise. In a
file of the kind "pairwise" the statistic is the sum of the weights of the pairs won.

A file of the kind "rerank" gives each observation a gain >= 0 and a list, by its number qid. Of one list let n be the
number of observations, 0 <= a_1 <= ... <= a_n its weights (in the file one list after the other, qid ascending),
0 = v_0 < v_1 < ... the number 0 and the gains in it, and h_i the grade of i, gain_i = v_(h_i). The statistic is the sum
of gain_i * a[n - c_i] over all i of all lists, where c_i counts within the list of i

    ties "resolved"    the observations before i, in the order of the keys w·x - margin * h from the largest down; of
                       equal keys the larger h comes first; observations of equal key and h may be in any order
    ties "subrank"     the lost pairs (i, k), k any other

Of a single list with the gains 0 and 1, this sum s, and m ones, the statistic is (s - m (m + 1) / 2) / (m (n - m)) for
"auc", s / N for "precision@N", and s / m for "recall@N".

There may be "demands" on other statistics of the same observations and lists. Each states a statistic, its weights
a_1, ..., and labels, as a problem does, and a number "at_least". Weights meet it where its statistic, with the margin
of the problem and ties "resolved", is at least at_least - 1e-9 |at_least|, and the maximum is over weights that
meet all demands.

Files of the kinds "card" and "risk" are about points, whole numbers w. At most max_nonzeros of them are other than 0,
free columns not counted; these are from least_j to largest_j and at least least_points_j in size. Required columns are
among them, at most one of a group (a number >= 0), and those of a direction (a number >= 0) have one sign. A rule asks
for at_least to at_most of its columns, where a column of "when", if there are any, is among them.

The rows of a card are whole numbers, those of X times the "unit", a power of ten. Each limit of its points is 0 or
"points" in size. Rows are ordered by their totals w·x, the largest first, a row at place p = 0, 1, ... contributes
gain * a[n - p], and rows with equal totals contribute

    ties "average"     the mean over all their orders
    ties "resolved"    the least over all their orders, the one with ascending gains

and with gains 0 and 1 the statistic is the share that it is above. The statistic "c_index" is the share of comparable
pairs in order. A card may have "demands", too, on statistics of the same order with the same ties, or with ties
resolved where ties_lost says so. The last section says how it is proven.

The points of a risk score have a whole intercept b behind them, within "intercept" where that is not null. The
statistic is minus the sum of v_i log(1 + exp(-(2 y_i - 1) (b + w·x_i))), where the weights of the rows v_i are
row_weights, divided by their sum. The logarithms are computed to fifty digits. No bound of it is proven here: such a
file has no proof, and what it says of all other points is the claim of the solver.

**Layers.** As gain_i is the sum of v_t - v_(t-1) over t = 1, ..., h_i, the statistic is the sum over lists and t of
(v_t - v_(t-1)) S_t, where S_t is the sum of a[n - c_i] over the *members* of the layer, the i with h_i >= t. For
"resolved" let the pairs be the (i, k) with h_i > h_k, s = h_i - h_k, so that a pair is won where i comes before k; for
"subrank" all (i, k), s = 1. Let G_i be the number of lost pairs of i with h_k < t, and c_(0) <= c_(1) <= ... numbers of
the members, sorted. Go down the members in the order of the keys or, for "subrank", of w·x: G never falls. The one in
place p = 0, 1, ...

* for "resolved" comes after p members and G_(p) others: c_(p) = p + G_(p), and S_t = sum over p of a[n - p - G_(p)].
* for "subrank" beats neither the p members before it nor G_(p) others: its c is at least p + G_(p), which never falls
  either. Sorting keeps that: c_(p) >= p + G_(p).

**Tolerance.** Weights satisfy a row r of A w <= b where ``sum_j A_rj w_j <= b_r + 1e-9 (|b_r| + sum_j |A_rj w_j|)``,
1e-9 being the float64 of that name. All that follows is about these weights.

**Roots.** Where b <= 0 or there are no constraints, feasible weights other than 0 can be scaled up to max |w_j| = 1:
they stay feasible, win what they won, and keep their zeros. (For a row, scaling multiplies both sums by s >= 1, and s
(b_r + 1e-9 |b_r|) is at most b_r + 1e-9 |b_r| where that is not above 0.) Losing fewer pairs never lowers a statistic,
that of a demand or the one to be maximised: a is nondecreasing, and a sum S_t needs the numbers G only, or for
"subrank" the numbers c, of lost pairs. So the value of w = 0, if it is feasible, and 2d roots are all that matters, the
faces w_0 = -1, w_0 = 1, w_1 = -1, ... of the cube. Otherwise the cube is the only root. Whole numbers can be scaled up
by whole numbers s until max |w_j| > B / 2. With m the least whole number above B / 2 the roots are -B <= w_0 <= -m, m
<= w_0 <= B, -B <= w_1 <= -m, ...; the weights with smaller numbers than that of a root are from 1 - m to m - 1 in it.

**Partition.** One text for each root cuts it into boxes, in preorder: "." closes a box; "j" halves it at the middle of
its interval of w_j, lower half first; "jz" cuts it into the parts w_j < 0, w_j = 0 and w_j > 0; "i:k" cuts it into
w·x_i <= w·x_k and w·x_i >= w·x_k, for two observations with different features. The parts of a box cover it, so the
closed boxes cover the root. The parts with w_j < 0 and w_j > 0 keep 0 as an end of their interval, and the knowledge
that w_j is not 0: their pairs are judged on a slightly larger set, which is safe. Of whole numbers from l to h the
lower half is those up to (l + h) / 2, rounded down, and the upper half the others; the parts of "jz" are w_j <= -1, w_j
= 0 and w_j >= 1.

**Closed boxes.** A box is rightly closed where a row of A w <= b fails on all of it, where the weight of a required
column is too small on all of it, where more than max_nonzeros weights are known not to be 0, those of required columns
among them, where its value is bounded by the bound to be proven, or where the statistic of a demand is bounded by a
number below that from which the demand is met. A row fails on all of it where it does with every A_rj w_j at its least,
as y - 1e-9 |y| grows with y. In the box with centre c and half-widths r, w·δ is at most c·δ + r·|δ|; where that is
below margin * s the pair is lost everywhere. A part w·x_i <= w·x_k loses all pairs of an observation with the features
of i and one with those of k, as margin * s > 0. These lost pairs and the weights known not to be 0 bound the value, and
the lost pairs of a demand bound its statistic, for:

* Let b_i of the lost pairs of i be known, g_i of them with h_k < t. Then b_i <= c_i, as for "resolved" the k of a lost
  pair comes before i, and g_i <= G_i. Sorting keeps ``<=`` between lists, and a is nondecreasing, so

      S_t <= sum over p of a[n - max(b_(p), p + g_(p))].

  At a single w, where all lost pairs are known, both sides are equal.
* Pairs with the directions δ and -sδ, s > 0, are never won together. So of the pairs whose δ lie on one line only those
  of one direction count, whichever of the two has the larger weight not yet lost.

**Cards.** The file has no partition; the program looks at all sets of m <= max_nonzeros columns. They split the rows
into 2^m blocks, by the pattern of zeros and ones. With ties averaged, each of the c rows of a block with the gain g
counts as if it had the gain g / c, and an order of rows with given gains has its largest value where they descend. So
the blocks by descending g / c bound the value of all points of these columns; "resolved" has no larger value. Where
that is not enough, let s be the columns with points below 0. As ``w·x = sum_j |w_j| (x_j xor s_j) + constant``, the
order is that of the positive points |w|, the patterns renamed. For positive points all orders are listed, as a tree of
sets of patterns with equal totals from the top down. In a node of the tree the blocks above it have their value, and
those below it are bounded as before. Contributions are rounded up to integers, in units of 2^-64 of that of a.

Where one of the columns has other numbers, they are fixed one after the other, and the rows with equal values of those
that are not fixed form blocks, whose order the points that are fixed decide. In it neighbours, rows with equal totals
first, are pooled until the means of their gains fall: every first so many of the pooled gains have at least the sum of
as many gains of the block. So with these, whatever the places of the block's rows are, it contributes no less, and the
pools of all blocks by falling means bound the value. The statistics of demands are bounded likewise, and what cannot
meet a demand is closed. Points with a common divisor are left out: they order rows like
those divided by it.

**What a file shows**, and has to state as its claim: "optimal", the bound is proven and is the value of the weights up
to 1e-12 of the statistic's size; "bound", it is proven and larger; "value", there is no partition, the weights have
their value, and the bound of the solver (claimed_bound) is just quoted; "infeasible", no weights satisfy all
constraints and demands, as w = 0 does not and each box of the partition is closed for another reason than its value.
Weights, value and bounds are null then.
"""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction

from .boxes import FEASIBLE, Problem
from .cards import Cards, Risk
from .file import (
    MAX_STEPS,
    ROUNDING,
    CertificateError,
    Json,
    LimitError,
    Progress,
    counted,
    data_digest,
    parse,
    read,
    require,
    show,
    sized,
)

__all__ = ["Cards", "CertificateError", "Problem", "Risk", "check", "data_digest", "main", "parse", "problem_of"]

MAX_SIZE = 256  # largest size of a file in MiB: Python needs up to twenty times as much memory for it


def problem_of(content: dict[str, Json], progress: Progress | None = None) -> Problem | Cards | Risk:
    """Return the problem of a file, checked, given its whole content."""
    stated, infeasible = content["problem"], content["claim"] == "infeasible"
    progress = progress or Progress()
    if stated["kind"] == "card":
        problem: Problem | Cards | Risk = Cards(stated, progress)
    elif stated["kind"] == "risk":
        problem = Risk(stated, progress)
    else:
        problem = Problem(stated, progress, infeasible=infeasible)
    owner, sha256 = "problem has" if stated["kind"] in ("card", "risk") else "data have", data_digest(stated)
    require(stated["sha256"] == sha256, "problem.sha256", f"the {owner} {sha256}")
    return problem


def check(content: dict[str, Json], progress: Progress | None = None) -> tuple[str, str]:
    """Return what the content of a file (from `parse`) shows, as its claim and in words.

    The claim is "optimal"; "bound" if a bound above the value is proven; "value" if none is proven; or "infeasible".
    `CertificateError` says what is wrong.
    """
    problem, weights, stated = problem_of(content, progress), content["weights"], content["value"]
    if content["claim"] == "infeasible":
        means = problem.prove(None, content["proof"]["partition"])
        words = f"no weights satisfy all constraints and demands, proven by {means}"
        return "infeasible", f"infeasible: {words}; {statement(content['problem'])}"
    sized(weights, problem.d + isinstance(problem, Risk), "weights")  # behind the points stands the intercept
    problem.check_weights(weights)
    over, value = problem.excess(weights), problem.value(weights)
    require(over <= FEASIBLE, "weights", f"exceed a side constraint by {show(over)} of its terms' size")
    tolerance = ROUNDING * max(abs(problem.size()), abs(value))
    require(abs(value - Fraction(stated)) <= tolerance, "value", f"is {show(value)} at these weights, not {stated!r}")
    least, bound = f"must be at least the value {stated!r}, got ", content["claimed_bound"]
    require(bound >= stated, "claimed_bound", f"{least}{bound!r}")
    claim, words = "value", f"the bound {bound!r} is claimed, not proven"
    if content["proof"] is not None:
        bound, partition = content["proof"]["bound"], content["proof"]["partition"]
        require(bound >= stated, "proof.bound", f"{least}{bound!r}")
        means = problem.prove(Fraction(bound), partition)
        claim = "optimal" if Fraction(bound) - value <= tolerance else "bound"
        words = f"no weights exceed {bound!r}, proven by {means}"
    require(content["claim"] == claim, "claim", f"the file shows {claim!r}, not {content['claim']!r:.40}")
    if over:
        words += f"; the weights exceed a side constraint by {show(over)} of its terms' size, which is tolerated"
    return claim, f"{claim}: the weights have the value {show(value)}; {words}; {statement(content['problem'])}"


def statement(problem: dict[str, Json]) -> str:
    """Return the problem in words: all that the value and the bound depend on, the data by their hash."""
    kind, lists, columns = problem["kind"], "", "column" if problem["kind"] in ("card", "risk") else "feature"
    words = ["problem: risk score, minus the logistic loss" if kind == "risk" else f"problem: {kind}"]
    if kind == "pairwise":
        words.append(counted(len(problem["pairs"]), "pair"))
    if "statistic" in problem:
        words.append("statistic " + "".join(problem["statistic"].split()))
    words += [f"{name} {problem[name]}" for name in ("ties", "points") if name in problem]
    if kind == "risk":
        words.append(f"points from {min(problem['least'])} to {max(problem['largest'])}")
        words += [] if problem["intercept"] is None else ["intercept from {} to {}".format(*problem["intercept"])]
    numbers = {name: problem.get(name) for name in ("margin", "max_nonzeros", "C")}
    words += [f"{name} {value!r}" for name, value in numbers.items() if value is not None]
    for name in ("free", "required"):
        if named := problem[name]:
            words.append(f"{name} {'columns' if len(named) > 1 else 'column'} {' and '.join(map(str, named))}")
    if problem.get("integer") is not None:
        words.append(f"weights whole numbers from -{problem['integer']} to {problem['integer']}")
    sizes = {"side constraint": len((problem.get("constraints") or {"A": []})["A"])}
    if columns == "column":
        ends = zip(problem["least"], problem["largest"], strict=True)
        sizes |= {"sign": sum((low == 0) != (high == 0) for low, high in ends), "rule": len(problem["rules"])}
        sizes["grouped column"] = sum(v >= 0 for v in problem["groups"])
        sizes["column with a direction"] = sum(v >= 0 for v in problem["directions"])
    words += [counted(number, word) for word, number in sizes.items() if number]
    for demand in problem.get("demands", []):
        name, ties = "".join(demand["statistic"].split()), " with ties resolved" * demand["ties_lost"]
        words.append(f"demand {name} at least {demand['at_least']!r}{ties}")
    if len({*problem.get("qid", [])}) > 1:
        lists = " in " + counted(len({*problem["qid"]}), "list")
    d = len(problem["least"] if columns == "column" else problem["X"][0])
    data = f"{counted(len(problem['X']), 'observation')}{lists}, {counted(d, columns)}, sha256 {problem['sha256']}"
    return f"{', '.join(words)}; data: {data}"


def main(arguments: list[str] | None = None) -> int:
    """Check the file named on the command line and return the exit code."""
    parser = argparse.ArgumentParser(
        description="Check a certificate in exact arithmetic.",
        epilog="exit codes: 0 accepted, 1 rejected, 2 cannot be read or wrong usage, "
        "3 could not be checked (memory or work)",
    )
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--require-proof", action="store_true", help="reject a file that proves no bound")
    parser.add_argument("--data", metavar="SHA256", help="reject a file about other data")
    parser.add_argument(
        "--max-size", metavar="MIB", type=int, default=MAX_SIZE, help="largest size of the file in MiB (%(default)s)"
    )
    parser.add_argument(
        "--max-steps", metavar="MILLIONS", type=int, default=MAX_STEPS, help="most steps, in millions (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    options = parser.parse_args(arguments)
    for name, value in (("--max-size", options.max_size), ("--max-steps", options.max_steps)):
        if value < 1:
            parser.error(f"argument {name}: must be at least 1, got {value}")
    claim = sha256 = None
    try:
        content = parse(read(options.file, options.max_size))
        claim, words = check(content, Progress(loud=True, most=options.max_steps))
        require(claim != "value" or not options.require_proof, "proof", "there is none")
        sha256 = content["problem"]["sha256"]
        require(options.data in (None, sha256), "problem.sha256", f"must be {options.data!r}, got {sha256!r}")
        code, verdict, said = 0, "accepted", ""
    except CertificateError as error:
        code, verdict, said, words, claim, sha256 = 1, "rejected", "rejected", str(error), None, None
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot read {options.file}: {getattr(error, 'strerror', None) or error}\n")
        return 2
    except (MemoryError, LimitError) as error:
        error.__traceback__ = None  # frees what was read, for there may be no memory left to say so
        words = str(error) if isinstance(error, LimitError) else "there is not enough memory"
        code, verdict, said = 3, "unchecked", "could not be checked"
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted: {options.file} was not checked\n")
        return 130
    if said:
        sys.stderr.write(f"{said}: {options.file}: {words}\n")
    if options.json:
        content = {"verdict": verdict, "file": options.file, "words": words, "claim": claim, "data": sha256}
        sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    elif code == 0:
        sys.stdout.write(f"{words}\n")
    return code
