"""The surrogate rankers of a run: trained step by step, logged, interrupted and gone on with."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import torch

from ltr.base_rankers.surrogate import SurrogateRanker
from ltr.fitting import Fit, Step
from ltr.losses import parse_loss
from ltr.scorers import Standardize
from trainers.context import Context, by_tag, save_ranker, save_scores, save_torch
from trainers.files import read_json, reading, write_json
from trainers.results import Row
from trainers.runs import MethodFolder, RunError
from trainers.tracking import Tracker

__all__ = ["train_surrogate"]

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
        options = context.config.surrogate
        self._context, self._name, self._folder, self._tracker = context, name, folder, tracker
        self._optimum = optimum
        self._saved = time.monotonic()
        self.ranker = SurrogateRanker(
            name,
            scorer=options.scorer,
            hidden=options.hidden or (64, 32),
            l2=options.l2,
            optimizer=options.optimizer,
            max_steps=options.max_steps,
            learning_rate=options.learning_rate,
            batch_size=options.batch_size,
            tolerance=options.tolerance,
            seed=context.config.seed,
            device=options.device,
            on_step=self._on_step,
        )

    def run(self, state: dict[str, Any] | None) -> bool:
        """Train to the end; whether the user stopped it before."""
        train = self._context.split.train
        self._context.display.begin(self._name, self._context.config.surrogate.max_steps)
        try:
            self.ranker.fit(train.X, train.y, qid=train.qid, resume=state)
        except KeyboardInterrupt:
            if self.ranker.fit_ is None:
                raise
            return True
        except FloatingPointError as error:
            raise RunError(f"surrogate: training on {self._name} failed: {error}") from error
        return False

    def row(self, interrupted: bool, statistics: dict[str, dict[str, float | None]]) -> Row:
        """The method's row, for the weights of the lowest objective."""
        ranker, train = self.ranker, self._context.split.train
        assert ranker.fit_ is not None
        scores = torch.from_numpy(ranker.decision_function(train.X))
        qid = None if train.qid is None else torch.from_numpy(train.qid)
        weights = ranker.linear_weights
        status = "interrupted" if interrupted else "converged" if ranker.converged_ else ranker.fit_.stopped
        return Row(
            method=self._name,
            status=status,
            seconds=ranker.fit_.state_dict()["seconds"],
            train=statistics["train"],
            test=statistics["test"],
            loss=float(parse_loss(self._name)(scores, torch.from_numpy(train.y), qid=qid)),
            excess=None if self._optimum is None else ranker.objective_ - self._optimum,
            steps=ranker.steps_,
            weights=None if weights is None else weights.tolist(),
        )

    def _on_step(self, step: Step, ranker: SurrogateRanker) -> None:
        assert ranker.fit_ is not None
        context = self._context
        if step.index % context.config.tracking.every == 0 or ranker.fit_.stopped:
            values = {"loss/convex": step.loss, "loss/objective": step.objective}
            if self._optimum is not None:
                values["loss/excess"] = step.objective - self._optimum
            values |= by_tag(context.statistics(context.scores_of(ranker)))
            self._tracker.log(step.index, values)
            try:
                context.display.step(self._name, step.index, values)
            except KeyboardInterrupt:
                self._save_checkpoint(ranker.fit_)
                raise
        if context.stop.raised or time.monotonic() - self._saved >= _SECONDS_BETWEEN_CHECKPOINTS:
            self._save_checkpoint(ranker.fit_)
        context.stop.check()

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
