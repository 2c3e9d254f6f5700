r"""First and second derivatives of losses in the scores of single items, for methods that take Newton steps.

`derivatives` returns for each item the *slope* ``g_i = ∂F/∂s_i`` of its list's value F, and its *curvature* h_i >= 0.
With z the score difference of a pair, φ its pair function, w shares of the value and Q the probabilities of a draw:

==========================  ======================================================================================
loss                        curvature
==========================  ======================================================================================
RankNet, exponential,       ``∂²F/∂s_i²``, the sum of ``w φ''(z)`` over the pairs of the item
squared hinge, MarginMSE
hinge                       the sum of ``w |φ'(z)|``, which counts its pairs with a loss: φ'' is 0 but for the kink
P-norm push                 p times the sum of the sizes of what its pairs add to its slope, which is at least
                            ``∂²F/∂s_i²`` because ``φ'' <= |φ'| <= φ`` for both inner functions
logistic                    ``∂²F/∂s_i²``, w p (1 - p)
ListNet, KL, softmax,       ``∂²F/∂s_i²``, the sum of Q (1 - Q) over the draws in which the item can come
ListMLE
LambdaLoss                  the sum of ``w φ''(z)`` over its pairs, with the changes of the statistic as constants
smooth statistics           ``sum over k of σ'(z) (c_i + c_k) / temperature²``, at least ``|∂²F/∂s_i²|``, with c >= 0
                            the slopes of the statistic in the smooth positions
==========================  ======================================================================================

*Why a diagonal is enough.* A pair function adds ``φ'' (e_i - e_k)(e_i - e_k)^T`` to the Hessian of F, and
``(x_i - x_k)² <= 2 x_i² + 2 x_k²``: the Hessian is at most twice the diagonal matrix of the curvatures (likewise for
draws, whose Hessian ``diag Q - Q Q^T`` is a sum of such pairs). So a step of ``-η g_i / h_i`` goes downhill, in the
quadratic model at the scores, for every learning rate η <= 1, also where it is taken in all items or leaves at once.

Lists that are short or have a kernel for items alone are computed by the C++ core (`ltr/native/losses.h`), the others
by the near-linear sums of `ltr.losses.transforms`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ltr.lists import Lists, as_lists, numbered
from ltr.losses.contract import RankingLoss, lists_of
from ltr.losses.operators import TIMES, Given, Lengths, by_core, groups_of


def derivatives(
    loss: RankingLoss, scores: Tensor, labels: Tensor, qid: Tensor, *, weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the slope and the curvature of each item's list value in its score: both float64, (items,).

    All tensors are (items,): scores, labels, `qid`, the list of each item, in any order, and nonnegative weights. The
    `reduction` of the loss plays no part. Raises NotImplementedError for a loss of one's own without second
    derivatives, TypeError or ValueError for inputs that the loss rejects.

    Examples:
        >>> from ltr.losses import RankNetLoss
        >>> qid = torch.tensor([4, 4, 4])
        >>> slopes, curvatures = derivatives(RankNetLoss(), torch.zeros(3), torch.tensor([1, 0, 0]), qid)
        >>> slopes.tolist(), curvatures.tolist()  # σ(0) = 1/2 and σ'(0) = 1/4, two pairs
        ([-0.5, 0.25, 0.25], [0.25, 0.125, 0.125])
    """
    scores, labels = scores.detach().double(), labels.detach().double()
    weight = None if weight is None else weight.detach().double()
    lists = as_lists(scores, labels, weight=weight, signed=loss.signed)
    found = _by_core(loss, lists, qid)
    if found is not None:
        return found
    number = numbered(qid)
    slopes, curvatures = torch.zeros_like(scores), torch.zeros_like(scores)
    short = (torch.bincount(number) <= TIMES * loss.short)[number]
    for rows in (short.nonzero().squeeze(-1), (~short).nonzero().squeeze(-1)):
        some = None if weight is None else weight[rows]
        part = Lists(lists.scores[rows], lists.labels[rows], lists.mask[rows], some)
        found = _by_core(loss, part, number[rows])
        slopes[rows], curvatures[rows] = _by_sums(loss, part, number[rows]) if found is None else found
    return slopes, curvatures


def _by_core(loss: RankingLoss, lists: Lists, qid: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return the derivatives by the C++ core; None where it has no form of the loss for these lists."""
    groups = groups_of(qid)
    if not groups.items:
        return torch.zeros_like(lists.scores), torch.zeros_like(lists.scores)
    equal = groups.lists * groups.longest == groups.items
    lengths = Lengths(groups.longest, groups.pairs, equal, lists.weight is not None)
    kernel = loss.native(lengths, derivatives=True)
    if kernel is None:
        return None
    curvatures = torch.empty_like(lists.scores)
    given = Given(lists.labels, None, lists.weight, None)
    found = by_core(kernel, lists.scores, given, groups, "none", curvatures)
    if found is None:  # the formula raises the error
        loss.in_torch(lists.scores, given._replace(qid=qid), "none")
        raise AssertionError(f"{loss}: the core refuses lists that the formula accepts")
    return found[1], curvatures


def _by_sums(loss: RankingLoss, lists: Lists, number: Tensor) -> tuple[Tensor, Tensor]:
    """Return the derivatives by sums in torch, for lists of similar length together."""
    slopes, curvatures = torch.zeros_like(lists.scores), torch.zeros_like(lists.scores)
    for members, part in lists_of(lists, number):
        found = loss.derivatives_of(part)
        slopes[members[part.mask]], curvatures[members[part.mask]] = (x[part.mask] for x in found)
    return slopes, curvatures
