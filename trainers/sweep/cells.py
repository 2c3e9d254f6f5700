"""The cells of a sweep: what each result depends on, and the file that holds it.

A cell's id is ``data/split/method-hash``, the hash that of everything its result depends on: the data and their
SHA-256, the split, the method and its options, and for an exact cell the cells whose rankers it starts from. Its result
is a file ``cells/<id>.json`` in the sweep's folder, written whole or not at all. While that file is there, the cell is
finished; a changed option has another id and so another file.

The record in a file::

    id, data, split, method     as in the id; split is the seed of the split
    options                     of the method: keys of its section of the config
    sizes                       {"train": [rows, positives], "test": [rows, positives], "d": features}
    status, seconds             how the method ended, and its own time
    train, test                 {"dcg": 12.3, ...}: the reported statistics of the halves, None where undefined
    loss                        the method's own convex loss of the training half; None for the exact stage
    weights                     on the raw features; None where the ranker is not linear
    ranked                      {"train": text, "test": text}: labels from the top of the list down, see
                                `unpack_labels`; left out where rows belong to queries
    curve                       [[step, loss, train, test], ...]: loss and first statistic while training

    of exact cells only:
    list                        {"n", "n_pos", "value", "bound", "gap", "trivial_bound", "starts": {cell id: value}}:
                                the reranked top, the objective there with its bound, the statistic of a perfect
                                order, and the objective of the rankers it started from
    trace                       [[seconds, incumbent, bound, nodes], ...]
    recentred                   {"norm", "seconds", "train", "test", "ranked"}: the answer moved to the largest
                                margin, if asked for
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ltr.exact.solution import Status
from ltr.statistics import RankStatistic
from trainers.config import EXACT, Config
from trainers.files import Json, read_json, reading, write_json
from trainers.results import is_trivial

__all__ = [
    "CELLS",
    "Cell",
    "cell_file",
    "check_record",
    "exact_cell",
    "first_stage_cell",
    "nothing_proven",
    "pack_labels",
    "read_cell",
    "unpack_labels",
    "write_cell",
]

CELLS = "cells"
"""The folder of the records in a sweep's folder."""
# to be raised when a default or the meaning of an option changes: ids are made of the options that are set
_VERSION = 1
# keys that change neither what is asked nor the answer
_FREE = {"surrogate": {"losses", "device", "certify"}, "exact": {"enabled", "certificate"}}

_KEYS = {"id", "data", "split", "method", "options", "sizes", "status", "seconds", "train", "test", "weights"}

_ADVICE = "remove it: the same `ltr sweep` then computes this cell again"


@dataclass(frozen=True)
class Cell:
    """One result of a sweep.

    Attributes:
        data: name of the experiment.
        split: seed of the split.
        method: of the experiment.
        config: the experiment; its seed is that of the split.
        options: of the method, what tells it from others of its name.
        starts: ids of the first-stage cells whose rankers an exact cell starts from.
        base: of them, the one whose list it reranks.
        recentre: norm of the margin by which an exact answer is also moved.
        digest: of everything the result depends on.
    """

    data: str
    split: int
    method: str
    config: Config
    options: Json
    starts: tuple[str, ...]
    base: str | None
    recentre: str | None
    digest: str

    @property
    def id(self) -> str:
        """``data/split/method-hash``."""
        return f"{self.data}/{self.split}/{_plain(self.method)}-{self.digest}"

    @property
    def cost(self) -> float:
        """Seconds that it may take, roughly."""
        return self.config.exact.time_limit if self.method == EXACT else 1.0

    def concerns(self, key: str) -> bool:
        """Whether a key of the config matters to this method; to an exact cell its base ranker's do, too."""
        section, _, rest = key.partition(".")
        # what the exact stage maximises is reported of all methods
        if section not in (EXACT, "surrogate", "baselines") or key == "exact.statistic":
            return True
        methods = (EXACT, self.config.exact.base) if self.method == EXACT else (self.method,)
        return any(
            section == _section(self.config, method) and (section != "baselines" or rest.startswith(f"{method}."))
            for method in methods
        )

    def on_data(self, sha256: str) -> Cell:
        """This cell on data of that hash: of another id where the hash is another."""
        return _cell(self.config, self.split, self.method, self.starts, self.recentre, sha256)


def first_stage_cell(config: Config, split: int, method: str, sha256: str) -> Cell:
    """The cell of a surrogate or a baseline.

    Args:
        config: the experiment.
        split: seed of the split.
        method: its name.
        sha256: of the data.
    """
    return _cell(config, split, method, (), None, sha256)


def exact_cell(config: Config, split: int, starts: Mapping[str, Cell], recentre: str | None, sha256: str) -> Cell:
    """The cell of an exact stage.

    Args:
        config: the experiment.
        split: seed of the split.
        starts: the first-stage cells of this data and split, the base ranker's among them.
        recentre: norm of the margin by which the answer is also moved.
        sha256: of the data.
    """
    return _cell(config, split, EXACT, tuple(sorted(starts)), recentre, sha256)


def _cell(config: Config, split: int, method: str, starts: tuple[str, ...], recentre: str | None, sha256: str) -> Cell:
    config = config.model_copy(update={"seed": split})
    # an option that is new, with its default, changes no result and so no id
    chosen = config.model_dump(mode="json", exclude_defaults=True)
    data = {key: value for key, value in chosen["data"].items() if key not in ("path", "test_path", "cache")}
    depends = {
        "version": _VERSION,
        "data": data,
        "sha256": sha256,
        "split": split,
        "method": method,
        "options": _options(config, method, chosen),
        "starts": starts,
        "recentre": recentre,
        "statistics": {**chosen.get("statistics", {}), "report": config.reported},
    }
    if method == EXACT and (base := _options(config, config.exact.base, chosen)):
        depends["base"] = base
    digest = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:12]
    options = _options(config, method, config.model_dump(mode="json"))
    base_id = first_stage_cell(config, split, config.exact.base, sha256).id if method == EXACT else None
    return Cell(config.name, split, method, config, options, starts, base_id, recentre, digest)


def _section(config: Config, method: str) -> str:
    if method == EXACT:
        return EXACT
    return "surrogate" if method in config.surrogate.losses else "baselines"


def _options(config: Config, method: str, dumped: Json) -> Json:
    """The options of a method in a dumped config."""
    section = _section(config, method)
    options = dumped.get(section, {})
    if section == "baselines":
        return dict(options.get(method, {}))
    return {key: value for key, value in options.items() if key not in _FREE[section]}


def _plain(method: str) -> str:
    """A method's name as part of a file's.

    Examples:
        >>> _plain("p_norm_push(p=2)")
        'p_norm_push_p_2'
    """
    return "_".join("".join(c if c.isalnum() else " " for c in method).split())


def cell_file(folder: Path, cell_id: str) -> Path:
    """Where the record of a cell lies."""
    return folder / CELLS / f"{cell_id}.json"


def read_cell(folder: Path, cell_id: str) -> Json | None:
    """The record of a finished cell, None while it is not.

    Raises:
        RunError: a damaged file.
    """
    path = cell_file(folder, cell_id)
    record = read_json(path, _ADVICE)
    with reading(path, _ADVICE):
        if record is not None:
            check_record(record)
            if record["id"] != cell_id:
                raise ValueError(f"the record of {record['id']}")
    return record


def check_record(record: Mapping[str, Any]) -> None:
    """Refuse what is no record of a cell.

    Raises:
        ValueError: keys that are missing, no statistic of the training half, lists of another length than the data.
    """
    if not (record.keys() >= _KEYS and record["train"]):
        raise ValueError(f"no record of a cell: {record}")
    sizes = record["sizes"]
    for half, text in (record.get("ranked") or {}).items():
        if _count(text) != sizes[half][0]:
            raise ValueError(f"{sizes[half][0]} labels of the {half} half are needed")
    if (found := record.get("list")) and not 0 <= found["n_pos"] <= found["n"] <= sizes["train"][0]:
        raise ValueError(f"a list of {found['n']} with {found['n_pos']} positives, of {sizes['train'][0]} rows")


def nothing_proven(record: Mapping[str, Any]) -> bool:
    """Whether the bound of an exact cell is that of a perfect order of its list, above its value."""
    found = record.get("list")
    if not found or record["status"] == Status.OPTIMAL.value:
        return False
    trivial_bound = found.get("trivial_bound")
    if trivial_bound is None and record.get("ranked"):  # written before records had it; without queries labels are 0, 1
        statistic = RankStatistic.parse(record["options"]["statistic"])
        trivial_bound = statistic.best(found["n"], found["n_pos"])
    return is_trivial(found["bound"], trivial_bound)


def write_cell(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a cell, which finishes it."""
    path = cell_file(folder, record["id"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, record)


def pack_labels(labels: NDArray[np.int64]) -> str:
    """Labels 0 and 1 as text, six to a letter: base64 of their bits, then their number.

    Examples:
        >>> pack_labels(np.array([1, 1, 0, 1, 0, 0, 0, 0, 1]))
        '0IA=:9'
        >>> unpack_labels('0IA=:9').tolist()
        [1, 1, 0, 1, 0, 0, 0, 0, 1]
    """
    return f"{base64.b64encode(np.packbits(labels.astype(bool)).tobytes()).decode()}:{len(labels)}"


def unpack_labels(text: str) -> NDArray[np.int64]:
    """The labels that `pack_labels` wrote."""
    packed = base64.b64decode(text.partition(":")[0])
    return np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=_count(text)).astype(np.int64)


def _count(text: str) -> int:
    """The number of labels in a text, checked against its length."""
    bits, _, count = text.partition(":")
    labels = int(count)
    if not 0 <= labels <= 8 * len(base64.b64decode(bits)):
        raise ValueError(f"{len(bits)} letters cannot hold {labels} labels")
    return labels
