"""Which constraints on columns a fitted ranker satisfies, shown from its weights or trees, and which can promise them.

*Scores.* A linear score satisfies constraints where its weights do. A sum of decision trees, or of thresholds on single
columns, never falls as a column rises where at each node that asks about it all leaves on the left are at most as large
as all on the right, which libraries with monotone constraints ensure. It uses the columns that its nodes ask about, and
has no weights for linear rows to bind.

*Two stages.* The merged list satisfies signs where both scores do. Let a column of one row rise, and let neither score
fall as it rises. If the row was at the top, it still is, and its second score is no lower. If it was not, its first
score is no lower, and should it come to the top, it passes all rows below. So no other row passes it in either case.
(Where each list is cut at its own K-th score, a row that comes to the top may push another one out, which then stands
below it.) A corrected score ``w_0 * base + w·x`` with w_0 >= 0 does not fall where neither part does, and its weights
satisfy linear rows where those of both parts do. The columns used are those of both stages together, and a required
column must be used by each score that orders rows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.estimator_names import Estimator
from ltr.exact.constraints import LinearConstraints
from ltr.rankers.base import Ranker
from ltr.rankers.baselines import RankBoostRanker, ScoreColumn
from ltr.rankers.foreign import last_step
from ltr.rankers.inputs import FloatArray
from ltr.rankers.surrogate import SurrogateRanker
from ltr.weight_constraints import CONSTRAINTS, Constrained, RankerKind, WeightConstraints, read_constraints, signed_sum

__all__ = ["ConstraintCheck", "check_constraints"]

_PROMISED: dict[RankerKind, tuple[str, ...]] = {
    "linear": CONSTRAINTS,
    "trees": ("signs", "forbidden", "max_nonzeros"),
    "other": (),
}
"""Constraints that each kind of ranker satisfies after every fit under them; trees that have monotone constraints."""
_SHOWN = 12  # columns that are named

BoolArray = NDArray[np.bool_]


def kind_of(method: Estimator) -> RankerKind:
    """Return the kind of a ranker or estimator before its fit."""
    if isinstance(method, Ranker):
        return method._kind
    last, _ = last_step(method)
    if isinstance(last, Ranker):
        return "trees" if last._kind == "trees" else "other"  # others are not told the constraints
    known = hasattr(last, "get_params") and {"monotonic_cst", "monotone_constraints"} & set(last.get_params())
    return "trees" if known and not type(last).__module__.startswith("sklearn.ensemble._forest") else "other"


def why_refused(
    method: Estimator, constraints: WeightConstraints, names: Sequence[str] | None, *, promise: bool = False
) -> str:
    """Return what is known against a ranker under constraints before its fit, as the predicate of a sentence, or "".

    `promise` says that it must promise the constraints; else it may turn out to satisfy them.
    """
    if isinstance(method, ScoreColumn):
        d = len(constraints.signs)
        return _against([_Score.linear("", np.eye(1, d, method.place(d, names))[0])], constraints, names)
    if methods := getattr(method, "given_methods", ()):  # of an `AutoRanker`
        each = ((name, why_refused(one, constraints, names, promise=True)) for name, one in methods)
        return next((f"has the method {name}, which {why}" for name, why in each if why), "")
    kind = kind_of(method)
    refused = ", ".join(name for name in constraints.stated if name not in _PROMISED[kind])
    if promise:
        return f"cannot promise {refused}" if refused else ""
    if isinstance(method, SurrogateRanker) and kind == "other":
        return f"cannot be fitted under constraints on columns ({refused})"
    if len(constraints.rows) and (kind == "trees" or isinstance(method, RankBoostRanker)):
        d = len(constraints.signs)
        rows_alone, unknown = WeightConstraints(np.zeros(d), (), (), constraints.rows), np.ones((3, d), dtype=np.bool_)
        return _against([_Score("", *unknown)], rows_alone, names)
    return ""


@dataclass(frozen=True)
class ConstraintCheck:
    """One constraint in words, such as ``"age +"``, whether a ranker satisfies it for all rows, and what shows that."""

    constraint: str
    holds: bool
    how: str

    def __str__(self) -> str:
        return f"{self.constraint}: {'holds' if self.holds else 'violated'}, {self.how}"


@dataclass(frozen=True, eq=False)
class _Score:
    """What is known of a score as a function of the columns."""

    name: str  # such as "base"
    used: BoolArray  # columns it depends on, (d,)
    never_falls: BoolArray  # whether it is known not to fall as each column rises, (d,)
    never_rises: BoolArray
    weights: FloatArray | None = None  # of a linear score, (d,)
    units: FloatArray | float = 1.0  # of the columns, where rows bind points for each unit

    @classmethod
    def linear(cls, name: str, weights: FloatArray) -> _Score:
        return cls(name, weights != 0, weights >= 0, weights <= 0, weights)

    def plus(self, other: _Score, factor: float = 1.0) -> _Score:
        """Return the sum of this score and another one times a factor > 0."""
        used = self.used | other.used
        if self.weights is not None and other.weights is not None:
            return replace(_Score.linear(self.name, self.weights + factor * other.weights), used=used)
        up, down = self.never_falls & other.never_falls, self.never_rises & other.never_rises
        return _Score(self.name, used, up, down)

    def how(self, j: int) -> str:
        if self.weights is not None:
            return f"weight {self.weights[j]:.4g}"
        return "used" if self.used[j] else "not used"

    def keeps_sign(self, j: int, *, up: bool) -> tuple[bool, str]:
        """Return whether it never falls, or never rises, as a column rises, and what shows that."""
        holds = bool((self.never_falls if up else self.never_rises)[j])
        if self.weights is not None or not self.used[j]:
            return holds, self.how(j)
        return holds, f"{'no' if holds else 'a'} split lets it {'fall' if up else 'rise'}"

    def keeps_row(self, row: FloatArray) -> tuple[bool, str]:
        """Return whether its weights satisfy a linear row, and by how much."""
        if self.weights is None:
            return False, "it has no weights"
        weights = self.weights * self.units
        return LinearConstraints(-row[None], np.zeros(1)).satisfied(weights), f"by {float(row @ weights):.4g}"


def check_constraints(
    ranker: Estimator,
    by_number: WeightConstraints | None = None,
    **given: Any,  # noqa: ANN401 (options of any type)
) -> list[ConstraintCheck]:
    """Return for each constraint whether a fitted ranker, of two stages its merged lists, satisfies it, and how.

    The constraints are those given `by_number`, or as keywords as for `ExactRanker`, or without any the ranker's own.

    Examples:
        >>> from ltr.rankers import LogisticRegressionRanker
        >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 2.0]], [0, 1, 0, 1]
        >>> ranker = LogisticRegressionRanker(C=1.0).fit(X, y)
        >>> for check in check_constraints(ranker, signs={0: "+"}, max_nonzeros=1):
        ...     print(check)
        column 0 +: holds, weight 0.4495
        at most 1 column: violated, 2 used: column 0, column 1
    """
    names = ranker._names
    if by_number is None and not given:
        own = getattr(ranker, "exact_", ranker)
        by_number = own._weight_constraints() if isinstance(own, Constrained) else None
    constraints = by_number or read_constraints(ranker.n_features_in_, names, **given)
    return _checks(_scores_of(ranker, names), constraints, names)


def check_weights(weights: FloatArray, constraints: WeightConstraints, names: Sequence[str]) -> list[ConstraintCheck]:
    """Return for each constraint whether a linear score with these weights of the columns, (d,), satisfies it."""
    return _checks([_Score.linear("", weights)], constraints, names)


def used_columns(ranker: Ranker, names: Sequence[str] | None) -> BoolArray | None:
    """Return which of the columns with these names a ranker of one stage depends on, (d,); None where not known."""
    score = _score_of("", ranker, names)
    return None if score is None else score.used


def refuse_violated(
    ranker: Ranker, constraints: WeightConstraints, what: str, remedy: str = "", *, within: Ranker | None = None
) -> None:
    """Raise one ValueError with the constraints that a fitted ranker is not known to satisfy, if any.

    `what` is the argument at fault and the ranker in words; constraints are on the columns of the ranker `within` which
    it is the base, if there is one.
    """
    names = (within or ranker)._names
    if told := _against(_scores_of(ranker, names), constraints, names):
        raise ValueError(f"{what} {told}{remedy}")


def _against(scores: list[_Score | None], constraints: WeightConstraints, names: Sequence[str] | None) -> str:
    """Return that scores do not satisfy constraints, and which, as the predicate of a sentence; empty where they do."""
    checks = _checks(scores, constraints, names)
    told = "; ".join(f"{check.constraint} ({check.how})" for check in checks if not check.holds)
    return f"does not satisfy the constraints: {told}" if told else ""


def _scores_of(ranker: Ranker, names: Sequence[str] | None) -> list[_Score | None]:
    """Return the scores that order rows, of each stage; None for one of which nothing is known."""
    exact = getattr(ranker, "exact_", None)
    if exact is None:
        scores, units = [_score_of("", ranker, names)], getattr(ranker, "units_", None)
    elif exact.coef_ is None:
        scores, units = [_score_of("", ranker.base_, names)], exact.units_
    else:
        base, units = _score_of("base", ranker.base_, names), exact.units_
        own: _Score | None = _Score.linear("exact stage", exact.coef_)
        if own is not None and exact.base_weight_ > 0:
            own = None if base is None else own.plus(base, exact.base_weight_)
        scores = [own] if ranker.top_k is None else [base, own]
    return [score if score is None or units is None else replace(score, units=units) for score in scores]


def _score_of(name: str, ranker: Ranker, names: Sequence[str] | None) -> _Score | None:
    """Return what is known of the score of a ranker of one stage as a function of columns with these names."""
    if hasattr(ranker, "deployed") and ranker.linear_weights is None:  # an `AutoRanker`
        parts = [_score_of(name, member, names) for member in ranker.deployed]
        # log odds rise with shares, and weights are above 0
        return None if None in parts else functools.reduce(_Score.plus, filter(None, parts))
    try:
        form = ranker._saved_form()
    except TypeError:
        return None
    if (weights := form._module_weights()) is not None:
        return _Score.linear(name, ranker._among(weights, names))
    if (monotone := form._monotone()) is None:
        return None
    used, up, down = (ranker._among(one, names, other=free) for one, free in zip(monotone, (0, 1, 1), strict=True))
    return _Score(name, used, up, down)


def _checks(
    scores: list[_Score | None], constraints: WeightConstraints, names: Sequence[str] | None
) -> list[ConstraintCheck]:
    names = [f"column {j}" for j in range(len(constraints.signs))] if names is None else names
    known = [score for score in scores if score is not None]
    unknown = "" if len(known) == len(scores) else "nothing is known of how its scores depend on the columns"
    checks: list[ConstraintCheck] = []

    def check(constraint: str, kept: list[tuple[bool, str]]) -> None:
        every = all(holds for holds, _ in kept)
        shown = zip(known, kept, strict=True)
        told = [f"{one.name}: {how}" if one.name else how for one, (holds, how) in shown if every or not holds]
        how = unknown or "; ".join(dict.fromkeys(told))
        checks.append(ConstraintCheck(constraint, every and not unknown, how))

    for j in np.flatnonzero(constraints.signs).tolist():
        up = bool(constraints.signs[j] > 0)
        check(f"{names[j]} {'+' if up else '-'}", [score.keeps_sign(j, up=up) for score in known])
    for rule, stated in (("uses", constraints.required), ("not", constraints.forbidden)):
        for j in stated:
            check(f"{rule} {names[j]}", [(bool(score.used[j]) == (rule == "uses"), score.how(j)) for score in known])
    for row in constraints.rows:
        check(_row_text(row, names), [score.keeps_row(row) for score in known])
    if (most := constraints.max_nonzeros) is not None:
        used_by_some = np.flatnonzero(np.any([score.used for score in known], axis=0)) if known else np.empty(0, int)
        told = f"{len(used_by_some)} used" + (": " if len(used_by_some) else "")
        told += ", ".join(names[j] for j in used_by_some[:_SHOWN]) + ", ..." * (len(used_by_some) > _SHOWN)
        told += " in both stages together" * (len(scores) > 1)
        holds = len(used_by_some) <= most and not unknown
        checks.append(ConstraintCheck(f"at most {most} column{'s' * (most != 1)}", holds, unknown or told))
    return checks


def _row_text(row: FloatArray, names: Sequence[str]) -> str:
    """Return a row in words, such as ``age - 2*bmi >= 0``."""
    factors = {j: "" if abs(row[j]) == 1 else f"{abs(row[j]):g}*" for j in np.flatnonzero(row).tolist()}
    terms = [(bool(row[j] < 0), f"{factor}{names[j]}") for j, factor in factors.items()]
    return f"{signed_sum(terms)} >= 0"
