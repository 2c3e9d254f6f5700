"""Models that the version before wrote, brought to the form that `ltr.rankers.Ranker.from_state` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

_LIMITS = ("time_limit", "gap", "node_limit", "memory_limit", "seed")


def current_state(state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a state as it is, or one of the version before in today's form.

    Raises:
        KeyError: a state of another kind.
        TypeError: something that is no mapping.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"a {type(state).__name__}")
    if "ranker" in state:
        return state
    return _first_stage(state) if "kind" in state else _two_stages(state)


def _first_stage(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a ranker trained on a loss, logistic regression or RankBoost in today's form."""
    names = state.get("feature_names")
    if state["kind"] == "surrogate":
        found = {{"steps_": "n_iter_"}.get(name, name): value for name, value in state["results"].items()}
        fitted = {"standardize": state["standardize"], "scorer": state["scorer"], **found}
        return _state("LinearRanker", state["fields"], len(state["standardize"]["mean"]), names, fitted)
    if state["kind"] == "logistic_regression":
        parameters = {name: state[name] for name in ("C", "standardize", "max_iter")}
        # the solver's iterations were not kept
        fitted = {"coef_": _array(state["weights"]), "intercept_": state["bias"], "n_iter_": None}
        return _state("LogisticRegressionRanker", parameters, len(state["weights"]), names, fitted)
    if state["kind"] == "rankboost":
        parameters = {name: state[name] for name in ("rounds", "thresholds", "step")}
        fitted = {f"{name}_": _array(state[name], whole=name == "features") for name in _STUMPS}
        return _state("RankBoostRanker", parameters, state["d"], names, fitted)
    raise KeyError(f"a ranker of kind {state['kind']!r}")


_STUMPS = ("features", "cuts", "alphas", "losses")


def _two_stages(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a two-stage ranker in today's form."""
    options, base, d = dict(state["options"]), _first_stage(state["base"]), state["n_features"]
    top_k = options.pop("top_k")
    options["limits"] = {name: options.pop(name) for name in _LIMITS if name in options}
    exact = {"ranker": "ExactRanker", "parameters": options}
    found = {"coef_": state["weights"], "center_": state["center"], "note_": state["note"]}
    names = state.get("feature_names")
    fitted = {
        "base": base,
        "exact": {**exact, "n_features": d, "feature_names": names, "fitted": found},
        "threshold": state["threshold"],
    }
    own = {"ranker": base["ranker"], "parameters": base["parameters"]}
    return _state("TwoStageRanker", {"base": own, "exact": exact, "top_k": top_k}, d, names, fitted)


def _state(
    ranker: str, parameters: Mapping[str, Any], d: int, names: list[str] | None, fitted: Mapping[str, Any]
) -> dict[str, Any]:
    return {"ranker": ranker, "parameters": parameters, "n_features": d, "feature_names": names, "fitted": fitted}


def _array(values: list[float], *, whole: bool = False) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64 if whole else torch.float64)
