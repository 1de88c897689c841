"""Any regressor as the model of rewards: a scikit-learn estimator that is refitted, or a function that never is."""

from dither.models.regressor.fixed import Fixed
from dither.models.regressor.regressor import Regressor

__all__ = ["Fixed", "Regressor"]
