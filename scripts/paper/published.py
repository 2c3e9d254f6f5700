"""The paper's published values, read from ``configs/paper/published.csv``, beside those of a sweep.

The columns are ``data, method, varied, half, mean, std, note``. ``varied`` holds the options that tell a variant of the
method, such as ``exact.top_k=50;exact.margin=0.001``; ``half`` is ``train`` or ``test``. A line without a mean is a
note. Lines before the header that begin with ``#`` name the source.
"""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scripts._bench import ROOT
from trainers.report.evidence import Evidence, Series, SweepTable, Variant

PUBLISHED = ROOT / "configs" / "paper" / "published.csv"


@dataclass(frozen=True)
class Published:
    """A published value."""

    data: str  # name of the data set
    variant: Variant  # the method and its options
    part: str  # ``train`` or ``test``
    mean: float  # mean over splits
    std: float  # standard deviation over splits


def read_published(path: Path = PUBLISHED) -> list[Published]:
    """Read published values."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    values = []
    for line in csv.DictReader(lines):
        if line["mean"]:
            variant = Variant(line["method"], tuple(_option(text) for text in line["varied"].split(";") if text))
            values.append(Published(line["data"], variant, line["half"], float(line["mean"]), float(line["std"])))
    return values


def _option(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    with contextlib.suppress(ValueError):
        return key.strip(), json.loads(value)
    return key.strip(), value


def beside(evidence: Evidence, published: Sequence[Published]) -> dict[str, int]:
    """Count the values, those found in the sweep, and those that differ by at most their deviation."""
    pairs = [(value, _counterpart(value, evidence.tables)) for value in published]
    found = [(value, series.values(value.part, evidence.statistic)) for value, series in pairs if series is not None]
    within = sum(abs(float(np.nanmean(own)) - value.mean) <= value.std for value, own in found)
    return {"all": len(published), "found": len(found), "within": within}


def _counterpart(value: Published, tables: Sequence[SweepTable]) -> Series | None:
    """Return the series that agrees in all options the value names and varies no other option."""
    wanted = dict(value.variant.varied)
    for table in tables:
        for variant, series in table.rows.get(value.data, {}).items():
            if variant.method != value.variant.method or any(wanted.get(key) != own for key, own in variant.varied):
                continue
            options = [record["options"] for record in series.records.values()]
            if all(o.get(key.rpartition(".")[2]) == asked for o in options for key, asked in wanted.items()):
                return series
    return None
