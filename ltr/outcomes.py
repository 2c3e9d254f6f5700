r"""Labels of two fields: the time until an event, and the outcome of a treatment.

They are structured arrays (n,), as scikit-survival has them, whose rows are taken like those of other labels.

*Times.* A row has a time and says whether the event happened then or the row was last seen without it (censored).
Row i is *comparable* with row k, and should stand above it, if it is known to have its event first:

    event_i  and  (t_i < t_k  or  t_i = t_k and not event_k),

since a row that is censored at t had no event up to t. Harrell's C is the share of comparable pairs in order.

*Treatments.* A row has an outcome y and says whether it was treated (t). With N_1 treated and N_0 other rows,
``z = y t / N_1 - y (1 - t) / N_0`` adds up to the mean difference of outcomes, and the area under the uplift curve with
fixed group sizes is ``1/n sum_i z_i (rank_i - 1/2)``, where rank n stands at the top.

Sources: Harrell, Califf, Pryor, Lee & Rosati, *Evaluating the yield of medical tests* (1982); Devriendt, Van Belle,
Guns & Verbeke, *Learning to rank for uplift modeling* (2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_numbers, check_number
from ltr.native import count_later
from ltr.statistics import LabelKind

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_TREATMENT = np.dtype([("treatment", np.bool_), ("outcome", np.float64)])
_SURVIVAL = np.dtype([("event", np.bool_), ("time", np.float64)])


def label_kind(y: Any) -> LabelKind:  # noqa: ANN401 (labels of any kind)
    """Return what labels are: a structured array with the fields of `uplift_labels`, another one, or plain labels."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is None:
        return "labels"
    return "treatments" if set(names) == set(_TREATMENT.names or ()) else "times"


def survival_labels(time: ArrayLike, event: ArrayLike) -> NDArray[np.void]:
    """Return labels with the fields ``event``, whether it happened, and ``time``, when it did or the row was last seen.

    They are a structured array, (n,), of finite times >= 0, and events that are booleans, or 0 and 1.

    Examples:
        >>> survival_labels([5.0, 3.0], [True, False]).tolist()
        [(True, 5.0), (False, 3.0)]
    """
    rule = "hold finite numbers >= 0, the time from the start on until the event or until the row was last seen"
    return _labels("time", time, "event", event, _SURVIVAL, 0.0, rule)


def uplift_labels(outcome: ArrayLike, treatment: ArrayLike) -> NDArray[np.void]:
    """Return labels with the fields ``treatment``, whether a row was treated, and ``outcome``, what happened.

    They are a structured array, (n,), of finite outcomes, and treatments that are booleans, or 0 and 1.

    Examples:
        >>> uplift_labels([1, 0], [0, 1]).tolist()
        [(False, 1.0), (True, 0.0)]
    """
    return _labels("outcome", outcome, "treatment", treatment, _TREATMENT, -math.inf, "hold finite numbers")


def _labels(
    name: str, values: ArrayLike, flag: str, flags: ArrayLike, dtype: np.dtype[Any], least: float, rule: str
) -> NDArray[np.void]:
    numbers, yes = as_numbers(name, values), as_numbers(flag, flags)
    if numbers.ndim != 1 or numbers.shape != yes.shape or not len(numbers):
        got = f"{name} of shape {numbers.shape}, {flag} of shape {yes.shape}"
        raise ValueError(f"{name} and {flag} must hold one number for each row, got {got}")
    _check_rows(name, rule, numbers, np.isfinite(numbers) & (numbers >= least))
    _check_rows(flag, "hold 0 and 1, or booleans", yes, (yes == 0) | (yes == 1))
    labels = np.empty(len(numbers), dtype=dtype)
    labels[name], labels[flag] = numbers, yes
    return labels


@dataclass(frozen=True, eq=False)
class Times:
    """The time until an event of each row, and the order in which rows are comparable.

    Row i is comparable with row k where ``event[i] and order[i] < order[k]``.
    """

    time: FloatArray  # (n,)
    event: BoolArray  # whether the event happened then, (n,)
    order: IntArray  # whole numbers; of equal times rows with an event are first, (n,)

    @classmethod
    def of(cls, y: Any) -> Times:  # noqa: ANN401 (labels of any kind)
        """Read labels of a field of booleans and one of numbers; raise ValueError without a comparable pair."""
        if isinstance(y, Times):
            return y
        fields = getattr(getattr(y, "dtype", None), "fields", None) or {}
        kinds = {name: field[0].kind for name, field in fields.items()}
        events = [name for name, kind in kinds.items() if kind == "b"]
        times = [name for name, kind in kinds.items() if kind in "fiu"]
        if len(kinds) != 2 or len(events) != 1 or len(times) != 1 or np.ndim(y) != 1:
            rule = "a structured array (n,) with a field of booleans, the events, and one of numbers, the times"
            raise ValueError(f"y must be {rule}, as survival_labels(time, event) returns it, got {_described(y)}")
        labels = survival_labels(y[times[0]], y[events[0]])
        time, event = labels["time"], labels["event"]
        # of the events, and of the censored rows, of each time
        _, order = np.unique(np.column_stack([time, ~event]), axis=0, return_inverse=True)
        found = cls(time, event, order.reshape(-1).astype(np.int64))
        if found.pairs == 0:
            got = "no event" if not event.any() else "no event before the time of another row"
            raise ValueError(f"y must hold two rows of which one is known to have its event first, got {got}")
        return found

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def later(self) -> IntArray:
        """The number of rows that each row is comparable with, 0 for censored rows, (n,)."""
        after = np.searchsorted(np.sort(self.order), self.order, "right")
        return np.where(self.event, len(self.order) - after, 0)

    @property
    def pairs(self) -> int:
        """Number of comparable pairs."""
        return int(self.later.sum())

    def later_below(self, scores: ArrayLike) -> tuple[IntArray, IntArray]:
        """Count, for each row, the rows that it is comparable with of a smaller score, and of the same; O(n log n)."""
        different, level = np.unique(np.asarray(scores), return_inverse=True)
        below, equal = np.empty((2, len(self.order)), dtype=np.int64)
        count_later(self.order, level.reshape(-1).astype(np.int64), self.event, len(different), below, equal)
        return below, equal

    def ordered(self, scores: ArrayLike) -> tuple[int, int]:
        """Count the comparable pairs in which the first row has the larger score, and those with equal scores."""
        below, equal = self.later_below(scores)
        return int(below.sum()), int(equal.sum())

    def c_index(self, scores: ArrayLike, *, half: bool = True) -> float:
        """Return Harrell's C, in which a pair of equal scores counts half, or nothing."""
        won, equal = self.ordered(scores)
        return (2 * won + half * equal) / (2 * self.pairs)


@dataclass(frozen=True, eq=False)
class KaplanMeier:
    """The share of rows without an event beyond each time of an event."""

    time: FloatArray  # of events, ascending, (m,)
    share: FloatArray  # of the rows without an event up to and including each time, (m,)
    lower: FloatArray  # ends of their pointwise intervals, (m,)
    upper: FloatArray

    def at(self, times: ArrayLike) -> FloatArray:
        """Return the share without an event up to and including each time, of the shape of `times`."""
        at = np.searchsorted(self.time, np.asarray(times), "right")
        return np.concatenate([[1.0], self.share])[at]


def kaplan_meier(time: ArrayLike, event: ArrayLike, *, level: float = 0.95) -> KaplanMeier:
    r"""Estimate the share of rows without an event up to each time, where some rows are censored, as Kaplan and Meier.

    With d_j events at ``t_j`` among the n_j rows seen until then, ``S(t) = prod over t_j <= t of (1 - d_j / n_j)``. The
    interval, of the probability `level`, is normal on the scale of ``log(-log S)``, with Greenwood's variance; it is S
    itself where S is 0.

    Source: Kalbfleisch & Prentice, *The Statistical Analysis of Failure Time Data* (1980).

    Examples:
        >>> curve = kaplan_meier([1, 2, 2, 3], [1, 1, 0, 0])
        >>> curve.time.tolist(), curve.share.tolist()
        ([1.0, 2.0], [0.75, 0.5])
    """
    check_number("level", level, above=0.0)
    if level >= 1:
        raise ValueError(f"level must be a number between 0 and 1, such as 0.95, got {level}")
    labels = survival_labels(time, event)
    times, deaths = np.unique(labels["time"][labels["event"]], return_counts=True)
    seen = len(labels) - np.searchsorted(np.sort(labels["time"]), times, "left")
    with np.errstate(divide="ignore", invalid="ignore"):
        greenwood = np.cumsum(deaths / (seen * (seen - deaths).astype(np.float64)))
        share = np.cumprod(1 - deaths / seen).astype(np.float64)
        spread = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(greenwood) / -np.log(share)
        lower, upper = (np.where(share > 0, share ** np.exp(sign * spread), 0.0) for sign in (1, -1))
    return KaplanMeier(times, share, lower, upper)


@dataclass(frozen=True, eq=False)
class Treatments:
    """The outcomes of treated rows and others: the outcome of each, and whether it was treated, (n,)."""

    outcome: FloatArray
    treatment: BoolArray

    @classmethod
    def of(cls, y: Any) -> Treatments:  # noqa: ANN401 (labels of any kind)
        """Read labels as `uplift_labels` makes them; raise ValueError for others, or rows of one treatment."""
        if isinstance(y, Treatments):
            return y
        if label_kind(y) != "treatments" or np.ndim(y) != 1:
            rule = "a structured array (n,) with the fields treatment and outcome"
            raise ValueError(f"y must be {rule}, as uplift_labels(outcome, treatment) returns it, got {_described(y)}")
        labels = uplift_labels(y["outcome"], y["treatment"])
        found = cls(labels["outcome"], labels["treatment"])
        if not found.outcome.any():
            raise ValueError("y must hold different outcomes, got 0 for all rows")
        if found.treatment.all() or not found.treatment.any():
            got = "only treated rows" if found.treatment.any() else "no treated row"
            raise ValueError(f"y must hold treated rows and others, got {got}")
        return found

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of treated and of other rows."""
        treated = int(self.treatment.sum())
        return treated, len(self.treatment) - treated

    @property
    def z(self) -> FloatArray:
        """What a row adds to the difference of the mean outcomes, (n,)."""
        treated, others = self.sizes
        return np.where(self.treatment, self.outcome / treated, -self.outcome / others)

    @cached_property
    def _scaled(self) -> FloatArray:
        """``N_1 N_0 z_i``, whole numbers where outcomes are, (n,)."""
        treated, others = self.sizes
        return np.where(self.treatment, self.outcome * others, -self.outcome * treated)

    @cached_property
    def gains(self) -> FloatArray:
        """``N_1 N_0 (z_i - min z)``, from which `affine` makes the area, (n,)."""
        return self._scaled - self._scaled.min()

    @cached_property
    def affine(self) -> tuple[Fraction, Fraction]:
        """Scale and shift that turn ``sum_i gains_i rank_i`` into the area under the uplift curve."""
        n, unit, lowest = len(self), math.prod(self.sizes), Fraction(float(self._scaled.min()))
        total = sum(map(Fraction, self.gains.tolist())) + n * lowest
        return Fraction(1, n * unit), (lowest * (n + 1) / 2 - total / (2 * n)) / unit

    def auuc(self, scores: ArrayLike) -> float:
        """Return the area under the uplift curve; rows of equal scores stand at the mean of their ranks."""
        _, level, counts = np.unique(np.asarray(scores), return_inverse=True, return_counts=True)
        ranks = (np.cumsum(counts) - (counts - 1) / 2)[level.reshape(-1)]
        scale, shift = self.affine
        return float(scale) * float(self.gains @ ranks) + float(shift)

    @property
    def effect(self) -> float:
        """The difference of the mean outcomes of treated rows and others."""
        return float(self.outcome[self.treatment].mean() - self.outcome[~self.treatment].mean())


def read_labels(y: Any) -> NDArray[Any] | Times | Treatments:  # noqa: ANN401 (labels of any kind)
    """Return labels of two fields as what they are, and plain labels as an array."""
    kind = label_kind(y)
    return Times.of(y) if kind == "times" else Treatments.of(y) if kind == "treatments" else np.asarray(y)


def checked_scores(scores: ArrayLike, y: Times | Treatments) -> FloatArray:
    """Return scores as float64; raise ValueError unless there is a finite one for each row of y."""
    found = as_numbers("scores", scores)
    if found.shape != (len(y),):
        raise ValueError(f"scores must hold one number for each row of y ({len(y)},), got shape {found.shape}")
    _check_rows("scores", "be finite", found, np.isfinite(found))
    return found


def chance_of(scores: ArrayLike) -> NDArray[np.float64]:
    """Return the logistic function ``1 / (1 + exp(-s))`` of scores, of the same shape."""
    given = np.asarray(scores, dtype=np.float64)
    small = np.exp(-np.abs(given))
    return np.asarray(np.where(given < 0, small, 1.0) / (1.0 + small))


def wilson(positives: int, rows: int, level: float = 0.9) -> tuple[float, float]:
    """Return Wilson's interval of a share, of a probability of `level`; 0 and 1 without rows."""
    if rows == 0:
        return 0.0, 1.0
    share, quantile = positives / rows, NormalDist().inv_cdf((1 + level) / 2)
    z = quantile**2 / rows
    half = quantile * math.sqrt(share * (1 - share) / rows + z / (4 * rows))
    ends = ((share + z / 2 - half) / (1 + z), (share + z / 2 + half) / (1 + z))
    return (0.0 if positives == 0 else ends[0], 1.0 if positives == rows else ends[1])


def effect_interval(outcome: FloatArray, treatment: BoolArray, level: float = 0.9) -> tuple[float, float, float] | None:
    """Return the difference of the mean outcomes of treated rows and others, and its interval; None with too few rows.

    The interval of outcomes 0 and 1 is Newcombe's (1998), made of `wilson`'s; that of others is the normal one, for
    which there have to be two treated rows and two others.
    """
    sides = outcome[treatment], outcome[~treatment]
    if min(map(len, sides)) < 1:
        return None
    means = [float(side.mean()) for side in sides]
    effect = means[0] - means[1]
    if np.isin(outcome, (0, 1)).all():
        (low1, high1), (low0, high0) = (wilson(int(side.sum()), len(side), level) for side in sides)
        low = math.hypot(means[0] - low1, high0 - means[1])
        return effect, effect - low, effect + math.hypot(high1 - means[0], means[1] - low0)
    if min(map(len, sides)) < 2:
        return None
    half = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(sum(float(side.var(ddof=1)) / len(side) for side in sides))
    return effect, effect - half, effect + half


def _check_rows(name: str, rule: str, numbers: FloatArray, good: BoolArray) -> None:
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(f"{name} must {rule}, got {float(numbers[row])!r} at row {row}")


def _described(y: Any) -> str:  # noqa: ANN401
    return f"{y.dtype} of shape {np.shape(y)}" if hasattr(y, "dtype") else type(y).__name__
