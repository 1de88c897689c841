"""Estimators of a new policy's value from a log: V = E[Σ_k Q_k μ_k(x)], the mean reward had it chosen.

r (n,) rewards, a (n,) arms shown, p (n,) logged probabilities, Q (n, K) the new policy, M (n, K) reward predictions;
w = Q[i, a_i]/p_i, m = M[i, a_i], m̄ = Σ_k Q_ik M_ik. Each returns an `Estimate`.

    dm           mean m̄                                       unbiased if M is right
    ips          mean w r                                     unbiased if p is right and the log has support
    clipped_ips  mean min(w, clip) r                          Ionides 2008
    snips        Σ w r / Σ w                                  Swaminathan, Joachims 2015
    dr           mean m̄ + w (r - m)                           Dudík, Langford, Li 2011: p or M right
    sndr         mean m̄ + Σ w (r - m) / Σ w
    switch_dr    mean m̄ + w 1[w <= tau] (r - m)               Wang, Agarwal, Dudík 2017, Section 4, with DR
    dros         mean m̄ + lam w/(w² + lam) (r - m)            Su et al. 2020, optimistic shrinkage
    sgdr         mean m̄ + w/(1 - lam + lam w) (r - m)         Metelli, Russo, Restelli 2021, s = -1

Of the settings (clip, tau, lam) a sequence may be passed: SLOPE then chooses (`slope`).
`ESTIMATORS` is the table of them, by name; each says what it reads (`Estimator`), and an estimator of one's own is one
more line. Options of every estimator: those of the rows (`rows.RowOptions`) and those of the interval
(`result.IntervalOptions`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dither import errors
from dither.ope.contributions import Bounded, Contributions
from dither.ope.result import Estimate, IntervalOptions, best, estimate, finish
from dither.ope.rows import Log, RowOptions, read

Setting: TypeAlias = float | Iterable[float]
READS = ("shown", "all arms")


@dataclass(frozen=True)
class Estimator:
    """An estimator, and what it reads of a log.

    rows : (log, setting) -> `Contributions`, unweighted: weights of rows are applied to what it returns
    reads : "shown" where it uses of Q and M no more than w, m (of the arm shown) and m̄: then a log that holds these
        numbers alone will do; "all arms" where it looks at other columns of `log.Q` or `log.M`
    predicts : whether it needs M
    setting : name and range of its setting; None: it has none
    """

    rows: Callable[[Log, Any], Contributions]
    reads: str = "all arms"
    predicts: bool = False
    setting: tuple[str, float, float] | None = None

    def __post_init__(self) -> None:
        if self.reads not in READS:
            raise errors.unknown("part of a log that an estimator reads", self.reads, known=READS)

    def __call__(self, log: Log, setting: Any) -> Contributions:
        """What each row adds."""
        return self.rows(log, setting)


def dm(r: Any, a: Any, p: Any, Q: Any, M: Any, **options: Any) -> Estimate:
    """The direct method: the mean prediction under the new policy. Its interval does not cover the bias of M."""
    return _run("dm", r, a, p, Q, M, options)


def ips(r: Any, a: Any, p: Any, Q: Any, **options: Any) -> Estimate:
    """Inverse propensity scores: mean w r."""
    return _run("ips", r, a, p, Q, None, options)


def clipped_ips(r: Any, a: Any, p: Any, Q: Any, *, clip: Setting, **options: Any) -> Estimate:
    """IPS with weights of at most `clip` (above 0): less variance, biased towards 0 by what is cut off."""
    return _run("clipped_ips", r, a, p, Q, None, options, clip=clip)


def snips(r: Any, a: Any, p: Any, Q: Any, **options: Any) -> Estimate:
    """Self-normalised IPS: Σ w r / Σ w. NaN, with a warning, where all weights are 0."""
    return _run("snips", r, a, p, Q, None, options)


def dr(r: Any, a: Any, p: Any, Q: Any, M: Any, **options: Any) -> Estimate:
    """Doubly robust: the model's value plus the weighted residuals."""
    return _run("dr", r, a, p, Q, M, options)


def sndr(r: Any, a: Any, p: Any, Q: Any, M: Any, **options: Any) -> Estimate:
    """DR whose weighted residuals are divided by Σ w instead of n."""
    return _run("sndr", r, a, p, Q, M, options)


def switch_dr(r: Any, a: Any, p: Any, Q: Any, M: Any, *, tau: Setting, **options: Any) -> Estimate:
    """DR where the weight is at most `tau` (at least 0), the model alone above."""
    return _run("switch_dr", r, a, p, Q, M, options, tau=tau)


def dros(r: Any, a: Any, p: Any, Q: Any, M: Any, *, lam: Setting, **options: Any) -> Estimate:
    """DR with optimistically shrunk weights: lam = 0 is the direct method, large lam is DR."""
    return _run("dros", r, a, p, Q, M, options, lam=lam)


def sgdr(r: Any, a: Any, p: Any, Q: Any, M: Any, *, lam: Setting, **options: Any) -> Estimate:
    """Sub-Gaussian DR: weights shrunk to at most 1/lam; lam = 0 is DR, lam = 1 gives every shown row weight 1."""
    return _run("sgdr", r, a, p, Q, M, options, lam=lam)


def contributions(
    method: str, r: Any, a: Any, p: Any, Q: Any, M: Any = None, *, setting: float | None = None, **options: Any
) -> Contributions:
    """The rows of the estimator of that name (`ESTIMATORS`), for `sums` and `estimate`.

    setting : of the estimators that have one (clip, tau, lam); options : `rows.RowOptions`
    """
    found = find(method)
    models, check = found.predicts, found.setting
    if models and M is None:
        raise ValueError(f"{method} needs M, the reward predictions (n, K): dither.ope.cross_fit makes them")
    if (setting is None) is not (check is None):
        raise ValueError(f"{method} " + (f"needs {check[0]}=" if check else f"has no setting, got {setting!r}"))
    if check is not None:
        errors.within(check[0], setting, *check[1:])
    return found(read(r, a, p, Q, M if models else None, **options), setting)


def find(method: str) -> Estimator:
    """The estimator of that name; a bare function in the table is taken to read all arms. Raises LookupError."""
    if method not in ESTIMATORS:
        raise errors.unknown("estimator", method, known=ESTIMATORS)
    found: Any = ESTIMATORS[method]
    return found if isinstance(found, Estimator) else Estimator(found)


def _run(method: str, r: Any, a: Any, p: Any, Q: Any, M: Any, options: dict[str, Any], **setting: Any) -> Estimate:
    of_rows = {name: value for name, value in options.items() if name not in IntervalOptions.__annotations__}
    of_interval = {name: value for name, value in options.items() if name in IntervalOptions.__annotations__}
    for name in set(of_rows) - set(RowOptions.__annotations__):
        raise TypeError(
            str(errors.unknown("option", name, known=[*RowOptions.__annotations__, *IntervalOptions.__annotations__]))
        )
    value: Any = next(iter(setting.values()), None)
    if not isinstance(value, Iterable):
        return finish(contributions(method, r, a, p, Q, M, setting=value, **of_rows), of_interval)
    several = [float(one) for one in value]
    if not several:
        raise ValueError(f"{next(iter(setting))} must be a number or a sequence of at least one, got {value!r}")
    made = [contributions(method, r, a, p, Q, M, setting=one, **of_rows) for one in several]
    return finish(made[best([estimate(one, warn=False) for one in made])], of_interval)


def _left(log: Log) -> np.ndarray:
    """r - m (n,)."""
    M: Any = log.M
    return log.r - np.take_along_axis(M, log.a[:, None], axis=1)[:, 0]


def _relative(log: Log) -> np.ndarray | None:
    """se(p)/p, the relative error of a weight."""
    return None if log.p_se is None else log.p_se / log.p


def _plain(
    method: str, log: Log, weight: np.ndarray, slope: np.ndarray, limit: float | None, notes=()
) -> Contributions:
    """mean weight × r; slope: w ∂weight/∂w."""
    relative = _relative(log)
    errors = None if relative is None else _beside(slope * log.r * relative)
    return Contributions(method, log, weight * log.r, None, None, errors, Bounded("weighted", limit), tuple(notes))


def _residual(
    method: str, log: Log, weight: np.ndarray, slope: np.ndarray, limit: float | None, notes=()
) -> Contributions:
    """mean m̄ + weight × (r - m)."""
    residual, relative = _left(log), _relative(log)
    errors = None if relative is None else _beside(slope * residual * relative)
    b = _model(log) + weight * residual
    return Contributions(method, log, b, None, None, errors, Bounded("residual", limit), tuple(notes))


def _model(log: Log) -> np.ndarray:
    """m̄ (n,)."""
    M: Any = log.M
    return np.einsum("ij,ij->i", log.Q, M)


def _dm(log: Log, _) -> Contributions:
    return Contributions("dm", log, _model(log), None, None, None, Bounded("model", 0.0))


def _ips(log: Log, _) -> Contributions:
    return _plain("ips", log, log.w, log.w, None)


def _clipped(log: Log, clip: float) -> Contributions:
    cut = log.w > clip
    note = f"{int(cut.sum())} of {len(cut)} weights clipped at {clip:g}"
    return _plain("clipped_ips", log, np.minimum(log.w, clip), np.where(cut, 0.0, log.w), clip, [note])


def _snips(log: Log, _) -> Contributions:
    return _normalised("snips", log, None, log.r)


def _sndr(log: Log, _) -> Contributions:
    return _normalised("sndr", log, _model(log), _left(log))


def _normalised(method: str, log: Log, b: np.ndarray | None, y: np.ndarray) -> Contributions:
    u, relative = log.w * y, _relative(log)
    errors = None if relative is None else _beside(0 * u, u * relative, log.w * relative)
    return Contributions(method, log, b, u, log.w, errors, Bounded("ratio"))


def _beside(b: np.ndarray, u: np.ndarray | None = None, v: np.ndarray | None = None) -> np.ndarray:
    """Three columns (n, 3), of zeros where there is nothing."""
    return np.stack([np.zeros_like(b) if part is None else part for part in (b, u, v)], axis=1)


def _dr(log: Log, _) -> Contributions:
    return _residual("dr", log, log.w, log.w, None)


def _switch(log: Log, tau: float) -> Contributions:
    weight = np.where(log.w <= tau, log.w, 0.0)
    note = f"{int(np.sum(log.w > tau))} of {len(weight)} rows, of weight above {tau:g}, left to the model"
    return _residual("switch_dr", log, weight, weight, tau, [note])


def _dros(log: Log, lam: float) -> Contributions:
    square = log.w * log.w
    total = np.where(square + lam > 0, square + lam, 1.0)
    weight = lam * log.w / total
    return _residual("dros", log, weight, weight * (lam - square) / total, np.sqrt(lam) / 2, [f"lam={lam:g}"])


def _sgdr(log: Log, lam: float) -> Contributions:
    total = 1 - lam + lam * log.w
    total = np.where(total > 0, total, 1.0)
    weight = log.w / total
    limit = 1 / lam if lam else None
    return _residual("sgdr", log, weight, weight * (1 - lam) / total, limit, [f"lam={lam:g}"])


ESTIMATORS: dict[str, Estimator] = {
    "dm": Estimator(_dm, "shown", predicts=True),
    "ips": Estimator(_ips, "shown"),
    "clipped_ips": Estimator(_clipped, "shown", setting=("clip", 1e-300, 1e100)),
    "snips": Estimator(_snips, "shown"),
    "dr": Estimator(_dr, "shown", predicts=True),
    "sndr": Estimator(_sndr, "shown", predicts=True),
    "switch_dr": Estimator(_switch, "shown", predicts=True, setting=("tau", 0, 1e100)),
    "dros": Estimator(_dros, "shown", predicts=True, setting=("lam", 0, 1e100)),
    "sgdr": Estimator(_sgdr, "shown", predicts=True, setting=("lam", 0, 1)),
}
