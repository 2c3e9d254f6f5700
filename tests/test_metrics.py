"""Metrics against slow definitions, scikit-learn, and the invariants every metric keeps."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

from ltr import metrics
from ltr.statistics import RankStatistic

STATISTICS = ["auc", "wrs", "pauc@2", "wta", "mrr", "dcg", "dcg(base=e)@3", "power(p=2)"]
TIES = ["resolved", "subrank", "average", "optimistic"]


def statistic_metric(name):
    return lambda scores, labels, **options: metrics.rank_statistic(scores, labels, name, **options)


METRICS = {
    **{name: statistic_metric(name) for name in STATISTICS},
    "dcg()": metrics.dcg,
    "ndcg": metrics.ndcg,
    "ndcg@2": lambda s, y, **o: metrics.ndcg(s, y, k=2, **o),
    "auc()": metrics.auc,
    "pairwise_misranking_error": metrics.pairwise_misranking_error,
    "reciprocal rank": metrics.mrr,
    "reciprocal rank@2": lambda s, y, **o: metrics.mrr(s, y, k=2, **o),
    "average_precision": metrics.average_precision,
    "precision@2": lambda s, y, **o: metrics.precision(s, y, k=2, **o),
    "precision": metrics.precision,
    "recall@2": lambda s, y, **o: metrics.recall(s, y, k=2, **o),
}


# --- slow definitions: a function of the labels from the top of the list -----------------------------------------


def by_order(name, labels):
    """The metric of a list without ties, `labels` from its top."""
    n, positives = len(labels), sum(y > 0 for y in labels)
    if name in STATISTICS:
        a = RankStatistic.parse(name).weights(n)
        total = sum(y * a[n - 1 - position] for position, y in enumerate(labels))
        if name != "auc":
            return total
        name = "auc()"
    hits = [position + 1 for position, y in enumerate(labels) if y > 0]
    if name in ("auc()", "pairwise_misranking_error"):
        if not positives or positives == n:
            return math.nan
        ordered = sum(hi < lo for hi in hits for lo in range(1, n + 1) if lo not in hits)
        share = ordered / (positives * (n - positives))
        return share if name == "auc()" else 1 - share
    if name == "dcg()":
        return sum(y / math.log2(position + 2) for position, y in enumerate(labels))
    if name == "precision":
        return positives / n
    if name == "precision@2":
        return sum(h <= 2 for h in hits) / 2
    if not positives:
        return math.nan
    if name.startswith("ndcg"):
        k = 2 if name.endswith("@2") else n
        ideal = sorted(labels, reverse=True)
        return sum(y / math.log2(p + 2) for p, y in enumerate(labels[:k])) / sum(
            y / math.log2(p + 2) for p, y in enumerate(ideal[:k])
        )
    if name.startswith("reciprocal rank"):
        return 1 / hits[0] if not name.endswith("@2") or hits[0] <= 2 else 0.0
    if name == "average_precision":
        return sum((j + 1) / h for j, h in enumerate(hits)) / positives
    return sum(h <= 2 for h in hits) / positives  # recall@2


def orders(scores, labels):
    """Labels from the top under every order of the tie groups."""
    groups = [[y for s, y in zip(scores, labels, strict=True) if s == value] for value in sorted(set(scores))[::-1]]
    for arrangement in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [y for group in arrangement for y in group]


def slow(name, scores, labels, ties):
    if ties == "average":
        return np.mean([by_order(name, labels) for labels in orders(scores, labels)])
    sign = 1 if ties == "resolved" else -1
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], sign * labels[i]))
    return by_order(name, [labels[i] for i in order])


def tied_lists(values=(0.0, 0.5, 1.0, 2.0)):
    items = st.lists(st.tuples(st.sampled_from(values), st.sampled_from([0, 1])), min_size=1, max_size=6)
    return items.map(lambda pairs: ([s for s, _ in pairs], [y for _, y in pairs]))


@pytest.mark.parametrize("ties", ["resolved", "average", "optimistic"])
@pytest.mark.parametrize("name", METRICS)
@settings(max_examples=60, deadline=None)
@given(data=tied_lists())
def test_equals_the_slow_definition(name, ties, data):
    scores, labels = data
    value = METRICS[name](torch.tensor(scores), torch.tensor(labels), ties=ties).item()
    assert value == pytest.approx(slow(name, scores, labels, ties), abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", STATISTICS)
@given(data=tied_lists())
def test_subrank_counts_what_scores_strictly_less(name, data):
    scores, labels = data
    statistic, n, positives = RankStatistic.parse(name), len(scores), sum(labels)
    if name == "auc" and positives in (0, n):
        return
    ranks = [1 + sum(o < s for o in scores) for s, y in zip(scores, labels, strict=True) if y]
    value = METRICS[name](torch.tensor(scores), torch.tensor(labels), ties="subrank").item()
    assert value == pytest.approx(statistic.value(ranks, n) if ranks else 0.0, abs=1e-12)


# --- independent libraries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("tied", [False, True])
def test_agrees_with_scikit_learn(seed, tied):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 60))
    scores = rng.integers(0, 6, n).astype(float) if tied else rng.permutation(n).astype(float)
    binary = np.r_[0, 1, rng.integers(0, 2, n - 2)]
    graded = rng.integers(0, 5, n) + (np.arange(n) == 0)
    f, y, g = torch.tensor(scores), torch.tensor(binary), torch.tensor(graded)
    assert metrics.auc(f, y, ties="average").item() == pytest.approx(roc_auc_score(binary, scores), abs=1e-12)
    expected = average_precision_score(binary, scores)
    assert metrics.average_precision(f, y, ties="subrank").item() == pytest.approx(expected, abs=1e-12)
    for k in (None, 3, 1000):
        expected = dcg_score([graded], [scores], k=k)
        assert metrics.dcg(f, g, k=k, ties="average").item() == pytest.approx(expected, abs=1e-12)
        expected = ndcg_score([graded], [scores], k=k)
        assert metrics.ndcg(f, g, k=k, ties="average").item() == pytest.approx(expected, abs=1e-12)
    if not tied:
        for ties in TIES:
            assert metrics.auc(f, y, ties=ties).item() == pytest.approx(roc_auc_score(binary, scores), abs=1e-12)


def test_exponential_gain():
    # (2^2 - 1) / log2(3) + (2^1 - 1) / log2(2), over the ideal (2^2 - 1) / log2(2) + (2^1 - 1) / log2(3)
    value = metrics.ndcg(torch.tensor([2.0, 1.0]), torch.tensor([1, 2]), gain="exp2").item()
    assert value == pytest.approx((3 / math.log2(3) + 1) / (3 + 1 / math.log2(3)), abs=1e-15)


# --- invariants --------------------------------------------------------------------------------------------------


def ragged(seed, lists=6):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, lists)
    scores = [torch.tensor(rng.integers(0, 5, n) / 4) for n in sizes]
    return scores, [torch.tensor(rng.integers(0, 2, n)) for n in sizes]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("seed", range(3))
def test_batches_masks_and_qids_equal_the_loop(name, ties, seed):
    metric = METRICS[name]
    scores, labels = ragged(seed)
    expected = torch.stack([metric(s, y, ties=ties) for s, y in zip(scores, labels, strict=True)])
    assert expected.shape == (len(scores),)
    assert expected.dtype == torch.float64

    width = max(len(s) for s in scores) + 2
    padded = torch.full((len(scores), width), float("nan"), dtype=torch.float64)
    targets = torch.full((len(scores), width), -7)
    mask = torch.zeros(len(scores), width, dtype=torch.bool)
    rng = np.random.default_rng(seed)
    for row, (s, y) in enumerate(zip(scores, labels, strict=True)):
        at = torch.tensor(np.sort(rng.permutation(width)[: len(s)]))  # padding anywhere, not only behind
        padded[row, at], targets[row, at], mask[row, at] = s, y, True
    torch.testing.assert_close(
        metric(padded, targets, ties=ties, mask=mask), expected, rtol=1e-14, atol=0, equal_nan=True
    )
    cube = [t.reshape(2, 3, width) for t in (padded, targets, mask)]
    batched = metric(cube[0], cube[1], ties=ties, mask=cube[2])
    torch.testing.assert_close(batched, expected.reshape(2, 3), rtol=1e-14, atol=0, equal_nan=True)

    qid = torch.cat([torch.full((len(s),), 10 * row) for row, s in enumerate(scores)])
    flat = metric(torch.cat(scores), torch.cat(labels), ties=ties, qid=qid)
    torch.testing.assert_close(flat, expected, rtol=1e-14, atol=0, equal_nan=True)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", METRICS)
@given(data=tied_lists(), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_order_scale_and_monotone_maps_change_nothing(name, ties, data, seed):
    scores, labels = (torch.tensor(values) for values in data)
    metric = METRICS[name]
    value = metric(scores, labels, ties=ties)
    shuffle = torch.tensor(np.random.default_rng(seed).permutation(len(scores)))
    for other, targets in (
        (scores[shuffle], labels[shuffle]),
        (scores * 1e4 - 3e4, labels),
        (scores.exp(), labels),
        (scores.bfloat16(), labels),
        (scores.double(), labels.double()),
    ):
        assert torch.equal(metric(other, targets, ties=ties).nan_to_num(-1), value.nan_to_num(-1))


@pytest.mark.parametrize("name", METRICS)
@given(data=tied_lists())
@settings(max_examples=30, deadline=None)
def test_ties_are_ordered_from_pessimistic_to_optimistic(name, data):
    scores, labels = (torch.tensor(values) for values in data)
    low, mean, high = (METRICS[name](scores, labels, ties=t).item() for t in ("resolved", "average", "optimistic"))
    if math.isnan(low):
        return
    sign = -1 if name == "pairwise_misranking_error" else 1
    assert sign * low <= sign * mean + 1e-12
    assert sign * mean <= sign * high + 1e-12


UNDEFINED_WITHOUT_POSITIVES = ["ndcg", "auc", "reciprocal rank", "average_precision", "recall@2"]


@pytest.mark.parametrize("name", UNDEFINED_WITHOUT_POSITIVES)
def test_a_list_without_positives_gets_what_empty_says(name):
    scores, labels = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[0, 0], [0, 1]])
    assert METRICS[name](scores, labels).isnan().tolist() == [True, False]
    assert METRICS[name](scores, labels, empty=-1.0).tolist() == [-1.0, 1.0]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_lists_and_empty_batches(name, ties, shape):
    value = METRICS[name](torch.zeros(shape), torch.zeros(shape), ties=ties)
    assert value.shape == shape[:-1]
    assert (value.isnan() | (value == 0)).all()


def test_a_cutoff_beyond_the_list_keeps_everything():
    scores, labels = torch.tensor([3.0, 2.0, 1.0]), torch.tensor([0, 1, 1])
    assert metrics.dcg(scores, labels, k=50).item() == metrics.dcg(scores, labels).item()
    assert metrics.recall(scores, labels, k=50).item() == 1.0
    assert metrics.precision(scores, labels, k=50).item() == 2 / 50


def test_reciprocal_rank_and_the_papers_statistic_agree_for_one_positive_only():
    scores = torch.tensor([4.0, 3.0, 2.0, 1.0])
    one, two = torch.tensor([0, 1, 0, 0]), torch.tensor([0, 1, 0, 1])
    assert metrics.mrr(scores, one).item() == metrics.rank_statistic(scores, one, "mrr").item() == 1 / 2
    assert metrics.mrr(scores, two).item() == 1 / 2
    assert metrics.rank_statistic(scores, two, "mrr").item() == 1 / 2 + 1 / 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, y: metrics.auc(s, y, ties="random"), "ties must be one of resolved, .* got 'random'"),
        (lambda s, y: metrics.auc(s, y + 1), "labels must be 0 and 1 for auc"),
        (lambda s, y: metrics.dcg(s, y - 1), "labels must be >= 0, got -1.0"),
        (lambda s, y: metrics.dcg(s, y, gain="square"), "gain must be 'linear' or 'exp2', got 'square'"),
        (lambda s, y: metrics.precision(s, y, k=0), "k must be an integer >= 1, got 0"),
        (lambda s, y: metrics.recall(s, y, k=1.5), "k must be an integer >= 1, got 1.5"),
        (lambda s, y: metrics.dcg(s, y, k=0), "cutoff must be an integer >= 1, got 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.tensor([1.0, 2.0]), torch.tensor([0, 1]))
