"""The config of a sweep: grids of experiments, read from TOML; `docs/experiments.md` shows one."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictStr, ValidationError

from ltr.checks import is_whole, nearest
from trainers.config import Config, describe_keys, free_keys, leaves, parse_config, why_not
from trainers.config.errors import ConfigError, Finding, findings_of
from trainers.config.sections import DataConfig, FileName, Section, checked, option
from trainers.config.toml_text import apply_overrides, flat, make_absolute, merged, read_experiment, read_toml, unflat
from trainers.config.tuning import TuneConfig


def _not_empty(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:  # min_length would also complain of lists whose entries are wrong
        raise ValueError("must hold at least one entry")
    return values


_Names = Annotated[tuple[StrictStr, ...], Field(strict=False), AfterValidator(_not_empty)]


def _are_seeds(value: object) -> bool:
    if isinstance(value, list | tuple):
        return bool(value) and len(set(value)) == len(value) and all(type(x) is int and 0 <= x < 2**31 for x in value)
    return is_whole(value) and 1 <= value <= _MOST_SPLITS


_MOST_SPLITS = 100_000
_SPLITS = checked(
    f"must be an integer from 1 to {_MOST_SPLITS}, or a list of different seeds from 0 to 2^31 - 1",
    _are_seeds,
    lambda value: value if isinstance(value, int) else tuple(value),
)


class GridConfig(Section):
    """The config of a grid: experiments, and the keys that are varied in them."""

    name: FileName = option("methods", "name of the table that the grid belongs to")
    title: StrictStr = option("", "title of that table")
    experiments: _Names = option(..., "config files of experiments, relative to the sweep's")
    splits: Annotated[int | tuple[int, ...], _SPLITS] = option(10, "number of splits, seeds 0, 1, ..., or the seeds")
    methods: _Names | None = option(None, "methods of the experiments; all when left out")
    best_of: StrictStr | None = option(
        None, "a varied key: the report shows its best value only, by the mean on the test sets"
    )
    recentre: Literal["l2", "max"] | None = option(
        None, "also measure the exact stage's weights after recentring, in norm l2 or max"
    )
    set: dict[str, Any] = option({}, "keys of the experiments to set")
    vary: dict[str, Any] = option({}, "keys of the experiments, each with a list of values")

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the splits."""
        return tuple(range(self.splits)) if isinstance(self.splits, int) else self.splits


class SweepConfig(Section):
    """The config of a sweep: its name, its folder and its grids."""

    name: FileName = option(..., "name of the sweep and its folder; the config file's name when left out")
    runs_dir: StrictStr = option("runs", "folder that contains the sweep's folder", min_length=1)
    grid: Annotated[tuple[GridConfig, ...], Field(strict=False), AfterValidator(_not_empty)] = option(
        ..., "the grids, one [[grid]] table each"
    )

    @property
    def folder(self) -> Path:
        """Folder of the sweep."""
        return Path(self.runs_dir) / self.name


@dataclass(frozen=True)
class Variant:
    """One experiment of a grid with one choice of what is varied."""

    varied: dict[str, Any]  # chosen values by dotted key
    config: Config  # config of the experiment with these values


@dataclass(frozen=True)
class Grid:
    """A grid with all its variants."""

    config: GridConfig  # the grid as it is written
    variants: tuple[Variant, ...]  # its experiments with every combination of values


@dataclass(frozen=True)
class Sweep:
    """A sweep with all its experiments, checked."""

    config: SweepConfig
    grids: tuple[Grid, ...]
    source: str  # the config file, for messages

    @property
    def experiments(self) -> dict[str, Config]:
        """A config for each name of an experiment; those of one name have the same data."""
        found: dict[str, Config] = {}
        for grid in self.grids:
            for variant in grid.variants:
                found.setdefault(variant.config.name, variant.config)
        return found


def load_sweep(path: str | Path, overrides: Sequence[str] = ()) -> Sweep:
    """Read the sweep of a TOML file and check all its experiments; a `ConfigError` has everything that is wrong.

    Overrides ``key=value`` are of the sweep's own keys, or of keys of every experiment.
    """
    path = Path(path)
    own: list[str] = []
    everywhere: dict[str, str] = {}
    findings: list[Finding] = []
    for text in overrides:
        key = text.partition("=")[0].strip()
        if rule := _IN_FILE.get(key.partition(".")[0]):
            findings.append(Finding(key, rule, text, from_command_line=True))
        elif "=" not in text or key in SweepConfig.model_fields:
            own.append(text)
        else:
            everywhere[key] = text
    tree, given, nonsense = apply_overrides({"name": path.stem, **read_toml(path)}, own)
    findings += nonsense
    if "grid" not in tree:
        hint = "is required: [[grid]] tables; `ltr run` takes the config of one experiment"
        raise ConfigError(str(path), [*findings, Finding("grid", hint)])
    try:
        config = SweepConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(str(path), [*findings, *findings_of(error, SweepConfig, given)]) from None
    grids = []
    data: dict[str, DataConfig] = {}
    for at, grid in enumerate(config.grid):
        reader = _Reader(grid, f"grid[{at}]", path.parent, everywhere)
        grids.append(Grid(grid, tuple(reader.variants())))
        findings += reader.findings
        for variant in grids[-1].variants:
            if data.setdefault(name := variant.config.name, variant.config.data) != variant.config.data:
                rule = f"two experiments called {name!r} have different data; give one of them another name"
                findings.append(Finding(f"grid[{at}].experiments", rule))
    if findings:
        raise ConfigError(str(path), findings)
    return Sweep(config, tuple(grids), str(path))


def keys_of(wanted: Sequence[str] = ()) -> dict[str, list[tuple[str, str, str]]]:
    """Return keys with their defaults and meanings, those of an experiment and, under titles, of sweeps and searches.

    `wanted` are sections, such as ``exact``, or keys; all when empty. A `ConfigError` names those that do not exist.
    """
    tables = {
        "": list(describe_keys()),
        "of a sweep": [*describe_keys(SweepConfig), *describe_keys(GridConfig, "grid.")],
        "of a search": list(describe_keys(TuneConfig, "tune.")),
    }
    known = {key for rows in tables.values() for key, *_ in rows}
    sections = {".".join(parts[:at]) for key in known if (parts := key.split(".")) for at in range(1, len(parts))}
    names, findings = sorted(sections | known), []
    for text in wanted:
        if text not in names:
            near = nearest(text, names) or nearest(text.rpartition(".")[2], names)
            hint = near or f"; sections are {', '.join(sorted(sections))}"
            findings.append(Finding(text, f"no section or key of a config{hint}"))
    if findings:
        raise ConfigError("options", findings)
    prefixes = tuple(f"{text}." for text in wanted)
    asked = {
        title: [row for row in rows if not wanted or f"{row[0]}.".startswith(prefixes)]
        for title, rows in tables.items()
    }
    return {title: rows for title, rows in asked.items() if rows}


class _Reader:
    """Reader of a grid's experiments; `findings` collects what is wrong."""

    def __init__(self, grid: GridConfig, where: str, folder: Path, everywhere: Mapping[str, str]) -> None:
        self.findings: list[Finding] = []
        self._grid, self._where, self._folder, self._everywhere = grid, where, folder, everywhere
        tree = unflat(flat(grid.set))
        make_absolute(tree.get("data"), folder)
        self._set, self._vary = dict(leaves(tree)), dict(leaves(unflat(flat(grid.vary))))

    def variants(self) -> list[Variant]:
        """Return the variants that nothing is wrong with."""
        for key, value in self._set.items():
            if value != {} and (rule := why_not(key, {"seed": _SEED})):
                self._find(f"set.{key}", rule, value)
        for key, value in self._vary.items():
            if rule := why_not(key, _NOT_VARIED):
                self._find(f"vary.{key}", rule, value)
            elif not isinstance(value, list) or not value:
                self._find(f"vary.{key}", "must be a list of at least one value", value)
            if key in self._set and not isinstance(self._set[key], dict):  # tables are merged
                self._find(f"vary.{key}", "must not be set as well", value)
            if key in self._everywhere:
                rule = f"is varied by {self._where}"
                self.findings.append(Finding(key, rule, self._everywhere[key], from_command_line=True))
        if self.findings:
            return []
        grid, found = self._grid, [variant for name in self._grid.experiments for variant in self._of_experiment(name)]
        if grid.best_of is not None and grid.best_of not in self._vary:
            self._find("best_of", f"must be a varied key ({', '.join(self._vary) or 'none is'})", grid.best_of)
        timed = any(one.config.data.time is not None and one.config.data.test_path is None for one in found)
        if timed and len(grid.seeds) > 1:
            rule = "must be 1 with data.time: the earliest rows train, whatever the seed"
            self._find("splits", rule, grid.splits)
        known = list(dict.fromkeys(method for variant in found for method in variant.config.methods))
        for method in grid.methods or ():
            if known and not any(variant.config.method_named(method) in known for variant in found):
                hint = nearest(method, known) or f"; they have {', '.join(known)}"
                self._find("methods", f"must be methods of the experiments{hint}", method)
        return found

    def _find(self, path: str, rule: str, value: object = None) -> None:
        self.findings.append(Finding(f"{self._where}.{path}", rule, value))

    def _of_experiment(self, name: str) -> Iterator[Variant]:
        file = self._folder / name
        try:
            tree = {"name": file.stem, **merged(read_experiment(file), unflat(self._set))}
        except ConfigError as error:
            self._find("experiments", str(error))
            return
        if "grid" in tree:
            self._find("experiments", "must be configs of experiments, and this is one of a sweep", name)
            return
        for values in itertools.product(*self._vary.values()):
            choice = dict(zip(self._vary, values, strict=True))
            try:
                config = parse_config(merged(tree, unflat(choice)), self._everywhere.values(), source=name)
            except ConfigError as error:
                self.findings += [self._placed(finding, name) for finding in error.findings]
                continue
            yield Variant(choice, config)

    def _placed(self, finding: Finding, name: str) -> Finding:
        """Return a finding in an experiment, at the place where its value comes from."""
        if finding.from_command_line:
            return finding
        for table, values in (("vary", self._vary), ("set", self._set)):
            if any(re.match(rf"{re.escape(key)}\b", finding.path) for key in values):
                return replace(finding, path=f"{self._where}.{table}.{finding.path}")
        where = ": ".join(part for part in (f"{self._where}.experiments", name, finding.path) if part)
        return replace(finding, path=where)


_SEED = "must be left out: splits are the seeds"
_IN_FILE = {"grid": "is set in the file only: there may be several grids", "seed": _SEED}
_NOT_VARIED = {
    "seed": _SEED,
    "name": "must not be varied: it is the row of the table",
    "data": "must not be varied: data sets are rows of the table, each an experiment of its own name",
    **dict.fromkeys(
        ("surrogate.losses", "baselines.methods", "exact.enabled", "card.enabled"),
        "must not be varied: methods chooses them",
    ),
    **dict.fromkeys(free_keys(), "must not be varied: results do not depend on it"),
}
