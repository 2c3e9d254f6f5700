"""Demands on a list: other rank statistics of the same rows that weights must reach.

``maximise S(w; y)  subject to  S_j(w; labels_j) >= at_least_j,  j = 1, ..., J``. Every S_j is a rank statistic of
labels of its own, under the order that the scores give: pairs of its rows are compared with the margin of the problem,
and ties count against the labels that ask. This covers

=====================================================  ==========================  ===============================
what one asks for                                      labels                      statistic and least value
=====================================================  ==========================  ===============================
at least m rows of a group among the first K           1 in the group              ``hits@K``, m
at most m rows of a group among the first K            1 outside of it             ``hits@K``, K - m
a share of exposure for a group                        1 in the group              ``dcg``, normalised
a share of the positives among the first K             those of the problem        ``recall@K``
a floor in another measure                             those of the problem, or    any
                                                       others
a floor for one of several lists                       0 in all other lists        any
=====================================================  ==========================  ===============================
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_float, as_numbers
from ltr.exact.constraints import set_fields
from ltr.outcomes import label_kind
from ltr.statistics import RankStatistic

DEMAND_TOLERANCE = 1e-9
"""Share of `Demand.at_least` by which a statistic may be below it."""


@dataclass(frozen=True, eq=False, init=False)
class Demand:
    """A rank statistic that weights must bring to a least value: ``S(w; labels) >= at_least``.

    Args:
        statistic: a `RankStatistic` or its name.
        at_least: the least value, a finite number. Weights meet it from ``at_least - DEMAND_TOLERANCE |at_least|`` on,
            decided exactly.
        labels: labels of the problem's rows, numbers >= 0 that are gains as they are, (n,); None for the labels and
            gains of the problem. Demands on cards take labels of two fields, too (`ltr.outcomes`).
        normalize: divide by the value of a perfect order, as `RerankProblem` does.
        ties: how rows with equal totals of a card count: ``"resolved"`` for the worst of their orders; None as the
            problem of the card has it. Other weights lose all ties.
        name: what reports call it; None for its formula.

    Raises:
        ValueError: an argument breaks its rule.

    Examples:
        >>> from ltr.exact import RerankProblem, solve
        >>> X, y, women = [[3.0, 0.0], [2.0, 1.0], [1.0, 3.0]], [1, 1, 0], [0, 0, 1]
        >>> demands = [Demand("hits@1", at_least=1, labels=women)]
        >>> free, asked = RerankProblem(X, y), RerankProblem(X, y, demands=demands)
        >>> round(solve(free).value, 4), round(solve(asked).value, 4), str(demands[0])
        (1.6309, 1.1309, 'hits@1 of labels >= 1')
    """

    statistic: RankStatistic
    at_least: float
    labels: NDArray[Any] | None
    normalize: bool
    ties: Literal["resolved"] | None
    name: str

    def __init__(
        self,
        statistic: RankStatistic | str,
        at_least: float,
        labels: ArrayLike | None = None,
        *,
        normalize: bool = False,
        ties: Literal["resolved"] | None = None,
        name: str | None = None,
    ) -> None:
        parsed = RankStatistic.parse(statistic)
        if parsed.kind.labels == "labels":
            parsed.check_linear()
        if not math.isfinite(as_float(at_least)):
            raise ValueError(f"at_least must be a finite number, got {at_least!r}")
        plain = labels is None or label_kind(labels) == "labels"
        own = None if labels is None else as_numbers("labels", labels).copy() if plain else np.array(labels)
        of = "" if own is None else " of labels"
        text = f"{'normalised ' if normalize else ''}{parsed}{of} >= {float(at_least):.12g}"
        set_fields(self, statistic=parsed, at_least=float(at_least), labels=own, normalize=bool(normalize))
        if ties not in (None, "resolved"):
            raise ValueError(f"ties must be 'resolved' or None, got {ties!r:.80}")
        set_fields(self, ties=ties, name=text if name is None else str(name))

    def __str__(self) -> str:
        return self.name

    @property
    def least(self) -> Fraction:
        """The value from which it is met."""
        exact = Fraction(self.at_least)
        return exact - Fraction(DEMAND_TOLERANCE) * abs(exact)
