"""The P-norm push: a pairwise loss whose power p presses hardest on the negatives at the top of the list."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from torch import Tensor

from ltr.lists import Lists
from ltr.losses.contract import PairsName, RankingLoss, Reduction, one_of
from ltr.losses.pairs import (
    PairLoss,
    bounded,
    bounded_exp,
    comparable_pairs,
    grouped_logsumexp,
    item_weights,
    kept_logsumexp,
    log_softplus,
    log_sum_exp,
    logsumexp,
)
from ltr.losses.transforms import Logistic, transform
from ltr.losses.two_classes import two_classes

if TYPE_CHECKING:
    from ltr.losses._short import Kernel

__all__ = ["InnerName", "PNormPushLoss", "p_norm_push_loss"]

InnerName = Literal["exponential", "logistic"]
"""The pair function inside a P-norm push."""

_TINY = 1e-300  # below what can be told from 0 among sums that matter
_FAR = 2.0**900  # sums of differences beyond this may leave the floating point range, but
_LARGER = 2.0**64  # not in such units


class PNormPushLoss(PairLoss):
    r"""P-norm push: the p-th power of how far each negative stands above its positives.

    With ``P_k = {i : labels_i > labels_k}``, the positives of item k, and the inner loss ``l(z) = exp(-z)`` or
    ``l(z) = log(1 + exp(-z))``, the value of a list is

    * ``pairs="sum"``, the paper's:  ``sum over k of  weight_k (sum over i in P_k of  weight_i l(s_i - s_k))^p``
    * ``pairs="mean"``:  the mean over all k with ``P_k`` not empty, weighted by ``weight_k``, of
      ``(mean over i in P_k, weighted by weight_i, of l(s_i - s_k))^p``.

    With labels 0 and 1 and p = 1 the mean is that of the pairwise losses; with graded labels each k counts alike
    here, whereas each pair does there. Sums run in the log domain: the value is finite whenever it is representable.

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
    option_types: ClassVar = {"p": float, "inner": str, **RankingLoss.option_types}

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
        self.inner = one_of("inner", inner, ("exponential", "logistic"))

    def options(self) -> dict[str, str]:
        """The power always, other options where they differ from their defaults."""
        inner = {} if self.inner == "exponential" else {"inner": self.inner}
        return {"p": repr(self.p).removesuffix(".0"), **inner, **super().options()}

    def log_inner(self, z: Tensor) -> Tensor:
        """The logarithm of the inner loss of pairs whose score difference is `z`, elementwise."""
        return -z if self.inner == "exponential" else log_softplus(-z)

    def kernel(self) -> Kernel:
        """That of its power and inner loss."""
        from ltr.losses import _linear, _short

        kernels = _linear if self.linear_kernel else _short
        return functools.partial(kernels.p_norm_push, power=self.p)

    @property
    def linear_kernel(self) -> bool:
        """Whether its kernel looks at no pairs: that of the exponential inner loss."""
        return self.inner == "exponential"

    def without_pairs(self, lists: Lists) -> Tensor:
        """Inner sums by part: a product of exponentials, or a transform of weights."""
        mean, shape = self.pairs == "mean", lists.scores.shape
        weight, heaviest = item_weights(lists)
        inner, above, items = [], [], []
        for part in two_classes(lists, weight):
            two = part.two
            low = two.lower > 0
            log_above = logsumexp(two.upper.log()).unsqueeze(-1).expand_as(two.scores)
            if self.inner == "exponential":
                log_up, bottom = log_sum_exp(-two.scores, two.upper.log())
                log_inner = bounded(log_up.unsqueeze(-1) + (two.scores + bottom.unsqueeze(-1)))
            else:
                # charges of a size of which the sums stay within the range
                lowest = two.scores.detach().masked_fill(two.upper == 0, math.inf).amin(-1, keepdim=True)
                highest = two.scores.detach().masked_fill(two.lower == 0, -math.inf).amax(-1, keepdim=True)
                far = highest - lowest > _FAR
                unit = two.upper.amax(-1, keepdim=True)
                unit = torch.where(unit > 0, unit, 1.0) * torch.ones_like(unit).masked_fill(far, _LARGER)
                log_inner = transform(Logistic(), two, two.upper / unit, up=True).clamp(min=_TINY).log() + unit.log()
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
        """``exp(logsumexp over k of p logsumexp over i)`` of the logarithms of inner loss and weights."""
        difference, comparable = comparable_pairs(lists, finite=True)
        counted = comparable.any(-2)
        weight, heaviest = item_weights(lists)
        log_above = weight.log().unsqueeze(-1).expand_as(difference)
        log_inner = kept_logsumexp(log_above + self.log_inner(difference), comparable, -2)
        if self.pairs == "mean":
            log_inner = log_inner - kept_logsumexp(log_above, comparable, -2)
        return self._pushed(log_inner, counted, weight, heaviest, log_inner.dtype)

    def _pushed(
        self, log_inner: Tensor, counted: Tensor, weight: Tensor, heaviest: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        """The value from the logarithms of the inner sums or means of the items that have one."""
        log_weight = weight.double().log()
        log_value = kept_logsumexp(log_weight + bounded(self.p * log_inner.double()), counted, -1)
        if self.pairs == "mean":
            log_value = log_value - kept_logsumexp(log_weight, counted, -1)
        elif heaviest is not None:
            log_value = log_value + (self.p + 1.0) * heaviest.double().log()
        return bounded_exp(log_value, slope=self.p, dtype=dtype).masked_fill(~counted.any(-1), 0.0)


def p_norm_push_loss(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
    p: float = 2.0,
    inner: InnerName = "exponential",
    reduction: Reduction = "mean",
    pairs: PairsName = "mean",
) -> Tensor:
    """`PNormPushLoss` as a function."""
    loss = PNormPushLoss(p=p, inner=inner, reduction=reduction, pairs=pairs)
    return loss(scores, labels, mask=mask, weight=weight, qid=qid)
