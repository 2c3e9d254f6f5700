"""The exact engine as a ranker: the linear scorer with the largest rank statistic of lists or of their tops.

A list (the rows of a query, or all rows) is cut at the K-th largest of its scores. Its top is every item with at least
that score: more than K items where scores tie there, the whole list where it has no more than K.

The features of the tops are centred and standardised, and columns that do not vary are left out. With queries each
query is centred by itself and the deviation is the pooled one *within* queries: a feature of the query alone does not
vary.

*Whole numbers.* With ``integer`` a column is measured in a round unit, the number 1, 2 or 5 times a power of ten that
is nearest to its deviation, and yes/no columns in 1: "3 points for each 10 years of age" is a rule that a person can
apply, and its whole number is the weight that is proven.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ltr.checks import as_numbers, as_sequence, doubles, one_of, pieces
from ltr.data.dataset import Features, differ_in_lists, labels_agree
from ltr.exact import Demand, Limits, LinearConstraints, Problem, Progress, RerankProblem, Solution, solve
from ltr.exact.central import central_weights
from ltr.exact.largest_margin import NormName, maximise_margin
from ltr.exact.local_search import LocalSearch, search_locally
from ltr.exact.problem import Ties, check_integer, check_price_and_margin
from ltr.exact.solution import Status
from ltr.exact.solve import Solver, check_method
from ltr.exact.state import Ending, SolveState
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.list_demands import GivenDemands, OnTop, read_all_demands
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored, all_or_nothing
from ltr.rankers.demanded import DemandPrice, not_met, outcome_of, refuse_settled, solve_under
from ltr.rankers.inputs import FloatArray, IntArray, LabelledRows, Table, linear_scores
from ltr.rankers.scorers import LinearScorer, Standardize
from ltr.ranks import weighted_labels
from ltr.statistics import RankStatistic
from ltr.weight_constraints import Constrained, WeightConstraints, signed_sum

__all__ = ["ExactRanker", "ReproducibleSearch"]

_LEAST_DEVIATION = 1e-300  # of columns, whose weights are divided by it
_MOST_PAIRS = 100_000  # that all ascents of a local search compare, about
_INNER_RESTARTS = 10  # of the local search where only the features in use are looked for

Search = Literal["proof", "quick", "none"]
"""How far the exact stage searches: to a proof, by a local search alone, or not at all where it can do without."""


@dataclass(frozen=True)
class ReproducibleSearch:
    """The weight-space search on one thread, with a local search of fixed length before it.

    Where the time limit is far, problem and seed alone decide the answer. With ``Limits(time_limit=math.inf,
    node_limit=...)`` that is so for every problem.

    Attributes:
        restarts: most ascents of the local search.
        proof: whether branch and bound follows the local search.
    """

    restarts: int = 100
    proof: bool = True

    def check(self, problem: Problem) -> None:
        """Accept what the local search accepts."""
        LocalSearch().check(problem)

    def run(self, state: SolveState) -> Ending:
        """Search locally, then by branch and bound."""
        restarts = min(self.restarts, _MOST_PAIRS // max(1, state.problem.pair_count))
        search_locally(state, state.remaining / 2, restarts)
        if not self.proof:
            return Ending(Status.HEURISTIC)
        return WeightSpaceSearch(threads=1, local_search=0.0).run(state)


@dataclass(eq=False, repr=False)
class ExactRanker(Constrained, Scored, Ranker):
    """Rank by the linear scorer with the largest true rank statistic of the training lists, and a bound that proves it.

    ``max over w in [-1, 1]^d of  statistic(Z w, y) - C ||w||_0``, Z the standardised features: `ltr.exact.solve` for
    whole lists. Up to about eight features are proven on short lists; beyond that the weights are good and the bound
    stays above them. With several lists the statistic is their sum, with `normalize` the mean of their normalised
    statistics, and for ``"auc"`` the mean of their AUCs.

    Args:
        statistic: the rank statistic to maximise, and that `score` reports: a `RankStatistic` or its name.
        C: price of each non-zero weight, >= 0.
        margin: score difference that counts, on standardised features, > 0.
        ties: ``"resolved"`` or ``"subrank"``, how ties are ranked in `fit`.
        gain, normalize: see `Ranker`; what is maximised has them, too.
        max_nonzeros: most weights that may differ from 0; None for no limit.
        signs: ``"+"`` or ``"-"`` for columns whose weights must not be below, or above, 0; by name where X is a frame,
            else by number.
        required: columns that must be used: their weights on standardised features are at least 0.01 of the largest one
            in size, or not 0 with `integer`. One that does not vary in the lists is an error.
        forbidden: columns whose weights are 0.
        constraints: linear constraints on the weights of the raw columns, or with `integer` on the points: texts such
            as ``"age >= 2*bmi"``, or mappings of columns to the factors of a sum that is at least 0.
        demands: demands on the ranked training lists: texts such as ``"recall@100 >= 0.8"`` (`ltr.list_demands`), whose
            columns are those of X, where it is a frame, or of `beside`; or `Demand` objects with labels of the rows.
        integer: B, from 1 to 100: weights are whole numbers of points from -B to B, of columns in round units.
        method: ``"reproducible"`` (`ReproducibleSearch`), or a method of `ltr.exact.solve` by name or as an object;
            ``"auto"`` uses all processors.
        limits: time, gap, nodes and memory at which the search stops, and its seed; None for ``Limits()``.
        recentre: ``"l2"`` or ``"max"`` moves the weights to the largest margin, by that norm, that wins the same
            comparisons (`ltr.exact.largest_margin`); the objective never falls.

    Attributes:
        coef_, intercept_: weights on the raw features, (d,), and score of a row of zeros.
        units_, points_: with `integer` the unit of each column, and the points for each unit, (d,), else None.
        solution_, problem_: the `Solution`, with weights on the standardised features that vary, and its problem; None
            after `load`, the problem also in copies and pickles, for it holds the training data. With several lists and
            ``"auc"``, its values are mean AUCs plus a constant.
        warm_starts_: the starting weights, on the features of the problem.
        center_: mean of each raw feature over the training rows, (d,).
        base_weight_, base_center_: weight and mean of the base score that a `TwoStageRanker` corrects; else 0.
        demands_: the `DemandOutcome`; None without demands, and after `load`.
        note_: empty, or why other weights than the solver's were chosen.

    Examples:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"age": [30, 40, 50, 60], "bmi": [21.0, 30.0, 27.0, 33.0], "sex": [0, 1, 1, 0]})
        >>> ranker = ExactRanker(integer=3, signs={"age": "+"}, required=["bmi"], forbidden=["sex"])
        >>> ranker.fit(frame, [0, 0, 1, 1]).rule(), ranker.solution_.status.value
        ('3 per 10 age + 1 per 5 bmi', 'optimal')
    """

    _FITTED = ("coef_", "units_", "center_", "note_", "base_weight_", "base_center_")
    _NOT_COPIED = ("problem_", "_lists")
    _HOW = (
        "score = sum over columns j of coef_[j] * (x[j] - center_[j]), in a TwoStageRanker plus base_weight_ * "
        "(base score - base_center_)"
    )

    statistic: RankStatistic | str = "dcg"
    _: KW_ONLY
    C: float = 0.0
    margin: float = 1e-4
    ties: Ties = "resolved"
    demands: Sequence[str | Demand] = ()
    integer: int | None = None
    method: str | Solver = "reproducible"
    limits: Limits | None = None
    recentre: NormName | None = None

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        beside: Table = None,
        warm_starts: Iterable[ArrayLike] = (),
        on_progress: Progress | None = None,
    ) -> ExactRanker:
        """Find the weights; X, y and qid are as in `Ranker`, and a feature must vary in some list.

        Args:
            sample_weight: weight of each row, (n,), >= 0, by which its gain is multiplied. Ranks count rows, so that
                all rows of a list with label 0 must have the same weight, or 0 to be left out. ``"auc"`` takes none.
            beside: further columns of the rows that `demands` may name: a frame, or a mapping of names to columns.
            warm_starts: weights on the raw features, (d,) each, to start from.
            on_progress: called with each `TracePoint` of the search.

        Raises:
            ValueError: constraints or demands that no weights are known to satisfy.
        """
        self._check_parameters()
        rows = self._weighted_data(X, y, qid, sample_weight)
        features, groups = rows.features, rows.lists
        asked = self._given_demands(X, beside, sample_weight).of(rows.labels, groups)
        labels = self._weighted_labels(rows)
        starts = self._checked_starts(labels, features.shape[1], warm_starts)
        lists = TopLists.of(features, groups, round_units=self.integer is not None)
        if not lists.varying.any():
            raise ValueError("X must have a feature that varies in some list, got constant columns only")
        if unused := self._why_unused(self._weight_constraints(), lists.varying):
            raise ValueError(f"required: {unused}")
        tops = [one.of_top(np.zeros(len(labels)), np.ones(len(labels), dtype=np.bool_)) for one in asked]
        self._find(lists, labels, groups, asked=tops, starts=starts, on_progress=on_progress)
        if self.coef_ is None:
            raise ValueError("constraints: no weights are known to satisfy them")
        self.demands_ = outcome_of(asked, self._scores(features), self._price)
        return self

    def _for_other_rows(self) -> ExactRanker:
        return super()._for_other_rows().set_params(demands=())

    def _given_demands(self, X: Table, beside: Table, sample_weight: ArrayLike | None) -> GivenDemands:
        """Return the demands with the columns that they name, once their words are checked."""
        given = GivenDemands.read(self.demands, X, self._names, beside, self.gain)
        return given if sample_weight is None else given.take(np.asarray(sample_weight) > 0)

    @property
    def intercept_(self) -> float:
        """The score of a row of zeros."""
        return -float(self.coef_ @ self.center_)

    @property
    def points_(self) -> IntArray | None:
        """Points for each unit of the columns, (d,); None without `integer`, and where no weights are known."""
        if self.units_ is None or self.coef_ is None:
            return None
        return np.rint(self.coef_ * self.units_).astype(np.int64)

    def rule(self, names: Sequence[str] | None = None) -> str:
        """Return the weights in words: points by unit and column with `integer`, else weights of the raw columns."""
        check_is_fitted(self)
        if self.coef_ is None:
            return ""
        names = self._column_names if names is None else names
        weights, units = (self.coef_ if self.points_ is None else self.points_), self.units_
        terms = []
        for j in np.flatnonzero(self.coef_).tolist():
            unit = "" if units is None or units[j] == 1 else f"per {units[j]:g} "
            terms.append((weights[j] < 0, f"{abs(weights[j]):.4g} {unit}{names[j]}"))
        return signed_sum(terms)

    def recentred(self, norm: NormName = "l2") -> ExactRanker:
        """Return this ranker, fitted in this process, with its weights moved to the largest margin, see `recentre`."""
        one_of("norm", norm, get_args(NormName))
        if self.integer is not None:
            raise ValueError("recentred needs real weights: whole numbers cannot be moved, use integer=None")
        if not hasattr(self, "center_"):
            raise ValueError("recentred needs a fitted ranker: call fit first")
        moved = type(self)()
        moved.__dict__.update({**vars(self), "recentre": norm, "calibration_": None})
        if self.coef_ is not None:
            if self.problem_ is None:
                raise ValueError("recentred needs a ranker fitted in this process: files do not contain its problem")
            moved._choose_weights()
        return moved

    def _scores(self, features: FloatArray, base_scores: FloatArray | None = None) -> FloatArray:
        scores = linear_scores(features - self.center_, self.coef_)
        return scores if base_scores is None else scores + self.base_weight_ * (base_scores - self.base_center_)

    def to_torch(self) -> nn.Module:
        """Return centred columns and their weights as one torch module, see `Ranker.to_torch`."""
        check_is_fitted(self)
        center, scorer = Standardize(len(self.center_)), LinearScorer(len(self.center_), bias=False)
        center.mean.copy_(torch.from_numpy(self.center_))
        if self.coef_ is not None:
            scorer.load_state_dict({"weight": torch.from_numpy(self.coef_)})
        return nn.Sequential(center, scorer).eval()

    def _scores_at(self, features: Features, base_scores: FloatArray, rows: NDArray[np.bool_]) -> FloatArray:
        """Return the scores of the chosen rows, (n,), and 0 for the others."""
        found, places = np.zeros(len(features)), np.flatnonzero(rows)
        for piece in pieces(len(places)):
            at = places[piece]
            found[at] = self._scores(doubles(features[at]), base_scores[at])
        return found

    def _scores_in(self, graph: OnnxGraph, columns: str, base_scores: str | None = None) -> str:
        centered = graph.op("Sub", columns, graph.constant(self.center_[:, None]))
        scores = graph.linear(centered, self.coef_)
        if base_scores is None:
            return scores
        base = graph.op("Sub", base_scores, graph.constant(self.base_center_))
        return graph.op("Add", scores, graph.op("Mul", graph.constant(self.base_weight_), base))

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        super()._restore(fitted)
        self._forget()

    def _forget(self) -> None:
        self.solution_: Solution | None = None
        self.problem_: RerankProblem | None = None
        self.warm_starts_: list[FloatArray] = []
        self._lists: TopLists | None = None
        self.demands_ = None
        self._price: DemandPrice | None = None

    def _check_parameters(self) -> None:
        self._measure()[0].check_linear()
        check_price_and_margin(self.C, self.margin)
        one_of("ties", self.ties, get_args(Ties))
        if self.method != "reproducible":
            check_method(self.method)
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise ValueError(f"limits must be a Limits, such as Limits(time_limit=60), or None, got {self.limits!r}")
        check_integer(self.integer)
        as_sequence("demands", self.demands, "texts such as 'share(sex = F) @50 >= 0.4' or Demand objects")
        read_all_demands(self.demands)
        if self.recentre is not None:
            one_of("recentre", self.recentre, get_args(NormName))
            if self.integer is not None:
                raise ValueError(f"recentre must be None with integer: points stay whole, got {self.recentre!r}")

    def _checked_starts(self, labels: FloatArray, d: int, warm_starts: Iterable[ArrayLike]) -> list[FloatArray]:
        """Return the warm starts as float64, once they and the other arguments of a fit on d features are checked."""
        self._weight_constraints()
        RankStatistic.parse(self.statistic).check_labels(graded=not np.isin(labels, (0, 1)).all())
        starts = [as_numbers("warm_starts", w) for w in as_sequence("warm_starts", warm_starts, "weights")]
        for start in starts:
            if start.shape != (d,):
                raise ValueError(f"warm_starts: weights must have shape ({d},), got {start.shape}")
            if not np.isfinite(start).all():
                raise ValueError(f"warm_starts: weights must be finite, got {start.tolist()}")
        return starts

    def _weighted_labels(self, rows: LabelledRows) -> FloatArray:
        """Return labels whose gains are those of the rows, times their weights."""
        labels, lists, weights = rows.labels, rows.lists, rows.weights
        if weights is None:
            return labels
        if not (kind := RankStatistic.parse(self.statistic).kind).weighs_rows:
            other = "wrs, the sum of ranks, does" if kind.share_of_pairs else "a hit counts 1; dcg does"
            raise ValueError(f"sample_weight: the statistic {self.statistic} takes none; {other}")
        none = labels == 0
        if differ_in_lists(weights[none], None if lists is None else lists[none]):
            here = "" if lists is None else " of a query"
            raise ValueError(
                f"sample_weight must be the same for all rows{here} with the label 0, or 0 to leave a row out, because "
                "ranks count rows"
            )
        return weighted_labels(labels, weights, self.gain)

    def _find(
        self,
        lists: TopLists,
        labels: FloatArray,
        groups: IntArray | None,
        *,
        starts: Sequence[FloatArray] = (),
        on_progress: Progress | None = None,
        spread: float | None = None,
        search: Search = "proof",
        taken: int = 0,
        asked: Sequence[OnTop] = (),
    ) -> None:
        """Solve the problem of these lists under the demands that are asked, and set all attributes of a fit.

        `coef_` is None where no weights are known to satisfy the constraints, and where nothing varies or no list has
        two different labels. Lists with one column more than there are features have a base score first, which the
        weights correct. `spread` is that of the central weights around it, None for the optimum, and `taken` the
        number of other columns that count for `max_nonzeros`.
        """
        on_columns = self._weight_constraints()
        offset = len(lists.center) - self.n_features_in_  # 1 where the first column is a base score
        lists = lists.without([offset + j for j in on_columns.forbidden])
        self.note_ = unused = self._why_unused(on_columns, lists.varying[offset:])
        self.units_ = lists.scale if self.integer is not None else None
        self.center_, self.base_center_ = lists.center[offset:], float(lists.center[0]) if offset else 0.0
        self.coef_: Any = None
        self.base_weight_ = 0.0
        self._forget()
        self._lists = lists
        refuse_settled(asked)
        if labels_agree(labels, groups) or not lists.varying.any():
            return
        asked = [one for one in asked if one.demand is not None]
        base_varies = offset > 0 and bool(lists.varying[0])
        # sums of weights of raw columns that are at least 0, or of points
        rows = on_columns.inequalities if self.integer is not None else on_columns.inequalities / lists.scale[offset:]
        rows = rows / np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0.0), np.finfo(np.float64).tiny)
        if offset:  # the weight of a base score is one, too
            rows = np.vstack([np.eye(1, len(lists.center)), np.pad(rows, ((0, 0), (1, 0)))])
        sides: dict[str, Any] = {
            "constraints": LinearConstraints(0.0 - rows[:, lists.varying], np.zeros(len(rows))) if len(rows) else None,
            "required": np.flatnonzero(np.isin(np.flatnonzero(lists.varying) - offset, on_columns.required)).tolist(),
            "demands": [one.demand for one in asked],
        }
        self.problem_ = self._problem(lists.Z, labels, groups, taken, base=base_varies, **sides)
        if offset:
            starts = [np.eye(1, len(lists.center))[0], *(np.append(0.0, start) for start in starts)]
        self.warm_starts_ = [lists.standardised(w) for w in starts]
        limits, sparse = self.limits or Limits(), self.C > 0 or self.max_nonzeros is not None
        if search != "none" or spread is None or sparse:
            method = ReproducibleSearch() if self.method == "reproducible" else self.method
            if search != "proof":
                restarts = {} if search == "quick" else {"restarts": _INNER_RESTARTS}
                method = ReproducibleSearch(**restarts, proof=False)
            how: dict[str, Any] = {"warm_starts": self.warm_starts_, "on_progress": on_progress}
            if asked and search == "proof":
                statistic = RankStatistic.parse(self.statistic)
                self.solution_, price = solve_under(self.problem_, method, limits, str(statistic), **how)
                mean_of_aucs = statistic.kind.share_of_pairs and groups is not None
                self._price = price.less(self.problem_.trivial_bound - 1) if mean_of_aucs else price
            else:
                self.solution_ = solve(self.problem_, method, limits, **how)
            if self.solution_.value == -math.inf:
                if asked:
                    raise not_met(self.problem_, method, limits, asked, self.solution_)
                return
            self._choose_weights()
            self.note_ = "; ".join(filter(None, (unused, self.note_)))
        if spread is None or not base_varies:
            return
        used = self.solution_.weights != 0 if sparse and self.solution_ is not None else np.ones(lists.Z.shape[1])
        start, fixed = np.eye(1, lists.Z.shape[1])[0], np.flatnonzero(np.append(0, used[1:]) == 0)
        # near the base every column in use has a weight, however small
        nearby = dataclasses.replace(self.problem_, required=())
        central = None
        if nearby.feasible(start):
            central = central_weights(nearby, start, spread, fixed=fixed, seed=limits.seed)
        if central is not None and nearby.feasible(central):
            self._set_weights(central)
        elif search != "none":
            which = "side constraints" if not asked else "constraints or demands"
            what = "the base's own order violates the" if central is None else "central weights violate the"
            self.note_ = f"{what} {which}: the weights are the best, not central"

    def _why_unused(self, on_columns: WeightConstraints, varying: NDArray[np.bool_]) -> str:
        """Return which required columns cannot be used because they do not vary, in words."""
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        constant = [str(names[j]) for j in on_columns.required if not varying[j]]
        return f"required columns that do not vary here are not used: {', '.join(constant)}" if constant else ""

    def problem_weights(self) -> FloatArray:
        """Return the weights on the scale of `problem_`, after a fit that has found some."""
        assert self._lists is not None
        based = len(self._lists.center) > self.n_features_in_  # they correct a base score
        return self._lists.standardised(np.append(self.base_weight_, self.coef_) if based else self.coef_)

    def _set_weights(self, weights: FloatArray) -> None:
        assert self._lists is not None
        raw = self._lists.raw(weights)
        based = len(raw) > self.n_features_in_
        self.base_weight_, self.coef_ = (float(raw[0]), raw[1:]) if based else (0.0, raw)

    def _problem(
        self,
        Z: FloatArray,
        labels: FloatArray,
        groups: IntArray | None,
        taken: int,
        *,
        base: bool,
        **options: Any,  # noqa: ANN401 (options of any type)
    ) -> RerankProblem:
        """Return the problem of standardised features, of which a `base` score, the first, has no price."""
        statistic, margin = RankStatistic.parse(self.statistic), self.margin * (self.integer or 1)
        options |= {"C": self.C, "margin": margin, "ties": self.ties, "integer": self.integer}
        if base and (self.C > 0 or self.max_nonzeros is not None):
            options["free"] = (0,)
        if self.max_nonzeros is not None and Z.shape[1] > base:
            options["max_nonzeros"] = min(self.max_nonzeros - taken, Z.shape[1] - base)
        if statistic.kind.share_of_pairs and groups is not None:
            # AUC is the rank sum by the number of pairs, less a constant
            positives = np.bincount(groups, labels)
            pairs = positives * (np.bincount(groups) - positives)
            shares = labels / np.maximum(pairs[groups], 1) / np.count_nonzero(pairs)
            shares = np.where(pairs[groups] > 0, shares, 0.0)
            return RerankProblem(Z, shares, "wrs", qid=groups, gain="linear", **options)
        options |= {"gain": self.gain, "normalize": bool(self.normalize) and not statistic.kind.share_of_pairs}
        return RerankProblem(Z, labels, statistic, qid=groups, **options)

    def _choose_weights(self) -> None:
        """Set the weights: the solution's, recentred if so asked, or others that order the list better.

        The problem counts a pair within the margin as lost, a list of scores does not: only there can a warm start with
        a smaller objective, or the solution before it was recentred, be the better order.
        """
        problem, solution = self.problem_, self.solution_
        assert problem is not None
        assert solution is not None
        own = solution.weights
        if self.recentre is not None:
            own = maximise_margin(problem, own, norm=self.recentre)
            own = own if problem.feasible(own) else solution.weights  # demands compare other pairs
        candidates = [own, solution.weights, *(w for w in self.warm_starts_ if problem.feasible(w))]
        # a margin just wide enough to keep rounding from breaking ties
        plain = dataclasses.replace(problem, margin=min(problem.margin, 1e-9), constraints=None, required=())
        values = [plain.evaluate(w) for w in candidates]
        best = int(np.argmax(values))
        if values[best] <= values[0] + 1e-12:
            best = 0
        self.note_ = ""
        if best > 0:
            kept = "the solution before it was recentred" if best == 1 else "a warm start"
            self.note_ = (
                f"{kept} orders the list better ({values[best]:.6g} against {values[0]:.6g}) by differences below "
                f"the margin of {self.margin:g} and is kept; the solution's value and bound hold for that margin"
            )
        self._set_weights(candidates[best])


def cut(scores: FloatArray, queries: IntArray | None, top_k: int | None) -> FloatArray:
    """Return, for each row, the score from which items of its query belong to the top, (n,); -inf where all do.

    Examples:
        >>> cut(np.array([3.0, 1.0, 2.0, 9.0]), np.array([0, 0, 0, 1]), 2).tolist()
        [2.0, 2.0, 2.0, -inf]
    """
    if top_k is None or len(scores) == 0:
        return np.full(len(scores), -np.inf)
    queries = np.zeros(len(scores), dtype=np.int64) if queries is None else queries
    sizes = np.bincount(queries)
    starts = np.cumsum(sizes) - sizes
    descending = scores[np.lexsort((-scores, queries))]
    last = np.minimum(starts + top_k, len(scores)) - 1
    return np.where(sizes > top_k, descending[last], -np.inf)[queries]


@dataclass(frozen=True, eq=False)
class TopLists:
    """Standardised features of the items of some lists."""

    Z: FloatArray  # features of the exact problem, (items, varying columns)
    center: FloatArray  # mean of each raw column over the items, (d,)
    scale: FloatArray  # divisor of each raw column, (d,)
    varying: NDArray[np.bool_]  # whether each raw column varies and so is in `Z`, (d,)

    @classmethod
    def of(cls, X: FloatArray, queries: IntArray | None, *, round_units: bool = False) -> TopLists:
        """Standardise the features X, (items, d), of items of the given queries, or of one list.

        A column of which two values of a list differ, however little, is in `Z`. With `round_units` columns are divided
        by round numbers near their deviations, and yes/no features by 1. Raises ValueError for a column that varies so
        little that its weight would not be finite.
        """
        center = means = X.mean(axis=0)
        first = X[:1]
        if queries is not None:  # the mean of equal rows is exact
            _, at, number = np.unique(queries, return_index=True, return_inverse=True)
            rest = np.zeros_like(X[at])
            np.add.at(rest, number, X - X[at][number])
            first, means = X[at][number], (X[at] + rest / np.bincount(number)[:, None])[number]
        centered = X - means
        # in units of the largest entry, for squares of 1e-200 would be 0
        reach = np.max(np.abs(centered), axis=0)
        unit = np.where(reach > 0, reach, 1.0)
        deviation = np.sqrt(np.mean((centered / unit) ** 2, axis=0)) * unit
        varying = (first != X).any(axis=0)  # the mean of a constant column may be rounded
        if (small := deviation[varying & (deviation < _LEAST_DEVIATION)]).size:
            rule = f"must have a deviation of at least {_LEAST_DEVIATION:g}, for weights that are finite"
            raise ValueError(f"X: a column that varies {rule}, got {small[0]:g}: multiply it, or leave it out")
        scale = np.where(varying, deviation, 1.0)
        if round_units:
            answers = np.all((X == 0) | (X == 1), axis=0)
            scale = np.array([1.0 if yes else round_number(s) for yes, s in zip(answers, scale.tolist(), strict=True)])
        return cls((centered / scale)[:, varying], center, scale, varying)

    def without(self, columns: Sequence[int]) -> TopLists:
        """Return the lists without these columns, as if they did not vary."""
        kept = ~np.isin(np.arange(len(self.varying)), columns)
        return dataclasses.replace(self, Z=self.Z[:, kept[self.varying]], varying=self.varying & kept)

    def standardised(self, weights: FloatArray) -> FloatArray:
        """Return weights for `Z` that order as these weights for raw features, the largest of size 1."""
        own = weights[self.varying] * self.scale[self.varying]
        largest = float(np.max(np.abs(own), initial=0.0))
        return own / largest if largest > 0 else own

    def raw(self, weights: FloatArray) -> FloatArray:
        """Return weights for raw features, (d,), that order as these weights for `Z`."""
        own = np.zeros(len(self.scale))
        own[self.varying] = weights / self.scale[self.varying]
        return own


def round_number(size: float) -> float:
    """Return the number 1, 2 or 5 times a power of ten that is nearest to a size > 0, by their ratio.

    Examples:
        >>> [round_number(size) for size in (11.3, 0.04, 1.3, 700.0)]
        [10.0, 0.05, 1.0, 500.0]
    """
    exponent = math.floor(math.log10(size))
    nearby = [float(f"{digit}e{power}") for power in (exponent, exponent + 1) for digit in (1, 2, 5)]
    return min(nearby, key=lambda number: abs(math.log(number / size)))
