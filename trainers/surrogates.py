"""The surrogate rankers of a run: trained step by step, logged, interrupted and gone on with."""

from __future__ import annotations

import contextlib
import time
from dataclasses import asdict
from typing import Any

import torch

from ltr.fitting import Fit, Step
from ltr.rankers import LinearRanker
from ltr.rankers.scorers import Standardize
from trainers.config import Config
from trainers.context import Context, by_tag, save_ranker, save_scores, save_torch
from trainers.files import read_json, reading, write_json
from trainers.helpers import Helpers, Stopped
from trainers.inputs import load_split
from trainers.rankers import quiet_surrogates, surrogate_ranker
from trainers.results import Row
from trainers.runs import MethodFolder, RunError
from trainers.task import own_loss
from trainers.tracking import Tracker

__all__ = ["assist", "train_surrogate"]

_SECONDS_BETWEEN_CHECKPOINTS = 5.0


def train_surrogate(context: Context, name: str) -> Row:
    """Train on one loss from the start or from the checkpoint, and leave the folder finished.

    When the user asks to stop, the row has the status ``interrupted`` and describes the best weights so far; the
    next call goes on bit for bit where this one stopped.

    Args:
        context: the run.
        name: of the loss.

    Raises:
        RunError: a training that leaves the floating point range.
    """
    folder = context.run.method(name)
    state = _checkpoint(folder)
    optimum = _certified_optimum(context, name, folder) if context.config.surrogate.certify else None
    tensorboard = context.config.tracking.tensorboard
    keep = None if state is None else int(state["index"])
    with Tracker(folder.path, folder.records, tensorboard=tensorboard, keep=keep) as tracker:
        training = _Training(context, name, folder, tracker, optimum)
        interrupted = training.run(state)
        scores = context.scores_of(training.ranker)
        row = training.row(interrupted, context.statistics(scores))
        save_ranker(folder, training.ranker)
        save_scores(folder, scores)
        if interrupted:
            return row
        assert row.loss is not None
        final = by_tag({"train": row.train, "test": row.test}) | {"loss/convex": row.loss}
        tracker.finish(context.hyperparameters(name), final)
    folder.finish(asdict(row))
    return row


def assist(config: Config, helpers: Helpers) -> None:
    """What a helper does: train on what the first process trains on, until that needs no help any more."""
    train = load_split(config).train
    with contextlib.suppress(ConnectionError):
        while (job := helpers.next_job()) is not None:
            name, state = job
            ranker = surrogate_ranker(config, name, lambda step, ranker: helpers.check(False))
            # the first process meets the same, and says so
            with quiet_surrogates(), contextlib.suppress(Stopped, FloatingPointError, ValueError):
                ranker.fit(train.X, train.y, qid=train.qid, resume=state)


def _checkpoint(folder: MethodFolder) -> dict[str, Any] | None:
    """The state of an earlier training that did not end, None when there is none."""
    if not folder.checkpoint.exists():
        return None
    with reading(folder.checkpoint):
        state: dict[str, Any] = torch.load(folder.checkpoint, weights_only=True)
        int(state["index"])
    return state


class _Training:
    """One training under way: what happens at each step, and what is known at its end."""

    def __init__(
        self, context: Context, name: str, folder: MethodFolder, tracker: Tracker, optimum: float | None
    ) -> None:
        self._context, self._name, self._folder, self._tracker = context, name, folder, tracker
        self._optimum = optimum
        self._saved = time.monotonic()
        self.ranker = surrogate_ranker(context.config, name, self._on_step)

    def run(self, state: dict[str, Any] | None) -> bool:
        """Train to the end; whether the user stopped it before."""
        train = self._context.split.train
        self._context.display.begin(self._name, self._context.config.surrogate.max_steps)
        try:
            with quiet_surrogates(), self._context.helpers.training(self._name, state):
                self.ranker.fit(train.X, train.y, qid=train.qid, resume=state)
        except KeyboardInterrupt:
            if self.ranker.fit_ is None:
                raise
            return True
        except ConnectionError as error:
            if self.ranker.fit_ is None:
                raise RunError(f"surrogate: training on {self._name} could not begin: {error}") from error
            self._save_checkpoint(self.ranker.fit_)
            if self._context.stop.raised:  # the user stopped the helpers too
                return True
            done = f"training on {self._name} ended after step {self.ranker.fit_.index}, which is kept"
            raise RunError(f"surrogate: {done}: {error}") from error
        except FloatingPointError as error:
            raise RunError(f"surrogate: training on {self._name} failed: {error}") from error
        return False

    def row(self, interrupted: bool, statistics: dict[str, dict[str, float | None]]) -> Row:
        """The method's row, for the weights of the lowest objective."""
        ranker, train = self.ranker, self._context.split.train
        assert ranker.fit_ is not None
        weights = ranker.linear_weights
        status = "interrupted" if interrupted else "converged" if ranker.converged_ else ranker.fit_.stopped
        return Row(
            method=self._name,
            status=status,
            seconds=ranker.fit_.state_dict()["seconds"],
            train=statistics["train"],
            test=statistics["test"],
            loss=own_loss(self._name, ranker.decision_function(train.X), train),
            excess=None if self._optimum is None else ranker.objective_ - self._optimum,
            steps=ranker.n_iter_,
            weights=None if weights is None else weights.tolist(),
        )

    def _on_step(self, step: Step, ranker: LinearRanker) -> None:
        assert ranker.fit_ is not None
        context, stop = self._context, False
        if step.index % context.config.tracking.every == 0 or ranker.fit_.stopped:
            values = {"loss/convex": step.loss, "loss/objective": step.objective}
            if self._optimum is not None:
                values["loss/excess"] = step.objective - self._optimum
            values |= by_tag(context.statistics(context.scores_of(ranker)))
            self._tracker.log(step.index, values)
            try:
                context.display.step(self._name, step.index, values)
            except KeyboardInterrupt:
                stop = True
        stop = stop or context.stop.raised
        if stop or time.monotonic() - self._saved >= _SECONDS_BETWEEN_CHECKPOINTS:
            self._save_checkpoint(ranker.fit_)
        context.helpers.check(stop)

    def _save_checkpoint(self, fit: Fit) -> None:
        # the lines first: a checkpoint never stands behind steps that are not logged
        self._tracker.flush()
        save_torch(self._folder.checkpoint, fit.state_dict())
        self._saved = time.monotonic()


def _certified_optimum(context: Context, name: str, folder: MethodFolder) -> float:
    """The optimum of the objective on standardised features, solved for once a run."""
    path = folder.path / "optimum.json"
    known = read_json(path)
    if known is None:
        from ltr.convex import certified_optimum

        train = context.split.train
        features = Standardize.fit(train.X)(torch.from_numpy(train.X)).numpy()
        context.display.note(f"{name}: solving for the certified optimum")
        optimum = certified_optimum(name, features, train.y, l2=context.config.surrogate.l2, bias=True)
        known = {"value": optimum.value}
        write_json(path, known)
    with reading(path):
        return float(known["value"])
