"""The config of an experiment: read from TOML, overridden from the command line, checked as a whole.

A key is a field of a section (`trainers.config.sections`) with its range and description; command line, reference and
messages follow from the field. `trainers.config.grids` has configs of sweeps, `trainers.config.tuning` of searches.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, StrictStr, ValidationError
from pydantic.fields import FieldInfo

from ltr.checks import nearest
from ltr.statistics import LOG_LOSS, RankStatistic
from trainers.config.errors import ConfigError, Finding, findings_of
from trainers.config.sections import (
    AUTO,
    BASELINES,
    FREE,
    AnswerConfig,
    BaselinesConfig,
    CardConfig,
    DataConfig,
    ExactConfig,
    FileName,
    Section,
    Seed,
    StatisticsConfig,
    SurrogateConfig,
    TrackingConfig,
    estimator_name,
    is_code,
    option,
)
from trainers.config.toml_text import apply_overrides, dump_toml, read_experiment

__all__ = [
    *("AUTO", "CARD", "EXACT", "Config"),
    *("describe_keys", "free_keys", "load_config", "parse_config", "resolved_toml"),
]

EXACT = "exact"
"""Name of the exact stage among the methods of a run."""
CARD = "card"
"""Name of the card among the methods of a run."""
_TAKEN = (EXACT, CARD, "results", *BASELINES)
TUNE = "tune"
"""Section of a config that `ltr tune` reads, see `trainers.config.tuning`; other commands pass over it."""


class Config(Section):
    """The config of one experiment."""

    name: FileName = option(..., "name of the run and its folder; the config file's name when left out")
    seed: Seed = option(0, "seed of the split, the training and the exact stage")
    runs_dir: StrictStr = option("runs", "folder that contains the run folders", min_length=1, free=True)
    data: DataConfig
    surrogate: SurrogateConfig = SurrogateConfig()
    baselines: BaselinesConfig = BaselinesConfig()
    exact: ExactConfig = ExactConfig()
    card: CardConfig = CardConfig()
    answer: AnswerConfig = AnswerConfig()
    statistics: StatisticsConfig = StatisticsConfig()
    tracking: TrackingConfig = TrackingConfig()

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of all methods of the run in the order in which they run."""
        column = [self.base] if self.exact.enabled and self.exact.score_column is not None else []
        last = [name for name, section in ((EXACT, self.exact), (CARD, self.card)) if section.enabled]
        return (*self.surrogate.losses, *self.baselines.names, *column, *last)

    def method_named(self, text: str) -> str:
        """Return the name of the method that a text names: its own, or for an estimator also its import path."""
        known = {str(path): name for name, path in self.baselines.estimators.items()}
        with contextlib.suppress(ValueError):
            return known.get(str(estimator_name(text)), text)
        return text

    @property
    def base(self) -> str:
        """Name of the method whose list the exact stage reranks: ``exact.base``, or a column of scores.

        By default it is ``auto`` where the run has that, else the first baseline, else the first loss.
        """
        if (column := self.exact.score_column) is not None:
            return f"{column} (column)"
        if self.exact.base is not None:
            return self.method_named(self.exact.base)
        names = (*self.baselines.names, *self.surrogate.losses)
        return AUTO if AUTO in names else next(iter(names), AUTO)

    @property
    def reported(self) -> tuple[str, ...]:
        """Names of the statistics to report: those of the exact stage and of the card come first."""
        card = (self.card.statistic,) if self.card.enabled and self.card.statistic != LOG_LOSS else ()
        exact = (self.exact.statistic,) if self.exact.enabled or not self.card.enabled else ()
        return tuple(dict.fromkeys((*exact, *card, *self.statistics.report)))

    def clashes(self) -> Iterator[Finding]:
        """Yield what does not go together in a section, and across sections: methods, their base, columns, labels."""
        for section, options in self:
            if isinstance(options, Section):
                yield from (replace(one, path=f"{section}.{one.path}") for one in options.clashes())
        names, column = (*self.surrogate.losses, *self.baselines.names), self.exact.score_column
        if not names and column is None and (self.exact.enabled or not self.card.enabled):
            rule = "must name a loss, or baselines.methods a method: nothing is left to run"
            if self.card.enabled:
                rule += " before the exact stage; exact.enabled = false leaves the card alone"
            yield Finding("surrogate.losses", rule, [])
        elif self.exact.enabled and column is None and self.base not in names:
            rule = f"must be a method of this run ({', '.join(names)})"
            rule += "; name it in baselines.methods, too" if ":" in self.base else ""
            yield Finding("exact.base", rule, self.base)
        # estimators whose methods would have the name, and so the folder, of another method
        taken = {name.casefold(): "of another method" for name in self.surrogate.losses}
        taken |= dict.fromkeys(_TAKEN, "of another method, or of a folder of the run")
        for at, (name, text) in enumerate(zip(self.baselines.names, self.baselines.methods, strict=True)):
            if ":" in text and (other := taken.get(name.casefold())) is not None:
                rule = f"has the name {name!r}, which is that {other}: name a function or class of another name"
                yield Finding(f"baselines.methods[{at}]", rule, text)
            taken.setdefault(name.casefold(), f"of {text}")
        features = self.data.features
        if column is not None and (column in self.data.drop or (features is not None and column not in features)):
            rule = "must be among the columns that are read: name it in data.features, and not in data.drop"
            yield Finding("exact.base_score", rule, column)
        if self.data.weighs:
            yield from self._clashes_with_weights()
        yield from self._clashes_with_outcomes()

    def _clashes_with_outcomes(self) -> Iterator[Finding]:
        """Require the statistic of cards that labels of two fields have, and leave these labels to cards."""
        times, treatments = self.data.time_to_event is not None, self.data.treatment is not None
        role = "data.time_to_event" if times else "data.treatment" if treatments else ""
        given = "times" if times else "treatments" if treatments else "labels"
        of = "labels" if self.card.statistic == LOG_LOSS else RankStatistic.parse(self.card.statistic).kind.labels
        if self.card.enabled and of != given:
            own = {"times": "c_index", "treatments": "auuc"}.get(given, "one of plain labels, such as auc")
            yield Finding("card.statistic", f"must be {own}{f' with {role}' if role else ''}", self.card.statistic)
        if role and self.methods not in ((), (CARD,)):
            rule = "goes with cards alone: surrogate.losses = [], baselines.methods = [] and exact.enabled = false"
            yield Finding(role, rule, self.data.time_to_event or self.data.treatment)

    def _clashes_with_weights(self) -> Iterator[Finding]:
        """Refuse what rows cannot have weights in."""
        exact, key = self.exact, self.data.weighs
        if self.surrogate.certify:
            yield Finding("surrogate.certify", f"must be false with {key}: the certified optimum has no weights", True)
        if self.card.enabled:
            yield Finding("card.enabled", f"must be false with {key}: a card counts rows", True)
        if exact.enabled and not (kind := RankStatistic.parse(exact.statistic).kind).weighs_rows:
            other = "wrs, the sum of ranks, has" if kind.share_of_pairs else "a hit counts 1; dcg has"
            rule = f"has no weights of rows, which {key} asks for; {other}"
            yield Finding("exact.statistic", rule, exact.statistic)

    def changed(self, section: str, **values: Any) -> Config:  # noqa: ANN401  (of any keys)
        """Return a copy with other values of a section, which are not checked."""
        return self.model_copy(update={section: getattr(self, section).model_copy(update=values)})

    @property
    def code(self) -> tuple[str, ...]:
        """The losses, estimators and loggers that are named by import path."""
        names = (*self.surrogate.losses, *map(str, self.baselines.estimators.values()), *self.tracking.loggers)
        return tuple(filter(is_code, names))

    @property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.runs_dir) / self.name


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read the config of a TOML file and apply overrides such as ``exact.top_k=100``.

    A relative path of the data starts from the folder of the file that contains it, and from the current folder where
    it is given as an override. Losses and estimators that it names by import path are imported to be checked, except
    within `ltr.checks.trusting` (False). A `ConfigError` has everything that is wrong.
    """
    return parse_config(config_tree(Path(path)), overrides, source=str(path))


def config_tree(path: Path) -> dict[str, Any]:
    """Return the tree of an experiment's TOML file, with the name that it has by its file."""
    tree = read_experiment(path)
    if "grid" in tree:
        raise ConfigError(str(path), [Finding("grid", "makes this the config of a sweep: `ltr sweep` takes it")])
    return {"name": path.stem, **tree}


def parse_config(tree: Mapping[str, Any], overrides: Iterable[str] = (), *, source: str = "config") -> Config:
    """Apply overrides to a tree of tables, check it field by field, then across fields, and return its config.

    A `ConfigError`, which names the `source`, has all fields that are wrong by themselves; if there are none, all that
    do not go together.

    Examples:
        >>> parse_config({"name": "x", "data": {"name": "gaussians"}}, ["exact.top_k=20"]).exact.top_k
        20
    """
    tree, given, found = apply_overrides(tree, overrides)
    tree.pop(TUNE, None)
    if isinstance(card := tree.get(CARD), Mapping):
        tree[CARD] = {"enabled": True, **card}
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(source, [*found, *findings_of(error, Config, given)]) from None
    found += [replace(one, from_command_line=one.path.split("[")[0] in given) for one in config.clashes()]
    if found:
        raise ConfigError(source, found)
    return config


def resolved_toml(config: Config) -> str:
    """Return the whole tree, defaults included, as TOML that `load_config` reads back to an equal config."""
    return dump_toml(config.model_dump())


def describe_keys(model: type[BaseModel] = Config, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every key of a config with its default in TOML and its meaning."""
    for key, field in _fields_of(model, prefix):
        none = field.is_required() or field.default in (None, {})
        text = "" if none else dump_toml({"x": field.default}).removeprefix("x = ").strip()
        yield key, text, field.description or ""


@functools.cache
def free_keys() -> frozenset[str]:
    """Return the keys that do not change results."""
    return frozenset(key for key, field in _fields_of(Config) if field.json_schema_extra == FREE)


def leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield what the keys of a tree hold by dotted key; tables are values of known keys, and ranges of any key."""
    for key, value in tree.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value and path not in _keys() and not set(value) & {"low", "high"}:
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


def why_not(key: str, refused: Mapping[str, str], others: Iterable[str] = ()) -> str | None:
    """Return why a key cannot be given, unknown also among `others` or `refused`, maybe with its section; else None."""
    if key not in (keys := _keys()):
        if any(known.startswith(f"{key}.") for known in keys):
            return "is a section: name its keys"
        return f"unknown key{nearest(key, (*keys, *others))}"
    return refused.get(key.partition(".")[0]) or refused.get(key)


@functools.cache
def _keys() -> tuple[str, ...]:
    return tuple(key for key, _ in _fields_of(Config))


def _fields_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield the fields of a model and of its sections by dotted key."""
    for name, field in model.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from _fields_of(section, f"{prefix}{name}.")
        else:
            yield prefix + name, field
