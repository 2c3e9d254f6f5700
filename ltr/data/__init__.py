"""Data: the paper's data sets by name, your own files, and the split of the experiments.

`load` gives a named data set (``gaussians`` needs no files), `read_data` a file of your own (a table or sparse text);
`read_rows` reads rows to predict on. `TablePreparation` turns tables with texts, dates and missing values into
features. `read_columns` reads such a table, `read_raw_table` also says what its columns are, and `read_texts` gives the
fields of a text table as text. `read_run` and `read_qrels` read the files of trec_eval. Bad input raises a `DataError`
that names the file, column and row.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ltr.data.dataset import DataError, Dataset, half_split
from ltr.data.named import dataset_names, gaussians, grouped, load, load_test, roc_standin, theorem1
from ltr.data.problems import TableError
from ltr.data.svmlight import read_svmlight
from ltr.data.table_files import Reading, read_columns, read_texts
from ltr.data.tables import FormatName, Roles, Table, format_of, read_data, read_raw_table, read_rows
from ltr.data.trec import JudgedLists, judged_lists, read_qrels, read_run, write_qrels, write_run

if TYPE_CHECKING:
    from ltr.data.preparation import TablePreparation
    from ltr.data.similar import similar_rows

__all__ = [
    "DataError",
    "Dataset",
    "FormatName",
    "JudgedLists",
    "Reading",
    "Roles",
    "Table",
    "TableError",
    "TablePreparation",
    "dataset_names",
    "format_of",
    "gaussians",
    "grouped",
    "half_split",
    "judged_lists",
    "load",
    "load_test",
    "read_columns",
    "read_data",
    "read_qrels",
    "read_raw_table",
    "read_rows",
    "read_run",
    "read_svmlight",
    "read_texts",
    "roc_standin",
    "similar_rows",
    "theorem1",
    "write_qrels",
    "write_run",
]


_SLOW = {"TablePreparation": "ltr.data.preparation", "similar_rows": "ltr.data.similar"}
"""Modules of what takes a second to import, for scikit-learn or SciPy."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a class or a function)
    if name in _SLOW:
        return getattr(importlib.import_module(_SLOW[name]), name)
    raise AttributeError(f"module 'ltr.data' has no attribute {name!r}")
