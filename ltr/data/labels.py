"""Labels of a table, which are numbers, or two values of which one is the positive; weights and treatments of rows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.columns import Column, spellings, text_of, yes_of
from ltr.data.dataset import DataError, checked_labels
from ltr.data.problems import Problem, Remedy, in_row, listed

_FEW = 10  # largest number of different labels of which one could be meant as the positive
_ENOUGH = 10  # rows of either class from which a column that separates them is no accident
_LEAK = 0.95  # AUC of a column alone, from which it is suspected to be known only afterwards


@dataclass(frozen=True)
class Labels:
    """The labels of a column."""

    values: NDArray[Any] | None  # whole numbers, or outcomes of a treatment, (n,); None where there is a problem
    positive: str | None = None  # text of the positives; None where labels are numbers
    problems: tuple[Problem, ...] = ()
    are_grades: bool = False  # whether the only thing wrong is that whole numbers above 1 need queries


def labels_of(column: Column, positive: object = None, *, graded: bool = False) -> Labels:
    """Return the labels in a column.

    `positive` is the value of the positives, None for numbers and pairs such as yes and no; if `graded`, labels may be
    whole numbers above 1.
    """
    where, problems = f"column {column.name!r}", []
    if column.missing.any():
        rule = f"{where}: labels must not be missing, got {in_row(np.flatnonzero(column.missing))}"
        ways = (Remedy("leaves these rows out", "unlabelled", "drop"), Remedy("or fill them in"))
        problems.append(Problem(rule, ways))
    numbers = column.numbers
    counts = {} if numbers is not None and column.different > 1000 else column.counts
    given = None if positive is None else text_of(positive)
    if given is not None and given not in counts:
        lowered = {text.lower(): text for text in reversed(counts)}
        near = difflib.get_close_matches(given.lower(), [text.lower() for text in counts], n=1)
        nearest = [Remedy("is the nearest one", "positive", _typed(lowered[text])) for text in near]
        rule = f"{where} has no label {given!r}; it has {listed(counts)}"
        problems.append(Problem(rule, nearest or _positive(counts)))
    elif given is not None:
        same = [text for text in counts if text.casefold() == given.casefold()]
        problems += [_spelt(where, same)] if len(same) > 1 else []  # the others would count as negatives
    elif numbers is None and len(counts) == 1:
        problems.append(_one_class(where, counts))
    elif numbers is None and len({text.casefold() for text in counts}) <= 2 and spellings(counts):
        problems.append(_spelt(where, counts))
    elif numbers is None and (given := yes_of(counts)) is None:
        rule = f"{where}: labels must be 0 and 1, or yes and no, got {listed(counts)}"
        problems.append(Problem(rule, _positive(counts)))
    if given is None and numbers is not None and not column.missing.any():
        try:
            return Labels(checked_labels(numbers, len(column), where, graded=graded))
        except DataError as error:
            problems.append(Problem(str(error), () if graded else _positive(counts)))
            grades = not graded and bool((numbers >= 0).all() and (numbers == np.floor(numbers)).all())
            return Labels(None, given, tuple(problems), are_grades=grades and bool(numbers.max() < 32))
    if given is not None and len(counts) == 1 and not problems:
        problems.append(_one_class(where, counts))
    if problems:
        return Labels(None, given, tuple(problems))
    return Labels((column.texts == given).astype(np.int64), given)


def sizes_of(column: Column, what: str) -> NDArray[np.float64]:
    """Return the numbers >= 0 in a column; raise the `Problem` of others."""
    rule = f"column {column.name!r}: {what} must be numbers >= 0"
    if column.numbers is None:
        raise Problem(f"{rule}, got {listed(column.counts)}")
    numbers = np.asarray(column.numbers, dtype=np.float64)
    kinds = (column.missing, ~column.missing & ~(numbers >= 0), np.isinf(numbers))
    if wrong := [_first_of(bad, column, numbers) for bad in kinds if bad.any()]:
        remedy = Remedy("change them, or take these rows out of the table")
        raise Problem(f"{rule}, got {', '.join(wrong)}", (remedy,))
    if not numbers.any():
        raise Problem(f"column {column.name!r}: some of the {what} must be above 0, got 0 in all rows")
    return numbers


def treatments_of(column: Column) -> NDArray[np.int64]:
    """Return 1 for the treated rows of a column; raise the `Problem` of another column."""
    where, counts = f"column {column.name!r}: treatments must be", column.counts
    missing = np.flatnonzero(column.missing)
    if not len(missing) and len(counts) == 1:
        raise Problem(f"{where} of both kinds, got only {next(iter(counts))!r} in all rows")
    found = None if len(missing) else labels_of(column).values
    if found is not None and len(counts) == 2:
        return found
    got = in_row(missing) if len(missing) else listed(counts)
    remedy = Remedy("write 1 for treated rows and 0 for the others")
    raise Problem(f"{where} 0 and 1, or yes and no, got {got}", (remedy,))


def outcomes_of(column: Column) -> Labels:
    """Return the numbers of a column as the outcomes of a treatment, with what is wrong with them."""
    numbers, rule = np.asarray(column.numbers, dtype=np.float64), f"column {column.name!r}: outcomes must"
    if not np.isfinite(numbers).all():
        rule += f" be finite numbers, got {_first_of(~np.isfinite(numbers), column, numbers)}"
        return Labels(None, problems=(Problem(rule, (Remedy("leaves rows without one out", "unlabelled", "drop"),)),))
    if not np.any(numbers != numbers[0]):
        return Labels(None, problems=(Problem(f"{rule} differ, got {numbers[0]:g} only"),))
    return Labels(numbers)


def _first_of(bad: NDArray[np.bool_], column: Column, numbers: NDArray[np.float64]) -> str:
    """Return what a message says of the first of the bad numbers of a column."""
    rows = np.flatnonzero(bad)
    return in_row(rows, "none" if column.missing[rows[0]] else f"{numbers[rows[0]]:g}")


def note_on_leaks(X: ArrayLike, y: ArrayLike, names: Sequence[str], rows: NDArray[np.intp] | None = None) -> str | None:
    """Return a note on features that alone have an AUC above 0.95, or below 0.05, so that they may be known too late.

    There is none of fewer than 10 rows of either class. `rows` are the numbers of the rows in the file, from 0.
    """
    found = leaks(X, y, names)
    if not found:
        return None
    shown, auc, top = found[0]
    top = (top if rows is None else rows[top]) + 1
    more = f" and {len(top) - 3} more" if len(top) > 3 else ""
    first = f"with an AUC of {auc:.3f}: it puts rows {', '.join(map(str, top[:3]))}{more} first"
    others = f"; likewise {', '.join(name for name, *_ in found[1:6])}" if found[1:] else ""
    others += f" and {len(found) - 6} more" if len(found) > 6 else ""
    asked = "Is it known before you act? data.drop leaves it out"
    return f"{shown} alone tells the labels apart, {first}{others}. {asked}"


def leaks(X: ArrayLike, y: ArrayLike, names: Sequence[str]) -> list[tuple[str, float, NDArray[np.intp]]]:
    """Return the features of which `note_on_leaks` speaks: name, AUC, and as many first rows as there are positives."""
    X, positive = np.asarray(X, dtype=np.float64), np.asarray(y) > 0
    n_pos, n_neg = int(positive.sum()), int((~positive).sum())
    if min(n_pos, n_neg) < _ENOUGH:
        return []
    import pandas as pd

    found = []
    for name, column in zip(names, X.T, strict=True):
        ranks = pd.Series(column).rank().to_numpy()
        auc = (ranks[positive].sum() - 0.5 * n_pos * (n_pos + 1)) / (n_pos * n_neg)
        if abs(auc - 0.5) > _LEAK - 0.5:
            top = np.argsort(-column if auc > 0.5 else column, kind="stable")[:n_pos]
            bare = name.removesuffix(" is missing")
            filled = name != bare and auc < 0.5
            shown = f"{bare!r} (filled in or not)" if filled else repr(name)
            found.append((shown, max(auc, 1 - auc), top))
    return found


def _one_class(where: str, counts: dict[str, int]) -> Problem:
    return Problem(f"{where}: labels must hold both classes, got only {next(iter(counts))!r}")


def _positive(counts: dict[str, int]) -> tuple[Remedy, ...]:
    """Return the remedy that makes the rarest of a few labels the positive."""
    if not 1 < len(counts) <= _FEW:
        what = "take another column, or make one of 0 and 1 of it, such as whether it is above a limit"
        return (Remedy(what),) if len(counts) != 1 else ()
    text = min(counts, key=lambda text: (counts[text], text))
    return (Remedy("counts it as 1 and all others as 0", "positive", _typed(text)),)


def _spelt(where: str, texts: Iterable[str]) -> Problem:
    return Problem(f"{where}: labels {spellings(texts)} differ only in capital letters: write each label one way")


def _typed(text: str) -> object:
    """Return a label as a config has it: a whole number where it is one."""
    whole = len(text) < 19 and text.lstrip("-").isdecimal() and str(int(text)) == text
    return int(text) if whole else text
