"""Cards and risk scores, and the search of all cards that proves a bound; `ltr.verify` shows why it is enough."""

from __future__ import annotations

import bisect
import decimal
import itertools
import math
import operator
import re
from collections.abc import Collection
from fractions import Fraction
from typing import Any

from .file import (
    CertificateError,
    Json,
    LimitError,
    Pair,
    Progress,
    Stated,
    check_statistic,
    columns_of,
    entries,
    integers,
    labels_of,
    require,
    show,
    size_and_price,
    sized,
)

Orders = dict[tuple[int, ...], Any]  # sets of patterns, and what may follow each
WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
WORD = 1024  # bits of a set of rows that are taken apart in one step
MOST_ORDERS = 100_000  # largest number of ways to give points to the columns of a card, up to their signs
MOST_SETS = 1_000_000  # largest number of sets of columns
MOST_ROWS = 30_000_000  # rows times sets with columns of other numbers, of which a million take a second
MOST_POINTS, MOST_COLUMNS = 100, 6  # of a card
LARGEST = 10**9  # size of points and intercepts
DIGITS = 60  # of the logarithms and exponentials of a risk score, whose last digit alone is rounded
FAR = 60  # total from which on log(1 + x), x = exp(-total), is taken as x - x^2 / 2, which is right to 50 digits
UNITS = [10**decimals for decimals in range(13)]  # of the numbers of a card


class Ranked(Stated):
    """A statistic of the order of the rows by their totals, checked, its numbers as integers.

    With `lost`, rows with equal totals contribute the least over their orders, not the mean. `levels` has the rows of
    each gain > 0, ascending, `sums` a_n + ... + a_(n - p + 1) for p = 0, ..., n, all times a unit; `perfect` is the sum
    of contributions of a perfect order, and `limit` the largest that closes what is looked at.
    """

    def __init__(
        self, content: dict[str, Json], n: int, C: Fraction, progress: Progress, lost: bool, place: str = "problem"
    ) -> None:
        super().__init__(n, C, progress, place)
        gains, name = self.gains(content), check_statistic(content["statistic"], content["a"], [n], place)
        (self.row_gains, unit), (whole, self.value_unit) = integers(gains), integers(content["a"])
        self.value_unit *= unit << 64
        self.sums = [0, *itertools.accumulate(v << 64 for v in reversed(whole))]
        self.perfect = self.worst(sorted(self.row_gains, reverse=True), 0)
        levels = sorted({*self.row_gains} - {0})
        self.levels = [(sum(1 << i for i, v in enumerate(self.row_gains) if v == gain), gain) for gain in levels]
        self.lost = lost
        self.state_share(name, content["statistic"], gains)

    def worst(self, gains: list[int], place: int) -> int:
        """Return the contribution of rows with these gains in this order from a place on."""
        return sum(gain * (self.sums[p + 1] - self.sums[p]) for p, gain in enumerate(gains, place))

    def of_totals(self, totals: list[int]) -> Fraction:
        """Return the sum of contributions of rows with these totals."""
        self.progress.tick(steps=self.n)
        rows = sorted(zip(totals, self.row_gains, strict=True), reverse=True)
        place, value = 0, Fraction(0)
        for _, group in itertools.groupby(rows, operator.itemgetter(0)):
            tied = sorted(gain for _, gain in group)
            end = place + len(tied)
            mean = Fraction(sum(tied) * (self.sums[end] - self.sums[place]), len(tied))
            value += self.worst(tied, place) if self.lost else mean
            place = end
        return value

    def parts(self, parts: list[int], of: list[int]) -> list[Pair]:
        """Return the parts that have rows, by the means of their gains: (mean, rows, gain, pattern as a bit) each."""
        shares, wide = list[Pair](), 2 * self.n.bit_length() + 1
        for pattern, part in enumerate(parts):
            if count := part.bit_count():  # different shares differ by 1 / n^2 at least
                gain = sum([(part & rows).bit_count() * gain for rows, gain in self.levels])
                shares.append(((gain << wide) // count, count, gain, 1 << pattern))
        return sorted(shares, reverse=True)

    def of_blocks(self, blocks: list[Pair], totals: list[int]) -> int:
        """Return a bound of the contributions of rows whose order within each block is that of their totals."""
        self.progress.tick(steps=self.n)
        rows = sorted(zip(blocks, totals, self.row_gains, strict=True), reverse=True)
        pools, wide = list[Pair](), 2 * self.n.bit_length() + 1  # different means differ by 1 / n^2 at least
        for _, block in itertools.groupby(rows, operator.itemgetter(0)):
            own = list[tuple[int, int]]()  # gain and number of the rows of each pool, from the top
            for _, tied in itertools.groupby(block, operator.itemgetter(1)):
                gains = [gain for _, _, gain in tied]
                gain, count = sum(gains), len(gains)
                while own and own[-1][0] * count <= gain * own[-1][1]:
                    gain, count = gain + own[-1][0], count + own.pop()[1]
                own.append((gain, count))
            pools += [((gain << wide) // count, count, gain, 0) for gain, count in own]
        pools.sort(reverse=True)
        return self.rest(pools, 0, 0)

    def rest(self, shares: list[Pair], placed: int, place: int) -> int:
        """Return a bound of the contributions of the patterns that are not placed, from a place on."""
        total, sums = 0, self.sums
        for _, count, gain, pattern in shares:
            if not placed & pattern:
                total -= gain * (sums[place] - sums[place + count]) // count  # rounded up
                place += count
        return total

    def masked(self, shares: list[Pair], mask: int) -> int:
        """Return a bound of the contributions where the columns of a mask count down."""
        return self.rest(shares, 0, 0)

    def tied(self, shares: list[Pair], equal: int, placed: int, rows: int, place: int) -> int:
        """Return the contribution of rows with equal totals from a place on, rounded up."""
        counts = [((rows & bits).bit_count(), gain) for bits, gain in self.levels]
        end = place + rows.bit_count()
        if not self.lost:
            total = sum(count * gain for count, gain in counts)
            return -(total * (self.sums[place] - self.sums[end]) // (end - place)) if total else 0
        value, place = 0, end - sum(count for count, _ in counts)
        for count, gain in counts:
            value += gain * (self.sums[place + count] - self.sums[place])
            place += count
        return value


class Ordered(Stated):
    """The share of comparable pairs of times that are in order, twice the number of which is the sum of contributions.

    Row i should be above row k where event_i and time_i < time_k, or also where the times are equal and k has no event.
    With equal totals a pair counts half, or not at all where ties are lost. By their patterns p and q of a set of
    columns, the numbers of pairs (p, q) are all that counts. All pairs of patterns with the same difference are ordered
    alike; where no entry of it is below 0 once columns that count down are negated, the order is known. `later` has the
    rows, latest first, in groups of one time and event, (whether they have an event, rows) each.
    """

    def __init__(
        self, content: dict[str, Json], n: int, C: Fraction, progress: Progress, lost: bool, place: str = "problem"
    ) -> None:
        super().__init__(n, C, progress, place)
        time = entries(content, "time", n, lambda at: at >= 0, "be >= 0", place)
        event = entries(content, "event", n, lambda of: of in (0, 1), "be 0 or 1", place)
        groups: dict[tuple[float, int], list[int]] = {}
        for i, (at, of) in enumerate(zip(time, event, strict=True)):
            groups.setdefault((at, -of), []).append(i)
        self.later = [(of < 0, rows) for (_, of), rows in sorted(groups.items(), reverse=True)]
        self.tie, self.levels, self.row_gains = 0 if lost else 1, list[int](), [0]
        self.perfect = 2 * self.counts([0] * n, 1)[0][0]
        require(self.perfect > 0, f"{place}.event", "must be 1 for an observation with a time before that of another")
        self.value_unit = self.perfect

    def counts(self, pattern: list[int], patterns: int) -> list[list[int]]:
        """Return the numbers of comparable pairs by the patterns of the first and the later row."""
        wide = (self.n * self.n).bit_length()  # of a counter; those of all patterns are one number
        unit, found, later = [1 << wide * p for p in range(patterns)], [0] * patterns, 0
        for event, rows in self.later:
            if event:
                for i in rows:
                    found[pattern[i]] += later
            for i in rows:
                later += unit[pattern[i]]
        mask = (1 << wide) - 1
        return [[counters >> wide * q & mask for q in range(patterns)] for counters in found]

    def of_totals(self, totals: list[int]) -> Fraction:
        """Return the sum of contributions of rows with these totals."""
        self.progress.tick(steps=self.n)
        below, value = list[int](), 0  # totals of the later rows, ascending
        for event, rows in self.later:
            for i in rows if event else ():
                first, last = bisect.bisect_left(below, totals[i]), bisect.bisect_right(below, totals[i])
                value += 2 * first + self.tie * (last - first)
            for i in rows:
                bisect.insort(below, totals[i])
        return Fraction(value)

    def parts(self, parts: list[int], of: list[int]) -> Json:
        """Return the pairs of the parts: (p, q, number) each, by the difference of the patterns, those of it first.

        `of` has the pattern of each row.
        """
        self.progress.tick(steps=self.n)
        size, counts = len(parts), self.counts(of, len(parts))
        by_difference: dict[tuple[int, int], tuple[list[Pair], list[Pair]]] = {}
        for p, q in itertools.product(range(size), repeat=2):
            if p != q and counts[p][q]:
                up, down = p & ~q, q & ~p  # columns that only p, and only q, has
                turned = up < down
                sides = by_difference.setdefault((down, up) if turned else (up, down), ([], []))
                sides[turned].append((p, q, counts[p][q]))
        same = self.tie * sum(counts[p][p] for p in range(size))
        return counts, same, by_difference

    def masked(self, shares: Json, mask: int) -> int:
        """Return a bound of the contributions where the columns of a mask count down."""
        _, same, by_difference = shares
        total = same
        for (up, down), sides in by_difference.items():
            numbers = [2 * sum(number for *_, number in side) for side in sides]
            # the columns in which the first pattern is above, once those that count down are negated
            above, below = (up & ~mask) | (down & mask), (down & ~mask) | (up & mask)
            total += numbers[0] if not below else numbers[1] if not above else max(numbers)
        return total

    def rest(self, shares: Json, placed: int, place: int) -> int:
        """Return a bound of the contributions of pairs of which no pattern is placed."""
        counts, same, by_difference = shares
        total = same - self.tie * sum(counts[p][p] for p in range(len(counts)) if placed >> p & 1)
        for sides in by_difference.values():
            total += 2 * max(sum(v for p, q, v in side if not (placed >> p | placed >> q) & 1) for side in sides)
        return total

    def tied(self, shares: Json, equal: int, placed: int, rows: int, place: int) -> int:
        """Return the contribution of pairs of which the first pattern is placed now, and of those within these."""
        counts, value = shares[0], 0
        for p in range(len(counts)):
            if equal >> p & 1:
                for q, number in enumerate(counts[p]):
                    value += number * (self.tie if equal >> q & 1 else 0 if placed >> q & 1 else 2)
        return value

    def of_blocks(self, blocks: list[Pair], totals: list[int]) -> int:
        """Refuse columns of other numbers than 0 and 1."""
        raise CertificateError(f"{self.place}.statistic: c_index is one of cards of yes/no columns only")


def statistic_of(
    content: dict[str, Json], n: int, C: Fraction, progress: Progress, lost: bool, place: str = "problem"
) -> Ranked | Ordered:
    """Return the statistic that a file states, with the labels of its kind."""
    kind = Ordered if "time" in labels_of(content, place) else Ranked
    return kind(content, n, C, progress, lost, place)


def asked_of(content: dict[str, Json], n: int, progress: Progress, lost: bool, place: str) -> Ranked | Ordered:
    """Return a statistic that must reach a least value."""
    lost = lost or content["ties_lost"]
    statistic = statistic_of(content, n, Fraction(0), progress, lost, place)
    one = not lost or len({*statistic.row_gains}) < 3
    require(one, f"{place}.gains", "must have two values where ties are lost")
    statistic.ask(content["at_least"])
    return statistic


class Pointed:
    """What points a file allows, see `ltr.verify`: on at most `most` of d columns, the `free` ones not counted.

    `least`, `largest` and `fewest` are the least and the largest points of each column, and the least size of points.
    """

    def read_conditions(self, content: dict[str, Json], d: int) -> None:
        """Read the conditions of a file, checked."""
        self.d, self.most, self.free = d, content["max_nonzeros"], {*columns_of(content, "free", d)}
        require(self.most >= 1, "problem.max_nonzeros", f"must be at least 1, got {self.most}")

        def numbers(name: str, low: int, high: int) -> list[int]:
            return entries(content, name, d, lambda v: low <= v <= high, f"be from {low} to {high}")

        self.least, self.largest = numbers("least", -LARGEST, 0), numbers("largest", 0, LARGEST)
        self.fewest = numbers("least_points", 1, LARGEST)
        self.groups, self.directions = (numbers(name, -1, 2**31 - 1) for name in ("groups", "directions"))
        self.needed = columns_of(content, "required", d)
        self.rules = [self.rule(rule, f"problem.rules[{at}]") for at, rule in enumerate(content["rules"])]

    def rule(self, stated: dict[str, Json], place: str) -> tuple[set[int], int, int, set[int]]:
        """Return a rule: its columns, how many of them a card may have, and the columns for which it holds.

        A card that has one of the latter, or any card if there are none, has from so many to so many of the columns.
        """
        least, most = stated["at_least"], stated["at_most"]
        require(0 <= least <= most, place, f"must have 0 <= at_least <= at_most, got {least} and {most}")
        own, when = ({*columns_of(stated, name, self.d, place=place)} for name in ("columns", "when"))
        return own, least, most, when

    def check_points(self, points: list[float]) -> None:
        """Check that a card may have these points."""
        for j, (w, low, high, fewest) in enumerate(zip(points, self.least, self.largest, self.fewest, strict=True)):
            words = f"must be 0 or a whole number from {low} to {high}, at least {fewest} in size, got {w!r}"
            right = w == int(w) and (w == 0 or (low <= w <= high and abs(w) >= fewest))
            require(right, f"weights[{j}]", words)
        used = [j for j, w in enumerate(points) if w]
        alike = self.alike(used, [points[j] < 0 for j in used])
        require(alike, "weights", "must have one sign for all columns of a direction")
        require(self.allowed(used), "weights", f"are not allowed: columns {', '.join(map(str, used)) or 'none'}")

    def excess(self, weights: list[float]) -> Fraction:
        """Return 0: there are no side constraints."""
        return Fraction(0)

    def allowed(self, columns: Collection[int]) -> bool:
        """Whether a card may have exactly these columns."""
        used, groups = {*columns}, [self.groups[j] for j in columns if self.groups[j] >= 0]
        if len(used - self.free) > self.most or len({*groups}) < len(groups) or not {*self.needed} <= used:
            return False
        return all(
            (when and not when & used) or least <= len(own & used) <= most for own, least, most, when in self.rules
        )

    def alike(self, columns: Collection[int], down: list[bool]) -> bool:
        """Whether columns of the same direction count down together, or none of them does."""
        found = {(self.directions[j], side) for j, side in zip(columns, down, strict=True) if self.directions[j] >= 0}
        return len({group for group, _ in found}) == len(found)


class Cards(Pointed):
    """The problem of a file of the kind "card", checked: the statistic `ranked`, to be maximised, and `demands`.

    `numbers` has the values of each column, times the unit, and `columns` the rows with a 1 as bits of an integer, row
    i being bit i; None for columns of other numbers than 0 and 1.
    """

    def __init__(self, content: dict[str, Json], progress: Progress | None = None) -> None:
        self.progress = progress or Progress()
        self.n, C = size_and_price(content)
        ties, one = content["ties"], content["unit"]
        require(one in UNITS, "problem.unit", f"must be a power of ten up to {UNITS[-1]}, got {one!r:.40}")
        table = [row.split(" ") for row in content["X"]]
        d = len(table[0])
        for i, row in enumerate(table):
            right = len(row) == d and all(map(WHOLE.fullmatch, row))
            require(right, f"problem.X[{i}]", f"must be {d} whole numbers of at most 18 digits")
        self.numbers = [list(map(int, column)) for column in zip(*table, strict=True)]
        require(ties in ("average", "resolved"), "problem.ties", f"must be 'average' or 'resolved', got {ties!r:.40}")
        self.points = content["points"]
        self.read_conditions(content, d)
        for name, largest in (("points", MOST_POINTS), ("max_nonzeros", MOST_COLUMNS)):
            value = content[name]
            require(1 <= value <= largest, f"problem.{name}", f"must be from 1 to {largest}, got {value}")
        require(not self.free, "problem.free", "must be empty for a card")
        for name in ("least", "largest"):
            entries(content, name, d, lambda v: abs(v) in (0, self.points), f"be 0 or {self.points} in size")
        rule = f"must be the same for all columns, and at most {self.points}"
        require(len({*self.fewest}) == 1 and self.fewest[0] <= self.points, "problem.least_points", rule)
        self.columns = [
            None if {*column} - {0, one} else sum(1 << i for i, v in enumerate(column) if v) for column in self.numbers
        ]
        lost = ties == "resolved"
        self.ranked = statistic_of(content, self.n, C, self.progress, lost)
        self.demands = [
            asked_of(demand, self.n, self.progress, lost, f"problem.demands[{at}]")
            for at, demand in enumerate(content["demands"])
        ]
        self.statistics = [self.ranked, *self.demands]
        others = "where a column has other numbers than 0 and 1"
        simple = None not in self.columns
        require(simple or self.fewest[0] == 1, "problem.least_points", f"must be 1 {others}")
        require(simple or {*self.directions} == {-1}, "problem.directions", f"must be -1 {others}")
        pairs = any(isinstance(statistic, Ordered) for statistic in self.statistics)
        require(simple or not pairs, "problem.X", "must hold answers 0 and 1 for c_index")

    def size(self) -> Fraction:
        """Return the statistic of a perfect order."""
        return self.ranked.objective(self.ranked.perfect, 0)

    def value(self, weights: list[float]) -> Fraction:
        """Return the objective of the points, from the totals of all rows."""
        used, totals = self.totals(weights)
        return self.ranked.objective(self.ranked.of_totals(totals), used)

    def totals(self, weights: list[float]) -> tuple[int, list[int]]:
        """Return the number of points that are not 0, and the total of each row."""
        used = [(int(w), self.numbers[j]) for j, w in enumerate(weights) if w]
        return len(used), [sum(w * column[i] for w, column in used) for i in range(self.n)]

    def totals_of(self, tiers: list[int]) -> list[int]:
        """Return totals by which the rows stand in sets from the top, given the bits of each."""
        return [next(-at for at, rows in enumerate(tiers) if rows >> i & 1) for i in range(self.n)]

    def meets(self, totals: list[int]) -> bool:
        """Whether an order of the rows meets all demands."""
        return all(demand.objective(demand.of_totals(totals), 0) >= demand.least for demand in self.demands)

    def check_weights(self, weights: list[float]) -> None:
        """Check that points are allowed."""
        self.check_points(weights)
        _, totals = self.totals(weights)
        for at, demand in enumerate(self.demands):
            reached = demand.objective(demand.of_totals(totals), 0)
            require(reached >= demand.least, "weights", f"do not meet demand {at}: {show(reached)}")

    def prove(self, bound: Fraction | None, partition: list[str]) -> str:
        """Check that no allowed points have an objective above the bound, and return by what that is proven.

        Without a bound, check that there are no allowed points.
        """
        sized(partition, 0, "proof.partition")
        most = min(self.most, self.d)
        if self.points**most > MOST_ORDERS:
            ways = f"{self.points} points of {most} columns, {self.points}^{most} ways"
            raise LimitError(f"it has {ways}, more than {MOST_ORDERS}")
        sets, simple = (
            sum(math.comb(d, m) for m in range(most + 1)) for d in (self.d, self.d - self.columns.count(None))
        )
        if sets > MOST_SETS:
            raise LimitError(f"it has {sets} sets of columns, more than {MOST_SETS}")
        if (rows := (sets - simple) * self.n) > MOST_ROWS:
            words = "sets of columns with other numbers than 0 and 1, times rows"
            raise LimitError(f"it has {rows} {words}, more than {MOST_ROWS}")
        self.progress.boxes = sets
        self.progress.unit = "set of columns"
        for m in range(min(self.most, self.d) + 1):
            self.ranked.limit = -1 if bound is None else self.ranked.allows(bound, m)
            self.orders = orders(m, self.fewest[0], self.points)
            self.extend(m, (), [(1 << self.n) - 1])
            for columns in itertools.combinations(range(self.d), m) if None in self.columns else ():
                if any(self.columns[j] is None for j in columns):
                    self.progress.tick(1, self.n)
                    if self.allowed(columns):
                        self.check_numbers(columns)
        return f"{self.progress.checked} sets of columns"

    def extend(self, m: int, columns: tuple[int, ...], parts: list[int]) -> None:
        """Check all sets of m columns that begin with some columns, by which the rows are split into parts."""
        if len(columns) == m:
            self.progress.tick(1)
            if self.allowed(columns):
                self.check_columns(columns, parts)
            return
        for j in range(columns[-1] + 1 if columns else 0, self.d):
            column = self.columns[j]
            if column is None:
                continue
            self.progress.tick(steps=len(parts) * (1 + self.n // WORD))
            ones = [part & column for part in parts]
            self.extend(m, (*columns, j), [part ^ one for part, one in zip(parts, ones, strict=True)] + ones)

    def check_columns(self, columns: tuple[int, ...], parts: list[int]) -> None:
        """Check all cards of these columns; a part has the rows of a pattern, column columns[j] being its bit j."""
        of = [0] * self.n
        for at, j in enumerate(columns if any(isinstance(one, Ordered) for one in self.statistics) else ()):
            of = [pattern | (number > 0) << at for pattern, number in zip(of, self.numbers[j], strict=True)]
        shares = [statistic.parts(parts, of) for statistic in self.statistics]
        none = [0] * len(shares)
        if self.closed(shares, none, 0, 0):
            return
        for mask in range(len(parts)):
            alike = self.alike(columns, [bool(mask >> at & 1) for at in range(len(columns))])
            if alike and all((self.least if mask >> at & 1 else self.largest)[j] for at, j in enumerate(columns)):
                every = zip(self.statistics, shares, strict=True)
                if any(statistic.masked(share, mask) <= statistic.limit for statistic, share in every):
                    continue
                named = [parts[p ^ mask] for p in range(len(parts))]
                self.check_orders(self.orders, columns, named, mask, shares, none, [])

    def closed(self, shares: list[Json], reached: list[int], placed: int, place: int) -> bool:
        """Whether a statistic cannot exceed its limit, given those of the patterns that are placed."""
        every = zip(self.statistics, shares, reached, strict=True)
        return any(value + statistic.rest(of, placed, place) <= statistic.limit for statistic, of, value in every)

    def check_numbers(self, columns: tuple[int, ...]) -> None:
        """Check all points of these columns, one of which has other numbers than 0 and 1."""
        chosen = sorted(columns, key=lambda j: -len({*self.numbers[j]}))
        # for each number of columns that are fixed, the values of the others
        blocks = [list(zip(*(self.numbers[j] for j in chosen[at:]), strict=True)) for at in range(len(chosen))]
        self.fix(chosen, blocks, (), [0] * self.n)

    def fix(self, columns: list[int], blocks: list[Any], points: tuple[int, ...], totals: list[int]) -> None:
        """Check all points of columns that begin with some, which give the rows these totals."""
        if (at := len(points)) == len(columns):
            better = math.gcd(*points) == 1 and (value := self.ranked.of_totals(totals)) > self.ranked.limit
            if better and self.meets(totals):
                names, attained = ", ".join(map(str, sorted(columns))), show(self.ranked.objective(value, at))
                raise CertificateError(f"proof.bound: points of the columns {names} have the value {attained}")
            return
        j = columns[at]
        column = self.numbers[j]
        for direction, most in ((-1, -self.least[j]), (1, self.largest[j])):
            for size in range(1, most + 1):
                now = [total + direction * size * v for total, v in zip(totals, column, strict=True)]
                if at + 1 < len(columns) and any(
                    statistic.of_blocks(blocks[at + 1], now) <= statistic.limit for statistic in self.statistics
                ):
                    if at == 0:
                        break  # other sizes order the rows of a block alike
                    continue
                self.fix(columns, blocks, (*points, direction * size), now)

    def check_orders(
        self,
        tree: Orders,
        columns: tuple[int, ...],
        parts: list[int],
        mask: int,
        shares: list[Json],
        values: list[int],
        tiers: list[int],
        placed: int = 0,
    ) -> None:
        """Check all orders below a node of the tree, where some patterns are placed and statistics have a value.

        The parts are those of the renamed patterns, shares and placed are about the patterns themselves. The tiers
        are the sets of rows that are placed, from the top.
        """
        place = sum(rows.bit_count() for rows in tiers)
        for equal, below in tree.items():
            steps = sum(len(parts) + len(statistic.levels) * (1 + self.n // WORD) for statistic in self.statistics)
            self.progress.tick(steps=steps)
            rows, tier = 0, 0
            for pattern in equal:
                rows |= parts[pattern]
                tier |= 1 << (pattern ^ mask)
            now, end = placed | tier, place + rows.bit_count()
            every = zip(self.statistics, shares, values, strict=True)
            reached = [value + one.tied(share, tier, placed, rows, place) for one, share, value in every]
            if self.closed(shares, reached, now, end):
                continue
            if below:
                self.check_orders(below, columns, parts, mask, shares, reached, [*tiers, rows], now)
            elif self.meets(self.totals_of([*tiers, rows])):
                names = ", ".join(map(str, columns)) or "none"
                better = show(self.ranked.objective(reached[0], len(columns)))
                raise CertificateError(f"proof.bound: a card of the columns {names} has the value {better}")


def orders(m: int, fewest: int, points: int) -> Orders:
    """Return the orders of all patterns of m columns by points of these sizes: a tree of the sets of equal totals."""
    root: Orders = {}
    for weights in itertools.product(range(fewest, points + 1), repeat=m):
        totals: dict[int, list[int]] = {}
        for pattern in range(1 << m):
            total = sum(w for at, w in enumerate(weights) if pattern >> at & 1)
            totals.setdefault(total, []).append(pattern)
        node = root
        for total in sorted(totals, reverse=True):
            node = node.setdefault(tuple(totals[total]), {})
    return root


class Risk(Pointed):
    """The problem of a file of the kind "risk", checked: `numbers` are the values of each column, times the unit.

    `rows` has the label and the weight of each row; weights add up to 1.
    """

    def __init__(self, content: dict[str, Json], progress: Progress | None = None) -> None:
        self.progress = progress or Progress()
        n, self.C = size_and_price(content)
        X, y = content["X"], entries(content, "y", n, lambda label: label in (0, 1), "be 0 or 1")
        require(0 < sum(y) < n, "problem.y", "must hold both labels")
        weights = [Fraction(v) for v in entries(content, "row_weights", n, lambda weight: weight > 0, "be > 0")]
        total = sum(weights)
        self.rows = [(label, weight / total) for label, weight in zip(y, weights, strict=True)]
        whole, self.unit = integers([v for row in X for v in row])
        self.numbers = [whole[j :: len(X[0])] for j in range(len(X[0]))]
        self.read_conditions(content, len(X[0]))
        self.intercept = content["intercept"]
        if self.intercept is not None:
            sized(self.intercept, 2, "problem.intercept")
            require(self.intercept[0] <= self.intercept[1], "problem.intercept", "must be the least and the largest")

    def size(self) -> Fraction:
        """Return 0, the loss of perfect chances."""
        return Fraction(0)

    def value(self, weights: list[float]) -> Fraction:
        """Return minus the loss of points and an intercept, minus the price of the columns."""
        *points, intercept = map(int, weights)
        used = [(w, self.numbers[j]) for j, w in enumerate(points) if w]
        shares: dict[tuple[int, int], Fraction] = {}  # the weight of the rows of each total and label
        for i, (label, weight) in enumerate(self.rows):
            self.progress.tick(steps=1 + len(used))
            key = sum(w * column[i] for w, column in used) + intercept * self.unit, label
            shares[key] = shares.get(key, Fraction(0)) + weight
        loss = sum(weight * self.loss(Fraction(total, self.unit), label) for (total, label), weight in shares.items())
        return -loss - self.C * len([j for j, w in enumerate(points) if w and j not in self.free])

    def loss(self, total: Fraction, label: int) -> Fraction:
        """Return log(1 + exp(-total)) for the label 1, log(1 + exp(total)) for 0, to fifty digits at least."""
        self.progress.tick(steps=100)
        against = -total if label else total
        with decimal.localcontext(prec=DIGITS, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX):
            size = decimal.Decimal(abs(total).numerator) / decimal.Decimal(abs(total).denominator)
            x = (-size).exp()
            rest = (1 + x).ln() if size < FAR else x - x * x / 2
        return max(against, Fraction(0)) + Fraction(rest)

    def check_weights(self, weights: list[float]) -> None:
        """Check that points and intercept are allowed."""
        *points, intercept = weights
        whole = intercept == int(intercept) and abs(intercept) <= LARGEST
        require(whole, f"weights[{len(points)}]", f"must be a whole number, got {intercept!r}")
        self.check_points(points)
        if self.intercept is not None:
            low, high = self.intercept
            words = f"is the intercept, which must be from {low} to {high}, got {intercept:g}"
            require(low <= intercept <= high, f"weights[{len(points)}]", words)

    def prove(self, bound: Fraction | None, partition: list[str]) -> str:
        """Refuse a proof: this program proves no bound of a loss."""
        raise CertificateError("proof: must be null for a risk score: this program proves no bound of its loss")
