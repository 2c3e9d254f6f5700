"""What is checked before a run begins: what config and folder tell, then what the data tell."""

from __future__ import annotations

from trainers.config import Config
from trainers.run.folder import as_begun, check_run
from trainers.task.data import Source, Split, glimpse, split_of
from trainers.task.options import check_columns, check_lists, follow_labels, unset_following


def check_config(config: Config, *, fresh: bool = False) -> Config:
    """Check what can be checked before the data are read, which may take minutes; return the config to go on with.

    Args:
        config: the experiment.
        fresh: whether an earlier run of this name will be thrown away.

    Raises:
        ConfigError: the config differs from that of the run to continue, or does not go with data by query.
        RunError: the folder holds other files than those of a run, or a damaged config.
    """
    config = as_begun(config, fresh=fresh)
    early = glimpse(config.data)
    check_lists(follow_labels(config, early), early)
    check_run(config, fresh=fresh, undecided=unset_following(config))
    return config


def check_data(config: Config, source: Source | Split | None = None) -> tuple[Config, Split]:
    """Split the data and check that the config goes with them; return the config with defaults that suit the labels.

    Args:
        config: the experiment.
        source: its data, if they have been read or even split.

    Raises:
        DataError: the data cannot be used.
        ConfigError: all options that do not go with the data.
    """
    split = source if isinstance(source, Split) else split_of(config.data, config.seed, source)
    config = follow_labels(config, split.labels)
    check_lists(config, split.labels)
    check_columns(config, split)
    return config, split
