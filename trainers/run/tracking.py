"""The log of a run: JSON lines of every value in float64, and loggers that receive the same values.

TensorBoard keeps scalars in float32, and an event with a repeated step removes what it drew before. So when a training
continues, its lines are cut at the checkpoint's step, and its loggers start again with the lines.

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
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainers.files import reading, to_json, write_atomic
from trainers.loggers import FINAL, Loggers, Parameters


class Tracker:
    """The log of one method: a file of JSON lines, and the loggers that receive the same values.

    It goes on after the step `keep` of an earlier log and drops what follows it; None starts a new log.
    """

    def __init__(self, log: Path, loggers: Loggers, *, keep: int | None = None) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with reading(log):
            earlier = [] if keep is None else [r for r in read_log(log) if r["step"] <= keep]
            kept = [r for r in earlier if not any(tag.startswith(FINAL) for tag in r["values"])]
        write_atomic(log, "".join(_line(r) for r in kept).encode())
        self._file, self._loggers = log.open("a", encoding="utf-8"), loggers
        for record in kept:
            loggers.log_scalars(record["step"], record["values"], record["time"])

    def __enter__(self) -> Tracker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log(self, step: int, values: Mapping[str, float], *, when: float | None = None) -> None:
        """Log values by tag at a step, at a time in seconds since the epoch or now; a tag's steps must ascend.

        Values that are not finite are null in the JSON lines and not passed on to the loggers.
        """
        when = time.time() if when is None else when
        plain = {tag: float(value) for tag, value in values.items()}
        self._file.write(_line({"step": step, "time": when, "values": plain}))
        self._file.flush()
        self._loggers.log_scalars(step, plain, when)

    def level(self, last: int, values: Mapping[str, float]) -> None:
        """Log values that belong to no step as a level line from step 0 to `last`."""
        for step in sorted({0, last}):
            self.log(step, values)

    def finish(self, parameters: Parameters, final: Mapping[str, float]) -> None:
        """Log hyperparameters, and final values under ``final/...``."""
        values = {f"{FINAL}{tag}": float(value) for tag, value in final.items()}
        self._loggers.log_parameters(parameters, values)
        self.log(0, values)

    def flush(self) -> None:
        """Write everything logged so far to the disk."""
        self._file.flush()
        self._loggers.flush()

    def close(self) -> None:
        """Flush and close the files."""
        self._file.close()
        self._loggers.close()


def read_log(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log, ``{"step", "time", "values"}``; a last line cut off by a crash is left out."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def _line(record: Mapping[str, object]) -> str:
    return json.dumps(to_json(record), ensure_ascii=False, allow_nan=False) + "\n"
