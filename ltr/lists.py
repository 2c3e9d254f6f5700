"""The one form in which losses and metrics receive ranked lists.

Every loss takes ``(scores, labels, *, mask=None, weight=None, qid=None)``, every metric the same but weights:

* the last axis is the list, leading axes are a batch; a 1-D call is one list;
* ``mask`` is boolean, True where an item is real: padding never changes a value;
* ``qid`` instead gives flat, ragged lists: 1-D inputs, equal ids form a list, in any order.

Labels are relevances of 0 or more. A negative one is refused everywhere, also where only the order of labels counts:
nearly always it marks padding, as it does in other toolkits, and would be ranked like an item. Several lists of one
item each are refused, too, unless a mask or qid says that they are meant: the output of a model that has the shape
``(*batch, list, 1)`` needs ``squeeze(-1)``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "FlatLists",
    "Lists",
    "as_flat_lists",
    "as_lists",
    "buckets",
    "check_nonnegative",
    "check_qid",
    "numbered",
    "unique",
]


_EXACT = 2**24  # the integers up to here are float32


@dataclass(frozen=True)
class Lists:
    """Padded lists: every tensor of shape ``(*batch, list)``, `mask` True where an item is real.

    Masked-out places hold score 0 and label 0, so that what stands in padding (NaN too) reaches no value
    and no gradient.
    """

    scores: Tensor
    labels: Tensor
    mask: Tensor
    weight: Tensor | None = None


@dataclass(frozen=True)
class FlatLists:
    """The real items of all lists one after the other, however long each list is.

    Attributes:
        scores: floating point, at least float32, (items,).
        labels: as they were given, half precision raised too, (items,).
        number: int64, the number of each item's list, (items,), in any order.
        n: int64, items of each list, (lists,).
        batch: the shape that one value a list takes.
    """

    scores: Tensor
    labels: Tensor
    number: Tensor
    n: Tensor
    batch: torch.Size


def as_lists(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    qid: Tensor | None = None,
) -> Lists:
    """Check the inputs of a loss or metric and bring them into padded form.

    Args:
        scores: floating point, ``(*batch, list)``; float16 and bfloat16 are raised to float32.
        labels: numbers of the same shape, relevance 0 or more (binary: 0 and 1), taken in the precision of the scores.
        mask: boolean, same shape; None means every item is real.
        weight: nonnegative weight of each item, same shape.
        qid: integers, ``(items,)``: flat input, one list for each distinct id, lists in the order in which
            their ids first appear. Not together with a batch.

    Raises:
        TypeError: something that is not a tensor, scores that are not floating point, a mask that is not
            boolean, a qid that is not of an integer type.
        ValueError: shapes that differ, scores, labels or weights that are not finite under the mask (in the
            precision of the scores), negative labels or weights, a batch of lists of one item without a mask, a qid
            beside batched input.

    Examples:
        >>> lists = as_lists(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1, 0, 1]), qid=torch.tensor([7, 5, 7]))
        >>> lists.scores.tolist(), lists.mask.tolist()
        ([[3.0, 2.0], [1.0, 0.0]], [[True, True], [True, False]])
    """
    _check(scores, labels, mask, weight)
    check_qid(scores, qid)
    scores = _raised(scores)
    # in one precision from here on: what is too large for it is found out as not finite
    given, labels = labels.detach(), labels.detach().to(scores.dtype)
    weight = None if weight is None else weight.to(scores.dtype)
    padded = mask is not None or qid is not None
    if mask is None:
        mask = torch.ones_like(scores, dtype=torch.bool)
        real = scores.detach(), labels, weight
    else:
        given = given[mask]
        real = scores.detach()[mask], labels[mask], None if weight is None else weight[mask]
    _check_finite("scores", real[0])
    _check_labels(real[1], given)
    if real[2] is not None and not (_all_finite(real[2]) and bool((real[2] >= 0).all())):
        bad = real[2][~(torch.isfinite(real[2]) & (real[2] >= 0))]
        raise ValueError(f"weight must be finite and nonnegative, got {float(bad[0]):g}")
    if qid is not None:
        scores, labels, mask, weight = _pad(scores, labels, mask, weight, qid)
    if padded:
        scores, labels = scores.masked_fill(~mask, 0.0), labels.masked_fill(~mask, 0.0)
        weight = None if weight is None else weight.masked_fill(~mask, 0.0)
    return Lists(scores, labels, mask, weight)


def as_flat_lists(
    scores: Tensor, labels: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None
) -> FlatLists:
    """Check the inputs of a metric as `as_lists` does, and drop the padding.

    Examples:
        >>> scores, mask = torch.tensor([[3.0, 1.0], [2.0, 0.0]]), torch.tensor([[True, True], [True, False]])
        >>> lists = as_flat_lists(scores, torch.tensor([[1, 0], [0, 0]]), mask=mask)
        >>> lists.scores.tolist(), lists.number.tolist(), lists.n.tolist()
        ([3.0, 1.0, 2.0], [0, 0, 1], [2, 1])
    """
    _check(scores, labels, mask, None)
    check_qid(scores, qid)
    batch, length = scores.shape[:-1], scores.shape[-1]
    if qid is not None:
        number = numbered(qid)
        count = int(number.max()) + 1 if len(number) else 0
        number = number if mask is None else number[mask]
        n = torch.bincount(number, minlength=count)
        batch = n.shape
    elif mask is None:
        n = torch.full((math.prod(batch),), length, device=scores.device)
        number = torch.arange(len(n), device=scores.device).repeat_interleave(length)
    else:
        n = mask.reshape(math.prod(batch), length).sum(-1)
        number = torch.arange(len(n), device=scores.device).repeat_interleave(n)
    scores = scores.detach()
    real = (scores.reshape(-1), labels.reshape(-1)) if mask is None else (scores[mask], labels[mask])
    raised = _raised(real[0]), _raised(real[1])
    for name, values in zip(("scores", "labels"), raised, strict=True):
        if values.is_floating_point():
            _check_finite(name, values)
    return FlatLists(*raised, number, n, batch)


def _raised(values: Tensor) -> Tensor:
    """Half precision as float32, unsigned integers, of which torch can do little, as int64."""
    if values.dtype in (torch.float16, torch.bfloat16):
        return values.float()
    return values.long() if values.dtype in (torch.uint16, torch.uint32, torch.uint64) else values


def _check_finite(name: str, values: Tensor) -> None:
    if not _all_finite(values):
        raise ValueError(f"{name} must be finite, got {_first_bad(values)}")


def _check_labels(labels: Tensor, given: Tensor) -> None:
    """Check the labels of real items in the precision of the scores, beside those that were given."""
    if not labels.numel():
        return
    lowest, highest = (float(end) for end in labels.aminmax())
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise ValueError(f"labels must be finite, got {_first_bad(labels)}")
    check_nonnegative(lowest)
    # integers that the precision of the scores might make equal
    if labels.dtype == torch.float32 and given.dtype in (torch.int32, torch.int64) and highest >= _EXACT:
        largest = int(given.max())
        if largest > _EXACT:
            raise ValueError(f"labels must be at most {_EXACT} beside scores of float32, got {largest}")


def check_nonnegative(lowest: float) -> None:
    """Check the lowest label of real items.

    Raises:
        ValueError: a negative one.
    """
    if lowest < 0:
        raise ValueError(
            f"labels must be >= 0, got {lowest:g}: leave padding out by mask=, or shift labels that are meant to be"
            " negative"
        )


def _check(scores: Tensor, labels: Tensor, mask: Tensor | None, weight: Tensor | None) -> None:
    given = (("scores", scores), ("labels", labels), ("mask", mask), ("weight", weight))
    for name, tensor in given:
        if not (isinstance(tensor, Tensor) or (tensor is None and name in ("mask", "weight"))):
            raise TypeError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating point, got {scores.dtype}")
    if torch._C._functorch.is_batchedtensor(scores):
        raise TypeError(
            "scores must be a plain tensor, got one under torch.func.vmap; leading axes are a batch as it is"
        )
    if labels.is_complex():
        raise TypeError(f"labels must be real numbers, got {labels.dtype}")
    if scores.ndim == 0:
        raise ValueError("scores must have a list axis, got a 0-D tensor")
    for name, other in given[1:]:
        if other is not None and other.shape != scores.shape:
            raise ValueError(f"{name} must have the shape of scores {tuple(scores.shape)}, got {tuple(other.shape)}")
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean, got {mask.dtype}")
    if mask is None and scores.ndim > 1 and scores.shape[-1] == 1 and scores.numel() > 1:
        raise ValueError(
            f"scores of shape {tuple(scores.shape)} are {scores.numel()} lists of one item, of which nothing can be"
            " ranked: squeeze(-1) scores and labels if their last axis is not the list, or pass mask= if it is"
        )


def check_qid(scores: Tensor, qid: Tensor | None) -> None:
    """Check the ids of flat lists.

    Raises:
        TypeError: a qid that is not of an integer type.
        ValueError: a qid beside batched scores, or of another shape.
    """
    if qid is None:
        return
    if not isinstance(qid, Tensor):
        raise TypeError(f"qid must be a torch tensor, got {type(qid).__name__}")
    if qid.shape != scores.shape:
        raise ValueError(f"qid must have the shape of scores {tuple(scores.shape)}, got {tuple(qid.shape)}")
    if scores.ndim != 1:
        raise ValueError(f"qid goes with flat 1-D input, got scores of shape {tuple(scores.shape)}")
    if qid.is_floating_point() or qid.is_complex() or qid.dtype == torch.bool:
        raise TypeError(f"qid must be of an integer type, got {qid.dtype}")


def _all_finite(values: Tensor) -> bool:
    # a sum is finite only if all its terms are, and quick; only if it is not they are looked at one by one
    return math.isfinite(float(values.detach().sum())) or bool(torch.isfinite(values).all())


def _first_bad(values: Tensor) -> float:
    return float(values[~torch.isfinite(values)][0])


def _pad(
    scores: Tensor, labels: Tensor, mask: Tensor, weight: Tensor | None, qid: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Scatter flat items into ``(lists, longest)``, differentiable in scores; item order is kept."""
    items = scores.shape[0]
    if items == 0:
        empty = scores.reshape(0, 0)
        return empty, labels.reshape(0, 0), mask.reshape(0, 0), None if weight is None else empty
    group = numbered(qid)
    sizes = torch.bincount(group)
    order = torch.argsort(group, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(items, device=qid.device) - torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    shape = (len(sizes), int(sizes.max()))

    def scatter(values: Tensor) -> Tensor:
        return torch.zeros(shape, dtype=values.dtype, device=values.device).index_put((group, place), values)

    return scatter(scores), scatter(labels), scatter(mask), None if weight is None else scatter(weight)


def numbered(qid: Tensor) -> Tensor:
    """The number of each item's list, lists numbered in the order in which their ids first appear.

    Examples:
        >>> numbered(torch.tensor([7, 5, 7, 9])).tolist()
        [0, 1, 0, 2]
    """
    change = torch.ones_like(qid, dtype=torch.bool)
    change[1:] = qid[1:] != qid[:-1]
    begins = change.nonzero().squeeze(-1)
    ids, group = unique(qid[begins])  # of runs of equal ids: few where lists stand together
    run = torch.arange(len(begins), device=qid.device)
    first = torch.full((len(ids),), len(begins), device=qid.device).scatter_reduce(0, group, run, "amin")
    number = torch.argsort(torch.argsort(first))[group]
    return number.repeat_interleave(torch.diff(begins, append=begins.new_tensor([len(qid)])))


def unique(values: Tensor) -> tuple[Tensor, Tensor]:
    """The different values in ascending order, and the place of each value among them.

    Examples:
        >>> [found.tolist() for found in unique(torch.tensor([7, 5, 7]))]
        [[5, 7], [1, 0, 1]]
    """
    if values.device.type != "cpu" or torch._C._functorch.is_functorch_wrapped_tensor(values):
        return torch.unique(values, return_inverse=True)
    # several times faster than torch on a CPU
    found, place = np.unique(values.detach().numpy(), return_inverse=True)
    return torch.from_numpy(found), torch.from_numpy(place)


def buckets(group: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Items of one group after the other as rows, groups of about one size together: at most half is padding.

    Args:
        group: integers >= 0, the group of each item, (items,).

    Yields:
        Places of the items of each group, in their order, a place of the group in padding; where it is none. Both
        (groups, longest), for all groups of a size from 2^k to 2^(k+1) - 1; groups in ascending order.

    Examples:
        >>> [(places.tolist(), mask.tolist()) for places, mask in buckets(torch.tensor([4, 0, 4, 4, 2]))]
        [([[1], [4]], [[True], [True]]), ([[0, 2, 3]], [[True, True, True]])]
    """
    order = torch.argsort(group, stable=True)
    sizes = torch.unique_consecutive(group[order], return_counts=True)[1]
    starts = sizes.cumsum(0) - sizes
    classes = torch.frexp(sizes.double()).exponent
    for size_class in torch.unique(classes).tolist():
        chosen = (classes == size_class).nonzero().squeeze(-1)
        place = torch.arange(int(sizes[chosen].max()), device=group.device)
        mask = place < sizes[chosen, None]
        yield order[starts[chosen, None] + torch.where(mask, place, 0)], mask
