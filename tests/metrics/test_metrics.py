"""The functions of `ltr.metrics`, names of measures, scikit-learn, undefined lists and bad arguments.

What holds for every measure is in test_metrics_invariants.py.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

from ltr import metrics
from ltr.gbdt import metric
from ltr.losses import LambdaLoss, SmoothStatisticLoss, parse_loss
from ltr.metrics import parse_measure, rank_lists
from ltr.rankers import ScoreColumn

TIES = ["resolved", "subrank", "average", "optimistic"]

# name -> the function and options that it stands for
METRICS = {
    "auc": (metrics.rank_statistic, {"statistic": "auc"}),
    "wrs": (metrics.rank_statistic, {"statistic": "wrs"}),
    "hits@2": (metrics.rank_statistic, {"statistic": "hits@2"}),
    "ap@2": (metrics.rank_statistic, {"statistic": "ap@2"}),
    "pauc@2": (metrics.rank_statistic, {"statistic": "pauc@2"}),
    "wta": (metrics.rank_statistic, {"statistic": "wta"}),
    "statistic(mrr)": (metrics.rank_statistic, {"statistic": "mrr"}),
    "power(p=2)": (metrics.rank_statistic, {"statistic": "power(p=2)"}),
    "power(p=2,gain=linear)": (metrics.rank_statistic, {"statistic": "power(p=2)", "gain": "linear"}),
    "weights(0,1,1,2,gain=linear)": (metrics.rank_statistic, {"statistic": "weights(0,1,1,2)", "gain": "linear"}),
    "dcg": (metrics.dcg, {}),
    "dcg(base=e,gain=linear)@3": (metrics.dcg, {"base": np.e, "gain": "linear", "k": 3}),
    "ndcg": (metrics.ndcg, {}),
    "ndcg@2": (metrics.ndcg, {"k": 2}),
    "ndcg(gain=linear)@2": (metrics.ndcg, {"gain": "linear", "k": 2}),
    "normalized(pauc@2,gain=linear)": (metrics.normalized_rank_statistic, {"statistic": "pauc@2", "gain": "linear"}),
    "normalized(mrr)": (metrics.normalized_rank_statistic, {"statistic": "mrr"}),
    "normalized(hits@2)": (metrics.normalized_rank_statistic, {"statistic": "hits@2"}),
    "normalized(precision@2)": (metrics.normalized_rank_statistic, {"statistic": "precision@2", "gain": "linear"}),
}


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", METRICS)
def test_functions_measures_and_evaluate_are_one(name, ties):
    measure, (function, options) = parse_measure(name), METRICS[name]
    assert str(measure) == name
    assert parse_measure(repr(measure)[15:-2]) == measure
    scores = torch.tensor([[3.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    labels = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 0, 0]])
    expected = function(scores, labels, ties=ties, **options)
    assert expected.shape == (3,)
    assert expected.dtype == torch.float64
    assert torch.equal(measure(scores, labels, ties=ties).nan_to_num(-9), expected.nan_to_num(-9))
    assert torch.equal(
        metrics.evaluate(scores, labels, [name], ties=ties)[name].nan_to_num(-9), expected.nan_to_num(-9)
    )
    ranked = rank_lists(scores, labels)
    assert torch.equal(measure.of(ranked, ties=ties, empty=-9.0), expected.nan_to_num(-9))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("normalized(dcg@5)", "ndcg@5"),
        ("normalized(dcg(base=e)@5)", "normalized(dcg(base=e)@5)"),
        ("statistic(auc)", "auc"),
        ("statistic(mrr@3, gain=linear)", "statistic(mrr@3,gain=linear)"),
        ("dcg(gain = linear, base = e)", "dcg(base=e,gain=linear)"),
        ("dcg(base=2,gain=exp2) @ 10", "dcg@10"),
        (parse_measure("ap"), "ap"),
        ("map", "ap"),
        ("map_cut_5", "ap@5"),
        ("nDCG@10", "ndcg(gain=linear)@10"),
        ("nDCG(dcg='exp-log2')@3", "ndcg@3"),
        ("RBP(p=0.9)@5", "rbp(p=0.9)@5"),
        ("ERR@20", "err@20"),
        ("NumRet(rel=1)", "num_rel_ret"),
        ("NDCG(dcg='log2')@10", "ndcg(gain=linear)@10"),
    ],
)
def test_other_spellings(text, name):
    assert str(parse_measure(text)) == name


def test_import_paths_keep_their_letters():
    with pytest.raises(ValueError, match=r"Pkg\.mod:fading"):
        parse_measure("Pkg.mod:fading@10")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rbp(p=abc)", r"measure rbp: takes p=NUMBER, got 'p=abc' in 'rbp\(p=abc\)'"),
        ("pfound@10", "unknown name 'pfound'; known are ndcg, mrr, .* and the rank statistics auc, wrs"),
        ("ndgc@10", r"unknown name 'ndgc' \(did you mean 'ndcg'\?\)"),
        ("percision@5", r"\(did you mean 'precision'\?\)"),
        ("Rprec@3", "measure rprec: takes no cutoff, got @3"),
        ("RBP(p=1)", "measure rbp: p must be a number between 0 and 1, got 1"),
        ("ndcg(base=e)", "measure ndcg: takes gain=..., got 'base=e'"),
        ("recall", "statistic recall: a cutoff is needed, as in 'recall@100'"),
        ("map_cut_0", r"statistic ap: cutoff must be an integer from 1 to 2\*\*63 - 1, got 0"),
        ("statistic(dcg)@3", "the cutoff belongs to the statistic"),
        ("dcg(gain=square)", "gain must be one of 'linear', 'exp2', got 'square'"),
    ],
)
def test_names_that_name_nothing(text, message):
    with pytest.raises(ValueError, match=message):
        parse_measure(text)
    with pytest.raises(TypeError, match=r"measures must be several, such as \['auc'\]"):
        metrics.evaluate(torch.zeros(2), torch.zeros(2), "auc")
    with pytest.raises(TypeError, match="measure must be a string or a Measure, got int"):
        parse_measure(10)


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
    assert parse_measure("auc")(f, y, ties="average").item() == pytest.approx(roc_auc_score(binary, scores), abs=1e-12)
    expected = average_precision_score(binary, scores)
    assert parse_measure("ap")(f, y, ties="subrank").item() == pytest.approx(expected, abs=1e-12)
    for k in (None, 3, 1000):
        expected = dcg_score([graded], [scores], k=k)
        assert metrics.dcg(f, g, k=k, gain="linear", ties="average").item() == pytest.approx(expected, abs=1e-12)
        expected = ndcg_score([graded], [scores], k=k)
        assert metrics.ndcg(f, g, k=k, gain="linear", ties="average").item() == pytest.approx(expected, abs=1e-12)
    if not tied:
        for ties in TIES:
            assert parse_measure("auc")(f, y, ties=ties).item() == pytest.approx(
                roc_auc_score(binary, scores), abs=1e-12
            )


def test_ndcg_means_one_thing_wherever_it_is_asked_for():
    """The gain is 2^label - 1 unless another is named: in functions, names, collections, boosters, losses, rankers."""
    scores, labels = torch.tensor([2.0, 1.0], dtype=torch.float64), torch.tensor([1, 2])
    # (2^1 - 1) / log2(2) + (2^2 - 1) / log2(3), over the ideal (2^2 - 1) / log2(2) + (2^1 - 1) / log2(3)
    expected = (3 / np.log2(3) + 1) / (3 + 1 / np.log2(3))
    linear = (2 / np.log2(3) + 1) / (2 + 1 / np.log2(3))
    collection = metrics.RankingMetrics(["ndcg@10", "nDCG@10", "ndcg_cut_10", "NDCG@10"])
    collection.update(scores, labels)
    ranker = ScoreColumn(0, statistic="dcg@10", normalize=True).fit([[2.0], [1.0]], [1, 2])
    found = {
        "function": metrics.ndcg(scores, labels).item(),
        "statistic": metrics.normalized_rank_statistic(scores, labels, "dcg").item(),
        "measure": metrics.parse_measure("ndcg")(scores, labels).item(),
        "of dcg": metrics.dcg(scores, labels).item() / metrics.dcg(-scores, labels).item(),
        "collection": collection.compute()["ndcg@10"],
        "booster": metric("ndcg@10")(labels.numpy(), scores.numpy(), None, [2])[1],
        "loss": 1 - SmoothStatisticLoss(statistic="dcg", temperature=1e-3)(scores, labels).item(),
        "ranker": ranker.score([[2.0], [1.0]], [1, 2]),
    }
    assert found == pytest.approx(dict.fromkeys(found, expected), abs=1e-12)
    swapped = LambdaLoss(statistic="dcg", pairs="sum")(scores, labels).item()  # (3 - 1) (1 - 1/log2 3) log(1 + e)
    assert swapped == pytest.approx(2 * (1 - 1 / np.log2(3)) * np.log1p(np.e), rel=1e-12)
    # names of trec_eval and ir_measures are theirs, and are written out
    assert collection.compute() == pytest.approx({"ndcg@10": expected, "ndcg(gain=linear)@10": linear}, abs=1e-12)
    assert str(parse_loss("lambda(statistic=dcg@10,gain=exp2)")) == "lambda(statistic=dcg@10)"
    assert str(parse_loss("lambda(statistic=dcg@10,gain=linear)")) == "lambda(statistic=dcg@10,gain=linear)"


# --- chosen cases ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_empty_lists_and_empty_batches(name, ties, shape):
    value = parse_measure(name)(torch.zeros(shape), torch.zeros(shape), ties=ties)
    assert value.shape == shape[:-1]
    assert (value.isnan() | (value == 0)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, y: metrics.ndcg(s, y, ties="random"), "ties must be one of 'resolved', .* got 'random'"),
        (lambda s, y: metrics.dcg(s, y, gain="square"), "gain must be one of 'linear', 'exp2', got 'square'"),
        (lambda s, y: metrics.ndcg(s, y, k=1.5), r"cutoff must be an integer from 1 to 2\*\*63 - 1, got 1.5"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.tensor([1.0, 2.0]), torch.tensor([0, 1]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e-300, 1e300])
def test_small_scores_beside_large_ones_keep_their_order(dtype, spread):
    """They take all bits of a key, and so the ranks of scores."""
    random = torch.Generator().manual_seed(3)
    for items, lists, levels in ((0, 1, 1), (1, 1, 1), (50, 4, 2), (400, 30, 3), (400, 400, 5)):
        qid = torch.randint(0, lists, (items,), generator=random).sort().values
        scores = torch.randint(-9, 10, (items,), generator=random).to(dtype) / 3.0
        scores[::2] *= spread
        scores[::7] = -0.0
        scores = scores.nan_to_num()
        labels = torch.randint(0, levels, (items,), generator=random)
        found = rank_lists(scores, labels, qid=qid)
        order = np.lexsort((labels, -scores.numpy(), qid))
        wanted = {"labels": [], "position": [], "start": [], "end": []}
        for at, row in enumerate(order):
            own = scores[[other for other in order if qid[other] == qid[row]]].numpy()
            first, last = int((own > scores[row].item()).sum()), int((own >= scores[row].item()).sum())
            here = labels[row].item(), at - int((qid < qid[row]).sum()), first, last - 1
            for name, value in zip(wanted, here if labels[row] else (), strict=False):
                wanted[name].append(value)
        assert {name: getattr(found, name).tolist() for name in wanted} == wanted


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x.tolist(),
        lambda x: x,
        lambda x: x.astype(">f8" if x.dtype.kind == "f" else x.dtype),
        lambda x: x[..., ::-1].copy()[..., ::-1],
        lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),  # may not be written
        lambda x: pd.Series(x, index=range(5, 5 + len(x))) if x.ndim == 1 else pd.DataFrame(x),
        lambda x: pd.Series(x, dtype=pd.Series(x).convert_dtypes().dtype) if x.ndim == 1 else x.astype(object),
    ],
)
def test_arrays_lists_and_columns_give_what_tensors_give(form):
    rng = np.random.default_rng(0)
    scores, labels, mask = rng.normal(size=(4, 6)), rng.integers(0, 4, (4, 6)), rng.random((4, 6)) < 0.8
    scores[:, 2] = scores[:, 3]
    qid = np.repeat([9, 2**60, 2**60 + 1], 8)
    of_lists = {"mask": mask, "outside": mask & (labels == 3), "judged": mask | (labels > 0)}
    of_items = {"qid": qid}
    names = ["ndcg@3", "ap", "bpref"]
    for given, some in (((scores, labels), of_lists), ((scores.ravel(), labels.ravel()), of_items)):
        expected = metrics.evaluate(*map(torch.tensor, given), names, **{k: torch.tensor(x) for k, x in some.items()})
        found = metrics.evaluate(*map(form, given), names, **{k: form(x) for k, x in some.items()})
        for name in names:
            assert torch.equal(found[name].nan_to_num(), expected[name].nan_to_num()), name
    collected = metrics.RankingMetrics(names)
    collected.update(form(scores.ravel()), form(labels.ravel()), qid=form(qid), list_weight=form(np.repeat(2.0, 24)))
    assert collected.compute() == {name: pytest.approx(float(x.nanmean())) for name, x in expected.items()}


# --- stored values of other libraries -----------------------------------------------------------------------------


GOLDEN = json.loads((Path(__file__).parent / "golden_metrics.json").read_text(encoding="utf-8"))
ERROR = dict.fromkeys(("scikit-learn", "pytrec_eval", "ir_measures"), 1e-12)
ERROR |= {"torchmetrics": 1e-6, "allRank": 1e-6, "gdeval": 5.1e-6}  # single precision; five decimals
CASES = [(name, case) for name, system in GOLDEN["systems"].items() for case in system["values"]]


def test_every_system_is_there():
    assert set(GOLDEN["systems"]) == set(ERROR)


@pytest.mark.parametrize(("system", "case"), CASES)
def test_agrees_with(system, case):
    ties, _, name = case.partition(" ")
    lists = [x for x in GOLDEN["lists"] if ties != "untied" or not x["tied"]]
    expected = GOLDEN["systems"][system]["values"][case]
    assert len(lists) == len(expected) >= 12
    measure = parse_measure(name)
    for one, value in zip(lists, expected, strict=True):
        scores, labels = torch.tensor(one["scores"]), torch.tensor(one["labels"])
        if name == "auc" or (system, name.split("@")[0]) == ("allRank", "mrr"):
            labels = labels > 0
        for treatment in ("resolved", "average", "optimistic") if ties == "untied" else (ties,):
            assert measure(scores, labels, ties=treatment).item() == pytest.approx(value, abs=ERROR[system])
