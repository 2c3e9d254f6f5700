"""The folder of a ranking: its page, its list, the fitted ranker and the config that repeats it.

The folder of a run has the page too, with the fitted ranker in the folder of its method (`trainers.run.folder`).

::

    runs/patients-rank/
      page.html      the page, one file without anything from elsewhere
      page.json      the same as data (`ltr.answer.Answer`)
      list.csv       all rows from the top down: position, chance, reasons, then the table's own columns
      ranker.json    the fitted ranker with its preparation (`ltr.rankers.Ranker.load`); with a network it is
                     ranker.safetensors
      evidence.npz   labels and out-of-fold scores of the labelled rows, from which the chances come
      config.toml    `ltr rank` takes it and gives the same page, `ltr run` compares methods on a test set
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ltr.data.table_files import FRAME
from ltr.weight_constraints import CONSTRAINTS
from trainers.config import Config, load_config
from trainers.config.toml_text import dump_toml
from trainers.files import RunError, csv_text, read_json, reading, remove_leftovers, write_atomic, write_json, writing
from trainers.run.folder import PAGE, RunFolder

if TYPE_CHECKING:
    from ltr.answer import Answer, Evidence
    from ltr.rankers import Ranker
    from trainers.ranking import Ranking

CONFIG, EVIDENCE, HTML, LIST = "config.toml", "evidence.npz", "page.html", "list.csv"
"""Names of files in the folder."""
_RANKERS = ("ranker.json", "ranker.safetensors")
_ADVICE = "give the command that wrote it again"


def check_folder(folder: Path) -> None:
    """Raise RunError where a folder holds other things than an earlier page."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"--output: {folder} is a file; give a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / PAGE).exists():
        raise RunError(f"--output: {folder} holds other files and no page of ltr rank; give another folder")


def write_ranking(ranking: Ranking, folder: Path, note: Callable[[str], None] = lambda text: None) -> Path:
    """Write a ranking into a folder, and return the folder; `note` is called with what could not be written."""
    check_folder(folder)
    with writing(folder, "--output"):
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, ".*.tmp")
        for name in _RANKERS:
            (folder / name).unlink(missing_ok=True)
        try:
            ranking.ranker.save(folder / f"ranker{ranking.ranker.file_suffix}")
        except TypeError as error:
            note(f"the ranker cannot be written, so that the folder ranks no other rows: {error}")
        write_atomic(folder / CONFIG, config_text(ranking.config, folder).encode())
        write_page(ranking, folder)
    return folder


def write_page(ranking: Ranking, folder: Path) -> None:
    """Write the page of a ranking, the list of a table, and the rows that chances come from."""
    from ltr.answer import as_html

    if ranking.ranker.preparation_ is not None:
        write_atomic(folder / LIST, list_csv(ranking).encode())
    write_atomic(folder / EVIDENCE, ranking.evidence.to_bytes())
    write_atomic(folder / HTML, as_html(ranking.answer).encode())
    write_json(folder / PAGE, ranking.answer.to_dict())


def list_csv(ranking: Ranking) -> str:
    """Return all rows of a ranking as CSV, from the top of the list down, the column that names them before others."""
    ranked, own = ranking.rows
    ours: dict[str, list[Any]] = {} if "query" not in ranked else {"query": ranked["query"].tolist()}
    ours["position"] = ranked["position"].tolist()
    if ranking.answer.learned.id is None or ranking.answer.learned.id not in own:
        ours["id"] = ranked["id"].tolist()
    ours["chance"] = [f"{chance:.4f}" for chance in ranked["chance"]]
    ours |= {"reasons": ranked["reasons"].tolist(), "row": ranked["row"].tolist()}
    ours["score"] = list(map(repr, ranked["score"].tolist()))
    if ranking.answer.learned.query in own:
        ours.pop("query", None)
    first = [name for name in (ranking.answer.learned.query, ranking.answer.learned.id) if name in own]
    names = [*first, *(name for name in own if name not in first)]
    cells = {str(name): own[name] for name in names}
    return csv_text(ours, cells, range(len(ranked)))


def config_text(config: Config, folder: Path) -> str:
    """Return the config that repeats a ranking, with paths relative to a folder."""
    answer = config.answer.model_dump(exclude_defaults=True)
    data = config.data.model_dump(exclude_defaults=True)
    for section, keys in ((data, ("path",)), (answer, ("new",))):
        for key in keys:
            if section.get(key) not in (None, FRAME):
                section[key] = os.path.relpath(Path(section[key]).absolute(), folder.absolute())
    data.setdefault("unlabelled", "drop")
    tree = {"name": config.name, "seed": config.seed, "data": data, "answer": answer}
    if auto := config.baselines.auto.model_dump(exclude_defaults=True):
        tree["baselines"] = {"auto": auto}
    if exact := config.exact.model_dump(exclude_defaults=True, include={*CONSTRAINTS, "demands"}):
        tree["exact"] = exact
    told = "# The table was a frame in memory: write it to a file and name that.\n"
    memory = told if config.data.path == FRAME else ""
    head = "# ltr rank gives the same page again; ltr run compares methods on a test set. ltr options lists all keys.\n"
    return f"{head}{memory}\n{dump_toml(tree)}"


def read_answer(folder: Path) -> Answer:
    """Return the page in a folder; a `RunError` says that there is none, or a damaged one."""
    from ltr.answer import Answer

    page = read_json(folder / PAGE, _ADVICE)
    if page is None:
        raise RunError(f"{folder}: has no page of ltr rank in it")
    with reading(folder / PAGE, _ADVICE):
        return Answer.from_dict(page)


def read_ranking(folder: Path, method: str | None = None) -> Ranking:
    """Return the ranking in the folder of a ranking or of a run, without the rows of its list.

    A `method` of the run ranks in place of the one that the page is of.
    """
    from trainers.ranking import Ranking

    answer, ranker, evidence = read_answer(folder), read_ranker(folder, method), read_evidence(folder, method)
    if RunFolder(folder).begun:
        ranker.calibration_ = evidence.calibration
    else:  # the ranker has learned it from these rows
        evidence = replace(evidence, known=ranker.calibration_)
    return Ranking(answer, ranker, evidence, load_config(folder / CONFIG))


def read_ranker(folder: Path, method: str | None = None) -> Ranker:
    """Return the fitted ranker of a ranking, or of a method of a run, which takes the columns of the table."""
    from ltr.rankers import Ranker
    from trainers.run.predict import ranker_of

    if (run := RunFolder(folder)).begun:
        return ranker_of(run, method, prepared=True)
    file = next(filter(Path.exists, map(folder.joinpath, _RANKERS)), folder / _RANKERS[0])
    with reading(file, _ADVICE):
        ranker = Ranker.load(file)
        if ranker.preparation_ is None:
            raise ValueError("no preparation")
    return ranker


def read_evidence(folder: Path, method: str | None = None) -> Evidence:
    """Return the labelled rows that the chances of a ranking, or of a finished method of a run, come from."""
    from ltr.answer import Evidence
    from trainers.run.methods import load_scores

    with reading(folder / EVIDENCE, _ADVICE):
        evidence = Evidence.read(folder / EVIDENCE)
    run = RunFolder(folder)
    if method is None or not run.begun:
        return evidence
    found = run.method(method, make=False)
    if found.result() is None or (scores := load_scores(found)) is None:
        raise RunError(f"run: {folder} has not finished {method}; continue with `ltr run {run.config}`")
    return replace(evidence, scores=scores.test[None])
