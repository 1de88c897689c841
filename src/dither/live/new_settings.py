"""What may be passed where the settings of a running bandit change: the settings of all algorithms, and the terms.

It is for type checkers and editors, and a test compares it with the classes. At run time a bandit takes those of its
own classes, also of a user's.
"""

from collections.abc import Mapping
from typing import Any

from dither.log.terms import NewTerms


class NewSettings(NewTerms, total=False):
    """What is left out stays as it is. The classes of policies and models say what each means."""

    # of the decisions
    floor: float
    monte_carlo: int
    budgets: Mapping[Any, Any] | None
    # of policies
    Lam: float
    M: float
    S: float | None
    Sigma: Any
    a: float
    beta: float | None
    c: Any
    c_mu: float
    coupled: bool
    decay: str | None
    delta: float | None
    eps: float
    epsilon: float
    form: str
    forced: bool
    gamma: Any
    gram: bool
    inflate: bool
    jitter: float
    k_mu: float
    kappa: float | None
    law: Any
    noise: Any
    nu: float
    once: bool
    power: float
    radius: str
    rho: float | None
    sigma: Any
    sigma_again: bool
    temperature: float
    # of models
    R: float
    batch: int
    beta1: float
    beta2: float
    centre: bool
    constrain: float | None
    convolutions: Any
    device: str
    discount: float
    dtype: str
    encode: Any
    every: int
    factor: float
    first: int
    half_life: float | None
    hidden: Any
    image: Any
    lam: Any
    link: str
    lr: float
    mask: Any
    memory: int
    min_derivative: float
    output: str
    partial: bool
    refit: Any
    refresh: int
    ridge: float | None
    solver: str
    steps: int
    tol: float
    trained: bool
    weight_decay: float
    window: int | None
