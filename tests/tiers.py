"""The two tiers of the suite: the quick one is always run, the slow one with ``--slow``, which `conftest` reads.

A test of the slow tier is marked ``slow``. A test that is in both, over more cases in the slow one, asks for its number
of examples here.
"""

import itertools

import pytest

_slow = False


def choose(slow):
    """Set whether the slow tier is run; before the tests are imported."""
    global _slow
    _slow = slow


def examples(quick, slow):
    """What the tier that is run takes, mostly a number of random examples."""
    return slow if _slow else quick


def slow_but(cases, quick):
    """Parameters of which those in `quick` are in both tiers and the others in the slow one alone.

    A tuple holds the values of several parameters.
    """
    kept = set(quick)
    return [pytest.param(*as_tuple(case), marks=() if case in kept else pytest.mark.slow) for case in cases]


def thinned(step, *values):
    """All combinations of the values in the slow tier; in the quick one each `step`-th, along diagonals.

    Every value of each list, and every pair of a value of one with one of the next, is in the quick tier too as long as
    the lists that are left over have at least `step` values.
    """
    places = itertools.product(*(range(len(own)) for own in values))
    cases = [tuple(own[at] for own, at in zip(values, place, strict=True)) for place in places]
    kept = [sum(place) % step == 0 for place in itertools.product(*(range(len(own)) for own in values))]
    return [pytest.param(*case, marks=() if keep else pytest.mark.slow) for case, keep in zip(cases, kept, strict=True)]


def as_tuple(case):
    return case if isinstance(case, tuple) else (case,)


def every_second(cases):
    """All cases in the slow tier, every second one in the quick tier."""
    return list(cases)[:: examples(2, slow=1)]
