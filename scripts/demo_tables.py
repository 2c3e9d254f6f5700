"""Write the two tables of the demo, or draw how many hits the first visits hold among its new rows.

    python -m scripts.demo_tables FOLDER                  # offers.csv and new_offers.csv
    python -m scripts.demo_tables FILE.png --picture      # the first picture of the README

A row is one of four ways of which a traveller chose one (statsmodels' `modechoice`: 210 travellers between Sydney,
Canberra and Melbourne). The travellers with odd numbers are labelled, the others are the new rows, whose label shows
how a ranking does. Today's score, made up for the demo, calls the cheap offers first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

_MODES = {1: "air", 2: "train", 3: "bus", 4: "car"}
_NAMES = {
    "individual": "traveller",
    "choice": "taken",
    "ttme": "waiting_time",
    "invc": "fare",
    "invt": "travel_time",
    "gc": "generalised_cost",
    "hinc": "income",
    "psize": "party",
}
_VISITS = 100


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the labelled rows and the new rows."""
    from statsmodels.datasets import modechoice

    frame = modechoice.load_pandas().data.astype(int).rename(columns=_NAMES)
    frame["mode"] = frame["mode"].map(_MODES)
    frame["cheapness"] = -frame["generalised_cost"]
    odd = frame["traveller"] % 2 == 1
    return frame[odd], frame[~odd]


def draw(path: Path) -> None:
    """Draw hits against visits among the new rows: by `ltr.rank`, logistic regression, today's score, and at random."""
    import matplotlib.pyplot as plt

    import ltr
    from ltr.rankers import LogisticRegressionRanker

    old, new = tables()
    options = {"label": "taken", "visits": _VISITS, "group": "traveller", "today": "cheapness"}
    ranking = ltr.rank(old, new=new.drop(columns="taken"), **options)
    features = [pd.get_dummies(rows.drop(columns=["taken", "traveller"]), dtype=float) for rows in (old, new)]
    linear = LogisticRegressionRanker(C=1.0).fit(features[0], old["taken"])
    orders = {
        "ltr rank": new.index.get_indexer(ranking.ranked.index),
        "logistic regression": np.argsort(-linear.predict(features[1]), kind="stable"),
        "cheapest first": np.argsort(-new["cheapness"].to_numpy(), kind="stable"),
    }
    hits, visits = new["taken"].to_numpy(), np.arange(2 * _VISITS + 1)
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    for (name, order), color in zip(orders.items(), ("#b2182b", "#2166ac", "#666666"), strict=True):
        _line(axes, hits[order], visits, name, color)
    axes.plot(visits, visits * hits.mean(), ":", color="#999999")
    axes.annotate("at random", (visits[-1], visits[-1] * hits.mean()), (4, 3), textcoords="offset points", fontsize=9)
    axes.axvline(_VISITS, color="#cccccc", linewidth=1, zorder=0)
    axes.set_xticks(range(0, 201, 50))
    axes.set(xlabel="visits, from the top of the list of new rows", ylabel="hits", xlim=(0, 255), ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, metadata={"Software": None})


def _line(axes, hits: NDArray[np.int64], visits: NDArray[np.int64], name: str, color: str) -> None:  # noqa: ANN001
    found = np.append(0, np.cumsum(hits))[visits]
    axes.plot(visits, found, color=color, linewidth=2)
    axes.annotate(name, (visits[-1], found[-1]), (4, -4), textcoords="offset points", fontsize=9, color=color)
    axes.annotate(f"{found[_VISITS]}", (_VISITS, found[_VISITS]), (-16, 3), textcoords="offset points", color=color)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the tables, or the picture."""
    parser = argparse.ArgumentParser(description="Write the tables of the demo.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--picture", action="store_true", help="draw into that file instead")
    options = parser.parse_args(argv)
    if options.picture:
        draw(options.folder)
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("offers", "new_offers"), tables(), strict=True):
        rows.to_csv(options.folder / f"{name}.csv", index=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
