"""A search for the best options of an experiment: trials on inner splits of the training set, then a run of the best.

::

    runs/pima-tune/
      tune.json            what is tuned, in which ranges, on which data
      trials.journal       Optuna's storage, which its own tools read too
      trials/0003-1/       the run of trial 3 on inner split 1, a run folder as any other
      best.toml            the best options as a config, which `ltr run` takes
      best/                its run on the whole training set
      trials.csv           the trials compared

A trial is a run of the one method whose statistic counts (with its base, for the exact stage) on each inner split. Its
value is the mean of the statistic on their test sets, which are parts of the training set. A trial that was interrupted
goes on like any run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.config import CARD, EXACT, Config, parse_config, resolved_toml
from trainers.config.errors import ConfigError, Finding
from trainers.config.toml_text import dump_toml, flat, merged, unflat
from trainers.config.tuning import Tunable, TuneConfig
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
from trainers.provenance import origin
from trainers.run.experiment import run_experiment
from trainers.stopping import StopFlag
from trainers.tables import number
from trainers.task.data import Source, Split, inner_splits, split_of
from trainers.task.measures import share_name
from trainers.task.options import check_columns, check_lists, follow_labels
from trainers.tune.results import Tuning, shown_value

if TYPE_CHECKING:
    import optuna

_ADVICE = "add --fresh (in Python fresh=True) to start over, or give the search another name or folder"
_SETTINGS, _JOURNAL = "tune.json", "trials.journal"


@dataclass(frozen=True)
class Search(Tunable):
    """What is searched, and where everything is kept."""

    folder: Path
    data: Source | None = None  # its data, if they have been read

    def with_values(self, values: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
        """Return the experiment with values of the tuned keys, and those values that concern it.

        Raises:
            ConfigError: the values do not go with each other.
        """
        values = dict(values)
        while True:
            try:
                return parse_config(merged(self.tree, unflat(values)), source=self.source), values
            except ConfigError as error:
                idle = {found.path for found in error.findings if found.rule.startswith("goes with ")}
                if not idle or not idle <= values.keys() or idle != {found.path for found in error.findings}:
                    raise
                values = {key: value for key, value in values.items() if key not in idle}

    def method_of(self, config: Config) -> str:
        """Return the method whose statistic counts.

        Raises:
            ConfigError: there are several.
        """
        names, losses = config.methods, config.surrogate.losses
        if self.options.method is not None and (named := config.method_named(self.options.method)) in names:
            return named
        if self.options.method is None:
            if config.exact.enabled:
                return EXACT
            if any(one.key == "surrogate.losses" for one in self.ranges) and len(losses) == 1:
                return losses[0]
            if any(one.key == "baselines.methods" for one in self.ranges) and len(config.baselines.names) == 1:
                return config.baselines.names[0]
            if len(names) == 1:
                return names[0]
        rule = f"must be the method whose statistic counts, one of {', '.join(names)}"
        raise ConfigError(self.source, [Finding("tune.method", rule, self.options.method or "nothing")])

    def statistic_of(self, config: Config) -> str:
        """Return the statistic that counts."""
        return self.options.statistic or config.reported[0]

    @property
    def seed(self) -> int:
        """Seed of the search and of the inner splits."""
        return self.config.seed if self.options.seed is None else self.options.seed


def run_tuning(search: Search, *, fresh: bool = False, display: Display | None = None) -> Tuning:
    """Search, or go on with a search, then run the experiment with the best options.

    Ctrl-C stops it between two steps; everything so far is kept and returned with ``complete`` False.

    Args:
        search: what is searched.
        fresh: throw away an earlier search in the folder.
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
    display, folder = display or Display(), search.folder
    if search.data is None:
        search.config.data.check_files()
    search.method_of(search.with_values({one.key: one.first for one in search.ranges})[0])
    split = split_of(search.config.data, search.config.seed, search.data)
    search = _following(search, split)
    check_lists(search.config, split.labels)
    check_columns(search.config, split)
    inner = inner_splits(
        split, search.options.validation, search.options.splits, search.seed, own_rows=search.config.card.enabled
    )
    with writing(folder, "runs_dir"):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder), StopFlag() as stop, _quiet(optuna):
        _begin(search, split, fresh)
        study = _study(optuna, folder)
        complete = False
        with contextlib.suppress(KeyboardInterrupt):
            _run_trials(optuna, study, search, inner, display, stop)
            complete = True
        tuning = _tuning(search, split, study, complete=complete)
        if tuning.best is not None and complete:
            tree = merged(search.tree, unflat(tuning.best)) | {"name": "best", "runs_dir": str(folder)}
            write_atomic(folder / "best.toml", dump_toml(to_json(tree)).encode())
            display.note(f"running the best options on the whole training set, in {folder / 'best'}")
            config = parse_config(tree, source=search.source)
            # a folder of other options, from before there were more trials
            stale = (folder / "best").exists() and not _same(folder / "best" / "config.toml", config, split)
            results = run_experiment(config, fresh=stale, display=display, source=search.data)
            tuning = dataclasses.replace(tuning, results=results, complete=results.complete)
        with writing(folder, "runs_dir"):
            write_atomic(folder / "trials.csv", tuning.trials.to_csv(lineterminator="\n").encode())
    if tuning.best is None and complete:
        reasons = dict.fromkeys(text for text in tuning.trials["message"] if text)
        raise RunError("no trial has a value:\n  " + "\n  ".join(list(reasons)[:5]))
    return tuning


def _following(search: Search, split: Split) -> Search:
    """Return the search with the defaults that suit the labels, where the config leaves them out."""
    suited = follow_labels(search.config, split.labels)
    changed = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in flat(suited.model_dump()).items()
        if value != flat(search.config.model_dump())[key]
    }
    return dataclasses.replace(search, tree=merged(search.tree, unflat(changed)), config=suited)


def _same(path: Path, config: Config, split: Split) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == resolved_toml(follow_labels(config, split.labels))


def _begin(search: Search, split: Split, fresh: bool) -> None:
    """Write what is searched into a new folder, and compare it with that of an earlier start."""
    folder, path = search.folder, search.folder / _SETTINGS
    if fresh:
        for name in ("trials", "best"):
            shutil.rmtree(folder / name, ignore_errors=True)
        for name in (_SETTINGS, _JOURNAL):
            (folder / name).unlink(missing_ok=True)
    known = read_json(path, _ADVICE)
    own = {"report.md", "report.html", "figures", "trials.csv", "best.toml"}  # of a search thrown away
    if known is None and {entry.name for entry in folder.iterdir() if not entry.name.startswith(".")} - own:
        raise RunError(f"name: {folder} holds other files than a search's; remove it, or choose another name")
    remove_leftovers(folder, locked=True)
    free = {key for key, field in TuneConfig.model_fields.items() if field.json_schema_extra}
    config = {k: v for k, v in flat(search.config.model_dump(mode="json")).items() if k not in ("name", "runs_dir")}
    now: Json = {
        "config": {key: value for key, value in config.items() if not key.startswith("tracking.")},
        "tune": {key: value for key, value in search.options.model_dump(mode="json").items() if key not in free},
        "ranges": {one.key: {k: v for k, v in dataclasses.asdict(one).items() if k != "key"} for one in search.ranges},
        "data": {"sha256": split.facts["sha256"]},
    }
    now = json.loads(json.dumps(to_json(now)))
    if known is None:
        with writing(folder, "runs_dir"):
            write_json(path, now | {"origin": origin()})
        return
    findings = []
    for part, own in now.items():
        before = known.get(part, {})
        for key in dict.fromkeys((*before, *own)):
            if before.get(key) != own.get(key):
                name = {"config": key, "data": "data"}.get(part, f"tune.{key}")
                shown = "left out" if before.get(key) is None else json.dumps(before[key], ensure_ascii=False)
                findings.append(Finding(name, f"was {shown} when the search in {folder} began", own.get(key)))
    if findings:
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
    """Run trials until there are enough, or the time is up.

    Raises:
        KeyboardInterrupt: the user stopped it.
    """
    options = search.options
    if not study.trials:
        written = flat(search.config.model_dump(mode="json"))
        known = {one.key: one.coded(written[one.key]) for one in search.ranges if one.has(written[one.key])}
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
            found = _measured(search, inner, trial)
        except ValueError as error:  # ConfigError, DataError, RunError: options that do not go together
            trial.set_user_attr("message", str(error))
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            display.note(f"trial {trial.number}: failed: {error}")
            continue
        for name, value in found.items():
            trial.set_user_attr(name, value)
        value = sum(found["values"]) / len(found["values"])
        study.tell(trial, value)
        best = study.best_trial
        shown = ", ".join(f"{key} = {shown_value(value)}" for key, value in found["used"].items())
        rank = "the best so far" if best.number == trial.number else f"best {number(best.value)} of trial {best.number}"
        display.note(f"trial {trial.number}: {number(value)}, {rank}; {shown}")


def _measured(search: Search, inner: Sequence[Split], trial: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the statistic on each inner split, the seconds that took, and the values that concerned the trial."""
    config, used = search.with_values({one.key: one.suggested(trial) for one in search.ranges})
    method, statistic = search.method_of(config), search.statistic_of(search.config)
    config = _narrowed(config, method, statistic)
    values, seconds = [], 0.0
    for at, split in enumerate(inner):
        own = config.model_copy(update={"name": f"{trial.number:04d}-{at}", "runs_dir": str(search.folder / "trials")})
        results = run_experiment(own, source=split, page=False)
        if not results.complete:
            raise KeyboardInterrupt
        row = next(row for row in results.rows if row.method == method)
        value = row.test[share_name(statistic, config.statistics.gain) if split.by_query else statistic]
        if value is None:
            raise RunError(f"{statistic} of {method} is undefined on inner split {at}")
        values.append(value)
        seconds += sum(row.seconds for row in results.rows)
    return {"values": values, "seconds": seconds, "used": used}


def _narrowed(config: Config, method: str, statistic: str) -> Config:
    """Return a config of the one method, with its base, that is measured by a statistic and logs to files alone."""
    needed = {method, config.base} if method == EXACT else {method}
    baselines = config.baselines.methods, config.baselines.names
    sections: dict[str, dict[str, Any]] = {
        "surrogate": {"losses": tuple(name for name in config.surrogate.losses if name in needed), "certify": False},
        "baselines": {"methods": tuple(text for text, name in zip(*baselines, strict=True) if name in needed)},
        "exact": {"enabled": method == EXACT, "certificate": False, "ranges": 0.0, "front": None},
        CARD: {"enabled": method == CARD},
        "statistics": {"report": tuple(dict.fromkeys((*config.statistics.report, statistic)))},
        "tracking": {"loggers": (), "figures": False},
    }
    for name, values in sections.items():
        config = config.changed(name, **values)
    return config


def _tuning(search: Search, split: Split, study: optuna.Study, *, complete: bool) -> Tuning:
    """Return what the trials so far say."""
    import pandas as pd

    rows = []
    for trial in study.trials:
        if trial.state.is_finished():
            found, used = trial.user_attrs, trial.user_attrs.get("used", {})
            reached = found.get("values", [])
            row = {"trial": trial.number, "value": trial.value, "lowest": min(reached, default=None)}
            row |= {"highest": max(reached, default=None), "seconds": found.get("seconds")}
            row |= {one.key: used.get(one.key) for one in search.ranges}
            rows.append(row | {"message": found.get("message", "")})
    headings = ["trial", "value", "lowest", "highest", "seconds", *(one.key for one in search.ranges), "message"]
    frame = pd.DataFrame(rows, columns=headings).astype({"value": float}).set_index("trial")
    best, statistic = None, search.statistic_of(search.config)
    if frame["value"].notna().any():
        at = frame["value"].idxmax()
        best = next(trial for trial in study.trials if trial.number == at).user_attrs["used"]
    first = {one.key: one.first for one in search.ranges} if best is None else best
    return Tuning(
        name=search.folder.name,
        folder=search.folder,
        statistic=share_name(statistic, search.config.statistics.gain) if split.by_query else statistic,
        method=search.method_of(search.with_values(first)[0]),
        trials=frame,
        best=best,
        complete=complete,
    )
