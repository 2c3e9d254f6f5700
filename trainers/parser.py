"""What can be asked for on the command line: the subcommands of ``ltr`` and their arguments."""

from __future__ import annotations

import argparse
import functools
import inspect
import math
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ltr.checks import nearest
from ltr.files import missing_file, parquet_files
from trainers import commands

_DESCRIPTION = (
    "Rank the rows of a table, and say what to expect of the first ones. Learning to rank by convex surrogates,\n"
    "and an exact reranker of the top with a proof."
)

_EXAMPLES = """\
examples:
  ltr rank patients.csv --label ill --visits 200 --new new.csv
                                        whom to visit, how many hits to expect, and why
  ltr init patients.csv --label ill     write patients.toml, a config to start from
  ltr run patients.toml exact.top_k=100 name=k100
                                        train, rerank, print the table; any key of the config can be set
  ltr predict runs/patients new.csv -o ranked.csv
                                        rank new, unlabelled rows
  ltr card patients.csv --label ill -o card
                                        a scoring system for people, proven to rank best
  ltr verify certificate.json --require-proof
                                        check a proof in exact arithmetic

The same command continues an interrupted run, sweep or search; what is finished is never computed twice. Named data
sets other than the generated ones are read from the directory in the environment variable LTR_DATA.

exit codes: 0 done, 1 a certificate is wrong, 2 something in the command, config or data is wrong, 3 a certificate could
not be checked (memory or work), 130 interrupted
"""


class _Parser(argparse.ArgumentParser):
    """Names the nearest command or option where one is misspelt."""

    def error(self, message: str) -> NoReturn:
        """End the program with a message."""
        if found := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
            message += nearest(found[1], re.findall(r"[^\s',]+", found[2]))
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n")

    def unrecognized(self, arguments: Sequence[str]) -> NoReturn:
        """End the program with a message about arguments that are not known."""
        known = re.findall(r"--[a-z-]+", self.format_help())
        near = [nearest(text.partition("=")[0], known) for text in arguments]
        self.error(f"unrecognized arguments: {' '.join(arguments)}{next(filter(None, near), '')}")


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace | None:
    """Return the arguments of a command line, None after help where it names no command, or raise SystemExit."""
    parser = parser_of_ltr()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks how a line can go on
        _complete(parser)
    arguments, rest = parser.parse_known_args(argv)
    if rest and (not hasattr(arguments, "overrides") or any(text.startswith("-") for text in rest)):
        getattr(arguments, "parser", parser).unrecognized(rest)
    if arguments.command is None:
        parser.print_help()
        return None
    if rest:
        arguments.overrides = [*arguments.overrides, *rest]
    return arguments


def may_run_code(arguments: argparse.Namespace) -> bool:
    """Return whether a command may run code named by import path: that of the user's config, or with ``--trust``."""
    # these compute what a config of the user names; card and eval take names from the command line alone
    computes = arguments.command in ("run", "sweep", "tune", "rank", "card", "eval")
    return getattr(arguments, "trust", False) or (computes and not getattr(arguments, "dry_run", False))


def _whole(least: int) -> Callable[[str], int]:
    """Return a reader of whole numbers from `least` on."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"must be an integer >= {least}, got {text!r}")
        return int(text)

    return read


def _number(rule: str, holds: Callable[[float], bool]) -> Callable[[str], float]:
    """Return a reader of numbers of which something holds; `rule` says what."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not holds(value):
            raise argparse.ArgumentTypeError(f"must be a number {rule}, got {text!r}")
        return value

    return read


def _file(text: str) -> Path:
    """Return the path of a file, or of a folder of parquet files, that is there."""
    if not Path(text).is_file() and not parquet_files(text):
        raise argparse.ArgumentTypeError(f"{text}: {missing_file(text)}")
    return Path(text)


def shard(text: str) -> tuple[int, int]:
    """Return part i of N parts, written ``i/N``."""
    number, slash, count = text.partition("/")
    if not (slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise argparse.ArgumentTypeError(f"must be i/N with 1 <= i <= N, got {text!r}")
    return int(number), int(count)


_FLAG: dict[str, Any] = {"action": "store_true"}
_LIST: dict[str, Any] = {"action": "extend", "nargs": "+", "default": []}
_ROLES = ("--label", "--positive", "--query", "--group", "--time", "--weight", "--drop")
"""Options that say what the columns of a table are for."""

# arguments that several commands have; what an option sets in a config has the name of the key
_SHARED: dict[str, dict[str, Any]] = {
    "config": {"metavar": "CONFIG", "help": "a TOML file"},
    "overrides": {"metavar": "KEY=VALUE", "nargs": "*", "default": [], "help": "set a key, as in exact.top_k=100"},
    "run": {"metavar": "RUN", "help": "a run folder, or the name of one in runs/"},
    "table": {"metavar": "TABLE", "type": _file, "help": "a CSV or other table"},
    "data": {"metavar": "DATA", "type": Path, "help": "a table with the run's features, or a sparse file"},
    "--label": {"metavar": "COLUMN", "help": "column of the labels: 0 and 1, yes and no, or with --positive any two"},
    "--positive": {"metavar": "TEXT", "help": "the label of a hit, where labels are not 0 and 1 or yes and no"},
    "--query": {"metavar": "COLUMN", "help": "column that names the query of each row; each is ranked by itself"},
    "--group": {"metavar": "COLUMN", "help": "column that tells which rows belong together, such as the patient"},
    "--time": {"metavar": "COLUMN", "help": "column of the time of each row: methods are tested on the latest rows"},
    "--weight": {"metavar": "COLUMN", "help": "column of the weight of each row in training"},
    "--drop": {"metavar": "COLUMN", "help": "leave out these columns", **_LIST},
    "--demands": {
        "dest": "exact.demands",
        "metavar": "DEMAND",
        "help": "demands on the list, as in 'share(sex = F) @50 >= 0.4'; dropped columns are known to them",
        **_LIST,
    },
    "--seed": {"type": _whole(0), "metavar": "N", "help": "seed of what is drawn at random (default 0)"},
    "--method": {"help": "a method of the run; its exact stage by default"},
    "--new-values": {"help": "rank although most rows have texts in a column that no training row had", **_FLAG},
    "--fresh": {"help": "throw away an earlier run or search of this name and start over", **_FLAG},
    "--dry-run": {"help": "check everything, say what would be computed, and compute and write nothing", **_FLAG},
    "--trust": {
        "help": "let code run that is named by import path, such as mymodule:MyLoss, also in a dry run: only if you "
        "trust whoever wrote it",
        **_FLAG,
    },
    "--json": {"help": "print JSON, with all digits", **_FLAG},
    "--quiet": {"help": "only the result: no progress, notes and warnings", **_FLAG},
}
_SHORT = {"--quiet": "-q", "--dry-run": "-n"}


def parser_of_ltr() -> _Parser:
    """Return the parser; the function of each command, whose docstring is its help, is in ``act``."""
    import ltr  # takes a moment: in `main`, where Ctrl-C is handled

    parser = _Parser(
        prog="ltr", description=_DESCRIPTION, epilog=_EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"ltr {ltr.__version__}")
    subcommands = parser.add_subparsers(dest="command", metavar="COMMAND")

    def add(act: Callable[[argparse.Namespace], int | None], *shared: str, name: str = "") -> Callable[..., Any]:
        """Add a command with some of the shared arguments, and return what adds others."""
        description = inspect.getdoc(act) or ""
        summary = description.partition("\n")[0]
        command = subcommands.add_parser(
            name or act.__name__, help=f"{summary[0].lower()}{summary[1:]}".rstrip("."), description=description
        )
        command.set_defaults(parser=command, act=act)
        for argument in shared:
            flags = [*filter(None, [_SHORT.get(argument)]), argument]
            key: dict[str, Any] = {"dest": f"data.{argument[2:]}"} if argument in _ROLES else {}
            command.add_argument(*flags, **_SHARED[argument], **key)
        return command.add_argument

    add(commands.run, "config", "overrides", "--fresh", "--dry-run", "--trust", "--json", "--quiet")

    rank = add(commands.rank, *_ROLES, "--demands", "--seed", "--json", "--quiet")
    rank("table", metavar="TABLE", type=Path, help="a CSV or other table, a config, or the folder of an earlier page")
    rank("overrides", **_SHARED["overrides"])
    most = "number of rows that you can act on, with --query of each query"
    rank("--visits", dest="answer.visits", type=_whole(1), metavar="K", help=most)
    of_today = "column with today's scores (larger is better), to compare with and to blend in"
    rank("--today", dest="baselines.auto.today", metavar="COLUMN", help=of_today)
    rank("--id", dest="answer.id", metavar="COLUMN", help="column that names a row (default: found by its values)")
    rank("--new", metavar="TABLE", type=Path, help="table of the rows to rank (default: rows of TABLE without a label)")
    rank("--new-values", **{**_SHARED["--new-values"], "dest": "answer.new_values", "default": None})
    compared = "methods to compare, such as logistic,forest (default: those that suit the data)"
    rank("--methods", dest="baselines.auto.methods", metavar="NAMES", help=compared)
    rank("-o", "--output", metavar="FOLDER", type=Path, help="where to write (default: runs/NAME-rank)")

    sweep = add(commands.sweep, "config", "overrides", "--dry-run", "--trust", "--quiet")
    sweep("-j", "--jobs", type=_whole(1), metavar="N", help="results computed at a time (default: as threads allow)")
    sweep("--threads", type=_whole(1), default=1, metavar="N", help="threads for each result (default 1)")
    sweep("--shard", type=shard, default=(1, 1), metavar="I/N", help="compute part I of N, one part per machine")
    known = "take over results from another sweep's folder or cells.jsonl"
    sweep("--from", dest="known", metavar="FOLDER", type=Path, help=known)

    add(commands.tune, "config", "overrides", "--fresh", "--quiet")

    report = add(commands.report, "--trust")
    report("runs", metavar="RUNS", help="folder of a sweep or run, its name in runs/, or a cells.jsonl")
    report("-o", "--output", metavar="DIR", type=Path, help="where to write (default: RUNS/report)")

    add(commands.show, "run", "--json")

    predict = add(commands.predict, "run", "data", "--method", "--new-values", "--trust", "--quiet")
    predict("-o", "--output", metavar="FILE", type=Path, help="write CSV here instead of to stdout")

    outcome = add(commands.outcome, "run", "--method", "--new-values", "--json", "--trust", "--quiet")
    outcome("data", metavar="OUTCOMES", type=Path, help="a table with the label of each row, empty where unknown")
    outcome("--label", metavar="COLUMN", help="column with the outcomes (default: the label of the run)")
    outcome("--first", type=_whole(1), metavar="N", help="rows that were acted on (default: those of the page)")
    outcome("--all", help="every method of the run that has a fitted ranker", **_FLAG)

    explain = add(commands.explain, "run", "data", "--method", "--new-values", "--json", "--trust", "--quiet")
    of_row = "number of a row in the file, from 1 (repeatable; default: the first three of the list)"
    explain("--row", type=_whole(1), action="append", default=[], metavar="N", help=of_row)

    export = add(commands.export, "run", "--method", "--trust")
    export("-o", "--output", metavar="FILE", type=Path, required=True, help="where to write, such as model.onnx")

    check = add(commands.check, *_ROLES, "--trust", "--json")
    check("table", metavar="TABLE", type=_file, help="a CSV or other table, or the config of an experiment")

    init = add(commands.init, "table", *_ROLES)
    init("-o", "--output", metavar="FILE", type=Path, help="where to write (default: TABLE's name with .toml, here)")
    init("--force", help="overwrite an existing file", **_FLAG)

    card = add(commands.card, "table", "overrides", "--positive", "--drop", "--seed", "--json", "--quiet")
    card("--demands", **{**_SHARED["--demands"], "dest": "card.demands"})
    of_label = "column of the labels; with --time whether the event happened, with --treatment the outcome, any number"
    card("--label", "--event", "--outcome", dest="data.label", required=True, metavar="COLUMN", help=of_label)
    of_time = "column of the time until the event, or until the row was last seen without it"
    card("--time", "--time-to-event", dest="data.time_to_event", metavar="COLUMN", help=of_time)
    treated = "column that says which rows were treated: the card finds the effect"
    card("--treatment", dest="data.treatment", metavar="COLUMN", help=treated)
    most = "most questions of a card (default 4; up to 6, with log_loss any number)"
    card("--questions", dest="card.max_questions", type=_whole(1), default=4, metavar="N", help=most)
    of_card = "what is maximised (default auc; c_index with --time, auuc with --treatment); log_loss: a risk score"
    card("--statistic", dest="card.statistic", metavar="NAME", help=of_card)
    share, positive = _number(">= 0 and < 1", lambda value: 0 <= value < 1), _number("> 0", lambda value: value > 0)
    card("--test", type=share, default=0.5, metavar="SHARE", help="share of the rows held out (default 0.5)")
    limit = "stop the search then, without a proof (default 60)"
    card("--time-limit", dest="card.time_limit", type=positive, default=60.0, metavar="SECONDS", help=limit)
    card("-o", "--output", metavar="FOLDER", type=Path, help="write the card and the ranked rows here")

    score = add(commands.score)
    score("card", metavar="CARD", type=_file, help="a card.json")
    score("rows", metavar="ROWS", type=_file, help="a table with the columns that the card asks about")
    score("-o", "--output", metavar="FILE", type=Path, help="write CSV here instead of to stdout")
    texts = "text that stands for a missing value (repeatable); those of the card's own table are in card.json"
    score("--missing", action="append", default=[], metavar="TEXT", help=texts)

    verify = add(commands.verify, "--json")
    verify("file", metavar="FILE", help="a certificate")
    verify("--require-proof", help="reject a certificate that proves no bound", **_FLAG)
    verify("--data", metavar="SHA256", help="reject a certificate about other data")
    verify("--max-size", metavar="MIB", type=int, help="largest size of the file in MiB (256)")
    verify("--max-steps", metavar="MILLIONS", type=int, help="most steps of the check, in millions (2000)")

    evaluation = add(commands.evaluate, "--json", name="eval")
    evaluation("run", metavar="RUN", type=_file, help="lines of: query Q0 document rank score tag")
    evaluation("qrels", metavar="QRELS", type=_file, help="lines of: query 0 document label")
    names = "a measure, such as ndcg@10, ndcg(gain=linear), ndcg_cut_10, AP, RBP(p=0.8) (repeatable)"
    evaluation("-m", "--measure", action="append", metavar="NAME", help=names)
    evaluation("-q", "--per-query", help="also the values of each query", **_FLAG)
    evaluation("-c", "--complete", help="count queries that the run lacks, with 0", **_FLAG)
    least = "least label of a relevant document (default 1)"
    evaluation("-l", "--level", type=_whole(1), default=1, metavar="N", help=least)

    options = add(commands.options)
    options("keys", metavar="KEY", nargs="*", help="a section such as exact, or a key such as exact.margin")

    completion = add(commands.completion)
    completion("shell", choices=("bash", "zsh", "fish"), help="the shell")
    return parser


def _complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell how a line can go on, with the runs that there are and all keys, and end the process."""
    import argcomplete
    from argcomplete.completers import FilesCompleter

    def runs(prefix: str, **_: object) -> list[str]:
        known = sorted(path.name for path in Path("runs").glob("*/") if not path.name.startswith("."))
        return [*known, *FilesCompleter()(prefix)]

    def keys(end: str = "", **_: object) -> list[str]:
        from trainers.config.grids import keys_of

        return [f"{key}{end}" for rows in keys_of().values() for key, *_ in rows if not key.startswith("grid")]

    subcommands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for name, command in subcommands.choices.items():
        for action in command._actions:
            if action.dest in ("overrides", "keys"):
                action.completer = keys if action.dest == "keys" else functools.partial(keys, end="=")
            elif action.metavar in ("RUN", "RUNS") and name != "eval":
                action.completer = runs
    argcomplete.autocomplete(parser, always_complete_options="long")
