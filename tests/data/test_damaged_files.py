"""Files from anywhere: what is damaged, too large or no file at all ends in one message, not in a traceback."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ltr.data import DataError, read_columns
from ltr.files import SizeError, has_text, read_arrays
from trainers.cli import main

TABLE = "a,ill\n1,yes\n2,no\n3,no\n"


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """The current folder, with a table in it."""
    (tmp_path / "table.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments):
    """What a command says of a file that it cannot use."""
    assert main(list(arguments)) == 2
    error = capsys.readouterr().err
    assert error.startswith("ltr: error: ")
    return error


def claim(path, shape, kind="<f8"):
    """Write an .npz file of an array that has a head and no numbers."""
    with zipfile.ZipFile(path, "w") as archive, archive.open("X.npy", "w") as file:
        np.lib.format.write_array_header_2_0(file, {"descr": kind, "fortran_order": False, "shape": shape})


def test_arrays_are_not_read_where_they_would_take_all_memory(workplace):
    claim("bomb.npz", (10**9, 20))
    with pytest.raises(SizeError, match=r"its content would take 160\.0 GB, the limit is 4 GB"):
        read_arrays(Path("bomb.npz"))
    claim("bytes.npz", (10**9,), "|b1")  # eight bytes each, as float64
    with pytest.raises(SizeError, match=r"would take 8\.0 GB"):
        read_arrays(Path("bytes.npz"))
    np.savez("three.npz", a=[1, 2])
    assert read_arrays(Path("three.npz"))["a"].tolist() == [1, 2]


def test_parquet_is_not_read_where_it_would_take_all_memory(workplace, monkeypatch):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"note": ["x" * 1000] * 20_000, "ill": [0, 1] * 10_000})
    frame.to_parquet("notes.parquet")  # each text is there once
    assert Path("notes.parquet").stat().st_size < 100_000
    assert read_columns("notes.parquet")["note"].tolist() == frame["note"].tolist()
    monkeypatch.setattr("ltr.files.LARGEST", 1e7)
    with pytest.raises(DataError, match=r"notes.parquet: its content would take 0.0 GB, the limit is 0.01 GB"):
        read_columns("notes.parquet")


def test_data_must_be_an_ordinary_file(workplace, capsys):
    os.mkfifo("pipe.csv")
    for data in ("pipe.csv", "/dev/zero", "/proc/self/mem", "/proc/kmsg", ".", "/dev/null"):
        Path("data.toml").write_text(f'[data]\npath = "{data}"\nlabel = "ill"\n')
        assert any(text in refused(capsys, "run", "-n", "data.toml") for text in ("is not a file", "the file is empty"))
    assert has_text("table.csv")
    assert not has_text("x" * 5000)
