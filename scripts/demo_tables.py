"""Write the two tables of the demo, or draw how many hits the first visits hold among its new rows.

    python -m scripts.demo_tables FOLDER                  # offers.csv and new_offers.csv
    python -m scripts.demo_tables FILE.png                # the first picture of the README

A row is one of four ways of which a traveller chose one (statsmodels' `modechoice`: 210 travellers between Sydney,
Canberra and Melbourne). The travellers with odd numbers are labelled, the others are the new rows, whose label shows
how a ranking does. Today's score, made up for the demo, calls the cheap offers first.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

_MODES = {1: "air", 2: "train", 3: "bus", 4: "car"}
_NAMES = {"individual": "traveller", "choice": "taken", "ttme": "waiting_time", "invc": "fare", "invt": "travel_time"}
_NAMES |= {"gc": "generalised_cost", "hinc": "income", "psize": "party"}
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
    import ltr
    from ltr.rankers import LogisticRegressionRanker

    old, new = tables()
    options = {"label": "taken", "visits": _VISITS, "group": "traveller", "today": "cheapness"}
    ranking = ltr.rank(old, new=new.drop(columns="taken"), **options)
    features = [pd.get_dummies(rows.drop(columns=["taken", "traveller"]), dtype=float) for rows in (old, new)]
    scores = LogisticRegressionRanker(C=1.0).fit(features[0], old["taken"]).predict(features[1])
    orders = {
        "ltr rank": ranking.ranked.index,
        "logistic regression": new.index[(-scores).argsort(kind="stable")],
        "cheapest first": new.sort_values("cheapness", ascending=False, kind="stable").index,
    }
    hits = pd.DataFrame({name: [0, *new.loc[order, "taken"].cumsum()] for name, order in orders.items()})
    hits["at random"] = hits.index * new["taken"].mean()
    labels = {"xlabel": "visits, from the top of the list of new rows", "ylabel": "hits", "xlim": (0, 2 * _VISITS)}
    look = {"color": ["#b2182b", "#2166ac", "#666666", "#999999"], "style": ["-", "-", "-", ":"], "linewidth": 2}
    axes = hits.head(2 * _VISITS + 1).plot(figsize=(7.2, 3.6), **labels, **look)
    axes.axvline(_VISITS, color="#cccccc", linewidth=1, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})


def main(path: Path) -> None:
    """Write the tables, or the picture."""
    if path.suffix == ".png":
        draw(path)
        return
    path.mkdir(parents=True, exist_ok=True)
    for name, rows in zip(("offers", "new_offers"), tables(), strict=True):
        rows.to_csv(path / f"{name}.csv", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
