"""Loggers: TensorBoard or a user's own, all behind one small class.

`trainers.run.tracking.Tracker` writes every value into JSON lines and passes it on to the loggers that
``tracking.loggers`` names, one of each kind for each method of a run, and one for its tables and pictures.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.writer import SummaryWriter

from ltr.checks import named_object
from trainers.config.errors import ConfigError, Finding

Parameters = Mapping[str, bool | int | float | str]
"""Hyperparameters by name."""
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

    def log_parameters(self, parameters: Parameters, final: Mapping[str, float]) -> None:
        """Take the hyperparameters of the finished method, and its final values."""

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

    def log_parameters(self, parameters: Parameters, final: Mapping[str, float]) -> None:
        # add_hparams would open a run of its own and wipe curves whose tags it repeats
        for summary in hparams(dict(parameters), {event_tag(tag): value for tag, value in final.items()}):
            self._writer._get_file_writer().add_summary(summary)

    def log_charts(self, charts: Charts) -> None:
        """Take the layout of the custom charts."""
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

    def __enter__(self) -> Loggers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def log_scalars(self, step: int, values: Mapping[str, float | None], when: float) -> None:
        """Pass on values by tag, without those that are not finite."""
        finite = {tag: value for tag, value in values.items() if value is not None and math.isfinite(value)}
        if finite:
            self._each("log_scalars", step, finite, when=when)

    def log_text(self, tag: str, text: str) -> None:
        """Pass on a text in Markdown."""
        self._each("log_text", tag, text)

    def log_figure(self, tag: str, figure: Figure) -> None:
        """Pass on a figure."""
        self._each("log_figure", tag, figure)

    def log_parameters(self, parameters: Parameters, final: Mapping[str, float]) -> None:
        """Pass on hyperparameters and final values."""
        self._each("log_parameters", parameters, final)

    def log_charts(self, charts: Charts) -> None:
        """Pass on the layout of the custom charts, which TensorBoard alone has."""
        for logger in self._open.values():
            if isinstance(logger, _TensorBoard):
                logger.log_charts(charts)

    def flush(self) -> None:
        """Have everything written."""
        self._each("flush")

    def close(self) -> None:
        """Close all loggers."""
        self._each("close")

    def _each(self, method: str, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
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


def event_tag(tag: str) -> str:
    """Return a tag as events have it, with square brackets: custom charts draw no series with round ones."""
    return tag.translate(str.maketrans("()", "[]"))
