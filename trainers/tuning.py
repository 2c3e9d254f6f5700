"""A search for the best options of an experiment: trials on inner splits of the training set, then a run of the best.

::

    runs/pima-tune/
      tune.json            what is tuned, in which ranges, on which data
      trials.journal       Optuna's storage, which its own tools read too
      best.toml            the best options as a config, which `ltr run` takes
      best/                its run on the whole training set
      trials.csv           the trials compared

A trial fits the one method whose statistic counts (with its base, for the exact stage) on each inner split, as a sweep
does. Its value is the mean of the statistic on their test sets, which are parts of the training set.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import operator
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltr.fitting import Fit
from trainers.config import CARD, EXACT, Config, parse_config, resolved_toml
from trainers.config.errors import ConfigError, changes
from trainers.config.toml_text import dump_toml, flat, with_leaves
from trainers.config.tuning import Choices, Search, TuneConfig
from trainers.display import Display
from trainers.files import (
    Json,
    RunError,
    locked,
    read_json,
    remove_leftovers,
    to_json,
    write_atomic,
    write_json,
    writing,
)
from trainers.methods import INTERRUPTED, Starts, Watch, fit
from trainers.plan import cell_of
from trainers.records import origin
from trainers.report.page import literal
from trainers.run.experiment import run_experiment
from trainers.run.results import Results
from trainers.stopping import StopFlag
from trainers.tables import number
from trainers.task.data import Source, Split, inner_splits, split_of
from trainers.task.measures import Task, share_name
from trainers.task.options import config_for, follow_labels

if TYPE_CHECKING:
    import optuna
    import pandas as pd

_ADVICE = "add --fresh (in Python fresh=True) to start over, or give the search another name or folder"
_SETTINGS, _JOURNAL = "tune.json", "trials.journal"


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """What a search found.

    Attributes:
        name: name of the search; also its folder under runs/.
        folder: its folder; without a folder of its own, a temporary one that lives as long as this object.
        statistic: name of the statistic that was maximised.
        method: the method whose statistic counts.
        trials: a pandas frame with a row for each trial: ``value``, the mean over the inner splits, ``lowest`` and
            ``highest`` of them, ``seconds``, the tuned keys (missing where they did not concern the trial), and
            ``message``, why a trial failed.
        best: the tuned keys of the best trial; None without one.
        results: the results of the best options on the whole training set; None where the search was stopped.
        complete: whether the search and that run are finished.
    """

    name: str
    folder: Path
    statistic: str
    method: str
    trials: pd.DataFrame
    best: dict[str, Any] | None
    complete: bool
    results: Results | None = None

    @property
    def value(self) -> float | None:
        """Value of the best trial: the mean of the statistic over the inner splits; None without one."""
        best = self.trials["value"].max()
        return None if math.isnan(best) else float(best)

    @property
    def config(self) -> Path:
        """The best options as a config file, which ``ltr run`` takes."""
        return self.folder / "best.toml"

    def __repr__(self) -> str:
        state = "" if self.complete else ", unfinished"
        best = "none has a value" if self.value is None else f"best {self.statistic} {number(self.value)}"
        return f"<Tuning {self.name!r}{state}: {len(self.trials)} trials of {self.method}, {best}>"

    @property
    def answer(self) -> str:
        """What was found, in one sentence of Markdown."""
        if self.best is None:
            return "No trial has a value."
        options = ", ".join(f"`{key}` = {shown_value(value)}" for key, value in self.best.items())
        first = self.trials["value"].dropna()
        text = f"**Best of {len(self.trials)} trials** (trial {first.idxmax()}): {options}."
        text += f" Its mean {literal(self.statistic)} on the inner splits is {number(self.value)}"
        return f"{text}; trial {first.index[0]} has {number(first.iloc[0])}." if len(first) > 1 else f"{text}."

    def table(self, most: int) -> list[tuple[str, list[str]]]:
        """Return headings and cells of a table of the trials, the best `most` of them, the best first."""
        frame = self.trials.sort_values("value", ascending=False, kind="stable").head(most).drop(columns="message")
        forms = {"seconds": "{:.1f}"} | dict.fromkeys(("value", "lowest", "highest"))
        columns = [("trial", list(map(str, frame.index)))]
        for name in sorted(frame, key=lambda name: name == "seconds"):  # the last column
            cells = frame[name].astype(object)
            texts = [number(value, forms[name]) if name in forms else shown_value(value) for value in cells]
            columns.append((self.statistic if name == "value" else name, texts))
        return columns


def shown_value(value: Any) -> str:  # noqa: ANN401  (a value of any key)
    """Return the text of a value; empty for a missing one.

    Examples:
        >>> shown_value(0.012345), shown_value(["hinge"]), shown_value("full"), shown_value(50)
        ('0.01235', 'hinge', 'full', '50')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)


def run_tuning(
    search: Search, folder: Path, *, source: Source | None = None, fresh: bool = False, display: Display | None = None
) -> Tuning:
    """Search, or go on with a search in a folder, then run the experiment with the best options.

    Ctrl-C stops it between two steps; everything so far is kept and returned with ``complete`` False.

    Args:
        search: what is searched.
        folder: where everything is kept.
        source: the data, if they have been read.
        fresh: whether to throw away an earlier search in the folder.
        display: what the user sees; nothing by default.

    Raises:
        ConfigError: options do not go with each other or with the data, or the folder has another search.
        DataError: the data cannot be used.
        RunError: Optuna is missing, the folder cannot be used, or all trials failed.
    """
    try:
        import optuna
    except ImportError:
        raise RunError("tuning needs Optuna: pip install 'rankproof[tune]'") from None
    display = display or Display()
    if source is None:
        search.config.data.check_files()
    search.method_of(search.with_values({one.key: one.first for one in search.ranges})[0])
    split = split_of(search.config.data, search.config.seed, source)
    search = dataclasses.replace(search, config=config_for(search.config, split))
    own_rows = search.config.card.enabled
    inner = inner_splits(split, search.options.validation, search.options.splits, search.seed, own_rows=own_rows)
    with locked(folder), StopFlag() as stop, _quiet(optuna):
        _begin(search, folder, split, fresh)
        study = _study(optuna, folder)
        complete = False
        with contextlib.suppress(KeyboardInterrupt):
            _run_trials(optuna, study, search, inner, display, stop)
            complete = True
        tuning = _tuning(search, folder, split, study, complete=complete)
        if tuning.best is not None and complete:
            tree = with_leaves(search.tree, tuning.best) | {"name": "best", "runs_dir": str(folder)}
            write_atomic(tuning.config, dump_toml(to_json(tree)).encode())
            display.note(f"running the best options on the whole training set, in {folder / 'best'}")
            config = parse_config(tree, source=search.source)
            text = resolved_toml(follow_labels(config, split.labels))
            written = folder / "best" / "config.toml"  # of other options, from before there were more trials
            stale = written.parent.exists() and not (written.exists() and written.read_text(encoding="utf-8") == text)
            results = run_experiment(config, fresh=stale, display=display, source=source)
            tuning = dataclasses.replace(tuning, results=results, complete=results.complete)
        with writing(folder, "runs_dir"):
            write_atomic(folder / "trials.csv", tuning.trials.to_csv(lineterminator="\n").encode())
    if tuning.best is None and complete:
        reasons = dict.fromkeys(text for text in tuning.trials["message"] if text)
        raise RunError("no trial has a value:\n  " + "\n  ".join(list(reasons)[:5]))
    return tuning


def _begin(search: Search, folder: Path, split: Split, fresh: bool) -> None:
    """Write what is searched into a new folder, and compare it with that of an earlier start."""
    path = folder / _SETTINGS
    if fresh:
        shutil.rmtree(folder / "best", ignore_errors=True)
        for name in (_SETTINGS, _JOURNAL):
            (folder / name).unlink(missing_ok=True)
    known = read_json(path, _ADVICE)
    own = {"trials.csv", "best.toml"}  # of a search thrown away
    if known is None and {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")} - own:
        raise RunError(f"name: {folder} holds other files than a search's; remove it, or choose another name")
    remove_leftovers(folder, locked=True)
    free = {key for key, field in TuneConfig.model_fields.items() if field.json_schema_extra}
    config = flat(search.config.model_dump(mode="json", exclude={"name", "runs_dir", "tracking"}))
    options = search.options.model_dump(mode="json", exclude=free)
    ranges = {
        one.key: list(one.values) if isinstance(one, Choices) else one.model_dump(exclude={"key"})
        for one in search.ranges
    }
    now: Json = {**config, **{f"tune.{key}": value for key, value in (options | ranges).items()}}
    now = json.loads(json.dumps(to_json(now | {"data": split.facts["sha256"]})))
    if known is None:
        with writing(folder, "runs_dir"):
            write_json(path, {"searched": now, "origin": origin()})
    elif findings := changes(known["searched"], now, f"when the search in {folder} began"):
        raise ConfigError(f"the search differs from the one to continue; {_ADVICE}", findings)


@contextlib.contextmanager
def _quiet(optuna: Any) -> Iterator[None]:  # noqa: ANN401  (a module)
    """Return a context without Optuna's own lines on stderr: the display has them."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        try:
            yield
        finally:
            optuna.logging.set_verbosity(before)


def _study(optuna: Any, folder: Path) -> optuna.Study:  # noqa: ANN401
    """Open Optuna's study in the folder, which this process has locked."""
    from optuna.storages.journal import JournalFileBackend

    path = folder / _JOURNAL
    Path(f"{path}.lock").unlink(missing_ok=True)  # of a process that was killed
    if path.exists() and not (content := path.read_bytes()).endswith(b"\n"):
        write_atomic(path, content[: content.rfind(b"\n") + 1])  # a line that it did not finish
    storage = optuna.storages.JournalStorage(JournalFileBackend(str(path)))
    return optuna.create_study(study_name="tune", storage=storage, direction="maximize", load_if_exists=True)


def _run_trials(
    optuna: Any,  # noqa: ANN401
    study: optuna.Study,
    search: Search,
    inner: Sequence[Split],
    display: Display,
    stop: StopFlag,
) -> None:
    """Run trials until there are enough, or the time is up; the user stops it by a KeyboardInterrupt."""
    options = search.options
    if not study.trials:
        tree = search.config.model_dump(mode="json")
        written = [functools.reduce(operator.getitem, one.key.split("."), tree) for one in search.ranges]
        known = {one.key: one.coded(value) for one, value in zip(search.ranges, written, strict=True) if one.has(value)}
        if known:
            study.enqueue_trial(known)  # so that the search is not worse than what was written
    while True:
        ended = [trial for trial in study.trials if trial.state.is_finished()]
        spent = sum(trial.user_attrs.get("seconds", 0.0) for trial in ended)
        if len(ended) >= options.trials or (options.time_limit is not None and spent >= options.time_limit):
            return
        stop.check()
        begun = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.RUNNING]
        # one random state for each trial: interruptions make no difference
        study.sampler = optuna.samplers.TPESampler(seed=(search.seed * 1_000_003 + len(ended)) % 2**32)
        trial = optuna.trial.Trial(study, begun[0]._trial_id) if begun else study.ask()
        try:
            config, used = search.with_values({one.key: one.suggested(trial) for one in search.ranges})
            measured = [_measured(search, config, split, stop) for split in inner]
        except (ValueError, FloatingPointError) as error:  # options that do not go together, or diverge
            trial.set_user_attr("message", str(error))
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            display.note(f"trial {trial.number}: failed: {error}")
            continue
        values = [value for value, _ in measured]
        trial.set_user_attr("values", values)
        trial.set_user_attr("seconds", sum(seconds for _, seconds in measured))
        trial.set_user_attr("used", used)
        value = sum(values) / len(values)
        study.tell(trial, value)
        best = study.best_trial
        shown = ", ".join(f"{key} = {shown_value(value)}" for key, value in used.items())
        rank = "the best so far" if best.number == trial.number else f"best {number(best.value)} of trial {best.number}"
        display.note(f"trial {trial.number}: {number(value)}, {rank}; {shown}")


def _measured(search: Search, config: Config, split: Split, stop: StopFlag) -> tuple[float, float]:
    """Fit a method, with its base, on an inner split; return the statistic that counts, and the seconds that took."""
    method, statistic = search.method_of(config), search.options.statistic or search.config.reported[0]
    config = config.changed("exact", enabled=method == EXACT).changed(CARD, enabled=method == CARD)
    config = config.changed("statistics", report=tuple(dict.fromkeys((*config.statistics.report, statistic))))
    config = config_for(config, split)
    task, sha256 = Task(config, split), split.facts["sha256"]
    starts, seconds = Starts(), 0.0
    for name in (config.base, EXACT) if method == EXACT else (method,):
        cell = cell_of(config, config.seed, name, sha256)
        fitted = fit(task, cell, _Stopped(stop), starts)
        if fitted.record["status"] == INTERRUPTED:
            raise KeyboardInterrupt
        seconds += fitted.record["seconds"]
        weights = fitted.record["weights"]
        starts = Starts(fitted.ranker, {} if weights is None else {cell.id: weights})
    name = share_name(statistic, config.statistics.gain) if split.by_query else statistic
    if (value := fitted.record["test"][name]) is None:
        raise RunError(f"{statistic} of {method} is undefined on an inner split")
    return value, seconds


class _Stopped(Watch):
    """Stops a fit when the user asks for it."""

    def __init__(self, stop: StopFlag) -> None:
        self._stop = stop

    def stepped(self, index: int, values: Mapping[str, float], fit: Fit | None) -> None:
        self._stop.check()

    def counted(self, done: int, total: int, what: str) -> None:
        self._stop.check()


def _tuning(search: Search, folder: Path, split: Split, study: optuna.Study, *, complete: bool) -> Tuning:
    """Return what the trials so far say."""
    import pandas as pd

    rows = []
    for trial in (trial for trial in study.trials if trial.state.is_finished()):
        found, used = trial.user_attrs, trial.user_attrs.get("used", {})
        reached = found.get("values", [])
        row = [trial.number, trial.value, min(reached, default=None), max(reached, default=None), found.get("seconds")]
        rows.append([*row, *(used.get(one.key) for one in search.ranges), found.get("message", "")])
    headings = ["trial", "value", "lowest", "highest", "seconds", *(one.key for one in search.ranges), "message"]
    frame = pd.DataFrame(rows, columns=headings).astype({"value": float}).set_index("trial")
    best, statistic = None, search.options.statistic or search.config.reported[0]
    if frame["value"].notna().any():
        best = study.trials[frame["value"].idxmax()].user_attrs["used"]
    first = {one.key: one.first for one in search.ranges} if best is None else best
    return Tuning(
        name=folder.name,
        folder=folder,
        statistic=share_name(statistic, search.config.statistics.gain) if split.by_query else statistic,
        method=search.method_of(search.with_values(first)[0]),
        trials=frame,
        best=best,
        complete=complete,
    )
