"""What the processes of tests/test_processes.py do: fits of all of them, and runs that end badly, under torchrun.

torchrun --standalone --nproc-per-node 2 tests/processes.py FOLDER CONFIG OPTIONS...
"""

import itertools
import json
import os
import sys
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import torch
import torch.distributed as dist

from ltr.fitting import Fit, FitOptions
from ltr.fitting.validation import Validation
from ltr.losses import LambdaLoss, parse_loss
from ltr.rankers import AutoRanker, SurrogateRanker, TwoStageRanker
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
    "validated": ("ranknet", "dropout", {"optimizer": "adam", "batch_size": 3, "patience": 3}, True, None),
}
NEURAL = {"scorer": "mlp", "hidden": (8, 4), "max_steps": 6, "batch_size": 3}
RANKERS = {
    "linear": (SurrogateRanker, {"validation": 0.3}, ("qid", "weight", "set")),
    "linear, one list": (SurrogateRanker, {"loss": "logistic"}, ("weight",)),
    "steps of lambda": (SurrogateRanker, {"loss": "lambda", "max_steps": 5}, ("qid",)),
    "smooth": (SurrogateRanker, {"loss": "smooth", "max_steps": 5}, ("qid", "list weight")),
    "mlp": (SurrogateRanker, {**NEURAL, "max_steps": 60, "patience": 4}, ("qid", "weight", "group", "names")),
    "mlp, later rows": (SurrogateRanker, {**NEURAL, "schedule": "plateau", "patience": 2}, ("qid", "time")),
    "mlp, one list": (SurrogateRanker, {**NEURAL, "batch_size": 20, "scale": "standardize"}, ("group",)),
    "mlp, chunks": (SurrogateRanker, {**NEURAL, "batch_size": None, "chunk_rows": 16}, ("qid", "set")),
    "attention": (SurrogateRanker, {**NEURAL, "scorer": "attention", "blocks": 1, "dropout": 0.3}, ("qid",)),
}
STEPS = 8
HALF = 3


def data():
    """Return features, labels, and lists one after the other."""
    generator = np.random.default_rng(0)
    n, d = 120, 3
    qid = np.repeat(np.arange(24), generator.multinomial(n, np.full(24, 1 / 24)))[:n]
    X = generator.normal(size=(n, d))
    y = (X @ generator.normal(size=d) + generator.normal(size=n) > 0.3).astype(int)
    return X, y, qid


def share(rank, size):
    """Return the rows of a process: of two the first has a quarter of the lists, of three the second has none."""
    qid = data()[2]
    cuts = {1: [0, 24], 2: [0, 6, 24], 3: [0, 17, 17, 24]}[size]
    return slice(*np.searchsorted(qid, cuts)[rank : rank + 2].tolist())


def new_scorer(kind, seed):
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        if kind in ("linear", "near"):
            scorer = LinearScorer(3)
            torch.nn.init.normal_(scorer.weight, std=1.0 if kind == "near" else 0.0)
            return scorer
        scorer = MLPScorer(3, (6, 5), dropout=0.3 if kind == "dropout" else 0.0)
        return scorer.float() if kind == "float" else scorer


def new_fit(name, rank=0, size=1, chunk_rows="of the case"):
    loss, kind, options, lists, chunk = CASES[name]
    if chunk_rows != "of the case":
        options = options | {"chunk_rows": chunk_rows}
    own = share(rank, size)
    X, y, qid = (values[own] for values in data())
    even = qid % 2 == 0
    held = Validation(X[even], y[even].astype(float), qid[even]) if name == "validated" else None
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
            validation=held,
        )


def told(fit, steps):
    """What a fit says of itself, seconds apart."""
    weights = torch.cat([p.detach().reshape(-1) for p in fit.scorer.parameters()])
    best = torch.cat([p.reshape(-1) for p in fit.best.values()])
    seen = [(s.index, s.objective, s.loss, s.grad_norm, s.width, s.validation or 0.0) for s in steps]
    return {"weights": weights, "best": best, "steps": seen, "stopped": fit.stopped}


def whole(rank=0, size=1):
    """Every case from the start to the end."""
    return {name: told(fit := new_fit(name, rank, size), list(fit)) for name in CASES}


def half(rank=0, size=1):
    """Every case up to a step."""
    states = {}
    for name in CASES:
        fit = new_fit(name, rank, size)
        list(itertools.islice(fit, HALF))
        states[name] = fit.state_dict()
    return states


def rest(states, rank=0, size=1):
    """Every case from there to the end."""
    results = {}
    for name, state in states.items():
        fit = new_fit(name, rank, size)
        fit.load_state_dict(state)
        results[name] = told(fit, list(fit))
    return results


def rankers(rank=0, size=1):
    """What each ranker learns from the rows of all processes: its scores of all rows, and what it says of the fit.

    Networks are of float64: Adam divides gradients by their size, so that the last digits of float32 soon show.
    """
    own, (X, y, qid) = share(rank, size), data()
    X = np.concatenate([X, np.full((len(X), 1), 7.0), np.exp(3 * X[:, :1])], axis=1).astype(np.float32)
    names = np.array([f"query {number}" for number in qid])
    arrays = {
        "qid": {"qid": names},
        "weight": {"sample_weight": np.random.default_rng(1).integers(0, 4, size=len(y)).astype(float)},
        "list weight": {"sample_weight": 1.0 + qid % 3},
        "group": {"group": qid // 3},
        "time": {"time": np.datetime64("2024-01-01") + 3 * qid},
    }
    found = {}
    for name, (kind, options, given) in RANKERS.items():
        arguments = {key: values[own] for one in given for key, values in arrays.get(one, {}).items()}
        if "set" in given:
            held = np.flatnonzero(qid % 5 == 0)
            held = held[(held >= own.start) & (held < own.stop)]
            arguments["validation_set"] = (X[held], y[held], names[held])
        with warnings.catch_warnings(), mock.patch.object(torch.nn.Module, "float", lambda self: self):
            warnings.simplefilter("ignore")
            rows = pd.DataFrame(X[own], columns=list("abcde")) if "names" in given else X[own]
            ranker = kind(**options, seed=3).fit(rows, y[own], **arguments)
        rows = pd.DataFrame(X, columns=list("abcde")) if "names" in given else X
        scores = ranker.decision_function(rows, names if "qid" in given else None)
        found[name] = (scores, ranker.n_iter_, ranker.converged_, ranker.validation_ or 0.0, ranker.objective_)
    return found


def fits(rank, size, folder):
    """What all processes make of the cases, by process; and states half way."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store-{size}", rank=rank, world_size=size)
    torch.save(whole(rank, size), folder / f"whole-{size}-{rank}.pt")
    torch.save(rankers(rank, size), folder / f"rankers-{size}-{rank}.pt")
    if (folder / "half.pt").exists():
        torch.save(rest(torch.load(folder / "half.pt"), rank, size), folder / f"rest-{size}-{rank}.pt")
    else:
        dist.barrier()
        states = half(rank, size)
        if rank == 0:
            torch.save(states, folder / "half.pt")
    (folder / f"refused-{size}-{rank}.json").write_text(json.dumps(refused(rank, size)))
    dist.destroy_process_group()


def refused(rank, size):
    """The errors of data that cannot be used, as this process sees them: they must be raised in all processes."""
    own = share(rank, size)
    X, y, qid = (values[own] for values in data())
    last, ranker = rank == size - 1, SurrogateRanker()
    attempts = {
        "a list in two processes": lambda: Fit(LinearScorer(3), "ranknet", X, y, qid=np.zeros(len(y), dtype=int)),
        "a query in two processes": lambda: ranker.fit(X, y, qid=np.full(len(y), "all")),
        "another column": lambda: ranker.fit(X[:, : 3 - last], y, qid=qid),
        "a missing value": lambda: ranker.fit(np.where(last & (X[-1:] == X), np.nan, X), y, qid=qid),
        "no labels": lambda: Fit(LinearScorer(3), "ranknet", X, np.zeros(len(y)), qid=qid),
        "no queries in one": lambda: ranker.fit(X, y, qid=None if last else qid),
        "a negative label": lambda: Fit(LinearScorer(3), "logistic", X, np.where(last, -1, y), qid=qid),
        "attention to one list": lambda: SurrogateRanker(scorer="attention").fit(X, y),
        "two stages": lambda: TwoStageRanker("ranknet").fit(X, y),
        "a blend": lambda: AutoRanker(["ranknet"]).fit(X, y, qid),
        "constraints": lambda: SurrogateRanker(signs={"x0": "+"}).fit(X, y),
    }
    found = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except ValueError as error:
            found[name] = str(error)
    return found


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
