"""The ranker trained on a surrogate loss: scaled features, a linear or neural scorer, `ltr.fitting`."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from time import perf_counter
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ltr.checks import as_sequence, by_piece, check_number, one_of
from ltr.data.dataset import Features, differ_in_lists
from ltr.data.similar import first_equals
from ltr.fitting import Fit, FitOptions, NoSlopeError, Step, Validation, held_out
from ltr.fitting.fit import check_state
from ltr.fitting.observations import Rows, pieces_to_score
from ltr.fitting.scoring import own_randomness, score_rows, scores_lists
from ltr.losses import LambdaLoss, LogisticLoss, RankingLoss, RankNetLoss, SmoothStatisticLoss, parse_loss
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.base import Ranker, Scored, all_or_nothing
from ltr.rankers.constrained import fit_linear
from ltr.rankers.inputs import FloatArray, IntArray, LabelledRows, Qid, labels_and_lists, linear_scores
from ltr.rankers.onnx import scaled, scored
from ltr.rankers.scorers import AttentionScorer, LinearScorer, MLPScorer, Quantiles, Standardize
from ltr.statistics import RankStatistic
from ltr.training import DeviceName, OptimizerName, PrecisionName, ScaleName, ScheduleName, ScorerName, defaults_of
from ltr.weight_constraints import Constrained, RankerKind

__all__ = ["SurrogateRanker"]

ValidationSet = tuple[ArrayLike, ArrayLike] | tuple[ArrayLike, ArrayLike, ArrayLike | None]
"""Features, labels and, where there are lists, the list of each row."""

_RESULTS = ("objective_", "n_iter_", "converged_")
_VALIDATED = 0.2  # share of the lists, or rows, that is held out where the ranker decides
_LISTS, _ROWS = 16, 128  # of a mini-batch
_CONVEX_STEPS, _TRIAL_STEPS = 100, 10  # of L-BFGS, for the starts of a loss that is not convex and from each of them
_FACTORS = (1.0, 10.0, 100.0)  # by which RankNet's scores are multiplied until the loss has a slope
_LAST_LAYER = ("weight", "bias", "output.weight", "output.bias")  # its parameters scale the scores
_Parameters = dict[str, torch.Tensor]
_Scorer = LinearScorer | MLPScorer | AttentionScorer
_Scale = Standardize | Quantiles


class _Rows(NamedTuple):
    """Features; labels, lists and weights of some of their rows, and the numbers of these, or None for all."""

    X: Features
    y: FloatArray
    lists: IntArray | None = None
    weights: FloatArray | None = None
    chosen: IntArray | None = None

    def part(self, chosen: NDArray[np.bool_]) -> _Rows:
        """Return some of all rows, by a mask."""
        lists = None if self.lists is None else self.lists[chosen]
        weights = None if self.weights is None else self.weights[chosen]
        return _Rows(self.X, self.y[chosen], lists, weights, np.flatnonzero(chosen))


@dataclass(eq=False, repr=False)
class SurrogateRanker(Constrained, Scored, Ranker):
    """Rank by the scorer that minimises ``loss(f(Z), y) + (l2/2) ||weights||²``, Z the scaled features.

    The scorer f is linear, or a neural network. The scaling is learned in `fit` and stored with the model. With a
    linear scorer and L-BFGS, the default, nothing is random.

    *Neural scorers.* ``"mlp"`` scores each row by itself, ``"attention"`` by the whole list, see `ltr.rankers.scorers`.
    By default they learn by Adam from mini-batches of whole lists, a fifth of the lists is held out, and the fit keeps
    the step at which `statistic` was largest there (`FitOptions.patience` says when it gives up).

    *Losses that are not convex* have minima that depend on the start. LambdaLoss starts from the scorer that RankNet
    finds; most of its fits end ``"stalled"``, at the best weights found. A smooth statistic is minimised for a few
    steps of L-BFGS from there and from the new scorer, and the fit goes on from the lower objective. Neural scorers
    that learn by Adam start from random weights instead. A linear scorer with such a loss and with lists holds out a
    fifth of them to choose the number of steps. Then it takes so many steps with all lists; none if the gain over the
    start is within one standard error.

    Args:
        loss: a loss or its name, such as ``"ranknet"``, ``"p_norm_push(p=4)"`` or ``"mymodule:MyLoss"``.
        scorer: ``"linear"``, ``"mlp"`` or ``"attention"``.
        hidden: widths of the hidden layers of an mlp, or of the layers before the attention. None and the same for
            `dropout`, `scale`, `optimizer`, `max_steps`, `learning_rate` and `weight_decay`: what
            `ltr.training.defaults_of` says.
        blocks, heads, dropout, layer_norm: options of `ltr.rankers.scorers`.
        scale: ``"standardize"``, or ``"quantile"``, which heavy tails do not disturb, for neural scorers.
        l2: price of squared weights, >= 0. The default makes the optimum of a separable problem exist and unique.
        optimizer: ``"lbfgs"`` reaches the optimum of a linear scorer to `tolerance`; ``"adam"`` takes mini-batches.
        batch_size: lists in a mini-batch, or rows where there are no lists. None is 16 lists or 128 rows for neural
            scorers, everything for linear ones.
        validation: share of the lists that is held out, or of the rows where there are no lists; 0 for none. None is
            0.2 for neural scorers, and for losses that are not convex where there are lists.
        max_steps, learning_rate, schedule, warmup, weight_decay, clip, precision: see `ltr.fitting.FitOptions`.
        patience, chunk_rows, tolerance, device: see there, too.
        seed: seed of a neural scorer's starting weights, of mini-batches and of what is held out, >= 0.
        on_step: called as ``on_step(step, ranker)`` after every `ltr.fitting.Step`; the ranker then scores with the
            weights of that step. Copies, pickles and files leave it out.
        signs, required, forbidden, constraints, max_nonzeros: as those of `ExactRanker`, for a linear scorer and a
            convex loss. Their solver (`ltr.rankers.constrained`) calls no `on_step`, and its fits cannot be resumed.
        statistic, gain, normalize: what `score` reports, see `Ranker`. Validation takes the mean over lists of the
            statistic's share of its best value, whatever `normalize` says.

    Attributes:
        coef_, intercept_: weights on the raw features, (d,), and score of a row of zeros; None for a neural scorer.
        objective_: the objective of the ranker's weights, which without validation is the lowest that was reached.
        validation_: the statistic of the rows held out, or of the `validation_set`, for these weights; None without.
        n_iter_: steps done.
        converged_: whether the fit reached the tolerance, or validation ended it; others warn (``ConvergenceWarning``).
        fit_: the `ltr.fitting.Fit` of the last call of `fit`; its ``state_dict()`` resumes an interrupted one. None in
            copies and pickles, for it has the training data.

    Examples:
        >>> X, y, qid = [[0.0], [2.0], [1.0], [5.0], [4.0]], [0, 2, 1, 1, 0], ["a", "a", "a", "b", "b"]
        >>> ranker = SurrogateRanker("hinge", normalize=True).fit(X, y, qid=qid)
        >>> ranker.converged_, ranker.score(X, y, qid=qid)
        (True, 1.0)
    """

    _BY_LIST = True
    _TAKES_SINGLES = True
    _NOT_COPIED = ("fit_", "on_step")
    _HOW = (
        "a linear score is bias + sum over columns j of weight[j] * (x[j] - mean[j]) / scale[j]; an mlp or attention "
        "scorer is a network of ltr.rankers.scorers, with knots and values of Quantiles in place of mean and scale"
    )

    loss: str | RankingLoss = "ranknet"
    _: KW_ONLY
    scorer: ScorerName = "linear"
    hidden: tuple[int, ...] | None = None
    blocks: int = 2
    heads: int = 4
    dropout: float | None = None
    layer_norm: bool = False
    scale: ScaleName | None = None
    l2: float = 1e-4
    optimizer: OptimizerName | None = None
    max_steps: int | None = None
    learning_rate: float | None = None
    schedule: ScheduleName = "constant"
    warmup: int = 0
    weight_decay: float | None = None
    clip: float | None = None
    precision: PrecisionName = "auto"
    batch_size: int | None = None
    chunk_rows: int | None = None
    validation: float | None = None
    patience: int = 20
    tolerance: float = 1e-8
    seed: int = 0
    device: DeviceName = "cpu"
    on_step: Callable[[Step, SurrogateRanker], None] | None = None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        qid: ArrayLike | None = None,
        *,
        group: ArrayLike | None = None,
        time: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        validation_set: ValidationSet | None = None,
        resume: dict[str, Any] | None = None,
    ) -> SurrogateRanker:
        """Learn from rows as in `Ranker`; only pairwise losses take graded labels.

        With a `time`, the rows to validate by are the latest. A pair counts with the product of its rows' relative
        weights, or without `qid` of their weights; losses of a rank statistic take weights of queries only. A fit
        refused for its arguments leaves the ranker as it was. Once training has begun, however it ends, the ranker has
        the best weights so far.

        Args:
            validation_set: features, labels and, with `qid`, lists of other rows, to validate by instead of a part of
                these. A ranker that does not validate, as a linear one with a convex loss, only measures its
                `validation_`.
            resume: a ``fit_.state_dict()`` of an interrupted fit on the same data; it goes on bit for bit.

        Raises ValueError for constraints that cannot be satisfied, FloatingPointError for an objective that is not
        finite.
        """
        data = X, y, qid, sample_weight, group, time
        if self._is_constrained:
            return self._fit_under_constraints(data, validation_set, resume)
        fit, scale = self._begin(data, validation_set, resume)
        try:
            for step in fit:
                if self.on_step is not None:
                    called = perf_counter()
                    self.on_step(step, self)
                    fit.seconds += perf_counter() - called
        finally:
            # a scorer of its own: the fit keeps that of its last step, to go on from
            best = self._new_scorer(scale.d).to(fit.device)
            best.load_state_dict(fit.best)
            self._model = (scale, best.eval())
            self.objective_, self.n_iter_, self.converged_ = fit.best_objective, fit.index, fit.converged
            self.validation_: float | None = fit.best_validation
        if not self.converged_ and not fit.decided:
            _warn(fit)
        return self

    @all_or_nothing
    def _fit_under_constraints(
        self, data: Sequence[ArrayLike | None], validation_set: ValidationSet | None, resume: dict[str, Any] | None
    ) -> SurrogateRanker:
        loss = self._checked_loss()
        for broken, name, rule, value in (
            (self.scorer != "linear", "scorer", "linear", self.scorer),
            (self._chosen("optimizer") != "lbfgs", "optimizer", "lbfgs", self.optimizer),
            (bool(self.validation), "validation", None, self.validation),
            (resume is not None, "resume", None, "a state"),
        ):
            if broken:
                raise ValueError(f"{name} must be {rule!r} with constraints on the weights, got {value!r}")
        rows = self._weighted_data(*data)  # type: ignore[arg-type]
        held = None if validation_set is None else self._checked_set(validation_set, rows.lists)
        scale, options = Standardize.fit(rows.features, rows.weights), self._options(rows.lists)
        self.fit_: Fit | None = None
        fit = fit_linear(
            loss,
            scale(torch.tensor(rows.features)).numpy(),
            rows.labels,
            self._weight_constraints(),
            scale.scale.numpy(),
            lists=rows.lists,
            weights=rows.weights,
            l2=options.l2,
            bias=isinstance(loss, LogisticLoss),
            names=self._names,
        )
        scorer = LinearScorer(scale.d)
        scorer.load_state_dict({"weight": torch.from_numpy(fit.weights), "bias": torch.tensor(fit.intercept)})
        self._model = (scale, scorer.eval())
        self.objective_, self.n_iter_, self.converged_ = fit.objective, fit.steps, fit.converged
        self.validation_ = None
        if held is not None:
            self.validation_ = self._validation(held, scale, scorer, options).mean(self._scores(held.X))
        return self

    @all_or_nothing
    def _begin(
        self, data: Sequence[ArrayLike | None], validation_set: ValidationSet | None, resume: dict[str, Any] | None
    ) -> tuple[Fit, _Scale]:
        """Check everything and return the fit before its first step, and the scaling."""
        loss = self._checked_loss()
        self._new_scorer(1)
        given = self._weighted_data(*data)  # type: ignore[arg-type]
        rows = _Rows(given.features, given.labels, given.lists, given.weights)
        by_rank = isinstance(loss, LambdaLoss | SmoothStatisticLoss)
        if by_rank and rows.weights is not None and differ_in_lists(rows.weights, rows.lists):
            rule = "takes weights of queries only, the same for all rows of a qid, because positions count rows"
            raise ValueError(f"sample_weight: {loss.key} {rule}; pairwise losses take weights of rows")
        options, decides = self._options(rows.lists), bool(self.validation)
        if self.validation is None:
            decides = self.scorer != "linear" or (not loss.convex and rows.lists is not None)
        held, until = None, None
        if validation_set is not None:
            held = self._checked_set(validation_set, rows.lists)
        elif decides and (chosen := self._held_out(given)) is not None:
            if self.scorer == "linear" and not loss.convex:
                until = self._number_of_steps(loss, options, rows.part(~chosen), rows.part(chosen))
            else:
                rows, held = rows.part(~chosen), rows.part(chosen)
        scorer = self._new_scorer(rows.X.shape[1])
        scale, Z = self._scaled(rows, scorer, options)
        if resume is not None:
            check_state(resume)
            scorer.load_state_dict(resume["scorer"])
        elif not loss.convex and (self.scorer == "linear" or options.optimizer == "lbfgs"):
            scorer.load_state_dict(self._best_start(scorer, loss, Z, rows, near=until is not None))
        validation = None
        if held is not None:
            validation = dataclasses.replace(self._validation(held, scale, scorer, options), decides=decides)
        fit = Fit(scorer, loss, Z, rows.y, options, rows.lists, rows.weights, validation=validation, until=until)
        if resume is not None:
            fit.load_state_dict(resume)
        self._model = (scale, scorer)
        self.fit_ = fit
        return fit, scale

    def _checked_loss(self) -> RankingLoss:
        self._measure()
        one_of("scorer", self.scorer, get_args(ScorerName))
        one_of("scale", self._chosen("scale"), get_args(ScaleName))
        if self.validation is not None:
            check_number("validation", self.validation)
            if self.validation >= 1:
                raise ValueError(f"validation must be a share below 1, got {self.validation!r}")
        if self.scorer == "linear" and self._chosen("scale") != "standardize":
            raise ValueError(f"scale must be 'standardize' with the linear scorer, got {self.scale!r}")
        if self.scorer == "linear" and self.dropout:
            raise ValueError(f"dropout is for neural scorers only, got {self.dropout!r} with 'linear'")
        if self.layer_norm and self.scorer != "mlp":
            raise ValueError(f"layer_norm is for scorer 'mlp' only, got True with {self.scorer!r}")
        return parse_loss(self.loss)

    def _chosen(self, name: str) -> Any:  # noqa: ANN401 (options of any type)
        """Return an option, or the default that follows the scorer and the optimizer."""
        value = getattr(self, name)
        return defaults_of(self.scorer, self.optimizer)[name] if value is None else value

    # validation

    def _held_out(self, given: LabelledRows) -> NDArray[np.bool_] | None:
        share = _VALIDATED if self.validation is None else self.validation
        rows = held_out(given.labels, given.lists, given.groups, share, self.seed, given.times)
        if rows is None and self.validation is not None:
            rule = "must leave lists with two different labels in both parts"
            raise ValueError(f"validation {rule}, got {self.validation!r} with {len(given.labels)} rows")
        return rows

    def _checked_set(self, given: ValidationSet, groups: IntArray | None) -> _Rows:
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            raise ValueError(f"validation_set must be (X, y) or (X, y, qid), got {type(given).__name__}")
        qid = given[2] if len(given) == 3 else None
        if (qid is None) != (groups is None):
            raise ValueError("validation_set must have a qid if and only if the training rows have one")
        features = self._features(given[0])
        labels, lists = labels_and_lists(given[1], qid, len(features))
        return _Rows(features, labels, lists)

    def _scaled(self, rows: _Rows, scorer: _Scorer, options: FitOptions) -> tuple[_Scale, Rows]:
        """Return the scaling learned from some rows, and these rows, scaled for a scorer."""
        if self._chosen("scale") == "standardize":
            scale: _Scale = Standardize.fit(rows.X, rows.weights, rows=rows.chosen)
        else:
            scale = Quantiles.fit(rows.X, rows=rows.chosen)  # places, which weights do not move
        return scale, self._rows(rows, scale, scorer, options)

    def _rows(self, rows: _Rows, scale: _Scale, scorer: _Scorer, options: FitOptions) -> Rows:
        dtype, device, resident = next(scorer.parameters()).dtype, options.torch_device(), options.chunk_rows is None
        return Rows(rows.X, dtype=dtype, device=device, resident=resident, scale=scale, chosen=rows.chosen)

    def _validation(self, rows: _Rows, scale: _Scale, scorer: _Scorer, options: FitOptions) -> Validation:
        statistic = RankStatistic.parse(self.statistic)
        # weights of positions fit lists of one length only, and short lists are all top
        longest = len(rows.y) if rows.lists is None else int(np.bincount(rows.lists).max())
        if statistic.length is not None or statistic.is_constant(longest):
            statistic = RankStatistic.parse("dcg")
        X = self._rows(rows, scale, scorer, options)
        return Validation(X, rows.y, rows.lists, statistic, self.gain, weight=rows.weights)

    def _number_of_steps(self, loss: RankingLoss, options: FitOptions, part: _Rows, held: _Rows) -> int:
        """Return how many steps of a fit to a part of the rows are best for those held out."""
        scorer = self._new_scorer(part.X.shape[1])
        scale, Z = self._scaled(part, scorer, options)
        scorer.load_state_dict(self._best_start(scorer, loss, Z, part, near=True))
        validation = dataclasses.replace(self._validation(held, scale, scorer, options), start_counts=True)
        fit = Fit(scorer, loss, Z, part.y, options, part.lists, part.weights, validation=validation)
        before = fit.validated()
        fit.run()
        fit.load_best()
        gain, counts = fit.validated() - before, validation.weights()
        known = ~np.isnan(gain)
        gain, counts = gain[known], counts[known]
        mean = float(np.average(gain, weights=counts))
        error = float(np.linalg.norm(counts * (gain - mean)) / counts.sum())
        return fit.best_index if mean > error else 0

    # scores

    @property
    def _kind(self) -> RankerKind:
        return "linear" if self.scorer == "linear" and parse_loss(self.loss).convex else "other"

    def _lists_of_scores(self, method: str, qid: Qid) -> ArrayLike | None:
        of_lists = scores_lists(self._model[1])
        return self._lists_for(method, qid) if of_lists else super()._lists_of_scores(method, qid)

    def _placed(self, features: Features, qid: ArrayLike | None) -> tuple[FloatArray, NDArray[np.bool_] | None]:
        one_list = qid is None and scores_lists(self._model[1])  # which is meant, see `_lists_for`
        return super()._placed(features, np.zeros(len(features), dtype=np.int64) if one_list else qid)

    def to_torch(self) -> nn.Module:
        """Return scaling and scorer as one torch module, see `Ranker.to_torch`."""
        check_is_fitted(self)
        return copy.deepcopy(nn.Sequential(*self._model)).double().cpu().eval()

    @property
    def coef_(self) -> FloatArray | None:
        """The weights on the raw features, (d,); None for a neural scorer."""
        scale, scorer = self._model
        if not isinstance(scorer, LinearScorer):
            return None
        assert isinstance(scale, Standardize)
        return _array(scorer.weight) / _array(scale.scale)

    @property
    def center_(self) -> FloatArray:
        """The mean of each column over the training rows, (d,), for a linear scorer; 0 for others."""
        scale, _ = self._model
        return _array(scale.mean) if isinstance(scale, Standardize) else np.zeros(scale.d)

    @property
    def intercept_(self) -> float | None:
        """The score of a row of zeros; None for a neural scorer."""
        scale, scorer = self._model
        return float(self._scores(np.zeros((1, scale.d)))[0]) if isinstance(scorer, LinearScorer) else None

    def _scores(self, features: Features, lists: IntArray | None = None) -> FloatArray:
        scale, scorer = self._model
        if isinstance(scorer, LinearScorer):
            weights, bias = _array(scorer.weight), 0.0 if scorer.bias is None else float(scorer.bias.detach())
            return by_piece(lambda rows: linear_scores(scale(torch.tensor(rows)).numpy(), weights) + bias, features)
        if not scores_lists(scorer):
            lists = None
        elif lists is None and self._by_list:
            raise ValueError("qid is required: the attention scorer scores a row by the list that it is in")
        parameter = next(scorer.parameters())
        if parameter.dtype != torch.float64:  # its digits would depend on the processor, and on the rows around a row
            scorer = copy.deepcopy(scorer).double()
        scores = np.empty(len(features))
        with torch.no_grad():
            for some in pieces_to_score(scorer, len(features), lists):
                Z = scale(torch.tensor(features[some], dtype=torch.float64)).to(parameter.device)
                scores[some] = _array(score_rows(scorer, Z, None if lists is None else lists[some]))
        # a matrix product may round equal rows differently, and ties decide rank statistics
        return scores[first_equals(features, lists)]

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        scale, scorer = self._model
        return scored(graph, scaled(graph, columns, scale), scorer)

    def _fitted_state(self) -> dict[str, Any]:
        scale, scorer = self._model
        results = {name: getattr(self, name) for name in (*_RESULTS, "validation_")}
        return {"standardize": scale.state_dict(), "scorer": scorer.state_dict(), **results}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        d, learned, weights = self.n_features_in_, fitted["standardize"], fitted["scorer"]
        scale = Quantiles(*learned["knots"].shape) if "knots" in learned else Standardize(d)
        scorer = self._new_scorer(d).to(next(iter(weights.values())).dtype)
        scale.load_state_dict(learned)
        scorer.load_state_dict(weights)
        self._model = (scale, scorer.eval())
        self.fit_ = None
        self.objective_, self.n_iter_, self.converged_ = (fitted[name] for name in _RESULTS)
        self.validation_ = fitted["validation_"]

    def _best_start(
        self, scorer: _Scorer, loss: RankingLoss, Z: Rows, rows: _Rows, *, near: bool = False
    ) -> _Parameters:
        """Return the parameters from which to minimise a loss that is not convex."""
        same = {name: getattr(self, name) for name in ("l2", "chunk_rows", "tolerance", "seed", "device")}

        def fitted(start: _Parameters, loss: RankingLoss, steps: int) -> Fit:
            own = copy.deepcopy(scorer)
            own.load_state_dict(start)
            fit = Fit(own, loss, Z, rows.y, FitOptions(max_steps=steps, **same), rows.lists, rows.weights)
            fit.run()
            return fit

        new = scorer.state_dict()
        steps = int(self._chosen("max_steps")) if near else _CONVEX_STEPS
        convex = fitted(new, RankNetLoss(reduction=loss.reduction), steps).best
        if not loss.continuous:
            return convex
        trials: list[Fit] = []
        for factor in _FACTORS:
            scaled = {name: factor * value if name in _LAST_LAYER else value for name, value in convex.items()}
            with contextlib.suppress(NoSlopeError):
                trials.append(fitted(scaled, loss, _TRIAL_STEPS))
                if near:
                    return scaled
                break
        with contextlib.suppress(NoSlopeError):
            trials.append(fitted(new, loss, _TRIAL_STEPS))
        if not trials:
            rule = "X must have a feature that varies within lists, and a smooth statistic no high temperature"
            raise NoSlopeError(f"loss {loss} is flat at every start that was tried, those of ranknet too: {rule}")
        return min(trials, key=lambda fit: fit.best_objective).best

    def _options(self, groups: IntArray | None) -> FitOptions:
        given = {f.name: getattr(self, f.name) for f in fields(FitOptions)}
        given |= {name: self._chosen(name) for name in given.keys() & defaults_of(self.scorer)}
        if given["batch_size"] is None and self.scorer != "linear" and given["optimizer"] == "adam":
            given["batch_size"] = _ROWS if groups is None else _LISTS
        return FitOptions(**given)

    def _new_scorer(self, d: int) -> _Scorer:
        if self.scorer == "linear":
            return LinearScorer(d)
        hidden, dropout = as_sequence("hidden", self._chosen("hidden"), "integers >= 1"), self._chosen("dropout")
        scorer: _Scorer
        with own_randomness():
            torch.default_generator.manual_seed(self.seed)
            if self.scorer == "mlp":
                scorer = MLPScorer(d, hidden, dropout, self.layer_norm)
            else:
                scorer = AttentionScorer(d, hidden, self.blocks, self.heads, dropout)
        # L-BFGS needs the digits, mini-batches do not
        return scorer if self._chosen("optimizer") == "lbfgs" else scorer.float()


def _warn(fit: Fit) -> None:
    from sklearn.exceptions import ConvergenceWarning

    options, loss, steps = fit.options, fit.loss, f"stalled after {fit.index} steps"
    if fit.stopped == "max_steps":
        reason = f"stopped at max_steps={options.max_steps} before the tolerance was reached: raise max_steps or l2"
    elif isinstance(loss, RankingLoss) and loss.convex:
        reason = f"{steps}: rounding keeps the objective above the tolerance of {options.tolerance:g}: raise it, or l2"
    else:
        reason = f"{steps} where no lower value of {loss} is found: the loss is not convex, others may be better"
    warnings.warn(reason, ConvergenceWarning, stacklevel=4)


def _array(tensor: torch.Tensor) -> FloatArray:
    return tensor.detach().cpu().numpy().astype(np.float64)
