"""What trees compute, as parts of ONNX graphs, by the operator for trees of ``ai.onnx.ml``.

That operator compares a feature with one number, or looks it up in a set. A node of several intervals, such as that of
a category, becomes a lookup of the number of the interval: of all bounds that such nodes of a feature have, those below
the feature are counted, and missing values have a number of their own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.rankers.base import FloatArray, IntArray

if TYPE_CHECKING:
    from ltr.onnx_graph import OnnxGraph
    from ltr.rankers.foreign import TreesRanker

__all__ = ["summed"]

_AT_MOST, _IN_SET = 0, 6  # modes of nodes: x <= split, and x in a set


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
