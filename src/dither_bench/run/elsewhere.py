"""Other libraries play the rounds of a block in their own interpreter (`others_runner.py`), and send back the arms."""

import dataclasses
import functools
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dither.algorithms import Spec
from dither.base import arrays
from dither.simulation.world import WorldOfRuns
from dither_bench.define.others import RUNNER, OtherLibrary

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def play(
    env: Any,
    specs: Mapping[str, Spec],
    *,
    runs: range,
    rounds: int,
    marks: np.ndarray,
    seed: int,
    tell: Callable[[float], None],
    chance: str = "streams",
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> cumulative regrets (R, P) of the means and of the rewards at the marks (P,).

    The contexts and rewards of a run are those that `simulate` draws. tell : called with the share that is done.
    Raises RuntimeError where an interpreter ends with an error.
    """
    world = WorldOfRuns(env, np.array(runs), seed, xp=arrays.backend(None), device=None, chance=chance)
    drawn = world.advance(rounds)
    arms: dict[str, np.ndarray] = {}
    pythons: dict[str, list[str]] = {}
    for name, spec in specs.items():
        pythons.setdefault(_library(spec).python, []).append(name)
    for python, names in pythons.items():
        part_of = functools.partial(_told, tell, len(arms) / len(specs), len(names) / len(specs))
        players = [_player(specs[name], env, rounds) for name in names]
        request = {"players": players, "seed": seed, "runs": list(runs)}
        shown = _in(python, drawn.X, drawn.reward, request, part_of)
        arms |= dict(zip(names, shown, strict=True))
    return {name: _regrets(drawn, of, marks) for name, of in arms.items()}


def _told(tell: Callable[[float], None], before: float, share: float, part: float) -> None:
    tell(before + share * part)


def _library(spec: Spec) -> OtherLibrary:
    if not isinstance(spec.origin, OtherLibrary):
        raise TypeError(f"{spec} is no algorithm of another library")
    return spec.origin


def _player(spec: Spec, env: Any, rounds: int) -> dict[str, Any]:
    _, policy = spec.configure(env.dim, disjoint=env.arms, facts={})
    return {"library": spec.name, "settings": dataclasses.asdict(policy)}


def _regrets(drawn: Any, arms: np.ndarray, marks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the arms (R, T) that were shown."""
    lost = drawn.best - np.take_along_axis(drawn.mean, arms[..., None].astype(np.int64), axis=-1)[..., 0]
    realised = drawn.best_reward - np.take_along_axis(drawn.reward, arms[..., None].astype(np.int64), axis=-1)[..., 0]
    return np.cumsum(lost, axis=1)[:, marks - 1], np.cumsum(realised, axis=1)[:, marks - 1]


def _in(
    python: str, X: np.ndarray, reward: np.ndarray, request: dict[str, Any], tell: Callable[[float], None]
) -> np.ndarray:
    """The arms (A, R, T) that the players show."""
    with tempfile.TemporaryDirectory() as scratch:
        rounds, asked, arms = (Path(scratch) / name for name in ("rounds.npz", "request.json", "arms.npz"))
        np.savez(rounds, X=X, reward=reward)
        asked.write_text(json.dumps(request), encoding="utf-8")
        errors = Path(scratch) / "errors"
        with errors.open("w", encoding="utf-8") as file:
            command = [python, str(RUNNER), *map(str, (rounds, asked, arms))]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=file, text=True, env=os.environ | ONE_THREAD
            ) as process:
                try:
                    for line in process.stdout or ():
                        done, _, total = line.partition(" ")
                        if done.isdecimal() and total.strip().isdecimal():
                            tell(int(done) / int(total))
                except BaseException:  # else the context would wait for its end
                    process.kill()
                    raise
        if process.returncode or not arms.exists():
            last = errors.read_text(encoding="utf-8").strip().splitlines()[-1:] or [f"exit code {process.returncode}"]
            names = ", ".join(dict.fromkeys(player["library"] for player in request["players"]))
            raise RuntimeError(f"{names} in {python} ended with an error: {last[0]}")
        with np.load(arms) as file_of_arms:
            return np.asarray(file_of_arms["arms"])
