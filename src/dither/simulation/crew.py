"""Who plays in `simulate`: an agent is one algorithm in R runs, a team is agents that learn in one call.

Runs in lockstep are one leading axis, (R, ...). Agents with the same model learn together, (A R, ...): one call of
`update` for all of them costs little more than that of one.
"""

import math
import operator
from typing import Any

import numpy as np

from dither.base import arrays, trees
from dither.base.arrays import Array
from dither.deciding import decision
from dither.deciding import policy as policy_contract
from dither.deciding.demands import Demands
from dither.deciding.one_arm import ONE
from dither.models import adapting
from dither.models.model import begin, given_up
from dither.simulation.world import Rounds, WorldOfRuns

BATCH = 50  # the most runs in lockstep, by default: with more, a run costs no less
STATES = 50_000  # the most entries of F in all runs in lockstep, by default: they stay in the cache
DRAWN = 2**21  # numbers of chance drawn at once for all runs of an algorithm


def in_cache(env: Any) -> int:
    """As many runs in lockstep as make a run cheap, with states that stay in the cache."""
    return min(BATCH, max(8, STATES // (env.dim**2 * (env.arms if env.disjoint else 1))))


def teams(crew: list["Agent"], world: WorldOfRuns) -> list[list["Agent"]]:
    """The agents, those together that learn together: no more runs in all than stay in the cache."""
    if world.xp is not arrays.backend(None) or hasattr(world.env, "delays"):
        return [[agent] for agent in crew]
    teams: list[list[Agent]] = []
    for agent in crew:
        most = min(in_cache(world.env), agent.model.together(world.dim)) // len(world.runs)
        fits = (team for team in teams if len(team) < most and _alike(team[0], agent))
        team = next(fits, None)
        if team is None:
            teams.append([agent])
        else:
            team.append(agent)
    return teams


def _alike(one: "Agent", other: "Agent") -> bool:
    """Whether two agents have the same model, whose runs do not depend on each other, and keep the same of it."""
    model = one.model
    if adapting.of_user(model) or model.draw is not None or model != other.model:
        return False
    return trees.leaves(one.state, "").keys() == trees.leaves(other.state, "").keys()


class Team:
    """Agents with the same model. Their runs are learnt in one call, which costs little more than that of one agent."""

    def __init__(self, agents: list["Agent"]) -> None:
        self.agents, self.model, self.home = agents, agents[0].model, agents[0].home
        if len(agents) > 1:
            self.share(trees.map_arrays(lambda *parts: np.concatenate(parts), *(agent.state for agent in agents)))

    def share(self, state: Any) -> None:
        """Keep the state of all runs, and give each agent its own as views."""
        self.state, R = state, len(self.agents[0].world.runs)
        for k, agent in enumerate(self.agents):
            agent.state = trees.map_arrays(operator.itemgetter(slice(k * R, (k + 1) * R)), state)

    def step(self, t: int, i: int, rows: Rounds) -> None:
        """Choose, pay, learn: round t, which is round i of these."""
        lessons: list[Any] = []
        try:
            for agent in self.agents:
                lessons.append(agent.choose(t, i, rows))
            self.learn(t, i, rows, lessons)
        except Exception as error:
            failed = self.agents[len(lessons) :][:1] or self.agents  # none is left: all of them learn
            error.add_note(f"{', '.join(agent.label for agent in failed)} in round {t}")
            raise

    def learn(self, t: int, i: int, rows: Rounds, lessons: list[Any]) -> None:
        """Learn what `choose` of each agent gave in round t, which is round i of these."""
        if len(lessons) == 1:
            self.agents[0].learn(t, lessons[0], None if rows.delay is None else rows.delay[:, i])
            return
        x, r = (np.concatenate(kind) for kind in list(zip(*lessons, strict=True))[:2])
        slot = {name: np.concatenate([settings[name] for _, _, settings in lessons]) for name in lessons[0][2]}
        self.share(self.model.update(self.state, x, r, **slot, **given_up(self.model)))


class Agent:
    """One algorithm in R runs."""

    def __init__(self, label: str, model: Any, policy: Any, world: WorldOfRuns) -> None:
        self.label, self.model, self.policy, self.world = label, model, policy, world
        self.home = world.device is not None and model.placed is not None  # its arrays are NumPy's
        R, numpy = len(world.runs), arrays.backend(None)
        settings = dict(batch=(R,), xp=numpy if self.home else world.xp, device=None if self.home else world.device)
        self.state = begin(model, world.dim, needs=policy.needs, rng=lambda: world.streams("weights"), **settings)
        self.training_rngs = [] if model.draw is None else world.streams("training")
        together = policy_contract.in_lockstep(policy)
        self.policy_chance = world.chance.drawing("policy", together=together, home=self.home)
        self.ties = world.chance.drawing("ties", together=True, home=self.home)
        self.regret = self.realised = self.array(np.zeros(R))
        self.block = 1  # rounds whose chance is drawn at once; the first shows how many fit
        self.late: dict[int, list[Any]] = {}  # round -> what is learnt at its end

    def array(self, x: np.ndarray) -> Array:
        """In the library of its state, on its device."""
        return x if self.home else self.world.array(x)

    def prepare(self, n: int) -> None:
        """n rounds are to come."""
        self.ahead, self.first, self.last = n, 0, 0
        self.shown: list[Array] = []  # (R,) the arms of each round so far

    def draw(self, i: int) -> None:
        """Draw the chance of round i and of as many after it as memory allows."""
        n = min(self.ahead - i, self.block)
        self.first, self.last = i, i + n
        spaces = dict(arms=self.world.arms, dim=self.model.ambient(self.world.dim))
        self.chance = self.policy_chance(lambda rng: decision.draw(self.policy, rng, n, **spaces))
        taught = [self.model.draw(rng, n) for rng in self.training_rngs]
        self.training = tuple(np.stack(kind) for kind in zip(*taught, strict=True))
        (self.u,) = self.ties(lambda rng: (rng.random((n, decision.UNIFORMS)),))
        size = sum(math.prod(kind.shape) for kind in (*self.chance, *self.training, self.u))
        self.block = max(1, int(DRAWN // (size / n)))

    def choose(self, t: int, i: int, rows: Rounds) -> tuple[Array, Array, dict[str, Any]]:
        """Choose and pay in round t, round i of these. -> what is learnt: x (R, d), r (R,), the rest of `update`."""
        if i >= self.last:
            self.draw(i)
        j, X, mask = i - self.first, rows.X[:, i, ...], None if rows.mask is None else rows.mask[:, i, :]
        view = decision.view(self.policy, self.model, self.state, X, t=t)
        chance = tuple(kind[:, j, ...] for kind in self.chance)
        if t == 1:
            policy_contract.look(self.policy, view, chance, lead=(len(self.world.runs),), arms=self.world.arms)
        demands = Demands((len(self.world.runs), self.world.arms), mask, decision.share(self.policy, t))
        arm = ONE.shown(view, chance, self.u[:, j, :], demands)
        self.shown.append(arm)
        r = arrays.pick(rows.reward[:, i, :], arm, rank=0)
        x = X if self.world.disjoint else arrays.pick(X, arm, rank=1)
        slot: dict[str, Any] = {"arm": arm} if self.world.disjoint else {}
        if self.model.half_life is not None:
            slot["at"] = self.array(np.full(len(self.world.runs), float(t)))  # the round is the time
        if self.training_rngs:
            slot["chance"] = tuple(kind[:, j, ...] for kind in self.training)
        return x, r, slot

    def learn(self, t: int, lesson: tuple[Array, Array, dict[str, Any]], delay: np.ndarray | None) -> None:
        """Learn what comes in round t; delay (R,) says how many rounds late this lesson, of `choose`, will come."""
        x, r, slot = lesson
        if delay is None:
            self.state = self.model.update(self.state, x, r, **slot, **given_up(self.model))
            return
        for late in np.unique(delay):
            self.late.setdefault(t + int(late), []).append((x, r, slot, delay == late))
        for x, r, slot, arrived in self.late.pop(t, []):
            new = self.model.update(self.state, x, r, **slot)
            self.state = new if arrived.all() else trees.choose(self.array(arrived), new, self.state)

    def sums(self, rows: Rounds) -> tuple[Array, Array]:
        """The cumulative regrets after each of these rounds, which were just played: (R, n) each."""
        xp = arrays.namespace(rows.mean)
        arm = xp.stack(self.shown, axis=1)
        lost = (
            rows.best - arrays.pick(rows.mean, arm, rank=0),
            rows.best_reward - arrays.pick(rows.reward, arm, rank=0),
        )
        kinds = zip((self.regret, self.realised), lost, strict=True)
        sums = [xp.cumulative_sum(xp.concat([before[:, None], more], axis=1), axis=1)[:, 1:] for before, more in kinds]
        self.regret, self.realised = (kind[:, -1] for kind in sums)
        return sums[0], sums[1]
