"""What a fit minimises: the loss of a scorer on labelled observations plus an L2 penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ltr.fitting.smoothing import SmoothedHinge

__all__ = ["Evaluation", "Objective"]


@dataclass(frozen=True)
class Evaluation:
    """The objective at the present parameters, its loss part, and the Euclidean norm of its gradient."""

    objective: float
    loss: float
    grad_norm: float


class Objective:
    """``loss(f(X), y) + (l2/2) ||weights||²`` as a function of the scorer's parameters.

    The penalty takes every trainable parameter but those whose name ends in ``bias``.

    Args:
        scorer: module from (..., list, d) to (..., list); moved to `device`.
        loss: called as ``loss(scores, labels)``, with ``qid=`` when there is one; gives one number.
        X: observations, (n, d), finite.
        y: labels, (n,), finite, 0 or more; some list must hold two different ones.
        qid: integers, (n,), the list of each observation; None means that all are one list.
        l2: price of squared weights.
        device: where to compute.

    Raises:
        ValueError: an argument against its rule.
    """

    def __init__(
        self,
        scorer: nn.Module,
        loss: nn.Module,
        X: ArrayLike,
        y: ArrayLike,
        *,
        qid: ArrayLike | None,
        l2: float,
        device: torch.device,
    ) -> None:
        self.scorer = scorer.to(device)
        self.loss = loss
        trainable = {name: p for name, p in scorer.named_parameters() if p.requires_grad}
        if not trainable:
            raise ValueError("scorer must have a parameter to train, got none")
        self.parameters = list(trainable.values())
        self.penalised = [p for name, p in trainable.items() if not name.endswith("bias")]
        self.l2 = l2
        features, self.labels, self.groups = _checked(X, y, qid)
        self.X = torch.from_numpy(features).to(device, self.parameters[0].dtype)
        self.y = torch.from_numpy(self.labels).to(device, self.parameters[0].dtype)
        self.qid = None if qid is None else torch.from_numpy(_integers("qid", qid)).to(device)
        self._memo: tuple[SmoothedHinge | None, Tensor, Evaluation, list[Tensor]] | None = None

    def value(self, rows: Tensor | None = None, smoothed: SmoothedHinge | None = None) -> tuple[Tensor, Tensor]:
        """Objective and loss, differentiable, on all rows or on some; NaN where a score is not finite.

        Args:
            rows: indices of the rows; None means all.
            smoothed: what takes the place of the loss, on all rows.

        Raises:
            ValueError: a loss that is not one number.
        """
        X, y, qid = self.X, self.y, self.qid
        if rows is not None:
            X, y, qid = X[rows], y[rows], None if qid is None else qid[rows]
        scores = self.scorer(X)
        if not bool(torch.isfinite(scores.detach()).all()):
            # losses refuse such scores; what a point out of range means is the caller's business
            value = scores.sum() * torch.nan
        elif smoothed is not None:
            value = smoothed(scores)
        else:
            value = self.loss(scores, y) if qid is None else self.loss(scores, y, qid=qid)
        if value.ndim != 0:
            raise ValueError(f"loss must give one number, got shape {tuple(value.shape)}; set its reduction to 'mean'")
        penalty = sum(((p**2).sum() for p in self.penalised), value.new_zeros(()))
        return value + (self.l2 / 2) * penalty, value

    def evaluate(self, smoothed: SmoothedHinge | None = None) -> Evaluation:
        """The objective on all rows, its gradient left in the parameters' ``grad``.

        A line search, the optimiser and the log ask for the same point in turn: the last one is remembered.
        """
        point = torch.cat([p.detach().reshape(-1) for p in self.parameters])
        if self._memo is not None and self._memo[0] is smoothed and torch.equal(self._memo[1], point):
            _, _, evaluation, gradient = self._memo
        else:
            objective, value = self.value(smoothed=smoothed)
            grads = torch.autograd.grad(objective, self.parameters, allow_unused=True)
            gradient = [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, grads, strict=True)]
            norm = torch.cat([g.reshape(-1) for g in gradient]).norm()
            evaluation = Evaluation(float(objective.detach()), float(value.detach()), float(norm))
            self._memo = (smoothed, point, evaluation, gradient)
        for parameter, grad in zip(self.parameters, gradient, strict=True):
            parameter.grad = grad.clone()
        return evaluation

    @torch.no_grad()
    def measure(self) -> tuple[float, float]:
        """Objective and loss on all rows, without a gradient."""
        objective, value = self.value()
        return float(objective), float(value)

    @torch.no_grad()
    def scores(self) -> Tensor:
        """The present scores of all rows."""
        return self.scorer(self.X)

    @torch.no_grad()
    def weight_norm(self) -> float:
        """Euclidean norm of the penalised parameters."""
        return float(torch.cat([p.reshape(-1) for p in self.penalised]).norm()) if self.penalised else 0.0


def _checked(
    X: ArrayLike, y: ArrayLike, qid: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[NDArray[np.int64]] | None]:
    features = np.array(_plain(X), dtype=np.float64)
    if features.ndim != 2 or features.shape[0] < 1 or features.shape[1] < 1:
        raise ValueError(f"X must be 2-D with at least one row and one column, got shape {features.shape}")
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise ValueError(f"X must be finite, got {features[row, column]} at row {row}, column {column}")
    labels = np.array(_plain(y), dtype=np.float64)
    if labels.shape != features.shape[:1]:
        raise ValueError(f"y must have one label a row of X ({features.shape[0]}), got shape {labels.shape}")
    if not np.isfinite(labels).all():
        raise ValueError(f"y must be finite, got {labels[~np.isfinite(labels)][0]}")
    if qid is None:
        if np.all(labels == labels[0]):
            raise ValueError(f"y must hold both classes, got only {labels[0]:g}")
        return features, labels, None
    ids = _integers("qid", qid)
    if ids.shape != labels.shape:
        raise ValueError(f"qid must have one id a row of X ({labels.shape[0]}), got shape {ids.shape}")
    _, group = np.unique(ids, return_inverse=True)
    groups = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    if all(np.all(labels[rows] == labels[rows[0]]) for rows in groups):
        raise ValueError("y must hold two different labels in some list of qid, got none such")
    return features, labels, groups


def _integers(name: str, values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(_plain(values))
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be integers, got {array.dtype}")
    return array.astype(np.int64)


def _plain(values: ArrayLike) -> ArrayLike:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else values
