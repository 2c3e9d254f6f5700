"""Where the tests find the paper's data (`LTR_DATA`, or a folder shared/data beside the checkout), cache and tiers."""

import gc
import os

import pytest

from tests import tiers
from tests.paths import DATA

if DATA.is_dir():
    os.environ.setdefault("LTR_DATA", str(DATA))


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the slow tier too: more random cases, longer searches")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: runs with --slow alone")
    tiers.choose(config.getoption("--slow"))


LONGEST = (  # files that take longest, first: at the end no process waits for another that has just begun one of them
    "test_rank",
    "test_bound_stages",
    "test_list_demands",
    "test_experiment",
    "test_verify",
    "test_readme",
    "test_certificate",
    "test_sample_weight",
    "test_sweep_runs",
    "test_ranker_family",
    "test_tutorial",
    "test_own_rankers",
    "test_sweep_processes",
    "test_architecture",
)


def pytest_collection_modifyitems(config, items):
    place = {name: at for at, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.stem, len(place)))
    if config.getoption("--slow"):
        return
    left_out = [item for item in items if item.get_closest_marker("slow")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("slow")]


def pytest_collection_finish(session):
    """Keep the garbage collector from going through all tests and modules again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def cache_of_the_tests(tmp_path_factory):
    """A cache directory of their own: tests leave nothing in the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LTR_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def few_fits(monkeypatch):
    """Let `AutoRanker` divide the rows once, and grow small forests, for speed."""
    monkeypatch.setattr("ltr.rankers.auto._TREES", 20)
    monkeypatch.setattr("ltr.rankers.auto._REPEATS", 1)
