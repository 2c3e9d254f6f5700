"""A run under torchrun: the first process runs it, the others help to train the surrogates and then leave.

    torchrun --standalone --nproc-per-node 4 -m trainers run config.toml

The first process does everything that a single process does: it reads the data, writes the run folder, shows and logs,
fits the baselines and runs the exact stage. A helper reads no files. It gets its share of the training set, whole
queries, and then waits for the next surrogate and its checkpoint; all processes fit it together (`ltr.fitting.Fit`).
The helpers end when no surrogate is left. A helper whose first process has ended ends without a message: torchrun
reports what happened.
"""

from __future__ import annotations

import contextlib
import datetime
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ltr.data.shares import cuts_between_queries
from ltr.fitting import FitOptions
from ltr.fitting.team import ALONE, Team, others
from ltr.lists import numbered
from ltr.training import DeviceName
from trainers.config import Config
from trainers.methods import first_stage_ranker, fit_surrogate, quiet_surrogates
from trainers.task.data import Part, Split

Job = tuple[Config, str, dict[str, Any] | None]
"""The options of a run, a loss to train on, and the checkpoint to start from."""

# how long helpers wait for the first process, which may solve for an optimum; that it has died they see at once
_PATIENCE = datetime.timedelta(days=7)


class Stopped(KeyboardInterrupt):
    """Raised in all processes after the same step, when the user asked the first one to stop."""


class Helpers:
    """The other processes of a run, as each of them sees them; in a single process its methods do next to nothing."""

    def __init__(self, team: Team | None = None) -> None:
        self._team = ALONE if team is None else team
        self._busy = False
        self._own: tuple[Part, Part | None] | None = None

    @contextlib.contextmanager
    def training(self, job: Job) -> Iterator[None]:
        """Return a context in which helpers train on a loss with the first process, until the same step."""
        self.tell(job)
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
        if self._team.agreed(float(stop)):
            raise Stopped

    def release(self) -> None:
        """Let the helpers leave; one that still expects a step sees that the first process does not answer."""
        if self._team.size > 1:
            if self._team.rank == 0 and not self._busy:
                with contextlib.suppress(ConnectionError):
                    self.tell(None)
            self._team = ALONE
            dist.destroy_process_group()

    def tell(self, job: Job | None) -> Job | None:
        """Send the next job to the helpers, None when they can leave; a helper receives it, whatever it gives."""
        if self._team.size == 1:
            return job
        box = [job]
        with others():
            dist.broadcast_object_list(box, 0, device=torch.device("cpu"))
        return box[0]

    def shares(self, split: Split | None) -> tuple[Part, Part | None]:
        """Return this process's rows of the training set and of the validation set, which the first process sends.

        Args:
            split: the data of the first process; None in a helper.
        """
        if self._team.size == 1:
            assert split is not None
            return split.train, split.validation
        if self._own is None:
            sets = (None, None) if split is None else (split.train, split.validation)
            train, validation = (self._share(part) for part in sets)
            assert train is not None
            self._own = train, validation
        return self._own

    def _share(self, part: Part | None) -> Part | None:
        """Return this process's rows of a set, which only the first process has."""
        if self._team.rank > 0:
            box: list[Any] = [None]
            with others():
                dist.recv_object_list(box, 0, device=torch.device("cpu"))
                if box[0] is None:
                    return None
                own, shape, dtype = box[0]
                features = torch.empty(shape, dtype=dtype)
                if len(features):
                    dist.recv(features, 0)
            return replace(own, X=features.numpy())
        mine, part = None, None if part is None else _query_by_query(part)
        cuts = [] if part is None else cuts_between_queries(part.qid, len(part.y), self._team.size)
        for rank in reversed(range(self._team.size)):
            mine = None if part is None else part.take(slice(*cuts[rank : rank + 2]))
            if rank > 0:
                features = torch.empty(0) if mine is None else torch.from_numpy(np.ascontiguousarray(mine.X))
                given = None if mine is None else (replace(mine, X=mine.X[:0]), features.shape, features.dtype)
                with others():
                    dist.send_object_list([given], rank, device=torch.device("cpu"))
                    if len(features):
                        dist.send(features, rank)
        return mine


def _query_by_query(part: Part) -> Part:
    """Return the rows of a set with those of a query one after the other, in the order of the queries' first rows."""
    if part.qid is None or np.count_nonzero(np.diff(part.qid)) == part.n_queries - 1:
        return part
    return part.take(np.argsort(numbered(torch.from_numpy(part.qid)).numpy(), kind="stable"))


def assist(helpers: Helpers) -> None:
    """Train as a helper on what the first process trains on, until that needs no help any more."""
    with contextlib.suppress(ConnectionError):
        while (job := helpers.tell(None)) is not None:
            config, method, state = job
            train, validation = helpers.shares(None)
            ranker = first_stage_ranker(config, method, lambda step, ranker: helpers.check(False))
            # the first process meets the same errors and reports them
            with quiet_surrogates(), contextlib.suppress(Stopped, FloatingPointError, ValueError):
                fit_surrogate(ranker, train, validation, state)


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
