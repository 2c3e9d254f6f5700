"""First-stage rankers: they score the whole list; the top of it goes to the exact stage.

A base ranker has ``fit(X, y)``, with ``qid=`` where it is to learn from several queries, ``decision_function(X)``
(scores, float64 of shape (n,)), ``linear_weights`` (float64 of shape (d,) on the raw features, or None when the scorer
is not linear) and a plain state that `load_base_ranker` turns back into the ranker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["BaseRanker", "load_base_ranker", "make_base_ranker"]


class BaseRanker(Protocol):
    """What the two-stage ranker needs of its first stage."""

    @property
    def fit(self) -> Callable[..., Any]:
        """``fit(X, y)`` learns from observations (n, d) and labels (n,), ``fit(X, y, qid=qid)`` from queries."""

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Scores (n,), larger is higher in the list."""

    @property
    def linear_weights(self) -> NDArray[np.float64] | None:
        """Weights on the raw features, or None."""

    def to_state(self) -> dict[str, Any]:
        """The fitted ranker as a dict of tensors, arrays and plain values."""


def make_base_ranker(name: str, *, seed: int = 0) -> BaseRanker:
    """A base ranker with default options by name.

    Args:
        name: ``"logistic"`` (scikit-learn's logistic regression), ``"rankboost"``, or the name of a loss to train a
            linear surrogate with, such as ``"ranknet"`` or ``"p_norm_push(p=2)"``.
        seed: seed of a surrogate's training.

    Raises:
        ValueError: a name that is neither.
    """
    if not isinstance(name, str):
        raise ValueError(f"base ranker must be the name logistic, rankboost or of a loss, got {name!r}")
    if name in ("logistic", "logistic_regression"):
        from ltr.base_rankers.logistic import LogisticRegressionRanker

        return LogisticRegressionRanker()
    if name == "rankboost":
        from ltr.base_rankers.rankboost import RankBoostRanker

        return RankBoostRanker()
    from ltr.base_rankers.surrogate import SurrogateRanker
    from ltr.losses import parse_loss

    try:
        parse_loss(name)
    except ValueError as error:
        raise ValueError(f"base ranker must be logistic, rankboost or a loss, got {name!r} ({error})") from None
    return SurrogateRanker(loss=name, seed=seed)


def load_base_ranker(state: dict[str, Any]) -> BaseRanker:
    """The ranker whose `to_state` gave `state`, by the ``"kind"`` in it."""
    kind = state.get("kind")
    if kind == "logistic_regression":
        from ltr.base_rankers.logistic import LogisticRegressionRanker

        return LogisticRegressionRanker.from_state(state)
    if kind == "rankboost":
        from ltr.base_rankers.rankboost import RankBoostRanker

        return RankBoostRanker.from_state(state)
    if kind == "surrogate":
        from ltr.base_rankers.surrogate import SurrogateRanker

        return SurrogateRanker.from_state(state)
    raise ValueError(f"state: kind must be logistic_regression, rankboost or surrogate, got {kind!r}")
