"""Links: μ, μ', μ'', g, support and constants of each."""

from dither.links.links import LARGEST_LOGIT, LINKS, Identity, Link, Log, Logit, Name, Probit, find

__all__ = ["LARGEST_LOGIT", "LINKS", "Identity", "Link", "Log", "Logit", "Name", "Probit", "find"]
