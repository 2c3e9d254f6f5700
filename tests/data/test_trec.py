"""Runs and judgements in trec_eval's files, and their measures: `ltr eval` against trec_eval itself."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
import torch

from ltr.data import DataError
from ltr.data.trec import judged_lists, read_qrels, read_run, write_qrels, write_run
from ltr.metrics import evaluate, ndcg, parse_measure
from trainers.cli import main
from trainers.evaluation import evaluate_run
from trainers.files import RunError

CUTS = (1, 5, 10, 20, 100)
NAMES = ["num_ret", "num_rel", "num_rel_ret", "map", "Rprec", "bpref", "recip_rank", "ndcg(gain=linear)"]
NAMES += [f"{name}_{k}" for name in ("P", "recall", "map_cut", "ndcg_cut", "success") for k in CUTS]


def random_files(folder, seed=0, queries=12):
    """A run with ties and unjudged documents, and judgements with grades, -1, and queries without a relevant one."""
    rng = np.random.default_rng(seed)
    run, qrels = [], []
    for query in range(queries):
        names = [f"d{number}" for number in rng.permutation(60)]
        ranked, judged = rng.choice(names, 40, replace=False), rng.choice(names, rng.integers(5, 50), replace=False)
        if query != 2:  # judged, but not in the run
            run += [
                (f"q{query}", name, round(float(score), 1))
                for name, score in zip(ranked, rng.normal(size=40), strict=True)
            ]
        if query != 3:  # in the run, but not judged
            most = 0 if query == 4 else 3
            qrels += [(f"q{query}", name, int(rng.integers(-1, most + 1))) for name in judged]
    order = rng.permutation(len(run))
    write_run(folder / "run", *zip(*(run[at] for at in order), strict=True))
    write_qrels(folder / "qrels", *zip(*qrels, strict=True))
    return folder / "run", folder / "qrels"


def evaluated(run, qrels, *measures, complete=False, level=1):
    return evaluate_run(judged_lists(run, qrels, complete=complete), *measures, level=level)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_trec_eval(tmp_path, seed, complete):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    run, qrels = random_files(tmp_path, seed)
    found = evaluated(run, qrels, NAMES, complete=complete)
    as_dict = [
        {
            query: dict(zip(part["document"], part[value].tolist(), strict=True))
            for query, part in frame.groupby("query")
        }
        for frame, value in ((read_qrels(qrels), "label"), (read_run(run), "score"))
    ]
    theirs = {name: name.partition("(")[0] for name in NAMES}
    asked = {
        f"{name.rsplit('_', 1)[0]}.{','.join(map(str, CUTS))}" if name[-1].isdigit() else theirs[name] for name in NAMES
    }
    expected = pytrec_eval.RelevanceEvaluator(as_dict[0], asked).evaluate(as_dict[1])
    assert sorted({*expected, *(["q2"] if complete else [])}) == list(found.queries)
    for at, query in enumerate(found.queries):
        for name in NAMES:
            value = expected[query][theirs[name]] if query in expected else None
            if value is None:
                assert found.values[name][at] == 0 or name == "num_rel"
            else:
                assert found.values[name][at] == pytest.approx(value, abs=1e-12), (query, name)
    if not complete:
        mean = np.mean([expected[query]["map"] for query in expected])
        assert found.total("map") == pytest.approx(mean, abs=1e-12)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="ir_measures asks for ast.Num, which Python 3.14 lacks")
def test_values_are_those_of_ir_measures(tmp_path):
    ir_measures = pytest.importorskip("ir_measures")
    pytest.importorskip("pytrec_eval")
    run, qrels = random_files(tmp_path)
    names = ["nDCG@10", "P@5", "AP", "AP@10", "RR", "R@20", "Rprec", "Success@10", "Bpref", "NumRet", "NumRel"]
    names += ["NumRet(rel=1)"]
    found = evaluated(run, qrels, names)
    measures = [ir_measures.parse_measure(name) for name in names]
    theirs = ir_measures.calc_aggregate(
        measures, list(ir_measures.read_trec_qrels(str(qrels))), list(ir_measures.read_trec_run(str(run)))
    )
    shared = len(found.queries) / (len(found.queries) + 1)  # it counts a query that is not in the run as 0
    for name, measure in zip(names, measures, strict=True):
        factor = 1 if name.startswith("Num") else 1 / shared
        if name != "NumRel":
            assert found.total(name) == pytest.approx(theirs[measure] * factor, abs=1e-12), name


def test_the_command(tmp_path, capsys):
    (tmp_path / "run").write_text("q1 Q0 a 1 0.5 x\nq1\tQ0 b 2 0.5 x\nq1 Q0 c 9 0.9 x\nq9 Q0 c 1 1 x\n")
    (tmp_path / "qrels").write_text("q1 0 a 1\nq1 0 d 1\nq1 0 c 0\nq7 0 a 1\n")
    # the order is c, b, a: of one score, the name that comes last is first
    given = ["eval", str(tmp_path / "run"), str(tmp_path / "qrels"), "-m", "map", "-m", "num_ret", "-m", "bpref"]
    assert main([*given, "-q"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["map", "q1", "0.1667"],  # 1/2 (1/3 + 0)
        ["num_ret", "q1", "3"],
        ["bpref", "q1", "0.0000"],  # 1/2 (1 - min(1, 2) / min(1, 2))
        ["num_q", "all", "1"],
        ["map", "all", "0.1667"],
        ["num_ret", "all", "3"],
        ["bpref", "all", "0.0000"],
    ]
    assert main([*given, "-c", "--json", "-q"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["num_q"] == 2
    assert content["all"] == {"map": pytest.approx(1 / 12), "num_ret": 3.0, "bpref": 0.0}
    assert content["queries"]["q7"] == {"map": 0.0, "num_ret": 0.0, "bpref": 0.0}
    assert main([*given[:3], "-m", "nonsense"]) == 2
    assert "-m: measure: unknown name 'nonsense'" in capsys.readouterr().err


def test_the_level_of_relevance(tmp_path):
    run, qrels = random_files(tmp_path)
    frame = read_qrels(qrels)
    write_qrels(tmp_path / "two", frame["query"], frame["document"], np.where(frame["label"] == 1, 0, frame["label"]))
    low, high = (evaluated(run, tmp_path / "two", ["map", "bpref"]), evaluated(run, qrels, ["map", "bpref"], level=2))
    for name in low.values:
        np.testing.assert_array_equal(low.values[name], high.values[name])
    np.testing.assert_array_equal(
        evaluated(run, qrels, ["ndcg"], level=2).values["ndcg"], evaluated(run, qrels, ["ndcg"]).values["ndcg"]
    )


LINE, JUDGED = "q Q0 a 1 1 x\n", "q 0 a 1\n"


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        (f"{LINE}q Q0 a\n", JUDGED, "must read `query Q0 document rank score tag`, got 'q Q0 a' in row 2"),
        (f"{LINE}q Q0 a 1 1 x y\n", JUDGED, "got Expected 6 fields in line 2, saw 7"),
        ("\n \t\n", JUDGED, "run: the file has no lines"),
        ("q Q0 a 1 nan x\n", JUDGED, "run: score must be a finite number, got 'nan' in row 1"),
        ("q Q0 a 1 1_0 x\n", JUDGED, "run: score must be a finite number, got '1_0' in row 1"),
        (f"{LINE}\np Q0 b 2 0 x\nq Q0 a 2 0 x", JUDGED, "have a document once, got 'a' of 'q' again in row 3"),
        (LINE, "", "qrels: the file has no lines"),
        (LINE, "\nq 0 a 0.5\n", "qrels: label must be an integer from -2**53 to 2**53, got '0.5' in row 1"),
        (LINE, f"q 0 b 1\nq 0 a {2**53 + 2}\n", f"2**53, got '{2**53 + 2}' in row 2"),
        (LINE, "r 0 a 1\n", "run and qrels must have a query in common, got none"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, run, qrels, message):
    (tmp_path / "run").write_text(run)
    (tmp_path / "qrels").write_text(qrels)
    with pytest.raises(DataError) as caught:
        evaluated(tmp_path / "run", tmp_path / "qrels")
    assert message in str(caught.value)


def test_grades_beyond_those_of_err(tmp_path):
    write_run(tmp_path / "run", ["q"], ["a"], [1.0])
    write_qrels(tmp_path / "qrels", ["q"], ["a"], [5])
    with pytest.raises(RunError, match=r"labels must be at most 4 for err, got 5: .* err\(max=5\)"):
        evaluated(tmp_path / "run", tmp_path / "qrels", ["ERR@10"])


def test_runs_survive_the_file(tmp_path):
    scores = np.random.default_rng(0).normal(size=20) * 1e-7
    query, document = ["b", "a"] * 10, [f"x{number}" for number in range(20)]
    write_run(tmp_path / "run", query, document, scores, tag="mine")
    frame = read_run(tmp_path / "run")
    again = dict(zip(frame["document"], frame["score"], strict=True))
    assert [again[name] for name in document] == scores.tolist()
    assert frame["query"].tolist() == ["b"] * 10 + ["a"] * 10
    with pytest.raises(DataError, match=r"document must be a text without white space or .*, got 'x y'"):
        write_run(tmp_path / "run", ["a"], ["x y"], [0.0])
    with pytest.raises(DataError, match="query must be a text without white space or a byte order mark in front"):
        write_run(tmp_path / "run", ["\ufeffq"], ["a"], [0.0])
    with pytest.raises(DataError, match=r"label must be an integer from -2\*\*53 to 2\*\*53, got 'inf'"):
        write_qrels(tmp_path / "qrels", ["q"], ["a"], [np.inf])


NAMES_OF_FILES = ["#1", "x\u00a0y", "\u2028", "NA", "Größe", '"', "007", "\ufffd", "d"]


def test_names_are_texts_as_they_stand(tmp_path):
    pairs = [(query, document) for query in NAMES_OF_FILES for document in NAMES_OF_FILES]
    scores = np.random.default_rng(0).integers(0, 3, len(pairs))
    lines = [f"{query}\tQ0  {document} 1 {y} t\r\n" for (query, document), y in zip(pairs, scores, strict=True)]
    (tmp_path / "run").write_bytes("".join(lines).encode("utf-8-sig"))
    run = read_run(tmp_path / "run")
    assert list(zip(run["query"], run["document"], strict=True)) == pairs
    write_run(tmp_path / "again", run["query"], run["document"], run["score"])
    again = read_run(tmp_path / "again")
    # by trec_eval's order: of one score, the larger name first
    sort = sorted(range(len(pairs)), key=lambda at: (scores[at], pairs[at][1]), reverse=True)
    sort.sort(key=lambda at: NAMES_OF_FILES.index(pairs[at][0]))
    assert list(zip(again["query"], again["document"], strict=True)) == [pairs[at] for at in sort]
    (tmp_path / "run").write_bytes(b"q\xe9 Q0 a 1 2 t\n")
    with pytest.raises(DataError, match="run: must be UTF-8, got 0xe9"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize("text", ["1", "-0.0", "+1.5", "1e-5", ".5", "5.", "1E400", "1e-400", "0.1000000000000000055"])
def test_scores_are_those_of_python(tmp_path, text):
    (tmp_path / "run").write_text(f"q Q0 a 1 {text} t\nq Q0 b 2 {text}x t\n")
    with pytest.raises(DataError, match=re.escape(f"got '{text}' in row 1" if text == "1E400" else f"'{text}x' in")):
        read_run(tmp_path / "run")
    (tmp_path / "run").write_text(f"q Q0 a 1 {text.replace('400', '40')} t\n")
    assert str(read_run(tmp_path / "run")["score"][0]) == str(float(text.replace("400", "40")))


def test_frames_are_judged_as_files_are(tmp_path):
    run, qrels = random_files(tmp_path)
    frames, one = [read_run(run), read_qrels(qrels)], judged_lists(run, qrels, complete=True)
    other = judged_lists(*frames, complete=True)
    for name, values in vars(one).items():
        np.testing.assert_array_equal(values, getattr(other, name))
    with pytest.raises(DataError, match=r"frame: a query must have a document once, got '.*' again in row 82"):
        judged_lists(pd.concat([frames[0][:81], frames[0][3:4]]), frames[1])


def test_scores_are_compared_in_double_precision(tmp_path):
    # trec_eval compares them as floats: 0.5 here would be 1 there, by the name
    write_run(tmp_path / "run", ["q", "q"], ["a", "b"], [1.00000002, 1.00000001])
    write_qrels(tmp_path / "qrels", ["q", "q"], ["a", "b"], [0, 1])
    assert evaluated(tmp_path / "run", tmp_path / "qrels", ["map"]).total("map") == 0.5


def test_items_outside_a_list_count_where_relevant_items_are_counted():
    scores, labels = torch.tensor([3.0, 2.0, 9.0, 9.0]), torch.tensor([0, 1, 2, 0])
    bpref, err = map(parse_measure, ("bpref", "err"))
    outside = torch.tensor([False, False, True, True])
    expected = (1 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert ndcg(scores, labels, outside=outside).item() == pytest.approx(expected, abs=1e-15)
    assert err(scores, labels, outside=outside).item() == pytest.approx(1 / 16 / 2)
    # R = 2, N = 2: one of two irrelevant items above, and a relevant one that is missing
    assert bpref(scores, labels, outside=outside).item() == pytest.approx((1 - 1 / 2) / 2)
    judged = torch.tensor([False, True, True, True])
    assert bpref(scores, labels, outside=outside, judged=judged).item() == pytest.approx(1 / 2)
    counts = evaluate(scores, labels, ["num_ret", "num_rel", "num_rel_ret", "num_rel_missed"], outside=outside)
    assert [value.item() for value in counts.values()] == [2, 2, 1, 1]
    # the ideal list has all three at the ranks 3, 2 and 1, the list itself one at rank 1
    alone = parse_measure("normalized(wrs)")(scores[:3], torch.ones(3), outside=torch.tensor([False, True, True]))
    assert alone.item() == pytest.approx(1 / (3 + 2 + 1))
    # a batch, with padding
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    both = parse_measure("recall@9")(scores.expand(2, 4), labels.expand(2, 4), mask=mask, outside=outside.expand(2, 4))
    assert both.tolist() == [0.5, 1.0]
    with pytest.raises(ValueError, match="judged must be True for every item with a label above 0"):
        bpref(scores, labels, judged=~outside)
    with pytest.raises(ValueError, match=r"outside must be boolean, of the shape of scores \(4,\), got torch.int64"):
        parse_measure("recall@9")(scores, labels, outside=outside.long())


def test_ndcg_is_ours_and_the_names_of_trec_eval_are_its_own(tmp_path, capsys):
    write_run(tmp_path / "run", ["q", "q"], ["a", "b"], [2.0, 1.0])
    write_qrels(tmp_path / "qrels", ["q", "q"], ["a", "b"], [1, 2])
    second = 1 / np.log2(3)
    expected = {"ndcg": (1 + 3 * second) / (3 + second), "nDCG@10": (1 + 2 * second) / (2 + second)}
    given = ["-m", "ndcg", "-m", "nDCG@10"]
    assert main(["eval", str(tmp_path / "run"), str(tmp_path / "qrels"), *given, "--json"]) == 0
    out, told = capsys.readouterr()
    assert json.loads(out)["all"] == pytest.approx(expected, abs=1e-12)
    assert "trec_eval's ndcg, with the label as its gain, is 'ndcg(gain=linear)'" in told
    assert main(["eval", str(tmp_path / "run"), str(tmp_path / "qrels")]) == 0
    out, told = capsys.readouterr()
    assert "ndcg(gain=linear)" in out
    assert not told
