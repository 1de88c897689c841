"""Networks as the model of rewards: the configuration and its state. The arithmetic is in the files beside it."""

from dither.models.network.network import Network, NetworkState

__all__ = ["Network", "NetworkState"]
