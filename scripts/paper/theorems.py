"""The theorems of the paper: two opposite rankings of one data set, and when optima by Subranks are also best by ranks.

*Theorem 1* (section 2.4). There is a data set of one feature with two opposite rankings, each preferred by some
statistics and losses; here, too, what training on it gives, and the exact optima.

*The last theorem of section 4.* With H the objective by ResolvedRanks and G the one by Subranks, G(w) <= H(w) for all
w, with equality where no two positives have the same score. Let w maximise H. The condition: if no two positives agree
on the support of w (the features j with w_j != 0), every maximiser of G maximises H. The proof is on the page. Without
a price, it is enough that no two positives are duplicates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ltr.data import Dataset, theorem1
from ltr.exact import Limits, PairwiseProblem, RerankProblem, Solution, Status, multipartite_pairs, solve
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.fitting import Fit, FitOptions
from ltr.losses import parse_loss
from ltr.metrics import rank_statistic
from ltr.rankers.scorers import LinearScorer
from ltr.ranks import rank_cv, resolved_rank, subrank
from ltr.statistics import RankStatistic

_SEARCH, _LIMITS = WeightSpaceSearch(threads=1), Limits(time_limit=600.0)


def theorems() -> dict[str, Any]:
    """Compute everything that the page says about the theorems; this takes about a minute."""
    return {
        "theorem1": first_theorem(),
        "ranks": rank_definitions(),
        "theorem2": second_theorem(),
        "lemma": lemma_one(),
        "areas": areas_agree(),
    }


# --- theorem 1 ----------------------------------------------------------------------------------------------------

CLAIMS = {"auc": 1, "pauc@100": 1, "dcg": 1, "mrr": 1, "hinge": 1, "dcg@100": 2, "pauc@10": 2, "exponential": 2}
"""The statistics and losses of the theorem, each with the solution that it is said to prefer."""
CONVEX = (
    *("hinge", "exponential", "squared_hinge", "ranknet", "p_norm_push(p=2)", "p_norm_push(p=4)"),
    *("logistic", "list_net", "list_mle"),
)

_SEEDS = (0, 1, 2)  # of the draws of the data; fits and solves use the first
_LOWEST, _FAR = -5.0, -40.0  # the lowest clump is below the one; our own example moves it to the other
_L2 = 1e-6  # a penalty, so that the distance to the optimum is bounded


def first_theorem() -> dict[str, Any]:
    """Compute everything that the page says about the theorem."""
    draws = [theorem1(seed) for seed in _SEEDS]
    data, far = draws[0], moved(draws[0])
    x, y = scores_and_labels(data)
    solved = {name: solve_exactly(name, data) for name in CLAIMS if name not in CONVEX}
    return {
        "data": data,
        "draws": len(draws),
        "claims": CLAIMS,
        "right": sum(preferred(name, draws) == own for name, own in CLAIMS.items()),
        "ends": [sum(trained(name, rows) == own for name in CONVEX) for rows, own in ((data, 1), (far, 2))],
        "convex": len(CONVEX),
        "solved": len(solved),
        "proven": sum(
            found.status is Status.OPTIMAL and (found.weights[0] > 0) == (CLAIMS[name] == 1)
            for name, found in solved.items()
        ),
        "areas": [float(rank_statistic(sign * x, y, "auc")) for sign in (1, -1)],
    }


def preferred(name: str, draws: Sequence[Dataset]) -> int | None:
    """Return the solution that a statistic or loss prefers: 1 scores x, 2 scores -x; None if the draws disagree."""
    found = set()
    for x, y in map(scores_and_labels, draws):
        if name in CONVEX:
            first, second = (-float(parse_loss(name)(sign * x, y)) for sign in (1, -1))
        else:
            first, second = (float(rank_statistic(sign * x, y, name)) for sign in (1, -1))
        found.add(None if first == second else 1 if first > second else 2)
    return found.pop() if len(found) == 1 else None


def moved(data: Dataset) -> Dataset:
    """Return the data with its lowest clump, the positives near -10, at -40: no two observations change their order."""
    X, low = data.X.copy(), data.X[:, 0] < _LOWEST
    X[low] += _FAR - np.round(X[low].mean())
    return Dataset(data.name, X, data.y)


def scores_and_labels(data: Dataset) -> tuple[Tensor, Tensor]:
    """Return the one feature as scores, and the labels."""
    return torch.from_numpy(data.X[:, 0].copy()), torch.from_numpy(data.y.copy())


def trained(name: str, data: Dataset) -> int:
    """Return the ranking that training on a convex loss ends with: 1 for a positive weight, 2 for a negative one.

    A convex function that falls at w = 0 has its minimisers above 0, so its slope there (with the best bias, for a loss
    that depends on one) decides; the weight must agree.
    """
    loss, (x, y) = parse_loss(name), scores_and_labels(data)
    bias = math.log(data.n_pos / (data.n - data.n_pos)) if name == "logistic" else 0.0
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(w * x + bias, y), w)
    scorer = LinearScorer(1)
    Fit(scorer, loss, data.X, data.y, FitOptions(l2=_L2)).run()
    weight = scorer.weight.item()
    if float(slope) * weight >= 0:
        raise ArithmeticError(f"{name}: a weight of {weight} does not follow a slope of {slope}")
    return 1 if weight > 0 else 2


def solve_exactly(name: str, data: Dataset) -> Solution:
    """Return the linear scorer of the full list with the largest statistic, proven."""
    return solve(RerankProblem(data.X, data.y, name), _SEARCH, _LIMITS)


# --- when Subranks suffice ----------------------------------------------------------------------------------------

FAMILIES = ("whole", "mixed", "continuous")
"""Kinds of random lists: whole numbers 0 to 2, one binary feature beside continuous ones, and continuous ones alone."""
PRICES = (0.0, 0.05, 0.2, 0.8)
COUNTEREXAMPLES = {
    "two features": ([[1.0, 0.0], [1.0, 1.0], [0.0, 0.5], [0.0, -0.5]], [1, 1, 0, 0], 0.2),
    "one feature": ([[2.0], [1.0], [0.0]], [1, 1, 0], 0.55),
}
"""Lists without duplicates on which the theorem fails, as X, y and C: through a shared value, and through w = 0."""

LABELS = (1, 1, 0, 0, 0, 1, 1, 0, 1)
SCORES = (6.2, 6.2, 5.8, 4.6, 3.1, 3.1, 2.3, 1.7, 1.7)
PRINTED = {"Subrank": (7, 7, 6, 5, 3, 3, 2, 0, 0), "ResolvedRank": (8, 7, 6, 5, 4, 3, 2, 1, 0)}
"""The ranks that the paper prints for its example of ties."""

_N, _D = 8, 3  # observations and features of random lists
_SAME = 1e-9  # values that differ by less count as equal


@dataclass(frozen=True)
class Case:
    """One list, solved by both rank definitions."""

    resolved: RerankProblem
    subrank: RerankProblem
    best: Solution  # solution of `resolved`
    substitute: Solution  # solution of `subrank`
    proven: bool  # whether both are optimal
    shortfall: float  # distance, by ResolvedRanks, from the Subrank optimum found to the ResolvedRank optimum
    fails: bool  # whether the Subrank optimum found is not a ResolvedRank optimum, against the theorem's conclusion
    apart: bool  # whether the two optima have different values
    duplicates: bool  # whether two observations are the same, which the paper's condition excludes
    condition: bool  # whether the corrected condition holds at the ResolvedRank optimum found


def settle(X: ArrayLike, y: ArrayLike, C: float) -> Case:
    """Solve a list by both rank definitions, at the price C of a non-zero weight."""
    problems = [RerankProblem(X, y, C=C, ties=ties) for ties in ("resolved", "subrank")]
    best, other = answers = [solve(problem, _SEARCH, _LIMITS) for problem in problems]
    resolved = problems[0]
    shortfall = best.value - resolved.evaluate(other.weights)
    support = best.weights != 0 if C > 0 else np.ones(resolved.d, dtype=bool)
    return Case(
        *problems,
        *answers,
        proven=all(answer.status is Status.OPTIMAL for answer in answers),
        shortfall=shortfall,
        fails=shortfall > _SAME,
        apart=best.value - other.value > _SAME,
        duplicates=_repeats(resolved.X),
        condition=not _repeats(resolved.X[resolved.positives][:, support]),
    )


def tally(cases: Iterable[Case]) -> dict[str, int]:
    """Return the number of cases of each kind."""
    found = list(cases)
    kinds = {name: sum(getattr(case, name) for case in found) for name in ("proven", "condition", "fails")}
    return kinds | {
        "lists": len(found),
        "against": sum(case.condition and (case.fails or case.apart) for case in found),  # the corrected theorem
    }


def instances(family: str, count: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield random lists without duplicates, at least two positives and a negative in each."""
    rng = np.random.default_rng(seed)
    while count:
        X = rng.integers(0, 3, (_N, _D)).astype(np.float64) if family == "whole" else rng.normal(size=(_N, _D))
        if family == "mixed":
            X[:, 0] = rng.integers(0, 2, _N)
        y = rng.integers(0, 2, _N)
        if 2 <= y.sum() < _N and not _repeats(X):
            count -= 1
            yield X, y


def _repeats(X: np.ndarray) -> bool:
    return len(np.unique(X, axis=0)) < len(X) if X.shape[1] else len(X) > 1


def second_theorem(lists: int = 30, seed: int = 0) -> dict[str, Any]:
    """Compute everything that the page says about the theorem: two counterexamples, and random lists of each family."""
    by_price = {C: [settle(*one, C) for family in FAMILIES for one in instances(family, lists, seed)] for C in PRICES}
    return {
        "cases": {name: settle(X, y, C) for name, (X, y, C) in COUNTEREXAMPLES.items()},
        "all": tally(itertools.chain(*by_price.values())),
        "free": tally(by_price.pop(0.0)),
        "priced": tally(itertools.chain(*by_price.values())),
    }


# --- definitions of rank, and other statements --------------------------------------------------------------------


def ranks_of(scores: Tensor, labels: Tensor) -> Mapping[str, Tensor]:
    """Return RankCV (1 to n), Subrank and ResolvedRank (0 to n - 1) of a list."""
    return {"RankCV": rank_cv(scores), "Subrank": subrank(scores), "ResolvedRank": resolved_rank(scores, labels)}


def values_of(scores: Tensor, labels: Tensor) -> Mapping[str, float]:
    """Return the DCG of a list by each definition of rank."""
    measure, n = RankStatistic.parse("dcg"), len(scores)
    ranks = {name: own + (name != "RankCV") for name, own in ranks_of(scores, labels).items()}
    return {name: measure.value(own[labels == 1].numpy(), n) for name, own in ranks.items()}


def rank_definitions() -> dict[str, Any]:
    """Compare the ranks of the paper's example with the printed ones, and a constant score with a perfect ranking."""
    scores, labels = torch.tensor(SCORES, dtype=torch.float64), torch.tensor(LABELS)
    ranks = ranks_of(scores, labels)
    return {
        "same": [name for name, printed in PRINTED.items() if tuple(ranks[name].tolist()) == printed],
        "constant": values_of(torch.zeros_like(scores), labels),
        "perfect": values_of(labels - 0.01 * torch.arange(len(labels)), labels),
    }


def lemma_one(count: int = 40, seed: int = 0) -> Mapping[str, int]:
    """Compare Subranks with ResolvedRanks on weights with and without ties, of random lists of whole numbers."""
    found = {"cases": 0, "below": 0}
    rng = np.random.default_rng(seed)
    for X, y in instances("whole", count, seed):
        resolved, sub = (RerankProblem(X, y, C=0.1, ties=ties) for ties in ("resolved", "subrank"))
        for w in [*itertools.product((-1.0, 0.0, 1.0), repeat=3), *rng.uniform(-1, 1, (13, 3))]:
            found["cases"] += 1
            found["below"] += bool(resolved.evaluate(w) - sub.evaluate(w) >= -1e-12)
    return found


def areas_agree(count: int = 6, seed: int = 0, C: float = 0.5) -> Mapping[str, int]:
    """Count random lists on which the appendix' models of AUC and of pairs agree with the search on rank sums."""
    agree = 0
    for X, y in instances("continuous", count, seed):
        n_pos = int(y.sum())
        sums, pairs = RerankProblem(X, y, "wrs", C), PairwiseProblem(X, multipartite_pairs(y), C=C)
        given = [(sums, _SEARCH), (sums, "auc"), (pairs, "pairwise")]
        answers = [solve(problem, method, _LIMITS) for problem, method in given]
        values = np.array([s.value for s in answers]) - np.array([1, 1, 0]) * n_pos * (n_pos + 1) / 2
        agree += all(s.status is Status.OPTIMAL for s in answers) and bool(np.ptp(values) <= 1e-6)
    return {"lists": count, "agree": agree}
