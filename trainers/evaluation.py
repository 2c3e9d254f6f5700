"""The command ``ltr eval``: measures of a run against judgements, as trec_eval computes and prints them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.data import JudgedLists
from ltr.metrics import Measure, evaluate, parse_measure
from trainers.files import RunError

DEFAULT = (
    *("num_ret", "num_rel", "num_rel_ret", "map", "Rprec", "bpref", "recip_rank"),
    *("P_5", "P_10", "P_20", "P_100", "recall_100", "ndcg(gain=linear)", "ndcg_cut_10"),
)
"""Names of the measures that are shown unless others are asked for."""


@dataclass(frozen=True)
class RunValues:
    """The values of measures for a run."""

    queries: Sequence[str]
    values: dict[str, NDArray[np.float64]]  # by the name that was asked for, one for each query
    counts: frozenset[str]  # names of the measures that are numbers of documents

    def total(self, name: str) -> float:
        """Return the mean over the queries, or the sum of a number of documents."""
        values = self.values[name]
        return float(values.sum() if name in self.counts else values.mean())

    def text(self, *, per_query: bool = False) -> str:
        """Return the values as trec_eval prints them: measure, query or ``all``, value, with tabs between them."""
        rows = [(name, query, self.values[name][at]) for at, query in enumerate(self.queries) for name in self.values]
        totals = [(name, "all", self.total(name)) for name in self.values]
        lines = [
            f"{name:<22}\t{query}\t{value:.0f}" if name in self.counts else f"{name:<22}\t{query}\t{value:6.4f}"
            for name, query, value in (*(rows if per_query else ()), *totals)
        ]
        lines.insert(len(lines) - len(totals), f"{'num_q':<22}\tall\t{len(self.queries)}")
        return "\n".join(lines) + "\n"

    def json(self, *, per_query: bool = False) -> str:
        """Return the values as JSON, with all their digits."""
        content: dict[str, object] = {
            "num_q": len(self.queries),
            "all": {name: self.total(name) for name in self.values},
        }
        if per_query:
            content["queries"] = {
                query: {name: float(values[at]) for name, values in self.values.items()}
                for at, query in enumerate(self.queries)
            }
        return json.dumps(content, indent=2) + "\n"


def evaluate_run(lists: JudgedLists, measures: Sequence[str] = DEFAULT, *, level: int = 1) -> RunValues:
    """Return the values of measures, as `ltr.metrics.parse_measure` reads their names, for a run and its judgements.

    Documents are relevant from the label `level` on. A query without one has the value 0, as in trec_eval. A `RunError`
    says that a name names no measure, or that it does not take these labels.
    """
    named: dict[str, Measure] = {}
    for name in measures:
        try:
            named[name] = parse_measure(name)
        except ValueError as error:
            raise RunError(f"-m: {error}") from None
    labels = torch.from_numpy(lists.labels)
    # values come in the order in which the queries first appear
    first = np.zeros(len(lists.queries), dtype=np.int64)
    first[lists.number[::-1]] = np.arange(len(lists.number))[::-1]
    place = first.argsort().argsort()
    binary = {name for name, measure in named.items() if measure.binary}
    found: dict[str, NDArray[np.float64]] = {}
    for names, y in ((binary, torch.where(labels >= level, labels, 0)), (named.keys() - binary, labels)):
        try:
            values = evaluate(
                torch.from_numpy(lists.scores),
                y,
                [named[name] for name in names],
                qid=torch.from_numpy(lists.number),
                empty=0.0,
                outside=torch.from_numpy(lists.outside),
                judged=torch.from_numpy(lists.judged),
            )
        except ValueError as error:
            raise RunError(f"-m: {error}") from None
        found |= {name: values[str(named[name])].numpy()[place] for name in names}
    counts = frozenset(name for name in named if str(named[name]).startswith("num_"))
    return RunValues(lists.queries, {name: found[name] for name in named}, counts)
