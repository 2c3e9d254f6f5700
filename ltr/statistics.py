"""Rank statistics: the weights a_1 <= ... <= a_n by which a ranked list is judged.

A rank statistic (the paper's conditional linear rank statistic) of a list of n observations is

    sum over positives i of a[rank_i],      0 <= a_1 <= ... <= a_n,

with rank 1 at the bottom of the list and n at the top; position = n - rank counts from 0 at the top. Metrics, losses,
exact problems and bounds all take a `RankStatistic`. One name, ``ap``, is no such sum: average precision can be
reported, but nothing maximises it.

Source: Rudin & Wang, *Direct Learning to Rank and Rerank* (2018), section 2.2.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import (
    as_float,
    as_number,
    as_numbers,
    check_cutoff,
    imported,
    is_trusting,
    is_whole,
    nearest,
    one_of,
    without_spaces,
)

__all__ = ["RankStatistic", "StatisticKind", "register_statistic"]

FloatArray = NDArray[np.float64]
GainName = Literal["linear", "exp2"]
"""Gain of a label: the label itself, or ``2**label - 1``."""
GAIN: GainName = "exp2"
"""Gain of a label unless another is named, as in LightGBM, XGBoost and the papers on web search."""
LabelKind = Literal["labels", "times", "treatments"]
"""Plain labels, times until an event, or outcomes of a treatment."""
Cutoff = Literal["may", "must", "never"]
"""Whether ``@N`` may, must or must not follow the name of a statistic."""
ShareOf = Literal["", "pairs", "top", "positives"]
"""What a statistic is a share of: nothing, the positive-negative pairs, the positions of its cutoff, the positives."""

LOG_LOSS = "log_loss"
"""What risk scores make smallest: the name where others have a rank statistic. It is none, and does not parse."""

_Function = TypeVar("_Function", bound=Callable[..., ArrayLike])

_GRAMMAR = re.compile(
    r"(?P<name>(?:[A-Za-z_][\w.]*:)?[a-z]\w*)(?:\((?P<arguments>[^()]*)\))?(?:@0*(?P<cutoff>[0-9]{1,19}))?", re.ASCII
)
_RESERVED = ("name", "cutoff", "gain")  # arguments of `RankStatistic` and of metrics
_TRIAL = 5  # length of the list on which a new statistic is tried
_ELSEWHERE = {
    **dict.fromkeys(("map", "averageprecision"), "ap"),
    **dict.fromkeys(("rocauc", "aucroc"), "auc"),
    **dict.fromkeys(("rr", "reciprocalrank"), "mrr"),
    **dict.fromkeys(("hit", "hitrate"), "hits"),
    "p": "precision",
}
"""What statistics are called elsewhere, and here."""


class UnknownStatisticError(ValueError):
    """No statistic has this name, only the `known` ones; errors about options are plain ValueErrors."""

    def __init__(self, name: str) -> None:
        self.known = tuple(_KINDS)
        hint = nearest(name[:80], self.known, _ELSEWHERE)
        if name == "ndcg":
            hint = " (did you mean 'dcg'? runs by query report its share of the best, and rankers with normalize=True)"
        super().__init__(f"statistic: unknown name {name!r:.80}{hint}; known are {', '.join(self.known)}")


@dataclass(frozen=True)
class StatisticKind:
    """The meaning of a rank statistic's name: a row of the table that `register_statistic` extends.

    Attributes:
        function: the weights as a function of `by` and the options. Of a statistic that is not `linear`, the terms of
            the positives from their positions, top of the list first.
        by: what the weights depend on: the ``rank``, the ``position``, or the length ``n`` of the list.
        takes_numbers: whether numbers without names take the place of options, as in ``weights(0, 0.5, 1)``.
        share_of: what the value is a share of; ``"pairs"`` takes the labels 0 and 1 of one list only.
        counts_hits: whether every label above 0 counts as 1, whatever its gain.
        linear: whether it is a sum of weights of ranks; otherwise it can be computed, but not maximised.
        adds_up: whether the value of a list is that of its top plus a number that the order of the top does not change.
        checked: whether the weights are checked whenever they are computed, as those of a user's function are.
    """

    name: str
    function: Callable[..., ArrayLike]
    by: str
    defaults: Mapping[str, float] = field(default_factory=dict)
    cutoff: Cutoff = "may"
    cutoff_hint: str = ""
    shows_defaults: bool = False
    takes_numbers: bool = False
    share_of: ShareOf = ""
    counts_hits: bool = False
    linear: bool = True
    adds_up: bool = False
    checked: bool = False
    labels: LabelKind = "labels"

    @property
    def share_of_pairs(self) -> bool:
        """Whether the value is the share of positive-negative pairs in order."""
        return self.share_of == "pairs"

    @property
    def weighs_rows(self) -> bool:
        """Whether weights of rows can multiply their gains: not where pairs or hits are counted."""
        return not (self.share_of_pairs or self.counts_hits)

    @property
    def allowed(self) -> str:
        """The options that may be given, for messages."""
        return ", ".join(f"{key}=..." for key in self.defaults) or "no options"

    def weights(self, n: int, numbers: Sequence[float]) -> FloatArray:
        """Return a_1..a_n without a cutoff, given the values of the options."""
        rank = n if self.by == "n" else np.arange(1.0, n + 1)
        first = n - rank if self.by == "position" else rank
        try:
            a = self.function(first, numbers) if self.takes_numbers else self.function(first, *numbers)
        except ValueError as error:
            raise ValueError(f"statistic {self.name}: {error}") from None
        return _checked_weights(a, f"statistic {self.name}: weights", n) if self.checked else np.asarray(a)


def _discounts(position: FloatArray, base: float) -> FloatArray:
    if not 1 < base < math.inf:
        raise ValueError(f"base must be a finite number > 1, got {base!r}")
    return 1.0 / np.log2(position + 2.0) if base == 2.0 else math.log(base) / np.log(position + 2.0)


def _powers(rank: FloatArray, p: float) -> FloatArray:
    if not 0 < p < math.inf:
        raise ValueError(f"p must be a finite number > 0, got {p!r}")
    with np.errstate(over="ignore"):
        return rank**p


def _numbers(n: int, numbers: Sequence[float]) -> FloatArray:
    if len(numbers) != n:
        raise ValueError(f"{len(numbers)} weights for a list of {n}")
    return np.asarray(numbers, dtype=np.float64)


_RANK = (lambda rank: rank, "rank")
_ONES = (np.ones_like, "position")
_NO_CUTOFF: dict[str, Any] = {"cutoff": "never", "cutoff_hint": "; the partial AUC is 'pauc@N'"}
_HITS: dict[str, Any] = {"cutoff": "must", "counts_hits": True}
_AP: dict[str, Any] = {"counts_hits": True, "share_of": "positives", "linear": False}
_KINDS = {
    kind.name: kind
    for kind in (
        StatisticKind("auc", *_RANK, share_of="pairs", **_NO_CUTOFF),
        StatisticKind("wrs", *_RANK, adds_up=True, **_NO_CUTOFF),
        StatisticKind("pauc", *_RANK, cutoff="must"),
        StatisticKind("wta", lambda position: 1.0 * (position == 0), "position", cutoff="never", adds_up=True),
        StatisticKind("mrr", lambda position: 1.0 / (position + 1.0), "position", adds_up=True),
        StatisticKind("dcg", _discounts, "position", {"base": 2.0}, adds_up=True),
        StatisticKind("hits", *_ONES, adds_up=True, **_HITS),
        StatisticKind("precision", *_ONES, share_of="top", adds_up=True, **_HITS),
        StatisticKind("recall", *_ONES, share_of="positives", **_HITS),
        StatisticKind("ap", lambda at: np.arange(1.0, len(at) + 1) / (at + 1.0), "position", **_AP),
        StatisticKind("power", _powers, "rank", {"p": 1.0}, shows_defaults=True),
        StatisticKind("weights", _numbers, "n", cutoff="never", takes_numbers=True),
        StatisticKind("c_index", *_RANK, cutoff="never", linear=False, labels="times"),
        StatisticKind("auuc", *_RANK, cutoff="never", labels="treatments"),  # of the curve's area
    )
}


def register_statistic(name: str, *, cutoff: Cutoff = "may") -> Callable[[_Function], _Function]:
    """Register a function of your own as a rank statistic: ``@register_statistic("name")`` above it.

    The first argument of the function is called ``position`` (0 at the top) or ``rank`` (1 at the bottom) and is a
    float64 array; the function returns one weight for each. Where the weights depend on the length of the list, it is
    called ``n``, and the function returns a_1..a_n, bottom of the list first. The other arguments are options with
    numbers as defaults. Where another process reads the name, such as in a config, write the module that registers it
    in front, as in ``"mymodule:name(option=2)@10"``. `docs/metrics.md` has an example.

    Args:
        name: a lower-case word that no other module has registered.
        cutoff: whether ``@N`` may, must or must not (``"never"``) follow the name.

    Raises:
        ValueError: such a name or `cutoff`, an option without a number as its default, or weights that are not finite,
            nonnegative and nondecreasing towards the top.
    """
    if not isinstance(name, str) or re.fullmatch(r"[a-z]\w*", name, re.ASCII) is None:
        raise ValueError(f"statistic: a name must be a lower-case word, got {name!r:.80}")
    one_of(f"statistic {name}: cutoff", cutoff, get_args(Cutoff))

    def register(function: _Function) -> _Function:
        module = _KINDS[name].function.__module__ if name in _KINDS else function.__module__
        if module != function.__module__:
            raise ValueError(f"statistic {name}: the name is taken by {module}")
        first, *options = inspect.signature(function).parameters.values()
        if first.name not in ("rank", "position", "n"):
            raise ValueError(f"statistic {name}: its first argument must be rank, position or n, got {first.name!r}")
        for one in options:
            if one.name in _RESERVED or not math.isfinite(as_float(one.default)):
                rule = "cannot name an option" if one.name in _RESERVED else "must have a number as its default"
                raise ValueError(f"statistic {name}: {one.name} {rule}, got {one.name}={one.default!r:.80}")
        defaults, adds_up = {one.name: one.default for one in options}, first.name == "position"
        kind = StatisticKind(name, function, first.name, defaults, cutoff, adds_up=adds_up, checked=True)
        kind.weights(_TRIAL, list(defaults.values()))
        _KINDS[name] = kind
        return function

    return register


@dataclass(frozen=True, init=False, repr=False)
class RankStatistic:
    """A rank statistic by name; `str` prints that name and `parse` reads it back.

    =================  =====================================================  =======================
    name               weight a_l of rank l in a list of n                    note
    =================  =====================================================  =======================
    ``auc``            ``l``, reported as the share of ordered pairs          see `affine`
    ``wrs``            ``l``                                                  Wilcoxon rank sum
    ``pauc@N``         ``l`` on the top N positions, else 0                   partial AUC
    ``wta``            1 at the top, else 0                                   winner takes all
    ``mrr``            ``1 / (n - l + 1)``                                    reciprocal ranks, summed
    ``dcg``            ``1 / log2(n - l + 2)``                                ``dcg(base=e)``: natural
    ``hits@N``         1 on the top N positions, else 0                       positives in the top N
    ``precision@N``    that of ``hits@N``, reported divided by N              see `affine`
    ``recall@N``       that of ``hits@N``, reported divided by the positives  see `affine`
    ``ap``             none: the mean of the precisions at the positives      average precision
    ``power(p=4)``     ``l ** p``, p > 0
    ``c_index``        none: the share of comparable pairs of times           `ltr.outcomes`
    ``auuc``           ``l``, reported as the area under the uplift curve     `ltr.outcomes`
    ``weights(...)``   the numbers given, bottom of the list first            see `from_weights`
    ``mymodule:name``  those of a function of your own                        see `register_statistic`
    =================  =====================================================  =======================

    ``@N`` after ``dcg``, ``mrr``, ``ap``, ``power`` or a name of your own keeps the top N positions and sets the rest
    to 0. With graded labels a hit, in ``hits``, ``precision``, ``recall`` and ``ap``, is a label above 0.

    Args:
        name: a name from the table, without options.
        cutoff: the N of ``@N``, from 1 to 2**63 - 1; None keeps the whole list.
        options: the options of that name, such as ``base=10`` for ``dcg``.

    Raises:
        ValueError: an unknown name, an option outside its range, or one that the name does not have.

    Examples:
        >>> RankStatistic.parse("dcg(base=e)@2").weights(3).round(4).tolist()
        [0.0, 0.9102, 1.4427]
        >>> str(RankStatistic("power", p=4))
        'power(p=4)'
        >>> RankStatistic.parse("auc").value([3, 1], n=3)  # positives on top and at the bottom: 1 pair of 2
        0.5
    """

    name: str
    numbers: tuple[float, ...]  # the values of the options in their order, or the numbers of ``weights(...)``
    cutoff: int | None

    def __init__(self, name: str, *, cutoff: int | None = None, **options: float) -> None:
        kind = _kind_of(name)
        if kind.takes_numbers:
            raise ValueError(f"statistic {name}: takes its numbers from RankStatistic.from_weights")
        for key, value in options.items():
            if key not in kind.defaults:
                raise ValueError(f"statistic {name}: takes {kind.allowed}, got {key}={value!r:.80}")
            if math.isnan(as_float(value)):
                raise ValueError(f"statistic {name}: {key} must be a number, got {value!r:.80}")
        # plain numbers, so that equal statistics have equal names and hashes
        self._set(name, [as_float(value) for value in (dict(kind.defaults) | options).values()], cutoff)
        kind.weights(1, self.numbers)  # the function rejects an option outside its range

    def _set(self, name: str, numbers: Sequence[float], cutoff: int | None) -> None:
        kind = _kind_of(name)
        if cutoff is None and kind.cutoff == "must":
            raise ValueError(f"statistic {name}: a cutoff is needed, as in '{name}@100'")
        if cutoff is not None:
            if kind.cutoff == "never":
                raise ValueError(f"statistic {name}: takes no cutoff, got @{cutoff}{kind.cutoff_hint}")
            check_cutoff(f"statistic {name}: cutoff", cutoff)
            cutoff = int(cutoff)
        for attribute, value in (("name", name), ("numbers", tuple(numbers)), ("cutoff", cutoff)):
            object.__setattr__(self, attribute, value)

    @classmethod
    def parse(cls, text: str | RankStatistic) -> RankStatistic:
        """Return the statistic that a string names; a `RankStatistic` passes through.

        Examples:
            >>> RankStatistic.parse("dcg(base=2)@10")
            RankStatistic.parse('dcg@10')
        """
        if isinstance(text, RankStatistic):
            return text
        if not isinstance(text, str):
            raise TypeError(f"statistic must be a string or RankStatistic, got {type(text).__name__}")
        match = _GRAMMAR.fullmatch(without_spaces(text))
        if match is None:
            lower = " in lower case" if _GRAMMAR.fullmatch(without_spaces(text.lower())) else ""
            raise ValueError(f"statistic must read name, name(option=value) or name@N{lower}, got {text!r:.80}")
        name, arguments = match["name"], match["arguments"] or ""
        cutoff = None if match["cutoff"] is None else int(match["cutoff"])
        kind = _kind_of(name)
        if kind.takes_numbers:
            return cls._of_numbers(name, [_number(value, text) for value in arguments.split(",")], cutoff)
        options: dict[str, float] = {}
        for part in arguments.split(",") if arguments else ():
            key, equals, value = part.partition("=")
            if not equals or key not in kind.defaults or key in options:
                raise ValueError(f"statistic {name:.80}: takes {kind.allowed}, got {part!r:.80} in {text!r:.80}")
            options[key] = _number(value, text)
        return cls(name, cutoff=cutoff, **options)

    @classmethod
    def from_weights(cls, weights: ArrayLike) -> RankStatistic:
        """Return the statistic ``weights(...)`` of weights a_1 (bottom of the list) to a_n.

        Raises ValueError unless these are a non-empty 1-D array, finite, nonnegative and nondecreasing.
        """
        return cls._of_numbers("weights", weights, None)

    @classmethod
    def _of_numbers(cls, name: str, weights: ArrayLike, cutoff: int | None) -> RankStatistic:
        statistic = cls.__new__(cls)
        statistic._set(name, _checked_weights(weights).tolist(), cutoff)
        return statistic

    @property
    def kind(self) -> StatisticKind:
        """The row of the table that the name stands for."""
        return _kind_of(self.name)

    @property
    def options(self) -> dict[str, float]:
        """The options by name, defaults included."""
        return dict(zip(self.kind.defaults, self.numbers, strict=not self.kind.takes_numbers))

    @property
    def length(self) -> int | None:
        """The only length of a list that the statistic applies to; None for any length."""
        return len(self.numbers) if self.kind.takes_numbers else None

    @property
    def normalized_name(self) -> str:
        """The name of the statistic divided by its best value: ``ndcg@10`` for ``dcg@10``; a share keeps its own."""
        module, colon, own = str(self).rpartition(":")
        return str(self) if self.kind.share_of else f"{module}{colon}n{own}"

    def check_labels(self, *, graded: bool) -> None:
        """Raise ValueError if labels are graded and the statistic takes the labels 0 and 1 only, as ``auc`` does."""
        if graded and self.kind.share_of_pairs:
            raise ValueError(f"labels must be 0 and 1 for {self}: for graded labels take wrs, dcg or a pairwise loss")

    def check_kind(self, kind: LabelKind) -> None:
        """Raise ValueError if the statistic is not about labels of this kind."""
        if self.kind.labels == kind:
            return
        words = {
            "labels": ("one number per row", "auc or dcg"),
            "times": ("survival_labels(time, event)", "c_index"),
            "treatments": ("uplift_labels(outcome, treatment)", "auuc"),
        }
        given, fitting = words[kind]
        takes = words[self.kind.labels][0]
        raise ValueError(f"statistic {self} takes {takes}, got {given}, for which there is {fitting}")

    def check_linear(self) -> None:
        """Raise ValueError for a statistic without weights of ranks, such as ``ap``, which nothing maximises."""
        if self.kind.labels != "labels":
            what = "times until an event" if self.kind.labels == "times" else "treated rows and others"
            raise ValueError(f"statistic {self} is one of {what}: a card maximises it (CardRanker, ltr card)")
        if not self.kind.linear:
            cut = "" if self.cutoff is None else f"@{self.cutoff}"
            why = "average precision is no sum of weights of ranks, so it can be reported but not maximised"
            near = f"nearest are 'dcg{cut}' and, for the hits among the first rows, 'hits{cut or '@50'}'"
            raise ValueError(f"statistic {self}: {why}: {near}")

    def is_constant(self, n: int) -> bool:
        """Return whether every order of a list of n has the same value: its hits are counted in all of it."""
        return self.kind.counts_hits and self.kind.linear and self.cutoff is not None and self.cutoff >= n

    def weights(self, n: int, *, cut: bool = True) -> FloatArray:
        """Return the weights a_1..a_n of a list of n, bottom of the list first; `cut` applies the cutoff, (n,).

        Raises ValueError for a length that the statistic does not apply to, or weights whose sum is not finite.
        """
        if not self.kind.linear:
            self.check_linear()
        _check_length(n)
        a = self.kind.weights(n, self.numbers)
        if cut and self.cutoff is not None:
            a = np.where(np.arange(n - 1, -1, -1) < self.cutoff, a, 0.0)
        with np.errstate(over="ignore"):
            total = float(a.sum())
        if not math.isfinite(total):  # if it is finite, so are all values of the statistic
            rule = f"the weights of a list of {n} must have a finite sum"
            raise ValueError(f"statistic {self!s:.80}: {rule}, got weights up to {float(a[-1])!r}")
        return a

    def affine(self, n_pos: int, n_neg: int) -> tuple[float, float]:
        """Return scale and shift that turn ``sum of a[rank]`` into the reported value: (1, 0) except for shares.

        AUC = (WRS - n_pos (n_pos + 1) / 2) / (n_pos n_neg) is the share of positive-negative pairs in order;
        ``precision@N`` is hits / N, also where the list is shorter, ``recall@N`` is hits / n_pos. Raises ValueError
        where the share is undefined.
        """
        for name, count in (("n_pos", n_pos), ("n_neg", n_neg)):
            if not is_whole(count) or count < 0:
                raise ValueError(f"{name} must be an integer of at least 0, got {count!r}")
        if self.kind.share_of == "top":
            assert self.cutoff is not None
            return 1.0 / self.cutoff, 0.0
        if self.kind.share_of == "positives":
            if n_pos < 1:
                raise ValueError(f"statistic {self}: needs a positive, got none")
            return 1.0 / n_pos, 0.0
        if not self.kind.share_of_pairs:
            return 1.0, 0.0
        if n_pos < 1 or n_neg < 1:
            raise ValueError(f"statistic {self}: needs a positive and a negative, got {n_pos} and {n_neg}")
        return 1.0 / (n_pos * n_neg), -(n_pos + 1) / (2.0 * n_neg)

    def value(self, ranks: ArrayLike, n: int) -> float:
        """Return the statistic of a list of n whose positives have these ranks (1 at the bottom, n at the top).

        Raises ValueError for ranks that are not a 1-D array of at most n integers from 1 to n, or as for `weights`.
        """
        self.check_kind("labels")
        weights = self.weights(n) if self.kind.linear else None
        _check_length(n)
        rank = np.atleast_1d(as_numbers("ranks", ranks))
        if rank.ndim != 1 or rank.size > n:
            raise ValueError(f"ranks must be a 1-D array of at most n = {n}, got shape {rank.shape}")
        outside = ~((rank >= 1) & (rank <= n) & (rank == np.floor(rank)))  # NaN too
        if outside.any():
            raise ValueError(f"ranks must be integers from 1 to {n}, got {float(rank[outside][0]):g}")
        scale, shift = self.affine(rank.size, n - rank.size)
        if weights is not None:
            terms = weights[rank.astype(np.int64) - 1]
        else:  # the terms depend on the positives above, too
            position = n - np.sort(rank)[::-1]
            terms = np.asarray(self.kind.function(position, *self.numbers))[position < (self.cutoff or n)]
        return float(scale * math.fsum(terms) + shift)

    def best(self, n: int, n_pos: int) -> float:
        """Return the largest value that a ranking can have: every positive above every negative."""
        if not is_whole(n_pos) or not 0 <= n_pos <= n:
            raise ValueError(f"n_pos must be an integer from 0 to n = {n}, got {n_pos!r}")
        return self.value(np.arange(n - n_pos + 1, n + 1), n)

    def __str__(self) -> str:
        kind = self.kind
        arguments = [_text(number) for number in self.numbers]
        if not kind.takes_numbers:
            given = zip(kind.defaults.items(), self.numbers, strict=True)
            arguments = [f"{key}={_text(v)}" for (key, default), v in given if kind.shows_defaults or v != default]
        inside = f"({','.join(arguments)})" if arguments else ""
        return f"{self.name}{inside}{'' if self.cutoff is None else f'@{self.cutoff}'}"

    def __repr__(self) -> str:
        return f"RankStatistic.parse({str(self)!r})"


def _kind_of(name: str) -> StatisticKind:
    """Return the row that a name stands for, after importing the module in front of it, as in ``mymodule:name``."""
    module, _, own = name.rpartition(":") if isinstance(name, str) else ("", "", name)
    known = module and own in _KINDS and _KINDS[own].checked and _KINDS[own].function.__module__ == module
    if module and (is_trusting() or not known):  # what is registered already runs nothing
        imported(f"statistic {name}", module)
    if own not in _KINDS or (module and not _KINDS[own].checked):
        raise UnknownStatisticError(name)
    return _KINDS[own]


def _check_length(n: int) -> None:
    if not is_whole(n) or n < 1:
        raise ValueError(f"n must be an integer of at least 1, got {n!r}")


def _checked_weights(weights: ArrayLike, name: str = "weights", n: int | None = None) -> FloatArray:
    """Return weights as float64, with 0 for -0; raise ValueError unless finite, nonnegative and nondecreasing."""
    a = as_numbers(name, weights)
    if n is not None and a.shape != (n,):
        raise ValueError(f"{name} must be one number for each of {n} places, got shape {a.shape}")
    if a.ndim != 1:
        raise ValueError(f"{name} must be 1-D, got shape {a.shape}")
    if a.size == 0:
        raise ValueError(f"{name} must hold at least one number, got none")
    for rule, bad in (("finite", ~np.isfinite(a)), ("nonnegative", a < 0), ("nondecreasing", a < np.r_[a[0], a[:-1]])):
        if bad.any():
            at = int(np.argmax(bad))
            raise ValueError(f"{name} must be {rule}, got {float(a[at])!r} at rank {at + 1}")
    return a + 0.0


def _number(text: str, whole: str) -> float:
    try:
        return as_number(text)
    except ValueError as error:
        raise ValueError(f"statistic: {error} in {whole!r:.80}") from None


def _text(value: float) -> str:
    """Return the shortest text that reads back as the same float, integers without a point."""
    return "e" if value == math.e else repr(float(value)).removesuffix(".0")
