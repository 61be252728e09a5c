"""Estimators with scikit-learn's conventions: fit and predict on arrays, lists and long tables (extra [sklearn]).

They derive from scikit-learn's BaseEstimator and mixins, which carry get_params, clone, tags and the check of columns.
skorch's nets were not used: they take one tensor per sample and module options under double underscores, while series
of unequal length with gaps and masks need batches, a loss and a scaling of their own, which is most of a net. The
class for aeon (`lrcnet.estimators.aeon`) derives from aeon's BaseClassifier, which carries aeon's conversions.
"""

from lrcnet.estimators.classifier import LiquidClassifier
from lrcnet.estimators.forecaster import LiquidForecaster
from lrcnet.estimators.regressor import LiquidRegressor

__all__ = ["LiquidClassifier", "LiquidForecaster", "LiquidRegressor"]
