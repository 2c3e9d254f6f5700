"""The data of a run: loaded, hashed and split into a training and a test half."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.data import DataError, Dataset, half_split, load, read_table
from trainers.config import Config
from trainers.provenance import sha256_of

__all__ = ["Half", "Split", "load_split"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Half:
    """Features (n, d) and labels (n,) of one half."""

    X: FloatArray
    y: IntArray


@dataclass(frozen=True)
class Split:
    """The two halves of a data set.

    Attributes:
        train: what methods learn from.
        test: what they never see.
        feature_names: one a column.
        facts: name, sizes and sha256 of the whole data, for the run folder.
    """

    train: Half
    test: Half
    feature_names: tuple[str, ...]
    facts: dict[str, Any]


def load_split(config: Config) -> Split:
    """Load the config's data and split it.

    Raises:
        DataError: data that cannot be read, or a half that holds a single class.
    """
    data = _load(config)
    seed = config.seed if config.data.split_seed is None else config.data.split_seed
    order = np.concatenate(half_split(data.n, seed))
    cut = int(data.n * config.data.train_fraction)
    halves = []
    for name, rows in (("training", order[:cut]), ("test", order[cut:])):
        labels = data.y[rows]
        if len(np.unique(labels)) < 2:
            found = f"only label {labels[0]}" if len(labels) else "no rows"
            raise DataError(
                f"data: the {name} half holds {found} ({len(rows)} of {data.n} rows, {data.n_pos} positive in all); "
                "change data.split_seed or data.train_fraction"
            )
        halves.append(Half(data.X[rows], labels))
    facts = {
        "name": data.name,
        "rows": data.n,
        "positives": data.n_pos,
        "features": list(data.feature_names),
        "sha256": sha256_of(data.X, data.y),
        "split_seed": seed,
        "training_rows": cut,
    }
    return Split(halves[0], halves[1], data.feature_names, facts)


def _load(config: Config) -> Dataset:
    options = config.data
    if options.path is not None:
        assert options.label is not None
        return read_table(options.path, label=options.label, drop=options.drop, features=options.features)
    assert options.name is not None
    return load(options.name, seed=options.seed)
