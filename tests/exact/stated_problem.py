"""The problem that a certificate file states, made again from its data, to compare the checker with the library."""

import numpy as np

from ltr.exact import Demand, LinearConstraints, PairwiseProblem, RerankProblem
from ltr.exact.card_rules import CardRule
from ltr.exact.cards import CardProblem
from ltr.exact.risk import RiskProblem
from ltr.outcomes import survival_labels, uplift_labels
from ltr.statistics import RankStatistic


def stated_problem(certificate):
    """The problem of a certificate, or of the content of one."""
    content = getattr(certificate, "content", certificate)["problem"]
    if content["kind"] == "card":
        unit = content.get("unit", 1)
        X = [[int(v) / unit for v in (row.split() if "unit" in content else row)] for row in content["X"]]
        names = ("C", "points", "max_nonzeros", "ties", "signs", "groups", "required")
        options = {name: content[name] for name in names}
        options["rules"] = [CardRule(**rule) for rule in content.get("rules", ())]
        options |= {"directions": content.get("directions"), "least_points": content.get("least_points", 1)}
        options["demands"] = _demands(content, 1)
        return CardProblem(X, _labels(content), content["statistic"], gain="linear", **options)
    if content["kind"] == "risk":
        stated = ("C", "max_nonzeros", "signs", "groups", "required")
        options = {"free": content.get("free", ()), **{name: content[name] for name in stated}}
        options["rules"] = [CardRule(**rule) for rule in content.get("rules", ())]
        options["directions"] = content.get("directions")
        options["least_points"] = content.get("least_points", 1)
        options["point_limits"] = np.column_stack([content["least"], content["largest"]])
        options |= {"intercept_limits": content["intercept"], "weight": content.get("row_weights")}
        return RiskProblem(content["X"], content["y"], **options)
    sides = content["constraints"]
    options = {
        "C": content["C"],
        "margin": content["margin"],
        "constraints": None if sides is None else LinearConstraints(sides["A"], sides["b"]),
        "max_nonzeros": content["max_nonzeros"],
        **{name: content[name] for name in ("free", "required", "integer") if name in content},
    }
    if content["kind"] == "pairwise":
        return PairwiseProblem(content["X"], content["pairs"], weights=content["pair_weights"], **options)
    options |= {"ties": content["ties"], "qid": content.get("qid")}
    lists = len({*content.get("qid", [0])})
    options["demands"] = _demands(content, lists)
    options["statistic"] = _statistic(content, lists)
    options["gain"] = "linear" if content["kind"] == "rerank" else np.copy
    return RerankProblem(content["X"], _labels(content), **options)


def _demands(content, lists):
    """The demands that a file states."""
    return [
        Demand(_statistic(of, lists), of["at_least"], _labels(of), ties="resolved" if of.get("ties_lost") else None)
        for of in content.get("demands", [])
    ]


def _labels(stated):
    """The labels that a file states."""
    if "time" in stated:
        return survival_labels(stated["time"], stated["event"])
    if "outcome" in stated:
        return uplift_labels(stated["outcome"], stated["treatment"])
    return stated["y"] if "y" in stated else stated["gains"]


def _statistic(stated, lists):
    """The statistic that a file states, where auc is the sum of ranks unless it is of the kind "rerank"."""
    text = str(stated["statistic"])
    labels = lists == 1 and {*stated.get("gains", ())} == {0.0, 1.0}
    return "wrs" if labels and RankStatistic.parse(text).name == "auc" else text
