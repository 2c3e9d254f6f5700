"""Metrics by name, the most usual ones also as functions: ``ndcg(gain=linear)@10`` is ``ndcg(gain="linear", k=10)``.

``parse_measure(name)`` is a function of scores and labels, too. `evaluate` computes many from one sort of the lists.

=============================  ====================================================================================
name                           value of a list
=============================  ====================================================================================
``ndcg@10``                    DCG of the top 10 over that of the ideal order, with the gain 2^label - 1;
                               ``ndcg(gain=linear)@10``: with the label as its gain, trec_eval's ``ndcg_cut_10``
``mrr@10``                     reciprocal rank of the first relevant item, 0 if it is below the top 10
``hits@10``                    number of relevant items among the top 10
``precision@10``               share of relevant items among the top 10
``recall@10``                  share of the relevant items that are among the top 10
``ap``, ``ap@10``              average precision; with a cutoff, relevant items below the top 10 count 0
``lift@10``                    share of relevant items among the top 10 over that of the whole list
``rprec``                      precision at position R, of R relevant items
``success@10``                 1 if there is a relevant item among the top 10, else 0
``bpref``                      share of judged irrelevant items that stand below relevant ones, as trec_eval counts it
``rbp(p=0.8)``, ``rbp@10``     rank-biased precision, ``(1 - p) sum of p^position`` over the relevant items
``err@10``, ``err(max=3)``     expected reciprocal rank; ``max`` is the largest grade of the labels, 4 by default
``num_ret``, ``num_rel``,      number of items of the list, of relevant ones in it or outside, of those in it, and of
``num_rel_ret``,               those outside
``num_rel_missed``
``pairwise_misranking_error``  share of positive-negative pairs in the wrong order
``auc``, ``dcg(base=e)@10``,   the rank statistic of that name (`ltr.statistics.RankStatistic`), also one of your own,
``wrs``, ``pauc@100``, ...     optionally with ``gain=linear`` among its options: ``dcg(base=e,gain=linear)@10``
``statistic(mrr)``             a rank statistic whose name has another meaning here: reciprocal ranks summed
``normalized(pauc@100)``       a rank statistic over its value for the ideal order
=============================  ====================================================================================

``hits``, ``precision``, ``recall`` and ``ap`` are rank statistics, too (`ltr.statistics.RankStatistic`). ``@10`` may be
left out everywhere except after ``hits``, ``precision``, ``recall`` and ``pauc``. Names are also read as `ir_measures`
and trec_eval spell them (``nDCG@10``, ``P@5``, ``ndcg_cut_10``): see `ltr.metrics.names`.

*Sources.* bpref: Buckley & Voorhees, *Retrieval Evaluation with Incomplete Information* (2004); rbp: Moffat & Zobel,
*Rank-Biased Precision* (2008); err: Chapelle, Metzler, Zhang & Grinspan, *Expected Reciprocal Rank for Graded
Relevance* (2009), with the stops ``(2^label - 1) / 2^max``.

*Gain.* A graded label has the gain 2^label - 1 everywhere in this package, as in LightGBM, XGBoost and the papers on
web search; a name says ``gain=linear`` where it is the label itself, as in trec_eval and scikit-learn. For labels 0 and
1 both are the same.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, Unpack, get_args

import torch
from torch import Tensor

from ltr.checks import as_float, as_number, check_cutoff, nearest, one_of, without_spaces
from ltr.lists import Values
from ltr.metrics import formulas
from ltr.metrics.names import plain_name
from ltr.metrics.ranked import RankedLists, Ties, check_ties, rank_lists
from ltr.ranks import GAIN, GainName
from ltr.statistics import RankStatistic, UnknownStatisticError

_GRAMMAR = re.compile(
    r"(?P<name>(?:[A-Za-z_][\w.]*:)?[a-z_]\w*)(?:\((?P<options>.*)\))?(?:@0*(?P<k>[0-9]{1,19}))?", re.A
)
_GAIN = re.compile(r"(?:^|,)gain=([^,()]*)(?=,|$)")


class ListOptions(TypedDict, total=False):
    """The keyword arguments that every metric takes.

    Attributes:
        mask: boolean, of the shape of the scores, True where an item is real; None when all are.
        qid: integers, ``(items,)``: the list of each item of flat 1-D input, lists in the order in which their ids
            first appear.
        ties: ``"resolved"`` (pessimistic, the default), ``"subrank"``, ``"average"`` or ``"optimistic"``; see
            `ltr.metrics.ranked`.
        empty: the value of a list for which the metric is undefined, NaN by default.
        outside: boolean, of the shape of the scores, True for items that are known but not in the list, such as the
            relevant documents that a truncated run did not retrieve. They have no position, whatever their score, and
            count where relevant items are counted: in recall, average precision, R-precision, bpref and the ideal
            order of a normalised statistic. None when there are none.
        judged: boolean, of the same shape, False for items whose label 0 means that nobody has judged them: bpref
            leaves them out, all other metrics take the 0. None when all are judged.
    """

    mask: Values | None
    qid: Values | None
    outside: Values | None
    judged: Values | None
    ties: Ties
    empty: float


class Measure(ABC):
    """A metric with its options; `str` gives its name, which `parse_measure` reads back."""

    def __call__(self, scores: Values, labels: Values, **options: Unpack[ListOptions]) -> Tensor:
        """Return the value of each list, float64; the options are those of `ListOptions`.

        Examples:
            >>> parse_measure("precision@2")(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1])).item()
            0.5
        """
        return evaluate(scores, labels, [self], **options)[str(self)]

    @abstractmethod
    def of(self, ranked: RankedLists, *, ties: Ties = "resolved", empty: float = math.nan) -> Tensor:
        """Return the value of each of some sorted lists: float64, (lists,)."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a better order has a higher value."""
        return True

    @property
    @abstractmethod
    def binary(self) -> bool:
        """Whether it asks only which labels are above 0."""

    @abstractmethod
    def __str__(self) -> str: ...

    def __repr__(self) -> str:
        return f"parse_measure({str(self)!r})"


@dataclass(frozen=True, repr=False)
class StatisticMeasure(Measure):
    """A rank statistic; if `normalized`, divided by its value for the ideal order, unless it is a share already.

    The gain is that of a label; where hits or pairs are counted, every label above 0 is 1, and it is left out.
    """

    statistic: RankStatistic
    gain: GainName = GAIN
    normalized: bool = False

    def __post_init__(self) -> None:
        one_of("gain", self.gain, get_args(GainName))
        if not self.statistic.kind.weighs_rows:
            object.__setattr__(self, "gain", GAIN)

    @property
    def binary(self) -> bool:
        """Whether it asks only which labels are above 0."""
        return self.statistic.kind.counts_hits

    def of(self, ranked: RankedLists, *, ties: Ties = "resolved", empty: float = math.nan) -> Tensor:
        """Return the value of each list."""
        value = formulas.statistic_of(ranked, self.statistic, self.gain, ties, empty)
        if not self.normalized:
            return value
        if self.statistic.kind.share_of:
            return torch.where(ranked.all_relevant > 0, value, empty)
        best = formulas.statistic_of(ranked.ideal, self.statistic, self.gain, "resolved", empty)
        return torch.where(best > 0, value / best, empty)

    def __str__(self) -> str:
        name, options, k = _parts(str(self.statistic))
        gain = "" if self.gain == GAIN else f"gain={self.gain}"
        if self.normalized and name in _NORMALIZED.values() and not options:
            return f"{next(own for own, other in _NORMALIZED.items() if other == name)}{_call(gain)}{k}"
        if self.normalized or name in _NAMES:
            return f"{'normalized' if self.normalized else 'statistic'}{_call(str(self.statistic), gain)}"
        return f"{name}{_call(options, gain)}{k}"


@dataclass(frozen=True, repr=False)
class BinaryMeasure(Measure):
    """A metric that is not a rank statistic: all but ``err`` ask only whether an item is relevant."""

    name: str
    k: int | None = None
    option: float | None = None
    """The p of ``rbp`` or the max of ``err``, whose defaults take the place of None; None for all others."""

    def __post_init__(self) -> None:
        if self.name in _OPTION:
            _, default, least, most = _OPTION[self.name]
            value = default if self.option is None else as_float(self.option)
            if not least < value < most:
                name = f"{self.name}: {_OPTION[self.name][0]}"
                raise ValueError(f"measure {name} must be a number between {least:g} and {most:g}, got {self.option!r}")
            object.__setattr__(self, "option", value)
        elif self.option is not None:
            raise ValueError(f"measure {self.name}: takes no option, got {self.option!r}")
        if self.k is not None:
            check_cutoff("k", self.k)
            if self.name in _WHOLE:
                raise ValueError(f"measure {self.name}: takes no cutoff, got @{self.k}")

    @property
    def higher_is_better(self) -> bool:
        """Whether a better order has a higher value."""
        return self.name not in _LOWER_IS_BETTER

    @property
    def binary(self) -> bool:
        """Whether it asks only which labels are above 0."""
        return self.name != "err"

    def of(self, ranked: RankedLists, *, ties: Ties = "resolved", empty: float = math.nan) -> Tensor:
        """Return the value of each list."""
        given: dict[str, Any] = {} if self.option is None else {"option": self.option}
        if self.name in _CUT:
            given["k"] = math.inf if self.k is None else self.k
        return {**_WHOLE, **_CUT}[self.name](ranked, ties=ties, empty=empty, **given)

    def __str__(self) -> str:
        name, default, *_ = _OPTION.get(self.name, ("", self.option))
        option = "" if self.option == default else f"({name}={repr(self.option).removesuffix('.0')})"
        return f"{self.name}{option}{'' if self.k is None else f'@{self.k}'}"


_COUNTS = ("num_ret", "num_rel", "num_rel_ret", "num_rel_missed")
_WHOLE: dict[str, Callable[..., Tensor]] = {
    "pairwise_misranking_error": formulas.misranking_error_of,
    "rprec": formulas.r_precision_of,
    "bpref": formulas.bpref_of,
    **{name: partial(formulas.count_of, what=name) for name in _COUNTS},
}
_CUT: dict[str, Callable[..., Tensor]] = {
    "mrr": formulas.mrr_of,
    "lift": formulas.lift_of,
    "success": formulas.success_of,
    "rbp": formulas.rank_biased_precision_of,
    "err": formulas.expected_reciprocal_rank_of,
}
_OPTION = {"rbp": ("p", 0.8, 0.0, 1.0), "err": ("max", 4.0, 0.0, 64.0)}  # name, default, and what it lies between
_LOWER_IS_BETTER = ("pairwise_misranking_error", "num_rel_missed")
_NORMALIZED = {"ndcg": "dcg"}  # names of their own for normalised statistics
_AROUND = ("statistic", "normalized")  # names with a rank statistic in parentheses
_NAMES = (*_NORMALIZED, *_CUT, *_WHOLE, *_AROUND)


def parse_measure(text: str | Measure) -> Measure:
    """Return the measure that a string names; a measure passes through.

    Args:
        text: see the table of this module, or `docs/metrics.md`; white space around words and numbers is ignored.

    Raises:
        TypeError, ValueError: what names no measure, or an option outside its range.

    Examples:
        >>> parse_measure("ndcg(gain = linear) @ 10")
        parse_measure('ndcg(gain=linear)@10')
        >>> parse_measure("normalized(dcg@5)")
        parse_measure('ndcg@5')
    """
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise TypeError(f"measure must be a string or a Measure, got {type(text).__name__}")
    name, options, k = _parts(plain_name(without_spaces(text)))
    if name in _WHOLE or name in _CUT:
        return BinaryMeasure(name, int(k[1:]) if k else None, _option(name, options, text))
    rest, gain = _without_gain(options, text)
    if name in _AROUND:
        if k:
            raise ValueError(
                f"measure {name}: the cutoff belongs to the statistic, as in '{name}(dcg@10)', got {text!r}"
            )
        return StatisticMeasure(RankStatistic.parse(rest), gain, normalized=name == "normalized")
    if name in _NORMALIZED:
        if rest:
            raise ValueError(f"measure {name}: takes gain=..., got {rest!r} in {text!r}")
        return StatisticMeasure(RankStatistic.parse(f"{_NORMALIZED[name]}{k}"), gain, normalized=True)
    try:
        return StatisticMeasure(RankStatistic.parse(f"{name}{_call(rest)}{k}"), gain)
    except UnknownStatisticError as error:
        own = (*_NORMALIZED, *_CUT, *_WHOLE)
        hint, around = nearest(name, (*own, *error.known)), (f"{one}(...)" for one in _AROUND)
        known = f"{', '.join((*own, *around))}, and the rank statistics {', '.join(error.known)}"
        raise ValueError(f"measure: unknown name {name!r}{hint}; known are {known}") from None


def parse_measures(measures: Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Return the measures that several strings name; a single string is refused."""
    if isinstance(measures, str):
        raise TypeError(f"measures must be several, such as [{measures!r}], got the string {measures!r}")
    return tuple(parse_measure(measure) for measure in measures)


def evaluate(
    scores: Values, labels: Values, measures: Iterable[str | Measure], **options: Unpack[ListOptions]
) -> dict[str, Tensor]:
    """Return the values of many measures from one sort of the lists.

    Args:
        scores: real numbers, ``(*batch, list)``.
        labels: nonnegative, same shape.
        measures: names or measures; see `parse_measure`.
        options: see `ListOptions`.

    Returns:
        A dict from the name of each measure to its float64 values, one per list.

    Raises:
        TypeError, ValueError: an unknown measure or treatment of ties, or inputs that `ltr.lists.as_lists` rejects.

    Examples:
        >>> values = evaluate(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 0]), ["auc", "mrr", "precision@2"])
        >>> {name: value.item() for name, value in values.items()}
        {'auc': 0.5, 'mrr': 0.5, 'precision@2': 0.5}
    """
    given: dict[str, Any] = {**options}
    ties, empty = check_ties(given.pop("ties", "resolved")), given.pop("empty", math.nan)
    parsed = parse_measures(measures)
    ranked = rank_lists(scores, labels, **given)
    return {str(measure): measure.of(ranked, ties=ties, empty=empty).reshape(ranked.batch) for measure in parsed}


def rank_statistic(
    scores: Values,
    labels: Values,
    statistic: RankStatistic | str,
    *,
    gain: GainName = GAIN,
    **options: Unpack[ListOptions],
) -> Tensor:
    """Return the rank statistic of each list: ``sum over i of gain_i * a[rank_i]``.

    A list without a positive has the value 0, except for ``auc``, which takes the labels 0 and 1 only and is undefined
    without a positive and a negative.

    Args:
        scores, labels, options: as for `evaluate`.
        statistic: a `RankStatistic` or its name, such as ``"dcg(base=e)@10"``.
        gain: ``"exp2"`` takes ``2**label - 1``, ``"linear"`` the label itself.

    Source: Rudin & Wang (2018), section 2.2.

    Examples:
        >>> scores, labels = torch.tensor([0.9, 0.5, 0.5, 0.1]), torch.tensor([1, 1, 0, 0])
        >>> rank_statistic(scores, labels, "wrs").item()  # ranks 4 and, below its tie, 2
        6.0
    """
    return StatisticMeasure(RankStatistic.parse(statistic), gain)(scores, labels, **options)


def normalized_rank_statistic(
    scores: Values,
    labels: Values,
    statistic: RankStatistic | str,
    *,
    gain: GainName = GAIN,
    **options: Unpack[ListOptions],
) -> Tensor:
    """Return the rank statistic over its value for the ideal order (gains descending): 1 is a perfect list.

    It is undefined if the ideal value is 0: for a list without a positive.

    Examples:
        >>> normalized_rank_statistic(torch.tensor([1.0, 2.0]), torch.tensor([1, 0]), "mrr").item()
        0.5
    """
    return StatisticMeasure(RankStatistic.parse(statistic), gain, normalized=True)(scores, labels, **options)


def dcg(
    scores: Values,
    labels: Values,
    *,
    k: int | None = None,
    base: float = 2.0,
    gain: GainName = GAIN,
    **options: Unpack[ListOptions],
) -> Tensor:
    """Discounted cumulative gain: ``sum over i of gain_i / log_base(position_i + 2)`` over the top k positions.

    Examples:
        >>> round(dcg(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1])).item(), 6)  # 1/log2(2) + 1/log2(4)
        1.5
    """
    return StatisticMeasure(RankStatistic("dcg", base=base, cutoff=k), gain)(scores, labels, **options)


def ndcg(
    scores: Values, labels: Values, *, k: int | None = None, gain: GainName = GAIN, **options: Unpack[ListOptions]
) -> Tensor:
    """Normalised discounted cumulative gain: DCG divided by the DCG of the ideal order.

    The base of the logarithm cancels. With ``ties="average"`` and ``gain="linear"`` it equals scikit-learn's
    ``ndcg_score``.

    Examples:
        >>> ndcg(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 1, 0])).item()
        1.0
    """
    return StatisticMeasure(RankStatistic("dcg", cutoff=k), gain, normalized=True)(scores, labels, **options)


def auc(scores: Values, labels: Values, **options: Unpack[ListOptions]) -> Tensor:
    """Area under the ROC curve: the share of positive-negative pairs with the positive scored higher.

    A tied pair counts 0 (``resolved``), 1/2 (``average``, as in scikit-learn) or 1 (``optimistic``). With ``subrank``
    two tied positives cost a pair as well, and the value may be below 0.

    Examples:
        >>> auc(torch.tensor([2.0, 1.0, 1.0]), torch.tensor([1, 1, 0])).item()
        0.5
    """
    return StatisticMeasure(RankStatistic("auc"))(scores, labels, **options)


def hits(scores: Values, labels: Values, *, k: int, **options: Unpack[ListOptions]) -> Tensor:
    """Number of relevant items among the top k positions; an item is relevant if its label is above 0.

    Examples:
        >>> hits(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]), k=2).item()
        1.0
    """
    return StatisticMeasure(RankStatistic("hits", cutoff=k))(scores, labels, **options)


def precision(scores: Values, labels: Values, *, k: int, **options: Unpack[ListOptions]) -> Tensor:
    """Share of relevant items among the top k positions: hits / k, also if the list is shorter than k.

    Examples:
        >>> precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]), k=2).item()
        0.5
    """
    return StatisticMeasure(RankStatistic("precision", cutoff=k))(scores, labels, **options)


def recall(scores: Values, labels: Values, *, k: int, **options: Unpack[ListOptions]) -> Tensor:
    """Share of the relevant items that are among the top k positions; undefined without a relevant item.

    Examples:
        >>> recall(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1]), k=2).item()
        0.5
    """
    return StatisticMeasure(RankStatistic("recall", cutoff=k))(scores, labels, **options)


def mrr(scores: Values, labels: Values, *, k: int | None = None, **options: Unpack[ListOptions]) -> Tensor:
    """Reciprocal rank: 1 / (position + 1) of the first relevant item, 0 if it is below the top k.

    The paper's statistic of that name, ``rank_statistic(scores, labels, "mrr")``, sums them over all relevant items.

    Examples:
        >>> mrr(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 1])).item()
        0.5
    """
    return BinaryMeasure("mrr", k)(scores, labels, **options)


def average_precision(
    scores: Values, labels: Values, *, k: int | None = None, **options: Unpack[ListOptions]
) -> Tensor:
    """Mean over the relevant items of the precision at their position, 0 for those below the top k positions.

    With ``ties="subrank"`` tied items are retrieved together, as scikit-learn's ``average_precision_score`` does;
    ``average`` is the expectation over a random order of ties (McSherry & Najork, ECIR 2008).

    Examples:
        >>> round(average_precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([1, 0, 1])).item(), 6)  # (1 + 2/3) / 2
        0.833333
    """
    return StatisticMeasure(RankStatistic("ap", cutoff=k))(scores, labels, **options)


def _parts(text: str) -> tuple[str, str, str]:
    """Split a measure into its name, the content of its parentheses, and @k."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise ValueError(f"measure must read name, name(option=value) or name@k, got {text!r}")
    return match["name"], match["options"] or "", f"@{match['k']}" if match["k"] else ""


def _option(name: str, options: str, text: str) -> float | None:
    """Return the number that the option of a measure has in a text, None without one."""
    if not options:
        return None
    if name not in _OPTION:
        raise ValueError(f"measure {name}: takes no options, got {options!r} in {text!r}")
    key, equals, value = options.partition("=")
    try:
        if key == _OPTION[name][0] and equals:
            return as_number(value)
    except ValueError:
        pass
    raise ValueError(f"measure {name}: takes {_OPTION[name][0]}=NUMBER, got {options!r} in {text!r}")


def _call(*arguments: str) -> str:
    inside = ",".join(filter(None, arguments))
    return f"({inside})" if inside else ""


def _without_gain(options: str, text: str) -> tuple[str, GainName]:
    """Split options into all but gain=..., and the gain."""
    found = _GAIN.findall(options)
    if len(found) > 1:
        raise ValueError(f"measure: gain=... can be given once, got {text!r}")
    return _GAIN.sub("", options).removeprefix(","), one_of("gain", found[0] if found else GAIN, get_args(GainName))
