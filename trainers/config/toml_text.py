"""Reading and writing the TOML of a config: files, command-line overrides, the resolved tree."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ltr.checks import PLACES
from ltr.data.problems import toml_value
from ltr.data.table_files import BINARY_SUFFIXES, TEXT_SUFFIXES
from ltr.files import nearest_file
from trainers.config.errors import ConfigError, Finding, shortened

Tree = dict[str, Any]


def read_toml(path: Path) -> Tree:
    """Read the tree of a TOML file."""
    if path.suffix.lower() in (*TEXT_SUFFIXES, *BINARY_SUFFIXES):
        rule = f"is a table, not a config: `ltr init {path}` writes a config for it, `ltr check {path}` looks at it"
        raise ConfigError(str(path), [Finding("", rule)])
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        rule = f"no such config file{nearest_file(path)}"
    except IsADirectoryError:
        rule = "is a folder; give a config file"
    except (OSError, UnicodeDecodeError) as error:
        rule = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    except (ValueError, RecursionError) as error:
        rule = f"is not valid TOML: {error}"
    raise ConfigError(str(path), [Finding("", rule)])


def read_experiment(path: Path, below: tuple[Path, ...] = ()) -> Tree:
    """Read the tree of an experiment's TOML file, on top of that of the file it `extends`, if any.

    Relative paths start from the folder of the file that contains them. `below` are the files that extend this one.
    """
    if path.resolve() in below:
        rule = "must not come back to a file that extends it"
        raise ConfigError(str(below[0]), [Finding("extends", rule, str(path))])
    tree = read_toml(path)
    make_absolute(tree.get("data"), path.parent)
    make_absolute(tree.get("answer"), path.parent, ("new",))
    make_absolute(tree.get("card"), path.parent, ("point_limits",))
    _find_modules_beside(path, tree)
    parent = tree.pop("extends", None)
    if parent is None:
        return tree
    if not isinstance(parent, str) or not parent:
        raise ConfigError(str(path), [Finding("extends", "must be the name of a config file", parent)])
    return merged(read_experiment(path.parent / parent, (*below, path.resolve())), tree)


_NAMES = (("surrogate", "losses"), ("baselines", "methods"), ("tracking", "loggers"))


def _find_modules_beside(path: Path, tree: Tree) -> None:
    """Let modules of the user's own be imported from the folder of a config that names some, after all others."""
    folder = str(path.parent.resolve())
    named = (tree.get(section, {}).get(key, ()) for section, key in _NAMES if isinstance(tree.get(section, {}), dict))
    if folder not in PLACES and any(":" in str(names) for names in named):
        PLACES.append(folder)


def make_absolute(data: object, folder: Path, keys: Iterable[str] = ("path", "test_path", "validation_path")) -> None:
    """Make the paths in a table of keys, such as that of the data, absolute; relative ones start from `folder`."""
    for key in keys:
        if isinstance(data, dict) and isinstance(data.get(key), str):
            data[key] = str((folder / Path(data[key]).expanduser()).absolute())


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> Tree:
    """Return the keys of both trees; those of `above` win, also within tables."""
    tree = dict(below)
    for key, value in above.items():
        own = tree.get(key)
        tree[key] = merged(own, value) if isinstance(own, Mapping) and isinstance(value, Mapping) else value
    return tree


def flat(tree: Mapping[str, Any], prefix: str = "") -> Tree:
    """Return the leaves of a tree by dotted key, {"exact.top_k": 50}; an empty table is a leaf."""
    leaves: Tree = {}
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            leaves |= flat(value, f"{prefix}{key}.")
        else:
            leaves[prefix + key] = value
    return leaves


def unflat(leaves: Mapping[str, Any]) -> Tree:
    """Return the tree of leaves by dotted key, {"exact": {"top_k": 50}}."""
    tree: Tree = {}
    for path, value in leaves.items():
        *parents, last = path.split(".")
        node = tree
        for key in parents:
            child = node.get(key)
            node[key] = node = child if isinstance(child, dict) else {}
        node[last] = value
    return tree


def with_leaves(tree: Mapping[str, Any], leaves: Mapping[str, Any]) -> Tree:
    """Return a tree with leaves by dotted key; a table takes the place of what the tree has there."""
    return merged(merged(tree, unflat(dict.fromkeys(leaves))), unflat(leaves))


def apply_overrides(tree: Mapping[str, Any], overrides: Iterable[str]) -> tuple[Tree, dict[str, str], list[Finding]]:
    """Return a copy of the tree with overrides ``a.b=value`` set, their texts by path, and errors in overrides.

    A value is read as TOML, else taken as a string. Relative paths of the data start from the current folder.

    Examples:
        >>> apply_overrides({"exact": {"top_k": 50}}, ["exact.top_k=100", "exact.base=ranknet"])[0]
        {'exact': {'top_k': 100, 'base': 'ranknet'}}
    """
    result = copy.deepcopy(dict(tree)) if (overrides := list(overrides)) else dict(tree)
    given: dict[str, str] = {}
    findings = []
    for text in overrides:
        path, equals, value = text.partition("=")
        keys = [key.strip() for key in path.split(".")]
        if not equals or not all(keys):
            rule = "an override must read section.key=value, as in exact.top_k=100"
            findings.append(Finding("", f"{rule}, got {shortened(repr(text))}"))
            continue
        node: Any = result
        for depth, key in enumerate(keys[:-1]):
            if not isinstance(child := node.setdefault(key, {}), dict):
                findings.append(Finding(".".join(keys[: depth + 1]), f"is a value, so {path!r} does not exist", child))
                break
            node = child
        else:
            try:
                parsed = tomllib.loads(f"value = {value.strip()}")
            except (ValueError, RecursionError):
                parsed = {}
            node[keys[-1]] = parsed["value"] if set(parsed) == {"value"} else value.strip()
            given[".".join(keys)] = text
    if any(key.partition(".")[0] == "data" for key in given):
        make_absolute(result.get("data"), Path())
    return result, given, findings


def dump_toml(tree: Mapping[str, Any]) -> str:
    """Return the TOML text of a tree of tables, lists and scalars; None is left out, for TOML has no null."""
    return "\n".join(_lines(tree)).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    plain = {_key(k): v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
    if path and (plain or not table):
        yield from ("", f"[{'.'.join(map(_key, path))}]")
    for key, value in plain.items():
        yield f"{key} = {toml_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _lines(value, (*path, key))


def _key(text: str) -> str:
    """Return a key as TOML has it: in quotes unless it is a plain word."""
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else toml_value(text)
