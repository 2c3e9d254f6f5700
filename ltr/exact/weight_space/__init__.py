"""Weight-space search: branch and bound over boxes of weights, with a proof that holds in floating point.

`WeightSpaceSearch` is the method; the modules below it hold the space that is searched (`space`), what a box knows
(`_ends`), the linear program that closes boxes (`_hinge`), the search itself (`_kernel`), its threads (`crew`), its
coordinates (`coordinates`) and the order of its targets (`proof`).
"""

from ltr.exact.weight_space.solver import WeightSpaceSearch

__all__ = ["WeightSpaceSearch"]
