"""The callback by which an XGBRanker of XGBoost is trained on an `ltr.gbdt.Objective`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgboost import Booster
from xgboost.callback import TrainingCallback


class ObjectiveCallback(TrainingCallback):
    """Give an objective to every round of a training whose caller passes none."""

    def __init__(self, objective: Callable[..., Any]) -> None:
        self.objective = objective

    def before_training(self, model: Booster) -> Booster:
        """Let the booster take its gradients from the objective."""
        update = model.update

        def with_objective(dtrain: Any, iteration: int, fobj: Any = None) -> None:  # noqa: ANN401 - XGBoost's types
            update(dtrain, iteration, fobj=self.objective)

        vars(model)["update"] = with_objective
        return model

    def after_training(self, model: Booster) -> Booster:
        """Take the booster's own method back, so that it can be pickled."""
        vars(model).pop("update", None)
        return model
