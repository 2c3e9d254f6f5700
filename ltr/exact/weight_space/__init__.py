"""Weight-space search: branch and bound over boxes of weights, with a proof that holds in floating point.

=====================  ==============================================================================================
module                 what it holds
=====================  ==============================================================================================
`method`               `WeightSpaceSearch`, the method of `solve`
`search`               the proof: cutoffs that fall step by step, each proved by closing every box
`workers`              the threads that close boxes
`_kernel`              the search of one thread on one page: take a box, prune, bound, branch
`space`                the problem as compiled code reads it, boxes, and the memory of a thread
`_interval_bounds`     the least and the largest difference of each pair over a box, and the pairs these decide
`_open_pairs`          lists of the pairs that are still open
`_tightening`          bound tightening: boxes reduced to where something better can be
`_probing`             halves and quarters of a box that lose too much
`_hinge_bound`         a Lagrangian bound that closes boxes, and candidates
`conflicts`            pairs that cannot both be won
`_conflicts`           what these cost
`coordinates`          the coordinates that are searched
=====================  ==============================================================================================
"""

from ltr.exact.weight_space.method import WeightSpaceSearch

__all__ = ["WeightSpaceSearch"]
