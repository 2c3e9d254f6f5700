"""All rankers as scikit-learn estimators: its own checks, pipelines, searches, metadata routing, any base."""

import copy
import math
import pickle

import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ltr.exact import Limits, RerankProblem, Status, solve
from ltr.metrics import rank_statistic
from ltr.rankers import (
    ExactRanker,
    LogisticRegressionRanker,
    RankBoostRanker,
    Ranker,
    ReproducibleSearch,
    ScoreColumn,
    SurrogateRanker,
    TwoStageRanker,
)
from ltr.rankers.exact import TopLists
from ltr.statistics import RankStatistic
from tests.rankers.two_stages import exact
from tests.tiers import thinned

QUICK = {"node_limit": 50, "method": ReproducibleSearch(restarts=3)}
NODES = {"limits": Limits(node_limit=50), "method": ReproducibleSearch(restarts=3)}
STAGE = ExactRanker(**NODES)


def rankers():
    return [
        SurrogateRanker(),
        LogisticRegressionRanker(),
        ExactRanker(**NODES),
        TwoStageRanker("ranknet", STAGE, 5, choose=False),
    ]


def each(rankers):
    return pytest.mark.parametrize("ranker", rankers, ids=lambda r: type(r).__name__)


each_ranker = each([*rankers(), RankBoostRanker(10)])
each_ranker_of_queries = each(rankers())


def one_list(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    y = (Z[:, 0] - Z[:, 1] + rng.normal(size=n) > 0.5).astype(int)
    return Z * np.logspace(-1, 2, d) + 5, y


def queries(n=60, lists=6, d=3, seed=0):
    """Graded labels and lists with names, their rows all over the place."""
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(n, d)), rng.permutation(np.arange(n) % lists)
    y = np.clip(np.round(X[:, 0] - X[:, 1] + rng.normal(size=n) + 1), 0, 3).astype(int)
    return X, y, np.array([f"query {number}" for number in qid])


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def routed(estimator):
    """The estimator with a qid requested for all of its methods that take one."""
    for method in ("fit", "score", "predict", "decision_function"):
        if hasattr(estimator, f"set_{method}_request"):
            getattr(estimator, f"set_{method}_request")(qid=True)
    if isinstance(getattr(estimator, "base", None), BaseEstimator):
        routed(estimator.base)
    return estimator


# scikit-learn's contract


def expected_to_fail(ranker):
    weights = "check_sample_weight_equivalence_on_dense_data"
    if isinstance(ranker, ExactRanker | TwoStageRanker):
        return {weights: "weights multiply gains: ranks count rows, and repeated rows would change the ranks of others"}
    if not isinstance(ranker, SurrogateRanker) or ranker.scorer == "linear":
        return {}
    return {
        weights: "repeated rows change what is held out and what is in a mini-batch",
        "check_methods_subset_invariance": "a score of attention depends on the whole list",
    }


@parametrize_with_checks(
    [
        SurrogateRanker(),
        SurrogateRanker(scorer="attention", hidden=(4,), heads=2, blocks=1, max_steps=3),
        LogisticRegressionRanker(),
        RankBoostRanker(10),
        ExactRanker(limits=Limits(node_limit=200)),
        TwoStageRanker(Ridge(), STAGE, top_k=10, choose=False),
    ],
    expected_failed_checks=expected_to_fail,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@each_ranker
def test_a_copy_scores_alike_and_holds_no_training_data(ranker):
    X, y = one_list(n=300)
    ranker = clone(ranker).fit(X, y)
    fresh = one_list(seed=1)[0]
    assert len(pickle.dumps(ranker)) < X.nbytes
    for other in (pickle.loads(pickle.dumps(ranker)), copy.deepcopy(ranker)):
        np.testing.assert_array_equal(other.decision_function(fresh), ranker.decision_function(fresh))
        if hasattr(ranker, "problem_"):
            assert ranker.problem_ is not None
            assert other.problem_ is None
            with pytest.raises(ValueError, match="recentred needs a ranker fitted in this process"):
                other.recentred()


# pipelines and searches


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(
    ("ranker", "grid"),
    [
        (SurrogateRanker(normalize=True), {"loss": ["ranknet", "exponential"], "l2": np.logspace(-4, 0, 2)}),
        (ExactRanker(normalize=True, **NODES), {"C": [0.0, 0.1]}),
        (
            TwoStageRanker(SurrogateRanker(), STAGE, 5, choose=False),
            {"exact__C": [0.0, 0.5], "base__loss": ["ranknet"]},
        ),
        (TwoStageRanker("ranknet", STAGE, choose=False), {"top_k": np.array([3, 6])}),
    ],
    ids=["linear", "exact", "reranker", "named"],
)
def test_a_grid_search_routes_the_queries_to_fit_and_score(ranker, grid):
    X, y, qid = queries()
    name = type(ranker).__name__.lower()
    model, grid = make_pipeline(StandardScaler(), routed(clone(ranker))), {f"{name}__{key}": grid[key] for key in grid}
    search = GridSearchCV(model, grid, cv=GroupKFold(2), error_score="raise").fit(X, y, qid=qid, groups=qid)
    by_hand = []
    for train, test in GroupKFold(2).split(X, y, qid):
        best = clone(model).set_params(**search.best_params_).fit(X[train], y[train], qid=qid[train])
        by_hand.append(best.score(X[test], y[test], qid=qid[test]))
    assert search.best_score_ == pytest.approx(np.mean(by_hand), abs=1e-9)
    # which is another score than that of all rows as one list
    best = search.best_estimator_
    assert best.score(X, y, qid=qid) != pytest.approx(best.score(X, y, qid=np.zeros(len(y), int)))


FORGETFUL = {
    "score": lambda ranker, X, y, **qid: ranker.score(X, y, **qid),
    "rank": lambda ranker, X, y, **qid: ranker.rank(X, **qid),
    "order": lambda ranker, X, y, **qid: ranker.order(X, **qid),
    "plot_list": lambda ranker, X, y, **qid: ranker.plot_list(X, y, **qid),
    "calibrate": lambda ranker, X, y, **qid: copy.deepcopy(ranker).calibrate(X, y, folds=None, **qid),
}
OF_SCORES = {
    "decision_function": lambda ranker, X, y, **qid: ranker.predict(X, **qid),
    "reranked": lambda ranker, X, y, **qid: ranker.reranked(X, **qid),
    "training_scores": lambda ranker, X, y, **qid: ranker.training_scores(X, **qid),
    "predict_proba": lambda ranker, X, y, **qid: ranker.calibrate(X, y, None, folds=None).predict_proba(X, **qid),
}


@each(
    [
        SurrogateRanker(),
        ExactRanker(**NODES),
        TwoStageRanker("ranknet", STAGE, 4, choose=False),
        ScoreColumn(0),
        LogisticRegressionRanker(),
    ]
)
def test_a_qid_that_is_forgotten_after_a_fit_with_one_is_asked_for(ranker, tmp_path):
    X, y, qid = queries()
    y = (y > 0).astype(int)
    fitted = clone(ranker).fit(X, y, qid)
    fitted.save(tmp_path / "ranker.json")
    asked = FORGETFUL | (OF_SCORES if isinstance(ranker, TwoStageRanker) else {})
    for one in (fitted, pickle.loads(pickle.dumps(fitted)), Ranker.load(tmp_path / "ranker.json")):
        for name, call in asked.items():
            with pytest.raises(ValueError, match=f"qid: {name} needs the query of each row, because the fit had"):
                call(one, X, y)
            call(one, X, y, qid=None)  # which is to say that all rows are one list
            call(one, X, y, qid=qid)
    alone = clone(ranker).fit(X, y)
    assert alone.score(X, y) == alone.score(X, y, None)
    assert alone.fit(X, y, qid).fit(X, y).rank(X)["position"].tolist() == list(range(1, len(y) + 1))


def test_a_grid_search_that_does_not_route_the_queries_reports_no_score():
    X, y, qid = queries()
    search = GridSearchCV(SurrogateRanker(), {"l2": [0.1, 1.0]}, cv=GroupKFold(2), error_score="raise")
    with pytest.raises(ValueError, match=r"qid: score needs .* metadata routing and set_score_request\(qid=True\)"):
        search.fit(X, y, qid=qid, groups=qid)


# equality with what they are built on


@pytest.mark.parametrize(("size", "spread"), [(1.0, 1e-12), (1e6, 1e-6), (3.7, 1e-13), (1e-200, 1e-212), (0.0, 1e-250)])
def test_a_column_that_varies_little_decides_the_order_and_the_bound(size, spread):
    rng = np.random.default_rng(0)
    z, other = rng.normal(size=(2, 60))
    X, y = np.column_stack([other, size + spread * z]), (z > 0.5).astype(int)
    ranker = exact("dcg", node_limit=300).fit(X, y)
    perfect = RankStatistic("dcg").best(60, int(y.sum()))
    assert ranker.problem_.d == 2
    assert ranker.solution_.value == pytest.approx(perfect, rel=1e-12)
    assert ranker.solution_.bound >= ranker.score(X, y) == pytest.approx(perfect, rel=1e-12)
    qid = np.repeat([0, 1, 2], 20)  # constant in each list, or not
    within = TopLists.of(np.column_stack([X, np.array([0.1, 0.3, 0.7])[qid], np.full(60, 0.1)]), qid)
    assert within.varying.tolist() == [True, True, False, False]
    with pytest.raises(ValueError, match="a column that varies must have a deviation of at least 1e-300"):
        exact("dcg").fit(np.column_stack([z, np.arange(60) * 5e-324]), y)


@pytest.mark.parametrize(
    ("statistic", "options"),
    thinned(2, ["dcg", "auc"], [{}, {"C": 0.1}, {"max_nonzeros": 1}, {"ties": "subrank"}, {"margin": 0.1}]),
)
def test_the_exact_ranker_solves_the_problem_of_the_standardised_list(statistic, options):
    X, y = one_list()
    ranker = exact(statistic, node_limit=300, **options).fit(X, y)
    lists = TopLists.of(X, None)
    problem = RerankProblem(lists.Z, y, statistic, **options)
    solution = solve(problem, ReproducibleSearch(), Limits(node_limit=300))
    np.testing.assert_array_equal(ranker.solution_.weights, solution.weights)
    assert (ranker.solution_.value, ranker.solution_.bound) == (solution.value, solution.bound)
    np.testing.assert_array_equal(ranker.coef_, lists.raw(solution.weights))
    np.testing.assert_allclose(X @ ranker.coef_ + ranker.intercept_, ranker.predict(X), atol=1e-9)
    assert ranker.problem_.evaluate(ranker.solution_.weights) == solution.value


@pytest.mark.parametrize(
    ("statistic", "options"), thinned(3, ["dcg", "mrr", "dcg@3"], [{}, {"normalize": True}, {"gain": "linear"}])
)
def test_the_exact_ranker_maximises_what_it_reports(statistic, options):
    X, y, qid = queries()
    ranker = exact(statistic, **QUICK, **options).fit(X, y, qid)
    best = ranker.solution_.value / (1 if "normalize" in options else 6)  # the sum of six lists, or already the mean
    assert ranker.score(X, y, qid) == pytest.approx(best, rel=1e-12)


def test_the_exact_ranker_maximises_the_mean_auc_of_lists():
    X, y, qid = queries(n=48, lists=4)
    y = (y > 1).astype(int)
    y[qid == "query 0"] = 0  # no pair, no AUC
    ranker = exact("auc", node_limit=300).fit(X, y, qid)
    number = np.unique(qid, return_inverse=True)[1]
    angles = np.random.default_rng(1).normal(size=(300, 3))

    def mean_auc(scores):
        given = torch.from_numpy(scores), torch.from_numpy(y), "auc"
        return rank_statistic(*given, qid=torch.from_numpy(number)).nanmean().item()

    assert ranker.score(X, y, qid) == mean_auc(X @ ranker.coef_) >= max(mean_auc(X @ w) for w in angles)


def test_the_exact_ranker_keeps_signs_and_takes_warm_starts():
    X, y = one_list(d=3)
    free = exact(node_limit=300).fit(X, y)
    held = exact(node_limit=300, signs={0: "-"}).fit(X, y, warm_starts=[[-1.0, 0.0, 0.0]])
    assert free.coef_[0] > 0 >= held.coef_[0]
    assert len(held.warm_starts_) == 1


@pytest.mark.parametrize(
    "make", [ExactRanker, lambda **options: TwoStageRanker("ranknet", ExactRanker(**options), choose=False)]
)
def test_a_fit_with_a_node_limit_is_reproducible(make):
    X, y = one_list(n=80, d=5)
    limits = Limits(node_limit=300, time_limit=math.inf, seed=3)
    one, two = (make(limits=limits).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.solution_.nodes == two.solution_.nodes >= 300
    assert one.solution_.status is Status.NODE_LIMIT


# bases of the reranker


class Recorder(BaseEstimator):
    """A base that scores by one column and remembers the lists of its fit."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y, qid=None):
        self.qid_ = None if qid is None else np.array(qid)
        return self

    def predict(self, X):
        return X[:, self.column]


@pytest.mark.parametrize(
    ("base", "method"),
    [
        (Ridge(), "predict"),
        (LogisticRegression(), "decision_function"),
        (RandomForestClassifier(10, random_state=0), "predict_proba"),
        (MLPClassifier((2,), max_iter=2000, random_state=0), "predict_proba"),
        (SurrogateRanker("hinge"), "decision_function"),
        (make_pipeline(StandardScaler(), Ridge()), "predict"),
    ],
)
def test_any_estimator_can_be_the_base(base, method):
    X, y = one_list()
    ranker = TwoStageRanker(base, STAGE, 10, choose=False).fit(X, y)
    below = ~ranker.reranked(X)
    assert below.sum() >= 30
    scores = getattr(getattr(ranker.base_, "estimator_", ranker.base_), method)(X)
    scores = scores[:, 1] if method == "predict_proba" else scores
    np.testing.assert_allclose(ranker.predict(X)[below], scores[below], rtol=1e-12)  # linear ones by column


def test_the_base_learns_from_queries_if_it_can():
    X, y, qid = queries()
    number = np.unique(qid, return_inverse=True)[1]
    found = TwoStageRanker(Recorder(), STAGE, 4, choose=False).fit(X, y, qid).base_.estimator_.qid_
    np.testing.assert_array_equal(np.equal.outer(found, found), np.equal.outer(number, number))
    assert TwoStageRanker(Ridge(), STAGE, 4, choose=False).fit(X, y, qid).coef_ is not None


class GroupRecorder(BaseEstimator):
    """A base that learns from groups, as the rankers of LightGBM and XGBoost do, and scores by the first column."""

    def fit(self, X, y, group=None):
        if group is None:
            raise ValueError("Should set group for ranking task")
        assert sum(group) == len(X) == len(y)
        self.seen_ = X, y, np.asarray(group)
        return self

    def predict(self, X):
        return X[:, 0]


@pytest.mark.parametrize(
    "base", [GroupRecorder(), make_pipeline("passthrough", GroupRecorder())], ids=["alone", "piped"]
)
def test_a_base_that_learns_from_groups_gets_the_rows_list_by_list(base):
    X, y, qid = queries()
    ranker = TwoStageRanker(base, STAGE, 4, choose=False).fit(X, y, qid)
    fitted = ranker.base_.estimator_
    seen_X, seen_y, sizes = (fitted if isinstance(base, GroupRecorder) else fitted[-1]).seen_
    ends = np.cumsum(sizes)[:-1]
    found = set()
    for rows, labels in zip(np.split(seen_X, ends), np.split(seen_y, ends), strict=True):
        query = qid[(rows[0] == X).all(axis=1)].item()
        found.add(query)
        np.testing.assert_array_equal(rows, X[qid == query])
        np.testing.assert_array_equal(labels, y[qid == query])
    assert len(found) == len(sizes) == 6
    below = ~ranker.reranked(X, qid)
    np.testing.assert_array_equal(ranker.predict(X, qid)[below], X[below, 0])  # in the order of the caller's rows


@pytest.mark.usefixtures("routing")
def test_the_base_learns_from_queries_if_it_asks_for_them():
    X, y, qid = queries()
    asking = TwoStageRanker(Recorder().set_fit_request(qid=True), STAGE, 4, choose=False).fit(X, y, qid=qid)
    assert asking.base_.estimator_.qid_ is not None
    declining = TwoStageRanker(Recorder().set_fit_request(qid=False), STAGE, 4, choose=False).fit(X, y, qid=qid)
    assert declining.base_.estimator_.qid_ is None
    with pytest.raises(UnsetMetadataPassedError, match=r"\[qid\] are passed but are not explicitly set"):
        TwoStageRanker(Recorder(), STAGE, 4, choose=False).fit(X, y, qid=qid)


# score


def test_lists_weigh_what_their_rows_of_the_lowest_label_do_on_average():
    X, y, qid = queries(n=40, lists=2)
    ranker = SurrogateRanker(normalize=True).fit(X, y, qid)
    one, two = (ranker.score(X[qid == q], y[qid == q], None) for q in np.unique(qid))
    first = (qid == "query 0").astype(float)
    assert ranker.score(X, y, qid) == pytest.approx((one + two) / 2)
    assert ranker.score(X, y, qid, sample_weight=3 * first + 1) == pytest.approx((4 * one + two) / 5)
    assert ranker.score(X, y, qid, sample_weight=first) == pytest.approx(one)
    assert ranker.score(X, y, qid, sample_weight=3 * first + 1 + 7 * (y > 0)) == pytest.approx((4 * one + two) / 5)
    found = ranker.score(X, y, None, sample_weight=3 * first + 1)
    assert found == pytest.approx(ranker.score(X, y, None), rel=1e-12)


@pytest.mark.parametrize("normalize", [False, True])
def test_rankers_score_themselves_by_hits_and_average_precision(normalize):
    """Normalised or not, precision, recall and average precision are the shares that they are."""
    X, y, qid = queries(n=40, lists=2)
    y = np.where(y > 0, y + 1, 0)  # graded: a hit is a label above 0
    scores = SurrogateRanker(l2=0.1).fit(X, y, qid).decision_function(X, qid)
    hits = [y[rows][np.argsort(-scores[rows])] > 0 for rows in (qid == q for q in np.unique(qid))]
    by_hand = {
        "hits@5": [hit[:5].sum() / (min(5, hit.sum()) if normalize else 1) for hit in hits],
        "precision@5": [hit[:5].mean() for hit in hits],
        "recall@5": [hit[:5].sum() / hit.sum() for hit in hits],
        "ap": [(hit * hit.cumsum() / np.arange(1, len(hit) + 1)).sum() / hit.sum() for hit in hits],
    }
    for name, values in by_hand.items():
        ranker = SurrogateRanker(statistic=name, normalize=normalize, l2=0.1).fit(X, y, qid)
        assert ranker.score(X, y, qid) == pytest.approx(np.mean(values), abs=1e-12)


def test_a_score_that_no_list_defines_is_nan():
    X, y = one_list()
    ranker = SurrogateRanker(statistic="auc").fit(X, y)
    assert math.isnan(ranker.score(X, np.zeros(60)))
    assert ranker.score(X, np.r_[y[:30], np.zeros(30)], np.arange(60) // 30) == ranker.score(X[:30], y[:30])


# errors


def test_a_fit_cut_short_warns():
    with pytest.warns(ConvergenceWarning, match="stopped at max_steps=2 before the tolerance was reached"):
        SurrogateRanker(max_steps=2).fit(*one_list())


def test_sizes_in_place_of_ids_are_answered_with_how_to_make_them():
    with pytest.raises(ValueError, match=r"got shape \(2,\); these are sizes: qid=np.repeat"):
        SurrogateRanker().fit(np.eye(4), [0, 1, 0, 1], qid=[2, 2])


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (SurrogateRanker("hing"), "loss: unknown name 'hing'"),
        (SurrogateRanker(l2=-1.0), "l2 must be a finite number >= 0, got -1.0"),
        (ExactRanker("ap"), "statistic ap: average precision is no sum .* 'dcg' .* 'hits@50'"),
        (ExactRanker(C=-1), "C must be a number from 0 to 1e300, got -1"),
        (TwoStageRanker("nope", choose=False), "unknown name 'nope'"),
        (
            TwoStageRanker(exact=ExactRanker, choose=False),
            "exact must be a rank statistic, its name or an ExactRanker, got <class",
        ),
        (TwoStageRanker(top_k=1, choose=False), "top_k must be an integer >= 2 or None for the full list, got 1"),
    ],
    ids=str,
)
def test_bad_parameters_are_named_by_fit(ranker, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ranker.fit(*one_list())


@each_ranker_of_queries
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y, qid: (X, y, qid[:-1]), r"qid: query ids must be one per row \(60\), got shape \(59,\)"),
        (lambda X, y, qid: (X, y, np.where(qid == "query 1", None, qid)), "query ids must not be missing"),
        (lambda X, y, qid: (X, y, np.linspace(0, 1, 60)), "query ids must be integers of 64 bits or texts"),
        (lambda X, y, qid: (X, y - 1, qid), "y must hold finite labels >= 0, 0 and 1 or graded, got -1"),
        (lambda X, y, qid: (X, 0 * y, qid), "two different"),
    ],
    ids=["short", "missing", "fractions", "negative", "equal"],
)
def test_bad_data_is_named(ranker, change, message):
    with pytest.raises(ValueError, match=message):
        clone(ranker).fit(*change(*queries()))
