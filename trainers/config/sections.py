"""Sections of a config: one class a component, one field a key, with its range and description.

To add a key, add its field here and use it: `trainers.methods` passes the sections of rankers whole. Which statistics,
losses, data sets and solver methods exist is decided by the library.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

from ltr.checks import (
    as_float,
    in_one_message,
    is_trusting,
    is_whole,
    nearest,
    read_call,
    split_at_commas,
    without_spaces,
)
from ltr.data import DataError, FormatName, Reading, Roles, dataset_names, format_of
from ltr.data.named import LISTS_BY_QUERY
from ltr.data.tables import COLUMN_ROLES
from ltr.estimator_names import EstimatorName
from ltr.exact import METHODS, Limits, RerankProblem
from ltr.exact.cards import MOST_QUESTIONS, CardProblem
from ltr.exact.problem import MOST_POINTS
from ltr.files import has_text, missing_file, parquet_files
from ltr.list_demands import ListDemand, read_demand, read_list_demands
from ltr.outcomes import survival_labels, uplift_labels
from ltr.statistics import LOG_LOSS, GainName, RankStatistic
from ltr.training import ADAM_ONLY, OptimizerName, PrecisionName, ScaleName, ScheduleName, ScorerName, defaults_of
from ltr.weight_constraints import CONSTRAINTS
from trainers.config.errors import Finding

FREE: dict[str, Any] = {"changes_results": False}
"""Mark of a key that does not change results (the field's ``json_schema_extra``)."""


def option(default: Any, description: str, *, free: bool = False, **rules: Any) -> Any:  # noqa: ANN401
    """Return the field of a key, which is `free` if it does not change results; `rules` are such as ``ge=1``."""
    return Field(default, description=description, json_schema_extra=FREE if free else None, **rules)


def checked(
    rule: str, holds: Callable[[Any], object], read: Callable[[Any], Any] = lambda value: value
) -> PlainValidator:
    """Return a validator of values of which something holds, as `rule` states; `read` makes of them what is kept."""

    def check(value: object) -> object:
        if not holds(value):
            raise ValueError(rule)
        return read(value)

    return PlainValidator(check)


def _whole_or(word: str, least: int) -> PlainValidator:
    """Return a validator of an integer of at least `least`, or of the word for everything."""
    rule = f'must be an integer >= {least}, or "{word}"'
    return checked(rule, lambda value: value == word or (is_whole(value) and value >= least))


def _maximised(text: str) -> str:
    RankStatistic.parse(text).check_linear()
    return text


def _of_cards(text: str) -> str:
    if text == LOG_LOSS:
        return text
    statistic = RankStatistic.parse(text)
    if statistic.kind.labels == "labels":
        statistic.check_linear()
    return str(statistic)


PLAIN_LOSSES = (
    *("ranknet", "hinge", "squared_hinge", "exponential", "logistic", "margin_mse", "p_norm_push(p=2)"),
    *("list_net", "kl", "softmax", "list_mle"),
)
"""Convex losses in their usual spelling, which need no check: torch takes a second to import."""


_LOSSES = {*(name.partition("(")[0] for name in PLAIN_LOSSES), "lambda", "smooth"}  # without their options


def _loss(text: str) -> str:
    if text in PLAIN_LOSSES:
        return text
    if is_code(text) and not is_trusting():
        read_call("loss", text)
        return without_spaces(text)
    from ltr.losses import parse_loss

    return str(parse_loss(text))


def is_code(text: str) -> bool:
    """Return whether a name of a method, logger or statistic is an import path, which leads to code of anybody's."""
    return ":" in text.partition("(")[0]


def _convex(loss: str) -> bool:
    if loss in PLAIN_LOSSES or (is_code(loss) and not is_trusting()):
        return True
    from ltr.losses import parse_loss

    return parse_loss(loss).convex


def _method(text: str) -> str:
    """Return a method's name; that of a loss in its usual spelling."""
    if ":" not in text and text.partition("(")[0].strip() not in _LOSSES:
        return text
    try:
        return _loss(text)
    except ValueError:
        return text


def _file_name(text: str) -> str:
    if not text or not all(c.isalnum() or c in "-_.+" for c in text) or text[0] in ".-":
        raise ValueError("must be letters, digits, '-', '_', '.' or '+', not starting with '.' or '-'")
    return text


def split_text(value: object) -> object:
    """Split one string where a list is needed at its commas, but not in brackets: shells remove quotes."""
    if not isinstance(value, str):
        return value
    parts = split_at_commas(value.strip().removeprefix("[").removesuffix("]"))
    return [part.strip() for part in parts if part.strip()]


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    for at, value in enumerate(values):
        if value in values[:at]:
            raise ValueError(f"must not name {value!r} twice")
    return values


_Item = TypeVar("_Item")
Several = Annotated[tuple[_Item, ...], BeforeValidator(split_text), Field(strict=False), AfterValidator(_unique)]
"""A list without repeats, or one string with commas."""
Statistic = Annotated[StrictStr, AfterValidator(lambda text: str(RankStatistic.parse(text)))]
Maximised = Annotated[Statistic, AfterValidator(_maximised)]
OfCards = Annotated[StrictStr, AfterValidator(_of_cards)]
Loss = Annotated[StrictStr, AfterValidator(_loss)]
Names = Several[StrictStr]
ListDemands = Several[Annotated[StrictStr, AfterValidator(lambda text: str(read_demand(text)))]]
Signs = dict[str, Literal["+", "-"]]
Count = Annotated[StrictInt, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
# solvers and libraries take seeds of 31 bits
Seed = Annotated[StrictInt, Field(ge=0, le=2**31 - 1)]
FileName = Annotated[StrictStr, AfterValidator(_file_name)]


class Section(BaseModel):
    """A table of the config: unknown keys are errors, nothing is converted silently, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    def clashes(self) -> Iterator[Finding]:
        """Yield fields that do not go together."""
        yield from ()

    def broken(self, *rules: tuple[str, object, str]) -> Iterator[Finding]:
        """Yield the broken ones among rules: key, whether it is broken, rule."""
        for key, is_broken, rule in rules:
            if is_broken:
                value = getattr(self, key)
                yield Finding(key, rule, list(value) if isinstance(value, tuple) else value)

    def set_beside(self, keys: Iterable[str], rule: str) -> Iterator[Finding]:
        """Yield those of some keys that have another value than the default, with the rule against it."""
        fields = type(self).model_fields
        yield from self.broken(*((key, getattr(self, key) != fields[key].default, rule) for key in keys))


_Name = Annotated[StrictStr, Field(min_length=1)] | None
_Year = Annotated[int, Field(ge=1, le=9900)]
_PositiveWeight = Annotated[
    float | Literal["balanced"] | None,
    checked(
        'must be a number above 0, or "balanced"',
        lambda value: value in (None, "balanced") or (not isinstance(value, bool) and 0 < as_float(value) < math.inf),
        lambda value: value if value in (None, "balanced") else float(value),
    ),
]

_OF_COLUMNS = ("label", "positive", *COLUMN_ROLES, "drop", "numbers", "categories", "date_format", "first_year")


class DataConfig(Section):
    """Where the observations come from, and how they are split into a training set and a test set."""

    name: _Name = option(None, "a known data set: gaussians, travel, pima, ...")
    path: _Name = option(None, "your own table (CSV) or sparse text, relative to the config file")
    test_path: _Name = option(None, "file of the test set; path is split when left out")
    validation_path: _Name = option(None, "file of rows to validate by while training; else a part of the training set")
    format: FormatName = option("auto", "table, svmlight (also libsvm, LETOR), or auto to decide by the file")
    label: _Name = option(None, "label column of your table: 0 and 1, yes and no, with queries also 2, 3, ...")
    positive: StrictStr | StrictInt | StrictBool | float | None = option(
        None, "label of the positives, where labels are neither 0 and 1 nor yes and no; all others count as 0"
    )
    query: _Name = option(None, "query column of your table; alternatively a file of sizes, PATH.query")
    group: _Name = option(None, "column that tells which rows belong together, as a patient's visits: never divided")
    time: _Name = option(None, "column with the time of each row, such as 2024-W22 or a number; the earliest train")
    time_to_event: _Name = option(
        None, "column with the time until an event, which label says happened, or until a row was last seen; for cards"
    )
    treatment: _Name = option(None, "column that says which rows were treated; label is the outcome; for cards")
    weight: _Name = option(None, "column of your table with the weight of each row in training, >= 0; 1 when left out")
    positive_weight: _PositiveWeight = option(
        None, "factor of data.weight for labels above 0; balanced gives both kinds of labels the same total weight"
    )
    drop: Names = option((), "columns of your table that are not features, such as ids")
    features: Names | None = option(None, "feature columns of your table; all others when left out")
    numbers: Names = option((), "columns to take as numbers, even where they look like ids")
    categories: Names = option((), "columns to take as categories, such as numbers that are codes")
    missing: Names = option((), 'texts that stand for missing values, such as "?"; empty cells, NA and null do already')
    decimal: Literal[".", ","] | None = option(None, "decimal mark of numbers that could be read with both, as 1,234")
    date_format: _Name = option(None, "format of dates whose day and month could be swapped, such as %d/%m/%Y")
    first_year: _Year | None = option(None, "first of the hundred years that years of two digits stand for, as 1930")
    unlabelled: Literal["drop"] | None = option(None, "drop leaves out rows without a label; else they are an error")
    train_fraction: float = option(0.5, "share of the rows (queries) that train; with time, the earliest", gt=0, lt=1)
    split_seed: Seed | None = option(None, "seed of the split; the run's seed when left out")
    seed: Seed = option(0, "seed of generated data sets")
    dtype: Literal["auto", "float32", "float64"] = option(
        "auto", "type of the features of sparse text: float32 halves the memory; auto takes it where nothing is rounded"
    )

    def clashes(self) -> Iterator[Finding]:
        """Require a data set by name or a file by path, and columns only with a table."""
        named, given = self.name is not None, self.path is not None
        table = given and self.file_format != "svmlight"
        known = f"unknown data set{nearest(self.name or '', dataset_names())}; known are {', '.join(dataset_names())}"
        dropped = ", ".join(sorted(set(self.features or ()) & set(self.drop)))
        both = ", ".join(sorted(set(self.numbers) & set(self.categories)))
        yield from self.broken(
            ("name", not named and not given, 'is required (or path = "table.csv" for your own table)'),
            ("name", named and self.name not in dataset_names(), known),
            ("path", named and given, "must not be given beside name: the data come from one place"),
            ("label", table and not named and self.label is None,
             "is required with path: the column that holds 0 and 1, or yes and no"),
            ("drop", dropped, f"must not name the feature {dropped!r}"),
            ("categories", both, f"must not name {both!r} of numbers"),
            ("date_format", "%" not in (self.date_format or "%"), "must have the form of %d/%m/%Y"),
            ("treatment", self.treatment is not None and self.time_to_event is not None,
             "must not be given beside time_to_event"),
            ("split_seed", self.time is not None and self.split_seed is not None and self.test_path is None,
             "goes with splits at random: with data.time the earliest rows train"),
        )  # fmt: skip
        columns = (*_OF_COLUMNS, "missing", "decimal", "unlabelled")
        if not given:
            of_path = [*columns, "test_path", "validation_path", "features"]
            yield from self.set_beside(of_path, "goes with path only: a named data set knows its columns")
        elif not table:
            yield from self.set_beside(columns, "goes with tables only: a sparse file has no such columns")
        if not given or table:
            yield from self.set_beside(["dtype"], "goes with sparse text only: tables are read as they are stored")
        if self.test_path is not None or self.name in LISTS_BY_QUERY:
            rule = "goes with data that are split: here the test set is given"
            yield from self.set_beside(["train_fraction", "split_seed"], rule)
        used: dict[str | None, str] = {}
        for key in ("label", *COLUMN_ROLES):
            if (column := getattr(self, key)) is not None:
                other = f"must be another column than that of data.{used.get(column)}: copy it"
                taken = column in (*(self.features or ()), *self.drop)
                yield from self.broken(
                    (key, taken, "must be neither a feature nor dropped"), (key, column in used, other)
                )
                used[column] = key

    def check_files(self, others: Iterable[str | None] = ()) -> None:
        """Raise DataError, which names them all, where files, or others beside them, are missing or empty."""
        paths = dict.fromkeys((self.path, self.test_path, self.validation_path, *others))
        wrong = [path for path in paths if path is not None and not has_text(path) and not parquet_files(path)]
        if wrong:
            empty = {path for path in wrong if os.path.isfile(path)}  # noqa: PTH113
            what = [f"{path}: {'the file is empty' if path in empty else missing_file(path)}" for path in wrong]
            raise DataError(in_one_message("", what, "files cannot be used" if empty else "files are missing"))

    @property
    def weighs(self) -> str:
        """The key that gives rows weights in training, an empty text where none does."""
        given = [key for key in ("weight", "positive_weight") if getattr(self, key) is not None]
        return f"data.{given[0]}" if given else ""

    @property
    def roles(self) -> Roles:
        """What the columns of a table are for."""
        given = {name: getattr(self, name) for name in (*_OF_COLUMNS, "features")}
        return Roles(**given, unlabelled=self.unlabelled is not None)

    @property
    def reading(self) -> Reading:
        """How a text table is to be read."""
        return Reading(decimal=self.decimal, missing=self.missing)

    @property
    def file_format(self) -> FormatName:
        """Format of the file at path."""
        return format_of(self.path) if self.format == "auto" and self.path is not None else self.format


_Widths = Annotated[tuple[Annotated[StrictInt, Field(ge=1, le=65_536)], ...], Field(strict=False, min_length=1)]


class SurrogateConfig(Section):
    """Rankers trained in PyTorch, one for each loss."""

    losses: Several[Loss] = option((), "losses to train on, such as ranknet, hinge, p_norm_push(p=2) or `module:Class`")
    scorer: ScorerName = option("linear", "the scoring function: linear, mlp, or attention over the list")
    hidden: _Widths | None = option(None, "widths of the hidden layers; [256, 128] of an mlp, [64] before attention")
    blocks: Count = option(2, "number of attention blocks")
    heads: Count = option(4, "attention heads of a block; they divide its width")
    dropout: Share = option(0.0, "share of hidden units dropped while training; 0.3 for mlp, 0.1 for attention")
    layer_norm: bool = option(False, "normalise the hidden layers of an mlp")
    scale: ScaleName = option("standardize", "features by standardize, or by quantile, for neural scorers")
    optimizer: OptimizerName = option("lbfgs", "lbfgs for linear scorers, adam for neural ones")
    max_steps: Count = option(1000, "largest number of optimizer steps; 200 for neural scorers")
    learning_rate: Positive = option(0.01, "learning rate of adam; 0.001 for neural scorers")
    schedule: ScheduleName = option("constant", "learning rate of adam: constant, cosine to 0, or halved on a plateau")
    warmup: StrictInt = option(0, "steps in which the learning rate of adam rises from 0", ge=0)
    weight_decay: NotNegative = option(0.0, "decoupled weight decay of adam; 0.01 for neural scorers")
    clip: Positive | None = option(None, "largest norm of the gradient of an adam batch; no limit when left out")
    precision: PrecisionName = option("auto", "full, bfloat16, or auto: bfloat16 for neural scorers on a GPU")
    batch_size: StrictInt | None = option(
        None, "rows (queries) of an adam batch; when left out all, for neural scorers 128 rows or 16 queries", ge=2
    )
    chunk_rows: Count | None = option(None, "rows on the device at a time, for data larger than its memory")
    l2: NotNegative = option(1e-4, "price of the squared weights, l2/2 ||w||^2")
    validation: Share | None = option(
        None, "share of training rows (queries) held out for early stopping; 0.2 if neural, or not convex with queries"
    )
    patience: Count = option(20, "steps without a better validation statistic after which to stop")
    tolerance: Positive = option(1e-8, "relative accuracy at which a fit has converged")
    device: Literal["cpu", "cuda", "auto"] = option("cpu", "where to train", free=True)
    certify: bool = option(False, "also solve the convex problem and log the distance to its optimum", free=True)

    @model_validator(mode="before")
    @classmethod
    def _follow_scorer(cls, given: Any) -> Any:  # noqa: ANN401  (what a user wrote)
        """Fill in the defaults that follow the scorer and the optimizer."""
        if not isinstance(given, Mapping) or given.get("scorer") not in get_args(ScorerName):
            return given
        optimizer = given.get("optimizer")
        return {**defaults_of(given["scorer"], optimizer if optimizer in get_args(OptimizerName) else None), **given}

    def clashes(self) -> Iterator[Finding]:
        """Refuse options that the chosen scorer or optimizer does not have."""
        neural = 'goes with scorer = "mlp" or "attention" only'
        for keys, scorers, rule in (
            (("hidden", "dropout"), ("mlp", "attention"), neural),
            (("layer_norm",), ("mlp",), 'goes with scorer = "mlp" only'),
            (("blocks", "heads"), ("attention",), 'goes with scorer = "attention" only'),
            (("certify",), ("linear",), 'goes with scorer = "linear" only: a network has no convex optimum'),
            (("scale",), ("mlp", "attention"), "goes with neural scorers only: linear weights are on the features"),
        ):
            if self.scorer not in scorers:
                yield from self.set_beside(keys, rule)
        curved = next((name for name in self.losses if not _convex(name)), None) if self.certify else None
        width = self.hidden[-1] if self.scorer == "attention" and self.hidden is not None else 0
        yield from self.broken(
            ("certify", curved is not None, f"goes with convex losses only, which {curved} is not"),
            ("heads", width % self.heads, f"must divide the last width, {width}"),
        )
        if self.optimizer == "lbfgs":
            rule = 'goes with optimizer = "adam" only: lbfgs needs the whole gradient'
            yield from self.set_beside((*ADAM_ONLY, "dropout"), rule)


class LogisticRegressionConfig(Section):
    """Pointwise logistic regression, the paper's base ranker."""

    C: Positive = option(1e4, "inverse strength of the regularisation, as in scikit-learn")
    standardize: bool = option(True, "whether to fit on standardised columns")


_Thresholds = Annotated[int | str, _whole_or("all", 1)]


class RankBoostConfig(Section):
    """RankBoost: boosted thresholds on single features."""

    rounds: Count = option(100, "boosting rounds")
    thresholds: _Thresholds = option(255, 'largest number of cuts for each feature, or "all"')
    step: Literal["bound", "exact"] = option("bound", "step length of a round")


AUTO = "auto"
"""Name of the method that compares several methods and blends them."""
BASELINES = (AUTO, "logistic_regression", "rankboost")


_RANKED = ("logistic", "rankboost", "boosting", "forest", "network", "card")


def _ranked(text: str) -> str:
    """Return the name of a method as `ltr.rankers.AutoRanker` takes it."""
    if text in _RANKED:
        return text
    if is_code(text):
        return str(estimator_name(text))
    try:
        return _loss(text)
    except ValueError:
        hint = nearest(text, (*_RANKED, *sorted(_LOSSES)))
        rule = f"must be {', '.join(_RANKED)}, a loss such as ranknet, or module:Class(option=value,...){hint}"
        raise ValueError(rule) from None


class AutoConfig(Section):
    """The methods that are compared out of fold and blended; a single one is recommended where it is clearly better."""

    methods: Several[Annotated[StrictStr, AfterValidator(_ranked)]] = option(
        (),
        "what is compared, from the simplest: logistic, rankboost, boosting, forest, network, card, losses such as "
        "ranknet, and estimators as `module:Class(option=value,...)`; what suits the data when left out",
    )
    today: _Name = option(None, "column of the scores of today, to compare with, which is one of the methods")
    simplicity: float = option(-2.0, "standard deviations by which a simpler method may be worse than the blend")


@functools.cache
def estimator_name(text: str) -> EstimatorName:
    """Return the name of an estimator that a text spells; a ValueError says what is wrong with another text."""
    return EstimatorName.parse(text)


@functools.cache
def _wrong_estimator(text: str) -> str:
    """Import an estimator, and return what is wrong with its module, name or options; an empty text for nothing."""
    try:
        estimator_name(text).check()
    except ValueError as error:
        return str(error)
    return ""


def _baseline(text: str) -> str:
    if text in BASELINES:
        return text
    if ":" in text:
        if is_trusting() and (wrong := _wrong_estimator(str(estimator_name(text)))):
            raise ValueError(wrong)
        return str(estimator_name(text))
    hint = nearest(text, BASELINES)
    known = ", ".join(BASELINES)
    raise ValueError(f"must be {known}, or module:Class(option=value,...) for a ranker of another library{hint}")


class BaselinesConfig(Section):
    """Methods to compare with, by name."""

    methods: Several[Annotated[StrictStr, AfterValidator(_baseline)]] = option(
        (AUTO,), "methods to fit beside losses: auto, logistic_regression, rankboost, `module:Class(option=value,...)`"
    )
    auto: AutoConfig = AutoConfig()
    logistic_regression: LogisticRegressionConfig = LogisticRegressionConfig()
    rankboost: RankBoostConfig = RankBoostConfig()

    @property
    def estimators(self) -> dict[str, EstimatorName]:
        """Estimators of other libraries by the names of their methods."""
        paths = (estimator_name(text) for text in self.methods if text not in BASELINES)
        return {path.short: path for path in paths}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the methods: the baselines' own, and those of estimators without the module."""
        return tuple(text if text in BASELINES else estimator_name(text).short for text in self.methods)


_BaseScore = Annotated[
    bool | str,
    checked(
        "must be true, false, or the name of a column of scores",
        lambda value: isinstance(value, bool | str) and value != "",
    ),
]
_Length = Annotated[int | str, _whole_or("full", 2)]
_Measured = Annotated[StrictStr, AfterValidator(lambda text: ListDemand.measuring(text).what)]
_Points = Annotated[StrictInt, Field(ge=1, le=MOST_POINTS)]
LIMITS = tuple(field.name for field in dataclasses.fields(Limits))
"""Keys of the exact section that make its `Limits`."""


class ExactConfig(Section):
    """The exact reranker of the top of the base ranker's list."""

    enabled: bool = option(True, "whether to rerank")
    base: Annotated[StrictStr, AfterValidator(_method)] | None = option(
        None, "any method of this run, by name; when left out auto, or else the first baseline or loss"
    )
    top_k: _Length = option(50, 'length of the list to rerank, or "full"; with queries, of each (default 10)')
    statistic: Maximised = option("dcg", "the rank statistic to maximise, and to report first; with queries dcg@10")
    choose: bool = option(True, "rerank only as far as inner splits of the training set show a gain on new lists")
    base_score: _BaseScore = option(
        False, "correct the base score, not replace it: true, or the column of scores from elsewhere that is the base"
    )
    spread: Positive | None = option(None, "how far weights around the base order may spread; else the full optimum")
    max_nonzeros: Count | None = option(None, "largest number of columns used by base and exact stage together")
    signs: Signs = option({}, 'signs that weights must have: {age = "+", bmi = "-"}')
    required: Names = option((), "columns that base and exact stage must use")
    forbidden: Names = option((), "columns that neither stage may use")
    constraints: Names = option((), 'linear constraints on the weights of the columns: ["age >= 2*bmi"]')
    demands: ListDemands = option(
        (), 'demands on the training list, also of dropped columns: ["share(sex = F) @50 >= 0.4", "recall@100 >= 0.8"]'
    )
    integer: _Points | None = option(None, "B: weights are whole numbers from -B to B, of columns in round units")
    C: NotNegative = option(0.0, "price of each non-zero weight")
    margin: float = option(1e-4, "score difference that puts a row above another; SCIP needs >= 1e-5", gt=0, le=1)
    ties: Literal["resolved", "subrank"] = option("resolved", "how ties are ranked")
    method: StrictStr = option("auto", "exact method; auto chooses one")
    time_limit: Positive = option(60.0, "seconds for the search")
    gap: NotNegative = option(0.0, "relative gap at which to stop; 0 asks for a proof")
    node_limit: Count | None = option(None, "largest number of branch-and-bound nodes")
    memory_limit: Positive | None = option(
        None, "megabytes that a solve may add to the process; by default half of what is free"
    )
    recentre: Literal["l2", "max"] | None = option(None, "then maximise the margin of the pairs won, in norm l2 or max")
    certificate: bool = option(False, "write certificate.json, with a proof if it is small, for ltr verify", free=True)
    ranges: NotNegative = option(0.0, "seconds for the places of rows over all good scorers; 0: none", free=True)
    front: _Measured | None = option(
        None, 'find what this measure of the list costs, as "exposure(sex = F)", in one more time_limit', free=True
    )
    seed: Seed | None = option(None, "the run's seed when left out")

    @property
    def score_column(self) -> str | None:
        """The column of scores that is the base, None where a method of the run is."""
        return self.base_score if isinstance(self.base_score, str) else None

    def column_constraints(self) -> dict[str, Any]:
        """Return the constraints on the weights of columns, as `ltr.weight_constraints.read_constraints` takes it."""
        return {name: getattr(self, name) for name in CONSTRAINTS}

    def measured(self) -> dict[str, ListDemand]:
        """Return the demands on the list, and what the front measures, by the key that states each."""
        found = {f"demands[{at}]": one for at, one in enumerate(read_list_demands(self.demands))}
        return found if self.front is None else {**found, "front": ListDemand.measuring(self.front)}

    def limits(self, seed: int) -> Limits:
        """Return the limits of a solve; `seed` is that of the run, used where the section has none of its own."""
        given = self.model_dump(include=set(LIMITS))
        return Limits(**{**given, "seed": seed if self.seed is None else self.seed})

    def clashes(self) -> Iterator[Finding]:
        """Check what goes together: choice, base score and spread; rank weights and list; method and problem."""
        statistic, cut = RankStatistic.parse(self.statistic), self.top_k if isinstance(self.top_k, int) else None
        corrects, chooses = self.base_score is not False, self.choose
        if not self.enabled:
            rule = "goes with enabled = true only: it binds the exact stage and its base"
            yield from self.set_beside((*CONSTRAINTS, "demands", "front", "ranges"), rule)
        if self.score_column is not None:
            yield from self.set_beside(["base"], f"must be left out: the column {self.score_column!r} is the base")
        spread, recentre, integer = (getattr(self, key) is not None for key in ("spread", "recentre", "integer"))
        of_one_list = statistic.length is not None
        wrong_length = of_one_list and cut is not None and statistic.length != cut
        constant = not of_one_list and cut is not None and statistic.is_constant(cut)
        yield from self.broken(
            ("spread", spread and chooses, "goes with choose = false only: the choice compares several"),
            ("spread", spread and not chooses and not corrects,
             "goes with base_score = true, or a column of scores: the weights spread around the base order"),
            ("recentre", recentre and (chooses or spread),
             "goes with choose = false and no spread only: it moves the best weights of the list"),
            ("recentre", recentre and integer, "goes with real weights only: points stay whole"),
            ("integer", integer and (chooses or corrects),
             "goes with choose = false and base_score = false only: points replace the base score"),
            ("statistic", wrong_length, f"must hold top_k = {cut} weights, one per rank"),
            ("statistic", of_one_list and not wrong_length and chooses,
             "goes with choose = false only: weights(...) fit one list, and inner splits have shorter ones"),
            ("statistic", constant,
             f"must have a cutoff below top_k = {cut}: all of that list are among its first rows"),
        )  # fmt: skip
        for name, demand in self.measured().items() if "top_k" in self.model_fields_set else ():
            if cut is not None and demand.statistic.is_constant(cut):
                first, given = demand.statistic.cutoff, self.front if name == "front" else str(demand)
                rule = f"which rows are the first {first} does not depend on the order of the top {cut}: rerank more"
                yield Finding(name, f"{rule}, as by top_k = {2 * (first or 0)}", given)
        if self.method == "auto":
            return
        if self.method not in METHODS:
            hint = nearest(self.method, METHODS)
            yield Finding("method", f"must be one of auto, {', '.join(METHODS)}{hint}", self.method)
            return
        n = 4 if statistic.length is None else statistic.length
        if n < 2:
            return
        # small features: a margin that is too small for them is too small for all
        asked: dict[str, Any] = {"required": [0] if self.required else [], "integer": self.integer}
        small = RerankProblem(np.eye(n) / n, np.arange(n) % 2, statistic, self.C, self.margin, ties=self.ties, **asked)
        try:
            METHODS[self.method].check(small)
        except ValueError as error:
            yield Finding("method", str(error), self.method)


def _cuts_of(own: object) -> bool:
    """Return whether a value says how many thresholds a column has, or which."""
    if isinstance(own, list):
        return bool(own) and all(math.isfinite(as_float(cut)) for cut in own)
    return is_whole(own) and own >= 1


_Cuts = Annotated[
    int | dict[str, Any],
    checked(
        "must be an integer >= 1, or a table with an integer or a list of numbers for each column",
        lambda value: all(map(_cuts_of, value.values())) if isinstance(value, dict) else is_whole(value) and value >= 1,
    ),
]
_Rules = Annotated[
    tuple[dict[str, Any], ...] | list[dict[str, Any]],
    checked(
        'must be a list of tables such as { at_least = 1, of = ["age"] }',
        lambda value: isinstance(value, list | tuple) and all(isinstance(one, dict) for one in value),
        tuple,
    ),
]
_OneDirection = Annotated[
    bool | tuple[StrictStr, ...] | list[StrictStr],
    checked(
        "must be true, false, or a list of column names",
        lambda value: (
            isinstance(value, bool | str)
            or (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value))
        ),
        lambda value: value if isinstance(value, bool) else (value,) if isinstance(value, str) else tuple(value),
    ),
]


def _point_limits(value: object) -> object:
    from ltr.cards.conditions import checked_limits

    return value if value is None else checked_limits(value)


_PointLimits = Annotated[dict[str, Any] | None, PlainValidator(_point_limits)]


class CardConfig(Section):
    """A card: the few yes/no questions and whole numbers of points whose sum has the largest rank statistic."""

    enabled: bool = option(False, "whether to make a card; true where the section is there and leaves this key out")
    statistic: OfCards = option(
        "auc", "what to maximise; c_index with data.time_to_event, auuc with data.treatment; log_loss is minimised"
    )
    max_questions: Count = option(4, f"largest number of questions; at most {MOST_QUESTIONS} for a rank statistic")
    points: StrictInt = option(5, "largest number of points of a question; the smallest is its negative", ge=1, le=100)
    cuts: _Cuts = option(5, "largest number of thresholds of a column of numbers; a table: number, or list, by column")
    one_per_feature: bool = option(False, "whether the card may have only one question about each column")
    within: Share | None = option(
        None, "share by which the card nearest to the regression may be below the best; 0.02 for auc, c_index, else 0"
    )
    signs: Signs | None = option(None, 'table of "+" or "-" by column or question: points >= 0, points <= 0')
    point_limits: _PointLimits = option(
        None, 'with log_loss: table of least and largest points, { age = [0, 3] }; "(Intercept)" names the intercept'
    )
    least_points: StrictInt = option(1, "smallest number of points, up to the sign, of a question", ge=1, le=100)
    required: Names = option((), "questions that the card must have")
    rules: _Rules = option(
        (),
        'tables such as { at_least = 1, of = ["age", "smoker"] } or { at_most = 2, of = [...] }: how many of these '
        "questions, or of those about these columns, the card may have; with when = [...] where it has one of those",
    )
    one_direction: _OneDirection = option(False, "columns whose thresholds must share one sign; true: all columns")
    forbidden: Names = option((), "columns and questions that the card may not have")
    C: NotNegative = option(0.0, "price of each question, on the scale of the statistic")
    demands: ListDemands = option((), "demands on the training rows that the card must meet, as exact.demands")
    ties: Literal["average", "resolved"] = option("average", "rows with equal totals: in random or in the worst order")
    horizon: Positive | None = option(None, "with data.time_to_event: time by which events count; else their median")
    time_limit: Positive = option(60.0, "seconds for the search")
    ranges: NotNegative = option(10.0, "seconds for the places of rows over all good cards; 0: none", free=True)

    def clashes(self) -> Iterator[Finding]:
        """Check what goes together: questions and points; and refuse rank weights, which fit lists of one length."""
        if self.statistic == LOG_LOSS:
            left_out = f"must be left out with statistic {LOG_LOSS}"
            yield from self.broken(
                ("demands", self.demands, left_out),
                ("within", self.within, left_out),
                ("horizon", self.horizon, left_out),
                ("ties", self.ties != "average", f"must be average with statistic {LOG_LOSS}"),
            )
            return
        length = RankStatistic.parse(self.statistic).length
        many = self.max_questions > MOST_QUESTIONS
        wrong = [*self.broken(
            ("statistic", length is not None, "cannot be weights(...): they fit lists of one length only"),
            ("max_questions", many, f"must be <= {MOST_QUESTIONS} for a rank statistic"),
            ("least_points", self.least_points > self.points, f"must be at most card.points ({self.points})"),
        )]  # fmt: skip
        yield from wrong
        if wrong:
            return
        options: dict[str, Any] = {"points": self.points, "max_nonzeros": self.max_questions, "ties": self.ties}
        kind, of = RankStatistic.parse(self.statistic).kind.labels, np.arange(4) % 2
        labels = {"labels": of, "times": survival_labels(np.arange(4), of), "treatments": uplift_labels(of, of)}[kind]
        try:
            CardProblem(np.eye(4), labels, self.statistic, self.C, **options)
        except ValueError as error:
            yield Finding("max_questions", str(error).removeprefix("max_nonzeros "), self.max_questions)


class StatisticsConfig(Section):
    """Rank statistics to report on the training and test sets, while training and in the table."""

    report: Several[Statistic] = option(("dcg", "auc"), "further statistics to report; dcg@10 and mrr for grades")
    gain: GainName = option("exp2", "gain of graded labels: exp2 is 2^label - 1, linear the label")
    empty: Literal["skip", 0, 1] = option("skip", "value of queries without a label above 0; skip leaves them out")

    def clashes(self) -> Iterator[Finding]:
        """Refuse a user's own rank weights: they fit a list of one length, not both sets."""
        for at, name in enumerate(self.report):
            if RankStatistic.parse(name).length is not None:
                yield Finding(f"report[{at}]", "cannot be weights(...): they fit lists of one length only", name)


class AnswerConfig(Section):
    """The page that `ltr rank` and `ltr run` make: which rows to visit, and how many hits to expect."""

    visits: Count | None = option(None, "rows to visit, of each query; for ltr run exact.top_k by default", free=True)
    id: _Name = option(None, "column of your table that names a row; found by its values when left out", free=True)
    new: _Name = option(
        None,
        "table of the rows to rank, relative to the config file; when left out the rows of data.path without a label, "
        "and if there are none all its rows (ltr rank) or the test set (ltr run)",
        free=True,
    )
    new_values: bool = option(False, "rank even if most rows have texts that no labelled row had", free=True)
    price: bool | None = option(
        None, "state what constraints cost in hits, by a second fit; by default up to 2,000 rows", free=True
    )


def _logger(text: str) -> str:
    if text != "tensorboard" and not re.fullmatch(r"[\w.]+:\w+", text):
        raise ValueError("must be tensorboard, or module:Class for a logger of your own")
    return text


_Loggers = Several[Annotated[StrictStr, AfterValidator(_logger)]]
_Every = Annotated[int | Literal["auto"], _whole_or("auto", 1)]


class TrackingConfig(Section):
    """What is written while training, beside the JSON lines of every logged value."""

    loggers: _Loggers = option(
        ("tensorboard",), "where values, texts and pictures go, beside JSON lines; also your `module:Class`", free=True
    )
    every: _Every = option(
        "auto",
        "log every this many steps, and the last; auto: while that takes 5 seconds or 5 % of the time",
        free=True,
    )
    figures: bool = option(True, "draw the ranked list before and after reranking; never with queries", free=True)
