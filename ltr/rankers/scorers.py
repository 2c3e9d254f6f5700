"""Scorers: modules that give every item of a list one real score.

A scorer maps features of shape ``(*batch, list, d)`` to scores of shape ``(*batch, list)``. Parameters are float64
by default, in which a convex fit reaches its optimum to many digits; ``scorer.float()`` makes them float32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ltr.checks import as_float, as_numbers, as_sequence, check_matrix, check_whole

__all__ = ["LinearScorer", "MLPScorer", "Standardize"]


class LinearScorer(nn.Module):
    """A linear score ``f(x) = w·x + b``, which starts at zero.

    Args:
        d: number of features, at least 1.
        bias: whether there is a b. Pairwise losses ignore it; the pointwise logistic loss needs it.

    Raises:
        ValueError: d below 1.

    Examples:
        >>> scorer = LinearScorer(2)
        >>> _ = scorer.load_state_dict({"weight": torch.tensor([1.0, -1.0]), "bias": torch.tensor(0.5)})
        >>> scorer(torch.tensor([[3.0, 1.0], [0.0, 2.0]])).tolist()
        [2.5, -1.5]
    """

    bias: nn.Parameter | None

    def __init__(self, d: int, bias: bool = True) -> None:
        super().__init__()
        self.d = _width("d", d)
        self.weight = nn.Parameter(torch.zeros(self.d, dtype=torch.float64))
        self.register_parameter("bias", nn.Parameter(torch.zeros((), dtype=torch.float64)) if bias else None)

    def forward(self, features: Tensor) -> Tensor:
        """Return scores ``(*batch, list)`` for features ``(*batch, list, d)``."""
        _check_features(features, self.d)
        scores = features.to(self.weight.dtype) @ self.weight
        return scores if self.bias is None else scores + self.bias

    def extra_repr(self) -> str:
        """Return the options, for torch's own printing of modules."""
        return f"d={self.d}, bias={self.bias is not None}"


class MLPScorer(nn.Module):
    """A multilayer perceptron with SiLU activations and one output.

    The activation is smooth, so that the line search of L-BFGS does not stop at kinks.

    Args:
        d: number of features, at least 1.
        hidden: widths of the hidden layers, the one next to the input first.
        dropout: share of hidden units dropped in training, in [0, 1).

    Raises:
        ValueError: a width below 1 or a dropout outside [0, 1).

    Examples:
        >>> MLPScorer(5, hidden=(8,))(torch.zeros(3, 4, 5)).shape
        torch.Size([3, 4])
    """

    def __init__(self, d: int, hidden: Sequence[int] = (64, 32), dropout: float = 0.0) -> None:
        super().__init__()
        self.d = _width("d", d)
        if not 0 <= as_float(dropout) < 1:
            raise ValueError(f"dropout must be in [0, 1), got {dropout!r}")
        layers: list[nn.Module] = []
        width = self.d
        for size in as_sequence("hidden", hidden, "integers >= 1"):
            layers += [nn.Linear(width, _width("hidden", size), dtype=torch.float64), nn.SiLU()]
            if dropout > 0:
                layers.append(nn.Dropout(dropout))
            width = size
        self.layers = nn.Sequential(*layers)
        self.output = nn.Linear(width, 1, dtype=torch.float64)

    def forward(self, features: Tensor) -> Tensor:
        """Return scores ``(*batch, list)`` for features ``(*batch, list, d)``."""
        _check_features(features, self.d)
        scores: Tensor = self.output(self.layers(features.to(self.output.weight.dtype)))
        return scores.squeeze(-1)


class Standardize(nn.Module):
    """Standardisation ``(x - mean) / scale``, learned on one set of observations and saved with the model.

    A constant column gets its own value as mean and 1 as scale: it becomes exactly 0.

    Args:
        d: number of features, at least 1. Mean and scale are 0 and 1 until they are learned or loaded.

    Examples:
        >>> standardize = Standardize.fit([[0.0, 7.0], [2.0, 7.0]])
        >>> standardize(torch.tensor([[4.0, 7.0]])).tolist()
        [[3.0, 0.0]]
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, d: int) -> None:
        super().__init__()
        self.d = _width("d", d)
        self.register_buffer("mean", torch.zeros(self.d, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(self.d, dtype=torch.float64))

    @classmethod
    def fit(cls, X: ArrayLike) -> Standardize:
        """Learn the mean and the population standard deviation of each column.

        Args:
            X: observations, (n, d), finite.

        Raises:
            ValueError: X of another shape, or not finite.
        """
        features = as_numbers("X", X)
        check_matrix("X", features)
        # in units of the largest entry neither the mean of huge nor the variance of tiny columns leaves float64
        size = np.abs(features).max(axis=0)
        unit = np.where(size > 0, size, 1.0)
        constant = features.max(axis=0) == features.min(axis=0)
        scale = (features / unit).std(axis=0) * unit
        standardize = cls(features.shape[1])
        standardize.mean.copy_(torch.from_numpy(np.where(constant, features[0], (features / unit).mean(axis=0) * unit)))
        standardize.scale.copy_(torch.from_numpy(np.where(constant | (scale == 0), 1.0, scale)))
        return standardize

    def forward(self, features: Tensor) -> Tensor:
        """Return standardised features, with the shape and device given and the dtype of the buffers."""
        _check_features(features, self.d)
        return (features.to(self.mean.dtype) - self.mean) / self.scale

    def extra_repr(self) -> str:
        """Return the options, for torch's own printing of modules."""
        return f"d={self.d}"


def _width(name: str, value: int) -> int:
    check_whole(name, value, 1)
    return int(value)


def _check_features(features: Tensor, d: int) -> None:
    if features.ndim < 1 or features.shape[-1] != d:
        raise ValueError(f"features must have {d} columns on the last axis, got shape {tuple(features.shape)}")
