"""Checks of models: what they learn, what they answer, and what they may not change."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dither import models, policies
from dither.bandit import saving
from dither.bandit.bandit import Bandit
from dither.base import trees
from dither.models import adapting
from dither.testing.ability_checks import all_answers, fresh, logdet, predict, sample, scores, width
from dither.testing.checking import checker, close, farthest, require
from dither.testing.trial import Trial, alike, configured, differing, leaves, read_only, same, twin

OUTSIDE = (
    "Whatever `update` and the abilities depend on is a field of the dataclass or an array of the state. Keep no "
    "counter and no list in `self`, in the class or in the module: no file holds it, and runs in lockstep share it"
)
SPREADING = policies.EpsGreedy(decay=None, epsilon=0.5)  # asks for means alone, and shows every arm


def shapes(case: Trial) -> None:
    """All arrays of a state have the leading axes of `init(batch=)`, and answers have a number for each arm."""
    kept = ("batch", "needs", "xp", "device", *(() if case.whole.draw is None else ("rng",)))
    lacking = [name for name in kept if not adapting.takes(case.whole.init, name)]
    require(not lacking, f"init takes no {', '.join(lacking)}", cure="Write init(self, dim, *, batch=(), **_): the "
            "arguments that your model does not need go into **_")  # fmt: skip
    runs = case.dim + case.K + 1  # a number that no other axis has
    for batch in ((), (runs,)):
        state = case.fresh(batch)
        require(hasattr(state, "_fields"), f"init returns a {type(state).__name__}", cure="A state is a NamedTuple of "
                "arrays, or of such tuples")  # fmt: skip
        odd = {name: type(A).__name__ for name, A in trees.leaves(state, "state").items() if not hasattr(A, "shape")}
        require(not odd, f"init gives what is no array: {odd}", cure="All that is learnt is an array: a number is "
                "np.zeros(batch)")  # fmt: skip
        wrong = {name: A.shape for name, A in leaves(state).items() if A.shape[: len(batch)] != batch}
        require(
            not wrong,
            f"init(batch={batch}) gives arrays of shapes {wrong}",
            cure=f"Every array of the state begins with the axes {batch}, one entry for each run in lockstep: every "
            "array of init begins with `batch`, as in np.zeros((*batch, dim))",
        )
        pairs = itertools.combinations(trees.leaves(state, "state").items(), 2)
        one = [f"{a} and {b}" for (a, A), (b, B) in pairs if np.shares_memory(A, B)]
        require(
            not one,
            f"init gives one array under two names: {', '.join(one)}",
            cure="Each field is an array of its own, as of a call of np.zeros for each: `models.Disjoint` writes slots "
            "in place, and would write that one twice",
        )
    b, X = case.bandit(), case.request()
    for name, answer in _answers(b, X).items():
        require(
            answer.shape == (case.K,) and np.isfinite(answer).all(),
            f"{name} of one request is {np.round(answer, 6).tolist()}",
            cure=f"It must be {case.K} finite numbers, one for each arm",
        )
    many = case.asked(4)
    for name, answer in _answers(b, many).items():
        single = np.stack([_answers(b, x)[name] for x in many])
        require(
            close(answer, single, rtol=case.rtol, atol=case.rtol),
            f"{name} of four requests at once is not that of each: {farthest(answer, single)}",
            cure="Compute with `...` leading axes: X is (..., K, d), with slots (..., d), and the answer (..., K)",
        )
    _means_in_lockstep(case, runs)


def purity(case: Trial) -> None:
    """`update`, `mean` and what else is asked leave the state, the arrays passed in and the model as they were."""
    X, r = case.lesson()
    model, state = twin(case.model), fresh(case)
    for i in range(3):
        before, answer = leaves(state), all_answers(case, state)
        new, again = (case.taught(state, read_only(X[i]), r[i], i, np.random.default_rng(i)) for _ in range(2))
        changed = differing(before, leaves(state))
        require(
            changed is None,
            f"update writes into the state that it is given ({changed})",
            cure="Return a new state: a refused call must have changed nothing. Only a model with `owns = True` may "
            "overwrite, and only if it is passed own=True",
        )
        other = differing(answer, all_answers(case, state))
        require(other is None, f"`{other}` of one state and one X is another after an update", cure=OUTSIDE)
        changed = differing(leaves(new), leaves(again))
        require(changed is None, f"one state learns one observation twice, and {changed} differs", cure=OUTSIDE)
        state = new
    before, b = leaves(state), case.bandit(learnt=False)
    b.state = state
    _answers(b, read_only(case.request()))
    changed = differing(before, leaves(state))
    require(changed is None, f"asking changes the state ({changed})", cure="Answers are computed in new arrays")
    b, weights = case.bandit(learnt=False), read_only(np.full(3, 2.0))
    b.update(read_only(X[:3]), read_only(r[:3]), **case.slot(np.arange(3)))
    if _weighs(case):
        b.update(read_only(X[:3]), read_only(r[:3]), weight=weights, **case.slot(np.arange(3)))
    configured(case.model)
    require(
        model is None or repr(case.model) == repr(model),
        "learning changes the model",
        cure="A model is a frozen configuration: what is learnt belongs into the state",
    )


def update_many(case: Trial) -> None:
    """n observations at once teach what n observations in turn teach."""
    X, r = case.lesson()
    a, b = case.bandit(learnt=False), case.bandit(learnt=False)
    a.update(X, r, **case.slot(np.arange(len(X))))
    for i in range(len(X)):
        b.update(X[i], r[i], **case.slot(i))
    require(a.t == b.t == len(X) + 1, f"{len(X)} observations make t={a.t}", cure="Count every observation once")
    _agree(case, a, b, "n observations at once", cure="An `update_many` of your own must do what so many updates do: "
           "without it they are taken one by one. And `update` must keep nothing outside the state")  # fmt: skip
    b.update(np.empty((0, case.dim)), np.empty(0), **case.slot(np.arange(0)))
    _agree(case, a, b, "no observations", cure="An empty batch teaches nothing")


def order(case: Trial) -> None:
    """The order in which rewards come does not matter."""
    X, r = case.lesson()
    turned = np.random.default_rng(4).permutation(len(X))
    a, b = case.bandit(learnt=False), case.bandit(learnt=False)
    for i in range(len(X)):
        a.update(X[i], r[i], **case.slot(i))
    for i in turned:
        b.update(X[i], r[i], **case.slot(i))
    _agree(case, a, b, "another order", cure="Keep sums, which have no order; or say why: a model that is trained "
           "step by step has one")  # fmt: skip


def weights(case: Trial) -> None:
    """A weight k counts as k observations, and a weight 0 as none. A model may refuse weights."""
    if not _weighs(case):
        return
    X, r = case.lesson()
    a, b = case.bandit(learnt=False), case.bandit(learnt=False)
    for i, times in enumerate((1, 3, 0, 2)):
        a.update(X[i], r[i], weight=float(times), **case.slot(i))
        for _ in range(times):
            b.update(X[i], r[i], **case.slot(i))
    _agree(case, a, b, "a weight of 3 and three observations", cure="A weight of 3 must do "
           "what three updates do: learn the observation three times, and forget three times in a model that "
           "forgets. Or leave weight= out of the signature of `update`: then it is refused")  # fmt: skip


def refused(case: Trial) -> None:
    """What makes no sense is refused with ValueError, and nothing has changed."""
    low, high = case.support
    X, r = case.lesson()
    x = X[0]
    bad: list[tuple[str, Any, Any]] = [("NaN as a reward", x, np.nan), ("infinity as a feature", x * np.inf, r[0])]
    bad += [("too many features", np.append(x, 0.0), r[0])]
    bad += [("a reward below the support", x, low - 1)] if low > -np.inf else []
    bad += [("a reward above the support", x, high + 1)] if high < np.inf else []
    for what, features, reward in bad:
        require(_refuses(case, what, features, reward), f"{what} is taken", cure="State `support`, the least and the "
                "largest reward")  # fmt: skip
    _refuses(case, "what overflows", x * 1e99, min(high, 1e99))  # it may be taken


def learning(case: Trial) -> None:
    """An arm that paid much has a higher mean than one that paid little."""
    if case.slots == 1:
        return
    X, (high, low) = case.request(), case.paid([2.0, -2.0])
    for better in (0, 1):
        b = case.bandit(learnt=False)
        for _ in range(20):
            for arm in (0, 1):
                x = X if case.slots is not None else X[arm]
                b.update(x, high if arm == better else low, **case.slot(arm))
        m = b.mean(X)
        require(
            m[better] > m[1 - better],
            f"after 20 rewards of {high:.3g} for arm {better} and {low:.3g} for arm {1 - better} the means of arms 0 "
            f"and 1 are {m[0]:.4g} and {m[1]:.4g}",
            cure="`update` must move `mean` towards the reward of the arm that was shown",
        )


def seed(case: Trial) -> None:
    """Two bandits of one seed learn the same, to the bit."""
    X, r = case.lesson()
    a, b = case.bandit(learnt=False), case.bandit(learnt=False)
    for one in (a, b):
        for i in range(len(X)):
            one.update(X[i], r[i], **case.slot(i))
    cure = "Chance comes from the `rng` of `init` and from `chance=` of `update`, which `draw` made; from no other"
    alike(a, b, "two bandits of one seed know different things", cure=cure)


def save_and_load(case: Trial) -> None:
    """A bandit out of its file knows the same, and goes on learning as if nothing had happened."""
    a = case.bandit()
    fresh = leaves(case.bandit(learnt=False).state)
    for name, A in leaves(a.state).items():
        first = fresh.get(name, np.empty(0))
        require(
            saving.same_form(name, A, first),
            f"{name} is {first.dtype}{first.shape} in `init` and {A.dtype}{A.shape} after `update`",
            cure="An array keeps its type and its shape. It may grow only in a field named history or buffer, or in "
            "a NamedTuple under that name",
        )
    b = case.again(a)
    alike(a, b, "the file gives another state", cure="The state must hold all that is learnt")
    require(
        repr(a.model) == repr(b.model),
        f"the file gives {b.model!r} for {a.model!r}",
        cure="Settings of a model are the fields of its dataclass: numbers, texts, tuples or dataclasses",
    )
    _answers_alike(case, a, b)
    X, r = case.lesson()
    for i in range(2, len(X)):
        require(
            same(a.choose(case.request()), b.choose(case.request())),
            "a decision after loading is another",
            cure="Whatever `mean` depends on is a field of the model or an array of the state",
        )
        for one in (a, b):
            one.update(X[i], r[i], **case.slot(i))
    cure = "Whatever `update` depends on is a field of the model or an array of the state"
    alike(a, b, "what is learnt after loading differs", cure=cure)
    _answers_alike(case, a, b)


def slots(case: Trial) -> None:
    """K copies of the model side by side learn apart (`models.Disjoint`), unless they are refused."""
    if case.slots is not None:
        a, name = case.bandit(learnt=False), f"slots={case.slots}"
    else:
        try:
            a = Bandit(models.Disjoint(case.model, 2), case.policy, dim=case.dim, seed=case.seed)
        except (TypeError, ValueError):
            return
        name = "Disjoint(model, 2)"
    require(a.slots, f"{name} has no slots", cure="State `slots`, the number of arms that share a context")
    if a.slots == 1:
        return
    X, r = case.lesson()
    for k in range(2):
        a.update(X[k], r[k], arm=k, **case.timed(k))
    if case.slots is None:
        alone = Bandit(case.model, case.policy, dim=case.dim, seed=case.seed)
        alone.update(X[1], r[1], **case.timed(1))
        single, slot = alone.mean(X[2:4]), np.stack([a.mean(x)[1] for x in X[2:4]])
        require(
            close(slot, single, rtol=1e-6, atol=1e-9) or case.whole.draw is not None,
            f"slot 1 of {name} is not what the model alone is: mean {farthest(slot, single)}",
            cure="Write `update` and `mean` for `...` leading axes: each slot is an entry of the last of them. Slots "
            "fill the shorter histories with rows of zeros: keep a count or a weight for each row, and ignore rows "
            "where it is 0",
        )


def lockstep(case: Trial) -> None:
    """In lockstep a run learns and shows what it does alone, and what a live bandit does."""
    _same_states(case)
    agents = {"mine": (case.model, SPREADING)}
    whole = case.simulated(agents, runs=3)[0]
    alone = case.simulated(agents, runs=[2], batch=1)[0]
    require(
        close(alone, whole[2:], rtol=1e-12, atol=1e-12),
        f"a run depends on what runs beside it: regret {farthest(alone, whole[2:])}",
        cure="Compute each run from its own entries: the leading axes are the runs",
    )
    live = case.live(SPREADING)
    require(
        close(whole[0], live, rtol=1e-6, atol=1e-9),
        f"run 0 in lockstep and a live bandit part: regret {farthest(whole[0], live)}",
        cure="Write the model for `...` leading axes: none for a live bandit, R for R runs in lockstep",
    )


@checker(
    *(purity, update_many, order, weights, refused, learning, seed, save_and_load, slots, lockstep),
    *(width, predict, scores, sample, logdet),
    gate=shapes,
)
def check_model(
    model: Any,
    *,
    dim: int = 3,
    requests: int = 40,
    seed: int = 0,
    rtol: float = 1e-9,
    known: tuple[type, ...] = (),
    env: Any = None,
    expected_failed_checks: Mapping[str, str] | None = None,
) -> Trial:
    """Check a model by the rules that the models of this library keep.

    model : the model, with `abilities`, `init`, `update` and `mean`, and what else it gives
    dim : d, the number of features
    requests : rounds of a simulation: fewer where a round is expensive
    seed : of all that is drawn: a check fails always or never
    rtol : how nearly n observations at once, and in any order, must agree with n in turn: 1e-4 for float32
    known : classes that a saved model holds besides its own
    env : an environment whose rewards the model takes; None: one of this library
    expected_failed_checks : name -> why the model cannot pass; these must fail

    Raises CheckFailed (an AssertionError) that names each rule that is broken, with the numbers and what to do;
    LookupError for a name of no check. `check_model.checks(...)`, with the same arguments, lists them one by one.
    """
    return Trial(
        model, policies.Greedy(), type(model).__name__, dim=dim, requests=requests, seed=seed, rtol=rtol, classes=known,
        env=env, expected=dict(expected_failed_checks or {}),
    )  # fmt: skip


def _means_in_lockstep(case: Trial, runs: int) -> None:
    """A first state of many runs has a mean for each arm of each of them."""
    X, wanted = np.broadcast_to(case.request(), (runs, *case.request().shape)), (runs, case.K)
    try:
        shape = np.shape(case.whole.mean(case.fresh((runs,)), X))
        says = f"has shape {shape}"
    except ValueError as error:
        shape, says = None, f"raised {str(error).strip()!r}"
    require(
        shape == wanted,
        f"mean of {runs} runs in lockstep, each with X {X.shape[1:]}, {says} in place of shape {wanted}",
        cure="Compute with `...` leading axes: for X @ theta write (X @ theta[..., None])[..., 0]",
    )


def _same_states(case: Trial) -> None:
    """What run 0 of three in lockstep learns is what it learns alone, and what a live bandit learns."""
    three = _in_lockstep(case, 3)
    for what, other, rtol in (("alone", _in_lockstep(case, 1), 1e-12), ("live", _in_lockstep(case, None), 1e-6)):
        for name, A in other.items():
            of_three, wanted = three[name][0], A if what == "live" else A[0]
            require(
                close(of_three, wanted, rtol=rtol, atol=1e-3 * rtol),
                f"{name} of run 0 of three is not that of run 0 {what}: {farthest(of_three, wanted)}",
                cure="Compute each run from its own entries: the leading axes are the runs, none for a live bandit",
            )


def _in_lockstep(case: Trial, runs: int | None) -> dict[str, np.ndarray]:
    """The arrays that so many runs learn, each from rows and with chance of its own; None: of a live bandit."""
    X, r = case.lesson()
    X, r = X.reshape(3, 3, case.dim), r.reshape(3, 3)  # run, round
    state, rngs = case.fresh(() if runs is None else (runs,)), [np.random.default_rng(10 + k) for k in range(3)]
    for t in range(3):
        some = 0 if runs is None else slice(runs)
        settings = case.slot(np.arange(t, t + 3)[some])
        if case.whole.draw is not None:
            drawn = zip(*(case.whole.draw(rng, 1) for rng in rngs), strict=True)
            settings["chance"] = tuple(np.concatenate(kind)[some] for kind in drawn)
        state = case.model.update(state, X[some, t], np.asarray(r[some, t]), **settings)
    return leaves(state)


def _weighs(case: Trial) -> bool:
    """Whether the model takes weights."""
    try:
        adapting.weighs(case.whole)
    except TypeError:
        return False
    return True


def _answers(b: Bandit, X: np.ndarray) -> dict[str, np.ndarray]:
    """All that a bandit answers about arms, by name."""
    return {name: getattr(b, name)(X) for name in ("mean", "width", "predict") if name in b.model.abilities}


def _answers_alike(case: Trial, a: Bandit, b: Bandit) -> None:
    """A model and the one out of its file answer the same: of the bandits' states, and of one state.

    Not to the bit: a file holds no strides, and a product of the same numbers in another layout may round otherwise.
    """
    pairs = [(_answers(a, case.asked(8)), _answers(b, case.asked(8)))]
    state = fresh(case)
    pairs += [(all_answers(case, state), all_answers(replace(case, model=b.model), state))]
    for one, other in pairs:
        for name in one:
            require(
                close(other[name], one[name], rtol=case.rtol, atol=case.rtol),
                f"`{name}` of the loaded model is another: {farthest(other[name], one[name])}",
                cure=OUTSIDE,
            )


def _refuses(case: Trial, what: str, x: np.ndarray, r: float) -> bool:
    """Whether an observation is refused; then nothing may have changed."""
    b = case.bandit()
    before, t = leaves(b.state), b.t
    try:
        b.update(x, r, **case.slot(0))
    except ValueError:
        changed = differing(before, leaves(b.state))
        require(
            changed is None and b.t == t,
            f"{what} is refused, and the state has changed ({changed or 't'})",
            cure="Make the new state whole before the old one is let go",
        )
        return True
    return False


def _agree(case: Trial, a: Bandit, b: Bandit, what: str, *, cure: str) -> None:
    """Two bandits know the same, as nearly as the model says that it knows."""
    atol = case.rtol
    if "bound" in case.model.abilities:
        off, spread = np.max(np.atleast_2d(a.bound) + np.atleast_2d(b.bound), axis=0)
        widest = max(float(np.max(one.width(case.asked(8)))) for one in (a, b)) if np.isfinite(off) else 0.0
        atol += float(off * widest * np.exp(spread) + np.expm1(spread))
    for name, answer in _answers(a, case.asked(8)).items():
        wanted = _answers(b, case.asked(8))[name]
        require(
            close(answer, wanted, rtol=case.rtol, atol=atol),
            f"{what}: {name} is {farthest(answer, wanted)}",
            cure=cure,
        )
