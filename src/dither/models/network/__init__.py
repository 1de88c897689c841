"""Networks: the configuration and its state; the arithmetic is in the files beside it."""

from dither.models.network.network import Network, NetworkState

__all__ = ["Network", "NetworkState"]
