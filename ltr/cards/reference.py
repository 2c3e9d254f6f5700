"""The linear scores that a card is compared with: those of a regression on the answers to all questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ltr.outcomes import Times, Treatments
from ltr.rankers.baselines import LogisticRegressionRanker

FloatArray = NDArray[np.float64]

_STRENGTH = 0.1  # inverse strength of the regularisation


@dataclass(frozen=True)
class Reference:
    """A linear score ``intercept + coefficients · answers`` of the answers to all questions, by a regression."""

    name: str
    coefficients: tuple[float, ...]
    intercept: float

    @classmethod
    def fit(cls, answers: FloatArray, y: NDArray[Any] | Times | Treatments) -> Reference:
        """Fit the regression to answers, (n, q), and labels of their kind, with a penalty on large coefficients.

        For treatments it is least squares of ``n z_i``, whose mean over rows with the same answers is about the effect.
        """
        if isinstance(y, Times):
            return cls("Cox regression", tuple(cox(answers, y, _STRENGTH)[0].tolist()), 0.0)
        if isinstance(y, Treatments):
            center, z = answers.mean(axis=0), len(answers) * y.z
            centred, target = answers - center, z - z.mean()
            # the penalty of the mean square of the target, so that the unit of the outcome makes no difference
            square = np.eye(answers.shape[1]) / _STRENGTH
            found = np.linalg.solve(centred.T @ centred + square, centred.T @ target)
            return cls("least squares of the effect", tuple(found.tolist()), float(z.mean() - center @ found))
        ranker = LogisticRegressionRanker(_STRENGTH, standardize=False).fit(answers, y)
        return cls("logistic regression", tuple(ranker.coef_.tolist()), ranker.intercept_)

    def scores(self, answers: FloatArray) -> FloatArray:
        """Return the scores of rows with these answers, (n,)."""
        found: FloatArray = answers @ np.array(self.coefficients) + self.intercept
        return found


def cox(answers: FloatArray, y: Times, strength: float, start: FloatArray | None = None) -> tuple[FloatArray, float]:
    """Return the coefficients with the largest partial likelihood minus ``|w|^2 / (2 strength)``, (q,), and that value.

    ``sum over events i of  w·x_i - log sum over rows k that are seen until t_i of exp(w·x_k)``: ties by Breslow.
    """
    order = np.argsort(-y.time, kind="stable")  # the rows seen longest first
    X, event, time = answers[order], y.event[order], y.time[order]
    last = np.searchsorted(-time, -time, "right") - 1  # of the rows seen until the time of each
    events = np.flatnonzero(event)
    total, at = X[events].sum(axis=0), last[events]

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        scores = X @ w
        scores -= scores.max()
        weights = np.exp(scores)
        seen = np.maximum(np.cumsum(weights)[at], np.finfo(np.float64).tiny)
        # what each row counts in the gradient: the sum over events up to its time of 1 / seen
        shares = np.zeros(len(X))
        np.add.at(shares, at, 1 / seen)
        shares = weights * np.cumsum(shares[::-1])[::-1]
        value = np.log(seen).sum() - scores[events].sum() + w @ w / (2 * strength)
        return float(value), shares @ X - total + w / strength

    first = np.zeros(answers.shape[1]) if start is None else start
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 1_000})
    return np.asarray(found.x, dtype=np.float64), -float(found.fun)
