"""What is checked of config and data before a run begins."""

from __future__ import annotations

import numpy as np

from ltr.checks import is_trusting
from ltr.data import TableError
from trainers.config import Config
from trainers.ranking import check_rows, encodings_of_features, problems_of_answer, rows_to_rank
from trainers.task.data import Source, Split, read_source, split_of
from trainers.task.options import check_columns, check_lists, follow_labels


def check_data(config: Config, source: Source | Split | None = None) -> tuple[Config, Split]:
    """Split the data and check that the config goes with them; return the config with defaults that suit the labels.

    Args:
        config: the experiment.
        source: its data, if they have been read or even split.

    Raises:
        DataError: the data cannot be used.
        ConfigError: all options that do not go with the data.
    """
    source = read_source(config.data) if source is None else source
    split = source if isinstance(source, Split) else split_of(config.data, config.seed, source)
    config = follow_labels(config, split.labels)
    check_lists(config, split.labels)
    check_columns(config, split)
    check_answer(config, split)
    return config, split


def check_answer(config: Config, split: Split) -> None:
    """Check the columns and the new rows that the page of a run is asked for.

    Raises:
        DataError: columns that are not there, or rows that cannot be ranked.
    """
    table = None if split.tables is None else split.tables[0]
    frames = {} if split.frames is None else {"path": split.frames[0]}
    if table is not None and (problems := list(problems_of_answer(table, config, frames.get("path")))):
        raise TableError(table.where, problems)
    if config.answer.new is not None and (raw := rows_to_rank(config, table, frames)) is not None:
        encodings = encodings_of_features(split.preparation, split.feature_names)
        check_rows(raw, encodings, config.answer.id, new_values=config.answer.new_values)


_FEW = 200  # rows that show what form a model will have


def notes_on_saving(config: Config, split: Split) -> list[str]:
    """Return which estimators of other libraries leave no model in the run folder, with the reasons."""
    if not config.baselines.estimators or not is_trusting():
        return []
    from ltr.rankers.bases import why_not_saved

    train, notes = split.train, []
    if train.qid is None:
        chosen = np.concatenate([np.flatnonzero((train.y > 0) == positive)[: _FEW // 2] for positive in (True, False)])
        groups = None
    else:
        lists = np.unique(train.qid, return_inverse=True)[1]
        number = max(2, int(np.searchsorted(np.cumsum(np.bincount(lists)), _FEW)))
        chosen = np.flatnonzero(lists < number)
        groups = lists[chosen]
    for name, path in config.baselines.estimators.items():
        reason = why_not_saved(path.make(config.seed), train.X[chosen], train.y[chosen].astype(np.float64), groups)
        if reason:
            reranked = config.exact.enabled and config.base == name
            also = ", nor what the exact stage makes of it" if reranked else ""
            notes.append(f"{name}: ltr predict, explain and export will not have this ranker{also}: {reason}")
    return notes
