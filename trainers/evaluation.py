"""The command ``ltr eval``: measures of a run against judgements, as trec_eval computes and prints them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ltr.data import JudgedLists
from ltr.metrics import evaluate, parse_measure
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

    def _by_query(self, *, per_query: bool) -> dict[str, dict[str, float]]:
        """Return the values by query, if so asked, and by name."""
        queries = enumerate(self.queries if per_query else ())
        return {query: {name: float(found[at]) for name, found in self.values.items()} for at, query in queries}

    def text(self, *, per_query: bool = False) -> str:
        """Return the values as trec_eval prints them: measure, query or ``all``, value, with tabs between them."""

        def lines(query: str, values: dict[str, float]) -> list[str]:
            forms = {name: ".0f" if name in self.counts else "6.4f" for name in values}
            return [f"{name:<22}\t{query}\t{value:{forms[name]}}\n" for name, value in values.items()]

        found = [line for query, values in self._by_query(per_query=per_query).items() for line in lines(query, values)]
        found.append(f"{'num_q':<22}\tall\t{len(self.queries)}\n")
        return "".join([*found, *lines("all", {name: self.total(name) for name in self.values})])

    def json(self, *, per_query: bool = False) -> str:
        """Return the values as JSON, with all their digits."""
        totals = {name: self.total(name) for name in self.values}
        content: dict[str, Any] = {"num_q": len(self.queries), "all": totals}
        content |= {"queries": self._by_query(per_query=True)} if per_query else {}
        return json.dumps(content, indent=2) + "\n"


def evaluate_run(lists: JudgedLists, measures: Sequence[str] = DEFAULT, *, level: int = 1) -> RunValues:
    """Return the values of measures, as `ltr.metrics.parse_measure` reads their names, for a run and its judgements.

    Documents are relevant from the label `level` on. A query without one has the value 0, as in trec_eval. A `RunError`
    says that a name names no measure, or that it does not take these labels.
    """
    scores, labels = torch.from_numpy(lists.scores), torch.from_numpy(lists.labels)
    # values come in the order in which the queries first appear
    first = np.zeros(len(lists.queries), dtype=np.int64)
    first[lists.number[::-1]] = np.arange(len(lists.number))[::-1]
    place = first.argsort().argsort()
    number, outside, judged = map(torch.from_numpy, (lists.number, lists.outside, lists.judged))
    found: dict[str, NDArray[np.float64]] = {}
    try:
        named = {name: parse_measure(name) for name in measures}
        for binary, y in ((True, torch.where(labels >= level, labels, 0)), (False, labels)):
            some = {name: measure for name, measure in named.items() if measure.binary == binary}
            how = list(some.values())
            values = evaluate(scores, y, how, qid=number, empty=0.0, outside=outside, judged=judged)
            found |= {name: values[str(measure)].numpy()[place] for name, measure in some.items()}
    except ValueError as error:
        raise RunError(f"-m: {error}") from None
    counts = frozenset(name for name in named if str(named[name]).startswith("num_"))
    return RunValues(lists.queries, {name: found[name] for name in named}, counts)
