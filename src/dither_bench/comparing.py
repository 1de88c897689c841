"""`compare`: algorithms on the same contexts and rewards, as the command of that name does it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dither.algorithms import Spec, specs
from dither.simulation.simulate import Algorithms, check_environment, configured, entries, simulate
from dither_bench.define import environments, figures
from dither_bench.keep import code
from dither_bench.results import Code, Comparison, labelled
from dither_bench.run import run


def compare(
    algorithms: Algorithms,
    env: Any = "linear",
    *,
    rounds: int = 2000,
    runs: int = 20,
    seed: int = 0,
    jobs: int = 1,
    chance: str = "streams",
    device: str | None = None,
    out: str | Path | None = None,
    reference: str | None = None,
    **how: Any,
) -> Comparison:
    """Run algorithms side by side.

    Parameters
    ----------
    algorithms : names ("LinFP:c=0.3", "LinFP:c=0.3|1", "mine.py:BGE:C=0.5"), policies or algorithms of your own; or a
        dict of label -> such a thing or (model, policy)
    env : a name ("linear", "world.py:Drift"), a dict of its name and settings, or an environment itself
    rounds, runs, seed : the horizon, the runs of each algorithm, and the seed of all random streams
    jobs : processes that share the runs
    chance, device : what the runs are drawn by and where, as `simulate` takes it
    out : a folder that keeps the results, as the command line does: what it holds is not computed anew. None: nothing
        is kept but what is returned
    reference : with out, the algorithm that the others are compared with. None: LinFP, GLMFP or DeepFP, or the first
    how : with out, also block, accept, backend and cluster, as `run.reproduce` takes them

    Raises ValueError, LookupError, TypeError, ImportError or OSError for what cannot run, before anything runs.
    """
    if out is not None:
        figure = figures.adhoc(
            environments.described(env), _named(algorithms), rounds=rounds, runs=runs, reference=reference
        )
        figure = figures.drawn_by(figure, chance=chance, device=device)
        run.reproduce(figure, out=out, runs=runs, seed=seed, jobs=jobs, **how)
        return Comparison.stored(Path(out), figure, seed=seed)
    if reference is not None:
        how["reference"] = reference
    if how:
        raise TypeError(f"{', '.join(how)} is for results that are kept: name a folder, as in out='results'")
    agents = entries(algorithms if isinstance(algorithms, (str, Mapping)) else specs(*algorithms))
    labelled(agents)
    named = isinstance(env, (str, Mapping))
    data = environments.described(env) if named else environments.called(env)
    world = environments.build(data) if named else env
    check_environment(world)
    panel = figures.called(data, rounds=rounds, usual=environments.defaults(data["name"]) if named else {})
    codes = _code(agents, world, rounds=rounds)
    results = simulate(world, agents, rounds=rounds, runs=runs, seed=seed, jobs=jobs, chance=chance, device=device)
    return Comparison.of(results, panel=panel, env=data, code=codes)


def _named(algorithms: Algorithms) -> tuple[Spec, ...]:
    """The algorithms as a store knows them."""
    if isinstance(algorithms, (str, Mapping)):
        raise TypeError(
            "with out=, algorithms are a list: results are kept under the names of algorithms, and not under labels. "
            "Give a pair (model, policy) a name by dither.Algorithm"
        )
    every = specs(*algorithms)
    for spec in every:
        if odd := [f"{name}={value!r}" for name, value in spec.settings if not environments.plain(value)]:
            raise TypeError(
                f"with out=, a setting of {spec.name} is a number, a text, None, or a tuple of these, since results "
                f"are kept under its name; got {odd[0]}: make a class with this default, or leave out= out"
            )
    return every


def _code(agents: Mapping[str, Any], env: Any, *, rounds: int) -> Code:
    """Label -> the fingerprint of the code; () where something has no source that can be read."""
    pairs = {k: configured(what, env, rounds=rounds) if isinstance(what, Spec) else what for k, what in agents.items()}
    prints = {label: code.of(env, *pair) for label, pair in pairs.items()}
    return {label: () if of is None else (of,) for label, of in prints.items()}
