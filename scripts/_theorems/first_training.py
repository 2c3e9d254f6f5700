"""What training makes of the data of the paper's first theorem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ltr.data import Dataset
from trainers.report.page import Block, Picture, Section, Table, Text
from trainers.report.wording import listed

from .first_pictures import loss_curves
from .preferences import CONVEX, FAR, LARGEST, Comparison, lowest, moved, preference, turning_scale
from .training import Rankings, Trained, train
from .words import change, code, number, percent

__all__ = ["training_section"]


def training_section(data: Dataset, comparisons: Sequence[Comparison], found: Rankings) -> Section:
    """What the convex losses prefer by the unit of x, and where training takes them.

    Args:
        data: of the theorem.
        comparisons: of the losses at the scores x and −x.
        found: statistics of both solutions.
    """
    far = moved(data)
    scales = {name: turning_scale(name, data) for name in CONVEX}
    trained = [(train(name, data), train(name, far)) for name in CONVEX]
    least = [other.weight for _, other in trained]
    picture = Picture(
        "theorem1_losses",
        loss_curves({"the theorem's data": data, f"the lowest clump at {number(FAR)}": far}),
        "Losses of the scores w·x against the weight w; a dot where each is smallest. The theorem compares w = 1 and "
        f"w = −1 (dotted). Right: the same data but for the {int(lowest(data).sum())} lowest positives, which are "
        f"further down; there the losses are smallest between w = {number(min(least), 2)} and {number(max(least), 2)}.",
    )
    columns = ["slope at 0", "best w", "ranking"]
    header = ["loss", "x", "turns at", *columns, *(f"{column}, moved" for column in columns)]
    rows = [_row(own, other, scales, comparisons) for own, other in trained]
    caption = (
        "x: the solution that the loss prefers for the scores x and −x. Turns at: the factor of x at which its "
        f"preference turns over, up to {LARGEST:g}. Slope: the derivative of the loss in w at w = 0 (for `logistic`, "
        "which sees a bias, at the best bias); its sign proves on which side the smallest value lies. Best w: from a "
        "fit with an l2 price of 1e-6, at most "
        f"{percent(max(t.gap for pair in trained for t in pair))} above the smallest objective. Ranking: the solution "
        f"that training ends with. Moved: with the lowest clump at {number(FAR)}."
    )
    blocks: list[Block] = [
        Text(_on_scale(scales, comparisons)),
        Text(_on_slopes(data, [own for own, _ in trained], found)),
        picture,
        Text(_on_moving(far, trained, found)),
        Table(header, rows, caption),
    ]
    return Section("Theorem 1: what training makes of it", blocks)


def _row(
    own: Trained, other: Trained, scales: Mapping[str, float | None], comparisons: Sequence[Comparison]
) -> list[str]:
    turns = scales[own.loss]
    return [
        code(own.loss),
        preference(comparisons, own.loss),
        "—" if turns is None else number(turns),
        number(own.slope),
        number(own.weight),
        str(own.solution),
        number(other.slope),
        number(other.weight),
        str(other.solution),
    ]


def _on_scale(scales: Mapping[str, float | None], comparisons: Sequence[Comparison]) -> str:
    turning = {name: scale for name, scale in scales.items() if scale is not None}
    text = (
        "**Which solution a loss prefers depends on the unit of x.** A ranking does not change when all scores are "
        "multiplied by a positive number, a loss does."
    )
    if turning:
        turned = listed([f"{code(name)} at {number(scale)}" for name, scale in turning.items()])
        text += f" With x multiplied by a factor that grows from 0, the preference turns over for {turned}"
        text += f"; not for the other losses, up to a factor of {LARGEST:g}." if len(turning) < len(scales) else "."
    exponential = scales.get("exponential")
    if exponential is not None and preference(comparisons, "exponential") == "2":
        text += (
            f" The theorem's sentence on the exponential loss thus holds for x as given, and no more once x is "
            f"measured in units {number(1 / exponential)} times as large."
        )
    return text


def _on_slopes(data: Dataset, trained: Sequence[Trained], found: Rankings) -> str:
    ends = {t.solution for t in trained}
    gap = _mean_difference(data)
    text = (
        "**Training chooses the scale.** It looks for the smallest loss over all w, and a convex function that falls "
        "at w = 0 is smallest to the right of it. There the derivative of a mean over pairs of φ(w·(x_i − x_k)) is "
        f"φ′(0) times the mean of the positives less that of the negatives, {number(gap)}, whatever φ is. "
    )
    if ends != {1}:
        return text + f"Training ends with Solution {listed(sorted(map(str, ends)))}."
    lost = {name: found["Solution 1"][name] / found["Solution 2"][name] - 1 for name in ("dcg@100", "pauc@10")}
    return text + (
        f"So all {len(trained)} convex losses, the exponential one among them, are smallest for a positive w: each "
        "ends with Solution 1, which AUC prefers, too. The paper concludes that the exponential loss in place of AUC "
        "“could give the completely opposite result than desired”; for linear scorers of these data it does not. What "
        "they do show is that no choice of a convex loss matters: all end with the same ranking, whatever statistic "
        "is wanted, and for two of the theorem's it is the wrong one "
        f"(`dcg@100` {change(lost['dcg@100'])}, `pauc@10` {change(lost['pauc@10'])} against Solution 2)."
    )


def _mean_difference(data: Dataset) -> float:
    x = data.X[:, 0]
    return float(x[data.y == 1].mean() - x[data.y == 0].mean())


def _on_moving(far: Dataset, trained: Sequence[tuple[Trained, Trained]], found: Rankings) -> str:
    turned = [own.loss for own, other in trained if own.solution != other.solution]
    text = (
        f"**An example on which they do mislead AUC.** With the lowest clump at {number(FAR)} no two observations "
        "change places, so all statistics are as before, but the mean of the positives is now "
        f"{number(-_mean_difference(far))} below that of the negatives. "
    )
    if len(turned) < len(trained):
        return text + f"The best w changes its sign for {listed([code(name) for name in turned]) or 'no loss'}."
    auc = [found[f"Solution {solution}"]["auc"] for solution in (1, 2)]
    return text + (
        f"All {len(turned)} losses, hinge included, then end with Solution 2: an AUC of {number(auc[1])} where "
        f"{number(auc[0])} is possible. A change that no rank sees turns every convex loss around; that is what the "
        "theorem is meant to warn of, and it does not depend on which of these losses is taken."
    )
