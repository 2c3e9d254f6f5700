"""Logistic regression reproduces the paper's mean DCG on the data sets whose rows and columns are known."""

import os
from pathlib import Path

import numpy as np
import pytest

from ltr.data import load
from scripts.check_paper_baselines import TOLERANCE, dcg, logistic_values, published

DATA_DIR = Path(os.environ.get("LTR_DATA") or Path(__file__).parents[2] / "shared" / "data")

needs_files = pytest.mark.skipif(not DATA_DIR.is_dir(), reason="the paper's data files are not here: set LTR_DATA")


def test_dcg_uses_the_natural_logarithm():
    # positions 0 and 2 of the list: 1 / ln 2 + 1 / ln 4; the tied negative stands above the last positive
    assert dcg(np.array([3.0, 1.0, 1.0]), np.array([1, 0, 1])) == pytest.approx(1 / np.log(2) + 1 / np.log(4))


@needs_files
@pytest.mark.parametrize("name", TOLERANCE)
def test_logistic_regression_lands_on_the_papers_values(name):
    ours = logistic_values(load(name, data_dir=DATA_DIR), range(50)).mean(axis=0)
    np.testing.assert_allclose(ours, published("logistic_regression")[name], rtol=TOLERANCE[name])
