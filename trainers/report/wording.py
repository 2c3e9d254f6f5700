"""Numbers, lists and outcomes of tests as the tables and sentences of a report show them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from trainers.report.page import literal
from trainers.report.paired import FEWEST_SPLITS, Paired, Verdict

ABSENT = "-"
"""The text of a number that does not exist."""
Pair = tuple[str, int | float | str]
"""A data set, and a K or the value of another option."""


def decimals_of(size: float) -> int:
    """Return how many decimals give four digits to values of this size: 2 for 31.2, 4 for 0.72."""
    if not math.isfinite(size) or size == 0:
        return 3
    return min(max(3 - math.floor(math.log10(abs(size))), 0), 6)


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals, `ABSENT` where it is undefined."""
    return f"{value:.{decimals}f}" if math.isfinite(value) else ABSENT


def signed(value: float, decimals: int) -> str:
    """Return a difference with its sign; what rounds to 0 has none.

    >>> signed(0.534, 2), signed(-0.001, 2), signed(math.nan, 2)
    ('+0.53', '0.00', '-')
    """
    if not math.isfinite(value):
        return ABSENT
    text = f"{value:+.{decimals}f}"
    return text if any(c in "123456789" for c in text) else text[1:]


def percent(value: float) -> str:
    """Return a relative difference given in percent, such as ``+12.3%`` or ``-0.46%``."""
    return f"{signed(value, 1 if abs(value) >= 1 else 2)}%" if math.isfinite(value) else ABSENT


def share(ratio: float) -> str:
    """Return a share in whole percent."""
    return f"{round(100 * ratio)}%" if math.isfinite(ratio) else ABSENT


def gap_text(gap: float) -> str:
    """Return a relative gap in percent, such as ``0.48%``."""
    return f"{100 * gap:.2f}%" if math.isfinite(gap) else ABSENT


def p_text(p: float) -> str:
    """Return a p value for a table.

    >>> [p_text(p) for p in (0.00001, 0.0123, 0.456, 1.0, math.nan)]
    ['<0.001', '0.012', '0.46', '1', '-']
    """
    if not math.isfinite(p):
        return ABSENT
    if p < 0.001:
        return "<0.001"
    if p < 0.1:
        return f"{p:.3f}"
    return f"{p:.2f}" if p < 0.995 else "1"


def p_equals(p: float) -> str:
    """Return a p value for a sentence, such as ``p = 0.012`` or ``p < 0.001``."""
    text = p_text(p)
    return f"p {text[0]} {text[1:]}" if text.startswith("<") else f"p = {text}"


def listed(names: Sequence[str]) -> str:
    """Return names joined for a sentence: ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def counted(number: int, noun: str) -> str:
    """Return a number of things: ``1 split``, ``3 splits``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def counted_range(numbers: Iterable[int], noun: str) -> str:
    """Return the least and the largest number of things: ``3 to 10 splits``."""
    found = sorted(set(numbers))
    return counted(found[0], noun) if len(found) == 1 else f"{found[0]} to {found[-1]} {noun}s"


def effect(found: Paired, decimals: int) -> str:
    """Return a difference with its interval, such as ``+0.53 [+0.12, +0.94] or +1.7%``."""
    ends = ""
    if math.isfinite(found.width):
        low, high = (signed(found.difference + sign * found.width, decimals) for sign in (-1, 1))
        ends = f" [{low}, {high}]"
    return f"{signed(found.difference, decimals)}{ends} or {percent(found.percent)}"


def decided(family: Mapping[Pair, Paired]) -> tuple[int, int]:
    """Count the comparisons that come out better, and those that come out worse."""
    by = Counter(found.verdict for found in family.values())
    return by[Verdict.BETTER], by[Verdict.WORSE]


def where(family: Mapping[Pair, Paired], verdict: str, decimals: int, varied: str = "K") -> dict[str, str]:
    """Name the data sets with an outcome, each with the values at which it occurs and its largest effect."""
    found: dict[str, list[Pair]] = {}
    for pair, comparison in family.items():
        if comparison.verdict == verdict:
            found.setdefault(pair[0], []).append(pair)
    texts = {}
    for data, pairs in found.items():
        every = [pair for pair in family if pair[0] == data]
        largest = max(pairs, key=lambda pair: abs(family[pair].difference))
        values = f"{varied} = {listed([value_text(pair) for pair in pairs])}"
        if len(every) == len(pairs) > 1:
            values = f"every {varied}"
        most = f"; most at {value_text(largest)}" if len(pairs) > 1 else ""
        texts[data] = f"{literal(data)} ({values}{most}: {effect(family[largest], decimals)})"
    return texts


def value_text(pair: Pair) -> str:
    """Return the value of a pair's option."""
    return f"{pair[1]:g}" if isinstance(pair[1], float) else str(pair[1])


def verdict_text(family: Mapping[Pair, Paired], what: str, against: str, decimals: int, varied: str = "K") -> str:
    """Say in a few sentences where `what` is better than `against` and where worse, after correction."""
    tested = [found for found in family.values() if found.tested]
    if not tested:
        why = f"a test needs {FEWEST_SPLITS} splits, and no comparison has that many"
        return f"It is too early to compare {what} with {against}: {why}."
    by = {v: where(family, v, decimals, varied) for v in (Verdict.BETTER, Verdict.WORSE, Verdict.UNDECIDED)}
    better, worse = by[Verdict.BETTER], by[Verdict.WORSE]
    sentences = []
    if all(found.p == 1 and found.width == 0 for found in tested):
        sentences.append(f"Wherever there are enough splits for a test, {what} and {against} are equal on each split.")
    elif not better and not worse:
        above, below = (sum(sign * found.difference > 0 for found in tested) for sign in (1, -1))
        which = "The difference is not" if len(tested) == 1 else f"None of the {len(tested)} differences is"
        sentences.append(
            f"{which} significant after correction: {what} was not shown to differ from {against} ({above} above 0, "
            f"{below} below 0)."
        )
    else:
        parts = [
            f"{word} than {against} on {'; '.join(by[word].values())}" if by[word] else f"significantly {word} nowhere"
            for word in (Verdict.BETTER, Verdict.WORSE)
        ]
        sentences.append(f"After correction {what} is {' It is '.join(f'{part}.' for part in parts)}")
        if undecided := [data for data in by[Verdict.UNDECIDED] if data not in better and data not in worse]:
            sentences.append(f"Undecided: {listed([*map(literal, undecided)])}.")
    short = dict.fromkeys(data for (data, _), found in family.items() if not found.tested)
    if few := [data for data in short if not any(data in found for found in by.values())]:
        sentences.append(f"Too few splits for a test: {listed([*map(literal, few)])}.")
    return " ".join(sentences)


def resolution_text(family: Mapping[Pair, Paired]) -> str:
    """Say how small a difference these splits can show; empty where nothing is tested."""
    widths = [100 * found.width / abs(found.mean_b) for found in family.values() if found.tested and found.mean_b]
    if not widths:
        return ""
    return (
        f"The median 95% interval extends {percent(float(np.median(widths))).removeprefix('+')} of the value to either "
        "side. Smaller effects cannot be detected here, so “not shown to differ” does not mean equal. More splits of "
        "the same rows would narrow the intervals little; more rows would."
    )
