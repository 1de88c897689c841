"""Checks of policies: what they choose, the probabilities that they state, and what they may not change."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dither import decision, models, policies
from dither.bandit import Bandit
from dither.testing import chance
from dither.testing.checking import checker, close, farthest, require
from dither.testing.trial import Trial, differing, leaves, read_only, same, twin

ABOUT = 1e-12  # how far the sum of probabilities may be from 1
LISTED = 8  # requests whose probabilities are compared
LISTS = 4000  # lists of one request that are drawn


def draw(case: Trial) -> None:
    """`draw` gives arrays whose first axis is n, and n draws at once are n draws in turn. With them arms are scored."""
    n, rule = 6, case.policy.draw
    whole = rule(np.random.default_rng(3), n, arms=case.K, dim=case.ambient)
    name = type(case.policy).__name__
    require(
        type(whole) is tuple and all(len(kind) == n for kind in whole),
        f"{name}.draw(rng, {n}, ...) gave {type(whole).__name__}",
        cure=f"Return a tuple of arrays with {n} entries each, as in 'return (z,)'",
    )
    rng = np.random.default_rng(3)
    parts = [rule(rng, 1, arms=case.K, dim=case.ambient) for _ in range(n)]
    for i, kind in enumerate(whole):
        single = np.concatenate([part[i] for part in parts])
        require(
            np.array_equal(kind, single),
            f"array {i} of {n} draws at once is not that of {n} draws in turn: {farthest(kind, single)}",
            cure="Draw with one call of rng for all n, such as rng.random((n, 2)), and take it apart afterwards. Two "
            "calls come in another order when n is 1",
        )
    try:
        decision.look(case.policy, _view(case, case.asked(n)), whole, lead=(n,), arms=case.K)
    except ValueError as error:
        require(False, str(error), cure="Let `scores` take what `draw` gives: n requests, then what one request draws")


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
            found = d.propensity_kind
            require(
                found == "none" and np.isnan(d.propensity).all() and d.propensity_se is None,
                f"without Monte Carlo draws a decision is of kind {found!r}",
                cure="It must be of kind 'none', with NaN as its propensity",
            )
            continue
        own = np.take_along_axis(b.propensities(X, mask=mask), d.arm[:, None], axis=1)[:, 0]
        require(
            close(d.propensity, own, rtol=case.rtol),
            f"a decision says another probability than propensities: {farthest(d.propensity, own)}",
            cure="Let `chosen` and `decide` of the view give what its `propensities` gives, or leave them out",
        )
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
    if kind != "monte_carlo":
        return
    found: list[Any] = [b.choose(X) for _ in range(n)]
    allowed = chance.errors_allowed(n)
    for d in found:
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
            off = chance.errors_allowed(2 * case.K) * np.hypot(slip, se[mask])
            require(
                _near(case, p[mask], alone, off),
                f"the arms on offer have other probabilities than alone: {farthest(p[mask], alone)}",
                cure="Arms that are ruled out must not change how the others compare",
            )


def permuted_arms(case: Trial) -> None:
    """Arms in another order have the same probabilities, in that order. Slots have an order of their own."""
    if case.slots is not None:
        return
    b, X, order = case.bandit(), case.request(), np.array([3, 0, 4, 2, 1])
    p, se, kind = _detail(case, b, X)
    if kind == "none":
        return
    q, slip, _ = _detail(case, b, X[order])
    off = chance.errors_allowed(case.K) * np.hypot(se[order], slip)
    require(
        _near(case, q, p[order], off),
        f"arms in another order have other probabilities: {farthest(q, p[order])}",
        cure="A policy sees arms by their features, not by their places; ties are settled by the uniform `u`",
    )
    _compare(case, b, X[order], tests=case.K)


def ties(case: Trial) -> None:
    """Equal arms are chosen equally often."""
    if case.slots is not None:
        return
    b, X = case.bandit(), np.tile(case.request()[:1], (4, 1))
    p, se, kind = _detail(case, b, X)
    if kind == "none":
        return
    off = chance.errors_allowed(4) * se
    require(
        _near(case, p, 0.25, off),
        f"four equal arms have probabilities {np.round(p, 4).tolist()}",
        cure="Let the uniform `u` decide among arms that tie, as dither.arrays.argmax(scores, u=u, mask=mask) does",
    )
    _compare(case, b, X, tests=4)


def logarithms(case: Trial) -> None:
    """Logarithms of probabilities are those of the probabilities, where both are exact."""
    b = case.bandit()
    for mask in (None, case.masks(1)[0]):
        p, _, kind = _detail(case, b, case.request(), mask=mask)
        if kind != "exact":
            return
        found = np.exp(b.propensities(case.request(), mask=mask, log=True))
        require(
            close(found, p, rtol=1e-6, atol=1e-12),
            f"propensities(log=True) are the logarithms of others: {farthest(found, p)}",
            cure="Let `log_propensities` of the view be the logarithm of `propensities`, or leave it out",
        )


def lists(case: Trial) -> None:
    """Lists of one arm come as often as `propensities` says; a list of two names two arms, both on offer."""
    b, X = case.bandit(), case.request()
    mask, n = np.arange(case.K) != 1, min(case.draws, LISTS)
    p, se, kind = _detail(case, b, X, mask=mask)
    many, given = np.broadcast_to(X, (n, *X.shape)), np.tile(mask, (n, 1))
    shown = b.choose_list(many, k=1, mask=given)
    hits = np.bincount(shown.arms[:, 0], minlength=case.K)
    require(
        kind == "none" or not chance.apart(hits, n, p, se, tests=case.K).any(),
        f"lists of one arm show {np.round(hits / n, 4).tolist()}, and propensities says {np.round(p, 4).tolist()}",
        cure="Let the first place of `in_turn` be what `best` shows, or leave `in_turn` out",
    )
    two = b.choose_list(many[:200], k=2, mask=given[:200]).arms
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
    off = chance.errors_allowed(case.K) * np.hypot(se, slip)
    require(
        _near(case, p, 0.75 * q + 0.25 / case.K, off),
        f"floor=0.25 gives {farthest(p, 0.75 * q + 0.25 / case.K)}",
        cure="Leave the floor to the bandit: a policy must not know of it",
    )
    uniform = _asked(case, case.bandit(floor=1.0), X)
    require(
        close(uniform, np.full(case.K, 1 / case.K), rtol=case.rtol),
        f"floor=1 gives {np.round(uniform, 4).tolist()}",
        cure="`eps(t)` is a share of uniform choices, from 0 to 1",
    )


def batch(case: Trial) -> None:
    """B requests at once are answered as B requests one by one, with masks, ties and a floor, and without."""
    n = case.requests
    X, masks = case.asked(n), case.masks(n)
    X[: n // 3] = case.request()  # with ties
    for mask, more in ((None, {}), (masks, {"floor": 0.3}), (None, {"learnt": False})):
        a, b = case.bandit(seed=9, **more), case.bandit(seed=9, **more)
        many: Any = a.choose(X, mask=mask)
        one = [b.choose(X[i], mask=None if mask is None else mask[i]) for i in range(n)]
        arms = [d.arm for d in one]
        first = next((i for i in range(n) if arms[i] != many.arm[i]), None)
        require(
            first is None,
            f"request {first} of a batch is answered with another arm than alone",
            cure="Compute with the last axis as the arms and `...` before it. `draw` must give a request the same "
            "chance in a batch and alone, and `decide` of the view must choose what `best` or `scores` choose",
        )
        require(
            close(many.propensity, [d.propensity for d in one], rtol=case.rtol),
            f"a batch says other propensities: {farthest(many.propensity, [d.propensity for d in one])}",
            cure="Compute with the last axis as the arms and `...` before it",
        )
        require(
            a.decisions == b.decisions == n and same(a.choose(X[-1]), b.choose(X[-1])),
            "after a batch the next decision is another than after single ones",
            cure="`draw` must spend as much of its stream for n requests as for n times one",
        )
        if a.propensities(X[:1], draws=20, detail=True)[2] == "exact":
            p = a.propensities(X, mask=mask)
            alone = [b.propensities(X[i], mask=None if mask is None else mask[i]) for i in range(n)]
            require(
                close(p, alone, rtol=case.rtol, atol=1e-300),
                f"propensities of a batch are not those of each request: {farthest(p, alone)}",
                cure="Compute with the last axis as the arms and `...` before it",
            )


def shapes(case: Trial) -> None:
    """One request gets plain numbers, a batch of one an array of one, an empty batch an empty answer."""
    b, X = case.bandit(), case.request()
    d: Any = b.choose(X)
    require(
        type(d.arm) is int and type(d.propensity) is float,
        f"one request is answered with {type(d.arm).__name__} and {type(d.propensity).__name__}",
        cure="What the view answers for one request must have no axis but that of the arms",
    )
    d = b.choose(X[None])
    require(
        d.arm.shape == d.propensity.shape == (1,),
        f"a batch of one is answered with shapes {d.arm.shape} and {d.propensity.shape}",
        cure="What comes back depends on the number of axes, never on a length",
    )
    empty = np.empty((0, *X.shape))
    d = b.choose(empty)
    require(
        d.arm.shape == (0,) and b.propensities(empty).shape == (0, case.K),
        "an empty batch is not answered with an empty answer",
        cure="Do not read the first request to know about all of them",
    )
    other = case.bandit()
    for _ in range(2):
        other.choose(X[None])
    require(
        b.decisions == other.decisions and same(b.choose(X), other.choose(X)),
        "an empty batch spends chance",
        cure="`draw` must draw nothing for no request",
    )


def purity(case: Trial) -> None:
    """Choosing changes neither the state, nor what was passed in, nor the policy and its class, nor later choices."""
    b, policy, shared = case.bandit(), twin(case.policy), _shared(case.policy)
    drawn = case.policy.draw(np.random.default_rng(3), 1, arms=case.K, dim=case.ambient)
    first = np.array(decision.scores(_view(case, case.asked(1)), drawn))
    before, state, t = leaves(b.state), b.state, b.t
    X, mask = read_only(case.request()), read_only(np.arange(case.K) >= 0)
    b.choose(X, mask=mask)
    b.choose(X[None])
    b.propensities(X, mask=mask, draws=20)
    changed = differing(before, leaves(b.state))
    require(
        changed is None and b.state is state and b.t == t,
        f"choosing changes the state ({changed or 'it is another'})",
        cure="`view` and the methods of the view compute new arrays and write into none that they are given",
    )
    require(
        policy is None or _as_text(case.policy) == _as_text(policy),
        "choosing changes the policy",
        cure="A policy is a frozen configuration: what changes belongs into the view, what is learnt into the model",
    )
    moved = [name for name, value in _shared(case.policy).items() if shared.get(name) != value]
    require(
        not moved,
        f"choosing changes {', '.join(moved)} of the class {type(case.policy).__name__}, which all its policies share",
        cure="Keep what changes in the state of a model. Else a run depends on those beside it, and so on --jobs",
    )
    again = np.array(decision.scores(_view(case, case.asked(1)), drawn))
    require(
        np.array_equal(first, again, equal_nan=True),
        f"one request has other scores after some choices, though nothing was learnt: {farthest(first, again)}",
        cure="Compute scores from the state, X, t and the chance alone. A counter elsewhere, as in the module, makes "
        "a run depend on those beside it, and so on --jobs",
    )


def seed(case: Trial) -> None:
    """The same seed gives the same decisions, another seed gives others."""
    first, again, other = (_played(case, seed) for seed in (1, 1, 2))
    require(
        first == again,
        "two bandits of one seed choose differently",
        cure="Draw from the `rng` that `draw` is given, and from nothing else",
    )
    require(
        first != other or case.K == 1,
        "two bandits of different seeds choose alike, with half of their choices uniform",
        cure="Draw from the `rng` that `draw` is given, and from nothing else",
    )


def save_and_load(case: Trial) -> None:
    """A bandit out of its file goes on as if nothing had happened."""
    a, X = case.bandit(), case.asked(12)
    for x in X[:4]:
        a.choose(x)
    b = case.again(a)
    require(
        repr(a.policy) == repr(b.policy) and a.seed == b.seed,
        f"the file gives {b.policy!r} for {a.policy!r}",
        cure="Settings of a policy are the fields of its dataclass: numbers, texts, tuples or dataclasses",
    )
    lesson, r = case.lesson()
    for i, x in enumerate(X[4:]):
        require(
            same(a.choose(x), b.choose(x)),
            f"decision {i} after loading is another",
            cure="Whatever a decision depends on is a field of the policy or an array of the state",
        )
        for one in (a, b):
            one.update(lesson[i], r[i], **case.slot(i))
    changed = differing(leaves(a.state), leaves(b.state))
    require(changed is None, f"what is learnt after loading differs ({changed})", cure="The state must hold all of it")


def streams(case: Trial) -> None:
    """In `simulate` a run is the same alone, in a batch, and beside other algorithms."""
    mine = {"mine": (case.model, case.policy)}
    beside = mine | {"greedy": (case.model, policies.Greedy())}
    whole = case.simulated(beside, runs=3)[0]
    alone = case.simulated(mine, runs=[2], batch=1)[0]
    again = case.simulated(mine, runs=3, batch=2)[0]
    for found, what in ((alone, whole[2:]), (again, whole)):
        require(
            close(found, what, rtol=1e-12, atol=1e-12),
            f"a run depends on what runs beside it: regret {farthest(found, what)}",
            cure="Compute each run from its own entries: `...` are the runs. Do not sum, sort or draw over them",
        )


def lockstep(case: Trial) -> None:
    """A run in `simulate` is what a live bandit does in the same rounds."""
    whole = case.simulated({"mine": (case.model, case.policy)}, runs=3)[0]
    own = case.live(case.policy)
    require(
        close(whole[0], own, rtol=1e-6, atol=1e-9),
        f"run 0 in lockstep and a live bandit part: regret {farthest(whole[0], own)}",
        cure="Write `view` and its methods for `...` leading axes: none for a live bandit, R for R runs in lockstep",
    )


@checker(
    draw, probabilities, frequencies, logged_propensity, monte_carlo, masked_arms, permuted_arms, ties,
    logarithms, lists, floor, batch, shapes, purity, seed, save_and_load, streams, lockstep,
)  # fmt: skip
def check_policy(
    policy: Any,
    model: Any = None,
    *,
    dim: int = 3,
    draws: int = 20_000,
    requests: int = 40,
    seed: int = 0,
    rtol: float = 1e-9,
    known: tuple[type, ...] = (),
    env: Any = None,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> Trial:
    """Check a policy by the rules that the policies of this library keep.

    policy : the policy, with `needs`, `draw` and `view`
    model : what it runs on; None: `models.Ridge()`. Where computing in float32, pass float64 or a larger rtol
    dim : d, the number of features
    draws : choices of one request whose frequencies are compared with `propensities`. A right policy fails with
        probability 1e-6 at most a check; a probability that is wrong by 0.02 is found with 20,000 draws
    requests : requests that differ in a batch, and rounds of a simulation: fewer where a round is expensive
    seed : of all that is drawn: a check fails always or never
    rtol : how nearly a batch must agree with a loop
    known : classes that a saved policy holds besides its own and the model's
    env : an environment whose rewards the model takes; None: one of this library
    expected_failed_checks : name -> why the policy cannot pass; these must fail

    Raises CheckFailed (an AssertionError) that names each rule that is broken, with the numbers and what to do;
    LookupError for a name of no check. `check_policy.checks(...)`, with the same arguments, lists them one by one.
    """
    return Trial(
        models.Ridge() if model is None else model, policy, type(policy).__name__, dim=dim, draws=draws,
        requests=requests, seed=seed, rtol=rtol, known=known, env=env, expected=dict(expected_failed_checks or {}),
    )  # fmt: skip


def _asked(case: Trial, b: Bandit, X: np.ndarray, **settings: Any) -> np.ndarray:
    return b.propensities(X, draws=max(case.draws // 2, 20), **settings)


def _detail(case: Trial, b: Bandit, X: np.ndarray, **settings: Any) -> tuple[np.ndarray, np.ndarray, str]:
    """Probabilities, their standard errors (0 where exact) and their kind."""
    p, se, kind = _asked(case, b, X, detail=True, **settings)
    return p, np.zeros_like(p) if se is None else se, kind


def _near(case: Trial, found: np.ndarray, wanted: Any, off: Any) -> bool:
    """Whether probabilities are those that are wanted, to rtol and to what Monte Carlo may be off."""
    return bool(np.all(np.abs(found - wanted) <= off + case.rtol * np.abs(wanted) + 1e-15))


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
    cure = {
        "exact": "They are logged as exact, so estimates from the log would be wrong. Mend `propensities` of the view, "
        "or leave it out: then they are estimated by Monte Carlo",
        "monte_carlo": "Draw in `draw` alone: a choice that is drawn again must have the same law",
    }[kind]
    require(
        False,
        f"arm {arm} was chosen {int(hits[arm])} of {n} times ({hits[arm] / n:.4f}), and propensities says "
        f"{p[arm]:.4f}" + (f" ± {se[arm]:.2g}" if se[arm] else "") + f" (t={b.t}, floor={b.floor})",
        cure=cure,
    )


def _played(case: Trial, seed: int) -> list[int]:
    """The arms of some rounds in which half of the choices are uniform."""
    b, arms = case.bandit(learnt=False, seed=seed, floor=0.5), []
    rng = case.rng()
    for x in case.asked(max(case.requests, 25)):
        arms.append(int(b.choose(x).arm))
        shown = x if case.slots is not None else x[arms[-1]]
        b.update(shown, case.paid(rng.normal()), **case.slot(arms[-1]))
    return arms


def _view(case: Trial, X: np.ndarray) -> Any:
    """What the policy sees of these requests, once something is learnt."""
    b = case.bandit()
    return decision.view(case.policy, b.model, b.state, X, t=b.t)


def _shared(policy: Any) -> dict[str, str]:
    """The data in the classes of a policy, as text: what is no method and has no name of Python's own."""
    found: dict[str, str] = {}
    for kind in reversed(type(policy).__mro__[:-1]):
        data = {name: value for name, value in vars(kind).items() if not name.startswith("__") and not callable(value)}
        found |= {name: repr(value) for name, value in data.items() if not hasattr(type(value), "__get__")}
    return found


def _as_text(part: Any) -> str:
    """All that a configuration holds, as text."""
    return f"{part!r} {sorted(vars(part).items(), key=lambda item: item[0]) if hasattr(part, '__dict__') else ''}"
