"""Data: the paper's data sets by name, a user's own tables, and the split of the experiments.

`load` gives a named data set (``gaussians`` needs no files), `read_table` a user's own file, `read_features` one
without labels to predict on, and `read_texts` its fields as they stand there. Every bad input is a `DataError` that
names the file, column and row.
"""

from ltr.data.dataset import DataError, Dataset
from ltr.data.generated import gaussians, theorem1
from ltr.data.named import dataset_names, load
from ltr.data.splits import half_split
from ltr.data.tables import read_features, read_table, read_texts

__all__ = [
    "DataError",
    "Dataset",
    "dataset_names",
    "gaussians",
    "half_split",
    "load",
    "read_features",
    "read_table",
    "read_texts",
    "theorem1",
]
