r"""Position bias of click logs, for the inverse propensity weights of unbiased learning to rank.

In the position-based model an item i that is shown at position k is clicked with probability ``p_k r_i``: p_k is the
*propensity* with which people look at the position, r_i the probability that they click on the item once they look.
Items that were shown at several positions, for whatever reason, tell the two apart. `estimate_position_bias` finds the
propensities from them (*intervention harvesting*), and `PositionBias.weights` makes of them the `sample_weight` of a
ranker's `fit`. Where each item was shown once, `fit_with_position_bias` learns both from the same clicks.

Sources: Joachims, Swaminathan & Schnabel, *Unbiased Learning-to-Rank with Biased Feedback* (2017), for the weights;
Agarwal et al., *Estimating Position Bias without Intrusive Interventions* (2019), and for the conditional likelihood
Hausman, Hall & Griliches (1984) and Wooldridge (1999); Ai et al., *Unbiased Learning to Rank with Unbiased Propensity
Estimation* (2018), for learning both from the same clicks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse
from scipy.sparse import csgraph
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ltr.checks import as_array, one_of

__all__ = ["PositionBias", "Shape", "estimate_position_bias", "fit_with_position_bias"]

Shape = Literal["free", "power"]
"""``"free"``: a propensity for each position. ``"power"``: ``k**-eta`` at position k, one number for all."""

_ROUNDS = 10  # most fits of ranker and propensities in turn
_BINS = 20  # groups of rows by score, from each part of the queries
_FOLDS = 2  # parts of the queries, each scored by a fit to the others
_SETTLED = 0.01  # relative change of all propensities at which ranker and propensities have settled
_NORMAL = 1.6448536269514722  # 95 % quantile of the standard normal distribution: 5 % are left out at either end


@dataclass(frozen=True, eq=False)
class PositionBias:
    """Propensities of positions, relative to the first one, with their 90 % intervals."""

    positions: NDArray[np.int64]  # in the log, ascending, (positions,)
    propensity: NDArray[np.float64]  # (positions,)
    lower: NDArray[np.float64]  # ends of the intervals, (positions,)
    upper: NDArray[np.float64]
    shape: Shape  # what the propensities were assumed to be
    items: int  # number of those that were shown at two or more positions and clicked
    clicks: int  # number of their clicks
    eta: float = math.nan  # exponent of the shape "power"

    def of(self, position: ArrayLike) -> NDArray[np.float64]:
        """Return the propensity of each position; raise ValueError for one that is not known."""
        asked = _positions(position)
        if self.shape == "power":
            return np.asarray((asked / self.positions[0]) ** -self.eta, dtype=np.float64)
        at = np.searchsorted(self.positions, asked).clip(max=len(self.positions) - 1)
        unknown = np.unique(asked[self.positions[at] != asked])
        if len(unknown):
            raise ValueError(
                f"position must be one of those in the log, {_listed(self.positions)}, got {_listed(unknown)}; "
                "leave these rows out, or estimate with shape='power'"
            )
        return self.propensity[at]

    def weights(self, position: ArrayLike, clicked: ArrayLike) -> NDArray[np.float64]:
        """Return the inverse propensity weight of each row: 1 / propensity if it was clicked, and 1 if not."""
        looked, clicks = self.of(position), _clicks(clicked)
        _check_lengths(position=len(looked), clicked=len(clicks))
        return np.where(clicks, 1 / looked, 1.0)

    def to_frame(self) -> pd.DataFrame:
        """Return propensities and intervals as a frame with one row per position."""
        columns = {"propensity": self.propensity, "lower": self.lower, "upper": self.upper}
        return pd.DataFrame(columns, index=pd.Index(self.positions, name="position"))


def estimate_position_bias(
    item: ArrayLike, position: ArrayLike, clicked: ArrayLike, *, shape: Shape = "free"
) -> PositionBias:
    r"""Estimate how much less often each position is looked at, from items that were shown at several positions.

    With n_ik the number of times that item i was shown at position k, c_ik that of its clicks there, and C_i that of
    all its clicks, the propensities p maximise the conditional likelihood

    ``sum over i and k of  c_ik log q_ik,   q_ik = n_ik p_k / sum over l of n_il p_l``

    which does not depend on the relevance of the items. Its slope, ``sum over i of c_ik - C_i q_ik``, has the
    expectation 0 at the true propensities as soon as clicks have the expectation ``p_k r_i``. Intervals allow for
    clicks of the same item that depend on each other.

    Args:
        item: what was shown in each row, (rows,): a document for a query, such as ``query + "/" + document``, so that
            rows with the same value have the same relevance.
        position, clicked: position at which it was shown, from 1, and whether it was clicked, (rows,).
        shape: ``"free"`` for a propensity per position; ``"power"`` for ``k**-eta``, which few clicks determine.

    Raises:
        ValueError: values that are missing or out of range, and logs that do not determine the propensities: no item
            was shown at two positions, or nothing connects some positions with the others.

    Examples:
        >>> position = 50 * [1] + 50 * [2]
        >>> clicked = np.isin(np.arange(100), [*range(20), *range(50, 60)])  # 20 clicks above, 10 below
        >>> estimate_position_bias(100 * ["a"], position, clicked).propensity.round(6).tolist()
        [1.0, 0.5]
    """
    one_of("shape", shape, get_args(Shape))
    code, places, clicks = _codes("item", item, "what was shown in each row"), _positions(position), _clicks(clicked)
    _check_lengths(item=len(code), position=len(places), clicked=len(clicks))
    known, place = np.unique(places, return_inverse=True)
    size = (int(code.max()) + 1, len(known))
    shown, clicked_at = (
        sparse.coo_array((weight.astype(np.float64), (code, place)), size).tocsr() for weight in (clicks >= 0, clicks)
    )
    telling = (np.diff(shown.indptr) > 1) & (clicked_at.sum(1) > 0)
    shown, clicked_at = shown[telling], clicked_at[telling]
    _check_determined(known, shown, clicked_at, shape)

    design = np.eye(len(known))[:, 1:] if shape == "free" else np.log(known[0] / known)[:, None]
    likelihood = _Likelihood(shown, clicked_at, design)
    by: dict[str, Any] = {"jac": likelihood.slope, "hess": likelihood.curvature, "method": "trust-exact"}
    best = optimize.minimize(likelihood.value, np.zeros(design.shape[1]), options={"gtol": 1e-9}, **by).x
    logs, deviation = design @ best, likelihood.deviation(best)
    propensity, lower, upper = (np.exp(logs + side * _NORMAL * deviation) for side in (0, -1, 1))
    eta = float(best[0]) if shape == "power" else math.nan
    return PositionBias(known, propensity, lower, upper, shape, shown.shape[0], int(clicked_at.sum()), eta)


def fit_with_position_bias(
    ranker: Any,  # noqa: ANN401 (any estimator)
    X: ArrayLike,
    clicked: ArrayLike,
    qid: ArrayLike,
    position: ArrayLike,
    *,
    shape: Shape = "power",
) -> tuple[Any, PositionBias]:
    """Fit a ranker to clicks together with the position bias of these clicks, and return both.

    A round fits the ranker with the inverse propensity weights so far, at first 1, and takes rows to which it gives
    about the same score for the same item: `estimate_position_bias` then finds the propensities for the next round.
    Scores come from fits to other queries, because a ranker that has seen a click scores the row by it. Rows of the
    same score must be about as relevant wherever they were shown: where lists were ordered by something relevant that
    the ranker does not have, the estimate is wrong.

    Args:
        ranker: an estimator with ``fit(X, y, qid, sample_weight=...)`` and ``predict(X)``; a copy of it is fitted. Its
            loss has to count weights, see `docs/clicks.md`: ``SurrogateRanker("ranknet(pairs=sum)")``.
        X, clicked, qid, position: features, clicks, list of each row, and its position there, from 1.
        shape: as that of `estimate_position_bias`.

    Examples:
        >>> from ltr.rankers import SurrogateRanker
        >>> rng = np.random.default_rng(0)
        >>> X, qid, position = rng.normal(size=(4000, 2)), np.arange(4000) // 4, np.arange(4000) % 4 + 1
        >>> clicked = rng.random(4000) < 1 / (1 + np.exp(1 - 2 * X[:, 0])) / position
        >>> ranker, bias = fit_with_position_bias(SurrogateRanker("ranknet(pairs=sum)"), X, clicked, qid, position)
        >>> bias.of([1, 2, 4]).round(1).tolist()
        [1.0, 0.5, 0.2]
    """
    one_of("shape", shape, get_args(Shape))
    places, clicks, lists = _positions(position), _clicks(clicked), _codes("qid", qid, "the list of each row")
    _check_lengths(X=_num_samples(X), clicked=len(clicks), qid=len(lists), position=len(places))
    if (queries := lists.max() + 1) < _FOLDS:
        raise ValueError(f"qid must have at least {_FOLDS} queries, got {queries}")

    def fitted(rows: NDArray[np.int64], weights: NDArray[np.float64]) -> Any:  # noqa: ANN401
        own = clone(ranker, safe=False)
        return own.fit(_safe_indexing(X, rows), clicks[rows], lists[rows], sample_weight=weights[rows])

    parts = list(GroupKFold(_FOLDS).split(places, groups=lists))
    weights, group = np.ones(len(clicks)), np.empty(len(clicks), dtype=np.int64)
    before: PositionBias | None = None
    for _ in range(_ROUNDS):
        for number, (seen, held) in enumerate(parts):
            scores = np.asarray(fitted(seen, weights).predict(_safe_indexing(X, held)))
            edges = np.quantile(scores, np.arange(1, _BINS) / _BINS)
            group[held] = number * _BINS + np.searchsorted(edges, scores)
        try:
            bias = estimate_position_bias(group, places, clicks, shape=shape)
        except ValueError as error:
            raise ValueError(
                "position must vary among clicked rows of similar score: take more rows, or lists that were ordered in "
                f"several ways ({error})"
            ) from None
        weights = bias.weights(places, clicks)
        if before is not None and np.allclose(bias.propensity, before.propensity, rtol=_SETTLED, atol=0):
            break
        before = bias
    return fitted(np.arange(len(clicks)), weights), bias


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Minus the conditional log-likelihood per click, as a function of parameters t with ``log p = design t``."""

    shown: sparse.csr_array  # (items, positions)
    clicked: sparse.csr_array
    design: NDArray[np.float64]  # (positions, parameters)

    def shares(self, t: NDArray[np.float64]) -> sparse.csr_array:
        """Return q, the expected share of each item's clicks at each position, (items, positions)."""
        logs = self.design @ t
        looks = self.shown.multiply(np.exp(logs - logs.max())).tocsr()
        return sparse.diags_array(1 / looks.sum(1)) @ looks

    def value(self, t: NDArray[np.float64]) -> float:
        q = self.shares(t)
        at = self.clicked.nonzero()
        return -float(self.clicked[at] @ np.log(q[at])) / float(self.clicked.sum())

    def slope(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        missing = self.clicked.sum(0) - self.clicked.sum(1) @ self.shares(t)
        return np.asarray(-(missing @ self.design) / self.clicked.sum())

    def curvature(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        q, each = self.shares(t), self.clicked.sum(1)
        spread = np.diag(each @ q) - (q.T @ (sparse.diags_array(each) @ q)).toarray()
        return np.asarray(self.design.T @ spread @ self.design / self.clicked.sum())

    def deviation(self, t: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard deviation of each log propensity, (positions,), from the scatter of items' slopes."""
        slopes = (self.clicked - sparse.diags_array(self.clicked.sum(1)) @ self.shares(t)) @ self.design
        inverse = np.linalg.pinv(self.curvature(t) * self.clicked.sum())
        covariance = inverse @ (slopes.T @ slopes) @ inverse
        return np.asarray(np.sqrt(np.einsum("ki,ij,kj->k", self.design, covariance, self.design).clip(min=0.0)))


def _check_determined(
    known: NDArray[np.int64], shown: sparse.csr_array, clicked: sparse.csr_array, shape: Shape
) -> None:
    """Raise ValueError unless the likelihood has one maximum (Ford's condition for paired comparisons)."""
    if shown.shape[0] == 0:
        raise ValueError(
            "item must have values that were shown at two or more positions and clicked, got none: without them a "
            "propensity cannot be told from relevance; show some items at another position, or swap two at random"
        )
    # clicked at a row's position, shown at the column's
    beats = ((clicked > 0).astype(np.float64).T @ (shown > 0).astype(np.float64)).toarray() > 0
    if shape == "power":
        above, below = np.triu(beats, 1).any(), np.tril(beats, -1).any()
        if not (above and below):
            raise ValueError(
                f"clicked must have clicks at several positions of the same item, got clicks only at the "
                f"{'highest' if above else 'lowest'} one of each item that moved: a longer log is needed"
            )
        return
    _, part = csgraph.connected_components(beats, connection="strong")
    size = np.bincount(part)[part]
    apart = known[part != part[np.argmax(size)]]
    if len(apart):
        raise ValueError(
            "position must be connected with the others by clicks on items that were shown at both, in either "
            f"direction, which is not so for {_listed(apart)}: leave the rows of these positions out, use a longer "
            "log, or shape='power'"
        )


def _codes(name: str, values: ArrayLike, what: str) -> NDArray[np.int64]:
    """Return the number of each row's name; raise ValueError for a row without one."""
    array = as_array(name, values)
    codes = pd.factorize(array)[0] if array.ndim == 1 else np.empty(0, dtype=np.int64)
    _check(name, f"name {what}", array, codes >= 0)
    return codes


def _positions(values: ArrayLike) -> NDArray[np.int64]:
    array = as_array("position", values)
    numbers = pd.to_numeric(pd.Series(array.ravel()), errors="coerce").to_numpy(dtype=np.float64)
    good = (numbers >= 1) & (numbers == np.floor(numbers)) & (numbers < 2**53)
    _check("position", "be whole numbers from 1", array, good)
    return numbers.astype(np.int64)


def _clicks(values: ArrayLike) -> NDArray[np.int64]:
    array = as_array("clicked", values)
    _check("clicked", "be 0 or 1, or False and True", array, np.isin(array, (0, 1)))
    return array.astype(np.int64)


def _check(name: str, rule: str, values: NDArray[Any], good: NDArray[np.bool_]) -> None:
    if values.ndim != 1:
        raise ValueError(f"{name} must have one value per row, got an array of shape {values.shape}")
    if not good.all():
        at = int(np.argmin(good))
        raise ValueError(f"{name} must {rule}, got {values[at]!r:.80} in row {at}")


def _check_lengths(**lengths: int) -> None:
    if len({*lengths.values()}) > 1 or 0 in lengths.values():
        given = ", ".join(f"{length} of {name}" for name, length in lengths.items())
        raise ValueError(f"all columns must have one value per row, and at least one row, got {given}")


def _listed(positions: NDArray[np.int64]) -> str:
    few = [str(k) for k in positions[:8].tolist()]
    return ", ".join(few) + (", ..." if len(positions) > len(few) else "")
