"""Lists sorted once: what every metric is computed from.

Sorting brings each list into the pessimistic order (score descending, a tied item of lower label first) and
marks the tie groups. Every treatment of ties follows from these marks, for a weight b[position] of each position:

* ``resolved``: each item has the weight of its own position: tied negatives stand above tied positives;
* ``optimistic``: the same with each tie group turned over: tied positives stand above tied negatives;
* ``average``: each item has the mean weight of its tie group: the expectation over a random order of ties;
* ``subrank``: each item has the weight of the last position of its tie group: it beats only what scores less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ltr.lists import as_lists
from ltr.ranks import order_items

__all__ = ["RankedLists", "Ties", "check_ties", "rank_lists"]

Ties = Literal["resolved", "subrank", "average", "optimistic"]
TIES: tuple[Ties, ...] = ("resolved", "subrank", "average", "optimistic")


def check_ties(ties: str) -> None:
    """Check the name of a treatment of ties.

    Raises:
        ValueError: an unknown one.
    """
    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}, got {ties!r}")


@dataclass(frozen=True)
class RankedLists:
    """Sorted lists, each tensor of shape ``(lists, longest)``, positions counting from 0 at the top.

    Attributes:
        labels: float64 labels in pessimistic order, 0 in padding.
        real: True where the position holds an item.
        start: first position of the tie group at each position.
        end: last position of the tie group at each position.
        batch: the batch shape that values take.
    """

    labels: Tensor
    real: Tensor
    start: Tensor
    end: Tensor
    batch: torch.Size

    @property
    def n(self) -> Tensor:
        """Items of each list, int64 of shape ``(lists,)``."""
        return self.real.sum(-1)

    @property
    def position(self) -> Tensor:
        """Positions 0, 1, ... of shape ``(longest,)``."""
        return torch.arange(self.labels.shape[-1], device=self.labels.device)

    def labels_under(self, ties: Ties) -> Tensor:
        """The labels in the order that `ties` supposes."""
        if ties != "optimistic":
            return self.labels
        return self.labels.gather(-1, self.start + self.end - self.position)

    def group_sum(self, values: Tensor) -> Tensor:
        """At each position, the sum of `values` over its tie group."""
        return torch.zeros_like(values).scatter_add(-1, self.start, values).gather(-1, self.start)

    def weights_under(self, ties: Ties, weights: Tensor) -> Tensor:
        """The weight that the item at each position receives, given the weight of each position."""
        if ties == "subrank":
            return weights.gather(-1, self.end)
        if ties == "average":
            return self.group_sum(weights) / (self.end - self.start + 1)
        return weights

    def total(self, gains: Tensor, weights: Tensor, ties: Ties) -> Tensor:
        """``sum of gain * weight`` of each list; `gains` in the order that `ties` supposes."""
        return (gains * self.weights_under(ties, weights)).sum(-1)

    def reshape(self, values: Tensor) -> Tensor:
        """Per-list values in the batch shape: 0-D for a single list."""
        return values.reshape(self.batch)


def rank_lists(
    scores: Tensor,
    labels: Tensor,
    *,
    mask: Tensor | None = None,
    qid: Tensor | None = None,
) -> RankedLists:
    """Check the inputs of a metric and sort its lists.

    Half-precision scores are compared as they are; labels must be nonnegative.

    Raises:
        ValueError: a negative label, and what `ltr.lists.as_lists` raises.
    """
    lists = as_lists(scores.detach(), labels, mask=mask, qid=qid)
    if bool((lists.labels < 0).any()):
        raise ValueError(f"labels must be >= 0, got {float(lists.labels.min())!r}")
    order = order_items(lists, -lists.labels)
    length = lists.scores.shape[-1]
    shape = (-1, length) if length else (lists.scores[..., :0].sum(-1).numel(), 0)
    ordered_scores = lists.scores.gather(-1, order).reshape(shape)
    ordered_labels = lists.labels.gather(-1, order).reshape(shape).double()
    real = lists.mask.gather(-1, order).reshape(shape)

    position = torch.arange(length, device=real.device).expand_as(real)
    fresh = torch.ones_like(real)  # whether a tie group begins here; padding forms groups of one
    if length > 1:
        fresh[:, 1:] = (ordered_scores[:, 1:] != ordered_scores[:, :-1]) | ~real[:, 1:]
    start = torch.where(fresh, position, 0).cummax(-1).values if length else position
    last = torch.ones_like(real)
    last[:, :-1] = fresh[:, 1:]
    end = torch.where(last, position, length).flip(-1).cummin(-1).values.flip(-1) if length else position
    return RankedLists(ordered_labels, real, start, end, lists.scores.shape[:-1])
