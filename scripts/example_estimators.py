"""Compare rankers by cross-validation, with scikit-learn and nothing else: ``python scripts/example_estimators.py``.

Each ranker is tuned on the training part of every fold, by a grid search of its own, and judged on the rest by the DCG
of the whole list and the area under the ROC curve. Takes any data set of `ltr.data.load`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ltr.data import load
from ltr.exact import Limits
from ltr.rankers import ExactRanker, LinearRanker, TwoStageRanker


def searches(top_k: int, folds: int) -> dict[str, BaseEstimator]:
    """A grid search for each ranker."""
    limits = Limits(node_limit=2000)
    rankers = {
        "linear": (LinearRanker(), {"loss": ["ranknet", "hinge", "logistic"], "l2": [1e-4, 1e-2]}),
        "reranked": (TwoStageRanker("logistic", ExactRanker(limits=limits), top_k), {"top_k": [top_k, 2 * top_k]}),
        "exact": (ExactRanker(recentre="l2", limits=limits), {"C": [0.0, 0.1]}),
    }
    inner = StratifiedKFold(folds, shuffle=True, random_state=1)
    return {
        name: GridSearchCV(
            make_pipeline(StandardScaler(), ranker),
            {f"{type(ranker).__name__.lower()}__{key}": values for key, values in grid.items()},
            cv=inner,
        )
        for name, (ranker, grid) in rankers.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Print mean and standard deviation over the folds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="gaussians", help="name of a data set")
    parser.add_argument("--rows", type=int, help="take only so many rows")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--top-k", type=int, default=100, help="items to rerank")
    options = parser.parse_args(arguments)
    data = load(options.data)
    X, y = data.X[: options.rows], data.y[: options.rows]
    print(f"{data.name}: {len(y)} rows, {data.d} features, {y.sum()} positives; {options.folds} folds")
    outer = StratifiedKFold(options.folds, shuffle=True, random_state=0)
    for name, search in searches(options.top_k, options.folds).items():
        scoring = {"dcg": lambda model, X, y: model.score(X, y), "auc": "roc_auc"}  # the rankers' own score is the DCG
        found = cross_validate(search, X, y, cv=outer, scoring=scoring, error_score="raise")
        dcg, auc, seconds = found["test_dcg"], found["test_auc"], np.sum(found["fit_time"])
        print(f"{name:10} dcg {dcg.mean():8.4f} ±{dcg.std():7.4f}   auc {auc.mean():.4f}   {seconds:6.1f} s")


if __name__ == "__main__":
    main()
