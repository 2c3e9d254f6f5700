r"""The pairwise loss of treatments: ``loss(scores, outcome, treatment, *, weight=None)``.

The area under the uplift curve with fixed group sizes is, up to a constant and a factor, the sum of ``z_i - z_k`` over
the pairs with ``z_i > z_k`` and ``s_i > s_k``, where ``z = y t / N_1 - y (1 - t) / N_0``. The loss has φ(s_i - s_k) in
place of the step.

*No pairs are listed.* Number the distinct values of z upwards. As in `ltr.survival.losses`, the rows whose numbers
agree on their leading binary digits are a list of two classes for the next digit. With c, the largest z of the lower
class, ``z_i - z_k = (z_i - c) 1 + 1 (c - z_k)``: two losses whose pairs have the product of two weights.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltr.losses.pairwise import TwoFieldLoss, check_rows, two_class_loss


class UpliftLoss(TwoFieldLoss):
    r"""A convex surrogate of the area under the uplift curve: the weighted mean of φ(s_i - s_k) over pairs z_i > z_k.

    With the transformed outcome ``z = y t / N_1 - y (1 - t) / N_0`` the value is ``sum of w_i w_k (z_i - z_k)
    φ(s_i - s_k)`` over the pairs with ``z_i > z_k``, divided by the sum of ``w_i w_k (z_i - z_k)`` with
    ``pairs="mean"``; N_1 and N_0 are the sums of the weights of treated rows and others. Without a treated row, without
    another one, or without different z the value and the gradient are 0. Outcomes 0 and 1 take O(n log n) time, others
    O(n log^2 n).

    Source: Devriendt, Van Belle, Guns & Verbeke, *Learning to rank for uplift modeling* (2020), for the area and
    LambdaMART; Athey & Imbens, *Recursive partitioning for heterogeneous causal effects* (2016), for z.

    Args:
        pair, pairs: φ, and ``"mean"`` or ``"sum"`` over the pairs, as in `ltr.survival.ConcordanceLoss`.

    Examples:
        >>> loss = UpliftLoss("hinge")
        >>> loss(torch.tensor([0.0, 0.5]), torch.tensor([1, 1]), torch.tensor([1, 0]))  # 1 - (0 - 0.5)
        tensor(1.5000)
    """

    def forward(self, scores: Tensor, outcome: Tensor, treatment: Tensor, *, weight: Tensor | None = None) -> Tensor:
        """Return the loss, 0-D.

        Args:
            scores: a higher score means a larger effect of the treatment, floating point, ``(rows,)``.
            outcome: what happened: 0 and 1, or other finite numbers, ``(rows,)``.
            treatment: whether the row was treated: booleans, or 0 and 1, ``(rows,)``.
            weight: nonnegative weight of each row, ``(rows,)``.
        """
        treated = check_rows(scores, {"outcome": outcome}, {"treatment": treatment}, weight, None)
        value = (scores * 0.0).sum()
        with torch.no_grad():
            w = torch.ones_like(outcome, dtype=torch.float64) if weight is None else weight.double()
            sizes = w[treated].sum(), w[~treated].sum()
            if not (bool(sizes[0] > 0) and bool(sizes[1] > 0)):
                return value
            z = torch.where(treated, outcome.double() / sizes[0], -outcome.double() / sizes[1])
            z, rows = z.sort()
            different, number = torch.unique_consecutive(z, return_inverse=True)
            w, digits = w[rows], (len(different) - 1).bit_length()
            # each pair by its upper row, less by its lower row
            before, behind = w.cumsum(0) - w, w.sum() - w.cumsum(0)
            total = (w * z * (before - behind)).sum()
        if not bool(total > 0):
            return value
        s = scores[rows]
        for digit in range(digits):
            upper, block = (number >> digit & 1).bool(), number >> digit + 1
            c = different[((block << digit + 1 | 1 << digit) - 1).clamp(max=len(different) - 1)]
            for by in (torch.where(upper, z - c, 1.0), torch.where(upper, 1.0, c - z)):
                kept = (by > 0).nonzero().squeeze(-1)
                whole = total if self.pairs == "mean" else None
                value = value + two_class_loss(self.pair, s[kept], upper[kept], block[kept], (w * by)[kept], whole)
        return value
