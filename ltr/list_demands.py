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

A condition compares a column with texts or numbers by ``=``, ``!=``, ``<``, ``<=``, ``>``, ``>=`` or ``in (a, b)``;
rows that miss the value are not in the group. "At most" is a demand of the other rows: at most 60 % of one group are at
least 40 % of all others. With lists by query, shares, counts and exposure are those of all lists together; statistics
that are shares, and normalised ones, are means over the lists that have one, others are sums.

All demands become an `Asked`: ``sum_i gain_i a[rank_i] + shift >= least`` over the rows of a fit, each list with the
weights a of its length. Where only the top of a list is ordered anew, all other rows keep their share of the sum, and
the rows of a top of m have the m largest weights: an `OnTop`.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from ltr.checks import as_number, nearest, split_at_commas
from ltr.data.columns import Column, columns_of, yes_of
from ltr.exact.constraints import DEMAND_TOLERANCE, Demand
from ltr.statistics import GainName, RankStatistic, UnknownStatisticError

__all__ = ["Asked", "Condition", "GivenDemands", "ListDemand", "OnTop", "read_demand", "read_list_demands"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Kind = Literal["share", "count", "exposure", "statistic", "rate"]

_GROUPS = get_args(Kind)[:3]
_EXAMPLE = "'share(sex = F) @50 >= 0.4'"
_DEMAND = re.compile(r"(?P<measured>.*[^<>=!\s])\s*(?P<operator>[<>=!]+)\s*(?P<value>[^()<>=!]*)", re.DOTALL)
_MEASURED = re.compile(r"(?P<name>[A-Za-z_][\w.:]*)\s*(?:\((?P<inside>.*)\))?\s*(?:@\s*(?P<cutoff>\S*))?", re.DOTALL)
_CONDITION = re.compile(
    r"""(?P<column>"[^"]+"|'[^']+'|.+?)\s*"""
    r"(?:(?P<operator>!=|==?|<=?|>=?)\s*(?P<value>.+)|\s+(?i:in)\s*\((?P<listed>.+)\))",
    re.DOTALL,
)
_COMPARISONS = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
_YES, _NO = ("yes", "y", "true", "t"), ("no", "n", "false", "f")


@dataclass(frozen=True)
class Condition:
    """A condition on a column, which says which rows are in a group; one value but for the operator ``in``."""

    column: str
    operator: str
    values: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the condition that a text such as ``"age >= 65"`` states; raise ValueError for another text."""
        match = _CONDITION.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"the condition {text.strip()!r} must be one such as sex = F, age >= 65 or sex in (F, M)")
        listed, operator = match["listed"], (match["operator"] or "in").replace("==", "=")
        values = [match["value"]] if listed is None else [one for one in split_at_commas(listed) if one.strip()]
        return cls(_unquoted(match["column"]), operator, tuple(map(_unquoted, values)))

    def __str__(self) -> str:
        listed = f"({', '.join(self.values)})" if self.operator == "in" else self.values[0]
        column = repr(self.column) if re.search("[<>=]", self.column) else self.column
        return f"{column} {self.operator} {listed}"

    def holds(self, column: Column) -> BoolArray:
        """Return which rows are in the group, (n,); none that misses the value."""
        numbers, wanted = column.numbers, [_number_in(value, column) for value in self.values]
        if numbers is None or None in wanted:
            found = np.isin(column.texts.astype(str), [_own_text(value, column) for value in self.values])
        else:
            values, compare = np.array(wanted, dtype=np.float64), _COMPARISONS.get(self.operator)
            with np.errstate(invalid="ignore"):
                found = np.isin(numbers, values) if compare is None else compare(numbers, values[0])
        return (~found if self.operator == "!=" else found) & ~column.missing

    def check(self, columns: Mapping[str, Column]) -> None:
        """Raise ValueError for a column or value that is not there, or a condition that holds for all rows or none."""
        if (column := columns.get(self.column)) is None:
            told = nearest(self.column, columns) if columns else ": X has no column names, and no table was given"
            raise ValueError(f"there is no column {self.column!r}{told}")
        numbers, compares = column.numbers, self.operator in _COMPARISONS
        if numbers is None and compares:
            some = ", ".join(map(repr, list(column.counts)[:3]))
            raise ValueError(f"{self.operator!r} compares numbers, and column {self.column!r} holds {some}")
        for value in self.values:
            if numbers is None:
                known = _own_text(value, column) in column.counts
            elif (number := _number_in(value, column)) is None:
                raise ValueError(f"column {self.column!r} holds numbers, got {value!r}")
            else:
                known = compares or number in numbers
            if not known:
                raise ValueError(f"column {self.column!r} has no value {value!r}{nearest(value, column.counts)}")
        rows = self.holds(column)
        if rows.all() or not rows.any():
            raise ValueError(f"{self} must hold for some rows and not for all, got {rows.sum()} of {len(rows)}")


@dataclass(frozen=True)
class ListDemand:
    """A demand on a ranked list, as its words state it.

    Attributes:
        kind: a share, a count or the exposure of a group, a statistic of the labels, or a true positive rate.
        statistic: the rank statistic, ``hits@50`` for shares and counts, ``dcg`` for exposure; with `normalize` divided
            by its value for a perfect order.
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
    def measuring(cls, what: str) -> ListDemand:
        """Return a demand that asks for nothing, of what words such as ``"exposure(sex = F)"`` measure."""
        if _DEMAND.fullmatch(what.strip()) is not None:
            raise ValueError("must be what a demand measures, without its least value, such as 'exposure(sex = F)'")
        return read_demand(f"{what} >= 0")

    def for_share(self, share: float) -> ListDemand:
        """Return what the demand asks of a list with a share of the rows.

        Examples:
            >>> str(read_demand("count(age >= 65) @50 >= 10").for_share(0.8))
            'count(age >= 65) @40 >= 8'
        """
        if share == 1 or self.statistic.cutoff is None:
            return self
        cutoff = max(1, round(share * self.statistic.cutoff))
        options = {} if self.statistic.kind.takes_numbers else self.statistic.options
        statistic = RankStatistic(self.statistic.name, cutoff=cutoff, **options)
        if self.kind == "count" or (self.statistic.name == "hits" and self.kind != "share"):
            return replace(self, statistic=statistic, value=self.value * cutoff / self.statistic.cutoff)
        return replace(self, statistic=statistic)


def read_list_demands(demands: Iterable[str], columns: Mapping[str, Column] | None = None) -> list[ListDemand]:
    """Return demands that are given in words, see `read_demand`; raise one ValueError for all that are wrong.

    Examples:
        >>> columns = {"sex": Column("sex", ["F", "M", "F"]), "age": Column("age", [70, 30, 41])}
        >>> (demand,) = read_list_demands(["share(sex=F)@2>=50 %"], columns)
        >>> str(demand), demand.condition.holds(columns["sex"]).tolist()
        ('share(sex = F) @2 >= 0.5', [True, False, True])
        >>> read_list_demands(["share(sxe = F) @2 >= 0.5", "count(sex = F) @2 > 1"], columns)
        Traceback (most recent call last):
        ...
        ValueError: demands: 'share(sxe = F) @2 >= 0.5': there is no column 'sxe' (did you mean 'sex'?)
        demands: 'count(sex = F) @2 > 1': '>' is none of >= and <=
    """
    found, lines = list[ListDemand](), list[str]()
    if isinstance(demands, str) or not isinstance(demands, Iterable):
        raise ValueError(f"demands: must be a list of texts such as {_EXAMPLE}, got {demands!r:.80}")
    for text in demands:
        try:
            found.append(read_demand(text, columns))
        except ValueError as error:
            lines.append(f"demands: {text!r:.200}: {error}")
    if lines:
        raise ValueError("\n".join(lines))
    return found


def read_demand(text: str, columns: Mapping[str, Column] | None = None) -> ListDemand:
    """Return the demand that a text states; raise ValueError for what is wrong with it.

    `columns` are those that conditions may name; None checks the words alone.
    """
    if not isinstance(text, str):
        raise ValueError(f"must be a text such as {_EXAMPLE}")
    match = _DEMAND.fullmatch(text.strip())
    if match is None:
        raise ValueError("there is none of >= and <= behind what is measured")
    if (operator := match["operator"]) not in (">=", "<="):
        raise ValueError(f"{operator!r} is none of >= and <=")
    value, measured = _value(match["value"].strip()), _MEASURED.fullmatch(match["measured"])
    if measured is None:
        closed = match["measured"].count("(") <= match["measured"].count(")")
        raise ValueError(f"measured must be one as in {_EXAMPLE}" if closed else "a bracket is not closed")
    name, inside = measured["name"].lower(), measured["inside"] or ""
    if name in ("tpr", "fpr"):
        return _of_rates(name, inside, f"{operator}{'' if measured['cutoff'] is None else '@'}", value)
    if name not in _GROUPS:
        return _of_statistic(match["measured"], operator, value)
    cutoff = _cutoff(measured["cutoff"], "" if name == "exposure" else f"{name}(...) @50")
    condition = Condition.read(inside)
    if name == "count" and not (value.is_integer() and 0 <= value <= (cutoff or 0)):
        raise ValueError(f"a count must be a whole number from 0 to {cutoff}, got {value:g}")
    if name != "count":
        _check_share("a share", value)
    if columns is not None:
        condition.check(columns)
    statistic = RankStatistic("dcg" if name == "exposure" else "hits", cutoff=cutoff)
    return ListDemand(name, statistic, False, condition, operator == "<=", value)  # type: ignore[arg-type]


def _of_rates(name: str, inside: str, operator: str, value: float) -> ListDemand:
    """Return the demand of ``tpr(fpr=0.1) >= 0.8``, which ``fpr(tpr=0.8) <= 0.1`` is, too."""
    other, wanted = {"tpr": ("fpr", ">="), "fpr": ("tpr", "<=")}[name]
    given = re.fullmatch(rf"{other}\s*(?:>=|<=|=)\s*(?P<value>.*)", inside.strip())
    if given is None or operator != wanted:
        raise ValueError("rates are demanded as in 'tpr(fpr=0.1) >= 0.8' or 'fpr(tpr=0.8) <= 0.1'")
    rates = {name: value, other: _value(given["value"].strip())}
    for rate, share in rates.items():
        _check_share(rate, share)
    return ListDemand("rate", RankStatistic("auc"), False, None, False, rates["tpr"], rates["fpr"])


def _of_statistic(measured: str, operator: str, value: float) -> ListDemand:
    normalize = False
    try:
        statistic = RankStatistic.parse(measured)
    except UnknownStatisticError as error:
        try:
            statistic, normalize = RankStatistic.parse(measured[1:] if measured[:1] == "n" else measured), True
        except ValueError:
            word = re.split(r"[(@]", measured)[0].strip()
            near = nearest(word, [*_GROUPS, *error.known, "ndcg"])
            known = f"measured are {', '.join(_GROUPS)} of a group, as in {_EXAMPLE}, and rank statistics"
            raise ValueError(f"there is no {word!r}{near}; {known}") from None
    except ValueError as error:
        raise ValueError(str(error).removeprefix("statistic ")) from None
    statistic.check_linear()
    if operator == "<=":
        raise ValueError(f"'<=' goes with {', '.join(_GROUPS)} of a group: a lower {measured} is no aim")
    if normalize or statistic.kind.share_of:
        _check_share(measured, value)
    elif value < 0:
        raise ValueError(f"{measured} is at least 0, got {value:g}")
    return ListDemand("statistic", statistic, normalize and not statistic.kind.share_of, None, False, value)


def _check_share(what: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{what} must be a number from 0 to 1, got {value:g}")


def _cutoff(text: str | None, needed: str) -> int | None:
    if text is None and not needed:
        return None
    if text is None:
        raise ValueError(f"the number of first rows is missing, as in {needed}")
    if not text.isdecimal() or not 1 <= int(text) < 2**63:
        raise ValueError(f"the number of first rows must be a whole number of at least 1, got {text!r}")
    return int(text)


def _value(text: str) -> float:
    """Return the value that is asked for; a number, or a share in per cent."""
    number, percent = text.removesuffix("%").strip(), text.endswith("%")
    try:
        found = as_number(f"{number}e-2" if percent else number)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"the value must be a number, got {text!r}" if text else "the value is missing at the end")
    return found


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _number_in(value: str, column: Column) -> float | None:
    """Return a value as a number, in the form that the column's numbers have; None where it is none."""
    with contextlib.suppress(ValueError):
        return as_number(value)
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


# --- demands of the rows of a fit ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OnTop:
    """What a demand on whole lists asks of their tops: a rank statistic of these rows, with gains, (rows,).

    The value on whole lists is the statistic times `unit` plus `constant`; a perfect order has the value `most`, in the
    demand's unit. Where `demand` is None the order of the tops does not matter, and `met` says how the demand stands.
    """

    asked: Asked
    statistic: RankStatistic
    gains: FloatArray
    unit: float
    constant: float
    demand: Demand | None
    met: bool
    most: float

    @property
    def text(self) -> str:
        """The demand in words."""
        return self.asked.text

    def whole(self, value: float) -> float:
        """Return the value on whole lists, in the demand's own unit, from that of the statistic on the tops."""
        return self.asked.in_words(value * self.unit + self.constant)


@dataclass(frozen=True, eq=False)
class Asked:
    """A demand of the rows of a fit: ``sum_i gain_i a[rank_i] + shift >= least``, with the weights a of its list.

    Attributes:
        text, what: the demand, and what it measures, in words.
        gains, lists: gain of each row and number of its list, from 0, (n,).
        turned: what the value is taken from where the demand says "at most", such as 1 for a share; None otherwise.
        ties: ``"resolved"`` where rows of equal totals count in their worst order, as no threshold parts them.
    """

    text: str
    what: str
    statistic: RankStatistic
    gains: FloatArray
    lists: IntArray
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
        lists = np.zeros(len(y), dtype=np.int64) if lists is None else np.unique(lists, return_inverse=True)[1]
        if isinstance(demand, ListDemand) and group is not None:
            sizes, cut = np.bincount(lists).tolist(), demand.statistic.cutoff
            counted = demand.kind == "count"
            unit = 1.0 if counted else float(sum(demand.statistic.weights(size).sum() for size in sizes))
            gains = (~group if demand.at_most else group) / unit
            total = float(sum(min(size, cut or size) for size in sizes)) if counted else 1.0
            least, turned = (total - demand.value, total) if demand.at_most else (demand.value, None)
            return cls(str(demand), demand.what, demand.statistic, gains, lists, 0.0, least, turned)
        if isinstance(demand, ListDemand) and demand.fpr is not None:
            return cls._of_rates(demand, demand.fpr, y, lists)
        if isinstance(demand, ListDemand):
            labels, least, name, what = y, demand.value, str(demand), demand.what
        else:
            labels, least, name, what = y, demand.at_least, demand.name, str(demand.statistic)
            if demand.labels is not None:
                labels, gain, what = demand.labels, "linear", name.rpartition(" >= ")[0] or name
                if labels.shape != y.shape:
                    rule = f"labels must be one number per row ({len(y)}), got shape {labels.shape}"
                    raise ValueError(f"demands: {name}: {rule}")
        try:
            gains, shift = _gains(demand.statistic, labels, gain, lists, demand.normalize)
        except ValueError as error:
            raise ValueError(f"demands: {name}: {error}") from None
        return cls(name, what, demand.statistic, gains, lists, shift, least)

    @classmethod
    def _of_rates(cls, demand: ListDemand, fpr: float, y: FloatArray, lists: IntArray) -> Asked:
        """Return a demand on the true positive rate at a false positive rate.

        Of P positives and N negatives p = ceil(least P) must be above and f = floor(fpr N) may be. Some threshold does
        that if and only if p of the first p + f rows are positives: where it does, at most f of any first p + f rows
        are negatives, and where they are, the p-th positive is such a threshold.
        """
        if lists.any():
            raise ValueError(f"demands: {demand}: rates are those of one list, not of lists by query")
        positives = int((y > 0).sum())
        if positives == 0:
            raise ValueError(f"demands: {demand}: no row has a label above 0")
        needed = max(1, math.ceil(demand.value * positives - 1e-9))
        allowed = math.floor(fpr * (len(y) - positives) + 1e-9)
        first = min(needed + allowed, len(y))
        what = f"{demand.what}, of which {needed} of {positives} among the first {first}"
        statistic, gains = RankStatistic("hits", cutoff=first), (y > 0) / positives
        return cls(str(demand), what, statistic, gains, lists, 0.0, needed / positives, ties="resolved")

    def value(self, scores: FloatArray) -> float:
        """Return the value for scores of the rows, (n,), in the demand's own unit; ties count against those who ask."""
        return self.in_words(self._sum(scores, self.gains))

    def in_words(self, value: float) -> float:
        """Return a sum in the demand's own unit."""
        return value if self.turned is None else self.turned - value

    def met(self, scores: FloatArray) -> bool:
        """Return whether scores of the rows meet the demand."""
        return self._sum(scores, self.gains) >= self.least - self._slack

    def of_top(self, scores: FloatArray, top: BoolArray) -> OnTop:
        """Return what the demand asks of the tops of the lists, where all other rows keep their order by the scores.

        No other row of a list has a larger score than those of its `top`, (n,). Raises ValueError for a demand on
        several lists that none of their tops expresses.
        """
        gains = self.gains[top]
        pays = np.unique(gains[gains > 0])
        unit = float(pays[0]) if len(pays) == 1 else 1.0
        statistic, constant = self._statistic_of_tops(top, several=len(pays) > 1)
        constant += self._sum(np.where(top, np.inf, scores), np.where(top, 0.0, self.gains))
        gains = gains / unit
        per_list = [np.sort(own) for own in _split(gains, self.lists[top]) if len(own)]
        best = sum(float(own @ statistic.weights(len(own))) for own in per_list)
        worst = sum(float(own[::-1] @ statistic.weights(len(own))) for own in per_list)
        least, slack = (self.least - constant) / unit, self._slack / unit
        met, demand = worst >= least - slack, None
        if not met and best >= least - slack and gains.any():
            least = math.ceil(least - slack) if statistic.kind.counts_hits else least
            demand = Demand(statistic, least, gains, ties=self.ties, name=self.text)
        most = self.in_words(best * unit + constant)
        return OnTop(self, statistic, gains, unit, constant, demand, met, most)

    def _statistic_of_tops(self, top: BoolArray, *, several: bool) -> tuple[RankStatistic, float]:
        """Return a statistic with the weights of the tops' rows, and what these weights are larger by, over all rows.

        `several` states that the rows of the tops have gains of several sizes.
        """
        own, kind = self.statistic, self.statistic.kind
        sizes = np.bincount(self.lists)
        tops = np.bincount(self.lists[top], minlength=len(sizes))
        tails = [own.weights(size)[size - m :] for size, m in zip(sizes.tolist(), tops.tolist(), strict=True)]
        per_list = _split(self.gains[top], self.lists[top], len(sizes))
        constant, same = 0.0, own.length is None and not (several and kind.counts_hits)
        for tail, gains in zip(tails, per_list, strict=True) if same else ():
            if len(tail):
                plain = own.weights(len(tail))
                lift = float(tail[0] - plain[0])
                same = same and np.allclose(tail - lift, plain, rtol=1e-12, atol=0.0)
                constant += lift * float(gains.sum())
        if not same and len(tails) > 1:
            raise ValueError(
                f"demands: {self.text}: {own} of lists by query has no form on their tops: rerank full lists "
                '(top_k=None, in a config "full")'
            )
        if not same and len(tails[0]):
            return RankStatistic.from_weights(tails[0]), 0.0
        if kind.share_of:
            own = RankStatistic("wrs") if kind.share_of_pairs else RankStatistic("hits", cutoff=own.cutoff)
        return own, constant if same else 0.0

    @property
    def _slack(self) -> float:
        return DEMAND_TOLERANCE * max(abs(self.least), 1e-9)

    def _sum(self, scores: FloatArray, gains: FloatArray) -> float:
        """Return the sum of gains times weights of ranks; of rows with equal scores those of lower gain stand above."""
        order = np.lexsort((-gains, scores, self.lists))  # ascending, list after list
        sizes = np.bincount(self.lists).tolist()
        weights = {size: self.statistic.weights(size) for size in set(sizes)}
        return float(gains[order] @ np.concatenate([weights[size] for size in sizes])) + self.shift


@dataclass(frozen=True, eq=False)
class GivenDemands:
    """Demands on the lists of some rows, and the rows that the condition of each holds for, (n,); None without."""

    demands: tuple[ListDemand | Demand, ...]
    groups: tuple[BoolArray | None, ...]
    gain: GainName

    @classmethod
    def read(
        cls,
        demands: Sequence[str | Demand],
        X: Any,  # noqa: ANN401 (a frame of any library, a mapping, or an array)
        names: Sequence[str] | None,
        beside: Any,  # noqa: ANN401 (a frame of any library, or a mapping)
        gain: GainName,
    ) -> GivenDemands:
        """Return demands on the rows of a fit; conditions may name columns of X and of the table `beside` it.

        Raises ValueError for demands that do not go with the columns, or columns of another length.
        """
        columns: dict[str, Column] = {}
        if any(not isinstance(one, Demand) for one in demands):
            columns = {} if names is None else columns_of(X, list(map(str, names)))
            columns |= {} if beside is None else columns_of(beside)
        for name, column in columns.items():
            if len(column) != (n := len(next(iter(X.values()))) if isinstance(X, Mapping) else len(X)):
                raise ValueError(f"beside: column {name!r} must have one cell per row of X ({n}), got {len(column)}")
        return cls.of_columns(read_all_demands(demands, columns), columns, gain)

    @classmethod
    def of_columns(
        cls, demands: Sequence[ListDemand | Demand], columns: Mapping[str, Column], gain: GainName
    ) -> GivenDemands:
        """Return demands on rows with these columns."""
        conditions = [one.condition if isinstance(one, ListDemand) else None for one in demands]
        groups = tuple(None if one is None else one.holds(columns[one.column]) for one in conditions)
        return cls(tuple(demands), groups, gain)

    def take(self, rows: NDArray[Any]) -> GivenDemands:
        """Return the demands on some of the rows, by number or by a mask."""
        demands = tuple(one.take(rows) if isinstance(one, Demand) else one for one in self.demands)
        return GivenDemands(demands, tuple(None if one is None else one[rows] for one in self.groups), self.gain)

    def for_share(self, share: float) -> GivenDemands:
        """Return what the demands ask of a list of so large a share of the rows."""
        demands = tuple(one.for_share(share) if isinstance(one, ListDemand) else one for one in self.demands)
        return replace(self, demands=demands)

    def of(self, labels: FloatArray, lists: IntArray | None) -> list[Asked]:
        """Return the demands of these rows with their labels, (n,), and the list of each."""
        pairs = zip(self.demands, self.groups, strict=True)
        return [Asked.of(one, labels, lists, group, self.gain) for one, group in pairs]


def read_all_demands(
    demands: Sequence[str | Demand], columns: Mapping[str, Column] | None = None
) -> list[ListDemand | Demand]:
    """Return demands, of which those in words are read; None for the columns checks the words alone."""
    read = iter(read_list_demands([one for one in demands if not isinstance(one, Demand)], columns))
    return [one if isinstance(one, Demand) else next(read) for one in demands]


def _gains(
    statistic: RankStatistic, labels: FloatArray, gain: GainName, lists: IntArray, normalize: bool
) -> tuple[FloatArray, float]:
    """Return the gains with which the sum over ranks, and the shift, are a statistic of labels; means over lists."""
    kind = statistic.kind
    statistic.check_labels(graded=not np.isin(labels, (0, 1)).all())
    of_hits = kind.counts_hits or kind.share_of_pairs
    gains = (labels > 0).astype(np.float64) if of_hits else np.exp2(labels) - 1.0 if gain == "exp2" else labels
    sizes, hits = np.bincount(lists), np.bincount(lists, labels > 0)
    if kind.share_of_pairs:
        pairs = hits * (sizes - hits)
        if not pairs.any():
            raise ValueError("no list has two different labels")
        count = np.count_nonzero(pairs)
        shift = -float((np.divide(hits * (hits + 1) / 2, pairs, out=np.zeros(len(pairs)), where=pairs > 0)).sum())
        return gains * np.where(pairs > 0, 1 / np.maximum(pairs, 1), 0.0)[lists] / count, shift / count
    best = hits.astype(np.float64)
    if kind.share_of == "top":
        best = np.where(hits > 0, float(statistic.cutoff or 0), 0.0)
    elif kind.share_of != "positives" and normalize:
        best = np.array([np.sort(own) @ statistic.weights(len(own)) for own in _split(gains, lists)])
    elif kind.share_of != "positives":
        return gains, 0.0
    if not best.any():
        raise ValueError("no list has a label above 0")
    return gains * np.where(best > 0, 1 / np.where(best > 0, best, 1.0), 0.0)[lists] / np.count_nonzero(best), 0.0


def _split(values: FloatArray, lists: IntArray, count: int = 0) -> list[FloatArray]:
    order = np.argsort(lists, kind="stable")
    return np.split(values[order], np.cumsum(np.bincount(lists, minlength=count))[:-1])
