r"""Problems of ranked lists: find the weights with the largest rank statistic, of binary or graded labels.

The scores f(x) = w·x of a linear scorer rank the observations of each list (one query, or the only list).
Observation i has a gain >= 0, and the problem is to maximise

    sum over lists, sum over their observations i of  gain_i * a[rank_i]   -   C * #{j : w_j != 0}

over the w that `ltr.exact.problem` describes. The numbers a_1 <= ... <= a_n are the weights of a rank statistic for a
list of that length; rank 1 is the bottom of the list. Binary labels are the gains 0 and 1. There are two definitions of
rank:

* ``resolved``: the ranks of a permutation, the pessimistic one. The distinct gains of a list are numbered upwards, h_i
  is the *grade* of observation i, and for h_i > h_k

      i beats k  when  w·(x_i - x_k) >= margin * (h_i - h_k),      otherwise k stands above i.

  The list is ordered by the key ``w·x - margin * h``, and the higher grade stands above where keys are equal.
* ``subrank``: observation i has rank 1 + #{k in its list : w·(x_i - x_k) >= margin}.

With c_i the number of observations of *other grades* above i, the p-th observation of a grade (p = 0, 1, ...) has the
p-th smallest of these and the rank n - p - c_(p), so that counting losses is enough (``docs/maths.md``, "The identity
behind ResolvedRank"). As the margin goes to 0 the order becomes that of the scores, with a tied lower gain above a tied
higher gain, as the paper's ResolvedRank has it for two classes.

**Why the margin grows with the grades.** With the same margin for all pairs "stands above" can be circular: scores
of 1.5, 0.75 and 0 margins for gains 3, 2, 1 put the second above the first, the third above the second, and the first
above the third. Their sum can exceed the value of the perfect ranking, and shrinking w can raise it. With the steps
above:

* No weights exceed the perfect ranking, gains descending: that holds for every permutation (rearrangement).
* Scaling w up never lowers the value. Where the keys ``s w·x - margin h`` of some observations meet at a scale s, their
  scores ascend with their grades: just below s the lower grades stand above, from s on the higher ones do. They fill
  the same places before and after; gains ascending from the top are their worst order, gains descending their best.
  So the optimum is found at ``max |w_j| = 1`` or w = 0.
* Hence the value under a margin is at most the value as the margin goes to 0.

Source: Rudin & Wang (2018), sections 2.2, 2.6 and 3; Järvelin & Kekäläinen (2002) for gains and NDCG.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_array, as_numbers, one_of
from ltr.exact.constraints import Demand, LinearConstraints, set_fields
from ltr.exact.levels import FloatArray, IntArray, Levels, RankedItems, Tick, ranked_appearances, ranked_levels
from ltr.exact.problem import Demanded, Gain, GainName, Problem, Ties, check_best_value, finite_features
from ltr.outcomes import Treatments, label_kind
from ltr.statistics import RankStatistic


class _Rows(NamedTuple):
    """The observations list after list, (n,) each; the weights of a list are those of its ranks, ascending."""

    row: IntArray  # numbers of the observations
    list: IntArray  # number of the list, ascending
    start: IntArray  # where the list begins
    weight: FloatArray  # weights of the statistic


@dataclass(frozen=True, eq=False, init=False, repr=False)
class RerankProblem(Problem):
    """Find the weights with the largest rank statistic: binary or graded labels, one list or several.

    ``max over w in [-1, 1]^d of  sum over lists, sum_i gain_i a[rank_i]  -  C ||w||_0``. Features are used as given, so
    the margin is in units of their scores; the module docstring defines ranks and margin.

    Args:
        X: observations, (n, d), finite.
        y: label of each observation, (n,): 0 and 1, or graded relevance such as 0 to 4; or `ltr.outcomes.uplift_labels`
            of one list, for the statistic ``auuc``.
        statistic: a `RankStatistic` or its name. For binary labels in one list ``auc`` is the share of ordered pairs;
            for several lists or graded labels it is the sum of ranks, as ``wrs``.
        C: price of each non-zero weight, >= 0.
        margin: score difference from which an observation beats another, > 0; it is multiplied by the difference of
            their grades, which is 1 in lists of two grades.
        qid: list of each observation, integers (n,), in any order; None puts all into one list.
        gain: how labels become gains: ``"exp2"`` for 2^label - 1, ``"linear"`` for the label itself, or a function of
            the array of labels. Statistics that count hits (``hits@50``, ``precision@50``, ``recall@50``) take gain 1
            for every label above 0; for ``hits`` a function may give other values of hits.
        normalize: whether the statistic is the mean of the normalised one over lists with a gain: NDCG for ``dcg``.
        ties: ``"resolved"`` or ``"subrank"``, see the module docstring.
        constraints: side constraints ``A w <= b``.
        max_nonzeros: largest number of non-zero weights, from 1 to the number of columns that are not free, or None.
        free: numbers of columns whose weights have no price and are not counted by `max_nonzeros`, such as the score
            of a model that the other columns correct.
        required: numbers of columns that must be used: their weights are at least `LEAST_REQUIRED` in size.
        integer: B, from 1 to 100, for weights that are whole numbers from -B to B, in place of real ones in [-1, 1];
            those of required columns are then at least 1 in size, and `margin` and ``constraints`` refer to them.
        demands: rank statistics of the same rows that the weights must bring to a least value, with the same lists,
            margin and ResolvedRanks. Those of another problem are its `demanded`.

    Attributes:
        gains: gain of each observation, float64 of shape (n,).

    Raises:
        ValueError: an argument breaks its rule; the message has its name and the value received.

    Examples:
        >>> problem = RerankProblem([[0.0], [1.0], [2.0]], [0, 1, 1], statistic="dcg")
        >>> round(problem.evaluate([1.0]), 4), round(problem.evaluate([-1.0]), 4)
        (1.6309, 1.1309)
        >>> graded = RerankProblem([[0.0], [1.0], [2.0]], [1, 0, 2], normalize=True)
        >>> round(graded.evaluate([1.0]), 4)  # (3 * 1 + 1 * 0.5) / (3 * 1 + 1 * 0.6309)
        0.9639
    """

    X: FloatArray
    y: NDArray[Any]
    statistic: RankStatistic
    C: float
    margin: float
    qid: IntArray
    gain: Gain
    normalize: bool
    ties: str
    constraints: LinearConstraints | None
    max_nonzeros: int | None
    free: tuple[int, ...]
    required: tuple[int, ...]
    integer: int | None
    demands: tuple[Demand | Demanded, ...]
    gains: FloatArray = field(init=False)
    treatments: Treatments | None = field(init=False, repr=False)
    demanded: tuple[Demanded, ...] = field(init=False, repr=False)

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        statistic: RankStatistic | str = "dcg",
        C: float = 0.0,
        margin: float = 1e-4,
        *,
        qid: ArrayLike | None = None,
        gain: Gain = "exp2",
        normalize: bool = False,
        ties: Ties = "resolved",
        constraints: LinearConstraints | None = None,
        max_nonzeros: int | None = None,
        free: Sequence[int] = (),
        required: Sequence[int] = (),
        integer: int | None = None,
        demands: Sequence[Demand | Demanded] = (),
    ) -> None:
        features = finite_features(X)
        named = RankStatistic.parse(statistic)
        kind = label_kind(y)
        named.check_kind(kind)
        if kind == "times":
            raise ValueError("statistic c_index has no ranks: take CardProblem, or a PairwiseProblem of its pairs")
        treatments = Treatments.of(y) if kind == "treatments" else None
        labels = as_numbers("y", y).copy() if treatments is None else np.array(y)
        if labels.shape != features.shape[:1]:
            raise ValueError(f"y must have one label per row of X ({features.shape[0]}), got shape {labels.shape}")
        one_of("ties", ties, get_args(Ties))
        set_fields(self, X=features, y=labels, qid=_list_ids(qid, len(labels)), ties=ties, gain=gain)
        gains = _gains(labels, gain) if treatments is None else treatments.gains
        set_fields(self, normalize=normalize, gains=gains, statistic=named, treatments=treatments)
        if treatments is None:
            self.statistic.check_linear()
        elif normalize or len(self.lists) > 1:
            raise ValueError("statistic auuc is one of a single list: qid must be None, and normalize False")
        if callable(gain) and self.statistic.kind.share_of in ("top", "positives"):
            rule = f"'exp2' or 'linear' for {self.statistic}, which is a share of rows: hits takes a function"
            raise ValueError(f"gain must be {rule}, got {gain!r:.80}")
        if self.statistic.kind.counts_hits and not callable(gain):
            set_fields(self, gains=(labels > 0).astype(np.float64))
        if self.statistic.kind.share_of == "positives" and not self.binary:
            set_fields(self, gains=self._shares_of_positives())
        if not self.gains.any() or (qid is None and np.all(self.gains == 1)):
            raise ValueError(f"y must hold both classes, got only {self.gains[0]:g}")
        if normalize:
            check_best_value(self._perfect)
            set_fields(self, gains=self._normalized())
        self._set_common(C, margin, constraints, max_nonzeros, free, required, integer)
        same: dict[str, Any] = {"margin": self.margin, "qid": self.qid, "integer": self.integer}
        self._set_demands(demands, lambda ties=None, **options: RerankProblem(self.X, **options, **same))

    def other(
        self,
        statistic: RankStatistic | str,
        labels: ArrayLike | None = None,
        *,
        normalize: bool = False,
        least: float | None = None,
    ) -> RerankProblem:
        """Return the problem of another statistic of the same rows, under all that is asked of weights here, without C.

        `labels` are numbers >= 0 that are gains as they are, (n,), or None for those of the problem; `least` is a value
        of this problem's statistic that the weights must reach.
        """
        names = ("margin", "qid", "integer", "constraints", "max_nonzeros", "free", "required")
        options = {name: getattr(self, name) for name in names} | self._labelled(RankStatistic.parse(statistic), labels)
        asked = () if least is None else (Demanded(Demand(self.statistic, least, normalize=self.normalize), self),)
        demands = (*self.demanded, *asked)
        problem = RerankProblem(self.X, statistic=statistic, normalize=normalize, demands=demands, **options)
        set_fields(problem, X=self.X)
        return problem

    def _shares_of_positives(self) -> FloatArray:
        """Return the gains of hits divided by the number of positives of their list."""
        gains, rows = self.gains.copy(), self._rows
        gains[rows.row] /= np.maximum(np.bincount(rows.list, gains[rows.row]), 1.0)[rows.list]
        return gains

    def _normalized(self) -> FloatArray:
        """Return the gains divided so that the value is the mean of the normalised statistic over lists with a gain."""
        gains, best = self.gains.copy(), np.array(self._best_of_lists())
        if self.statistic.kind.share_of in ("top", "positives"):
            best = (best > 0).astype(np.float64)
        divisor = np.where(best > 0, best * np.count_nonzero(best), 1.0)
        gains[self._rows.row] /= divisor[self._rows.list]
        return gains

    # --- lists, gains and rank weights -------------------------------------------------------------------------

    @cached_property
    def lists(self) -> list[IntArray]:
        """Indices of the observations of each list, lists in the order of their `qid`."""
        order = np.argsort(self.qid, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.qid[order])) + 1)

    @cached_property
    def grades(self) -> IntArray:
        """Place of each observation's gain among the distinct gains of its list, 0 for the smallest, (n,)."""
        rows = self._rows
        order = np.lexsort((self.gains[rows.row], rows.list))  # stays within each list
        ascending = rows.row[order]
        gains = self.gains[ascending]
        steps = np.cumsum(np.diff(gains, prepend=gains[0]) != 0)
        grades = np.empty(self.n, dtype=np.int64)
        grades[ascending] = steps - steps[rows.start]
        return grades

    @cached_property
    def _rows(self) -> _Rows:
        """The observations, list after list."""
        sizes = np.array([len(members) for members in self.lists])
        weights = {size: self.statistic.weights(size) for size in np.unique(sizes).tolist()}
        return _Rows(
            np.concatenate(self.lists),
            np.repeat(np.arange(len(sizes)), sizes),
            np.repeat(np.cumsum(sizes) - sizes, sizes),
            np.concatenate([weights[size] for size in sizes.tolist()]),
        )

    @cached_property
    def _steps(self) -> IntArray:
        """The grades of `_rows`."""
        return self.grades[self._rows.row]

    @cached_property
    def _paid(self) -> tuple[IntArray, FloatArray]:
        """The places in `_rows` of observations with a gain above 0, and these gains."""
        gains = self.gains[self._rows.row]
        at = np.flatnonzero(gains)
        return at, gains[at]

    @property
    def binary(self) -> bool:
        """Whether the problem is one list with the gains 0 and 1, both of them."""
        if self.treatments is not None or len(self.lists) > 1:
            return False
        return not self.gains.all() and bool(((self.gains == 0) | (self.gains == 1)).all())

    @property
    def positives(self) -> IntArray:
        """Indices of the observations with a gain above 0."""
        return np.flatnonzero(self.gains > 0)

    @property
    def negatives(self) -> IntArray:
        """Indices of the observations with gain 0."""
        return np.flatnonzero(self.gains == 0)

    @property
    def a(self) -> FloatArray:
        """Rank weights a_1..a_n of one list; their sum over the positives plus `shift` is the statistic."""
        return self.rank_weights(self.n)

    @property
    def shift(self) -> float:
        """Constant part of the statistic: 0 except for ``auc`` with binary labels, and for ``auuc``."""
        return self._affine[1]

    @property
    def _affine(self) -> tuple[float, float]:
        """Scale and shift that turn the sum of gains times weights into the statistic."""
        if self.treatments is not None:
            return float(self.treatments.affine[0]), float(self.treatments.affine[1])
        if self.binary or self.statistic.kind.share_of == "top":
            return self.statistic.affine(len(self.positives), len(self.negatives))
        return 1.0, 0.0

    @property
    def _exact_affine(self) -> tuple[Fraction, Fraction]:
        """The same without rounding; the scale is one over a number of rows or pairs."""
        if self.treatments is not None:
            return self.treatments.affine
        scale, shift = self._affine
        exact = Fraction(-len(self.positives) - 1, 2 * len(self.negatives)) if shift else Fraction(0)
        return Fraction(1, round(1 / scale)), exact

    def rank_weights(self, length: int) -> FloatArray:
        """Return the rank weights of a list of this length, bottom of the list first."""
        return self.statistic.weights(length) * self._affine[0]

    # --- values ------------------------------------------------------------------------------------------------

    @cached_property
    def trivial_bound(self) -> float:
        """The statistic of a perfect ranking, gains descending in every list: no weights exceed it."""
        return self._perfect()

    @property
    def least_value(self) -> float:
        """A number that no value of the statistic is below: 0, or the shift of ``auuc``."""
        return 0.0 if self.treatments is None else self.shift

    def _perfect(self) -> float:
        scale, shift = self._affine
        return scale * math.fsum(self._best_of_lists()) + shift

    def _best_of_lists(self) -> list[float]:
        """Return the sum of gains times weights of a perfect ranking of each list."""
        rows = self._rows
        gains = self.gains[rows.row]
        terms = gains[np.lexsort((gains, rows.list))] * rows.weight
        return [math.fsum(own.tolist()) for own in np.split(terms, np.unique(rows.start)[1:])]

    def ranks(self, w: ArrayLike) -> IntArray:
        """Return the rank of every observation within its list at w, 1 at the bottom; equal ones stand by index."""
        rows = self._rows
        ranks = np.empty(self.n, dtype=np.int64)
        ranks[rows.row] = 1 + self._places(self.in_box(w)) - rows.start
        return ranks

    def _places(self, w: FloatArray) -> IntArray:
        """Return where each observation of `_rows` stands, list behind list, 0 at the bottom; by Subranks not alone."""
        scores, rows, n = self.scores(w), self._rows, self.n
        if self.ties == "resolved":
            return scores.order(rows.row, self._steps, rows.list, apart=True)
        # each observation with a handicap of one margin, and without
        ranks = scores.order(np.repeat(rows.row, 2), np.tile([1, 0], n), np.repeat(rows.list, 2))
        return np.cumsum(np.bincount(ranks[1::2], minlength=2 * n))[ranks[::2]]

    def statistic_value(self, w: ArrayLike) -> float:
        """Return the statistic at w, without the price of the weights."""
        at, gains = self._paid
        terms = gains * self._rows.weight[self._places(self.in_box(w))[at]]
        scale, shift = self._affine
        return scale * math.fsum(terms[terms > 0].tolist()) + shift

    def exact_statistic(self, w: ArrayLike) -> Fraction:
        """Return the statistic at w without rounding its terms and their sum."""
        at, gains = self._paid
        weights = self._rows.weight[self._places(self.in_box(w))[at]]
        terms = (
            Fraction(gain) * Fraction(a) for gain, a in zip(gains.tolist(), weights.tolist(), strict=True) if a > 0
        )
        scale, shift = self._exact_affine
        return scale * sum(terms, Fraction(0)) + shift

    # --- for solvers and certificates --------------------------------------------------------------------------

    def appearances(self) -> tuple[IntArray, IntArray]:
        """Count the pairs in which each observation is the upper one and the lower one, (n,) each."""
        return ranked_appearances(self.lists, self.gains, self.ties == "subrank")

    def levels(self, tick: Tick = lambda: None) -> Levels:
        """Return the pairs and statistic tables."""
        grades = None if self.ties == "subrank" else self.grades
        return ranked_levels(self.lists, self.gains, grades, self.rank_weights, self.shift, tick)

    def ranked_items(self) -> RankedItems:
        """Return the items of the lists, which stand for the same objective as `levels`."""
        rows, (scale, shift), at = self._rows, self._affine, np.arange(self.n)
        starts = np.flatnonzero(rows.start == at)
        gains, steps, of = self.gains[rows.row] * scale, self._steps, rows.list
        if self.ties == "subrank":
            paying = self._paid[0]
            order = np.lexsort((np.repeat([0, 1], [len(paying), self.n]), np.append(of[paying], of)))
            at = np.append(paying, at)[order]
            steps, counts = (order < len(paying)).astype(np.int64), (order >= len(paying)).astype(np.uint8)
            gains = np.where(counts, 0.0, gains[at])
        else:
            at = np.lexsort((-steps, of))
            steps, gains, counts = steps[at], gains[at], np.ones(self.n, dtype=np.uint8)
        return RankedItems(
            row=rows.row[at].astype(np.int32),
            steps=steps,
            gain=gains,
            counts=counts,
            start=np.append(np.searchsorted(of[at], np.arange(len(starts))), len(at)),
            weight=rows.weight,
            weight_at=starts,
            shift=shift,
        )

    @cached_property
    def step(self) -> float:
        """The unit of values where weights have no price, gains are equal and rank weights whole; otherwise 0."""
        found, weights = self.gains[self.gains > 0], self._rows.weight
        whole = self.C == 0 and bool((found == found[0]).all() and (weights == np.rint(weights)).all())
        return self._affine[0] * float(found[0]) if whole else 0.0

    @property
    def relaxed(self) -> RerankProblem | None:
        """The problem without demands and, for binary labels, with ResolvedRanks; None if that is the same."""
        ties = "resolved" if self.binary else self.ties
        return dataclasses.replace(self, ties=ties, demands=()) if self.demands or ties != self.ties else None

    def content(self) -> dict[str, Any]:
        """Return the problem as a certificate file describes it, of kind ``rerank``."""
        demands = [demanded.content() for demanded in self.demanded]
        own = {"ties": self.ties, "qid": self.qid.tolist(), "demands": demands}
        return {"kind": "rerank", **self.ranking_content(), **self._common_content(), **own}

    def ranking_content(self) -> dict[str, Any]:
        """Return what a certificate file says of the statistic and its labels."""
        statistic, scale = self.statistic, 1.0
        if not self.binary and statistic.kind.counts_hits:  # what it is a share of is in the gains
            statistic, scale = RankStatistic("hits", cutoff=statistic.cutoff), self._affine[0]
        weights = [v for members in self.lists for v in statistic.weights(len(members)).tolist()]
        return {"statistic": str(statistic), **self.label_content(self.gains * scale), "a": weights}

    def label_content(self, gains: FloatArray) -> dict[str, Any]:
        """Return the gains as a certificate file has them, or the outcomes that they were made of."""
        if self.treatments is None:
            return {"gains": gains.tolist()}
        treated = self.treatments.treatment.astype(np.int64)
        return {"outcome": self.treatments.outcome.tolist(), "treatment": treated.tolist()}

    def describe(self) -> str:
        """Return the problem in a few words, for error messages."""
        data = "" if self.binary else " of several lists or graded labels"
        return f"a RerankProblem{data} with statistic '{self.statistic}' and ties={self.ties!r}"

    def _sizes(self) -> dict[str, object]:
        lists = {} if len(self.lists) == 1 else {"lists": len(self.lists)}
        positives = {"positives" if self.binary else "rows with a gain": len(self.positives)}
        return {**super()._sizes(), **lists, **positives, "statistic": str(self.statistic)}


def _gains(labels: FloatArray, gain: Gain) -> FloatArray:
    if callable(gain):
        gains = np.array(gain(labels), dtype=np.float64)
        if gains.shape != labels.shape:
            raise ValueError(f"gain must return one number per label ({len(labels)}), got shape {gains.shape}")
    elif gain in get_args(GainName):
        wrong = ~(np.isfinite(labels) & (labels >= 0))
        if wrong.any():
            raise ValueError(f"y must hold finite labels >= 0, got {labels[wrong][0]:g}")
        with np.errstate(over="ignore"):
            gains = np.exp2(labels) - 1.0 if gain == "exp2" else labels.copy()
    else:
        raise ValueError(f"gain must be 'exp2', 'linear' or a function of the labels, got {gain!r}")
    wrong = ~(np.isfinite(gains) & (gains >= 0))
    if wrong.any():
        raise ValueError(f"gains must be finite numbers >= 0, got {float(gains[wrong][0])!r}")
    return gains


def _list_ids(qid: ArrayLike | None, n: int) -> IntArray:
    if qid is None:
        return np.zeros(n, dtype=np.int64)
    ids = as_array("qid", qid)
    if ids.shape != (n,) or not np.issubdtype(ids.dtype, np.integer):
        raise ValueError(f"qid must hold one integer per row of X ({n}), got {ids.dtype} of shape {ids.shape}")
    return ids.astype(np.int64)
