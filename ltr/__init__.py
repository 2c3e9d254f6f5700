"""Learning to rank in PyTorch: convex surrogates first, then an exact reranker with a proof.

``ltr.losses`` and ``ltr.metrics`` work on any torch tensors; ``ltr.exact`` finds and certifies the best linear scorer
of a list; ``ltr.rankers`` are scikit-learn estimators of both, and `TwoStageRanker` joins them. ``ltr.cards`` finds
scoring systems that a person can use, and ``ltr.gbdt`` trains LightGBM and XGBoost on the losses. Submodules load when
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ltr.statistics import RankStatistic

if TYPE_CHECKING:
    from ltr import cards, convex, data, exact, fitting, gbdt, losses, metrics, rankers, ranks, statistics
    from ltr.progress import ProgressBar
    from ltr.rankers import ExactRanker, LinearRanker, LogisticRegressionRanker, RankBoostRanker, TwoStageRanker

__version__ = "0.1.0"

__all__ = [
    "ExactRanker",
    "LinearRanker",
    "LogisticRegressionRanker",
    "ProgressBar",
    "RankBoostRanker",
    "RankStatistic",
    "TwoStageRanker",
    "cards",
    "convex",
    "data",
    "exact",
    "fitting",
    "gbdt",
    "losses",
    "metrics",
    "rankers",
    "ranks",
    "statistics",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (modules and classes)
    if name.endswith("Ranker") and name in __all__:
        return getattr(importlib.import_module("ltr.rankers"), name)
    if name == "ProgressBar":
        return importlib.import_module("ltr.progress").ProgressBar
    if name in __all__:
        return importlib.import_module(f"ltr.{name}")
    raise AttributeError(f"module 'ltr' has no attribute {name!r}")
