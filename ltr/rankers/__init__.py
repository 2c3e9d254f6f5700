"""Rankers as scikit-learn estimators: they learn from labelled rows and give every row a score.

==========================  ==================================================================
`AutoRanker`                the best of several methods, or a blend of them all
`SurrogateRanker`           the linear scorer, or small network, with the least surrogate loss
`LogisticRegressionRanker`  the linear score of a logistic regression
`RankBoostRanker`           a sum of boosted thresholds on single features
`ExactRanker`               the linear scorer with the largest rank statistic, with a proof
`TwoStageRanker`            any ranker for the whole list, an `ExactRanker` for its top
`EstimatorRanker`           an estimator of another library, or a class of your own
`ScoreColumn`               a column of the features, as the base of two stages
`TreesRanker`               the trees of a fitted model of LightGBM, XGBoost or scikit-learn
==========================  ==================================================================

A ranker is neither a classifier nor a regressor. Labels are 0 and 1 or graded, ``decision_function`` and ``predict``
give scores, ``score`` is the mean of a rank statistic over lists. ``calibrate`` learns the chance of a hit by score,
which ``predict_proba`` returns. A ``qid`` says which rows form a list; it is metadata
in scikit-learn's sense. ``save`` writes a fitted ranker to a file, and ``Ranker.load`` reads it.

Examples:
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import StratifiedKFold, cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> model = make_pipeline(StandardScaler(), SurrogateRanker("hinge"))
    >>> cross_val_score(model, *load_breast_cancer(return_X_y=True), cv=StratifiedKFold(3), scoring="roc_auc").round(2)
    array([0.98, 0.97, 0.99])
"""

from ltr.rankers.auto import AutoRanker, Comparison
from ltr.rankers.base import Ranker
from ltr.rankers.baselines import LogisticRegressionRanker, RankBoostRanker, ScoreColumn
from ltr.rankers.calibration import Calibration, fit_calibration, predictive_interval
from ltr.rankers.choice import Choice
from ltr.rankers.constraint_checks import ConstraintCheck, check_constraints
from ltr.rankers.demanded import DemandOutcome, DemandPrice, ReachedDemand
from ltr.rankers.estimators import EstimatorRanker, make_ranker
from ltr.rankers.exact import ExactRanker, ReproducibleSearch
from ltr.rankers.foreign import TreesRanker
from ltr.rankers.surrogate import SurrogateRanker
from ltr.rankers.two_stage import TwoStageRanker
from ltr.rankers.views import Explanation

__all__ = [
    "AutoRanker",
    "Calibration",
    "Choice",
    "Comparison",
    "ConstraintCheck",
    "DemandOutcome",
    "DemandPrice",
    "EstimatorRanker",
    "ExactRanker",
    "Explanation",
    "LogisticRegressionRanker",
    "RankBoostRanker",
    "Ranker",
    "ReachedDemand",
    "ReproducibleSearch",
    "ScoreColumn",
    "SurrogateRanker",
    "TreesRanker",
    "TwoStageRanker",
    "check_constraints",
    "fit_calibration",
    "make_ranker",
    "predictive_interval",
]
