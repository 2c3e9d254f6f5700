"""The names of options of a training, and the defaults that follow the scorer; configs read them without torch."""

from __future__ import annotations

from typing import Any, Literal

ScorerName = Literal["linear", "mlp", "attention"]
"""Scoring functions of a `ltr.rankers.SurrogateRanker`."""
ScaleName = Literal["standardize", "quantile"]
"""How features are brought to a common scale, by `Standardize` or `Quantiles` of `ltr.rankers.scorers`."""
OptimizerName = Literal["lbfgs", "adam"]
"""Optimizers of a fit."""
ScheduleName = Literal["constant", "cosine", "plateau"]
"""How the learning rate of Adam moves, see `ltr.fitting.FitOptions`."""
PrecisionName = Literal["auto", "full", "bfloat16"]
"""Precision of the scorer in mini-batches, see `ltr.fitting.FitOptions`."""
DeviceName = Literal["cpu", "cuda", "auto"]
"""Devices of a fit; auto is CUDA if there is such a device."""

ADAM_ONLY = ("batch_size", "schedule", "warmup", "weight_decay", "clip")
"""Options that L-BFGS does not have."""


def defaults_of(scorer: ScorerName, optimizer: OptimizerName | None = None) -> dict[str, Any]:
    """Return the options of a `ltr.rankers.SurrogateRanker` whose defaults follow the scorer and the optimizer.

    Examples:
        >>> defaults_of("linear")["optimizer"], defaults_of("mlp")["optimizer"]
        ('lbfgs', 'adam')
    """
    optimizer = optimizer or ("lbfgs" if scorer == "linear" else "adam")
    found: dict[str, Any] = {
        "optimizer": optimizer,
        "max_steps": 1000,
        "learning_rate": 0.01,
        "weight_decay": 0.0,
        "hidden": {"linear": None, "mlp": (64, 32), "attention": (64,)}[scorer],
        "dropout": 0.0,
        "scale": "standardize" if scorer == "linear" else "quantile",
    }
    if scorer != "linear" and optimizer == "adam":
        found |= {"max_steps": 200, "learning_rate": 1e-3, "weight_decay": 0.01}
        found |= {"dropout": 0.1} if scorer == "attention" else {"dropout": 0.3, "hidden": (256, 128)}
    return found
