"""Labels of a table: numbers, or two values of which one is the positive."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.columns import Column, spellings, text_of, yes_of
from ltr.data.dataset import DataError, checked_labels
from ltr.data.problems import Problem, Remedy, listed

_FEW = 10  # largest number of different labels of which one could be meant as the positive
_ENOUGH = 10  # rows of either class from which a column that separates them is no accident


@dataclass(frozen=True)
class Labels:
    """The labels of a column.

    Args:
        values: the labels as whole numbers, (n,); None where there is a problem.
        positive: text of the positives; None where labels are numbers.
        problems: what is wrong.
    """

    values: NDArray[np.int64] | None
    positive: str | None = None
    problems: tuple[Problem, ...] = ()


def labels_of(column: Column, positive: object = None, *, graded: bool = False) -> Labels:
    """Return the labels in a column.

    Args:
        column: the column.
        positive: value of the positives; all others are negatives. None for numbers, booleans, and pairs such as yes
            and no.
        graded: whether whole numbers above 1 are labels.

    Examples:
        >>> labels_of(Column("ill", ["no", "yes", "no"])).values.tolist()
        [0, 1, 0]
        >>> print(labels_of(Column("ill", ["no", "Yes", "yes"])).problems[0].line({}))
        column 'ill': labels 'Yes' and 'yes' differ only in capital letters: write each label one way
        >>> print(labels_of(Column("end", ["died", "left", "left"])).problems[0].line({}))
        column 'end': labels must be 0 and 1, or yes and no, got 'died', 'left'; data.positive = "died" counts it as 1 \
and all others as 0
    """
    where, problems = f"column {column.name!r}", []
    if column.missing.any():
        rows = np.flatnonzero(column.missing) + 1
        more = f" (and {len(rows) - 1} more)" if len(rows) > 1 else ""
        rule = f"{where}: labels must not be missing, got none in row {rows[0]}{more}"
        problems.append(Problem(rule, (Remedy("fill them in, or take these rows out of the table"),)))
    counts = {} if column.numbers is not None and column.different > 1000 else column.counts
    given = None if positive is None else text_of(positive)
    if given is not None and given in counts:
        same = [text for text in counts if text.casefold() == given.casefold()]
        problems += [_spelt(where, same)] if len(same) > 1 else []  # the others would count as negatives
    elif given is not None:
        problems.append(_no_such_label(where, given, counts))
    elif column.numbers is None and len(counts) == 1:
        problems.append(_one_class(where, counts))
    elif column.numbers is None and len({text.casefold() for text in counts}) <= 2 and spellings(counts):
        problems.append(_spelt(where, counts))
    elif column.numbers is None:
        given = yes_of(counts)
        problems += [] if given is not None else [_not_two(where, counts)]
    if given is None and not column.missing.any() and column.numbers is not None:
        try:
            return Labels(checked_labels(column.numbers, len(column), where, graded=graded))
        except DataError as error:
            problems.append(Problem(str(error), () if graded else _positive(counts)))
    if given is not None and len(counts) == 1 and not problems:
        problems.append(_one_class(where, counts))
    if problems:
        return Labels(None, given, tuple(problems))
    return Labels((column.texts == given).astype(np.int64), given)


def note_on_separating(X: ArrayLike, y: ArrayLike, names: Sequence[str]) -> str | None:
    """Return a note on features that alone put every row with a label above 0 above, or below, all other rows.

    Such a column was often filled in afterwards, as the cost of a repair is. There is no note where fewer than 10 rows
    have a label above 0, or fewer than 10 have none.

    Examples:
        >>> label, cost = [0] * 10 + [1] * 10, [0.0] * 10 + [80.0] * 10
        >>> note_on_separating(np.column_stack([cost, label[::-1], range(20, 0, -1)]), label, ["cost", "seen", "age"])
        "'cost', 'seen', 'age': each alone tells the labels apart; data.drop leaves out what is known only afterwards"
        >>> note_on_separating(np.column_stack([cost]), [1, *label[1:]], ["cost"])
    """
    X, positive = np.asarray(X, dtype=np.float64), np.asarray(y) > 0
    above, below = X[positive], X[~positive]
    if min(len(above), len(below)) < _ENOUGH:
        return None
    apart = (above.min(axis=0) > below.max(axis=0)) | (above.max(axis=0) < below.min(axis=0))
    if not apart.any():
        return None
    found = listed(name for name, separates in zip(names, apart, strict=True) if separates)
    alone = "alone tells" if apart.sum() == 1 else "each alone tells"
    return f"{found}: {alone} the labels apart; data.drop leaves out what is known only afterwards"


def _one_class(where: str, counts: dict[str, int]) -> Problem:
    return Problem(f"{where}: labels must hold both classes, got only {next(iter(counts))!r}")


def _positive(counts: dict[str, int]) -> tuple[Remedy, ...]:
    """Return the line that makes the rarest of a few labels the positive."""
    if not 1 < len(counts) <= _FEW:
        what = "take another column, or make one of 0 and 1 of it, such as whether it is above a limit"
        return (Remedy(what),) if len(counts) != 1 else ()
    text = min(counts, key=lambda text: (counts[text], text))
    return (Remedy("counts it as 1 and all others as 0", "positive", _typed(text)),)


def _spelt(where: str, texts: Iterable[str]) -> Problem:
    return Problem(f"{where}: labels {spellings(texts)} differ only in capital letters: write each label one way")


def _not_two(where: str, counts: dict[str, int]) -> Problem:
    return Problem(f"{where}: labels must be 0 and 1, or yes and no, got {listed(counts)}", _positive(counts))


def _no_such_label(where: str, given: str, counts: dict[str, int]) -> Problem:
    near = difflib.get_close_matches(given.lower(), [text.lower() for text in counts], n=1)
    found = next((text for text in counts if near and text.lower() == near[0]), None)
    remedies = _positive(counts) if found is None else (Remedy("is the nearest one", "positive", _typed(found)),)
    return Problem(f"{where} has no label {given!r}; it has {listed(counts)}", remedies)


def _typed(text: str) -> object:
    """Return a label as a config has it: a whole number where it is one."""
    return int(text) if text.lstrip("-").isdecimal() and str(int(text)) == text else text
