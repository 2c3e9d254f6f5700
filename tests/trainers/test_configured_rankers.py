"""Rankers from configs, the search's threads, answers moved after the fact, and the stand-in data."""

import dataclasses
import inspect

import pytest

from ltr.data import gaussians
from ltr.exact import METHODS
from ltr.rankers import ExactRanker, LogisticRegressionRanker, RankBoostRanker, SurrogateRanker, TwoStageRanker
from tests.rankers.two_stages import LIMITS, two_stage
from trainers.config import parse_config
from trainers.config.sections import LIMITS as SOLVE_LIMITS
from trainers.config.sections import ExactConfig, LogisticRegressionConfig, RankBoostConfig, SurrogateConfig
from trainers.methods import first_stage_ranker, two_stage_ranker
from trainers.task.measures import statistic_of


def config_for(**sections):
    return parse_config({"name": "x", "seed": 3, "data": {"name": "gaussians"}, **sections})


def test_rankers_have_the_options_of_the_config():
    config = config_for(
        surrogate={"losses": ["hinge"], "l2": 0.5, "max_steps": 7},
        baselines={"rankboost": {"rounds": 9, "thresholds": "all"}, "logistic_regression": {"C": 2.0}},
    )
    for method, kind, options in (
        ("hinge", SurrogateRanker, {"loss": "hinge", "l2": 0.5, "max_steps": 7, "seed": 3}),
        ("rankboost", RankBoostRanker, {"rounds": 9, "thresholds": None}),
        ("logistic_regression", LogisticRegressionRanker, {"C": 2.0}),
    ):
        ranker = first_stage_ranker(config, method)
        assert isinstance(ranker, kind)
        assert options.items() <= ranker.get_params().items()


# keys that a section has beside the arguments of its rankers
ELSEWHERE = {
    *("losses", "certify", "enabled", "base", "certificate", "top_k", "choose", "base_score", "spread", *SOLVE_LIMITS),
    *("front", "ranges"),  # of the list that a run reranks
}


@pytest.mark.parametrize(
    ("section", "ranker"),
    [
        (SurrogateConfig, SurrogateRanker),
        (RankBoostConfig, RankBoostRanker),
        (LogisticRegressionConfig, LogisticRegressionRanker),
        (ExactConfig, ExactRanker),
    ],
)
def test_a_key_is_an_argument_of_its_ranker(section, ranker):
    # so a new key is a field of its section and an argument of its ranker, and nothing else
    assert section.model_fields.keys() - ELSEWHERE <= inspect.signature(ranker).parameters.keys()


EXACT = {"top_k": "full", "statistic": "auc", "C": 0.1, "margin": 0.01, "time_limit": 2.0, "gap": 0.1,
         "node_limit": 5, "memory_limit": 100.0, "recentre": "max", "ties": "subrank", "seed": 8, "choose": False,
         "max_nonzeros": 2}  # fmt: skip


def test_the_two_stage_ranker_has_every_option_of_the_exact_stage():
    config = config_for(exact=EXACT, statistics={"gain": "linear"})
    ranker = two_stage_ranker(config, LogisticRegressionRanker())
    assert ranker.top_k is None
    assert ranker.exact.gain == "linear"
    assert ranker.exact.method == "auto"
    for name in EXACT.keys() - {"top_k", "choose"}:
        assert getattr(ranker.exact.limits if name in LIMITS else ranker.exact, name) == EXACT[name]
    assert two_stage_ranker(config_for(), LogisticRegressionRanker()).exact.limits.seed == 3


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_a_search_is_told_its_threads(method):
    exact = config_for().exact.model_copy(update={"method": method})  # some go with some statistics only
    config = config_for().model_copy(update={"exact": exact})
    assert two_stage_ranker(config, LogisticRegressionRanker()).exact.method == method
    solver = two_stage_ranker(config, LogisticRegressionRanker(), threads=3).exact.method
    named = METHODS["weight_space" if method == "auto" else method]
    if hasattr(named, "threads"):
        assert solver == dataclasses.replace(named, threads=3)
    else:
        assert solver == method


@pytest.mark.parametrize("norm", ["l2", "max"])
def test_a_ranker_moved_afterwards_is_the_one_fitted_so(norm):
    data = gaussians(n=200)
    plain = TwoStageRanker("logistic", top_k=30, choose=False).fit(data.X, data.y)
    weights, note = plain.coef_.copy(), plain.note_
    moved = plain.recentred(norm)
    fitted = two_stage(top_k=30, recentre=norm).fit(data.X, data.y)
    assert moved.exact.recentre == moved.exact_.recentre == norm
    assert moved.coef_.tolist() == fitted.coef_.tolist()
    assert moved.note_ == fitted.note_
    assert moved.decision_function(data.X).tolist() == fitted.decision_function(data.X).tolist()
    # the value on the list does not fall, and the ranker itself stays as it is
    top = plain.reranked(data.X)
    values = [statistic_of(r.decision_function(data.X)[top], data.y[top], "dcg") for r in (plain, moved)]
    assert values[1] >= values[0] - 1e-12
    assert (plain.exact, plain.exact_.recentre, plain.note_) == ("dcg", None, note)
    assert plain.coef_.tolist() == weights.tolist()
