"""The objective of a fit: the loss of a scorer on labelled observations plus an L2 penalty.

The loss of a list depends on all of its scores, but scores are only one number per row. So every evaluation has three
parts: the scores, chunk by chunk; the loss of all scores and its derivative by each of them; and the derivatives by the
parameters, chunk by chunk, from those by the scores.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ltr.checks import PIECE, as_array, as_numbers
from ltr.data.dataset import checked_weights, labels_agree
from ltr.fitting.observations import Rows, lists_in_blocks, plain, rows_of_lists
from ltr.fitting.options import FitOptions
from ltr.fitting.scoring import SeededDropout, draws_by_torch, score_rows, scores_lists, seed_random
from ltr.fitting.smoothing import HuberHinge, Smoothing
from ltr.lists import numbered, weights_by_row
from ltr.losses.contract import RankingLoss

_CHUNK = 1 << 14  # rows per chunk unless the user asks for fewer; large enough to make the overhead of calls small

IntArray = NDArray[np.int64]
_Places = slice | IntArray


class Evaluation(NamedTuple):
    """The objective at the current parameters, its loss part, and the Euclidean norm of its gradient."""

    objective: float
    loss: float
    grad_norm: float


class Objective:
    """``loss(f(X), y) + (l2/2) ||weights||²`` as a function of the scorer's parameters.

    The arguments are those of `ltr.fitting.Fit`. The penalty covers every trainable parameter except those whose name
    ends in ``bias``.

    The loss of many lists is a sum or a mean over them, computed in blocks of about `chunk_rows`. Weights of rows weigh
    the lists and the rows in each, as `ltr.lists` says. The mean over some lists is then ``sum of V_q L_q / (number of
    these lists * mean of V_q over all lists)``, which for all lists is the weighted mean, and for those of a mini-batch
    estimates it without bias. A loss of an unknown kind gets the weights of rows as they are.
    """

    def __init__(
        self,
        scorer: nn.Module,
        loss: nn.Module,
        X: ArrayLike | Rows,
        y: ArrayLike,
        qid: ArrayLike | None,
        weight: ArrayLike | None,
        options: FitOptions,
    ) -> None:
        self._device = device = options.torch_device()
        self.scorer, self.loss, self.l2 = scorer.to(device), loss, options.l2
        trainable = {name: p for name, p in scorer.named_parameters() if p.requires_grad}
        if not trainable:
            raise ValueError("scorer must have a parameter to train, got none")
        self.parameters = list(trainable.values())
        self.penalised = [p for name, p in trainable.items() if not name.endswith("bias")]
        dtype = self.parameters[0].dtype
        self._half = options.precision == "bfloat16"  # for the matrix products of mini-batches
        if options.precision == "auto":
            self._half = device.type == "cuda" and next(scorer.parameters()).dtype == torch.float32
        self._dropping = any(isinstance(m, nn.Dropout) and m.p > 0 for m in scorer.modules())
        self._chunk, self._keep_graphs = options.chunk_rows or _CHUNK, options.chunk_rows is None
        if not isinstance(X, Rows):
            X = Rows(X, dtype=dtype, device=device, resident=self._keep_graphs)
        self._X, self.rows = X, len(X)
        self._set_labels(y, qid, weight)
        self._scored: tuple[Tensor, Tensor] | None = None
        self._evaluated: tuple[Smoothing | None, Tensor, Evaluation, list[Tensor]] | None = None

    def _set_labels(self, y: ArrayLike, qid: ArrayLike | None, weight: ArrayLike | None) -> None:
        """Set the labels, the lists and the weights of the rows and of their lists, as numbers and on the device."""
        dtype, device = self.parameters[0].dtype, self._device
        self.labels = as_numbers("y", plain(y)).copy()
        if self.labels.shape != (self.rows,):
            raise ValueError(f"y must have one label per row of X ({self.rows}), got shape {self.labels.shape}")
        if not np.isfinite(self.labels).all():
            raise ValueError(f"y must be finite, got {self.labels[~np.isfinite(self.labels)][0]}")
        self.ids = None
        if qid is not None:
            ids = as_array("qid", plain(qid))
            if not np.issubdtype(ids.dtype, np.integer):
                raise ValueError(f"qid must be integers, got {ids.dtype}")
            if ids.shape != (self.rows,):
                raise ValueError(f"qid must have one id per row of X ({self.rows}), got shape {ids.shape}")
            self.ids = ids.astype(np.int64)
        self.groups = None if self.ids is None else rows_of_lists(self.ids)
        if labels_agree(self.labels, self.ids):
            if self.ids is None:
                raise ValueError(f"y must hold both classes, got only {self.labels[0]:g}")
            raise ValueError("y must hold two different labels in at least one list of qid, got none")
        self.weight = None if weight is None else checked_weights(weight, self.rows, "weight")
        self._y = torch.from_numpy(self.labels).to(device, dtype)
        self._rows_weight = None if self.weight is None else torch.from_numpy(self.weight).to(device, dtype)
        self._weight, self._list_weight, self._mean_weight = self._rows_weight, None, 1.0
        self.list_weight: NDArray[np.float64] | None = None
        if self.weight is not None and self.ids is not None:
            self.list_weight, relative = weights_by_row(self.weight, self.ids, self.labels)
            self._weight = None if relative is None else torch.from_numpy(relative).to(device, dtype)
            self._mean_weight = float(self.list_weight[np.unique(self.ids, return_index=True)[1]].mean())
            self._list_weight = torch.from_numpy(self.list_weight).to(device, dtype)
        self._qid = None if self.ids is None else torch.from_numpy(self.ids).to(device)
        if self.groups is not None:
            self._blocks = lists_in_blocks(self.groups, self._chunk)

    def evaluate(self, smoothed: Smoothing | None = None) -> Evaluation:
        """Return the objective on all rows, of a smoothed loss if given, and leave its gradient in ``grad``.

        The last point is cached, because a line search, the optimiser and the log ask for the same one in turn.
        """
        point = self._point()
        if self._evaluated is not None and self._evaluated[0] is smoothed and torch.equal(self._evaluated[1], point):
            _, _, evaluation, gradient = self._evaluated
        else:
            objective, value, gradient, scores = self._derive(self.loss if smoothed is None else smoothed)
            norm = torch.cat([g.reshape(-1) for g in gradient]).norm()
            evaluation = Evaluation(float(objective), float(value), float(norm))
            self._evaluated, self._scored = (smoothed, point, evaluation, gradient), (point, scores)
        self._leave(gradient)
        return evaluation

    def estimate(self, rows: IntArray | None, seed: tuple[int, ...]) -> float:
        """Return the objective on some rows, or on all, and leave its gradient in the parameters' ``grad``.

        `rows` has whole lists one after the other; `seed` is that of randomness in the scorer.
        """
        objective, _, gradient, _ = self._derive(self.loss, rows, seed)
        self._leave(gradient)
        return float(objective)

    def measure(self) -> tuple[float, float]:
        """Return objective and loss on all rows, without a gradient."""
        value, _ = self._loss_of(self.loss, self.scores(), derive=False)
        return float(self._with_penalty(value)), float(value)

    def slack(self, smoothed: Smoothing) -> float:
        """Return the slack of a smoothed loss at the current scores."""
        return float(self._loss_of(smoothed.slack, self.scores(), derive=False)[0])

    def slope(self) -> float:
        """Return the Euclidean norm of the gradient of the loss with respect to the current scores."""
        return float(self._loss_of(self.loss, self.scores(), derive=True)[1].norm())

    def scores(self) -> Tensor:
        """Return the current scores of all rows."""
        point = self._point()
        if self._scored is None or not torch.equal(self._scored[0], point):
            with torch.no_grad():
                scores, _ = self._score(None, None, min(self._chunk, PIECE))
            self._scored = point, scores
        return self._scored[1]

    @torch.no_grad()
    def weight_norm(self) -> float:
        """Return the Euclidean norm of the penalised parameters."""
        return float(torch.cat([p.reshape(-1) for p in self.penalised]).norm()) if self.penalised else 0.0

    def _derive(
        self, loss: Callable[..., Tensor], rows: IntArray | None = None, seed: tuple[int, ...] | None = None
    ) -> tuple[Tensor, Tensor, list[Tensor], Tensor]:
        """Return the objective, the loss, the gradient of the objective, and the scores."""
        with torch.set_grad_enabled(self._keep_graphs):
            scores, graphs = self._score(rows, seed, self._chunk)
        value, slopes = self._loss_of(loss, scores, rows, derive=True)
        sizes = [p.numel() for p in self.parameters]
        sums = scores.new_zeros(sum(sizes))
        for at, chunk in enumerate(self._chunks(rows, self._chunk)):
            own = graphs[at] if self._keep_graphs else self._score_chunk(chunk, rows, seed)
            if own.requires_grad:
                grads = torch.autograd.grad(own, self.parameters, slopes[chunk], allow_unused=True)
                flat = [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, grads, strict=True)]
                sums += torch.cat([g.reshape(-1) for g in flat])
        penalised = {id(p) for p in self.penalised}
        gradient = [
            g.reshape(p.shape) + (self.l2 * p.detach() if id(p) in penalised else 0.0)
            for p, g in zip(self.parameters, sums.split(sizes), strict=True)
        ]
        return self._with_penalty(value), value, gradient, scores

    def _score(self, rows: IntArray | None, seed: tuple[int, ...] | None, size: int) -> tuple[Tensor, list[Tensor]]:
        """Return the scores of some rows, or of all, and the graphs of chunks of so many rows, if they are kept."""
        count = self.rows if rows is None else len(rows)
        scores = torch.zeros(count, dtype=self.parameters[0].dtype, device=self._device)
        graphs = []
        for chunk in self._chunks(rows, size):
            own = self._score_chunk(chunk, rows, seed)
            scores[chunk] = own.detach()
            if torch.is_grad_enabled():  # small tensors that are kept among large ones would scatter free memory
                graphs.append(own)
        return scores, graphs

    def _score_chunk(self, chunk: _Places, rows: IntArray | None, seed: tuple[int, ...] | None) -> Tensor:
        at = chunk if rows is None else rows[chunk]
        features, ids = self._X.take(at), self.ids
        dropout: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
        if seed is not None:
            of_chunk = (*seed, chunk.start if isinstance(chunk, slice) else int(chunk[0]))
            if draws_by_torch(self.scorer):
                seed_random(of_chunk, self._device)
            if self._dropping:
                dropout = SeededDropout(of_chunk)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._half and seed is not None), dropout:
            scores = score_rows(self.scorer, features, None if ids is None else ids[at])
        return scores.to(features.dtype)

    def _chunks(self, rows: IntArray | None, size: int) -> Iterator[_Places]:
        """Yield chunks of all rows or of some, by their places among these; those of a scorer of lists are lists."""
        count = self.rows if rows is None else len(rows)
        if scores_lists(self.scorer):
            ids = self.ids
            ids = np.zeros(count, dtype=np.int64) if ids is None else ids if rows is None else ids[rows]
            yield from (members for members, _ in lists_in_blocks(rows_of_lists(ids), size))
        else:
            yield from (slice(at, min(at + size, count)) for at in range(0, count, size))

    def _with_penalty(self, value: Tensor) -> Tensor:
        penalty = sum(((p.detach() ** 2).sum() for p in self.penalised), value.new_zeros(()))
        return value + (self.l2 / 2) * penalty

    def _leave(self, gradient: list[Tensor]) -> None:
        for parameter, grad in zip(self.parameters, gradient, strict=True):
            parameter.grad = grad.clone()

    def _loss_of(
        self, loss: Callable[..., Tensor], scores: Tensor, rows: IntArray | None = None, *, derive: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the loss of the scores of some rows, or of all, and its derivative by each score, 0 unless `derive`.

        The loss is called as ``loss(scores, labels)``, with ``qid=``, ``weight=`` and ``list_weight=`` if there are
        any. `rows` has whole lists.
        """
        if not bool(torch.isfinite(scores).all()):
            # losses reject such scores; the caller decides how to handle a point out of range
            return scores.new_tensor(torch.nan), torch.full_like(scores, torch.nan)
        owner = getattr(loss, "__self__", loss)  # a method of a loss is reduced as the loss is
        reduction = owner.reduction if isinstance(owner, RankingLoss | HuberHinge) else None
        given = {"qid": self._qid, "weight": self._weight, "list_weight": self._list_weight}
        if reduction is None:
            given = {"qid": self._qid, "weight": self._rows_weight}
        of_rows = {name: values for name, values in given.items() if values is not None}
        y = self._y
        if rows is not None:
            index = torch.from_numpy(rows).to(self._device)
            y, of_rows = y[index], {name: values[index] for name, values in of_rows.items()}
        if self.groups is None or self.ids is None or reduction is None:
            return _one(loss, scores, y, of_rows, derive=derive)
        if rows is None:
            lists, blocks = len(self.groups), self._blocks
        else:
            lists = len(np.unique(self.ids[rows]))
            blocks = [(np.arange(len(rows)), lists)]
        if len(blocks) == 1 and self._list_weight is None:
            return _one(loss, scores, y, of_rows, derive=derive)
        total, slopes = scores.new_zeros(()), torch.zeros_like(scores)
        for members, count in blocks:
            at = torch.from_numpy(members).to(self._device)
            part = {name: one[at] for name, one in of_rows.items()}
            value, slope = _one(loss, scores[at], y[at], part, derive=derive)
            factor = count * self._weight_of(part) / lists if reduction == "mean" else 1.0
            total, slopes[at] = total + factor * value, factor * slope
        return total, slopes

    def _weight_of(self, of_rows: Mapping[str, Tensor]) -> float:
        """Return the mean weight of some lists, over that of all lists."""
        if "list_weight" not in of_rows or not self._mean_weight:
            return 1.0
        number = numbered(of_rows["qid"])
        lists = of_rows["list_weight"].new_zeros(int(number.max()) + 1).index_copy(0, number, of_rows["list_weight"])
        return float(lists.double().mean()) / self._mean_weight

    def _point(self) -> Tensor:
        return torch.cat([p.detach().reshape(-1) for p in self.parameters])


def _one(
    loss: Callable[..., Tensor], scores: Tensor, y: Tensor, of_rows: Mapping[str, Tensor], *, derive: bool
) -> tuple[Tensor, Tensor]:
    leaf = scores.detach().requires_grad_(derive)
    with torch.set_grad_enabled(derive):
        value = loss(leaf, y, **of_rows)
    if value.ndim != 0:
        raise ValueError(f"loss must give one number, got shape {tuple(value.shape)}; set its reduction to 'mean'")
    if not value.requires_grad:
        return value, torch.zeros_like(leaf)
    return value.detach(), torch.autograd.grad(value, leaf)[0]
