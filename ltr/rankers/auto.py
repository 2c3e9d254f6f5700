r"""The best list that several methods can make together: each of them, and a blend of all, compared out of fold.

*Out of fold.* The rows are divided into parts up to three times (`folds_of`), and each part gets its scores from fits
of every method to the other parts. The blend, the comparison, the chances and the exact correction learn from them.

*One scale.* Methods that give log odds keep them. A share p of trees that vote for a hit becomes the log odds of
``(T p + 1/2) / (T + 1)``, T = `_TREES`. Other scores are shifted and scaled so that those of the rows of the fit have
mean 0 and standard deviation 1.

*The blend.* The score of a row is ``b + sum over methods m of w_m s_m``, s_m its scores on that scale, ``w_m >= 0``.
The learnt weights minimise

    sum over rows i of v_i log(1 + exp(-t_i score_i)) + 1/2 sum over methods m of w_m^2,      t_i = +-1

over the out-of-fold scores, v_i the weights of the rows. For graded labels, and for lists by query, the loss is the
RankNet loss times the sum of the weights of the rows; weights of rows weigh lists and their rows as in `ltr.lists`.
Where hits are few, learnt weights are mostly chance, and equal weights do better on new rows. So for labels 0 and 1 in
one list the score is

    b + a ((1 - q) L + q E),      q = 50 / (50 + rows of the rarer label),

L the sum with the learnt weights, E that of all methods whose scores are larger for hits, but today's, with equal
standard deviations; both sums are divided by their own standard deviation, and a and b minimise the same loss. Weights
that maximise the rank statistic itself do no better on new rows, though they can be found and proven
(`docs/answer.md`).

*The comparison* is that of the statistics of out-of-fold lists (`ltr.rankers.choice`), the weights of the blend for a
part coming from the other parts. *The rule.* Of the methods that do better than the blend by at least two standard
deviations of the difference, take the simplest, which is the one listed first; if there is none, take the blend.
`simplicity` moves that bar: with 1 a simpler method may do worse by one standard deviation, with ``inf`` the simplest
method is always taken.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from ltr.checks import as_float, doubles
from ltr.data.dataset import Features, checked_queries, checked_weights
from ltr.estimator_names import Estimator
from ltr.losses import RankNetLoss
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored, all_or_nothing, fit_to
from ltr.rankers.baselines import LogisticRegressionRanker, ScoreColumn
from ltr.rankers.calibration import fit_calibration_of_repeats
from ltr.rankers.choice import Fold, compare, folds_of, labels_in_lists, mean_of_lists, places, side_by_side
from ltr.rankers.constrained import check_possible
from ltr.rankers.constraint_checks import refuse_violated, why_refused
from ltr.rankers.estimators import EstimatorRanker, make_ranker, on_few_columns
from ltr.rankers.foreign import last_step
from ltr.rankers.inputs import FloatArray, IntArray, LabelledRows, framed, weights_for_losses
from ltr.rankers.surrogate import SurrogateRanker
from ltr.ranks import GainName
from ltr.statistics import RankStatistic
from ltr.threads import available_threads
from ltr.weight_constraints import Constrained, WeightConstraints

__all__ = ["BLEND", "TODAY", "AutoRanker", "Comparison"]

BLEND, TODAY = "blend", "today"
"""Names of the blend, and of the scores that are in use today."""

_TREES, _REPEATS = 300, 3
_ROWS_FOR_A_NETWORK, _LISTS_FOR_A_NETWORK = 2_000, 100
_MOST_ROWS, _MOST_IN_LISTS = 20_000, 12_000  # that a fit out of fold learns from; in lists networks take their time
_RIDGE = 1.0
_EQUAL = 50.0  # rows of the rarer label for which learnt and equal weights of a blend count alike
_PRICE_OF_NETWORK = 3.0  # of its squared weights, against the sum over rows of the loss


@dataclass(frozen=True)
class Comparison:
    """The comparison of methods out of fold, by name.

    Attributes:
        chosen: the method to deploy.
        values: mean of the statistic of each method's out-of-fold lists; the blend is the last.
        gains, deviations: the difference to the blend, and its standard deviation under resampling.
        weights: weight of each method in the blend.
        rows: number of rows that the methods learned from out of fold, if not from all of the other parts.
        similar: number of groups of similar rows that were kept together without being asked for, if any were.
    """

    chosen: str
    values: Mapping[str, float]
    gains: Mapping[str, float]
    deviations: Mapping[str, float]
    weights: Mapping[str, float]
    statistic: str
    rows: int | None = None
    similar: int | None = None

    @property
    def near(self) -> tuple[str, ...]:
        """The other methods whose statistic is within one standard deviation of that of the chosen one."""
        own, spread = self.gains[self.chosen], self.deviations[self.chosen]
        others = (name for name in self.gains if name != self.chosen)
        return tuple(name for name in others if own - self.gains[name] <= max(self.deviations[name], spread))

    @property
    def members(self) -> list[str]:
        """The methods of the blend, from the largest weight to the smallest."""
        return [name for name, weight in sorted(self.weights.items(), key=lambda pair: -pair[1]) if weight > 0]

    def __str__(self) -> str:
        return self.said({})

    def said(self, words: Mapping[str, str], most: int = 100) -> str:
        """Return which method is taken, and what does as well, with other `words` for names; at most so many names."""

        def listed(names: Sequence[str]) -> str:
            told = [words.get(name, name) for name in names]
            if len(told) > most:
                told = [*told[: most - 1], f"{len(told) - most + 1} other methods"]
            return " and ".join(filter(None, (", ".join(told[:-1]), told[-1])))

        members = self.members if self.chosen == BLEND else [self.chosen]
        blended = len(members) > 1
        near = [name for name in self.near if name != BLEND and (blended or name not in members)]
        said = f"a blend of {listed(members)}" if blended else listed(members)
        if not near:
            return said
        alone = " alone" if set(near) & set(members) else ""
        return f"{said}; {listed(near)}{alone} {'is' if len(near) == 1 else 'are'} within noise"


@dataclass(eq=False, repr=False)
class AutoRanker(Constrained, Scored, Ranker):
    """Rank by whichever of several methods, or blend of them, ranks rows best that it has not seen.

    Args:
        methods: ``"auto"``, or a list of names as `make_ranker` takes them, and of estimators, from the simplest to the
            least simple. ``"auto"`` takes, for labels 0 and 1 in one list: ``logistic``, ``ranknet``, ``rankboost``,
            ``boosting``, ``forest`` (extremely randomised trees) and from 2,000 rows ``network``; for graded labels and
            lists by query ``ranknet``, ``boosting`` (of LightGBM with the RankNet loss where it is installed),
            ``forest`` and from 100 lists a ``network``.
        today: column of X, by name or index, with the scores by which rows are ranked today; another method.
        simplicity: by how many standard deviations of the difference a simpler method may do worse than the blend and
            still be taken; the default -2 asks it to do better by two, ``-inf`` always takes the blend.
        seed: seed of the parts and of methods that draw at random.
        signs, required, forbidden, constraints, max_nonzeros: as those of `ExactRanker`. ``"auto"`` leaves out methods
            that cannot promise them. Under `max_nonzeros` each part takes the columns of its logistic regression for
            all methods, so that a blend uses no more.
        statistic, gain, normalize: what methods are compared by, and what `score` reports, see `Ranker`.

    Attributes:
        comparison_: the `Comparison` of the methods.
        rankers_: the fitted methods by name; after `load` those that are deployed.
        weights_, intercept_: weight of each deployed method by name, and the b of the score.
        out_of_fold_, members_out_of_fold_: scores of the training rows by the deployed method or blend, (repeats, n),
            and by all methods, (repeats, n, methods), by fits that have not seen the row; None after `load`.

    Examples:
        >>> from sklearn.datasets import load_breast_cancer
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> print(AutoRanker(["logistic", "boosting"]).fit(X[::2, :5], 1 - y[::2]).comparison_)
        a blend of logistic and boosting; logistic alone is within noise
    """

    _BY_LIST = True
    _TAKES_SINGLES = True
    _HOW = (
        "score = intercept + sum over members of weight * s; s is (score of the ranker - center) / scale, or the log "
        "odds of (300 * share + 0.5) / 301 where link is share"
    )

    methods: str | Sequence[Any] = "auto"
    _: KW_ONLY
    today: int | str | None = None
    simplicity: float = -2.0
    seed: int = 0

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
        calibration_weight: ArrayLike | None = None,
        on_progress: Callable[[int, int, str], None] | None = None,
    ) -> AutoRanker:
        """Fit all methods out of fold and on all rows, blend them and choose; arguments are those of `Ranker`.

        Without a `group`, rows that are much more similar than rows otherwise are count as one
        (`ltr.data.similar_rows`). With a `time`, the first rows are not ranked out of fold. The chances have weights of
        their own, `calibration_weight`, (n,), >= 0, where others only make methods look at hits more. `on_progress` is
        called with the number of fits that are done, that of all, and what is being fitted. Raises ValueError for too
        few rows to hold some out, and constraints that no method or no weights satisfy.
        """
        measure = self._measure()
        if math.isnan(simplicity := as_float(self.simplicity)):
            raise ValueError(f"simplicity must be a number, got {self.simplicity!r:.80}")
        rows, similar = self._weighted_data(X, y, qid, sample_weight, group, time).with_similar()
        features, labels, lists = rows.features, rows.labels, rows.lists
        constraints = self._weight_constraints()
        methods = self._methods(rows, constraints)
        if constraints:
            check_possible(constraints, doubles(features), self._names)
        splits = folds_of(rows, self.seed, _REPEATS)
        if not splits:
            raise ValueError(f"methods are compared on rows held out, which needs at least {rows.fewest} to split")
        rng = np.random.default_rng(self.seed)
        seen = [_sample(split.train, lists, rng) for split in splits]
        bound = self._on_few_columns(rows, seen, methods, constraints)
        names = list(methods)
        jobs = [(name, at) for name in names[::-1] for at in (-1, *range(len(splits)))]
        members: dict[str, _Member] = {}
        held = np.full((1 + splits[-1].repeat, len(labels), len(names)), np.nan)

        def work(job: tuple[str, int]) -> None:
            name, at = job
            part = rows if at < 0 else rows.take(seen[at])
            member = self._member(methods[name], part, bound[at + 1])
            if at < 0:
                members[name] = member
                return
            here, of_lists = splits[at].held, None if lists is None else lists[splits[at].held]
            held[splits[at].repeat, here, names.index(name)] = member.scores(features[here], of_lists)

        for done, _ in enumerate(_side_by_side(work, jobs), start=1):
            if on_progress is not None:
                on_progress(done, len(jobs), jobs[done - 1][0])
        rows = replace(rows, features=features[:, :0])  # parts of which are taken for their labels from here on
        self._members = {name: members[name] for name in names}
        found = self._blend(rows, names, splits, held, measure, simplicity)
        fewer = any(len(some) < len(split.train) for some, split in zip(seen, splits, strict=True))
        self.comparison_: Comparison = replace(found, rows=max(map(len, seen)) if fewer else None, similar=similar)
        if constraints:
            refuse_violated(self, constraints, f"the {found.chosen}")
        kept = np.ones(len(labels), bool) if sample_weight is None else np.asarray(sample_weight) > 0
        weights = rows.weights
        if calibration_weight is not None:
            weights = checked_weights(calibration_weight, len(kept), "calibration_weight")[kept]
        ranked = replace(rows, weights=weights).take(known := ~np.isnan(held[0, :, 0]))
        if (ranked.labels > 0).any() and not (ranked.labels > 0).all():
            assert self.out_of_fold_ is not None
            scores = self.out_of_fold_[:, known]
            self.calibration_ = fit_calibration_of_repeats(scores, ranked.labels, ranked.weights, ranked.groups)
        if not kept.all():
            self._score_left_out(self._features(X), qid, kept)
        return self

    def _blend(
        self,
        rows: LabelledRows,
        names: list[str],
        splits: Sequence[Fold],
        held: FloatArray,
        measure: tuple[RankStatistic, GainName, bool],
        simplicity: float,
    ) -> Comparison:
        """Weigh, compare and deploy by the rule; `held` are scores out of fold, (repeats, n, methods), else NaN."""
        alike = np.array([name != TODAY for name in names])
        known = np.flatnonzero(~np.isnan(held[0, :, 0]))
        results, crossed = {}, np.full(held.shape[:2], np.nan)
        for split in splits:
            scores, here = held[split.repeat], split.held
            learnt = split.train[~np.isnan(scores[split.train, 0])]
            found, intercept = _weights(scores[learnt], rows.take(learnt), alike)
            crossed[split.repeat, here] = scores[here] @ found + intercept
            lists = None if rows.lists is None else rows.lists[here]
            orders = [crossed[split.repeat, here], *scores[here].T]
            results[split.name] = [places(order, lists).tolist() for order in orders]
        gains, deviations = compare(results, splits, [BLEND, *names], rows, measure, self.seed)
        ranked = rows.take(known)
        weights, intercept = _weights(np.concatenate(held[:, known]), _repeated(ranked, len(held)), alike)
        better = (name for name in names if gains[name] >= -simplicity * deviations[name] and simplicity > -math.inf)
        chosen = next(better, BLEND)
        blend = dict(zip(names, weights.tolist(), strict=True))
        self.members_out_of_fold_: FloatArray | None = held
        self.out_of_fold_: FloatArray | None = crossed
        self.weights_, self.intercept_ = {name: w for name, w in blend.items() if w > 0}, float(intercept)
        if chosen != BLEND or not self.weights_:
            chosen = chosen if chosen != BLEND else max(names, key=lambda name: gains[name])
            self.out_of_fold_ = held[:, :, names.index(chosen)]
            self.weights_, self.intercept_ = {chosen: 1.0}, 0.0
        of_lists = None if ranked.lists is None else ranked.weights
        labels, of_lists = labels_in_lists(ranked.labels, of_lists, ranked.lists, self.gain)
        own = float(
            np.mean([mean_of_lists(each[known], labels, ranked.lists, measure, weights=of_lists) for each in crossed])
        )
        gains, deviations = ({name: of[name] for name in [*names, BLEND]} for of in (gains, deviations))
        values = {name: own + gain for name, gain in gains.items()}
        return Comparison(chosen, values, gains, deviations, blend, str(measure[0]))

    def _member(self, method: Estimator, rows: LabelledRows, constraints: WeightConstraints) -> _Member:
        ranker = clone(method, safe=False)  # of an object that is no estimator of scikit-learn a copy
        if isinstance(ranker, ScoreColumn):
            ranker._take_names(self)
        else:
            if not isinstance(ranker, Ranker):
                ranker = EstimatorRanker(ranker)
            if constraints:
                ranker.set_params(**constraints.parameters)
            with _turn(ranker):
                fit_to(ranker, framed(rows.features, self._names), rows)
        kind = _kind_of_scores(ranker)
        if kind != "ranks":
            return _Member(ranker, kind == "share", 0.0, 1.0)
        own = ranker._form()._all_scores(rows.features, rows.lists)
        return _Member(ranker, False, float(own.mean()), float(own.std()) or 1.0)

    def _score_left_out(self, features: Features, qid: ArrayLike | None, kept: NDArray[np.bool_]) -> None:
        """Add the scores of rows of weight 0, which no fit has seen, to those out of fold."""
        assert self.out_of_fold_ is not None
        assert self.members_out_of_fold_ is not None
        lists = None if qid is None else checked_queries(qid, len(features))[0]
        members = np.stack([member.scores(features, lists) for member in self._members.values()], axis=-1)
        whole = np.tile(self._scores(features, lists), (len(self.out_of_fold_), 1))
        of_members = np.tile(members, (len(whole), 1, 1))
        whole[:, kept], of_members[:, kept] = self.out_of_fold_, self.members_out_of_fold_
        self.out_of_fold_, self.members_out_of_fold_ = whole, of_members

    @property
    def rankers_(self) -> dict[str, Any]:
        """The fitted methods by name."""
        return {name: member.ranker for name, member in self._members.items()}

    @property
    def deployed(self) -> list[Any]:
        """The fitted methods that the score is made of."""
        return [self._members[name].ranker for name in self.weights_]

    def _methods(self, rows: LabelledRows, constraints: WeightConstraints) -> dict[str, Estimator]:
        """Return the methods, not yet fitted, that are asked for and can promise the constraints, by name."""
        found = self._any_methods(rows)
        if not constraints:
            return found
        told = {name: why_refused(one, constraints, self._names, promise=True) for name, one in found.items()}
        refused = {name: why for name, why in told.items() if why}
        # scores in use today may be there to be compared with only
        left_out = set(found) if self.methods == "auto" else {TODAY}
        for name, why in refused.items():
            if name not in left_out or len(refused) == len(found):
                raise ValueError(f"methods: {name} {why}; leave it out, or the constraint")
        return {name: one for name, one in found.items() if name not in refused}

    def _on_few_columns(
        self,
        rows: LabelledRows,
        seen: Sequence[IntArray],
        methods: dict[str, Estimator],
        constraints: WeightConstraints,
    ) -> list[WeightConstraints]:
        """Return the constraints of fits to all rows and to parts of them, under `max_nonzeros` on few columns."""
        if (most := constraints.max_nonzeros) is None:
            return [constraints] * (1 + len(seen))
        columns = {
            name: one.place(self.n_features_in_, self._names)
            for name, one in methods.items()
            if isinstance(one, ScoreColumn)
        }
        taken = sorted({at for name, at in columns.items() if name != TODAY or len(methods) == 1})
        if len(taken) > most:
            raise ValueError(f"methods: at most max_nonzeros = {most} columns may be used, got {len(taken)} of scores")

        def few(at: IntArray | None) -> WeightConstraints:
            part = rows if at is None else rows.take(at)
            return on_few_columns(constraints, part, self._names, taken)

        whole = few(None)
        if TODAY in columns and (at := columns[TODAY]) not in taken:
            if at in whole.forbidden:
                del methods[TODAY]
            else:
                taken = sorted({*taken, at})
        return [whole, *_side_by_side(few, seen)]

    @property
    def given_methods(self) -> list[tuple[str, Any]]:
        """Name and ranker, not yet fitted, of each method that is not left to the fit."""
        rows = LabelledRows(np.empty((1, 0)), np.zeros(1))  # only the kinds of the methods matter
        return [
            (one, _made(one, rows, self.seed)) if isinstance(one, str) else (type(one).__name__, one)
            for one in (() if isinstance(self.methods, str) else self.methods)
        ]

    def _any_methods(self, rows: LabelledRows) -> dict[str, Estimator]:
        """Return the methods that are asked for, whatever is demanded of columns."""
        found: dict[str, Estimator] = {}
        if self.today is not None:
            ScoreColumn(self.today)._take_names(self)  # a column that is not there is refused before anything is fitted
            found[TODAY] = ScoreColumn(self.today)
        if isinstance(self.methods, str) and self.methods != "auto":
            raise ValueError(f'methods must be "auto" or a list of methods, got {self.methods!r}')
        given = _automatic(rows) if self.methods == "auto" else list(self.methods)
        if not given and not found:
            raise ValueError("methods must have at least one method, got an empty list")
        for method in given:
            named = isinstance(method, str)
            if not named and (isinstance(method, type) or not hasattr(method, "fit")):
                raise ValueError(f"methods must be names or estimators, got {method!r:.80}")
            name, at = method if named else type(method).__name__, 2
            while name in found or name == BLEND:
                name, at = f"{name.rsplit(' ', 1)[0]} {at}", at + 1
            found[name] = _made(method, rows, self.seed) if named else method
        return found

    def _scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        total = np.full(len(features), self.intercept_)
        for name, weight in self.weights_.items():
            total += weight * self._members[name].scores(features, lists)
        return total

    def scores_of_members(self, X: ArrayLike, qid: ArrayLike | None = None) -> dict[str, FloatArray]:
        """Return the scores of rows by each of `rankers_` on the common scale, by name."""
        features = self._features(X)
        lists = None if qid is None else checked_queries(qid, len(features))[0]
        return {name: member.scores(features, lists) for name, member in self._members.items()}

    @property
    def linear_weights(self) -> FloatArray | None:
        """The weights on the raw features, (d,), where all deployed methods are linear; None otherwise."""
        total = np.zeros(self.n_features_in_)
        for name, weight in self.weights_.items():
            member = self._members[name]
            own = None if member.share else member.ranker.linear_weights
            if own is None:
                return None
            total += weight * own / member.scale
        return total

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        total = None
        for name, weight in self.weights_.items():
            part = graph.op("Mul", self._members[name].scores_in(graph, columns), graph.constant(weight))
            total = part if total is None else graph.op("Add", total, part)
        assert total is not None
        return graph.op("Add", total, graph.constant(self.intercept_))

    def _fitted_state(self) -> dict[str, Any]:
        members = {name: {**vars(self._members[name])} for name in self.weights_}
        found = {"weights": self.weights_, "intercept": self.intercept_, "members": members}
        return {"comparison": {**vars(self.comparison_)}, **found}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        self.comparison_ = Comparison(**fitted["comparison"])
        self.weights_, self.intercept_ = fitted["weights"], fitted["intercept"]
        self._members = {name: _Member(**member) for name, member in fitted["members"].items()}
        self.out_of_fold_ = self.members_out_of_fold_ = None


@dataclass(frozen=True, eq=False)
class _Member:
    """A fitted method, and the scale on which its scores are blended."""

    ranker: Ranker
    share: bool  # whether its score is a share of trees
    center: float
    scale: float

    def scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        """Return the scores of rows on the common scale, (n,)."""
        with _turn(self.ranker):
            own = self.ranker._form()._all_scores(features, lists)
        if self.share:
            chance = (_TREES * own + 0.5) / (_TREES + 1)
            return np.log(chance / (1 - chance))
        return (own - self.center) / self.scale

    def scores_in(self, graph: OnnxGraph, columns: str) -> str:
        own = self.ranker._saved_form()._scores_in(graph, columns)
        if self.share:
            trees, half, more, one = (graph.constant(value) for value in (float(_TREES), 0.5, _TREES + 1.0, 1.0))
            chance = graph.op("Div", graph.op("Add", graph.op("Mul", own, trees), half), more)
            return graph.op("Log", graph.op("Div", chance, graph.op("Sub", one, chance)))
        return graph.op("Div", graph.op("Sub", own, graph.constant(self.center)), graph.constant(self.scale))


_FORESTS = threading.Lock()


def _turn(method: Ranker) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which one forest of scikit-learn is fitted or scores rows at a time."""
    last, _ = last_step(method.estimator if isinstance(method, EstimatorRanker) else method)
    return _FORESTS if _is_forest(last) else contextlib.nullcontext()


def _is_forest(estimator: Estimator) -> bool:
    return type(estimator).__module__.startswith("sklearn.ensemble._forest")


def _kind_of_scores(ranker: Ranker) -> str:
    """Return what the scores of a fitted method are: ``"log odds"``, a ``"share"``, or just ``"ranks"``."""
    if isinstance(ranker, SurrogateRanker):
        return "log odds" if str(ranker.loss).startswith("logistic") else "ranks"
    if not isinstance(ranker, EstimatorRanker):
        return "log odds" if isinstance(ranker, LogisticRegressionRanker) else "ranks"
    last, _ = last_step(ranker.estimator_)
    if not is_classifier(last):
        return "ranks"
    return "share" if _is_forest(last) else "log odds"


def _automatic(rows: LabelledRows) -> list[str]:
    """Return names of the methods that go with these rows, from the simplest to the least simple."""
    lists = 1 if rows.lists is None else int(rows.lists.max()) + 1
    many = len(rows.labels) >= _ROWS_FOR_A_NETWORK if rows.lists is None else lists >= _LISTS_FOR_A_NETWORK
    names = ["logistic", "ranknet", "rankboost"] if rows.pointwise else ["ranknet"]
    return [*names, "boosting", "forest", *(["network"] if many else [])]


def _made(name: str, rows: LabelledRows, seed: int) -> Any:  # noqa: ANN401 (a ranker, or an estimator)
    from sklearn import ensemble

    n, kind = len(rows.labels), "Classifier" if rows.pointwise else "Regressor"
    if name == "logistic":
        return LogisticRegressionRanker("auto")
    if name == "ranknet":
        return SurrogateRanker(l2=3e-3)
    if name == "forest":
        return getattr(ensemble, f"ExtraTrees{kind}")(
            _TREES if n <= 10_000 else 100,
            min_samples_leaf=3,
            max_features="sqrt",
            n_jobs=available_threads(),
            random_state=seed,
            **({} if n <= _MOST_ROWS else {"bootstrap": True, "max_samples": _MOST_ROWS}),
        )
    if name == "boosting" and rows.lists is not None and importlib.util.find_spec("lightgbm") is not None:
        import lightgbm

        from ltr.gbdt import objective

        return lightgbm.LGBMRanker(
            objective=objective("ranknet"),
            n_estimators=100,
            learning_rate=0.06,
            num_leaves=15,
            min_child_samples=10,
            random_state=seed,
            verbose=-1,
            n_jobs=1,
        )
    if name == "boosting":
        return getattr(ensemble, f"HistGradientBoosting{kind}")(
            learning_rate=0.06,
            max_iter=100,
            max_leaf_nodes=8,
            min_samples_leaf=10,
            l2_regularization=1.0,
            early_stopping=False,
            random_state=seed,
        )
    if name == "network":
        options: dict[str, Any] = {"scorer": "mlp", "patience": 10, "seed": seed}
        if rows.pointwise:  # all rows at once, which for one list is faster than mini-batches, and as good
            options |= {"loss": "logistic", "hidden": (32,), "l2": _PRICE_OF_NETWORK / n, "optimizer": "lbfgs"}
            options |= {"max_steps": 100, "tolerance": 1e-4, "validation": 0.0, "scale": "standardize"}
        return SurrogateRanker(**options)
    return make_ranker(name, seed=seed)


def _sample(train: IntArray, lists: IntArray | None, rng: np.random.Generator) -> IntArray:
    """Return the rows that a fit out of fold learns from: all, or where they are many a sample of rows or of lists."""
    most = _MOST_ROWS if lists is None else _MOST_IN_LISTS
    if len(train) <= most:
        return train
    if lists is None:
        return np.sort(rng.choice(train, most, replace=False))
    members = np.unique(lists[train])
    share = most / len(train)
    kept = rng.choice(members, max(2, round(share * len(members))), replace=False)
    return train[np.isin(lists[train], kept)]


def _side_by_side(work: Callable[[Any], Any], jobs: Sequence[Any]) -> Iterator[Any]:
    """Return the results of jobs in their order, done by as many threads as there are processors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a fit that ends early still ranks rows
        yield from side_by_side(work, jobs, available_threads(), functools.partial(threadpool_limits, 1))


def _repeated(rows: LabelledRows, times: int) -> LabelledRows:
    """Return the rows several times, one after the other, each weighing as much as if it were there once."""
    n, lists = len(rows.labels), rows.lists
    if lists is not None:
        lists = np.concatenate([lists + at * (lists.max() + 1) for at in range(times)])
    weights = np.tile(np.ones(n) if rows.weights is None else rows.weights, times) / times
    return LabelledRows(np.empty((0, 0)), np.tile(rows.labels, times), lists, weights=weights)


def _weights(scores: FloatArray, rows: LabelledRows, alike: NDArray[np.bool_]) -> tuple[FloatArray, float]:
    """Return the weights >= 0 of members with scores (n, m), and the intercept, of their blend."""
    n, m = scores.shape
    if n == 0:  # of the first of the folds that roll forward
        return np.full(m, 1.0 / m), 0.0
    learnt, intercept = _learnt_weights(scores, rows)
    if not rows.pointwise:
        return learnt, intercept
    hits, weights = rows.labels > 0, np.ones(n) if rows.weights is None else rows.weights
    counts, deviations = np.bincount(hits, weights, minlength=2), scores.std(axis=0)
    rise = (weights * (hits - counts[1] / counts.sum())) @ scores
    rising = alike & (rise > 1e-9 * weights.sum() * deviations)  # beyond rounding
    equal = np.divide(1.0, deviations, out=np.zeros(m), where=rising & (deviations > 0))
    share, mean = _EQUAL / (_EQUAL + counts.min()), np.zeros(m)
    for part, of in ((share, equal), (1.0 - share, learnt)):
        if deviation := float((scores @ of).std()):
            mean += part / deviation * of
    (scale,), intercept = _learnt_weights((scores @ mean)[:, None], rows)
    return scale * mean, intercept


def _learnt_weights(scores: FloatArray, rows: LabelledRows) -> tuple[FloatArray, float]:
    """Return the weights >= 0 of members, (m,), and the intercept, that minimise the loss of their blend."""
    n, m = scores.shape
    weights = np.ones(n) if rows.weights is None else rows.weights
    total = float(weights.sum())
    signs = np.where(rows.labels > 0, 1.0, -1.0)
    labels = torch.from_numpy(rows.labels)
    given = weights_for_losses(rows.weights, rows.lists, rows.labels)

    def of_scores(blend: FloatArray) -> tuple[float, FloatArray]:
        if rows.pointwise:
            margins = signs * blend
            return float(weights @ np.logaddexp(0.0, -margins)), -weights * signs * np.exp(-np.logaddexp(0.0, margins))
        leaf = torch.from_numpy(blend).requires_grad_()
        loss = total * RankNetLoss()(leaf, labels, **given)
        loss.backward()
        assert leaf.grad is not None
        return float(loss.detach()), leaf.grad.numpy()

    def objective(point: FloatArray) -> tuple[float, FloatArray]:
        value, slopes = of_scores(scores @ point[:m] + point[m])
        own = np.append(scores.T @ slopes + _RIDGE * point[:m], slopes.sum() if rows.pointwise else 0.0)
        return value + 0.5 * _RIDGE * float(point[:m] @ point[:m]), own

    start = np.append(np.full(m, 1.0 / m), 0.0)
    bounds = [(0.0, None)] * m + [(None, None)]
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}).x
    return found[:m], float(found[m])
