"""The ranker trained on a surrogate loss: standardised features, a linear or neural scorer, `ltr.fitting`."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike

from ltr.checks import as_sequence, check_callable, one_of
from ltr.data.dataset import checked_labels
from ltr.fitting import DeviceName, Fit, FitOptions, NoSlopeError, OptimizerName, Step
from ltr.fitting.fit import check_state
from ltr.losses import RankingLoss, RankNetLoss, parse_loss
from ltr.rankers.base import FloatArray, IntArray, Ranker, all_or_nothing, linear_scores
from ltr.rankers.scorers import LinearScorer, MLPScorer, Standardize
from ltr.ranks import GainName
from ltr.statistics import RankStatistic

__all__ = ["LinearRanker", "ScorerName"]

ScorerName = Literal["linear", "mlp"]
"""Scoring functions of a `LinearRanker`."""

_RESULTS = ("objective_", "n_iter_", "converged_")
_CONVEX_STEPS, _TRIAL_STEPS = 100, 10  # of L-BFGS, for the starts of a loss that is not convex and from each of them
_FACTORS = (1.0, 10.0, 100.0)  # by which RankNet's scores are multiplied until the loss has a slope
_LAST_LAYER = ("weight", "bias", "output.weight", "output.bias")  # its parameters scale the scores
_Parameters = dict[str, torch.Tensor]


@dataclass(eq=False, repr=False)
class LinearRanker(Ranker):
    """Rank by the scorer that minimises ``loss(f(Z), y) + (l2/2) ||weights||²``, Z the standardised features.

    The scorer f is linear, or a small neural network (``scorer="mlp"``). Standardisation is learned in `fit` and stored
    with the model. Pairwise losses do not change when all scores shift, so neither a bias nor the columns' means matter
    to the ranking. With a linear scorer and L-BFGS, the default, nothing is random.

    *Losses that are not convex* have minima that depend on the start. LambdaLoss starts from the scorer that RankNet
    finds. It jumps where the order of the items changes, so that its lowest point seldom has slope 0: most of its fits
    end ``"stalled"``, at the best weights found. A smooth statistic is minimised for a few steps of L-BFGS from there
    and from the new scorer (a linear one is 0), and the fit goes on from the lower objective.

    Args:
        loss: a loss or its name, such as ``"ranknet"``, ``"p_norm_push(p=4)"`` or ``"mymodule:MyLoss"``.
        scorer: ``"linear"`` or ``"mlp"``.
        hidden: widths of the hidden layers of an mlp.
        l2: price of squared weights, >= 0. The default makes the optimum of a separable problem exist and unique, and
            bounds what is left to gain from the gradient; on standardised features it moves the loss of overlapping
            classes by about 1e-4 of its value.
        optimizer: ``"lbfgs"`` reaches the optimum of a linear scorer to `tolerance`; ``"adam"`` takes mini-batches.
        max_steps, learning_rate, batch_size, chunk_rows, tolerance, device: see `ltr.fitting.FitOptions`.
        seed: seed of an mlp's starting weights and of mini-batches, >= 0.
        on_step: called as ``on_step(step, ranker)`` after every `ltr.fitting.Step`; the ranker then scores with the
            weights of that step. Copies, pickles and files leave it out.
        statistic, gain, normalize: what `score` reports, see `Ranker`.

    Attributes:
        coef_: weights on the raw features, (d,); None for an mlp.
        intercept_: score of a row of zeros; None for an mlp.
        objective_: lowest objective reached, which is that of the ranker's weights.
        n_iter_: steps done.
        converged_: whether the fit reached the tolerance. A fit that did not warns with scikit-learn's
            ``ConvergenceWarning``.
        fit_: the `ltr.fitting.Fit` of the last call of `fit`; its ``state_dict()`` resumes an interrupted one. None in
            copies and pickles, for it has the training data.

    Examples:
        >>> X, y, qid = [[0.0], [2.0], [1.0], [5.0], [4.0]], [0, 2, 1, 1, 0], ["a", "a", "a", "b", "b"]
        >>> ranker = LinearRanker("hinge", normalize=True).fit(X, y, qid=qid)
        >>> ranker.converged_, ranker.score(X, y, qid=qid)
        (True, 1.0)
    """

    loss: str | RankingLoss = "ranknet"
    _: KW_ONLY
    scorer: ScorerName = "linear"
    hidden: tuple[int, ...] = (64, 32)
    l2: float = 1e-4
    optimizer: OptimizerName = "lbfgs"
    max_steps: int = 1000
    learning_rate: float = 0.01
    batch_size: int | None = None
    chunk_rows: int | None = None
    tolerance: float = 1e-8
    seed: int = 0
    device: DeviceName = "cpu"
    on_step: Callable[[Step, LinearRanker], None] | None = None
    statistic: RankStatistic | str = "dcg"
    gain: GainName = "exp2"
    normalize: bool = False

    def fit(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None = None, *, resume: dict[str, Any] | None = None
    ) -> LinearRanker:
        """Learn from observations and labels.

        A fit refused for its arguments leaves the ranker as it was. Once training has begun, however it ends, by
        itself, by an error or by Ctrl-C, the ranker has the weights of the lowest objective so far, and `objective_`,
        `n_iter_` and `converged_` describe them: a caller that catches `KeyboardInterrupt` can go on with the ranker.
        The exception itself is passed on.

        Args:
            X: features, (n, d), finite.
            y: labels, (n,), 0 and 1 (graded with a pairwise loss), at least two different ones in some list.
            qid: list of each row, integers or texts, (n,), in any order; None means that all rows are one list.
            resume: a ``fit_.state_dict()`` of an interrupted fit on the same data; it goes on bit for bit.

        Raises:
            ValueError: arguments against these rules.
            FloatingPointError: an objective that is not finite.
        """
        fit, standardize = self._begin(X, y, qid, resume)
        try:
            for step in fit:
                if self.on_step is not None:
                    self.on_step(step, self)
        finally:
            # a scorer of its own: the fit keeps that of its last step, to go on from
            best = self._new_scorer(standardize.d).to(fit.device)
            best.load_state_dict(fit.best)
            self._model = (standardize, best.eval())
            self.objective_, self.n_iter_, self.converged_ = fit.best_objective, fit.index, fit.converged
        if not self.converged_:
            _warn(fit)
        return self

    @all_or_nothing
    def _begin(
        self, X: ArrayLike, y: ArrayLike, qid: ArrayLike | None, resume: dict[str, Any] | None
    ) -> tuple[Fit, Standardize]:
        """Check everything and return the fit before its first step, and the standardisation."""
        self._measure()
        check_callable("on_step", self.on_step)
        one_of("scorer", self.scorer, get_args(ScorerName))
        loss, options = parse_loss(self.loss), self._options()
        self._new_scorer(1)
        features, labels, groups = self._training_data(X, y, qid)
        standardize, scorer = Standardize.fit(features), self._new_scorer(features.shape[1])
        Z = standardize(torch.from_numpy(features))
        if resume is not None:
            check_state(resume)
            scorer.load_state_dict(resume["scorer"])
        elif not loss.convex:
            scorer.load_state_dict(self._best_start(scorer, loss, Z, labels, groups))
        fit = Fit(scorer, loss, Z, labels, options=options, qid=groups)
        if resume is not None:
            fit.load_state_dict(resume)
        self._model = (standardize, scorer)
        self.fit_: Fit | None = fit
        return fit, standardize

    @property
    def coef_(self) -> FloatArray | None:
        """The weights on the raw features, (d,); None for an mlp."""
        standardize, scorer = self._model
        return _array(scorer.weight) / _array(standardize.scale) if isinstance(scorer, LinearScorer) else None

    @property
    def intercept_(self) -> float | None:
        """The score of a row of zeros; None for an mlp."""
        standardize, scorer = self._model
        return float(self._scores(np.zeros((1, standardize.d)))[0]) if isinstance(scorer, LinearScorer) else None

    def _scores(self, features: FloatArray) -> FloatArray:
        standardize, scorer = self._model
        if isinstance(scorer, LinearScorer):
            scores = linear_scores(standardize(torch.from_numpy(features)).numpy(), _array(scorer.weight))
            return scores if scorer.bias is None else scores + float(scorer.bias.detach())
        # a matrix product may round equal rows differently, and ties decide rank statistics
        rows, place = np.unique(features, axis=0, return_inverse=True)
        with torch.no_grad():
            device = next(scorer.parameters()).device
            return _array(scorer(standardize(torch.from_numpy(rows)).to(device)))[place.reshape(-1)]

    def distance_to_optimum(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the objective minus its certified optimum, relative to the optimum.

        Where the optimum is 0, as that of the hinge loss of separable data with l2 = 0, the distance is 0 or infinity.

        Args:
            X: features of the fit, (n, d).
            y: labels of the fit, (n,), 0 and 1.

        Raises:
            ValueError: for an mlp, whose problem is not convex.
        """
        features = self._features(X)
        standardize, scorer = self._model
        if not isinstance(scorer, LinearScorer):
            raise ValueError("scorer must be 'linear' for a convex problem, got 'mlp'")
        from ltr.convex import certified_optimum

        labels = checked_labels(y, len(features))
        Z = standardize(torch.from_numpy(features)).numpy()
        optimum = certified_optimum(parse_loss(self.loss), Z, labels, l2=self.l2, bias=True).value
        loss = parse_loss(self.loss)(torch.from_numpy(self._scores(features)), torch.from_numpy(labels))
        objective = float(loss) + self.l2 / 2 * float((_array(scorer.weight) ** 2).sum())
        excess = objective - optimum
        if optimum == 0:
            return math.inf if excess > 0 else 0.0
        return excess / optimum

    def _fitted_state(self) -> dict[str, Any]:
        standardize, scorer = self._model
        results = {name: getattr(self, name) for name in _RESULTS}
        return {"standardize": standardize.state_dict(), "scorer": scorer.state_dict(), **results}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        standardize, scorer = Standardize(self.n_features_in_), self._new_scorer(self.n_features_in_)
        standardize.load_state_dict(fitted["standardize"])
        scorer.load_state_dict(fitted["scorer"])
        self._model = (standardize, scorer.eval())
        self.fit_ = None
        self.objective_, self.n_iter_, self.converged_ = (fitted[name] for name in _RESULTS)

    def __getstate__(self) -> dict[str, Any]:
        # neither the training data nor a callback belongs in a copy of the model
        fit = {"fit_": None} if hasattr(self, "fit_") else {}
        return {**super().__getstate__(), **fit, "on_step": None}

    def _best_start(
        self,
        scorer: LinearScorer | MLPScorer,
        loss: RankingLoss,
        Z: torch.Tensor,
        y: FloatArray,
        qid: IntArray | None,
    ) -> _Parameters:
        """Return the parameters from which to minimise a loss that is not convex.

        A loss that jumps where the order changes may well be lowest where all scores are tied: it starts from RankNet's
        scores, and nothing else is tried. Where a loss is flat at RankNet's scores, as a smooth statistic of high
        temperature is, they are multiplied by 10 or 100.
        """
        options = dataclasses.replace(self._options(), optimizer="lbfgs", batch_size=None)

        def fitted(start: _Parameters, loss: RankingLoss, steps: int) -> Fit:
            own = copy.deepcopy(scorer)
            own.load_state_dict(start)
            fit = Fit(own, loss, Z, y, options=dataclasses.replace(options, max_steps=steps), qid=qid)
            fit.run()
            return fit

        new = scorer.state_dict()
        convex = fitted(new, RankNetLoss(reduction=loss.reduction), _CONVEX_STEPS).best
        if not loss.continuous:
            return convex
        trials: list[Fit] = []
        for factor in _FACTORS:
            if not trials:
                scaled = {name: factor * value if name in _LAST_LAYER else value for name, value in convex.items()}
                with contextlib.suppress(NoSlopeError):
                    trials.append(fitted(scaled, loss, _TRIAL_STEPS))
        with contextlib.suppress(NoSlopeError):
            trials.append(fitted(new, loss, _TRIAL_STEPS))
        if not trials:
            raise NoSlopeError(
                f"loss {loss} is flat at every start that was tried, scores all tied and those of ranknet among them: "
                "X must have a feature that varies within lists, and a smooth statistic a temperature that is not too "
                "high"
            )
        return min(trials, key=lambda fit: fit.best_objective).best

    def _options(self) -> FitOptions:
        return FitOptions(**{f.name: getattr(self, f.name) for f in fields(FitOptions)})

    def _new_scorer(self, d: int) -> LinearScorer | MLPScorer:
        """Return the scorer from which a fit starts."""
        if self.scorer == "linear":
            return LinearScorer(d)
        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            return MLPScorer(d, as_sequence("hidden", self.hidden, "integers >= 1"))


def _warn(fit: Fit) -> None:
    """Warn that a fit ended before it had converged, and say why."""
    from sklearn.exceptions import ConvergenceWarning

    options, loss = fit.options, fit.loss
    if fit.stopped == "max_steps":
        reason = f"stopped at max_steps={options.max_steps} before the tolerance was reached: raise max_steps or l2"
    elif isinstance(loss, RankingLoss) and loss.convex:
        reason = (
            f"stalled after {fit.index} steps: rounding keeps the objective from coming closer to its optimum than the "
            f"tolerance of {options.tolerance:g}: raise tolerance or l2"
        )
    else:
        reason = (
            f"stalled after {fit.index} steps at a point where {loss} has a slope but its line search finds no lower "
            "value: the loss is not convex, these are the best weights found, and others may be better"
        )
    warnings.warn(reason, ConvergenceWarning, stacklevel=3)


def _array(tensor: torch.Tensor) -> FloatArray:
    return tensor.detach().cpu().numpy().astype(np.float64)
