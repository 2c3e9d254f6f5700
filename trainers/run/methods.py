"""The methods of a run: fitted by `trainers.methods`, logged, shown, stopped, resumed, and kept in files."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ltr.cards import Card, CardRanker
from ltr.checks import named_object
from ltr.estimator_names import EstimatorName
from ltr.exact.solution import TracePoint
from ltr.files import read_arrays
from ltr.fitting import Fit
from ltr.rankers import AutoRanker, Choice, Ranker
from ltr.rankers.files import NewerVersionError, UnknownClassError, read_state
from ltr.rankers.scorers import Standardize
from trainers.cards import Listed, write_card
from trainers.config import CARD, EXACT, Config
from trainers.display import Display
from trainers.files import Json, RunError, read_json, reading, write_atomic
from trainers.loggers import Tracker
from trainers.methods import INTERRUPTED, Starts, Watch, binding_constraints, fit, unsaved_because
from trainers.plan import Cell, plan_of_run
from trainers.records import is_trivial
from trainers.run.folder import InnerSplits, MethodFolder, RunFolder
from trainers.run.proofs import prove_card, prove_exact, save_solution
from trainers.stopping import StopFlag
from trainers.tables import markdown_table, number
from trainers.task.measures import Scores, Task, by_tag
from trainers.task.raw import own_rows, raw_columns

_FREE_SECONDS, _TRACKED = 5.0, 0.05  # that points of a curve may take: seconds, and beyond them share of the time
_SECONDS_BETWEEN_CHECKPOINTS = 5.0


@dataclass(frozen=True)
class Context(Task):
    """A run under way."""

    run: RunFolder  # its folder
    display: Display  # what the user sees
    stop: StopFlag  # flag that is raised when the user asks to stop
    unsaved: dict[str, Ranker] = field(default_factory=dict)  # fitted rankers that no file holds, by method

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """Results to compute, by method."""
        return {cell.method: cell for cell in plan_of_run(self.config, self.split.facts["sha256"]).cells.values()}


def run_method(context: Context, method: str, records: Sequence[Json]) -> Json:
    """Fit a method of a run, log it, leave its folder finished, and return its record.

    A training goes on bit for bit from its checkpoint, an exact stage starts from its last incumbent. When the user
    asks to stop, the record has the status ``interrupted``, describes the best weights so far, and leaves the folder
    unfinished; a method that keeps nothing of what it has done raises KeyboardInterrupt.
    """
    config, folder = context.config, context.run.method(method)
    exact, card, surrogate = method == EXACT, method == CARD, method in config.surrogate.losses
    state: dict[str, Any] | None = None
    if surrogate and folder.checkpoint.exists():
        with reading(folder.checkpoint):
            state = torch.load(folder.checkpoint, weights_only=True)
    keep = None if state is None else int(state["index"])
    optimum = _certified_optimum(context, method) if surrogate and config.surrogate.certify else None
    starts = _starts(context, folder, records) if exact else None
    with Tracker(config.tracking.loggers, folder.path, config.name, method, keep=keep) as tracker:
        steps = {"rankboost": config.baselines.rankboost.rounds}
        limit = {EXACT: config.exact.time_limit, CARD: config.card.time_limit}.get(method)
        context.display.begin(method, config.surrogate.max_steps if surrogate else steps.get(method), limit)
        try:
            fitted = fit(context, context.cells[method], _RunWatch(context, method, tracker, state, optimum), starts)
        except FloatingPointError as error:
            raise RunError(f"surrogate: training on {method} failed: {error}") from error
        record = fitted.record
        interrupted = record["status"] == INTERRUPTED
        if not interrupted:
            final = by_tag(record) | ({} if record["loss"] is None else {"loss/convex": record["loss"]})
            if exact or card or record["steps"] is None:
                # methods without steps draw level lines as long as the longest training
                if (made := record.get("choice")) is not None:
                    final |= {f"exact/{name}": made[key] for name, key in _PROMISED.items()}
                    choice = _choice_text(Choice.from_dict(made))
                    tracker.each("log_text", "exact/choice", choice)
                trained = (before["steps"] or 0 for before in records if before["method"] != EXACT)
                tracker.level(max(trained, default=0), final)
            if card:
                found = Card.from_dict(record["card"])
                tracker.each("log_text", "card", found.to_markdown())
                tracker.each("log_figure", "card", found.plot())
            tracker.finish(_parameters(config, method), final)
    for failure in tracker.failures:
        context.display.note(f"{method}: {failure}")
    buffer = io.BytesIO()
    arrays = {"train": fitted.scores.train, "test": fitted.scores.test}
    if fitted.base is not None:
        arrays |= {"base_train": fitted.base.train, "base_test": fitted.base.test}
    if isinstance(fitted.ranker, AutoRanker) and fitted.ranker.out_of_fold_ is not None:
        arrays["out_of_fold"] = fitted.ranker.out_of_fold_
    np.savez(buffer, allow_pickle=False, **arrays)
    write_atomic(folder.scores, buffer.getvalue())
    if exact:
        save_solution(folder, context, fitted.ranker)
        if not interrupted and not prove_exact(folder, context, fitted):
            record["status"], interrupted = INTERRUPTED, True
    elif unsaved_because(fitted.ranker):
        context.unsaved[method] = fitted.ranker
    else:
        folder.save(fitted.ranker)
    if not interrupted:
        if card:
            if fitted.ranker.card_.intercept is None:  # ranges are about rank statistics
                prove_card(folder, context, fitted)
            _write_card(context, folder, Card.from_dict(record["card"]), fitted.ranker)
        folder.finish(record)
    return record


def _parameters(config: Config, method: str) -> dict[str, bool | int | float | str]:
    """Return what TensorBoard compares methods and runs by: the same keys for every method."""
    found: dict[str, bool | int | float | str] = {"method": method, "seed": config.seed}
    found |= {"data": config.data.name or Path(str(config.data.path)).stem, "top_k": str(config.exact.top_k)}
    found |= {name: getattr(config.surrogate, name) for name in ("scorer", "optimizer", "l2")}
    return found | {name: getattr(config.exact, name) for name in ("statistic", "base", "C", "margin")}


def _starts(context: Context, folder: MethodFolder, records: Sequence[Json]) -> Starts:
    """Return what the exact stage starts from: its base, all linear rankers, and the incumbent of a stopped one."""
    columns, more = context.split.feature_names, []
    bound = binding_constraints(context.config, columns) is not None
    linear = (record for record in records if record["weights"] is not None)
    by_id = {context.cells[record["method"]].id: record["weights"] for record in linear}
    if (earlier := read_json(folder.solution)) is not None:
        with reading(folder.solution):
            if (weights := earlier["weights"]) is not None:
                more = [[float(weights[name]) for name in columns]]
    return Starts(None if bound else _base_ranker(context), by_id, more)


def _base_ranker(context: Context) -> Ranker | None:
    """Return the fitted base of the exact stage; None where it has to be fitted again, because no file holds it."""
    base = context.config.base
    folder = context.run.method(base)
    if not folder.model.exists():
        if base not in context.unsaved:
            context.display.note(f"{base}: fitted again for the exact stage, because its model was not saved")
        return context.unsaved.get(base)
    ranker = load_ranker(folder).name_features(context.split.feature_names)
    if isinstance(ranker, AutoRanker):
        with reading(folder.scores):
            ranker.out_of_fold_ = read_arrays(folder.scores)["out_of_fold"]
    return ranker


def _write_card(context: Context, folder: MethodFolder, card: Card, ranker: CardRanker) -> None:
    """Write a card, its certificate and the ranked rows of both sets into the folder of the method."""
    options, split = context.config.data, context.split
    rows = [part.rows for _, part in split.parts]
    if split.tables is not None:
        rows = [table.in_file(members) for table, members in zip(split.tables, rows, strict=True)]
    parts = zip(("training", "test"), raw_columns(split), own_rows(split), rows, strict=True)
    write_card(replace(card, missing=tuple(options.missing)), ranker, folder.path, [Listed(*part) for part in parts])


_PROMISED = {"expected_gain": "expected", "expected_gain_low": "low", "expected_gain_high": "high"}


def _choice_text(choice: Choice) -> str:
    """Return a choice in Markdown: what to expect, and the candidates with their gains on the inner splits."""
    gains = ([name, number(choice.gains[name]), "yes" if name == choice.chosen else ""] for name in choice.candidates)
    return f"{choice}\n\n{markdown_table(['candidate', f'{choice.statistic} gained on inner splits', 'chosen'], gains)}"


class _RunWatch(Watch):
    """Logs and shows a method, keeps checkpoints of its training, and stops it when the user asks."""

    def __init__(
        self, context: Context, method: str, tracker: Tracker, state: dict[str, Any] | None, optimum: float | None
    ) -> None:
        self.resume, self.optimum = state, optimum
        if method == EXACT and context.config.exact.choose:
            self.inner = InnerSplits(context.run.method(method).inner)
        self._context, self._method, self._tracker = context, method, tracker
        self._saved, self._began, self._millisecond = time.monotonic(), time.time(), -1
        self._first = self._asked = time.perf_counter()
        self._tracked = 0.0  # seconds

    def wants(self, index: int, last: int | None) -> bool:
        self._asked, every = time.perf_counter(), self._context.config.tracking.every
        if every != "auto":
            return index % every == 0 or index == last
        return index == last or self._tracked <= max(_FREE_SECONDS, _TRACKED * (self._asked - self._first))

    def log(self, step: int, values: Mapping[str, float], when: float | None = None) -> None:
        self._tracker.log(step, values, when=when)
        self._tracked += time.perf_counter() - self._asked  # with the statistics, which take the most of it

    def stepped(self, index: int, values: Mapping[str, float], fit: Fit | None) -> None:
        stop = False
        try:
            self._context.display.step(index, values)
        except KeyboardInterrupt:
            if fit is None:
                raise
            stop = True
        if fit is None:
            self._context.stop.check()
            return
        stop = stop or self._context.stop.raised
        if stop or time.monotonic() - self._saved >= _SECONDS_BETWEEN_CHECKPOINTS:
            self._save_checkpoint(fit)
        if stop:
            raise KeyboardInterrupt

    def counted(self, done: int, total: int, what: str) -> None:
        self._context.display.counted(self._method, done, total, what)
        self._context.stop.check()

    def traced(self, point: TracePoint, problem: Any) -> None:  # noqa: ANN401
        # two points of one millisecond must not share a step: the second would replace the first
        self._millisecond = max(self._millisecond + 1, round(1000 * point.seconds))
        values = {"exact/incumbent": point.incumbent, "exact/bound": point.bound, "exact/gap": point.gap}
        self._tracker.log(self._millisecond, values, when=self._began + point.seconds)
        self._context.display.progress(point, is_trivial(point.bound, problem.trivial_bound))

    def _save_checkpoint(self, fit: Fit) -> None:
        self._tracker.each("flush")  # before the checkpoint, which must not follow steps that are not logged
        buffer = io.BytesIO()
        torch.save(dict(fit.state_dict()), buffer)
        write_atomic(self._context.run.method(self._method).checkpoint, buffer.getvalue())
        self._saved = time.monotonic()


def _certified_optimum(context: Context, method: str) -> float:
    """Return the optimum of the objective on standardised features."""
    from ltr.convex import certified_optimum

    train = context.split.train
    features = Standardize.fit(train.X)(torch.from_numpy(train.X)).numpy()
    context.display.note(f"{method}: solving for the certified optimum")
    return certified_optimum(method, features, train.y, l2=context.config.surrogate.l2, bias=True).value


def load_ranker(folder: MethodFolder) -> Ranker:
    """Read the ranker of a finished first-stage method; no code in the file is run."""
    with reading(folder.model):
        try:
            try:
                return Ranker.load(folder.model)
            except UnknownClassError:  # of a user's own, in a module that a run of its config imports
                _import_estimators(read_state(folder.model))
                return Ranker.load(folder.model)
        except NewerVersionError as error:
            raise RunError(str(error)) from None


def _import_estimators(state: Mapping[str, Any]) -> None:
    """Import the modules of the estimators that the state of a ranker names; nothing in them is called."""
    for key, value in state.items():
        if isinstance(value, Mapping):
            _import_estimators(value)
        elif key == "estimator" and isinstance(value, str):
            try:
                named_object(f"ranker {value}", EstimatorName.parse(value).path)
            except ValueError as error:
                raise RunError(str(error)) from None


def load_scores(folder: MethodFolder) -> Scores | None:
    """Read a method's scores of both sets, None where there are none."""
    if not folder.scores.exists():
        return None
    with reading(folder.scores):
        arrays = read_arrays(folder.scores)
        return Scores(arrays["train"], arrays["test"])


def load_base_scores(run: RunFolder, base: str) -> Scores | None:
    """Read the scores of the base of the exact stage, which is another ranker than the method under constraints."""
    path = run.method(EXACT).scores
    if path.exists():
        with reading(path):
            arrays = read_arrays(path)
            if "base_train" in arrays:
                return Scores(arrays["base_train"], arrays["base_test"])
    return load_scores(run.method(base))
