"""Every measure under every treatment of ties: its slow definition, and what must not change it.

An example is a few tiny lists, and each example meets all measures and treatments: lists and their variants go in
together as flat lists, so that equal values come from one call. "Unchanged" means the same bits.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ltr.metrics import evaluate, parse_measure, rank_lists
from tests.reference import slow_weights
from tests.tiers import examples, slow_but

TIES = ["resolved", "subrank", "average", "optimistic"]
COUNT = examples(15, slow=40)  # short lists beside a long one
EVERY = settings(max_examples=examples(20, slow=200), derandomize=True, deadline=None)
MANY = settings(EVERY, max_examples=examples(12, slow=200))  # for those that compute each value several times

# --- slow definitions: of (position, label) of the items, positions shared under subrank ---------------------------


def relevant(items):
    return sorted(p for p, y in items if y > 0)


def statistic(name, gain="exp2"):
    def value(items):
        a = slow_weights(name, len(items)) if items else []
        return math.fsum((2**y - 1 if gain == "exp2" else y) * a[len(items) - 1 - p] for p, y in items)

    return value


def normalized(name, gain="exp2"):
    def value(items):
        ideal = statistic(name, gain)(list(enumerate(sorted((y for _, y in items), reverse=True))))
        return statistic(name, gain)(items) / ideal if ideal else math.nan

    return value


def auc(items):
    places, n = relevant(items), len(items)
    pairs = len(places) * (n - len(places))
    # the sum of ranks, less the smallest sum that so many ranks can have
    return (sum(n - p for p in places) - sum(range(1, len(places) + 1))) / pairs if pairs else math.nan


def reciprocal(k=math.inf):
    return lambda items: next((1 / (p + 1) if p < k else 0.0 for p in relevant(items)), math.nan)


def average_precision(k=math.inf):
    def value(items):
        places = relevant(items)
        terms = [sum(q <= p for q in places) / (p + 1) if p < k else 0.0 for p in places]
        return np.mean(terms) if places else math.nan

    return value


def r_precision(items):
    places = relevant(items)
    return sum(p < len(places) for p in places) / len(places) if places else math.nan


def success(k):
    return lambda items: float(any(p < k for p in relevant(items))) if relevant(items) else math.nan


def bpref(items):
    places, others = relevant(items), [p for p, y in items if y == 0]
    if not places:
        return math.nan
    least = min(len(places), len(others))
    above = [sum(q <= p for q in others) for p in places]
    return np.mean([1.0 - min(a, len(places)) / least if a else 1.0 for a in above])


def rank_biased(p, k=math.inf):
    return lambda items: sum((1 - p) * p**q for q in relevant(items) if q < k)


def expected_reciprocal(highest, k=math.inf):
    def value(items):
        going, total = 1.0, 0.0
        for p, y in sorted(items, key=lambda item: item[0]):
            stop = (2**y - 1) / 2**highest
            total += going * stop / (p + 1) * (p < k)
            going *= 1 - stop
        return total

    return value


def hits(k):
    return lambda items: float(sum(p < k for p in relevant(items)))


def precision(k):
    return lambda items: sum(p < k for p in relevant(items)) / k


def where_some(function):
    return lambda items: function(items) if relevant(items) else math.nan


def recall(k):
    def value(items):
        places = relevant(items)
        return sum(p < k for p in places) / len(places) if places else math.nan

    return value


def lift(k=math.inf):
    def value(items):
        places = relevant(items)
        share = sum(p < k for p in places) / min(k, len(items)) if items else math.nan
        return share / (len(places) / len(items)) if places else math.nan

    return value


BINARY = {"auc": auc, "normalized(auc)": auc, "pairwise_misranking_error": lambda items: 1 - auc(items)}
GRADED = {
    "wrs": statistic("wrs"),
    "pauc@2": statistic("pauc@2"),
    "wta": statistic("wta"),
    "statistic(mrr)": statistic("mrr"),
    "statistic(mrr@2)": statistic("mrr@2"),
    "dcg": statistic("dcg"),
    "dcg(base=e)@3": statistic("dcg(base=e)@3"),
    "dcg(gain=linear)@2": statistic("dcg@2", "linear"),
    "power(p=0.5)@2": statistic("power(p=0.5)@2"),
    "ndcg": normalized("dcg"),
    "ndcg@2": normalized("dcg@2"),
    "ndcg(gain=linear)@3": normalized("dcg@3", "linear"),
    "normalized(pauc@2)": normalized("pauc@2"),
    "mrr": reciprocal(),
    "mrr@2": reciprocal(2),
    "ap": average_precision(),
    "ap@2": average_precision(2),
    "normalized(ap@2)": average_precision(2),
    "rprec": r_precision,
    "success@2": success(2),
    "bpref": bpref,
    "rbp(p=0.5)": rank_biased(0.5),
    "rbp@2": rank_biased(0.8, 2),
    "err": expected_reciprocal(4),
    "err(max=5)@2": expected_reciprocal(5, 2),
    "num_rel": lambda items: len(relevant(items)),
    "hits@1": hits(1),
    "hits@2": hits(2),
    "hits@9": hits(9),
    "normalized(hits@2)": where_some(lambda items: hits(2)(items) / min(2, len(relevant(items)))),
    "precision@2": precision(2),
    "normalized(precision@2)": where_some(precision(2)),
    "recall@2": recall(2),
    "normalized(recall@2)": recall(2),
    "lift": lift(),
    "lift@2": lift(2),
}
MEASURES = {**BINARY, **GRADED}


def slow(function, scores, labels, ties):
    n = len(scores)
    if ties == "subrank":
        return function([(n - 1 - sum(o < s for o in scores), y) for s, y in zip(scores, labels, strict=True)])
    if ties == "average":
        levels = sorted(set(scores), reverse=True)
        groups = [[y for s, y in zip(scores, labels, strict=True) if s == level] for level in levels]
        orders = itertools.product(*map(itertools.permutations, groups))
        return np.mean([function(list(enumerate(itertools.chain(*order)))) for order in orders])
    sign = -1 if ties == "optimistic" else 1
    items = sorted(zip(scores, labels, strict=True), key=lambda item: (-item[0], sign * item[1]))
    return function([(p, y) for p, (_, y) in enumerate(items)])


# --- lists and their values --------------------------------------------------------------------------------------


def lists(min_size=0, max_size=5, most=3):
    """Lists of (score, label) that tie often; the scores are exact in every precision."""

    def items(levels):
        pair = st.tuples(st.sampled_from([-2.0, -0.5, 0.0, 1.0, 3.0]), st.sampled_from(levels))
        return st.lists(st.lists(pair, min_size=min_size, max_size=max_size), min_size=1, max_size=most)

    return st.booleans().flatmap(lambda some: items([0, 0.5, 1, 3] if some else [0, 1]))


def columns(pairs):
    return [s for s, _ in pairs], [y for _, y in pairs]


def names_for(labels):
    return MEASURES if set(labels) <= {0, 1} else GRADED


def values_of(scores, labels, **form):
    """All measures under all treatments: name, ties -> one value a list."""
    names = names_for(labels[form["mask"]].tolist() if "mask" in form else labels.reshape(-1).tolist())
    return {(n, t): v for t in TIES for n, v in evaluate(scores, labels, names, ties=t, **form).items()}


def flat_values(data, dtype=torch.float64):
    """Values of lists of (score, label) in one flat call; a list without items has no id and is left out."""
    pairs = [pair for items in data for pair in items]
    qid = torch.tensor([7 * at - 2**62 for at, items in enumerate(data) for _ in items], dtype=torch.int64)
    scores, labels = columns(pairs)
    return values_of(torch.tensor(scores, dtype=dtype), torch.tensor(labels, dtype=torch.float64), qid=qid)


def same(values, expected):
    """The same bits, NaN being itself."""
    for key, found in values.items():
        assert torch.equal(found.nan_to_num(-99.0), expected[key].nan_to_num(-99.0)), key


@EVERY
@given(lists(min_size=1))
def test_values_are_their_slow_definitions(data):
    found = flat_values(data)
    for (name, ties), values in found.items():
        for value, items in zip(values.tolist(), data, strict=True):
            assert value == pytest.approx(slow(MEASURES[name], *columns(items), ties), abs=1e-12, nan_ok=True), (
                name,
                ties,
            )


# --- what changes nothing: lists -> lists of the same values -------------------------------------------------------


def mapped(function):
    """The distinct scores of a list, ascending, given other values in the same order."""

    def variant(items, rng):
        levels = sorted({s for s, _ in items})
        new = dict(zip(levels, function(len(levels), rng), strict=True))
        return [(new[s], y) for s, y in items]

    return variant


VARIANTS = {
    "permutation": lambda items, rng: [items[i] for i in rng.permutation(len(items))],
    "shift": lambda items, rng: [(s + by, y) for by in [2.0 ** rng.integers(0, 40)] for s, y in items],
    "power of two": lambda items, rng: [(s * by, y) for by in [2.0 ** rng.integers(-900, 900)] for s, y in items],
    "negative zero": lambda items, rng: [(-0.0 if s == 0 and rng.random() < 0.5 else s, y) for s, y in items],
    "ranks": mapped(lambda m, rng: range(m)),
    "any increasing values": mapped(lambda m, rng: np.sort(rng.normal(size=m)).tolist()),
    "neighbouring floats": mapped(lambda m, rng: [1.0 + at * 2.0**-52 for at in range(m)]),
    "next to zero": mapped(lambda m, rng: [(at - 2) * 5e-324 for at in range(m)]),
    "scores of 1e4": mapped(lambda m, rng: np.linspace(-1e4, 1e4, max(m, 2))[:m].tolist()),
    "scores of 1e300": mapped(lambda m, rng: np.linspace(-1e300, 1e300, max(m, 2))[:m].tolist()),
    "all of float64": mapped(lambda m, rng: [-1.7e308, -5e-324, 0.0, 5e-324, 1.7e308][:m]),
}


@MANY
@given(lists(min_size=1, most=2), st.integers(0, 2**32))
def test_maps_and_orders_change_nothing(data, seed):
    rng = np.random.default_rng(seed)
    variants = [variant(items, rng) for variant in VARIANTS.values() for items in data]
    found = flat_values(data + variants)
    n = len(data)
    for key, values in found.items():
        for at, name in enumerate(VARIANTS, start=1):
            expected, value = values[:n].nan_to_num(-99.0), values[at * n : (at + 1) * n].nan_to_num(-99.0)
            assert torch.equal(value, expected), (key, name)


@MANY
@given(lists(min_size=1), st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
def test_precision_of_scores_changes_nothing(data, dtype):
    same(flat_values(data, dtype), flat_values(data))


@MANY
@given(lists(), st.integers(0, 2**32))
def test_padding_batch_mates_and_layout_change_nothing(data, seed):
    rng = np.random.default_rng(seed)
    width = max(map(len, data)) + 2
    scores = torch.full((len(data), width), math.nan, dtype=torch.float64)
    labels = torch.full((len(data), width), -7.0, dtype=torch.float64)
    mask = torch.zeros(len(data), width, dtype=torch.bool)
    for row, items in enumerate(data):
        at = torch.tensor(np.sort(rng.permutation(width)[: len(items)]), dtype=torch.long)
        scores[row, at], labels[row, at] = (torch.tensor(c, dtype=torch.float64) for c in columns(items))
        mask[row, at] = True
    expected = values_of(scores, labels, mask=mask)

    stacked = values_of(scores[None, :, None], labels[None, :, None], mask=mask[None, :, None])
    same({key: values[0, :, 0] for key, values in stacked.items()}, expected)
    strided = [x.T.contiguous().T for x in (scores, labels, mask)]
    same(values_of(strided[0], strided[1], mask=strided[2]), expected)
    alone = [values_of(*(torch.tensor(c, dtype=torch.float64) for c in columns(items))) for items in data]
    same({key: torch.stack([values[key] for values in alone]) for key in expected}, expected)

    full = [row for row, items in enumerate(data) if items]
    shuffled = torch.tensor(rng.permutation(int(mask.sum())), dtype=torch.long)
    ids = torch.tensor(rng.permutation(len(data)) * 2**60 - 2**61)
    qid = ids[mask.nonzero()[:, 0]][shuffled]
    found = values_of(scores[mask][shuffled], labels[mask][shuffled], qid=qid)
    seen = list(dict.fromkeys(qid.tolist()))  # lists come in the order in which their ids first appear
    places = torch.tensor([seen.index(int(ids[row])) for row in full], dtype=torch.long)
    same({key: values[places] for key, values in found.items()}, {key: v[full] for key, v in expected.items()})


# --- chosen cases ------------------------------------------------------------------------------------------------

CASES = {  # scores, labels
    "no item": ([], []),
    "one positive": ([1.0], [1]),
    "one negative": ([1.0], [0]),
    "all tied": ([2.0] * 5, [0, 1, 1, 0, 1]),
    "positives only": ([3.0, 1.0, 1.0], [1, 1, 1]),
    "negatives only": ([3.0, 1.0, 1.0], [0, 0, 0]),
    "duplicates": ([1.0, 1.0, 0.0, 0.0], [1, 1, 0, 0]),
    "1e300": ([1e300, -1e300, 1e300, 0.0], [0, 1, 1, 0]),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ties", TIES)
def test_chosen_cases(case, ties):
    scores, labels = CASES[case]
    found = evaluate(torch.tensor(scores, dtype=torch.float64), torch.tensor(labels), MEASURES, ties=ties, empty=-5.0)
    for name, value in found.items():
        expected = slow(MEASURES[name], scores, labels, ties)
        assert value.item() == pytest.approx(-5.0 if math.isnan(expected) else expected, abs=1e-12), name


SHARES = ["auc", "ndcg", "ndcg@2", "ndcg(gain=linear)@3", "normalized(pauc@2)", "mrr", "mrr@2", "ap", "recall@1000"]


@pytest.mark.parametrize("name", SHARES)
@pytest.mark.parametrize("ties", TIES)
def test_a_perfect_list_has_exactly_the_value_one(name, ties):
    rng = np.random.default_rng(0)
    labels = torch.tensor(np.sort(rng.integers(0, 2 if name in BINARY else 5, 1000))[::-1].copy())
    assert parse_measure(name)(torch.arange(1000, 0, -1.0), labels, ties=ties).item() == 1.0
    if ties in ("resolved", "optimistic"):  # equal labels may be tied
        assert parse_measure(name)(labels.double(), labels, ties=ties).item() == 1.0


# --- longer lists, and every way of sorting ----------------------------------------------------------------------


def long_lists(seed, dtype=torch.float64, decimals=None, labels="binary", count=COUNT):
    rng = np.random.default_rng(seed)
    sizes = np.r_[3000, rng.integers(0, 60, count)]
    scores = rng.normal(size=sizes.sum()) * 10.0 ** rng.integers(-200, 200, sizes.sum()) ** (dtype == torch.float64)
    if decimals is not None:
        scores = rng.normal(size=sizes.sum()).round(decimals)
    y = {
        "binary": lambda n: rng.integers(0, 2, n),
        "graded": lambda n: rng.integers(0, 5, n),
        "real": lambda n: rng.gamma(1.0, size=n) * rng.integers(0, 2, n),
        "large": lambda n: rng.integers(0, 2**40, n),
    }[labels](sizes.sum())
    return torch.tensor(scores, dtype=dtype), torch.tensor(y), torch.tensor(np.repeat(np.arange(count + 1), sizes))


LONG = [
    (dtype, d, y)
    for y in ("binary", "graded", "real", "large")
    for d in (None, 1)
    for dtype in (torch.float32, torch.float64)
]


# in the quick tier every kind of label with both dtypes and both numbers of decimals
@pytest.mark.parametrize(("dtype", "decimals", "labels"), slow_but(LONG, LONG[::4]))
def test_long_lists_beside_short_ones_have_the_bits_that_each_has_alone(dtype, decimals, labels):
    scores, y, qid = long_lists(0, dtype, decimals, labels)
    names = names_for(y.tolist())
    if labels in ("real", "large"):
        names = [name for name in names if not name.startswith("err")]
    if labels == "large":  # whose powers of two leave the range
        names = [name for name in names if parse_measure(name).binary or "gain=linear" in name]
    for ties in TIES:
        together = evaluate(scores, y, names, qid=qid, ties=ties)
        for at, number in enumerate(qid.unique().tolist()):
            alone = evaluate(scores[qid == number], y[qid == number], names, ties=ties)
            for name in names:
                assert torch.equal(alone[name].nan_to_num(-9), together[name][at].nan_to_num(-9)), (name, ties)


@pytest.mark.parametrize("room", [63, 30, 13])
def test_however_few_bits_there_are_the_order_is_the_same(monkeypatch, room):
    # with fewer bits, scores and then lists and scores are numbered before they are put together
    scores, y, qid = long_lists(1, decimals=1, labels="graded")
    expected = [sorted(zip((-scores[qid == q]).tolist(), y[qid == q].tolist(), strict=True)) for q in qid.unique()]
    monkeypatch.setattr("ltr.metrics.ranked._ROOM", room)
    ranked = rank_lists(scores, y, qid=qid)
    assert ranked.labels.tolist() == [y for items in expected for _, y in items if y]
    assert ranked.position.tolist() == [at for items in expected for at, (_, y) in enumerate(items) if y]
    assert ranked.start.tolist() == [[s for s, _ in items].index(s) for items in expected for s, y in items if y]


def test_ids_of_any_length_and_lists_that_come_back():
    qid = torch.tensor([2**63 - 1, -(2**63), 5, -(2**63), 2**63 - 1, 5])
    scores, labels = torch.tensor([1.0, 2.0, 1.0, 1.0, 2.0, 2.0]), torch.tensor([1, 1, 0, 0, 0, 1])
    assert parse_measure("mrr")(scores, labels, qid=qid).tolist() == [1 / 2, 1.0, 1.0]
    # lists keep their places whatever is masked out, as they do in the losses
    assert parse_measure("mrr")(scores, labels, qid=qid, mask=qid != 5, empty=-1.0).tolist() == [1 / 2, 1.0, -1.0]
    ids, mask = torch.tensor([7, 5, 7, 5]), torch.tensor([False, True, True, True])
    assert parse_measure("mrr")(scores[:4], torch.tensor([0, 0, 1, 1]), qid=ids, mask=mask).tolist() == [1.0, 1 / 2]


@pytest.mark.parametrize("name", MEASURES)
def test_a_negative_label_is_refused_but_in_padding(name):
    scores, labels = torch.tensor([0.5, 1.0, -2.0, 3.0]), torch.tensor([1, 0, 0, -1])
    measure = parse_measure(name)
    for marked in (labels, labels.double(), labels.to(torch.int8)):
        for qid in (None, torch.tensor([1, 1, 2, 2])):
            with pytest.raises(ValueError, match=r"labels must be >= 0, got -1: mark padding by mask="):
                measure(scores, marked, qid=qid)
        alone = measure(scores[:3], labels[:3])
        assert torch.equal(measure(scores, marked, mask=marked >= 0), alone)
