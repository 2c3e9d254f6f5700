"""Configs of experiments and sweeps: TOML files and overrides, checked as a whole.

A key is a field of a section (`trainers.config.sections`) with its range and description; command line, reference and
messages follow from the field.
"""

from trainers.config.experiment import (
    AUTO,
    CARD,
    EXACT,
    Config,
    describe_keys,
    free_keys,
    load_config,
    parse_config,
    resolved_toml,
)

__all__ = [
    "AUTO",
    "CARD",
    "EXACT",
    "Config",
    "describe_keys",
    "free_keys",
    "load_config",
    "parse_config",
    "resolved_toml",
]
