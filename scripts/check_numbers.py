"""Write a table of the library's numbers on fixed inputs, or compare two such tables.

    python scripts/check_numbers.py --write FILE
    python scripts/check_numbers.py --compare BEFORE AFTER

The table has losses with their gradients, metrics, surrogates after a few steps of training, exact solutions, centred
weights and certificates. Floats are written to the last bit. Everything is seeded, runs on one thread and ends after a
number of nodes or restarts, so two runs on one machine give the same table: a difference after a change of the code is
due to that change.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
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
from ltr.statistics import RankStatistic

Table = dict[str, Any]

LOSSES = (
    *KNOWN_LOSSES,  # each with its default options
    "ranknet(pairs=sum)",
    "p_norm_push(p=2)",
    "p_norm_push(p=4,inner=logistic)",
    "lambda(statistic=mrr@5,gain=linear)",
    "smooth(statistic=dcg@10)",
    "smooth(statistic=dcg,temperature=0.1,gain=linear)",
    "smooth(statistic=wrs,pairs=sum)",
    "smooth(statistic=pauc@4)",
    "smooth(statistic=power(p=3))",
)
BINARY_LOSSES = ("smooth(statistic=auc)", "lambda(statistic=auc)")
STATISTICS = (
    "wrs",
    "pauc@3",
    "wta",
    "mrr",
    "mrr@5",
    "dcg",
    "dcg@5",
    "dcg(base=e)",
    "dcg(base=10)@7",
    "power(p=4)",
    "power(p=0.5)@4",
)
MEASURES = (
    *STATISTICS,
    "ndcg",
    "ndcg@5",
    "ndcg(gain=linear)@10",
    "mrr@3",
    "map",
    "precision@5",
    "recall@5",
    "statistic(mrr)",
    "normalized(pauc@4)",
    "normalized(power(p=2))",
    "dcg(base=e,gain=linear)@10",
)
BINARY_MEASURES = ("auc", "pairwise_misranking_error")
TIES = ("resolved", "subrank", "average", "optimistic")

METHODS = {
    "weight_space": WeightSpaceSearch(threads=1, coordinates="given", local_search=0),
    "adapted": WeightSpaceSearch(threads=1, coordinates="adapted", local_search=0),
    "direct": WeightSpaceSearch(threads=1, coordinates="given", local_search=0, scip=False),
}
"""Methods in place of those of the same name, so that the same work is done every time."""


# --- lists ------------------------------------------------------------------------------------------------------


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


# --- tables -----------------------------------------------------------------------------------------------------


def loss_values() -> Table:
    """Return the value and the gradient of each loss on each input."""

    def one(name: str, scores: torch.Tensor, labels: torch.Tensor, inputs: Table) -> Table:
        variable, loss = scores.clone().requires_grad_(), parse_loss(name)
        loss.reduction = "none"
        value = loss(variable, labels, **inputs)
        value.sum().backward()
        gradient = variable.grad.flatten().tolist()
        # of long lists the first items and a sum of all: enough to notice a difference
        short = gradient if len(gradient) <= 100 else [*gradient[:50], math.fsum(gradient[::3])]
        return {"value": value.tolist(), "gradient": short}

    return {
        f"{name}: {title}": attempted(one, name, scores, labels, inputs)
        for title, binary, scores, labels, inputs in lists()
        for name in (LOSSES + BINARY_LOSSES if binary else LOSSES)
    }


def metric_values() -> Table:
    """Return the value of each measure on each input, with every treatment of ties."""
    table: Table = {}
    for title, binary, scores, labels, inputs in lists():
        given = {name: value for name, value in inputs.items() if name != "weight"}
        for ties in TIES:
            names = MEASURES + BINARY_MEASURES if binary else MEASURES
            values = evaluate(scores, labels, list(names), ties=ties, **given)
            table[f"{title}, {ties}"] = {name: value.tolist() for name, value in values.items()}
    return table


def statistic_values() -> Table:
    """Return weights, best value and affine map of each statistic."""

    def one(statistic: RankStatistic, n: int) -> Table:
        n_pos = max(1, n // 3)
        return {
            "weights": statistic.weights(n).tolist(),
            "best": statistic.best(n, n_pos),
            "affine": statistic.affine(n_pos, n - n // 3),
        }

    table: Table = {}
    for name in (*STATISTICS, "auc", "weights(0,0.5,0.5,1,2,3,5,8,13)"):
        statistic = RankStatistic.parse(name)
        table |= {f"{name}, n={n}": attempted(one, statistic, n) for n in (1, 2, 9, 40)}
        table[f"{name}, text"] = [str(statistic), repr(statistic)]
    return table


def training() -> Table:
    """Return the weights of each surrogate after a few steps of training."""
    random = np.random.default_rng(7)
    X = random.normal(size=(80, 4))
    score = X @ np.array([1.0, -0.5, 0.25, 0.0]) + random.normal(size=80)
    y = (score > 0.4).astype(np.int64)
    grades = np.digitize(score, [-0.5, 0.5, 1.5])
    qid = np.repeat(np.arange(8), 10)

    def weights(name: str, y: np.ndarray, qid: np.ndarray | None = None) -> list[float]:
        return SurrogateRanker(name, max_steps=6).fit(X, y, qid=qid).linear_weights.tolist()

    table: Table = {name: attempted(weights, name, y) for name in LOSSES + BINARY_LOSSES}
    return table | {f"{name}, queries": attempted(weights, name, grades, qid) for name in LOSSES}


def problems() -> Iterator[tuple[str, Problem, tuple[str, ...], int]]:
    """Yield the name of each problem, the problem, methods, and the largest number of nodes."""
    random = np.random.default_rng(11)

    def features(n: int, d: int) -> np.ndarray:
        return np.round(random.normal(size=(n, d)), 3)

    def classes(n: int) -> np.ndarray:
        y = (random.random(n) < 0.4).astype(np.int64)
        y[:2] = 0, 1
        return y

    box, scip = ("weight_space", "direct"), ("resolved", "subrank")
    X, y = features(14, 2), classes(14)
    yield "dcg", RerankProblem(X, y), (*box, "resolved", "local_search", "adapted"), 20_000
    yield "dcg, C", RerankProblem(X, y, C=0.05), (*box, "resolved", "local_search"), 20_000
    yield "auc", RerankProblem(X, y, "auc"), ("weight_space", "auc"), 20_000
    yield "subrank", RerankProblem(X[:9], y[:9], "dcg", ties="subrank", C=0.01), ("weight_space", *scip[1:]), 20_000
    limits = LinearConstraints([[1.0, -1.0]], [0.0])
    yield "dcg@3, side constraints", RerankProblem(X, y, "dcg@3", constraints=limits), box, 20_000
    X, y = features(24, 3), classes(24)
    yield "mrr, wide margin", RerankProblem(X, y, "mrr", margin=0.25), (*box, "local_search"), 3_000
    yield "dcg(base=e), one support", RerankProblem(X, y, "dcg(base=e)", max_nonzeros=2), box, 3_000
    yield "pauc@5, node limit", RerankProblem(X, y, "pauc@5"), ("weight_space", "direct"), 40
    yield "weights(...)", RerankProblem(X, y, f"weights({','.join(str(k * k) for k in range(24))})"), box, 3_000
    gains = random.integers(0, 4, 24).astype(np.float64)
    qid = np.repeat([3, 1, 2], 8)
    yield "graded", RerankProblem(X, gains, "dcg", qid=qid, gain="linear"), (*box, "local_search"), 3_000
    short = RerankProblem(X[:10], gains[:10], "wrs", ties="subrank", gain="linear")
    yield "graded, subrank, wrs", short, ("weight_space",), 3_000
    mean = RerankProblem(X, gains, "dcg@4", qid=qid, normalize=True)
    yield "normalised", mean, ("weight_space",), 3_000
    pairs = np.array([(i, k) for i in range(12) for k in range(12) if gains[i] > gains[k]])
    yield "preferences", PairwiseProblem(X[:12, :2], pairs), ("weight_space", "pairwise"), 20_000
    weights = 1.0 + np.arange(len(pairs)) % 3
    yield "preferences, weighted", PairwiseProblem(X[:12, :2], pairs, weights=weights, C=0.5), ("weight_space",), 20_000


def exact_values() -> Table:
    """Return solutions, centred weights and certificates of small problems."""
    table: Table = {}
    for title, problem, methods, nodes in problems():
        for method in methods:
            limits = Limits(time_limit=3600, seed=3, node_limit=None if method == "local_search" else nodes)
            found = solve(problem, METHODS.get(method, method), limits)
            row = {"value": found.value, "bound": found.bound, "status": found.status.value, "nodes": found.nodes}
            table[f"{title}, {method}"] = {"weights": found.weights.tolist(), **row}
            if method == "weight_space":
                for norm in ("l2", "max"):
                    table[f"{title}, centred {norm}"] = maximise_margin(problem, found.weights, norm=norm).tolist()
                if problem.d <= 2:
                    proof = certify(problem, found, time_limit=3600, max_boxes=5000, max_checks=10_000_000)
                    claims = {"claim": proof.claim, "bound": proof.bound, "boxes": proof.boxes}
                    table[f"{title}, certificate"] = claims | {"verdict": proof.verify()}
    return table


TABLES = {
    "statistics": statistic_values,
    "metrics": metric_values,
    "losses": loss_values,
    "training": training,
    "exact": exact_values,
}


# --- writing and comparing --------------------------------------------------------------------------------------


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield every number and text of a table, each with its place."""
    if isinstance(value, dict | list | tuple):
        for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(entry, f"{at} / {key}" if at else str(key))
    else:
        yield at, value


def compare(before: Path, after: Path) -> int:
    """Print every difference between two tables and return how many there are."""
    # floats as Python writes them: equal to the last bit, -0.0 and NaN told apart from others
    first, second = ({at: repr(v) for at, v in leaves(json.loads(path.read_text("utf-8")))} for path in (before, after))
    places = first | second
    different = [place for place in places if first.get(place) != second.get(place)]
    for place in different:
        print(f"{place}: {first.get(place, 'missing')} -> {second.get(place, 'missing')}")
    print(f"{len(different)} of {len(places)} entries differ")
    return len(different)


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", type=Path, metavar="FILE", help="write the table to this file")
    group.add_argument("--compare", type=Path, nargs=2, metavar=("BEFORE", "AFTER"), help="report every difference")
    parser.add_argument("--only", choices=TABLES, nargs="+", default=list(TABLES), help="parts of the table to write")
    options = parser.parse_args()
    if options.compare:
        return 1 if compare(*options.compare) else 0
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    table = {name: TABLES[name]() for name in options.only}
    options.write.write_text(json.dumps(table, indent=0), "utf-8")
    print(f"{sum(1 for _ in leaves(table))} numbers and texts in {options.write}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
