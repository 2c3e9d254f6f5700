"""Sums and products over the parts of a flat tensor, each part by itself: what stands beside it never matters."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["offsets", "positions_within", "running_product", "segment_sum"]

_BLOCK = 128


def offsets(lengths: Tensor) -> Tensor:
    """Where each segment begins.

    Examples:
        >>> offsets(torch.tensor([2, 0, 3])).tolist()
        [0, 2, 2]
    """
    return lengths.cumsum(0) - lengths


def positions_within(lengths: Tensor) -> Tensor:
    """0, 1, ... within each segment.

    Examples:
        >>> positions_within(torch.tensor([2, 0, 3])).tolist()
        [0, 1, 0, 1, 2]
    """
    everywhere = torch.arange(int(lengths.sum()), device=lengths.device)
    return everywhere - offsets(lengths).repeat_interleave(lengths)


def segment_sum(values: Tensor, lengths: Tensor) -> Tensor:
    """The sum of each segment, 0 of an empty one.

    Integers are exact. Floats are summed in blocks and blocks of blocks, counted from the segment's beginning: the
    error stays near one rounding for any length, and the result is the same bits whatever other segments there are.

    Args:
        values: all segments one after the other, (items,).
        lengths: int64, (segments,).

    Examples:
        >>> segment_sum(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([2, 0, 1])).tolist()
        [3.0, 0.0, 4.0]
    """
    if not values.is_floating_point():
        total = torch.cat((values.new_zeros(1), values.cumsum(0)))
        ends = lengths.cumsum(0)
        return total[ends] - total[ends - lengths]
    while lengths.numel() and int(lengths.max()) > _BLOCK:
        blocks = (lengths + _BLOCK - 1) // _BLOCK
        sizes = torch.full((int(blocks.sum()),), _BLOCK, device=values.device)
        some = blocks > 0
        sizes[blocks.cumsum(0)[some] - 1] = (lengths - (blocks - 1) * _BLOCK)[some]
        values, lengths = torch.segment_reduce(values, "sum", lengths=sizes, unsafe=True), blocks
    return torch.segment_reduce(values, "sum", lengths=lengths, unsafe=True)


def running_product(factors: Tensor, lengths: Tensor) -> Tensor:
    """The product of each segment's factors up to and including each place.

    Examples:
        >>> running_product(torch.tensor([2.0, 3.0, 5.0, 7.0]), torch.tensor([3, 1])).tolist()
        [2.0, 6.0, 30.0, 7.0]
    """
    place = positions_within(lengths)
    step, longest = 1, int(lengths.max()) if lengths.numel() else 0
    while step < longest:
        before = torch.where(place >= step, factors.roll(step), 1.0)
        factors, step = factors * before, 2 * step
    return factors
