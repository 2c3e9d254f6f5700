"""The section ``[tune]`` of an experiment's config: ranges of keys, and how they are searched.

::

    [tune]
    trials = 30
    surrogate.l2 = {low = 1e-4, high = 10, log = true}
    surrogate.losses = ["ranknet", "hinge"]            # one of these
    exact.top_k = {low = 20, high = 100, step = 20}
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import StrictInt, StrictStr, ValidationError

from trainers.config.errors import ConfigError, Finding, findings_of
from trainers.config.experiment import (
    TUNE,
    Config,
    config_tree,
    describe_keys,
    free_keys,
    parse_config,
    rule_of_unknown,
)
from trainers.config.sections import Section, Seed, Statistic, option
from trainers.config.toml_text import apply_overrides, make_absolute, unflat


class TuneConfig(Section):
    """How the ranges of a config are searched."""

    trials: StrictInt = option(30, "number of trials", ge=1, free=True)
    method: StrictStr | None = option(
        None, "method whose statistic counts; exact where that is enabled, else the only method", min_length=1
    )
    statistic: Statistic | None = option(None, "statistic to maximise; the first one reported when left out")
    validation: float = option(
        0.25, "share of the training rows (queries) to measure trials by; data.validation_path comes first", gt=0, lt=1
    )
    splits: StrictInt = option(3, "number of inner splits over which a trial is averaged", ge=1)
    seed: Seed | None = option(None, "seed of the search and of the inner splits; the run's seed when left out")
    time_limit: float | None = option(
        None, "seconds of trials after which no other begins; no limit when left out", gt=0, free=True
    )


class _Numbers(Section):
    """A range of numbers, as it is written."""

    low: float
    high: float
    step: float | None = option(None, "distance of neighbouring numbers", gt=0)
    log: bool = False


@dataclass(frozen=True)
class Range:
    """Values of one key among which to search."""

    key: str  # the dotted key
    choices: tuple[Any, ...] | None = None  # the values; None for the numbers from low to high
    low: float = 0.0  # smallest number
    high: float = 0.0  # largest number
    step: float | None = None  # distance of neighbouring numbers; None for 1, of real numbers for any
    log: bool = False  # whether equal ratios count the same, not equal differences
    whole: bool = False  # whether the numbers are integers

    @property
    def first(self) -> Any:  # noqa: ANN401  (a value of any key)
        """A value of the range."""
        return self.low if self.choices is None else self.choices[0]

    def has(self, value: object) -> bool:
        """Return whether a value is in the range."""
        if self.choices is not None:
            return value in self.choices
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        return self.step is None or math.isclose((value - self.low) % self.step, 0.0, abs_tol=1e-9)

    def coded(self, value: Any) -> Any:  # noqa: ANN401
        """Return a value as Optuna keeps it: one of several choices as its JSON text."""
        return value if self.choices is None else json.dumps(value)

    def suggested(self, trial: Any) -> Any:  # noqa: ANN401  (Optuna's)
        """Return the value that a trial of Optuna suggests."""
        if self.choices is not None:
            return json.loads(trial.suggest_categorical(self.key, list(map(json.dumps, self.choices))))
        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(self.key, int(self.low), int(self.high), step=step, log=self.log)
        return trial.suggest_float(self.key, self.low, self.high, step=self.step, log=self.log)


@dataclass(frozen=True)
class Tunable:
    """An experiment and the ranges of its keys, checked together."""

    tree: Mapping[str, Any]  # the experiment as it is written
    config: Config  # the same, checked
    options: TuneConfig  # how it is searched
    ranges: tuple[Range, ...]  # where
    source: str  # origin of the tree, for messages


def load_tuning(path: Path, overrides: Sequence[str]) -> Tunable:
    """Read a config file with a section ``[tune]``; a `ConfigError` has everything that is wrong."""
    tree, given, findings = apply_overrides(config_tree(path), overrides)
    make_absolute(tree.get("data"), Path())
    section = tree.pop(TUNE, {})
    return check_tuning(tree, section, str(path), overrides=given, findings=findings)


def check_tuning(tree: Mapping[str, Any], section: object, source: str, **checked: Any) -> Tunable:  # noqa: ANN401
    """Check an experiment and its section ``[tune]`` together; `checked` are further arguments of `parse_config`."""
    findings: list[Finding] = []
    found: list[Any] = []
    for check in (lambda: parse_config(tree, source=source, **checked), lambda: read_tuning(section, source)):
        try:
            found.append(check())
        except ConfigError as error:
            findings += error.findings
    if findings:
        raise ConfigError(source, findings)
    config, (options, ranges) = found
    return Tunable(tree, config, options, ranges, source)


def read_tuning(section: object, source: str) -> tuple[TuneConfig, tuple[Range, ...]]:
    """Return what a section ``[tune]`` says; a `ConfigError` has everything that is wrong with it."""
    if not isinstance(section, Mapping):
        raise ConfigError(source, [Finding(TUNE, "must be a table of keys", section)])
    own = {key: value for key, value in section.items() if key in TuneConfig.model_fields}
    findings = []
    options = TuneConfig()
    try:
        options = TuneConfig.model_validate(own)
    except ValidationError as error:
        findings += [
            Finding(f"{TUNE}.{found.path}", found.rule, found.value) for found in findings_of(error, TuneConfig, {})
        ]
    ranges = []
    for key, value in _leaves({key: value for key, value in section.items() if key not in own}):
        wrong = list(_wrong(key, value))
        findings += [Finding(f"{TUNE}.{path}", rule, received) for path, rule, received in wrong]
        if not wrong:
            is_range = isinstance(value, Mapping)
            ranges.append(Range(key, **value, whole=_is_whole(key, value)) if is_range else Range(key, tuple(value)))
    if not ranges and not findings:
        example = "surrogate.l2 = {low = 1e-4, high = 10, log = true}"
        findings.append(Finding(TUNE, f"must have a range for at least one key, such as {example}"))
    if options.statistic is None and any(one.key in ("exact.statistic", "card.statistic") for one in ranges):
        findings.append(Finding(f"{TUNE}.statistic", "is required where the statistic of a method is tuned"))
    if findings:
        raise ConfigError(source, findings)
    return options, tuple(ranges)


_KEYS = tuple(key for key, *_ in describe_keys())


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the ranges of a table by dotted key."""
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and path not in _KEYS and not set(value) & {"low", "high"} and value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _wrong(key: str, value: object) -> Iterator[tuple[str, str, object]]:
    """Yield what is wrong with a range: path, rule, value."""
    if (rule := rule_of_unknown(key, TuneConfig.model_fields)) is not None:
        yield key, rule, value
    elif key.startswith(("data.", "statistics.", "tracking.")) or "." not in key or key in free_keys():
        yield key, "must not be tuned: trials share their data, their seed, and what is measured", value
    elif key in ("exact.enabled", "card.enabled"):
        yield key, "must not be tuned: tune.method names the method whose statistic counts", value
    elif isinstance(value, list):
        if not value:
            yield key, "must have at least one value", value
        for at, one in enumerate(value):
            if one in value[:at]:
                yield f"{key}[{at}]", "must not be there twice", one
            yield from ((f"{key}[{at}]", rule, got) for rule, got in _refused(key, one))
    elif isinstance(value, Mapping):
        yield from _wrong_numbers(key, value)
    else:
        yield key, "must be a list of values, or a table: {low = 1, high = 10}, with or without step and log", value


def _wrong_numbers(key: str, given: Mapping[str, Any]) -> Iterator[tuple[str, str, object]]:
    try:
        numbers = _Numbers.model_validate(dict(given))
    except ValidationError as error:
        yield from ((f"{key}.{found.path}", found.rule, found.value) for found in findings_of(error, _Numbers, {}))
        return
    refused = [(part, rule, got) for part in ("low", "high") for rule, got in _refused(key, given[part])]
    if numbers.step is not None and numbers.log:
        yield f"{key}.step", "goes with log = false only", numbers.step
    if numbers.low >= numbers.high:
        yield key, "is empty: low must be below high", dict(given)
    elif numbers.log and numbers.low <= 0:
        yield f"{key}.low", "must be > 0 with log = true", numbers.low
    elif refused:
        yield from ((f"{key}.{part}", rule, got) for part, rule, got in refused)
    elif _is_whole(key, given) and not float(numbers.step or 1).is_integer():
        yield f"{key}.step", "must be an integer", numbers.step


def _is_whole(key: str, given: Mapping[str, Any]) -> bool:
    """Return whether a key takes whole numbers only."""
    return any(_refused(key, given["low"] + (given["high"] - given["low"]) / math.pi))


def _refused(key: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the rules of a key that a value breaks by itself."""
    tree = {"name": "x", "data": {"name": "gaussians"}} | unflat({key: value})
    try:
        Config.model_validate(tree)
    except ValidationError as error:
        for found in findings_of(error, Config, {}):
            if found.path.split("[")[0] == key:
                yield found.rule, found.value
