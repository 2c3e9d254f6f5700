"""Data classes as objects of JSON and back, by the types of their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

__all__ = ["Plain"]


class Plain:
    """A data class of numbers, texts, tuples and other data classes, which JSON can hold."""

    _WHAT: ClassVar[str]  # what it is, in errors

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        plain: dict[str, Any] = _plain(self)
        return plain

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Self:
        """Return what `to_dict` described; raise ValueError for another object."""
        try:
            made: Self = _made(cls, given)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"not {cls._WHAT}: {error!s:.200}") from error
        return made


def _plain(value: Any) -> Any:  # noqa: ANN401 (a field)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(own) for name, own in value._asdict().items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _made(kind: Any, value: Any) -> Any:  # noqa: ANN401 (the type of a field, and its JSON)
    """Return a value of JSON as the type that it had."""
    arguments = get_args(kind)
    if type(None) in arguments:
        return None if value is None else _made(arguments[0], value)
    if get_origin(kind) is tuple:
        kinds = arguments[:1] * len(value) if arguments[-1] is ... else arguments
        return tuple(_made(own, one) for own, one in zip(kinds, value, strict=True))
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_asdict"):
        names = kind._fields if hasattr(kind, "_fields") else [field.name for field in dataclasses.fields(kind)]
        if set(value) != set(names):
            raise ValueError(f"it must hold {', '.join(names)}, got {', '.join(map(str, value))}")
        types = get_type_hints(kind)
        return kind(**{name: _made(types[name], value[name]) for name in names})
    return value
