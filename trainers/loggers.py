"""What a run logs of each method: JSON lines of every value in float64, and loggers that receive the same values.

A logger is TensorBoard or a user's own; ``tracking.loggers`` names them. TensorBoard keeps scalars in float32, and an
event with a repeated step removes what it drew before. So when a training continues, its lines are cut at the
checkpoint's step, and its loggers start again with the lines.

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

import contextlib
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from matplotlib.figure import Figure
from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.writer import SummaryWriter

from ltr.checks import named_object
from trainers.config.errors import ConfigError, Finding
from trainers.files import reading, to_json, write_atomic

Charts = dict[str, dict[str, list[object]]]
"""TensorBoard's custom charts: kind and tags, by category and title."""

FINAL = "final/"
"""Tags of a finished method's values begin with this."""
RESULTS = "results"
"""Stands in place of a method for the tables and pictures of the whole run."""

_FLUSH_SECONDS = 5


class Logger:
    """Receives what is logged of one method of a run; this class ignores it all.

    A logger of your own is a subclass, which ``tracking.loggers`` names as ``module:Class``. It may write into the
    folder of the method, whose name is ``results`` for the tables and pictures of the run. When a run continues, the
    loggers of the method under way receive what was logged until its checkpoint once more, and replace what they had.
    """

    def __init__(self, folder: Path, run: str, method: str) -> None:
        pass

    def log_scalars(self, step: int, values: Mapping[str, float], *, when: float) -> None:
        """Take finite values by tag, such as ``loss/convex`` and ``test/dcg``, at a time in seconds since the epoch.

        Steps of the exact stage are milliseconds; that of the final values, ``final/test/dcg``, is 0.
        """

    def log_text(self, tag: str, text: str) -> None:
        """Take a text in Markdown."""

    def log_figure(self, tag: str, figure: Figure) -> None:
        """Take a matplotlib figure."""

    def log_parameters(self, parameters: Mapping[str, Any], final: Mapping[str, float]) -> None:
        """Take the hyperparameters of the finished method, and its final values."""

    def log_charts(self, charts: Charts) -> None:
        """Take the layout of TensorBoard's CUSTOM SCALARS."""

    def flush(self) -> None:
        """Write everything taken so far."""

    def close(self) -> None:
        """Write everything and end."""


class _TensorBoard(Logger):
    """Writes TensorBoard events into the folder; earlier events are removed, which TensorBoard would join."""

    def __init__(self, folder: Path, run: str = "", method: str = "") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for events in folder.glob("events.out.tfevents.*"):
            events.unlink()
        self._writer = SummaryWriter(str(folder), flush_secs=_FLUSH_SECONDS)

    def log_scalars(self, step: int, values: Mapping[str, float], *, when: float) -> None:
        for tag, value in values.items():
            self._writer.add_scalar(event_tag(tag), value, step, walltime=when)

    def log_text(self, tag: str, text: str) -> None:
        self._writer.add_text(tag, text)

    def log_figure(self, tag: str, figure: Figure) -> None:
        self._writer.add_figure(tag, figure, close=False)

    def log_parameters(self, parameters: Mapping[str, Any], final: Mapping[str, float]) -> None:
        # add_hparams would open a run of its own and wipe curves whose tags it repeats
        for summary in hparams(dict(parameters), {event_tag(tag): value for tag, value in final.items()}):
            self._writer._get_file_writer().add_summary(summary)

    def log_charts(self, charts: Charts) -> None:
        self._writer.add_custom_scalars(charts)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


def check_loggers(names: Sequence[str]) -> None:
    """Raise a `ConfigError` with all loggers that cannot be used, before anything is computed."""
    findings = []
    for at, name in enumerate(names):
        try:
            _class(name)
        except (ImportError, ValueError, TypeError) as error:
            findings.append(Finding(f"tracking.loggers[{at}]", str(error), name))
    if findings:
        raise ConfigError("config", findings)


def _class(name: str) -> type[Logger]:
    if name == "tensorboard":
        return _TensorBoard
    found = named_object(f"logger {name}", name)
    if not (isinstance(found, type) and issubclass(found, Logger)):
        raise TypeError("must name a subclass of trainers.loggers.Logger")
    return found


class Loggers:
    """The loggers of one method. One that fails, except for TensorBoard's, is left out from then on."""

    def __init__(self, names: Sequence[str], folder: Path, run: str, method: str) -> None:
        self.failures: list[str] = []  # what went wrong with each logger that was left out
        self._open: dict[str, Logger] = {}
        for name in names:
            with self._left_out_if_it_fails(name):
                self._open[name] = _class(name)(folder, run, method)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.each("close")

    def each(self, method: str, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  (those of the method)
        """Call a method of each logger, such as ``each("log_text", tag, text)``."""
        for name, logger in list(self._open.items()):
            with self._left_out_if_it_fails(name):
                getattr(logger, method)(*arguments, **options)

    @contextlib.contextmanager
    def _left_out_if_it_fails(self, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if name == "tensorboard":  # a full disk, which the run reports
                raise
            self._open.pop(name, None)
            self.failures.append(f"logger {name}: left out after {type(error).__name__}: {error}")


class Tracker(Loggers):
    """The log of one method: the file ``scalars.jsonl`` in its folder, and its loggers.

    It goes on after the step `keep` of an earlier log and drops what follows it; None starts a new log.
    """

    def __init__(self, names: Sequence[str], folder: Path, run: str, method: str, *, keep: int | None = None) -> None:
        super().__init__(names, folder, run, method)
        path = folder / "scalars.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with reading(path):
            earlier = [] if keep is None else [line for line in read_log(path) if line["step"] <= keep]
            kept = [line for line in earlier if not any(tag.startswith(FINAL) for tag in line["values"])]
        write_atomic(path, "".join(map(_line, kept)).encode())
        self._file = path.open("a", encoding="utf-8")
        for line in kept:
            self._pass_on(line["step"], line["values"], line["time"])

    def __exit__(self, *_: object) -> None:
        self._file.close()
        super().__exit__()

    def log(self, step: int, values: Mapping[str, float], *, when: float | None = None) -> None:
        """Log values by tag at a step, at a time in seconds since the epoch or now; a tag's steps must ascend.

        Values that are not finite are null in the JSON lines and not passed on to the loggers.
        """
        when = time.time() if when is None else when
        plain = {tag: float(value) for tag, value in values.items()}
        self._file.write(_line({"step": step, "time": when, "values": plain}))
        self._file.flush()
        self._pass_on(step, plain, when)

    def _pass_on(self, step: int, values: Mapping[str, float | None], when: float) -> None:
        finite = {tag: value for tag, value in values.items() if value is not None and math.isfinite(value)}
        if finite:
            self.each("log_scalars", step, finite, when=when)

    def finish(self, parameters: Mapping[str, Any], final: Mapping[str, float]) -> None:
        """Log hyperparameters, and final values under ``final/...``."""
        values = {f"{FINAL}{tag}": float(value) for tag, value in final.items()}
        self.each("log_parameters", parameters, values)
        self.log(0, values)


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


def event_tag(tag: str) -> str:
    """Return a tag as events have it, with square brackets: custom charts draw no series with round ones."""
    return tag.translate(str.maketrans("()", "[]"))
