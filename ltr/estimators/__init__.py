"""Rankers as scikit-learn estimators: for pipelines, cross-validation and grid searches.

=================  ===================================================  ================================
estimator          what it finds                                        built on
=================  ===================================================  ================================
`LinearRanker`     the linear scorer with the smallest surrogate loss   `ltr.base_rankers.SurrogateRanker`
`ExactRanker`      the linear scorer with the largest rank statistic    `ltr.exact.solve`
`ExactReranker`    that scorer for the top K of any other ranker        `ltr.TwoStageRanker`
=================  ===================================================  ================================

They are neither classifiers nor regressors. Labels are 0 and 1 or graded, ``decision_function`` and ``predict`` give
scores, ``score`` is the mean of a rank statistic over lists. A ``qid`` says which rows form a list; it is metadata in
scikit-learn's sense, for ``fit`` and ``score`` of all and for ``decision_function`` and ``predict`` of `ExactReranker`.

Examples:
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import StratifiedKFold, cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), LinearRanker("hinge"))
    >>> cross_val_score(model, *load_breast_cancer(return_X_y=True), cv=StratifiedKFold(3), scoring="roc_auc").round(2)
    array([0.98, 0.97, 0.99])
"""

from ltr.estimators.exact import ExactRanker, ReproducibleSearch
from ltr.estimators.linear import LinearRanker
from ltr.estimators.two_stage import ExactReranker

__all__ = ["ExactRanker", "ExactReranker", "LinearRanker", "ReproducibleSearch"]
