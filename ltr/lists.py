"""Check ranked lists, the inputs of every loss and metric, and bring them into one form.

Every loss takes ``(scores, labels, *, mask=None, weight=None, list_weight=None, qid=None)``, every metric the same
without weights:

* the last axis is the list, leading axes are a batch; a 1-D call is one list;
* ``mask`` is boolean, True where an item is real: padding never changes a value;
* ``qid`` instead gives flat, ragged lists: 1-D inputs, equal ids form a list, in any order;
* ``weight`` weighs the items of a list against each other, ``list_weight`` the lists against each other.

*Weights of rows.* Everything that takes one weight v_i for each row (`sample_weight` of rankers, the key
``data.weight`` of a run) reads it as two weights (`split_weights`). A list q has the weight

    V_q = the mean of v_i over its rows of the lowest label,

which is label 0 in nearly every list, and its rows have the relative weights ``w_i = v_i / V_q`` in it. The mean of a
loss or a statistic L over lists is ``sum over q of V_q L_q(w) / sum over q of V_q``. So a weight that is the same for
all rows of a query weighs the query: 2 counts it twice, and 0 leaves it out. Weights of the relevant rows alone, such
as 1 / propensity of a click, weigh rows and no lists. Rows of weight 0 are left out first. Without queries, the weights
of rows go to the loss as they are.

Labels are relevances of 0 or more. A negative label nearly always marks padding, as in other toolkits, and would be
ranked like an item: metrics refuse it, and so do losses, but for floating point labels of a loss that only compares
labels (`ltr.losses.RankingLoss.signed`): these may be the scores of a teacher. A batch of lists of one item is refused
as well, unless a mask or qid shows that it is meant: a model's output ``(*batch, list, 1)`` needs ``squeeze(-1)``.

Losses take torch tensors. Metrics also take whatever `numpy.asarray` reads as numbers (`as_tensors`), and return
tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ltr.checks import as_array
from ltr.native import Groups
from ltr.torch_hooks import is_transformed, is_under_vmap

Values = Tensor | ArrayLike
"""What metrics take: tensors, and what `as_tensors` makes tensors of."""

_USUAL_SCORES = (torch.float32, torch.float64)
_USUAL_LABELS = (torch.int64, torch.float32, torch.float64)
_EXACT = 2**24  # all integers up to here are exact in float32


@dataclass(frozen=True)
class Lists:
    """Padded lists: every tensor has the shape ``(*batch, list)``, and `mask` is True where an item is real.

    Padding has score 0 and label 0, so that nothing in it, not even NaN, reaches a value or a gradient.
    """

    scores: Tensor
    labels: Tensor
    mask: Tensor
    weight: Tensor | None = None


@dataclass(frozen=True)
class FlatLists:
    """The real items of all lists in flat tensors, whatever the length of each list."""

    scores: Tensor  # floating point, at least float32, (items,)
    labels: Tensor  # as they were given, but half precision raised to float32, (items,)
    number: Tensor  # the number of each item's list, int64, (items,), in any order
    n: Tensor  # the length of each list, int64, (lists,)
    batch: torch.Size  # the shape of one value per list


def as_tensors(scores: Values, **others: Values | None) -> tuple[Any, ...]:
    """Return the inputs of a metric as tensors, in their order, on the device of `scores`; None passes through.

    Types are those of NumPy, but scores that are whole numbers become float64.
    """
    device = scores.device if isinstance(scores, Tensor) else None
    named = {"scores": scores, **others}
    return tuple(x if x is None or isinstance(x, Tensor) else _tensor(name, x, device) for name, x in named.items())


def _tensor(name: str, values: ArrayLike, device: torch.device | None) -> Tensor:
    array = as_array(name, values)
    if array.dtype == object:  # columns of pandas whose numbers may be missing
        array = as_array(name, array.tolist())
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > np.dtype(np.float64).itemsize:
        got = type(values).__name__ if array.ndim == 0 else f"{type(values).__name__} of {array.dtype}"
        raise TypeError(f"{name} must be a tensor, or real numbers as an array or a list, got {got}")
    whole = name == "scores" and array.dtype.kind in "iu" and array.size
    if whole and max(-int(array.min()), int(array.max())) > 2**53:
        raise ValueError("scores must be at most 2**53 where they are whole numbers, which float64 holds exactly")
    kind = np.float64 if name == "scores" and array.dtype.kind != "f" else array.dtype.newbyteorder("=")
    # torch has no tensors on memory that runs backwards or may not be written
    return torch.from_numpy(np.require(array, kind, ["C", "W"])).to(device)


def as_lists(
    scores: Tensor, labels: Tensor, *, mask: Tensor | None = None, weight: Tensor | None = None, signed: bool = False
) -> Lists:
    """Check the inputs of a loss, all ``(*batch, list)``, and fill their padding with zeros.

    Scores of float16 and bfloat16 are raised to float32, labels and weights converted to the type of the scores. Labels
    of a floating point type may be negative if `signed`. Besides the errors of `check_inputs`, ValueError is raised for
    numbers that are not finite in the precision of the scores, and for negative labels or weights.

    Examples:
        >>> lists = as_lists(torch.tensor([3.0, torch.nan]), torch.tensor([1, 0]), mask=torch.tensor([True, False]))
        >>> lists.scores.tolist(), lists.mask.tolist()
        ([3.0, 0.0], [True, False])
    """
    check_inputs(scores, labels, mask=mask, weight=weight)
    scores = _raised(scores)
    # one precision from here on: numbers too large for it become infinite, and are refused
    given, labels = labels.detach(), labels.detach().to(scores.dtype)
    weight = None if weight is None else weight.to(scores.dtype)
    known = scores.detach(), labels, given
    real = known if mask is None else tuple(x[mask] for x in known)
    _check_finite("scores", real[0])
    _check_labels(*real[1:], signed=signed)
    if weight is not None:
        _check_weights("weight", weight if mask is None else weight[mask])
    if mask is None:
        return Lists(scores, labels, torch.ones_like(scores, dtype=torch.bool), weight)
    weight = None if weight is None else weight.masked_fill(~mask, 0.0)
    return Lists(scores.masked_fill(~mask, 0.0), labels.masked_fill(~mask, 0.0), mask, weight)


def as_flat_lists(
    scores: Tensor, labels: Tensor, *, mask: Tensor | None = None, qid: Tensor | None = None
) -> FlatLists:
    """Check the inputs of a metric as `as_lists` does, and drop the padding."""
    check_inputs(scores, labels, mask=mask)
    check_qid(scores, qid)
    batch, length = scores.shape[:-1], scores.shape[-1]
    if qid is not None:
        number = numbered(qid)
        count = _count(number)
        number = number if mask is None else number[mask]
        n = torch.bincount(number, minlength=count)
        batch = n.shape
    elif mask is None:
        n = torch.full((math.prod(batch),), length, device=scores.device)
        number = torch.arange(len(n), device=scores.device)[:, None].expand(-1, length).reshape(-1)
    else:
        n = mask.reshape(math.prod(batch), length).sum(-1)
        number = torch.arange(len(n), device=scores.device).repeat_interleave(n)
    real = [_raised(x.reshape(-1) if mask is None else x[mask]) for x in (scores.detach(), labels)]
    for name, values in zip(("scores", "labels"), real, strict=True):
        if values.is_floating_point():
            _check_finite(name, values)
    return FlatLists(real[0], real[1], number, n, batch)


def _raised(values: Tensor) -> Tensor:
    """Return half precision as float32, and unsigned integers, which torch hardly supports, as int64."""
    if values.dtype in (torch.float16, torch.bfloat16):
        return values.float()
    return values.long() if values.dtype in (torch.uint16, torch.uint32, torch.uint64) else values


def _check_finite(name: str, values: Tensor) -> None:
    if not _all_finite(values):
        raise ValueError(f"{name} must be finite, got {float(values[~torch.isfinite(values)][0])}")


def _check_weights(name: str, weights: Tensor) -> None:
    if not (_all_finite(weights) and bool((weights >= 0).all())):
        bad = weights[~(torch.isfinite(weights) & (weights >= 0))]
        raise ValueError(f"{name} must be finite and nonnegative, got {float(bad[0]):g}")


def _check_labels(labels: Tensor, given: Tensor, *, signed: bool) -> None:
    """Check the labels of real items, converted to the type of the scores, and as they were given."""
    if not labels.numel():
        return
    lowest, highest = (float(end) for end in labels.aminmax())
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        _check_finite("labels", labels)
    if not (signed and given.is_floating_point()):
        check_nonnegative(lowest, remedy="give a teacher's scores as floating point" if signed else None)
    # large integers, which may become equal in the type of the scores
    if labels.dtype == torch.float32 and given.dtype in (torch.int32, torch.int64) and highest >= _EXACT:
        largest = int(given.max())
        if largest > _EXACT:
            raise ValueError(f"labels must be at most {_EXACT} beside scores of float32, got {largest}")


def check_nonnegative(lowest: float, remedy: str | None = None) -> None:
    """Raise ValueError if the lowest label of all real items is negative; the message ends with the remedy."""
    if lowest < 0:
        remedy = remedy or "shift labels that are meant to be negative"
        raise ValueError(f"labels must be >= 0, got {lowest:g}: mark padding by mask=, or {remedy}")


def check_inputs(scores: Tensor, labels: Tensor, mask: Tensor | None = None, weight: Tensor | None = None) -> None:
    """Raise TypeError or ValueError for inputs of the wrong type or shape, whatever numbers they contain."""
    given = (("scores", scores), ("labels", labels), ("mask", mask), ("weight", weight))
    for name, tensor in given:
        if not (isinstance(tensor, Tensor) or (tensor is None and name in ("mask", "weight"))):
            raise TypeError(f"{name} must be a torch tensor, got {type(tensor).__name__}")
    if not scores.is_floating_point():
        raise TypeError(f"scores must be floating point, got {scores.dtype}")
    if is_under_vmap(scores, labels, mask, weight):
        got = "lanes under torch.func.vmap; use leading axes for a batch"
        raise TypeError(f"scores and labels must be plain tensors, got {got}")
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
        remedy = "squeeze(-1) scores and labels if their last axis is not the list, or pass mask= if it is"
        lists = f"scores of shape {tuple(scores.shape)} are {scores.numel()} lists of one item"
        raise ValueError(f"{lists}, which leave nothing to rank: {remedy}")


def are_simple(scores: Tensor, labels: Tensor) -> bool:
    """Return whether `check_inputs` accepts scores and labels because they are of the usual types: a quick answer."""
    return (
        type(scores) is Tensor
        and type(labels) is Tensor
        and scores.dtype in _USUAL_SCORES
        and labels.dtype in _USUAL_LABELS
        and labels.shape == (shape := scores.shape)
        and len(shape) > 0
        and shape[-1] > 1
        and not is_transformed()
    )


def check_qid(scores: Tensor, qid: Tensor | None) -> None:
    """Raise TypeError or ValueError for ids of flat lists that are no integers, or not one for each of the scores."""
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


def weights_of_lists(list_weight: Tensor, scores: Tensor, qid: Tensor | None) -> Tensor:
    """Check the weights of lists, and return one for each list: ``(*batch,)``, or ``(lists,)`` with qid.

    With qid, those given are of each item's list, ``(items,)``, and those returned in the order of the first items.
    """
    if not isinstance(list_weight, Tensor):
        raise TypeError(f"list_weight must be a torch tensor, got {type(list_weight).__name__}")
    shape = scores.shape[:-1] if qid is None else scores.shape
    if list_weight.shape != shape:
        rule = "one weight for each list" if qid is None else "for each item the weight of its list"
        raise ValueError(f"list_weight must have {rule}, {tuple(shape)}, got {tuple(list_weight.shape)}")
    weights = list_weight.detach()
    if not weights.is_floating_point():
        weights = weights.to(scores.dtype)
    _check_weights("list_weight", weights)
    if qid is None:
        return weights
    number = numbered(qid)
    of_lists = weights.new_zeros(_count(number)).index_copy(0, number, weights)
    different = (of_lists[number] != weights).nonzero().squeeze(-1)
    if len(different):
        at = different[0]
        both = f"{float(of_lists[number[at]]):g} and {float(weights[at]):g}"
        raise ValueError(f"list_weight must be the same for all items of a list, got {both} in list {int(qid[at])}")
    return of_lists


def split_weights(weight: Tensor, number: Tensor, labels: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return the weight of each list, and the weights of its rows relative to it; see the top of this module.

    Given are weight >= 0, number of the list, from 0, and label of each row, (rows,). A list without a weight above 0
    has the weight 0; relative weights are None where they are 1 for all rows of a positive weight.

    Examples:
        >>> number, labels = torch.tensor([0, 0, 1, 1]), torch.tensor([1, 0, 1, 0])
        >>> split_weights(torch.tensor([2.0, 2.0, 6.0, 3.0]), number, labels)
        (tensor([2., 3.]), tensor([1., 1., 2., 1.]))
    """
    lists = _count(number)
    labels = labels.to(weight.dtype).masked_fill(weight == 0, math.inf)
    lowest = labels.new_full((lists,), math.inf).scatter_reduce(0, number, labels, "amin")
    rows = ((weight > 0) & (labels == lowest[number])).nonzero().squeeze(-1)
    at, of_rows = number[rows], weight[rows]
    largest = weight.new_zeros(lists).scatter_reduce(0, at, of_rows, "amax")
    # sums of large weights leave the floating point range; and the mean of equal weights is each of them exactly
    shares = weight.new_zeros(lists).index_add(0, at, of_rows / largest[at])
    mean = largest * torch.where(largest > 0, shares / torch.bincount(at, minlength=lists), 0.0)
    relative = weight / mean.where(mean > 0, 1.0)[number]
    return mean, None if bool(((relative == 1) | (weight == 0)).all()) else relative


def weights_by_row(
    weights: NDArray[np.float64], lists: NDArray[Any], labels: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Return for each row the weight of its list, and its own relative to that: `split_weights` of arrays, (rows,)."""
    number = np.unique(lists, return_inverse=True)[1]
    of_lists, relative = split_weights(*map(torch.from_numpy, (weights, number, labels)))
    return of_lists.numpy()[number], None if relative is None else relative.numpy()


def _all_finite(values: Tensor) -> bool:
    # a finite sum has finite terms and is quick to compute; only another one asks for a look at each term
    return math.isfinite(float(values.detach().sum())) or bool(torch.isfinite(values).all())


def _count(number: Tensor) -> int:
    """Return the number of lists of some items, numbered from 0."""
    return int(number.max()) + 1 if len(number) else 0


def numbered(qid: Tensor) -> Tensor:
    """Return the number of each item's list; lists are numbered in the order in which their ids first appear."""
    if qid.device.type == "cpu" and not is_transformed():
        number = torch.empty(len(qid), dtype=torch.int64)
        Groups(qid.detach().long().contiguous().numpy()).write_number(number.numpy())
        return number
    change = torch.ones_like(qid, dtype=torch.bool)
    change[1:] = qid[1:] != qid[:-1]
    begins = change.nonzero().squeeze(-1)
    ids, group = unique(qid[begins])  # one id per run of equal ids, so few where the items of a list follow each other
    run = torch.arange(len(begins), device=qid.device)
    first = torch.full((len(ids),), len(begins), device=qid.device).scatter_reduce(0, group, run, "amin")
    number = torch.argsort(torch.argsort(first))[group]
    return number.repeat_interleave(torch.diff(begins, append=begins.new_tensor([len(qid)])))


def unique(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return the distinct values in ascending order, and the place of each value among them."""
    if values.device.type != "cpu" or is_transformed():
        return torch.unique(values, return_inverse=True)
    # several times faster than torch on a CPU
    found, place = np.unique(values.detach().numpy(), return_inverse=True)
    return torch.from_numpy(found), torch.from_numpy(place)


def buckets(group: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the items of groups as rows, groups of similar size together, so that at most half of it is padding.

    For the groups of 2^k to 2^(k+1) - 1 items, ascending, yield two arrays of shape (groups, longest): the places of
    the items of each group, in their order, padded with places of the same group; and a mask, False in padding.

    Examples:
        >>> [(places.tolist(), mask.tolist()) for places, mask in buckets(torch.tensor([4, 0, 4, 4, 2]))]
        [([[1], [4]], [[True], [True]]), ([[0, 2, 3]], [[True, True, True]])]
    """
    order = torch.argsort(group, stable=True)
    sizes = torch.unique_consecutive(group[order], return_counts=True)[1]
    starts = sizes.cumsum(0) - sizes
    classes = torch.frexp(sizes.double()).exponent
    for size_class in torch.unique(classes):
        chosen = (classes == size_class).nonzero().squeeze(-1)
        place = torch.arange(int(sizes[chosen].max()), device=group.device)
        mask = place < sizes[chosen, None]
        yield order[starts[chosen, None] + torch.where(mask, place, 0)], mask
