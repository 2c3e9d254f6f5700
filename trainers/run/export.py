"""Write a finished run as an ONNX model that takes raw rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainers.files import RunError, reading, writing
from trainers.run.folder import RunFolder
from trainers.run.predict import ranker_of
from trainers.run.rows import method_of


@dataclass(frozen=True)
class Exported:
    """What a written model takes and returns.

    Attributes:
        path: the file.
        method: the method of the run.
        inputs: type and meaning of each input by name.
        outputs: names of the outputs.
    """

    path: Path
    method: str
    inputs: dict[str, tuple[str, str]]
    outputs: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"  {name}: {kind}, {what}" for name, (kind, what) in self.inputs.items()]
        head = f"wrote {self.path}: {self.method}, with the inputs, each with an entry for every row"
        return "\n".join([head, *lines, f"and the outputs {', '.join(self.outputs)}"])


def export_run(run: RunFolder, path: Path, *, method: str | None = None) -> Exported:
    """Write a fitted ranker of a run as an ONNX model; for a run on a table its inputs are the columns of the table.

    Args:
        run: folder of the run.
        path: where to write.
        method: a method of the run; its exact stage by default, or its only method.

    Raises:
        RunError: the method has no fitted ranker, the run folder is damaged, the path cannot be written to, or the
            package onnx is not installed.
    """
    chosen = method_of(run, method)
    ranker = ranker_of(run, chosen, prepared=True)
    with reading(run.origin):
        query = run.facts["data"].get("query") or "query"
    try:
        with writing(path, "--output"):
            ranker.to_onnx(path, preparation=ranker.preparation_, query=query)
        from ltr.onnx_graph import describe_model

        inputs, outputs = describe_model(path)
    except ImportError as error:
        raise RunError(f"export: {error}") from None
    except RunError:
        raise
    except (TypeError, ValueError) as error:
        raise RunError(f"export: {chosen}: {error}") from None
    return Exported(path, chosen, inputs, outputs)
