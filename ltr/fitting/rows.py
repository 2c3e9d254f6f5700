"""The observations of a fit: on the device, or left where they are and brought there chunk by chunk."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ltr.checks import as_array, as_numbers

__all__ = ["Rows", "plain"]

_CHECKED = 1 << 16  # rows that are looked at together


class Rows:
    """Observations X, (n, d), finite.

    Args:
        X: of any real type; with `resident` False an array or tensor is not copied, so that a memory-mapped one
            (``numpy.load(..., mmap_mode="r")``) is read from the disk whenever it is needed.
        dtype: in which they are asked for.
        device: to which they are brought.
        resident: hold them all on the device.

    Attributes:
        ends: the first and the last one.

    Raises:
        ValueError: anything but a matrix of finite numbers with a row and a column.
    """

    def __init__(self, X: ArrayLike, *, dtype: torch.dtype, device: torch.device, resident: bool) -> None:
        self._dtype, self._device = dtype, device
        source: NDArray[np.generic] = as_array("X", plain(X))
        if source.dtype.kind not in "fiub":
            source = as_numbers("X", source)
        self._source: NDArray[np.generic] | Tensor = _checked(source)
        self._rows = len(source)
        self.ends = np.concatenate([source[:1], source[-1:]])
        if resident:
            self._source = self._copied(source)

    def __len__(self) -> int:
        return self._rows

    def take(self, rows: slice | NDArray[np.int64]) -> Tensor:
        """Some rows, on the device."""
        if isinstance(self._source, Tensor):
            return self._source[rows if isinstance(rows, slice) else torch.from_numpy(rows).to(self._device)]
        return self._copied(self._source[rows])

    def _copied(self, rows: NDArray[np.generic]) -> Tensor:
        # into memory of torch's own, whose alignment, which sums may depend on, is the same in every process
        return torch.tensor(rows, dtype=self._dtype).to(self._device)


def plain(values: ArrayLike) -> ArrayLike:
    """A tensor as an array, anything else as it is."""
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values


def _checked(source: NDArray[np.generic]) -> NDArray[np.generic]:
    if source.ndim != 2 or source.shape[0] < 1 or source.shape[1] < 1:
        raise ValueError(f"X must be 2-D with at least one row and one column, got shape {source.shape}")
    for begin in range(0, len(source), _CHECKED):
        part = np.asarray(source[begin : begin + _CHECKED], dtype=np.float64)
        if not np.isfinite(part).all():
            row, column = np.argwhere(~np.isfinite(part))[0]
            raise ValueError(f"X must be finite, got {part[row, column]} at row {begin + row}, column {column}")
    return source
