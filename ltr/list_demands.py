r"""Demands on a ranked list in words: a share of the first rows for a group, so many of them, a floor in a measure.

==================================  ==================================================================================
``share(sex = F) @50 >= 0.4``       at least 40 % of the first 50 rows have sex = F; ``<=`` for at most
``count(age >= 65) @50 >= 10``      at least 10 of the first 50 rows; ``<=`` for at most
``exposure(sex = F) >= 0.45``       the group gets 45 % of the exposure, which is ``1 / log2(position + 2)`` a row
``recall@100 >= 0.8``               any rank statistic of the labels: ``hits@50 >= 30``, ``auc >= 0.7``
``ndcg@10 >= 0.9``                  one divided by its value for a perfect order
``tpr(fpr=0.1) >= 0.8``             at some threshold at least 80 % of the positives and at most 10 % of the negatives
                                    are above; ``fpr(tpr=0.8) <= 0.1`` says the same
==================================  ==================================================================================

The condition on a column is ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` or ``in (a, b)``, with texts or numbers. Rows
that miss the value are not in the group. "At most" is a demand of the other rows: at most 60 % of one group are at
least 40 % of all others.

With lists by query, counts are those of all lists together: a share is that of the rows that are first in their list,
exposure that of the exposure in all lists. Statistics that are shares (``recall``, ``precision``, ``auc``) and
normalised ones are means over the lists that have one; others are sums.

`Asked` is a demand of the rows of a fit: ``sum_i gain_i a[rank_i] + shift >= least``, each list with the weights a of
its length. All demands, in words or as a `ltr.exact.Demand`, become one. *The top of a list.* Where only the
top of a list is ordered anew, all other rows keep their ranks and their share of the sum. The rows of a top of m have
the ranks above n - m, so what is left is a demand of the statistic with the m largest weights (`Asked.of_top`).
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ltr.checks import as_number, split_at_commas
from ltr.data.columns import Column, yes_of
from ltr.data.columns import columns_of as columns_of_table
from ltr.demands import quoted
from ltr.exact.constraints import DEMAND_TOLERANCE, Demand
from ltr.statistics import GainName, RankStatistic, UnknownStatisticError

__all__ = ["Asked", "Condition", "ListDemand", "OnTop", "read_list_demands"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Kind = Literal["share", "count", "exposure", "statistic", "rate"]
Wrong = Callable[[str], None]
"""Called with each thing that is wrong, in words."""

_GROUPS = get_args(Kind)[:3]
_HEAD = re.compile(r"(?P<name>[A-Za-z_][\w.:]*)\s*(?:\((?P<inside>.*)\))?\s*(?:@\s*(?P<cutoff>\S*))?", re.DOTALL)
_COMPARED = re.compile(r">=|=>|<=|=<|==|!=|<>|=|<|>")
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in")
_COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_SPELT = {"==": "=", "<>": "!=", "=>": ">=", "=<": "<="}
_YES, _NO = ("yes", "y", "true", "t"), ("no", "n", "false", "f")
_KNOWN = "measured are share, count and exposure of a group, as in 'share(sex = F) @50 >= 0.4', and rank statistics"
_MOST = 3  # nearest words in a message


@dataclass(frozen=True)
class Condition:
    """A condition on a column, which says which rows are in a group; one value but for the operator ``in``."""

    column: str
    operator: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        listed = f"({', '.join(self.values)})" if self.operator == "in" else self.values[0]
        column = repr(self.column) if _COMPARED.search(self.column) else self.column
        return f"{column} {self.operator} {listed}"

    def holds(self, column: Column) -> BoolArray:
        """Return which rows are in the group, (n,); none that misses the value."""
        numbers = column.numbers
        if numbers is None or self._wanted(column) is None:
            found = np.isin(column.texts.astype(str), [_own_text(value, column) for value in self.values])
        else:
            wanted = np.array(self._wanted(column))
            compare = _COMPARISONS.get(self.operator)
            with np.errstate(invalid="ignore"):
                found = np.isin(numbers, wanted) if compare is None else compare(numbers, wanted[0])
        return (~found if self.operator == "!=" else found) & ~column.missing

    def check(self, column: Column, wrong: Wrong) -> None:
        """Report values that the column does not have, and comparisons that it does not allow."""
        numbers, wanted = column.numbers, self._wanted(column)
        if numbers is not None and wanted is None:
            no = next(value for value in self.values if _number_in(value, column) is None)
            wrong(f"column {self.column!r} holds numbers, got {no!r}")
        elif numbers is not None and wanted is not None:
            known = np.unique(numbers[~np.isnan(numbers)])
            for value, text in zip(wanted, self.values, strict=True):
                if self.operator in ("=", "!=", "in") and len(known) and value not in known:
                    near = known[np.argmin(np.abs(known - value))]
                    wrong(f"column {self.column!r} has no value {text}; nearest is {near:g}")
        elif self.operator in _COMPARISONS:
            wrong(f"{self.operator!r} compares numbers, and column {self.column!r} holds {quoted(list(column.counts))}")
        else:
            for text in self.values:
                if _own_text(text, column) not in column.counts:
                    wrong(f"column {self.column!r} has no value {text!r}{_nearest(text, list(column.counts))}")

    def _wanted(self, column: Column) -> list[float] | None:
        """Return the values as numbers, where all are."""
        found = [_number_in(value, column) for value in self.values]
        return None if None in found else found  # type: ignore[return-value]


@dataclass(frozen=True)
class ListDemand:
    """A demand on a ranked list, as its words state it.

    Attributes:
        kind: ``"share"``, ``"count"`` or ``"exposure"`` of a group, or a ``"statistic"`` or true positive ``"rate"`` of
            the labels.
        statistic: the rank statistic: ``hits@50`` for shares and counts, ``dcg`` for exposure.
        normalize: whether it is divided by its value for a perfect order.
        condition: which rows are in the group; None for a statistic.
        at_most: whether the value must not be larger, instead of not smaller.
        fpr: of a true positive rate, the largest false positive rate.
    """

    kind: Kind
    statistic: RankStatistic
    normalize: bool
    condition: Condition | None
    at_most: bool
    value: float
    fpr: float | None = None

    def __str__(self) -> str:
        return f"{self.what} {'<=' if self.at_most else '>='} {self.value:.12g}"

    @property
    def what(self) -> str:
        """What is measured, such as ``"share(sex = F) @50"``."""
        cut = "" if self.statistic.cutoff is None else f" @{self.statistic.cutoff}"
        if self.fpr is not None:
            return f"tpr(fpr={self.fpr:g})"
        if self.kind == "statistic":
            return self.statistic.normalized_name if self.normalize else str(self.statistic)
        return f"{self.kind}({self.condition}){cut}"

    @classmethod
    def measuring(cls, what: str, columns: Mapping[str, Column] | None = None) -> ListDemand:
        """Return a demand that asks for nothing, of what the words of a demand without its least value measure.

        Examples:
            >>> ListDemand.measuring("exposure(sex=F)").what
            'exposure(sex = F)'
        """
        problems: list[str] = []
        if any(_is_outside(what, match.start()) for match in _COMPARED.finditer(what)):
            problems.append("must be what a demand measures, without its least value, such as 'exposure(sex = F)'")
        else:
            read = read_list_demands([f"{what} >= 0"], columns, on_error=lambda at, rule, text: problems.append(rule))
        if problems:
            raise ValueError(problems[0])
        return read[0]

    def for_share(self, share: float) -> ListDemand:
        """Return what the demand asks of a list that has so large a share of the rows, as long a part of its top.

        Examples:
            >>> (demand,) = read_list_demands(["count(age >= 65) @50 >= 10"])
            >>> str(demand.for_share(0.8))
            'count(age >= 65) @40 >= 8'
        """
        if share == 1 or self.statistic.cutoff is None:
            return self
        cutoff = max(1, round(share * self.statistic.cutoff))
        options = {} if self.statistic.kind.takes_numbers else self.statistic.options
        counts = self.kind == "count" or self.statistic.name == "hits"
        value = self.value * cutoff / self.statistic.cutoff if counts and self.kind != "share" else self.value
        statistic = RankStatistic(self.statistic.name, cutoff=cutoff, **options)
        return replace(self, statistic=statistic, value=value)


def read_list_demands(
    demands: Iterable[str],
    columns: Mapping[str, Column] | None = None,
    *,
    on_error: Callable[[int, str, object], None] | None = None,
) -> list[ListDemand]:
    """Return demands that are given in words.

    Args:
        demands: the texts.
        columns: the columns that conditions may name; None to check the words alone.
        on_error: called with the number of the text, what is wrong with it and the text; None to raise one error at
            the end.

    Raises:
        ValueError: everything that is wrong, at once; unknown names and values with the nearest ones.

    Examples:
        >>> columns = {"sex": Column("sex", ["F", "M", "F"]), "age": Column("age", [70, 30, 41])}
        >>> (demand,) = read_list_demands(["share(sex=F)@2>=50 %"], columns)
        >>> str(demand), demand.condition.holds(columns["sex"]).tolist()
        ('share(sex = F) @2 >= 0.5', [True, False, True])
        >>> read_list_demands(["share(sxe = F) @2 >= 0.5", "count(sex = f) @2 > 1"], columns)
        Traceback (most recent call last):
        ...
        ValueError: demands: 'share(sxe = F) @2 >= 0.5': there is no column 'sxe'; nearest is 'sex'
        demands: 'count(sex = f) @2 > 1': '>' is none of >= and <=; column 'sex' has no value 'f'; nearest is 'F'
    """
    found: list[ListDemand] = []
    lines: list[str] = []
    if isinstance(demands, str) or not isinstance(demands, Iterable):
        raise ValueError(f"demands: must be a list of texts such as 'share(sex = F) @50 >= 0.4', got {demands!r:.80}")
    for at, text in enumerate(demands):
        problems: list[str] = []
        if isinstance(text, str):
            read = _read(text, problems.append)
            if read is not None and read[1] is not None and columns is not None:
                _check_column(read[1], columns, problems.append)
            if read is not None and read[0] is not None and not problems:
                found.append(read[0])
        else:
            problems.append("must be a text such as 'share(sex = F) @50 >= 0.4'")
        rule = "; ".join(dict.fromkeys(problems))
        if problems and on_error is not None:
            on_error(at, rule, text)
        elif problems:
            lines.append(f"demands: {text!r:.200}: {rule}")
    if lines:
        raise ValueError("\n".join(lines))
    return found


def _check_column(condition: Condition, columns: Mapping[str, Column], wrong: Wrong) -> None:
    column = columns.get(condition.column)
    if column is None:
        known = list(columns)
        told = _nearest(condition.column, known) if known else ": X has no column names, and no table was given"
        wrong(f"there is no column {condition.column!r}{told}")
        return
    problems: list[str] = []
    condition.check(column, problems.append)
    for problem in problems:
        wrong(problem)
    rows = condition.holds(column)
    if not problems and (rows.all() or not rows.any()):
        wrong(f"{condition} must hold for some rows and not for all, got {rows.sum()} of {len(rows)}")


def _read(text: str, wrong: Wrong) -> tuple[ListDemand | None, Condition | None]:
    """Return a demand as far as its words can be read, and its condition, whose column can be checked all the same."""
    at = next((match for match in _COMPARED.finditer(text) if _is_outside(text, match.start())), None)
    if at is None:
        if text.count("(") <= text.count(")"):
            wrong("there is none of >= and <= behind what is measured")
        head, operator, value = text.strip(), "", None
    else:
        head, operator = text[: at.start()].strip(), _SPELT.get(at.group(), at.group())
        if operator not in (">=", "<="):
            wrong(f"{at.group()!r} is none of >= and <=")
        value = _value(text[at.end() :].strip(), wrong)
    match = _HEAD.fullmatch(head)
    if match is None:
        wrong("a bracket is not closed" if text.count("(") > text.count(")") else _KNOWN)
        return None, None
    name, inside = match["name"], match["inside"]
    if name.lower() in ("tpr", "fpr"):
        return _of_rates(name.lower(), inside, match["cutoff"], operator, value, wrong), None
    group = name.lower() in _GROUPS
    if group or (inside is not None and not _is_statistic(head) and _COMPARED.search(inside) and "(" in head):
        if not group:
            wrong(f"{name!r} is none of {', '.join(_GROUPS)}{_nearest(name, _GROUPS, said=False)}")
        condition = _condition(inside, wrong)
        needs = f"{name}(...) @50" if group and name.lower() != "exposure" else ""
        cutoff = _cutoff(match["cutoff"], needs, wrong)
        if value is None or not group or operator not in (">=", "<="):
            return None, condition
        return _of_group(name.lower(), condition, cutoff, operator == "<=", value, wrong), condition
    return _of_statistic(head, operator, value, wrong), None


def _of_group(
    name: str, condition: Condition | None, cutoff: int | None, at_most: bool, value: float, wrong: Wrong
) -> ListDemand | None:
    if name == "count":
        if cutoff is not None and not (value == int(value) and 0 <= value <= cutoff):
            wrong(f"a count must be a whole number from 0 to {cutoff}, got {value:g}")
    elif not 0 <= value <= 1:
        wrong(f"a share must be a number from 0 to 1, got {value:g}")
    if condition is None or (cutoff is None and name != "exposure"):
        return None
    statistic = RankStatistic("dcg" if name == "exposure" else "hits", cutoff=cutoff)
    return ListDemand(name, statistic, False, condition, at_most, value)  # type: ignore[arg-type]


def _of_rates(
    name: str, inside: str | None, cutoff: str | None, operator: str, value: float | None, wrong: Wrong
) -> ListDemand | None:
    """Return the demand of ``tpr(fpr=0.1) >= 0.8``, which ``fpr(tpr=0.8) <= 0.1`` is, too."""
    other, wanted = {"tpr": ("fpr", ">="), "fpr": ("tpr", "<=")}[name]
    option = re.fullmatch(rf"{other}\s*(?:>=|<=|=)\s*(?P<value>.*)", (inside or "").strip())
    given = None if option is None else _value(option["value"].strip(), wrong)
    if option is None or cutoff is not None or operator != wanted:
        wrong("rates are demanded as in 'tpr(fpr=0.1) >= 0.8' or 'fpr(tpr=0.8) <= 0.1'")
    rates = {name: value, other: given}
    for rate, share in rates.items():
        if share is not None and not 0 <= share <= 1:
            wrong(f"{rate} is a number from 0 to 1, got {share:g}")
    if value is None or given is None:
        return None
    return ListDemand("rate", RankStatistic("auc"), False, None, False, float(rates["tpr"] or 0.0), rates["fpr"])


def _of_statistic(head: str, operator: str, value: float | None, wrong: Wrong) -> ListDemand | None:
    normalize = False
    try:
        statistic = RankStatistic.parse(head)
    except UnknownStatisticError as error:
        try:
            statistic, normalize = RankStatistic.parse(head[1:] if head[:1] == "n" else head), True
        except ValueError:
            word = head.partition("(")[0].partition("@")[0].strip()
            wrong(f"there is no {word!r}{_nearest(word, [*_GROUPS, *error.known, 'ndcg'], said=False)}; {_KNOWN}")
            return None
    except ValueError as error:
        wrong(str(error).removeprefix("statistic "))
        return None
    try:
        statistic.check_linear()
    except ValueError as error:
        wrong(str(error))
        return None
    share = normalize or bool(statistic.kind.share_of)
    if operator == "<=":
        wrong(f"'<=' goes with {', '.join(_GROUPS)} of a group: a lower {head} is no aim")
    if value is not None and not (0 <= value <= 1 if share else value >= 0):
        wrong(f"{head} is {'a number from 0 to 1' if share else 'at least 0'}, got {value:g}")
    if value is None:
        return None
    return ListDemand("statistic", statistic, normalize and not statistic.kind.share_of, None, False, value)


def _is_statistic(head: str) -> bool:
    for text in (head, head[1:]):
        try:
            RankStatistic.parse(text)
        except UnknownStatisticError:
            continue
        except ValueError:
            return True
        return True
    return False


def _condition(inside: str | None, wrong: Wrong) -> Condition | None:
    """Return the condition between the brackets."""
    text = (inside or "").strip()
    if not text:
        wrong("the condition of the group is missing, as in (sex = F)")
        return None
    among = re.compile(r"\s+in\s*\((?P<listed>.*)\)\s*$", re.IGNORECASE | re.DOTALL)
    at = next((match for match in _COMPARED.finditer(text) if _is_outside(text, match.start(), quotes=True)), None)
    if (listed := among.search(text)) and (at is None or at.start() > listed.start()):
        column, operator = text[: listed.start()], "in"
        values = tuple(_unquoted(part) for part in split_at_commas(listed["listed"]) if part.strip())
    elif at is None:
        wrong(f"the condition {text!r} has none of {', '.join(_OPERATORS)}")
        return None
    else:
        column, operator = text[: at.start()], _SPELT.get(at.group(), at.group())
        values = tuple(filter(None, [_unquoted(text[at.end() :])]))
    column = _unquoted(column)
    if not column or not values:
        wrong(f"the condition {text!r} lacks {'a column' if not column else 'a value'}")
        return None
    return Condition(column, operator, values)


def _cutoff(text: str | None, needed: str, wrong: Wrong) -> int | None:
    if text is None:
        if needed:
            wrong(f"the number of first rows is missing, as in {needed}")
        return None
    if not text.isdecimal() or not 1 <= int(text) < 2**63:
        wrong(f"the number of first rows must be a whole number of at least 1, got {text!r}")
        return None
    return int(text)


def _value(text: str, wrong: Wrong) -> float | None:
    """Return the value that is asked for; a number, or a share in per cent."""
    number, percent = text.removesuffix("%").strip(), text.endswith("%")
    try:
        found = as_number(number)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        wrong(f"the value must be a number, got {text!r}" if text else "the value is missing at the end")
        return None
    return float(f"{number}e-2") if percent and "e" not in number.lower() else found / (100 if percent else 1)


def _is_outside(text: str, at: int, *, quotes: bool = False) -> bool:
    """Return whether a place in a text is outside of quotes and, but for `quotes` alone, of brackets."""
    depth, quoted = 0, ""
    for place, letter in enumerate(text[:at]):
        if quoted:
            quoted = "" if letter == quoted else quoted
        elif letter == '"' or (letter == "'" and not text[place - 1 : place].isalnum()):
            quoted = letter
        else:
            depth += (letter == "(") - (letter == ")")
    return not quoted and (quotes or depth <= 0)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _number_in(value: str, column: Column) -> float | None:
    """Return a value as a number, in the form that the column's numbers have; None where it is none."""
    try:
        return as_number(value)
    except ValueError:
        pass
    if value.lower() in (*_YES, *_NO) and column.numbers is not None and np.isin(column.numbers, (0, 1)).any():
        return float(value.lower() in _YES)
    found = None if column.form is None else column.form.read(value)
    return None if found is None or math.isnan(found) else float(found)


def _own_text(value: str, column: Column) -> str:
    """Return a value as the column spells it: yes and no in its own words."""
    yes = yes_of(column.counts)
    if value in column.counts or yes is None or value.lower() not in (*_YES, *_NO, "1", "0"):
        return value
    no = next(text for text in column.counts if text != yes)
    return yes if value.lower() in (*_YES, "1") else no


def _nearest(word: str, known: Sequence[str], *, said: bool = True) -> str:
    alike = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), list(alike), n=_MOST, cutoff=0.5)
    if near:
        return f"; nearest {'is' if len(near) == 1 else 'are'} {quoted([alike[name] for name in near])}"
    return f"; there are {quoted(known)}" if said and known else ""


# --- demands of the rows of a fit ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OnTop:
    """What a demand on whole lists asks of their tops.

    Attributes:
        demand: the demand on the rows of the tops; None where their order does not matter, and `met` says how it
            stands.
        whole: returns the value on whole lists, in the demand's own unit, from that of the statistic on the tops.
        most: value of a perfect order of the tops, in the demand's own unit.
    """

    text: str
    demand: Demand | None
    met: bool
    whole: Callable[[float], float]
    most: float


@dataclass(frozen=True, eq=False)
class Asked:
    """A demand of the rows of a fit: ``sum_i gain_i a[rank_i] + shift >= least``, with the weights a of its list.

    Attributes:
        text, what: the demand, and what it measures, in words.
        gains, lists: gain of each row and number of its list, (n,); None for one list.
        ties: ``"resolved"`` where rows of equal totals count in their worst order, as no threshold parts them.
        turned: what the value is taken from where the demand says "at most", such as 1 for a share; None otherwise.
    """

    text: str
    what: str
    statistic: RankStatistic
    gains: FloatArray
    lists: IntArray | None
    shift: float
    least: float
    turned: float | None = None
    ties: Literal["resolved"] | None = None

    @classmethod
    def of(
        cls, demand: ListDemand | Demand, y: FloatArray, lists: IntArray | None, group: BoolArray | None, gain: GainName
    ) -> Asked:
        """Return a demand of rows with labels y, of which those of `group` are in its condition.

        Raises ValueError for labels that do not go with the rows or the statistic, and for a share of nothing.
        """
        sizes = _sizes(lists, len(y))
        if isinstance(demand, ListDemand) and group is not None:
            cut = demand.statistic.cutoff
            whole = float(sum(demand.statistic.weights(size).sum() for size in sizes.tolist()))
            unit = 1.0 if demand.kind == "count" else whole
            gains = (~group if demand.at_most else group) / unit
            total = float(sum(min(size, cut or size) for size in sizes)) if demand.kind == "count" else 1.0
            least, turned = (total - demand.value, total) if demand.at_most else (demand.value, None)
            return cls(str(demand), demand.what, demand.statistic, gains, lists, 0.0, least, turned)
        if isinstance(demand, ListDemand) and demand.fpr is not None:
            return cls._of_rates(demand, y, lists)
        if isinstance(demand, ListDemand):
            labels, own, least, name, what = y, gain, demand.value, str(demand), demand.what
        else:
            labels, own, least, name = y, gain, demand.at_least, demand.name
            what = str(demand.statistic) if demand.labels is None else name.rpartition(" >= ")[0] or name
            if demand.labels is not None:
                labels, own = demand.labels, "linear"
                if labels.shape != y.shape:
                    raise ValueError(
                        f"demands: {name}: labels must be one number per row ({len(y)}), got shape {labels.shape}"
                    )
        try:
            gains, shift = _gains(demand.statistic, labels, own, lists, demand.normalize)
        except ValueError as error:
            raise ValueError(f"demands: {name}: {error}") from None
        return cls(name, what, demand.statistic, gains, lists, shift, least)

    @classmethod
    def _of_rates(cls, demand: ListDemand, y: FloatArray, lists: IntArray | None) -> Asked:
        """Return a demand on the true positive rate where the false positive rate is at most so large.

        Of P positives and N negatives p = ceil(least P) must be above and f = floor(fpr N) may be. Some threshold does
        that if and only if p of the first p + f rows are positives: where it does, at most f of any first p + f rows
        are negatives, and where they are, the p-th positive is such a threshold.
        """
        assert demand.fpr is not None
        if lists is not None and len(np.unique(lists)) > 1:
            raise ValueError(f"demands: {demand}: rates are those of one list, not of lists by query")
        positives = int((y > 0).sum())
        needed = max(1, math.ceil(demand.value * positives - 1e-9))
        allowed = math.floor(demand.fpr * (len(y) - positives) + 1e-9)
        if positives == 0:
            raise ValueError(f"demands: {demand}: no row has a label above 0")
        first = min(needed + allowed, len(y))
        what = f"{demand.what}, of which {needed} of {positives} among the first {first}"
        return cls(
            str(demand),
            what,
            RankStatistic("hits", cutoff=first),
            (y > 0) / positives,
            None,
            0.0,
            needed / positives,
            ties="resolved",
        )

    def value(self, scores: FloatArray) -> float:
        """Return the value for scores of the rows, (n,), in the demand's own unit; ties count against those who ask."""
        return self._in_words(self._sum(scores, self.gains, self.lists))

    def met(self, scores: FloatArray) -> bool:
        """Return whether scores of the rows meet the demand."""
        return self._sum(scores, self.gains, self.lists) >= self.least - DEMAND_TOLERANCE * max(abs(self.least), 1e-9)

    def of_top(self, scores: FloatArray, top: BoolArray) -> OnTop:
        """Return what the demand asks of the tops of the lists, where all other rows keep their order by the scores.

        No other row of a list has a larger score than those of its `top`, (n,). Raises ValueError for a demand on
        several lists that none of their tops expresses.
        """
        here, gains, unit, constant = self._on_top(scores, top)

        def whole(value: float) -> float:
            return self._in_words(value * unit + constant)

        per_list = [gains] if self.lists is None else _split(gains, self.lists[top], len(_sizes(self.lists, len(top))))
        best = sum(float(np.sort(g) @ here.weights(len(g))) for g in per_list if len(g))
        worst = sum(float(np.sort(g)[::-1] @ here.weights(len(g))) for g in per_list if len(g))
        least = (self.least - constant) / unit
        slack = DEMAND_TOLERANCE * max(abs(self.least), 1e-9) / unit
        if worst >= least - slack or best < least - slack or not gains.any():
            return OnTop(self.text, None, worst >= least - slack, whole, whole(best))
        if here.kind.counts_hits:
            least = math.ceil(least - slack)
        return OnTop(self.text, Demand(here, least, gains, ties=self.ties, name=self.text), False, whole, whole(best))

    def measured_on_top(
        self, scores: FloatArray, top: BoolArray
    ) -> tuple[RankStatistic, FloatArray, Callable[[float], float]]:
        """Return the statistic of the tops that measures the same, its gains, and the value on whole lists of its own.

        The arguments and errors are those of `of_top`.
        """
        here, gains, unit, constant = self._on_top(scores, top)
        return here, gains, lambda value: self._in_words(value * unit + constant)

    def _on_top(self, scores: FloatArray, top: BoolArray) -> tuple[RankStatistic, FloatArray, float, float]:
        """Return the statistic of the tops, the gains of their rows, its unit, and the constant part of the value."""
        n = len(scores)
        sizes, tops = _sizes(self.lists, n), _sizes(self.lists, n, top)
        below = np.where(top, 0.0, self.gains)
        rest = self._sum(np.where(top, np.inf, scores), below, self.lists)
        own, kind = self.statistic, self.statistic.kind
        tails = [own.weights(size)[size - m :] for size, m in zip(sizes.tolist(), tops.tolist(), strict=True)]
        gains, constant = self.gains[top], 0.0
        pays = np.unique(gains[gains > 0])
        unit = float(pays[0]) if len(pays) == 1 else 1.0
        here = own if own.length is None and (len(pays) < 2 or not kind.counts_hits) else None
        per_list = [self.gains[top]] if self.lists is None else _split(self.gains[top], self.lists[top], len(sizes))
        if here is not None:
            for tail, own_gains in zip(tails, per_list, strict=True):
                if len(tail):
                    lift = float(tail[0] - (plain := own.weights(len(tail)))[0])
                    if not np.allclose(tail - lift, plain, rtol=1e-12, atol=0.0):
                        here = None
                        break
                    constant += lift * float(own_gains.sum())
        if here is None:
            constant = 0.0
            if len(tails) > 1:
                raise ValueError(
                    f"demands: {self.text}: {own} of lists by query has no form on their tops: rerank full lists "
                    '(top_k=None, in a config "full")'
                )
            here = RankStatistic.from_weights(tails[0]) if len(tails[0]) else own
        if here.kind.share_of:
            here = RankStatistic("wrs") if kind.share_of_pairs else RankStatistic("hits", cutoff=own.cutoff)
        return here, gains / unit, unit, rest + constant

    def _sum(self, scores: FloatArray, gains: FloatArray, lists: IntArray | None) -> float:
        return _sum_over_ranks(self.statistic, scores, gains, lists) + self.shift

    def _in_words(self, value: float) -> float:
        return value if self.turned is None else self.turned - value


def _sum_over_ranks(statistic: RankStatistic, scores: FloatArray, gains: FloatArray, lists: IntArray | None) -> float:
    """Return the sum of gains times weights of ranks; of rows with equal scores those of lower gain stand above."""
    numbers = np.zeros(len(scores), dtype=np.int64) if lists is None else np.unique(lists, return_inverse=True)[1]
    order = np.lexsort((-gains, scores, numbers))  # ascending, list after list
    sizes = np.bincount(numbers)
    weights = {size: statistic.weights(size) for size in np.unique(sizes).tolist()}
    return float(gains[order] @ np.concatenate([weights[size] for size in sizes.tolist()]))


def _gains(
    statistic: RankStatistic, labels: FloatArray, gain: GainName, lists: IntArray | None, normalize: bool
) -> tuple[FloatArray, float]:
    """Return the gains with which the sum over ranks, and the shift, are a statistic of labels; means over lists."""
    kind, n = statistic.kind, len(labels)
    statistic.check_labels(graded=not np.isin(labels, (0, 1)).all())
    of_hits = kind.counts_hits or kind.share_of_pairs
    gains = (labels > 0).astype(np.float64) if of_hits else np.exp2(labels) - 1.0 if gain == "exp2" else labels
    numbers = np.zeros(n, dtype=np.int64) if lists is None else lists
    sizes, hits = np.bincount(numbers), np.bincount(numbers, labels > 0)
    if kind.share_of_pairs:
        pairs = hits * (sizes - hits)
        if not pairs.any():
            raise ValueError("no list has two different labels")
        count = np.count_nonzero(pairs)
        shift = -float((np.divide(hits * (hits + 1) / 2, pairs, out=np.zeros(len(pairs)), where=pairs > 0)).sum())
        return gains * np.where(pairs > 0, 1 / np.maximum(pairs, 1), 0.0)[numbers] / count, shift / count
    best = hits.astype(np.float64)
    if kind.share_of == "top":
        best = np.where(hits > 0, float(statistic.cutoff or 0), 0.0)
    elif kind.share_of != "positives" and normalize:
        per_list = _split(gains, numbers, len(sizes))
        best = np.array([np.sort(own) @ statistic.weights(len(own)) for own in per_list])
    elif kind.share_of != "positives":
        return gains, 0.0
    if not best.any():
        raise ValueError("no list has a label above 0")
    return gains * np.where(best > 0, 1 / np.where(best > 0, best, 1.0), 0.0)[numbers] / np.count_nonzero(best), 0.0


def _sizes(lists: IntArray | None, n: int, rows: BoolArray | None = None) -> IntArray:
    """Return the number of rows of each list, or of those of some rows."""
    if lists is None:
        return np.array([n if rows is None else int(rows.sum())])
    return np.bincount(lists if rows is None else lists[rows], minlength=int(lists.max()) + 1)


def _split(values: FloatArray, lists: IntArray, count: int) -> list[FloatArray]:
    """Return the values of each list."""
    order = np.argsort(lists, kind="stable")
    return np.split(values[order], np.cumsum(np.bincount(lists, minlength=count))[:-1])


def columns_of(X: Any, names: Sequence[str] | None, beside: Any = None) -> dict[str, Column]:  # noqa: ANN401 (frames)
    """Return the columns that conditions may name: those of a frame, and of a table of the same rows beside it."""
    found = {} if names is None else columns_of_table(X, list(map(str, names)))
    return found | ({} if beside is None else columns_of_table(beside))
