"""The two-stage ranker on lists by query and graded labels."""

import numpy as np
import pytest
import torch

from ltr.exact import Status
from ltr.metrics import rank_statistic
from ltr.rankers.exact import cut
from tests.rankers.two_stages import Scores, two_stage


def sample(seed=0, queries=6, size=12, d=3):
    """Queries of varying length in mixed order, labels 0 to 3 that follow the features, ids out of order."""
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(rng.permutation(100)[:queries], rng.integers(1, size, queries)))
    X = rng.normal(size=(len(qid), d))
    y = np.clip(np.round(X @ np.linspace(1, 2, d) + rng.normal(size=len(qid))), 0, 3).astype(int)
    return X, y, qid


def quick(**options):
    return two_stage(**{"base": Scores(), "time_limit": 4.0, "method": "local_search", "top_k": 4, **options})


def by_hand(scores, qid, top_k):
    chosen = np.zeros(len(scores), dtype=bool)
    for query in np.unique(qid):
        rows = np.flatnonzero(qid == query)
        least = sorted(scores[rows])[-top_k] if len(rows) > top_k else -np.inf
        chosen[rows] = scores[rows] >= least
    return chosen


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("digits", [0, 9])
def test_every_query_is_cut_at_its_own_kth_score_ties_taken_in(seed, digits):
    rng = np.random.default_rng(seed)
    qid = rng.integers(0, 5, 40)
    scores = np.round(rng.normal(size=40), digits)
    _, queries = np.unique(qid, return_inverse=True)
    for top_k in (1, 3, 8, 40):
        np.testing.assert_array_equal(scores >= cut(scores, queries, top_k), by_hand(scores, qid, top_k))
    assert (scores >= cut(scores, queries, None)).all()


@pytest.mark.parametrize(
    "statistic", ["dcg", "dcg@3", "mrr", "wrs", "wta", "power(p=2)", "hits@2", "precision@2", "recall@2"]
)
@pytest.mark.parametrize("gain", ["exp2", "linear"])
def test_the_value_is_the_sum_of_the_statistic_over_the_tops(statistic, gain):
    X, y, qid = sample(seed=1)
    ranker = quick(statistic=statistic, gain=gain).fit(X, y, qid)
    chosen = by_hand(X[:, 0], qid, 4)
    np.testing.assert_array_equal(ranker.reranked(X, qid), chosen)
    assert not ranker.problem_.binary
    assert ranker.problem_.n == chosen.sum()

    def total(scores):
        values = rank_statistic(*map(torch.from_numpy, (scores, y[chosen])), statistic, gain=gain, empty=0.0,
                                qid=torch.from_numpy(qid[chosen]))  # fmt: skip
        return float(values.sum())

    scores = ranker.decision_function(X, qid)
    assert total(scores[chosen]) >= ranker.solution_.value - 1e-9
    assert total(scores[chosen]) <= ranker.solution_.bound + 1e-9
    assert total(X[chosen, 0]) <= total(scores[chosen]) + 1e-9


def test_within_a_query_reranked_items_stand_on_top_and_the_rest_keeps_its_order():
    X, y, qid = sample()
    ranker = quick().fit(X, y, qid)
    fresh, _, queries = sample(seed=7, queries=9, size=20)
    scores, chosen = ranker.decision_function(fresh, queries), ranker.reranked(fresh, queries)
    exact = fresh @ ranker.coef_
    for query in np.unique(queries):
        rows = queries == query
        top, rest = rows & chosen, rows & ~chosen
        np.testing.assert_array_equal(scores[rest], fresh[rest, 0])
        np.testing.assert_array_equal(np.argsort(scores[top]), np.argsort(exact[top]))
        assert not rest.any() or scores[top].min() > scores[rest].max()


def test_queries_do_not_depend_on_each_other_nor_on_the_kind_and_order_of_their_ids():
    X, y, qid = sample()
    ranker = quick().fit(X, y, qid)
    together = ranker.decision_function(X, qid)
    for query in np.unique(qid):
        rows = qid == query
        np.testing.assert_array_equal(ranker.decision_function(X[rows], qid[rows]), together[rows])
        np.testing.assert_array_equal(ranker.decision_function(X[rows], None), together[rows])  # one query
    for ids in (qid.astype(str), qid.astype(np.uint64) + 2**63, -qid, qid.astype(object)):
        np.testing.assert_array_equal(ranker.decision_function(X, ids), together)
        np.testing.assert_array_equal(quick().fit(X, y, ids).coef_, ranker.coef_)


def test_what_all_items_of_a_query_share_makes_no_difference():
    X, y, qid = sample(seed=2)
    plain = quick().fit(X, y, qid)
    level = np.random.default_rng(0).normal(size=100)[qid]
    shifted = np.column_stack([X[:, 0], X[:, 1:] + 1000 * level[:, None], level])
    ranker = quick().fit(shifted, y, qid)
    assert ranker.coef_[3] == 0.0
    np.testing.assert_allclose(ranker.problem_.X, plain.problem_.X, atol=1e-9)
    assert ranker.solution_.value == pytest.approx(plain.solution_.value)
    np.testing.assert_array_equal(ranker.order(shifted, qid), plain.order(X, qid))


@pytest.mark.parametrize("statistic", ["dcg", "mrr"])
def test_one_query_of_two_classes_is_the_problem_of_one_list(statistic):
    X, y, _ = sample(queries=1, size=40)
    y = (y > 1).astype(int)
    options = {"method": "auto", "statistic": statistic, "top_k": 8, "time_limit": 20.0}
    one, grouped = quick(**options).fit(X, y), quick(**options).fit(X, y, np.zeros(len(y), int))
    assert one.problem_.binary
    np.testing.assert_allclose(one.problem_.X, grouped.problem_.X, atol=1e-12)
    assert one.solution_.status is grouped.solution_.status is Status.OPTIMAL
    assert one.solution_.value == pytest.approx(grouped.solution_.value)
    np.testing.assert_array_equal(one.reranked(X), grouped.reranked(X, None))


def test_graded_labels_of_one_list_keep_the_threshold_for_new_rows():
    X, y, _ = sample(queries=1, size=60, d=2)
    ranker = quick(base="logistic", top_k=10).fit(X, y)
    assert not ranker.problem_.binary
    assert ranker.threshold_ == np.sort(ranker.base_.decision_function(X))[-10]
    alone = [ranker.decision_function(X[i : i + 1])[0] for i in range(len(X))]
    np.testing.assert_allclose(ranker.decision_function(X), alone, rtol=1e-14)
    np.testing.assert_array_equal(ranker.decision_function(X, np.arange(len(X)) // 6), ranker.decision_function(X))


@pytest.mark.parametrize(
    ("y", "x", "note"),
    [
        ([2, 2, 0, 1, 1, 0], [3, 2, 1, 3, 2, 1], "the tops of the queries hold a single label each"),
        ([2, 1, 0, 1, 2, 0], [3, 3, 1, 3, 3, 1], "the tops of the queries do not differ in any feature each"),
    ],
)
def test_nothing_to_order_keeps_the_base_ranking(y, x, note):
    X, qid = np.array(x, dtype=float)[:, None], [0, 0, 0, 1, 1, 1]
    ranker = quick(top_k=2).fit(X, y, qid)
    assert ranker.solution_ is None
    assert ranker.note_ == f"{note}: the base ranking is kept"
    np.testing.assert_array_equal(ranker.decision_function(X, qid), X[:, 0])
