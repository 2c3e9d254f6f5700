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
from typing import TYPE_CHECKING

from trainers.stopping import StopFlag, exit_code, is_first

if TYPE_CHECKING:
    from rich.console import Console

    from trainers.run.results import Results

__all__ = ["command", "main"]

_DESCRIPTION = "Learning to rank: convex surrogates first, then an exact reranker of the top with a proof."

_EXAMPLES = """\
examples:
  ltr run configs/gaussians.toml                     train, rerank, print the table
  ltr run configs/pima.toml exact.top_k=100 name=k100
                                                     any key of the config can be set
  ltr run configs/pima.toml 'surrogate.losses=ranknet,hinge' exact.statistic=dcg@10
  ltr show runs/pima                                 the table again
  ltr predict runs/pima patients.csv -o ranked.csv   rank new, unlabelled rows
  ltr verify certificate.json --require-proof        check a proof in exact arithmetic
  ltr options                                        every key of an experiment or sweep with its default
  torchrun --standalone --nproc-per-node 4 -m trainers run configs/pima.toml
                                                     several processes train the surrogates
  ltr board runs                                     TensorBoard: the methods of all runs side by side
  ltr sweep configs/paper/all.toml                   many experiments: data, splits, methods, options
  ltr sweep configs/paper/all.toml --shard 2/5       the second of five machines' share of it
  ltr report runs/paper                              tables and figures of a sweep

A run or sweep that was interrupted (Ctrl-C, crash) goes on when the same command is given again; what is
finished is never computed twice. Named data sets other than the generated ones are read from the directory in the
environment variable LTR_DATA; a table of your own is named by data.path and data.label.

exit codes: 0 done, 1 a certificate is wrong, 2 something in the command, config or data is wrong, 3 a certificate could
not be checked (memory), 130 interrupted
"""


def command() -> int:
    """The command line as a process of its own: its exit code, on whose way out Ctrl-C means nothing any more."""
    threading.excepthook = _thread_failed
    return exit_code(lambda loaded: main(loaded=loaded), _interrupted)  # a second Ctrl-C is answered as the first


def main(argv: Sequence[str] | None = None, *, loaded: Callable[[], None] | None = None) -> int:
    """Run the command line; returns the exit code.

    Errors of the user's making end in one message on stderr and exit code 2, Ctrl-C in 130.

    Args:
        argv: the arguments; those of the process by default.
        loaded: called once the modules are imported, by when Ctrl-C is answered elsewhere.
    """
    try:
        return _main(argv, loaded)
    except KeyboardInterrupt:
        return _interrupted()


def _thread_failed(failure: threading.ExceptHookArgs) -> None:
    """Leave out the traceback of TensorBoard's writer on a full disk: the run meets the same error, and says so."""
    if not issubclass(failure.exc_type, OSError):
        threading.__excepthook__(failure)


def _interrupted() -> int:
    _complain("interrupted")
    return 130


def _main(argv: Sequence[str] | None, loaded: Callable[[], None] | None) -> int:
    # libraries make other errors of a KeyboardInterrupt in the middle of their imports
    with StopFlag() if loaded is None else contextlib.nullcontext() as stop:
        parser = _parser()
        arguments, rest = parser.parse_known_args(argv)
        if rest and (arguments.command not in ("run", "sweep") or any(text.startswith("-") for text in rest)):
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        if arguments.command is None:
            parser.print_help()
            return 2
        # the imports behind the commands take seconds; --help and --version should not
        for module in _MODULES[arguments.command]:
            importlib.import_module(module)
        from ltr.data import DataError
        from trainers.config.errors import ConfigError
        from trainers.run.folder import RunError
    if stop is not None:
        stop.check()
    elif loaded is not None:
        loaded()

    try:
        code = _dispatch(arguments, rest)
        sys.stdout.flush()
    except (ConfigError, DataError, RunError) as error:
        _complain(f"error: {error}")
        return 2
    except BrokenPipeError:  # whoever read the output has enough, as `head` has
        _drop_stdout()
        return 141
    except OSError as error:
        _complain(f"error: {error.filename or 'standard output'}: {error.strerror or error}")
        _drop_stdout()
        return 2
    return code


def _dispatch(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.command == "run":
        return _run(arguments.config, [*arguments.overrides, *rest], arguments.fresh, arguments.quiet)
    if arguments.command == "sweep":
        return _sweep(arguments, [*arguments.overrides, *rest])
    if arguments.command == "report":
        return _report(arguments)
    if arguments.command == "board":
        from trainers.board.server import run_board

        return run_board(arguments, _complain)
    if arguments.command == "show":
        return _show(arguments.run)
    if arguments.command == "predict":
        return _predict(arguments)
    if arguments.command == "verify":
        return _verify(arguments.file, arguments.require_proof, arguments.data, arguments.max_size)
    return _options()


def _drop_stdout() -> None:
    """Have the interpreter's own end find no output that it cannot write."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(text: str) -> None:
    """Say it on stderr, of the processes that torchrun started on one machine only in the first."""
    if is_first():
        sys.stderr.write(f"ltr: {text}\n")


# what reading data imports late: Ctrl-C is best answered between imports
_DATA = ("pandas", "sklearn.datasets")
_MODULES = {
    "run": ("trainers.run.experiment", "trainers.run.display", "trainers.run.methods", *_DATA, "sklearn.linear_model"),
    "sweep": ("trainers.sweep.runner", "trainers.sweep.progress", "rich.console", *_DATA),
    "report": ("trainers.report.report",),
    "board": ("trainers.board.server",),
    "show": ("trainers.run.predict",),
    "predict": ("trainers.run.predict", *_DATA),
    "verify": ("ltr.verify",),
    "options": ("trainers.config.grids",),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ltr", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    import ltr  # takes a moment: in `main`, where Ctrl-C is handled

    parser.add_argument("--version", action="version", version=f"ltr {ltr.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser(
        "run",
        help="run the experiment of a config file, or go on with it",
        description="Run the experiment of a config file: surrogates, baselines, the exact stage, the table. "
        "The same command goes on with an unfinished run.",
    )
    run.add_argument("config", metavar="CONFIG", help="a TOML file")
    run.add_argument("overrides", metavar="KEY=VALUE", nargs="*", help="set a key, as in exact.top_k=100")
    run.add_argument("--fresh", action="store_true", help="throw away an earlier run of this name and start over")
    run.add_argument("-q", "--quiet", action="store_true", help="no progress, only the table")
    _add_sweep(commands)
    _add_report(commands)
    _add_board(commands)
    show = commands.add_parser("show", help="print a run's table", description="Print the table of a run.")
    show.add_argument("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    predict = commands.add_parser(
        "predict",
        help="rank new, unlabelled rows with a run",
        description="Rank the rows of a table or sparse file with a run. Feature columns are found by name, others are "
        "carried along. Rows come out from the top of the list down, with position (0 is the top), score, and the "
        "stage that placed them; query by query where the run was on data by query.",
    )
    predict.add_argument("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    predict.add_argument("data", metavar="DATA", type=Path, help="a table with the run's features, or a sparse file")
    predict.add_argument("-o", "--output", metavar="FILE", type=Path, help="write CSV here instead of to stdout")
    predict.add_argument("--method", help="a method of the run; its exact stage by default")
    predict.add_argument(
        "--quote-formulas",
        action="store_true",
        help="put an apostrophe before texts that begin with = + - @, a tab or a line break, which spreadsheets run as "
        "formulas; by default they stay as they are, with a warning. Numbers are never changed",
    )
    verify = commands.add_parser(
        "verify",
        help="check a certificate",
        description="Check a certificate of weights, and of a bound that no weights exceed, in exact arithmetic. "
        "ltr/verify.py does the same by itself, where nothing but Python is installed.",
    )
    verify.add_argument("file", metavar="FILE", help="a certificate")
    verify.add_argument("--require-proof", action="store_true", help="reject a certificate that proves no bound")
    verify.add_argument("--data", metavar="SHA256", help="reject a certificate about other data")
    verify.add_argument("--max-size", metavar="MIB", type=int, help="most MiB that the file may have (256)")
    commands.add_parser(
        "options",
        help="list every key of a config",
        description="Every key of the config of an experiment, then of a sweep: default and meaning.",
    )
    return parser


def _add_sweep(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sweep = commands.add_parser(
        "sweep",
        help="compute the missing results of a sweep",
        description="Run many experiments: data sets, splits, methods and options. Each result is a file, computed "
        "once; the same command goes on with an unfinished sweep.",
    )
    sweep.add_argument("config", metavar="CONFIG", help="a TOML file with [[grid]] tables")
    sweep.add_argument("overrides", metavar="KEY=VALUE", nargs="*", help="set a key of the sweep or its experiments")
    sweep.add_argument("-j", "--jobs", type=_whole(1), metavar="N", help="cells at a time (default: as threads allow)")
    sweep.add_argument("--threads", type=_whole(1), default=1, metavar="N", help="threads of each cell (default 1)")
    sweep.add_argument("--shard", default="1/1", metavar="I/N", help="compute part I of N, one part a machine")
    sweep.add_argument("--dask", metavar="ADDRESS", help="compute on the workers of a Dask scheduler")
    sweep.add_argument(
        "--from", dest="known", metavar="FOLDER", type=Path, help="take over results of a sweep, or of its cells.jsonl"
    )
    sweep.add_argument("-q", "--quiet", action="store_true", help="no progress")


def _add_report(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    report = commands.add_parser(
        "report",
        help="make tables and figures of a sweep",
        description="Make tables, figures and what they say of a sweep, finished or not: report.md, report.html (one "
        "file with everything in it), figures/ and cells.jsonl (all results in one file, to report on or go on from).",
    )
    report.add_argument("runs", metavar="RUNS", help="a sweep's folder, the name of one in runs/, or a cells.jsonl")
    report.add_argument("-o", "--output", metavar="DIR", type=Path, help="where to write (default: RUNS/report)")
    report.add_argument("--reference", metavar="CSV", type=Path, help="published values to set beside")
    report.add_argument("--markdown", metavar="FILE", type=Path, help="write the Markdown here too, with links to DIR")
    report.add_argument("--title", help="of the report")


def _add_board(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    board = commands.add_parser(
        "board",
        help="compare runs and sweeps in TensorBoard",
        description="Lay runs and sweeps out for comparison and start TensorBoard on them: the methods on each data "
        "set side by side. The runs stay as they are; the same command again takes in what is new.",
    )
    board.add_argument(
        "paths", metavar="RUNS", nargs="+", help="a run folder, a folder of runs, a sweep's folder or cells.jsonl"
    )
    board.add_argument("--data", action="append", default=[], metavar="NAME", help="only this data set (repeatable)")
    board.add_argument("--split", type=_whole(0), metavar="N", help="of sweeps this split, not the mean over all")
    board.add_argument("--logdir", type=Path, metavar="DIR", help="folder of the board (default: in LTR_CACHE)")
    board.add_argument("--host", help="where TensorBoard listens (default: this machine alone)")
    board.add_argument(
        "--port", type=_whole(0, 65535), help="its port (default: the first free from 6006 on; 0 is any)"
    )
    board.add_argument("--print", action="store_true", help="do not start TensorBoard, print its command")


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            rule = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
            raise argparse.ArgumentTypeError(f"must be {rule}, got {text!r}")
        return int(text)

    return read


def _sweep(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    from rich.console import Console

    from trainers.sweep.progress import Progress, ShownProgress
    from trainers.sweep.runner import Shard, run_sweep
    from trainers.sweep.workers import Workers

    console = Console(stderr=True)
    outcome = run_sweep(
        arguments.config,
        overrides,
        workers=Workers(arguments.jobs, arguments.threads, arguments.dask),
        shard=Shard.parse(arguments.shard),
        known=arguments.known,
        progress=Progress() if arguments.quiet else ShownProgress(console),
    )
    failed = len(outcome.failures)
    if not arguments.quiet:
        computed = f"{outcome.cells - outcome.before - failed} cells computed"
        if outcome.before:
            computed += f", {outcome.before} finished earlier"
        text = f"{computed}; ltr report {outcome.folder} makes tables and figures of them"
        console.print(text, highlight=False, soft_wrap=True)
    for failure in outcome.failures[:_FAILURES]:
        _complain(f"error: {failure}")
    if failed > _FAILURES:
        _complain(f"error: {failed} cells have no result, the first {_FAILURES} are named above")
    return 2 if failed else 0


_FAILURES = 20
"""Cells that failed and are named, at most."""


def _report(arguments: argparse.Namespace) -> int:
    from trainers.records import read_sweep
    from trainers.report.reference import read_reference
    from trainers.report.report import find_sweep, write_report

    sweep = find_sweep(arguments.runs)
    folder = arguments.output or (sweep.parent if sweep.is_file() else sweep) / "report"
    reference = None if arguments.reference is None else read_reference(arguments.reference)
    written = write_report(
        read_sweep(sweep), folder, title=arguments.title, reference=reference, markdown=arguments.markdown
    )
    for path in written.files:
        sys.stdout.write(f"{path}\n")
    return 0


def _run(path: str, overrides: Sequence[str], fresh: bool, quiet: bool) -> int:
    from rich.console import Console

    from trainers.config import load_config
    from trainers.run.display import display_for
    from trainers.run.experiment import run_experiment
    from trainers.run.helpers import assist, is_helper, together

    config = load_config(path, overrides)
    console = Console(stderr=True)
    with together(config.surrogate.device) as helpers:
        if is_helper():
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process says when to stop
            assist(config, helpers)
            return 0
        with display_for(console, quiet=quiet) as display:
            results = run_experiment(config, fresh=fresh, display=display, helpers=helpers)
    if results.rows:
        _print_table(results)
    if not quiet:
        console.print(f"results in {config.folder}; curves: ltr board {config.runs_dir}", highlight=False)
    return 0 if results.complete else _interrupted()


def _show(run: str) -> int:
    from trainers.run.folder import RunError
    from trainers.run.predict import find_run
    from trainers.run.results import read_results

    folder = find_run(run)
    results = read_results(folder)
    if results is None or not results.rows:
        raise RunError(f"run: {folder.path} has no results yet; go on with `ltr run {folder.config}`")
    _print_table(results)
    return 0


def _predict(arguments: argparse.Namespace) -> int:
    from trainers.files import remove_leftovers, write_atomic, writing
    from trainers.run.predict import find_run, predict_csv

    output, quote = arguments.output, arguments.quote_formulas
    ranked = predict_csv(find_run(arguments.run), arguments.data, method=arguments.method, quote_formulas=quote)
    if ranked.formulas and not quote:
        _complain(f"warning: {ranked.warning}")
    if output is None:
        sys.stdout.write(ranked.text)
        return 0
    with writing(output, "--output"):
        remove_leftovers(output.parent, f".{glob.escape(output.name)}.*.tmp")
        write_atomic(output, ranked.text.encode())
    return 0


def _verify(file: str, require_proof: bool, data: str | None, max_size: int | None) -> int:
    from ltr import verify

    options = ["--require-proof"] if require_proof else []
    options += [] if data is None else [f"--data={data}"]
    options += [] if max_size is None else [f"--max-size={max_size}"]
    return verify.main([*options, "--", file])


def _options() -> int:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from trainers.config import describe_keys
    from trainers.config.grids import GridConfig, SweepConfig

    console = _stdout(Console)
    of_sweep = (*describe_keys(SweepConfig), *describe_keys(GridConfig, "grid."))
    for title, rows in (("", describe_keys()), ("of a sweep", of_sweep)):
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
    """A console on stdout that does not fold tables in pipes and files."""
    found = console() if sys.stdout.isatty() else console(width=200)
    found.on_broken_pipe = _raise_broken_pipe  # type: ignore[method-assign]  # its own ends in exit code 1
    return found


def _raise_broken_pipe() -> None:
    raise BrokenPipeError
