"""Yes/no questions about the columns of a table: thresholds of numbers, categories, missing values.

A question is a small rule about one cell of a row, such as ``age >= 60``. A missing cell (empty, ``None``, ``NaN``, or
text of white space alone) answers no to all questions but ``age is missing``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ltr.checks import as_float, as_sequence, check_whole, is_whole, one_of
from ltr.data.columns import Column, columns_of, text_of, yes_of
from ltr.data.forms import NumberForm
from ltr.data.kinds import MOST_VALUES, RARE

if TYPE_CHECKING:
    from pydantic import ConfigDict

Operator = Literal[">=", "=", "not in", "missing"]
BoolArray = NDArray[np.bool_]
Cuts = int | Mapping[str, int | Sequence[float]]

_CUTS = 5  # thresholds of columns that `cuts` does not name

STRICT: ConfigDict = {"extra": "ignore", "allow_inf_nan": False}
"""How pydantic, by which `Card.from_dict` reads files, checks numbers."""


@dataclass(frozen=True)
class Question:
    """A yes/no question about one column; raises ValueError for a value that does not fit the operator.

    Args:
        column: name of the column.
        operator: ``">="`` (the number in the cell is at least `value`), ``"="`` (the text of the cell is `value`),
            ``"not in"`` (the cell is not missing, and its text is none of `value`), or ``"missing"``.
        value: a number, a text, some texts, or None, in this order of operators. As text, whole numbers have no
            decimals, booleans are ``true`` and ``false``, and white space around a text is left out.
        decimal, unit: decimal mark of texts that are numbers, empty where none was seen, None where cells are texts;
            what stands beside each number, such as ``"%"``.

    Examples:
        >>> question = Question("age", ">=", 60)
        >>> question.name, question.answers({"age": [71, 59.5, None]}).tolist()
        ('age >= 60', [True, False, False])
    """

    __pydantic_config__ = STRICT

    column: str
    operator: Operator
    value: int | float | str | tuple[str, ...] | None = None
    decimal: str | None = "."
    unit: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise ValueError(f"column must be a name, got {self.column!r:.80}")
        one_of("operator", self.operator, get_args(Operator))
        if self.decimal not in (".", ",", "", None):
            raise ValueError(f"decimal must be '.', ',', '' or None, got {self.decimal!r:.80}")
        texts = isinstance(self.value, tuple) and all(isinstance(value, str) for value in self.value)
        rule, fits = {
            ">=": ("a finite number", not isinstance(self.value, bool) and math.isfinite(as_float(self.value))),
            "=": ("a text", isinstance(self.value, str)),
            "not in": ("texts", texts),
            "missing": ("None", self.value is None),
        }[self.operator]
        if not fits:
            raise ValueError(f"value must be {rule} for the operator {self.operator!r}, got {self.value!r:.80}")

    @property
    def name(self) -> str:
        """The question as people read it."""
        if self.operator == "missing":
            return f"{self.column} is missing"
        if isinstance(self.value, tuple):
            return f"{self.column} = {'another value' if 'other' in self.value else 'other'}"
        return f"{self.column} {self.operator} {text_of(self.value)}"

    def answers(self, table: Any) -> BoolArray:  # noqa: ANN401 (a frame of any library, or a mapping of columns)
        """Return the answer of each row, (n,); raise ValueError for a missing column, or text in place of numbers."""
        texts = self.operator in ("=", "not in") or self.decimal is None
        form = NumberForm(self.decimal or "", self.unit)
        column = columns_of(table, (self.column,))[self.column].read_as("text" if texts else form)
        if self.operator == "missing":
            return column.missing
        if isinstance(self.value, tuple):
            return ~column.missing & ~np.isin(column.texts, [text_of(value) for value in self.value])
        if self.operator == "=":
            return ~column.missing & (column.texts == text_of(self.value))
        if column.numbers is None:
            row, cell = column.first_other()
            what = "numbers" if form.plain else form.describe()
            raise ValueError(f"column {self.column!r} must hold {what} or missing values, got {cell!r} in row {row}")
        with np.errstate(invalid="ignore"):
            return np.asarray(column.numbers >= as_float(self.value))


class Questions(TransformerMixin, BaseEstimator):
    """Turn a table into yes/no questions, zeros and ones, as a scikit-learn transformer.

    A column of numbers is asked for thresholds, one of texts for its values, and one of two values for one of them.
    Missing values are a question of their own. Questions that all training rows answer alike, and those that equal an
    earlier one or its opposite, are left out.

    Args:
        cuts: largest number of thresholds of a column of numbers, rounded quantiles of the training rows; or a mapping
            such as ``{"age": [40, 60], "hours": 8}`` of thresholds, or their number, by column; the others get 5.
        forbidden: names of columns and questions that are never asked.

    Attributes:
        questions_, rules_: the questions, (q,), by name and as `Question` objects.
        groups_: number of the column of each question, (q,).
        left_out_: reason for each column and question that was left out, by name.

    Examples:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [31, 58, None, 64], "mode": ["fast", "slow", "fast", "fast"]})
        >>> questions = Questions(cuts={"age": [60]}).fit(table)
        >>> questions.questions_
        ['age >= 60', 'age is missing', 'mode = slow']
        >>> questions.transform(pd.DataFrame({"mode": ["idle", "slow"], "age": [70, 20]})).tolist()
        [[1, 0, 0], [0, 0, 1]]
    """

    questions_: list[str]
    rules_: tuple[Question, ...]
    groups_: NDArray[np.int64]
    left_out_: dict[str, str]
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    def __init__(self, cuts: Cuts = _CUTS, *, forbidden: Sequence[str] = ()) -> None:
        self.cuts = cuts
        self.forbidden = forbidden

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def fit(self, X: Any, y: ArrayLike | None = None) -> Questions:  # noqa: ANN401 (a frame of any library)
        """Choose the questions for a frame, a mapping of columns, or a numeric array, (n, d); values may be missing."""
        forbidden = self._checked_parameters()
        columns = self._columns(X, reset=True)
        cuts = self.cuts if isinstance(self.cuts, Mapping) else {}
        unknown = [str(name) for name in cuts if name not in columns]
        if unknown:
            raise ValueError(f"cuts must name columns of X, got {', '.join(map(repr, unknown))}; it has {[*columns]}")
        self.left_out_ = {}
        names: set[str] = set()
        kept: dict[bytes, tuple[Question, int]] = {}  # by answers, with the number of the column
        for number, column in enumerate(columns.values()):
            for question in () if column.name in forbidden else self._asked(column):
                if question.name in names:
                    raise ValueError(f"X must give different questions, got {question.name!r} twice: rename a column")
                names.add(question.name)
                if question.name in forbidden:
                    continue
                answers = question.answers(columns)
                equal = kept.get(answers.tobytes()) or kept.get((~answers).tobytes())
                if answers.all() or not answers.any():
                    if question.operator != "missing":
                        self.left_out_[question.name] = "all training rows answer alike"
                elif equal is not None:
                    self.left_out_[question.name] = f"the same as {equal[0].name!r}, or its opposite"
                else:
                    kept[answers.tobytes()] = question, number
        wrong = [name for name in forbidden if name not in columns and name not in names]
        if wrong:
            raise ValueError(f"forbidden must name columns or questions, got {', '.join(map(repr, wrong))}")
        if not kept:
            raise ValueError("X must have a column that varies and gives a question, got none")
        self.rules_ = tuple(question for question, _ in kept.values())
        self.groups_ = np.array([number for _, number in kept.values()], dtype=np.int64)
        self.questions_ = [question.name for question in self.rules_]
        return self

    def transform(self, X: Any) -> NDArray[np.uint8]:  # noqa: ANN401
        """Return the answers, zeros and ones, (n, q), of a table with the columns that the questions ask for."""
        check_is_fitted(self)
        columns = self._columns(X, reset=False)
        return np.column_stack([question.answers(columns) for question in self.rules_]).astype(np.uint8)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """Return the names of the questions, (q,)."""
        check_is_fitted(self)
        if input_features is not None and len(input_features) != self.n_features_in_:
            raise ValueError(f"input_features should have length equal to number of features ({self.n_features_in_})")
        return np.array(self.questions_, dtype=object)

    def _checked_parameters(self) -> tuple[str, ...]:
        """Return the names that are forbidden, once all parameters are checked."""
        each = self.cuts.items() if isinstance(self.cuts, Mapping) else ()
        if not isinstance(self.cuts, Mapping):
            check_whole("cuts", self.cuts, 1, ", or a mapping by column")
        for name, own in each:
            if not is_whole(own) or own < 1:
                given = as_sequence(f"cuts[{name!r}]", own, "numbers")  # type: ignore[arg-type]
                if not given or not all(math.isfinite(as_float(cut)) for cut in given):
                    raise ValueError(f"cuts[{name!r}] must be an integer >= 1 or finite numbers, got {own!r:.80}")
        return as_sequence("forbidden", self.forbidden, "names")

    def _columns(self, X: Any, *, reset: bool) -> dict[str, Column]:  # noqa: ANN401
        """Return the columns of the fit, and record their names there."""
        framed, least = isinstance(X, Mapping) or hasattr(X, "columns"), 2 if reset else 1
        if not framed or not (reset or hasattr(self, "feature_names_in_")):
            how: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "reset": reset}
            array = validate_data(self, X, ensure_min_samples=least, **how)
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(array.shape[1])])
            return columns_of(dict(zip(names, array.T, strict=True)))
        columns = columns_of(X, None if reset else sorted({question.column for question in self.rules_}))
        if (n := len(next(iter(columns.values()), ()))) < least:
            raise ValueError(f"X must have at least {least} rows and a column, got {n} of {len(columns)}")
        if reset:
            columns = {name: one.read_as("text") if one.codes else one for name, one in columns.items()}
            self.n_features_in_ = len(columns)
            self.feature_names_in_ = np.array(list(columns), dtype=object)
        return columns

    def _asked(self, column: Column) -> Iterator[Question]:
        """Yield all questions about a column of the training rows."""
        name, numbers = column.name, column.numbers
        cuts = self.cuts.get(name, _CUTS) if isinstance(self.cuts, Mapping) else self.cuts
        if column.date_forms(1930):
            raise ValueError(
                f"column {name!r} must hold numbers, texts or booleans, not dates, got {next(iter(column.counts))}: "
                "turn it into a number, such as days before today or the month, or drop it"
            )
        if column.ambiguous:
            rule = "must hold numbers that can be read in one way"
            raise ValueError(f"column {name!r} {rule}, got {column.ambiguous!r}: write it without a mark for thousands")
        form = None if numbers is None else column.form
        how: dict[str, Any] = {"decimal": None} if form is None else {"decimal": form.decimal, "unit": form.unit}
        values = column.counts if numbers is None or column.different <= 2 else {}
        if not isinstance(cuts, int | np.integer):
            for cut in sorted({as_float(cut) for cut in cuts}):
                yield Question(name, ">=", _number(cut), **how)
        elif len(values) == 2 and (set(values) in ({"0", "1"}, {"true", "false"}) or numbers is None):
            rarer = min(values, key=lambda text: (values[text], text))
            yield Question(name, "=", yes_of(values) or rarer)
        elif numbers is not None:
            known = numbers[~column.missing]
            if not np.isfinite(known).all():
                raise ValueError(f"column {name!r} must hold finite numbers or missing values, got inf")
            for cut in _thresholds(known, cuts):
                yield Question(name, ">=", _number(cut), **how)
        else:
            frequent = column.frequent(RARE, MOST_VALUES)
            if not frequent:
                self.left_out_[name] = f"{len(values)} different texts, none of them frequent: join some, or drop it"
            for text in frequent:
                yield Question(name, "=", text)
            if 0 < len(frequent) < len(values):
                yield Question(name, "not in", tuple(frequent))
        yield Question(name, "missing", **how)


def _number(value: float) -> float:
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)


def _thresholds(values: NDArray[np.float64], most: int) -> list[float]:
    """Return thresholds: all values but the smallest where these are few, otherwise rounded quantiles."""
    different = np.unique(values)
    if len(different) <= most + 1:
        return [float(value) for value in different[1:]]
    quantiles = np.quantile(values, np.arange(1, most + 1) / (most + 1), method="inverted_cdf")
    places = np.unique(np.maximum(np.searchsorted(different, quantiles), 1))
    return [roundest(float(different[place - 1]), float(different[place])) for place in places]


def roundest(low: float, high: float) -> float:
    """Return the number above `low`, and at most `high`, with the fewest digits: 60 for 58.3 and 61.2."""
    top = Decimal(repr(float(high)))
    begin = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    for exponent in range(begin, begin - 20, -1):
        for step in (Decimal(1).scaleb(exponent), Decimal(5).scaleb(exponent - 1)):
            found = float((top / step).to_integral_value("ROUND_FLOOR") * step)
            if low < found <= high:
                return found + 0.0
    return float(high)
