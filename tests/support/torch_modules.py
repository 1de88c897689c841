"""What the tests of networks that torch computes share: the plain module, its θ, rows and images."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dither import models

torch = pytest.importorskip("torch")
nn, functional = torch.nn, torch.nn.functional
modules = pytest.importorskip("dither.models.network.modules")

K, H, W = 3, 9, 6  # 9 is odd: the pooling leaves out its last row, as torch's does
FILTERS, HIDDEN = (4, 5), (6,)
TIGHT = {"float64": 1e-9, "float32": 1e-5}


class Plain(nn.Module):
    """The network as the paper writes it: images of all K channels, ReLU and then pooling."""

    def __init__(self, channels=K, image=(H, W), filters=FILTERS, hidden=HIDDEN):
        super().__init__()
        widths = (channels, *filters)
        self.stages = nn.ModuleList(nn.Conv2d(n, m, 3, padding=1) for n, m in itertools.pairwise(widths))
        left = filters[-1] * math.prod(side // 2 ** len(filters) for side in image)
        widths = (left, *hidden, 1)
        self.layers = nn.ModuleList(nn.Linear(n, m) for n, m in itertools.pairwise(widths))

    def forward(self, x):
        for stage in self.stages:
            x = functional.max_pool2d(functional.relu(stage(x)), 2)
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = functional.relu(layer(x))
        return self.layers[-1](x)


def flat(tensors):
    """In the order of θ: the first layer's filters (F, K, 3, 3) lie channel by channel."""
    first, *rest = (A.detach() for A in tensors)
    return torch.cat([first.permute(1, 0, 2, 3).flatten(), *(A.flatten() for A in rest)]).numpy()


def placed(X, arm, channels=K, image=(H, W)):
    """The images (n, K, h, w) of rows X (n, d) in their slots."""
    full = np.zeros((len(X), channels, *image), X.dtype)
    full[np.arange(len(X)), arm] = X.reshape(-1, *image)
    return torch.from_numpy(full)


def cnn(dtype="float64", slots=K, image=(H, W), filters=FILTERS, hidden=HIDDEN, **more):
    return models.Network(convolutions=filters, hidden=hidden, image=image, slots=slots, dtype=dtype, **more)


def case(dtype, seed=0, slots=K, n=7, image=(H, W), filters=FILTERS, hidden=HIDDEN):
    """The network, its θ, the same as a plain module, rows and their slots."""
    torch_dtype, d = getattr(torch, dtype), math.prod(image)
    rng = np.random.default_rng(seed)
    net = modules.network(cnn(dtype, slots, image, filters, hidden), d)
    plain = Plain(slots or 1, image, filters, hidden).to(torch_dtype)
    with torch.no_grad():
        for A in plain.parameters():
            A.copy_(torch.from_numpy(rng.uniform(-0.4, 0.4, A.shape)))
    X = rng.standard_normal((n, d)).astype(dtype)
    return net, flat(plain.parameters()), plain, X, rng.integers(0, slots or 1, n)


def close(got, wanted, dtype):
    assert got.dtype == np.dtype(dtype)
    assert_allclose(got, wanted, rtol=TIGHT[dtype], atol=TIGHT[dtype] * np.abs(wanted).max())
