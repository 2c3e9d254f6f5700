"""Names for what pyscipopt, which has no types of its own, hands around."""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Constraints", "Expression", "Model", "ScipEvent", "ScipSolution", "Variable"]

Model: TypeAlias = Any
Variable: TypeAlias = Any
Expression: TypeAlias = Any
ScipSolution: TypeAlias = Any
ScipEvent: TypeAlias = Any
Constraints: TypeAlias = Any
