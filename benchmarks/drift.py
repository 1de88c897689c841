"""What forgetting costs and what it brings, and what an alarm does: `python benchmarks/drift.py speed`, and so on.

speed : one update of a live bandit, as a ratio to a plain update of the same algorithm that has learnt as many rows as
    the other one remembers: 1/(1 - γ), or W. The plain one stays at that number. All take turns in one process, and
    the median of the processor's time of many stretches counts.
regret : the regret of algorithms with and without forgetting in worlds that change, and its standard error over runs
discounts : the same for discounts in turn, so that the best one can be read off
cover : how often the confidence sets of a discount miss θ* in a world that stays
alarm : the false alarms of `drift.Alarm` for streams of several laws, by recursions of its own; thresholds are its
clicks : the same for clicks of a known share, by law="bernoulli" and law="normal"; half a minute
residuals : the false alarms of `drift.ResidualAlarm`, the alarm of a live bandit; half a minute

Each prints a table for docs/drift.md. Set OMP_NUM_THREADS=1.
"""

import copy
import sys
import time

import numpy as np

import dither
from dither.drift.clicks import ClickChart
from dither.drift.residuals import FIRST, ResidualAlarm, WatchedResiduals

STRETCH = 40  # updates between two looks at the clock


def ratios(name: str, dim: int, settings: list[dict], *, turns: int, **common) -> list[tuple[float, float]]:
    """The time of an update with each of the settings: in seconds, and in plain updates."""
    rng = np.random.default_rng(0)
    rounds = 20_000
    X = rng.normal(size=(rounds, dim)) / np.sqrt(dim)
    r = (rng.random(rounds) < 1 / (1 + np.exp(-3 * X[:, 0]))) * 1.0

    def learnt(n: int, **how) -> dither.Bandit:
        bandit = dither.ALGORITHMS[name](dim=dim, seed=0, **common, **how)
        bandit.update(X[:n], r[:n])
        return bandit

    memories = [how.get("window") or round(1 / (1 - how["discount"])) for how in settings]
    plain = {n: learnt(n) for n in sorted(set(memories))}
    bandits = [learnt(rounds, **how) for how in settings]
    for bandit in bandits:  # what a batch leaves behind is not what a live bandit has
        for i in range(50):
            bandit.update(X[i], r[i])
    spent: dict[int, list[float]] = {n: [] for n in plain}
    own: list[list[float]] = [[] for _ in bandits]
    for turn in range(turns):
        rows = [(turn * STRETCH + i) % rounds for i in range(STRETCH)]
        for n, bandit in plain.items():
            spent[n].append(_stretch(copy.deepcopy(bandit), X, r, rows))
        for k, bandit in enumerate(bandits):
            own[k].append(_stretch(bandit, X, r, rows))
    of_plain = {n: float(np.median(times)) for n, times in spent.items()}
    mine = [float(np.median(times)) for times in own]
    return [(t / STRETCH, t / of_plain[n]) for t, n in zip(mine, memories, strict=True)]


def _stretch(bandit: dither.Bandit, X: np.ndarray, r: np.ndarray, rows: list[int]) -> float:
    """The processor's time of some updates, after one that is not counted."""
    bandit.update(X[-1], r[-1])
    start = time.process_time()
    for i in rows:
        bandit.update(X[i], r[i])
    return time.process_time() - start


def speed() -> None:
    """The table of ratios."""
    how = [{"discount": 0.99}, {"discount": 0.999}, {"window": 100}, {"window": 1000}]
    print(
        "| model | d |", " | ".join(f"`{k}={v}`" for one in how for k, v in one.items()), "|\n|---|---|---|---|---|---|"
    )
    for kind, name, dims, turns, common in (
        ("linear", "LinFP", (8, 32, 64, 128), 100, {}),
        ("logistic", "GLMFP", (8, 32), 15, {"lam": 1.0}),
    ):
        for dim in dims:
            found = ratios(name, dim, how, turns=turns, **common)
            print(f"| {kind} | {dim} |", " | ".join(f"{x:.2f} ({t * 1e6:.0f} µs)" for t, x in found), "|", flush=True)


WORLDS = {
    "nothing changes": lambda env: env,
    "θ* is drawn anew at 1,000": lambda env: dither.envs.Abrupt(env, rounds=1000),
    "θ* turns, period 4,000": lambda env: dither.envs.Rotating(env, period=4000),
    "θ* walks, 0.02 a round": lambda env: dither.envs.Walking(env, step=0.02),
}
MORE_WORLDS = WORLDS | {
    "θ* is drawn anew every 500": lambda env: dither.envs.Abrupt(env, rounds=(500, 1000, 1500)),
    "θ* turns, period 20,000": lambda env: dither.envs.Rotating(env, period=20_000),
    "θ* walks, 0.005 a round": lambda env: dither.envs.Walking(env, step=0.005),
}
MEMORY = ("", ":discount=0.99", ":discount=0.997", ":window=200", ":window=500")
DISCOUNTS = (0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.9975, 0.999)


def _regrets(env: object, worlds: dict, names: list[str], *, runs: int, rounds: int = 2000) -> list[np.ndarray]:
    """The regrets in each world, (algorithms, runs)."""
    algorithms = {name: f"{name}{',' if ':' in name else ':'}preset=paper" for name in names}
    found = (dither.simulate(w(env), algorithms, runs=runs, rounds=rounds, seed=0) for w in worlds.values())
    return [one.regret[:, :, -1] for one in found]


def _cell(x: np.ndarray) -> str:
    return f"{x.mean():.0f} ± {x.std(ddof=1) / np.sqrt(len(x)):.0f}"


def regret() -> None:
    """The tables of regrets: linear rewards, then clicks."""
    linear = [f"LinFP{how}" for how in MEMORY] + [f"{name}{how}" for name in ("LinTS", "LinUCB") for how in MEMORY[:2]]
    linear += ["LinUCB:discount=0.99,radius=d-linucb"]
    clicks = [f"GLMFP{how}" for how in MEMORY[:4]]
    envs = dither.envs.Linear(dim=5, arms=20, noise=0.5), dither.envs.Logistic(dim=5, arms=20, norm=3.0)
    for env, names, runs in zip(envs, (linear, clicks), (20, 10), strict=True):
        print(f"| algorithm | {' | '.join(WORLDS)} |\n|---|{'---|' * len(WORLDS)}")
        columns = _regrets(env, WORLDS, names, runs=runs)
        for i, name in enumerate(names):
            print(f"| `{name}` |", " | ".join(_cell(column[i]) for column in columns), "|", flush=True)


def discounts(runs: int = 20) -> None:
    """The regret for each discount, and the discount of theory: 1 - (B_T/(d T))^(2/3)."""
    algorithms = ("LinFP", "LinTS", "LinUCB")
    names = [f"{name}{how}" for name in algorithms for how in ("", *(f":discount={g}" for g in DISCOUNTS))]
    print(f"| world | algorithm | none | {' | '.join(map(str, DISCOUNTS))} |\n|---|---|---|{'---|' * len(DISCOUNTS)}")
    each = len(DISCOUNTS) + 1
    for world in MORE_WORLDS:
        (found,) = _regrets(
            dither.envs.Linear(dim=5, arms=20, noise=0.5), {world: MORE_WORLDS[world]}, names, runs=runs
        )
        for k, name in enumerate(algorithms):
            cells = " | ".join(_cell(x) for x in found[k * each : (k + 1) * each])
            print(f"| {world} | {name} | {cells} |", flush=True)


def cover(runs: int = 500, rounds: int = 500, d: int = 5, delta: float = 0.1) -> None:
    """How many runs of optimism have θ* outside of the set in some round; δ = 0.1, S = 1, noise of sd 1."""
    print("| discount | radius | runs with θ* outside in some round | regret |\n|---|---|---|---|")
    for discount in (0.99, 0.95):
        for radius in ("constant", "oful", "d-linucb"):
            rng, model = np.random.default_rng(11), dither.models.Ridge(1.0, discount=discount)
            policy = dither.policies.UCB(radius=radius, S=1.0, horizon=round(1 / delta))
            star = rng.normal(size=(runs, d))
            star /= np.linalg.norm(star, axis=1, keepdims=True)
            state, out, lost = model.init(d, batch=(runs,), needs=policy.needs), np.zeros(runs, bool), np.zeros(runs)
            for t in range(1, rounds + 1):
                shape = V = np.linalg.inv(state.F @ state.F.mT)
                if radius == "d-linucb":
                    shape = V @ np.linalg.inv(state.noise + np.eye(d)) @ V
                off = state.theta - star
                beta = dither.policies.optimism.radius(policy, model, state, t, d=d)
                out |= np.sqrt(np.einsum("ri,rij,rj->r", off, shape, off)) > beta
                X = rng.normal(size=(runs, 20, d))
                X /= np.maximum(np.linalg.norm(X, axis=-1, keepdims=True), 1)
                arm, means = policy.view(model, state, X, t=t).s.argmax(axis=-1), np.einsum("rki,ri->rk", X, star)
                lost += means.max(axis=-1) - means[np.arange(runs), arm]
                shown = X[np.arange(runs), arm]
                state = model.update(state, shown, means[np.arange(runs), arm] + rng.normal(size=runs))
            print(f"| {discount} | {radius} | {out.sum()} of {runs} | {_cell(lost)} |", flush=True)


LAWS = {  # a law with mean 0 and sd 1, as a function of the generator and of n
    "normal": lambda rng, n: rng.normal(size=n),
    "uniform": lambda rng, n: rng.uniform(-1, 1, size=n) * np.sqrt(3),
    "clicks at 50 %": lambda rng, n: _clicks(rng, n, 0.5),
    "clicks at 10 %": lambda rng, n: _clicks(rng, n, 0.1),
    "clicks at 1 %": lambda rng, n: _clicks(rng, n, 0.01),
    "Laplace": lambda rng, n: rng.laplace(size=n) / np.sqrt(2),
    "Student, 5 degrees": lambda rng, n: rng.standard_t(5, size=n) / np.sqrt(5 / 3),
    "Student, 3 degrees": lambda rng, n: rng.standard_t(3, size=n) / np.sqrt(3),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1,
}


def _clicks(rng: np.random.Generator, n: int, p: float) -> np.ndarray:
    return ((rng.random(n) < p) - p) / np.sqrt(p * (1 - p))


def alarm(streams: int = 2000, rounds: int = 2000) -> None:
    """False alarms over the stated rate, for law="normal" with σ known."""
    settings = [(rate, shift) for rate in (0.01, 0.001) for shift in (0.5, 1.0)]
    head = " | ".join(f"rate {rate}, shift {shift}" for rate, shift in settings)
    print(f"| law | {head} |\n|---|{'---|' * len(settings)}")
    for name, law in LAWS.items():
        cells = []
        for rate, shift in settings:
            h, rng = dither.drift.Alarm(rate=rate, shift=shift, mean=0.0).threshold, np.random.default_rng(0)
            up, down, count = (np.zeros(streams) for _ in range(3))
            for _ in range(rounds):
                z = shift * law(rng, streams)
                up, down = (np.maximum(0, S + s * z - shift**2 / 2) for S, s in ((up, 1), (down, -1)))
                hit = np.maximum(up, down) >= h
                count, up, down = count + hit, up * ~hit, down * ~hit
            share = count / rounds / rate
            cells.append(f"{share.mean():.2f} ± {share.std(ddof=1) / np.sqrt(streams):.2f}")
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def clicks(streams: int = 1000, rounds: int = 20_000) -> None:
    """False alarms over the stated rate, for clicks of a known share and for normal values, by its own recursions."""
    settings = [(rate, shift) for rate in (0.001, 0.0001) for shift in (0.5, 1.0)]
    head = " | ".join(f"rate {rate:g}, shift {shift:g}" for rate, shift in settings)
    print(f"| values | `law=` | {head} |\n|---|---|{'---|' * len(settings)}")
    for name, p, law in [
        *((f"clicks at {100 * p:g} %", p, law) for p in (0.4, 0.1, 0.02, 0.005) for law in ("bernoulli", "normal")),
        ("normal", 0.0, "normal"),
    ]:
        cells = []
        for rate, shift in settings:
            rng = np.random.default_rng([round(1e4 * p), round(1e6 * rate), round(10 * shift)])
            steps, least, begin = _charts(p, law, rate, shift)
            S, count = np.tile(begin, (streams, 1)), np.zeros(streams)
            for _ in range(rounds):
                ones = rng.standard_normal(streams) if p == 0 else (rng.random(streams) < p).astype(int)
                S = np.maximum(0, S + (steps[ones] if p else np.stack([shift * ones, -shift * ones], 1) - shift**2 / 2))
                hit = np.any(least <= S, axis=1)
                count, S = count + hit, np.where(hit[:, None], begin, S)
            share = count / rounds / rate
            cells.append(f"{share.mean():.2f} ± {share.std(ddof=1) / np.sqrt(streams):.2f}")
        print(f"| {name} | `{law}` |", " | ".join(cells), "|", flush=True)


def residuals(values: int = 400_000) -> None:
    """False alarms of `ResidualAlarm` over the stated rate, for each value that can give one, where nothing changes."""
    rates = (0.01, 0.001)
    print(f"| residuals | {' | '.join(f'rate {rate:g}' for rate in rates)} |\n|---|{'---|' * len(rates)}")
    laws: dict[str, list[float] | None] = {
        "normal": None,
        "clicks at 10 %": [0.1],
        "clicks at 2 %": [0.02],
        "clicks at 1, 5 or 40 %, one after the other": [0.01, 0.05, 0.4],
    }
    for name, shares in laws.items():
        cells = []
        for rate in rates:
            rng = np.random.default_rng(round(1 / rate))
            m = np.zeros(values) if shares is None else np.resize(shares, values)
            r = rng.normal(size=values) if shares is None else (rng.random(values) < m) * 1.0
            seen, judged = WatchedResiduals(), 0
            for value, mean in zip(r.tolist(), m.tolist(), strict=True):
                judged += seen.since >= FIRST
                seen.see(ResidualAlarm(rate=rate), value, mean, 0.0, 0)
            n = len(seen.alarms)
            cells.append(f"{n / (rate * judged):.2f} ± {max(1, n) ** 0.5 / (rate * judged):.2f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def _charts(p: float, law: str, rate: float, shift: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of both charts: the steps of a 0 and of a 1 (2, 2), the thresholds (2,), and where they begin (2,)."""
    if law == "bernoulli":
        rise = shift * np.sqrt(p * (1 - p))
        up, down = (ClickChart.of(q, rise, 2 / rate) for q in (p, 1 - p))
        steps = np.array([[-up.down, down.up], [up.up, -down.down]])
        return steps, np.array([up.height, down.height]), np.array([up.start, down.start])
    z = (np.array([0, 1]) - p) / np.sqrt(p * (1 - p)) if p else np.zeros(2)
    h = dither.drift.Alarm(rate=rate, shift=shift, mean=0.0).threshold
    return np.stack([shift * z, -shift * z], axis=1) - shift**2 / 2, np.array([h, h]), np.zeros(2)


if __name__ == "__main__":
    commands = {"speed": speed, "regret": regret, "discounts": discounts, "cover": cover, "alarm": alarm}
    commands |= {"clicks": clicks, "residuals": residuals}
    commands[sys.argv[1]]()
