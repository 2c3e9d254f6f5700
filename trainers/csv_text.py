"""Rows of a table as CSV, with columns of ours before their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def csv_text(
    ours: Mapping[str, Sequence[Any]], own: Mapping[str, Sequence[str] | pd.Series], order: Sequence[int]
) -> str:
    """Return rows as CSV.

    Args:
        ours: columns by name that stand first; all get ``ltr_`` before their name if the table has one of the names.
        own: the table's own columns.
        order: numbers of the rows, in the order of the output.
    """
    import pandas as pd

    prefix = "ltr_" if set(ours) & set(own) else ""
    columns = {f"{prefix}{name}": column for name, column in ours.items()} | dict(own)
    frame = pd.DataFrame({name: pd.Series(column).to_numpy() for name, column in columns.items()})
    return frame.iloc[list(order)].to_csv(index=False, lineterminator="\n")
