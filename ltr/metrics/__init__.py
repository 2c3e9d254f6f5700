"""Ranking metrics: ``metric(scores, labels, *, mask=None, qid=None, ties="resolved", empty=nan)``.

The last axis is the list, leading axes are a batch, a 1-D call is one list; `qid` takes flat ragged lists. Inputs are
torch tensors, or numbers as arrays, lists or columns of a data frame. Values are float64 tensors, one per list, exact
under strictly increasing maps of the scores; `empty`, NaN by default, where a metric is undefined.

`RankingMetrics` collects such values over batches and processes. `compare` and the functions beside it test whether two
rankers differ.
"""

from ltr.metrics.collection import RankingMetrics
from ltr.metrics.comparison import Comparison, Interval, ListComparison, compare, compare_on_list, holm, mean_interval
from ltr.metrics.measures import (
    ListOptions,
    Measure,
    auc,
    average_precision,
    dcg,
    evaluate,
    hits,
    mrr,
    ndcg,
    normalized_rank_statistic,
    parse_measure,
    precision,
    rank_statistic,
    recall,
)
from ltr.metrics.ranked import RankedLists, Ties, rank_lists

__all__ = [
    "Comparison",
    "Interval",
    "ListComparison",
    "ListOptions",
    "Measure",
    "RankedLists",
    "RankingMetrics",
    "Ties",
    "auc",
    "average_precision",
    "compare",
    "compare_on_list",
    "dcg",
    "evaluate",
    "hits",
    "holm",
    "mean_interval",
    "mrr",
    "ndcg",
    "normalized_rank_statistic",
    "parse_measure",
    "precision",
    "rank_lists",
    "rank_statistic",
    "recall",
]
