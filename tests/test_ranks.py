"""Rank definitions against the paper's table and slow loops."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ltr.lists import as_lists
from ltr.losses import RankNetLoss
from ltr.metrics import evaluate
from ltr.ranks import gains_of, rank_cv, resolved_rank, subrank

# the paper's demonstration of rank definitions
LABELS = [1, 1, 0, 0, 0, 1, 1, 0, 1]
SCORES = [6.2, 6.2, 5.8, 4.6, 3.1, 3.1, 2.3, 1.7, 1.7]
SUBRANK = [7, 7, 6, 5, 3, 3, 2, 0, 0]
RESOLVED = [8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_the_papers_table():
    scores, labels = torch.tensor(SCORES), torch.tensor(LABELS)
    assert subrank(scores).tolist() == SUBRANK
    assert resolved_rank(scores, labels).tolist() == RESOLVED
    assert rank_cv(scores).tolist() == [9, 9, 7, 6, 5, 5, 3, 2, 2]  # #{k : f_k <= f_i}


@st.composite
def one_list(draw):
    n = draw(st.integers(1, 9))
    scores = draw(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 1.0, 3.0]), min_size=n, max_size=n))
    labels = draw(st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n))
    return scores, labels


@given(one_list())
def test_ranks_are_their_definitions(data):
    scores, labels = data
    f = torch.tensor(scores)
    assert rank_cv(f).tolist() == [sum(other <= s for other in scores) for s in scores]
    assert subrank(f).tolist() == [sum(other < s for other in scores) for s in scores]

    resolved = resolved_rank(f, torch.tensor(labels)).tolist()
    assert sorted(resolved) == list(range(len(scores)))
    for i in range(len(scores)):
        assert resolved[i] >= sum(o < scores[i] for o in scores)
        for k in range(len(scores)):
            if (scores[i], -labels[i]) > (scores[k], -labels[k]):
                assert resolved[i] > resolved[k]


@given(st.lists(one_list(), min_size=1, max_size=4))
def test_masked_batches_equal_lists_one_by_one(items):
    width = max(len(scores) for scores, _ in items) + 1
    scores = torch.full((len(items), width), float("nan"))
    labels = torch.ones(len(items), width, dtype=torch.long)
    mask = torch.zeros(len(items), width, dtype=torch.bool)
    for row, (s, y) in enumerate(items):
        scores[row, : len(s)], labels[row, : len(s)], mask[row, : len(s)] = torch.tensor(s), torch.tensor(y), True
    together = resolved_rank(scores, labels, mask=mask), subrank(scores, mask=mask), rank_cv(scores, mask=mask)
    for row, (s, y) in enumerate(items):
        f = torch.tensor(s)
        alone = resolved_rank(f, torch.tensor(y)), subrank(f), rank_cv(f)
        for batch, single in zip(together, alone, strict=True):
            assert batch[row, : len(s)].tolist() == single.tolist()
            assert (batch[row, len(s) :] == -1).all()


BATCH = torch.zeros(1, 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"scores": torch.tensor([1, 2])}, TypeError, "scores must be floating point, got torch.int64"),
        ({"scores": [1.0, 2.0]}, TypeError, "scores must be a torch tensor, got list"),
        ({"labels": torch.tensor([1])}, ValueError, r"labels must have the shape of scores \(2,\), got \(1,\)"),
        ({"scores": torch.tensor([1.0, float("nan")])}, ValueError, "scores must be finite, got nan"),
        ({"labels": torch.tensor([1.0, float("inf")])}, ValueError, "labels must be finite, got inf"),
        ({"mask": torch.tensor([1, 0])}, TypeError, "mask must be boolean, got torch.int64"),
        ({"weight": torch.tensor([1.0, -1.0])}, ValueError, "weight must be finite and nonnegative, got -1"),
        ({"qid": torch.tensor([1.0, 2.0])}, TypeError, "qid must be of an integer type"),
        ({"scores": BATCH, "labels": BATCH, "qid": BATCH.long()}, ValueError, "qid goes with flat 1-D input"),
        ({"scores": torch.tensor(1.0), "labels": torch.tensor(1)}, ValueError, "list axis"),
        ({"labels": torch.tensor([1, -1])}, ValueError, "labels must be >= 0, got -1: mark padding by mask="),
        ({"scores": BATCH.T, "labels": BATCH.T}, ValueError, r"scores of shape \(2, 1\) are 2 lists of one item"),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    given_arguments = {"scores": torch.tensor([1.0, 2.0]), "labels": torch.tensor([0, 1]), **arguments}
    scores, labels = given_arguments.pop("scores"), given_arguments.pop("labels")
    if "qid" not in given_arguments:
        with pytest.raises(error, match=message):
            as_lists(scores, labels, **given_arguments)
    with pytest.raises(error, match=message):
        RankNetLoss()(scores, labels, **given_arguments)
    if "weight" not in given_arguments and "torch tensor" not in message:  # metrics take lists and arrays, too
        with pytest.raises(error, match=message):
            evaluate(scores, labels, ["dcg"], **given_arguments)


def test_zero_and_negative_zero_are_tied():
    scores = torch.tensor([0.0, -0.0, -0.0])
    assert rank_cv(scores).tolist() == [3, 3, 3]
    assert subrank(scores).tolist() == [0, 0, 0]
    assert resolved_rank(scores, torch.tensor([1, 0, 1])).tolist() == [1, 2, 0]


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3), (1,)])
def test_empty_lists_and_lists_of_one_have_ranks(shape):
    scores, ones = torch.zeros(shape), torch.ones(shape, dtype=torch.int64)
    assert torch.equal(rank_cv(scores), ones)
    assert torch.equal(subrank(scores), ones - 1)
    assert torch.equal(resolved_rank(scores, ones), ones - 1)


def test_gains_of_integers_are_exact():
    labels = torch.tensor([0, 1, 25, 53])
    assert gains_of(labels, "exp2").tolist() == [0, 1, 2**25 - 1, 2**53 - 1]
    assert gains_of(labels.to(torch.uint8), "exp2").tolist() == [0, 1, 2**25 - 1, 2**53 - 1]
    with pytest.raises(ValueError, match="labels must be small enough for gain 'exp2' to be finite, got 2000"):
        gains_of(torch.tensor([2000]), "exp2")
