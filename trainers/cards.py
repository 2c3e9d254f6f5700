"""Cards of tables: find one, write it in all its forms, and apply it to other rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ltr.cards import Card, CardRanker
from ltr.data import Reading, Table, half_split, read_texts
from ltr.data.columns import Column
from ltr.data.dataset import checked_groups
from ltr.data.labels import Labels
from ltr.data.table_files import open_table
from ltr.data.times import blocks_of
from ltr.exact import Limits
from trainers.config import Config
from trainers.config.sections import CardConfig, DataConfig
from trainers.files import RunError, csv_text, write_atomic
from trainers.task.raw import Raw, asked_columns, not_asked

Rows = tuple[Raw, ArrayLike]
"""Rows of a table as it is, and their labels."""


@dataclass(frozen=True)
class Found:
    """A card with the rows of both sets in its table, its ranker, and the totals of the training and the test rows."""

    card: Card
    ranker: CardRanker
    totals: tuple[NDArray[np.int64], ...]

    @property
    def left_out(self) -> list[str]:
        """The columns that no question could be made of, each with the reason."""
        columns, reasons = self.ranker.feature_names_in_, self.ranker.questions_.left_out_
        return [f"column {name!r} is left out: {reasons[name]}" for name in map(str, columns) if name in reasons]


def card_ranker(options: CardConfig, seed: int = 0) -> CardRanker:
    """Return the ranker of a config's section, not yet fitted; `seed` is that of the run."""
    given = options.model_dump(exclude={"enabled", "time_limit", "ranges"})
    return CardRanker(**given, limits=Limits(time_limit=options.time_limit, seed=seed))


def find_card(
    ranker: CardRanker, label: str, train: Rows, test: Rows | None = None, beside: Mapping[str, Column] | None = None
) -> Found:
    """Fit a ranker to the training rows, and return its card; demands may name the columns `beside`."""
    table, y = train
    ranker.fit(table, y, beside=beside)
    ranker.card_ = replace(ranker.card_, label=label)
    card = ranker.card_ if test is None else ranker.with_rows("test", *test)
    return Found(card, ranker, tuple(card.totals(rows) for rows, _ in (train, *([] if test is None else [test]))))


@dataclass(frozen=True)
class Listed:
    """Rows that a card ranks."""

    used: str  # what they were used for: training or test
    table: Raw  # the columns that the card may ask about
    texts: pd.DataFrame  # all columns, as the file has them
    rows: NDArray[np.int64]  # numbers of the rows in the file, counted from 0


def write_card(card: Card, ranker: CardRanker, folder: Path, listed: Sequence[Listed]) -> None:
    """Write a card in all forms, the certificate of the ranker that found it, and ranked rows into a folder."""
    from ltr.display.figures import image_of

    for suffix in ("png", "svg"):
        write_atomic(folder / f"card.{suffix}", image_of(card.plot(), suffix))
    texts = {"card.md": card.to_markdown(), "card.html": card.to_html(), "ranked.csv": ranked_csv(card, listed)}
    for name, text in texts.items():
        write_atomic(folder / name, text.encode())
    for name in ("card.json", "card.csv"):
        card.save(folder / name)
    ranker.certificate().write(folder / "certificate.json")


def ranked_csv(card: Card, listed: Sequence[Listed]) -> str:
    """Return rows from the largest total down, with the points of each question."""
    points = pd.concat([card.explain(part.table) for part in listed], ignore_index=True)
    total = points.pop("total").to_numpy()
    rows = np.concatenate([part.rows for part in listed])
    order = np.lexsort((rows, -total))
    position, used = 1 + np.argsort(order), [part.used for part in listed for _ in part.rows]
    ours: dict[str, Sequence[Any]] = {"position": position.tolist(), "total": total.tolist(), "used for": used}
    ours |= {"row": (rows + 1).tolist(), **{str(name): points[name].tolist() for name in points}}
    own = pd.concat([part.texts for part in listed], ignore_index=True)
    return csv_text(ours, {str(name): own[name] for name in own}, order.tolist())


def card_of_table(config: Config, test: float, table: Table) -> tuple[Found, list[Listed], list[str]]:
    """Find the best card for a part of the rows of a table, and count its totals on the share `test` of them.

    Returned are the card, all rows, and notes on the table and on columns that are left out.
    """
    y, own = table.target, table.given.own()
    try:
        parts = parts_of_card(table, config.seed, test)
        if (left := len(parts.get("training", ()))) < 2:
            raise ValueError(f"a card needs 2 training rows at least, got {left} of {len(y)}: lower --test")
        asked = asked_columns(table.kinds)
        listed = []
        for used, members in parts.items():
            columns, numbers = {name: table.columns[name].take(members) for name in asked}, table.in_file(members)
            listed.append(Listed(used, columns, own.iloc[numbers], numbers))
        rows = [(part.table, y[members]) for part, members in zip(listed, parts.values(), strict=True)]
        whole = table.columns if config.card.demands else {}
        beside = {name: column.take(parts["training"]) for name, column in whole.items()}
        name = label_name(config.data, table.labels)
        test_rows = rows[1] if len(rows) > 1 else None
        found = find_card(card_ranker(config.card, config.seed), name, rows[0], test_rows, beside)
        found = replace(found, card=replace(found.card, missing=tuple(config.data.missing)))
    except ValueError as error:
        raise RunError(f"{table.where}: {error}") from None
    outcome = found.ranker.demands_
    told = [] if outcome is None else str(outcome).splitlines()
    return found, listed, [*told, *table.notes, *not_asked(table.kinds), *found.left_out]


def parts_of_card(table: Table, seed: int, test: float) -> dict[str, NDArray[np.int64]]:
    """Return the rows of the training set and, unless `test` is 0, of the test set.

    With times the test set has the last rows; otherwise rows are drawn, and groups of them stay together.
    """
    n = len(table.y)
    if table.times is not None and test > 0:
        later = blocks_of(table.times.numbers, [1 - test])
        return {"training": np.flatnonzero(later == 0), **({"test": np.flatnonzero(later)} if later.any() else {})}
    units = np.arange(n) if table.groups is None else checked_groups(table.groups, n, table.qid)
    assert units is not None
    order = np.concatenate(half_split(int(units.max()) + 1, seed))
    cut = math.floor(len(order) * (1 - test))
    by_unit = np.split(np.argsort(units, kind="stable"), np.cumsum(np.bincount(units))[:-1])
    parts = {"training": order[:cut], "test": order[cut:]}
    return {used: np.concatenate([by_unit[unit] for unit in one]) for used, one in parts.items() if len(one)}


def label_name(data: DataConfig, labels: Labels | None) -> str:
    """Return what a card predicts: the column of the labels, with the value of the positives if it is a text."""
    name = str(data.label) if labels is None or labels.positive is None else f"{data.label} = {labels.positive}"
    if data.time_to_event is not None:
        return f"{name} after {data.time_to_event}"
    return name if data.treatment is None else f"the effect of {data.treatment} on {name}"


def score_csv(card_path: Path, path: Path, *, missing: Sequence[str] = ()) -> str:
    """Return the total of each row of a table and its points by question, as CSV in the order of the file.

    `missing` are texts that stand for missing values, beside those that card.json names.
    """
    try:
        card = Card.load(card_path)
    except ValueError as error:
        raise RunError(str(error)) from None
    given = open_table(path, Reading(missing=(*card.missing, *missing)), numbers=())
    try:
        points = card.explain(given.columns)
    except ValueError as error:
        raise RunError(f"{path}: {error}") from None
    total = points.pop("total")
    ours: dict[str, Sequence[Any]] = {"row": range(1, len(total) + 1), "total": total.tolist()}
    ours |= {"chance": np.round(card.chance(total), 4).tolist()} if card.chances else {}
    ours |= {str(name): points[name].tolist() for name in points}
    return csv_text(ours, read_texts(path), range(len(total)))
