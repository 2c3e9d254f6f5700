"""Data classes as objects of JSON and back, by the types of their fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

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
        from pydantic import TypeAdapter

        try:
            return TypeAdapter(cls).validate_python(given)
        except ValueError as error:
            raise ValueError(f"not {cls._WHAT}: {' '.join(str(error).split()):.200}") from error


def _plain(value: Any) -> Any:  # noqa: ANN401 (a field)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: _plain(own) for name, own in value._asdict().items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
