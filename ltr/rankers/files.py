"""Fitted rankers as plain values, and files of these: JSON that people can read, safetensors for what is large.

A file holds the state of `Ranker.to_state`, after a ``format`` and its ``version``. Plain values are JSON. What JSON
does not have is an object with one entry:

============================  ==========================================================================
``{"float64": [0.5, 2.0]}``   an array by its type; texts ``"inf"``, ``"-inf"``, ``"nan"`` for other numbers
``{"float": "inf"}``          a number that is not finite
``{"pairs": [[3, "+"]]}``     a mapping whose keys are not all texts
``{"tensor": "name"}``        in a safetensors file, the tensor of that name
============================  ==========================================================================

A ranker scores as before it was saved. A state with an array of two or more dimensions, as networks have, or with more
than 100,000 numbers in all its arrays becomes a safetensors file: the tensors, and the JSON in its metadata. Reading
never runs code from a file.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ltr.exact.state import Limits
from ltr.files import json_text, write_atomic
from ltr.losses.contract import RankingLoss
from ltr.statistics import RankStatistic

if TYPE_CHECKING:
    from ltr.rankers.base import Ranker

__all__ = ["KINDS", "NewerVersionError", "UnknownClassError", "read_state", "state_of", "suffix_of", "write_state"]

KINDS: dict[str, type[Ranker]] = {}
"""Classes of rankers by name; every subclass of `Ranker` adds itself."""

_ELSEWHERE = {"CardRanker": "ltr.cards.ranker"}  # modules of the rankers that `ltr.rankers` does not import
_CODE = object()

_FORMAT, _VERSION = "ltr ranker", 1
_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_TYPES = {
    str(kind).removeprefix("torch."): kind
    for kind in (torch.float64, torch.float32, torch.int64, torch.int32, torch.uint8, torch.bool)
}
_TAGS = ("float", "pairs", "tensor", *_TYPES)
_MOST_NUMBERS = 100_000  # of a JSON file
_HEAD = 9  # bytes of a file that say what it is: safetensors begin with the size of their JSON, eight bytes


class NewerVersionError(ValueError):
    """A file that a newer version of this package wrote."""


class UnknownClassError(ValueError):
    """A file that holds a ranker of a class outside this package, whose module is not imported."""


def write_state(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write the state of a ranker, whole or not at all.

    Raises TypeError for a value that files do not hold, and ValueError for the name of a JSON file where the state
    needs safetensors.
    """
    from ltr import __version__

    tensors: dict[str, torch.Tensor] | None = None if suffix_of(state) == ".json" else {}
    if tensors is not None and str(path).lower().endswith(".json"):
        instead = Path(path).with_suffix(".safetensors").name
        what = f"a network, or more than {_MOST_NUMBERS:,} numbers, are not written as JSON"
        raise ValueError(f"path: {what}, save the ranker as {instead}, got {str(path)!r:.200}")
    head = {"format": _FORMAT, "version": _VERSION, "written_by": f"ltr {__version__}"}
    content = text = json_text({**head, **_encoded(state, "", tensors)}).encode()
    if tensors is not None:
        from safetensors.torch import save

        content = save(tensors, {_FORMAT: text.decode()})
    write_atomic(Path(path), content)


def suffix_of(state: Mapping[str, Any]) -> str:
    """Return how the name of a file for this state should end: ``".json"`` or ``".safetensors"``."""
    tensors = list(_tensors(state))
    large = any(tensor.ndim > 1 for tensor in tensors) or sum(map(torch.numel, tensors)) > _MOST_NUMBERS
    return ".safetensors" if large else ".json"


def read_state(path: str | Path) -> Mapping[str, Any]:
    """Read the state of a ranker; raise ValueError for a file of another kind, of a newer version, or a damaged one."""
    with Path(path).open("rb") as file:
        head = file.read(_HEAD)
    tensors: dict[str, torch.Tensor] = {}
    if len(head) == _HEAD and head[5:] == b"\0\0\0{":
        text, tensors = _safetensors(path)
    else:
        text = Path(path).read_bytes().decode("utf-8-sig", errors="replace")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if _FORMAT in text[:200]:
            raise ValueError(f"damaged or cut off ({error})") from None
        raise ValueError("it is no JSON and no safetensors") from None
    kind = content.get("format") if isinstance(content, dict) else None
    if kind != _FORMAT:
        card = "it holds a card, which ltr.cards.Card.load reads"
        raise ValueError(card if kind == "ltr card" else f"it has no format {_FORMAT!r}")
    version = content.get("version")
    if isinstance(version, int) and version > _VERSION:
        writer = content.get("written_by", "a newer version")
        raise NewerVersionError(
            f"the file has version {version}, written by {writer}, and this package reads {_VERSION}: update ltr"
        )
    if version != _VERSION or isinstance(version, bool):
        raise ValueError(f"damaged: version must be {_VERSION}, got {version!r:.40}")
    try:
        state = _decoded(content, tensors)
    except (ValueError, TypeError, LookupError, OverflowError, RuntimeError) as error:
        raise ValueError(f"damaged: {error}") from None
    assert isinstance(state, dict)
    return state


def _safetensors(path: str | Path) -> tuple[str, dict[str, torch.Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), "pt") as file:
            text = (file.metadata() or {}).get(_FORMAT)
            if text is None:
                raise ValueError("it is a safetensors file without a ranker in its metadata")
            return text, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except SafetensorError as error:
        raise ValueError(f"damaged or cut off ({error})") from None


def _tensors(value: Any) -> Iterator[torch.Tensor]:  # noqa: ANN401 (a tree of any leaves)
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(item)
    elif isinstance(value, torch.Tensor):
        yield value


def _encoded(value: Any, place: str, tensors: dict[str, torch.Tensor] | None) -> Any:  # noqa: ANN401
    """Return a value as JSON; with `tensors`, these are put there by their place in the state."""
    if isinstance(value, torch.Tensor):
        if tensors is not None:
            tensors[place] = value.contiguous()
            return {"tensor": place}
        kind = str(value.dtype).removeprefix("torch.")
        if kind not in _TYPES:
            raise TypeError(f"{place} must be an array of {', '.join(_TYPES)} to be saved, got {kind}")
        numbers = value.tolist()  # in JSON of at most one dimension
        return {kind: [_number(one) for one in numbers] if value.ndim else _number(numbers)}
    if (number := _number(value)) is not value:
        return {"float": number}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_encoded(item, f"{place}.{number}", tensors) for number, item in enumerate(value)]
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value) or (len(value) == 1 and next(iter(value)) in _TAGS):
            return {"pairs": [[_encoded(part, place, tensors) for part in pair] for pair in value.items()]}
        return {key: _encoded(item, f"{place}.{key}".lstrip("."), tensors) for key, item in value.items()}
    raise TypeError(
        f"{place} is no number, text, array, list or mapping of these, which files hold: pickle the ranker instead"
    )


def _number(value: Any) -> Any:  # noqa: ANN401 (any leaf)
    """Return a number that is not finite as text, and other values as they are."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _decoded(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:  # noqa: ANN401
    if isinstance(value, list):
        return [_decoded(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) != 1 or (tag := next(iter(value))) not in _TAGS:
        return {key: _decoded(item, tensors) for key, item in value.items()}
    content = value[tag]
    if tag == "pairs":
        return {_decoded(key, tensors): _decoded(item, tensors) for key, item in content}
    if tag in ("float", "tensor"):
        return (_NOT_FINITE if tag == "float" else tensors)[content]
    return _array(content, _TYPES[tag])


def _array(values: Any, kind: torch.dtype) -> torch.Tensor:  # noqa: ANN401 (a list or a number)
    given = values if isinstance(values, list) else [values]
    leaves = [_NOT_FINITE[leaf] if isinstance(leaf, str) else leaf for leaf in given]
    if not all(type(leaf) in ((bool,) if kind is torch.bool else (int, float)) for leaf in leaves):
        raise ValueError(f"an array of {str(kind).removeprefix('torch.')} holds {values!r:.80}")
    if not kind.is_floating_point and any(isinstance(leaf, float) for leaf in leaves):
        raise ValueError(f"an array of whole numbers holds {values!r:.80}")
    return torch.tensor(leaves if isinstance(values, list) else leaves[0], dtype=kind)


# --- states ------------------------------------------------------------------------------------------------------


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
        "fitted": _plain(ranker._fitted_state(), fitted=True),
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
    name = state["ranker"]
    if name not in KINDS and name in _ELSEWHERE:
        importlib.import_module(_ELSEWHERE[name])
    if name not in KINDS:
        told = "state must be what to_state of a ranker returned"
        raise UnknownClassError(f"{told}: no class {name!r:.80} is known: import the module that defines it")
    return KINDS[name](**parameters)


def _plain(value: Any, *, fitted: bool = False) -> Any:  # noqa: ANN401 (a tree of any leaves)
    """Return the value in types that a file without code can hold, rankers as `fitted`; `_CODE` for what has none."""
    if isinstance(value, np.generic):  # some are Python's numbers as well
        return value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {key: _plain(item, fitted=fitted) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, fitted=fitted) for item in value]
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, RankStatistic | RankingLoss):
        return str(value)
    if isinstance(value, Limits):
        return _plain(dataclasses.asdict(value))
    if not isinstance(value, tuple(KINDS.values())):
        return _CODE
    ranker: Any = value
    return ranker.to_state() if fitted else description(ranker)
