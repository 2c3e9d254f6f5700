"""Print the library's numbers on fixed inputs, a line each; `diff` finds what a change of the code has changed.

    python scripts/check_numbers.py > before.txt           # a part of it: metrics, losses, training, exact
    python scripts/check_numbers.py > after.txt; diff before.txt after.txt

There are losses with their gradients, metrics, surrogates after a few steps of training, exact solutions, centred
weights and certificates. Floats are written to the last bit. Everything is seeded, runs on one thread and ends after a
number of nodes or restarts, so two runs on one machine print the same.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from ltr.exact import Limits, LinearConstraints, PairwiseProblem, RerankProblem, certify, solve
from ltr.exact.largest_margin import maximise_margin
from ltr.exact.problem import Problem
from ltr.exact.weight_space import WeightSpaceSearch
from ltr.losses import parse_loss
from ltr.losses.parsing import LOSSES as KNOWN_LOSSES
from ltr.metrics import evaluate
from ltr.rankers import SurrogateRanker

Numbers = Iterator[tuple[str, Any]]
"""Names with numbers, or lists of numbers."""

LOSSES = (
    *KNOWN_LOSSES,  # each with its default options
    *("ranknet(pairs=sum)", "p_norm_push(p=2)", "p_norm_push(p=4,inner=logistic)"),
    *("lambda(statistic=mrr@5,gain=linear)", "smooth(statistic=dcg@10)"),
    *("smooth(statistic=dcg,temperature=0.1,gain=linear)", "smooth(statistic=wrs,pairs=sum)"),
    *("smooth(statistic=pauc@4)", "smooth(statistic=power(p=3))"),
)
BINARY_LOSSES = ("smooth(statistic=auc)", "lambda(statistic=auc)")
MEASURES = (
    *("wrs", "pauc@3", "wta", "mrr", "mrr@5", "dcg", "dcg@5", "dcg(base=e)", "dcg(base=10)@7"),
    *("power(p=4)", "power(p=0.5)@4"),
    *("ndcg", "ndcg@5", "ndcg(gain=linear)@10", "mrr@3", "map", "precision@5", "recall@5"),
    *("statistic(mrr)", "normalized(pauc@4)", "normalized(power(p=2))", "dcg(base=e,gain=linear)@10"),
)
BINARY_MEASURES = ("auc", "pairwise_misranking_error")

_SAME_WORK = {"threads": 1, "local_search": 0}
METHODS = {
    "weight_space": WeightSpaceSearch(coordinates="given", **_SAME_WORK),
    "adapted": WeightSpaceSearch(coordinates="adapted", **_SAME_WORK),
    "direct": WeightSpaceSearch(coordinates="given", scip=False, **_SAME_WORK),
}
"""Methods in place of those of the same name, so that the same work is done every time."""


def lists() -> Iterator[tuple[str, bool, torch.Tensor, torch.Tensor, dict[str, torch.Tensor]]]:
    """Yield the name of each input, whether its labels are 0 and 1, scores, labels, and mask, weight or qid."""
    random = np.random.default_rng(20180715)

    def scores(*shape: int, ties: bool = False, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        values = random.normal(size=shape)
        return torch.tensor(np.round(values * 2) / 2 if ties else values, dtype=dtype)

    def labels(*shape: int, highest: int = 1) -> torch.Tensor:
        return torch.tensor(random.integers(0, highest + 1, shape))

    yield "two items", True, torch.tensor([0.3, -0.2], dtype=torch.float64), torch.tensor([0, 1]), {}
    yield "short", True, scores(7), labels(7), {}
    yield "short, single precision", True, scores(9, dtype=torch.float32), labels(9), {}
    yield "tied", True, scores(12, ties=True), labels(12), {}
    yield "graded", False, scores(15), labels(15, highest=4), {}
    yield "graded and tied", False, scores(20, ties=True), labels(20, highest=3), {}
    yield "no positive", True, scores(5), torch.zeros(5, dtype=torch.int64), {}
    yield "batch", True, scores(4, 11), labels(4, 11), {}
    mask = torch.tensor(random.random((3, 13)) < 0.7)
    yield "masked", False, scores(3, 13, ties=True), labels(3, 13, highest=2), {"mask": mask}
    weight = torch.tensor(random.random((2, 10)))
    yield "weighted", False, scores(2, 10), labels(2, 10, highest=2), {"weight": weight}
    qid = torch.tensor(random.integers(0, 6, 60))
    yield "queries", False, scores(60), labels(60, highest=4), {"qid": qid}
    yield "long", True, scores(1500), labels(1500), {}
    yield "long, graded, tied", False, scores(900, ties=True), labels(900, highest=4), {}
    yield "large scores", True, 1e4 * scores(30), labels(30), {}


def attempted(action: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
    """Return the result of an action, or the type of the error that it raises."""
    try:
        return action(*arguments)
    except (ValueError, TypeError) as error:
        return f"refused: {type(error).__name__}"


def losses() -> Numbers:
    """Yield the value and the gradient of each loss on each input."""

    def one(name: str, scores: torch.Tensor, labels: torch.Tensor, inputs: dict[str, torch.Tensor]) -> list[Any]:
        variable, loss = scores.clone().requires_grad_(), parse_loss(name)
        loss.reduction = "none"
        value = loss(variable, labels, **inputs)
        value.sum().backward()
        return [value.tolist(), variable.grad.tolist()]

    for title, binary, *given in lists():
        for name in LOSSES + BINARY_LOSSES * binary:
            yield f"{name}: {title}", attempted(one, name, *given)


def metrics() -> Numbers:
    """Yield the value of each measure on each input, with every treatment of ties."""
    for title, binary, scores, labels, inputs in lists():
        given = {name: value for name, value in inputs.items() if name != "weight"}
        for ties in ("resolved", "subrank", "average", "optimistic"):
            values = evaluate(scores, labels, list(MEASURES + BINARY_MEASURES * binary), ties=ties, **given)
            yield from ((f"{title}, {ties}, {name}", value.tolist()) for name, value in values.items())


def training() -> Numbers:
    """Yield the weights of each surrogate after a few steps of training."""
    random = np.random.default_rng(7)
    X = random.normal(size=(80, 4))
    score = X @ np.array([1.0, -0.5, 0.25, 0.0]) + random.normal(size=80)
    y = (score > 0.4).astype(np.int64)
    grades = np.digitize(score, [-0.5, 0.5, 1.5])
    qid = np.repeat(np.arange(8), 10)

    def weights(name: str, y: np.ndarray, qid: np.ndarray | None = None) -> list[float]:
        return SurrogateRanker(name, max_steps=6).fit(X, y, qid=qid).linear_weights.tolist()

    yield from ((name, attempted(weights, name, y)) for name in LOSSES + BINARY_LOSSES)
    yield from ((f"{name}, queries", attempted(weights, name, grades, qid)) for name in LOSSES)


def problems() -> Iterator[tuple[str, Problem, tuple[str, ...], int]]:
    """Yield the name of each problem, the problem, methods, and the largest number of nodes."""
    random = np.random.default_rng(11)
    X, y = np.round(random.normal(size=(14, 2)), 3), (random.random(14) < 0.4).astype(np.int64)
    wide, classes = np.round(random.normal(size=(24, 3)), 3), (random.random(24) < 0.4).astype(np.int64)
    y[:2] = classes[:2] = 0, 1
    gains, qid = random.integers(0, 4, 24).astype(np.float64), np.repeat([3, 1, 2], 8)
    pairs = np.array([(i, k) for i in range(12) for k in range(12) if gains[i] > gains[k]])
    limits = LinearConstraints([[1.0, -1.0]], [0.0])
    box, three = ("weight_space",), ("weight_space", "local_search")
    yield "dcg", RerankProblem(X, y), (*three, "resolved", "adapted"), 20_000
    yield "dcg, C", RerankProblem(X, y, C=0.05), (*three, "resolved"), 20_000
    yield "auc", RerankProblem(X, y, "auc"), ("weight_space", "auc"), 20_000
    yield "subrank", RerankProblem(X[:9], y[:9], "dcg", ties="subrank", C=0.01), ("weight_space", "subrank"), 20_000
    yield "dcg@3, side constraints", RerankProblem(X, y, "dcg@3", constraints=limits), (*box, "direct"), 20_000
    yield "mrr, wide margin", RerankProblem(wide, classes, "mrr", margin=0.25), three, 3_000
    yield "dcg(base=e), one support", RerankProblem(wide, classes, "dcg(base=e)", max_nonzeros=2), box, 3_000
    yield "pauc@5, node limit", RerankProblem(wide, classes, "pauc@5"), box, 40
    yield "graded", RerankProblem(wide, gains, "dcg", qid=qid, gain="linear"), three, 3_000
    yield "normalised", RerankProblem(wide, gains, "dcg@4", qid=qid, normalize=True), box, 3_000
    weighted = PairwiseProblem(wide[:12, :2], pairs, weights=1.0 + np.arange(len(pairs)) % 3, C=0.5)
    yield "preferences, weighted", weighted, ("weight_space", "pairwise"), 20_000


def exact() -> Numbers:
    """Yield solutions, centred weights and certificates of small problems."""
    for title, problem, methods, nodes in problems():
        for method in methods:
            limits = Limits(time_limit=3600, seed=3, node_limit=None if method == "local_search" else nodes)
            found = solve(problem, METHODS.get(method, method), limits)
            outcome = [found.value, found.bound, found.status.value, found.nodes]
            yield f"{title}, {method}", [*found.weights.tolist(), *outcome]
            if method == "weight_space":
                for norm in ("l2", "max"):
                    yield f"{title}, centred {norm}", maximise_margin(problem, found.weights, norm=norm).tolist()
                if problem.d <= 2:
                    proof = certify(problem, found, time_limit=3600, max_boxes=5000, max_checks=10_000_000)
                    yield f"{title}, certificate", [proof.claim, proof.bound, proof.boxes, str(proof.verify())]


def main(names: list[str]) -> None:
    """Print the parts with the given names, by default all."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for part in (metrics, losses, training, exact):
        if part.__name__ in names or not names:
            for name, values in part():
                print(f"{part.__name__}: {name}: {values!r}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
