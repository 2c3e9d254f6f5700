"""What the processes of tests/test_processes.py do: fits by all of them, and runs that end badly, under torchrun.

torchrun --standalone --nproc-per-node 2 tests/processes.py FOLDER CONFIG OPTIONS...
"""

import itertools
import os
import sys
from unittest import mock

import numpy as np
import torch
import torch.distributed as dist

from ltr.fitting import Fit, FitOptions
from ltr.losses import LambdaLoss, parse_loss
from ltr.rankers.scorers import LinearScorer, MLPScorer

# name: loss, scorer, options, whether there are lists, rows of a chunk where the user sets none
CASES = {
    "ranknet": ("ranknet", "linear", {"chunk_rows": 16}, False, None),
    "ranknet, on the device": ("ranknet", "linear", {}, False, 16),
    "one chunk": ("ranknet", "linear", {}, False, None),
    "hinge of few pairs": ("hinge", "linear", {"chunk_rows": 7}, False, None),
    "hinge of many pairs": ("hinge", "linear", {"chunk_rows": 7}, False, None),
    "hinge of many lists": ("hinge", "linear", {"chunk_rows": 20}, True, None),
    "p-norm push of lists": ("p_norm_push(p=2)", "linear", {}, True, 16),
    "mlp": ("ranknet", "mlp", {"chunk_rows": 5}, False, None),
    "mlp in float32": ("exponential", "float", {}, False, 32),
    "batches of items": ("ranknet", "dropout", {"optimizer": "adam", "batch_size": 30, "chunk_rows": 8}, False, None),
    "batches, on the device": ("ranknet", "dropout", {"optimizer": "adam", "batch_size": 30}, False, 8),
    "batches of lists": ("ranknet", "dropout", {"optimizer": "adam", "batch_size": 4, "chunk_rows": 8}, True, None),
    "lambda": ("lambda", "near", {"optimizer": "adam", "chunk_rows": 16}, True, None),
}
STEPS = 8
HALF = 3


def data():
    generator = np.random.default_rng(0)
    n, d = 120, 3
    qid = np.repeat(np.arange(24), generator.multinomial(n, np.full(24, 1 / 24)))[:n]
    X = generator.normal(size=(n, d))
    y = (X @ generator.normal(size=d) + generator.normal(size=n) > 0.3).astype(int)
    order = generator.permutation(n)
    return X[order], y[order], qid[order]


def new_scorer(kind, seed):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        if kind in ("linear", "near"):
            scorer = LinearScorer(3)
            torch.nn.init.normal_(scorer.weight, std=1.0 if kind == "near" else 0.0)
            return scorer
        scorer = MLPScorer(3, (6, 5), dropout=0.3 if kind == "dropout" else 0.0)
        return scorer.float() if kind == "float" else scorer


def new_fit(name, rank=0, chunk_rows="of the case"):
    loss, kind, options, lists, chunk = CASES[name]
    if chunk_rows != "of the case":
        options = options | {"chunk_rows": chunk_rows}
    X, y, qid = data()
    many = 0 if "many" in name else 10**6
    # a helper's own start does not matter
    scorer = new_scorer(kind, seed=5 + rank)
    with (
        mock.patch("ltr.fitting.smoothing._MANY", many),
        mock.patch("ltr.fitting.objective._CHUNK", chunk or 1 << 14),
    ):
        module = LambdaLoss() if loss == "lambda" else parse_loss(loss)
        return Fit(
            scorer,
            module,
            X,
            y,
            FitOptions(max_steps=STEPS, tolerance=1e-13, seed=2, **options),
            qid if lists else None,
        )


def told(fit, steps):
    """What a fit says of itself, seconds apart."""
    weights = torch.cat([p.detach().reshape(-1) for p in fit.scorer.parameters()])
    best = torch.cat([p.reshape(-1) for p in fit.best.values()])
    seen = [(s.index, s.objective, s.loss, s.grad_norm, s.gap, s.width) for s in steps]
    return {"weights": weights, "best": best, "steps": seen, "stopped": fit.stopped}


def whole(rank=0):
    """Every case from the start to the end."""
    return {name: told(fit := new_fit(name, rank), list(fit)) for name in CASES}


def half(rank=0):
    """Every case up to a step."""
    states = {}
    for name in CASES:
        fit = new_fit(name, rank)
        list(itertools.islice(fit, HALF))
        states[name] = fit.state_dict()
    return states


def rest(states, rank=0):
    """Every case from there to the end."""
    results = {}
    for name, state in states.items():
        fit = new_fit(name, rank)
        fit.load_state_dict(state)
        results[name] = told(fit, list(fit))
    return results


def fits(rank, size, folder):
    """What all processes make of the cases, by process; and states half way."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store-{size}", rank=rank, world_size=size)
    torch.save(whole(rank), folder / f"whole-{size}-{rank}.pt")
    if (folder / "half.pt").exists():
        torch.save(rest(torch.load(folder / "half.pt"), rank), folder / f"rest-{size}-{rank}.pt")
    else:
        dist.barrier()
        states = half(rank)
        if rank == 0:
            torch.save(states, folder / "half.pt")
    refused(folder, rank)
    dist.destroy_process_group()


def refused(folder, rank):
    """A shard a process instead of all rows is an error, in every process."""
    X, y, _ = data()
    try:
        Fit(LinearScorer(3), parse_loss("ranknet"), X[rank::2], y[rank::2])
    except ValueError as error:
        (folder / f"refused-{rank}.txt").write_text(str(error))


def run(*arguments):
    """``ltr run``; where CRASH names a process, that raises at its third evaluation of 64 rows or more."""
    from trainers.cli import main

    if os.environ.get("CRASH") == os.environ["RANK"]:
        forward, calls = LinearScorer.forward, itertools.count()

        def crash(self, features):
            if next(calls) == 9:
                raise RuntimeError("no memory left")
            return forward(self, features)

        LinearScorer.forward = crash
    sys.exit(main(["run", *arguments]))


if __name__ == "__main__":
    run(*sys.argv[1:])
