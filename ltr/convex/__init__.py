"""Certified optima of the convex losses: what a trained ranker can be measured against."""

from ltr.convex.optimum import ConvexOptimum, certified_optimum

__all__ = ["ConvexOptimum", "certified_optimum"]
