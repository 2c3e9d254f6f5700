"""Metrics over batches and processes: the same as the metric of all lists at once, whatever way they come."""

import itertools
import json
import math
import multiprocessing
import pickle

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.metrics import RankingMetrics, evaluate
from tests.metrics.metrics_process import MEASURES, OWNERS, lists, main
from tests.tiers import slow_but


def expected(measures=MEASURES, **options):
    """The values of the lists, each evaluated by itself."""
    values = [evaluate(scores, labels, measures, **options) for scores, labels in lists()]
    return {name: torch.stack([value[name] for value in values]) for name in values[0]}


def assert_same(found, values):
    assert list(found) == list(values)
    for name in values:
        torch.testing.assert_close(found[name], values[name], rtol=1e-14, atol=0, equal_nan=True)


def updated(metrics, chosen=None):
    for scores, labels in lists() if chosen is None else [lists()[k] for k in chosen]:
        metrics.update(scores, labels)
    return metrics


@pytest.mark.parametrize("ties", ["resolved", "average"])
@pytest.mark.parametrize("empty", [math.nan, 0.0])
def test_the_mean_over_batches_is_that_of_all_lists(ties, empty):
    values = expected(ties=ties, empty=empty)
    metrics = updated(RankingMetrics(MEASURES, ties=ties, empty=empty))
    assert_same(metrics.values(), values)
    for name, mean in metrics.compute().items():
        defined = [value for value in values[name].tolist() if not math.isnan(value)]
        assert mean == pytest.approx(math.fsum(defined) / len(defined), abs=1e-15)
        assert metrics.counts()[name] == len(defined)
    assert metrics.counts()["auc"] == (12 if empty == 0.0 else values["auc"].isfinite().sum())


@given(order=st.permutations(range(12)), cuts=st.lists(st.integers(0, 12), max_size=4), data=st.data())
@settings(max_examples=40, deadline=None)
def test_batches_padding_and_flat_lists_change_nothing(order, cuts, data):
    metrics = RankingMetrics(MEASURES)
    for start, end in itertools.pairwise([0, *sorted(cuts), 12]):
        chosen = [lists()[k] for k in order[start:end]]
        scores, labels = (list(both) for both in zip(*chosen, strict=True)) if chosen else ([], [])
        if data.draw(st.booleans()) and chosen:
            padded = [torch.nn.utils.rnn.pad_sequence(column, batch_first=True) for column in (scores, labels)]
            sizes = torch.tensor([len(row) for row in scores])
            metrics.update(*padded, mask=torch.arange(padded[0].shape[1]) < sizes[:, None])
        else:
            qid = [torch.full((len(row),), k) for k, row in enumerate(scores)]
            nothing = [torch.zeros(0, dtype=torch.float64)]
            flat = (torch.cat(scores or nothing), torch.cat(labels or nothing))
            metrics.update(*flat, qid=torch.cat(qid or [torch.zeros(0, dtype=torch.int64)]))
    assert_same(metrics.values(), {name: value[order] for name, value in expected().items()})


def test_nothing_seen_is_undefined():
    metrics = RankingMetrics(["auc"])
    assert math.isnan(metrics.compute()["auc"])
    assert metrics.counts() == {"auc": 0}
    updated(metrics)
    metrics.reset()
    assert math.isnan(metrics.compute()["auc"])
    assert metrics.values()["auc"].shape == (0,)


def test_the_state_survives_pickling():
    metrics = updated(RankingMetrics(MEASURES), range(6))
    copy = pickle.loads(pickle.dumps(metrics))
    assert_same(updated(copy, range(6, 12)).values(), updated(RankingMetrics(MEASURES)).values())
    assert_same(metrics.values(), updated(RankingMetrics(MEASURES), range(6)).values())


def test_no_gradient_and_no_input_is_kept():
    scores, labels = torch.tensor([2.0, 1.0, 0.0], requires_grad=True), torch.tensor([0.0, 1.0, 0.0])
    metrics = RankingMetrics(["mrr"])
    metrics.update(scores, labels)
    labels[:] = torch.tensor([1.0, 0.0, 0.0])
    with torch.no_grad():
        scores[:] = -scores
    assert metrics.compute() == {"mrr": 0.5}
    assert not any(values.requires_grad for values in metrics.values().values())


@pytest.mark.parametrize(
    ("scores", "labels", "options", "message"),
    [
        ([1.0, 2.0], [0, 2], {}, "labels must be 0 and 1 for auc"),
        ([1.0, 2.0], [0, -1], {}, "labels must be >= 0"),
        ([1.0, math.nan], [0, 1], {}, "scores must be finite, got nan"),
        ([1.0, 2.0], [0, 1], {"qid": torch.tensor([1])}, "qid must have the shape of scores"),
    ],
)
def test_a_bad_batch_leaves_the_state_as_it_was(scores, labels, options, message):
    metrics = updated(RankingMetrics(["mrr", "auc"]))
    before = metrics.values()
    with pytest.raises(ValueError, match=message):
        metrics.update(torch.tensor(scores), torch.tensor(labels), **options)
    assert_same(metrics.values(), before)


@pytest.fixture(scope="module", params=slow_but([2, 3], quick=[3]))
def processes(request, tmp_path_factory):
    """What each of 2 or 3 processes computes."""
    world, folder = request.param, tmp_path_factory.mktemp("processes")
    context = multiprocessing.get_context("forkserver")  # torch is imported once, not by each process
    context.set_forkserver_preload(["tests.metrics.metrics_process"])
    running = [context.Process(target=main, args=(rank, world, str(folder))) for rank in range(world)]
    for process in running:
        process.start()
    for process in running:
        process.join(timeout=120)
    assert [process.exitcode for process in running] == [0] * world
    return [json.loads((folder / f"{rank}").read_text()) for rank in range(world)]


def test_processes_agree_with_one_process(processes):
    values = expected()
    for found in (of_process["whole"] for of_process in processes):
        for name in MEASURES:
            numbers = values[name].reshape(-1)
            assert found["means"][name] == pytest.approx(numbers.nanmean().item(), abs=1e-15)
            assert found["counts"][name] == numbers.isfinite().sum()
            sorted_values = torch.tensor(found["values"][name], dtype=torch.float64).sort().values
            torch.testing.assert_close(sorted_values, numbers.sort().values, rtol=1e-14, atol=0, equal_nan=True)

    assert len({json.dumps(found["whole"]) for found in processes}) == 1
    assert processes[0]["whole"]["means"] == processes[0]["whole"]["again"]


def test_a_process_keeps_its_own_lists(processes):
    owners = OWNERS[len(processes)]
    for rank, found in enumerate(processes):
        assert found["own"]["ndcg@3"] == sum(
            owner == rank and bool((labels > 0).any()) for owner, (_, labels) in zip(owners, lists(), strict=True)
        )


@pytest.mark.parametrize("ties", ["resolved", "average", "subrank", "optimistic"])
def test_a_weight_of_2_counts_as_the_list_twice_and_0_as_no_list(ties):
    counts = torch.arange(12) % 4
    weighted, repeated = (RankingMetrics(MEASURES, ties=ties) for _ in range(2))
    copies = itertools.count(100)
    for number, (scores, labels) in enumerate(lists()):
        at = torch.full((len(scores),), number)
        weighted.update(scores, labels, qid=at, list_weight=counts[at])
        for _ in range(counts[number]):
            repeated.update(scores, labels, qid=torch.full((len(scores),), next(copies)))
    assert weighted.compute() == pytest.approx(repeated.compute(), rel=1e-12)
    assert weighted.weights().tolist() == counts.tolist()
    defined = {name: values[counts > 0].isfinite().sum() for name, values in expected(ties=ties).items()}
    assert weighted.counts() == defined


def test_weights_of_lists_come_in_every_call_or_in_none():
    scores, labels = torch.tensor([[1.0, 2.0]]), torch.tensor([[0, 1]])
    metrics = RankingMetrics(["mrr"])
    metrics.update(scores, labels, list_weight=torch.tensor([2.0]))
    with pytest.raises(ValueError, match="list_weight must be given in every call or in none"):
        metrics.update(scores, labels)
