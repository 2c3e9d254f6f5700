"""Candidates that the choice does not compare: other lengths of the list, few features, the largest margin.

A record is one split of a data set of the paper with logistic regression as base. It has, for each candidate by name,
the mean `gains` on inner splits and their standard `deviations`, as the choice sees them, and the value on the `test`
set. So a rule over any of these candidates can be applied to it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from threadpoolctl import threadpool_limits

from ltr.exact import Limits
from ltr.rankers import ExactRanker
from ltr.rankers.choice import BASE, SPREADS, Choice
from scripts.payoff.cells import SECONDS, STATISTIC, TOP_K, FewColumns, base_value, parts_of
from trainers.files import Json

_INNER_SECONDS = 1.0  # of a search for few features on an inner split


class Correction(NamedTuple):
    """How a candidate corrects the base: the length of the list, and what the exact stage looks for."""

    top_k: int | None
    spread: float | None = None
    max_nonzeros: int | None = None
    recentre: str | None = None

    @property
    def name(self) -> str:
        """The name in records."""
        what = f"spread {self.spread:g}" if self.spread is not None else f"+ {self.max_nonzeros}"
        length = "full list" if self.top_k is None else f"top {self.top_k}"
        return f"{what}, {length}" + (", largest margin" if self.recentre else "")

    def exact(self, seconds: float) -> ExactRanker:
        """Return the exact stage."""
        limits = Limits(time_limit=seconds)
        return ExactRanker(STATISTIC, max_nonzeros=self.max_nonzeros, recentre=self.recentre, limits=limits)


_LENGTHS = (TOP_K // 4, TOP_K // 2, TOP_K, 2 * TOP_K, None)
PRESENT = [Correction(TOP_K, spread) for spread in SPREADS]
"""What the choice compares."""
FURTHER = {
    "the top 50": [Correction(TOP_K // 2, spread) for spread in SPREADS],
    "the top 200": [Correction(2 * TOP_K, spread) for spread in SPREADS],
    "the full list": [Correction(None, spread) for spread in SPREADS],
    "four other lengths of list": [Correction(k, spread) for k in _LENGTHS if k != TOP_K for spread in SPREADS],
    "one or two features": [Correction(TOP_K, max_nonzeros=k) for k in (1, 2)],
    "these, also at the largest margin": [
        Correction(TOP_K, max_nonzeros=k, recentre=norm) for norm in (None, "l2") for k in (1, 2)
    ],
    "all of them, and few features on other lengths": [
        *(Correction(k, spread) for k in _LENGTHS if k != TOP_K for spread in SPREADS),
        *(Correction(length, max_nonzeros=k) for length in (TOP_K // 2, TOP_K, None) for k in (1, 2)),
        *(Correction(TOP_K, max_nonzeros=k, recentre="l2") for k in (1, 2)),
    ],
}
"""What was tried beside that, by a name in words."""
_EVERY = list(dict.fromkeys([*PRESENT, *(each for found in FURTHER.values() for each in found)]))


class _Compared(Exception):  # noqa: N818 - a way out, not an error
    """Raised when the comparison is done: nothing else of the fit is needed."""


class _Comparison(FewColumns):
    """The ranker that chooses, with all candidates."""

    @property
    def _candidates(self) -> dict[str, tuple[int | None, ExactRanker, float | None]]:
        return {each.name: (each.top_k, each.exact(_INNER_SECONDS), each.spread) for each in _EVERY}

    def _compare(self, *arguments: Any) -> Choice:  # noqa: ANN401 (those of the ranker)
        raise _Compared(super()._compare(*arguments))


def compute(data: str, split: int) -> Json:
    """Compute a record on one thread."""
    torch.set_num_threads(1)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train, test = parts_of(data, split)
        try:
            _Comparison("logistic", STATISTIC, TOP_K).fit(train.X, train.y)
        except _Compared as found:
            choice: Choice = found.args[0]
        values = {}
        for each in _EVERY:
            exact = each.exact(SECONDS if each.spread is None else _INNER_SECONDS)
            ranker = FewColumns("logistic", exact, each.top_k, choose=False, base_score=True, spread=each.spread)
            values[each.name] = ranker.fit(train.X, train.y).score(test.X, test.y)
        values[BASE] = base_value(ranker, test)
    found = {"gains": dict(choice.gains), "deviations": dict(choice.deviations), "test": values}
    return {"data": data, "split": split, **found}


def chosen(record: Json, candidates: Sequence[Correction]) -> str:
    """Return what the rule chooses among some candidates."""
    names = [BASE, *(each.name for each in candidates)]
    gains, deviations = ({name: record[field][name] for name in names} for field in ("gains", "deviations"))
    return Choice.by_rule(gains, deviations, STATISTIC, linear=True).chosen


def sets() -> Mapping[str, list[Correction]]:
    """Return the sets of candidates that are compared, by name."""
    return {"the three of the choice": PRESENT, **{f"with {name}": [*PRESENT, *more] for name, more in FURTHER.items()}}
