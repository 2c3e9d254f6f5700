r"""Linear scorers that minimise a convex loss under constraints on their weights.

With Z the standardised features, ``w_j = u_j / scale_j`` the weights of the raw columns, and F a loss,

    minimise    F(Z u + b, y) + l2/2 ||u||²
    subject to  signs_j w_j >= 0,  rows · w >= 0,  w_j = 0 for forbidden columns,
                |u_j| >= 0.01 max_k |u_k| for required columns,  at most max_nonzeros weights that are not 0.

These are the constraints of `ExactRanker`, on the same scales. Signs are bounds, for which L-BFGS-B finds the optimum;
rows, and required columns whose weight would be too small, are linear inequalities, for which SLSQP does. What rounding
leaves of a violation is removed by a projection, so that the result satisfies `LinearConstraints.satisfied`.

*Which columns.* Where `max_nonzeros` is fewer than the columns that may be used, columns are added to the required ones
one at a time, each the one that lowers the objective most by its quadratic model; the weakest columns of the fit to all
columns are also removed until few enough are left; both sets are improved by exchanging columns for as long as that
lowers the objective, and the better one is taken. Nothing is random. The set need not be the best one: to prove that
takes a search like that of `ltr.exact`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, linprog, minimize, nnls

from ltr.exact.constraints import LinearConstraints
from ltr.exact.problem import LEAST_REQUIRED
from ltr.fitting.smoothing import HuberHinge
from ltr.losses import PairwiseHingeLoss, RankingLoss
from ltr.losses.derivatives import derivatives
from ltr.rankers.inputs import FloatArray, IntArray, weights_for_losses
from ltr.weight_constraints import WeightConstraints

__all__ = ["LinearFit", "check_possible", "fit_linear", "side_constraints_of"]

_WIDTHS = (1.0, 0.1, 0.01, 0.001)  # of the smoothed hinge, one after the other
_TRIED = 8  # exchanges of columns that are tried before the search ends
_GAIN = 1e-6  # relative fall of the objective for which columns are exchanged
_ROUGH, _FINE = (1e-8, 1e-4), (1e-15, 1e-9)  # tolerances of fits that are compared, and of the last one
_RESTARTS = 5
_PATTERNS = 10  # required columns without a stated sign whose signs are enumerated
_NOTHING = 1e-12  # weights below this share of the largest are rounding
_SAFE = 1 + 1e-6  # by which required weights are larger than they must be, for rounding
_OUT_OF_RANGE = 1e300  # the objective where scores leave the floating point range


@dataclass(frozen=True)
class LinearFit:
    """Weights of standardised features, (d,), that minimise an objective under constraints, and how that ended."""

    weights: FloatArray
    intercept: float
    objective: float
    steps: int
    converged: bool

    @property
    def used(self) -> IntArray:
        """Columns whose weight is not 0, ascending."""
        return np.flatnonzero(self.weights)


def fit_linear(
    loss: RankingLoss,
    Z: FloatArray,
    y: FloatArray,
    constraints: WeightConstraints,
    scale: FloatArray | None = None,
    *,
    lists: IntArray | None = None,
    weights: FloatArray | None = None,
    l2: float = 1e-4,
    bias: bool = False,
    names: Sequence[str] | None = None,
    max_iter: int = 10_000,
) -> LinearFit:
    """Return the linear scorer with the smallest loss plus penalty that satisfies constraints.

    The loss is convex; the hinge is smoothed over a width of 0.001 around its kink. Z are standardised features, (n,
    d), in which columns that do not vary are 0, and constraints bind the weights ``u / scale`` of the raw columns. `l2`
    is the price of half the squared weights; with `bias` all scores may shift, without a price.

    Raises ValueError for a loss that is not convex, and constraints that leave a required column without a weight.

    Examples:
        >>> from ltr.weight_constraints import read_constraints
        >>> from ltr.losses import RankNetLoss
        >>> rng = np.random.default_rng(0)
        >>> Z = rng.normal(size=(200, 4))
        >>> y = (Z @ [2.0, 1.0, -1.0, 0.2] + rng.normal(size=200) > 0).astype(float)
        >>> constraints = read_constraints(4, signs={2: "+"}, constraints=["x1 >= 2*x0"], max_nonzeros=2)
        >>> fit = fit_linear(RankNetLoss(), Z, y, constraints)
        >>> fit.used.tolist(), bool(abs(fit.weights[1] - 2 * fit.weights[0]) < 1e-9)
        ([0, 1], True)
    """
    if not loss.convex:
        raise ValueError(f"loss must be convex for constraints on weights, got {loss}; ranknet is")
    scale = np.ones(Z.shape[1]) if scale is None else scale
    given, labels = weights_for_losses(weights, lists, y), torch.from_numpy(np.ascontiguousarray(y, dtype=np.float64))
    cone = _Cone.of(constraints, scale, names)
    allowed = cone.usable(np.ptp(Z, axis=0) > 0, constraints.forbidden)
    search = _Search(loss, Z, labels, given, cone, l2, bias, max_iter)
    most = constraints.max_nonzeros
    free = most is None or most >= len(allowed)
    found = search.fit(allowed) if most is None or free else search.select(allowed, most)
    return search.with_required(found, allowed if free else None)


def check_possible(constraints: WeightConstraints, X: FloatArray, names: Sequence[str] | None = None) -> None:
    """Raise ValueError where it is known before a fit that no weights of raw columns, (n, d), satisfy constraints."""
    if not constraints.required:
        return
    varying = np.ptp(X, axis=0) > 0
    cone = _Cone.of(constraints, np.where(varying, X.std(axis=0), 1.0), names)
    allowed = cone.usable(varying, constraints.forbidden)
    if cone.free_signs > _PATTERNS:  # too many patterns to try them all
        return
    patterns = cone.sign_patterns([1.0] * len(constraints.required))
    if not any(cone.leaves(allowed, cone.at_least(signs, allowed), signs) for signs in patterns):
        raise cone.nothing_left()


def side_constraints_of(constraints: WeightConstraints) -> LinearConstraints | None:
    """Return signs and rows as side constraints on the weights of the raw columns; None where there are none."""
    rows = constraints.inequalities
    return LinearConstraints(-rows, np.zeros(len(rows))) if len(rows) else None


@dataclass(frozen=True, eq=False)
class _Cone:
    """The constraints on weights of standardised features."""

    signs: FloatArray  # 1, -1 or 0 for each column, (d,)
    rows: FloatArray  # factors of sums of weights that are at least 0, the largest of size 1, (rows, d)
    required: tuple[int, ...]
    exact: LinearConstraints | None  # signs and rows, on raw columns
    scale: FloatArray  # divisor of each raw column, (d,)
    names: list[str]

    @classmethod
    def of(cls, constraints: WeightConstraints, scale: FloatArray, names: Sequence[str] | None) -> _Cone:
        rows = constraints.rows / scale
        rows /= np.maximum(np.abs(rows).max(axis=1, keepdims=True, initial=0.0), np.finfo(np.float64).tiny)
        told = list(names) if names is not None else [f"x{j}" for j in range(len(scale))]
        return cls(constraints.signs, rows, constraints.required, side_constraints_of(constraints), scale, told)

    def usable(self, varying: NDArray[np.bool_], forbidden: Sequence[int]) -> IntArray:
        """Return the columns that may be used, ascending; raise ValueError for a required one that does not vary."""
        if constant := [self.names[j] for j in self.required if not varying[j]]:
            raise ValueError(f"required: {', '.join(constant)} cannot be used, for all rows have the same value")
        return np.flatnonzero(varying & ~np.isin(np.arange(len(varying)), forbidden))

    def leaves(self, support: IntArray, more: FloatArray, signs: dict[int, float]) -> bool:
        """Return whether weights of these columns exist that satisfy everything, with none of the required ones 0."""
        G = self.inequalities(support, more)
        gain = np.zeros(len(support))
        gain[np.searchsorted(support, list(signs))] = list(signs.values())
        found = linprog(-gain, A_ub=-G, b_ub=np.zeros(len(G)), bounds=(-1.0, 1.0))
        return bool(found.success) and -found.fun > 1e-7

    def nothing_left(self) -> ValueError:
        told = ", ".join(self.names[j] for j in self.required)
        return ValueError(f"required: the other constraints leave no weights with which {told} can be used")

    @property
    def free_signs(self) -> int:
        return sum(not self.signs[j] for j in self.required)

    def sign_patterns(self, first: Sequence[float]) -> Iterator[dict[int, float]]:
        """Yield signs of the weights of required columns: those stated, else both, these `first`."""
        pairs = zip(self.required, first, strict=True)
        choices = [(float(s),) if (s := self.signs[j]) else (own, -own) for j, own in pairs]
        for signs in itertools.product(*choices):
            yield dict(zip(self.required, signs, strict=True))

    def at_least(self, signs: dict[int, float], support: IntArray) -> FloatArray:
        """Return rows that keep the weights of required columns at a share of the size of each other, (rows, d)."""
        rows = []
        for j in self.required:
            for k in support.tolist():
                for share in (LEAST_REQUIRED * _SAFE, -LEAST_REQUIRED * _SAFE) if k != j else (0.0,):
                    row = np.zeros(len(self.signs))
                    row[[k, j]] = share, signs[j]
                    rows.append(row)
        return np.array(rows)

    def satisfied(self, u: FloatArray) -> bool:
        return self.exact is None or self.exact.satisfied(u / self.scale)

    def inequalities(self, support: IntArray, more: FloatArray | None = None) -> FloatArray:
        """Return signs, rows and further rows as factors of sums of the weights of some columns that are >= 0."""
        bound = np.diag(self.signs[support])[self.signs[support] != 0]
        return np.vstack([bound, self.rows[:, support], *([] if more is None else [more[:, support]])])

    def projected(self, u: FloatArray, more: FloatArray | None = None) -> FloatArray:
        """Return the nearest weights that satisfy signs and rows to the last digit that floating point has."""
        for _ in range(len(u) + 1):
            largest = np.abs(u).max(initial=0.0)
            u = np.where(np.abs(u) > _NOTHING * largest, u, 0.0)
            u = np.where(self.signs * u < 0, 0.0, u)
            if self.satisfied(u) and (more is None or (more @ u >= -_NOTHING * largest).all()):
                break
            support = np.flatnonzero(u)
            if (G := self.inequalities(support, more)).size:
                # the polar cone is spanned by -G: Moreau's decomposition
                with np.errstate(all="ignore"):
                    multipliers, _ = nnls(G.T, -u[support])
                u = u.copy()
                u[support] += G.T @ multipliers
        return u


@dataclass(eq=False)
class _Search:
    """Fits to sets of columns: the objective is loss plus penalty of their weights, and perhaps a bias."""

    loss: RankingLoss
    Z: FloatArray
    labels: torch.Tensor
    given: dict[str, torch.Tensor]  # lists and weights, as keywords of the loss
    cone: _Cone
    l2: float
    bias: bool
    max_iter: int
    known: dict[tuple[int, ...], LinearFit] = field(default_factory=dict)  # rough fits by their columns

    # the objective

    @property
    def stages(self) -> list[Callable[..., torch.Tensor]]:
        """The losses to minimise one after the other: that of a hinge is smoothed less and less."""
        if type(self.loss) is PairwiseHingeLoss:
            return [HuberHinge(self.loss, width) for width in _WIDTHS]
        return [self.loss]

    def at(self, columns: FloatArray, x: FloatArray, loss: Callable[..., torch.Tensor]) -> tuple[float, FloatArray]:
        """Return the objective and its gradient by the weights of these columns, and by the bias where there is one."""
        own = x[: columns.shape[1]]
        value, slopes = self._slopes(columns @ own + (x[-1] if self.bias else 0.0), loss)
        if not math.isfinite(value):
            return _OUT_OF_RANGE, np.zeros_like(x)
        gradient = columns.T @ slopes + self.l2 * own
        return value + self.l2 / 2 * float(own @ own), np.append(gradient, slopes.sum()) if self.bias else gradient

    def gradient(self, fit: LinearFit) -> FloatArray:
        _, slopes = self._slopes(self.Z @ fit.weights + fit.intercept, self.stages[-1])
        return self.Z.T @ slopes + self.l2 * fit.weights

    def curvature(self, fit: LinearFit, columns: IntArray) -> FloatArray:
        """Return about the second derivatives of the objective by the weights of some columns, (columns, columns)."""
        Z, scores = self.Z[:, columns], torch.from_numpy(self.Z @ fit.weights + fit.intercept)
        lists = self.given.get("qid", torch.zeros(len(Z), dtype=torch.int64))
        try:
            h = derivatives(self.loss, scores, self.labels, lists, weight=self.given.get("weight"))[1].numpy()
        except NotImplementedError:  # a loss of a user's own
            h = np.ones(len(Z))
        of_lists = self.given.get("list_weight")
        if of_lists is not None:
            h = h * of_lists.numpy() / float(of_lists.mean())
        h = h / max(len(torch.unique(lists)), 1) if h.sum() > 0 else np.full(len(Z), 1.0 / len(Z))
        centred = Z - h @ Z / h.sum()  # a shift of all scores makes no difference, or the bias takes it
        return centred.T @ (h[:, None] * centred) + self.l2 * np.eye(len(columns))

    def _slopes(self, scores: FloatArray, loss: Callable[..., torch.Tensor]) -> tuple[float, FloatArray]:
        if not np.isfinite(scores).all():
            return math.inf, np.zeros_like(scores)
        leaf = torch.from_numpy(scores).requires_grad_()
        value = loss(leaf, self.labels, **self.given)
        if value.ndim != 0:
            raise ValueError(f"loss must give one number, got shape {tuple(value.shape)}; set its reduction to 'mean'")
        slopes = torch.autograd.grad(value, leaf)[0] if value.requires_grad else torch.zeros_like(leaf)
        return float(value.detach()), slopes.numpy()

    # fits

    def rough(self, support: Iterable[int], start: LinearFit | None = None) -> LinearFit:
        key = tuple(sorted(support))
        if key not in self.known:
            self.known[key] = self.fit(np.array(key, dtype=np.int64), start, tolerances=_ROUGH)
        return self.known[key]

    def fit(
        self,
        support: IntArray,
        start: LinearFit | None = None,
        more: FloatArray | None = None,
        *,
        tolerances: tuple[float, float] = _FINE,
    ) -> LinearFit:
        """Return the optimum with these columns, ascending, where further sums of weights may have to be at least 0."""
        cone, signs = self.cone, self.cone.signs[support]
        columns = np.ascontiguousarray(self.Z[:, support])
        x = np.zeros(len(support) + self.bias)
        if start is not None:
            x = np.append(start.weights[support], [start.intercept] * self.bias)
        bounds = [(0.0 if s > 0 else None, 0.0 if s < 0 else None) for s in signs] + [(None, None)] * self.bias
        rows = cone.inequalities(support, more)[np.count_nonzero(signs) :]
        rows = rows[np.abs(rows).max(axis=1, initial=0.0) > 0]
        steps, converged = 0, True
        for loss in self.stages:

            def value(at: FloatArray, loss: Callable[..., torch.Tensor] = loss) -> tuple[float, FloatArray]:
                return self.at(columns, at, loss)

            if x.size == 0:
                break
            options: dict[str, float] = {"maxiter": self.max_iter, "maxfun": 2 * self.max_iter, "maxcor": 30}
            options |= {"ftol": tolerances[0], "gtol": tolerances[1]}
            found = minimize(value, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
            if len(rows) and (rows @ found.x[: len(support)] < 0).any():
                at = found.x.copy()
                at[: len(support)] = cone.projected(self._spread(at, support), more)[support]
                found = self._with_rows(value, at, bounds, rows, tolerances[0])
            x, steps, converged = found.x, int(found.nit), bool(found.success)
        weights = cone.projected(self._spread(x, support), more)
        bias = float(x[-1]) if self.bias else 0.0
        at = np.append(weights[support], [bias] * self.bias)
        return LinearFit(weights, bias, self.at(columns, at, self.loss)[0], steps, converged)

    def _spread(self, x: FloatArray, support: IntArray) -> FloatArray:
        weights = np.zeros(self.Z.shape[1])
        weights[support] = x[: len(support)]
        return weights

    def _with_rows(
        self,
        value: Callable[[FloatArray], tuple[float, FloatArray]],
        start: FloatArray,
        bounds: list[tuple[float | None, float | None]],
        rows: FloatArray,
        tolerance: float,
    ) -> OptimizeResult:
        """Minimise where sums of weights are at least 0."""
        A = np.hstack([rows, np.zeros((len(rows), len(start) - rows.shape[1]))])
        options = {"maxiter": self.max_iter, "ftol": tolerance}
        constraint = {"type": "ineq", "fun": lambda x: A @ x, "jac": lambda x: A}
        given = {"jac": True, "method": "SLSQP", "bounds": bounds, "constraints": [constraint], "options": options}
        found = minimize(value, start, **given)
        for _ in range(_RESTARTS):  # it may end early, where its own picture of the curvature is off
            again = minimize(value, found.x, **given)
            gain, found = found.fun - again.fun, again if again.fun < found.fun else found
            if gain <= 1e-10 * abs(found.fun):
                break
        return found

    def select(self, allowed: IntArray, most: int) -> LinearFit:
        """Return the best fit found with at most so many of these columns."""
        needed = set(self.cone.required)
        ends = []
        for found in (self._grown(allowed, most, needed), self._pruned(allowed, most, needed)):
            better: LinearFit | None = found
            while better is not None:
                found, better = better, self._exchanged(better, allowed, most, needed)
            ends.append(found)
        found = min(ends, key=lambda fit: fit.objective)
        return self.fit(found.used, found)

    def _grown(self, allowed: IntArray, most: int, needed: set[int]) -> LinearFit:
        """Add columns one at a time, the one that is expected to lower the objective most first."""
        support = set(needed)
        found = self.rough(support)
        while len(support) < most:
            gains, _ = self._expected(found, sorted(support), allowed)
            j = int(np.argmax(gains))
            if gains[j] <= 0:
                break
            support.add(int(allowed[j]))
            found = self.rough(support, found)
        return found

    def _pruned(self, allowed: IntArray, most: int, needed: set[int], start: set[int] | None = None) -> LinearFit:
        """Start from all columns, or from some, and remove the weakest, half of those too many at a time."""
        found = self.rough(allowed.tolist() if start is None else start)
        support = needed | set(found.used.tolist())
        while len(support) > most:
            free = sorted(support - needed, key=lambda j: (abs(found.weights[j]), j))
            support -= set(free[: -(-(len(support) - most) // 2)])
            found = self.rough(support, found)
            support = needed | set(found.used.tolist())
        return found

    def _exchanged(self, found: LinearFit, allowed: IntArray, most: int, needed: set[int]) -> LinearFit | None:
        """Return a better fit with one column exchanged for another, or added; None where none is found.

        Columns that a row ties together are tried together, for one may be of no use without the other.
        """
        support = sorted(needed | set(found.used.tolist()))
        gains, costs = self._expected(found, support, allowed)
        if len(support) < most:
            tried = [{*support, int(allowed[j])} for j in np.argsort(-gains, kind="stable")[:_TRIED] if gains[j] > 0]
        else:
            free = [k for k, column in enumerate(support) if column not in needed]
            net = gains[:, None] - costs[:, free]
            pairs = zip(*np.unravel_index(np.argsort(-net, axis=None, kind="stable"), net.shape), strict=True)
            best = itertools.islice(((j, free[k]) for j, k in pairs if gains[j] > 0), _TRIED)
            tried = [{*support, int(allowed[j])} - {support[k]} for j, k in best]
        single = (self.rough(columns, found) for columns in tried)
        tied = (set(np.flatnonzero(row).tolist()) & set(allowed.tolist()) for row in self.cone.rows)
        fits = itertools.chain(single, (self._pruned(allowed, most, needed, {*support, *more}) for more in tied))
        return next((fit for fit in fits if fit.objective < found.objective - _GAIN * abs(found.objective)), None)

    def _expected(self, found: LinearFit, support: list[int], allowed: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much the objective is expected to fall and to rise, in its quadratic model at a fit.

        The fall is that where each allowed column is added, (allowed,), 0 for those of the support and those whose sign
        is against it; the rise that where then a column of the support is removed, (allowed, support).
        """
        slope, H = self.gradient(found)[allowed], self.curvature(found, allowed)
        at = np.searchsorted(allowed, support)
        inverse = np.linalg.pinv(H[np.ix_(at, at)], hermitian=True)
        K = inverse @ H[at]
        partial = np.maximum(np.diag(H) - np.einsum("kj,kj->j", H[at], K), _NOTHING * np.diag(H))
        partial = np.where(partial > 0, partial, math.inf)
        step, signs = -slope / partial, self.cone.signs[allowed]
        step = np.where(signs * step < 0, 0.0, step)
        step[at] = 0.0
        moved = found.weights[support] - (K * step).T
        spread = np.diag(inverse) + (K**2 / partial).T
        return step**2 * partial / 2, moved**2 / (2 * np.maximum(spread, np.finfo(np.float64).tiny))

    def with_required(self, found: LinearFit, allowed: IntArray | None) -> LinearFit:
        """Return a fit in which the weights of required columns are large enough, `found` where they are."""
        cone = self.cone
        needed = list(cone.required)
        if not needed or _large_enough(found.weights, needed):
            return found
        support = np.array(sorted({*needed, *found.used.tolist()})) if allowed is None else allowed
        slope = self.gradient(found)
        first = [float(np.sign(found.weights[j]) or -np.sign(slope[j]) or 1.0) for j in needed]
        # too many patterns to try them all leave the first one
        for signs in itertools.islice(cone.sign_patterns(first), 1 if cone.free_signs > _PATTERNS else None):
            more = cone.at_least(signs, support)
            if cone.leaves(support, more, signs):
                fit = self.fit(support, more=more)
                if not _large_enough(fit.weights, needed):
                    rule = "of all weights that the constraints allow, the loss is smallest where no column is used"
                    raise ValueError(f"required: {', '.join(cone.names[j] for j in needed)} cannot be used: {rule}")
                return fit
        raise cone.nothing_left()


def _large_enough(weights: FloatArray, needed: Sequence[int]) -> bool:
    size = np.abs(weights)
    return bool((size[list(needed)] >= LEAST_REQUIRED * max(size.max(), np.finfo(float).tiny)).all())
