"""Loggers: TensorBoard, MLflow, W&B, or a user's own, all behind one small class.

`trainers.run.tracking.Tracker` writes every value into JSON lines and passes it on to the loggers that
``tracking.loggers`` names, one of each kind for each method of a run, and one for its tables and pictures.
"""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch.utils.tensorboard.summary import hparams
from torch.utils.tensorboard.writer import SummaryWriter

from ltr.calls import named_object
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

    A logger of your own is a subclass, which ``tracking.loggers`` names as ``module:Class``. When a run continues, the
    loggers of the method under way are opened again and receive what was logged until its checkpoint once more: they
    replace what they had.

    Args:
        folder: folder of the method, where a logger may write.
        run: name of the run.
        method: name of the method, or ``results`` for the tables and pictures of the run.
    """

    def __init__(self, folder: Path, run: str, method: str) -> None:
        pass

    def log_scalars(self, step: int, values: Mapping[str, float], *, when: float) -> None:
        """Take finite values by tag, such as ``loss/convex`` and ``test/dcg``.

        Args:
            step: number of the step; milliseconds for the exact stage; 0 for the final values, ``final/test/dcg``.
            values: the values.
            when: time in seconds since the epoch.
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


class _MLflow(Logger):
    """Logs to MLflow: an experiment for each run of the toolkit, an MLflow run for each method.

    The server or folder is that of MLFLOW_TRACKING_URI, else the folder ``mlruns`` beside the run folder. A method that
    continues gets a new MLflow run in place of the unfinished one.
    """

    def __init__(self, folder: Path, run: str, method: str) -> None:
        beside = folder.absolute().parent.parent / "mlruns"
        uri = os.environ.get("MLFLOW_TRACKING_URI") or beside.as_uri()
        if uri.startswith("file:"):  # which newer versions keep for those who ask for it
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.entities import Metric
        from mlflow.tracking import MlflowClient

        self._metric, self._client = Metric, MlflowClient(tracking_uri=uri)
        found = self._client.get_experiment_by_name(run)
        experiment = self._client.create_experiment(run) if found is None else found.experiment_id
        known = folder / "mlflow_run.txt"
        if known.exists():
            with contextlib.suppress(Exception):  # it may be gone
                self._client.delete_run(known.read_text(encoding="utf-8"))
        self._run = self._client.create_run(experiment, run_name=method).info.run_id
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(self._run, encoding="utf-8")
        self._waiting: list[Any] = []
        self._sent = time.monotonic()

    def log_scalars(self, step: int, values: Mapping[str, float], *, when: float) -> None:
        self._waiting += [self._metric(_mlflow_key(k), v, round(1000 * when), step) for k, v in values.items()]
        if len(self._waiting) >= 500 or time.monotonic() - self._sent >= _FLUSH_SECONDS:  # it takes 1000 at a time
            self.flush()

    def log_text(self, tag: str, text: str) -> None:
        self._client.log_text(self._run, text, f"{_mlflow_key(tag)}.md")

    def log_figure(self, tag: str, figure: Figure) -> None:
        self._client.log_figure(self._run, figure, f"{_mlflow_key(tag)}.png")

    def log_parameters(self, parameters: Parameters, final: Mapping[str, float]) -> None:
        for name, value in parameters.items():
            self._client.log_param(self._run, name, value)

    def flush(self) -> None:
        self._client.log_batch(self._run, metrics=self._waiting)
        self._waiting, self._sent = [], time.monotonic()

    def close(self) -> None:
        self.flush()
        self._client.set_terminated(self._run)


def _mlflow_key(tag: str) -> str:
    """Return a tag as MLflow takes it, which has neither brackets nor ``@`` in names.

    Examples:
        >>> _mlflow_key("test/dcg(base=e)@10")
        'test/dcg_base_e_at_10'
    """
    return re.sub(r"[^\w\-./ ]+", "_", tag.replace("@", "_at_")).replace("__", "_").strip("_")


class _Wandb(Logger):
    """Logs to W&B: a group for each run of the toolkit, a W&B run for each method, in the project ``ltr``.

    It works offline in the method's folder, for ``wandb sync``, unless WANDB_MODE says otherwise; WANDB_PROJECT names
    another project.
    """

    def __init__(self, folder: Path, run: str, method: str) -> None:
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / "wandb", ignore_errors=True)
        self._wandb = wandb
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "ltr"),
            group=run,
            name=method,
            dir=str(folder),
            mode=os.environ.get("WANDB_MODE", "offline"),  # type: ignore[arg-type, unused-ignore]
            reinit="create_new",
            settings=wandb.Settings(silent=True, console="off"),
        )
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")  # its own steps may not go back

    def log_scalars(self, step: int, values: Mapping[str, float], *, when: float) -> None:
        final = {tag: value for tag, value in values.items() if tag.startswith(FINAL)}
        self._run.summary.update(final)
        if curve := {tag: value for tag, value in values.items() if tag not in final}:
            self._run.log({**curve, "step": step, "time": when})

    def log_text(self, tag: str, text: str) -> None:
        self._run.summary[tag] = text

    def log_figure(self, tag: str, figure: Figure) -> None:
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        self._run.log({tag: self._wandb.Image(np.asarray(canvas.buffer_rgba()))})

    def log_parameters(self, parameters: Parameters, final: Mapping[str, float]) -> None:
        self._run.config.update(dict(parameters))

    def close(self) -> None:
        self._run.finish()


LOGGERS: dict[str, type[Logger]] = {"tensorboard": _TensorBoard, "mlflow": _MLflow, "wandb": _Wandb}
"""Loggers by name."""


def check_loggers(names: Sequence[str]) -> None:
    """Check that the loggers that a config names can be used, before anything is computed.

    Raises:
        ConfigError: all that cannot, with the reasons.
    """
    findings = []
    for at, name in enumerate(names):
        try:
            _class(name)
        except (ImportError, ValueError, TypeError) as error:
            findings.append(Finding(f"tracking.loggers[{at}]", str(error), name))
    if findings:
        raise ConfigError("config", findings)


def _class(name: str) -> type[Logger]:
    if name in LOGGERS:
        if name in ("mlflow", "wandb") and importlib.util.find_spec(name) is None:
            raise ImportError(f"needs {name}, which is not installed: pip install 'rankproof[{name}]'")
        return LOGGERS[name]
    found = named_object(f"logger {name}", name)
    if not (isinstance(found, type) and issubclass(found, Logger)):
        raise TypeError("must name a subclass of trainers.loggers.Logger")
    return found


class Loggers:
    """The loggers of one method. One that fails, except for TensorBoard's, is left out from then on.

    Args:
        names: names of the loggers.
        folder: folder of the method.
        run: name of the run.
        method: name of the method, or ``results``.

    Attributes:
        failures: what went wrong, a text for each logger that was left out.
    """

    def __init__(self, names: Sequence[str], folder: Path, run: str, method: str) -> None:
        self.failures: list[str] = []
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
    """Return a tag as events have it, with square brackets: custom charts draw no series with round ones.

    Examples:
        >>> event_tag("train/dcg(base=e)")
        'train/dcg[base=e]'
    """
    return tag.translate(str.maketrans("()", "[]"))
