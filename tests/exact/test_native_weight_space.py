"""What the compiled weight-space search refuses: arrays that do not fit together, and nothing read past their end."""

import threading

import numpy as np
import pytest

from ltr.exact import RerankProblem
from ltr.exact.weight_space.space import space_of
from ltr.native import SearchSpace, SearchWorkspace, find_opposites, search_weight_space

NEVER = -(2**62)


def searchable(n=12, d=3):
    rng = np.random.default_rng(1)
    return space_of(RerankProblem(rng.normal(size=(n, d)), np.arange(n) % 2))


def fields(space):
    """The arguments of `SearchSpace`, all of them arrays of their own."""
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in space.arrays.items()}


def searched(space, work, roots, **changes):
    boxes = {"low": roots.low, "high": roots.high, "used": roots.used, "bound": roots.bound} | changes
    return search_weight_space(space, work, **boxes, target=2**50, allowance=10**7, narrow=16)


def test_the_byte_to_stop_by_is_the_callers_and_other_arguments_are_refused():
    given = fields(searchable().space)
    with pytest.raises(TypeError, match="hinges"):
        SearchSpace(**given, hinges=1)
    for other in (np.zeros(1), np.zeros(2, np.uint8)[::2][:0], np.zeros((1, 1), np.uint8)):
        with pytest.raises((ValueError, TypeError)):
            SearchSpace(**given | {"stop": other})
    space = SearchSpace(**given)
    given["stop"][0] = 1
    left, _, _, value, _, boxes, _ = searched(space, SearchWorkspace(space), searchable().roots)
    assert value == NEVER
    assert boxes == 0
    assert np.array_equal(left[0], searchable().roots.low)


@pytest.mark.parametrize(("d", "n", "nearest"), [(1, 1, 1), (2, 3, 3), (3, 300, 4), (12, 1000, 4)])
def test_opposites_are_the_nearest_to_the_negative(d, n, nearest):
    directions = np.random.default_rng(n).normal(size=(d, n)).astype(np.float32)
    partner, distance = np.empty((n, nearest), dtype=np.int32), np.empty((n, nearest), dtype=np.float32)
    find_opposites(directions, partner, distance)
    between = np.abs(directions[:, :, None] + directions[:, None]).sum(axis=0)
    np.testing.assert_allclose(distance, np.sort(between, axis=1)[:, :nearest], rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(between, partner, axis=1), distance, rtol=1e-5)


def test_other_threads_run_during_a_search():
    rng = np.random.default_rng(0)
    own = space_of(RerankProblem(rng.normal(size=(120, 9)), rng.integers(0, 2, 120)))
    space, done = own.space.compiled, []

    def run():
        done.append(search_weight_space(space, SearchWorkspace(space), *own.roots[:4], 0, 10**12, 16))

    thread = threading.Thread(target=run)
    thread.start()
    assert not done
    own.space.stop[0] = 1
    thread.join(timeout=5)
    assert done
