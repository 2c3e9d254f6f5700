"""Fitted rankers as ONNX models, and what their scalings, scorers, calibrations and trees compute in graphs.

Trees are the operator ``TreeEnsemble`` of ``ai.onnx.ml``. It compares a feature with one number, or looks it up in a
set. A node of several intervals, such as that of a category, becomes a lookup of the number of the interval: of all
bounds that such nodes of a feature have, those below the feature are counted, and missing values have a number of their
own.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ltr.data.preparation import TablePreparation
from ltr.files import write_atomic
from ltr.onnx_graph import OnnxGraph
from ltr.rankers.calibration import Calibration
from ltr.rankers.contract import FloatArray, IntArray, RankerContract
from ltr.rankers.scorers import AttentionScorer, LinearScorer, MLPScorer, Quantiles, Standardize

if TYPE_CHECKING:
    from ltr.rankers.foreign import TreesRanker

__all__ = ["lifted", "scaled", "scored", "summed", "write_onnx"]

_FARTHEST = 1e12  # standard deviations from the mean, beyond which all values are the same to a network
_AT_MOST, _IN_SET = 0, 6  # modes of nodes of trees: x <= split, and x in a set


def write_onnx(ranker: RankerContract, path: str | Path, preparation: TablePreparation | None, query: str) -> None:
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
    """Find the knot below each entry of the columns, (d, n), by bisection, and go on in a straight line.

    Args:
        graph: the graph.
        columns: the columns, (d, n).
        knots: ascending knots of each column, at least two, (d, m).
        values: what becomes of the knots, (d, m).

    Returns:
        What becomes of the columns, (d, n).
    """
    m = knots.shape[1]
    place = graph.bisect(columns, knots, "LessOrEqual")
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
    nodes = _Nodes(trees)
    columns = nodes.join_intervals(graph, columns)
    nodes.end_in_leaves(trees.start_)
    leaf = nodes.feature < 0
    there = nodes.reached()
    splits = np.flatnonzero(~leaf & there)
    leaves = np.flatnonzero(leaf & there)
    place = np.zeros(len(leaf), dtype=np.int64)  # among the leaves, or the splits
    place[splits], place[leaves] = np.arange(len(splits)), np.arange(len(leaves))
    left, right = nodes.left[splits], nodes.right[splits]
    sets = [nodes.sets[node] for node in splits.tolist() if node in nodes.sets]
    members = {} if not sets else {"membership_values": np.concatenate([np.append(one, math.nan) for one in sets])}
    values = graph.op(
        "TreeEnsemble",
        graph.op("Transpose", columns, perm=[1, 0]),
        domain="ai.onnx.ml",
        n_targets=len(nodes.roots),
        tree_roots=_whole(place[nodes.roots]),
        nodes_featureids=_whole(nodes.feature[splits]),
        nodes_splits=nodes.threshold[splits],
        nodes_modes=np.where(np.isin(splits, list(nodes.sets)), _IN_SET, _AT_MOST).astype(np.uint8),
        nodes_missing_value_tracks_true=_whole(nodes.missing_left[splits]),
        nodes_truenodeids=_whole(place[left]),
        nodes_falsenodeids=_whole(place[right]),
        nodes_trueleafs=_whole(leaf[left]),
        nodes_falseleafs=_whole(leaf[right]),
        leaf_targetids=_whole(nodes.tree[leaves]),
        leaf_weights=nodes.value[leaves],
        **members,
    )
    values = graph.cast(values, np.float32) if trees.single_ else values
    sums = graph.op("CumSum", values, graph.constant(np.array(1)))
    return graph.cast(graph.op("Gather", sums, graph.constant(np.array(len(trees.roots_))), axis=1))


class _Nodes:
    """The nodes of trees as the operator takes them: no two ways lead to the same node."""

    def __init__(self, trees: TreesRanker) -> None:
        self.feature, self.left, self.right = (x.astype(np.int64) for x in (trees.feature_, trees.left_, trees.right_))
        self.threshold, self.value, self.missing_left = trees.threshold_, trees.value_, trees.missing_left_
        self.roots = trees.roots_.astype(np.int64)
        self.tree = np.cumsum(np.bincount(self.roots, minlength=len(self.feature)))  # from 1: 0 is for the start
        self.sets: dict[int, FloatArray] = {}  # of the nodes that look up the number of an interval
        self.d = trees.n_features_in_

    def join_intervals(self, graph: OnnxGraph, columns: str) -> str:
        """Make lookups of the nodes of several intervals, and return the columns with those that they look at."""
        split = self.feature >= 0
        ways = np.bincount(np.concatenate([self.left[split], self.right[split]]), minlength=len(self.feature))
        if not (ways > 1).any():
            return columns
        regions = {root: inside for root, inside in self._regions(ways).items() if self._meets(inside, ways)}
        found: list[str] = []
        for feature in np.unique(self.feature[list(regions)]).tolist():
            own = {root: inside for root, inside in regions.items() if self.feature[root] == feature}
            at = np.concatenate(list(own.values()))
            bounds = np.unique(self.threshold[at][np.isfinite(self.threshold[at])])
            column = self.d + len(found)
            for root, inside in own.items():
                self._look_up(root, inside, column, bounds)
            found.append(_numbers(graph, columns, feature, bounds))
        return graph.op("Concat", columns, *found, axis=0)

    def _regions(self, ways: IntArray) -> dict[int, IntArray]:
        """Return the nodes that are passed, one after the other, while a single feature is looked at, by the first."""
        first = np.arange(len(self.feature))
        for node in range(len(first)):  # parents come before their children
            if self.feature[node] >= 0:
                for child in (self.left[node], self.right[node]):
                    if ways[child] == 1 and self.feature[child] == self.feature[node]:
                        first[child] = first[node]
        order = np.argsort(first, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(first[order])) + 1)
        return {int(part[0]): part for part in parts if self.feature[part[0]] >= 0}

    def _meets(self, inside: IntArray, ways: IntArray) -> bool:
        return bool((ways[self.left[inside]] > 1).any() or (ways[self.right[inside]] > 1).any())

    def _look_up(self, root: int, inside: IntArray, column: int, bounds: FloatArray) -> None:
        """Replace the nodes of a region by lookups, one for each node that they lead to but one."""
        x = np.concatenate([bounds, [math.inf, math.nan]])  # one of each interval, and a missing value
        at = np.full(len(x), root)
        own = np.zeros(len(self.feature), dtype=np.bool_)
        own[inside] = True
        while (going := own[at]).any():
            node = at[going]
            to_left = np.where(np.isnan(x[going]), self.missing_left[node], x[going] <= self.threshold[node])
            at[going] = np.where(to_left, self.left[node], self.right[node])
        exits, number, counts = np.unique(at, return_inverse=True, return_counts=True)
        order = np.argsort(counts, kind="stable").tolist()
        node = root
        for place, way in enumerate(order[:-1]):
            last = place == len(order) - 2
            following = int(exits[order[-1]]) if last else self._added(root)
            self.feature[node], self.threshold[node], self.missing_left[node] = column, 0.0, False
            self.left[node], self.right[node] = exits[way], following
            self.sets[node] = np.flatnonzero(number == way).astype(np.float64)
            node = following

    def _added(self, node: int) -> int:
        """Return the number of a new node, a copy of another."""
        for name in ("feature", "left", "right", "threshold", "value", "missing_left", "tree"):
            values = getattr(self, name)
            setattr(self, name, np.append(values, values[node]))
        return len(self.feature) - 1

    def end_in_leaves(self, start: float) -> None:
        """Add a tree for the start of the sum, and splits above leaves that are a tree alone.

        There, a tree begins with a split: both ways lead to a copy of such a leaf.
        """
        first = len(self.feature)
        self.feature, self.value = np.append(self.feature, -1), np.append(self.value, start)
        self.tree, self.roots = np.append(self.tree, 0), np.append(first, self.roots)
        alone = self.roots[self.feature[self.roots] < 0]
        ends = first + 1 + np.arange(2 * len(alone))
        more = np.zeros(1 + len(ends), dtype=np.int64)
        self.left, self.right = np.append(self.left, more), np.append(self.right, more)
        self.left[alone], self.right[alone] = np.split(ends, 2)
        self.feature[alone] = 0
        self.feature = np.append(self.feature, np.full(len(ends), -1))
        self.threshold = np.append(self.threshold, np.zeros(1 + len(ends)))
        self.missing_left = np.append(self.missing_left, np.zeros(1 + len(ends), np.bool_))
        self.tree = np.append(self.tree, np.tile(self.tree[alone], 2))
        self.value = np.append(self.value, np.tile(self.value[alone], 2))

    def reached(self) -> NDArray[np.bool_]:
        """Return which nodes some way leads to."""
        found = np.zeros(len(self.feature), dtype=np.bool_)
        at = self.roots
        while len(at):
            found[at] = True
            at = at[self.feature[at] >= 0]
            at = np.concatenate([self.left[at], self.right[at]])
        return found


def _numbers(graph: OnnxGraph, columns: str, feature: int, bounds: FloatArray) -> str:
    """Return how many bounds are below a feature, and one more than there can be where it is missing, (1, n)."""
    column = graph.op("Gather", columns, graph.constant(np.array([feature])), axis=0)
    number = graph.cast(graph.bisect(column, np.append(bounds, math.inf)[None], "Less"))
    return graph.op("Where", graph.op("IsNaN", column), graph.constant(len(bounds) + 1.0), number)


def _whole(values: NDArray[Any]) -> list[int]:
    """Return whole numbers as an attribute of an ONNX operator."""
    found: list[int] = values.astype(np.int64).tolist()
    return found
