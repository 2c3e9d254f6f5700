"""What the subcommands of ``ltr`` do.

The docstring of each is what ``--help`` shows. It returns its exit code, or None for 0. Before `_load` it checks what
can be checked without modules that take seconds to import.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import importlib
import json
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trainers.files import RunError, remove_leftovers, write_atomic, writing
from trainers.stopping import StopFlag, complain

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ltr.data import Roles
    from trainers.config import Config
    from trainers.display import Display
    from trainers.run.folder import RunFolder
    from trainers.run.results import Results

_Options = TypeVar("_Options")
_Table = TypeVar("_Table")
# libraries that reading data imports late: Ctrl-C is best handled between imports
_DATA = ("pandas", "sklearn.datasets")
_FITTING = (*_DATA, "sklearn.linear_model", "trainers.display")


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment of a config file, or continue it.

    It trains the surrogates and baselines, runs the exact stage and prints the table. The same command continues an
    unfinished run. Any key of the config can be set; ltr options lists them.
    """
    from trainers.config import load_config
    from trainers.task.options import read_at_once

    config = load_config(arguments.config, arguments.overrides)
    config.data.check_files([config.answer.new])
    if arguments.dry_run and arguments.json:
        raise RunError("--json: does not go with --dry-run, which describes what would be computed in words")
    with _waiting(arguments, "reading the data"):
        source = read_at_once(config)
    _load(arguments, "trainers.run.experiment", *_FITTING)

    if arguments.dry_run:
        from trainers.preview import preview_run

        _print(preview_run(config, source, fresh=arguments.fresh))
        return 0
    from trainers.ranking_files import HTML
    from trainers.run.experiment import run_experiment

    with _display(arguments) as display:
        results = run_experiment(config, fresh=arguments.fresh, display=display, source=source)
    if arguments.json:
        _print_json(results.to_dict())
    elif results.rows:
        _print_table(results)
    page = f"page in {config.folder / HTML}; " if results.answer else ""
    _say(arguments, f"results in {config.folder}; {page}curves: tensorboard --logdir {config.runs_dir}")
    return 0 if results.complete else _interrupted(arguments, config.folder)


def rank(arguments: argparse.Namespace) -> None:
    """Rank the rows of a table: which to visit, how many hits to expect, and why.

    It says how many hits to expect in the first K rows, and why each row is listed; a hit is a row with a positive
    label. TABLE needs --label and --visits. Several methods are compared on rows held out and blended. Ranked are the
    rows of --new, else the rows of TABLE without a label, else its labelled rows, each by models trained without it.
    The page is printed, and written to a folder: page.html, page.json, list.csv, the fitted ranker, and config.toml,
    which repeats it. Give that folder in place of TABLE to rank other rows by the same ranker.
    """
    from trainers.config import load_config
    from trainers.ranking import read_given
    from trainers.ranking_files import CONFIG, check_folder
    from trainers.run.folder import PAGE

    given = _keys_given(arguments)
    if arguments.new is not None:
        given["answer.new"] = str(arguments.new.absolute())
    visits: int | None = given.get("answer.visits")
    output: Path | None = arguments.output
    if earlier := (arguments.table / PAGE).is_file():
        config = load_config(arguments.table / CONFIG)
        _check_earlier_page(arguments, config, given)
    else:
        config = _config_to_rank(arguments, given)
        output = output or Path(config.runs_dir) / f"{config.name}-rank"
        table = _read(arguments, read_given, config)
    if output is not None:
        check_folder(output)
    _load(arguments, "trainers.ranking", *_FITTING)

    from rich.console import Console

    from ltr.answer import as_text
    from trainers.ranking import rank_given
    from trainers.ranking_files import Ranking, read_answer

    ranking, note = None, _noting(arguments)
    if not earlier:
        with _display(arguments) as display:
            ranking = rank_given(table, display)
    elif arguments.new is not None or visits is not None:
        rows = arguments.new or config.answer.new or config.data.path
        ranking = Ranking.load(arguments.table).rank(rows, visits, new_values="answer.new_values" in given)
    answer = read_answer(arguments.table) if ranking is None else ranking.answer
    if ranking is not None and output is not None:
        ranking.save(output, note=note)
    if arguments.json:
        _print_json(answer.to_dict())
    else:
        width = min(Console().width, 100) if sys.stdout.isatty() else 80
        where = arguments.table if ranking is None else output
        text = as_text(answer, width, more="" if where is None else str(where / "list.csv"))
        encoding = sys.stdout.encoding or "utf-8"  # not all of a table's own words can be shown everywhere
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    if ranking is not None and output is not None:
        again = f"ltr rank {output / 'config.toml'}"
        note(f"page in {output / 'page.html'}, all rows in {output / 'list.csv'}; again: {again}")


def _keys_given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the keys of a config that options of the command line set."""
    keys = {key: value for key, value in vars(arguments).items() if "." in key or key == "seed"}
    return {key: value for key, value in keys.items() if value is not None and value != []}


def _check_earlier_page(arguments: argparse.Namespace, config: Config, given: dict[str, Any]) -> None:
    """Refuse options that do not go with an earlier page, which has a fitted ranker."""
    from ltr.data import DataError
    from trainers.run.folder import RunFolder

    folder: Path = arguments.table
    if given.keys() - {"answer.new", "answer.visits", "answer.new_values", "seed"}:
        raise DataError(f"{folder}: has a fitted ranker, which goes with --new, --visits and --new-values only")
    visits = given.get("answer.visits")
    if arguments.output is not None and arguments.new is None and visits is None:
        raise DataError(f"--output: goes with --new or --visits, for the page of {folder} is written already")
    if visits is not None and arguments.new is None and config.answer.new is None:
        file = folder / "config.toml"
        again = f"ltr run {file} answer.visits={visits}"
        if not RunFolder(folder).begun:
            again = f"ltr rank {file} --visits {visits}"
        rule = "was made without new rows, and its ranker has learned from the labelled ones"
        raise DataError(f"{folder}: {rule}: give rows by --new, or make the page again: {again}")


def _config_to_rank(arguments: argparse.Namespace, given: dict[str, Any]) -> Config:
    """Return the config of a table, or of a config file, with what is given beside it."""
    from ltr.data import DataError
    from ltr.files import missing_file
    from trainers.config import config_tree, parse_config
    from trainers.config.toml_text import merged, unflat
    from trainers.ranking import checked_name

    table: Path = arguments.table
    if "data.label" not in given and table.suffix != ".toml" and not table.is_file():
        raise DataError(f"{table}: {'is a folder without a page' if table.is_dir() else missing_file(table)}")
    if table.suffix == ".toml":
        tree = merged(config_tree(table), unflat(given))
    else:
        tree = {"name": checked_name(table.stem), **unflat({"data.path": str(table.absolute()), **given})}
    config = parse_config(tree, arguments.overrides, source="ltr rank")
    config.data.check_files([config.answer.new])
    return config


def _read(arguments: argparse.Namespace, read: Callable[[_Options], _Table], options: _Options) -> _Table:
    """Read a table; what keeps it from being used is said with arguments of the command that solve it."""
    from ltr.data import DataError, TableError

    try:
        with _waiting(arguments, "reading the data"):
            return read(options)
    except TableError as error:
        raise DataError(error.for_command()) from None


def sweep(arguments: argparse.Namespace) -> int:
    """Compute the missing results of a sweep.

    A sweep is many experiments: data sets, splits, methods and options. Each result is a file, computed once; the same
    command continues an unfinished sweep.
    """
    from trainers.config.grids import load_sweep
    from trainers.sweep.runner import read_sources, run_sweep

    loaded = load_sweep(arguments.config, arguments.overrides)
    with _waiting(arguments, "reading the data"):
        sources = read_sources(loaded, only_quick=True)
    _load(arguments, "trainers.sweep.workers", *_DATA, "trainers.display")

    if arguments.dry_run:
        from trainers.preview import preview_sweep

        _print(preview_sweep(loaded, sources, arguments.shard))
        return 0
    how = {"jobs": arguments.jobs, "threads": arguments.threads, "shard": arguments.shard, "known": arguments.known}
    with _display(arguments) as display:
        try:
            outcome = run_sweep(loaded, sources=sources, display=display, **how)
        except KeyboardInterrupt:
            return _interrupted(arguments, loaded.config.folder)
    failed = len(outcome.failures)
    done = outcome.cells - outcome.before - failed
    earlier = f", {outcome.before} finished earlier" if outcome.before else ""
    _say(arguments, f"{done} results computed{earlier}; ltr report {outcome.folder} makes tables and figures of them")
    for failure in outcome.failures:
        complain(f"error: {failure}")
    return 2 if failed else 0


def tune(arguments: argparse.Namespace) -> int:
    """Search for the best options of an experiment.

    The section [tune] of the config has ranges of keys. Each trial is measured on parts of the training set; the best
    options are then fitted on all of it, and written as a config. The same command continues a search, also with more
    trials.
    """
    from trainers.config.tuning import load_tuning
    from trainers.task.options import read_at_once

    given = load_tuning(Path(arguments.config), arguments.overrides)
    given.config.data.check_files()
    with _waiting(arguments, "reading the data"):
        source = read_at_once(given.config)
    _load(arguments, "trainers.tuning", *_FITTING)

    from rich.text import Text

    from trainers.report.page import plain_text
    from trainers.tables import stacked_tables
    from trainers.tuning import run_tuning

    folder = Path(given.config.runs_dir) / f"{given.config.name}-tune"
    with _display(arguments) as display:
        tuning = run_tuning(given, folder, source=source, fresh=arguments.fresh, display=display)
    stdout = _stdout()
    shown = stacked_tables(tuning.table(10), f"search {tuning.name}", stdout.width)
    _print(shown if len(tuning.trials) else ())
    stdout.print(Text(plain_text(tuning.answer)), soft_wrap=True)
    if tuning.results is not None:
        _print_table(tuning.results)
        trials = folder / "trials.csv"
        _say(arguments, f"best options in {tuning.config}, which ltr run takes; all trials in {trials}")
    return 0 if tuning.complete else _interrupted(arguments, folder)


def _interrupted(arguments: argparse.Namespace, folder: Path) -> int:
    """Say how to go on with what was interrupted, and return the exit code."""
    without = " without --fresh" if getattr(arguments, "fresh", False) else ""
    complain(f"interrupted; what is finished is kept in {folder}: the same command{without} goes on")
    return 130


def report(arguments: argparse.Namespace) -> None:
    """Make tables and figures of a sweep or run, finished or not.

    It writes report.md and report.html (one file with everything in it); of a sweep also figures/ and cells.jsonl (all
    results in one file, for further reports and sweeps).
    """
    from trainers.records import is_sweep, read_sweep
    from trainers.run.folder import PAGE, RunFolder, find_reported

    found = find_reported(arguments.runs)
    results = read_sweep(found) if is_sweep(found) else None
    _load(arguments, "trainers.report.report")

    from trainers.ranking_files import read_answer
    from trainers.report.report import write_report

    folder = arguments.output or (found.parent if found.is_file() else found) / "report"
    answer = read_answer(found) if results is None and (found / PAGE).exists() else None
    written = write_report(_results_of(RunFolder(found)) if results is None else results, folder, answer=answer)
    for path in written:
        sys.stdout.write(f"{path}\n")


def show(arguments: argparse.Namespace) -> None:
    """Print a run's table."""
    found = _find_run(arguments)
    _load(arguments, "trainers.run.results")

    results = _results_of(found)
    if arguments.json:
        _print_json(results.to_dict())
    else:
        _print_table(results)


def _find_run(arguments: argparse.Namespace) -> RunFolder:
    """Return the folder of a run, or for `ltr outcome` of a page, for rows that are there."""
    from ltr.data import DataError
    from ltr.files import missing_file, parquet_files
    from trainers.run.folder import find_run

    data = getattr(arguments, "data", None)
    if data is not None and not data.is_file() and not parquet_files(data):
        raise DataError(f"{data}: {missing_file(data)}")
    return find_run(arguments.run, page=arguments.command == "outcome")


def _results_of(folder: RunFolder) -> Results:
    from trainers.run.results import read_results

    results = read_results(folder)
    if results is None or not results.rows:
        raise RunError(f"run: {folder.path} has no results yet; continue with `ltr run {folder.config}`")
    return results


def predict(arguments: argparse.Namespace) -> None:
    """Rank new, unlabelled rows with a run.

    The rows come from a table or sparse file. Feature columns are found by name; other columns are kept. The output is
    CSV from the top of the list down, with position (1 is the top), score, and the stage that placed the row; query by
    query where the run's data had queries.
    """
    from trainers.run.predict import predict_csv, read_rows_for

    folder = _find_run(arguments)
    rows = read_rows_for(folder, arguments.data, arguments.method, card=True, new_values=arguments.new_values)
    _load(arguments, "trainers.run.methods", *_DATA)

    for note in rows.notes:
        _noting(arguments)(note)
    _write_csv(predict_csv(rows), arguments.output)


def outcome(arguments: argparse.Namespace) -> None:
    """Compare what was promised of new rows with what came.

    The rows have the columns of the run's table, and one that says what came; they are ranked again. Printed are the
    hits that were promised of the first rows, with an interval, those that came, and the statistics of the test set and
    of these rows. The folder of ltr rank can stand in place of a run.
    """
    run = _find_run(arguments)
    _load(arguments, "trainers.run.outcome", *_DATA)

    from trainers.run.outcome import methods_of, outcomes

    methods = methods_of(run, arguments.method, every=arguments.all)
    how = {name: getattr(arguments, name) for name in ("label", "first", "new_values")}
    found = outcomes(run, arguments.data, methods, **how, note=_noting(arguments))
    if arguments.json:
        _print_json([one.to_dict() for one in found])
    else:
        sys.stdout.write("\n\n".join(one.to_markdown() for one in found) + "\n")


def explain(arguments: argparse.Namespace) -> None:
    """Say why rows stand where a run's ranker puts them.

    For a row: what each column adds to its score, and which columns put it above or below its neighbours on the list. A
    linear ranker adds weight times the value's difference to the training mean.
    """
    from trainers.run.predict import chosen_rows, explain_rows, note_of, read_rows_for, table_of, to_objects

    folder = _find_run(arguments)
    read = read_rows_for(folder, arguments.data, arguments.method, card=False, new_values=arguments.new_values)
    _load(arguments, "trainers.run.methods", *_DATA)

    from trainers.run.proofs import ranges_of_rows

    for note in read.notes:
        _noting(arguments)(note)
    explanation = explain_rows(read)
    rows = chosen_rows(explanation, arguments.row)
    ranges, listed = ranges_of_rows(folder, arguments.method, read, rows)
    if arguments.json:
        _print_json(to_objects(explanation, rows, ranges, listed))
        return
    console = _stdout()
    for row in rows:
        console.print(table_of(explanation, row))
        if ranges is not None and row in listed:
            console.print(f"{ranges.of_row(row)}\n", highlight=False, markup=False)
    if ranges is not None:
        console.print(" ".join(ranges.sentences), highlight=False, markup=False)
    if note := note_of(explanation):
        _noting(arguments)(note)


def _write_csv(rows: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(rows)
        return
    with writing(output, "--output"):
        remove_leftovers(output.parent, f".{glob.escape(output.name)}.*.tmp")
        write_atomic(output, rows.encode())


def export(arguments: argparse.Namespace) -> None:
    """Write a run's ranker as an ONNX model.

    Any language with a runtime for ONNX can then score raw rows: missing values are filled in and texts become features
    inside the model. It prints what the inputs hold. It needs pip install 'rankproof[onnx]'.
    """
    from trainers.run.predict import export_run, method_of

    run = _find_run(arguments)
    method = method_of(run, arguments.method)
    _load(arguments, "trainers.run.methods")
    sys.stdout.write(f"{export_run(run, arguments.output, method=method)}\n")


def _roles(arguments: argparse.Namespace) -> Roles:
    from ltr.data import Roles

    return Roles(**{key.removeprefix("data."): value for key, value in _keys_given(arguments).items()})


def check(arguments: argparse.Namespace) -> int:
    """Print what a table holds.

    Each column with its kind, its missing values and what becomes of it; then everything that keeps the table from
    being used, with the line of a config that solves it.
    """
    _load(arguments, "trainers.own_table", "pandas")

    from trainers.config import load_config
    from trainers.own_table import check_table, rich_check

    if arguments.table.suffix == ".toml":
        data = load_config(arguments.table).data
        if data.path is None:
            raise RunError(f"{arguments.table}: takes the data set {data.name}, no table")
        checked = check_table(Path(data.path), data.roles, data.reading)
    else:
        checked = check_table(arguments.table, _roles(arguments))
    if arguments.json:
        _print_json(checked.to_dict())
    else:
        _print(rich_check(checked))
    if checked.error is not None:
        complain(f"error: {checked.error}")
    return 0 if checked.error is None else 2


def init(arguments: argparse.Namespace) -> None:
    """Write a config for a table.

    The config is a start: it has the label, columns that cannot be used, and the keys that matter most.
    """
    _load(arguments, "trainers.own_table", "pandas")

    from trainers.own_table import open_keys, write_config

    output, checked = write_config(arguments.table, _roles(arguments), arguments.output, force=arguments.force)
    if checked.table.roles.label is None:
        next_step = "fill in its label, then"
    elif undecided := [] if checked.error is None else open_keys(checked.error):
        next_step = f"decide about {' and '.join(undecided)} in it, then"
    else:
        next_step = "next"
    sys.stdout.write(f"wrote {output}; {next_step}: ltr run {output}\n")
    if checked.error is not None:
        complain(f"the config solves what it can of this: {checked.error.problems_text}")


def card(arguments: argparse.Namespace) -> None:
    """Find a scoring system for a table, proven to rank best.

    A card is a few yes/no questions about the columns of a table, with points to add up. Columns may hold numbers,
    texts and missing values. The card is printed; with -o it is also written as card.json, card.csv, card.md, card.html
    and card.png, with its proof in certificate.json and the rows of the table in ranked.csv. The section [card] of a
    config does the same with all options: ltr run.
    """
    from trainers.config import parse_config
    from trainers.config.toml_text import merged, unflat
    from trainers.task.raw import read_labelled

    given = {"name": "card", "data.path": str(arguments.table), **_keys_given(arguments)}
    named = "auc" if "data.treatment" not in given else "auuc"
    given.setdefault("card.statistic", named if "data.time_to_event" not in given else "c_index")
    nothing_else = {"surrogate": {"losses": []}, "baselines": {"methods": []}, "exact": {"enabled": False}}
    config = parse_config(merged(nothing_else, unflat(given)), arguments.overrides, source="ltr card")
    config.data.check_files()
    table = _read(arguments, read_labelled, config.data)
    _load(arguments, "trainers.cards", *_DATA)

    from trainers.cards import card_of_table, write_card

    note = _noting(arguments)
    found, listed, notes = card_of_table(config, arguments.test, table)
    if arguments.json:
        _print_json(found.card.to_dict())
    else:
        sys.stdout.write(f"{found.card}\n")
    for text in notes:
        note(text)
    if arguments.output is not None:
        with writing(arguments.output, "--output"):
            arguments.output.mkdir(parents=True, exist_ok=True)
            write_card(found.card, found.ranker, arguments.output, listed)
        note(f"card and ranked rows are in {arguments.output}; ltr score applies the card to other rows")


def score(arguments: argparse.Namespace) -> None:
    """Apply a card to the rows of a table.

    The output is CSV: the total of each row and its points by question, then the row itself.
    """
    _load(arguments, "trainers.cards", "pandas")

    from trainers.cards import score_csv

    _write_csv(score_csv(arguments.card, arguments.rows, missing=arguments.missing), arguments.output)


def evaluate(arguments: argparse.Namespace) -> None:
    """Measure a run of trec_eval's format against judgements.

    Values agree with trec_eval's: documents are ordered by score, then by name, and those without a judgement are not
    relevant.
    """
    from ltr.data import judged_lists

    lists = judged_lists(arguments.run, arguments.qrels, complete=arguments.complete)
    _load(arguments, "trainers.evaluation", "pandas")

    from trainers.evaluation import DEFAULT, evaluate_run

    names = arguments.measure or DEFAULT
    found = evaluate_run(lists, names, level=arguments.level)
    if "ndcg" in names:
        complain("ndcg has the gain 2^label - 1; trec_eval's ndcg, with the label as its gain, is 'ndcg(gain=linear)'")
    write = found.json if arguments.json else found.text
    sys.stdout.write(write(per_query=arguments.per_query))


def verify(arguments: argparse.Namespace) -> int:
    """Check a certificate.

    A certificate says what value some weights achieve, and may prove a bound that no weights exceed; both are checked
    in exact arithmetic. python ltr/verify does the same where nothing but Python is installed.
    """
    if Path(arguments.file).is_dir():
        raise RunError(f"{arguments.file}: is a folder; give the certificate.json in it, of a method or card")
    _load(arguments, "ltr.verify")

    from ltr import verify

    options = [f"--{name.replace('_', '-')}" for name in ("require_proof", "json") if getattr(arguments, name)]
    valued = ((name, getattr(arguments, name)) for name in ("data", "max_size", "max_steps"))
    options += [f"--{name.replace('_', '-')}={value}" for name, value in valued if value is not None]
    return verify.main([*options, "--", arguments.file])


def options(arguments: argparse.Namespace) -> None:
    """List the keys of a config.

    Keys of an experiment come first, then those of a sweep and of a search, each with its default and meaning. With
    sections or keys it lists only these.
    """
    _load(arguments, "trainers.config.grids")

    from rich.text import Text

    from trainers.config.grids import keys_of
    from trainers.tables import folded_table

    for title, rows in keys_of(arguments.keys).items():
        heading = [Text(f"\n{title}", style="italic")] if title else []
        _print([*heading, folded_table(("key", "default", "meaning"), rows, whole=("key",))])


def completion(arguments: argparse.Namespace) -> None:
    """Print what makes a shell complete commands, files, runs and keys.

    For bash add eval "$(ltr completion bash)" to ~/.bashrc, for zsh eval "$(ltr completion zsh)" to ~/.zshrc after
    compinit; for fish write ltr completion fish to ~/.config/fish/completions/ltr.fish.
    """
    _load(arguments, "argcomplete.shell_integration")

    from argcomplete.shell_integration import shellcode

    sys.stdout.write(shellcode(["ltr"], shell=arguments.shell))


def _load(arguments: argparse.Namespace, *modules: str) -> None:
    """Import modules that take seconds; Ctrl-C waits until they are in, because libraries make other errors of it."""
    with StopFlag() as stop, _waiting(arguments, "loading libraries"):
        for module in modules:
            importlib.import_module(module)
    stop.check()


@contextlib.contextmanager
def _waiting(arguments: argparse.Namespace, what: str) -> Iterator[None]:
    """Return a context that says what the user of a long command waits for, unless it ends within a moment."""
    timer = threading.Timer(1.5, complain, [f"{what} ..."])
    timer.daemon = True
    if arguments.command in ("run", "rank", "sweep", "tune") and not arguments.quiet:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _noting(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Return what shows a note: nothing does under ``--quiet``."""
    return (lambda text: None) if arguments.quiet else complain


def _print_json(content: object) -> None:
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _print(parts: Iterable[RenderableType]) -> None:
    console = _stdout()
    for part in parts:
        console.print(part, highlight=False)


def _print_table(results: Results) -> None:
    from trainers.run.results import rich_tables

    _print(rich_tables(results, _stdout().width))


def _stdout() -> Console:
    """Return a console on stdout that does not fold tables in pipes and files."""
    from rich.console import Console

    class Stdout(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich's own ends in exit code 1

    return Stdout(width=None if sys.stdout.isatty() else 200)


def _display(arguments: argparse.Namespace) -> Display:
    """Return what shows progress on stderr, unless under ``--quiet``."""
    from rich.console import Console

    from trainers.display import Display

    return Display(None if arguments.quiet else Console(stderr=True))


def _say(arguments: argparse.Namespace, text: str) -> None:
    """Say where results are, unless under ``--quiet``."""
    if not arguments.quiet:
        sys.stderr.write(f"{text}\n")
