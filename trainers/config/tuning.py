"""The section ``[tune]`` of an experiment's config: ranges of keys, and how they are searched."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import StrictInt, StrictStr, ValidationError

from trainers.config import EXACT, TUNE, Config, config_tree, free_keys, leaves, parse_config, why_not
from trainers.config.errors import ConfigError, Finding, findings_of
from trainers.config.sections import Section, Seed, Statistic, checked, option
from trainers.config.toml_text import apply_overrides, unflat, with_leaves


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


@dataclass(frozen=True)
class Choices:
    """Some values of a key among which to search."""

    key: str  # the dotted key
    values: tuple[Any, ...]

    @property
    def first(self) -> Any:  # noqa: ANN401  (a value of any key)
        """A value of the range."""
        return self.values[0]

    def has(self, value: object) -> bool:
        """Return whether a value is in the range."""
        return value in self.values

    def coded(self, value: object) -> object:
        """Return a value of the range as Optuna keeps it: as its JSON text."""
        return json.dumps(self.values[self.values.index(value)])

    def suggested(self, trial: Any) -> Any:  # noqa: ANN401  (Optuna's)
        """Return the value that a trial of Optuna suggests."""
        return json.loads(trial.suggest_categorical(self.key, list(map(json.dumps, self.values))))


_Number = Annotated[
    int | float,
    checked(
        "must be a number",
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
    ),
]
"""A number as it is written: keys of whole numbers take no 1.0."""


class Numbers(Section):
    """Numbers of a key among which to search; with `log`, equal ratios count the same, not equal differences."""

    key: StrictStr
    low: _Number
    high: _Number
    step: float | None = option(None, "distance of neighbouring numbers", gt=0)
    log: bool = False

    @cached_property
    def whole(self) -> bool:
        """Whether the key takes whole numbers only."""
        return any(_refused(self.key, self.low + (self.high - self.low) / math.pi))

    @property
    def first(self) -> float:
        """A value of the range."""
        return self.low

    def has(self, value: object) -> bool:
        """Return whether a value is in the range."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        return self.step is None or math.isclose((value - self.low) % self.step, 0.0, abs_tol=1e-9)

    def coded(self, value: object) -> object:
        """Return a value as Optuna keeps it: as it is."""
        return value

    def suggested(self, trial: Any) -> Any:  # noqa: ANN401  (Optuna's)
        """Return the value that a trial of Optuna suggests."""
        if self.whole:
            step = 1 if self.step is None else int(self.step)
            return trial.suggest_int(self.key, int(self.low), int(self.high), step=step, log=self.log)
        return trial.suggest_float(self.key, self.low, self.high, step=self.step, log=self.log)

    def clashes(self) -> Iterator[Finding]:
        """Yield what is wrong with the range: what does not go together, and ends that the key does not take."""
        refused = [(end, *one) for end in ("low", "high") for one in _refused(self.key, getattr(self, end))]
        if self.step is not None and self.log:
            yield Finding("step", "goes with log = false only", self.step)
        if self.low >= self.high:
            yield Finding("", "is empty: low must be below high", {"low": self.low, "high": self.high})
        elif self.log and self.low <= 0:
            yield Finding("low", "must be > 0 with log = true", self.low)
        elif refused:
            yield from (Finding(*one) for one in refused)
        elif self.whole and not float(self.step or 1).is_integer():
            yield Finding("step", "must be an integer", self.step)


Range = Choices | Numbers


@dataclass(frozen=True)
class Search:
    """What is searched: an experiment and ranges of its keys, checked together."""

    tree: Mapping[str, Any]  # the experiment as it is written
    config: Config  # the same, checked
    options: TuneConfig  # how it is searched
    ranges: tuple[Range, ...]  # where
    source: str  # origin of the tree, for messages

    def with_values(self, values: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
        """Return the experiment with values of the tuned keys, and those values that concern it.

        A `ConfigError` says that the values do not go with each other.
        """
        values = dict(values)
        while True:
            try:
                return parse_config(with_leaves(self.tree, values), source=self.source), values
            except ConfigError as error:
                idle = {found.path for found in error.findings if found.rule.startswith("goes with ")}
                if not idle or not idle <= values.keys() or idle != {found.path for found in error.findings}:
                    raise
                values = {key: value for key, value in values.items() if key not in idle}

    def method_of(self, config: Config) -> str:
        """Return the method whose statistic counts; a `ConfigError` says that there are several."""
        names, given = config.methods, self.options.method
        if given is not None:
            candidates = [config.method_named(given)]
        elif config.exact.enabled:
            candidates = [EXACT]
        else:
            tuned = {one.key for one in self.ranges}
            losses = config.surrogate.losses if "surrogate.losses" in tuned else ()
            baselines = config.baselines.names if "baselines.methods" in tuned else ()
            candidates = [some[0] for some in (losses, baselines, names) if len(some) == 1]
        if not candidates or candidates[0] not in names:
            rule = f"must be the method whose statistic counts, one of {', '.join(names)}"
            raise ConfigError(self.source, [Finding("tune.method", rule, given or "nothing")])
        return candidates[0]

    @property
    def seed(self) -> int:
        """Seed of the search and of the inner splits."""
        return self.config.seed if self.options.seed is None else self.options.seed


def load_tuning(path: Path, overrides: Sequence[str]) -> Search:
    """Read a config file with a section ``[tune]``; a `ConfigError` has everything that is wrong."""
    return check_tuning(config_tree(path), overrides, source=str(path))


def check_tuning(tree: Mapping[str, Any], overrides: Sequence[str] = (), *, source: str = "config") -> Search:
    """Check an experiment and its section ``[tune]`` together; the arguments are those of `parse_config`."""
    found: list[Finding] = []
    try:
        config = parse_config(tree, overrides, source=source)
    except ConfigError as error:
        found += error.findings
    tree, _, _ = apply_overrides(tree, overrides)
    if not isinstance(section := tree.pop(TUNE, {}), Mapping):
        raise ConfigError(source, [*found, Finding(TUNE, "must be a table of keys", section)])
    own = {key: value for key, value in section.items() if key in TuneConfig.model_fields}
    options = TuneConfig()
    try:
        options = TuneConfig.model_validate(own)
    except ValidationError as error:
        found += [Finding(f"{TUNE}.{one.path}", one.rule, one.value) for one in findings_of(error, TuneConfig, {})]
    read = [_range(*leaf) for leaf in leaves({key: value for key, value in section.items() if key not in own})]
    found += [one for wrong in read if isinstance(wrong, list) for one in wrong]
    ranges = tuple(one for one in read if not isinstance(one, list))
    if not read:
        example = "surrogate.l2 = {low = 1e-4, high = 10, log = true}"
        found.append(Finding(TUNE, f"must have a range for at least one key, such as {example}"))
    if options.statistic is None and any(one.key in ("exact.statistic", "card.statistic") for one in ranges):
        found.append(Finding(f"{TUNE}.statistic", "is required where the statistic of a method is tuned"))
    if found:
        raise ConfigError(source, found)
    return Search(tree, config, options, ranges, source)


_SHARED = "must not be tuned: trials share their data, their seed, and what is measured"
_NOT_TUNED = {
    **dict.fromkeys(("data", "statistics", "tracking", "name", "seed", *free_keys()), _SHARED),
    **dict.fromkeys(
        ("exact.enabled", "card.enabled"), "must not be tuned: tune.method names the method whose statistic counts"
    ),
}


def _range(key: str, value: object) -> Range | list[Finding]:
    """Return the range of a key, or all that is wrong with it."""
    path = f"{TUNE}.{key}"
    if (rule := why_not(key, _NOT_TUNED, TuneConfig.model_fields)) is not None:
        return [Finding(path, rule, value)]
    if isinstance(value, Mapping):
        try:
            numbers = Numbers.model_validate({"key": key, **value})
        except ValidationError as error:
            return [Finding(f"{path}.{one.path}", one.rule, one.value) for one in findings_of(error, Numbers, {})]
        wrong = [replace(one, path=f"{path}.{one.path}".rstrip(".")) for one in numbers.clashes()]
        return wrong or numbers
    if not isinstance(value, list) or not value:
        rule = "must be a list of values, or a table: {low = 1, high = 10}, with or without step and log"
        return [Finding(path, rule, value)]
    wrong = []
    for at, one in enumerate(value):
        rules = [("must not be there twice", one)] if one in value[:at] else []
        wrong += [Finding(f"{path}[{at}]", rule, got) for rule, got in (*rules, *_refused(key, one))]
    return wrong or Choices(key, tuple(value))


def _refused(key: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield the rules of a key that a value breaks by itself, with what was received."""
    tree = {"name": "x", "data": {"name": "gaussians"}} | unflat({key: value})
    try:
        Config.model_validate(tree)
    except ValidationError as error:
        for found in findings_of(error, Config, {}):
            if found.path.split("[")[0] == key:
                yield found.rule, found.value
