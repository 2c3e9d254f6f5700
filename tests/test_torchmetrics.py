"""The measures as torchmetrics: the same means as `RankingMetrics`, whatever that library does to metrics."""

import copy
import pickle

import pytest
import torch

from ltr.metrics import RankingMetrics

torchmetrics = pytest.importorskip("torchmetrics")
from ltr.metrics.torchmetrics import RankingMetric  # noqa: E402 (after the skip)

MEASURES = ["ndcg@3", "mrr", "mrr@1", "auc", "precision@2"]
GENERATOR = torch.Generator().manual_seed(3)
BATCHES = [
    (
        torch.rand(4, 6, generator=GENERATOR),
        torch.randint(0, 2, (4, 6), generator=GENERATOR),
        torch.arange(24).reshape(4, 6) % 7 > 0,
    )
    for _ in range(3)
]
IDS = [2**50 * (torch.arange(24) % 5) - 2**33 - 1 for _ in BATCHES]
JOINED = pytest.mark.parametrize("joined", [False, True])


def means(batches=BATCHES, **options):
    metrics = RankingMetrics(MEASURES, **options)
    for scores, labels, mask in batches:
        metrics.update(scores, labels, mask=mask)
    return metrics.compute()


def collection(**options):
    return torchmetrics.MetricCollection({name: RankingMetric(name, **options) for name in MEASURES})


def numbers(values):
    return {name: value.item() for name, value in values.items()}


def approx(values):
    return pytest.approx(values, abs=1e-14, nan_ok=True)


@JOINED
@pytest.mark.parametrize("options", [{}, {"ties": "average", "empty": 0.0}])
def test_a_collection_computes_the_same_means(joined, options):
    metrics = collection(joined=joined, **options)
    for scores, labels, mask in BATCHES:
        metrics.update(scores, labels, mask=mask)
    assert numbers(metrics.compute()) == approx(means(joined=joined, **options))
    assert all(value.dtype == torch.float64 for value in metrics.compute().values())
    metrics.reset()
    metrics.update(*BATCHES[1][:2], mask=BATCHES[1][2])
    assert numbers(metrics.compute()) == approx(means(BATCHES[1:2], joined=joined, **options))


def test_metrics_that_agree_on_the_first_batch_stay_apart():
    # the first relevant item is on top: mrr and mrr@1 have the same sum and count
    metrics = collection()
    metrics.update(torch.tensor([2.0, 1.0]), torch.tensor([1, 0]))
    metrics.update(torch.tensor([2.0, 1.0]), torch.tensor([0, 1]))
    found = numbers(metrics.compute())
    assert (found["mrr"], found["mrr@1"]) == (0.75, 0.5)


def test_joined_ids_reach_across_calls():
    metric, reference = RankingMetric("ndcg", joined=True), RankingMetrics(["ndcg"], joined=True)
    for (scores, labels, _), qid in zip(BATCHES, IDS, strict=True):
        for metrics in (metric, reference):
            metrics.update(scores.flatten(), labels.flatten(), qid=qid)
    assert metric.compute().item() == approx(reference.compute()["ndcg"])
    assert reference.counts() == {"ndcg": 5}
    metric.update(*BATCHES[0][:2])
    with pytest.raises(ValueError, match="qid must be given in every call or in none"):
        metric.compute()


@JOINED
def test_states_merge_clone_and_pickle(joined):
    first, second = (RankingMetric("auc", joined=joined) for _ in range(2))
    first.update(*BATCHES[0][:2], mask=BATCHES[0][2])
    for scores, labels, mask in BATCHES[1:]:
        second.update(scores, labels, mask=mask)
    copies = [first.clone(), pickle.loads(pickle.dumps(first)), copy.deepcopy(first), first]
    for metric in copies:
        metric.merge_state(second)
        assert metric.compute().item() == approx(means(joined=joined)["auc"])
        assert metric.higher_is_better
    second.persistent(True)
    restored = RankingMetric("auc", joined=joined)
    restored.persistent(True)
    restored.load_state_dict(second.state_dict())
    restored.update(*BATCHES[0][:2], mask=BATCHES[0][2])
    assert restored.compute().item() == approx(means(joined=joined)["auc"])


@JOINED
def test_a_bad_batch_leaves_the_state_as_it_was(joined):
    metric = RankingMetric("auc", joined=joined)
    metric.update(*BATCHES[0][:2], mask=BATCHES[0][2])
    before = metric.compute()
    with pytest.raises(ValueError, match="labels must be 0 and 1 for auc"):
        metric.update(torch.tensor([1.0, 2.0]), torch.tensor([0, 2]))
    assert torch.equal(metric.compute(), before)


def test_which_direction_is_better():
    assert RankingMetric("ndcg@10").higher_is_better is True
    assert RankingMetric("pairwise_misranking_error").higher_is_better is False
    tracker = torchmetrics.wrappers.MetricTracker(RankingMetric("pairwise_misranking_error"))
    for labels in ([0, 1], [1, 0], [0, 1]):
        tracker.increment()
        tracker.update(torch.tensor([2.0, 1.0]), torch.tensor(labels))
    assert tracker.best_metric(return_step=True) == (0.0, 1)


@JOINED
def test_weights_of_lists_are_those_of_ranking_metrics(joined):
    metrics, other = collection(joined=joined), RankingMetrics(MEASURES, joined=joined)
    for number, (scores, labels, _) in enumerate(BATCHES):
        qid = torch.arange(24) // 6 + 4 * number
        given = {"qid": qid, "list_weight": qid % 3}
        metrics.update(scores.reshape(-1), labels.reshape(-1), **given)
        other.update(scores.reshape(-1), labels.reshape(-1), **given)
    assert numbers(metrics.compute()) == approx(other.compute())
