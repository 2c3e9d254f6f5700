"""What the subcommands of ``ltr`` do.

Each has a function that returns its exit code. A ``check_...`` function checks what can be checked before modules that
take seconds are imported, and returns what it has read.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.stopping import complain, folded

if TYPE_CHECKING:
    from rich.console import Console

    from ltr.data import JudgedLists, Roles, Table
    from trainers.config import Config
    from trainers.config.tuning import Tunable
    from trainers.preview import Parts
    from trainers.records import SweepResults
    from trainers.run.folder import RunFolder
    from trainers.run.results import Results
    from trainers.run.rows import Rows
    from trainers.sweep.checks import Loaded
    from trainers.task.data import Source


def check_run(arguments: argparse.Namespace) -> tuple[Config, Source | None]:
    """Return the config of an experiment, and its data if they are quick to read."""
    from trainers.config import load_config
    from trainers.task.options import read_at_once

    config = load_config(arguments.config, arguments.overrides)
    config.data.check_files([config.answer.new])
    return config, read_at_once(config)


def check_sweep(arguments: argparse.Namespace) -> Loaded:
    """Return the config of a sweep, and those of its data that are quick to read."""
    from trainers.sweep.checks import load_and_check

    return load_and_check(arguments.config, arguments.overrides)


def check_tune(arguments: argparse.Namespace) -> tuple[Tunable, Source | None]:
    """Return what is searched, and the data if they are quick to read."""
    from trainers.config.tuning import load_tuning
    from trainers.task.options import read_at_once

    given = load_tuning(Path(arguments.config), arguments.overrides)
    given.config.data.check_files()
    return given, read_at_once(given.config)


def check_card(arguments: argparse.Namespace) -> tuple[Config, Table]:
    """Return the options of a card as a config, and its table."""
    from ltr.data import DataError, TableError
    from trainers.config import parse_config
    from trainers.config.toml_text import apply_overrides
    from trainers.task.raw import read_labelled

    options: tuple[str, ...] = ("statistic", "max_questions", "points", "cuts", "one_per_feature", "time_limit")
    options += ("demands", "horizon")
    tree: dict[str, Any] = {"name": "card", "seed": arguments.seed, "surrogate": {"losses": []}}
    tree |= {"baselines": {"methods": []}, "exact": {"enabled": False}}
    columns = ("label", "positive", "drop", "time_to_event", "treatment")
    tree["data"] = {name: value for name in columns if (value := getattr(arguments, name)) is not None}
    tree["data"]["path"] = str(arguments.table)
    if arguments.statistic is None:
        named = "auc" if arguments.treatment is None else "auuc"
        arguments.statistic = named if arguments.time_to_event is None else "c_index"
    tree["card"] = {name: getattr(arguments, name) for name in options}
    tree, given, findings = apply_overrides(tree, arguments.overrides)
    config = parse_config(tree, source="ltr card", overrides=given, findings=findings)
    config.data.check_files()
    try:
        return config, read_labelled(config.data)
    except TableError as error:
        raise DataError(error.for_command()) from None


def check_rank(arguments: argparse.Namespace) -> Any:  # noqa: ANN401  (what `rank` takes)
    """Return what is to be ranked: a table, or the folder of an earlier page with its config."""
    from ltr.data import DataError, TableError
    from ltr.demands import DEMANDS
    from ltr.files import missing_file
    from trainers.config import load_config, parse_config
    from trainers.config.experiment import config_tree
    from trainers.config.toml_text import apply_overrides, make_absolute, merged, unflat
    from trainers.ranking import checked_name, read_given
    from trainers.ranking_files import CONFIG, check_folder
    from trainers.run.folder import PAGE, RunFolder

    table: Path = arguments.table
    keys = [f"data.{name}" for name in ("label", "positive", "query", "group", "weight", "time", "drop")]
    keys += [f"answer.{name}" for name in ("visits", "id", "new_values", "price")]
    keys += [f"exact.{name}" for name in (*DEMANDS, "demands")]
    keys += ["baselines.auto.today", "baselines.auto.methods", "seed"]
    given = {key: value for key in keys if (value := getattr(arguments, key.rpartition(".")[2])) not in (None, [])}
    if arguments.new is not None:
        given["answer.new"] = str(arguments.new.absolute())
    folder = table if (table / PAGE).is_file() else None
    if folder is not None:
        config = load_config(folder / CONFIG)
        if given.keys() - {"answer.new", "answer.visits", "answer.new_values", "seed"}:
            raise DataError(f"{folder}: has a fitted ranker, which goes with --new, --visits and --new-values only")
        if arguments.output is not None and arguments.new is None and arguments.visits is None:
            raise DataError(f"--output: goes with --new or --visits, for the page of {folder} is written already")
        if arguments.visits is not None and arguments.new is None and config.answer.new is None:
            visits, file = arguments.visits, folder / CONFIG
            run = RunFolder(folder).begun
            again = f"ltr run {file} answer.visits={visits}" if run else f"ltr rank {file} --visits {visits}"
            rule = "was made without new rows, and its ranker has learned from the labelled ones"
            raise DataError(f"{folder}: {rule}: give rows by --new, or make the page again: {again}")
        if arguments.output is not None:
            check_folder(arguments.output)
        return folder, config
    if arguments.label is None and table.suffix != ".toml" and not table.is_file():
        raise DataError(f"{table}: {'is a folder without a page' if table.is_dir() else missing_file(table)}")
    if table.suffix == ".toml":
        tree = merged(config_tree(table), unflat(given))
    else:
        tree = {"name": checked_name(table.stem), **unflat({"data.path": str(table.absolute()), **given})}
    tree, overridden, findings = apply_overrides(tree, arguments.overrides)
    make_absolute(tree.get("data"), Path())
    config = parse_config(tree, source="ltr rank", overrides=overridden, findings=findings)
    config.data.check_files([config.answer.new])
    check_folder(arguments.output or Path(config.runs_dir) / f"{config.name}-rank")
    try:
        return None, read_given(config)
    except TableError as error:
        raise DataError(error.for_command()) from None


def find_run(arguments: argparse.Namespace) -> RunFolder:
    """Return the folder of a run, or for `ltr outcome` of a page, for rows that are there."""
    from ltr.data import DataError
    from ltr.files import missing_file, parquet_files
    from trainers.run.folder import find_run

    data = getattr(arguments, "data", None)
    if data is not None and not data.is_file() and not parquet_files(data):
        raise DataError(f"{data}: {missing_file(data)}")
    return find_run(arguments.run, page=arguments.command == "outcome")


def check_rows(arguments: argparse.Namespace) -> tuple[RunFolder, Rows]:
    """Return the folder of a run and the rows that it is to rank."""
    from trainers.run.rows import read_rows_for

    found = find_run(arguments)
    card = arguments.command == "predict"
    return found, read_rows_for(found, arguments.data, arguments.method, card=card, new_values=arguments.new_values)


def check_export(arguments: argparse.Namespace) -> RunFolder:
    """Return the folder of a run that has the method to export."""
    from trainers.run.rows import method_of

    found = find_run(arguments)
    method_of(found, arguments.method)
    return found


def check_eval(arguments: argparse.Namespace) -> JudgedLists:
    """Return the documents of a run and its judgements."""
    from ltr.data import judged_lists

    return judged_lists(arguments.run, arguments.qrels, complete=arguments.complete)


def check_report(arguments: argparse.Namespace) -> tuple[Path, SweepResults | RunFolder]:
    """Return the folder or file of a sweep with its results, or the folder of a run."""
    from trainers.records import is_sweep, read_sweep
    from trainers.run.folder import RunFolder, find_reported

    found = find_reported(arguments.runs)
    if is_sweep(found):
        return found, read_sweep(found)
    return found, RunFolder(found)


def check_board(arguments: argparse.Namespace) -> None:
    """Check that there are runs or sweeps to show."""
    from trainers.run.folder import find_results

    find_results(arguments.paths)


def check_verify(arguments: argparse.Namespace) -> None:
    """Check that the certificate is no folder, or say which ones are in it."""
    from trainers.files import RunError

    folder = Path(arguments.file)
    if folder.is_dir():
        found = [f"\n  {path}" for path in sorted(folder.rglob("certificate.json"))]
        none = ", and no certificate.json is in it; a run with exact.certificate = true, or a card, writes one"
        raise RunError(f"{folder}: is a folder{'; give a certificate in it:' if found else none}{''.join(found)}")


def run(arguments: argparse.Namespace) -> int:
    """Run an experiment, or continue it."""
    config, source = arguments.given
    if arguments.dry_run:
        from trainers.preview import preview_run

        return _print_preview(lambda width: preview_run(config, source, width, fresh=arguments.fresh), arguments)
    from rich.console import Console

    from trainers.display import Display
    from trainers.ranking_files import HTML
    from trainers.run.experiment import run_experiment

    console = Console(stderr=True)
    with Display(None if arguments.quiet else console) as display:
        results = run_experiment(config, fresh=arguments.fresh, display=display, source=source)
    if arguments.json:
        _print_json(results.to_dict())
    elif results.rows:
        _print_table(results)
    if not arguments.quiet:
        page = f"page in {config.folder / HTML}; " if results.answer else ""
        text = f"results in {config.folder}; {page}curves: ltr board {config.runs_dir}"
        console.print(text, highlight=False, soft_wrap=True)
    return 0 if results.complete else _interrupted(arguments, config.folder)


def rank(arguments: argparse.Namespace) -> int:
    """Rank the rows of a table, and say how many hits to expect."""
    from rich.console import Console

    from ltr.answer import as_text
    from trainers.display import Display
    from trainers.ranking import rank_given
    from trainers.ranking_files import read_answer, read_ranking, write_ranking

    folder, given = arguments.given
    output: Path | None = arguments.output
    if folder is not None and arguments.new is None and arguments.visits is None:
        ranking, answer = None, read_answer(folder)
    elif folder is not None:
        rows = arguments.new or given.answer.new or given.data.path
        ranking = read_ranking(folder).rank(rows, arguments.visits, new_values=bool(arguments.new_values))
        answer = ranking.answer
    else:
        with Display(None if arguments.quiet else Console(stderr=True)) as display:
            ranking = rank_given(given, display)
        answer = ranking.answer
        output = output or Path(given.config.runs_dir) / f"{given.config.name}-rank"
    note = _noting(arguments)
    if ranking is not None and output is not None:
        write_ranking(ranking, output, note)
    if arguments.json:
        _print_json(answer.to_dict())
    else:
        width = min(Console().width, 100) if sys.stdout.isatty() else 80
        where = output if ranking is not None else folder
        text = as_text(answer, width, more="" if where is None else str(where / "list.csv"))
        encoding = sys.stdout.encoding or "utf-8"  # not all of a table's own words can be shown everywhere
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    if ranking is not None and output is not None:
        again = f"ltr rank {output / 'config.toml'}"
        note(f"page in {output / 'page.html'}, all rows in {output / 'list.csv'}; again: {again}")
    return 0


def sweep(arguments: argparse.Namespace) -> int:
    """Compute the missing results of a sweep."""
    from trainers.sweep.runner import Shard, run_sweep

    loaded: Loaded = arguments.given
    shard = Shard(*arguments.shard)
    if arguments.dry_run:
        from trainers.preview import preview_sweep

        return _print_preview(lambda width: preview_sweep(loaded, arguments.config, shard, width), arguments)
    from rich.console import Console

    from trainers.display import Display
    from trainers.sweep.workers import Workers

    console = Console(stderr=True)
    with Display(None if arguments.quiet else console) as display:
        try:
            outcome = run_sweep(
                arguments.config,
                arguments.overrides,
                workers=Workers(arguments.jobs, arguments.threads),
                shard=shard,
                known=arguments.known,
                display=display,
                loaded=loaded,
            )
        except KeyboardInterrupt:
            return _interrupted(arguments, loaded.config.folder)
    failed = len(outcome.failures)
    done = outcome.cells - outcome.before - failed
    if arguments.json:
        counts = {"results": outcome.cells, "finished_earlier": outcome.before, "computed": done}
        _print_json({"folder": str(outcome.folder), **counts, "failures": outcome.failures})
    if not arguments.quiet:
        earlier = f", {outcome.before} finished earlier" if outcome.before else ""
        text = f"{done} results computed{earlier}; ltr report {outcome.folder} makes tables and figures of them"
        console.print(text, highlight=False, soft_wrap=True)
    for failure in outcome.failures[:20]:
        complain(f"error: {failure}")
    if failed > 20:
        complain(f"error: {failed} results are missing, the first 20 are named above")
    return 2 if failed else 0


def tune(arguments: argparse.Namespace) -> int:
    """Search for the best options of an experiment."""
    from rich.console import Console
    from rich.text import Text

    from trainers.display import Display
    from trainers.report.page import plain_text
    from trainers.tables import stacked_tables
    from trainers.tune.runner import Search, run_tuning

    given, source = arguments.given
    folder = Path(given.config.runs_dir) / f"{given.config.name}-tune"
    console = Console(stderr=True)
    with Display(None if arguments.quiet else console) as display:
        tuning = run_tuning(Search(**vars(given), folder=folder, data=source), fresh=arguments.fresh, display=display)
    stdout = _stdout(Console)
    header, rows = tuning.table(10)
    columns = [(heading, [row[at] for row in rows]) for at, heading in enumerate(header)]
    for table in stacked_tables(columns, f"search {tuning.name}", stdout.width) if rows else ():
        stdout.print(table)
    stdout.print(Text(plain_text(tuning.answer)), soft_wrap=True)
    if tuning.results is not None:
        _print_table(tuning.results)
        if not arguments.quiet:
            text = f"best options in {tuning.config}, which ltr run takes; all trials in {folder / 'trials.csv'}"
            console.print(text, highlight=False, soft_wrap=True)
    if tuning.complete:
        return 0
    return _interrupted(arguments, folder)


def _interrupted(arguments: argparse.Namespace, folder: Path) -> int:
    """Say how to go on with what was interrupted, and return the exit code."""
    without = " without --fresh" if getattr(arguments, "fresh", False) else ""
    complain(f"interrupted; what is finished is kept in {folder}: the same command{without} goes on")
    return 130


def report(arguments: argparse.Namespace) -> int:
    """Make tables and figures of a sweep or run."""
    from trainers.ranking_files import read_answer
    from trainers.report.report import write_report
    from trainers.run.folder import PAGE, RunFolder

    found, results = arguments.given
    folder = arguments.output or (found.parent if found.is_file() else found) / "report"
    answer = None
    if isinstance(results, RunFolder):
        answer = read_answer(found) if (found / PAGE).exists() else None
        results = _results_of(results)
    written = write_report(results, folder, answer=answer)
    if arguments.json:
        _print_json({name: None if path is None else str(path) for name, path in vars(written).items()})
        return 0
    for path in written.files:
        sys.stdout.write(f"{path}\n")
    return 0


def board(arguments: argparse.Namespace) -> int:
    """Compare runs and sweeps in TensorBoard."""
    from trainers.board.build import build_board
    from trainers.board.server import command, serve

    note = _noting(arguments)
    if not arguments.print:
        note("writing the board, which takes half a minute for thousands of results")
    board = build_board(arguments.paths, folder=arguments.logdir, data=arguments.data, note=note)
    if arguments.print:
        sys.stdout.write(f"{command(board, arguments.host, arguments.port)}\n")
    else:
        serve(board, note, host=arguments.host, port=arguments.port)
    return 0


def show(arguments: argparse.Namespace) -> int:
    """Print the table of a run."""
    results = _results_of(arguments.given)
    if arguments.json:
        _print_json(results.to_dict())
    else:
        _print_table(results)
    return 0


def _results_of(folder: RunFolder) -> Results:
    from trainers.files import RunError
    from trainers.run.results import read_results

    results = read_results(folder)
    if results is None or not results.rows:
        raise RunError(f"run: {folder.path} has no results yet; continue with `ltr run {folder.config}`")
    return results


def predict(arguments: argparse.Namespace) -> int:
    """Rank new rows with a run."""
    from trainers.run.predict import predict_csv

    folder, rows = arguments.given
    ranked = predict_csv(
        folder,
        arguments.data,
        rows=rows,
        method=arguments.method,
        note=_noting(arguments),
    )
    return _write_csv(ranked, arguments.output)


def outcome(arguments: argparse.Namespace) -> int:
    """Compare what a run promised with what came."""
    from trainers.run.outcome import came_of_file, methods_of, outcomes

    run: RunFolder = arguments.given
    methods = methods_of(run, arguments.method, every=arguments.all)
    options = {"label": arguments.label, "new_values": arguments.new_values, "note": _noting(arguments)}
    came = came_of_file(run, arguments.data, **options)
    found = outcomes(run, came, methods, arguments.first)
    if arguments.json:
        _print_json([one.to_dict() for one in found])
    else:
        sys.stdout.write("\n\n".join(one.to_markdown() for one in found) + "\n")
    return 0


def explain(arguments: argparse.Namespace) -> int:
    """Say why rows stand where a run puts them."""
    from rich.console import Console

    from trainers.run.explain import chosen_rows, explain_rows, note_of, table_of, to_objects
    from trainers.run.ranges import ranges_of_rows

    folder, read = arguments.given
    options = {"rows": read, "new_values": arguments.new_values, "note": _noting(arguments)}
    explanation = explain_rows(folder, arguments.data, arguments.method, **options)
    rows = chosen_rows(explanation, arguments.row)
    ranges, listed = ranges_of_rows(folder, arguments.method, read, rows)
    if arguments.json:
        _print_json(to_objects(explanation, rows, ranges, listed))
    else:
        console = _stdout(Console)
        for row in rows:
            console.print(table_of(explanation, row, read.dates))
            if ranges is not None and row in listed:
                console.print(f"{ranges.of_row(row)}\n", highlight=False, markup=False)
        if ranges is not None:
            console.print(" ".join(ranges.sentences), highlight=False, markup=False)
        if note := note_of(explanation):
            _noting(arguments)(note)
    return 0


def _write_csv(rows: str, output: Path | None) -> int:
    """Write rows to a file, or to stdout."""
    from trainers.files import remove_leftovers, write_atomic, writing

    if output is None:
        sys.stdout.write(rows)
        return 0
    with writing(output, "--output"):
        remove_leftovers(output.parent, f".{glob.escape(output.name)}.*.tmp")
        write_atomic(output, rows.encode())
    return 0


def export(arguments: argparse.Namespace) -> int:
    """Write a run's ranker as an ONNX model."""
    from trainers.run.predict import export_run

    sys.stdout.write(f"{export_run(arguments.given, arguments.output, method=arguments.method)}\n")
    return 0


def _roles(arguments: argparse.Namespace) -> Roles:
    from ltr.data import Roles

    given = {name: getattr(arguments, name) for name in ("label", "positive", "query", "group", "time", "weight")}
    return Roles(**given, drop=tuple(arguments.drop))


def check(arguments: argparse.Namespace) -> int:
    """Print what a table holds."""
    from rich.console import Console

    from trainers.config import load_config
    from trainers.files import RunError
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
        console = _stdout(Console)
        for part in rich_check(checked, console.width):
            console.print(part)
    if checked.error is not None:
        complain(f"error: {checked.error}")
        return 2
    return 0


def init(arguments: argparse.Namespace) -> int:
    """Write a config for a table."""
    from trainers.own_table import open_keys, write_config

    output, checked = write_config(arguments.table, _roles(arguments), arguments.output, force=arguments.force)
    if arguments.json:
        _print_json({"written": str(output), "complete": checked.table.roles.label is not None, **checked.to_dict()})
    elif checked.table.roles.label is None:
        sys.stdout.write(f"wrote {output}; fill in its label, then: ltr run {output}\n")
    elif undecided := [] if checked.error is None else open_keys(checked.error):
        keys = " and ".join(undecided)
        sys.stdout.write(f"wrote {output}; decide about {keys} in it, then: ltr run {output}\n")
    else:
        sys.stdout.write(f"wrote {output}; next: ltr run {output}\n")
    if checked.error is not None:
        complain(f"the config solves what it can of this: {checked.error.problems_text}")
    return 0


def card(arguments: argparse.Namespace) -> int:
    """Find a scoring system for a table."""
    from trainers.cards import card_of_table, write_card
    from trainers.files import writing

    config, labelled = arguments.given
    if arguments.dry_run:
        from trainers.preview import preview_card

        return _print_preview(lambda width: preview_card(config, labelled, arguments.test), arguments)
    note = _noting(arguments)
    found, listed, notes = card_of_table(config, arguments.test, labelled)
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
    return 0


def score(arguments: argparse.Namespace) -> int:
    """Apply a card to the rows of a table."""
    from trainers.scoring import score_csv

    return _write_csv(score_csv(arguments.card, arguments.rows, missing=arguments.missing), arguments.output)


def evaluate(arguments: argparse.Namespace) -> int:
    """Measure a run of trec_eval's format against judgements."""
    from trainers.evaluation import DEFAULT, evaluate_run

    names = arguments.measure or DEFAULT
    found = evaluate_run(arguments.given, names, level=arguments.level)
    if "ndcg" in names:
        complain("ndcg has the gain 2^label - 1; trec_eval's ndcg, with the label as its gain, is 'ndcg(gain=linear)'")
    write = found.json if arguments.json else found.text
    sys.stdout.write(write(per_query=arguments.per_query))
    return 0


def verify(arguments: argparse.Namespace) -> int:
    """Check a certificate."""
    from ltr import verify

    options = ["--require-proof"] if arguments.require_proof else []
    options += ["--json"] if arguments.json else []
    options += [] if arguments.data is None else [f"--data={arguments.data}"]
    options += [] if arguments.max_size is None else [f"--max-size={arguments.max_size}"]
    options += [] if arguments.max_steps is None else [f"--max-steps={arguments.max_steps}"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = verify.main([*options, "--", arguments.file])
    sys.stdout.write(printed.getvalue() if arguments.json else folded(printed.getvalue(), sys.stdout))
    return code


def options(arguments: argparse.Namespace) -> int:
    """List the keys of a config."""
    from rich.console import Console
    from rich.text import Text

    from trainers.config.grids import keys_of
    from trainers.tables import folded_table

    tables = keys_of(arguments.keys)
    if arguments.json:
        names = ("key", "default", "meaning")
        _print_json([dict(zip(names, row, strict=True)) for rows in tables.values() for row in rows])
        return 0
    console = _stdout(Console)
    for title, rows in tables.items():
        if title:
            console.print(Text(f"\n{title}", style="italic"))
        console.print(folded_table(("key", "default", "meaning"), rows, console.width, whole=("key",)))
    return 0


def completion(arguments: argparse.Namespace) -> int:
    """Print what makes a shell complete the command line."""
    from trainers.completion import script

    sys.stdout.write(script(arguments.shell))
    return 0


def _noting(arguments: argparse.Namespace) -> Callable[[str], None]:
    """Return what shows a note: nothing does under ``--quiet``."""
    return (lambda text: None) if arguments.quiet else complain


def _print_json(content: object) -> None:
    import json

    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def _print_preview(preview: Callable[[int], Parts], arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from trainers.files import RunError

    if arguments.json:
        raise RunError("--json: does not go with --dry-run, which describes what would be computed in words")
    console = _stdout(Console)
    for part in preview(console.width):
        console.print(part, highlight=False)
    return 0


def _print_table(results: Results) -> None:
    from rich.console import Console

    from trainers.run.results import rich_tables

    console = _stdout(Console)
    for part in rich_tables(results, console.width):
        console.print(part)


def _stdout(console: type[Console]) -> Console:
    """Return a console on stdout that does not fold tables in pipes and files."""

    class Stdout(console):  # type: ignore[misc, valid-type]
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich's own ends in exit code 1

    return Stdout(width=None if sys.stdout.isatty() else 200)
