"""Weight-space search: branch and bound over boxes of weights, with a proof that holds in floating point.

`WeightSpaceSearch` is the method; the modules below it hold the space that is searched (`space`), what a box knows
(`_ends`), the linear program that closes boxes (`_hinge`), how they shrink (`_shrink`), the search itself (`_kernel`),
its threads (`crew`), its coordinates (`coordinates`), the order of its targets (`proof`), and boxes as the nodes of
another solver's tree (`node`).
"""

from ltr.exact.weight_space.solver import WeightSpaceSearch

__all__ = ["WeightSpaceSearch"]
