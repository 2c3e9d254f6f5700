"""Rank statistics: the weights a_1 <= ... <= a_n that a ranked list is judged by.

A rank statistic (the paper's conditional linear rank statistic) of a list of n observations is

    sum over positives i of a[rank_i],      0 <= a_1 <= ... <= a_n,

with rank 1 at the bottom of the list and n at the top; position = n - rank counts from 0 at the top.
Metrics, relaxations, optimisation models and bounds all take the one `RankStatistic` object defined here.

Source: Rudin & Wang, *Direct Learning to Rank and Rerank* (2018), section 2.2.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.checks import as_float, as_number, as_numbers, check_cutoff, is_whole, without_spaces

__all__ = ["RankStatistic"]

FloatArray = NDArray[np.float64]

_GRAMMAR = re.compile(r"(?P<name>[a-z]+)(?:\((?P<arguments>[^()]*)\))?(?:@0*(?P<cutoff>[0-9]{1,19}))?")

# name -> (its one option, whether a cutoff "@N" may follow)
_OPTION = {"dcg": "base", "power": "p"}
_CUTOFF = {"dcg": "may", "mrr": "may", "power": "may", "pauc": "must"}
_NAMES = ("auc", "wrs", "pauc", "wta", "mrr", "dcg", "power", "weights")


@dataclass(frozen=True)
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
    ``power(p=4)``     ``l ** p``, p > 0
    ``weights(...)``   the numbers given, bottom of the list first            a user's own
    =================  =====================================================  =======================

    ``@N`` behind ``dcg``, ``mrr`` or ``power`` keeps the top N positions and sets the rest to 0; an N beyond
    the list keeps everything. Options are stored as plain numbers: ``base``, ``p`` and ``array`` as float64.

    Attributes:
        name: one of the names above, without options.
        base: base of the logarithm of ``dcg``, greater than 1.
        p: exponent of ``power``, greater than 0.
        cutoff: the N of ``@N``, from 1 to 2**63 - 1; None keeps the whole list.
        array: the user's own weights of ``weights(...)``, a_1 first: finite, nonnegative and nondecreasing.

    Raises:
        ValueError: an option outside its range, or one that the name does not have.

    Examples:
        >>> RankStatistic.parse("dcg(base=e)@2").weights(3).round(4).tolist()
        [0.0, 0.9102, 1.4427]
        >>> str(RankStatistic("power", p=4))
        'power(p=4)'
        >>> RankStatistic.parse("auc").value([3, 1], n=3)  # positives on top and at the bottom: 1 pair of 2
        0.5
    """

    name: str
    base: float = 2.0
    p: float = 1.0
    cutoff: int | None = None
    array: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if self.name not in _NAMES:
            raise ValueError(f"statistic: unknown name {self.name!r:.80}; known are {', '.join(_NAMES)}")
        if not 1 < as_float(self.base) < math.inf:
            raise ValueError(f"statistic {self.name}: base must be a finite number > 1, got {self.base!r:.80}")
        if not 0 < as_float(self.p) < math.inf:
            raise ValueError(f"statistic {self.name}: p must be a finite number > 0, got {self.p!r:.80}")
        if self.base != 2.0 and self.name != "dcg":
            raise ValueError(f"statistic {self.name}: base belongs to dcg, got base={self.base!r}")
        if self.p != 1.0 and self.name != "power":
            raise ValueError(f"statistic {self.name}: p belongs to power, got p={self.p!r}")
        self._check_cutoff()
        if (self.array is None) == (self.name == "weights"):
            raise ValueError(f"statistic {self.name}: array goes with the name 'weights' and with no other")
        # plain numbers, so that equal statistics have equal names and hashes
        object.__setattr__(self, "base", float(self.base))
        object.__setattr__(self, "p", float(self.p))
        object.__setattr__(self, "cutoff", None if self.cutoff is None else int(self.cutoff))
        object.__setattr__(self, "array", None if self.array is None else _checked_weights(self.array))

    def _check_cutoff(self) -> None:
        rule = _CUTOFF.get(self.name, "never")
        if self.cutoff is None:
            if rule == "must":
                raise ValueError(f"statistic {self.name}: a cutoff is needed, as in '{self.name}@100'")
            return
        if rule == "never":
            hint = "; the partial AUC is 'pauc@N'" if self.name in ("auc", "wrs") else ""
            raise ValueError(f"statistic {self.name}: takes no cutoff, got @{self.cutoff}{hint}")
        check_cutoff(f"statistic {self.name}: cutoff", self.cutoff)

    @classmethod
    def parse(cls, text: str | RankStatistic) -> RankStatistic:
        """The statistic a string names; a `RankStatistic` passes through.

        Args:
            text: such as ``"dcg"``, ``"dcg(base=e)@10"``, ``"pauc@100"``, ``"power(p=4)"``,
                ``"weights(0, 0.5, 1)"``; white space around words and numbers is ignored.

        Raises:
            ValueError: a string that names no statistic, with what was expected.

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
            raise ValueError(f"statistic must read name, name(option=value) or name@N, got {text!r:.80}")
        name, arguments = match["name"], match["arguments"]
        cutoff = None if match["cutoff"] is None else int(match["cutoff"])
        if name == "weights":
            return cls(name, cutoff=cutoff, array=tuple(_number(v, text) for v in (arguments or "").split(",")))
        options: dict[str, float] = {}
        for part in arguments.split(",") if arguments else ():
            key, equals, value = part.partition("=")
            if not equals or name not in _NAMES or key != _OPTION.get(name) or key in options:
                allowed = f"{_OPTION[name]}=..." if name in _OPTION else "no options"
                raise ValueError(f"statistic {name:.80}: takes {allowed}, got {part!r:.80} in {text!r:.80}")
            options[key] = _number(value, text)
        return cls(name, cutoff=cutoff, **options)  # type: ignore[arg-type]

    @classmethod
    def from_weights(cls, weights: ArrayLike) -> RankStatistic:
        """A statistic with the user's own weights, a_1 (bottom of the list) first.

        Raises:
            ValueError: weights that are not a non-empty 1-D array, finite, nonnegative and nondecreasing.

        Examples:
            >>> str(RankStatistic.from_weights([0.0, 0.5, 1.0]))
            'weights(0,0.5,1)'
        """
        return cls("weights", array=_checked_weights(weights))

    def weights(self, n: int) -> FloatArray:
        """The weights a_1..a_n of a list of n observations, bottom of the list first.

        Returns:
            float64 array of shape (n,), nonnegative and nondecreasing.

        Raises:
            ValueError: n is not an integer of at least 1; a user's own weights of another length; weights whose sum is
                not finite.
        """
        if not is_whole(n) or n < 1:
            raise ValueError(f"n must be an integer of at least 1, got {n!r}")
        rank = np.arange(1, n + 1, dtype=np.float64)
        if self.array is not None:
            if len(self.array) != n:
                raise ValueError(f"statistic weights(...): {len(self.array)} weights for a list of {n}")
            return self._finite(np.asarray(self.array, dtype=np.float64))
        if self.name in ("auc", "wrs", "pauc"):
            a = rank
        elif self.name == "wta":
            a = (rank == n).astype(np.float64)
        elif self.name == "mrr":
            a = 1.0 / (n - rank + 1.0)
        elif self.name == "dcg":
            step = n - rank + 2.0
            a = 1.0 / np.log2(step) if self.base == 2.0 else math.log(self.base) / np.log(step)
        else:
            with np.errstate(over="ignore"):
                a = rank**self.p
        if self.cutoff is not None:
            a = np.where(n - rank < self.cutoff, a, 0.0)
        return self._finite(a)

    def _finite(self, a: FloatArray) -> FloatArray:
        """The weights, once their sum is known to be finite: then so are all values of the statistic."""
        with np.errstate(over="ignore"):
            total = float(a.sum())
        if not math.isfinite(total):
            largest = f"{len(a)}^{self.p:g}" if self.name == "power" else f"weights up to {float(a[-1])!r}"
            raise ValueError(
                f"statistic {self!s:.80}: the weights of a list of {len(a)} must have a finite sum, got {largest}"
            )
        return a

    def affine(self, n_pos: int, n_neg: int) -> tuple[float, float]:
        """Scale and shift that turn ``sum of a[rank]`` into the reported value: (1, 0) except for ``auc``.

        AUC = (WRS - n_pos (n_pos + 1) / 2) / (n_pos n_neg) is the share of positive-negative pairs in order.

        Raises:
            ValueError: counts that are not integers of at least 0; ``auc`` of a list without a pair.
        """
        for name, count in (("n_pos", n_pos), ("n_neg", n_neg)):
            if not is_whole(count) or count < 0:
                raise ValueError(f"{name} must be an integer of at least 0, got {count!r}")
        if self.name != "auc":
            return 1.0, 0.0
        if n_pos < 1 or n_neg < 1:
            raise ValueError(f"statistic auc: needs a positive and a negative, got {n_pos} and {n_neg}")
        return 1.0 / (n_pos * n_neg), -(n_pos + 1) / (2.0 * n_neg)

    def value(self, ranks: ArrayLike, n: int) -> float:
        """The statistic of a list of n whose positives hold these ranks (1 at the bottom, n at the top).

        Raises:
            ValueError: ranks that are not a 1-D array of integers from 1 to n; more ranks than n; as `weights` and
                `affine`.
        """
        weights = self.weights(n)
        rank = np.atleast_1d(as_numbers("ranks", ranks))
        if rank.ndim != 1 or rank.size > n:
            raise ValueError(f"ranks must be a 1-D array of at most n = {n}, got shape {rank.shape}")
        outside = ~((rank >= 1) & (rank <= n) & (rank == np.floor(rank)))  # NaN too
        if outside.any():
            raise ValueError(f"ranks must be integers from 1 to {n}, got {float(rank[outside][0]):g}")
        scale, shift = self.affine(rank.size, n - rank.size)
        return float(scale * math.fsum(weights[rank.astype(np.int64) - 1]) + shift)

    def best(self, n: int, n_pos: int) -> float:
        """The largest value any ranking can have: every positive above every negative.

        Raises:
            ValueError: an n_pos that is not an integer from 0 to n; as `weights` and `affine`.
        """
        if not is_whole(n_pos) or not 0 <= n_pos <= n:
            raise ValueError(f"n_pos must be an integer from 0 to n = {n}, got {n_pos!r}")
        return self.value(np.arange(n - n_pos + 1, n + 1), n)

    def is_convex(self, n: int) -> bool:
        """Whether the increments a_{l+1} - a_l never fall towards the top (DCG, MRR, WTA, AUC, power >= 1)."""
        # dividing by the largest weight and allowing its rounding keeps `l ** p` of long lists convex
        a = self.weights(n)
        return bool(np.all(np.diff(a, 2) >= -8 * np.finfo(np.float64).eps * max(a[-1], 1e-300)))

    def __str__(self) -> str:
        if self.array is not None:
            return f"weights({','.join(_text(v) for v in self.array)})"
        option = {"dcg": self.base != 2.0, "power": True}.get(self.name, False)
        key = _OPTION.get(self.name, "")
        arguments = f"({key}={_text(getattr(self, key))})" if option else ""
        return f"{self.name}{arguments}{'' if self.cutoff is None else f'@{self.cutoff}'}"

    def __repr__(self) -> str:
        return f"RankStatistic.parse({str(self)!r})"


def _checked_weights(weights: ArrayLike) -> tuple[float, ...]:
    """A user's own weights as floats, 0 for -0."""
    a = as_numbers("weights", weights)
    if a.ndim != 1:
        raise ValueError(f"weights must be 1-D, got shape {a.shape}")
    if a.size == 0:
        raise ValueError("weights must hold at least one number, got none")
    for rule, bad in (
        ("finite", ~np.isfinite(a)),
        ("nonnegative", a < 0),
        ("nondecreasing", a < np.r_[a[0], a[:-1]]),
    ):
        if bad.any():
            at = int(np.argmax(bad))
            raise ValueError(f"weights must be {rule}, got {float(a[at])!r} at rank {at + 1}")
    return tuple((a + 0.0).tolist())


def _number(text: str, whole: str) -> float:
    try:
        return as_number(text)
    except ValueError as error:
        raise ValueError(f"statistic: {error} in {whole!r:.80}") from None


def _text(value: float) -> str:
    """The shortest text that reads back as the same float, integers without a point."""
    if value == math.e:
        return "e"
    text = repr(float(value))
    return text.removesuffix(".0")
