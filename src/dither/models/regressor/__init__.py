"""Regressors that are fitted elsewhere: a scikit-learn estimator, or a function of your own that is never trained."""

from dither.models.regressor.fixed import Fixed
from dither.models.regressor.regressor import Regressor

__all__ = ["Fixed", "Regressor"]
