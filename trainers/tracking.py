"""What a run logs: TensorBoard events, and JSON lines with the same values in float64.

A run writes TensorBoard events here alone; those that compare runs come from `trainers.board`. The JSON lines are the
truth, the events follow from them: TensorBoard keeps scalars in float32, and lets an event with a repeated step wipe
what it drew before. So when a training continues, its lines are cut at the checkpoint's step and its events are written
anew from the lines.

==========================================  ==========================================================
tag                                         value, step
==========================================  ==========================================================
``loss/convex``                             the convex loss after each optimizer step
``loss/objective``, ``loss/excess``         with the penalty; above the certified optimum
``train/dcg``, ``test/dcg``, ...            a rank statistic of either half; methods that train in no
                                            steps draw a level line
``exact/incumbent``, ``/bound``, ``/gap``   of the exact stage; the step is the time in milliseconds
``final/train/dcg``, ...                    the finished method's values, step 0
==========================================  ==========================================================
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.writer import SummaryWriter

from trainers.files import reading, to_json, write_atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Record",
    "Tracker",
    "chart_layout",
    "event_tag",
    "read_records",
    "write_overview",
]

Record = dict[str, float]
"""Values by tag."""

_FINAL = "final/"
_FLUSH_SECONDS = 5


class Tracker:
    """The log of one method: one folder, one TensorBoard run.

    Args:
        folder: of the method; TensorBoard names the run by it.
        records: the file of the JSON lines.
        tensorboard: whether to write events too.
        keep: go on behind this step of an earlier log and drop what it holds beyond; None starts a new log.
    """

    def __init__(self, folder: Path, records: Path, *, tensorboard: bool = True, keep: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with reading(records):
            kept = [] if keep is None else [r for r in read_records(records) if _is_kept(r, keep)]
        write_atomic(records, "".join(_line(r) for r in kept).encode())
        self._file = records.open("a", encoding="utf-8")
        self._writer = _new_writer(folder) if tensorboard else None
        for record in kept:
            self._write_events(record["step"], record["values"], record["time"])

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log(self, step: int, values: Mapping[str, float], *, when: float | None = None) -> None:
        """Log values by tag at a step; a tag's steps must ascend.

        Values that are not finite stand as null in the JSON lines and are left out of the events.

        Args:
            step: of all the values.
            values: by tag.
            when: wall time in seconds since the epoch; now by default.
        """
        when = time.time() if when is None else when
        plain = {tag: float(value) for tag, value in values.items()}
        self._file.write(_line({"step": step, "time": when, "values": plain}))
        self._file.flush()
        self._write_events(step, plain, when)

    def level(self, last: int, values: Mapping[str, float]) -> None:
        """Log values that belong to no step as a level line from step 0 to `last`."""
        for step in sorted({0, last}):
            self.log(step, values)

    def finish(self, parameters: Mapping[str, bool | int | float | str], final: Mapping[str, float]) -> None:
        """Log hyperparameters and the final values that they led to, the latter under ``final/...``."""
        values = {f"{_FINAL}{tag}": float(value) for tag, value in final.items()}
        if self._writer is not None:
            # add_hparams would open a run of its own and wipe curves whose tags it repeats
            for summary in hparams(dict(parameters), {event_tag(tag): value for tag, value in values.items()}):
                self._writer._get_file_writer().add_summary(summary)
        self.log(0, values)

    def flush(self) -> None:
        """Hand everything logged so far to the disk."""
        self._file.flush()
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Flush and close the files."""
        self._file.close()
        if self._writer is not None:
            self._writer.close()

    def _write_events(self, step: int, values: Mapping[str, float | None], when: float) -> None:
        if self._writer is None:
            return
        for tag, value in values.items():
            if value is not None and math.isfinite(value):
                self._writer.add_scalar(event_tag(tag), value, step, walltime=when)


def write_overview(
    folder: Path,
    charts: dict[str, dict[str, list[object]]],
    *,
    texts: Mapping[str, str] | None = None,
    figures: Mapping[str, Figure] | None = None,
) -> None:
    """Write the TensorBoard run that belongs to no method: layout of the custom charts, tables, pictures.

    Args:
        folder: of that run; what it held before is replaced.
        charts: from `chart_layout`.
        texts: markdown by tag.
        figures: pictures by tag.
    """
    folder.mkdir(parents=True, exist_ok=True)
    writer = _new_writer(folder)
    writer.add_custom_scalars(charts)
    for tag, text in (texts or {}).items():
        writer.add_text(tag, text)
    for tag, figure in (figures or {}).items():
        writer.add_figure(tag, figure, close=False)
    writer.close()


def _new_writer(folder: Path) -> SummaryWriter:
    """A writer into a folder without events: TensorBoard joins all event files that it finds there."""
    for events in folder.glob("events.out.tfevents.*"):
        events.unlink()
    return SummaryWriter(str(folder), flush_secs=_FLUSH_SECONDS)


def _is_kept(record: Mapping[str, Any], last: int) -> bool:
    return record["step"] <= last and not any(tag.startswith(_FINAL) for tag in record["values"])


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a log as ``{"step", "time", "values"}``; a last line cut off by a crash is passed over.

    Returns:
        nothing where there is no file.
    """
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def chart_layout(statistics: Sequence[str], top: str, on_list: str | None = None) -> dict[str, dict[str, list[object]]]:
    """Custom charts: the convex loss beside the first statistic, the exact stage's incumbent and bound in one chart.

    Args:
        statistics: names of the reported statistics, the one that matters first.
        top: name of the reranked list, for the titles.
        on_list: name of the statistic that the exact stage maximises there; the first one by default.
    """
    first = statistics[0]
    on_list = on_list or first
    beside = {
        "convex loss": _lines(["loss/convex"]),
        f"{first} on the training half": _lines([f"train/{first}"]),
        f"{first} on the test half": _lines([f"test/{first}"]),
    }
    exact = {
        f"{on_list} on the {top}: incumbent and bound (step = ms)": _lines(["exact/incumbent", "exact/bound"]),
        "relative gap (step = ms)": _lines(["exact/gap"]),
    }
    others = {
        f"{name} on the {half} half": _lines([f"{tag}/{name}"])
        for name in statistics[1:]
        for tag, half in (("train", "training"), ("test", "test"))
    }
    charts = {"Convex loss beside the rank statistic": beside, "Exact stage": exact}
    return charts | ({"Other statistics": others} if others else {})


def _lines(tags: Iterable[str]) -> list[object]:
    # TensorBoard takes the tags of a chart as regular expressions
    return ["Multiline", [f"^{re.escape(event_tag(tag))}$" for tag in tags]]


def event_tag(tag: str) -> str:
    """What a tag is called in events: its brackets are square, for custom charts draw no series with round ones.

    Examples:
        >>> event_tag("train/dcg(base=e)")
        'train/dcg[base=e]'
    """
    return tag.translate(str.maketrans("()", "[]"))


def _line(record: Mapping[str, object]) -> str:
    return json.dumps(to_json(record), ensure_ascii=False, allow_nan=False) + "\n"
