"""Learning to rank in PyTorch: convex surrogates first, then an exact reranker with a proof.

``ltr.losses`` and ``ltr.metrics`` work on any torch tensors; ``ltr.exact`` finds and certifies the best linear
scorer of a list; `TwoStageRanker` joins them, and ``ltr.estimators`` brings all to scikit-learn. Submodules load when
first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ltr.statistics import RankStatistic

if TYPE_CHECKING:
    from ltr import base_rankers, convex, data, estimators, exact, fitting, losses, metrics, ranks, scorers, statistics
    from ltr.rerank import TwoStageRanker

__version__ = "0.1.0"

__all__ = [
    "RankStatistic",
    "TwoStageRanker",
    "base_rankers",
    "convex",
    "data",
    "estimators",
    "exact",
    "fitting",
    "losses",
    "metrics",
    "ranks",
    "scorers",
    "statistics",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (modules and classes)
    if name == "TwoStageRanker":
        return importlib.import_module("ltr.rerank").TwoStageRanker
    if name in __all__:
        return importlib.import_module(f"ltr.{name}")
    raise AttributeError(f"module 'ltr' has no attribute {name!r}")
