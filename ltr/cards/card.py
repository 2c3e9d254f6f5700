"""A scoring system: questions with points, what each total means, and what is proven about the ranking.

What a total means on some rows is how many rows have it, and what happened to them. Of plain labels that is the share
of positives, of times until an event the share of rows with their event by a horizon (Kaplan-Meier), of treatments the
difference of the mean outcomes of treated rows and others.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ltr.cards.questions import STRICT, Question, columns_of
from ltr.checks import is_whole
from ltr.files import json_text, write_atomic
from ltr.outcomes import Times, Treatments, chance_of, effect_interval, kaplan_meier, label_kind, read_labels, wilson
from ltr.statistics import LOG_LOSS, RankStatistic

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

IntArray = NDArray[np.int64]
Estimate = tuple[float, float, float]
"""A number and the ends of its 90 % interval."""

MOST_POINTS = 1_000_000_000
"""Largest size of the points of a question: totals are integers of 64 bits."""
_FORMAT, _VERSION = "ltr card", 1
_HOW = (
    "The total of a row is the sum of the points of the questions that it answers yes. Operators: '>=': the number in "
    "the column, written with the decimal mark and the unit given, is at least the value. '=': the text of the cell is "
    "the value; whole numbers are written without decimals, booleans as true and false. 'not in': the cell is not "
    "missing, and its text is none of the values. "
    "'missing': the cell is empty. An empty cell answers no to all other questions."
)
_FORM = {"decimal": ".", "unit": ""}  # how numbers are written, with what is left out of a file
_EQUAL = 1e-9  # relative difference of value and bound up to which they are the same
_CURVES = 5  # most groups of totals with a curve of their own
_STEPS = 60  # most steps of a curve


@dataclass(frozen=True)
class Curve:
    """The Kaplan-Meier curve of rows whose totals lie in a range: the share without an event until each time."""

    __pydantic_config__ = STRICT

    totals: tuple[int, int]
    rows: int
    times: tuple[float, ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times) != len(self.shares):
            raise ValueError(f"shares must be one for each of {len(self.times)} times, got {len(self.shares)}")


@dataclass(frozen=True)
class Counts:
    """How many rows of a data set have each total, descending, and what happened to them.

    `positives` counts the rows with a label above 0, with an event, or with an outcome above 0. `value` and `beside`
    are the statistic of the totals and of the scores that the card is compared with, None where undefined. Of times and
    treatments, `estimates` has what `Card.measure` names for each total, None where it is unknown, and `curves` those
    of groups of totals, the largest first. Raises ValueError for several lengths, or more positives than rows.
    """

    __pydantic_config__ = STRICT

    name: str
    totals: tuple[int, ...]
    rows: tuple[int, ...]
    positives: tuple[int, ...]
    value: float | None = None
    beside: float | None = None
    estimates: tuple[Estimate | None, ...] = ()
    curves: tuple[Curve, ...] = ()

    def __post_init__(self) -> None:
        if len({*map(len, (self.totals, self.rows, self.positives))}) > 1:
            raise ValueError("counts must hold lists of one length")
        if len(self.estimates) not in (0, len(self.totals)):
            raise ValueError(f"counts must hold an estimate for each total, got {len(self.estimates)}")
        if any(not 0 <= positives <= rows for rows, positives in zip(self.rows, self.positives, strict=True)):
            raise ValueError("counts must not have more positives than rows")

    def rows_of(self, total: int) -> int:
        """Return the number of rows with a total."""
        return self.rows[self.totals.index(total)] if total in self.totals else 0

    def estimate(self, total: int) -> Estimate | None:
        """Return the share of positives of a total, or what stands for it, with its interval; None where unknown."""
        if total not in self.totals:
            return None
        at = self.totals.index(total)
        if self.estimates:
            return self.estimates[at]
        return (self.positives[at] / self.rows[at], *wilson(self.positives[at], self.rows[at]))

    def chances(self) -> tuple[Estimate, ...]:
        """Return the share of positives for each total, pooled so that it does not fall as totals rise.

        Neighbouring totals whose shares fall are pooled (isotonic regression), and have the interval of all their rows.
        """
        blocks: list[list[int]] = []  # positives, rows and totals, the largest totals first
        for positives, rows in zip(self.positives, self.rows, strict=True):
            blocks.append([positives, rows, 1])
            while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] <= blocks[-1][0] * blocks[-2][1]:
                last = blocks.pop()
                blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
        found = (((positives / rows, *wilson(positives, rows)), size) for positives, rows, size in blocks)
        return tuple(one for one, size in found for _ in range(size))

    @property
    def log_loss(self) -> float:
        """The mean of ``-log`` of the chance of what happened, with `chances`: how well these rows are foretold."""
        loss = 0.0
        for (chance, _, _), rows, positives in zip(self.chances(), self.rows, self.positives, strict=True):
            for number, share in ((positives, chance), (rows - positives, 1.0 - chance)):
                loss -= number * math.log(share) if number else 0.0
        return loss / sum(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain values, without the fields that plain labels do not have."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("estimates", "curves")}


def count(
    name: str,
    totals: NDArray[np.int64],
    y: NDArray[Any] | Times | Treatments,
    horizon: float | None,
    *,
    value: float | None,
    beside: float | None,
) -> Counts:
    """Return the counts of rows with these totals and labels; by `horizon` the share of events is told."""
    different = np.unique(totals)[::-1]
    positive = y.event if isinstance(y, Times) else y.outcome > 0 if isinstance(y, Treatments) else y > 0
    members = [totals == total for total in different]
    rows, positives = (tuple(int(of[one].sum()) for one in members) for of in (np.ones(len(totals)), positive))
    estimates: tuple[Estimate | None, ...] = ()
    curves: tuple[Curve, ...] = ()
    if isinstance(y, Times):
        assert horizon is not None
        estimates = tuple(_events_by(y.time[one], y.event[one], horizon) for one in members)
        curves = _curves(totals, y)
    if isinstance(y, Treatments):
        estimates = tuple(effect_interval(y.outcome[one], y.treatment[one]) for one in members)
    return Counts(name, tuple(map(int, different)), rows, positives, value, beside, estimates, curves)


def _events_by(time: NDArray[np.float64], event: NDArray[np.bool_], horizon: float) -> Estimate | None:
    """Return the share of rows with an event by a time; None where no row was seen as long, unless all had it."""
    curve = kaplan_meier(time, event, level=0.9)
    at = int(np.searchsorted(curve.time, horizon, "right")) - 1
    share = float(curve.share[at]) if at >= 0 else 1.0
    if share > 0 and not np.any(time >= horizon):
        return None
    if share in (0.0, 1.0):
        ends = wilson(0, len(time))  # as for a share, where the variance says nothing
        return (1 - share, *(ends if share == 1.0 else (1 - ends[1], 1.0)))
    return 1 - share, 1 - float(curve.upper[at]), 1 - float(curve.lower[at])


def _curves(totals: NDArray[np.int64], y: Times) -> tuple[Curve, ...]:
    """Return the curves of up to five groups of totals with about as many rows each."""
    different, counts = np.unique(totals, return_counts=True)
    group = np.minimum((np.cumsum(counts) - counts / 2) * _CURVES // len(totals), _CURVES - 1)
    found = []
    for number in np.unique(group)[::-1]:
        own = different[group == number]
        members = (totals >= own[0]) & (totals <= own[-1])
        curve = kaplan_meier(y.time[members], y.event[members])
        kept = np.unique(np.linspace(0, len(curve.time) - 1, min(len(curve.time), _STEPS)).astype(np.int64))
        steps, shares = [0.0, *curve.time[kept].tolist()], [1.0, *curve.share[kept].tolist()]
        if (last := float(y.time[members].max())) > steps[-1] or len(steps) == 1:
            steps.append(last)
            shares.append(shares[-1])
        found.append(Curve((int(own[0]), int(own[-1])), int(members.sum()), tuple(steps), tuple(shares)))
    return tuple(found)


@dataclass(frozen=True)
class Searched:
    """What a card was chosen from, which is what its proof is about; `conditions` are in words."""

    __pydantic_config__ = STRICT

    questions: int
    max_questions: int
    points: int
    C: float = 0.0
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Card:
    r"""A scoring system: add up the points of the questions that a row answers yes.

    Attributes:
        questions, points: the questions, which must differ, and a whole number of points for each.
        label: what is predicted, in a word or two.
        counts: training rows, and others that `with_rows` added, by total.
        statistic, ties, gain: what the card was chosen for, see `CardRanker`.
        value: the statistic on the training rows, of a risk score minus its log loss, minus the price of the questions;
            None for a card made by hand.
        bound, status, searched: no card of those searched has a larger value; how the search ended.
        beside: name of the scores that the card is compared with, such as those of logistic regression.
        missing: texts that stand for missing values in the table it was made from, beside empty cells, NA and null.
        horizon: of times until an event, the time by which the share of events is told.
        intercept: of a risk score, which needs one: totals t have the chance ``1 / (1 + exp(-(intercept + t)))``.

    Examples:
        >>> card = Card((Question("age", ">=", 60), Question("smoker", "=", "yes")), (2, 1))
        >>> card.totals({"age": [71, 45, None], "smoker": ["no", "yes", "yes"]}).tolist()
        [2, 1, 1]
        >>> print(card.to_text())
        Card for positive
        <BLANKLINE>
          age >= 60                                                               +2
          smoker = yes                                                            +1
    """

    __pydantic_config__ = STRICT

    questions: tuple[Question, ...]
    points: tuple[int, ...]
    label: str = "positive"
    counts: tuple[Counts, ...] = ()
    statistic: str = "auc"
    ties: str = "average"
    gain: str = "exp2"
    value: float | None = None
    bound: float | None = None
    status: str | None = None
    searched: Searched | None = None
    beside: str = ""
    missing: tuple[str, ...] = ()
    horizon: float | None = None
    intercept: int | None = None

    def __post_init__(self) -> None:
        if (self.statistic == LOG_LOSS) != is_whole(self.intercept):
            rule = f"a whole number for a card of the statistic {LOG_LOSS}, None for others"
            raise ValueError(f"intercept must be {rule}, got {self.intercept!r:.80} for {self.statistic}")
        if len(self.questions) != len(self.points):
            raise ValueError(f"points must be one for each of {len(self.questions)} questions, got {self.points!r:.80}")
        if not all(is_whole(p) and -MOST_POINTS <= p <= MOST_POINTS for p in self.points):
            rule = f"whole numbers from -{MOST_POINTS} to {MOST_POINTS}"
            raise ValueError(f"points must be {rule}, got {self.points!r:.80}")
        if len({question.name for question in self.questions}) < len(self.questions):
            raise ValueError(f"questions must differ, got {[question.name for question in self.questions]!r:.200}")

    def __repr__(self) -> str:
        parts = ", ".join(f"{q.name!r}: {p:+d}" for q, p in zip(self.questions, self.points, strict=True))
        value = None if self.value is None else self.value * (1 if self.intercept is None else -1)
        proof = "" if value is None else f"; {self.statistic} {value:.4g}, {self.status}"
        return f"Card({parts or 'no question'}{proof})"

    def __str__(self) -> str:
        return self.to_text()

    # rows

    def explain(self, table: Any) -> pd.DataFrame:  # noqa: ANN401 (a frame of any library)
        """Return the points of each row of a frame, or mapping of columns, by question, and their sum as ``total``."""
        import pandas as pd

        columns = columns_of(table, list(dict.fromkeys(q.column for q in self.questions)) or None)
        n = len(next(iter(columns.values())))
        found = {q.name: q.answers(columns) * p for q, p in zip(self.questions, self.points, strict=True)}
        points = pd.DataFrame(found, index=getattr(table, "index", range(n)), dtype=np.int64)
        total = points.sum(axis=1).astype(np.int64)
        points["total"] = total
        return points

    def totals(self, table: Any) -> IntArray:  # noqa: ANN401
        """Return the total of each row, int64 of shape (n,); see `explain` for the table."""
        total: IntArray = self.explain(table)["total"].to_numpy()
        return total

    def statistic_on(self, table: Any, y: ArrayLike) -> float | None:  # noqa: ANN401
        """Return the statistic of the totals of some rows, None where it is undefined; see `with_rows`."""
        return self.with_rows("", table, y).counts[-1].value

    def with_rows(self, name: str, table: Any, y: ArrayLike) -> Card:  # noqa: ANN401
        """Return this card with the totals of labelled rows, such as those of a test set, under a new name."""
        return self.with_totals(name, self.totals(table), y)

    def with_totals(self, name: str, totals: ArrayLike, y: ArrayLike, beside: ArrayLike | None = None) -> Card:
        """Return this card with labelled rows whose totals are known; `beside` are scores to compare them with."""
        if name in [counts.name for counts in self.counts]:
            raise ValueError(f"name must be a new one, got {name!r}")
        found, labels = np.asarray(totals, dtype=np.int64), self._labels(y)
        if found.shape != (len(labels),):
            raise ValueError(f"y must hold a label >= 0 for each of {len(found)} rows, got {len(labels)} labels")
        compared = None if beside is None else self._value(np.asarray(beside, dtype=np.float64), labels)
        own = self._value(found if self.intercept is None else found + self.intercept, labels)
        added = count(name, found, labels, self.horizon, value=own, beside=compared)
        return replace(self, counts=(*self.counts, added))

    def _labels(self, y: ArrayLike) -> NDArray[np.float64] | Times | Treatments:
        """Return labels of the kind that the statistic is about."""
        check_labels(self.statistic, y)
        found = read_labels(y)
        if isinstance(found, Times | Treatments):
            return found
        labels = np.array(found, dtype=np.float64)
        if labels.ndim != 1 or not np.all(labels >= 0):
            raise ValueError(f"y must hold a label >= 0 for each row, got {y!r:.80}")
        if self.intercept is not None and not np.isin(labels, (0, 1)).all():
            raise ValueError(f"y must hold the labels 0 and 1 for a risk score, got {y!r:.80}")
        return labels

    def _value(self, scores: NDArray[Any], labels: NDArray[np.float64] | Times | Treatments) -> float | None:
        if self.intercept is not None:
            assert isinstance(labels, np.ndarray)
            return -float(np.logaddexp(0.0, np.where(labels == 1, -scores, scores)).mean()) if len(labels) else None
        import torch

        from ltr.metrics import rank_statistic

        if isinstance(labels, Times):
            return labels.c_index(scores, half=self.ties == "average")
        if isinstance(labels, Treatments):
            return labels.auuc(scores)
        gain: Any = self.gain
        ties: Any = self.ties
        given = torch.from_numpy(scores.astype(np.float64))
        value = float(rank_statistic(given, torch.from_numpy(labels), self.statistic, gain=gain, ties=ties))
        return None if math.isnan(value) else value

    @property
    def measure(self) -> str:
        """What a total tells of its rows: the share of positives, of events by the horizon, or the effect."""
        if self.horizon is not None:
            return f"event by {self.horizon:g}"
        if self.intercept is not None:
            return "share"
        return "effect" if RankStatistic.parse(self.statistic).kind.labels == "treatments" else "share"

    # what a total promises

    @cached_property
    def chances(self) -> dict[int, Estimate]:
        """The chance of a positive at each total of the first rows of the table, with the interval of the share.

        It is that of `Counts.chances`, or of the risk score, and empty for labels of two fields (`measure`).
        """
        if not self.counts or self.measure != "share":
            return {}
        first = self.counts[0]
        if self.intercept is None:
            return dict(zip(first.totals, first.chances(), strict=True))
        by_total = zip(first.totals, self.chance(first.totals).tolist(), first.positives, first.rows, strict=True)
        return {total: (chance, *wilson(hits, rows)) for total, chance, hits, rows in by_total}

    def chance(self, totals: ArrayLike) -> NDArray[np.float64]:
        """Return the chance of a positive for rows with these totals, (n,); raise ValueError without `chances`.

        It is that of the nearest total below, or above, in the table; a risk score has one for every total.
        """
        if self.intercept is not None:
            found: NDArray[np.float64] = chance_of(self.intercept + np.asarray(totals, dtype=np.float64))
            return found
        if not self.chances:
            raise ValueError("the card tells no chances: they need rows with plain labels in its table")
        known = sorted(self.chances)
        at = np.maximum(np.searchsorted(known, np.asarray(totals, dtype=np.int64), "right") - 1, 0)
        return np.array([self.chances[total][0] for total in known])[at]

    # what is proven

    @property
    def below(self) -> float:
        """How far the value is below the bound, as a share of it; 0 for a card that is proven to be the best."""
        if self.bound is None or self.value is None or self.bound - self.value <= _EQUAL * abs(self.bound):
            return 0.0
        return (self.bound - self.value) / abs(self.bound) if self.bound else math.inf

    @property
    def proof(self) -> str:
        """A sentence on what is proven of the card; empty for a card made by hand."""
        if self.searched is None or self.bound is None or self.value is None:
            return ""
        s, loss = self.searched, self.intercept is not None
        name = statistic_name(self.statistic)
        name += f" {'plus' if loss else 'minus'} {s.C:g} for each question" if s.C else ""
        better = f"has a {'smaller' if loss else 'larger'} {name}"
        most = f"at most {s.max_questions} of {s.questions} questions"
        which = f"card of {most} with points from {-s.points} to {s.points}"
        which += f" ({'; '.join(s.conditions)})" if s.conditions else ""
        if self.status == "optimal" and not self.below:
            return f"proven: no {which} {better}"
        if self.status == "optimal":
            best = f"{'above the smallest' if loss else 'below the largest'} {name}"
            return f"proven: at most {100 * self.below:.2g} % {best} of any {which}"
        value, bound = (abs(number) if loss else number for number in (self.value, self.bound))
        return f"not proven ({self.status}): no {which} {better} than {bound:.6g}; this one has {value:.6g}"

    # pictures and texts

    def to_text(self) -> str:
        """Return the card as plain text of at most 80 columns."""
        return _rendering().text(self)

    def to_markdown(self) -> str:
        """Return the card as Markdown."""
        return _rendering().markdown(self)

    def to_html(self) -> str:
        """Return the card as an HTML page without scripts, pictures or links."""
        return _rendering().html(self, page=True)

    def plot(self) -> Figure:
        """Return the card and the share of positives by total, with 90 % intervals, as a matplotlib figure."""
        return _rendering().figure(self)

    def _repr_html_(self) -> str:
        return _rendering().html(self, page=False)

    # files

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain values, as `save` writes it."""
        rules = [
            {"question": q.name, "points": p, **{k: v for k, v in asdict(q).items() if (k, v) not in _FORM.items()}}
            for q, p in zip(self.questions, self.points, strict=True)
        ]
        fields = ("label", "statistic", "ties", "gain", "value", "bound", "status", "beside", "horizon", "intercept")
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "how": _HOW,
            "questions": rules,
            "counts": [counts.to_dict() for counts in self.counts],
            **{name: getattr(self, name) for name in fields},
            "missing": list(self.missing),
            "searched": None if self.searched is None else asdict(self.searched),
            "proof": self.proof,
            "chances": {str(total): list(one) for total, one in self.chances.items()},
        }

    @classmethod
    def from_dict(cls, content: Any) -> Card:  # noqa: ANN401 (anything that was in a file)
        """Return the card that `to_dict` described; raise ValueError for anything else."""
        if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
            raise ValueError(f"not a card: it must be an object whose format is {_FORMAT!r}")
        if content.get("version") != _VERSION:
            raise ValueError(f"the version of the card must be {_VERSION}, got {content.get('version')!r:.40}")
        from pydantic import TypeAdapter, ValidationError

        try:
            entries = content["questions"]
            text = json.dumps({**content, "points": [entry["points"] for entry in entries]})
            card = TypeAdapter(cls).validate_json(text, strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ValueError(f"a damaged card: {place}: {first['msg']}") from None
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"a damaged card: {type(error).__name__} {error!s:.80}") from None
        for entry, question in zip(entries, card.questions, strict=True):
            if entry.get("question") != question.name:
                raise ValueError(f"a damaged card: question {entry.get('question')!r:.80} asks {question.name!r}")
        return card

    def save(self, path: str | Path) -> None:
        """Write the card to a JSON file with all fields, or where the name ends in ``.csv`` its questions, one a line.

        The CSV has ``decimal, unit``, too, where numbers are written in another way than by programs.
        """
        if str(path).lower().endswith(".csv"):
            text = io.StringIO()
            plain = all((q.decimal, q.unit) == (*_FORM.values(),) for q in self.questions)
            rows: list[list[Any]] = [["question", "points", "column", "operator", "value", *([] if plain else _FORM)]]
            for q, p in zip(self.questions, self.points, strict=True):
                value = json.dumps(q.value, ensure_ascii=False) if isinstance(q.value, tuple) else q.value
                form = [] if plain else ["text" if q.decimal is None else q.decimal, q.unit]
                rows.append([q.name, p, q.column, q.operator, value, *form])
            csv.writer(text, lineterminator="\n").writerows(rows)
            content = text.getvalue()
        else:
            content = json_text(self.to_dict())
        write_atomic(Path(path), content.encode())

    @classmethod
    def load(cls, path: str | Path) -> Card:
        """Read a card from the JSON file that `save` wrote; raise ValueError for another file, or a damaged one."""
        try:
            return cls.from_dict(json.loads(Path(path).read_bytes().decode("utf-8-sig")))
        except (ValueError, RecursionError) as error:  # bad JSON and bad UTF-8 are both ValueErrors
            raise ValueError(f"{path}: {error}; Card.save and `ltr card` write cards as JSON files") from None


def _rendering() -> ModuleType:
    from ltr.cards import rendering  # loaded where a card is shown

    return rendering


def statistic_name(statistic: str) -> str:
    """Return the name of a statistic as people write it, such as ``"DCG@10"``."""
    word = statistic.partition("@")[0].partition("(")[0]
    if word in ("auc", "auuc", "dcg", "mrr"):
        return statistic.replace(word, word.upper(), 1)
    return {"c_index": "C-index", LOG_LOSS: "log loss"}.get(statistic, statistic)


def check_labels(statistic: str, y: ArrayLike) -> None:
    """Raise ValueError unless labels are of the kind that the statistic of a card is about."""
    if statistic != LOG_LOSS:
        RankStatistic.parse(statistic).check_kind(label_kind(y))
    elif (kind := label_kind(y)) != "labels":
        raise ValueError(f"statistic {LOG_LOSS} is about the labels 0 and 1, got labels of {kind}")
