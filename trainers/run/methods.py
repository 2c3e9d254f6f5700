"""The methods of a run: fitted by `trainers.methods`, logged, shown, stopped, resumed, and kept in files."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

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
from trainers.config import CARD, EXACT
from trainers.display import Display
from trainers.files import Json, RunError, read_json, reading, write_atomic
from trainers.loggers import Tracker
from trainers.methods import INTERRUPTED, Starts, Watch, binding_constraints, fit, unsaved_because
from trainers.plan import Cell, plan_of_run, time_limit
from trainers.records import is_trivial
from trainers.run.folder import InnerSplits, MethodFolder, RunFolder, write_arrays
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
    optimum = None
    if surrogate and config.surrogate.certify:
        from ltr.convex import certified_optimum

        context.display.note(f"{method}: solving for the certified optimum")
        train = context.split.train
        features = Standardize.fit(train.X)(torch.from_numpy(train.X)).numpy()
        optimum = certified_optimum(method, features, train.y, l2=config.surrogate.l2, bias=True).value
    starts = _starts(context, folder, records) if exact else None
    with Tracker(config.tracking.loggers, folder.path, config.name, method, keep=keep) as tracker:
        steps = {"rankboost": config.baselines.rankboost.rounds}
        total = config.surrogate.max_steps if surrogate else steps.get(method)
        context.display.begin(method, total, time_limit(config, method))
        try:
            fitted = fit(context, context.cells[method], _RunWatch(context, method, tracker, state, optimum), starts)
        except FloatingPointError as error:
            raise RunError(f"surrogate: training on {method} failed: {error}") from error
        record = fitted.record
        interrupted = record["status"] == INTERRUPTED
        if not interrupted:
            _log_end(context, record, records, tracker)
    for failure in tracker.failures:
        context.display.note(f"{method}: {failure}")
    arrays = {"train": fitted.scores.train, "test": fitted.scores.test}
    if fitted.base is not None:
        arrays |= {"base_train": fitted.base.train, "base_test": fitted.base.test}
    if isinstance(fitted.ranker, AutoRanker) and fitted.ranker.out_of_fold_ is not None:
        arrays["out_of_fold"] = fitted.ranker.out_of_fold_
    write_arrays(folder.scores, **arrays)
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


def _log_end(context: Context, record: Json, records: Sequence[Json], tracker: Tracker) -> None:
    """Log the final values of a finished method, its choice or card, and its options."""
    config, method = context.config, record["method"]
    final = by_tag(record) | ({} if record["loss"] is None else {"loss/convex": record["loss"]})
    if (made := record.get("choice")) is not None:
        choice = Choice.from_dict(made)
        ends = {"": choice.expected, "_low": choice.low, "_high": choice.high}
        final |= {f"exact/expected_gain{end}": value for end, value in ends.items()}
        gains = [[one, number(choice.gains[one]), "yes" * (one == choice.chosen)] for one in choice.candidates]
        header = ["candidate", f"{choice.statistic} gained on inner splits", "chosen"]
        tracker.each("log_text", "exact/choice", f"{choice}\n\n{markdown_table(header, gains)}")
    if method in (EXACT, CARD) or record["steps"] is None:
        # methods without steps draw level lines as long as the longest training
        trained = (before["steps"] or 0 for before in records if before["method"] != EXACT)
        for step in sorted({0, max(trained, default=0)}):
            tracker.log(step, final)
    if method == CARD:
        card = Card.from_dict(record["card"])
        tracker.each("log_text", "card", card.to_markdown())
        tracker.each("log_figure", "card", card.plot())
    # what TensorBoard compares methods and runs by: the same keys for every method
    given: dict[str, Any] = {"method": method, "seed": config.seed}
    given |= {"data": config.data.name or Path(str(config.data.path)).stem, "top_k": str(config.exact.top_k)}
    given |= {name: getattr(config.surrogate, name) for name in ("scorer", "optimizer", "l2")}
    given |= {name: getattr(config.exact, name) for name in ("statistic", "base", "C", "margin")}
    tracker.finish(given, final)


def _starts(context: Context, folder: MethodFolder, records: Sequence[Json]) -> Starts:
    """Return what the exact stage starts from: its base, all linear rankers, and the incumbent of a stopped one."""
    columns, more, base = context.split.feature_names, [], None
    linear = (record for record in records if record["weights"] is not None)
    by_id = {context.cells[record["method"]].id: record["weights"] for record in linear}
    if (earlier := read_json(folder.solution)) is not None:
        with reading(folder.solution):
            if (weights := earlier["weights"]) is not None:
                more = [[float(weights[column]) for column in columns]]
    if binding_constraints(context.config, columns) is None:  # else the base is fitted under them
        name, first = context.config.base, context.run.method(context.config.base)
        if first.model.exists():
            base = load_ranker(first).name_features(columns)
            if isinstance(base, AutoRanker):
                with reading(first.scores):
                    base.out_of_fold_ = read_arrays(first.scores)["out_of_fold"]
        elif (base := context.unsaved.get(name)) is None:
            context.display.note(f"{name}: fitted again for the exact stage, because its model was not saved")
    return Starts(base, by_id, more)


def _write_card(context: Context, folder: MethodFolder, card: Card, ranker: CardRanker) -> None:
    """Write a card, its certificate and the ranked rows of both sets into the folder of the method."""
    options, split = context.config.data, context.split
    rows = [part.rows for _, part in split.parts]
    if split.tables is not None:
        rows = [table.in_file(members) for table, members in zip(split.tables, rows, strict=True)]
    parts = zip(("training", "test"), raw_columns(split), own_rows(split), rows, strict=True)
    write_card(replace(card, missing=tuple(options.missing)), ranker, folder.path, [Listed(*part) for part in parts])


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
            self._tracker.each("flush")  # before the checkpoint, which must not follow steps that are not logged
            buffer = io.BytesIO()
            torch.save(dict(fit.state_dict()), buffer)
            write_atomic(self._context.run.method(self._method).checkpoint, buffer.getvalue())
            self._saved = time.monotonic()
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


def load_scores(folder: MethodFolder, prefix: str = "") -> Scores | None:
    """Read a method's scores of both sets, or with the prefix ``base_`` those of a base of its own; None without."""
    if not folder.scores.exists():
        return None
    with reading(folder.scores):
        arrays = read_arrays(folder.scores)
        if prefix and f"{prefix}train" not in arrays:
            return None
        return Scores(arrays[f"{prefix}train"], arrays[f"{prefix}test"])


def load_base_scores(run: RunFolder, base: str) -> Scores | None:
    """Read the scores of the base of the exact stage, which is another ranker than the method under constraints."""
    own = load_scores(run.method(EXACT), "base_")
    return load_scores(run.method(base)) if own is None else own
