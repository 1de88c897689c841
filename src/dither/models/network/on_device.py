"""A network in a simulation on a device of torch: all arrays are tensors there, and R runs are computed at once."""

from typing import Any

from dither.base.arrays import Array
from dither.models.network import at_once, modules
from dither.models.network.network import Network, NetworkState, answer

COPIES = 12  # of θ that a run takes: the state, the gradient with its parts, and what Adam needs for a while
KEPT = 6  # copies of the numbers of a row in its widest layer, forward and backward


class NetworkOnDevice(Network):
    """As `Network`, in tensors on `device`: θ (R, p), with R runs always."""

    placed: Any = None  # its arrays are on the device

    def bytes(self, dim: int, rounds: int) -> int:
        """About how much memory one run takes after so many rounds, with what a round needs for a while.

        Arms with features of their own are counted as the rows of a batch.
        """
        net = modules.network(self, dim)
        size = 8 if self.dtype == "float64" else 4
        rows = self.batch + (self.slots or self.batch)
        formed = min(net.forms * rows, at_once.NUMBERS_AT_ONCE)
        return super().bytes(dim, rounds) + size * (COPIES * net.size + KEPT * rows * net.width + formed)

    def embedded(self, state: NetworkState, X: Array, arm: Array | None) -> Array:
        """φ of rows of every run, of the arm that is said with slots: X (R, n, d), arm (R, n) -> (R, n, h)."""
        engine, net = self._net(X.shape[-1])
        return answer(engine.last_hidden(net, state.theta, self._cast(X, "X"), arm))

    def _net(self, dim: int) -> tuple[Any, Any]:
        """The file whose functions compute the network, and the network as they take it."""
        return at_once, modules.network(self, dim)

    def _whole_net(self, dim: int) -> tuple[Any, Any]:
        """The same for a perceptron that takes Kd-vectors as they are, of dim numbers."""
        return at_once, modules.perceptron(self, dim)
