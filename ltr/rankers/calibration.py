r"""The chance of a hit, a label above 0, by the score of a ranker.

A `Calibration` is a nondecreasing map from scores to the share of hits that rows of such scores have. It is learnt from
*out-of-fold* scores, which come from rankers that have not seen the rows.

*Rule.* Isotonic regression where there are at least `ISOTONIC_FROM` hits and as many misses, Platt's sigmoid otherwise.
The number is measured: on other rows mean log loss is least for numbers from 50 to 200.

*Isotonic regression* pools neighbouring scores into plateaus. A plateau of n rows with h hits gets the chance
(h + r) / (n + 1), r the share of hits among all rows, so that no chance is 0 or 1. Small plateaus which that puts out
of order are pooled once more. Between plateaus the chance is linear in the score, and beyond the smallest and the
largest score it is constant.

*Platt's sigmoid* is 1 / (1 + exp(-(a + b score))) with b >= 0, fitted by maximum likelihood to the targets
(N+ + 1) / (N+ + 2) for the N+ hits and 1 / (N- + 2) for the N- misses. Chances are held between these two.

Sources: Zadrozny & Elkan, *Transforming classifier scores into accurate multiclass probability estimates* (2002);
Platt, *Probabilistic outputs for support vector machines* (1999).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from scipy.stats import betabinom, binomtest, rankdata
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from ltr.checks import as_numbers, check_number, check_whole, one_of
from ltr.data.dataset import checked_groups, checked_weights
from ltr.rankers.inputs import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Calibration", "fit_calibration", "predictive_interval"]

Kind = Literal["isotonic", "sigmoid"]

ISOTONIC_FROM = 100
"""Number of hits, and of misses, from which the map is isotonic regression."""

_LEAST_DEVIATION = 1e-140  # of scores that differ


@dataclass(frozen=True, eq=False)
class Calibration:
    """A nondecreasing map from scores to the chance of a hit; `fit_calibration` makes one.

    Attributes:
        kind: ``"isotonic"`` or ``"sigmoid"``.
        knots: ends of the plateaus, ascending scores, (m,); of a sigmoid, its intercept and its slope, (2,).
        chances: the chance at each knot, (m,); of a sigmoid, the least and the largest chance, (2,).
        rows, hits: numbers of out-of-fold rows that it was learnt from, and of hits among them; with weights or groups,
            of independent rows with as much information.
        support: the number of rows of the plateau of each knot, (m,); of a sigmoid, the variance of its intercept,
            their covariance, and the variance of its slope, (3,).
    """

    kind: Kind
    knots: FloatArray
    chances: FloatArray
    rows: float
    hits: float
    support: FloatArray

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Return the chance of a hit of rows with these scores, in (0, 1), in the shape of the scores."""
        given = _finite("scores", scores)
        if self.kind == "sigmoid":
            with np.errstate(over="ignore"):
                return np.clip(expit(self.knots[0] + self.knots[1] * given), *self.chances)
        if len(self.knots) == 1:
            return np.full(given.shape, self.chances[0])
        right = np.clip(np.searchsorted(self.knots, given, side="right"), 1, len(self.knots) - 1)
        left = right - 1
        with np.errstate(over="ignore"):  # far beyond two close knots
            share = np.clip((given - self.knots[left]) / (self.knots[right] - self.knots[left]), 0.0, 1.0)
        low, high = self.chances[left], self.chances[right]
        return np.asarray(np.minimum(low + share * (high - low), high))  # rounding must not put it above the next

    def rows_behind(self, scores: ArrayLike) -> float:
        """Return how many out-of-fold rows the mean chance of rows with these scores rests on.

        It is m (1 - m) / v, with m the mean chance and v its variance as an estimate: by the Fisher information of the
        fit of a sigmoid, and p (1 - p) / n for a plateau of n rows.
        """
        given = _finite("scores", scores).ravel()
        if len(given) == 0:
            return self.rows
        chances = self(given)
        mean, spread = float(chances.mean()), chances * (1 - chances)
        if self.kind == "sigmoid":
            with np.errstate(over="ignore", invalid="ignore"):
                slopes = np.array([spread.mean(), (spread * given).mean()])
            own, both, other = self.support
            variance = float(slopes @ np.array([[own, both], [both, other]]) @ slopes)
        else:  # rows of one plateau share its error
            ends, inverse = np.unique(np.searchsorted(self.chances, chances), return_inverse=True)
            parts = np.bincount(inverse, np.sqrt(spread)) / len(given)
            variance = float((parts**2 / self.support[np.minimum(ends, len(self.support) - 1)]).sum())
        if not variance > 0:
            return self.rows
        return float(np.clip(mean * (1 - mean) / variance, 1.0, self.rows))

    def predictive_interval(self, scores: ArrayLike, level: float = 0.9) -> tuple[float, int, int]:
        """Return expected, least and largest number of hits among rows with these scores, see `predictive_interval`."""
        return predictive_interval(self(scores), self.rows_behind(scores), level)

    def reliability(self, scores: ArrayLike, labels: ArrayLike, bins: int = 10) -> pd.DataFrame:
        """Return how the chances of rows that nothing was learned from agree with their labels, as a frame.

        Each row is one of so many bins of about as many rows; rows of one chance stay together. The columns are
        ``predicted``, the mean chance; ``observed``, the share of hits; ``rows``; ``low`` and ``high``, Wilson's 95 %
        interval of that share.
        """
        import pandas as pd

        check_whole("bins", bins, 1)
        given, hits = _rows(scores, labels)
        chances = self(given)
        numbers, found = np.floor((rankdata(chances) - 0.5) / len(given) * bins), []
        for number in np.unique(numbers):
            held = numbers == number
            interval = binomtest(int(hits[held].sum()), int(held.sum())).proportion_ci(method="wilson")
            found.append((chances[held].mean(), hits[held].mean(), int(held.sum()), interval.low, interval.high))
        return pd.DataFrame(found, columns=["predicted", "observed", "rows", "low", "high"])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {name: value.tolist() if name in _ARRAYS else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return the calibration that `to_dict` described; raise ValueError for values that describe none."""
        try:
            arrays = {name: np.array(values[name], dtype=np.float64) for name in _ARRAYS}
            found = cls(values["kind"], rows=float(values["rows"]), hits=float(values["hits"]), **arrays)
            found._check()
        except (LookupError, TypeError) as error:
            raise ValueError(f"calibration must be what to_dict of one returned ({error!r:.200})") from error
        return found

    def _check(self) -> None:
        isotonic, m = self.kind == "isotonic", self.knots.size
        shapes = self.knots.shape == self.chances.shape == (m,) and self.support.shape == (m if isotonic else 3,)
        finite = all(np.isfinite(getattr(self, name)).all() for name in _ARRAYS)
        if not (finite and shapes and (m >= 1 if isotonic else self.kind == "sigmoid" and m == 2)):
            raise ValueError("calibration must hold a kind, finite knots and as many chances, and what they rest on")
        rising = (np.diff(self.knots) > 0).all() if isotonic else self.knots[1] >= 0
        within = (self.chances > 0).all() and (self.chances < 1).all() and (np.diff(self.chances) >= 0).all()
        if not (rising and within):
            raise ValueError("calibration must rise with the score, with chances between 0 and 1")


_ARRAYS = ("knots", "chances", "support")


def fit_calibration_of_repeats(
    scores: FloatArray, labels: FloatArray, weights: FloatArray | None, groups: IntArray | None
) -> Calibration:
    """Return the calibration by several scores of each row, (repeats, n); each row counts once."""
    many = len(scores)
    alone = np.arange(len(labels)) if groups is None else groups
    of_all = None if weights is None else np.tile(weights, many)
    return fit_calibration(scores.ravel(), np.tile(labels, many), of_all, np.tile(alone, many))


def fit_calibration(
    scores: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    *,
    kind: Kind | None = None,
) -> Calibration:
    """Return the map from scores to the chance of a hit that out-of-fold scores lead to.

    Args:
        scores: scores of rows by rankers that have not seen them, (n,), finite.
        labels: labels of these rows, (n,), >= 0; those above 0 are hits.
        weights: weight of each row, (n,), >= 0, relative to the others. Rows of unequal weights count as fewer rows,
            (sum of weights)² / (sum of squared weights), Kish's effective sample size.
        groups: group of each row, (n,), integers or texts: the rows of a group count as one row together, for they may
            all be alike.
        kind: ``"isotonic"`` or ``"sigmoid"``; None decides by the rule of this module.

    Raises:
        ValueError: arguments against these rules, or rows that are all hits or all misses.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> scores = rng.normal(size=5000)
        >>> calibration = fit_calibration(scores, rng.random(5000) < 1 / (1 + np.exp(-scores)))
        >>> calibration.kind, calibration([-1.0, 0.0, 1.0]).round(1).tolist()
        ('isotonic', [0.2, 0.5, 0.7])
    """
    given, hits = _rows(scores, labels)
    counts = _counts(len(given), weights, groups)
    kept = counts > 0
    given, hits, counts = given[kept], hits[kept], counts[kept]
    total, positive = float(counts.sum()), float(counts[hits].sum())
    if hits.all() or not hits.any():
        which = "hits (labels above 0)" if hits.all() else "misses (labels of 0)"
        raise ValueError(f"labels must hold hits and misses, got {len(hits)} rows that are all {which}")
    if kind is None:
        kind = "isotonic" if min(positive, total - positive) >= ISOTONIC_FROM else "sigmoid"
    one_of("kind", kind, get_args(Kind))
    values, place = np.unique(given, return_inverse=True)
    sizes, caught = (np.bincount(place, of).astype(np.float64) for of in (counts, counts * hits))
    knots, chances, support = (_isotonic if kind == "isotonic" else _sigmoid)(values, sizes, caught)
    return Calibration(kind, knots, chances, total, positive, support)


def predictive_interval(probabilities: ArrayLike, rows_behind: float, level: float = 0.9) -> tuple[float, int, int]:
    """Return how many hits to expect among rows with these chances, and between which numbers they will lie.

    The number of hits among K rows is beta-binomial: the true share of hits has Jeffreys' posterior of the mean chance
    m seen on s = `rows_behind` rows, Beta(m s + 1/2, (1 - m) s + 1/2), and given the share the number is binomial.

    `probabilities` are calibrated chances of a hit, (K,), in [0, 1], and `rows_behind`, above 0, is the number of
    out-of-fold rows on which they rest. `level`, in (0, 1), is the chance of the interval: 5 % are on each side at 0.9.

    Returns the expected number, the sum of the chances, and the least and the largest number of hits.

    Examples:
        >>> predictive_interval([0.3] * 20, rows_behind=100)
        (6.0, 3, 10)
    """
    chances = _finite("probabilities", probabilities)
    if chances.ndim != 1 or ((chances < 0) | (chances > 1)).any():
        raise ValueError(f"probabilities must be a vector of numbers in [0, 1], got {probabilities!r:.80}")
    check_number("rows_behind", rows_behind, above=0.0)
    check_number("level", level, above=0.0)
    if level >= 1:
        raise ValueError(f"level must be below 1, got {level!r}")
    expected, k = math.fsum(chances), len(chances)
    share = expected / max(k, 1)
    hits = betabinom(k, share * rows_behind + 0.5, (1 - share) * rows_behind + 0.5)
    low, high = hits.ppf([(1 - level) / 2, (1 + level) / 2])
    return expected, min(int(low), math.floor(expected)), max(int(high), math.ceil(expected))


def _isotonic(values: FloatArray, sizes: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return knots, chances and support of isotonic regression on ascending scores, with rows and hits of each."""
    plateau = _pooled(hits / sizes, sizes)
    n = np.bincount(plateau, sizes) + 1.0
    h = np.bincount(plateau, hits) + hits.sum() / sizes.sum()
    again = _pooled(np.asarray(h / n), np.asarray(n))
    chances = np.bincount(again, h) / np.bincount(again, n)
    plateau = again[plateau]
    first = np.flatnonzero(np.diff(plateau, prepend=-1))
    last = np.append(first[1:], len(values)) - 1
    ends = np.unique(np.concatenate([first, last]))
    rows = np.bincount(plateau, sizes)
    return values[ends], np.maximum.accumulate(chances)[plateau[ends]], rows[plateau[ends]]


def _pooled(shares: FloatArray, sizes: FloatArray) -> IntArray:
    """Return the number of the plateau of each score, ascending, (m,)."""
    fitted = IsotonicRegression().fit_transform(np.arange(len(shares)), shares, sample_weight=sizes)
    return np.cumsum(np.diff(fitted, prepend=fitted[0]) > 0)


def _sigmoid(values: FloatArray, sizes: FloatArray, hits: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return intercept and slope of Platt's sigmoid, the least and the largest chance, and the support."""
    positive, negative = float(hits.sum()), float((sizes - hits).sum())
    least, largest = 1 / (negative + 2), (positive + 1) / (positive + 2)
    target = hits * largest + (sizes - hits) * least  # rows that count as hits
    size = float(np.abs(values).max()) or 1.0
    center = float(np.average(values / size, weights=sizes))
    deviation = float(np.average((values / size - center) ** 2, weights=sizes)) ** 0.5
    if deviation * size < _LEAST_DEVIATION:  # beyond which a slope has no room in floating point
        size, center, deviation = 1.0, 0.0, 0.0
    share = float(target.sum() / sizes.sum())
    a, b = float(np.log(share / (1 - share))), 0.0  # by scores of mean 0 and deviation 1
    scaled = (values / size - center) / (deviation or 1.0)
    if len(values) > 1 and deviation > 0:
        model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
        rows, count = np.concatenate([scaled, scaled])[:, None], np.append(target, sizes - target)
        model.fit(rows, np.repeat([1, 0], len(values)), count)
        if float(model.coef_[0, 0]) > 0:
            a, b = float(model.intercept_[0]), float(model.coef_[0, 0])
    chances = expit(a + b * scaled)
    information = sizes * chances * (1 - chances)
    covariance = np.diag([1 / information.sum(), 0.0])
    if b > 0:
        covariance = np.linalg.inv([[(information * scaled**k).sum() for k in powers] for powers in ((0, 1), (1, 2))])
    # a + b (s / size - center) / deviation = (a - b center / deviation) + (b / deviation / size) s
    per_score = np.array([[1.0, -center / (deviation or 1.0)], [0.0, 1 / (deviation or 1.0) / size]])
    support = (per_score @ covariance @ per_score.T)[[0, 0, 1], [0, 1, 1]]
    return per_score @ [a, b], np.array([least, largest]), support


def _rows(scores: ArrayLike, labels: ArrayLike) -> tuple[FloatArray, NDArray[np.bool_]]:
    given, found = _finite("scores", scores), _finite("labels", labels)
    if given.ndim != 1 or given.shape != found.shape or len(given) == 0:
        raise ValueError(f"scores and labels must be two vectors of one length, got {given.shape} and {found.shape}")
    if (found < 0).any():
        raise ValueError(f"labels must be >= 0, above 0 for a hit, got {found.min():g}")
    return given, found > 0


def _finite(name: str, values: ArrayLike) -> FloatArray:
    found = as_numbers(name, values)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must be finite, got {found[~np.isfinite(found)][0]}")
    return found


def _counts(n: int, weights: ArrayLike | None, groups: ArrayLike | None) -> FloatArray:
    """Return as how many independent rows each row counts, (n,)."""
    given = np.ones(n) if weights is None else checked_weights(weights, n, "weights")
    if not given.any():
        raise ValueError("weights must not all be 0")
    given = given / given.max()
    numbers = checked_groups(groups, n, None, "groups")
    together = np.arange(n) if numbers is None else numbers
    squared = float((np.bincount(together, given) ** 2).sum())
    return np.asarray(given * (given.sum() / squared))
