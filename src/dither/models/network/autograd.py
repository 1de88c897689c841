"""A torch.nn.Module of your own as the network: it takes rows and returns one number for each.

    rows      (n, d); with K slots the Kd-vectors (n, K d); with image=(h, w) the images (n, 1, h, w) or (n, K, h, w)
    output    (n,) or (n, 1)
    θ         the parameters of the module that have requires_grad, one after the other. θ_0 is what the module has, so
              all runs begin alike
    constant  everything else: the buffers, and the parameters without requires_grad

`models.Network` copies the module when it is made, in eval mode: there is no dropout, and batch norm keeps its means.
The answer to a row may depend on no other row.
"""

import functools
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.func import functional_call, grad_and_value, vmap

NUMBERS_AT_ONCE = 2**24  # that the gradients of the rows of one call may take


class OwnModule:
    """A module in eval mode, for rows of d features."""

    def __init__(
        self,
        module: torch.nn.Module,
        d: int,
        slots: int | None,
        image: tuple[int, int] | None,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.module, self.d, self.slots, self.image, self.device = module, d, slots, image, device
        trained = {name: A for name, A in module.named_parameters() if A.requires_grad}
        self.names, self.shapes = list(trained), [A.shape for A in trained.values()]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)  # p
        self.K = slots or 1
        self.lock = threading.RLock()  # one thread at a time: a call puts θ into the module and takes it out again
        self.width = max(d * self.K, math.isqrt(self.size))  # about how many numbers a row takes in the widest layer
        self.forms = self.size  # numbers of the gradients that `squares` forms for a row
        self.theta = torch.cat([A.detach().flatten() for A in trained.values()]).cpu().numpy()
        rows = torch.linspace(-1, 1, 3 * d, dtype=dtype, device=device).view(3, d)
        self.trial = rows, None if slots is None else torch.arange(3, device=device) % slots  # rows and their slots
        self._try()

    @functools.cached_property
    def at_once(self) -> bool:
        """Whether vmap computes two θ at once, with their gradients, as they are computed one after the other."""
        thetas = torch.stack([torch.from_numpy(self.theta).to(self.device) * scale for scale in (1.0, 0.9)])
        try:
            answers = self._each(vmap(self._sampled), thetas), self._each(_in_turn(self._sampled), thetas)
        except Exception:  # whatever stops vmap, the module itself has passed `_try`
            return False
        return all(torch.allclose(*pair, rtol=1e-3, atol=1e-5, equal_nan=True) for pair in zip(*answers, strict=True))

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """θ_0 (p,): as the module has it."""
        return self.theta.copy()

    def parts(self, theta: torch.Tensor) -> list[torch.Tensor]:
        """The parameters in θ (p,), as views."""
        return [part.view(shape) for part, shape in zip(theta.split(self.sizes), self.shapes, strict=True)]

    def answers(self, parts: list[torch.Tensor], X: torch.Tensor, arm: torch.Tensor | None = None) -> torch.Tensor:
        """f (N,) of rows X (N, d) in the slots arm (N,)."""
        return self._called(parts, self._placed(X, arm))

    def apart(self, parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
        """f (K,) of a row for each slot, X (K, d)."""
        return self.answers(parts, X, torch.arange(len(X), device=X.device))

    def everywhere(self, parts: list[torch.Tensor], X: torch.Tensor) -> torch.Tensor:
        """f (n, K) of contexts X (n, d) in every slot."""
        arm = torch.arange(self.K, device=X.device).repeat(len(X))
        return self.answers(parts, X.repeat_interleave(self.K, dim=0), arm).view(len(X), self.K)

    def squares(self, parts, weights, X: torch.Tensor, arm: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """f and Σ_p (∂f/∂θ_p)² u_p, (N,) each; u is in `weights`, laid out as `parts`.

        The rows are taken a few at a time, since the gradient of each row is formed.
        """
        n = max(1, NUMBERS_AT_ONCE // self.size)
        each = [self._squares(parts, weights, rows) for rows in self._placed(X, arm).split(n)]
        return torch.cat([f for f, _ in each]), torch.cat([square for _, square in each])

    def _squares(self, parts, weights, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The same for rows as the module takes them."""
        rule = grad_and_value(lambda parts, row: self._called(parts, row[None])[0])
        try:
            gradients, f = vmap(rule, in_dims=(None, 0))(parts, rows)
        except RuntimeError:  # vmap cannot follow everything that a module may do: go row by row
            single = [rule(parts, row) for row in rows]
            gradients = [torch.stack(kind) for kind in zip(*(g for g, _ in single), strict=True)]
            f = torch.stack([one for _, one in single])
        square = sum((g * g * u).flatten(1).sum(dim=1) for g, u in zip(gradients, weights, strict=True))
        return f.detach(), torch.as_tensor(square).detach()

    def _called(self, parts: list[torch.Tensor], rows: torch.Tensor) -> torch.Tensor:
        """f (N,) of rows as the module takes them. Raises ValueError where it does not return one number a row."""
        with self.lock:
            f = functional_call(self.module, dict(zip(self.names, parts, strict=True)), (rows,))
        if not isinstance(f, torch.Tensor) or f.shape not in ((len(rows),), (len(rows), 1)):
            got = tuple(f.shape) if isinstance(f, torch.Tensor) else type(f).__name__
            raise ValueError(
                f"module must return one number a row, ({len(rows)},) or ({len(rows)}, 1), for rows of shape "
                f"{tuple(rows.shape)}; got {got}"
            )
        return f.reshape(-1)

    def _placed(self, X: torch.Tensor, arm: torch.Tensor | None) -> torch.Tensor:
        """Rows X (N, d) in the slots arm (N,), in the shape that the module takes."""
        if arm is not None:
            shown = arm[:, None] == torch.arange(self.K, device=X.device)
            X = torch.where(shown[:, :, None], X[:, None, :], 0.0).flatten(1)
        return X if self.image is None else X.reshape(len(X), -1, *self.image)

    def _sampled(self, theta: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """f and Σ_p (∂f/∂θ_p)² of the rows of the trial, for one θ (p,)."""
        parts = self.parts(theta)
        f = self.answers(parts, *self.trial)
        return f, self.squares(parts, [torch.ones_like(part) for part in parts], *self.trial)[1]

    def _each(self, rule: Callable[[torch.Tensor], Any], thetas: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What a rule answers for θ (R, p), and the gradient of Σ f."""
        leaf = thetas.detach().requires_grad_()
        f, square = rule(leaf)
        return f.detach(), square.detach(), *torch.autograd.grad(f.sum(), leaf)

    def _try(self) -> None:
        """Pass three rows twice. Raises ValueError for a module that cannot take them or has chance of its own."""
        placed, parts = self._placed(*self.trial), self.parts(torch.from_numpy(self.theta).to(self.device))
        with torch.no_grad():
            try:
                first, second = self._called(parts, placed), self._called(parts, placed)
            except RuntimeError as error:
                raise ValueError(
                    f"module must take rows of shape {tuple(placed.shape)}, as dim={self.d}, slots={self.slots} and "
                    f"image={self.image} make them: {error}"
                ) from error
        if not torch.equal(first, second) and not torch.isnan(first).any():
            raise ValueError(
                "module gives other answers to the same rows: it has chance of its own in eval mode, as of "
                "functional.dropout without training=self.training"
            )


def _in_turn(rule: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    """The same rule for θ (R, p), one after the other."""
    return lambda thetas: tuple(torch.stack(kind) for kind in zip(*map(rule, thetas), strict=True))
