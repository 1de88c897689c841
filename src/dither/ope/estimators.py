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
    stablevar, minvar   Σ h (m̄ + w (r - m))/Σ h, h from the rows before: for the log of a policy that learns
                        (`stabilised`)

A setting (clip, tau, lam) may be a sequence: SLOPE then chooses one (`slope`). What each row adds is in
`contributions`, whose table `ESTIMATORS` has the estimators by name. Every estimator takes the options of the rows
(`rows.RowOptions`) and those of the interval (`bounded.IntervalSettings`).
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from dither.base import errors
from dither.ope.contributions import Contributions, Estimator, find
from dither.ope.in_memory import best, estimate
from dither.ope.intervals import OPTIONS
from dither.ope.result import Estimate
from dither.ope.rows import RowOptions, read

Setting: TypeAlias = float | Iterable[float]


def dm(r: Any, a: Any, p: Any, Q: Any, M: Any, **options: Any) -> Estimate:
    """The direct method: the mean prediction under the new policy. Its interval does not cover the bias of M."""
    return _run("dm", r, a, p, Q, M, options)


def ips(r: Any, a: Any, p: Any, Q: Any, **options: Any) -> Estimate:
    """Inverse propensity scores: mean w r."""
    return _run("ips", r, a, p, Q, None, options)


def clipped_ips(r: Any, a: Any, p: Any, Q: Any, *, clip: Setting, **options: Any) -> Estimate:
    """IPS with weights cut to at most `clip` (above 0): less variance, and a bias towards 0."""
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
    """DR in rows whose weight is at most `tau` (at least 0); in the other rows the model alone."""
    return _run("switch_dr", r, a, p, Q, M, options, tau=tau)


def dros(r: Any, a: Any, p: Any, Q: Any, M: Any, *, lam: Setting, **options: Any) -> Estimate:
    """DR with optimistically shrunk weights: lam = 0 is the direct method, large lam is DR."""
    return _run("dros", r, a, p, Q, M, options, lam=lam)


def sgdr(r: Any, a: Any, p: Any, Q: Any, M: Any, *, lam: Setting, **options: Any) -> Estimate:
    """Sub-Gaussian DR: weights shrunk to at most 1/lam; lam = 0 is DR, lam = 1 gives every shown row weight 1."""
    return _run("sgdr", r, a, p, Q, M, options, lam=lam)


def contributions(
    method: str | Estimator,
    r: Any,
    a: Any,
    p: Any,
    Q: Any,
    M: Any = None,
    *,
    setting: float | None = None,
    **options: Any,
) -> Contributions:
    """What each row adds to an estimator, for `sums` and `estimate`. method : an `Estimator`, or its name.

    setting : its clip, tau or lam, for the estimators that have one; options : `rows.RowOptions`
    """
    estimator = find(method)
    models, rule = estimator.predicts, estimator.setting
    if models and M is None:
        raise ValueError(f"{method} needs M, the reward predictions (n, K): dither.ope.cross_fit makes them")
    if (setting is None) is not (rule is None):
        raise ValueError(f"{method} " + (f"needs {rule[0]}=" if rule else f"has no setting, got {setting!r}"))
    if rule is not None:
        errors.within(rule[0], setting, *rule[1:])
    return estimator(read(r, a, p, Q, None if models is False else M, **options), setting)


def _run(method: str, r: Any, a: Any, p: Any, Q: Any, M: Any, options: dict[str, Any], **setting: Any) -> Estimate:
    of_rows, of_interval = split(options)
    value: Any = next(iter(setting.values()), None)
    if not isinstance(value, Iterable):
        return estimate(contributions(method, r, a, p, Q, M, setting=value, **of_rows), **of_interval)
    several = [float(one) for one in value]
    if not several:
        raise ValueError(f"{next(iter(setting))} must be a number or a sequence of at least one, got {value!r}")
    each = [contributions(method, r, a, p, Q, M, setting=one, **of_rows) for one in several]
    return estimate(each[best([estimate(one, warn=False) for one in each])], **of_interval)


def split(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of the rows and those of the interval. Raises TypeError for others."""
    names = (*RowOptions.__annotations__, *OPTIONS)
    for name in options.keys() - set(names):
        raise TypeError(str(errors.unknown("option", name, names=names)))
    of_interval = {name: value for name, value in options.items() if name in OPTIONS}
    return {name: value for name, value in options.items() if name not in OPTIONS}, of_interval
