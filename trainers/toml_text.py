"""Reading and writing the TOML of a config: files, command-line overrides, the resolved tree."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainers.config_errors import ConfigError, Finding

__all__ = ["apply_overrides", "dump_toml", "read_toml"]

Tree = dict[str, Any]


def read_toml(path: Path) -> Tree:
    """The tree of a TOML file.

    Raises:
        ConfigError: a file that is missing, is no readable text or is not TOML; the last with its line.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(str(path), [Finding("", "no such config file")]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), [Finding("", f"cannot be read: {error}")]) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), [Finding("", f"is not valid TOML: {error}")]) from None


def apply_overrides(tree: Tree, overrides: Iterable[str]) -> tuple[Tree, dict[str, str], list[Finding]]:
    """A copy of the tree with overrides ``a.b=value`` set.

    The value is read as a TOML value, else taken as a string.

    Returns:
        the new tree; the overridden paths with the text they were given as; the overrides that make no sense.

    Examples:
        >>> apply_overrides({"exact": {"top_k": 50}}, ["exact.top_k=100", "exact.base=ranknet"])[0]
        {'exact': {'top_k': 100, 'base': 'ranknet'}}
    """
    result = _copy(tree)
    given: dict[str, str] = {}
    findings = []
    for text in overrides:
        path, equals, value = text.partition("=")
        keys = [key.strip() for key in path.split(".")]
        if not equals or not all(keys):
            findings.append(
                Finding("", f"an override must read section.key=value, as in exact.top_k=100, got {text!r}")
            )
            continue
        node = result
        for depth, key in enumerate(keys[:-1]):
            child = node.setdefault(key, {})
            if not isinstance(child, dict):
                findings.append(Finding(".".join(keys[: depth + 1]), f"is a value, so {path!r} does not exist", child))
                break
            node = child
        else:
            node[keys[-1]] = _value(value.strip())
            given[".".join(keys)] = text
    return result, given, findings


def dump_toml(tree: Mapping[str, Any]) -> str:
    """TOML text of a tree of tables, lists and scalars; None is left out, for TOML has no null.

    Examples:
        >>> print(dump_toml({"name": "pima", "seed": 0, "exact": {"top_k": 50, "C": 0.0, "base": None}}), end="")
        name = "pima"
        seed = 0
        <BLANKLINE>
        [exact]
        top_k = 50
        C = 0.0
    """
    lines: list[str] = []
    _dump_table(tree, (), lines)
    return "\n".join(lines).strip() + "\n"


def _dump_table(table: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    plain = {k: v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
    if path and (plain or not table):
        lines.extend(["", f"[{'.'.join(path)}]"])
    lines.extend(f"{key} = {_literal(value)}" for key, value in plain.items())
    for key, value in table.items():
        if isinstance(value, Mapping):
            _dump_table(value, (*path, key), lines)


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # a JSON string is a TOML basic string once DEL, which JSON leaves bare, is escaped
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(v) for v in value)}]"
    raise TypeError(f"no TOML for {type(value).__name__}")


def _value(text: str) -> object:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if set(parsed) == {"value"} else text


def _copy(tree: Tree) -> Tree:
    return {key: _copy(value) if isinstance(value, dict) else value for key, value in tree.items()}
