"""Pictures of ranked lists before and after reranking."""

from __future__ import annotations

from collections.abc import Iterator

from trainers.records import unpack_labels
from trainers.report.evidence import Evidence
from trainers.report.page import Picture
from trainers.report.pictures.drawing import NAMES
from trainers.report.series import PARTS
from trainers.run.overview import RankedList, ranked_list_figure


def list_pictures(evidence: Evidence) -> Iterator[Picture]:
    """Draw the first split's lists of each data set before and after reranking, with the shortest K."""
    for lines in evidence.by_length(evidence.main_groups):
        for data, row in lines.rows.items():
            value, series = next(iter(row.items()))
            after = series.records[series.splits[0]]
            before = evidence.results.base_of(after)
            if before is None or after["list"] is None or not (before.get("ranked") and after.get("ranked")):
                continue
            for part in PARTS:
                labels = [unpack_labels(record["ranked"][part]) for record in (before, after)]
                count = after["list"]["n"]
                if part == "test":  # how many of its items are reranked is not recorded
                    labels = [own[: 2 * count] for own in labels]
                    count = len(labels[0])
                values = (before[part].get(evidence.statistic), after[part].get(evidence.statistic))
                title = f"{data}, {NAMES[part]}"
                figure = ranked_list_figure(
                    RankedList(title, labels[0], labels[1], count),
                    base=before["method"],
                    statistic=evidence.statistic,
                    values=values,
                )
                caption = (
                    f"{data}, split {after['split']}, {NAMES[part]}: the top of the list "
                    f"ordered by {before['method']} and after reranking with K = {value}, and the number of positives "
                    "down to each position."
                )
                yield Picture(f"ranked_{part}_{lines.name}_{data}", figure, caption)
