"""Rankers trained on a surrogate loss: standardised features, a linear or neural scorer, `ltr.fitting`."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ltr.base_rankers.logistic import linear_scores
from ltr.checks import as_sequence, check_callable
from ltr.data.dataset import checked_features, checked_labels
from ltr.fitted import NamedFeatures, feature_names, split_names
from ltr.fitting import DeviceName, Fit, FitOptions, NoSlopeError, OptimizerName, Step
from ltr.fitting.fit import check_state
from ltr.losses import RankingLoss, RankNetLoss, parse_loss
from ltr.losses.parsing import LOSSES
from ltr.scorers import LinearScorer, MLPScorer, Standardize

__all__ = ["ScorerName", "SurrogateRanker"]

FloatArray = NDArray[np.float64]
ScorerName = Literal["linear", "mlp"]
"""Scoring functions of a surrogate."""

_RESULTS = ("objective_", "steps_", "converged_")
_CONVEX_STEPS, _TRIAL_STEPS = 100, 10  # of L-BFGS, for the starts of a loss that is not convex and from each of them
_FACTORS = (1.0, 10.0, 100.0)  # by which RankNet's scores are multiplied until the loss has a slope
_Parameters = dict[str, torch.Tensor]


@dataclass
class SurrogateRanker(NamedFeatures):
    """Rank by a scorer that minimises ``loss(f(Z), y) + (l2/2) ||weights||²``, Z the standardised features.

    Standardisation is learned in `fit` and stored with the model. Pair losses do not change when all scores shift,
    so neither a bias nor the columns' means matter to the ranking.

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
        max_steps: at most that many iterations of L-BFGS, or passes of Adam over the data.
        learning_rate, batch_size: of Adam; a batch_size of None takes everything at once.
        chunk_rows: rows on the device at a time, for data larger than its memory; None holds all there.
        tolerance: relative accuracy of the objective at which a fit has converged, > 0.
        seed: of an mlp's starting weights and of mini-batches, >= 0.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"``.
        on_step: called as ``on_step(step, ranker)`` after every `ltr.fitting.Step`; the ranker then scores with the
            weights of that step.

    Attributes:
        objective_: after `fit`, the lowest objective reached, that of the ranker's weights.
        steps_: steps done.
        converged_: whether the fit ended with its gap closed to the tolerance. A fit that ended without is announced
            by scikit-learn's ``ConvergenceWarning``.
        fit_: the `ltr.fitting.Fit` of the last call of `fit`; its ``state_dict()`` resumes an interrupted one.
        feature_names_in_: the names of the columns that `fit` got, where it got a frame.

    Raises:
        ValueError: a field outside its range; in `fit`, data against the rules of `ltr.fitting.Fit`.

    Examples:
        >>> X, y = [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]], [0, 1, 0, 1]
        >>> ranker = SurrogateRanker("ranknet").fit(X, y)
        >>> scores = ranker.decision_function(X)
        >>> bool(scores[3] > scores[0]), ranker.converged_, float(ranker.linear_weights[1])
        (True, True, 0.0)
    """

    loss: str | RankingLoss = "ranknet"
    scorer: ScorerName = field(default="linear", kw_only=True)
    hidden: tuple[int, ...] = field(default=(64, 32), kw_only=True)
    l2: float = field(default=1e-4, kw_only=True)
    optimizer: OptimizerName = field(default="lbfgs", kw_only=True)
    max_steps: int = field(default=1000, kw_only=True)
    learning_rate: float = field(default=0.01, kw_only=True)
    batch_size: int | None = field(default=None, kw_only=True)
    chunk_rows: int | None = field(default=None, kw_only=True)
    tolerance: float = field(default=1e-8, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    device: DeviceName = field(default="cpu", kw_only=True)
    on_step: Callable[[Step, SurrogateRanker], None] | None = field(
        default=None, kw_only=True, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        # a field that is in order keeps its identity, which scikit-learn's clone asks for
        loss = parse_loss(self.loss)
        # a loss object of the user's own stays, for its class need not be importable
        if self.loss != (name := str(loss)) and (isinstance(self.loss, str) or loss.key in LOSSES):
            self.loss = name
        self.hidden = as_sequence("hidden", self.hidden, "integers >= 1")
        if self.scorer not in ("linear", "mlp"):
            raise ValueError(f"scorer must be 'linear' or 'mlp', got {self.scorer!r}")
        check_callable("on_step", self.on_step)
        self._options()
        self._new_scorer(1)
        self._model: tuple[Standardize, LinearScorer | MLPScorer] | None = None
        self.fit_: Fit | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's fields by name (scikit-learn's convention)."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def fit(
        self, X: ArrayLike, y: ArrayLike, *, qid: ArrayLike | None = None, resume: dict[str, Any] | None = None
    ) -> SurrogateRanker:
        """Learn from observations and labels.

        However the fit ends, by itself, by an error or by Ctrl-C, the ranker holds the weights of the lowest
        objective so far, and `objective_`, `steps_` and `converged_` describe them: a caller that catches
        `KeyboardInterrupt` can go on with the ranker. The exception itself is passed on.

        Args:
            X: features, (n, d), finite.
            y: labels, (n,), 0 and 1 (graded with a loss of pairs), at least two different ones in some list.
            qid: integers, (n,), the list of each row; None means that all rows are one list.
            resume: a ``fit_.state_dict()`` of an interrupted fit on the same data; it goes on bit for bit.

        Raises:
            ValueError: arguments against these rules.
            FloatingPointError: an objective that is not finite.
        """
        names, features, loss = feature_names(X), checked_features(X), parse_loss(self.loss)
        standardize, scorer = Standardize.fit(features), self._new_scorer(features.shape[1])
        Z = standardize(_tensor(features))
        if resume is not None:
            check_state(resume)
            scorer.load_state_dict(resume["scorer"])
        elif not loss.convex:
            scorer.load_state_dict(self._best_start(scorer, loss, Z, y, qid))
        fit = Fit(scorer, loss, Z, y, options=self._options(), qid=qid)
        if resume is not None:
            fit.load_state_dict(resume)
        self._model, self.fit_ = (standardize, scorer), fit
        self._remember_names(names)
        try:
            for step in fit:
                if self.on_step is not None:
                    self.on_step(step, self)
        finally:
            # a scorer of its own: the fit keeps that of its last step, to go on from
            best = self._new_scorer(standardize.d).to(fit.device)
            best.load_state_dict(fit.best)
            self._model = (standardize, best.eval())
            self.objective_, self.steps_, self.converged_ = fit.best_objective, fit.index, fit.converged
        if not self.converged_:
            _warn(fit)
        return self

    def _best_start(
        self,
        scorer: LinearScorer | MLPScorer,
        loss: RankingLoss,
        Z: torch.Tensor,
        y: ArrayLike,
        qid: ArrayLike | None,
    ) -> _Parameters:
        """The parameters from which to minimise a loss that is not convex.

        A loss that jumps where the order changes may well be lowest where all scores are tied: it starts from RankNet's
        scores, and nothing else is tried. RankNet's scores are made larger where a loss is flat at them, as a smooth
        statistic of high temperature is.
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
                with contextlib.suppress(NoSlopeError):
                    trials.append(fitted(_scaled(convex, factor), loss, _TRIAL_STEPS))
        with contextlib.suppress(NoSlopeError):
            trials.append(fitted(new, loss, _TRIAL_STEPS))
        if not trials:
            raise NoSlopeError(
                f"loss {loss} is flat at every start that was tried, scores all tied and those of ranknet among them: "
                "X must have a feature that varies within lists, and a smooth statistic a temperature that is not too "
                "high"
            )
        return min(trials, key=lambda fit: fit.best_objective).best

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Scores of the rows of X, float64 of shape (n,); equal for equal rows.

        Raises:
            ValueError: before `fit`, or with other columns.
        """
        self._check_names(X)
        return self._scores(X)

    def _scores(self, X: ArrayLike) -> FloatArray:
        standardize, scorer = self._fitted
        features = checked_features(X)
        if features.shape[1] != standardize.d:
            raise ValueError(f"X must have the {standardize.d} columns of the fit, got {features.shape[1]}")
        if isinstance(scorer, LinearScorer):
            scores = linear_scores(standardize(_tensor(features)).numpy(), _array(scorer.weight))
            return scores if scorer.bias is None else scores + float(scorer.bias.detach())
        # a matrix product may round equal rows differently, and ties decide rank statistics
        rows, place = np.unique(features, axis=0, return_inverse=True)
        with torch.no_grad():
            device = next(scorer.parameters()).device
            return _array(scorer(standardize(torch.from_numpy(rows)).to(device)))[place.reshape(-1)]

    @property
    def linear_weights(self) -> FloatArray | None:
        """The weights on the raw features, (d,), None for an mlp: they order rows as `decision_function` does."""
        standardize, scorer = self._fitted
        return _array(scorer.weight) / _array(standardize.scale) if isinstance(scorer, LinearScorer) else None

    def distance_to_optimum(self, X: ArrayLike, y: ArrayLike) -> float:
        """Objective minus certified optimum, relative to the optimum, on the data of the fit.

        An optimum of 0, as the hinge of separable data has with l2 = 0, is reached (0) or not (infinity).

        Raises:
            ValueError: for an mlp, whose problem is not convex.
        """
        standardize, scorer = self._fitted
        if not isinstance(scorer, LinearScorer):
            raise ValueError("scorer must be 'linear' for a convex problem, got 'mlp'")
        from ltr.convex import certified_optimum

        features = checked_features(X)
        labels = checked_labels(y, len(features))
        Z = standardize(_tensor(features)).numpy()
        optimum = certified_optimum(self.loss, Z, labels, l2=self.l2, bias=True).value
        loss = parse_loss(self.loss)(torch.from_numpy(self.decision_function(X)), torch.from_numpy(labels))
        objective = float(loss) + self.l2 / 2 * float((_array(scorer.weight) ** 2).sum())
        excess = objective - optimum
        if optimum == 0:
            return math.inf if excess > 0 else 0.0
        return excess / optimum

    def to_state(self) -> dict[str, Any]:
        """Fields (but `on_step`), standardisation, weights and results: what `from_state` and ``torch.save`` need."""
        standardize, scorer = self._fitted
        return {
            "kind": "surrogate",
            "fields": {f.name: _plain(getattr(self, f.name)) for f in fields(self) if f.name != "on_step"},
            "standardize": {name: tensor.cpu().clone() for name, tensor in standardize.state_dict().items()},
            "scorer": {name: tensor.cpu().clone() for name, tensor in scorer.state_dict().items()},
            "results": {name: getattr(self, name) for name in _RESULTS},
            **self._names_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> SurrogateRanker:
        """The fitted ranker that `to_state` described, on the CPU.

        Raises:
            ValueError: a state of another kind, or one that lacks an entry or has one too many.
        """
        state, names = split_names(state)
        expected = {"kind", "fields", "standardize", "scorer", "results"}
        if set(state) != expected or state["kind"] != "surrogate":
            raise ValueError(f"state must be of kind 'surrogate' and hold {sorted(expected)}, got {sorted(state)}")
        # reading a model imports no module that it names: a loss of the user's own is looked up by the next fit
        loss = state["fields"]["loss"]
        ranker = cls(**{**state["fields"], "loss": "ranknet" if ":" in loss else loss})
        ranker.loss = loss if ":" in loss else ranker.loss
        d = len(state["standardize"]["mean"])
        standardize, scorer = Standardize(d), ranker._new_scorer(d)
        standardize.load_state_dict(state["standardize"])
        scorer.load_state_dict(state["scorer"])
        ranker._model = (standardize, scorer.eval())
        for name in _RESULTS:
            setattr(ranker, name, state["results"][name])
        ranker._remember_names(names)
        return ranker

    def __getstate__(self) -> dict[str, Any]:
        # neither the training data nor a callback belongs in a copy of the model
        return {**self.__dict__, "fit_": None, "on_step": None}

    @property
    def _fitted(self) -> tuple[Standardize, LinearScorer | MLPScorer]:
        if self._model is None:
            raise ValueError("SurrogateRanker is not fitted: call fit first")
        return self._model

    def _options(self) -> FitOptions:
        return FitOptions(**{f.name: getattr(self, f.name) for f in fields(FitOptions)})

    def _new_scorer(self, d: int) -> LinearScorer | MLPScorer:
        if self.scorer == "linear":
            return LinearScorer(d)
        with torch.random.fork_rng([]):
            torch.manual_seed(self.seed)
            return MLPScorer(d, self.hidden)


def _scaled(parameters: _Parameters, factor: float) -> _Parameters:
    """The parameters of a scorer whose scores are those of the given one times a factor."""
    last_layer = ("weight", "bias", "output.weight", "output.bias")
    return {name: factor * value if name in last_layer else value for name, value in parameters.items()}


def _warn(fit: Fit) -> None:
    """Say that a fit ended before it had converged, and why."""
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


def _tensor(features: FloatArray) -> torch.Tensor:
    # torch has no tensors on memory that may not be written, and says so in a warning
    return torch.from_numpy(np.require(features, requirements="W"))


def _array(tensor: torch.Tensor) -> FloatArray:
    return tensor.detach().cpu().numpy().astype(np.float64)


def _plain(value: Any) -> Any:  # noqa: ANN401 (a field of any type)
    return str(value) if isinstance(value, RankingLoss) else list(value) if isinstance(value, tuple) else value
