"""Risk scores: whole points and a whole intercept, and their logistic loss; `ltr.verify` defines the terms."""

from __future__ import annotations

import decimal
from fractions import Fraction

from .cards import LARGEST, Pointed
from .file import CertificateError, Json, Progress, entries, integers, require, size_and_price, sized

DIGITS = 60  # of the logarithms and exponentials, whose last digit alone is rounded
FAR = 60  # total from which on log(1 + x), x = exp(-total), is taken as x - x^2 / 2, which is right to 50 digits


class Risk(Pointed):
    """The problem of a file of the kind "risk", checked: `numbers` are the values of each column, times the unit.

    `rows` has the label and the weight of each row; weights add up to 1.
    """

    def __init__(self, content: dict[str, Json], progress: Progress | None = None) -> None:
        self.progress = progress or Progress()
        n, self.C = size_and_price(content)
        X, y = content["X"], entries(content, "y", n, lambda label: label in (0, 1), "be 0 or 1")
        require(0 < sum(y) < n, "problem.y", "must hold both labels")
        weights = [Fraction(v) for v in entries(content, "row_weights", n, lambda weight: weight > 0, "be > 0")]
        total = sum(weights)
        self.rows = [(label, weight / total) for label, weight in zip(y, weights, strict=True)]
        whole, self.unit = integers([v for row in X for v in row])
        self.numbers = [whole[j :: len(X[0])] for j in range(len(X[0]))]
        self.read_conditions(content, len(X[0]))
        self.intercept = content["intercept"]
        if self.intercept is not None:
            sized(self.intercept, 2, "problem.intercept")
            require(self.intercept[0] <= self.intercept[1], "problem.intercept", "must be the least and the largest")

    def size(self) -> Fraction:
        """Return 0, the loss of perfect chances."""
        return Fraction(0)

    def value(self, weights: list[float]) -> Fraction:
        """Return minus the loss of points and an intercept, minus the price of the columns."""
        *points, intercept = map(int, weights)
        used = [(w, self.numbers[j]) for j, w in enumerate(points) if w]
        shares: dict[tuple[int, int], Fraction] = {}  # the weight of the rows of each total and label
        for i, (label, weight) in enumerate(self.rows):
            self.progress.tick(steps=1 + len(used))
            key = sum(w * column[i] for w, column in used) + intercept * self.unit, label
            shares[key] = shares.get(key, Fraction(0)) + weight
        loss = sum(weight * self.loss(Fraction(total, self.unit), label) for (total, label), weight in shares.items())
        return -loss - self.C * len([j for j, w in enumerate(points) if w and j not in self.free])

    def loss(self, total: Fraction, label: int) -> Fraction:
        """Return log(1 + exp(-total)) for the label 1, log(1 + exp(total)) for 0, to fifty digits at least."""
        self.progress.tick(steps=100)
        against = -total if label else total
        with decimal.localcontext(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX):
            size = decimal.Decimal(abs(total).numerator) / decimal.Decimal(abs(total).denominator)
            x = (-size).exp()
            rest = (1 + x).ln() if size < FAR else x - x * x / 2
        return max(against, Fraction(0)) + Fraction(rest)

    def check_weights(self, weights: list[float]) -> None:
        """Check that points and intercept are allowed."""
        *points, intercept = weights
        whole = intercept == int(intercept) and abs(intercept) <= LARGEST
        require(whole, f"weights[{len(points)}]", f"must be a whole number, got {intercept!r}")
        self.check_points(points)
        if self.intercept is not None:
            low, high = self.intercept
            words = f"is the intercept, which must be from {low} to {high}, got {intercept:g}"
            require(low <= intercept <= high, f"weights[{len(points)}]", words)

    def prove(self, bound: Fraction | None, partition: list[str]) -> str:
        """Refuse a proof: this program proves no bound of a loss."""
        raise CertificateError("proof: must be null for a risk score: this program proves no bound of its loss")
