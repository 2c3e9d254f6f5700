"""The command ``ltr``: run experiments, show and compare them, rank new data, check certificates."""

from __future__ import annotations

import argparse
import contextlib
import glob
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainers.arguments import file, seconds, share, statistic, whole
from trainers.stopping import StopFlag, exit_code, is_first

if TYPE_CHECKING:
    from rich.console import Console

    from ltr.data import Roles
    from trainers.config import Config
    from trainers.csv_text import CsvText
    from trainers.run.folder import RunFolder
    from trainers.run.results import Results

_DESCRIPTION = "Learning to rank: convex surrogates first, then an exact reranker of the top with a proof."

_EXAMPLES = """\
examples:
  ltr check patients.csv --label ill                 what the columns are, and everything that is wrong with them
  ltr init patients.csv --label ill                  write patients.toml, a config to start from
  ltr run patients.toml                              train, rerank, print the table
  ltr run configs/pima.toml exact.top_k=100 name=k100
                                                     any key of the config can be set
  ltr run configs/pima.toml 'surrogate.losses=ranknet,hinge' exact.statistic=dcg@10
  ltr show runs/pima                                 the table again
  ltr predict runs/pima patients.csv -o ranked.csv   rank new, unlabelled rows
  ltr explain runs/pima patients.csv --row 7         why row 7 stands where it does
  ltr export runs/pima -o model.onnx                 the ranker for other languages and services
  ltr card patients.csv --label ill -o card          a scoring system for people, proven to rank best
  ltr score card/card.json new_patients.csv          the total of each row, and its points by question
  ltr eval run.txt qrels.txt -m nDCG@10 -m AP        measures of a run in trec_eval's format
  ltr verify certificate.json --require-proof        check a proof in exact arithmetic
  ltr options                                        every key of an experiment or sweep with its default
  torchrun --standalone --nproc-per-node 4 -m trainers run configs/pima.toml
                                                     several processes train the surrogates
  ltr board runs                                     TensorBoard: the methods of all runs side by side
  ltr sweep configs/paper/all.toml                   many experiments: data, splits, methods, options
  ltr sweep configs/paper/all.toml --shard 2/5       the second of five machines' share of it
  ltr report runs/paper                              tables and figures of a sweep
  ltr tune study.toml                                search the ranges in its section [tune] for the best options

A run, sweep or search that was interrupted (Ctrl-C, crash) continues when the same command is given again; what is
finished is never computed twice. Named data sets other than the generated ones are read from the directory in the
environment variable LTR_DATA; a table of your own is given by data.path and data.label.

exit codes: 0 done, 1 a certificate is wrong, 2 something in the command, config or data is wrong, 3 a certificate could
not be checked (memory), 130 interrupted
"""


def command() -> int:
    """Run the command line as a process of its own and return its exit code; Ctrl-C cannot disturb the way out."""

    def failed(failure: threading.ExceptHookArgs) -> None:
        # no traceback of TensorBoard's writer on a full disk: the run reports the same error
        if not issubclass(failure.exc_type, OSError):
            threading.__excepthook__(failure)

    threading.excepthook = failed
    return exit_code(lambda loaded: main(loaded=loaded), _interrupted)  # a second Ctrl-C is answered as the first


def main(argv: Sequence[str] | None = None, *, loaded: Callable[[], None] | None = None) -> int:
    """Run the command line and return the exit code.

    Errors of the user end in one message on stderr and exit code 2, Ctrl-C in 130.

    Args:
        argv: the arguments; those of the process by default.
        loaded: called once the modules are imported, by when Ctrl-C is handled elsewhere.
    """
    try:
        return _main(argv, loaded)
    except KeyboardInterrupt:
        return _interrupted()


def _interrupted() -> int:
    _complain("interrupted")
    return 130


def _main(argv: Sequence[str] | None, loaded: Callable[[], None] | None) -> int:
    # libraries make other errors of a KeyboardInterrupt in the middle of their imports
    with StopFlag() if loaded is None else contextlib.nullcontext() as stop:
        parser = _parser()
        arguments, rest = parser.parse_known_args(argv)
        more = arguments.command in ("run", "sweep", "tune", "card")
        if rest and (not more or any(text.startswith("-") for text in rest)):
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        if arguments.command is None:
            parser.print_help()
            return 2
        from ltr.data import DataError
        from trainers.config.errors import ConfigError
        from trainers.files import RunError

        if rest:
            arguments.overrides = [*arguments.overrides, *rest]
        # the imports behind the commands take seconds; --help, --version, and what is wrong at first sight should not
        try:
            arguments.given = arguments.early(arguments)
        except (ConfigError, DataError, RunError) as error:
            _complain(f"error: {error}")
            return 2
        for module in arguments.modules:
            importlib.import_module(module)
    if stop is not None:
        stop.check()
    elif loaded is not None:
        loaded()

    try:
        code: int = arguments.act(arguments)
        sys.stdout.flush()
    except (ConfigError, DataError, RunError) as error:
        _complain(f"error: {error}")
        return 2
    except BrokenPipeError:  # the reader of the output has enough, as `head` has
        _drop_stdout()
        return 141
    except OSError as error:
        _complain(f"error: {error.filename or 'standard output'}: {error.strerror or error}")
        _drop_stdout()
        return 2
    return code


def _drop_stdout() -> None:
    """Keep the interpreter's end from writing output that cannot be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> None:
    """Show a line on stderr, under torchrun only in the first process of a machine."""
    if is_first():
        sys.stderr.write(f"ltr: {text}\n")


# libraries that reading data imports late: Ctrl-C is best handled between imports
_DATA = ("pandas", "sklearn.datasets")


def _parser() -> argparse.ArgumentParser:
    """Return the parser.

    Each command has its function in ``act`` and the modules to import before in ``modules``. Before these are imported,
    ``early`` checks what can be checked without them; what it returns is in ``given``.
    """
    import ltr  # takes a moment: in `main`, where Ctrl-C is handled

    parser = argparse.ArgumentParser(
        prog="ltr", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"ltr {ltr.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(
        act: Callable[[argparse.Namespace], int],
        name: str,
        summary: str,
        more: str,
        *modules: str,
        early: Callable[[argparse.Namespace], Any] = lambda arguments: None,
    ) -> Callable[..., Any]:
        description = f"{summary[0].upper()}{summary[1:]}. {more}"
        command = commands.add_parser(name, help=summary, description=description)
        command.set_defaults(act=act, modules=modules, early=early)
        return command.add_argument

    run = add(
        _run,
        "run",
        "run the experiment of a config file, or continue it",
        "It trains the surrogates and baselines, runs the exact stage and prints the table. The same command continues "
        "an unfinished run.",
        *("trainers.run.experiment", "trainers.display", *_DATA, "sklearn.linear_model"),
        early=_config,
    )
    run("config", metavar="CONFIG", help="a TOML file")
    run("overrides", metavar="KEY=VALUE", nargs="*", help="set a key, as in exact.top_k=100")
    run("--fresh", action="store_true", help="throw away an earlier run of this name and start over")
    run("-q", "--quiet", action="store_true", help="no progress, only the table")

    sweep = add(
        _sweep,
        "sweep",
        "compute the missing results of a sweep",
        "A sweep is many experiments: data sets, splits, methods and options. Each result is a file, computed once; "
        "the same command continues an unfinished sweep.",
        *("trainers.sweep.runner", "trainers.display", "rich.console", *_DATA),
    )
    sweep("config", metavar="CONFIG", help="a TOML file with [[grid]] tables")
    sweep("overrides", metavar="KEY=VALUE", nargs="*", help="set a key of the sweep or its experiments")
    jobs = "number of results computed at a time (default: as threads allow)"
    sweep("-j", "--jobs", type=whole(1), metavar="N", help=jobs)
    sweep("--threads", type=whole(1), default=1, metavar="N", help="threads for each result (default 1)")
    sweep("--shard", default="1/1", metavar="I/N", help="compute part I of N, one part per machine")
    sweep("--dask", metavar="ADDRESS", help="compute on the workers of a Dask scheduler")
    known = "take over results from another sweep's folder or cells.jsonl"
    sweep("--from", dest="known", metavar="FOLDER", type=Path, help=known)
    sweep("-q", "--quiet", action="store_true", help="no progress")

    tune = add(
        _tune,
        "tune",
        "search for the best options of an experiment",
        "The section [tune] of the config has ranges of keys. Each trial is measured on parts of the training set; the "
        "best options are then fitted on all of it, and written as a config. The same command continues a search, also "
        "with more trials.",
        *("trainers.tune.runner", "trainers.display", *_DATA, "sklearn.linear_model"),
        early=_tuned,
    )
    tune("config", metavar="CONFIG", help="a TOML file with a section [tune]")
    tune("overrides", metavar="KEY=VALUE", nargs="*", help="set a key, as in tune.trials=100")
    tune("--fresh", action="store_true", help="throw away an earlier search of this name and start over")
    tune("-q", "--quiet", action="store_true", help="no progress, only the table")

    report = add(
        _report,
        "report",
        "make tables and figures of a sweep, finished or not",
        "It writes report.md, report.html (one file with everything in it), figures/ and cells.jsonl (all results in "
        "one file, for further reports and sweeps).",
        "trainers.report.report",
    )
    report("runs", metavar="RUNS", help="a sweep's folder, the name of one in runs/, or a cells.jsonl")
    report("-o", "--output", metavar="DIR", type=Path, help="where to write (default: RUNS/report)")
    report("--reference", metavar="CSV", type=Path, help="published values to compare with")
    report("--markdown", metavar="FILE", type=Path, help="write the Markdown here too, with links to DIR")
    report("--title", help="title of the report")

    board = add(
        _board,
        "board",
        "compare runs and sweeps in TensorBoard",
        "The methods on each data set stand side by side. The runs are not changed; repeat the "
        "command to include new results.",
        "trainers.board.server",
    )
    board("paths", metavar="RUNS", nargs="+", help="a run folder, a folder of runs, a sweep's folder or cells.jsonl")
    board("--data", action="append", default=[], metavar="NAME", help="show only this data set (repeatable)")
    board("--split", type=whole(0), metavar="N", help="show this split of sweeps, not the mean over all")
    board("--logdir", type=Path, metavar="DIR", help="folder of the board (default: in LTR_CACHE)")
    board("--host", help="where TensorBoard listens (default: this machine alone)")
    board("--port", type=whole(0, 65535), help="its port (default: the first free from 6006 on; 0 is any)")
    board("--print", action="store_true", help="do not start TensorBoard, print its command")

    show = add(_show, "show", "print a run's table", "", "trainers.run.results", early=_finished)
    show("run", metavar="RUN", help="a run folder, or the name of one in runs/")

    predict = add(
        _predict,
        "predict",
        "rank new, unlabelled rows with a run",
        "The rows come from a table or sparse file. Feature columns are found by name; other columns are kept. The "
        "output is CSV from the top of the list down, with position (1 is the top), score, and the stage that placed "
        "the row; query by query where the run's data had queries.",
        *("trainers.run.predict", *_DATA),
        early=_finished,
    )
    predict("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    predict("data", metavar="DATA", type=Path, help="a table with the run's features, or a sparse file")
    predict("-o", "--output", metavar="FILE", type=Path, help="write CSV here instead of to stdout")
    predict("--method", help="a method of the run; its exact stage by default")
    predict(
        "--quote-formulas",
        action="store_true",
        help="put an apostrophe before texts that begin with = + - @, a tab or a line break, which spreadsheets run as "
        "formulas; by default they stay as they are, with a warning. Numbers are never changed",
    )

    explain = add(
        _explain,
        "explain",
        "say why rows stand where a run's ranker puts them",
        "For a row: what each column adds to its score, and which columns put it above or below its neighbours on the "
        "list. A linear ranker adds weight times the value's difference to the training mean.",
        *("trainers.run.explain", *_DATA),
        early=_finished,
    )
    explain("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    explain("data", metavar="ROWS", type=Path, help="a table with the run's features, or a sparse file")
    top = "number of a row in the file, from 1 (repeatable; default: the first three of the list)"
    explain("--row", type=whole(1), action="append", default=[], metavar="N", help=top)
    explain("--method", help="a method of the run; its exact stage by default")
    explain("--json", action="store_true", help="print JSON in place of tables")
    explain("-o", "--output", metavar="FILE", type=Path, help="write what each column adds to all rows here, as CSV")
    explain("--picture", metavar="FILE", type=Path, help="draw the first of these rows against its neighbours, as PNG")
    explain("--quote-formulas", action="store_true", help="as for predict")

    export = add(
        _export,
        "export",
        "write a run's ranker as an ONNX model",
        "Any language with a runtime for ONNX can then score raw rows: missing values are filled in and texts become "
        "features inside the model. It prints what the inputs hold. It needs the extra onnx: pip install 'ltr[onnx]'.",
        "trainers.run.export",
        early=_finished,
    )
    export("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    export("-o", "--output", metavar="FILE", type=Path, required=True, help="where to write, such as model.onnx")
    export("--method", help="a method of the run; its exact stage by default")

    check = add(
        _check,
        "check",
        "print what a table holds",
        "Each column with its kind, its missing values and what becomes of it; then everything that keeps the table "
        "from being used, with the line of a config that solves it.",
        *("trainers.own_table", "pandas"),
    )
    check("table", metavar="TABLE", type=file, help="a CSV or other table, or the config of an experiment")
    _add_columns(check)
    check("--json", action="store_true", help="print JSON")

    init = add(
        _init,
        "init",
        "write a config for a table",
        "The config is a start: it has the label, columns that cannot be used, and the keys that matter most.",
        *("trainers.own_table", "pandas"),
    )
    init("table", metavar="TABLE", type=file, help="a CSV or other table")
    _add_columns(init)
    init("-o", "--output", metavar="FILE", type=Path, help="where to write (default: TABLE's name with .toml, here)")

    card = add(
        _card,
        "card",
        "find a scoring system for a table, proven to rank best",
        "A card is a few yes/no questions about the columns of a table, with points to add up. Columns may hold "
        "numbers, texts and missing values. The card is printed; with -o it is also written as card.json, card.csv, "
        "card.md, card.html and card.png, with its proof in certificate.json and the rows of the table in ranked.csv. "
        "The section [card] of a config does the same with all options: ltr run.",
        *("trainers.cards", *_DATA),
    )
    card("table", metavar="TABLE", type=file, help="a CSV or other table")
    card("overrides", metavar="KEY=VALUE", nargs="*", help="set a key of a config, as in data.missing=? card.C=0.01")
    card("--label", required=True, metavar="COLUMN", help="column of the labels: 0 and 1, grades, yes and no")
    card("--positive", metavar="TEXT", help="the label of the positives, where labels are other texts")
    card("--drop", action="extend", nargs="+", default=[], metavar="COLUMN", help="leave out these columns")
    most = "most questions of a card (default 4)"
    card("--questions", dest="max_questions", type=whole(1, 6), default=4, metavar="N", help=most)
    card("--points", type=whole(1, 100), default=5, metavar="N", help="most points of a question (default 5)")
    card("--statistic", type=statistic, default="auc", metavar="NAME", help="what is maximised (default auc)")
    card("--cuts", type=whole(1), default=5, metavar="N", help="most thresholds of a column of numbers (default 5)")
    card("--one-per-feature", action="store_true", help="at most one question about each column")
    card("--test", type=share, default=0.5, metavar="SHARE", help="share of the rows held out (default 0.5)")
    card("--seed", type=whole(0), default=0, metavar="N", help="seed of the division (default 0)")
    limit = "stop the search then, without a proof (default 60)"
    card("--time-limit", type=seconds, default=60.0, metavar="SECONDS", help=limit)
    card("-o", "--output", metavar="FOLDER", type=Path, help="write the card and the ranked rows here")
    card("--quote-formulas", action="store_true", help="for the ranked rows, as for predict")

    score = add(
        _score,
        "score",
        "apply a card to the rows of a table",
        "The output is CSV: the total of each row and its points by question, then the row itself.",
        *("trainers.cards", "pandas"),
    )
    score("card", metavar="CARD", type=file, help="a card.json or card.csv")
    score("rows", metavar="ROWS", type=file, help="a table with the columns that the card asks about")
    score("-o", "--output", metavar="FILE", type=Path, help="write CSV here instead of to stdout")
    score("--quote-formulas", action="store_true", help="as for predict")

    verify = add(
        _verify,
        "verify",
        "check a certificate",
        "A certificate says what value some weights achieve, and may prove a bound that no weights exceed; both are "
        "checked in exact arithmetic. ltr/verify.py does the same where nothing but Python is installed.",
        "ltr.verify",
    )
    verify("file", metavar="FILE", help="a certificate")
    verify("--require-proof", action="store_true", help="reject a certificate that proves no bound")
    verify("--data", metavar="SHA256", help="reject a certificate about other data")
    verify("--max-size", metavar="MIB", type=int, help="largest size of the file in MiB (256)")

    evaluation = add(
        _eval,
        "eval",
        "measure a run of trec_eval's format against judgements",
        "Values agree with trec_eval's: documents are ordered by score, then by name, and those without a judgement "
        "are not relevant.",
        *("trainers.evaluation", "pandas"),
    )
    evaluation("run", metavar="RUN", type=file, help="lines of: query Q0 document rank score tag")
    evaluation("qrels", metavar="QRELS", type=file, help="lines of: query 0 document label")
    names = "a measure, such as ndcg@10, nDCG@10, ndcg_cut_10, AP, RBP(p=0.8) (repeatable)"
    evaluation("-m", "--measure", action="append", metavar="NAME", help=names)
    evaluation("-q", "--per-query", action="store_true", help="also the values of each query")
    evaluation("-c", "--complete", action="store_true", help="count queries that the run lacks, with 0")
    level = "least label of a relevant document (default 1)"
    evaluation("-l", "--level", type=whole(1), default=1, metavar="N", help=level)
    evaluation("--json", action="store_true", help="JSON, with all digits")

    more = "Keys of an experiment come first, then those of a sweep and of a search, each with its default and meaning."
    add(_options, "options", "list every key of a config", more, "trainers.config.grids", "trainers.config.tuning")
    return parser


def _add_columns(add: Callable[..., Any]) -> None:
    """Add the options that say what the columns of a table are for."""
    add("--label", metavar="COLUMN", help="column of the labels: 0 and 1, yes and no, or with --positive any")
    add("--positive", metavar="TEXT", help="the label of the positives, where labels are others")
    add("--query", metavar="COLUMN", help="column of the query of each row")
    add("--drop", action="extend", nargs="+", default=[], metavar="COLUMN", help="leave out these columns")


def _config(arguments: argparse.Namespace) -> Config:
    """Return the config of an experiment, whose files are there."""
    from trainers.config import load_config

    config = load_config(arguments.config, arguments.overrides)
    config.data.check_files()
    return config


def _tuned(arguments: argparse.Namespace) -> Any:  # noqa: ANN401  (tree, options and ranges)
    """Return what is searched, in a config whose files are there."""
    from trainers.config import parse_config
    from trainers.config.tuning import load_tuning

    given = load_tuning(Path(arguments.config), arguments.overrides)
    parse_config(given[0]).data.check_files()
    return given


def _finished(arguments: argparse.Namespace) -> RunFolder:
    """Return the folder of a run, for rows that are there."""
    from ltr.data import DataError
    from trainers.run.folder import find_run

    data = getattr(arguments, "data", None)
    if data is not None and not data.is_file():
        raise DataError(f"{data}: {'is not a file' if data.exists() else 'no such file'}")
    return find_run(arguments.run)


def _run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from trainers.display import Display
    from trainers.run.experiment import run_experiment
    from trainers.run.helpers import assist, is_helper, together

    config: Config = arguments.given
    console = Console(stderr=True)
    with together(config.surrogate.device) as helpers:
        if is_helper():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process says when to stop
            assist(config, helpers)
            return 0
        with Display(None if arguments.quiet else console) as display:
            results = run_experiment(config, fresh=arguments.fresh, display=display, helpers=helpers)
    if results.rows:
        _print_table(results)
    if not arguments.quiet:
        console.print(f"results in {config.folder}; curves: ltr board {config.runs_dir}", highlight=False)
    return 0 if results.complete else _interrupted()


def _sweep(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from trainers.display import Display
    from trainers.sweep.runner import Shard, run_sweep
    from trainers.sweep.workers import Workers

    console = Console(stderr=True)
    with Display(None if arguments.quiet else console) as display:
        outcome = run_sweep(
            arguments.config,
            arguments.overrides,
            workers=Workers(arguments.jobs, arguments.threads, arguments.dask),
            shard=Shard.parse(arguments.shard),
            known=arguments.known,
            display=display,
        )
    failed = len(outcome.failures)
    if not arguments.quiet:
        earlier = f", {outcome.before} finished earlier" if outcome.before else ""
        done = outcome.cells - outcome.before - failed
        text = f"{done} results computed{earlier}; ltr report {outcome.folder} makes tables and figures of them"
        console.print(text, highlight=False, soft_wrap=True)
    for failure in outcome.failures[:20]:
        _complain(f"error: {failure}")
    if failed > 20:
        _complain(f"error: {failed} results are missing, the first 20 are named above")
    return 2 if failed else 0


def _tune(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from trainers.display import Display
    from trainers.report.page import plain_text
    from trainers.tune.runner import Search, run_tuning

    tree, options, ranges = arguments.given
    folder = Path(tree.get("runs_dir", "runs")) / f"{tree['name']}-tune"
    console = Console(stderr=True)
    with Display(None if arguments.quiet else console) as display:
        search = Search(tree, options, ranges, folder, str(arguments.config))
        tuning = run_tuning(search, fresh=arguments.fresh, display=display)
    stdout = _stdout(Console)
    header, rows = tuning.table(10)
    table = Table(title=f"search {tuning.name}")
    for heading in header:
        table.add_column(heading, overflow="fold", justify="right")
    for row in rows:
        table.add_row(*map(Text, row))
    stdout.print(table)
    stdout.print(Text(plain_text(tuning.answer)), soft_wrap=True)
    if tuning.results is not None:
        _print_table(tuning.results)
        if not arguments.quiet:
            text = f"best options in {tuning.config}, which ltr run takes; report in {folder / 'report.html'}"
            console.print(text, highlight=False, soft_wrap=True)
    if not tuning.complete and not arguments.quiet:
        console.print(f"what is done is in {folder}; the same command goes on", highlight=False, soft_wrap=True)
    return 0 if tuning.complete else _interrupted()


def _report(arguments: argparse.Namespace) -> int:
    from trainers.records import read_sweep
    from trainers.report.reference import read_reference
    from trainers.report.report import find_sweep, write_report

    sweep = find_sweep(arguments.runs)
    folder = arguments.output or (sweep.parent if sweep.is_file() else sweep) / "report"
    reference = None if arguments.reference is None else read_reference(arguments.reference)
    options = {"title": arguments.title, "reference": reference, "markdown": arguments.markdown}
    for path in write_report(read_sweep(sweep), folder, **options).files:
        sys.stdout.write(f"{path}\n")
    return 0


def _board(arguments: argparse.Namespace) -> int:
    from trainers.board.build import build_board
    from trainers.board.server import command, serve

    if not arguments.print:
        _complain("writing the board, which takes half a minute for thousands of results")
    board = build_board(
        arguments.paths, folder=arguments.logdir, data=arguments.data, split=arguments.split, note=_complain
    )
    if arguments.print:
        sys.stdout.write(f"{command(board, arguments.host, arguments.port)}\n")
    else:
        serve(board, _complain, host=arguments.host, port=arguments.port)
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from trainers.files import RunError
    from trainers.run.results import read_results

    folder: RunFolder = arguments.given
    results = read_results(folder)
    if results is None or not results.rows:
        raise RunError(f"run: {folder.path} has no results yet; continue with `ltr run {folder.config}`")
    _print_table(results)
    return 0


def _predict(arguments: argparse.Namespace) -> int:
    from trainers.run.predict import predict_csv

    ranked = predict_csv(
        arguments.given,
        arguments.data,
        method=arguments.method,
        quote_formulas=arguments.quote_formulas,
        note=_complain,
    )
    return _write_csv(ranked, arguments)


def _explain(arguments: argparse.Namespace) -> int:
    import json

    from rich.console import Console

    from trainers.files import write_atomic, writing
    from trainers.run.explain import chosen_rows, explain_rows, explanation_csv, picture_of, table_of, to_objects

    explanation = explain_rows(arguments.given, arguments.data, arguments.method, note=_complain)
    rows = chosen_rows(explanation, arguments.row)
    if arguments.json:
        sys.stdout.write(json.dumps(to_objects(explanation, rows), indent=1, ensure_ascii=False) + "\n")
    else:
        console = _stdout(Console)
        for row in rows:
            console.print(table_of(explanation, row))
        if explanation.note:
            _complain(explanation.note)
    if arguments.picture is not None:
        picture = picture_of(explanation, rows[0])
        with writing(arguments.picture, "--picture"):
            write_atomic(arguments.picture, picture)
    if arguments.output is not None:
        csv = explanation_csv(explanation, arguments.data, quote_formulas=arguments.quote_formulas)
        return _write_csv(csv, arguments)
    return 0


def _warn(rows: CsvText, arguments: argparse.Namespace) -> None:
    if rows.formulas and not arguments.quote_formulas:
        _complain(f"warning: {rows.warning}")


def _write_csv(rows: CsvText, arguments: argparse.Namespace) -> int:
    """Write rows to the file that was asked for, or to stdout, with a warning of formulas."""
    from trainers.files import remove_leftovers, write_atomic, writing

    output = arguments.output
    _warn(rows, arguments)
    if output is None:
        sys.stdout.write(rows.text)
        return 0
    with writing(output, "--output"):
        remove_leftovers(output.parent, f".{glob.escape(output.name)}.*.tmp")
        write_atomic(output, rows.text.encode())
    return 0


def _roles(arguments: argparse.Namespace) -> Roles:
    from ltr.data import Roles

    return Roles(arguments.label, arguments.positive, arguments.query, tuple(arguments.drop))


def _export(arguments: argparse.Namespace) -> int:
    from trainers.run.export import export_run

    sys.stdout.write(f"{export_run(arguments.given, arguments.output, method=arguments.method)}\n")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from trainers.config import load_config
    from trainers.files import RunError
    from trainers.own_table import check_table, json_text, rich_check

    if arguments.table.suffix == ".toml":
        data = load_config(arguments.table).data
        if data.path is None:
            raise RunError(f"{arguments.table}: takes the data set {data.name}, no table")
        checked = check_table(Path(data.path), data.roles, data.reading)
    else:
        checked = check_table(arguments.table, _roles(arguments))
    if arguments.json:
        sys.stdout.write(json_text(checked))
    else:
        console = _stdout(Console)
        for part in rich_check(checked, console.width):
            console.print(part)
    if checked.error is not None:
        _complain(f"error: {checked.error}")
        return 2
    return 0


def _init(arguments: argparse.Namespace) -> int:
    from trainers.own_table import write_config

    output, checked = write_config(arguments.table, _roles(arguments), arguments.output)
    if checked.table.roles.label is None:
        sys.stdout.write(f"wrote {output}; fill in its label, then: ltr run {output}\n")
    else:
        sys.stdout.write(f"wrote {output}; next: ltr run {output}\n")
    if checked.error is not None:
        _complain(f"the config solves what it can of this: {checked.error}")
    return 0


def _card(arguments: argparse.Namespace) -> int:
    from trainers.cards import card_of_table, write_card
    from trainers.config import parse_config
    from trainers.config.toml_text import apply_overrides
    from trainers.files import writing

    options = ("statistic", "max_questions", "points", "cuts", "one_per_feature", "time_limit")
    tree: dict[str, Any] = {"name": "card", "seed": arguments.seed, "surrogate": {"losses": []}}
    tree |= {"baselines": {"methods": []}, "exact": {"enabled": False}}
    tree["data"] = {name: getattr(arguments, name) for name in ("label", "positive", "drop")}
    tree["data"]["path"] = str(arguments.table)
    tree["card"] = {name: getattr(arguments, name) for name in options}
    tree, given, findings = apply_overrides(tree, arguments.overrides)
    config = parse_config(tree, source="ltr card", overrides=given, findings=findings)
    found, listed, notes = card_of_table(config, arguments.test)
    sys.stdout.write(f"{found.card}\n")
    for text in notes:
        _complain(text)
    if arguments.output is not None:
        with writing(arguments.output, "--output"):
            arguments.output.mkdir(parents=True, exist_ok=True)
            quoted = arguments.quote_formulas
            ranked = write_card(found.card, found.ranker, arguments.output, listed, quote_formulas=quoted)
        _warn(ranked, arguments)
        _complain(f"card and ranked rows are in {arguments.output}; ltr score applies the card to other rows")
    return 0


def _score(arguments: argparse.Namespace) -> int:
    from trainers.cards import score_csv

    return _write_csv(score_csv(arguments.card, arguments.rows, quote_formulas=arguments.quote_formulas), arguments)


def _eval(arguments: argparse.Namespace) -> int:
    from trainers.evaluation import DEFAULT, evaluate_run

    names = arguments.measure or DEFAULT
    found = evaluate_run(arguments.run, arguments.qrels, names, complete=arguments.complete, level=arguments.level)
    write = found.json if arguments.json else found.text
    sys.stdout.write(write(per_query=arguments.per_query))
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from ltr import verify

    options = ["--require-proof"] if arguments.require_proof else []
    options += [] if arguments.data is None else [f"--data={arguments.data}"]
    options += [] if arguments.max_size is None else [f"--max-size={arguments.max_size}"]
    return verify.main([*options, "--", arguments.file])


def _options(arguments: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from trainers.config import describe_keys
    from trainers.config.grids import GridConfig, SweepConfig
    from trainers.config.tuning import TuneConfig

    console = _stdout(Console)
    of_sweep = (*describe_keys(SweepConfig), *describe_keys(GridConfig, "grid."))
    of_tune = describe_keys(TuneConfig, "tune.")
    for title, rows in (("", describe_keys()), ("of a sweep", of_sweep), ("of a search", of_tune)):
        table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
        for heading in ("key", "default", "meaning"):
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))
        console.print(table)
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
