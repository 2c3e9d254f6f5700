"""Results of a small sweep, made up."""

import itertools

import numpy as np

from ltr.statistics import RankStatistic
from trainers.records import SweepResults

STATISTIC, LR = "dcg", "logistic_regression"
SURROGATE = {"l2": 1e-4, "optimizer": "lbfgs"}


def record(data, split, method, train, test, *, options=None, seconds=1.0, tag="", **more):
    """The record of a first-stage cell."""
    half = {"train": [20, 8], "test": [20, 8]}
    return {
        "id": f"{data}/{split}/{method}{tag}",
        "data": data,
        "split": split,
        "method": method,
        "options": dict(SURROGATE) if options is None else options,
        "sizes": {**half, "d": 2},
        "status": "converged",
        "seconds": seconds,
        "train": {STATISTIC: train, "auc": 0.5},
        "test": {STATISTIC: test, "auc": 0.5},
        "loss": 0.5,
        "weights": [1.0, 0.0],
    } | more


def exact(data, split, train, test, *, top_k=10, base="ranknet", status="optimal", value=5.0, bound=5.0, starts=None,
          **more):  # fmt: skip
    """The record of an exact cell."""
    options = {"base": base, "top_k": top_k, "statistic": STATISTIC, "C": 1e-4, "margin": 1e-4, "ties": "resolved"}
    options |= {"method": "auto", "time_limit": 2.0}
    found = {
        "status": status,
        "message": "",
        "loss": None,
        "list": {
            "n": 10,
            "n_pos": 5,
            "value": value,
            "bound": bound,
            "gap": (bound - value) / value,
            "trivial_bound": RankStatistic.parse(STATISTIC).best(10, 5),
            "starts": {f"{data}/{split}/{base}": value - 0.5} if starts is None else starts,
        },
    }
    return record(data, split, "exact", train, test, options=options, tag=f"-{top_k}-{base}", **found | more)


def entry(found, base="", **varied):
    """What a grid says of a cell; `base` follows the method's name in the id of the base."""
    varied = {key.replace("__", "."): value for key, value in varied.items()}
    told = {key: found[key] for key in ("id", "data", "split", "method")} | {"varied": varied}
    if found["method"] == "exact":
        told["base"] = f"{found['data']}/{found['split']}/{found['options']['base']}{base}"
    return told


def grid(cells, *, name="methods", title="", best_of=None):
    """A grid of cells."""
    keys = list(dict.fromkeys(itertools.chain.from_iterable(cell["varied"] for cell in cells)))
    return {"name": name, "title": title, "best_of": best_of, "varied": keys, "cells": cells}


def sweep(records, grids=None, name="small"):
    """All of it; one grid of all records unless others are given."""
    if grids is None:
        grids = [grid([entry(r, **({"exact.top_k": r["options"]["top_k"]} if r["method"] == "exact" else {}))
                       for r in records])]  # fmt: skip
    origin = {"python": "3.11.0", "versions": {"ltr": "0.1.0"}, "git_commit": "0123456789abcdef", "git_dirty": True}
    return SweepResults(name, grids, origin, list(records))


def small(splits=4, data=("pumps", "valves")):
    """Two data sets, three surrogates and two lengths of the list."""
    rng = np.random.default_rng(0)
    records = []
    for name, split in itertools.product(data, range(splits)):
        level = 20 + rng.normal()
        for method, gain in (("ranknet", 0.0), ("hinge", -0.5), ("exponential", 0.2)):
            train, test = level + gain + rng.normal(size=2) / 5
            records.append(record(name, split, method, train, test, seconds=0.1 + split))
        for top_k, status in ((10, "optimal"), (15, "time_limit")):
            train, test = level + 1 + rng.normal(size=2) / 5
            bound = 5.0 if status == "optimal" else 5.1
            records.append(exact(name, split, train, test, top_k=top_k, status=status, bound=bound))
    return sweep(records)


class Made:
    """A sweep made up cell by cell, with values of one statistic."""

    def __init__(self, statistic=STATISTIC):
        self.statistic, self.records, self.grids = statistic, {}, {}

    def _add(self, found, table, varied, best_of=None):
        for part in ("train", "test"):
            found[part] = {self.statistic: found[part][STATISTIC]}
        found["sizes"] = {"train": [50, 20], "test": [50, 20], "d": 2}
        self.records[found["id"]] = found
        self.grids.setdefault((table, tuple(varied), best_of), []).append(entry(found, "-[]", **varied))

    def first(self, data, split, test, train=20.0, method=LR, *, options=(), varied=(), best_of=None, **more):
        options = dict(options)
        found = record(data, split, method, train, test, options=options, tag=f"-{sorted(options.items())}", **more)
        self._add(found, "methods", dict(varied), best_of)

    def exact(
        self, data, split, test, train=22.0, K=50, *, table="methods", vary=("exact.top_k",), options=(), on_list=(),
        **more,
    ):  # fmt: skip
        options = {"top_k": K, "time_limit": 20.0, "C": 1e-4, "margin": 1e-4, "base": LR} | dict(options)
        found = exact(data, split, train, test, value=train, bound=train, starts={}, **more)
        found |= {"options": options, "id": f"{data}/{split}/exact-{table}-{sorted(options.items())}"}
        found["list"] |= {"n": 50, "n_pos": 20, "trivial_bound": None, **dict(on_list)}
        self._add(found, table, {key: options[key.partition(".")[2]] for key in vary})

    @property
    def results(self):
        grids = [
            grid(cells, name=name, title=name.title(), best_of=best_of) | {"varied": list(varied)}
            for (name, varied, best_of), cells in self.grids.items()
        ]
        return SweepResults("made", grids, {}, list(self.records.values()))
