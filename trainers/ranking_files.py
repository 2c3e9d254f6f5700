"""A ranking and its folder: the page, the list, the fitted ranker and the config that repeats it.

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
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ltr.checks import doubles
from ltr.data.table_files import FRAME
from ltr.weight_constraints import CONSTRAINTS
from trainers.config import Config, load_config
from trainers.config.toml_text import dump_toml
from trainers.files import RunError, csv_text, read_json, reading, remove_leftovers, write_atomic, write_json, writing
from trainers.run.folder import PAGE, RunFolder

if TYPE_CHECKING:
    import pandas as pd

    from ltr.answer import Answer, Evidence, Rows
    from ltr.rankers import AutoRanker, Ranker

FloatArray = NDArray[np.float64]

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


@dataclass(eq=False, repr=False)
class Ranking:
    """A ranked list: its page, its rows, and the fitted ranker, which ranks further tables as they are.

    Examples:
        >>> import pandas as pd, ltr
        >>> rng = np.random.default_rng(0)
        >>> table = pd.DataFrame({"age": rng.integers(20, 90, 300).astype(float), "visits": rng.poisson(2.0, 300)})
        >>> table["ill"] = np.where(rng.random(300) < table["visits"] / 8, "yes", "no")
        >>> ranking = ltr.rank(table[:200], label="ill", visits=10, new=table[200:], methods=["logistic"])
        >>> ranking.answer.visits, len(ranking.ranked)
        (10, 100)
        >>> ranking.rank(table[250:]).answer.rows
        50
    """

    answer: Answer  # the page as plain data
    ranker: Ranker  # the fitted ranker, which takes frames of raw columns
    evidence: Evidence  # the labelled rows, with scores of fits that have not seen them
    config: Config  # the config that repeats it
    _ranked: tuple[Rows, FloatArray] | None = None  # the rows, their scores; None after `load`
    _free: tuple[AutoRanker, Evidence] | None = None  # what the price of constraints comes from; None after `load`

    def __repr__(self) -> str:
        from ltr.answer import as_text

        return as_text(self.answer).rstrip()

    def _repr_html_(self) -> str:
        from ltr.answer import as_html

        return as_html(self.answer, whole=False, more="ranked")

    @cached_property
    def ranked(self) -> pd.DataFrame:
        """All rows from the top of the list down: position, id, chance, score, row in the file, query, reasons."""
        import pandas as pd

        from ltr.answer.evidence import place_in_list

        rows, scores = self._known()
        lists = None if rows.queries is None else pd.factorize(rows.queries)[0]
        places = place_in_list(scores, lists)
        reasons = {entry.row: "; ".join(map(str, entry.reasons)) for entry in self.answer.entries}
        found: dict[str, Any] = {} if rows.queries is None else {"query": rows.queries}
        found |= {"position": places, "id": rows.names, "chance": self.evidence.calibration(scores)}
        found["reasons"] = [reasons.get(row, "") for row in rows.numbers.tolist()]
        found |= {"row": rows.numbers, "score": scores}
        index = rows.given.own().index[rows.numbers - 1] if rows.given.where == FRAME else rows.numbers
        order = np.lexsort((places,) if lists is None else (places, lists))
        return pd.DataFrame(found, index=pd.Index(index)).iloc[order]

    def rank(
        self,
        data: Any,  # noqa: ANN401 (a frame of any library)
        visits: int | None = None,
        *,
        new_values: bool = False,
    ) -> Ranking:
        """Return the ranking of other rows by the same fitted ranker.

        Args:
            data: a pandas or polars frame with the columns of the table as they are, or the path of a file.
            visits: number of rows to visit; as before by default.
            new_values: whether most rows may have texts in a column that no labelled row had.
        """
        from trainers.ranking import NEW, encodings_of_ranker, new_rows, ranking_of
        from trainers.task.data import as_pandas

        plain = {one.column for one in encodings_of_ranker(self.ranker) if one.plain}
        raw = new_rows(self.config, str(data) if isinstance(data, str | Path) else as_pandas(data, NEW), plain)
        options = self.config.answer
        given = {"visits": self.answer.asked if visits is None else visits}
        given |= {"new_values": options.new_values or new_values}
        options = type(options).model_validate({**options.model_dump(), **given})
        config = self.config.model_copy(update={"answer": options})
        return ranking_of(config, self.ranker, self.evidence, self.answer.learned, raw, free=self._free)

    def why(self, row: object) -> pd.DataFrame:
        """Return what puts the row with an id where it is: each column, with the chance if its cell were typical.

        The frame has the strongest reason first: the ``value``, what is ``typical``, the ``chance`` of the row and that
        ``if typical``. A KeyError says that no row, or more than one, has this id.
        """
        rows, _ = self._known()
        at = [number for number, name in enumerate(rows.names) if name == str(row)]
        if len(at) != 1:
            have = ", ".join(rows.names[:5]) + (", ..." if len(rows.names) > 5 else "")
            raise KeyError(f"id must be that of one row, got {row!r}, which {len(at)} rows have; ids are {have}")
        return self.why_row(at[0])

    def why_row(self, at: int) -> pd.DataFrame:
        """Return what `why` does of the row with a number, from 0."""
        import pandas as pd

        from ltr.answer import cell_text, effects, scorer_of

        rows, scores = self._known()
        typical = self.answer.learned.typical
        features = doubles(rows.features[[at]])
        own = float(scores[at])
        position = self.ranked.loc[self.ranked["row"] == rows.numbers[at], "position"].iloc[0]
        top = position <= (getattr(self.ranker, "top_k", None) or position)
        effect = effects(features, typical, scorer_of(self.ranker, top=bool(top)))[0]
        chance = self.evidence.calibration
        order = np.argsort(-effect, kind="stable")
        columns = rows.columns
        return pd.DataFrame(
            {
                "value": [cell_text(columns[typical[one].column], at) for one in order],
                "typical": [typical[one].text for one in order],
                "chance": float(chance([own])[0]),
                "if typical": chance(own - effect[order]),
            },
            index=pd.Index([typical[one].column for one in order], name="column"),
        )

    def _known(self) -> tuple[Rows, FloatArray]:
        if self._ranked is None:
            raise RunError("a ranking that was read from a folder has no rows: rank(table) ranks some again")
        return self._ranked

    @property
    def rows(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The ranked rows, and all their columns as the table has them, both from the top of the list down."""
        return self.ranked, self._known()[0].given.own().iloc[self.ranked["row"].to_numpy() - 1]

    def save(self, folder: str | Path, *, note: Callable[[str], None] = lambda text: None) -> Path:
        """Write the page, the list, the ranker and the config that repeats all of it into a folder, and return it.

        An earlier page is written over. `note` is called with what could not be written.
        """
        folder = Path(folder)
        check_folder(folder)
        with writing(folder, "--output"):
            folder.mkdir(parents=True, exist_ok=True)
            remove_leftovers(folder, ".*.tmp")
            for name in _RANKERS:
                (folder / name).unlink(missing_ok=True)
            try:
                self.ranker.save(folder / f"ranker{self.ranker.file_suffix}")
            except TypeError as error:
                note(f"the ranker cannot be written, so that the folder ranks no other rows: {error}")
            write_atomic(folder / CONFIG, _config_text(self.config, folder).encode())
            self.write_page(folder)
        return folder

    def write_page(self, folder: Path) -> None:
        """Write the page, the list of a table, and the rows that chances come from."""
        from ltr.answer import as_html

        if self.ranker.preparation_ is not None:
            write_atomic(folder / LIST, self._list_csv().encode())
        write_atomic(folder / EVIDENCE, self.evidence.to_bytes())
        write_atomic(folder / HTML, as_html(self.answer).encode())
        write_json(folder / PAGE, self.answer.to_dict())

    def _list_csv(self) -> str:
        """Return all rows as CSV, from the top of the list down, the columns that name them before others."""
        (ranked, own), learned = self.rows, self.answer.learned
        first = [name for name in (learned.query, learned.id) if name in own]
        twice = {name for name in ("query", "id") if getattr(learned, name) in first}
        ours: dict[str, Any] = {name: ranked[name].tolist() for name in ranked if name not in twice}
        ours |= {"chance": [f"{chance:.4f}" for chance in ours["chance"]], "score": list(map(repr, ours["score"]))}
        names = [*first, *(name for name in own if name not in first)]
        return csv_text(ours, {str(name): own[name] for name in names}, range(len(ranked)))

    @classmethod
    def load(cls, folder: str | Path, method: str | None = None) -> Ranking:
        """Return the ranking that `save` wrote, or that of a run, without the rows of its list: it ranks further ones.

        A `method` of the run ranks in place of the one that its page is of.
        """
        folder = Path(folder)
        answer, ranker, evidence = read_answer(folder), read_ranker(folder, method), read_evidence(folder, method)
        if RunFolder(folder).begun:
            ranker.calibration_ = evidence.calibration
        return cls(answer, ranker, evidence, load_config(folder / CONFIG))


def _config_text(config: Config, folder: Path) -> str:
    """Return the config that repeats a ranking, with paths relative to a folder."""
    answer = config.answer.model_dump(exclude_defaults=True)
    data = config.data.model_dump(exclude_defaults=True)
    for section, key in ((data, "path"), (answer, "new")):
        if section.get(key) not in (None, FRAME):
            section[key] = os.path.relpath(Path(section[key]).absolute(), folder.absolute())
    data.setdefault("unlabelled", "drop")
    tree = {"name": config.name, "seed": config.seed, "data": data, "answer": answer}
    if auto := config.baselines.auto.model_dump(exclude_defaults=True):
        tree["baselines"] = {"auto": auto}
    if exact := config.exact.model_dump(exclude_defaults=True, include={*CONSTRAINTS, "demands"}):
        tree["exact"] = exact
    head = "# ltr rank gives the same page again; ltr run compares methods on a test set. ltr options lists all keys.\n"
    if config.data.path == FRAME:
        head += "# The table was a frame in memory: write it to a file and name that.\n"
    return f"{head}\n{dump_toml(tree)}"


def read_answer(folder: Path) -> Answer:
    """Return the page in a folder; a `RunError` says that there is none, or a damaged one."""
    from ltr.answer import Answer

    page = read_json(folder / PAGE, _ADVICE)
    if page is None:
        raise RunError(f"{folder}: has no page of ltr rank in it")
    with reading(folder / PAGE, _ADVICE):
        return Answer.from_dict(page)


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
