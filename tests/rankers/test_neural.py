"""Neural rankers: scorers of rows and of lists, scaling, validation and early stopping, the same by config."""

import functools

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm, rankdata

from ltr.fitting import Fit, FitOptions, Validation, held_out
from ltr.losses.parsing import LOSSES
from ltr.metrics import normalized_rank_statistic
from ltr.rankers import ExactRanker, SurrogateRanker, TwoStageRanker
from ltr.rankers.scorers import AttentionScorer, MLPScorer, Quantiles
from tests.tiers import slow_but
from trainers.config import parse_config
from trainers.run.experiment import run_experiment

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def lists(queries=60, seed=0, d=4):
    """Graded lists whose labels depend on a product and a fold of the features."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(3, 12, size=queries))
    X = rng.normal(size=(len(qid), d))
    hidden = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + 0.2 * rng.normal(size=len(qid))
    return X, (hidden > 0.7).astype(int) + (hidden > 1.7), qid


def ndcg(ranker, X, y, qid):
    scores = torch.from_numpy(ranker.predict(X, qid))
    values = normalized_rank_statistic(scores, torch.from_numpy(y), "dcg", gain="exp2", qid=torch.from_numpy(qid))
    return float(values.nanmean())


# scorers


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_by_attention_follow_the_items_and_ignore_padding(dtype):
    torch.manual_seed(0)
    scorer = AttentionScorer(3, hidden=(16,), heads=4).to(dtype)
    features, order = torch.randn(2, 5, 3, dtype=dtype), torch.randperm(5)
    scores, tolerance = scorer(features), 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(scorer(features[:, order]), scores[:, order], rtol=0, atol=tolerance)
    padded = torch.cat([features, torch.full((2, 3, 3), 99.0, dtype=dtype)], 1)
    mask = torch.arange(8).expand(2, 8) < 5
    found = scorer(padded, mask)
    torch.testing.assert_close(found[:, :5], scores, rtol=0, atol=tolerance)
    assert (found[:, 5:] == 0).all()
    other = scorer(torch.cat([features[:, :4], features[:, 4:] + 1.0], 1))
    assert not torch.allclose(other[:, :4], scores[:, :4], atol=1e-3)  # an item's score depends on the others
    none = scorer(features, torch.zeros(2, 5, dtype=torch.bool))
    none.sum().backward()
    assert (none == 0).all()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in scorer.parameters())


def test_quantiles_give_the_normal_places_of_mid_ranks():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.exp(3 * rng.normal(size=100)), rng.integers(0, 4, size=100), np.full(100, 7.0)])
    expected = norm.ppf((rankdata(X[:, :2], axis=0) - 0.5) / 100)
    expected = (expected - expected.mean(0)) / expected.std(0)
    found = Quantiles.fit(X)(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(found[:, :2], expected, atol=1e-12)
    assert (found[:, 2] == 0).all()
    many = np.exp(rng.normal(size=(5000, 1)))
    coarse, exact = Quantiles.fit(many, 64)(torch.from_numpy(many)), norm.ppf((rankdata(many) - 0.5) / 5000)
    assert np.abs(coarse.numpy()[:, 0] - exact)[np.abs(exact) < 2].max() < 0.05
    beyond = Quantiles.fit(many)(torch.tensor([[-1e9], [1e9]]))
    assert beyond.abs().max() < 5


# validation


@pytest.mark.parametrize("by_query", [True, False])
def test_rows_are_held_out_by_whole_lists_or_by_label(by_query):
    _, y, qid = lists()
    rows = held_out(y.astype(float), qid if by_query else None, None, 0.2, seed=3)
    if by_query:
        assert not set(qid[rows]) & set(qid[~rows])
        assert len(set(qid[rows])) == 12
    else:
        np.testing.assert_allclose(np.bincount(y[rows]) / np.bincount(y), 0.2, atol=0.02)
    other = held_out(y.astype(float), qid if by_query else None, None, 0.2, seed=4)
    assert not np.array_equal(rows, other)


@pytest.mark.parametrize("scorer", ["mlp", "attention"])
def test_the_best_step_by_validation_is_kept_and_patience_ends_the_fit(scorer):
    X, y, qid = lists()
    steps = []
    ranker = SurrogateRanker(scorer=scorer, hidden=(16,), patience=4, on_step=lambda step, _: steps.append(step))
    ranker.fit(X, y, qid)
    reached = [step.validation for step in steps]
    assert ranker.fit_.stopped == "early_stop"
    assert ranker.converged_
    assert ranker.fit_.best_index == len(steps) - 4 == int(np.argmax(reached)) + 1
    rows = held_out(y.astype(float), qid, None, 0.2, seed=0)
    assert ranker.validation_ == max(reached) == pytest.approx(ndcg(ranker, X[rows], y[rows], qid[rows]), abs=1e-9)


def test_rows_of_the_users_own_are_validated_by_and_all_others_are_learnt_from():
    X, y, qid = lists()
    held = lists(seed=1)
    ranker = SurrogateRanker(scorer="mlp", hidden=(16,), patience=3).fit(X, y, qid, validation_set=held)
    assert ranker.validation_ == pytest.approx(ndcg(ranker, *held), abs=1e-9)
    with pytest.raises(ValueError, match="validation_set must have a qid if and only if"):
        SurrogateRanker(scorer="mlp").fit(X, y, qid, validation_set=held[:2])


@pytest.mark.parametrize("scorer", ["mlp", "attention"])
def test_an_interrupted_training_goes_on_bit_for_bit(scorer):
    X, y, qid = lists(30)
    options = {"scorer": scorer, "hidden": (8,), "max_steps": 14, "schedule": "plateau", "patience": 6, "clip": 1.0}

    def interrupt(step, ranker):
        if step.index == 5:
            raise KeyboardInterrupt

    whole = SurrogateRanker("list_net", **options).fit(X, y, qid)
    stopped = SurrogateRanker("list_net", on_step=interrupt, **options)
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y, qid)
    resumed = SurrogateRanker("list_net", **options).fit(X, y, qid, resume=stopped.fit_.state_dict())
    np.testing.assert_array_equal(resumed.predict(X, qid), whole.predict(X, qid))
    assert (resumed.n_iter_, resumed.validation_) == (whole.n_iter_, whole.validation_)
    with pytest.raises(ValueError, match="the same validation"):
        SurrogateRanker("list_net", **options, validation=0).fit(X, y, qid, resume=stopped.fit_.state_dict())


def test_a_plateau_halves_the_learning_rate():
    X, y, qid = lists(30)
    worst = Validation(X, (y.max() - y).astype(float), qid)  # gets worse while the fit gets better
    options = FitOptions("adam", learning_rate=0.01, schedule="plateau", patience=9, max_steps=50, batch_size=8)
    torch.manual_seed(0)
    fit = Fit(MLPScorer(4, (8,)).float(), "ranknet", X, y, options, qid, validation=worst)
    fit.run()
    assert fit.stopped == "early_stop"
    waited = [index - fit.best_index for index in fit.state_dict()["halved"]]
    assert waited[-2:] == [3, 6]


def test_a_fit_with_weight_decay_and_a_schedule_is_that_of_torch():
    X, y, _ = lists(10)
    options = FitOptions("adam", learning_rate=0.05, schedule="cosine", max_steps=5, weight_decay=0.3, l2=0.0, clip=0.1)
    torch.manual_seed(0)
    ours = MLPScorer(4, (3,))
    theirs = MLPScorer(4, (3,))
    theirs.load_state_dict(ours.state_dict())
    fit = Fit(ours, "ranknet", X, y, options)
    biases = [p for name, p in theirs.named_parameters() if name.endswith("bias")]
    weights = [p for name, p in theirs.named_parameters() if not name.endswith("bias")]
    adam = torch.optim.AdamW([{"params": weights}, {"params": biases, "weight_decay": 0}], 0.05, weight_decay=0.3)
    for step in range(4):
        next(iter(fit))
        for group in adam.param_groups:
            group["lr"] = 0.05 * (1 + np.cos(np.pi * (step + 1) / 5)) / 2
        adam.zero_grad()
        LOSSES["ranknet"]()(theirs(torch.from_numpy(X)), torch.from_numpy(y)).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.1)
        adam.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


# rankers


TRAINED = [(loss, scorer) for loss in LOSSES for scorer in ("mlp", "attention")]


# in the quick tier every loss and, in turn, either scorer
@pytest.mark.parametrize(("loss", "scorer"), slow_but(TRAINED, TRAINED[::4]))
def test_every_loss_trains_every_scorer(loss, scorer):
    X, y, qid = lists(40)
    y = (y > 0).astype(int) if loss == "logistic" else y
    loss = "smooth(temperature=0.2)" if loss == "smooth" else loss
    test = lists(40, seed=1)
    ranker = SurrogateRanker(loss, scorer=scorer, hidden=(32,), dropout=0.0, learning_rate=0.01, max_steps=30)
    ranker.fit(X, y, qid)
    assert ndcg(ranker, *test) > linear_ndcg(loss == "logistic") + 0.01


@functools.cache
def linear_ndcg(binary):
    """What a linear ranker reaches on the lists of the test above."""
    X, y, qid = lists(40)
    return ndcg(SurrogateRanker().fit(X, (y > 0).astype(int) if binary else y, qid), *lists(40, seed=1))


def test_a_ranker_of_lists_asks_for_them_also_under_two_stages():
    X, y, qid = lists(20)
    ranker = SurrogateRanker(scorer="attention", max_steps=2).fit(X, y, qid)
    for forgotten in (ranker.predict, ranker.decision_function, ranker.rank):
        with pytest.raises(ValueError, match=r"qid: .* needs the query of each row, because the fit had queries"):
            forgotten(X)
    one_list = ranker.predict(X[qid == 3], None)  # which is to say that all rows are one list
    np.testing.assert_allclose(one_list, ranker.predict(X, qid)[qid == 3], atol=1e-5)
    alone = np.concatenate([ranker.predict(X[qid == q], qid[qid == q]) for q in range(20)])
    np.testing.assert_allclose(alone, ranker.predict(X, qid), atol=1e-5)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(ranker.predict(X[order], qid[order]), ranker.predict(X, qid)[order], atol=1e-5)
    two = TwoStageRanker(ranker, ExactRanker("dcg", method="local_search"), 3, choose=False)
    two.fit(X, y, qid, base_is_fitted=True)
    np.testing.assert_allclose(two.predict(X[qid == 3], None), two.predict(X, qid)[qid == 3], atol=1e-5)


# by config


def test_a_run_validates_by_a_file(tmp_path):
    for seed, name in enumerate(("train", "test", "validation")):
        X, y, qid = lists(20, seed=seed)
        columns = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x in X]
        rows = [f"{label} qid:{q} {row}" for label, q, row in zip(y, qid, columns, strict=True)]
        (tmp_path / f"{name}.txt").write_text("\n".join(rows) + "\n")
    keys = {"path": "train", "test_path": "test", "validation_path": "validation"}
    tree = {
        "name": "neural",
        "runs_dir": str(tmp_path),
        "data": {key: str(tmp_path / f"{name}.txt") for key, name in keys.items()},
        "surrogate": {"losses": ["ranknet"], "max_steps": 3, "scorer": "mlp", "hidden": [8]},
        "baselines": {"methods": []},
        "exact": {"enabled": False, "statistic": "dcg"},
        "tracking": {"loggers": []},
    }
    results = run_experiment(parse_config(tree))
    ranker = SurrogateRanker.load(tmp_path / "neural" / "ranknet" / "model.safetensors")
    X, y, qid = lists(20, seed=2)
    reached = ndcg(ranker, pd.DataFrame(X, columns=ranker.feature_names_in_), y, qid)
    assert ranker.validation_ == pytest.approx(reached, abs=1e-9)
    assert results.rows[0]["validation"] == ranker.validation_
    assert "validation" in results.table.columns
