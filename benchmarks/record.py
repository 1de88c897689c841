"""A record of seeded decisions, to be made before a change and compared after it.

    python benchmarks/record.py write before.npz             on one machine and one kernel of BLAS
    python benchmarks/record.py compare before.npz           after the change, on the same machine and kernel

For each algorithm, and for each road on which a decision is made, 200 requests are decided and learnt. What is kept of
them: arm, propensity, kind and z of every decision, and a digest of the random streams after the last one. `compare`
names every road on which an arm, a z, a kind or a stream is another one, and says by how much propensities differ.
"""

import argparse
import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import dither

K, D, N, B = 5, 3, 200, 10  # arms, features, decisions, requests of a batch
VARIANTS = {  # beside the algorithms as they are: name -> (algorithm, settings)
    "LinFP, slots": ("LinFP", dict(disjoint=K)),
    "LinFP, uncoupled": ("LinFP", dict(coupled=False)),
    "LinFP, ball": ("LinFP", dict(noise=dither.noise.Ball())),
    "LinFP, diagonal": ("LinFP", dict(diagonal=True)),
    "LinFP, half_life": ("LinFP", dict(half_life=50.0)),
    "LinFP, window": ("LinFP", dict(window=30)),
    "LinTS, slots": ("LinTS", dict(disjoint=K)),
    "EpsGreedy, slots": ("EpsGreedy", dict(disjoint=K)),
    "GLMFP, log": ("GLMFP", dict(link="log")),
    "GLMFP, slots": ("GLMFP", dict(disjoint=K)),
    "DeepFP, slots": ("DeepFP", dict(disjoint=K)),
}
Rows = list[tuple[Any, Any, str, Any]]  # arm, p, kind and z of each decision


def bandit(name: str, **settings: Any) -> dither.Bandit:
    """The bandit of an algorithm or of a variant."""
    algorithm, more = VARIANTS.get(name, (name, {}))
    return dither.ALGORITHMS[algorithm](dim=D, seed=3, monte_carlo=20, **settings, **more)


def problem(slots: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, masks (N, K) of which two thirds are whole, and the reward of each arm, 0 or 1."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D) if slots else (N, K, D)) / 2
    mask = rng.random((N, K)) < 0.5
    mask[np.arange(N), rng.integers(K, size=N)] = True
    mask[rng.random(N) < 2 / 3] = True
    return X, mask, (rng.random((N, K)) < 0.5).astype(float)


def taught(one: dither.Bandit, X: np.ndarray, arm: Any, r: np.ndarray, t: int) -> None:
    """Let the bandit learn the rewards of one request, or of a batch."""
    arm = np.asarray(arm)
    more: dict[str, Any] = {"at": float(t)} if "half_life" in str(one.model) and _clocked(one) else {}
    if one.slots is not None:
        one.update(X, np.take_along_axis(r, arm[..., None], -1)[..., 0], arm=arm, **more)
    elif arm.ndim:
        rows = np.arange(len(arm))
        one.update(X[rows, arm], r[rows, arm], **more)
    else:
        one.update(X[int(arm)], float(r[int(arm)]), **more)


def _clocked(one: dither.Bandit) -> bool:
    return getattr(one.model, "half_life", None) is not None


def single(one: dither.Bandit, **asked: Callable[[int], Any]) -> Rows:
    """One request at a time; asked: further arguments of `choose` by the number of the request."""
    X, mask, r = problem(one.slots)
    rows = []
    for i in range(N):
        d = one.choose(X[i], mask=mask[i], **{name: make(i) for name, make in asked.items()})
        rows.append((d.arm, d.propensity, d.propensity_kind, d.z))
        taught(one, X[i], d.arm, r[i], i)
    return rows


def batch(one: dither.Bandit) -> Rows:
    """B requests at a time."""
    X, mask, r = problem(one.slots)
    rows: Rows = []
    for i in range(0, N, B):
        part = slice(i, i + B)
        d = one.choose(X[part], mask=mask[part])
        z = [None] * B if d.z is None else list(d.z)
        rows += zip(d.arm.tolist(), np.broadcast_to(d.propensity, B).tolist(), [d.propensity_kind] * B, z, strict=True)
        taught(one, X[part], d.arm, r[part], i)
    return rows


def lists(one: dither.Bandit) -> Rows:
    """Lists of two arms, of all arms on offer."""
    X, _, r = problem(one.slots)
    rows = []
    for i in range(N):
        d = one.choose_list(X[i], k=2)
        rows.append((d.arms[0] * K + d.arms[1], d.propensity, d.propensity_kind, d.z))
        taught(one, X[i], d.arms[0], r[i], i)
    return rows


def live(one: dither.Bandit) -> Rows:
    """Through `Live`, in memory."""
    X, mask, r = problem(one.slots)
    rows = []
    with dither.Live(None, bandit=one, probabilities=True) as service:
        for i in range(N):
            d = service.choose(X[i], mask=mask[i], id=f"d{i}", time=1e9 + i)
            rows.append((d.arm, d.propensity, d.propensity_kind, d.z))
            service.reward(d.id, float(r[i, int(d.arm)]), time=1e9 + i + 0.5)
    return rows


def least(i: int) -> np.ndarray:
    """Minima that change from request to request."""
    return np.roll([0.3, 0.05, 0.0, 0.1, 0.0], i)


def price(i: int) -> np.ndarray:
    """Values that change from request to request."""
    return np.roll([1.0, 2.0, 0.5, 1.0, 3.0], i)


ROADS: dict[str, Callable[[str], tuple[dither.Bandit, Callable[[dither.Bandit], Rows]]]] = {
    "single": lambda name: (bandit(name), single),
    "batch": lambda name: (bandit(name), batch),
    "list": lambda name: (bandit(name), lists),
    "floor": lambda name: (bandit(name, floor=0.2), single),
    "floor, batch": lambda name: (bandit(name, floor=0.2), batch),
    "floor, list": lambda name: (bandit(name, floor=0.2), lists),
    "demands": lambda name: (bandit(name, floor=0.1), lambda one: single(one, minimum=least)),
    "baseline": lambda name: (
        bandit(name, baseline=dither.Baseline(arm=0, loss=0.2, sigma=0.1, S=0.3)),
        lambda one: single(one, baseline=lambda i: int(np.argmax(problem(None)[1][i]))),
    ),
    "values": lambda name: (bandit(name), lambda one: single(one, values=price)),
    "live": lambda name: (bandit(name), live),
    "live, floor": lambda name: (bandit(name, floor=0.2), live),
}


def streams(one: dither.Bandit) -> str:
    """A digest of the random streams that go on from call to call."""
    states = {name: repr(rng.bit_generator.state) for name, rng in sorted(one._streams().items())}
    return hashlib.sha256(json.dumps(states).encode()).hexdigest()[:16]


def records(only: list[str], roads: list[str]) -> Iterator[tuple[str, Rows, str]]:
    """For each algorithm and road: its name, the decisions, the digest of the streams; a refusal is named instead."""
    for name in [*dither.ALGORITHMS, *VARIANTS]:
        if only and name not in only:
            continue
        for road, make in ROADS.items():
            if roads and road not in roads:
                continue
            try:
                one, decide = make(name)
                rows = decide(one)
            except (TypeError, ValueError) as refusal:
                yield f"{name} | {road}", [], type(refusal).__name__
                continue
            yield f"{name} | {road}", rows, streams(one)


def content(only: list[str], roads: list[str]) -> dict[str, np.ndarray]:
    """What a record holds, by name."""
    found: dict[str, np.ndarray] = {}
    for name, rows, digest in records(only, roads):
        print(name, digest, flush=True)
        found[f"{name} | streams"] = np.array(digest)
        if rows:
            arm, p, kind, z = zip(*rows, strict=True)
            found[f"{name} | arm"] = np.array(arm, dtype=np.int8)
            found[f"{name} | p"] = np.array(p, dtype=np.float64)
            found[f"{name} | kind"] = np.array([word[0] for word in kind])
            if z[0] is not None:
                found[f"{name} | z"] = np.array([np.asarray(one, dtype=np.float64) for one in z])
    return found


def differences(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> Iterator[str]:
    """A line for each thing that is another one after the change, and one for the propensities."""
    roads = sorted({name.rpartition(" | ")[0] for name in before})
    largest = 0.0
    for road in roads:
        if f"{road} | streams" not in after:
            continue
        for what in ("streams", "arm", "kind", "z"):
            a, b = before.get(f"{road} | {what}"), after.get(f"{road} | {what}")
            if (a is None) != (b is None):
                yield f"{road}: {what} is there in one of the two alone"
            elif (
                a is not None
                and b is not None
                and not (a.shape == b.shape and np.array_equal(a, b, equal_nan=what == "z"))
            ):
                many = int(np.sum(np.any((a != b).reshape(len(a), -1), axis=1))) if a.ndim and a.shape == b.shape else 1
                yield f"{road}: {what} differs ({many})"
        a, b = before.get(f"{road} | p"), after.get(f"{road} | p")
        if a is not None and b is not None:
            odd = np.isnan(a) != np.isnan(b)
            if odd.any():
                yield f"{road}: p is NaN in one of the two alone ({int(odd.sum())})"
            off = float(np.nanmax(np.abs(a - b), initial=0.0))
            largest = max(largest, off)
            if off > 1e-15:
                yield f"{road}: p differs by up to {off:.2g}"
    yield f"{len(roads)} roads compared; the largest difference of a propensity is {largest:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", nargs="*", default=[], help="names of algorithms")
    parser.add_argument("--roads", nargs="*", default=[], choices=ROADS, help="names of roads")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    made = content(asked.only, asked.roads)
    if asked.what == "write":
        np.savez_compressed(asked.file, **made)
        return
    with np.load(asked.file) as stored:
        lines = list(differences(dict(stored), made))
    print(*lines, sep="\n")
    sys.exit(len(lines) > 1)


if __name__ == "__main__":
    main()
