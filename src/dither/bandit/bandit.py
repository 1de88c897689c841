"""`Bandit`: one model in a live system. Configuration, state and random streams; NumPy in, NumPy out.

    choose(X) -> Decision       draws; changes nothing but the streams, and what a baseline adds up
    update(x, r)                learns; draws nothing
    propensities(X)             neither draws nor learns

The configuration is frozen. The state is a tuple, and a call replaces the whole tuple, so a refused call leaves
everything as it was. A lock makes every call atomic, so one bandit may serve many threads. The streams of a bandit
belong to one process: after a fork, the child draws from fresh entropy (docs/live.md).
"""

import copy
import math
import operator
import threading
import warnings
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from dither.bandit import saving
from dither.base import errors, forks, streams, trees
from dither.deciding import baseline as baselines
from dither.deciding import causes, decision, explain, inputs, observation, one_arm, ranking, stepping
from dither.deciding import request as requests
from dither.deciding.answers import (
    AnyShape,
    Batch,
    Decision,
    Decisions,
    Kind,
    ListDecision,
    ListDecisions,
    Numbers,
    Vector,
    Wishes,
)
from dither.deciding.baseline import Baseline, RoundSums
from dither.deciding.causes import Chosen, CoinShares
from dither.deciding.decision import Choice
from dither.deciding.demands import Demands
from dither.deciding.explain import Explanation
from dither.deciding.policy import check
from dither.deciding.request import Request
from dither.features import Features
from dither.features.column_sizes import ColumnSizes, ColumnSizeWarning
from dither.features.encoder import checked
from dither.models import adapting, penalty
from dither.models.model import begin, estimate, finite

if TYPE_CHECKING:
    from dither.deciding.answers import ListOneOrMany, OneOrMany

SETTINGS = ("dim", "seed", "floor", "monte_carlo")
COUNTS = ("decisions", "observations")
_DECIDING = ("policy", "floor", "monte_carlo", "baseline", "_gives_back")  # how it decides, whatever it has learnt
_CONFIGURATION = (*_DECIDING, "dim", "features", "formerly")
# The streams that go on from call to call, and their purposes.
_STREAMS = {"_chance": "policy", "_ties": "ties", "_training": "training"}


class Bandit:
    """A policy on a model, for arms with features X (K, d), or K disjoint slots with one context x (d,).

    Parameters
    ----------
    model, policy : configurations from `dither.models` and `dither.policies`, or your own
    dim : d, the number of features
    seed : a whole number; None draws one and records it in `seed`
    floor : the share of choices that are uniform over the arms on offer. Each of n arms on offer then has a
        probability of at least floor/n
    monte_carlo : how many draws the propensity of a decision takes, for a policy without a closed form (Thompson
        sampling, perturbed history). With 0 draws the propensity is NaN, of kind "none". The arm shown counts as one
        more draw: (1 + hits)/(1 + draws), so no logged propensity is 0
    baseline : a `Baseline`, an arm that is kept within a stated loss (docs/demands.md); None: no such demand

    Raises
    ------
    ValueError for settings that make no sense. TypeError, which lists all that is missing, where the model is no model
    (docs/adding-a-model.md), the policy is no policy (docs/adding-a-policy.md), or the model lacks what it needs.
    """

    def __init__(
        self,
        model: Any,
        policy: Any,
        *,
        dim: int,
        seed: int | None = None,
        floor: float = 0.0,
        monte_carlo: int = 0,
        features: Features | None = None,
        baseline: Baseline | None = None,
    ) -> None:
        more: dict[str, Any] = dict(seed=seed, floor=floor, monte_carlo=monte_carlo)
        self._begin(model, policy, dim=dim, features=features, baseline=baseline, **more)
        if adapting.of_user(model):
            adapting.look(self._model, self.state, dim=self.dim)

    def _begin(
        self,
        model: Any,
        policy: Any,
        *,
        dim: int,
        seed: int | None,
        floor: float,
        monte_carlo: int,
        features: Features | None,
        baseline: Baseline | None,
    ) -> None:
        """All of `__init__` that asks no model of the user's: a bandit that is loaded was looked at when it was made.

        So a model that raises for a while keeps nobody from opening the ledger that takes its rewards.
        """
        errors.at_least("dim", dim, 1)
        errors.within("floor", floor, 0, 1)
        errors.at_least("monte_carlo", monte_carlo, 0)
        check(policy, model, dim=dim)
        self._model: Any = adapting.adapted(model)  # with all the parts of a `Model`
        self.policy = policy
        self.dim, self.floor, self.monte_carlo = int(dim), float(floor), int(monte_carlo)
        self.seed = streams.entropy(seed)
        self.slots = self._model.slots
        self.baseline = baseline
        self.kept: RoundSums | None = None  # what the rounds so far add up to
        if baseline is not None:
            if not isinstance(baseline, Baseline):
                raise TypeError(
                    f"baseline must be a dither.Baseline, such as Baseline(arm=0, loss=0.1); got {baseline!r}"
                )
            baseline.check(model, slots=self.slots)
            self.kept = baseline.begin(self.dim)
        self.state = self._begun()
        self.decisions = 0  # requests answered
        self.observations = 0  # rewards learnt; the round t of schedules is one more
        # Model and policy that the call of an algorithm that made this made under each earlier default.
        self.formerly: tuple[tuple[Any, Any], ...] = ()
        self.features = features
        names = None if features is None else checked(features).fits(self.dim, slots=self.slots)
        self.columns = None if names is None else tuple(names)  # (d,) names of the features; None: they go by place
        self._sizes = ColumnSizes(self.dim) if self.unscaled else None  # of the first rows; None: enough was looked at
        self._chance, self._ties = self._stream("policy"), self._stream("ties")
        self._training = None if self._model.draw is None else self._stream("training")  # the model's own chance
        self._ambient = self._model.ambient(self.dim)  # the dimension of θ
        self._gives_back = decision.asks(policy) or baseline is not None  # draws, where a decision fails after them
        self._lock = threading.RLock()
        forks.tell(self)

    @property
    def model(self) -> Any:
        """The model that was passed."""
        return adapting.original(self._model)

    @property
    def clocked(self) -> bool:
        """Whether the model forgets by the clock (`half_life`), so that every observation has a time."""
        return self._model.half_life is not None

    @property
    def unscaled(self) -> bool:
        """Whether λ follows the rule (`lam="auto"`), for columns that no `Features` have made."""
        return self.features is None and "lam" in self._model.abilities and self._model.lam == penalty.AUTO

    @property
    def t(self) -> int:
        """The round: rewards learnt so far, plus 1."""
        return self.observations + 1

    @overload
    def choose(self, X: AnyShape, **wishes: Unpack[Wishes]) -> "OneOrMany": ...
    @overload
    def choose(self, X: Vector, **wishes: Unpack[Wishes]) -> Decision: ...
    @overload
    def choose(self, X: Batch, **wishes: Unpack[Wishes]) -> Decisions: ...
    @overload
    def choose(self, X: Any, **wishes: Unpack[Wishes]) -> "OneOrMany": ...
    def choose(
        self, X: Any, *, mask: Any = None, values: Any = None, minimum: Any = None, baseline: Any = None
    ) -> Decision | Decisions:
        """Choose an arm for one request or for B at once.

        X : (K, d) the arms on offer, or (B, K, d); with disjoint slots the context (d,), or (B, d)
        mask : (K,) or (B, K), True: on offer. Rows of X that are not on offer are not read.
        values : (K,) or (B, K), above 0: what one unit of reward is worth for each arm, such as a price. The arm of the
            highest value times expected reward is shown, and the bandit explores that product. `update` learns the
            reward itself, without the value (docs/values.md)
        minimum : (K,) or (B, K), the least probability of each arm; an arm that is not on offer gives it up
        baseline : where the bandit has a `Baseline`, the position of that arm in this request; (B,) of them

        Raises ValueError for a wrong width, for NaN or infinity (the error names the place), and where no arm is on
        offer. Raises TypeError for values where the policy cannot weigh them. Nothing is drawn then.
        """
        with self._lock:
            request = self.request(X, mask, values=values, minimum=minimum, baseline=baseline)
            if self._gives_back:
                return self._decided(request, one_arm.ONE).decision
            arm, p, kind, se, z = self._shown(request, one_arm.ONE)[0]
            answer = Decision if len(request.shape) == 1 else Decisions
            return answer(arm, p, kind, se, z, self.observations)

    def request(
        self, X: Any, mask: Any = None, *, values: Any = None, minimum: Any = None, baseline: Any = None
    ) -> Request:
        """Check what is asked, once; the arguments are those of `choose`. Nothing changes."""
        request = requests.read(X, mask, dim=self.dim, slots=self.slots, columns=self.columns)
        if values is None and minimum is None and baseline is None and self.baseline is None:
            return request
        return self.demanding(request, values=values, minimum=minimum, baseline=baseline)

    def read(self, X: Any, mask: Any = None) -> Request:
        """A request of which nothing is demanded, checked as `choose` checks it. Nothing changes."""
        return requests.read(X, mask, dim=self.dim, slots=self.slots, columns=self.columns)

    def demanding(self, request: Request, *, values: Any, minimum: Any, baseline: Any) -> Request:
        """A request with what is demanded of it, checked; the arguments are those of `choose`."""
        of_arms: dict[str, Any] = dict(shape=request.shape, mask=request.mask)
        if baseline is not None and self.baseline is None:
            raise baselines.no_baseline()
        if self.baseline is not None:
            at = baselines.position(self.baseline.arm if baseline is None else baseline, **of_arms)
            request = request._replace(baseline=at)
        if values is not None:
            request = request._replace(values=requests.values(values, **of_arms))
        if minimum is not None:
            request = request._replace(minimum=requests.minimum(minimum, **of_arms))
        return request

    def decide(self, request: Request, outcome: decision.Outcome = one_arm.ONE) -> Choice:
        """Choose for a request that was checked. With a baseline, a request of a batch comes after those before it.

        outcome : what is chosen, an arm or a list. A list is decided for a batch, without a minimum or a baseline

        If a decision fails where scores ask the model, or where a baseline is kept, nothing was drawn.
        """
        with self._lock:
            if outcome is not one_arm.ONE:
                if self.baseline is not None:
                    raise baselines.unknown_to("a list")
                ranking.check(outcome, request)
            return self._decided(request, outcome)

    def _decided(self, request: Request, outcome: decision.Outcome) -> Choice:
        """`decide`, by whoever holds the lock and has looked at the outcome."""
        marks = self._marks() if self._gives_back else None
        try:
            if request.baseline is not None and len(request.shape) > 1 and request.size:
                rows = [self._decided(request.row(i), outcome) for i in range(request.shape[0])]
                return one_arm.joined(rows, request)
            shown, now, demands, view = self._shown(request, outcome)
            now, demands = now or self._now(), demands or self._demands(request)
            chosen = Choice(request, demands, shown, decision.Basis(now, request, outcome, self._aside, view))
            if self.baseline is not None and self.kept is not None and request.size:
                self.kept = self.baseline.after(self.kept, request, chosen.arm)
        except BaseException:
            if marks is not None:
                self._go_back(marks)
            raise
        return chosen

    def _shown(
        self, request: Request, outcome: decision.Outcome
    ) -> tuple[Any, decision.Moment | None, Demands | None, Any]:
        """What is shown for a request, as of `decision.decide`, and what it was made from: moment, demands, view.

        They are None where the compiled step has told what is shown.
        """
        shown = drawn = now = demands = view = None
        single, t = len(request.shape) == 1, self.observations + 1
        if single:
            uniform = self._uniform(decision.share(self.policy, t))
            shown, drawn = stepping.told(
                request, uniform, self.policy, self._model, self.state, t, self._ambient, self._chance, self._ties
            )
        if shown is None:
            now, demands = self._now(), self._demands(request)
            streams: Any = self._chance, self._ties
            more: Any = dict(aside=self._aside, draws=self.monte_carlo, drawn=drawn)
            shown, view = decision.decide(now, request, demands, outcome, *streams, **more)
        self.columns = request.columns
        self.decisions += 1 if single else request.shape[0]
        return shown, now, demands, view

    def restated(self, chosen: Choice) -> Choice:
        """A decision that was made earlier, with what this bandit knows now: lines, probabilities, the uniform share.

        A share that is a number stays. Without X there are no lines and no probabilities.
        """
        now, share = self._now(), chosen.demands.uniform
        chosen.learnt = self.observations if chosen.learnt is None else chosen.learnt
        if chosen.request.X is not None:
            chosen.basis = decision.Basis(now, chosen.request, one_arm.ONE, self._aside)
        demands = self._demands(chosen.request)
        chosen.demands = demands if np.isnan(share) else demands._replace(uniform=share)
        return chosen

    def _uniform(self, share: float) -> float:
        """The share of choices that is uniform, of which the policy makes one share, and the floor is of the rest."""
        return share + self.floor * (1 - share)

    def _demands(self, request: Request) -> Demands:
        """What is demanded of the choice."""
        share = decision.share(self.policy, self.observations + 1)
        demanded = tuple.__new__(Demands, (request.shape, request.mask, self._uniform(share), None, None, None))
        if request.minimum is not None:
            demanded = demanded.with_minimum(request.minimum, floor=self.floor, share=share)
        if self.baseline is None or request.baseline is None or self.kept is None:
            return demanded
        safe = self.baseline.safe(self._model, self.state, self.kept, request)
        return demanded._replace(safe=safe, baseline=request.baseline)

    @overload
    def choose_list(self, X: AnyShape, *, k: int, mask: Any = None) -> "ListOneOrMany": ...
    @overload
    def choose_list(self, X: Vector, *, k: int, mask: Any = None) -> ListDecision: ...
    @overload
    def choose_list(self, X: Batch, *, k: int, mask: Any = None) -> ListDecisions: ...
    @overload
    def choose_list(self, X: Any, *, k: int, mask: Any = None) -> "ListOneOrMany": ...
    def choose_list(self, X: Any, *, k: int, mask: Any = None) -> ListDecision | ListDecisions:
        """Choose the k best arms in order, for one request or for B at once. The chance is drawn as in `choose`.

        X, mask : as for `choose`; k : how many, at most as many as are on offer in each request

        The floor is the share of lists that are uniform. Each ordered list of k of n arms on offer then has the
        probability (n-k)!/n!.
        """
        with self._lock:
            request = self._plain("choose_list", X, mask)
            many = request.batched() if request.single else request
            chosen = self.decide(many, ranking.RankedList(k))
            return ranking.answer(chosen, single=request.single)

    def list_propensities(
        self, X: Any, *, k: int, mask: Any = None, draws: int = 10_000, lists: bool = True
    ) -> ranking.ListPropensities:
        """How probable each list of k arms is, and each arm on the list, for one request. Spends no chance.

        X (K, d), mask (K,) : as for `choose`; draws : as for `propensities`
        lists : whether all lists are spelt out; False: only the probabilities of the arms to be on the list

        Raises ValueError where ties make more lists than can be spelt out.
        """
        errors.at_least("draws", draws, 1)
        with self._lock:
            request = self._plain("list_propensities", X, mask, single=True)
            ranking.fits(k, request)
            demanded, rng = self._demands(request), self._aside()
            answer = ranking.propensities(self._now(), request, demanded, k=k, rng=rng, n=draws, lists=lists)
            self.columns = request.columns
            return answer

    def explain(self, X: Any, z: Any = None, *, mask: Any = None) -> Explanation:
        """Why an arm is shown, for one request: each arm's line m + z w, and the interval of z that chooses the arm.

        X (K, d), mask (K,) : as for `choose`; z : a value to look at, such as that of a `Decision`

        Raises TypeError for a policy whose arms are not lines that one z moves.
        """
        with self._lock:
            request = self._plain("explain", X, mask, single=True)
            if decision.lines(self._now().view(request)) is None:
                raise explain.no_lines(self.policy)
            explanation = self._explained(request, self._demands(request), z=z)
            self.columns = request.columns
            return explanation

    def account(
        self, request: Request, *, arm: int, z: float | None = None, safe: np.ndarray | None = None
    ) -> Explanation:
        """`explain` of a decision of one request that was checked, whatever the policy is.

        arm : the position of the arm that was shown; z : what was drawn; None: it is not known
        safe : (K,) which arms were safe, where a baseline was kept; None: all were
        """
        with self._lock:
            demanded = self._demands(request._replace(baseline=None))
            if safe is not None:
                demanded = demanded._replace(safe=safe, baseline=request.baseline)
            return self._explained(request, demanded, z=z, arm=arm, aside=self._aside)

    def coined(self, request: Request, *, arm: int, p: float) -> Chosen:
        """What is known of the chance that showed an arm with the probability p (NaN: not known), without means.

        request : of which the demands alone are asked
        """
        with self._lock:
            return causes.by_probability(arm, request, self._demands(request), self._coins, p=p)

    @property
    def _coins(self) -> CoinShares:
        return CoinShares(decision.share(self.policy, self.t), self.floor)

    def _explained(self, request: Request, demanded: Demands, **more: Any) -> Explanation:
        """An explanation, by whoever holds the lock; more : as of `explain.explain`."""
        fields = None if self.features is None else self.features.terms
        return explain.explain(self._now(), request, demanded, shares=self._coins, fields=fields, **more)

    @overload
    def propensities(
        self, X: Any, *, detail: Literal[False] = False, draws: int = ..., log: bool = ..., **wishes: Unpack[Wishes]
    ) -> Numbers: ...
    @overload
    def propensities(
        self, X: Any, *, detail: Literal[True], draws: int = ..., log: bool = ..., **wishes: Unpack[Wishes]
    ) -> tuple[Numbers, Numbers | None, Kind]: ...
    def propensities(
        self,
        X: Any,
        *,
        mask: Any = None,
        values: Any = None,
        minimum: Any = None,
        baseline: Any = None,
        detail: bool = False,
        draws: int = 10_000,
        log: bool = False,
    ) -> Any:
        """The probability with which `choose` would show each arm. Spends none of the bandit's chance.

        X, mask, values, minimum, baseline : as for `choose`; each request of a batch as if it came next
        draws : for policies without a closed form, Monte Carlo draws a request
        log : return logarithms; -inf: the arm is never shown. Where one z moves all arms, they are right even where the
            probabilities underflow
        -> p (K,) or (B, K); with detail=True (p, se, kind): se of p's shape, None where exact; kind as in `Decision`

        The probability of one arm is computed here beside the others, and by itself in `choose`. The two agree to
        1e-15, and to the bit only where the policy has no chance.
        """
        errors.at_least("draws", draws, 1)
        with self._lock:
            request = self.request(X, mask, values=values, minimum=minimum, baseline=baseline)
            p, se, kind = self.probabilities(request, draws=draws, log=log)
        return (p, se, kind) if detail else p

    def probabilities(
        self, request: Request, *, draws: int = 10_000, log: bool = False
    ) -> tuple[Numbers, Numbers | None, Kind]:
        """`propensities` of a request that was checked: p, their standard errors, their kind."""
        with self._lock:
            now, demanded = self._now(), self._demands(request)
            view = now.view(request)
            answer = one_arm.ONE.probabilities(now, view, request, demanded, self._aside, draws, log=log)
            self.columns = request.columns
            return answer

    def update(self, x: Any, r: Any, *, arm: Any = None, weight: Any = None, at: Any = None) -> None:
        """Learn one reward, x (d,) and r a number, or n at once, x (n, d) and r (n,), in any order and however late.

        arm : with disjoint slots, the slot that was shown, an int or (n,)
        weight : a number or (n,), not negative: how many observations this one counts as (default 1)
        at : a number or (n,), for a model with a half_life: the time of the observation, in the units of half_life. An
            earlier time than the latest one is late: the observation counts for less by the time that has passed

        Raises ValueError for wrong shapes, for NaN or infinity, and for features too long beside λ. The bandit is
        unchanged then. One exception: a `models.Regressor` may leave out earlier rows that spoil its fit; the error
        says how many. A `features.ColumnSizeWarning` comes once, where λ follows the rule (`lam="auto"`) and the first
        rows have columns of very different sizes, without an encoder.
        """
        with self._lock:
            X, r, settings, columns = observation.observation(
                self._model, x, r, arm=arm, weight=weight, at=at, dim=self.dim, columns=self.columns
            )
            if self._sizes is not None:
                self._look(self._sizes, X, columns)
            state = self._learnt(X, r, settings)
            if type(state) is not type(self.state):
                wanted, kind = type(self.state).__name__, type(state).__name__
                raise TypeError(f"{type(self.model).__name__}.update must return the new state, {wanted}; got {kind}")
            theta = getattr(state, "theta", None)
            usual = type(theta) is np.ndarray and theta.ndim == 1 and inputs.plain(theta, 1, len(theta), math.inf)
            if not usual and not finite(state):
                raise errors.overflow(type(self.model).__name__ if adapting.of_user(self.model) else None)
            self.state, self.columns = state, columns
            self.observations += 1 if X.ndim == 1 else X.shape[0]

    def advance(self, at: Any) -> None:
        """Let time pass without a reward, for a model with a half_life: what was learnt fades to the time `at`.

        at : a number, in the units of half_life; a time before the latest one changes nothing

        Raises TypeError for a model without a half_life; ValueError for what is no finite number.
        """
        with self._lock:
            self.state = self._model.advanced(self.state, observation.times(at, (), self._model))

    def _begun(self, model: Any = None) -> Any:
        """The first state of the model, or of another one in its place."""
        model = self._model if model is None else model
        return begin(model, self.dim, needs=self.policy.needs, rng=lambda: self._stream("weights"))

    def _learnt(self, X: np.ndarray, r: np.ndarray, settings: dict[str, Any]) -> Any:
        """The state after these observations. If the model refuses them, the stream of its own chance goes back."""
        if self._model.owns:
            settings["own"] = True
        learn = self._model.update if X.ndim == 1 else self._model.update_many
        if self._training is None:
            return learn(self.state, X, r, **settings)
        with streams.given_back(self._training):
            chance = self._model.draw(self._training, 1 if X.ndim == 1 else len(X))
            if X.ndim == 1:
                chance = tuple([kind[0] for kind in chance])
            return learn(self.state, X, r, chance=chance, **settings)

    def _look(self, sizes: ColumnSizes, X: np.ndarray, columns: tuple[str, ...] | None) -> None:
        """Look at the columns of the first rows, and warn once where they have very different sizes."""
        words = sizes.learnt(X, columns)
        if sizes.done:
            self._sizes = None  # first, since a filter may make an error of the warning
        if words is not None:
            warnings.warn(words, ColumnSizeWarning, stacklevel=4)

    def refit(self) -> None:
        """Fit the model on all that was learnt, now, without waiting for its schedule (`models.Regressor`).

        Raises TypeError for a model that learns every reward as it comes; ValueError where the fit fails.
        """
        with self._lock:
            self.state = self._model.refitted(self.state)

    def grow(self, slots: int) -> None:
        """Have more disjoint slots. Those that are there keep what they learnt; the new ones have learnt nothing.

        slots : how many there are from now on, at least as many as before

        Raises ValueError for fewer slots; TypeError for a bandit without slots, and for a model whose slots cannot grow
        (a network, a regressor). Nothing has changed then.
        """
        with self._lock:
            if self.slots is None:
                raise TypeError("this bandit has no disjoint slots: any number of arms can be on offer")
            errors.at_least("slots", slots, self.slots)
            model = adapting.with_slots(self._model, int(slots))
            check(self.policy, model, dim=self.dim)
            state = model.grown(self.state, self._begun(model))
            self._model, self.state, self.slots = model, state, int(slots)
            self._ambient = model.ambient(self.dim)

    def reseed(self, seed: int | None = None) -> None:
        """Draw from new streams from now on. A copy that decides beside its original must do so.

        seed : a whole number; None: fresh entropy. It is recorded in `seed`, which `save` writes.

        The new streams depend on (seed, decisions, observations). So copies of different moments draw differently, even
        under one seed. What was learnt stays. After a fork, the child's bandit does this with fresh entropy.

        Raises ValueError for a value that is no seed. Nothing has changed then.
        """
        seed = streams.entropy(seed)
        with self._lock:
            self.seed = seed
            for name in self._streams():
                setattr(self, name, self._stream(_STREAMS[name], self.decisions, self.observations))

    def follow(self, other: "Bandit", *, settings: bool = False) -> None:
        """Take over what another bandit of the same configuration has learnt. The streams stay one's own.

        settings : whether its configuration is taken over too, which may then be any

        Raises ValueError for another configuration. Nothing has changed then.
        """
        with other._lock:
            columns = other.columns if settings else other.columns or self.columns
            learnt = other._model, other.state, other.observations, columns
            same = (other.dim, other.policy) == (self.dim, self.policy) and type(other.model) is type(self.model)
            if not (same or settings):
                raise ValueError(f"a bandit follows one of its own configuration: {other!r} is not that of {self!r}")
            taken = {name: getattr(other, name) for name in _CONFIGURATION} if settings else {}
        with self._lock:
            vars(self).update(taken)
            self._model, self.state, self.observations, self.columns = learnt
            self.slots, self._ambient = self._model.slots, self._model.ambient(self.dim)
            if settings and self._model.draw is None:
                self._training = None
            elif settings and self._training is None:
                self._training = self._stream("training", self.decisions, self.observations)

    def decide_as(self, other: "Bandit") -> None:
        """Decide as another bandit on the same model does, from what this one has learnt: its policy and demands."""
        with self._lock:
            for name in _DECIDING:
                setattr(self, name, getattr(other, name))

    def save(self, path: Any) -> None:
        """Write everything to one file, atomically; `dither.load(path)` goes on as if nothing had happened.

        This is right where one process follows the other. Where both decide at the same time, the second one loads
        with `dither.load(path, seed=None)`.

        Raises TypeError, before anything is written, for a configuration that a file cannot hold (a function as `c`).
        """
        saving.write(path, *self._content())

    def to_bytes(self) -> bytes:
        """What `save` writes, for a store of your own: `dither.from_bytes` reads it."""
        return saving.to_bytes(*self._content())

    def _content(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The header and the arrays of a file."""
        with self._lock:
            header = {
                "model": saving.pack(self.model),
                "policy": saving.pack(self.policy),
                "columns": None if self.columns is None else list(self.columns),
                "features": None if self.features is None else self.features.described,
                "streams": {name: saving.plain(rng.bit_generator.state) for name, rng in self._streams().items()},
                **{name: getattr(self, name) for name in (*SETTINGS, *COUNTS)},
            }
            arrays = {name: np.asarray(array) for name, array in trees.leaves(self.state, "state").items()}
            if adapting.of_user(self.model):
                saving.fits(self._begun(), arrays, model=self.model)
            if self.baseline is not None and self.kept is not None:
                header["baseline"] = saving.pack(self.baseline)
                arrays |= baselines.content(self.kept)
        return header, arrays

    @property
    def theta(self) -> np.ndarray:
        """θ̂, (d,); with disjoint slots (K, d). Raises TypeError for a model without a θ."""
        return estimate(self._model, self.state).copy()

    @property
    def lam(self) -> float:
        """λ in force: that of the setting, or of `lam="auto"`. Raises TypeError for a model without a λ."""
        if "lam" not in self._model.abilities:
            raise TypeError(f"{type(self.model).__name__} has no penalty λ")
        return float(self._model.lam_of(self.state))

    @property
    def sigma(self) -> float:
        """The sd of the reward noise that exploration goes by: the setting, or σ̂ of what was learnt for sigma="auto".

        Raises TypeError for a policy without a sigma.
        """
        sigma = vars(self.policy).get("sigma")
        if sigma is None:
            raise TypeError(f"{type(self.policy).__name__} goes by no sd of the rewards: it has no setting sigma")
        return float(self._model.noise_sd(self.state) if isinstance(sigma, str) else sigma)

    def mean(self, X: Any) -> np.ndarray:
        """m_i = x_i'θ̂, before the link where there is one: X as for `choose` -> (K,) or (B, K)."""
        return self._ask("mean", X)

    def predict(self, X: Any) -> np.ndarray:
        """μ(m_i), the expected rewards; the means themselves for linear models: X as for `choose` -> (K,) or (B, K)."""
        return self._ask("predict", X)

    @property
    def bound(self) -> np.ndarray:
        """How exact θ̂ and Ĥ are, for models that know (`models.GLM.bound`): (2,); with disjoint slots (K, 2)."""
        if "bound" not in self._model.abilities:
            raise errors.lacks(self.model, "bound", policy=self.policy)
        return self._model.bound(self.state).copy()

    def width(self, X: Any) -> np.ndarray:
        """w_i, the standard deviation of x_i'θ̂ (noise of sd 1, or the link's): X as for `choose` -> (K,) or (B, K)."""
        return self._ask("width", X)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the lock, since a copy needs a lock of its own."""
        with self._lock:
            return {k: copy.deepcopy(v) for k, v in self.__dict__.items() if k != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._lock = threading.RLock()
        forks.tell(self)

    def _forked(self) -> None:
        """Called in the child of a fork. Take new streams, and a lock that no thread of the parent holds."""
        self._lock = threading.RLock()
        self.reseed()

    def __repr__(self) -> str:
        kept = "" if self.baseline is None else f", baseline={self.baseline}"
        settings = f"dim={self.dim}, seed={self.seed}, floor={self.floor}{kept}"
        return f"Bandit({self.model}, {self.policy}, {settings}, t={self.t})"

    def _ask(self, ability: str, X: Any) -> np.ndarray:
        if ability not in self._model.abilities:
            raise errors.lacks(self.model, ability, policy=self.policy)
        with self._lock:
            request = self.read(X)
            answer = operator.methodcaller(ability, self.state, request.X)(self._model)
            self.columns = request.columns
            return answer

    def _plain(self, call: str, X: Any, mask: Any, *, single: bool = False) -> Request:
        """A request for a call that knows no baseline; single : and no batch."""
        if self.baseline is not None:
            raise baselines.unknown_to(call)
        request = self.read(X, mask)
        if single and not request.single:
            raise ValueError(
                f"X must be one request, without a batch axis; got {request.X.shape}: ask for one at a time"
            )
        return request

    def _now(self) -> decision.Moment:
        """What the next decision depends on."""
        parts = self.policy, self._model, self.state, self.observations + 1, self._ambient
        return tuple.__new__(decision.Moment, parts)  # past the constructor, which is Python and twice as slow

    def _aside(self) -> np.random.Generator:
        """A stream for Monte Carlo that belongs to this moment. It spends none of the bandit's chance."""
        return self._stream("monte_carlo", self.decisions, self.observations)

    def _marks(self) -> tuple[Any, ...]:
        """What a decision changes, as it is now."""
        both = (self._chance, self._ties)
        return self.kept, self.decisions, self.columns, [(one, one.bit_generator.state) for one in both]

    def _go_back(self, marks: tuple[Any, ...]) -> None:
        """Be as `_marks` found it."""
        self.kept, self.decisions, self.columns, states = marks
        for stream, state in states:
            stream.bit_generator.state = state

    def _streams(self) -> dict[str, Any]:
        """The streams that go on from call to call. The one for training is there only where the model has chance."""
        return {name: rng for name in _STREAMS if (rng := getattr(self, name)) is not None}

    def _stream(self, purpose: str, *more: int) -> Any:
        stream = streams.stream(self.seed, 0, purpose, *more)
        return streams.Uniforms(stream) if purpose == "ties" else stream
