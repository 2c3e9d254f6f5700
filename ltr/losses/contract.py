"""The contract that every loss keeps, and the base class that implements most of it.

``loss(scores, labels, *, mask=None, weight=None, list_weight=None, qid=None)``:

* The last axis is the list, leading axes are a batch, a 1-D call is one list, `qid` takes flat ragged lists;
  `ltr.lists` describes the inputs.
* A pair (i, k) is comparable when both items are real and ``labels_i > labels_k``, so graded labels work.
* The value of a list is the mean over its comparable pairs (``pairs="mean"``) or their sum (``pairs="sum"``);
  pointwise losses take the real items instead. A list without a comparable pair (or item) has value and gradient 0.
* A pair has the weight ``weight_i * weight_k``, and means are weighted means; an item of weight 0 counts as masked.
  Weights are data: no gradient flows into them.
* ``reduction="none"`` returns the values of the lists, ``"sum"`` their sum, and ``"mean"`` the mean over *all* lists,
  including those of value 0: the contribution of a list does not depend on the rest of its batch. Without lists the
  loss is 0.
* `list_weight` gives each list a weight V: ``"none"`` returns ``V L`` for each list of value L, ``"sum"`` the sum of
  ``V L``, and ``"mean"`` that sum over the sum of V. Its shape is ``(*batch,)``; beside `qid` each item has the weight
  of its list. `ltr.lists` says how weights of rows become both kinds of weights.
* Padding, the order of the items and the other lists of a batch never change the value of a list.
* Half precision is raised to float32 and autocast is off inside.
* Scores must be finite; others raise an error, except for float16 and inside of autocast to it, where value and
  gradient are then NaN, so that torch's ``GradScaler`` skips the step. Otherwise a value is never NaN. It is infinite
  if it exceeds the floating point range, and may be if the loss of one pair, or the sum before a mean is taken, does.
  The gradient is always finite: the slopes of pairs stop growing at the end of the range, so it points downhill.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from ltr.checks import one_of
from ltr.lists import Lists, are_simple, as_lists, buckets, check_inputs, check_qid, numbered, weights_of_lists
from ltr.losses import transforms
from ltr.losses.arithmetic import may_overflow, weighted_lists, without_overflow
from ltr.losses.operators import Given, Lengths, Pass, groups_of, is_native, list_loss, list_weight_operator
from ltr.native import ListLoss

Reduction = Literal["mean", "sum", "none"]
"""How the values of lists are reduced to one number, if at all."""
PairsName = Literal["mean", "sum"]
"""How the pairs of one list are reduced to one number."""


class RankingLoss(nn.Module, abc.ABC):
    """A loss of ranked lists: what all losses share, from checking the inputs to the reduction.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"`` over the comparable pairs of a list.
    """

    key: ClassVar[str]
    """Name of the loss in strings; a class outside this package has its import path, ``module:Class``."""
    always_named: ClassVar[tuple[str, ...]] = ()
    """Options that `name` spells out even if they have their default."""
    convex: ClassVar[bool] = False
    """Whether the loss is a convex function of the scores; unless a loss says so, it is fitted as one that is not."""
    continuous: ClassVar[bool] = True
    """Whether the loss is a continuous function of the scores; a loss with jumps has no slope where all scores tie."""
    signed: ClassVar[bool] = False
    """Whether labels of a floating point type may be negative, as a teacher's scores are."""
    compiled: ClassVar[str | None] = None
    """Name of the compiled pass over the items of lists of any length; None for a loss without one."""
    short: ClassVar[int] = 128
    """Length of lists up to which the loss works on all their pairs, which is faster for short lists."""
    few: ClassVar[int] = 500_000
    """Number of pairs of all lists together up to which it also does so for longer lists; `few_on_gpu` on a GPU."""
    few_on_gpu: ClassVar[int] = 64_000_000

    def __init_subclass__(cls, **given: Any) -> None:  # noqa: ANN401 - passed on
        super().__init_subclass__(**given)
        if cls.is_built_in():
            return
        cls.key = f"{cls.__module__}:{cls.__qualname__}"
        if not {"list_values", "from_pairs", "without_pairs"}.isdisjoint(vars(cls)) and "native" not in vars(cls):
            # those of a base class have its formula
            cls.native, cls.compiled = RankingLoss.native, None  # type: ignore[method-assign]

    @classmethod
    def is_built_in(cls) -> bool:
        """Return whether the loss belongs to this package."""
        return cls.__module__.startswith(f"{__package__}.")

    def __init__(self, *, reduction: Reduction = "mean", pairs: PairsName = "mean") -> None:
        super().__init__()
        self.reduction = one_of("reduction", reduction, get_args(Reduction))
        self.pairs = one_of("pairs", pairs, get_args(PairsName))

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401 - any attribute
        super().__setattr__(name, value)
        if isinstance(value, float):
            # for `options`: torch.compile does not know how to write a number
            vars(self)[f"_{name}_text"] = repr(value).removesuffix(".0")

    @classmethod
    def option_defaults(cls) -> dict[str, object]:
        """Return the options of the constructor, also those that ``**keywords`` passes on, with their defaults.

        An option without one has ``inspect.Parameter.empty``.
        """
        found: dict[str, object] = {}
        for owner in cls.__mro__:
            if "__init__" not in owner.__dict__:
                continue
            _, *parameters = inspect.signature(owner.__dict__["__init__"]).parameters.values()
            for parameter in parameters:
                if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                    found.setdefault(parameter.name, parameter.default)
            if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
                break
        return found

    @property
    def name(self) -> str:
        """The loss with its options as a string, which `ltr.losses.parse_loss` reads back."""
        given = [f"{key}={value}" for key, value in self.options().items()]
        return f"{self.key}({','.join(given)})" if given else self.key

    def options(self) -> dict[str, str]:
        """Return the options that `name` spells out, as text: those that differ from their defaults."""
        options = {}
        for key, default in self.option_defaults().items():
            if not hasattr(self, key):
                raise TypeError(f"{type(self).__name__} must keep its option {key!r} as the attribute self.{key}")
            value = getattr(self, key)
            if key in self.always_named or value != default:
                options[key] = getattr(self, f"_{key}_text") if isinstance(value, float) else str(value)
        return options

    def uses_all_pairs(self, lists: Lists) -> bool:
        """Return whether to work on all pairs, which is faster where lists are short."""
        length = lists.scores.shape[-1]
        pairs = lists.scores.numel() * length
        return self.has_few_pairs(length, pairs) or (lists.scores.is_cuda and pairs <= self.few_on_gpu)

    def has_few_pairs(self, longest: int, pairs: float, *, times: int = 1) -> bool:
        """Return whether to visit all pairs is fastest, in code that is so many `times` as fast; see `native`."""
        return longest <= times * self.short or pairs <= times * self.few

    @abc.abstractmethod
    def list_values(self, lists: Lists) -> Tensor:
        """Return the value of each list by differentiable operations, ``(*batch,)``; lists have a length above 0."""

    def native(self, lists: Lengths, *, derivatives: bool = False) -> ListLoss | None:
        """Return the compiled form of the loss for lists on the CPU; None where there is none, or torch is faster.

        By default it is the pass that `compiled` names. With `derivatives` the form is for `ltr.losses.derivatives`.
        """
        return None if self.compiled is None else list_loss(self.compiled, mean=self.pairs == "mean")

    def derivatives_of(self, lists: Lists) -> tuple[Tensor, Tensor]:
        """Return slopes and curvatures, see `ltr.losses.derivatives`, of lists without a compiled form."""
        raise NotImplementedError(
            f"{self.key} has no second derivatives: define derivatives_of(lists), or take another loss"
        )

    def core_pass(self, scores: Tensor, given: Given, reduction: str) -> Pass | None:
        """Return the core's pass over these lists; None where it has none, or operations of torch are faster."""
        if not is_native(scores, *given):
            return None
        groups = None if given.qid is None else groups_of(given.qid)
        longest = scores.shape[-1] if groups is None else groups.longest
        if not longest:
            return None
        pairs = float(scores.numel() * longest) if groups is None else groups.pairs
        equal = given.mask is None and (groups is None or groups.lists * longest == scores.shape[0])
        kernel = self.native(Lengths(longest, pairs, equal, given.weight is not None))
        return None if kernel is None else Pass(self.in_torch, kernel, reduction, given, groups)

    def forward(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
        list_weight: Tensor | None = None,
        qid: Tensor | None = None,
    ) -> Tensor:
        """Return the loss of the lists: 0-D, or one per list, with qid in the order in which ids first appear.

        Scores and labels are ``(*batch, list)``; all arguments are those of the contract at the top of this module.
        Raises TypeError or ValueError for inputs that `ltr.lists.as_lists` or `ltr.lists.weights_of_lists` rejects.
        """
        overflow: Tensor | None = None
        if may_overflow(scores):
            scores, overflow = without_overflow(scores, mask)
        given = Given(labels, mask, weight, qid)
        if list_weight is None:
            value = self._reduced(scores, given, self.reduction)
        else:
            values = self._reduced(scores, given, "none")
            if torch.compiler.is_compiling():
                weights = list_weight_operator(list_weight.detach(), scores.detach(), qid)
            else:
                weights = weights_of_lists(list_weight, scores, qid)
            value = weighted_lists(values, weights, self.reduction)
        return value if overflow is None else value + overflow

    def _reduced(self, scores: Tensor, given: Given, reduction: str) -> Tensor:
        """Return the loss of lists that all count alike."""
        labels, mask, weight, qid = given
        if torch.compiler.is_compiling() and self.is_built_in() and scores.device.type in transforms.COMPILED_FOR:
            value: Tensor = torch.ops.ltr.list_loss(scores, *given, self.name, reduction)[0]
            return value
        if mask is not None or weight is not None or qid is not None or not are_simple(scores, labels):
            check_inputs(scores, labels, mask, weight)
            check_qid(scores, qid)
        found = self.core_pass(scores, given, reduction)
        return self.in_torch(scores, given, reduction) if found is None else found(scores)

    def in_torch(self, scores: Tensor, given: Given, reduction: str) -> Tensor:
        """Return the loss by operations of torch: on any device, and differentiable as often as the loss is."""
        lists = as_lists(scores, given.labels, mask=given.mask, weight=given.weight, signed=self.signed)
        check_qid(scores, given.qid)
        with torch.autocast(lists.scores.device.type, enabled=False):
            if given.qid is not None:
                values = self._ragged_values(lists, numbered(given.qid))
            else:
                values = self.list_values(lists) if lists.scores.shape[-1] else lists.scores.sum(-1)
            if reduction == "mean":
                values = values / max(values.numel(), 1)  # a sum may be infinite although the mean is not
            return values if reduction == "none" else values.sum()

    def _ragged_values(self, items: Lists, group: Tensor) -> Tensor:
        """Return the value of each list of flat items, computing lists of similar length together."""
        if group.numel() == 0:
            return items.scores  # no lists, differentiable
        values = items.scores.new_zeros(int(group.max()) + 1)
        for members, lists in lists_of(items, group):
            values = values.index_copy(0, group[members[:, 0]], self._values(lists))
        return values

    def _values(self, lists: Lists) -> Tensor:
        """Return the value of each of some lists among others for which there may be no compiled form."""
        found = self.core_pass(lists.scores, Given(lists.labels, lists.mask, lists.weight, None), "none")
        return self.list_values(lists) if found is None else found(lists.scores)

    def extra_repr(self) -> str:
        """Return the options, for torch's own printing of modules."""
        return ", ".join(f"{key}={value}" for key, value in self.options().items())

    def __str__(self) -> str:
        return self.name


def lists_of(items: Lists, group: Tensor) -> Iterator[tuple[Tensor, Lists]]:
    """Yield lists of similar length together: the places of their items among flat ones, and the lists, padded."""
    for members, mask in buckets(group):
        mask &= items.mask[members]
        weight = None if items.weight is None else items.weight[members].masked_fill(~mask, 0.0)
        scores, labels = (x[members].masked_fill(~mask, 0.0) for x in (items.scores, items.labels))
        yield members, Lists(scores, labels, mask, weight)
