"""Reading boards back, for the tests of `trainers.board`."""

from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.backend_context import Context
from tensorboard.plugins.hparams.list_session_groups import Handler
from tensorboard.util import tensor_util


def events(folder):
    accumulator = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0, "images": 0})
    accumulator.Reload()
    return accumulator


def curves(folder):
    """Steps and values by tag, as TensorBoard reads them."""
    found = events(folder)
    return {tag: [(event.step, event.value) for event in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def tags(folder):
    """Tags of scalars in all runs of a board."""
    return {tag for path in folder.rglob("events.*") for tag in events(path.parent).Tags()["scalars"]}


def charts(board):
    """For each category its titles of charts, with their regular expressions."""
    event = events(board / "overview").Tensors("custom_scalars__config__")[0]
    layout = layout_pb2.Layout.FromString(event.tensor_proto.string_val[0])
    return {
        category.title: {chart.title: list(chart.multiline.tag) for chart in category.chart}
        for category in layout.category
    }


def tensor(folder, tag):
    return tensor_util.make_ndarray(events(folder).Tensors(tag)[0].tensor_proto)


def hparams(board):
    """The rows of the HPARAMS tab, as TensorBoard's own plugin answers: parameters and metrics by run."""
    multiplexer = EventMultiplexer(tensor_size_guidance={"hparams": 0, "scalars": 0})
    multiplexer.AddRunsFromDirectory(str(board))
    multiplexer.Reload()
    context = TBContext(data_provider=MultiplexerDataProvider(multiplexer, str(board)))
    request_context, plugin = RequestContext(), Context(context)
    contents = plugin.hparams_metadata(request_context, "")
    experiment = plugin.experiment_from_metadata(request_context, "", True, contents, [])
    columns = [api_pb2.ColParams(hparam=info.name) for info in experiment.hparam_infos]
    columns += [api_pb2.ColParams(metric=info.name) for info in experiment.metric_infos]
    request = api_pb2.ListSessionGroupsRequest(
        col_params=columns, start_index=0, slice_size=1000, allowed_statuses=[api_pb2.STATUS_SUCCESS]
    )
    answer = Handler(request_context, plugin, "", request).run()
    rows = {}
    for group in answer.session_groups:
        parameters = {
            name: value.string_value if value.HasField("string_value") else value.number_value
            for name, value in group.hparams.items()
        }
        metrics = {value.name.tag: value.value for value in group.metric_values}
        rows[group.sessions[0].name] = (parameters, metrics)
    return experiment, rows
