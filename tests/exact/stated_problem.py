"""The problem that a certificate file states, made again from its data, and solutions to certify."""

import math

import numpy as np

from ltr.exact import Demand, LinearConstraints, PairwiseProblem, RerankProblem
from ltr.exact.card_rules import CardRule
from ltr.exact.cards import CardProblem
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Solution, Status
from ltr.outcomes import survival_labels, uplift_labels
from ltr.statistics import RankStatistic


def solution(problem, w, bound=None):
    """Weights as a heuristic hands them back."""
    bound = problem.trivial_bound if bound is None else bound
    return Solution(np.asarray(w, dtype=float), problem.evaluate(w), bound, Status.HEURISTIC, 0.0, "test")


def none(problem):
    """What a solver returns that finds no weights feasible."""
    return Solution(np.zeros(problem.d), -math.inf, -math.inf, Status.INFEASIBLE, 0.0, "test")


def stated_problem(certificate):
    """The problem of a certificate, or of the content of one."""
    content = getattr(certificate, "content", certificate)["problem"]
    if content["kind"] in ("card", "risk"):
        same = ("C", "max_nonzeros", "free", "groups", "required", "directions", "least_points")
        options = {name: content[name] for name in same}
        options["rules"] = [CardRule(**rule) for rule in content["rules"]]
        options["point_limits"] = np.column_stack([content["least"], content["largest"]])
    if content["kind"] == "card":
        X = [[int(v) / content["unit"] for v in row.split()] for row in content["X"]]
        options |= {"points": content["points"], "ties": content["ties"], "demands": _demands(content, 1)}
        return CardProblem(X, _labels(content), content["statistic"], gain="linear", **options)
    if content["kind"] == "risk":
        options |= {"intercept_limits": content["intercept"], "weight": content["row_weights"]}
        return RiskProblem(content["X"], content["y"], **options)
    sides = content["constraints"]
    options = {name: content[name] for name in ("C", "margin", "max_nonzeros", "free", "required", "integer")}
    options["constraints"] = None if sides is None else LinearConstraints(sides["A"], sides["b"])
    if content["kind"] == "pairwise":
        return PairwiseProblem(content["X"], content["pairs"], weights=content["pair_weights"], **options)
    lists = len({*content["qid"]})
    options |= {"ties": content["ties"], "qid": content["qid"], "demands": _demands(content, lists)}
    options["gain"] = "linear" if {*content.get("gains", ())} == {0.0, 1.0} else np.copy
    return RerankProblem(content["X"], _labels(content), _statistic(content, lists), **options)


def _demands(content, lists):
    """The demands that a file states."""
    return [
        Demand(_statistic(of, lists), of["at_least"], _labels(of), ties="resolved" if of["ties_lost"] else None)
        for of in content["demands"]
    ]


def _labels(stated):
    """The labels that a file states."""
    if "time" in stated:
        return survival_labels(stated["time"], stated["event"])
    if "outcome" in stated:
        return uplift_labels(stated["outcome"], stated["treatment"])
    return stated["gains"]


def _statistic(stated, lists):
    """The statistic that a file states, where auc is the sum of ranks unless gains are 0 and 1."""
    shares = lists == 1 and {*stated.get("gains", ())} == {0.0, 1.0}
    return "wrs" if RankStatistic.parse(stated["statistic"]).name == "auc" and not shares else stated["statistic"]
