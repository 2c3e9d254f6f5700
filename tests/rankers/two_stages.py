"""Two-stage rankers by one flat list of options, for tests."""

from ltr.exact import Limits
from ltr.rankers import ExactRanker, TwoStageRanker

LIMITS = ("time_limit", "gap", "node_limit", "memory_limit", "seed")


def exact(statistic="dcg", **options):
    """An exact ranker; limits stand beside the other options."""
    limits = Limits(**{name: options.pop(name) for name in LIMITS if name in options})
    return ExactRanker(statistic, limits=limits, **options)


def two_stage(base="logistic", statistic="dcg", top_k=50, **options):
    """A two-stage ranker; the options of its exact stage stand beside its own."""
    return TwoStageRanker(base, exact(statistic, **options), top_k, choose=False)
