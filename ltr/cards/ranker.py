"""The ranker that finds a card: questions about a table, the search with its proof, and all cards that are as good."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ltr.cards.card import Card, Searched, check_labels
from ltr.cards.conditions import INTERCEPT, checked_limits, named_conditions
from ltr.cards.questions import Cuts, Question, Questions
from ltr.cards.reference import Reference
from ltr.checks import as_float, check_flag, check_number, check_whole, one_of
from ltr.data.columns import text_of
from ltr.data.dataset import Features
from ltr.exact.cards import CardProblem, Ties
from ltr.exact.constraints import Demand
from ltr.exact.risk import RiskProblem
from ltr.exact.solution import Solution, Status
from ltr.exact.solve import solve
from ltr.exact.state import Limits
from ltr.list_demands import GivenDemands, ListDemand, OnTop, read_all_demands
from ltr.metrics.ranked import Ties as TiesOfMetric
from ltr.onnx_graph import OnnxGraph
from ltr.outcomes import Times, Treatments, label_kind, read_labels
from ltr.rankers.base import Ranker, all_or_nothing
from ltr.rankers.baselines import RankBoostRanker
from ltr.rankers.demanded import DemandOutcome, DemandPrice, ReachedDemand, not_met, refuse_settled, solve_under
from ltr.rankers.inputs import FloatArray, IntArray, Qid
from ltr.rankers.views import Explanation, ranked_frame
from ltr.ranks import GainName
from ltr.statistics import LOG_LOSS, RankStatistic
from ltr.threads import available_threads
from ltr.weight_constraints import RankerKind

if TYPE_CHECKING:
    import pandas as pd

    from ltr.data.preparation import TablePreparation
    from ltr.exact.certificate import Certificate

__all__ = ["CardRanker", "GoodCards"]

_HALVINGS = 20
_WITHIN = 0.02  # default of `within` for AUC and the C-index
_MOST_COMPARED = 5_000  # largest number of good cards of which one is taken
_TINY = 1e-300
_REMEDY = "Ask for less, or allow more questions, points or cuts"


@dataclass(frozen=True)
class GoodCards(Sequence[Card]):
    """The cards whose value is at least (1 - within) times the best one, best first, one for each order of the rows."""

    cards: tuple[Card, ...]
    within: float

    def __len__(self) -> int:
        return len(self.cards)

    def __getitem__(self, place: Any) -> Any:  # noqa: ANN401 (a card, or several for a slice)
        return self.cards[place]

    def shared(self) -> dict[str, float]:
        """Return the share of the cards that ask about each column, largest first; 1 for those in all good cards."""
        found = Counter(column for card in self.cards for column in {q.column for q in card.questions})
        return {name: found[name] / len(self) for name in sorted(found, key=lambda name: (-found[name], name))}

    def with_rows(self, name: str, table: Any, y: ArrayLike) -> GoodCards:  # noqa: ANN401 (a frame of any library)
        """Return the cards with labelled rows in their tables, see `Card.with_rows`."""
        return replace(self, cards=tuple(card.with_rows(name, table, y) for card in self.cards))

    def front(self) -> GoodCards:
        """Return the cards of which none has a larger statistic and a smaller log loss on the rows it was fitted to.

        Raises ValueError for cards that tell no chances.
        """
        if any(not card.chances for card in self.cards):
            raise ValueError("front needs cards that tell chances: their labels must be 0 and 1, or grades")
        found: list[Card] = []
        for card in sorted(self.cards, key=lambda card: (-(card.value or 0.0), card.counts[0].log_loss)):
            if not found or card.counts[0].log_loss < found[-1].counts[0].log_loss - 1e-12:
                found.append(card)
        return replace(self, cards=tuple(found))

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with a row for each card: statistic and log loss on each set of rows, points by question."""
        import pandas as pd

        rows, measures = [], dict[str, None]()
        for card in self.cards:
            values = {f"{card.statistic} ({counts.name})": counts.value for counts in card.counts}
            values |= {f"log loss ({counts.name})": counts.log_loss for counts in card.counts if card.chances}
            measures |= dict.fromkeys(values)
            rows.append({**values, **{q.name: p for q, p in zip(card.questions, card.points, strict=True)}})
        frame = pd.DataFrame(rows)
        points = [name for name in frame.columns if name not in measures]
        return frame[list(measures)].join(frame[points].fillna(0).astype(int))


@dataclass(eq=False, repr=False)
class CardRanker(Ranker):
    """Rank by a card: the few yes/no questions and small whole numbers of points with the largest rank statistic.

    The search (`ltr.exact.cards`) looks at all cards, so its answer is proven to be the best on the training rows.

    Args:
        statistic: what is maximised, and what `score` reports: ``"c_index"`` for times until an event, ``"auuc"`` for
            treatments. ``"log_loss"`` finds a risk score (`ltr.exact.risk`); `score` is then minus the log loss.
        max_questions: largest number of questions of a card, from 1 to 6; any number for ``"log_loss"``.
        points, least_points: largest and smallest size of the points of a question that the card asks.
        cuts, forbidden: see `Questions`.
        one_per_feature: whether a card may have only one question about each column, besides its being missing.
        within: largest loss of the card, as a share of the best value. Of all cards that are that good, the one whose
            totals correlate most with `reference_` is taken. None is 0.02 for AUC and the C-index, else 0.
        signs: ``"+"`` or ``"-"`` by column or question: thresholds of ``{"age": "+"}`` must not get points below 0.
            Values of text columns are named by question, ``{"mode = fast": "-"}``.
        point_limits: for ``"log_loss"``, least and largest points of columns and questions, such as ``{"age": (0, 3),
            "(Intercept)": (-9, 9)}``. Rank statistics take what ``signs`` and ``forbidden`` say, and no limit of the
            intercept.
        required: names of questions that every card must have.
        rules: mappings such as ``{"at_least": 1, "of": ["age", "smoker"]}`` or ``{"at_most": 2, "of": [...]}``, which
            with ``"when": [...]`` hold for cards that have one of these.
        one_direction: columns whose thresholds must not have points of both signs, or True for all columns.
        C: price of each question, on the scale of the statistic.
        demands: demands on the list of all training rows, as those of `ExactRanker`.
        ties: how rows with equal totals count: ``"average"`` over their orders, or ``"resolved"``, the worst order.
        horizon: of times until an event, the time by which the card tells the share of events; None for their median.
        limits: when to stop the search without a proof; None for the default `ltr.exact.Limits`.
        gain, normalize: gain of graded labels, and what `score` reports, see `Ranker`.

    Attributes:
        card_: the best card, with the training rows in its table, and what is proven of it.
        questions_: the fitted `Questions`.
        reference_: the regression on the answers to all questions whose statistic the card states beside its own.
        solution_: what the search found, with its bound; None in a ranker read from a file, as the next two.
        demands_: the `DemandOutcome`; None without demands.
        problem_: the `ltr.exact.cards.CardProblem` or `ltr.exact.risk.RiskProblem`; None in copies and pickles, too.

    Raises:
        ValueError: in `fit`, a parameter or data against its rule.

    Examples:
        >>> import pandas as pd
        >>> table = pd.DataFrame({"age": [34, 71, 66, 25, 80, 49], "pain": ["no", "yes", "yes", "yes", "no", "no"]})
        >>> ranker = CardRanker(max_questions=2, cuts={"age": [60]}).fit(table, [0, 1, 1, 0, 1, 0])
        >>> print(ranker.card_.proof)
        proven: no card of at most 2 of 2 questions with points from -5 to 5 has a larger AUC
        >>> ranker.predict(pd.DataFrame({"pain": ["no", None], "age": [61, None]})).tolist()
        [2.0, 0.0]
    """

    _FITTED = ("card_", "questions_", "reference_")
    _NOT_COPIED = ("problem_",)
    _HOW = "score = the total of card_, which says how"

    statistic: RankStatistic | str = "auc"
    max_questions: int = 4
    points: int = 5
    _: KW_ONLY
    cuts: Cuts = 5
    one_per_feature: bool = False
    within: float | None = None
    signs: Mapping[str, str] | None = None
    point_limits: Any = None
    least_points: int = 1
    required: Sequence[str] = ()
    rules: Sequence[Mapping[str, Any]] = ()
    one_direction: bool | Sequence[str] = False
    forbidden: Sequence[str] = ()
    C: float = 0.0
    demands: Sequence[str | Demand] = ()
    ties: Ties = "average"
    horizon: float | None = None
    limits: Limits | None = None
    gain: GainName = "exp2"
    normalize: bool = False

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        return tags

    @all_or_nothing
    def fit(
        self,
        X: Any,  # noqa: ANN401 (a frame of any library)
        y: ArrayLike,
        *,
        beside: Any = None,  # noqa: ANN401 (a frame of any library, or a mapping)
    ) -> CardRanker:
        """Find the best card.

        Args:
            X: a pandas or polars frame, a mapping of columns, or a numeric array, (n, d); values may be missing.
            y: labels, (n,): 0 and 1 or graded, or those of `ltr.outcomes`. A series gives the card its name.
            beside: further columns of the rows that `demands` may name, as for `ExactRanker.fit`.
        """
        self._check_options()
        questions = Questions(self.cuts, forbidden=self.forbidden).fit(X)
        answers, labels = self._answers_and_labels(questions.transform(X), y)
        # these are the columns of the table, not those of the answers
        self.n_features_in_ = questions.n_features_in_
        if hasattr(questions, "feature_names_in_"):
            self.feature_names_in_ = questions.feature_names_in_
        asked = self._asked(X, labels, beside)
        decisive = [one for one in asked if one.demand is not None]
        conditions, words = named_conditions(self, questions)
        problem: CardProblem | RiskProblem
        if self.is_risk:
            limits = checked_limits(self.point_limits).get(INTERCEPT)
            problem = RiskProblem(answers, labels, self.C, conditions=conditions, intercept_limits=limits)
        else:
            options: dict[str, Any] = {"ties": self.ties, "gain": self.gain, "conditions": conditions}
            demands = [one.demand for one in decisive if one.demand is not None]
            problem = CardProblem(answers, labels, self.statistic, self.C, demands=demands, **options)
        self.problem_: CardProblem | RiskProblem | None = problem
        words += map(str, read_all_demands(self.demands))
        found, price = self._solved(problem, decisive, "; ".join(words))
        self.solution_: Solution | None = found
        self.questions_ = questions
        read, number = read_labels(labels), len(questions.rules_)
        self.reference_ = Reference.fit(answers, read)
        empty = Card(
            (),
            (),
            str(getattr(y, "name", None) or "positive"),
            statistic=str(problem.statistic),
            ties=self.ties,
            gain=self.gain,
            bound=found.bound,
            status=found.status.value,
            searched=Searched(number, self.max_questions, self.points, float(self.C), tuple(words)),
            beside=f"{self.reference_.name} on all {number} questions",
            horizon=self._horizon(read),
            intercept=problem.intercept(found.weights) if isinstance(problem, RiskProblem) else None,
        )
        points, value = self._chosen(answers)
        if not self.is_risk and self.least_points == 1:
            points //= max(1, int(np.gcd.reduce(points)))  # the same order with fewer points
        self.card_ = self._card(empty, points, value, self.reference_.scores(answers))
        self.demands_ = self._outcome(asked, answers @ points, points, price)
        return self

    def _check_options(self) -> None:
        """Refuse wrong options, and for a risk score those that go with rank statistics alone."""
        self._measure()
        one_of("ties", self.ties, get_args(Ties))
        check_flag("one_per_feature", self.one_per_feature)
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise ValueError(f"limits must be a Limits, such as Limits(time_limit=60), or None, got {self.limits!r}")
        if self.within is not None:
            check_number("within", self.within)
        rules = {
            "demands": (len(self.demands) > 0, "be empty"),
            "ties": (self.ties != "average", "be 'average'"),
            "within": (self.within not in (None, 0), "be None or 0"),
        }
        for name, (wrong, rule) in rules.items() if self.is_risk else ():
            if wrong:
                raise ValueError(f"{name} must {rule} for statistic {LOG_LOSS}, got {getattr(self, name)!r:.80}")

    def _asked(self, X: Any, labels: NDArray[Any], beside: Any) -> list[OnTop]:  # noqa: ANN401
        """Return the demands on the training rows, checked: about groups of rows where labels have two fields."""
        plain = label_kind(labels) == "labels"
        for demand in () if plain else read_all_demands(self.demands):
            if isinstance(demand, ListDemand) and demand.condition is None:
                rule = "demands must be about groups of rows where labels have two fields"
                raise ValueError(f"{rule}, got {str(demand)!r}: ask for a share, a count or an exposure")
        names = list(getattr(X, "columns", X if isinstance(X, Mapping) else ())) or None
        none, whole = np.zeros(len(labels)), np.ones(len(labels), dtype=np.bool_)
        given = GivenDemands.read(self.demands, X, names, beside, self.gain)
        asked = [one.of_top(none, whole) for one in given.of(labels if plain else none, None)]
        refuse_settled(asked, "Ask for less")
        return asked

    def _solved(
        self, problem: CardProblem | RiskProblem, decisive: Sequence[OnTop], words: str
    ) -> tuple[Solution, DemandPrice | None]:
        """Return the best card, and what the demands cost; raise ValueError without a card, with the conditions."""
        limits = self.limits or Limits()
        if decisive:
            assert isinstance(problem, CardProblem)
            found, price = solve_under(
                problem, "cards", limits, str(problem.statistic), warm_starts=(), on_progress=None
            )
            if found.value == -math.inf:
                raise not_met(problem, "cards", limits, decisive, found, "cards", _REMEDY)
            return found, price
        found = solve(problem, "lattice" if self.is_risk else "cards", limits)
        if found.value > -math.inf:
            return found, None
        if found.status is Status.INFEASIBLE:
            raise ValueError(f"no card of at most {self.max_questions} questions meets all conditions: {words}")
        raise ValueError(f"no card that meets all conditions was found in time, raise the time limit: {words}")

    def _answers_and_labels(self, answers: Any, y: ArrayLike) -> tuple[FloatArray, NDArray[Any]]:  # noqa: ANN401
        """Check the answers to all questions and the labels, of the kind that the statistic is about."""
        kind = label_kind(y)
        check_labels(str(self.statistic), y)
        if kind == "labels":
            return self._training_data(answers, y, None)[:2]
        labels: NDArray[Any] = np.asarray(y)
        rows = np.arange(len(answers)) % 2  # labels of two fields are read on their own
        if len(labels) != len(rows):
            raise ValueError(f"y must have one label for each of {len(rows)} rows, got {len(labels)}")
        return self._training_data(answers, rows, None)[0], labels

    def _horizon(self, labels: NDArray[Any] | Times | Treatments) -> float | None:
        """Return the time by which the card tells the share of events."""
        if self.horizon is not None:
            if not isinstance(labels, Times):
                raise ValueError(f"horizon goes with times until an event, got {self.horizon!r} and other labels")
            check_number("horizon", self.horizon, above=0)
            return float(self.horizon)
        return float(np.quantile(labels.time[labels.event], 0.5, method="lower")) if isinstance(labels, Times) else None

    def _outcome(
        self, asked: Sequence[OnTop], totals: FloatArray, points: IntArray, price: DemandPrice | None
    ) -> DemandOutcome | None:
        """Return which demands the card with these points meets, and what they cost; None without demands."""
        if not asked:
            return None
        assert isinstance(self.problem_, CardProblem)
        weights, reached = points / self.problem_.points, []
        demanded = iter(self.problem_.demanded)
        for one in asked:
            value, met = one.asked.value(totals), one.met  # whatever the order
            if one.demand is not None:
                each = next(demanded)
                value, met = one.whole(each.problem.statistic_value(weights)), each.met(weights)
            reached.append(ReachedDemand(one.text, one.asked.what, value, met))
        return DemandOutcome(tuple(reached), price)

    def _for_other_rows(self) -> CardRanker:
        return super()._for_other_rows().set_params(demands=())

    @property
    def is_risk(self) -> bool:
        """Whether the card is a risk score."""
        return isinstance(self.statistic, str) and self.statistic == LOG_LOSS

    def _measure(self) -> tuple[RankStatistic, GainName, bool]:
        # ranks have no log loss: where a rank statistic is asked for, it is the AUC
        if not self.is_risk:
            return super()._measure()
        one_of("gain", self.gain, get_args(GainName))
        return RankStatistic("auc"), self.gain, bool(self.normalize)

    @property
    def tolerance(self) -> float:
        """The share of the best value by which the card may be below it: `within`, or what stands for None."""
        return (_WITHIN if str(self.statistic) in ("auc", "c_index") else 0.0) if self.within is None else self.within

    def with_rows(self, name: str, table: Any, y: ArrayLike) -> Card:  # noqa: ANN401 (a frame of any library)
        """Return the card with labelled rows, see `Card.with_rows`, and with the statistic of `reference_` there."""
        answers = self._features(table)
        return self.card_.with_totals(name, self._scores(answers), y, self.reference_.scores(answers))

    def score(self, X: ArrayLike, y: ArrayLike, qid: Qid = ..., sample_weight: ArrayLike | None = None) -> float:
        """Return the statistic, see `Ranker.score`; for labels of two fields and the log loss, that of all rows."""
        if label_kind(y) == "labels" and not self.is_risk:
            return super().score(X, y, qid, sample_weight)
        if sample_weight is not None or qid not in (..., None):
            raise ValueError(f"{self.statistic} is a statistic of one list without weights: leave out qid and weights")
        value = self.card_.with_totals("", self._scores(self._features(X)), y).counts[-1].value
        return math.nan if value is None else value

    def certificate(self) -> Certificate:
        """Return the certificate of the card, which ``ltr verify`` checks; raise ValueError without `problem_`."""
        from ltr.exact.certificate import certify

        check_is_fitted(self)
        if self.problem_ is None or self.solution_ is None or self.card_.value is None:
            raise ValueError("certificate needs a ranker fitted in this process: files do not contain its problem")
        most = self.problem_.points if isinstance(self.problem_, CardProblem) else 1
        solution = replace(self.solution_, weights=self._points / most, value=self.card_.value)
        return certify(self.problem_, solution)

    def _chosen(self, answers: FloatArray) -> tuple[IntArray, float]:
        """Return the points of the card to take, and its value: see `within`."""
        assert self.problem_ is not None
        assert self.solution_ is not None
        best = self.problem_.points_of(self.solution_.weights), self.solution_.value
        within = self.tolerance
        if within == 0 or self.solution_.status is not Status.OPTIMAL:
            return best
        limit = (self.limits or Limits()).time_limit
        try:
            cards = self._cards_within(within, _MOST_COMPARED, limit)[0]
        except (TimeoutError, ValueError):  # too many equal ones
            return best
        weights = np.array([points for _, points in cards], dtype=np.float64).T
        totals = answers - answers.mean(axis=0)
        scores = self.reference_.scores(answers)
        probabilities = expit(scores) if self.reference_.name == "logistic regression" else scores
        # correlation of X w with p: w·Xᵀp / sqrt(w·XᵀX w), for all cards at once
        spread = np.einsum("jc,jc->c", weights, (totals.T @ totals) @ weights)
        correlation = (totals.T @ (probabilities - probabilities.mean())) @ weights / np.sqrt(np.maximum(spread, _TINY))
        value, points = cards[int(np.argmax(np.round(correlation, 9)))]
        return points.copy(), value

    def _cards_within(
        self, within: float, most: int, time_limit: float | None = None
    ) -> tuple[list[tuple[float, IntArray]], float]:
        """Return the cards within a share of the best value, and the share, halved until there are at most `most`."""
        assert isinstance(self.problem_, CardProblem)
        assert self.solution_ is not None
        value, share = self.solution_.value, within
        slack = 1e-9 * max(1.0, self.problem_.trivial_bound)
        while True:
            try:
                threshold = value - share * abs(value) - slack
                return self.problem_.good_cards(threshold, most, available_threads(), time_limit), share
            except ValueError:
                if share == 0:
                    raise
            share = share / 2 if share > within / 2**_HALVINGS else 0.0

    def good_cards(self, within: float = 0.01, most: int = 100) -> GoodCards:
        """Return all cards whose value is below the best one by at most a share, halved until at most `most` are left.

        Raises ValueError without `problem_`, or for more than `most` cards that are as good as the best one.
        """
        check_is_fitted(self)
        check_number("within", within)
        check_whole("most", most, 1)
        if self.is_risk:
            raise ValueError(f"good_cards lists cards of rank statistics, got a card of statistic {LOG_LOSS}")
        if self.problem_ is None or self.card_.value is None:
            raise ValueError("good_cards needs a ranker fitted in this process: files do not contain its problem")
        found, share = self._cards_within(within, most)
        empty = replace(self.card_, questions=(), points=(), counts=(), beside="")
        return GoodCards(tuple(self._card(empty, points, own) for own, points in found), share)

    def _card(self, empty: Card, points: IntArray, value: float, beside: FloatArray | None = None) -> Card:
        """Return the card with these points for the columns of the problem, and with the training rows."""
        assert self.problem_ is not None
        used = sorted(np.flatnonzero(points).tolist(), key=lambda j: (-abs(points[j]), j))
        rules = tuple(self.questions_.rules_[j] for j in used)
        card = replace(empty, questions=rules, points=tuple(int(points[j]) for j in used), value=float(value))
        return card.with_totals("training", (self.problem_.X @ points).astype(np.int64), self.problem_.y, beside)

    def explain(self, X: Any, qid: Qid = ...) -> Explanation:  # noqa: ANN401 (a frame of any library)
        """Return the points of each row by question, as `Card.explain` does, and those of its neighbours."""
        import pandas as pd

        qid, answers = self._lists_for("explain", qid), self._features(X)
        rows, _ = ranked_frame(self, X, answers, qid)
        names = [rule.name for rule in self.card_.questions]
        values = pd.DataFrame(answers.astype(np.int64), columns=self.questions_.questions_, index=rows.index)[names]
        frame = values * np.array(self.card_.points, dtype=np.int64)
        return Explanation(frame.assign(total=frame.sum(axis=1)), values, rows)

    # what rankers share

    @property
    def _kind(self) -> RankerKind:
        return "trees"  # thresholds, which `signs` bind by the name of a column

    def _features(self, X: Any) -> FloatArray:  # noqa: ANN401
        check_is_fitted(self)
        return self.questions_.transform(X).astype(np.float64)

    def _rows_to_fit(self, X: Any, features: Features) -> Any:  # noqa: ANN401
        import pandas as pd

        return pd.DataFrame(dict(X)) if isinstance(X, Mapping) else X

    def _form(self) -> RankBoostRanker:
        form, asked = RankBoostRanker(), self.card_.questions
        form._take_names(self)
        places = {name: j for j, name in enumerate(self._column_names)}
        form.features_ = np.array([places[rule.column] for rule in asked], dtype=np.int64)
        form.cuts_ = np.array([_cut(rule) for rule in asked], dtype=np.float64)
        sides = np.array([-1.0 if rule.value == "0" else 1.0 for rule in asked])
        form.alphas_, form.losses_ = sides * np.array(self.card_.points, dtype=np.float64), np.ones(1)
        return form

    def _scores(self, features: FloatArray) -> FloatArray:
        return features @ self._points

    @property
    def _points(self) -> FloatArray:
        """The points of all questions, (q,)."""
        points = dict(zip(self.card_.questions, self.card_.points, strict=True))
        return np.array([points.get(rule, 0) for rule in self.questions_.rules_], dtype=np.float64)

    @property
    def _ties(self) -> TiesOfMetric:
        return self.ties

    def _columns_in(self, graph: OnnxGraph, preparation: TablePreparation | None) -> str:
        """Return the answers to all questions with points, (q, n); the columns of the table become inputs."""
        if preparation is not None:
            raise ValueError("preparation must be None: a card reads the columns of the table itself")
        compared = {rule.column for rule in self.questions_.rules_ if rule.operator == ">="}
        rows = [graph.cast(_answers_in(graph, rule, rule.column in compared)) for rule in self.card_.questions]
        if not rows:
            raise ValueError("a card without questions has no ONNX form: all rows have the total 0")
        axis = graph.constant(np.array([0]))
        return graph.op("Concat", *(graph.op("Unsqueeze", row, axis) for row in rows), axis=0)

    def _scores_in(self, graph: OnnxGraph, columns: str) -> str:
        return graph.linear(columns, np.array(self.card_.points, dtype=np.float64))

    def _a_row(self) -> FloatArray:
        return np.zeros((1, len(self.questions_.rules_)))

    def _fitted_state(self) -> dict[str, Any]:
        rules = [asdict(rule) for rule in self.questions_.rules_]
        questions = {"rules": rules, "groups": self.questions_.groups_, "left_out": self.questions_.left_out_}
        return {"card_": self.card_.to_dict(), "questions_": questions, "reference_": asdict(self.reference_)}

    def _restore(self, fitted: Mapping[str, Any]) -> None:
        from pydantic import TypeAdapter

        super()._restore(fitted)
        self.card_ = Card.from_dict(fitted["card_"])
        name, coefficients, intercept = fitted["reference_"].values()
        self.reference_ = Reference(name, tuple(coefficients), intercept)
        state = fitted["questions_"]
        questions = Questions(self.cuts, forbidden=self.forbidden)
        questions.rules_ = TypeAdapter(tuple[Question, ...]).validate_python(state["rules"])
        questions.groups_, questions.left_out_ = state["groups"].numpy(), state["left_out"]
        questions.questions_ = [rule.name for rule in questions.rules_]
        questions.n_features_in_ = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            questions.feature_names_in_ = self.feature_names_in_
        self.questions_, self.solution_, self.problem_, self.demands_ = questions, None, None, None


def _answers_in(graph: OnnxGraph, rule: Question, number: bool) -> str:
    """Return the answers to a question, (n,), in a graph; the counterpart of `Question.answers`."""
    if number:
        numbers, missing = graph.numbers(rule.column)
        if rule.operator == "missing":
            return missing
        return graph.op("GreaterOrEqual", numbers, graph.constant(as_float(rule.value)))
    if rule.operator == "missing":
        return graph.texts_missing(rule.column)
    if isinstance(rule.value, tuple):
        known = graph.texts_are(rule.column, [text_of(value) for value in rule.value])
        return graph.op("Not", graph.op("Or", graph.texts_missing(rule.column), known))
    return graph.texts_are(rule.column, [text_of(rule.value)])


def _cut(rule: Question) -> float:
    """Return the number above which the answer of a column of numbers is yes, or no where the question is = 0."""
    if rule.operator == ">=":
        return float(np.nextafter(as_float(rule.value), -np.inf))
    if rule.operator == "=" and rule.value in ("0", "1"):
        return 0.5
    raise TypeError(f"a card of numbers scores features, got the question {rule.name!r}")
