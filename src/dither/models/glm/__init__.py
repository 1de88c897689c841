"""Generalised linear models: the estimate, its curvature, and a bound on how far it is from the exact one."""

from dither.models.glm.glm import GLM, GLMState

__all__ = ["GLM", "GLMState"]
