"""The three definitions of rank, on the paper's own example of ties."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ltr.metrics import evaluate
from ltr.ranks import rank_cv, resolved_rank, subrank
from ltr.statistics import RankStatistic
from trainers.report.page import Section, Table, Text
from trainers.report.wording import listed

from .words import number

__all__ = ["LABELS", "PRINTED", "SCORES", "rank_definitions", "ranks_of", "values_of", "wilcoxon"]

LABELS = (1, 1, 0, 0, 0, 1, 1, 0, 1)
SCORES = (6.2, 6.2, 5.8, 4.6, 3.1, 3.1, 2.3, 1.7, 1.7)
PRINTED = {"Subrank": (7, 7, 6, 5, 3, 3, 2, 0, 0), "ResolvedRank": (8, 7, 6, 5, 4, 3, 2, 1, 0)}
"""The paper's example, and the ranks that it prints."""

_STATISTIC = "dcg"


def ranks_of(scores: Tensor, labels: Tensor) -> Mapping[str, Tensor]:
    """RankCV (1 to n), Subrank and ResolvedRank (0 to n - 1) of a list."""
    return {"RankCV": rank_cv(scores), "Subrank": subrank(scores), "ResolvedRank": resolved_rank(scores, labels)}


def values_of(scores: Tensor, labels: Tensor, statistic: str = _STATISTIC) -> Mapping[str, float]:
    """A statistic by each definition of rank.

    Args:
        scores: of one list.
        labels: 0 and 1.
        statistic: its name.
    """
    measure, n = RankStatistic.parse(statistic), len(scores)
    ranks = {name: own + (name != "RankCV") for name, own in ranks_of(scores, labels).items()}
    return {name: measure.value(own[labels == 1].numpy(), n) for name, own in ranks.items()}


def wilcoxon(scores: Tensor, labels: Tensor) -> Mapping[str, int]:
    """Sums of the positives' ranks, n_pos n_neg AUC + n_pos (n_pos + 1) / 2, and pairs that tie.

    Returns:
        ``RankCV`` and ``Subrank`` (ranks from 1), ``formula``, ``positives`` and ``mixed``: ties among positives, and
        between a positive and a negative.
    """
    positive = labels == 1
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    own, other = scores[positive], scores[~positive]
    area = float(evaluate(scores, labels, ["auc"], ties="resolved")["auc"])
    return {
        "RankCV": int(rank_cv(scores)[positive].sum()),
        "Subrank": int((subrank(scores) + 1)[positive].sum()),
        "formula": round(n_pos * n_neg * area) + n_pos * (n_pos + 1) // 2,
        "positives": int((own[:, None] == own[None, :]).sum() - n_pos) // 2,
        "mixed": int((own[:, None] == other[None, :]).sum()),
    }


def rank_definitions() -> Section:
    """What the paper's example and a constant score are worth by each definition."""
    scores, labels = torch.tensor(SCORES, dtype=torch.float64), torch.tensor(LABELS)
    ranks = ranks_of(scores, labels)
    same = [name for name, printed in PRINTED.items() if tuple(ranks[name].tolist()) == printed]
    rows = [
        ["score", *(f"{score:g}" for score in SCORES)],
        *([name, *map(str, own.tolist())] for name, own in ranks.items()),
    ]
    head = f"The paper's example of ties (section 2.6): of the ranks that it prints, {listed(same)} come out the same."
    lists = {
        "the example": scores,
        "all scores equal": torch.zeros_like(scores),
        "positives first, no ties": labels - 0.01 * torch.arange(len(labels)),
    }
    values = {name: values_of(own, labels) for name, own in lists.items()}
    worth = [[name, *(number(value) for value in own.values())] for name, own in values.items()]
    return Section(
        "Ranks and ties",
        [
            Text(head),
            Table(["label", *("+" if label else "−" for label in LABELS)], rows),
            Text(_on_constants(values)),
            Table([f"`{_STATISTIC}` of", *ranks], worth),
            Text(_on_sums(wilcoxon(scores, labels))),
        ],
    )


def _on_constants(values: Mapping[str, Mapping[str, float]]) -> str:
    constant, perfect = values["all scores equal"], values["positives first, no ties"]
    wins = [name for name in constant if constant[name] > perfect[name]]
    return (
        f"RankCV counts ties as correct. By {listed(wins) or 'none of the three'} a constant score is worth more than "
        f"a perfect ranking ({number(constant['RankCV'])} to {number(perfect['RankCV'])}), so it must not be "
        "maximised, as the paper says. Subrank and ResolvedRank count a tie of a positive with a negative as lost; "
        "they differ where positives tie."
    )


def _on_sums(sums: Mapping[str, int]) -> str:
    low, high = sums["formula"] - sums["Subrank"], sums["RankCV"] - sums["formula"]
    ties = f"{sums['positives']} of two positives, {sums['mixed']} of a positive with a negative"
    agree = low == sums["positives"] and high == sums["positives"] + sums["mixed"]
    return (
        "Section 2.2 writes the sum of the positives' ranks as n₊n₋·AUC + n₊(n₊+1)/2, less the number of ties within "
        f"the positive class. The example has {ties}. By Subranks (counted from 1) the sum is {low} below the "
        f"formula, by ranks as that section defines them (how many score as high or lower) {high} above it"
        + (
            ": the correction is right for Subranks; for those ranks, ties of both kinds are added."
            if agree and high
            else "."
        )
    )
