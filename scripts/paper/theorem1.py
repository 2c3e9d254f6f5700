"""The paper's first theorem: two opposite rankings of one data set, what training on it gives, and exact reranking."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from scipy.optimize import brentq
from torch import Tensor

from ltr.data import Dataset, theorem1
from ltr.display.pictures import GREY, INK, POSITIVE, SMALL
from ltr.exact import Limits, RerankProblem, Solution, Status, solve
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.fitting import Fit, FitOptions
from ltr.losses import parse_loss
from ltr.metrics import evaluate, rank_statistic
from ltr.rankers import ExactRanker, TwoStageRanker, make_ranker
from ltr.rankers.scorers import LinearScorer
from trainers.report.pictures import drawing as draw

CLAIMS = {"auc": 1, "pauc@100": 1, "dcg": 1, "mrr": 1, "hinge": 1, "dcg@100": 2, "pauc@10": 2, "exponential": 2}
"""The statistics and losses of the theorem, each with the solution that it is said to prefer."""
FIRST_HIT = "mrr of the first positive"
"""The reciprocal rank as it is usually defined: that of the first positive alone."""
CONVEX = (
    "hinge", "exponential", "squared_hinge", "ranknet", "p_norm_push(p=2)", "p_norm_push(p=4)", "logistic", "list_net",
    "list_mle",
)  # fmt: skip
EXACT = tuple(name for name in CLAIMS if name not in CONVEX)
"""The theorem's statistics."""

_STATISTICS = ("auc", "pauc@100", "dcg", "mrr", "dcg@100", "pauc@10", "dcg@10", "power(p=4)", "wta")
_SMOOTH = ("smooth(statistic=dcg)", "smooth(statistic=dcg@100)")
_LOWEST, _FAR = -5.0, -40.0  # the lowest clump is below the one; our own example moves it to the other
_SMALLEST, _LARGEST = 1e-2, 8.0  # factors of x between which preferences are compared
_TOP_K = 100  # items that the exact stage reranks in two stages
_L2 = 1e-6  # a penalty, so that the distance to the optimum is bounded
_TIME = 600.0
_SOLUTIONS = {1: "#0072b2", 2: "#d55e00"}
_NEGATIVE = "#3b4148"
_CURVES = {
    "exponential": "#d55e00", "p_norm_push(p=2)": "#cc79a7", "squared_hinge": "#e69f00", "hinge": "#0072b2",
    "ranknet": "#009e73",
}  # fmt: skip


def first_theorem(seeds: Sequence[int] = (0, 1, 2), make: Callable[[int], Dataset] = theorem1) -> dict[str, Any]:
    """Compute everything that the page says about the theorem; pictures, fits and solves use the first seed's data."""
    data = make(seeds[0])
    far, comparisons, found = moved(data), compare(seeds, make), rankings(data)
    solved = {name: solve_exactly(name, data) for name in EXACT}
    better = {name: max(found["Solution 1"][name], found["Solution 2"][name]) for name in EXACT}
    sign = {name: 1 if CLAIMS[name] == 1 else -1 for name in EXACT}
    x, positive = data.X[:, 0], data.y == 1
    return {
        "data": data,
        "draws": len(seeds),
        "claims": CLAIMS,
        "first_hit": FIRST_HIT,
        "comparisons": {c.name: c for c in comparisons},
        "preferences": who_prefers_what(data, comparisons),
        "smooth": [(c, next(s for s in comparisons if s.name == str(parse_loss(c.name).statistic)))
                   for c in comparisons if c.name in _SMOOTH],
        "scales": {name: turning_scale(name, data) for name in CONVEX},
        "trained": [(train(name, data), train(name, far)) for name in CONVEX],
        "means": [float(set_.X[positive, 0].mean() - set_.X[~positive, 0].mean()) for set_ in (data, far)],
        "losses": loss_curves({"the theorem's data": data, f"the lowest clump at −{-_FAR:g}": far}),
        "lowest": int((x < _LOWEST).sum()),
        "solved": solved,
        "right": [n for n, s in solved.items() if s.status is Status.OPTIMAL and s.weights[0] * sign[n] > 0],
        "rankings": found,
        "best": {name: max(own[name] for own in found.values()) * (1 - 1e-12) for name in EXACT},
        "beaten": {name: [n for n in EXACT if own[n] >= better[n]] for name, own in found.items()},
        "top_negatives": int((data.y[np.argsort(-x)[:_TOP_K]] == 0).sum()),
    }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """A statistic, measure or loss of both solutions, with a value for each draw of the data."""

    name: str
    kind: str  # "statistic", "measure", or "loss", of which the smaller value is preferred
    first: tuple[float, ...]  # values of Solution 1
    second: tuple[float, ...]

    @property
    def preferred(self) -> int | None:
        """The preferred solution, 1 or 2; None if the draws disagree or the values are equal."""
        sign = -1 if self.kind == "loss" else 1
        pairs = list(zip(self.first, self.second, strict=True))
        first = {sign * a > sign * b for a, b in pairs}
        return None if len(first) != 1 or any(a == b for a, b in pairs) else 1 if first.pop() else 2

    @property
    def advantage(self) -> float:
        """The difference of the first draw's values, as a share of the larger one."""
        return abs(self.first[0] - self.second[0]) / max(abs(self.first[0]), abs(self.second[0]))

    @property
    def spread(self) -> float:
        """The largest relative deviation of a draw from the first."""
        pairs = [(values[0], value) for values in (self.first, self.second) for value in values[1:]]
        return max((abs(value - own) / abs(own) for own, value in pairs if own), default=0.0)


def compare(seeds: Sequence[int] = (0, 1, 2), make: Callable[[int], Dataset] = theorem1) -> list[Comparison]:
    """Compare Solution 1, with the scores x, and Solution 2, with the scores -x, on the data of each seed."""
    data = [scores_and_labels(make(seed)) for seed in seeds]

    def measured(name: str, kind: str, of: Callable[[Tensor, Tensor], Any]) -> Comparison:
        return Comparison(name, kind, *(tuple(float(of(sign * x, y)) for x, y in data) for sign in (1, -1)))

    return [
        *(measured(name, "statistic", lambda x, y, name=name: rank_statistic(x, y, name)) for name in _STATISTICS),
        measured(FIRST_HIT, "measure", lambda x, y: evaluate(x, y, ["mrr"])["mrr"]),
        *(measured(name, "loss", parse_loss(name)) for name in (*CONVEX, *_SMOOTH)),
    ]


def turning_scale(name: str, data: Dataset) -> float | None:
    """Return the factor of x from which a loss prefers another solution than near 0; None if there is none up to 8."""
    loss, (x, y) = parse_loss(name), scores_and_labels(data)

    def difference(scale: float) -> float:
        return float(loss(scale * x, y) - loss(-scale * x, y))

    if difference(_SMALLEST) * difference(_LARGEST) > 0:
        return None
    return float(brentq(difference, _SMALLEST, _LARGEST, rtol=1e-4))


def moved(data: Dataset) -> Dataset:
    """Return the data with its lowest clump, the positives near -10, at -40: no two observations change their order."""
    X, low = data.X.copy(), data.X[:, 0] < _LOWEST
    X[low] += _FAR - np.round(X[low].mean())
    return Dataset(data.name, X, data.y)


def scores_and_labels(data: Dataset) -> tuple[Tensor, Tensor]:
    """Return the one feature as scores, and the labels."""
    return torch.from_numpy(data.X[:, 0].copy()), torch.from_numpy(data.y.copy())


@dataclass(frozen=True)
class Trained:
    """A convex loss, minimised over the linear scorers w x of one feature."""

    loss: str
    slope: float  # derivative of the loss by w at w = 0, with the best bias there (for losses that depend on one)
    weight: float  # the w with the smallest objective
    gap: float  # largest possible distance of the objective to its minimum, relative to it

    @property
    def solution(self) -> int:
        """The ranking that training ends with: 1 for a positive weight, 2 for a negative one.

        A convex function that falls at 0 has its minimisers above 0, so the slope decides; the weight must agree.

        Raises:
            ArithmeticError: the weight does not agree.
        """
        if self.slope * self.weight >= 0:
            raise ArithmeticError(f"{self.loss}: a weight of {self.weight} does not follow a slope of {self.slope}")
        return 1 if self.slope < 0 else 2


def train(name: str, data: Dataset) -> Trained:
    """Fit a linear scorer of one feature to a convex loss."""
    loss, (x, y) = parse_loss(name), scores_and_labels(data)
    bias = math.log(data.n_pos / (data.n - data.n_pos)) if name == "logistic" else 0.0
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(loss(w * x + bias, y), w)
    scorer = LinearScorer(1)
    *_, last = Fit(scorer, loss, data.X, data.y, FitOptions(l2=_L2))
    return Trained(name, float(slope), scorer.weight.item(), last.gap / last.objective)


def solve_exactly(name: str, data: Dataset) -> Solution:
    """Return the linear scorer of the full list with the largest statistic, proven."""
    return solve(RerankProblem(data.X, data.y, name), WeightSpaceSearch(threads=1), limits=Limits(time_limit=_TIME))


def rankings(data: Dataset) -> dict[str, dict[str, float]]:
    """Return the theorem's statistics of both solutions, of RankNet with its top reranked, and of RankBoost."""
    x = data.X[:, 0]
    two_stage = TwoStageRanker(
        "ranknet", ExactRanker(f"dcg@{_TOP_K}", method=WeightSpaceSearch(threads=1)), _TOP_K, choose=False
    )
    scores = {
        "Solution 1": x,
        "Solution 2": -x,
        f"RankNet, its top {_TOP_K} reranked exactly": two_stage.fit(data.X, data.y).decision_function(data.X),
        "RankBoost on thresholds": make_ranker("rankboost").fit(data.X, data.y).decision_function(data.X),
    }
    y = torch.from_numpy(data.y.copy())
    return {
        ranking: {name: float(rank_statistic(torch.from_numpy(own.copy()), y, name)) for name in EXACT}
        for ranking, own in scores.items()
    }


# --- pictures -----------------------------------------------------------------------------------------------------


def who_prefers_what(data: Dataset, comparisons: Sequence[Comparison]) -> Figure:
    """Draw the data on its line, and beside it by how much each statistic and loss prefers which solution."""
    figure = draw.canvas(4.9, draw.WIDE)
    line, chart = figure.subplots(1, 2, width_ratios=[1.0, 1.75])
    _draw_data(line, data)
    _draw_preferences(chart, comparisons)
    common = {"marker": "o", "linestyle": ""}
    entries = [
        draw.entry("positive", color=POSITIVE, markersize=4, **common),
        draw.entry("negative", color=_NEGATIVE, markersize=4, **common),
        draw.entry("named by the theorem", color=GREY, **common),
        draw.entry("not named", color=GREY, markerfacecolor="white", **common),
    ]
    draw.legend(figure, entries)
    return figure


def _draw_data(axes: Axes, data: Dataset) -> None:
    draw.dress(axes, "the data")
    x, across = data.X[:, 0], np.random.default_rng(0).uniform(0.0, 1.0, data.n)
    for label, colour, what in ((0, _NEGATIVE, "negatives"), (1, POSITIVE, "positives")):
        chosen = data.y == label
        axes.plot(across[chosen], x[chosen], "o", color=colour, markersize=1.4, markeredgewidth=0)
        own = np.sort(x[chosen])
        for clump in np.split(own, np.flatnonzero(np.diff(own) > 0.5) + 1):
            place = (1.06, float(np.mean(clump)))
            axes.annotate(f"{len(clump):,} {what}", place, fontsize=SMALL, va="center", color=colour)
    top, bottom = x.max() + 1.2, x.min() - 1.2
    for place, solution, (start, end) in ((0.3, 1, (top, bottom)), (0.7, 2, (bottom, top))):
        arrow = {"arrowstyle": "-|>", "color": _SOLUTIONS[solution], "linewidth": 1.6}
        axes.annotate("", (place, end * 0.55 + start * 0.45), (place, start * 0.55 + end * 0.45), arrowprops=arrow)
        axes.text(
            place, (top + bottom) / 2 - 1.3, f"Solution {solution}", rotation=90, fontsize=SMALL, ha="center",
            va="top", color=_SOLUTIONS[solution],
        )  # fmt: skip
    axes.set_xlim(-0.05, 2.25)
    axes.set_ylim(bottom, top)
    axes.set_ylabel("x", fontsize=SMALL, color=INK)
    axes.set_xticks([])
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)


def _draw_preferences(axes: Axes, comparisons: Sequence[Comparison]) -> None:
    draw.dress(axes, "who prefers which solution")
    signed = {c.name: c.advantage if c.preferred == 1 else -c.advantage for c in comparisons}
    order = sorted(comparisons, key=lambda c: (c.kind == "loss", -signed[c.name]))
    places = [len(order) - at - (0.0 if c.kind != "loss" else 0.9) for at, c in enumerate(order)]
    for place, comparison in zip(places, order, strict=True):
        share, colour = signed[comparison.name], _SOLUTIONS[comparison.preferred or 1]
        face = colour if comparison.name in CLAIMS else "white"
        axes.plot([0, share], [place, place], color=colour, linewidth=1.4)
        axes.plot(share, place, "o", color=colour, markersize=5.5, markerfacecolor=face)
        if abs(share) < 0.75:
            axes.annotate(
                f"{100 * abs(share):.2g}%", (share, place), (6 if share > 0 else -6, 0), textcoords="offset points",
                fontsize=SMALL - 1.5, color=GREY, va="center", ha="left" if share > 0 else "right",
            )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(places, [c.name for c in order], fontsize=SMALL - 0.5)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(-1.12, 1.12)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * abs(share):g}%"))
    axes.set_xlabel("← Solution 2        Solution 1 →", fontsize=SMALL, color=INK)
    first_loss = next(at for at, c in enumerate(order) if c.kind == "loss")
    for text, place in (("statistics", places[0]), ("losses", places[first_loss])):
        axes.text(-1.08, place, text, fontsize=SMALL, color=GREY, va="center", style="italic")


def loss_curves(cases: Mapping[str, Dataset]) -> Figure:
    """Draw losses of the scores w x against w, as shares of their value at 0, with their smallest values."""
    figure = draw.canvas(3.3, draw.WIDE)
    weights = np.linspace(-1.3, 1.3, 105)
    for axes, (title, data) in zip(figure.subplots(1, len(cases), sharey=True), cases.items(), strict=True):
        draw.dress(axes, title)
        x, y = scores_and_labels(data)
        for name, colour in _CURVES.items():
            loss = parse_loss(name)
            values = torch.stack([loss(w * x, y) for w in torch.from_numpy(weights)]).numpy() / float(loss(0 * x, y))
            axes.plot(weights, values, color=colour, linewidth=1.5)
            least = int(np.argmin(values))
            axes.plot(weights[least], values[least], "o", color=colour, markersize=5, markeredgecolor="white", zorder=4)
        for end in (-1, 1):
            axes.axvline(end, color=GREY, linewidth=0.9, linestyle=(0, (2, 2)))
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.set_yscale("log")
        axes.set_ylim(0.25, 40)
        axes.set_yticks([0.3, 1, 3, 10, 30])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("w   (← Solution 2 | Solution 1 →)", fontsize=SMALL, color=INK)
    figure.axes[0].set_ylabel("loss / loss at w = 0", fontsize=SMALL, color=INK)
    draw.legend(figure, [draw.entry(name, color=colour) for name, colour in _CURVES.items()])
    return figure
