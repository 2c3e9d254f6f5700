"""Experiments, searches and rankings from Python: `ltr.experiment`, `ltr.tune` and `ltr.rank`."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as narwhals
import numpy as np

from ltr.data.table_files import FRAME
from trainers.config import TUNE, Config, config_tree, parse_config
from trainers.config.errors import ConfigError, Finding
from trainers.config.toml_text import make_absolute, merged, unflat
from trainers.config.tuning import check_tuning
from trainers.display import Display
from trainers.ranking import NEW, checked_name, rank_given, read_given
from trainers.ranking_files import Ranking
from trainers.run.experiment import run_experiment
from trainers.run.results import Results
from trainers.task.data import PATHS, as_pandas, read_source
from trainers.tuning import Tuning, run_tuning

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["experiment", "rank", "tune"]

_COLUMNS = ("label", "query", "group", "time")
"""Keys of ``[data]`` that are given by themselves."""
Given = str | os.PathLike[str] | Mapping[str, Any] | Config | None
"""A config: a path, a dict with nested or dotted keys, a `Config`, or nothing but defaults."""


def experiment(
    config: Given = None,
    *,
    data: Any = None,  # noqa: ANN401  (a frame of any library)
    test: Any = None,  # noqa: ANN401
    folder: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    progress: bool = False,
    **overrides: Any,  # noqa: ANN401  (any key of a config)
) -> Results:
    """Run the experiment of a config, as ``ltr run`` does, and return its results with frames and fitted rankers.

    The same call continues an interrupted run. Ctrl-C returns the results so far, with ``complete`` False.

    Args:
        config: a path of a TOML file, a dict (nested, or with dotted keys such as ``exact.top_k``), or a `Config`.
        data: a table: a pandas or polars frame, or the path of a file. A dict sets keys of ``[data]``.
        test: the table of the test set; `data` is split when left out.
        folder: the run folder; ``runs_dir/name`` where there is a ``runs_dir``, else a temporary folder without
            TensorBoard events, which lives as long as the results.
        fresh: throw away an earlier run in the folder.
        progress: whether to show progress on stderr.
        overrides: keys that replace those of `config`: ``label``, ``query``, ``group`` and ``time`` of ``[data]``,
            sections as dicts, or dotted keys in ``**{}``.

    Raises:
        ValueError: a `ConfigError` or `DataError` with everything that is wrong, or a `RunError` about the folder.

    Examples:
        >>> import ltr
        >>> results = ltr.experiment(
        ...     {"data.name": "gaussians", "surrogate.losses": ["ranknet"], "baselines.methods": []},
        ...     exact={"enabled": False, "statistic": "auc"},
        ... )
        >>> results.table["test auc"].round(3).to_dict()
        {'ranknet': 0.809}
        >>> results.ranked["position"].head(3).tolist(), results.rankers["ranknet"].coef_.shape
        ([1, 2, 3], (2,))
    """
    tree, frames, source = _given(config, data, test, overrides)
    with _placed(tree, folder) as temporary, _display(progress) as display:
        config = parse_config(tree, source=source)
        given = read_source(config.data, frames) if frames else None
        results = run_experiment(config, fresh=fresh, display=display, source=given)
        if temporary:
            weakref.finalize(results.source, shutil.rmtree, temporary, ignore_errors=True)
    return results


def tune(
    config: Given = None,
    ranges: Mapping[str, Any] | None = None,
    *,
    data: Any = None,  # noqa: ANN401
    test: Any = None,  # noqa: ANN401
    folder: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    progress: bool = False,
    **overrides: Any,  # noqa: ANN401
) -> Tuning:
    """Search for the best options of an experiment by the training set alone, and fit them, as ``ltr tune`` does.

    Each trial is measured on inner splits of the training set, by whole queries where there are queries. The same call
    continues a search in its folder (``runs_dir/name-tune`` by default), also with more trials. It needs Optuna, which
    ``pip install 'rankproof[tune]'`` brings. Other arguments and errors are those of `experiment`.

    Args:
        config: as for `experiment`; its section ``[tune]`` may hold ranges and options.
        ranges: ranges by dotted key, lists of values or ``{"low": 1e-4, "high": 10, "log": True}``; also options of the
            search: ``trials``, ``method``, ``statistic``, ``validation``, ``splits``, ``seed``, ``time_limit``.

    Examples:
        >>> import ltr
        >>> found = ltr.tune(
        ...     {"data.name": "gaussians", "surrogate.losses": ["ranknet"], "baselines.methods": []},
        ...     {"surrogate.l2": [1e-4, 100.0], "trials": 2, "splits": 1},
        ...     exact={"enabled": False, "statistic": "auc"},
        ... )
        >>> len(found.trials), found.best["surrogate.l2"] in (1e-4, 100.0), found.results.complete
        (2, True, True)
    """
    tree, frames, source = _given(config, data, test, overrides)
    section = merged(tree.pop(TUNE, {}), _nested(ranges or {}))
    with _placed(tree, folder, "-tune") as temporary, _display(progress) as display:
        search = check_tuning({**tree, TUNE: section}, source=source)
        given = read_source(search.config.data, frames) if frames else None
        tuning = run_tuning(search, search.config.folder, source=given, fresh=fresh, display=display)
        if temporary:
            weakref.finalize(tuning, shutil.rmtree, temporary, ignore_errors=True)
    return tuning


def rank(
    data: Any,  # noqa: ANN401  (a frame of any library, or a path)
    *,
    label: str,
    visits: int,
    today: str | None = None,
    new: Any = None,  # noqa: ANN401
    id: str | None = None,  # noqa: A002  (the key's name)
    methods: str | Sequence[str] = "auto",
    signs: Mapping[str, str] | None = None,
    required: Sequence[str] = (),
    forbidden: Sequence[str] = (),
    constraints: Sequence[str] = (),
    max_nonzeros: int | None = None,
    demands: Sequence[str] = (),
    new_values: bool = False,
    price: bool | None = None,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **data_keys: Any,  # noqa: ANN401  (any key of the section data)
) -> Ranking:
    """Rank the rows of a table: which to visit, how many hits to expect, and why, as ``ltr rank`` does.

    Several methods are compared on rows held out, and blended. A hit is a row with a positive label.

    Args:
        data: a pandas or polars frame, or the path of a file. Rows without a label are ranked, unless `new` is given.
        label: column of the labels.
        visits: number of rows that you can visit, of each query where there are queries.
        today: column of the scores in use today, larger first, to compare with.
        new: the rows to rank, a frame or the path of a file.
        id: column that names a row; found by its values, or the index of a frame, when left out.
        methods: methods to compare, from the simplest on, as `ltr.rankers.AutoRanker` takes their names.
        signs: ``"+"`` or ``"-"`` for columns as which the score must not fall, or not rise.
        required, forbidden: columns that must be used, and such that must not, with all their features.
        constraints: linear constraints on weights, such as ``"age >= 2*bmi"``: only linear methods are then compared.
        max_nonzeros: most features to use. A text column has one for each of its values, of which `signs` and
            `required` name one, such as ``"mode = car"``; a missing value is a feature, too.
        demands: demands on the list of the labelled rows, such as ``"share(sex = F) @50 >= 0.4"``
            (`ltr.list_demands`); they may name columns that are dropped.
        new_values: whether most rows to rank may have texts in a column that no labelled row had.
        price: whether to state what constraints cost in hits, by a second fit; by default up to 2,000 labelled rows.
        seed: seed of what is drawn at random.
        folder: folder to write page, list, ranker and config into; nothing is written when left out.
        progress: whether to show progress on stderr.
        data_keys: further keys of ``[data]``: ``query``, ``time`` and ``group`` name columns, ``drop`` several.

    Raises:
        ValueError: a `ConfigError` or `DataError` with everything that is wrong with the arguments and tables.

    Examples:
        >>> import ltr, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"age": rng.integers(20, 90, 400), "falls": rng.poisson(1.0, 400)})
        >>> table["ill"] = (rng.random(400) < 0.1 + 0.2 * (table["falls"] > 1)).astype(int)
        >>> ranking = ltr.rank(table[:300], label="ill", visits=10, new=table[300:], methods=["logistic"])
        >>> ranking.answer.expected.value > ranking.answer.chance
        True
        >>> print(ranking.answer.entries[0].reasons[0].column)
        falls
    """
    path = isinstance(new, str | os.PathLike)
    given = {
        "seed": seed,
        "answer.visits": visits,
        "answer.id": id,
        "answer.new": str(Path(new).absolute()) if path else None,
        "answer.new_values": new_values,
        "answer.price": price,
        "baselines.auto.today": today,
        "baselines.auto.methods": () if methods == "auto" else methods,
        "exact.signs": signs,
        "exact.required": required,
        "exact.forbidden": forbidden,
        "exact.constraints": constraints,
        "exact.max_nonzeros": max_nonzeros,
        "exact.demands": demands,
        **{f"data.{key}": value for key, value in (data_keys | {"label": label}).items()},
    }
    given = {key: value for key, value in given.items() if value is not None}
    tree, frames, source = _given(given, data, None, {})
    if new is not None and not path:
        if not narwhals.dependencies.is_into_dataframe(new):
            rule = "must be a pandas or polars frame, or the path of a file"
            raise ConfigError("ltr.rank", [Finding("new", rule, type(new).__name__)])
        frames[NEW] = as_pandas(new, NEW)
    tree["name"] = "ranking" if frames else checked_name(Path(str(data)).stem)
    config = parse_config(tree, source=source if source != "config" else "ltr.rank")
    if "path" not in frames:
        config.data.check_files([config.answer.new])
    with _display(progress) as display:
        ranking = rank_given(read_given(config, frames), display)
    if folder is not None:
        ranking.save(Path(folder))
    return ranking


@contextlib.contextmanager
def _placed(tree: dict[str, Any], folder: str | os.PathLike[str] | None, suffix: str = "") -> Iterator[str]:
    """Put the folder of a run into its tree; yield a temporary one, which an error removes, or an empty text."""
    if folder is not None:
        tree |= {"runs_dir": str(Path(folder).parent), "name": Path(folder).name}
    elif "runs_dir" in tree:
        tree["name"] = f"{tree['name']}{suffix}"
    else:
        temporary = tempfile.mkdtemp(prefix="ltr-")
        tree |= {"runs_dir": temporary, "tracking": {"loggers": [], "figures": False} | tree.get("tracking", {})}
        try:
            yield temporary
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return
    yield ""


def _display(progress: bool) -> Display:
    from rich.console import Console

    return Display(Console(stderr=True) if progress else None)


def _given(
    config: Given,
    data: Any,  # noqa: ANN401
    test: Any,  # noqa: ANN401
    overrides: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, pd.DataFrame], str]:
    """Return the tree of a config with all that was given beside it, its frames by key of the data, and its source."""
    source = os.fspath(config) if isinstance(config, str | os.PathLike) else "config"
    tree = _tree(config)
    if isinstance(data, Mapping):
        overrides, data = {"data": data, **overrides}, None
    columns = {key: value for key, value in {"test_path": test, **overrides}.items() if key in (*_COLUMNS, "test_path")}
    tree = merged(tree, _nested({key: value for key, value in overrides.items() if key not in _COLUMNS}))
    if not isinstance(section := tree.get("data", {}), Mapping):
        raise ConfigError(source, [Finding("data", "must be a table of keys", section)])
    if data is not None:  # which comes in place of the data of the config
        section = {key: value for key, value in section.items() if key not in ("name", *PATHS)}
        columns["path"] = os.fspath(data) if isinstance(data, os.PathLike) else data
    section = {**section, **{key: value for key, value in columns.items() if value is not None}}
    frames: dict[str, pd.DataFrame] = {}
    for key in PATHS:
        value = section.get(key)
        if narwhals.dependencies.is_into_dataframe(value):
            frames[key] = as_pandas(value, key)
            section |= {key: FRAME, "format": "table"}
        elif value is not None and not isinstance(value, str):
            rule = "must be a pandas or polars frame, or the path of a file"
            raise ConfigError(source, [Finding(f"data.{key}", rule, type(value).__name__)])
    for key in ("missing", "decimal", *PATHS) if frames else ():
        if key not in frames and (value := section.get(key)):
            rule = "must be a data frame, as the other sets are"
            if key not in PATHS:
                rule = "goes with files only: put the frame's cells right instead"
            raise ConfigError(source, [Finding(f"data.{key}", rule, value)])
    if not frames:
        make_absolute(section, Path())
    return {"name": "experiment", **tree, "data": section}, frames, source


def _tree(config: Given) -> dict[str, Any]:
    if config is None:
        return {}
    if isinstance(config, Config):
        return config.model_dump(exclude_unset=True)
    if isinstance(config, Mapping):
        return _nested(config)
    if isinstance(config, str | os.PathLike):
        return config_tree(Path(config))
    rule = "must be a path, a dict, or a Config; data frames are given as data=..."
    raise ConfigError("config", [Finding("config", rule, type(config).__name__)])


def _nested(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree with dotted keys of its first level as tables, and values of plain types."""
    nested: dict[str, Any] = {}
    for key, value in tree.items():
        nested = merged(nested, unflat({str(key): _plain(value)}))
    return nested


def _plain(value: Any) -> Any:  # noqa: ANN401  (any value of a config)
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
