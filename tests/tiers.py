"""The two tiers of the suite: the quick one is always run, the slow one with ``--slow``, which `conftest` reads.

A test of the slow tier is marked ``slow``. A test that is in both, over more cases in the slow one, asks for its number
of examples here.
"""

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


def as_tuple(case):
    return case if isinstance(case, tuple) else (case,)


def every_second(cases):
    """All cases in the slow tier, every second one in the quick tier."""
    return list(cases)[:: examples(2, slow=1)]
