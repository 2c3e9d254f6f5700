"""Callbacks of SCIP: names for what pyscipopt hands them, and a guard that keeps their exceptions.

SCIP's Python plugins print an exception and go on, which would turn a fault into a wrong answer. So an exception is
kept, the solve stopped, and the caller raises it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

__all__ = ["Constraints", "Expression", "Guard", "Model", "ScipEvent", "ScipSolution", "Variable", "interrupt"]

# pyscipopt has no types of its own
Model: TypeAlias = Any
Variable: TypeAlias = Any
Expression: TypeAlias = Any
ScipSolution: TypeAlias = Any
ScipEvent: TypeAlias = Any
Constraints: TypeAlias = Any

Result = TypeVar("Result")


def interrupt(model: Model) -> None:
    """Ask SCIP to stop; without effect in its stage INITSOLVE, which forbids that: ask again at the next callback."""
    if model.getStageName() != "INITSOLVE":
        model.interruptSolve()


class Guard:
    """Runs callbacks and keeps the first exception; `check` raises it once the solver has returned."""

    def __init__(self) -> None:
        self._error: BaseException | None = None

    def run(self, model: Model, callback: Callable[[], Result], default: Result) -> Result:
        """Return what `callback` returns; `default` when it raises now or one has raised before.

        KeyboardInterrupt is kept like any other exception: a callback has no Python frame to unwind into.
        """
        if self._error is not None:
            interrupt(model)
            return default
        try:
            return callback()
        except BaseException as error:
            self._error = error
            interrupt(model)
            return default

    def check(self) -> None:
        """Raise the exception that was kept, if there is one, and forget it."""
        error, self._error = self._error, None
        if error is not None:
            raise error
