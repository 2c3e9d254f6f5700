"""States of fitted rankers: what `Ranker.to_state` returns, and rankers made of it.

`ltr.rankers.files` writes them to files.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ltr.exact.state import Limits
from ltr.losses.contract import RankingLoss
from ltr.rankers.files import UnknownClassError
from ltr.statistics import RankStatistic

if TYPE_CHECKING:
    from ltr.rankers.base import Ranker

__all__ = ["KINDS", "described", "state_of"]

KINDS: dict[str, type[Ranker]] = {}
"""Classes of rankers by name; every subclass of `Ranker` adds itself."""

_ELSEWHERE = {"CardRanker": "ltr.cards.ranker"}  # modules of the rankers that `ltr.rankers` does not import
_CODE = object()


def state_of(ranker: Ranker) -> dict[str, Any]:
    """Return a fitted ranker as a dict of tensors and plain values."""
    names = getattr(ranker, "feature_names_in_", None)
    return {
        **description(ranker),
        "n_features": int(ranker.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "by_list": ranker._by_list,
        **({"how": ranker._HOW} if ranker._HOW else {}),
        **({} if ranker.preparation_ is None else {"preparation": ranker.preparation_.to_json()}),
        **({} if ranker.calibration_ is None else {"calibration": ranker.calibration_.to_dict()}),
        "fitted": _plain(ranker._fitted_state()),
    }


def description(ranker: Ranker) -> dict[str, Any]:
    """Return class and parameters of a ranker as plain values, without parameters that are objects with code."""
    parameters = {
        name: _plain(value.tolist() if isinstance(value, np.ndarray) else value)
        for name, value in ranker.get_params(deep=False).items()
    }
    kept = {name: value for name, value in parameters.items() if value is not _CODE}
    return {"ranker": type(ranker).__name__, "parameters": kept}


def described(state: Mapping[str, Any]) -> Ranker:
    """Return the ranker, not yet fitted, that `description` described."""
    parameters = dict(state["parameters"])
    for name, value in parameters.items():
        if isinstance(value, list):
            parameters[name] = tuple(value)
        elif isinstance(value, dict):  # a mapping of a user's otherwise
            if "parameters" in value:
                parameters[name] = described(value)
            elif name == "limits":
                parameters[name] = Limits(**value)
    return _kind(state["ranker"])(**parameters)


def _kind(name: str) -> type[Ranker]:
    """Return the class of a ranker by its name, importing the module of one that lies outside this package."""
    if name not in KINDS and name in _ELSEWHERE:
        importlib.import_module(_ELSEWHERE[name])
    if name not in KINDS:
        advice = "import the module that defines it"
        raise UnknownClassError(
            f"state must be what to_state of a ranker returned: no class {name!r:.80} is known: {advice}"
        )
    return KINDS[name]


def _plain(value: Any) -> Any:  # noqa: ANN401 (a tree of any leaves)
    """Return the value in types that a file without code can hold; `_CODE` where there is none."""
    if isinstance(value, np.generic):  # some are Python's numbers as well
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, RankStatistic | RankingLoss):
        return str(value)
    if isinstance(value, Limits):
        return _plain(dataclasses.asdict(value))
    known = isinstance(value, tuple(KINDS.values()))
    return description(value) if known else _CODE
