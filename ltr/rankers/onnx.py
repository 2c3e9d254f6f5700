"""Fitted rankers as ONNX models, and what their scalings, scorers, calibrations and trees compute in graphs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ltr.data.preparation import TablePreparation
from ltr.files import write_atomic
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.calibration import Calibration
from ltr.rankers.inputs import FloatArray
from ltr.rankers.scorers import AttentionScorer, LinearScorer, MLPScorer, Quantiles, Standardize

if TYPE_CHECKING:
    from ltr.rankers.base import Ranker
    from ltr.rankers.foreign import TreesRanker

__all__ = ["lifted", "scaled", "scored", "summed", "write_onnx"]

_FARTHEST = 1e12  # standard deviations from the mean, beyond which all values are the same to a network


def write_onnx(ranker: Ranker, path: str | Path, preparation: TablePreparation | None, query: str) -> None:
    """Write a fitted ranker as an ONNX model, see `Ranker.to_onnx`."""
    check_is_fitted(ranker)
    graph = OnnxGraph(query)
    scores, reranked = ranker._placed_in(graph, ranker._columns_in(graph, preparation))
    graph.output("score", scores)
    if reranked is not None:
        graph.output("reranked", reranked, "BOOL")
    if ranker.calibration_ is not None:
        graph.output("probability", _chances(graph, scores, ranker.calibration_))
    facts = {"format": "ltr onnx", "version": "1", "ranker": type(ranker).__name__}
    write_atomic(Path(path), graph.model(facts).SerializeToString())


# --- scalings, scorers and calibrations ------------------------------------------------------------------------------


def scaled(graph: OnnxGraph, columns: str, scale: Standardize | Quantiles) -> str:
    """Return the scaled columns, (d, n)."""
    if isinstance(scale, Quantiles):
        return _interpolated(graph, columns, _array(scale.knots), _array(scale.values))
    mean, divisor = (graph.constant(_array(value)[:, None]) for value in (scale.mean, scale.scale))
    return graph.op("Div", graph.op("Sub", columns, mean), divisor)


def scored(graph: OnnxGraph, columns: str, scorer: LinearScorer | MLPScorer | AttentionScorer) -> str:
    """Return the scores, (n,), of scaled columns, (d, n); layers compute in the precision of `OnnxGraph.network`."""
    if isinstance(scorer, LinearScorer):
        scores = graph.linear(columns, _array(scorer.weight))
        return scores if scorer.bias is None else graph.op("Add", scores, graph.constant(_array(scorer.bias)))
    if graph.network is np.float32:  # in which values without bounds, and their squares, must not overflow
        columns = graph.op("Clip", columns, graph.constant(-_FARTHEST), graph.constant(_FARTHEST))
    rows = graph.op("Transpose", graph.cast(columns, graph.network), perm=[1, 0])
    if isinstance(scorer, MLPScorer):
        scores = _linear(graph, _layers(graph, rows, scorer.layers), scorer.output)
        scores = graph.op("Squeeze", scores, graph.constant(np.array([-1])))
    else:
        scores = _attention(graph, rows, scorer)
    return graph.cast(scores)


def lifted(graph: OnnxGraph, scores: str, cuts: str, exact: str, top: str) -> str:
    """Return base scores, (n,), in which exact scores lift those at the top; the counterpart of `_lifted`."""
    one, two, nothing = (graph.constant(number) for number in (1.0, 2.0, 0.0))
    lift = graph.op("Where", graph.op("IsInf", cuts), nothing, cuts)
    below = graph.op("Div", one, graph.op("Sub", one, graph.op("Min", exact, nothing)))
    rising, reached = graph.op("Add", two, exact), graph.op("GreaterOrEqual", exact, nothing)
    above = graph.op("Where", reached, rising, graph.op("Add", one, below))
    return graph.op("Where", top, graph.op("Add", lift, above), scores)


def _chances(graph: OnnxGraph, scores: str, calibration: Calibration) -> str:
    """Return the chances of a hit of rows with these scores, (n,), as a calibration does."""
    knots, heights = calibration.knots, calibration.chances
    if calibration.kind == "sigmoid":
        linear = graph.op("Add", graph.constant(knots[0]), graph.op("Mul", graph.constant(knots[1]), scores))
        odds = graph.op("Exp", graph.op("Neg", linear))
        found = graph.op("Div", graph.constant(1.0), graph.op("Add", graph.constant(1.0), odds))
        return graph.op("Clip", found, graph.constant(heights[0]), graph.constant(heights[1]))
    if len(knots) == 1:
        return graph.op("Expand", graph.constant(heights[0]), graph.op("Shape", scores))
    axis = graph.constant(np.array([0]))
    row = graph.op("Unsqueeze", scores, axis)
    return graph.op("Squeeze", _interpolated(graph, row, knots[None], heights[None]), axis)


def _interpolated(graph: OnnxGraph, columns: str, knots: FloatArray, values: FloatArray) -> str:
    """Find the knot below each entry of the columns, (d, n), by bisection, and go on in a straight line."""
    m = knots.shape[1]
    place = graph.bisect(columns, knots)
    left = np.clip(np.arange(1 << (m - 1).bit_length()), 1, m - 1) - 1
    width = np.diff(knots)[:, left]
    parts = (knots[:, left], np.where(width > 0, width, 1.0), values[:, left], values[:, left + 1])
    x0, distance, y0, y1 = (graph.op("GatherElements", graph.constant(part), place, axis=1) for part in parts)
    share = graph.op("Div", graph.op("Sub", columns, x0), distance)
    share = graph.op("Clip", share, graph.constant(0.0), graph.constant(1.0))
    rise = graph.op("GatherElements", graph.constant(np.diff(values)[:, left]), place, axis=1)
    # which rounding must not put above the next knot
    return graph.op("Min", graph.op("Add", y0, graph.op("Mul", share, rise)), y1)


def _attention(graph: OnnxGraph, rows: str, scorer: AttentionScorer) -> str:
    """Put the rows into lists of one length, (lists, items, d), and return their scores in the order of the rows."""
    lists = graph.lists
    n = graph.op("Shape", lists.number)
    longest = graph.op("ReduceMax", lists.sizes, graph.constant(np.array([0])), keepdims=1)
    slots = graph.op("Mul", graph.op("Shape", lists.sizes), longest)
    number, order = graph.ops("TopK", lists.number, n, count=2, largest=0)
    scalar = graph.op("Squeeze", n)
    place = graph.op("Range", graph.constant(np.array(0)), scalar, graph.constant(np.array(1)))
    place = graph.op("Sub", place, graph.op("Gather", lists.starts, number))
    place = graph.op("Add", place, graph.op("Mul", number, longest))
    slot = graph.op("ScatterElements", order, order, place)  # of each row; every row is written
    column = graph.op("Unsqueeze", slot, graph.constant(np.array([1])))
    shape = graph.op("Concat", slots, graph.constant(np.array([scorer.d])), axis=0)
    padded = graph.op("ScatterND", graph.op("Expand", graph.constant(graph.network(0.0)), shape), column, rows)
    some = graph.op("Expand", graph.constant(False), slots)
    real = graph.op("ScatterElements", some, slot, graph.op("Expand", graph.constant(True), n))
    head = graph.op("Concat", graph.op("Shape", lists.sizes), longest, axis=0)
    hidden = graph.op("Reshape", padded, graph.op("Concat", head, graph.constant(np.array([scorer.d])), axis=0))
    seen = graph.op("Reshape", real, head)
    seen = graph.op("Unsqueeze", seen, graph.constant(np.array([1, 2])))
    hidden = _layers(graph, hidden, scorer.layers)
    for block in scorer.blocks:
        hidden = _block(graph, hidden, seen, block)
    scores = _linear(graph, _normed(graph, hidden, scorer.norm), scorer.output)
    return graph.op("Gather", graph.op("Reshape", scores, graph.constant(np.array([-1]))), slot)


def _block(graph: OnnxGraph, hidden: str, seen: str, block: Any) -> str:  # noqa: ANN401 (a block of the scorer)
    width = block.join.in_features
    size = width // block.heads
    parts = _linear(graph, _normed(graph, hidden, block.norms[0]), block.attend)
    parts = graph.op("Reshape", parts, graph.constant(np.array([0, 0, 3, block.heads, size])))
    parts = graph.op("Transpose", parts, perm=[2, 0, 3, 1, 4])
    query, key, value = (graph.op("Gather", parts, graph.constant(np.array(number))) for number in range(3))
    found = graph.op("MatMul", query, graph.op("Transpose", key, perm=[0, 1, 3, 2]))
    found = graph.op("Mul", found, graph.constant(graph.network(1.0 / math.sqrt(size))))
    found = graph.op("Softmax", graph.op("Where", seen, found, graph.constant(graph.network(-np.inf))), axis=-1)
    found = graph.op("Transpose", graph.op("MatMul", found, value), perm=[0, 2, 1, 3])
    found = graph.op("Reshape", found, graph.constant(np.array([0, 0, width])))
    hidden = graph.op("Add", hidden, _linear(graph, found, block.join))
    wide = _silu(graph, _linear(graph, _normed(graph, hidden, block.norms[1]), block.wide))
    return graph.op("Add", hidden, _linear(graph, wide, block.narrow))


def _layers(graph: OnnxGraph, hidden: str, layers: nn.Sequential) -> str:
    for layer in layers:
        if isinstance(layer, nn.Linear):
            hidden = _linear(graph, hidden, layer)
        elif isinstance(layer, nn.LayerNorm):
            hidden = _normed(graph, hidden, layer)
        elif isinstance(layer, nn.SiLU):
            hidden = _silu(graph, hidden)
        elif not isinstance(layer, nn.Dropout):
            raise TypeError(f"layers must be linear, normed, SiLU or dropout, got {type(layer).__name__}")
    return hidden


def _linear(graph: OnnxGraph, hidden: str, layer: nn.Linear) -> str:
    product = graph.op("MatMul", hidden, graph.constant(_array(layer.weight).T.astype(graph.network)))
    return graph.op("Add", product, graph.constant(_array(layer.bias).astype(graph.network)))


def _silu(graph: OnnxGraph, hidden: str) -> str:
    return graph.op("Mul", hidden, graph.op("Sigmoid", hidden))


def _normed(graph: OnnxGraph, hidden: str, layer: nn.LayerNorm) -> str:
    # ONNX has a node for this, which takes the variance as a difference of squares
    last = graph.constant(np.array([-1]))
    centered = graph.op("Sub", hidden, graph.op("ReduceMean", hidden, last))
    variance = graph.op("ReduceMean", graph.op("Mul", centered, centered), last)
    deviation = graph.op("Sqrt", graph.op("Add", variance, graph.constant(graph.network(layer.eps))))
    weight, bias = (graph.constant(_array(value).astype(graph.network)) for value in (layer.weight, layer.bias))
    return graph.op("Add", graph.op("Mul", graph.op("Div", centered, deviation), weight), bias)


def _array(tensor: torch.Tensor) -> np.ndarray[Any, np.dtype[np.float64]]:
    return tensor.detach().cpu().numpy().astype(np.float64)


# --- trees -----------------------------------------------------------------------------------------------------------


def summed(graph: OnnxGraph, columns: str, trees: TreesRanker) -> str:
    """Return the sums of the leaf values of trees, (n,).

    Runtimes add up trees in an order of their own, and then rows change places. So each tree has an output to itself,
    as has the number that the sum starts from, and these are added up one after the other.
    """
    n = len(trees.feature_)
    tree = np.cumsum(np.bincount(trees.roots_, minlength=n))  # from 1: 0 is for the start, a leaf that is a tree alone
    tree, value, roots = np.append(tree, 0), np.append(trees.value_, trees.start_), np.append(n, trees.roots_)
    # a tree must begin with a split: both ways lead to a copy of a leaf that is a tree alone
    alone = roots[np.append(trees.feature_, -1)[roots] < 0]
    copies, added = np.tile(alone, 2), np.full(1 + 2 * len(alone), -1)
    tree, value = np.append(tree, tree[copies]), np.append(value, value[copies])
    feature, left, right = (np.append(x, added) for x in (trees.feature_, trees.left_, trees.right_))
    threshold, missing_left = (np.append(x, 0 * added) for x in (trees.threshold_, trees.missing_left_))
    feature[alone] = 0
    left[alone], right[alone] = np.split(n + 1 + np.arange(len(copies)), 2)

    leaf = feature < 0
    place = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf)) - 1  # among the leaves, or the splits
    left, right = left[~leaf], right[~leaf]
    values = graph.op(
        "TreeEnsemble",
        graph.op("Transpose", columns, perm=[1, 0]),
        domain="ai.onnx.ml",
        n_targets=len(roots),
        tree_roots=place[roots].tolist(),
        nodes_featureids=feature[~leaf].tolist(),
        nodes_splits=threshold[~leaf],
        nodes_modes=np.zeros(len(left), np.uint8),  # x <= split
        nodes_missing_value_tracks_true=missing_left[~leaf].tolist(),
        nodes_truenodeids=place[left].tolist(),
        nodes_falsenodeids=place[right].tolist(),
        nodes_trueleafs=leaf[left].astype(np.int64).tolist(),
        nodes_falseleafs=leaf[right].astype(np.int64).tolist(),
        leaf_targetids=tree[leaf].tolist(),
        leaf_weights=value[leaf],
    )
    values = graph.cast(values, np.float32) if trees.single_ else values
    sums = graph.op("CumSum", values, graph.constant(np.array(1)))
    return graph.cast(graph.op("Gather", sums, graph.constant(np.array(len(trees.roots_))), axis=1))
