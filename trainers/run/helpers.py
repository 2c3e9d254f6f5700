"""A run under torchrun: the first process runs it, the others help to train the surrogates and then leave.

    torchrun --standalone --nproc-per-node 4 -m trainers run config.toml

The first process does everything that a single process does: it writes the run folder, shows and logs, fits the
baselines and runs the exact stage. A helper loads the data and waits for the next surrogate and its checkpoint; then
all processes make the same `ltr.fitting.Fit`. The helpers end when no surrogate is left. A helper whose first process
has ended ends without a message: torchrun reports what happened.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist

from ltr.fitting import FitOptions
from ltr.fitting.observations import Team, others
from ltr.training import DeviceName
from trainers.config import Config
from trainers.methods import first_stage_ranker, quiet_surrogates, units_of, weights_of
from trainers.task.data import split_of

Job = tuple[str, dict[str, Any] | None]
"""A loss to train on, and the checkpoint to start from."""

# how long helpers wait for the first process, which may solve for an optimum; that it has died they see at once
_PATIENCE = datetime.timedelta(days=7)


class Stopped(KeyboardInterrupt):
    """Raised in all processes after the same step, when the user asked the first one to stop."""


class Helpers:
    """The other processes of a run, as each of them sees them; in a single process its methods do next to nothing."""

    def __init__(self, team: Team | None = None) -> None:
        self._team = Team(alone=True) if team is None else team
        self._busy = False

    @contextlib.contextmanager
    def training(self, name: str, state: dict[str, Any] | None) -> Iterator[None]:
        """Return a context in which helpers train on a loss like the first process, until the same step."""
        self.tell((name, state))
        self._busy = True
        try:
            yield
        except Stopped:
            self._busy = False
            raise
        self._busy = False

    def check(self, stop: bool) -> None:
        """Go on after a step or stop, as the first process decides.

        Args:
            stop: whether this is the last step; ignored in helpers.

        Raises:
            Stopped: in all processes.
            ConnectionError: another process has ended.
        """
        if self._team.agreed(float(stop), torch.device("cpu")):
            raise Stopped

    def release(self) -> None:
        """Let the helpers leave; one that still expects a step sees that the first process does not answer."""
        if self._team.size > 1:
            if self._team.rank == 0 and not self._busy:
                with contextlib.suppress(ConnectionError):
                    self.tell(None)
            self._team = Team(alone=True)
            dist.destroy_process_group()

    def tell(self, job: Job | None) -> Job | None:
        """Send the next job to the helpers, None when they can leave; a helper receives it, whatever it gives."""
        if self._team.size == 1:
            return job
        box = [job]
        with others():
            dist.broadcast_object_list(box, 0, device=torch.device("cpu"))
        return box[0]


def assist(config: Config, helpers: Helpers) -> None:
    """Train as a helper on what the first process trains on, until that needs no help any more."""
    split = split_of(config.data, config.seed)
    train = split.train
    with contextlib.suppress(ConnectionError):
        while (job := helpers.tell(None)) is not None:
            method, state = job
            ranker = first_stage_ranker(config, method, lambda step, ranker: helpers.check(False))
            # the first process meets the same errors and reports them
            with quiet_surrogates(), contextlib.suppress(Stopped, FloatingPointError, ValueError):
                ranker.fit(
                    train.X,
                    train.y,
                    qid=train.qid,
                    **units_of(train),
                    **weights_of(train),
                    validation_set=split.validation_set,
                    resume=state,
                )


def is_helper() -> bool:
    """Return whether torchrun started this process beside a first one."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ["RANK"] != "0"


@contextlib.contextmanager
def together(device: DeviceName) -> Iterator[Helpers]:
    """Yield the processes that torchrun started for this run, or this one alone."""
    if "TORCHELASTIC_RUN_ID" in os.environ and os.environ["WORLD_SIZE"] != "1":
        cuda = FitOptions(device=device).torch_device().type == "cuda"
        if cuda:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=_PATIENCE)
    helpers = Helpers(Team())
    try:
        yield helpers
    finally:
        helpers.release()
