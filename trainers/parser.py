"""What can be asked for on the command line: the subcommands of ``ltr`` and their arguments."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ltr.checks import nearest
from trainers import commands
from trainers.arguments import file, seconds, shard, share, signed, whole
from trainers.stopping import folded

_DESCRIPTION = (
    "Rank the rows of a table, and say what to expect of the first ones. Learning to rank by convex surrogates,\n"
    "and an exact reranker of the top with a proof."
)

_EXAMPLES = """\
examples:
  ltr rank patients.csv --label ill --visits 200 --new new.csv
                                                     whom to visit, how many hits to expect, and why
  ltr check patients.csv --label ill                 what the columns are, and everything that is wrong with them
  ltr init patients.csv --label ill                  write patients.toml, a config to start from
  ltr run patients.toml                              train, rerank, print the table
  ltr run configs/pima.toml exact.top_k=100 name=k100
                                                     any key of the config can be set
  ltr run configs/pima.toml 'surrogate.losses=ranknet,hinge' exact.statistic=dcg@10
  ltr show runs/pima                                 the table again
  ltr predict runs/pima patients.csv -o ranked.csv   rank new, unlabelled rows
  ltr outcome runs/pima outcomes.csv                 what was promised of these rows, and what came
  ltr explain runs/pima patients.csv --row 7         why row 7 stands where it does
  ltr export runs/pima -o model.onnx                 the ranker for other languages and services
  ltr card patients.csv --label ill -o card          a scoring system for people, proven to rank best
  ltr score card/card.json new_patients.csv          the total of each row, and its points by question
  ltr eval run.txt qrels.txt -m nDCG@10 -m AP        measures of a run in trec_eval's format
  ltr verify certificate.json --require-proof        check a proof in exact arithmetic
  ltr options                                        every key of an experiment or sweep with its default
  ltr board runs                                     TensorBoard: the methods of all runs side by side
  ltr sweep configs/paper/all.toml                   many experiments: data, splits, methods, options
  ltr sweep configs/paper/all.toml --shard 2/5       the second of five machines' share of it
  ltr report runs/paper                              tables and figures of a sweep
  ltr tune study.toml                                search the ranges in its section [tune] for the best options

A run, sweep or search that was interrupted (Ctrl-C, crash) continues when the same command is given again; what is
finished is never computed twice. Named data sets other than the generated ones are read from the directory in the
environment variable LTR_DATA; a table of your own is given by data.path and data.label.

exit codes: 0 done, 1 a certificate is wrong, 2 something in the command, config or data is wrong, 3 a certificate could
not be checked (memory or work), 130 interrupted
"""

_DRY = "check everything, say what would be computed, and compute and write nothing"
_SHORT = {
    "run": """\
examples:
  ltr run patients.toml                   a config of your own: ltr init patients.csv --label ill writes one
  ltr run patients.toml --dry-run         what it would compute
  ltr run patients.toml exact.top_k=100 name=k100
                                          any key can be set; ltr options lists them, ltr options exact a section
""",
    "sweep": """\
examples:
  ltr sweep configs/paper/all.toml --dry-run
  ltr sweep configs/paper/all.toml exact.time_limit=10 -j 4
""",
    "card": """\
example:
  ltr card patients.csv --label ill --questions 3 -o card
  ltr card patients.csv --event died --time days          who has the event first
  ltr card customers.csv --outcome bought --treatment mailed          whom the treatment moves
""",
}


class _Parser(argparse.ArgumentParser):
    """Names the nearest command or option where one is misspelt."""

    def error(self, message: str) -> NoReturn:
        """End the program with a message."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            message += nearest(found[1], re.findall(r"[^\s',]+", found[2]))
        self.print_usage(sys.stderr)
        self.exit(2, folded(f"{self.prog}: error: {message}\n", sys.stderr))

    def unrecognized(self, arguments: Sequence[str]) -> NoReturn:
        """End the program with a message about arguments that are not known."""
        known = re.findall(r"--[a-z-]+", self.format_help())
        near = [nearest(text.partition("=")[0], known) for text in arguments]
        self.error(f"unrecognized arguments: {' '.join(arguments)}{next(filter(None, near), '')}")


class _Paragraphs(argparse.HelpFormatter):
    """Folds the description, and leaves examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("example") else super()._fill_text(text, width, indent)


# libraries that reading data imports late: Ctrl-C is best handled between imports
_DATA = ("pandas", "sklearn.datasets")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace | None:
    """Return the arguments of a command line; None, with the help printed, where it names no command.

    Raises:
        SystemExit: arguments that are wrong, or --help and --version.
    """
    parser = parser_of_ltr()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks how a line can go on
        from trainers.completion import complete

        complete(parser)
    arguments, rest = parser.parse_known_args(argv)
    if rest and (not hasattr(arguments, "overrides") or any(text.startswith("-") for text in rest)):
        getattr(arguments, "parser", parser).unrecognized(rest)
    if arguments.command is None:
        parser.print_help()
        return None
    if rest:
        arguments.overrides = [*arguments.overrides, *rest]
    return arguments


def parser_of_ltr() -> _Parser:
    """Return the parser.

    Each command is in ``parser``, its function in ``act`` and the modules to import before in ``modules``. Before these
    are imported, ``early`` checks what can be checked without them; what it returns is in ``given``.
    """
    import ltr  # takes a moment: in `main`, where Ctrl-C is handled

    parser = _Parser(
        prog="ltr", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"ltr {ltr.__version__}")
    subcommands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(
        act: Callable[[argparse.Namespace], int],
        name: str,
        summary: str,
        more: str,
        *modules: str,
        early: Callable[[argparse.Namespace], Any] = lambda arguments: None,
    ) -> Callable[..., Any]:
        description = f"{summary[0].upper()}{summary[1:]}. {more}"
        command = subcommands.add_parser(
            name, help=summary, description=description, epilog=_SHORT.get(name), formatter_class=_Paragraphs
        )
        command.set_defaults(parser=command, act=act, modules=modules, early=early)
        return command.add_argument

    run = add(
        commands.run,
        "run",
        "run the experiment of a config file, or continue it",
        "It trains the surrogates and baselines, runs the exact stage and prints the table. The same command continues "
        "an unfinished run.",
        *("trainers.run.experiment", "trainers.display", *_DATA, "sklearn.linear_model"),
        early=commands.check_run,
    )
    run("config", metavar="CONFIG", help="a TOML file")
    run("overrides", metavar="KEY=VALUE", nargs="*", default=[], help="set a key, as in exact.top_k=100")
    run("--fresh", action="store_true", help="throw away an earlier run of this name and start over")
    run("-n", "--dry-run", action="store_true", help=_DRY)
    of_dry_run = _TRUST.format("the config names") + "; for a dry run, others run it anyway"
    run("--trust", action="store_true", help=of_dry_run)
    run("--json", action="store_true", help="print JSON in place of tables")
    run("-q", "--quiet", action="store_true", help="no progress, only the table")

    rank = add(
        commands.rank,
        "rank",
        "rank the rows of a table: which to visit, how many hits to expect, and why",
        "It says how many hits to expect in the first K rows, and why each row is listed; a hit is a row with a "
        "positive label. TABLE needs --label and --visits. Several methods are compared on rows held out and blended. "
        "Ranked are the rows of --new, else the rows of TABLE without a label, else its labelled rows, each by models "
        "trained without it. The page is printed, and written to a folder: page.html, page.json, list.csv, the fitted "
        "ranker, and config.toml, which repeats it. Give that folder in place of TABLE to rank other rows by the same "
        "ranker.",
        *("trainers.ranking", "trainers.display", *_DATA, "sklearn.linear_model"),
        early=commands.check_rank,
    )
    rank("table", metavar="TABLE", type=Path, help="a CSV or other table, a config, or the folder of an earlier page")
    key_value = "set a key of a config, as in data.missing=?"
    rank("overrides", metavar="KEY=VALUE", nargs="*", default=[], help=key_value)
    _add_columns(rank)
    rank("--visits", type=whole(1), metavar="K", help="number of rows that you can act on, with --query of each query")
    today = "column of the scores by which rows are ranked today, larger first: to compare with, and one of the methods"
    rank("--today", metavar="COLUMN", help=today)
    rank("--id", metavar="COLUMN", help="column that names a row (default: found by its values)")
    rank("--new", metavar="TABLE", type=Path, help="table of the rows to rank (default: rows of TABLE without a label)")
    rank("--new-values", action="store_true", default=None, help="as for predict")
    methods = "methods to compare, divided by commas, such as logistic,forest (default: those that suit the table)"
    rank("--methods", metavar="NAMES", help=methods)
    rank("--seed", type=whole(0), metavar="N", help="seed of what is drawn at random (default 0)")
    signs = "the score must not fall (+), or must not rise (-), as these columns rise"
    rank("--signs", action="extend", nargs="+", default=[], type=signed, metavar="COLUMN=SIGN", help=signs)
    for name, help_text in (("required", "columns that must be used"), ("forbidden", "columns that must not be used")):
        rank(f"--{name}", action="extend", nargs="+", default=[], metavar="COLUMN", help=help_text)
    linear = "linear constraints on the weights of columns, as in 'age >= 2*bmi'"
    rank("--constraints", action="extend", nargs="+", default=[], metavar="CONSTRAINT", help=linear)
    most = "most features to use; each value of a text column, and a missing value, is a feature"
    rank("--max-nonzeros", type=whole(1), metavar="N", help=most)
    of_list = "demands on the list, as in 'share(sex = F) @50 >= 0.4'; columns left out by --drop are known to them"
    rank("--demands", action="extend", nargs="+", default=[], metavar="DEMAND", help=of_list)
    price = "also fit without the constraints and state their cost in hits (default: for up to 2,000 labelled rows)"
    rank("--price", action=argparse.BooleanOptionalAction, help=price)
    rank("-o", "--output", metavar="FOLDER", type=Path, help="where to write (default: runs/NAME-rank)")
    rank("--json", action="store_true", help="print JSON, as in page.json")
    rank("-q", "--quiet", action="store_true", help="print only the page, no progress and messages")

    sweep = add(
        commands.sweep,
        "sweep",
        "compute the missing results of a sweep",
        "A sweep is many experiments: data sets, splits, methods and options. Each result is a file, computed once; "
        "the same command continues an unfinished sweep.",
        *("trainers.sweep.runner", "trainers.display", "rich.console", *_DATA),
        early=commands.check_sweep,
    )
    sweep("config", metavar="CONFIG", help="a TOML file with [[grid]] tables")
    sweep("overrides", metavar="KEY=VALUE", nargs="*", default=[], help="set a key of the sweep or its experiments")
    jobs = "number of results computed at a time (default: as threads allow)"
    sweep("-j", "--jobs", type=whole(1), metavar="N", help=jobs)
    sweep("--threads", type=whole(1), default=1, metavar="N", help="threads for each result (default 1)")
    sweep("--shard", type=shard, default=(1, 1), metavar="I/N", help="compute part I of N, one part per machine")
    known = "take over results from another sweep's folder or cells.jsonl"
    sweep("--from", dest="known", metavar="FOLDER", type=Path, help=known)
    sweep("-n", "--dry-run", action="store_true", help=_DRY)
    sweep("--trust", action="store_true", help=of_dry_run)
    sweep("--json", action="store_true", help="print JSON: the folder, what was computed, and what failed")
    sweep("-q", "--quiet", action="store_true", help="no progress")

    tune = add(
        commands.tune,
        "tune",
        "search for the best options of an experiment",
        "The section [tune] of the config has ranges of keys. Each trial is measured on parts of the training set; the "
        "best options are then fitted on all of it, and written as a config. The same command continues a search, also "
        "with more trials.",
        *("trainers.tune.runner", "trainers.display", *_DATA, "sklearn.linear_model"),
        early=commands.check_tune,
    )
    tune("config", metavar="CONFIG", help="a TOML file with a section [tune]")
    tune("overrides", metavar="KEY=VALUE", nargs="*", default=[], help="set a key, as in tune.trials=100")
    tune("--fresh", action="store_true", help="throw away an earlier search of this name and start over")
    tune("-q", "--quiet", action="store_true", help="no progress, only the table")

    report = add(
        commands.report,
        "report",
        "make tables and figures of a sweep or run, finished or not",
        "It writes report.md and report.html (one file with everything in it); of a sweep also figures/ and "
        "cells.jsonl (all results in one file, for further reports and sweeps).",
        "trainers.report.report",
        early=commands.check_report,
    )
    report("runs", metavar="RUNS", help="folder of a sweep or run, its name in runs/, or a cells.jsonl")
    report("-o", "--output", metavar="DIR", type=Path, help="where to write (default: RUNS/report)")
    report("--json", action="store_true", help="print JSON: the files that were written")
    report("--trust", action="store_true", help=_TRUST.format("the results name"))

    board = add(
        commands.board,
        "board",
        "compare runs and sweeps in TensorBoard",
        "The methods on each data set stand side by side. The runs are not changed; repeat the "
        "command to include new results.",
        "trainers.board.server",
        early=commands.check_board,
    )
    board("paths", metavar="RUNS", nargs="+", help="a run folder, a folder of runs, a sweep's folder or cells.jsonl")
    board("--data", action="append", default=[], metavar="NAME", help="show only this data set (repeatable)")
    board("--logdir", type=Path, metavar="DIR", help="folder of the board (default: in LTR_CACHE)")
    board("--host", help="where TensorBoard listens (default: this machine alone)")
    board("--port", type=whole(0, 65535), help="its port (default: the first free from 6006 on; 0 is any)")
    board("--print", action="store_true", help="do not start TensorBoard, print its command")
    board("--trust", action="store_true", help=_TRUST.format("the runs name"))
    board("-q", "--quiet", action="store_true", help="no notes")

    show = add(commands.show, "show", "print a run's table", "", "trainers.run.results", early=commands.find_run)
    show("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    show("--json", action="store_true", help="print JSON, with all digits")

    predict = add(
        commands.predict,
        "predict",
        "rank new, unlabelled rows with a run",
        "The rows come from a table or sparse file. Feature columns are found by name; other columns are kept. The "
        "output is CSV from the top of the list down, with position (1 is the top), score, and the stage that placed "
        "the row; query by query where the run's data had queries.",
        *("trainers.run.predict", *_DATA),
        early=commands.check_rows,
    )
    predict("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    predict("data", metavar="DATA", type=Path, help="a table with the run's features, or a sparse file")
    predict("-o", "--output", metavar="FILE", type=Path, help="write CSV here instead of to stdout")
    predict("--method", help="a method of the run; its exact stage by default")
    new_values = "rank although most rows have texts in a column that no training row had, as a new way to write them"
    predict("--new-values", action="store_true", help=new_values)
    of_run = _TRUST.format("the run names")
    predict("--trust", action="store_true", help=of_run)
    predict("-q", "--quiet", action="store_true", help="no notes and warnings")

    outcome = add(
        commands.outcome,
        "outcome",
        "compare what was promised of new rows with what came",
        "The rows have the columns of the run's table, and one that says what came; they are ranked again. Printed are "
        "the hits that were promised of the first rows, with an interval, those that came, and the statistics of the "
        "test set and of these rows.",
        *("trainers.run.outcome", *_DATA),
        early=commands.find_run,
    )
    outcome("run", metavar="RUN", help="a run folder, the name of one in runs/, or the folder of ltr rank")
    outcome(
        "data", metavar="OUTCOMES", type=Path, help="a table with the label of each row, empty where it is not known"
    )
    outcome("--label", metavar="COLUMN", help="column with the outcomes (default: the label of the run)")
    outcome("--first", type=whole(1), metavar="N", help="rows that were acted on (default: those of the page)")
    outcome("--method", help="a method of the run; its exact stage by default")
    outcome("--all", action="store_true", help="every method of the run that has a fitted ranker")
    outcome("--new-values", action="store_true", help="as for predict")
    outcome("--json", action="store_true", help="print JSON, with all digits")
    outcome("--trust", action="store_true", help=of_run)
    outcome("-q", "--quiet", action="store_true", help="no notes and warnings")

    explain = add(
        commands.explain,
        "explain",
        "say why rows stand where a run's ranker puts them",
        "For a row: what each column adds to its score, and which columns put it above or below its neighbours on the "
        "list. A linear ranker adds weight times the value's difference to the training mean.",
        *("trainers.run.explain", *_DATA),
        early=commands.check_rows,
    )
    explain("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    explain("data", metavar="ROWS", type=Path, help="a table with the run's features, or a sparse file")
    top = "number of a row in the file, from 1 (repeatable; default: the first three of the list)"
    explain("--row", type=whole(1), action="append", default=[], metavar="N", help=top)
    explain("--method", help="a method of the run; its exact stage by default")
    explain("--new-values", action="store_true", help="as for predict")
    explain("--json", action="store_true", help="print JSON in place of tables")
    explain("--trust", action="store_true", help=of_run)
    explain("-q", "--quiet", action="store_true", help="no notes and warnings")

    export = add(
        commands.export,
        "export",
        "write a run's ranker as an ONNX model",
        "Any language with a runtime for ONNX can then score raw rows: missing values are filled in and texts become "
        "features inside the model. It prints what the inputs hold. It needs pip install 'rankproof[onnx]'.",
        "trainers.run.predict",
        early=commands.check_export,
    )
    export("run", metavar="RUN", help="a run folder, or the name of one in runs/")
    export("-o", "--output", metavar="FILE", type=Path, required=True, help="where to write, such as model.onnx")
    export("--method", help="a method of the run; its exact stage by default")
    export("--trust", action="store_true", help=of_run)

    check = add(
        commands.check,
        "check",
        "print what a table holds",
        "Each column with its kind, its missing values and what becomes of it; then everything that keeps the table "
        "from being used, with the line of a config that solves it.",
        *("trainers.own_table", "pandas"),
    )
    check("table", metavar="TABLE", type=file, help="a CSV or other table, or the config of an experiment")
    _add_columns(check)
    check("--trust", action="store_true", help=_TRUST.format("a config names"))
    check("--json", action="store_true", help="print JSON")

    init = add(
        commands.init,
        "init",
        "write a config for a table",
        "The config is a start: it has the label, columns that cannot be used, and the keys that matter most.",
        *("trainers.own_table", "pandas"),
    )
    init("table", metavar="TABLE", type=file, help="a CSV or other table")
    _add_columns(init)
    init("-o", "--output", metavar="FILE", type=Path, help="where to write (default: TABLE's name with .toml, here)")
    init("--force", action="store_true", help="write over a file that is there")
    init("--json", action="store_true", help="print JSON: the config's path, and what ltr check --json prints")

    card = add(
        commands.card,
        "card",
        "find a scoring system for a table, proven to rank best",
        "A card is a few yes/no questions about the columns of a table, with points to add up. Columns may hold "
        "numbers, texts and missing values. The card is printed; with -o it is also written as card.json, card.csv, "
        "card.md, card.html and card.png, with its proof in certificate.json and the rows of the table in ranked.csv. "
        "The section [card] of a config does the same with all options: ltr run.",
        *("trainers.cards", *_DATA),
        early=commands.check_card,
    )
    card("table", metavar="TABLE", type=file, help="a CSV or other table")
    card(
        "overrides",
        metavar="KEY=VALUE",
        nargs="*",
        default=[],
        help="set a key of a config, as in data.missing=? card.C=0.01",
    )
    of_label = "column of the labels: 0 and 1, grades, yes and no; with --time whether the event happened, with "
    of_label += "--treatment the outcome, any number"
    card("--label", "--event", "--outcome", required=True, metavar="COLUMN", help=of_label)
    of_time = "column of the time until the event, or until the row was last seen without it"
    card("--time", "--time-to-event", dest="time_to_event", metavar="COLUMN", help=of_time)
    card("--treatment", metavar="COLUMN", help="column that says which rows were treated: the card finds the effect")
    by = "with --time: the time by which the card tells the share of events (default: the median of their times)"
    card("--horizon", type=seconds, metavar="TIME", help=by)
    card("--positive", metavar="TEXT", help="the label of the positives, where labels are other texts")
    card("--drop", action="extend", nargs="+", default=[], metavar="COLUMN", help="leave out these columns")
    most = "most questions of a card (default 4; up to 6, with log_loss any number)"
    card("--questions", dest="max_questions", type=whole(1), default=4, metavar="N", help=most)
    card("--points", type=whole(1, 100), default=5, metavar="N", help="most points of a question (default 5)")
    of_card = "what is maximised (default auc; c_index with --time, auuc with --treatment); log_loss: a risk score"
    card("--statistic", metavar="NAME", help=of_card)
    card("--cuts", type=whole(1), default=5, metavar="N", help="most thresholds of a column of numbers (default 5)")
    card("--one-per-feature", action="store_true", help="at most one question about each column")
    of_list = "demands on the training rows, as in 'share(sex = F) @50 >= 0.4'; dropped columns are known to them"
    card("--demands", action="extend", nargs="+", default=[], metavar="DEMAND", help=of_list)
    card("--test", type=share, default=0.5, metavar="SHARE", help="share of the rows held out (default 0.5)")
    card("--seed", type=whole(0), default=0, metavar="N", help="seed of the division (default 0)")
    limit = "stop the search then, without a proof (default 60)"
    card("--time-limit", type=seconds, default=60.0, metavar="SECONDS", help=limit)
    card("-o", "--output", metavar="FOLDER", type=Path, help="write the card and the ranked rows here")
    card("-n", "--dry-run", action="store_true", help=_DRY)
    card("--json", action="store_true", help="print JSON, as in card.json")
    card("-q", "--quiet", action="store_true", help="only the card, no notes and warnings")

    score = add(
        commands.score,
        "score",
        "apply a card to the rows of a table",
        "The output is CSV: the total of each row and its points by question, then the row itself.",
        *("trainers.scoring", "pandas"),
    )
    score("card", metavar="CARD", type=file, help="a card.json or card.csv")
    score("rows", metavar="ROWS", type=file, help="a table with the columns that the card asks about")
    score("-o", "--output", metavar="FILE", type=Path, help="write CSV here instead of to stdout")
    score("-q", "--quiet", action="store_true", help="no warnings")
    texts = "text that stands for a missing value (repeatable); those of the card's own table are in card.json"
    score("--missing", action="append", default=[], metavar="TEXT", help=texts)

    verify = add(
        commands.verify,
        "verify",
        "check a certificate",
        "A certificate says what value some weights achieve, and may prove a bound that no weights exceed; both are "
        "checked in exact arithmetic. python ltr/verify does the same where nothing but Python is installed.",
        "ltr.verify",
        early=commands.check_verify,
    )
    verify("file", metavar="FILE", help="a certificate")
    verify("--require-proof", action="store_true", help="reject a certificate that proves no bound")
    verify("--data", metavar="SHA256", help="reject a certificate about other data")
    verify("--json", action="store_true", help="print JSON: the verdict, what it shows, and about which data")
    verify("--max-size", metavar="MIB", type=int, help="largest size of the file in MiB (256)")
    verify("--max-steps", metavar="MILLIONS", type=int, help="most steps of the check, in millions (2000)")

    evaluation = add(
        commands.evaluate,
        "eval",
        "measure a run of trec_eval's format against judgements",
        "Values agree with trec_eval's: documents are ordered by score, then by name, and those without a judgement "
        "are not relevant.",
        *("trainers.evaluation", "pandas"),
        early=commands.check_eval,
    )
    evaluation("run", metavar="RUN", type=file, help="lines of: query Q0 document rank score tag")
    evaluation("qrels", metavar="QRELS", type=file, help="lines of: query 0 document label")
    names = "a measure, such as ndcg@10, ndcg(gain=linear), ndcg_cut_10, AP, RBP(p=0.8) (repeatable)"
    evaluation("-m", "--measure", action="append", metavar="NAME", help=names)
    evaluation("-q", "--per-query", action="store_true", help="also the values of each query")
    evaluation("-c", "--complete", action="store_true", help="count queries that the run lacks, with 0")
    level = "least label of a relevant document (default 1)"
    evaluation("-l", "--level", type=whole(1), default=1, metavar="N", help=level)
    evaluation("--json", action="store_true", help="JSON, with all digits")

    options = add(
        commands.options,
        "options",
        "list the keys of a config",
        "Keys of an experiment come first, then those of a sweep and of a search, each with its default and meaning. "
        "With sections or keys it lists only these.",
        "trainers.config.grids",
    )
    options("keys", metavar="KEY", nargs="*", help="a section such as exact, or a key such as exact.margin")
    options("--json", action="store_true", help="print JSON")

    completion = add(
        commands.completion,
        "completion",
        "print what makes a shell complete commands, files, runs and keys",
        'For bash add eval "$(ltr completion bash)" to ~/.bashrc, for zsh eval "$(ltr completion zsh)" to ~/.zshrc '
        "after compinit; for fish write ltr completion fish to ~/.config/fish/completions/ltr.fish.",
        "trainers.completion",
    )
    completion("shell", choices=("bash", "zsh", "fish"), help="the shell")
    return parser


def may_run_code(arguments: argparse.Namespace) -> bool:
    """Return whether a command may run code named by import path: that of the user's config, or with ``--trust``."""
    if getattr(arguments, "trust", False):
        return True
    return arguments.command in _RUNNING and not getattr(arguments, "dry_run", False)


# commands that compute what a config of the user names; card and eval take names from the command line alone
_RUNNING = ("run", "sweep", "tune", "rank", "card", "eval")
_TRUST = "let code run that {} by import path, such as mymodule:MyLoss: only if you trust whoever wrote it"


def _add_columns(add: Callable[..., Any]) -> None:
    """Add the options that say what the columns of a table are for."""
    add("--label", metavar="COLUMN", help="column of the labels: 0 and 1, yes and no, or with --positive any two")
    add("--positive", metavar="TEXT", help="the label of a hit, where labels are not 0 and 1 or yes and no")
    add("--query", metavar="COLUMN", help="column that names the query of each row; each query is ranked by itself")
    add("--group", metavar="COLUMN", help="column that tells which rows belong together, such as the patient")
    add(
        "--time",
        metavar="COLUMN",
        help="column of the time of each row: methods are tested on later rows than they learn from",
    )
    add("--weight", metavar="COLUMN", help="column of the weight of each row in training")
    add("--drop", action="extend", nargs="+", default=[], metavar="COLUMN", help="leave out these columns")
