"""Checks of policies: the probabilities that they state, against each other and against how often arms are chosen."""

from typing import Any

import numpy as np

from dither.bandit.bandit import Bandit
from dither.deciding import decision
from dither.policies.views import Lines
from dither.testing import chance
from dither.testing.checking import agree, close, farthest, require
from dither.testing.trial import Trial

ABOUT = 1e-12  # how far the sum of probabilities may be from 1
LISTS = 4000  # lists of one request that are drawn
LISTED = 8  # requests whose probabilities are compared
OF_LINES = (
    "The law of Lines must be the one that `draw` draws from: same family, same scale (law= is Gaussian() unless it is "
    "given)"
)


def probabilities(case: Trial) -> None:
    """Probabilities are not negative, sum to 1, and are the same when they are asked for twice."""
    for learnt in (False, True):
        b = case.bandit(learnt=learnt)
        for X in (case.request(), case.asked(min(LISTED, case.requests))):
            p = _asked(case, b, X)
            if _unknown(case, b, p):
                return
            shape = (case.K,) if X.ndim == case.request().ndim else (len(X), case.K)
            require(p.shape == shape, f"propensities has shape {p.shape}", cure=f"It must be {shape}, one for each arm")
            require(np.all(p >= 0), f"propensities has {p.min():.3g}", cure="A probability is not negative")
            total = p.sum(axis=-1)
            require(
                np.all(np.abs(total - 1) < ABOUT),
                f"propensities sums to {float(np.ravel(total)[np.argmax(np.abs(np.ravel(total) - 1))]):.15g}",
                cure="Divide by the sum over the arms on offer",
            )
            require(
                np.array_equal(p, _asked(case, b, X)),
                "two calls of propensities give two answers",
                cure="Draw in `draw` alone: what `view` and the view's methods compute must have no chance in it",
            )


def frequencies(case: Trial) -> None:
    """Arms are chosen as often as `propensities` says, before and after learning, with a floor and without."""
    for learnt in (False, True):
        for floor in (0.0, 0.2):
            _compare(case, case.bandit(learnt=learnt, floor=floor), case.request(), tests=4 * case.K)


def logged_propensity(case: Trial) -> None:
    """A decision says the probability of its arm, and of what kind it is."""
    b, n = case.bandit(floor=0.1), case.requests
    X, masks = case.asked(n), case.masks(n)
    for mask in (None, masks):
        kind = b.propensities(X[:1], draws=20, detail=True)[2]
        d: Any = b.choose(X, mask=mask)
        if kind != "exact":
            require(
                d.propensity_kind == "none" and np.isnan(d.propensity).all() and d.propensity_se is None,
                f"without Monte Carlo draws a decision is of kind {d.propensity_kind!r}",
                cure="It must be of kind 'none', with NaN as its propensity",
            )
            continue
        p = np.take_along_axis(b.propensities(X, mask=mask), d.arm[:, None], axis=1)[:, 0]
        cure = "Let `chosen` and `decide` of the view give what its `propensities` gives, or leave them out"
        agree(d.propensity, p, "a decision says another probability than propensities:", rtol=case.rtol, cure=cure)
        require(
            d.propensity_kind == "exact"
            and d.propensity_se is None
            and np.all((d.propensity > 0) & (d.propensity <= 1)),
            f"a decision has the {d.propensity_kind} propensity {d.propensity.min():.3g} ± {d.propensity_se}",
            cure="What was chosen has a probability above 0: `propensities` and `scores` of the view disagree",
        )


def monte_carlo(case: Trial) -> None:
    """A propensity that is drawn is within its own standard error."""
    draws, n = 400, min(case.requests, 25)
    b, X = case.bandit(monte_carlo=draws), case.request()
    p, se, kind = b.propensities(X, draws=max(case.draws // 2, 20), detail=True)
    if kind != "monte_carlo" or se is None:
        return
    allowed = chance.errors_allowed(n)
    decisions: list[Any] = [b.choose(X) for _ in range(n)]
    for d in decisions:
        slip = float(np.hypot(d.propensity_se, se[d.arm]))
        require(
            d.propensity_kind == "monte_carlo" and 0 < d.propensity <= 1,
            f"a decision with {draws} draws has {d.propensity_kind!r} {d.propensity}",
            cure="Draw in `draw` alone, so that a decision can be drawn again",
        )
        require(
            abs(d.propensity - p[d.arm]) <= allowed * slip + 1 / draws,
            f"a decision says {d.propensity:.4g} ± {d.propensity_se:.2g}, and {p[d.arm]:.4g} ± {se[d.arm]:.2g} is "
            f"what many draws of its arm give",
            cure="The chance of a decision must not depend on how often it is drawn",
        )


def masked_arms(case: Trial) -> None:
    """Arms that are not on offer are never chosen, and the others are chosen as if these were not there."""
    mask = np.arange(case.K) % 3 != 0 if case.K > 1 else np.array([True])
    for floor in (0.0, 0.3):
        b, X = case.bandit(floor=floor), case.request()
        hits = np.bincount(b.choose(np.broadcast_to(X, (200, *X.shape)), mask=mask).arm, minlength=case.K)
        require(
            not hits[~mask].any(),
            f"arms that are not on offer were chosen {int(hits[~mask].sum())} of 200 times",
            cure="Let `best` and `decide` of the view keep to `mask`, or leave them out: then the scores decide",
        )
        p, se, kind = _detail(case, b, X, mask=mask)
        if kind == "none":
            continue
        require(
            not p[~mask].any(),
            f"an arm that is not on offer has probability {p[~mask].max(initial=0.0):.3g}",
            cure="Let `propensities` of the view keep to `mask`",
        )
        require(
            p[mask].min() >= floor / mask.sum() - ABOUT,
            f"with floor={floor} an arm on offer has probability {p[mask].min():.3g}",
            cure=f"The floor gives each of {int(mask.sum())} arms {floor / mask.sum():.3g} at least",
        )
        _compare(case, b, X, mask=mask, tests=2 * case.K)
        if case.slots is None:
            alone, slip, _ = _detail(case, case.bandit(floor=floor), X[mask])
            says = "the arms on offer have other probabilities than alone: {}"
            cure = "Arms that are ruled out must not change how the others compare"
            _alike(case, p[mask], alone, np.hypot(slip, se[mask]), says, tests=2 * case.K, cure=cure)


def permuted_arms(case: Trial) -> None:
    """Arms in another order have the same probabilities, in that order. Slots have an order of their own."""
    if case.slots is not None:
        return
    b, X, order = case.bandit(), case.request(), np.array([3, 0, 4, 2, 1])
    p, se, kind = _detail(case, b, X)
    if kind == "none":
        return
    q, slip, _ = _detail(case, b, X[order])
    says = "arms in another order have other probabilities: {}"
    cure = "A policy sees arms by their features, not by their places; ties are settled by the uniform `u`"
    _alike(case, q, p[order], np.hypot(se[order], slip), says, tests=case.K, cure=cure)
    _compare(case, b, X[order], tests=case.K)


def ties(case: Trial) -> None:
    """Equal arms are chosen equally often."""
    if case.slots is not None:
        return
    b, X = case.bandit(), np.tile(case.request()[:1], (4, 1))
    p, se, kind = _detail(case, b, X)
    if kind == "none":
        return
    says = f"four equal arms have probabilities {np.round(p, 4).tolist()}"
    cure = "Let the uniform `u` decide among arms that tie, as dither.arrays.argmax(scores, u=u, mask=mask) does"
    _alike(case, p, np.full(4, 0.25), se, says, tests=4, cure=cure)
    _compare(case, b, X, tests=4)


def logarithms(case: Trial) -> None:
    """Logarithms of probabilities are those of the probabilities, where both are exact."""
    b = case.bandit()
    for mask in (None, case.masks(1)[0]):
        p, _, kind = _detail(case, b, case.request(), mask=mask)
        if kind != "exact":
            return
        q = np.exp(b.propensities(case.request(), mask=mask, log=True))
        cure = "Let `log_propensities` of the view be the logarithm of `propensities`, or leave it out"
        agree(q, p, "propensities(log=True) are the logarithms of others:", rtol=1e-6, atol=1e-12, cure=cure)


def lists(case: Trial) -> None:
    """Lists of one arm come as often as `propensities` says; a list of two names two arms, both on offer."""
    b, X = case.bandit(), case.request()
    mask, n = np.arange(case.K) != 1, min(case.draws, LISTS)
    p, se, kind = _detail(case, b, X, mask=mask)
    many, masks = np.broadcast_to(X, (n, *X.shape)), np.tile(mask, (n, 1))
    shown = b.choose_list(many, k=1, mask=masks)
    hits = np.bincount(shown.arms[:, 0], minlength=case.K)
    require(
        kind == "none" or not chance.apart(hits, n, p, se, tests=case.K).any(),
        f"lists of one arm show {np.round(hits / n, 4).tolist()}, and propensities says {np.round(p, 4).tolist()}",
        cure=OF_LINES
        if _in_lines(case, b, X)
        else "Let the first place of `in_turn` be what `best` shows, or leave `in_turn` out",
    )
    two = b.choose_list(many[:200], k=2, mask=masks[:200]).arms
    require(
        np.all(two[:, 0] != two[:, 1]) and np.all(mask[two]),
        "a list of two names an arm twice, or one that is not on offer",
        cure="Let `best` and `in_turn` of the view choose among the arms of `mask` alone",
    )


def floor(case: Trial) -> None:
    """A floor mixes the choice with the uniform one: (1 - floor) p + floor/K."""
    X = case.request()
    p, se, kind = _detail(case, case.bandit(floor=0.25), X)
    if kind == "none":
        return
    q, slip, _ = _detail(case, case.bandit(), X)
    cure = "Leave the floor to the bandit: a policy must not know of it"
    _alike(case, p, 0.75 * q + 0.25 / case.K, np.hypot(se, slip), "floor=0.25 gives {}", tests=case.K, cure=cure)
    uniform = _asked(case, case.bandit(floor=1.0), X)
    require(
        close(uniform, np.full(case.K, 1 / case.K), rtol=case.rtol),
        f"floor=1 gives {np.round(uniform, 4).tolist()}",
        cure="`eps(t)` is a share of uniform choices, from 0 to 1",
    )


def _asked(case: Trial, b: Bandit, X: np.ndarray, **settings: Any) -> np.ndarray:
    return b.propensities(X, draws=max(case.draws // 2, 20), **settings)


def _detail(case: Trial, b: Bandit, X: np.ndarray, **settings: Any) -> tuple[np.ndarray, np.ndarray, str]:
    """Probabilities, their standard errors (0 where exact) and their kind."""
    p, se, kind = _asked(case, b, X, detail=True, **settings)
    return p, np.zeros_like(p) if se is None else se, kind


def _alike(case: Trial, p: np.ndarray, wanted: np.ndarray, se: np.ndarray, says: str, *, tests: int, cure: str) -> None:
    """Fail where probabilities are not those that are wanted, to rtol and to what errors se of Monte Carlo allow."""
    off = chance.errors_allowed(tests) * se + case.rtol * np.abs(wanted) + 1e-15
    require(np.all(np.abs(p - wanted) <= off), says.format(farthest(p, wanted)), cure=cure)


def _unknown(case: Trial, b: Bandit, p: np.ndarray) -> bool:
    """Whether no probability is known, which then must be said of all."""
    if not np.isnan(p).any():
        return False
    kind = _detail(case, b, case.request())[2]
    require(
        kind == "none" and np.isnan(p).all(),
        f"propensities of kind {kind!r} holds NaN",
        cure="Give every arm on offer its probability",
    )
    return True


def _in_lines(case: Trial, b: Bandit, X: np.ndarray) -> bool:
    """Whether the view computes its probabilities from lines and a law, and no method of the user's does."""
    return isinstance(decision.view(case.policy, case.whole, b.state, X, t=b.t), Lines)


def _compare(case: Trial, b: Bandit, X: np.ndarray, *, tests: int, mask: np.ndarray | None = None) -> None:
    """Choose many times for one request, and compare how often with what is said."""
    p, se, kind = _detail(case, b, X, mask=mask)
    if kind == "none":
        return
    n = case.draws
    hits = np.bincount(b.choose(np.broadcast_to(X, (n, *X.shape)), mask=mask).arm, minlength=p.shape[-1])
    wrong = chance.apart(hits, n, p, se, tests=tests)
    if not wrong.any():
        return
    arm = int(np.argmax(np.where(wrong, np.abs(hits / n - p), -1.0)))
    mend = "Mend `propensities` of the view, or leave it out: then they are estimated by Monte Carlo"
    cure = {
        "exact": "They are logged as exact, so estimates from the log would be wrong. "
        + (OF_LINES if _in_lines(case, b, X) else mend),
        "monte_carlo": "Draw in `draw` alone: a choice that is drawn again must have the same law",
    }[kind]
    require(
        False,
        f"arm {arm} was chosen {int(hits[arm])} of {n} times ({hits[arm] / n:.4f}), and propensities says "
        f"{p[arm]:.4f}" + (f" ± {se[arm]:.2g}" if se[arm] else "") + f" (t={b.t}, floor={b.floor})",
        cure=cure,
    )
