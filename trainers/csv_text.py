"""Rows of a table as CSV, with columns of ours before their own, and with care for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ltr.data.forms import amount_of
from ltr.data.table_files import is_number

if TYPE_CHECKING:
    import pandas as pd

_ROWS = 10_000  # written at a time

PREFIX = "ltr_"
"""Stands before the names of our columns where the table has one of these names."""


@dataclass(frozen=True)
class CsvText:
    """Rows as CSV."""

    content: bytes  # of the file
    formulas: tuple[str, ...]  # names of columns with texts that spreadsheets take for formulas, in file order

    @property
    def text(self) -> str:
        """Text of the file."""
        return self.content.decode()

    @property
    def warning(self) -> str:
        """Warning about the formulas."""
        columns = "column" if len(self.formulas) == 1 else "columns"
        named = ", ".join(map(repr, self.formulas[:5])) + (", ..." if self.formulas[5:] else "")
        return (
            f"{columns} {named}: texts that begin with = + - @ are formulas to a spreadsheet, which runs them; "
            "--quote-formulas puts an apostrophe before them"
        )


def csv_text(
    ours: Mapping[str, Sequence[Any]],
    own: Mapping[str, Sequence[str] | pd.Series],
    order: Sequence[int],
    *,
    quote_formulas: bool = False,
) -> CsvText:
    """Return rows as CSV.

    Args:
        ours: columns by name that stand first; all get ``ltr_`` before their name if the table has one of the names.
        own: the table's own columns.
        order: numbers of the rows, in the order of the output.
        quote_formulas: put an apostrophe before texts that begin with ``= + - @``, a tab or a line break, and are no
            numbers: spreadsheets run them as formulas.
    """
    prefix = PREFIX if set(ours) & set(own) else ""
    names, columns = [*(prefix + name for name in ours), *own], [*ours.values(), *own.values()]
    named = list(zip(names, columns, strict=True))
    formulas = set(filter(_is_formula, names))

    def shown(name: str, cell: Any) -> Any:  # noqa: ANN401 (a cell of any type)
        if not (isinstance(cell, str) and _is_formula(cell)):
            return cell
        formulas.add(name)
        return f"'{cell}" if quote_formulas else cell

    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(shown(name, name) for name in names)
    content = io.BytesIO()  # which gives its content without a copy
    content.write(head.getvalue().encode())
    for at in range(0, len(order), _ROWS):
        rows, text = order[at : at + _ROWS], io.StringIO()
        part = [[shown(name, cell) for cell in _cells(column, rows)] for name, column in named]
        csv.writer(text, lineterminator="\n").writerows(zip(*part, strict=True))
        content.write(text.getvalue().encode())
    found = [name for name in names if name in formulas]
    return CsvText(content.getvalue(), tuple(found))


def _cells(column: Sequence[Any] | pd.Series, rows: Sequence[int]) -> list[Any]:
    """Return some cells of a column; those that are missing are empty."""
    if isinstance(column, Sequence):
        return [column[row] for row in rows]
    cells = column.iloc[list(rows)]
    return cells.astype(object).where(cells.notna(), "").tolist()


def _is_formula(text: str) -> bool:
    r"""Return whether a spreadsheet would run a text as a formula.

    Examples:
        >>> [_is_formula(text) for text in ("=1+1", "@SUM(A1)", "-cmd", "\t=1", "-1.5", "+3e-2", "-1.234,5", "a=b", "")]
        [True, True, True, True, False, False, False, False, False]
    """
    if not text.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) or text.strip("=+-@") == "":
        return False
    return not is_number(text) and ((amount := amount_of(text)) is None or amount.unit not in ("", "%"))
