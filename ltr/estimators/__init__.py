from ltr.estimators.exact import ExactRanker, ReproducibleSearch
from ltr.estimators.linear import LinearRanker
