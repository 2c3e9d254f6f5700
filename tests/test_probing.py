"""What the outer slices of a box lose, and that nothing above the cutoff is cut off with them."""

import dataclasses

import numpy as np
import pytest

from ltr.exact import RerankProblem
from ltr.exact.weight_space import _bounds
from ltr.exact.weight_space._boxes import push_root, tighten
from ltr.exact.weight_space.coordinates import apply_to
from ltr.exact.weight_space.space import UPDATES, Work, space_of
from tests.reference import random_graded, random_instance, random_pairwise

SIDES = (0.5, 1.0), (0.0, 0.5), (0.75, 1.0), (0.0, 0.25)  # of a coordinate's range, in the order of `_bounds`


def few_against_many(seed):
    rng = np.random.default_rng(seed)
    y = np.zeros(150, dtype=int)
    y[: 2 + seed % 3] = 1
    X = np.round(rng.normal(size=(150, 9)) + y[:, None], 1)  # more than 8 coordinates, and more than 64 pairs in a row
    return RerankProblem(X, y, margin=0.01)


def entered(problem, rng, system=None):
    """A random box of the problem as the search sees it, and its space."""
    searchable = space_of(problem, system)
    space, roots, d = searchable.space, searchable.roots, problem.d
    work = Work.of(space)
    box = roots.rows(slice(0, 1))
    low, high = box.low[0, :d].copy(), box.high[0, :d].copy()
    cuts = np.sort(rng.uniform(size=(2, d)) ** rng.choice([1.0, 0.2, 5.0]), axis=0)
    box.low[0, :d], box.high[0, :d] = low + cuts[0] * (high - low), low + cuts[1] * (high - low)
    push_root(space, work, box, 0)
    return searchable, work


PROBLEMS = [few_against_many(s) for s in range(6)]
PROBLEMS += [random_instance(s) for s in range(40)] + [random_pairwise(s) for s in range(8)]
PROBLEMS += [random_graded(s) for s in range(8)]
PROBLEMS = [p for p in PROBLEMS if len(space_of(p).roots.bound)]  # without those that have nothing to compare


@pytest.mark.parametrize("problem", PROBLEMS, ids=range(len(PROBLEMS)))
def test_no_point_of_a_slice_is_worth_more_than_it_leaves(problem):
    rng = np.random.default_rng(problem.d)
    d = problem.d
    system = np.linalg.qr(rng.normal(size=(d, d)))[0] if apply_to(problem) else None
    for T in (None, system):
        searchable, work = entered(problem, rng, T)
        if work.bound[0] <= 0:
            continue
        _bounds.probe(searchable.space, work, 0, 0, int(work.size[0]), 2**62)
        low, high = work.low[0, :d].copy(), work.high[0, :d].copy()
        left = np.ldexp((work.bound[0] - work.loss).astype(float), -searchable.exponent) + searchable.shift
        for _ in range(60):
            j, side = rng.integers(d), rng.integers(4)
            share = rng.uniform(size=d)
            share[j] = rng.uniform(*SIDES[side])
            x = low + share * (high - low)
            w = x if T is None else searchable.space.T @ x
            if problem.feasible(w):
                assert problem.evaluate(w) <= left[side, j] + 1e-9 * (1 + abs(left[side, j]))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_cut_off_holds_nothing_above_the_target(seed):
    rng = np.random.default_rng(seed)
    problem = few_against_many(seed) if seed % 2 else random_instance(seed + 1)
    problem = dataclasses.replace(problem, margin=10.0 ** -rng.integers(2, 10))
    searchable, work = entered(problem, rng)
    d = problem.d
    low, high = work.low[0, :d].copy(), work.high[0, :d].copy()
    need = max(1, int(work.bound[0] * rng.uniform(0.001, 0.2)))
    cutoff = searchable.objective(int(work.bound[0] - need))
    went, _, _ = _bounds.probe(searchable.space, work, 0, 0, int(work.size[0]), need)
    new_low, new_high = work.low[0, :d], work.high[0, :d]
    for x in low + rng.uniform(size=(200, d)) * (high - low):
        if went < 0 or np.any(x < new_low) or np.any(x > new_high):
            assert problem.evaluate(x) <= cutoff + 1e-9 * (1 + abs(cutoff))


@pytest.mark.parametrize("problem", PROBLEMS[:20], ids=range(20))
def test_both_ways_to_count_agree(problem):
    _, work = entered(problem, np.random.default_rng(1))
    size, d, eights = int(work.size[0]), problem.d, work.half.shape[0]
    work.half[:d] = 0.5 * (work.high[0, :d] - work.low[0, :d])
    _bounds._round_bounds_up(work, 0, 0, size)
    work.more[:] = 0
    _bounds._count_runs(work, 0, size, d)
    in_runs = work.more.copy()
    work.more[:] = 0
    for first in range(0, eights, 8):
        _bounds._mark(work, 0, size, first)
        _bounds._count_marks(work, 0, size, first)
    np.testing.assert_array_equal(in_runs, work.more)


def test_a_member_with_more_pairs_than_a_byte_counts():
    X = np.concatenate([[[1.0]], np.linspace(-1, -0.5, 600)[:, None]])
    problem = RerankProblem(X, np.arange(601) == 0)
    searchable = space_of(problem)
    work = Work.of(searchable.space)
    box = searchable.roots.rows(slice(0, 1))
    box.low[0, 0], box.high[0, 0] = -1.0, 1.0
    push_root(searchable.space, work, box, 0)
    work.half[0] = 1.0
    _bounds._round_bounds_up(work, 0, 0, int(work.size[0]))
    _bounds._mark(work, 0, int(work.size[0]), 0)
    _bounds._count_marks(work, 0, int(work.size[0]), 0)
    # w in [-1, -0.5] loses all of them, w in [0, 1] none for sure: at 0 itself they would tie
    assert work.more[3, 0, 0] == 600
    assert work.more[2, 0, 0] == 0


def test_many_cuts_do_not_outgrow_the_slack():
    problem = few_against_many(0)
    searchable, work = entered(problem, np.random.default_rng(2))
    space, size = searchable.space, int(work.size[0])
    for k in range(20 * UPDATES):
        j = k % problem.d
        width = work.high[0, j] - work.low[0, j]
        tighten(space, work, 0, 0, size, j, work.low[0, j] + width / 97, work.high[0, j] - width / 89)
        assert work.updates[0] <= UPDATES + 2
    middle, half = 0.5 * (work.low[0] + work.high[0]), 0.5 * (work.high[0] - work.low[0])
    assert np.all(work.upper[:size] >= middle @ space.columns + half @ np.abs(space.columns))
    assert np.all(work.lower[:size] <= middle @ space.columns - half @ np.abs(space.columns))
