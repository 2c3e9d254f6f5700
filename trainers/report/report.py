"""The report of a sweep: put together, and written as Markdown, as one HTML file, as pictures and as data."""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from trainers.files import RunError, remove_leftovers, write_atomic, write_json, writing
from trainers.records import INDEX, SweepResults, write_export
from trainers.report.evidence import Evidence
from trainers.report.exact import exact_section
from trainers.report.findings import findings, headline
from trainers.report.html import to_html
from trainers.report.markdown import literal, to_markdown
from trainers.report.page import Block, Page, Picture, Section, Text
from trainers.report.pictures import pictures
from trainers.report.reference import Reference, reference_section
from trainers.report.tables import data_table, progress, time_section, value_sections
from trainers.report.wording import counted
from trainers.run.folder import RunFolder

__all__ = ["Written", "build_page", "file_names", "find_sweep", "png", "write_report"]

_DPI = 144


@dataclass(frozen=True)
class Written:
    """The files of a report.

    Attributes:
        markdown: the report as Markdown.
        html: as one HTML file.
        figures: folder of the pictures.
        export: all results, in one file that `ltr report` and `ltr sweep --from` read.
        copy: where else the Markdown was to be written.
    """

    markdown: Path
    html: Path
    figures: Path
    export: Path
    copy: Path | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All of them, the pictures as their folder."""
        found = (self.html, self.markdown, self.copy, self.figures, self.export)
        return tuple(path for path in found if path is not None)


def find_sweep(text: str, runs_dir: str | Path = "runs") -> Path:
    """A sweep's folder, at a path or of that name in the runs folder, or a file of its results.

    Raises:
        RunError: neither is one; the nearest name there is suggested.
    """
    places = (Path(text), Path(runs_dir) / text)
    if places[0].suffix == ".toml":
        raise RunError(
            f"RUNS: {text} is a config; ltr report takes the folder of a sweep, such as {runs_dir}/{places[0].stem}"
        )
    for path in places:
        if path.is_file() or (path / INDEX).exists():
            return path
    for path in places:
        if RunFolder(path).begun:
            raise RunError(f"RUNS: {path} is one run, whose table `ltr show {path}` prints; ltr report takes sweeps")
    known = sorted(path.parent.name for path in Path(runs_dir).glob(f"*/{INDEX}"))
    near = difflib.get_close_matches(text, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}" if known else ""
    raise RunError(f"RUNS: no sweep at {text} or {places[1]}{hint}")


def build_page(results: SweepResults, *, title: str | None = None, reference: Reference | None = None) -> Page:
    """The report of a sweep.

    Args:
        results: of the sweep.
        title: of the report; made of the sweep's name when left out.
        reference: published values to set beside.

    Raises:
        RunError: a sweep without a result.
    """
    if not results.records:
        raise RunError(f"sweep {results.name}: no cell is finished yet; `ltr sweep CONFIG` computes them")
    evidence = Evidence(results)
    sections = [
        *value_sections(evidence),
        exact_section(evidence),
        *([] if reference is None else [reference_section(evidence, reference)]),
        *findings(evidence),
        *pictures(evidence),
        time_section(evidence),
        Section("Data and origin", [data_table(results), *_origin(results)]),
    ]
    heading = literal(f"Results of the sweep {results.name}" if title is None else title)
    return Page(heading, _summary(evidence), [section for section in sections if section.blocks])


def _summary(evidence: Evidence) -> list[Block]:
    results = evidence.results
    done, planned = progress(results)
    data = len({record["data"] for record in results.records})
    splits = len({record["split"] for record in results.records})
    cells = f"All {done} cells are finished" if done == planned else f"**{done} of {planned} cells are finished**"
    text = (
        f"{cells}: methods on {counted(data, 'data set')} and {counted(splits, 'split')}. The exact stage maximises "
        f"`{evidence.statistic}`, in which all methods are compared."
    )
    waiting = [table.heading for table in evidence.tables if not table.rows]
    texts = [text, *headline(evidence), *([f"Not begun: {'; '.join(map(literal, waiting))}."] if waiting else [])]
    return [Text(text) for text in texts]


def _origin(results: SweepResults) -> Iterator[Text]:
    versions = results.origin.get("versions") or {}
    listed = [f"{name} {version}" for name, version in versions.items()]
    commit = results.origin.get("git_commit")
    if commit:
        changed = ", with changes" if results.origin.get("git_dirty") else ""
        listed.append(f"commit {commit[:12]}{changed}")
    if listed:
        python = results.origin.get("python")
        yield Text(literal(f"Begun with {', '.join([*([f'Python {python}'] if python else []), *listed])}."))


def write_report(
    results: SweepResults,
    folder: Path,
    *,
    title: str | None = None,
    reference: Reference | None = None,
    markdown: Path | None = None,
) -> Written:
    """Write the report of a sweep.

    Args:
        results: of the sweep.
        folder: where to write; made when missing.
        title: of the report.
        reference: published values to set beside.
        markdown: another place for the Markdown, whose links lead to the pictures in `folder`.

    Raises:
        RunError: a sweep without a result, a place that cannot be written to.
    """
    page = build_page(results, title=title, reference=reference)
    written = Written(
        folder / "report.md", folder / "report.html", folder / "figures", folder / "cells.jsonl", markdown
    )
    names = file_names(page)
    images = {picture: png(picture) for picture in names}
    with writing(folder):
        written.figures.mkdir(parents=True, exist_ok=True)
        for place in (folder, written.figures):
            remove_leftovers(place, ".*.tmp")
        _write_pictures(written.figures, {name: images[picture] for picture, name in names.items()})
        write_atomic(written.html, to_html(page, images).encode())
        write_export(written.export, results)
    for path in (written.markdown, *([] if markdown is None else [markdown])):
        with writing(path):
            write_atomic(path, to_markdown(page, _links(names, written.figures, path)).encode())
    return written


_PICTURES = ".pictures.json"
"""The file in a report's folder with the names and hashes of its pictures."""


def _write_pictures(folder: Path, images: Mapping[str, bytes]) -> None:
    """Write the pictures of a report, and remove those of an earlier one that are not made any more.

    A file that no report wrote, or that was changed since, is left alone.
    """
    known = folder.parent / _PICTURES
    try:
        before = json.loads(known.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        before = {}
    for name, digest in before.items() if isinstance(before, dict) else ():
        old = folder / name
        ours = name not in images and old.parent == folder and not old.is_symlink() and old.is_file()
        if ours and hashlib.sha256(old.read_bytes()).hexdigest() == digest:
            old.unlink()
    for name, image in images.items():
        write_atomic(folder / name, image)
    write_json(known, {name: hashlib.sha256(image).hexdigest() for name, image in images.items()})


def _links(names: Mapping[Picture, str], figures: Path, path: Path) -> dict[Picture, str]:
    """The pictures as seen from a file."""
    way = Path(os.path.relpath(figures.resolve(), path.resolve().parent)).as_posix()
    return {picture: quote(f"{way}/{name}") for picture, name in names.items()}


def file_names(page: Page) -> dict[Picture, str]:
    """File names of all pictures, plain and each another."""
    names: dict[Picture, str] = {}
    for picture in page.pictures:
        plain = "".join(c if c.isalnum() or c in "-_.+=" else "_" for c in picture.name).lstrip(".") or "picture"
        name, number = plain, 1
        while f"{name}.png" in names.values():
            number += 1
            name = f"{plain}_{number}"
        names[picture] = f"{name}.png"
    return names


def png(picture: Picture) -> bytes:
    """A picture as PNG."""
    buffer = io.BytesIO()
    # without the version of matplotlib, so that the same figure is the same file
    picture.figure.savefig(buffer, format="png", dpi=_DPI, facecolor="white", metadata={"Software": None})
    return buffer.getvalue()
