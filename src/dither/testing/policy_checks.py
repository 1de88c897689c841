"""Checks of policies: how they draw, what may not change what they choose, and what choosing may not change."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dither import models, policies
from dither.deciding import decision
from dither.deciding import policy as policy_contract
from dither.testing import probability_checks as stated
from dither.testing.checking import agree, checker, farthest, require
from dither.testing.trial import Trial, alike, configured, differing, leaves, read_only, same, twin

SCORED = "Let `scores` take what `draw` gives: n requests, then what one request draws"
LEADING = "Compute with the last axis as the arms and `...` before it"
FROM_RNG = "Draw from the `rng` that `draw` is given, and from nothing else"


def draw(case: Trial) -> None:
    """`draw` gives arrays whose first axis is n, and n draws at once are n draws in turn. With them arms are scored."""
    n = 6
    view, rule = _view(case, case.asked(n)), case.policy.draw
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
        policy_contract.look(case.policy, view, whole, lead=(n,), arms=case.K)
    except ValueError as error:
        require(False, str(error), cure=SCORED)


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
            cure=f"{LEADING}. `draw` must give a request the same chance in a batch and alone, and `decide` of the "
            "view must choose what `best` or `scores` choose",
        )
        alone: Any = [d.propensity for d in one]
        agree(many.propensity, alone, "a batch says other propensities:", rtol=case.rtol, cure=LEADING)
        require(
            a.decisions == b.decisions == n and same(a.choose(X[-1]), b.choose(X[-1])),
            "after a batch the next decision is another than after single ones",
            cure="`draw` must spend as much of its stream for n requests as for n times one",
        )
        if a.propensities(X[:1], draws=20, detail=True)[2] == "exact":
            p = a.propensities(X, mask=mask)
            alone = [b.propensities(X[i], mask=None if mask is None else mask[i]) for i in range(n)]
            says = "propensities of a batch are not those of each request:"
            agree(p, alone, says, rtol=case.rtol, atol=1e-300, cure=LEADING)


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
    configured(case.policy)
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
    require(first == again, "two bandits of one seed choose differently", cure=FROM_RNG)
    alike = "two bandits of different seeds choose alike, with half of their choices uniform"
    require(first != other or case.K == 1, alike, cure=FROM_RNG)


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
    alike(a, b, "what is learnt after loading differs", cure="The state must hold all of it")


def streams(case: Trial) -> None:
    """In `simulate` a run is the same alone, in a batch, and beside other algorithms."""
    mine = {"mine": (case.model, case.policy)}
    beside = mine | {"greedy": (case.model, policies.Greedy())}
    whole = case.simulated(beside, runs=3)[0]
    alone = case.simulated(mine, runs=[2], batch=1)[0]
    again = case.simulated(mine, runs=3, batch=2)[0]
    cure = "Compute each run from its own entries: `...` are the runs. Do not sum, sort or draw over them"
    for regret, wanted in ((alone, whole[2:]), (again, whole)):
        agree(regret, wanted, "a run depends on what runs beside it: regret", rtol=1e-12, atol=1e-12, cure=cure)


def lockstep(case: Trial) -> None:
    """A run in `simulate` is what a live bandit does in the same rounds."""
    whole = case.simulated({"mine": (case.model, case.policy)}, runs=3)[0]
    cure = "Write `view` and its methods for `...` leading axes: none for a live bandit, R for R runs in lockstep"
    says = "run 0 in lockstep and a live bandit part: regret"
    agree(whole[0], case.live(case.policy), says, rtol=1e-6, atol=1e-9, cure=cure)


@checker(
    stated.probabilities, stated.frequencies, stated.logged_propensity, stated.monte_carlo, stated.masked_arms,
    stated.permuted_arms, stated.ties, stated.logarithms, stated.lists, stated.floor, batch, shapes, purity, seed,
    save_and_load, streams, lockstep, gate=draw,
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
        requests=requests, seed=seed, rtol=rtol, classes=known, env=env, expected=dict(expected_failed_checks or {}),
    )  # fmt: skip


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
    return decision.view(case.policy, case.whole, b.state, X, t=b.t)


def _shared(policy: Any) -> dict[str, str]:
    """The data in the classes of a policy, as text: what is no method and has no name of Python's own."""
    data = {name: value for kind in reversed(type(policy).__mro__[:-1]) for name, value in vars(kind).items()}
    return {
        name: repr(value)
        for name, value in data.items()
        if not (name.startswith("__") or callable(value) or hasattr(type(value), "__get__"))
    }


def _as_text(part: Any) -> str:
    """All that a configuration holds, as text."""
    return f"{part!r} {sorted(vars(part).items(), key=lambda item: item[0]) if hasattr(part, '__dict__') else ''}"
