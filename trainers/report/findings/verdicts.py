"""What a family of comparisons comes to, in sentences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from trainers.report.evidence import Pair
from trainers.report.paired import ALPHA, FEWEST_SPLITS, Paired, Verdict
from trainers.report.wording import counted, counted_range, listed, p_equals, percent, signed, size_percent

__all__ = ["decided", "effect", "resolution_text", "splits_text", "tests_text", "verdict_text"]

_NAMED = 4  # data sets that are named where nothing is found; more are counted


def effect(found: Paired, decimals: int) -> str:
    """A difference with its corrected interval, such as ``+0.53 [+0.12, +0.94] or +1.7%``."""
    ends = ""
    if math.isfinite(found.corrected):
        low, high = (signed(found.difference + sign * found.corrected, decimals) for sign in (-1, 1))
        ends = f" [{low}, {high}]"
    return f"{signed(found.difference, decimals)}{ends} or {percent(found.percent)}"


def decided(family: Mapping[Pair, Paired], *, plain: bool = False) -> tuple[int, int]:
    """How many comparisons come out better, and how many worse.

    Args:
        family: of comparisons.
        plain: by the paired t-test that takes splits for independent.
    """
    by = Counter(found.plain_verdict if plain else found.verdict for found in family.values())
    return by[Verdict.BETTER], by[Verdict.WORSE]


def _outcomes(family: Mapping[Pair, Paired]) -> dict[str, dict[str, list[Pair]]]:
    """The pairs by verdict, then by data set."""
    found: dict[str, dict[str, list[Pair]]] = {}
    for pair, comparison in family.items():
        found.setdefault(comparison.verdict, {}).setdefault(pair[0], []).append(pair)
    return found


def verdict_text(family: Mapping[Pair, Paired], what: str, against: str, decimals: int, varied: str = "K") -> str:
    """A sentence or several on where one is better and where worse, after correction.

    Args:
        family: of comparisons, by data set and another value.
        what: the first one, such as ``the exact stage``.
        against: the second one and where, such as ``its base ranker on the test halves``.
        decimals: of differences.
        varied: the name of that value.
    """
    tested = sum(found.tested for found in family.values())
    if not tested:
        return (
            f"Nothing can be said yet of {what} against {against}: "
            f"a test takes {FEWEST_SPLITS} splits, and no comparison has as many."
        )
    by = _outcomes(family)
    better, worse = by.get(Verdict.BETTER, {}), by.get(Verdict.WORSE, {})
    undecided = [
        data for data in by.get(Verdict.UNDECIDED, {}) if data not in better and data not in worse
    ]  # with nothing decided at any value
    sentences = []
    if all(found.p == 1 and found.corrected == 0 for found in family.values() if found.tested):
        sentences.append(
            f"Wherever there are enough splits for a test, {what} and {against} are equal on each of them."
        )
    elif not better and not worse:
        sentences.append(_nothing(family, tested, undecided, what, against))
    else:
        parts = []
        for word, found in ((Verdict.BETTER, better), (Verdict.WORSE, worse)):
            if found:
                names = [_where(data, pairs, family, decimals, varied) for data, pairs in found.items()]
                parts.append(f"{word} than {against} on {'; '.join(names)}")
            else:
                parts.append(f"significantly {word} nowhere")
        text = " It is ".join(f"{part}." for part in parts)
        sentences.append(f"After correction {what} is {text}")
        if undecided:
            sentences.append(f"Undecided: {listed(undecided)}.")
    if short := [data for data in by.get(Verdict.TOO_FEW, {}) if len(by) == 1 or not _decided(data, by)]:
        sentences.append(f"Too few splits for a test: {listed(short)}.")
    return " ".join(sentences)


def _nothing(family: Mapping[Pair, Paired], tested: int, undecided: Sequence[str], what: str, against: str) -> str:
    """Say that nothing is significant, and which way the differences point."""
    shown = f"{what} was not shown to differ from {against}"
    if tested == 1:
        only = next(found for found in family.values() if found.tested)
        return f"The one difference, on {undecided[0]}, is not significant ({p_equals(only.p_holm)}): {shown}."
    above, below = (sum(sign * f.difference > 0 for f in family.values() if f.tested) for sign in (1, -1))
    return (
        f"None of the {tested} differences is significant after correction: {shown}, on {_any_of(undecided)}. "
        f"Of the differences {above} are above 0 and {below} below."
    )


def _any_of(names: Sequence[str]) -> str:
    if len(names) > _NAMED:
        return f"any of the {len(names)} data sets"
    return f"any of {listed(names)}" if len(names) > 1 else names[0]


def _decided(data: str, by: Mapping[str, Mapping[str, Sequence[Pair]]]) -> bool:
    return any(data in found for verdict, found in by.items() if verdict != Verdict.TOO_FEW)


def _where(data: str, pairs: Sequence[Pair], family: Mapping[Pair, Paired], decimals: int, varied: str) -> str:
    """A data set with the values at which it is so, and the largest effect."""
    of = [pair for pair in family if pair[0] == data]
    largest = max(pairs, key=lambda pair: abs(family[pair].difference))
    text = effect(family[largest], decimals)
    if len(of) == 1:
        return f"{data} ({varied} = {_value(largest)}: {text})"
    values = f"every {varied}" if len(pairs) == len(of) else f"{varied} = {listed([_value(pair) for pair in pairs])}"
    if len(pairs) == 1:
        return f"{data} ({values}: {text})"
    return f"{data} ({values}; most at {_value(largest)}: {text})"


def _value(pair: Pair) -> str:
    value = pair[1]
    return f"{value:g}" if isinstance(value, float) else str(value)


def resolution_text(family: Mapping[Pair, Paired]) -> str:
    """How small a difference these splits can show."""
    widths = [100 * f.corrected / abs(f.mean_b) for f in family.values() if f.tested and f.mean_b]
    if not widths:
        return ""
    return (
        f"The corrected 95% intervals reach {size_percent(float(np.median(widths)))} of the value to either side in "
        "the median: an effect below that cannot be told from none here, and 'undecided' does not mean equal. More "
        "splits of the same rows would narrow them little, more rows would."
    )


def splits_text(family: Mapping[Pair, Paired]) -> str:
    """How many splits comparisons have, such as ``10 splits each`` or ``4 to 10 splits``."""
    text = counted_range((found.splits for found in family.values()), "split")
    return text if " to " in text else f"{text} each"


def tests_text(family: Mapping[Pair, Paired]) -> str:
    """Which test the conclusions rest on."""
    number = max((found.of for found in family.values()), default=0)
    return f"corrected resampled t-test, two-sided, alpha {ALPHA}, Holm's correction over {counted(number, 'test')}"
