"""What the compiled weight-space search refuses: arrays that do not fit together, and nothing read past their end."""

import dataclasses
import threading

import numpy as np
import pytest

from ltr.exact import RerankProblem
from ltr.exact.weight_space.space import LOOSE, conflicting_pairs, space_of
from ltr.native import SearchSpace, SearchWorkspace, find_opposites, search_weight_space

NEVER = -(2**62)


def searchable(n=12, d=3):
    rng = np.random.default_rng(1)
    return space_of(RerankProblem(rng.normal(size=(n, d)), np.arange(n) % 2))


def fields(space):
    """The arguments of `SearchSpace`, all of them arrays of their own."""
    found = {field.name: getattr(space, field.name) for field in dataclasses.fields(space) if field.name != "free"}
    columns, one, other, apart = found.pop("conflicts")
    found |= {"conflict_columns": columns, "one": one, "other": other, "apart": apart, "loose": LOOSE}
    return {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in found.items()}


def searched(space, work, roots, **changes):
    boxes = {"low": roots.low, "high": roots.high, "used": roots.used, "bound": roots.bound} | changes
    return search_weight_space(space, work, **boxes, cutoff=2**50, allowance=10**7, narrow=16)


ARRAYS = [name for name, value in fields(searchable().space).items() if isinstance(value, np.ndarray) and value.size]


@pytest.mark.parametrize("name", [name for name in ARRAYS if name not in ("T", "step", "contribution")])
def test_a_space_refuses_arrays_of_another_size(name):
    given = fields(searchable().space)
    for other in (given[name][:-1], np.concatenate([given[name], given[name]])):
        with pytest.raises((ValueError, TypeError)):
            SearchSpace(**given | {name: other})


@pytest.mark.parametrize("name", ["positive", "level", "start", "most", "table", "counts_at", "one", "other"])
@pytest.mark.parametrize("number", [-7, 10**6])
def test_a_space_refuses_numbers_that_point_elsewhere(name, number):
    given = fields(searchable().space)
    for at in (0, -1):
        wrong = given[name].copy()
        wrong[at] = number
        with pytest.raises(ValueError, match="internal error"):
            SearchSpace(**given | {name: wrong})


def test_tables_that_are_too_short():
    given = fields(searchable().space)
    for changes in ({"contribution": given["contribution"][:3]}, {"step": given["step"][:3]}, {"counts_size": 1}):
        with pytest.raises(ValueError, match="internal error"):
            SearchSpace(**given | changes)


def test_the_byte_to_stop_by_is_the_callers():
    given = fields(searchable().space)
    for other in (np.zeros(1), np.zeros(2, np.uint8)[::2][:0], np.zeros((1, 1), np.uint8)):
        with pytest.raises((ValueError, TypeError)):
            SearchSpace(**given | {"stop": other})
    space = SearchSpace(**given)
    given["stop"][0] = 1
    left, _, _, value, _, tally = searched(space, SearchWorkspace(space), searchable().roots)
    assert value == NEVER
    assert tally[0] == 0
    assert np.array_equal(left[0], searchable().roots.low)


@pytest.mark.parametrize(
    "changed",
    [
        lambda a: np.asfortranarray(a),
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),  # read-only
        lambda a: a.tolist() and a.astype(a.dtype.newbyteorder()).astype(a.dtype),
    ],
)
def test_strides_and_read_only_arrays_do_not_matter(changed):
    given, roots = fields(searchable().space), searchable().roots
    space = SearchSpace(**given)
    expected = searched(space, SearchWorkspace(space), roots)
    names = [name for name in ARRAYS if name != "stop"]
    other = SearchSpace(**given | {name: changed(given[name]) for name in names})
    found = searched(other, SearchWorkspace(other), roots, low=changed(roots.low), used=changed(roots.used))
    assert found[2:4] == expected[2:4]
    assert found[5] == expected[5]


def test_a_space_keeps_its_arrays():
    space = SearchSpace(**fields(searchable(n=60).space))
    roots, work = searchable(n=60).roots, SearchWorkspace(space)
    expected = searched(space, work, roots)[5]
    _ = [np.full(10_000, np.nan) for _ in range(200)]  # over what would have been freed
    assert searched(space, work, roots)[5] == expected


def test_boxes_and_workspaces_of_another_size():
    own = searchable()
    space, roots = own.space.compiled, own.roots
    work = SearchWorkspace(space)
    for changes in (
        {"low": roots.low[:, :-1]},
        {"high": roots.high[:-1]},
        {"used": roots.used[:1]},
        {"bound": roots.bound[1:]},
    ):
        with pytest.raises(ValueError, match="internal error"):
            searched(space, work, roots, **changes)
    for other in (searchable(n=14), searchable(d=4)):
        with pytest.raises(ValueError, match="memory for this space"):
            searched(other.space.compiled, work, other.roots)


def test_conflicts_point_at_pairs():
    own = searchable()
    found = conflicting_pairs(
        own.space.columns, own.space.slack, 1.0, *np.arange(2 * 36, dtype=np.int32).reshape(2, -1)
    )
    assert max(found.one.max(), found.other.max()) < own.space.columns.shape[1]


@pytest.mark.parametrize(("d", "n", "nearest"), [(1, 1, 1), (2, 3, 3), (3, 300, 4), (12, 1000, 4)])
def test_opposites_are_the_nearest_to_the_negative(d, n, nearest):
    directions = np.random.default_rng(n).normal(size=(d, n)).astype(np.float32)
    partner, distance = np.empty((n, nearest), dtype=np.int32), np.empty((n, nearest), dtype=np.float32)
    find_opposites(directions, partner, distance)
    between = np.abs(directions[:, :, None] + directions[:, None]).sum(axis=0)
    np.testing.assert_allclose(distance, np.sort(between, axis=1)[:, :nearest], rtol=1e-5)
    np.testing.assert_allclose(np.take_along_axis(between, partner, axis=1), distance, rtol=1e-5)


def test_opposites_of_directions_that_are_no_numbers_are_themselves():
    directions = np.array([[np.nan, 1.0, -1.0], [0.0, 0.0, 0.5]], dtype=np.float32)
    partner, distance = np.empty((3, 2), dtype=np.int32), np.empty((3, 2), dtype=np.float32)
    find_opposites(directions, partner, distance)
    assert partner.tolist() == [[0, 0], [2, 1], [1, 2]]


def test_opposites_need_room_for_every_direction():
    directions = np.zeros((2, 5), dtype=np.float32)
    for rows, columns in ((4, 2), (5, 6), (5, 0)):
        with pytest.raises(ValueError, match="internal error"):
            find_opposites(directions, np.empty((rows, columns), np.int32), np.empty((rows, columns), np.float32))


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
