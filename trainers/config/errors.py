"""Errors in a config for the user: dotted path, rule, value received, nearest known key."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ltr.checks import in_one_message, nearest
from trainers.files import RunError


@dataclass(frozen=True)
class Finding:
    """One error in a config."""

    path: str  # dotted path of the key
    rule: str  # what the value must be
    value: object = None  # value received, if any
    from_command_line: bool = False

    def __str__(self) -> str:
        where = f"{shortened(self.path)}: " if self.path else ""
        value = self.value
        text = repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)
        got = "" if value is None else f", got {shortened(text)}"
        origin = " on the command line" if self.from_command_line else ""
        return f"{where}{shortened(self.rule, 1000)}{got}{origin}"


class ConfigError(RunError):
    """A config that cannot be run; `findings` are all its errors, each once, `source` is its file or other origin."""

    def __init__(self, source: str, findings: Sequence[Finding]) -> None:
        by_text = {str(finding): finding for finding in findings}
        self.source, self.findings = source, tuple(by_text.values())
        super().__init__(in_one_message(source, list(by_text), "errors"))


def findings_of(error: ValidationError, model: type[BaseModel], overrides: Mapping[str, str]) -> list[Finding]:
    """Return the findings in a pydantic error on `model`; overridden values are marked."""
    found = []
    for item in error.errors():
        path, value = dotted(item["loc"]), None if item["type"] == "missing" else item["input"]
        rule = _rule(item, model).removeprefix(f"{path.rpartition('.')[2]}: ")  # exact.statistic: statistic: ...
        found.append(Finding(path, rule, value, from_command_line=path.split("[")[0] in overrides))
    return found


def dotted(location: Iterable[int | str]) -> str:
    """Return ``surrogate.losses[1]`` for ("surrogate", "losses", 1)."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def changes(before: Mapping[str, Any], now: Mapping[str, Any], when: str) -> list[Finding]:
    """Return a finding for each key whose value is not as it was; `when` says when that was."""
    findings = []
    for key in dict.fromkeys((*before, *now)):
        if before.get(key) != now.get(key):
            old = "left out" if before.get(key) is None else json.dumps(before[key], ensure_ascii=False)
            findings.append(Finding(key, f"was {old} {when}", now.get(key, "left out")))
    return findings


# pydantic's error type -> what the value must be; {name} is filled from the error's context
_RULES = {
    "missing": "is required",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "string_type": "must be a string in quotes",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a table of keys",
    "model_type": "must be a table of keys",
    "model_attributes_type": "must be a table of keys",
    "greater_than": "must be > {gt:.10g}",
    "greater_than_equal": "must be >= {ge:.10g}",
    "less_than": "must be < {lt:.10g}",
    "less_than_equal": "must be <= {le:.10g}",
    "too_short": "must hold at least {min_length} entry",
    "string_too_short": "must not be empty",
    "value_error": "{error}",
}


def _rule(item: Any, model: type[BaseModel]) -> str:  # noqa: ANN401  (pydantic's TypedDict)
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        key = str(item["loc"][-1])
        known = _fields_at(model, item["loc"][:-1])
        hint = nearest(key, known) or f"; known are {', '.join(known)}"
        return f"unknown key{hint}"
    if kind == "literal_error":
        received = item["input"]
        hint = nearest(received, context["expected"].split("'")[1::2]) if isinstance(received, str) else ""
        return f"must be {context['expected']}{hint}"
    return _RULES[kind].format(**context) if kind in _RULES else str(item["msg"])


def _fields_at(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    for part in location:
        if isinstance(part, int):  # of a list of tables
            continue
        annotation = model.model_fields[part].annotation
        if get_origin(annotation) is tuple:
            annotation = get_args(annotation)[0]
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)


def shortened(text: str, longest: int = 100) -> str:
    """Return a text, with dots at its end where it is too long for a message."""
    return text if len(text) <= longest else text[: longest - 3] + "..."
