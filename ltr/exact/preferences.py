"""Problems of pairwise preferences: find the weights that agree with the most of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ltr.checks import as_array, as_numbers
from ltr.exact.constraints import LinearConstraints, set_fields
from ltr.exact.levels import FloatArray, IntArray, Levels, Tick, preference_levels
from ltr.exact.problem import Problem, finite_features


@dataclass(frozen=True, eq=False, init=False, repr=False)
class PairwiseProblem(Problem):
    """Find the weights that agree with the most pairwise preferences.

    ``max over w in [-1, 1]^d of  sum over pairs of  weight * 1[w·(x_above - x_below) >= margin]  -  C ||w||_0``.

    Args:
        X: observations, (n, d), finite.
        pairs: edges (above, below), row numbers of X, integers of shape (pairs, 2); see `multipartite_pairs`.
        weights: weight of each edge, > 0; 1 by default.
        C, margin, constraints, max_nonzeros, free, required, integer: as for `RerankProblem`.

    Source: Rudin & Wang (2018), appendix A.2.

    Examples:
        >>> problem = PairwiseProblem([[0.0], [1.0], [2.0]], [(2, 0), (1, 2)])
        >>> problem.evaluate([1.0])
        1.0
    """

    X: FloatArray
    pairs: IntArray
    weights: FloatArray
    C: float
    margin: float
    constraints: LinearConstraints | None
    max_nonzeros: int | None
    free: tuple[int, ...]
    required: tuple[int, ...]
    integer: int | None

    def __init__(
        self,
        X: ArrayLike,
        pairs: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        C: float = 0.0,
        margin: float = 1e-4,
        constraints: LinearConstraints | None = None,
        max_nonzeros: int | None = None,
        free: Sequence[int] = (),
        required: Sequence[int] = (),
        integer: int | None = None,
    ) -> None:
        features = finite_features(X)
        n = features.shape[0]
        edges = as_array("pairs", pairs)
        if edges.ndim != 2 or edges.shape[1] != 2 or not np.issubdtype(edges.dtype, np.integer):
            raise ValueError(f"pairs must be integers of shape (pairs, 2), got {edges.dtype} of shape {edges.shape}")
        if len(edges) == 0:
            raise ValueError("pairs must hold at least one edge, got none")
        wrong = (edges < 0).any(axis=1) | (edges >= n).any(axis=1) | (edges[:, 0] == edges[:, 1])
        if wrong.any():
            raise ValueError(f"pairs must join two different rows of 0..{n - 1}, got {edges[wrong][0].tolist()}")
        price = np.ones(len(edges)) if weights is None else as_numbers("weights", weights).copy()
        if price.shape != (len(edges),):
            raise ValueError(f"weights must hold one number for each of {len(edges)} edges, got shape {price.shape}")
        wrong = ~(np.isfinite(price) & (price > 0))
        if wrong.any():
            raise ValueError(f"weights must be finite numbers > 0, got {float(price[wrong][0])!r}")
        set_fields(self, X=features, pairs=edges.astype(np.int64), weights=price)
        self._set_common(C, margin, constraints, max_nonzeros, free, required, integer)

    @cached_property
    def step(self) -> float:
        """The weight of a pair where all have one, in whose multiples values are counted; 0 with a price."""
        return float(self.weights[0]) if self.C == 0 and bool(np.all(self.weights == self.weights[0])) else 0.0

    @cached_property
    def trivial_bound(self) -> float:
        """The total weight of all pairs."""
        return math.fsum(self.weights.tolist())

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the weight of the pairs won at w, without the price of the weights."""
        wins = self.scores(self.in_box(w)).wins(self.pairs[:, 0], self.pairs[:, 1])
        return math.fsum(self.weights[wins].tolist())

    def appearances(self) -> tuple[IntArray, IntArray]:
        """Count the pairs in which each observation is the upper one and the lower one, (n,) each."""
        above, below = (np.bincount(self.pairs[:, side], minlength=self.n) for side in (0, 1))
        return above, below

    def levels(self, tick: Tick = lambda: None) -> Levels:
        """Return the pairs, each with its weight as a statistic table."""
        return preference_levels(self.pairs, self.weights)

    def _sizes(self) -> dict[str, object]:
        return {**super()._sizes(), "pairs": len(self.pairs)}

    def content(self) -> dict[str, Any]:
        """Return the problem as a certificate file describes it."""
        edges = {"pairs": self.pairs.tolist(), "pair_weights": self.weights.tolist()}
        return {"kind": "pairwise", **self._common_content(), **edges}


def multipartite_pairs(classes: ArrayLike) -> IntArray:
    """Return the edges (above, below) of all pairs of observations of different classes, the higher class above.

    Examples:
        >>> multipartite_pairs([0, 2, 1]).tolist()
        [[1, 0], [1, 2], [2, 0]]
    """
    labels = np.asarray(classes)
    return np.argwhere(labels[:, None] > labels[None, :])
