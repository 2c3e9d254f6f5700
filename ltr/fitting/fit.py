"""Fitting a scorer: full-batch L-BFGS or mini-batch Adam, one step at a time, resumable.

The objective is ``loss(f(X), y) + (l2/2) ||weights||²``, biases not penalised. With l2 > 0 and a convex loss of a
linear scorer it is l2-strongly convex in the weights, so that

    objective(w) - optimum  <=  ||gradient||² / (2 l2)

is known at every step; a fit has converged when that `Step.gap` is at most ``tolerance * |objective|``. For the
pointwise loss, whose bias is free, the gap is an estimate.

*Hinge.* The pairwise hinge loss has kinks at which L-BFGS stalls short of the optimum. It is given a sequence of smooth
losses instead (`ltr.fitting.smoothing`) until the gap of the true hinge, with its slack to the smooth one, closes.
Logged objectives and losses are always those of the true loss.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import inspect
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ltr.fitting.objective import Objective
from ltr.fitting.observations import Rows, item_batches, list_batches, pieces_to_score
from ltr.fitting.options import FitOptions
from ltr.fitting.scoring import draws_by_torch, own_randomness, score_rows
from ltr.fitting.smoothing import SmoothedHinge, Smoothing, smoothed_hinge
from ltr.fitting.validation import Validation
from ltr.losses import PairwiseLoss, parse_loss
from ltr.losses.contract import RankingLoss
from ltr.losses.functions import HINGE

StopReason = Literal["", "tolerance", "stalled", "max_steps", "early_stop"]
"""Why a fit ended, see `Fit`; empty until then."""

_HISTORY = 50
_LINE_SEARCH = 25
_WIDENINGS = 3  # number of times to widen a stalled smoothed hinge
_EASY_SEARCH = 5  # evaluations of a line search on smooth ground
_OUT_OF_RANGE = 1e120  # replaces an objective that is not finite, so that a line search can interpolate
_NO_PROGRESS = 1e-14  # relative decrease of an objective that is rounding error
_SCALE = 2.0**30  # torch's L-BFGS drops curvature below an absolute 1e-10; scaling by a power of two is exact
_KEPT = ("index", "seconds", "_stopped", "_restarted", "_last_slack", "_widened", "best_index", "best_objective",
         "best_validation", "_halved")  # fmt: skip
_STATE = ("loss", "options", "width", "multipliers", "scorer", "optimizer", "best",
          *(name.lstrip("_") for name in _KEPT))  # fmt: skip
_RESUMED = ("optimizer", "learning_rate", "batch_size", "l2", "seed", "schedule", "warmup", "weight_decay", "clip",
            "patience")  # fmt: skip
_HALVING = 0.5  # of the learning rate on a plateau


class NoSlopeError(ValueError):
    """A start at which the gradient of a loss that is not convex is 0, so that it cannot be minimised from there."""


@dataclass(frozen=True)
class Step:
    """One logged step of a fit.

    Attributes:
        objective, loss: loss plus penalty on all rows after the step, and the loss alone.
        grad_norm: Euclidean norm of the objective's gradient (of the smoothed objective if there is a width). With Adam
            and validation that of the last mini-batch, because nothing else asks for all rows.
        seconds: wall time of the fit so far, over all its resumptions.
        gap: bound on objective minus optimum, see the module docstring. With l2 = 0, a scorer that is not linear, or a
            loss that is not convex, it only estimates the improvement left nearby.
        width: width of the smoothed hinge that L-BFGS minimises, 0 for a smooth loss and for Adam.
        validation: the statistic of the rows held out, None without any.
    """

    index: int
    objective: float
    loss: float
    grad_norm: float
    seconds: float
    gap: float
    width: float = 0.0
    validation: float | None = None


class Fit:
    """A fit under way: iterate over it to train, one `Step` at a time.

    Between steps the scorer, which is trained in place, has the parameters of the last step. An interrupted step (also
    by Ctrl-C) leaves scorer and fit as they were before it. The randomness of a step (batches, dropout) is a function
    of ``options.seed`` and the step's index, so a fit resumed from `state_dict` continues bit for bit on the CPU.

    Args:
        scorer: module from (..., list, d) to (..., list), with its starting parameters.
        loss: a loss of `ltr.losses` or its name, or any module that is called as ``loss(scores, labels)``, with
            ``qid=`` if there is one, and returns one number.
        X: observations, (n, d), finite; copied unless ``options.chunk_rows`` is given. Or the
            `ltr.fitting.observations.Rows` that the scorer takes, on its device.
        y: labels, (n,), at least two different ones in some list.
        options: optimizer, penalty, tolerance and so on.
        qid: integers, (n,), the list of each observation; None means that all are one list.
        weight: weight of each observation, (n,), >= 0, passed to the loss as ``weight=``, and with `qid` to a loss of
            `ltr.losses` as the ``weight=`` and ``list_weight=`` of `ltr.lists.split_weights`.
        validation: rows held out, by which the best step is chosen if it decides; None chooses it by the objective.
        until: number of steps after which to end as chosen before, None for no such number.

    Attributes:
        index, seconds: number of steps done, and wall time so far, over all resumptions.
        best: the scorer's state_dict of the lowest objective so far, the start included, or with validation of the
            largest statistic; `best_index`, `best_objective` and `best_validation` describe it.
        stopped: why the fit ended, empty until then: ``"tolerance"`` (the gap closed), ``"stalled"`` (not even steepest
            descent lowers the objective, although the gap is open), ``"early_stop"`` (by the validation, or after
            `until` steps), ``"max_steps"``.

    Raises:
        ValueError, TypeError: an argument that breaks its rule; dropout with L-BFGS.
        NoSlopeError: a loss that is not convex, from a start at which its gradient is 0.
        FloatingPointError: while iterating or at the start: an objective that is not finite.

    Examples:
        >>> from ltr.rankers.scorers import LinearScorer
        >>> fit = Fit(LinearScorer(1), "ranknet", [[0.0], [2.0], [1.0]], [0, 0, 1], FitOptions(l2=0.1))
        >>> [round(step.objective, 6) for step in fit][-1], fit.converged
        (0.693147, True)
    """

    def __init__(
        self,
        scorer: nn.Module,
        loss: nn.Module | str,
        X: ArrayLike | Rows,
        y: ArrayLike,
        options: FitOptions | None = None,
        qid: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        *,
        validation: Validation | None = None,
        until: int | None = None,
    ) -> None:
        if isinstance(loss, str):
            loss = parse_loss(loss)
        self.scorer = scorer
        self.loss = loss
        self.options = FitOptions() if options is None else options
        _check(scorer, loss, self.options, qid)
        self.device = self.options.torch_device()
        self._until = until
        self._objective = Objective(scorer, loss, X, y, qid, weight, self.options)
        if validation is not None and not isinstance(validation.X, Rows):
            dtype, resident = self._objective.parameters[0].dtype, self.options.chunk_rows is None
            rows = Rows(validation.X, dtype=dtype, device=self.device, resident=resident)
            validation = dataclasses.replace(validation, X=rows)
        self._validation = validation
        self.index = 0
        self.seconds = 0.0
        self._stopped: StopReason = ""
        self._restarted = False
        self._smoothed: Smoothing | None = None
        self._last_slack = math.inf
        self._widened = 0
        self._evaluations = 0
        self._halved: list[int] = []  # steps after which the learning rate was halved
        if isinstance(loss, PairwiseLoss) and loss.function is HINGE and self.options.optimizer == "lbfgs":
            of, like = self._objective, self._objective.parameters[0].detach()
            self._smoothed = smoothed_hinge(loss, of.labels, of.groups, like, of.weight, of.list_weight)
        self._optimizer = self._new_optimizer()
        scorer.eval()
        objective, _ = self._objective.measure()
        if not math.isfinite(objective):
            raise self._not_finite(objective)
        if _not_convex(loss) and self._objective.slope() == 0:
            raise NoSlopeError(
                f"scorer must start where the loss has a slope, and {loss}, which is not convex, has none there "
                "(at weights 0 all scores are tied): fit a convex loss such as ranknet first and start from its weights"
            )
        self.best_index, self.best_objective = 0, objective
        self.best_validation = self._validated()
        if self.best_validation is not None and math.isnan(self.best_validation):
            raise ValueError("validation must have a list for which its statistic is defined, got none")
        self.best: dict[str, Tensor] = _copy(dict(scorer.state_dict()))

    @property
    def stopped(self) -> StopReason:
        """The reason why the fit ended, empty until then."""
        if not self._stopped and self._until is not None and self.index >= self._until:
            return "early_stop"
        return self._stopped or ("max_steps" if self.index >= self.options.max_steps else "")

    @property
    def weighted(self) -> bool:
        """Whether the observations have weights."""
        return self._objective.weight is not None

    @property
    def converged(self) -> bool:
        """Whether the fit ended with its gap closed or by validation; a fit that stalled has not converged."""
        return self.stopped in ("tolerance", "early_stop")

    def __iter__(self) -> Iterator[Step]:
        while not self.stopped:
            yield self._step()

    def run(self) -> None:
        """Train until the fit ends."""
        for _ in self:
            pass

    def validated(self) -> NDArray[np.float64]:
        """Return the statistic of each list held out, NaN where undefined, for the current parameters."""
        assert self._validation is not None
        return self._validation.values(self._scores_held(self._validation))

    def _scores_held(self, held: Validation) -> NDArray[np.float64]:
        rows, ids = held.X, held.qid
        assert isinstance(rows, Rows)
        found = np.zeros(len(rows))
        with torch.no_grad():
            for some in pieces_to_score(self.scorer, len(rows), ids):
                scores = score_rows(self.scorer, rows.take(some), None if ids is None else ids[some])
                found[some] = scores.double().cpu().numpy()
        return found

    def _validated(self) -> float | None:
        return None if self._validation is None else self._validation.mean(self._scores_held(self._validation))

    def load_best(self) -> None:
        """Load the best parameters so far into the scorer."""
        self.scorer.load_state_dict(self.best)

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of all that a resumption needs: plain containers, numbers and tensors."""
        return _copy({name.lstrip("_"): getattr(self, name) for name in _KEPT}) | {
            "loss": str(self.loss),
            "options": {name: getattr(self.options, name) for name in _RESUMED},
            "width": self._width,
            "multipliers": None if self._smoothed is None else self._smoothed.multipliers,
            "scorer": _copy(dict(self.scorer.state_dict())),
            "optimizer": _copy(self._optimizer.state_dict()),
            "best": _copy(self.best),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from the `state` of another fit with the same data, loss and options (max_steps may be raised).

        Raises ValueError for a state of other options, or a value that is not a state.
        """
        check_state(state)
        if state["loss"] != str(self.loss):
            raise ValueError(f"state must come from a fit of {self.loss}, got one of {state['loss']}")
        for name in _RESUMED:
            given, own = state["options"][name], getattr(self.options, name)
            if given != own:
                raise ValueError(f"state must come from a fit with {name} {own!r}, got {given!r}")
        if (state["best_validation"] is None) != (self._validation is None):
            raise ValueError("state must come from a fit with the same validation, got one of which only one has any")
        self.scorer.load_state_dict(state["scorer"])
        if self._smoothed is not None:
            self._smoothed = self._smoothed.at(state["width"], state["multipliers"])
        self._optimizer.load_state_dict(_copy(state["optimizer"]))
        self.best = {name: tensor.to(self.device) for name, tensor in _copy(state["best"]).items()}
        for name in _KEPT:
            setattr(self, name, _copy(state[name.lstrip("_")]))

    def _step(self) -> Step:
        before = self.state_dict()
        start = time.perf_counter()
        try:
            self.index += 1
            step = self._lbfgs(start) if self.options.optimizer == "lbfgs" else self._adam(start)
            if not math.isfinite(step.objective):
                raise self._not_finite(step.objective)
            if self._is_best(step):
                self.best_index, self.best_objective = self.index, step.objective
                self.best_validation = step.validation
                self.best = _copy(dict(self.scorer.state_dict()))
            elif self.decided:
                self._wait()
            self.seconds = step.seconds
        except BaseException:
            self.load_state_dict(before)
            raise
        return step

    @property
    def decided(self) -> bool:
        """Whether rows held out choose the best step and the end of the fit."""
        return self._validation is not None and self._validation.decides

    def _is_best(self, step: Step) -> bool:
        if step.validation is None or self.best_validation is None or not self.decided:
            return step.objective < self.best_objective
        assert self._validation is not None
        first = self.best_index == 0 and not self._validation.start_counts
        return first or step.validation > self.best_validation

    def _wait(self) -> None:
        """Halve the learning rate, or end the fit, if there was no better validation statistic for too long."""
        patience, last = self.options.patience, max([self.best_index, *self._halved[-1:]])
        if self.index - self.best_index >= patience:
            self._stopped = self._stopped or "early_stop"
        elif self.options.schedule == "plateau" and self.index >= max(1, patience // 3) + last:
            self._halved.append(self.index)

    def _lbfgs(self, start: float) -> Step:
        before = self._objective.evaluate(self._smoothed).objective
        self._evaluations = 0
        self._optimizer.step(self._closure)
        step, seen, slack = self._report(start)
        small = self.options.tolerance * abs(step.objective)
        # the relative decrease up to which this step counts as failed: a loss that is not convex may jump or have
        # kinks, and line searches that meet them take many evaluations and gain next to nothing, step after step
        struggled = self._evaluations > _EASY_SEARCH and _not_convex(self.loss)
        least = max(_NO_PROGRESS, self.options.tolerance) if struggled else _NO_PROGRESS
        if step.gap <= small:
            self._stopped = "tolerance"
        elif self._smoothed is not None and slack > small / 2 and step.gap - slack <= slack / 2:
            self._go_on_with(self._smoothed.sharper(self._objective.scores(), slack, self._last_slack, small / 2))
            self._last_slack = slack
        elif before - seen > least * abs(before):
            self._restarted = False
        elif not self._restarted:
            # a line search may have failed because of the stored curvature: try steepest descent once
            self._optimizer = self._new_optimizer()
            self._restarted = True
        elif isinstance(self._smoothed, SmoothedHinge) and self._widened < _WIDENINGS:
            # too narrow for the precision of the objective
            self._widened += 1
            self._go_on_with(self._smoothed.wider(self._objective.scores()))
        else:
            self._stopped = "stalled"
        return step

    def _go_on_with(self, smoothed: Smoothing) -> None:
        self._smoothed = smoothed
        self._restarted = False
        self._optimizer = self._new_optimizer()

    @property
    def _width(self) -> float:
        return 0.0 if self._smoothed is None else self._smoothed.width

    def _closure(self) -> float:
        self._evaluations += 1
        seen = self._objective.evaluate(self._smoothed)
        usable = seen.objective < _OUT_OF_RANGE / _SCALE and math.isfinite(seen.grad_norm)
        for parameter in self._objective.parameters:
            assert parameter.grad is not None
            parameter.grad = parameter.grad * _SCALE if usable else torch.zeros_like(parameter)
        return seen.objective * _SCALE if usable else _OUT_OF_RANGE

    def _adam(self, start: float) -> Step:
        seed, clip = (self.options.seed, self.index), self.options.clip
        norm = torch.zeros(())
        with own_randomness(self.device) if draws_by_torch(self.scorer) else contextlib.nullcontext():
            self.scorer.train()
            try:
                batches = self._batches(np.random.default_rng(seed))
                for number, rows in enumerate(batches):
                    objective = self._objective.estimate(rows, (*seed, number))
                    if not math.isfinite(objective):
                        raise self._not_finite(objective)
                    norm = nn.utils.clip_grad_norm_(self._objective.parameters, math.inf if clip is None else clip)
                    rate = self.options.rate(self.index - 1 + (number + 1) / len(batches))
                    for group in self._optimizer.param_groups:
                        group["lr"] = rate * _HALVING ** len(self._halved)
                    self._optimizer.step()
            finally:
                self.scorer.eval()
        if self.decided:
            objective, loss = self._objective.measure()
            validation = self._validated() if math.isfinite(objective) else None
            seconds = self.seconds + time.perf_counter() - start
            return Step(self.index, objective, loss, float(norm), seconds, math.inf, validation=validation)
        step, _, _ = self._report(start)
        if step.gap <= self.options.tolerance * abs(step.objective):
            self._stopped = "tolerance"
        return step

    def _batches(self, generator: np.random.Generator) -> Sequence[NDArray[np.int64] | None]:
        size, groups = self.options.batch_size, self._objective.groups
        if size is None:
            return [None]
        if groups is None:
            return item_batches(self._objective.labels, size, generator)
        return list_batches(groups, size, generator)

    def _report(self, start: float) -> tuple[Step, float, float]:
        """Return the step just done, the objective that the optimiser sees, and the slack between the two."""
        seen = self._objective.evaluate(self._smoothed)
        objective, loss, slack = seen.objective, seen.loss, 0.0
        if self._smoothed is not None:
            objective, loss = self._objective.measure()
            slack = self._objective.slack(self._smoothed)
        if self.options.l2 > 0:
            rest = seen.grad_norm**2 / (2 * self.options.l2)
        else:
            rest = seen.grad_norm * max(1.0, self._objective.weight_norm())
        seconds = self.seconds + time.perf_counter() - start
        step = Step(self.index, objective, loss, seen.grad_norm, seconds, slack + rest, self._width, self._validated())
        return step, seen.objective, slack

    def _new_optimizer(self) -> torch.optim.Optimizer:
        parameters, options = self._objective.parameters, self.options
        if options.optimizer == "adam" and options.weight_decay == 0:
            return torch.optim.Adam(parameters, lr=options.learning_rate, fused=True)
        if options.optimizer == "adam":
            decayed = {id(p) for p in self._objective.penalised}
            kept = {"params": [p for p in parameters if id(p) not in decayed], "weight_decay": 0.0}
            groups: list[dict[str, Any]] = [{"params": self._objective.penalised}, kept]
            return torch.optim.AdamW(groups, lr=options.learning_rate, weight_decay=options.weight_decay, fused=True)
        # one iteration per call: max_eval must leave room for the line search (its default does not), and no absolute
        # tolerance of torch's may end a fit whose objective is small
        return _Lbfgs(
            parameters,
            max_iter=1,
            max_eval=1 + _LINE_SEARCH,
            history_size=_HISTORY,
            tolerance_grad=0.0,
            tolerance_change=0.0,
            line_search_fn="strong_wolfe",
        )

    def _not_finite(self, objective: float) -> FloatingPointError:
        options = self.options
        if self.index == 0:
            return FloatingPointError(f"the objective at the start is {objective}: standardise X")
        cure = f"lower learning_rate ({options.learning_rate:g})" if options.optimizer == "adam" else "standardise X"
        return FloatingPointError(
            f"step {self.index}: the objective is {objective}; {cure} or raise l2 ({options.l2:g}). "
            f"`best` keeps the parameters of step {self.best_index}, objective {self.best_objective:g}"
        )


class _Lbfgs(torch.optim.LBFGS):
    """L-BFGS whose methods do not keep out of `torch.compile`, which takes a second to import and is not used here."""

    add_param_group = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    zero_grad = inspect.unwrap(torch.optim.Optimizer.zero_grad)
    state_dict = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


def _not_convex(loss: nn.Module) -> bool:
    return isinstance(loss, RankingLoss) and not loss.convex


def check_state(state: object) -> None:
    """Raise ValueError, with what is missing, unless a state has all entries of `Fit.state_dict`."""
    missing = [name for name in _STATE if not isinstance(state, Mapping) or name not in state]
    if missing:
        what = f"{type(state).__name__} without {', '.join(missing)}"
        raise ValueError(f"state must be a state_dict of a Fit, got {what}")


def _check(scorer: nn.Module, loss: nn.Module, options: FitOptions, qid: ArrayLike | None) -> None:
    for name, value, kind, allowed in (
        ("scorer", scorer, nn.Module, "a torch module"),
        ("loss", loss, nn.Module, "a loss, its name or a torch module"),
        ("options", options, FitOptions, "FitOptions or None"),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be {allowed}, got {value!r}")
    if options.batch_size == 1 and qid is None:
        raise ValueError("batch_size must be at least 2 observations, got 1: one alone makes no pair")
    if options.batch_size is not None and isinstance(loss, RankingLoss):
        sums = {"reduction": loss.reduction} | ({"pairs": loss.pairs} if qid is None else {})
        if "sum" in sums.values():
            rule = "must be a mean, of which a mini-batch gives an estimate, for batch_size"
            raise ValueError(f"loss {rule}; got {loss.name}")
    drops = any(isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0 for m in scorer.modules())
    if options.optimizer == "lbfgs" and drops:
        raise ValueError("scorer must not drop units under L-BFGS: use optimizer 'adam' or dropout 0")
    if options.optimizer == "adam" and any(isinstance(m, nn.modules.batchnorm._NormBase) for m in scorer.modules()):
        raise ValueError("scorer must score each row by itself, got one that normalises batches: use LayerNorm")


def _copy(value: Any) -> Any:  # noqa: ANN401 (a tree of any leaves)
    """Return a tree with its own containers and tensors; `copy.deepcopy` takes ten times as long for a tensor."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value if value is None or isinstance(value, int | float) else copy.deepcopy(value)
