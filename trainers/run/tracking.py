"""The log of a run: JSON lines of every value in float64, and TensorBoard events with the same values.

The events follow from the lines, because TensorBoard keeps scalars in float32 and lets an event with a repeated step
remove what it drew before. So when a training continues, its lines are cut at the checkpoint's step and its events are
written again from the lines.

==========================================  ==========================================================
tag                                         value, step
==========================================  ==========================================================
``loss/convex``                             the loss after each optimizer step
``loss/objective``, ``loss/excess``         with the penalty; its distance to the certified optimum
``train/dcg``, ``test/dcg``, ...            a rank statistic of the training or test set; methods without
                                            steps draw a level line
``validation/ndcg``, ...                    the statistic of the rows held out, by which the best step is chosen
``exact/incumbent``, ``/bound``, ``/gap``   the exact stage's; the step is the time in milliseconds
``exact/expected_gain``, ...                what it expects to gain on a new list, where it chose; ``_low`` and
                                            ``_high`` are the ends of the 90 % interval
``final/train/dcg``, ...                    the finished method's values, step 0
``card``                                    the picture of a card, and its text in Markdown
==========================================  ==========================================================
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.writer import SummaryWriter

from trainers.files import reading, to_json, write_atomic

_FINAL = "final/"
_FLUSH_SECONDS = 5


class Tracker:
    """The log of one method: one folder, one TensorBoard run.

    Args:
        folder: folder of the method; TensorBoard names the run by it.
        log: file of the JSON lines.
        tensorboard: whether to write events too.
        keep: go on after this step of an earlier log and drop what follows it; None starts a new log.
    """

    def __init__(self, folder: Path, log: Path, *, tensorboard: bool = True, keep: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with reading(log):
            earlier = [] if keep is None else [r for r in read_log(log) if r["step"] <= keep]
            kept = [r for r in earlier if not any(tag.startswith(_FINAL) for tag in r["values"])]
        write_atomic(log, "".join(_line(r) for r in kept).encode())
        self._file = log.open("a", encoding="utf-8")
        self._writer = new_writer(folder) if tensorboard else None
        for record in kept:
            self._write_events(record["step"], record["values"], record["time"])

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log(self, step: int, values: Mapping[str, float], *, when: float | None = None) -> None:
        """Log values by tag at a step, at a time in seconds since the epoch or now; a tag's steps must ascend.

        Values that are not finite are null in the JSON lines and left out of the events.
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

    def text(self, tag: str, text: str) -> None:
        """Write a Markdown text for TensorBoard."""
        if self._writer is not None:
            self._writer.add_text(tag, text)

    def figure(self, tag: str, figure: Figure) -> None:
        """Write a picture for TensorBoard."""
        if self._writer is not None:
            self._writer.add_figure(tag, figure)

    def finish(self, parameters: Mapping[str, bool | int | float | str], final: Mapping[str, float]) -> None:
        """Log hyperparameters, and final values under ``final/...``."""
        values = {f"{_FINAL}{tag}": float(value) for tag, value in final.items()}
        if self._writer is not None:
            # add_hparams would open a run of its own and wipe curves whose tags it repeats
            for summary in hparams(dict(parameters), {event_tag(tag): value for tag, value in values.items()}):
                self._writer._get_file_writer().add_summary(summary)
        self.log(0, values)

    def flush(self) -> None:
        """Write everything logged so far to the disk."""
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


def new_writer(folder: Path) -> SummaryWriter:
    """Return a writer into a folder, whose earlier events are removed: TensorBoard would join them."""
    for events in folder.glob("events.out.tfevents.*"):
        events.unlink()
    return SummaryWriter(str(folder), flush_secs=_FLUSH_SECONDS)


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log, ``{"step", "time", "values"}``; a last line cut off by a crash is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def event_tag(tag: str) -> str:
    """Return a tag as events have it, with square brackets: custom charts draw no series with round ones.

    Examples:
        >>> event_tag("train/dcg(base=e)")
        'train/dcg[base=e]'
    """
    return tag.translate(str.maketrans("()", "[]"))


def _line(record: Mapping[str, object]) -> str:
    return json.dumps(to_json(record), ensure_ascii=False, allow_nan=False) + "\n"
