"""Compiled kernels, written in C++: `functions.h` explains the functions, and the headers of classes these."""

from pathlib import Path

try:
    from ltr.native._core import (
        Arcs,
        Ascents,
        CardSearch,
        Groups,
        ListLoss,
        Partition,
        PartitionProblem,
        PointSearch,
        SearchSpace,
        SearchWorkspace,
        Trees,
        add_moments,
        bound_supports,
        clip_segment,
        count_later,
        count_relevant,
        find_opposites,
        find_relevant,
        interpolate,
        order_grades,
        pack_keys,
        rank_keys,
        sample_steps,
        score_range,
        search_weight_space,
        statistics,
        weigh_rows,
    )
except ModuleNotFoundError as error:
    if error.name != "ltr.native._core":
        raise
    others = sorted(path.name for path in Path(__file__).parent.glob("_core.*") if path.suffix in (".so", ".pyd"))
    state = f"built for another Python ({', '.join(others)})" if others else "not built"
    raise ImportError(
        f"the compiled core of ltr is {state}: run scripts/setup.sh in the checkout, or `pip install -e .`"
    ) from None

__all__ = [
    "Arcs",
    "Ascents",
    "CardSearch",
    "Groups",
    "ListLoss",
    "Partition",
    "PartitionProblem",
    "PointSearch",
    "SearchSpace",
    "SearchWorkspace",
    "Trees",
    "add_moments",
    "bound_supports",
    "clip_segment",
    "count_later",
    "count_relevant",
    "find_opposites",
    "find_relevant",
    "interpolate",
    "order_grades",
    "pack_keys",
    "rank_keys",
    "sample_steps",
    "score_range",
    "search_weight_space",
    "statistics",
    "weigh_rows",
]
