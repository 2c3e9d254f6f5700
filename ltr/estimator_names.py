"""Estimators of other libraries by name, such as ``lightgbm:LGBMRanker(n_estimators=200)``.

A name is an import path with options. The path leads to a class, to a function that returns an estimator, or to an
estimator, of which a copy is taken and whose parameters the options set. Values are written as in Python; a word
without quotes is a text. Nothing is imported before an estimator is made.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ltr.checks import named_object, nearest, read_call, without_spaces

__all__ = ["Estimator", "EstimatorName"]

Estimator = Any
"""An object of any library with a method fit and scores."""

_WORD = re.compile(r"[^\s()\[\]{}'\",=]+")
_NOT_PYTHON = {"true": "True", "false": "False", "none": "None", "null": "None"}
_SEEDS = ("random_state", "seed")
_SCORING = ("decision_function", "predict_proba", "predict")
_UNSAFE = re.compile(r"[^\w(),.=+\-\[\]]+")  # in names of files and of TensorBoard's runs
_LONGEST = 100
_IGNORED = re.compile(r"Unknown parameter: (?P<one>\w+)|Parameters: \{(?P<several>[^}]*)\} are not used")
_PLACE = re.compile(r"^\[[\d:]+\] \S+: ")  # XGBoost: time and line of its code
_REFUSED = re.compile(r"\b(unknown|invalid)\b", re.IGNORECASE)


@dataclass(frozen=True)
class EstimatorName:
    """The name of an estimator: its import path, and its options in alphabetical order.

    Examples:
        >>> name = EstimatorName.parse("lightgbm:LGBMRanker(n_estimators = 200, boosting_type=dart)")
        >>> str(name)
        'lightgbm:LGBMRanker(boosting_type=dart,n_estimators=200)'
        >>> name.short
        'LGBMRanker(boosting_type=dart,n_estimators=200)'
        >>> EstimatorName.parse("sklearn.linear_model:Ridge(alpha=2.0)").make()
        Ridge(alpha=2.0, random_state=0)
    """

    path: str
    options: tuple[tuple[str, str], ...] = ()  # names and values as texts

    @classmethod
    def parse(cls, text: str) -> EstimatorName:
        """Return the name that a text spells, or raise ValueError with all that is wrong."""
        path, parts = read_call("ranker", text)
        if ":" not in path:
            raise ValueError(f"ranker must be an import path, module:Class(option=value,...), got {text!r:.200}")
        wrong, options = [], dict[str, str]()
        for part in parts if parts != ("",) else ():
            name, equals, value = part.partition("=")
            if not equals or not name.isidentifier() or name in options:
                wrong.append(f"takes option=value, each option once, got {part!r:.80}")
                continue
            options[name] = value
            try:
                options[name] = _spelled(_value(value))
            except ValueError as error:
                wrong.append(f"{name} must be {error}, got {value!r:.80}")
        if wrong:
            raise ValueError(f"ranker {path}: {'; '.join(wrong)}")
        found = cls(path, tuple(sorted(options.items())))
        if len(found.short) > _LONGEST:
            advice = "put the options into a function of your own that returns the estimator, and name that"
            raise ValueError(f"ranker {path}: the name {found.short!r} has more than {_LONGEST} letters: {advice}")
        return found

    def __str__(self) -> str:
        return self.path + self._listed

    @property
    def short(self) -> str:
        """The name without the module, which serves as the name of a file."""
        return _UNSAFE.sub("_", self.path.rpartition(":")[2] + self._listed)

    @property
    def _listed(self) -> str:
        return f"({','.join(f'{name}={value}' for name, value in self.options)})" if self.options else ""

    def make(self, seed: int = 0) -> Estimator:
        """Return the estimator, not yet fitted.

        Where it has a ``random_state`` or ``seed`` that nobody has set, it gets this one. LightGBM does not print, and
        takes as many threads as OpenMP has. Raises ValueError for a module that cannot be imported or lacks the name,
        options that the estimator does not have, and objects that are no estimator with scores.
        """
        what = f"ranker {self.path}"
        found = named_object(what, self.path)
        options = {name: _value(text) for name, text in self.options}
        made = inspect.isclass(found) or (callable(found) and not hasattr(found, "fit"))
        if not made and not hasattr(found, "fit"):
            rule = "must be a class, a function that returns an estimator, or an estimator"
            raise ValueError(f"{what}: {rule}, got {found!r:.80}")
        if made:
            known = _parameters(found)
            if known is not None and (unknown := [name for name in options if name not in known]):
                raise ValueError(f"{what}: {_no_option(unknown, known)}")
            options |= _seed_of(found, options, seed)
        try:
            estimator = found(**options) if made else copy.deepcopy(found)
            if not made and options:
                estimator.set_params(**options)
        except Exception as error:
            raise ValueError(f"{what}: {_first_line(error)}") from error
        if inspect.isclass(estimator) or not hasattr(estimator, "fit"):
            raise ValueError(f"{what}: must be or return an estimator with a method fit, got {estimator!r:.80}")
        if not any(hasattr(estimator, name) for name in _SCORING):
            raise ValueError(f"{what}: must have decision_function, predict_proba or predict, got {estimator!r:.80}")
        given = {name for name, _ in self.options}
        if hasattr(estimator, "get_params") and not inspect.isclass(estimator):
            _complete(estimator, given, seed)
        return estimator

    def check(self) -> None:
        """Make the estimator once, and raise ValueError for options that its library ignores or refuses."""
        estimator = self.make()
        try:
            for part in _parts(estimator):
                if hasattr(part, "_parameter_constraints"):  # an estimator of scikit-learn
                    part._validate_params()
            ignored = _ignored(estimator)
        except ValueError as error:
            raise ValueError(f"ranker {self.path}: {_first_line(error)}") from error
        known = set(type(estimator)().get_params()) if ignored else set[str]()
        if unknown := [name for name, _ in self.options if name in ignored and name not in known]:
            also = f", and the parameters of {_library(estimator)}"
            raise ValueError(f"ranker {self.path}: {_no_option(unknown, known, also)}")


def _value(text: str) -> Any:  # noqa: ANN401 (a value of any option)
    """Return the value that an option's text spells, or raise ValueError, which says what there may be."""
    if text in _NOT_PYTHON:
        raise ValueError(f"spelled as in Python, {_NOT_PYTHON[text]}")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        if _WORD.fullmatch(text):
            return text
        raise ValueError("a number, True, False, None, a word, or a list of these") from None


def _spelled(value: object) -> str:
    """Return the text of a value, the same for all of its spellings."""
    if isinstance(value, str) and _WORD.fullmatch(value):
        with contextlib.suppress(ValueError):
            if _value(value) == value:
                return value
    return without_spaces(repr(value))


def _parameters(found: Any) -> list[str] | None:  # noqa: ANN401 (a class or function)
    """Return the names of the parameters of a class or function; None where it takes any."""
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    return [one.name for one in parameters if one.kind not in (one.POSITIONAL_ONLY, one.VAR_POSITIONAL)]


def _no_option(unknown: Iterable[str], known: Iterable[str], also: str = "") -> str:
    names = sorted(known)
    listed = "there are none" if not names else f"known are {', '.join(names)}{also}"
    return "; ".join(f"has no option {name!r}{nearest(name, names) or f'; {listed}'}" for name in unknown)


def _seed_of(found: Any, given: dict[str, Any], seed: int) -> dict[str, int]:  # noqa: ANN401 (a class or function)
    """Return the seed as an argument of a class or function that takes one, unless one is given."""
    known = _parameters(found) or []
    return {} if any(name in given for name in _SEEDS) else {name: seed for name in _SEEDS if name in known}


def _complete(estimator: Estimator, given: set[str], seed: int) -> None:
    """Set what nobody has set: seeds, also those of an estimator's parts; LightGBM's threads, and that it is quiet."""
    parameters = estimator.get_params(deep=True)
    own_seed = any(name in given for name in _SEEDS)
    changed: dict[str, Any] = {}
    for name, value in parameters.items():
        prefix, _, last = name.rpartition("__")
        if last in _SEEDS and value is None and not (own_seed and not prefix):
            changed[name] = seed
    for prefix, part in [("", estimator), *((f"{name}__", value) for name, value in parameters.items())]:
        if _library(part) == "lightgbm":
            own = part.get_params()
            changed |= {} if {"verbose", "verbosity"} & own.keys() else {f"{prefix}verbosity": -1}
            # as many threads as OpenMP has, which OMP_NUM_THREADS and the workers of a sweep limit
            changed |= {f"{prefix}n_jobs": 0} if own.get("n_jobs", 0) is None else {}
    if changed:
        estimator.set_params(**changed)


def _parts(estimator: Estimator) -> Iterator[Any]:
    yield estimator
    if hasattr(estimator, "get_params"):
        yield from (
            part
            for part in estimator.get_params(deep=True).values()
            if hasattr(part, "get_params") and not inspect.isclass(part)
        )


def _library(estimator: Estimator) -> str:
    """Return ``lightgbm`` or ``xgboost`` for an estimator of that library or a class derived from one, else nothing."""
    if inspect.isclass(estimator) or not hasattr(estimator, "get_params"):
        return ""
    roots = (kind.__module__.partition(".")[0] for kind in type(estimator).__mro__)
    return next((root for root in roots if root in ("lightgbm", "xgboost")), "")


def _ignored(estimator: Estimator) -> set[str]:
    """Return the options that a booster ignores, which it says when it is fitted only: here to four rows."""
    library = _library(estimator)
    if not library:
        return set()
    # lists are for the columns of the data
    plain = {
        name: value for name, value in estimator.get_params().items() if isinstance(value, bool | int | float | str)
    }
    trial = type(estimator)(**plain)
    trial.set_params(n_estimators=1, verbosity=0 if library == "lightgbm" else 1)
    rows, labels = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 1.0]]), np.array([0, 1, 0, 1])
    lists = {"group": np.array([2, 2])} if "group" in inspect.signature(trial.fit).parameters else {}
    with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(io.StringIO()) as printed:
        warnings.simplefilter("always")
        try:
            trial.fit(rows, labels, **lists)
        except Exception as error:
            # an option may be right for other data than these
            if _REFUSED.search(_first_line(error)):
                raise ValueError(_first_line(error)) from error
    text = "\n".join([printed.getvalue(), *(str(one.message) for one in said)])
    return {name for match in _IGNORED.finditer(text) for name in re.findall(r"\w+", match["one"] or match["several"])}


def _first_line(error: Exception) -> str:
    lines = (_PLACE.sub("", line.strip()) for line in str(error).splitlines())
    return next(filter(None, lines), type(error).__name__)[:300]
