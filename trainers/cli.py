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

from trainers.stopping import StopFlag, exit_code, is_first

if TYPE_CHECKING:
    from rich.console import Console

    from trainers.run.results import Results

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

A run or sweep that was interrupted (Ctrl-C, crash) continues when the same command is given again; what is
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
        if rest and (arguments.command not in ("run", "sweep") or any(text.startswith("-") for text in rest)):
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        if arguments.command is None:
            parser.print_help()
            return 2
        # the imports behind the commands take seconds; --help and --version should not
        for module in arguments.modules:
            importlib.import_module(module)
        from ltr.data import DataError
        from trainers.config.errors import ConfigError
        from trainers.files import RunError
    if stop is not None:
        stop.check()
    elif loaded is not None:
        loaded()
    if rest:
        arguments.overrides = [*arguments.overrides, *rest]

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
    """Return the parser; each command has its function in ``act`` and the modules to import before in ``modules``."""
    import ltr  # takes a moment: in `main`, where Ctrl-C is handled

    parser = argparse.ArgumentParser(
        prog="ltr", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"ltr {ltr.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(
        act: Callable[[argparse.Namespace], int], name: str, summary: str, more: str, *modules: str
    ) -> Callable[..., Any]:
        description = f"{summary[0].upper()}{summary[1:]}. {more}"
        command = commands.add_parser(name, help=summary, description=description)
        command.set_defaults(act=act, modules=modules)
        return command.add_argument

    run = add(
        _run,
        "run",
        "run the experiment of a config file, or continue it",
        "It trains the surrogates and baselines, runs the exact stage and prints the table. The same command continues "
        "an unfinished run.",
        *("trainers.run.experiment", "trainers.display", *_DATA, "sklearn.linear_model"),
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
    sweep("-j", "--jobs", type=_whole(1), metavar="N", help=jobs)
    sweep("--threads", type=_whole(1), default=1, metavar="N", help="threads for each result (default 1)")
    sweep("--shard", default="1/1", metavar="I/N", help="compute part I of N, one part per machine")
    sweep("--dask", metavar="ADDRESS", help="compute on the workers of a Dask scheduler")
    known = "take over results from another sweep's folder or cells.jsonl"
    sweep("--from", dest="known", metavar="FOLDER", type=Path, help=known)
    sweep("-q", "--quiet", action="store_true", help="no progress")

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
    board("--split", type=_whole(0), metavar="N", help="show this split of sweeps, not the mean over all")
    board("--logdir", type=Path, metavar="DIR", help="folder of the board (default: in LTR_CACHE)")
    board("--host", help="where TensorBoard listens (default: this machine alone)")
    board("--port", type=_whole(0, 65535), help="its port (default: the first free from 6006 on; 0 is any)")
    board("--print", action="store_true", help="do not start TensorBoard, print its command")

    show = add(_show, "show", "print a run's table", "", "trainers.run.results")
    show("run", metavar="RUN", help="a run folder, or the name of one in runs/")

    predict = add(
        _predict,
        "predict",
        "rank new, unlabelled rows with a run",
        "The rows come from a table or sparse file. Feature columns are found by name; other columns are kept. The "
        "output is CSV from the top of the list down, with position (0 is the top), score, and the stage that placed "
        "the row; query by query where the run's data had queries.",
        *("trainers.run.predict", *_DATA),
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

    more = "The keys of an experiment come first, then those of a sweep, each with its default and meaning."
    add(_options, "options", "list every key of a config", more, "trainers.config.grids")
    return parser


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            rule = f"an integer >= {least}" if most is None else f"an integer from {least} to {most}"
            raise argparse.ArgumentTypeError(f"must be {rule}, got {text!r}")
        return int(text)

    return read


def _run(arguments: argparse.Namespace) -> int:
    from rich.console import Console

    from trainers.config import load_config
    from trainers.display import Display
    from trainers.run.experiment import run_experiment
    from trainers.run.helpers import assist, is_helper, together

    config = load_config(arguments.config, arguments.overrides)
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
    from trainers.run.folder import find_run
    from trainers.run.results import read_results

    folder = find_run(arguments.run)
    results = read_results(folder)
    if results is None or not results.rows:
        raise RunError(f"run: {folder.path} has no results yet; continue with `ltr run {folder.config}`")
    _print_table(results)
    return 0


def _predict(arguments: argparse.Namespace) -> int:
    from trainers.files import remove_leftovers, write_atomic, writing
    from trainers.run.folder import find_run
    from trainers.run.predict import predict_csv

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
    """Return a console on stdout that does not fold tables in pipes and files."""

    class Stdout(console):  # type: ignore[misc, valid-type]
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # rich's own ends in exit code 1

    return Stdout(width=None if sys.stdout.isatty() else 200)
