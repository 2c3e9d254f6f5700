"""The command ``ltr score``: a card, applied to the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ltr.cards import Card
from ltr.data import Reading, read_texts
from ltr.data.table_files import read_file
from trainers.files import RunError, csv_text


def score_csv(card_path: Path, path: Path, *, missing: Sequence[str] = ()) -> str:
    """Return the total of each row of a table and its points by question, as CSV in the order of the file.

    `missing` are texts that stand for missing values, beside those that card.json names.

    Raises:
        RunError: a file that holds no card, or rows that it cannot be applied to.
        DataError: a table that cannot be read.
    """
    try:
        card = Card.load(card_path)
    except ValueError as error:
        raise RunError(str(error)) from None
    file = read_file(path, Reading(missing=(*card.missing, *missing)), numbers=())
    try:
        points = card.explain(file.columns)
    except ValueError as error:
        raise RunError(f"{path}: {error}") from None
    total = points.pop("total")
    ours: dict[str, Sequence[Any]] = {"row": range(1, len(total) + 1), "total": total.tolist()}
    ours |= {"chance": np.round(card.chance(total), 4).tolist()} if card.chances else {}
    ours |= {str(name): points[name].tolist() for name in points}
    return csv_text(ours, read_texts(path), range(len(total)))
