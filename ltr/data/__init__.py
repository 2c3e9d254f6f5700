"""Data: the paper's data sets by name, your own files and frames, and the split of the experiments.

`load` gives a named data set (``gaussians`` needs no files), `read_data` a file of your own (a table or sparse
text), `from_frame` a frame in memory; `read_rows` reads rows to predict on, and `read_texts` the fields of a text table
as text. Bad input raises a `DataError` that names the file, column and row.
"""

from ltr.data.dataset import DataError, Dataset, half_split
from ltr.data.files import FormatName, format_of, read_data, read_rows
from ltr.data.generated import gaussians, grouped, roc_standin, theorem1
from ltr.data.named import dataset_names, load, load_test
from ltr.data.svmlight import read_svmlight
from ltr.data.tables import from_frame, read_table, read_texts

__all__ = [
    "DataError",
    "Dataset",
    "FormatName",
    "dataset_names",
    "format_of",
    "from_frame",
    "gaussians",
    "grouped",
    "half_split",
    "load",
    "load_test",
    "read_data",
    "read_rows",
    "read_svmlight",
    "read_table",
    "read_texts",
    "roc_standin",
    "theorem1",
]
