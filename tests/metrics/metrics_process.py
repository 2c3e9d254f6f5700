"""One of several processes that share the lists of a data set; writes what it computes."""

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from torch import distributed as dist

from ltr.metrics import RankingMetrics

MEASURES = ["ndcg@3", "mrr", "auc"]
OWNERS = {2: [0] * 12, 3: [0] * 3 + [2] * 9}
"""The process of each of 12 lists: one of the processes has none."""


def lists():
    """Twelve lists of 1 to 8 items, some without a positive."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9, 12)
    return [(torch.tensor(rng.normal(size=n)), torch.tensor(rng.integers(0, 2, n))) for n in sizes]


def record(metrics):
    values = {name: values.tolist() for name, values in metrics.values().items()}
    return {"means": metrics.compute(), "again": metrics.compute(), "counts": metrics.counts(), "values": values}


def main(rank, world, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world, timeout=timedelta(seconds=60)
    )
    found = {}
    whole = RankingMetrics(MEASURES)
    for (scores, labels), owner in zip(lists(), OWNERS[world], strict=True):
        if owner == rank:
            whole.update(scores, labels)
    found["whole"] = record(whole)
    found["own"] = whole.counts(sync=False)
    Path(folder, str(rank)).write_text(json.dumps(found))
    dist.destroy_process_group()
