"""Metrics by name: ``parse_measure("ndcg(gain=linear)@10")`` is a function of scores and labels.

`evaluate` computes many from one sort of the lists. `docs/metrics.md` has the table of names: those of rank statistics
(`ltr.statistics.RankStatistic`), the rows of `_FORMULAS`, and ``ndcg``, ``statistic(...)`` and ``normalized(...)``.
Names are also read as ir_measures and trec_eval spell them. Both take the label itself as the gain of NDCG, so
``nDCG@10`` and ``ndcg_cut_10`` are ``ndcg(gain=linear)@10``; only trec_eval's ``ndcg``, the one without a cutoff,
cannot be told from ours.

*Sources.* bpref: Buckley & Voorhees, *Retrieval Evaluation with Incomplete Information* (2004); rbp: Moffat & Zobel,
*Rank-Biased Precision* (2008); err: Chapelle, Metzler, Zhang & Grinspan, *Expected Reciprocal Rank for Graded
Relevance* (2009), with the stops ``(2^label - 1) / 2^max``.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, Unpack, get_args

import torch
from torch import Tensor

from ltr.checks import as_number, check_cutoff, nearest, one_of, without_spaces
from ltr.lists import Values
from ltr.metrics import formulas
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
            order of a normalised statistic.
        judged: boolean, of the same shape, False for items whose label 0 means that nobody has judged them: bpref
            leaves them out, all other metrics take the 0.
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
        """Return the value of each list, float64.

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

    The gain is left out where hits or pairs are counted, which take every label above 0 as 1.
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
        if self.normalized and name == "dcg" and not options:
            return f"ndcg{_call(gain)}{k}"
        if self.normalized or name in _NAMES:
            return f"{'normalized' if self.normalized else 'statistic'}{_call(str(self.statistic), gain)}"
        return f"{name}{_call(options, gain)}{k}"


class Formula(NamedTuple):
    """A metric that is not a rank statistic."""

    of: Callable[..., Tensor]
    cut: bool = False  # whether @k may follow
    option: tuple[str, float, float, float] | None = None  # its name, default, and what it lies between
    higher_is_better: bool = True


_FORMULAS = {
    "mrr": Formula(formulas.mrr_of, cut=True),
    "lift": Formula(formulas.lift_of, cut=True),
    "success": Formula(formulas.success_of, cut=True),
    "rbp": Formula(formulas.rank_biased_precision_of, cut=True, option=("p", 0.8, 0.0, 1.0)),
    "err": Formula(formulas.expected_reciprocal_rank_of, cut=True, option=("max", 4.0, 0.0, 64.0)),
    "pairwise_misranking_error": Formula(formulas.misranking_error_of, higher_is_better=False),
    "rprec": Formula(formulas.r_precision_of),
    "bpref": Formula(formulas.bpref_of),
    "num_ret": Formula(lambda ranked, **_: ranked.n.double()),
    "num_rel": Formula(lambda ranked, **_: ranked.all_relevant.double()),
    "num_rel_ret": Formula(lambda ranked, **_: ranked.relevant.double()),
    "num_rel_missed": Formula(
        lambda ranked, **_: (ranked.all_relevant - ranked.relevant).double(), higher_is_better=False
    ),
}
_AROUND = ("statistic", "normalized")  # names with a rank statistic in parentheses
_OWN = ("ndcg", *_FORMULAS)
_NAMES = (*_OWN, *_AROUND)


@dataclass(frozen=True, repr=False)
class FormulaMeasure(Measure):
    """A metric that is not a rank statistic: all but ``err`` ask only whether an item is relevant."""

    name: str
    k: int | None = None
    option: float | None = None
    """The p of ``rbp`` or the max of ``err``, whose defaults take the place of None; None for all others."""

    def __post_init__(self) -> None:
        formula = _FORMULAS[self.name]
        if formula.option is not None:
            name, default, least, most = formula.option
            value = default if self.option is None else self.option
            if not least < value < most:
                rule = f"must be a number between {least:g} and {most:g}, got {value:g}"
                raise ValueError(f"measure {self.name}: {name} {rule}")
            object.__setattr__(self, "option", value)
        if self.k is not None:
            check_cutoff("k", self.k)
            if not formula.cut:
                raise ValueError(f"measure {self.name}: takes no cutoff, got @{self.k}")

    @property
    def higher_is_better(self) -> bool:
        """Whether a better order has a higher value."""
        return _FORMULAS[self.name].higher_is_better

    @property
    def binary(self) -> bool:
        """Whether it asks only which labels are above 0."""
        return self.name != "err"

    def of(self, ranked: RankedLists, *, ties: Ties = "resolved", empty: float = math.nan) -> Tensor:
        """Return the value of each list."""
        given: dict[str, Any] = {} if self.option is None else {"option": self.option}
        if _FORMULAS[self.name].cut:
            given["k"] = math.inf if self.k is None else self.k
        return _FORMULAS[self.name].of(ranked, ties=ties, empty=empty, **given)

    def __str__(self) -> str:
        name, default, *_ = _FORMULAS[self.name].option or ("", None)
        option = "" if self.option == default else f"({name}={repr(self.option).removesuffix('.0')})"
        return f"{self.name}{option}{'' if self.k is None else f'@{self.k}'}"


def parse_measure(text: str | Measure) -> Measure:
    """Return the measure that a string names; a measure passes through. White space around words is ignored.

    Raises TypeError or ValueError for what names no measure, or an option outside its range.

    Examples:
        >>> parse_measure("ndcg(gain = linear) @ 10"), parse_measure("normalized(dcg@5)")
        (parse_measure('ndcg(gain=linear)@10'), parse_measure('ndcg@5'))
    """
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        raise TypeError(f"measure must be a string or a Measure, got {type(text).__name__}")
    name, options, k = _parts(_plain_name(without_spaces(text)))
    if name in _FORMULAS:
        return FormulaMeasure(name, int(k[1:]) if k else None, _option(name, options, text))
    rest, gain = _without_gain(options, text)
    if name in _AROUND:
        if k:
            rule = f"the cutoff belongs to the statistic, as in '{name}(dcg@10)'"
            raise ValueError(f"measure {name}: {rule}, got {text!r}")
        return StatisticMeasure(RankStatistic.parse(rest), gain, normalized=name == "normalized")
    if name == "ndcg":
        if rest:
            raise ValueError(f"measure ndcg: takes gain=..., got {rest!r} in {text!r}")
        return StatisticMeasure(RankStatistic.parse(f"dcg{k}"), gain, normalized=True)
    try:
        return StatisticMeasure(RankStatistic.parse(f"{name}{_call(rest)}{k}"), gain)
    except UnknownStatisticError as error:
        hint, around = nearest(name, (*_OWN, *error.known)), (f"{one}(...)" for one in _AROUND)
        known = f"{', '.join((*_OWN, *around))}, and the rank statistics {', '.join(error.known)}"
        raise ValueError(f"measure: unknown name {name!r}{hint}; known are {known}") from None


def parse_measures(measures: Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Return the measures that several strings name; a single string is refused."""
    if isinstance(measures, str):
        raise TypeError(f"measures must be several, such as [{measures!r}], got the string {measures!r}")
    return tuple(parse_measure(measure) for measure in measures)


def evaluate(
    scores: Values, labels: Values, measures: Iterable[str | Measure], **options: Unpack[ListOptions]
) -> dict[str, Tensor]:
    """Return the values of many measures from one sort of the lists: by name, float64, one per list.

    Scores are real numbers, ``(*batch, list)``, labels nonnegative, of the same shape; `measures` are measures or their
    names, see `parse_measure`, and the options those of `ListOptions`. Raises TypeError or ValueError for an unknown
    measure or treatment of ties, and for inputs that `ltr.lists.as_lists` rejects.

    Examples:
        >>> values = evaluate(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 0]), ["auc", "mrr", "precision@2"])
        >>> {name: value.item() for name, value in values.items()}
        {'auc': 0.5, 'mrr': 0.5, 'precision@2': 0.5}
    """
    given: dict[str, Any] = {**options}
    ties, empty = check_ties(given.pop("ties", "resolved")), given.pop("empty", math.nan)
    parsed = parse_measures(measures)
    ranked, device = rank_lists(scores, labels, **given), scores.device if isinstance(scores, Tensor) else "cpu"
    values = {str(measure): measure.of(ranked, ties=ties, empty=empty).reshape(ranked.batch) for measure in parsed}
    return {name: of_lists.to(device) for name, of_lists in values.items()}


def rank_statistic(
    scores: Values,
    labels: Values,
    statistic: RankStatistic | str,
    *,
    gain: GainName = GAIN,
    **options: Unpack[ListOptions],
) -> Tensor:
    """Return the rank statistic of each list: ``sum over i of gain_i * a[rank_i]``, 0 without a positive.

    ``auc`` takes the labels 0 and 1 only and is undefined without a positive and a negative. `statistic` may be a name,
    such as ``"dcg(base=e)@10"``; `gain` ``"exp2"`` takes ``2**label - 1``, ``"linear"`` the label itself.

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
    """Return the rank statistic over its value for the ideal order (gains descending); undefined without a positive."""
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

    With ``ties="average"`` and ``gain="linear"`` it equals scikit-learn's ``ndcg_score``.
    """
    return StatisticMeasure(RankStatistic("dcg", cutoff=k), gain, normalized=True)(scores, labels, **options)


def auc(scores: Values, labels: Values, **options: Unpack[ListOptions]) -> Tensor:
    """Area under the ROC curve: the share of positive-negative pairs with the positive scored higher.

    A tied pair counts 0 (``resolved``), 1/2 (``average``, as in scikit-learn) or 1 (``optimistic``). With ``subrank``
    two tied positives cost a pair as well, and the value may be below 0.
    """
    return StatisticMeasure(RankStatistic("auc"))(scores, labels, **options)


def hits(scores: Values, labels: Values, *, k: int, **options: Unpack[ListOptions]) -> Tensor:
    """Number of relevant items, those with a label above 0, among the top k positions."""
    return StatisticMeasure(RankStatistic("hits", cutoff=k))(scores, labels, **options)


def precision(scores: Values, labels: Values, *, k: int, **options: Unpack[ListOptions]) -> Tensor:
    """Share of relevant items among the top k positions: hits / k, also if the list is shorter than k."""
    return StatisticMeasure(RankStatistic("precision", cutoff=k))(scores, labels, **options)


def recall(scores: Values, labels: Values, *, k: int, **options: Unpack[ListOptions]) -> Tensor:
    """Share of the relevant items that are among the top k positions; undefined without a relevant item."""
    return StatisticMeasure(RankStatistic("recall", cutoff=k))(scores, labels, **options)


def mrr(scores: Values, labels: Values, *, k: int | None = None, **options: Unpack[ListOptions]) -> Tensor:
    """Reciprocal rank: 1 / (position + 1) of the first relevant item, 0 if it is below the top k.

    The paper's statistic of that name, ``rank_statistic(scores, labels, "mrr")``, sums them over all relevant items.
    """
    return FormulaMeasure("mrr", k)(scores, labels, **options)


def average_precision(
    scores: Values, labels: Values, *, k: int | None = None, **options: Unpack[ListOptions]
) -> Tensor:
    """Mean over the relevant items of the precision at their position, 0 for those below the top k positions.

    With ``ties="subrank"`` tied items are retrieved together, as scikit-learn's ``average_precision_score`` does;
    ``average`` is the expectation over a random order of ties (McSherry & Najork, ECIR 2008).
    """
    return StatisticMeasure(RankStatistic("ap", cutoff=k))(scores, labels, **options)


_ELSEWHERE = {"map": "ap", "rr": "mrr", "recip_rank": "mrr", "p": "precision", "r": "recall",
              "numret": "num_ret", "numrel": "num_rel", "numrelret": "num_rel_ret"}  # fmt: skip
_WITH_CUTOFF = {"P": "precision", "recall": "recall", "map_cut": "ap", "ndcg_cut": "ndcg(gain=linear)",
                "success": "success"}  # fmt: skip
_UNDERSCORE = re.compile(rf"({'|'.join(_WITH_CUTOFF)})[_.]([0-9]+)", re.ASCII)
_WORD = re.compile(r"([A-Za-z_]\w*)(?![\w:.])(.*)", re.ASCII)


def _plain_name(text: str) -> str:
    """Return the name of a measure as this package spells it.

    Examples:
        >>> _plain_name("nDCG(dcg='exp-log2')@10"), _plain_name("ndcg_cut_10"), _plain_name("RBP(p=0.9)")
        ('ndcg@10', 'ndcg(gain=linear)@10', 'rbp(p=0.9)')
    """
    if text == "NumRet(rel=1)":
        return "num_rel_ret"
    if cut := _UNDERSCORE.fullmatch(text):
        return f"{_WITH_CUTOFF[cut[1]]}@{cut[2]}"
    word = _WORD.fullmatch(text)
    if word is None or not (word[1][0].isupper() or word[1] in ("nDCG", *_ELSEWHERE)):
        return text
    name, rest = word[1].lower(), word[2]
    if word[1] == "nDCG":
        rest = rest if rest.startswith("(") else f"(gain=linear){rest}"
    if name == "ndcg":
        rest = rest.replace("(dcg='exp-log2')", "").replace("(dcg='log2')", "(gain=linear)")
    return f"{_ELSEWHERE.get(name, name)}{rest}"


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
    option = _FORMULAS[name].option
    key, _, value = options.partition("=")
    try:
        if option is not None and key == option[0]:
            return as_number(value)
    except ValueError:
        pass
    takes = "no options" if option is None else f"{option[0]}=NUMBER"
    raise ValueError(f"measure {name}: takes {takes}, got {options!r} in {text!r}")


def _call(*arguments: str) -> str:
    inside = ",".join(filter(None, arguments))
    return f"({inside})" if inside else ""


def _without_gain(options: str, text: str) -> tuple[str, GainName]:
    """Split options into all but gain=..., and the gain."""
    found = _GAIN.findall(options)
    if len(found) > 1:
        raise ValueError(f"measure: gain=... can be given once, got {text!r}")
    return _GAIN.sub("", options).removeprefix(","), one_of("gain", found[0] if found else GAIN, get_args(GainName))
