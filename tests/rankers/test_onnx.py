"""ONNX models score as the rankers do: every ranker, raw tables, runs, and a process without this package."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import PoissonRegressor
from sklearn.naive_bayes import GaussianNB

from ltr.cards import CardRanker
from ltr.data import TablePreparation
from ltr.rankers import LogisticRegressionRanker, RankBoostRanker, SurrogateRanker, TwoStageRanker
from tests.rankers.travelling import FITTED, OTHER_BASE, STAGE, fitted, one_list, outputs_of, session_of
from trainers.cli import main

ROWS = 10_000


def many_rows():
    """Rows with ties, and lists of different lengths in any order."""
    X = one_list(ROWS, seed=3)[0]
    X[4000:4200] = X[:200]
    X[:200] = one_list(200)[0]  # training rows: one of them is at the threshold
    return X, np.random.default_rng(4).integers(0, 200, ROWS) * 7 - 90


def assert_single(found, scores, number=0):
    """Check scores that layers computed in single precision: only rows that nearly tie may change places."""
    assert (found.astype(np.float32) == found).all()
    bound = 1e-6 * (1 + np.abs(scores).max())
    np.testing.assert_allclose(found, scores, rtol=0, atol=bound)
    number = np.broadcast_to(number, scores.shape)
    order = np.lexsort((-found, number))
    for own in np.split(scores[order], np.flatnonzero(np.diff(number[order])) + 1):
        assert (own <= np.minimum.accumulate(own) + 2 * bound).all()


@pytest.mark.parametrize("name", FITTED)
def test_every_ranker_scores_and_orders_as_its_model(name, tmp_path):
    ranker, lists = fitted(name)
    X, qid = many_rows()
    found = outputs_of(session_of(ranker, tmp_path), X, qid)
    given = {"qid": qid} if lists else {}
    scores = ranker.decision_function(X, **given)
    number = pd.factorize(qid)[0] if lists else np.zeros(ROWS)
    assert found["score"].dtype == np.float64
    if name.startswith(("mlp", "attention")) and "reranked" not in found:
        assert_single(found["score"], scores, number)
    else:
        np.testing.assert_allclose(found["score"], scores, rtol=0, atol=1e-9)
    if not any(word in name for word in ("mlp", "network", "attention")):  # the same sums in the same order
        np.testing.assert_array_equal(found["score"], scores)
    if not name.startswith(("mlp", "attention")):  # in which rows with equal features differ in the last digit
        np.testing.assert_array_equal(np.lexsort((-found["score"], number)), ranker.order(X, **given))
    if "reranked" in found:
        np.testing.assert_array_equal(found["reranked"], ranker.reranked(X, **given))


def test_all_rows_of_one_list_and_a_single_row(tmp_path):
    for name in ("queries reranked", "attention"):
        ranker, _ = fitted(name)
        session = session_of(ranker, tmp_path)
        for n in (1, 3, 30):
            X = one_list(n, seed=n)[0]
            expected = ranker.decision_function(X, np.zeros(n, dtype=int))
            found = outputs_of(session, X)["score"]
            if name == "attention":
                assert_single(found, expected)
            else:
                np.testing.assert_array_equal(found, expected)


def test_a_kept_base_order_and_equal_scores(tmp_path):
    X, y = one_list()
    kept = TwoStageRanker(fitted("logistic")[0], STAGE, 30, choose=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ltr.rankers.two_stage.labels_agree", lambda *_: False)
        patch.setattr("ltr.rankers.exact.labels_agree", lambda *_: True)
        kept.fit(X, y)
    assert kept.coef_ is None
    found = outputs_of(session_of(kept, tmp_path), X)
    np.testing.assert_array_equal(found["score"], kept.predict(X))
    assert not found["reranked"].any()
    nothing = RankBoostRanker(5).fit(np.column_stack([y * 0.0, y]), y)
    nothing.features_, nothing.cuts_, nothing.alphas_ = nothing.features_[:0], nothing.cuts_[:0], nothing.alphas_[:0]
    assert outputs_of(session_of(nothing, tmp_path), np.ones((3, 2)))["score"].tolist() == [0.0] * 3


@pytest.mark.parametrize("scale", ["standardize", "quantile"])
@pytest.mark.parametrize("scorer", ["mlp", "attention"])
def test_networks_keep_the_digits_of_columns_far_from_zero(scorer, scale, tmp_path):
    X, y = one_list(300)
    # seconds since 1970, years, and numbers of which single precision has no digits
    X = np.round(X, 2) + np.array([1.7e9, 2020.0, 0.0])
    X[:, 2] = np.round(X[:, 2]) - 4e12
    X = np.column_stack([X, np.full(len(X), 7.0)])
    ranker = SurrogateRanker(scorer=scorer, hidden=(8,), scale=scale, max_steps=3).fit(X, y)
    rows = np.concatenate([X, X[::-1], (X[1:] + X[:-1]) / 2, X[:7]])  # ties, and places between the training rows
    found = outputs_of(session_of(ranker, tmp_path), rows)["score"]
    given = {"qid": None} if scorer == "attention" else {}
    assert len(np.unique(found)) > 250
    assert_single(found, ranker.predict(rows, **given))
    np.testing.assert_array_equal(found[: len(X)], found[len(X) : 2 * len(X)][::-1])
    rows[:3] = [[1e300, 2020, 0, 7], [-1e300, 0, 1e18, 6], [1e39, -1e39, -4e12, 8]]
    assert np.isfinite(outputs_of(session_of(ranker, tmp_path), rows)["score"]).all()


def test_linear_bases_of_scikit_learn_have_a_form_and_others_are_named(tmp_path):
    X, y = one_list()
    ranker = OTHER_BASE.fit(X, y)
    found = outputs_of(session_of(ranker, tmp_path), one_list(500, seed=8)[0])["score"]
    np.testing.assert_allclose(found, ranker.predict(one_list(500, seed=8)[0]), rtol=0, atol=1e-9)
    for base in (GaussianNB(), PoissonRegressor()):
        with pytest.raises(TypeError, match=f"base: a {type(base).__name__} has no form that can be"):
            TwoStageRanker(base, STAGE, 30, choose=False).fit(X, y).to_onnx(tmp_path / "no.onnx")
    assert not (tmp_path / "no.onnx").exists()


# tables


def table(n, seed, *, new=False):
    """A table with everything in it; new rows have texts that no training row has, and further missing values."""
    rng = np.random.default_rng(seed)
    towns = np.array(
        ["Ulm", "Köln (West)", "a.b+c|d", "St. Gallen", "12", *map("rare {}".format, range(9))], dtype=object
    )
    shares = np.array([30, 25, 20, 10, 10, *[5 / 9] * 9]) / 100
    found = pd.DataFrame({"age": rng.integers(20, 90, n).astype(float), "hours": rng.gamma(2, 500, n)})
    found["town"] = rng.choice(towns, n, p=shares / shares.sum())
    found["since"] = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D")
    found["smoker"] = rng.choice(["yes", "no"], n)
    found["member"] = rng.random(n) < 0.4
    found["score"] = rng.normal(size=n)
    label = (0.03 * found["age"] + found["smoker"].eq("yes") + (found["town"] == "Ulm") + rng.normal(size=n)) > 3.4
    found["town"] = found["town"].mask(rng.random(n) < 0.1)
    found["age"] = found["age"].mask(rng.random(n) < 0.1)
    found["since"] = found["since"].mask(rng.random(n) < 0.1)
    if new:
        found["town"] = found["town"].mask(rng.random(n) < 0.1, " Unseen\u00a0").mask(rng.random(n) < 0.1, "  ")
        found["town"] = found["town"].mask(rng.random(n) < 0.1, "12.0").mask(rng.random(n) < 0.1, "  Ulm ")
        found["smoker"] = found["smoker"].mask(rng.random(n) < 0.1).mask(rng.random(n) < 0.1, "perhaps")
        found["hours"] = found["hours"].mask(rng.random(n) < 0.1)
    return found, label.astype(int).to_numpy()


def feeds_of(session, rows):
    """Numbers as float64 with NaN where missing, dates as days, texts with nothing where missing."""
    feeds = {}
    for one in session.get_inputs():
        if one.name not in rows:
            continue
        column = rows[one.name]
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            column = (column - pd.Timestamp(0)) / pd.Timedelta(days=1)
        text = one.type == "tensor(string)"
        feeds[one.name] = (column.astype(object).fillna("").astype(str) if text else column.astype(float)).to_numpy()
    return feeds


@pytest.mark.parametrize("kind", ["logistic", "mlp", "two stages", "card"])
def test_raw_tables_with_missing_values_and_unseen_categories(kind, tmp_path):
    rows, y = table(400, 0)
    new, _ = table(ROWS, 1, new=True)
    preparation = TablePreparation().fit(rows)
    names = preparation.get_feature_names_out()
    assert {"town = other", "town is missing", "since is missing", "smoker", "member"} <= {
        name.removesuffix(" = yes") for name in names
    }
    if kind == "card":
        rows, new = (one.drop(columns="since") for one in (rows, new))
        ranker = CardRanker(max_questions=4, within=0, required=["town = other", "age is missing"]).fit(rows, y)
        session, expected = session_of(ranker, tmp_path), ranker.predict(new)
    else:
        ranker = {
            "logistic": LogisticRegressionRanker(),
            "mlp": SurrogateRanker(scorer="mlp", hidden=(4,), max_steps=3),
            "two stages": TwoStageRanker("rankboost", STAGE, 50, choose=False),
        }[kind]
        ranker.fit(pd.DataFrame(preparation.transform(rows), columns=names), y)
        session = session_of(ranker, tmp_path, preparation=preparation)
        expected = ranker.predict(pd.DataFrame(preparation.transform(new), columns=names))
    assert len(np.unique(expected)) > 3
    found = session.run(None, feeds_of(session, new))[0]
    if kind == "mlp":
        assert_single(found, expected)
        return
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(np.argsort(-found, kind="stable"), np.argsort(-expected, kind="stable"))


# runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run on a raw table with queries, and new rows of it."""
    found = tmp_path_factory.mktemp("export")
    for name, (rows, y), labelled in (("rows", table(300, 0), True), ("new", table(2000, 1, new=True), False)):
        rows = rows.assign(town=rows["town"].str.strip(), since=rows["since"].dt.strftime("%d.%m.%Y"))
        rows["ward"] = [f"ward {number}" for number in np.arange(len(rows)) % 12]
        (rows.assign(ill=y) if labelled else rows).to_csv(found / f"{name}.csv", sep=";", decimal=",", index=False)
    (found / "run.toml").write_text(
        f'name = "run"\nruns_dir = "{found}"\n[data]\npath = "{found}/rows.csv"\nlabel = "ill"\nquery = "ward"\n'
        '[surrogate]\nlosses = ["ranknet"]\nscorer = "mlp"\nhidden = [4]\nmax_steps = 3\n'
        '[baselines]\nmethods = ["logistic_regression"]\n[exact]\nbase = "logistic_regression"\nchoose = false\n'
        'top_k = 5\ntime_limit = 5\nmethod = "local_search"\n[tracking]\nloggers = []\n'
    )
    assert main(["run", str(found / "run.toml"), "-q"]) == 0
    return found


SCORE = """
import sys
for name in ("ltr", "trainers", "torch", "sklearn"):
    sys.modules[name] = None  # importing them fails
import numpy as np, onnxruntime, pandas as pd
rows = pd.read_csv(sys.argv[2], sep=";", decimal=",")
rows["since"] = (pd.to_datetime(rows["since"], format="%d.%m.%Y") - pd.Timestamp(0)) / pd.Timedelta(days=1)
session = onnxruntime.InferenceSession(sys.argv[1])
feeds = {"ward": pd.factorize(rows["ward"])[0]}
for one in session.get_inputs():
    if one.type == "tensor(string)":
        feeds[one.name] = rows[one.name].fillna("").astype(str).to_numpy(dtype=object)
    elif one.name != "ward":
        feeds[one.name] = rows[one.name].to_numpy(dtype=float)
scores = session.run(["ltr_score"], {one.name: feeds[one.name] for one in session.get_inputs()})[0]
print(scores.tolist())
"""


@pytest.mark.parametrize("method", ["exact", "ranknet"])
def test_a_run_scores_raw_rows_where_this_package_is_not(method, folder, tmp_path, capsys):
    model = tmp_path / "model.onnx"
    assert main(["export", str(folder / "run"), "-o", str(model), "--method", method]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"wrote {model}: {method}, with the inputs, each with an entry for every row\n")
    assert "  since: float64, days since 1970-01-01" in told
    assert ("  ward: int64, number of the list of each row" in told) is (method == "exact")
    (tmp_path / "score.py").write_text(SCORE)
    command = [sys.executable, "-I", str(tmp_path / "score.py"), str(model), str(folder / "new.csv")]
    scores = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert main(["predict", str(folder / "run"), str(folder / "new.csv"), "--method", method]) == 0
    ranked = pd.read_csv(io.StringIO(capsys.readouterr().out)).sort_values("ltr_row")
    np.testing.assert_allclose(scores, ranked["ltr_score"], rtol=0, atol=1e-9 if method == "exact" else 1e-6)


# torch


TORCH = [
    *("linear", "logistic", "exact", "points", "column", "mlp", "attention", "two stages", "network reranked"),
    *("queries reranked", "attention reranked", "scores reranked"),
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("name", TORCH)
def test_a_fitted_ranker_as_one_torch_module(name):
    ranker, by_list = fitted(name)
    X = np.concatenate([one_list(197)[0], one_list(3, seed=6)[0]])  # training rows: one of them is at the threshold
    module = ranker.to_torch()
    assert not module.training
    forms = [module, torch.export.export(module, (torch.from_numpy(X[None, :20]),)).module()]
    if sys.version_info < (3, 14):  # torch.jit is not supported on newer versions
        forms += [torch.jit.script(module), torch.jit.trace(module, (torch.from_numpy(X[None, :20]),))]
    for n in (20, 200, 3, 4, 5):  # shorter than the top, as long, and longer
        lists = torch.from_numpy(np.stack([X[:n], X[::-1][:n]]))
        given = {"qid": np.repeat([0, 1], n)} if by_list else {}
        expected = ranker.predict(lists.reshape(2 * n, -1).numpy(), **given).reshape(2, n)
        for form in forms[:1] if n != 20 else forms:
            some = lists[:1] if form is forms[1] else lists
            found = form(some).detach().numpy()
            np.testing.assert_allclose(found, expected[: len(some)], rtol=0, atol=1e-12 * (1 + abs(expected).max()))


def test_the_top_of_lists_of_any_length_in_an_exported_module():
    ranker, _ = fitted("queries reranked")
    lists = torch.from_numpy(one_list(60, seed=6)[0].reshape(3, 20, 3))
    sizes = {0: torch.export.Dim("lists", min=1), 1: torch.export.Dim("items", min=2)}
    program = torch.export.export(ranker.to_torch(), (lists,), dynamic_shapes=(sizes,)).module()
    for n in (2, 4, 5, 20):
        expected = ranker.predict(lists[:2, :n].reshape(2 * n, 3).numpy(), np.repeat([0, 1], n)).reshape(2, n)
        np.testing.assert_allclose(program(lists[:2, :n]).detach(), expected, rtol=0, atol=1e-11)
