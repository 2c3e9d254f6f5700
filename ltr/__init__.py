"""Learning to rank in PyTorch: convex surrogates first, then an exact reranker with a proof.

``ltr.losses`` and ``ltr.metrics`` work on any torch tensors; ``ltr.exact`` finds and certifies the best linear scorer
of a list; ``ltr.rankers`` are scikit-learn estimators of both, and `TwoStageRanker` joins them. ``ltr.cards`` finds
scoring systems that a person can use, ``ltr.gbdt`` trains LightGBM and XGBoost on the losses, and ``ltr.clicks``
estimates position bias. ``ltr.survival`` and ``ltr.uplift`` have metrics and losses of times until an event, and of
treatments. Submodules load when first used. `rank` makes a list of rows to visit from a table; it, and
`experiment` and `tune`, which run whole experiments, load the package ``trainers`` for it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ltr.statistics import RankStatistic

if TYPE_CHECKING:
    from ltr import (
        answer,
        cards,
        clicks,
        convex,
        data,
        exact,
        fitting,
        gbdt,
        losses,
        metrics,
        rankers,
        ranks,
        statistics,
        survival,
        text,
        uplift,
    )
    from ltr.display.notebooks import ProgressBar
    from ltr.rankers import (
        AutoRanker,
        ExactRanker,
        LogisticRegressionRanker,
        RankBoostRanker,
        SurrogateRanker,
        TwoStageRanker,
    )
    from trainers.from_python import experiment, rank, tune

__version__ = "0.1.0"

__all__ = [
    "AutoRanker",
    "ExactRanker",
    "LogisticRegressionRanker",
    "ProgressBar",
    "RankBoostRanker",
    "RankStatistic",
    "SurrogateRanker",
    "TwoStageRanker",
    "answer",
    "cards",
    "clicks",
    "convex",
    "data",
    "exact",
    "experiment",
    "fitting",
    "gbdt",
    "losses",
    "metrics",
    "rank",
    "rankers",
    "ranks",
    "statistics",
    "survival",
    "text",
    "tune",
    "uplift",
]


# The only names that the library takes from the package above it, and only when they are used: people look for whole
# experiments where the rest is. tests/test_architecture.py allows no other.
_FROM_TRAINERS = ("experiment", "rank", "tune")


def __getattr__(name: str) -> Any:  # noqa: ANN401 (modules, classes and functions)
    if name in _FROM_TRAINERS:
        return getattr(importlib.import_module("trainers.from_python"), name)
    if name.endswith("Ranker") and name in __all__:
        return getattr(importlib.import_module("ltr.rankers"), name)
    if name == "ProgressBar":
        return importlib.import_module("ltr.display.notebooks").ProgressBar
    if name in __all__:
        return importlib.import_module(f"ltr.{name}")
    raise AttributeError(f"module 'ltr' has no attribute {name!r}")
