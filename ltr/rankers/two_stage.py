"""Two stages: a base ranker for the whole list, the exact engine for its top (Rudin & Wang 2018, section 2.1).

*Training.* The base ranker f_0 is fitted to all rows, each list is cut at its own K-th largest base score, and the
exact stage finds the linear weights with the largest rank statistic, summed over the tops of the lists. *Prediction.*
Items at or above the cut, all that tie with the K-th among them, are ordered by the exact stage and stand above the
others, which keep the order of f_0.

After a fit on one list the cut is its threshold, which holds for any list. After a fit with a `qid` it is the K-th
score of each query, so that the score of an item depends on the other items of its query.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits
from torch import nn

from ltr.checks import check_flag, check_number, check_whole, doubles
from ltr.data.dataset import Features, checked_queries, labels_agree
from ltr.estimator_names import Estimator
from ltr.exact import Progress
from ltr.exact.largest_margin import NormName
from ltr.list_demands import Asked
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.auto import AutoRanker
from ltr.rankers.base import Ranker, all_or_nothing, fit_to
from ltr.rankers.baselines import ScoreColumn
from ltr.rankers.choice import (
    BASE,
    CORRECTIONS,
    Choice,
    Fold,
    PartScores,
    compare,
    computed_once,
    folds_of,
    side_by_side,
)
from ltr.rankers.constrained import check_possible
from ltr.rankers.constraint_checks import refuse_violated, used_columns, why_refused
from ltr.rankers.demanded import DemandOutcome, outcome_of, refuse_settled
from ltr.rankers.estimators import EstimatorRanker, make_ranker
from ltr.rankers.exact import ExactRanker, Search, TopLists, cut
from ltr.rankers.inputs import FloatArray, IntArray, LabelledRows, Qid, Table, framed
from ltr.rankers.onnx import lifted
from ltr.rankers.scorers import TwoStageScorer
from ltr.rankers.surrogate import SurrogateRanker
from ltr.rankers.unseen import held_out_scores, rank_held_out
from ltr.rankers.views import BASE_SCORE, RESERVED, TOTAL, summed
from ltr.ranks import GainName
from ltr.statistics import RankStatistic
from ltr.threads import available_threads
from ltr.weight_constraints import Constrained, WeightConstraints

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["TwoStageRanker"]

_OTHER_BASE = (
    ". The constraints of the exact stage bind the whole list. Take as base logistic regression or a linear loss such "
    'as ranknet, which are fitted under them, or rerank full lists without a base (choose off, top_k "full" in a '
    "config, None in Python)"
)
_LARGER_TOP = ": rerank more rows (a larger top_k), correct the base (base_score=True), or drop the constraint"
_Placed = tuple[FloatArray, NDArray[np.bool_]]  # scores, and which rows the exact stage placed
_ROUNDING = 1e-12  # relative difference of the scores of networks in two programs


@dataclass(eq=False, repr=False)
class TwoStageRanker(Ranker):
    """Rank by any base ranker, and the top K of its list exactly.

    Items below the threshold have their base score; the exact score s of the others enters as ``threshold + 2 + s`` for
    s >= 0 and ``threshold + 1 + 1 / (1 - s)`` below. After a fit on queries scores of different queries are not
    comparable; after one on a single list a `qid` changes no score.

    Args:
        base: ``"auto"`` for an `AutoRanker`, a name that `make_ranker` takes, or any estimator, of which a clone is
            fitted, to a pandas frame where X is a frame with names (`ltr.rankers.estimators`).
        exact: the rank statistic to maximise on the tops, or an `ExactRanker` with all options of the exact stage. The
            statistic is also what `score` reports, of whole lists. Its constraints bind the whole list, so the base
            must satisfy them as well (`ltr.rankers.constraint_checks`). With ``max_nonzeros`` the exact stage may use
            the base's columns only; beside a column of scores, one less than that. Its ``demands`` are about whole
            lists, and the base order is kept only where it meets them.
        top_k: items of each list to rerank, >= 2; None and any K beyond a list's length take all of it.
        choose: whether to compare, on inner splits of the training data, the base's order alone and corrections of it
            that are held near the base to several degrees, and to keep the base unless a correction is expected to do
            better on new lists (`ltr.rankers.choice`).
        base_score: whether the exact stage corrects the base score, ``w_0 * base score + w·x`` with w_0 >= 0, which
            costs no price and does not count for ``max_nonzeros``, instead of replacing it by w·x. The base scores of
            the training rows are out of fold.
        spread: standard deviation of the prior that holds the weights near the base's own order: the weights are then
            the central ones (`ltr.exact.central`) in place of the best on the training lists. None for the best.

    Attributes:
        base_, exact_: the fitted base ranker, an `EstimatorRanker` for an estimator of another library, and the
            `ExactRanker` fitted to the tops.
        threshold_: base score from which items are reranked; None after a fit on queries.
        coef_: the exact stage's weights on the raw features, (d,); None where the base ranking is kept, because the top
            has nothing to order or no weights are known to satisfy the side constraints.
        solution_, problem_, note_, base_weight_: those of the exact stage.
        choice_: the `Choice` with what to expect on new lists; None without `choose`, and where the base order does not
            meet the demands, which leaves no choice.
        demands_: the `DemandOutcome`, by base scores out of fold where those are known; None without any, and after
            `load`.
        list_scores_: base scores of the rows of the fit by which the lists were cut, (n,), out of fold where those are
            known, NaN for rows that were left out; None in copies and pickles, and after `load`.

    Examples:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> X, y = X[:, :3], 1 - y  # malignant is positive
        >>> ranker = TwoStageRanker(LogisticRegression(), "dcg", top_k=150).fit(X, y)
        >>> print(ranker.choice_)  # doctest: +ELLIPSIS
        on new lists expect +0.00... dcg (90 %: -0.00... to +0.00...); chosen: base + 3 features, ... on the top 150
    """

    _BY_LIST = True
    _TAKES_SINGLES = True
    _FITTED = ("base_", "exact_", "threshold_", "choice_")
    _NOT_COPIED = ("list_scores_",)
    _HOW = (
        "rows whose score by base_ is at least threshold_ stand above the others, in the order of their scores by "
        "exact_; the others are ordered by base_. Without a threshold these are the top_k largest base scores of each "
        "list"
    )

    base: Any = "auto"  # a name or any estimator
    exact: str | RankStatistic | ExactRanker = "dcg"
    top_k: int | None = 50
    _: KW_ONLY
    choose: bool = True
    base_score: bool = False
    spread: float | None = None

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        time: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        beside: Table = None,
        base_is_fitted: bool = False,
        warm_starts: Iterable[ArrayLike] = (),
        on_progress: Progress | None = None,
        inner: MutableMapping[str, Any] | None = None,
        on_choice: Callable[[int, int], None] | None = None,
    ) -> TwoStageRanker:
        """Fit the base ranker, cut the lists at K and rerank; other arguments are those of `Ranker` and `ExactRanker`.

        Without a `group`, `choose` keeps rows together that are much more similar than rows otherwise are
        (`ltr.data.similar_rows`). Weights are for every fit of the base ranker, whose ``fit`` must take them, for the
        exact stage, and for the gains by which `choose` decides.

        Args:
            base_is_fitted: whether to take the base ranker object as it is. Scores out of fold, which `base_score` and
                `choose` need, still come from clones that are fitted to parts of the rows. A `TreesRanker` cannot be
                fitted again: it must not have seen these rows.
            inner: results of inner splits by name, of an earlier fit that was interrupted: what is in it is not
                computed again, and what is computed is put into it.
            on_choice: called with the number of inner splits that are done and of all.

        Raises:
            ValueError: a base ranker that gives all rows of each list the same score; constraints that a stage is not
                known to satisfy; demands that no weights are known to meet.
        """
        exact = self._checked_stage()
        training = self._weighted_data(X, y, qid, sample_weight, group, time)
        features, labels, lists = training.features, training.labels, training.lists
        exact._weighted_labels(training)  # weights that do not go are refused before any fit
        exact._take_names(self)
        given = exact._given_demands(X, beside, sample_weight)
        given.of(labels, lists)  # demands that do not go with the rows are refused before any fit
        starts = exact._checked_starts(labels, features.shape[1], warm_starts)
        seed = 0 if exact.limits is None else exact.limits.seed
        if exact.integer is None and (on_columns := self._weight_constraints()) is not None:
            check_possible(on_columns, doubles(features), self._names)
        self.base_ = self._given_base(X, features) if base_is_fitted else self._fit_base(training, qid, seed)
        self._check_constraints_of_base()
        kept = np.ones(len(labels), dtype=np.bool_) if sample_weight is None else np.asarray(sample_weight) > 0
        if (scores := self._known_out_of_fold) is not None:
            scores = scores if len(scores) == len(labels) else scores[kept]  # rows of weight 0 are left out here
            training = dataclasses.replace(training, known=scores)
        else:
            scores = self.base_._scores_among(features, self._names, lists)
        if self.top_k is not None and labels_agree(scores, lists):
            of = "" if lists is None else " of each query"
            raise ValueError(
                f"base must order the rows, but {self.base_._class_name} gives all rows{of} the same score, so that "
                "all of them would be at the top: it has learnt nothing from these features. Take another base or "
                'other options of it, or rerank full lists, which needs no order (top_k=None, in a config "full")'
            )
        if (own := self._weights_of_base) is not None:
            starts.insert(0, own)
        self.choice_: Choice | None = None
        self.demands_: DemandOutcome | None = None
        spread, fitted = self.spread, scores
        training, similar = training.with_similar() if self.choose else (training, None)
        if self.choose or self.base_score:
            scores = self._out_of_fold(fitted, training, seed)
        known = ~np.isnan(scores)
        asked = given.take(known).of(labels[known], None if lists is None else lists[known])
        chooses = self.choose and all(one.met(scores[known]) for one in asked)
        if chooses:
            choice = self._compare(training, seed, {} if inner is None else inner, on_choice)
            self.choice_, spread = dataclasses.replace(choice, similar=similar), choice.spread
        self.list_scores_: FloatArray | None = np.full(len(kept), np.nan)
        self.list_scores_[kept] = scores
        if not known.all():
            training, scores = training.take(known), scores[known]
        # weights that are chosen for new lists are no optimum of this one, so a proof would serve nothing
        search: Search = "quick" if chooses else "proof"
        used = used_columns(self.base_, self._names)
        how: dict[str, Any] = {"spread": spread, "search": search, "asked": () if chooses else asked}
        self._fit_stage(exact, scores, training, used, starts=starts, on_progress=on_progress, **how)
        free = not self._keep_to(asked, scores, training) and chooses
        if self.choice_ is not None:
            self._explain_choice()
        if asked:
            self.demands_ = outcome_of(
                asked, self._merged(scores, training.features, training.lists)[0], exact._price, free=free
            )
        if bound := self._weight_constraints(of_base=False):
            refuse_violated(self, bound, "exact: the ranker of two stages", _LARGER_TOP)
        return self

    def _keep_to(self, asked: Sequence[Asked], scores: FloatArray, training: LabelledRows) -> bool:
        """Keep the order of the base where it meets the demands and the chosen correction does not; return whether."""
        if not asked:
            return False
        merged, _ = self._merged(scores, training.features, training.lists)
        unmet = [one for one in asked if not one.met(merged)]
        if not unmet:
            return False
        if missed := [f"{one.text} (by {one.value(scores):.4g})" for one in asked if not one.met(scores)]:
            told = f"the base order does not meet {'; '.join(missed)}, and {self.note_}"
            raise ValueError(f"demands: {told}. Rerank more rows (a larger top_k)")
        self.exact_.coef_ = None
        told = "; ".join(one.text for one in unmet)
        self.exact_.note_ = f"the correction does not meet {told}, and the base order does: the base ranking is kept"
        self.choice_ = None if self.choice_ is None else self.choice_.of_base()
        return True

    def _weight_constraints(self, *, of_base: bool = True) -> WeightConstraints | None:
        """Return the constraints that bind both stages; None without any, or `of_base` where the base orders no row."""
        exact = self._exact_stage()
        exact._take_names(self)
        on_columns = exact._weight_constraints()
        alone = of_base and self.top_k is None and not self.choose and not self.base_score
        return on_columns if on_columns and not alone else None

    def _check_constraints_of_base(self) -> None:
        if (on_columns := self._weight_constraints()) is None:
            return
        if self._exact_stage().integer is not None:  # rows bind points in units of the exact stage, not fitted yet
            on_columns = dataclasses.replace(on_columns, rows=on_columns.rows[:0])
        refuse_violated(self.base_, on_columns, f"base: {self._first_name}", _OTHER_BASE, within=self)
        if isinstance(self.base_, ScoreColumn) and on_columns.required and not (self.choose or self.base_score):
            told = "the exact stage, which replaces the base score at the top, cannot use its column"
            raise ValueError(f"required: {told}: correct the base (base_score=True), or drop the constraint")

    def _put_under_constraints(self, base: Ranker, training: LabelledRows) -> None:
        """Give a base, not yet fitted, the constraints of the exact stage, if it takes any and has none of its own.

        Others are fitted as they are, and checked afterwards; one that never satisfies a constraint is refused.
        """
        if (on_columns := self._weight_constraints()) is None:
            return
        if told := why_refused(base, on_columns, self._names):
            kind = base._class_name
            if isinstance(base, SurrogateRanker):
                kind = str(base.loss) if base.scorer == "linear" else f"the {base.scorer} network of {base.loss}"
            raise ValueError(f"base: {kind} {told}{_OTHER_BASE}")
        if isinstance(base, Constrained) and not base._is_constrained:
            if self._exact_stage().integer is not None and len(on_columns.rows):  # they bind points for each unit
                units = TopLists.of(doubles(training.features), training.lists, round_units=True).scale
                on_columns = dataclasses.replace(on_columns, rows=on_columns.rows * units)
            base.set_params(**on_columns.parameters)

    def _given_base(self, X: ArrayLike, features: Features) -> Ranker:
        """Return the base, which is fitted already, checked to take the columns of X where they go by position."""
        if isinstance(self.base, str):
            raise ValueError(f"base_is_fitted needs a ranker object as base, got base={self.base!r}")
        own = isinstance(self.base, Ranker)
        base = self.base if own else EstimatorRanker.of(self.base, features, self._names)
        check_is_fitted(base)
        if (base._names is None or self._names is None) and isinstance(self.base, BaseEstimator):
            validate_data(self.base, X, reset=False, skip_check_array=True)
        return base

    def _checked_stage(self) -> ExactRanker:
        """Check all parameters; return the exact stage, not yet fitted."""
        if self.top_k is not None:
            check_whole("top_k", self.top_k, 2, " or None for the full list")
        for name in ("choose", "base_score"):
            check_flag(name, getattr(self, name))
        if self.spread is not None:
            check_number("spread", self.spread, above=0.0)
            if self.choose or not self.base_score:
                raise ValueError(f"spread needs base_score=True and choose=False, got spread={self.spread!r}")
        exact = self._exact_stage()
        exact._check_parameters()
        statistic, off = RankStatistic.parse(exact.statistic), ": set choose=False" if self.choose else ""
        if (self.choose or self.spread is not None) and exact.recentre is not None:
            raise ValueError(
                f"exact: recentre must be None where weights are central ones{off}, got {exact.recentre!r}"
            )
        if exact.integer is not None and (self.choose or self.base_score):
            raise ValueError(
                "exact: integer goes with choose=False and base_score=False only, for points replace the base score: "
                f"got integer={exact.integer!r}"
            )
        if self.choose and statistic.length is not None:
            rule = f"must be one for lists of any length, which inner splits have{off}"
            raise ValueError(f"exact: statistic {rule}, got {exact.statistic}")
        if self.top_k is not None and statistic.is_constant(self.top_k):
            raise ValueError(
                f"exact: statistic must have a cutoff below top_k = {self.top_k}, for all of that list are among the "
                f"first rows of {exact.statistic}: rerank a longer list"
            )
        return exact

    def _fit_stage(
        self,
        exact: ExactRanker,
        scores: FloatArray,
        training: LabelledRows,
        used: NDArray[np.bool_] | None,
        *,
        asked: Sequence[Asked] = (),
        **options: Any,  # noqa: ANN401 (options of any type)
    ) -> None:
        """Cut the lists by the base scores of their rows and fit the exact stage to the tops under demands."""
        features, lists = training.features, training.lists
        labels = exact._weighted_labels(training)
        cuts = cut(scores, lists, self.top_k)
        self.threshold_: float | None = float(cuts[0]) if lists is None else None
        top = scores >= cuts
        self.exact_ = exact
        exact._take_names(self)
        columns = doubles(features[top])
        columns = self.base_.others(columns, self._names) if isinstance(self.base_, ScoreColumn) else columns
        if self.choose or self.base_score:
            columns = np.column_stack([scores[top], columns])
        top_labels, top_lists = labels[top], None if lists is None else lists[top]
        on_top = [one.of_top(scores, top) for one in asked]
        settled = any(one.demand is None and not one.met for one in on_top)
        if settled and (needed := least_top(asked, scores, lists)) is not None:
            each = "" if lists is None else " of each query"
            refuse_settled(on_top, f"Rerank more rows (top_k): the first {needed}{each}, or better twice as many")
        tops = TopLists.of(columns, top_lists, round_units=exact.integer is not None)
        bound, taken = self._weight_constraints(), 0
        if used is not None and bound is not None and bound.max_nonzeros is not None:
            taken = int(isinstance(self.base_, ScoreColumn))
            unused = ~used if taken == 0 else np.full(len(used), bound.max_nonzeros == 1)
            tops = tops.without((np.flatnonzero(unused) + (self.choose or self.base_score)).tolist())
        exact._find(tops, top_labels, top_lists, taken=taken, asked=on_top, **options)
        if exact.coef_ is None:
            what, each = (f"the top {len(top_labels)}", "") if lists is None else ("the tops of the queries", " each")
            why = f"{what} do not differ in any feature{each}"
            if taken == exact.max_nonzeros:
                why = "max_nonzeros leaves the exact stage no column"
            elif exact.solution_ is not None:
                why = "no weights are known to satisfy the side constraints"
            elif labels_agree(top_labels, top_lists):
                why = f"{what} hold a single {'class' if lists is None else 'label each'}"
            exact.note_ = f"{why}: the base ranking is kept"

    def _out_of_fold(
        self, scores: FloatArray, training: LabelledRows, seed: int, folds: Sequence[Fold] | None = None
    ) -> FloatArray:
        """Return base scores of the training rows by clones that have not seen them, on the scale of the base."""
        if training.known is not None:
            return training.known
        if not self._learns_base or not (folds := folds_of(training, seed, 2) if folds is None else folds):
            return scores
        total, times = np.zeros((2, len(scores)))
        for fold in folds:
            others = self._fit_part(training, fold.train, seed)
            total[fold.held] += others.on_the_scale_of(scores)[fold.held]
            times[fold.held] += 1
        return np.where(times > 0, total / np.maximum(times, 1), np.nan)

    @property
    def _known_out_of_fold(self) -> FloatArray | None:
        """The scores of the training rows by fits that have not seen them, (n,), of a base that has kept them."""
        base = self.base_
        known = base.out_of_fold_ if isinstance(base, AutoRanker) else None
        return None if known is None else known.mean(axis=0)

    def _fit_part(self, training: LabelledRows, seen: IntArray, seed: int) -> PartScores:
        if training.known is not None:
            used = used_columns(self.base_, self._names)
            return PartScores.of(training.known, seen[~np.isnan(training.known[seen])], used)
        part = training.take(seen)
        base = self._fit_base(part, part.lists, seed) if self._learns_base else self.base_
        scores = base._scores_among(training.features, self._names, training.lists)
        return PartScores.of(scores, seen, used_columns(base, self._names))

    def _compare(
        self,
        training: LabelledRows,
        seed: int,
        results: MutableMapping[str, Any],
        on_choice: Callable[[int, int], None] | None,
    ) -> Choice:
        """Compare the base and corrections of several spreads on inner splits, see `ltr.rankers.choice`."""
        folds = folds_of(training, seed * 1_000)
        if not folds:
            moments = "two moments at least, the first of them with two different labels in a list,"
            fewest = f"at least {training.fewest} to split," if training.times is None else moments
            raise ValueError(f"choose needs {fewest} use choose=False")
        # before the first block of times that is held out no base score is known
        known_before = training.times is None or len(folds) == 1 or not self._learns_base
        splits = folds if known_before else folds[1:]
        missing = [split for split in splits if split.name not in results]
        done = len(splits) - len(missing)

        @computed_once
        def without(some: tuple[Fold, ...]) -> PartScores:
            common = functools.partial(np.intersect1d, assume_unique=True)
            return self._fit_part(training, functools.reduce(common, [fold.train for fold in some]), seed)

        def ranked(split: Fold) -> tuple[str, list[list[float]]]:
            others = [fold for fold in folds if fold.repeat == split.repeat and fold.name != split.name]
            return split.name, rank_held_out(self, training, split, others, without, seed)

        threads = getattr(self._exact_stage().method, "threads", None) or available_threads()
        # estimators of other libraries would each take all processors
        own = isinstance(self.base_, Ranker) and not isinstance(self.base_, EstimatorRanker)
        alone = None if own else functools.partial(threadpool_limits, 1, "openmp")
        for name, places_of_split in side_by_side(ranked, missing, threads, alone):
            results[name] = places_of_split
            done += 1
            if on_choice is not None:
                on_choice(done, len(splits))
        measure, linear = self._measure(), self._weights_of_base is not None
        gains, deviations = compare(results, splits, [BASE, *CORRECTIONS], training, measure, seed)
        return Choice.by_rule(gains, deviations, str(measure[0]), linear=linear)

    def _explain_choice(self) -> None:
        """Complete the choice by what was found on the list itself; leave the base's order alone where that is best."""
        exact, choice = self.exact_, self.choice_
        assert choice is not None
        gain, what = None, choice.chosen
        if exact.problem_ is not None and exact.solution_ is not None and math.isfinite(exact.solution_.value):
            start = exact.warm_starts_[0]  # the base's own order
            if exact.problem_.feasible(start):
                gain = exact.solution_.value - exact.problem_.evaluate(start)
        if choice.reranks and exact.coef_ is not None:
            used = int(np.count_nonzero(exact.coef_))
            top = "full list" if self.top_k is None else f"top {self.top_k}"
            what = f"base + {used} feature{'s' * (used != 1)}, {choice.chosen}, on the {top}"
        elif choice.reranks:  # on all rows together there is nothing to order
            what, choice = BASE, choice.of_base()
        elif exact.coef_ is not None:
            exact.coef_ = None
            exact.note_ = str(dataclasses.replace(choice, list_gain=gain))
        self.choice_ = dataclasses.replace(choice, list_gain=gain, what=what)

    coef_ = property(operator.attrgetter("exact_.coef_"))
    solution_ = property(operator.attrgetter("exact_.solution_"))
    problem_ = property(operator.attrgetter("exact_.problem_"))
    note_ = property(operator.attrgetter("exact_.note_"))
    base_weight_ = property(operator.attrgetter("exact_.base_weight_"))

    @property
    def linear_weights(self) -> None:
        """None: the score is not linear in the features."""
        check_is_fitted(self)

    def _first_order(self, features: Features, qid: ArrayLike | None) -> tuple[str, FloatArray]:
        return self._first_name, self._first_stage(features, qid)[0]

    @property
    def _first_name(self) -> str:
        return self.base if isinstance(self.base, str) else self.base_._class_name

    @property
    def _learns_base(self) -> bool:
        """Whether the base is fitted to the rows; a column of scores, trees and an object without a fit are not."""
        return self.base_._LEARNS

    @property
    def _weights_of_base(self) -> FloatArray | None:
        """The weights of a linear base, (d,), to start the exact stage from; None where it has none."""
        own = self.base_.linear_weights
        return None if own is None else self.base_._among(own, self._names)

    def reranked(self, X: ArrayLike, qid: Qid = ...) -> NDArray[np.bool_]:
        """Return which rows are at or above the threshold (of their query), (n,): the exact stage orders them."""
        qid = self._lists_for("reranked", qid)
        scores, queries = self._first_stage(self._features(X), qid)
        return scores >= self._cuts(scores, queries)

    def recentred(self, norm: NormName = "l2") -> TwoStageRanker:
        """Return this ranker with its weights moved to the largest margin, see `ExactRanker.recentred`."""
        if not hasattr(self, "exact_"):
            raise ValueError("recentred needs a fitted ranker: call fit first")
        exact = self.exact_.recentred(norm)
        moved, stage = TwoStageRanker(), ExactRanker(**exact.get_params(deep=False))
        moved.__dict__.update({**vars(self), "exact": stage, "exact_": exact, "calibration_": None})
        return moved

    def to_torch(self) -> nn.Module:
        """Return both stages as one torch module, see `Ranker.to_torch`; a base without a module is a TypeError."""
        check_is_fitted(self)
        base, columns, exact = self._form_of_base().to_torch(), self.base_._places(self._names), self.exact_
        if self.coef_ is None:  # no row is at the top
            return TwoStageScorer(base, nn.Identity(), columns, 0.0, 0.0, math.inf, None).eval()
        weight = exact.base_weight_, exact.base_center_
        return TwoStageScorer(base, exact.to_torch(), columns, *weight, self._least(_ROUNDING), self.top_k).eval()

    def _least(self, rounding: float) -> float | None:
        """Return the threshold, less a relative error of base scores; None where there is one for each list."""
        cut = self.threshold_
        return cut if cut is None or math.isinf(cut) else cut - rounding * abs(cut)

    def get_metadata_routing(self) -> MetadataRequest | MetadataRouter:
        """Return who takes a `qid`: this estimator, and in `fit` its base."""
        if not _routes(self.base):
            return super().get_metadata_routing()
        fitting = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add_self_request(self).add(base=self.base, method_mapping=fitting)

    def _exact_stage(self) -> ExactRanker:
        exact = self.exact
        if isinstance(exact, str | RankStatistic):
            return ExactRanker(exact)
        if not isinstance(exact, ExactRanker):
            raise ValueError(f"exact must be a rank statistic, its name or an ExactRanker, got {exact!r}")
        return type(exact)(**exact.get_params(deep=False))

    def _measure(self) -> tuple[RankStatistic, GainName, bool]:
        return self._exact_stage()._measure()

    def _fit_base(self, training: LabelledRows, qid: ArrayLike | None, seed: int) -> Ranker:
        """Return the base ranker, fitted; `qid` is what the caller gave for the lists, which routing asks for."""
        if isinstance(self.base, str) and self.base == "auto":
            statistic, gain, normalize = self._measure()
            base: Any = AutoRanker(seed=seed, statistic=statistic, gain=gain, normalize=normalize)
        elif isinstance(self.base, str):
            base = make_ranker(self.base, seed=seed)
        elif isinstance(self.base, type) or not hasattr(self.base, "fit"):
            raise ValueError(f"base must be a name or an estimator, got {self.base!r}")
        else:
            base = clone(self.base, safe=False)  # a copy of an object that is no estimator of scikit-learn
        if not isinstance(base, Ranker):
            base = EstimatorRanker(base)
            if _routes(self.base) and sklearn.get_config()["enable_metadata_routing"]:
                base._requested = "qid" in process_routing(self, "fit", qid=qid).base.fit
        self._put_under_constraints(base, training)
        if not isinstance(base, ScoreColumn):  # it learns nothing, and knows columns by their names
            fit_to(base, framed(training.features, self._names), training)
        base._take_names(self)
        return base

    def _first_stage(self, features: Features, qid: ArrayLike | None) -> tuple[FloatArray, IntArray | None]:
        """Return base scores, and the number of the query of each row where queries have their own cuts."""
        # after a fit on one list the scores hold for any list
        queries = None if qid is None or self.threshold_ is not None else checked_queries(qid, len(features))[0]
        one = np.zeros(len(features), dtype=np.int64) if self._by_list else None  # which is meant, see `_lists_for`
        return self.base_._scores_among(features, self._names, one if queries is None else queries), queries

    def _cuts(self, scores: FloatArray, queries: IntArray | None) -> FloatArray:
        """Return the base score from which each row is reranked."""
        return cut(scores, queries, self.top_k) if self.threshold_ is None else np.full(len(scores), self.threshold_)

    def _scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        return self._placed(features, lists)[0]

    def _lists_of_scores(self, method: str, qid: Qid) -> ArrayLike | None:
        return self._lists_for(method, qid)

    def training_scores(self, X: ArrayLike, qid: Qid = ...) -> FloatArray:
        """Return the scores of the rows of the fit, in its order, by base scores out of fold if the base kept them."""
        qid, known = self._lists_for("training_scores", qid), self._known_out_of_fold
        if known is None:
            return self.decision_function(X, qid)
        features = self._features(X)
        queries = None if qid is None else checked_queries(qid, len(features))[0]
        return self._merged(known, features, queries)[0]

    def _merged(self, scores: FloatArray, features: Features, queries: IntArray | None) -> _Placed:
        """Return scores that order the rows of the tops of base scores by the exact stage, and which rows these are."""
        if self.coef_ is None:
            return scores, np.zeros(len(scores), dtype=np.bool_)
        cuts = self._cuts(scores, queries)
        exact = self.exact_._scores_at(features, scores, scores >= cuts)
        return self._lifted(scores, cuts, exact, queries), scores >= cuts

    def _lifted(self, scores: FloatArray, cuts: FloatArray, exact: FloatArray, queries: IntArray | None) -> FloatArray:
        """Return these base scores with those of the rows at the top replaced by higher ones, in the exact order."""
        top = scores >= cuts
        if self.threshold_ is None:
            exact = exact - _means_of_tops(exact, top, queries)
        lift = np.where(np.isneginf(cuts), 0.0, cuts)
        above = np.where(exact >= 0, 2.0 + exact, 1.0 + 1.0 / (1.0 - np.minimum(exact, 0.0)))
        return np.where(top, lift + above, scores)

    def _placed(self, features: Features, qid: ArrayLike | None) -> _Placed:
        scores, queries = self._first_stage(features, qid)
        return self._merged(scores, features, queries)

    _held_out_scores = held_out_scores

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        return self._placed_in(graph, columns)[0]

    def _placed_in(self, graph: OnnxGraph, columns: str) -> tuple[str, str]:
        form, places = self._form_of_base(), self.base_._places(self._names)
        own = columns if places is None else graph.op("Gather", columns, graph.constant(places), axis=0)
        if self.coef_ is not None:
            graph.network = np.float64  # a row at the cut must stand on the side on which `predict` has it
        scores = form._scores_in(graph, own)
        if self.coef_ is None:
            return scores, graph.op("Less", scores, scores)
        summed_alike = not isinstance(form, SurrogateRanker) or form.coef_ is not None
        least = self._least(0.0 if summed_alike else _ROUNDING)
        cuts = graph.cut(scores, self.top_k) if least is None else graph.constant(least)
        top = graph.op("GreaterOrEqual", scores, cuts)
        exact = self.exact_._scores_in(graph, columns, scores)
        if self.threshold_ is None:
            exact = graph.op("Sub", exact, graph.mean_by_list(exact, top))
        return lifted(graph, scores, cuts, exact, top), top

    def _explained(
        self, values: pd.DataFrame, rows: pd.DataFrame
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame | None, str]:
        import pandas as pd

        features, exact = np.array(values), self.exact_
        queries = np.unique(rows["query"], return_inverse=True)[1] if "query" in rows else None
        scores = self._first_stage(features, queries)[0]
        seen, reranked = values.assign(**{BASE_SCORE: scores}), (rows["stage"] == "reranked").to_numpy()
        base, note = None, ""
        parts = self.base_._parts(doubles(self.base_._own_columns(features, self._names)))
        if parts is not None:
            base = frame = summed(values, self.base_._among(parts, self._names), scores)
        else:
            known = f"that of a {self.base_._class_name} is not known to be a sum over columns"
            note = f"the base score is not decomposed: {known}"
            frame = pd.DataFrame({BASE_SCORE: scores, TOTAL: scores}, index=values.index)
            frame = frame.reindex(columns=[*values.columns, BASE_SCORE, TOTAL])
        if reranked.any():
            own = (features - exact.center_) * exact.coef_
            if corrected := exact.base_weight_ > 0:
                own = np.column_stack([own, exact.base_weight_ * (scores - exact.base_center_)])
            top = summed(seen if corrected else values, own, exact._scores(features, scores))
            every = [*values.columns, *(name for name in RESERVED if name in frame or name in top)]
            both = [each.reindex(columns=every).to_numpy() for each in (top, frame)]
            frame = pd.DataFrame(np.where(reranked[:, None], *both), columns=every, index=values.index)
        return frame, seen, base, note

    def _form_of_base(self) -> Ranker:
        try:
            return self.base_._saved_form()
        except TypeError as error:
            raise TypeError(f"base: {error}") from None

    def _fitted_state(self) -> dict[str, Any]:
        self._form_of_base()  # a base that has none is refused as the base
        choice = None if self.choice_ is None else self.choice_.to_dict()
        return {**super()._fitted_state(), "choice_": choice}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        super()._restore(fitted)
        if isinstance(self.base_, EstimatorRanker) and self.base_.estimator is None:
            self.base = self.base_  # the estimator of another library is not in the file
            self.base_._LEARNS = False
        self.choice_ = None if fitted["choice_"] is None else Choice.from_dict(fitted["choice_"])
        self.demands_, self.list_scores_ = None, None


def least_top(asked: Sequence[Asked], scores: FloatArray, lists: IntArray | None) -> int | None:
    """Return the least K for which some order of the first K rows meets each of the demands; None where none does."""

    def enough(top_k: int) -> bool:
        top = scores >= cut(scores, lists, top_k)
        return all(one.demand is not None or one.met for one in (each.of_top(scores, top) for each in asked))

    longest = len(scores) if lists is None else int(np.bincount(lists).max())
    sizes = range(2, longest + 1)
    found = bisect.bisect_left(sizes, True, key=enough)
    return sizes[found] if found < len(sizes) else None


def _routes(base: Estimator) -> bool:
    return hasattr(base, "get_metadata_routing")


def _means_of_tops(values: FloatArray, top: NDArray[np.bool_], queries: IntArray | None) -> FloatArray | float:
    """Return, for each row, the mean over the top of its query; every query has one."""
    if queries is None:
        return float(values[top].mean()) if top.any() else 0.0
    totals = np.bincount(queries, weights=values * top)
    return (totals / np.bincount(queries, weights=top))[queries]
