"""Add a rank statistic from outside the package, as a user would: one decorated function, which then works everywhere.

The module `own_statistics` below is written to a folder of its own and imported by its name alone.
"""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ltr import RankStatistic, statistics, verify
from ltr.exact import Limits, RerankProblem, certify, solve
from ltr.losses import parse_loss
from ltr.metrics import evaluate, parse_measure, rank_statistic
from ltr.statistics import register_statistic

MODULE = '''
from ltr.statistics import register_statistic

@register_statistic("rbp")
def rank_biased_precision(position, p=0.8):
    """Weigh each position by the probability that a reader of that patience gets there."""
    if not 0 < p < 1:
        raise ValueError(f"p must lie between 0 and 1, got {p!r}")
    return (1 - p) * p**position

@register_statistic("excess", cutoff="never")
def excess_of_the_rank(rank, above=2):
    return (rank - above).clip(0)

@register_statistic("relative")
def relative_rank(n):
    return [rank / n for rank in range(1, n + 1)]
'''
X = np.array([[0.2, 1.0], [1.0, 0.1], [2.0, 2.5], [0.5, 3.0], [1.5, 0.4], [0.1, 0.3], [2.2, 0.2]])
Y = np.array([1, 0, 1, 0, 1, 0, 0])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the module, which is on the path."""
    path = tmp_path_factory.mktemp("own")
    (path / "own_statistics.py").write_text(MODULE)
    (path / "broken_statistics.py").write_text("position + 1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ltr.statistics._KINDS", dict(statistics._KINDS))  # what is registered here ends here
        patch.syspath_prepend(path)
        yield path
    sys.modules.pop("own_statistics", None)


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("rbp(p=0.5)", [0.0625, 0.125, 0.25, 0.5]),
        ("rbp(p=0.5)@2", [0, 0, 0.25, 0.5]),
        ("excess(above=1)", [0, 1, 2, 3]),
        ("relative@3", [0, 0.5, 0.75, 1]),
    ],
)
def test_it_has_a_name_weights_and_a_metric(folder, name, weights):
    name = f"own_statistics:{name}"
    statistic = RankStatistic.parse(name)
    assert str(statistic) == name
    assert eval(repr(statistic)) == statistic
    assert statistic.weights(4).tolist() == weights
    # positives at positions 0 and 3 of one list, and on top of a list of two
    scores, labels = torch.tensor([4.0, 3, 2, 1, 2, 1]), torch.tensor([1, 0, 0, 1, 1, 0])
    qid = torch.tensor([0, 0, 0, 0, 1, 1])
    best = [weights[-1] + weights[-2], statistic.best(2, 1)]
    value = [weights[-1] + weights[0], best[1]]
    found = evaluate(scores, labels, [name, f"normalized({name})"], qid=qid)
    assert found[name].tolist() == pytest.approx(value)
    assert found[f"normalized({name})"].tolist() == pytest.approx([v / b for v, b in zip(value, best, strict=True)])
    assert str(parse_measure(found_name := f"{name}")) == found_name
    tied = torch.zeros(4)
    average = rank_statistic(tied, torch.tensor([0, 1, 0, 0]), name, ties="average").item()
    assert average == pytest.approx(np.mean(weights))


@pytest.mark.parametrize("kind", ["smooth", "lambda"])
def test_it_is_a_loss(folder, kind):
    loss = parse_loss(f"{kind}(statistic=own_statistics:rbp(p=0.5))")
    assert str(parse_loss(str(loss))) == str(loss)
    scores = torch.tensor([0.1, 0.4, -0.3, 0.2], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: loss(s, torch.tensor([1, 0, 1, 0])), scores)
    cold = parse_loss("smooth(statistic=own_statistics:rbp(p=0.5),temperature=0.001)")
    # positives at positions 2 and 3 of 4, where a perfect list has them at 0 and 1
    assert cold(scores, torch.tensor([1, 0, 1, 0])).item() == pytest.approx(1 - (1 / 8 + 1 / 16) / (1 / 2 + 1 / 4))


@pytest.mark.parametrize("name", ["rbp", "rbp(p=0.5)@3", "excess", "relative"])
def test_it_is_maximised_and_certified(folder, name, tmp_path):
    problem = RerankProblem(X, Y, f"own_statistics:{name}", margin=0.01)
    solution = solve(problem, limits=Limits(time_limit=60))
    angles = np.linspace(0, 2 * math.pi, 721)
    assert solution.status.value == "optimal"
    assert solution.value >= max(problem.evaluate([math.cos(t), math.sin(t)]) for t in angles) - 1e-12
    certificate = certify(problem, solution)
    certificate.write(tmp_path / "certificate.json")
    # the checker knows the weights alone, and imports nothing
    assert certificate.content["problem"]["statistic"].startswith("weights(")
    program = [sys.executable, "-I", Path(verify.__file__).parent, tmp_path / "certificate.json", "--require-proof"]
    checked = subprocess.run(program, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_certificate_of_lists_of_several_lengths_is_refused(folder):
    for qid, refused in (([0, 0, 0, 1, 1, 1, 1], True), ([0, 0, 0, 1, 1, 1, 2], True), ([0] * 7, False)):
        problem = RerankProblem(X, Y, "own_statistics:rbp", margin=0.01, qid=qid, gain="linear")
        solution = solve(problem, "local_search")
        if refused:
            with pytest.raises(ValueError, match="so all lists must have the same length, got lists of"):
                certify(problem, solution)
        else:
            assert certify(problem, solution).verify()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x, "first argument must be rank, position or n, got 'x'"),
        (lambda rank, p="x": rank, "p must have a number as its default, got p='x'"),
        (lambda rank, gain=1: rank, "gain cannot name an option"),
        (lambda position: position, "weights must be nondecreasing, got 3.0 at rank 2"),
        (lambda rank: -rank, "weights must be nonnegative, got -1.0 at rank 1"),
        (lambda rank: rank[1:], r"weights must be one number for each of 5 places, got shape \(4,\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_a_function_that_is_no_statistic_is_refused(function, message):
    with pytest.raises(ValueError, match=f"^statistic wrong: .*{message}"):
        register_statistic("wrong")(function)
    with pytest.raises(ValueError, match="unknown name 'wrong'"):
        RankStatistic.parse("wrong")
