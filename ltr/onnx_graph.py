"""ONNX graphs under construction: named values, lists by query, and the features of raw tables.

Rankers score in double precision, and so do these graphs, by the same operations in the same order wherever that is
possible: the order of rows must not hang on the last digit. Only the layers of networks compute in single precision,
after their features were scaled in double precision. Features are columns first, (d, n), because sums over the first
axis are then taken column by column, as `ltr.rankers.inputs.linear_scores` takes them. Only operators of the standard
set are used, for trees also the standard one of ``ai.onnx.ml``, so that any runtime can run the graphs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.data.forms import NOTHING
from ltr.data.preparation import TablePreparation

if TYPE_CHECKING:
    import onnx

__all__ = ["ListsInGraph", "OnnxGraph", "describe_model"]

_OPSET, _IR = 20, 9  # the first with regular expressions, and what runtimes of that time read
_LEARNING, _LEARNING_OPSET = "ai.onnx.ml", 5  # domain of the operator for trees; the first in double precision
_SPACE = r"[\s\v\p{Z}\x1c-\x1f\x{85}]*"  # what Python's strip removes
_NUMBER = "a number, NaN where missing"
_DATE = "days since 1970-01-01, with a fraction for the time of day, NaN where missing"
_TEXT = "a text, empty where missing"
_WHOLE = re.compile(r"-?[0-9]+")


class ListsInGraph(NamedTuple):
    """The lists of the rows, as values of a graph: number of each row's list, size and first row of each list."""

    number: str
    sizes: str
    starts: str


class OnnxGraph:
    """A graph to which rankers add their scores; its values are known by name.

    `query` names the input with the list of each row, which only rankers that score by lists add. `network` is the type
    in which layers of networks compute: float32, or float64 where a ranker compares their scores with numbers.
    """

    def __init__(self, query: str = "query") -> None:
        try:
            from onnx import TensorProto, helper, numpy_helper
        except ImportError:
            raise ImportError("ONNX needs the package onnx: pip install 'rankproof[onnx]'") from None
        self._helper, self._arrays, self._types = helper, numpy_helper, TensorProto
        self._query = query
        self.network: type[np.float32 | np.float64] = np.float32
        self._inputs: dict[str, tuple[str, Any]] = {}
        self._outputs: list[Any] = []
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._names: set[str] = set()

    # values

    def input(self, name: str, kind: str, what: str, columns: int | None = None) -> str:
        """Declare an input, once, and return its name: a vector, (n,), or a matrix of so many columns.

        `kind` is ``"DOUBLE"``, ``"INT64"`` or ``"STRING"``; the model keeps `what` it holds, in words.
        """
        if name not in self._inputs:
            shape: list[str | int | None] = ["rows"] if columns is None else ["rows", columns]
            info = self._helper.make_tensor_value_info(name, getattr(self._types, kind), shape, doc_string=what)
            self._inputs[name] = (what, info)
            self._names.add(name)
        return name

    def output(self, name: str, value: str, kind: str = "DOUBLE") -> None:
        """Return a value, (n,), as an output of the graph, called ``ltr_...`` where a column has its name."""
        name = self._new(f"ltr_{name}" if name in self._inputs else name)
        self._nodes.append(self._helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._helper.make_tensor_value_info(name, getattr(self._types, kind), ["rows"]))

    def constant(self, value: ArrayLike) -> str:
        """Return a constant, in its own type."""
        name = self._new(f"constant_{len(self._constants)}")
        self._constants.append(self._arrays.from_array(np.asarray(value), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401 (attributes of any type)
        """Add a node and return its only, or first, output; no input is the empty name, and arrays are attributes."""
        return self.ops(kind, *inputs, count=1, **attributes)[0]

    def ops(self, kind: str, *inputs: str, count: int, **attributes: Any) -> tuple[str, ...]:  # noqa: ANN401
        """Add a node and return its first outputs."""
        names = tuple(self._new(f"{kind}_{len(self._nodes)}_{number}") for number in range(count))
        for name, value in attributes.items():
            attributes[name] = self._arrays.from_array(value) if isinstance(value, np.ndarray) else value
        self._nodes.append(self._helper.make_node(kind, list(inputs), list(names), **attributes))
        return names

    def _new(self, name: str) -> str:
        while name in self._names:
            name = f"_{name}"
        self._names.add(name)
        return name

    # what rankers have in common

    def linear(self, columns: str, weights: ArrayLike) -> str:
        """Return the sum of the columns, (d, n), times their weights, (d,), column by column, (n,)."""
        products = self.op("Mul", columns, self.constant(np.asarray(weights, dtype=np.float64)[:, None]))
        return self.op("ReduceSum", products, self.constant(np.array([0])), keepdims=0)

    def matrix(self, names: Sequence[str] | None, d: int) -> str:
        """Return the columns, (d, n), of an input ``features``, (n, d)."""
        what = f"{d} features, one a column" if names is None else f"features: {', '.join(names)}"
        return self.op("Transpose", self.input("features", "DOUBLE", what, d), perm=[1, 0])

    def cast(self, value: str, kind: type = np.float64) -> str:
        """Return numbers, or booleans as 0 and 1, in another type."""
        return self.op("Cast", value, to=self._helper.np_dtype_to_tensor_dtype(np.dtype(kind)))

    def bisect(self, columns: str, knots: NDArray[np.float64]) -> str:
        """Return how many ascending knots, (d, m), are at or below each entry of columns, (d, n), as int32."""
        size = max(2, 1 << (knots.shape[1] - 1).bit_length())
        padded = np.pad(knots, ((0, 0), (0, size - knots.shape[1])), constant_values=np.inf)
        place, step = "", size // 2  # place: which of 1, 2, 4, ... parts of the knots has the entry
        while step:
            middle = self.constant(padded[:, step - 1 :: 2 * step])  # of each part
            middle = self.op("GatherElements", middle, place, axis=1) if place else middle
            upper = self.cast(self.op("LessOrEqual", middle, columns), np.int32)
            place = self.op("Add", self.op("Add", place, place), upper) if place else upper
            step //= 2
        return place

    @cached_property
    def lists(self) -> ListsInGraph:
        """The lists of the rows, by the input for queries."""
        query = self._new(f"ltr_{self._query}" if self._query in self._inputs else self._query)
        what = "number of the list of each row, any whole number; 0 in all rows for one list"
        _, _, number, sizes = self.ops("Unique", self.input(query, "INT64", what), count=4, sorted=1)
        return ListsInGraph(number, sizes, self.op("CumSum", sizes, self.constant(np.array(0)), exclusive=1))

    def by_list(self, value: str) -> str:
        """Return for each row the value of its list, (n,), from values by list."""
        return self.op("Gather", value, self.lists.number)

    def cut(self, scores: str, top_k: int | None) -> str:
        """Return for each row the `top_k`-th largest score of its list; -inf where the list is no longer than that."""
        nothing = self.constant(-np.inf)
        if top_k is None:
            return self.op("Expand", nothing, self.op("Shape", scores))
        lists, one, k = self.lists, self.constant(np.array(1)), self.constant(np.array(top_k))
        n = self.op("Shape", scores)
        # descending within each list: sorts of equal numbers keep the order that they find
        falling, places = self.ops("TopK", scores, n, count=2)
        found = self.op("Gather", lists.number, places)
        _, again = self.ops("TopK", found, n, count=2, largest=0)
        falling = self.op("Gather", falling, again)
        last = self.op("Sub", self.op("Min", self.op("Add", lists.starts, k), n), one)
        longer = self.op("Greater", lists.sizes, k)
        return self.by_list(self.op("Where", longer, self.op("Gather", falling, last), nothing))

    def mean_by_list(self, values: str, chosen: str) -> str:
        """Return for each row the mean of the chosen rows of its list; every list has one."""
        lists = self.lists
        sums, weights = [], self.cast(chosen)
        for value in (self.op("Mul", values, weights), weights):
            nothing = self.op("Expand", self.constant(0.0), self.op("Shape", lists.sizes))
            sums.append(self.op("ScatterElements", nothing, lists.number, value, reduction="add"))
        return self.by_list(self.op("Div", *sums))

    # tables

    def table(self, preparation: TablePreparation) -> str:
        """Return the features, (d, n), that a preparation makes of the columns of a raw table, which become inputs."""
        found = [value for encoding in preparation.encodings_ for value in encoding.nodes(self)]
        axis = self.constant(np.array([0]))
        return self.op("Concat", *(self.op("Unsqueeze", value, axis) for value in found), axis=0)

    def numbers(self, column: str, *, date: bool = False) -> tuple[str, str]:
        """Return a column of numbers, and where it is missing."""
        numbers = self.input(column, "DOUBLE", _DATE if date else _NUMBER)
        return numbers, self.op("IsNaN", numbers)

    def texts_are(self, column: str, values: Sequence[str]) -> str:
        """Return where a column of texts is one of these, written as `ltr.data.columns.text_of` writes them."""
        wanted = "|".join(map(_pattern, values))
        return self._matching(column, f"{_SPACE}(?:{wanted}){_SPACE}")

    def texts_missing(self, column: str) -> str:
        """Return where a column of texts is missing."""
        return self._matching(column, f"{_SPACE}(?:{'|'.join(map(re.escape, NOTHING))})?{_SPACE}")

    def _matching(self, column: str, pattern: str) -> str:
        return self.op("RegexFullMatch", self.input(column, "STRING", _TEXT), pattern=pattern)

    # the model

    def model(self, metadata: Mapping[str, str]) -> onnx.ModelProto:
        """Return the model, checked, with what its inputs hold in its metadata."""
        from onnx import checker

        graph = self._helper.make_graph(
            self._nodes, "ranker", [info for _, info in self._inputs.values()], self._outputs, self._constants
        )
        opsets = [self._helper.make_opsetid("", _OPSET)]
        if any(node.domain for node in self._nodes):
            opsets.append(self._helper.make_opsetid(_LEARNING, _LEARNING_OPSET))
        model = self._helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="ltr")
        inputs = json.dumps({name: what for name, (what, _) in self._inputs.items()}, ensure_ascii=False)
        self._helper.set_model_props(model, {**metadata, "inputs": inputs})
        checker.check_model(model, full_check=True)
        return model


def describe_model(path: str | Path) -> tuple[dict[str, tuple[str, str]], tuple[str, ...]]:
    """Return type and meaning of the inputs, by name, and the names of the outputs, of a model that a ranker wrote."""
    import onnx

    model = onnx.load(str(path))
    meaning = json.loads(next(entry.value for entry in model.metadata_props if entry.key == "inputs"))
    types = {onnx.TensorProto.DOUBLE: "float64", onnx.TensorProto.INT64: "int64", onnx.TensorProto.STRING: "text"}
    inputs = {one.name: (types[one.type.tensor_type.elem_type], meaning[one.name]) for one in model.graph.input}
    return inputs, tuple(one.name for one in model.graph.output)


def _pattern(text: str) -> str:
    """Return the regular expression of all cells that `ltr.data.columns.text_of` writes as this text."""
    if text in ("true", "false"):
        return f"{text}|{text.title()}|{text.upper()}"
    return re.escape(text) + (r"(?:\.0+)?" if _WHOLE.fullmatch(text) else "")
