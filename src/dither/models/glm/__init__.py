"""Generalised linear models: the estimate, its curvature, and a bound on its distance to the exact estimate."""

from dither.models.glm.glm import GLM, GLMState

__all__ = ["GLM", "GLMState"]
