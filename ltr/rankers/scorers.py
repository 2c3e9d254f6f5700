"""Scorers, modules that give every item of a list one real score, and scalings of features before them.

A scorer maps features of shape ``(*batch, list, d)`` to scores of shape ``(*batch, list)``. Parameters are float64
by default, in which a convex fit reaches its optimum to many digits; ``scorer.float()`` makes them float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ltr.checks import as_float, as_matrix, as_sequence, check_whole, doubles, pieces

__all__ = ["AttentionScorer", "LinearScorer", "MLPScorer", "Quantiles", "Standardize", "TwoStageScorer"]

FloatArray = NDArray[np.float64]

_COLUMNS = 16  # read at a time, which are a line of a processor's cache
_KNOTS = 128  # of `Quantiles`, per feature


class LinearScorer(nn.Module):
    """A linear score ``f(x) = w·x + b`` of d features, which starts at zero; pairwise losses ignore the bias."""

    if TYPE_CHECKING:  # torch.jit.script reads annotations of classes, but not as texts
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


class MLPScorer(nn.Module):
    """A multilayer perceptron of hidden layers of these widths, with SiLU activations and one output.

    The activation is smooth, so that the line search of L-BFGS does not stop at kinks. In training a share `dropout` of
    hidden units is dropped; with `layer_norm` the values of each layer are normalised before the activation.
    """

    def __init__(
        self, d: int, hidden: Sequence[int] = (64, 32), dropout: float = 0.0, layer_norm: bool = False
    ) -> None:
        super().__init__()
        self.d = _width("d", d)
        self.layers, width = _hidden_layers(self.d, hidden, dropout, layer_norm=layer_norm)
        self.output = nn.Linear(width, 1, dtype=torch.float64)

    def forward(self, features: Tensor) -> Tensor:
        """Return scores ``(*batch, list)`` for features ``(*batch, list, d)``."""
        _check_features(features, self.d)
        scores: Tensor = self.output(self.layers(features.to(self.output.weight.dtype)))
        return scores.squeeze(-1)


def _hidden_layers(
    d: int, hidden: Sequence[int], dropout: float = 0.0, *, layer_norm: bool = False
) -> tuple[nn.Sequential, int]:
    layers: list[nn.Module] = []
    width = d
    for size in as_sequence("hidden", hidden, "integers >= 1"):
        layers.append(nn.Linear(width, _width("hidden", size), dtype=torch.float64))
        layers += [nn.LayerNorm(size, dtype=torch.float64)] if layer_norm else []
        layers += [nn.SiLU(), *_dropouts(dropout)]
        width = size
    return nn.Sequential(*layers), width


class AttentionScorer(nn.Module):
    """A transformer encoder over the items of a list without positions: a score depends on the whole list.

    Items get a vector each from linear layers of the widths `hidden` with SiLU activations. Then come `blocks` of
    self-attention, with `heads` that divide the last width, and of two linear layers, with `dropout`; each adds to the
    vectors what it makes of them after layer normalisation. Scores are linear in the last vectors.

    Source: Pobrotyn, Bartczak, Synowiec, Bialobrzeski & Bojar, *Context-Aware Learning to Rank with Self-Attention*
    (2020).
    """

    of_lists = True

    def __init__(
        self, d: int, hidden: Sequence[int] = (64,), blocks: int = 2, heads: int = 4, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.d = _width("d", d)
        self.layers, width = _hidden_layers(self.d, hidden)
        if width % _width("heads", heads):
            raise ValueError(f"heads must divide the width of the blocks, {width}, got {heads}")
        self.blocks = nn.ModuleList(_Block(width, heads, dropout) for _ in range(_width("blocks", blocks)))
        self.norm = nn.LayerNorm(width, dtype=torch.float64)
        self.output = nn.Linear(width, 1, dtype=torch.float64)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return scores ``(*batch, list)`` for features ``(*batch, list, d)``.

        `mask` is True where an item is real, all items by default; the score of padding is 0.
        """
        _check_features(features, self.d)
        length = features.shape[-2]
        if mask is None:
            mask = torch.ones(features.shape[:-1], dtype=torch.bool, device=features.device)
        real = mask.reshape(-1, length)
        # a list of padding alone looks at itself, because a softmax over nothing is NaN
        seen = (real | ~real.any(-1, keepdim=True))[:, None, None, :]
        hidden = self.layers(features.to(self.output.weight.dtype).reshape(-1, length, self.d))
        for block in self.blocks:
            hidden = block(hidden, seen)
        scores: Tensor = self.output(self.norm(hidden)).squeeze(-1).masked_fill(~real, 0.0)
        return scores.reshape(features.shape[:-1])


class _Block(nn.Module):
    """Self-attention and two linear layers, each on normalised values and added to what was there."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width, dtype=torch.float64) for _ in range(2))
        self.attend = nn.Linear(width, 3 * width, dtype=torch.float64)
        self.join = nn.Linear(width, width, dtype=torch.float64)
        self.wide = nn.Linear(width, 2 * width, dtype=torch.float64)
        self.narrow = nn.Linear(2 * width, width, dtype=torch.float64)
        self.drop = nn.Sequential(*_dropouts(dropout))

    def forward(self, hidden: Tensor, seen: Tensor) -> Tensor:
        """Return the vectors of the items, (lists, items, width); `seen` are the items that others look at."""
        lists, items, width = hidden.shape
        parts = self.attend(self.norms[0](hidden)).reshape(lists, items, 3, self.heads, width // self.heads)
        parts = parts.permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], attn_mask=seen)
        hidden = hidden + self.drop(self.join(found.transpose(1, 2).reshape(lists, items, width)))
        found = self.narrow(self.drop(F.silu(self.wide(self.norms[1](hidden)))))
        return hidden + self.drop(found)


class TwoStageScorer(nn.Module):
    """Scores of a base, replaced at the top of a list by higher ones in the order of a correction.

    `ltr.rankers.TwoStageRanker` has the formula. The base takes so many of the columns, and `exact` scores items;
    `base_weight` times the base score less `base_center` is added. The top begins at `threshold`; None where that is
    the `top_k`-th largest base score of each list.
    """

    if TYPE_CHECKING:
        columns: Tensor | None

    def __init__(
        self,
        base: nn.Module,
        exact: nn.Module,
        columns: NDArray[np.int64] | None,
        base_weight: float,
        base_center: float,
        threshold: float | None,
        top_k: int | None,
    ) -> None:
        super().__init__()
        self.base, self.exact = base, exact
        self.register_buffer("columns", None if columns is None else torch.from_numpy(columns))
        self.base_weight, self.base_center = float(base_weight), float(base_center)
        self.by_list, self.threshold = threshold is None, math.inf if threshold is None else float(threshold)
        self.top_k = 0 if top_k is None else int(top_k)

    def forward(self, features: Tensor) -> Tensor:
        """Return scores ``(*batch, list)`` for features ``(*batch, list, d)``."""
        columns = self.columns
        scores: Tensor = self.base(features if columns is None else features.index_select(-1, columns))
        exact: Tensor = self.exact(features) + self.base_weight * (scores - self.base_center)
        cuts = torch.full_like(scores, self.threshold)
        if self.by_list:
            cuts = torch.full_like(scores, -math.inf)
            if self.top_k > 0:  # a list that is not longer is at the top as a whole
                falling = F.pad(scores.sort(-1, descending=True)[0], (0, self.top_k + 1), value=-math.inf)
                last, next_one = falling[..., self.top_k - 1, None], falling[..., self.top_k, None]
                cuts = torch.where(torch.isinf(next_one), next_one, last).expand_as(scores)
        top = scores >= cuts
        if self.by_list:
            exact = exact - (exact * top).sum(-1, keepdim=True) / top.sum(-1, keepdim=True)
        lift = torch.where(torch.isinf(cuts), 0.0, cuts)
        above = torch.where(exact >= 0, 2.0 + exact, 1.0 + 1.0 / (1.0 - exact.clamp(max=0.0)))
        return torch.where(top, lift + above, scores)


class Standardize(nn.Module):
    """Standardisation ``(x - mean) / scale`` of d features, learned on one set of observations.

    A constant column gets its own value as mean and 1 as scale: it becomes exactly 0.
    """

    if TYPE_CHECKING:
        mean: Tensor
        scale: Tensor

    def __init__(self, d: int) -> None:
        super().__init__()
        self.d = _width("d", d)
        self.register_buffer("mean", torch.zeros(self.d, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(self.d, dtype=torch.float64))

    @classmethod
    def fit(
        cls, X: ArrayLike, weight: FloatArray | None = None, *, rows: NDArray[np.int64] | None = None
    ) -> Standardize:
        """Learn the mean and the population standard deviation of each column of X, (n, d), from some or all rows.

        `weight` has the weights of these rows, > 0.
        """
        features = as_matrix("X", X, rows=1)
        n, d = len(features) if rows is None else len(rows), features.shape[1]

        def part(piece: slice) -> FloatArray:
            return doubles(features[piece if rows is None else rows[piece]])

        low, high = np.full(d, np.inf), np.full(d, -np.inf)
        for values in map(part, pieces(n)):
            low, high = np.minimum(low, values.min(axis=0)), np.maximum(high, values.max(axis=0))
        # in units of the largest entry neither the mean of huge nor the variance of tiny columns leaves float64
        size = np.maximum(np.abs(low), np.abs(high))
        unit, constant = np.where(size > 0, size, 1.0), high == low

        def average(of: Callable[[FloatArray], FloatArray]) -> FloatArray:
            total, count = np.zeros((2, d))
            for piece in pieces(n):
                values = of(part(piece) / unit)
                given = np.ones(len(values)) if weight is None else weight[piece]
                total += (values if weight is None else values * given[:, None]).sum(axis=0)
                count += np.broadcast_to(given[:, None], values.shape).sum(axis=0)
            return total / count

        own = average(lambda values: values)
        mean, scale = own * unit, np.sqrt(average(lambda values: (values - own) ** 2)) * unit
        standardize = cls(d)
        standardize.mean.copy_(torch.from_numpy(np.where(constant, low, mean)))
        standardize.scale.copy_(torch.from_numpy(np.where(constant | (scale == 0), 1.0, scale)))
        return standardize

    def forward(self, features: Tensor) -> Tensor:
        """Return standardised features, with the shape and device given and the dtype of the buffers."""
        _check_features(features, self.d)
        return (features.to(self.mean.dtype) - self.mean) / self.scale


class Quantiles(nn.Module):
    """Each column moved to the place of its values in a normal distribution, learned on one set of observations.

    A value becomes the normal quantile of the share of observations below it, half of those equal to it included; then
    the column is standardised. It is linear between at most so many `knots`, and constant beyond them; a constant
    column is 0.

    Examples:
        >>> quantiles = Quantiles.fit([[1.0], [10.0], [1e9]])
        >>> quantiles(torch.tensor([[10.0], [1e9], [1e10]])).round(decimals=4).tolist()
        [[0.0], [1.2247], [1.2247]]
    """

    if TYPE_CHECKING:
        knots: Tensor
        values: Tensor

    def __init__(self, d: int, knots: int = _KNOTS) -> None:
        super().__init__()
        self.d = _width("d", d)
        if knots < 2:
            raise ValueError(f"knots must be an integer >= 2, got {knots!r}")
        self.register_buffer("knots", torch.zeros(self.d, knots, dtype=torch.float64))
        self.register_buffer("values", torch.zeros(self.d, knots, dtype=torch.float64))

    @classmethod
    def fit(cls, X: ArrayLike, knots: int = _KNOTS, *, rows: NDArray[np.int64] | None = None) -> Quantiles:
        """Learn the places of the values of each column of X, (n, d), from some or all of its rows."""
        from scipy.special import ndtri

        features = as_matrix("X", X, rows=1)
        quantiles = cls(features.shape[1], knots)
        chosen = slice(None) if rows is None else rows
        for j, (own, placed) in enumerate(zip(quantiles.knots, quantiles.values, strict=True)):
            if j % _COLUMNS == 0:  # a few columns at a time, because reading one takes as long
                some = np.ascontiguousarray(features[:, j : j + _COLUMNS][chosen].T)
            ordered = np.sort(some[j % _COLUMNS])
            ends = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1, len(ordered))
            values, counts = doubles(ordered[ends - 1]), np.diff(ends, prepend=0)
            normal = ndtri((ends - counts / 2) / len(ordered))
            normal -= np.average(normal, weights=counts)
            deviation = math.sqrt(np.average(normal**2, weights=counts))
            normal /= deviation if deviation > 0 else 1.0
            kept = np.unique(np.searchsorted(ends, np.linspace(1, len(ordered), knots)))
            kept = np.unique([0, *kept])[-knots:] if len(values) > knots else np.arange(len(values))
            own.copy_(_padded(values[kept], knots))
            placed.copy_(_padded(normal[kept], knots))
        return quantiles

    def forward(self, features: Tensor) -> Tensor:
        """Return the moved features, with the shape and device given and the dtype of the buffers."""
        _check_features(features, self.d)
        columns = features.to(self.knots.dtype).reshape(-1, self.d).T.contiguous()
        above = torch.searchsorted(self.knots, columns, right=True).clamp(1, self.knots.shape[-1] - 1)
        left = self.knots.gather(-1, above - 1)
        width = self.knots.gather(-1, above) - left
        # knots behind the last value repeat it
        share = ((columns - left) / torch.where(width > 0, width, 1.0)).clamp(0.0, 1.0)
        low = self.values.gather(-1, above - 1)
        return (low + share * (self.values.gather(-1, above) - low)).T.reshape(features.shape)


def _padded(values: NDArray[np.float64], size: int) -> Tensor:
    return torch.from_numpy(np.concatenate([values, np.full(size - len(values), values[-1])]))


def _dropouts(share: float) -> list[nn.Module]:
    if not 0 <= as_float(share) < 1:
        raise ValueError(f"dropout must be in [0, 1), got {share!r}")
    return [nn.Dropout(share)] if share > 0 else []


def _width(name: str, value: int) -> int:
    check_whole(name, value, 1)
    return int(value)


def _check_features(features: Tensor, d: int) -> None:
    if features.ndim < 1 or features.shape[-1] != d:
        raise ValueError(f"features must have {d} columns on the last axis, got shape {list(features.shape)}")
