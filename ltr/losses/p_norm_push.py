"""The P-norm push: a pairwise loss whose power p presses hardest on the negatives at the top of the list."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from ltr.checks import one_of
from ltr.lists import Lists
from ltr.losses.arithmetic import (
    bounded,
    bounded_exp,
    grouped_logsumexp,
    item_weights,
    kept_logsumexp,
    log_sum_exp,
    logsumexp,
)
from ltr.losses.contract import PairsName, Reduction, as_function
from ltr.losses.functions import EXPONENTIAL, LOGISTIC, PairFunction
from ltr.losses.pairs import PairLoss, comparable_pairs, two_classes
from ltr.losses.transforms import transform

if TYPE_CHECKING:
    from ltr.losses._short_lists import Kernel

InnerName = Literal["exponential", "logistic"]
"""The pair function inside a P-norm push."""

_INNER: dict[str, PairFunction] = {"exponential": EXPONENTIAL, "logistic": LOGISTIC}

_TINY = 1e-300  # smaller than any inner sum that matters
_FAR = 2.0**900  # sums of larger differences may leave the floating point range
_LARGER = 2.0**64  # unit of weights that keeps these sums inside it


class PNormPushLoss(PairLoss):
    r"""P-norm push: the p-th power of the pairwise losses of each negative.

    With ``P_k = {i : labels_i > labels_k}``, the positives of item k, and the inner loss ``l(z) = exp(-z)`` or
    ``l(z) = log(1 + exp(-z))``, the value of a list is

    * ``pairs="sum"``, the paper's:  ``sum over k of  weight_k (sum over i in P_k of  weight_i l(s_i - s_k))^p``
    * ``pairs="mean"``:  the mean over all k with ``P_k`` not empty, weighted by ``weight_k``, of
      ``(mean over i in P_k, weighted by weight_i, of l(s_i - s_k))^p``.

    With labels 0 and 1 and p = 1 the mean is that of the pairwise losses; with graded labels each k counts alike
    here, and each pair there. Sums run in the log domain: the value is finite whenever it is representable.

    Source: Rudin, *The P-Norm Push: A Simple Convex Ranking Algorithm that Concentrates at the Top of the List* (2009).

    Args:
        p: power, a finite number >= 1.
        inner: ``"exponential"`` (the paper's) or ``"logistic"``.
        reduction: ``"mean"``, ``"sum"`` or ``"none"`` over lists.
        pairs: ``"mean"`` or ``"sum"``, as above.

    Raises:
        ValueError: an option outside its range.

    Examples:
        >>> import torch
        >>> loss = PNormPushLoss(p=2, pairs="sum")
        >>> scores, labels = torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1, 1, 0])
        >>> round(loss(scores, labels).item(), 4)  # (exp(-1) + exp(-2))^2
        0.2532
        >>> str(PNormPushLoss(p=4, inner="logistic"))
        'p_norm_push(p=4,inner=logistic)'
    """

    key = "p_norm_push"
    convex = True
    always_named = ("p",)

    def __init__(
        self,
        *,
        p: float = 2.0,
        inner: InnerName = "exponential",
        reduction: Reduction = "mean",
        pairs: PairsName = "mean",
    ) -> None:
        super().__init__(reduction=reduction, pairs=pairs)
        if not (isinstance(p, (int, float)) and math.isfinite(p) and p >= 1):
            raise ValueError(f"p must be a finite number >= 1, got {p!r}")
        self.p = float(p)
        self.inner = one_of("inner", inner, _INNER)

    @property
    def function(self) -> PairFunction:
        """The inner pair function."""
        return _INNER[self.inner]

    def kernel(self) -> Kernel:
        """Return the compiled pass over the pairs of short lists, or over the items for the exponential."""
        if self.linear_kernel:
            from ltr.losses import _exponentials

            return functools.partial(_exponentials.p_norm_push, power=self.p)
        from ltr.losses import _short_lists

        return functools.partial(_short_lists.p_norm_push(self.function), power=self.p)

    @property
    def linear_kernel(self) -> bool:
        """Whether the kernel takes linear time, as that of the exponential inner loss does."""
        return self.function is EXPONENTIAL

    def without_pairs(self, lists: Lists) -> Tensor:
        """Return the values from inner sums by part: a product of exponentials, or near-linear sums."""
        mean, shape = self.pairs == "mean", lists.scores.shape
        weight, heaviest = item_weights(lists)
        inner, above, items = [], [], []
        for part in two_classes(lists, weight):
            two = part.two
            low = two.lower > 0
            log_above = logsumexp(two.upper.log()).unsqueeze(-1).expand_as(two.scores)
            if self.linear_kernel:
                log_up, bottom = log_sum_exp(-two.scores, two.upper.log())
                log_inner = bounded(log_up.unsqueeze(-1) + (two.scores + bottom.unsqueeze(-1)))
            else:
                # charges of a size of which the sums stay within the range
                lowest = two.scores.detach().masked_fill(two.upper == 0, math.inf).amin(-1, keepdim=True)
                highest = two.scores.detach().masked_fill(two.lower == 0, -math.inf).amax(-1, keepdim=True)
                far = highest - lowest > _FAR
                unit = two.upper.amax(-1, keepdim=True)
                unit = torch.where(unit > 0, unit, 1.0) * torch.ones_like(unit).masked_fill(far, _LARGER)
                log_inner = transform(self.function, two, two.upper / unit, up=True).clamp(min=_TINY).log() + unit.log()
            log_inner = log_inner.masked_fill(log_above == -math.inf, -math.inf)
            inner.append(log_inner[low])
            above.append(log_above[low])
            items.append(part.items[low])
        index = torch.cat(items)
        log_inner, counted = (x.reshape(shape) for x in grouped_logsumexp(torch.cat(inner), index, weight.numel()))
        if mean:
            log_inner = log_inner - grouped_logsumexp(torch.cat(above), index, weight.numel())[0].reshape(shape)
        return self._pushed(log_inner, counted, weight, heaviest, lists.scores.dtype)

    def from_pairs(self, lists: Lists) -> Tensor:
        """Return ``exp(logsumexp over k of p logsumexp over i)`` of the logarithms of inner loss and weights."""
        difference, comparable = comparable_pairs(lists, finite=True)
        counted = comparable.any(-2)
        weight, heaviest = item_weights(lists)
        log_above = weight.log().unsqueeze(-1).expand_as(difference)
        log_inner = kept_logsumexp(log_above + self.function.log(difference), comparable, -2)
        if self.pairs == "mean":
            log_inner = log_inner - kept_logsumexp(log_above, comparable, -2)
        return self._pushed(log_inner, counted, weight, heaviest, log_inner.dtype)

    def _pushed(
        self, log_inner: Tensor, counted: Tensor, weight: Tensor, heaviest: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """Return the value from the logarithms of the inner sums or means of the items that have one."""
        log_weight = weight.double().log()
        log_value = kept_logsumexp(log_weight + bounded(self.p * log_inner.double()), counted, -1)
        if self.pairs == "mean":
            log_value = log_value - kept_logsumexp(log_weight, counted, -1)
        elif heaviest is not None:
            log_value = log_value + (self.p + 1.0) * heaviest.double().log()
        return bounded_exp(log_value, slope=self.p, dtype=dtype).masked_fill(~counted.any(-1), 0.0)


p_norm_push_loss = as_function(PNormPushLoss, "p_norm_push_loss")
