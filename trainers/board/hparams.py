"""The HPARAMS tab of a board: a row for each line, its parameters and final values as columns.

The metrics are scalars under tags that all comparisons share, such as ``values/test/dcg``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.hparams import api_pb2, metadata
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

from trainers.board.lines import HALVES, Comparison, Line

__all__ = ["columns_summary", "metrics_of", "row_summaries"]

_METRICS = "values/"
_SHOWN = 5
"""TensorBoard shows so many parameters at first: those marked as differing, then by name."""
_PARAMETERS = ("data", "method", "K", "table", "run", "margin", "C", "base", "l2")
"""The parameters that matter most first."""


def metrics_of(line: Line) -> dict[str, float]:
    """The final values of a line by the tags that all comparisons share."""
    return {f"{_METRICS}{tag}": value for tag, value in line.means.items()}


def columns_summary(comparisons: Sequence[Comparison]) -> Summary:
    """The columns: the parameters and metrics of all lines."""
    lines = [line for comparison in comparisons for line in comparison.lines]
    experiment = api_pb2.Experiment()
    known = {
        name: {line.parameters[name] for line in lines if name in line.parameters}
        for name in dict.fromkeys(name for line in lines for name in line.parameters)
    }
    first = [name for name in (*_PARAMETERS, *known) if len(known.get(name, ())) > 1]
    shown = list(dict.fromkeys(first))[:_SHOWN]
    for name, values in known.items():
        info = experiment.hparam_infos.add(name=name, differs=name in shown, type=api_pb2.DATA_TYPE_FLOAT64)
        if any(isinstance(value, str) for value in values):
            info.type = api_pb2.DATA_TYPE_STRING
            info.domain_discrete.extend(sorted(map(str, values)))
    for tag in _ordered_metrics(comparisons):
        name = tag.removeprefix(_METRICS).replace("/", " ")
        experiment.metric_infos.add(name=api_pb2.MetricName(tag=tag), display_name=name)
    return _summary(metadata.EXPERIMENT_TAG, HParamsPluginData(experiment=experiment))


def _ordered_metrics(comparisons: Sequence[Comparison]) -> list[str]:
    """All metrics, those that matter most first: TensorBoard shows five at first."""
    found = {tag for comparison in comparisons for line in comparison.lines for tag in metrics_of(line)}
    statistics = dict.fromkeys(comparison.statistic for comparison in comparisons)
    leading = [f"{half}/{statistic}" for statistic in statistics for half in reversed(HALVES)]
    order = [f"{_METRICS}{what}" for what in (*leading, "gap", "bound", "seconds", "value", "loss")]
    return [tag for tag in order if tag in found] + sorted(found - set(order))


def row_summaries(line: Line) -> list[Summary]:
    """The row of a line, which TensorBoard takes for a session that started and ended."""
    start, end = SessionStartInfo(), SessionEndInfo(status=api_pb2.STATUS_SUCCESS)
    for name, value in line.parameters.items():
        if isinstance(value, str):
            start.hparams[name].string_value = value
        else:
            start.hparams[name].number_value = value
    return [
        _summary(metadata.SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=start)),
        _summary(metadata.SESSION_END_INFO_TAG, HParamsPluginData(session_end_info=end)),
    ]


def _summary(tag: str, content: HParamsPluginData) -> Summary:
    value = Summary.Value(tag=tag, metadata=metadata.create_summary_metadata(content), tensor=metadata.NULL_TENSOR)
    return Summary(value=[value])
