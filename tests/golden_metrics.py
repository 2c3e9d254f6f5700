"""Compute the values of metrics with other libraries, and store them in ``golden_metrics.json`` for the tests.

Needs scikit-learn, torchmetrics, pytrec_eval, ir_measures (with cwl_eval and Perl) and allRank. If one is not
installed, a message says so and its stored values are kept. The lists are generated here; those marked tied have equal
scores.

    python tests/golden_metrics.py
"""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

Json = dict[str, Any]
Values = dict[str, list[float]]


def lists() -> list[Json]:
    """Lists of 2 to 40 items, of labels 0 to 4 or 0 and 1, half of them with ties; scores are exact in float32."""
    rng = np.random.default_rng(20180801)
    made = []
    for at in range(24):
        n = int(rng.integers(2, 41))
        labels = rng.integers(0, 5, n) * rng.integers(0, 2, n) if at % 2 else rng.integers(0, 2, n)
        labels[:2] = 1, 0
        tied = at % 4 >= 2
        scores = rng.integers(1, 8, n) / 8 if tied else (rng.permutation(n) + 1) / 64
        made.append({"scores": scores.tolist(), "labels": labels.tolist(), "tied": tied})
    return made


def _each(chosen: list[Json], function: Callable[[np.ndarray, np.ndarray], float]) -> list[float]:
    return [float(function(np.array(x["scores"]), np.array(x["labels"]))) for x in chosen]


def scikit_learn(chosen: list[Json]) -> Values:
    """Ties: the average of DCG over their orders; average precision takes tied items in together."""
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    return {
        "average ndcg(gain=linear)": _each(chosen, lambda s, y: ndcg_score([y], [s])),
        "average ndcg(gain=linear)@5": _each(chosen, lambda s, y: ndcg_score([y], [s], k=5)),
        "average auc": _each(chosen, lambda s, y: roc_auc_score(y > 0, s)),
        "subrank map": _each(chosen, lambda s, y: average_precision_score(y > 0, s)),
    }


def torchmetrics(chosen: list[Json]) -> Values:
    """Single precision; ties of anything but NDCG and AUROC stand in the order that a sort leaves."""
    from torchmetrics.functional import classification, retrieval

    def on(function: Callable[..., torch.Tensor], binary: bool, **options: int) -> Callable[..., float]:
        def value(s: np.ndarray, y: np.ndarray) -> float:
            target = torch.tensor(y > 0) if binary else torch.tensor(y)
            return function(torch.tensor(s, dtype=torch.float32), target, **options).item()

        return value

    ndcg, plain = retrieval.retrieval_normalized_dcg, [x for x in chosen if not x["tied"]]
    found = {
        "average ndcg(gain=linear)": _each(chosen, on(ndcg, False)),
        "average ndcg(gain=linear)@5": _each(chosen, on(ndcg, False, top_k=5)),
        "average auc": _each(chosen, on(lambda s, y: classification.binary_auroc(s, y.long()), True)),
    }
    for name, function, options in (
        ("mrr", retrieval.retrieval_reciprocal_rank, {}),
        ("map", retrieval.retrieval_average_precision, {}),
        ("precision@5", retrieval.retrieval_precision, {"top_k": 5}),
        ("recall@5", retrieval.retrieval_recall, {"top_k": 5}),
    ):
        found[f"untied {name}"] = _each(plain, on(function, True, **options))
    return found


def _trec(chosen: list[Json]) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    qrels = {str(at): {f"d{i}": int(y) for i, y in enumerate(x["labels"])} for at, x in enumerate(chosen)}
    run = {str(at): {f"d{i}": float(s) for i, s in enumerate(x["scores"])} for at, x in enumerate(chosen)}
    return qrels, run


def pytrec_eval(chosen: list[Json]) -> Values:
    """The measures of trec_eval, which orders ties by the names of documents."""
    import pytrec_eval as trec

    plain = [x for x in chosen if not x["tied"]]
    qrels, run = _trec(plain)
    names = {
        "ndcg": "ndcg(gain=linear)",
        "ndcg_cut_5": "ndcg(gain=linear)@5",
        "recip_rank": "mrr",
        "map": "map",
        "P_5": "precision@5",
    }
    names["recall_5"] = "recall@5"
    found = trec.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    return {f"untied {own}": [found[str(at)][name] for at in range(len(plain))] for name, own in names.items()}


def ir_measures(chosen: list[Json]) -> Values:
    """What trec_eval and cwl_eval compute."""
    names = {
        "nDCG@5": "ndcg(gain=linear)@5",
        "RR": "mrr",
        "RR@2": "mrr@2",
        "AP": "map",
        "P@5": "precision@5",
        "R@5": "recall@5",
    }
    names |= {"AP@5": "map@5", "Rprec": "rprec", "Bpref": "bpref", "Success@1": "success@1", "Success@5": "success@5"}
    return _by_ir_measures(chosen, names | {"RBP(p=0.8,rel=1)": "rbp", "RBP(p=0.5,rel=1)": "rbp(p=0.5)"})


def gdeval(chosen: list[Json]) -> Values:
    """Five decimals of what TREC's web track computes, for grades up to 4."""
    return _by_ir_measures(chosen, {"ERR@5": "err@5", "ERR@20": "err@20", "nDCG(dcg='exp-log2')@5": "ndcg@5"})


def _by_ir_measures(chosen: list[Json], names: dict[str, str]) -> Values:
    import ir_measures as ir

    plain = [x for x in chosen if not x["tied"]]
    qrels, run = _trec(plain)
    found: Values = {}
    for name, own in names.items():
        by_query = {m.query_id: float(m.value) for m in ir.iter_calc([ir.parse_measure(name)], qrels, run)}
        found[f"untied {own}"] = [by_query[str(at)] for at in range(len(plain))]
    return found


def allrank(chosen: list[Json]) -> Values:
    """Single precision, exponential gains; its MRR looks for the highest label, which in binary lists is 1."""
    from allrank.models import metrics

    plain = [x for x in chosen if not x["tied"]]

    def on(function: Callable[..., torch.Tensor], ats: list[int] | None, binary: bool) -> Callable[..., float]:
        def value(s: np.ndarray, y: np.ndarray) -> float:
            labels = torch.tensor((y > 0) if binary else y, dtype=torch.float32)[None]
            return function(torch.tensor(s, dtype=torch.float32)[None], labels, ats=ats).item()

        return value

    return {
        "untied ndcg": _each(plain, on(metrics.ndcg, None, False)),
        "untied ndcg@5": _each(plain, on(metrics.ndcg, [5], False)),
        "untied mrr": _each(plain, on(metrics.mrr, None, True)),
        "untied mrr@2": _each(plain, on(metrics.mrr, [2], True)),
    }


SYSTEMS: dict[str, tuple[str, Callable[[list[Json]], Values]]] = {
    "scikit-learn": ("scikit-learn", scikit_learn),
    "torchmetrics": ("torchmetrics", torchmetrics),
    "pytrec_eval": ("pytrec_eval-terrier", pytrec_eval),
    "ir_measures": ("ir_measures", ir_measures),
    "gdeval": ("ir_measures", gdeval),
    "allRank": ("allRank", allrank),
}


def main():
    path = Path(__file__).with_suffix(".json")
    logging.disable(logging.WARNING)
    chosen = lists()
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known = stored.get("systems", {}) if stored.get("lists") == chosen else {}
    for name, (package, values) in SYSTEMS.items():
        try:
            known[name] = {"version": version(package), "values": values(chosen)}
        except ImportError as error:
            warnings.warn(f"{name} is left out: {error}", stacklevel=1)
    rows = ",\n".join(json.dumps(x) for x in chosen)
    systems = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in SYSTEMS if name in known)
    path.write_text(f'{{"lists": [\n{rows}\n], "systems": {{\n{systems}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
