"""Where the tests find the paper's data (`LTR_DATA`, or a folder shared/data beside the checkout), and the cache."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[2] / "shared" / "data"

if BESIDE.is_dir():
    os.environ.setdefault("LTR_DATA", str(BESIDE))


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory):
    """A cache directory of their own: tests leave nothing in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LTR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
